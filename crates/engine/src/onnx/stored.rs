//! The signed bytes that a graph stores, in its own file or in another one.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::proto::{LOCATION, Tensor, count, data_type};

/// Returns the signed bytes of a tensor; `folder` holds the files of the bytes that are not in the
/// graph. `None` where they cannot be read.
pub fn signed_bytes(tensor: &Tensor, folder: &Path) -> Option<Vec<i8>> {
    let signed = |bytes: &[u8]| bytes.iter().map(|byte| *byte as i8).collect();
    let values: Vec<i8> = match (&tensor.raw_data, tensor.data_location) {
        _ if tensor.data_type != data_type::INT8 => return None,
        (Some(raw), 0) => signed(raw),
        (None, 0) => tensor.int32_data.iter().map(|value| *value as i8).collect(),
        _ => signed(&read_beside(tensor, folder)?),
    };
    (count(&tensor.dims) == Some(values.len())).then_some(values)
}

/// Returns the bytes of a tensor that lie in another file of the folder.
pub fn read_beside(tensor: &Tensor, folder: &Path) -> Option<Vec<u8>> {
    let entries = tensor.external_data.iter();
    let entry = |key: &str| entries.clone().find(|entry| entry.key == key);
    let number = |key: &str| match entry(key) {
        Some(entry) => entry.value.parse::<u64>().ok(),
        None => Some(0),
    };
    let location = &entry(LOCATION)?.value;
    // Only a file of the folder itself is read: all other paths are for ONNX Runtime to judge.
    if location.contains(['/', '\\']) || location.starts_with('.') {
        return None;
    }
    let path = dunce::canonicalize(folder.join(location)).ok()?;
    let mut file = File::open(&path).ok().filter(|_| path.is_file())?;
    let (offset, length) = (number("offset")?, number("length")?);
    if offset.checked_add(length)? > file.metadata().ok()?.len() {
        return None;
    }
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    file.read_exact(&mut bytes).ok()?;
    Some(bytes)
}
