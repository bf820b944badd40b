//! The findings about an ONNX graph from taking its file apart, and graphs that are made of its
//! parts.

pub mod exact;
pub mod presents;
pub mod probe;
pub mod products;
pub mod reading;

pub(crate) mod proto;

mod bias;
mod inlined;
mod scope;
mod stored;

/// The names of a key or a value that is kept: the graph's input for the past one, and its output.
pub type KeptTensor = (String, String);
