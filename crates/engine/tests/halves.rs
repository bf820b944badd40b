//! Tests of graphs whose float inputs and outputs have 16 bits.

mod common;

use std::fs;

use common::{answer, engine, fixture};
use serde_json::Value;

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
        for folder_of_files in [from.clone(), fixture("halves").join(name)] {
            for file in fs::read_dir(folder_of_files).expect("the folder") {
                let file = file.expect("a file").path();
                let to = folder.path().join(file.file_name().expect("a name"));
                fs::copy(&file, to).expect("a copy");
            }
        }
        let answers = [from.as_path(), folder.path()].map(|at| answer(&engine(at, 2), BODY));
        let [whole, half] = answers.map(|answer| answer["answers"].clone());
        let of = |answers: &Value| -> Vec<f64> {
            let answers = answers.as_object().expect("answers").values();
            let all = answers.flat_map(|it| it["probabilities"].as_object().expect("labels"));
            all.map(|(_, p)| p.as_f64().expect("a number")).collect()
        };
        let both = of(&whole).into_iter().zip(of(&half));
        let worst = both.map(|(one, other)| (one - other).abs());
        let worst = worst.fold(0.0, f64::max);
        assert!(worst <= TOLERANCE, "{name}: {worst}");
        assert_ne!(whole, half, "{name}: no bit was lost");
    }
}
