//! The official `openai` Python client against the real binary with the real small model. Skipped,
//! with a line that says so, where the machine has no model or no Python with `openai`.

#![cfg(feature = "ggml")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use pleach::config::hash_key;
use support::Daemon;

const KEY: &str = "sk-test-4be1c9d2f07a";

#[test]
fn the_openai_client_gets_what_it_expects() {
    let Some(model) = support::model() else { return };
    let Some(python) = support::python() else { return };
    let daemon = Daemon::start(&format!(
        "[model]\npath = {:?}\ncontext_tokens = 1024\n\
         [device]\nrepeatable = \"on\"\nthreads = 1\n\
         [server]\npublic_metrics = true\n\
         [[auth.keys]]\nname = \"test\"\nsha256 = \"{}\"\n",
        model.display().to_string(),
        hash_key(KEY.as_bytes()).to_hex(),
    ));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/openai_client.py");
    let output = Command::new(python)
        .arg(script)
        .args([&format!("http://{}/v1", daemon.address), KEY])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}\n{}{}\nthe daemon's log:\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        daemon.log_text(),
    );
    daemon.all_zero();
}
