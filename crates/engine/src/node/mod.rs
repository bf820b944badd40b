//! The N-API interface, which only converts and decides nothing.

// The macros of napi-derive generate items that have no documentation of their own.
#![allow(missing_docs)]

use std::sync::Arc;

use napi::bindgen_prelude::{Buffer, Object};
use napi::{Env, JsDeferred};
use napi_derive::napi;

use crate::Error;
use crate::engine::{Answered, Options};
use crate::error::CODES;

mod batch;
pub mod inspection;
pub mod questions;
mod slot;
mod types;

use batch::{NativeBatch, NativeBatchCall};
use slot::Slot;
use types::{
    NativeCacheStats, NativeCall, NativeFailure, NativeInfo, NativeLoad, NativeOptions, NativeReply,
};

type Settle<T> = Box<dyn FnOnce(Env) -> napi::Result<T> + Send>;
type Deferred<T> = JsDeferred<T, Settle<T>>;

/// An engine as JavaScript holds it. Promises are settled by the engine's own threads; libuv's
/// thread pool is not used.
#[napi]
pub struct NativeEngine {
    slot: Arc<Slot>,
}

#[napi]
impl NativeEngine {
    #[napi(constructor)]
    pub fn new(env: Env) -> napi::Result<Self> {
        let slot = Arc::new(Slot::default());
        // A worker thread can end without an `exit` event; its engine must not outlive it.
        env.add_env_cleanup_hook(Arc::downgrade(&slot), |slot| {
            if let Some(slot) = slot.upgrade() {
                slot.shutdown();
            }
        })?;
        Ok(Self { slot })
    }

    /// Loads the model; resolves with the failure, or with nothing.
    #[napi(ts_return_type = "Promise<NativeReply>")]
    pub fn load<'env>(&self, env: &'env Env, options: NativeOptions) -> napi::Result<Object<'env>> {
        let (deferred, promise): (Deferred<NativeReply>, _) = env.create_deferred()?;
        let slot = Arc::clone(&self.slot);
        let options = Options::from(options);
        self.slot.spawn(move || {
            let outcome = slot.load(options);
            deferred.resolve(Box::new(move |_| Ok(outcome.into())));
        });
        Ok(promise)
    }

    /// Loads another model folder and makes it answer the requests that arrive from then on;
    /// resolves with the failure, or with nothing.
    #[napi(ts_return_type = "Promise<NativeReply>")]
    pub fn swap<'env>(&self, env: &'env Env, model: String) -> napi::Result<Object<'env>> {
        let (deferred, promise): (Deferred<NativeReply>, _) = env.create_deferred()?;
        let slot = Arc::clone(&self.slot);
        self.slot.spawn(move || {
            let loaded = slot.load_next(model.into());
            // The switch is made on the thread of the callers, so that they see the engine and its
            // description change at the same moment.
            let switch = move |_| {
                let outcome = loaded.and_then(|handed| slot.replace(&handed));
                Ok(outcome.into())
            };
            deferred.resolve(Box::new(switch));
        });
        Ok(promise)
    }

    /// Returns the failure of a request that arrives now and need not be read, else nothing.
    #[napi]
    pub fn refusal(&self) -> Option<NativeFailure> {
        self.slot.engine()?.refusal().map(NativeFailure::from)
    }

    /// Answers a request; tickets count up.
    #[napi(ts_return_type = "Promise<NativeReply>")]
    pub fn decide<'env>(
        &self,
        env: &'env Env,
        ticket: f64,
        body: Buffer,
        options: NativeCall,
    ) -> napi::Result<Object<'env>> {
        let (deferred, promise): (Deferred<NativeReply>, _) = env.create_deferred()?;
        let reply = move |outcome: Result<Answered, Error>| {
            deferred.resolve(Box::new(move |_| Ok(outcome.into())));
        };
        match self.slot.engine() {
            Some(engine) => engine.decide(options.arrival(ticket, &body), Box::new(reply)),
            None => reply(Err(Error::Closing)),
        }
        Ok(promise)
    }

    /// Starts a batch; tickets count up together with those of requests.
    #[napi]
    pub fn batch(&self, ticket: f64, body: Buffer, options: NativeBatchCall) -> NativeBatch {
        NativeBatch::begin(Arc::clone(&self.slot), ticket, &body, &options)
    }

    /// Drops a request whose caller has gone.
    #[napi]
    pub fn cancel(&self, ticket: f64) {
        if let Some(engine) = self.slot.engine() {
            engine.cancel(ticket as u64);
        }
    }

    /// Returns the description of the model, or nothing before it is loaded.
    #[napi]
    pub fn info(&self) -> Option<NativeInfo> {
        let info = self.slot.engine()?.info()?;
        Some(NativeInfo {
            name: info.name,
            version: info.version,
            sha256: info.sha256,
            digest: info.digest,
            layout: info.layout.to_owned(),
            device: info.device.name().to_owned(),
            threads: info.threads as u32,
            dir: info.folder.to_string_lossy().into_owned(),
            device_notes: info.device_notes,
            exactness: (&info.exactness).into(),
            exactness_note: info.exactness.note(),
        })
    }

    /// Returns the numbers of running and waiting requests.
    #[napi]
    pub fn queue(&self) -> NativeLoad {
        let engine = self.slot.engine();
        let load = engine.as_ref().map(|engine| engine.load_now());
        NativeLoad {
            running: load.map_or(0, |load| load.running as u32),
            waiting: load.map_or(0, |load| load.waiting as u32),
            newest_first: engine.is_some_and(|engine| engine.is_newest_first()),
        }
    }

    /// Returns the statistics of the state cache, counted in chunks.
    #[napi]
    pub fn cache(&self) -> NativeCacheStats {
        let stats = self.slot.engine().map(|engine| engine.cache_stats());
        let stats = stats.unwrap_or_default();
        NativeCacheStats {
            hits: stats.hits as f64,
            misses: stats.misses as f64,
            evictions: stats.evictions as f64,
            entries: stats.entries as f64,
            bytes: stats.bytes as f64,
            limit_bytes: stats.limit_bytes as f64,
        }
    }

    /// Lets all admitted requests finish, then ends the engine's threads.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn close<'env>(&self, env: &'env Env) -> napi::Result<Object<'env>> {
        let (deferred, promise): (Deferred<()>, _) = env.create_deferred()?;
        let slot = Arc::clone(&self.slot);
        self.slot.spawn(move || {
            slot.close();
            deferred.resolve(Box::new(|_| Ok(())));
        });
        Ok(promise)
    }

    /// Ends everything now, and returns when the threads have ended.
    #[napi]
    pub fn shutdown(&self) {
        self.slot.shutdown();
    }
}

/// Returns every error code that the engine can report.
#[napi]
pub fn error_codes() -> Vec<&'static str> {
    CODES.to_vec()
}
