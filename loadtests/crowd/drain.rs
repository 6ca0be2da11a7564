//! Streams that are read a few times a second, all by one thread. It polls: a thread that is told
//! of each event would wake for each, and cost the machine as much as the daemon that it looks at.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::raw;

/// How often a stream is read.
const READ_EVERY: Duration = Duration::from_millis(150);
/// How often the thread looks who is to be read.
const TICK: Duration = Duration::from_millis(5);
/// About how long an answer takes at the least; those who leave do so within it.
const LEAVE_WITHIN_MS: u64 = 1_500;
/// Bytes of an answer's end that are looked at.
const END_BYTES: usize = 64;

/// What the clients ask for.
pub struct Wish {
    pub address: SocketAddr,
    /// Tokens of an answer.
    pub tokens: RangeInclusive<u32>,
    /// Share of those who leave before their answer's end.
    pub leaving: f64,
}

/// Clients that go on until this is dropped.
pub struct Drain {
    stop: Arc<AtomicBool>,
    failures: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Drain {
    /// Starts a client for each of some numbers.
    pub fn start(numbers: std::ops::Range<usize>, wish: Wish) -> Result<Self, Error> {
        let (stop, failures) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (stopped, failed) = (Arc::clone(&stop), Arc::clone(&failures));
        let run = move || {
            let mut clients: Vec<Client> = numbers.map(Client::new).collect();
            while !stopped.load(Ordering::Acquire) {
                let now = Instant::now();
                clients.retain_mut(|client| match client.turn(&wish, now) {
                    Ok(()) => true,
                    Err(error) => {
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        failed.push(error.to_string());
                        false
                    }
                });
                thread::sleep(TICK);
            }
        };
        let thread = thread::Builder::new().name("drain".to_owned()).spawn(run)?;
        Ok(Self { stop, failures, thread: Some(thread) })
    }

    /// What those said who could not go on.
    pub fn failures(&self) -> Vec<String> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // A panic there has been printed.
        self.thread.take().map(JoinHandle::join);
    }
}

/// One client, who asks again as soon as its answer is over.
struct Client {
    rng: Rng,
    answer: Option<Answer>,
}

/// An answer that is being read.
struct Answer {
    stream: TcpStream,
    read_at: Instant,
    leaves_at: Option<Instant>,
    end: Vec<u8>,
}

impl Client {
    fn new(number: usize) -> Self {
        Self { rng: Rng::with_seed(number as u64), answer: None }
    }

    /// Asks, reads or leaves, if it is time for that.
    fn turn(&mut self, wish: &Wish, now: Instant) -> Result<(), Error> {
        let is_over = match &mut self.answer {
            None => true,
            Some(answer) if answer.leaves_at.is_some_and(|time| time <= now) => true,
            Some(answer) if answer.read_at <= now => {
                answer.read_at = now + READ_EVERY;
                answer.read()?
            }
            Some(_) => false,
        };
        if is_over {
            self.answer = Some(self.ask(wish, now)?);
        }
        Ok(())
    }

    fn ask(&mut self, wish: &Wish, now: Instant) -> Result<Answer, Error> {
        let rng = &mut self.rng;
        let leaves = rng.f64() < wish.leaving;
        let patience = Duration::from_millis(rng.u64(..LEAVE_WITHIN_MS));
        let body = raw::stream_body(rng.usize(..1 << 20), rng.u32(wish.tokens.clone()));
        let mut stream = TcpStream::connect(wish.address)?;
        stream.write_all(&raw::post(&body))?;
        stream.set_nonblocking(true)?;
        Ok(Answer {
            stream,
            // Not all in the same moment.
            read_at: now + READ_EVERY.mul_f64(rng.f64()),
            leaves_at: leaves.then(|| now + patience),
            end: Vec::new(),
        })
    }
}

impl Answer {
    /// Reads what is there; whether that was the end.
    fn read(&mut self) -> Result<bool, Error> {
        let mut buffer = [0; 16 << 10];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return whole(&self.end).map(|()| true),
                Ok(count) => {
                    let last = &buffer[count.saturating_sub(END_BYTES)..count];
                    self.end.extend_from_slice(last);
                    self.end.drain(..self.end.len().saturating_sub(END_BYTES));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }
}

fn whole(end: &[u8]) -> Result<(), Error> {
    let done = b"data: [DONE]";
    if end.windows(done.len()).any(|part| part == done) {
        return Ok(());
    }
    let text = String::from_utf8_lossy(end);
    Err(Error::other(format!("a stream ended without [DONE]: {text:?}")))
}
