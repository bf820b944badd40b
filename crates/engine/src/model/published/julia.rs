//! Julia 1, whose folder needs no settings: a graph, and a tokenizer with the special tokens of
//! mmBERT.

use serde_json::json;

use super::{Files, Form, Published};
use crate::Error;
use crate::model::folder::TOKENIZER;

/// A folder with the settings of the model's own code.
pub(super) const OWN: Form = Form {
    file: "julia_config.json",
    is_it: |content| content["architecture"] == ARCHITECTURE,
    read: |files, _| read(files),
};

/// A folder with a `config.json` that names the model.
pub(super) const NAMED: Form = Form {
    file: "config.json",
    is_it: |content| content["architectures"] == json!([ARCHITECTURE]),
    read: |files, _| read(files),
};

const ARCHITECTURE: &str = "JuliaDecisionModel";

/// Returns a folder without any settings that is known by its tokenizer.
pub(super) fn bare(files: &Files<'_>) -> Result<Option<(&'static str, Published)>, Error> {
    if files.is_there("config.json") || !files.is_there(TOKENIZER) {
        return Ok(None);
    }
    let added = files.added_tokens(TOKENIZER)?;
    let tokens = ["<bos>", "<eos>", "<mask>"];
    if !tokens.iter().all(|token| added.contains_key(*token)) {
        return Ok(None);
    }
    read(files).map(|published| Some((TOKENIZER, published)))
}

fn read(files: &Files<'_>) -> Result<Published, Error> {
    let names = files.names()?;
    let forms = |side: &str| json!({"described": format!("{side}: {{description}}"), "bare": format!("{side}: {side}")});
    Ok(Published::of(json!({
        "layout": "marker",
        "max_len": 1024,
        "head_max": 256,
        "state_min": 1,
        "overflow": "cut",
        "action_is_optional": true,
        "special_ids": files.special_ids(TOKENIZER, &names)?,
        "template": {
            "mask": names.mask,
            "state_json": "python-sorted",
            "options": {
                "choice": {"described": "{name}: {description}", "bare": "{name}"},
                "score": {"described": "{description}", "bare": ""},
                "noul": {"false": forms("false"), "true": forms("true")},
            },
        },
        "temperature": {"choice": 1, "score": 1, "noul": 1},
    })))
}
