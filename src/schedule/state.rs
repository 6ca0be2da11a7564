//! The scheduler's state and its rules.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::entry::{Entry, Phase};
use super::event::{Effects, Event, Notice, SessionId, Submission};
use super::plan::{Budget, Candidate, plan};
use crate::TokenId;
use crate::device::{
    DeviceError, DeviceInfo, Piece, Row, Slot, StepBatch, StepCommand, StepDone, StepFault,
};
use crate::session::{Fault, Outcome};

/// A session that answers within the time of a step, but never less or more than this, joins the
/// next step.
const GRACE_MIN: Duration = Duration::from_millis(1);
const GRACE_MAX: Duration = Duration::from_millis(20);

/// This many device faults within the window, and the device is given up.
const FAULTS_MAX: usize = 3;
const FAULTS_WINDOW: Duration = Duration::from_secs(600);

/// What the scheduler may do; the rest it reads from the device.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Prompt tokens in a step in which other sessions decode, so that a long prompt does not
    /// stall them; at least 1.
    pub prefill_beside_decode_tokens: u32,
    /// A step that takes longer is a hang.
    pub step_deadline: Duration,
}

/// Whether the device answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does, as far as is known.
    Good,
    /// The running step is over its deadline.
    Hung,
}

/// What the scheduler holds, for metrics and for `Retry-After`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Sessions with a slot.
    pub running: usize,
    /// Sessions without one.
    pub waiting: usize,
    /// Slots of the device.
    pub capacity: usize,
    /// Prompt tokens of the waiting sessions.
    pub waiting_tokens: u64,
    /// Tokens that the device holds.
    pub held_tokens: u64,
    /// Tokens that the device could hold.
    pub room_tokens: u64,
}

impl Stats {
    /// Tokens held over the room for them, 0 to 1.
    pub fn held_ratio(&self) -> f64 {
        self.held_tokens as f64 / self.room_tokens.max(1) as f64
    }
}

/// Decides which sessions' tokens go into the next step. See the module's documentation.
///
/// Invariants, held by `check` in the tests after every event: a slot is free or belongs to one
/// session; a session is in the queue or has a slot, or lost its sequence while it was to answer;
/// no sequence is longer than the context.
#[derive(Debug)]
pub struct Scheduler {
    settings: Settings,
    context_tokens: u32,
    batch_tokens_max: u32,
    capacity: usize,
    entries: HashMap<SessionId, Entry>,
    queue: BTreeSet<SessionId>,
    running: BTreeSet<SessionId>,
    /// The lowest is taken first: neighbouring sequences are cheaper on the ggml device.
    free_slots: BTreeSet<Slot>,
    /// Slots whose sequences the device does not know to be over.
    releases: Vec<Slot>,
    /// The device's sequences are in an unknown state.
    must_reset: bool,
    in_flight: Option<InFlight>,
    epoch: u64,
    /// Sessions that were given rows and are waited for, until then.
    awaited: usize,
    grace_until: Option<Instant>,
    /// Sessions in a step: less than all after the device had no room.
    pieces_max: usize,
    faults: VecDeque<Instant>,
    waiting_tokens: u64,
}

#[derive(Debug)]
struct InFlight {
    started: Instant,
    pieces: Vec<FlightPiece>,
    hung: bool,
    abort_sent: bool,
}

#[derive(Clone, Copy, Debug)]
struct FlightPiece {
    session: SessionId,
    tokens: u32,
    rows: u32,
}

impl Scheduler {
    /// A scheduler for a device that holds no sequence.
    pub fn new(settings: Settings, device: &DeviceInfo) -> Self {
        let capacity = device.max_sequences as usize;
        Self {
            settings,
            context_tokens: device.context_tokens,
            batch_tokens_max: device.max_batch_tokens,
            capacity,
            entries: HashMap::new(),
            queue: BTreeSet::new(),
            running: BTreeSet::new(),
            free_slots: (0..device.max_sequences).map(Slot).collect(),
            releases: Vec::new(),
            must_reset: false,
            in_flight: None,
            epoch: 0,
            awaited: 0,
            grace_until: None,
            pieces_max: capacity,
            faults: VecDeque::new(),
            waiting_tokens: 0,
        }
    }

    /// Takes what happened; says what is to be done.
    pub fn on_event(&mut self, now: Instant, event: Event) -> Effects {
        let mut effects = Effects::default();
        match event {
            Event::Submit(submission) => self.submit(submission),
            Event::Next { session, tokens } => self.next(session, &tokens, &mut effects),
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

    /// What is held now.
    pub fn stats(&self) -> Stats {
        let held = self.running.iter().filter_map(|id| self.entries.get(id));
        Stats {
            running: self.running.len(),
            waiting: self.queue.len(),
            capacity: self.capacity,
            waiting_tokens: self.waiting_tokens,
            room_tokens: self.capacity as u64 * u64::from(self.context_tokens),
            held_tokens: held.map(|entry| u64::from(entry.computed)).sum(),
        }
    }

    fn submit(&mut self, submission: Submission) {
        let session = submission.session;
        self.entries.insert(session, Entry::new(submission));
        self.enqueue(session);
    }

    fn enqueue(&mut self, session: SessionId) {
        let tokens = self.entries.get(&session).map_or(0, Entry::total);
        if self.queue.insert(session) {
            self.waiting_tokens += u64::from(tokens);
        }
    }

    fn dequeue(&mut self, session: SessionId) {
        if self.queue.remove(&session) {
            let tokens = self.entries.get(&session).map_or(0, Entry::total);
            self.waiting_tokens = self.waiting_tokens.saturating_sub(u64::from(tokens));
        }
    }

    fn next(&mut self, session: SessionId, tokens: &[TokenId], effects: &mut Effects) {
        let Some(entry) = self.entries.get_mut(&session) else { return };
        if entry.phase == Phase::Pending || tokens.is_empty() {
            return;
        }
        if entry.total() as usize + tokens.len() > self.context_tokens as usize {
            self.end(session, Outcome::Length, effects);
            return;
        }
        let awaited = entry.phase == Phase::Awaiting;
        let lost = entry.slot.is_none();
        entry.append(tokens);
        if awaited {
            self.stop_awaiting();
        }
        if lost {
            self.enqueue(session);
        }
    }

    fn pause(&mut self, session: SessionId) {
        let Some(entry) = self.entries.get_mut(&session) else { return };
        if entry.phase == Phase::Awaiting {
            entry.phase = Phase::Paused;
            self.stop_awaiting();
        }
    }

    fn leave(&mut self, session: SessionId) {
        self.dequeue(session);
        let Some(entry) = self.entries.remove(&session) else { return };
        self.running.remove(&session);
        if entry.phase == Phase::Awaiting && entry.slot.is_some() {
            self.stop_awaiting();
        }
        if let Some(slot) = entry.slot {
            self.free_slots.insert(slot);
            self.releases.push(slot);
        }
    }

    fn stop_awaiting(&mut self) {
        self.awaited = self.awaited.saturating_sub(1);
    }

    fn end(&mut self, session: SessionId, outcome: Outcome, effects: &mut Effects) {
        self.leave(session);
        effects.notices.push((session, Notice::End(outcome)));
    }

    fn start_step(&mut self, now: Instant, effects: &mut Effects) {
        if self.in_flight.is_some() || effects.give_up.is_some() {
            return;
        }
        if self.awaited > 0
            && let Some(until) = self.grace_until.filter(|&until| now < until)
        {
            effects.wake_at = Some(until);
            return;
        }
        self.admit(effects);
        let chosen = plan(&self.candidates(), self.budget());
        if chosen.is_empty() {
            return;
        }
        let mut pieces: Vec<(Piece, FlightPiece)> =
            chosen.iter().filter_map(|&(session, count)| self.piece(session, count)).collect();
        pieces.sort_unstable_by_key(|(piece, _)| piece.slot);
        let (pieces, flight) = pieces.into_iter().unzip();
        self.epoch += 1;
        self.in_flight =
            Some(InFlight { started: now, pieces: flight, hung: false, abort_sent: false });
        effects.command = Some(StepCommand {
            epoch: self.epoch,
            reset: std::mem::take(&mut self.must_reset),
            releases: std::mem::take(&mut self.releases),
            batch: StepBatch { pieces },
        });
    }

    /// Gives free slots to the sessions that have waited longest.
    fn admit(&mut self, effects: &mut Effects) {
        while let Some(&session) = self.queue.first() {
            let Some(slot) = self.free_slots.pop_first() else { return };
            self.dequeue(session);
            let Some(entry) = self.entries.get_mut(&session) else {
                self.free_slots.insert(slot);
                continue;
            };
            entry.slot = Some(slot);
            self.running.insert(session);
            if !std::mem::replace(&mut entry.started, true) {
                effects.notices.push((session, Notice::Started));
            }
        }
    }

    fn candidates(&self) -> Vec<Candidate> {
        let pending = self.running.iter().filter_map(|&session| {
            let entry = self.entries.get(&session)?;
            (entry.phase == Phase::Pending).then(|| Candidate {
                session,
                pending: entry.pending(),
                decoding: entry.is_decoding(),
                all_rows: entry.next_row + 1 < entry.total(),
            })
        });
        pending.collect()
    }

    fn budget(&self) -> Budget {
        Budget {
            tokens: self.batch_tokens_max,
            prefill_beside_decode: self.settings.prefill_beside_decode_tokens,
            pieces: self.pieces_max,
        }
    }

    fn piece(&self, session: SessionId, tokens: u32) -> Option<(Piece, FlightPiece)> {
        let entry = self.entries.get(&session)?;
        let rows = entry.rows_in(tokens);
        let piece = Piece {
            slot: entry.slot?,
            start: entry.computed,
            tokens: entry.take_tokens(tokens),
            rows_wanted: rows,
        };
        Some((piece, FlightPiece { session, tokens, rows }))
    }

    fn step_done(&mut self, now: Instant, done: StepDone, effects: &mut Effects) {
        if done.epoch != self.epoch {
            return;
        }
        let Some(flight) = self.in_flight.take() else { return };
        if flight.hung {
            self.lose_device_state();
            return;
        }
        match done.result {
            Ok(rows) => {
                self.pieces_max = self.capacity;
                self.grace_until = Some(now + done.device_time.clamp(GRACE_MIN, GRACE_MAX));
                let mut first_row = 0;
                for piece in &flight.pieces {
                    let range = first_row..first_row + piece.rows as usize;
                    first_row = range.end;
                    let rows = range.filter_map(|index| Row::new(&rows, index)).collect();
                    self.advance(piece, rows, effects);
                }
            }
            Err(fault) => self.step_failed(now, &fault, &flight.pieces, effects),
        }
    }

    /// A session's tokens are computed: it gets its rows.
    fn advance(&mut self, piece: &FlightPiece, rows: Vec<Row>, effects: &mut Effects) {
        let Some(entry) = self.entries.get_mut(&piece.session) else { return };
        entry.computed += piece.tokens;
        entry.next_row += piece.rows;
        let prompt_done = entry.pending() == 0;
        if prompt_done {
            entry.phase = Phase::Awaiting;
            self.awaited += 1;
        }
        if !rows.is_empty() {
            effects.notices.push((piece.session, Notice::Rows { rows, prompt_done }));
        }
    }

    fn step_failed(
        &mut self,
        now: Instant,
        fault: &StepFault,
        pieces: &[FlightPiece],
        effects: &mut Effects,
    ) {
        match fault {
            StepFault::Device(DeviceError::NoRoom) => self.make_room(pieces, effects),
            StepFault::Device(DeviceError::Aborted) => {
                for piece in pieces {
                    self.recompute(piece.session);
                }
            }
            StepFault::Device(DeviceError::InvalidBatch(_)) => {
                self.fail_batch(fault, pieces, effects);
            }
            StepFault::Panic(_) | StepFault::RowSize { .. } | StepFault::Device(_) => {
                self.fail_batch(fault, pieces, effects);
                self.lose_device_state();
                self.count_fault(now, fault, effects);
            }
        }
    }

    /// The device's memory was too small for the batch: try fewer sessions, and end one that does
    /// not fit alone.
    fn make_room(&mut self, pieces: &[FlightPiece], effects: &mut Effects) {
        match pieces {
            [alone] => self.end(alone.session, Outcome::Length, effects),
            _ => self.pieces_max = (pieces.len() / 2).max(1),
        }
    }

    fn fail_batch(&mut self, fault: &StepFault, pieces: &[FlightPiece], effects: &mut Effects) {
        for piece in pieces {
            if self.entries.contains_key(&piece.session) {
                let outcome = Outcome::Fault(Fault::Device(fault.to_string()));
                self.end(piece.session, outcome, effects);
            }
        }
    }

    /// The device has to forget every sequence: those that live on are computed again.
    fn lose_device_state(&mut self) {
        for session in self.running.clone() {
            self.recompute(session);
        }
        self.releases.clear();
        self.must_reset = true;
    }

    fn recompute(&mut self, session: SessionId) {
        let Some(entry) = self.entries.get_mut(&session) else { return };
        if let Some(slot) = entry.slot {
            self.free_slots.insert(slot);
            self.releases.push(slot);
        }
        if entry.phase == Phase::Awaiting {
            // Its answer will put it back into the queue.
            entry.phase = Phase::Paused;
            self.awaited = self.awaited.saturating_sub(1);
        }
        entry.forget_computed();
        let pending = entry.phase == Phase::Pending;
        self.running.remove(&session);
        if pending {
            self.enqueue(session);
        }
    }

    fn count_fault(&mut self, now: Instant, fault: &StepFault, effects: &mut Effects) {
        self.faults.retain(|&at| now.duration_since(at) < FAULTS_WINDOW);
        self.faults.push_back(now);
        if self.faults.len() >= FAULTS_MAX {
            effects.give_up =
                Some(format!("{FAULTS_MAX} device faults in a row, the last: {fault}"));
        }
    }

    fn check_deadline(&mut self, now: Instant, effects: &mut Effects) {
        let deadline = self.settings.step_deadline;
        let Some(flight) = &mut self.in_flight else { return };
        if flight.hung || now.duration_since(flight.started) < deadline {
            return;
        }
        flight.hung = true;
        for piece in flight.pieces.clone() {
            if self.entries.contains_key(&piece.session) {
                self.end(piece.session, Outcome::Fault(Fault::DeviceHang), effects);
            }
        }
    }

    /// Nobody waits for the running step any more: end it early.
    fn abort_if_useless(&mut self, effects: &mut Effects) {
        let Some(flight) = &mut self.in_flight else { return };
        let useless = !flight.pieces.iter().any(|piece| self.entries.contains_key(&piece.session));
        if useless && !flight.abort_sent {
            flight.abort_sent = true;
            effects.abort = true;
        }
    }

    #[cfg(test)]
    pub(super) fn check(&self) {
        let mut slots: Vec<Slot> = self.free_slots.iter().copied().collect();
        for (id, entry) in &self.entries {
            assert_eq!(entry.slot.is_some(), self.running.contains(id), "{id:?}");
            let queued = entry.slot.is_none() && entry.phase == Phase::Pending;
            assert_eq!(queued, self.queue.contains(id), "{id:?}");
            assert!(entry.total() <= self.context_tokens && entry.computed <= entry.total());
            slots.extend(entry.slot);
        }
        slots.sort_unstable();
        let all: Vec<Slot> = (0..self.capacity as u32).map(Slot).collect();
        assert_eq!(slots, all, "every slot is free or held once");
        let awaiting = self.entries.values().filter(|entry| entry.phase == Phase::Awaiting).count();
        assert_eq!(awaiting, self.awaited);
        let tokens: u64 = self.queue.iter().map(|id| u64::from(self.entries[id].total())).sum();
        assert_eq!(tokens, self.waiting_tokens);
        assert!(self.running.len() <= self.capacity);
    }
}
