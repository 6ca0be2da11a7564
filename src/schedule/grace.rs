//! How long the device waits for sessions that were given rows.

use std::time::{Duration, Instant};

/// A session that answers within the time of a step, but never less or more than this, joins the
/// next step.
const GRACE_MIN: Duration = Duration::from_millis(1);
const GRACE_MAX: Duration = Duration::from_millis(20);

/// Where the sessions are just busy answering, they are waited for as long as none of them takes
/// longer than the grace after the one before, or nearly all have not answered yet, up to this: a
/// step of few costs as much as a full one where sessions are many.
const BUSY_MAX: Duration = Duration::from_millis(40);

/// Sessions by whether they could go on now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sessions {
    pub(super) ready: usize,
    /// Those who have rows and have not said yet what comes next.
    pub(super) awaited: usize,
}

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

    /// Until when those are waited for who have not answered; none: no longer.
    pub(super) fn waits_until(&self, now: Instant, sessions: Sessions) -> Option<Instant> {
        let until = if self.is_for_few(sessions) { self.latest } else { self.until };
        (now < until).then_some(until)
    }

    /// Whether a step now would cost those who have not answered, who wait for its end, more than
    /// waiting for them costs those who are ready.
    fn is_for_few(&self, Sessions { ready, awaited }: Sessions) -> bool {
        let lost = |sessions: usize, each: Duration| sessions as f64 * each.as_secs_f64();
        lost(awaited, self.grace) > lost(ready, BUSY_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Sessions = Sessions { ready: 1, awaited: 1 };

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn a_pause_lasts_as_long_as_the_step_within_bounds() {
        let now = Instant::now();
        for (step, grace) in [(0, 1), (5, 5), (500, 20)] {
            let pause = Grace::after(ms(step), now);
            assert_eq!(pause.waits_until(now, HALF), Some(now + ms(grace)));
            assert_eq!(pause.waits_until(now + ms(grace), HALF), None);
        }
    }

    #[test]
    fn while_one_after_another_answers_the_rest_is_waited_for() {
        let start = Instant::now();
        let mut pause = Grace::after(ms(5), start);
        for at in 1..=4 {
            pause.answered(start + ms(4 * at));
        }
        assert_eq!(pause.waits_until(start + ms(20), HALF), Some(start + ms(21)));
        (5..20).for_each(|at| pause.answered(start + ms(4 * at)));
        assert_eq!(pause.waits_until(start + ms(39), HALF), Some(start + ms(40)));
        assert_eq!(pause.waits_until(start + ms(40), HALF), None);
    }

    #[test]
    fn many_are_waited_for_where_few_are_ready() {
        let start = Instant::now();
        let pause = Grace::after(ms(5), start);
        for (ready, until) in [(1, Some(start + ms(40))), (11, Some(start + ms(40))), (13, None)] {
            let sessions = Sessions { ready, awaited: 100 };
            assert_eq!(pause.waits_until(start + ms(6), sessions), until, "{ready} are ready");
            assert_eq!(pause.waits_until(start + ms(40), sessions), None);
        }
    }
}
