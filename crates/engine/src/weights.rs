//! The weights of an ONNX graph, read once, so that all sessions of a model can share them.

use prost::Message;
use prost::bytes::Bytes;

use crate::onnx::proto::{Tensor, data_type, fields, graph_tag, model_tag};

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

/// Returns the large weights that the file itself holds. The list is empty for a file that is no
/// ONNX graph or whose weights lie outside it: ONNX Runtime will read those, or report what is
/// wrong.
pub fn large_weights(graph: &Bytes) -> Vec<Weight> {
    initializers(graph)
        .unwrap_or_default()
        .into_iter()
        .filter_map(weight)
        .collect()
}

fn initializers(model: &Bytes) -> Option<Vec<Tensor>> {
    let mut parts = fields(model)?.into_iter();
    let graph = parts.find(|field| field.tag == model_tag::GRAPH)?;
    let tensors = fields(&graph.value)?.into_iter();
    let tensors = tensors.filter(|field| field.tag == graph_tag::INITIALIZER);
    tensors
        .map(|field| Tensor::decode(field.value).ok())
        .collect()
}

fn weight(tensor: Tensor) -> Option<Weight> {
    let raw = tensor.raw_data?;
    if raw.len() < LEAST_BYTES {
        return None;
    }
    let values = match tensor.data_type {
        data_type::FLOAT => {
            let chunks = raw.chunks_exact(4);
            let floats =
                chunks.map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
            Values::F32(floats.collect())
        }
        data_type::INT8 => Values::I8(raw.iter().map(|byte| *byte as i8).collect()),
        data_type::UINT8 => Values::U8(raw.to_vec()),
        _ => return None,
    };
    Some(Weight {
        name: tensor.name,
        shape: tensor.dims,
        values,
    })
}
