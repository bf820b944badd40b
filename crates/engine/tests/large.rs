//! Tests of a graph that is so large that one session answers while the others are opened.

mod common;

use std::fs;
use std::path::Path;
use std::thread;

use common::{fixture, options};
use svc_engine::Error;
use svc_engine::backend::Backend;
use svc_engine::layout::Plan;
use svc_engine::model::{Model, Source};
use svc_engine::stop::Stop;
use svc_engine::tokenize::Meter;
use svc_engine::wire::{Most, systemone};

/// The size of the weight that makes a graph large, in bytes.
const LARGE: usize = 65 << 20;

const BODY: &str = r#"{"state": "The order was late, and nobody answered the phone.", "questions": {
    "a": {"type": "noul", "instructions": "Is it late?"}, "b": {"type": "noul"},
    "c": {"type": "choice", "criteria": {"order": null, "phone": "a call"}},
    "d": {"type": "score", "criteria": ["low", "middle", "high"]}}}"#;

/// Adds a field with a length to a protobuf message.
fn put(message: &mut Vec<u8>, tag: u8, value: &[u8]) {
    message.push(tag << 3 | 2);
    let mut length = value.len();
    while length >= 0x80 {
        message.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    message.push(length as u8);
    message.extend_from_slice(value);
}

/// Copies a model folder, with a large weight in its graph.
fn large(name: &str, folder: &Path) {
    for file in fs::read_dir(fixture(name)).expect("the folder") {
        let file = file.expect("a file").path();
        fs::copy(&file, folder.join(file.file_name().expect("a name"))).expect("a copy");
    }
    let mut dims = Vec::new();
    let mut rest = LARGE;
    while rest >= 0x80 {
        dims.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    dims.push(rest as u8);
    let mut tensor = Vec::new();
    put(&mut tensor, 1, &dims);
    // The type is int8.
    tensor.extend_from_slice(&[2 << 3, 3]);
    put(&mut tensor, 8, b"large");
    put(&mut tensor, 9, &vec![1; LARGE]);
    let mut node = Vec::new();
    put(&mut node, 1, b"large");
    put(&mut node, 2, b"shape_of_large");
    put(&mut node, 4, b"Shape");
    let mut graph = Vec::new();
    put(&mut graph, 1, &node);
    put(&mut graph, 5, &tensor);
    // A message that comes twice is merged.
    let path = folder.join("model.onnx");
    let mut model = fs::read(&path).expect("the graph");
    put(&mut model, 7, &graph);
    fs::write(path, model).expect("the large graph");
    let path = folder.join("config.json");
    let config = fs::read(&path).expect("the settings");
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

fn plan(model: &Model) -> Plan {
    let request = systemone::parse(BODY.as_bytes(), Most::ANY).expect("a request");
    let stop = Stop::never();
    let mut meter = Meter::new(usize::MAX, &stop);
    let questions = model.encode_questions(&request.questions, &mut meter);
    let plan = model.encode_state(&request.state, &questions.expect("rows"), &mut meter);
    plan.expect("rows")
}

#[test]
fn its_answers_are_the_same_to_the_bit_before_and_after_all_sessions_are_open() {
    for name in ["marker", "shared-state"] {
        let folder = tempfile::tempdir().expect("a folder");
        large(name, folder.path());
        let small = load(&fixture(name), 2, 1);
        let expected = small.run(&plan(&small), &Stop::never()).expect("answers");
        for (threads, parallel) in [(1, 1), (2, 1), (4, 3)] {
            let model = load(folder.path(), threads, parallel);
            let plan = plan(&model);
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
    large("shared-state", folder.path());
    let model = load(folder.path(), 16, 16);
    let plan = plan(&model);
    model.terminate();
    assert_eq!(model.run(&plan, &Stop::never()), Err(Error::Closing));
}
