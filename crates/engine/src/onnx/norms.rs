//! Layer norms by operators that the library vectorizes.
//!
//! ONNX Runtime sums up the values of a layer norm one after the other: next to 8-bit products that
//! is a sixth of the time of a large encoder. Its kernel of `InstanceNormalization` computes the
//! same with vectors. The sums are in another order, so floats round otherwise, and so may the
//! inputs of 8-bit products.

use std::collections::HashSet;

use prost::Message;
use prost::bytes::Bytes;

use super::proto::{
    Attribute, Field, Head, Initializer, Node, Tensor, attribute_kind, attribute_tag, data_type,
    fields, graph_tag, model_tag, node_tag, nodes, parts, put, with_changed,
};

/// The beginning of the names of what is added to a graph.
const PREFIX: &str = "svc.norm.";

/// The first version of the operators that has layer norms.
const OPERATORS: i64 = 17;

/// The operators that multiply integers.
const PRODUCTS: [&str; 5] = [
    "DynamicQuantizeMatMul",
    "MatMulInteger",
    "MatMulIntegerToFloat",
    "MatMulNBits",
    "QLinearMatMul",
];

/// Returns a graph of integer products with other operators in place of its layer norms; `None`
/// where it has no such products or no such norms.
pub fn with_vectorized_norms(model: &Bytes) -> Option<Bytes> {
    let head = Head::decode(model.clone()).ok()?;
    let mut versions = head.operators.iter();
    if !versions.any(|set| set.domain.is_empty() && set.version >= OPERATORS) {
        return None;
    }
    with_changed(model, model_tag::GRAPH, &mut changed)
}

fn changed(graph: &Bytes) -> Option<Bytes> {
    let all = fields(graph)?;
    let nodes = nodes(&all)?;
    let mut kinds = nodes.iter().map(|(node, _)| node.op_type.as_str());
    if !kinds.any(|kind| PRODUCTS.contains(&kind)) {
        return None;
    }
    let initializers = all
        .iter()
        .filter(|field| field.tag == graph_tag::INITIALIZER);
    let initializers = initializers.map(|field| Initializer::decode(field.value.clone()).ok());
    let initializers: Vec<Initializer> = initializers.collect::<Option<_>>()?;
    let mut nodes = nodes.iter();
    let mut lengths = HashSet::new();
    let mut changed = Vec::with_capacity(graph.len());
    let mut count = 0;
    for field in &all {
        if field.tag != graph_tag::NODE {
            changed.extend_from_slice(&field.whole);
            continue;
        }
        let (node, _) = nodes.next()?;
        match Norm::of(node, field, &initializers) {
            Some(norm) => {
                lengths.insert(norm.length);
                norm.put(&mut changed, count);
                count += 1;
            }
            None => changed.extend_from_slice(&field.whole),
        }
    }
    for length in lengths {
        put(
            &mut changed,
            graph_tag::INITIALIZER,
            &rows(length).encode_to_vec(),
        );
    }
    (count > 0).then(|| changed.into())
}

/// Returns the name of the shape whose rows have so many values.
fn rows_name(length: i64) -> String {
    format!("{PREFIX}rows.{length}")
}

/// Returns the shape of one item of any number of rows.
fn rows(length: i64) -> Tensor {
    let dims = [1, -1, length].map(i64::to_le_bytes).concat();
    Tensor {
        name: rows_name(length),
        dims: vec![3],
        data_type: data_type::INT64,
        raw_data: Some(dims.into()),
        ..Tensor::default()
    }
}

/// A layer norm over the last axis.
struct Norm<'n> {
    input: &'n str,
    scale: &'n str,
    bias: Option<&'n str>,
    output: &'n str,
    /// The number of values of a row.
    length: i64,
    /// The field of the attribute that is added to the variance, where there is one.
    epsilon: Option<Bytes>,
}

impl<'n> Norm<'n> {
    /// Returns the norm that a node is; `None` for another node, and for a norm of several axes, of
    /// another type, with a scale that is computed or has a single value, or with further outputs.
    fn of(node: &'n Node, field: &Field, initializers: &[Initializer]) -> Option<Self> {
        let is_last = node.attribute("axis").is_none_or(|axis| axis.int == -1);
        if node.op_type != "LayerNormalization" || !node.domain.is_empty() || !is_last {
            return None;
        }
        let (input, scale) = (node.input(0)?, node.input(1)?);
        let [output] = node.output.as_slice() else {
            return None;
        };
        let mut all = initializers.iter();
        let tensor = all.find(|tensor| tensor.name == scale)?;
        let [length] = tensor.dims[..] else {
            return None;
        };
        if tensor.data_type != data_type::FLOAT || length < 2 {
            return None;
        }
        let epsilon = parts(&field.value, node_tag::ATTRIBUTE).find(|attribute| {
            let mut names = parts(&attribute.value, attribute_tag::NAME);
            names.any(|name| name.value == b"epsilon"[..])
        });
        Some(Self {
            input,
            scale,
            bias: node.input(2),
            output,
            length,
            epsilon: epsilon.map(|attribute| attribute.whole),
        })
    }

    /// Adds the nodes that compute the norm to a graph. Each row is a channel of one item, whose
    /// values `InstanceNormalization` brings to a mean of 0 and a variance of 1.
    fn put(&self, graph: &mut Vec<u8>, number: usize) {
        let name = |part: &str| format!("{PREFIX}{number}.{part}");
        let [shape, rows, count, ones] = ["shape", "rows", "count", "ones"].map(name);
        let [zeros, normal, whole, scaled] = ["zeros", "normal", "whole", "scaled"].map(name);
        let mut node = |op_type: &str, input: &[&str], output: &str, attributes: &[Attribute]| {
            let node = Node {
                attribute: attributes.to_vec(),
                ..Node::of(op_type, input, &[output])
            };
            let mut node = node.encode_to_vec();
            if op_type == "InstanceNormalization" {
                node.extend_from_slice(self.epsilon.as_deref().unwrap_or_default());
            }
            put(graph, graph_tag::NODE, &node);
        };
        node("Shape", &[self.input], &shape, &[]);
        node(
            "Reshape",
            &[self.input, &rows_name(self.length)],
            &rows,
            &[],
        );
        node("Shape", &[&rows], &count, &[int("start", 1), int("end", 2)]);
        node("ConstantOfShape", &[&count], &ones, &[one()]);
        node("ConstantOfShape", &[&count], &zeros, &[]);
        node(
            "InstanceNormalization",
            &[&rows, &ones, &zeros],
            &normal,
            &[],
        );
        // The shape is the input's, also where it has no rows.
        node(
            "Reshape",
            &[&normal, &shape],
            &whole,
            &[int("allowzero", 1)],
        );
        match self.bias {
            Some(bias) => {
                node("Mul", &[&whole, self.scale], &scaled, &[]);
                node("Add", &[&scaled, bias], self.output, &[]);
            }
            None => node("Mul", &[&whole, self.scale], self.output, &[]),
        }
    }
}

fn int(name: &str, value: i64) -> Attribute {
    Attribute {
        name: name.into(),
        int: value,
        kind: attribute_kind::INT,
        ..Attribute::default()
    }
}

fn one() -> Attribute {
    Attribute {
        name: "value".into(),
        tensor: Some(Tensor {
            dims: vec![1],
            data_type: data_type::FLOAT,
            raw_data: Some(1_f32.to_le_bytes().to_vec().into()),
            ..Tensor::default()
        }),
        kind: attribute_kind::TENSOR,
        ..Attribute::default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::proto::OperatorSet;
    use super::*;

    /// Returns the kinds of the nodes that a graph has when its norms are replaced; `None` where
    /// none is.
    fn kinds(version: i64, nodes_of: &[Node], scale: &Initializer) -> Option<Vec<String>> {
        let nodes = replaced(version, nodes_of, scale)?.into_iter();
        Some(nodes.map(|node| node.op_type).collect())
    }

    /// Returns the nodes that a graph has when its norms are replaced.
    fn replaced(version: i64, nodes_of: &[Node], scale: &Initializer) -> Option<Vec<Node>> {
        let graph = graph_of(version, nodes_of, std::slice::from_ref(scale))?;
        let nodes = nodes(&graph)?.into_iter();
        Some(nodes.map(|(node, _)| node).collect())
    }

    /// Returns the fields of a graph when its norms are replaced.
    fn graph_of(version: i64, nodes_of: &[Node], scales: &[Initializer]) -> Option<Vec<Field>> {
        let mut graph = Vec::new();
        for node in nodes_of {
            put(&mut graph, graph_tag::NODE, &node.encode_to_vec());
        }
        for scale in scales {
            put(&mut graph, graph_tag::INITIALIZER, &scale.encode_to_vec());
        }
        let head = Head {
            ir_version: 8,
            operators: vec![OperatorSet {
                domain: String::new(),
                version,
            }],
        };
        let mut model = head.encode_to_vec();
        put(&mut model, model_tag::GRAPH, &graph);
        let changed = with_vectorized_norms(&model.into())?;
        let graph = fields(&changed)?.into_iter();
        let graph = graph.filter(|field| field.tag == model_tag::GRAPH).last()?;
        fields(&graph.value)
    }

    fn scale() -> Initializer {
        Initializer {
            dims: vec![8],
            data_type: data_type::FLOAT,
            name: "scale".into(),
            ..Initializer::default()
        }
    }

    fn norm(input: &[&str]) -> Node {
        Node::of("LayerNormalization", input, &["y"])
    }

    fn product() -> Node {
        Node::of("MatMulInteger", &["a", "b"], &["c"])
    }

    #[test]
    fn a_norm_beside_a_product_of_integers_is_replaced() {
        let plain = kinds(17, &[norm(&["x", "scale"]), product()], &scale());
        let expected = [
            ["Shape", "Reshape", "Shape", "ConstantOfShape"],
            ["ConstantOfShape", "InstanceNormalization", "Reshape", "Mul"],
        ];
        let mut expected = expected.concat();
        assert_eq!(
            plain.expect("a graph"),
            [&expected[..], &["MatMulInteger"]].concat()
        );
        let biased = kinds(17, &[product(), norm(&["x", "scale", "bias"])], &scale());
        expected.insert(0, "MatMulInteger");
        expected.push("Add");
        assert_eq!(biased.expect("a graph"), expected);
    }

    #[test]
    fn a_norm_of_no_rows_keeps_its_shape() {
        let nodes = replaced(17, &[norm(&["x", "scale"]), product()], &scale());
        let nodes = nodes.expect("a graph");
        let mut shaped = nodes.iter().filter(|node| node.op_type == "Reshape");
        let last = shaped.next_back().expect("the shape of the input");
        assert!(last.is_set("allowzero"));
    }

    #[test]
    fn norms_of_several_lengths_have_a_shape_for_each() {
        let other = Initializer {
            name: "other".into(),
            dims: vec![3],
            ..scale()
        };
        let norms = [
            norm(&["x", "scale"]),
            norm(&["w", "other"]),
            norm(&["z", "scale"]),
        ];
        let nodes_of = [&norms[..], &[product()]].concat();
        let graph = graph_of(17, &nodes_of, &[scale(), other]).expect("a graph");
        let shapes: HashMap<String, Vec<i64>> = graph
            .iter()
            .filter(|field| field.tag == graph_tag::INITIALIZER)
            .map(|field| Tensor::decode(field.value.clone()).expect("a tensor"))
            .filter_map(|tensor| {
                let values = tensor.raw_data?;
                let values = values
                    .chunks(8)
                    .map(|value| value.try_into().expect("8 bytes"));
                Some((tensor.name, values.map(i64::from_le_bytes).collect()))
            })
            .collect();
        assert_eq!(shapes.len(), 2);
        for (input, length) in [("x", 8), ("w", 3), ("z", 8)] {
            let nodes = nodes(&graph).expect("nodes");
            let mut nodes = nodes.iter().map(|(node, _)| node);
            let reshape = nodes.find(|node| node.op_type == "Reshape" && node.input[0] == input);
            let shape = &reshape.expect("a node").input[1];
            assert_eq!(shapes[shape], [1, -1, length], "{input}");
        }
    }

    #[test]
    fn all_other_norms_stay() {
        let usual = norm(&["x", "scale"]);
        assert!(kinds(17, std::slice::from_ref(&usual), &scale()).is_none());
        assert!(kinds(16, &[usual.clone(), product()], &scale()).is_none());
        let halves = Initializer {
            data_type: 10,
            ..scale()
        };
        assert!(kinds(17, &[usual.clone(), product()], &halves).is_none());
        let of_one_value = Initializer {
            dims: vec![1],
            ..scale()
        };
        assert!(kinds(17, &[usual.clone(), product()], &of_one_value).is_none());
        let of_two_axes = Initializer {
            dims: vec![2, 4],
            ..scale()
        };
        assert!(kinds(17, &[usual.clone(), product()], &of_two_axes).is_none());
        let first_axis = Node {
            attribute: vec![int("axis", 1)],
            ..usual.clone()
        };
        assert!(kinds(17, &[first_axis, product()], &scale()).is_none());
        let computed = norm(&["x", "c"]);
        assert!(kinds(17, &[product(), computed], &scale()).is_none());
        let with_mean = Node::of("LayerNormalization", &["x", "scale"], &["y", "mean"]);
        assert!(kinds(17, &[with_mean, product()], &scale()).is_none());
        let last_axis = Node {
            attribute: vec![int("axis", -1)],
            ..usual
        };
        assert!(kinds(17, &[last_axis, product()], &scale()).is_some());
    }
}
