//! The functions of CUDA's device runtime that Handloom provides to programs: names and signatures.

use serde::{Deserialize, Serialize};

/// A parameter or a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// A pointer, a handle or a `size_t`.
    Word,
    /// An `int`, an `unsigned int` or an enumeration.
    Int,
    /// A `dim3`, by value.
    Dim3,
}

impl Part {
    /// Its size and alignment in bytes; `word` is the size of a pointer.
    pub const fn layout(self, word: u32) -> (u32, u32) {
        match self {
            Part::Word => (word, word),
            Part::Int => (4, 4),
            Part::Dim3 => (12, 4),
        }
    }
}

macro_rules! calls {
    ($($(#[$doc:meta])* $call:ident($($part:ident),*) -> $result:ident;)*) => {
        /// A function of CUDA's device runtime, as kernels call it.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum DeviceCall {
            $($(#[$doc])* $call,)*
        }

        impl DeviceCall {
            /// By its name without what the names of the device runtime begin with.
            fn of_rest(rest: &str) -> Option<DeviceCall> {
                Some(match rest {
                    $(stringify!($call) => DeviceCall::$call,)*
                    _ => return None,
                })
            }

            /// Its parameters.
            pub const fn params(self) -> &'static [Part] {
                match self {
                    $(DeviceCall::$call => &[$(Part::$part),*],)*
                }
            }

            /// What it returns.
            pub const fn result(self) -> Part {
                match self {
                    $(DeviceCall::$call => Part::$result,)*
                }
            }
        }
    };
}

calls! {
    /// Memory for the parameters of a launch: alignment, bytes.
    GetParameterBuffer(Word, Word) -> Word;
    /// The same, which knows the launch: entry, grid, block, shared memory.
    GetParameterBufferV2(Word, Dim3, Dim3, Int) -> Word;
    /// Launches: entry, parameters, grid, block, shared memory, stream.
    LaunchDevice(Word, Word, Dim3, Dim3, Int, Word) -> Int;
    /// Launches what the parameters were asked for: parameters, stream.
    LaunchDeviceV2(Word, Word) -> Int;
    /// The last error of the thread, which is forgotten.
    GetLastError() -> Int;
    /// The last error of the thread.
    PeekAtLastError() -> Int;
    /// The name of an error.
    GetErrorName(Int) -> Word;
    /// What an error means.
    GetErrorString(Int) -> Word;
    /// Number of devices: where to.
    GetDeviceCount(Word) -> Int;
    /// The device that runs the kernel: where to.
    GetDevice(Word) -> Int;
    /// An attribute of a device: where to, which, device.
    DeviceGetAttribute(Word, Int, Int) -> Int;
    /// A limit of the device: where to, which.
    DeviceGetLimit(Word, Int) -> Int;
    /// A stream: where to, flags.
    StreamCreateWithFlags(Word, Int) -> Int;
    /// Ends a stream.
    StreamDestroy(Word) -> Int;
    /// Later work of a stream waits for an event: stream, event, flags.
    StreamWaitEvent(Word, Word, Int) -> Int;
    /// An event: where to, flags.
    EventCreateWithFlags(Word, Int) -> Int;
    /// An event stands for what a stream was given: event, stream.
    EventRecord(Word, Word) -> Int;
    /// The same: event, stream, flags.
    EventRecordWithFlags(Word, Word, Int) -> Int;
    /// Ends an event.
    EventDestroy(Word) -> Int;
    /// Memory of the device: where to, bytes.
    Malloc(Word, Word) -> Int;
    /// Ends memory of `Malloc`.
    Free(Word) -> Int;
    /// Copies: to, from, bytes, direction, stream.
    MemcpyAsync(Word, Word, Word, Int, Word) -> Int;
    /// Copies rows: to, its pitch, from, its pitch, width, height, direction, stream.
    Memcpy2DAsync(Word, Word, Word, Word, Word, Word, Int, Word) -> Int;
    /// Fills: where, byte, how many, stream.
    MemsetAsync(Word, Int, Word, Word) -> Int;
    /// Fills rows: where, pitch, byte, width, height, stream.
    Memset2DAsync(Word, Word, Int, Word, Word, Word) -> Int;
}

impl DeviceCall {
    /// Whether it gives a stream work, which goes on beside the thread.
    pub const fn begins(self) -> bool {
        matches!(
            self,
            DeviceCall::LaunchDevice
                | DeviceCall::LaunchDeviceV2
                | DeviceCall::MemcpyAsync
                | DeviceCall::Memcpy2DAsync
                | DeviceCall::MemsetAsync
                | DeviceCall::Memset2DAsync
        )
    }

    /// By its name, with whether stream 0 is that of the thread.
    pub fn of_name(name: &str) -> Option<(DeviceCall, bool)> {
        let rest = name.strip_prefix("__cudaCDP2").or_else(|| name.strip_prefix("cuda"))?;
        let (rest, per_thread) = rest.strip_suffix("_ptsz").map_or((rest, false), |rest| (rest, true));
        DeviceCall::of_rest(rest).map(|call| (call, per_thread))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_versions_and_of_default_streams_of_threads() {
        assert_eq!(DeviceCall::of_name("cudaLaunchDeviceV2"), Some((DeviceCall::LaunchDeviceV2, false)));
        assert_eq!(DeviceCall::of_name("__cudaCDP2LaunchDeviceV2_ptsz"), Some((DeviceCall::LaunchDeviceV2, true)));
        for name in ["LaunchDeviceV2", "cudaDeviceSynchronize", "__cudaLaunchDeviceV2", "cudaLaunchDeviceV3"] {
            assert_eq!(DeviceCall::of_name(name), None, "{name}");
        }
    }
}
