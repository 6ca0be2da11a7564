//! Starts and stops the actors, and takes requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use actix::{Actor, Addr, Arbiter, AsyncContext, Context};
use tokio::sync::{mpsc, oneshot};

use super::messages::Happened;
use super::meters::Meters;
use super::registry::Registry;
use super::scheduler::SchedulerActor;
use super::session::{Deadlines, Lease, SessionActor, SessionClock};
use super::status::{Status, StatusCell};
use crate::device::{Device, DeviceInfo, thread};
use crate::schedule::{Event, Scheduler, SessionId, Settings};
use crate::session::{Frame, Generation, Outcome, Session};
use crate::telemetry::live;
use crate::telemetry::logs::mark_thread;
use crate::vocab::Vocabulary;

/// What the runtime may do.
#[derive(Clone, Debug)]
pub struct RuntimeSettings {
    /// Threads for sessions, at least 1.
    pub session_threads: usize,
    /// See [`Settings`].
    pub schedule: Settings,
    /// A session that waits longer for a slot ends with `QueueDeadline`.
    pub queue_deadline: Option<Duration>,
    /// A session whose client reads nothing for longer ends with `SlowClient`.
    pub stall_timeout: Duration,
}

/// One request: its generations share a channel and a permit.
pub struct Request {
    /// For the log.
    pub request_id: Arc<str>,
    /// Who asked, for the log.
    pub client: Arc<str>,
    /// What to generate; each becomes a session.
    pub generations: Vec<Generation>,
    /// Held until the last of the sessions is gone.
    pub permit: Arc<dyn Send + Sync>,
    /// From now to the end of each session.
    pub deadline: Option<Duration>,
    /// Frames that may wait for the client, at least 1.
    pub frame_capacity: usize,
}

/// Why the runtime did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The system has no thread to give.
    #[error("cannot start the device thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// The way to the running actors; cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

struct Inner {
    settings: RuntimeSettings,
    scheduler: Addr<SchedulerActor>,
    registry: Registry,
    status: Arc<StatusCell>,
    meters: Meters,
    vocabulary: Arc<Vocabulary>,
    row_length: usize,
    draft_tokens: u32,
    next_session: AtomicU64,
}

/// What has to be joined when the runtime stops, in [`Threads::stop`].
pub struct Threads {
    sessions: Vec<Arbiter>,
    engine: Arbiter,
    device: JoinHandle<()>,
    /// Resolves with a reason when the device is given up, and with an error when the scheduler
    /// has died. Either way the process has to end.
    pub given_up: oneshot::Receiver<String>,
}

impl Runtime {
    /// Starts the threads and actors around a device. Must be called inside an actix `System`.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(
        device: Box<dyn Device>,
        vocabulary: Arc<Vocabulary>,
        settings: RuntimeSettings,
    ) -> Result<(Self, Threads), StartError> {
        let info = device.info().clone();
        let status = Arc::new(StatusCell::default());
        let meters = Meters::new();
        let (give_up, given_up) = oneshot::channel();
        let engine = arbiter("scheduler");
        let sessions: Vec<Arbiter> =
            (0..settings.session_threads.max(1)).map(|_| arbiter("session")).collect();
        let registry = Registry::new(sessions.iter().map(Arbiter::handle).collect());

        // The device answers only what the scheduler asks, so the address is there by then.
        let address: Arc<OnceLock<Addr<SchedulerActor>>> = Arc::default();
        let done_to = Arc::clone(&address);
        let (handle, thread) = thread::spawn(device, move |done| {
            if let Some(scheduler) = done_to.get() {
                scheduler.do_send(Happened(Event::StepDone(done)));
            }
        })?;
        let rules = scheduler(settings.schedule.clone(), &info);
        let draft_tokens = rules.draft_tokens();
        let actor = SchedulerActor::new(
            rules,
            handle,
            registry.clone(),
            Arc::clone(&status),
            meters.clone(),
            give_up,
        );
        let scheduler = SchedulerActor::start_in_arbiter(&engine.handle(), |_| actor);
        let scheduler = address.get_or_init(|| scheduler).clone();
        let inner = Inner {
            settings,
            scheduler,
            registry,
            status,
            meters,
            vocabulary,
            row_length: info.vocab_size,
            draft_tokens,
            next_session: AtomicU64::new(0),
        };
        let threads = Threads { sessions, engine, device: thread, given_up };
        Ok((Self { inner: Arc::new(inner) }, threads))
    }

    /// Starts every generation of a request as a session of its own. Dropping the receiver ends
    /// them all; a receiver that closes with a generation not done means that its session is lost.
    pub fn submit(&self, request: Request) -> mpsc::Receiver<Frame> {
        // Each session keeps one place for its last frame.
        let capacity = request.frame_capacity.max(1) + request.generations.len();
        let (out, frames) = mpsc::channel(capacity);
        for generation in request.generations {
            let deadlines = Deadlines {
                request: request.deadline,
                queue: self.inner.settings.queue_deadline,
                stall: self.inner.settings.stall_timeout,
            };
            self.inner.start_session(
                generation,
                SessionParts {
                    request_id: Arc::clone(&request.request_id),
                    client: Arc::clone(&request.client),
                    permit: Arc::clone(&request.permit),
                    deadlines,
                    out: out.clone(),
                },
            );
        }
        frames
    }

    /// What the runtime is doing.
    pub fn status(&self) -> Status {
        self.inner.status.read()
    }

    /// Sessions that have not ended.
    pub fn live_sessions(&self) -> usize {
        self.inner.registry.len()
    }

    /// Ends every session.
    pub fn finish_all(&self, outcome: &Outcome) {
        self.inner.registry.finish_all(outcome);
    }

    #[cfg(test)]
    pub(super) fn registry(&self) -> &Registry {
        &self.inner.registry
    }
}

/// What a session gets from its request.
struct SessionParts {
    request_id: Arc<str>,
    client: Arc<str>,
    permit: Arc<dyn Send + Sync>,
    deadlines: Deadlines,
    out: mpsc::Sender<Frame>,
}

impl Inner {
    fn start_session(&self, generation: Generation, parts: SessionParts) {
        let id = SessionId(self.next_session.fetch_add(1, Ordering::Relaxed));
        let arbiter = self.registry.arbiter(id);
        let vocabulary = Arc::clone(&self.vocabulary);
        let (row_length, draft_tokens) = (self.row_length, self.draft_tokens);
        let meters = self.meters.clone();
        let scheduler = self.scheduler.clone();
        let registry = self.registry.clone();
        let live = live::SESSIONS.guard();
        let live_grammar = generation.constraint.is_some().then(|| live::GRAMMARS.guard());
        let last = parts.out.clone().try_reserve_owned().ok();
        let submitted = Instant::now();
        // An arbiter that has ended drops the closure: the channel closes, and the client is told.
        arbiter.spawn_fn(move || {
            let context = Context::<SessionActor>::new();
            let registration = registry.register(id, context.address());
            context.run(SessionActor {
                id,
                session: Session::new(generation, vocabulary, row_length).with_drafts(draft_tokens),
                request_id: parts.request_id,
                client: parts.client,
                deadlines: parts.deadlines,
                meters,
                clock: SessionClock::new(submitted),
                held: None,
                watch: None,
                outcome: None,
                out: parts.out,
                last,
                lease: Lease { id, scheduler },
                _registration: registration,
                _permit: parts.permit,
                _live: live,
                _live_grammar: live_grammar,
            });
        });
    }
}

impl Threads {
    /// Stops everything in order: sessions, scheduler, device. The device is waited for at most
    /// `device_patience`; false: it did not end, and the process has to end without it.
    pub async fn stop(self, device_patience: Duration) -> bool {
        for arbiter in self.sessions {
            arbiter.stop();
            join(arbiter);
        }
        // Stopping the engine drops the scheduler, with it the way to the device, whose thread
        // then ends after its step.
        self.engine.stop();
        join(self.engine);
        let end = Instant::now() + device_patience;
        while !self.device.is_finished() {
            if Instant::now() >= end {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        if self.device.join().is_err() {
            tracing::error!("the device thread ended by a panic");
        }
        true
    }
}

/// The rules, and a line in the log where this device limits them.
fn scheduler(settings: Settings, info: &DeviceInfo) -> Scheduler {
    let wanted = settings.prefix_bytes > 0;
    let drafts = settings.draft_tokens > 0;
    let rules = Scheduler::new(settings, info);
    let (saves, copies) = rules.reuses();
    if wanted && !saves {
        tracing::warn!(
            copies,
            "this device cannot save sequences: what prompts have in common is computed for each, \
             but for those that run together where it can copy them"
        );
    }
    if drafts && rules.draft_tokens() == 0 {
        tracing::warn!("this device cannot take tokens back: nothing is drafted");
    }
    rules
}

fn join(arbiter: Arbiter) {
    if arbiter.join().is_err() {
        tracing::error!("an arbiter ended by a panic");
    }
}

fn arbiter(place: &'static str) -> Arbiter {
    let arbiter = Arbiter::new();
    arbiter.spawn_fn(move || mark_thread(place));
    arbiter
}
