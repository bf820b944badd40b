//! The inspection of a model folder, as JavaScript sees it.

use std::panic::catch_unwind;

use napi::Env;
use napi::bindgen_prelude::Object;
use napi_derive::napi;

use super::Deferred;
use crate::Error;
use crate::model::inspect::{Inspection, inspect};
use crate::session::TensorInfo;

/// The description and the problems of a model folder. A fact that could not be found out is absent
/// or empty.
#[napi(object)]
pub struct NativeInspection {
    pub dir: String,
    pub layout: Option<String>,
    pub name: Option<String>,
    pub version: Option<String>,
    pub files: Vec<NativeFile>,
    pub inputs: Vec<NativeTensor>,
    pub outputs: Vec<NativeTensor>,
    /// The classes of a cross-encoder, and the roles that they are taken for.
    pub labels: Vec<NativeLabel>,
    /// The number of token ids that the tokenizer has.
    pub vocabulary: Option<u32>,
    /// The tokens of a row, where all rows of the layout have one length.
    pub max_len: Option<u32>,
    /// The missing or wrong parts, one line each; an empty list does not mean that the model
    /// answers.
    pub problems: Vec<String>,
}

/// A file that the model is made of.
#[napi(object)]
pub struct NativeFile {
    pub name: String,
    pub bytes: f64,
    pub sha256: String,
}

/// An input or output of a graph.
#[napi(object)]
pub struct NativeTensor {
    pub name: String,
    /// The type of its elements, such as `int64`.
    pub kind: String,
    /// The dimensions: numbers, the graph's names for them, or `?`.
    pub shape: Vec<String>,
}

/// A class of a cross-encoder.
#[napi(object)]
pub struct NativeLabel {
    pub name: String,
    pub role: Option<String>,
}

impl From<TensorInfo> for NativeTensor {
    fn from(tensor: TensorInfo) -> Self {
        Self {
            name: tensor.name,
            kind: tensor.kind,
            shape: tensor.shape,
        }
    }
}

impl From<Inspection> for NativeInspection {
    fn from(inspection: Inspection) -> Self {
        let tensors = |all: Vec<TensorInfo>| all.into_iter().map(NativeTensor::from).collect();
        let files = inspection.files.into_iter().map(|file| NativeFile {
            name: file.name,
            bytes: file.bytes as f64,
            sha256: file.sha256,
        });
        let labels = inspection.labels.into_iter().map(|label| NativeLabel {
            name: label.name,
            role: label.role.map(|role| role.name().to_owned()),
        });
        Self {
            dir: inspection.folder.to_string_lossy().into_owned(),
            layout: inspection.layout,
            name: inspection.name,
            version: inspection.version,
            files: files.collect(),
            inputs: tensors(inspection.tensors.inputs),
            outputs: tensors(inspection.tensors.outputs),
            labels: labels.collect(),
            vocabulary: inspection.vocabulary.map(|count| count as u32),
            max_len: inspection.max_len.map(|length| length as u32),
            problems: inspection.problems,
        }
    }
}

/// Resolves with the contents and the problems of a model folder.
#[napi(ts_return_type = "Promise<NativeInspection>")]
pub fn inspect_model(env: &Env, runtime: String, model: String) -> napi::Result<Object<'_>> {
    let (deferred, promise): (Deferred<NativeInspection>, _) = env.create_deferred()?;
    std::thread::spawn(move || {
        let inspection = catch_unwind(|| inspect(runtime.as_ref(), model.as_ref()));
        let inspection = inspection.unwrap_or_else(|_| Inspection {
            problems: vec![Error::Panicked.to_string()],
            ..Inspection::default()
        });
        deferred.resolve(Box::new(move |_| Ok(inspection.into())));
    });
    Ok(promise)
}
