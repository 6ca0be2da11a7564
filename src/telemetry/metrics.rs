//! Every metric name, once, with its buckets.

use std::time::Duration;

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram, gauge};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use super::live;

macro_rules! names {
    ($($kind:ident $constant:ident = $name:literal, $unit:ident, $help:literal;)*) => {
        $(#[doc = $help] pub const $constant: &str = concat!("pleach_", $name);)*

        /// Every metric of Pleach: kind, name, help.
        pub const ALL: &[(&str, &str, &str)] = &[$((stringify!($kind), $constant, $help)),*];

        fn describe_all() {
            $(names!(@describe $kind $constant $unit $help);)*
        }
    };
    (@describe counter $constant:ident $unit:ident $help:literal) => {
        describe_counter!($constant, Unit::$unit, $help);
    };
    (@describe gauge $constant:ident $unit:ident $help:literal) => {
        describe_gauge!($constant, Unit::$unit, $help);
    };
    (@describe histogram $constant:ident $unit:ident $help:literal) => {
        describe_histogram!($constant, Unit::$unit, $help);
    };
}

names! {
    gauge NUM_REQUESTS_RUNNING = "num_requests_running", Count, "Sessions that hold a device slot.";
    gauge NUM_REQUESTS_WAITING = "num_requests_waiting", Count, "Sessions that wait for a device slot.";
    gauge NUM_REQUESTS_CAPACITY = "num_requests_capacity", Count, "Device slots.";
    counter ADMISSION_REJECTIONS_TOTAL = "admission_rejections_total", Count, "Requests refused before any work, by reason.";
    counter REQUEST_SUCCESS_TOTAL = "request_success_total", Count, "Choices that ended with an answer, by finish reason.";
    counter SESSIONS_FINISHED_TOTAL = "sessions_finished_total", Count, "Every end of a session, by outcome.";
    gauge LIVE_SESSIONS = "live_sessions", Count, "Sessions from submission to drop.";
    gauge LIVE_GRAMMARS = "live_grammars", Count, "Grammar matchers.";
    gauge LIVE_SLOTS = "live_slots", Count, "Device slots given out.";
    gauge LIVE_PERMITS = "live_permits", Count, "Admission permits given out.";
    histogram TIME_TO_FIRST_TOKEN_SECONDS = "time_to_first_token_seconds", Seconds, "From submission to the first generated token.";
    histogram INTER_TOKEN_LATENCY_SECONDS = "inter_token_latency_seconds", Seconds, "Between two generated tokens of a session.";
    histogram E2E_REQUEST_LATENCY_SECONDS = "e2e_request_latency_seconds", Seconds, "From submission to the end of a session.";
    histogram REQUEST_QUEUE_TIME_SECONDS = "request_queue_time_seconds", Seconds, "From submission to the first step.";
    histogram REQUEST_PREFILL_TIME_SECONDS = "request_prefill_time_seconds", Seconds, "From the first step to the first token.";
    histogram REQUEST_DECODE_TIME_SECONDS = "request_decode_time_seconds", Seconds, "From the first token to the end.";
    counter PROMPT_TOKENS_TOTAL = "prompt_tokens_total", Count, "Prompt tokens of finished sessions.";
    counter GENERATION_TOKENS_TOTAL = "generation_tokens_total", Count, "Generated tokens.";
    gauge KV_CACHE_USAGE_RATIO = "kv_cache_usage_ratio", Count, "Tokens held on the device over its room, 0 to 1.";
    counter PREFIX_CACHE_QUERIES_TOTAL = "prefix_cache_queries_total", Count, "Prompt tokens that were looked up among those computed before.";
    counter PREFIX_CACHE_HITS_TOTAL = "prefix_cache_hits_total", Count, "Prompt tokens that were not computed again.";
    counter PREFIX_CACHE_EVICTIONS_TOTAL = "prefix_cache_evictions_total", Count, "Saved sequences dropped to make room for others.";
    counter PREFIX_CACHE_FAILURES_TOTAL = "prefix_cache_failures_total", Count, "Sequences that could not be brought back and were computed again.";
    gauge PREFIX_CACHE_BYTES = "prefix_cache_bytes", Bytes, "Memory of the saved sequences.";
    counter SPEC_DECODE_NUM_DRAFT_TOKENS_TOTAL = "spec_decode_num_draft_tokens_total", Count, "Guessed tokens that were computed.";
    counter SPEC_DECODE_NUM_ACCEPTED_TOKENS_TOTAL = "spec_decode_num_accepted_tokens_total", Count, "Guessed tokens that were right.";
    counter NUM_PREEMPTIONS_TOTAL = "num_preemptions_total", Count, "Times that a session gave up its slot to another, to go on later.";
    histogram DEVICE_STEP_SECONDS = "device_step_seconds", Seconds, "Device time of a step, by phase.";
    histogram DEVICE_BATCH_SIZE = "device_batch_size", Count, "Sequences in a step.";
    counter DEVICE_FAULTS_TOTAL = "device_faults_total", Count, "Faults of the device, by kind.";
    gauge DEVICE_LAST_STEP_AGE_SECONDS = "device_last_step_age_seconds", Seconds, "Time since the last step ended, 0 while idle.";
    histogram GRAMMAR_COMPILE_SECONDS = "grammar_compile_seconds", Seconds, "Compiling a grammar that was not cached.";
    histogram GRAMMAR_MASK_SECONDS = "grammar_mask_seconds", Seconds, "Computing the mask of a session's next token.";
    counter GRAMMAR_CACHE_HITS_TOTAL = "grammar_cache_hits_total", Count, "Requests whose grammar was compiled already.";
    counter GRAMMAR_COMPILE_REJECTIONS_TOTAL = "grammar_compile_rejections_total", Count, "Grammars refused, by reason.";
    counter GRAMMAR_FORCED_TOKENS_TOTAL = "grammar_forced_tokens_total", Count, "Tokens that were not drawn because the grammar left no choice.";
    counter SSE_STALLS_TOTAL = "sse_stalls_total", Count, "Times a session waited for a client that did not read.";
    counter PANICS_TOTAL = "panics_total", Count, "Caught panics, by place.";
    counter HTTP_REQUESTS_TOTAL = "http_requests_total", Count, "HTTP requests by method, route and status.";
    histogram HTTP_REQUEST_DURATION_SECONDS = "http_request_duration_seconds", Seconds, "From the head of a request to the head of its answer.";
    gauge BUILD_INFO = "build_info", Count, "Always 1; the version is its label.";
}

const LATENCY: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
];
const INTER_TOKEN: &[f64] = &[
    0.002, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0,
    7.5, 10.0, 20.0, 40.0, 80.0,
];
const WHOLE_REQUEST: &[f64] = &[
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 7680.0,
];
const MASK: &[f64] = &[
    0.000_001, 0.000_003, 0.000_01, 0.000_03, 0.000_1, 0.000_3, 0.001, 0.003, 0.01, 0.03, 0.1, 1.0,
];
const BATCH: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0];

/// Installs the recorder for the whole process and names every metric.
///
/// # Errors
/// When a recorder is installed already.
pub fn install() -> Result<PrometheusHandle, BuildError> {
    let buckets: [(&str, &[f64]); 11] = [
        (TIME_TO_FIRST_TOKEN_SECONDS, LATENCY),
        (INTER_TOKEN_LATENCY_SECONDS, INTER_TOKEN),
        (E2E_REQUEST_LATENCY_SECONDS, WHOLE_REQUEST),
        (REQUEST_QUEUE_TIME_SECONDS, WHOLE_REQUEST),
        (REQUEST_PREFILL_TIME_SECONDS, WHOLE_REQUEST),
        (REQUEST_DECODE_TIME_SECONDS, WHOLE_REQUEST),
        (DEVICE_STEP_SECONDS, LATENCY),
        (DEVICE_BATCH_SIZE, BATCH),
        (GRAMMAR_COMPILE_SECONDS, LATENCY),
        (GRAMMAR_MASK_SECONDS, MASK),
        (HTTP_REQUEST_DURATION_SECONDS, LATENCY),
    ];
    let mut builder = PrometheusBuilder::new();
    for (name, edges) in buckets {
        builder = builder.set_buckets_for_metric(Matcher::Full(name.to_owned()), edges)?;
    }
    let handle = builder.install_recorder()?;
    describe_all();
    gauge!(BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    publish_live();
    Ok(handle)
}

/// How often [`upkeep`] has to be called.
pub const UPKEEP_PERIOD: Duration = Duration::from_secs(5);

/// Drains the histograms, which otherwise grow while nobody scrapes.
pub fn upkeep(handle: &PrometheusHandle) {
    publish_live();
    handle.run_upkeep();
}

/// Copies the live counters into their gauges; also called just before a scrape is answered.
pub fn publish_live() {
    for (name, value) in live::snapshot() {
        gauge!(name).set(value as f64);
    }
}
