//! The conversion of ONNX Runtime's failures into the engine's own errors.

use crate::Error;

/// Returns the innermost cause of an error in one line: the outer texts of `ort` hide it.
pub(super) fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    one_line(&innermost.to_string())
}

/// Returns a message of the library without its source file, its status number and the folders of
/// this machine.
fn one_line(text: &str) -> String {
    let (_, message) = text.rsplit_once(" : FAIL : ").unwrap_or(("", text));
    // A message looks like this:
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

/// Returns the engine's error for a run or a tensor that failed.
pub(super) fn run_failed(error: ort::Error) -> Error {
    Error::ModelFailed {
        cause: cause(&error),
    }
}

/// Returns the outcome of a call; a failed call's own message is replaced by `problem`, since it
/// tells nothing useful.
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
        let said = "the type tensor(float16)/map of encoder/layer.0/weight is not known";
        assert_eq!(one_line(said), said);
    }
}
