//! The messages between actors.

use actix::Message;

use crate::schedule;
use crate::session::Outcome;

/// To the scheduler: something happened.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Happened(pub(super) schedule::Event);

/// To a session: news from the scheduler.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Told(pub(super) schedule::Notice);

/// To a session: end now.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Finish(pub(super) Outcome);
