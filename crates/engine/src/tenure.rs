//! The model that answers now, and those that it has replaced, for as long as a request is with them.
//!
//! A request takes the model of its arrival and keeps it to its end: its rows are that model's, and so are its logits
//! and its answer. What replaces a model changes nothing for whoever has come before.

use std::ops::Deref;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::session::allocator;
use crate::stages::{Backend, Stages};

/// A model that requests hold. When the last of them lets go of one that was replaced, a thread of the engine frees it:
/// that takes its time, and whoever lets go may be the thread of the callers.
pub struct Held {
    /// There until it is dropped.
    backend: Option<Arc<dyn Backend>>,
    stages: Weak<Stages>,
}

impl Deref for Held {
    type Target = dyn Backend;

    fn deref(&self) -> &Self::Target {
        #[allow(clippy::expect_used)] // it is taken in `drop` alone
        self.backend.as_deref().expect("a model that is held")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let (Some(backend), Some(stages)) = (self.backend.take(), self.stages.upgrade()) else {
            return;
        };
        // An engine that has ended has no threads; then it is freed here.
        let _ = stages.send(backend, |backend, _| {
            drop(backend);
            allocator::give_back();
        });
    }
}

/// Who answers.
pub struct Tenure {
    stages: Weak<Stages>,
    state: Mutex<State>,
}

struct State {
    current: Arc<Held>,
    /// Those of them that are still held.
    replaced: Vec<Weak<Held>>,
}

impl Tenure {
    /// The tenure that begins with `backend`.
    pub fn new(backend: Arc<dyn Backend>, stages: &Weak<Stages>) -> Self {
        let current = held(backend, stages);
        Self {
            stages: stages.clone(),
            state: Mutex::new(State {
                current,
                replaced: Vec::new(),
            }),
        }
    }

    /// The model that answers whoever comes now.
    pub fn current(&self) -> Arc<Held> {
        Arc::clone(&self.state.lock().current)
    }

    /// Has `backend` answer from now on; the one before it is freed when nobody holds it any more.
    pub fn replace(&self, backend: Arc<dyn Backend>) {
        let next = held(backend, &self.stages);
        let mut state = self.state.lock();
        let before = std::mem::replace(&mut state.current, next);
        state.replaced.retain(|model| model.strong_count() > 0);
        state.replaced.push(Arc::downgrade(&before));
        drop(state);
        drop(before);
    }

    /// Every model that is still at work.
    pub fn all(&self) -> Vec<Arc<Held>> {
        let state = self.state.lock();
        let replaced = state.replaced.iter().filter_map(Weak::upgrade);
        replaced.chain([Arc::clone(&state.current)]).collect()
    }
}

fn held(backend: Arc<dyn Backend>, stages: &Weak<Stages>) -> Arc<Held> {
    Arc::new(Held {
        backend: Some(backend),
        stages: stages.clone(),
    })
}
