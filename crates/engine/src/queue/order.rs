//! The order of requests: the first that arrived goes first, and during an overload in which
//! callers hang up, the last.
//!
//! First come, first served is fair and right as long as callers wait. Where they do not, it
//! collapses: the queue grows until its oldest request is as old as the callers' patience, and from
//! then on the model works for callers who are about to give up. The caller of the newest request
//! will wait longest, so the newest request goes first while the overload lasts (adaptive LIFO:
//! Maurer, "Fail at Scale", ACM Queue 13(8), 2015). The sign of such an overload is not the age of
//! the queue, since patient callers make a long one too, but the time on the model that went to
//! callers who had gone before their answer.
//!
//! While the newest go first, the older requests will not have a turn. Only the newest
//! [`MOST_WAITING`] are kept; the others are refused at once, which costs less than having their
//! callers hang up and come again on a new connection.
//!
//! A storm of requests costs time even where each is refused, since each is read first. Once as
//! many have arrived since the latest turn began as may wait, another is read only every
//! [`FRESH_FOR`]; the others are refused by their headers.
//!
//! Serving only the newest would starve callers who do wait, and batches, which always come last.
//! So one of [`TURNS`] turns goes to the oldest request that has waited for longer than any caller
//! who gave up lately, or to a batch.

use std::time::{Duration, Instant};

/// The time constant with which lost time on the model fades, in seconds.
const MEMORY_SECONDS: f64 = 2.0;
/// The share of that time that may be lost while the oldest go first.
const MOST_LOST: f64 = 0.1;
/// The number of turns of which one goes to callers who wait, while the newest go first.
const TURNS: u64 = 4;
/// The most requests that may wait while the newest go first, without batches and requests that
/// outlast others: enough for the model to have a request whenever it is free.
pub const MOST_WAITING: usize = 16;
/// The time after which another request is read while the newest go first, although enough have
/// arrived since the latest turn began: the newest one is never older than that by much.
pub const FRESH_FOR: Duration = Duration::from_millis(10);
/// The least time for which a caller who gave up is remembered; the longest is twice that.
const REMEMBERED: Duration = Duration::from_secs(15);

/// The state that decides which request goes next.
#[derive(Debug, Default)]
pub struct Order {
    is_newest_first: bool,
    /// The seconds on the model that went to callers who had gone; older ones fade.
    lost: f64,
    turns: u64,
    patience: Patience,
}

impl Order {
    /// Notes the time that a turn of a single request took, and whether its caller had gone before
    /// its end.
    pub fn end_turn(&mut self, took: Duration, is_lost: bool) {
        let seconds = took.as_secs_f64();
        let kept = (-seconds / MEMORY_SECONDS).exp();
        self.lost = self.lost * kept + if is_lost { seconds } else { 0.0 };
        self.is_newest_first |= self.lost > MOST_LOST * MEMORY_SECONDS;
    }

    /// Notes that a caller hung up whose request had this age.
    pub fn gave_up(&mut self, age: Duration, now: Instant) {
        self.patience.add(age, now);
    }

    /// Notes that no request waits, which ends the overload.
    pub fn line_is_empty(&mut self) {
        if self.is_newest_first {
            *self = Self::default();
        }
    }

    /// Whether the newest request goes first.
    pub fn is_newest_first(&self) -> bool {
        self.is_newest_first
    }

    /// Whether the next turn goes to callers who wait; each call counts a turn.
    pub fn next_is_for_who_waits(&mut self) -> bool {
        self.turns += 1;
        self.turns.is_multiple_of(TURNS)
    }

    /// Whether a request of this age has outlasted all callers who gave up lately.
    pub fn outlasts(&self, age: Duration, now: Instant) -> bool {
        age > self.patience.longest(now)
    }
}

/// The longest time that a caller waited who gave up lately.
#[derive(Debug, Default)]
struct Patience {
    /// The start of the span of `latest`; `before` is the longest wait of the span before it,
    /// `latest` the longest since.
    since: Option<Instant>,
    before: Duration,
    latest: Duration,
}

impl Patience {
    fn add(&mut self, age: Duration, now: Instant) {
        let since = *self.since.get_or_insert(now);
        let spans = now.saturating_duration_since(since).as_secs_f64() / REMEMBERED.as_secs_f64();
        if spans >= 1.0 {
            self.before = if spans < 2.0 {
                self.latest
            } else {
                Duration::ZERO
            };
            (self.since, self.latest) = (Some(now), Duration::ZERO);
        }
        self.latest = self.latest.max(age);
    }

    fn longest(&self, now: Instant) -> Duration {
        let age = self.since.map(|since| now.saturating_duration_since(since));
        match age {
            Some(age) if age < REMEMBERED => self.before.max(self.latest),
            Some(age) if age < 2 * REMEMBERED => self.latest,
            _ => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: Duration = Duration::from_millis(100);

    #[test]
    fn a_caller_who_hangs_up_now_and_then_changes_nothing() {
        let mut order = Order::default();
        for turn in 0..1_000 {
            order.end_turn(RUN, turn % 20 == 0);
            assert!(!order.is_newest_first());
        }
    }

    #[test]
    fn time_lost_on_callers_who_have_gone_turns_the_line_around_until_it_is_empty() {
        let mut order = Order::default();
        order.end_turn(RUN, false);
        for _ in 0..3 {
            order.end_turn(RUN, true);
        }
        assert!(order.is_newest_first());
        for _ in 0..100 {
            order.end_turn(RUN, false);
        }
        assert!(order.is_newest_first(), "callers still wait");
        order.line_is_empty();
        assert!(!order.is_newest_first());
    }

    #[test]
    fn who_waits_is_told_by_those_who_gave_up_lately() {
        let (mut order, now) = (Order::default(), Instant::now());
        let seconds = Duration::from_secs;
        order.gave_up(seconds(1), now);
        order.gave_up(seconds(5), now);
        order.gave_up(seconds(2), now + seconds(1));
        assert!(!order.outlasts(seconds(5), now + seconds(2)));
        assert!(order.outlasts(seconds(6), now + seconds(2)));
        // The longest wait is remembered for a while after the last caller gave up, and then forgotten.
        assert!(!order.outlasts(seconds(5), now + 2 * REMEMBERED - seconds(1)));
        assert!(order.outlasts(seconds(1), now + 2 * REMEMBERED));
        order.gave_up(seconds(2), now + REMEMBERED);
        assert!(!order.outlasts(seconds(5), now + REMEMBERED));
        order.gave_up(seconds(2), now + 2 * REMEMBERED);
        assert!(order.outlasts(seconds(3), now + 2 * REMEMBERED));
        assert!(order.outlasts(seconds(1), now + 4 * REMEMBERED));
    }

    #[test]
    fn one_of_four_turns_is_for_who_waits() {
        let mut order = Order::default();
        let turns: Vec<bool> = (0..8).map(|_| order.next_is_for_who_waits()).collect();
        assert_eq!(
            turns,
            [false, false, false, true, false, false, false, true]
        );
    }
}
