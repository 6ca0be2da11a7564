//! A full queue, and how the daemon answers everyone else meanwhile.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::future::join_all;
use pleach::bench::Percentiles;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::raw;
use super::support::metrics::Page;

/// Requests that come once the queue is full.
const REFUSALS: usize = 300;
/// Connections that are opened together.
const TOGETHER: usize = 100;
/// Tokens that they ask for, and never get.
const TOKENS: u32 = 16;
const PROBE_EVERY: Duration = Duration::from_millis(50);

/// What was found.
pub struct Found {
    pub waiting: usize,
    pub asked: usize,
    pub refused: usize,
    /// The longest of each.
    pub refusal: Duration,
    pub refusals: Percentiles,
    /// Where requests are sent to.
    pub beside: Probes,
    /// At the address for probes.
    pub apart: Probes,
}

/// The longest answer of each.
pub struct Probes {
    pub livez: Duration,
    pub metrics: Duration,
}

/// Fills the queue, and asks for more. Who asks has a thread of its own, so that the times are not
/// those of the clients in the queue.
pub async fn run(url: &str, probe_address: &str, queue: usize) -> Result<Found, Box<dyn Error>> {
    let address: SocketAddr = url.trim_start_matches("http://").parse()?;
    let probe_address = probe_address.parse()?;
    let stop = Arc::new(AtomicBool::new(false));
    let beside = Probing::start(address, &stop);
    let apart = Probing::start(probe_address, &stop);
    let mut waiting = Vec::new();
    while waiting.len() < queue {
        let count = TOGETHER.min(queue - waiting.len());
        let opened = (0..count).map(|at| open(address, waiting.len() + at));
        for stream in join_all(opened).await {
            waiting.push(stream?);
        }
    }
    // All of them have arrived when the daemon says so.
    for _ in 0..600 {
        if Page::read(url).await?.sum("pleach_num_requests_waiting") >= queue as f64 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let refusals = tokio::task::spawn_blocking(move || refused(address)).await??;
    stop.store(true, Ordering::Release);
    Ok(Found {
        waiting: waiting.len(),
        asked: REFUSALS,
        refused: refusals.len(),
        refusal: refusals.iter().max().copied().unwrap_or_default(),
        refusals: Percentiles::of(refusals.into_iter()),
        beside: beside.end()?,
        apart: apart.end()?,
    })
}

async fn open(address: SocketAddr, which: usize) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(&raw::post(&raw::stream_body(which, TOKENS))).await?;
    Ok(stream)
}

/// How long each refusal took.
fn refused(address: SocketAddr) -> std::io::Result<Vec<Duration>> {
    let mut times = Vec::new();
    for which in 0..REFUSALS {
        if let (429, time) = raw::exchange(address, &raw::post(&raw::stream_body(which, TOKENS)))? {
            times.push(time);
        }
    }
    Ok(times)
}

/// Threads that ask again and again.
struct Probing([JoinHandle<std::io::Result<Duration>>; 2]);

impl Probing {
    fn start(address: SocketAddr, stop: &Arc<AtomicBool>) -> Self {
        Self(["/livez", "/metrics"].map(|path| {
            let stop = Arc::clone(stop);
            std::thread::spawn(move || probe(address, path, &stop))
        }))
    }

    fn end(self) -> Result<Probes, Box<dyn Error>> {
        let [livez, metrics] = self.0.map(|thread| thread.join().map_err(|_| "a probe panicked"));
        Ok(Probes { livez: livez??, metrics: metrics?? })
    }
}

fn probe(address: SocketAddr, path: &str, stop: &AtomicBool) -> std::io::Result<Duration> {
    let mut longest = Duration::ZERO;
    while !stop.load(Ordering::Acquire) {
        longest = longest.max(raw::timed_get(address, path)?);
        std::thread::sleep(PROBE_EVERY);
    }
    Ok(longest)
}
