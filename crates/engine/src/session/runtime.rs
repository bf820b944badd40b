//! The ONNX Runtime library: loaded once, silent, and without telemetry.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ort::environment::Environment;
use parking_lot::Mutex;

use super::arena::register_arena;
use super::failure::cause;
use crate::Error;

/// The loaded library and its environment. ONNX Runtime allows one environment per process, for
/// ever, so the first library stays.
static LIBRARY: Mutex<Option<(PathBuf, Environment)>> = Mutex::new(None);

/// Returns the environment of the ONNX Runtime library at `path`, which is loaded on the first
/// call.
///
/// # Errors
/// [`Error::RuntimeNotFound`] and [`Error::RuntimeFailed`]; another path may be tried after both.
pub(super) fn environment(path: &Path) -> Result<Environment, Error> {
    let failed = |cause: String| Error::RuntimeFailed {
        path: path.to_owned(),
        cause,
    };
    let not_found = || Error::RuntimeNotFound {
        path: path.to_owned(),
    };
    let absolute = dunce::canonicalize(path).map_err(|_| not_found())?;
    if !absolute.is_file() {
        return Err(not_found());
    }
    let mut library = LIBRARY.lock();
    if let Some((loaded, environment)) = library.as_ref() {
        return if *loaded == absolute {
            Ok(environment.clone())
        } else {
            let loaded = loaded.display();
            Err(failed(format!("this process already uses {loaded}")))
        };
    }
    turn_telemetry_off();
    let builder = ort::init_from(&absolute).map_err(|error| failed(cause(&error)))?;
    // The errors of a run are returned as values; the library's own log would print them a second
    // time.
    let silent = Arc::new(|_, _: &str, _: &str, _: &str, _: &str| {});
    let environment = builder
        .with_name("svc")
        .with_telemetry(false)
        .with_logger(silent)
        .build();
    let environment = environment.map_err(|error| failed(cause(&error)))?;
    register_arena(&environment).map_err(|error| failed(cause(&error)))?;
    *library = Some((absolute, environment.clone()));
    Ok(environment)
}

/// Turns telemetry off. The shipped library uploads usage data unless this variable is in the
/// process's environment before the library's own is built; its API call for it does not stop the
/// uploader.
fn turn_telemetry_off() {
    // SAFETY: the function is called once, under the lock of `LIBRARY`, before ONNX Runtime is
    // loaded. Node.js reads and writes its environment through libuv on its main thread only, while
    // that thread is not in this call.
    unsafe { std::env::set_var("ORT_DISABLE_TELEMETRY", "1") };
}
