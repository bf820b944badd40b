//! The queue in front of the model, which is also the lock on it: first come, first served,
//! bounded, cancellable, measured.
//!
//! A request is admitted when it arrives, joins the queue when it is encoded, and gets the model
//! when all requests that arrived and joined before it are done; [`order`] has the exception. As
//! many requests may be on the model at once as the queue is told, one unless the operator says
//! otherwise. The thread that finds the model free runs it; no request waits for a thread of its
//! own.
//!
//! The queue is bounded in requests, in bytes and in time: a request that would not be answered
//! before its deadline, by the measured rate, is refused when it arrives and not after it has
//! waited.
//!
//! A batch is admitted once and joins the queue again for each of its states, behind all requests
//! that arrived meanwhile. A batch whose caller does not take its results is paused: it waits for
//! its caller, not for the model, so it holds no place that another request could have.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use self::inner::{Admitted, Inner, Waiting};
use self::order::Order;
use self::rate::Rate;
use crate::Error;
use crate::pace::TurnPace;
use crate::stop::{Deadline, Stop};

mod inner;
mod order;
mod rate;

/// The limits of the queue.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most requests that may wait, the one on the model not counted.
    pub max_queue: usize,
    /// The most bytes in the bodies of all waiting requests, and the same number again for batches.
    pub max_queue_bytes: usize,
    /// How long a request may wait, counted from its arrival.
    pub request_timeout: Duration,
    /// How long one request may take on encoding and on the model together.
    pub max_run: Duration,
}

/// The kind of a request: how often it joins the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// The request joins once, and is gone after its turn.
    Single,
    /// The request joins once for each state, and stays until it leaves.
    Batch,
}

/// A request that arrives.
#[derive(Debug, Clone, Copy)]
pub struct Entrant {
    /// The number of the request, which no other request has.
    pub ticket: u64,
    /// How often the request will join the queue.
    pub kind: RequestKind,
    /// The bytes of the request's body.
    pub bytes: usize,
    /// How long the caller still has a use for the answer, and how long it had one in the
    /// beginning.
    pub patience: Option<(Duration, Duration)>,
}

/// The admission of a request.
#[derive(Debug)]
pub struct Admission {
    /// The stop that is checked while the request is encoded.
    pub stop: Arc<Stop>,
    /// Whether most waiting requests will not be answered, so that a request should be encoded only
    /// once it has the model.
    pub is_encoded_late: bool,
}

/// A request that has been given the model; the model is free again when this is dropped.
pub struct Turn<'q, T> {
    queue: &'q Queue<T>,
    ticket: u64,
    /// The number of tokens that the model sees.
    pub tokens: usize,
    started: Instant,
    /// How long the request was in the queue.
    pub waited: Duration,
    /// The work that was put into the queue; `None` once it is taken.
    pub work: Option<T>,
    /// The stop that is checked between two runs.
    pub stop: Arc<Stop>,
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        let took = self.started.elapsed();
        let mut inner = self.queue.inner.lock();
        let is_lost = self.stop.is_cancelled();
        let busy = inner.free_turn(self.ticket, Instant::now());
        // The time of a turn that was cut short does not tell how long its tokens take.
        if !is_lost {
            inner.rate.add(self.tokens, busy);
        }
        if inner.kind(self.ticket) == Some(RequestKind::Single) {
            inner.order.end_turn(took, is_lost);
        }
        inner.end_turn(self.ticket);
        self.queue.tell(inner);
    }
}

/// The numbers of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// The number of requests on the model.
    pub running: usize,
    /// The number of requests that have arrived and are not yet on the model.
    pub waiting: usize,
}

/// The queue in front of the model.
pub struct Queue<T> {
    limits: Limits,
    inner: Mutex<Inner<T>>,
    /// Signals that the queue was closed, that a request left the closed queue, or that a deadline
    /// comes before the thread of [`Queue::expired`] would wake.
    changed: Condvar,
}

impl<T> Queue<T> {
    /// Returns an empty queue in front of a free model.
    pub fn new(limits: Limits) -> Self {
        let inner = Inner {
            admitted: HashMap::new(),
            line: BTreeMap::new(),
            next_place: 0,
            running: Vec::new(),
            most_running: 1,
            busy_since: None,
            crowd: Arc::default(),
            paused: 0,
            bytes: [0; 2],
            tokens: 0,
            rate: Rate::default(),
            order: Order::default(),
            fresh: 0,
            latest_admitted: None,
            asleep_until: None,
            closed: false,
        };
        Self {
            limits,
            inner: Mutex::new(inner),
            changed: Condvar::new(),
        }
    }

    /// Sets how many requests may be on the model at once, at least 1. More than that may still run
    /// after the number was made smaller.
    pub fn set_most_running(&self, most: usize) {
        self.inner.lock().most_running = most.max(1);
    }

    /// Admits a request.
    ///
    /// A large batch does not keep single requests out: its bytes are counted separately.
    ///
    /// # Errors
    /// [`Error::QueueFull`], [`Error::DeadlineExceeded`] and [`Error::Closing`]; the request is not
    /// admitted then.
    pub fn admit(&self, entrant: Entrant) -> Result<Admission, Error> {
        let mut inner = self.inner.lock();
        if inner.closed {
            return Err(Error::Closing);
        }
        if !self.has_room(&inner, entrant) {
            return Err(Error::QueueFull {
                retry_after_seconds: inner.rate.retry_after_seconds(inner.tokens),
            });
        }
        let arrived = Instant::now();
        let deadline_in = |(left, limit)| Deadline {
            at: arrived + left,
            limit,
        };
        let caller = entrant.patience.map(deadline_in);
        let deadline = self.deadline(arrived, caller);
        // When a state of a batch waits too long, only that state fails, not the batch.
        let is_single = entrant.kind == RequestKind::Single;
        let late = is_single.then(|| inner.lateness(deadline, caller, inner.tokens));
        if let Some(error) = late.flatten() {
            return Err(error);
        }
        let stop = Stop::of_request(caller);
        inner.bytes[entrant.kind as usize] += entrant.bytes;
        let admitted = Admitted {
            kind: entrant.kind,
            bytes: entrant.bytes,
            place: inner.new_place(),
            arrived,
            caller,
            stop: Arc::clone(&stop),
            unread: None,
        };
        inner.admitted.insert(entrant.ticket, admitted);
        if is_single {
            inner.note_admitted(arrived);
        }
        if inner.asleep_until.is_some_and(|until| deadline < until) {
            self.changed.notify_all();
        }
        let is_encoded_late = is_single && inner.order.is_newest_first();
        Ok(Admission {
            stop,
            is_encoded_late,
        })
    }

    /// Returns the error of a single request that arrives now and need not be read: the queue is
    /// full, or, in a storm of requests whose callers hang up, newer ones would push it out at once.
    pub fn refusal(&self) -> Option<Error> {
        let inner = self.inner.lock();
        let is_refused =
            !inner.closed && (self.is_full(&inner) || inner.has_enough_fresh(Instant::now()));
        is_refused.then(|| Error::QueueFull {
            retry_after_seconds: inner.rate.retry_after_seconds(inner.tokens),
        })
    }

    /// Whether as many requests wait as may.
    fn is_full(&self, inner: &Inner<T>) -> bool {
        inner.active() >= inner.most_running && inner.load().waiting >= self.limits.max_queue
    }

    /// Whether a request may be admitted in addition to those that are there.
    fn has_room(&self, inner: &Inner<T>, entrant: Entrant) -> bool {
        // A request that would run at once does not wait, however large it is.
        let is_idle = inner.active() < inner.most_running;
        let held = inner.bytes[entrant.kind as usize];
        let fits = held + entrant.bytes <= self.limits.max_queue_bytes;
        // A paused batch does not keep a single request out either. Batches do keep other batches
        // out by their bytes, since otherwise the paused ones would have no bound.
        let has_bytes = match entrant.kind {
            RequestKind::Single => is_idle || fits,
            RequestKind::Batch => held == 0 || fits,
        };
        has_bytes && !self.is_full(inner)
    }

    /// Returns when a request that arrived at `arrived` must have got the model.
    fn deadline(&self, arrived: Instant, caller: Option<Deadline>) -> Instant {
        let own = arrived + self.timeout();
        caller.map_or(own, |caller| own.min(caller.at))
    }

    /// Puts an admitted request into the queue: a single one at the place of its arrival, a state
    /// of a batch behind all requests that have arrived. `spent` is the part of its time on the
    /// model that is already used.
    ///
    /// Returns the work that has no place in the queue, with its error: this work with
    /// [`Error::Cancelled`] when its caller has gone meanwhile, or with an error of
    /// [`Queue::admit`] when, by its tokens, it will not be answered in time; or, while the newest
    /// go first, the oldest work with [`Error::QueueFull`].
    pub fn join(&self, ticket: u64, work: T, tokens: usize, spent: Duration) -> Option<(T, Error)> {
        let mut inner = self.inner.lock();
        let last = inner.new_place();
        let Some(admitted) = inner.admitted.get_mut(&ticket) else {
            return Some((work, Error::Cancelled));
        };
        if admitted.kind == RequestKind::Batch {
            if admitted.stop.check().is_err() {
                return Some((work, Error::Cancelled));
            }
            (admitted.place, admitted.arrived) = (last, Instant::now());
        }
        let (kind, place, arrived) = (admitted.kind, admitted.place, admitted.arrived);
        let caller = admitted.caller;
        let deadline = self.deadline(arrived, caller);
        if let Some(caller) = caller.filter(|_| inner.load().waiting > 1)
            && let Some(error) = inner.lateness(caller.at, Some(caller), inner.tokens + tokens)
        {
            inner.forget(ticket);
            self.tell(inner);
            return Some((work, error));
        }
        if deadline <= Instant::now() {
            // The request was encoded until after its deadline, which the thread of `expired` no
            // longer waits for.
            self.changed.notify_all();
        }
        let waiting = Waiting {
            ticket,
            kind,
            work,
            tokens,
            spent,
            arrived,
            joined: Instant::now(),
            deadline,
        };
        inner.line.insert(place, waiting);
        inner.tokens += tokens;
        inner.crowd.fetch_add(1, Ordering::Relaxed);
        let left_over = inner.left_over()?;
        let retry_after_seconds = inner.rate.retry_after_seconds(inner.tokens);
        let work = inner.remove_from_line(left_over)?;
        self.tell(inner);
        Some((
            work,
            Error::QueueFull {
                retry_after_seconds,
            },
        ))
    }

    /// Returns the request that goes next, if it may be on the model now.
    pub fn take(&self) -> Option<Turn<'_, T>> {
        let mut inner = self.inner.lock();
        if !inner.has_turn() {
            return None;
        }
        let Some(place) = inner.next() else {
            inner.order.line_is_empty();
            return None;
        };
        let waiting = inner.line.remove(&place)?;
        let ticket = waiting.ticket;
        inner.tokens -= waiting.tokens;
        let stop = Arc::clone(&inner.admitted.get(&ticket)?.stop);
        let crowd = Arc::clone(&inner.crowd);
        let started = Instant::now();
        inner.begin_turn(ticket, started);
        drop(inner);
        let mut stop = stop.within(self.limits.max_run, waiting.spent);
        stop.pace = Some(TurnPace::default());
        stop.crowd = crowd;
        let stop = Arc::new(stop);
        Some(Turn {
            queue: self,
            ticket,
            tokens: waiting.tokens,
            started,
            waited: started.saturating_duration_since(waiting.joined),
            work: Some(waiting.work),
            stop,
        })
    }

    /// Notes that a batch waits for its caller, who has not taken `unread_bytes` bytes of results.
    /// The batch has no place in the queue until it goes on; the bytes that it holds count as bytes
    /// of batches.
    pub fn pause(&self, ticket: u64, unread_bytes: usize) {
        self.inner.lock().set_unread(ticket, Some(unread_bytes));
    }

    /// Notes that the caller of a paused batch takes its results again.
    pub fn go_on(&self, ticket: u64) {
        self.inner.lock().set_unread(ticket, None);
    }

    /// Notes that a request ended before it joined the queue, or that a batch has ended.
    pub fn leave(&self, ticket: u64) {
        let mut inner = self.inner.lock();
        inner.forget(ticket);
        self.tell(inner);
    }

    /// Stops a request whose caller has gone; returns its work if it was in the queue.
    pub fn cancel(&self, ticket: u64) -> Option<T> {
        let mut inner = self.inner.lock();
        let admitted = inner.admitted.get(&ticket)?;
        admitted.stop.cancel();
        if admitted.kind == RequestKind::Single {
            let now = Instant::now();
            let age = now.saturating_duration_since(admitted.arrived);
            inner.order.gave_up(age, now);
        }
        let work = inner.remove_from_line(ticket);
        self.tell(inner);
        work
    }

    /// Waits until requests have been in the queue for too long, and takes them out of it, each
    /// with its error. Returns `None` when the queue is closed and empty for good.
    pub fn expired(&self) -> Option<Vec<(T, Error)>> {
        let mut inner = self.inner.lock();
        loop {
            if inner.closed && inner.admitted.is_empty() {
                return None;
            }
            let now = Instant::now();
            let late = self.take_late(&mut inner, now);
            if !late.is_empty() {
                self.tell(inner);
                return Some(late);
            }
            // A request that arrives later mostly has a later deadline, so it wakes this thread
            // only if its deadline is earlier: waking it for each request would cost more than
            // everything else that the queue does.
            let admitted = inner.admitted.values();
            let deadlines =
                admitted.map(|admitted| self.deadline(admitted.arrived, admitted.caller));
            let next = deadlines.filter(|deadline| *deadline > now).min();
            let until = next.unwrap_or(now + self.timeout().max(Duration::from_millis(1)));
            inner.asleep_until = Some(until);
            self.changed.wait_until(&mut inner, until);
            inner.asleep_until = None;
        }
    }

    fn take_late(&self, inner: &mut Inner<T>, now: Instant) -> Vec<(T, Error)> {
        let line = inner.line.values();
        let late = line.filter(|waiting| waiting.deadline <= now);
        let late: Vec<u64> = late.map(|waiting| waiting.ticket).collect();
        let retry_after_seconds = inner.rate.retry_after_seconds(inner.tokens);
        let late = late.into_iter().filter_map(|ticket| {
            let caller = inner.admitted.get(&ticket)?.caller;
            let error = match caller.filter(|caller| caller.at <= now) {
                Some(caller) => caller.exceeded(retry_after_seconds),
                None => Error::QueueTimeout {
                    limit_ms: self.limits.request_timeout.as_millis() as u64,
                    retry_after_seconds,
                },
            };
            Some((inner.remove_from_line(ticket)?, error))
        });
        late.collect()
    }

    fn timeout(&self) -> Duration {
        let far = Duration::from_secs(365 * 24 * 3600);
        self.limits.request_timeout.min(far)
    }

    /// Unlocks the queue and wakes the threads that wait for a closed queue to become empty; while
    /// the queue is open, no thread waits for a request to leave.
    fn tell(&self, inner: MutexGuard<'_, Inner<T>>) {
        let closed = inner.closed;
        drop(inner);
        if closed {
            self.changed.notify_all();
        }
    }

    /// Whether another request may be on the model.
    pub fn is_free(&self) -> bool {
        self.inner.lock().has_turn()
    }

    /// Returns how long one request may take on encoding and on the model together.
    pub fn max_run(&self) -> Duration {
        self.limits.max_run
    }

    /// Returns the numbers of requests.
    pub fn load(&self) -> Load {
        self.inner.lock().load()
    }

    /// Whether the newest request goes first, because callers give up before their turn.
    pub fn is_newest_first(&self) -> bool {
        self.inner.lock().order.is_newest_first()
    }

    /// Makes the newest requests go first, as if callers had given up.
    #[cfg(test)]
    pub fn turn_around(&self) {
        let mut inner = self.inner.lock();
        inner.order.end_turn(Duration::from_secs(1), true);
    }

    /// Returns the number of requests in the queue.
    pub fn in_line(&self) -> usize {
        self.inner.lock().line.len()
    }

    /// Closes the queue: no more requests are admitted.
    pub fn close(&self) {
        self.inner.lock().closed = true;
        self.changed.notify_all();
    }

    /// Stops all requests: returns the work of those in the queue; the others end at their next
    /// run.
    pub fn cancel_all(&self) -> Vec<T> {
        let mut inner = self.inner.lock();
        for admitted in inner.admitted.values() {
            admitted.stop.cancel();
        }
        let tickets: Vec<u64> = inner.line.values().map(|waiting| waiting.ticket).collect();
        let work = tickets.into_iter();
        let work = work.filter_map(|ticket| inner.remove_from_line(ticket));
        let work = work.collect();
        // A batch whose caller takes nothing is neither in the queue nor on the model, so nothing
        // else would end it.
        let admitted = inner.admitted.iter();
        let batches = admitted.filter(|(ticket, admitted)| {
            admitted.kind == RequestKind::Batch && !inner.running.contains(ticket)
        });
        let batches: Vec<u64> = batches.map(|(ticket, _)| *ticket).collect();
        for ticket in batches {
            inner.forget(ticket);
        }
        self.tell(inner);
        work
    }

    /// Waits until no admitted request is left.
    pub fn wait_until_empty(&self) {
        let mut inner = self.inner.lock();
        while !inner.admitted.is_empty() {
            self.changed.wait(&mut inner);
        }
    }
}

#[cfg(test)]
mod tests;
