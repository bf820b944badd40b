//! The choice between all threads and one for a row that runs alone.
//!
//! On a machine that is otherwise idle, all threads are faster. When other work has the cores, or a
//! quota holds the process back, a run on several threads waits again and again for the one that
//! does not get its turn, and a single thread is faster. No number of the system tells that
//! reliably, so the measured times of runs decide.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The threads of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// As many threads as there are cores for the run.
    Wide,
    /// A single thread.
    Narrow,
}

impl Width {
    fn other(self) -> Self {
        match self {
            Self::Wide => Self::Narrow,
            Self::Narrow => Self::Wide,
        }
    }
}

/// The kind of a row: rows of one kind take about as long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowSize {
    tokens: u32,
    past: u32,
    is_prefill: bool,
}

impl RowSize {
    /// Returns the kind of a row of a state.
    pub fn prefill(tokens: usize) -> Self {
        Self {
            tokens: tokens.max(1).ilog2(),
            past: 0,
            is_prefill: true,
        }
    }

    /// Returns the kind of a row of a question about a state of `past` tokens.
    pub fn question(tokens: usize, past: usize) -> Self {
        Self {
            tokens: tokens.max(1).ilog2(),
            past: past.max(1).ilog2(),
            is_prefill: false,
        }
    }
}

/// The kind of a row, and the number of threads that it may have.
pub(super) type Kind = (RowSize, usize);

/// The number of runs before the other width is tried for the first time.
const FIRST_TRIAL: u32 = 8;
/// The fewest and the most runs between two trials of the other width.
const TRIALS: [u32; 2] = [8, 64];
/// The time after which a single thread that is preferred has to show it again: a kind of rows may
/// be rare.
const TRIAL_AFTER: Duration = Duration::from_secs(10);
/// The most runs on all threads without a trial, although nothing seems to hold them up.
const LAST_TRIAL: u32 = 1_024;
/// The ratio of the mean time to the least one from which on something seems to hold the runs up.
const HELD_UP: f64 = 1.25;
/// The ratio of the mean times from which on the single thread is preferred.
const CLEARLY_FASTER: f64 = 0.95;

/// The measured times of the rows that ran alone.
#[derive(Debug, Default)]
pub(super) struct Widths {
    records: Mutex<HashMap<Kind, Record>>,
}

impl Widths {
    /// Returns the width for the next row of this kind.
    pub(super) fn choose(&self, kind: Kind) -> Width {
        let mut records = self.records.lock();
        records.entry(kind).or_default().choose(Instant::now())
    }

    /// Returns how long a row of this kind may wait for further threads: half the time that it
    /// takes on a single one, where that is known.
    pub(super) fn patience(&self, kind: Kind) -> Duration {
        let records = self.records.lock();
        let narrow = records.get(&kind).and_then(|record| record.narrow.mean);
        Duration::from_secs_f64(narrow.unwrap_or_default() / 2.0)
    }

    /// Notes the time of a row.
    pub(super) fn note(&self, kind: Kind, width: Width, took: Duration) {
        let mut records = self.records.lock();
        records.entry(kind).or_default().note(width, took);
    }
}

/// The times of one kind of rows.
#[derive(Debug)]
struct Record {
    wide: Times,
    narrow: Times,
    /// The runs since the last trial of the other width, and the moment of that trial.
    runs: u32,
    tried: Option<Instant>,
    /// The runs between two trials, which grow while trials confirm the preference.
    pause: u32,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            wide: Times::default(),
            narrow: Times::default(),
            runs: 0,
            tried: None,
            pause: TRIALS[0],
        }
    }
}

impl Record {
    fn preferred(&self) -> Width {
        match (self.wide.mean, self.narrow.mean) {
            (Some(wide), Some(narrow)) if narrow < CLEARLY_FASTER * wide => Width::Narrow,
            _ => Width::Wide,
        }
    }

    fn choose(&mut self, now: Instant) -> Width {
        let preferred = self.preferred();
        let is_old = |tried| now.saturating_duration_since(tried) >= TRIAL_AFTER;
        let is_due = match preferred {
            _ if self.narrow.mean.is_none() => self.runs >= FIRST_TRIAL,
            // Where nothing holds the runs up, a single thread would only be slower.
            Width::Wide if self.wide.are_held_up() => self.runs >= self.pause,
            Width::Wide => self.runs >= LAST_TRIAL,
            Width::Narrow => self.runs >= self.pause || self.tried.is_some_and(is_old),
        };
        self.runs += 1;
        if is_due {
            (self.runs, self.tried) = (0, Some(now));
            return preferred.other();
        }
        preferred
    }

    fn note(&mut self, width: Width, took: Duration) {
        let (before, mean) = (self.preferred(), self.preferred_mean());
        let (is_trial, seconds) = (width != before, took.as_secs_f64());
        let times = match width {
            Width::Wide => &mut self.wide,
            Width::Narrow => &mut self.narrow,
        };
        // A session's first run takes longer than all others.
        if !std::mem::replace(&mut times.are_warm, true) {
            return;
        }
        times.add(seconds, is_trial);
        if self.preferred() != before {
            self.pause = TRIALS[0];
        } else if is_trial && seconds < CLEARLY_FASTER * mean {
            // The mean of the other width is an old one, so another trial has to show it.
            self.pause = 1;
        } else if is_trial {
            self.pause = (2 * self.pause).clamp(TRIALS[0], TRIALS[1]);
        }
    }

    fn preferred_mean(&self) -> f64 {
        let mean = match self.preferred() {
            Width::Wide => self.wide.mean,
            Width::Narrow => self.narrow.mean,
        };
        mean.unwrap_or_default()
    }
}

/// The times of one width, in seconds.
#[derive(Debug, Default)]
struct Times {
    /// Whether there was a run before, whose time does not count.
    are_warm: bool,
    /// The mean, in which later runs count more.
    mean: Option<f64>,
    /// The least time; it grows slowly, since processors change their speed.
    least: f64,
}

impl Times {
    /// The part that a run has in the mean, and that a trial has, whose mean is older.
    const PART: f64 = 0.1;
    const TRIAL_PART: f64 = 0.5;
    /// The factor by which the least time grows with each run.
    const GROWTH: f64 = 1.001;

    fn add(&mut self, seconds: f64, is_trial: bool) {
        let Some(mean) = self.mean else {
            (self.mean, self.least) = (Some(seconds), seconds);
            return;
        };
        let part = if is_trial {
            Self::TRIAL_PART
        } else {
            Self::PART
        };
        self.mean = Some(mean + part * (seconds - mean));
        self.least = seconds.min(self.least * Self::GROWTH);
    }

    fn are_held_up(&self) -> bool {
        self.mean.is_some_and(|mean| mean > HELD_UP * self.least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the time of `runs` runs as a multiple of what they would take on the better width.
    fn cost(record: &mut Record, runs: u32, [wide, narrow]: [f64; 2]) -> f64 {
        let (now, mut sum) = (Instant::now(), 0.0);
        for _ in 0..runs {
            let width = record.choose(now);
            let took = if width == Width::Wide { wide } else { narrow };
            record.note(width, Duration::from_secs_f64(took));
            sum += took;
        }
        sum / (f64::from(runs) * wide.min(narrow))
    }

    const IDLE: [f64; 2] = [1.0, 1.9];
    const BUSY: [f64; 2] = [25.8, 15.5];

    #[test]
    fn on_an_idle_machine_the_single_thread_is_hardly_ever_tried() {
        let mut record = Record::default();
        assert!(cost(&mut record, 1_000, IDLE) < 1.002);
        assert!(cost(&mut record, 10_000, IDLE) < 1.001);
    }

    #[test]
    fn the_first_run_of_a_width_says_nothing() {
        let mut record = Record::default();
        let even = [20.0, 15.5];
        for width in [Width::Wide, Width::Narrow] {
            record.note(width, Duration::from_secs(40));
        }
        cost(&mut record, 50, even);
        assert!(cost(&mut record, 1_000, even) < 1.02);
    }

    #[test]
    fn a_single_thread_that_becomes_better_is_found_where_nothing_seems_to_hold_runs_up() {
        let mut record = Record::default();
        cost(&mut record, 3_000, [2.0, 2.1]);
        cost(&mut record, 3_000, [2.4, 1.9]);
        assert_eq!(record.preferred(), Width::Narrow);
    }

    #[test]
    fn a_rare_kind_of_rows_is_tried_on_all_threads_after_a_time() {
        let mut record = Record::default();
        cost(&mut record, 1_000, BUSY);
        assert_eq!(record.preferred(), Width::Narrow);
        let now = Instant::now();
        record.tried = Some(now);
        assert_eq!(record.choose(now + TRIAL_AFTER / 2), Width::Narrow);
        assert_eq!(record.choose(now + TRIAL_AFTER), Width::Wide);
        assert_eq!(record.choose(now + TRIAL_AFTER * 3 / 2), Width::Narrow);
    }

    #[test]
    fn a_row_waits_for_threads_half_as_long_as_it_takes_on_one() {
        let widths = Widths::default();
        let kind = (RowSize::prefill(20), 2);
        assert_eq!(widths.patience(kind), Duration::ZERO);
        for _ in 0..2 {
            widths.note(kind, Width::Narrow, Duration::from_millis(8));
        }
        assert_eq!(widths.patience(kind), Duration::from_millis(4));
        assert_eq!(widths.patience((kind.0, 4)), Duration::ZERO);
    }

    #[test]
    fn on_a_busy_machine_runs_take_little_longer_than_on_a_single_thread() {
        let mut record = Record::default();
        cost(&mut record, 100, IDLE);
        assert!(cost(&mut record, 1_000, BUSY) < 1.03);
        let mut started_busy = Record::default();
        cost(&mut started_busy, 50, BUSY);
        assert!(cost(&mut started_busy, 1_000, BUSY) < 1.03);
    }

    #[test]
    fn when_the_machine_is_idle_again_all_threads_run_again() {
        let mut record = Record::default();
        cost(&mut record, 100, IDLE);
        cost(&mut record, 1_000, BUSY);
        let cost_of_change = cost(&mut record, 200, IDLE);
        assert!(cost_of_change < 1.35, "{cost_of_change}");
        assert_eq!(record.preferred(), Width::Wide);
        assert!(cost(&mut record, 1_000, IDLE) < 1.001);
    }

    #[test]
    fn rows_of_about_one_length_are_of_one_kind() {
        assert_eq!(RowSize::prefill(130), RowSize::prefill(250));
        assert_ne!(RowSize::prefill(130), RowSize::prefill(20));
        assert_ne!(RowSize::prefill(20), RowSize::question(20, 1));
        assert_ne!(RowSize::question(20, 100), RowSize::question(20, 4_000));
    }
}
