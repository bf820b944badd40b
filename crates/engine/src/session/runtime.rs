//! The ONNX Runtime library: loaded once, silent, and without telemetry.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ort::environment::Environment;
use parking_lot::Mutex;

use super::arena::register_arena;
use crate::Error;

/// ONNX Runtime allows one environment per process, for ever, so the first library stays.
static LIBRARY: Mutex<Option<(PathBuf, Environment)>> = Mutex::new(None);

/// The environment of the ONNX Runtime library at `path`, which is loaded on the first call.
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
    // The errors of a run reach us as values; the library's own log would print them a second time.
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

/// The shipped library uploads usage data unless this stands in the process's environment before its own is built;
/// its API call for it does not stop the uploader.
fn turn_telemetry_off() {
    // SAFETY: called once, under the lock of `LIBRARY`, before ONNX Runtime is loaded. Node.js reads and writes its
    // environment through libuv on its main thread only, while that thread is not in this call.
    unsafe { std::env::set_var("ORT_DISABLE_TELEMETRY", "1") };
}

/// The innermost cause of an error in one line: the outer texts of `ort` hide it.
pub(super) fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    one_line(&innermost.to_string())
}

/// A message of the library without its source file, its status number and the folders of this machine.
fn one_line(text: &str) -> String {
    let (_, message) = text.rsplit_once(" : FAIL : ").unwrap_or(("", text));
    // `…failed:/onnxruntime_src/…/model.cc:177 onnxruntime::Model::Model(…) what is wrong`
    let message = match message.split_once("/onnxruntime_src/") {
        Some((what, source)) => {
            let (_, why) = source.rsplit_once(") ").unwrap_or(("", ""));
            format!("{what} {why}")
        }
        None => message.to_owned(),
    };
    let words = message
        .split_whitespace()
        .map(|word| match word.rsplit_once('/') {
            Some((folder, name)) if folder.starts_with('/') => name,
            _ => word,
        });
    words.collect::<Vec<_>>().join(" ")
}

/// A run or a tensor that failed, as the engine's error.
pub(super) fn run_failed(error: ort::Error) -> Error {
    Error::ModelFailed {
        cause: cause(&error),
    }
}

/// The outcome of a call whose status says nothing that anybody could do better with.
pub(super) fn taken(status: ort::sys::OrtStatusPtr, problem: &str) -> ort::Result<()> {
    if status.0.is_null() {
        return Ok(());
    }
    // SAFETY: a status that is not null is the caller's to free.
    unsafe { (ort::api().ReleaseStatus)(status.0) };
    Err(ort::Error::new(problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_the_library_names_no_source_file_and_no_folder() {
        let said = "Load model from /srv/models/a/model.onnx failed:/onnxruntime_src/onnxruntime/core/graph/model.cc:177 \
            onnxruntime::Model::Model(onnx::ModelProto&&, const Logger&) ModelProto does not have a graph.";
        let line = "Load model from model.onnx failed: ModelProto does not have a graph.";
        assert_eq!(one_line(said), line);
        let said = "x.cc:1 : 1 : FAIL : Failed to load library /a/b/lib.so with error: /a/b/lib.so: no\nfile";
        assert_eq!(
            one_line(said),
            "Failed to load library lib.so with error: lib.so: no file"
        );
    }
}
