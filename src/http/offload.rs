//! Where parsing, rendering and tokenising run: small work in place, big work off the HTTP worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix_web::web;

use super::error::ApiError;

/// Asks whether the client is still there.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// An error once the request was dropped; nobody sees it, it only ends the work.
    pub fn check(&self) -> Result<(), ApiError> {
        if self.0.load(Ordering::Relaxed) { Err(ApiError::Internal) } else { Ok(()) }
    }
}

struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` in place for inputs up to `threshold_bytes`, on the blocking pool for bigger ones.
/// Work that is still queued there when the request is dropped does not start; work that has started
/// sees it at its next [`Cancel::check`].
pub async fn run<T: Send + 'static>(
    input_bytes: usize,
    threshold_bytes: usize,
    work: impl FnOnce(&Cancel) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    if input_bytes <= threshold_bytes {
        return work(&Cancel::default());
    }
    let cancel = Cancel::default();
    let guard = CancelOnDrop(cancel.clone());
    let result = web::block(move || {
        cancel.check()?;
        work(&cancel)
    })
    .await;
    drop(guard);
    result.unwrap_or_else(|error| {
        tracing::error!(%error, "work on the blocking pool failed");
        Err(ApiError::Internal)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix_web::test]
    async fn both_ways_give_the_same_and_a_panic_is_an_error() {
        for size in [1, 100] {
            assert_eq!(run(size, 10, |_| Ok(7)).await, Ok(7));
        }
        let failed: Result<(), ApiError> = run(100, 10, |_| panic!("on purpose")).await;
        assert_eq!(failed, Err(ApiError::Internal));
    }

    #[actix_web::test]
    async fn dropping_the_request_is_seen_by_running_work() {
        let (started_tx, started_rx) = tokio::sync::oneshot::channel();
        let (ended_tx, ended_rx) = tokio::sync::oneshot::channel();
        let task = run(100, 10, move |cancel| {
            let _ = started_tx.send(());
            while cancel.check().is_ok() {
                std::thread::yield_now();
            }
            let _ = ended_tx.send(());
            Ok(())
        });
        let task = actix_web::rt::spawn(task);
        started_rx.await.unwrap();
        task.abort();
        ended_rx.await.unwrap();
    }
}
