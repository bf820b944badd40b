//! JSON read without losing anything: objects keep their order and their duplicates, values keep their raw text.
//!
//! `serde_json` does the parsing; what is here decides what is kept. A body is scanned to its end before anything
//! in it is judged, so a syntax error is reported wherever it stands.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::Error;

/// How deep objects and lists may be nested, the body itself included.
pub const MAX_DEPTH: usize = 64;

/// The members of a JSON object in the order of the text, duplicates included.
pub struct Members<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(8);
                while let Some(Key(key)) = map.next_key()? {
                    members.push((key, map.next_value()?));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

impl<'a> Members<'a> {
    /// The first key that stands twice.
    pub fn duplicate(&self) -> Option<&str> {
        let mut keys: Vec<&str> = self.0.iter().map(|(key, _)| key.as_ref()).collect();
        keys.sort_unstable();
        keys.windows(2)
            .find(|pair| pair[0] == pair[1])
            .map(|pair| pair[0])
    }

    /// The value of the first member with this key.
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| *value)
    }
}

/// A string that borrows from the body where it has no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(KeyVisitor)
    }
}

/// What a JSON value is, told from its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `null`.
    Null,
    /// `true`, `false` or a number.
    Scalar,
    /// A string.
    String,
    /// A list.
    List,
    /// An object.
    Object,
}

/// The shape of a value that has been scanned.
pub fn shape(value: &RawValue) -> Shape {
    match value.get().as_bytes()[0] {
        b'n' => Shape::Null,
        b'"' => Shape::String,
        b'[' => Shape::List,
        b'{' => Shape::Object,
        _ => Shape::Scalar,
    }
}

/// A whole body that has been scanned: valid JSON, not nested too deep.
#[derive(Clone, Copy)]
pub struct Body<'a> {
    text: &'a str,
    /// The body's one value, without the white space around it.
    pub root: &'a RawValue,
}

impl<'a> Body<'a> {
    /// The body, scanned to its end.
    ///
    /// # Errors
    /// [`Error::InvalidJson`] with the offset of the first byte that cannot stand where it does (the length of the
    /// body where it ends too early), also for bytes that are not UTF-8; [`Error::NestedTooDeep`].
    pub fn scan(bytes: &'a [u8]) -> Result<Self, Error> {
        let text = std::str::from_utf8(bytes).map_err(|error| Error::InvalidJson {
            byte: error.valid_up_to(),
        })?;
        check_depth(bytes)?;
        let root = serde_json::from_str(text).map_err(|error| Error::InvalidJson {
            byte: offset(text, &error),
        })?;
        Ok(Self { text, root })
    }

    /// All of the body.
    pub fn whole(&self) -> &'a str {
        self.text
    }

    /// The members of an object; `None` where the value is something else.
    ///
    /// # Errors
    /// [`Error::InvalidJson`] for a key with half a surrogate pair, which no text can hold.
    pub fn members(&self, value: &'a RawValue) -> Result<Option<Members<'a>>, Error> {
        if shape(value) != Shape::Object {
            return Ok(None);
        }
        self.parse(value).map(Some)
    }

    /// The items of a list; `None` where the value is something else.
    ///
    /// # Errors
    /// None for a value of a scanned body.
    pub fn items(&self, value: &'a RawValue) -> Result<Option<Vec<&'a RawValue>>, Error> {
        if shape(value) != Shape::List {
            return Ok(None);
        }
        self.parse(value).map(Some)
    }

    /// The text of a string, decoded.
    ///
    /// # Errors
    /// [`Error::InvalidJson`] for half a surrogate pair.
    pub fn string(&self, value: &'a RawValue) -> Result<String, Error> {
        self.parse(value)
    }

    /// What a value says to the model: a string its own text, an object or list its compact JSON text, `null`
    /// nothing. `None` for a number or a boolean.
    ///
    /// # Errors
    /// [`Error::InvalidJson`] for half a surrogate pair.
    pub fn text(&self, value: &'a RawValue) -> Result<Option<String>, Error> {
        match shape(value) {
            Shape::Null => Ok(Some(String::new())),
            Shape::String => self.string(value).map(Some),
            Shape::List | Shape::Object => self.compact(value).map(Some),
            Shape::Scalar => Ok(None),
        }
    }

    /// A value's JSON text without white space: strings with no escape that is not needed, numbers as they are spelt.
    fn compact(&self, value: &'a RawValue) -> Result<String, Error> {
        let raw = value.get();
        let bytes = raw.as_bytes();
        let mut out = String::with_capacity(raw.len());
        let mut at = 0;
        while at < bytes.len() {
            if bytes[at] == b'"' {
                let end = string_end(bytes, at);
                let decoded: Cow<'_, str> = self.parse_slice(&raw[at..end])?;
                out.push_str(&serde_json::to_string(&decoded).unwrap_or_default());
                at = end;
            } else {
                if !bytes[at].is_ascii_whitespace() {
                    out.push(char::from(bytes[at]));
                }
                at += 1;
            }
        }
        Ok(out)
    }

    fn parse<T: Deserialize<'a>>(&self, value: &'a RawValue) -> Result<T, Error> {
        self.parse_slice(value.get())
    }

    fn parse_slice<T: Deserialize<'a>>(&self, slice: &'a str) -> Result<T, Error> {
        parse_at(slice, self.start(slice))
    }

    /// Where a value stands in the body, in bytes.
    pub fn range(&self, value: &'a RawValue) -> Range<usize> {
        let start = self.start(value.get());
        start..start + value.get().len()
    }

    fn start(&self, slice: &str) -> usize {
        slice.as_ptr() as usize - self.text.as_ptr() as usize
    }
}

/// The text of a state, a value that has been scanned and stands at `range` of `body`: a string is its own text,
/// anything else its JSON text as it was sent.
///
/// # Errors
/// [`Error::InvalidJson`] for half a surrogate pair.
pub fn state_at(body: &str, range: Range<usize>) -> Result<String, Error> {
    let value = &body[range.clone()];
    if value.starts_with('"') {
        parse_at(value, range.start)
    } else {
        Ok(value.to_owned())
    }
}

/// Parses a piece of a body that starts at `start` of it.
fn parse_at<'a, T: Deserialize<'a>>(slice: &'a str, start: usize) -> Result<T, Error> {
    serde_json::from_str(slice).map_err(|error| Error::InvalidJson {
        byte: start + offset(slice, &error),
    })
}

/// Writes a text as a JSON string.
pub fn write_string(out: &mut String, text: &str) {
    // A `&str` always serializes, so nothing is ever left out.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

/// The offset just behind the string that starts at `start`, in text that has been scanned.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// `serde_json` skips values that it keeps raw without counting their depth, so it is counted here, before.
fn check_depth(bytes: &[u8]) -> Result<(), Error> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in bytes {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(Error::NestedTooDeep);
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

/// The offset of the byte that `serde_json` stopped at; it counts lines and columns from 1, columns in bytes.
fn offset(text: &str, error: &serde_json::Error) -> usize {
    if error.is_eof() {
        return text.len();
    }
    let line_start = if error.line() > 1 {
        let mut breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        breaks.nth(error.line() - 2).map_or(0, |(at, _)| at + 1)
    } else {
        0
    };
    let at = (line_start + error.column()).saturating_sub(1);
    // While it skips a string, it reports a raw control character at the byte before.
    if error.to_string().starts_with("control character") {
        let control = text.bytes().skip(at).position(|byte| byte < b' ');
        return at + control.unwrap_or(0);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn byte(body: &[u8]) -> usize {
        match Body::scan(body) {
            Err(Error::InvalidJson { byte }) => byte,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("accepted"),
        }
    }

    #[test]
    fn a_syntax_error_names_the_first_byte_that_cannot_stand_there() {
        assert_eq!(byte(b""), 0);
        assert_eq!(byte(b"not json"), 1);
        assert_eq!(byte(b"{"), 1);
        assert_eq!(byte(b"{\"a\":1,}"), 7);
        assert_eq!(byte(b"{\n \"a\": x}"), 8);
        assert_eq!(byte(b"{\"a\":\"b\nc\"}"), 7);
        assert_eq!(byte(b"{} x"), 3);
        assert_eq!(byte(b"{\"a\":01}"), 6);
        assert_eq!(byte(b"{\"a\":\"\xff\"}"), 6);
        assert_eq!(byte(b"\xef\xbb\xbf{}"), 0);
    }

    #[test]
    fn nesting_is_counted_outside_strings_only() {
        let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
        assert!(Body::scan(&nested(MAX_DEPTH)).is_ok());
        assert!(matches!(
            Body::scan(&nested(MAX_DEPTH + 1)),
            Err(Error::NestedTooDeep)
        ));
        assert!(matches!(
            Body::scan(&vec![b'{'; 1_000_000]),
            Err(Error::NestedTooDeep)
        ));
        let quoted = format!("\"{}\\\"[\"", "[".repeat(1000));
        assert!(Body::scan(quoted.as_bytes()).is_ok());
    }

    #[test]
    fn compact_text_drops_white_space_and_keeps_numbers_as_spelt() {
        let text = "{ \"a b\" : [ 1.50 , 1e2 , true ] ,\n\"\\u00e9\\n\" : \" x \\\" \" }";
        let body = Body::scan(text.as_bytes()).expect("valid");
        assert_eq!(
            body.text(body.root).expect("text").as_deref(),
            Some("{\"a b\":[1.50,1e2,true],\"é\\n\":\" x \\\" \"}")
        );
    }

    #[test]
    fn half_a_surrogate_pair_is_invalid_where_it_stands() {
        let text = b"  [1, {\"k\": \"ab\\ud800\"}]";
        let body = Body::scan(text).expect("the scan does not decode");
        let Err(Error::InvalidJson { byte }) = body.text(body.root) else {
            panic!("accepted");
        };
        assert!((12..=22).contains(&byte), "{byte}");
    }
}
