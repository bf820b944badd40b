//! The inspection of a model folder: its contents and all its problems, without stopping at the
//! first one.

use std::path::{Path, PathBuf};

use super::folder::{self, Folder, Manifest, check, check_sha256, check_special_ids};
use crate::Error;
use crate::layout::Layout;
use crate::layout::pair::Role;
use crate::session::{Interface, Second, Tensors};
use crate::tokenize::Tokenizer;

/// One file of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The name of the file.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its hex sha256.
    pub sha256: String,
}

/// A class of a `pair` model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The model's name for the class.
    pub name: String,
    /// The role of the class, if it counts.
    pub role: Option<Role>,
}

/// The contents of a folder. Everything that could not be determined is empty.
#[derive(Debug, Clone, Default)]
pub struct Inspection {
    /// The path of the folder, absolute where it is a folder.
    pub folder: PathBuf,
    /// The name of the layout.
    pub layout: Option<String>,
    /// The manifest's `name`, or its substitute.
    pub name: Option<String>,
    /// The manifest's `version`, or its substitute.
    pub version: Option<String>,
    /// The files that the model is made of.
    pub files: Vec<File>,
    /// The graph's inputs and outputs.
    pub tensors: Tensors,
    /// The classes of the graph, in the layout `pair`.
    pub labels: Vec<Label>,
    /// The number of ids of the tokenizer.
    pub vocabulary: Option<usize>,
    /// The most tokens of a row, in the layout `pair`.
    pub max_len: Option<usize>,
    /// The missing or wrong things, one line each.
    pub problems: Vec<String>,
}

/// Inspects a folder as [`super::Model::load`] does, without making a decision with it.
pub fn inspect(runtime: &Path, folder: &Path) -> Inspection {
    let mut inspection = Inspection {
        folder: folder.to_owned(),
        ..Inspection::default()
    };
    if let Some(folder) = inspection.note(Folder::at(folder)) {
        inspection.folder.clone_from(&folder.path);
        inspection.look(runtime, folder);
    }
    inspection
}

/// Checks the bytes of a `config.json` as far as that is possible without its folder; `tokenizer`
/// replaces the folder's own.
///
/// # Errors
/// [`Error::BadModel`] that names the key.
pub fn check_config(bytes: Vec<u8>, tokenizer: &Tokenizer) -> Result<(), Error> {
    folder::check_config(bytes, tokenizer)
}

impl Inspection {
    /// Keeps an error as a line of the problems.
    fn note<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        result
            .map_err(|error| self.problems.push(error.to_string()))
            .ok()
    }

    fn look(&mut self, runtime: &Path, mut folder: Folder) {
        let manifest = self.note(folder.manifest());
        let sha256 = manifest
            .as_ref()
            .and_then(|manifest| manifest.sha256.as_deref());
        let graph = self.note(folder.graph(sha256));
        let layout = manifest.as_ref().map(|manifest| manifest.layout.as_str());
        let tokenizer = self.note(folder.read_tokenizer(layout));
        self.vocabulary = tokenizer.as_ref().map(Tokenizer::vocabulary);
        let mut layout = None;
        if let Some(manifest) = &manifest {
            self.name = Some(manifest.name.clone());
            self.version = Some(manifest.version.clone());
            self.layout = Some(manifest.layout.clone());
            self.note(check(&folder, manifest));
            self.look_at_files(&folder, manifest, graph.as_deref());
            layout = tokenizer.and_then(|tokenizer| self.layout(&folder, manifest, &tokenizer));
        }
        if let Some(graph) = graph {
            let second = layout.as_deref().map(|layout| folder.second(layout));
            let second = second.and_then(|second| self.note(second));
            let graphs = (graph.as_path(), second.unwrap_or_default());
            self.look_at_graphs(runtime, graphs, layout.as_deref());
        }
    }

    /// Adds the files with their digests. A missing file is reported where it is needed, unless
    /// only the manifest names it; then it is reported here.
    fn look_at_files(&mut self, folder: &Folder, manifest: &Manifest, graph: Option<&Path>) {
        for name in folder.files(graph, manifest) {
            let path = folder.path.join(&name);
            if !path.exists() && !manifest.files.contains_key(&name) {
                continue;
            }
            let Some(sha256) = self.note(folder.digest(&name, manifest)) else {
                continue;
            };
            if let Some(graph) = graph.filter(|graph| folder.name_of(graph) == name) {
                self.note(check_sha256(folder, manifest, graph, &sha256));
            }
            let bytes = path.metadata().map_or(0, |metadata| metadata.len());
            self.files.push(File {
                name,
                bytes,
                sha256,
            });
        }
    }

    fn layout(
        &mut self,
        folder: &Folder,
        manifest: &Manifest,
        tokenizer: &Tokenizer,
    ) -> Option<Box<dyn Layout>> {
        self.note(check_special_ids(folder, manifest, tokenizer.vocabulary()));
        if manifest.layout != "pair" {
            return self.note(folder.layout(&manifest.layout, tokenizer));
        }
        let pair = self.note(folder.pair(tokenizer))?;
        self.max_len = Some(pair.max_len());
        let labels = pair.labels().into_iter();
        self.labels = labels
            .map(|(name, role)| Label {
                name: name.to_owned(),
                role,
            })
            .collect();
        Some(Box::new(pair))
    }

    fn look_at_graphs(
        &mut self,
        runtime: &Path,
        (graph, second): (&Path, Second<'_>),
        layout: Option<&dyn Layout>,
    ) {
        if let Second::Scorer { file, interface } = &second {
            let tensors = self.note(Tensors::read(runtime, file, &Second::None));
            self.check(tensors.as_ref(), file, interface);
        }
        let Some(tensors) = self.note(Tensors::read(runtime, graph, &second)) else {
            return;
        };
        if let Some(layout) = layout {
            self.check(Some(&tensors), graph, layout.interface());
        }
        self.tensors = tensors;
    }

    /// Checks the tensors of a graph, if they could be read.
    fn check(&mut self, tensors: Option<&Tensors>, graph: &Path, interface: &Interface) {
        if let Some(tensors) = tensors {
            let fits = tensors.check(interface);
            self.note(fits.map_err(|problem| Error::BadModel {
                file: graph.to_owned(),
                problem,
            }));
        }
    }
}
