//! The parts that the tests on real models share: the paths of files, and an engine that answers at
//! once.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;
use svc_engine::Error;
use svc_engine::backend::Backend;
use svc_engine::cache::Precision;
use svc_engine::engine::{Answered, Arrival, Engine, Options};
use svc_engine::layout::Plan;
use svc_engine::model::{Model, Source};
use svc_engine::queue::Limits;
use svc_engine::stop::Stop;
use svc_engine::tokenize::Meter;
use svc_engine::wire::{Format, Most, systemone};

/// The greatest difference of an fp32 graph's probabilities from the reference.
pub const FP32_TOLERANCE: f64 = 1e-5;

/// The greatest difference of an int8 graph's probabilities from the reference, on every processor.
pub const PROCESSOR_TOLERANCE: f64 = 1e-4;

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// Returns the path of the library that `npm run build` puts next to the addon, or of the one that
/// `SVC_RUNTIME` names.
pub fn runtime() -> PathBuf {
    if let Some(path) = std::env::var_os("SVC_RUNTIME") {
        return path.into();
    }
    let name = if cfg!(windows) {
        "onnxruntime.dll"
    } else if cfg!(target_os = "macos") {
        "libonnxruntime.1.29.0.dylib"
    } else {
        "libonnxruntime.so.1"
    };
    let path = repository().join("dist/native").join(name);
    assert!(
        path.exists(),
        "{} is missing: npm run build",
        path.display()
    );
    path
}

pub fn options(folder: &Path, threads: usize) -> Options {
    Options {
        source: Source {
            runtime: runtime(),
            folder: folder.to_owned(),
            device: "cpu".into(),
            threads,
            state_cache_bytes: 0,
            state_cache_precision: Precision::default(),
            parallel: 1,
        },
        max_questions: 1024,
        max_tokens: 1 << 20,
        refuse_truncation: false,
        limits: Limits {
            max_queue: 512,
            max_queue_bytes: 64 << 20,
            request_timeout: Duration::from_secs(60),
            max_run: Duration::from_secs(60),
        },
    }
}

/// Copies the files of a folder into another one.
pub fn copy_files(from: &Path, to: &Path) {
    for file in fs::read_dir(from).expect("the folder") {
        let file = file.expect("a file").path();
        fs::copy(&file, to.join(file.file_name().expect("a name"))).expect("a copy");
    }
}

/// Returns the rows of a request on a model.
pub fn plan(model: &Model, body: &str) -> Plan {
    let request = systemone::parse(body.as_bytes(), Most::ANY).expect("a request");
    let stop = Stop::never();
    let mut meter = Meter::new(usize::MAX, &stop);
    let questions = model.encode_questions(&request.questions, &mut meter);
    let plan = model.encode_state(&request.state, &questions.expect("rows"), &mut meter);
    plan.expect("rows")
}

pub fn engine(folder: &Path, threads: usize) -> Engine {
    Engine::load(options(folder, threads)).expect("the model loads")
}

/// Asks the engine and waits for the outcome.
pub fn decide(engine: &Engine, body: &[u8]) -> Result<Answered, Error> {
    static TICKET: AtomicU64 = AtomicU64::new(1);
    let (sender, receiver) = mpsc::channel();
    let ticket = TICKET.fetch_add(1, Ordering::Relaxed);
    let reply = move |outcome| drop(sender.send(outcome));
    let arrival = Arrival {
        ticket,
        format: Format::SystemOne,
        body: body.to_vec(),
        elapsed: Duration::ZERO,
        patience: None,
    };
    engine.decide(arrival, Box::new(reply));
    receiver
        .recv_timeout(Duration::from_secs(120))
        .expect("an outcome")
}

pub fn answer(engine: &Engine, body: &str) -> Value {
    let answered =
        decide(engine, body.as_bytes()).unwrap_or_else(|error| panic!("{error}: {body}"));
    serde_json::from_slice(&answered.body).expect("JSON")
}

/// Returns only the answers, as text, which must not change by a bit.
pub fn answers(engine: &Engine, body: &str) -> String {
    answer(engine, body)["answers"].to_string()
}

/// Returns the largest difference of a probability between two answers to one request.
pub fn furthest(one: &Value, other: &Value) -> f64 {
    let probabilities = |answer: &Value| -> Vec<f64> {
        let answers = answer["answers"].as_object().expect("answers").values();
        let all = answers.flat_map(|it| it["probabilities"].as_object().expect("labels"));
        all.map(|(_, p)| p.as_f64().expect("a number")).collect()
    };
    let (one, other) = (probabilities(one), probabilities(other));
    assert_eq!(one.len(), other.len());
    let differences = one
        .iter()
        .zip(&other)
        .map(|(one, other)| (one - other).abs());
    differences.fold(0.0, f64::max)
}

/// Returns the lines of a folder's reference answers.
pub fn golden(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("golden.jsonl")).expect("golden.jsonl");
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a golden line"))
        .collect();
    assert!(!lines.is_empty());
    lines
}

/// Compares an answer with a golden line and returns the largest difference of a probability.
pub fn compare(got: &Value, golden: &Value) -> f64 {
    let name = golden["name"].as_str().unwrap_or("");
    assert_eq!(
        got["usage"]["input_tokens"], golden["input_tokens"],
        "{name}"
    );
    largest_difference(got, &golden["probabilities"], name)
}

/// Returns the largest difference of an answer's probabilities from those that are expected, by the
/// questions' ids.
pub fn largest_difference(got: &Value, expected: &Value, name: &str) -> f64 {
    let mut worst = 0.0_f64;
    for (id, expected) in expected.as_object().expect("probabilities") {
        let probabilities = &got["answers"][id]["probabilities"];
        let expected = expected.as_object().expect("labels");
        assert_eq!(
            probabilities.as_object().expect("labels").len(),
            expected.len(),
            "{name}"
        );
        for (label, p) in expected {
            let got = probabilities[label].as_f64().unwrap_or(f64::NAN);
            let difference = (got - p.as_f64().expect("a number")).abs();
            assert!(difference.is_finite(), "{name}: {id}: {label}");
            worst = worst.max(difference);
        }
    }
    worst
}
