//! The files of weights beside a graph that are links, as in the cache of a model hub: ONNX Runtime
//! takes no weights that lie outside the folder of a graph that it reads from memory.

use std::path::{Path, PathBuf};

use prost::Message;
use prost::bytes::Bytes;

use super::proto::{
    Field, KeyValue, LOCATION, fields, graph_tag, model_tag, parts, put, tensor_tag, with_changed,
};
use super::weights::is_elsewhere;

/// Returns the graph with its files of weights under the names that links of `folder` lead to, and
/// the folder in which all of these are. `None` where no file is a link to another folder, or the
/// links lead to several.
pub fn followed(graph: &Bytes, folder: &Path) -> Option<(Bytes, PathBuf)> {
    let place = first_place(graph, folder)?;
    if dunce::canonicalize(folder).is_ok_and(|own| own == place) {
        return None;
    }
    let follow = |tensor: &Bytes| -> Option<Bytes> {
        let mut changed = Vec::with_capacity(tensor.len() + 64);
        for field in fields(tensor)? {
            match location(&field) {
                Some(name) => {
                    let (parent, name) = target(folder, &name)?;
                    if parent != place {
                        return None;
                    }
                    let entry = KeyValue::new(LOCATION, name).encode_to_vec();
                    put(&mut changed, tensor_tag::EXTERNAL_DATA, &entry);
                }
                None => changed.extend_from_slice(&field.whole),
            }
        }
        Some(changed.into())
    };
    let changed = with_changed(graph, model_tag::GRAPH, &mut |graph| {
        with_changed(graph, graph_tag::INITIALIZER, &mut &follow)
    })?;
    Some((changed, place))
}

/// Returns the folder of the first file of weights, without a copy of anything in the graph.
fn first_place(graph: &Bytes, folder: &Path) -> Option<PathBuf> {
    let graphs = parts(graph, model_tag::GRAPH);
    let tensors = graphs.flat_map(|graph| parts(&graph.value, graph_tag::INITIALIZER));
    let entries = tensors.flat_map(|tensor| parts(&tensor.value, tensor_tag::EXTERNAL_DATA));
    let name = entries.into_iter().find_map(|entry| location(&entry))?;
    target(folder, &name).map(|(place, _)| place)
}

/// Returns the name of the file in a field of a tensor that says where its bytes are.
fn location(field: &Field) -> Option<String> {
    let is_entry = field.tag == tensor_tag::EXTERNAL_DATA;
    let entry = is_entry.then(|| KeyValue::decode(field.value.clone()).ok());
    entry
        .flatten()
        .filter(|entry| entry.key == LOCATION && !is_elsewhere(&entry.value))
        .map(|entry| entry.value)
}

/// Returns the folder and the name of the file that a file of `folder` is, or is a link to. All
/// names of files elsewhere are for ONNX Runtime to judge.
fn target(folder: &Path, name: &str) -> Option<(PathBuf, String)> {
    if name.contains(['/', '\\']) || name.starts_with('.') {
        return None;
    }
    let file = dunce::canonicalize(folder.join(name)).ok()?;
    let name = file.file_name()?.to_str()?.to_owned();
    Some((file.parent()?.to_owned(), name))
}
