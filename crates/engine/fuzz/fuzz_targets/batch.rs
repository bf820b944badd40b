#![no_main]

mod shared;

use libfuzzer_sys::fuzz_target;
use svc_engine::wire::batch::parse;

const MAX_STATES: usize = 8;

fuzz_target!(|body: &[u8]| {
    match parse(body.to_vec(), MAX_STATES, shared::MOST) {
        Ok((states, questions)) => {
            assert!(states.count() <= MAX_STATES && questions.len() <= shared::MOST.questions);
            // A scanned state can be read, so no state fails by itself.
            for index in 0..states.count() {
                states.state(index).expect("a state");
            }
        }
        Err(error) => shared::check_error(&error),
    }
});
