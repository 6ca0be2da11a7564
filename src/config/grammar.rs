//! `[grammar]`: what constrained answers may cost.

use serde::{Deserialize, Serialize};

use super::check::Problems;

/// What constrained answers may cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GrammarConfig {
    /// Text that a grammar leaves no choice about is appended without sampling. Default true.
    pub forced_runs: bool,
    /// Schemas that do not say `strict` themselves are refused where they cannot be followed exactly;
    /// otherwise such keywords are left out, which the answer and the log say. Default true.
    pub strict: bool,
    /// Text of one grammar. Bytes, default 524288, 1024 to 67108864.
    pub source_bytes_max: u64,
    /// How long compiling one grammar may take. Default 2000, 1 to 600000.
    pub compile_deadline_ms: u64,
    /// Work that compiling one grammar may take, in steps of about 0.1 microseconds. Default
    /// 10000000, 1000 to 1000000000.
    pub compile_steps_max: u64,
    /// Work that one mask may take, in token tree nodes. Default 20000000, 10000 to 1000000000.
    pub mask_steps_max: u64,
    /// Memory of compiled grammars. Default 67108864, 1048576 to 17179869184.
    pub cache_bytes: u64,
    /// Memory of the masks of all grammars. Default 67108864, 1048576 to 17179869184.
    pub mask_cache_bytes: u64,
}

impl Default for GrammarConfig {
    fn default() -> Self {
        Self {
            forced_runs: true,
            strict: true,
            source_bytes_max: 512 << 10,
            compile_deadline_ms: 2000,
            compile_steps_max: 10_000_000,
            mask_steps_max: 20_000_000,
            cache_bytes: 64 << 20,
            mask_cache_bytes: 64 << 20,
        }
    }
}

impl GrammarConfig {
    pub(super) fn check(&self, problems: &mut Problems) {
        const GIB_16: u64 = 16 << 30;
        problems.range("grammar.source_bytes_max", self.source_bytes_max, 1 << 10..=64 << 20);
        problems.range("grammar.compile_deadline_ms", self.compile_deadline_ms, 1..=600_000);
        let steps = self.compile_steps_max;
        problems.range("grammar.compile_steps_max", steps, 1000..=1_000_000_000);
        problems.range("grammar.mask_steps_max", self.mask_steps_max, 10_000..=1_000_000_000);
        problems.range("grammar.cache_bytes", self.cache_bytes, 1 << 20..=GIB_16);
        problems.range("grammar.mask_cache_bytes", self.mask_cache_bytes, 1 << 20..=GIB_16);
    }
}
