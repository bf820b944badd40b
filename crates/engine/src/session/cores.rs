//! The division of the processor's cores among the runs that are under way.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// How often a run that waits for all cores looks whether it has to wait any longer.
const LOOK: Duration = Duration::from_millis(20);

/// The cores that the runs of a model share.
pub(super) struct Cores {
    total: usize,
    free: Mutex<usize>,
    freed: Condvar,
}

/// Cores that are in use until this is dropped.
pub(super) struct Share<'c> {
    cores: &'c Cores,
    /// The number of cores, at least 1.
    pub(super) count: usize,
}

impl Cores {
    /// Returns `total` free cores.
    pub(super) fn new(total: usize) -> Self {
        Self {
            total,
            free: Mutex::new(total),
            freed: Condvar::new(),
        }
    }

    /// Returns the number of all cores, free or not.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// Returns free cores, `most` at most, of which there is at least one; waits for the first.
    pub(super) fn take(&self, most: usize) -> Share<'_> {
        self.first_share(&mut self.free.lock(), most)
    }

    /// Returns free cores, `most` at most; waits for the first, and no longer than `patience` for
    /// the others.
    pub(super) fn take_soon(&self, most: usize, patience: Duration) -> Share<'_> {
        let most = most.min(self.total);
        let mut free = self.free.lock();
        while *free == 0 {
            self.freed.wait(&mut free);
        }
        let until = Instant::now() + patience;
        while *free < most && !self.freed.wait_until(&mut free, until).timed_out() {}
        self.first_share(&mut free, most)
    }

    /// Returns all cores, as soon as they are free at the same time; `None` once `is_over` holds.
    pub(super) fn take_all(&self, is_over: impl Fn() -> bool) -> Option<Share<'_>> {
        let mut free = self.free.lock();
        while !is_over() {
            if *free == self.total {
                return self.share_of(&mut free, self.total);
            }
            self.freed.wait_for(&mut free, LOOK);
        }
        None
    }

    /// Returns free cores, `most` at most; `None` where none is free.
    pub(super) fn try_share(&self, most: usize) -> Option<Share<'_>> {
        self.share_of(&mut self.free.lock(), most)
    }

    /// Returns free cores, `most` at most, as soon as there is one.
    fn first_share(&self, free: &mut MutexGuard<'_, usize>, most: usize) -> Share<'_> {
        loop {
            match self.share_of(free, most) {
                Some(share) => return share,
                None => self.freed.wait(free),
            }
        }
    }

    fn share_of(&self, free: &mut usize, most: usize) -> Option<Share<'_>> {
        let count = most.max(1).min(*free);
        *free -= count;
        (count > 0).then_some(Share { cores: self, count })
    }

    fn give_back(&self, count: usize) {
        if count > 0 {
            *self.free.lock() += count;
            self.freed.notify_all();
        }
    }
}

impl<'c> Share<'c> {
    /// Returns one of several cores as a share of its own; `None` where there is only one.
    pub(super) fn split(&mut self) -> Option<Share<'c>> {
        if self.count == 1 {
            return None;
        }
        self.count -= 1;
        Some(Share {
            cores: self.cores,
            count: 1,
        })
    }

    /// Frees the cores beyond `most`, which is at least 1.
    pub(super) fn shrink(&mut self, most: usize) {
        let surplus = self.count.saturating_sub(most.max(1));
        self.count -= surplus;
        self.cores.give_back(surplus);
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.cores.give_back(self.count);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_run_gets_the_free_cores_up_to_its_share() {
        let cores = Cores::new(4);
        let first = cores.take(3);
        assert_eq!(first.count, 3);
        let second = cores.take(4);
        assert_eq!(second.count, 1);
        assert!(cores.try_share(1).is_none());
        drop(first);
        assert_eq!(cores.take(4).count, 3);
    }

    #[test]
    fn cores_beyond_a_share_are_free_again() {
        let cores = Cores::new(4);
        let mut all = cores.take(4);
        all.shrink(2);
        assert_eq!(all.count, 2);
        all.shrink(0);
        assert_eq!(all.count, 1);
        assert_eq!(cores.take(4).count, 3);
    }

    #[test]
    fn a_share_is_divided_into_single_cores() {
        let cores = Cores::new(3);
        let mut all = cores.take(3);
        let others: Vec<Share<'_>> = std::iter::from_fn(|| all.split()).collect();
        assert_eq!((others.len(), all.count), (2, 1));
        assert!(cores.try_share(1).is_none());
        drop(others);
        assert_eq!(cores.take(3).count, 2);
    }

    #[test]
    fn all_cores_are_waited_for_until_they_are_free_or_the_wait_is_over() {
        let cores = Cores::new(2);
        let one = cores.take(1);
        let looks = AtomicUsize::new(0);
        let is_over = || looks.fetch_add(1, Ordering::Relaxed) == 3;
        assert!(cores.take_all(is_over).is_none());
        drop(one);
        assert_eq!(cores.take_all(|| false).map(|all| all.count), Some(2));
    }

    #[test]
    fn a_lone_row_has_a_little_patience_for_its_share() {
        let cores = Cores::new(4);
        let mut all = cores.take(4);
        std::thread::scope(|scope| {
            let patient = scope.spawn(|| cores.take_soon(2, Duration::from_secs(600)).count);
            all.shrink(3);
            all.shrink(2);
            assert_eq!(patient.join().ok(), Some(2));
            let _one = cores.take(1);
            let most = Duration::from_millis(1);
            assert_eq!(cores.take_soon(4, most).count, 1);
        });
    }

    #[test]
    fn a_run_waits_for_its_first_core_only() {
        let cores = Cores::new(2);
        let mut all = cores.take(2);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| cores.take(2).count);
            all.shrink(1);
            assert_eq!(waiting.join().ok(), Some(1));
        });
    }
}
