//! Tests of a graph that is so large that one session answers while the others are opened.

use std::fs;
use std::path::Path;
use std::thread;

use crate::common::{answer, copy_files, engine, fixture, furthest, options, plan};
use prost::encoding::{decode_varint, encode_varint};
use svc_engine::Error;
use svc_engine::backend::Backend;
use svc_engine::layout::Plan;
use svc_engine::model::{Model, Source};
use svc_engine::stop::Stop;

/// The size of the weight that makes a graph large, in bytes.
const LARGE: usize = 65 << 20;

const BODY: &str = r#"{"state": "The order was late, and nobody answered the phone.", "questions": {
    "a": {"type": "noul", "instructions": "Is it late?"}, "b": {"type": "noul"},
    "c": {"type": "choice", "criteria": {"order": null, "phone": "a call"}},
    "d": {"type": "score", "criteria": ["low", "middle", "high"]}}}"#;

/// Adds a field with a length to a protobuf message.
fn put(message: &mut Vec<u8>, tag: u8, value: &[u8]) {
    message.push(tag << 3 | 2);
    encode_varint(value.len() as u64, message);
    message.extend_from_slice(value);
}

/// Returns a model with further fields in its graph.
fn with_more(mut model: &[u8], more: &[u8]) -> Vec<u8> {
    let mut changed = Vec::new();
    while let Some(key) = model.first() {
        let (tag, has_length) = (key >> 3, key & 7 == 2);
        model = &model[1..];
        let number = decode_varint(&mut model).expect("a number");
        if !has_length {
            changed.push(tag << 3);
            encode_varint(number, &mut changed);
            continue;
        }
        let (value, rest) = model.split_at(number as usize);
        model = rest;
        match tag {
            7 => put(&mut changed, tag, &[value, more].concat()),
            _ => put(&mut changed, tag, value),
        }
    }
    changed
}

/// Copies a model folder, with a large weight in its graph, which a product of integers reads.
fn large(from: &Path, graph_file: &str, folder: &Path) {
    copy_files(from, folder);
    let mut dims = Vec::new();
    encode_varint(LARGE as u64, &mut dims);
    let mut tensor = Vec::new();
    put(&mut tensor, 1, &dims);
    // The type is int8.
    tensor.extend_from_slice(&[2 << 3, 3]);
    put(&mut tensor, 8, b"large");
    put(&mut tensor, 9, &vec![1; LARGE]);
    let mut node = Vec::new();
    put(&mut node, 1, b"large");
    put(&mut node, 1, b"large");
    put(&mut node, 2, b"product_of_large");
    put(&mut node, 4, b"MatMulInteger");
    let mut graph = Vec::new();
    put(&mut graph, 1, &node);
    put(&mut graph, 5, &tensor);
    let path = folder.join(graph_file);
    let model = with_more(&fs::read(&path).expect("the graph"), &graph);
    fs::write(path, model).expect("the large graph");
    let path = folder.join("config.json");
    let Ok(config) = fs::read(&path) else {
        return;
    };
    let mut config: serde_json::Value = serde_json::from_slice(&config).expect("JSON");
    config.as_object_mut().expect("an object").remove("sha256");
    fs::write(path, config.to_string()).expect("the settings");
}

fn load(folder: &Path, threads: usize, parallel: usize) -> Model {
    let source = Source {
        parallel,
        ..options(folder, threads).source
    };
    Model::load(&source).expect("the model loads")
}

#[test]
fn its_answers_are_the_same_to_the_bit_before_and_after_all_sessions_are_open() {
    for name in ["marker", "shared-state"] {
        let folder = tempfile::tempdir().expect("a folder");
        large(&fixture(name), "model.onnx", folder.path());
        let small = load(&fixture(name), 2, 1);
        let expected = small
            .run(&plan(&small, BODY), &Stop::never())
            .expect("answers");
        for (threads, parallel) in [(1, 1), (2, 1), (4, 3)] {
            let model = load(folder.path(), threads, parallel);
            let plan = plan(&model, BODY);
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        for _ in 0..40 {
                            let answers = model.run(&plan, &Stop::never());
                            assert_eq!(answers.as_ref(), Ok(&expected), "{name}, {threads}");
                        }
                    });
                }
            });
        }
    }
}

#[test]
fn the_end_does_not_wait_for_sessions_that_are_not_begun() {
    let folder = tempfile::tempdir().expect("a folder");
    large(&fixture("shared-state"), "model.onnx", folder.path());
    let model = load(folder.path(), 16, 16);
    let plan = plan(&model, BODY);
    model.terminate();
    assert_eq!(model.run(&plan, &Stop::never()), Err(Error::Closing));
}

#[test]
fn as_its_makers_publish_it_its_norms_are_computed_otherwise_to_the_same_answers() {
    for (name, graph_file) in [
        ("julia", "model.onnx"),
        ("laya-whole-mask", "model.onnx"),
        ("jevhome-e", "encoder.onnx"),
    ] {
        let from = fixture("published").join(name);
        let folder = tempfile::tempdir().expect("a folder");
        large(&from, graph_file, folder.path());
        let logits = |model: &Model| {
            model
                .run(&plan(model, BODY), &Stop::never())
                .expect("answers")
        };
        let logits = [from.as_path(), folder.path()].map(|at| logits(&load(at, 2, 1)));
        assert_ne!(logits[0], logits[1], "{name}: all bits are the same");
        let answers = [from.as_path(), folder.path()].map(|at| answer(&engine(at, 2), BODY));
        let worst = furthest(&answers[0], &answers[1]);
        assert!(worst <= 1e-5, "{name}: {worst:.1e}");
        let single = load(folder.path(), 1, 1);
        let single = single.run(&plan(&single, BODY), &Stop::never());
        assert_eq!(single.as_ref(), Ok(&logits[1]), "{name}: one thread");
        // With reference answers nothing rounds otherwise.
        fs::write(folder.path().join("golden.jsonl"), "").expect("a file");
        let with_references = load(folder.path(), 2, 1);
        let with_references = with_references.run(&plan(&with_references, BODY), &Stop::never());
        assert_eq!(with_references.as_ref(), Ok(&logits[0]), "{name}");
    }
}

#[test]
fn a_scorer_gives_the_same_bits_on_any_number_of_threads() {
    let folder = fixture("published").join("decima-bare");
    let body = r#"{"state": "The order was late, and nobody answered the phone.", "questions": {
        "c": {"type": "choice", "criteria": {"order": null, "phone": "a call"}}}}"#;
    let logits = |model: &Model, plan: &Plan| model.run(plan, &Stop::never()).expect("answers");
    let single = load(&folder, 1, 1);
    let expected = logits(&single, &plan(&single, body));
    for threads in [4, 8, 16] {
        let model = load(&folder, threads, 1);
        let plan = plan(&model, body);
        for _ in 0..20 {
            assert_eq!(logits(&model, &plan), expected, "{threads} threads");
        }
    }
}
