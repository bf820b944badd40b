//! The queue in front of the model, which is also the lock on it: first come, first served,
//! bounded, cancellable, measured.
//!
//! A request is admitted when it arrives, joins the queue when it is encoded, and gets the model
//! when all requests that arrived and joined before it are done; [`order`] has the exception. The
//! thread that finds the model free runs it; no request waits for a thread of its own.
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
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::Error;
use crate::pace::TurnPace;

mod order;
mod rate;
mod stop;

use order::Order;
use rate::Rate;
use stop::Deadline;
pub use stop::Stop;

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

/// The kind of an admitted request: how often it joins the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
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
    pub entry: Entry,
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

/// The state of a request from its arrival to its end.
struct Admitted {
    entry: Entry,
    bytes: usize,
    /// The request's place in the queue: the lowest place goes first.
    place: u64,
    /// When the wait for the model began.
    arrived: Instant,
    /// When the caller has no use for the answer any more.
    caller: Option<Deadline>,
    stop: Arc<Stop>,
    /// The bytes of results that the caller of a paused batch has not taken; `None` unless the
    /// batch is paused.
    unread: Option<usize>,
}

impl Admitted {
    /// Returns the bytes that are held for the request as long as it is there.
    fn held_bytes(&self) -> usize {
        self.bytes + self.unread.unwrap_or(0)
    }
}

/// A request in the queue.
struct Waiting<T> {
    ticket: u64,
    entry: Entry,
    work: T,
    tokens: usize,
    /// How much of the request's time on the model is already used.
    spent: Duration,
    arrived: Instant,
    joined: Instant,
    deadline: Instant,
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
        let mut state = self.queue.state.lock();
        let is_lost = self.stop.is_cancelled();
        // The time of a turn that was cut short does not tell how long its tokens take.
        if !is_lost {
            state.rate.add(self.tokens, took);
        }
        if state.entry(self.ticket) == Some(Entry::Single) {
            state.order.end_turn(took, is_lost);
        }
        state.running = None;
        state.end_turn(self.ticket);
        self.queue.tell(state);
    }
}

/// The numbers of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// The number of requests on the model: 0 or 1.
    pub running: usize,
    /// The number of requests that have arrived and are not yet on the model.
    pub waiting: usize,
}

struct State<T> {
    admitted: HashMap<u64, Admitted>,
    /// The queue, keyed by place.
    line: BTreeMap<u64, Waiting<T>>,
    next_place: u64,
    running: Option<u64>,
    /// The number of batches that wait for their callers.
    paused: usize,
    /// The bytes of single requests and of batches, in this order.
    bytes: [usize; 2],
    tokens: usize,
    rate: Rate,
    order: Order,
    /// The moment until which the thread that refuses late requests sleeps; `None` while it is
    /// awake.
    asleep_until: Option<Instant>,
    closed: bool,
}

impl<T> State<T> {
    fn entry(&self, ticket: u64) -> Option<Entry> {
        Some(self.admitted.get(&ticket)?.entry)
    }

    /// Returns the place of the request that goes next.
    fn next(&mut self) -> Option<u64> {
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
        let newest = newest.find(|(_, waiting)| waiting.entry == Entry::Single);
        Some(newest.map_or(first, |(place, _)| *place))
    }

    /// Returns the place of the first entry that does not compete as the newest: a state of a
    /// batch, or a request that has waited for longer than any that gave up.
    fn who_waits(&self) -> Option<u64> {
        let now = Instant::now();
        let mut line = self.line.iter();
        let waits = line.find(|(_, waiting)| {
            let age = now.saturating_duration_since(waiting.arrived);
            waiting.entry == Entry::Batch || self.order.outlasts(age, now)
        });
        waits.map(|(place, _)| *place)
    }

    /// Returns the request that will not have its turn, where too many wait while the newest go
    /// first: the oldest one, except for those that have outlasted the requests that gave up.
    fn left_over(&self) -> Option<u64> {
        if !self.order.is_newest_first() || self.line.len() <= order::MOST_WAITING {
            return None;
        }
        let now = Instant::now();
        let line = self.line.values();
        let mut newer = line.filter(|waiting| {
            let age = now.saturating_duration_since(waiting.arrived);
            waiting.entry == Entry::Single && !self.order.outlasts(age, now)
        });
        let oldest = newer.next()?.ticket;
        (newer.count() >= order::MOST_WAITING).then_some(oldest)
    }

    /// Returns the error of a request that still has to wait for `tokens` and so will not be
    /// answered in time; `None` if it will be, or if no time is known.
    fn lateness(
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

    fn load(&self) -> Load {
        let running = usize::from(self.running.is_some());
        Load {
            running,
            // A batch that has ended may still have a state on the model.
            waiting: self.active().saturating_sub(running),
        }
    }

    /// Returns the number of requests that are on the model or wait for it.
    fn active(&self) -> usize {
        self.admitted.len() - self.paused
    }

    fn forget(&mut self, ticket: u64) {
        if let Some(gone) = self.admitted.remove(&ticket) {
            self.bytes[gone.entry as usize] -= gone.held_bytes();
            self.paused -= usize::from(gone.unread.is_some());
        }
    }

    /// Notes the bytes that a batch's caller has not taken, or that the batch goes on.
    fn set_unread(&mut self, ticket: u64, unread: Option<usize>) {
        let Some(batch) = self.admitted.get_mut(&ticket) else {
            return;
        };
        self.paused -= usize::from(batch.unread.is_some());
        self.bytes[Entry::Batch as usize] -= batch.held_bytes();
        batch.unread = unread;
        self.bytes[Entry::Batch as usize] += batch.held_bytes();
        self.paused += usize::from(unread.is_some());
    }

    /// Notes that a turn is over, or will not come.
    fn end_turn(&mut self, ticket: u64) {
        let admitted = self.admitted.get(&ticket);
        if admitted.is_some_and(|admitted| admitted.entry == Entry::Single) {
            self.forget(ticket);
        }
    }

    fn new_place(&mut self) -> u64 {
        self.next_place += 1;
        self.next_place
    }

    fn remove_from_line(&mut self, ticket: u64) -> Option<T> {
        let place = self.admitted.get(&ticket)?.place;
        let waiting = self.line.remove(&place)?;
        self.tokens -= waiting.tokens;
        self.end_turn(ticket);
        Some(waiting.work)
    }
}

/// The queue in front of the model.
pub struct Queue<T> {
    limits: Limits,
    state: Mutex<State<T>>,
    /// Signals that the queue was closed, that a request left the closed queue, or that a deadline
    /// comes before the thread of [`Queue::expired`] would wake.
    changed: Condvar,
}

impl<T> Queue<T> {
    /// Returns an empty queue in front of a free model.
    pub fn new(limits: Limits) -> Self {
        let state = State {
            admitted: HashMap::new(),
            line: BTreeMap::new(),
            next_place: 0,
            running: None,
            paused: 0,
            bytes: [0; 2],
            tokens: 0,
            rate: Rate::default(),
            order: Order::default(),
            asleep_until: None,
            closed: false,
        };
        Self {
            limits,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Admits a request.
    ///
    /// A large batch does not keep single requests out: its bytes are counted separately.
    ///
    /// # Errors
    /// [`Error::QueueFull`], [`Error::DeadlineExceeded`] and [`Error::Closing`]; the request is not
    /// admitted then.
    pub fn admit(&self, entrant: Entrant) -> Result<Admission, Error> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(Error::Closing);
        }
        if !self.has_room(&state, entrant) {
            return Err(Error::QueueFull {
                retry_after_seconds: state.rate.retry_after_seconds(state.tokens),
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
        let is_single = entrant.entry == Entry::Single;
        let late = is_single.then(|| state.lateness(deadline, caller, state.tokens));
        if let Some(error) = late.flatten() {
            return Err(error);
        }
        let stop = Stop::of_request(caller);
        state.bytes[entrant.entry as usize] += entrant.bytes;
        let admitted = Admitted {
            entry: entrant.entry,
            bytes: entrant.bytes,
            place: state.new_place(),
            arrived,
            caller,
            stop: Arc::clone(&stop),
            unread: None,
        };
        state.admitted.insert(entrant.ticket, admitted);
        if state.asleep_until.is_some_and(|until| deadline < until) {
            self.changed.notify_all();
        }
        let is_encoded_late = is_single && state.order.is_newest_first();
        Ok(Admission {
            stop,
            is_encoded_late,
        })
    }

    /// Whether a request may be admitted in addition to those that are there.
    fn has_room(&self, state: &State<T>, entrant: Entrant) -> bool {
        // A request that would run at once does not wait, however large it is.
        let is_idle = state.active() == 0;
        let held = state.bytes[entrant.entry as usize];
        let fits = held + entrant.bytes <= self.limits.max_queue_bytes;
        // A paused batch does not keep a single request out either. Batches do keep other batches
        // out by their bytes, since otherwise the paused ones would have no bound.
        let has_bytes = match entrant.entry {
            Entry::Single => is_idle || fits,
            Entry::Batch => held == 0 || fits,
        };
        has_bytes && (is_idle || state.load().waiting < self.limits.max_queue)
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
        let mut state = self.state.lock();
        let last = state.new_place();
        let Some(admitted) = state.admitted.get_mut(&ticket) else {
            return Some((work, Error::Cancelled));
        };
        if admitted.entry == Entry::Batch {
            if admitted.stop.check().is_err() {
                return Some((work, Error::Cancelled));
            }
            (admitted.place, admitted.arrived) = (last, Instant::now());
        }
        let (entry, place, arrived) = (admitted.entry, admitted.place, admitted.arrived);
        let caller = admitted.caller;
        let deadline = self.deadline(arrived, caller);
        if let Some(caller) = caller.filter(|_| state.load().waiting > 1)
            && let Some(error) = state.lateness(caller.at, Some(caller), state.tokens + tokens)
        {
            state.forget(ticket);
            self.tell(state);
            return Some((work, error));
        }
        if deadline <= Instant::now() {
            // The request was encoded until after its deadline, which the thread of `expired` no
            // longer waits for.
            self.changed.notify_all();
        }
        let waiting = Waiting {
            ticket,
            entry,
            work,
            tokens,
            spent,
            arrived,
            joined: Instant::now(),
            deadline,
        };
        state.line.insert(place, waiting);
        state.tokens += tokens;
        let left_over = state.left_over()?;
        let retry_after_seconds = state.rate.retry_after_seconds(state.tokens);
        let work = state.remove_from_line(left_over)?;
        self.tell(state);
        Some((
            work,
            Error::QueueFull {
                retry_after_seconds,
            },
        ))
    }

    /// Returns the request that goes next, if the model is free.
    pub fn take(&self) -> Option<Turn<'_, T>> {
        let mut state = self.state.lock();
        if state.running.is_some() {
            return None;
        }
        let Some(place) = state.next() else {
            state.order.line_is_empty();
            return None;
        };
        let waiting = state.line.remove(&place)?;
        let ticket = waiting.ticket;
        state.tokens -= waiting.tokens;
        state.running = Some(ticket);
        let stop = Arc::clone(&state.admitted.get(&ticket)?.stop);
        drop(state);
        let mut stop = stop.within(self.limits.max_run, waiting.spent);
        stop.pace = Some(TurnPace::default());
        let stop = Arc::new(stop);
        let started = Instant::now();
        Some(Turn {
            queue: self,
            ticket,
            tokens: waiting.tokens,
            started,
            waited: started - waiting.joined,
            work: Some(waiting.work),
            stop,
        })
    }

    /// Notes that a batch waits for its caller, who has not taken `unread_bytes` bytes of results.
    /// The batch has no place in the queue until it goes on; the bytes that it holds count as bytes
    /// of batches.
    pub fn pause(&self, ticket: u64, unread_bytes: usize) {
        self.state.lock().set_unread(ticket, Some(unread_bytes));
    }

    /// Notes that the caller of a paused batch takes its results again.
    pub fn go_on(&self, ticket: u64) {
        self.state.lock().set_unread(ticket, None);
    }

    /// Notes that a request ended before it joined the queue, or that a batch has ended.
    pub fn leave(&self, ticket: u64) {
        let mut state = self.state.lock();
        state.forget(ticket);
        self.tell(state);
    }

    /// Stops a request whose caller has gone; returns its work if it was in the queue.
    pub fn cancel(&self, ticket: u64) -> Option<T> {
        let mut state = self.state.lock();
        let admitted = state.admitted.get(&ticket)?;
        admitted.stop.cancel();
        if admitted.entry == Entry::Single {
            let now = Instant::now();
            let age = now.saturating_duration_since(admitted.arrived);
            state.order.gave_up(age, now);
        }
        let work = state.remove_from_line(ticket);
        self.tell(state);
        work
    }

    /// Waits until requests have been in the queue for too long, and takes them out of it, each
    /// with its error. Returns `None` when the queue is closed and empty for good.
    pub fn expired(&self) -> Option<Vec<(T, Error)>> {
        let mut state = self.state.lock();
        loop {
            if state.closed && state.admitted.is_empty() {
                return None;
            }
            let now = Instant::now();
            let late = self.take_late(&mut state, now);
            if !late.is_empty() {
                self.tell(state);
                return Some(late);
            }
            // A request that arrives later mostly has a later deadline, so it wakes this thread
            // only if its deadline is earlier: waking it for each request would cost more than
            // everything else that the queue does.
            let admitted = state.admitted.values();
            let deadlines =
                admitted.map(|admitted| self.deadline(admitted.arrived, admitted.caller));
            let next = deadlines.filter(|deadline| *deadline > now).min();
            let until = next.unwrap_or(now + self.timeout().max(Duration::from_millis(1)));
            state.asleep_until = Some(until);
            self.changed.wait_until(&mut state, until);
            state.asleep_until = None;
        }
    }

    fn take_late(&self, state: &mut State<T>, now: Instant) -> Vec<(T, Error)> {
        let line = state.line.values();
        let late = line.filter(|waiting| waiting.deadline <= now);
        let late: Vec<u64> = late.map(|waiting| waiting.ticket).collect();
        let retry_after_seconds = state.rate.retry_after_seconds(state.tokens);
        let late = late.into_iter().filter_map(|ticket| {
            let caller = state.admitted.get(&ticket)?.caller;
            let error = match caller.filter(|caller| caller.at <= now) {
                Some(caller) => caller.exceeded(retry_after_seconds),
                None => Error::QueueTimeout {
                    limit_ms: self.limits.request_timeout.as_millis() as u64,
                    retry_after_seconds,
                },
            };
            Some((state.remove_from_line(ticket)?, error))
        });
        late.collect()
    }

    fn timeout(&self) -> Duration {
        let far = Duration::from_secs(365 * 24 * 3600);
        self.limits.request_timeout.min(far)
    }

    /// Unlocks the state and wakes the threads that wait for a closed queue to become empty; while
    /// the queue is open, no thread waits for a request to leave.
    fn tell(&self, state: MutexGuard<'_, State<T>>) {
        let closed = state.closed;
        drop(state);
        if closed {
            self.changed.notify_all();
        }
    }

    /// Whether no request has the model.
    pub fn is_free(&self) -> bool {
        self.state.lock().running.is_none()
    }

    /// Returns how long one request may take on encoding and on the model together.
    pub fn max_run(&self) -> Duration {
        self.limits.max_run
    }

    /// Returns the numbers of requests.
    pub fn load(&self) -> Load {
        self.state.lock().load()
    }

    /// Whether the newest request goes first, because callers give up before their turn.
    pub fn is_newest_first(&self) -> bool {
        self.state.lock().order.is_newest_first()
    }

    /// Makes the newest requests go first, as if callers had given up.
    #[cfg(test)]
    pub fn turn_around(&self) {
        let mut state = self.state.lock();
        state.order.end_turn(Duration::from_secs(1), true);
    }

    /// Returns the number of requests in the queue.
    pub fn in_line(&self) -> usize {
        self.state.lock().line.len()
    }

    /// Closes the queue: no more requests are admitted.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }

    /// Stops all requests: returns the work of those in the queue; the others end at their next
    /// run.
    pub fn cancel_all(&self) -> Vec<T> {
        let mut state = self.state.lock();
        for admitted in state.admitted.values() {
            admitted.stop.cancel();
        }
        let tickets: Vec<u64> = state.line.values().map(|waiting| waiting.ticket).collect();
        let work = tickets.into_iter();
        let work = work.filter_map(|ticket| state.remove_from_line(ticket));
        let work = work.collect();
        // A batch whose caller takes nothing is neither in the queue nor on the model, so nothing
        // else would end it.
        let admitted = state.admitted.iter();
        let batches = admitted.filter(|(ticket, admitted)| {
            admitted.entry == Entry::Batch && state.running != Some(**ticket)
        });
        let batches: Vec<u64> = batches.map(|(ticket, _)| *ticket).collect();
        for ticket in batches {
            state.forget(ticket);
        }
        self.tell(state);
        work
    }

    /// Waits until no admitted request is left.
    pub fn wait_until_empty(&self) {
        let mut state = self.state.lock();
        while !state.admitted.is_empty() {
            self.changed.wait(&mut state);
        }
    }
}

#[cfg(test)]
mod tests;
