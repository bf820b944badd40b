//! Tests that the inputs of `benches/inputs` hold the rows that the engine makes for the embedded
//! model, so that a change of what it reads, or of the model, is not measured with the rows before.

#[path = "../../examples/rows.rs"]
#[expect(dead_code, reason = "a test has no use for the program's `main`")]
mod rows;

use std::fs;
use std::path::Path;

use crate::common::repository;
use serde_json::Value;
use svc_engine::tokenize::Tokenizer;
use svc_engine::wire::{Most, systemone};

fn json(file: &Path) -> Value {
    let bytes = fs::read(file).expect("a file");
    serde_json::from_slice(&bytes).expect("JSON")
}

#[test]
fn the_inputs_of_the_benches_hold_the_rows_of_the_embedded_model() {
    let folder = repository().join("models/svc-small");
    let config = json(&folder.join("config.json"));
    let file = folder.join("tokenizer.json");
    let tokenizer = Tokenizer::from_bytes(&file, &fs::read(&file).expect("a tokenizer"));
    let tokenizer = tokenizer.expect("a tokenizer");
    let layout = rows::layout(&folder, &tokenizer).expect("a layout");
    let mut checked = 0;
    for entry in fs::read_dir(repository().join("benches/inputs")).expect("a folder") {
        let file = entry.expect("an entry").path();
        if file.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let input = json(&file);
        let body = input["body"].as_str().expect("a body");
        let request = systemone::parse(body.as_bytes(), Most::ANY).expect("a request");
        let rows = rows::rows(layout.as_ref(), &tokenizer, &request).expect("rows");
        let name = file.display();
        let again = "run node benches/inputs/make.mjs";
        assert_eq!(
            input["model"]["sha256"], config["sha256"],
            "{name}: {again}"
        );
        assert!(input["rows"] == rows, "{name} has other rows: {again}");
        checked += 1;
    }
    assert_ne!(checked, 0, "no inputs");
}
