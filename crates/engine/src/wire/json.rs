//! A reader of JSON that loses nothing: objects keep their order and their duplicates, values keep
//! their raw text.
//!
//! `serde_json` does the parsing; the code here decides what is kept. A body is scanned to its end
//! before anything in it is judged, so a syntax error is reported wherever it stands. Half a
//! surrogate pair, which no text can hold, is read as U+FFFD, as the usual decoders do.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::Error;
use crate::question::State;

/// The deepest nesting of objects and lists, the body itself included.
pub const MAX_DEPTH: usize = 64;

/// The most fields of an object that is not a list of options; no caller has as many.
const MAX_FIELDS: usize = 10_000;

/// The length in bytes from which lists and objects are counted before they are taken apart;
/// shorter ones take little memory.
const COUNTED_BYTES: usize = 64 * 1024;

/// Returns the body with each half of a surrogate pair, such as `\ud83d` of an emoji that was cut,
/// replaced by `\ufffd`, which has the same length, so that nothing else moves.
pub fn mended(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut bytes = Cow::Borrowed(bytes);
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        at += found;
        at += match (
            unit(&bytes[at..]),
            unit(bytes.get(at + 6..).unwrap_or_default()),
        ) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                bytes.to_mut()[at..at + 6].copy_from_slice(b"\\ufffd");
                6
            }
            _ => 2,
        };
        at = at.min(bytes.len());
    }
    bytes
}

/// Returns the UTF-16 unit of an escape at the beginning of the bytes.
fn unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    let mut digits = digits.iter().map(|digit| char::from(*digit).to_digit(16));
    digits.try_fold(0, |unit, digit| Some(unit << 4 | digit? as u16))
}

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
    /// Returns a key that occurs twice, the first one in sorted order.
    pub fn duplicate(&self) -> Option<&str> {
        let mut keys: Vec<&str> = self.0.iter().map(|(key, _)| key.as_ref()).collect();
        keys.sort_unstable();
        keys.windows(2)
            .find(|pair| pair[0] == pair[1])
            .map(|pair| pair[0])
    }

    /// Returns the value of the first member with this key.
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

/// The shape of a JSON value, which its first byte shows.
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

/// Returns the shape of a value that has been scanned.
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
    /// Returns the body after scanning it to its end.
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

    /// Returns the whole text of the body.
    pub fn whole(&self) -> &'a str {
        self.text
    }

    /// Returns the members of an object; `None` where the value is something else.
    ///
    /// # Errors
    /// [`Error::BadField`] for more members than any caller has.
    pub fn members(&self, value: &'a RawValue) -> Result<Option<Members<'a>>, Error> {
        if shape(value) == Shape::Object && count_over(value, MAX_FIELDS).is_some() {
            return Err(Error::BadField {
                path: "body".into(),
                problem: "an object with more than 10000 fields",
            });
        }
        self.all_members(value)
    }

    /// Returns the members of an object, however many; `None` where the value is something else.
    ///
    /// # Errors
    /// No error for a value of a scanned body.
    pub fn all_members(&self, value: &'a RawValue) -> Result<Option<Members<'a>>, Error> {
        if shape(value) != Shape::Object {
            return Ok(None);
        }
        self.parse(value).map(Some)
    }

    /// Returns the items of a list; `None` where the value is something else.
    ///
    /// # Errors
    /// No error for a value of a scanned body.
    pub fn items(&self, value: &'a RawValue) -> Result<Option<Vec<&'a RawValue>>, Error> {
        if shape(value) != Shape::List {
            return Ok(None);
        }
        self.parse(value).map(Some)
    }

    /// Returns the decoded text of a string.
    ///
    /// # Errors
    /// No error for a value of a scanned body.
    pub fn string(&self, value: &'a RawValue) -> Result<String, Error> {
        self.parse(value)
    }

    /// Returns the text that a value gives to the model: for a string its own text, for an object
    /// or list its compact JSON text, for `null` the empty text. `None` for a number or a boolean.
    ///
    /// # Errors
    /// No error for a value of a scanned body.
    pub fn text(&self, value: &'a RawValue) -> Result<Option<String>, Error> {
        match shape(value) {
            Shape::Null => Ok(Some(String::new())),
            Shape::String => self.string(value).map(Some),
            Shape::List | Shape::Object => self.compact(value).map(Some),
            Shape::Scalar => Ok(None),
        }
    }

    /// Returns a value's JSON text without white space: strings without unnecessary escapes,
    /// numbers as they are spelt.
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

    /// Returns the range of a value in the body, in bytes.
    pub fn range(&self, value: &'a RawValue) -> Range<usize> {
        let start = self.start(value.get());
        start..start + value.get().len()
    }

    fn start(&self, slice: &str) -> usize {
        slice.as_ptr() as usize - self.text.as_ptr() as usize
    }
}

/// Returns a state, which is a scanned value at `range` of `body`: the text of a
/// string, or else the JSON text as it was sent.
///
/// # Errors
/// No error for a value of a scanned body.
pub fn state_at(body: &str, range: Range<usize>) -> Result<State, Error> {
    let value = &body[range.clone()];
    if value.starts_with('"') {
        return parse_at(value, range.start).map(String::into);
    }
    Ok(State {
        text: value.to_owned(),
        is_json: true,
    })
}

/// Returns how many items a list or members an object has, if it is long and has more than `most`.
pub fn count_over(value: &RawValue, most: usize) -> Option<usize> {
    let bytes = value.get().as_bytes();
    // An item takes two bytes, its comma included.
    if bytes.len() < COUNTED_BYTES || bytes.len() / 2 <= most {
        return None;
    }
    let (mut depth, mut commas, mut at) = (0, 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string_end(bytes, at) - 1,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            b',' if depth == 1 => commas += 1,
            _ => {}
        }
        at += 1;
    }
    // A long list or object may hold only white space; then the item that is counted too much makes
    // no difference.
    (commas + 1 > most).then_some(commas + 1)
}

/// Parses a piece of a body; `start` is the offset of the piece in the body.
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

/// Returns the offset just after the string that starts at `start`, in text that has been scanned.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// Checks the depth of the nesting in advance, since `serde_json` skips values that it keeps raw
/// without counting their depth.
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

/// Returns the offset of the byte that `serde_json` stopped at; the library counts lines and
/// columns from 1, columns in bytes.
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
    // While the library skips a string, it reports a raw control character at the byte before.
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

    fn mended_text(text: &str) -> String {
        String::from_utf8(mended(text.as_bytes()).into_owned()).expect("UTF-8")
    }

    #[test]
    fn half_a_surrogate_pair_is_a_replacement_character_and_nothing_else_changes() {
        for (sent, read) in [
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""a\uDE00b""#, r#""a\ufffdb""#),
            (
                r#""\ud83d\ud83d\ude00\ude00""#,
                r#""\ufffd\ud83d\ude00\ufffd""#,
            ),
            (
                r#""\ud83d\u0041\ud83d\n\ud83d""#,
                r#""\ufffd\u0041\ufffd\n\ufffd""#,
            ),
            (
                r#"{"\udfff": ["\ud800" , 1.0 ]}"#,
                r#"{"\ufffd": ["\ufffd" , 1.0 ]}"#,
            ),
        ] {
            assert_eq!(mended_text(sent), read);
            assert!(Body::scan(read.as_bytes()).is_ok());
        }
        for same in [
            r#""\ud83d\ude00""#,
            r#""\\ud83d""#,
            r#""\\\\ud83d""#,
            r#""\ud7ff\ue000\uffff""#,
            r#""\ud8""#,
            r#""\ud83"#,
            r#""\ud83g""#,
            r#""\"#,
            r#"\ud83"#,
        ] {
            assert_eq!(mended_text(same), same);
            assert!(matches!(mended(same.as_bytes()), Cow::Borrowed(_)));
        }
        assert_eq!(mended_text(r#""\\\ud83d""#), r#""\\\ufffd""#);
        assert_eq!(mended(b"\"\xff\\ud800\""), b"\"\xff\\ufffd\"".as_slice());
    }

    #[test]
    fn long_lists_and_objects_are_counted_without_taking_them_apart() {
        let count = |text: &str, most| {
            let body = Body::scan(text.as_bytes()).expect("valid");
            count_over(body.root, most)
        };
        let list = format!("[{}0]", "0,".repeat(99_999));
        assert_eq!(count(&list, 99_999), Some(100_000));
        assert_eq!(count(&list, 100_000), None);
        let object = format!(
            "{{{}\"\":0}}",
            "\"\\\",\":[1,{\"a\":2,\"b\":3}],".repeat(9_999)
        );
        assert_eq!(count(&object, 9_999), Some(10_000));
        assert_eq!(count(&object, 10_000), None);
        let strings = format!("[\"{}\",2]", ",".repeat(100_000));
        assert_eq!(count(&strings, 1), Some(2));
    }
}
