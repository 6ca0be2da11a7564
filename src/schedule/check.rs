//! What must hold after every event.

use super::entry::Phase;
use super::scheduler::Scheduler;
use crate::device::Slot;

impl Scheduler {
    /// Looks through everything that is held. For tests and simulators: it costs as much as there
    /// are sessions.
    ///
    /// # Errors
    /// What does not hold: a bug.
    pub fn check(&self) -> Result<(), String> {
        self.check_sessions()?;
        self.check_slots()?;
        self.prefixes.check()?;
        self.queue.check(
            |id| {
                self.entries
                    .get(&id)
                    .is_some_and(|entry| entry.slot.is_none() && entry.phase == Phase::Pending)
            },
            |id| self.running.contains(&id),
        )
    }

    fn check_sessions(&self) -> Result<(), String> {
        let (mut awaiting, mut waiting, mut waiting_tokens) = (0, 0, 0);
        for (id, entry) in &self.entries {
            if entry.slot.is_some() != self.running.contains(id) {
                return Err(format!("{id:?} runs without a slot, or has one and does not run"));
            }
            if entry.computed > entry.total() || entry.total() > self.context_tokens {
                return Err(format!("{id:?}: {} of {} tokens", entry.computed, entry.total()));
            }
            if entry.drafted as usize > entry.drafts.len()
                || entry.total() as usize + entry.drafts.len() > self.context_tokens as usize
                || (entry.drafted > 0 && entry.phase == Phase::Pending)
            {
                return Err(format!("{id:?} drafted {} of {:?}", entry.drafted, entry.drafts));
            }
            if entry.slot.is_none() && (entry.held() > 0 || entry.is_following()) {
                return Err(format!("{id:?} has a sequence but no slot"));
            }
            awaiting += usize::from(entry.phase == Phase::Awaiting);
            if entry.slot.is_none() && entry.phase == Phase::Pending {
                waiting += 1;
                waiting_tokens += u64::from(entry.total());
            }
        }
        if awaiting != self.awaited {
            return Err(format!("{awaiting} sessions are awaited, not {}", self.awaited));
        }
        if (waiting, waiting_tokens) != (self.queue.waiting(), self.waiting_tokens) {
            return Err(format!("{waiting} sessions wait with {waiting_tokens} tokens"));
        }
        Ok(())
    }

    fn check_slots(&self) -> Result<(), String> {
        let held = self.running.iter().filter_map(|id| self.entries.get(id)?.slot);
        let mut slots: Vec<Slot> = self.free_slots.iter().copied().chain(held).collect();
        slots.sort_unstable();
        if !slots.iter().map(|slot| slot.0 as usize).eq(0..self.capacity) {
            return Err(format!("free and held slots are {slots:?}"));
        }
        if self.held_tokens() > self.room.device_tokens() {
            return Err(format!("{} tokens are held", self.held_tokens()));
        }
        Ok(())
    }
}
