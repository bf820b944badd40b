//! The part of an ONNX graph that reads a state: what the keys and values that are kept of it need, and nothing else.
//!
//! ONNX Runtime runs a whole graph whatever outputs are asked for. The last layer's attention and all that follows it
//! are for the questions alone; of six layers that is a seventh of the work.
//!
//! The file is taken apart field by field and put together again, so all that is not described here stays as it is.

use std::collections::HashSet;

use prost::Message;
use prost::bytes::{Buf, Bytes};
use prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint, skip_field,
};

/// A key or a value that is kept: the graph's input for the past one, and its output.
pub type KeptTensor = (String, String);

/// The graph that makes `kept` of a state's tokens alone, where that is less than the whole graph and certain to be
/// understood; else `None`. The past is taken to be empty.
pub fn reading_part(graph: &Bytes, kept: &[KeptTensor]) -> Option<Bytes> {
    if kept.is_empty() {
        return None;
    }
    let mut model = Vec::with_capacity(graph.len());
    let mut was_cut = false;
    for field in fields(graph)? {
        match field.tag {
            model_tag::GRAPH => {
                let part = graph_part(&field.value, kept)?;
                was_cut = true;
                put(&mut model, model_tag::GRAPH, &part);
            }
            _ => model.extend_from_slice(&field.whole),
        }
    }
    was_cut.then(|| model.into())
}

fn graph_part(graph: &Bytes, kept: &[KeptTensor]) -> Option<Vec<u8>> {
    let all = fields(graph)?;
    let nodes = all.iter().filter(|field| field.tag == graph_tag::NODE);
    let nodes = nodes.map(|field| Some((Node::decode(field.value.clone()).ok()?, field)));
    let nodes = nodes.collect::<Option<Vec<_>>>()?;
    let mut wanted: HashSet<String> = kept.iter().map(|(_, present)| present.clone()).collect();
    let mut taken: Vec<Vec<u8>> = Vec::new();
    let mut shapes: Vec<Vec<u8>> = Vec::new();
    let mut is_less = false;
    // Nodes stand behind those that they need.
    for (node, field) in nodes.iter().rev() {
        if !node.output.iter().any(|output| wanted.contains(output)) {
            is_less = true;
            continue;
        }
        if node.has_graph() {
            return None;
        }
        if let Some(halves) = node.without_attention(&wanted, kept) {
            is_less = true;
            for half in halves {
                wanted.insert(half.from.clone());
                taken.extend(half.nodes().iter().rev().map(Message::encode_to_vec));
                shapes.push(half.shape().encode_to_vec());
            }
        } else {
            wanted.extend(node.input.iter().filter(|input| !input.is_empty()).cloned());
            taken.push(field.value.to_vec());
        }
    }
    if !is_less {
        return None;
    }
    let mut part = Vec::with_capacity(graph.len());
    for node in taken.iter().rev() {
        put(&mut part, graph_tag::NODE, node);
    }
    for shape in &shapes {
        put(&mut part, graph_tag::INITIALIZER, shape);
    }
    for field in &all {
        let stays = match field.tag {
            graph_tag::NODE => false,
            graph_tag::INITIALIZER => {
                let tensor = Initializer::decode(field.value.clone()).ok()?;
                // What lies beside the file would not be found.
                if tensor.data_location != 0 {
                    return None;
                }
                wanted.contains(&tensor.name)
            }
            graph_tag::OUTPUT | graph_tag::VALUE_INFO => {
                wanted.contains(&Named::decode(field.value.clone()).ok()?.name)
            }
            _ => true,
        };
        if stays {
            part.extend_from_slice(&field.whole);
        }
    }
    Some(part)
}

/// A key or a value on its way from the tokens to what is kept: `[1, tokens, heads x size]` to `[1, heads, tokens, size]`.
struct Half {
    from: String,
    to: String,
    heads: i64,
}

impl Half {
    fn shape_name(&self) -> String {
        format!("{}_shape", self.to)
    }

    fn nodes(&self) -> [Node; 2] {
        let split = format!("{}_split", self.to);
        let permutation = Attribute {
            name: "perm".into(),
            ints: vec![0, 2, 1, 3],
            kind: attribute_kind::INTS,
            ..Attribute::default()
        };
        [
            Node {
                input: vec![self.from.clone(), self.shape_name()],
                output: vec![split.clone()],
                op_type: "Reshape".into(),
                ..Node::default()
            },
            Node {
                input: vec![split],
                output: vec![self.to.clone()],
                op_type: "Transpose".into(),
                attribute: vec![permutation],
                ..Node::default()
            },
        ]
    }

    /// The first two dimensions stay, the third is split.
    fn shape(&self) -> Initializer {
        Initializer {
            dims: vec![4],
            data_type: INT64,
            name: self.shape_name(),
            int64_data: vec![0, 0, self.heads, -1],
            data_location: 0,
        }
    }
}

impl Node {
    fn has_graph(&self) -> bool {
        let graphs =
            |attribute: &Attribute| attribute.graph.is_some() || !attribute.graphs.is_empty();
        self.attribute.iter().any(graphs)
    }

    /// What an attention whose result nobody wants leaves to do when there is no past: its keys and values.
    fn without_attention(
        &self,
        wanted: &HashSet<String>,
        kept: &[KeptTensor],
    ) -> Option<[Half; 2]> {
        let [result, key, value] = self.output.as_slice() else {
            return None;
        };
        let input = |index: usize| self.input.get(index).filter(|name| !name.is_empty());
        let is_kept = |past: &String, present: &String| {
            kept.iter()
                .any(|pair| (&pair.0, &pair.1) == (past, present))
        };
        let is_plain = self.op_type == "MultiHeadAttention"
            && self.domain == "com.microsoft"
            && !wanted.contains(result)
            && input(3).is_none()
            && is_kept(input(6)?, key)
            && is_kept(input(7)?, value);
        let heads = self
            .attribute
            .iter()
            .find(|attribute| attribute.name == "num_heads");
        let half = |from: &String, to: &String| {
            Some(Half {
                from: from.clone(),
                to: to.clone(),
                heads: heads?.int,
            })
        };
        is_plain.then_some(())?;
        Some([half(input(1)?, key)?, half(input(2)?, value)?])
    }
}

/// A field of a message, as it stands there, and its content where it has a length.
struct Field {
    tag: u32,
    whole: Bytes,
    value: Bytes,
}

fn fields(message: &Bytes) -> Option<Vec<Field>> {
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

fn put(message: &mut Vec<u8>, tag: u32, value: &[u8]) {
    encode_key(tag, WireType::LengthDelimited, message);
    encode_varint(value.len() as u64, message);
    message.extend_from_slice(value);
}

/// Fields of `ModelProto`.
mod model_tag {
    pub const GRAPH: u32 = 7;
}

/// Fields of `GraphProto`.
mod graph_tag {
    pub const NODE: u32 = 1;
    pub const INITIALIZER: u32 = 5;
    pub const OUTPUT: u32 = 12;
    pub const VALUE_INFO: u32 = 13;
}

/// `AttributeProto.AttributeType`.
mod attribute_kind {
    pub const INTS: i32 = 7;
}

/// `TensorProto.DataType`.
const INT64: i32 = 7;

/// `NodeProto`.
#[derive(Clone, PartialEq, Message)]
struct Node {
    #[prost(string, repeated, tag = "1")]
    input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    output: Vec<String>,
    #[prost(string, tag = "4")]
    op_type: String,
    #[prost(message, repeated, tag = "5")]
    attribute: Vec<Attribute>,
    #[prost(string, tag = "7")]
    domain: String,
}

/// `AttributeProto`.
#[derive(Clone, PartialEq, Message)]
struct Attribute {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int64, tag = "3")]
    int: i64,
    #[prost(bytes = "bytes", optional, tag = "6")]
    graph: Option<Bytes>,
    #[prost(int64, repeated, tag = "8")]
    ints: Vec<i64>,
    #[prost(bytes = "bytes", repeated, tag = "11")]
    graphs: Vec<Bytes>,
    #[prost(int32, tag = "20")]
    kind: i32,
}

/// `TensorProto`, without what large weights are in.
#[derive(Clone, PartialEq, Message)]
struct Initializer {
    #[prost(int64, repeated, tag = "1")]
    dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    data_type: i32,
    #[prost(int64, repeated, tag = "7")]
    int64_data: Vec<i64>,
    #[prost(string, tag = "8")]
    name: String,
    #[prost(int32, tag = "14")]
    data_location: i32,
}

/// `ValueInfoProto`.
#[derive(Clone, PartialEq, Message)]
struct Named {
    #[prost(string, tag = "1")]
    name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(op_type: &str, input: &[&str], output: &[&str]) -> Node {
        Node {
            input: input.iter().map(|name| (*name).into()).collect(),
            output: output.iter().map(|name| (*name).into()).collect(),
            op_type: op_type.into(),
            ..Node::default()
        }
    }

    fn attention() -> Node {
        let heads = Attribute {
            name: "num_heads".into(),
            int: 12,
            kind: 2,
            ..Attribute::default()
        };
        Node {
            domain: "com.microsoft".into(),
            attribute: vec![heads],
            ..node(
                "MultiHeadAttention",
                &["q", "k", "v", "", "", "bias", "past_k0", "past_v0"],
                &["mixed", "present_k0", "present_v0"],
            )
        }
    }

    fn initializer(name: &str) -> Initializer {
        Initializer {
            name: name.into(),
            ..Initializer::default()
        }
    }

    /// A graph whose tokens become `k` and `v`, with an attention over them and what a question needs of it.
    fn graph(attention: &Node, initializers: &[Initializer]) -> Bytes {
        let nodes = [
            node("Gather", &["word", "input_ids"], &["x"]),
            node("Split", &["x"], &["q", "k", "v"]),
            node("Pad", &["option_ids"], &["bias"]),
            attention.clone(),
            node("MatMul", &["mixed", "head"], &["logits"]),
        ];
        let mut part = Vec::new();
        for node in &nodes {
            put(&mut part, graph_tag::NODE, &node.encode_to_vec());
        }
        for initializer in initializers {
            put(
                &mut part,
                graph_tag::INITIALIZER,
                &initializer.encode_to_vec(),
            );
        }
        for name in ["logits", "present_k0", "present_v0"] {
            let output = Named { name: name.into() };
            put(&mut part, graph_tag::OUTPUT, &output.encode_to_vec());
        }
        let mut model = Vec::new();
        // `ir_version` and `producer_name`, which nobody here reads.
        model.extend_from_slice(&[0x08, 0x0a, 0x12, 0x03, b's', b'v', b'c']);
        put(&mut model, model_tag::GRAPH, &part);
        model.into()
    }

    fn kept() -> Vec<KeptTensor> {
        let pair = |past: &str, present: &str| (past.into(), present.into());
        vec![pair("past_k0", "present_k0"), pair("past_v0", "present_v0")]
    }

    /// The operators, weights and outputs of a model.
    fn parts(model: &Bytes) -> Option<[Vec<String>; 3]> {
        let mut parts = [Vec::new(), Vec::new(), Vec::new()];
        for field in fields(&fields(model)?.pop()?.value)? {
            match field.tag {
                graph_tag::NODE => parts[0].push(Node::decode(field.value).ok()?.op_type),
                graph_tag::INITIALIZER => {
                    parts[1].push(Initializer::decode(field.value).ok()?.name)
                }
                _ => parts[2].push(Named::decode(field.value).ok()?.name),
            }
        }
        Some(parts)
    }

    #[test]
    fn what_only_a_question_needs_is_left_out() {
        let whole = graph(&attention(), &[initializer("word"), initializer("head")]);
        let part = reading_part(&whole, &kept()).expect("a graph");
        assert!(part.starts_with(&[0x08, 0x0a, 0x12, 0x03, b's', b'v', b'c']));
        let [nodes, weights, outputs] = parts(&part).expect("a graph");
        assert_eq!(
            nodes,
            [
                "Gather",
                "Split",
                "Reshape",
                "Transpose",
                "Reshape",
                "Transpose"
            ]
        );
        assert_eq!(weights.len(), 3);
        assert!(weights.contains(&"word".into()) && !weights.contains(&"head".into()));
        assert_eq!(outputs, ["present_k0", "present_v0"]);
    }

    #[test]
    fn an_attention_with_a_bias_of_its_own_stays() {
        let mut biased = attention();
        biased.input[3] = "qkv_bias".into();
        let part = reading_part(&graph(&biased, &[]), &kept()).expect("a graph");
        let [nodes, ..] = parts(&part).expect("a graph");
        assert_eq!(nodes, ["Gather", "Split", "Pad", "MultiHeadAttention"]);
    }

    #[test]
    fn a_graph_that_is_needed_whole_or_not_understood_is_left_alone() {
        let needed: Vec<KeptTensor> = vec![("past".into(), "logits".into())];
        assert_eq!(reading_part(&graph(&attention(), &[]), &needed), None);
        assert_eq!(reading_part(&graph(&attention(), &[]), &[]), None);
        let beside = Initializer {
            data_location: 1,
            ..initializer("word")
        };
        assert_eq!(reading_part(&graph(&attention(), &[beside]), &kept()), None);
        let mut branch = attention();
        branch.attribute[0].graph = Some(Bytes::from_static(b""));
        assert_eq!(reading_part(&graph(&branch, &[]), &kept()), None);
        assert_eq!(
            reading_part(&Bytes::from_static(b"no graph"), &kept()),
            None
        );
        assert_eq!(reading_part(&Bytes::new(), &kept()), None);
    }
}
