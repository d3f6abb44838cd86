//! The results of CUDA's driver interface: numbers, names, and the texts that programs print.
//!
//! One table for those who return them, and for those who explain them.

/// A result of the driver API.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DriverError(pub u32);

macro_rules! errors {
    ($($name:ident $number:literal $($runtime:ident)? $text:literal)*) => {
        impl DriverError {
            /// no error
            pub const SUCCESS: DriverError = DriverError(0);
            $(#[doc = $text] pub const $name: DriverError = DriverError($number);)*

            /// All of them but success, by number.
            pub const ALL: &'static [DriverError] = &[$(DriverError::$name),*];

            /// Its name: `CUDA_ERROR_INVALID_VALUE`. With a NUL at the end.
            pub fn name(self) -> Option<&'static str> {
                match self {
                    DriverError::SUCCESS => Some("CUDA_SUCCESS\0"),
                    $(DriverError::$name => Some(concat!("CUDA_ERROR_", stringify!($name), "\0")),)*
                    _ => None,
                }
            }

            /// Its text: `invalid argument`. With a NUL at the end.
            pub fn text(self) -> Option<&'static str> {
                match self {
                    DriverError::SUCCESS => Some("no error\0"),
                    $(DriverError::$name => Some(concat!($text, "\0")),)*
                    _ => None,
                }
            }

            /// What the runtime API calls the same number: `cudaErrorInvalidValue`.
            pub fn runtime_name(self) -> Option<&'static str> {
                match self {
                    DriverError::SUCCESS => Some("cudaSuccess"),
                    $($(DriverError::$name => Some(stringify!($runtime)),)?)*
                    _ => None,
                }
            }
        }
    };
}

// The number, the name in the runtime API if it has one, the text.
errors! {
    INVALID_VALUE 1 cudaErrorInvalidValue "invalid argument"
    OUT_OF_MEMORY 2 cudaErrorMemoryAllocation "out of memory"
    NOT_INITIALIZED 3 cudaErrorInitializationError "initialization error"
    DEINITIALIZED 4 cudaErrorCudartUnloading "driver shutting down"
    PROFILER_DISABLED 5 cudaErrorProfilerDisabled "profiler disabled while using external profiling tool"
    PROFILER_NOT_INITIALIZED 6 cudaErrorProfilerNotInitialized "profiler not initialized: call cudaProfilerInitialize()"
    PROFILER_ALREADY_STARTED 7 cudaErrorProfilerAlreadyStarted "profiler already started"
    PROFILER_ALREADY_STOPPED 8 cudaErrorProfilerAlreadyStopped "profiler already stopped"
    STUB_LIBRARY 34 cudaErrorStubLibrary "CUDA driver is a stub library"
    CALL_REQUIRES_NEWER_DRIVER 36 cudaErrorCallRequiresNewerDriver "API call is not supported in the installed CUDA driver"
    DEVICE_UNAVAILABLE 46 cudaErrorDevicesUnavailable "CUDA-capable device(s) is/are busy or unavailable"
    MULTICAST_RESOURCE_FULL 47 "no multicast resource is left"
    NO_DEVICE 100 cudaErrorNoDevice "no CUDA-capable device is detected"
    INVALID_DEVICE 101 cudaErrorInvalidDevice "invalid device ordinal"
    DEVICE_NOT_LICENSED 102 cudaErrorDeviceNotLicensed "device doesn't have valid Grid license"
    INVALID_IMAGE 200 cudaErrorInvalidKernelImage "device kernel image is invalid"
    INVALID_CONTEXT 201 cudaErrorDeviceUninitialized "invalid device context"
    CONTEXT_ALREADY_CURRENT 202 "context already current"
    MAP_FAILED 205 cudaErrorMapBufferObjectFailed "mapping of buffer object failed"
    UNMAP_FAILED 206 cudaErrorUnmapBufferObjectFailed "unmapping of buffer object failed"
    ARRAY_IS_MAPPED 207 cudaErrorArrayIsMapped "array is mapped"
    ALREADY_MAPPED 208 cudaErrorAlreadyMapped "resource already mapped"
    NO_BINARY_FOR_GPU 209 cudaErrorNoKernelImageForDevice "no kernel image is available for execution on the device"
    ALREADY_ACQUIRED 210 cudaErrorAlreadyAcquired "resource already acquired"
    NOT_MAPPED 211 cudaErrorNotMapped "resource not mapped"
    NOT_MAPPED_AS_ARRAY 212 cudaErrorNotMappedAsArray "resource not mapped as array"
    NOT_MAPPED_AS_POINTER 213 cudaErrorNotMappedAsPointer "resource not mapped as pointer"
    ECC_UNCORRECTABLE 214 cudaErrorECCUncorrectable "uncorrectable ECC error encountered"
    UNSUPPORTED_LIMIT 215 cudaErrorUnsupportedLimit "limit is not supported on this architecture"
    CONTEXT_ALREADY_IN_USE 216 cudaErrorDeviceAlreadyInUse "exclusive-thread device already in use by a different thread"
    PEER_ACCESS_UNSUPPORTED 217 cudaErrorPeerAccessUnsupported "peer access is not supported between these two devices"
    INVALID_PTX 218 cudaErrorInvalidPtx "a PTX JIT compilation failed"
    INVALID_GRAPHICS_CONTEXT 219 cudaErrorInvalidGraphicsContext "invalid OpenGL or DirectX context"
    NVLINK_UNCORRECTABLE 220 cudaErrorNvlinkUncorrectable "uncorrectable NVLink error detected during the execution"
    JIT_COMPILER_NOT_FOUND 221 cudaErrorJitCompilerNotFound "PTX JIT compiler library not found"
    UNSUPPORTED_PTX_VERSION 222 cudaErrorUnsupportedPtxVersion "the provided PTX was compiled with an unsupported toolchain."
    JIT_COMPILATION_DISABLED 223 cudaErrorJitCompilationDisabled "PTX JIT compilation was disabled"
    UNSUPPORTED_EXEC_AFFINITY 224 cudaErrorUnsupportedExecAffinity "the provided execution affinity is not supported"
    UNSUPPORTED_DEVSIDE_SYNC 225 cudaErrorUnsupportedDevSideSync "the provided PTX contains unsupported call to cudaDeviceSynchronize"
    CONTAINED 226 cudaErrorContained "Invalid access of peer GPU memory over nvlink or a hardware error"
    INSUFFICIENT_LOADER_VERSION 227 cudaErrorInsufficientLoaderVersion "the loader of the image is too old"
    INVALID_SOURCE 300 cudaErrorInvalidSource "device kernel image is invalid"
    FILE_NOT_FOUND 301 cudaErrorFileNotFound "file not found"
    SHARED_OBJECT_SYMBOL_NOT_FOUND 302 cudaErrorSharedObjectSymbolNotFound "shared object symbol not found"
    SHARED_OBJECT_INIT_FAILED 303 cudaErrorSharedObjectInitFailed "shared object initialization failed"
    OPERATING_SYSTEM 304 cudaErrorOperatingSystem "OS call failed or operation not supported on this OS"
    INVALID_HANDLE 400 cudaErrorInvalidResourceHandle "invalid resource handle"
    ILLEGAL_STATE 401 cudaErrorIllegalState "the operation cannot be performed in the present state"
    LOSSY_QUERY 402 cudaErrorLossyQuery "attempted introspection would be semantically lossy"
    NOT_FOUND 500 cudaErrorSymbolNotFound "named symbol not found"
    NOT_READY 600 cudaErrorNotReady "device not ready"
    ILLEGAL_ADDRESS 700 cudaErrorIllegalAddress "an illegal memory access was encountered"
    LAUNCH_OUT_OF_RESOURCES 701 cudaErrorLaunchOutOfResources "too many resources requested for launch"
    LAUNCH_TIMEOUT 702 cudaErrorLaunchTimeout "the launch timed out and was terminated"
    LAUNCH_INCOMPATIBLE_TEXTURING 703 cudaErrorLaunchIncompatibleTexturing "launch uses incompatible texturing mode"
    PEER_ACCESS_ALREADY_ENABLED 704 cudaErrorPeerAccessAlreadyEnabled "peer access is already enabled"
    PEER_ACCESS_NOT_ENABLED 705 cudaErrorPeerAccessNotEnabled "peer access has not been enabled"
    PRIMARY_CONTEXT_ACTIVE 708 cudaErrorSetOnActiveProcess "cannot set while device is active in this process"
    CONTEXT_IS_DESTROYED 709 cudaErrorContextIsDestroyed "context is destroyed"
    ASSERT 710 cudaErrorAssert "device-side assert triggered"
    TOO_MANY_PEERS 711 cudaErrorTooManyPeers "peer mapping resources exhausted"
    HOST_MEMORY_ALREADY_REGISTERED 712 cudaErrorHostMemoryAlreadyRegistered "part or all of the requested memory range is already mapped"
    HOST_MEMORY_NOT_REGISTERED 713 cudaErrorHostMemoryNotRegistered "pointer does not correspond to a registered memory region"
    HARDWARE_STACK_ERROR 714 cudaErrorHardwareStackError "hardware stack error"
    ILLEGAL_INSTRUCTION 715 cudaErrorIllegalInstruction "an illegal instruction was encountered"
    MISALIGNED_ADDRESS 716 cudaErrorMisalignedAddress "misaligned address"
    INVALID_ADDRESS_SPACE 717 cudaErrorInvalidAddressSpace "operation not supported on global/shared address space"
    INVALID_PC 718 cudaErrorInvalidPc "invalid program counter"
    LAUNCH_FAILED 719 cudaErrorLaunchFailure "unspecified launch failure"
    COOPERATIVE_LAUNCH_TOO_LARGE 720 cudaErrorCooperativeLaunchTooLarge "too many blocks in cooperative launch"
    TENSOR_MEMORY_LEAK 721 cudaErrorTensorMemoryLeak "tensor memory was not freed before the kernel ended"
    NOT_PERMITTED 800 cudaErrorNotPermitted "operation not permitted"
    NOT_SUPPORTED 801 cudaErrorNotSupported "operation not supported"
    SYSTEM_NOT_READY 802 cudaErrorSystemNotReady "system not yet initialized"
    SYSTEM_DRIVER_MISMATCH 803 cudaErrorSystemDriverMismatch "system has unsupported display driver / cuda driver combination"
    COMPAT_NOT_SUPPORTED_ON_DEVICE 804 cudaErrorCompatNotSupportedOnDevice "forward compatibility was attempted on non supported HW"
    MPS_CONNECTION_FAILED 805 cudaErrorMpsConnectionFailed "MPS client failed to connect to the MPS control daemon or the MPS server"
    MPS_RPC_FAILURE 806 cudaErrorMpsRpcFailure "the remote procedural call between the MPS server and the MPS client failed"
    MPS_SERVER_NOT_READY 807 cudaErrorMpsServerNotReady "MPS server is not ready to accept new MPS client requests"
    MPS_MAX_CLIENTS_REACHED 808 cudaErrorMpsMaxClientsReached "the hardware resources required to create MPS client have been exhausted"
    MPS_MAX_CONNECTIONS_REACHED 809 cudaErrorMpsMaxConnectionsReached "the hardware resources required to support device connections have been exhausted"
    MPS_CLIENT_TERMINATED 810 cudaErrorMpsClientTerminated "the MPS client has been terminated by the server"
    CDP_NOT_SUPPORTED 811 cudaErrorCdpNotSupported "device-side launches are not supported"
    CDP_VERSION_MISMATCH 812 cudaErrorCdpVersionMismatch "versions of device-side launches do not match"
    STREAM_CAPTURE_UNSUPPORTED 900 cudaErrorStreamCaptureUnsupported "operation not permitted when stream is capturing"
    STREAM_CAPTURE_INVALIDATED 901 cudaErrorStreamCaptureInvalidated "operation failed due to a previous error during capture"
    STREAM_CAPTURE_MERGE 902 cudaErrorStreamCaptureMerge "operation would result in a merge of separate capture sequences"
    STREAM_CAPTURE_UNMATCHED 903 cudaErrorStreamCaptureUnmatched "capture was not ended in the same stream as it began"
    STREAM_CAPTURE_UNJOINED 904 cudaErrorStreamCaptureUnjoined "capturing stream has unjoined work"
    STREAM_CAPTURE_ISOLATION 905 cudaErrorStreamCaptureIsolation "dependency created on uncaptured work in another stream"
    STREAM_CAPTURE_IMPLICIT 906 cudaErrorStreamCaptureImplicit "operation would make the legacy stream depend on a capturing blocking stream"
    CAPTURED_EVENT 907 cudaErrorCapturedEvent "operation not permitted on an event last recorded in a capturing stream"
    STREAM_CAPTURE_WRONG_THREAD 908 cudaErrorStreamCaptureWrongThread "attempt to terminate a thread-local capture sequence from another thread"
    TIMEOUT 909 cudaErrorTimeout "wait operation timed out"
    GRAPH_EXEC_UPDATE_FAILURE 910 cudaErrorGraphExecUpdateFailure "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update"
    EXTERNAL_DEVICE 911 cudaErrorExternalDevice "an async error has occurred in external entity outside of CUDA"
    INVALID_CLUSTER_SIZE 912 cudaErrorInvalidClusterSize "a kernel launch error has occurred due to cluster misconfiguration"
    FUNCTION_NOT_LOADED 913 cudaErrorFunctionNotLoaded "the function handle is not loaded"
    INVALID_RESOURCE_TYPE 914 cudaErrorInvalidResourceType "invalid type of resource"
    INVALID_RESOURCE_CONFIGURATION 915 cudaErrorInvalidResourceConfiguration "invalid configuration of resources"
    KEY_ROTATION 916 "a key rotation is under way"
    STREAM_DETACHED 917 cudaErrorStreamDetached "the stream is detached"
    GRAPH_RECAPTURE_FAILURE 918 cudaErrorGraphRecaptureFailure "the graph cannot be captured again"
    FABRIC_NOT_READY 919 cudaErrorFabricNotReady "the fabric is not ready"
    UNKNOWN 999 cudaErrorUnknown "unknown error"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_names_and_texts() {
        assert_eq!(DriverError::SUCCESS.name(), Some("CUDA_SUCCESS\0"));
        assert_eq!(DriverError::NOT_FOUND.name(), Some("CUDA_ERROR_NOT_FOUND\0"));
        assert_eq!(DriverError::NOT_FOUND.runtime_name(), Some("cudaErrorSymbolNotFound"));
        assert_eq!(DriverError(700).text(), Some("an illegal memory access was encountered\0"));
        assert_eq!((DriverError(12345).name(), DriverError(12345).text()), (None, None));
        assert!(DriverError::ALL.is_sorted_by_key(|e| e.0));
    }
}
