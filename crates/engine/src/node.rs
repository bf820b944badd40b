//! The N-API face: converts, decides nothing.

// The macros of napi-derive generate items that have no documentation of their own.
#![allow(missing_docs)]

use std::panic::catch_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use napi::bindgen_prelude::{Buffer, Object};
use napi::{Env, JsDeferred};
use napi_derive::napi;
use parking_lot::Mutex;

use crate::Error;
use crate::cache::Precision;
use crate::engine::{Answered, Arrival, Engine, Options};
use crate::error::CODES;
use crate::model::Source;
use crate::model::inspect::{Inspection, inspect};
use crate::question::Kind;
use crate::queue::Limits;
use crate::session::TensorInfo;
use crate::wire::Format;
use crate::wire::systemone::hundredths;

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

fn milliseconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value / 1e3).unwrap_or_default()
}

#[napi(object)]
pub struct NativeCall {
    pub format: String,
    pub elapsed_ms: f64,
}

impl NativeCall {
    fn arrival(&self, ticket: f64, body: &[u8]) -> Arrival {
        Arrival {
            ticket: ticket as u64,
            format: match self.format.as_str() {
                "decisions" => Format::Decisions,
                _ => Format::SystemOne,
            },
            // Copied: JavaScript may change its buffer while the engine reads.
            body: body.to_vec(),
            elapsed: milliseconds(self.elapsed_ms),
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
    /// For the log alone: what a library said, which no client is told.
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
            Ok(answered) => {
                let (timing, counts) = (answered.timing, answered.counts);
                let of = |kind| {
                    let all = answered.confidences.iter();
                    let own = all.filter(|(each, _)| *each == kind);
                    own.map(|(_, confidence)| *confidence).collect()
                };
                let ms = |duration: Duration| hundredths(duration.as_secs_f64() * 1e3);
                Self {
                    body: Some(answered.body.into()),
                    timing: Some(NativeTiming {
                        encode_ms: ms(timing.encode),
                        wait_ms: ms(timing.wait),
                        run_ms: ms(timing.run),
                        total_ms: ms(timing.total),
                    }),
                    counts: Some(NativeCounts {
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
                    }),
                    failure: None,
                }
            }
            Err(error) => Self {
                body: None,
                timing: None,
                counts: None,
                failure: Some(error.into()),
            },
        }
    }
}

#[napi(object)]
pub struct NativeLoad {
    pub running: u32,
    pub waiting: u32,
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

type Settle<T> = Box<dyn FnOnce(Env) -> napi::Result<T> + Send>;
type Deferred<T> = JsDeferred<T, Settle<T>>;

/// An engine from JavaScript's side. Promises are settled by the engine's own threads; the pool of libuv is not used.
#[napi]
pub struct NativeEngine {
    slot: Arc<Slot>,
}

/// The engine once it is loaded.
#[derive(Default)]
struct Slot {
    engine: Mutex<Option<Arc<Engine>>>,
    /// Held while the model is loaded.
    loading: Mutex<()>,
    ended: AtomicBool,
}

impl Slot {
    fn load(&self, options: Options) -> Result<(), Error> {
        let _loading = self.loading.lock();
        if self.ended.load(Ordering::SeqCst) {
            return Err(Error::Closing);
        }
        let engine = catch_unwind(|| Engine::load(options)).unwrap_or(Err(Error::Panicked))?;
        *self.engine.lock() = Some(Arc::new(engine));
        Ok(())
    }

    fn engine(&self) -> Option<Arc<Engine>> {
        self.engine.lock().clone()
    }

    /// Lets the engine finish, then frees its model.
    fn close(&self) {
        if let Some(engine) = self.engine() {
            engine.close();
        }
        self.engine.lock().take();
    }

    /// Ends the engine, also one that is being loaded: ONNX Runtime must be at rest when the process exits.
    fn shutdown(&self) {
        self.ended.store(true, Ordering::SeqCst);
        let _loading = self.loading.lock();
        if let Some(engine) = self.engine() {
            engine.shutdown();
        }
    }
}

#[napi]
impl NativeEngine {
    #[napi(constructor)]
    pub fn new(env: Env) -> napi::Result<Self> {
        let slot = Arc::new(Slot::default());
        // A worker thread can end without an `exit` event; its engine must not outlive it.
        env.add_env_cleanup_hook(Arc::downgrade(&slot), |slot| {
            if let Some(slot) = slot.upgrade() {
                slot.shutdown();
            }
        })?;
        Ok(Self { slot })
    }

    /// Loads the model; resolves with the failure, or with nothing.
    #[napi(ts_return_type = "Promise<NativeReply>")]
    pub fn load<'env>(&self, env: &'env Env, options: NativeOptions) -> napi::Result<Object<'env>> {
        let (deferred, promise): (Deferred<NativeReply>, _) = env.create_deferred()?;
        let slot = Arc::clone(&self.slot);
        let options = Options::from(options);
        std::thread::spawn(move || {
            let failure = slot.load(options).err().map(NativeFailure::from);
            deferred.resolve(Box::new(move |_| {
                Ok(NativeReply {
                    body: None,
                    timing: None,
                    counts: None,
                    failure,
                })
            }));
        });
        Ok(promise)
    }

    /// Answers a request; tickets count up.
    #[napi(ts_return_type = "Promise<NativeReply>")]
    pub fn decide<'env>(
        &self,
        env: &'env Env,
        ticket: f64,
        body: Buffer,
        options: NativeCall,
    ) -> napi::Result<Object<'env>> {
        let (deferred, promise): (Deferred<NativeReply>, _) = env.create_deferred()?;
        let reply = move |outcome: Result<Answered, Error>| {
            deferred.resolve(Box::new(move |_| Ok(outcome.into())));
        };
        match self.slot.engine() {
            Some(engine) => engine.decide(options.arrival(ticket, &body), Box::new(reply)),
            None => reply(Err(Error::Closing)),
        }
        Ok(promise)
    }

    /// Drops a request whose caller has gone.
    #[napi]
    pub fn cancel(&self, ticket: f64) {
        if let Some(engine) = self.slot.engine() {
            engine.cancel(ticket as u64);
        }
    }

    /// What is said of the model; nothing before it is loaded.
    #[napi]
    pub fn info(&self) -> Option<NativeInfo> {
        let engine = self.slot.engine()?;
        let info = engine.info()?;
        Some(NativeInfo {
            name: info.name.clone(),
            version: info.version.clone(),
            sha256: info.sha256.clone(),
            digest: info.digest.clone(),
            layout: info.layout.to_owned(),
            device: info.device.name().to_owned(),
            threads: info.threads as u32,
            dir: info.folder.to_string_lossy().into_owned(),
            device_notes: info.device_notes.clone(),
        })
    }

    /// How many requests there are.
    #[napi]
    pub fn queue(&self) -> NativeLoad {
        let load = self.slot.engine().map(|engine| engine.load_now());
        NativeLoad {
            running: load.map_or(0, |load| load.running as u32),
            waiting: load.map_or(0, |load| load.waiting as u32),
        }
    }

    /// How the kept states are doing, counted in chunks.
    #[napi]
    pub fn cache(&self) -> NativeCacheStats {
        let stats = self.slot.engine().map(|engine| engine.cache_stats());
        let stats = stats.unwrap_or_default();
        NativeCacheStats {
            hits: stats.hits as f64,
            misses: stats.misses as f64,
            evictions: stats.evictions as f64,
            entries: stats.entries as f64,
            bytes: stats.bytes as f64,
            limit_bytes: stats.limit_bytes as f64,
        }
    }

    /// Lets all that is there finish, then ends the engine's threads.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn close<'env>(&self, env: &'env Env) -> napi::Result<Object<'env>> {
        let (deferred, promise): (Deferred<()>, _) = env.create_deferred()?;
        let slot = Arc::clone(&self.slot);
        std::thread::spawn(move || {
            slot.close();
            deferred.resolve(Box::new(|_| Ok(())));
        });
        Ok(promise)
    }

    /// Ends everything now and waits for it.
    #[napi]
    pub fn shutdown(&self) {
        self.slot.shutdown();
    }
}

#[napi(object)]
pub struct NativeInspection {
    pub dir: String,
    pub layout: Option<String>,
    pub name: Option<String>,
    pub version: Option<String>,
    pub files: Vec<NativeFile>,
    pub inputs: Vec<NativeTensor>,
    pub outputs: Vec<NativeTensor>,
    pub labels: Vec<NativeLabel>,
    pub vocabulary: Option<u32>,
    pub max_len: Option<u32>,
    pub problems: Vec<String>,
}

#[napi(object)]
pub struct NativeFile {
    pub name: String,
    pub bytes: f64,
    pub sha256: String,
}

#[napi(object)]
pub struct NativeTensor {
    pub name: String,
    pub kind: String,
    pub shape: Vec<String>,
}

#[napi(object)]
pub struct NativeLabel {
    pub name: String,
    pub role: Option<String>,
}

impl From<TensorInfo> for NativeTensor {
    fn from(tensor: TensorInfo) -> Self {
        Self {
            name: tensor.name,
            kind: tensor.kind,
            shape: tensor.shape,
        }
    }
}

impl From<Inspection> for NativeInspection {
    fn from(inspection: Inspection) -> Self {
        let tensors = |all: Vec<TensorInfo>| all.into_iter().map(NativeTensor::from).collect();
        let files = inspection.files.into_iter().map(|file| NativeFile {
            name: file.name,
            bytes: file.bytes as f64,
            sha256: file.sha256,
        });
        let labels = inspection.labels.into_iter().map(|label| NativeLabel {
            name: label.name,
            role: label.role.map(|role| role.name().to_owned()),
        });
        Self {
            dir: inspection.folder.to_string_lossy().into_owned(),
            layout: inspection.layout,
            name: inspection.name,
            version: inspection.version,
            files: files.collect(),
            inputs: tensors(inspection.tensors.inputs),
            outputs: tensors(inspection.tensors.outputs),
            labels: labels.collect(),
            vocabulary: inspection.vocabulary.map(|count| count as u32),
            max_len: inspection.max_len.map(|length| length as u32),
            problems: inspection.problems,
        }
    }
}

/// What a model folder is, and what is wrong with it.
#[napi(ts_return_type = "Promise<NativeInspection>")]
pub fn inspect_model(env: &Env, runtime: String, model: String) -> napi::Result<Object<'_>> {
    let (deferred, promise): (Deferred<NativeInspection>, _) = env.create_deferred()?;
    std::thread::spawn(move || {
        let inspection = catch_unwind(|| inspect(runtime.as_ref(), model.as_ref()));
        let inspection = inspection.unwrap_or_else(|_| Inspection {
            problems: vec![Error::Panicked.to_string()],
            ..Inspection::default()
        });
        deferred.resolve(Box::new(move |_| Ok(inspection.into())));
    });
    Ok(promise)
}

/// Every error code that the engine can report.
#[napi]
pub fn error_codes() -> Vec<&'static str> {
    CODES.to_vec()
}
