//! A session's actor: owns all that belongs to one generation, and carries its messages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::fut::wrap_future;
use actix::{Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler};
use metrics::counter;
use tokio::sync::mpsc;

use super::messages::{Finish, Happened, Overdue, Told};
use super::meters::Meters;
use super::outbox;
use super::registry::Registration;
use super::scheduler::SchedulerActor;
use super::watch::Watch;
use crate::schedule::{Event, Notice, SessionId, Submission};
use crate::session::{Delta, Fault, Frame, FrameBody, Outcome, Progress, Session, Summary, Then};
use crate::telemetry::live::LiveGuard;
use crate::telemetry::metrics as names;

/// How long a session may take, and wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadlines {
    /// From submission to the end.
    pub(super) request: Option<Duration>,
    /// From submission to the first step.
    pub(super) queue: Option<Duration>,
    /// For a client that does not read.
    pub(super) stall: Duration,
}

/// See the module's documentation. The fields are in drop order: what the generation owns, then
/// the ways out, then what it holds of others.
pub(super) struct SessionActor {
    pub(super) id: SessionId,
    pub(super) session: Session,
    pub(super) request_id: Arc<str>,
    pub(super) client: Arc<str>,
    pub(super) deadlines: Deadlines,
    pub(super) meters: Meters,
    pub(super) clock: SessionClock,
    /// What waits for room in the channel, and what happens once it has gone.
    pub(super) held: Option<Progress>,
    /// From the start of the actor on.
    pub(super) watch: Option<Watch>,
    pub(super) outcome: Option<Outcome>,
    pub(super) out: mpsc::Sender<Frame>,
    /// Room for the last frame, so that it can always be sent.
    pub(super) last: Option<mpsc::OwnedPermit<Frame>>,
    pub(super) lease: Lease,
    pub(super) _registration: Registration,
    pub(super) _permit: Arc<dyn Send + Sync>,
    pub(super) _live: LiveGuard,
    pub(super) _live_grammar: Option<LiveGuard>,
}

/// When things happened to a session.
pub(super) struct SessionClock {
    submitted: Instant,
    started: Option<Instant>,
    first_token: Option<Instant>,
    last_token: Instant,
}

impl SessionClock {
    pub(super) fn new(now: Instant) -> Self {
        Self { submitted: now, started: None, first_token: None, last_token: now }
    }
}

/// What a session holds of the scheduler; dropping it gives everything back.
pub(super) struct Lease {
    pub(super) id: SessionId,
    pub(super) scheduler: Addr<SchedulerActor>,
}

impl Lease {
    fn tell(&self, event: Event) {
        self.scheduler.do_send(Happened(event));
    }

    /// The same for what comes at every step, together with what others say. Anything told may
    /// overtake it: an answer of a session that has left is passed over, and one that pauses has
    /// not answered.
    fn answer(&self, event: Event) {
        outbox::say(&self.scheduler, event);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.tell(Event::Leave(self.id));
    }
}

impl SessionActor {
    fn submission(&self) -> Submission {
        let generation = self.session.generation();
        Submission {
            session: self.id,
            client: Arc::clone(&self.client),
            prompt: Arc::clone(&generation.prompt),
            prompt_rows: self.session.wants_prompt_rows(),
            answer_tokens_max: generation.max_tokens,
        }
    }

    /// Carries out what the session said: its text first, then what follows.
    fn proceed(&mut self, mut progress: Progress, ctx: &mut Context<Self>) {
        // Rows of a prompt that is echoed come without being asked for, also while the client is
        // waited for.
        if let Some(held) = &mut self.held {
            held.extend(progress);
            return;
        }
        if let Some(delta) = progress.delta.take() {
            match self.out.try_send(self.frame(delta)) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(frame)) => {
                    if let FrameBody::Delta(delta) = frame.body {
                        progress.delta = Some(delta);
                    }
                    self.wait_for_client(progress, ctx);
                    return;
                }
                Err(mpsc::error::TrySendError::Closed(_)) => {
                    self.finish(Outcome::ClientGone, ctx);
                    return;
                }
            }
        }
        match progress.then {
            Then::Wait => {}
            Then::Feed(tokens) => {
                let drafts = self.session.draft().to_vec();
                self.lease.answer(Event::Next { session: self.id, tokens, drafts });
                self.prepare();
            }
            Then::End(outcome) => self.finish(outcome, ctx),
        }
    }

    /// Uses the time of the step.
    fn prepare(&mut self) {
        if self.session.is_constrained() {
            let started = Instant::now();
            self.session.prepare();
            self.meters.grammar_mask.record(started.elapsed());
        }
    }

    /// The client reads too slowly: nothing is lost, the others are not held up, and after a while
    /// it is given up.
    fn wait_for_client(&mut self, progress: Progress, ctx: &mut Context<Self>) {
        self.meters.stalls.increment(1);
        self.held = Some(progress);
        self.lease.tell(Event::Pause(self.id));
        let out = self.out.clone();
        let stall = self.deadlines.stall;
        let room = async move { tokio::time::timeout(stall, out.reserve_owned()).await };
        ctx.spawn(wrap_future(room).map(|room, actor: &mut Self, ctx| match room {
            Ok(Ok(room)) => actor.resume(room, ctx),
            Ok(Err(_)) => actor.finish(Outcome::ClientGone, ctx),
            Err(_) => actor.finish(Outcome::SlowClient, ctx),
        }));
    }

    fn resume(&mut self, room: mpsc::OwnedPermit<Frame>, ctx: &mut Context<Self>) {
        let Some(mut progress) = self.held.take() else { return };
        if let Some(delta) = progress.delta.take() {
            room.send(self.frame(delta));
        }
        self.proceed(progress, ctx);
    }

    fn frame(&self, delta: Delta) -> Frame {
        Frame { choice: self.session.generation().choice, body: FrameBody::Delta(delta) }
    }

    fn told(&mut self, notice: Notice, ctx: &mut Context<Self>) {
        if self.outcome.is_some() {
            return;
        }
        match notice {
            Notice::Started => self.clock.started = Some(Instant::now()),
            Notice::Rows { rows, prompt_done, cached_tokens } => {
                self.session.set_cached_tokens(cached_tokens);
                let before = self.session.usage().completion_tokens;
                let forced = self.session.forced_tokens();
                let progress = self.session.on_rows(&rows, prompt_done);
                // The rows' memory goes back to the device before anything can wait.
                drop(rows);
                let tokens = self.session.usage().completion_tokens - before;
                if tokens > 0 {
                    self.count_tokens(tokens);
                    self.meters.forced.increment(u64::from(self.session.forced_tokens() - forced));
                }
                self.proceed(progress, ctx);
            }
            Notice::End(outcome) => {
                let progress = self.session.end(outcome);
                self.proceed(progress, ctx);
            }
        }
    }

    fn count_tokens(&mut self, tokens: u32) {
        let now = Instant::now();
        self.meters.generation_tokens.increment(u64::from(tokens));
        if self.clock.first_token.is_none() {
            self.clock.first_token = Some(now);
            self.meters.time_to_first_token.record(now - self.clock.submitted);
        } else {
            self.meters.inter_token.record(now - self.clock.last_token);
        }
        self.clock.last_token = now;
    }

    /// The one way out: says how it ended and stops. Everything else is `Drop`.
    fn finish(&mut self, outcome: Outcome, ctx: &mut Context<Self>) {
        if self.outcome.is_some() {
            return;
        }
        let summary = Summary {
            outcome: outcome.clone(),
            has_called: self.session.has_called(),
            usage: self.session.usage(),
            queue_time: self.queue_time(),
            time_to_first_token: self.clock.first_token.map(|at| at - self.clock.submitted),
        };
        if let Some(room) = self.last.take() {
            let choice = self.session.generation().choice;
            room.send(Frame { choice, body: FrameBody::Done(summary) });
        }
        self.outcome = Some(outcome);
        ctx.stop();
    }

    fn queue_time(&self) -> Duration {
        self.clock.started.unwrap_or(self.clock.last_token) - self.clock.submitted
    }

    fn record_end(&self, outcome: &Outcome) {
        counter!(names::SESSIONS_FINISHED_TOTAL, "outcome" => outcome.label()).increment(1);
        if let Some(reason) = outcome.finish_reason() {
            counter!(names::REQUEST_SUCCESS_TOTAL, "finished_reason" => reason.as_str())
                .increment(1);
        }
        let now = Instant::now();
        let usage = self.session.usage();
        let clock = &self.clock;
        self.meters.end_to_end.record(now - clock.submitted);
        if let Some(started) = clock.started {
            self.meters.prompt_tokens.increment(u64::from(usage.prompt_tokens));
            self.meters.queue_time.record(started - clock.submitted);
            if let Some(first) = clock.first_token {
                self.meters.prefill_time.record(first - started);
                self.meters.decode_time.record(clock.last_token - first);
            }
        }
        tracing::info!(
            request_id = %self.request_id,
            client = %self.client,
            choice = self.session.generation().choice,
            outcome = outcome.label(),
            detail = ?outcome,
            prompt_tokens = usage.prompt_tokens,
            completion_tokens = usage.completion_tokens,
            queue_ms = self.queue_time().as_millis() as u64,
            total_ms = (now - clock.submitted).as_millis() as u64,
            "session finished"
        );
    }
}

impl Drop for SessionActor {
    fn drop(&mut self) {
        let outcome = self.outcome.take().unwrap_or(if std::thread::panicking() {
            Outcome::Fault(Fault::Panic)
        } else {
            Outcome::TornDown
        });
        self.record_end(&outcome);
    }
}

impl Actor for SessionActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let address = ctx.address().downgrade();
        self.watch = Some(Watch::start(address, self.out.clone(), self.deadlines));
        let progress = self.session.start();
        if progress.then == Then::Wait {
            self.lease.tell(Event::Submit(self.submission()));
            self.prepare();
        }
        self.proceed(progress, ctx);
    }
}

impl Handler<Told> for SessionActor {
    type Result = ();

    fn handle(&mut self, Told(notice): Told, ctx: &mut Self::Context) {
        self.told(notice, ctx);
    }
}

impl Handler<Overdue> for SessionActor {
    type Result = ();

    fn handle(&mut self, _: Overdue, ctx: &mut Self::Context) {
        if self.clock.started.is_none() {
            self.finish(Outcome::QueueDeadline, ctx);
        }
    }
}

impl Handler<Finish> for SessionActor {
    type Result = ();

    fn handle(&mut self, Finish(outcome): Finish, ctx: &mut Self::Context) {
        self.finish(outcome, ctx);
    }
}
