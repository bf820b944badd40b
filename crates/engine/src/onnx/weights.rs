//! The weights of an ONNX graph, read once, so that all sessions of a model can share them.

use std::collections::HashSet;
use std::path::Path;

use prost::Message;
use prost::bytes::Bytes;

use super::proto::{
    Initializer, KeyValue, LOCATION, OUTSIDE, Tensor, count, data_type, fields, graph_tag,
    model_tag, nodes, parts, with_changed,
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
pub const LEAST_BYTES: usize = 16 * 1024;

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
    let mut names = Names::default();
    for graph in parts(graph, model_tag::GRAPH) {
        names.add(&graph.value)?;
    }
    let graph = with_changed(graph, model_tag::GRAPH, &mut |graph| {
        with_changed(graph, graph_tag::INITIALIZER, &mut |initializer| {
            let tensor = Tensor::decode(initializer.clone()).ok()?;
            let taken = match names.can_be_given(&tensor.name) {
                true => taken_out(tensor, folder),
                false => None,
            };
            let Some((weight, elsewhere)) = taken else {
                return Some(initializer.clone());
            };
            weights.push(weight);
            Some(elsewhere)
        })
    })?;
    let names: HashSet<&str> = weights.iter().map(|weight| weight.name.as_str()).collect();
    (!weights.is_empty() && names.len() == weights.len()).then_some(TakenApart { graph, weights })
}

/// The names in a graph and in those within it.
#[derive(Default)]
struct Names {
    /// The names that nodes read.
    read: HashSet<String>,
    /// The names of the weights of the graphs within.
    within: HashSet<String>,
}

impl Names {
    /// Adds the names of a graph; `None` where it cannot be decoded.
    fn add(&mut self, graph: &Bytes) -> Option<()> {
        for (node, _) in nodes(&fields(graph)?)? {
            for graph in node.graphs() {
                self.add(graph)?;
                for tensor in parts(graph, graph_tag::INITIALIZER) {
                    self.within
                        .insert(Initializer::decode(tensor.value).ok()?.name);
                }
            }
            self.read.extend(node.input);
        }
        Some(())
    }

    /// Whether a session can be given the weight of this name. The library drops weights that
    /// nothing reads, and then does not know their names; and it gives a weight to all graphs that
    /// have one of its name.
    fn can_be_given(&self, name: &str) -> bool {
        self.read.contains(name) && !self.within.contains(name)
    }
}

/// Whether a tensor's place is that of the weights that sessions are given.
pub fn is_elsewhere(place: &str) -> bool {
    place == ELSEWHERE
}

/// Whether a tensor is a weight that sessions are given.
pub fn is_given(tensor: &Initializer) -> bool {
    let mut entries = tensor.external_data.iter();
    entries.any(|entry| entry.key == LOCATION && is_elsewhere(&entry.value))
}

/// Returns the names of the weights that a session of the graph has to be given.
pub fn given(graph: &Bytes) -> HashSet<String> {
    let given = initializers(graph).filter(is_given);
    given.map(|tensor| tensor.name).collect()
}

/// Returns the size of the large weights of a graph in bytes, wherever they are.
pub fn size(graph: &Bytes) -> usize {
    let sizes = initializers(graph).filter_map(|tensor| length(tensor.data_type, &tensor.dims));
    sizes.filter(|length| *length >= LEAST_BYTES).sum()
}

/// Returns the initializers of a graph, without the values of large ones.
fn initializers(graph: &Bytes) -> impl Iterator<Item = Initializer> + use<> {
    let tensors = parts(graph, model_tag::GRAPH)
        .flat_map(|graph| parts(&graph.value, graph_tag::INITIALIZER));
    tensors.filter_map(|field| Initializer::decode(field.value).ok())
}

/// Returns the bytes of a tensor of a type that sessions can share.
fn length(data_type: i32, dims: &[i64]) -> Option<usize> {
    let bytes_each = match data_type {
        data_type::FLOAT => 4,
        data_type::INT8 | data_type::UINT8 => 1,
        _ => return None,
    };
    count(dims)?.checked_mul(bytes_each)
}

/// Returns the weight that a tensor is, and the tensor without its values; `None` for a small one,
/// one of another type, and one whose values are not all there.
fn taken_out(tensor: Tensor, folder: &Path) -> Option<(Weight, Bytes)> {
    let length = length(tensor.data_type, &tensor.dims)?;
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
    let elsewhere = Tensor {
        raw_data: None,
        external_data: vec![
            KeyValue::new(LOCATION, ELSEWHERE),
            KeyValue::new("length", length.to_string()),
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

#[cfg(test)]
mod tests {
    use super::super::proto::{Attribute, Node, put};
    use super::*;

    const LENGTH: i64 = LEAST_BYTES as i64;

    fn tensor(name: &str, data_type: i32, raw: Vec<u8>) -> Tensor {
        Tensor {
            name: name.into(),
            dims: vec![2, LENGTH / 2],
            data_type,
            raw_data: Some(raw.into()),
            ..Tensor::default()
        }
    }

    fn bytes(name: &str) -> Tensor {
        tensor(name, data_type::INT8, vec![255; LEAST_BYTES])
    }

    fn model(tensors: &[Tensor]) -> Bytes {
        let mut graph = Vec::new();
        put(&mut graph, graph_tag::NAME, b"graph");
        let names: Vec<&str> = tensors.iter().map(|tensor| tensor.name.as_str()).collect();
        let within = Node::of("Sum", &names, &["sum"]);
        let mut branch = Vec::new();
        put(&mut branch, graph_tag::NODE, &within.encode_to_vec());
        let node = Node {
            attribute: vec![Attribute {
                graph: Some(branch.into()),
                ..Attribute::default()
            }],
            ..Node::of("If", &[], &["sum"])
        };
        put(&mut graph, graph_tag::NODE, &node.encode_to_vec());
        for tensor in tensors {
            put(&mut graph, graph_tag::INITIALIZER, &tensor.encode_to_vec());
        }
        let mut model = Vec::new();
        put(&mut model, model_tag::GRAPH, &graph);
        model.into()
    }

    fn apart(tensors: &[Tensor]) -> Option<TakenApart> {
        take_apart(&model(tensors), Path::new("/not there"))
    }

    #[test]
    fn large_weights_are_taken_out_and_all_else_stays() {
        let floats: Vec<u8> = (0..LENGTH)
            .flat_map(|value| (value as f32).to_le_bytes())
            .collect();
        let mut small = bytes("small");
        small.dims = vec![LENGTH - 1];
        small.raw_data = Some(vec![1; LEAST_BYTES - 1].into());
        let halves = tensor("halves", 10, vec![0; 2 * LEAST_BYTES]);
        let tensors = [
            bytes("signed"),
            small.clone(),
            tensor("floats", data_type::FLOAT, floats),
            tensor("unsigned", data_type::UINT8, vec![255; LEAST_BYTES]),
            halves.clone(),
        ];
        let TakenApart { graph, weights } = apart(&tensors).expect("weights");
        let [signed, floats, unsigned] = weights.as_slice() else {
            panic!("{} weights", weights.len());
        };
        assert_eq!(
            (signed.name.as_str(), &signed.shape),
            ("signed", &vec![2, LENGTH / 2])
        );
        assert_eq!(signed.values, Values::I8(vec![-1; LEAST_BYTES]));
        assert_eq!(unsigned.values, Values::U8(vec![255; LEAST_BYTES]));
        let Values::F32(floats) = &floats.values else {
            panic!("no floats");
        };
        assert_eq!((floats.len(), floats[3]), (LEAST_BYTES, 3.0));
        let names: HashSet<String> = ["signed", "floats", "unsigned"].map(String::from).into();
        assert_eq!(given(&graph), names);
        // The others are in the graph, and it is short without the weights.
        let kept = [small.encode_to_vec(), halves.encode_to_vec()];
        for kept in kept {
            assert!(graph.windows(kept.len()).any(|window| window == kept));
        }
        assert!(graph.len() < 4 * LEAST_BYTES, "{} bytes", graph.len());
    }

    #[test]
    fn weights_in_a_file_beside_the_graph_are_read_from_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut content = vec![7; 16];
        content.resize(16 + LEAST_BYTES, 1);
        std::fs::write(folder.path().join("model.onnx.data"), content).expect("a file");
        let beside = |location: &str| Tensor {
            raw_data: None,
            data_location: OUTSIDE,
            external_data: vec![
                KeyValue::new(LOCATION, location),
                KeyValue::new("offset", "16"),
                KeyValue::new("length", LEAST_BYTES.to_string()),
            ],
            ..bytes("beside")
        };
        let apart = |location| take_apart(&model(&[beside(location)]), folder.path());
        let found = apart("model.onnx.data").expect("a weight");
        assert_eq!(found.weights[0].values, Values::I8(vec![1; LEAST_BYTES]));
        // All other places are for ONNX Runtime to judge.
        assert!(apart("../model.onnx.data").is_none());
        assert!(apart("another.data").is_none());
    }

    #[test]
    fn a_graph_that_the_library_would_refuse_stays_as_it_is() {
        let mut short = bytes("short");
        short.raw_data = Some(vec![0; LEAST_BYTES - 1].into());
        assert!(apart(&[short]).is_none());
        assert!(apart(&[bytes("twice"), bytes("twice")]).is_none());
        assert!(apart(&[]).is_none());
        let no_graph = Bytes::from_static(b"\xff");
        assert!(take_apart(&no_graph, Path::new("")).is_none());
    }

    #[test]
    fn a_weight_whose_name_a_graph_within_has_for_its_own_stays_in_the_graph() {
        let mut branch = Vec::new();
        let own = bytes("hidden").encode_to_vec();
        put(&mut branch, graph_tag::INITIALIZER, &own);
        let choice = Node {
            attribute: vec![Attribute {
                graph: Some(branch.into()),
                ..Attribute::default()
            }],
            ..Node::of("If", &["hidden", "seen"], &["sum"])
        };
        let mut graph = Vec::new();
        put(&mut graph, graph_tag::NODE, &choice.encode_to_vec());
        for name in ["hidden", "seen"] {
            let tensor = bytes(name).encode_to_vec();
            put(&mut graph, graph_tag::INITIALIZER, &tensor);
        }
        let mut model = Vec::new();
        put(&mut model, model_tag::GRAPH, &graph);
        let apart = take_apart(&model.into(), Path::new("")).expect("a weight");
        assert_eq!(given(&apart.graph), HashSet::from(["seen".to_owned()]));
    }

    #[test]
    fn a_weight_that_no_node_reads_stays_in_the_graph() {
        let mut graph = Vec::new();
        let tensor = bytes("unread").encode_to_vec();
        put(&mut graph, graph_tag::INITIALIZER, &tensor);
        let mut model = Vec::new();
        put(&mut model, model_tag::GRAPH, &graph);
        assert!(take_apart(&model.into(), Path::new("")).is_none());
    }
}
