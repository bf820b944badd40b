//! The steps from bytes to requests and from answers to bytes, one file per shape of the API.

use serde_json::value::RawValue;

use self::json::count_over;
use crate::Error;
use crate::decode::Answer;
use crate::question::{Outcome, Question, Request};

pub mod batch;
pub mod decisions;
pub mod json;
pub mod systemone;

/// The model's name in every answer, whatever folder is loaded.
pub const MODEL: &str = "svc";

/// The most that a request may have, so that a request with far more is refused before all of it is
/// taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Most {
    /// The most questions.
    pub questions: usize,
    /// The most encoded tokens. Every option takes at least one, so there are no more options than
    /// this.
    pub tokens: usize,
}

impl Most {
    /// No bounds, for requests that are trusted.
    pub const ANY: Self = Self {
        questions: usize::MAX,
        tokens: usize::MAX,
    };
}

/// The number of options that the questions of a request may have: there cannot be more options
/// than tokens, and a request with more is refused before its options are made.
#[derive(Debug)]
struct OptionBudget {
    limit: usize,
    left: usize,
}

impl OptionBudget {
    fn new(most: Most) -> Self {
        Self {
            limit: most.tokens,
            left: most.tokens,
        }
    }

    /// Checks that as many options may be made as a list or an object has entries.
    fn check(&self, value: &RawValue) -> Result<(), Error> {
        match count_over(value, self.left) {
            Some(_) => Err(Error::TooManyTokens { limit: self.limit }),
            None => Ok(()),
        }
    }

    /// Counts the outcomes that were made.
    fn take(&mut self, outcomes: &[Outcome]) -> Result<(), Error> {
        let left = self.left.checked_sub(outcomes.len());
        self.left = left.ok_or(Error::TooManyTokens { limit: self.limit })?;
        Ok(())
    }
}

/// The cost of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// The number of tokens that the answers were made from, special tokens included.
    pub input_tokens: usize,
    /// The number of tokens that were beyond the model's window.
    pub truncated_tokens: usize,
    /// The time from reading the request to the decoded answer, in milliseconds.
    pub server_ms: f64,
}

/// Returns milliseconds as `usage.server_ms` and `Server-Timing` show them: with two decimals.
pub fn hundredths(ms: f64) -> f64 {
    (ms * 100.0).round() / 100.0
}

/// The shape of a request and of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// The shape of `POST /v1/systemone`.
    #[default]
    SystemOne,
    /// The shape of `POST /v1/decisions`.
    Decisions,
    /// The shape of one state's result in `POST /v1/systemone/batch`; a request has the shape of
    /// `POST /v1/systemone`.
    BatchResult,
}

impl Format {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// The errors of [`systemone::parse`] and [`decisions::parse`].
    pub fn parse(self, bytes: &[u8], most: Most) -> Result<Request, Error> {
        match self {
            Self::SystemOne | Self::BatchResult => systemone::parse(bytes, most),
            Self::Decisions => decisions::parse(bytes, most),
        }
    }

    /// Writes the body of a response; `answers` are in the order of `questions`.
    pub fn write(self, questions: &[Question], answers: &[Answer], usage: &Usage) -> Vec<u8> {
        match self {
            Self::SystemOne => systemone::write(questions, answers, usage),
            Self::Decisions => decisions::write(questions, answers, usage),
            Self::BatchResult => systemone::write_result(questions, answers, usage),
        }
    }
}
