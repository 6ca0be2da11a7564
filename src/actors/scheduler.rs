//! The scheduler's actor: carries events in and effects out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor, AsyncContext, Context, Handler, SpawnHandle};
use metrics::{counter, gauge};
use tokio::sync::oneshot;

use super::messages::{Answered, Happened};
use super::meters::Meters;
use super::registry::Registry;
use super::status::StatusCell;
use crate::device::thread::DeviceHandle;
use crate::device::{DeviceError, StepFault};
use crate::schedule::{Effects, Event, Health, Scheduler};
use crate::telemetry::live;
use crate::telemetry::metrics as names;

/// How often time is told to the scheduler and the gauges are set.
const TICK: Duration = Duration::from_millis(100);

/// Weight of the latest tick in the measured token rate.
const RATE_WEIGHT: f64 = 0.1;

/// See the module's documentation.
pub(super) struct SchedulerActor {
    rules: Scheduler,
    device: DeviceHandle,
    registry: Registry,
    status: Arc<StatusCell>,
    meters: Meters,
    /// The tick that is due, and when.
    wake: Option<(Instant, SpawnHandle)>,
    tokens_since_tick: u64,
    tokens_per_second: f64,
    last_tick: Instant,
    last_step: Instant,
    in_flight: Option<InFlight>,
    /// Told why when the device is given up; dropped with the actor, which main takes as a death.
    give_up: Option<oneshot::Sender<String>>,
}

struct InFlight {
    sequences: usize,
    tokens: usize,
}

impl SchedulerActor {
    pub(super) fn new(
        rules: Scheduler,
        device: DeviceHandle,
        registry: Registry,
        status: Arc<StatusCell>,
        meters: Meters,
        give_up: oneshot::Sender<String>,
    ) -> Self {
        let now = Instant::now();
        let actor = Self {
            rules,
            device,
            registry,
            status,
            meters,
            wake: None,
            tokens_since_tick: 0,
            tokens_per_second: 0.0,
            last_tick: now,
            last_step: now,
            in_flight: None,
            give_up: Some(give_up),
        };
        actor.publish();
        actor
    }

    fn happened(&mut self, event: Event, ctx: &mut Context<Self>) {
        let ends_step = self.observe(&event);
        let effects = self.rules.on_event(Instant::now(), event);
        self.apply(effects, ctx);
        if ends_step {
            self.publish();
        }
    }

    /// Measures a step that ended.
    fn observe(&mut self, event: &Event) -> bool {
        let Event::StepDone(done) = event else { return false };
        let Some(step) = self.in_flight.take() else { return true };
        self.last_step = Instant::now();
        if step.sequences == 0 {
            return true;
        }
        self.status.count_step();
        let prefill = step.tokens > step.sequences;
        let histogram = if prefill { &self.meters.step_prefill } else { &self.meters.step_decode };
        histogram.record(done.device_time);
        self.meters.batch_size.record(step.sequences as f64);
        match &done.result {
            Ok(_) => self.tokens_since_tick += step.tokens as u64,
            // As it was asked to.
            Err(StepFault::Device(DeviceError::Aborted)) => {}
            Err(StepFault::Restore(lost)) => {
                let first = lost.first().map(|(_, error)| error.to_string());
                tracing::warn!(
                    sequences = lost.len(),
                    reason = first,
                    "sequences could not be brought back and are computed again"
                );
                counter!(names::PREFIX_CACHE_FAILURES_TOTAL).increment(lost.len() as u64);
            }
            Err(fault) => {
                tracing::error!(%fault, sequences = step.sequences, "device fault");
                counter!(names::DEVICE_FAULTS_TOTAL, "kind" => fault_kind(fault)).increment(1);
            }
        }
        true
    }

    fn apply(&mut self, effects: Effects, ctx: &mut Context<Self>) {
        self.registry.tell(effects.notices);
        if effects.abort {
            self.device.abort();
        }
        if let Some(command) = effects.command {
            self.in_flight = Some(InFlight {
                sequences: command.batch.pieces.len(),
                tokens: command.batch.token_count(),
            });
            if let Err(error) = self.device.send(command) {
                self.give_up(error.to_string());
            }
        }
        self.wake_at(effects.wake_at, ctx);
        if let Some(reason) = effects.give_up {
            self.give_up(reason);
        }
    }

    /// Sets the one timer. While sessions answer one after another the time stays the same, and
    /// the timer is left alone.
    fn wake_at(&mut self, at: Option<Instant>, ctx: &mut Context<Self>) {
        if self.wake.map(|(set, _)| set) == at {
            return;
        }
        if let Some((_, handle)) = self.wake.take() {
            ctx.cancel_future(handle);
        }
        if let Some(at) = at {
            let delay = at.saturating_duration_since(Instant::now());
            let handle = ctx.run_later(delay, |actor, ctx| {
                actor.wake = None;
                actor.happened(Event::Tick, ctx);
            });
            self.wake = Some((at, handle));
        }
    }

    fn give_up(&mut self, reason: String) {
        if let Some(sender) = self.give_up.take() {
            // Main may be stopping already and not listen any more.
            let _ = sender.send(reason);
        }
    }

    fn tick(&mut self, ctx: &mut Context<Self>) {
        let hung_before = self.rules.health() == Health::Hung;
        self.happened(Event::Tick, ctx);
        if !hung_before && self.rules.health() == Health::Hung {
            tracing::error!("the device has not finished its step within the deadline");
            counter!(names::DEVICE_FAULTS_TOTAL, "kind" => "hang").increment(1);
        }
        let now = Instant::now();
        let seconds = now.duration_since(self.last_tick).as_secs_f64();
        self.last_tick = now;
        let tokens = std::mem::take(&mut self.tokens_since_tick);
        if tokens > 0 && seconds > 0.0 {
            let latest = tokens as f64 / seconds;
            self.tokens_per_second = if self.tokens_per_second == 0.0 {
                latest
            } else {
                self.tokens_per_second + RATE_WEIGHT * (latest - self.tokens_per_second)
            };
            self.status.publish_rate(self.tokens_per_second);
        }
        self.publish();
        self.set_gauges(now);
    }

    fn publish(&self) {
        let stats = self.rules.stats();
        live::SLOTS.set(stats.running);
        self.status.publish(stats, self.rules.health() == Health::Hung);
    }

    fn set_gauges(&self, now: Instant) {
        let stats = self.rules.stats();
        gauge!(names::NUM_REQUESTS_RUNNING).set(stats.running as f64);
        gauge!(names::NUM_REQUESTS_WAITING).set(stats.waiting as f64);
        gauge!(names::NUM_REQUESTS_CAPACITY).set(stats.capacity as f64);
        gauge!(names::KV_CACHE_USAGE_RATIO).set(stats.held_ratio());
        gauge!(names::PREFIX_CACHE_BYTES).set(stats.prefix_bytes as f64);
        counter!(names::PREFIX_CACHE_QUERIES_TOTAL).absolute(stats.prefix_queried_tokens);
        counter!(names::PREFIX_CACHE_HITS_TOTAL).absolute(stats.prefix_hit_tokens);
        counter!(names::PREFIX_CACHE_EVICTIONS_TOTAL).absolute(stats.prefix_evictions);
        counter!(names::SPEC_DECODE_NUM_DRAFT_TOKENS_TOTAL).absolute(stats.drafted_tokens);
        counter!(names::SPEC_DECODE_NUM_ACCEPTED_TOKENS_TOTAL).absolute(stats.kept_drafts);
        counter!(names::NUM_PREEMPTIONS_TOTAL).absolute(stats.preemptions);
        let age = match self.rules.step_started() {
            Some(_) => now.duration_since(self.last_step).as_secs_f64(),
            None => 0.0,
        };
        gauge!(names::DEVICE_LAST_STEP_AGE_SECONDS).set(age);
    }
}

fn fault_kind(fault: &StepFault) -> &'static str {
    match fault {
        StepFault::Panic(_) => "panic",
        StepFault::RowSize { .. } => "row_size",
        StepFault::Restore(_) => "restore",
        StepFault::Device(_) => "error",
    }
}

impl Actor for SchedulerActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(TICK, Self::tick);
    }
}

impl Handler<Happened> for SchedulerActor {
    type Result = ();

    fn handle(&mut self, Happened(event): Happened, ctx: &mut Self::Context) {
        self.happened(event, ctx);
    }
}

impl Handler<Answered> for SchedulerActor {
    type Result = ();

    fn handle(&mut self, Answered(events): Answered, ctx: &mut Self::Context) {
        for event in events {
            self.happened(event, ctx);
        }
    }
}
