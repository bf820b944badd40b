//! The `marker` layout of the published decision encoders: every question is one row,
//! `CLS head SEP (MASK option)… SEP state SEP`, and the logit of an option is read at its mask
//! token. The texts, the lengths and the tensors are settings.

use std::borrow::Cow;
use std::ops::Range;

use self::settings::{InputName, LogitsAt, Overflow, Part, Special};
use self::template::Refused;
use super::{EncodedQuestions, Encoder, Layout, Plan, QuestionRows, Row, in_callers_order};
use crate::Error;
use crate::decode::Logits;
use crate::question::{Kind, Question, State};
use crate::session::{Input, Interface, Outputs};
use crate::tokenize::{Meter, Tokenizer};

mod settings;
mod template;

pub use self::settings::Settings;

/// The layout with a model's settings.
pub struct Marker {
    settings: Settings,
    interface: Interface,
}

impl Marker {
    /// Returns the layout of a model with these settings.
    pub fn new(settings: Settings) -> Self {
        let inputs = settings.inputs.iter();
        let interface = Interface {
            inputs: inputs.map(|input| Cow::Borrowed(input.name())).collect(),
            logits: Cow::Owned(settings.output.clone()),
            action_is_optional: settings.action_is_optional,
            ..Interface::default()
        };
        Self {
            settings,
            interface,
        }
    }

    fn beyond(&self) -> Error {
        Error::BeyondModel {
            limit: self.settings.max_len,
        }
    }

    /// Returns the row with as much of the state as it has room for, and the number of the state's
    /// tokens in it.
    ///
    /// # Errors
    /// [`Error::BeyondModel`] where the options do not fit, or nothing may be cut.
    fn with_state(&self, row: &Row, state: &[i64]) -> Result<(Row, usize), Error> {
        let Settings {
            max_len,
            state_min,
            overflow,
            ..
        } = self.settings;
        let room = max_len.saturating_sub(row.ids.len());
        if overflow == Overflow::Refuse && (room < 1 || state.len() > room) {
            return Err(self.beyond());
        }
        let kept = state.len().min(room.max(state_min));
        let (before, after) = row.ids.split_at(row.state_at);
        let mut ids = Vec::with_capacity(row.ids.len() + kept);
        ids.extend_from_slice(before);
        ids.extend_from_slice(&state[..kept]);
        ids.extend_from_slice(after);
        ids.truncate(max_len);
        let moved = |marker: &i64| match *marker >= row.state_at as i64 {
            true => marker + kept as i64,
            false => *marker,
        };
        let markers: Vec<i64> = row.markers.iter().map(moved).collect();
        if markers.iter().any(|marker| *marker >= max_len as i64) {
            return Err(self.beyond());
        }
        let row = Row {
            ids,
            markers,
            type_id: row.type_id,
            outcomes: row.outcomes.clone(),
            ..Row::default()
        };
        Ok((row, kept))
    }

    /// Returns the options' tokens, each with its marker, and the outcome of each.
    fn options(
        &self,
        encoder: &mut Encoder<'_, '_>,
        question: &Question,
    ) -> Result<(Vec<Vec<i64>>, Vec<usize>), Error> {
        let Settings {
            ref template,
            option_max,
            max_len,
            special_ids,
            ..
        } = self.settings;
        let outcomes = template.outcomes(question).into_iter();
        let options = outcomes.map(|(index, outcome)| {
            let text = template.option(question.kind, index, outcome);
            let text = text.map_err(|problem| refused(&question.id, problem))?;
            let mut option = encoder.encode(&text, option_max.unwrap_or(max_len))?;
            option.insert(0, special_ids.mask);
            Ok((option, index))
        });
        let options = options.collect::<Result<Vec<_>, Error>>()?;
        Ok(options.into_iter().unzip())
    }

    /// Shortens options that leave the head too little, all to the same limit, and returns the
    /// number of tokens left for the head.
    fn share(&self, encoder: &mut Encoder<'_, '_>, options: &mut [Vec<i64>]) -> usize {
        let Settings {
            head_reserve,
            option_min,
            ..
        } = self.settings;
        let Some(head_max) = self.settings.head_max else {
            return self.settings.max_len;
        };
        let left = |options: &[Vec<i64>]| {
            let used: usize = options.iter().map(Vec::len).sum();
            head_max.saturating_sub(used)
        };
        let budget = left(options);
        if budget >= head_reserve {
            return budget;
        }
        let each = head_max.saturating_sub(head_reserve) / options.len();
        for option in options.iter_mut() {
            encoder.cut(option, each.max(option_min));
        }
        left(options)
    }

    /// Returns the ranges of options in each row: in order, as many as one row can hold.
    fn groups(&self, head: usize, options: &[Vec<i64>]) -> Vec<Range<usize>> {
        let Settings {
            max_len, overflow, ..
        } = self.settings;
        let room = match overflow {
            Overflow::Split => max_len.saturating_sub(self.settings.fixed() + head),
            Overflow::Cut | Overflow::Refuse => usize::MAX,
        };
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

    /// Returns one row without its state: the head, and the options of a group of outcomes.
    fn row(&self, kind: Kind, head: &[i64], options: &[Vec<i64>], outcomes: &[usize]) -> Row {
        let settings = &self.settings;
        let tokens: usize = options.iter().map(Vec::len).sum();
        let mut row = Row {
            ids: Vec::with_capacity(settings.fixed() + head.len() + tokens),
            type_id: *settings.type_ids.get(kind),
            outcomes: outcomes.to_vec(),
            ..Row::default()
        };
        for part in &settings.row {
            match part {
                Part::Special(Special::Cls) => row.ids.push(settings.special_ids.cls),
                Part::Special(Special::Sep) => row.ids.push(settings.special_ids.sep),
                Part::Token(id) => row.ids.push(*id),
                Part::Head => row.ids.extend_from_slice(head),
                Part::State => row.state_at = row.ids.len(),
                Part::Options => {
                    for option in options {
                        row.markers.push(row.ids.len() as i64);
                        row.ids.extend_from_slice(option);
                    }
                }
            }
        }
        row
    }

    /// Refuses a question with more outcomes than the model takes.
    fn check_count(&self, question: &Question) -> Result<(), Error> {
        let count = question.outcomes.len();
        let is_over = |most: Option<usize>| most.is_some_and(|most| count > most);
        let problem = if is_over(self.settings.max_options) {
            "more options than the model takes"
        } else if question.kind == Kind::Score && is_over(self.settings.max_levels) {
            "more levels than the model takes"
        } else {
            return Ok(());
        };
        Err(refused(&question.id, Refused(problem)))
    }
}

/// Returns the error for a text that the model does not take.
fn refused(path: &str, Refused(problem): Refused) -> Error {
    Error::BadField {
        path: path.to_owned(),
        problem,
    }
}

impl Layout for Marker {
    fn name(&self) -> &'static str {
        "marker"
    }

    fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Returns the rows of a question without the state.
    fn question(
        &self,
        encoder: &mut Encoder<'_, '_>,
        question: &Question,
    ) -> Result<QuestionRows, Error> {
        let Settings {
            head_max,
            head_min,
            max_len,
            ..
        } = self.settings;
        self.check_count(question)?;
        let before = encoder.truncated_tokens;
        let head = self.settings.template.head(question);
        let head = head.map_err(|problem| refused(&question.id, problem))?;
        let mut head = encoder.encode(&head, head_max.unwrap_or(max_len).max(head_min))?;
        let (mut options, outcomes) = self.options(encoder, question)?;
        let budget = self.share(encoder, &mut options);
        let is_over = head.len() > budget || encoder.truncated_tokens > before;
        if self.settings.overflow == Overflow::Refuse && is_over {
            return Err(self.beyond());
        }
        encoder.cut(&mut head, budget.max(head_min));
        let groups = self.groups(head.len(), &options).into_iter();
        Ok(QuestionRows {
            kind: question.kind,
            outcomes: options.len(),
            rows: groups
                .map(|group| {
                    let outcomes = &outcomes[group.clone()];
                    self.row(question.kind, &head, &options[group], outcomes)
                })
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
        let state = self.settings.template.state(state);
        let state = state.map_err(|problem| refused("state", problem))?;
        let state = tokenizer.encode(&state, self.settings.max_len, meter)?;
        if self.settings.overflow == Overflow::Refuse && state.left_out > 0 {
            return Err(self.beyond());
        }
        let mut truncated_tokens = questions.truncated_tokens;
        let questions = questions.rows.iter().map(|question| {
            let rows = question.rows.iter();
            let rows = rows.map(|row| self.with_state(row, &state.ids));
            let rows = rows.collect::<Result<Vec<_>, Error>>()?;
            // A question's state counts once, as the first of its rows cuts it.
            if let (Some(row), Some((whole, kept))) = (question.rows.first(), rows.first()) {
                let cut = row.ids.len() + kept - whole.ids.len();
                truncated_tokens += state.ids.len() - kept + state.left_out + cut;
            }
            Ok(QuestionRows {
                kind: question.kind,
                outcomes: question.outcomes,
                rows: rows.into_iter().map(|(row, _)| row).collect(),
            })
        });
        Ok(Plan {
            state: Vec::new(),
            questions: questions.collect::<Result<_, Error>>()?,
            truncated_tokens,
        })
    }

    fn inputs<'r>(&self, row: &'r Row) -> Vec<(&'static str, Input<'r>)> {
        let inputs = self.settings.inputs.iter();
        let tensor = |input: &InputName| match input {
            InputName::InputIds => Input::row(&row.ids),
            InputName::AttentionMask => Input::row(vec![1; row.ids.len()]),
            InputName::MarkerPos | InputName::MarkerPositions => Input::row(&row.markers),
            InputName::MarkerMask => Input::flags(vec![true; row.markers.len()]),
            InputName::Qtype | InputName::QuestionType => Input::ids(vec![row.type_id]),
        };
        inputs.map(|input| (input.name(), tensor(input))).collect()
    }

    fn logits(&self, question: &QuestionRows, mut outputs: Vec<Outputs>) -> Result<Logits, Error> {
        if self.settings.logits_at == LogitsAt::Tokens {
            for (row, output) in question.rows.iter().zip(&mut outputs) {
                let at = |marker: &i64| output.logits.get(*marker as usize).copied();
                let marked: Option<Vec<f32>> = row.markers.iter().map(at).collect();
                output.logits = marked.unwrap_or_default();
            }
        }
        in_callers_order(question, outputs)
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
        let settings = &marker.settings;
        let (head_max, reserve) = (settings.head_max.expect("a limit"), settings.head_reserve);
        let most = head_max - reserve;
        let (short, long) = (settings.option_min, most - 2 * settings.option_min);
        let kept = [short, long, short];
        assert_eq!(shared(kept), (kept, reserve, 0));
        let each = most / 3;
        let cut = [short, each, short];
        let head = head_max - each - 2 * short;
        let one_more = [short, long + 1, short];
        assert_eq!(shared(one_more), (cut, head, long + 1 - each));
        let even = [each + 1, each + 2, each + 3];
        let left = head_max - 3 * each;
        assert_eq!(shared(even), ([each; 3], left, 6));
    }
}
