//! The `labels` layout of GLiNER2.5-Decide: every question is one row, made of the question, its
//! labels and the words of the state, and the logit of a label is read at the token in front of it.

use std::borrow::Cow;

use serde::Deserialize;

use self::split::Split;
use super::{
    EncodedQuestions, Encoder, Layout, MAX_LENGTH, Plan, QuestionRows, Row, StateJson, fits,
    too_long,
};
use crate::Error;
use crate::question::{Kind, Question, State};
use crate::session::{Input, Interface};
use crate::stop::Stop;
use crate::tokenize::{Meter, Special, Tokenizer, Tokens};

mod split;

/// The prompt of a question without instructions.
const NO_INSTRUCTIONS: &str = "classify";

/// The settings of the layout in `config.json`. Lengths are in tokens.
#[derive(Debug, Clone, Deserialize)]
pub struct Settings {
    /// The length of a row, special tokens included.
    #[serde(default = "default_max_len")]
    pub max_len: usize,
    /// The spelling of a state that is JSON.
    #[serde(default)]
    pub state_json: StateJson,
}

fn default_max_len() -> usize {
    2048
}

impl Settings {
    /// Returns the first setting that cannot work and the requirement that it breaks.
    pub fn problem(&self) -> Option<(&'static str, String)> {
        too_long(&[("max_len", self.max_len)], MAX_LENGTH)
    }
}

/// The tokens between the texts of a row.
struct Marks {
    open: Vec<i64>,
    close: Vec<i64>,
    prompt: i64,
    description: Special,
    label: i64,
    end_of_labels: i64,
    text: i64,
}

impl Marks {
    /// Returns the tokens of a tokenizer.
    ///
    /// # Errors
    /// The first thing that the tokenizer lacks, in one line.
    fn of(tokenizer: &Tokenizer) -> Result<Self, String> {
        let special = |text: &str| {
            let special = tokenizer.special(text);
            special.ok_or_else(|| format!("added_tokens: no special token \"{text}\""))
        };
        let stop = Stop::never();
        let plain = |text: &str| {
            let mut meter = Meter::new(usize::MAX, &stop);
            let tokens = tokenizer.encode(text, usize::MAX, &mut meter);
            tokens.map(|it| it.ids).map_err(|error| error.to_string())
        };
        if !tokenizer.begins_anew() {
            return Err("pre_tokenizer: prepend_scheme must not be \"first\"".into());
        }
        Ok(Self {
            prompt: special("[P]")?.id,
            description: special("[DESCRIPTION]")?,
            label: special("[L]")?.id,
            end_of_labels: special("[SEP_STRUCT]")?.id,
            text: special("[SEP_TEXT]")?.id,
            open: plain("(")?,
            close: plain(")")?,
        })
    }
}

/// The layout with a model's settings.
pub struct Labels {
    settings: Settings,
    marks: Marks,
    interface: Interface,
}

/// An outcome of a question as the model reads it.
struct Label<'q> {
    /// The index of the outcome in the caller's order.
    outcome: usize,
    name: &'q str,
    description: Option<&'q str>,
}

impl Labels {
    /// Returns the layout of a model with these settings and this tokenizer.
    ///
    /// # Errors
    /// The first thing that the tokenizer lacks, in one line.
    pub fn new(settings: Settings, tokenizer: &Tokenizer) -> Result<Self, String> {
        let inputs = ["input_ids", "attention_mask", "marker_positions"];
        Ok(Self {
            settings,
            marks: Marks::of(tokenizer)?,
            interface: Interface {
                inputs: inputs.map(Cow::Borrowed).to_vec(),
                action_is_optional: true,
                ..Interface::default()
            },
        })
    }

    /// Adds the instructions and the descriptions of the labels. They are one text with special
    /// tokens in it, so the white space around these tokens is part of the text.
    fn prompt(
        &self,
        encoder: &mut Encoder<'_, '_>,
        instructions: &str,
        labels: &[Label<'_>],
        ids: &mut Vec<i64>,
    ) -> Result<(), Error> {
        let mark = self.marks.description;
        let described = labels.iter().filter_map(|label| {
            let description = label.description?;
            Some(format!(" {}: {description}", label.name))
        });
        let texts = std::iter::once(instructions.to_owned()).chain(described);
        let mut texts = texts.enumerate().peekable();
        while let Some((index, mut text)) = texts.next() {
            let is_followed = texts.peek().is_some();
            if is_followed {
                text.push(' ');
            }
            let mut rest = text.as_str();
            if is_followed && mark.takes_space_before {
                rest = rest.trim_end();
            }
            if index > 0 {
                ids.push(mark.id);
                if mark.takes_space_behind {
                    rest = rest.trim_start();
                }
            }
            ids.extend(encoder.encode(rest, usize::MAX)?);
        }
        Ok(())
    }

    /// Returns the row followed by as much of the state as it has room for.
    fn with_state(&self, row: &Row, state: &[i64]) -> Row {
        let mut ids = Vec::with_capacity(row.ids.len() + state.len());
        ids.extend_from_slice(&row.ids);
        ids.extend_from_slice(state);
        Row {
            ids,
            markers: row.markers.clone(),
            outcomes: row.outcomes.clone(),
            ..Row::default()
        }
    }
}

/// Returns the labels of a question in the order in which the model reads them.
fn labels(question: &Question) -> Vec<Label<'_>> {
    let outcomes = question.outcomes.iter().enumerate();
    let labels = outcomes.map(|(index, outcome)| {
        let text = outcome.text.as_deref();
        let (name, description) = match question.kind {
            Kind::Choice => (outcome.name.as_str(), text),
            Kind::Score => (text.unwrap_or(&outcome.name), None),
            Kind::Noul if outcome.name == "true" => ("yes", text),
            Kind::Noul => ("no", text),
        };
        Label {
            outcome: index,
            name,
            description,
        }
    });
    match question.kind {
        Kind::Noul => labels.rev().collect(),
        _ => labels.collect(),
    }
}

/// Returns the text of a state with a full stop behind it, unless it has an end.
fn ended(state: &str) -> Cow<'_, str> {
    match state.ends_with(['.', '!', '?']) {
        true => state.into(),
        false => format!("{state}.").into(),
    }
}

impl Layout for Labels {
    fn name(&self) -> &'static str {
        "labels"
    }

    fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Returns the row of a question, up to where the state begins.
    fn question(
        &self,
        encoder: &mut Encoder<'_, '_>,
        question: &Question,
    ) -> Result<QuestionRows, Error> {
        let (marks, labels) = (&self.marks, labels(question));
        let instructions = match question.instructions.as_str() {
            "" => NO_INSTRUCTIONS,
            instructions => instructions,
        };
        let mut ids = marks.open.clone();
        ids.push(marks.prompt);
        self.prompt(encoder, instructions, &labels, &mut ids)?;
        ids.extend_from_slice(&marks.open);
        let mut markers = Vec::with_capacity(labels.len());
        for label in &labels {
            markers.push(ids.len() as i64);
            ids.push(marks.label);
            ids.extend(encoder.encode(label.name, usize::MAX)?);
        }
        ids.extend_from_slice(&marks.close);
        ids.extend_from_slice(&marks.close);
        ids.extend([marks.end_of_labels, marks.text]);
        fits(ids.len(), self.settings.max_len)?;
        let row = Row {
            ids,
            markers,
            outcomes: labels.iter().map(|label| label.outcome).collect(),
            ..Row::default()
        };
        Ok(QuestionRows {
            kind: question.kind,
            outcomes: labels.len(),
            rows: vec![row],
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
        let max_len = self.settings.max_len;
        let text = self.settings.state_json.text(state);
        let text = ended(&text);
        let Tokens { ids, left_out } = tokenizer.encode_words(Split::of(&text), max_len, meter)?;
        let mut truncated_tokens = questions.truncated_tokens;
        let questions = questions.rows.iter().map(|question| {
            let rows = question.rows.iter().map(|row| {
                let kept = ids.len().min(max_len - row.ids.len());
                truncated_tokens += ids.len() - kept + left_out;
                self.with_state(row, &ids[..kept])
            });
            QuestionRows {
                kind: question.kind,
                outcomes: question.outcomes,
                rows: rows.collect(),
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
            ("marker_positions", Input::row(&row.markers)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::testing::{ids_of, published_tokenizer};
    use crate::question::Outcome;
    use std::path::Path;

    fn tokenizer() -> Tokenizer {
        published_tokenizer("gliner2.5-decide/tokenizer.json")
    }

    fn layout(max_len: usize) -> Labels {
        let settings = Settings {
            max_len,
            state_json: StateJson::PythonSorted,
        };
        Labels::new(settings, &tokenizer()).expect("a layout")
    }

    fn question(kind: Kind, instructions: &str, outcomes: &[(&str, Option<&str>)]) -> Question {
        let outcomes = outcomes.iter().map(|(name, text)| Outcome {
            name: (*name).to_owned(),
            text: text.map(str::to_owned),
            legend: None,
        });
        Question {
            id: "q".into(),
            kind,
            instructions: instructions.to_owned(),
            outcomes: outcomes.collect(),
        }
    }

    fn plan(layout: &Labels, state: &str, question: Question) -> Result<Plan, Error> {
        let (tokenizer, stop) = (tokenizer(), Stop::never());
        let mut meter = Meter::new(usize::MAX, &stop);
        let questions = layout.encode_questions(&tokenizer, &[question], &mut meter)?;
        layout.encode_state(&tokenizer, &state.to_owned().into(), &questions, &mut meter)
    }

    fn row(state: &str, question: Question) -> Row {
        let plan = plan(&layout(2048), state, question).expect("a plan");
        assert_eq!(plan.truncated_tokens, 0);
        plan.questions[0].rows[0].clone()
    }

    fn ids(parts: &[&str]) -> Vec<i64> {
        ids_of(&tokenizer(), parts)
    }

    #[test]
    fn a_row_is_the_question_its_labels_and_the_words_of_the_state() {
        let team = [("billing", Some("payments")), ("tech", None)];
        let row = row(
            "Charged TWICE",
            question(Kind::Choice, "Which team?", &team),
        );
        let expected = [
            &[
                "(",
                "[P]",
                "Which team? ",
                "[DESCRIPTION]",
                " billing: payments",
                "(",
            ][..],
            &[
                "[L]",
                "billing",
                "[L]",
                "tech",
                ")",
                ")",
                "[SEP_STRUCT]",
                "[SEP_TEXT]",
            ],
            &["charged", "twice", "."],
        ];
        assert_eq!(row.ids, ids(&expected.concat()));
        let label = ids(&["[L]"])[0];
        let places = row.ids.iter().zip(0..).filter(|(id, _)| **id == label);
        assert_eq!(row.markers, places.map(|(_, at)| at).collect::<Vec<i64>>());
        assert_eq!(row.outcomes, [0, 1]);
    }

    #[test]
    fn a_noul_has_yes_in_front_and_a_score_has_no_descriptions() {
        let sides = [("false", None), ("true", Some("a refund"))];
        let noul = row("Late!", question(Kind::Noul, "", &sides));
        let expected = [
            &[
                "(",
                "[P]",
                "classify ",
                "[DESCRIPTION]",
                " yes: a refund",
                "(",
            ][..],
            &[
                "[L]",
                "yes",
                "[L]",
                "no",
                ")",
                ")",
                "[SEP_STRUCT]",
                "[SEP_TEXT]",
                "late",
                "!",
            ],
        ];
        assert_eq!(noul.ids, ids(&expected.concat()));
        assert_eq!(noul.outcomes, [1, 0]);
        let levels = [("0", Some("calm")), ("1", Some("angry"))];
        let score = row("", question(Kind::Score, "How?", &levels));
        let expected = [
            &[
                "(", "[P]", "How?", "(", "[L]", "calm", "[L]", "angry", ")", ")",
            ][..],
            &["[SEP_STRUCT]", "[SEP_TEXT]", "."],
        ];
        assert_eq!(score.ids, ids(&expected.concat()));
    }

    #[test]
    fn white_space_beside_a_mark_is_text_unless_the_tokenizer_takes_it() {
        let folder = "tests/fixtures/published/gliner2.5-decide/tokenizer.json";
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let bytes = std::fs::read(&file).expect("a committed tokenizer");
        let stop = Stop::never();
        for (takes, texts) in [
            (false, ["late ", "   a: b ", " c: d"]),
            (true, ["late", "a: b", "c: d"]),
        ] {
            let mut settings: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
            // The normalizer would take the white space away in both cases.
            settings["normalizer"] = serde_json::Value::Null;
            let added = settings["added_tokens"].as_array_mut().expect("a list");
            for token in added.iter_mut() {
                token["lstrip"] = takes.into();
                token["rstrip"] = takes.into();
            }
            let tokenizer = Tokenizer::from_bytes(&file, settings.to_string().as_bytes());
            let tokenizer = tokenizer.expect("a tokenizer");
            let mut meter = Meter::new(usize::MAX, &stop);
            let mut tokens = |text: &str| {
                let tokens = tokenizer.encode(text, usize::MAX, &mut meter);
                tokens.expect("tokens").ids
            };
            let mark = tokenizer.special("[DESCRIPTION]").expect("a token").id;
            let [first, second, third] = texts.map(&mut tokens);
            let expected = [first, vec![mark], second, vec![mark], third].concat();
            let settings = Settings {
                max_len: 2048,
                state_json: StateJson::AsSent,
            };
            let layout = Labels::new(settings, &tokenizer).expect("a layout");
            let outcomes = [("  a", Some("b")), ("c", Some("d"))];
            let asked = question(Kind::Choice, "late", &outcomes);
            let mut meter = Meter::new(usize::MAX, &stop);
            let mut encoder = Encoder::new(&tokenizer, &mut meter);
            let mut ids = Vec::new();
            let prompted = layout.prompt(&mut encoder, "late", &labels(&asked), &mut ids);
            assert_eq!((prompted, ids), (Ok(()), expected), "{takes}");
        }
    }

    #[test]
    fn special_tokens_in_a_text_are_text() {
        let marks = "[L] [SEP_TEXT][DESCRIPTION] [CLS]";
        let outcomes = [(marks, Some(marks)), ("[L]", None)];
        let row = row(marks, question(Kind::Choice, marks, &outcomes));
        let count = |mark| {
            let id = ids(&[mark])[0];
            row.ids.iter().filter(|other| **other == id).count()
        };
        let marks = ["[L]", "[SEP_TEXT]", "[DESCRIPTION]", "[CLS]", "[P]"];
        assert_eq!(marks.map(count), [2, 1, 1, 0, 1]);
    }

    #[test]
    fn a_state_is_cut_at_its_end_and_a_question_is_refused_whole() {
        let sides = [("false", None), ("true", None)];
        let noul = || question(Kind::Noul, "Late?", &sides);
        let whole = row("one two three four", noul());
        let cut = plan(&layout(whole.ids.len() - 2), "one two three four", noul());
        let cut = cut.expect("a plan");
        assert_eq!(cut.truncated_tokens, 2);
        assert_eq!(
            cut.questions[0].rows[0].ids,
            whole.ids[..whole.ids.len() - 2]
        );
        let own = whole.ids.len() - ids(&["one", "two", "three", "four", "."]).len();
        assert!(plan(&layout(own), "one", noul()).is_ok());
        let limit = own - 1;
        let refused = plan(&layout(limit), "one", noul()).expect_err("too long");
        assert_eq!(refused, Error::BeyondModel { limit });
    }
}
