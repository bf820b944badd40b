//! The cache of states that were prefilled before: their KV caches, chunk by chunk, with the least
//! recently used chunk evicted first.
//!
//! A chunk is found by a keyed hash of its tokens and of the model's files; its text is not kept.
//! A request claims the chunks that it prefills, so a new state is prefilled once however many
//! requests ask about it, and nothing here is locked while the model runs.

use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::Error;
use crate::session::{KvCache, PackedKvCache};
use crate::stop::Stop;

mod claims;

pub use self::claims::Claim;
use self::claims::Claims;

/// The key of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; 32]);

/// The cache's statistics. Counts are chunks, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Chunks that were kept when they were needed.
    pub hits: u64,
    /// Chunks that had to be prefilled.
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
    /// Half the bytes. Every state is rounded, even one that was just prefilled, so an answer does
    /// not reveal whether its state was kept.
    Fp16,
}

/// The bytes of an entry besides its KV cache: its key, its place in the order, and its reference
/// counts.
const ENTRY_BYTES: usize = 192;

#[derive(Clone)]
enum Entry {
    Exact(Arc<KvCache>),
    Packed(Arc<PackedKvCache>),
}

impl Entry {
    fn new(chunk: &Arc<KvCache>, precision: Precision) -> Result<Self, Error> {
        Ok(match precision {
            Precision::Fp32 => Self::Exact(Arc::clone(chunk)),
            Precision::Fp16 => Self::Packed(Arc::new(chunk.pack()?)),
        })
    }

    fn kv_cache(self) -> Result<Arc<KvCache>, Error> {
        match self {
            Self::Exact(chunk) => Ok(chunk),
            Self::Packed(packed) => packed.unpack().map(Arc::new),
        }
    }

    fn bytes(&self) -> usize {
        ENTRY_BYTES
            + match self {
                Self::Exact(chunk) => chunk.bytes(),
                Self::Packed(packed) => packed.bytes(),
            }
    }
}

struct Inner {
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
    inner: Mutex<Inner>,
    claims: Claims,
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
            inner: Mutex::new(Inner { chunks, stats }),
            claims: Claims::default(),
        }
    }

    /// Waits until no other request prefills one of these chunks, and claims them. A cache that keeps
    /// nothing has nothing to wait for.
    ///
    /// # Errors
    /// The errors of `stop`.
    pub fn claim(&self, keys: &[Key], stop: &Stop) -> Result<Claim<'_>, Error> {
        let keys = if self.limit_bytes == 0 { &[] } else { keys };
        self.claims.claim(keys, stop)
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

    /// Returns the KV cache of a state that was just prefilled, rounded as it will be when it comes
    /// from here.
    ///
    /// # Errors
    /// [`Error::ModelFailed`].
    pub fn rounded(&self, cache: KvCache) -> Result<KvCache, Error> {
        match self.precision {
            Precision::Fp32 => Ok(cache),
            Precision::Fp16 => cache.pack()?.unpack(),
        }
    }

    /// Returns a state that is kept as a whole, or `None`; a hit counts as `chunks` hits.
    ///
    /// # Errors
    /// [`Error::ModelFailed`].
    pub fn get_whole(&self, key: &Key, chunks: usize) -> Result<Option<Arc<KvCache>>, Error> {
        let found = {
            let mut inner = self.inner.lock();
            let found = inner.chunks.get(key).cloned();
            inner.stats.hits += found.as_ref().map_or(0, |_| chunks as u64);
            found
        };
        found.map(Entry::kv_cache).transpose()
    }

    /// Returns for each key, in order, its chunk or `None` where it is not kept.
    ///
    /// # Errors
    /// [`Error::ModelFailed`].
    pub fn get(&self, keys: &[Key]) -> Result<Vec<Option<Arc<KvCache>>>, Error> {
        let found: Vec<Option<Entry>> = {
            let mut inner = self.inner.lock();
            let found = keys.iter().map(|key| inner.chunks.get(key).cloned());
            let found: Vec<_> = found.collect();
            let hits = found.iter().flatten().count() as u64;
            inner.stats.hits += hits;
            inner.stats.misses += keys.len() as u64 - hits;
            found
        };
        let found = found.into_iter();
        found
            .map(|entry| entry.map(Entry::kv_cache).transpose())
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
    pub fn keep(&self, chunks: &[(Key, Arc<KvCache>)]) -> Result<(), Error> {
        let mut entries = Vec::with_capacity(chunks.len());
        let mut own_bytes = 0;
        for (key, chunk) in chunks {
            let entry = Entry::new(chunk, self.precision)?;
            own_bytes += entry.bytes();
            if own_bytes > self.limit_bytes {
                break;
            }
            entries.push((*key, entry));
        }
        let mut inner = self.inner.lock();
        for (key, entry) in entries {
            let bytes = entry.bytes();
            if let Some(old) = inner.chunks.put(key, entry) {
                inner.stats.bytes -= old.bytes();
            }
            inner.stats.bytes += bytes;
        }
        while inner.stats.bytes > self.limit_bytes {
            let Some((_, gone)) = inner.chunks.pop_lru() else {
                break;
            };
            inner.stats.bytes -= gone.bytes();
            inner.stats.evictions += 1;
        }
        inner.stats.entries = inner.chunks.len();
        Ok(())
    }

    /// Returns the cache's statistics.
    pub fn stats(&self) -> CacheStats {
        self.inner.lock().stats
    }
}
