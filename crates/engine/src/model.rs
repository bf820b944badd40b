//! A model folder: its manifest, its checks, its digests, and the model that it becomes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::Error;
use crate::cache::{CacheStats, Precision, StateCache};
use crate::decode::{Answer, Calibration, Logits};
use crate::layout::{Layout, PerKind, Plan, Runner, SpecialIds, marker, shared_state};
use crate::question::{Kind, Outcome, Question, Request};
use crate::queue::Stop;
use crate::session::{Device, Graph, Sessions, allocator};
use crate::tokenize::{Meter, Tokenizer};

/// What `config.json` says, whatever the layout.
#[derive(Debug, Deserialize)]
struct Manifest {
    name: String,
    version: String,
    #[serde(default = "default_layout")]
    layout: String,
    temperature: PerKind<f64>,
    special_ids: SpecialIds,
    sha256: Option<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    calibration: BTreeMap<String, QuestionCalibration>,
}

fn default_layout() -> String {
    "marker".to_owned()
}

/// The calibration of one question, which stands in for that of its type.
#[derive(Debug, Clone, Deserialize)]
struct QuestionCalibration {
    temperature: f64,
    #[serde(default)]
    bias: Vec<f64>,
}

/// Where a model is and what to run it on.
#[derive(Debug, Clone)]
pub struct Source {
    /// The ONNX Runtime library.
    pub runtime: PathBuf,
    /// The model folder.
    pub folder: PathBuf,
    /// `auto`, `cpu`, `gpu`, `cuda`, `coreml` or `directml`.
    pub device: String,
    /// Intra-op threads.
    pub threads: usize,
    /// Bytes of states that are kept; 0 keeps none.
    pub state_cache_bytes: usize,
    /// How exactly they are kept.
    pub state_cache_precision: Precision,
}

/// What is said of a loaded model.
#[derive(Debug, Clone)]
pub struct Info {
    /// The manifest's `name`.
    pub name: String,
    /// The manifest's `version`.
    pub version: String,
    /// Hex sha256 of the graph file.
    pub sha256: String,
    /// Hex sha256 over all files that the model is made of: the key of whatever is kept of its work.
    pub digest: String,
    /// The layout's name.
    pub layout: &'static str,
    /// What it runs on.
    pub device: Device,
    /// Intra-op threads.
    pub threads: usize,
    /// The folder, absolute.
    pub folder: PathBuf,
    /// Why devices that were tried before were not taken.
    pub device_notes: Vec<String>,
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
        let folder = Folder::open(&source.folder)?;
        let manifest: Manifest = folder.settings()?;
        check(&folder, &manifest)?;
        let graph = folder.graph(manifest.sha256.as_deref())?;
        let _loading = allocator::Loading::begin();
        let tokenizer_file = folder.path.join("tokenizer.json");
        let (digests, tokenizer) = std::thread::scope(|scope| {
            let digests = scope.spawn(|| folder.digests(&graph, &manifest.files));
            let bytes = read(&tokenizer_file);
            let tokenizer = bytes.and_then(|bytes| Tokenizer::from_bytes(&tokenizer_file, &bytes));
            (digests.join().unwrap_or(Err(Error::Panicked)), tokenizer)
        });
        let (digests, tokenizer) = (digests?, tokenizer?);
        let sha256 = digests[&file_name(&graph)].clone();
        if manifest
            .sha256
            .as_ref()
            .is_some_and(|wanted| !wanted.eq_ignore_ascii_case(&sha256))
        {
            let name = file_name(&graph);
            return Err(
                folder.bad_config(format!("sha256: does not match {name}, which has {sha256}"))
            );
        }
        check_special_ids(&folder, &manifest, tokenizer.vocabulary())?;
        let layout = folder.layout(&manifest.layout)?;
        let (sessions, device, device_notes) =
            open_sessions(source, &graph, layout.as_ref(), &tokenizer)?;
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

    /// What is said of the model.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// The rows of a request.
    ///
    /// # Errors
    /// [`Error::TooManyTokens`], what `meter`'s stop says, and [`Error::ModelFailed`] where the tokenizer cannot
    /// represent a text.
    pub fn encode(&self, request: &Request, meter: &mut Meter<'_>) -> Result<Plan, Error> {
        self.layout.encode(&self.tokenizer, request, meter)
    }

    /// The logits of a plan, one set per question.
    ///
    /// # Errors
    /// What `stop` says between two runs, and [`Error::ModelFailed`].
    pub fn run(&self, plan: &Plan, stop: &Stop) -> Result<Vec<Logits>, Error> {
        let runner = Runner {
            layout: self.layout.as_ref(),
            sessions: &self.sessions,
            cache: &self.cache,
        };
        runner.run(plan, stop)
    }

    /// How the kept states are doing.
    pub fn cache_stats(&self) -> CacheStats {
        self.cache.stats()
    }

    /// The answer to a question, with its own calibration where it has one.
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

    /// Stops every run, now and from now on.
    pub fn terminate(&self) {
        self.sessions.terminate();
    }
}

/// A model folder and the text of its manifest.
struct Folder {
    path: PathBuf,
    config: String,
}

impl Folder {
    fn open(path: &Path) -> Result<Self, Error> {
        let bad = |problem: &str| Error::BadModel {
            file: path.to_owned(),
            problem: problem.to_owned(),
        };
        let path = dunce::canonicalize(path).map_err(|_| bad("no such model folder"))?;
        if !path.is_dir() {
            return Err(bad("not a folder"));
        }
        let file = path.join("config.json");
        let config = String::from_utf8(read(&file)?).map_err(|_| Error::BadModel {
            file,
            problem: "not UTF-8".into(),
        })?;
        Ok(Self { path, config })
    }

    /// A part of the manifest; an error names the key.
    fn settings<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let reader = &mut serde_json::Deserializer::from_str(&self.config);
        serde_path_to_error::deserialize(reader).map_err(|error| {
            let key = error.path().to_string();
            let problem = error.inner().to_string();
            self.bad_config(match key.as_str() {
                "." => problem,
                _ => format!("{key}: {problem}"),
            })
        })
    }

    fn layout(&self, name: &str) -> Result<Box<dyn Layout>, Error> {
        let problem = |problem: Option<(&str, String)>| match problem {
            Some((key, problem)) => Err(self.bad_config(format!("{key}: {problem}"))),
            None => Ok(()),
        };
        match name {
            "marker" => {
                let settings: marker::Settings = self.settings()?;
                problem(settings.problem())?;
                Ok(Box::new(marker::Marker::new(settings)))
            }
            "shared-state" => {
                let settings: shared_state::Settings = self.settings()?;
                problem(settings.problem())?;
                Ok(Box::new(shared_state::SharedState::new(settings)))
            }
            _ => Err(self.bad_config(format!(
                "layout: \"{name}\" is not one of marker, shared-state"
            ))),
        }
    }

    /// The graph file: the only one, or of several the one that the manifest's digest names, else `model.onnx`.
    fn graph(&self, sha256: Option<&str>) -> Result<PathBuf, Error> {
        let bad = |problem: String| Error::BadModel {
            file: self.path.clone(),
            problem,
        };
        let entries = fs::read_dir(&self.path).map_err(|error| bad(error.to_string()))?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut graphs: Vec<PathBuf> = paths
            .filter(|path| path.extension().is_some_and(|ending| ending == "onnx"))
            .collect();
        graphs.sort();
        if graphs.len() > 1 {
            if let Some(wanted) = sha256 {
                for graph in &graphs {
                    if hex(&file_digest(graph)?).eq_ignore_ascii_case(wanted) {
                        return Ok(graph.clone());
                    }
                }
            }
            let usual = self.path.join("model.onnx");
            if graphs.contains(&usual) {
                return Ok(usual);
            }
            return Err(bad("several .onnx files and none is model.onnx".into()));
        }
        graphs.pop().ok_or_else(|| bad("no .onnx file".into()))
    }

    /// The digests of all files that the model is made of, by name, checked against those that the manifest gives.
    fn digests(
        &self,
        graph: &Path,
        wanted: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, Error> {
        let mut names: Vec<String> = vec![
            "config.json".into(),
            "tokenizer.json".into(),
            file_name(graph),
        ];
        names.extend(wanted.keys().cloned());
        let mut digests = BTreeMap::new();
        for name in names {
            if name.contains(['/', '\\']) || name.starts_with("..") {
                return Err(self.bad_config(format!("files.{name}: must be a file of this folder")));
            }
            let digest = hex(&file_digest(&self.path.join(&name))?);
            if wanted
                .get(&name)
                .is_some_and(|wanted| !wanted.eq_ignore_ascii_case(&digest))
            {
                return Err(self.bad_config(format!(
                    "files.{name}: does not match the file, which has {digest}"
                )));
            }
            digests.insert(name, digest);
        }
        Ok(digests)
    }

    fn bad_config(&self, problem: String) -> Error {
        Error::BadModel {
            file: self.path.join("config.json"),
            problem,
        }
    }
}

fn check(folder: &Folder, manifest: &Manifest) -> Result<(), Error> {
    let usable = |temperature: f64| temperature.is_finite() && temperature > 0.0;
    for kind in Kind::ALL {
        if !usable(*manifest.temperature.get(kind)) {
            return Err(folder.bad_config(format!("temperature.{kind}: must be greater than 0")));
        }
    }
    for (key, value) in &manifest.calibration {
        if !usable(value.temperature) || value.bias.iter().any(|bias| !bias.is_finite()) {
            return Err(folder.bad_config(format!(
                "calibration.{key}: needs a temperature greater than 0 and finite biases"
            )));
        }
    }
    Ok(())
}

fn check_special_ids(folder: &Folder, manifest: &Manifest, vocabulary: usize) -> Result<(), Error> {
    let ids = manifest.special_ids;
    for (key, id) in [
        ("cls", ids.cls),
        ("sep", ids.sep),
        ("pad", ids.pad),
        ("mask", ids.mask),
    ] {
        if id < 0 || id as usize >= vocabulary {
            return Err(folder.bad_config(format!(
                "special_ids.{key}: {id} is not a token of the tokenizer, which has {vocabulary}"
            )));
        }
    }
    Ok(())
}

/// Opens the sessions on the device that is asked for; `auto` takes the first accelerator that the library offers and
/// that agrees with the processor, else the processor.
fn open_sessions(
    source: &Source,
    graph: &Path,
    layout: &dyn Layout,
    tokenizer: &Tokenizer,
) -> Result<(Sessions, Device, Vec<String>), Error> {
    let open = |device| {
        Sessions::open(&Graph {
            runtime: &source.runtime,
            file: graph,
            interface: layout.interface(),
            device,
            threads: source.threads,
        })
    };
    let stop = Stop::never();
    let plan = layout.encode(
        tokenizer,
        &probe_request(),
        &mut Meter::new(usize::MAX, &stop),
    )?;
    let probe = |sessions: &Sessions| probe(layout, sessions, &plan);
    let processor = open(Device::Cpu)?;
    let expected = probe(&processor).map_err(|error| match error {
        Error::ModelFailed { cause } => Error::BadModel {
            file: graph.to_owned(),
            problem: format!("a trial decision failed: {cause}"),
        },
        other => other,
    })?;
    let tried: &[Device] = match source.device.as_str() {
        "cpu" => &[],
        "auto" | "gpu" => &Device::ACCELERATORS,
        "cuda" => &[Device::Cuda],
        "coreml" => &[Device::CoreMl],
        "directml" => &[Device::DirectMl],
        other => {
            return Err(Error::BadDevice {
                device: other.to_owned(),
                problem: "must be one of auto, cpu, gpu, cuda, coreml, directml".into(),
            });
        }
    };
    let mut notes = Vec::new();
    let asked_for = tried.len() == 1;
    for device in tried
        .iter()
        .filter(|device| asked_for || device.is_possible())
    {
        let sessions = open(*device).and_then(|sessions| {
            agree(&probe(&sessions)?, &expected)?;
            Ok(sessions)
        });
        match sessions {
            Ok(sessions) => return Ok((sessions, *device, notes)),
            Err(error) => notes.push(format!("{}: {}", device.name(), reason(&error))),
        }
    }
    if matches!(source.device.as_str(), "auto" | "cpu") {
        return Ok((processor, Device::Cpu, notes));
    }
    Err(Error::BadDevice {
        device: source.device.clone(),
        problem: notes.join("; "),
    })
}

/// What went wrong, without the file that it went wrong with.
fn reason(error: &Error) -> String {
    match error {
        Error::BadModel { problem, .. } => problem.clone(),
        Error::ModelFailed { cause } => cause.clone(),
        other => other.to_string(),
    }
}

/// Probabilities of the probe may differ so much between two devices.
const AGREEMENT: f64 = 0.01;

fn agree(got: &[Vec<f64>], expected: &[Vec<f64>]) -> Result<(), Error> {
    let pairs = got.iter().flatten().zip(expected.iter().flatten());
    let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    if worst <= AGREEMENT {
        return Ok(());
    }
    Err(Error::ModelFailed {
        cause: format!("a probe's probabilities are off by {worst:.3} from the processor's"),
    })
}

fn probe(layout: &dyn Layout, sessions: &Sessions, plan: &Plan) -> Result<Vec<Vec<f64>>, Error> {
    let runner = Runner {
        layout,
        sessions,
        cache: &StateCache::new(0, Precision::default(), ""),
    };
    let logits = runner.run(plan, &Stop::never())?;
    let calibration = Calibration {
        temperature: 1.0,
        bias: &[],
    };
    logits
        .iter()
        .map(|logits| {
            let answer = Answer::decode(logits, calibration)?;
            Ok((0..logits.outcomes.len())
                .map(|index| answer.probability(index))
                .collect())
        })
        .collect()
}

/// One question of each type on a short state.
fn probe_request() -> Request {
    let outcome = |name: &str, text: Option<&str>| Outcome {
        name: name.to_owned(),
        text: text.map(str::to_owned),
        legend: None,
    };
    let question = |kind: Kind, instructions: &str, outcomes: Vec<Outcome>| Question {
        id: String::new(),
        kind,
        instructions: instructions.to_owned(),
        outcomes,
    };
    Request {
        state: "The parcel arrived crushed and I want my money back.".to_owned(),
        questions: vec![
            question(
                Kind::Noul,
                "Is the customer angry?",
                vec![outcome("false", None), outcome("true", None)],
            ),
            question(
                Kind::Choice,
                "Which team?",
                vec![
                    outcome("refunds", Some("money back")),
                    outcome("login", Some("passwords")),
                    outcome("parcels", None),
                ],
            ),
            question(
                Kind::Score,
                "How urgent is it?",
                vec![outcome("0", Some("low")), outcome("1", Some("high"))],
            ),
        ],
    }
}

fn read(file: &Path) -> Result<Vec<u8>, Error> {
    fs::read(file).map_err(|error| Error::BadModel {
        file: file.to_owned(),
        problem: match error.kind() {
            std::io::ErrorKind::NotFound => "no such file".to_owned(),
            _ => error.to_string(),
        },
    })
}

fn file_digest(file: &Path) -> Result<[u8; 32], Error> {
    Ok(Sha256::digest(read(file)?).into())
}

fn digest_of(digests: &BTreeMap<String, String>) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for (name, digest) in digests {
        hasher.update((name.len() as u64).to_le_bytes());
        hasher.update(name);
        hasher.update(digest);
    }
    hasher.finalize().into()
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
