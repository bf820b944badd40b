//! All errors of the engine, as one enum: stable codes for programs, one line for people.

use std::path::PathBuf;

/// Declares the errors: each code, and the variants that have it, each with its fields and the text
/// of its message. So no variant is without a code, and no code is missing from the list of all.
macro_rules! errors {
    ($($code:literal: $(
        $variant:ident $({ $($field:ident: $kind:ty),* })? ($($message:tt)*)
    ),+;)*) => {
        /// The reason why a request got no answer, or why an engine did not start.
        #[derive(Debug, Clone, PartialEq, thiserror::Error)]
        #[non_exhaustive]
        #[allow(missing_docs)] // the message of each variant says what it is
        pub enum Error {
            $($(
                #[error($($message)*)]
                $variant $({ $($field: $kind),* })?,
            )+)*
        }

        impl Error {
            /// Returns the stable name of this error, which programs compare and `docs/errors.md`
            /// lists.
            pub fn code(&self) -> &'static str {
                match self {
                    $($(Self::$variant { .. })|+ => $code,)*
                }
            }
        }

        /// Every code that [`Error::code`] can return, in the order of the enum.
        pub const CODES: &[&str] = &[$($code),*];
    };
}

errors! {
    "invalid_json": InvalidJson { byte: usize } ("invalid JSON at byte {byte}");
    "nested_too_deep": NestedTooDeep ("JSON nested too deep");
    "body_not_object": BodyNotObject ("body must be an object");
    "duplicate_field":
        DuplicateField { field: String } ("{} twice", line(field)),
        DuplicateQuestionField { id: String, field: String } ("{}: {} twice", line(id), line(field));
    "state_missing": StateMissing ("state missing");
    "states_missing": StatesMissing ("states missing");
    "states_not_list": StatesNotList ("states must be a list");
    "questions_missing": QuestionsMissing ("questions missing");
    "questions_not_object": QuestionsNotObject ("questions must be an object");
    "duplicate_question": DuplicateQuestion { id: String } ("{}: question id used twice", line(id));
    "question_not_object": QuestionNotObject { id: String } ("{}: must be an object", line(id));
    "unknown_type": UnknownType { id: String, kind: String }
        ("{}: unknown type \"{}\"", line(id), line(kind));
    "instructions_not_text": InstructionsNotText { id: String }
        ("{}: instructions must be text", line(id));
    "missing_criteria": MissingCriteria { id: String } ("{}: missing criteria", line(id));
    "criteria_not_object": CriteriaNotObject { id: String }
        ("{}: criteria must be an object", line(id));
    "criteria_not_list": CriteriaNotList { id: String } ("{}: criteria must be a list", line(id));
    "criterion_not_text": CriterionNotText { id: String, option: String }
        ("{}: criteria \"{}\" must be text", line(id), line(option));
    "duplicate_option": DuplicateOption { id: String, option: String }
        ("{}: option \"{}\" twice", line(id), line(option));
    "too_few_options": TooFewOptions { id: String } ("{}: need at least two options", line(id));
    "bad_field": BadField { path: String, problem: &'static str } ("{path}: {problem}");
    "too_many_questions": TooManyQuestions { limit: usize, actual: usize }
        ("{actual} questions, the limit is {limit} (max_questions)");
    "too_many_states": TooManyStates { limit: usize, actual: usize }
        ("{actual} states, the limit is {limit} (max_batch_states)");
    "too_many_tokens":
        TooManyTokens { limit: usize }
        ("too many tokens, the limit is {limit} (max_tokens)"),
        BeyondModel { limit: usize }
        ("too many tokens for this model, which reads at most {limit} and may not cut these texts");
    "text_too_long": TextTooLong { tokens: usize }
        ("{tokens} tokens are beyond the model's window and truncate is \"error\"");
    "run_too_long": RunTooLong { tokens: usize, least_ms: u64, limit_ms: u64 }
        ("{tokens} tokens take at least {least_ms} ms on this machine, the limit is {limit_ms} ms (max_run_ms)");
    "queue_full": QueueFull { retry_after_seconds: u32 } ("too many requests are waiting");
    "queue_timeout": QueueTimeout { limit_ms: u64, retry_after_seconds: u32 }
        ("no turn on the model within {limit_ms} ms (request_timeout_ms)");
    "deadline_exceeded": DeadlineExceeded { limit_ms: u64, retry_after_seconds: u32 }
        ("no answer within the {limit_ms} ms that the request allows");
    "run_timeout": RunTimeout { limit_ms: u64, retry_after_seconds: u32 }
        ("not finished after {limit_ms} ms on the model (max_run_ms)");
    "closing": Closing ("the engine is closing");
    "cancelled": Cancelled ("the caller has gone");
    "model_failed": ModelFailed { cause: String } ("the model run failed");
    "panicked": Panicked ("the engine failed on this request");
    "runtime_not_found": RuntimeNotFound { path: PathBuf }
        ("ONNX Runtime library not found: {}", path.display());
    "runtime_failed": RuntimeFailed { path: PathBuf, cause: String }
        ("ONNX Runtime library {}: {cause}", path.display());
    "bad_threads": BadThreads { limit: usize, actual: usize }
        ("threads must be a whole number from 1 to {limit}, not {actual}");
    "bad_model": BadModel { file: PathBuf, problem: String }
        ("{}: {}", file.display(), cut_line(problem, MAX_PROBLEM_CHARS));
    "bad_device": BadDevice { device: String, problem: String }
        ("device {}: {}", line(device), cut_line(problem, MAX_PROBLEM_CHARS));
}

impl Error {
    /// Returns the part of the request that is wrong, where it is known: a question's id, or the
    /// path of a field.
    pub fn param(&self) -> Option<&str> {
        match self {
            Self::BadField { path, .. } => Some(path),
            Self::DuplicateQuestion { id }
            | Self::QuestionNotObject { id }
            | Self::DuplicateQuestionField { id, .. }
            | Self::UnknownType { id, .. }
            | Self::InstructionsNotText { id }
            | Self::MissingCriteria { id }
            | Self::CriteriaNotObject { id }
            | Self::CriteriaNotList { id }
            | Self::CriterionNotText { id, .. }
            | Self::DuplicateOption { id, .. }
            | Self::TooFewOptions { id } => Some(id),
            _ => None,
        }
    }

    /// Returns the seconds after which a retry makes sense, where that is known.
    pub fn retry_after_seconds(&self) -> Option<u32> {
        match self {
            Self::QueueFull {
                retry_after_seconds,
            }
            | Self::QueueTimeout {
                retry_after_seconds,
                ..
            }
            | Self::DeadlineExceeded {
                retry_after_seconds,
                ..
            }
            | Self::RunTimeout {
                retry_after_seconds,
                ..
            } => Some(*retry_after_seconds),
            Self::Closing => Some(1),
            _ => None,
        }
    }
}

/// The longest piece of a caller's text that a message repeats, in characters.
const MAX_QUOTED_CHARS: usize = 200;

/// The longest message about a file that is repeated, in characters: it may hold a piece of the
/// file.
const MAX_PROBLEM_CHARS: usize = 600;

/// Makes text from outside fit for a one-line message: invisible characters are escaped, and long
/// text is cut with an ellipsis.
fn line(text: &str) -> String {
    cut_line(text, MAX_QUOTED_CHARS)
}

fn cut_line(text: &str, most_chars: usize) -> String {
    let mut out = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == most_chars {
            out.push('…');
            break;
        }
        if is_unseen(character) {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

/// Whether a character is invisible or changes how other characters are displayed: control and
/// format characters (among them those that set the direction of text and those without a width),
/// line breaks, and fillers.
fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_is_declared_once() {
        let mut codes = CODES.to_vec();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), CODES.len());
    }

    #[test]
    fn a_message_is_one_line_whatever_the_caller_wrote() {
        let error = Error::UnknownType {
            id: "a\nb".into(),
            kind: "x\u{2028}\r".repeat(1000),
        };
        let message = error.to_string();
        assert!(message.starts_with("a\\nb: unknown type \"x\\u{2028}\\r"));
        assert!(!message.contains(['\n', '\r', '\u{2028}']));
        assert!(message.chars().count() < 2_000);
    }

    #[test]
    fn what_cannot_be_seen_in_a_callers_text_is_escaped() {
        let unseen = [
            '\u{200b}'..='\u{200f}',
            '\u{2028}'..='\u{202e}',
            '\u{2066}'..='\u{2069}',
            '\u{feff}'..='\u{feff}',
            '\u{1d173}'..='\u{1d17a}',
            '\u{e0100}'..='\u{e0104}',
        ];
        for character in unseen.into_iter().flatten() {
            let text = format!("a{character}b");
            let shown = format!("a\\u{{{:x}}}b", u32::from(character));
            let (id, option, field, kind) =
                (text.clone(), text.clone(), text.clone(), text.clone());
            for (error, message) in [
                (
                    Error::UnknownType {
                        id: id.clone(),
                        kind,
                    },
                    format!("{shown}: unknown type \"{shown}\""),
                ),
                (
                    Error::DuplicateOption {
                        id: id.clone(),
                        option,
                    },
                    format!("{shown}: option \"{shown}\" twice"),
                ),
                (
                    Error::DuplicateQuestion { id },
                    format!("{shown}: question id used twice"),
                ),
                (Error::DuplicateField { field }, format!("{shown} twice")),
                (
                    Error::BadModel {
                        file: "f".into(),
                        problem: text,
                    },
                    format!("f: {shown}"),
                ),
            ] {
                assert_eq!(error.to_string(), message);
            }
        }
        let id = "größe 日本 😀 שלום".to_owned();
        assert_eq!(
            Error::TooFewOptions { id: id.clone() }.to_string(),
            format!("{id}: need at least two options")
        );
    }
}
