//! The weights of an ONNX graph, read once, so that all sessions of a model can share them.
//!
//! Only the parts of `onnx.proto` that hold them are described here; everything else in the file is skipped.

use prost::Message;
use prost::bytes::Bytes;

/// The values of a weight, in the types that sessions can share.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// float32.
    F32(Vec<f32>),
    /// int8.
    I8(Vec<i8>),
    /// uint8.
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

/// Smaller weights are not worth sharing, in bytes; shapes and scalars must stay where the optimizer sees them.
const LEAST_BYTES: usize = 16 * 1024;

/// The large weights that the file itself holds. None for a file that is no ONNX graph, or whose weights lie beside it:
/// ONNX Runtime will read those, or say what is wrong.
pub fn weights(graph: &Bytes) -> Vec<Weight> {
    let Ok(model) = ModelProto::decode(graph.clone()) else {
        return Vec::new();
    };
    let tensors = model.graph.unwrap_or_default().initializer;
    tensors.into_iter().filter_map(weight).collect()
}

fn weight(tensor: TensorProto) -> Option<Weight> {
    let raw = tensor.raw_data;
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

/// `TensorProto.DataType`.
mod data_type {
    pub const FLOAT: i32 = 1;
    pub const UINT8: i32 = 2;
    pub const INT8: i32 = 3;
}

#[derive(Clone, PartialEq, Message)]
struct ModelProto {
    #[prost(message, optional, tag = "7")]
    graph: Option<GraphProto>,
}

#[derive(Clone, PartialEq, Message)]
struct GraphProto {
    #[prost(message, repeated, tag = "5")]
    initializer: Vec<TensorProto>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorProto {
    #[prost(int64, repeated, tag = "1")]
    dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    data_type: i32,
    #[prost(string, tag = "8")]
    name: String,
    #[prost(bytes = "bytes", tag = "9")]
    raw_data: Bytes,
}
