//! Who has a slot: sessions come in by need and by their clients' shares, and the youngest makes
//! way when the device is full.

use super::entry::{Entry, Phase};
use super::event::{Effects, Notice, SessionId};
use super::room::Room;
use super::scheduler::Scheduler;
use crate::device::SequenceOp;
use crate::session::Outcome;

impl Scheduler {
    /// Gives slots to the sessions that come next, as far as there is room for what they need.
    pub(super) fn admit(&mut self, effects: &mut Effects) {
        let mut committed = None;
        while let Some(session) = self.queue.first() {
            let Some(entry) = self.entries.get(&session) else { return };
            let need = self.need(entry);
            let held = *committed.get_or_insert_with(|| self.committed_tokens());
            let fits = self.running.is_empty() || held + need <= self.room.tokens();
            if fits && !self.free_slots.is_empty() {
                self.place(session, effects);
                committed = Some(held + need);
            } else if let Some(victim) = self.one_to_make_way() {
                self.preempt(victim);
                committed = None;
            } else {
                return;
            }
        }
    }

    /// A running session of a client that has had much more than the one that comes next. Only
    /// where its sequence can be saved: to compute it again would cost everyone.
    fn one_to_make_way(&mut self) -> Option<SessionId> {
        if !self.prefixes.is_on() {
            return None;
        }
        self.queue.make_way(self.capacity)
    }

    fn committed_tokens(&self) -> u64 {
        let running = self.running.iter().filter_map(|id| self.entries.get(id));
        running.map(|entry| self.need(entry)).sum()
    }

    fn need(&self, entry: &Entry) -> u64 {
        let most = self.context_tokens.saturating_sub(entry.total());
        Room::need(entry.total(), entry.to_come().min(most))
    }

    fn place(&mut self, session: SessionId, effects: &mut Effects) {
        let Some(entry) = self.entries.get_mut(&session) else { return };
        let Some(slot) = self.free_slots.pop_first() else { return };
        entry.slot = Some(slot);
        self.queue.start(session, &entry.client);
        self.waiting_tokens -= u64::from(entry.total());
        self.running.insert(session);
        if !std::mem::replace(&mut entry.started, true) {
            effects.notices.push((session, Notice::Started));
        }
        self.reuse(session);
        self.charge(session);
    }

    /// Charges a session's client for tokens that are known and have to be computed, each once.
    /// What is brought back costs nothing.
    fn charge(&mut self, session: SessionId) {
        let Some(entry) = self.entries.get_mut(&session) else { return };
        let paid = entry.charged.max(entry.computed);
        let (total, client) = (entry.total(), entry.client.clone());
        entry.charged = paid.max(total);
        self.queue.charge(&client, total.saturating_sub(paid));
    }

    /// Charges for what a step has computed.
    pub(super) fn charge_computed(&mut self, session: SessionId) {
        let Some(entry) = self.entries.get_mut(&session) else { return };
        let new = entry.computed.saturating_sub(entry.charged);
        entry.charged += new;
        if new > 0 {
            self.queue.charge(&entry.client, new);
        }
    }

    /// Makes room for the next step: every session that decodes needs it for a token, prompts for
    /// one among them. The youngest makes way until there is; one that is alone and cannot grow has
    /// come to its end.
    pub(super) fn make_room_to_grow(&mut self, effects: &mut Effects) {
        loop {
            let (mut held, mut growing, mut prompts) = (0, 0, 0);
            for entry in self.running.iter().filter_map(|id| self.entries.get(id)) {
                held += u64::from(entry.held());
                match entry.phase {
                    Phase::Pending if entry.is_decoding() => growing += 1,
                    Phase::Pending => prompts = 1,
                    Phase::Awaiting | Phase::Paused => {}
                }
            }
            if growing + prompts == 0 || held + growing.max(prompts) <= self.room.tokens() {
                return;
            }
            self.push_out_youngest(effects);
        }
    }

    /// The youngest session gives its slot up; the last one ends.
    pub(super) fn push_out_youngest(&mut self, effects: &mut Effects) {
        match self.running.last().copied() {
            Some(youngest) if self.running.len() > 1 => self.preempt(youngest),
            Some(alone) => self.end(alone, Outcome::Length, effects),
            None => {}
        }
    }

    /// Takes a session's slot. Its sequence is saved where that is possible, and computed again
    /// where not; its text goes on as if nothing had happened.
    pub(super) fn preempt(&mut self, session: SessionId) {
        self.preemptions += 1;
        self.save_sequence(session);
        self.take_slot(session);
    }

    /// Takes a session's slot and what is in it.
    pub(super) fn take_slot(&mut self, session: SessionId) {
        let Some(entry) = self.entries.get_mut(&session) else { return };
        if let Some(slot) = entry.slot {
            self.free_slots.insert(slot);
            self.operations.push(SequenceOp::Release(slot));
        }
        let awaited = entry.phase == Phase::Awaiting;
        if awaited {
            // Its answer will put it back into the queue.
            entry.phase = Phase::Paused;
        }
        entry.forget_computed();
        self.running.remove(&session);
        if entry.phase == Phase::Pending {
            self.queue.wait(session, &entry.client);
            self.waiting_tokens += u64::from(entry.total());
        } else {
            self.queue.stop(session, &entry.client);
        }
        if awaited {
            self.stop_awaiting();
        }
    }

    /// Tokens that the device holds.
    pub(super) fn held_tokens(&self) -> u64 {
        let running = self.running.iter().filter_map(|id| self.entries.get(id));
        running.map(|entry: &Entry| u64::from(entry.held())).sum()
    }
}
