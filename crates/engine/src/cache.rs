//! States that were read before: what the encoder kept of them, chunk by chunk, least recently used first out.
//!
//! A chunk is found by a keyed hash of its tokens and of the model's files; its text is not kept. Chunks are read
//! only by whoever has the model, one request at a time, so a new state is read once however many ask about it, and
//! nothing here is locked while the model runs.

use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::session::Memory;

/// What a chunk is found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; 32]);

/// How the cache is doing. Counts are chunks, since the start.
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
    /// Bytes that they take.
    pub bytes: usize,
    /// Bytes that they may take.
    pub limit_bytes: usize,
}

struct Kept {
    chunks: LruCache<Key, Arc<Memory>>,
    stats: CacheStats,
}

/// The kept chunks of one model.
pub struct StateCache {
    /// A secret of this process, and the model: nobody outside can make two chunks collide.
    seed: Sha256,
    kept: Mutex<Kept>,
}

impl StateCache {
    /// A cache of at most `limit_bytes` for the model with this digest; 0 keeps nothing.
    pub fn new(limit_bytes: usize, digest: &str) -> Self {
        let mut secret = [0; 32];
        // Without a source of randomness the hash is still one that nobody can invert or collide by accident.
        let _ = getrandom::fill(&mut secret);
        let seed = Sha256::new().chain_update(secret).chain_update(digest);
        let stats = CacheStats {
            limit_bytes,
            ..CacheStats::default()
        };
        let chunks = LruCache::unbounded();
        Self {
            seed,
            kept: Mutex::new(Kept { chunks, stats }),
        }
    }

    /// What a chunk of these tokens is found by.
    pub fn key(&self, ids: &[i64]) -> Key {
        let mut hasher = self.seed.clone();
        hasher.update((ids.len() as u64).to_le_bytes());
        for id in ids {
            hasher.update(id.to_le_bytes());
        }
        Key(hasher.finalize().into())
    }

    /// What a state of these chunks is found by, when it is kept as a whole.
    pub fn whole_key(&self, chunks: &[Key]) -> Key {
        let mut hasher = self.seed.clone();
        hasher.update("whole");
        for chunk in chunks {
            hasher.update(chunk.0);
        }
        Key(hasher.finalize().into())
    }

    /// A state that is kept as a whole; it counts as `chunks` hits.
    pub fn get_whole(&self, key: &Key, chunks: usize) -> Option<Arc<Memory>> {
        let mut kept = self.kept.lock();
        let found = kept.chunks.get(key).cloned()?;
        kept.stats.hits += chunks as u64;
        Some(found)
    }

    /// The kept chunks among `keys`, in their order.
    pub fn get(&self, keys: &[Key]) -> Vec<Option<Arc<Memory>>> {
        let mut kept = self.kept.lock();
        let found: Vec<_> = keys
            .iter()
            .map(|key| kept.chunks.get(key).cloned())
            .collect();
        let hits = found.iter().flatten().count() as u64;
        kept.stats.hits += hits;
        kept.stats.misses += keys.len() as u64 - hits;
        found
    }

    /// Keeps the chunks of one state, as many from its beginning as there is room for at all; others make room.
    pub fn keep(&self, chunks: &[(Key, Arc<Memory>)]) {
        let mut kept = self.kept.lock();
        let mut own_bytes = 0;
        for (key, memory) in chunks {
            let bytes = memory.bytes();
            own_bytes += bytes;
            if own_bytes > kept.stats.limit_bytes {
                break;
            }
            if let Some(old) = kept.chunks.put(*key, Arc::clone(memory)) {
                kept.stats.bytes -= old.bytes();
            }
            kept.stats.bytes += bytes;
        }
        while kept.stats.bytes > kept.stats.limit_bytes {
            let Some((_, gone)) = kept.chunks.pop_lru() else {
                break;
            };
            kept.stats.bytes -= gone.bytes();
            kept.stats.evictions += 1;
        }
        kept.stats.entries = kept.chunks.len();
    }

    /// How the cache is doing.
    pub fn stats(&self) -> CacheStats {
        self.kept.lock().stats
    }
}
