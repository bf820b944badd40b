//! How a question and a state become rows of tokens, and rows become logits: one file per kind of model.
//!
//! A layout only says what the rows are and which tensors they become. Running them is the same for all: the state's
//! rows first, then every question's rows side by side.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use crate::Error;
use crate::cache::{Key, StateCache};
use crate::decode::Logits;
use crate::question::{Kind, Question, Request};
use crate::queue::Stop;
use crate::session::{Input, Interface, Lane, Memory, Outputs, Sessions, allocator};
use crate::tokenize::{Meter, Tokenizer};

pub mod marker;
pub mod pair;
pub mod shared_state;

/// One run of the graph: a sequence of tokens, never padded and never batched with another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// Token ids.
    pub ids: Vec<i64>,
    /// The type of each token, where a row has several.
    pub token_types: Vec<i64>,
    /// The position of each token, where the layout counts them itself.
    pub positions: Vec<i64>,
    /// For each token 0, or the number of the option that it belongs to, where the layout tells the graph.
    pub option_ids: Vec<i64>,
    /// Where each option's marker token stands.
    pub markers: Vec<i64>,
    /// The question's type, as the graph knows it.
    pub type_id: i64,
    /// For each marker, the index of its outcome in the caller's order.
    pub outcomes: Vec<usize>,
}

/// The rows of one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionRows {
    /// What it asks for.
    pub kind: Kind,
    /// How many outcomes the question has.
    pub outcomes: usize,
    /// At least one; together they hold every outcome once.
    pub rows: Vec<Row>,
}

/// A request as rows of tokens: what the model has to do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The state's own rows, where the layout reads it alone.
    pub state: Vec<Row>,
    /// One per question, in the caller's order.
    pub questions: Arc<[QuestionRows]>,
    /// Tokens that are left out because they are beyond the model's window.
    pub truncated_tokens: usize,
}

impl Plan {
    /// The tokens of all rows, special ones included.
    pub fn input_tokens(&self) -> usize {
        let questions = self.questions.iter().flat_map(|question| &question.rows);
        let rows = self.state.iter().chain(questions);
        rows.map(|row| row.ids.len()).sum()
    }
}

/// Questions without a state: what all states of a batch have in common.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EncodedQuestions {
    /// One per question, in the caller's order. Only the layout knows what a state adds to them.
    pub rows: Arc<[QuestionRows]>,
    /// Tokens that are left out because they are beyond the model's window.
    pub truncated_tokens: usize,
}

/// A kind of model.
pub trait Layout: Send + Sync {
    /// The name of the layout in `config.json`.
    fn name(&self) -> &'static str;

    /// What the graph must have.
    fn interface(&self) -> &Interface;

    /// The questions' part of the rows.
    ///
    /// # Errors
    /// [`Error::TooManyTokens`], what `meter`'s stop says, and [`Error::ModelFailed`] where the tokenizer cannot
    /// represent a text.
    fn encode_questions(
        &self,
        tokenizer: &Tokenizer,
        questions: &[Question],
        meter: &mut Meter<'_>,
    ) -> Result<EncodedQuestions, Error> {
        let mut encoder = Encoder::new(tokenizer, meter);
        let questions = questions.iter();
        let rows = questions.map(|question| self.question(&mut encoder, question));
        Ok(EncodedQuestions {
            rows: rows.collect::<Result<_, _>>()?,
            truncated_tokens: encoder.truncated_tokens,
        })
    }

    /// The rows of one question, as far as they do not depend on the state.
    ///
    /// # Errors
    /// As those of [`Layout::encode_questions`].
    fn question(
        &self,
        encoder: &mut Encoder<'_, '_>,
        question: &Question,
    ) -> Result<QuestionRows, Error>;

    /// The rows of a state's request.
    ///
    /// # Errors
    /// As those of [`Layout::encode_questions`].
    fn encode_state(
        &self,
        tokenizer: &Tokenizer,
        state: &str,
        questions: &EncodedQuestions,
        meter: &mut Meter<'_>,
    ) -> Result<Plan, Error>;

    /// The rows of a request.
    ///
    /// # Errors
    /// As those of [`Layout::encode_questions`].
    fn encode(
        &self,
        tokenizer: &Tokenizer,
        request: &Request,
        meter: &mut Meter<'_>,
    ) -> Result<Plan, Error> {
        let questions = self.encode_questions(tokenizer, &request.questions, meter)?;
        self.encode_state(tokenizer, &request.state, &questions, meter)
    }

    /// The tensors of a row, by input name; what is kept is added by the caller.
    fn inputs<'r>(&self, row: &'r Row) -> Vec<(&'static str, Input<'r>)>;

    /// The logits of a question's outcomes, from what its rows gave: here one for each marker.
    ///
    /// # Errors
    /// [`Error::ModelFailed`] where a row gave another number of logits than the layout's graphs do.
    fn logits(&self, question: &QuestionRows, outputs: Vec<Outputs>) -> Result<Logits, Error> {
        join(question, outputs)
    }
}

/// The longest length that a model's settings may have, in tokens: more than any model reads, and so few that sums of
/// lengths do not overflow.
pub const MAX_LENGTH: usize = 1 << 24;

/// A length that is beyond what any model has, and what it must be.
pub(crate) fn too_long(
    lengths: &[(&'static str, usize)],
    most: usize,
) -> Option<(&'static str, String)> {
    let long = lengths.iter().find(|(_, value)| *value > most);
    long.map(|(key, _)| (*key, format!("must be at most {most}")))
}

/// What a plan is run with.
pub struct Runner<'a> {
    /// Says which tensors a row becomes.
    pub layout: &'a dyn Layout,
    /// Runs them.
    pub sessions: &'a Sessions,
    /// Keeps what was read of states.
    pub cache: &'a StateCache,
}

impl Runner<'_> {
    /// Runs a plan: the state's rows that are not kept side by side, then the questions' rows side by side.
    ///
    /// # Errors
    /// What `stop` says between two runs, and [`Error::ModelFailed`].
    pub fn run(&self, plan: &Plan, stop: &Stop) -> Result<Vec<Logits>, Error> {
        let (memory, was_kept) = self.memory(&plan.state, stop)?;
        // A kept state is likely to come again, and to need the same room.
        let is_large = memory.as_ref().is_some_and(|memory| memory.is_large());
        let gives_back = !was_kept && (is_large || self.sessions.hold_much());
        let questions = plan.questions.iter();
        let rows: Vec<&Row> = questions.flat_map(|question| &question.rows).collect();
        let side_by_side = self.sessions.side_by_side();
        let lasts = rows.len().saturating_sub(side_by_side);
        let past = plan.state.iter().map(|row| row.ids.len()).sum();
        // The last rows may have a core each for themselves; of few rows that is most.
        let pace = stop
            .pace
            .as_ref()
            .filter(|_| rows.len() >= 8 * side_by_side);
        let outputs = self.sessions.run_all(rows.len(), stop, |lane, index| {
            let row = rows[index];
            let gives_back = gives_back && index >= lasts;
            let inputs = self.layout.inputs(row);
            let started = Instant::now();
            let output = lane.answer(inputs, row.ids.len(), memory.as_deref(), gives_back)?;
            if let Some(pace) = pace {
                pace.note([row.ids.len(), past], side_by_side, started.elapsed());
            }
            Ok(output)
        })?;
        drop(memory);
        if gives_back {
            allocator::give_back();
        }
        let mut outputs = outputs.into_iter();
        let questions = plan.questions.iter();
        questions
            .map(|question| {
                let outputs = outputs.by_ref().take(question.rows.len());
                self.layout.logits(question, outputs.collect())
            })
            .collect()
    }

    /// What is kept of a state, read where it is not kept yet, and whether all of it was; `None` for an empty state.
    fn memory(&self, rows: &[Row], stop: &Stop) -> Result<(Option<Arc<Memory>>, bool), Error> {
        let (memory, was_kept) = match rows {
            [] => return Ok((None, true)),
            [row] => self.chunk(row, stop)?,
            _ => self.chunks(rows, stop)?,
        };
        Ok((Some(memory), was_kept))
    }

    /// What is kept of a state of one row, and whether it was kept before.
    fn chunk(&self, row: &Row, stop: &Stop) -> Result<(Arc<Memory>, bool), Error> {
        let key = self.cache.key(&row.ids);
        if let Some(memory) = self.cache.get(&[key])?.pop().flatten() {
            return Ok((memory, true));
        }
        let read = self
            .sessions
            .run_all(1, stop, |lane, _| self.read(lane, row))?;
        let memory = Arc::new(read.into_iter().next().ok_or(Error::Panicked)?);
        self.cache.keep(&[(key, Arc::clone(&memory))])?;
        Ok((memory, false))
    }

    /// What is kept of a state of several rows, joined, and whether all of it was kept before.
    fn chunks(&self, rows: &[Row], stop: &Stop) -> Result<(Arc<Memory>, bool), Error> {
        let keys: Vec<Key> = rows.iter().map(|row| self.cache.key(&row.ids)).collect();
        let whole = self.cache.whole_key(&keys);
        if let Some(memory) = self.cache.get_whole(&whole, keys.len())? {
            return Ok((memory, true));
        }
        let mut found = self.cache.get(&keys)?;
        let joining = self
            .sessions
            .joining(rows.iter().map(|row| row.ids.len()))?;
        for (index, memory) in found.iter().enumerate() {
            memory
                .iter()
                .try_for_each(|kept| joining.put(index, kept))?;
        }
        let missing = places(&keys, &found);
        let fitting = self.cache.fitting(joining.chunk_bytes());
        let read = self.sessions.run_all(missing.len(), stop, |lane, index| {
            let places = &missing[index];
            let memory = Arc::new(self.read(lane, &rows[places[0]])?);
            for place in places {
                joining.put(*place, &memory)?;
            }
            // What will not be kept makes room for the next one now.
            Ok((places[0] < fitting).then_some(memory))
        })?;
        let memory = Arc::new(joining.done()?);
        if missing.is_empty() {
            // Joining copies, so a state that comes again is kept joined, too.
            self.cache.keep(&[(whole, Arc::clone(&memory))])?;
            return Ok((memory, true));
        }
        for (places, memory) in missing.iter().zip(read) {
            for place in places {
                found[*place].clone_from(&memory);
            }
        }
        let chunks = keys.into_iter().zip(found);
        let chunks: Vec<_> = chunks
            .map_while(|(key, memory)| Some((key, memory?)))
            .collect();
        self.cache.keep(&chunks)?;
        Ok((memory, false))
    }

    fn read(&self, lane: &mut Lane, row: &Row) -> Result<Memory, Error> {
        let memory = lane.read(self.layout.inputs(row), row.ids.len())?;
        self.cache.rounded(memory)
    }
}

/// Where each chunk stands that was not found; one that a state has twice is read once.
fn places(keys: &[Key], found: &[Option<Arc<Memory>>]) -> Vec<Vec<usize>> {
    let mut places: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
    for (index, key) in keys.iter().enumerate() {
        if found[index].is_none() {
            places.entry(*key).or_default().push(index);
        }
    }
    places.into_values().collect()
}

/// Puts the logits of a question's rows into the caller's order.
fn join(question: &QuestionRows, outputs: Vec<Outputs>) -> Result<Logits, Error> {
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

/// A number for each question type.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Deserialize)]
pub struct PerKind<T> {
    /// For choice questions.
    pub choice: T,
    /// For score questions.
    pub score: T,
    /// For noul questions.
    pub noul: T,
}

impl<T> PerKind<T> {
    /// The value for a type.
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
    /// Begins a row.
    pub cls: i64,
    /// Ends a part of a row.
    pub sep: i64,
    /// Fills rows of unequal length; no row here is padded.
    pub pad: i64,
    /// Begins an option.
    pub mask: i64,
}

/// Encodes texts: adds up what is left out, and what is too much.
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

    /// The first `keep` tokens of a text.
    fn encode(&mut self, text: &str, keep: usize) -> Result<Vec<i64>, Error> {
        let tokens = self.tokenizer.encode(text, keep, self.meter)?;
        self.truncated_tokens += tokens.left_out;
        Ok(tokens.ids)
    }

    /// Shortens tokens to `keep`.
    fn cut(&mut self, tokens: &mut Vec<i64>, keep: usize) {
        self.truncated_tokens += tokens.len().saturating_sub(keep);
        tokens.truncate(keep);
    }
}
