//! Where each live session's actor is.

use std::sync::Arc;

use actix::Addr;
use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use super::messages::{Finish, Told};
use super::session::SessionActor;
use crate::schedule::{Notice, SessionId};
use crate::session::Outcome;

/// The addresses of all live sessions. No guard of the map is held across a message's handling.
#[derive(Clone, Default)]
pub(super) struct Registry {
    sessions: Arc<DashMap<SessionId, Addr<SessionActor>, FxBuildHasher>>,
}

impl Registry {
    /// Keeps an address until the registration is dropped.
    pub(super) fn register(&self, id: SessionId, address: Addr<SessionActor>) -> Registration {
        self.sessions.insert(id, address);
        Registration { registry: self.clone(), id }
    }

    /// Tells a session; nobody is told where it has ended.
    pub(super) fn tell(&self, id: SessionId, notice: Notice) {
        if let Some(address) = self.sessions.get(&id) {
            address.do_send(Told(notice));
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
