//! An engine: a model, its queue, and the threads that work for them.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::unbounded;
use parking_lot::Mutex;

use crate::Error;
use crate::backend::{Backend, Info};
use crate::batch::{Batch, PullReply};
use crate::cache::CacheStats;
use crate::model::{Model, Source};
use crate::queue::{Admission, Entrant, Limits, Load, Queue, RequestKind};
use crate::session::MAX_THREADS;
pub use crate::stages::{Answered, Counts, Reply, Timing};
use crate::stages::{Bounds, Job, Stages, expire, serve};
use crate::wire::Format;
use crate::wire::batch::Framing;

/// The longest body that may join the queue unparsed, in bytes: while such a body is encoded in its
/// turn, the model is idle.
const MAX_UNPARSED_BYTES: usize = 64 * 1024;

/// The options of an engine.
#[derive(Debug, Clone)]
pub struct Options {
    /// The model and the device for it; 0 threads mean the container's CPU limit, else the number
    /// of the machine's cores.
    pub source: Source,
    /// The most questions in one request.
    pub max_questions: usize,
    /// The most encoded tokens in one request, special tokens included.
    pub max_tokens: usize,
    /// Whether a text beyond the model's window is an error instead of being cut and counted.
    pub refuse_truncation: bool,
    /// The limits of the queue.
    pub limits: Limits,
}

/// A request that has just arrived.
#[derive(Debug)]
pub struct Arrival {
    /// The number of the request; it counts up with every request of an engine.
    pub ticket: u64,
    /// The shape of the request and of its answer.
    pub format: Format,
    /// The request body, JSON.
    pub body: Vec<u8>,
    /// The time that the caller already spent on the request.
    pub elapsed: Duration,
    /// How long the answer is of use, counted from the moment when the caller began with the
    /// request.
    pub patience: Option<Duration>,
}

/// A batch that has just arrived.
#[derive(Debug)]
pub struct BatchArrival {
    /// The number of the batch; it counts up with every request of an engine.
    pub ticket: u64,
    /// The format in which the results are put together.
    pub framing: Framing,
    /// The most states that the batch may have.
    pub max_states: usize,
    /// The request body, JSON.
    pub body: Vec<u8>,
    /// The time that the caller already spent on the request.
    pub elapsed: Duration,
}

/// An engine: a model, its queue, and the threads that work for them.
pub struct Engine {
    stages: Arc<Stages>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The source of the first model.
    source: Source,
}

impl Engine {
    /// Loads a model and starts the engine's threads.
    ///
    /// # Errors
    /// The errors of [`Model::load`].
    pub fn load(mut options: Options) -> Result<Self, Error> {
        if options.source.threads == 0 {
            // This counts the cgroup's quota and the affinity mask, not only the machine's cores.
            let available = std::thread::available_parallelism().map_or(1, usize::from);
            options.source.threads = available.min(MAX_THREADS);
        }
        if options.source.parallel == 0 {
            options.source.parallel = options.source.threads;
        }
        let model = Model::load(&options.source)?;
        Ok(Self::start(Arc::new(model), &options))
    }

    /// Starts an engine on a backend.
    pub fn start(backend: Arc<dyn Backend>, options: &Options) -> Self {
        let (sender, tasks) = unbounded();
        let bounds = Bounds {
            max_questions: options.max_questions,
            max_tokens: options.max_tokens,
            refuse_truncation: options.refuse_truncation,
        };
        let queue = Queue::new(options.limits);
        let parallel = backend.parallel();
        queue.set_most_running(parallel);
        let stages = Stages::new(backend, queue, bounds, sender);
        // While as many threads as requests may be on the model at once run the queue, the others
        // encode.
        let mut threads: Vec<JoinHandle<()>> = (0..options.source.threads.max(1) + parallel)
            .map(|index| {
                let (stages, tasks) = (Arc::clone(&stages), tasks.clone());
                spawn(format!("svc-encode-{index}"), move || {
                    serve(&stages, &tasks);
                })
            })
            .collect();
        let watched = Arc::clone(&stages);
        threads.push(spawn("svc-line".into(), move || expire(&watched)));
        Self {
            stages,
            threads: Mutex::new(threads),
            source: options.source.clone(),
        }
    }

    /// Loads the model of another folder with the options of the first one; the current model goes
    /// on answering.
    ///
    /// # Errors
    /// The errors of [`Model::load`].
    pub fn load_next(&self, folder: PathBuf) -> Result<Model, Error> {
        Model::load(&Source {
            folder,
            ..self.source.clone()
        })
    }

    /// Makes `backend` the model of the requests that arrive from now on. Earlier requests finish
    /// on the model that they arrived with, which is freed after the last of them.
    pub fn replace(&self, backend: Arc<dyn Backend>) {
        self.stages.queue.set_most_running(backend.parallel());
        self.stages.tenure.replace(backend);
    }

    /// Returns the description of the model; `None` for an engine that was not made from a folder.
    pub fn info(&self) -> Option<Info> {
        self.stages.tenure.current().info().cloned()
    }

    /// Whether the newest request goes first, because callers give up before their turn.
    pub fn is_newest_first(&self) -> bool {
        self.stages.queue.is_newest_first()
    }

    /// Returns how many requests are running and waiting.
    pub fn load_now(&self) -> Load {
        self.stages.queue.load()
    }

    /// Returns the statistics of the state cache.
    pub fn cache_stats(&self) -> CacheStats {
        self.stages.tenure.current().cache_stats()
    }

    /// Returns the error of a request that arrives now and need not be read; see
    /// [`Queue::refusal`].
    pub fn refusal(&self) -> Option<Error> {
        self.stages.queue.refusal()
    }

    /// Answers a request; its outcome comes later, through `reply`.
    pub fn decide(&self, arrival: Arrival, reply: Reply) {
        let ticket = arrival.ticket;
        let bytes = arrival.body.len();
        let patience = arrival.patience;
        let entrant = Entrant {
            ticket,
            kind: RequestKind::Single,
            bytes,
            patience: patience.map(|limit| (limit.saturating_sub(arrival.elapsed), limit)),
        };
        let Admission {
            stop,
            is_encoded_late,
        } = match self.stages.queue.admit(entrant) {
            Ok(admission) => admission,
            Err(error) => return reply(Err(error)),
        };
        let job = Job {
            ticket,
            format: arrival.format,
            body: arrival.body,
            began: before(arrival.elapsed),
            model: self.stages.tenure.current(),
            stop,
            reply,
        };
        if is_encoded_late && bytes <= MAX_UNPARSED_BYTES {
            return self.stages.join_unparsed(job);
        }
        if let Err(job) = self.stages.send(job, |job, stages| stages.begin(job)) {
            self.stages.queue.leave(ticket);
            (job.reply)(Err(Error::Closing));
        }
    }

    /// Starts a batch and returns it; its results are pulled.
    pub fn batch(&self, arrival: BatchArrival) -> Arc<Batch> {
        let (ticket, framing) = (arrival.ticket, arrival.framing);
        let queue = &self.stages.queue;
        let entrant = Entrant {
            ticket,
            kind: RequestKind::Batch,
            bytes: arrival.body.len(),
            patience: None,
        };
        match queue.admit(entrant) {
            Ok(Admission { stop, .. }) => {
                let batch = Arc::new(Batch::new(ticket, framing, before(arrival.elapsed)));
                batch.begin(&self.stages, stop, arrival.body, arrival.max_states);
                batch
            }
            Err(error) => Batch::refused(ticket, framing, error),
        }
    }

    /// Calls `reply` later with the next results of a batch, as soon as they have `min_bytes` or
    /// are the last.
    pub fn pull(&self, batch: &Arc<Batch>, min_bytes: usize, reply: PullReply) {
        batch.pull(&self.stages, min_bytes, reply);
    }

    /// Drops a batch whose caller has gone; a state that is on the model stops at its next run.
    pub fn cancel_batch(&self, batch: &Arc<Batch>) {
        batch.cancel(&self.stages);
    }

    /// Drops a request whose caller has gone; one that is on the model stops at its next run.
    pub fn cancel(&self, ticket: u64) {
        if let Some(work) = self.stages.queue.cancel(ticket) {
            work.reply(Err(Error::Cancelled));
        }
    }

    /// Admits no more requests, lets all admitted ones finish, and ends the threads. Blocks until
    /// then.
    pub fn close(&self) {
        self.stages.queue.close();
        self.stages.queue.wait_until_empty();
        self.join_threads();
    }

    /// Ends everything now: running requests are terminated and waiting ones refused. Blocks until
    /// the threads have ended.
    pub fn shutdown(&self) {
        self.stages.queue.close();
        for model in self.stages.tenure.all() {
            model.terminate();
        }
        for work in self.stages.queue.cancel_all() {
            work.reply(Err(Error::Closing));
        }
        self.join_threads();
    }

    fn join_threads(&self) {
        self.stages.end();
        for thread in self.threads.lock().drain(..) {
            // A thread that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shutdown();
    }
}

fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let builder = std::thread::Builder::new().name(name);
    #[allow(clippy::expect_used)] // a machine that has no thread left cannot serve
    builder.spawn(work).expect("a thread for the engine")
}

/// Returns the moment that lies `elapsed` before now.
fn before(elapsed: Duration) -> Instant {
    let now = Instant::now();
    now.checked_sub(elapsed).unwrap_or(now)
}

#[cfg(test)]
pub(crate) mod rig;
#[cfg(test)]
mod tests;
