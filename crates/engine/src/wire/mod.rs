//! Bytes to requests and answers to bytes, one file per shape of the API.

use crate::Error;
use crate::decode::Answer;
use crate::question::{Question, Request};

pub mod batch;
pub mod decisions;
pub mod json;
pub mod systemone;

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
    pub fn parse(self, bytes: &[u8], max_questions: usize) -> Result<Request, Error> {
        match self {
            Self::SystemOne | Self::BatchResult => systemone::parse(bytes, max_questions),
            Self::Decisions => decisions::parse(bytes, max_questions),
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
