//! The tensors that a layout and a graph agree on.

use std::borrow::Cow;

use crate::onnx::KvPair;

/// The tensors that a layout gives to a graph and takes from it.
#[derive(Debug, Clone, Default)]
pub struct Interface {
    /// The inputs that every run gives.
    pub inputs: Vec<Cow<'static, str>>,
    /// The inputs that are given to a graph that has them.
    pub optional_inputs: Vec<&'static str>,
    /// The keys and the values of each layer, where the layout prefills a KV cache: keys at even
    /// places, values at odd ones.
    pub kv_pairs: Vec<KvPair>,
    /// The input that has one value for all tokens of a state, since they all see each other.
    pub even_input: &'static str,
    /// The number of heads and of values per head of each tensor of the KV cache,
    /// `[1, heads, tokens, head_dim]`.
    pub kv_shape: [usize; 2],
    /// The output that has the logits; empty for `logits`.
    pub logits: Cow<'static, str>,
    /// The outputs that are read.
    pub results: Results,
    /// Whether the graph may leave `act_logits` out.
    pub action_is_optional: bool,
}

impl Interface {
    /// Returns the name of the output that has the logits.
    pub fn logits(&self) -> &str {
        match self.logits.as_ref() {
            "" => "logits",
            name => name,
        }
    }
}

/// The outputs that a layout reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Results {
    /// The logits, and `act_logits`.
    #[default]
    Logits,
    /// The first output, whatever its name: what an encoder makes of a text.
    States,
    /// The outputs of these names, which a graph makes that scores texts.
    Scores(Vec<&'static str>),
}

impl Results {
    /// Returns the names of the outputs that a graph must have because it scores texts.
    pub(super) fn names(&self) -> Vec<&'static str> {
        match self {
            Self::Scores(names) => names.clone(),
            Self::Logits | Self::States => Vec::new(),
        }
    }
}
