//! Text to token ids, by the model folder's own `tokenizer.json`.

use std::path::Path;

use crate::Error;

/// A Hugging Face tokenizer that adds nothing, cuts nothing, and takes special tokens written in a text for text.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
}

impl Tokenizer {
    /// The tokenizer of a `tokenizer.json` file, given its bytes.
    ///
    /// # Errors
    /// [`Error::BadModel`] that names `file`.
    pub fn from_bytes(file: &Path, bytes: &[u8]) -> Result<Self, Error> {
        let bad = |problem: String| Error::BadModel {
            file: file.to_owned(),
            problem,
        };
        let mut inner = tokenizers::Tokenizer::from_bytes(bytes)
            .map_err(|error| bad(format!("not a tokenizer: {error}")))?;
        inner
            .with_truncation(None)
            .map_err(|error| bad(error.to_string()))?;
        inner.with_padding(None);
        inner.set_encode_special_tokens(true);
        Ok(Self { inner })
    }

    /// How many ids there are, added tokens included: every id is below this.
    pub fn vocabulary(&self) -> usize {
        self.inner.get_vocab_size(true)
    }

    /// The ids of a text's tokens, without special ones around them.
    ///
    /// # Errors
    /// [`Error::ModelFailed`] where the tokenizer cannot represent the text.
    pub fn encode(&self, text: &str) -> Result<Vec<i64>, Error> {
        let encoding = self.inner.encode_fast(text, false);
        let encoding = encoding.map_err(|error| Error::ModelFailed {
            cause: format!("tokenizer: {error}"),
        })?;
        Ok(encoding.get_ids().iter().map(|id| i64::from(*id)).collect())
    }
}
