//! The streams: each client asks again as soon as its answer is over.

use std::cell::RefCell;
use std::error::Error;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::time::Duration;

use fastrand::Rng;
use pleach::bench::{Client, Endpoint, Request};
use tokio::task::JoinHandle;

use super::drain::{Drain, Wish};
use super::raw;
use super::support::client;

/// Streams that are read token by token.
const WATCHED: usize = 16;

#[derive(Default)]
struct Found {
    gaps: Vec<Duration>,
    failures: Vec<String>,
}

/// Clients that go on until this is dropped.
pub struct Crowd {
    found: Rc<RefCell<Found>>,
    watchers: Vec<JoinHandle<()>>,
    others: Drain,
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
        let found = Rc::<RefCell<Found>>::default();
        let watcher = client::client(url)?;
        let watch = |which| {
            let found = Rc::clone(&found);
            actix_rt::spawn(watch(watcher.clone(), which, tokens.clone(), found))
        };
        let watchers = (0..WATCHED.min(clients)).map(watch).collect();
        let address = url.trim_start_matches("http://").parse()?;
        let wish = Wish { address, tokens: tokens.clone(), leaving };
        let others = Drain::start(WATCHED..clients.max(WATCHED), wish)?;
        Ok(Self { found, watchers, others })
    }

    /// The gaps between tokens of the answers that ended since the last call.
    pub fn take_gaps(&self) -> Vec<Duration> {
        std::mem::take(&mut self.found.borrow_mut().gaps)
    }

    /// Everyone leaves; an error if somebody could not do what it should.
    pub fn end(self) -> Result<(), String> {
        let mut failures = self.others.failures();
        failures.extend_from_slice(&self.found.borrow().failures);
        match failures.first() {
            Some(first) => Err(format!("{} streams failed, the first: {first}", failures.len())),
            None => Ok(()),
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.watchers.iter().for_each(JoinHandle::abort);
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
