//! The `marker` layout of the published decision encoders: every question is one row,
//! `CLS head SEP (MASK option)… SEP state SEP`, and the logit of an option is read at its mask token.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;

use super::{
    EncodedQuestions, Encoder, Layout, MAX_LENGTH, Plan, QuestionRows, Row, SpecialIds, too_long,
};
use crate::Error;
use crate::question::{Kind, Outcome, Question, State};
use crate::session::{Input, Interface};
use crate::tokenize::{Meter, Tokenizer};

/// The most tokens of an option, its marker not counted.
const OPTION_MAX: usize = 48;
/// The tokens that a head should have at least; options that leave it fewer are shortened.
const HEAD_RESERVE: usize = 16;
/// The tokens that a shortened option keeps at least, its marker included.
const OPTION_MIN: usize = 4;
/// The tokens that a head keeps at least, `CLS` and `SEP` not counted.
const HEAD_MIN: usize = 8;

/// The settings of the layout in `config.json`. Lengths are in tokens.
#[derive(Debug, Clone, Deserialize)]
pub struct Settings {
    /// The length of a row, special tokens included.
    #[serde(default = "default_max_len")]
    pub max_len: usize,
    /// The length of head and options together.
    #[serde(default = "default_head_max", alias = "head_max_len")]
    pub head_max: usize,
    /// The special tokens.
    pub special_ids: SpecialIds,
}

fn default_max_len() -> usize {
    1024
}

fn default_head_max() -> usize {
    256
}

impl Settings {
    /// Returns the first setting that cannot work and the requirement that it breaks.
    pub fn problem(&self) -> Option<(&'static str, String)> {
        let lengths = [("max_len", self.max_len), ("head_max", self.head_max)];
        if let Some(problem) = too_long(&lengths, MAX_LENGTH) {
            return Some(problem);
        }
        let least = HEAD_RESERVE + OPTION_MIN;
        if self.head_max < least {
            return Some(("head_max", format!("must be at least {least}")));
        }
        // The head and one option always fit into head_max; a row also holds the special tokens
        // around them.
        let least = self.head_max + fixed(0);
        if self.max_len < least {
            return Some((
                "max_len",
                format!("must be at least {least}, head_max and {}", fixed(0)),
            ));
        }
        None
    }
}

/// The layout with a model's settings.
pub struct Marker {
    settings: Settings,
    interface: Interface,
}

impl Marker {
    /// Returns the layout of a model with these settings.
    pub fn new(settings: Settings) -> Self {
        let inputs = [
            "input_ids",
            "attention_mask",
            "marker_pos",
            "marker_mask",
            "qtype",
        ];
        let interface = Interface {
            inputs: inputs.map(Cow::Borrowed).to_vec(),
            ..Interface::default()
        };
        Self {
            settings,
            interface,
        }
    }

    /// Returns how many tokens of the state a row has room for, the last `SEP` not counted.
    fn room(&self, row: &Row) -> usize {
        self.settings.max_len - row.ids.len() - 1
    }

    /// Returns the row followed by as much of the state as it has room for.
    fn with_state(&self, row: &Row, state: &[i64]) -> Row {
        let state = &state[..state.len().min(self.room(row))];
        let mut ids = Vec::with_capacity(row.ids.len() + state.len() + 1);
        ids.extend_from_slice(&row.ids);
        ids.extend_from_slice(state);
        ids.push(self.settings.special_ids.sep);
        Row {
            ids,
            markers: row.markers.clone(),
            type_id: row.type_id,
            outcomes: row.outcomes.clone(),
            ..Row::default()
        }
    }

    /// Returns the options' tokens, each with its marker.
    fn options(
        &self,
        encoder: &mut Encoder<'_, '_>,
        question: &Question,
    ) -> Result<Vec<Vec<i64>>, Error> {
        let outcomes = question.outcomes.iter();
        outcomes
            .map(|outcome| {
                let text = option_text(question.kind, outcome);
                let mut option = encoder.encode(&format!(" {}", scrub(&text)), OPTION_MAX)?;
                option.insert(0, self.settings.special_ids.mask);
                Ok(option)
            })
            .collect()
    }

    /// Shortens options that leave the head too little, all to the same limit, and returns the
    /// number of tokens left for the head.
    fn share(&self, encoder: &mut Encoder<'_, '_>, options: &mut [Vec<i64>]) -> usize {
        let head_max = self.settings.head_max;
        let left = |options: &[Vec<i64>]| {
            let used: usize = options.iter().map(Vec::len).sum();
            head_max.saturating_sub(used)
        };
        let budget = left(options);
        if budget >= HEAD_RESERVE {
            return budget;
        }
        let each = ((head_max - HEAD_RESERVE) / options.len()).max(OPTION_MIN);
        for option in options.iter_mut() {
            encoder.cut(option, each);
        }
        left(options)
    }

    /// Returns the ranges of options in each row: in order, as many as one row can hold.
    fn groups(&self, head: usize, options: &[Vec<i64>]) -> Vec<Range<usize>> {
        let room = self.settings.max_len - fixed(head);
        let (mut groups, mut start, mut used) = (Vec::new(), 0, 0);
        for (index, option) in options.iter().enumerate() {
            if used + option.len() > room && index > start {
                groups.push(start..index);
                (start, used) = (index, 0);
            }
            used += option.len();
        }
        groups.push(start..options.len());
        groups
    }

    /// Returns one row up to where the state begins: the head, and the options of a group of
    /// outcomes.
    fn row(&self, kind: Kind, head: &[i64], options: &[Vec<i64>], group: Range<usize>) -> Row {
        let special = self.settings.special_ids;
        let tokens: usize = options.iter().map(Vec::len).sum();
        let mut ids = Vec::with_capacity(fixed(head.len()) + tokens);
        ids.push(special.cls);
        ids.extend_from_slice(head);
        ids.push(special.sep);
        let mut markers = Vec::with_capacity(options.len());
        for option in options {
            markers.push(ids.len() as i64);
            ids.extend_from_slice(option);
        }
        ids.push(special.sep);
        Row {
            ids,
            markers,
            type_id: type_id(kind),
            outcomes: group.collect(),
            ..Row::default()
        }
    }
}

/// Returns the number of tokens of a row that are neither options nor state: `CLS head SEP`, `SEP`,
/// `SEP`.
fn fixed(head: usize) -> usize {
    head + 4
}

/// Returns the value of the published graphs' `qtype` input.
fn type_id(kind: Kind) -> i64 {
    match kind {
        Kind::Choice => 0,
        Kind::Score => 1,
        Kind::Noul => 2,
    }
}

/// Returns the text of an outcome that the model reads.
fn option_text(kind: Kind, outcome: &Outcome) -> String {
    let name = &outcome.name;
    match (kind, outcome.text.as_deref()) {
        (Kind::Choice, Some(text)) => format!("{name}: {text}"),
        (Kind::Choice, None) => name.clone(),
        (Kind::Score, text) => format!("level {name}: {}", text.unwrap_or("")),
        (Kind::Noul, Some(text)) => format!("{name}: {text}"),
        (Kind::Noul, None) if name == "true" => "true: yes, the statement holds".to_owned(),
        (Kind::Noul, None) => "false: no, the statement does not hold".to_owned(),
    }
}

/// Removes marker tokens written in a text, which the model would take for real ones: such models
/// were trained on texts scrubbed in the same way.
fn scrub(text: &str) -> Cow<'_, str> {
    if text.contains("[MASK]") {
        Cow::Owned(text.replace("[MASK]", " "))
    } else {
        Cow::Borrowed(text)
    }
}

impl Layout for Marker {
    fn name(&self) -> &'static str {
        "marker"
    }

    fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Returns the rows of a question, up to where the state begins.
    fn question(
        &self,
        encoder: &mut Encoder<'_, '_>,
        question: &Question,
    ) -> Result<QuestionRows, Error> {
        let instructions = scrub(&question.instructions);
        let head = format!("{} question: {instructions}", question.kind);
        let mut head = encoder.encode(&head, self.settings.head_max.max(HEAD_MIN))?;
        let mut options = self.options(encoder, question)?;
        let budget = self.share(encoder, &mut options);
        encoder.cut(&mut head, budget.max(HEAD_MIN));
        let groups = self.groups(head.len(), &options).into_iter();
        Ok(QuestionRows {
            kind: question.kind,
            outcomes: options.len(),
            rows: groups
                .map(|group| self.row(question.kind, &head, &options[group.clone()], group))
                .collect(),
        })
    }

    /// Returns the rows with the state; each row takes as much of it as it has room for.
    fn encode_state(
        &self,
        tokenizer: &Tokenizer,
        state: &State,
        questions: &EncodedQuestions,
        meter: &mut Meter<'_>,
    ) -> Result<Plan, Error> {
        let state = tokenizer.encode(&scrub(&state.text), self.settings.max_len, meter)?;
        let mut truncated_tokens = questions.truncated_tokens;
        let questions = questions.rows.iter().map(|question| {
            let kept = state.ids.len().min(self.room(&question.rows[0]));
            truncated_tokens += state.ids.len() - kept + state.left_out;
            let rows = question.rows.iter();
            QuestionRows {
                kind: question.kind,
                outcomes: question.outcomes,
                rows: rows.map(|row| self.with_state(row, &state.ids)).collect(),
            }
        });
        Ok(Plan {
            state: Vec::new(),
            questions: questions.collect(),
            truncated_tokens,
        })
    }

    fn inputs<'r>(&self, row: &'r Row) -> Vec<(&'static str, Input<'r>)> {
        vec![
            ("input_ids", Input::row(&row.ids)),
            ("attention_mask", Input::row(vec![1; row.ids.len()])),
            ("marker_pos", Input::row(&row.markers)),
            ("marker_mask", Input::flags(vec![true; row.markers.len()])),
            ("qtype", Input::ids(vec![row.type_id])),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::Stop;
    use std::path::Path;

    fn fixture() -> (Marker, Tokenizer) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/marker");
        let settings = std::fs::read(folder.join("config.json")).expect("settings");
        let settings = serde_json::from_slice(&settings).expect("settings");
        let file = folder.join("tokenizer.json");
        let bytes = std::fs::read(&file).expect("a committed tokenizer");
        let tokenizer = Tokenizer::from_bytes(&file, &bytes).expect("a tokenizer");
        (Marker::new(settings), tokenizer)
    }

    /// Returns the lengths of three options after they have shared `head_max` with the head, the
    /// tokens left for the head, and the number of truncated tokens.
    fn shared(lengths: [usize; 3]) -> ([usize; 3], usize, usize) {
        let (marker, tokenizer) = fixture();
        let stop = Stop::never();
        let mut meter = Meter::new(usize::MAX, &stop);
        let mut encoder = Encoder::new(&tokenizer, &mut meter);
        let mut options = lengths.map(|length| vec![7; length]);
        let head = marker.share(&mut encoder, &mut options);
        let lengths = options.map(|option| option.len());
        (lengths, head, encoder.truncated_tokens)
    }

    #[test]
    fn options_are_shortened_only_when_they_leave_the_head_less_than_its_reserve() {
        let (marker, _) = fixture();
        let most = marker.settings.head_max - HEAD_RESERVE;
        let (short, long) = (OPTION_MIN, most - 2 * OPTION_MIN);
        let kept = [short, long, short];
        assert_eq!(shared(kept), (kept, HEAD_RESERVE, 0));
        let each = most / 3;
        let cut = [short, each, short];
        let head = marker.settings.head_max - each - 2 * short;
        let one_more = [short, long + 1, short];
        assert_eq!(shared(one_more), (cut, head, long + 1 - each));
        let even = [each + 1, each + 2, each + 3];
        let left = marker.settings.head_max - 3 * each;
        assert_eq!(shared(even), ([each; 3], left, 6));
    }
}
