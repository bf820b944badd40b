//! Tests of models whose texts are read apart: what is read once and kept, and that an answer is the
//! same bits whatever else is asked.

use std::path::PathBuf;

use crate::common::{answer, answers, engine, fixture, options};
use serde_json::Value;
use svc_engine::cache::Precision;
use svc_engine::engine::Engine;

const READ_ONCE: [&str; 2] = ["jevhome-e", "decima-read-once"];
const WITH_QUESTION: [&str; 2] = ["decima-with-question", "decima-bare"];

fn folder(name: &str) -> PathBuf {
    fixture("published").join(name)
}

fn cached(name: &str, precision: Precision) -> Engine {
    let mut options = options(&folder(name), 2);
    options.source.state_cache_bytes = 1 << 20;
    options.source.state_cache_precision = precision;
    Engine::load(options).expect("the model loads")
}

const QUESTIONS: [&str; 4] = [
    r#""a":{"type":"noul","instructions":"Is this urgent?","criteria":{"true":"it is late"}}"#,
    r#""b":{"type":"choice","instructions":"Which team?","criteria":{"billing":"invoices and payments","tech":null,"sales":"price"}}"#,
    r#""c":{"type":"score","instructions":"How angry?","criteria":["calm","annoyed","furious, and at the phone"]}"#,
    r#""d":{"type":"choice","instructions":"Which team?","criteria":["billing","tech","it"]}"#,
];

fn body(state: &str, questions: &[&str]) -> String {
    let questions = questions.join(",");
    format!(r#"{{"state":"{state}","questions":{{{questions}}}}}"#)
}

#[test]
fn an_answer_is_the_same_to_the_bit_whatever_else_is_asked_or_kept() {
    for name in READ_ONCE.into_iter().chain(WITH_QUESTION) {
        let with = cached(name, Precision::Fp32);
        let alone = [1, 2].map(|threads| engine(&folder(name), threads));
        for state in ["the order was late", "", "nobody answers the phone"] {
            let expected = answer(&alone[0], &body(state, &QUESTIONS));
            for (index, question) in QUESTIONS.into_iter().enumerate() {
                let id = question[1..2].to_owned();
                let engines = alone.iter().chain([&with, &with]);
                for engine in engines {
                    let got = answer(engine, &body(state, &[question]));
                    assert_eq!(
                        got["answers"][&id], expected["answers"][&id],
                        "{name}: {index}"
                    );
                }
            }
            let all = answer(&with, &body(state, &QUESTIONS));
            assert_eq!(all["answers"], expected["answers"], "{name}");
        }
        assert!(with.cache_stats().hits > 0);
        assert_eq!(alone[0].cache_stats().entries, 0);
    }
}

#[test]
fn a_state_is_read_once_for_all_questions_and_then_kept_as_its_options_are() {
    let options = 2 + 3 + 3 + 3;
    for name in READ_ONCE {
        let engine = cached(name, Precision::Fp32);
        answers(&engine, &body("late", &QUESTIONS));
        let first = engine.cache_stats();
        // The option "tech" is asked about twice with the same instructions.
        let texts = 1 + options - 1;
        assert_eq!((first.misses, first.hits), (texts, 0), "{name}");
        assert_eq!(first.entries as u64, texts);
        answers(&engine, &body("late", &QUESTIONS));
        assert_eq!(engine.cache_stats().hits, texts, "{name}");
        answers(&engine, &body("twice", &QUESTIONS));
        let third = engine.cache_stats();
        assert_eq!(third.misses, texts + 1, "{name}: only the state is new");
    }
}

#[test]
fn a_state_behind_a_question_is_read_for_each_question() {
    for name in WITH_QUESTION {
        let engine = cached(name, Precision::Fp32);
        answers(&engine, &body("late", &QUESTIONS[..3]));
        let misses = engine.cache_stats().misses;
        assert_eq!(misses, 3 + 2 + 3 + 3, "{name}");
        answers(&engine, &body("late", &QUESTIONS[..1]));
        assert_eq!(engine.cache_stats().misses, misses, "{name}");
    }
}

#[test]
fn kept_texts_in_16_bits_change_no_answer_between_fresh_and_kept() {
    for name in READ_ONCE {
        let (full, half) = (cached(name, Precision::Fp32), cached(name, Precision::Fp16));
        let body = body("the order was late", &QUESTIONS);
        let fresh = answers(&half, &body);
        assert_eq!(answers(&half, &body), fresh);
        assert_ne!(answers(&full, &body), fresh);
        assert!(half.cache_stats().bytes < full.cache_stats().bytes);
    }
}

/// Returns how many tokens of a state of so many words are left out.
fn truncated(engine: &Engine, words: usize, questions: &[&str]) -> u64 {
    let state = vec!["x"; words].join(" ");
    let got: Value = answer(engine, &body(&state, questions));
    got["usage"]["truncated_tokens"].as_u64().unwrap_or(0)
}

#[test]
fn what_is_cut_of_a_state_counts_once_or_for_each_question_that_it_is_cut_in() {
    for name in READ_ONCE {
        let engine = engine(&folder(name), 1);
        let base = truncated(&engine, 1, &QUESTIONS);
        let left_out = truncated(&engine, 700, &QUESTIONS);
        assert!(left_out > base);
        assert_eq!(truncated(&engine, 701, &QUESTIONS) - left_out, 2, "{name}");
    }
    for name in WITH_QUESTION {
        let engine = engine(&folder(name), 1);
        let left_out = truncated(&engine, 700, &QUESTIONS[..3]);
        let more = truncated(&engine, 701, &QUESTIONS[..3]);
        assert_eq!(more - left_out, 3 * 2, "{name}");
    }
}

#[test]
fn the_tokens_of_an_option_that_is_cut_are_counted() {
    let question = |count: usize| {
        let long = vec!["x"; count].join(" ");
        format!(
            r#""a":{{"type":"choice","instructions":"which","criteria":{{"b":"{long}","c":null}}}}"#
        )
    };
    for name in READ_ONCE.into_iter().chain(WITH_QUESTION) {
        let engine = engine(&folder(name), 1);
        assert_eq!(truncated(&engine, 1, &[&question(1)]), 0, "{name}");
        let (less, more) = (question(300), question(301));
        let difference = truncated(&engine, 1, &[&more]) - truncated(&engine, 1, &[&less]);
        assert_eq!(difference, 2, "{name}");
    }
}
