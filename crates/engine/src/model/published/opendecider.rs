//! OpenDecider nano: `opendecider.json`, and a tokenizer for browsers.

use serde_json::{Value, json};

use super::{Files, Form, Published, tokens};
use crate::Error;

/// The maker's form.
pub(super) const FORM: Form = Form {
    file: "opendecider.json",
    is_it: Value::is_object,
    read,
};

/// The tokenizer, where the folder has one for browsers.
const WEB_TOKENIZER: &str = "tokenizer.web.json";

fn read(files: &Files<'_>, config: &Value) -> Result<Published, Error> {
    let tokenizer = match files.is_there(WEB_TOKENIZER) {
        true => WEB_TOKENIZER,
        false => "tokenizer.json",
    };
    let ids = &config["special_ids"];
    let id = |key: &str| {
        let problem = || format!("special_ids.{key}: must be a token's id");
        ids[key]
            .as_i64()
            .ok_or_else(|| files.bad(FORM.file, problem()))
    };
    let [cls, sep, mask] = [id("cls")?, id("sep")?, id("mask")?];
    let added = files.added_tokens(tokenizer)?;
    let text = added.iter().find(|(_, id)| i64::from(**id) == mask);
    let text = text.map_or(tokens::BERT.mask, |(text, _)| text.as_str());
    let mut published = Published::of(json!({
        "layout": "marker",
        "max_len": files.whole(FORM.file, config, "max_len", 2048)?,
        "head_max": null,
        "option_max": null,
        "overflow": "cut",
        "action_is_optional": true,
        "inputs": ["input_ids", "attention_mask"],
        "logits_at": "tokens",
        // No row is padded.
        "special_ids": {"cls": cls, "sep": sep, "mask": mask, "pad": sep},
        "template": {
            "mask": text,
            "head": "question: {instructions}",
            "state": "input: {state}",
            "state_json": "python-sorted",
            "options": {
                "choice": {"described": "{name}: {description}", "bare": "{name}"},
                "score": {"described": "{description}", "bare": ""},
                "noul": {
                    "false": {"described": "false: {description}", "bare": "false"},
                    "true": {"described": "true: {description}", "bare": "true"},
                },
            },
            "bare_if_equal": true,
        },
        "temperature": {"choice": 1, "score": 1, "noul": 1},
    }));
    published.tokenizer = tokenizer.to_owned();
    Ok(published)
}
