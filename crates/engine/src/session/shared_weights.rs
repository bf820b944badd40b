//! The parts that all sessions of a graph share: its weights, and their settings.

use std::path::Path;
use std::sync::Arc;

use ort::environment::Environment;
use ort::session::Session;
use ort::session::builder::{GraphOptimizationLevel, PrepackedWeights, SessionBuilder};
use ort::value::{DynValue, Tensor};
use prost::bytes::Bytes;

use crate::onnx::weights::{TakenApart, Values, given, take_apart};

/// The weights of a graph, which all its sessions use, as the file has them and as the kernels want
/// them.
pub(super) struct SharedWeights {
    values: Vec<(String, Arc<DynValue>)>,
    prepacked: PrepackedWeights,
    bytes: usize,
}

impl Default for SharedWeights {
    /// Returns none: each session has its own weights.
    fn default() -> Self {
        Self {
            values: Vec::new(),
            prepacked: PrepackedWeights::new(),
            bytes: 0,
        }
    }
}

impl SharedWeights {
    /// Returns the weights of a graph, for several sessions, and the graph without them; `None`
    /// where it has none to share. `folder` holds the weights that are not in the graph.
    pub(super) fn read(graph: &Bytes, folder: &Path) -> ort::Result<Option<(Self, Bytes)>> {
        let Some(TakenApart { graph, weights }) = take_apart(graph, folder) else {
            return Ok(None);
        };
        let bytes = weights.iter().map(|weight| weight.values.bytes()).sum();
        let weights = weights.into_iter().map(|weight| {
            let (name, shape) = (weight.name, weight.shape);
            let value = match weight.values {
                Values::F32(values) => Tensor::from_array((shape, values))?.into_dyn(),
                Values::I8(values) => Tensor::from_array((shape, values))?.into_dyn(),
                Values::U8(values) => Tensor::from_array((shape, values))?.into_dyn(),
            };
            Ok((name, Arc::new(value)))
        });
        let shared = Self {
            values: weights.collect::<ort::Result<_>>()?,
            bytes,
            ..Self::default()
        };
        Ok(Some((shared, graph)))
    }

    /// Returns their size in bytes, as the file has them.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the builder of a session of `graph`, which uses those of these weights that the graph
    /// has to be given.
    pub(super) fn session(
        &self,
        environment: &Environment,
        threads: usize,
        graph: Option<&Bytes>,
    ) -> ort::Result<SessionBuilder> {
        let mut builder = Session::builder(environment)?
            .with_optimization_level(GraphOptimizationLevel::All)?
            .with_intra_threads(threads)?
            // Shapes differ from run to run, so a remembered pattern would only hold memory.
            .with_memory_pattern(false)?
            // Spinning is worthwhile inside a run, between two steps that follow each other at
            // once; for longer, or between runs, it would take the cores from everything else.
            .with_config_entry("session.intra_op.spin_duration_us", "20")?
            .with_config_entry("session.force_spinning_stop", "1")?
            .with_prepacked_weights(&self.prepacked)?
            .with_env_allocators()?;
        let given = graph.map(given).unwrap_or_default();
        for (name, value) in self.values.iter().filter(|(name, _)| given.contains(name)) {
            builder = builder
                .with_external_initializer(name, Arc::clone(value))?
                .with_initializer(name, Arc::clone(value))?;
        }
        Ok(builder)
    }
}
