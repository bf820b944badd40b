#![no_main]

mod shared;

use libfuzzer_sys::fuzz_target;
use svc_engine::wire::Format;

fuzz_target!(|body: &[u8]| {
    let first = Format::SystemOne.parse(body, shared::MOST);
    shared::check_request(&first);
});
