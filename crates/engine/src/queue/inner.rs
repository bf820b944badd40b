//! The contents of the queue: the requests that are admitted, and those in the line.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::order::{self, Order};
use super::rate::Rate;
use super::{Load, RequestKind};
use crate::Error;
use crate::stop::{Deadline, Stop};

/// A request from its arrival to its end.
pub(super) struct Admitted {
    pub(super) kind: RequestKind,
    pub(super) bytes: usize,
    /// The request's place in the queue: the lowest place goes first.
    pub(super) place: u64,
    /// When the wait for the model began.
    pub(super) arrived: Instant,
    /// When the caller has no use for the answer any more.
    pub(super) caller: Option<Deadline>,
    pub(super) stop: Arc<Stop>,
    /// The bytes of results that the caller of a paused batch has not taken; `None` unless the
    /// batch is paused.
    pub(super) unread: Option<usize>,
}

impl Admitted {
    /// Returns the bytes that are held for the request as long as it is there.
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes + self.unread.unwrap_or(0)
    }
}

/// A request in the queue.
pub(super) struct Waiting<T> {
    pub(super) ticket: u64,
    pub(super) kind: RequestKind,
    pub(super) work: T,
    pub(super) tokens: usize,
    /// How much of the request's time on the model is already used.
    pub(super) spent: Duration,
    pub(super) arrived: Instant,
    pub(super) joined: Instant,
    pub(super) deadline: Instant,
}

/// The contents of the queue, which its lock guards.
pub(super) struct Inner<T> {
    pub(super) admitted: HashMap<u64, Admitted>,
    /// The queue, keyed by place.
    pub(super) line: BTreeMap<u64, Waiting<T>>,
    pub(super) next_place: u64,
    /// The requests on the model.
    pub(super) running: Vec<u64>,
    /// The most requests that may be on the model at once.
    pub(super) most_running: usize,
    /// When the model began to be busy, or when its latest turn ended; `None` while it is free.
    pub(super) busy_since: Option<Instant>,
    /// The number of requests on the model and in the line, for those that run.
    pub(super) crowd: Arc<AtomicUsize>,
    /// The number of batches that wait for their callers.
    pub(super) paused: usize,
    /// The bytes of single requests and of batches, in this order.
    pub(super) bytes: [usize; 2],
    pub(super) tokens: usize,
    pub(super) rate: Rate,
    pub(super) order: Order,
    /// The number of single requests that were admitted since the latest turn began, and when the
    /// latest of them was.
    pub(super) fresh: usize,
    pub(super) latest_admitted: Option<Instant>,
    /// The moment until which the thread that refuses late requests sleeps; `None` while it is
    /// awake.
    pub(super) asleep_until: Option<Instant>,
    pub(super) closed: bool,
}

impl<T> Inner<T> {
    pub(super) fn kind(&self, ticket: u64) -> Option<RequestKind> {
        Some(self.admitted.get(&ticket)?.kind)
    }

    /// Returns the place of the request that goes next.
    pub(super) fn next(&mut self) -> Option<u64> {
        let (&first, _) = self.line.first_key_value()?;
        if !self.order.is_newest_first() {
            return Some(first);
        }
        if self.order.next_is_for_who_waits()
            && let Some(place) = self.who_waits()
        {
            return Some(place);
        }
        let mut newest = self.line.iter().rev();
        let newest = newest.find(|(_, waiting)| waiting.kind == RequestKind::Single);
        Some(newest.map_or(first, |(place, _)| *place))
    }

    /// Returns the place of the first entry that does not compete as the newest: a state of a
    /// batch, or a request that has waited for longer than any that gave up.
    pub(super) fn who_waits(&self) -> Option<u64> {
        let now = Instant::now();
        let mut line = self.line.iter();
        let waits = line.find(|(_, waiting)| {
            let age = now.saturating_duration_since(waiting.arrived);
            waiting.kind == RequestKind::Batch || self.order.outlasts(age, now)
        });
        waits.map(|(place, _)| *place)
    }

    /// Returns the request that will not have its turn, where too many wait while the newest go
    /// first: the oldest one, except for those that have outlasted the requests that gave up.
    pub(super) fn left_over(&self) -> Option<u64> {
        if !self.order.is_newest_first() || self.line.len() <= order::MOST_WAITING {
            return None;
        }
        let now = Instant::now();
        let line = self.line.values();
        let mut newer = line.filter(|waiting| {
            let age = now.saturating_duration_since(waiting.arrived);
            waiting.kind == RequestKind::Single && !self.order.outlasts(age, now)
        });
        let oldest = newer.next()?.ticket;
        (newer.count() >= order::MOST_WAITING).then_some(oldest)
    }

    /// Notes that a single request was admitted.
    pub(super) fn note_admitted(&mut self, now: Instant) {
        self.fresh += 1;
        self.latest_admitted = Some(now);
    }

    /// Whether a request that arrives now would only push out one that is as good as new.
    pub(super) fn has_enough_fresh(&self, now: Instant) -> bool {
        let is_fresh = |latest| now.saturating_duration_since(latest) < order::FRESH_FOR;
        self.order.is_newest_first()
            && self.fresh >= order::MOST_WAITING
            && self.latest_admitted.is_some_and(is_fresh)
    }

    /// Returns the error of a request that still has to wait for `tokens` and so will not be
    /// answered in time; `None` if it will be, or if no time is known.
    pub(super) fn lateness(
        &self,
        deadline: Instant,
        caller: Option<Deadline>,
        tokens: usize,
    ) -> Option<Error> {
        // While the newest go first, the length of the queue does not tell when the request has its
        // turn.
        if self.order.is_newest_first() {
            return None;
        }
        let ends = Instant::now() + self.rate.time(tokens)?;
        let retry_after_seconds = self.rate.retry_after_seconds(self.tokens);
        match caller.filter(|caller| caller.at < ends) {
            Some(caller) => Some(caller.exceeded(retry_after_seconds)),
            None => (deadline < ends).then_some(Error::QueueFull {
                retry_after_seconds,
            }),
        }
    }

    pub(super) fn load(&self) -> Load {
        let running = self.running.len();
        Load {
            running,
            // A batch that has ended may still have a state on the model.
            waiting: self.active().saturating_sub(running),
        }
    }

    /// Returns the number of requests that are on the model or wait for it.
    pub(super) fn active(&self) -> usize {
        self.admitted.len() - self.paused
    }

    pub(super) fn forget(&mut self, ticket: u64) {
        if let Some(gone) = self.admitted.remove(&ticket) {
            self.bytes[gone.kind as usize] -= gone.held_bytes();
            self.paused -= usize::from(gone.unread.is_some());
        }
    }

    /// Notes the bytes that a batch's caller has not taken, or that the batch goes on.
    pub(super) fn set_unread(&mut self, ticket: u64, unread: Option<usize>) {
        let Some(batch) = self.admitted.get_mut(&ticket) else {
            return;
        };
        self.paused -= usize::from(batch.unread.is_some());
        self.bytes[RequestKind::Batch as usize] -= batch.held_bytes();
        batch.unread = unread;
        self.bytes[RequestKind::Batch as usize] += batch.held_bytes();
        self.paused += usize::from(unread.is_some());
    }

    /// Notes that a turn is over, or will not come.
    pub(super) fn end_turn(&mut self, ticket: u64) {
        let admitted = self.admitted.get(&ticket);
        if admitted.is_some_and(|admitted| admitted.kind == RequestKind::Single) {
            self.forget(ticket);
        }
    }

    pub(super) fn new_place(&mut self) -> u64 {
        self.next_place += 1;
        self.next_place
    }

    /// Whether another request may be on the model.
    pub(super) fn has_turn(&self) -> bool {
        self.running.len() < self.most_running
    }

    /// Puts a request on the model.
    pub(super) fn begin_turn(&mut self, ticket: u64, now: Instant) {
        self.running.push(ticket);
        self.fresh = 0;
        self.busy_since.get_or_insert(now);
    }

    /// Takes a request off the model, and returns how long the model was busy since a turn ended
    /// before: together these times are the time in which the tokens of all turns were run.
    pub(super) fn free_turn(&mut self, ticket: u64, now: Instant) -> Duration {
        self.running.retain(|running| *running != ticket);
        self.crowd.fetch_sub(1, Ordering::Relaxed);
        let since = if self.running.is_empty() {
            self.busy_since.take()
        } else {
            self.busy_since.replace(now)
        };
        since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    pub(super) fn remove_from_line(&mut self, ticket: u64) -> Option<T> {
        let place = self.admitted.get(&ticket)?.place;
        let waiting = self.line.remove(&place)?;
        self.tokens -= waiting.tokens;
        self.crowd.fetch_sub(1, Ordering::Relaxed);
        self.end_turn(ticket);
        Some(waiting.work)
    }
}
