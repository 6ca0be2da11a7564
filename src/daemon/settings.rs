//! From the configuration to each room's own settings.

use std::sync::Arc;
use std::time::Duration;

use crate::actors::RuntimeSettings;
use crate::config::{self, Config, ConfigError, FaultKind, LogFormat};
use crate::device::simulated::{FaultPlan, InjectedFault, SimulatedSettings, TokenSource};
use crate::grammar::{GrammarCache, GrammarVocabulary, Limits, Tokenize};
use crate::http::auth::{ApiKey, Auth};
use crate::http::model::{Grammars, TextCodec};
use crate::http::{HttpSettings, RequestLimits};
use crate::schedule;
use crate::telemetry;
use crate::vocab::Vocabulary;

pub(super) fn log_format(config: &Config) -> telemetry::logs::LogFormat {
    match config.log.format {
        LogFormat::Text => telemetry::logs::LogFormat::Text,
        LogFormat::Json => telemetry::logs::LogFormat::Json,
    }
}

pub(super) fn http(config: &Config) -> Result<HttpSettings, ConfigError> {
    let (server, limits) = (&config.server, &config.limits);
    let defaults = HttpSettings::default();
    Ok(HttpSettings {
        listen: vec![server.listen],
        probe_listen: server.probe_listen,
        workers: server.workers as usize,
        max_connections: server.max_connections as usize,
        keep_alive: seconds(server.keep_alive_seconds),
        head_timeout: seconds(server.client_head_timeout_seconds),
        body_timeout: seconds(limits.body_timeout_seconds),
        body_bytes_max: usize::try_from(limits.max_body_bytes).unwrap_or(usize::MAX),
        cors_origins: server.cors_origins.clone(),
        auth: auth(config)?,
        metrics_public: server.public_metrics,
        trust_forwarded: server.trust_forwarded,
        ping_interval: seconds(limits.ping_seconds),
        stream_head_delay: Duration::from_millis(limits.stream_head_delay_ms),
        frame_capacity: limits.frame_capacity as usize,
        request_deadline: Some(seconds(limits.request_deadline_seconds)),
        // All sessions have ended by then; what is left is bytes on their way.
        shutdown_timeout: Duration::from_secs(1),
        limits: RequestLimits {
            max_requests: limits.max_sessions as usize + limits.max_queued as usize,
            choices_max: limits.max_choices,
            strict_schemas: config.grammar.strict,
            answer_tokens_max: match limits.max_answer_tokens {
                0 => None,
                tokens => Some(tokens),
            },
            sampling: config.sampling.to_params(),
            ..defaults.limits
        },
        ..defaults
    })
}

fn auth(config: &Config) -> Result<Auth, ConfigError> {
    let keys = config.auth.client_keys()?;
    if keys.is_empty() {
        return Ok(Auth::Off);
    }
    let hashed = |key: &config::ClientKey| ApiKey::from_sha256(&key.name, key.digest.0);
    Ok(Auth::Keys(keys.iter().map(hashed).collect()))
}

pub(super) fn runtime(config: &Config) -> RuntimeSettings {
    let limits = &config.limits;
    RuntimeSettings {
        session_threads: session_threads(),
        schedule: schedule::Settings {
            target_step: Duration::from_millis(config.device.target_step_ms),
            step_deadline: seconds(config.device.step_deadline_seconds),
            prefix_bytes: limits.prefix_cache_bytes,
            draft_tokens: config.device.draft_tokens,
            weights: config
                .auth
                .keys
                .iter()
                .map(|key| (key.name.as_str().into(), key.weight))
                .collect(),
        },
        queue_deadline: Some(seconds(limits.queue_deadline_seconds)),
        stall_timeout: seconds(limits.stall_timeout_seconds),
    }
}

/// A thread for each four cores: a session's work between two steps is a small part of a step.
fn session_threads() -> usize {
    cores().div_ceil(4)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

pub(super) fn grammars(
    config: &Config,
    vocabulary: &Vocabulary,
    codec: Arc<dyn TextCodec>,
) -> Grammars {
    let grammar = &config.grammar;
    let mask_bytes = usize::try_from(grammar.mask_cache_bytes).unwrap_or(usize::MAX);
    let cache_bytes = usize::try_from(grammar.cache_bytes).unwrap_or(usize::MAX);
    let limits = Limits {
        source_bytes_max: usize::try_from(grammar.source_bytes_max).unwrap_or(usize::MAX),
        compile_steps_max: grammar.compile_steps_max,
        walk_steps_max: grammar.mask_steps_max,
        ..Limits::default()
    };
    let vocabulary = GrammarVocabulary::with_budget(vocabulary, mask_bytes);
    let tokenize = move |text: &str| codec.encode(text, false).unwrap_or_default();
    let forced_by: Option<Arc<dyn Tokenize + Send + Sync>> =
        if grammar.forced_runs { Some(Arc::new(tokenize)) } else { None };
    Grammars {
        cache: Arc::new(GrammarCache::new(vocabulary, limits, cache_bytes)),
        compile_deadline: Duration::from_millis(grammar.compile_deadline_ms),
        forced_by,
    }
}

#[cfg(feature = "ggml")]
pub(super) fn ggml(config: &Config, model: &std::path::Path) -> crate::device::ggml::GgmlSettings {
    use crate::device::ggml::{FlashAttention, GgmlSettings, RepeatableMode};

    let repeatable = match config.device.repeatable {
        config::RepeatableMode::Auto => RepeatableMode::Auto,
        config::RepeatableMode::On => RepeatableMode::On,
        config::RepeatableMode::Off => RepeatableMode::Off,
    };
    let flash_attention = match config.device.flash_attention {
        config::FlashAttentionMode::Auto => FlashAttention::Auto,
        config::FlashAttentionMode::On => FlashAttention::On,
        config::FlashAttentionMode::Off => FlashAttention::Off,
    };
    GgmlSettings {
        context_tokens: config.model.context_tokens,
        max_sequences: config.limits.max_sessions,
        max_batch_tokens: config.device.max_batch_tokens,
        threads: config.device.step_threads(cores()),
        repeatable,
        flash_attention,
        gpu_layers: i32::try_from(config.device.gpu_layers).unwrap_or(i32::MAX),
        ..GgmlSettings::new(model)
    }
}

pub(super) fn simulated(config: &Config) -> SimulatedSettings {
    let simulated = &config.device.simulated;
    let source = match &simulated.script {
        Some(text) => TokenSource::script(text),
        None => TokenSource::Seeded(simulated.seed),
    };
    let fault = simulated.fault.map(|kind| match kind {
        FaultKind::Panic => InjectedFault::Panic,
        FaultKind::Hang => InjectedFault::Hang(seconds(simulated.hang_seconds)),
        FaultKind::Nan => InjectedFault::NanRow,
        FaultKind::ShortRow => InjectedFault::ShortRow,
        FaultKind::Error => InjectedFault::Error,
    });
    let plan =
        |fault| FaultPlan { at_step: simulated.fault_at_step, steps: simulated.fault_steps, fault };
    SimulatedSettings {
        context_tokens: match config.model.context_tokens {
            0 => SimulatedSettings::default().context_tokens,
            tokens => tokens,
        },
        max_sequences: config.limits.max_sessions,
        max_batch_tokens: config.device.max_batch_tokens,
        kv_tokens: simulated.kv_tokens,
        vocab_size: simulated.vocab_size as usize,
        fixed: Duration::from_micros(simulated.fixed_us),
        per_token: Duration::from_micros(simulated.per_token_us),
        per_sequence: Duration::from_micros(simulated.per_sequence_us),
        source,
        faults: fault.map(plan).into_iter().collect(),
        ..SimulatedSettings::default()
    }
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}
