//! The findings about an ONNX graph from taking its file apart, and graphs that are made of its
//! parts.

pub mod beside;
pub mod exact;
pub mod joined;
pub mod norms;
pub mod prefill;
pub mod presents;
pub mod probe;
pub mod products;
pub mod weights;

pub(crate) mod proto;

mod bias;
mod inlined;
mod scope;
mod stored;

/// The names of the keys, or of the values, of one layer: a graph's input and its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvPair {
    /// The input, for those of the tokens before the run.
    pub past: String,
    /// The output, for those of the tokens before the run and of its own.
    pub present: String,
}

impl KvPair {
    /// Returns the pair of these names.
    pub fn new(past: impl Into<String>, present: impl Into<String>) -> Self {
        Self {
            past: past.into(),
            present: present.into(),
        }
    }
}
