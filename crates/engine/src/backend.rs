//! The interface between the engine and a model.

use crate::Error;
use crate::cache::CacheStats;
use crate::decode::{Answer, Logits};
use crate::layout::{EncodedQuestions, Plan};
use crate::model::{Info, Model};
use crate::question::Question;
use crate::stop::Stop;
use crate::tokenize::Meter;

/// A model as the engine sees it; in tests a stand-in for one.
pub trait Backend: Send + Sync {
    /// See [`Model::encode_questions`].
    ///
    /// # Errors
    /// The errors of the model.
    fn encode_questions(
        &self,
        questions: &[Question],
        meter: &mut Meter<'_>,
    ) -> Result<EncodedQuestions, Error>;
    /// See [`Model::encode_state`].
    ///
    /// # Errors
    /// The errors of the model.
    fn encode_state(
        &self,
        state: &str,
        questions: &EncodedQuestions,
        meter: &mut Meter<'_>,
    ) -> Result<Plan, Error>;
    /// See [`Model::run`].
    ///
    /// # Errors
    /// The errors of the model.
    fn run(&self, plan: &Plan, stop: &Stop) -> Result<Vec<Logits>, Error>;
    /// See [`Model::decode`].
    ///
    /// # Errors
    /// The errors of the model.
    fn decode(&self, question: &Question, logits: &Logits) -> Result<Answer, Error>;
    /// See [`Model::info`]; `None` for a stand-in.
    fn info(&self) -> Option<&Info> {
        None
    }
    /// See [`Model::cache_stats`].
    fn cache_stats(&self) -> CacheStats {
        CacheStats::default()
    }
    /// See [`Model::terminate`].
    fn terminate(&self);
}

impl Backend for Model {
    fn encode_questions(
        &self,
        questions: &[Question],
        meter: &mut Meter<'_>,
    ) -> Result<EncodedQuestions, Error> {
        self.encode_questions(questions, meter)
    }

    fn encode_state(
        &self,
        state: &str,
        questions: &EncodedQuestions,
        meter: &mut Meter<'_>,
    ) -> Result<Plan, Error> {
        self.encode_state(state, questions, meter)
    }

    fn run(&self, plan: &Plan, stop: &Stop) -> Result<Vec<Logits>, Error> {
        self.run(plan, stop)
    }

    fn decode(&self, question: &Question, logits: &Logits) -> Result<Answer, Error> {
        self.decode(question, logits)
    }

    fn info(&self) -> Option<&Info> {
        Some(self.info())
    }

    fn cache_stats(&self) -> CacheStats {
        self.cache_stats()
    }

    fn terminate(&self) {
        self.terminate();
    }
}
