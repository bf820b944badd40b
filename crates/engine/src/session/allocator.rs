//! The settings of the C library's allocator for large blocks: a page that the system hands out
//! again costs time, and a page that is not given back costs memory.

/// The bytes that the allocator keeps for the next blocks.
struct Thresholds {
    /// The limit above which blocks are mapped from the system, and go back to it at once.
    map: i32,
    /// The limit above which free bytes at the end of a heap go back.
    trim: i32,
}

/// The thresholds while a model is loaded, when weights come and go. A block larger than a matrix
/// of weights is mapped: in a heap, later blocks would fill the gap that it leaves, and the gap
/// would stay.
const LOADING: Thresholds = Thresholds {
    map: 1 << 20,
    trim: 64 << 20,
};

/// The thresholds while requests are answered: large memory is either in blocks that are used
/// again, or rare.
const SERVING: Thresholds = Thresholds {
    map: 128 << 10,
    trim: 128 << 10,
};

/// A guard that lasts while a model is loaded; at its end the memory that loading took is given
/// back.
pub struct Loading(());

impl Loading {
    /// Begins to load.
    pub fn begin() -> Self {
        set(&LOADING);
        Self(())
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        set(&SERVING);
        give_back_end();
        give_back();
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn set(thresholds: &Thresholds) {
    // SAFETY: the calls set two numbers of the allocator, which takes its own locks.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, thresholds.map);
        libc::mallopt(libc::M_TRIM_THRESHOLD, thresholds.trim);
    }
}

/// Gives the system back the free memory of the heaps, including that in their middle.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn give_back() {
    // SAFETY: the call walks the free lists under the allocator's own locks.
    unsafe { libc::malloc_trim(0) };
}

/// Gives the system back the free memory at the end of the calling thread's own heap, which
/// [`give_back`] leaves as it is. Once the thread is gone, nothing else would give it back.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn give_back_end() {
    /// The size of a block from which on the allocator looks at the end of its heap when the block
    /// is freed.
    const BYTES: usize = 96 << 10;
    // SAFETY: the first call sets a number of the allocator; no other code has the block, and
    // nothing is written to it.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, SERVING.trim);
        libc::free(std::hint::black_box(libc::malloc(BYTES)));
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn set(_: &Thresholds) {}

/// Does nothing: other allocators decide for themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back_end() {}

/// Does nothing: other allocators decide for themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}
