//! Tests of kept states: the answers are the same with and without them, and they stay within their
//! bound.

use crate::common::{answers, engine, fixture, options};
use svc_engine::cache::Precision;
use svc_engine::engine::Engine;

/// The bytes of the values of one full chunk of the tiny model: 16 tokens, 2 layers, keys and
/// values, 2 heads of 4 floats.
const VALUES_BYTES: usize = 16 * 2 * 2 * 2 * 4 * 4;
/// The bytes of an entry besides its values and tensors; [`TENSOR_BYTES`] is added for each of its
/// four tensors.
const ENTRY_BYTES: usize = 192;
const TENSOR_BYTES: usize = 576;
const CHUNK_BYTES: usize = VALUES_BYTES + ENTRY_BYTES + 4 * TENSOR_BYTES;

fn cached(limit_bytes: usize) -> Engine {
    let mut options = options(&fixture("shared-state"), 2);
    options.source.state_cache_bytes = limit_bytes;
    Engine::load(options).expect("the model loads")
}

fn body(state: &str) -> String {
    let questions = r#"{"a":{"type":"noul","instructions":"Is this urgent?"},"b":{"type":"choice","criteria":["x","y"]}}"#;
    format!(r#"{{"state":"{state}","questions":{questions}}}"#)
}

/// Returns a text of `chunks` full chunks of single-token words that no other seed shares.
fn state(seed: usize, chunks: usize) -> String {
    let letters = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let words = (0..chunks * 14).map(|at| letters[(at * (seed + 3) + at / 14 + seed * seed) % 8]);
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn answers_are_the_same_to_the_bit_whether_the_state_is_fresh_or_kept() {
    let (with, without) = (cached(1 << 20), engine(&fixture("shared-state"), 2));
    for seed in 0..20 {
        let body = body(&state(seed, 1 + seed % 5));
        let expected = answers(&without, &body);
        for _ in 0..3 {
            assert_eq!(answers(&with, &body), expected);
        }
    }
    let stats = with.cache_stats();
    assert!(stats.hits > stats.misses && stats.misses > 0, "{stats:?}");
    assert_eq!(without.cache_stats().entries, 0);
}

#[test]
fn a_state_whose_beginning_is_known_reads_only_the_rest() {
    let engine = cached(1 << 20);
    let text = state(1, 4);
    let beginning: String = text.split(' ').take(28).collect::<Vec<_>>().join(" ");
    answers(&engine, &body(&beginning));
    let before = engine.cache_stats();
    assert_eq!((before.hits, before.misses, before.entries), (0, 2, 2));
    answers(&engine, &body(&text));
    let after = engine.cache_stats();
    assert_eq!((after.hits, after.misses, after.entries), (2, 4, 4));
    assert_eq!(after.bytes, 4 * CHUNK_BYTES);
}

#[test]
fn what_a_state_says_twice_is_read_once() {
    let engine = cached(1 << 20);
    answers(&engine, &body(&"a ".repeat(3 * 14)));
    assert_eq!(engine.cache_stats().entries, 1);
}

#[test]
fn a_long_state_that_comes_again_is_kept_joined_within_the_same_bound() {
    let engine = cached(1 << 20);
    let body = body(&state(3, 4));
    let all: Vec<String> = (0..4).map(|_| answers(&engine, &body)).collect();
    assert!(all.iter().all(|answers| *answers == all[0]));
    let stats = engine.cache_stats();
    assert_eq!((stats.misses, stats.hits, stats.entries), (4, 12, 5));
    let joined = 4 * VALUES_BYTES + CHUNK_BYTES - VALUES_BYTES;
    assert_eq!(stats.bytes, 4 * CHUNK_BYTES + joined);
}

#[test]
fn the_least_recently_used_chunk_makes_room_and_the_bound_holds() {
    let engine = cached(3 * CHUNK_BYTES);
    let [first, second, third, fourth] = [5, 6, 7, 8].map(|seed| body(&state(seed, 1)));
    for body in [&first, &second, &third, &first, &fourth] {
        answers(&engine, body);
    }
    let full = engine.cache_stats();
    assert_eq!(
        (full.entries, full.evictions, full.bytes),
        (3, 1, 3 * CHUNK_BYTES)
    );
    answers(&engine, &first);
    assert_eq!(
        engine.cache_stats().hits,
        full.hits + 1,
        "it was used after the second"
    );
    answers(&engine, &second);
    assert_eq!(engine.cache_stats().misses, full.misses + 1, "it made room");
}

#[test]
fn of_a_state_larger_than_the_bound_the_beginning_is_kept() {
    let engine = cached(2 * CHUNK_BYTES);
    let text = state(9, 5);
    answers(&engine, &body(&text));
    assert_eq!(engine.cache_stats().entries, 2);
    answers(&engine, &body(&text));
    let stats = engine.cache_stats();
    assert_eq!((stats.hits, stats.misses, stats.evictions), (2, 8, 0));
}

#[test]
fn a_state_that_many_ask_about_at_once_is_read_once() {
    let engine = cached(1 << 20);
    let body = body(&state(2, 3));
    let all: Vec<String> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..10)
            .map(|_| scope.spawn(|| answers(&engine, &body)))
            .collect();
        asked
            .into_iter()
            .map(|asked| asked.join().expect("an answer"))
            .collect()
    });
    assert!(all.iter().all(|answers| *answers == all[0]));
    assert_eq!(engine.cache_stats().misses, 3);
}

#[test]
fn in_16_bits_a_state_takes_half_and_answers_the_same_to_the_bit_whether_fresh_or_kept() {
    let halved = |limit_bytes| {
        let mut options = options(&fixture("shared-state"), 2);
        options.source.state_cache_bytes = limit_bytes;
        options.source.state_cache_precision = Precision::Fp16;
        Engine::load(options).expect("the model loads")
    };
    let (with, without, exact) = (halved(1 << 20), halved(0), cached(0));
    let mut differ = 0;
    for seed in 0..20 {
        let body = body(&state(seed, 1 + seed % 5));
        let expected = answers(&without, &body);
        for _ in 0..3 {
            assert_eq!(answers(&with, &body), expected);
        }
        differ += usize::from(answers(&exact, &body) != expected);
    }
    assert!(differ > 0, "16 bits must be used at all");
    let single = halved(1 << 20);
    answers(&single, &body(&state(1, 1)));
    let packed = VALUES_BYTES / 2 + ENTRY_BYTES;
    assert_eq!(single.cache_stats().bytes, packed);
    let bounded = halved(2 * packed);
    answers(&bounded, &body(&state(9, 5)));
    assert_eq!(bounded.cache_stats().entries, 2);
}
