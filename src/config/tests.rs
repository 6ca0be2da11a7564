use std::path::{Path, PathBuf};

use super::*;

struct Fixture {
    folder: tempfile::TempDir,
}

impl Fixture {
    /// A folder with `config.toml` and a file `model.gguf`.
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.toml"), text).unwrap();
        std::fs::write(folder.path().join("model.gguf"), "GGUF").unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn load(&self, overrides: &Overrides) -> Result<Config, ConfigError> {
        Config::load(Some(&self.path("config.toml")), overrides)
    }

    /// The error's text, with the folder taken out.
    fn error(&self, overrides: &Overrides) -> String {
        let folder = format!("{}/", self.folder.path().display());
        self.load(overrides).unwrap_err().to_string().replace(&folder, "")
    }
}

fn error_of(text: &str) -> String {
    Fixture::new(text).error(&Overrides::default())
}

#[test]
fn a_flag_beats_the_file_and_the_file_beats_the_default() {
    let fixture = Fixture::new(
        "[model]\npath = \"model.gguf\"\n[limits]\nmax_sessions = 3\nmax_queued = 5\n",
    );
    let config =
        fixture.load(&Overrides { max_sessions: Some(4), ..Overrides::default() }).unwrap();
    assert_eq!(config.limits.max_sessions, 4);
    assert_eq!(config.limits.max_queued, 5);
    assert_eq!(config.limits.max_choices, LimitsConfig::default().max_choices);
    assert_eq!(config.model.path, Some(fixture.path("model.gguf")));
    assert_eq!(config.model.served_name(), "model");
}

#[test]
fn every_flag_reaches_its_key() {
    let fixture = Fixture::new("");
    let overrides = Overrides {
        model: Some(fixture.path("model.gguf")),
        listen: Some("[::1]:9".parse().unwrap()),
        threads: Some(3),
        context_tokens: Some(77),
        max_sessions: Some(5),
        device: Some(DeviceKind::Simulated),
        log_format: Some(LogFormat::Json),
        log_level: Some("debug".into()),
    };
    let config = fixture.load(&overrides).unwrap();
    assert_eq!(config.model.path, overrides.model);
    assert_eq!(config.server.listen.port(), 9);
    assert_eq!(config.device.threads, 3);
    assert_eq!(config.model.context_tokens, 77);
    assert_eq!(config.limits.max_sessions, 5);
    assert_eq!(config.device.kind, DeviceKind::Simulated);
    assert_eq!(config.log.format, LogFormat::Json);
    assert_eq!(config.log.level, "debug");
}

#[test]
fn a_value_out_of_range_names_file_line_and_key() {
    assert_eq!(
        error_of("[model]\npath = \"model.gguf\"\n\n[limits]\nmax_sessions = 0\n"),
        "config.toml:5:1: limits.max_sessions must be 1 to 16384, not 0"
    );
}

#[test]
fn every_problem_is_told_at_once() {
    assert_eq!(
        error_of("model.path = \"none.gguf\"\nsampling.top_p = 0.0\nlimits.max_choices = 999\n"),
        "config.toml:3:8: limits.max_choices must be 1 to 128, not 999\n\
         config.toml:2:10: sampling.top_p must be above 0 and at most 1, not 0\n\
         config.toml:1:7: model.path names none.gguf, which cannot be read: \
         No such file or directory (os error 2)"
    );
}

#[test]
fn a_bad_flag_names_the_flag() {
    let fixture = Fixture::new("[model]\npath = \"model.gguf\"\n[limits]\nmax_sessions = 3\n");
    assert_eq!(
        fixture.error(&Overrides { max_sessions: Some(300), ..Overrides::default() }),
        "--max-sessions: limits.max_sessions must be 1 to 256 for the ggml device, not 300"
    );
}

#[test]
fn unknown_keys_and_wrong_types_are_errors_with_a_place() {
    let unknown = error_of("[limits]\nmax_session = 1\n");
    assert!(
        unknown.starts_with("config.toml:2:1: limits.max_session: unknown field `max_session`"),
        "{unknown}"
    );
    assert!(unknown.contains("max_sessions"), "{unknown}");
    let section = error_of("\n[limit]\n");
    assert!(section.starts_with("config.toml:2:2: limit: unknown field `limit`"), "{section}");
    assert_eq!(
        error_of("[server]\nworkers = \"two\"\n"),
        "config.toml:2:11: server.workers: invalid type: string \"two\", expected u32"
    );
    assert_eq!(
        error_of("[device]\nkind = \"tpu\"\n"),
        "config.toml:2:8: device.kind: unknown variant `tpu`, expected `ggml` or `simulated`"
    );
    assert_eq!(
        error_of("[server]\nlisten = \"localhost\"\n"),
        "config.toml:2:10: server.listen: must be an IP address and a port, such as \
         \"127.0.0.1:8080\" or \"[::]:8080\", not \"localhost\""
    );
    let key = error_of("[[auth.keys]]\nname = \"a\"\nkey = \"sk-1\"\n");
    assert!(key.starts_with("config.toml:3:1: auth.keys[0].key: unknown field `key`"), "{key}");
}

#[test]
fn broken_toml_names_the_line() {
    let error = error_of("[server]\nworkers = \n");
    assert!(error.starts_with("config.toml:2:"), "{error}");
    assert!(!error.contains('\n'), "{error:?}");
}

#[test]
fn a_missing_file_says_so() {
    let error = Config::load(Some(Path::new("no/such.toml")), &Overrides::default()).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("no/such.toml: cannot read the config file: "), "{text}");
}

#[test]
fn the_ggml_device_needs_a_model_and_the_simulated_one_does_not() {
    let error = Config::load(None, &Overrides::default()).unwrap_err().to_string();
    assert_eq!(error, "model.path is not set: give --model FILE or set it in [model]");
    let simulated = Overrides { device: Some(DeviceKind::Simulated), ..Overrides::default() };
    let config = Config::load(None, &simulated).unwrap();
    assert_eq!(config.model.served_name(), "simulated");
}

#[test]
fn keys_are_checked() {
    let text = "device.kind = \"simulated\"\n\
                [[auth.keys]]\nname = \"a\"\nsha256 = \"12\"\n\
                [[auth.keys]]\nname = \"a\"\nfile = \"none\"\n\
                [[auth.keys]]\nname = \"c\"\n";
    assert_eq!(
        error_of(text),
        "config.toml:4:1: auth.keys[0].sha256 must be 64 hexadecimal digits, as pleach hash-key \
         prints them\n\
         config.toml:6:1: auth.keys[1].name is \"a\", which another key has already\n\
         config.toml:8:1: auth.keys[2] must have either sha256 or file\n\
         config.toml:7:1: auth.keys[1].file names none, which cannot be read: \
         No such file or directory (os error 2)"
    );
}

#[test]
fn what_depends_on_each_other_is_checked_together() {
    let error = error_of(
        "device = { kind = \"simulated\", max_batch_tokens = 4 }\n\
         limits = { request_deadline_seconds = 5, queue_deadline_seconds = 6 }\n",
    );
    assert_eq!(
        error,
        "config.toml:1:32: device.max_batch_tokens must be at least limits.max_sessions (8), so \
         that every session can have a token in a step, not 4\n\
         config.toml:2:42: limits.queue_deadline_seconds must be at most \
         limits.request_deadline_seconds (5), not 6"
    );
}

#[test]
fn log_filters_and_names_are_checked() {
    let error = error_of(
        "device.kind = \"simulated\"\nlog.level = \"info,pleach=loud\"\n\
         model.name = \"m\"\nmodel.aliases = [\"m\", \"\"]\n",
    );
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 3, "{error}");
    assert_eq!(
        lines[0],
        "config.toml:4:18: model.aliases[0] is \"m\", which is already a name of the model"
    );
    assert_eq!(lines[1], "config.toml:4:23: model.aliases[1] must not be empty");
    assert!(lines[2].starts_with("config.toml:2:5: log.level is no log filter: "), "{error}");
}

#[test]
fn an_open_door_is_warned_of() {
    let mut config = Config::default();
    assert_eq!(config.warnings(), Vec::<String>::new());
    config.server.listen = "0.0.0.0:8080".parse().unwrap();
    assert_eq!(config.warnings().len(), 1);
    config.auth.keys.push(ApiKey {
        name: "a".into(),
        sha256: Some("0".repeat(64)),
        file: None,
        weight: 1,
    });
    assert_eq!(config.warnings(), Vec::<String>::new());
}
