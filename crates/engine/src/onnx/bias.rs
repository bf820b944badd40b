//! Whether the bias that a graph adds to the attention's weights has no effect in a state.
//!
//! The bias determines which options of a question see each other. The tokens of a state all see
//! each other, so there the bias adds the same value to every weight, and softmax cancels it; yet
//! the addition takes time for each head, layer and pair of tokens.

use std::collections::{HashMap, HashSet};

use prost::Message;

use super::proto::{Field, Initializer, Node, count, graph_tag};

/// Operators whose result has one value everywhere if their inputs do, apart from shapes.
const EVEN: [&str; 16] = [
    "Add",
    "And",
    "Cast",
    "Concat",
    "Equal",
    "Expand",
    "Gather",
    "Mul",
    "Not",
    "Or",
    "Pad",
    "Reshape",
    "Sub",
    "Transpose",
    "Unsqueeze",
    "Where",
];

/// The most values of a weight that is a number, or a few numbers about a shape.
const MAX_NUMBERS: usize = 4;

/// The origins of the values of a graph.
pub struct Origins<'a> {
    makers: HashMap<&'a str, &'a Node>,
    numbers: HashSet<String>,
}

impl<'a> Origins<'a> {
    /// Returns the origins of a graph's values; `None` for a graph that is not understood.
    pub fn of(nodes: &'a [(Node, &Field)], all: &[Field]) -> Option<Self> {
        let outputs = |node: &'a Node| node.output.iter().map(move |name| (name.as_str(), node));
        let makers = nodes.iter().flat_map(|(node, _)| outputs(node));
        let weights = all
            .iter()
            .filter(|field| field.tag == graph_tag::INITIALIZER);
        let weights = weights.map(|field| Initializer::decode(field.value.clone()));
        let weights = weights.collect::<Result<Vec<_>, _>>().ok()?.into_iter();
        let is_small = |dims: &[i64]| count(dims).is_some_and(|count| count <= MAX_NUMBERS);
        let numbers = weights.filter(|weight| is_small(&weight.dims));
        Some(Self {
            makers: makers.collect(),
            numbers: numbers.map(|weight| weight.name).collect(),
        })
    }

    /// Whether a value is the same everywhere in a row if `input` is: it is made of nothing else
    /// that varies, and by no operator that counts places.
    pub fn is_even(&self, value: &'a str, input: &str) -> bool {
        let mut open = vec![value];
        let mut seen = HashSet::new();
        while let Some(name) = open.pop() {
            if name.is_empty() || name == input || self.numbers.contains(name) || !seen.insert(name)
            {
                continue;
            }
            match self.makers.get(name) {
                Some(node) if !node.domain.is_empty() => return false,
                Some(node) if node.op_type == "Shape" => {}
                Some(node) if EVEN.contains(&node.op_type.as_str()) => {
                    open.extend(node.input.iter().map(String::as_str));
                }
                _ => return false,
            }
        }
        true
    }
}
