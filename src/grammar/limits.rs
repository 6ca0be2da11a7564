//! What compiling a grammar and walking a vocabulary may cost.

use super::error::LimitError;

/// Upper bounds for one grammar. A limit that is hit is an error with a name, never a wider mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the text that a grammar is made from, or of its texts together.
    pub source_bytes_max: usize,
    /// Steps a compilation may take: about one for each expression, node or character range it
    /// touches. 10 million take about a second.
    pub compile_steps_max: u64,
    /// Nodes that a lowered grammar may have; a node and its arms take about 32 bytes.
    pub nodes_max: usize,
    /// Steps one mask, or one accepted token, may take: about one for each trie node visited and
    /// for each frame touched. A walk of all of a 128k vocabulary takes 275,000.
    pub walk_steps_max: u64,
    /// Places the parse may be in at once. Ambiguous grammars reach tens; a grammar that
    /// reaches thousands multiplies without bound.
    pub items_max: usize,
    /// Bytes that the lazily built states of one grammar may take before they are thrown away
    /// and built anew.
    pub states_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            source_bytes_max: 512 << 10,
            compile_steps_max: 10_000_000,
            nodes_max: 2_000_000,
            walk_steps_max: 20_000_000,
            items_max: 4_096,
            states_bytes_max: 24 << 20,
        }
    }
}

/// Steps between two calls of the stop function: a few tens of microseconds.
const STOP_CHECK_STEPS: u32 = 4_096;

/// The steps that are left to one piece of work, and who may stop it.
///
/// The pure rooms have no clock, so a deadline or a client that left comes in as a function.
pub struct Fuel<'a> {
    steps_left: u64,
    steps_until_check: u32,
    stopped: Option<&'a dyn Fn() -> bool>,
}

impl Fuel<'static> {
    /// Fuel for `steps` that nobody stops.
    pub fn new(steps: u64) -> Self {
        Self { steps_left: steps, steps_until_check: STOP_CHECK_STEPS, stopped: None }
    }
}

impl<'a> Fuel<'a> {
    /// Fuel for `steps`; the work ends soon after `stopped` returns true.
    pub fn with_stop(steps: u64, stopped: &'a dyn Fn() -> bool) -> Self {
        Self { steps_left: steps, steps_until_check: STOP_CHECK_STEPS, stopped: Some(stopped) }
    }

    /// Takes `steps`, or says why the work must end.
    #[inline]
    pub fn spend(&mut self, steps: u32) -> Result<(), LimitError> {
        match self.steps_left.checked_sub(u64::from(steps)) {
            Some(left) => self.steps_left = left,
            None => return Err(LimitError::Steps),
        }
        if self.steps_until_check > steps {
            self.steps_until_check -= steps;
            return Ok(());
        }
        self.steps_until_check = STOP_CHECK_STEPS;
        match self.stopped {
            Some(stopped) if stopped() => Err(LimitError::Stopped),
            _ => Ok(()),
        }
    }

    /// Steps that are left.
    pub fn steps_left(&self) -> u64 {
        self.steps_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuel_ends_exactly() {
        let mut fuel = Fuel::new(10);
        assert_eq!(fuel.spend(10), Ok(()));
        assert_eq!(fuel.spend(1), Err(LimitError::Steps));
    }

    #[test]
    fn a_stop_is_seen_within_the_check_interval() {
        let stop = || true;
        let mut fuel = Fuel::with_stop(u64::MAX, &stop);
        let spent = (0..=STOP_CHECK_STEPS).find(|_| fuel.spend(1).is_err());
        assert_eq!(spent, Some(STOP_CHECK_STEPS - 1));
    }
}
