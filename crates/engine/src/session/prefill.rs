//! The prefill of states: the sessions that run only the part of the graph that it needs, see
//! [`crate::onnx::prefill`].

use std::sync::Arc;
use std::thread::JoinHandle;

use ort::environment::Environment;
use ort::session::{OutputSelector, RunOptions, Session};
use parking_lot::Mutex;
use prost::bytes::Bytes;

use super::allocator;
use super::blocks::Blocks;
use super::interface::Interface;
use super::kv_cache::KvCache;
use super::lane::{Input, graph_inputs};
use super::running::Running;
use super::shared_weights::SharedWeights;
use crate::onnx::prefill::{Prefill, prefill_graph};

/// A session for a part of the graph. It prefills once it is open and was found to give the same
/// bits as the whole graph.
#[derive(Default)]
pub(super) struct PrefillSession(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    session: Option<Session>,
    agrees: bool,
}

impl PrefillSession {
    /// Whether the part prefills.
    pub(super) fn agrees(&self) -> bool {
        self.0.lock().agrees
    }

    /// Returns the KV cache of a state from the part, or from the whole graph; the first time from
    /// both, to compare them.
    pub(super) fn prefill(
        &self,
        part: impl FnOnce(&mut Session) -> ort::Result<KvCache>,
        whole: impl FnOnce() -> ort::Result<KvCache>,
    ) -> ort::Result<KvCache> {
        let mut inner = self.0.lock();
        let agrees = inner.agrees;
        let Some(session) = &mut inner.session else {
            return whole();
        };
        if agrees {
            return part(session);
        }
        let cache = whole()?;
        if part(session).is_ok_and(|part| part.is_same(&cache)) {
            inner.agrees = true;
        } else {
            inner.session = None;
        }
        Ok(cache)
    }
}

/// The run of a prefill, apart from its session.
pub(super) struct PrefillRun<'a> {
    pub(super) interface: &'a Interface,
    /// The KV cache that the run begins with, which holds no token.
    pub(super) empty: &'a KvCache,
    pub(super) blocks: &'a Arc<Blocks>,
    pub(super) running: &'a Running,
    pub(super) inputs: &'a [(&'static str, Input<'a>)],
    pub(super) tokens: usize,
}

impl PrefillRun<'_> {
    /// Returns the KV cache that a session makes of the inputs.
    pub(super) fn on(&self, session: &mut Session) -> ort::Result<KvCache> {
        let mut cache = KvCache::with_room(self.interface, self.tokens, self.blocks)?;
        let pairs = &self.interface.kv_pairs;
        let mut selector = OutputSelector::no_default();
        for (pair, value) in pairs.iter().zip(cache.values.drain(..)) {
            let present = &pair.present;
            selector = selector.with(present).preallocate(present, value);
        }
        let options = RunOptions::new()?.with_outputs(selector);
        let _running = self.running.start(&options);
        let values = graph_inputs(self.inputs, self.interface, self.empty)?;
        let mut outputs = session.run_with_options(values, &options)?;
        for pair in pairs {
            let value = outputs.remove(&pair.present);
            cache
                .values
                .push(value.ok_or_else(|| ort::Error::new("the graph gave no KV cache"))?);
        }
        Ok(cache)
    }
}

/// The parts that the sessions for prefill are opened with.
pub(super) struct PrefillPlan {
    pub(super) environment: Environment,
    /// The whole graph.
    pub(super) graph: Bytes,
    pub(super) interface: Arc<Interface>,
    /// The sessions, each with its number of threads; the first is opened first.
    pub(super) sessions: Vec<(Arc<PrefillSession>, usize)>,
    pub(super) weights: SharedWeights,
    /// The runs; once they are terminated, no more sessions are opened.
    pub(super) running: Arc<Running>,
}

impl PrefillPlan {
    /// Opens the sessions on a thread of its own: answers need not wait for them.
    pub(super) fn carry_out(self) -> Option<JoinHandle<()>> {
        let opening = std::thread::Builder::new().name("svc-open".into());
        // Without these sessions the whole graph goes on prefilling.
        let thread = opening.spawn(move || {
            let Some(part) = self.part() else {
                return;
            };
            for (prefill, threads) in &self.sessions {
                if self.running.is_terminated() {
                    break;
                }
                let session = self.open(&part, *threads);
                prefill.0.lock().session = session;
            }
            allocator::give_back_end();
            allocator::give_back();
        });
        thread.ok()
    }

    fn part(&self) -> Option<Bytes> {
        let prefill = Prefill {
            kv_pairs: &self.interface.kv_pairs,
            even_input: self.interface.even_input,
        };
        prefill_graph(&self.graph, prefill)
    }

    fn open(&self, part: &Bytes, threads: usize) -> Option<Session> {
        let builder = self.weights.session(&self.environment, threads);
        builder.ok()?.commit_from_memory(part).ok()
    }
}
