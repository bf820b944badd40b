//! What `config.json` says of the layout, beside what the model's makers wrote into it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::template::{DEFAULT, Template};
use super::{First, Problem};
use crate::layout::{MAX_LENGTH, PerKind};
use crate::question::Kind;

/// Tokens of a hypothesis, unless `config.json` says otherwise or a row is short.
const HEAD_MAX: usize = 256;
/// A hypothesis holds at least so many tokens.
const HEAD_MIN: usize = 8;
/// Tokens of a row of a model that does not say how many it reads.
const MAX_LEN: usize = 512;
/// The families that count positions from behind the padding token's id.
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

/// What `config.json` says of the layout. Lengths are in tokens.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Settings {
    /// The labels of the graph's classes, by number from 0.
    #[serde(default)]
    pub id2label: BTreeMap<String, String>,
    /// The label that speaks for a hypothesis; else the one that begins with "entail".
    pub entailment: Option<String>,
    /// The label that speaks against it; else the one that begins with "contradict", or the other one of two.
    pub contradiction: Option<String>,
    /// How a hypothesis is made, by type of question.
    #[serde(default)]
    pub template: PerKind<Option<String>>,
    /// Which text stands first.
    #[serde(default)]
    pub first: First,
    /// Length of a row, special tokens included.
    pub max_len: Option<usize>,
    /// Length of a hypothesis.
    pub head_max: Option<usize>,
    /// The model's family.
    #[serde(default)]
    pub model_type: String,
    /// How many positions the model knows; none, or no positive number, where they are not counted.
    pub max_position_embeddings: Option<i64>,
    /// The id of the padding token.
    pub pad_token_id: Option<i64>,
}

impl Settings {
    /// The length of a row.
    ///
    /// # Errors
    /// The key, and what it must be.
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

    /// The tokens of a row that the model has positions for, where it counts them.
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

    /// The length of a hypothesis in rows of `max_len` tokens.
    ///
    /// # Errors
    /// The key, and what it must be.
    pub(super) fn head_max(&self, max_len: usize, specials: usize) -> Result<usize, Problem> {
        let most = max_len - specials - HEAD_MIN;
        let head_max = self.head_max.unwrap_or(HEAD_MAX.min(max_len / 2).min(most));
        if (HEAD_MIN..=most).contains(&head_max) {
            return Ok(head_max);
        }
        let problem = format!("must be from {HEAD_MIN} to {most}");
        Err(("head_max".into(), problem))
    }

    /// The templates.
    ///
    /// # Errors
    /// The key, and what it must be.
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
