//! The messages between actors.

use actix::Message;

use crate::schedule;
use crate::session::Outcome;

/// To the scheduler: something happened.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Happened(pub(super) schedule::Event);

/// To the scheduler: what the sessions of one thread answered, in this order.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Answered(pub(super) Vec<schedule::Event>);

/// To a session: news from the scheduler.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Told(pub(super) schedule::Notice);

/// To a session: end now.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Finish(pub(super) Outcome);

/// To a session: it has waited for its first step as long as it may.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Overdue;
