//! A model folder: its manifest, its checks and the digests of its files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::published::{self, Origin};
use crate::Error;
use crate::layout::{
    Layout, PerKind, SpecialIds, bi_encoder, labels, late_interaction, marker, pair, shared_state,
    spans,
};
use crate::question::Kind;
use crate::session::Second;
use crate::tokenize::{Frame, PairFrame, Tokenizer};

/// The longest `config.json`, in bytes: a file with calibrations of thousands of questions is
/// shorter.
const MAX_CONFIG_BYTES: u64 = 16 << 20;
/// The bytes of a file that are read at a time for its digest.
const BLOCK_BYTES: usize = 1 << 20;
/// The usual names of reference answers.
const REFERENCES: [&str; 2] = ["golden.jsonl", "conformance.jsonl"];
/// The longest name, version and key of a calibration, in characters.
const MAX_NAME_CHARS: usize = 200;
/// The most biases of one question: a request has far fewer options.
const MAX_BIASES: usize = 100_000;
/// The bound of calibrations: temperatures lie between `1 / MAX_SCALE` and `MAX_SCALE`, and biases
/// between `-MAX_SCALE` and `MAX_SCALE`, so that no logit overflows.
const MAX_SCALE: f64 = 1e6;

/// The settings of `config.json` that all layouts have.
#[derive(Debug, Deserialize)]
pub(super) struct Manifest {
    pub(super) name: String,
    pub(super) version: String,
    #[serde(default = "default_layout")]
    pub(super) layout: String,
    pub(super) temperature: PerKind<f64>,
    #[serde(default)]
    pub(super) temperature_by_options: Vec<OptionTemperature>,
    #[serde(default)]
    noul_bias: NoulBias,
    special_ids: Option<SpecialIds>,
    pub(super) sha256: Option<String>,
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) calibration: BTreeMap<String, QuestionCalibration>,
    graphs: Option<Graphs>,
}

/// The files of a model that has two graphs.
#[derive(Debug, Clone, Deserialize)]
struct Graphs {
    encoder: String,
    head: Option<String>,
    scorer: Option<String>,
}

impl Graphs {
    /// Returns the files, each with its key.
    fn files(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let head = self.head.as_deref().map(|file| ("head", file));
        let scorer = self.scorer.as_deref().map(|file| ("scorer", file));
        [Some(("encoder", self.encoder.as_str())), head, scorer]
            .into_iter()
            .flatten()
    }
}

fn default_layout() -> String {
    "marker".to_owned()
}

/// The temperature of the questions of a type with so many options.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct OptionTemperature {
    #[serde(rename = "type")]
    kind: Kind,
    min: usize,
    #[serde(default)]
    max: Option<usize>,
    temperature: f64,
}

/// The biases of a noul's `true`, which are added to its scaled logit, by the form of its
/// instructions.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct NoulBias {
    /// They name a part of the state between backticks.
    named: f64,
    /// They contain a question mark.
    question: f64,
    /// All others.
    statement: f64,
}

impl Manifest {
    /// Whether it says what digests some of the model's files have.
    pub(super) fn names_digests(&self) -> bool {
        self.sha256.is_some() || !self.files.is_empty()
    }

    /// Returns the temperature of a question of a type with so many options: that of the first range
    /// which has it, else that of the type.
    pub(super) fn temperature(&self, kind: Kind, options: usize) -> f64 {
        let has = |it: &&OptionTemperature| {
            it.kind == kind && it.min <= options && it.max.is_none_or(|max| options <= max)
        };
        let found = self.temperature_by_options.iter().find(has);
        found.map_or(*self.temperature.get(kind), |it| it.temperature)
    }

    /// Returns the bias of a noul's `true`, 0 for other types.
    pub(super) fn bias(&self, kind: Kind, instructions: &str) -> f64 {
        match instructions {
            _ if kind != Kind::Noul => 0.0,
            named if named.contains('`') => self.noul_bias.named,
            question if question.contains('?') => self.noul_bias.question,
            _ => self.noul_bias.statement,
        }
    }
}

/// The calibration of one question, which replaces the calibration of its type.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct QuestionCalibration {
    pub(super) temperature: f64,
    #[serde(default)]
    pub(super) bias: Vec<f64>,
}

/// The members of `config.json` that show whether it belongs to an exported cross-encoder, and
/// which members have to be added to it.
#[derive(Deserialize)]
struct Exported {
    layout: Option<String>,
    name: Option<Value>,
    version: Option<Value>,
    temperature: Option<Value>,
    special_ids: Option<Value>,
    architectures: Option<Value>,
    model_type: Option<Value>,
    id2label: Option<Value>,
}

impl Exported {
    /// Whether the folder has the layout `pair`: its manifest says so, or is as the usual tools
    /// export a model.
    fn is_pair(&self) -> bool {
        let is_exported =
            self.architectures.is_some() || self.model_type.is_some() || self.id2label.is_some();
        match self.layout.as_deref() {
            None => is_exported && self.special_ids.is_none(),
            Some(layout) => layout == "pair",
        }
    }

    /// Returns the missing members as JSON, each followed by a comma.
    fn missing(&self, folder: &Path) -> String {
        let name = Value::from(file_name(folder));
        let members = [
            (self.layout.is_none(), "layout", "\"pair\"".to_owned()),
            (self.name.is_none(), "name", name.to_string()),
            (self.version.is_none(), "version", "\"0\"".to_owned()),
            (
                self.temperature.is_none(),
                "temperature",
                "{\"choice\":1,\"score\":1,\"noul\":1}".to_owned(),
            ),
        ];
        let missing = members.into_iter().filter(|(is_missing, ..)| *is_missing);
        missing
            .map(|(_, key, value)| format!("\"{key}\":{value},"))
            .collect()
    }
}

/// Returns the text of a manifest, with the members added that an exported one lacks. They go
/// behind the first brace, so that the line numbers of errors stay those of the file.
fn completed(text: String, folder: &Path) -> String {
    match serde_json::from_str::<Exported>(&text) {
        Ok(exported) if exported.is_pair() => {
            text.replacen('{', &format!("{{{}", exported.missing(folder)), 1)
        }
        // An error in the text is reported when the manifest is read.
        _ => text,
    }
}

/// The file of a folder's settings, in the form of this engine and of the usual tools.
pub(super) const CONFIG: &str = "config.json";
/// The usual name of the file of a tokenizer.
pub(super) const TOKENIZER: &str = "tokenizer.json";

/// A model folder and the text of its manifest.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    config: String,
    /// The file that the manifest was read from, or that a published folder was known by.
    file: &'static str,
    /// The files of settings that the manifest was made from.
    settings: Vec<String>,
    tokenizer: String,
    /// The file of the graph, where the folder names it.
    graph: Option<String>,
    /// The graphs, where the manifest names two.
    graphs: Option<Graphs>,
    /// Whether the manifest was made from published files.
    is_published: bool,
    /// Where a published folder has the members of its manifest.
    origins: Vec<Origin>,
}

impl Folder {
    /// Returns a folder whose manifest has not been read.
    pub(super) fn at(path: &Path) -> Result<Self, Error> {
        let bad = |problem: &str| Error::BadModel {
            file: path.to_owned(),
            problem: problem.to_owned(),
        };
        let path = dunce::canonicalize(path).map_err(|_| bad("no such model folder"))?;
        if !path.is_dir() {
            return Err(bad("not a folder"));
        }
        Ok(Self::unread(path))
    }

    fn unread(path: PathBuf) -> Self {
        Self {
            path,
            config: String::new(),
            file: CONFIG,
            settings: vec![CONFIG.to_owned()],
            tokenizer: TOKENIZER.to_owned(),
            graph: None,
            graphs: None,
            is_published: false,
            origins: Vec::new(),
        }
    }

    /// Whether its floats may round otherwise than in its graph: it is as its makers publish it, and
    /// has no reference answers, which count to many digits.
    pub(super) fn may_round_otherwise(&self) -> bool {
        let has_references = published::is_noulxp(self.file)
            || REFERENCES.iter().any(|name| self.path.join(name).exists());
        self.is_published && !has_references
    }

    /// Returns the path of the tokenizer's file.
    pub(super) fn tokenizer(&self) -> PathBuf {
        self.path.join(&self.tokenizer)
    }

    /// Reads the tokenizer of the folder for a layout.
    pub(super) fn read_tokenizer(&self, layout: Option<&str>) -> Result<Tokenizer, Error> {
        let file = self.tokenizer();
        let marks = match layout {
            Some("spans") => &spans::Spans::MARKS[..],
            _ => &[],
        };
        Tokenizer::with_marks(&file, &read(&file)?, marks)
    }

    /// Reads the manifest of the folder.
    pub(super) fn manifest(&mut self) -> Result<Manifest, Error> {
        if !self.has_own_manifest()
            && let Some(published) = published::recognize(&self.path)?
        {
            self.file = published.file;
            self.config = published.config;
            self.settings = published.files;
            self.tokenizer = published.tokenizer;
            self.graph = published.graph;
            self.is_published = true;
            self.origins = published.origins;
            return self.read_settings();
        }
        let file = self.path.join(CONFIG);
        if file.metadata().is_ok_and(|it| it.len() > MAX_CONFIG_BYTES) {
            return Err(self.bad_config(format!("longer than {MAX_CONFIG_BYTES} bytes")));
        }
        self.parse(read(&file)?)
    }

    /// Whether the folder has a `config.json` that was written for this engine, which then counts
    /// whatever else is in the folder.
    fn has_own_manifest(&self) -> bool {
        let file = self.path.join(CONFIG);
        if file.metadata().is_ok_and(|it| it.len() > MAX_CONFIG_BYTES) {
            return false;
        }
        let exported = read(&file).ok();
        let exported = exported.and_then(|bytes| serde_json::from_slice::<Exported>(&bytes).ok());
        exported.is_some_and(|it| it.layout.is_some() || it.special_ids.is_some())
    }

    /// Returns the manifest in the bytes of a `config.json`.
    fn parse(&mut self, bytes: Vec<u8>) -> Result<Manifest, Error> {
        let text = String::from_utf8(bytes).map_err(|_| self.bad_config("not UTF-8".into()))?;
        self.config = completed(text, &self.path);
        self.read_settings()
    }

    fn read_settings(&mut self) -> Result<Manifest, Error> {
        let manifest: Manifest = self.settings()?;
        self.graphs.clone_from(&manifest.graphs);
        self.check_graphs()?;
        Ok(manifest)
    }

    /// Checks the names of the graphs of a model that has two.
    fn check_graphs(&self) -> Result<(), Error> {
        let Some(graphs) = &self.graphs else {
            return Ok(());
        };
        let is_inside = |name: &str| {
            let mut parts = Path::new(name).components();
            !name.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
        };
        match graphs.files().find(|(_, name)| !is_inside(name)) {
            Some((key, _)) => {
                Err(self.bad_config(format!("graphs.{key}: must be a file of this folder")))
            }
            None if graphs.head.is_some() == graphs.scorer.is_some() => {
                Err(self.bad_config("graphs: needs a head or a scorer, not both".into()))
            }
            None => Ok(()),
        }
    }

    /// Returns the second graph of a model, which its layout must know what to do with.
    pub(super) fn second<'l>(&self, layout: &'l dyn Layout) -> Result<Second<'l>, Error> {
        let graphs = self.graphs.as_ref();
        let head = graphs.and_then(|graphs| graphs.head.as_ref());
        let scorer = graphs.and_then(|graphs| graphs.scorer.as_ref());
        match (head, scorer, layout.scorer()) {
            (None, None, None) => Ok(Second::None),
            (Some(head), _, None) => Ok(Second::Head(self.path.join(head))),
            (_, Some(file), Some(scorer)) => Ok(Second::Scorer {
                file: self.path.join(file),
                interface: scorer.interface(),
            }),
            (.., None) => Err(self.bad_config(format!(
                "graphs.scorer: the layout {} has none",
                layout.name()
            ))),
            (.., Some(_)) => Err(self.bad_config(format!(
                "graphs.scorer: is missing, the layout {} needs it",
                layout.name()
            ))),
        }
    }

    /// Returns a part of the manifest; an error names the key.
    fn settings<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let reader = &mut serde_json::Deserializer::from_str(&self.config);
        serde_path_to_error::deserialize(reader).map_err(|error| {
            let key = error.path().to_string();
            let mut problem = error.inner().to_string();
            if self.is_published {
                // The text of this manifest is no file, so its lines say nothing.
                problem.truncate(problem.find(" at line ").unwrap_or(problem.len()));
            }
            self.bad_config(match key.as_str() {
                "." => problem,
                _ => format!("{key}: {problem}"),
            })
        })
    }

    pub(super) fn layout(
        &self,
        name: &str,
        tokenizer: &Tokenizer,
    ) -> Result<Box<dyn Layout>, Error> {
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
            "pair" => Ok(Box::new(self.pair(tokenizer)?)),
            "bi-encoder" => {
                let (one, two) = (self.frame(tokenizer)?, self.pair_frame(tokenizer)?);
                let settings: bi_encoder::Settings = self.settings()?;
                problem(settings.problem(one.specials(), two.specials()))?;
                Ok(Box::new(bi_encoder::BiEncoder::new(settings, one, two)))
            }
            "late-interaction" => {
                let frame = self.frame(tokenizer)?;
                let settings: late_interaction::Settings = self.settings()?;
                problem(settings.problem(frame.specials()))?;
                let layout = late_interaction::LateInteraction::new(settings, frame);
                Ok(Box::new(layout))
            }
            "labels" => {
                let settings: labels::Settings = self.settings()?;
                problem(settings.problem())?;
                let labels = labels::Labels::new(settings, tokenizer);
                Ok(Box::new(labels.map_err(|it| self.bad_tokenizer(it))?))
            }
            "spans" => {
                let settings: spans::Settings = self.settings()?;
                problem(settings.problem())?;
                let spans = spans::Spans::new(settings, tokenizer);
                Ok(Box::new(spans.map_err(|it| self.bad_tokenizer(it))?))
            }
            _ => Err(self.bad_config(format!(
                "layout: \"{name}\" is not one of marker, shared-state, pair, labels, spans, bi-encoder, late-interaction"
            ))),
        }
    }

    fn frame(&self, tokenizer: &Tokenizer) -> Result<Frame, Error> {
        let frame = tokenizer.frame();
        frame.ok_or_else(|| self.bad_frame("how a text makes a row"))
    }

    fn pair_frame(&self, tokenizer: &Tokenizer) -> Result<PairFrame, Error> {
        let frame = tokenizer.pair_frame();
        frame.ok_or_else(|| self.bad_frame("how two texts make one row"))
    }

    fn bad_frame(&self, what: &str) -> Error {
        self.bad_tokenizer(format!("post_processor: does not say {what}"))
    }

    pub(super) fn pair(&self, tokenizer: &Tokenizer) -> Result<pair::Pair, Error> {
        let frame = self.pair_frame(tokenizer)?;
        pair::Pair::new(&self.settings()?, tokenizer, frame)
            .map_err(|(key, problem)| self.bad_config(format!("{key}: {problem}")))
    }

    /// Returns the graph file, from the folder or else from its folder for graphs: the only graph,
    /// or of several the one with the manifest's digest, else `model.onnx`.
    pub(super) fn graph(&self, sha256: Option<&str>) -> Result<PathBuf, Error> {
        let bad = |problem: String| Error::BadModel {
            file: self.path.clone(),
            problem,
        };
        if let Some(graphs) = &self.graphs {
            let encoder = self.path.join(&graphs.encoder);
            return Ok(readable(&encoder)?.to_owned());
        }
        if let Some(graph) = &self.graph {
            let graph = self.path.join(graph);
            return Ok(readable(&graph)?.to_owned());
        }
        let mut graphs = graphs_in(&self.path).map_err(|error| bad(error.to_string()))?;
        if graphs.is_empty() {
            // Published models often have their graphs in this folder.
            graphs = graphs_in(&self.path.join(GRAPHS)).unwrap_or_default();
        }
        if graphs.len() > 1 {
            if let Some(wanted) = sha256 {
                for graph in &graphs {
                    if hex(&file_digest(graph)?).eq_ignore_ascii_case(wanted) {
                        return Ok(graph.clone());
                    }
                }
            }
            let usual = graphs.iter().find(|path| path.ends_with("model.onnx"));
            if let Some(usual) = usual {
                return Ok(readable(usual)?.to_owned());
            }
            return Err(bad("several .onnx files and none is model.onnx".into()));
        }
        let graph = graphs.pop();
        let graph = graph.ok_or_else(|| bad("no .onnx file".into()))?;
        Ok(readable(&graph)?.to_owned())
    }

    /// Returns the name of a graph file, relative to this folder.
    pub(super) fn name_of(&self, graph: &Path) -> String {
        let inside = graph.strip_prefix(&self.path).unwrap_or(graph);
        let parts = inside.iter().map(|part| part.to_string_lossy());
        parts.collect::<Vec<_>>().join("/")
    }

    /// Returns the files that hold the weights of a graph too large for one file: their names begin
    /// with its name, and very large graphs have several.
    fn weights(&self, graph: &str) -> Vec<String> {
        let folder = graph.rfind('/').map_or("", |end| &graph[..=end]);
        let entries = fs::read_dir(self.path.join(folder)).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let names = names.map(|name| format!("{folder}{name}"));
        let is_weights = |name: &String| {
            let rest = name.strip_prefix(graph);
            rest.is_some_and(|rest| rest.starts_with("_data") || rest.starts_with(".data"))
        };
        names.filter(is_weights).collect()
    }

    /// Returns the names of all files that the model is made of.
    pub(super) fn files(&self, graph: Option<&Path>, manifest: &Manifest) -> Vec<String> {
        let mut names = self.settings.clone();
        names.push(self.tokenizer.clone());
        names.extend(manifest.files.keys().cloned());
        if let Some(graph) = graph.map(|graph| self.name_of(graph)) {
            names.extend(self.weights(&graph));
            names.push(graph);
        }
        for (_, graph) in self.graphs.iter().flat_map(Graphs::files) {
            names.extend(self.weights(graph));
            names.push(graph.to_owned());
        }
        names.sort();
        names.dedup();
        names
    }

    /// Returns the digest of a file, checked against the one in the manifest.
    pub(super) fn digest(&self, name: &str, manifest: &Manifest) -> Result<String, Error> {
        let is_named = manifest.files.contains_key(name);
        let is_elsewhere = name.contains(['/', '\\']) || name.starts_with("..");
        // A published form has its own rules for paths, which it has checked.
        if is_named && self.file == CONFIG && is_elsewhere {
            return Err(self.bad_config(format!("files.{name}: must be a file of this folder")));
        }
        let digest = hex(&file_digest(&self.path.join(name))?);
        let wanted = manifest.files.get(name);
        if wanted.is_some_and(|wanted| !wanted.eq_ignore_ascii_case(&digest)) {
            let key = match self.is_published {
                true => format!("sha256 of {name}"),
                false => format!("files.{name}"),
            };
            let problem = format!("{key}: does not match the file, which has {digest}");
            return Err(self.bad_config(problem));
        }
        Ok(digest)
    }

    /// Returns the digests of all files that the model is made of, by name.
    pub(super) fn digests(
        &self,
        graph: &Path,
        manifest: &Manifest,
    ) -> Result<BTreeMap<String, String>, Error> {
        let names = self.files(Some(graph), manifest).into_iter();
        names
            .map(|name| {
                let digest = self.digest(&name, manifest)?;
                Ok((name, digest))
            })
            .collect()
    }

    fn bad_tokenizer(&self, problem: String) -> Error {
        Error::BadModel {
            file: self.tokenizer(),
            problem,
        }
    }

    /// Returns an error about the manifest, for a problem that begins with the key. Where the
    /// manifest was made from published files, the error names the file and the key there.
    pub(super) fn bad_config(&self, problem: String) -> Error {
        let mut found = self.origins.iter();
        let (file, problem) = found
            .find_map(|origin| origin.of(&problem))
            .unwrap_or((self.file, problem));
        Error::BadModel {
            file: self.path.join(file),
            problem,
        }
    }
}

/// Checks the bytes of a `config.json` as far as that is possible without the graph; `tokenizer` is
/// for the layout `pair`.
///
/// # Errors
/// [`Error::BadModel`] that names the key.
pub(super) fn check_config(bytes: Vec<u8>, tokenizer: &Tokenizer) -> Result<(), Error> {
    let mut folder = Folder::unread(PathBuf::new());
    let manifest = folder.parse(bytes)?;
    check(&folder, &manifest)?;
    check_special_ids(&folder, &manifest, tokenizer.vocabulary())?;
    folder.layout(&manifest.layout, tokenizer).map(|_| ())
}

/// Returns what a temperature must be that cannot be used; `None` for one that can.
pub(super) fn unusable(temperature: f64) -> Option<String> {
    if (1.0 / MAX_SCALE..=MAX_SCALE).contains(&temperature) {
        return None;
    }
    Some(match temperature > 0.0 {
        true => format!("must be from {} to {MAX_SCALE}", 1.0 / MAX_SCALE),
        false => "must be greater than 0".to_owned(),
    })
}

/// Checks the names, temperatures and calibrations in the manifest.
pub(super) fn check(folder: &Folder, manifest: &Manifest) -> Result<(), Error> {
    for (key, text) in [("name", &manifest.name), ("version", &manifest.version)] {
        if text.chars().nth(MAX_NAME_CHARS).is_some() {
            let problem = format!("{key}: must have at most {MAX_NAME_CHARS} characters");
            return Err(folder.bad_config(problem));
        }
    }
    let usable = |temperature: f64| unusable(temperature).is_none();
    let is_far = |bias: &f64| !(-MAX_SCALE..=MAX_SCALE).contains(bias);
    for kind in Kind::ALL {
        if let Some(wanted) = unusable(*manifest.temperature.get(kind)) {
            return Err(folder.bad_config(format!("temperature.{kind}: {wanted}")));
        }
    }
    for (index, it) in manifest.temperature_by_options.iter().enumerate() {
        if !usable(it.temperature) || it.max.is_some_and(|max| max < it.min) {
            let least = 1.0 / MAX_SCALE;
            return Err(folder.bad_config(format!(
                "temperature_by_options[{index}]: needs a temperature from {least} to {MAX_SCALE}, and a max not below min"
            )));
        }
    }
    let NoulBias {
        named,
        question,
        statement,
    } = manifest.noul_bias;
    for (form, bias) in [
        ("named", named),
        ("question", question),
        ("statement", statement),
    ] {
        if is_far(&bias) {
            return Err(folder.bad_config(format!(
                "noul_bias.{form}: must be from -{MAX_SCALE} to {MAX_SCALE}"
            )));
        }
    }
    for (key, value) in &manifest.calibration {
        if key.chars().nth(MAX_NAME_CHARS).is_some() {
            let problem =
                format!("calibration: a key must have at most {MAX_NAME_CHARS} characters");
            return Err(folder.bad_config(problem));
        }
        if value.bias.len() > MAX_BIASES {
            let problem = format!("calibration.{key}: must have at most {MAX_BIASES} biases");
            return Err(folder.bad_config(problem));
        }
        if !usable(value.temperature) || value.bias.iter().any(is_far) {
            return Err(folder.bad_config(format!(
                "calibration.{key}: needs a temperature greater than 0, from {} to {MAX_SCALE}, and biases from \
                 -{MAX_SCALE} to {MAX_SCALE}",
                1.0 / MAX_SCALE
            )));
        }
    }
    Ok(())
}

/// Checks that the graph is the one that the manifest was written for.
pub(super) fn check_sha256(
    folder: &Folder,
    manifest: &Manifest,
    graph: &Path,
    sha256: &str,
) -> Result<(), Error> {
    match &manifest.sha256 {
        Some(wanted) if !wanted.eq_ignore_ascii_case(sha256) => {
            let name = folder.name_of(graph);
            Err(folder.bad_config(format!("sha256: does not match {name}, which has {sha256}")))
        }
        _ => Ok(()),
    }
}

/// Checks that the manifest's special tokens are tokens of the tokenizer.
pub(super) fn check_special_ids(
    folder: &Folder,
    manifest: &Manifest,
    vocabulary: usize,
) -> Result<(), Error> {
    let Some(ids) = manifest.special_ids else {
        return Ok(());
    };
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

/// The folder within a model folder that may hold its graphs.
const GRAPHS: &str = "onnx";

fn graphs_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut graphs: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "onnx"))
        .collect();
    graphs.sort();
    Ok(graphs)
}

/// Returns `path` if it can be read to its end: a named pipe or a device in its place may have no
/// end.
fn readable(path: &Path) -> Result<&Path, Error> {
    if path.exists() && !path.is_file() {
        return Err(Error::BadModel {
            file: path.to_owned(),
            problem: "not a file".to_owned(),
        });
    }
    Ok(path)
}

/// Returns the bytes of a file of a folder.
pub(super) fn read(file: &Path) -> Result<Vec<u8>, Error> {
    fs::read(readable(file)?).map_err(|error| unreadable(file, &error))
}

/// Returns the digest of a file, which is read in blocks: a graph may be larger than what is left of
/// the memory.
fn file_digest(file: &Path) -> Result<[u8; 32], Error> {
    let open = fs::File::open(readable(file)?).map_err(|error| unreadable(file, &error))?;
    let mut reader = BufReader::with_capacity(BLOCK_BYTES, open);
    let mut hasher = Sha256::new();
    loop {
        let block = reader.fill_buf();
        let block = block.map_err(|error| unreadable(file, &error))?;
        let length = block.len();
        if length == 0 {
            return Ok(hasher.finalize().into());
        }
        hasher.update(block);
        reader.consume(length);
    }
}

fn unreadable(file: &Path, error: &std::io::Error) -> Error {
    Error::BadModel {
        file: file.to_owned(),
        problem: match error.kind() {
            std::io::ErrorKind::NotFound => "no such file".to_owned(),
            _ => error.to_string(),
        },
    }
}

/// Returns one digest over the digests of all files.
pub(super) fn digest_of(digests: &BTreeMap<String, String>) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for (name, digest) in digests {
        hasher.update((name.len() as u64).to_le_bytes());
        hasher.update(name);
        hasher.update(digest);
    }
    hasher.finalize().into()
}

/// Returns the last part of a path.
fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
