//! The engine behind JavaScript's object, and the threads that load its models and close it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use parking_lot::Mutex;

use crate::Error;
use crate::engine::{Engine, Options};
use crate::model::Model;
use crate::session::allocator;

/// The place of an engine, which is empty until the engine is loaded.
#[derive(Default)]
pub(super) struct Slot {
    engine: Mutex<Option<Arc<Engine>>>,
    /// The lock that is held while a model is loaded.
    loading: Mutex<()>,
    ended: AtomicBool,
    /// The loaded models that wait for their switch on the thread of the callers, which may never
    /// happen.
    handed: Mutex<Vec<Handed>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// A model on its way to the engine; `None` once it is there, or once the engine has ended.
pub(super) type Handed = Arc<Mutex<Option<Model>>>;

impl Slot {
    /// Does `work` on a thread of its own; a shutdown waits for it.
    pub fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        let mut threads = self.threads.lock();
        threads.retain(|thread| !thread.is_finished());
        threads.push(std::thread::spawn(work));
    }

    pub fn load(&self, options: Options) -> Result<(), Error> {
        let _loading = self.loading.lock();
        if self.ended.load(Ordering::SeqCst) {
            return Err(Error::Closing);
        }
        let engine = catch_unwind(|| Engine::load(options)).unwrap_or(Err(Error::Panicked))?;
        *self.engine.lock() = Some(Arc::new(engine));
        Ok(())
    }

    pub fn load_next(&self, folder: PathBuf) -> Result<Handed, Error> {
        let _loading = self.loading.lock();
        let engine = self.running().ok_or(Error::Closing)?;
        let load = AssertUnwindSafe(|| engine.load_next(folder));
        let model = catch_unwind(load).unwrap_or(Err(Error::Panicked))?;
        let handed = Arc::new(Mutex::new(Some(model)));
        self.handed.lock().push(Arc::clone(&handed));
        Ok(handed)
    }

    pub fn replace(&self, handed: &Handed) -> Result<(), Error> {
        self.handed
            .lock()
            .retain(|other| !Arc::ptr_eq(other, handed));
        let engine = self.running().ok_or(Error::Closing)?;
        let model = handed.lock().take().ok_or(Error::Closing)?;
        engine.replace(Arc::new(model));
        Ok(())
    }

    pub fn engine(&self) -> Option<Arc<Engine>> {
        self.engine.lock().clone()
    }

    /// Returns the engine, unless it is ending.
    fn running(&self) -> Option<Arc<Engine>> {
        self.engine().filter(|_| !self.ended.load(Ordering::SeqCst))
    }

    /// Lets the engine finish, then frees its model; waits for a model that is being loaded.
    pub fn close(&self) {
        self.ended.store(true, Ordering::SeqCst);
        let _loading = self.loading.lock();
        self.drop_handed();
        if let Some(engine) = self.engine() {
            engine.close();
        }
        self.engine.lock().take();
        // The memory of the model and of its kept states is free now, in the middle of the heaps.
        allocator::give_back();
    }

    /// Ends the engine, even if it is still being loaded, and every thread: ONNX Runtime must be at
    /// rest when the process exits.
    pub fn shutdown(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.shutdown_engine();
        {
            // A first model may have finished loading meanwhile.
            let _loading = self.loading.lock();
            self.shutdown_engine();
        }
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // A thread that panicked has nothing left to end.
            let _ = thread.join();
        }
        self.drop_handed();
    }

    fn shutdown_engine(&self) {
        if let Some(engine) = self.engine() {
            engine.shutdown();
        }
    }

    fn drop_handed(&self) {
        for handed in std::mem::take(&mut *self.handed.lock()) {
            handed.lock().take();
        }
    }
}
