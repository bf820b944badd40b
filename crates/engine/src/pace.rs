//! The time that rows take on this machine, measured in past runs, and the least time of a plan
//! that follows from it.
//!
//! The time of a row depends on its own tokens and on the tokens of the state that it looks at, in
//! a way that is not known beforehand. So nothing is extrapolated from other sizes: a row is
//! compared with runs of rows of its size, or of smaller rows, which take no longer. A plan is
//! refused as too long only if at least two turns of the last minutes measured such rows, since one
//! noisy minute proves nothing, and an old measurement expires, so that the plan is tried again.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The least number of rows of one size in a turn for the turn to count as a measurement of that
/// size.
pub const LEAST_ROWS: usize = 8;
/// The least number of turns that must have measured a size.
const LEAST_TURNS: usize = 2;
/// The most turns that are kept of a size.
const KEPT_TURNS: usize = 8;
/// How long a measurement is valid.
const HOLDS: Duration = Duration::from_secs(600);
/// The number of size classes in each doubling of a size.
const CLASSES: f64 = 4.0;
/// The factor on the computed time that allows for sizes that differ within a class, and for a
/// machine that has become faster.
const MARGIN: f64 = 0.9;

/// The size of a row, in classes: of its own tokens, and of the tokens that it looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Size {
    tokens: u8,
    past: u8,
}

impl Size {
    fn of(tokens: usize, past: usize) -> Self {
        let class = |count: usize| ((count + 1) as f64).log2() * CLASSES;
        Self {
            tokens: class(tokens).floor() as u8,
            past: class(past).floor() as u8,
        }
    }

    /// Whether a row of this size takes no longer than one of the other.
    fn is_within(self, other: Self) -> bool {
        self.tokens <= other.tokens && self.past <= other.past
    }
}

/// The times of the rows of one turn.
#[derive(Debug, Clone, Default)]
pub struct TurnPace {
    rows: Arc<Mutex<BTreeMap<Size, Rows>>>,
}

#[derive(Debug, Clone, Copy)]
struct Rows {
    count: usize,
    /// The least time that a row added to the turn: its own time divided by the number of rows that
    /// ran side by side.
    fastest: Duration,
}

impl TurnPace {
    /// Notes the time of a row of `tokens` that looked at `past` others, one of `side_by_side` at a
    /// time.
    pub fn note(&self, [tokens, past]: [usize; 2], side_by_side: usize, took: Duration) {
        let took = took / u32::try_from(side_by_side.max(1)).unwrap_or(u32::MAX);
        let mut rows = self.rows.lock();
        let rows = rows.entry(Size::of(tokens, past)).or_insert(Rows {
            count: 0,
            fastest: took,
        });
        rows.count += 1;
        rows.fastest = rows.fastest.min(took);
    }
}

/// The times of recent turns, by the size of their rows.
#[derive(Debug, Default)]
pub struct Pace {
    sizes: Mutex<BTreeMap<Size, VecDeque<(Instant, Duration)>>>,
}

impl Pace {
    /// Keeps the times of the rows of a turn that ended at `now`.
    pub fn keep(&self, turn: &TurnPace, now: Instant) {
        let rows = std::mem::take(&mut *turn.rows.lock());
        let mut sizes = self.sizes.lock();
        for (size, rows) in rows {
            if rows.count >= LEAST_ROWS {
                let turns = sizes.entry(size).or_default();
                turns.truncate(KEPT_TURNS - 1);
                turns.push_front((now, rows.fastest));
            }
        }
    }

    /// Returns the least time that rows of these sizes take on a free model, as far as it is known.
    /// A size is the number of the row's own tokens and the number of tokens that it looks at.
    pub fn least(&self, rows: impl Iterator<Item = [usize; 2]>, now: Instant) -> Duration {
        let mut counts: BTreeMap<Size, u32> = BTreeMap::new();
        for [tokens, past] in rows {
            *counts.entry(Size::of(tokens, past)).or_default() += 1;
        }
        let known = self.known(now);
        let least = counts.into_iter().map(|(size, count)| {
            let smaller = known.iter().filter(|(known, _)| known.is_within(size));
            let row = smaller.map(|(_, fastest)| *fastest).max();
            row.unwrap_or_default() * count
        });
        least.sum::<Duration>().mul_f64(MARGIN)
    }

    /// Returns the time of the fastest row of each size that enough recent turns measured.
    fn known(&self, now: Instant) -> Vec<(Size, Duration)> {
        let sizes = self.sizes.lock();
        let known = sizes.iter().filter_map(|(size, turns)| {
            let holds = |at: Instant| now.saturating_duration_since(at) < HOLDS;
            let fresh = turns.iter().filter(|(at, _)| holds(*at));
            let fresh: Vec<Duration> = fresh.map(|(_, fastest)| *fastest).collect();
            let is_known = fresh.len() >= LEAST_TURNS;
            is_known.then(|| Some((*size, fresh.into_iter().min()?)))?
        });
        known.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter::repeat_n;

    const SIZE: [usize; 2] = [20, 1_000];
    const ROW: Duration = Duration::from_millis(100);

    /// Keeps a turn of `rows` rows, two at a time, one of which takes `fastest` and the others
    /// three times as long.
    fn turn(pace: &Pace, rows: usize, fastest: Duration, now: Instant) {
        let turn = TurnPace::default();
        for index in 0..rows {
            let took = if index == 0 { fastest } else { 3 * fastest };
            turn.note(SIZE, 2, 2 * took);
        }
        pace.keep(&turn, now);
    }

    #[test]
    fn nothing_is_known_before_two_turns_of_many_rows() {
        let (pace, now) = (Pace::default(), Instant::now());
        let least = || pace.least(repeat_n(SIZE, 400), now);
        assert_eq!(least(), Duration::ZERO);
        turn(&pace, 1_000, ROW, now);
        assert_eq!(least(), Duration::ZERO, "one turn");
        turn(&pace, LEAST_ROWS - 1, ROW, now);
        assert_eq!(least(), Duration::ZERO, "few rows");
        turn(&pace, LEAST_ROWS, ROW, now);
        assert_eq!(least(), (400 * ROW).mul_f64(MARGIN));
    }

    #[test]
    fn a_noisy_turn_counts_for_nothing_beside_a_fast_one() {
        let (pace, now) = (Pace::default(), Instant::now());
        turn(&pace, 100, ROW, now);
        turn(&pace, 100, 50 * ROW, now);
        assert_eq!(
            pace.least(repeat_n(SIZE, 10), now),
            (10 * ROW).mul_f64(MARGIN)
        );
    }

    #[test]
    fn larger_rows_take_as_long_at_least_and_of_smaller_ones_nothing_is_known() {
        let (pace, now) = (Pace::default(), Instant::now());
        turn(&pace, 100, ROW, now);
        turn(&pace, 100, ROW, now);
        let least = |tokens, past| pace.least(repeat_n([tokens, past], 10), now);
        let known = (10 * ROW).mul_f64(MARGIN);
        for (tokens, past) in [(20, 1_000), (20, 16_000), (200, 1_000), (200, 16_000)] {
            assert_eq!(least(tokens, past), known, "{tokens} {past}");
        }
        for (tokens, past) in [(10, 1_000), (20, 500), (10, 16_000), (200, 500)] {
            assert_eq!(least(tokens, past), Duration::ZERO, "{tokens} {past}");
        }
    }

    #[test]
    fn what_was_measured_is_forgotten() {
        let (pace, now) = (Pace::default(), Instant::now());
        turn(&pace, 100, ROW, now);
        turn(&pace, 100, ROW, now + HOLDS / 2);
        let least = |now| pace.least(repeat_n(SIZE, 10), now);
        assert!(least(now + HOLDS * 3 / 4) > Duration::ZERO);
        assert_eq!(least(now + HOLDS), Duration::ZERO);
        for _ in 0..100 {
            turn(&pace, 100, ROW, now);
        }
        assert!(
            pace.sizes
                .lock()
                .values()
                .all(|turns| turns.len() <= KEPT_TURNS)
        );
    }
}
