//! `[limits]`: how much of everything there may be.

use serde::{Deserialize, Serialize};

use super::check::Problems;

/// How much of everything there may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Sessions that decode at once; each has `model.context_tokens` of KV memory. Default 8,
    /// 1 to 16384; at most 256 on the ggml device.
    pub max_sessions: u32,
    /// Requests that may wait beyond those; one more gets 429. Default 64, 0 to 1000000.
    pub max_queued: u32,
    /// Memory for what prompts have in common (system prompts, earlier turns of a chat), in bytes.
    /// Default 536870912, 0 to 1099511627776; 0: every prompt is computed whole.
    pub prefix_cache_bytes: u64,
    /// Bytes of a request's body; more gets 413. Default 4194304, 1024 to 268435456.
    pub max_body_bytes: u64,
    /// How long a client may take to send a body; then 408. Default 30, 1 to 3600.
    pub body_timeout_seconds: u64,
    /// How long a request may take from its arrival to its last byte. Default 600, 1 to 86400.
    pub request_deadline_seconds: u64,
    /// How much of that it may wait for its first step. Default 120, 1 to 86400.
    pub queue_deadline_seconds: u64,
    /// How long a client may stop reading its stream. Default 30, 1 to 3600.
    pub stall_timeout_seconds: u64,
    /// Choices of one request: `n` times its prompts. Default 8, 1 to 128.
    pub max_choices: u32,
    /// Tokens of one answer, whatever a request asks for. Default 0: what the context leaves;
    /// 0 to 16777216.
    pub max_answer_tokens: u32,
    /// Frames between a session and its connection; a full channel pauses the session. Default 64,
    /// 2 to 65536.
    pub frame_capacity: u32,
    /// A silent stream sends a comment line this often. Default 15, 1 to 3600; keep it below the
    /// proxy's read timeout.
    pub ping_seconds: u64,
    /// How long a stream's head waits for the first frame, so that an early failure gets its own
    /// status code. Default 1000, 0 to 10000.
    pub stream_head_delay_ms: u64,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            max_sessions: 8,
            max_queued: 64,
            prefix_cache_bytes: 512 * 1024 * 1024,
            max_body_bytes: 4 * 1024 * 1024,
            body_timeout_seconds: 30,
            request_deadline_seconds: 600,
            queue_deadline_seconds: 120,
            stall_timeout_seconds: 30,
            max_choices: 8,
            max_answer_tokens: 0,
            frame_capacity: 64,
            ping_seconds: 15,
            stream_head_delay_ms: 1000,
        }
    }
}

impl LimitsConfig {
    pub(super) fn check(&self, problems: &mut Problems) {
        const DAY: u64 = 86_400;
        problems.range("limits.max_sessions", self.max_sessions, 1..=16_384);
        problems.range("limits.max_queued", self.max_queued, 0..=1_000_000);
        problems.range("limits.prefix_cache_bytes", self.prefix_cache_bytes, 0..=1 << 40);
        problems.range("limits.max_body_bytes", self.max_body_bytes, 1024..=268_435_456);
        problems.range("limits.body_timeout_seconds", self.body_timeout_seconds, 1..=3600);
        let deadline = self.request_deadline_seconds;
        problems.range("limits.request_deadline_seconds", deadline, 1..=DAY);
        problems.range("limits.queue_deadline_seconds", self.queue_deadline_seconds, 1..=DAY);
        problems.range("limits.stall_timeout_seconds", self.stall_timeout_seconds, 1..=3600);
        problems.range("limits.max_choices", self.max_choices, 1..=128);
        problems.range("limits.max_answer_tokens", self.max_answer_tokens, 0..=16_777_216);
        problems.range("limits.frame_capacity", self.frame_capacity, 2..=65_536);
        problems.range("limits.ping_seconds", self.ping_seconds, 1..=3600);
        problems.range("limits.stream_head_delay_ms", self.stream_head_delay_ms, 0..=10_000);
    }
}
