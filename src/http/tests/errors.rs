//! Everything that goes wrong, in OpenAI's shape.

use actix_web::test::TestRequest;
use serde_json::json;

use super::{CHAT, COMPLETIONS, chat_body, completion_body};
use crate::http::auth::{ApiKey, Auth};
use crate::http::engine::Health;
use crate::http::testing::{
    Act, ScriptedEngine, call, get, hello, post, say, state, state_of, stop,
};
use crate::http::{HttpSettings, HttpState};
use crate::session::{Fault, Outcome};

#[actix_web::test]
async fn unknown_paths_and_methods() {
    let state = state(&hello());
    for path in ["/", "/v1", "/v1/chat", "/v1/chat/completions/x", "/x"] {
        let reply = get(&state, path).await;
        assert_eq!((reply.status, &reply.error()["code"]), (404, &json!("unknown_url")), "{path}");
        assert!(reply.header("x-request-id").starts_with("req_"));
    }
    for (path, allow) in [(CHAT, "POST"), (COMPLETIONS, "POST"), ("/tokenize", "POST")] {
        let reply = get(&state, path).await;
        assert_eq!((reply.status, reply.header("allow")), (405, allow), "{path}");
        assert_eq!(reply.error()["code"], "method_not_allowed");
    }
    let reply = post(&state, "/v1/models", json!({})).await;
    assert_eq!((reply.status, reply.header("allow")), (405, "GET, HEAD"));
}

#[actix_web::test]
async fn bodies_that_are_no_json_object() {
    let state = state(&hello());
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    let cases: [(&[u8], &str); 9] = [
        (b"", "line 1 column 0"),
        (b"{\"messages\": [}", "line 1 column 15"),
        (b"{\n\n  \"a\": nope}", "line 3"),
        (b"{\"a\": \"\xff\"}", "line 1"),
        (b"{\"a\": \"\\udc00\"}", "surrogate"),
        (b"{\"a\": \"\\ud800\"}", "hex escape at line 1 column 14"),
        (b"{\"a\": 1, \"a\": 2}", "duplicate key `a`"),
        (deep.as_bytes(), "recursion limit"),
        (b"[]", "must be a JSON object"),
    ];
    for (body, expected) in cases {
        for path in [CHAT, COMPLETIONS, "/tokenize", "/detokenize", "/apply-template"] {
            let request = TestRequest::post()
                .uri(path)
                .insert_header(("content-type", "application/json; charset=utf-8"))
                .set_payload(body.to_vec());
            let reply = call(&state, request).await;
            let error = reply.error();
            assert_eq!((reply.status, &error["code"]), (400, &json!("invalid_json")));
            assert!(error["message"].as_str().unwrap().contains(expected), "{error}");
        }
    }
}

#[actix_web::test]
async fn bodies_of_a_wrong_type_or_size() {
    let settings = HttpSettings { body_bytes_max: 1000, ..HttpSettings::default() };
    let state = state_of(&hello(), settings);
    for kind in ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data"] {
        let request =
            TestRequest::post().uri(CHAT).insert_header(("content-type", kind)).set_payload("{}");
        let reply = call(&state, request).await;
        assert_eq!((reply.status, &reply.error()["code"]), (415, &json!("unsupported_media_type")));
    }
    let request = TestRequest::post().uri(CHAT).insert_header(("content-encoding", "gzip"));
    assert_eq!(call(&state, request.set_json(json!({}))).await.status, 415);
    let body = completion_body(json!({"user": "x".repeat(1000)}));
    let reply = post(&state, COMPLETIONS, body).await;
    assert_eq!((reply.status, &reply.error()["code"]), (413, &json!("request_too_large")));
    // Told by its length alone, before a byte of it arrived.
    let request = TestRequest::post()
        .uri(COMPLETIONS)
        .insert_header(("content-type", "application/json"))
        .insert_header(("content-length", "1001"));
    assert_eq!(call(&state, request).await.status, 413);
}

#[actix_web::test]
async fn keys_guard_everything_but_the_health_checks() {
    let settings = HttpSettings {
        auth: Auth::Keys(vec![ApiKey::from_secret("ann", "sk-1")]),
        metrics_public: false,
        ..HttpSettings::default()
    };
    let guarded = state_of(&hello(), settings.clone());
    for path in ["/livez", "/readyz", "/health"] {
        assert_eq!(get(&guarded, path).await.status, 200, "{path}");
    }
    for path in ["/v1/models", "/v1/models/tiny", "/metrics", "/nowhere", "/livez/"] {
        let reply = get(&guarded, path).await;
        assert_eq!((reply.status, reply.header("www-authenticate")), (401, "Bearer"), "{path}");
        assert_eq!(reply.error()["code"], "invalid_api_key");
    }
    assert_eq!(post(&guarded, CHAT, chat_body(json!({}))).await.status, 401);
    let open = state_of(&hello(), HttpSettings { metrics_public: true, ..settings });
    assert_eq!(get(&open, "/metrics").await.text(), "page 1\n");
    open.set_auth(Auth::Off);
    assert_eq!(get(&open, "/v1/models").await.status, 200);
}

#[actix_web::test]
async fn a_full_daemon_says_when_to_come_back() {
    let mut settings = HttpSettings::default();
    settings.limits.max_requests = 2;
    let engine = hello();
    let state = state_of(&engine, settings);
    let held = state.admission().try_admit(1).unwrap();
    assert_eq!(post(&state, CHAT, chat_body(json!({}))).await.status, 200);
    let two = post(&state, CHAT, chat_body(json!({"n": 2}))).await;
    assert_eq!((two.status, &two.error()["code"]), (429, &json!("queue_full")));
    let more = state.admission().try_admit(1).unwrap();
    let full = post(&state, CHAT, json!("not even looked at")).await;
    assert_eq!((full.status, full.header("retry-after")), (429, "3"));
    assert_eq!(full.error()["type"], "rate_limit_error");
    drop((held, more));
    assert_eq!(post(&state, CHAT, chat_body(json!({"n": 2}))).await.status, 200);
    assert_eq!(state.admission().in_use(), 0);
}

#[actix_web::test]
async fn every_refused_request_gives_its_permit_back() {
    let state = state(&hello());
    for body in [json!([]), json!({}), chat_body(json!({"n": 0})), chat_body(json!({"model": "x"}))]
    {
        assert!(post(&state, CHAT, body).await.status >= 400);
        assert_eq!(state.admission().in_use(), 0);
    }
}

#[actix_web::test]
async fn a_daemon_that_is_not_ready_says_why() {
    let engine = hello();
    let state = state(&engine);
    for (health, code) in [
        (Health::Loading, "loading"),
        (Health::Draining, "draining"),
        (Health::Unhealthy("the device hangs".into()), "unhealthy"),
    ] {
        engine.set_health(health);
        for path in ["/readyz", "/health"] {
            let reply = get(&state, path).await;
            assert_eq!((reply.status, &reply.json()["status"]), (503, &json!(code)));
            assert_eq!(reply.error()["code"], code);
        }
        assert_eq!(get(&state, "/livez").await.status, 200);
        let reply = post(&state, CHAT, chat_body(json!({}))).await;
        assert_eq!((reply.status, &reply.error()["code"]), (503, &json!(code)));
        assert_eq!(reply.header("retry-after"), "5");
    }
    let reason = get(&state, "/readyz").await.json()["reason"].clone();
    assert!(reason.as_str().unwrap().contains("the device hangs"));
    engine.set_health(Health::Ready);
    assert_eq!(get(&state, "/readyz").await.json()["status"], "ready");
}

#[actix_web::test]
async fn before_the_model_is_there_everything_is_loading() {
    let render = std::sync::Arc::new(String::new);
    let state = HttpState::new(HttpSettings::default(), hello(), render);
    let state = actix_web::web::Data::new(state);
    for path in ["/v1/models", "/v1/models/tiny", "/readyz"] {
        let reply = get(&state, path).await;
        assert_eq!((reply.status, &reply.error()["code"]), (503, &json!("loading")), "{path}");
    }
    for path in [CHAT, COMPLETIONS, "/tokenize", "/detokenize", "/apply-template"] {
        assert_eq!(post(&state, path, json!({})).await.status, 503, "{path}");
    }
}

#[actix_web::test]
async fn a_panic_in_a_handler_is_a_500() {
    let state = state(&hello());
    let body = chat_body(json!({"messages": [{"role": "user", "content": "panic"}]}));
    for path in [CHAT, "/apply-template"] {
        let reply = post(&state, path, body.clone()).await;
        assert_eq!((reply.status, &reply.error()["code"]), (500, &json!("internal_error")));
        assert!(reply.header("x-request-id").starts_with("req_"));
    }
    assert_eq!(state.admission().in_use(), 0);
    assert_eq!(post(&state, CHAT, chat_body(json!({}))).await.status, 200);
}

fn endings() -> Vec<(Outcome, u16, &'static str)> {
    vec![
        (Outcome::Deadline, 504, "deadline_exceeded"),
        (Outcome::Drained, 503, "draining"),
        (Outcome::GrammarDeadEnd, 500, "grammar_dead_end"),
        (Outcome::Fault(Fault::Device("boom".into())), 500, "device_fault"),
        (Outcome::Fault(Fault::DeviceHang), 504, "device_hang"),
        (Outcome::Fault(Fault::NonFinite), 500, "non_finite"),
        (Outcome::Fault(Fault::Panic), 500, "internal_error"),
        (Outcome::SlowClient, 408, "slow_client"),
        (Outcome::TornDown, 500, "internal_error"),
    ]
}

#[actix_web::test]
async fn a_choice_that_fails_fails_the_whole_answer() {
    for (outcome, status, code) in endings() {
        let engine = ScriptedEngine::new(move |generation| {
            let end = if generation.choice == 1 { Act::End(outcome.clone()) } else { stop() };
            vec![say("x"), end]
        });
        let reply = post(&state(&engine), CHAT, chat_body(json!({"n": 2}))).await;
        assert_eq!((reply.status, &reply.error()["code"]), (status, &json!(code)));
    }
}

#[actix_web::test]
async fn a_stream_that_fails_at_once_has_its_status() {
    for (outcome, status, code) in endings() {
        let engine = ScriptedEngine::new(move |_| vec![Act::End(outcome.clone())]);
        let reply = post(&state(&engine), CHAT, chat_body(json!({"stream": true}))).await;
        assert_eq!((reply.status, &reply.error()["code"]), (status, &json!(code)));
    }
}

#[actix_web::test]
async fn sessions_that_vanish_are_a_500() {
    for stream in [false, true] {
        let engine = ScriptedEngine::new(|_| vec![Act::Vanish]);
        let reply = post(&state(&engine), CHAT, chat_body(json!({"stream": stream}))).await;
        assert_eq!((reply.status, &reply.error()["code"]), (500, &json!("internal_error")));
    }
    let engine = ScriptedEngine::new(|_| vec![say("half"), Act::Vanish]);
    assert_eq!(post(&state(&engine), CHAT, chat_body(json!({}))).await.status, 500);
}

#[actix_web::test]
async fn browsers_get_permission_only_where_configured() {
    let preflight = || {
        TestRequest::default()
            .method(actix_web::http::Method::OPTIONS)
            .uri(CHAT)
            .insert_header(("origin", "https://a.example"))
            .insert_header(("access-control-request-method", "POST"))
            .insert_header(("access-control-request-headers", "authorization,content-type"))
    };
    let allowed = "access-control-allow-origin";
    assert_eq!(call(&state(&hello()), preflight()).await.status, 405);
    let settings = HttpSettings {
        cors_origins: vec!["https://a.example".into()],
        auth: Auth::Keys(Vec::new()),
        ..HttpSettings::default()
    };
    let reply = call(&state_of(&hello(), settings.clone()), preflight()).await;
    assert_eq!((reply.status, reply.header(allowed)), (200, "https://a.example"));
    let request =
        TestRequest::get().uri("/v1/models").insert_header(("origin", "https://a.example"));
    let reply = call(&state_of(&hello(), settings.clone()), request).await;
    assert_eq!((reply.status, reply.header(allowed)), (401, "https://a.example"));
    let request = TestRequest::get().uri("/livez").insert_header(("origin", "https://b.example"));
    let reply = call(&state_of(&hello(), settings), request).await;
    assert_eq!((reply.status, reply.header(allowed)), (200, ""));
}
