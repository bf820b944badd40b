//! The guarantees of an engine for single requests.

use std::sync::atomic::Ordering;

use super::rig::{Fake, HELD_UP, PATIENCE, Rig, SLOW_ENCODE, arrival, until};
use super::*;
use crate::question::Kind;

#[test]
fn a_panic_is_one_error_and_the_engine_lives() {
    let rig = Rig::new(|_| {});
    for (ticket, state) in [(1, "panic in encode"), (2, "panic in run")] {
        rig.ask(ticket, state);
        assert_eq!(rig.next(), (ticket, Err(Error::Panicked)));
    }
    for ticket in 3..20 {
        rig.ask(ticket, "fine");
        assert!(rig.next().1.is_ok());
    }
    assert_eq!(
        rig.engine.load_now(),
        Load {
            running: 0,
            waiting: 0
        }
    );
}

#[test]
fn who_has_gone_while_waiting_is_never_run() {
    let rig = Rig::new(|_| {});
    rig.ask(1, "wait");
    rig.until_running();
    rig.ask(2, "gone");
    rig.ask(3, "stays on");
    rig.engine.cancel(2);
    assert_eq!(rig.next(), (2, Err(Error::Cancelled)));
    rig.open.send(()).expect("waits");
    // Answers are written when the model is free again, so the second answer may overtake the
    // first.
    let mut answered = [rig.next().0, rig.next().0];
    answered.sort_unstable();
    assert_eq!(answered, [1, 3]);
    assert_eq!(
        *rig.fake.ran.lock(),
        ["wait".len() as i64, "stays on".len() as i64]
    );
}

#[test]
fn who_goes_while_running_is_stopped_at_the_next_run() {
    let rig = Rig::new(|_| {});
    rig.ask(1, "wait");
    rig.until_running();
    rig.engine.cancel(1);
    rig.open.send(()).expect("waits");
    assert_eq!(rig.next(), (1, Err(Error::Cancelled)));
}

#[test]
fn what_joins_unparsed_is_encoded_in_its_turn_and_its_faults_are_told() {
    let rig = Rig::new(|_| {});
    rig.ask(1, "wait");
    rig.until_running();
    rig.engine.stages.queue.turn_around();
    rig.ask(2, "fine");
    rig.ask(3, "panic in encode");
    rig.ask(4, "gone");
    let encoded = rig.fake.encoded_questions.load(Ordering::SeqCst);
    assert_eq!(encoded, 1, "only the one on the model");
    rig.engine.cancel(4);
    assert_eq!(rig.next(), (4, Err(Error::Cancelled)));
    rig.open.send(()).expect("waits");
    let mut outcomes = [rig.next(), rig.next(), rig.next()];
    outcomes.sort_by_key(|(ticket, _)| *ticket);
    let [(_, first), (_, second), (_, third)] = outcomes;
    assert!(first.is_ok() && second.is_ok(), "{first:?} {second:?}");
    assert_eq!(third, Err(Error::Panicked));
    rig.ask(5, "fine");
    assert!(rig.next().1.is_ok(), "the model was free");
    let load = rig.engine.load_now();
    assert_eq!((load.running, load.waiting), (0, 0));
}

#[test]
fn what_joins_unparsed_is_run_by_a_thread_that_has_nothing_to_do() {
    let rig = Rig::new(|_| {});
    rig.engine.stages.queue.turn_around();
    rig.ask(1, "fine");
    assert!(rig.next().1.is_ok());
}

/// Returns after how many seconds a caller is told to come back while a request of about 10,000
/// tokens, by its bytes, waits unparsed; it is then run in no time, as three tokens.
fn retry_after_with_a_long_line(rig: &Rig, ticket: u64) -> u32 {
    rig.hold();
    rig.engine.stages.queue.turn_around();
    rig.ask(ticket, &"x".repeat(40_000));
    let refused = rig.engine.refusal();
    std::thread::sleep(SLOW_RUN);
    rig.open.send(()).expect("waits");
    assert!(rig.next().1.is_ok() && rig.next().1.is_ok());
    match refused {
        Some(Error::QueueFull {
            retry_after_seconds,
        }) => retry_after_seconds,
        other => panic!("{other:?}"),
    }
}

/// How long a model takes for three tokens that is too slow for 10,000.
const SLOW_RUN: Duration = Duration::from_millis(50);

/// Returns an engine with room for one request in the line, whose model has taken [`SLOW_RUN`] for
/// the three tokens of its last request.
fn slow_rig_for_one() -> Rig {
    let rig = Rig::new(|options| options.limits.max_queue = 1);
    rig.hold();
    std::thread::sleep(SLOW_RUN);
    rig.open.send(()).expect("waits");
    assert!(rig.next().1.is_ok());
    rig
}

#[test]
fn what_waits_unparsed_counts_in_the_line_by_its_bytes_and_in_the_pace_by_its_tokens() {
    let rig = slow_rig_for_one();
    for ticket in [1, 2] {
        let seconds = retry_after_with_a_long_line(&rig, ticket);
        assert!(
            seconds > 20,
            "{seconds} s for 10,000 tokens at 90 a second or less"
        );
    }
}

#[test]
fn what_fails_in_its_turn_counts_no_tokens_in_the_pace() {
    let rig = slow_rig_for_one();
    rig.engine.stages.queue.turn_around();
    for ticket in 1..5 {
        // The text is no JSON.
        rig.send(arrival(ticket, "x".repeat(40_000)));
        assert_eq!(rig.next().1.expect_err("no JSON").code(), "invalid_json");
    }
    let seconds = retry_after_with_a_long_line(&rig, 5);
    assert!(seconds > 20, "{seconds}");
}

#[test]
fn the_time_of_encoding_counts_in_the_time_on_the_model() {
    let rig = Rig::new(|options| options.limits.max_run = 2 * SLOW_ENCODE - SLOW_ENCODE / 3);
    rig.ask(1, "very slow in encode");
    // It is on the model for half of this time.
    std::thread::sleep(2 * SLOW_ENCODE);
    rig.open.send(()).expect("waits");
    assert_eq!(rig.next().1.expect_err("too long").code(), "run_timeout");
}

#[test]
fn a_large_body_is_encoded_before_its_turn_even_while_the_newest_go_first() {
    let rig = Rig::new(|_| {});
    rig.hold();
    rig.engine.stages.queue.turn_around();
    rig.ask(1, &"x".repeat(MAX_UNPARSED_BYTES));
    until("the body is encoded", || {
        rig.fake.encoded_questions.load(Ordering::SeqCst) == 2
    });
    rig.open.send(()).expect("waits");
    assert!(rig.next().1.is_ok() && rig.next().1.is_ok());
}

#[test]
fn the_time_before_the_arrival_counts_in_the_total_and_in_what_the_caller_allows() {
    let rig = Rig::new(|_| {});
    let body = r#"{"state":"","questions":{"a":{"type":"noul"}}}"#.to_owned();
    let elapsed = Duration::from_millis(300);
    for (ticket, patience) in [(1, None), (2, Some(PATIENCE)), (3, Some(elapsed))] {
        rig.send(Arrival {
            elapsed,
            patience,
            ..arrival(ticket, body.clone())
        });
        match rig.next().1 {
            Ok(answered) => assert!(ticket < 3 && answered.timing.total >= elapsed),
            Err(error) => assert_eq!((ticket, error.code()), (3, "deadline_exceeded")),
        }
    }
    let body = r#"{"states":[""],"questions":{"a":{"type":"noul"}}}"#;
    let batch = rig.engine.batch(BatchArrival {
        ticket: 4,
        framing: Framing::Lines,
        max_states: 1,
        body: body.into(),
        elapsed,
    });
    let end = rig.pull(&batch, crate::batch::MAX_UNREAD_BYTES).end;
    assert!(end.expect("the end").expect("no failure").total >= elapsed);
}

#[test]
fn questions_are_counted_by_their_type() {
    let rig = Rig::new(|_| {});
    let body = r#"{"state":"","questions":{"a":{"type":"score","criteria":["x","y"]},
        "b":{"type":"choice","criteria":["x","y"]},"c":{"type":"score","criteria":["x","y"]}}}"#;
    rig.send(arrival(1, body.to_owned()));
    let answered = rig.next().1.expect("an answer");
    let counts = answered.counts;
    assert_eq!((counts.choice, counts.score, counts.noul), (1, 2, 0));
    let kinds = answered.confidences.iter().map(|(kind, _)| *kind);
    let kinds: Vec<Kind> = kinds.collect();
    assert_eq!(kinds, [Kind::Score, Kind::Choice, Kind::Score]);
}

#[test]
fn close_lets_all_that_is_there_finish() {
    let rig = Rig::new(|_| {});
    rig.ask(1, "wait");
    rig.until_running();
    for ticket in 2..10 {
        rig.ask(ticket, "fine");
    }
    let entrant = Entrant {
        ticket: 99,
        kind: RequestKind::Single,
        bytes: 0,
        patience: None,
    };
    std::thread::scope(|scope| {
        scope.spawn(|| rig.engine.close());
        until("the engine closes", || {
            let refused = rig.engine.stages.queue.admit(entrant);
            rig.engine.stages.queue.leave(99);
            matches!(refused, Err(Error::Closing))
        });
        rig.open.send(()).expect("waits");
        let mut tickets: Vec<u64> = (1..10)
            .map(|_| {
                let (ticket, outcome) = rig.next();
                assert!(outcome.is_ok());
                ticket
            })
            .collect();
        tickets.sort_unstable();
        assert_eq!(tickets, (1..10).collect::<Vec<_>>());
    });
    rig.ask(11, "too late");
    assert_eq!(rig.next(), (11, Err(Error::Closing)));
}

#[test]
fn shutdown_refuses_what_waits_and_ends() {
    let rig = Rig::new(|_| {});
    rig.ask(1, "wait");
    rig.until_running();
    rig.ask(2, "fine");
    until("one waits", || rig.engine.load_now().waiting > 0);
    // The fake's run does not end by itself.
    rig.open.send(()).expect("waits");
    rig.engine.shutdown();
    let mut outcomes = [rig.next(), rig.next()];
    outcomes.sort_by_key(|(ticket, _)| *ticket);
    assert!(outcomes.iter().all(|(_, outcome)| match outcome {
        Ok(_) => true,
        Err(error) => matches!(error, Error::Closing | Error::Cancelled),
    }));
}

#[test]
fn who_has_come_before_a_swap_is_answered_by_the_model_of_then() {
    let rig = Rig::new(|_| {});
    rig.ask(1, "wait");
    rig.until_running();
    rig.ask(2, "in line");
    let batch = rig.batch(3, &["batch", "batch"], 1);
    let (next, _open) = Fake::new(1);
    rig.engine.replace(Arc::clone(&next) as Arc<dyn Backend>);
    rig.ask(4, "new");
    rig.open.send(()).expect("waits");
    for _ in 0..3 {
        assert!(rig.next().1.is_ok());
    }
    assert_eq!(rig.rest(&batch).0.len(), 2);
    let mut ran = rig.fake.ran.lock().clone();
    ran.sort_unstable();
    assert_eq!(ran, [4, 5, 5, 7]);
    assert_eq!(*next.ran.lock(), [3]);
}

#[test]
fn a_replaced_model_is_freed_after_its_last_request() {
    let rig = Rig::new(|_| {});
    let (second, open) = Fake::new(1);
    rig.engine.replace(Arc::clone(&second) as Arc<dyn Backend>);
    rig.ask(1, "wait");
    rig.until_running();
    rig.engine.replace(Fake::new(1).0);
    let second = {
        let watched = Arc::downgrade(&second);
        drop(second);
        watched
    };
    assert_eq!(second.strong_count(), 1);
    open.send(()).expect("waits");
    assert!(rig.next().1.is_ok());
    until("the model is freed", || second.strong_count() == 0);
}

#[test]
fn shutdown_stops_a_replaced_model_too() {
    let rig = Rig::new(|_| {});
    rig.ask(1, "wait");
    rig.until_running();
    let (next, _open) = Fake::new(1);
    rig.engine.replace(Arc::clone(&next) as Arc<dyn Backend>);
    std::thread::scope(|scope| {
        scope.spawn(|| rig.engine.shutdown());
        for fake in [&rig.fake, &next] {
            until("each is stopped", || fake.terminated.load(Ordering::SeqCst));
        }
        rig.open.send(()).expect("waits");
    });
    assert_eq!(rig.next().0, 1);
}

#[test]
fn who_waits_too_long_is_told_so_while_the_model_is_busy() {
    let rig = Rig::new(|options| options.limits.request_timeout = Duration::from_millis(30));
    rig.hold();
    rig.ask(2, "late");
    let (ticket, outcome) = rig.next();
    assert_eq!(
        (ticket, outcome.expect_err("late").code()),
        (2, "queue_timeout")
    );
    rig.open.send(()).expect("waits");
    assert!(rig.next().1.is_ok());
}

#[test]
fn the_durations_are_within_the_total() {
    let rig = Rig::new(|_| {});
    rig.ask(1, "fine");
    let timing = rig.next().1.expect("answered").timing;
    assert!(timing.encode + timing.wait + timing.run <= timing.total);
}

#[test]
fn the_time_that_a_run_waits_for_cores_is_part_of_the_wait_and_not_of_the_run() {
    let rig = Rig::new(|_| {});
    rig.ask(1, "held up");
    let timing = rig.next().1.expect("answered").timing;
    assert!(timing.wait >= HELD_UP);
    assert_eq!(timing.run, Duration::ZERO);
}

#[test]
fn too_many_questions_or_tokens_name_the_limit() {
    let rig = Rig::new(|options| options.max_tokens = 2);
    rig.ask(1, "fine");
    let error = rig.next().1.expect_err("3 tokens");
    assert_eq!(error, Error::TooManyTokens { limit: 2 });
    let enough = Rig::new(|options| options.max_tokens = 3);
    enough.ask(1, "fine");
    assert_eq!(enough.next().1.expect("3 tokens").counts.input_tokens, 3);
    let questions: Vec<String> = (0..4)
        .map(|id| format!(r#""{id}":{{"type":"noul"}}"#))
        .collect();
    let body = format!(r#"{{"state":"","questions":{{{}}}}}"#, questions.join(","));
    rig.send(arrival(2, body));
    let error = rig.next().1.expect_err("4 questions");
    assert_eq!(
        error,
        Error::TooManyQuestions {
            limit: 3,
            actual: 4
        }
    );
}

#[test]
fn a_text_beyond_the_window_is_cut_and_counted_or_refused() {
    let rig = Rig::new(|_| {});
    rig.ask(1, "beyond1");
    assert_eq!(rig.next().1.expect("cut").counts.truncated_tokens, 1);
    let rig = Rig::new(|options| options.refuse_truncation = true);
    rig.ask(1, "beyond1");
    assert_eq!(rig.next().1, Err(Error::TextTooLong { tokens: 1 }));
    rig.ask(2, "fine");
    assert!(rig.next().1.is_ok());
    let batch = rig.batch(3, &["fine", "beyond22", "fine"], 1);
    let results = rig.rest(&batch).0;
    assert!(results[0].is_ok() && results[2].is_ok());
    assert_eq!(results[1], Err(Error::TextTooLong { tokens: 2 }));
}

fn ask_many(rig: &Rig, questions: usize) -> Result<Answered, Error> {
    let questions = (0..questions).map(|id| format!(r#""{id}":{{"type":"noul"}}"#));
    let questions: Vec<String> = questions.collect();
    let body = format!(r#"{{"state":"","questions":{{{}}}}}"#, questions.join(","));
    rig.send(arrival(1, body));
    rig.next().1
}

#[test]
fn what_takes_exactly_as_long_as_it_may_is_run() {
    let rig = slow_rows(Duration::from_secs(72));
    for _ in 0..3 {
        assert!(ask_many(&rig, 80).is_ok());
    }
    assert!(matches!(
        ask_many(&rig, 81),
        Err(Error::RunTooLong { tokens: 243, .. })
    ));
}

/// Returns an engine whose model takes a second for each row.
fn slow_rows(max_run: Duration) -> Rig {
    let rig = Rig::new(|options| {
        (options.max_questions, options.max_tokens) = (100, 10_000);
        options.limits.max_run = max_run;
    });
    *rig.fake.row_took.lock() = Duration::from_secs(1);
    rig
}

#[test]
fn what_cannot_be_run_in_time_is_refused_at_its_arrival_once_that_was_measured() {
    let rig = slow_rows(Duration::from_secs(60));
    for _ in 0..2 {
        assert!(ask_many(&rig, 80).is_ok(), "not measured often enough");
    }
    assert_eq!(
        ask_many(&rig, 80),
        Err(Error::RunTooLong {
            tokens: 240,
            least_ms: 72_000,
            limit_ms: 60_000
        })
    );
    assert!(ask_many(&rig, 60).is_ok());
    assert_eq!(rig.fake.ran.lock().len(), 3);
    let batch = rig.batch(9, &["", "longer"], 80);
    let codes = rig.rest(&batch).0;
    let codes = codes
        .iter()
        .map(|result| result.as_ref().err().map(Error::code));
    assert_eq!(codes.collect::<Vec<_>>(), [Some("run_too_long"); 2]);
    rig.engine.replace(Fake::new(1).0);
    assert!(
        ask_many(&rig, 80).is_ok(),
        "another model is as fast as it is"
    );
}

#[test]
fn encoding_ends_with_max_run_ms() {
    let rig = Rig::new(|options| options.limits.max_run = Duration::ZERO);
    rig.ask(1, "fine");
    assert_eq!(rig.next().1.expect_err("late").code(), "run_timeout");
    assert_eq!(rig.fake.encoded_questions.load(Ordering::SeqCst), 0);
}

#[test]
fn as_many_requests_are_on_the_model_as_may_run_at_once() {
    let rig = Rig::new(|options| options.source.parallel = 2);
    rig.ask(1, "wait");
    rig.until_running();
    rig.ask(2, "fine");
    assert_eq!(rig.next().0, 2, "beside the first");
    rig.ask(3, "wait");
    until("two run", || rig.engine.load_now().running == 2);
    rig.ask(4, "fine");
    until("it is in the line", || {
        rig.engine.stages.queue.in_line() == 1
    });
    let load = rig.engine.load_now();
    assert_eq!((load.running, load.waiting), (2, 1));
    rig.open.send(()).expect("waits");
    let mut answered = [rig.next().0, rig.next().0];
    answered.sort_unstable();
    assert!(answered[0] == 4 || answered[1] == 4, "{answered:?}");
    rig.open.send(()).expect("waits");
    assert!(rig.next().1.is_ok());
}

#[test]
fn a_model_that_runs_one_request_at_a_time_is_asked_one_at_a_time_after_a_swap() {
    let rig = Rig::new(|options| options.source.parallel = 2);
    let (next, _open) = Fake::new(1);
    rig.engine.replace(next);
    rig.ask(1, "wait");
    rig.until_running();
    rig.ask(2, "fine");
    until("it is in the line", || {
        rig.engine.stages.queue.in_line() == 1
    });
    assert_eq!(rig.engine.load_now().running, 1);
}
