//! States are read by a part of the graph, where that gives the same bits.

mod common;

use common::{fixture, options, repository};
use svc_engine::model::Model;

#[test]
fn the_embedded_model_reads_states_with_a_part_of_its_graph() {
    for threads in [1, 2] {
        let folder = repository().join("models/svc-small");
        let model = Model::load(&options(&folder, threads).source).unwrap();
        assert!(model.reads_in_part(), "{threads} threads");
    }
}

#[test]
fn a_layout_that_keeps_nothing_has_no_such_part() {
    let model = Model::load(&options(&fixture("marker"), 1).source).unwrap();
    assert!(!model.reads_in_part());
}
