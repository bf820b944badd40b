//! The runs that are under way, and how another thread stops them.

use ort::AsPointer;
use ort::session::{HasSelectedOutputs, RunOptions};
use parking_lot::Mutex;

/// The runs that are under way, so that another thread can stop them.
#[derive(Default)]
pub(super) struct Running {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    terminated: bool,
    options: Vec<RunHandle>,
}

/// The options of a run that is under way.
#[derive(Clone, Copy, PartialEq, Eq)]
struct RunHandle(*const ort::sys::OrtRunOptions);

// SAFETY: the pointer is used only for `RunOptionsSetTerminate`, which is made to be called from
// another thread than the run's.
unsafe impl Send for RunHandle {}

impl RunHandle {
    fn terminate(self) {
        // SAFETY: a handle is in the list only while its options live, see `RunGuard`. The status
        // would only report that the pointer is null.
        let _ = unsafe { (ort::api().RunOptionsSetTerminate)(self.0.cast_mut()) };
    }
}

/// A guard that takes a run off the list when it is over. It borrows the options, so they outlive
/// it.
pub(super) struct RunGuard<'r> {
    running: &'r Running,
    handle: RunHandle,
}

impl Running {
    pub(super) fn start<'r>(&'r self, options: &'r RunOptions<HasSelectedOutputs>) -> RunGuard<'r> {
        let handle = RunHandle(options.ptr());
        let mut inner = self.inner.lock();
        if inner.terminated {
            handle.terminate();
        }
        inner.options.push(handle);
        RunGuard {
            running: self,
            handle,
        }
    }

    pub(super) fn terminate(&self) {
        let mut inner = self.inner.lock();
        inner.terminated = true;
        for handle in &inner.options {
            handle.terminate();
        }
    }

    pub(super) fn is_terminated(&self) -> bool {
        self.inner.lock().terminated
    }
}

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        let mut inner = self.running.inner.lock();
        inner.options.retain(|handle| *handle != self.handle);
    }
}
