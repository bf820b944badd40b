//! JSON as Python's `json.dumps(value, ensure_ascii=False)` writes it, in which models were trained
//! to read states.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use serde::Deserialize;

use crate::question::State;

/// The spelling of a state that was sent as JSON, and not as a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StateJson {
    /// As it was sent.
    #[default]
    AsSent,
    /// As `json.dumps(state, ensure_ascii=False)`.
    Python,
    /// As `json.dumps(state, ensure_ascii=False, sort_keys=True)`.
    PythonSorted,
}

impl StateJson {
    /// Returns the text of a state in this spelling.
    pub fn text(self, state: &State) -> Cow<'_, str> {
        if !state.is_json || self == Self::AsSent {
            return Cow::Borrowed(&state.text);
        }
        Cow::Owned(dumped(&state.text, self == Self::PythonSorted))
    }
}

/// Returns the text of a JSON value as Python reads and writes it. Of members with the same name the
/// last value counts, at the place of the first.
fn dumped(json: &str, sorted: bool) -> String {
    let mut writer = Writer {
        json: json.as_bytes(),
        at: 0,
        sorted,
    };
    let mut out = String::with_capacity(json.len());
    writer.value(&mut out);
    out
}

/// A reader of JSON that was scanned before, so that its syntax and its depth are known to be good.
struct Writer<'a> {
    json: &'a [u8],
    at: usize,
    sorted: bool,
}

impl Writer<'_> {
    /// Skips white space and returns the next byte; a space at the end.
    fn peek(&mut self) -> u8 {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.json.get(self.at) {
            self.at += 1;
        }
        self.json.get(self.at).copied().unwrap_or(b' ')
    }

    fn value(&mut self, out: &mut String) {
        match self.peek() {
            b'{' => self.object(out),
            b'[' => self.list(out),
            b'"' => {
                let text = self.text();
                write_text(out, &text);
            }
            _ => self.scalar(out),
        }
    }

    fn list(&mut self, out: &mut String) {
        self.at += 1;
        out.push('[');
        let mut is_first = true;
        while !matches!(self.peek(), b']' | b' ') {
            if self.peek() == b',' {
                self.at += 1;
            }
            if !is_first {
                out.push_str(", ");
            }
            is_first = false;
            self.value(out);
        }
        self.at += 1;
        out.push(']');
    }

    fn object(&mut self, out: &mut String) {
        self.at += 1;
        let mut members: Vec<(String, String)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        while !matches!(self.peek(), b'}' | b' ') {
            if self.peek() == b',' {
                self.at += 1;
            }
            self.peek();
            let name = self.text();
            // The colon.
            self.peek();
            self.at += 1;
            let mut value = String::new();
            self.value(&mut value);
            match places.get(&name) {
                Some(place) => members[*place].1 = value,
                None => {
                    places.insert(name.clone(), members.len());
                    members.push((name, value));
                }
            }
        }
        self.at += 1;
        if self.sorted {
            // Python compares code points, and so do bytes of UTF-8.
            members.sort_by(|a, b| a.0.cmp(&b.0));
        }
        out.push('{');
        for (index, (name, value)) in members.iter().enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            write_text(out, name);
            out.push_str(": ");
            out.push_str(value);
        }
        out.push('}');
    }

    /// Returns the text of the string that begins here.
    fn text(&mut self) -> String {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.json.get(self.at) {
            self.at += match byte {
                b'\\' => 2,
                _ => 1,
            };
            if *byte == b'"' {
                break;
            }
        }
        let text = self.json.get(start..self.at).unwrap_or_default();
        serde_json::from_slice(text).unwrap_or_default()
    }

    fn scalar(&mut self, out: &mut String) {
        let start = self.at;
        while let Some(byte) = self.json.get(self.at)
            && !matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r')
        {
            self.at += 1;
        }
        if self.at == start {
            // Only a text that is no JSON has nothing here; without this step it would be read for ever.
            self.at += 1;
        }
        let scalar = self.json.get(start..self.at).unwrap_or_default();
        let scalar = std::str::from_utf8(scalar).unwrap_or_default();
        if !scalar.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            out.push_str(scalar);
        } else if scalar.contains(['.', 'e', 'E']) {
            write_float(out, scalar.parse().unwrap_or(f64::NAN));
        } else {
            // Python's integers have any number of digits, and no negative zero.
            out.push_str(if scalar == "-0" { "0" } else { scalar });
        }
    }
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' => {
                // Writing to a `String` cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

/// Writes a number as Python's `repr` does: the fewest digits that give the same number, with an
/// exponent below -4 and from 16 on.
fn write_float(out: &mut String, value: f64) {
    if value.is_infinite() {
        out.push_str(if value < 0.0 { "-Infinity" } else { "Infinity" });
        return;
    }
    let shortest = format!("{value:e}");
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let power: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&power) {
        let plain = value.to_string();
        out.push_str(&plain);
        if !plain.contains('.') {
            out.push_str(".0");
        }
    } else {
        let sign = if power < 0 { '-' } else { '+' };
        // Writing to a `String` cannot fail.
        let _ = write!(out, "{digits}e{sign}{:02}", power.abs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(json: &str, spelling: StateJson) -> String {
        let state = State {
            text: json.to_owned(),
            is_json: true,
        };
        spelling.text(&state).into_owned()
    }

    #[test]
    fn values_are_written_as_python_writes_them() {
        // `json.dumps(json.loads(text), ensure_ascii=False)` in Python 3.11.
        for (json, python) in [
            (
                r#"{"b":1,"a":[true,null , "x"]}"#,
                r#"{"b": 1, "a": [true, null, "x"]}"#,
            ),
            (" [ ] ", "[]"),
            ("{ }", "{}"),
            (r#"{"a":1,"b":2,"a":3}"#, r#"{"a": 3, "b": 2}"#),
            (
                r#"["\u00e9\/\u0000\u001f\b\f\n\r\t\"\\"]"#,
                r#"["é/\u0000\u001f\b\f\n\r\t\"\\"]"#,
            ),
            (
                "[\"\\ud83d\\ude00\u{7f}\u{2028}\"]",
                "[\"😀\u{7f}\u{2028}\"]",
            ),
            (
                "[-0,-0.0,0.0,1.50,1e3,1E+2,12e-7]",
                "[0, -0.0, 0.0, 1.5, 1000.0, 100.0, 1.2e-06]",
            ),
            (
                "[1e15,1e16,1.5e16,1e22,1e-4,1e-5]",
                "[1000000000000000.0, 1e+16, 1.5e+16, 1e+22, 0.0001, 1e-05]",
            ),
            (
                "[5e-324,1e400,-1e400,1.7976931348623157e308]",
                "[5e-324, Infinity, -Infinity, 1.7976931348623157e+308]",
            ),
            (
                "[12345678901234567890123,0.30000000000000004]",
                "[12345678901234567890123, 0.30000000000000004]",
            ),
            ("17", "17"),
            ("null", "null"),
        ] {
            assert_eq!(spelled(json, StateJson::Python), python);
        }
    }

    #[test]
    fn members_are_sorted_by_code_point_at_every_depth() {
        let json = r#"{"b":{"z":1,"B":2,"é":3,"😀":4,"￿":5},"a":0}"#;
        let sorted = r#"{"a": 0, "b": {"B": 2, "z": 1, "é": 3, "￿": 5, "😀": 4}}"#;
        assert_eq!(spelled(json, StateJson::PythonSorted), sorted);
    }

    #[test]
    fn a_text_and_a_state_as_it_was_sent_stay_as_they_are() {
        let state = State::from("{\"b\":1}".to_owned());
        assert_eq!(StateJson::Python.text(&state), "{\"b\":1}");
        assert_eq!(spelled(" {\"b\":1} ", StateJson::AsSent), " {\"b\":1} ");
    }
}
