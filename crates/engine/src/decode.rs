//! The step from logits to probabilities and to the answers that follow from them.

use crate::Error;
use crate::question::Kind;

/// The number of units in a probability of one. Probabilities are whole millionths, so that they
/// add up to exactly one.
pub const UNITS: u32 = 1_000_000;

/// The model's outputs for one question.
#[derive(Debug, Clone, PartialEq)]
pub struct Logits {
    /// The logits, one per outcome, in the caller's order.
    pub outcomes: Vec<f32>,
    /// The two outputs of the action head, where the model has one; index 0 is "act".
    pub action: Option<[f32; 2]>,
}

/// The temperature and bias with which the logits of one question are read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration<'a> {
    /// The divisor of the logits; greater than zero.
    pub temperature: f64,
    /// The values added to the scaled logits, one per outcome; empty for none.
    pub bias: &'a [f64],
}

/// The answer to one question; its probabilities are rounded as they are sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The probabilities, one per outcome, in millionths; they add up to [`UNITS`].
    units: Vec<u32>,
    /// The most probable outcome before rounding, the first one on a tie.
    pub top: usize,
    /// The probability of acting, where the model's action outputs are finite.
    pub act_probability: Option<f64>,
}

impl Answer {
    /// Returns the answer for these logits: the softmax of `logits / temperature + bias`, in double
    /// precision.
    ///
    /// # Errors
    /// [`Error::ModelFailed`] when a logit is not a finite number.
    pub fn decode(logits: &Logits, calibration: Calibration<'_>) -> Result<Self, Error> {
        if logits.outcomes.iter().any(|logit| !logit.is_finite()) {
            return Err(Error::ModelFailed {
                cause: "a logit is not a finite number".into(),
            });
        }
        let scaled = logits.outcomes.iter().enumerate().map(|(index, logit)| {
            let bias = calibration.bias.get(index).copied().unwrap_or(0.0);
            f64::from(*logit) / calibration.temperature + bias
        });
        let probabilities = softmax(scaled.collect());
        Ok(Self {
            units: round_to_units(&probabilities),
            top: first_maximum(&probabilities),
            act_probability: logits.action.and_then(act_probability),
        })
    }

    /// Returns the probability of an outcome, a whole number of millionths.
    pub fn probability(&self, index: usize) -> f64 {
        f64::from(self.units[index]) / f64::from(UNITS)
    }

    /// Returns the sum of index times probability: a score from 0 to the number of outcomes less
    /// one.
    pub fn expected_level(&self) -> f64 {
        let levels = self.units.iter().zip(0_u64..);
        let sum: u64 = levels.map(|(units, level)| u64::from(*units) * level).sum();
        sum as f64 / f64::from(UNITS)
    }

    /// Returns how far the distribution is from a blind guess, from 0 to 1: for a choice or a noul
    /// of n outcomes with highest probability m, `(m - 1/n) / (1 - 1/n)`; for a score, one less the
    /// mean distance from the top level over the mean distance of a uniform guess from the middle.
    pub fn confidence(&self, kind: Kind) -> f64 {
        let count = self.units.len() as f64;
        let confidence = match kind {
            Kind::Choice | Kind::Noul => {
                (self.probability(self.top) - 1.0 / count) / (1.0 - 1.0 / count)
            }
            Kind::Score => {
                let levels = 0..self.units.len();
                let spread: f64 = levels
                    .clone()
                    .map(|level| self.probability(level) * level.abs_diff(self.top) as f64)
                    .sum();
                let middle = (count - 1.0) / 2.0;
                let blind = levels.map(|level| (level as f64 - middle).abs());
                1.0 - spread / (blind.sum::<f64>() / count)
            }
        };
        round(confidence.clamp(0.0, 1.0))
    }
}

/// Returns the softmax in double precision; the maximum is subtracted first.
fn softmax(mut values: Vec<f64>) -> Vec<f64> {
    let maximum = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for value in &mut values {
        *value = (*value - maximum).exp();
        sum += *value;
    }
    for value in &mut values {
        *value /= sum;
    }
    values
}

/// Returns probabilities in millionths by largest remainder (Hamilton's method): each differs by
/// less than one unit, and the sum is exact.
fn round_to_units(probabilities: &[f64]) -> Vec<u32> {
    let exact = probabilities.iter().map(|p| p * f64::from(UNITS));
    let mut units: Vec<u32> = exact.clone().map(|value| value.floor() as u32).collect();
    let mut by_remainder: Vec<(f64, usize)> = exact
        .zip(0..)
        .map(|(value, index)| (value - value.floor(), index))
        .collect();
    by_remainder.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let missing = UNITS.saturating_sub(units.iter().sum());
    for (_, index) in by_remainder.into_iter().cycle().take(missing as usize) {
        units[index] += 1;
    }
    units
}

fn first_maximum(values: &[f64]) -> usize {
    let mut top = 0;
    for (index, value) in values.iter().enumerate() {
        if *value > values[top] {
            top = index;
        }
    }
    top
}

fn act_probability([act, pass]: [f32; 2]) -> Option<f64> {
    if !act.is_finite() || !pass.is_finite() {
        return None;
    }
    Some(round(
        1.0 / (1.0 + (f64::from(pass) - f64::from(act)).exp()),
    ))
}

fn round(value: f64) -> f64 {
    (value * f64::from(UNITS)).round() / f64::from(UNITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(outcomes: &[f32]) -> Answer {
        let logits = Logits {
            outcomes: outcomes.to_vec(),
            action: None,
        };
        let calibration = Calibration {
            temperature: 1.0,
            bias: &[],
        };
        Answer::decode(&logits, calibration).expect("finite")
    }

    proptest! {
        #[test]
        fn probabilities_add_up_exactly_and_stay_near_the_softmax(
            outcomes in prop::collection::vec(-80.0_f32..80.0, 2..300),
        ) {
            let answer = decode(&outcomes);
            prop_assert_eq!(answer.units.iter().sum::<u32>(), UNITS);
            let exact = softmax(outcomes.iter().map(|logit| f64::from(*logit)).collect());
            for (index, p) in exact.iter().enumerate() {
                prop_assert!((answer.probability(index) - p).abs() < 1.0001e-6);
            }
            for kind in Kind::ALL {
                prop_assert!((0.0..=1.0).contains(&answer.confidence(kind)));
            }
            prop_assert!(answer.expected_level() <= (outcomes.len() - 1) as f64);
        }
    }

    #[test]
    fn an_exact_tie_goes_to_the_first() {
        let answer = decode(&[1.0, 3.0, 3.0, 2.0]);
        assert_eq!(answer.top, 1);
    }

    #[test]
    fn confidence_is_none_for_a_blind_guess_and_one_for_certainty() {
        for kind in Kind::ALL {
            assert_eq!(decode(&[0.0, 0.0]).confidence(kind), 0.0);
            assert_eq!(decode(&[0.0, 90.0]).confidence(kind), 1.0);
        }
    }

    #[test]
    fn confidence_of_a_score_counts_how_far_away_the_rest_is() {
        // p = (0.1, 0.6, 0.3) to six decimals: the spread around level 1 is 0.4, that of a blind
        // guess among three is 2/3.
        let answer = decode(&[0.1_f32.ln(), 0.6_f32.ln(), 0.3_f32.ln()]);
        assert!((answer.confidence(Kind::Score) - 0.4).abs() < 2e-6);
        assert!((answer.confidence(Kind::Choice) - (0.6 - 1.0 / 3.0) * 1.5).abs() < 2e-6);
        assert!((answer.expected_level() - 1.2).abs() < 2e-6);
    }

    #[test]
    fn a_logit_that_is_no_number_is_an_error_of_the_model() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let logits = Logits {
                outcomes: vec![0.0, bad],
                action: None,
            };
            let calibration = Calibration {
                temperature: 1.0,
                bias: &[],
            };
            let error = Answer::decode(&logits, calibration).expect_err("not finite");
            assert_eq!(error.code(), "model_failed");
        }
    }

    #[test]
    fn the_action_is_left_out_unless_both_outputs_are_finite() {
        assert_eq!(act_probability([0.0, 0.0]), Some(0.5));
        assert_eq!(act_probability([100.0, -100.0]), Some(1.0));
        assert_eq!(act_probability([f32::NAN, 0.0]), None);
        assert_eq!(act_probability([0.0, f32::INFINITY]), None);
    }

    #[test]
    fn temperature_and_bias_scale_and_shift() {
        let logits = Logits {
            outcomes: vec![2.0, 0.0],
            action: None,
        };
        let calibration = Calibration {
            temperature: 2.0,
            bias: &[-1.0, 0.0],
        };
        let answer = Answer::decode(&logits, calibration).expect("finite");
        assert_eq!(answer.probability(0), 0.5);
    }
}
