//! Tests against reference answers, which an independent implementation computed from the same
//! graphs.

use crate::common::{
    FP32_TOLERANCE, PROCESSOR_TOLERANCE, answer, compare, engine, fixture, golden,
    largest_difference, repository,
};
use std::path::Path;

use serde_json::Value;
use serde_json::value::RawValue;
use svc_engine::layout::{Layout, Plan, Row, marker, shared_state};
use svc_engine::stop::Stop;
use svc_engine::tokenize::{Meter, Tokenizer};
use svc_engine::wire::{Most, systemone};

fn check_fixture(name: &str, tolerance: f64) {
    let folder = fixture(name);
    for threads in [1, 2] {
        let engine = engine(&folder, threads);
        for line in golden(&folder) {
            let body = line["body"].as_str().expect("a body");
            let got = answer(&engine, body);
            let worst = compare(&got, &line);
            assert!(worst <= tolerance, "{name}: {}: {worst:.2e}", line["name"]);
            check_truncated(&got, &line);
            check_action(&got, &line);
        }
    }
}

fn check_truncated(got: &Value, line: &Value) {
    let expected = &line["truncated_tokens"];
    match expected.as_u64() {
        Some(0) => assert!(
            got["usage"].get("truncated_tokens").is_none(),
            "{}",
            line["name"]
        ),
        _ => assert_eq!(
            &got["usage"]["truncated_tokens"], expected,
            "{}",
            line["name"]
        ),
    }
}

fn check_action(got: &Value, line: &Value) {
    for (id, answer) in got["answers"].as_object().expect("answers") {
        let act = answer
            .get("action")
            .map(|action| action["act_probability"].as_f64());
        let expected = line["action"].get(id).map(Value::as_f64);
        match (act.flatten(), expected.flatten()) {
            (Some(act), Some(expected)) => assert!((act - expected).abs() < 0.05),
            (None, None) => {}
            other => panic!("{}: {id}: {other:?}", line["name"]),
        }
    }
}

#[test]
fn marker_answers_as_the_reference() {
    check_fixture("marker", FP32_TOLERANCE);
}

#[test]
fn marker_without_finite_action_outputs_has_no_action() {
    check_fixture("marker-no-action", FP32_TOLERANCE);
}

#[test]
fn shared_state_answers_as_the_reference() {
    check_fixture("shared-state", FP32_TOLERANCE);
}

#[test]
fn shared_state_in_int8_answers_as_the_reference() {
    check_fixture("shared-state-int8", PROCESSOR_TOLERANCE);
}

#[test]
fn cross_encoders_answer_as_their_makers_in_pytorch() {
    for name in ["pair-bert", "pair-roberta", "pair-deberta", "pair-reranker"] {
        check_fixture(name, FP32_TOLERANCE);
    }
}

#[test]
fn an_encoder_and_a_head_in_two_files_answer_as_their_makers() {
    let engine = engine(&fixture("published/laya-split"), 2);
    let file = fixture("published").join("laya-split.golden.jsonl");
    let text = std::fs::read_to_string(file).expect("the makers' answers");
    // Such texts have few enough tokens that none is cut, which needs a setting of its own.
    for line in text.lines().filter(|line| line.len() < 300) {
        let line: Value = serde_json::from_str(line).expect("a line");
        let got = answer(&engine, line["body"].as_str().expect("a body"));
        let worst = largest_difference(&got, &line["answers"], "laya-split");
        assert!(worst <= FP32_TOLERANCE, "{line}: {worst:.2e}");
    }
}

#[test]
fn an_answer_of_open_jev_depends_on_its_neighbours_only_where_the_settings_say_so() {
    let together = r#"{"state":"The order was late.","questions":{
        "a":{"type":"noul","instructions":"Is it late?"},"b":{"type":"noul","instructions":"Is it wrong?"}}}"#;
    let alone = together.replace(r#""a":{"type":"noul","instructions":"Is it late?"},"#, "");
    assert!(alone.len() < together.len());
    for (name, is_alike) in [
        ("published/open-jev", true),
        ("published/open-jev-packed", false),
    ] {
        let engine = engine(&fixture(name), 1);
        let [together, alone] = [together, &alone].map(|body| answer(&engine, body));
        let of = |got: &Value| got["answers"]["b"]["probabilities"].to_string();
        assert_eq!(of(&together) == of(&alone), is_alike, "{name}");
    }
}

#[test]
fn the_embedded_model_answers_as_the_reference() {
    let folder = repository().join("models/svc-small");
    let engine = engine(&folder, 2);
    let (mut worst, mut answers) = (0.0_f64, 0);
    for (line, body) in golden(&folder).into_iter().zip(requests(&folder)) {
        worst = worst.max(compare(&answer(&engine, &body), &line));
        answers += line["probabilities"].as_object().expect("answers").len();
    }
    println!("{answers} answers, largest difference {worst:.2e}");
    assert!(
        worst <= PROCESSOR_TOLERANCE,
        "largest difference {worst:.2e}"
    );
}

/// Returns the requests of the embedded model's reference answers, as they stand in the file: the
/// reference read their states from exactly this text.
fn requests(folder: &Path) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Line<'a> {
        #[serde(borrow)]
        request: &'a RawValue,
    }
    let text = std::fs::read_to_string(folder.join("golden.jsonl")).expect("golden.jsonl");
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Line<'_>>(line).expect("a line"));
    lines.map(|line| line.request.get().to_owned()).collect()
}

fn settings<T: serde::de::DeserializeOwned>(name: &str) -> T {
    let text = std::fs::read_to_string(fixture(name).join("config.json")).expect("config.json");
    serde_json::from_str(&text).expect("settings")
}

fn plan(layout: &dyn Layout, name: &str, line: &Value) -> (Vec<String>, Plan) {
    let file = fixture(name).join("tokenizer.json");
    let tokenizer = Tokenizer::from_bytes(&file, &std::fs::read(&file).expect("tokenizer.json"));
    let body = line["body"].as_str().expect("a body");
    let request = systemone::parse(body.as_bytes(), Most::ANY).expect("a request");
    let plan = layout
        .encode(
            &tokenizer.expect("a tokenizer"),
            &request,
            &mut Meter::new(usize::MAX, &Stop::never()),
        )
        .expect("rows");
    let ids = request.questions.into_iter().map(|question| question.id);
    (ids.collect(), plan)
}

fn numbers(value: &Value) -> Vec<i64> {
    let items = value.as_array().expect("a list").iter();
    items.map(|item| item.as_i64().expect("a number")).collect()
}

#[test]
fn marker_rows_are_the_reference_token_by_token() {
    let layout = marker::Marker::new(settings("marker"));
    for line in golden(&fixture("marker")) {
        let (ids, plan) = plan(&layout, "marker", &line);
        assert!(plan.state.is_empty());
        for (id, question) in ids.iter().zip(plan.questions.iter()) {
            let expected = line["rows"][id].as_array().expect("rows");
            assert_eq!(question.rows.len(), expected.len(), "{}", line["name"]);
            for (row, expected) in question.rows.iter().zip(expected) {
                assert_eq!(row.ids, numbers(&expected["input_ids"]), "{}", line["name"]);
                assert_eq!(
                    row.markers,
                    numbers(&expected["markers"]),
                    "{}",
                    line["name"]
                );
            }
        }
    }
}

#[test]
fn shared_state_rows_are_the_reference_token_by_token() {
    let layout = shared_state::SharedState::new(settings("shared-state"));
    for line in golden(&fixture("shared-state")) {
        let name = &line["name"];
        let (ids, plan) = plan(&layout, "shared-state", &line);
        let chunks: Vec<&Vec<i64>> = plan.state.iter().map(|row| &row.ids).collect();
        let expected: Vec<Vec<i64>> = line["state_chunks"]
            .as_array()
            .expect("chunks")
            .iter()
            .map(numbers)
            .collect();
        assert_eq!(chunks, expected.iter().collect::<Vec<_>>(), "{name}");
        for row in &plan.state {
            check_state_row(row);
        }
        for (id, question) in ids.iter().zip(plan.questions.iter()) {
            let expected = line["runs"][id].as_array().expect("runs");
            assert_eq!(question.rows.len(), expected.len(), "{name}");
            let options: usize = expected
                .iter()
                .map(|run| numbers(&run["markers"]).len())
                .sum();
            for (row, expected) in question.rows.iter().zip(expected) {
                assert_eq!(row.option_count, options as i64, "{name}");
                assert_eq!(row.ids, numbers(&expected["input_ids"]), "{name}");
                assert_eq!(row.positions, numbers(&expected["positions"]), "{name}");
                assert_eq!(row.option_ids, numbers(&expected["option_ids"]), "{name}");
                assert_eq!(row.markers, numbers(&expected["markers"]), "{name}");
                let outcomes: Vec<i64> = row.outcomes.iter().map(|at| *at as i64).collect();
                assert_eq!(outcomes, numbers(&expected["options"]), "{name}");
            }
        }
    }
}

fn check_state_row(row: &Row) {
    assert_eq!(row.positions, (0..row.ids.len() as i64).collect::<Vec<_>>());
    assert!(row.option_ids.iter().all(|option| *option == 0));
    assert_eq!(
        (row.markers.len(), row.type_id, row.option_count),
        (0, 0, 0)
    );
}
