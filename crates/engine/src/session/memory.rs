//! What is kept of a state, and the tensors that a layout and a graph agree on.

use std::borrow::Cow;
use std::ptr::NonNull;
use std::sync::Arc;

use half::f16;
use half::slice::HalfFloatSliceExt;
use ort::AsPointer;
use ort::memory::{Allocator, MemoryInfo};
use ort::value::DynValue;

use super::blocks::{Block, Blocks};
use super::failure::{run_failed, taken};
use crate::Error;

/// The tensors that a layout gives to a graph and takes from it.
#[derive(Debug, Clone, Default)]
pub struct Interface {
    /// Inputs that every run gives.
    pub inputs: Vec<Cow<'static, str>>,
    /// Inputs that are given to a graph that has them.
    pub optional_inputs: Vec<&'static str>,
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
    /// They stand in `block`, and are dropped before it.
    pub(super) values: Vec<DynValue>,
    tokens: usize,
    shape: [usize; 2],
    block: Block,
}

impl Memory {
    /// Room for the keys and values of `tokens` tokens.
    pub(super) fn with_room(
        interface: &Interface,
        tokens: usize,
        blocks: &Arc<Blocks>,
    ) -> ort::Result<Self> {
        Self::new(interface.kept.len(), interface.kept_shape, tokens, blocks)
    }

    fn new(
        count: usize,
        shape: [usize; 2],
        tokens: usize,
        blocks: &Arc<Blocks>,
    ) -> ort::Result<Self> {
        let length = shape[0] * tokens * shape[1];
        let block = blocks.take(count * length);
        let start = block.start();
        let value = |index| {
            // SAFETY: the block has `count` times `length` floats, and lives as long as the values that stand in it.
            unsafe { tensor_at(start.add(index * length), [1, shape[0], tokens, shape[1]]) }
        };
        Ok(Self {
            values: (0..count).map(value).collect::<ort::Result<_>>()?,
            tokens,
            shape,
            block,
        })
    }

    /// The memories of a state's chunks as one, in order; `None` where there are none. A single one is handed on as
    /// it is.
    ///
    /// # Errors
    /// [`Error::ModelFailed`] when the library cannot make a tensor.
    pub fn join(chunks: &[Arc<Self>]) -> Result<Option<Arc<Self>>, Error> {
        let [first, _, ..] = chunks else {
            return Ok(chunks.first().cloned());
        };
        let tokens = chunks.iter().map(|chunk| chunk.tokens).sum();
        let blocks = first.block.blocks();
        let mut joined =
            Self::new(first.values.len(), first.shape, tokens, blocks).map_err(run_failed)?;
        for (index, value) in joined.values.iter_mut().enumerate() {
            let parts = chunks
                .iter()
                .map(|chunk| (chunk.tokens, &chunk.values[index]));
            concatenate(parts, first.shape, value).map_err(run_failed)?;
        }
        Ok(Some(Arc::new(joined)))
    }

    /// The keys and values in 16 bits each.
    ///
    /// # Errors
    /// [`Error::ModelFailed`] when a tensor does not hold floats.
    pub fn pack(&self) -> Result<PackedMemory, Error> {
        let length = self.shape[0] * self.tokens * self.shape[1];
        let mut values = vec![f16::ZERO; self.values.len() * length];
        for (value, packed) in self.values.iter().zip(values.chunks_mut(length.max(1))) {
            let (_, floats) = value.try_extract_tensor::<f32>().map_err(run_failed)?;
            packed.convert_from_f32_slice(floats);
        }
        Ok(PackedMemory {
            values,
            count: self.values.len(),
            tokens: self.tokens,
            shape: self.shape,
            blocks: Arc::clone(self.block.blocks()),
        })
    }

    /// What the keys and values take.
    pub fn bytes(&self) -> usize {
        self.block.bytes()
    }

    /// Whether the keys and values are the same bits.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let is_same = |(own, its): (&DynValue, &DynValue)| {
            let (Ok((_, own)), Ok((_, its))) = (
                own.try_extract_tensor::<f32>(),
                its.try_extract_tensor::<f32>(),
            ) else {
                return false;
            };
            let bits = |float: &f32| float.to_bits();
            own.iter().map(bits).eq(its.iter().map(bits))
        };
        let mut pairs = self.values.iter().zip(&other.values);
        self.values.len() == other.values.len() && pairs.all(is_same)
    }

    /// Whether it is worth giving back at once what a run on it took: such states are rare, and it is much.
    pub fn is_large(&self) -> bool {
        self.bytes() > LARGE_BYTES
    }
}

/// A memory in 16 bits a value, which nothing can run on.
pub struct PackedMemory {
    values: Vec<f16>,
    count: usize,
    tokens: usize,
    shape: [usize; 2],
    blocks: Arc<Blocks>,
}

impl PackedMemory {
    /// The memory again, each value as the nearest that 16 bits can hold.
    ///
    /// # Errors
    /// [`Error::ModelFailed`] when the library cannot make a tensor.
    pub fn unpack(&self) -> Result<Memory, Error> {
        self.try_unpack().map_err(run_failed)
    }

    fn try_unpack(&self) -> ort::Result<Memory> {
        let mut memory = Memory::new(self.count, self.shape, self.tokens, &self.blocks)?;
        let length = self.values.len() / self.count.max(1);
        for (value, packed) in memory
            .values
            .iter_mut()
            .zip(self.values.chunks(length.max(1)))
        {
            let (_, floats) = value.try_extract_tensor_mut::<f32>()?;
            packed.convert_to_f32_slice(floats);
        }
        Ok(memory)
    }

    /// What the keys and values take.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.values)
    }
}

/// What [`Memory::is_large`].
const LARGE_BYTES: usize = 24 << 20;

/// A tensor of floats that stand somewhere.
///
/// # Safety
/// At `data` there must be as many floats as `shape` says, for as long as the tensor lives.
unsafe fn tensor_at(data: *mut f32, shape: [usize; 4]) -> ort::Result<DynValue> {
    let info = MemoryInfo::default();
    let bytes = shape.iter().product::<usize>() * size_of::<f32>();
    let shape = shape.map(|length| length as i64);
    let mut value = std::ptr::null_mut();
    // SAFETY: all pointers are valid for the call, and the caller vouches for `data`.
    let status = unsafe {
        (ort::api().CreateTensorWithDataAsOrtValue)(
            info.ptr(),
            data.cast(),
            bytes,
            shape.as_ptr(),
            shape.len(),
            ort::sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
            &raw mut value,
        )
    };
    taken(status, "no tensor could be made")?;
    let value = NonNull::new(value).ok_or_else(|| ort::Error::new("no tensor could be made"))?;
    // SAFETY: the value was made just now, and nobody else has it.
    Ok(unsafe { DynValue::from_ptr(value, Some(&Allocator::default())) })
}

/// Joins tensors of shape `[1, heads, tokens, head_dim]` along `tokens`.
fn concatenate<'v>(
    parts: impl Iterator<Item = (usize, &'v DynValue)>,
    [heads, head_dim]: [usize; 2],
    joined: &mut DynValue,
) -> ort::Result<()> {
    let (_, out) = joined.try_extract_tensor_mut::<f32>()?;
    let total = out.len() / heads;
    let mut at = 0;
    for (tokens, part) in parts {
        let (_, data) = part.try_extract_tensor::<f32>()?;
        let length = tokens * head_dim;
        for head in 0..heads {
            let to = head * total + at;
            out[to..to + length].copy_from_slice(&data[head * length..(head + 1) * length]);
        }
        at += length;
    }
    Ok(())
}
