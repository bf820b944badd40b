//! The interface between the engine and a model.

use std::path::PathBuf;

use crate::Error;
use crate::cache::CacheStats;
use crate::decode::{Answer, Logits};
use crate::layout::{EncodedQuestions, Plan};
use crate::question::{Question, State};
use crate::session::{Device, Exactness};
use crate::stop::Stop;
use crate::tokenize::Meter;

/// The description of a loaded model.
#[derive(Debug, Clone)]
pub struct Info {
    /// The manifest's `name`.
    pub name: String,
    /// The manifest's `version`.
    pub version: String,
    /// The hex sha256 of the graph file.
    pub sha256: String,
    /// The hex sha256 over all files that the model is made of; it is the key of everything that is
    /// kept of the model's work.
    pub digest: String,
    /// The layout's name.
    pub layout: &'static str,
    /// The device that the model runs on.
    pub device: Device,
    /// The number of intra-op threads.
    pub threads: usize,
    /// The absolute path of the folder.
    pub folder: PathBuf,
    /// The reasons why the devices tried before this one were not taken.
    pub device_notes: Vec<String>,
    /// Whether the graph's 8-bit products are exact on this processor.
    pub exactness: Exactness,
}

/// A model as the engine sees it; in tests a stand-in for one.
pub trait Backend: Send + Sync {
    /// Returns the questions' part of the rows.
    ///
    /// # Errors
    /// [`Error::TooManyTokens`], the errors of `meter`'s stop, and [`Error::ModelFailed`] where the
    /// tokenizer cannot represent a text.
    fn encode_questions(
        &self,
        questions: &[Question],
        meter: &mut Meter<'_>,
    ) -> Result<EncodedQuestions, Error>;

    /// Returns the rows of a request about a state whose questions are already encoded.
    ///
    /// # Errors
    /// The errors of [`Backend::encode_questions`].
    fn encode_state(
        &self,
        state: &State,
        questions: &EncodedQuestions,
        meter: &mut Meter<'_>,
    ) -> Result<Plan, Error>;

    /// Returns the logits of a plan, one set per question.
    ///
    /// # Errors
    /// The errors of `stop` between two runs, and [`Error::ModelFailed`].
    fn run(&self, plan: &Plan, stop: &Stop) -> Result<Vec<Logits>, Error>;

    /// Returns the answer to a question, with the question's own calibration where it has one.
    ///
    /// # Errors
    /// [`Error::ModelFailed`] when a logit is not a finite number.
    fn decode(&self, question: &Question, logits: &Logits) -> Result<Answer, Error>;

    /// Returns the description of the model; `None` for a stand-in.
    fn info(&self) -> Option<&Info> {
        None
    }

    /// Returns the statistics of the state cache.
    fn cache_stats(&self) -> CacheStats {
        CacheStats::default()
    }

    /// Returns how many requests may be on the model at once, at least 1.
    fn parallel(&self) -> usize {
        1
    }

    /// Stops every run, now and in the future.
    fn terminate(&self);
}
