//! The parts that all sessions of a graph share: its weights, and their settings.

use std::sync::Arc;

use ort::environment::Environment;
use ort::session::Session;
use ort::session::builder::{GraphOptimizationLevel, PrepackedWeights, SessionBuilder};
use ort::value::{DynValue, Tensor};
use prost::bytes::Bytes;

use crate::weights::{Values, large_weights};

/// The weights of a graph, which all its sessions use, as the file has them and as the kernels want
/// them.
pub(super) struct SharedWeights {
    values: Vec<(String, Arc<DynValue>)>,
    prepacked: PrepackedWeights,
}

impl SharedWeights {
    /// Returns the weights of a graph, for several sessions. A single session does best with its
    /// own weights, so an empty graph is given here for it.
    pub(super) fn read(graph: &Bytes) -> ort::Result<Self> {
        let weights = large_weights(graph).into_iter().map(|weight| {
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

    /// Returns the builder of a session that uses these weights.
    pub(super) fn session(
        &self,
        environment: &Environment,
        threads: usize,
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
        for (name, value) in &self.values {
            builder = builder.with_initializer(name, Arc::clone(value))?;
        }
        Ok(builder)
    }
}
