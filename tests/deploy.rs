//! What is shipped in `deploy/` is accepted by the programs it is for. A program that is not on
//! this machine is named, and its test does no more.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Where a program is; says so where it is not.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    let found = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("skipped: {name} is not on this machine");
    }
    found
}

/// Runs a command that must succeed and say nothing but what `is_noise` knows.
fn succeeds(command: &mut Command, is_noise: impl Fn(&str) -> bool) {
    let output = command.output().unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{command:?}: {said}");
    let complaints: Vec<&str> = said.lines().filter(|line| !is_noise(line)).collect();
    assert!(complaints.is_empty(), "{command:?}: {complaints:#?}");
}

#[test]
fn the_scripts_are_posix_shell() {
    for script in ["deploy/setup.sh", "deploy/quickstart.sh", "tests/run.sh"] {
        succeeds(Command::new("sh").arg("-n").arg(root().join(script)), |_| false);
    }
}

#[test]
fn setup_refuses_an_unknown_option() {
    let setup = root().join("deploy/setup.sh");
    let output = Command::new("sh").arg(setup).arg("--for-test").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--for-tests"));
}

#[test]
fn systemd_accepts_the_unit() {
    let Some(analyze) = program("systemd-analyze") else { return };
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("pleach.service");
    // verify wants ExecStart's program to be there, which /usr/bin/pleach need not be here.
    let text = read("deploy/pleach.service");
    let installed = "ExecStart=/usr/bin/pleach ";
    assert!(text.contains(installed));
    let here = format!("ExecStart={} ", env!("CARGO_BIN_EXE_pleach"));
    // Nor the manual page's place.
    let text = text.replace(installed, &here);
    std::fs::write(&unit, text).unwrap();
    succeeds(Command::new(analyze).arg("verify").arg(&unit), |line| {
        // What it has to say about other units of this machine.
        !line.contains("pleach")
    });
}

#[test]
fn nginx_accepts_the_server() {
    let Some(nginx) = program("nginx") else { return };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display();
    // The test must not need the right to take port 80.
    let text = read("deploy/nginx.conf");
    assert!(text.contains("listen 80;"));
    let server = folder.path().join("pleach.conf");
    std::fs::write(&server, text.replace("listen 80;", "listen 127.0.0.1:18099;")).unwrap();
    let wrapper = folder.path().join("nginx.conf");
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|kind| format!("{kind}_temp_path {place}/{kind};\n"))
        .collect();
    std::fs::write(
        &wrapper,
        format!(
            "pid {place}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n\
             {temporary}include {place}/pleach.conf;\n}}\n"
        ),
    )
    .unwrap();
    succeeds(
        Command::new(nginx).arg("-t").arg("-e").arg("stderr").arg("-c").arg(&wrapper),
        |line| line.ends_with("syntax is ok") || line.ends_with("test is successful"),
    );
}

#[test]
fn the_timeouts_fit_the_defaults() {
    let config = pleach::config::Config::default();
    let number_after = |text: &str, key: &str| -> u64 {
        let line = text.lines().map(str::trim).find_map(|line| line.strip_prefix(key));
        let line = line.unwrap_or_else(|| panic!("{key} is missing"));
        let digits: String = line.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    };
    let unit = read("deploy/pleach.service");
    let stop = config.shutdown.lame_duck_seconds + config.shutdown.drain_seconds;
    assert!(number_after(&unit, "TimeoutStopSec=") > stop + 5);
    let proxy = read("deploy/nginx.conf");
    assert!(number_after(&proxy, "proxy_read_timeout ") > config.limits.request_deadline_seconds);
    assert!(number_after(&proxy, "proxy_read_timeout ") > 2 * config.limits.ping_seconds);
    assert!(number_after(&proxy, "keepalive_timeout ") < config.server.keep_alive_seconds);
    assert_eq!(
        number_after(&proxy, "client_max_body_size ") * 1024 * 1024,
        config.limits.max_body_bytes
    );
}

#[test]
fn alerts_name_metrics_that_exist() {
    let rules = read("deploy/alerts.yml");
    let named: BTreeSet<&str> = rules
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| word.starts_with("pleach_"))
        .collect();
    assert!(named.len() >= 10, "{named:?}");
    let folder = root().join("src/telemetry");
    let Ok(files) = std::fs::read_dir(&folder) else {
        eprintln!("skipped: no src/telemetry");
        return;
    };
    let source: String =
        files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    for name in named {
        let bare = ["_bucket", "_sum", "_count"]
            .iter()
            .fold(name, |name, ending| name.strip_suffix(ending).unwrap_or(name))
            .trim_start_matches("pleach_");
        assert!(source.contains(bare), "{name} is not in src/telemetry");
    }
}
