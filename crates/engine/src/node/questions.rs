//! The spelling of questions where they are keys.

use std::panic::catch_unwind;

use napi::bindgen_prelude::Buffer;
use napi_derive::napi;

use super::types::NativeFailure;
use crate::Error;
use crate::wire::{Format, Most};

/// The canonical JSON of each question, or the reason why there is none.
#[napi(object)]
pub struct NativeCanonical {
    pub questions: Option<Vec<String>>,
    pub failure: Option<NativeFailure>,
}

/// Returns the canonical JSON of the questions in the body of a request; its sha256 is the key of
/// their calibration.
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

fn canonical(body: &[u8]) -> Result<Vec<String>, Error> {
    let request = Format::SystemOne.parse(body, Most::ANY)?;
    Ok(request
        .questions
        .iter()
        .map(|question| question.canonical_json())
        .collect())
}
