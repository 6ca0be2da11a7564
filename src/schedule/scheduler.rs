//! The scheduler's state and what sessions ask of it.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::entry::{Entry, Phase};
use super::event::{Effects, Event, Notice, SessionId, Submission};
use super::grace::Grace;
use super::pace::Pace;
use super::prefix::PrefixIndex;
use super::queue::FairQueue;
use super::reuse::Reuse;
use super::room::Room;
use super::settings::{Health, Settings, Stats};
use super::step::InFlight;
use crate::TokenId;
use crate::device::{DeviceInfo, SequenceOp, Slot};
use crate::session::Outcome;

/// Weight of the latest session in the measured length of answers.
const ANSWER_WEIGHT: f64 = 0.05;

/// Decides which sessions' tokens go into the next step. See the module's documentation.
///
/// Invariants, told by [`Scheduler::check`]: a slot is free or belongs to one session; a session is
/// in the queue or has a slot, or lost its sequence while it was to answer; no sequence is longer
/// than the context, and all together are no longer than the device's room.
#[derive(Debug)]
pub struct Scheduler {
    pub(super) step_deadline: Duration,
    pub(super) context_tokens: u32,
    pub(super) batch_tokens_max: u32,
    pub(super) capacity: usize,
    pub(super) entries: FxHashMap<SessionId, Entry>,
    pub(super) queue: FairQueue,
    pub(super) running: BTreeSet<SessionId>,
    /// The lowest is taken first: neighbouring sequences are cheaper on the ggml device.
    pub(super) free_slots: BTreeSet<Slot>,
    /// What has to happen to sequences before the next step, in this order.
    pub(super) operations: Vec<SequenceOp>,
    /// The device's sequences are in an unknown state.
    pub(super) must_reset: bool,
    pub(super) room: Room,
    pub(super) prefixes: PrefixIndex,
    pub(super) reuse: Reuse,
    pub(super) pace: Pace,
    pub(super) mixed_lengths: bool,
    pub(super) draft_tokens: u32,
    drafted_tokens: u64,
    kept_drafts: u64,
    pub(super) in_flight: Option<InFlight>,
    pub(super) epoch: u64,
    /// Sessions that were given rows and are waited for, until then.
    pub(super) awaited: usize,
    pub(super) grace: Option<Grace>,
    /// The tick that was last asked for.
    pub(super) wake_at: Option<Instant>,
    pub(super) faults: VecDeque<Instant>,
    pub(super) waiting_tokens: u64,
    pub(super) preemptions: u64,
    /// Tokens of an answer, of late.
    answer_tokens: f64,
}

impl Scheduler {
    /// A scheduler for a device that holds no sequence.
    pub fn new(settings: Settings, device: &DeviceInfo) -> Self {
        let can = device.capabilities;
        let prefix_bytes = if can.save_state { settings.prefix_bytes } else { 0 };
        Self {
            step_deadline: settings.step_deadline,
            context_tokens: device.context_tokens,
            batch_tokens_max: device.max_batch_tokens,
            capacity: device.max_sequences as usize,
            entries: FxHashMap::default(),
            queue: FairQueue::new(settings.weights),
            running: BTreeSet::new(),
            free_slots: (0..device.max_sequences).map(Slot).collect(),
            operations: Vec::new(),
            must_reset: false,
            room: Room::new(device.kv_tokens),
            prefixes: PrefixIndex::new(prefix_bytes, can.trim),
            reuse: Reuse::new(settings.prefix_bytes > 0 && can.copy && can.trim),
            pace: Pace::new(settings.target_step),
            mixed_lengths: can.mixed_lengths,
            draft_tokens: if can.trim { settings.draft_tokens } else { 0 },
            drafted_tokens: 0,
            kept_drafts: 0,
            in_flight: None,
            epoch: 0,
            awaited: 0,
            grace: None,
            wake_at: None,
            faults: VecDeque::new(),
            waiting_tokens: 0,
            preemptions: 0,
            answer_tokens: 0.0,
        }
    }

    /// Takes what happened; says what is to be done.
    pub fn on_event(&mut self, now: Instant, event: Event) -> Effects {
        let mut effects = Effects::default();
        match event {
            Event::Submit(submission) => self.submit(submission),
            Event::Next { session, tokens, drafts } => {
                self.next(session, &tokens, drafts, &mut effects);
                if let Some(grace) = &mut self.grace {
                    grace.answered(now);
                }
            }
            Event::Pause(session) => self.pause(session),
            Event::Leave(session) => self.leave(session),
            Event::StepDone(done) => self.step_done(now, done, &mut effects),
            Event::Tick => self.check_deadline(now, &mut effects),
        }
        self.start_step(now, &mut effects);
        self.abort_if_useless(&mut effects);
        effects
    }

    /// Whether the device answers.
    pub fn health(&self) -> Health {
        match &self.in_flight {
            Some(flight) if flight.hung => Health::Hung,
            Some(_) | None => Health::Good,
        }
    }

    /// When the running step started.
    pub fn step_started(&self) -> Option<Instant> {
        self.in_flight.as_ref().map(|flight| flight.started)
    }

    /// Tokens that a session may draft; 0 where the device cannot take wrong ones back.
    pub fn draft_tokens(&self) -> u32 {
        self.draft_tokens
    }

    /// Whether prompts use what was computed for others: by saved sequences, and by copies of those
    /// that run.
    pub fn reuses(&self) -> (bool, bool) {
        (self.prefixes.is_on(), self.reuse.can_copy())
    }

    /// What is held now.
    pub fn stats(&self) -> Stats {
        let answer = self.answer_tokens as u32;
        let (mut held, mut work) = (0, self.waiting_tokens);
        for entry in self.running.iter().filter_map(|id| self.entries.get(id)) {
            let to_come = entry.to_come().min(answer.saturating_sub(entry.answered()));
            held += u64::from(entry.held());
            work += u64::from(entry.pending()) + u64::from(to_come);
        }
        Stats {
            running: self.running.len(),
            waiting: self.queue.waiting(),
            capacity: self.capacity,
            waiting_tokens: self.waiting_tokens,
            work_tokens: work + self.queue.waiting() as u64 * u64::from(answer),
            room_tokens: self.room.device_tokens(),
            held_tokens: held,
            prefix_queried_tokens: self.reuse.queried_tokens,
            prefix_hit_tokens: self.reuse.hit_tokens,
            prefix_bytes: self.prefixes.bytes(),
            prefix_evictions: self.prefixes.evictions(),
            drafted_tokens: self.drafted_tokens,
            kept_drafts: self.kept_drafts,
            preemptions: self.preemptions,
        }
    }

    fn submit(&mut self, submission: Submission) {
        let session = submission.session;
        let entry = Entry::new(submission);
        self.queue.join(session, &entry.client);
        self.waiting_tokens += u64::from(entry.total());
        self.entries.insert(session, entry);
    }

    fn next(
        &mut self,
        session: SessionId,
        tokens: &[TokenId],
        mut drafts: Vec<TokenId>,
        effects: &mut Effects,
    ) {
        let Some(entry) = self.entries.get_mut(&session) else { return };
        if entry.phase == Phase::Pending || tokens.is_empty() {
            return;
        }
        if entry.total() as usize + tokens.len() > self.context_tokens as usize {
            self.end(session, Outcome::Length, effects);
            return;
        }
        let awaited = entry.phase == Phase::Awaiting;
        let drafted = entry.drafted;
        let room = self.context_tokens as usize - entry.total() as usize - tokens.len();
        drafts.truncate(room.min(self.draft_tokens as usize));
        let kept = entry.append(tokens, drafts);
        if drafted > 0 {
            entry.luck.tried(drafted, kept);
            self.drafted_tokens += u64::from(drafted);
            self.kept_drafts += u64::from(kept);
        }
        if let Some(slot) = entry.slot.filter(|_| kept < drafted) {
            let length_tokens = entry.computed;
            self.operations.push(SequenceOp::Trim { slot, length_tokens });
        }
        if entry.slot.is_none() {
            self.queue.wait(session, &entry.client);
            self.waiting_tokens += u64::from(entry.total());
        }
        if awaited {
            self.stop_awaiting();
        }
    }

    fn pause(&mut self, session: SessionId) {
        let Some(entry) = self.entries.get_mut(&session) else { return };
        if entry.phase == Phase::Awaiting {
            entry.phase = Phase::Paused;
            self.stop_awaiting();
        }
    }

    /// A session is over. What it computed is kept for others, unless the running step is just
    /// changing it.
    fn leave(&mut self, session: SessionId) {
        let stable = !self.in_flight.as_ref().is_some_and(|flight| flight.holds(session));
        if stable {
            self.save_sequence(session);
        }
        self.remove(session);
    }

    /// Forgets a session and all it holds.
    pub(super) fn remove(&mut self, session: SessionId) {
        let Some(entry) = self.entries.remove(&session) else { return };
        if entry.slot.is_none() && entry.phase == Phase::Pending {
            self.waiting_tokens -= u64::from(entry.total());
        }
        self.queue.leave(session, &entry.client);
        self.running.remove(&session);
        if entry.phase == Phase::Awaiting {
            self.stop_awaiting();
        }
        if let Some(slot) = entry.slot {
            self.free_slots.insert(slot);
            self.operations.push(SequenceOp::Release(slot));
        }
        if entry.answered() > 0 {
            let answered = f64::from(entry.answered());
            self.answer_tokens += ANSWER_WEIGHT * (answered - self.answer_tokens);
        }
    }

    pub(super) fn stop_awaiting(&mut self) {
        self.awaited = self.awaited.saturating_sub(1);
    }

    /// Ends a session that has not ended itself.
    pub(super) fn end(&mut self, session: SessionId, outcome: Outcome, effects: &mut Effects) {
        self.remove(session);
        effects.notices.push((session, Notice::End(outcome)));
    }
}
