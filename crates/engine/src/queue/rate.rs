//! The measured time that tokens take on the model.

use std::time::Duration;

/// The tokens of past runs and the time that they took on the model; the latest runs count most.
///
/// Both sums fade, and their ratio is the pace. A mean of each run's own tokens per second would be
/// wrong: it would give a run whose state was in the cache, which is short for its tokens, the same
/// weight as the long runs that make up most of the queue.
#[derive(Debug, Default)]
pub struct Rate {
    tokens: f64,
    seconds: f64,
}

impl Rate {
    /// The factor by which the sums of earlier runs fade with each new run.
    const KEPT: f64 = 0.9;
    const MAX_SECONDS: f64 = 60.0;

    /// Adds a run.
    pub fn add(&mut self, tokens: usize, took: Duration) {
        self.tokens = self.tokens * Self::KEPT + tokens as f64;
        self.seconds = self.seconds * Self::KEPT + took.as_secs_f64();
    }

    /// Returns how long `tokens` take; `None` before the first run.
    pub fn time(&self, tokens: usize) -> Option<Duration> {
        let seconds = tokens as f64 * self.seconds / self.tokens;
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// Returns the seconds until `tokens` are done, at least 1: the value of `Retry-After`.
    pub fn retry_after_seconds(&self, tokens: usize) -> u32 {
        let seconds = self.time(tokens).map_or(1.0, |time| time.as_secs_f64());
        seconds.ceil().clamp(1.0, Self::MAX_SECONDS) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_is_told_from_tokens_and_measured_rate() {
        let mut rate = Rate::default();
        assert_eq!(
            (rate.retry_after_seconds(1_000_000), rate.time(1)),
            (1, None)
        );
        rate.add(1_000, Duration::from_millis(100));
        assert_eq!(rate.retry_after_seconds(20_000), 2);
        assert_eq!(
            rate.retry_after_seconds(21_000),
            3,
            "2.1 s are not over in 2"
        );
        assert_eq!(rate.retry_after_seconds(10), 1);
        assert_eq!(rate.retry_after_seconds(1_000_000_000), 60);
    }

    #[test]
    fn short_runs_of_many_tokens_do_not_hide_long_ones() {
        let mut rate = Rate::default();
        for _ in 0..50 {
            rate.add(1_000, Duration::from_millis(1));
            rate.add(1_000, Duration::from_millis(99));
        }
        let time = rate.time(1_000).expect("measured").as_secs_f64();
        assert!((0.045..0.055).contains(&time), "{time}");
    }
}
