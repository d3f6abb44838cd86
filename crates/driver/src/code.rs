//! The results of the driver API: numbers, names, and the texts that programs print.

use handloom_ir::trap::TrapKind;
use handloom_runtime::{ErrorKind, LoadError, MemoryError, StreamError};

/// A result of the driver API.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Code(pub u32);

/// What a call returns.
pub type Result<T = ()> = std::result::Result<T, Code>;

macro_rules! codes {
    ($($name:ident $number:literal $text:literal)*) => {
        impl Code {
            /// no error
            pub const SUCCESS: Code = Code(0);
            $(#[doc = $text] pub const $name: Code = Code($number);)*

            /// Its name: `CUDA_ERROR_INVALID_VALUE`. With a NUL at the end.
            pub fn name(self) -> Option<&'static str> {
                match self {
                    Code::SUCCESS => Some("CUDA_SUCCESS\0"),
                    $(Code::$name => Some(concat!("CUDA_ERROR_", stringify!($name), "\0")),)*
                    _ => None,
                }
            }

            /// Its text: `invalid argument`. With a NUL at the end.
            pub fn text(self) -> Option<&'static str> {
                match self {
                    Code::SUCCESS => Some("no error\0"),
                    $(Code::$name => Some(concat!($text, "\0")),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    INVALID_VALUE 1 "invalid argument"
    OUT_OF_MEMORY 2 "out of memory"
    NOT_INITIALIZED 3 "initialization error"
    DEINITIALIZED 4 "driver shutting down"
    PROFILER_DISABLED 5 "profiler disabled while using external profiling tool"
    PROFILER_NOT_INITIALIZED 6 "profiler not initialized: call cudaProfilerInitialize()"
    PROFILER_ALREADY_STARTED 7 "profiler already started"
    PROFILER_ALREADY_STOPPED 8 "profiler already stopped"
    STUB_LIBRARY 34 "CUDA driver is a stub library"
    CALL_REQUIRES_NEWER_DRIVER 36 "API call is not supported in the installed CUDA driver"
    DEVICE_UNAVAILABLE 46 "CUDA-capable device(s) is/are busy or unavailable"
    MULTICAST_RESOURCE_FULL 47 "no multicast resource is left"
    NO_DEVICE 100 "no CUDA-capable device is detected"
    INVALID_DEVICE 101 "invalid device ordinal"
    DEVICE_NOT_LICENSED 102 "device doesn't have valid Grid license"
    INVALID_IMAGE 200 "device kernel image is invalid"
    INVALID_CONTEXT 201 "invalid device context"
    CONTEXT_ALREADY_CURRENT 202 "context already current"
    MAP_FAILED 205 "mapping of buffer object failed"
    UNMAP_FAILED 206 "unmapping of buffer object failed"
    ARRAY_IS_MAPPED 207 "array is mapped"
    ALREADY_MAPPED 208 "resource already mapped"
    NO_BINARY_FOR_GPU 209 "no kernel image is available for execution on the device"
    ALREADY_ACQUIRED 210 "resource already acquired"
    NOT_MAPPED 211 "resource not mapped"
    NOT_MAPPED_AS_ARRAY 212 "resource not mapped as array"
    NOT_MAPPED_AS_POINTER 213 "resource not mapped as pointer"
    ECC_UNCORRECTABLE 214 "uncorrectable ECC error encountered"
    UNSUPPORTED_LIMIT 215 "limit is not supported on this architecture"
    CONTEXT_ALREADY_IN_USE 216 "exclusive-thread device already in use by a different thread"
    PEER_ACCESS_UNSUPPORTED 217 "peer access is not supported between these two devices"
    INVALID_PTX 218 "a PTX JIT compilation failed"
    INVALID_GRAPHICS_CONTEXT 219 "invalid OpenGL or DirectX context"
    NVLINK_UNCORRECTABLE 220 "uncorrectable NVLink error detected during the execution"
    JIT_COMPILER_NOT_FOUND 221 "PTX JIT compiler library not found"
    UNSUPPORTED_PTX_VERSION 222 "the provided PTX was compiled with an unsupported toolchain."
    JIT_COMPILATION_DISABLED 223 "PTX JIT compilation was disabled"
    UNSUPPORTED_EXEC_AFFINITY 224 "the provided execution affinity is not supported"
    UNSUPPORTED_DEVSIDE_SYNC 225 "the provided PTX contains unsupported call to cudaDeviceSynchronize"
    CONTAINED 226 "Invalid access of peer GPU memory over nvlink or a hardware error"
    INSUFFICIENT_LOADER_VERSION 227 "the loader of the image is too old"
    INVALID_SOURCE 300 "device kernel image is invalid"
    FILE_NOT_FOUND 301 "file not found"
    SHARED_OBJECT_SYMBOL_NOT_FOUND 302 "shared object symbol not found"
    SHARED_OBJECT_INIT_FAILED 303 "shared object initialization failed"
    OPERATING_SYSTEM 304 "OS call failed or operation not supported on this OS"
    INVALID_HANDLE 400 "invalid resource handle"
    ILLEGAL_STATE 401 "the operation cannot be performed in the present state"
    LOSSY_QUERY 402 "attempted introspection would be semantically lossy"
    NOT_FOUND 500 "named symbol not found"
    NOT_READY 600 "device not ready"
    ILLEGAL_ADDRESS 700 "an illegal memory access was encountered"
    LAUNCH_OUT_OF_RESOURCES 701 "too many resources requested for launch"
    LAUNCH_TIMEOUT 702 "the launch timed out and was terminated"
    LAUNCH_INCOMPATIBLE_TEXTURING 703 "launch uses incompatible texturing mode"
    PEER_ACCESS_ALREADY_ENABLED 704 "peer access is already enabled"
    PEER_ACCESS_NOT_ENABLED 705 "peer access has not been enabled"
    PRIMARY_CONTEXT_ACTIVE 708 "cannot set while device is active in this process"
    CONTEXT_IS_DESTROYED 709 "context is destroyed"
    ASSERT 710 "device-side assert triggered"
    TOO_MANY_PEERS 711 "peer mapping resources exhausted"
    HOST_MEMORY_ALREADY_REGISTERED 712 "part or all of the requested memory range is already mapped"
    HOST_MEMORY_NOT_REGISTERED 713 "pointer does not correspond to a registered memory region"
    HARDWARE_STACK_ERROR 714 "hardware stack error"
    ILLEGAL_INSTRUCTION 715 "an illegal instruction was encountered"
    MISALIGNED_ADDRESS 716 "misaligned address"
    INVALID_ADDRESS_SPACE 717 "operation not supported on global/shared address space"
    INVALID_PC 718 "invalid program counter"
    LAUNCH_FAILED 719 "unspecified launch failure"
    COOPERATIVE_LAUNCH_TOO_LARGE 720 "too many blocks in cooperative launch"
    TENSOR_MEMORY_LEAK 721 "tensor memory was not freed before the kernel ended"
    NOT_PERMITTED 800 "operation not permitted"
    NOT_SUPPORTED 801 "operation not supported"
    SYSTEM_NOT_READY 802 "system not yet initialized"
    SYSTEM_DRIVER_MISMATCH 803 "system has unsupported display driver / cuda driver combination"
    COMPAT_NOT_SUPPORTED_ON_DEVICE 804 "forward compatibility was attempted on non supported HW"
    MPS_CONNECTION_FAILED 805 "MPS client failed to connect to the MPS control daemon or the MPS server"
    MPS_RPC_FAILURE 806 "the remote procedural call between the MPS server and the MPS client failed"
    MPS_SERVER_NOT_READY 807 "MPS server is not ready to accept new MPS client requests"
    MPS_MAX_CLIENTS_REACHED 808 "the hardware resources required to create MPS client have been exhausted"
    MPS_MAX_CONNECTIONS_REACHED 809 "the hardware resources required to support device connections have been exhausted"
    MPS_CLIENT_TERMINATED 810 "the MPS client has been terminated by the server"
    CDP_NOT_SUPPORTED 811 "device-side launches are not supported"
    CDP_VERSION_MISMATCH 812 "versions of device-side launches do not match"
    STREAM_CAPTURE_UNSUPPORTED 900 "operation not permitted when stream is capturing"
    STREAM_CAPTURE_INVALIDATED 901 "operation failed due to a previous error during capture"
    STREAM_CAPTURE_MERGE 902 "operation would result in a merge of separate capture sequences"
    STREAM_CAPTURE_UNMATCHED 903 "capture was not ended in the same stream as it began"
    STREAM_CAPTURE_UNJOINED 904 "capturing stream has unjoined work"
    STREAM_CAPTURE_ISOLATION 905 "dependency created on uncaptured work in another stream"
    STREAM_CAPTURE_IMPLICIT 906 "operation would make the legacy stream depend on a capturing blocking stream"
    CAPTURED_EVENT 907 "operation not permitted on an event last recorded in a capturing stream"
    STREAM_CAPTURE_WRONG_THREAD 908 "attempt to terminate a thread-local capture sequence from another thread"
    TIMEOUT 909 "wait operation timed out"
    GRAPH_EXEC_UPDATE_FAILURE 910 "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update"
    EXTERNAL_DEVICE 911 "an async error has occurred in external entity outside of CUDA"
    INVALID_CLUSTER_SIZE 912 "a kernel launch error has occurred due to cluster misconfiguration"
    FUNCTION_NOT_LOADED 913 "the function handle is not loaded"
    INVALID_RESOURCE_TYPE 914 "invalid type of resource"
    INVALID_RESOURCE_CONFIGURATION 915 "invalid configuration of resources"
    KEY_ROTATION 916 "a key rotation is under way"
    STREAM_DETACHED 917 "the stream is detached"
    GRAPH_RECAPTURE_FAILURE 918 "the graph cannot be captured again"
    FABRIC_NOT_READY 919 "the fabric is not ready"
    UNKNOWN 999 "unknown error"
}

impl From<ErrorKind> for Code {
    fn from(kind: ErrorKind) -> Code {
        match kind {
            ErrorKind::InvalidValue | ErrorKind::ArgumentCount | ErrorKind::ArgumentSize => Code::INVALID_VALUE,
            ErrorKind::InvalidHandle => Code::INVALID_HANDLE,
            ErrorKind::NotFound => Code::NOT_FOUND,
            ErrorKind::InvalidCluster => Code::INVALID_CLUSTER_SIZE,
            ErrorKind::TooManyResources => Code::LAUNCH_OUT_OF_RESOURCES,
            ErrorKind::CooperativeTooLarge => Code::COOPERATIVE_LAUNCH_TOO_LARGE,
            ErrorKind::OutOfMemory => Code::OUT_OF_MEMORY,
            ErrorKind::Unsupported => Code::NOT_SUPPORTED,
            ErrorKind::InvalidModule | ErrorKind::LinkFailed => Code::INVALID_PTX,
            ErrorKind::NotReady => Code::NOT_READY,
            ErrorKind::Trap(kind) => of_trap(kind),
            ErrorKind::Stopped => Code::LAUNCH_TIMEOUT,
            _ => Code::UNKNOWN,
        }
    }
}

/// What a trap is on a GPU.
fn of_trap(kind: TrapKind) -> Code {
    match kind {
        TrapKind::OutOfBounds | TrapKind::WriteProtected | TrapKind::BadObject => Code::ILLEGAL_ADDRESS,
        TrapKind::Misaligned => Code::MISALIGNED_ADDRESS,
        TrapKind::BadSpace => Code::INVALID_ADDRESS_SPACE,
        TrapKind::Assert => Code::ASSERT,
        TrapKind::Deadlock | TrapKind::Timeout => Code::LAUNCH_TIMEOUT,
        TrapKind::Stack => Code::HARDWARE_STACK_ERROR,
        TrapKind::BadCall => Code::INVALID_PC,
        TrapKind::BadTransfer | TrapKind::BadTensor => Code::ILLEGAL_INSTRUCTION,
        TrapKind::Trap | TrapKind::Barrier | TrapKind::Breakpoint | TrapKind::OutOfSurface => Code::LAUNCH_FAILED,
    }
}

impl From<&StreamError> for Code {
    fn from(e: &StreamError) -> Code {
        e.kind().into()
    }
}

impl From<MemoryError> for Code {
    fn from(e: MemoryError) -> Code {
        e.kind().into()
    }
}

impl From<&LoadError> for Code {
    fn from(e: &LoadError) -> Code {
        match e.kind() {
            ErrorKind::Unsupported => Code::NO_BINARY_FOR_GPU,
            kind => kind.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_names_and_texts() {
        assert_eq!(Code::SUCCESS.name(), Some("CUDA_SUCCESS\0"));
        assert_eq!(Code::NOT_FOUND.name(), Some("CUDA_ERROR_NOT_FOUND\0"));
        assert_eq!(Code(700).text(), Some("an illegal memory access was encountered\0"));
        assert_eq!((Code(12345).name(), Code(12345).text()), (None, None));
    }
}
