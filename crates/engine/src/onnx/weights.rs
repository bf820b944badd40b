//! The weights of an ONNX graph, read once, so that all sessions of a model can share them.

use std::collections::HashSet;
use std::path::Path;

use prost::Message;
use prost::bytes::Bytes;

use super::proto::{
    Initializer, KeyValue, Tensor, count, data_type, fields, graph_tag, model_tag, with_changed,
};
use super::stored::read_beside;

/// The values of a weight, in the types that sessions can share.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Values of type float32.
    F32(Vec<f32>),
    /// Values of type int8.
    I8(Vec<i8>),
    /// Values of type uint8.
    U8(Vec<u8>),
}

impl Values {
    /// Returns their size in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::F32(values) => size_of_val(values.as_slice()),
            Self::I8(values) => values.len(),
            Self::U8(values) => values.len(),
        }
    }
}

/// One initializer of a graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Weight {
    /// Its name in the graph.
    pub name: String,
    /// Its dimensions.
    pub shape: Vec<i64>,
    /// Its values in row-major order.
    pub values: Values,
}

/// The smallest weight that is worth sharing, in bytes; shapes and scalars must stay where the
/// optimizer sees them.
const LEAST_BYTES: usize = 16 * 1024;

/// `TensorProto.DataLocation` of values that are not in the graph.
const OUTSIDE: i32 = 1;

/// The place that a graph names for the weights that its sessions are given.
const ELSEWHERE: &str = "weights-of-all-sessions";

/// A graph without its large weights, and these weights.
pub struct TakenApart {
    /// The graph, in which the weights are said to be elsewhere.
    pub graph: Bytes,
    /// The weights, each of which its sessions have to be given.
    pub weights: Vec<Weight>,
}

/// Takes the large weights out of a graph, so that its sessions need not read them one after the
/// other. `folder` holds the files of the weights that are not in the graph. `None` for a file that
/// is no ONNX graph or has no large weights; ONNX Runtime reports what is wrong with it.
pub fn take_apart(graph: &Bytes, folder: &Path) -> Option<TakenApart> {
    let mut weights = Vec::new();
    let graph = with_changed(graph, model_tag::GRAPH, &mut |graph| {
        with_changed(graph, graph_tag::INITIALIZER, &mut |initializer| {
            let tensor = Tensor::decode(initializer.clone()).ok()?;
            let Some((weight, elsewhere)) = taken_out(tensor, folder) else {
                return Some(initializer.clone());
            };
            weights.push(weight);
            Some(elsewhere)
        })
    })?;
    let names: HashSet<&str> = weights.iter().map(|weight| weight.name.as_str()).collect();
    (!weights.is_empty() && names.len() == weights.len()).then_some(TakenApart { graph, weights })
}

/// Whether a tensor's place is that of the weights that sessions are given.
pub fn is_elsewhere(place: &str) -> bool {
    place == ELSEWHERE
}

/// Whether a tensor is a weight that sessions are given.
pub fn is_given(tensor: &Initializer) -> bool {
    let mut entries = tensor.external_data.iter();
    entries.any(|entry| entry.key == "location" && is_elsewhere(&entry.value))
}

/// Returns the names of the weights that a session of the graph has to be given.
pub fn given(graph: &Bytes) -> HashSet<String> {
    let parts = |message: &Bytes, tag: u32| {
        let fields = fields(message).into_iter().flatten();
        fields.filter(move |field| field.tag == tag)
    };
    let graphs = parts(graph, model_tag::GRAPH);
    let tensors = graphs.flat_map(|graph| parts(&graph.value, graph_tag::INITIALIZER));
    let tensors = tensors.filter_map(|field| Initializer::decode(field.value).ok());
    let given = tensors.filter(is_given);
    given.map(|tensor| tensor.name).collect()
}

/// Returns the weight that a tensor is, and the tensor without its values; `None` for a small one,
/// one of another type, and one whose values are not all there.
fn taken_out(tensor: Tensor, folder: &Path) -> Option<(Weight, Bytes)> {
    let bytes_each = match tensor.data_type {
        data_type::FLOAT => 4,
        data_type::INT8 | data_type::UINT8 => 1,
        _ => return None,
    };
    let length = count(&tensor.dims)?.checked_mul(bytes_each)?;
    if length < LEAST_BYTES {
        return None;
    }
    let raw = match (&tensor.raw_data, tensor.data_location) {
        (Some(raw), 0) => raw.clone(),
        (None, 0) => return None,
        _ => read_beside(&tensor, folder)?.into(),
    };
    if raw.len() != length {
        return None;
    }
    let values = match tensor.data_type {
        data_type::FLOAT => {
            let (chunks, _) = raw.as_chunks::<4>();
            Values::F32(chunks.iter().copied().map(f32::from_le_bytes).collect())
        }
        data_type::INT8 => Values::I8(raw.iter().map(|byte| *byte as i8).collect()),
        _ => Values::U8(raw.into()),
    };
    let entry = |key: &str, value: String| KeyValue {
        key: key.to_owned(),
        value,
    };
    let elsewhere = Tensor {
        raw_data: None,
        external_data: vec![
            entry("location", ELSEWHERE.to_owned()),
            entry("length", length.to_string()),
        ],
        data_location: OUTSIDE,
        ..tensor
    };
    let weight = Weight {
        name: elsewhere.name.clone(),
        shape: elsewhere.dims.clone(),
        values,
    };
    Some((weight, elsewhere.encode_to_vec().into()))
}
