//! A graph's file without the values of its large weights, which say where in the file they are.
//!
//! The weights can then be read one by one into the memory that they stay in.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use prost::Message;
use prost::bytes::Bytes;
use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint, int32};

use super::proto::{KeyValue, LOCATION, OUTSIDE, graph_tag, model_tag, put, tensor_tag};
use super::weights::LEAST_BYTES;

/// Returns the graph in a file; weights of 16 KiB or more are said to be in that file, as in one
/// beside the graph.
///
/// # Errors
/// Those of reading, and `InvalidData` where the file is no message.
pub fn sparse_graph(file: &Path) -> io::Result<Bytes> {
    let name = file.file_name().and_then(|name| name.to_str());
    let name = name.ok_or(ErrorKind::InvalidData)?;
    let opened = File::open(file)?;
    let length = opened.metadata()?.len();
    let mut reader = Reader {
        reader: BufReader::new(opened),
        place: 0,
    };
    let mut model = Vec::new();
    reader.copy(length, &mut model, &mut |reader, tag, end, model| {
        if tag != model_tag::GRAPH {
            return Ok(false);
        }
        let mut graph = Vec::new();
        reader.copy(end, &mut graph, &mut |reader, tag, end, graph| {
            if tag != graph_tag::INITIALIZER {
                return Ok(false);
            }
            put(graph, tag, &reader.tensor(end, name)?);
            Ok(true)
        })?;
        put(model, tag, &graph);
        Ok(true)
    })?;
    Ok(model.into())
}

/// A file that is read field by field.
struct Reader {
    reader: BufReader<File>,
    place: u64,
}

/// A function that reads the content of a field, up to `end`, and adds what it makes of it to a
/// message; returns false without doing so where the field is to be copied.
type Change<'c> = &'c mut dyn FnMut(&mut Reader, u32, u64, &mut Vec<u8>) -> io::Result<bool>;

impl Reader {
    /// Copies the fields up to `end`, except those that `change` takes.
    fn copy(&mut self, end: u64, message: &mut Vec<u8>, change: Change<'_>) -> io::Result<()> {
        while self.place < end {
            let (tag, wire) = self.key()?;
            let length = match wire {
                WireType::LengthDelimited => self.varint()?,
                WireType::Varint => {
                    encode_key(tag, wire, message);
                    encode_varint(self.varint()?, message);
                    continue;
                }
                WireType::SixtyFourBit => 8,
                WireType::ThirtyTwoBit => 4,
                _ => return Err(ErrorKind::InvalidData.into()),
            };
            let field_end = self.place.checked_add(length).filter(|it| *it <= end);
            let field_end = field_end.ok_or(ErrorKind::InvalidData)?;
            let has_length = wire == WireType::LengthDelimited;
            if has_length && change(self, tag, field_end, message)? {
                continue;
            }
            encode_key(tag, wire, message);
            if has_length {
                encode_varint(length, message);
            }
            self.take(length, message)?;
        }
        match self.place == end {
            true => Ok(()),
            false => Err(ErrorKind::InvalidData.into()),
        }
    }

    /// Returns a tensor, the large values of which are said to be in the file `name`.
    fn tensor(&mut self, end: u64, name: &str) -> io::Result<Vec<u8>> {
        let mut tensor = Vec::new();
        let mut values = None;
        self.copy(end, &mut tensor, &mut |reader, tag, end, _| {
            let length = end - reader.place;
            if tag != tensor_tag::RAW_DATA || length < LEAST_BYTES as u64 {
                return Ok(false);
            }
            values = Some((reader.place, length));
            reader.skip(length)?;
            Ok(true)
        })?;
        if let Some((offset, length)) = values {
            for entry in [
                KeyValue::new(LOCATION, name),
                KeyValue::new("offset", offset.to_string()),
                KeyValue::new("length", length.to_string()),
            ] {
                let entry = entry.encode_to_vec();
                put(&mut tensor, tensor_tag::EXTERNAL_DATA, &entry);
            }
            int32::encode(tensor_tag::DATA_LOCATION, &OUTSIDE, &mut tensor);
        }
        Ok(tensor)
    }

    fn key(&mut self) -> io::Result<(u32, WireType)> {
        let mut key = Vec::new();
        encode_varint(self.varint()?, &mut key);
        decode_key(&mut key.as_slice()).map_err(|_| ErrorKind::InvalidData.into())
    }

    fn varint(&mut self) -> io::Result<u64> {
        let mut bytes = Vec::new();
        loop {
            let byte = *self
                .reader
                .fill_buf()?
                .first()
                .ok_or(ErrorKind::InvalidData)?;
            self.reader.consume(1);
            self.place += 1;
            bytes.push(byte);
            if byte & 0x80 == 0 || bytes.len() == 10 {
                return decode_varint(&mut bytes.as_slice())
                    .map_err(|_| ErrorKind::InvalidData.into());
            }
        }
    }

    fn take(&mut self, length: u64, message: &mut Vec<u8>) -> io::Result<()> {
        let taken = self.reader.by_ref().take(length).read_to_end(message)?;
        self.place += length;
        match taken as u64 == length {
            true => Ok(()),
            false => Err(ErrorKind::UnexpectedEof.into()),
        }
    }

    fn skip(&mut self, length: u64) -> io::Result<()> {
        let by = i64::try_from(length).map_err(|_| ErrorKind::InvalidData)?;
        self.reader.seek_relative(by)?;
        self.place += length;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::proto::Node;
    use super::super::proto::{Tensor, data_type};
    use super::super::weights::{Values, take_apart};
    use super::*;

    fn tensor(name: &str, length: usize) -> Tensor {
        let values = (0..length).map(|place| place as u8).collect::<Vec<u8>>();
        Tensor {
            name: name.into(),
            dims: vec![length as i64],
            data_type: data_type::UINT8,
            raw_data: Some(values.into()),
            ..Tensor::default()
        }
    }

    fn model() -> Vec<u8> {
        let mut graph = Vec::new();
        let tensors = [
            tensor("small", 100),
            tensor("large", LEAST_BYTES),
            tensor("unread", LEAST_BYTES),
        ];
        for tensor in &tensors {
            put(&mut graph, graph_tag::INITIALIZER, &tensor.encode_to_vec());
        }
        let node = Node::of("Add", &["small", "large"], &["sum"]);
        put(&mut graph, graph_tag::NODE, &node.encode_to_vec());
        let mut model = vec![8, 9];
        put(&mut model, model_tag::GRAPH, &graph);
        put(&mut model, model_tag::OPERATORS, &[16, 17]);
        model
    }

    #[test]
    fn large_values_stay_in_the_file_and_are_found_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.onnx");
        std::fs::write(&file, model()).expect("a file");
        let sparse = sparse_graph(&file).expect("a graph");
        assert!(sparse.len() < 1_000, "{} bytes", sparse.len());
        let from_file = take_apart(&sparse, folder.path()).expect("weights");
        let whole = take_apart(&model().into(), Path::new("/not there")).expect("weights");
        assert_eq!(from_file.weights, whole.weights);
        assert_eq!(from_file.weights.len(), 1);
        let Values::U8(values) = &from_file.weights[0].values else {
            panic!("other values");
        };
        assert_eq!((values.len(), values[300]), (LEAST_BYTES, 44));
    }

    #[test]
    fn a_file_that_is_cut_anywhere_is_no_graph_or_a_shorter_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.onnx");
        let model = model();
        let inside = 2 + 4;
        for length in [3, inside, 200, model.len() - 5, model.len() - 1] {
            std::fs::write(&file, &model[..length]).expect("a file");
            assert!(sparse_graph(&file).is_err(), "{length} bytes");
        }
        assert!(sparse_graph(&folder.path().join("none")).is_err());
    }
}
