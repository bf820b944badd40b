//! Tests that a terminated model runs nothing any more.

mod common;

use common::{fixture, options};
use svc_engine::Error;
use svc_engine::backend::Backend;
use svc_engine::layout::Plan;
use svc_engine::model::Model;
use svc_engine::stop::Stop;
use svc_engine::tokenize::Meter;
use svc_engine::wire::{Most, systemone};

const BODY: &str = r#"{"state": "The order was late.",
    "questions": {"a": {"type": "noul", "instructions": "Is it?"}, "b": {"type": "noul"}}}"#;

fn plan(model: &Model) -> Plan {
    let request = systemone::parse(BODY.as_bytes(), Most::ANY).expect("a request");
    let stop = Stop::never();
    let mut meter = Meter::new(usize::MAX, &stop);
    let questions = model.encode_questions(&request.questions, &mut meter);
    let plan = model.encode_state(&request.state, &questions.expect("rows"), &mut meter);
    plan.expect("rows")
}

#[test]
fn a_run_that_begins_after_the_model_was_terminated_ends_at_once() {
    for name in ["marker", "shared-state"] {
        for threads in [1, 2] {
            let model = Model::load(&options(&fixture(name), threads).source);
            let model = model.expect("the model loads");
            let plan = plan(&model);
            let stop = Stop::never();
            assert!(model.run(&plan, &stop).is_ok());
            model.terminate();
            assert_eq!(model.run(&plan, &stop), Err(Error::Closing), "{name}");
        }
    }
}
