//! The `pair` layout of cross-encoders as they are published, for natural-language inference or
//! reranking: every option is one row, made of the state and of a hypothesis from the instructions
//! and the option.

use std::borrow::Cow;

use self::labels::{Classes, Labels};
use self::template::{Place, Template};
use super::{EncodedQuestions, Encoder, Layout, PerKind, Plan, QuestionRows, Row};
use crate::Error;
use crate::decode::Logits;
use crate::question::{Kind, Outcome, Question, State};
use crate::session::{Input, Interface, Outputs};
use crate::stop::Stop;
use crate::tokenize::{Meter, PairFrame, Tokenizer, Tokens};

mod labels;
mod settings;
mod template;

pub use self::labels::Role;
pub use self::settings::Settings;

/// The most tokens of an option that has to share with long instructions.
const OPTION_MAX: usize = 48;

/// The text that stands first in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum First {
    /// The state stands first, as premises do.
    #[default]
    State,
    /// The hypothesis stands first, as queries do.
    Hypothesis,
}

/// A setting that cannot work: its key, and the requirement that it breaks.
pub type Problem = (String, String);

/// The layout with a model's settings.
pub struct Pair {
    classes: Classes,
    labels: Labels,
    templates: PerKind<Template>,
    first: First,
    /// The most tokens of a row, special tokens included.
    max_len: usize,
    /// The most tokens of a hypothesis.
    head_max: usize,
    frame: PairFrame,
    interface: Interface,
}

/// The tokens of a hypothesis, and the numbers of tokens that were left out of its parts.
#[derive(Debug, Default)]
struct Hypothesis {
    ids: Vec<i64>,
    instructions_left_out: usize,
    option_left_out: usize,
}

/// The parts of hypotheses that differ only in their option; the option's place is empty.
struct Shared(Vec<(Place, Tokens)>);

impl Pair {
    /// Returns the layout of a model with these settings, whose tokenizer makes rows of two texts
    /// by `frame`.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn new(
        settings: &Settings,
        tokenizer: &Tokenizer,
        frame: PairFrame,
    ) -> Result<Self, Problem> {
        let labels = Labels::new(&settings.id2label)?;
        let classes = labels.classes(settings)?;
        let max_len = settings.max_len(frame.specials())?;
        let head_max = settings.head_max(max_len, frame.specials())?;
        let layout = Self {
            classes,
            labels,
            templates: settings.templates()?,
            first: settings.first,
            max_len,
            head_max,
            frame,
            interface: Interface {
                inputs: ["input_ids", "attention_mask"].map(Cow::Borrowed).to_vec(),
                optional_inputs: vec!["token_type_ids"],
                action_is_optional: true,
                ..Interface::default()
            },
        };
        for kind in Kind::ALL {
            layout.check_room(kind, tokenizer)?;
        }
        Ok(layout)
    }

    /// Returns the label of each class of the graph, by number, and its role if it counts.
    pub fn labels(&self) -> Vec<(&str, Option<Role>)> {
        let names = self.labels.names().enumerate();
        names
            .map(|(index, name)| (name, self.classes.role(index)))
            .collect()
    }

    /// Returns the length of a row in tokens, special tokens included.
    pub fn max_len(&self) -> usize {
        self.max_len
    }

    /// Checks that a template's own words leave room for an option and some of the instructions.
    fn check_room(&self, kind: Kind, tokenizer: &Tokenizer) -> Result<(), Problem> {
        let stop = Stop::never();
        let mut meter = Meter::new(usize::MAX, &stop);
        let mut words = 0;
        for (place, text) in self.templates.get(kind).parts("", "") {
            if place == Place::Words {
                let tokens = tokenizer.encode(&text, usize::MAX, &mut meter);
                words += tokens.map_or(0, |tokens| tokens.ids.len());
            }
        }
        let most = self.head_max - self.option_max() - 1;
        if words > most {
            let problem = format!("has {words} tokens of its own, head_max leaves {most}");
            return Err((format!("template.{kind}"), problem));
        }
        Ok(())
    }

    fn option_max(&self) -> usize {
        OPTION_MAX.min(self.head_max / 2)
    }

    /// Returns a row with the hypothesis and as much of the state as fits, and the number of the
    /// state's tokens that were left out.
    fn with_state(&self, hypothesis: &Row, state: &Tokens) -> (Row, usize) {
        let room = self.max_len - self.frame.specials() - hypothesis.ids.len();
        let kept = &state.ids[..state.ids.len().min(room)];
        let (ids, token_types) = match self.first {
            First::State => self.frame.row(kept, &hypothesis.ids),
            First::Hypothesis => self.frame.row(&hypothesis.ids, kept),
        };
        let row = Row {
            ids,
            token_types,
            outcomes: hypothesis.outcomes.clone(),
            ..Row::default()
        };
        (row, state.ids.len() - kept.len() + state.left_out)
    }

    /// Returns the hypothesis that an outcome is right; `shared` is kept for the question's other
    /// outcomes.
    fn hypothesis(
        &self,
        encoder: &mut Encoder<'_, '_>,
        question: &Question,
        outcome: &Outcome,
        shared: &mut Option<Shared>,
    ) -> Result<Hypothesis, Error> {
        let template = self.templates.get(question.kind);
        let option = option_text(question.kind, outcome);
        let is_long = |shared: &Shared| shared.tokens() > self.head_max;
        if !shared.as_ref().is_some_and(is_long) {
            let text = template.text(&question.instructions, &option);
            let whole = encoder
                .tokenizer
                .encode(&text, self.head_max, encoder.meter)?;
            if whole.left_out == 0 {
                return Ok(Hypothesis {
                    ids: whole.ids,
                    ..Hypothesis::default()
                });
            }
        }
        let shared = match shared {
            Some(shared) => shared,
            None => shared.insert(self.shared(encoder, question)?),
        };
        let mut parts = template.parts("", &option);
        let option = parts.find(|(place, _)| *place == Place::Option);
        let option = option.map(|(_, text)| {
            let keep = self.option_max();
            encoder.tokenizer.encode(&text, keep, encoder.meter)
        });
        Ok(shared.with(option.transpose()?.unwrap_or_default(), self.head_max))
    }

    /// Returns the parts of a question's hypotheses, without an option.
    fn shared(&self, encoder: &mut Encoder<'_, '_>, question: &Question) -> Result<Shared, Error> {
        let template = self.templates.get(question.kind);
        let parts = template.parts(&question.instructions, "");
        let parts = parts.map(|(place, text)| {
            let tokens = match place {
                Place::Option => Tokens::default(),
                _ => encoder
                    .tokenizer
                    .encode(&text, self.head_max, encoder.meter)?,
            };
            Ok((place, tokens))
        });
        Ok(Shared(parts.collect::<Result<_, Error>>()?))
    }
}

impl Shared {
    /// Returns the number of tokens of all parts, including those that are not kept.
    fn tokens(&self) -> usize {
        let parts = self.0.iter();
        parts.map(|(_, part)| part.ids.len() + part.left_out).sum()
    }

    /// Returns a hypothesis of parts that are too long together: the instructions are shortened in
    /// favour of the option and the template's words.
    fn with(&self, option: Tokens, head_max: usize) -> Hypothesis {
        let words = self.0.iter().filter(|(place, _)| *place == Place::Words);
        let words: usize = words.map(|(_, part)| part.ids.len()).sum();
        let room = head_max.saturating_sub(words + option.ids.len());
        let mut hypothesis = Hypothesis {
            option_left_out: option.left_out,
            ..Hypothesis::default()
        };
        for (place, part) in &self.0 {
            let ids = match place {
                Place::Words => &part.ids[..],
                Place::Option => &option.ids[..],
                Place::Instructions => {
                    let kept = part.ids.len().min(room);
                    hypothesis.instructions_left_out = part.ids.len() - kept + part.left_out;
                    &part.ids[..kept]
                }
            };
            hypothesis.ids.extend_from_slice(ids);
        }
        hypothesis
    }
}

/// Returns the outcomes that get a row, with their indexes: all of them, but for a noul only
/// `true`, and `false` where the criteria give its meaning.
fn asked(question: &Question) -> impl Iterator<Item = (usize, &Outcome)> {
    let outcomes = question.outcomes.iter().enumerate();
    outcomes.filter(|(_, outcome)| {
        question.kind != Kind::Noul || outcome.name == "true" || outcome.text.is_some()
    })
}

/// Returns the text of an outcome in the hypothesis.
fn option_text(kind: Kind, outcome: &Outcome) -> Cow<'_, str> {
    let name = &outcome.name;
    let text = outcome.text.as_deref().filter(|text| !text.is_empty());
    match (kind, text) {
        (Kind::Choice, Some(text)) if text != name => format!("{name}: {text}").into(),
        (Kind::Choice, _) => name.into(),
        (Kind::Score, text) => text.unwrap_or(name).into(),
        (Kind::Noul, text) => {
            let word = if name == "true" { "yes" } else { "no" };
            text.map_or(word.into(), |text| format!("{word}: {text}").into())
        }
    }
}

impl Layout for Pair {
    fn name(&self) -> &'static str {
        "pair"
    }

    fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Returns the hypotheses of a question, one in each row.
    fn question(
        &self,
        encoder: &mut Encoder<'_, '_>,
        question: &Question,
    ) -> Result<QuestionRows, Error> {
        let mut rows = Vec::new();
        // Long instructions are tokenized once, not again for every option.
        let mut shared = if question.instructions.len() > self.head_max {
            Some(self.shared(encoder, question)?)
        } else {
            None
        };
        let mut instructions_left_out = 0;
        for (index, outcome) in asked(question) {
            let hypothesis = self.hypothesis(encoder, question, outcome, &mut shared)?;
            instructions_left_out = instructions_left_out.max(hypothesis.instructions_left_out);
            encoder.truncated_tokens += hypothesis.option_left_out;
            rows.push(Row {
                ids: hypothesis.ids,
                outcomes: vec![index],
                ..Row::default()
            });
        }
        encoder.truncated_tokens += instructions_left_out;
        Ok(QuestionRows {
            kind: question.kind,
            outcomes: question.outcomes.len(),
            rows,
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
        let state = tokenizer.encode(&state.text, self.max_len, meter)?;
        let mut truncated_tokens = questions.truncated_tokens;
        let questions = questions.rows.iter().map(|question| {
            let rows = question.rows.iter();
            let (rows, left_out): (Vec<Row>, Vec<usize>) =
                rows.map(|row| self.with_state(row, &state)).unzip();
            truncated_tokens += left_out.into_iter().max().unwrap_or(0);
            QuestionRows {
                kind: question.kind,
                outcomes: question.outcomes,
                rows,
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
            ("token_type_ids", Input::row(&row.token_types)),
        ]
    }

    fn logits(&self, question: &QuestionRows, outputs: Vec<Outputs>) -> Result<Logits, Error> {
        let mut outcomes = vec![0.0; question.outcomes];
        let is_noul = question.kind == Kind::Noul;
        let share = if is_noul { outputs.len() as f32 } else { 1.0 };
        for (row, output) in question.rows.iter().zip(outputs) {
            let [pro, contra] = self.classes.read(&output.logits)?;
            for outcome in &row.outcomes {
                outcomes[*outcome] += pro / share;
                if is_noul {
                    outcomes[1 - outcome] += contra / share;
                }
            }
        }
        Ok(Logits {
            outcomes,
            action: None,
        })
    }
}
