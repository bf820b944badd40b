//! The prefill of states: the sessions that run only the part of the graph that it needs, see
//! [`crate::onnx::prefill`].

use std::sync::Arc;

use ort::session::{OutputSelector, RunOptions, Session};
use parking_lot::Mutex;
use prost::bytes::Bytes;

use super::blocks::Blocks;
use super::interface::Interface;
use super::kv_cache::KvCache;
use super::lane::{Input, LanePlan, graph_inputs};
use super::running::Running;
use crate::onnx::prefill::{Prefill, prefill_graph};

/// A session for a part of the graph. It prefills once it is open and was found to give the same
/// bits as the whole graph.
#[derive(Default)]
pub(super) struct PrefillSession(Mutex<Inner>);

/// Sessions that prefill, each with its number of threads.
pub(super) type PrefillSessions = Vec<(Arc<PrefillSession>, usize)>;

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

/// Opens the sessions for prefill, each with its number of threads, for the graph that the sessions
/// of `plan` have; the first is opened first. Without one of them the whole graph goes on prefilling.
pub(super) fn open_prefills(
    plan: &LanePlan,
    graph: &Bytes,
    sessions: &[(Arc<PrefillSession>, usize)],
) {
    let prefill = Prefill {
        kv_pairs: &plan.interface.kv_pairs,
        even_input: plan.interface.even_input,
    };
    let Some(part) = prefill_graph(graph, prefill) else {
        return;
    };
    for (prefill, threads) in sessions {
        if plan.running.is_terminated() {
            return;
        }
        let session = open(plan, &part, *threads);
        prefill.0.lock().session = session;
    }
}

fn open(plan: &LanePlan, part: &Bytes, threads: usize) -> Option<Session> {
    let weights = &plan.main.weights;
    let builder = weights.session(&plan.environment, threads, Some(part));
    builder.ok()?.commit_from_memory(part).ok()
}
