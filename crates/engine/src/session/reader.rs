//! The session that reads states with the part of the graph that they need, see [`crate::onnx::reading`].

use std::sync::Arc;
use std::thread::JoinHandle;

use ort::environment::Environment;
use ort::session::Session;
use parking_lot::Mutex;
use prost::bytes::Bytes;

use super::allocator;
use super::memory::{Interface, Memory};
use super::shared_weights::SharedWeights;
use crate::onnx::reading::{States, reading_part};

/// Reads states once the part is open and was found to give the bits of the whole graph.
#[derive(Default)]
pub(super) struct Reader(Mutex<State>);

#[derive(Default)]
struct State {
    session: Option<Session>,
    agrees: bool,
}

impl Reader {
    /// Whether the part reads.
    pub(super) fn agrees(&self) -> bool {
        self.0.lock().agrees
    }

    /// Reads a state with the part, or with the whole graph; the first time with both, to compare them.
    pub(super) fn read(
        &self,
        part: impl FnOnce(&mut Session) -> ort::Result<Memory>,
        whole: impl FnOnce() -> ort::Result<Memory>,
    ) -> ort::Result<Memory> {
        let mut state = self.0.lock();
        let agrees = state.agrees;
        let Some(session) = &mut state.session else {
            return whole();
        };
        if agrees {
            return part(session);
        }
        let memory = whole()?;
        if part(session).is_ok_and(|part| part.is_same(&memory)) {
            state.agrees = true;
        } else {
            state.session = None;
        }
        Ok(memory)
    }
}

/// What a reader is opened with.
pub(super) struct Plan {
    pub(super) environment: Environment,
    /// The whole graph.
    pub(super) graph: Bytes,
    pub(super) interface: Arc<Interface>,
    pub(super) threads: usize,
    pub(super) weights: SharedWeights,
}

impl Plan {
    /// Opens the reader on a thread of its own: answers need not wait for it.
    pub(super) fn carry_out(self, reader: &Arc<Reader>) -> Option<JoinHandle<()>> {
        let reader = Arc::clone(reader);
        let opening = std::thread::Builder::new().name("svc-open".into());
        // Without it the whole graph goes on reading.
        let thread = opening.spawn(move || {
            let session = self.open();
            allocator::give_back_end();
            allocator::give_back();
            reader.0.lock().session = session;
        });
        thread.ok()
    }

    fn open(self) -> Option<Session> {
        let states = States {
            kept: &self.interface.kept,
            even_input: self.interface.even_input,
        };
        let part = reading_part(&self.graph, states)?;
        let builder = self.weights.session(&self.environment, self.threads);
        builder.ok()?.commit_from_memory(&part).ok()
    }
}
