//! Handles of the metrics that are touched at every token, looked up once.

use metrics::{Counter, Histogram, counter, histogram};

use crate::telemetry::metrics as names;

/// See the module's documentation. Cloning is cheap.
#[derive(Clone)]
pub(super) struct Meters {
    pub(super) generation_tokens: Counter,
    pub(super) prompt_tokens: Counter,
    pub(super) stalls: Counter,
    pub(super) time_to_first_token: Histogram,
    pub(super) inter_token: Histogram,
    pub(super) end_to_end: Histogram,
    pub(super) queue_time: Histogram,
    pub(super) prefill_time: Histogram,
    pub(super) decode_time: Histogram,
    pub(super) step_prefill: Histogram,
    pub(super) step_decode: Histogram,
    pub(super) batch_size: Histogram,
    pub(super) grammar_mask: Histogram,
    pub(super) forced: Counter,
}

impl Meters {
    /// The handles of the installed recorder.
    pub(super) fn new() -> Self {
        Self {
            generation_tokens: counter!(names::GENERATION_TOKENS_TOTAL),
            prompt_tokens: counter!(names::PROMPT_TOKENS_TOTAL),
            stalls: counter!(names::SSE_STALLS_TOTAL),
            time_to_first_token: histogram!(names::TIME_TO_FIRST_TOKEN_SECONDS),
            inter_token: histogram!(names::INTER_TOKEN_LATENCY_SECONDS),
            end_to_end: histogram!(names::E2E_REQUEST_LATENCY_SECONDS),
            queue_time: histogram!(names::REQUEST_QUEUE_TIME_SECONDS),
            prefill_time: histogram!(names::REQUEST_PREFILL_TIME_SECONDS),
            decode_time: histogram!(names::REQUEST_DECODE_TIME_SECONDS),
            step_prefill: histogram!(names::DEVICE_STEP_SECONDS, "phase" => "prefill"),
            step_decode: histogram!(names::DEVICE_STEP_SECONDS, "phase" => "decode"),
            batch_size: histogram!(names::DEVICE_BATCH_SIZE),
            grammar_mask: histogram!(names::GRAMMAR_MASK_SECONDS),
            forced: counter!(names::GRAMMAR_FORCED_TOKENS_TOTAL),
        }
    }
}
