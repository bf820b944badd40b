//! The guarantees of batches, on an engine with a fake model.

use std::sync::atomic::Ordering;

use super::*;
use crate::engine::BatchArrival;
use crate::engine::rig::{Rig, until};

#[test]
fn a_batch_encodes_its_questions_once_and_keeps_the_order_of_its_states() {
    let rig = Rig::new(|_| {});
    let states: Vec<String> = (0..500).map(|length| "x".repeat(length)).collect();
    let states: Vec<&str> = states.iter().map(String::as_str).collect();
    let batch = rig.batch(1, &states, 1);
    let (results, failure) = rig.rest(&batch);
    assert_eq!((results.len(), failure), (500, None));
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(rig.fake.encoded_questions.load(Ordering::SeqCst), 1);
    assert_eq!(*rig.fake.ran.lock(), (0..500).collect::<Vec<_>>());
    rig.until_empty();
}

#[test]
fn the_last_chunk_of_an_engine_that_is_gone_says_so() {
    let chunk = Chunk::closing();
    assert!(chunk.bytes.is_empty() && chunk.results.is_empty());
    assert_eq!(chunk.end, Some(Err(Error::Closing)));
}

#[test]
fn a_batch_is_encoded_ahead_of_the_model_by_so_many_states_or_tokens() {
    // One state is in the queue; behind it 32 are ready, or as many as have 16,384 tokens.
    for (state, ahead) in [("state", 1 + 32), ("thousand", 1 + 17)] {
        let rig = Rig::new(|options| options.max_tokens = 1_000);
        rig.hold();
        let before = rig.fake.encoded_states.load(Ordering::SeqCst);
        let encoded = || rig.fake.encoded_states.load(Ordering::SeqCst) - before;
        let batch = rig.batch(1, &[state; 100], 1);
        until("enough are encoded", || encoded() >= ahead);
        // If more states were encoded, they would be encoded at once.
        std::thread::sleep(Duration::from_millis(10));
        assert_eq!(encoded(), ahead, "{state}");
        rig.open.send(()).expect("waits");
        let (results, failure) = rig.rest(&batch);
        assert_eq!((results.len(), failure), (100, None));
        assert!(results.iter().all(Result::is_ok), "{state}");
    }
}

#[test]
fn a_bad_state_fails_alone() {
    let rig = Rig::new(|_| {});
    let states = ["a", "panic in encode", "b", "long", "panic in run", "c"];
    let batch = rig.batch(1, &states, 1);
    let chunk = rig.pull(&batch, MAX_UNREAD_BYTES);
    let codes = chunk.results.iter();
    let codes = codes.map(|result| result.as_ref().err().map_or("", Error::code));
    assert_eq!(
        codes.collect::<Vec<_>>(),
        ["", "panicked", "", "too_many_tokens", "panicked", ""]
    );
    let text = String::from_utf8(chunk.bytes).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[3],
        r#"{"error":{"error_type":"too_many_tokens","message":"too many tokens, the limit is 100 (max_tokens)"}}"#
    );
    assert!(lines[6].starts_with(r#"{"model":"svc","usage":{"input_tokens":9,"#));
    assert!(matches!(chunk.end, Some(Ok(_))));
}

#[test]
fn the_usage_of_a_batch_adds_up_that_of_its_states() {
    let rig = Rig::new(|_| {});
    let batch = rig.batch(1, &["beyond1", "fine", "long", "beyond22"], 2);
    let chunk = rig.pull(&batch, MAX_UNREAD_BYTES);
    let text = String::from_utf8(chunk.bytes).expect("text");
    let last: serde_json::Value =
        serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    // Three states have an answer, each with two rows of three tokens.
    assert_eq!(last["usage"]["input_tokens"], 18);
    assert_eq!(last["usage"]["truncated_tokens"], 3);
}

#[test]
fn the_times_of_a_batch_add_up_those_of_its_states() {
    let rig = Rig::new(|_| {});
    rig.hold();
    let batch = rig.batch(1, &["slow in encode"; 4], 1);
    until("one is in the line", || rig.in_line() > 0);
    let joined = Instant::now();
    std::thread::sleep(Duration::from_millis(10));
    let waited = joined.elapsed();
    rig.open.send(()).expect("waits");
    let chunk = rig.pull(&batch, MAX_UNREAD_BYTES);
    let of_all = chunk.end.expect("the end").expect("no failure");
    let sum = |part: fn(Timing) -> Duration| -> Duration {
        let results = chunk.results.iter().flatten();
        results.map(|answered| part(answered.timing)).sum()
    };
    assert!(of_all.wait >= waited && of_all.total >= waited);
    assert_eq!(of_all.wait, sum(|timing| timing.wait));
    assert_eq!(of_all.run, sum(|timing| timing.run));
    // The batch's time also includes the encoding of the questions.
    assert!(of_all.encode > sum(|timing| timing.encode));
}

#[test]
fn the_time_of_a_state_has_nothing_of_the_states_before_it() {
    let rig = Rig::new(|_| {});
    rig.hold();
    let batch = rig.batch(1, &["a", "b"], 1);
    until("one is in the line", || rig.in_line() > 0);
    let joined = Instant::now();
    std::thread::sleep(Duration::from_millis(50));
    let waited = joined.elapsed();
    rig.open.send(()).expect("waits");
    let chunk = rig.pull(&batch, MAX_UNREAD_BYTES);
    let of_all = chunk.end.expect("the end").expect("no failure");
    let second = chunk.results[1].as_ref().expect("an answer").timing;
    assert!(second.total <= of_all.total - waited + second.encode);
}

#[test]
fn the_tokens_of_the_questions_count_with_each_state_of_a_batch() {
    for (max_tokens, refused) in [(1_000, 2), (1_001, 0)] {
        let rig = Rig::new(|options| options.max_tokens = max_tokens);
        let batch = rig.batch(1, &["long", "long"], 1);
        let results = rig.rest(&batch).0;
        let limit = Err(Error::TooManyTokens { limit: max_tokens });
        let too_many = results.iter().filter(|result| **result == limit);
        assert_eq!((results.len(), too_many.count()), (2, refused));
    }
}

#[test]
fn a_single_request_waits_for_one_state_of_a_batch_at_most() {
    let rig = Rig::new(|_| {});
    let batch = rig.batch(1, &["wait", "22", "333"], 1);
    rig.until_running();
    rig.ask(2, "single");
    until("one is in the line", || rig.in_line() > 0);
    rig.open.send(()).expect("waits");
    assert!(rig.next().1.is_ok());
    assert_eq!(rig.rest(&batch).0.len(), 3);
    assert_eq!(*rig.fake.ran.lock(), [4, 6, 2, 3]);
}

#[test]
fn a_batch_whose_caller_has_gone_is_not_run_to_its_end() {
    let rig = Rig::new(|_| {});
    let batch = rig.batch(1, &["wait", "never run"], 1);
    rig.until_running();
    rig.engine.cancel_batch(&batch);
    rig.open.send(()).expect("waits");
    assert_eq!(rig.rest(&batch), (vec![], Some(Error::Cancelled)));
    rig.until_empty();
    assert!(!rig.fake.ran.lock().contains(&("never run".len() as i64)));
}

#[test]
fn a_caller_who_waits_for_full_pieces_gets_them_all() {
    let rig = Rig::new(|_| {});
    let limit = MAX_UNREAD_BYTES;
    // All states are encoded before the first result is there, and four results are a full
    // piece.
    let mut states = ["state"; 20];
    states[0] = "wait";
    let batch = rig.long_batch(1, &states, 1, limit / 4);
    rig.until_running();
    rig.open.send(()).expect("waits");
    // A caller that asks for larger pieces also gets four results, since no more are made
    // before these are taken.
    for min_bytes in [limit, limit, limit, usize::MAX, usize::MAX] {
        assert_eq!(rig.pull(&batch, min_bytes).results.len(), 4);
    }
    assert_eq!(rig.rest(&batch), (vec![], None));
}

#[test]
fn a_shutdown_ends_a_batch_whose_caller_takes_nothing() {
    let rig = Rig::new(|_| {});
    let limit = MAX_UNREAD_BYTES;
    let batch = rig.long_batch(1, &["state"; 20], 1, limit / 4);
    rig.until_empty();
    assert_eq!(rig.fake.ran.lock().len(), 4);
    let rig = rig.shut_down();
    let end = rig.rest(&batch).1;
    assert!(matches!(end, Some(Error::Closing | Error::Cancelled)));
}

#[test]
fn no_more_results_are_made_than_the_caller_takes() {
    let rig = Rig::new(|_| {});
    let batch = rig.batch(1, &["state"; 5_000], 3);
    let limit = MAX_UNREAD_BYTES;
    for _ in 0..3 {
        let chunk = rig.pull(&batch, limit);
        assert!((limit..limit + 10_000).contains(&chunk.bytes.len()));
    }
    until("the model is free", || rig.engine.load_now().running == 0);
    // The caller takes no more results, and no state is in the queue or on the model: only the
    // cancellation ends the batch.
    rig.engine.cancel_batch(&batch);
    assert_eq!(rig.rest(&batch).1, Some(Error::Cancelled));
    rig.until_empty();
    assert!(rig.fake.ran.lock().len() < 2_000);
}

#[test]
fn batches_whose_callers_take_nothing_keep_nobody_out() {
    let limit = MAX_UNREAD_BYTES;
    let rig = Rig::new(|options| {
        (options.limits.max_queue, options.limits.max_queue_bytes) = (2, 64 * limit);
    });
    let mut paused = Vec::new();
    for ticket in 1..6 {
        let batch = rig.long_batch(ticket, &["state"; 8], 1, limit / 4);
        rig.until_empty();
        paused.push(batch);
    }
    for ticket in 6..10 {
        rig.ask(ticket, "fine");
        assert!(rig.next().1.is_ok());
    }
    assert_eq!(rig.fake.ran.lock().len(), 5 * 4 + 4);
    for batch in &paused {
        assert_eq!(rig.rest(batch).0.len(), 8);
    }
    rig.until_empty();
}

#[test]
fn a_batch_whose_results_are_taken_again_waits_for_the_model_again() {
    let rig = Rig::new(|_| {});
    let limit = MAX_UNREAD_BYTES;
    let batch = rig.long_batch(1, &["state"; 8], 1, limit / 4);
    rig.until_empty();
    rig.hold();
    assert_eq!(rig.engine.load_now().waiting, 0);
    assert_eq!(rig.pull(&batch, 1).results.len(), 4);
    until("it waits again", || rig.engine.load_now().waiting == 1);
    rig.open.send(()).expect("waits");
    assert_eq!(rig.rest(&batch).0.len(), 4);
}

#[test]
fn a_batch_that_has_ended_holds_neither_its_model_nor_its_states() {
    let rig = Rig::new(|_| {});
    rig.hold();
    let batch = rig.batch(1, &["a", "b", "c"], 1);
    until("all are encoded", || batch.progress.lock().ready.len() == 2);
    rig.engine.cancel_batch(&batch);
    assert_eq!(rig.rest(&batch).1, Some(Error::Cancelled));
    let progress = batch.progress.lock();
    assert!(progress.set.is_none() && progress.ready.is_empty());
    drop(progress);
    rig.open.send(()).expect("waits");
}

#[test]
fn an_engine_that_closes_finishes_its_batches_and_one_that_is_shut_down_does_not() {
    let rig = Rig::new(|_| {});
    let first = rig.batch(1, &["wait", "b", "c"], 1);
    rig.until_running();
    std::thread::scope(|scope| {
        scope.spawn(|| rig.engine.close());
        rig.open.send(()).expect("waits");
        assert_eq!(rig.rest(&first).0.len(), 3);
    });
    let late = rig.batch(2, &["a"], 1);
    assert_eq!(rig.rest(&late), (vec![], Some(Error::Closing)));

    let rig = Rig::new(|_| {});
    let cut = rig.batch(1, &["wait", "b"], 1);
    rig.until_running();
    rig.open.send(()).expect("waits");
    rig.engine.shutdown();
    let (results, failure) = rig.rest(&cut);
    assert!(failure.is_some() || results.len() == 2);
}

#[test]
fn a_state_that_waits_too_long_fails_alone_and_the_next_goes_on() {
    let rig = Rig::new(|options| options.limits.request_timeout = Duration::from_millis(30));
    rig.hold();
    let batch = rig.batch(2, &["a", "b"], 1);
    let late = rig.pull(&batch, 1);
    let code = late.results[0].as_ref().expect_err("late").code();
    assert_eq!(code, "queue_timeout");
    rig.open.send(()).expect("waits");
    let (results, failure) = rig.rest(&batch);
    assert_eq!((late.results.len() + results.len(), failure), (2, None));
}

#[test]
fn the_pieces_of_a_batch_are_one_document_with_or_without_results() {
    for (states, count) in [("", 0), (r#""a""#, 1), (r#""a","long","b""#, 3)] {
        let rig = Rig::new(|_| {});
        let body = format!(r#"{{"states":[{states}],"questions":{{"a":{{"type":"noul"}}}}}}"#);
        let batch = rig.engine.batch(BatchArrival {
            ticket: 1,
            framing: Framing::Document,
            max_states: 3,
            body: body.into(),
            elapsed: Duration::ZERO,
        });
        let mut text = Vec::new();
        loop {
            let chunk = rig.pull(&batch, 1);
            text.extend(chunk.bytes);
            if chunk.end.is_some() {
                break;
            }
        }
        let document: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(document["model"], "svc");
        assert_eq!(document["results"].as_array().map(Vec::len), Some(count));
        assert!(document["usage"]["input_tokens"].is_number());
    }
}

#[test]
fn a_batch_without_states_has_no_results_and_a_bad_one_an_error() {
    let rig = Rig::new(|_| {});
    let empty = rig.batch(1, &[], 1);
    let chunk = rig.pull(&empty, 1);
    assert!(chunk.results.is_empty() && matches!(chunk.end, Some(Ok(_))));
    let many = rig.batch(2, &["a"; 5_001], 1);
    let (limit, actual) = (5_000, 5_001);
    assert_eq!(
        rig.rest(&many),
        (vec![], Some(Error::TooManyStates { limit, actual }))
    );
    rig.until_empty();
}
