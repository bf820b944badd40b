//! The KV cache of a state: the keys and values of its tokens, which the runs of its questions
//! read.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use half::f16;
use half::slice::HalfFloatSliceExt;
use ort::AsPointer;
use ort::memory::{Allocator, MemoryInfo};
use ort::value::DynValue;

use super::blocks::{Block, Blocks};
use super::failure::{run_failed, taken};
use super::interface::Interface;
use crate::Error;

/// The KV cache of a state: each layer's keys and values, `[1, heads, tokens, head_dim]`, in the
/// order of [`Interface::kv_pairs`]. In layouts whose encoder reads texts apart it is what the
/// encoder made of one text instead: a single tensor `[1, 1, tokens, width]`.
pub struct KvCache {
    /// The tensors, whose floats stand in `block`; they are dropped before it.
    pub(super) values: Vec<DynValue>,
    pub(super) tokens: usize,
    shape: [usize; 2],
    block: Block,
}

impl KvCache {
    /// Returns room for the keys and values of `tokens` tokens.
    pub(super) fn with_room(
        interface: &Interface,
        tokens: usize,
        blocks: &Arc<Blocks>,
    ) -> ort::Result<Self> {
        Self::new(interface.kv_pairs.len(), interface.kv_shape, tokens, blocks)
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

    /// Returns what an encoder made of a text: vectors of `width` values.
    pub(super) fn of_states(
        floats: &[f32],
        width: usize,
        blocks: &Arc<Blocks>,
    ) -> ort::Result<Self> {
        let tokens = floats.len() / width.max(1);
        let mut cache = Self::new(1, [1, width], tokens, blocks)?;
        let (_, values) = cache.values[0].try_extract_tensor_mut::<f32>()?;
        values.copy_from_slice(floats);
        Ok(cache)
    }

    /// Returns what an encoder made of a text: the values of all its vectors, and the number of
    /// values of each.
    ///
    /// # Errors
    /// [`Error::ModelFailed`] when the tensor does not hold floats.
    pub fn states(&self) -> Result<(&[f32], usize), Error> {
        let value = self.values.first().ok_or(Error::Panicked)?;
        let (_, floats) = value.try_extract_tensor::<f32>().map_err(run_failed)?;
        Ok((floats, self.shape[1]))
    }

    /// Returns the keys and values in 16 bits each.
    ///
    /// # Errors
    /// [`Error::ModelFailed`] when a tensor does not hold floats.
    pub fn pack(&self) -> Result<PackedKvCache, Error> {
        let length = self.shape[0] * self.tokens * self.shape[1];
        let mut values = vec![f16::ZERO; self.values.len() * length];
        for (value, packed) in self.values.iter().zip(values.chunks_mut(length.max(1))) {
            let (_, floats) = value.try_extract_tensor::<f32>().map_err(run_failed)?;
            packed.convert_from_f32_slice(floats);
        }
        Ok(PackedKvCache {
            values,
            count: self.values.len(),
            tokens: self.tokens,
            shape: self.shape,
            blocks: Arc::clone(self.block.blocks()),
        })
    }

    /// Returns the bytes of the keys and values, and of the tensors that hold them.
    pub fn bytes(&self) -> usize {
        self.block.bytes() + self.values.len() * TENSOR_BYTES
    }

    /// Whether both have the same bits in their keys and values.
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

    /// Whether the memory that a run on this state took should be given back at once: such states
    /// are rare, and their runs take much.
    pub fn is_large(&self) -> bool {
        self.bytes() > LARGE_BYTES
    }
}

/// The KV cache of a state of several chunks while it is put together, by as many threads as
/// prefill chunks.
pub struct KvAssembly {
    cache: KvCache,
    /// The range of each chunk's tokens, and whether they are there.
    chunks: Vec<(Range<usize>, AtomicBool)>,
}

impl KvAssembly {
    /// Returns room for chunks with these numbers of tokens.
    pub(super) fn with_room(
        interface: &Interface,
        chunks: impl IntoIterator<Item = usize>,
        blocks: &Arc<Blocks>,
    ) -> ort::Result<Self> {
        let mut end = 0;
        let chunks = chunks.into_iter().map(|tokens| {
            let start = end;
            end += tokens;
            (start..end, AtomicBool::new(false))
        });
        let chunks = chunks.collect();
        Ok(Self {
            cache: KvCache::with_room(interface, end, blocks)?,
            chunks,
        })
    }

    /// Returns the size of each chunk in bytes.
    pub fn chunk_bytes(&self) -> impl Iterator<Item = usize> {
        let [heads, head_dim] = self.cache.shape;
        let token = self.cache.values.len() * heads * head_dim * size_of::<f32>();
        self.chunks
            .iter()
            .map(move |(tokens, _)| tokens.len() * token)
    }

    /// Puts a chunk into its place.
    ///
    /// # Errors
    /// [`Error::ModelFailed`] when the chunk is there already, or has another shape.
    pub fn put(&self, chunk: usize, part: &KvCache) -> Result<(), Error> {
        let (tokens, is_there) = &self.chunks[chunk];
        let kind = |cache: &KvCache| (cache.values.len(), cache.shape);
        let fits = part.tokens == tokens.len() && kind(part) == kind(&self.cache);
        if !fits || is_there.swap(true, Ordering::Relaxed) {
            return Err(run_failed(ort::Error::new("a chunk has no place")));
        }
        let [heads, head_dim] = self.cache.shape;
        let (total, own) = (self.cache.tokens * head_dim, tokens.len() * head_dim);
        for (index, value) in part.values.iter().enumerate() {
            let (_, floats) = value.try_extract_tensor::<f32>().map_err(run_failed)?;
            for (head, from) in floats.chunks_exact(own.max(1)).enumerate().take(heads) {
                let at = (index * heads + head) * total + tokens.start * head_dim;
                // SAFETY: the block has `heads` times `total` floats for each value, of which these
                // are the chunk's own. The chunk is put there once, and no code reads the floats
                // before all chunks are there.
                unsafe {
                    let to = self.cache.block.start().add(at);
                    to.copy_from_nonoverlapping(from.as_ptr(), own);
                }
            }
        }
        Ok(())
    }

    /// Returns the whole KV cache, when every chunk is there.
    ///
    /// # Errors
    /// [`Error::ModelFailed`] when a chunk is missing.
    pub fn done(self) -> Result<KvCache, Error> {
        let mut chunks = self.chunks.into_iter();
        if chunks.all(|(_, is_there)| is_there.into_inner()) {
            Ok(self.cache)
        } else {
            Err(run_failed(ort::Error::new("a chunk is missing")))
        }
    }
}

/// A KV cache with 16 bits per value; no run can use it before it is unpacked.
pub struct PackedKvCache {
    values: Vec<f16>,
    count: usize,
    tokens: usize,
    shape: [usize; 2],
    blocks: Arc<Blocks>,
}

impl PackedKvCache {
    /// Returns the KV cache in 32 bits again, with each value as the nearest one that 16 bits can
    /// hold.
    ///
    /// # Errors
    /// [`Error::ModelFailed`] when the library cannot make a tensor.
    pub fn unpack(&self) -> Result<KvCache, Error> {
        self.try_unpack().map_err(run_failed)
    }

    fn try_unpack(&self) -> ort::Result<KvCache> {
        let mut cache = KvCache::new(self.count, self.shape, self.tokens, &self.blocks)?;
        let length = self.values.len() / self.count.max(1);
        for (value, packed) in cache
            .values
            .iter_mut()
            .zip(self.values.chunks(length.max(1)))
        {
            let (_, floats) = value.try_extract_tensor_mut::<f32>()?;
            packed.convert_to_f32_slice(floats);
        }
        Ok(cache)
    }

    /// Returns the bytes of the keys and values.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.values)
    }
}

/// The bytes of a tensor of the library besides its values, as measured with ONNX Runtime 1.29: its
/// shape, its place and its reference counts. For states of a few tokens that is as much as the
/// values are.
const TENSOR_BYTES: usize = 576;

/// The most bytes of a KV cache that is not large, see [`KvCache::is_large`].
const LARGE_BYTES: usize = 24 << 20;

/// Returns a tensor of the floats at `data`.
///
/// # Safety
/// At `data` there must be as many floats as `shape` says, for as long as the tensor lives.
pub(super) unsafe fn tensor_at(data: *mut f32, shape: [usize; 4]) -> ort::Result<DynValue> {
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
    // SAFETY: the value was made just now, and no other code has it.
    Ok(unsafe { DynValue::from_ptr(value, Some(&Allocator::default())) })
}
