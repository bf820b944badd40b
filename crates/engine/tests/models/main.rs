//! The tests on real models, in one program, because each program takes seconds to link.

mod bench_inputs;
mod cache;
mod common;
mod damaged;
mod golden;
mod halves;
mod large;
mod prefill;
mod products;
mod properties;
mod terminated;
mod two_graphs;
