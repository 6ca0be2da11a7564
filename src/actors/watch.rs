//! Waits for what ends a session from outside: its client leaves, or its time is over.

use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use actix::WeakAddr;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::messages::{Finish, Overdue};
use super::session::{Deadlines, SessionActor};
use crate::session::{Frame, Outcome};

/// A task beside a session's actor; it ends with this value. The actor is polled at each of its
/// messages, and whatever waits within it is polled as well: here nothing is until it happens.
pub(super) struct Watch(JoinHandle<()>);

impl Watch {
    /// Starts it. Must be called on the session's arbiter.
    pub(super) fn start(
        session: WeakAddr<SessionActor>,
        client: mpsc::Sender<Frame>,
        deadlines: Deadlines,
    ) -> Self {
        Self(actix::spawn(watch(session, client, deadlines)))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn watch(session: WeakAddr<SessionActor>, client: mpsc::Sender<Frame>, deadlines: Deadlines) {
    let mut queue = pin!(after(deadlines.queue));
    let mut request = pin!(after(deadlines.request));
    let mut waits = true;
    let outcome = loop {
        tokio::select! {
            () = client.closed() => break Outcome::ClientGone,
            () = &mut request => break Outcome::Deadline,
            () = &mut queue, if waits => waits = false,
        }
        if let Some(session) = session.upgrade() {
            session.do_send(Overdue);
        }
    };
    if let Some(session) = session.upgrade() {
        session.do_send(Finish(outcome));
    }
}

/// At the end of a time; never without one.
async fn after(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => pending().await,
    }
}
