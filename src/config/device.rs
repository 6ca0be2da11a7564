//! `[device]`: what the model runs on.

use serde::{Deserialize, Serialize};

use super::check::Problems;

/// The ggml library's own bound on sequences in one context.
pub(super) const GGML_MAX_SEQUENCES: u32 = 256;

/// Which device runs the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// llama.cpp's library: a GGUF model on the CPU, or on what the library was built for.
    #[default]
    Ggml,
    /// No model: a cost model with seeded or scripted answers, for load and fault tests.
    Simulated,
}

/// How far the device must prove that logits do not depend on what shares a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RepeatableMode {
    /// Take the repeatable profile where it costs at most a tenth more time and a test proves it;
    /// both are found out at load.
    #[default]
    Auto,
    /// Take the repeatable profile, and refuse to start where the test at load fails.
    On,
    /// Take the fastest profile; nothing is promised.
    Off,
}

/// Whether attention is computed fused ("flash attention").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlashAttentionMode {
    /// Off where rows are repeatable; else what is found faster at load.
    #[default]
    Auto,
    /// Wherever the library can. Rows are then not repeatable on CPUs.
    On,
    /// Never.
    Off,
}

/// What the simulated device does at step [`SimulatedConfig::fault_at_step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Panics inside the step.
    Panic,
    /// Sleeps for [`SimulatedConfig::hang_seconds`].
    Hang,
    /// Writes a NaN into the first row.
    Nan,
    /// Delivers a row that is too short.
    ShortRow,
    /// Returns an error.
    Error,
}

/// What the model runs on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceConfig {
    /// `ggml` (default) or `simulated`.
    pub kind: DeviceKind,
    /// Threads of a step. Default 0: the machine's cores but one, which HTTP and sessions need;
    /// 0 to 512. More than the free cores is slower, not faster: the threads spin.
    pub threads: u32,
    /// Tokens in one step over all sessions. Default 512, 1 to 65536. Smaller keeps streams
    /// even while prompts are read, larger reads prompts faster.
    pub max_batch_tokens: u32,
    /// `auto` (default), `on` or `off`.
    pub repeatable: RepeatableMode,
    /// `auto` (default), `on` or `off`: fused attention. Auto is off where rows are repeatable,
    /// elsewhere what is found faster at load.
    pub flash_attention: FlashAttentionMode,
    /// Layers of the model that run on a GPU. Default 0, 0 to 10000; more than the model has
    /// means all of it. Needs a build with a GPU backend.
    pub gpu_layers: u32,
    /// How long a step may take for the sake of prompts while others stream: the gap between two
    /// tokens of a stream. Default 100, 1 to 60000. A step that takes long without prompts may take
    /// twice as long with them.
    pub target_step_ms: u64,
    /// Tokens that a session may guess ahead from what its prompt and answer said before. The device
    /// computes them together with its next one where they are expected to save more time than they
    /// cost; the text is the same. Default 0: none; 0 to 16.
    pub draft_tokens: u32,
    /// A step that takes longer than this counts as hung. Default 60, 1 to 3600.
    pub step_deadline_seconds: u64,
    /// `[device.simulated]`: the simulated device; not read by the others.
    pub simulated: SimulatedConfig,
}

impl Default for DeviceConfig {
    fn default() -> Self {
        Self {
            kind: DeviceKind::default(),
            threads: 0,
            max_batch_tokens: 512,
            repeatable: RepeatableMode::default(),
            flash_attention: FlashAttentionMode::default(),
            gpu_layers: 0,
            target_step_ms: 100,
            draft_tokens: 0,
            step_deadline_seconds: 60,
            simulated: SimulatedConfig::default(),
        }
    }
}

impl DeviceConfig {
    /// Threads of a step on a machine with `cores` cores; at least 1.
    pub fn step_threads(&self, cores: usize) -> u32 {
        match self.threads {
            0 => u32::try_from(cores.saturating_sub(1)).unwrap_or(u32::MAX).clamp(1, 512),
            threads => threads,
        }
    }

    pub(super) fn check(&self, problems: &mut Problems) {
        problems.range("device.threads", self.threads, 0..=512);
        problems.range("device.max_batch_tokens", self.max_batch_tokens, 1..=65_536);
        problems.range("device.gpu_layers", self.gpu_layers, 0..=10_000);
        problems.range("device.target_step_ms", self.target_step_ms, 1..=60_000);
        problems.range("device.draft_tokens", self.draft_tokens, 0..=16);
        problems.range("device.step_deadline_seconds", self.step_deadline_seconds, 1..=3600);
        self.simulated.check(problems);
    }
}

/// The simulated device: a step takes `fixed_us` + `per_token_us` for each token +
/// `per_sequence_us` for each sequence in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SimulatedConfig {
    /// Microseconds that every step takes. Default 2000, 0 to 60000000.
    pub fixed_us: u64,
    /// Further microseconds for each token. Default 50, 0 to 60000000.
    pub per_token_us: u64,
    /// Further microseconds for each sequence. Default 200, 0 to 60000000.
    pub per_sequence_us: u64,
    /// Entries in a row of logits. Default 512, 257 to 1048576: all bytes and an end token.
    pub vocab_size: u32,
    /// Tokens that all sessions can hold together. Default 0: as many as all of them full;
    /// 0 to 1073741824.
    pub kv_tokens: u64,
    /// The text of every answer. No default: tokens drawn from `seed` and the prompt.
    pub script: Option<String>,
    /// Seed of the drawn tokens. Default 0, 0 to 9223372036854775807.
    pub seed: u64,
    /// What goes wrong: `panic`, `hang`, `nan`, `short_row`, `error`. Default nothing.
    pub fault: Option<FaultKind>,
    /// The step at which it goes wrong, counted from 1. Default 1, 1 to 1000000000.
    pub fault_at_step: u64,
    /// In how many steps from there on. Default 1, 1 to 1000000000.
    pub fault_steps: u64,
    /// How long the fault `hang` lasts. Default 120, 1 to 86400.
    pub hang_seconds: u64,
}

impl Default for SimulatedConfig {
    fn default() -> Self {
        Self {
            fixed_us: 2000,
            per_token_us: 50,
            per_sequence_us: 200,
            vocab_size: 512,
            kv_tokens: 0,
            script: None,
            seed: 0,
            fault: None,
            fault_at_step: 1,
            fault_steps: 1,
            hang_seconds: 120,
        }
    }
}

impl SimulatedConfig {
    fn check(&self, problems: &mut Problems) {
        const MINUTE_US: u64 = 60_000_000;
        problems.range("device.simulated.fixed_us", self.fixed_us, 0..=MINUTE_US);
        problems.range("device.simulated.per_token_us", self.per_token_us, 0..=MINUTE_US);
        problems.range("device.simulated.per_sequence_us", self.per_sequence_us, 0..=MINUTE_US);
        problems.range("device.simulated.vocab_size", self.vocab_size, 257..=1_048_576);
        problems.range("device.simulated.kv_tokens", self.kv_tokens, 0..=1 << 30);
        // TOML's integers end there.
        problems.range("device.simulated.seed", self.seed, 0..=i64::MAX.unsigned_abs());
        let at_step = self.fault_at_step;
        problems.range("device.simulated.fault_at_step", at_step, 1..=1_000_000_000);
        let steps = self.fault_steps;
        problems.range("device.simulated.fault_steps", steps, 1..=1_000_000_000);
        problems.range("device.simulated.hang_seconds", self.hang_seconds, 1..=86_400);
    }
}

#[cfg(test)]
mod tests {
    use super::DeviceConfig;

    #[test]
    fn threads_leave_a_core_free_and_are_never_none() {
        let automatic = DeviceConfig::default();
        assert_eq!([0, 1, 2, 8].map(|cores| automatic.step_threads(cores)), [1, 1, 1, 7]);
        assert_eq!(DeviceConfig { threads: 4, ..automatic }.step_threads(2), 4);
    }
}
