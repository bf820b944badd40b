//! The engine of the decision server: request bytes in, response bytes out.
//!
//! The stages, in the order of a request: [`wire`] parses, [`layout`] and [`tokenize`] encode,
//! [`queue`] gives turns on the model, [`session`] runs it, [`decode`] turns logits into
//! probabilities, and [`wire`] writes the answer. [`stages`] joins these steps, [`batch`] takes
//! many states through them, [`engine`] is the whole, and [`node`] is its N-API interface.

pub mod backend;
pub mod batch;
pub mod cache;
pub mod caught;
pub mod decode;
pub mod engine;
pub mod error;
pub mod layout;
pub mod model;
pub mod node;
pub mod onnx;
pub mod pace;
pub mod question;
pub mod queue;
pub mod reading;
pub mod session;
pub mod stages;
pub mod stop;
pub mod tenure;
pub mod tokenize;
pub mod wire;
pub mod words;

pub use error::Error;
