//! The `shared-state` layout: the state is prefilled once, by itself, in chunks; every question
//! then looks at the KV cache of these chunks. The cost of a request is the sum of the state's
//! tokens and the questions' tokens, not their product.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;

use super::{
    EncodedQuestions, Encoder, Layout, MAX_LENGTH, PerKind, Plan, QuestionRows, Row, SpecialIds,
    too_long,
};
use crate::Error;
use crate::question::{Kind, Outcome, Question, State};
use crate::reading::Reading;
use crate::session::{Input, Interface, KvPair};
use crate::tokenize::{Meter, Tokenizer};

/// The most layers, heads and values per head: more than any encoder has.
const MAX_SIZE: usize = 10_000;

/// The settings of the layout in `config.json`. Lengths are in tokens, special tokens included.
#[derive(Debug, Clone, Deserialize)]
pub struct Settings {
    /// The length of a chunk of the state, `CLS` and `SEP` included.
    pub chunk: usize,
    /// The length of a question's head, `CLS` and `SEP` included.
    pub head_max: usize,
    /// The length of an option, its marker included.
    pub option_max: usize,
    /// The length of a state before it is cut into chunks.
    pub state_max: usize,
    /// The length of one run of a question; options beyond it go into further runs.
    pub run_tokens: usize,
    /// The text before the instructions.
    pub head_prefix: PerKind<String>,
    /// The token type of a question's tokens; the state's is 0.
    pub type_ids: PerKind<i64>,
    /// The number of layers of the encoder.
    pub layers: usize,
    /// The number of attention heads per layer.
    pub heads: usize,
    /// The number of values per head.
    pub head_dim: usize,
    /// The special tokens.
    pub special_ids: SpecialIds,
    /// Whether questions that ask the same in several forms are read in one.
    #[serde(default)]
    pub unify: bool,
}

impl Settings {
    /// Returns the first setting that cannot work and the requirement that it breaks.
    pub fn problem(&self) -> Option<(&'static str, String)> {
        let lengths = [
            ("chunk", self.chunk),
            ("head_max", self.head_max),
            ("option_max", self.option_max),
            ("state_max", self.state_max),
            ("run_tokens", self.run_tokens),
        ];
        let sizes = [
            ("layers", self.layers),
            ("heads", self.heads),
            ("head_dim", self.head_dim),
        ];
        let long = too_long(&lengths, MAX_LENGTH).or_else(|| too_long(&sizes, MAX_SIZE));
        if long.is_some() {
            return long;
        }
        let longest = self.head_max + self.option_max;
        let least = [
            ("chunk", self.chunk, 3),
            ("head_max", self.head_max, 3),
            ("option_max", self.option_max, 2),
            ("state_max", self.state_max, 1),
            ("run_tokens", self.run_tokens, longest),
            ("layers", self.layers, 1),
            ("heads", self.heads, 1),
            ("head_dim", self.head_dim, 1),
        ];
        let short = least.into_iter().find(|(_, value, least)| value < least);
        short.map(|(key, _, least)| (key, format!("must be at least {least}")))
    }
}

/// The layout with a model's settings.
pub struct SharedState {
    settings: Settings,
    interface: Interface,
}

impl SharedState {
    /// Returns the layout of a model with these settings.
    pub fn new(settings: Settings) -> Self {
        let kv_pairs = (0..settings.layers).flat_map(|layer| {
            ["k", "v"].map(|part| {
                KvPair::new(
                    format!("past_{part}{layer}"),
                    format!("present_{part}{layer}"),
                )
            })
        });
        let inputs = ["input_ids", "positions", "types", "option_ids", "markers"];
        let interface = Interface {
            inputs: inputs.map(Cow::Borrowed).to_vec(),
            optional_inputs: vec!["option_count"],
            kv_pairs: kv_pairs.collect(),
            even_input: "option_ids",
            kv_shape: [settings.heads, settings.head_dim],
            action_is_optional: true,
            ..Interface::default()
        };
        Self {
            settings,
            interface,
        }
    }

    /// Returns the state's chunks, each as a row of its own; an empty state has none.
    fn chunks(&self, ids: &[i64]) -> Vec<Row> {
        let special = self.settings.special_ids;
        ids.chunks(self.settings.chunk - 2)
            .map(|part| {
                let mut ids = Vec::with_capacity(part.len() + 2);
                ids.push(special.cls);
                ids.extend_from_slice(part);
                ids.push(special.sep);
                Row {
                    positions: (0..).take(ids.len()).collect(),
                    option_ids: vec![0; ids.len()],
                    ids,
                    ..Row::default()
                }
            })
            .collect()
    }

    /// Returns a row that holds only the question's head.
    fn head(&self, encoder: &mut Encoder<'_, '_>, question: &Question) -> Result<Row, Error> {
        let special = self.settings.special_ids;
        let prefix = self.settings.head_prefix.get(question.kind);
        let text = format!("{prefix}{}", question.instructions);
        let mut ids = encoder.encode(&text, self.settings.head_max - 2)?;
        ids.insert(0, special.cls);
        ids.push(special.sep);
        Ok(Row {
            positions: (0..).take(ids.len()).collect(),
            option_ids: vec![0; ids.len()],
            ids,
            type_id: *self.settings.type_ids.get(question.kind),
            ..Row::default()
        })
    }
}

/// Adds an option to a row. Its positions restart at the head's length, so that its place in the
/// row does not matter.
fn push_option(row: &mut Row, head: usize, option: &[i64], outcome: usize) {
    row.markers.push(row.ids.len() as i64);
    row.outcomes.push(outcome);
    let number = row.markers.len() as i64;
    row.ids.extend_from_slice(option);
    row.positions.extend((head as i64..).take(option.len()));
    row.option_ids
        .extend(std::iter::repeat_n(number, option.len()));
}

/// Returns the text of an outcome that the model reads.
fn option_text(question: &Question, outcome: &Outcome) -> String {
    let text = outcome.text.as_deref();
    match question.kind {
        Kind::Choice => match text.filter(|text| *text != outcome.name) {
            Some(text) => format!("{}: {text}", outcome.name),
            None => outcome.name.clone(),
        },
        Kind::Score => {
            let last = question.outcomes.len() - 1;
            format!("level {} of {last}: {}", outcome.name, text.unwrap_or(""))
        }
        Kind::Noul => {
            let word = if outcome.name == "true" { "yes" } else { "no" };
            match text {
                Some(text) => format!("{word}: {text}"),
                None => word.to_owned(),
            }
        }
    }
}

impl Layout for SharedState {
    fn name(&self) -> &'static str {
        "shared-state"
    }

    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn reading<'q>(&self, question: &'q Question) -> Reading<'q> {
        match self.settings.unify {
            true => Reading::unified(question),
            false => Reading::plain(question),
        }
    }

    fn question(
        &self,
        encoder: &mut Encoder<'_, '_>,
        question: &Question,
    ) -> Result<QuestionRows, Error> {
        let reading = self.reading(question);
        let question = reading.question.as_ref();
        let mut head = self.head(encoder, question)?;
        let texts = question
            .outcomes
            .iter()
            .map(|outcome| option_text(question, outcome));
        let mut texts: Vec<(String, usize)> = texts.zip(0..).collect();
        if question.kind == Kind::Choice {
            // Options are in the byte order of their texts, so that the caller's order cannot
            // matter.
            texts.sort();
        }
        head.option_count = texts.len() as i64;
        let mut rows = vec![head.clone()];
        for (text, outcome) in texts {
            let mut option = encoder.encode(&text, self.settings.option_max - 1)?;
            option.insert(0, self.settings.special_ids.mask);
            let full = rows.last().is_some_and(|row| {
                !row.markers.is_empty() && row.ids.len() + option.len() > self.settings.run_tokens
            });
            if full {
                rows.push(head.clone());
            }
            if let Some(row) = rows.last_mut() {
                push_option(row, head.ids.len(), &option, outcome);
            }
        }
        Ok(QuestionRows {
            kind: question.kind,
            outcomes: question.outcomes.len(),
            rows,
        })
    }

    /// Returns the questions' rows unchanged, since they look at the state and contain none of its
    /// tokens, and the state's chunks as rows of their own.
    fn encode_state(
        &self,
        tokenizer: &Tokenizer,
        state: &State,
        questions: &EncodedQuestions,
        meter: &mut Meter<'_>,
    ) -> Result<Plan, Error> {
        let mut encoder = Encoder::new(tokenizer, meter);
        let state = encoder.encode(&state.text, self.settings.state_max)?;
        Ok(Plan {
            questions: Arc::clone(&questions.rows),
            state: self.chunks(&state),
            truncated_tokens: questions.truncated_tokens + encoder.truncated_tokens,
        })
    }

    fn inputs<'r>(&self, row: &'r Row) -> Vec<(&'static str, Input<'r>)> {
        vec![
            ("input_ids", Input::ids(&row.ids)),
            ("positions", Input::ids(&row.positions)),
            ("types", Input::ids(vec![row.type_id; row.ids.len()])),
            ("option_ids", Input::ids(&row.option_ids)),
            ("markers", Input::ids(&row.markers)),
            ("option_count", Input::ids(vec![row.option_count])),
        ]
    }
}
