//! Batches of many states with one set of questions: the questions are encoded once, each state
//! waits for the model by itself, and the results come out in the order of the states.
//!
//! A state joins the queue when the one before it is done, so a batch delays a request that arrives
//! meanwhile by at most one state. The next states are encoded while the model runs, and no more
//! results are made than the caller takes.

use std::collections::VecDeque;
use std::mem::take;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::Error;
use crate::layout::{EncodedQuestions, Plan};
use crate::question::Question;
use crate::queue::Queue;
use crate::stages::{Answered, Encoded, Stages, Timing, Work};
use crate::stop::Stop;
use crate::tenure::Held;
use crate::tokenize::Meter;
use crate::wire::batch::{Framing, States, parse, write_error};
use crate::wire::{Format, Usage};

/// The most states that are encoded ahead of the model.
const AHEAD_STATES: usize = 32;
/// The most tokens of the states encoded ahead, together; one state is encoded ahead in any case.
const AHEAD_TOKENS: usize = 16_384;
/// The most bytes of results that wait for the caller; with more of them no state is run.
pub const MAX_UNREAD_BYTES: usize = 1 << 20;

/// Some results of a batch.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The next piece of the response body.
    pub bytes: Vec<u8>,
    /// The outcome of each state whose result is in `bytes`; the bodies of these answers are empty.
    pub results: Vec<Result<Answered, Error>>,
    /// Present with the last piece: where the time of the batch went, or why the remaining states
    /// got no answer.
    pub end: Option<Result<Timing, Error>>,
}

impl Chunk {
    /// Returns the last chunk of a batch whose engine is gone.
    pub fn closing() -> Self {
        Self {
            end: Some(Err(Error::Closing)),
            ..Self::default()
        }
    }
}

/// The callback that receives the next results, once, on the thread that made them.
pub type PullReply = Box<dyn FnOnce(Chunk) + Send>;

/// The parts that are the same for all states.
struct Set {
    /// The model that answers all states, even if it is replaced meanwhile.
    model: Arc<Held>,
    states: States,
    questions: Arc<[Question]>,
    encoded: EncodedQuestions,
    /// The questions' tokens, as a meter counts them.
    counted: usize,
}

/// A state that is ready for the model.
struct ReadyState {
    plan: Plan,
    took: Duration,
}

#[derive(Default)]
struct Progress {
    /// The common parts; `Some` from the end of parsing to the end of the batch.
    set: Option<Arc<Set>>,
    /// The number of states that were taken for encoding.
    taken: usize,
    ready: VecDeque<Result<ReadyState, Error>>,
    ready_tokens: usize,
    is_encoding: bool,
    /// Whether a state is in the queue or on the model.
    has_turn: bool,
    /// Whether no state is run because the caller does not take the results.
    is_paused: bool,
    out: Outlet,
}

/// The results that the caller has not taken yet.
#[derive(Default)]
struct Outlet {
    chunk: Chunk,
    written: usize,
    usage: Usage,
    timing: Timing,
    pull: Option<(usize, PullReply)>,
    is_ended: bool,
}

/// A batch that is being worked on.
pub struct Batch {
    ticket: u64,
    framing: Framing,
    began: Instant,
    stop: OnceLock<Arc<Stop>>,
    progress: Mutex<Progress>,
}

impl Batch {
    /// Returns a batch that has not begun.
    pub fn new(ticket: u64, framing: Framing, began: Instant) -> Self {
        Self {
            ticket,
            framing,
            began,
            stop: OnceLock::new(),
            progress: Mutex::default(),
        }
    }

    /// Returns a batch that the queue did not admit; `error` is its end.
    pub fn refused(ticket: u64, framing: Framing, error: Error) -> Arc<Self> {
        let batch = Self::new(ticket, framing, Instant::now());
        batch.end(&mut batch.progress.lock(), Err(error));
        Arc::new(batch)
    }

    /// Has a thread of the engine parse the body and begin to encode the states.
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

    /// Calls `reply` with the next results, as soon as they have `min_bytes` or are the last.
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

    /// Has a thread of the engine do `task`.
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
                // The model may be free; then this thread has to run it, so the encoding goes on in
                // another task.
                return self.send(stages, Self::fill);
            }
        }
        // No state is left to be encoded, and the batch may have had none at all.
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

    fn encode(&self, stages: &Stages, set: &Set, index: usize) -> Result<ReadyState, Error> {
        let started = Instant::now();
        let stop = &self.stop().within(stages.queue.max_run(), Duration::ZERO);
        stop.check()?;
        let state = set.states.state(index)?;
        let mut meter = Meter::from(stages.bounds.max_tokens, set.counted, stop);
        let plan = stages.plan_within_bounds(&set.model, &state, &set.encoded, &mut meter)?;
        Ok(ReadyState {
            plan,
            took: started.elapsed(),
        })
    }

    /// Puts the next state into the queue, unless one is there already or the caller does not take
    /// the results. Returns whether it did.
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
                // The delivery made room for more results, so another state may be run.
                _ if made_room && !is_ended => {}
                _ => return false,
            }
        }
    }

    /// Tells the queue when the batch starts or stops waiting for its caller.
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

    fn join(self: &Arc<Self>, stages: &Arc<Stages>, next: ReadyState, set: &Set) {
        let (batch, own) = (Arc::clone(self), Arc::clone(stages));
        let encoded = Encoded {
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

    /// Returns the next state for the model; writes the errors of states that could not be encoded.
    fn next_to_run(&self, progress: &mut Progress) -> Option<ReadyState> {
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

    /// Takes the outcome of a state's turn and advances to the next state.
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

    /// Writes the bytes that follow the last result, and releases everything that is no longer
    /// needed.
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

    /// Gives the caller the results that are there, if they are enough. Returns whether it did.
    fn deliver(&self) -> bool {
        let taken = Outlet::take(&mut self.progress.lock());
        let Some((reply, chunk)) = taken else {
            return false;
        };
        reply(chunk);
        true
    }
}

fn tokens(encoded: &Result<ReadyState, Error>) -> usize {
    let encoded = encoded.as_ref().ok();
    encoded.map_or(0, |encoded| encoded.plan.input_tokens())
}

impl Progress {
    /// Whether more states should be encoded and no thread is doing so.
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

    /// Returns the reply of a waiting caller and the chunk for it, if there is enough to give.
    fn take(progress: &mut MutexGuard<'_, Progress>) -> Option<(PullReply, Chunk)> {
        let out = &mut progress.out;
        let wanted = out.pull.as_ref().map(|(min_bytes, _)| *min_bytes)?;
        if !out.is_ended && out.chunk.bytes.len() < wanted.max(1) {
            return None;
        }
        let (_, reply) = out.pull.take()?;
        let end = out.chunk.end.clone();
        let chunk = take(&mut out.chunk);
        // A caller that asks again after the end gets the same end again.
        out.chunk.end = end;
        Some((reply, chunk))
    }
}

#[cfg(test)]
mod tests;
