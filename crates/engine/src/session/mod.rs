//! ONNX Runtime: the library, its sessions, its execution providers, and the outputs of a run.
//!
//! Every row is a run of its own, without padding. Rows that do not depend on each other run side
//! by side, each on a session with one thread; a single row runs on a session with as many threads
//! as its request has cores. All give the same bits.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use ort::environment::Environment;
use parking_lot::Mutex;
use prost::bytes::Bytes;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use self::arena::Arena;
use self::blocks::Blocks;
use self::exactness::{GraphSource, Prepared};
use self::failure::run_failed;
use self::lane::{LaneGraph, LanePlan};
use self::lanes::{Lanes, Size, sizes};
use self::later::Later;
use self::prefill::{PrefillSession, PrefillSessions};
use self::running::Running;
use self::runtime::environment;
use self::shared_weights::SharedWeights;
use crate::Error;
use crate::onnx::norms::with_vectorized_norms;
use crate::onnx::weights::size;
use crate::onnx::{joined, presents};
use crate::stop::Stop;

pub mod allocator;
mod arena;
mod blocks;
mod cores;
mod device;
mod exactness;
mod failure;
mod floats;
mod interface;
mod kv_cache;
mod lane;
mod lanes;
mod later;
mod prefill;
mod running;
mod runtime;
mod scratch;
mod shared_weights;
mod tensors;
mod widths;

pub use self::device::Device;
pub use self::exactness::Exactness;
pub use self::interface::{Interface, Results};
pub use self::kv_cache::{KvAssembly, KvCache, PackedKvCache};
pub use self::lane::{Input, Lane, Outputs};
pub use self::tensors::{TensorInfo, Tensors};
pub use self::widths::RowSize;
pub use crate::onnx::KvPair;

/// The most intra-op threads that are accepted; ONNX Runtime hangs on absurd numbers.
pub const MAX_THREADS: usize = 256;

/// The most sessions that are opened at the same time.
const MAX_OPENING: usize = 4;

/// The size of the weights, in bytes, from which on the first answer waits for one session only.
const LARGE_BYTES: usize = 64 << 20;

/// A graph file and how to run it.
pub struct Graph<'a> {
    /// The ONNX Runtime library.
    pub runtime: &'a Path,
    /// The `.onnx` file.
    pub file: &'a Path,
    /// The graph that reads what the first one gives, where a model has two.
    pub second: &'a Second<'a>,
    /// The tensors that the graph must have, together with a head.
    pub interface: &'a Interface,
    /// The device to run the graph on.
    pub device: Device,
    /// The number of intra-op threads, 1 to [`MAX_THREADS`].
    pub threads: usize,
    /// The most requests that may run at the same time, at least 1.
    pub parallel: usize,
    /// Whether floats may round otherwise than in the graph as it is, where that is faster.
    pub may_round_otherwise: bool,
}

/// The second graph of a model.
#[derive(Debug, Clone, Default)]
pub enum Second<'a> {
    /// The model has one graph.
    #[default]
    None,
    /// The file of a head that reads the hidden states of the first graph; the two are joined.
    Head(PathBuf),
    /// A graph that scores what the first one made of several texts.
    Scorer {
        /// The `.onnx` file.
        file: PathBuf,
        /// The tensors that it must have.
        interface: &'a Interface,
    },
}

impl Second<'_> {
    /// Returns the graph that `file` and its head are together; `None` where there is no head.
    ///
    /// # Errors
    /// [`Error::BadModel`] where the two cannot be joined.
    pub(crate) fn joined(&self, file: &Path) -> Result<Option<Bytes>, Error> {
        let Self::Head(head) = self else {
            return Ok(None);
        };
        let joined = joined::joined(&read(file), &read(head));
        joined.map(Some).map_err(|problem| Error::BadModel {
            file: head.clone(),
            problem,
        })
    }
}

/// Returns the bytes of a file, or none where it cannot be read, which the library reports.
fn read(file: &Path) -> Bytes {
    std::fs::read(file).unwrap_or_default().into()
}

impl Graph<'_> {
    /// Whether rows run side by side, each on a session of its own. An accelerator does its own scheduling.
    fn has_many_sessions(&self) -> bool {
        self.device == Device::Cpu && self.threads > 1
    }

    /// Whether states are prefilled on the processor, so that a part of the graph may be enough for
    /// that.
    fn may_prefill_in_part(&self) -> bool {
        self.device == Device::Cpu && !self.interface.kv_pairs.is_empty()
    }

    /// Whether floats may round otherwise than in the graph as it is.
    fn rounds_otherwise(&self) -> bool {
        self.device == Device::Cpu && self.may_round_otherwise
    }

    /// Whether several sessions use the weights.
    fn shares_weights(&self) -> bool {
        self.has_many_sessions() || self.may_prefill_in_part()
    }

    /// Whether the bytes of the graph are needed here, and not only in the library.
    fn is_read(&self) -> bool {
        self.shares_weights() || self.rounds_otherwise()
    }

    /// Returns a graph as its sessions open it, and its bytes, empty where they are not needed.
    /// With `changes` its weights are shared, and its norms faster.
    fn for_lanes(
        &self,
        file: &Path,
        source: GraphSource,
        changes: bool,
    ) -> Result<(LaneGraph, Bytes), Error> {
        let (bytes, other) = match source {
            GraphSource::Other(other) => (other.clone(), Some(other)),
            GraphSource::File(bytes) if self.is_read() => {
                (bytes.unwrap_or_else(|| read(file)), None)
            }
            GraphSource::File(_) => (Bytes::new(), None),
        };
        let graph = |weights, other| LaneGraph {
            file: file.to_owned(),
            weights,
            other,
        };
        // A single session does best with its own weights.
        let shared = if changes && self.shares_weights() {
            let folder = file.parent().unwrap_or(Path::new(""));
            SharedWeights::read(&bytes, folder).map_err(run_failed)?
        } else {
            None
        };
        let (weights, other, bytes) = match shared {
            Some((weights, rest)) => (weights, Some(rest.clone()), rest),
            None => (SharedWeights::default(), other, bytes),
        };
        let faster = if changes && self.rounds_otherwise() && size(&bytes) >= LARGE_BYTES {
            with_vectorized_norms(&bytes)
        } else {
            None
        };
        Ok(match faster {
            Some(faster) => (graph(weights, Some(faster.clone())), faster),
            None => (graph(weights, other), bytes),
        })
    }

    /// Returns the graphs to open, so that their products are exact.
    fn prepared(&self, environment: &Environment, joined: Option<&Bytes>) -> Both {
        let main = exactness::prepare(environment, self.file, || match joined {
            Some(joined) => joined.clone(),
            None => read(self.file),
        });
        let scorer = match &self.second {
            Second::Scorer { file, .. } => {
                Some(exactness::prepare(environment, file, || read(file)))
            }
            Second::None | Second::Head(_) => None,
        };
        Both { main, scorer }
    }

    /// Returns the opened sessions of these sizes, with the threads that run rows beside each other.
    fn lanes(&self, sizes: &[Size], lanes: Vec<Lane>) -> Result<Lanes, Error> {
        if !self.has_many_sessions() {
            return Ok(Lanes::single(lanes));
        }
        let beside = pool("svc-run", self.threads - 1)?;
        Ok(Lanes::several(sizes, lanes, self.parallel, beside))
    }

    /// Returns the sessions of the whole graph, by their number of threads.
    fn sizes(&self) -> Vec<Size> {
        if self.has_many_sessions() {
            return sizes(self.threads, self.parallel);
        }
        let all = Size {
            threads: self.threads,
            sessions: 1,
        };
        vec![all]
    }
}

/// The graphs of a model, as its sessions open them.
#[derive(Clone)]
struct Both {
    main: Prepared,
    scorer: Option<Prepared>,
}

impl Both {
    /// Returns the graphs as the files have them.
    fn as_they_are(graph: &Graph<'_>, exactness: Exactness) -> Self {
        let file = |exactness| Prepared {
            exactness,
            graph: GraphSource::File(None),
        };
        let has_scorer = matches!(graph.second, Second::Scorer { .. });
        Self {
            main: file(exactness),
            scorer: has_scorer.then(|| file(Exactness::Exact)),
        }
    }

    fn is_mended(&self) -> bool {
        let mut both = [Some(&self.main), self.scorer.as_ref()].into_iter();
        both.any(|one| one.is_some_and(|one| matches!(one.graph, GraphSource::Other(_))))
    }

    /// Returns the graphs, with the joined one in place of the first file.
    fn with_joined(mut self, joined: Option<&Bytes>) -> Self {
        if let (GraphSource::File(_), Some(joined)) = (&self.main.graph, joined) {
            self.main.graph = GraphSource::Other(joined.clone());
        }
        self
    }
}

/// The sessions of a model's graphs.
pub struct Sessions {
    lanes: Arc<Lanes>,
    arena: Mutex<Arena>,
    interface: Arc<Interface>,
    blocks: Arc<Blocks>,
    running: Arc<Running>,
    /// The session that prefills beside the session with all threads.
    prefill: Arc<PrefillSession>,
    exactness: Exactness,
    /// The sessions that are opened later, until that begins.
    later: Option<Later>,
    opening: Mutex<Option<JoinHandle<()>>>,
}

impl Sessions {
    /// Opens the sessions of a graph.
    ///
    /// # Errors
    /// [`Error::RuntimeNotFound`], [`Error::RuntimeFailed`], [`Error::BadThreads`], [`Error::BadModel`].
    pub fn open(graph: &Graph<'_>) -> Result<Self, Error> {
        if !(1..=MAX_THREADS).contains(&graph.threads) {
            return Err(Error::BadThreads {
                limit: MAX_THREADS,
                actual: graph.threads,
            });
        }
        let environment = environment(graph.runtime)?;
        let joined = graph.second.joined(graph.file)?;
        let joined = joined.as_ref();
        let prepared = graph.prepared(&environment, joined);
        let is_mended = prepared.is_mended();
        match Self::open_prepared(graph, &environment, prepared.with_joined(joined)) {
            Err(error) if is_mended => {
                let reason = format!("with unsigned weights, {error}");
                let exactness = exactness::cannot_be(&environment, reason);
                let as_they_are = Both::as_they_are(graph, exactness).with_joined(joined);
                Self::open_prepared(graph, &environment, as_they_are)
            }
            opened => opened,
        }
    }

    /// Opens the sessions, with weights that they share and with faster norms. Where the library does
    /// not take these, each session has the graph as it is.
    fn open_prepared(
        graph: &Graph<'_>,
        environment: &Environment,
        prepared: Both,
    ) -> Result<Self, Error> {
        let open =
            |prepared, changes| Self::open_all(graph, environment.clone(), prepared, changes);
        match open(prepared.clone(), true) {
            Err(_) if graph.is_read() => open(prepared, false),
            opened => opened,
        }
    }

    fn open_all(
        graph: &Graph<'_>,
        environment: Environment,
        prepared: Both,
        changes: bool,
    ) -> Result<Self, Error> {
        let interface = Arc::new(graph.interface.clone());
        let blocks = Arc::new(Blocks::new(graph.threads));
        let empty = KvCache::with_room(&interface, 0, &blocks).map_err(run_failed)?;
        let (main, bytes) = graph.for_lanes(graph.file, prepared.main.graph, changes)?;
        let mut exactness = prepared.main.exactness;
        let scorer = match (graph.second, prepared.scorer) {
            (Second::Scorer { file, interface }, Some(prepared)) => {
                let interface: &Interface = interface;
                exactness = exactness.and(prepared.exactness);
                let (scorer, _) = graph.for_lanes(file, prepared.graph, changes)?;
                Some((scorer, interface.clone()))
            }
            _ => None,
        };
        let plan = LanePlan {
            environment,
            device: graph.device,
            main,
            scorer,
            has_scratch: graph.device == Device::Cpu
                && presents::are_unread(&bytes, &interface.kv_pairs),
            empty: Arc::new(empty),
            interface: Arc::clone(&interface),
            blocks: Arc::clone(&blocks),
            running: Arc::default(),
        };
        let running = Arc::clone(&plan.running);
        let sizes = graph.sizes();
        let all = prefill_sessions(&sizes);
        let at_first = match plan.bytes() {
            LARGE_BYTES.. => 1,
            _ => all.len(),
        };
        let (first, others) = all.split_at(at_first);
        let lanes = open_lanes(graph.threads, first, |threads, prefill| {
            plan.open(threads, prefill)
        })?;
        let arena = lanes.first().ok_or(Error::Panicked)?.arena();
        let arena = Mutex::new(arena.map_err(run_failed)?);
        let lanes = Arc::new(graph.lanes(&sizes, lanes)?);
        let later = Later {
            lanes: Arc::clone(&lanes),
            others: others.to_vec(),
            prefills: graph.may_prefill_in_part().then(|| (bytes, all.clone())),
            plan,
        };
        Ok(Self {
            lanes,
            arena,
            prefill: Arc::clone(&all[0].0),
            exactness,
            later: Some(later),
            interface,
            blocks,
            running,
            opening: Mutex::default(),
        })
    }

    /// Whether the graph's 8-bit products are exact on this processor.
    pub fn exactness(&self) -> &Exactness {
        &self.exactness
    }

    /// Begins to open the sessions that the first answer need not wait for: the others of a large
    /// graph, and those that prefill with only the part of the graph that this needs.
    pub fn open_others(&mut self) {
        if let Some(later) = self.later.take() {
            *self.opening.lock() = later.carry_out();
        }
    }

    /// Whether the part of the graph that makes keys and values prefills, instead of the whole
    /// graph. This is known once a state was prefilled after the part's session was opened.
    pub fn prefill_in_part(&self) -> bool {
        self.prefill.agrees()
    }

    /// Whether the sessions hold more memory than they should while nothing runs.
    pub fn hold_much(&self) -> bool {
        self.arena.lock().holds_much()
    }

    /// Runs `count` rows, the first of which is of the kind `size`: a single one on a session with as
    /// many threads as its request has cores, several side by side. Returns the results in the order
    /// of the index.
    ///
    /// # Errors
    /// The first error of a run, or the error of `stop` between two runs.
    pub fn run_all<T: Send>(
        &self,
        (count, size): (usize, RowSize),
        stop: &Stop,
        run: impl Fn(&mut Lane, usize) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        self.lanes.run_all((count, size), stop, |lane, index| {
            stop.check()?;
            let result = run(lane, index);
            // A terminated run fails with a message of the library; the real cause is that the
            // engine is closing.
            if result.is_err() && self.running.is_terminated() {
                return Err(Error::Closing);
            }
            result
        })
    }

    /// Returns room for the KV cache of a state whose chunks have these numbers of tokens.
    ///
    /// # Errors
    /// [`Error::ModelFailed`] when the library cannot make a tensor.
    pub fn assembly(&self, chunks: impl IntoIterator<Item = usize>) -> Result<KvAssembly, Error> {
        KvAssembly::with_room(&self.interface, chunks, &self.blocks).map_err(run_failed)
    }

    /// Returns the most rows that run side by side.
    pub fn side_by_side(&self) -> usize {
        self.lanes.side_by_side()
    }

    /// Returns the most requests that may run at the same time.
    pub fn parallel(&self) -> usize {
        self.lanes.parallel()
    }

    /// Stops every run, now and in the future, and waits until no session is being opened; for the
    /// end of the process.
    pub fn terminate(&self) {
        self.running.terminate();
        if let Some(opening) = self.opening.lock().take() {
            // A panic of that thread is no reason to panic here.
            let _ = opening.join();
        }
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.terminate();
    }
}

/// Returns a session for the prefill beside each session of the whole graph, with the same number of
/// threads.
fn prefill_sessions(sizes: &[Size]) -> PrefillSessions {
    let threads = sizes
        .iter()
        .flat_map(|size| std::iter::repeat_n(size.threads, size.sessions));
    threads.map(|threads| (Arc::default(), threads)).collect()
}

/// Opens sessions of the whole graph, each with the session that prefills beside it.
fn open_lanes(
    threads: usize,
    prefills: &[(Arc<PrefillSession>, usize)],
    open: impl Fn(usize, Arc<PrefillSession>) -> Result<Lane, Error> + Sync,
) -> Result<Vec<Lane>, Error> {
    // Each session takes memory while it is opened, so only a few are opened at once.
    let opening = pool("svc-open", threads.min(MAX_OPENING))?;
    let lanes = opening.install(|| {
        let lanes = prefills.par_iter();
        let lanes = lanes.map(|(prefill, threads)| open(*threads, Arc::clone(prefill)));
        lanes.collect::<Result<Vec<Lane>, Error>>()
    });
    opening.broadcast(|_| allocator::give_back_end());
    lanes
}

fn pool(name: &'static str, threads: usize) -> Result<rayon::ThreadPool, Error> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(move |index| format!("{name}-{index}"))
        .build();
    pool.map_err(|error| Error::ModelFailed {
        cause: error.to_string(),
    })
}
