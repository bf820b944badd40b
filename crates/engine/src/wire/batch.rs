//! `POST /v1/systemone/batch`: many states, one set of questions, the results in the order of the states.

use std::borrow::Cow;
use std::ops::Range;

use super::json::{Body, Shape, count_over, mended, shape, state_at, write_string};
use super::systemone::{parse_questions, write_usage};
use super::{MODEL, Most, Usage};
use crate::Error;
use crate::question::{Question, State};

/// The states of a batch, as they are in its body.
#[derive(Debug)]
pub struct States {
    body: String,
    ranges: Vec<Range<usize>>,
}

impl States {
    /// Returns the number of states.
    pub fn count(&self) -> usize {
        self.ranges.len()
    }

    /// Returns a state.
    ///
    /// # Errors
    /// No error for states that were parsed.
    pub fn state(&self, index: usize) -> Result<State, Error> {
        state_at(&self.body, self.ranges[index].clone())
    }
}

/// Parses the body of a batch: its states and its questions. The text of a state is read when its
/// turn comes, since one bad state must not fail the others.
///
/// # Errors
/// The first problem, in this order: JSON, the top level, the states, then the questions as they
/// stand.
pub fn parse(
    bytes: Vec<u8>,
    max_states: usize,
    most: Most,
) -> Result<(States, Vec<Question>), Error> {
    let bytes = match mended(&bytes) {
        Cow::Borrowed(_) => bytes,
        Cow::Owned(mended) => mended,
    };
    let (ranges, questions) = read(&bytes, max_states, most)?;
    // A scanned body is UTF-8.
    let body = String::from_utf8(bytes).map_err(|_| Error::InvalidJson { byte: 0 })?;
    Ok((States { body, ranges }, questions))
}

fn read(
    bytes: &[u8],
    max_states: usize,
    most: Most,
) -> Result<(Vec<Range<usize>>, Vec<Question>), Error> {
    let body = Body::scan(bytes)?;
    let top = body.members(body.root)?.ok_or(Error::BodyNotObject)?;
    if let Some(field) = top.duplicate() {
        let field = field.to_owned();
        return Err(Error::DuplicateField { field });
    }
    let states = top.get("states");
    let states = states.filter(|states| shape(states) != Shape::Null);
    let states = states.ok_or(Error::StatesMissing)?;
    let too_many = |actual| Error::TooManyStates {
        limit: max_states,
        actual,
    };
    if let Some(actual) = count_over(states, max_states).filter(|_| shape(states) == Shape::List) {
        return Err(too_many(actual));
    }
    let states = body.items(states)?.ok_or(Error::StatesNotList)?;
    if states.len() > max_states {
        return Err(too_many(states.len()));
    }
    let questions = top.get("questions").ok_or(Error::QuestionsMissing)?;
    let questions = parse_questions(&body, questions, most)?;
    let states = states.into_iter().map(|state| body.range(state));
    Ok((states.collect(), questions))
}

/// The format in which the results of a batch are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// One JSON document.
    Document,
    /// A line for each result, and one at the end for all results.
    Lines,
}

impl Framing {
    /// Returns the text before the first result.
    pub fn begin(self) -> String {
        match self {
            Self::Document => format!("{{\"model\":\"{MODEL}\",\"results\":["),
            Self::Lines => String::new(),
        }
    }

    /// Writes a result after the earlier ones.
    pub fn write(self, out: &mut Vec<u8>, result: &[u8], is_first: bool) {
        if self == Self::Document && !is_first {
            out.push(b',');
        }
        out.extend_from_slice(result);
        if self == Self::Lines {
            out.push(b'\n');
        }
    }

    /// Returns the text after the last result.
    pub fn end(self, usage: &Usage) -> String {
        let mut out = match self {
            Self::Document => "],\"usage\":".to_owned(),
            Self::Lines => format!("{{\"model\":\"{MODEL}\",\"usage\":"),
        };
        write_usage(&mut out, usage);
        out.push('}');
        if self == Self::Lines {
            out.push('\n');
        }
        out
    }
}

/// Writes the result of a state that got no answer.
pub fn write_error(error: &Error) -> Vec<u8> {
    let mut out = format!(
        "{{\"error\":{{\"error_type\":\"{}\",\"message\":",
        error.code()
    );
    write_string(&mut out, &error.to_string());
    out.push_str("}}");
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTIONS: &str = r#""questions":{"a":{"type":"noul"}}"#;

    fn parsed(body: &str) -> Result<(States, Vec<Question>), Error> {
        let most = Most {
            questions: 2,
            ..Most::ANY
        };
        parse(body.as_bytes().to_vec(), 3, most)
    }

    fn refused(body: &str) -> String {
        parsed(body).expect_err("a bad batch").to_string()
    }

    #[test]
    fn states_are_what_they_are_in_a_single_request() {
        let body = format!(r#"{{"states":["a\nb", {{"b": 1.0}} ,"a\ud800"],{QUESTIONS}}}"#);
        let (states, questions) = parsed(&body).expect("a batch");
        assert_eq!((states.count(), questions.len()), (3, 1));
        let text = |index| states.state(index).map(|state| (state.text, state.is_json));
        assert_eq!(text(0), Ok(("a\nb".into(), false)));
        assert_eq!(text(1), Ok((r#"{"b": 1.0}"#.into(), true)));
        assert_eq!(text(2), Ok(("a\u{fffd}".into(), false)));
        assert!(parsed(&format!("{{\"states\":[],{QUESTIONS}}}")).is_ok());
    }

    #[test]
    fn results_are_one_document_or_a_line_each_and_an_error_is_one_of_them() {
        let usage = Usage {
            input_tokens: 7,
            truncated_tokens: 0,
            server_ms: 1.0,
        };
        let id = "a\"b".to_owned();
        let error = write_error(&Error::TooFewOptions { id });
        let framed = |framing: Framing| {
            let mut out = framing.begin().into_bytes();
            framing.write(&mut out, b"{}", true);
            framing.write(&mut out, &error, false);
            out.extend(framing.end(&usage).into_bytes());
            String::from_utf8(out).expect("text")
        };
        let error = r#"{"error":{"error_type":"too_few_options","message":"a\"b: need at least two options"}}"#;
        let usage = r#""usage":{"input_tokens":7,"output_tokens":0,"server_ms":1}"#;
        assert_eq!(
            framed(Framing::Document),
            format!("{{\"model\":\"svc\",\"results\":[{{}},{error}],{usage}}}")
        );
        assert_eq!(
            framed(Framing::Lines),
            format!("{{}}\n{error}\n{{\"model\":\"svc\",{usage}}}\n")
        );
    }

    #[test]
    fn what_is_wrong_with_all_of_it_is_an_error_of_all_of_it() {
        assert_eq!(refused("[]"), "body must be an object");
        assert_eq!(refused("{\"states\":[1"), "invalid JSON at byte 12");
        assert_eq!(refused(&format!("{{{QUESTIONS}}}")), "states missing");
        assert_eq!(refused(r#"{"states":null}"#), "states missing");
        assert_eq!(refused(r#"{"states":{}}"#), "states must be a list");
        assert_eq!(refused(r#"{"states":[],"states":[]}"#), "states twice");
        assert_eq!(refused(r#"{"states":[1]}"#), "questions missing");
        assert_eq!(
            refused(r#"{"states":[1,2,3,4]}"#),
            "4 states, the limit is 3 (max_batch_states)"
        );
        let many = format!(r#"{{"states":[{}1]}}"#, "1,".repeat(99_999));
        assert_eq!(
            refused(&many),
            "100000 states, the limit is 3 (max_batch_states)"
        );
        assert_eq!(
            refused(r#"{"states":[1],"questions":{"a":{}}}"#),
            "a: unknown type \"\""
        );
    }
}
