//! A model: a folder that has passed its checks, with the sessions that answer for it.

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use self::devices::open_sessions;
use self::folder::{Folder, Manifest, check, check_sha256, check_special_ids, digest_of, hex};
use crate::Error;
use crate::backend::{Backend, Info};
use crate::cache::{CacheStats, Precision, StateCache};
use crate::decode::{Answer, Calibration, Logits};
use crate::layout::{EncodedQuestions, Layout, Plan, Runner};
use crate::question::{Question, State};
use crate::session::{Sessions, allocator};
use crate::stop::Stop;
use crate::tokenize::{Meter, Tokenizer};

mod devices;
mod folder;
pub mod inspect;
mod published;

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
    /// The most requests that may be on the model at once; 0 means as many as there are threads.
    pub parallel: usize,
    /// The most bytes of states that are kept; 0 keeps none.
    pub state_cache_bytes: usize,
    /// The precision in which states are kept.
    pub state_cache_precision: Precision,
}

/// A model that is ready to answer.
pub struct Model {
    info: Info,
    tokenizer: Tokenizer,
    layout: Box<dyn Layout>,
    sessions: Sessions,
    cache: StateCache,
    manifest: Manifest,
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
        let (digests, (tokenizer, layout, opened)) = std::thread::scope(|scope| {
            let digests = scope.spawn(|| {
                let digests = folder.digests(&graph, &manifest)?;
                let sha256 = &digests[&folder.name_of(&graph)];
                check_sha256(&folder, &manifest, &graph, sha256)?;
                Ok(digests)
            });
            let digests = || digests.join().unwrap_or(Err(Error::Panicked));
            let tokenizer = folder.read_tokenizer(Some(&manifest.layout));
            let open = || {
                let tokenizer = tokenizer?;
                check_special_ids(&folder, &manifest, tokenizer.vocabulary())?;
                let layout = folder.layout(&manifest.layout, &tokenizer)?;
                let second = folder.second(layout.as_ref())?;
                let graphs = (graph.as_path(), &second);
                let sessions = open_sessions(source, &folder, graphs, layout.as_ref(), &tokenizer)?;
                Ok((tokenizer, layout, sessions))
            };
            // Nothing but the named graph is opened where one is named.
            if manifest.names_digests() {
                return Ok((digests()?, open()?));
            }
            let opened: Result<_, Error> = open();
            Ok((digests()?, opened?))
        })?;
        let (mut sessions, device, device_notes) = opened;
        sessions.open_others();
        let digest = hex(&digest_of(&digests));
        let info = Info {
            name: manifest.name.clone(),
            version: manifest.version.clone(),
            sha256: digests[&folder.name_of(&graph)].clone(),
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
            manifest,
        })
    }

    /// See [`Sessions::prefill_in_part`].
    pub fn prefills_in_part(&self) -> bool {
        self.sessions.prefill_in_part()
    }
}

impl Backend for Model {
    fn encode_questions(
        &self,
        questions: &[Question],
        meter: &mut Meter<'_>,
    ) -> Result<EncodedQuestions, Error> {
        self.layout
            .encode_questions(&self.tokenizer, questions, meter)
    }

    fn encode_state(
        &self,
        state: &State,
        questions: &EncodedQuestions,
        meter: &mut Meter<'_>,
    ) -> Result<Plan, Error> {
        self.layout
            .encode_state(&self.tokenizer, state, questions, meter)
    }

    fn run(&self, plan: &Plan, stop: &Stop) -> Result<Vec<Logits>, Error> {
        let runner = Runner {
            layout: self.layout.as_ref(),
            sessions: &self.sessions,
            cache: &self.cache,
        };
        runner.run(plan, stop)
    }

    fn decode(&self, question: &Question, logits: &Logits) -> Result<Answer, Error> {
        let manifest = &self.manifest;
        let own = if manifest.calibration.is_empty() {
            None
        } else {
            manifest
                .calibration
                .get(&hex(&Sha256::digest(question.canonical_json())))
        };
        let reading = self.layout.reading(question);
        let read = reading.question.as_ref();
        let logits = Logits {
            outcomes: reading.spread(&logits.outcomes),
            action: logits.action,
        };
        let mut bias = reading.log_shares();
        if let (None, [_, yes]) = (own, bias.as_mut_slice()) {
            *yes += manifest.bias(read.kind, &read.instructions);
        }
        let mut bias = reading.spread(&bias);
        let temperature = match own {
            None => manifest.temperature(read.kind, read.outcomes.len()),
            Some(own) => {
                for (bias, own) in bias.iter_mut().zip(&own.bias) {
                    *bias += own;
                }
                own.temperature
            }
        };
        let calibration = Calibration {
            temperature,
            bias: &bias,
        };
        Answer::decode(&logits, calibration)
    }

    fn info(&self) -> Option<&Info> {
        Some(&self.info)
    }

    fn cache_stats(&self) -> CacheStats {
        self.cache.stats()
    }

    fn parallel(&self) -> usize {
        self.sessions.parallel()
    }

    fn terminate(&self) {
        self.sessions.terminate();
    }
}
