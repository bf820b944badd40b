//! Many states, one set of questions: the questions are encoded once, each state waits for the model by itself, and
//! the results come out in the order of the states.
//!
//! A state joins the line when the one before it is done, so a batch holds up whoever comes meanwhile for one state at
//! most. The next states are encoded while the model runs, and no more results are made than the caller takes.

use std::collections::VecDeque;
use std::mem::take;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::Error;
use crate::layout::{EncodedQuestions, Plan};
use crate::question::Question;
use crate::queue::{Queue, Stop};
use crate::stages::{self, Answered, Stages, Timing, Work};
use crate::tenure::Held;
use crate::tokenize::Meter;
use crate::wire::Format;
use crate::wire::batch::{Framing, States, parse, write_error};
use crate::wire::systemone::Usage;

/// How many states are encoded ahead of the model, at most.
const AHEAD_STATES: usize = 32;
/// And how many tokens they may have together; one state is encoded ahead in any case.
const AHEAD_TOKENS: usize = 16_384;
/// The bytes of results that wait for the caller; with more of them nothing is run.
pub const MAX_UNREAD_BYTES: usize = 1 << 20;

/// Some results of a batch.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The next piece of the response body.
    pub bytes: Vec<u8>,
    /// What became of each state whose result is in it, without its bytes.
    pub results: Vec<Result<Answered, Error>>,
    /// With the last piece: where the time of all went, or why the rest got no answer.
    pub end: Option<Result<Timing, Error>>,
}

impl Chunk {
    /// What a batch is told that has no engine any more.
    pub fn closing() -> Self {
        Self {
            end: Some(Err(Error::Closing)),
            ..Self::default()
        }
    }
}

/// What is called with the next results, once, on whichever thread made them.
pub type PullReply = Box<dyn FnOnce(Chunk) + Send>;

/// The parts that are the same for all states.
struct Set {
    /// Who answers all of them, whatever comes after it.
    model: Arc<Held>,
    states: States,
    questions: Arc<[Question]>,
    encoded: EncodedQuestions,
    /// The questions' tokens, as a meter counts them.
    counted: usize,
}

/// A state that is ready for the model.
struct Encoded {
    plan: Plan,
    took: Duration,
}

#[derive(Default)]
struct Progress {
    /// There from the first state to the end.
    set: Option<Arc<Set>>,
    /// States that were given to be encoded.
    taken: usize,
    ready: VecDeque<Result<Encoded, Error>>,
    ready_tokens: usize,
    is_encoding: bool,
    /// Whether a state is in the line or on the model.
    has_turn: bool,
    /// Whether nothing is run because the caller does not take what there is.
    is_paused: bool,
    out: Outlet,
}

/// What the caller has not taken yet.
#[derive(Default)]
struct Outlet {
    chunk: Chunk,
    written: usize,
    usage: Usage,
    timing: Timing,
    pull: Option<(usize, PullReply)>,
    is_ended: bool,
}

/// A batch on its way.
pub struct Batch {
    ticket: u64,
    framing: Framing,
    began: Instant,
    stop: OnceLock<Arc<Stop>>,
    progress: Mutex<Progress>,
}

impl Batch {
    /// A batch that has not begun.
    pub fn new(ticket: u64, framing: Framing, began: Instant) -> Self {
        Self {
            ticket,
            framing,
            began,
            stop: OnceLock::new(),
            progress: Mutex::default(),
        }
    }

    /// A batch that was not let in.
    pub fn refused(ticket: u64, framing: Framing, error: Error) -> Arc<Self> {
        let batch = Self::new(ticket, framing, Instant::now());
        batch.end(&mut batch.progress.lock(), Err(error));
        Arc::new(batch)
    }

    /// Has a thread of the engine parse the body, and go on from there.
    pub fn begin(
        self: &Arc<Self>,
        stages: &Stages,
        stop: Arc<Stop>,
        body: Vec<u8>,
        max_states: usize,
    ) {
        let _ = self.stop.set(stop);
        self.progress.lock().is_encoding = true;
        let model = stages.tenure.current();
        self.send(stages, move |batch, stages| {
            let started = Instant::now();
            let read = AssertUnwindSafe(|| batch.read(stages, model, body, max_states));
            let set = catch_unwind(read);
            match set.unwrap_or(Err(Error::Panicked)) {
                Ok(set) => {
                    let mut progress = batch.progress.lock();
                    progress.set = Some(Arc::new(set));
                    progress.out.timing.encode = started.elapsed();
                    drop(progress);
                    batch.fill(stages);
                }
                Err(error) => batch.fail(stages, error),
            }
        });
    }

    fn read(
        &self,
        stages: &Stages,
        model: Arc<Held>,
        body: Vec<u8>,
        max_states: usize,
    ) -> Result<Set, Error> {
        let stop = &self.stop().within(stages.queue.max_run(), Duration::ZERO);
        let bounds = stages.bounds;
        stop.check()?;
        let (states, questions) = parse(body, max_states, bounds.most())?;
        let mut meter = Meter::new(bounds.max_tokens, stop);
        let encoded = model.encode_questions(&questions, &mut meter)?;
        Ok(Set {
            model,
            states,
            questions: questions.into(),
            encoded,
            counted: meter.counted(),
        })
    }

    /// Gives the next results: as soon as they have `min_bytes`, or are the last.
    pub fn pull(self: &Arc<Self>, stages: &Stages, min_bytes: usize, reply: PullReply) {
        let was_full = {
            let mut progress = self.progress.lock();
            progress.out.pull = Some((min_bytes.min(MAX_UNREAD_BYTES), reply));
            progress.out.is_full()
        };
        self.deliver();
        if was_full {
            self.send(stages, |batch, stages| {
                batch.advance(stages);
            });
        }
    }

    /// Ends the batch, whose caller has gone; a state that is on the model stops at its next run.
    pub fn cancel(self: &Arc<Self>, stages: &Arc<Stages>) {
        match stages.queue.cancel(self.ticket) {
            Some(work) => work.reply(Err(Error::Cancelled)),
            None => {
                self.advance(stages);
            }
        }
    }

    fn stop(&self) -> &Stop {
        self.stop.get_or_init(Stop::never)
    }

    /// Has a thread of the engine do something.
    fn send(
        self: &Arc<Self>,
        stages: &Stages,
        task: impl FnOnce(&Arc<Self>, &Arc<Stages>) + Send + 'static,
    ) {
        let sent = stages.send(Arc::clone(self), move |batch, stages| task(&batch, stages));
        if let Err(batch) = sent {
            batch.fail(stages, Error::Closing);
        }
    }

    /// Encodes states ahead of the model, until there are enough.
    fn fill(self: &Arc<Self>, stages: &Arc<Stages>) {
        while let Some((set, index)) = self.next_to_encode() {
            let encoded = catch_unwind(AssertUnwindSafe(|| self.encode(stages, &set, index)));
            let encoded = encoded.unwrap_or(Err(Error::Panicked));
            {
                let mut progress = self.progress.lock();
                progress.ready_tokens += tokens(&encoded);
                progress.ready.push_back(encoded);
            }
            if self.advance(stages) {
                // The model may be free, and this thread is the one to run it.
                return self.send(stages, Self::fill);
            }
        }
        // Nothing is left to be encoded, and perhaps nothing was there at all.
        self.advance(stages);
    }

    fn next_to_encode(&self) -> Option<(Arc<Set>, usize)> {
        let mut progress = self.progress.lock();
        let set = Arc::clone(progress.set.as_ref()?);
        let is_enough =
            progress.ready.len() >= AHEAD_STATES || progress.ready_tokens >= AHEAD_TOKENS;
        if is_enough || progress.taken == set.states.count() {
            progress.is_encoding = false;
            return None;
        }
        progress.taken += 1;
        Some((set, progress.taken - 1))
    }

    fn encode(&self, stages: &Stages, set: &Set, index: usize) -> Result<Encoded, Error> {
        let started = Instant::now();
        let stop = &self.stop().within(stages.queue.max_run(), Duration::ZERO);
        stop.check()?;
        let state = set.states.text(index)?;
        let mut meter = Meter::from(stages.bounds.max_tokens, set.counted, stop);
        let plan = stages.encode_state(&set.model, &state, &set.encoded, &mut meter)?;
        Ok(Encoded {
            plan,
            took: started.elapsed(),
        })
    }

    /// Puts the next state into the line, if none is there and the caller takes what is made; says whether it did.
    fn advance(self: &Arc<Self>, stages: &Arc<Stages>) -> bool {
        loop {
            let mut progress = self.progress.lock();
            let next = self.next_to_run(&mut progress);
            self.note_pause(&mut progress, &stages.queue);
            let is_ended = progress.out.is_ended;
            let set = progress.set.clone();
            let needs_more = set.as_ref().is_some_and(|set| progress.needs_more(set));
            progress.is_encoding |= needs_more;
            drop(progress);
            if is_ended {
                stages.queue.leave(self.ticket);
            }
            let made_room = self.deliver();
            if needs_more {
                self.send(stages, Self::fill);
            }
            match (next, set) {
                (Some(next), Some(set)) => {
                    self.join(stages, next, &set);
                    return true;
                }
                // There was no room, and now there is.
                _ if made_room && !is_ended => {}
                _ => return false,
            }
        }
    }

    /// Tells the queue when the batch begins or ceases to wait for its caller.
    fn note_pause(&self, progress: &mut Progress, queue: &Queue<Work>) {
        let is_paused = progress.out.is_full() && !progress.has_turn && !progress.out.is_ended;
        if is_paused == progress.is_paused {
            return;
        }
        progress.is_paused = is_paused;
        if is_paused {
            queue.pause(self.ticket, progress.out.chunk.bytes.len());
        } else {
            queue.go_on(self.ticket);
        }
    }

    fn join(self: &Arc<Self>, stages: &Arc<Stages>, next: Encoded, set: &Set) {
        let (batch, own) = (Arc::clone(self), Arc::clone(stages));
        let encoded = stages::Encoded {
            format: Format::BatchResult,
            model: Arc::clone(&set.model),
            questions: Arc::clone(&set.questions),
            plan: next.plan,
            began: Instant::now().checked_sub(next.took).unwrap_or(self.began),
            encode: next.took,
            reply: Box::new(move |outcome| batch.settle(&own, outcome)),
        };
        stages.join(self.ticket, encoded);
    }

    /// The next state that the model is to see; the results of those that it will not see are written.
    fn next_to_run(&self, progress: &mut Progress) -> Option<Encoded> {
        loop {
            let set = progress.set.as_ref()?;
            if progress.out.is_ended || progress.has_turn {
                return None;
            }
            if let Err(error) = self.stop().check() {
                self.end(progress, Err(error));
                return None;
            }
            if progress.out.written == set.states.count() {
                self.end(progress, Ok(()));
                return None;
            }
            if progress.out.is_full() {
                return None;
            }
            let next = progress.ready.pop_front()?;
            progress.ready_tokens -= tokens(&next);
            match next {
                Ok(next) => {
                    progress.has_turn = true;
                    return Some(next);
                }
                Err(error) => progress.out.write(self.framing, Err(error)),
            }
        }
    }

    /// Takes the outcome of a state's turn, and goes on with the next.
    fn settle(self: &Arc<Self>, stages: &Arc<Stages>, outcome: Result<Answered, Error>) {
        let mut progress = self.progress.lock();
        progress.has_turn = false;
        match outcome {
            Err(error @ (Error::Cancelled | Error::Closing)) => {
                drop(progress);
                return self.fail(stages, error);
            }
            outcome => progress.out.write(self.framing, outcome),
        }
        drop(progress);
        self.advance(stages);
    }

    fn fail(&self, stages: &Stages, error: Error) {
        self.end(&mut self.progress.lock(), Err(error));
        stages.queue.leave(self.ticket);
        self.deliver();
    }

    /// Writes what stands behind the last result, and lets go of all that is no longer needed.
    fn end(&self, progress: &mut Progress, outcome: Result<(), Error>) {
        let out = &mut progress.out;
        if out.is_ended {
            return;
        }
        out.is_ended = true;
        out.timing.total = self.began.elapsed();
        out.usage.server_ms = out.timing.total.as_secs_f64() * 1e3;
        if outcome.is_ok() {
            if out.written == 0 {
                out.chunk.bytes.extend(self.framing.begin().into_bytes());
            }
            let end = self.framing.end(&out.usage);
            out.chunk.bytes.extend(end.into_bytes());
        }
        let timing = out.timing;
        out.chunk.end = Some(outcome.map(|()| timing));
        (progress.set, progress.ready) = (None, VecDeque::new());
    }

    /// Gives the caller what there is, if that is enough; says whether it did.
    fn deliver(&self) -> bool {
        let taken = Outlet::take(&mut self.progress.lock());
        let Some((reply, chunk)) = taken else {
            return false;
        };
        reply(chunk);
        true
    }
}

fn tokens(encoded: &Result<Encoded, Error>) -> usize {
    let encoded = encoded.as_ref().ok();
    encoded.map_or(0, |encoded| encoded.plan.input_tokens())
}

impl Progress {
    /// Whether somebody should encode more, and nobody does.
    fn needs_more(&self, set: &Set) -> bool {
        !self.is_encoding
            && self.taken < set.states.count()
            && self.ready.len() <= AHEAD_STATES / 2
            && self.ready_tokens < AHEAD_TOKENS / 2
    }
}

impl Outlet {
    fn is_full(&self) -> bool {
        self.chunk.bytes.len() >= MAX_UNREAD_BYTES
    }

    fn write(&mut self, framing: Framing, outcome: Result<Answered, Error>) {
        if self.is_ended {
            return;
        }
        let bytes = &mut self.chunk.bytes;
        if self.written == 0 {
            bytes.extend(framing.begin().into_bytes());
        }
        let is_first = self.written == 0;
        self.written += 1;
        let outcome = match outcome {
            Ok(mut answered) => {
                framing.write(bytes, &take(&mut answered.body), is_first);
                self.usage.input_tokens += answered.counts.input_tokens;
                self.usage.truncated_tokens += answered.counts.truncated_tokens;
                self.timing.encode += answered.timing.encode;
                self.timing.wait += answered.timing.wait;
                self.timing.run += answered.timing.run;
                Ok(answered)
            }
            Err(error) => {
                framing.write(bytes, &write_error(&error), is_first);
                Err(error)
            }
        };
        self.chunk.results.push(outcome);
    }

    /// What a caller who waits is to be given now.
    fn take(progress: &mut MutexGuard<'_, Progress>) -> Option<(PullReply, Chunk)> {
        let out = &mut progress.out;
        let wanted = out.pull.as_ref().map(|(min_bytes, _)| *min_bytes)?;
        if !out.is_ended && out.chunk.bytes.len() < wanted.max(1) {
            return None;
        }
        let (_, reply) = out.pull.take()?;
        let end = out.chunk.end.clone();
        let chunk = take(&mut out.chunk);
        // Whoever asks again after the end is told so again.
        out.chunk.end = end;
        Some((reply, chunk))
    }
}
