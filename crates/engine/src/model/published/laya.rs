//! Laya, with its encoder and its head in one graph or in two: `rl_agent_config.json`, or a `config.json` with
//! everything under `laya`.

use serde_json::{Value, json};

use super::graphs::two_graphs;
use super::{Files, Form, Published, tokens};
use crate::Error;

/// The maker's own form.
pub(super) const OWN: Form = Form {
    file: "rl_agent_config.json",
    is_it: Value::is_object,
    read: |files, content| read(files, OWN.file, content),
};

/// The form for browsers.
pub(super) const NESTED: Form = Form {
    file: "config.json",
    is_it: |content| content["laya"].is_object(),
    read: |files, content| read(files, NESTED.file, &content["laya"]),
};

fn read(files: &Files<'_>, file: &str, config: &Value) -> Result<Published, Error> {
    let added = files.added_tokens("tokenizer.json")?;
    let names = match added.contains_key(tokens::GEMMA.mask) {
        true => tokens::GEMMA,
        false => tokens::BERT,
    };
    let mut published = Published::of(json!({
        "layout": "marker",
        "max_len": files.whole(file, config, "max_len", 1024)?,
        "head_max": files.whole(file, config, "head_max_len", 256)?,
        "special_ids": files.special_ids("tokenizer.json", &names)?,
        "temperature": {"choice": 1, "score": 1, "noul": 1},
    }));
    if let Some(graphs) = two_graphs(files, "head")? {
        published.manifest.insert("graphs".into(), graphs);
    }
    Ok(published)
}
