//! GLiNER2.5-Decide, which is known by the special tokens of its tokenizer: its `config.json` says
//! nothing that a decision needs.

use serde_json::{Value, json};

use super::{Files, Published};
use crate::Error;
use crate::model::folder::{CONFIG, TOKENIZER};

/// The tokens that no other family has together.
const TOKENS: [&str; 5] = ["[P]", "[L]", "[DESCRIPTION]", "[SEP_STRUCT]", "[SEP_TEXT]"];

/// Returns a folder whose tokenizer is that of the family, and the file that it is known by; `None`
/// where it is another's. The member `max_len` of `config.json` is ours.
pub(super) fn recognize(files: &Files<'_>) -> Result<Option<(&'static str, Published)>, Error> {
    if !files.path(TOKENIZER).is_file() {
        return Ok(None);
    }
    // An error in this file is reported when it is read as the tokenizer.
    let added = files.added_tokens(TOKENIZER).unwrap_or_default();
    if !TOKENS.iter().all(|token| added.contains_key(*token)) {
        return Ok(None);
    }
    let config = files.json_if_there(CONFIG)?;
    let file = if config.is_some() { CONFIG } else { TOKENIZER };
    let config = config.unwrap_or(Value::Null);
    let published = Published::of(json!({
        "layout": "labels",
        "state_json": "python-sorted",
        "max_len": files.whole(CONFIG, &config, "max_len", 2048)?,
        "temperature": {"choice": 1, "score": 1, "noul": 1},
    }));
    Ok(Some((file, published)))
}
