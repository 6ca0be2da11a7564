//! What becomes of sessions when the device fails.

use std::time::{Duration, Instant};

use super::event::{Effects, SessionId};
use super::scheduler::Scheduler;
use super::step::FlightPiece;
use crate::device::{DeviceError, StepFault};
use crate::session::{Fault, Outcome};

/// This many device faults within the window, and the device is given up.
const FAULTS_MAX: usize = 3;
const FAULTS_WINDOW: Duration = Duration::from_secs(600);

impl Scheduler {
    pub(super) fn step_failed(
        &mut self,
        now: Instant,
        fault: &StepFault,
        pieces: &[FlightPiece],
        effects: &mut Effects,
    ) {
        match fault {
            StepFault::Restore(lost) => self.restores_failed(lost),
            StepFault::Device(DeviceError::NoRoom) => {
                let tokens: u64 =
                    pieces.iter().map(|piece| u64::from(piece.tokens + piece.drafts)).sum();
                self.room.was_short_of(self.held_tokens() + tokens);
                self.push_out_youngest(effects);
            }
            StepFault::Device(DeviceError::Aborted) => {
                for piece in pieces {
                    self.take_slot(piece.session);
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

    fn fail_batch(&mut self, fault: &StepFault, pieces: &[FlightPiece], effects: &mut Effects) {
        for piece in pieces {
            if self.entries.contains_key(&piece.session) {
                let outcome = Outcome::Fault(Fault::Device(fault.to_string()));
                self.end(piece.session, outcome, effects);
            }
        }
    }

    /// The device has to forget every sequence: those that live on are computed again.
    pub(super) fn lose_device_state(&mut self) {
        let running: Vec<SessionId> = self.running.iter().copied().collect();
        for session in running {
            self.take_slot(session);
        }
        self.operations.clear();
        self.prefixes.cancel_saves();
        self.reuse.forget_saves();
        self.must_reset = true;
    }

    fn count_fault(&mut self, now: Instant, fault: &StepFault, effects: &mut Effects) {
        self.faults.retain(|&at| now.duration_since(at) < FAULTS_WINDOW);
        self.faults.push_back(now);
        if self.faults.len() >= FAULTS_MAX {
            effects.give_up =
                Some(format!("{FAULTS_MAX} device faults in a row, the last: {fault}"));
        }
    }

    pub(super) fn check_deadline(&mut self, now: Instant, effects: &mut Effects) {
        let Some(flight) = &mut self.in_flight else { return };
        if flight.hung || now.duration_since(flight.started) < self.step_deadline {
            return;
        }
        flight.hung = true;
        for piece in flight.pieces.clone() {
            if self.entries.contains_key(&piece.session) {
                self.end(piece.session, Outcome::Fault(Fault::DeviceHang), effects);
            }
        }
    }
}
