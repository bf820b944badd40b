//! The run of a plan: the state's rows become a KV cache, and the questions' rows become logits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::{Layout, Plan, Row};
use crate::Error;
use crate::cache::{Key, StateCache};
use crate::decode::Logits;
use crate::session::{KvCache, Lane, RowSize, Sessions, allocator};
use crate::stop::Stop;

/// The parts that a plan is run with.
pub struct Runner<'a> {
    /// The layout, which determines the tensors of a row.
    pub layout: &'a dyn Layout,
    /// The sessions that run the rows.
    pub sessions: &'a Sessions,
    /// The cache of states that were prefilled.
    pub cache: &'a StateCache,
}

impl Runner<'_> {
    /// Runs a plan and returns the logits of its questions: the rows that are not in the cache run
    /// side by side, then the questions side by side.
    ///
    /// # Errors
    /// The errors of `stop` between two runs, and [`Error::ModelFailed`].
    pub fn run(&self, plan: &Plan, stop: &Stop) -> Result<Vec<Logits>, Error> {
        match self.layout.scorer() {
            Some(scorer) => self.score(scorer, plan, stop),
            None => self.answer(plan, stop),
        }
    }

    /// Runs the questions' rows on the KV cache of the state.
    fn answer(&self, plan: &Plan, stop: &Stop) -> Result<Vec<Logits>, Error> {
        let (cache, was_cached) = self.kv_cache(&plan.state, stop)?;
        // A state from the cache is likely to be asked about again and to need the same memory, so
        // that memory is not given back.
        let is_large = cache.as_ref().is_some_and(|cache| cache.is_large());
        let gives_back = !was_cached && (is_large || self.sessions.hold_much());
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
        let tokens = rows.first().map_or(0, |row| row.ids.len());
        let work = (rows.len(), RowSize::question(tokens, past));
        let outputs = self.sessions.run_all(work, stop, |lane, index| {
            let row = rows[index];
            let gives_back = gives_back && index >= lasts;
            let inputs = self.layout.inputs(row);
            let started = Instant::now();
            let output = lane.run_question(inputs, row.ids.len(), cache.as_deref(), gives_back)?;
            if let Some(pace) = pace {
                pace.note([row.ids.len(), past], side_by_side, started.elapsed());
            }
            Ok(output)
        })?;
        drop(cache);
        if gives_back {
            allocator::give_back();
        }
        self.layout.all_logits(plan, outputs)
    }

    /// Returns the KV cache of a state, prefilled where it is not in the cache of states, and
    /// whether all of it was there; `None` for an empty state.
    fn kv_cache(&self, rows: &[Row], stop: &Stop) -> Result<(Option<Arc<KvCache>>, bool), Error> {
        let (cache, was_cached) = match rows {
            [] => return Ok((None, true)),
            [row] => self.chunk(row, stop)?,
            _ => self.chunks(rows, stop)?,
        };
        Ok((Some(cache), was_cached))
    }

    /// Returns the KV cache of a state of one row, and whether it was in the cache of states.
    fn chunk(&self, row: &Row, stop: &Stop) -> Result<(Arc<KvCache>, bool), Error> {
        let key = self.cache.key(&row.ids);
        let _claim = self.cache.claim(&[key], stop)?;
        if let Some(chunk) = self.cache.get(&[key])?.pop().flatten() {
            return Ok((chunk, true));
        }
        let work = (1, RowSize::prefill(row.ids.len()));
        let made = self
            .sessions
            .run_all(work, stop, |lane, _| self.prefill(lane, row))?;
        let chunk = Arc::new(made.into_iter().next().ok_or(Error::Panicked)?);
        self.cache.keep(&[(key, Arc::clone(&chunk))])?;
        Ok((chunk, false))
    }

    /// Returns the KV cache of a state of several rows, put together, and whether all of it was in
    /// the cache of states.
    fn chunks(&self, rows: &[Row], stop: &Stop) -> Result<(Arc<KvCache>, bool), Error> {
        let keys: Vec<Key> = rows.iter().map(|row| self.cache.key(&row.ids)).collect();
        let whole = self.cache.whole_key(&keys);
        if let Some(cache) = self.cache.get_whole(&whole, keys.len())? {
            return Ok((cache, true));
        }
        let mut claim = self.cache.claim(&keys, stop)?;
        let mut found = self.cache.get(&keys)?;
        let missing = places(&keys, &found);
        claim.retain(&missing.iter().map(|places| keys[places[0]]).collect());
        let assembly = self
            .sessions
            .assembly(rows.iter().map(|row| row.ids.len()))?;
        for (index, chunk) in found.iter().enumerate() {
            chunk
                .iter()
                .try_for_each(|chunk| assembly.put(index, chunk))?;
        }
        let fitting = self.cache.fitting(assembly.chunk_bytes());
        let first = missing
            .first()
            .map_or(0, |places| rows[places[0]].ids.len());
        let work = (missing.len(), RowSize::prefill(first));
        let made = self.sessions.run_all(work, stop, |lane, index| {
            let places = &missing[index];
            let chunk = Arc::new(self.prefill(lane, &rows[places[0]])?);
            for place in places {
                assembly.put(*place, &chunk)?;
            }
            // A chunk that the cache will not keep is freed now, which makes room for the next one.
            Ok((places[0] < fitting).then_some(chunk))
        })?;
        let cache = Arc::new(assembly.done()?);
        if missing.is_empty() {
            // The assembly copies, so a state that comes again is also kept as a whole.
            self.cache.keep(&[(whole, Arc::clone(&cache))])?;
            return Ok((cache, true));
        }
        for (places, chunk) in missing.iter().zip(made) {
            for place in places {
                found[*place].clone_from(&chunk);
            }
        }
        let chunks = keys.into_iter().zip(found);
        let chunks: Vec<_> = chunks
            .map_while(|(key, chunk)| Some((key, chunk?)))
            .collect();
        self.cache.keep(&chunks)?;
        Ok((cache, false))
    }

    fn prefill(&self, lane: &mut Lane, row: &Row) -> Result<KvCache, Error> {
        let cache = lane.prefill(self.layout.inputs(row), row.ids.len())?;
        self.cache.rounded(cache)
    }
}

/// Returns the places of each chunk that was not found; a chunk that a state contains twice is
/// prefilled once.
fn places(keys: &[Key], found: &[Option<Arc<KvCache>>]) -> Vec<Vec<usize>> {
    let mut places: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
    for (index, key) in keys.iter().enumerate() {
        if found[index].is_none() {
            places.entry(*key).or_default().push(index);
        }
    }
    places.into_values().collect()
}
