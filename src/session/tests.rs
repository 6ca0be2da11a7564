//! A session against rows made by hand, over the byte vocabulary.

use std::sync::Arc;

use super::*;
use crate::TokenId;
use crate::device::simulated::{END, TOKENS};
use crate::sampling::{DryBreakers, SamplingParams};
use crate::vocab::{byte_vocabulary, encode_bytes};

fn generation(prompt: &str) -> Generation {
    Generation {
        choice: 0,
        prompt: encode_bytes(prompt, true).into(),
        max_tokens: 100,
        min_tokens: 0,
        sampling: SamplingParams::default(),
        dry_breakers: DryBreakers::none(),
        seed: 0,
        logprobs: None,
        stop: StopRules::default(),
        constraint: None,
        reading: None,
        echo: false,
    }
}

fn session(generation: Generation) -> Session {
    Session::new(generation, byte_vocabulary(), TOKENS)
}

fn row(token: TokenId) -> Vec<f32> {
    let mut row = vec![0.0; TOKENS];
    row[token as usize] = 8.0;
    row
}

/// Feeds the bytes of `said` one row each; joins what comes out.
fn run(session: &mut Session, said: &[TokenId]) -> (String, Vec<TokenEntry>, Option<Outcome>) {
    let (mut text, mut tokens) = (String::new(), Vec::new());
    for &token in said {
        let progress = session.on_rows(&[row(token)], true);
        if let Some(delta) = progress.delta {
            text.push_str(&delta.text);
            tokens.extend(delta.tokens);
        }
        if let Then::End(outcome) = progress.then {
            return (text, tokens, Some(outcome));
        }
    }
    (text, tokens, None)
}

fn tokens_of(text: &str) -> Vec<TokenId> {
    encode_bytes(text, true)
}

#[test]
fn an_end_token_ends_the_answer_and_is_not_text() {
    let mut session = session(generation("p"));
    let (text, _, outcome) = run(&mut session, &tokens_of("hi<|end|>more"));
    assert_eq!(text, "hi");
    assert_eq!(outcome, Some(Outcome::Stop(StopCause::EndToken(END))));
    assert_eq!(session.usage().completion_tokens, 3);
}

#[test]
fn a_stop_string_across_tokens_is_cut_and_its_tokens_are_not_reported() {
    let mut request = generation("p");
    request.stop.strings = vec!["END".to_owned()];
    request.logprobs = Some(LogprobsRequest { top: 2 });
    let (text, tokens, outcome) = run(&mut session(request), &tokens_of("ok ENENDx"));
    assert_eq!(text, "ok EN");
    assert_eq!(outcome, Some(Outcome::Stop(StopCause::StopString("END".to_owned()))));
    let reported: Vec<u8> = tokens.iter().map(|entry| entry.token as u8).collect();
    assert_eq!(reported, b"ok EN");
    assert_eq!(tokens[3].text_offset, 3);
    assert_eq!(tokens[0].top.len(), 2);
}

#[test]
fn a_token_budget_ends_with_length_and_gives_out_what_was_held_back() {
    let mut request = generation("p");
    request.stop.strings = vec!["abc".to_owned()];
    request.max_tokens = 4;
    let (text, _, outcome) = run(&mut session(request), &tokens_of("xxab"));
    assert_eq!((text.as_str(), outcome), ("xxab", Some(Outcome::Length)));
}

#[test]
fn characters_come_whole_and_broken_bytes_are_replaced_only_at_a_real_end() {
    let smile = tokens_of("🙂");
    let mut whole = session(generation("p"));
    let mut deltas = Vec::new();
    for &token in &smile {
        deltas.push(whole.on_rows(&[row(token)], true).delta.map(|delta| delta.text));
    }
    assert_eq!(deltas, [None, None, None, Some("🙂".to_owned())]);

    let cut_by_the_model: Vec<TokenId> = [smile[0], smile[1], END].to_vec();
    assert_eq!(run(&mut session(generation("p")), &cut_by_the_model).0, "\u{FFFD}");

    let mut request = generation("p");
    request.max_tokens = 2;
    let (text, _, outcome) = run(&mut session(request), &smile);
    assert_eq!((text.as_str(), outcome), ("", Some(Outcome::Length)));
}

#[test]
fn nothing_ends_an_answer_before_min_tokens() {
    let mut request = generation("p");
    request.min_tokens = 2;
    request.stop.strings = vec!["a".to_owned()];
    let mut session = session(request);
    let mut wants_to_end = row(END);
    wants_to_end[usize::from(b'a')] = 7.0;
    for _ in 0..2 {
        assert_eq!(
            session.on_rows(&[wants_to_end.clone()], true).then,
            if session.usage().completion_tokens < 2 {
                Then::Feed(vec![u32::from(b'a')])
            } else {
                Then::End(Outcome::Stop(StopCause::StopString("a".to_owned())))
            }
        );
    }
}

#[test]
fn ignored_end_tokens_are_never_sampled() {
    let mut request = generation("p");
    request.stop.ignore_eos = true;
    let mut session = session(request);
    let mut wants_to_end = row(END);
    wants_to_end[usize::from(b'z')] = 7.0;
    assert_eq!(session.on_rows(&[wants_to_end], true).then, Then::Feed(vec![u32::from(b'z')]));
}

#[test]
fn padding_of_the_output_layer_is_never_sampled() {
    let mut session = Session::new(generation("p"), byte_vocabulary(), TOKENS + 10);
    let mut padded = row(u32::from(b'z'));
    padded.extend([90.0; 10]);
    assert_eq!(session.on_rows(&[padded], true).then, Then::Feed(vec![u32::from(b'z')]));
}

#[test]
fn a_row_that_is_not_finite_fails_the_session() {
    let mut broken = row(1);
    broken[7] = f32::NAN;
    let then = session(generation("p")).on_rows(&[broken], true).then;
    assert_eq!(then, Then::End(Outcome::Fault(Fault::NonFinite)));
    let then = session(generation("p")).on_rows(&[vec![0.0; 3]], true).then;
    assert!(matches!(then, Then::End(Outcome::Fault(Fault::Device(_)))));
}

#[test]
fn an_echo_without_tokens_needs_no_device() {
    let mut request = generation("Hi é");
    request.echo = true;
    request.max_tokens = 0;
    let progress = session(request).start();
    assert_eq!(progress.delta.map(|delta| delta.text).as_deref(), Some("Hi é"));
    assert_eq!(progress.then, Then::End(Outcome::Length));
}

#[test]
fn an_echo_with_log_probabilities_reports_the_prompt_however_it_was_chunked() {
    let mut request = generation("abé");
    request.echo = true;
    request.max_tokens = 1;
    request.logprobs = Some(LogprobsRequest { top: 1 });
    let rows: Vec<Vec<f32>> = [b'b', 0xC3, 0xA9, b'!'].map(|byte| row(byte.into())).to_vec();

    let mut reference: Option<(String, Vec<TokenEntry>)> = None;
    for cut in 1..=4 {
        let mut session = session(request.clone());
        assert!(session.wants_prompt_rows());
        assert!(session.start().delta.is_none());
        let (mut text, mut tokens) = (String::new(), Vec::new());
        for (index, part) in rows.chunks(cut).enumerate() {
            let done = (index + 1) * cut >= rows.len();
            let progress = session.on_rows(part, done);
            let delta = progress.delta.unwrap_or_default();
            text.push_str(&delta.text);
            tokens.extend(delta.tokens);
        }
        assert_eq!(text, "abé!");
        let offsets: Vec<u32> = tokens.iter().map(|entry| entry.text_offset).collect();
        assert_eq!(offsets, [0, 1, 2, 2, 3]);
        assert_eq!(tokens[0].logprob, None);
        assert!(tokens[1..].iter().all(|entry| entry.logprob.is_some_and(|lp| lp > -0.5)));
        let got = (text, tokens);
        assert_eq!(*reference.get_or_insert_with(|| got.clone()), got);
    }
}

#[test]
fn two_sessions_share_nothing() {
    let vocabulary: Arc<_> = byte_vocabulary();
    let mut request = generation("p");
    request.sampling.temperature = 1.0;
    request.seed = 7;
    let flat = vec![0.0; TOKENS];
    let draw = |session: &mut Session| match session.on_rows(&[&flat], true).then {
        Then::Feed(tokens) => tokens[0],
        Then::Wait | Then::End(_) => TokenId::MAX,
    };
    let mut alone = Session::new(request.clone(), Arc::clone(&vocabulary), TOKENS);
    let alone: Vec<TokenId> = (0..20).map(|_| draw(&mut alone)).collect();
    let mut first = Session::new(request.clone(), Arc::clone(&vocabulary), TOKENS);
    let mut other = Session::new(Generation { seed: 8, ..request }, vocabulary, TOKENS);
    let interleaved: Vec<TokenId> = (0..20)
        .map(|_| {
            draw(&mut other);
            draw(&mut first)
        })
        .collect();
    assert_eq!(alone, interleaved);
}

mod constrained {
    use super::*;
    use crate::grammar::{
        CompiledGrammar, Fuel, GrammarSource, GrammarVocabulary, Limits, Tokenize,
    };

    pub(super) fn held_to(source: GrammarSource, whole: bool, forced: bool) -> Constraint {
        let vocabulary = GrammarVocabulary::new(&byte_vocabulary());
        let limits = Limits::default();
        let mut fuel = Fuel::new(limits.compile_steps_max);
        let grammar = CompiledGrammar::compile(&source, &vocabulary, &limits, &mut fuel).unwrap();
        let tokenize = |text: &str| encode_bytes(text, false);
        let forced_by = forced.then(|| Arc::new(tokenize) as Arc<dyn Tokenize + Send + Sync>);
        Constraint { start: grammar.matcher(), forced_by, whole }
    }

    pub(super) fn regex(pattern: &str) -> GrammarSource {
        GrammarSource::Regex(pattern.to_owned())
    }

    /// Lets a model that loves `wish` above all write until it ends.
    fn write(request: Generation, wish: TokenId) -> (String, Outcome, u32, usize) {
        let mut session = session(request);
        let (mut text, mut rows) = (String::new(), 0);
        loop {
            session.prepare();
            rows += 1;
            let progress = session.on_rows(&[row(wish)], true);
            text.push_str(&progress.delta.unwrap_or_default().text);
            if let Then::End(outcome) = progress.then {
                return (text, outcome, session.usage().completion_tokens, rows);
            }
        }
    }

    #[test]
    fn the_answer_stays_inside_and_ends_when_nothing_more_is_allowed() {
        let constraint = Some(held_to(regex("(yes|no), sir"), true, false));
        let request = Generation { constraint, ..generation("p") };
        let (text, outcome, ..) = write(request, u32::from(b'n'));
        assert_eq!((text.as_str(), outcome), ("no, sir", Outcome::Stop(StopCause::Grammar)));
    }

    #[test]
    fn forced_text_takes_no_rows_and_changes_nothing() {
        let answer = |forced| {
            let constraint = Some(held_to(regex("(yes|no), my dear [a-z]{2}!"), true, forced));
            let mut request = Generation { constraint, ..generation("p") };
            request.sampling.temperature = 30.0;
            request.seed = 5;
            write(request, u32::from(b'n'))
        };
        let (plain, forced) = (answer(false), answer(true));
        assert_eq!((&plain.0, &plain.1, plain.2), (&forced.0, &forced.1, forced.2));
        assert_eq!(plain.3, plain.0.len());
        assert_eq!(forced.3, 3, "one choice, two letters");
    }

    #[test]
    fn a_whole_answer_is_complete_within_its_budget() {
        for max_tokens in 2..40 {
            let constraint = Some(held_to(GrammarSource::JsonObject, true, true));
            let mut request = Generation { constraint, max_tokens, ..generation("p") };
            request.sampling.temperature = 30.0;
            request.seed = u64::from(max_tokens);
            let (text, outcome, tokens, _) = write(request, u32::from(b'"'));
            assert!(tokens <= max_tokens);
            assert_eq!(outcome, Outcome::Stop(StopCause::Grammar), "{text}");
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert!(value.is_object());
        }
    }

    #[test]
    fn an_answer_that_may_be_cut_is_cut() {
        let constraint = Some(held_to(regex("a{10}"), false, false));
        let request = Generation { constraint, max_tokens: 4, ..generation("p") };
        let (text, outcome, ..) = write(request, u32::from(b'a'));
        assert_eq!((text.as_str(), outcome), ("aaaa", Outcome::Length));
    }

    #[test]
    fn an_open_grammar_ends_by_an_end_token_where_it_is_complete() {
        let constraint = Some(held_to(regex("a+"), true, false));
        let request = Generation { constraint, ..generation("p") };
        let (text, outcome, ..) = write(request, END);
        assert_eq!((text.as_str(), outcome), ("a", Outcome::Stop(StopCause::EndToken(END))));
    }

    #[test]
    fn min_tokens_gives_way_to_a_grammar_that_can_only_end() {
        let constraint = Some(held_to(regex("ab"), true, false));
        let request = Generation { constraint, min_tokens: 9, ..generation("p") };
        let (text, outcome, ..) = write(request, END);
        assert_eq!((text.as_str(), outcome), ("ab", Outcome::Stop(StopCause::Grammar)));
    }

    #[test]
    fn log_probabilities_turn_forced_runs_off() {
        let constraint = Some(held_to(regex("forced"), true, true));
        let logprobs = Some(LogprobsRequest { top: 0 });
        let request = Generation { constraint, logprobs, ..generation("p") };
        assert_eq!(write(request, u32::from(b'x')).3, "forced".len());
    }
}

mod drafts {
    use super::constrained::{held_to, regex};
    use super::*;
    use crate::grammar::GrammarSource;

    /// A row that depends on the last token alone, so that answers come to repeat themselves.
    fn row_after(history: &[TokenId]) -> Vec<f32> {
        let last = history.last().map_or(7, |token| token + 31);
        let score =
            |token: u32| (token.wrapping_mul(2_654_435_761) ^ last.wrapping_mul(40_503)) >> 12;
        (0..TOKENS as u32).map(|token| (score(token) % 1_000) as f32 / 40.0).collect()
    }

    /// What an answer came to.
    #[derive(Debug, PartialEq)]
    struct Said {
        text: String,
        tokens: Vec<TokenEntry>,
        outcome: Outcome,
        usage: Usage,
    }

    /// Lets that model answer, computing all drafts or only `some` of them; the steps it took.
    fn answer(request: &Generation, drafts: u32, some: usize) -> (Said, usize) {
        let mut session = session(request.clone()).with_drafts(drafts);
        let mut history = request.prompt.to_vec();
        let (mut text, mut tokens) = (String::new(), Vec::new());
        let (mut tried, mut steps) = (Vec::new(), 0);
        loop {
            steps += 1;
            let rows: Vec<Vec<f32>> = (0..=tried.len())
                .map(|count| row_after(&[&history[..], &tried[..count]].concat()))
                .collect();
            let progress = session.on_rows(&rows, true);
            let delta = progress.delta.unwrap_or_default();
            text.push_str(&delta.text);
            tokens.extend(delta.tokens);
            match progress.then {
                Then::Feed(fed) => history.extend(fed),
                Then::End(outcome) => {
                    let usage = session.usage();
                    return (Said { text, tokens, outcome, usage }, steps);
                }
                Then::Wait => panic!("there is no more of the prompt"),
            }
            tried = session.draft().to_vec();
            tried.truncate(some);
        }
    }

    #[test]
    fn an_answer_is_the_same_with_drafts_and_takes_fewer_steps() {
        let plain = Generation { max_tokens: 80, ..generation("over and over and over") };
        let mut warm = plain.clone();
        (warm.sampling.temperature, warm.seed) = (0.3, 4);
        let mut reported = warm.clone();
        reported.logprobs = Some(LogprobsRequest { top: 2 });
        let mut penalised = plain.clone();
        penalised.sampling.repetition_penalty = 1.2;
        let mut held = warm.clone();
        held.constraint = Some(held_to(regex("(ab|cd, |ef){3,60}!"), true, true));
        let mut object = warm.clone();
        object.constraint = Some(held_to(GrammarSource::JsonObject, true, true));
        let mut saved = 0;
        for (which, request) in [plain, warm, reported, penalised, held, object].iter().enumerate()
        {
            let (expected, plain_steps) = answer(request, 0, 0);
            for (drafts, some) in [(1, 1), (4, 4), (8, 8), (8, 2), (8, 0)] {
                let (said, steps) = answer(request, drafts, some);
                assert_eq!(said, expected, "request {which}, {drafts} drafts, {some} computed");
                assert!(steps <= plain_steps);
                saved += plain_steps - steps;
            }
        }
        assert!(saved > 100, "only {saved} steps were saved");
    }

    #[test]
    fn nothing_is_drafted_that_the_grammar_or_the_budget_would_not_take() {
        let mut request = generation("xyab xyab xy");
        request.constraint = Some(held_to(regex("xya?c"), true, false));
        let mut held = session(request.clone()).with_drafts(8);
        assert!(held.draft().is_empty(), "a and b follow the prompt, x has to");
        let drafted = held.on_rows(&[row(u32::from(b'x'))], true).then;
        assert_eq!(drafted, Then::Feed(tokens_of("x")));
        request.constraint = None;
        request.max_tokens = 3;
        let mut short = session(request).with_drafts(8);
        assert_eq!(short.draft(), tokens_of("ab"), "the third can be drawn without a draft of it");
    }
}
