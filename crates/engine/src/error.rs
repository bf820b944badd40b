//! All errors of the engine, as one enum: stable codes for programs, one line for people.

use std::path::PathBuf;

/// The reason why a request got no answer, or why an engine did not start.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the message of each variant says what it is
pub enum Error {
    #[error("invalid JSON at byte {byte}")]
    InvalidJson { byte: usize },
    #[error("JSON nested too deep")]
    NestedTooDeep,
    #[error("body must be an object")]
    BodyNotObject,
    #[error("{} twice", line(field))]
    DuplicateField { field: String },
    #[error("state missing")]
    StateMissing,
    #[error("states missing")]
    StatesMissing,
    #[error("states must be a list")]
    StatesNotList,
    #[error("questions missing")]
    QuestionsMissing,
    #[error("questions must be an object")]
    QuestionsNotObject,
    #[error("{}: question id used twice", line(id))]
    DuplicateQuestion { id: String },
    #[error("{}: must be an object", line(id))]
    QuestionNotObject { id: String },
    #[error("{}: {} twice", line(id), line(field))]
    DuplicateQuestionField { id: String, field: String },
    #[error("{}: unknown type \"{}\"", line(id), line(kind))]
    UnknownType { id: String, kind: String },
    #[error("{}: instructions must be text", line(id))]
    InstructionsNotText { id: String },
    #[error("{}: missing criteria", line(id))]
    MissingCriteria { id: String },
    #[error("{}: criteria must be an object", line(id))]
    CriteriaNotObject { id: String },
    #[error("{}: criteria must be a list", line(id))]
    CriteriaNotList { id: String },
    #[error("{}: criteria \"{}\" must be text", line(id), line(option))]
    CriterionNotText { id: String, option: String },
    #[error("{}: option \"{}\" twice", line(id), line(option))]
    DuplicateOption { id: String, option: String },
    #[error("{}: need at least two options", line(id))]
    TooFewOptions { id: String },
    #[error("{path}: {problem}")]
    BadField { path: String, problem: &'static str },
    #[error("{actual} questions, the limit is {limit} (max_questions)")]
    TooManyQuestions { limit: usize, actual: usize },
    #[error("{actual} states, the limit is {limit} (max_batch_states)")]
    TooManyStates { limit: usize, actual: usize },
    #[error("too many tokens, the limit is {limit} (max_tokens)")]
    TooManyTokens { limit: usize },
    #[error("{tokens} tokens are beyond the model's window and truncate is \"error\"")]
    TextTooLong { tokens: usize },
    #[error(
        "{tokens} tokens take at least {least_ms} ms on this machine, the limit is {limit_ms} ms (max_run_ms)"
    )]
    RunTooLong {
        tokens: usize,
        least_ms: u64,
        limit_ms: u64,
    },
    #[error("too many requests are waiting")]
    QueueFull { retry_after_seconds: u32 },
    #[error("no turn on the model within {limit_ms} ms (request_timeout_ms)")]
    QueueTimeout {
        limit_ms: u64,
        retry_after_seconds: u32,
    },
    #[error("no answer within the {limit_ms} ms that the request allows")]
    DeadlineExceeded {
        limit_ms: u64,
        retry_after_seconds: u32,
    },
    #[error("not finished after {limit_ms} ms on the model (max_run_ms)")]
    RunTimeout {
        limit_ms: u64,
        retry_after_seconds: u32,
    },
    #[error("the engine is closing")]
    Closing,
    #[error("the caller has gone")]
    Cancelled,
    #[error("the model run failed")]
    ModelFailed { cause: String },
    #[error("the engine failed on this request")]
    Panicked,
    #[error("ONNX Runtime library not found: {}", path.display())]
    RuntimeNotFound { path: PathBuf },
    #[error("ONNX Runtime library {}: {cause}", path.display())]
    RuntimeFailed { path: PathBuf, cause: String },
    #[error("threads must be a whole number from 1 to {limit}, not {actual}")]
    BadThreads { limit: usize, actual: usize },
    #[error("{}: {}", file.display(), cut_line(problem, MAX_PROBLEM_CHARS))]
    BadModel { file: PathBuf, problem: String },
    #[error("device {}: {}", line(device), cut_line(problem, MAX_PROBLEM_CHARS))]
    BadDevice { device: String, problem: String },
}

impl Error {
    /// Returns the stable name of this error, which programs compare and `docs/errors.md` lists.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidJson { .. } => "invalid_json",
            Self::NestedTooDeep => "nested_too_deep",
            Self::BodyNotObject => "body_not_object",
            Self::DuplicateField { .. } | Self::DuplicateQuestionField { .. } => "duplicate_field",
            Self::StateMissing => "state_missing",
            Self::StatesMissing => "states_missing",
            Self::StatesNotList => "states_not_list",
            Self::QuestionsMissing => "questions_missing",
            Self::QuestionsNotObject => "questions_not_object",
            Self::DuplicateQuestion { .. } => "duplicate_question",
            Self::QuestionNotObject { .. } => "question_not_object",
            Self::UnknownType { .. } => "unknown_type",
            Self::InstructionsNotText { .. } => "instructions_not_text",
            Self::MissingCriteria { .. } => "missing_criteria",
            Self::CriteriaNotObject { .. } => "criteria_not_object",
            Self::CriteriaNotList { .. } => "criteria_not_list",
            Self::CriterionNotText { .. } => "criterion_not_text",
            Self::DuplicateOption { .. } => "duplicate_option",
            Self::TooFewOptions { .. } => "too_few_options",
            Self::BadField { .. } => "bad_field",
            Self::TooManyQuestions { .. } => "too_many_questions",
            Self::TooManyStates { .. } => "too_many_states",
            Self::TooManyTokens { .. } => "too_many_tokens",
            Self::TextTooLong { .. } => "text_too_long",
            Self::RunTooLong { .. } => "run_too_long",
            Self::QueueFull { .. } => "queue_full",
            Self::QueueTimeout { .. } => "queue_timeout",
            Self::DeadlineExceeded { .. } => "deadline_exceeded",
            Self::RunTimeout { .. } => "run_timeout",
            Self::Closing => "closing",
            Self::Cancelled => "cancelled",
            Self::ModelFailed { .. } => "model_failed",
            Self::Panicked => "panicked",
            Self::RuntimeNotFound { .. } => "runtime_not_found",
            Self::RuntimeFailed { .. } => "runtime_failed",
            Self::BadThreads { .. } => "bad_threads",
            Self::BadModel { .. } => "bad_model",
            Self::BadDevice { .. } => "bad_device",
        }
    }

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

/// Every code that [`Error::code`] can return, in the order of the enum.
pub const CODES: [&str; 38] = [
    "invalid_json",
    "nested_too_deep",
    "body_not_object",
    "duplicate_field",
    "state_missing",
    "states_missing",
    "states_not_list",
    "questions_missing",
    "questions_not_object",
    "duplicate_question",
    "question_not_object",
    "unknown_type",
    "instructions_not_text",
    "missing_criteria",
    "criteria_not_object",
    "criteria_not_list",
    "criterion_not_text",
    "duplicate_option",
    "too_few_options",
    "bad_field",
    "too_many_questions",
    "too_many_states",
    "too_many_tokens",
    "text_too_long",
    "run_too_long",
    "queue_full",
    "queue_timeout",
    "deadline_exceeded",
    "run_timeout",
    "closing",
    "cancelled",
    "model_failed",
    "panicked",
    "runtime_not_found",
    "runtime_failed",
    "bad_threads",
    "bad_model",
    "bad_device",
];

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
