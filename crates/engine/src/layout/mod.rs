//! The step from a question and a state to rows of tokens, and from rows to logits, with one file
//! per kind of model.
//!
//! A layout only determines the rows and the tensors that they become. All layouts run them in the
//! same way: the state's rows first, then every question's rows side by side.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use crate::Error;
use crate::cache::{Key, StateCache};
use crate::decode::Logits;
use crate::question::{Kind, Question, Request};
use crate::stop::Stop;
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
    /// The type of each token, where a row has several types.
    pub token_types: Vec<i64>,
    /// The position of each token, where the layout counts them itself.
    pub positions: Vec<i64>,
    /// For each token 0, or the number of the option that it belongs to, where the layout passes
    /// these to the graph.
    pub option_ids: Vec<i64>,
    /// The index of each option's marker token in the row.
    pub markers: Vec<i64>,
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
    /// The rows, at least one; together they hold every outcome once.
    pub rows: Vec<Row>,
}

/// A request as rows of tokens for the model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The state's own rows, where the layout reads the state separately.
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

    /// Returns the sizes of the questions' rows: the number of a row's own tokens, and the number of
    /// the state's tokens that it looks at.
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
    /// The number of tokens that are left out because they are beyond the model's window.
    pub truncated_tokens: usize,
}

/// A kind of model.
pub trait Layout: Send + Sync {
    /// Returns the name of the layout in `config.json`.
    fn name(&self) -> &'static str;

    /// Returns the inputs and outputs that the graph must have.
    fn interface(&self) -> &Interface;

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
        let mut encoder = Encoder::new(tokenizer, meter);
        let questions = questions.iter();
        let rows = questions.map(|question| self.question(&mut encoder, question));
        Ok(EncodedQuestions {
            rows: rows.collect::<Result<_, _>>()?,
            truncated_tokens: encoder.truncated_tokens,
        })
    }

    /// Returns the rows of one question, as far as they do not depend on the state.
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
        state: &str,
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

    /// Returns the tensors of a row, by input name; the caller adds those of the state's memory.
    fn inputs<'r>(&self, row: &'r Row) -> Vec<(&'static str, Input<'r>)>;

    /// Returns the logits of a question's outcomes from the outputs of its rows. By default each
    /// marker has one logit.
    ///
    /// # Errors
    /// [`Error::ModelFailed`] where a row gave another number of logits than the layout's graphs do.
    fn logits(&self, question: &QuestionRows, outputs: Vec<Outputs>) -> Result<Logits, Error> {
        join(question, outputs)
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

/// The parts that a plan is run with.
pub struct Runner<'a> {
    /// The layout, which determines the tensors of a row.
    pub layout: &'a dyn Layout,
    /// The sessions that run the rows.
    pub sessions: &'a Sessions,
    /// The cache of states that were read.
    pub cache: &'a StateCache,
}

impl Runner<'_> {
    /// Runs a plan and returns the logits of its questions: the state's rows that are not in the
    /// cache run side by side, then the questions' rows side by side.
    ///
    /// # Errors
    /// The errors of `stop` between two runs, and [`Error::ModelFailed`].
    pub fn run(&self, plan: &Plan, stop: &Stop) -> Result<Vec<Logits>, Error> {
        let (memory, was_kept) = self.memory(&plan.state, stop)?;
        // A state from the cache is likely to be asked about again and to need the same memory, so
        // that memory is not given back.
        let is_large = memory.as_ref().is_some_and(|memory| memory.is_large());
        let gives_back = !was_kept && (is_large || self.sessions.hold_much());
        let questions = plan.questions.iter();
        let rows: Vec<&Row> = questions.flat_map(|question| &question.rows).collect();
        let side_by_side = self.sessions.side_by_side();
        let lasts = rows.len().saturating_sub(side_by_side);
        let past = plan.state.iter().map(|row| row.ids.len()).sum();
        // Each of the last rows may have a core to itself. With few rows most are last ones, so
        // their times are not noted.
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

    /// Returns the memory of a state, reading it where it is not in the cache, and whether all of
    /// it was there; `None` for an empty state.
    fn memory(&self, rows: &[Row], stop: &Stop) -> Result<(Option<Arc<Memory>>, bool), Error> {
        let (memory, was_kept) = match rows {
            [] => return Ok((None, true)),
            [row] => self.chunk(row, stop)?,
            _ => self.chunks(rows, stop)?,
        };
        Ok((Some(memory), was_kept))
    }

    /// Returns the memory of a state of one row, and whether it was in the cache.
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

    /// Returns the memory of a state of several rows, joined, and whether all of it was in the
    /// cache.
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
            // A chunk that the cache will not keep is freed now, which makes room for the next one.
            Ok((places[0] < fitting).then_some(memory))
        })?;
        let memory = Arc::new(joining.done()?);
        if missing.is_empty() {
            // Joining copies, so a state that comes again is also kept as a whole.
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

/// Returns the places of each chunk that was not found; a chunk that a state contains twice is read
/// once.
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

/// A value for each question type.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Deserialize)]
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

    /// Shortens tokens to `keep`.
    fn cut(&mut self, tokens: &mut Vec<i64>, keep: usize) {
        self.truncated_tokens += tokens.len().saturating_sub(keep);
        tokens.truncate(keep);
    }
}
