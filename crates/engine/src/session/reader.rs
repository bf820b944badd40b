//! The sessions that read states with the part of the graph that they need, see [`crate::onnx::reading`].

use std::sync::Arc;
use std::thread::JoinHandle;

use ort::environment::Environment;
use ort::session::Session;
use parking_lot::Mutex;
use prost::bytes::Bytes;

use super::allocator;
use super::memory::{Interface, Memory};
use super::running::Running;
use super::shared_weights::SharedWeights;
use crate::onnx::reading::{States, reading_part};

/// A reader of states with a part of the graph. It uses the part once it is open and was found to
/// give the same bits as the whole graph.
#[derive(Default)]
pub(super) struct Reader(Mutex<State>);

#[derive(Default)]
struct State {
    session: Option<Session>,
    agrees: bool,
}

impl Reader {
    /// Whether states are read with the part.
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

/// The parts that readers are opened with.
pub(super) struct Plan {
    pub(super) environment: Environment,
    /// The whole graph.
    pub(super) graph: Bytes,
    pub(super) interface: Arc<Interface>,
    /// The readers, each with its number of threads; the first is opened first.
    pub(super) readers: Vec<(Arc<Reader>, usize)>,
    pub(super) weights: SharedWeights,
    /// The runs; once they are terminated, no more readers are opened.
    pub(super) running: Arc<Running>,
}

impl Plan {
    /// Opens the readers on a thread of its own: answers need not wait for them.
    pub(super) fn carry_out(self) -> Option<JoinHandle<()>> {
        let opening = std::thread::Builder::new().name("svc-open".into());
        // Without readers the whole graph goes on reading states.
        let thread = opening.spawn(move || {
            let Some(part) = self.part() else {
                return;
            };
            for (reader, threads) in &self.readers {
                if self.running.is_terminated() {
                    break;
                }
                let session = self.open(&part, *threads);
                reader.0.lock().session = session;
            }
            allocator::give_back_end();
            allocator::give_back();
        });
        thread.ok()
    }

    fn part(&self) -> Option<Bytes> {
        let states = States {
            kept: &self.interface.kept,
            even_input: self.interface.even_input,
        };
        reading_part(&self.graph, states)
    }

    fn open(&self, part: &Bytes, threads: usize) -> Option<Session> {
        let builder = self.weights.session(&self.environment, threads);
        builder.ok()?.commit_from_memory(part).ok()
    }
}
