//! A batch, whose results JavaScript pulls.

use std::sync::Arc;

use napi::Env;
use napi::bindgen_prelude::Object;
use napi_derive::napi;

use super::types::{NativeChunk, milliseconds};
use super::{Deferred, Slot};
use crate::Error;
use crate::batch::{Batch, Chunk};
use crate::engine::BatchArrival;
use crate::wire::batch::Framing;

/// One call of `batch`.
#[napi(object)]
pub struct NativeBatchCall {
    /// Whether the body has a line for each result, as soon as it is there; otherwise it is one
    /// JSON document.
    pub lines: bool,
    /// The most states that the batch may have.
    pub max_states: f64,
    /// The time that was already spent on the request.
    pub elapsed_ms: f64,
}

/// A batch as JavaScript holds it. It is cancelled when JavaScript releases it.
#[napi]
pub struct NativeBatch {
    slot: Arc<Slot>,
    batch: Arc<Batch>,
}

impl NativeBatch {
    /// Starts a batch, if there is an engine, and returns it; without an engine it is refused.
    pub(super) fn begin(slot: Arc<Slot>, ticket: f64, body: &[u8], call: &NativeBatchCall) -> Self {
        let arrival = BatchArrival {
            ticket: ticket as u64,
            framing: if call.lines {
                Framing::Lines
            } else {
                Framing::Document
            },
            max_states: call.max_states as usize,
            body: body.to_vec(),
            elapsed: milliseconds(call.elapsed_ms),
        };
        let batch = match slot.engine() {
            Some(engine) => engine.batch(arrival),
            None => Batch::refused(arrival.ticket, arrival.framing, Error::Closing),
        };
        Self { slot, batch }
    }
}

#[napi]
impl NativeBatch {
    /// Resolves with the next results, as soon as they have `min_bytes` or are the last.
    #[napi(ts_return_type = "Promise<NativeChunk>")]
    pub fn pull<'env>(&self, env: &'env Env, min_bytes: f64) -> napi::Result<Object<'env>> {
        let (deferred, promise): (Deferred<NativeChunk>, _) = env.create_deferred()?;
        let reply = move |chunk: Chunk| {
            deferred.resolve(Box::new(move |_| Ok(chunk.into())));
        };
        match self.slot.engine() {
            Some(engine) => engine.pull(&self.batch, min_bytes as usize, Box::new(reply)),
            None => reply(Chunk::closing()),
        }
        Ok(promise)
    }

    /// Drops the batch, whose caller has gone.
    #[napi]
    pub fn cancel(&self) {
        if let Some(engine) = self.slot.engine() {
            engine.cancel_batch(&self.batch);
        }
    }
}

impl Drop for NativeBatch {
    fn drop(&mut self) {
        self.cancel();
    }
}
