//! What reaches the engine: sampler, seeds, prompts, budgets.

use std::sync::Arc;

use actix_web::test::TestRequest;
use serde_json::json;

use super::{CHAT, COMPLETIONS, chat_body};
use crate::http::HttpSettings;
use crate::http::auth::{ApiKey, Auth};
use crate::http::testing::{
    BOS, ByteCodec, CONTEXT, LineTemplate, call, get, hello, model, post, state, state_of,
    vocabulary,
};
use crate::sampling::SamplingParams;
use crate::session::LogprobsRequest;

fn tokens(text: &str) -> Vec<u32> {
    text.bytes().map(u32::from).collect()
}

#[actix_web::test]
async fn a_bare_request_is_greedy_with_everything_off() {
    let engine = hello();
    let reply = post(&state(&engine), CHAT, chat_body(json!({}))).await;
    assert_eq!(reply.status, 200);
    let generations = engine.last_generations();
    assert_eq!(generations.len(), 1);
    let generation = &generations[0];
    assert_eq!(generation.sampling, SamplingParams::default());
    assert_eq!(generation.sampling.temperature, 0.0);
    let expected = [vec![BOS], tokens("user: Hi\nassistant:")].concat();
    assert_eq!(*generation.prompt, *expected);
    assert_eq!(generation.max_tokens, CONTEXT - expected.len() as u32);
    assert!(generation.logprobs.is_none() && !generation.echo);
}

#[actix_web::test]
async fn every_field_arrives() {
    let engine = hello();
    let body = chat_body(json!({
        "model": "tiny", "temperature": 1.5, "top_p": 0.9, "top_k": 40, "min_p": 0.05,
        "typical_p": 0.8, "top_n_sigma": 1.0, "xtc_probability": 0.5, "xtc_threshold": 0.2,
        "dry_multiplier": 0.8, "dry_base": 1.5, "dry_allowed_length": 3, "dry_penalty_last_n": 10,
        "dry_sequence_breakers": ["x"], "dynatemp_range": 0.3, "dynatemp_exponent": 2,
        "min_keep": 2, "frequency_penalty": 0.1, "presence_penalty": 0.2, "repeat_penalty": 1.1,
        "repeat_last_n": -1, "logit_bias": {"5": -100, "6": 1.5}, "max_tokens": 3,
        "max_completion_tokens": 7, "min_tokens": 2, "stop": ["a", "b"], "stop_token_ids": [9],
        "include_stop_str_in_output": true, "ignore_eos": true, "logprobs": true,
        "top_logprobs": 4, "seed": 11, "n": 3,
    }));
    let reply = post(&state(&engine), CHAT, body).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let jobs = engine.jobs.lock().unwrap();
    let job = jobs.last().unwrap();
    assert_eq!((job.permits, job.generations.len()), (3, 3));
    let seeds: Vec<u64> = job.generations.iter().map(|g| g.seed).collect();
    assert_eq!(seeds, [11, 12, 13]);
    let generation = &job.generations[2];
    let sampling = &generation.sampling;
    assert_eq!((sampling.temperature, sampling.top_p, sampling.top_k), (1.5, 0.9, 40));
    assert_eq!((sampling.min_p, sampling.typical_p, sampling.top_n_sigma), (0.05, 0.8, 1.0));
    assert_eq!((sampling.xtc_probability, sampling.xtc_threshold), (0.5, 0.2));
    assert_eq!((sampling.dry.multiplier, sampling.dry.base), (0.8, 1.5));
    assert_eq!((sampling.dry.allowed_length, sampling.dry.penalty_last_n), (3, 10));
    assert_eq!(sampling.dry.sequence_breakers, ["x"]);
    assert_eq!((sampling.dynatemp_range, sampling.dynatemp_exponent), (0.3, 2.0));
    assert_eq!((sampling.min_keep, sampling.repetition_penalty), (2, 1.1));
    assert_eq!((sampling.frequency_penalty, sampling.presence_penalty), (0.1, 0.2));
    assert_eq!(sampling.repeat_last_n, -1);
    assert_eq!(sampling.logit_bias, [(5, -100.0), (6, 1.5)]);
    assert_eq!((generation.choice, generation.max_tokens, generation.min_tokens), (2, 7, 2));
    assert_eq!(generation.stop.strings, ["a", "b"]);
    assert_eq!(generation.stop.token_ids, [9]);
    assert!(generation.stop.include_in_output && generation.stop.ignore_eos);
    assert_eq!(generation.logprobs, Some(LogprobsRequest { top: 4 }));
}

#[actix_web::test]
async fn prompts_come_as_text_or_tokens_one_or_many() {
    let cases = [
        (json!("ab"), vec![vec![BOS, 97, 98]]),
        (json!("<s>ab"), vec![vec![BOS, 97, 98]]),
        (json!(["a", "b"]), vec![vec![BOS, 97], vec![BOS, 98]]),
        (json!([1, 2]), vec![vec![1, 2]]),
        (json!([[1], [2, 3]]), vec![vec![1], vec![2, 3]]),
        (json!(""), vec![vec![BOS]]),
        (json!([[]]), vec![vec![BOS]]),
    ];
    for (prompt, expected) in cases {
        let engine = hello();
        let body = json!({"prompt": prompt, "n": 2, "seed": 5});
        let reply = post(&state(&engine), COMPLETIONS, body).await;
        assert_eq!(reply.status, 200, "{prompt}: {}", reply.text());
        let generations = engine.last_generations();
        let got: Vec<_> = generations.iter().step_by(2).map(|g| g.prompt.to_vec()).collect();
        assert_eq!(got, expected, "{prompt}");
        for (i, generation) in generations.iter().enumerate() {
            assert_eq!((generation.choice, generation.seed), (i as u32, 5 + i as u64));
            assert_eq!(generation.max_tokens, 16);
        }
    }
}

#[actix_web::test]
async fn without_a_start_token_an_empty_prompt_is_refused() {
    let bare = crate::http::model::Model {
        codec: Arc::new(ByteCodec { add_bos: false }),
        vocabulary: Arc::new(vocabulary(false)),
        ..model()
    };
    let render = Arc::new(String::new);
    let state = crate::http::HttpState::new(HttpSettings::default(), hello(), render);
    assert!(state.set_model(bare).is_ok());
    let reply = post(&actix_web::web::Data::new(state), COMPLETIONS, json!({"prompt": ""})).await;
    assert_eq!((reply.status, &reply.error()["param"]), (400, &json!("prompt")));
}

#[actix_web::test]
async fn the_context_bounds_prompt_and_answer() {
    let prompt = |tokens: u32| json!(vec![1; tokens as usize]);
    let cases = [
        (json!({"prompt": prompt(CONTEXT - 1)}), Ok(1)),
        (json!({"prompt": prompt(CONTEXT - 5), "max_tokens": 5}), Ok(5)),
        (json!({"prompt": prompt(CONTEXT), "max_tokens": 0, "echo": true}), Ok(0)),
        (json!({"prompt": prompt(CONTEXT)}), Err(["200", "200"])),
        (json!({"prompt": prompt(CONTEXT + 7)}), Err(["207", "200"])),
        (json!({"prompt": prompt(CONTEXT - 5), "max_tokens": 6}), Err(["201", "200"])),
        (
            json!({"prompt": prompt(CONTEXT + 1), "max_tokens": 0, "echo": true}),
            Err(["201", "200"]),
        ),
    ];
    for (body, expected) in cases {
        let engine = hello();
        let reply = post(&state(&engine), COMPLETIONS, body).await;
        match expected {
            Ok(max_tokens) => {
                assert_eq!(reply.status, 200, "{}", reply.text());
                assert_eq!(engine.last_generations()[0].max_tokens, max_tokens);
            }
            Err(numbers) => {
                let error = reply.error();
                assert_eq!(reply.status, 400);
                assert_eq!(error["code"], "context_length_exceeded");
                let message = error["message"].as_str().unwrap();
                assert!(numbers.iter().all(|n| message.contains(n)), "{message}");
                assert!(engine.jobs.lock().unwrap().is_empty());
            }
        }
    }
}

#[actix_web::test]
async fn a_least_length_raises_the_default_and_must_fit() {
    let engine = hello();
    let body = json!({"prompt": vec![1; 100], "min_tokens": 50});
    assert_eq!(post(&state(&engine), COMPLETIONS, body).await.status, 200);
    let generation = &engine.last_generations()[0];
    assert_eq!((generation.min_tokens, generation.max_tokens), (50, 50));
    let body = json!({"prompt": vec![1; 100], "min_tokens": 101});
    let reply = post(&state(&engine), COMPLETIONS, body).await;
    assert_eq!((reply.status, &reply.error()["param"]), (400, &json!("min_tokens")));
}

#[actix_web::test]
async fn wishes_about_thinking_reach_the_template() {
    let cases = [
        (json!({}), ""),
        (json!({"enable_thinking": true}), r#"{"enable_thinking":true,"thinking":true}"#),
        (json!({"think": false}), r#"{"enable_thinking":false,"thinking":false}"#),
        (
            json!({"reasoning_effort": "none"}),
            r#"{"reasoning_effort":"none","enable_thinking":false,"thinking":false}"#,
        ),
        (
            json!({"think": "high", "chat_template_kwargs": {"x": 1}}),
            r#"{"x":1,"reasoning_effort":"high","enable_thinking":true,"thinking":true}"#,
        ),
    ];
    for (extra, expected) in cases {
        let reply = post(&state(&hello()), "/apply-template", chat_body(extra)).await;
        let prompt = reply.json()["prompt"].as_str().unwrap().to_owned();
        let kwargs = prompt.strip_suffix("user: Hi\nassistant:").unwrap().trim_end();
        assert_eq!(kwargs, expected);
    }
}

#[actix_web::test]
async fn a_last_message_can_be_continued() {
    let engine = hello();
    let body = json!({"continue_final_message": true, "messages": [
        {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]});
    assert_eq!(post(&state(&engine), CHAT, body).await.status, 200);
    let expected = [vec![BOS], tokens("user: a\nassistant: b")].concat();
    assert_eq!(*engine.last_generations()[0].prompt, *expected);
}

#[actix_web::test]
async fn apply_template_takes_tools() {
    let body = chat_body(json!({
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "add_generation_prompt": false,
    }));
    let reply = post(&state(&hello()), "/apply-template", body).await;
    assert_eq!(reply.json(), json!({"prompt": "1 tools\nuser: Hi\n"}));
    let reply = post(&state(&hello()), "/apply-template", chat_body(json!({"tools": [1]}))).await;
    assert_eq!((reply.status, &reply.error()["param"]), (400, &json!("tools[0]")));
}

#[actix_web::test]
async fn big_bodies_take_the_other_road_to_the_same_answer() {
    let mut settings = HttpSettings::default();
    settings.limits.offload_bytes = 0;
    let (here, there) = (hello(), hello());
    let body = chat_body(json!({"seed": 1}));
    let replies = [
        post(&state(&here), CHAT, body.clone()).await,
        post(&state_of(&there, settings), CHAT, body).await,
    ];
    assert_eq!(replies[0].json()["choices"], replies[1].json()["choices"]);
    assert_eq!(here.last_generations()[0].prompt, there.last_generations()[0].prompt);
}

#[actix_web::test]
async fn tokens_and_text_convert_both_ways() {
    let state = state(&hello());
    let reply = post(&state, "/tokenize", json!({"content": "é<s>"})).await;
    assert_eq!(reply.json(), json!({"tokens": [195, 169, BOS], "count": 3, "max_model_len": 200}));
    let body =
        json!({"prompt": "é<", "add_special": true, "parse_special": false, "with_pieces": true});
    let reply = post(&state, "/tokenize", body).await;
    let expected = json!([{"id": BOS, "piece": "<s>"}, {"id": 195, "piece": [195]},
        {"id": 169, "piece": [169]}, {"id": 60, "piece": "<"}]);
    assert_eq!(reply.json()["tokens"], expected);
    let reply = post(&state, "/detokenize", json!({"tokens": [195, 169, BOS]})).await;
    assert_eq!(reply.json(), json!({"content": "é<s>"}));
    for (path, body, param) in [
        ("/tokenize", json!({}), "content"),
        ("/tokenize", json!({"content": "a", "prompt": "a"}), "prompt"),
        ("/tokenize", json!({"content": ["a"]}), "content"),
        ("/tokenize", json!({"content": "a", "with_pieces": 1}), "with_pieces"),
        ("/detokenize", json!({}), "tokens"),
        ("/detokenize", json!({"tokens": [1, 999]}), "tokens[1]"),
    ] {
        let reply = post(&state, path, body).await;
        assert_eq!((reply.status, &reply.error()["param"]), (400, &json!(param)), "{path}");
    }
}

#[actix_web::test]
async fn models_are_found_under_each_name() {
    let state = state(&hello());
    let list = get(&state, "/v1/models").await.json();
    let ids: Vec<_> = list["data"].as_array().unwrap().iter().map(|m| m["id"].clone()).collect();
    assert_eq!((&list["object"], ids), (&json!("list"), vec![json!("org/tiny"), json!("tiny")]));
    let one = get(&state, "/v1/models/org/tiny").await.json();
    assert_eq!((&one["object"], &one["max_model_len"]), (&json!("model"), &json!(CONTEXT)));
    let missing = get(&state, "/v1/models/org/other").await;
    assert_eq!((missing.status, &missing.error()["code"]), (404, &json!("model_not_found")));
}

#[actix_web::test]
async fn the_client_and_the_request_id_reach_the_engine() {
    let engine = hello();
    let settings = HttpSettings {
        auth: Auth::Keys(vec![ApiKey::from_secret("ann", "sk-1")]),
        ..HttpSettings::default()
    };
    let request = TestRequest::post()
        .uri(CHAT)
        .insert_header(("authorization", "Bearer sk-1"))
        .insert_header(("x-request-id", "mine-7"))
        .set_json(chat_body(json!({})));
    let reply = call(&state_of(&engine, settings), request).await;
    assert_eq!((reply.status, reply.header("x-request-id")), (200, "mine-7"));
    let jobs = engine.jobs.lock().unwrap();
    assert_eq!((&*jobs[0].client, &*jobs[0].request_id), ("ann", "mine-7"));
}

#[actix_web::test]
async fn without_keys_the_address_is_the_client() {
    let engine = hello();
    let request = |body| {
        TestRequest::post()
            .uri(CHAT)
            .peer_addr("10.1.2.3:99".parse().unwrap())
            .insert_header(("x-forwarded-for", "10.9.9.9"))
            .set_json(body)
    };
    call(&state(&engine), request(chat_body(json!({})))).await;
    let trusting = HttpSettings { trust_forwarded: true, ..HttpSettings::default() };
    call(&state_of(&engine, trusting), request(chat_body(json!({})))).await;
    let jobs = engine.jobs.lock().unwrap();
    assert_eq!((&*jobs[0].client, &*jobs[1].client), ("10.1.2.3", "10.9.9.9"));
}

#[test]
fn the_template_double_is_what_the_tests_think() {
    use crate::http::model::{Conversing, PromptTemplate};
    let text = LineTemplate.render(Conversing {
        messages: &[json!({"role": "user", "content": "x"})],
        tools: None,
        kwargs: &Default::default(),
        add_generation_prompt: true,
        continue_final_message: false,
    });
    assert_eq!(text.unwrap(), "user: x\nassistant:");
}
