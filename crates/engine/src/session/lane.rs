//! One session, with the inputs and outputs of its runs.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use half::f16;
use ort::environment::Environment;
use ort::session::builder::SessionBuilder;
use ort::session::{HasSelectedOutputs, OutputSelector, RunOptions, Session, SessionInputValue};
use ort::value::{DynValue, Shape, Tensor, TensorElementType, TensorRef, ValueType};
use prost::bytes::Bytes;

use super::arena::Arena;
use super::blocks::Blocks;
use super::device::Device;
use super::failure::{cause, run_failed};
use super::interface::Interface;
use super::kv_cache::KvCache;
use super::prefill::{PrefillRun, PrefillSession};
use super::running::Running;
use super::scratch::Scratch;
use super::shared_weights::SharedWeights;
use super::tensors::Tensors;
use crate::Error;
use crate::onnx::beside::followed;

/// One input tensor of a run.
#[derive(Debug)]
pub enum Input<'a> {
    /// A tensor of int64, `[n]` or `[1, n]`.
    Ids {
        /// The values.
        values: Cow<'a, [i64]>,
        /// Whether there is a batch axis in front.
        has_batch_axis: bool,
    },
    /// A tensor of bool, `[1, n]`.
    Flags {
        /// The values.
        values: Vec<bool>,
    },
    /// A tensor of int64, `[rows, columns]`.
    Table {
        /// The values, row by row.
        values: Vec<i64>,
        /// The number of rows.
        rows: usize,
    },
    /// A tensor of float32.
    Floats {
        /// The values.
        values: Cow<'a, [f32]>,
        /// The dimensions.
        shape: Vec<usize>,
    },
}

impl<'a> Input<'a> {
    /// Returns an int64 tensor of shape `[n]`.
    pub fn ids(values: impl Into<Cow<'a, [i64]>>) -> Self {
        Self::Ids {
            values: values.into(),
            has_batch_axis: false,
        }
    }

    /// Returns an int64 tensor of shape `[1, n]`.
    pub fn row(values: impl Into<Cow<'a, [i64]>>) -> Self {
        Self::Ids {
            values: values.into(),
            has_batch_axis: true,
        }
    }

    /// Returns a bool tensor of shape `[1, n]`.
    pub fn flags(values: Vec<bool>) -> Self {
        Self::Flags { values }
    }

    /// Returns the tensor, its floats in 16 bits with `in_half`.
    fn tensor(&self, in_half: bool) -> ort::Result<SessionInputValue<'_>> {
        Ok(match self {
            Self::Ids {
                values,
                has_batch_axis: true,
            } => TensorRef::from_array_view(([1, values.len()], values.as_ref()))?.into(),
            Self::Ids { values, .. } => {
                TensorRef::from_array_view(([values.len()], values.as_ref()))?.into()
            }
            Self::Flags { values } => {
                TensorRef::from_array_view(([1, values.len()], values.as_slice()))?.into()
            }
            Self::Table { values, rows } => {
                let columns = values.len() / (*rows).max(1);
                TensorRef::from_array_view(([*rows, columns], values.as_slice()))?.into()
            }
            Self::Floats { values, shape } if in_half => {
                let values: Vec<f16> = values.iter().copied().map(f16::from_f32).collect();
                Tensor::from_array((shape.as_slice(), values))?.into()
            }
            Self::Floats { values, shape } => {
                TensorRef::from_array_view((shape.as_slice(), values.as_ref()))?.into()
            }
        })
    }
}

/// The outputs of a question's run.
pub struct Outputs {
    /// The logits, one per marker.
    pub logits: Vec<f32>,
    /// The outputs of the action head, where the graph has one.
    pub action: Option<[f32; 2]>,
}

/// The session of the graph that scores.
struct Scorer {
    session: Session,
    /// The names of its outputs.
    names: Vec<&'static str>,
    /// The inputs that have floats of 16 bits.
    in_half: Vec<String>,
}

/// A session of each graph, used by one thread at a time.
pub struct Lane {
    session: Session,
    scorer: Option<Scorer>,
    /// The session that prefills in place of the whole graph's, where it can.
    prefill: Arc<PrefillSession>,
    interface: Arc<Interface>,
    has_action: bool,
    has_scratch: bool,
    /// The optional inputs that the graph does not have.
    not_given: Vec<&'static str>,
    /// The inputs that are int64 in the graph, so that flags become zeros and ones for them.
    whole_numbers: Vec<String>,
    empty: Arc<KvCache>,
    blocks: Arc<Blocks>,
    running: Arc<Running>,
}

/// A graph as all its sessions open it.
pub(super) struct LaneGraph {
    pub(super) file: PathBuf,
    pub(super) weights: SharedWeights,
    /// The graph that replaces the file, where there is one.
    pub(super) other: Option<Bytes>,
}

/// The parts and settings that all sessions of a model are opened with.
pub(super) struct LanePlan {
    pub(super) environment: Environment,
    pub(super) device: Device,
    pub(super) main: LaneGraph,
    /// The graph that scores, and its tensors.
    pub(super) scorer: Option<(LaneGraph, Interface)>,
    pub(super) interface: Arc<Interface>,
    pub(super) empty: Arc<KvCache>,
    pub(super) blocks: Arc<Blocks>,
    pub(super) running: Arc<Running>,
    /// Whether no node reads the keys and values that a question's run puts out, so that they go
    /// into scratch memory.
    pub(super) has_scratch: bool,
}

impl LanePlan {
    /// Returns the size of the weights that its sessions share, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let scorer = self.scorer.iter();
        self.main.weights.bytes()
            + scorer
                .map(|(graph, _)| graph.weights.bytes())
                .sum::<usize>()
    }

    /// Opens a session of each graph, which prefills by `prefill` where that is open. The threads are
    /// the main graph's; the graph that scores has one.
    pub(super) fn open(&self, threads: usize, prefill: Arc<PrefillSession>) -> Result<Lane, Error> {
        let (session, tensors) = self.session(&self.main, &self.interface, threads)?;
        let scorer = match &self.scorer {
            Some((graph, interface)) => {
                // With several threads the library can round the sums of several short tables otherwise.
                let (session, tensors) = self.session(graph, interface, 1)?;
                Some(Scorer {
                    session,
                    names: interface.results.names(),
                    in_half: tensors.named("float16"),
                })
            }
            None => None,
        };
        let has_action = tensors.has_output("act_logits");
        let mut not_given = self.interface.optional_inputs.clone();
        not_given.retain(|name| !tensors.has_input(name));
        Ok(Lane {
            session,
            scorer,
            prefill,
            interface: Arc::clone(&self.interface),
            has_action,
            has_scratch: self.has_scratch,
            not_given,
            whole_numbers: tensors.named("int64"),
            empty: Arc::clone(&self.empty),
            blocks: Arc::clone(&self.blocks),
            running: Arc::clone(&self.running),
        })
    }

    /// Returns a session of a graph, with its tensors, which are those of the interface.
    fn session(
        &self,
        graph: &LaneGraph,
        interface: &Interface,
        threads: usize,
    ) -> Result<(Session, Tensors), Error> {
        let bad = |problem: String| Error::BadModel {
            file: graph.file.clone(),
            problem,
        };
        let session = open_session(&self.environment, (self.device, graph), threads);
        let session = session.map_err(|error| bad(cause(&error)))?;
        let tensors = Tensors::of(&session);
        tensors.check(interface).map_err(bad)?;
        Ok((session, tensors))
    }
}

impl Lane {
    /// Returns the arena that the session uses.
    pub(super) fn arena(&self) -> ort::Result<Arena> {
        Arena::of(&self.session)
    }

    /// Returns the KV cache of a row of a state, `tokens` long.
    ///
    /// # Errors
    /// [`Error::ModelFailed`].
    pub fn prefill(
        &mut self,
        mut inputs: Vec<(&'static str, Input<'_>)>,
        tokens: usize,
    ) -> Result<KvCache, Error> {
        self.keep_given(&mut inputs);
        let run = PrefillRun {
            interface: &self.interface,
            empty: &self.empty,
            blocks: &self.blocks,
            running: &self.running,
            inputs: &inputs,
            tokens,
        };
        let cache = self
            .prefill
            .prefill(|part| run.on(part), || run.on(&mut self.session));
        cache.map_err(run_failed)
    }

    /// Removes the optional inputs that the graph does not have.
    fn keep_given(&self, inputs: &mut Vec<(&'static str, Input<'_>)>) {
        inputs.retain(|(name, _)| !self.not_given.contains(name));
    }

    /// Runs a row of a question, `tokens` long, on the KV cache of its state. With `gives_back` the
    /// session then gives back the memory that it took for the run.
    ///
    /// # Errors
    /// [`Error::ModelFailed`].
    pub fn run_question(
        &mut self,
        inputs: Vec<(&'static str, Input<'_>)>,
        tokens: usize,
        cache: Option<&KvCache>,
        gives_back: bool,
    ) -> Result<Outputs, Error> {
        let cache = cache.unwrap_or(&self.empty);
        let mut inputs = inputs;
        self.keep_given(&mut inputs);
        for (name, input) in &mut inputs {
            if let Input::Flags { values } = input
                && self.whole_numbers.iter().any(|each| each == name)
            {
                let values: Vec<i64> = values.iter().map(|flag| i64::from(*flag)).collect();
                *input = Input::row(values);
            }
        }
        let values = graph_inputs(&inputs, &self.interface, cache).map_err(run_failed)?;
        let mut scratch = self.scratch(cache.tokens + tokens).map_err(run_failed)?;
        let options = self.options(scratch.as_mut(), gives_back);
        let options = options.map_err(run_failed)?;
        let _running = self.running.start(&options);
        let outputs = self
            .session
            .run_with_options(values, &options)
            .map_err(run_failed)?;
        let (_, logits) = floats(&outputs[self.interface.logits()]).map_err(run_failed)?;
        let action = if self.has_action {
            let (_, values) = floats(&outputs["act_logits"]).map_err(run_failed)?;
            values.as_ref().try_into().ok()
        } else {
            None
        };
        Ok(Outputs {
            logits: logits.into_owned(),
            action,
        })
    }

    /// Returns what the first graph, an encoder, makes of a row: hidden states, or one vector.
    ///
    /// # Errors
    /// [`Error::ModelFailed`], also where the first output is not `[1, tokens, width]` or
    /// `[1, width]`.
    pub fn encode(&mut self, inputs: &[(&'static str, Input<'_>)]) -> Result<KvCache, Error> {
        self.encoded(inputs).map_err(run_failed)
    }

    fn encoded(&mut self, inputs: &[(&'static str, Input<'_>)]) -> ort::Result<KvCache> {
        let outputs = self.session.outputs();
        let first = outputs.first().map(|output| output.name().to_owned());
        let first = first.ok_or_else(|| ort::Error::new("the encoder has no output"))?;
        let values = graph_inputs(inputs, &self.interface, &self.empty)?;
        let options = RunOptions::new()?;
        let options = options.with_outputs(OutputSelector::no_default().with(&first));
        let _running = self.running.start(&options);
        let outputs = self.session.run_with_options(values, &options)?;
        let (shape, states) = floats(&outputs[first.as_str()])?;
        let [1, .., width] = **shape else {
            return Err(ort::Error::new("the encoder gave no states of one row"));
        };
        let width = usize::try_from(width).unwrap_or(0);
        KvCache::of_states(&states, width, &self.blocks)
    }

    /// Returns the outputs of the graph that scores, in the order of its interface. With
    /// `gives_back` the session then gives back the memory that the runs took.
    ///
    /// # Errors
    /// [`Error::ModelFailed`].
    pub fn score(
        &mut self,
        inputs: &[(&'static str, Input<'_>)],
        gives_back: bool,
    ) -> Result<Vec<Vec<f32>>, Error> {
        self.scored(inputs, gives_back).map_err(run_failed)
    }

    fn scored(
        &mut self,
        inputs: &[(&'static str, Input<'_>)],
        gives_back: bool,
    ) -> ort::Result<Vec<Vec<f32>>> {
        let scorer = self.scorer.as_mut();
        let scorer = scorer.ok_or_else(|| ort::Error::new("there is no scorer"))?;
        let names = &scorer.names;
        let mut selector = OutputSelector::no_default();
        for name in names.iter() {
            selector = selector.with(*name);
        }
        let mut options = RunOptions::new()?;
        if gives_back {
            options.set(SHRINKS, "cpu:0")?;
        }
        let options = options.with_outputs(selector);
        let _running = self.running.start(&options);
        let mut values: NamedInputs<'_> = Vec::with_capacity(inputs.len());
        for (name, input) in inputs {
            let in_half = scorer.in_half.iter().any(|each| each == name);
            values.push((Cow::Borrowed(*name), input.tensor(in_half)?));
        }
        let outputs = scorer.session.run_with_options(values, &options)?;
        let all = names.iter().map(|name| {
            let (_, floats) = floats(&outputs[*name])?;
            Ok(floats.into_owned())
        });
        all.collect()
    }

    fn scratch(&self, tokens: usize) -> ort::Result<Option<Scratch>> {
        let scratch = || Scratch::with_room(&self.interface, tokens, &self.blocks);
        self.has_scratch.then(scratch).transpose()
    }

    /// Returns the options of a run, which ask for the outputs that a question needs, and otherwise
    /// only for those that go into scratch memory.
    fn options(
        &self,
        scratch: Option<&mut Scratch>,
        gives_back: bool,
    ) -> ort::Result<RunOptions<HasSelectedOutputs>> {
        let mut outputs = OutputSelector::no_default().with(self.interface.logits());
        if self.has_action {
            outputs = outputs.with("act_logits");
        }
        let values = scratch.into_iter().flat_map(|all| all.values.drain(..));
        for (pair, value) in self.interface.kv_pairs.iter().zip(values) {
            let present = &pair.present;
            outputs = outputs.with(present).preallocate(present, value);
        }
        let mut options = RunOptions::new()?;
        if gives_back {
            options.set(SHRINKS, "cpu:0")?;
        }
        Ok(options.with_outputs(outputs))
    }
}

/// Returns the shape and the values of an output, which may have 16 bits each.
fn floats(output: &DynValue) -> ort::Result<(&Shape, Cow<'_, [f32]>)> {
    let is_half = matches!(
        output.dtype(),
        ValueType::Tensor {
            ty: TensorElementType::Float16,
            ..
        }
    );
    if !is_half {
        let (shape, values) = output.try_extract_tensor::<f32>()?;
        return Ok((shape, Cow::Borrowed(values)));
    }
    let (shape, values) = output.try_extract_tensor::<f16>()?;
    let values = values.iter().copied().map(f16::to_f32).collect();
    Ok((shape, Cow::Owned(values)))
}

/// `kOrtRunOptionsConfigEnableMemoryArenaShrinkage`.
const SHRINKS: &str = "memory.enable_memory_arena_shrinkage";

pub(super) type NamedInputs<'v> = Vec<(Cow<'v, str>, SessionInputValue<'v>)>;

/// Returns the inputs of a run by name: those of a row, and the KV cache that the row looks at.
pub(super) fn graph_inputs<'v>(
    inputs: &'v [(&'static str, Input<'_>)],
    interface: &'v Interface,
    cache: &'v KvCache,
) -> ort::Result<NamedInputs<'v>> {
    let mut values = Vec::with_capacity(inputs.len() + cache.values.len());
    for (name, input) in inputs {
        values.push((Cow::Borrowed(*name), input.tensor(false)?));
    }
    for (pair, value) in interface.kv_pairs.iter().zip(&cache.values) {
        values.push((Cow::Borrowed(pair.past.as_str()), value.into()));
    }
    Ok(values)
}

/// `kOrtSessionOptionsModelExternalInitializersFileFolderPath`.
const BESIDE: &str = "session.model_external_initializers_file_folder_path";

fn open_session(
    environment: &Environment,
    (device, graph): (Device, &LaneGraph),
    threads: usize,
) -> ort::Result<Session> {
    let other = graph.other.as_ref();
    let mut builder = graph.weights.session(environment, threads, other)?;
    if let Some(provider) = device.provider() {
        builder = builder.with_execution_providers([provider])?;
    }
    commit(builder, &graph.file, other)
}

/// Returns the session of a file, or of the graph that replaces it.
pub(super) fn commit(
    mut builder: SessionBuilder,
    file: &Path,
    other: Option<&Bytes>,
) -> ort::Result<Session> {
    let Some(other) = other else {
        return builder.commit_from_file(file);
    };
    // This folder holds the weights that are not in the graph.
    let folder = file.parent().unwrap_or(Path::new(""));
    let followed = followed(other, folder);
    let (graph, folder) = match &followed {
        Some((graph, folder)) => (graph, folder.as_path()),
        None => (other, folder),
    };
    if let Some(folder) = folder.to_str() {
        builder = builder.with_config_entry(BESIDE, folder)?;
    }
    builder.commit_from_memory(graph)
}
