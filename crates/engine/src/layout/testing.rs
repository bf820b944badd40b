//! Helpers that the tests of several layouts share.

use std::path::Path;

use crate::stop::Stop;
use crate::tokenize::{Meter, Tokenizer};

/// Returns a tokenizer of the committed models in the forms of their makers.
pub(super) fn published_tokenizer(path: &str) -> Tokenizer {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/published");
    let file = folder.join(path);
    let bytes = std::fs::read(&file).expect("a committed tokenizer");
    Tokenizer::from_bytes(&file, &bytes).expect("a tokenizer")
}

/// Returns the ids of parts of a row: special tokens by name, and texts tokenized one by one.
pub(super) fn ids_of(tokenizer: &Tokenizer, parts: &[&str]) -> Vec<i64> {
    let stop = Stop::never();
    let mut meter = Meter::new(usize::MAX, &stop);
    let parts = parts.iter().map(|part| match tokenizer.special(part) {
        Some(special) => vec![special.id],
        None => {
            let tokens = tokenizer.encode(part, usize::MAX, &mut meter);
            tokens.expect("tokens").ids
        }
    });
    parts.collect::<Vec<_>>().concat()
}
