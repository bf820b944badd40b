//! The steps from bytes to requests and from answers to bytes, one file per shape of the API.

use crate::Error;
use crate::decode::Answer;
use crate::question::{Question, Request};

pub mod batch;
pub mod decisions;
pub mod json;
pub mod systemone;

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
    pub fn write(
        self,
        questions: &[Question],
        answers: &[Answer],
        usage: &systemone::Usage,
    ) -> Vec<u8> {
        match self {
            Self::SystemOne => systemone::write(questions, answers, usage),
            Self::Decisions => decisions::write(questions, answers, usage),
            Self::BatchResult => systemone::write_result(questions, answers, usage),
        }
    }
}
