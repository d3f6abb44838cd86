//! The names that are exported and do nothing yet: they answer that they are not supported.
//!
//! Which names a version of the library has stands in `names/13.txt` and `names/12.txt`: `ci/libraries` exports exactly those, and a test compares
//! them with what the libraries have. A name of which a version has a signature of its own is not exported as it is written in the code: the
//! linker makes `NAME` of `handloom_13_NAME` or of `handloom_12_NAME`.

use crate::error::Error;

macro_rules! not_supported {
    ($($name:ident)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "` of the runtime API: not supported yet.")]
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> u32 {
                crate::error::answer(stringify!($name), || Err(Error::NOT_SUPPORTED))
            }
        )*
    };
}

not_supported! {
    __cudaGetProcAddress __cudaRegisterHostVar __cudaRegisterUnifiedTable cudaArrayGetPlane cudaDestroyExternalMemory
    cudaDestroyExternalSemaphore cudaDevResourceGenerateDesc cudaDevSmResourceSplit cudaDevSmResourceSplitByCount
    cudaDeviceGetDevResource cudaDeviceGetExecutionCtx cudaDeviceGetNvSciSyncAttributes
    cudaDeviceRegisterAsyncNotification cudaDeviceUnregisterAsyncNotification cudaEGLStreamConsumerAcquireFrame
    cudaEGLStreamConsumerConnect cudaEGLStreamConsumerConnectWithFlags cudaEGLStreamConsumerDisconnect
    cudaEGLStreamConsumerReleaseFrame cudaEGLStreamProducerConnect cudaEGLStreamProducerDisconnect
    cudaEGLStreamProducerPresentFrame cudaEGLStreamProducerReturnFrame cudaEventCreateFromEGLSync
    cudaExecutionCtxDestroy cudaExecutionCtxGetDevResource cudaExecutionCtxGetDevice cudaExecutionCtxGetId
    cudaExecutionCtxRecordEvent cudaExecutionCtxStreamCreate cudaExecutionCtxSynchronize cudaExecutionCtxWaitEvent
    cudaExternalMemoryGetMappedBuffer cudaExternalMemoryGetMappedMipmappedArray cudaGLGetDevices cudaGLMapBufferObject
    cudaGLMapBufferObjectAsync cudaGLRegisterBufferObject cudaGLSetBufferObjectMapFlags cudaGLSetGLDevice
    cudaGLUnmapBufferObject cudaGLUnmapBufferObjectAsync cudaGLUnregisterBufferObject cudaGetExportTable
    cudaGraphAddExternalSemaphoresSignalNode cudaGraphAddExternalSemaphoresWaitNode
    cudaGraphExecExternalSemaphoresSignalNodeSetParams cudaGraphExecExternalSemaphoresWaitNodeSetParams
    cudaGraphExternalSemaphoresSignalNodeGetParams cudaGraphExternalSemaphoresSignalNodeSetParams
    cudaGraphExternalSemaphoresWaitNodeGetParams cudaGraphExternalSemaphoresWaitNodeSetParams
    cudaGraphicsEGLRegisterImage cudaGraphicsGLRegisterBuffer cudaGraphicsGLRegisterImage cudaGraphicsMapResources
    cudaGraphicsResourceGetMappedEglFrame cudaGraphicsResourceGetMappedMipmappedArray
    cudaGraphicsResourceGetMappedPointer cudaGraphicsResourceSetMapFlags cudaGraphicsSubResourceGetMappedArray
    cudaGraphicsUnmapResources cudaGraphicsUnregisterResource cudaGraphicsVDPAURegisterOutputSurface
    cudaGraphicsVDPAURegisterVideoSurface cudaGreenCtxCreate cudaImportExternalMemory cudaImportExternalSemaphore
    cudaLaunchCooperativeKernelMultiDevice cudaLogsCurrent cudaLogsDumpToFile cudaLogsDumpToMemory
    cudaLogsRegisterCallback cudaLogsUnregisterCallback cudaMemGetLocationInfo cudaSetDoubleForDevice
    cudaSetDoubleForHost cudaSetValidDevices cudaSignalExternalSemaphoresAsync cudaSignalExternalSemaphoresAsync_ptsz
    cudaSignalExternalSemaphoresAsync_v2 cudaSignalExternalSemaphoresAsync_v2_ptsz cudaStreamBeginRecaptureToGraph
    cudaStreamBeginRecaptureToGraph_ptsz cudaStreamGetDevResource cudaStreamGetDevResource_ptsz cudaSubgridCreate
    cudaSubgridWorkerGridCreate cudaSubgridWorksetCreate cudaVDPAUGetDevice cudaVDPAUSetVDPAUDevice
    cudaWaitExternalSemaphoresAsync cudaWaitExternalSemaphoresAsync_ptsz cudaWaitExternalSemaphoresAsync_v2
    cudaWaitExternalSemaphoresAsync_v2_ptsz
}

/// `cudaGetDeviceProperties` of version 12: programs of that version call `cudaGetDeviceProperties_v2`. Only older ones call this, and mean a
/// structure of version 11.
#[unsafe(export_name = "handloom_12_cudaGetDeviceProperties")]
pub extern "C" fn properties_11() -> u32 {
    crate::error::answer("cudaGetDeviceProperties", || Err(Error::NOT_SUPPORTED))
}
