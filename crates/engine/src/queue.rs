//! The lock on the model: first come, first served, bounded, cancellable, measured.
//!
//! A request is admitted when it arrives, joins the line when it is encoded, and gets the model when all that came
//! before it and joined are done. Whoever finds the model free runs it; nobody waits for a thread of its own.
//!
//! A batch is admitted once and joins the line for each of its states anew, behind all that arrived meanwhile. A batch
//! whose caller does not take its results is paused: it waits for its caller, not for the model, so it holds no place
//! that another request could have.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::Error;
use crate::pace::TurnPace;

/// The bounds of the line.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Requests that may wait, the one on the model not counted.
    pub max_queue: usize,
    /// Bytes of the bodies of all requests that wait, and as many again of batches.
    pub max_queue_bytes: usize,
    /// How long a request may wait, from its arrival.
    pub request_timeout: Duration,
    /// How long one request may be encoded and have the model.
    pub max_run: Duration,
}

/// Tells work to stop; asked between two runs of the model, and between two pieces of a text. Whoever asks may tell it what
/// a run took.
#[derive(Debug)]
pub struct Stop {
    cancelled: Arc<AtomicBool>,
    /// When the work has lasted too long, and what is too long.
    deadline: Option<(Instant, Duration)>,
    /// What the runs of a turn took, where somebody wants to know.
    pub pace: Option<TurnPace>,
}

impl Stop {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            cancelled: Arc::default(),
            deadline: None,
            pace: None,
        })
    }

    /// A stop that nobody pulls, for work without a caller.
    pub fn never() -> Arc<Self> {
        Self::new()
    }

    /// Stops the work at its next run.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// The stop of work that begins now and ends after `limit` as well, of which `spent` is over.
    pub fn within(&self, limit: Duration, spent: Duration) -> Self {
        let left = limit.saturating_sub(spent);
        Self {
            cancelled: Arc::clone(&self.cancelled),
            deadline: Instant::now().checked_add(left).map(|at| (at, limit)),
            pace: None,
        }
    }

    /// Whether work may go on.
    ///
    /// # Errors
    /// [`Error::Cancelled`] and [`Error::RunTimeout`].
    pub fn check(&self) -> Result<(), Error> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        match self.deadline {
            Some((at, limit)) if Instant::now() >= at => Err(Error::RunTimeout {
                limit_ms: limit.as_millis() as u64,
                retry_after_seconds: 1,
            }),
            _ => Ok(()),
        }
    }
}

/// What is admitted: how often it joins the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Once; it is gone with its turn.
    Single,
    /// Once for each state; it is there until it leaves.
    Batch,
}

/// What is known of a request from its arrival to its end.
struct Admitted {
    entry: Entry,
    bytes: usize,
    /// Its place in the line: the lowest goes first.
    place: u64,
    /// When the wait for the model began.
    arrived: Instant,
    stop: Arc<Stop>,
    /// Bytes of results that the caller of a batch has not taken, while nothing is run because of them.
    unread: Option<usize>,
}

impl Admitted {
    /// Bytes that are held for the request as long as it is there.
    fn held_bytes(&self) -> usize {
        self.bytes + self.unread.unwrap_or(0)
    }
}

/// A request in the line.
struct Waiting<T> {
    ticket: u64,
    work: T,
    tokens: usize,
    /// How much of its time on the model is over.
    spent: Duration,
    joined: Instant,
    deadline: Instant,
}

/// A request that has been given the model; the model is free again when this is dropped.
pub struct Turn<'q, T> {
    queue: &'q Queue<T>,
    ticket: u64,
    tokens: usize,
    started: Instant,
    /// How long the request was in the line.
    pub waited: Duration,
    /// What was put into the line; there until it is taken.
    pub work: Option<T>,
    /// Asked between two runs.
    pub stop: Arc<Stop>,
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        state.rate.add(self.tokens, self.started.elapsed());
        state.running = None;
        state.end_turn(self.ticket);
        self.queue.tell(state);
    }
}

/// How many requests there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// On the model: 0 or 1.
    pub running: usize,
    /// Arrived and not yet on the model.
    pub waiting: usize,
}

struct State<T> {
    admitted: HashMap<u64, Admitted>,
    /// Keyed by place.
    line: BTreeMap<u64, Waiting<T>>,
    next_place: u64,
    running: Option<u64>,
    /// Batches that wait for their callers.
    paused: usize,
    /// Bytes of single requests and of batches.
    bytes: [usize; 2],
    tokens: usize,
    rate: Rate,
    closed: bool,
}

impl<T> State<T> {
    fn load(&self) -> Load {
        let running = usize::from(self.running.is_some());
        Load {
            running,
            // A batch that has ended may have a state on the model still.
            waiting: self.active().saturating_sub(running),
        }
    }

    /// Requests that are on the model or wait for it.
    fn active(&self) -> usize {
        self.admitted.len() - self.paused
    }

    fn forget(&mut self, ticket: u64) {
        if let Some(gone) = self.admitted.remove(&ticket) {
            self.bytes[gone.entry as usize] -= gone.held_bytes();
            self.paused -= usize::from(gone.unread.is_some());
        }
    }

    /// Takes note of how much a batch's caller has not taken, or that the batch goes on.
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

    /// Takes note that a turn is over, or will not come.
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

/// The line in front of the model.
pub struct Queue<T> {
    limits: Limits,
    state: Mutex<State<T>>,
    /// The line was closed, or something left it after that.
    changed: Condvar,
}

impl<T> Queue<T> {
    /// An empty line in front of a free model.
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
            closed: false,
        };
        Self {
            limits,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Lets a request of `bytes` in, under a ticket that no other has.
    ///
    /// A large batch does not keep single requests out: its bytes are counted apart from theirs.
    ///
    /// # Errors
    /// [`Error::QueueFull`] and [`Error::Closing`]; nothing is kept then.
    pub fn admit(&self, ticket: u64, entry: Entry, bytes: usize) -> Result<Arc<Stop>, Error> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(Error::Closing);
        }
        // A request that would run at once does not wait, however large it is.
        let is_idle = state.active() == 0;
        let held = state.bytes[entry as usize];
        // Nor does a paused batch keep a single request out. Batches do keep out batches by their bytes, or those that
        // are paused would be without a bound.
        let has_room = match entry {
            Entry::Single => is_idle || held + bytes <= self.limits.max_queue_bytes,
            Entry::Batch => held == 0 || held + bytes <= self.limits.max_queue_bytes,
        };
        let has_place = is_idle || state.load().waiting < self.limits.max_queue;
        if !has_place || !has_room {
            return Err(Error::QueueFull {
                retry_after_seconds: state.rate.seconds(state.tokens),
            });
        }
        let stop = Stop::new();
        state.bytes[entry as usize] += bytes;
        let admitted = Admitted {
            entry,
            bytes,
            place: state.new_place(),
            arrived: Instant::now(),
            stop: Arc::clone(&stop),
            unread: None,
        };
        state.admitted.insert(ticket, admitted);
        Ok(stop)
    }

    /// Puts an admitted request into the line: a single one at the place of its arrival, a state of a batch behind all
    /// that have arrived. Gives the work back when its caller has gone meanwhile.
    pub fn join(&self, ticket: u64, work: T, tokens: usize) -> Option<T> {
        self.join_after(ticket, work, tokens, Duration::ZERO)
    }

    /// As [`Queue::join`], for work of whose time on the model `spent` is over.
    pub fn join_after(&self, ticket: u64, work: T, tokens: usize, spent: Duration) -> Option<T> {
        let mut state = self.state.lock();
        let last = state.new_place();
        let Some(admitted) = state.admitted.get_mut(&ticket) else {
            return Some(work);
        };
        if admitted.entry == Entry::Batch {
            if admitted.stop.check().is_err() {
                return Some(work);
            }
            (admitted.place, admitted.arrived) = (last, Instant::now());
        }
        let place = admitted.place;
        let deadline = admitted.arrived + self.timeout();
        if deadline <= Instant::now() {
            // It was encoded for so long that nobody looks out for it any more.
            self.changed.notify_all();
        }
        let waiting = Waiting {
            ticket,
            work,
            tokens,
            spent,
            joined: Instant::now(),
            deadline,
        };
        state.line.insert(place, waiting);
        state.tokens += tokens;
        None
    }

    /// The first of the line, if the model is free.
    pub fn take(&self) -> Option<Turn<'_, T>> {
        let mut state = self.state.lock();
        if state.running.is_some() {
            return None;
        }
        let (_, waiting) = state.line.pop_first()?;
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

    /// Takes note that a batch waits for its caller, who has not taken so many bytes of results. It has no place in the
    /// queue until it goes on; what it holds counts as bytes of batches.
    pub fn pause(&self, ticket: u64, unread_bytes: usize) {
        self.state.lock().set_unread(ticket, Some(unread_bytes));
    }

    /// Takes note that the caller of a paused batch takes its results again.
    pub fn go_on(&self, ticket: u64) {
        self.state.lock().set_unread(ticket, None);
    }

    /// Takes note that a request ended before it joined the line.
    pub fn leave(&self, ticket: u64) {
        let mut state = self.state.lock();
        state.forget(ticket);
        self.tell(state);
    }

    /// Stops a request whose caller has gone; gives its work back if it was in the line.
    pub fn cancel(&self, ticket: u64) -> Option<T> {
        let mut state = self.state.lock();
        state.admitted.get(&ticket)?.stop.cancel();
        let work = state.remove_from_line(ticket);
        self.tell(state);
        work
    }

    /// Waits until requests have been in the line for too long, and takes them out of it. `None` when the line is
    /// closed and empty for good.
    pub fn expired(&self) -> Option<(Vec<T>, Error)> {
        let mut state = self.state.lock();
        loop {
            if state.closed && state.admitted.is_empty() {
                return None;
            }
            let now = Instant::now();
            let late: Vec<u64> = state
                .line
                .iter()
                .filter(|(_, waiting)| waiting.deadline <= now)
                .map(|(_, waiting)| waiting.ticket)
                .collect();
            if !late.is_empty() {
                let error = Error::QueueTimeout {
                    limit_ms: self.limits.request_timeout.as_millis() as u64,
                    retry_after_seconds: state.rate.seconds(state.tokens),
                };
                let work = late.into_iter();
                let work = work.filter_map(|ticket| state.remove_from_line(ticket));
                let work = work.collect();
                self.tell(state);
                return Some((work, error));
            }
            // Whoever arrives later has a later deadline, so nobody has to wake this thread: that would take longer
            // than all else that the line costs.
            let timeout = self.timeout();
            let arrived = state.admitted.values().map(|admitted| admitted.arrived);
            let deadlines = arrived.map(|arrived| arrived + timeout);
            let next = deadlines.filter(|deadline| *deadline > now).min();
            let least = timeout.max(Duration::from_millis(1));
            self.changed
                .wait_until(&mut state, next.unwrap_or(now + least));
        }
    }

    fn timeout(&self) -> Duration {
        let far = Duration::from_secs(365 * 24 * 3600);
        self.limits.request_timeout.min(far)
    }

    /// Wakes whoever waits for the end of a line that is closed; nobody else waits for anything.
    fn tell(&self, state: MutexGuard<'_, State<T>>) {
        let closed = state.closed;
        drop(state);
        if closed {
            self.changed.notify_all();
        }
    }

    /// How long one request may be encoded and run.
    pub fn max_run(&self) -> Duration {
        self.limits.max_run
    }

    /// How many requests there are.
    pub fn load(&self) -> Load {
        self.state.lock().load()
    }

    /// How many are encoded and wait for the model alone.
    pub fn in_line(&self) -> usize {
        self.state.lock().line.len()
    }

    /// Lets nobody in any more.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }

    /// Stops all requests: gives back the work of those in the line, the others end at their next run.
    pub fn cancel_all(&self) -> Vec<T> {
        let mut state = self.state.lock();
        for admitted in state.admitted.values() {
            admitted.stop.cancel();
        }
        let tickets: Vec<u64> = state.line.values().map(|waiting| waiting.ticket).collect();
        let work = tickets.into_iter();
        let work = work.filter_map(|ticket| state.remove_from_line(ticket));
        let work = work.collect();
        // A batch whose caller takes nothing is neither in the line nor on the model, and nothing would end it.
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

    /// Waits until no request is left.
    pub fn wait_until_empty(&self) {
        let mut state = self.state.lock();
        while !state.admitted.is_empty() {
            self.changed.wait(&mut state);
        }
    }
}

/// Tokens per second on the model, the latest runs counting most.
#[derive(Debug, Default)]
struct Rate {
    tokens_per_second: f64,
}

impl Rate {
    /// The weight of the latest run.
    const WEIGHT: f64 = 0.1;
    const MAX_SECONDS: f64 = 60.0;

    fn add(&mut self, tokens: usize, took: Duration) {
        let latest = tokens as f64 / took.as_secs_f64().max(1e-6);
        self.tokens_per_second = if self.tokens_per_second == 0.0 {
            latest
        } else {
            self.tokens_per_second + Self::WEIGHT * (latest - self.tokens_per_second)
        };
    }

    /// Seconds until `tokens` are done, at least 1.
    fn seconds(&self, tokens: usize) -> u32 {
        if self.tokens_per_second <= 0.0 {
            return 1;
        }
        let seconds = tokens as f64 / self.tokens_per_second;
        seconds.ceil().clamp(1.0, Self::MAX_SECONDS) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        max_queue: 3,
        max_queue_bytes: 100,
        request_timeout: Duration::from_secs(60),
        max_run: Duration::from_secs(60),
    };

    fn admit_and_join(queue: &Queue<u64>, ticket: u64) {
        queue.admit(ticket, Entry::Single, 10).expect("room");
        assert!(queue.join(ticket, ticket, 5).is_none());
    }

    #[test]
    fn turns_go_by_arrival_even_when_encoding_finishes_out_of_order() {
        let queue = Queue::new(LIMITS);
        for ticket in [1, 2, 3] {
            queue.admit(ticket, Entry::Single, 10).expect("room");
        }
        for ticket in [3, 1, 2] {
            assert!(queue.join(ticket, ticket, 5).is_none());
        }
        let order: Vec<u64> = std::iter::from_fn(|| queue.take()?.work.take()).collect();
        assert_eq!(order, [1, 2, 3]);
    }

    #[test]
    fn one_turn_at_a_time() {
        let queue = Queue::new(LIMITS);
        admit_and_join(&queue, 1);
        admit_and_join(&queue, 2);
        let first = queue.take().expect("free");
        assert!(queue.take().is_none());
        assert_eq!(
            queue.load(),
            Load {
                running: 1,
                waiting: 1
            }
        );
        drop(first);
        assert_eq!(queue.take().expect("free").work, Some(2));
    }

    #[test]
    fn the_line_is_bounded_in_requests_and_in_bytes() {
        let queue: Queue<u64> = Queue::new(LIMITS);
        admit_and_join(&queue, 1);
        let turn = queue.take().expect("free");
        for ticket in [2, 3, 4] {
            admit_and_join(&queue, ticket);
        }
        assert_eq!(
            queue.admit(5, Entry::Single, 1).expect_err("full").code(),
            "queue_full"
        );
        assert!(queue.cancel(4).is_some());
        assert_eq!(
            queue.admit(5, Entry::Single, 71).expect_err("bytes").code(),
            "queue_full"
        );
        assert!(queue.admit(5, Entry::Single, 70).is_ok());
        drop(turn);
    }

    #[test]
    fn a_batch_waits_behind_all_that_arrived_since_its_last_turn() {
        let queue = Queue::new(LIMITS);
        queue.admit(1, Entry::Batch, 10).expect("room");
        assert!(queue.join(1, 1, 5).is_none());
        let turn = queue.take().expect("free");
        queue.admit(2, Entry::Single, 10).expect("room");
        drop(turn);
        assert!(queue.join(1, 1, 5).is_none());
        queue.admit(3, Entry::Single, 10).expect("room");
        for ticket in [3, 2] {
            assert!(queue.join(ticket, ticket, 5).is_none());
        }
        let order: Vec<u64> = std::iter::from_fn(|| queue.take()?.work.take()).collect();
        assert_eq!(order, [2, 1, 3]);
        let load = queue.load();
        assert_eq!((load.running, load.waiting), (0, 1), "it has not left yet");
        queue.leave(1);
        assert_eq!(queue.load().waiting, 0);
    }

    #[test]
    fn a_large_batch_keeps_no_single_request_out_and_no_batch_but_a_second() {
        let queue: Queue<u64> = Queue::new(Limits {
            max_queue: 10,
            ..LIMITS
        });
        queue.admit(1, Entry::Single, 90).expect("room");
        queue.admit(2, Entry::Batch, 1_000).expect("the first");
        assert!(queue.admit(3, Entry::Batch, 1).is_err());
        queue.admit(4, Entry::Single, 10).expect("room");
        assert!(queue.admit(5, Entry::Single, 1).is_err());
    }

    #[test]
    fn a_paused_batch_holds_no_place() {
        let queue: Queue<u64> = Queue::new(LIMITS);
        for ticket in [1, 2, 3] {
            queue.admit(ticket, Entry::Batch, 10).expect("room");
        }
        assert!(queue.admit(4, Entry::Single, 10).is_err());
        for ticket in [1, 2, 3] {
            queue.pause(ticket, 20);
        }
        assert_eq!(queue.load().waiting, 0);
        queue.admit(4, Entry::Single, 1_000).expect("idle");
        queue.leave(4);
        queue.admit(5, Entry::Batch, 10).expect("100 bytes");
        assert!(queue.admit(6, Entry::Batch, 1).is_err(), "101 bytes");
        queue.go_on(1);
        assert_eq!(queue.load().waiting, 2);
        queue.admit(6, Entry::Batch, 20).expect("100 bytes again");
        for ticket in [1, 2, 3, 5, 6] {
            queue.leave(ticket);
        }
        queue.close();
        queue.wait_until_empty();
        assert_eq!(
            (queue.load().waiting, queue.state.lock().bytes),
            (0, [0; 2])
        );
    }

    #[test]
    fn a_batch_that_waited_too_long_for_one_state_may_come_again_with_the_next() {
        let queue = Queue::new(Limits {
            request_timeout: Duration::from_millis(20),
            ..LIMITS
        });
        admit_and_join(&queue, 1);
        let turn = queue.take().expect("free");
        queue.admit(2, Entry::Batch, 10).expect("room");
        for state in [20, 21] {
            assert!(queue.join(2, state, 5).is_none());
            let (late, error) = queue.expired().expect("open");
            assert_eq!((late, error.code()), (vec![state], "queue_timeout"));
        }
        drop(turn);
    }

    #[test]
    fn a_batch_whose_caller_has_gone_does_not_join_again() {
        let queue = Queue::new(LIMITS);
        let stop = queue.admit(1, Entry::Batch, 10).expect("room");
        assert!(queue.join(1, 1, 5).is_none());
        assert_eq!(queue.cancel(1), Some(1));
        assert_eq!(stop.check(), Err(Error::Cancelled));
        assert_eq!(queue.join(1, 2, 5), Some(2));
    }

    #[test]
    fn an_idle_engine_takes_a_request_of_any_size() {
        let queue: Queue<u64> = Queue::new(LIMITS);
        assert!(queue.admit(1, Entry::Single, 10_000).is_ok());
        assert!(queue.admit(2, Entry::Single, 1).is_err());
    }

    #[test]
    fn who_has_gone_is_never_given_the_model() {
        let queue = Queue::new(LIMITS);
        admit_and_join(&queue, 1);
        admit_and_join(&queue, 2);
        queue.admit(3, Entry::Single, 10).expect("room");
        assert_eq!(queue.cancel(1), Some(1));
        assert_eq!(queue.cancel(3), None);
        queue.leave(3);
        assert_eq!(
            queue.join(3, 3, 1),
            Some(3),
            "it ended before it could join"
        );
        assert_eq!(queue.take().expect("free").work, Some(2));
        assert_eq!(
            queue.load(),
            Load {
                running: 0,
                waiting: 0
            }
        );
    }

    #[test]
    fn running_work_is_told_to_stop() {
        let queue = Queue::new(LIMITS);
        admit_and_join(&queue, 1);
        let turn = queue.take().expect("free");
        assert!(turn.stop.check().is_ok());
        assert_eq!(queue.cancel(1), None);
        assert_eq!(turn.stop.check(), Err(Error::Cancelled));
    }

    #[test]
    fn a_run_that_takes_too_long_is_stopped() {
        let queue = Queue::new(Limits {
            max_run: Duration::ZERO,
            ..LIMITS
        });
        admit_and_join(&queue, 1);
        let turn = queue.take().expect("free");
        assert_eq!(turn.stop.check().expect_err("late").code(), "run_timeout");
    }

    #[test]
    fn what_was_spent_on_encoding_is_taken_off_the_time_on_the_model() {
        let queue = Queue::new(LIMITS);
        for (ticket, spent) in [(1, LIMITS.max_run), (2, LIMITS.max_run / 2)] {
            queue.admit(ticket, Entry::Single, 10).expect("room");
            assert!(queue.join_after(ticket, ticket, 5, spent).is_none());
        }
        let turn = queue.take().expect("free");
        assert_eq!(turn.stop.check().expect_err("late").code(), "run_timeout");
        drop(turn);
        assert!(queue.take().expect("free").stop.check().is_ok());
    }

    #[test]
    fn who_waits_too_long_is_taken_out_while_the_model_is_busy() {
        let queue = Queue::new(Limits {
            request_timeout: Duration::from_millis(20),
            ..LIMITS
        });
        admit_and_join(&queue, 1);
        let turn = queue.take().expect("free");
        admit_and_join(&queue, 2);
        let (late, error) = queue.expired().expect("open");
        assert_eq!((late, error.code()), (vec![2], "queue_timeout"));
        drop(turn);
        queue.close();
        assert!(queue.expired().is_none());
    }

    #[test]
    fn a_closed_line_lets_nobody_in_and_empties() {
        let queue = Queue::new(LIMITS);
        admit_and_join(&queue, 1);
        queue.close();
        assert_eq!(
            queue.admit(2, Entry::Single, 1).map(|_| ()),
            Err(Error::Closing)
        );
        drop(queue.take().expect("free"));
        queue.wait_until_empty();
    }

    #[test]
    fn the_wait_is_told_from_tokens_and_measured_rate() {
        let mut rate = Rate::default();
        assert_eq!(rate.seconds(1_000_000), 1);
        rate.add(1_000, Duration::from_millis(100));
        assert_eq!(rate.seconds(25_000), 3);
        assert_eq!(rate.seconds(10), 1);
        assert_eq!(rate.seconds(1_000_000_000), 60);
    }
}
