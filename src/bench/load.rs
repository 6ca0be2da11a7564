//! Many clients at once.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::report::Tally;
use super::{Client, Report, Shape};

/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_millis(500);

/// How much is asked.
#[derive(Clone, Debug)]
pub struct Load {
    /// Clients at once; each asks again when it has its answer.
    pub clients: usize,
    /// Requests in all.
    pub requests: usize,
    /// Requests before those, which are not counted.
    pub warmup: usize,
    /// What is asked.
    pub shape: Shape,
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Requests that are over.
    pub finished: usize,
    /// Of these, those without a whole answer.
    pub failed: usize,
    /// Requests in all.
    pub requests: usize,
    /// Since the first.
    pub elapsed: Duration,
}

/// Sends all requests and says what came of them. `tell` hears of the progress twice a second.
pub async fn run(client: &Client, load: &Load, tell: impl Fn(Progress)) -> Report {
    // What fails here fails again, and is counted then.
    let warmup = (0..load.warmup).map(|index| load.shape.request(load.requests + index));
    for request in warmup {
        let _ = client.ask(&request).await;
    }
    let started = Instant::now();
    let (next, tally) = (Cell::new(0), RefCell::new(Tally::default()));
    let clients = (0..load.clients).map(|_| async {
        loop {
            let index = next.get();
            if index >= load.requests {
                return;
            }
            next.set(index + 1);
            let request = load.shape.request(index);
            let answer = client.ask(&request).await;
            tally.borrow_mut().take(&request, answer);
        }
    });
    let mut all = std::pin::pin!(join_all(clients));
    let mut clock = tokio::time::interval(TELL_EVERY);
    loop {
        tokio::select! {
            _ = &mut all => break,
            _ = clock.tick() => {
                let (finished, failed) = tally.borrow().counts();
                let elapsed = started.elapsed();
                tell(Progress { finished, failed, requests: load.requests, elapsed });
            }
        }
    }
    tally.borrow().report(load.shape.workload.name(), load.clients, started.elapsed())
}
