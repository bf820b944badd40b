//! What is kept of a state, and the tensors that a layout and a graph agree on.

use std::borrow::Cow;
use std::sync::Arc;

use ort::memory::Allocator;
use ort::value::{DynValue, Tensor};

use super::runtime::run_failed;
use crate::Error;

/// The tensors that a layout gives to a graph and takes from it.
#[derive(Debug, Clone, Default)]
pub struct Interface {
    /// Inputs that every run gives.
    pub inputs: Vec<Cow<'static, str>>,
    /// Pairs of an input and the output of an earlier run that feeds it: what is kept of a state.
    pub kept: Vec<(String, String)>,
    /// Heads and values per head of each kept tensor, `[1, heads, tokens, head_dim]`.
    pub kept_shape: [usize; 2],
    /// Whether the graph may leave `act_logits` out.
    pub action_is_optional: bool,
}

/// What is kept of a state: each layer's keys and values, `[1, heads, tokens, head_dim]`, in the order of
/// [`Interface::kept`].
pub struct Memory {
    pub(super) values: Vec<DynValue>,
    bytes: usize,
}

impl Memory {
    /// Room for the keys and values of `tokens` tokens, outside the arenas of the sessions: it goes back to the
    /// system when it is dropped.
    pub(super) fn with_room(interface: &Interface, tokens: usize) -> ort::Result<Self> {
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
