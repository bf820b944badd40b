//! The model that answers now, and the models that it has replaced, for as long as a request uses
//! them.
//!
//! A request takes the model of its arrival and keeps it to its end: its rows, its logits and its
//! answer are made by that model. A replacement changes nothing for the requests that arrived
//! before it.

use std::ops::Deref;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::backend::Backend;
use crate::pace::Pace;

/// Frees a model that no request holds any more.
pub type Free = Arc<dyn Fn(Arc<dyn Backend>) + Send + Sync>;

/// A model that requests hold; it is freed when the last request releases it.
pub struct Held {
    /// The model; `None` only while it is being dropped.
    backend: Option<Arc<dyn Backend>>,
    free: Free,
    /// The measured speed of the model's rows.
    pub pace: Pace,
}

impl Deref for Held {
    type Target = dyn Backend;

    fn deref(&self) -> &Self::Target {
        #[allow(clippy::expect_used)] // only `drop` takes it
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

/// The current model and the replaced ones that are still in use.
pub struct Tenure {
    free: Free,
    inner: Mutex<Inner>,
}

struct Inner {
    current: Arc<Held>,
    /// The replaced models that were still held at the latest replacement.
    replaced: Vec<Weak<Held>>,
}

impl Tenure {
    /// Returns a tenure whose first model is `backend`.
    pub fn new(backend: Arc<dyn Backend>, free: Free) -> Self {
        let current = held(backend, &free);
        Self {
            free,
            inner: Mutex::new(Inner {
                current,
                replaced: Vec::new(),
            }),
        }
    }

    /// Returns the model that answers the requests that arrive now.
    pub fn current(&self) -> Arc<Held> {
        Arc::clone(&self.inner.lock().current)
    }

    /// Makes `backend` the current model; the one before it is freed when no request holds it any
    /// more.
    pub fn replace(&self, backend: Arc<dyn Backend>) {
        let next = held(backend, &self.free);
        let mut inner = self.inner.lock();
        let before = std::mem::replace(&mut inner.current, next);
        inner.replaced.retain(|model| model.strong_count() > 0);
        inner.replaced.push(Arc::downgrade(&before));
        drop(inner);
        drop(before);
    }

    /// Returns every model that is still in use.
    pub fn all(&self) -> Vec<Arc<Held>> {
        let inner = self.inner.lock();
        let replaced = inner.replaced.iter().filter_map(Weak::upgrade);
        replaced.chain([Arc::clone(&inner.current)]).collect()
    }
}

fn held(backend: Arc<dyn Backend>, free: &Free) -> Arc<Held> {
    Arc::new(Held {
        backend: Some(backend),
        free: Arc::clone(free),
        pace: Pace::default(),
    })
}
