//! The part of an ONNX graph that prefills the KV cache of a state: the nodes that make its keys
//! and values, and no others.
//!
//! ONNX Runtime runs a whole graph whatever outputs are asked for. The last layer's attention and
//! everything after it serve only the questions; of six layers that is a seventh of the work. The
//! bias that separates a question's options is also needed only for questions, see `bias.rs`.
//!
//! The file is taken apart field by field and put together again, so everything that is not
//! described here stays as it is.

use std::collections::HashSet;

use prost::Message;
use prost::bytes::Bytes;

use super::KvPair;
use super::bias::Origins;
use super::proto::{
    Attribute, Field, Initializer, Named, Node, attribute_kind, data_type, fields, graph_tag,
    model_tag, nodes, put, with_inputs,
};
use super::weights::is_given;

/// The facts about the runs of a prefill, besides their empty past.
#[derive(Debug, Clone, Copy)]
pub struct Prefill<'a> {
    /// The keys and values, which are the outputs that are wanted of the runs.
    pub kv_pairs: &'a [KvPair],
    /// The input that has one value for all of a state's tokens, since they all see each other.
    pub even_input: &'a str,
}

/// Returns the graph that makes only the keys and values of a state's tokens, if it is smaller than
/// the whole graph and the graph is certainly understood; else `None`.
pub fn prefill_graph(graph: &Bytes, prefill: Prefill<'_>) -> Option<Bytes> {
    if prefill.kv_pairs.is_empty() {
        return None;
    }
    let mut model = Vec::with_capacity(graph.len());
    let mut was_cut = false;
    for field in fields(graph)? {
        match field.tag {
            model_tag::GRAPH => {
                let part = graph_part(&field.value, prefill)?;
                was_cut = true;
                put(&mut model, model_tag::GRAPH, &part);
            }
            _ => model.extend_from_slice(&field.whole),
        }
    }
    was_cut.then(|| model.into())
}

fn graph_part(graph: &Bytes, prefill: Prefill<'_>) -> Option<Vec<u8>> {
    let all = fields(graph)?;
    let taken = Taken::of(&all, prefill)?;
    let mut part = Vec::with_capacity(graph.len());
    for node in taken.nodes.iter().rev() {
        put(&mut part, graph_tag::NODE, node);
    }
    for shape in &taken.shapes {
        put(&mut part, graph_tag::INITIALIZER, shape);
    }
    for field in &all {
        let stays = match field.tag {
            graph_tag::NODE => false,
            graph_tag::INITIALIZER => {
                let tensor = Initializer::decode(field.value.clone()).ok()?;
                // Weights in another file would not be found.
                if tensor.data_location != 0 && !is_given(&tensor) {
                    return None;
                }
                taken.wanted.contains(&tensor.name)
            }
            graph_tag::OUTPUT | graph_tag::VALUE_INFO => {
                let name = Named::decode(field.value.clone()).ok()?.name;
                taken.wanted.contains(&name)
            }
            _ => true,
        };
        if stays {
            part.extend_from_slice(&field.whole);
        }
    }
    Some(part)
}

/// The parts that are taken of a graph.
struct Taken {
    /// The names of all values in these parts.
    wanted: HashSet<String>,
    /// The nodes, the last one first.
    nodes: Vec<Bytes>,
    /// The weights that are needed besides those of the graph.
    shapes: Vec<Vec<u8>>,
}

impl Taken {
    /// Returns the parts of a graph; `None` where all of it is needed as it is, or it is not
    /// understood.
    fn of(all: &[Field], prefill: Prefill<'_>) -> Option<Self> {
        let nodes = nodes(all)?;
        let origins = Origins::of(&nodes, all)?;
        let presents = prefill.kv_pairs.iter().map(|pair| &pair.present);
        let mut taken = Self {
            wanted: presents.cloned().collect(),
            nodes: Vec::new(),
            shapes: Vec::new(),
        };
        let mut is_less = false;
        // A node stands behind the nodes whose outputs it needs.
        for (node, field) in nodes.iter().rev() {
            if !node
                .output
                .iter()
                .any(|output| taken.wanted.contains(output))
            {
                is_less = true;
                continue;
            }
            if node.has_graph() {
                return None;
            }
            if let Some(halves) = node.without_attention(&taken.wanted, prefill.kv_pairs) {
                is_less = true;
                halves.into_iter().for_each(|half| taken.add_half(&half));
                continue;
            }
            let says_nothing = |bias| origins.is_even(bias, prefill.even_input);
            let left_out = node.bias().is_some_and(says_nothing).then_some(BIAS);
            is_less |= left_out.is_some();
            taken.add(node, &field.value, left_out)?;
        }
        is_less.then_some(taken)
    }

    /// Takes a node without one of its inputs, or with all of them.
    fn add(&mut self, node: &Node, encoded: &Bytes, left_out: Option<usize>) -> Option<()> {
        let inputs = node.input.iter().enumerate();
        let inputs = inputs.filter(|(place, name)| Some(*place) != left_out && !name.is_empty());
        self.wanted.extend(inputs.map(|(_, name)| name.clone()));
        self.nodes.push(match left_out {
            Some(place) => {
                let mut inputs = node.input.clone();
                inputs[place].clear();
                with_inputs(encoded, &inputs)?
            }
            None => encoded.clone(),
        });
        Some(())
    }

    fn add_half(&mut self, half: &Half) {
        self.wanted.insert(half.from.clone());
        let nodes = half.nodes();
        let nodes = nodes.iter().rev().map(|node| node.encode_to_vec().into());
        self.nodes.extend(nodes);
        self.shapes.push(half.shape().encode_to_vec());
    }
}

/// The place of `attention_bias` among the inputs of `MultiHeadAttention`.
const BIAS: usize = 5;

/// The reordering of a key or a value from the tokens' order to that of the KV cache:
/// `[1, tokens, heads x size]` to `[1, heads, tokens, size]`.
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

    /// Returns the weight with the new shape: the first two dimensions stay, the third is split.
    fn shape(&self) -> Initializer {
        Initializer {
            dims: vec![4],
            data_type: data_type::INT64,
            name: self.shape_name(),
            int64_data: vec![0, 0, self.heads, -1],
            ..Initializer::default()
        }
    }
}

impl Node {
    /// Returns the name of the bias that an attention adds to its weights before softmax.
    fn bias(&self) -> Option<&str> {
        let bias = self.input.get(BIAS).filter(|name| !name.is_empty());
        bias.filter(|_| self.is_attention()).map(String::as_str)
    }

    /// Returns what remains of an attention whose result is not wanted when there is no past: the
    /// reordering of its keys and values. `None` for all other nodes.
    fn without_attention(
        &self,
        wanted: &HashSet<String>,
        kv_pairs: &[KvPair],
    ) -> Option<[Half; 2]> {
        let [result, key, value] = self.output.as_slice() else {
            return None;
        };
        let input = |index: usize| self.input.get(index).filter(|name| !name.is_empty());
        let is_pair = |past: &String, present: &String| {
            let mut pairs = kv_pairs.iter();
            pairs.any(|pair| (&pair.past, &pair.present) == (past, present))
        };
        let is_plain = self.is_attention()
            && !wanted.contains(result)
            && input(3).is_none()
            && is_pair(input(6)?, key)
            && is_pair(input(7)?, value);
        let heads = self.attribute("num_heads");
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

#[cfg(test)]
mod tests {
    use super::*;

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
            ..Node::of(
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

    /// Returns a model whose tokens become `k` and `v`, with an attention over them and the nodes
    /// that a question needs.
    fn graph(attention: &Node, initializers: &[Initializer]) -> Bytes {
        let nodes = [
            Node::of("Gather", &["word", "input_ids"], &["x"]),
            Node::of("Split", &["x"], &["q", "k", "v"]),
            Node::of("Pad", &["positions"], &["bias"]),
            attention.clone(),
            Node::of("MatMul", &["mixed", "head"], &["logits"]),
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
            let output = Named {
                name: name.into(),
                ..Named::default()
            };
            put(&mut part, graph_tag::OUTPUT, &output.encode_to_vec());
        }
        let mut model = Vec::new();
        // The fields `ir_version` and `producer_name`, which no code here reads.
        model.extend_from_slice(&[0x08, 0x0a, 0x12, 0x03, b's', b'v', b'c']);
        put(&mut model, model_tag::GRAPH, &part);
        model.into()
    }

    fn kv_pairs() -> Vec<KvPair> {
        vec![
            KvPair::new("past_k0", "present_k0"),
            KvPair::new("past_v0", "present_v0"),
        ]
    }

    fn prefill(kv_pairs: &[KvPair]) -> Prefill<'_> {
        Prefill {
            kv_pairs,
            even_input: "option_ids",
        }
    }

    /// Returns the operators, weights and outputs of a model.
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
        let part = prefill_graph(&whole, prefill(&kv_pairs())).expect("a graph");
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
        let part = prefill_graph(&graph(&biased, &[]), prefill(&kv_pairs())).expect("a graph");
        let [nodes, ..] = parts(&part).expect("a graph");
        assert_eq!(nodes, ["Gather", "Split", "Pad", "MultiHeadAttention"]);
    }

    /// Returns the attention of the first of two layers, when `nodes` make its bias and the graph
    /// is cut.
    fn first_attention(nodes: &[Node]) -> Option<Node> {
        first_attention_beside(nodes, vec![256])
    }

    /// Returns the same for a graph that also has a weight `table` of these dimensions.
    fn first_attention_beside(nodes: &[Node], table: Vec<i64>) -> Option<Node> {
        let mut part = Vec::new();
        let second = Node::of("Split", &["mixed"], &["unused", "present_k1", "present_v1"]);
        let attention = attention();
        let layers = [&attention, &second].into_iter();
        for node in nodes.iter().chain(layers) {
            put(&mut part, graph_tag::NODE, &node.encode_to_vec());
        }
        for (name, dims) in [("zero", vec![1]), ("minus_much", vec![1]), ("table", table)] {
            let weight = Initializer {
                dims,
                ..initializer(name)
            };
            put(&mut part, graph_tag::INITIALIZER, &weight.encode_to_vec());
        }
        let mut model = Vec::new();
        put(&mut model, model_tag::GRAPH, &part);
        let mut pairs = kv_pairs();
        pairs.push(KvPair::new("past_k1", "present_k1"));
        let part = prefill_graph(&model.into(), prefill(&pairs))?;
        let graph = fields(&part)?.pop()?.value;
        let nodes = fields(&graph)?.into_iter();
        let nodes = nodes.filter(|field| field.tag == graph_tag::NODE);
        let mut nodes = nodes.filter_map(|field| Node::decode(field.value).ok());
        nodes.find(|node| node.op_type == "MultiHeadAttention")
    }

    #[test]
    fn what_says_nothing_in_a_state_is_not_added_to_its_weights() {
        let attention = first_attention(&[
            Node::of("Shape", &["past_k0"], &["length"]),
            Node::of("Unsqueeze", &["option_ids", "zero"], &["row"]),
            Node::of("Equal", &["row", "option_ids"], &["same"]),
            Node::of("Where", &["same", "zero", "minus_much"], &["own"]),
            Node::of("Pad", &["own", "length"], &["bias"]),
        ]);
        let attention = attention.expect("it is cut, or the test says nothing");
        let input = ["q", "k", "v", "", "", "", "past_k0", "past_v0"];
        assert_eq!(attention.input, input);
        assert_eq!(attention.attribute[0].int, 12);
    }

    #[test]
    fn a_weight_of_more_values_than_can_be_counted_is_no_number() {
        let chooses = Node::of("Where", &["option_ids", "zero", "table"], &["bias"]);
        // The output of this node is not needed, so that there is something to cut.
        let unused = Node::of("Cast", &["q"], &["logits"]);
        // The product of the dimensions wraps around to 0.
        let table = vec![1 << 32, 1 << 32];
        let attention = first_attention_beside(&[chooses, unused], table).expect("it is cut");
        assert_eq!(attention.input[5], "bias");
    }

    #[test]
    fn what_may_say_something_in_a_state_stays() {
        let others = [
            Node::of("Equal", &["positions", "option_ids"], &["bias"]),
            Node::of("Where", &["option_ids", "zero", "table"], &["bias"]),
            Node::of("CumSum", &["option_ids", "zero"], &["bias"]),
            Node::of("Range", &["zero", "option_ids", "zero"], &["bias"]),
            Node {
                domain: "com.example".into(),
                ..Node::of("Cast", &["option_ids"], &["bias"])
            },
        ];
        for other in others {
            // The output of this node is not needed, so that there is something to cut.
            let unused = Node::of("Cast", &["q"], &["logits"]);
            let attention = first_attention(&[other.clone(), unused]).expect("it is cut");
            assert_eq!(attention.input[5], "bias", "{other:?}");
        }
    }

    #[test]
    fn a_graph_that_is_needed_whole_or_not_understood_is_left_alone() {
        let needed = [KvPair::new("past", "logits")];
        assert_eq!(
            prefill_graph(&graph(&attention(), &[]), prefill(&needed)),
            None
        );
        assert_eq!(prefill_graph(&graph(&attention(), &[]), prefill(&[])), None);
        let beside = Initializer {
            data_location: 1,
            ..initializer("word")
        };
        assert_eq!(
            prefill_graph(&graph(&attention(), &[beside]), prefill(&kv_pairs())),
            None
        );
        let mut branch = attention();
        branch.attribute[0].graph = Some(Bytes::from_static(b""));
        assert_eq!(
            prefill_graph(&graph(&branch, &[]), prefill(&kv_pairs())),
            None
        );
        assert_eq!(
            prefill_graph(&Bytes::from_static(b"no graph"), prefill(&kv_pairs())),
            None
        );
        assert_eq!(prefill_graph(&Bytes::new(), prefill(&kv_pairs())), None);
    }
}
