//! What the black-box tests share: the real binary on a loopback port, and a small HTTP client.

#![allow(clippy::unwrap_used, clippy::expect_used, dead_code)]

pub mod http;

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A daemon of its own for one test; killed when dropped.
pub struct Daemon {
    child: Child,
    pub address: SocketAddr,
    log: Arc<Mutex<Vec<String>>>,
    _folder: tempfile::TempDir,
}

/// The small real model, where the machine has it.
pub fn model() -> Option<PathBuf> {
    let default = || {
        let cache = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
        Some(cache.join("pleach/models/smollm2-135m-q4_1.gguf"))
    };
    let path = std::env::var_os("PLEACH_MODEL").map(PathBuf::from).or_else(default)?;
    if !path.exists() {
        eprintln!("skipped: no model (sh deploy/setup.sh fetches it, or set PLEACH_MODEL)");
        return None;
    }
    Some(path)
}

/// `$PLEACH_PYTHON`, which must have `openai`, else a `python3` that happens to have it.
pub fn python() -> Option<OsString> {
    if let Some(python) = std::env::var_os("PLEACH_PYTHON") {
        return Some(python);
    }
    let python = OsString::from("python3");
    let found = Command::new(&python).args(["-c", "import openai"]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    eprintln!(
        "skipped: no python3 with openai (sh tests/run.sh sets one up, or set PLEACH_PYTHON)"
    );
    None
}

/// How many requests a test sends: `$PLEACH_TEST_REQUESTS`, else so many.
pub fn requests(default: usize) -> usize {
    let count = std::env::var("PLEACH_TEST_REQUESTS");
    count.map_or(default, |count| count.parse().expect("PLEACH_TEST_REQUESTS is a number"))
}

impl Daemon {
    /// Starts `pleach serve` with these TOML settings on a free port; returns once it listens.
    pub fn listening(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("pleach.toml");
        let mut file = std::fs::File::create(&config).unwrap();
        // A table may be opened only once: the tests' own keys of these tables go in front.
        write!(file, "{settings}").unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_pleach"))
            .args(["serve", "--listen", "127.0.0.1:0", "--log-format", "json", "--config"])
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let address = Self::read_log(&mut child, &log);
        Self { child, address, log, _folder: folder }
    }

    /// Starts it and waits until it takes requests.
    pub fn start(settings: &str) -> Self {
        let mut daemon = Self::listening(settings);
        let end = Instant::now() + Duration::from_secs(120);
        loop {
            if http::get(daemon.address, "/readyz").is_ok_and(|answer| answer.status == 200) {
                return daemon;
            }
            if let Some(status) = daemon.child.try_wait().unwrap() {
                panic!("the daemon ended with {status}: {}", daemon.log_text());
            }
            assert!(Instant::now() < end, "never ready: {}", daemon.log_text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// On the simulated device, with further lines of each table.
    pub fn simulated(device: &str, limits: &str, rest: &str) -> Self {
        Self::start(&format!(
            "[device]\nkind = \"simulated\"\n[device.simulated]\n{device}\n[limits]\n{limits}\n{rest}"
        ))
    }

    fn read_log(child: &mut Child, log: &Arc<Mutex<Vec<String>>>) -> SocketAddr {
        let (send, receive) = std::sync::mpsc::channel();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let log = Arc::clone(log);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let entry: Value = serde_json::from_str(&line).unwrap_or_default();
                if let Some(address) = entry["address"].as_str() {
                    let _ = send.send(address.parse().unwrap());
                }
                log.lock().unwrap().push(line);
            }
        });
        receive.recv_timeout(Duration::from_secs(30)).expect("it says where it listens")
    }

    /// Everything it has logged.
    pub fn log_text(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Waits for its end.
    pub fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let end = Instant::now() + patience;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }

    /// Resident memory in KiB.
    pub fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Open file descriptors.
    pub fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// The value of a metric without labels; 0 where it is not there.
    pub fn metric(&self, name: &str) -> f64 {
        let page = http::get(self.address, "/metrics").unwrap().text();
        let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
        page.lines().find_map(value).unwrap_or(0.0)
    }

    /// Waits until nothing is held any more.
    pub fn all_zero(&self) {
        const LIVE: [&str; 4] = [
            "pleach_live_sessions",
            "pleach_live_slots",
            "pleach_live_permits",
            "pleach_live_grammars",
        ];
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let held = LIVE.map(|name| self.metric(name));
            if held == [0.0; 4] {
                return;
            }
            assert!(Instant::now() < end, "still held: {held:?}\n{}", self.log_text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A POST of JSON; the answer.
    pub fn post(&self, path: &str, body: &Value) -> http::Answer {
        http::post(self.address, path, body).unwrap()
    }

    /// A POST that must succeed; its JSON.
    pub fn ask(&self, path: &str, body: &Value) -> Value {
        let answer = self.post(path, body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    /// A POST that must stream; its events, `[DONE]` included as a string.
    pub fn stream(&self, path: &str, body: &Value) -> Vec<Value> {
        let answer = self.post(path, body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        http::events(&answer.text())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
