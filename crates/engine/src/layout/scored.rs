//! The run of a plan on two graphs: an encoder reads every text apart, and a scorer reads what the
//! encoder made of a state and of the options of a question.
//!
//! The encoder's result for a text depends on nothing else, so results are kept between requests, those
//! of options as well as those of states.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use super::{Plan, QuestionRows, Row, Runner};
use crate::Error;
use crate::cache::Key;
use crate::decode::Logits;
use crate::question::Kind;
use crate::session::{Input, Interface, KvCache, RowSize, allocator};
use crate::stop::Stop;

/// The second graph of a layout that reads texts apart.
pub trait Scorer: Send + Sync {
    /// Returns the inputs and outputs that the graph must have.
    fn interface(&self) -> &Interface;

    /// Returns the tensors of a question, given what the encoder made of the state and of each
    /// option.
    ///
    /// # Errors
    /// [`Error::ModelFailed`] where the encoder made something else than the layout's encoders do.
    fn inputs<'r>(
        &self,
        state: &'r KvCache,
        options: &'r [Arc<KvCache>],
    ) -> Result<Vec<(&'static str, Input<'r>)>, Error>;

    /// Returns the logits of so many options, in the order of their rows.
    ///
    /// # Errors
    /// [`Error::ModelFailed`] where the graph gave another number of values than the layout's
    /// graphs do.
    fn logits(&self, kind: Kind, count: usize, outputs: Vec<Vec<f32>>) -> Result<Vec<f32>, Error>;
}

/// Returns the error for a graph that gave another number of values than it should.
pub(super) fn wrong_count(what: &str, got: usize, wanted: usize) -> Error {
    Error::ModelFailed {
        cause: format!("{got} {what} for {wanted} options"),
    }
}

impl Runner<'_> {
    /// Runs a plan and returns the logits of its questions: the texts that are not in the cache run
    /// side by side, then the questions. A question without a state of its own asks about the
    /// plan's.
    pub(super) fn score(
        &self,
        scorer: &dyn Scorer,
        plan: &Plan,
        stop: &Stop,
    ) -> Result<Vec<Logits>, Error> {
        let texts = self.texts(plan, stop)?;
        let (shared, mut rest) = texts.split_at(plan.state.len());
        let mut questions = Vec::with_capacity(plan.questions.len());
        for question in plan.questions.iter() {
            let (own, others) = rest.split_at(question.rows.len());
            rest = others;
            let options = own.len().saturating_sub(usize::from(shared.is_empty()));
            let (state, options) = own.split_at(own.len() - options);
            let state = shared.first().or(state.first()).ok_or(Error::Panicked)?;
            questions.push((question, state, options));
        }
        let lasts = (questions.len()).saturating_sub(self.sessions.side_by_side());
        let gives_back = self.sessions.hold_much();
        let size = plan.question_sizes().next().unwrap_or_default();
        let work = (questions.len(), RowSize::question(size[0], size[1]));
        let outputs = self.sessions.run_all(work, stop, |lane, index| {
            let (_, state, options) = questions[index];
            let inputs = scorer.inputs(state, options)?;
            lane.score(&inputs, gives_back && index >= lasts)
        })?;
        if gives_back {
            allocator::give_back();
        }
        let questions = questions.iter().zip(outputs);
        questions
            .map(|((question, _, options), outputs)| {
                let logits = scorer.logits(question.kind, options.len(), outputs)?;
                Ok(in_callers_order(question, options.len(), &logits))
            })
            .collect()
    }

    /// Returns what the encoder makes of each row of a plan, the state's first, from the cache where
    /// it is kept. A text that occurs several times is read once.
    fn texts(&self, plan: &Plan, stop: &Stop) -> Result<Vec<Arc<KvCache>>, Error> {
        let questions = plan.questions.iter().flat_map(|question| &question.rows);
        let mut places: HashMap<Key, usize> = HashMap::new();
        let (mut keys, mut rows) = (Vec::new(), Vec::new());
        let mut order = Vec::new();
        for row in plan.state.iter().chain(questions) {
            let key = self.cache.key(&row.ids);
            order.push(*places.entry(key).or_insert_with(|| {
                keys.push(key);
                rows.push(row);
                keys.len() - 1
            }));
        }
        let mut claim = self.cache.claim(&keys, stop)?;
        let found = self.cache.get(&keys)?;
        let missing: Vec<usize> = (0..keys.len()).filter(|it| found[*it].is_none()).collect();
        let absent: HashSet<Key> = missing.iter().map(|index| keys[*index]).collect();
        claim.retain(&absent);
        let made = self.encode(
            plan,
            &missing.iter().map(|it| rows[*it]).collect::<Vec<_>>(),
            stop,
        )?;
        let made = missing.iter().map(|index| keys[*index]).zip(made);
        let made: Vec<(Key, Arc<KvCache>)> = made.collect();
        self.cache.keep(&made)?;
        let mut made = made.into_iter().map(|(_, text)| text);
        let all: Option<Vec<_>> = found
            .into_iter()
            .map(|it| it.or_else(|| made.next()))
            .collect();
        let all = all.ok_or(Error::Panicked)?;
        Ok(order
            .into_iter()
            .map(|place| Arc::clone(&all[place]))
            .collect())
    }

    /// Returns what the encoder makes of rows, each in a run of its own.
    fn encode(&self, plan: &Plan, rows: &[&Row], stop: &Stop) -> Result<Vec<Arc<KvCache>>, Error> {
        let side_by_side = self.sessions.side_by_side();
        let past: usize = plan.state.iter().map(|row| row.ids.len()).sum();
        // As for other layouts, the times of few rows are not noted.
        let pace = stop
            .pace
            .as_ref()
            .filter(|_| rows.len() >= 8 * side_by_side);
        let first = rows.first().map_or(0, |row| row.ids.len());
        let work = (rows.len(), RowSize::prefill(first));
        self.sessions.run_all(work, stop, |lane, index| {
            let row = rows[index];
            let inputs = self.layout.inputs(row);
            let started = Instant::now();
            let text = self.cache.rounded(lane.encode(&inputs)?)?;
            if let Some(pace) = pace {
                pace.note([row.ids.len(), past], side_by_side, started.elapsed());
            }
            Ok(Arc::new(text))
        })
    }
}

/// Returns the logits of a question's last `count` rows, its options, in the caller's order.
fn in_callers_order(question: &QuestionRows, count: usize, logits: &[f32]) -> Logits {
    let mut outcomes = vec![f32::NAN; question.outcomes];
    let rows = &question.rows[question.rows.len() - count..];
    for (row, logit) in rows.iter().zip(logits) {
        for outcome in &row.outcomes {
            outcomes[*outcome] = *logit;
        }
    }
    Logits {
        outcomes,
        action: None,
    }
}
