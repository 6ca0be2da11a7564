//! `pleach check`: what a config file comes to.

use std::thread::available_parallelism;

use super::{CheckArgs, CliError, note, print};
use crate::config::{Config, DeviceKind, LogFormat, Overrides, RepeatableMode};

pub(super) fn run(args: &CheckArgs) -> Result<(), CliError> {
    let config = Config::load(Some(&args.config), &Overrides::default())?;
    for warning in config.warnings() {
        note(&format!("warning: {warning}"));
    }
    let cores = available_parallelism().map_or(1, usize::from);
    print(&format!("ok\n{}", facts(&config, cores)))
}

/// The main settings, a line each.
fn facts(config: &Config, cores: usize) -> String {
    let lines = [
        ("listen", listen(config)),
        ("model", model(config)),
        ("device", device(config, cores)),
        ("sessions", sessions(config)),
        ("keys", keys(config)),
        ("log", format!("{}, {}", log_format(config.log.format), config.log.level)),
        (
            "shutdown",
            format!(
                "{} s not ready, then up to {} s for running streams",
                config.shutdown.lame_duck_seconds, config.shutdown.drain_seconds
            ),
        ),
    ];
    lines.iter().map(|(name, value)| format!("{name:<10}{value}\n")).collect()
}

fn listen(config: &Config) -> String {
    let server = &config.server;
    let probes = server.probe_listen.map(|address| format!(", probes at {address}"));
    format!("{}{}", server.listen, probes.unwrap_or_default())
}

fn model(config: &Config) -> String {
    let mut names = vec![config.model.served_name()];
    names.extend(config.model.aliases.iter().cloned());
    let names = names.join(", ");
    match &config.model.path {
        Some(path) => format!("{} served as {names}", path.display()),
        None => format!("none, served as {names}"),
    }
}

fn device(config: &Config, cores: usize) -> String {
    let device = &config.device;
    let kind = match device.kind {
        DeviceKind::Simulated => return "simulated".to_owned(),
        DeviceKind::Ggml => "ggml",
    };
    let repeatable = match device.repeatable {
        RepeatableMode::Auto => "auto",
        RepeatableMode::On => "on",
        RepeatableMode::Off => "off",
    };
    format!(
        "{kind}, {} of {cores} cores, {} tokens a step, repeatable {repeatable}",
        device.step_threads(cores),
        device.max_batch_tokens
    )
}

fn sessions(config: &Config) -> String {
    let context = match config.model.context_tokens {
        0 => "the model's own context (at most 4096 tokens)".to_owned(),
        tokens => format!("{tokens} tokens"),
    };
    let limits = &config.limits;
    format!("{} at once with {context} each, {} waiting", limits.max_sessions, limits.max_queued)
}

fn keys(config: &Config) -> String {
    if config.auth.keys.is_empty() {
        return "none: everybody may ask".to_owned();
    }
    config.auth.keys.iter().map(|key| key.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn log_format(format: LogFormat) -> &'static str {
    match format {
        LogFormat::Text => "text",
        LogFormat::Json => "json",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_the_defaults() {
        let mut config = Config::default();
        config.model.path = Some("/m/small.gguf".into());
        config.model.aliases = vec!["gpt-4o-mini".into()];
        assert_eq!(
            facts(&config, 4),
            "listen    127.0.0.1:8080\n\
             model     /m/small.gguf served as small, gpt-4o-mini\n\
             device    ggml, 3 of 4 cores, 512 tokens a step, repeatable auto\n\
             sessions  8 at once with the model's own context (at most 4096 tokens) each, 64 waiting\n\
             keys      none: everybody may ask\n\
             log       text, info\n\
             shutdown  1 s not ready, then up to 30 s for running streams\n"
        );
    }
}
