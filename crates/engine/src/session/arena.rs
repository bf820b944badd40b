//! The arena that all sessions share: they take turns, so the shared arena needs little more memory
//! than one session's own.

use std::ffi::CStr;

use ort::AsPointer;
use ort::environment::Environment;
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::Session;

use super::failure::taken;

/// The growth of the arena: by the bytes that are asked for, where ONNX Runtime's own arena would
/// double each time.
const SETTINGS: [(&CStr, usize); 1] = [(c"arena_extend_strategy", 1)];

/// The most bytes that an arena may hold when nothing runs. A chunk of 912 tokens takes 45 MiB;
/// anything more is space that rows of other lengths have left in between.
const IDLE_BYTES: u64 = 56 << 20;

/// The arena that a session uses.
pub(super) struct Arena(Allocator);

impl Arena {
    /// Returns the arena of a session that uses its environment's arena.
    pub(super) fn of(session: &Session) -> ort::Result<Self> {
        Ok(Self(Allocator::new(session, description()?)?))
    }

    /// Whether the arena holds more than it should while nothing runs.
    pub(super) fn holds_much(&self) -> bool {
        self.held_bytes().is_some_and(|bytes| bytes > IDLE_BYTES)
    }

    fn held_bytes(&self) -> Option<u64> {
        let api = ort::api();
        let mut stats = std::ptr::null_mut();
        // SAFETY: the allocator lives as long as `self`.
        let told = unsafe { (api.AllocatorGetStats)(self.0.ptr(), &raw mut stats) };
        taken(told, "the arena tells nothing").ok()?;
        // SAFETY: the list was made above; the text lives as long as the list.
        let value = unsafe {
            let value = (api.GetKeyValue)(stats, c"TotalAllocated".as_ptr());
            (!value.is_null()).then(|| CStr::from_ptr(value).to_string_lossy().parse().ok())
        };
        // SAFETY: no other code has the list.
        unsafe { (api.ReleaseKeyValuePairs)(stats) };
        value.flatten()
    }
}

fn description() -> ort::Result<MemoryInfo<'static>> {
    MemoryInfo::new(
        AllocationDevice::CPU,
        0,
        AllocatorType::Arena,
        MemoryType::Default,
    )
}

/// Gives the environment an arena, for sessions that are set to use it.
pub(super) fn register_arena(environment: &Environment) -> ort::Result<()> {
    let info = description()?;
    let keys = SETTINGS.map(|(key, _)| key.as_ptr());
    let values = SETTINGS.map(|(_, value)| value);
    let api = ort::api();
    let mut config = std::ptr::null_mut();
    // SAFETY: both lists have as many entries as the call is told, and the texts live for ever.
    let created = unsafe {
        (api.CreateArenaCfgV2)(
            keys.as_ptr(),
            values.as_ptr(),
            SETTINGS.len(),
            &raw mut config,
        )
    };
    taken(created, "the arena's settings were refused")?;
    // SAFETY: the environment, the description and the settings live during the call, which copies what it needs.
    let registered = unsafe {
        (api.CreateAndRegisterAllocator)(environment.ptr().cast_mut(), info.ptr(), config)
    };
    // SAFETY: the settings were made above, and no code uses them after this.
    unsafe { (api.ReleaseArenaCfg)(config) };
    taken(registered, "the arena could not be made")
}
