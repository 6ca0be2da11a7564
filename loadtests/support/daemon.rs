//! `pleach serve` as a child process.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// A daemon that ends with this value.
pub struct Daemon {
    child: Child,
    /// Where it answers, `http://…`.
    pub url: String,
    addresses: Receiver<String>,
    config: PathBuf,
}

impl Daemon {
    /// Starts the `pleach` beside this program with these settings, and waits until it is ready.
    pub async fn start(settings: &str) -> Result<Self, Box<dyn Error>> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let which = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("pleach-loadtest-{}-{which}.toml", std::process::id());
        let config = std::env::temp_dir().join(name);
        std::fs::write(&config, settings)?;
        let program = std::env::current_exe()?.with_file_name("pleach");
        let mut child = Command::new(&program)
            .args(["serve", "--listen", "127.0.0.1:0", "--log-format", "json"])
            .args(["--config".as_ref(), config.as_os_str()])
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}; build it first", program.display()))?;
        let addresses = addresses(&mut child)?;
        let address = addresses.recv_timeout(Duration::from_secs(60));
        let address = address.map_err(|_| "the daemon does not say where it listens")?;
        let daemon = Self { child, url: format!("http://{address}"), addresses, config };
        wait_until_ready(&format!("{}/readyz", daemon.url)).await?;
        Ok(daemon)
    }

    /// Where it answers probes, once, if it was told to.
    pub fn probe_address(&self) -> Option<String> {
        self.addresses.try_recv().ok()
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Processor time that it has used.
    pub fn cpu_time(&self) -> Duration {
        cpu_time(self.id())
    }

    /// Resident memory in KiB.
    pub fn resident_kib(&self) -> u64 {
        let path = Path::new("/proc").join(self.child.id().to_string()).join("status");
        let status = std::fs::read_to_string(path).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or_default()
    }
}

/// Processor time that a process has used; zero where that is not told.
pub fn cpu_time(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The fields after the program's name, which may hold spaces: state is the first.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let used = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = used.filter_map(|field| field.parse::<u64>().ok()).sum();
    // The kernel reports in hundredths of a second on every architecture Linux runs on.
    Duration::from_millis(ticks * 10)
}

/// Waits until a server says at this address that it takes requests.
pub async fn wait_until_ready(url: &str) -> Result<(), Box<dyn Error>> {
    let client = awc::Client::default();
    let end = Instant::now() + Duration::from_secs(300);
    while Instant::now() < end {
        let answer = client.get(url).send().await;
        if answer.is_ok_and(|answer| answer.status().is_success()) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err(format!("{url} never became ready").into())
}

/// The addresses at which it says that it listens, as it says so.
fn addresses(child: &mut Child) -> Result<Receiver<String>, Box<dyn Error>> {
    let errors = child.stderr.take().ok_or("its standard error is not there")?;
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(errors).lines().map_while(Result::ok) {
            let entry: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
            if let Some(address) = entry["address"].as_str() {
                // Nobody listens any more once the addresses are known.
                let _ = send.send(address.to_owned());
            } else if entry["level"] != "INFO" {
                eprintln!("{line}");
            }
        }
    });
    Ok(receive)
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.config);
    }
}
