#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use svc_engine::model::inspect::check_config;
use svc_engine::tokenize::Tokenizer;

static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/pair-bert/tokenizer.json");
    let bytes = std::fs::read(&file).expect("a committed tokenizer");
    Tokenizer::from_bytes(&file, &bytes).expect("a tokenizer")
});

fuzz_target!(|config: &[u8]| {
    if let Err(error) = check_config(config.to_vec(), &TOKENIZER) {
        let message = error.to_string();
        assert_eq!(error.code(), "bad_model");
        assert!(
            message.contains("config.json") || message.contains("tokenizer.json"),
            "{message}"
        );
        assert!(!message.chars().any(char::is_control), "{message:?}");
    }
});
