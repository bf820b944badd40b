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
use crate::session::Exactness;
use crate::wire::{Format, hundredths};

/// The treatment of a text that is longer than the model's window.
#[napi(string_enum)]
pub enum NativeTruncate {
    /// The text is cut, and its cut tokens are counted.
    #[napi(value = "count")]
    Count,
    /// The text is an error.
    #[napi(value = "error")]
    Error,
}

/// The precision of kept states: `fp16` keeps twice as many in the same bytes, and then rounds
/// every state.
#[napi(string_enum)]
pub enum NativePrecision {
    #[napi(value = "fp32")]
    Fp32,
    #[napi(value = "fp16")]
    Fp16,
}

impl From<NativePrecision> for Precision {
    fn from(precision: NativePrecision) -> Self {
        match precision {
            NativePrecision::Fp32 => Self::Fp32,
            NativePrecision::Fp16 => Self::Fp16,
        }
    }
}

/// The options of an engine: its model, what the model runs on, and the limits that the engine
/// itself enforces.
#[napi(object)]
pub struct NativeOptions {
    /// The absolute path of the ONNX Runtime library.
    pub runtime: String,
    /// The model folder.
    pub model: String,
    pub device: String,
    /// The intra-op threads; 0 takes the container's CPU limit, else the machine's cores.
    pub threads: u32,
    /// The most requests that may be on the model at once; 0 takes one for each thread.
    pub parallel: u32,
    pub max_questions: f64,
    /// The most encoded tokens in one request, special ones included.
    pub max_tokens: f64,
    pub truncate: NativeTruncate,
    /// The most requests that may wait for the model.
    pub max_queue: f64,
    /// The most bytes of the request bodies that may wait for the model.
    pub max_queue_bytes: f64,
    pub request_timeout_ms: f64,
    pub max_run_ms: f64,
    pub state_cache_bytes: f64,
    pub state_cache_precision: NativePrecision,
}

impl From<NativeOptions> for Options {
    fn from(options: NativeOptions) -> Self {
        Self {
            source: Source {
                runtime: PathBuf::from(options.runtime),
                folder: PathBuf::from(options.model),
                device: options.device,
                threads: options.threads as usize,
                parallel: options.parallel as usize,
                state_cache_bytes: options.state_cache_bytes as usize,
                state_cache_precision: options.state_cache_precision.into(),
            },
            max_questions: options.max_questions as usize,
            max_tokens: options.max_tokens as usize,
            refuse_truncation: matches!(options.truncate, NativeTruncate::Error),
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

/// The shape of a request and of its answer: that of `POST /v1/systemone`, or that of
/// `POST /v1/decisions`.
#[napi(string_enum)]
pub enum NativeFormat {
    #[napi(value = "systemone")]
    SystemOne,
    #[napi(value = "decisions")]
    Decisions,
}

impl From<NativeFormat> for Format {
    fn from(format: NativeFormat) -> Self {
        match format {
            NativeFormat::SystemOne => Self::SystemOne,
            NativeFormat::Decisions => Self::Decisions,
        }
    }
}

/// One call of `decide`.
#[napi(object)]
pub struct NativeCall {
    pub format: NativeFormat,
    /// The time that was already spent on the request.
    pub elapsed_ms: f64,
    /// How long the answer is of use, from the beginning of the request.
    pub timeout_ms: Option<f64>,
}

impl NativeCall {
    pub(super) fn arrival(self, ticket: f64, body: &[u8]) -> Arrival {
        Arrival {
            ticket: ticket as u64,
            format: self.format.into(),
            // The body is copied, because JavaScript may change its buffer while the engine reads
            // it.
            body: body.to_vec(),
            elapsed: milliseconds(self.elapsed_ms),
            patience: self.timeout_ms.map(milliseconds),
        }
    }
}

/// Whether the graph's 8-bit products are exact on this processor.
#[napi(string_enum)]
pub enum NativeExactness {
    /// They are exact as they are in the file.
    #[napi(value = "exact")]
    Exact,
    /// They are exact by unsigned weights in place of signed ones.
    #[napi(value = "made exact")]
    MadeExact,
    /// Not all of them are exact.
    #[napi(value = "cannot be")]
    CannotBe,
}

impl From<&Exactness> for NativeExactness {
    fn from(exactness: &Exactness) -> Self {
        match exactness {
            Exactness::Exact => Self::Exact,
            Exactness::MadeExact { .. } => Self::MadeExact,
            Exactness::CannotBe { .. } => Self::CannotBe,
        }
    }
}

/// The facts about the loaded model that `/health` and the log show.
#[napi(object)]
pub struct NativeInfo {
    pub name: String,
    pub version: String,
    /// The hex sha256 of the graph file.
    pub sha256: String,
    /// The hex sha256 over all files of the folder that the model is made of.
    pub digest: String,
    pub layout: String,
    pub device: String,
    pub threads: u32,
    /// The absolute path of the model folder.
    pub dir: String,
    /// The reasons why devices that were tried before `device` were not taken, one line each.
    pub device_notes: Vec<String>,
    pub exactness: NativeExactness,
    /// A note about the exactness, in one line; absent where the graph is run as it is and is
    /// exact.
    pub exactness_note: Option<String>,
}

/// The durations of the phases of one request, in milliseconds.
#[napi(object)]
pub struct NativeTiming {
    pub encode_ms: f64,
    pub wait_ms: f64,
    pub run_ms: f64,
    pub total_ms: f64,
}

/// The counts of one answered request.
#[napi(object)]
pub struct NativeCounts {
    pub choice: u32,
    pub score: u32,
    pub noul: u32,
    pub input_tokens: u32,
    pub truncated_tokens: u32,
    pub confidences: NativeConfidences,
}

/// The confidence of each answer, by question type, from 0 to 1.
#[napi(object)]
pub struct NativeConfidences {
    pub choice: Vec<f64>,
    pub score: Vec<f64>,
    pub noul: Vec<f64>,
}

/// The failure of a request that got no answer. `code` is one of `errors.ts`.
#[napi(object)]
pub struct NativeFailure {
    pub code: String,
    pub message: String,
    /// Present when the caller should come again: the seconds until the queue has room, at least 1.
    pub retry_after_seconds: Option<u32>,
    /// The part of the request that is wrong, where that is known: a question's id, or the path of
    /// a field.
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

/// The outcome of a request: either `body`, `timing` and `counts`, or `failure`. The outcome of a
/// load has at most a failure, and the result of one state of a batch no `body`.
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

/// The work that the engine holds.
#[napi(object)]
pub struct NativeLoad {
    /// The requests on the model, at most `parallel`.
    pub running: u32,
    pub waiting: u32,
    /// Whether the newest request goes first, since callers hang up before their turn.
    pub newest_first: bool,
}

/// The statistics of the kept states. The counts are of chunks of states, since the start.
#[napi(object)]
pub struct NativeCacheStats {
    pub hits: f64,
    pub misses: f64,
    pub evictions: f64,
    pub entries: f64,
    pub bytes: f64,
    pub limit_bytes: f64,
}

/// Some results of a batch, in the order of its states.
#[napi(object)]
pub struct NativeChunk {
    /// The next piece of the response body.
    pub body: Buffer,
    pub results: Vec<NativeReply>,
    /// Only in the last chunk: the durations of all states. The phases are sums over the states;
    /// `total` is not.
    pub timing: Option<NativeTiming>,
    /// Only in the last chunk: why the remaining states got no answer.
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
