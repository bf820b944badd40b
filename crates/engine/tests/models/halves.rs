//! Tests of graphs whose float inputs and outputs have 16 bits.

use crate::common::{answer, copy_files, engine, fixture, furthest};

const BODY: &str = r#"{"state": "The order was late, and nobody answered the phone.", "questions": {
    "a": {"type": "noul", "instructions": "Is it late?"},
    "b": {"type": "choice", "instructions": "What?", "criteria": {"order": null, "phone": "a call"}},
    "c": {"type": "score", "instructions": "How?", "criteria": ["low", "middle", "high"]}}}"#;

/// Floats of 16 bits have 11 binary digits.
const TOLERANCE: f64 = 5e-3;

#[test]
fn they_give_the_answers_of_32_bits_up_to_their_digits() {
    for name in ["julia", "jevhome-e"] {
        let from = fixture("published").join(name);
        let folder = tempfile::tempdir().expect("a folder");
        copy_files(&from, folder.path());
        copy_files(&fixture("halves").join(name), folder.path());
        let [whole, half] = [from.as_path(), folder.path()].map(|at| answer(&engine(at, 2), BODY));
        let worst = furthest(&whole, &half);
        assert!(worst <= TOLERANCE, "{name}: {worst}");
        assert_ne!(whole["answers"], half["answers"], "{name}: no bit was lost");
    }
}
