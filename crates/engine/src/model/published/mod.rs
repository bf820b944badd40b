//! Folders in the form in which the makers of models publish them. A form is known by one file of
//! the folder, and its files become the text of a manifest as `config.json` has it, so that the
//! rest of the engine serves the folder like any other.
//!
//! A family has one file here and one line in [`FORMS`].

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::folder::{CONFIG, TOKENIZER, read};
use crate::Error;

mod calibration;
mod decima;
mod gliner_decide;
mod graphs;
mod jevhome;
mod jevhome_e;
mod julia;
mod laya;
mod noulxp;
mod open_jev;
mod opendecider;
mod tokens;

/// The longest file of settings, in bytes.
const MAX_SETTINGS_BYTES: u64 = 16 << 20;

/// A form in which models of a family are published.
struct Form {
    /// The file that a folder is known by, which errors about its settings name.
    file: &'static str,
    /// Whether the content of the file is that of the family.
    is_it: fn(&Value) -> bool,
    /// Returns the folder as the rest of the engine reads it.
    read: fn(&Files<'_>, &Value) -> Result<Published, Error>,
}

/// All forms. Of several that fit a folder, the first counts.
const FORMS: &[Form] = &[
    noulxp::FORM,
    noulxp::FIRST,
    laya::OWN,
    laya::NESTED,
    jevhome::FORM,
    jevhome_e::FORM,
    jevhome::OTHER,
    decima::EXPORT,
    decima::FP32,
    decima::INT8,
    opendecider::FORM,
    open_jev::FORM,
    julia::OWN,
    julia::NAMED,
];

/// Whether a folder that is known by this file is a NoulXP package.
pub(super) fn is_noulxp(file: &str) -> bool {
    [noulxp::FORM.file, noulxp::FIRST.file].contains(&file)
}

/// A published folder as the rest of the engine reads it.
pub(super) struct Published {
    /// The members of the manifest. The name and the version may be missing.
    pub(super) manifest: Map<String, Value>,
    /// The file of the tokenizer.
    pub(super) tokenizer: String,
    /// The file of the graph, where the form names it.
    pub(super) graph: Option<String>,
    /// Where the members of the manifest come from, where errors about them must say so.
    origins: Vec<Origin>,
}

/// The place in a published file that a member of the manifest comes from.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    /// The key in the manifest.
    key: String,
    file: String,
    /// The key in the file; empty for the file itself.
    its_key: String,
}

impl Origin {
    fn new(key: &str, file: &str, its_key: &str) -> Self {
        Self {
            key: key.to_owned(),
            file: file.to_owned(),
            its_key: its_key.to_owned(),
        }
    }

    /// Returns the file and the problem as it is there, if the problem begins with this key.
    pub(super) fn of(&self, problem: &str) -> Option<(&str, String)> {
        let rest = problem.strip_prefix(self.key.as_str())?;
        if !rest.starts_with(['.', '[', ':']) {
            return None;
        }
        let problem = format!("{}{rest}", self.its_key);
        let problem = problem.trim_start_matches(['.', ':', ' ']).to_owned();
        Some((&self.file, problem))
    }
}

impl Published {
    /// Returns a folder with this manifest, whose other files have their usual names.
    fn of(manifest: Value) -> Self {
        Self {
            manifest: manifest.as_object().cloned().unwrap_or_default(),
            tokenizer: TOKENIZER.to_owned(),
            graph: None,
            origins: Vec::new(),
        }
    }

    /// Returns the folder with these members of its manifest taken from a file, each under the key
    /// that is beside it.
    fn with_origins(mut self, file: &str, keys: &[(&str, &str)]) -> Self {
        let origins = keys.iter();
        let origins = origins.map(|(key, its_key)| Origin::new(key, file, its_key));
        self.origins.extend(origins);
        self
    }
}

/// A published folder that was recognized.
pub(super) struct Recognized {
    /// The file by which it was known.
    pub(super) file: &'static str,
    /// The text of its manifest.
    pub(super) config: String,
    /// The files of settings that the manifest was made from.
    pub(super) files: Vec<String>,
    /// The file of the tokenizer.
    pub(super) tokenizer: String,
    /// The file of the graph, where the form names it.
    pub(super) graph: Option<String>,
    /// Where the members of the manifest come from.
    pub(super) origins: Vec<Origin>,
}

/// Returns a folder that has the form of a published family; `None` where it has not.
///
/// # Errors
/// [`Error::BadModel`] that names the published file and the key.
pub(super) fn recognize(folder: &Path) -> Result<Option<Recognized>, Error> {
    for form in FORMS {
        let files = Files::of(folder);
        let content = match files.json_if_there(form.file) {
            Ok(Some(content)) => content,
            Ok(None) => continue,
            // An error in this file is reported when it is read as the manifest.
            Err(_) if form.file == CONFIG => continue,
            Err(error) => return Err(error),
        };
        if form.file != CONFIG && !content.is_object() {
            return Err(files.bad(form.file, "must be an object"));
        }
        if !(form.is_it)(&content) {
            continue;
        }
        let published = (form.read)(&files, &content)?;
        return Ok(Some(Recognized::new(form.file, published, files)));
    }
    let files = Files::of(folder);
    let known = match gliner_decide::recognize(&files)? {
        None => julia::bare(&files)?,
        known => known,
    };
    Ok(known.map(|(file, published)| Recognized::new(file, published, files)))
}

impl Recognized {
    fn new(file: &'static str, published: Published, files: Files<'_>) -> Self {
        let mut manifest = published.manifest;
        let name = files.folder.file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        manifest.entry("name").or_insert_with(|| json!(name));
        manifest.entry("version").or_insert_with(|| json!("0"));
        Self {
            file,
            config: Value::Object(manifest).to_string(),
            files: files.names.into_inner().into_iter().collect(),
            tokenizer: published.tokenizer,
            graph: published.graph,
            origins: published.origins,
        }
    }
}

/// The files of a published folder; it notes which of them were read.
struct Files<'a> {
    folder: &'a Path,
    names: RefCell<BTreeSet<String>>,
}

impl<'a> Files<'a> {
    fn of(folder: &'a Path) -> Self {
        Self {
            folder,
            names: RefCell::default(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Whether the folder has a file of this name. A link that leads nowhere is one: its file is
    /// missing, and a folder without the file could be another model.
    fn is_there(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    /// Returns an error about a file.
    fn bad(&self, name: &str, problem: impl Into<String>) -> Error {
        Error::BadModel {
            file: self.path(name),
            problem: problem.into(),
        }
    }

    /// Returns the content of a JSON file.
    ///
    /// # Errors
    /// [`Error::BadModel`] where there is no such file, it is too long, or it is no JSON.
    fn json(&self, name: &str) -> Result<Value, Error> {
        let path = self.path(name);
        if path
            .metadata()
            .is_ok_and(|it| it.len() > MAX_SETTINGS_BYTES)
        {
            return Err(self.bad(name, format!("longer than {MAX_SETTINGS_BYTES} bytes")));
        }
        let content = serde_json::from_slice(&read(&path)?);
        self.names.borrow_mut().insert(name.to_owned());
        content.map_err(|error| self.bad(name, error.to_string()))
    }

    /// Returns the content of a JSON file; `None` where there is no such file.
    ///
    /// # Errors
    /// The other errors of [`Files::json`].
    fn json_if_there(&self, name: &str) -> Result<Option<Value>, Error> {
        match self.is_there(name) {
            true => self.json(name).map(Some),
            false => Ok(None),
        }
    }

    /// Returns a member that must be a whole number; `default` where it is missing.
    fn whole(&self, name: &str, of: &Value, key: &str, default: usize) -> Result<usize, Error> {
        match of.get(key) {
            None | Some(Value::Null) => Ok(default),
            Some(value) => {
                let whole = value.as_u64().and_then(|it| usize::try_from(it).ok());
                whole.ok_or_else(|| self.bad(name, format!("{key}: must be a whole number")))
            }
        }
    }

    /// Returns a member that may be an object or missing.
    ///
    /// # Errors
    /// [`Error::BadModel`] where it is something else.
    fn object<'v>(&self, name: &str, of: &'v Value, key: &str) -> Result<&'v Value, Error> {
        match &of[key] {
            value @ (Value::Null | Value::Object(_)) => Ok(value),
            _ => Err(self.bad(name, format!("{key}: must be an object"))),
        }
    }

    /// Returns the ids of the special tokens with these names in `tokenizer.json`.
    ///
    /// # Errors
    /// [`Error::BadModel`] that names the missing token.
    fn special_ids(&self, tokenizer: &str, names: &tokens::Names<'_>) -> Result<Value, Error> {
        let added = self.added_tokens(tokenizer)?;
        let id = |name: &str| {
            let problem = || format!("added_tokens: no token \"{name}\"");
            let id = added.get(name).copied();
            id.ok_or_else(|| self.bad(tokenizer, problem()))
        };
        Ok(json!({
            "cls": id(names.cls)?,
            "sep": id(names.sep)?,
            "mask": id(names.mask)?,
            // No row is padded, so a tokenizer may do without this token.
            "pad": added.get(names.pad).copied().unwrap_or(id(names.sep)?),
        }))
    }

    /// Returns the ids of the added tokens of a tokenizer, by their text.
    fn added_tokens(&self, tokenizer: &str) -> Result<BTreeMap<String, u32>, Error> {
        let bytes = read(&self.path(tokenizer))?;
        tokens::added(&bytes).map_err(|problem| self.bad(tokenizer, problem))
    }
}
