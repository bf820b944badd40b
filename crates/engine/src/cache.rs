//! The cache of states that were read before: their keys and values, chunk by chunk, with the least
//! recently used chunk evicted first.
//!
//! A chunk is found by a keyed hash of its tokens and of the model's files; its text is not kept.
//! Only the thread that has the model reads chunks, one request at a time, so a new state is read
//! once however many requests ask about it, and nothing here is locked while the model runs.

use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::Error;
use crate::session::{Memory, PackedMemory};

/// The key of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; 32]);

/// The cache's statistics. Counts are chunks, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Chunks that were kept when they were needed.
    pub hits: u64,
    /// Chunks that had to be read.
    pub misses: u64,
    /// Chunks that made room for others.
    pub evictions: u64,
    /// Chunks that are kept now.
    pub entries: usize,
    /// Bytes that the kept chunks take.
    pub bytes: usize,
    /// Bytes that the kept chunks may take.
    pub limit_bytes: usize,
}

/// The precision in which states are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// The values as the model made them.
    #[default]
    Fp32,
    /// Half the bytes. Every state is rounded, even one that was just read, so an answer does not
    /// reveal whether its state was kept.
    Fp16,
}

/// The bytes of an entry besides its memory: its key, its place in the order, and its reference
/// counts.
const ENTRY_BYTES: usize = 192;

#[derive(Clone)]
enum Entry {
    Exact(Arc<Memory>),
    Packed(Arc<PackedMemory>),
}

impl Entry {
    fn new(memory: &Arc<Memory>, precision: Precision) -> Result<Self, Error> {
        Ok(match precision {
            Precision::Fp32 => Self::Exact(Arc::clone(memory)),
            Precision::Fp16 => Self::Packed(Arc::new(memory.pack()?)),
        })
    }

    fn memory(self) -> Result<Arc<Memory>, Error> {
        match self {
            Self::Exact(memory) => Ok(memory),
            Self::Packed(packed) => packed.unpack().map(Arc::new),
        }
    }

    fn bytes(&self) -> usize {
        ENTRY_BYTES
            + match self {
                Self::Exact(memory) => memory.bytes(),
                Self::Packed(packed) => packed.bytes(),
            }
    }
}

struct Kept {
    chunks: LruCache<Key, Entry>,
    stats: CacheStats,
}

/// The kept chunks of one model.
pub struct StateCache {
    /// The hash of a secret of this process and of the model's digest, so that no one outside can
    /// make two chunks collide.
    seed: Sha256,
    precision: Precision,
    limit_bytes: usize,
    kept: Mutex<Kept>,
}

impl StateCache {
    /// Returns a cache of at most `limit_bytes` for the model with this digest; 0 keeps nothing.
    pub fn new(limit_bytes: usize, precision: Precision, digest: &str) -> Self {
        let mut secret = [0; 32];
        // Without a source of randomness the hash still cannot be inverted, and two chunks do not
        // collide by accident.
        let _ = getrandom::fill(&mut secret);
        let seed = Sha256::new().chain_update(secret).chain_update(digest);
        let stats = CacheStats {
            limit_bytes,
            ..CacheStats::default()
        };
        let chunks = LruCache::unbounded();
        Self {
            seed,
            precision,
            limit_bytes,
            kept: Mutex::new(Kept { chunks, stats }),
        }
    }

    /// Returns the key of the chunk of these tokens.
    pub fn key(&self, ids: &[i64]) -> Key {
        let mut hasher = self.seed.clone();
        hasher.update((ids.len() as u64).to_le_bytes());
        for id in ids {
            hasher.update(id.to_le_bytes());
        }
        Key(hasher.finalize().into())
    }

    /// Returns the key of a state of these chunks that is kept as a whole.
    pub fn whole_key(&self, chunks: &[Key]) -> Key {
        let mut hasher = self.seed.clone();
        hasher.update("whole");
        for chunk in chunks {
            hasher.update(chunk.0);
        }
        Key(hasher.finalize().into())
    }

    /// Returns the memory of a state that was just read, rounded as it will be when it comes from
    /// the cache.
    ///
    /// # Errors
    /// [`Error::ModelFailed`].
    pub fn rounded(&self, memory: Memory) -> Result<Memory, Error> {
        match self.precision {
            Precision::Fp32 => Ok(memory),
            Precision::Fp16 => memory.pack()?.unpack(),
        }
    }

    /// Returns a state that is kept as a whole, or `None`; a hit counts as `chunks` hits.
    ///
    /// # Errors
    /// [`Error::ModelFailed`].
    pub fn get_whole(&self, key: &Key, chunks: usize) -> Result<Option<Arc<Memory>>, Error> {
        let found = {
            let mut kept = self.kept.lock();
            let found = kept.chunks.get(key).cloned();
            kept.stats.hits += found.as_ref().map_or(0, |_| chunks as u64);
            found
        };
        found.map(Entry::memory).transpose()
    }

    /// Returns for each key, in order, its chunk or `None` where it is not kept.
    ///
    /// # Errors
    /// [`Error::ModelFailed`].
    pub fn get(&self, keys: &[Key]) -> Result<Vec<Option<Arc<Memory>>>, Error> {
        let found: Vec<Option<Entry>> = {
            let mut kept = self.kept.lock();
            let found = keys.iter().map(|key| kept.chunks.get(key).cloned());
            let found: Vec<_> = found.collect();
            let hits = found.iter().flatten().count() as u64;
            kept.stats.hits += hits;
            kept.stats.misses += keys.len() as u64 - hits;
            found
        };
        let found = found.into_iter();
        found
            .map(|entry| entry.map(Entry::memory).transpose())
            .collect()
    }

    /// Returns how many chunks from the beginning of a state fit into the cache at all, given their
    /// sizes in 32 bits. A block may be longer than its contents, so [`StateCache::keep`] counts
    /// the bytes that the chunks do take.
    pub fn fitting(&self, chunk_bytes: impl Iterator<Item = usize>) -> usize {
        let room = match self.precision {
            Precision::Fp32 => self.limit_bytes,
            Precision::Fp16 => self.limit_bytes.saturating_mul(2),
        };
        let sums = chunk_bytes.scan(0, |sum: &mut usize, bytes| {
            *sum += bytes;
            Some(*sum)
        });
        sums.take_while(|sum| *sum <= room).count()
    }

    /// Keeps the chunks of one state, as many from its beginning as fit into the cache at all; the
    /// least recently used chunks make room.
    ///
    /// # Errors
    /// [`Error::ModelFailed`].
    pub fn keep(&self, chunks: &[(Key, Arc<Memory>)]) -> Result<(), Error> {
        let mut entries = Vec::with_capacity(chunks.len());
        let mut own_bytes = 0;
        for (key, memory) in chunks {
            let entry = Entry::new(memory, self.precision)?;
            own_bytes += entry.bytes();
            if own_bytes > self.limit_bytes {
                break;
            }
            entries.push((*key, entry));
        }
        let mut kept = self.kept.lock();
        for (key, entry) in entries {
            let bytes = entry.bytes();
            if let Some(old) = kept.chunks.put(key, entry) {
                kept.stats.bytes -= old.bytes();
            }
            kept.stats.bytes += bytes;
        }
        while kept.stats.bytes > self.limit_bytes {
            let Some((_, gone)) = kept.chunks.pop_lru() else {
                break;
            };
            kept.stats.bytes -= gone.bytes();
            kept.stats.evictions += 1;
        }
        kept.stats.entries = kept.chunks.len();
        Ok(())
    }

    /// Returns the cache's statistics.
    pub fn stats(&self) -> CacheStats {
        self.kept.lock().stats
    }
}
