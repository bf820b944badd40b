//! jevhome E: an encoder that makes a vector of a text, and a scorer of two vectors.

use serde_json::{Value, json};

use super::jevhome::CALIBRATION;
use super::{Files, Form, Published, calibration};
use crate::Error;

pub(super) const FORM: Form = Form {
    file: "decision_config.json",
    is_it: |content| content["head"] == "emb",
    read,
};

fn read(files: &Files<'_>, config: &Value) -> Result<Published, Error> {
    for (key, served) in [("variant", "bi"), ("pooling", "cls")] {
        if config[key] != served {
            let problem = format!("{key}: only \"{served}\" is served, not {}", config[key]);
            return Err(files.bad(FORM.file, problem));
        }
    }
    let buckets = files.json_if_there(CALIBRATION)?.unwrap_or(Value::Null);
    Ok(Published::of(json!({
        "layout": "bi-encoder",
        "temperature": {"choice": 1, "score": 1, "noul": 1},
        "temperature_by_options": calibration::by_bucket(files, CALIBRATION, "", &buckets, None)?,
        "state_json": "python",
        "graphs": {"encoder": "encoder.onnx", "scorer": "scorer.onnx"},
    })))
}
