//! What is found out about an ONNX graph by taking its file apart, and parts that are made of it.

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

/// A key or a value that is kept: the graph's input for the past one, and its output.
pub type KeptTensor = (String, String);
