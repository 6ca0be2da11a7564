//! The bound on work in the daemon: a permit for each generation, taken before any work is done.

use std::sync::Arc;

use crate::telemetry::metrics::LIVE_PERMITS;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Hands out permits.
#[derive(Clone, Debug)]
pub struct Admission {
    semaphore: Arc<Semaphore>,
    capacity: usize,
}

impl Admission {
    /// Room for `capacity` generations, running and waiting together.
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.min(Semaphore::MAX_PERMITS);
        Self { semaphore: Arc::new(Semaphore::new(capacity)), capacity }
    }

    /// Permits for `generations` at once, or `None` when there are not that many: never waits.
    pub fn try_admit(&self, generations: u32) -> Option<AdmissionPermit> {
        let permit = Arc::clone(&self.semaphore).try_acquire_many_owned(generations).ok()?;
        metrics::gauge!(LIVE_PERMITS).increment(f64::from(generations));
        Some(AdmissionPermit { permit })
    }

    /// Permits that are taken.
    pub fn in_use(&self) -> usize {
        self.capacity.saturating_sub(self.semaphore.available_permits())
    }

    /// Permits in all.
    pub fn capacity(&self) -> usize {
        self.capacity
    }
}

/// A place in the daemon for one or more generations. Dropping it gives the place back.
#[derive(Debug)]
pub struct AdmissionPermit {
    permit: OwnedSemaphorePermit,
}

impl AdmissionPermit {
    /// How many generations it stands for.
    pub fn generations(&self) -> usize {
        self.permit.num_permits()
    }

    /// Takes the permit of one generation out, so that each session can own its own; `None` when
    /// nothing is left.
    pub fn split_one(&mut self) -> Option<AdmissionPermit> {
        self.permit.split(1).map(|permit| AdmissionPermit { permit })
    }

    /// Adds another permit of the same [`Admission`]. One of another stays apart and is dropped.
    pub(super) fn merge(&mut self, mut other: AdmissionPermit) {
        if Arc::ptr_eq(self.permit.semaphore(), other.permit.semaphore())
            && let Some(moved) = other.permit.split(other.permit.num_permits())
        {
            self.permit.merge(moved);
        }
    }
}

impl Drop for AdmissionPermit {
    fn drop(&mut self) {
        metrics::gauge!(LIVE_PERMITS).decrement(self.permit.num_permits() as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_come_back_however_they_were_split_and_merged() {
        let admission = Admission::new(4);
        let mut permit = admission.try_admit(1).unwrap();
        permit.merge(admission.try_admit(2).unwrap());
        assert_eq!((permit.generations(), admission.in_use()), (3, 3));
        assert!(admission.try_admit(2).is_none());
        let one = permit.split_one().unwrap();
        assert_eq!((one.generations(), permit.generations()), (1, 2));
        drop(permit);
        assert_eq!(admission.in_use(), 1);
        drop(one);
        assert_eq!(admission.in_use(), 0);
    }

    #[test]
    fn an_empty_permit_splits_no_further() {
        let admission = Admission::new(1);
        let mut permit = admission.try_admit(1).unwrap();
        let one = permit.split_one().unwrap();
        assert!(permit.split_one().is_none());
        drop((permit, one));
        assert_eq!(admission.in_use(), 0);
    }
}
