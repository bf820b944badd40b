//! The spelling of questions where they are keys.

use std::panic::catch_unwind;

use napi::bindgen_prelude::Buffer;
use napi_derive::napi;

use super::types::NativeFailure;
use crate::Error;
use crate::question::Question;
use crate::reading::Reading;
use crate::wire::{Format, Most};

/// A question where it is a key.
#[napi(object)]
pub struct NativeQuestion {
    /// The canonical JSON; its sha256 is the key of the question's calibration.
    pub canonical: String,
    /// The type as which a model reads it that reads questions that ask the same alike.
    pub unified_kind: String,
    /// For each outcome of the question its place among those that such a model reads.
    pub unified_places: Vec<u32>,
}

/// The questions of a request, or the reason why there are none.
#[napi(object)]
pub struct NativeCanonical {
    pub questions: Option<Vec<NativeQuestion>>,
    pub failure: Option<NativeFailure>,
}

/// Returns the questions in the body of a request, where they are keys.
#[napi]
pub fn canonical_questions(body: Buffer) -> NativeCanonical {
    let canonical = catch_unwind(|| canonical(&body)).unwrap_or(Err(Error::Panicked));
    match canonical {
        Ok(questions) => NativeCanonical {
            questions: Some(questions),
            failure: None,
        },
        Err(error) => NativeCanonical {
            questions: None,
            failure: Some(error.into()),
        },
    }
}

fn canonical(body: &[u8]) -> Result<Vec<NativeQuestion>, Error> {
    let request = Format::SystemOne.parse(body, Most::ANY)?;
    Ok(request.questions.iter().map(native).collect())
}

fn native(question: &Question) -> NativeQuestion {
    let unified = Reading::unified(question);
    let places: Vec<u32> = (0..).take(unified.question.outcomes.len()).collect();
    NativeQuestion {
        canonical: question.canonical_json(),
        unified_kind: unified.question.kind.name().to_owned(),
        unified_places: unified.spread(&places),
    }
}
