//! The settings of the layout in `config.json`, including those that the model's makers wrote into
//! it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::template::{DEFAULT, Template};
use super::{First, Problem};
use crate::layout::{MAX_LENGTH, PerKind};
use crate::question::Kind;

/// The most tokens of a hypothesis, unless `config.json` has another limit or a row is short.
const HEAD_MAX: usize = 256;
/// The least room for a hypothesis, and for the state in the same row, in tokens.
const HEAD_MIN: usize = 8;
/// The tokens of a row for a model that does not state how many it reads.
const MAX_LEN: usize = 512;
/// The model families whose positions start after the padding token's id.
const OFFSET_POSITIONS: [&str; 11] = [
    "camembert",
    "data2vec-text",
    "ibert",
    "longformer",
    "luke",
    "mpnet",
    "roberta",
    "roberta-prelayernorm",
    "xlm-roberta",
    "xlm-roberta-xl",
    "xmod",
];

/// The settings of the layout in `config.json`. Lengths are in tokens.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Settings {
    /// The labels of the graph's classes, by number from 0.
    #[serde(default)]
    pub id2label: BTreeMap<String, String>,
    /// The label that speaks for a hypothesis; if missing, the label that begins with "entail".
    pub entailment: Option<String>,
    /// The label that speaks against a hypothesis; if missing, the label that begins with
    /// "contradict", or the other one of two.
    pub contradiction: Option<String>,
    /// The template of a hypothesis, by type of question.
    #[serde(default)]
    pub template: PerKind<Option<String>>,
    /// The text that stands first in a row.
    #[serde(default)]
    pub first: First,
    /// The length of a row, special tokens included.
    pub max_len: Option<usize>,
    /// The length of a hypothesis.
    pub head_max: Option<usize>,
    /// The model's family.
    #[serde(default)]
    pub model_type: String,
    /// The number of positions that the model knows; missing, or not positive, where the model does
    /// not count them.
    pub max_position_embeddings: Option<i64>,
    /// The id of the padding token.
    pub pad_token_id: Option<i64>,
}

impl Settings {
    /// Returns the length of a row.
    ///
    /// # Errors
    /// The key, and the requirement that it breaks.
    pub(super) fn max_len(&self, specials: usize) -> Result<usize, Problem> {
        let known = self.positions();
        let max_len = self.max_len.unwrap_or(known.unwrap_or(MAX_LEN));
        let least = 2 * HEAD_MIN + specials;
        let problem = match known {
            _ if max_len > MAX_LENGTH => format!("must be at most {MAX_LENGTH}"),
            Some(known) if max_len > known => {
                format!("must be at most {known}, the positions that the model knows")
            }
            _ if max_len < least => format!("must be at least {least}"),
            _ => return Ok(max_len),
        };
        Err(("max_len".into(), problem))
    }

    /// Returns the number of tokens in a row that the model has positions for; `None` where it does
    /// not count them.
    fn positions(&self) -> Option<usize> {
        let is_offset = OFFSET_POSITIONS.contains(&self.model_type.as_str());
        let offset = if is_offset {
            self.pad_token_id.unwrap_or(1).saturating_add(1)
        } else {
            0
        };
        let count = self.max_position_embeddings?.saturating_sub(offset);
        usize::try_from(count).ok().filter(|count| *count > 0)
    }

    /// Returns the length of a hypothesis in rows of `max_len` tokens.
    ///
    /// # Errors
    /// The key, and the requirement that it breaks.
    pub(super) fn head_max(&self, max_len: usize, specials: usize) -> Result<usize, Problem> {
        let most = max_len - specials - HEAD_MIN;
        let head_max = self.head_max.unwrap_or(HEAD_MAX.min(max_len / 2).min(most));
        if (HEAD_MIN..=most).contains(&head_max) {
            return Ok(head_max);
        }
        let problem = format!("must be from {HEAD_MIN} to {most}");
        Err(("head_max".into(), problem))
    }

    /// Returns the templates.
    ///
    /// # Errors
    /// The key, and the requirement that it breaks.
    pub(super) fn templates(&self) -> Result<PerKind<Template>, Problem> {
        let template = |kind: Kind| {
            let text = self.template.get(kind).as_deref().unwrap_or(DEFAULT);
            let bad = |problem: String| (format!("template.{kind}"), problem);
            let template = Template::parse(text).map_err(bad)?;
            if kind != Kind::Noul && !template.has_option() {
                return Err(bad("must have the place {option}".into()));
            }
            if !template.has_place() {
                return Err(bad(
                    "must have a place: {instructions}, {option} or both".into()
                ));
            }
            Ok(template)
        };
        Ok(PerKind {
            choice: template(Kind::Choice)?,
            score: template(Kind::Score)?,
            noul: template(Kind::Noul)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_as_long_as_the_positions_that_are_left_of_padding() {
        let length = |model_type: &str, positions, pad_token_id| {
            let settings = Settings {
                model_type: model_type.into(),
                max_position_embeddings: positions,
                pad_token_id,
                ..Settings::default()
            };
            settings.max_len(3)
        };
        assert_eq!(length("bert", Some(512), Some(0)), Ok(512));
        assert_eq!(length("roberta", Some(514), Some(1)), Ok(512));
        assert_eq!(length("xlm-roberta", Some(8194), None), Ok(8192));
        assert_eq!(length("modernbert", Some(8192), Some(50283)), Ok(8192));
        assert_eq!(length("deberta-v2", Some(-1), Some(0)), Ok(512));
        assert_eq!(length("", None, None), Ok(512));
        assert!(length("bert", Some(10), Some(0)).is_err());
    }
}
