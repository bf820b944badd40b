//! Tests that a terminated model runs nothing any more.

use crate::common::{fixture, options, plan};
use svc_engine::Error;
use svc_engine::backend::Backend;
use svc_engine::model::Model;
use svc_engine::stop::Stop;

const BODY: &str = r#"{"state": "The order was late.",
    "questions": {"a": {"type": "noul", "instructions": "Is it?"}, "b": {"type": "noul"}}}"#;

#[test]
fn a_run_that_begins_after_the_model_was_terminated_ends_at_once() {
    for name in ["marker", "shared-state"] {
        for threads in [1, 2] {
            let model = Model::load(&options(&fixture(name), threads).source);
            let model = model.expect("the model loads");
            let plan = plan(&model, BODY);
            let stop = Stop::never();
            assert!(model.run(&plan, &stop).is_ok());
            model.terminate();
            assert_eq!(model.run(&plan, &stop), Err(Error::Closing), "{name}");
        }
    }
}
