//! Errors: numbers, names, texts, and the last error of a thread. See "Error Handling".

use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use crate::cu;

/// An error of the runtime API. Most numbers are those of the driver API; never 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Error(pub u32);

/// What a call comes to.
pub type Answer<T = ()> = Result<T, Error>;

thread_local! {
    static LAST: Cell<u32> = const { Cell::new(0) };
}

/// Whether calls are told. Read once.
fn traces() -> bool {
    static TRACE: OnceLock<bool> = OnceLock::new();
    *TRACE.get_or_init(|| std::env::var("HANDLOOM_TRACE_API").is_ok_and(|v| !v.is_empty() && v != "0"))
}

/// Writes a line for the user.
fn say(text: &str) {
    // Nobody is left who could be told that this failed.
    let _ = std::io::stderr().write_all(format!("handloom: {text}\n").as_bytes());
}

/// Runs the body of a call: an error is remembered, and no panic gets into the program.
pub fn answer(name: &str, body: impl FnOnce() -> Answer) -> u32 {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        say(&format!("bug: `{name}` panicked; please report it"));
        Err(Error::UNKNOWN)
    });
    if traces() {
        let code = result.err().map_or(0, |error| error.0);
        let known = if code == 0 { Some(c"cudaSuccess") } else { find(NAMED, code) };
        say(&format!(
            "{name} -> {}",
            known.map_or_else(|| code.to_string(), |name| name.to_string_lossy().into_owned())
        ));
    }
    match result {
        Ok(()) => 0,
        Err(Error(number)) => {
            LAST.set(number);
            number
        }
    }
}

/// What the driver answered.
pub fn driver(result: u32) -> Answer {
    if result == 0 { Ok(()) } else { Err(Error(result)) }
}

/// Whether an error stays: the context that had it does nothing any more.
fn is_sticky(number: u32) -> bool {
    matches!(number, 700 | 702 | 710 | 714..=719 | 721)
}

macro_rules! errors {
    ($($constant:ident = $name:ident $number:literal)*) => {
        #[allow(dead_code, reason = "the list is whole, whichever of them are made here")]
        impl Error {
            $(#[doc = concat!("`", stringify!($name), "`.")] pub const $constant: Error = Error($number);)*
        }
        const NAMED: &[(u32, &CStr)] = &[$(($number, match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!(),
        }),)*];
    };
}

errors! {
    INVALID_VALUE = cudaErrorInvalidValue 1
    MEMORY_ALLOCATION = cudaErrorMemoryAllocation 2
    INITIALIZATION_ERROR = cudaErrorInitializationError 3
    CUDART_UNLOADING = cudaErrorCudartUnloading 4
    PROFILER_DISABLED = cudaErrorProfilerDisabled 5
    PROFILER_NOT_INITIALIZED = cudaErrorProfilerNotInitialized 6
    PROFILER_ALREADY_STARTED = cudaErrorProfilerAlreadyStarted 7
    PROFILER_ALREADY_STOPPED = cudaErrorProfilerAlreadyStopped 8
    INVALID_CONFIGURATION = cudaErrorInvalidConfiguration 9
    VERSION_TRANSLATION = cudaErrorVersionTranslation 10
    INVALID_PITCH_VALUE = cudaErrorInvalidPitchValue 12
    INVALID_SYMBOL = cudaErrorInvalidSymbol 13
    INVALID_HOST_POINTER = cudaErrorInvalidHostPointer 16
    INVALID_DEVICE_POINTER = cudaErrorInvalidDevicePointer 17
    INVALID_TEXTURE = cudaErrorInvalidTexture 18
    INVALID_TEXTURE_BINDING = cudaErrorInvalidTextureBinding 19
    INVALID_CHANNEL_DESCRIPTOR = cudaErrorInvalidChannelDescriptor 20
    INVALID_MEMCPY_DIRECTION = cudaErrorInvalidMemcpyDirection 21
    ADDRESS_OF_CONSTANT = cudaErrorAddressOfConstant 22
    TEXTURE_FETCH_FAILED = cudaErrorTextureFetchFailed 23
    TEXTURE_NOT_BOUND = cudaErrorTextureNotBound 24
    SYNCHRONIZATION_ERROR = cudaErrorSynchronizationError 25
    INVALID_FILTER_SETTING = cudaErrorInvalidFilterSetting 26
    INVALID_NORM_SETTING = cudaErrorInvalidNormSetting 27
    MIXED_DEVICE_EXECUTION = cudaErrorMixedDeviceExecution 28
    NOT_YET_IMPLEMENTED = cudaErrorNotYetImplemented 31
    MEMORY_VALUE_TOO_LARGE = cudaErrorMemoryValueTooLarge 32
    STUB_LIBRARY = cudaErrorStubLibrary 34
    INSUFFICIENT_DRIVER = cudaErrorInsufficientDriver 35
    CALL_REQUIRES_NEWER_DRIVER = cudaErrorCallRequiresNewerDriver 36
    INVALID_SURFACE = cudaErrorInvalidSurface 37
    DUPLICATE_VARIABLE_NAME = cudaErrorDuplicateVariableName 43
    DUPLICATE_TEXTURE_NAME = cudaErrorDuplicateTextureName 44
    DUPLICATE_SURFACE_NAME = cudaErrorDuplicateSurfaceName 45
    DEVICES_UNAVAILABLE = cudaErrorDevicesUnavailable 46
    INCOMPATIBLE_DRIVER_CONTEXT = cudaErrorIncompatibleDriverContext 49
    MISSING_CONFIGURATION = cudaErrorMissingConfiguration 52
    PRIOR_LAUNCH_FAILURE = cudaErrorPriorLaunchFailure 53
    LAUNCH_MAX_DEPTH_EXCEEDED = cudaErrorLaunchMaxDepthExceeded 65
    LAUNCH_FILE_SCOPED_TEX = cudaErrorLaunchFileScopedTex 66
    LAUNCH_FILE_SCOPED_SURF = cudaErrorLaunchFileScopedSurf 67
    SYNC_DEPTH_EXCEEDED = cudaErrorSyncDepthExceeded 68
    LAUNCH_PENDING_COUNT_EXCEEDED = cudaErrorLaunchPendingCountExceeded 69
    INVALID_DEVICE_FUNCTION = cudaErrorInvalidDeviceFunction 98
    NO_DEVICE = cudaErrorNoDevice 100
    INVALID_DEVICE = cudaErrorInvalidDevice 101
    DEVICE_NOT_LICENSED = cudaErrorDeviceNotLicensed 102
    SOFTWARE_VALIDITY_NOT_ESTABLISHED = cudaErrorSoftwareValidityNotEstablished 103
    STARTUP_FAILURE = cudaErrorStartupFailure 127
    INVALID_KERNEL_IMAGE = cudaErrorInvalidKernelImage 200
    DEVICE_UNINITIALIZED = cudaErrorDeviceUninitialized 201
    MAP_BUFFER_OBJECT_FAILED = cudaErrorMapBufferObjectFailed 205
    UNMAP_BUFFER_OBJECT_FAILED = cudaErrorUnmapBufferObjectFailed 206
    ARRAY_IS_MAPPED = cudaErrorArrayIsMapped 207
    ALREADY_MAPPED = cudaErrorAlreadyMapped 208
    NO_KERNEL_IMAGE_FOR_DEVICE = cudaErrorNoKernelImageForDevice 209
    ALREADY_ACQUIRED = cudaErrorAlreadyAcquired 210
    NOT_MAPPED = cudaErrorNotMapped 211
    NOT_MAPPED_AS_ARRAY = cudaErrorNotMappedAsArray 212
    NOT_MAPPED_AS_POINTER = cudaErrorNotMappedAsPointer 213
    ECC_UNCORRECTABLE = cudaErrorECCUncorrectable 214
    UNSUPPORTED_LIMIT = cudaErrorUnsupportedLimit 215
    DEVICE_ALREADY_IN_USE = cudaErrorDeviceAlreadyInUse 216
    PEER_ACCESS_UNSUPPORTED = cudaErrorPeerAccessUnsupported 217
    INVALID_PTX = cudaErrorInvalidPtx 218
    INVALID_GRAPHICS_CONTEXT = cudaErrorInvalidGraphicsContext 219
    NVLINK_UNCORRECTABLE = cudaErrorNvlinkUncorrectable 220
    JIT_COMPILER_NOT_FOUND = cudaErrorJitCompilerNotFound 221
    UNSUPPORTED_PTX_VERSION = cudaErrorUnsupportedPtxVersion 222
    JIT_COMPILATION_DISABLED = cudaErrorJitCompilationDisabled 223
    UNSUPPORTED_EXEC_AFFINITY = cudaErrorUnsupportedExecAffinity 224
    UNSUPPORTED_DEV_SIDE_SYNC = cudaErrorUnsupportedDevSideSync 225
    CONTAINED = cudaErrorContained 226
    INSUFFICIENT_LOADER_VERSION = cudaErrorInsufficientLoaderVersion 227
    INVALID_SOURCE = cudaErrorInvalidSource 300
    FILE_NOT_FOUND = cudaErrorFileNotFound 301
    SHARED_OBJECT_SYMBOL_NOT_FOUND = cudaErrorSharedObjectSymbolNotFound 302
    SHARED_OBJECT_INIT_FAILED = cudaErrorSharedObjectInitFailed 303
    OPERATING_SYSTEM = cudaErrorOperatingSystem 304
    INVALID_RESOURCE_HANDLE = cudaErrorInvalidResourceHandle 400
    ILLEGAL_STATE = cudaErrorIllegalState 401
    LOSSY_QUERY = cudaErrorLossyQuery 402
    SYMBOL_NOT_FOUND = cudaErrorSymbolNotFound 500
    NOT_READY = cudaErrorNotReady 600
    ILLEGAL_ADDRESS = cudaErrorIllegalAddress 700
    LAUNCH_OUT_OF_RESOURCES = cudaErrorLaunchOutOfResources 701
    LAUNCH_TIMEOUT = cudaErrorLaunchTimeout 702
    LAUNCH_INCOMPATIBLE_TEXTURING = cudaErrorLaunchIncompatibleTexturing 703
    PEER_ACCESS_ALREADY_ENABLED = cudaErrorPeerAccessAlreadyEnabled 704
    PEER_ACCESS_NOT_ENABLED = cudaErrorPeerAccessNotEnabled 705
    SET_ON_ACTIVE_PROCESS = cudaErrorSetOnActiveProcess 708
    CONTEXT_IS_DESTROYED = cudaErrorContextIsDestroyed 709
    ASSERT = cudaErrorAssert 710
    TOO_MANY_PEERS = cudaErrorTooManyPeers 711
    HOST_MEMORY_ALREADY_REGISTERED = cudaErrorHostMemoryAlreadyRegistered 712
    HOST_MEMORY_NOT_REGISTERED = cudaErrorHostMemoryNotRegistered 713
    HARDWARE_STACK_ERROR = cudaErrorHardwareStackError 714
    ILLEGAL_INSTRUCTION = cudaErrorIllegalInstruction 715
    MISALIGNED_ADDRESS = cudaErrorMisalignedAddress 716
    INVALID_ADDRESS_SPACE = cudaErrorInvalidAddressSpace 717
    INVALID_PC = cudaErrorInvalidPc 718
    LAUNCH_FAILURE = cudaErrorLaunchFailure 719
    COOPERATIVE_LAUNCH_TOO_LARGE = cudaErrorCooperativeLaunchTooLarge 720
    TENSOR_MEMORY_LEAK = cudaErrorTensorMemoryLeak 721
    NOT_PERMITTED = cudaErrorNotPermitted 800
    NOT_SUPPORTED = cudaErrorNotSupported 801
    SYSTEM_NOT_READY = cudaErrorSystemNotReady 802
    SYSTEM_DRIVER_MISMATCH = cudaErrorSystemDriverMismatch 803
    COMPAT_NOT_SUPPORTED_ON_DEVICE = cudaErrorCompatNotSupportedOnDevice 804
    MPS_CONNECTION_FAILED = cudaErrorMpsConnectionFailed 805
    MPS_RPC_FAILURE = cudaErrorMpsRpcFailure 806
    MPS_SERVER_NOT_READY = cudaErrorMpsServerNotReady 807
    MPS_MAX_CLIENTS_REACHED = cudaErrorMpsMaxClientsReached 808
    MPS_MAX_CONNECTIONS_REACHED = cudaErrorMpsMaxConnectionsReached 809
    MPS_CLIENT_TERMINATED = cudaErrorMpsClientTerminated 810
    CDP_NOT_SUPPORTED = cudaErrorCdpNotSupported 811
    CDP_VERSION_MISMATCH = cudaErrorCdpVersionMismatch 812
    STREAM_CAPTURE_UNSUPPORTED = cudaErrorStreamCaptureUnsupported 900
    STREAM_CAPTURE_INVALIDATED = cudaErrorStreamCaptureInvalidated 901
    STREAM_CAPTURE_MERGE = cudaErrorStreamCaptureMerge 902
    STREAM_CAPTURE_UNMATCHED = cudaErrorStreamCaptureUnmatched 903
    STREAM_CAPTURE_UNJOINED = cudaErrorStreamCaptureUnjoined 904
    STREAM_CAPTURE_ISOLATION = cudaErrorStreamCaptureIsolation 905
    STREAM_CAPTURE_IMPLICIT = cudaErrorStreamCaptureImplicit 906
    CAPTURED_EVENT = cudaErrorCapturedEvent 907
    STREAM_CAPTURE_WRONG_THREAD = cudaErrorStreamCaptureWrongThread 908
    TIMEOUT = cudaErrorTimeout 909
    GRAPH_EXEC_UPDATE_FAILURE = cudaErrorGraphExecUpdateFailure 910
    EXTERNAL_DEVICE = cudaErrorExternalDevice 911
    INVALID_CLUSTER_SIZE = cudaErrorInvalidClusterSize 912
    FUNCTION_NOT_LOADED = cudaErrorFunctionNotLoaded 913
    INVALID_RESOURCE_TYPE = cudaErrorInvalidResourceType 914
    INVALID_RESOURCE_CONFIGURATION = cudaErrorInvalidResourceConfiguration 915
    STREAM_DETACHED = cudaErrorStreamDetached 917
    GRAPH_RECAPTURE_FAILURE = cudaErrorGraphRecaptureFailure 918
    FABRIC_NOT_READY = cudaErrorFabricNotReady 919
    UNKNOWN = cudaErrorUnknown 999
}

/// Texts of the errors that the driver API does not have.
const OWN_TEXTS: &[(u32, &CStr)] = &[
    (9, c"invalid configuration argument"),
    (10, c"user version could not be translated"),
    (12, c"invalid pitch argument"),
    (13, c"invalid device symbol"),
    (16, c"invalid host pointer"),
    (17, c"invalid device pointer"),
    (18, c"invalid texture reference"),
    (19, c"texture is not bound to a pointer"),
    (20, c"invalid channel descriptor"),
    (21, c"invalid copy direction for memcpy"),
    (22, c"attempt to take address of constant"),
    (23, c"fetch from texture failed"),
    (24, c"cannot fetch from a texture that is not bound"),
    (25, c"incorrect use of __syncthreads()"),
    (26, c"linear filtering not supported for non-float type"),
    (27, c"read as normalized float not supported for 32-bit non float type"),
    (28, c"device emulation mode and device execution mode cannot be mixed"),
    (31, c"feature not yet implemented"),
    (32, c"memory size or pointer value too large to fit in 32 bit"),
    (35, c"CUDA driver version is insufficient for CUDA runtime version"),
    (37, c"invalid surface reference"),
    (43, c"duplicate global variable looked up by string name"),
    (44, c"duplicate texture looked up by string name"),
    (45, c"duplicate surface looked up by string name"),
    (49, c"incompatible driver context"),
    (52, c"__global__ function call is not configured"),
    (53, c"unspecified launch failure in prior launch"),
    (65, c"launch would exceed maximum depth of nested launches"),
    (66, c"launch failed because kernel uses unsupported, file-scoped textures (texture objects are supported)"),
    (67, c"launch failed because kernel uses unsupported, file-scoped surfaces (surface objects are supported)"),
    (68, c"cudaDeviceSynchronize failed because caller's grid depth exceeds cudaLimitDevRuntimeSyncDepth"),
    (69, c"launch failed because launch would exceed cudaLimitDevRuntimePendingLaunchCount"),
    (98, c"invalid device function"),
    (103, c"integrity checks failed"),
    (127, c"startup failure in cuda runtime"),
];

fn find(table: &'static [(u32, &'static CStr)], number: u32) -> Option<&'static CStr> {
    table.iter().find(|(n, _)| *n == number).map(|(_, text)| *text)
}

/// `cudaGetErrorName` of the runtime API.
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetErrorName(error: u32) -> *const c_char {
    let name = if error == 0 { Some(c"cudaSuccess") } else { find(NAMED, error) };
    name.unwrap_or(c"unrecognized error code").as_ptr()
}

/// `cudaGetErrorString` of the runtime API.
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetErrorString(error: u32) -> *const c_char {
    if let Some(text) = find(OWN_TEXTS, error) {
        return text.as_ptr();
    }
    let mut text = std::ptr::null();
    if cu::cuGetErrorString(error, &mut text) == 0 && !text.is_null() {
        text
    } else {
        c"unrecognized error code".as_ptr()
    }
}

/// `cudaGetLastError` of the runtime API: an error is forgotten when it was told, but for one that its context keeps.
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetLastError() -> u32 {
    let last = LAST.get();
    if !is_sticky(last) {
        LAST.set(0);
    }
    last
}

/// `cudaPeekAtLastError` of the runtime API.
#[unsafe(no_mangle)]
pub extern "C" fn cudaPeekAtLastError() -> u32 {
    LAST.get()
}

/// Forgets an error that stays otherwise: the device was reset.
pub fn forget() {
    LAST.set(0);
}
