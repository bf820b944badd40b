//! What every request goes through: encode, wait, run, decode, write, and the threads that do it.
//!
//! Threads of the engine parse and encode outside the lock, in parallel. The one that finds the model free runs the
//! line until it is empty; the others go on encoding, so a request never waits for a thread to wake up.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use parking_lot::Mutex;

use crate::Error;
use crate::backend::Backend;
use crate::decode::Logits;
use crate::layout::{EncodedQuestions, Plan};
use crate::question::{Kind, Question};
use crate::queue::{Queue, Stop, Turn};
use crate::session::allocator;
use crate::tenure::{Free, Held, Tenure};
use crate::tokenize::Meter;
use crate::wire::systemone::Usage;
use crate::wire::{Format, Most};

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

/// What stands in the line.
pub enum Work {
    /// A request whose bytes nobody has read.
    Unread(Job),
    /// A request that is ready for the model.
    Encoded(Encoded),
}

impl Work {
    /// Gives the caller the outcome.
    pub fn reply(self, outcome: Result<Answered, Error>) {
        match self {
            Self::Unread(job) => (job.reply)(outcome),
            Self::Encoded(encoded) => (encoded.reply)(outcome),
        }
    }
}

/// A request that has been let in.
pub struct Job {
    /// Its number.
    pub ticket: u64,
    /// The shape of the request and of its answer.
    pub format: Format,
    /// JSON.
    pub body: Vec<u8>,
    /// When the shell began to read the request.
    pub began: Instant,
    /// The one that answered when it came.
    pub model: Arc<Held>,
    /// Asked while it is encoded.
    pub stop: Arc<Stop>,
    /// Called with the outcome.
    pub reply: Reply,
}

/// A request that is ready for the model.
pub struct Encoded {
    /// The shape of the answer.
    pub format: Format,
    /// Whose rows they are, and whose the answer will be.
    pub model: Arc<Held>,
    /// In the caller's order.
    pub questions: Arc<[Question]>,
    /// What the model has to do.
    pub plan: Plan,
    /// When the shell began to read the request.
    pub began: Instant,
    /// How long parsing and tokenizing took.
    pub encode: Duration,
    /// Called with the outcome.
    pub reply: Reply,
}

/// Bytes of a request for each of its tokens, about: what stands in the line unread is counted so.
const BYTES_PER_TOKEN: usize = 4;

/// Something for a thread of the engine to do.
pub type Task = Box<dyn FnOnce(&Arc<Stages>) + Send>;

/// What a request may be.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Questions in one request.
    pub max_questions: usize,
    /// Encoded tokens in one request, special ones included.
    pub max_tokens: usize,
    /// Whether a text beyond the model's window is an error instead of being cut and counted.
    pub refuse_truncation: bool,
}

impl Bounds {
    /// What of it is known before anything is encoded.
    pub fn most(&self) -> Most {
        Most {
            questions: self.max_questions,
            tokens: self.max_tokens,
        }
    }
}

/// Frees a model on a thread of the engine: that takes its time, and whoever lets go may be the thread of the callers.
fn free_on_a_thread(stages: Weak<Stages>) -> Free {
    Arc::new(move |backend| {
        let Some(stages) = stages.upgrade() else {
            return;
        };
        // An engine that has ended has no threads; then it is freed here.
        let _ = stages.send(backend, |backend, _| {
            drop(backend);
            allocator::give_back();
        });
    })
}

/// The model, its line, and the way to the threads that work for them.
pub struct Stages {
    /// Who encodes, runs and decodes.
    pub tenure: Tenure,
    /// The lock on the model.
    pub queue: Queue<Work>,
    /// What a request may be.
    pub bounds: Bounds,
    tasks: Mutex<Option<Sender<Task>>>,
}

impl Stages {
    /// The stages, whose threads take their tasks from the other end of `tasks`.
    pub fn new(
        backend: Arc<dyn Backend>,
        queue: Queue<Work>,
        bounds: Bounds,
        tasks: Sender<Task>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|stages| Self {
            tenure: Tenure::new(backend, free_on_a_thread(stages.clone())),
            queue,
            bounds,
            tasks: Mutex::new(Some(tasks)),
        })
    }

    /// Has a thread do something with `what`.
    ///
    /// # Errors
    /// `what` itself, when there are no threads any more.
    pub fn send<T: Send + 'static>(
        &self,
        what: T,
        task: impl FnOnce(T, &Arc<Self>) + Send + 'static,
    ) -> Result<(), T> {
        let tasks = self.tasks.lock();
        let Some(tasks) = tasks.as_ref() else {
            return Err(what);
        };
        // The threads are there as long as this end is.
        let _ = tasks.send(Box::new(move |stages| task(what, stages)));
        Ok(())
    }

    /// Takes no more tasks; the threads end when they have done what was sent.
    pub fn end(&self) {
        drop(self.tasks.lock().take());
    }

    /// The rows that a state becomes for `model`, within the bounds.
    ///
    /// # Errors
    /// [`Error::TooManyTokens`], [`Error::TextTooLong`], [`Error::RunTooLong`], what the meter's stop says, and those of the model.
    pub fn encode_state(
        &self,
        model: &Held,
        state: &str,
        questions: &EncodedQuestions,
        meter: &mut Meter<'_>,
    ) -> Result<Plan, Error> {
        let plan = model.encode_state(state, questions, meter)?;
        let limit = self.bounds.max_tokens;
        // The texts' tokens were counted once; a layout may put the state into every row.
        if plan.input_tokens() > limit {
            return Err(Error::TooManyTokens { limit });
        }
        if self.bounds.refuse_truncation && plan.truncated_tokens > 0 {
            return Err(Error::TextTooLong {
                tokens: plan.truncated_tokens,
            });
        }
        let least = model.pace.least(&plan, Instant::now());
        let limit = self.queue.max_run();
        if least > limit {
            return Err(Error::RunTooLong {
                tokens: plan.input_tokens(),
                least_ms: least.as_millis() as u64,
                limit_ms: limit.as_millis() as u64,
            });
        }
        Ok(plan)
    }

    /// Takes a request from its bytes into the line.
    pub fn begin(&self, job: Job) {
        let (ticket, stop) = (job.ticket, Arc::clone(&job.stop));
        match self.encode(job, &stop) {
            Ok(encoded) => self.join(ticket, encoded),
            Err((reply, error)) => {
                self.queue.leave(ticket);
                reply(Err(error));
            }
        }
    }

    /// Puts an encoded request into the line.
    pub fn join(&self, ticket: u64, encoded: Encoded) {
        let tokens = encoded.plan.input_tokens();
        let spent = encoded.encode;
        let work = Work::Encoded(encoded);
        if let Some((work, error)) = self.queue.join(ticket, work, tokens, spent) {
            work.reply(Err(error));
        }
    }

    /// Puts a request into the line as it came.
    pub fn join_unread(&self, job: Job) {
        let ticket = job.ticket;
        let tokens = job.body.len() / BYTES_PER_TOKEN;
        let joined = self
            .queue
            .join(ticket, Work::Unread(job), tokens, Duration::ZERO);
        if let Some((work, error)) = joined {
            work.reply(Err(error));
        }
        if self.queue.is_free() {
            // The thread that had the model may have seen an empty line.
            let _ = self.send((), |(), _| {});
        }
    }

    /// Bytes to rows; what goes wrong comes with the way to its caller.
    fn encode(&self, job: Job, stop: &Stop) -> Result<Encoded, (Reply, Error)> {
        let started = Instant::now();
        let encoded = AssertUnwindSafe(|| self.rows(&job, stop));
        match catch_unwind(encoded).unwrap_or(Err(Error::Panicked)) {
            Ok((questions, plan)) => Ok(Encoded {
                format: job.format,
                model: job.model,
                questions,
                plan,
                began: job.began,
                encode: started.elapsed(),
                reply: job.reply,
            }),
            Err(error) => Err((job.reply, error)),
        }
    }

    fn rows(&self, job: &Job, stop: &Stop) -> Result<(Arc<[Question]>, Plan), Error> {
        let stop = stop.within(self.queue.max_run(), Duration::ZERO);
        stop.check()?;
        let request = job.format.parse(&job.body, self.bounds.most())?;
        let mut meter = Meter::new(self.bounds.max_tokens, &stop);
        let questions = job.model.encode_questions(&request.questions, &mut meter)?;
        let plan = self.encode_state(&job.model, &request.state, &questions, &mut meter)?;
        stop.check()?;
        Ok((request.questions.into(), plan))
    }
}

/// The life of an encoding thread.
pub fn serve(stages: &Arc<Stages>, tasks: &Receiver<Task>) {
    for task in tasks {
        task(stages);
        while let Some(turn) = stages.queue.take() {
            run(stages, turn);
        }
    }
}

/// A turn on the model; decoding and writing follow when the model is free again.
fn run(stages: &Stages, mut turn: Turn<'_, Work>) {
    let work = match turn.work.take() {
        Some(Work::Encoded(encoded)) => encoded,
        Some(Work::Unread(job)) => match stages.encode(job, &turn.stop) {
            Ok(encoded) => encoded,
            Err((reply, error)) => {
                turn.tokens = 0;
                drop(turn);
                return reply(Err(error));
            }
        },
        None => return,
    };
    turn.tokens = work.plan.input_tokens();
    let started = Instant::now();
    let logits = catch_unwind(AssertUnwindSafe(|| {
        turn.stop.check()?;
        work.model.run(&work.plan, &turn.stop)
    }));
    let (run, wait) = (started.elapsed(), turn.waited);
    if let Some(pace) = &turn.stop.pace {
        work.model.pace.keep(pace, Instant::now());
    }
    drop(turn);
    let answered = logits.unwrap_or(Err(Error::Panicked)).and_then(|logits| {
        let answer = AssertUnwindSafe(|| answer(&work, &logits, run, wait));
        catch_unwind(answer).unwrap_or(Err(Error::Panicked))
    });
    (work.reply)(answered);
}

/// Logits to bytes.
fn answer(
    work: &Encoded,
    logits: &[Logits],
    run: Duration,
    wait: Duration,
) -> Result<Answered, Error> {
    let pairs = work.questions.iter().zip(logits);
    let answers = pairs.map(|(question, logits)| work.model.decode(question, logits));
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

/// The life of the thread that refuses requests that wait too long.
pub fn expire(stages: &Stages) {
    while let Some(late) = stages.queue.expired() {
        for (work, error) in late {
            work.reply(Err(error));
        }
        // A batch has put its next state into the line, and whoever had the model may not have seen it any more.
        let _ = stages.send((), |(), _| {});
    }
}
