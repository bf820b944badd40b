//! ONNX Runtime: the library, its sessions, its execution providers, and what a run gives.
//!
//! Every row is a run of its own, without padding. Rows that do not depend on each other run side by side, each on a
//! session with one thread; a row that stands alone runs on a session with all threads. Both give the same bits.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ort::AsPointer;
use ort::environment::Environment;
use ort::ep::{CUDA, CoreML, DirectML, ExecutionProviderDispatch};
use ort::memory::Allocator;
use ort::session::builder::{GraphOptimizationLevel, PrepackedWeights};
use ort::session::{HasSelectedOutputs, OutputSelector, RunOptions, Session, SessionInputValue};
use ort::value::{DynValue, Tensor, TensorRef};
use parking_lot::Mutex;

use crate::Error;
use crate::layout::Interface;
use crate::queue::Stop;
use crate::weights::{Values, weights};

/// The most intra-op threads that are accepted; ONNX Runtime hangs on absurd numbers.
pub const MAX_THREADS: usize = 256;

/// ONNX Runtime allows one environment per process, for ever, so the first library stays.
static LIBRARY: Mutex<Option<(PathBuf, Environment)>> = Mutex::new(None);

/// The environment of the ONNX Runtime library at `path`, which is loaded on the first call.
///
/// # Errors
/// [`Error::RuntimeNotFound`] and [`Error::RuntimeFailed`]; another path may be tried after both.
fn environment(path: &Path) -> Result<Environment, Error> {
    let failed = |cause: String| Error::RuntimeFailed {
        path: path.to_owned(),
        cause,
    };
    let not_found = || Error::RuntimeNotFound {
        path: path.to_owned(),
    };
    let absolute = path.canonicalize().map_err(|_| not_found())?;
    if !absolute.is_file() {
        return Err(not_found());
    }
    let mut library = LIBRARY.lock();
    if let Some((loaded, environment)) = library.as_ref() {
        return if *loaded == absolute {
            Ok(environment.clone())
        } else {
            let loaded = loaded.display();
            Err(failed(format!("this process already uses {loaded}")))
        };
    }
    turn_telemetry_off();
    return_large_blocks();
    let builder = ort::init_from(&absolute).map_err(|error| failed(cause(&error)))?;
    // The errors of a run reach us as values; the library's own log would print them a second time.
    let silent = Arc::new(|_, _: &str, _: &str, _: &str, _: &str| {});
    let environment = builder
        .with_name("svc")
        .with_telemetry(false)
        .with_logger(silent)
        .build();
    let environment = environment.map_err(|error| failed(cause(&error)))?;
    *library = Some((absolute, environment.clone()));
    Ok(environment)
}

/// The shipped library uploads usage data unless this stands in the process's environment before its own is built;
/// its API call for it does not stop the uploader.
fn turn_telemetry_off() {
    // SAFETY: called once, under the lock of `LIBRARY`, before ONNX Runtime is loaded. Node.js reads and writes its
    // environment through libuv on its main thread only, while that thread is not in this call.
    unsafe { std::env::set_var("ORT_DISABLE_TELEMETRY", "1") };
}

/// Makes freed tensors go back to the system: glibc would otherwise keep blocks of up to 32 MB in its heaps once one of
/// that size was freed, and a state's memory is many such blocks.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn return_large_blocks() {
    const BYTES: i32 = 128 * 1024;
    // SAFETY: sets two thresholds of the allocator, which takes its own locks.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, BYTES);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn return_large_blocks() {}

/// The innermost cause of an error in one line: the outer texts of `ort` hide it.
fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    one_line(&innermost.to_string())
}

/// A message of the library without its source file, its status number and the folders of this machine.
fn one_line(text: &str) -> String {
    let (_, message) = text.rsplit_once(" : FAIL : ").unwrap_or(("", text));
    let words = message
        .split_whitespace()
        .map(|word| match word.rsplit_once('/') {
            Some((folder, name)) if folder.starts_with('/') => name,
            _ => word,
        });
    words.collect::<Vec<_>>().join(" ")
}

/// What the model runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// The processor.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// Apple's accelerators.
    CoreMl,
    /// A GPU under Windows.
    DirectMl,
}

impl Device {
    /// The devices beside the processor, in the order in which `auto` tries them.
    pub const ACCELERATORS: [Self; 3] = [Self::Cuda, Self::CoreMl, Self::DirectMl];

    /// The name in settings and in `/health`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::CoreMl => "coreml",
            Self::DirectMl => "directml",
        }
    }

    /// Whether there can be such a device on this operating system.
    pub fn is_possible(self) -> bool {
        match self {
            Self::Cpu => true,
            Self::Cuda => !cfg!(target_os = "macos"),
            Self::CoreMl => cfg!(target_os = "macos"),
            Self::DirectMl => cfg!(windows),
        }
    }

    /// The execution provider; one that cannot be registered is an error, never a silent fallback.
    fn provider(self) -> Option<ExecutionProviderDispatch> {
        let provider = match self {
            Self::Cpu => return None,
            Self::Cuda => CUDA::default().build(),
            Self::CoreMl => CoreML::default().build(),
            Self::DirectMl => DirectML::default().build(),
        };
        Some(provider.error_on_failure())
    }
}

/// A graph file and how to run it.
pub struct Graph<'a> {
    /// The ONNX Runtime library.
    pub runtime: &'a Path,
    /// The `.onnx` file.
    pub file: &'a Path,
    /// Its tensors.
    pub interface: &'a Interface,
    /// What to run it on.
    pub device: Device,
    /// Intra-op threads, 1 to [`MAX_THREADS`].
    pub threads: usize,
}

impl Graph<'_> {
    /// Whether rows run side by side, each on a session of its own. An accelerator does its own scheduling.
    fn has_many_sessions(&self) -> bool {
        self.device == Device::Cpu && self.threads > 1
    }
}

/// One tensor that a run is given.
pub enum Input<'a> {
    /// int64, `[n]` or `[1, n]`.
    Ids {
        /// The values.
        values: Cow<'a, [i64]>,
        /// Whether there is a batch axis in front.
        batched: bool,
    },
    /// bool, `[1, n]`.
    Flags {
        /// The values.
        values: Vec<bool>,
    },
}

impl<'a> Input<'a> {
    /// An int64 tensor of shape `[n]`.
    pub fn ids(values: impl Into<Cow<'a, [i64]>>) -> Self {
        Self::Ids {
            values: values.into(),
            batched: false,
        }
    }

    /// An int64 tensor of shape `[1, n]`.
    pub fn row(values: impl Into<Cow<'a, [i64]>>) -> Self {
        Self::Ids {
            values: values.into(),
            batched: true,
        }
    }

    /// A bool tensor of shape `[1, n]`.
    pub fn flags(values: Vec<bool>) -> Self {
        Self::Flags { values }
    }

    fn tensor(&self) -> ort::Result<SessionInputValue<'_>> {
        Ok(match self {
            Self::Ids {
                values,
                batched: true,
            } => TensorRef::from_array_view(([1, values.len()], values.as_ref()))?.into(),
            Self::Ids { values, .. } => {
                TensorRef::from_array_view(([values.len()], values.as_ref()))?.into()
            }
            Self::Flags { values } => {
                TensorRef::from_array_view(([1, values.len()], values.as_slice()))?.into()
            }
        })
    }
}

/// What is kept of a state: each layer's keys and values, `[1, heads, tokens, head_dim]`, in the order of
/// [`Interface::kept`].
pub struct Memory {
    values: Vec<DynValue>,
    bytes: usize,
}

impl Memory {
    /// Room for the keys and values of `tokens` tokens, outside the arenas of the sessions: it goes back to the
    /// system when it is dropped.
    fn with_room(interface: &Interface, tokens: usize) -> ort::Result<Self> {
        let [heads, head_dim] = interface.kept_shape;
        let value = || Tensor::<f32>::new(&Allocator::default(), [1, heads, tokens, head_dim]);
        let values = interface.kept.iter().map(|_| Ok(value()?.into_dyn()));
        Ok(Self {
            values: values.collect::<ort::Result<_>>()?,
            bytes: interface.kept.len() * heads * tokens * head_dim * size_of::<f32>(),
        })
    }

    /// The memories of a state's chunks as one, in order; `None` where there are none. A single one is handed on as
    /// it is.
    ///
    /// # Errors
    /// [`Error::ModelFailed`] when the chunks do not have one shape.
    pub fn join(chunks: &[Arc<Self>]) -> Result<Option<Arc<Self>>, Error> {
        if chunks.len() <= 1 {
            return Ok(chunks.first().cloned());
        }
        let count = chunks[0].values.len();
        let values = (0..count).map(|index| {
            let parts: Vec<&DynValue> = chunks.iter().map(|chunk| &chunk.values[index]).collect();
            concatenate(&parts)
        });
        let values = values.collect::<ort::Result<_>>().map_err(run_failed)?;
        let bytes = chunks.iter().map(|chunk| chunk.bytes).sum();
        Ok(Some(Arc::new(Self { values, bytes })))
    }

    /// The size of the keys and values.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Tensors of shape `[1, heads, tokens, head_dim]` joined along `tokens`.
fn concatenate(parts: &[&DynValue]) -> ort::Result<DynValue> {
    let mut views = Vec::with_capacity(parts.len());
    for part in parts {
        let (shape, data) = part.try_extract_tensor::<f32>()?;
        match shape[..] {
            [1, heads, tokens, head_dim] => {
                views.push((heads as usize, tokens as usize, head_dim as usize, data));
            }
            _ => return Err(ort::Error::new("a kept tensor must have four axes")),
        }
    }
    let (heads, _, head_dim, _) = views[0];
    let total = views.iter().map(|(_, tokens, _, _)| tokens).sum::<usize>();
    let mut joined = Tensor::<f32>::new(&Allocator::default(), [1, heads, total, head_dim])?;
    let (_, out) = joined.extract_tensor_mut();
    let mut at = 0;
    for head in 0..heads {
        for (_, tokens, _, data) in &views {
            let length = tokens * head_dim;
            out[at..at + length].copy_from_slice(&data[head * length..(head + 1) * length]);
            at += length;
        }
    }
    Ok(joined.into_dyn())
}

/// What a question's run gives.
pub struct Outputs {
    /// One per marker.
    pub logits: Vec<f32>,
    /// The outputs of the action head, where the graph has one.
    pub action: Option<[f32; 2]>,
}

/// A session, used by one thread at a time.
pub struct Lane {
    session: Session,
    interface: Arc<Interface>,
    answer: RunOptions<HasSelectedOutputs>,
    /// As `answer`, and the session's arena gives back what it does not need any more.
    answer_and_shrink: RunOptions<HasSelectedOutputs>,
    has_action: bool,
    empty: Arc<Memory>,
    running: Arc<Running>,
}

/// What one session needs beside the graph's own settings.
struct LaneSettings<'a> {
    threads: usize,
    shared: &'a SharedWeights,
    interface: &'a Arc<Interface>,
    empty: &'a Arc<Memory>,
    running: &'a Arc<Running>,
}

impl Lane {
    fn open(
        environment: &Environment,
        graph: &Graph<'_>,
        settings: &LaneSettings<'_>,
    ) -> Result<Self, Error> {
        let bad = |problem: String| Error::BadModel {
            file: graph.file.to_owned(),
            problem,
        };
        let session =
            open_session(environment, graph, settings).map_err(|error| bad(cause(&error)))?;
        let interface = settings.interface;
        let has_action = check_interface(&session, interface).map_err(bad)?;
        let answer =
            |shrink| answer_options(has_action, shrink).map_err(|error| bad(cause(&error)));
        Ok(Self {
            session,
            interface: Arc::clone(interface),
            answer: answer(false)?,
            answer_and_shrink: answer(true)?,
            has_action,
            empty: Arc::clone(settings.empty),
            running: Arc::clone(settings.running),
        })
    }

    /// Reads a row of a state, `tokens` long.
    ///
    /// # Errors
    /// [`Error::ModelFailed`].
    pub fn read(
        &mut self,
        inputs: Vec<(&'static str, Input<'_>)>,
        tokens: usize,
    ) -> Result<Memory, Error> {
        self.try_read(&inputs, tokens).map_err(run_failed)
    }

    fn try_read(
        &mut self,
        inputs: &[(&'static str, Input<'_>)],
        tokens: usize,
    ) -> ort::Result<Memory> {
        let mut memory = Memory::with_room(&self.interface, tokens)?;
        let mut selector = OutputSelector::no_default();
        for ((_, present), value) in self.interface.kept.iter().zip(memory.values.drain(..)) {
            selector = selector.with(present).preallocate(present, value);
        }
        let options = RunOptions::new()?.with_outputs(selector);
        let _running = self.running.start(&options);
        let values = tensors(inputs, &self.interface, &self.empty)?;
        let mut outputs = self.session.run_with_options(values, &options)?;
        for (_, present) in &self.interface.kept {
            let value = outputs.remove(present);
            memory
                .values
                .push(value.ok_or_else(|| ort::Error::new("the graph gave no memory"))?);
        }
        Ok(memory)
    }

    /// Runs a row of a question on what is kept of its state.
    ///
    /// # Errors
    /// [`Error::ModelFailed`].
    pub fn answer(
        &mut self,
        inputs: Vec<(&'static str, Input<'_>)>,
        memory: Option<&Memory>,
    ) -> Result<Outputs, Error> {
        let memory = memory.unwrap_or(&self.empty);
        let values = tensors(&inputs, &self.interface, memory).map_err(run_failed)?;
        let options = if memory.bytes() > LARGE_MEMORY_BYTES {
            &self.answer_and_shrink
        } else {
            &self.answer
        };
        let _running = self.running.start(options);
        let outputs = self
            .session
            .run_with_options(values, options)
            .map_err(run_failed)?;
        let (_, logits) = outputs["logits"]
            .try_extract_tensor::<f32>()
            .map_err(run_failed)?;
        let action = if self.has_action {
            let (_, values) = outputs["act_logits"]
                .try_extract_tensor::<f32>()
                .map_err(run_failed)?;
            values.try_into().ok()
        } else {
            None
        };
        Ok(Outputs {
            logits: logits.to_vec(),
            action,
        })
    }
}

/// A run on more than this leaves nothing in its session's arena: such states are rare, and what they take is much.
const LARGE_MEMORY_BYTES: usize = 24 << 20;

/// Asks for what a question wants to know, and nothing else.
fn answer_options(has_action: bool, shrink: bool) -> ort::Result<RunOptions<HasSelectedOutputs>> {
    let mut outputs = OutputSelector::no_default().with("logits");
    if has_action {
        outputs = outputs.with("act_logits");
    }
    let mut options = RunOptions::new()?;
    if shrink {
        options.set("memory.enable_memory_arena_shrinkage", "cpu:0")?;
    }
    Ok(options.with_outputs(outputs))
}

type NamedInputs<'v> = Vec<(Cow<'v, str>, SessionInputValue<'v>)>;

fn tensors<'v>(
    inputs: &'v [(&'static str, Input<'_>)],
    interface: &'v Interface,
    memory: &'v Memory,
) -> ort::Result<NamedInputs<'v>> {
    let mut values = Vec::with_capacity(inputs.len() + memory.values.len());
    for (name, input) in inputs {
        values.push((Cow::Borrowed(*name), input.tensor()?));
    }
    for ((past, _), value) in interface.kept.iter().zip(&memory.values) {
        values.push((Cow::Borrowed(past.as_str()), value.into()));
    }
    Ok(values)
}

fn run_failed(error: ort::Error) -> Error {
    Error::ModelFailed {
        cause: cause(&error),
    }
}

fn open_session(
    environment: &Environment,
    graph: &Graph<'_>,
    settings: &LaneSettings<'_>,
) -> ort::Result<Session> {
    let mut builder = Session::builder(environment)?
        .with_optimization_level(GraphOptimizationLevel::All)?
        .with_intra_threads(settings.threads)?
        // Shapes differ from run to run: a remembered pattern would only hold memory.
        .with_memory_pattern(false)?
        // Spinning is worth its while inside a run; between runs it would take the cores from everything else.
        .with_config_entry("session.force_spinning_stop", "1")?
        .with_prepacked_weights(&settings.shared.prepacked)?;
    for (name, value) in &settings.shared.values {
        builder = builder.with_initializer(name, Arc::clone(value))?;
    }
    if let Some(provider) = graph.device.provider() {
        builder = builder.with_execution_providers([provider])?;
    }
    builder.commit_from_file(graph.file)
}

/// Checks that the graph has the layout's tensors; tells whether it has an action head.
fn check_interface(session: &Session, interface: &Interface) -> Result<bool, String> {
    let inputs: Vec<&str> = session.inputs().iter().map(|input| input.name()).collect();
    let outputs: Vec<&str> = session
        .outputs()
        .iter()
        .map(|output| output.name())
        .collect();
    let pasts = interface.kept.iter().map(|(past, _)| past.as_str());
    let wanted: Vec<&str> = interface
        .inputs
        .iter()
        .map(Cow::as_ref)
        .chain(pasts)
        .collect();
    if let Some(missing) = wanted.iter().find(|name| !inputs.contains(name)) {
        return Err(format!("the graph has no input \"{missing}\""));
    }
    if let Some(unknown) = inputs.iter().find(|name| !wanted.contains(name)) {
        return Err(format!(
            "the graph wants an input \"{unknown}\" that its layout does not give"
        ));
    }
    let presents = interface.kept.iter().map(|(_, present)| present.as_str());
    if let Some(missing) = std::iter::once("logits")
        .chain(presents)
        .find(|name| !outputs.contains(name))
    {
        return Err(format!("the graph has no output \"{missing}\""));
    }
    let has_action = outputs.contains(&"act_logits");
    if !has_action && !interface.action_is_optional {
        return Err("the graph has no output \"act_logits\"".into());
    }
    Ok(has_action)
}

/// The weights of a graph, which all its sessions use: as the file has them, and as the kernels want them.
struct SharedWeights {
    values: Vec<(String, Arc<DynValue>)>,
    prepacked: PrepackedWeights,
}

impl SharedWeights {
    /// The weights of a graph that has several sessions; a lone session does best with its own.
    fn read(graph: &Graph<'_>) -> ort::Result<Self> {
        let file = if graph.has_many_sessions() {
            std::fs::read(graph.file).unwrap_or_default()
        } else {
            Vec::new()
        };
        let weights = weights(&file.into()).into_iter().map(|weight| {
            let (name, shape) = (weight.name, weight.shape);
            let value = match weight.values {
                Values::F32(values) => Tensor::from_array((shape, values))?.into_dyn(),
                Values::I8(values) => Tensor::from_array((shape, values))?.into_dyn(),
                Values::U8(values) => Tensor::from_array((shape, values))?.into_dyn(),
            };
            Ok((name, Arc::new(value)))
        });
        Ok(Self {
            values: weights.collect::<ort::Result<_>>()?,
            prepacked: PrepackedWeights::new(),
        })
    }
}

/// The runs that are under way, so that another thread can stop them.
#[derive(Default)]
struct Running {
    state: Mutex<RunningState>,
}

#[derive(Default)]
struct RunningState {
    terminated: bool,
    options: Vec<RunHandle>,
}

/// The options of a run that is under way.
#[derive(Clone, Copy, PartialEq, Eq)]
struct RunHandle(*const ort::sys::OrtRunOptions);

// SAFETY: all that is done through the pointer is `RunOptionsSetTerminate`, which is made to be called from another
// thread than the run's.
unsafe impl Send for RunHandle {}

impl RunHandle {
    fn terminate(self) {
        // SAFETY: a handle is in the list only while its options live, see `RunGuard`. The status would only say that
        // the pointer is null.
        let _ = unsafe { (ort::api().RunOptionsSetTerminate)(self.0.cast_mut()) };
    }
}

/// Takes a run off the list when it is over. It borrows the options, so they outlive it.
struct RunGuard<'r> {
    running: &'r Running,
    handle: RunHandle,
}

impl Running {
    fn start<'r>(&'r self, options: &'r RunOptions<HasSelectedOutputs>) -> RunGuard<'r> {
        let handle = RunHandle(options.ptr());
        let mut state = self.state.lock();
        if state.terminated {
            handle.terminate();
        }
        state.options.push(handle);
        RunGuard {
            running: self,
            handle,
        }
    }

    fn terminate(&self) {
        let mut state = self.state.lock();
        state.terminated = true;
        for handle in &state.options {
            handle.terminate();
        }
    }

    fn is_terminated(&self) -> bool {
        self.state.lock().terminated
    }
}

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.running.state.lock();
        state.options.retain(|handle| *handle != self.handle);
    }
}

/// The sessions of one graph: one with all threads, and for each thread one of its own.
pub struct Sessions {
    all_threads: Mutex<Lane>,
    one_thread: Vec<Mutex<Lane>>,
    /// Runs rows beside the calling thread.
    beside: Option<rayon::ThreadPool>,
    running: Arc<Running>,
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
        let interface = Arc::new(graph.interface.clone());
        let empty = Memory::with_room(&interface, 0).map_err(run_failed)?;
        let empty = Arc::new(empty);
        let shared = SharedWeights::read(graph).map_err(run_failed)?;
        let running = Arc::new(Running::default());
        let open = |threads| {
            let settings = LaneSettings {
                threads,
                shared: &shared,
                interface: &interface,
                empty: &empty,
                running: &running,
            };
            Lane::open(&environment, graph, &settings)
        };
        let side_by_side = graph.has_many_sessions();
        let all_threads = open(graph.threads)?;
        let one_thread = (0..if side_by_side { graph.threads } else { 0 })
            .map(|_| open(1))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            beside: side_by_side
                .then(|| beside(graph.threads - 1))
                .transpose()?,
            all_threads: Mutex::new(all_threads),
            one_thread: one_thread.into_iter().map(Mutex::new).collect(),
            running,
        })
    }

    /// Runs `count` rows, a lone one on all threads, several side by side; results in the order of the index.
    ///
    /// # Errors
    /// The first error of a run, or what `stop` says between two.
    pub fn run_all<T: Send>(
        &self,
        count: usize,
        stop: &Stop,
        run: impl Fn(&mut Lane, usize) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let run = |lane: &mut Lane, index| {
            stop.check()?;
            let result = run(lane, index);
            // A run that was terminated fails with words of the library; what happened is that the engine closes.
            if result.is_err() && self.running.is_terminated() {
                return Err(Error::Closing);
            }
            result
        };
        match &self.beside {
            Some(beside) if count > 1 => self.run_side_by_side(beside, count, run),
            _ => {
                let mut lane = self.all_threads.lock();
                (0..count).map(|index| run(&mut lane, index)).collect()
            }
        }
    }

    fn run_side_by_side<T: Send>(
        &self,
        beside: &rayon::ThreadPool,
        count: usize,
        run: impl Fn(&mut Lane, usize) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<Option<T>>> = Mutex::new((0..count).map(|_| None).collect());
        let failed: Mutex<Option<Error>> = Mutex::new(None);
        let work = |lane: &Mutex<Lane>| {
            let mut lane = lane.lock();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count || failed.lock().is_some() {
                    return;
                }
                match run(&mut lane, index) {
                    Ok(result) => done.lock()[index] = Some(result),
                    Err(error) => drop(failed.lock().get_or_insert(error)),
                }
            }
        };
        beside.in_place_scope(|scope| {
            for lane in self.one_thread.iter().take(count).skip(1) {
                scope.spawn(|_| work(lane));
            }
            work(&self.one_thread[0]);
        });
        match failed.into_inner() {
            Some(error) => Err(error),
            None => Ok(done.into_inner().into_iter().flatten().collect()),
        }
    }

    /// Stops every run, now and from now on; for the end of the process.
    pub fn terminate(&self) {
        self.running.terminate();
    }
}

fn beside(threads: usize) -> Result<rayon::ThreadPool, Error> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("svc-run-{index}"))
        .build();
    pool.map_err(|error| Error::ModelFailed {
        cause: error.to_string(),
    })
}
