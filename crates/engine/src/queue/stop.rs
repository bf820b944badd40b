//! The way in which running work is told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::Error;
use crate::pace::TurnPace;

/// Tells work to stop; asked between two runs of the model, and between two pieces of a text. The work may tell it what a run
/// took.
#[derive(Debug)]
pub struct Stop {
    cancelled: Arc<AtomicBool>,
    /// When the caller has no use for the answer any more.
    caller: Option<Deadline>,
    /// When the work has lasted too long.
    run: Option<Deadline>,
    /// What the runs of a turn took, where somebody wants to know.
    pub pace: Option<TurnPace>,
}

/// A moment, and the limit that made it.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    /// The moment.
    pub at: Instant,
    /// What was allowed from the beginning on.
    pub limit: Duration,
}

impl Deadline {
    fn is_over(self) -> bool {
        Instant::now() >= self.at
    }

    /// What a request gets that was not answered by then.
    pub fn exceeded(self, retry_after_seconds: u32) -> Error {
        Error::DeadlineExceeded {
            limit_ms: self.limit.as_millis() as u64,
            retry_after_seconds,
        }
    }
}

impl Stop {
    /// The stop of a request, whose caller may have said how long the answer is of use.
    pub(super) fn of_request(caller: Option<Deadline>) -> Arc<Self> {
        Arc::new(Self {
            cancelled: Arc::default(),
            caller,
            run: None,
            pace: None,
        })
    }

    /// A stop that nobody pulls, for work without a caller.
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

    /// The stop of work that begins now and ends after `limit` as well, of which `spent` is over.
    pub fn within(&self, limit: Duration, spent: Duration) -> Self {
        let left = limit.saturating_sub(spent);
        let end = Instant::now().checked_add(left);
        Self {
            cancelled: Arc::clone(&self.cancelled),
            caller: self.caller,
            run: end.map(|at| Deadline { at, limit }),
            pace: None,
        }
    }

    /// Whether work may go on.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`Error::DeadlineExceeded`] and [`Error::RunTimeout`].
    pub fn check(&self) -> Result<(), Error> {
        if self.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if let Some(caller) = self.caller.filter(|caller| caller.is_over()) {
            return Err(caller.exceeded(1));
        }
        match self.run.filter(|run| run.is_over()) {
            Some(Deadline { limit, .. }) => Err(Error::RunTimeout {
                limit_ms: limit.as_millis() as u64,
                retry_after_seconds: 1,
            }),
            None => Ok(()),
        }
    }
}
