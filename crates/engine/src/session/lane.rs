//! One session, with the inputs and outputs of its runs.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use ort::environment::Environment;
use ort::session::{HasSelectedOutputs, OutputSelector, RunOptions, Session, SessionInputValue};
use ort::value::TensorRef;
use prost::bytes::Bytes;

use super::Graph;
use super::arena::Arena;
use super::blocks::Blocks;
use super::failure::{cause, run_failed};
use super::leavings::Leavings;
use super::memory::{Interface, Memory};
use super::reader::Reader;
use super::running::Running;
use super::shared_weights::SharedWeights;
use super::tensors::Tensors;
use crate::Error;

/// One input tensor of a run.
pub enum Input<'a> {
    /// A tensor of int64, `[n]` or `[1, n]`.
    Ids {
        /// The values.
        values: Cow<'a, [i64]>,
        /// Whether there is a batch axis in front.
        batched: bool,
    },
    /// A tensor of bool, `[1, n]`.
    Flags {
        /// The values.
        values: Vec<bool>,
    },
}

impl<'a> Input<'a> {
    /// Returns an int64 tensor of shape `[n]`.
    pub fn ids(values: impl Into<Cow<'a, [i64]>>) -> Self {
        Self::Ids {
            values: values.into(),
            batched: false,
        }
    }

    /// Returns an int64 tensor of shape `[1, n]`.
    pub fn row(values: impl Into<Cow<'a, [i64]>>) -> Self {
        Self::Ids {
            values: values.into(),
            batched: true,
        }
    }

    /// Returns a bool tensor of shape `[1, n]`.
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

/// The outputs of a question's run.
pub struct Outputs {
    /// The logits, one per marker.
    pub logits: Vec<f32>,
    /// The outputs of the action head, where the graph has one.
    pub action: Option<[f32; 2]>,
}

/// A session, used by one thread at a time.
pub struct Lane {
    session: Session,
    /// The reader that reads states in place of the session, where it can.
    reader: Arc<Reader>,
    interface: Arc<Interface>,
    has_action: bool,
    leaves_unread: bool,
    /// The optional inputs that the graph does not have.
    not_given: Vec<&'static str>,
    empty: Arc<Memory>,
    blocks: Arc<Blocks>,
    running: Arc<Running>,
    arena: Arena,
}

/// The settings of one session besides the graph's own.
pub(super) struct LaneSettings<'a> {
    pub(super) threads: usize,
    pub(super) weights: &'a SharedWeights,
    pub(super) interface: &'a Arc<Interface>,
    pub(super) empty: &'a Arc<Memory>,
    pub(super) blocks: &'a Arc<Blocks>,
    pub(super) running: &'a Arc<Running>,
    pub(super) reader: Arc<Reader>,
    /// Whether no node reads the keys and values that a question's run leaves.
    pub(super) leaves_unread: bool,
    /// The graph that replaces the file, where there is one.
    pub(super) exact: Option<&'a Bytes>,
}

impl Lane {
    pub(super) fn open(
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
        let tensors = Tensors::of(&session);
        tensors.check(interface).map_err(bad)?;
        let has_action = tensors.has_output("act_logits");
        let mut not_given = interface.optional_inputs.clone();
        not_given.retain(|name| !tensors.has_input(name));
        let arena = Arena::of(&session).map_err(|error| bad(cause(&error)))?;
        Ok(Self {
            session,
            reader: Arc::clone(&settings.reader),
            arena,
            interface: Arc::clone(interface),
            has_action,
            leaves_unread: settings.leaves_unread,
            not_given,
            empty: Arc::clone(settings.empty),
            blocks: Arc::clone(settings.blocks),
            running: Arc::clone(settings.running),
        })
    }

    /// Whether the sessions' arena holds more memory than it should while nothing runs.
    pub(super) fn holds_much(&self) -> bool {
        self.arena.holds_much()
    }

    /// Reads a row of a state, `tokens` long, and returns its memory.
    ///
    /// # Errors
    /// [`Error::ModelFailed`].
    pub fn read(
        &mut self,
        inputs: Vec<(&'static str, Input<'_>)>,
        tokens: usize,
    ) -> Result<Memory, Error> {
        let room = Room {
            interface: &self.interface,
            empty: &self.empty,
            blocks: &self.blocks,
            running: &self.running,
        };
        let memory = self.reader.read(
            |part| room.read(part, &inputs, tokens),
            || room.read(&mut self.session, &inputs, tokens),
        );
        memory.map_err(run_failed)
    }

    /// Runs a row of a question, `tokens` long, on the memory of its state. With `gives_back` the
    /// session then gives back the memory that it took for the run.
    ///
    /// # Errors
    /// [`Error::ModelFailed`].
    pub fn answer(
        &mut self,
        inputs: Vec<(&'static str, Input<'_>)>,
        tokens: usize,
        memory: Option<&Memory>,
        gives_back: bool,
    ) -> Result<Outputs, Error> {
        let memory = memory.unwrap_or(&self.empty);
        let mut inputs = inputs;
        inputs.retain(|(name, _)| !self.not_given.contains(name));
        let values = named(&inputs, &self.interface, memory).map_err(run_failed)?;
        let mut leavings = self.leavings(memory.tokens + tokens).map_err(run_failed)?;
        let options = self.options(leavings.as_mut(), gives_back);
        let options = options.map_err(run_failed)?;
        let _running = self.running.start(&options);
        let outputs = self
            .session
            .run_with_options(values, &options)
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

    fn leavings(&self, tokens: usize) -> ort::Result<Option<Leavings>> {
        let room = || Leavings::with_room(&self.interface, tokens, &self.blocks);
        self.leaves_unread.then(room).transpose()
    }

    /// Returns the options of a run, which ask for the outputs that a question needs, and otherwise
    /// only for outputs that have a place of their own.
    fn options(
        &self,
        leavings: Option<&mut Leavings>,
        gives_back: bool,
    ) -> ort::Result<RunOptions<HasSelectedOutputs>> {
        let mut outputs = OutputSelector::no_default().with("logits");
        if self.has_action {
            outputs = outputs.with("act_logits");
        }
        let values = leavings.into_iter().flat_map(|room| room.values.drain(..));
        for ((_, present), value) in self.interface.kept.iter().zip(values) {
            outputs = outputs.with(present).preallocate(present, value);
        }
        let mut options = RunOptions::new()?;
        if gives_back {
            options.set("memory.enable_memory_arena_shrinkage", "cpu:0")?;
        }
        Ok(options.with_outputs(outputs))
    }
}

/// The parts that reading a state needs besides a session.
struct Room<'a> {
    interface: &'a Interface,
    empty: &'a Memory,
    blocks: &'a Arc<Blocks>,
    running: &'a Running,
}

impl Room<'_> {
    fn read(
        &self,
        session: &mut Session,
        inputs: &[(&'static str, Input<'_>)],
        tokens: usize,
    ) -> ort::Result<Memory> {
        let mut memory = Memory::with_room(self.interface, tokens, self.blocks)?;
        let mut selector = OutputSelector::no_default();
        for ((_, present), value) in self.interface.kept.iter().zip(memory.values.drain(..)) {
            selector = selector.with(present).preallocate(present, value);
        }
        let options = RunOptions::new()?.with_outputs(selector);
        let _running = self.running.start(&options);
        let values = named(inputs, self.interface, self.empty)?;
        let mut outputs = session.run_with_options(values, &options)?;
        for (_, present) in &self.interface.kept {
            let value = outputs.remove(present);
            memory
                .values
                .push(value.ok_or_else(|| ort::Error::new("the graph gave no memory"))?);
        }
        Ok(memory)
    }
}

type NamedInputs<'v> = Vec<(Cow<'v, str>, SessionInputValue<'v>)>;

fn named<'v>(
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

/// `kOrtSessionOptionsModelExternalInitializersFileFolderPath`.
const BESIDE: &str = "session.model_external_initializers_file_folder_path";

fn open_session(
    environment: &Environment,
    graph: &Graph<'_>,
    settings: &LaneSettings<'_>,
) -> ort::Result<Session> {
    let mut builder = settings.weights.session(environment, settings.threads)?;
    if let Some(provider) = graph.device.provider() {
        builder = builder.with_execution_providers([provider])?;
    }
    let Some(exact) = settings.exact else {
        return builder.commit_from_file(graph.file);
    };
    // This folder holds the weights that are not in the graph.
    if let Some(folder) = graph.file.parent().and_then(Path::to_str) {
        builder = builder.with_config_entry(BESIDE, folder)?;
    }
    builder.commit_from_memory(exact)
}
