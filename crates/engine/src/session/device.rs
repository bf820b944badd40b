//! The devices that a model can run on.

use ort::ep::{CUDA, CoreML, DirectML, ExecutionProvider, ExecutionProviderDispatch};

/// The device that a model runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// The processor.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// Apple's accelerators.
    CoreMl,
    /// A GPU under Windows.
    DirectMl,
}

impl Device {
    /// The devices besides the processor, in the order in which `auto` tries them.
    pub const ACCELERATORS: [Self; 3] = [Self::Cuda, Self::CoreMl, Self::DirectMl];

    /// Returns the name in settings and in `/health`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::CoreMl => "coreml",
            Self::DirectMl => "directml",
        }
    }

    /// Whether there can be such a device on this operating system.
    pub fn is_possible(self) -> bool {
        match self {
            Self::Cpu => true,
            Self::Cuda => !cfg!(target_os = "macos"),
            Self::CoreMl => cfg!(target_os = "macos"),
            Self::DirectMl => cfg!(windows),
        }
    }

    /// Whether the library was built for the device. There must be a session already, because
    /// opening it loads the library.
    pub fn is_built_in(self) -> bool {
        let has = match self {
            Self::Cpu => Ok(true),
            Self::Cuda => CUDA::is_available(),
            Self::CoreMl => CoreML::is_available(),
            Self::DirectMl => DirectML::is_available(),
        };
        // A library that cannot answer this reports more when the provider is registered.
        has.unwrap_or(true)
    }

    /// Returns the execution provider; a provider that cannot be registered is an error, never a
    /// silent fallback.
    pub(super) fn provider(self) -> Option<ExecutionProviderDispatch> {
        let provider = match self {
            Self::Cpu => return None,
            Self::Cuda => CUDA::default().build(),
            Self::CoreMl => CoreML::default().build(),
            Self::DirectMl => DirectML::default().build(),
        };
        Some(provider.error_on_failure())
    }
}
