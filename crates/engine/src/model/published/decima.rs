//! Decima: an encoder and a scorer beside a `decima.json`, in the folder itself or in the one of a
//! precision.

use serde_json::{Map, Value, json};

use super::{Files, Form, Published};
use crate::Error;

/// The export of one precision as a folder of its own.
pub(super) const EXPORT: Form = Form {
    file: "decima.json",
    is_it: Value::is_object,
    read: |files, content| read(files, EXPORT.file, content),
};

/// A repository with an export in full precision.
pub(super) const FP32: Form = Form {
    file: "onnx/fp32/decima.json",
    is_it: Value::is_object,
    read: |files, content| read(files, FP32.file, content),
};

/// A repository whose export is quantized.
pub(super) const INT8: Form = Form {
    file: "onnx/int8/decima.json",
    is_it: Value::is_object,
    read: |files, content| read(files, INT8.file, content),
};

/// The members of the file that the layout reads under the same names.
const SAME: [&str; 7] = [
    "max_state_tokens",
    "max_choice_tokens",
    "question_in_state",
    "question_in_choices",
    "choice_fit",
    "state_prefix",
    "choice_prefix",
];

fn read(files: &Files<'_>, file: &str, config: &Value) -> Result<Published, Error> {
    if !config["ordinal"].is_object() {
        return Err(files.bad(
            file,
            "ordinal: must be an object, the head that reads a score",
        ));
    }
    let temperature = &config["temperature"];
    if !temperature.as_f64().is_some_and(|it| it > 0.0) {
        return Err(files.bad(file, "temperature: must be greater than 0"));
    }
    let same = SAME.iter().filter_map(|key| Some((*key, config.get(key)?)));
    let same = same.map(|(key, value)| (key.to_owned(), value.clone()));
    let mut manifest: Map<String, Value> = same.collect();
    let mut ordinal = config["ordinal"].clone();
    // The temperature of a score divides what the ordinal head reads, and not its levels.
    ordinal["temperature"] = temperature.clone();
    let folder = file.strip_suffix("decima.json").unwrap_or_default();
    let members = json!({
        "layout": "late-interaction",
        "temperature": {"choice": temperature, "score": 1, "noul": temperature},
        "ordinal": ordinal,
        "state_json": "python",
        "graphs": {
            "encoder": format!("{folder}encoder.onnx"),
            "scorer": format!("{folder}scorer.onnx"),
        },
    });
    manifest.extend(members.as_object().cloned().unwrap_or_default());
    Ok(Published {
        tokenizer: format!("{folder}tokenizer/tokenizer.json"),
        ..Published::of(Value::Object(manifest))
    })
}
