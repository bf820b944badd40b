//! The special tokens of a published tokenizer.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The names of the special tokens that a layout puts into its rows.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) cls: &'a str,
    pub(super) sep: &'a str,
    pub(super) mask: &'a str,
    pub(super) pad: &'a str,
}

/// The same, where they come from a file.
pub(super) struct Owned {
    pub(super) cls: String,
    pub(super) sep: String,
    pub(super) mask: String,
    pub(super) pad: String,
}

impl Owned {
    pub(super) fn as_ref(&self) -> Names<'_> {
        Names {
            cls: &self.cls,
            sep: &self.sep,
            mask: &self.mask,
            pad: &self.pad,
        }
    }
}

/// The names of BERT and its successors.
pub(super) const BERT: Names<'_> = Names {
    cls: "[CLS]",
    sep: "[SEP]",
    mask: "[MASK]",
    pad: "[PAD]",
};

/// The names of mmBERT and the Gemma tokenizers.
pub(super) const GEMMA: Names<'_> = Names {
    cls: "<bos>",
    sep: "<eos>",
    mask: "<mask>",
    pad: "<pad>",
};

/// Returns the ids of the added tokens in the bytes of a `tokenizer.json`, by their text.
///
/// # Errors
/// The reason why the bytes are no tokenizer, in one line.
pub(super) fn added(bytes: &[u8]) -> Result<BTreeMap<String, u32>, String> {
    #[derive(Deserialize)]
    struct File {
        #[serde(default)]
        added_tokens: Vec<Added>,
    }
    #[derive(Deserialize)]
    struct Added {
        id: u32,
        content: String,
    }
    let file: File = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let tokens = file.added_tokens.into_iter();
    Ok(tokens.map(|token| (token.content, token.id)).collect())
}
