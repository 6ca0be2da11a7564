//! The streams: each client asks again as soon as its answer is over.

use std::cell::RefCell;
use std::error::Error;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::time::Duration;

use fastrand::Rng;
use pleach::bench::{Client, Endpoint, Request};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::raw;
use super::support::client;

/// Streams that are read token by token.
const WATCHED: usize = 16;
/// How often the others are read.
const READ_EVERY: Duration = Duration::from_millis(150);
/// About how long an answer takes at the least; those who leave do so within it.
const LEAVE_WITHIN_MS: u64 = 1_500;

#[derive(Default)]
struct Found {
    gaps: Vec<Duration>,
    failures: Vec<String>,
}

/// Clients that go on until this is dropped.
pub struct Crowd {
    found: Rc<RefCell<Found>>,
    clients: Vec<JoinHandle<()>>,
}

impl Crowd {
    /// Starts so many clients of the daemon at `url`. Each answer has any number of tokens from a
    /// range: answers of one length would all end in the same step, and nobody would be in line
    /// then. Of those that are not watched a share leaves before its end.
    pub fn start(
        url: &str,
        clients: usize,
        tokens: RangeInclusive<u32>,
        leaving: f64,
    ) -> Result<Self, Box<dyn Error>> {
        let address: SocketAddr = url.trim_start_matches("http://").parse()?;
        let found = Rc::<RefCell<Found>>::default();
        let watcher = client::client(url)?;
        let client = |which| {
            let found = Rc::clone(&found);
            if which < WATCHED {
                actix_rt::spawn(watch(watcher.clone(), which, tokens.clone(), found))
            } else {
                actix_rt::spawn(drain(address, which, tokens.clone(), leaving, found))
            }
        };
        let clients = (0..clients).map(client).collect();
        Ok(Self { found, clients })
    }

    /// The gaps between tokens of the answers that ended since the last call.
    pub fn take_gaps(&self) -> Vec<Duration> {
        std::mem::take(&mut self.found.borrow_mut().gaps)
    }

    /// Everyone leaves; an error if somebody could not do what it should.
    pub fn end(self) -> Result<(), String> {
        let failures = &self.found.borrow().failures;
        match failures.first() {
            Some(first) => Err(format!("{} streams failed, the first: {first}", failures.len())),
            None => Ok(()),
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.clients.iter().for_each(JoinHandle::abort);
    }
}

async fn watch(
    client: Client,
    which: usize,
    tokens: RangeInclusive<u32>,
    found: Rc<RefCell<Found>>,
) {
    let mut rng = Rng::with_seed(which as u64);
    loop {
        let tokens = rng.u32(tokens.clone());
        let request = Request::new(Endpoint::Completions, raw::stream_body(which, tokens));
        match client.ask(&request).await {
            Ok(answer) => found.borrow_mut().gaps.extend(answer.gaps),
            Err(error) => {
                found.borrow_mut().failures.push(error.to_string());
                return;
            }
        }
    }
}

async fn drain(
    address: SocketAddr,
    which: usize,
    tokens: RangeInclusive<u32>,
    leaving: f64,
    found: Rc<RefCell<Found>>,
) {
    let mut rng = Rng::with_seed(which as u64);
    loop {
        let leaves = rng.f64() < leaving;
        let patience = Duration::from_millis(rng.u64(..LEAVE_WITHIN_MS));
        let body = raw::stream_body(rng.usize(..1 << 20), rng.u32(tokens.clone()));
        let request = raw::post(&body);
        let answer = read(address, &request);
        let result = if leaves {
            tokio::time::timeout(patience, answer).await.unwrap_or(Ok(()))
        } else {
            answer.await
        };
        if let Err(error) = result {
            found.borrow_mut().failures.push(error.to_string());
            return;
        }
    }
}

/// Sends a request and reads its answer to the end, a few times a second.
async fn read(address: SocketAddr, request: &[u8]) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request).await?;
    let mut buffer = vec![0; 64 << 10];
    let mut end = Vec::new();
    loop {
        tokio::time::sleep(READ_EVERY).await;
        stream.readable().await?;
        loop {
            match stream.try_read(&mut buffer) {
                Ok(0) => return whole(&end),
                Ok(count) => {
                    end.extend_from_slice(&buffer[count.saturating_sub(64)..count]);
                    end.drain(..end.len().saturating_sub(64));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
    }
}

fn whole(end: &[u8]) -> std::io::Result<()> {
    let done = b"data: [DONE]";
    if end.windows(done.len()).any(|part| part == done) {
        return Ok(());
    }
    let text = String::from_utf8_lossy(end);
    Err(std::io::Error::other(format!("a stream ended without [DONE]: {text:?}")))
}
