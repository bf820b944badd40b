//! A model: a folder that has passed its checks, with the sessions that answer for it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use self::devices::open_sessions;
use self::folder::{
    Folder, QuestionCalibration, check, check_sha256, check_special_ids, digest_of, hex, read,
};
use crate::Error;
use crate::cache::{CacheStats, Precision, StateCache};
use crate::decode::{Answer, Calibration, Logits};
use crate::layout::{EncodedQuestions, Layout, PerKind, Plan, Runner};
use crate::question::Question;
use crate::stop::Stop;
use crate::session::{Device, Exactness, Sessions, allocator};
use crate::tokenize::{Meter, Tokenizer};

mod devices;
mod folder;
pub mod inspect;

/// The place of a model and the options to run it with.
#[derive(Debug, Clone)]
pub struct Source {
    /// The ONNX Runtime library.
    pub runtime: PathBuf,
    /// The model folder.
    pub folder: PathBuf,
    /// The device: `auto`, `cpu`, `gpu`, `cuda`, `coreml` or `directml`.
    pub device: String,
    /// The number of intra-op threads.
    pub threads: usize,
    /// The most bytes of states that are kept; 0 keeps none.
    pub state_cache_bytes: usize,
    /// The precision in which states are kept.
    pub state_cache_precision: Precision,
}

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

/// A model that is ready to answer.
pub struct Model {
    info: Info,
    tokenizer: Tokenizer,
    layout: Box<dyn Layout>,
    sessions: Sessions,
    cache: StateCache,
    temperature: PerKind<f64>,
    calibration: BTreeMap<String, QuestionCalibration>,
}

impl Model {
    /// Loads and checks a folder, and makes one decision with it.
    ///
    /// # Errors
    /// [`Error::BadModel`] that names the file, [`Error::BadDevice`], and those of [`Sessions::open`].
    pub fn load(source: &Source) -> Result<Self, Error> {
        let mut folder = Folder::at(&source.folder)?;
        let manifest = folder.manifest()?;
        check(&folder, &manifest)?;
        let graph = folder.graph(manifest.sha256.as_deref())?;
        let _loading = allocator::Loading::begin();
        let tokenizer_file = folder.path.join("tokenizer.json");
        let (digests, tokenizer) = std::thread::scope(|scope| {
            let digests = scope.spawn(|| folder.digests(&graph, &manifest));
            let bytes = read(&tokenizer_file);
            let tokenizer = bytes.and_then(|bytes| Tokenizer::from_bytes(&tokenizer_file, &bytes));
            (digests.join().unwrap_or(Err(Error::Panicked)), tokenizer)
        });
        let (digests, tokenizer) = (digests?, tokenizer?);
        let sha256 = digests[&folder.name_of(&graph)].clone();
        check_sha256(&folder, &manifest, &graph, &sha256)?;
        check_special_ids(&folder, &manifest, tokenizer.vocabulary())?;
        let layout = folder.layout(&manifest.layout, &tokenizer)?;
        let (mut sessions, device, device_notes) =
            open_sessions(source, &graph, layout.as_ref(), &tokenizer)?;
        sessions.open_readers();
        let digest = hex(&digest_of(&digests));
        let info = Info {
            name: manifest.name,
            version: manifest.version,
            sha256,
            digest: digest.clone(),
            layout: layout.name(),
            device,
            threads: source.threads,
            folder: folder.path,
            device_notes,
            exactness: sessions.exactness().clone(),
        };
        Ok(Self {
            info,
            tokenizer,
            layout,
            sessions,
            cache: StateCache::new(
                source.state_cache_bytes,
                source.state_cache_precision,
                &digest,
            ),
            temperature: manifest.temperature,
            calibration: manifest.calibration,
        })
    }

    /// Returns the description of the model.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// See [`Layout::encode_questions`].
    ///
    /// # Errors
    /// The errors of the layout.
    pub fn encode_questions(
        &self,
        questions: &[Question],
        meter: &mut Meter<'_>,
    ) -> Result<EncodedQuestions, Error> {
        self.layout
            .encode_questions(&self.tokenizer, questions, meter)
    }

    /// See [`Layout::encode_state`].
    ///
    /// # Errors
    /// The errors of the layout.
    pub fn encode_state(
        &self,
        state: &str,
        questions: &EncodedQuestions,
        meter: &mut Meter<'_>,
    ) -> Result<Plan, Error> {
        self.layout
            .encode_state(&self.tokenizer, state, questions, meter)
    }

    /// Returns the logits of a plan, one set per question.
    ///
    /// # Errors
    /// The errors of `stop` between two runs, and [`Error::ModelFailed`].
    pub fn run(&self, plan: &Plan, stop: &Stop) -> Result<Vec<Logits>, Error> {
        let runner = Runner {
            layout: self.layout.as_ref(),
            sessions: &self.sessions,
            cache: &self.cache,
        };
        runner.run(plan, stop)
    }

    /// See [`Sessions::read_in_part`].
    pub fn reads_in_part(&self) -> bool {
        self.sessions.read_in_part()
    }

    /// Returns the statistics of the state cache.
    pub fn cache_stats(&self) -> CacheStats {
        self.cache.stats()
    }

    /// Returns the answer to a question, with the question's own calibration where it has one.
    ///
    /// # Errors
    /// [`Error::ModelFailed`] when a logit is not a finite number.
    pub fn decode(&self, question: &Question, logits: &Logits) -> Result<Answer, Error> {
        let own = if self.calibration.is_empty() {
            None
        } else {
            self.calibration
                .get(&hex(&Sha256::digest(question.canonical_json())))
        };
        let calibration = match own {
            Some(own) => Calibration {
                temperature: own.temperature,
                bias: &own.bias,
            },
            None => Calibration {
                temperature: *self.temperature.get(question.kind),
                bias: &[],
            },
        };
        Answer::decode(logits, calibration)
    }

    /// Stops every run, now and in the future.
    pub fn terminate(&self) {
        self.sessions.terminate();
    }
}
