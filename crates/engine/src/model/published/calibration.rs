//! The temperatures of published models, by the type of a question and its number of options.

use serde_json::{Value, json};

use super::Files;
use crate::Error;
use crate::model::folder::unusable;
use crate::question::Kind;

/// The least and the greatest temperature that the maker's code applies, where it bounds them.
pub(super) type Clamp = Option<(f64, f64)>;

/// The makers' names of numbers of options.
const BUCKETS: [(&str, usize, Option<usize>); 4] = [
    ("2", 0, Some(2)),
    ("3-5", 3, Some(5)),
    ("6-10", 6, Some(10)),
    ("11+", 11, None),
];

/// Returns a temperature within the bounds.
///
/// # Errors
/// [`Error::BadModel`] that names the file and the key.
pub(super) fn temperature(
    files: &Files<'_>,
    file: &str,
    key: &str,
    value: &Value,
    clamp: Clamp,
) -> Result<Value, Error> {
    let number = value.as_f64();
    let number = number.ok_or_else(|| files.bad(file, format!("{key}: must be a number")))?;
    let number = match clamp {
        Some((least, most)) => number.clamp(least, most),
        None => number,
    };
    match unusable(number) {
        Some(wanted) => Err(files.bad(file, format!("{key}: {wanted}"))),
        None => Ok(json!(number)),
    }
}

/// Returns the manifest's `temperature_by_options` for an object with keys like `choice:3-5`, whose
/// values are numbers or objects with a number `T`. Keys that begin with `_` do not count.
///
/// # Errors
/// [`Error::BadModel`] that names the file and the key.
pub(super) fn by_bucket(
    files: &Files<'_>,
    file: &str,
    path: &str,
    values: &Value,
    clamp: Clamp,
) -> Result<Value, Error> {
    let values = match values {
        Value::Null => return Ok(json!([])),
        Value::Object(values) => values,
        _ if path.is_empty() => return Err(files.bad(file, "must be an object")),
        _ => return Err(files.bad(file, format!("{path}: must be an object"))),
    };
    let counted = values.iter().filter(|(key, _)| !key.starts_with('_'));
    let ranges = counted.map(|(key, value)| {
        let at = match path {
            "" => key.clone(),
            _ => format!("{path}.{key}"),
        };
        let (kind, min, max) = range(key).ok_or_else(|| {
            let known = "a type and a number of options such as choice:3-5";
            files.bad(file, format!("{at}: is not {known}"))
        })?;
        let value = value.get("T").unwrap_or(value);
        let temperature = temperature(files, file, &at, value, clamp)?;
        Ok(json!({"type": kind.name(), "min": min, "max": max, "temperature": temperature}))
    });
    ranges
        .collect::<Result<Vec<Value>, Error>>()
        .map(Value::from)
}

/// Returns the type and the numbers of options of a key.
fn range(key: &str) -> Option<(Kind, usize, Option<usize>)> {
    let (kind, size) = key.split_once(':')?;
    let (_, min, max) = BUCKETS.into_iter().find(|(name, ..)| *name == size)?;
    Some((Kind::from_name(kind)?, min, max))
}
