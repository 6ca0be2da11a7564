//! How long the device waits for sessions that were given rows.

use std::time::{Duration, Instant};

/// A session that answers within the time of a step, but never less or more than this, joins the
/// next step.
const GRACE_MIN: Duration = Duration::from_millis(1);
const GRACE_MAX: Duration = Duration::from_millis(20);

/// Where the sessions are just busy answering, they are waited for as long as none of them takes
/// longer than the grace after the one before, up to this: half a step costs as much as a full one
/// where sessions are many.
const BUSY_MAX: Duration = Duration::from_millis(40);

/// The pause between the end of a step and the start of the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grace {
    grace: Duration,
    until: Instant,
    latest: Instant,
}

impl Grace {
    /// After a step that took `step_time` and ended `now`.
    pub(super) fn after(step_time: Duration, now: Instant) -> Self {
        let grace = step_time.clamp(GRACE_MIN, GRACE_MAX);
        Self { grace, until: now + grace, latest: now + BUSY_MAX.max(grace) }
    }

    /// A session has answered.
    pub(super) fn answered(&mut self, now: Instant) {
        self.until = self.until.max(now + self.grace).min(self.latest);
    }

    /// Until when others are waited for; none: no longer.
    pub(super) fn waits_until(&self, now: Instant) -> Option<Instant> {
        (now < self.until).then_some(self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn a_pause_lasts_as_long_as_the_step_within_bounds() {
        let now = Instant::now();
        for (step, grace) in [(0, 1), (5, 5), (500, 20)] {
            let pause = Grace::after(ms(step), now);
            assert_eq!(pause.waits_until(now), Some(now + ms(grace)));
            assert_eq!(pause.waits_until(now + ms(grace)), None);
        }
    }

    #[test]
    fn while_one_after_another_answers_the_rest_is_waited_for() {
        let start = Instant::now();
        let mut pause = Grace::after(ms(5), start);
        for at in 1..=4 {
            pause.answered(start + ms(4 * at));
        }
        assert_eq!(pause.waits_until(start + ms(20)), Some(start + ms(21)));
        (5..20).for_each(|at| pause.answered(start + ms(4 * at)));
        assert_eq!(pause.waits_until(start + ms(39)), Some(start + ms(40)));
        assert_eq!(pause.waits_until(start + ms(40)), None);
    }
}
