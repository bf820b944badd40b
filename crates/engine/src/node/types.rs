//! The types that cross between JavaScript and Rust, as both see them.

use std::path::PathBuf;
use std::time::Duration;

use napi::bindgen_prelude::Buffer;
use napi_derive::napi;

use crate::Error;
use crate::batch::Chunk;
use crate::cache::Precision;
use crate::engine::{Answered, Arrival, Options, Timing};
use crate::model::Source;
use crate::question::Kind;
use crate::queue::Limits;
use crate::wire::{Format, hundredths};

#[napi(object)]
pub struct NativeOptions {
    pub runtime: String,
    pub model: String,
    pub device: String,
    pub threads: u32,
    pub max_questions: f64,
    pub max_tokens: f64,
    pub truncate: String,
    pub max_queue: f64,
    pub max_queue_bytes: f64,
    pub request_timeout_ms: f64,
    pub max_run_ms: f64,
    pub state_cache_bytes: f64,
    pub state_cache_precision: String,
}

impl From<NativeOptions> for Options {
    fn from(options: NativeOptions) -> Self {
        Self {
            source: Source {
                runtime: PathBuf::from(options.runtime),
                folder: PathBuf::from(options.model),
                device: options.device,
                threads: options.threads as usize,
                state_cache_bytes: options.state_cache_bytes as usize,
                state_cache_precision: match options.state_cache_precision.as_str() {
                    "fp16" => Precision::Fp16,
                    _ => Precision::Fp32,
                },
            },
            max_questions: options.max_questions as usize,
            max_tokens: options.max_tokens as usize,
            refuse_truncation: options.truncate == "error",
            limits: Limits {
                max_queue: options.max_queue as usize,
                max_queue_bytes: options.max_queue_bytes as usize,
                request_timeout: milliseconds(options.request_timeout_ms),
                max_run: milliseconds(options.max_run_ms),
            },
        }
    }
}

pub(super) fn milliseconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value / 1e3).unwrap_or_default()
}

#[napi(object)]
pub struct NativeCall {
    pub format: String,
    pub elapsed_ms: f64,
    pub timeout_ms: Option<f64>,
}

impl NativeCall {
    pub(super) fn arrival(&self, ticket: f64, body: &[u8]) -> Arrival {
        Arrival {
            ticket: ticket as u64,
            format: match self.format.as_str() {
                "decisions" => Format::Decisions,
                _ => Format::SystemOne,
            },
            // The body is copied, because JavaScript may change its buffer while the engine reads
            // it.
            body: body.to_vec(),
            elapsed: milliseconds(self.elapsed_ms),
            patience: self.timeout_ms.map(milliseconds),
        }
    }
}

#[napi(object)]
pub struct NativeInfo {
    pub name: String,
    pub version: String,
    pub sha256: String,
    pub digest: String,
    pub layout: String,
    pub device: String,
    pub threads: u32,
    pub dir: String,
    pub device_notes: Vec<String>,
    /// The name of the exactness: `exact`, `made exact` or `cannot be`.
    pub exactness: String,
    /// A note on the exactness, where there is one.
    pub exactness_note: Option<String>,
}

#[napi(object)]
pub struct NativeTiming {
    pub encode_ms: f64,
    pub wait_ms: f64,
    pub run_ms: f64,
    pub total_ms: f64,
}

#[napi(object)]
pub struct NativeCounts {
    pub choice: u32,
    pub score: u32,
    pub noul: u32,
    pub input_tokens: u32,
    pub truncated_tokens: u32,
    pub confidences: NativeConfidences,
}

#[napi(object)]
pub struct NativeConfidences {
    pub choice: Vec<f64>,
    pub score: Vec<f64>,
    pub noul: Vec<f64>,
}

#[napi(object)]
pub struct NativeFailure {
    pub code: String,
    pub message: String,
    pub retry_after_seconds: Option<u32>,
    pub param: Option<String>,
    /// The message of a library, only for the log; clients never see it.
    pub cause: Option<String>,
}

impl From<Error> for NativeFailure {
    fn from(error: Error) -> Self {
        Self {
            code: error.code().to_owned(),
            message: error.to_string(),
            retry_after_seconds: error.retry_after_seconds(),
            param: error.param().map(str::to_owned),
            cause: match error {
                Error::ModelFailed { cause } => Some(cause),
                _ => None,
            },
        }
    }
}

#[napi(object)]
pub struct NativeReply {
    pub body: Option<Buffer>,
    pub timing: Option<NativeTiming>,
    pub counts: Option<NativeCounts>,
    pub failure: Option<NativeFailure>,
}

impl From<Result<Answered, Error>> for NativeReply {
    fn from(outcome: Result<Answered, Error>) -> Self {
        match outcome {
            Ok(mut answered) => {
                let body = std::mem::take(&mut answered.body);
                Self {
                    body: Some(body.into()),
                    ..Self::without_body(Ok(answered))
                }
            }
            failed => Self::without_body(failed),
        }
    }
}

/// The outcome of a load: a failure or nothing.
impl From<Result<(), Error>> for NativeReply {
    fn from(outcome: Result<(), Error>) -> Self {
        Self {
            body: None,
            timing: None,
            counts: None,
            failure: outcome.err().map(NativeFailure::from),
        }
    }
}

impl NativeReply {
    fn without_body(outcome: Result<Answered, Error>) -> Self {
        let (answered, failure) = match outcome {
            Ok(answered) => (Some(answered), None),
            Err(error) => (None, Some(error.into())),
        };
        Self {
            body: None,
            timing: answered.as_ref().map(|answered| answered.timing.into()),
            counts: answered.map(NativeCounts::from),
            failure,
        }
    }
}

impl From<Timing> for NativeTiming {
    fn from(timing: Timing) -> Self {
        let ms = |duration: Duration| hundredths(duration.as_secs_f64() * 1e3);
        Self {
            encode_ms: ms(timing.encode),
            wait_ms: ms(timing.wait),
            run_ms: ms(timing.run),
            total_ms: ms(timing.total),
        }
    }
}

impl From<Answered> for NativeCounts {
    fn from(answered: Answered) -> Self {
        let counts = answered.counts;
        let of = |kind| {
            let all = answered.confidences.iter();
            let own = all.filter(|(each, _)| *each == kind);
            own.map(|(_, confidence)| *confidence).collect()
        };
        Self {
            choice: counts.choice as u32,
            score: counts.score as u32,
            noul: counts.noul as u32,
            input_tokens: counts.input_tokens as u32,
            truncated_tokens: counts.truncated_tokens as u32,
            confidences: NativeConfidences {
                choice: of(Kind::Choice),
                score: of(Kind::Score),
                noul: of(Kind::Noul),
            },
        }
    }
}

#[napi(object)]
pub struct NativeLoad {
    pub running: u32,
    pub waiting: u32,
    pub newest_first: bool,
}

#[napi(object)]
pub struct NativeCacheStats {
    pub hits: f64,
    pub misses: f64,
    pub evictions: f64,
    pub entries: f64,
    pub bytes: f64,
    pub limit_bytes: f64,
}

/// Some results of a batch.
#[napi(object)]
pub struct NativeChunk {
    pub body: Buffer,
    /// The outcome of each state whose result is in this chunk.
    pub results: Vec<NativeReply>,
    /// Present with the last chunk: where the time of the batch went.
    pub timing: Option<NativeTiming>,
    /// Present with the last chunk: why the remaining states got no answer.
    pub failure: Option<NativeFailure>,
}

impl From<Chunk> for NativeChunk {
    fn from(chunk: Chunk) -> Self {
        let results = chunk.results.into_iter();
        let (timing, failure) = match chunk.end {
            None => (None, None),
            Some(Ok(timing)) => (Some(timing.into()), None),
            Some(Err(error)) => (None, Some(error.into())),
        };
        Self {
            body: chunk.bytes.into(),
            results: results.map(NativeReply::without_body).collect(),
            timing,
            failure,
        }
    }
}
