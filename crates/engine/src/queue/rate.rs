//! How long tokens take on the model.

use std::time::Duration;

/// Tokens and the time that they took on the model, the latest runs counting most.
///
/// Both sums fade, and their ratio is the pace: a mean of each run's own tokens per second would count a run of a kept state,
/// which is short for its tokens, as much as the long ones that the line is made of.
#[derive(Debug, Default)]
pub struct Rate {
    tokens: f64,
    seconds: f64,
}

impl Rate {
    /// What is left of the earlier runs with each new one.
    const KEPT: f64 = 0.9;
    const MAX_SECONDS: f64 = 60.0;

    /// Takes note of a run.
    pub fn add(&mut self, tokens: usize, took: Duration) {
        self.tokens = self.tokens * Self::KEPT + tokens as f64;
        self.seconds = self.seconds * Self::KEPT + took.as_secs_f64();
    }

    /// How long `tokens` take; `None` before anything was run.
    pub fn time(&self, tokens: usize) -> Option<Duration> {
        let seconds = tokens as f64 * self.seconds / self.tokens;
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// Seconds until `tokens` are done, at least 1: what `Retry-After` says.
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
