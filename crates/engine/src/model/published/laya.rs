//! Laya, with its encoder and its head in one graph or in two: `rl_agent_config.json`, or a `config.json` with
//! everything under `laya`.

use serde_json::{Value, json};

use super::calibration::{self, Clamp};
use super::graphs::two_graphs;
use super::{Files, Form, Published, tokens};
use crate::Error;
use crate::question::Kind;

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

/// The temperatures that the maker's runtime applies; others become the nearest of these.
const CLAMP: Clamp = Some((0.5, 5.0));

fn read(files: &Files<'_>, file: &str, config: &Value) -> Result<Published, Error> {
    let given = &config["temperature"];
    let count = given.as_array().map(Vec::len);
    if !given.is_null() && count != Some(0) && count != Some(Kind::ALL.len()) {
        let problem = "temperature: must be a list of three numbers, for choice, score and noul";
        return Err(files.bad(file, problem));
    }
    let mut temperature = json!({"choice": 1, "score": 1, "noul": 1});
    for (index, kind) in Kind::ALL.into_iter().enumerate() {
        let own = given.get(index).unwrap_or(&Value::Null);
        if !own.is_null() {
            let key = format!("temperature[{index}]");
            temperature[kind.name()] = calibration::temperature(files, file, &key, own, CLAMP)?;
        }
    }
    let buckets = &config["temperature_by_options"];
    let names = files.names()?;
    let mut published = Published::of(json!({
        "layout": "marker",
        "max_len": files.whole(file, config, "max_len", 1024)?,
        "head_max": files.whole(file, config, "head_max_len", 256)?,
        "overflow": "cut",
        "action_is_optional": true,
        "special_ids": files.special_ids("tokenizer.json", &names)?,
        "template": {"mask": names.mask, "state_json": "python"},
        "temperature": temperature,
        "temperature_by_options": calibration::by_bucket(files, file, "temperature_by_options", buckets, CLAMP)?,
    }))
    .with_origins(file, &[("head_max", "head_max_len")]);
    if let Some(graphs) = two_graphs(files, "head")? {
        published.manifest.insert("graphs".into(), graphs);
    }
    Ok(published)
}

impl Files<'_> {
    /// Returns the names of the special tokens of a tokenizer that has those of mmBERT, else those of
    /// BERT.
    pub(super) fn names(&self) -> Result<tokens::Names<'static>, Error> {
        let added = self.added_tokens("tokenizer.json")?;
        let gemma = tokens::GEMMA;
        let has_all = [gemma.cls, gemma.sep, gemma.mask].map(|name| added.contains_key(name));
        Ok(if has_all == [true; 3] {
            gemma
        } else {
            tokens::BERT
        })
    }
}
