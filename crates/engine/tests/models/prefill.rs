//! Tests that a part of the graph prefills states, where that gives the same bits.

use std::time::{Duration, Instant};

use crate::common::{fixture, options, repository};
use svc_engine::backend::Backend;
use svc_engine::decode::Logits;
use svc_engine::model::Model;
use svc_engine::stop::Stop;
use svc_engine::tokenize::Meter;
use svc_engine::wire::{Most, systemone};

const BODY: &str = r#"{"state": "The parcel arrived crushed and I want my money back.",
    "questions": {"angry": {"type": "noul", "instructions": "Is the customer angry?"}}}"#;

fn answer(model: &Model) -> Logits {
    let request = systemone::parse(BODY.as_bytes(), Most::ANY).expect("a request");
    let stop = Stop::never();
    let mut meter = Meter::new(usize::MAX, &stop);
    let questions = model.encode_questions(&request.questions, &mut meter);
    let plan = model.encode_state(&request.state, &questions.expect("rows"), &mut meter);
    let logits = model.run(&plan.expect("rows"), &stop);
    logits.expect("an answer").remove(0)
}

fn load(folder: &std::path::Path, threads: usize) -> Model {
    Model::load(&options(folder, threads).source).expect("the model loads")
}

#[test]
fn the_embedded_model_prefills_states_with_a_part_of_its_graph() {
    for threads in [1, 2] {
        let model = load(&repository().join("models/svc-small"), threads);
        let first = answer(&model).outcomes;
        // The session for the part is opened in the background of the first answers.
        let until = Instant::now() + Duration::from_secs(60);
        while !model.prefills_in_part() && Instant::now() < until {
            assert_eq!(answer(&model).outcomes, first, "{threads} threads");
        }
        assert!(model.prefills_in_part(), "{threads} threads");
        assert_eq!(answer(&model).outcomes, first, "{threads} threads");
    }
}

#[test]
fn a_layout_that_keeps_nothing_has_no_such_part() {
    let model = load(&fixture("marker"), 1);
    answer(&model);
    model.terminate();
    assert!(!model.prefills_in_part());
}
