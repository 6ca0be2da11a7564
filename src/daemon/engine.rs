//! The runtime as the HTTP room sees it: there or not there yet.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use tokio::sync::mpsc;

use crate::actors::{EngineHealth, Request, Runtime};
use crate::http::engine::{Engine, EngineStatus, Health, Job};
use crate::session::Frame;

/// What the daemon is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Lifecycle {
    /// The model is being loaded.
    #[default]
    Loading,
    /// It answers.
    Serving,
    /// It finishes what it has.
    Draining,
    /// It ends because of this.
    Unhealthy(String),
}

/// A place for the runtime, which comes after HTTP has started.
#[derive(Default)]
pub(super) struct EngineSlot {
    runtime: OnceLock<Runtime>,
    lifecycle: RwLock<Lifecycle>,
}

impl EngineSlot {
    /// Puts the runtime in its place.
    pub(super) fn start(&self, runtime: Runtime) {
        if self.runtime.set(runtime).is_ok() {
            self.set(Lifecycle::Serving);
        }
    }

    /// Says what the daemon is doing now.
    pub(super) fn set(&self, lifecycle: Lifecycle) {
        *self.lifecycle.write().unwrap_or_else(PoisonError::into_inner) = lifecycle;
    }

    fn health(&self, hung: bool) -> Health {
        match &*self.lifecycle.read().unwrap_or_else(PoisonError::into_inner) {
            Lifecycle::Loading => Health::Loading,
            Lifecycle::Draining => Health::Draining,
            Lifecycle::Unhealthy(reason) => Health::Unhealthy(reason.clone()),
            Lifecycle::Serving if hung => {
                Health::Unhealthy("the device has not finished its step in time".to_owned())
            }
            Lifecycle::Serving => Health::Ready,
        }
    }
}

impl Engine for EngineSlot {
    fn submit(&self, job: Job) -> mpsc::Receiver<Frame> {
        match self.runtime.get() {
            Some(runtime) => runtime.submit(Request {
                request_id: job.request_id,
                client: job.client,
                generations: job.generations,
                permit: Arc::new(job.permit),
                deadline: job.deadline,
                frame_capacity: job.frame_capacity,
            }),
            // A closed channel: the routes make an error of it.
            None => mpsc::channel(1).1,
        }
    }

    fn status(&self) -> EngineStatus {
        let Some(runtime) = self.runtime.get() else {
            return EngineStatus {
                health: self.health(false),
                queued: 0,
                waiting_tokens: 0,
                tokens_per_second: 0.0,
            };
        };
        let status = runtime.status();
        EngineStatus {
            health: self.health(status.health == EngineHealth::Hung),
            queued: usize::try_from(status.waiting).unwrap_or(usize::MAX),
            waiting_tokens: status.work_tokens,
            tokens_per_second: status.tokens_per_second,
        }
    }
}
