//! Bytes to requests and answers to bytes, one file per shape of the API.

pub mod json;
pub mod systemone;
