//! Tests of the memory that parsing takes, counted by an allocator of their own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use svc_engine::Error;
use svc_engine::wire::{Format, Most, batch};

/// The system's allocator, with notes of the bytes that each thread holds and has held at most.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn note(bytes: isize) {
    let held = HELD.get() + bytes;
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
}

// SAFETY: every call is passed unchanged to the system's allocator; the notes are in cells that
// never allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(-(layout.size() as isize));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the result of `work`, and the bytes that it holds at its peak beyond those that were
/// held before it.
fn peak_bytes<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = work();
    (result, (PEAK.get() - before) as usize)
}

const MOST: Most = Most {
    questions: 1_024,
    tokens: 131_072,
};

/// The most bytes that a refusal may take: the text of a body of 8 MiB is not copied, and none of
/// its parts is made.
const FLAT_BYTES: usize = 1 << 20;

fn refused(format: Format, body: &str) -> String {
    let (parsed, peak) = peak_bytes(|| format.parse(body.as_bytes(), MOST));
    assert!(peak < FLAT_BYTES, "{peak} bytes for {} of body", body.len());
    parsed.expect_err("far too much").code().to_owned()
}

fn question(kind: &str, criteria: &str) -> String {
    format!(r#"{{"state":"s","questions":{{"q":{{"type":"{kind}","criteria":{criteria}}}}}}}"#)
}

#[test]
fn far_too_many_options_questions_or_fields_are_refused_before_they_are_made() {
    let list = |item: &str| format!("[{}{item}]", format!("{item},").repeat(999_999));
    let object = format!("{{{}\"\":0}}", "\"\":0,".repeat(999_999));
    let one = Format::SystemOne;
    for criteria in [list("null"), list("\"a\""), object.clone()] {
        for kind in ["score", "choice", "noul"] {
            if kind != "noul" || criteria.starts_with('{') {
                assert_eq!(refused(one, &question(kind, &criteria)), "too_many_tokens");
            }
        }
    }
    let questions = format!(r#"{{"state":"s","questions":{object}}}"#);
    assert_eq!(refused(one, &questions), "too_many_questions");
    assert_eq!(refused(one, &object), "bad_field");
    let fields = format!(r#"{{"state":"s","questions":{{"q":{object}}}}}"#);
    assert_eq!(refused(one, &fields), "bad_field");
    for (body, code) in [
        (format!(r#"{{"input":{}}}"#, list("{}")), "too_many_tokens"),
        (
            format!(r#"{{"input":"s","questions":{}}}"#, list("{}")),
            "too_many_questions",
        ),
        (
            format!(
                r#"{{"input":"s","questions":[{{"type":"choice","choices":{}}}]}}"#,
                list("{}")
            ),
            "too_many_tokens",
        ),
    ] {
        assert_eq!(refused(Format::Decisions, &body), code);
    }
    let body = format!(r#"{{"states":{}}}"#, list("0")).into_bytes();
    let (parsed, peak) = peak_bytes(|| batch::parse(body, 10_000, MOST));
    assert!(peak < FLAT_BYTES, "{peak} bytes");
    let (limit, actual) = (10_000, 1_000_000);
    assert_eq!(
        parsed.expect_err("too many"),
        Error::TooManyStates { limit, actual }
    );
}

#[test]
fn options_are_counted_over_all_questions() {
    let questions = |count: usize| {
        let levels = vec!["null"; 200].join(",");
        let questions =
            (0..count).map(|id| format!(r#""{id}":{{"type":"score","criteria":[{levels}]}}"#));
        let questions: Vec<String> = questions.collect();
        format!(r#"{{"state":"s","questions":{{{}}}}}"#, questions.join(","))
    };
    let parse = |count| Format::SystemOne.parse(questions(count).as_bytes(), MOST);
    assert!(parse(655).is_ok());
    let limit = MOST.tokens;
    assert_eq!(parse(656).map(|_| ()), Err(Error::TooManyTokens { limit }));
}
