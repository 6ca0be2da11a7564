//! What a scraper sees.

use actix_web::web::Data;
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::json;

use super::{CHAT, chat_body};
use crate::http::HttpState;
use crate::http::engine::Health;
use crate::http::testing::{self, get, hello, post};

/// The metrics page after `work`.
fn page_after(work: impl AsyncFnOnce(Data<HttpState>)) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    metrics::with_local_recorder(&recorder, || {
        actix_web::rt::System::new().block_on(work(testing::state(&hello())));
    });
    handle.render()
}

#[test]
fn requests_count_by_pattern_never_by_path() {
    let page = page_after(async |state| {
        get(&state, "/v1/models/tiny").await;
        get(&state, "/v1/models/org/other").await;
        get(&state, "/no/such/path").await;
        get(&state, CHAT).await;
        post(&state, CHAT, chat_body(json!({}))).await;
        let panic = json!({"messages": [{"role": "user", "content": "panic"}]});
        post(&state, CHAT, panic).await;
    });
    let model = "pleach_http_requests_total{method=\"GET\",route=\"/v1/models/{id:.*}\"";
    let chat = "pleach_http_requests_total{method=\"POST\",route=\"/v1/chat/completions\"";
    for line in [
        &format!("{model},status=\"200\"}} 1"),
        &format!("{model},status=\"404\"}} 1"),
        "pleach_http_requests_total{method=\"GET\",route=\"unmatched\",status=\"404\"} 1",
        "pleach_http_requests_total{method=\"GET\",route=\"/v1/chat/completions\",status=\"405\"} 1",
        &format!("{chat},status=\"200\"}} 1"),
        &format!("{chat},status=\"500\"}} 1"),
        "pleach_panics_total{where=\"http\"} 1",
        "pleach_live_permits 0",
    ] {
        assert!(page.lines().any(|got| got == line), "{line}\n{page}");
    }
    assert!(page.contains("pleach_http_request_duration_seconds"));
    assert!(!page.contains("no/such/path"));
}

#[test]
fn refusals_count_by_reason() {
    let page = page_after(async |state| {
        let all = state.admission().try_admit(256).unwrap();
        post(&state, CHAT, chat_body(json!({}))).await;
        drop(all);
        let engine = hello();
        let loading = testing::state(&engine);
        engine.set_health(Health::Loading);
        post(&loading, CHAT, chat_body(json!({}))).await;
    });
    for reason in ["queue_full", "loading"] {
        let line = format!("pleach_admission_rejections_total{{reason=\"{reason}\"}} 1");
        assert!(page.lines().any(|got| got == line), "{line}\n{page}");
    }
}
