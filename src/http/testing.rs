//! Doubles for this room's tests: an engine that follows a script, a tokenizer of bytes, a template
//! that anybody can read.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_web::body::to_bytes;
use actix_web::http::header::HeaderMap;
use actix_web::test::{TestRequest, init_service};
use actix_web::web::{Bytes, Data};
use actix_web::{App, dev::Service};
use serde_json::Value;
use tokio::sync::mpsc;

use super::engine::{Engine, EngineStatus, Health, Job};
use super::model::{Chat, Conversing, Model, PromptTemplate, TemplateFault, TextCodec};
use super::{HttpSettings, HttpState, configure};
use crate::TokenId;
use crate::chat::format::ChatFormat;
use crate::chat::formats;
use crate::chat::prompt::Prompt;
use crate::grammar::{GrammarCache, GrammarVocabulary, Limits};
use crate::session::{
    Delta, Frame, FrameBody, Generation, Outcome, Reader, StopCause, StopMatcher, Summary,
    TokenEntry, Usage,
};
use crate::vocab::{Token, TokenKind, Vocabulary};

pub const BOS: TokenId = 256;
pub const EOS: TokenId = 257;
pub const VOCAB: usize = 258;
pub const CONTEXT: u32 = 200;

/// Bytes 0 to 255 are tokens, then `<s>` and `</s>`.
pub fn vocabulary(bos: bool) -> Vocabulary {
    let text = |b: u8| Token { bytes: vec![b], kind: TokenKind::Text };
    let control = |name: &str| Token { bytes: name.into(), kind: TokenKind::Control };
    let tokens = (0..=255).map(text).chain([control("<s>"), control("</s>")]).collect();
    Vocabulary::new(tokens, &[EOS], bos.then_some(BOS))
}

pub struct ByteCodec {
    pub add_bos: bool,
}

impl TextCodec for ByteCodec {
    fn encode(&self, text: &str, parse_special: bool) -> Result<Vec<TokenId>, String> {
        if text.contains('\0') {
            return Err("it holds a zero byte".into());
        }
        let bytes = |text: &str| text.bytes().map(TokenId::from).collect::<Vec<_>>();
        if !parse_special {
            return Ok(bytes(text));
        }
        let parts: Vec<_> = text.split("<s>").map(bytes).collect();
        Ok(parts.join(&BOS))
    }

    fn decode_bytes(&self, tokens: &[TokenId]) -> Vec<u8> {
        let vocabulary = vocabulary(true);
        tokens.iter().flat_map(|id| vocabulary.bytes(*id).to_vec()).collect()
    }

    fn add_bos(&self) -> bool {
        self.add_bos
    }
}

/// `role: content` lines. Some contents are orders.
pub struct LineTemplate;

impl PromptTemplate for LineTemplate {
    fn render(&self, conversation: Conversing) -> Result<String, TemplateFault> {
        let Conversing { messages, tools, kwargs, add_generation_prompt, continue_final_message } =
            conversation;
        let mut text = String::new();
        if !kwargs.is_empty() {
            text += &format!("{}\n", Value::Object(kwargs.clone()));
        }
        if let Some(tools) = tools {
            text += &format!("{} tools\n", tools.len());
        }
        for message in messages {
            let content = message["content"].as_str().unwrap_or("-");
            match content {
                "refuse" => return Err(TemplateFault { message: "no, thanks".into() }),
                "panic" => panic!("the template was told to panic"),
                _ => text += &format!("{}: {content}\n", message["role"].as_str().unwrap()),
            }
        }
        if add_generation_prompt {
            text += "assistant:";
        }
        if continue_final_message {
            text.pop();
        }
        Ok(text)
    }

    fn prompt(&self, conversation: Conversing) -> Result<Prompt, TemplateFault> {
        let text = self.render(conversation)?;
        let continues = conversation.continue_final_message;
        let opening = text.rfind("assistant:").filter(|_| conversation.add_generation_prompt);
        let prefill = opening.map_or(String::new(), |at| text[at..].to_owned());
        Ok(Prompt { text, prefill, continues })
    }

    fn shows_tools(&self) -> bool {
        true
    }
}

fn chat(format: ChatFormat) -> Chat {
    Chat::new(Arc::new(LineTemplate), Arc::new(format), &vocabulary(true))
}

pub fn model() -> Model {
    Model {
        name: "org/tiny".into(),
        aliases: vec!["tiny".into()],
        created_unix_s: 1_700_000_000,
        codec: Arc::new(ByteCodec { add_bos: true }),
        vocabulary: Arc::new(vocabulary(true)),
        chat: Some(chat(ChatFormat::content_only())),
        grammars: super::model::Grammars {
            cache: Arc::new(GrammarCache::new(
                GrammarVocabulary::new(&vocabulary(true)),
                Limits::default(),
                1 << 20,
            )),
            compile_deadline: Duration::from_secs(60),
            forced_by: None,
        },
        context_tokens: CONTEXT,
        trained_context_tokens: 400,
        device: "simulated".into(),
        repeatable: "proven".into(),
    }
}

/// What a choice does next.
#[derive(Clone, Debug)]
pub enum Act {
    Say(Delta),
    End(Outcome),
    /// Until the client is gone.
    Hang,
    /// For this long.
    Pause(Duration),
    /// Closes the channel with everything unfinished.
    Vanish,
}

pub fn say(text: &str) -> Act {
    Act::Say(Delta { text: text.into(), ..Delta::default() })
}

/// Token, log-probability, alternatives, text offset.
pub type Entry<'a> = (TokenId, Option<f32>, &'a [(TokenId, f32)], u32);

pub fn say_tokens(text: &str, tokens: &[Entry<'_>]) -> Act {
    let entry = |(token, logprob, top, text_offset): &Entry<'_>| TokenEntry {
        token: *token,
        logprob: *logprob,
        top: top.to_vec(),
        text_offset: *text_offset,
    };
    let tokens = tokens.iter().map(entry).collect();
    Act::Say(Delta { text: text.into(), tokens, ..Delta::default() })
}

pub fn stop() -> Act {
    Act::End(Outcome::Stop(StopCause::EndToken(EOS)))
}

type Script = Box<dyn Fn(&Generation) -> Vec<Act> + Send + Sync>;

/// Plays a script for every choice, one act of each choice in turn. What it says is read as a session
/// reads it.
pub struct ScriptedEngine {
    script: Arc<Script>,
    pub status: Mutex<EngineStatus>,
    pub jobs: Mutex<Vec<Seen>>,
    /// Requests whose receiver was dropped before they were done.
    pub cancelled: Arc<AtomicUsize>,
}

/// What is remembered of a job.
pub struct Seen {
    pub request_id: String,
    pub client: String,
    pub permits: usize,
    pub generations: Vec<Generation>,
}

impl ScriptedEngine {
    pub fn new(script: impl Fn(&Generation) -> Vec<Act> + Send + Sync + 'static) -> Arc<Self> {
        let status = EngineStatus {
            health: Health::Ready,
            queued: 0,
            waiting_tokens: 250,
            tokens_per_second: 100.0,
        };
        Arc::new(Self {
            script: Arc::new(Box::new(script)),
            status: Mutex::new(status),
            jobs: Mutex::default(),
            cancelled: Arc::default(),
        })
    }

    pub fn set_health(&self, health: Health) {
        self.status.lock().unwrap().health = health;
    }

    pub fn last_generations(&self) -> Vec<Generation> {
        self.jobs.lock().unwrap().last().unwrap().generations.clone()
    }
}

impl Engine for ScriptedEngine {
    fn submit(&self, job: Job) -> mpsc::Receiver<Frame> {
        let (sender, receiver) = mpsc::channel(job.frame_capacity);
        self.jobs.lock().unwrap().push(Seen {
            request_id: job.request_id.to_string(),
            client: job.client.to_string(),
            permits: job.permit.generations(),
            generations: job.generations.clone(),
        });
        let cancelled = Arc::clone(&self.cancelled);
        let script = Arc::clone(&self.script);
        actix_web::rt::spawn(async move {
            let permit = job.permit;
            if play(&sender, &job.generations, &script).await.is_err() {
                cancelled.fetch_add(1, Ordering::SeqCst);
            }
            drop(permit);
        });
        receiver
    }

    fn status(&self) -> EngineStatus {
        self.status.lock().unwrap().clone()
    }
}

struct ClientGone;

async fn play(
    sender: &mpsc::Sender<Frame>,
    generations: &[Generation],
    script: &Script,
) -> Result<(), ClientGone> {
    let mut acts: Vec<_> = generations
        .iter()
        .map(|g| (script(g).into_iter(), g.reading.as_ref().map(Reader::new)))
        .collect();
    let mut no_stops = StopMatcher::new(Vec::new(), false);
    let mut left = true;
    while std::mem::take(&mut left) {
        for (generation, (acts, reader)) in generations.iter().zip(&mut acts) {
            let Some(act) = acts.next() else { continue };
            left = true;
            let body = match (act, reader) {
                (Act::Say(delta), None) => FrameBody::Delta(delta),
                (Act::Say(delta), Some(reader)) => {
                    let (read, _) = reader.push(&delta.text, &mut no_stops, true);
                    FrameBody::Delta(Delta { tokens: delta.tokens, ..read })
                }
                (Act::End(outcome), None) => FrameBody::Done(summary(generation, outcome, false)),
                (Act::End(outcome), Some(reader)) => {
                    let rest = FrameBody::Delta(reader.finish(&mut no_stops));
                    let frame = Frame { choice: generation.choice, body: rest };
                    sender.send(frame).await.map_err(|_| ClientGone)?;
                    FrameBody::Done(summary(generation, outcome, reader.has_called()))
                }
                (Act::Pause(time), _) => {
                    tokio::time::sleep(time).await;
                    continue;
                }
                (Act::Hang, _) => {
                    sender.closed().await;
                    return Err(ClientGone);
                }
                (Act::Vanish, _) => return Ok(()),
            };
            let frame = Frame { choice: generation.choice, body };
            sender.send(frame).await.map_err(|_| ClientGone)?;
        }
    }
    Ok(())
}

fn summary(generation: &Generation, outcome: Outcome, has_called: bool) -> Summary {
    Summary {
        outcome,
        has_called,
        usage: Usage {
            prompt_tokens: generation.prompt.len() as u32,
            completion_tokens: 3,
            reasoning_tokens: 0,
            cached_tokens: 0,
        },
        queue_time: Duration::ZERO,
        time_to_first_token: None,
    }
}

pub fn hello() -> Arc<ScriptedEngine> {
    ScriptedEngine::new(|_| vec![say("Hello"), say(" \"wörld\"\n"), stop()])
}

pub fn state_of(engine: &Arc<ScriptedEngine>, settings: HttpSettings) -> Data<HttpState> {
    let state = HttpState::new(settings, engine.clone(), Arc::new(|| "page 1\n".into()));
    assert!(state.set_model(model()).is_ok());
    Data::new(state)
}

/// State around a model that writes this format.
pub fn state_with(engine: &Arc<ScriptedEngine>, format: &str) -> Data<HttpState> {
    let state =
        HttpState::new(HttpSettings::default(), engine.clone(), Arc::new(|| "page 1\n".into()));
    let chat = Some(chat(formats::named(format).unwrap()));
    assert!(state.set_model(Model { chat, ..model() }).is_ok());
    Data::new(state)
}

pub fn state(engine: &Arc<ScriptedEngine>) -> Data<HttpState> {
    state_of(engine, HttpSettings::default())
}

/// A response, read to its end.
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The `error` object, its four keys asserted.
    pub fn error(&self) -> Value {
        let error = self.json()["error"].clone();
        let keys: Vec<_> = error.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["message", "type", "param", "code"]);
        error
    }

    /// The JSON of each `data:` line but `[DONE]`, and whether `[DONE]` came, last.
    pub fn events(&self) -> (Vec<Value>, bool) {
        assert_eq!(self.status, 200, "{}", self.text());
        let mut events = Vec::new();
        let mut done = false;
        for event in self.text().split_terminator("\n\n") {
            assert!(!done, "{event} after [DONE]");
            match event.strip_prefix("data: ") {
                Some("[DONE]") => done = true,
                Some(data) => events.push(serde_json::from_str(data).unwrap()),
                None => assert_eq!(event, ": ping"),
            }
        }
        (events, done)
    }
}

/// Sends one request through the whole stack of middleware and routes.
pub async fn call(state: &Data<HttpState>, request: TestRequest) -> Reply {
    let state = state.clone();
    let app = init_service(App::new().configure(|config| configure(config, state))).await;
    let response = match app.call(request.to_request()).await {
        Ok(response) => response.into_parts().1.map_into_boxed_body(),
        Err(error) => error.error_response(),
    };
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let body = to_bytes(response.into_body()).await.unwrap();
    Reply { status, headers, body }
}

pub async fn post(state: &Data<HttpState>, path: &str, body: Value) -> Reply {
    call(state, TestRequest::post().uri(path).set_json(body)).await
}

pub async fn get(state: &Data<HttpState>, path: &str) -> Reply {
    call(state, TestRequest::get().uri(path)).await
}
