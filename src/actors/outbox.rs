//! What the sessions of one thread answer to a step goes to the scheduler as one message.

use std::cell::RefCell;

use actix::Addr;

use super::messages::Answered;
use super::scheduler::SchedulerActor;
use crate::schedule::Event;

/// As many go at once, so that the scheduler does not take a thread that is busy for one that hangs.
const SENT_TOGETHER: usize = 32;

thread_local! {
    /// What has been said and not been sent. A session arbiter is a thread of its own and belongs
    /// to one runtime, so all of it goes to the same scheduler.
    static SAID: RefCell<Vec<Event>> = const { RefCell::new(Vec::new()) };
}

/// Sends an event together with those of the sessions whose turn it is before the thread's tasks
/// come round again. Order is kept among events that are sent this way. Must be called on an
/// arbiter.
pub(super) fn say(scheduler: &Addr<SchedulerActor>, event: Event) {
    let waiting = SAID.with_borrow_mut(|said| {
        said.push(event);
        said.len()
    });
    if waiting == SENT_TOGETHER {
        send(scheduler);
    } else if waiting == 1 {
        let scheduler = scheduler.clone();
        // Tasks run in the order in which they are woken: this one after all that wait already.
        actix::spawn(async move { send(&scheduler) });
    }
}

fn send(scheduler: &Addr<SchedulerActor>) {
    let said = SAID.take();
    if !said.is_empty() {
        scheduler.do_send(Answered(said));
    }
}
