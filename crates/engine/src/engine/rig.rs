//! An engine on a fake model, for the tests of requests and of batches.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{Arrival, BatchArrival, Engine, Options, spawn};
use crate::Error;
use crate::backend::Backend;
use crate::batch::{Batch, Chunk};
use crate::cache::Precision;
use crate::decode::{Answer, Calibration, Logits};
use crate::layout::{EncodedQuestions, Plan, QuestionRows, Row};
use crate::model::Source;
use crate::question::{Kind, Question, State};
use crate::queue::Limits;
use crate::stages::Answered;
use crate::stop::Stop;
use crate::tokenize::Meter;
use crate::wire::Format;
use crate::wire::batch::Framing;

/// How long a test waits for an event that must happen, on a machine that is busy with other
/// things.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How long the encoding of the state "very slow in encode" takes.
pub const SLOW_ENCODE: Duration = Duration::from_millis(1_200);

/// How long a run about the state "held up" says that it waited for cores; no thread waits that long.
pub const HELD_UP: Duration = Duration::from_secs(3600);

/// Waits until `is_so` returns true; fails with `what` after [`PATIENCE`].
pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

/// The most pulls of a batch in a test, which has far fewer results.
const MOST_PULLS: usize = 10_000;

/// A backend that answers two equal logits; the text of the state decides how a run goes.
pub struct Fake {
    gate: Mutex<mpsc::Receiver<()>>,
    pub ran: Mutex<Vec<i64>>,
    pub encoded_questions: AtomicUsize,
    pub encoded_states: AtomicUsize,
    pub terminated: AtomicBool,
    /// The time that each row reports to have taken; no thread waits that long.
    pub row_took: Mutex<Duration>,
    parallel: usize,
}

impl Fake {
    /// Returns a fake that runs so many requests at once, and the sender that lets one of its waiting
    /// runs go on.
    pub fn new(parallel: usize) -> (Arc<Self>, mpsc::Sender<()>) {
        let (open, gate) = mpsc::channel();
        let fake = Self {
            gate: Mutex::new(gate),
            ran: Mutex::default(),
            encoded_questions: AtomicUsize::default(),
            encoded_states: AtomicUsize::default(),
            terminated: AtomicBool::default(),
            row_took: Mutex::default(),
            parallel,
        };
        (Arc::new(fake), open)
    }
}

impl Backend for Fake {
    fn encode_questions(
        &self,
        questions: &[Question],
        meter: &mut Meter<'_>,
    ) -> Result<EncodedQuestions, Error> {
        self.encoded_questions.fetch_add(1, Ordering::SeqCst);
        meter.add(1)?;
        let rows = QuestionRows {
            kind: Kind::Noul,
            outcomes: 2,
            rows: vec![],
        };
        Ok(EncodedQuestions {
            rows: vec![rows; questions.len()].into(),
            truncated_tokens: 0,
            ..EncodedQuestions::default()
        })
    }

    fn encode_state(
        &self,
        state: &State,
        questions: &EncodedQuestions,
        meter: &mut Meter<'_>,
    ) -> Result<Plan, Error> {
        let state = state.text.as_str();
        self.encoded_states.fetch_add(1, Ordering::SeqCst);
        assert!(state != "panic in encode");
        match state {
            "slow in encode" => std::thread::sleep(Duration::from_millis(10)),
            "very slow in encode" => std::thread::sleep(SLOW_ENCODE),
            _ => {}
        }
        meter.add(if state == "long" { 1000 } else { 1 })?;
        let row = Row {
            ids: vec![state.len() as i64; if state == "thousand" { 1_000 } else { 3 }],
            markers: vec![
                i64::from(state == "panic in run"),
                i64::from(state == "wait" || state == "very slow in encode"),
                i64::from(state == "held up"),
            ],
            ..Row::default()
        };
        let rows = questions.rows.iter().map(|question| QuestionRows {
            kind: question.kind,
            outcomes: question.outcomes,
            rows: vec![row.clone()],
        });
        Ok(Plan {
            questions: rows.collect(),
            truncated_tokens: state.strip_prefix("beyond").map_or(0, str::len),
            ..Plan::default()
        })
    }

    fn run(&self, plan: &Plan, stop: &Stop) -> Result<Vec<Logits>, Error> {
        let row = &plan.questions[0].rows[0];
        self.ran.lock().push(row.ids[0]);
        assert!(row.markers[0] == 0, "a panic in the run");
        if row.markers[1] == 1 {
            let _ = self.gate.lock().recv();
        }
        if row.markers[2] == 1 {
            stop.note_wait(HELD_UP);
        }
        stop.check()?;
        if let Some(pace) = &stop.pace {
            for question in plan.questions.iter() {
                pace.note([question.rows[0].ids.len(), 0], 1, *self.row_took.lock());
            }
        }
        let logits = Logits {
            outcomes: vec![0.0, 0.0],
            action: None,
        };
        Ok(vec![logits; plan.questions.len()])
    }

    fn decode(&self, _: &Question, logits: &Logits) -> Result<Answer, Error> {
        let calibration = Calibration {
            temperature: 1.0,
            bias: &[],
        };
        Answer::decode(logits, calibration)
    }

    fn parallel(&self) -> usize {
        self.parallel
    }

    fn terminate(&self) {
        self.terminated.store(true, Ordering::SeqCst);
    }
}

/// Returns a request whose body was read in no time.
pub fn arrival(ticket: u64, body: String) -> Arrival {
    Arrival {
        ticket,
        format: Format::SystemOne,
        body: body.into_bytes(),
        elapsed: Duration::ZERO,
        patience: None,
    }
}

/// An engine on a fake model, and the outcomes of the requests that it was asked.
pub struct Rig {
    /// The gate of the fake. It is dropped before the engine, so that a failing test does not
    /// wait for a run that waits for the gate.
    pub open: mpsc::Sender<()>,
    pub engine: Engine,
    pub fake: Arc<Fake>,
    outcome: mpsc::Receiver<(u64, Result<Answered, Error>)>,
    report: mpsc::Sender<(u64, Result<Answered, Error>)>,
}

impl Rig {
    /// Returns an engine with these changes to its options.
    pub fn new(change: impl FnOnce(&mut Options)) -> Self {
        let mut options = Options {
            source: Source {
                runtime: "".into(),
                folder: "".into(),
                device: "cpu".into(),
                threads: 2,
                state_cache_bytes: 0,
                state_cache_precision: Precision::default(),
                parallel: 1,
            },
            max_questions: 3,
            max_tokens: 100,
            refuse_truncation: false,
            limits: Limits {
                max_queue: 100,
                max_queue_bytes: 1 << 20,
                request_timeout: Duration::from_secs(60),
                max_run: Duration::from_secs(60),
            },
        };
        change(&mut options);
        let (fake, open) = Fake::new(options.source.parallel);
        let (report, outcome) = mpsc::channel();
        Self {
            open,
            engine: Engine::start(Arc::clone(&fake) as Arc<dyn Backend>, &options),
            fake,
            outcome,
            report,
        }
    }

    /// Asks one question about a state, see [`Rig::send`].
    pub fn ask(&self, ticket: u64, state: &str) {
        let body = format!(
            r#"{{"state":"{state}","questions":{{"a":{{"type":"noul","instructions":"?"}}}}}}"#
        );
        self.send(arrival(ticket, body));
    }

    /// Sends a request, whose outcome [`Rig::next`] returns.
    pub fn send(&self, arrival: Arrival) {
        let (ticket, report) = (arrival.ticket, self.report.clone());
        let reply = move |outcome| drop(report.send((ticket, outcome)));
        self.engine.decide(arrival, Box::new(reply));
    }

    /// Returns the next outcome, with the number of its request.
    pub fn next(&self) -> (u64, Result<Answered, Error>) {
        self.outcome.recv_timeout(PATIENCE).expect("an outcome")
    }

    /// Waits until the model is taken, so that the next request has to wait.
    pub fn until_running(&self) {
        until("the model is taken", || self.engine.load_now().running > 0);
    }

    /// Has a request take the model until the gate opens. Where requests may wait only for a
    /// moment, a request may wait for too long on a busy machine; then the next one is asked.
    pub fn hold(&self) {
        let is_running = || self.engine.load_now().running > 0;
        let tickets = std::cell::Cell::new(1_000);
        let ask = || {
            self.ask(tickets.get(), "wait");
            tickets.set(tickets.get() + 1);
        };
        ask();
        until("the model is taken", || {
            if self.outcome.try_recv().is_ok() {
                ask();
            }
            is_running()
        });
    }

    /// Shuts the engine down, which must end.
    pub fn shut_down(self) -> Self {
        let (ended, end) = mpsc::channel();
        spawn("shutdown".into(), move || {
            self.engine.shutdown();
            drop(ended.send(self));
        });
        end.recv_timeout(PATIENCE).expect("the end of the engine")
    }

    /// Starts a batch that asks `questions` questions about each state and answers in lines.
    pub fn batch(&self, ticket: u64, states: &[&str], questions: usize) -> Arc<Batch> {
        self.long_batch(ticket, states, questions, 1_000)
    }

    /// Does the same as `batch`, with question ids that are longer by `id_bytes` bytes.
    pub fn long_batch(
        &self,
        ticket: u64,
        states: &[&str],
        questions: usize,
        id_bytes: usize,
    ) -> Arc<Batch> {
        let questions: Vec<String> = (0..questions)
            .map(|id| format!(r#""{id}{}":{{"type":"noul"}}"#, "-".repeat(id_bytes)))
            .collect();
        let states = serde_json::to_string(states).expect("JSON");
        let body = format!(
            r#"{{"states":{states},"questions":{{{}}}}}"#,
            questions.join(",")
        );
        self.engine.batch(BatchArrival {
            ticket,
            framing: Framing::Lines,
            max_states: 5_000,
            body: body.into_bytes(),
            elapsed: Duration::ZERO,
        })
    }

    /// Returns the next results of a batch.
    pub fn pull(&self, batch: &Arc<Batch>, min_bytes: usize) -> Chunk {
        let (sender, receiver) = mpsc::channel();
        let reply = move |chunk| drop(sender.send(chunk));
        self.engine.pull(batch, min_bytes, Box::new(reply));
        receiver.recv_timeout(PATIENCE).expect("a chunk")
    }

    /// Pulls the rest of a batch: its results, and the error that it ended with, if any.
    pub fn rest(&self, batch: &Arc<Batch>) -> (Vec<Result<Answered, Error>>, Option<Error>) {
        let mut results = Vec::new();
        for _ in 0..MOST_PULLS {
            let chunk = self.pull(batch, 1);
            results.extend(chunk.results);
            if let Some(end) = chunk.end {
                return (results, end.err());
            }
        }
        panic!("the batch has no end");
    }

    /// Waits until no request is on the model or waits for it.
    pub fn until_empty(&self) {
        until("nobody waits", || {
            let load = self.engine.load_now();
            load.waiting + load.running == 0
        });
    }

    /// Returns the number of requests in the queue.
    pub fn in_line(&self) -> usize {
        self.engine.stages.queue.in_line()
    }
}
