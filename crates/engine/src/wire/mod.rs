//! Bytes to requests and answers to bytes, one file per shape of the API.

use crate::Error;
use crate::decode::Answer;
use crate::question::{Question, Request};

pub mod batch;
pub mod decisions;
pub mod json;
pub mod systemone;

/// What a request may have, so that one with far more is refused before all of it is taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Most {
    /// Questions.
    pub questions: usize,
    /// Encoded tokens. Every option takes at least one, so there are no more options than this.
    pub tokens: usize,
}

impl Most {
    /// No bounds, for requests that are trusted.
    pub const ANY: Self = Self {
        questions: usize::MAX,
        tokens: usize::MAX,
    };
}

/// A shape that a request and its answer have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// That of `POST /v1/systemone`.
    #[default]
    SystemOne,
    /// That of `POST /v1/decisions`.
    Decisions,
    /// That of one state of `POST /v1/systemone/batch`; a request has that of `POST /v1/systemone`.
    BatchResult,
}

impl Format {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Those of [`systemone::parse`] and [`decisions::parse`].
    pub fn parse(self, bytes: &[u8], most: Most) -> Result<Request, Error> {
        match self {
            Self::SystemOne | Self::BatchResult => systemone::parse(bytes, most),
            Self::Decisions => decisions::parse(bytes, most),
        }
    }

    /// Writes the body of a response; `answers` in the order of `questions`.
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
