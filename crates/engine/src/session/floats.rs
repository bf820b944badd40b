//! Contiguous floats with any values.

use std::alloc::{Layout, handle_alloc_error};
use std::ptr::NonNull;

/// Allocated floats. Long blocks have pages of their own: the allocator would put them where
/// smaller blocks were before, and would keep the pages after they are freed. The pages are huge
/// where the system has huge pages.
pub(super) struct Floats {
    start: NonNull<f32>,
    length: usize,
}

// SAFETY: the floats are reached only through `start`, which one owner has, as with a `Box<[f32]>`.
unsafe impl Send for Floats {}
// SAFETY: as above; a shared reference gives no access to the floats.
unsafe impl Sync for Floats {}

impl Floats {
    /// Allocates `length` floats, which must not be 0.
    pub(super) fn new(length: usize) -> Self {
        let layout = layout(length);
        let start = if has_pages(layout) {
            pages::take(layout)
        } else {
            heap::take(layout)
        };
        let Some(start) = start else {
            handle_alloc_error(layout)
        };
        Self {
            start: start.cast(),
            length,
        }
    }

    /// Returns the address of the first float.
    pub(super) fn start(&self) -> *mut f32 {
        self.start.as_ptr()
    }

    /// Returns the number of floats.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Returns the size of the floats in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.length * size_of::<f32>()
    }
}

impl Drop for Floats {
    fn drop(&mut self) {
        let layout = layout(self.length);
        if has_pages(layout) {
            pages::give_back(self.start.cast(), layout);
        } else {
            heap::give_back(self.start.cast(), layout);
        }
    }
}

const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Returns the layout of a block. Its alignment puts rows of a cache line's length on one cache
/// line each, and also the values that the kernels read side by side.
fn layout(length: usize) -> Layout {
    let bytes = length * size_of::<f32>();
    let align = if bytes >= HUGE_PAGE_BYTES {
        HUGE_PAGE_BYTES
    } else {
        64
    };
    #[allow(clippy::expect_used)] // no state has so many tokens
    Layout::from_size_align(bytes, align).expect("a block that can be addressed")
}

fn has_pages(layout: Layout) -> bool {
    layout.align() == HUGE_PAGE_BYTES
}

#[cfg(target_os = "linux")]
mod pages {
    use std::alloc::Layout;
    use std::ptr::NonNull;

    /// Returns pages of this layout, or `None` where there are no more.
    pub fn take(layout: Layout) -> Option<NonNull<u8>> {
        let (bytes, align) = (rounded(layout.size()), layout.align());
        // SAFETY: the call asks for pages anywhere, so nothing that is there can be lost.
        let all = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes + align,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if all == libc::MAP_FAILED {
            return None;
        }
        let before = all.align_offset(align);
        let start = all.wrapping_byte_add(before);
        // SAFETY: all three ranges lie in the mapping that was made just now. A system without huge
        // pages refuses the last call, and nothing is lost.
        unsafe {
            unmap(all, before);
            unmap(start.wrapping_byte_add(bytes), align - before);
            libc::madvise(start, bytes, libc::MADV_HUGEPAGE);
        }
        NonNull::new(start.cast())
    }

    /// Gives back the pages that [`take`] returned for this layout.
    pub fn give_back(start: NonNull<u8>, layout: Layout) {
        // SAFETY: the pages were mapped with this length, and no code uses them after this.
        unsafe { unmap(start.as_ptr().cast(), rounded(layout.size())) };
    }

    unsafe fn unmap(start: *mut libc::c_void, bytes: usize) {
        if bytes > 0 {
            // SAFETY: the caller vouches for the range. The call fails only for a range that is not
            // one of pages.
            unsafe { libc::munmap(start, bytes) };
        }
    }

    /// Returns the bytes rounded up to a whole number of pages; larger pages than these are rare,
    /// and a multiple of them.
    fn rounded(bytes: usize) -> usize {
        bytes.next_multiple_of(64 << 10)
    }
}

#[cfg(not(target_os = "linux"))]
use self::heap as pages;

mod heap {
    use std::alloc::{Layout, alloc, dealloc};
    use std::ptr::NonNull;

    /// Returns a block of this layout, which is not empty, or `None` where there is no room.
    pub fn take(layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { alloc(layout) })
    }

    /// Gives back the block that [`take`] returned for this layout.
    pub fn give_back(start: NonNull<u8>, layout: Layout) {
        // SAFETY: the block was allocated with this layout, and no other code frees it.
        unsafe { dealloc(start.as_ptr(), layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_them_can_be_written_and_read_whatever_their_number() {
        for length in [1, 1000, 524_287, 524_288, 524_289, 1_179_648] {
            let floats = Floats::new(length);
            assert_eq!(floats.start().align_offset(layout(length).align()), 0);
            for place in 0..length {
                // SAFETY: `length` floats were allocated, and no other code has them.
                unsafe { floats.start().add(place).write(0.5) };
            }
            // SAFETY: as above; all floats were written.
            let all = unsafe { std::slice::from_raw_parts(floats.start(), length) };
            assert_eq!(all.iter().sum::<f32>(), length as f32 / 2.0);
        }
    }
}
