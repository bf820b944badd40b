//! The files of a model whose encoder has a graph of its own.

use std::fs;

use serde_json::{Value, json};

use super::Files;
use crate::Error;

/// The beginning of the name of an encoder's file.
const ENCODER: &str = "encoder";
/// The folders of a model that may hold its graphs, the first one first.
const FOLDERS: [&str; 2] = ["", "onnx/"];

/// Returns the member `graphs` of a manifest: an encoder, and beside it the graph of which the name
/// begins with `second` and ends like the encoder's. `None` for a folder with other graphs.
///
/// # Errors
/// [`crate::Error::BadModel`] where the second graph is missing, or it is not clear which two
/// belong together.
pub(super) fn two_graphs(files: &Files<'_>, second: &str) -> Result<Option<Value>, Error> {
    for folder in FOLDERS {
        let names = graphs_in(files, folder);
        let is_part = |name: &String| name.starts_with(ENCODER) || name.starts_with(second);
        if !names.iter().all(is_part) {
            return Ok(None);
        }
        let encoders = names.iter().filter_map(|name| name.strip_prefix(ENCODER));
        let encoders: Vec<&str> = encoders.collect();
        let path = |part: &str, ending: &str| format!("{folder}{part}{ending}");
        let ending = match encoders.as_slice() {
            [] => continue,
            [only] => only,
            several => match several.iter().find(|ending| **ending == ".onnx") {
                Some(usual) => usual,
                None => {
                    let problem = format!("there are {} encoders: keep one", several.len());
                    return Err(files.bad(&path(ENCODER, several[0]), problem));
                }
            },
        };
        let (encoder, other) = (path(ENCODER, ending), path(second, ending));
        if !names.contains(&format!("{second}{ending}")) {
            return Err(files.bad(&encoder, format!("there is no {other}, which it needs")));
        }
        return Ok(Some(json!({"encoder": encoder, second: other})));
    }
    Ok(None)
}

/// Returns the names of the graphs in a folder of the model, in order.
fn graphs_in(files: &Files<'_>, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(files.path(folder)).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".onnx")).collect();
    names.sort();
    names
}
