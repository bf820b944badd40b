//! Blocks of memory for the KV caches of states. A freed block serves the next state of
//! about its length: pages that the system hands out again, and clears, would cost a tenth of the
//! time of a run.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::floats::Floats;

/// The most free bytes for each row that runs at the same time: a question leaves 3 MB on a state
/// of 912 tokens.
const FREE_BYTES_A_ROW: usize = 4 << 20;

/// The free bytes that are allowed in any case: two chunks of the embedded model.
const LEAST_FREE_BYTES: usize = 8 << 20;

/// The free blocks of one model. Blocks are kept up to a total number of bytes; the rest goes back
/// to the system.
pub(super) struct Blocks {
    free: Mutex<Free>,
}

struct Free {
    most_bytes: usize,
    /// The blocks, in the order in which they were freed.
    blocks: VecDeque<Floats>,
    bytes: usize,
}

impl Blocks {
    /// Returns the blocks of a model that runs `rows` rows at the same time.
    pub(super) fn new(rows: usize) -> Self {
        Self {
            free: Mutex::new(Free {
                most_bytes: LEAST_FREE_BYTES.max(rows * FREE_BYTES_A_ROW),
                blocks: VecDeque::new(),
                bytes: 0,
            }),
        }
    }

    /// Returns a block of at least `length` floats, whose values may be anything.
    pub(super) fn take(self: &Arc<Self>, length: usize) -> Block {
        let length = length.max(1);
        let floats = self.free.lock().take(length);
        Block {
            floats: Some(floats.unwrap_or_else(|| Floats::new(length))),
            blocks: Arc::clone(self),
        }
    }
}

impl Free {
    /// Returns the shortest block of at least `length` that does not waste more than a quarter; of
    /// several, the one that was freed last, which the processor's caches may still have.
    fn take(&mut self, length: usize) -> Option<Floats> {
        let fitting = length..=length + length / 4;
        let found = self.blocks.iter().enumerate().rev();
        let found = found.filter(|(_, block)| fitting.contains(&block.length()));
        let (place, _) = found.min_by_key(|(_, block)| block.length())?;
        let block = self.blocks.remove(place);
        self.bytes -= block.as_ref().map_or(0, Floats::bytes);
        block
    }

    /// Keeps a block. The blocks that have been free for longest give way, since states of their
    /// length may not come any more. Returns the blocks without room, which the caller drops.
    fn keep(&mut self, block: Floats) -> Vec<Floats> {
        if block.bytes() > self.most_bytes {
            return vec![block];
        }
        self.bytes += block.bytes();
        self.blocks.push_back(block);
        let mut gone = Vec::new();
        while self.bytes > self.most_bytes
            && let Some(block) = self.blocks.pop_front()
        {
            self.bytes -= block.bytes();
            gone.push(block);
        }
        gone
    }
}

/// A block in use.
pub(super) struct Block {
    /// The floats; `None` only while the block is being dropped.
    floats: Option<Floats>,
    blocks: Arc<Blocks>,
}

impl Block {
    /// Returns the address of the floats; they stay there while the block lives.
    pub(super) fn start(&self) -> *mut f32 {
        let floats = self.floats.as_ref();
        floats.map_or(std::ptr::null_mut(), |floats| floats.start())
    }

    pub(super) fn blocks(&self) -> &Arc<Blocks> {
        &self.blocks
    }

    /// Returns the size of the block in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.floats.as_ref().map_or(0, Floats::bytes)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let Some(floats) = self.floats.take() else {
            return;
        };
        let gone = self.blocks.free.lock().keep(floats);
        // Giving pages back takes its time, so it is done without the lock.
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: usize = 1000;

    fn free_bytes(blocks: &Blocks) -> usize {
        let free = blocks.free.lock();
        let held: usize = free.blocks.iter().map(Floats::bytes).sum();
        assert_eq!(held, free.bytes);
        held
    }

    #[test]
    fn a_freed_block_serves_the_next_of_its_length() {
        let blocks = Arc::new(Blocks::new(1));
        let first = blocks.take(STEP);
        let place = first.start();
        drop(first);
        assert_eq!(blocks.take(STEP - 1).start(), place);
    }

    #[test]
    fn of_several_that_fit_the_shortest_is_used() {
        let blocks = Arc::new(Blocks::new(1));
        let lengths = [120, 100, 110].map(|percent| percent * STEP / 100);
        drop(lengths.map(|length| blocks.take(length)));
        let taken = [0; 3].map(|_| blocks.take(STEP));
        let bytes = taken.map(|block| block.bytes() / size_of::<f32>());
        assert_eq!(bytes, [STEP, 110 * STEP / 100, 120 * STEP / 100]);
    }

    #[test]
    fn a_block_is_not_used_for_much_less_than_it_holds() {
        let blocks = Arc::new(Blocks::new(1));
        drop(blocks.take(8 * STEP));
        let little = blocks.take(STEP);
        assert_eq!(little.bytes(), STEP * size_of::<f32>());
        assert_eq!(blocks.take(7 * STEP).bytes(), 8 * STEP * size_of::<f32>());
        drop(little);
    }

    #[test]
    fn free_blocks_are_bounded_and_those_that_waited_longest_go_first() {
        let blocks = Arc::new(Blocks::new(1));
        let most = LEAST_FREE_BYTES / size_of::<f32>();
        let short: Vec<_> = (0..10).map(|_| blocks.take(most / 10)).collect();
        drop(short);
        drop(blocks.take(most / 2));
        let free = free_bytes(&blocks);
        assert!(free <= LEAST_FREE_BYTES);
        let long = blocks.take(most / 2);
        assert_eq!(free - free_bytes(&blocks), long.bytes());
    }

    #[test]
    fn a_block_that_is_longer_than_all_that_may_be_free_drives_out_nothing() {
        let blocks = Arc::new(Blocks::new(1));
        drop(blocks.take(STEP));
        drop(blocks.take(LEAST_FREE_BYTES / size_of::<f32>() + 1));
        assert_eq!(free_bytes(&blocks), STEP * size_of::<f32>());
    }
}
