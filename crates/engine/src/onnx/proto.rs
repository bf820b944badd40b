//! The parts of `onnx.proto` that are needed to take a graph apart.

use prost::Message;
use prost::bytes::{Buf, Bytes};
use prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint, skip_field,
};

/// A field of a message: its encoded bytes, and its content where it has a length.
pub struct Field {
    pub tag: u32,
    pub whole: Bytes,
    pub value: Bytes,
}

/// Returns the fields of a message in order; `None` where the bytes are no message.
pub fn fields(message: &Bytes) -> Option<Vec<Field>> {
    let mut rest = message.clone();
    let mut all = Vec::new();
    while rest.has_remaining() {
        let start = message.len() - rest.len();
        let (tag, wire) = decode_key(&mut rest).ok()?;
        let mut value = Bytes::new();
        if wire == WireType::LengthDelimited {
            let length = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
            if length > rest.len() {
                return None;
            }
            value = rest.split_to(length);
        } else {
            skip_field(wire, tag, &mut rest, DecodeContext::default()).ok()?;
        }
        let whole = message.slice(start..message.len() - rest.len());
        all.push(Field { tag, whole, value });
    }
    Some(all)
}

/// Returns the fields of a tag; none where the bytes are no message.
pub fn parts(message: &Bytes, tag: u32) -> impl Iterator<Item = Field> + use<> {
    let fields = fields(message).into_iter().flatten();
    fields.filter(move |field| field.tag == tag)
}

/// Returns the nodes among the fields of a graph, each with its field; `None` where one cannot be
/// decoded.
pub fn nodes(graph: &[Field]) -> Option<Vec<(Node, &Field)>> {
    let nodes = graph.iter().filter(|field| field.tag == graph_tag::NODE);
    let nodes = nodes.map(|field| Some((Node::decode(field.value.clone()).ok()?, field)));
    nodes.collect()
}

/// Adds a field with a length to a message.
pub fn put(message: &mut Vec<u8>, tag: u32, value: &[u8]) {
    encode_key(tag, WireType::LengthDelimited, message);
    encode_varint(value.len() as u64, message);
    message.extend_from_slice(value);
}

/// Returns the number of values of a tensor of these dimensions; `None` where there can be no such
/// tensor.
pub fn count(dims: &[i64]) -> Option<usize> {
    let mut sizes = dims.iter().map(|size| usize::try_from(*size).ok());
    sizes.try_fold(1, |product: usize, size| product.checked_mul(size?))
}

/// Returns a node with other inputs and everything else unchanged; `None` where the bytes are no
/// node.
pub fn with_inputs(node: &Bytes, inputs: &[String]) -> Option<Bytes> {
    let mut changed = Vec::with_capacity(node.len() + 64);
    for input in inputs {
        put(&mut changed, node_tag::INPUT, input.as_bytes());
    }
    for field in fields(node)? {
        if field.tag != node_tag::INPUT {
            changed.extend_from_slice(&field.whole);
        }
    }
    Some(changed.into())
}

/// Returns a message in which every field of this tag has another content; `None` where the bytes
/// are no message, or `change` gives none.
pub fn with_changed(
    message: &Bytes,
    tag: u32,
    change: &mut dyn FnMut(&Bytes) -> Option<Bytes>,
) -> Option<Bytes> {
    let mut changed = Vec::new();
    for field in fields(message)? {
        match field.tag == tag {
            true => put(&mut changed, tag, &change(&field.value)?),
            false => changed.extend_from_slice(&field.whole),
        }
    }
    Some(changed.into())
}

/// Fields of `ModelProto`.
pub mod model_tag {
    pub const GRAPH: u32 = 7;
    pub const OPERATORS: u32 = 8;
    pub const FUNCTION: u32 = 25;
}

/// Fields of `GraphProto`.
pub mod graph_tag {
    pub const NODE: u32 = 1;
    pub const NAME: u32 = 2;
    pub const INITIALIZER: u32 = 5;
    pub const INPUT: u32 = 11;
    pub const OUTPUT: u32 = 12;
    pub const VALUE_INFO: u32 = 13;
    pub const QUANTIZATION: u32 = 14;
    pub const SPARSE_INITIALIZER: u32 = 15;
}

/// Fields of `NodeProto`.
pub mod node_tag {
    pub const INPUT: u32 = 1;
    pub const OUTPUT: u32 = 2;
    pub const NAME: u32 = 3;
    pub const ATTRIBUTE: u32 = 5;
}

/// Fields of `AttributeProto`.
pub mod attribute_tag {
    pub const NAME: u32 = 1;
    pub const GRAPH: u32 = 6;
    pub const GRAPHS: u32 = 11;
}

/// Fields of `TensorProto`.
pub mod tensor_tag {
    pub const RAW_DATA: u32 = 9;
    pub const EXTERNAL_DATA: u32 = 13;
    pub const DATA_LOCATION: u32 = 14;
}

/// `TensorProto.DataLocation` of values that are not in the graph.
pub const OUTSIDE: i32 = 1;
/// The key of the file that such values are in.
pub const LOCATION: &str = "location";

/// `AttributeProto.AttributeType`.
pub mod attribute_kind {
    pub const INT: i32 = 2;
    pub const TENSOR: i32 = 4;
    pub const INTS: i32 = 7;
}

/// `TensorProto.DataType`.
pub mod data_type {
    pub const FLOAT: i32 = 1;
    pub const UINT8: i32 = 2;
    pub const INT8: i32 = 3;
    pub const INT32: i32 = 6;
    pub const INT64: i32 = 7;
}

/// `ModelProto` without its graph.
#[derive(Clone, PartialEq, Message)]
pub struct Head {
    /// The version of the format.
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    /// The versions of the operators.
    #[prost(message, repeated, tag = "8")]
    pub operators: Vec<OperatorSet>,
}

/// `OperatorSetIdProto`.
#[derive(Clone, PartialEq, Message)]
pub struct OperatorSet {
    #[prost(string, tag = "1")]
    pub domain: String,
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// `NodeProto`.
#[derive(Clone, PartialEq, Message)]
pub struct Node {
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    #[prost(string, tag = "4")]
    pub op_type: String,
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<Attribute>,
    #[prost(string, tag = "7")]
    pub domain: String,
}

impl Node {
    /// Returns the graphs that are part of the node; their nodes see the values that this node
    /// sees.
    pub fn graphs(&self) -> impl Iterator<Item = &Bytes> {
        let attributes = self.attribute.iter();
        attributes.flat_map(|attribute| attribute.graph.iter().chain(&attribute.graphs))
    }

    /// Whether the node contains another graph.
    pub fn has_graph(&self) -> bool {
        self.graphs().next().is_some()
    }

    /// Returns the name of an input; `None` where it is left out.
    pub fn input(&self, index: usize) -> Option<&str> {
        let name = self.input.get(index).map(String::as_str);
        name.filter(|name| !name.is_empty())
    }

    /// Returns the attribute of this name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attribute
            .iter()
            .find(|attribute| attribute.name == name)
    }

    /// Whether the attribute of this name is a number other than 0.
    pub fn is_set(&self, name: &str) -> bool {
        self.attribute(name)
            .is_some_and(|attribute| attribute.int != 0)
    }

    /// Whether the node is ONNX Runtime's own attention operator: query, key and value, and
    /// optionally the past.
    pub fn is_attention(&self) -> bool {
        self.op_type == "MultiHeadAttention" && self.domain == "com.microsoft"
    }
}

impl Node {
    /// Returns a node of one of ONNX's own operators, without attributes.
    pub fn of(op_type: &str, input: &[&str], output: &[&str]) -> Self {
        Self {
            input: input.iter().map(|name| (*name).into()).collect(),
            output: output.iter().map(|name| (*name).into()).collect(),
            op_type: op_type.into(),
            ..Self::default()
        }
    }
}

/// `AttributeProto`.
#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(int64, tag = "3")]
    pub int: i64,
    #[prost(message, optional, tag = "5")]
    pub tensor: Option<Tensor>,
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub graph: Option<Bytes>,
    #[prost(int64, repeated, tag = "8")]
    pub ints: Vec<i64>,
    #[prost(bytes = "bytes", repeated, tag = "11")]
    pub graphs: Vec<Bytes>,
    #[prost(int32, tag = "20")]
    pub kind: i32,
}

/// `TensorProto`, without the fields that hold the values of large weights.
#[derive(Clone, PartialEq, Message)]
pub struct Initializer {
    #[prost(int64, repeated, tag = "1")]
    pub dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    #[prost(int64, repeated, tag = "7")]
    pub int64_data: Vec<i64>,
    #[prost(string, tag = "8")]
    pub name: String,
    #[prost(message, repeated, tag = "13")]
    pub external_data: Vec<KeyValue>,
    #[prost(int32, tag = "14")]
    pub data_location: i32,
}

/// `TensorProto`, with the values of 8-bit and 32-bit integers.
#[derive(Clone, PartialEq, Message)]
pub struct Tensor {
    #[prost(int64, repeated, tag = "1")]
    pub dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    #[prost(int32, repeated, tag = "5")]
    pub int32_data: Vec<i32>,
    #[prost(string, tag = "8")]
    pub name: String,
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub raw_data: Option<Bytes>,
    #[prost(message, repeated, tag = "13")]
    pub external_data: Vec<KeyValue>,
    #[prost(int32, tag = "14")]
    pub data_location: i32,
}

/// `StringStringEntryProto`.
#[derive(Clone, PartialEq, Message)]
pub struct KeyValue {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(string, tag = "2")]
    pub value: String,
}

impl KeyValue {
    /// Returns an entry.
    pub fn new(key: &str, value: impl Into<String>) -> Self {
        Self {
            key: key.to_owned(),
            value: value.into(),
        }
    }
}

/// `ValueInfoProto`, with a type that is decoded further.
#[derive(Clone, PartialEq, Message)]
pub struct Named {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub kind: Option<Kind>,
}

/// `TypeProto`, only for tensors.
#[derive(Clone, PartialEq, Message)]
pub struct Kind {
    #[prost(message, optional, tag = "1")]
    pub tensor: Option<TensorKind>,
}

/// `TypeProto.Tensor`, without its shape.
#[derive(Clone, PartialEq, Message)]
pub struct TensorKind {
    #[prost(int32, tag = "1")]
    pub element: i32,
}
