//! The properties that hold for every request, whatever its shape.

use svc_engine::Error;
use svc_engine::question::Request;
use svc_engine::wire::Most;

/// The bounds of the targets: small, so that short bodies reach them.
pub const MOST: Most = Most {
    questions: 8,
    tokens: 64,
};

/// Checks that a bad request is reported in one short line without a control character, with a code
/// that is the caller's fault.
pub fn check_error(error: &Error) {
    let message = error.to_string();
    assert!(!message.chars().any(char::is_control), "{message:?}");
    assert!(message.chars().count() < 6_000, "{message:?}");
    let theirs = !matches!(
        error.code(),
        "model_failed" | "panicked" | "closing" | "cancelled"
    );
    assert!(theirs, "{error}");
}

#[allow(dead_code)] // a batch has no single request
/// Checks that a good request has questions within the bounds, each with at least two outcomes.
pub fn check_request(request: &Result<Request, Error>) {
    let request = match request {
        Ok(request) => request,
        Err(error) => return check_error(error),
    };
    assert!((1..=MOST.questions).contains(&request.questions.len()));
    let outcomes: usize = request
        .questions
        .iter()
        .map(|question| question.outcomes.len())
        .sum();
    assert!(outcomes <= MOST.tokens);
    for question in &request.questions {
        assert!(question.outcomes.len() >= 2);
        assert!(!question.canonical_json().is_empty());
    }
}
