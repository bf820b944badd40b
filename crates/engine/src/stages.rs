//! The stages of every request (encode, wait, run, decode, write) and the threads that do them.
//!
//! Threads of the engine parse and encode outside the lock, in parallel. The thread that finds the
//! model free runs the queue until it is empty; the others go on encoding, so a request never waits
//! for a thread to wake up.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use parking_lot::Mutex;

use crate::Error;
use crate::backend::Backend;
use crate::decode::Logits;
use crate::layout::{EncodedQuestions, Plan};
use crate::question::{Kind, Question, State};
use crate::queue::{Queue, Turn};
use crate::session::allocator;
use crate::stop::Stop;
use crate::tenure::{Free, Held, Tenure};
use crate::tokenize::Meter;
use crate::wire::{Format, Most, Usage};

/// The durations of a request's stages.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Timing {
    /// The time of parsing and tokenizing.
    pub encode: Duration,
    /// The time of waiting in the queue for the model.
    pub wait: Duration,
    /// The time on the model.
    pub run: Duration,
    /// The time from reading the request to the decoded answer.
    pub total: Duration,
}

/// The numbers of questions and tokens of an answered request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of choice questions.
    pub choice: usize,
    /// The number of score questions.
    pub score: usize,
    /// The number of noul questions.
    pub noul: usize,
    /// The number of tokens that the answers were made from.
    pub input_tokens: usize,
    /// The number of tokens beyond the model's window.
    pub truncated_tokens: usize,
}

/// An answered request.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The response body, JSON.
    pub body: Vec<u8>,
    /// The durations of its stages.
    pub timing: Timing,
    /// The numbers of its questions and tokens.
    pub counts: Counts,
    /// The confidence of each answer, with its question's type.
    pub confidences: Vec<(Kind, f64)>,
}

/// The callback that receives the outcome of a request, once, on a thread of the engine.
pub type Reply = Box<dyn FnOnce(Result<Answered, Error>) + Send>;

/// An entry of the queue.
pub enum Work {
    /// A request whose body has not been parsed.
    Unparsed(Job),
    /// A request that is ready for the model.
    Encoded(Encoded),
}

impl Work {
    /// Gives the caller the outcome.
    pub fn reply(self, outcome: Result<Answered, Error>) {
        match self {
            Self::Unparsed(job) => (job.reply)(outcome),
            Self::Encoded(encoded) => (encoded.reply)(outcome),
        }
    }
}

/// A request that the queue has admitted.
pub struct Job {
    /// The number of the request.
    pub ticket: u64,
    /// The shape of the request and of its answer.
    pub format: Format,
    /// The request body, JSON.
    pub body: Vec<u8>,
    /// When the shell began to read the request.
    pub began: Instant,
    /// The model that was current when the request arrived.
    pub model: Arc<Held>,
    /// The stop that is checked while the request is encoded.
    pub stop: Arc<Stop>,
    /// The callback for the outcome.
    pub reply: Reply,
}

/// A request that is ready for the model.
pub struct Encoded {
    /// The shape of the answer.
    pub format: Format,
    /// The model that the rows were made for and that makes the answer.
    pub model: Arc<Held>,
    /// The questions, in the caller's order.
    pub questions: Arc<[Question]>,
    /// The rows for the model.
    pub plan: Plan,
    /// When the shell began to read the request.
    pub began: Instant,
    /// How long parsing and tokenizing took.
    pub encode: Duration,
    /// The callback for the outcome.
    pub reply: Reply,
}

/// The approximate number of bytes of a request for each of its tokens; it estimates the tokens of
/// an unparsed request in the queue.
const BYTES_PER_TOKEN: usize = 4;

/// A task for a thread of the engine.
pub type Task = Box<dyn FnOnce(&Arc<Stages>) + Send>;

/// The bounds of a request.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The most questions in one request.
    pub max_questions: usize,
    /// The most encoded tokens in one request, special tokens included.
    pub max_tokens: usize,
    /// Whether a text beyond the model's window is an error instead of being cut and counted.
    pub refuse_truncation: bool,
}

impl Bounds {
    /// Returns the bounds that are checked while a request is parsed.
    pub fn most(&self) -> Most {
        Most {
            questions: self.max_questions,
            tokens: self.max_tokens,
        }
    }
}

/// Returns a callback that frees a model on a thread of the engine: freeing takes its time, and the
/// thread that releases the model may be the callers' own.
fn free_on_a_thread(stages: Weak<Stages>) -> Free {
    Arc::new(move |backend| {
        let Some(stages) = stages.upgrade() else {
            return;
        };
        // An engine that has ended has no threads; then the model is freed here.
        let _ = stages.send(backend, |backend, _| {
            drop(backend);
            allocator::give_back();
        });
    })
}

/// The model, its queue, and the channel to the threads that work for them.
pub struct Stages {
    /// The models that encode, run and decode.
    pub tenure: Tenure,
    /// The queue, which is the lock on the model.
    pub queue: Queue<Work>,
    /// The bounds of a request.
    pub bounds: Bounds,
    tasks: Mutex<Option<Sender<Task>>>,
}

impl Stages {
    /// Returns the stages; their threads take tasks from the other end of `tasks`.
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

    /// Has a thread of the engine do `task` with `what`.
    ///
    /// # Errors
    /// `what` itself, when the threads are gone.
    pub fn send<T: Send + 'static>(
        &self,
        what: T,
        task: impl FnOnce(T, &Arc<Self>) + Send + 'static,
    ) -> Result<(), T> {
        let tasks = self.tasks.lock();
        let Some(tasks) = tasks.as_ref() else {
            return Err(what);
        };
        // The threads live as long as this end of the channel does.
        let _ = tasks.send(Box::new(move |stages| task(what, stages)));
        Ok(())
    }

    /// Accepts no more tasks; the threads end when they have done the tasks that were sent.
    pub fn end(&self) {
        drop(self.tasks.lock().take());
    }

    /// Returns the rows of a state for `model`, within the bounds.
    ///
    /// # Errors
    /// [`Error::TooManyTokens`], [`Error::TextTooLong`], [`Error::RunTooLong`], the error of the
    /// meter's stop, and those of the model.
    pub fn plan_within_bounds(
        &self,
        model: &Held,
        state: &State,
        questions: &EncodedQuestions,
        meter: &mut Meter<'_>,
    ) -> Result<Plan, Error> {
        let plan = model.encode_state(state, questions, meter)?;
        let limit = self.bounds.max_tokens;
        // The meter counted each text's tokens once; a layout may put the state into every row.
        if plan.input_tokens() > limit {
            return Err(Error::TooManyTokens { limit });
        }
        if self.bounds.refuse_truncation && plan.truncated_tokens > 0 {
            return Err(Error::TextTooLong {
                tokens: plan.truncated_tokens,
            });
        }
        let least = model.pace.least(plan.question_sizes(), Instant::now());
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

    /// Encodes a request and puts it into the queue.
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

    /// Puts an encoded request into the queue.
    pub fn join(&self, ticket: u64, encoded: Encoded) {
        let tokens = encoded.plan.input_tokens();
        let spent = encoded.encode;
        let work = Work::Encoded(encoded);
        if let Some((work, error)) = self.queue.join(ticket, work, tokens, spent) {
            work.reply(Err(error));
        }
    }

    /// Puts a request into the queue unparsed.
    pub fn join_unparsed(&self, job: Job) {
        let ticket = job.ticket;
        let tokens = job.body.len() / BYTES_PER_TOKEN;
        let joined = self
            .queue
            .join(ticket, Work::Unparsed(job), tokens, Duration::ZERO);
        if let Some((work, error)) = joined {
            work.reply(Err(error));
        }
        if self.queue.is_free() {
            // The thread that had the model may have seen an empty queue, so another one has to
            // look.
            let _ = self.send((), |(), _| {});
        }
    }

    /// Encodes the bytes of a request as rows; an error comes with the callback of its caller.
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
        let plan = self.plan_within_bounds(&job.model, &request.state, &questions, &mut meter)?;
        stop.check()?;
        Ok((request.questions.into(), plan))
    }
}

/// The main loop of an encoding thread.
pub fn serve(stages: &Arc<Stages>, tasks: &Receiver<Task>) {
    for task in tasks {
        task(stages);
        while let Some(turn) = stages.queue.take() {
            run(stages, turn);
        }
    }
}

/// Takes a turn on the model; decoding and writing follow when the model is free again.
fn run(stages: &Stages, mut turn: Turn<'_, Work>) {
    let work = match turn.work.take() {
        Some(Work::Encoded(encoded)) => encoded,
        Some(Work::Unparsed(job)) => match stages.encode(job, &turn.stop) {
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
    let held_up = turn.stop.held_up();
    let run = started.elapsed().saturating_sub(held_up);
    let wait = turn.waited + held_up;
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

/// Decodes the logits and writes the response body.
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

/// The main loop of the thread that refuses requests that wait too long.
pub fn expire(stages: &Stages) {
    while let Some(late) = stages.queue.expired() {
        for (work, error) in late {
            work.reply(Err(error));
        }
        // The reply may have put a batch's next state into the queue, and the thread that had the
        // model may not have seen it any more.
        let _ = stages.send((), |(), _| {});
    }
}
