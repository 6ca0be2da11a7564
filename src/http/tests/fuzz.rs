//! Bodies nobody would send.

use actix_web::test::TestRequest;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{CHAT, COMPLETIONS};
use crate::http::testing::{call, hello, post, state};

const FIELDS: [&str; 39] = [
    "messages",
    "prompt",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "n",
    "best_of",
    "max_tokens",
    "max_completion_tokens",
    "min_tokens",
    "stop",
    "stop_token_ids",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "echo",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "response_format",
    "grammar",
    "guided_regex",
    "guided_choice",
    "structured_outputs",
    "allow_truncation",
    "chat_template_kwargs",
    "reasoning_effort",
    "think",
    "enable_thinking",
    "continue_final_message",
    "repetition_penalty",
    "dry_sequence_breakers",
    "modalities",
    "min_keep",
    "repeat_last_n",
    "made_up",
];

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-3i64..130).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-2.0f64..3.0).prop_map(Value::from),
        "[a-z0-9 ]{0,6}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop_oneof![Just("user"), Just("assistant"), Just("text"), Just("none"), Just("auto")]
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        let key = prop_oneof![
            "[a-z0-9]{0,4}",
            Just("role".to_owned()),
            Just("content".to_owned()),
            Just("type".to_owned()),
            Just("text".to_owned()),
            Just("include_usage".to_owned()),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..5)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn any_body() -> impl Strategy<Value = Value> {
    let field = prop::sample::select(FIELDS.to_vec());
    let fields = prop::collection::vec((field, any_json()), 0..6);
    (fields, any::<bool>()).prop_map(|(fields, good_start)| {
        let mut body = Map::new();
        if good_start {
            body.insert("messages".into(), json!([{"role": "user", "content": "x"}]));
            body.insert("prompt".into(), json!("x"));
        }
        body.extend(fields.into_iter().map(|(name, value)| (name.to_owned(), value)));
        Value::Object(body)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_object_is_answered_or_refused(body in any_body()) {
        actix_web::rt::System::new().block_on(async {
            let state = state(&hello());
            for path in [CHAT, COMPLETIONS, "/apply-template", "/tokenize", "/detokenize"] {
                let reply = post(&state, path, body.clone()).await;
                match reply.status {
                    200 => {}
                    400 => assert!(reply.error()["message"].as_str().is_some_and(|m| !m.is_empty())),
                    other => panic!("{path}: {other} {}", reply.text()),
                }
            }
            assert_eq!(state.admission().in_use(), 0);
        });
    }

    #[test]
    fn any_bytes_are_answered_or_refused(body in prop::collection::vec(any::<u8>(), 0..64)) {
        actix_web::rt::System::new().block_on(async {
            let state = state(&hello());
            let request = TestRequest::post().uri(CHAT).set_payload(body);
            let reply = call(&state, request).await;
            assert_eq!(reply.status, 400);
            reply.error();
        });
    }
}
