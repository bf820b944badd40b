//! The chunks of states that requests prefill at the moment, so that two requests about the same
//! new state prefill it once.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::Key;
use crate::Error;
use crate::stop::Stop;

/// How often a request that waits for another one's chunk looks whether its own caller has gone.
const LOOK: Duration = Duration::from_millis(10);

/// The chunks that are being prefilled.
#[derive(Default)]
pub struct Claims {
    claimed: Mutex<HashSet<Key>>,
    released: Condvar,
}

/// Chunks that no other request prefills until this is dropped.
pub struct Claim<'c> {
    claims: &'c Claims,
    keys: Vec<Key>,
}

impl Claims {
    /// Waits until no other request prefills one of these chunks, and claims them all. The wait
    /// does not count in the limit of a run, and leaves the cores to the others.
    ///
    /// A request claims its chunks at once and waits for nothing while it has them, so no two
    /// requests wait for each other.
    ///
    /// # Errors
    /// The errors of `stop`.
    pub fn claim(&self, keys: &[Key], stop: &Stop) -> Result<Claim<'_>, Error> {
        let mut claimed = self.claimed.lock();
        if keys.iter().any(|key| claimed.contains(key)) {
            let began = Instant::now();
            let _aside = stop.stand_aside();
            while keys.iter().any(|key| claimed.contains(key)) {
                stop.check_caller()?;
                self.released.wait_for(&mut claimed, LOOK);
            }
            stop.note_wait(began.elapsed());
        }
        claimed.extend(keys);
        Ok(Claim {
            claims: self,
            keys: keys.to_vec(),
        })
    }

    fn release(&self, keys: &[Key]) {
        if keys.is_empty() {
            return;
        }
        let mut claimed = self.claimed.lock();
        for key in keys {
            claimed.remove(key);
        }
        drop(claimed);
        self.released.notify_all();
    }
}

impl Claim<'_> {
    /// Releases all chunks but those that are `missing` from the cache.
    pub fn retain(&mut self, missing: &HashSet<Key>) {
        let keys = self.keys.drain(..);
        let (missing, found) = keys.partition(|key| missing.contains(key));
        self.keys = missing;
        self.claims.release(&found);
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.claims.release(&self.keys);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    const KEYS: [Key; 3] = [Key([1; 32]), Key([2; 32]), Key([3; 32])];

    #[test]
    fn a_chunk_is_claimed_by_one_request_at_a_time() {
        let claims = Claims::default();
        let stop = Stop::never();
        // A thread that gets its turn on a processor late finds the chunks free, and waits for nothing.
        for pause in [1, 10, 100, 1_000, 10_000].map(Duration::from_millis) {
            let first = claims.claim(&KEYS[..2], &stop).expect("free");
            assert!(claims.claim(&KEYS[2..], &stop).is_ok(), "another chunk");
            std::thread::scope(|scope| {
                let second = scope.spawn(|| claims.claim(&KEYS[1..], &stop).map(drop));
                std::thread::sleep(pause);
                assert!(!second.is_finished());
                drop(first);
                assert!(second.join().expect("no panic").is_ok());
            });
            if stop.held_up() > Duration::ZERO {
                break;
            }
        }
        assert!(stop.held_up() > Duration::ZERO, "it counts as waiting");
        assert!(claims.claimed.lock().is_empty());
    }

    #[test]
    fn chunks_that_are_in_the_cache_are_released_at_once() {
        let claims = Claims::default();
        let stop = Stop::never();
        let mut claim = claims.claim(&KEYS, &stop).expect("free");
        claim.retain(&HashSet::from([KEYS[1]]));
        assert_eq!(*claims.claimed.lock(), HashSet::from([KEYS[1]]));
    }

    #[test]
    fn a_wait_leaves_the_cores_to_the_others_and_takes_no_time_of_the_run() {
        let claims = Claims::default();
        let first = claims.claim(&KEYS, &Stop::never());
        let stop = Stop::never().within(Duration::from_millis(20), Duration::ZERO);
        stop.crowd.store(2, Ordering::Relaxed);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| claims.claim(&KEYS, &stop).map(drop));
            while stop.crowd() == 2 && !second.is_finished() {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(40));
            assert!(!second.is_finished());
            drop(first);
            assert!(second.join().expect("no panic").is_ok());
        });
        assert_eq!(stop.crowd(), 2);
        assert!(stop.held_up() >= Duration::from_millis(40));
    }

    #[test]
    fn a_request_whose_caller_has_gone_does_not_wait() {
        let claims = Claims::default();
        let _first = claims.claim(&KEYS, &Stop::never());
        let gone = Stop::never();
        gone.cancel();
        let second = claims.claim(&KEYS, &gone).map(drop);
        assert_eq!(second.expect_err("claimed").code(), "cancelled");
    }
}
