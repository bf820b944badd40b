//! An engine: a model, its queue, and the threads that work for them.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::unbounded;
use parking_lot::Mutex;

use crate::Error;
use crate::backend::{Backend, Info};
use crate::batch::{Batch, PullReply};
use crate::cache::CacheStats;
use crate::model::{Model, Source};
use crate::queue::{Admission, Entrant, Entry, Limits, Load, Queue};
use crate::session::MAX_THREADS;
pub use crate::stages::{Answered, Counts, Reply, Timing};
use crate::stages::{Bounds, Job, Stages, expire, serve};
use crate::wire::Format;
use crate::wire::batch::Framing;

/// The longest body that may join the queue unparsed, in bytes: while such a body is encoded in its
/// turn, the model is idle.
const MAX_UNREAD_BYTES: usize = 64 * 1024;

/// The options of an engine.
#[derive(Debug, Clone)]
pub struct Options {
    /// The model and the device for it; 0 threads mean the container's CPU limit, else the number
    /// of the machine's cores.
    pub source: Source,
    /// The most questions in one request.
    pub max_questions: usize,
    /// The most encoded tokens in one request, special tokens included.
    pub max_tokens: usize,
    /// Whether a text beyond the model's window is an error instead of being cut and counted.
    pub refuse_truncation: bool,
    /// The limits of the queue.
    pub limits: Limits,
}

/// A request that has just arrived.
#[derive(Debug)]
pub struct Arrival {
    /// The number of the request; it counts up with every request of an engine.
    pub ticket: u64,
    /// The shape of the request and of its answer.
    pub format: Format,
    /// The request body, JSON.
    pub body: Vec<u8>,
    /// The time that the caller already spent on the request.
    pub elapsed: Duration,
    /// How long the answer is of use, counted from the moment when the caller began with the
    /// request.
    pub patience: Option<Duration>,
}

/// A batch that has just arrived.
#[derive(Debug)]
pub struct BatchArrival {
    /// The number of the batch; it counts up with every request of an engine.
    pub ticket: u64,
    /// The format in which the results are put together.
    pub framing: Framing,
    /// The most states that the batch may have.
    pub max_states: usize,
    /// The request body, JSON.
    pub body: Vec<u8>,
    /// The time that the caller already spent on the request.
    pub elapsed: Duration,
}

/// An engine: a model, its queue, and the threads that work for them.
pub struct Engine {
    stages: Arc<Stages>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The source of the first model.
    source: Source,
}

impl Engine {
    /// Loads a model and starts the engine's threads.
    ///
    /// # Errors
    /// The errors of [`Model::load`].
    pub fn load(mut options: Options) -> Result<Self, Error> {
        if options.source.threads == 0 {
            // This counts the cgroup's quota and the affinity mask, not only the machine's cores.
            let available = std::thread::available_parallelism().map_or(1, usize::from);
            options.source.threads = available.min(MAX_THREADS);
        }
        let model = Model::load(&options.source)?;
        Ok(Self::start(Arc::new(model), &options))
    }

    /// Starts an engine on a backend.
    pub fn start(backend: Arc<dyn Backend>, options: &Options) -> Self {
        let (sender, tasks) = unbounded();
        let bounds = Bounds {
            max_questions: options.max_questions,
            max_tokens: options.max_tokens,
            refuse_truncation: options.refuse_truncation,
        };
        let queue = Queue::new(options.limits);
        let stages = Stages::new(backend, queue, bounds, sender);
        // There is one thread more than the model uses: while one runs the queue, the others
        // encode.
        let mut threads: Vec<JoinHandle<()>> = (0..=options.source.threads.max(1))
            .map(|index| {
                let (stages, tasks) = (Arc::clone(&stages), tasks.clone());
                spawn(format!("svc-encode-{index}"), move || {
                    serve(&stages, &tasks);
                })
            })
            .collect();
        let watched = Arc::clone(&stages);
        threads.push(spawn("svc-line".into(), move || expire(&watched)));
        Self {
            stages,
            threads: Mutex::new(threads),
            source: options.source.clone(),
        }
    }

    /// Loads the model of another folder with the options of the first one; the current model goes
    /// on answering.
    ///
    /// # Errors
    /// The errors of [`Model::load`].
    pub fn load_next(&self, folder: PathBuf) -> Result<Model, Error> {
        Model::load(&Source {
            folder,
            ..self.source.clone()
        })
    }

    /// Makes `backend` the model of the requests that arrive from now on. Earlier requests finish
    /// on the model that they arrived with, which is freed after the last of them.
    pub fn replace(&self, backend: Arc<dyn Backend>) {
        self.stages.tenure.replace(backend);
    }

    /// Returns the description of the model; `None` for an engine that was not made from a folder.
    pub fn info(&self) -> Option<Info> {
        self.stages.tenure.current().info().cloned()
    }

    /// Whether the newest request goes first, because callers give up before their turn.
    pub fn is_newest_first(&self) -> bool {
        self.stages.queue.is_newest_first()
    }

    /// Returns how many requests are running and waiting.
    pub fn load_now(&self) -> Load {
        self.stages.queue.load()
    }

    /// Returns the statistics of the state cache.
    pub fn cache_stats(&self) -> CacheStats {
        self.stages.tenure.current().cache_stats()
    }

    /// Answers a request; its outcome comes later, through `reply`.
    pub fn decide(&self, arrival: Arrival, reply: Reply) {
        let ticket = arrival.ticket;
        let bytes = arrival.body.len();
        let patience = arrival.patience;
        let entrant = Entrant {
            ticket,
            entry: Entry::Single,
            bytes,
            patience: patience.map(|limit| (limit.saturating_sub(arrival.elapsed), limit)),
        };
        let Admission {
            stop,
            is_encoded_late,
        } = match self.stages.queue.admit(entrant) {
            Ok(admission) => admission,
            Err(error) => return reply(Err(error)),
        };
        let job = Job {
            ticket,
            format: arrival.format,
            body: arrival.body,
            began: before(arrival.elapsed),
            model: self.stages.tenure.current(),
            stop,
            reply,
        };
        if is_encoded_late && bytes <= MAX_UNREAD_BYTES {
            return self.stages.join_unread(job);
        }
        if let Err(job) = self.stages.send(job, |job, stages| stages.begin(job)) {
            self.stages.queue.leave(ticket);
            (job.reply)(Err(Error::Closing));
        }
    }

    /// Starts a batch and returns it; its results are pulled.
    pub fn batch(&self, arrival: BatchArrival) -> Arc<Batch> {
        let (ticket, framing) = (arrival.ticket, arrival.framing);
        let queue = &self.stages.queue;
        let entrant = Entrant {
            ticket,
            entry: Entry::Batch,
            bytes: arrival.body.len(),
            patience: None,
        };
        match queue.admit(entrant) {
            Ok(Admission { stop, .. }) => {
                let batch = Arc::new(Batch::new(ticket, framing, before(arrival.elapsed)));
                batch.begin(&self.stages, stop, arrival.body, arrival.max_states);
                batch
            }
            Err(error) => Batch::refused(ticket, framing, error),
        }
    }

    /// Calls `reply` later with the next results of a batch, as soon as they have `min_bytes` or
    /// are the last.
    pub fn pull(&self, batch: &Arc<Batch>, min_bytes: usize, reply: PullReply) {
        batch.pull(&self.stages, min_bytes, reply);
    }

    /// Drops a batch whose caller has gone; a state that is on the model stops at its next run.
    pub fn cancel_batch(&self, batch: &Arc<Batch>) {
        batch.cancel(&self.stages);
    }

    /// Drops a request whose caller has gone; one that is on the model stops at its next run.
    pub fn cancel(&self, ticket: u64) {
        if let Some(work) = self.stages.queue.cancel(ticket) {
            work.reply(Err(Error::Cancelled));
        }
    }

    /// Admits no more requests, lets all admitted ones finish, and ends the threads. Blocks until
    /// then.
    pub fn close(&self) {
        self.stages.queue.close();
        self.stages.queue.wait_until_empty();
        self.join();
    }

    /// Ends everything now: running requests are terminated and waiting ones refused. Blocks until
    /// the threads have ended.
    pub fn shutdown(&self) {
        self.stages.queue.close();
        for model in self.stages.tenure.all() {
            model.terminate();
        }
        for work in self.stages.queue.cancel_all() {
            work.reply(Err(Error::Closing));
        }
        self.join();
    }

    fn join(&self) {
        self.stages.end();
        for thread in self.threads.lock().drain(..) {
            // A thread that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shutdown();
    }
}

fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let builder = std::thread::Builder::new().name(name);
    #[allow(clippy::expect_used)] // a machine that has no thread left cannot serve
    builder.spawn(work).expect("a thread for the engine")
}

/// Returns the moment that lies `elapsed` before now.
fn before(elapsed: Duration) -> Instant {
    let now = Instant::now();
    now.checked_sub(elapsed).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Chunk;
    use crate::cache::Precision;
    use crate::decode::{Answer, Logits};
    use crate::layout::{EncodedQuestions, Plan, QuestionRows, Row};
    use crate::question::{Kind, Question};
    use crate::stop::Stop;
    use crate::tokenize::Meter;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::mpsc;

    /// How long a test waits for an event that must happen, on a machine that is busy with other
    /// things.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Waits until `is_so` returns true; fails with `what` after [`PATIENCE`].
    fn until(what: &str, is_so: impl Fn() -> bool) {
        let started = Instant::now();
        while !is_so() {
            assert!(started.elapsed() < PATIENCE, "{what}");
            std::thread::yield_now();
        }
    }

    /// A backend that answers two equal logits; the text of the state decides how a run goes.
    struct Fake {
        gate: Mutex<mpsc::Receiver<()>>,
        ran: Mutex<Vec<i64>>,
        encoded_questions: AtomicUsize,
        encoded_states: AtomicUsize,
        terminated: AtomicBool,
        /// The time that each row reports to have taken; no thread waits that long.
        row_took: Mutex<Duration>,
    }

    impl Fake {
        /// Returns a fake, and the sender that lets one of its waiting runs go on.
        fn new() -> (Arc<Self>, mpsc::Sender<()>) {
            let (open, gate) = mpsc::channel();
            let fake = Self {
                gate: Mutex::new(gate),
                ran: Mutex::default(),
                encoded_questions: AtomicUsize::default(),
                encoded_states: AtomicUsize::default(),
                terminated: AtomicBool::default(),
                row_took: Mutex::default(),
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
            })
        }

        fn encode_state(
            &self,
            state: &str,
            questions: &EncodedQuestions,
            meter: &mut Meter<'_>,
        ) -> Result<Plan, Error> {
            self.encoded_states.fetch_add(1, Ordering::SeqCst);
            assert!(state != "panic in encode");
            if state == "slow in encode" {
                std::thread::sleep(Duration::from_millis(10));
            }
            meter.add(if state == "long" { 1000 } else { 1 })?;
            let row = Row {
                ids: vec![state.len() as i64; if state == "thousand" { 1_000 } else { 3 }],
                markers: vec![
                    i64::from(state == "panic in run"),
                    i64::from(state == "wait"),
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
            let calibration = crate::decode::Calibration {
                temperature: 1.0,
                bias: &[],
            };
            Answer::decode(logits, calibration)
        }

        fn terminate(&self) {
            self.terminated.store(true, Ordering::SeqCst);
        }
    }

    fn arrival(ticket: u64, body: String) -> Arrival {
        Arrival {
            ticket,
            format: Format::SystemOne,
            body: body.into_bytes(),
            elapsed: Duration::ZERO,
            patience: None,
        }
    }

    struct Rig {
        /// The gate of the fake. It is dropped before the engine, so that a failing test does not
        /// wait for a run that waits for the gate.
        open: mpsc::Sender<()>,
        engine: Engine,
        fake: Arc<Fake>,
        outcome: mpsc::Receiver<(u64, Result<Answered, Error>)>,
        report: mpsc::Sender<(u64, Result<Answered, Error>)>,
    }

    impl Rig {
        fn new(change: impl FnOnce(&mut Options)) -> Self {
            let mut options = Options {
                source: Source {
                    runtime: "".into(),
                    folder: "".into(),
                    device: "cpu".into(),
                    threads: 2,
                    state_cache_bytes: 0,
                    state_cache_precision: Precision::default(),
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
            let (fake, open) = Fake::new();
            let (report, outcome) = mpsc::channel();
            Self {
                open,
                engine: Engine::start(Arc::clone(&fake) as Arc<dyn Backend>, &options),
                fake,
                outcome,
                report,
            }
        }

        fn ask(&self, ticket: u64, state: &str) {
            let body = format!(
                r#"{{"state":"{state}","questions":{{"a":{{"type":"noul","instructions":"?"}}}}}}"#
            );
            let report = self.report.clone();
            let reply = move |outcome| drop(report.send((ticket, outcome)));
            self.engine.decide(arrival(ticket, body), Box::new(reply));
        }

        fn next(&self) -> (u64, Result<Answered, Error>) {
            self.outcome.recv_timeout(PATIENCE).expect("an outcome")
        }

        /// Waits until the model is taken, so that the next request has to wait.
        fn until_running(&self) {
            until("the model is taken", || self.engine.load_now().running > 0);
        }

        /// Has a request take the model until the gate opens. Where requests may wait only for a
        /// moment, a request may wait for too long on a busy machine; then the next one is asked.
        fn hold(&self) {
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
        fn shut_down(self) -> Self {
            let (ended, end) = mpsc::channel();
            spawn("shutdown".into(), move || {
                self.engine.shutdown();
                drop(ended.send(self));
            });
            end.recv_timeout(PATIENCE).expect("the end of the engine")
        }
    }

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
    fn what_joins_unread_is_encoded_in_its_turn_and_its_faults_are_told() {
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
    fn what_joins_unread_is_run_by_a_thread_that_has_nothing_to_do() {
        let rig = Rig::new(|_| {});
        rig.engine.stages.queue.turn_around();
        rig.ask(1, "fine");
        assert!(rig.next().1.is_ok());
    }

    #[test]
    fn a_large_body_is_encoded_before_its_turn_even_while_the_newest_go_first() {
        let rig = Rig::new(|_| {});
        rig.hold();
        rig.engine.stages.queue.turn_around();
        rig.ask(1, &"x".repeat(MAX_UNREAD_BYTES));
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
            let arrival = Arrival {
                elapsed,
                patience,
                ..arrival(ticket, body.clone())
            };
            let report = rig.report.clone();
            let reply = move |outcome| drop(report.send((ticket, outcome)));
            rig.engine.decide(arrival, Box::new(reply));
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
        let end = pull(&rig, &batch, crate::batch::MAX_UNREAD_BYTES).end;
        assert!(end.expect("the end").expect("no failure").total >= elapsed);
    }

    #[test]
    fn questions_are_counted_by_their_type() {
        let rig = Rig::new(|_| {});
        let body = r#"{"state":"","questions":{"a":{"type":"score","criteria":["x","y"]},
            "b":{"type":"choice","criteria":["x","y"]},"c":{"type":"score","criteria":["x","y"]}}}"#;
        let report = rig.report.clone();
        let reply = move |outcome| drop(report.send((1, outcome)));
        let arrival = arrival(1, body.to_owned());
        rig.engine.decide(arrival, Box::new(reply));
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
            entry: Entry::Single,
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
        let batch = batch(&rig, 3, &["batch", "batch"], 1);
        let (next, _open) = Fake::new();
        rig.engine.replace(Arc::clone(&next) as Arc<dyn Backend>);
        rig.ask(4, "new");
        rig.open.send(()).expect("waits");
        for _ in 0..3 {
            assert!(rig.next().1.is_ok());
        }
        assert_eq!(rest(&rig, &batch).0.len(), 2);
        let mut ran = rig.fake.ran.lock().clone();
        ran.sort_unstable();
        assert_eq!(ran, [4, 5, 5, 7]);
        assert_eq!(*next.ran.lock(), [3]);
    }

    #[test]
    fn a_replaced_model_is_freed_after_its_last_request() {
        let rig = Rig::new(|_| {});
        let (second, open) = Fake::new();
        rig.engine.replace(Arc::clone(&second) as Arc<dyn Backend>);
        rig.ask(1, "wait");
        rig.until_running();
        rig.engine.replace(Fake::new().0);
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
        let (next, _open) = Fake::new();
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
        let report = rig.report.clone();
        let reply = move |outcome| drop(report.send((2, outcome)));
        rig.engine.decide(arrival(2, body), Box::new(reply));
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
        let batch = batch(&rig, 3, &["fine", "beyond22", "fine"], 1);
        let results = rest(&rig, &batch).0;
        assert!(results[0].is_ok() && results[2].is_ok());
        assert_eq!(results[1], Err(Error::TextTooLong { tokens: 2 }));
    }

    fn ask_many(rig: &Rig, questions: usize) -> Result<Answered, Error> {
        let questions = (0..questions).map(|id| format!(r#""{id}":{{"type":"noul"}}"#));
        let questions: Vec<String> = questions.collect();
        let body = format!(r#"{{"state":"","questions":{{{}}}}}"#, questions.join(","));
        let report = rig.report.clone();
        let reply = move |outcome| drop(report.send((1, outcome)));
        rig.engine.decide(arrival(1, body), Box::new(reply));
        rig.next().1
    }

    #[test]
    fn what_cannot_be_run_in_time_is_refused_at_its_arrival_once_that_was_measured() {
        let rig = Rig::new(|options| {
            (options.max_questions, options.max_tokens) = (100, 10_000);
            options.limits.max_run = Duration::from_secs(60);
        });
        *rig.fake.row_took.lock() = Duration::from_secs(1);
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
        let batch = batch(&rig, 9, &["", "longer"], 80);
        let codes = rest(&rig, &batch).0;
        let codes = codes
            .iter()
            .map(|result| result.as_ref().err().map(Error::code));
        assert_eq!(codes.collect::<Vec<_>>(), [Some("run_too_long"); 2]);
        rig.engine.replace(Fake::new().0);
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

    /// Starts a batch that asks `questions` questions about each state and answers in lines.
    fn batch(rig: &Rig, ticket: u64, states: &[&str], questions: usize) -> Arc<Batch> {
        long_batch(rig, ticket, states, questions, 1_000)
    }

    /// Does the same as `batch`, with question ids that are longer by `id_bytes` bytes.
    fn long_batch(
        rig: &Rig,
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
        rig.engine.batch(BatchArrival {
            ticket,
            framing: Framing::Lines,
            max_states: 5_000,
            body: body.into_bytes(),
            elapsed: Duration::ZERO,
        })
    }

    fn pull(rig: &Rig, batch: &Arc<Batch>, min_bytes: usize) -> Chunk {
        let (sender, receiver) = mpsc::channel();
        let reply = move |chunk| drop(sender.send(chunk));
        rig.engine.pull(batch, min_bytes, Box::new(reply));
        receiver.recv_timeout(PATIENCE).expect("a chunk")
    }

    /// Pulls the rest of a batch: its results, and the error that it ended with, if any.
    fn rest(rig: &Rig, batch: &Arc<Batch>) -> (Vec<Result<Answered, Error>>, Option<Error>) {
        let mut results = Vec::new();
        loop {
            let chunk = pull(rig, batch, 1);
            results.extend(chunk.results);
            if let Some(end) = chunk.end {
                return (results, end.err());
            }
        }
    }

    fn until_empty(rig: &Rig) {
        until("nobody waits", || {
            let load = rig.engine.load_now();
            load.waiting + load.running == 0
        });
    }

    #[test]
    fn a_batch_encodes_its_questions_once_and_keeps_the_order_of_its_states() {
        let rig = Rig::new(|_| {});
        let states: Vec<String> = (0..500).map(|length| "x".repeat(length)).collect();
        let states: Vec<&str> = states.iter().map(String::as_str).collect();
        let batch = batch(&rig, 1, &states, 1);
        let (results, failure) = rest(&rig, &batch);
        assert_eq!((results.len(), failure), (500, None));
        assert!(results.iter().all(Result::is_ok));
        assert_eq!(rig.fake.encoded_questions.load(Ordering::SeqCst), 1);
        assert_eq!(*rig.fake.ran.lock(), (0..500).collect::<Vec<_>>());
        until_empty(&rig);
    }

    #[test]
    fn a_batch_is_encoded_ahead_of_the_model_by_so_many_states_or_tokens() {
        // One state is in the queue; behind it 32 are ready, or as many as have 16,384 tokens.
        for (state, ahead) in [("state", 1 + 32), ("thousand", 1 + 17)] {
            let rig = Rig::new(|options| options.max_tokens = 1_000);
            rig.hold();
            let before = rig.fake.encoded_states.load(Ordering::SeqCst);
            let encoded = || rig.fake.encoded_states.load(Ordering::SeqCst) - before;
            let batch = batch(&rig, 1, &[state; 100], 1);
            until("enough are encoded", || encoded() >= ahead);
            // If more states were encoded, they would be encoded at once.
            std::thread::sleep(Duration::from_millis(10));
            assert_eq!(encoded(), ahead, "{state}");
            rig.open.send(()).expect("waits");
            let (results, failure) = rest(&rig, &batch);
            assert_eq!((results.len(), failure), (100, None));
            assert!(results.iter().all(Result::is_ok), "{state}");
        }
    }

    #[test]
    fn a_bad_state_fails_alone() {
        let rig = Rig::new(|_| {});
        let states = ["a", "panic in encode", "b", "long", "panic in run", "c"];
        let batch = batch(&rig, 1, &states, 1);
        let chunk = pull(&rig, &batch, crate::batch::MAX_UNREAD_BYTES);
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
        let batch = batch(&rig, 1, &["beyond1", "fine", "long", "beyond22"], 2);
        let chunk = pull(&rig, &batch, crate::batch::MAX_UNREAD_BYTES);
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
        let batch = batch(&rig, 1, &["slow in encode"; 4], 1);
        until("one is in the line", || {
            rig.engine.stages.queue.in_line() > 0
        });
        let joined = Instant::now();
        std::thread::sleep(Duration::from_millis(10));
        let waited = joined.elapsed();
        rig.open.send(()).expect("waits");
        let chunk = pull(&rig, &batch, crate::batch::MAX_UNREAD_BYTES);
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
    fn the_tokens_of_the_questions_count_with_each_state_of_a_batch() {
        for (max_tokens, refused) in [(1_000, 2), (1_001, 0)] {
            let rig = Rig::new(|options| options.max_tokens = max_tokens);
            let batch = batch(&rig, 1, &["long", "long"], 1);
            let results = rest(&rig, &batch).0;
            let limit = Err(Error::TooManyTokens { limit: max_tokens });
            let too_many = results.iter().filter(|result| **result == limit);
            assert_eq!((results.len(), too_many.count()), (2, refused));
        }
    }

    #[test]
    fn a_single_request_waits_for_one_state_of_a_batch_at_most() {
        let rig = Rig::new(|_| {});
        let batch = batch(&rig, 1, &["wait", "22", "333"], 1);
        rig.until_running();
        rig.ask(2, "single");
        until("one is in the line", || {
            rig.engine.stages.queue.in_line() > 0
        });
        rig.open.send(()).expect("waits");
        assert!(rig.next().1.is_ok());
        assert_eq!(rest(&rig, &batch).0.len(), 3);
        assert_eq!(*rig.fake.ran.lock(), [4, 6, 2, 3]);
    }

    #[test]
    fn a_batch_whose_caller_has_gone_is_not_run_to_its_end() {
        let rig = Rig::new(|_| {});
        let batch = batch(&rig, 1, &["wait", "never run"], 1);
        rig.until_running();
        rig.engine.cancel_batch(&batch);
        rig.open.send(()).expect("waits");
        assert_eq!(rest(&rig, &batch), (vec![], Some(Error::Cancelled)));
        until_empty(&rig);
        assert!(!rig.fake.ran.lock().contains(&("never run".len() as i64)));
    }

    #[test]
    fn a_caller_who_waits_for_full_pieces_gets_them_all() {
        let rig = Rig::new(|_| {});
        let limit = crate::batch::MAX_UNREAD_BYTES;
        // All states are encoded before the first result is there, and four results are a full
        // piece.
        let mut states = ["state"; 20];
        states[0] = "wait";
        let batch = long_batch(&rig, 1, &states, 1, limit / 4);
        rig.until_running();
        rig.open.send(()).expect("waits");
        // A caller that asks for larger pieces also gets four results, since no more are made
        // before these are taken.
        for min_bytes in [limit, limit, limit, usize::MAX, usize::MAX] {
            assert_eq!(pull(&rig, &batch, min_bytes).results.len(), 4);
        }
        assert_eq!(rest(&rig, &batch), (vec![], None));
    }

    #[test]
    fn a_shutdown_ends_a_batch_whose_caller_takes_nothing() {
        let rig = Rig::new(|_| {});
        let limit = crate::batch::MAX_UNREAD_BYTES;
        let batch = long_batch(&rig, 1, &["state"; 20], 1, limit / 4);
        until_empty(&rig);
        assert_eq!(rig.fake.ran.lock().len(), 4);
        let rig = rig.shut_down();
        let end = rest(&rig, &batch).1;
        assert!(matches!(end, Some(Error::Closing | Error::Cancelled)));
    }

    #[test]
    fn no_more_results_are_made_than_the_caller_takes() {
        let rig = Rig::new(|_| {});
        let batch = batch(&rig, 1, &["state"; 5_000], 3);
        let limit = crate::batch::MAX_UNREAD_BYTES;
        for _ in 0..3 {
            let chunk = pull(&rig, &batch, limit);
            assert!((limit..limit + 10_000).contains(&chunk.bytes.len()));
        }
        until("the model is free", || rig.engine.load_now().running == 0);
        // The caller takes no more results, and no state is in the queue or on the model: only the
        // cancellation ends the batch.
        rig.engine.cancel_batch(&batch);
        assert_eq!(rest(&rig, &batch).1, Some(Error::Cancelled));
        until_empty(&rig);
        assert!(rig.fake.ran.lock().len() < 2_000);
    }

    #[test]
    fn batches_whose_callers_take_nothing_keep_nobody_out() {
        let limit = crate::batch::MAX_UNREAD_BYTES;
        let rig = Rig::new(|options| {
            (options.limits.max_queue, options.limits.max_queue_bytes) = (2, 64 * limit);
        });
        let mut paused = Vec::new();
        for ticket in 1..6 {
            let batch = long_batch(&rig, ticket, &["state"; 8], 1, limit / 4);
            until_empty(&rig);
            paused.push(batch);
        }
        for ticket in 6..10 {
            rig.ask(ticket, "fine");
            assert!(rig.next().1.is_ok());
        }
        assert_eq!(rig.fake.ran.lock().len(), 5 * 4 + 4);
        for batch in &paused {
            assert_eq!(rest(&rig, batch).0.len(), 8);
        }
        until_empty(&rig);
    }

    #[test]
    fn an_engine_that_closes_finishes_its_batches_and_one_that_is_shut_down_does_not() {
        let rig = Rig::new(|_| {});
        let first = batch(&rig, 1, &["wait", "b", "c"], 1);
        rig.until_running();
        std::thread::scope(|scope| {
            scope.spawn(|| rig.engine.close());
            rig.open.send(()).expect("waits");
            assert_eq!(rest(&rig, &first).0.len(), 3);
        });
        let late = batch(&rig, 2, &["a"], 1);
        assert_eq!(rest(&rig, &late), (vec![], Some(Error::Closing)));

        let rig = Rig::new(|_| {});
        let cut = batch(&rig, 1, &["wait", "b"], 1);
        rig.until_running();
        rig.open.send(()).expect("waits");
        rig.engine.shutdown();
        let (results, failure) = rest(&rig, &cut);
        assert!(failure.is_some() || results.len() == 2);
    }

    #[test]
    fn a_state_that_waits_too_long_fails_alone_and_the_next_goes_on() {
        let rig = Rig::new(|options| options.limits.request_timeout = Duration::from_millis(30));
        rig.hold();
        let batch = batch(&rig, 2, &["a", "b"], 1);
        let late = pull(&rig, &batch, 1);
        let code = late.results[0].as_ref().expect_err("late").code();
        assert_eq!(code, "queue_timeout");
        rig.open.send(()).expect("waits");
        let (results, failure) = rest(&rig, &batch);
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
                let chunk = pull(&rig, &batch, 1);
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
        let empty = batch(&rig, 1, &[], 1);
        let chunk = pull(&rig, &empty, 1);
        assert!(chunk.results.is_empty() && matches!(chunk.end, Some(Ok(_))));
        let many = batch(&rig, 2, &["a"; 5_001], 1);
        let (limit, actual) = (5_000, 5_001);
        assert_eq!(
            rest(&rig, &many),
            (vec![], Some(Error::TooManyStates { limit, actual }))
        );
        until_empty(&rig);
    }
}
