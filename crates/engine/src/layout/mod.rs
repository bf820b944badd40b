//! The step from a question and a state to rows of tokens, and from rows to logits, with one file
//! per kind of model.
//!
//! A layout only determines the rows and the tensors that they become. All layouts run them in the
//! same way: the state's rows first, then every question's rows side by side.

use std::sync::Arc;

use crate::Error;
use crate::decode::Logits;
use crate::question::{Kind, Question, Request, State};
use crate::reading::Reading;
use crate::session::{Input, Interface, Outputs};
use crate::tokenize::{Meter, Tokenizer, Tokens};

pub mod bi_encoder;
pub mod labels;
pub mod late_interaction;
pub mod marker;
pub mod pair;
mod python_json;
mod runner;
mod scored;
pub mod shared_state;
pub mod spans;
#[cfg(test)]
mod testing;

pub use self::python_json::StateJson;
pub use self::runner::Runner;
pub use self::scored::Scorer;

/// One run of the graph: a sequence of tokens, never padded and never batched with another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// Token ids.
    pub ids: Vec<i64>,
    /// The type of each token, where a row has several types.
    pub token_types: Vec<i64>,
    /// The position of each token, where the layout counts them itself.
    pub positions: Vec<i64>,
    /// For each token 0, or the number of the option that it belongs to, where the layout passes
    /// these to the graph.
    pub option_ids: Vec<i64>,
    /// For each option the number that the tokens of its question's instructions have in
    /// `option_ids`, where the layout passes these to the graph.
    pub head_ids: Vec<i64>,
    /// The index of each option's marker token in the row.
    pub markers: Vec<i64>,
    /// The number of options of the row's question, which can have several rows, where the layout
    /// passes it to the graph.
    pub option_count: i64,
    /// The place of the state in the row, where a layout puts it into the questions' rows.
    pub state_at: usize,
    /// The question's type, as the graph knows it.
    pub type_id: i64,
    /// For each marker, the index of its outcome in the caller's order.
    pub outcomes: Vec<usize>,
}

/// The rows of one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionRows {
    /// The type of the question.
    pub kind: Kind,
    /// The number of outcomes of the question.
    pub outcomes: usize,
    /// The rows, which together hold every outcome once. A question has at least one, unless its
    /// layout packs several questions into one row: then the first question has that row.
    pub rows: Vec<Row>,
}

/// A request as rows of tokens for the model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The state's own rows, where the layout prefills a KV cache with them or reads the state
    /// apart.
    pub state: Vec<Row>,
    /// The rows of the questions, one entry per question, in the caller's order.
    pub questions: Arc<[QuestionRows]>,
    /// The number of tokens that are left out because they are beyond the model's window.
    pub truncated_tokens: usize,
}

impl Plan {
    /// Returns the number of tokens of all rows, special tokens included.
    pub fn input_tokens(&self) -> usize {
        let questions = self.questions.iter().flat_map(|question| &question.rows);
        let rows = self.state.iter().chain(questions);
        rows.map(|row| row.ids.len()).sum()
    }

    /// Returns the sizes of the questions' rows: the number of a row's own tokens, and the number
    /// of the state's tokens that it looks at.
    pub fn question_sizes(&self) -> impl Iterator<Item = [usize; 2]> {
        let past: usize = self.state.iter().map(|row| row.ids.len()).sum();
        let rows = self.questions.iter().flat_map(|question| &question.rows);
        rows.map(move |row| [row.ids.len(), past])
    }
}

/// Encoded questions without a state, which all states of a batch share.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EncodedQuestions {
    /// The rows, one entry per question, in the caller's order. Only the layout knows what a state
    /// adds to them.
    pub rows: Arc<[QuestionRows]>,
    /// The text of each question, where the layout puts it in front of the state.
    pub texts: Arc<[String]>,
    /// The number of tokens that are left out because they are beyond the model's window.
    pub truncated_tokens: usize,
}

/// A kind of model.
pub trait Layout: Send + Sync {
    /// Returns the name of the layout in `config.json`.
    fn name(&self) -> &'static str;

    /// Returns the inputs and outputs that the graph must have.
    fn interface(&self) -> &Interface;

    /// Returns the form in which the layout reads a question. By default it reads each as it is.
    fn reading<'q>(&self, question: &'q Question) -> Reading<'q> {
        Reading::plain(question)
    }

    /// Returns the questions' part of the rows.
    ///
    /// # Errors
    /// [`Error::TooManyTokens`], the errors of `meter`'s stop, and [`Error::ModelFailed`] where the
    /// tokenizer cannot represent a text.
    fn encode_questions(
        &self,
        tokenizer: &Tokenizer,
        questions: &[Question],
        meter: &mut Meter<'_>,
    ) -> Result<EncodedQuestions, Error> {
        encode_each(self, tokenizer, questions, meter)
    }

    /// Returns the rows of one question in the form of its reading, as far as they do not depend on
    /// the state.
    ///
    /// # Errors
    /// The errors of [`Layout::encode_questions`].
    fn question(
        &self,
        encoder: &mut Encoder<'_, '_>,
        question: &Question,
    ) -> Result<QuestionRows, Error>;

    /// Returns the rows of a request about a state whose questions are already encoded.
    ///
    /// # Errors
    /// The errors of [`Layout::encode_questions`].
    fn encode_state(
        &self,
        tokenizer: &Tokenizer,
        state: &State,
        questions: &EncodedQuestions,
        meter: &mut Meter<'_>,
    ) -> Result<Plan, Error>;

    /// Returns the rows of a request.
    ///
    /// # Errors
    /// The errors of [`Layout::encode_questions`].
    fn encode(
        &self,
        tokenizer: &Tokenizer,
        request: &Request,
        meter: &mut Meter<'_>,
    ) -> Result<Plan, Error> {
        let questions = self.encode_questions(tokenizer, &request.questions, meter)?;
        self.encode_state(tokenizer, &request.state, &questions, meter)
    }

    /// Returns the tensors of a row, by input name; the caller adds those of the state's KV cache.
    fn inputs<'r>(&self, row: &'r Row) -> Vec<(&'static str, Input<'r>)>;

    /// Returns the logits of a question's outcomes from the outputs of its rows. By default each
    /// marker has one logit.
    ///
    /// # Errors
    /// [`Error::ModelFailed`] where a row gave another number of logits than the layout's graphs do.
    fn logits(&self, question: &QuestionRows, outputs: Vec<Outputs>) -> Result<Logits, Error> {
        in_callers_order(question, outputs)
    }

    /// Returns what the layout does with a second graph; `None` where a model has one graph.
    fn scorer(&self) -> Option<&dyn Scorer> {
        None
    }

    /// Returns the logits of each question of a plan from the outputs of all rows. By default each
    /// question has its own rows.
    ///
    /// # Errors
    /// The errors of [`Layout::logits`].
    fn all_logits(&self, plan: &Plan, outputs: Vec<Outputs>) -> Result<Vec<Logits>, Error> {
        let mut outputs = outputs.into_iter();
        let questions = plan.questions.iter();
        questions
            .map(|question| {
                let outputs = outputs.by_ref().take(question.rows.len());
                self.logits(question, outputs.collect())
            })
            .collect()
    }
}

/// The greatest length that a model's settings may have, in tokens: more than any model reads, and
/// small enough that sums of lengths do not overflow.
pub const MAX_LENGTH: usize = 1 << 24;

/// Returns the first length greater than `most` with the requirement that it breaks; `None` if
/// there is no such length.
pub(crate) fn too_long(
    lengths: &[(&'static str, usize)],
    most: usize,
) -> Option<(&'static str, String)> {
    let long = lengths.iter().find(|(_, value)| *value > most);
    long.map(|(key, _)| (*key, format!("must be at most {most}")))
}

/// Returns the questions' part of the rows, each question's by itself.
fn encode_each<L: Layout + ?Sized>(
    layout: &L,
    tokenizer: &Tokenizer,
    questions: &[Question],
    meter: &mut Meter<'_>,
) -> Result<EncodedQuestions, Error> {
    let mut encoder = Encoder::new(tokenizer, meter);
    let questions = questions.iter();
    let rows = questions.map(|question| layout.question(&mut encoder, question));
    Ok(EncodedQuestions {
        rows: rows.collect::<Result<_, _>>()?,
        texts: Arc::default(),
        truncated_tokens: encoder.truncated_tokens,
    })
}

/// Checks that the part of a row that is never cut has at most `limit` tokens.
fn fits(actual: usize, limit: usize) -> Result<(), Error> {
    match actual > limit {
        true => Err(Error::BeyondModel { limit }),
        false => Ok(()),
    }
}

/// Returns the logits of a question's rows in the caller's order.
fn in_callers_order(question: &QuestionRows, outputs: Vec<Outputs>) -> Result<Logits, Error> {
    let mut logits = Logits {
        outcomes: vec![f32::NAN; question.outcomes],
        action: None,
    };
    for (row, output) in question.rows.iter().zip(outputs) {
        if output.logits.len() != row.outcomes.len() {
            let (got, wanted) = (output.logits.len(), row.outcomes.len());
            return Err(Error::ModelFailed {
                cause: format!("{got} logits for {wanted} markers"),
            });
        }
        for (outcome, logit) in row.outcomes.iter().zip(output.logits) {
            logits.outcomes[*outcome] = logit;
        }
        logits.action = logits.action.or(output.action);
    }
    Ok(logits)
}

/// A value for each question type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
pub struct PerKind<T> {
    /// The value for choice questions.
    pub choice: T,
    /// The value for score questions.
    pub score: T,
    /// The value for noul questions.
    pub noul: T,
}

impl<T> PerKind<T> {
    /// Returns the value for a type.
    pub fn get(&self, kind: Kind) -> &T {
        match kind {
            Kind::Choice => &self.choice,
            Kind::Score => &self.score,
            Kind::Noul => &self.noul,
        }
    }
}

/// The ids of the special tokens that a layout puts into its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub struct SpecialIds {
    /// The token that begins a row.
    pub cls: i64,
    /// The token that ends a part of a row.
    pub sep: i64,
    /// The token that fills up rows of unequal length; no row here is padded.
    pub pad: i64,
    /// The token that begins an option.
    pub mask: i64,
}

/// An encoder of a request's texts: it adds up the tokens that are left out, and stops at the limit
/// of its meter.
pub struct Encoder<'e, 'm> {
    tokenizer: &'e Tokenizer,
    meter: &'e mut Meter<'m>,
    truncated_tokens: usize,
}

impl<'e, 'm> Encoder<'e, 'm> {
    fn new(tokenizer: &'e Tokenizer, meter: &'e mut Meter<'m>) -> Self {
        Self {
            tokenizer,
            meter,
            truncated_tokens: 0,
        }
    }

    /// Returns the first `keep` tokens of a text.
    fn encode(&mut self, text: &str, keep: usize) -> Result<Vec<i64>, Error> {
        let tokens = self.tokenizer.encode(text, keep, self.meter)?;
        self.truncated_tokens += tokens.left_out;
        Ok(tokens.ids)
    }

    /// Returns the first `keep` tokens of a text; the others do not count as left out.
    fn tokens(&mut self, text: &str, keep: usize) -> Result<Tokens, Error> {
        self.tokenizer.encode(text, keep, self.meter)
    }

    /// Returns the first `keep` tokens of a text whose tokens were counted before.
    fn uncounted(&mut self, text: &str, keep: usize) -> Result<Tokens, Error> {
        self.tokenizer
            .encode(text, keep, &mut self.meter.unlimited())
    }

    /// Whether a text has at most `most` tokens; they do not count.
    fn fits(&mut self, text: &str, most: usize) -> Result<bool, Error> {
        let mut meter = self.meter.limited(most);
        match self.tokenizer.encode(text, 0, &mut meter) {
            Ok(_) => Ok(true),
            Err(Error::TooManyTokens { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Shortens tokens to `keep`.
    fn cut(&mut self, tokens: &mut Vec<i64>, keep: usize) {
        self.truncated_tokens += tokens.len().saturating_sub(keep);
        tokens.truncate(keep);
    }
}
