//! The models of jevhome whose head scores the markers: `decision_config.json`, with the temperatures
//! in `calibration_u.json`.

use serde_json::{Value, json};

use super::{Files, Form, Published, calibration, tokens};
use crate::Error;

/// The maker's form.
pub(super) const FORM: Form = Form {
    file: "decision_config.json",
    is_it: |content| content["head"] == "h2",
    read,
};

/// A folder with a head that is neither this one nor that of jevhome E.
pub(super) const OTHER: Form = Form {
    file: FORM.file,
    is_it: |content| content["head"].is_string(),
    read: |files, content| {
        let problem = format!(
            "head: only \"h2\" and \"emb\" are served, not {}",
            content["head"]
        );
        Err(files.bad(FORM.file, problem))
    },
};

/// The file of the temperatures.
pub(super) const CALIBRATION: &str = "calibration_u.json";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

fn read(files: &Files<'_>, config: &Value) -> Result<Published, Error> {
    for key in ["typed", "ordinal"] {
        if config[key] == true {
            return Err(files.bad(FORM.file, format!("{key}: cannot be served")));
        }
    }
    let buckets = files.json_if_there(CALIBRATION)?.unwrap_or(Value::Null);
    let names = names(files)?;
    let names = names.as_ref();
    let described = |side: &str| format!("{side}: {{description}}");
    Ok(Published::of(json!({
        "layout": "marker",
        "max_len": files.whole(FORM.file, config, "max_len", 512)?,
        "head_max": files.whole(FORM.file, config, "head_max_len", 320)?,
        "overflow": "cut",
        "action_is_optional": true,
        "inputs": ["input_ids", "attention_mask", "marker_pos", "qtype"],
        "special_ids": files.special_ids("tokenizer.json", &names)?,
        "template": {
            "mask": names.mask,
            "state_json": "python",
            "options": {
                "choice": {"described": "{name}: {description}", "bare": "{name}: {name}"},
                "score": {"described": "{index}: {description}", "bare": "{index}: "},
                "noul": {
                    "false": {"described": described("false"), "bare": "false: The proposition is false."},
                    "true": {"described": described("true"), "bare": "true: The proposition is true."},
                },
            },
            "noul_order": ["true", "false"],
        },
        "temperature": {"choice": 1, "score": 1, "noul": 1},
        "temperature_by_options": calibration::by_bucket(files, CALIBRATION, "", &buckets, None)?,
    }))
    .with_origins(FORM.file, &[("head_max", "head_max_len")]))
}

/// Returns the names of the special tokens: those of `tokenizer_config.json`, else those of BERT.
fn names(files: &Files<'_>) -> Result<tokens::Owned, Error> {
    let config = files
        .json_if_there(TOKENIZER_CONFIG)?
        .unwrap_or(Value::Null);
    let name = |key: &str, usual: &str| {
        let given = config[key].as_str().or(config[key]["content"].as_str());
        given.unwrap_or(usual).to_owned()
    };
    Ok(tokens::Owned {
        cls: name("cls_token", tokens::BERT.cls),
        sep: name("sep_token", tokens::BERT.sep),
        mask: name("mask_token", tokens::BERT.mask),
        pad: name("pad_token", tokens::BERT.pad),
    })
}
