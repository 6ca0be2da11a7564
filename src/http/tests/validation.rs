//! Field by bad value: status, `param`, and a message that helps.

use serde_json::{Value, json};

use super::{CHAT, COMPLETIONS, chat_body, completion_body};
use crate::http::testing::{VOCAB, hello, post, state};

async fn refused(path: &str, body: Value) -> (u16, Value) {
    let reply = post(&state(&hello()), path, body).await;
    (reply.status, reply.error())
}

/// Fields that chat and completions share.
fn bad_common() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("temperature", json!(-0.1), "temperature"),
        ("temperature", json!(101), "temperature"),
        ("temperature", json!("hot"), "temperature"),
        ("top_p", json!(0), "top_p"),
        ("top_p", json!(1.1), "top_p"),
        ("top_k", json!(-2), "top_k"),
        ("top_k", json!(1.5), "top_k"),
        ("min_p", json!(-0.01), "min_p"),
        ("min_p", json!(2), "min_p"),
        ("typical_p", json!(0), "typical_p"),
        ("top_n_sigma", json!(-2), "top_n_sigma"),
        ("xtc_probability", json!(1.1), "xtc_probability"),
        ("xtc_threshold", json!(-1), "xtc_threshold"),
        ("dry_multiplier", json!(-1), "dry_multiplier"),
        ("dry_base", json!(0.5), "dry_base"),
        ("dry_allowed_length", json!(-1), "dry_allowed_length"),
        ("dry_penalty_last_n", json!(-2), "dry_penalty_last_n"),
        ("dry_sequence_breakers", json!("\n"), "dry_sequence_breakers"),
        ("dry_sequence_breakers", json!(["\n", ""]), "dry_sequence_breakers[1]"),
        ("dynatemp_range", json!(-1), "dynatemp_range"),
        ("dynatemp_exponent", json!(-1), "dynatemp_exponent"),
        ("min_keep", json!(-1), "min_keep"),
        ("frequency_penalty", json!(2.1), "frequency_penalty"),
        ("presence_penalty", json!(-2.1), "presence_penalty"),
        ("repetition_penalty", json!(0), "repetition_penalty"),
        ("repeat_penalty", json!(-1), "repeat_penalty"),
        ("repeat_last_n", json!(-2), "repeat_last_n"),
        ("seed", json!(-2), "seed"),
        ("seed", json!(u64::MAX), "seed"),
        ("seed", json!("x"), "seed"),
        ("n", json!(0), "n"),
        ("n", json!(129), "n"),
        ("best_of", json!(2), "best_of"),
        ("max_tokens", json!(-1), "max_tokens"),
        ("max_tokens", json!(0), "max_tokens"),
        ("max_tokens", json!("5"), "max_tokens"),
        ("max_completion_tokens", json!(0), "max_completion_tokens"),
        ("min_tokens", json!(-1), "min_tokens"),
        ("stop", json!(""), "stop"),
        ("stop", json!(["a", ""]), "stop[1]"),
        ("stop", json!(["a", 1]), "stop[1]"),
        ("stop", json!(["a", "b", "c", "d", "e"]), "stop"),
        ("stop", json!("x".repeat(1025)), "stop"),
        ("stop", json!(5), "stop"),
        ("stop_token_ids", json!([VOCAB]), "stop_token_ids[0]"),
        ("stop_token_ids", json!(["a"]), "stop_token_ids[0]"),
        ("stop_token_ids", json!(vec![1; 129]), "stop_token_ids"),
        ("include_stop_str_in_output", json!(1), "include_stop_str_in_output"),
        ("ignore_eos", json!("yes"), "ignore_eos"),
        ("logit_bias", json!([1]), "logit_bias"),
        ("logit_bias", json!({"x": 1}), "logit_bias"),
        ("logit_bias", json!({"05": 1}), "logit_bias"),
        ("logit_bias", json!({"258": 1}), "logit_bias"),
        ("logit_bias", json!({"5": 101}), "logit_bias.5"),
        ("logit_bias", json!({"5": "1"}), "logit_bias.5"),
        ("stream", json!("true"), "stream"),
        ("stream_options", json!({"include_usage": true}), "stream_options"),
        ("model", json!(5), "model"),
        ("tool_choice", json!("required"), "tool_choice"),
        ("functions", json!([{}]), "functions"),
        ("function_call", json!("auto"), "function_call"),
        ("response_format", json!({"type": "json_schema"}), "response_format.json_schema"),
        ("response_format", json!("text"), "response_format"),
        ("response_format", json!({}), "response_format.type"),
        ("grammar", json!("root = \"a\""), "grammar"),
        ("guided_json", json!(5), "guided_json"),
        ("guided_regex", json!("("), "guided_regex"),
        ("structured_outputs", json!({"json": 5}), "structured_outputs.json"),
        ("json_schema", json!(5), "json_schema"),
        ("suffix", json!("x"), "suffix"),
        ("stop_regex", json!("x"), "stop_regex"),
        ("mirostat", json!(2), "mirostat"),
        ("logit_processors", json!(["f"]), "logit_processors"),
        ("logits_processors", json!(["f"]), "logits_processors"),
        ("bad_words", json!(["x"]), "bad_words"),
        ("prompt_logprobs", json!(0), "prompt_logprobs"),
        ("modalities", json!(["text", "audio"]), "modalities"),
        ("reasoning_format", json!("deepseek-legacy"), "reasoning_format"),
        ("skip_special_tokens", json!(false), "skip_special_tokens"),
    ]
}

#[actix_web::test]
async fn a_bad_value_is_a_400_that_names_its_field() {
    for (path, body) in [(CHAT, chat_body as fn(Value) -> Value), (COMPLETIONS, completion_body)] {
        for (field, value, param) in bad_common() {
            let (status, error) = refused(path, body(json!({field: value}))).await;
            assert_eq!(status, 400, "{path} {field} {value}: {error}");
            assert_eq!(error["param"], param, "{path} {field} {value}: {error}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(field), "{path} {field}: {message}");
        }
    }
}

#[actix_web::test]
async fn fields_that_contradict_each_other_are_refused() {
    let cases = [
        (json!({"repetition_penalty": 1.1, "repeat_penalty": 1.2}), "repeat_penalty"),
        (json!({"min_tokens": 5, "max_tokens": 4}), "min_tokens"),
        (json!({"top_logprobs": 2}), "top_logprobs"),
        (json!({"logprobs": false, "top_logprobs": 2}), "top_logprobs"),
        (json!({"logprobs": 3}), "logprobs"),
        (json!({"logprobs": true, "top_logprobs": 21}), "top_logprobs"),
        (json!({"echo": true}), "echo"),
        (json!({"continue_final_message": true}), "continue_final_message"),
        (
            json!({"messages": [{"role": "assistant", "content": "x"}],
                   "continue_final_message": true, "add_generation_prompt": true}),
            "add_generation_prompt",
        ),
        (json!({"reasoning_effort": "huge"}), "reasoning_effort"),
        (json!({"reasoning_effort": 3}), "reasoning_effort"),
        (json!({"think": 3}), "think"),
        (json!({"think": "low", "reasoning_effort": "high"}), "think"),
        (json!({"enable_thinking": "yes"}), "enable_thinking"),
        (json!({"enable_thinking": true, "reasoning_effort": "none"}), "reasoning_effort"),
        (json!({"chat_template_kwargs": {"thinking": false}, "think": true}), "think"),
        (
            json!({"chat_template_kwargs": {"enable_thinking": 1}}),
            "chat_template_kwargs.enable_thinking",
        ),
        (json!({"chat_template_kwargs": []}), "chat_template_kwargs"),
        (json!({"stream": true, "stream_options": 5}), "stream_options"),
        (
            json!({"stream": true, "stream_options": {"include_usage": 1}}),
            "stream_options.include_usage",
        ),
        (json!({"messages": [{"role": "user", "content": 5}]}), "messages[0].content"),
        (json!({"messages": null}), "messages"),
        (json!({"messages": [{"role": "user", "content": "refuse"}]}), "messages"),
        (json!({"messages": [{"role": "user", "content": "a\u{0}"}]}), "messages"),
    ];
    for (extra, param) in cases {
        let (status, error) = refused(CHAT, chat_body(extra.clone())).await;
        assert_eq!((status, &error["param"]), (400, &json!(param)), "{extra}: {error}");
    }
}

#[actix_web::test]
async fn completion_fields_have_their_own_rules() {
    let many: Vec<String> = (0..129).map(|i| i.to_string()).collect();
    let cases = [
        (json!({"prompt": null}), "prompt"),
        (json!({"prompt": []}), "prompt"),
        (json!({"prompt": 5}), "prompt"),
        (json!({"prompt": [true]}), "prompt[0]"),
        (json!({"prompt": ["a", 1]}), "prompt[1]"),
        (json!({"prompt": [1, "a"]}), "prompt[1]"),
        (json!({"prompt": [1, VOCAB]}), "prompt[1]"),
        (json!({"prompt": [1, -1]}), "prompt[1]"),
        (json!({"prompt": [[1], 2]}), "prompt[1]"),
        (json!({"prompt": [[1], [2, VOCAB]]}), "prompt[1][1]"),
        (json!({"prompt": many}), "prompt"),
        (json!({"prompt": ["a", "b"], "n": 65}), "prompt"),
        (json!({"prompt": "a\u{0}"}), "prompt"),
        (json!({"logprobs": true}), "logprobs"),
        (json!({"logprobs": 21}), "logprobs"),
        (json!({"max_tokens": 0}), "max_tokens"),
        (json!({"echo": 1}), "echo"),
    ];
    for (extra, param) in cases {
        let (status, error) = refused(COMPLETIONS, completion_body(extra.clone())).await;
        assert_eq!((status, &error["param"]), (400, &json!(param)), "{extra}: {error}");
    }
}

#[actix_web::test]
async fn values_that_say_off_are_taken() {
    let off = json!({
        "tools": [], "tool_choice": "auto", "functions": [], "response_format": {"type": "text"},
        "grammar": "", "guided_json": null, "structured_outputs": null, "suffix": "", "mirostat": 0,
        "best_of": 1, "use_beam_search": false, "logit_bias": {}, "stop": [], "top_k": -1,
        "modalities": ["text"], "reasoning_format": "none", "skip_special_tokens": true,
        "user": "u", "metadata": {"a": "b"}, "store": true, "parallel_tool_calls": true,
        "temperature": null, "max_tokens": 5.0, "frequency_penalty": -2, "n": null,
        "made_up_field": {"deep": [1]},
    });
    for (path, body) in [(CHAT, chat_body as fn(Value) -> Value), (COMPLETIONS, completion_body)] {
        let reply = post(&state(&hello()), path, body(off.clone())).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    }
}

#[actix_web::test]
async fn an_unknown_model_is_a_404() {
    for path in [CHAT, COMPLETIONS] {
        let (status, error) = refused(path, json!({"model": "other"})).await;
        assert_eq!((status, &error["code"]), (404, &json!("model_not_found")));
        assert_eq!(error["param"], "model");
    }
}
