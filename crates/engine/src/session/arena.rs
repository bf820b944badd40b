//! The arena that all sessions share: they take turns, so one needs little more than each would.

use std::ffi::CStr;

use ort::AsPointer;
use ort::environment::Environment;
use ort::memory::{AllocationDevice, AllocatorType, MemoryInfo, MemoryType};

use super::runtime::taken;

/// How the arena grows: by what is asked for, where ONNX Runtime's own would double each time.
const SETTINGS: [(&CStr, usize); 1] = [(c"arena_extend_strategy", 1)];

/// Gives the environment an arena, for sessions that say that they use it.
pub(super) fn register_arena(environment: &Environment) -> ort::Result<()> {
    let info = MemoryInfo::new(
        AllocationDevice::CPU,
        0,
        AllocatorType::Arena,
        MemoryType::Default,
    )?;
    let keys = SETTINGS.map(|(key, _)| key.as_ptr());
    let values = SETTINGS.map(|(_, value)| value);
    let api = ort::api();
    let mut config = std::ptr::null_mut();
    // SAFETY: both lists have as many entries as is said, and the texts live for ever.
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
    // SAFETY: the settings were made above, and nobody has them any more.
    unsafe { (api.ReleaseArenaCfg)(config) };
    taken(registered, "the arena could not be made")
}
