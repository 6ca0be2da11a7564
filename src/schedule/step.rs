//! One step from its start to its end.

use std::collections::BTreeSet;
use std::time::Instant;

use super::draft::{Drafter, choose};
use super::entry::Phase;
use super::event::{Effects, Notice, SessionId};
use super::grace::{Grace, Sessions};
use super::pace::Measured;
use super::plan::{Budget, Candidate, plan};
use super::scheduler::Scheduler;
use crate::device::{Piece, Row, StepBatch, StepCommand, StepDone};

/// Of so many steps one has no drafts.
const PLAIN_STEP_EVERY: u64 = 16;

/// The step that the device is busy with.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) started: Instant,
    pub(super) pieces: Vec<FlightPiece>,
    pub(super) hung: bool,
    pub(super) abort_sent: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct FlightPiece {
    pub(super) session: SessionId,
    pub(super) tokens: u32,
    /// Further tokens, which may turn out wrong.
    pub(super) drafts: u32,
    rows: u32,
}

impl InFlight {
    pub(super) fn holds(&self, session: SessionId) -> bool {
        self.pieces.iter().any(|piece| piece.session == session)
    }
}

impl Scheduler {
    /// Gives the device its next step, if it is idle and there is something to do.
    pub(super) fn start_step(&mut self, now: Instant, effects: &mut Effects) {
        if self.in_flight.is_some() || effects.give_up.is_some() {
            return;
        }
        if self.awaited > 0
            && let Some(until) = self.grace.and_then(|it| it.waits_until(now, self.sessions()))
        {
            // A timer that is set need not be set again at each answer: it asks again when it fires.
            let known = self.wake_at.filter(|&at| now < at && at <= until);
            effects.wake_at = Some(*self.wake_at.insert(known.unwrap_or(until)));
            return;
        }
        self.admit(effects);
        self.copy_to_followers();
        self.make_room_to_grow(effects);
        let (pieces, flight) = self.pieces();
        if pieces.is_empty() && !self.has_saves() {
            return;
        }
        self.reuse.forget_saves();
        self.epoch += 1;
        self.in_flight =
            Some(InFlight { started: now, pieces: flight, hung: false, abort_sent: false });
        effects.command = Some(StepCommand {
            epoch: self.epoch,
            reset: std::mem::take(&mut self.must_reset),
            operations: std::mem::take(&mut self.operations),
            batch: StepBatch { pieces },
        });
    }

    /// Who is waited for, and who is not: those who come in next, too.
    fn sessions(&self) -> Sessions {
        let coming = self.queue.waiting().min(self.free_slots.len());
        let ready = self.running.len().saturating_sub(self.awaited) + coming;
        Sessions { ready, awaited: self.awaited }
    }

    /// The next step's pieces, in the order of their slots.
    fn pieces(&mut self) -> (Vec<Piece>, Vec<FlightPiece>) {
        let candidates = self.candidates();
        let decoding = candidates.iter().filter(|candidate| candidate.decoding).count();
        let prompts = candidates.iter().filter(|candidate| !candidate.decoding);
        let mut missing: Vec<u32> = prompts.map(|prompt| prompt.pending).collect();
        missing.sort_unstable();
        let room = self.room.tokens().saturating_sub(self.held_tokens());
        let budget = Budget {
            tokens: self.batch_tokens_max.min(u32::try_from(room).unwrap_or(u32::MAX)),
            further: self.pace.further_tokens(decoding, &missing),
            runs: (!self.mixed_lengths).then(|| self.pace.run_cost(decoding)),
        };
        let chosen = plan(&candidates, budget);
        let drafts = self.drafts(&chosen, budget);
        let drafts_of = |session| {
            let found = drafts.iter().find(|(drafter, _)| *drafter == session);
            found.map_or(0, |&(_, count)| count)
        };
        let mut pieces: Vec<(Piece, FlightPiece)> = chosen
            .iter()
            .filter_map(|&(session, count)| self.piece(session, count, drafts_of(session)))
            .collect();
        pieces.sort_unstable_by_key(|(piece, _)| piece.slot);
        pieces.into_iter().unzip()
    }

    fn candidates(&self) -> Vec<Candidate> {
        let pending = self.running.iter().filter_map(|&session| {
            let entry = self.entries.get(&session)?;
            (entry.phase == Phase::Pending && !entry.is_following()).then(|| Candidate {
                session,
                computed: entry.computed,
                pending: entry.pending(),
                until_stop: entry
                    .save_at
                    .and_then(|at| at.checked_sub(entry.computed))
                    .filter(|&left| left > 0),
                decoding: entry.is_decoding() || entry.pending() == 1,
                all_rows: entry.next_row + 1 < entry.total(),
            })
        });
        pending.collect()
    }

    /// How many drafts of whom are worth their time in a step that holds what was chosen. Prompts
    /// go first: their tokens are all needed. Now and then a step has none in any case, so that it
    /// stays known what steps cost without.
    fn drafts(&mut self, chosen: &[(SessionId, u32)], budget: Budget) -> Vec<(SessionId, u32)> {
        if self.draft_tokens == 0 {
            return Vec::new();
        }
        let mut drafters = Vec::new();
        let mut only_decodes = !self.epoch.is_multiple_of(PLAIN_STEP_EVERY);
        for &(session, tokens) in chosen {
            let Some(entry) = self.entries.get_mut(&session) else { continue };
            only_decodes &= entry.is_decoding() && tokens == entry.pending();
            if !entry.drafts.is_empty() {
                let drafts = u32::try_from(entry.drafts.len()).unwrap_or(u32::MAX);
                drafters.push(Drafter { session, drafts, rate: entry.luck.rate() });
                entry.luck.fade();
            }
        }
        let tokens: u32 = chosen.iter().map(|&(_, tokens)| tokens).sum();
        let sequences = chosen.len();
        let ridden = tokens.saturating_sub(u32::try_from(sequences).unwrap_or(u32::MAX));
        let most = (budget.tokens - tokens).min(budget.further.saturating_sub(ridden));
        let Some(step) = self.pace.with_drafts(sequences).filter(|_| only_decodes) else {
            return Vec::new();
        };
        let chosen = choose(step, &drafters, most);
        if chosen.is_empty() && !drafters.is_empty() {
            self.pace.spared_drafts(sequences);
        }
        chosen
    }

    fn piece(&self, session: SessionId, tokens: u32, drafts: u32) -> Option<(Piece, FlightPiece)> {
        let entry = self.entries.get(&session)?;
        let rows = entry.rows_in(tokens) + drafts;
        let mut all = entry.take_tokens(tokens);
        all.extend(entry.drafts.iter().take(drafts as usize));
        let piece =
            Piece { slot: entry.slot?, start: entry.computed, tokens: all, rows_wanted: rows };
        Some((piece, FlightPiece { session, tokens, drafts, rows }))
    }

    pub(super) fn step_done(&mut self, now: Instant, done: StepDone, effects: &mut Effects) {
        if done.epoch != self.epoch {
            return;
        }
        let Some(flight) = self.in_flight.take() else { return };
        self.take_saved(done.saved);
        if flight.hung {
            self.lose_device_state();
            return;
        }
        match done.result {
            Ok(rows) => {
                let sum = |of: fn(&FlightPiece) -> u32| flight.pieces.iter().map(of).sum();
                self.pace.measured(Measured {
                    sequences: flight.pieces.len(),
                    tokens: sum(|piece| piece.tokens),
                    drafts: sum(|piece| piece.drafts),
                    passes: self.further_passes(&flight.pieces),
                    time: done.device_time,
                });
                self.room.recover();
                self.grace = Some(Grace::after(done.device_time, now));
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

    /// How often the device runs the model for these pieces, beyond once.
    fn further_passes(&self, pieces: &[FlightPiece]) -> u32 {
        if self.mixed_lengths {
            return 0;
        }
        let lengths: BTreeSet<u32> =
            pieces.iter().map(|piece| piece.tokens + piece.drafts).collect();
        u32::try_from(lengths.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// A session's tokens are computed: it gets its rows.
    fn advance(&mut self, piece: &FlightPiece, rows: Vec<Row>, effects: &mut Effects) {
        let Some(entry) = self.entries.get_mut(&piece.session) else { return };
        entry.add_computed(piece.tokens);
        entry.drafted = piece.drafts;
        entry.next_row += piece.rows - piece.drafts;
        let prompt_done = entry.pending() == 0;
        if prompt_done {
            entry.phase = Phase::Awaiting;
            self.awaited += 1;
        }
        if !rows.is_empty() {
            let cached_tokens = entry.cached();
            let notice = Notice::Rows { rows, prompt_done, cached_tokens };
            effects.notices.push((piece.session, notice));
        }
        let to_save = entry.save_at.take_if(|at| *at <= entry.computed);
        if to_save == Some(entry.computed) {
            self.save_sequence(piece.session);
        }
        self.charge_computed(piece.session);
    }

    /// Nobody waits for the running step any more: end it early.
    pub(super) fn abort_if_useless(&mut self, effects: &mut Effects) {
        let Some(flight) = &mut self.in_flight else { return };
        let useless = !flight.pieces.is_empty()
            && !flight.pieces.iter().any(|piece| self.entries.contains_key(&piece.session));
        if useless && !flight.abort_sent {
            flight.abort_sent = true;
            effects.abort = true;
        }
    }
}
