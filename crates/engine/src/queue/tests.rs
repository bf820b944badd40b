//! The guarantees of the queue.

use super::*;

const LIMITS: Limits = Limits {
    max_queue: 3,
    max_queue_bytes: 100,
    request_timeout: Duration::from_secs(60),
    max_run: Duration::from_secs(60),
};

fn entrant(ticket: u64, kind: RequestKind, bytes: usize) -> Entrant {
    Entrant {
        ticket,
        kind,
        bytes,
        patience: None,
    }
}

fn expired(queue: &Queue<u64>) -> Vec<(u64, &'static str)> {
    let late = queue.expired().expect("open").into_iter();
    late.map(|(work, error)| (work, error.code())).collect()
}

fn admit_and_join(queue: &Queue<u64>, ticket: u64) {
    queue
        .admit(entrant(ticket, RequestKind::Single, 10))
        .expect("room");
    assert!(queue.join(ticket, ticket, 5, Duration::ZERO).is_none());
}

#[test]
fn turns_go_by_arrival_even_when_encoding_finishes_out_of_order() {
    let queue = Queue::new(LIMITS);
    for ticket in [1, 2, 3] {
        queue
            .admit(entrant(ticket, RequestKind::Single, 10))
            .expect("room");
    }
    for ticket in [3, 1, 2] {
        assert!(queue.join(ticket, ticket, 5, Duration::ZERO).is_none());
    }
    let order: Vec<u64> = std::iter::from_fn(|| queue.take()?.work.take()).collect();
    assert_eq!(order, [1, 2, 3]);
}

#[test]
fn one_turn_at_a_time() {
    let queue = Queue::new(LIMITS);
    admit_and_join(&queue, 1);
    admit_and_join(&queue, 2);
    let first = queue.take().expect("free");
    assert!(queue.take().is_none());
    assert_eq!(
        queue.load(),
        Load {
            running: 1,
            waiting: 1
        }
    );
    drop(first);
    assert_eq!(queue.take().expect("free").work, Some(2));
}

#[test]
fn so_many_turns_at_once_as_may_run() {
    let queue = Queue::new(LIMITS);
    queue.set_most_running(2);
    for ticket in [1, 2, 3] {
        admit_and_join(&queue, ticket);
    }
    let first = queue.take().expect("free");
    assert!(queue.is_free());
    let second = queue.take().expect("free");
    assert!(queue.take().is_none() && !queue.is_free());
    let load = queue.load();
    assert_eq!((load.running, load.waiting), (2, 1));
    assert_eq!(first.stop.crowd(), 3, "the waiting one counts");
    drop(first);
    let third = queue.take().expect("free");
    assert_eq!((third.work, second.stop.crowd()), (Some(3), 2));
    drop(second);
    assert_eq!(queue.load().running, 1);
}

#[test]
fn requests_side_by_side_count_the_time_of_the_model_once() {
    let queue = Queue::new(LIMITS);
    queue.set_most_running(2);
    admit_and_join(&queue, 1);
    admit_and_join(&queue, 2);
    let began = Instant::now();
    let (first, second) = (queue.take().expect("free"), queue.take().expect("free"));
    let slept = Duration::from_millis(20);
    std::thread::sleep(slept);
    drop(first);
    drop(second);
    let took = began.elapsed();
    let measured = queue.inner.lock().rate.time(10).expect("measured");
    let rounding = Duration::from_micros(1);
    assert!(measured + rounding >= slept.mul_f64(0.9), "{measured:?}");
    assert!(measured <= took + rounding, "{measured:?} of {took:?}");
}

#[test]
fn the_line_is_bounded_in_requests_and_in_bytes() {
    let queue: Queue<u64> = Queue::new(LIMITS);
    admit_and_join(&queue, 1);
    let turn = queue.take().expect("free");
    for ticket in [2, 3, 4] {
        admit_and_join(&queue, ticket);
    }
    assert_eq!(
        queue
            .admit(entrant(5, RequestKind::Single, 1))
            .expect_err("full")
            .code(),
        "queue_full"
    );
    assert!(queue.cancel(4).is_some());
    assert_eq!(
        queue
            .admit(entrant(5, RequestKind::Single, 71))
            .expect_err("bytes")
            .code(),
        "queue_full"
    );
    assert!(queue.admit(entrant(5, RequestKind::Single, 70)).is_ok());
    drop(turn);
}

#[test]
fn a_batch_waits_behind_all_that_arrived_since_its_last_turn() {
    let queue = Queue::new(LIMITS);
    queue
        .admit(entrant(1, RequestKind::Batch, 10))
        .expect("room");
    assert!(queue.join(1, 1, 5, Duration::ZERO).is_none());
    let turn = queue.take().expect("free");
    queue
        .admit(entrant(2, RequestKind::Single, 10))
        .expect("room");
    drop(turn);
    assert!(queue.join(1, 1, 5, Duration::ZERO).is_none());
    queue
        .admit(entrant(3, RequestKind::Single, 10))
        .expect("room");
    for ticket in [3, 2] {
        assert!(queue.join(ticket, ticket, 5, Duration::ZERO).is_none());
    }
    let order: Vec<u64> = std::iter::from_fn(|| queue.take()?.work.take()).collect();
    assert_eq!(order, [2, 1, 3]);
    let load = queue.load();
    assert_eq!((load.running, load.waiting), (0, 1), "it has not left yet");
    queue.leave(1);
    assert_eq!(queue.load().waiting, 0);
}

#[test]
fn a_large_batch_keeps_no_single_request_out_and_no_batch_but_a_second() {
    let queue: Queue<u64> = Queue::new(Limits {
        max_queue: 10,
        ..LIMITS
    });
    queue
        .admit(entrant(1, RequestKind::Single, 90))
        .expect("room");
    queue
        .admit(entrant(2, RequestKind::Batch, 1_000))
        .expect("the first");
    assert!(queue.admit(entrant(3, RequestKind::Batch, 1)).is_err());
    queue
        .admit(entrant(4, RequestKind::Single, 10))
        .expect("room");
    assert!(queue.admit(entrant(5, RequestKind::Single, 1)).is_err());
}

#[test]
fn a_paused_batch_holds_no_place() {
    let queue: Queue<u64> = Queue::new(LIMITS);
    for ticket in [1, 2, 3] {
        queue
            .admit(entrant(ticket, RequestKind::Batch, 10))
            .expect("room");
    }
    assert!(queue.admit(entrant(4, RequestKind::Single, 10)).is_err());
    for ticket in [1, 2, 3] {
        queue.pause(ticket, 20);
    }
    assert_eq!(queue.load().waiting, 0);
    queue
        .admit(entrant(4, RequestKind::Single, 1_000))
        .expect("idle");
    queue.leave(4);
    queue
        .admit(entrant(5, RequestKind::Batch, 10))
        .expect("100 bytes");
    assert!(
        queue.admit(entrant(6, RequestKind::Batch, 1)).is_err(),
        "101 bytes"
    );
    queue.go_on(1);
    assert_eq!(queue.load().waiting, 2);
    queue
        .admit(entrant(6, RequestKind::Batch, 20))
        .expect("100 bytes again");
    for ticket in [1, 2, 3, 5, 6] {
        queue.leave(ticket);
    }
    queue.close();
    queue.wait_until_empty();
    assert_eq!(queue.load().waiting, 0);
    let inner = queue.inner.lock();
    assert_eq!((inner.active(), inner.bytes), (0, [0; 2]));
}

#[test]
fn a_closed_queue_is_waited_for_until_all_have_left() {
    let queue: Queue<u64> = Queue::new(LIMITS);
    for ticket in [1, 2] {
        queue
            .admit(entrant(ticket, RequestKind::Single, 10))
            .expect("room");
    }
    queue.close();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| queue.wait_until_empty());
        for ticket in [1, 2] {
            std::thread::sleep(Duration::from_millis(50));
            assert!(!waiting.is_finished(), "{ticket} is still there");
            queue.leave(ticket);
        }
    });
}

#[test]
fn each_state_of_a_batch_may_wait_for_as_long_as_a_request() {
    let request_timeout = Duration::from_millis(20);
    let queue = Queue::new(Limits {
        request_timeout,
        ..LIMITS
    });
    admit_and_join(&queue, 1);
    let turn = queue.take().expect("free");
    queue
        .admit(entrant(2, RequestKind::Batch, 10))
        .expect("room");
    for state in [20, 21] {
        let joined = Instant::now();
        assert!(queue.join(2, state, 5, Duration::ZERO).is_none());
        assert_eq!(expired(&queue), [(state, "queue_timeout")]);
        assert!(joined.elapsed() >= request_timeout, "state {state}");
    }
    drop(turn);
}

#[test]
fn a_batch_whose_caller_has_gone_does_not_join_again() {
    let queue = Queue::new(LIMITS);
    let Admission { stop, .. } = queue
        .admit(entrant(1, RequestKind::Batch, 10))
        .expect("room");
    assert!(queue.join(1, 1, 5, Duration::ZERO).is_none());
    assert_eq!(queue.cancel(1), Some(1));
    assert_eq!(stop.check(), Err(Error::Cancelled));
    assert_eq!(
        queue.join(1, 2, 5, Duration::ZERO),
        Some((2, Error::Cancelled))
    );
}

#[test]
fn an_idle_engine_takes_a_request_of_any_size() {
    let queue: Queue<u64> = Queue::new(LIMITS);
    assert!(queue.admit(entrant(1, RequestKind::Single, 10_000)).is_ok());
    assert!(queue.admit(entrant(2, RequestKind::Single, 1)).is_err());
}

#[test]
fn who_has_gone_is_never_given_the_model() {
    let queue = Queue::new(LIMITS);
    admit_and_join(&queue, 1);
    admit_and_join(&queue, 2);
    queue
        .admit(entrant(3, RequestKind::Single, 10))
        .expect("room");
    assert_eq!(queue.cancel(1), Some(1));
    assert_eq!(queue.cancel(3), None);
    queue.leave(3);
    assert_eq!(
        queue.join(3, 3, 1, Duration::ZERO),
        Some((3, Error::Cancelled)),
        "it ended before it could join"
    );
    assert_eq!(queue.take().expect("free").work, Some(2));
    assert_eq!(
        queue.load(),
        Load {
            running: 0,
            waiting: 0
        }
    );
    assert_eq!(queue.inner.lock().tokens, 0, "nobody's are in the line");
}

#[test]
fn running_work_is_told_to_stop() {
    let queue = Queue::new(LIMITS);
    admit_and_join(&queue, 1);
    let turn = queue.take().expect("free");
    assert!(turn.stop.check().is_ok());
    assert_eq!(queue.cancel(1), None);
    assert_eq!(turn.stop.check(), Err(Error::Cancelled));
}

#[test]
fn a_run_that_takes_too_long_is_stopped() {
    let queue = Queue::new(Limits {
        max_run: Duration::ZERO,
        ..LIMITS
    });
    admit_and_join(&queue, 1);
    let turn = queue.take().expect("free");
    assert_eq!(turn.stop.check().expect_err("late").code(), "run_timeout");
}

#[test]
fn what_was_spent_on_encoding_is_taken_off_the_time_on_the_model() {
    let queue = Queue::new(LIMITS);
    for (ticket, spent) in [(1, LIMITS.max_run), (2, LIMITS.max_run / 2)] {
        queue
            .admit(entrant(ticket, RequestKind::Single, 10))
            .expect("room");
        assert!(queue.join(ticket, ticket, 5, spent).is_none());
    }
    let turn = queue.take().expect("free");
    assert_eq!(turn.stop.check().expect_err("late").code(), "run_timeout");
    drop(turn);
    assert!(queue.take().expect("free").stop.check().is_ok());
}

#[test]
fn who_waits_too_long_is_taken_out_while_the_model_is_busy() {
    let queue = Queue::new(Limits {
        request_timeout: Duration::from_millis(20),
        ..LIMITS
    });
    admit_and_join(&queue, 1);
    let turn = queue.take().expect("free");
    admit_and_join(&queue, 2);
    assert_eq!(expired(&queue), [(2, "queue_timeout")]);
    drop(turn);
    queue.close();
    assert!(queue.expired().is_none());
}

#[test]
fn of_several_who_wait_each_is_taken_out_at_its_own_deadline() {
    let queue = Queue::new(LIMITS);
    admit_and_join(&queue, 1);
    let turn = queue.take().expect("free");
    let short = Entrant {
        patience: Some((Duration::from_millis(20), Duration::from_millis(50))),
        ..entrant(2, RequestKind::Single, 10)
    };
    queue.admit(short).expect("room");
    assert!(queue.join(2, 2, 5, Duration::ZERO).is_none());
    admit_and_join(&queue, 3);
    assert_eq!(expired(&queue), [(2, "deadline_exceeded")]);
    assert_eq!(queue.in_line(), 1, "the other has a minute");
    drop(turn);
}

#[test]
fn cancelling_all_forgets_a_batch_that_waits_for_its_caller() {
    let queue = Queue::new(LIMITS);
    admit_and_join(&queue, 1);
    let turn = queue.take().expect("free");
    admit_and_join(&queue, 2);
    queue
        .admit(entrant(3, RequestKind::Batch, 10))
        .expect("room");
    queue.pause(3, 20);
    queue.close();
    assert_eq!(queue.cancel_all(), [2]);
    assert_eq!(turn.stop.check(), Err(Error::Cancelled));
    drop(turn);
    assert!(queue.inner.lock().admitted.is_empty());
    assert!(queue.expired().is_none());
}

#[test]
fn a_closed_line_lets_nobody_in_and_empties() {
    let queue = Queue::new(LIMITS);
    admit_and_join(&queue, 1);
    queue.close();
    assert_eq!(
        queue.admit(entrant(2, RequestKind::Single, 1)).map(|_| ()),
        Err(Error::Closing)
    );
    drop(queue.take().expect("free"));
    queue.wait_until_empty();
}

/// Returns a queue whose newest requests go first, since callers hung up, and whose model is free.
/// One request waits, and has waited for longer than the one that gave up.
fn overloaded() -> Queue<u64> {
    let queue = Queue::new(Limits {
        max_queue: 100,
        max_queue_bytes: 10_000,
        ..LIMITS
    });
    admit_and_join(&queue, 1);
    let turn = queue.take().expect("free");
    admit_and_join(&queue, 2);
    admit_and_join(&queue, 9);
    assert_eq!(queue.cancel(9), Some(9));
    queue.turn_around();
    drop(turn);
    assert!(queue.is_newest_first());
    queue
}

#[test]
fn the_newest_go_first_while_callers_give_up_and_the_oldest_when_nobody_waits_any_more() {
    let queue = overloaded();
    for ticket in [3, 4] {
        let admission = queue.admit(entrant(ticket, RequestKind::Single, 10));
        assert!(admission.expect("room").is_encoded_late);
        assert!(queue.join(ticket, ticket, 5, Duration::ZERO).is_none());
    }
    let order: Vec<u64> = std::iter::from_fn(|| queue.take()?.work.take()).collect();
    assert_eq!(order, [4, 3, 2]);
    for ticket in [5, 6] {
        let admission = queue.admit(entrant(ticket, RequestKind::Single, 10));
        assert!(!admission.expect("room").is_encoded_late);
        assert!(queue.join(ticket, ticket, 5, Duration::ZERO).is_none());
    }
    assert_eq!(queue.take().expect("free").work, Some(5));
}

#[test]
fn a_batch_and_who_waits_longer_than_others_have_every_fourth_turn_of_the_newest() {
    let queue = overloaded();
    queue
        .admit(entrant(3, RequestKind::Batch, 10))
        .expect("room");
    assert!(queue.join(3, 3, 5, Duration::ZERO).is_none());
    for ticket in 10..20 {
        admit_and_join(&queue, ticket);
    }
    // The caller who gave up had waited for less time than request 2 has.
    let order: Vec<u64> = std::iter::from_fn(|| queue.take()?.work.take()).collect();
    assert_eq!(order, [19, 18, 17, 2, 16, 15, 14, 3, 13, 12, 11, 10]);
}

#[test]
fn who_is_known_to_be_too_late_is_refused_at_once() {
    let queue = Queue::new(Limits {
        max_queue: 100,
        request_timeout: Duration::from_secs(10),
        ..LIMITS
    });
    queue.inner.lock().rate.add(10, Duration::from_secs(1));
    admit_and_join(&queue, 1);
    let turn = queue.take().expect("free");
    let patient = |ticket, seconds| Entrant {
        patience: Some((Duration::from_secs(seconds), Duration::from_secs(seconds))),
        ..entrant(ticket, RequestKind::Single, 1)
    };
    // 5 tokens take half a second: the queue is as long as the caller's time after 40 tokens, and
    // as long as the server's limit after 100.
    for ticket in 2..10 {
        admit_and_join(&queue, ticket);
    }
    let code =
        |outcome: Result<Admission, Error>| outcome.map(|_| ()).map_err(|error| error.code());
    assert_eq!(code(queue.admit(patient(20, 3))), Err("deadline_exceeded"));
    assert_eq!(code(queue.admit(patient(20, 5))), Ok(()));
    assert_eq!(
        queue
            .join(20, 20, 30, Duration::ZERO)
            .map(|(work, error)| (work, error.code())),
        Some((20, "deadline_exceeded")),
        "its own 30 tokens take three seconds"
    );
    assert_eq!(queue.load().waiting, 8, "it is gone");
    admit_and_join(&queue, 10);
    assert!(queue.join(10, 10, 60, Duration::ZERO).is_none());
    assert_eq!(
        code(queue.admit(entrant(21, RequestKind::Single, 1))),
        Err("queue_full")
    );
    // Each state of a batch waits for its own turn, and a late state fails without the others.
    assert_eq!(
        code(queue.admit(entrant(22, RequestKind::Batch, 1))),
        Ok(())
    );
    drop(turn);
}

#[test]
fn who_is_alone_is_not_refused_for_what_its_own_tokens_take() {
    let queue = Queue::new(LIMITS);
    queue.inner.lock().rate.add(10, Duration::from_secs(1));
    let second = Duration::from_secs(1);
    let short = Entrant {
        patience: Some((second, second)),
        ..entrant(1, RequestKind::Single, 1)
    };
    queue.admit(short).expect("room");
    // By the measured rate the request's own tokens take ten seconds.
    assert!(queue.join(1, 1, 100, Duration::ZERO).is_none());
}

#[test]
fn a_caller_who_says_how_long_the_answer_is_of_use_waits_no_longer() {
    let queue = Queue::new(LIMITS);
    admit_and_join(&queue, 1);
    let turn = queue.take().expect("free");
    std::thread::scope(|scope| {
        let line = scope.spawn(|| expired(&queue));
        while queue.inner.lock().asleep_until.is_none() {
            std::thread::yield_now();
        }
        let patience = Some((Duration::from_millis(20), Duration::from_millis(50)));
        let short = Entrant {
            patience,
            ..entrant(2, RequestKind::Single, 1)
        };
        let came = Instant::now();
        queue.admit(short).expect("room");
        assert!(queue.join(2, 2, 5, Duration::ZERO).is_none());
        assert_eq!(line.join().expect("no panic"), [(2, "deadline_exceeded")]);
        assert!(came.elapsed() < LIMITS.request_timeout);
    });
    drop(turn);
}

#[test]
fn who_was_encoded_until_after_its_deadline_is_refused_as_soon_as_it_joins() {
    let queue = Queue::new(LIMITS);
    admit_and_join(&queue, 1);
    let turn = queue.take().expect("free");
    let short = Entrant {
        patience: Some((Duration::ZERO, Duration::from_millis(50))),
        ..entrant(2, RequestKind::Single, 1)
    };
    queue.admit(short).expect("room");
    std::thread::scope(|scope| {
        let line = scope.spawn(|| expired(&queue));
        while queue.inner.lock().asleep_until.is_none() {
            std::thread::yield_now();
        }
        let joined = Instant::now();
        assert!(queue.join(2, 2, 5, Duration::ZERO).is_none());
        assert_eq!(line.join().expect("no panic"), [(2, "deadline_exceeded")]);
        assert!(joined.elapsed() < LIMITS.request_timeout / 2);
    });
    drop(turn);
}

#[test]
fn a_turn_whose_caller_has_gone_says_nothing_of_what_tokens_take() {
    let queue = Queue::new(LIMITS);
    admit_and_join(&queue, 1);
    let turn = queue.take().expect("free");
    queue.cancel(1);
    drop(turn);
    assert_eq!(queue.inner.lock().rate.time(1), None);
    admit_and_join(&queue, 2);
    drop(queue.take().expect("free"));
    assert!(queue.inner.lock().rate.time(1).is_some());
}

#[test]
fn a_long_turn_of_a_caller_who_has_gone_turns_the_line_around_unless_it_was_a_batchs() {
    for (kind, is_newest_first) in [(RequestKind::Single, true), (RequestKind::Batch, false)] {
        let queue = Queue::new(LIMITS);
        queue.admit(entrant(1, kind, 10)).expect("room");
        assert!(queue.join(1, 1, 5, Duration::ZERO).is_none());
        let mut turn = queue.take().expect("free");
        let earlier = turn.started.checked_sub(Duration::from_secs(1));
        turn.started = earlier.expect("a machine that is up for a second");
        queue.cancel(1);
        drop(turn);
        assert_eq!(queue.is_newest_first(), is_newest_first, "{kind:?}");
    }
}

#[test]
fn how_long_callers_wait_is_told_by_requests_that_are_cancelled_and_not_by_batches() {
    for (kind, outlasts) in [(RequestKind::Single, false), (RequestKind::Batch, true)] {
        let queue = Queue::new(LIMITS);
        let came = Instant::now();
        queue.admit(entrant(1, kind, 10)).expect("room");
        assert!(queue.join(1, 1, 5, Duration::ZERO).is_none());
        let arrived = queue.inner.lock().admitted[&1].arrived;
        let age = arrived.elapsed();
        assert_eq!(queue.cancel(1), Some(1));
        let inner = queue.inner.lock();
        assert_eq!(inner.order.outlasts(age, came), outlasts, "{kind:?}");
    }
}

#[test]
fn a_batch_has_its_turn_among_the_newest_but_not_as_the_newest() {
    let queue = overloaded();
    // No request has waited for longer than the caller who gave up.
    let minute = Duration::from_secs(60);
    queue.inner.lock().order.gave_up(minute, Instant::now());
    for ticket in 10..13 {
        admit_and_join(&queue, ticket);
    }
    queue
        .admit(entrant(3, RequestKind::Batch, 10))
        .expect("room");
    assert!(queue.join(3, 3, 5, Duration::ZERO).is_none());
    let order: Vec<u64> = std::iter::from_fn(|| queue.take()?.work.take()).collect();
    assert_eq!(order, [12, 11, 10, 3, 2]);
}

#[test]
fn a_run_ends_when_its_caller_has_no_use_for_it_any_more() {
    let queue: Queue<u64> = Queue::new(LIMITS);
    let limit = Duration::from_millis(50);
    let short = Entrant {
        patience: Some((Duration::from_millis(5), limit)),
        ..entrant(1, RequestKind::Single, 1)
    };
    let Admission { stop, .. } = queue.admit(short).expect("room");
    std::thread::sleep(Duration::from_millis(10));
    let error = stop.within(LIMITS.max_run, Duration::ZERO).check();
    let expected = Error::DeadlineExceeded {
        limit_ms: 50,
        retry_after_seconds: 1,
    };
    assert_eq!(error, Err(expected));
}

#[test]
fn only_the_newest_wait_while_they_go_first_and_those_who_outlast_others() {
    let queue = overloaded();
    let turn = queue.take().expect("free");
    queue
        .admit(entrant(3, RequestKind::Batch, 10))
        .expect("room");
    assert!(queue.join(3, 3, 5, Duration::ZERO).is_none());
    let most = order::MOST_WAITING as u64;
    for ticket in 10..10 + most {
        admit_and_join(&queue, ticket);
    }
    // No caller who gave up had waited for as long as request 10 has.
    let patient = queue
        .inner
        .lock()
        .admitted
        .get(&10)
        .map(|admitted| admitted.arrived);
    queue
        .inner
        .lock()
        .order
        .gave_up(Duration::from_secs(60), patient.expect("waits"));
    for ticket in 100..103 {
        queue
            .admit(entrant(ticket, RequestKind::Single, 10))
            .expect("room");
        let left = queue.join(ticket, ticket, 5, Duration::ZERO);
        let left = left.map(|(work, error)| (work, error.code()));
        assert_eq!(left, Some((ticket - 90, "queue_full")));
    }
    assert_eq!(queue.load().waiting as u64, most + 1, "the batch as well");
    drop(turn);
}

#[test]
fn in_a_storm_a_request_that_would_only_push_out_a_new_one_need_not_be_read() {
    let queue = overloaded();
    let turn = queue.take().expect("free");
    let is_refused = |at| queue.inner.lock().has_enough_fresh(at);
    let latest = || queue.inner.lock().latest_admitted.expect("admitted");
    for ticket in 10..10 + order::MOST_WAITING as u64 {
        assert!(!is_refused(latest()));
        admit_and_join(&queue, ticket);
    }
    let at = latest();
    assert!(is_refused(at) && !is_refused(at + order::FRESH_FOR));
    // No time that passes in this test makes the latest request older than the time of its arrival.
    queue.inner.lock().latest_admitted = Some(at + Duration::from_secs(3600));
    assert_eq!(
        queue.refusal().map(|error| error.code()),
        Some("queue_full")
    );
    drop(turn);
    let _next = queue.take().expect("the newest");
    assert!(queue.refusal().is_none(), "the next turn makes room");
}

#[test]
fn a_line_of_patient_callers_is_read_until_it_is_full() {
    let most = 2 * order::MOST_WAITING;
    let queue = Queue::new(Limits {
        max_queue: most,
        max_queue_bytes: 10_000,
        ..LIMITS
    });
    for ticket in 0..most as u64 {
        assert!(queue.refusal().is_none());
        admit_and_join(&queue, ticket);
    }
    assert_eq!(
        queue.refusal().map(|error| error.code()),
        Some("queue_full")
    );
    let _turn = queue.take().expect("free");
    assert!(queue.refusal().is_none());
    queue.close();
    assert!(queue.refusal().is_none(), "the engine tells of its end");
}
