//! Where each live session's actor is.

use std::sync::Arc;

use actix::{Addr, ArbiterHandle};
use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use super::messages::{Finish, Told};
use super::session::SessionActor;
use crate::schedule::{Notice, SessionId};
use crate::session::Outcome;

/// The addresses of all live sessions. No guard of the map is held across a message's handling.
#[derive(Clone)]
pub(super) struct Registry {
    sessions: Arc<DashMap<SessionId, Addr<SessionActor>, FxBuildHasher>>,
    /// Where sessions live, at least one.
    arbiters: Arc<[ArbiterHandle]>,
}

impl Registry {
    /// Nobody, on these arbiters.
    pub(super) fn new(arbiters: Arc<[ArbiterHandle]>) -> Self {
        Self { sessions: Arc::default(), arbiters }
    }

    /// The arbiter of a session.
    pub(super) fn arbiter(&self, id: SessionId) -> &ArbiterHandle {
        &self.arbiters[self.place(id)]
    }

    fn place(&self, id: SessionId) -> usize {
        (id.0 % self.arbiters.len() as u64) as usize
    }

    /// Keeps an address until the registration is dropped.
    pub(super) fn register(&self, id: SessionId, address: Addr<SessionActor>) -> Registration {
        self.sessions.insert(id, address);
        Registration { registry: self.clone(), id }
    }

    /// Tells sessions, each in the order in which it is told; nobody is told where one has ended.
    ///
    /// What is for one arbiter goes there at once: so its thread is woken once a step, and its
    /// sessions are woken by their own thread, which is cheap.
    pub(super) fn tell(&self, notices: Vec<(SessionId, Notice)>) {
        let mut mail: Vec<Vec<(Addr<SessionActor>, Notice)>> = Vec::new();
        for (id, notice) in notices {
            let Some(address) = self.sessions.get(&id) else { continue };
            mail.resize_with(self.arbiters.len(), Vec::new);
            mail[self.place(id)].push((address.clone(), notice));
        }
        for (arbiter, mail) in self.arbiters.iter().zip(mail) {
            if !mail.is_empty() {
                // An arbiter that has ended took its sessions with it.
                arbiter.spawn_fn(move || {
                    mail.into_iter().for_each(|(address, notice)| address.do_send(Told(notice)));
                });
            }
        }
    }

    /// Ends every session.
    pub(super) fn finish_all(&self, outcome: &Outcome) {
        for address in self.sessions.iter() {
            address.do_send(Finish(outcome.clone()));
        }
    }

    #[cfg(test)]
    pub(super) fn sessions_for_test(&self, mut each: impl FnMut(SessionId, &Addr<SessionActor>)) {
        self.sessions.iter().for_each(|entry| each(*entry.key(), entry.value()));
    }

    /// Live sessions.
    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }
}

/// Takes the address out when dropped.
pub(super) struct Registration {
    registry: Registry,
    id: SessionId,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.sessions.remove(&self.id);
    }
}
