//! What is computed once and used by several: sequences saved for later, and copies of those that
//! run.

use super::entry::{Entry, Source};
use super::event::SessionId;
use super::prefix::{Hit, PREFIX_TOKENS_MIN};
use super::scheduler::Scheduler;
use crate::TokenId;
use crate::device::{DeviceError, SavedSequence, SequenceOp, Slot};

/// Tokens that are saved before one step, at most: it waits for them meanwhile.
const SAVED_TOKENS_MAX: u64 = 16_384;

/// Copies, and loads that are cut back, that may fail before no more are tried.
const FAILURES_MAX: u32 = 3;

/// Where a place to save a sequence at lies, on devices that cannot cut one back: texts that part
/// within the same so many tokens share one.
const PLACE_TOKENS: usize = 32;

/// What reuse has brought, and what has failed.
#[derive(Debug)]
pub(super) struct Reuse {
    can_copy: bool,
    failed_copies: u32,
    failed_cuts: u32,
    /// To be saved before the next step.
    saved_tokens: u64,
    pub(super) queried_tokens: u64,
    pub(super) hit_tokens: u64,
}

impl Reuse {
    pub(super) fn new(can_copy: bool) -> Self {
        Self {
            can_copy,
            failed_copies: 0,
            failed_cuts: 0,
            saved_tokens: 0,
            queried_tokens: 0,
            hit_tokens: 0,
        }
    }

    pub(super) fn can_copy(&self) -> bool {
        self.can_copy
    }

    /// A step starts, or nothing is to be saved any more.
    pub(super) fn forget_saves(&mut self) {
        self.saved_tokens = 0;
    }
}

impl Scheduler {
    /// A session was given a slot: what it needs and the device has computed before is brought
    /// there, or waited for.
    pub(super) fn reuse(&mut self, session: SessionId) {
        let Some(entry) = self.entries.get(&session) else { return };
        if (self.prefixes.is_on() || self.reuse.can_copy) && !entry.computes_all {
            self.reuse.queried_tokens += u64::from(entry.next_row);
            self.bring_back(session);
        }
    }

    fn bring_back(&mut self, session: SessionId) {
        let Some(entry) = self.entries.get(&session) else { return };
        let Some(slot) = entry.slot else { return };
        // The first row that is wanted has to be computed.
        let tokens = entry.first_tokens(entry.next_row);
        if tokens.len() < PREFIX_TOKENS_MIN {
            return;
        }
        let hit = self.prefixes.find(&tokens);
        let found = hit.as_ref().map_or(0, |hit| hit.tokens);
        let leader = self.leader(session, &tokens);
        let save_at = self.place_to_save(&tokens, found);
        match (leader, hit) {
            (Some((leader, common)), _)
                if common as usize >= found as usize + PREFIX_TOKENS_MIN =>
            {
                if let Some(entry) = self.entries.get_mut(&session) {
                    entry.source = Source::Awaited { leader, tokens: common };
                }
            }
            (_, Some(hit)) => self.load(session, slot, hit),
            (_, None) => {}
        }
        if let Some(entry) = self.entries.get_mut(&session) {
            entry.save_at = save_at;
        }
    }

    fn load(&mut self, session: SessionId, slot: Slot, hit: Hit) {
        let Some(entry) = self.entries.get_mut(&session) else { return };
        let cut = hit.key.len() > hit.tokens as usize;
        self.operations.push(SequenceOp::Load { slot, state: hit.state });
        if cut {
            self.operations.push(SequenceOp::Trim { slot, length_tokens: hit.tokens });
        }
        entry.bring_back(hit.tokens);
        entry.source = Source::Loaded { key: hit.key, cut };
        self.reuse.hit_tokens += u64::from(hit.tokens);
    }

    /// The running session that has, or will have, most of these tokens.
    fn leader(&self, session: SessionId, tokens: &[TokenId]) -> Option<(SessionId, u32)> {
        if !self.reuse.can_copy {
            return None;
        }
        let others = self.running.iter().filter(|&&other| other != session);
        let common = |&other: &SessionId| {
            let entry = self.entries.get(&other).filter(|entry| !entry.is_following())?;
            Some((other, entry.common_with(tokens), entry.computed))
        };
        let best =
            others.filter_map(common).max_by_key(|&(_, common, computed)| (common, computed))?;
        (best.1 as usize >= PREFIX_TOKENS_MIN).then_some((best.0, best.1))
    }

    /// Where a device that cannot cut sequences back has to save this one, so that the next text
    /// that begins like it and another can use it.
    fn place_to_save(&self, tokens: &[TokenId], found: u32) -> Option<u32> {
        let common = self.prefixes.common_with_any(tokens);
        let place = u32::try_from(common - common % PLACE_TOKENS).ok()?;
        (!self.prefixes.can_trim() && place > found).then_some(place)
    }

    /// Sessions whose beginning another one has computed by now get it; those whose leader is gone
    /// look for another way.
    pub(super) fn copy_to_followers(&mut self) {
        let following = |id: &&SessionId| self.entries.get(id).is_some_and(Entry::is_following);
        let followers: Vec<SessionId> = self.running.iter().filter(following).copied().collect();
        for session in followers {
            let Some(entry) = self.entries.get(&session) else { continue };
            let (Source::Awaited { leader, tokens }, Some(to)) = (&entry.source, entry.slot) else {
                continue;
            };
            let (leader, tokens) = (*leader, *tokens);
            let from =
                self.entries.get(&leader).and_then(|leader| Some((leader.slot?, leader.computed)));
            match from {
                Some((from, computed)) if computed >= tokens => {
                    self.copy(session, from, to, tokens)
                }
                Some(_) => {}
                None => {
                    self.set_source(session, Source::Computed);
                    self.bring_back(session);
                }
            }
        }
    }

    fn copy(&mut self, session: SessionId, from: Slot, to: Slot, tokens: u32) {
        let Some(entry) = self.entries.get_mut(&session) else { return };
        self.operations.push(SequenceOp::Copy { from, to });
        self.operations.push(SequenceOp::Trim { slot: to, length_tokens: tokens });
        entry.bring_back(tokens);
        entry.source = Source::Copied;
        self.reuse.hit_tokens += u64::from(tokens);
    }

    fn set_source(&mut self, session: SessionId, source: Source) {
        if let Some(entry) = self.entries.get_mut(&session) {
            entry.source = source;
        }
    }

    /// Saves what the device holds of a session, if that may be of use.
    pub(super) fn save_sequence(&mut self, session: SessionId) {
        let Some(entry) = self.entries.get(&session) else { return };
        let Some(slot) = entry.slot.filter(|_| self.prefixes.is_on()) else { return };
        let total = self.reuse.saved_tokens + u64::from(entry.computed);
        if total > SAVED_TOKENS_MAX && self.reuse.saved_tokens > 0 {
            return;
        }
        let tokens = entry.first_tokens(entry.computed);
        if self.prefixes.wants(&tokens) {
            if entry.drafted > 0 {
                // Nobody has said yet which of its drafts are right.
                let length_tokens = entry.computed;
                self.operations.push(SequenceOp::Trim { slot, length_tokens });
            }
            self.reuse.saved_tokens = total;
            let ticket = self.prefixes.begin_save(tokens.into());
            self.operations.push(SequenceOp::Save { slot, ticket });
        }
    }

    /// Whether something is to be saved even if there is no step.
    pub(super) fn has_saves(&self) -> bool {
        self.reuse.saved_tokens > 0
    }

    pub(super) fn take_saved(&mut self, saved: Vec<SavedSequence>) {
        for SavedSequence { ticket, state } in saved {
            if matches!(state, Err(DeviceError::Unsupported(_))) {
                self.prefixes.turn_off();
            }
            self.prefixes.finish_save(ticket, state.ok());
        }
    }

    /// Sequences could not be brought back: they are computed.
    pub(super) fn restores_failed(&mut self, lost: &[(Slot, DeviceError)]) {
        for (slot, _) in lost {
            let holds = |id: &&SessionId| {
                self.entries.get(id).is_some_and(|entry| entry.slot == Some(*slot))
            };
            let Some(session) = self.running.iter().find(holds).copied() else { continue };
            let Some(entry) = self.entries.get_mut(&session) else { continue };
            self.reuse.hit_tokens = self.reuse.hit_tokens.saturating_sub(u64::from(entry.computed));
            entry.bring_back(0);
            entry.computes_all = true;
            entry.save_at = None;
            match std::mem::replace(&mut entry.source, Source::Computed) {
                Source::Loaded { key, cut } => {
                    self.prefixes.forget(&key);
                    self.reuse.failed_cuts += u32::from(cut);
                }
                Source::Copied => self.reuse.failed_copies += 1,
                Source::Computed | Source::Awaited { .. } => {}
            }
        }
        if self.reuse.failed_cuts >= FAILURES_MAX {
            self.prefixes.stop_trimming();
        }
        if self.reuse.failed_copies >= FAILURES_MAX {
            self.reuse.can_copy = false;
        }
    }
}
