//! The model that answers now, and those that it has replaced, for as long as a request is with them.
//!
//! A request takes the model of its arrival and keeps it to its end: its rows are that model's, and so are its logits
//! and its answer. What replaces a model changes nothing for whoever has come before.

use std::ops::Deref;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::backend::Backend;
use crate::pace::Pace;

/// Frees a model that nobody holds any more.
pub type Free = Arc<dyn Fn(Arc<dyn Backend>) + Send + Sync>;

/// A model that requests hold; it is freed when the last of them lets go of it.
pub struct Held {
    /// There until it is dropped.
    backend: Option<Arc<dyn Backend>>,
    free: Free,
    /// How fast its rows are.
    pub pace: Pace,
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
        if let Some(backend) = self.backend.take() {
            (self.free)(backend);
        }
    }
}

/// Who answers.
pub struct Tenure {
    free: Free,
    state: Mutex<State>,
}

struct State {
    current: Arc<Held>,
    /// Those of them that are still held.
    replaced: Vec<Weak<Held>>,
}

impl Tenure {
    /// The tenure that begins with `backend`.
    pub fn new(backend: Arc<dyn Backend>, free: Free) -> Self {
        let current = held(backend, &free);
        Self {
            free,
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
        let next = held(backend, &self.free);
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

fn held(backend: Arc<dyn Backend>, free: &Free) -> Arc<Held> {
    Arc::new(Held {
        backend: Some(backend),
        free: Arc::clone(free),
        pace: Pace::default(),
    })
}
