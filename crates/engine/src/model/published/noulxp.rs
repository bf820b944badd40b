//! NoulXP packages of the profile `encoder-markers`, versions 0.1 and 0.2: `noulxp.json`, which names
//! the files of the weights, of the tokenizer, of the template and of the calibration.

use serde_json::{Map, Value, json};

use super::{Files, Form, Published, calibration};
use crate::Error;
use crate::question::Kind;

/// The form of the standard.
pub(super) const FORM: Form = Form {
    file: "noulxp.json",
    is_it: Value::is_object,
    read: |files, manifest| Package::new(files, FORM.file, manifest).read(),
};

/// The same under the standard's first name.
pub(super) const FIRST: Form = Form {
    file: "odxp.json",
    is_it: Value::is_object,
    read: |files, manifest| Package::new(files, FIRST.file, manifest).read(),
};

const STANDARDS: [&str; 4] = ["noulxp/0.1", "noulxp/0.2", "odxp/0.1", "odxp/0.2"];
const PROFILE: &str = "encoder-markers";
/// The files of a package that a model is made of.
const PARTS: [&str; 4] = ["weights", "tokenizer", "template", "calibration"];

/// The keys of a manifest that come from the template, and their keys there.
const TEMPLATE_KEYS: [(&str, &str); 10] = [
    ("max_len", "budgets.total"),
    ("head_max", "budgets.head"),
    ("option_max", "budgets.option"),
    ("head_reserve", "budgets.reserve"),
    ("option_min", "budgets.option_floor"),
    ("head_min", "budgets.head_floor"),
    ("row", "layout"),
    ("type_ids", "question_type_ids"),
    ("template.mask", "special_tokens.marker"),
    ("template", ""),
];
/// The same for the file that names the parts.
const LIMIT_KEYS: [(&str, &str); 2] = [
    ("max_options", "limits.max_options"),
    ("max_levels", "limits.max_levels"),
];

struct Package<'a> {
    files: &'a Files<'a>,
    file: &'static str,
    manifest: &'a Value,
}

impl<'a> Package<'a> {
    fn new(files: &'a Files<'a>, file: &'static str, manifest: &'a Value) -> Self {
        Self {
            files,
            file,
            manifest,
        }
    }

    fn bad(&self, problem: impl Into<String>) -> Error {
        self.files.bad(self.file, problem)
    }

    fn read(&self) -> Result<Published, Error> {
        let standard = self.manifest["standard"].as_str().unwrap_or_default();
        if !STANDARDS.contains(&standard) {
            return Err(self.bad(format!(
                "standard: \"{standard}\" is not one of {}",
                STANDARDS[..2].join(", ")
            )));
        }
        if self.manifest["profile"] != PROFILE {
            return Err(self.bad(format!(
                "profile: only {PROFILE} can be served, not {}",
                self.manifest["profile"]
            )));
        }
        let [weights, tokenizer, template, calibration] = PARTS.map(|part| self.path(part));
        let (weights, tokenizer) = (weights?, tokenizer?);
        if !self.manifest["weights"]["format"].is_null()
            && self.manifest["weights"]["format"] != "onnx"
        {
            return Err(self.bad("weights.format: must be onnx"));
        }
        let template = Template {
            package: self,
            file: template?,
            tokenizer: &tokenizer,
        };
        let mut manifest = template.settings()?;
        let calibration = calibration?;
        let content = self.files.json(&calibration)?;
        manifest.insert(
            "temperature".to_owned(),
            self.temperatures(&calibration, &content)?,
        );
        manifest.insert(
            "temperature_by_options".to_owned(),
            self.ranges(&calibration, &content["by_option_count"])?,
        );
        if let Some(name) = self.manifest["name"].as_str() {
            manifest.insert("name".to_owned(), json!(name));
        }
        manifest.insert("files".to_owned(), self.digests()?);
        let mut published = Published::of(Value::Object(manifest));
        let template = template.file;
        published.tokenizer = tokenizer;
        published.graph = Some(weights);
        Ok(published
            .with_origins(&template, &TEMPLATE_KEYS)
            .with_origins(self.file, &LIMIT_KEYS))
    }

    /// Returns the path of a file of the package.
    fn path(&self, key: &str) -> Result<String, Error> {
        let path = self.manifest[key]["path"].as_str();
        let path = path.ok_or_else(|| self.bad(format!("{key}: must have a path")))?;
        self.inside(key, path)
    }

    /// Returns a path that leads to a file of the package.
    fn inside(&self, key: &str, path: &str) -> Result<String, Error> {
        let leads_out = path.contains(['\\', ':'])
            || path.split('/').any(|part| matches!(part, "" | "." | ".."));
        match leads_out {
            true => Err(self.bad(format!("{key}.path: must be a file of this folder"))),
            false => Ok(path.to_owned()),
        }
    }

    /// Returns the digests that the package gives for its files, by their paths.
    fn digests(&self) -> Result<Value, Error> {
        let mut digests = Map::new();
        let entries = PARTS.iter().map(|key| &self.manifest[*key]);
        let data = match &self.manifest["weights"]["data"] {
            Value::Null => &[],
            Value::Array(data) => data.as_slice(),
            _ => return Err(self.bad("weights.data: must be a list")),
        };
        for entry in entries.chain(data) {
            let path = entry["path"].as_str();
            let path = path.ok_or_else(|| self.bad("weights.data: must have paths"))?;
            let path = self.inside("weights.data", path)?;
            match &entry["sha256"] {
                Value::Null => None,
                Value::String(sha256) => digests.insert(path, json!(sha256)),
                _ => return Err(self.bad(format!("sha256 of {path}: must be a text"))),
            };
        }
        Ok(digests.into())
    }

    fn temperatures(&self, file: &str, content: &Value) -> Result<Value, Error> {
        let mut temperatures = Map::new();
        let given = self.files.object(file, content, "temperature")?;
        for kind in Kind::ALL {
            let own = &given[kind.name()];
            let own = match own {
                Value::Null => json!(1),
                _ => {
                    let key = format!("temperature.{kind}");
                    calibration::temperature(self.files, file, &key, own, None)?
                }
            };
            temperatures.insert(kind.name().to_owned(), own);
        }
        Ok(temperatures.into())
    }

    /// Returns the manifest's `temperature_by_options`. As in the package's own runtime, a range
    /// without a `min` begins with 2 options.
    fn ranges(&self, file: &str, entries: &Value) -> Result<Value, Error> {
        let entries = match entries {
            Value::Null => &[],
            Value::Array(entries) => entries.as_slice(),
            _ => {
                let problem = "by_option_count: must be a list";
                return Err(self.files.bad(file, problem));
            }
        };
        let ranges = entries.iter().enumerate().map(|(index, entry)| {
            let at = |key: &str| format!("by_option_count[{index}].{key}");
            let bad =
                |key: &str, problem: &str| self.files.bad(file, format!("{}: {problem}", at(key)));
            let kind = entry["type"].as_str().and_then(Kind::from_name);
            let kind = kind.ok_or_else(|| bad("type", "must be choice, score or noul"))?;
            let count = |key: &str| match &entry[key] {
                Value::Null => Ok(None),
                value => match value.as_u64() {
                    Some(count) => Ok(Some(count)),
                    None => Err(bad(key, "must be a whole number")),
                },
            };
            let (min, max) = (count("min")?.unwrap_or(2), count("max")?);
            if max.is_some_and(|max| max < min) {
                return Err(bad("max", "is below min"));
            }
            let own = &entry["temperature"];
            let own = calibration::temperature(self.files, file, &at("temperature"), own, None)?;
            Ok(json!({"type": kind.name(), "min": min, "max": max, "temperature": own}))
        });
        ranges
            .collect::<Result<Vec<Value>, Error>>()
            .map(Value::from)
    }
}

/// The template of a package.
struct Template<'a> {
    package: &'a Package<'a>,
    file: String,
    tokenizer: &'a str,
}

impl Template<'_> {
    fn bad(&self, problem: impl Into<String>) -> Error {
        self.package.files.bad(&self.file, problem)
    }

    /// Returns the settings of the layout.
    fn settings(&self) -> Result<Map<String, Value>, Error> {
        let files = self.package.files;
        let template = files.json(&self.file)?;
        if template["profile"] != PROFILE {
            return Err(self.bad(format!("profile: must be {PROFILE}")));
        }
        let tokens = &template["special_tokens"];
        let marker = tokens["marker"].as_str();
        let marker = marker.ok_or_else(|| self.bad("special_tokens.marker: missing"))?;
        let added = files.added_tokens(self.tokenizer)?;
        let id = |name: &str| {
            let id = added.get(name).copied();
            id.ok_or_else(|| {
                files.bad(self.tokenizer, format!("added_tokens: no token \"{name}\""))
            })
        };
        let mask = id(marker)?;
        let row = self.row(&template, &id)?;
        let overflow = match template["truncation"].as_str() {
            Some("strict") => "refuse",
            Some("truncate-state") => "cut",
            _ => return Err(self.bad("truncation: must be strict or truncate-state")),
        };
        let written_mask = match template["reserved_text"].as_str() {
            None | Some("replace") => "space",
            Some("reject") => "refuse",
            Some(_) => return Err(self.bad("reserved_text: must be replace or reject")),
        };
        let budgets = &template["budgets"];
        let budget = |key: &str, default: Option<usize>| {
            let value = budgets[key]
                .as_u64()
                .and_then(|it| usize::try_from(it).ok());
            let value = match budgets[key] {
                Value::Null => default,
                _ => value,
            };
            value.ok_or_else(|| self.bad(format!("budgets.{key}: must be a whole number")))
        };
        let total = budget("total", None)?;
        let package = self.package;
        let limits = files.object(package.file, package.manifest, "limits")?;
        let most = &limits["max_tokens"];
        if !most.is_null() && !most.is_u64() {
            return Err(package.bad("limits.max_tokens: must be a whole number"));
        }
        if most.as_u64().is_some_and(|most| (total as u64) > most) {
            return Err(self.bad("budgets.total: is over limits.max_tokens"));
        }
        let mut options = template["options"].clone();
        if options.is_object() && options["prefix"].is_null() {
            options["prefix"] = json!("");
        }
        let fallback = |kind: Kind| {
            let text = &template["instructions"]["fallback"][kind.name()];
            text.as_str().unwrap_or_default().to_owned()
        };
        let settings = json!({
            "layout": "marker",
            "max_len": total,
            "head_max": budget("head", None)?,
            "option_max": budget("option", None)?,
            "head_reserve": budget("reserve", Some(16))?,
            "option_min": budget("option_floor", Some(4))?,
            "head_min": budget("head_floor", Some(8))?,
            "overflow": overflow,
            "max_options": limits["max_options"],
            "max_levels": limits["max_levels"],
            "action_is_optional": true,
            "inputs": ["input_ids", "attention_mask", "marker_positions", "marker_mask", "question_type"],
            "output": "option_logits",
            "row": row,
            "type_ids": template["question_type_ids"],
            // Rows name their tokens by id, and no row is padded.
            "special_ids": {"cls": mask, "sep": mask, "mask": mask, "pad": mask},
            "template": {
                "mask": marker,
                "written_mask": written_mask,
                "head": template["head"],
                "state_json": "python",
                "options": options,
                "instructions": {
                    "choice": fallback(Kind::Choice),
                    "score": fallback(Kind::Score),
                    "noul": fallback(Kind::Noul),
                },
                "instructions_required": template["instructions"]["required"] == true,
            },
        });
        Ok(settings.as_object().cloned().unwrap_or_default())
    }

    /// Returns the parts of a row, with the ids of its tokens.
    fn row(
        &self,
        template: &Value,
        id: &dyn Fn(&str) -> Result<u32, Error>,
    ) -> Result<Vec<Value>, Error> {
        let items = template["layout"].as_array();
        let items = items.ok_or_else(|| self.bad("layout: must be a list"))?;
        let part = |item: &Value| {
            if let Some(part) = item["part"].as_str() {
                return Ok(json!(part));
            }
            let token = item["token"].as_str().unwrap_or_default();
            let text = template["special_tokens"][token].as_str();
            let text =
                text.ok_or_else(|| self.bad(format!("layout: {item} is no part of a row")))?;
            id(text).map(|id| json!(id))
        };
        items.iter().map(part).collect()
    }
}
