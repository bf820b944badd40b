//! open-jev, whose `config.json` has everything under `open_jev`.

use serde_json::{Value, json};

use super::{Form, Published};
use crate::model::folder::CONFIG;

/// The maker's form. The member `packed` is ours: with it all questions of a request share a row,
/// as they do in the maker's own code.
pub(super) const FORM: Form = Form {
    file: CONFIG,
    is_it: |content| content["open_jev"].is_object(),
    read: |files, content| {
        let settings = &content["open_jev"];
        let given = |key: &str, default: Value| match &settings[key] {
            Value::Null => default,
            value => value.clone(),
        };
        let temperature = given("temperature", json!(1.05));
        Ok(Published::of(json!({
            "layout": "spans",
            "state_json": "python-sorted",
            "max_len": files.whole(CONFIG, settings, "max_len", 512)?,
            "state_max": files.whole(CONFIG, settings, "max_state_tokens", 256)?,
            "packed": given("packed", json!(false)),
            "temperature": {"choice": temperature, "score": temperature, "noul": temperature},
        }))
        .with_origins(
            CONFIG,
            &[
                ("max_len", "open_jev.max_len"),
                ("state_max", "open_jev.max_state_tokens"),
                ("packed", "open_jev.packed"),
                ("temperature", "open_jev.temperature"),
            ],
        ))
    },
};
