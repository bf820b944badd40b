//! How the C library's allocator treats large blocks: a page that the system hands out anew costs time, one that is
//! not given back costs memory.

/// What the allocator keeps for the next block, in bytes.
struct Thresholds {
    /// Larger blocks are mapped from the system and go back to it at once.
    map: i32,
    /// More free bytes than this at the end of a heap go back.
    trim: i32,
}

/// While a model is loaded: weights come and go. What is larger than a matrix of them is mapped: the room that it leaves in
/// a heap would be filled by what is taken later, and stay.
const LOADING: Thresholds = Thresholds {
    map: 1 << 20,
    trim: 64 << 20,
};

/// While requests are answered: what is large is either in blocks that are used again, or rare.
const SERVING: Thresholds = Thresholds {
    map: 128 << 10,
    trim: 128 << 10,
};

/// Lasts while a model is loaded; at its end what loading took is given back.
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
    // SAFETY: sets two numbers of the allocator, which takes its own locks.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, thresholds.map);
        libc::mallopt(libc::M_TRIM_THRESHOLD, thresholds.trim);
    }
}

/// Gives the system back what is free in the middle of the heaps, too.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn give_back() {
    // SAFETY: walks the free lists under the allocator's own locks.
    unsafe { libc::malloc_trim(0) };
}

/// Gives the system back what is free at the end of the calling thread's own heap, which [`give_back`] leaves as it is.
/// Once the thread is gone, nobody else would.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn give_back_end() {
    /// A block from which on the allocator looks at the end of its heap when it is freed.
    const BYTES: usize = 96 << 10;
    // SAFETY: sets a number of the allocator; the block is nobody else's, and nothing is written to it.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, SERVING.trim);
        libc::free(std::hint::black_box(libc::malloc(BYTES)));
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn set(_: &Thresholds) {}

/// Other allocators decide for themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back_end() {}

/// Other allocators decide for themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}
