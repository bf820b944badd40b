//! Tests of products of 8-bit integers that would saturate on some processors: each operator with
//! such products, in a graph whose answers show it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{PROCESSOR_TOLERANCE, answer, compare, engine, fixture, repository};
use serde_json::Value;
use svc_engine::engine::Engine;
use svc_engine::onnx::exact::{Processor, Products, exact_graph};
use svc_engine::onnx::products::Pairs;
use svc_engine::session::Exactness;

/// A graph whose weights have no type before it runs.
const NOT_TO_BE_MENDED: &str = "sequence";
/// A graph that multiplies in each of two branches.
const OF_TWO_PRODUCTS: &str = "function-branch";

/// An x86 processor without VNNI.
const SATURATES: Processor = Processor {
    unsigned: Pairs::Large,
    dequantized: Pairs::Large,
    quantizes_rows: false,
};

fn graph(name: &str) -> PathBuf {
    fixture("products").join(format!("{name}.onnx"))
}

/// Returns the reference answers of each graph.
fn golden() -> Vec<(String, Vec<Value>)> {
    let text = fs::read_to_string(fixture("products").join("golden.json")).expect("golden.json");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    let all = all.as_object().expect("an object").iter();
    all.map(|(name, lines)| (name.clone(), lines.as_array().expect("lines").clone()))
        .collect()
}

/// Makes a copy of the test fixture `marker` with another graph, and returns its folder.
fn folder_with(name: &str, graph: &[u8]) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("svc-products-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let marker = fixture("marker");
    let config = fs::read_to_string(marker.join("config.json")).expect("config.json");
    let mut config: Value = serde_json::from_str(&config).expect("JSON");
    config.as_object_mut().expect("an object").remove("sha256");
    fs::write(folder.join("config.json"), config.to_string()).expect("config.json");
    fs::copy(marker.join("tokenizer.json"), folder.join("tokenizer.json")).expect("a tokenizer");
    fs::write(folder.join("model.onnx"), graph).expect("a graph");
    folder
}

/// Returns the largest difference between an engine's answers and reference answers.
fn worst(engine: &Engine, lines: &[Value], key: &str) -> f64 {
    let differences = lines.iter().map(|line| {
        let mut line = line.clone();
        line["probabilities"] = line[key].take();
        compare(
            &answer(engine, line["body"].as_str().expect("a body")),
            &line,
        )
    });
    differences.fold(0.0, f64::max)
}

fn mended(path: &Path) -> (Products, Option<Vec<u8>>) {
    let bytes = fs::read(path).expect("a graph").into();
    let (products, graph) = exact_graph(&bytes, Path::new("."), SATURATES).expect("a graph");
    (products, graph.map(|graph| graph.to_vec()))
}

/// Returns the outcome of an engine's products in one word.
fn outcome(exactness: &Exactness) -> &'static str {
    match exactness {
        Exactness::Exact => "exact",
        Exactness::MadeExact { .. } => "made exact",
        Exactness::CannotBe { .. } => "cannot be",
    }
}

/// On a processor that saturates, each product is made exact when its graph is loaded; on another
/// one it is used as the file has it.
#[test]
fn every_operator_gives_the_exact_answers_wherever_it_runs() {
    let mut names = Vec::new();
    for (name, lines) in golden() {
        let folder = folder_with(&name, &fs::read(graph(&name)).expect("a graph"));
        for threads in [1, 2] {
            let engine = engine(&folder, threads);
            let exactness = engine.info().expect("a model").exactness;
            let outcome = outcome(&exactness);
            names.push(outcome);
            let key = match outcome {
                "cannot be" => "saturated",
                _ => "probabilities",
            };
            let worst = worst(&engine, &lines, key);
            assert!(worst <= PROCESSOR_TOLERANCE, "{name}: {worst:.2e}");
            assert_eq!(exactness.note().is_some(), outcome != "exact");
        }
        fs::remove_dir_all(folder).expect("a folder");
    }
    names.sort_unstable();
    names.dedup();
    assert!(
        names == ["exact"] || names == ["cannot be", "made exact"],
        "{names:?}"
    );
}

#[test]
fn a_mended_graph_gives_the_exact_answers_and_has_nothing_more_to_mend() {
    for (name, lines) in golden() {
        let (products, graph) = mended(&graph(&name));
        if name == NOT_TO_BE_MENDED {
            assert_eq!((products.mended, products.left.len()), (0, 1));
            assert!(graph.is_none());
            continue;
        }
        let count = if name == OF_TWO_PRODUCTS { 2 } else { 1 };
        assert_eq!((products.mended, products.left.len()), (count, 0), "{name}");
        let folder = folder_with(&format!("{name}-mended"), &graph.expect("another graph"));
        let (again, same) = mended(&folder.join("model.onnx"));
        assert_eq!(again, Products::default(), "{name}");
        assert!(same.is_none(), "{name}");
        let engine = engine(&folder, 2);
        let exactness = engine.info().expect("a model").exactness;
        assert_eq!(exactness, Exactness::Exact, "{name}");
        let worst = worst(&engine, &lines, "probabilities");
        assert!(worst <= PROCESSOR_TOLERANCE, "{name}: {worst:.2e}");
        fs::remove_dir_all(folder).expect("a folder");
    }
}

#[test]
fn weights_that_cannot_saturate_are_left_alone() {
    for name in ["shared-state-int8", "marker"] {
        let (products, graph) = mended(&fixture(name).join("model.onnx"));
        assert_eq!(products, Products::default(), "{name}");
        assert!(graph.is_none(), "{name}");
    }
    let embedded = repository().join("models/svc-small/model.onnx");
    let (products, graph) = mended(&embedded);
    assert_eq!(products, Products::default());
    assert!(graph.is_none());
}
