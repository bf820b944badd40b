//! The scratch memory for the keys and values that a question's run puts out and nobody reads.

use std::sync::Arc;

use ort::value::DynValue;

use super::blocks::{Block, Blocks};
use super::interface::Interface;
use super::kv_cache::tensor_at;

/// Scratch memory for the keys of all layers, and as much for their values, see
/// [`crate::onnx::presents`].
pub(super) struct Scratch {
    /// The tensors, in the order of [`Interface::kv_pairs`]: keys at even places, values at odd
    /// ones.
    pub(super) values: Vec<DynValue>,
    /// The block that holds the tensors' floats; it is dropped after them.
    _block: Block,
}

impl Scratch {
    /// Returns scratch memory for the keys and values of `tokens` tokens, the past's and the run's
    /// own.
    pub(super) fn with_room(
        interface: &Interface,
        tokens: usize,
        blocks: &Arc<Blocks>,
    ) -> ort::Result<Self> {
        let [heads, head_dim] = interface.kv_shape;
        let length = heads * tokens * head_dim;
        let block = blocks.take(2 * length);
        let value = |place: usize| {
            let start = block.start().wrapping_add(place % 2 * length);
            // SAFETY: the block has twice `length` floats, and lives as long as the values that
            // stand in it. Values that share a place are written and read by different nodes of a
            // run, which come one after the other.
            unsafe { tensor_at(start, [1, heads, tokens, head_dim]) }
        };
        let values = (0..interface.kv_pairs.len()).map(value);
        Ok(Self {
            values: values.collect::<ort::Result<_>>()?,
            _block: block,
        })
    }
}
