//! The `bi-encoder` layout: an encoder makes one vector of the state and one of each option with its
//! question, and a scorer compares them.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;

use super::scored::{Scorer, wrong_count};
use super::{
    EncodedQuestions, Encoder, Layout, MAX_LENGTH, Plan, QuestionRows, Row, StateJson, too_long,
};
use crate::Error;
use crate::question::{Kind, Outcome, Question, State};
use crate::session::{Input, Interface, KvCache, Results};
use crate::tokenize::{Frame, Meter, PairFrame, Tokenizer};

/// The settings of the layout in `config.json`. Lengths are in tokens, special tokens included.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Settings {
    /// The length of a state.
    #[serde(default = "default_state_max")]
    pub state_max: usize,
    /// The length of an option together with its question.
    #[serde(default = "default_option_max")]
    pub option_max: usize,
    /// The spelling of a state that is JSON.
    #[serde(default)]
    pub state_json: StateJson,
}

fn default_state_max() -> usize {
    512
}

fn default_option_max() -> usize {
    160
}

/// The least room for the texts of a row, besides its special tokens.
const LEAST: usize = 2;

impl Settings {
    /// Returns the first setting that cannot work and the requirement that it breaks, where a row of
    /// one text has `one` special tokens and a row of two has `two`.
    pub fn problem(&self, one: usize, two: usize) -> Option<(&'static str, String)> {
        let lengths = [
            ("state_max", self.state_max),
            ("option_max", self.option_max),
        ];
        if let Some(problem) = too_long(&lengths, MAX_LENGTH) {
            return Some(problem);
        }
        let mut lengths = lengths.into_iter().zip([one + LEAST, two + LEAST]);
        let short = lengths.find(|((_, length), least)| length < least);
        short.map(|((key, _), least)| (key, format!("must be at least {least}")))
    }
}

/// The layout with a model's settings.
pub struct BiEncoder {
    settings: Settings,
    interface: Interface,
    scorer: VectorScorer,
    state: Frame,
    option: PairFrame,
}

impl BiEncoder {
    /// Returns the layout of a model with these settings, whose tokenizer puts a state and an option
    /// into such rows.
    pub fn new(settings: Settings, state: Frame, option: PairFrame) -> Self {
        let interface = Interface {
            inputs: ["ids", "att"].map(Cow::Borrowed).to_vec(),
            results: Results::States,
            ..Interface::default()
        };
        let scorer = Interface {
            inputs: ["s", "q"].map(Cow::Borrowed).to_vec(),
            results: Results::Scores(vec!["logits"]),
            ..Interface::default()
        };
        Self {
            settings,
            interface,
            scorer: VectorScorer(scorer),
            state,
            option,
        }
    }
}

/// Returns the text of an outcome that the model reads.
fn option_text(kind: Kind, outcome: &Outcome) -> String {
    let name = &outcome.name;
    match (kind, outcome.text.as_deref()) {
        (_, Some(text)) => format!("{name}: {text}"),
        (Kind::Noul, None) => format!("{name}: The proposition is {name}."),
        (_, None) => format!("{name}: {name}"),
    }
}

/// Returns how many tokens two texts of these lengths keep in a row with room for `room`: the longer
/// one is cut first, as `tokenizers` does with the strategy `longest_first`.
fn longest_first(lengths: [usize; 2], room: usize) -> [usize; 2] {
    let [first, second] = lengths;
    if first + second <= room {
        return lengths;
    }
    let (short, is_first) = (first.min(second), first <= second);
    let long = if short > room {
        short
    } else {
        short.max(room - short)
    };
    let (short, long) = match short + long > room {
        true => (room / 2, room / 2 + room % 2),
        false => (short, long),
    };
    if is_first {
        [short, long]
    } else {
        [long, short]
    }
}

impl Layout for BiEncoder {
    fn name(&self) -> &'static str {
        "bi-encoder"
    }

    fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Returns a row for each option. A noul has `true` first.
    fn question(
        &self,
        encoder: &mut Encoder<'_, '_>,
        question: &Question,
    ) -> Result<QuestionRows, Error> {
        let room = self.settings.option_max - self.option.specials();
        let head = format!("{} question: {}", question.kind, question.instructions);
        let head = encoder.tokens(&head, room)?;
        let mut head_left_out = 0;
        let mut rows = Vec::with_capacity(question.outcomes.len());
        for (index, outcome) in question.outcomes.iter().enumerate() {
            let option = encoder.tokens(&option_text(question.kind, outcome), room)?;
            let lengths = [&head, &option].map(|text| text.ids.len() + text.left_out);
            let kept = longest_first(lengths, room);
            head_left_out = head_left_out.max(lengths[0] - kept[0]);
            encoder.truncated_tokens += lengths[1] - kept[1];
            let (ids, _) = self
                .option
                .row(&head.ids[..kept[0]], &option.ids[..kept[1]]);
            rows.push(Row {
                ids,
                outcomes: vec![index],
                ..Row::default()
            });
        }
        encoder.truncated_tokens += head_left_out;
        if question.kind == Kind::Noul {
            rows.reverse();
        }
        Ok(QuestionRows {
            kind: question.kind,
            outcomes: rows.len(),
            rows,
        })
    }

    fn encode_state(
        &self,
        tokenizer: &Tokenizer,
        state: &State,
        questions: &EncodedQuestions,
        meter: &mut Meter<'_>,
    ) -> Result<Plan, Error> {
        let room = self.settings.state_max - self.state.specials();
        let state = self.settings.state_json.text(state);
        let state = tokenizer.encode(&state, room, meter)?;
        Ok(Plan {
            state: vec![Row {
                ids: self.state.row(&state.ids),
                ..Row::default()
            }],
            questions: Arc::clone(&questions.rows),
            truncated_tokens: questions.truncated_tokens + state.left_out,
        })
    }

    fn inputs<'r>(&self, row: &'r Row) -> Vec<(&'static str, Input<'r>)> {
        vec![
            ("ids", Input::row(&row.ids)),
            ("att", Input::row(vec![1; row.ids.len()])),
        ]
    }

    fn scorer(&self) -> Option<&dyn Scorer> {
        Some(&self.scorer)
    }
}

/// The scorer of vectors.
struct VectorScorer(Interface);

impl Scorer for VectorScorer {
    fn interface(&self) -> &Interface {
        &self.0
    }

    fn inputs<'r>(
        &self,
        state: &'r KvCache,
        options: &'r [Arc<KvCache>],
    ) -> Result<Vec<(&'static str, Input<'r>)>, Error> {
        let (state, width) = state.states()?;
        let mut all = Vec::with_capacity(options.len() * width);
        for option in options {
            all.extend_from_slice(option.states()?.0);
        }
        if state.len() != width || all.len() != options.len() * width {
            return Err(Error::ModelFailed {
                cause: "the encoder gave no single vector of a text".into(),
            });
        }
        let floats = |values: Vec<f32>| Input::Floats {
            values: values.into(),
            shape: vec![options.len(), width],
        };
        Ok(vec![
            ("s", floats(state.repeat(options.len()))),
            ("q", floats(all)),
        ])
    }

    fn logits(&self, _: Kind, count: usize, outputs: Vec<Vec<f32>>) -> Result<Vec<f32>, Error> {
        let logits = outputs.into_iter().next().unwrap_or_default();
        match logits.len() == count {
            true => Ok(logits),
            false => Err(wrong_count("logits", logits.len(), count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_text_is_cut_first_and_long_ones_share_the_room() {
        for (lengths, kept) in [
            ([3, 4], [3, 4]),
            ([3, 20], [3, 7]),
            ([20, 3], [7, 3]),
            ([20, 30], [5, 5]),
            ([11, 11], [5, 5]),
            ([6, 5], [5, 5]),
            ([0, 20], [0, 10]),
        ] {
            assert_eq!(longest_first(lengths, 10), kept, "{lengths:?}");
        }
        assert_eq!(longest_first([20, 30], 11), [5, 6]);
        assert_eq!(longest_first([30, 20], 11), [6, 5]);
    }
}
