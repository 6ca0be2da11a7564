//! Requests take turns on an HTTP worker.
//!
//! A worker does what is ready in the order in which it became so. Reading a request (JSON, template,
//! tokens) takes longer than all else that it does in one go, so where thousands arrive at once a
//! probe, or the next token of a stream, would wait behind all of them. So they wait here, once
//! their body is there and once more before the head of a stream that has nothing to say yet, and a
//! few go on each time that the worker comes round.

use tokio::sync::Semaphore;
use tokio::task::yield_now;

/// Requests that go on in a round.
const PER_ROUND: usize = 8;

/// Who goes on next, in the order of arrival.
#[derive(Debug)]
pub struct Turns(Semaphore);

impl Turns {
    /// For as many workers.
    pub fn new(workers: usize) -> Self {
        Self(Semaphore::new(PER_ROUND * workers.max(1)))
    }

    /// Waits until it is the caller's turn. It is over when the caller next waits for something.
    pub async fn take(&self) {
        // Never closed, so it is always given.
        let turn = self.0.acquire().await;
        // Back in line behind all that is ready now: no more than those with a turn pass meanwhile.
        yield_now().await;
        drop(turn);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    #[actix_web::test]
    async fn who_comes_after_many_waits_for_few() {
        const MANY: usize = 500;
        let (turns, passed) = (Rc::new(Turns::new(1)), Rc::new(Cell::new(0)));
        let request = |_| {
            let (turns, passed) = (Rc::clone(&turns), Rc::clone(&passed));
            actix_web::rt::spawn(async move {
                turns.take().await;
                passed.set(passed.get() + 1);
            })
        };
        let requests: Vec<_> = (0..MANY).map(request).collect();
        let counted = Rc::clone(&passed);
        let probe = actix_web::rt::spawn(async move { counted.get() });
        assert!(probe.await.unwrap() <= PER_ROUND, "a probe waits for no more than a round");
        for request in requests {
            request.await.unwrap();
        }
        assert_eq!(passed.get(), MANY, "all get their turn");
    }

    #[actix_web::test]
    async fn who_leaves_the_line_holds_nobody_up() {
        let turns = Rc::new(Turns::new(1));
        let waiting: Vec<_> = (0..100)
            .map(|_| {
                let turns = Rc::clone(&turns);
                actix_web::rt::spawn(async move { turns.take().await })
            })
            .collect();
        yield_now().await;
        waiting.iter().for_each(|task| task.abort());
        turns.take().await;
        yield_now().await;
        assert_eq!(turns.0.available_permits(), PER_ROUND);
    }
}
