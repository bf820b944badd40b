//! The sessions that are opened while the first ones answer already.

use std::sync::Arc;
use std::thread::JoinHandle;

use prost::bytes::Bytes;

use super::allocator;
use super::lane::LanePlan;
use super::lanes::Lanes;
use super::prefill::{PrefillSessions, open_prefills};

/// The sessions that the first answer need not wait for.
pub(super) struct Later {
    pub(super) plan: LanePlan,
    /// The sessions that are open.
    pub(super) lanes: Arc<Lanes>,
    /// The numbers of threads of the sessions that are not, with the session that prefills beside
    /// each.
    pub(super) others: PrefillSessions,
    /// The graph of which a part prefills, and all sessions that do so, with their numbers of
    /// threads; `None` where none does.
    pub(super) prefills: Option<(Bytes, PrefillSessions)>,
}

impl Later {
    /// Opens the sessions on a thread of its own, until the runs are terminated.
    pub(super) fn carry_out(self) -> Option<JoinHandle<()>> {
        if self.others.is_empty() && self.prefills.is_none() {
            return None;
        }
        let thread = std::thread::Builder::new().name("svc-open".into());
        let thread = thread.spawn(move || {
            self.open_others();
            if let Some((graph, prefills)) = &self.prefills {
                open_prefills(&self.plan, graph, prefills);
            }
            allocator::give_back_end();
            allocator::give_back();
        });
        thread.ok()
    }

    /// Opens the other sessions of the whole graph. If one cannot be opened, for instance for want of
    /// memory, the first session goes on alone.
    fn open_others(&self) {
        let mut opened = Vec::new();
        for (prefill, threads) in &self.others {
            if self.plan.running.is_terminated() {
                return;
            }
            match self.plan.open(*threads, Arc::clone(prefill)) {
                Ok(lane) => opened.push((*threads, lane)),
                Err(_) => return,
            }
        }
        if !opened.is_empty() {
            self.lanes.complete(opened);
        }
    }
}
