//! The signal that tells running work to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::Error;
use crate::pace::TurnPace;

/// A signal for work to stop, checked between two runs of the model and between two pieces of a
/// text. It also collects the times of the runs, where they are measured.
#[derive(Debug)]
pub struct Stop {
    cancelled: Arc<AtomicBool>,
    /// When the caller has no use for the answer any more.
    caller: Option<Deadline>,
    /// When the work will have lasted too long.
    run: Option<Deadline>,
    /// The times of a turn's runs, where they are measured.
    pub pace: Option<TurnPace>,
    /// The number of requests that want the cores now, this one counted: those on the model and
    /// those in front of it.
    pub crowd: Arc<AtomicUsize>,
    /// How long the work waited for cores that others had, in nanoseconds.
    held_up: AtomicU64,
}

/// A moment, and the limit that made it.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    /// The moment.
    pub at: Instant,
    /// The time that was allowed from the beginning.
    pub limit: Duration,
}

impl Deadline {
    fn is_over(self) -> bool {
        Instant::now() >= self.at
    }

    /// Returns the error of a request that was not answered by this deadline.
    pub fn exceeded(self, retry_after_seconds: u32) -> Error {
        Error::DeadlineExceeded {
            limit_ms: self.limit.as_millis() as u64,
            retry_after_seconds,
        }
    }
}

/// A request that waits for another one, and wants no cores until this is dropped.
pub struct Aside<'s> {
    /// The number of requests that want the cores; `None` where the request was not counted.
    crowd: Option<&'s AtomicUsize>,
}

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        if let Some(crowd) = self.crowd {
            crowd.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Stop {
    /// Returns the stop of a request, whose caller may have said how long the answer is of use.
    pub(crate) fn of_request(caller: Option<Deadline>) -> Arc<Self> {
        Arc::new(Self {
            cancelled: Arc::default(),
            caller,
            run: None,
            pace: None,
            crowd: Arc::default(),
            held_up: AtomicU64::default(),
        })
    }

    /// Returns a stop for work without a caller; by itself it never stops the work.
    pub fn never() -> Arc<Self> {
        Self::of_request(None)
    }

    /// Stops the work at its next run.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether the caller has gone.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Returns a stop with the additional limit that work which begins now ends after `limit`, of
    /// which `spent` is already used.
    pub fn within(&self, limit: Duration, spent: Duration) -> Self {
        let left = limit.saturating_sub(spent);
        let end = Instant::now().checked_add(left);
        Self {
            cancelled: Arc::clone(&self.cancelled),
            caller: self.caller,
            run: end.map(|at| Deadline { at, limit }),
            pace: None,
            crowd: Arc::clone(&self.crowd),
            held_up: AtomicU64::default(),
        }
    }

    /// Returns the number of requests that want the cores now, at least 1.
    pub fn crowd(&self) -> usize {
        self.crowd.load(Ordering::Relaxed).max(1)
    }

    /// Notes that the work waited so long for cores that others had.
    pub fn note_wait(&self, waited: Duration) {
        let nanoseconds = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        self.held_up.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Returns how long the work waited for cores that others had.
    pub fn held_up(&self) -> Duration {
        Duration::from_nanos(self.held_up.load(Ordering::Relaxed))
    }

    /// Leaves the requests that want the cores, until what this returns is dropped.
    pub fn stand_aside(&self) -> Aside<'_> {
        let less = |crowd: usize| crowd.checked_sub(1);
        let left = self
            .crowd
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        Aside {
            crowd: left.is_ok().then_some(&*self.crowd),
        }
    }

    /// Checks whether the caller still has a use for the answer.
    ///
    /// # Errors
    /// [`Error::Cancelled`] and [`Error::DeadlineExceeded`].
    pub fn check_caller(&self) -> Result<(), Error> {
        if self.is_cancelled() {
            return Err(Error::Cancelled);
        }
        match self.caller.filter(|caller| caller.is_over()) {
            Some(caller) => Err(caller.exceeded(1)),
            None => Ok(()),
        }
    }

    /// Checks whether the work may go on. The time for which it was held up does not count in the
    /// limit of its run.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`Error::DeadlineExceeded`] and [`Error::RunTimeout`].
    pub fn check(&self) -> Result<(), Error> {
        self.check_caller()?;
        let is_over = |run: &Deadline| {
            let end = run.at.checked_add(self.held_up());
            end.is_some_and(|end| Instant::now() >= end)
        };
        match self.run.filter(is_over) {
            Some(Deadline { limit, .. }) => Err(Error::RunTimeout {
                limit_ms: limit.as_millis() as u64,
                retry_after_seconds: 1,
            }),
            None => Ok(()),
        }
    }
}
