//! The sessions of a graph, by their number of threads, and the runs of rows on them.
//!
//! The runs that are under way divide the cores. A request that is alone has all of them: a lone row
//! runs on a session with all threads, several rows run side by side on sessions of one thread each.
//! With other requests, on the model or in the queue, it has its share: it takes no more, and gives
//! back what it has beyond that between two of its rows.
//!
//! Of a large graph a single session, with all threads, is open at first. It runs all rows until the
//! others are there.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use rayon::Scope;

use super::cores::{Cores, Share};
use super::lane::Lane;
use super::widths::{RowSize, Width, Widths};
use crate::Error;
use crate::stop::Stop;

/// The number of sessions with so many threads each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) threads: usize,
    pub(super) sessions: usize,
}

/// Returns the sessions for runs that divide `threads` cores among at most `parallel` requests: one
/// with all threads, one of one thread for each core, and those in between that a share may have.
pub(super) fn sizes(threads: usize, parallel: usize) -> Vec<Size> {
    let least = threads / parallel.clamp(1, threads);
    let halves = std::iter::successors(Some(threads), |threads| Some(threads / 2));
    let mut wide: Vec<usize> = halves
        .take_while(|share| *share > 1 && *share >= least)
        .collect();
    if least > 1 && !wide.contains(&least) {
        wide.push(least);
    }
    let wide = wide.into_iter().map(|share| Size {
        threads: share,
        sessions: threads / share,
    });
    let narrow = Size {
        threads: 1,
        sessions: threads,
    };
    wide.chain([narrow]).collect()
}

/// The sessions of a graph.
pub(super) struct Lanes {
    /// The free sessions of each size, the most threads first. The last size has a session for each
    /// core.
    free: Vec<(usize, Mutex<Vec<Lane>>)>,
    cores: Cores,
    parallel: usize,
    /// The threads that run rows in addition to the calling threads.
    beside: Option<rayon::ThreadPool>,
    widths: Widths,
    /// Whether all sessions are there, and not only the first.
    is_complete: AtomicBool,
}

impl Lanes {
    /// Returns the only session of a graph, which runs one row at a time.
    pub(super) fn single(lanes: Vec<Lane>) -> Self {
        Self {
            free: vec![(1, Mutex::new(lanes))],
            cores: Cores::new(1),
            parallel: 1,
            beside: None,
            widths: Widths::default(),
            is_complete: AtomicBool::new(true),
        }
    }

    /// Returns the sessions of a graph whose rows run side by side. `lanes` has the sessions of each
    /// size, in the order of [`sizes`], or only the first of them; `beside` has a thread less than
    /// there are cores.
    pub(super) fn several(
        sizes: &[Size],
        lanes: Vec<Lane>,
        parallel: usize,
        beside: rayon::ThreadPool,
    ) -> Self {
        let total = sizes.first().map_or(1, |size| size.threads);
        let is_complete = lanes.len() == sizes.iter().map(|size| size.sessions).sum::<usize>();
        let mut lanes = lanes.into_iter();
        let free = sizes.iter().map(|size| {
            let own: Vec<Lane> = lanes.by_ref().take(size.sessions).collect();
            (size.threads, Mutex::new(own))
        });
        Self {
            free: free.collect(),
            cores: Cores::new(total),
            parallel: parallel.clamp(1, total),
            beside: Some(beside),
            widths: Widths::default(),
            is_complete: AtomicBool::new(is_complete),
        }
    }

    /// Adds all sessions that were not there, each with its number of threads.
    pub(super) fn complete(&self, others: Vec<(usize, Lane)>) {
        for (threads, lane) in others {
            if let Some((_, free)) = self.free.iter().find(|(size, _)| *size == threads) {
                free.lock().push(lane);
            }
        }
        self.is_complete.store(true, Ordering::Release);
    }

    /// Returns the most requests that may run at the same time.
    pub(super) fn parallel(&self) -> usize {
        self.parallel
    }

    /// Returns the most rows that run side by side.
    pub(super) fn side_by_side(&self) -> usize {
        self.cores.total()
    }

    /// Runs `count` rows and returns the results in the order of the index; `size` is the kind of
    /// the first.
    ///
    /// # Errors
    /// The first error of a run.
    pub(super) fn run_all<T: Send>(
        &self,
        (count, size): (usize, RowSize),
        stop: &Stop,
        run: impl Fn(&mut Lane, usize) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        if count == 0 {
            return Ok(Vec::new());
        }
        if let Some(share) = self.all_cores(stop)? {
            return self.one_by_one(share, count, run);
        }
        let limit = self.limit(stop);
        let wanted = if count == 1 { limit } else { limit.min(count) };
        let share = self.cores.try_share(wanted).unwrap_or_else(|| {
            let began = Instant::now();
            let share = match count {
                1 => self
                    .cores
                    .take_soon(wanted, self.widths.patience((size, wanted))),
                _ => self.cores.take(wanted),
            };
            stop.note_wait(began.elapsed());
            share
        });
        match &self.beside {
            Some(beside) if count > 1 => {
                let rows = Rows::new(count, run);
                beside.in_place_scope(|scope| self.first(&rows, stop, share, scope));
                rows.results()
            }
            Some(_) => Ok(vec![self.alone(share, size, |lane| run(lane, 0))?]),
            None => self.one_by_one(share, count, run),
        }
    }

    /// Returns all cores, for the only session that is there; `None` where all sessions are. The
    /// others may get there during the wait, and then runs that have some of the cores follow one
    /// another without an end.
    fn all_cores(&self, stop: &Stop) -> Result<Option<Share<'_>>, Error> {
        let is_complete = || self.is_complete.load(Ordering::Acquire);
        if is_complete() {
            return Ok(None);
        }
        let began = Instant::now();
        let ends = || is_complete() || stop.check().is_err();
        let share = self.cores.take_all(ends);
        stop.check()?;
        stop.note_wait(began.elapsed());
        Ok(share)
    }

    /// Runs all rows on one session.
    fn one_by_one<T>(
        &self,
        share: Share<'_>,
        count: usize,
        run: impl Fn(&mut Lane, usize) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let mut lane = self.borrow(share)?;
        (0..count).map(|index| run(&mut lane, index)).collect()
    }

    /// Runs a single row.
    fn alone<'l, T>(
        &'l self,
        mut share: Share<'l>,
        size: RowSize,
        run: impl FnOnce(&mut Lane) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if share.count == 1 {
            return run(&mut *self.borrow(share)?);
        }
        let size = (size, share.count);
        let width = self.widths.choose(size);
        if width == Width::Narrow {
            share.shrink(1);
        }
        let mut lane = self.borrow(share)?;
        let began = Instant::now();
        let result = run(&mut lane);
        self.widths.note(size, width, began.elapsed());
        result
    }

    /// Returns the number of cores that a request may have now.
    fn limit(&self, stop: &Stop) -> usize {
        self.cores.total() / stop.crowd().min(self.parallel)
    }

    /// Runs rows on the calling thread, and on further threads for as many cores as there are for
    /// the request.
    fn first<'s, T: Send, R>(
        &'s self,
        rows: &'s Rows<T, R>,
        stop: &'s Stop,
        mut share: Share<'s>,
        scope: &Scope<'s>,
    ) where
        R: Fn(&mut Lane, usize) -> Result<T, Error> + Sync,
    {
        while let Some(core) = share.split() {
            self.add(rows, stop, core, scope);
        }
        let mut lane = match self.borrow(share) {
            Ok(lane) => lane,
            Err(error) => return rows.fail(error),
        };
        while rows.run_next(&mut lane) {
            while rows.has_more()
                && rows.threads.load(Ordering::Relaxed) < self.limit(stop)
                && let Some(core) = self.cores.try_share(1)
            {
                self.add(rows, stop, core, scope);
            }
        }
    }

    /// Has another thread run rows on `core`.
    fn add<'s, T: Send, R>(
        &'s self,
        rows: &'s Rows<T, R>,
        stop: &'s Stop,
        core: Share<'s>,
        scope: &Scope<'s>,
    ) where
        R: Fn(&mut Lane, usize) -> Result<T, Error> + Sync,
    {
        rows.threads.fetch_add(1, Ordering::Relaxed);
        scope.spawn(move |_| match self.borrow(core) {
            Ok(mut lane) => while rows.run_next(&mut lane) && rows.stays(self.limit(stop)) {},
            Err(error) => rows.fail(error),
        });
    }

    /// Returns a free session with as many threads as the share has cores, or the next fewer; the
    /// cores beyond its threads are free again. A share always finds one, since there are as many
    /// sessions of each size as shares of that size.
    fn borrow<'l>(&'l self, mut share: Share<'l>) -> Result<Borrowed<'l>, Error> {
        let fitting = self.free.iter();
        for (threads, free) in fitting.filter(|(threads, _)| *threads <= share.count) {
            if let Some(lane) = free.lock().pop() {
                share.shrink(*threads);
                return Ok(Borrowed {
                    free,
                    lane: Some(lane),
                    _share: share,
                });
            }
        }
        Err(Error::Panicked)
    }
}

/// A session in use.
struct Borrowed<'l> {
    free: &'l Mutex<Vec<Lane>>,
    /// The session; `None` only while this is being dropped.
    lane: Option<Lane>,
    /// The cores of the session. They are free again after the session, so that another share finds
    /// it.
    _share: Share<'l>,
}

impl Deref for Borrowed<'_> {
    type Target = Lane;

    fn deref(&self) -> &Lane {
        #[allow(clippy::expect_used)] // only `drop` takes it
        self.lane.as_ref().expect("a session in use")
    }
}

impl DerefMut for Borrowed<'_> {
    fn deref_mut(&mut self) -> &mut Lane {
        #[allow(clippy::expect_used)] // only `drop` takes it
        self.lane.as_mut().expect("a session in use")
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        self.free.lock().extend(self.lane.take());
    }
}

/// Rows that several threads run.
struct Rows<T, R> {
    count: usize,
    run: R,
    next: AtomicUsize,
    /// The number of threads that run the rows.
    threads: AtomicUsize,
    done: Mutex<Vec<Option<T>>>,
    failed: Mutex<Option<Error>>,
}

impl<T, R: Fn(&mut Lane, usize) -> Result<T, Error>> Rows<T, R> {
    fn new(count: usize, run: R) -> Self {
        Self {
            count,
            run,
            next: AtomicUsize::new(0),
            threads: AtomicUsize::new(1),
            done: Mutex::new((0..count).map(|_| None).collect()),
            failed: Mutex::new(None),
        }
    }

    /// Runs the next row; returns false when there is none.
    fn run_next(&self, lane: &mut Lane) -> bool {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        if index >= self.count || self.failed.lock().is_some() {
            return false;
        }
        match (self.run)(lane, index) {
            Ok(result) => self.done.lock()[index] = Some(result),
            Err(error) => self.fail(error),
        }
        true
    }

    fn fail(&self, error: Error) {
        self.failed.lock().get_or_insert(error);
    }

    /// Whether there are rows that no thread has begun.
    fn has_more(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.count
    }

    /// Whether the asking thread goes on, where at most `limit` threads may.
    fn stays(&self, limit: usize) -> bool {
        let less = |threads| (threads > limit).then_some(threads - 1);
        let left = self
            .threads
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        left.is_err()
    }

    fn results(self) -> Result<Vec<T>, Error> {
        match self.failed.into_inner() {
            Some(error) => Err(error),
            None => Ok(self.done.into_inner().into_iter().flatten().collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Runs a row on sessions of which none is there yet.
    fn run_one(lanes: &Lanes, stop: &Stop) -> Result<Vec<()>, Error> {
        lanes.run_all((1, RowSize::prefill(1)), stop, |_, _| Ok(()))
    }

    fn not_open() -> Lanes {
        let beside = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        Lanes::several(&sizes(2, 2), Vec::new(), 2, beside.expect("a thread"))
    }

    #[test]
    fn a_run_that_waits_for_the_first_session_goes_on_once_all_are_there() {
        let lanes = not_open();
        let other = lanes.cores.take(1);
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            let lanes = &lanes;
            scope.spawn(move || sender.send(run_one(lanes, &Stop::never())));
            let wait = |limit| receiver.recv_timeout(Duration::from_millis(limit));
            assert!(wait(50).is_err(), "the first session is not free");
            lanes.complete(Vec::new());
            // It gets as far as to miss a session.
            let ended = wait(10_000);
            drop(other);
            assert_eq!(ended, Ok(Err(Error::Panicked)));
        });
    }

    #[test]
    fn a_run_waits_for_the_first_session_no_longer_than_it_may() {
        let lanes = not_open();
        let _other = lanes.cores.take(1);
        let stop = Stop::never().within(Duration::from_millis(30), Duration::ZERO);
        let expected = Error::RunTimeout {
            limit_ms: 30,
            retry_after_seconds: 1,
        };
        assert_eq!(run_one(&lanes, &stop), Err(expected));
    }

    #[test]
    fn requests_divide_the_cores_by_as_many_as_may_run() {
        let beside = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let lanes = Lanes::several(&sizes(6, 3), Vec::new(), 3, beside.expect("a thread"));
        let stop = Stop::never();
        let limits = [0, 1, 2, 3, 9].map(|crowd| {
            stop.crowd.store(crowd, Ordering::Relaxed);
            lanes.limit(&stop)
        });
        assert_eq!(limits, [6, 6, 3, 2, 2]);
    }

    #[test]
    fn of_the_threads_of_a_run_as_many_leave_as_are_too_many() {
        let rows = Rows::new(4, |_: &mut Lane, _| Ok(()));
        rows.threads.store(3, Ordering::Relaxed);
        let stays = [2, 2, 1, 1, 3].map(|limit| rows.stays(limit));
        assert_eq!(stays, [false, true, false, true, true]);
        assert_eq!(rows.threads.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn there_are_sessions_for_each_share_of_the_cores() {
        let found = |threads, parallel| -> Vec<(usize, usize)> {
            let sizes = sizes(threads, parallel).into_iter();
            sizes.map(|size| (size.threads, size.sessions)).collect()
        };
        assert_eq!(found(2, 1), [(2, 1), (1, 2)]);
        assert_eq!(found(2, 2), [(2, 1), (1, 2)]);
        assert_eq!(found(16, 1), [(16, 1), (1, 16)]);
        assert_eq!(found(16, 4), [(16, 1), (8, 2), (4, 4), (1, 16)]);
        assert_eq!(found(6, 6), [(6, 1), (3, 2), (1, 6)]);
        assert_eq!(found(6, 3), [(6, 1), (3, 2), (2, 3), (1, 6)]);
        assert_eq!(found(9, 3), [(9, 1), (4, 2), (3, 3), (1, 9)]);
        assert_eq!(found(1, 3), [(1, 1)]);
    }
}
