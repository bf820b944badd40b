//! The stages in order: parse, encode, wait, run, decode, write.
//!
//! Threads of the engine parse and encode outside the lock, in parallel. The one that finds the model free runs the
//! line until it is empty; the others go on encoding, so a request never waits for a thread to wake up.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use parking_lot::Mutex;

use crate::Error;
use crate::cache::CacheStats;
use crate::decode::{Answer, Logits};
use crate::layout::Plan;
use crate::model::{Info, Model, Source};
use crate::question::{Kind, Question, Request};
use crate::queue::{Limits, Load, Queue, Stop, Turn};
use crate::session::MAX_THREADS;
use crate::tokenize::Meter;
use crate::wire::Format;
use crate::wire::systemone::Usage;

/// What an engine is made of.
#[derive(Debug, Clone)]
pub struct Options {
    /// The model and what to run it on; 0 threads take the container's CPU limit, else the machine's cores.
    pub source: Source,
    /// Questions in one request.
    pub max_questions: usize,
    /// Encoded tokens in one request, special ones included.
    pub max_tokens: usize,
    /// Whether a text beyond the model's window is an error instead of being cut and counted.
    pub refuse_truncation: bool,
    /// The bounds of the line.
    pub limits: Limits,
}

/// Where the time of a request went.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Timing {
    /// Parsing and tokenizing.
    pub encode: Duration,
    /// In the line for the model.
    pub wait: Duration,
    /// On the model.
    pub run: Duration,
    /// From reading the request to the decoded answer.
    pub total: Duration,
}

/// What an answered request was made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Choice questions.
    pub choice: usize,
    /// Score questions.
    pub score: usize,
    /// Noul questions.
    pub noul: usize,
    /// Tokens that the answers were made from.
    pub input_tokens: usize,
    /// Tokens beyond the model's window.
    pub truncated_tokens: usize,
}

/// An answered request.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The response body, JSON.
    pub body: Vec<u8>,
    /// Where the time went.
    pub timing: Timing,
    /// What it was made of.
    pub counts: Counts,
    /// The confidence of each answer, with its question's type.
    pub confidences: Vec<(Kind, f64)>,
}

/// What is called with the outcome of a request, once, on a thread of the engine.
pub type Reply = Box<dyn FnOnce(Result<Answered, Error>) + Send>;

/// What the engine runs: the model, or in tests something that stands in for it.
pub trait Backend: Send + Sync {
    /// See [`Model::encode`].
    ///
    /// # Errors
    /// Those of the model.
    fn encode(&self, request: &Request, meter: &mut Meter<'_>) -> Result<Plan, Error>;
    /// See [`Model::run`].
    ///
    /// # Errors
    /// Those of the model.
    fn run(&self, plan: &Plan, stop: &Stop) -> Result<Vec<Logits>, Error>;
    /// See [`Model::decode`].
    ///
    /// # Errors
    /// Those of the model.
    fn decode(&self, question: &Question, logits: &Logits) -> Result<Answer, Error>;
    /// See [`Model::cache_stats`].
    fn cache_stats(&self) -> CacheStats {
        CacheStats::default()
    }
    /// See [`Model::terminate`].
    fn terminate(&self);
}

impl Backend for Model {
    fn encode(&self, request: &Request, meter: &mut Meter<'_>) -> Result<Plan, Error> {
        self.encode(request, meter)
    }

    fn run(&self, plan: &Plan, stop: &Stop) -> Result<Vec<Logits>, Error> {
        self.run(plan, stop)
    }

    fn decode(&self, question: &Question, logits: &Logits) -> Result<Answer, Error> {
        self.decode(question, logits)
    }

    fn cache_stats(&self) -> CacheStats {
        self.cache_stats()
    }

    fn terminate(&self) {
        self.terminate();
    }
}

/// A request that has just arrived.
#[derive(Debug)]
pub struct Arrival {
    /// Counts up with every request of an engine.
    pub ticket: u64,
    /// The shape of the request and of its answer.
    pub format: Format,
    /// JSON.
    pub body: Vec<u8>,
    /// What the caller already spent on the request.
    pub elapsed: Duration,
}

/// A request that has been let in.
struct Job {
    ticket: u64,
    format: Format,
    body: Vec<u8>,
    /// When the shell began to read the request.
    began: Instant,
    stop: Arc<Stop>,
    reply: Reply,
}

/// A request that is ready for the model.
struct Work {
    format: Format,
    questions: Vec<Question>,
    plan: Plan,
    began: Instant,
    encode: Duration,
    reply: Reply,
}

struct Shared {
    backend: Arc<dyn Backend>,
    queue: Queue<Work>,
    max_questions: usize,
    max_tokens: usize,
    refuse_truncation: bool,
}

/// An engine: a model, its line, and the threads that work for them.
pub struct Engine {
    shared: Arc<Shared>,
    jobs: Mutex<Option<Sender<Job>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    info: Option<Info>,
}

impl Engine {
    /// Loads a model and starts the engine's threads.
    ///
    /// # Errors
    /// Those of [`Model::load`].
    pub fn load(mut options: Options) -> Result<Self, Error> {
        if options.source.threads == 0 {
            // Counts the cgroup's quota and the affinity mask, not only the machine's cores.
            let available = std::thread::available_parallelism().map_or(1, usize::from);
            options.source.threads = available.min(MAX_THREADS);
        }
        let model = Model::load(&options.source)?;
        let info = model.info().clone();
        let mut engine = Self::start(Arc::new(model), &options);
        engine.info = Some(info);
        Ok(engine)
    }

    /// Starts an engine on a backend.
    pub fn start(backend: Arc<dyn Backend>, options: &Options) -> Self {
        let shared = Arc::new(Shared {
            backend,
            queue: Queue::new(options.limits),
            max_questions: options.max_questions,
            max_tokens: options.max_tokens,
            refuse_truncation: options.refuse_truncation,
        });
        let (sender, receiver) = unbounded();
        // One more than the model uses: while one thread runs the line, the others encode.
        let mut threads: Vec<JoinHandle<()>> = (0..=options.source.threads.max(1))
            .map(|index| {
                let (shared, receiver) = (Arc::clone(&shared), receiver.clone());
                spawn(format!("svc-encode-{index}"), move || {
                    serve(&shared, &receiver)
                })
            })
            .collect();
        let watched = Arc::clone(&shared);
        threads.push(spawn("svc-line".into(), move || expire(&watched)));
        Self {
            shared,
            jobs: Mutex::new(Some(sender)),
            threads: Mutex::new(threads),
            info: None,
        }
    }

    /// What is said of the model; `None` for an engine that was not made from a folder.
    pub fn info(&self) -> Option<&Info> {
        self.info.as_ref()
    }

    /// How many requests there are.
    pub fn load_now(&self) -> Load {
        self.shared.queue.load()
    }

    /// How the kept states are doing.
    pub fn cache_stats(&self) -> CacheStats {
        self.shared.backend.cache_stats()
    }

    /// Answers a request, some time later, through `reply`.
    pub fn decide(&self, arrival: Arrival, reply: Reply) {
        let ticket = arrival.ticket;
        let stop = match self.shared.queue.admit(ticket, arrival.body.len()) {
            Ok(stop) => stop,
            Err(error) => return reply(Err(error)),
        };
        let now = Instant::now();
        let job = Job {
            ticket,
            format: arrival.format,
            body: arrival.body,
            began: now.checked_sub(arrival.elapsed).unwrap_or(now),
            stop,
            reply,
        };
        let refused = match self.jobs.lock().as_ref() {
            Some(jobs) => jobs.send(job).err().map(|error| error.0),
            None => Some(job),
        };
        if let Some(job) = refused {
            self.shared.queue.leave(ticket);
            (job.reply)(Err(Error::Closing));
        }
    }

    /// Drops a request whose caller has gone; one that is on the model stops at its next run.
    pub fn cancel(&self, ticket: u64) {
        if let Some(work) = self.shared.queue.cancel(ticket) {
            (work.reply)(Err(Error::Cancelled));
        }
    }

    /// Lets nobody in any more, lets all that is there finish, and ends the threads. Blocks until then.
    pub fn close(&self) {
        self.shared.queue.close();
        self.shared.queue.wait_until_empty();
        self.join();
    }

    /// Ends everything now: what runs is terminated, what waits is refused. Blocks until the threads have ended.
    pub fn shutdown(&self) {
        self.shared.queue.close();
        self.shared.backend.terminate();
        for work in self.shared.queue.cancel_all() {
            (work.reply)(Err(Error::Closing));
        }
        self.join();
    }

    fn join(&self) {
        drop(self.jobs.lock().take());
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

/// The life of an encoding thread.
fn serve(shared: &Shared, jobs: &Receiver<Job>) {
    for job in jobs {
        let ticket = job.ticket;
        let encoded = catch_unwind(AssertUnwindSafe(|| encode(shared, &job)));
        let encoded = encoded.unwrap_or(Err(Error::Panicked));
        match encoded {
            Ok((questions, plan, encode)) => {
                let tokens = plan.input_tokens();
                let work = Work {
                    format: job.format,
                    questions,
                    plan,
                    began: job.began,
                    encode,
                    reply: job.reply,
                };
                if let Some(work) = shared.queue.join(ticket, work, tokens) {
                    (work.reply)(Err(Error::Cancelled));
                }
            }
            Err(error) => {
                shared.queue.leave(ticket);
                (job.reply)(Err(error));
            }
        }
        while let Some(turn) = shared.queue.take() {
            run(shared, turn);
        }
    }
}

/// Bytes to rows.
fn encode(shared: &Shared, job: &Job) -> Result<(Vec<Question>, Plan, Duration), Error> {
    let started = Instant::now();
    job.stop.check()?;
    let request = job.format.parse(&job.body, shared.max_questions)?;
    let limit = shared.max_tokens;
    let mut meter = Meter::new(limit, &job.stop);
    let plan = shared.backend.encode(&request, &mut meter)?;
    // The texts' tokens were counted once; a layout may put the state into every row.
    if plan.input_tokens() > limit {
        return Err(Error::TooManyTokens { limit });
    }
    if shared.refuse_truncation && plan.truncated_tokens > 0 {
        return Err(Error::TextTooLong {
            tokens: plan.truncated_tokens,
        });
    }
    job.stop.check()?;
    Ok((request.questions, plan, started.elapsed()))
}

/// A turn on the model; decoding and writing follow when the model is free again.
fn run(shared: &Shared, mut turn: Turn<'_, Work>) {
    let Some(work) = turn.work.take() else { return };
    let started = Instant::now();
    let logits = catch_unwind(AssertUnwindSafe(|| {
        turn.stop.check()?;
        shared.backend.run(&work.plan, &turn.stop)
    }));
    let (run, wait) = (started.elapsed(), turn.waited);
    drop(turn);
    let answered = logits.unwrap_or(Err(Error::Panicked)).and_then(|logits| {
        let answer = AssertUnwindSafe(|| answer(shared, &work, &logits, run, wait));
        catch_unwind(answer).unwrap_or(Err(Error::Panicked))
    });
    (work.reply)(answered);
}

/// Logits to bytes.
fn answer(
    shared: &Shared,
    work: &Work,
    logits: &[Logits],
    run: Duration,
    wait: Duration,
) -> Result<Answered, Error> {
    let pairs = work.questions.iter().zip(logits);
    let answers = pairs.map(|(question, logits)| shared.backend.decode(question, logits));
    let answers = answers.collect::<Result<Vec<_>, _>>()?;
    let total = work.began.elapsed();
    let usage = Usage {
        input_tokens: work.plan.input_tokens(),
        truncated_tokens: work.plan.truncated_tokens,
        server_ms: total.as_secs_f64() * 1e3,
    };
    let confidences = work.questions.iter().zip(&answers);
    let confidences =
        confidences.map(|(question, answer)| (question.kind, answer.confidence(question.kind)));
    let of_kind = |kind| {
        work.questions
            .iter()
            .filter(|each| each.kind == kind)
            .count()
    };
    Ok(Answered {
        body: work.format.write(&work.questions, &answers, &usage),
        timing: Timing {
            encode: work.encode,
            wait,
            run,
            total,
        },
        counts: Counts {
            choice: of_kind(Kind::Choice),
            score: of_kind(Kind::Score),
            noul: of_kind(Kind::Noul),
            input_tokens: usage.input_tokens,
            truncated_tokens: usage.truncated_tokens,
        },
        confidences: confidences.collect(),
    })
}

/// The life of the thread that refuses who waits too long.
fn expire(shared: &Shared) {
    while let Some((late, error)) = shared.queue.expired() {
        for work in late {
            (work.reply)(Err(error.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Precision;
    use crate::layout::{QuestionRows, Row};
    use std::sync::mpsc;

    /// Answers two equal logits; what the state says decides how a run goes.
    struct Fake {
        gate: Mutex<mpsc::Receiver<()>>,
        ran: Mutex<Vec<i64>>,
    }

    impl Backend for Fake {
        fn encode(&self, request: &Request, _: &mut Meter<'_>) -> Result<Plan, Error> {
            assert!(request.state != "panic in encode");
            let row = Row {
                ids: vec![request.state.len() as i64; 3],
                markers: vec![
                    i64::from(request.state == "panic in run"),
                    i64::from(request.state == "wait"),
                ],
                ..Row::default()
            };
            let rows = QuestionRows {
                kind: Kind::Noul,
                outcomes: 2,
                rows: vec![row],
            };
            Ok(Plan {
                questions: vec![rows; request.questions.len()],
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

        fn terminate(&self) {}
    }

    fn arrival(ticket: u64, body: String) -> Arrival {
        Arrival {
            ticket,
            format: Format::SystemOne,
            body: body.into_bytes(),
            elapsed: Duration::ZERO,
        }
    }

    struct Rig {
        engine: Engine,
        fake: Arc<Fake>,
        open: mpsc::Sender<()>,
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
            let (open, gate) = mpsc::channel();
            let (report, outcome) = mpsc::channel();
            let fake = Arc::new(Fake {
                gate: Mutex::new(gate),
                ran: Mutex::new(Vec::new()),
            });
            Self {
                engine: Engine::start(Arc::clone(&fake) as Arc<dyn Backend>, &options),
                fake,
                open,
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
            self.outcome
                .recv_timeout(Duration::from_secs(20))
                .expect("an outcome")
        }

        /// Waits until the model is taken, so that what is asked next has to wait.
        fn until_running(&self) {
            while self.engine.load_now().running == 0 {
                std::thread::yield_now();
            }
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
        assert_eq!(rig.next().0, 1);
        assert_eq!(rig.next().0, 3);
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
    fn close_lets_all_that_is_there_finish() {
        let rig = Rig::new(|_| {});
        rig.ask(1, "wait");
        rig.until_running();
        for ticket in 2..10 {
            rig.ask(ticket, "fine");
        }
        std::thread::scope(|scope| {
            scope.spawn(|| rig.engine.close());
            while !matches!(rig.engine.shared.queue.admit(99, 0), Err(Error::Closing)) {
                rig.engine.shared.queue.leave(99);
            }
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
        while rig.engine.load_now().waiting == 0 {
            std::thread::yield_now();
        }
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
    fn who_waits_too_long_is_told_so_while_the_model_is_busy() {
        let rig = Rig::new(|options| options.limits.request_timeout = Duration::from_millis(30));
        rig.ask(1, "wait");
        rig.until_running();
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
}
