//! The functions of the driver API that the runtime library calls.
//!
//! Results are numbers of `CUresult`; handles and device addresses are numbers, which the driver looks up; where it writes one value, it gets a
//! reference. That makes most calls safe ones. Those that get addresses from the program pass them on as they are, and are the program's claim.

use std::ffi::{c_char, c_void};

use crate::types::{Address, IpcHandle, MemLocation};

/// What a stream calls when its work comes to it.
pub type HostFn = Option<unsafe extern "C" fn(*mut c_void)>;
/// What a stream calls with its own handle and an error.
pub type StreamCallback = Option<unsafe extern "C" fn(u64, u32, *mut c_void)>;

/// A copy of a box, as the driver has it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Memcpy3D {
    /// The source.
    pub src: Side,
    /// The destination.
    pub dst: Side,
    /// Width in bytes.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Layers.
    pub depth: usize,
}

/// One side of a copy.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// First byte of a row.
    pub x: usize,
    /// First row.
    pub y: usize,
    /// First layer.
    pub z: usize,
    /// Level of detail.
    pub level: usize,
    /// 1 host, 2 device, 3 array, 4 any address.
    pub kind: u32,
    /// For host memory.
    pub host: u64,
    /// For device memory and any address.
    pub device: u64,
    /// For an array.
    pub array: u64,
    /// 0.
    pub reserved: u64,
    /// Bytes from row to row.
    pub pitch: usize,
    /// Rows from layer to layer.
    pub height: usize,
}

/// What an array is, as the driver has it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ArrayDescriptor {
    /// Elements of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Slices or layers.
    pub depth: usize,
    /// What the components are.
    pub format: u32,
    /// How many.
    pub channels: u32,
    /// `CUDA_ARRAY3D_*`
    pub flags: u32,
}

/// What a texture lies over, as the driver has it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ResourceDesc {
    /// 0 array, 1 array with levels of detail, 2 linear, 3 rows.
    pub kind: u32,
    /// An array, or address, format with number of components, sizes.
    pub res: [u64; 5],
    /// 0.
    pub reserved: [u64; 11],
    /// 0.
    pub flags: u32,
}

/// What a texture shows of an array, as the driver has it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ViewDesc {
    /// `CUresourceViewFormat`
    pub format: u32,
    /// Elements of a row, rows, slices.
    pub size: [usize; 3],
    /// First and last level of detail.
    pub levels: [u32; 2],
    /// First and last layer.
    pub layers: [u32; 2],
    /// 0.
    pub reserved: [u32; 16],
}

/// How a texture is read, as the driver has it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TextureDesc {
    /// Address modes.
    pub address: [u32; 3],
    /// Between texels.
    pub filter: u32,
    /// `CU_TRSF_*`
    pub flags: u32,
    /// Samples of a filter along a line.
    pub max_anisotropy: u32,
    /// Between levels of detail.
    pub mip_filter: u32,
    /// Added to a level of detail.
    pub lod_bias: f32,
    /// The lowest.
    pub min_lod: f32,
    /// The highest.
    pub max_lod: f32,
    /// Colour of the border.
    pub border: [f32; 4],
    /// 0.
    pub reserved: [i32; 12],
}

/// A copy of a rectangle, as the driver has it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Memcpy2D {
    /// The source.
    pub src: Side2,
    /// The destination.
    pub dst: Side2,
    /// Width in bytes.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

/// One side of a copy of a rectangle.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Side2 {
    /// First byte of a row.
    pub x: usize,
    /// First row.
    pub y: usize,
    /// 1 host, 2 device, 3 array, 4 any address.
    pub kind: u32,
    /// For host memory.
    pub host: u64,
    /// For device memory and any address.
    pub device: u64,
    /// For an array.
    pub array: u64,
    /// Bytes from row to row.
    pub pitch: usize,
}

/// A launch with attributes, as the driver has it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfig {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// In which stream.
    pub stream: u64,
    /// An array of attributes.
    pub attributes: Address,
    /// Their number.
    pub count: u32,
}

/// A launch as a node of a graph, as the driver has it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelNodeParams {
    /// A function, or 0.
    pub function: u64,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Addresses of the arguments.
    pub arguments: Address,
    /// The other way to pass arguments.
    pub extra: Address,
    /// A kernel, where there is no function.
    pub kernel: u64,
    /// The context for a kernel.
    pub context: u64,
}

/// A node of a graph of any kind, as the driver has it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NodeParams {
    /// The kind.
    pub kind: u32,
    /// 0.
    pub reserved_0: [u32; 3],
    /// The structure of the kind.
    pub body: [u64; 29],
    /// 0.
    pub reserved_2: u64,
}

const _: () = assert!(size_of::<NodeParams>() == 256);
const _: () = assert!(size_of::<Memcpy3D>() == 200 && size_of::<Memcpy2D>() == 128);
const _: () = assert!(size_of::<LaunchConfig>() == 56 && size_of::<KernelNodeParams>() == 72);

// SAFETY: these are the signatures of the driver API, which the driver library of Handloom exports; it takes any number for a handle, and references
// to what it writes.
unsafe extern "C" {
    // Errors, version, devices.
    pub safe fn cuGetErrorString(error: u32, text: &mut *const c_char) -> u32;
    pub safe fn cuInit(flags: u32) -> u32;
    pub safe fn cuDriverGetVersion(version: &mut i32) -> u32;
    pub safe fn cuDeviceGetCount(count: &mut i32) -> u32;
    pub safe fn cuDeviceGetAttribute(value: &mut i32, attribute: u32, device: i32) -> u32;
    pub safe fn cuDeviceTotalMem_v2(bytes: &mut usize, device: i32) -> u32;
    pub safe fn cuDeviceGetUuid_v2(uuid: &mut [u8; 16], device: i32) -> u32;
    pub safe fn cuDeviceCanAccessPeer(can: &mut i32, device: i32, peer: i32) -> u32;
    pub safe fn cuDeviceGetDefaultMemPool(pool: &mut u64, device: i32) -> u32;
    pub safe fn cuDeviceGetMemPool(pool: &mut u64, device: i32) -> u32;
    pub safe fn cuDeviceSetMemPool(device: i32, pool: u64) -> u32;
    pub fn cuDeviceGetName(name: *mut c_char, length: i32, device: i32) -> u32;
    pub fn cuDeviceGetPCIBusId(text: *mut c_char, length: i32, device: i32) -> u32;
    pub fn cuDeviceGetByPCIBusId(device: &mut i32, text: *const c_char) -> u32;
    pub fn cuGetProcAddress_v2(
        name: *const c_char,
        function: *mut Address,
        version: i32,
        flags: u64,
        status: *mut u32,
    ) -> u32;

    // Contexts.
    pub safe fn cuDevicePrimaryCtxRetain(context: &mut u64, device: i32) -> u32;
    pub safe fn cuDevicePrimaryCtxReset_v2(device: i32) -> u32;
    pub safe fn cuDevicePrimaryCtxSetFlags_v2(device: i32, flags: u32) -> u32;
    pub safe fn cuDevicePrimaryCtxGetState(device: i32, flags: &mut u32, active: &mut i32) -> u32;
    pub safe fn cuCtxGetCurrent(context: &mut u64) -> u32;
    pub safe fn cuCtxSetCurrent(context: u64) -> u32;
    pub safe fn cuCtxGetDevice(device: &mut i32) -> u32;
    pub safe fn cuCtxSynchronize() -> u32;
    pub safe fn cuCtxSetLimit(limit: u32, value: usize) -> u32;
    pub safe fn cuCtxGetLimit(value: &mut usize, limit: u32) -> u32;
    pub safe fn cuCtxGetStreamPriorityRange(least: &mut i32, greatest: &mut i32) -> u32;
    pub safe fn cuCtxEnablePeerAccess(context: u64, flags: u32) -> u32;
    pub safe fn cuCtxDisablePeerAccess(context: u64) -> u32;
    // Arrays, textures, surfaces.
    pub safe fn cuArray3DCreate_v2(array: &mut u64, what: &ArrayDescriptor) -> u32;
    pub safe fn cuArray3DGetDescriptor_v2(what: &mut ArrayDescriptor, array: u64) -> u32;
    pub safe fn cuArrayDestroy(array: u64) -> u32;
    pub safe fn cuMipmappedArrayCreate(all: &mut u64, what: &ArrayDescriptor, levels: u32) -> u32;
    pub safe fn cuMipmappedArrayGetLevel(array: &mut u64, all: u64, level: u32) -> u32;
    pub safe fn cuMipmappedArrayDestroy(all: u64) -> u32;
    pub safe fn cuTexObjectCreate(
        texture: &mut u64,
        what: &ResourceDesc,
        how: &TextureDesc,
        view: Option<&ViewDesc>,
    ) -> u32;
    pub safe fn cuTexObjectDestroy(texture: u64) -> u32;
    pub safe fn cuTexObjectGetResourceDesc(what: &mut ResourceDesc, texture: u64) -> u32;
    pub safe fn cuTexObjectGetResourceViewDesc(view: &mut ViewDesc, texture: u64) -> u32;
    pub fn cuArrayGetMemoryRequirements(to: *mut c_void, array: u64, device: i32) -> u32;
    pub fn cuMipmappedArrayGetMemoryRequirements(to: *mut c_void, all: u64, device: i32) -> u32;
    pub fn cuArrayGetSparseProperties(to: *mut c_void, array: u64) -> u32;
    pub fn cuMipmappedArrayGetSparseProperties(to: *mut c_void, all: u64) -> u32;
    pub safe fn cuDeviceGetTexture1DLinearMaxWidth(width: &mut usize, format: u32, channels: u32, device: i32) -> u32;
    pub safe fn cuFlushGPUDirectRDMAWrites(target: u32, scope: u32) -> u32;
    pub safe fn cuTexObjectGetTextureDesc(how: &mut TextureDesc, texture: u64) -> u32;
    pub safe fn cuSurfObjectCreate(surface: &mut u64, what: &ResourceDesc) -> u32;
    pub safe fn cuSurfObjectDestroy(surface: u64) -> u32;
    pub safe fn cuSurfObjectGetResourceDesc(what: &mut ResourceDesc, surface: u64) -> u32;
    pub safe fn cuProfilerStart() -> u32;
    pub safe fn cuProfilerStop() -> u32;

    // Memory.
    pub safe fn cuMemGetInfo_v2(free: &mut usize, total: &mut usize) -> u32;
    pub safe fn cuMemAlloc_v2(address: &mut u64, bytes: usize) -> u32;
    pub safe fn cuMemAllocPitch_v2(
        address: &mut u64,
        pitch: &mut usize,
        width: usize,
        height: usize,
        element: u32,
    ) -> u32;
    pub safe fn cuMemAllocManaged(address: &mut u64, bytes: usize, flags: u32) -> u32;
    pub safe fn cuMemFree_v2(address: u64) -> u32;
    pub safe fn cuMemHostAlloc(address: &mut u64, bytes: usize, flags: u32) -> u32;
    pub safe fn cuMemFreeHost(address: u64) -> u32;
    pub safe fn cuMemHostGetDevicePointer_v2(device: &mut u64, host: u64, flags: u32) -> u32;
    pub safe fn cuMemHostGetFlags(flags: &mut u32, host: u64) -> u32;
    pub fn cuMemHostRegister_v2(host: u64, bytes: usize, flags: u32) -> u32;
    pub safe fn cuMemHostUnregister(host: u64) -> u32;
    pub fn cuPointerGetAttributes(count: u32, numbers: *const u32, data: *const *mut c_void, address: u64) -> u32;
    pub safe fn cuMemAllocAsync(address: &mut u64, bytes: usize, stream: u64) -> u32;
    pub safe fn cuMemAllocFromPoolAsync(address: &mut u64, bytes: usize, pool: u64, stream: u64) -> u32;
    pub safe fn cuMemFreeAsync(address: u64, stream: u64) -> u32;
    pub fn cuMemPoolCreate(pool: &mut u64, properties: Address) -> u32;
    pub safe fn cuMemPoolDestroy(pool: u64) -> u32;
    pub fn cuMemPoolGetAttribute(pool: u64, attribute: u32, value: *mut c_void) -> u32;
    pub fn cuMemPoolSetAttribute(pool: u64, attribute: u32, value: *mut c_void) -> u32;
    pub fn cuMemPoolSetAccess(pool: u64, access: Address, count: usize) -> u32;
    pub safe fn cuMemPoolTrimTo(pool: u64, keep: usize) -> u32;
    pub safe fn cuMemAdvise_v2(address: u64, bytes: usize, advice: u32, location: MemLocation) -> u32;
    pub safe fn cuMemPrefetchAsync_v2(
        address: u64,
        bytes: usize,
        location: MemLocation,
        flags: u32,
        stream: u64,
    ) -> u32;
    pub fn cuMemcpyBatchAsync(
        to: Address,
        from: Address,
        sizes: Address,
        count: usize,
        attributes: Address,
        firsts: Address,
        many: usize,
        fail: *mut usize,
        stream: u64,
    ) -> u32;
    pub fn cuMemcpy3DBatchAsync(count: usize, list: Address, fail: *mut usize, flags: u64, stream: u64) -> u32;
    pub fn cuMemcpyWithAttributesAsync(to: u64, from: u64, bytes: usize, attributes: Address, stream: u64) -> u32;
    pub fn cuMemcpy3DWithAttributesAsync(op: Address, flags: u64, stream: u64) -> u32;
    pub fn cuMemPrefetchBatchAsync(
        addresses: Address,
        sizes: Address,
        count: usize,
        places: Address,
        firsts: Address,
        many: usize,
        flags: u64,
        stream: u64,
    ) -> u32;
    pub fn cuMemDiscardBatchAsync(addresses: Address, sizes: Address, count: usize, flags: u64, stream: u64) -> u32;
    pub fn cuMemRangeGetAttributes(
        data: Address,
        sizes: Address,
        attributes: Address,
        count: usize,
        address: u64,
        bytes: usize,
    ) -> u32;
    pub fn cuMemGetDefaultMemPool(pool: &mut u64, place: Address, kind: u32) -> u32;
    pub fn cuMemGetMemPool(pool: &mut u64, place: Address, kind: u32) -> u32;
    pub fn cuMemSetMemPool(place: Address, kind: u32, pool: u64) -> u32;
    pub fn cuMemRangeGetAttribute(data: *mut c_void, size: usize, attribute: u32, address: u64, bytes: usize) -> u32;
    pub fn cuMemPoolExportToShareableHandle(to: *mut c_void, pool: u64, kind: u32, flags: u64) -> u32;
    pub fn cuMemPoolImportFromShareableHandle(pool: &mut u64, from: *mut c_void, kind: u32, flags: u64) -> u32;
    pub fn cuDeviceGetHostAtomicCapabilities(to: *mut c_void, operations: Address, count: u32, device: i32) -> u32;
    pub fn cuDeviceGetP2PAtomicCapabilities(
        to: *mut c_void,
        operations: Address,
        count: u32,
        device: i32,
        peer: i32,
    ) -> u32;
    pub safe fn cuMemPoolExportPointer(to: &mut IpcHandle, address: u64) -> u32;
    pub safe fn cuMemPoolImportPointer(address: &mut u64, pool: u64, from: &mut IpcHandle) -> u32;
    pub safe fn cuIpcGetMemHandle(handle: &mut IpcHandle, address: u64) -> u32;
    pub safe fn cuIpcOpenMemHandle_v2(address: &mut u64, handle: IpcHandle, flags: u32) -> u32;
    pub safe fn cuIpcCloseMemHandle(address: u64) -> u32;
    pub safe fn cuIpcGetEventHandle(handle: &mut IpcHandle, event: u64) -> u32;
    pub safe fn cuIpcOpenEventHandle(event: &mut u64, handle: IpcHandle) -> u32;

    // Copies.
    pub fn cuMemcpy(to: u64, from: u64, bytes: usize) -> u32;
    pub fn cuMemcpyHtoD_v2(to: u64, from: u64, bytes: usize) -> u32;
    pub fn cuMemcpyDtoH_v2(to: u64, from: u64, bytes: usize) -> u32;
    pub fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) -> u32;
    pub fn cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: u64) -> u32;
    pub fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) -> u32;
    pub fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) -> u32;
    pub fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) -> u32;
    pub fn cuMemcpy2DUnaligned_v2(copy: &Memcpy2D) -> u32;
    pub fn cuMemcpy2DAsync_v2(copy: &Memcpy2D, stream: u64) -> u32;
    pub fn cuMemcpy3D_v2(copy: &Memcpy3D) -> u32;
    pub fn cuMemcpy3DAsync_v2(copy: &Memcpy3D, stream: u64) -> u32;
    pub safe fn cuMemsetD8_v2(address: u64, value: u8, count: usize) -> u32;
    pub safe fn cuMemsetD8Async(address: u64, value: u8, count: usize, stream: u64) -> u32;
    pub safe fn cuMemsetD2D8Async(
        address: u64,
        pitch: usize,
        value: u8,
        width: usize,
        height: usize,
        stream: u64,
    ) -> u32;

    // Streams and events.
    pub safe fn cuStreamCreateWithPriority(stream: &mut u64, flags: u32, priority: i32) -> u32;
    pub safe fn cuStreamDestroy_v2(stream: u64) -> u32;
    pub safe fn cuStreamSynchronize(stream: u64) -> u32;
    pub safe fn cuStreamQuery(stream: u64) -> u32;
    pub safe fn cuStreamWaitEvent(stream: u64, event: u64, flags: u32) -> u32;
    pub fn cuStreamAddCallback(stream: u64, callback: StreamCallback, data: *mut c_void, flags: u32) -> u32;
    pub fn cuLaunchHostFunc(stream: u64, function: HostFn, data: *mut c_void) -> u32;
    pub fn cuLaunchHostFunc_v2(stream: u64, function: HostFn, data: *mut c_void, mode: u32) -> u32;
    pub safe fn cuStreamGetFlags(stream: u64, flags: &mut u32) -> u32;
    pub safe fn cuStreamGetPriority(stream: u64, priority: &mut i32) -> u32;
    pub safe fn cuStreamGetId(stream: u64, id: &mut u64) -> u32;
    pub safe fn cuStreamGetDevice(stream: u64, device: &mut i32) -> u32;
    pub safe fn cuStreamAttachMemAsync(stream: u64, address: u64, length: usize, flags: u32) -> u32;
    pub fn cuStreamGetAttribute(stream: u64, attribute: u32, value: *mut c_void) -> u32;
    pub fn cuStreamSetAttribute(stream: u64, attribute: u32, value: Address) -> u32;
    pub safe fn cuStreamCopyAttributes(to: u64, from: u64) -> u32;
    pub safe fn cuEventCreate(event: &mut u64, flags: u32) -> u32;
    pub safe fn cuEventDestroy_v2(event: u64) -> u32;
    pub safe fn cuEventRecordWithFlags(event: u64, stream: u64, flags: u32) -> u32;
    pub safe fn cuEventQuery(event: u64) -> u32;
    pub safe fn cuEventSynchronize(event: u64) -> u32;
    pub safe fn cuEventElapsedTime_v2(milliseconds: &mut f32, start: u64, end: u64) -> u32;

    // Capture and graphs.
    pub safe fn cuStreamBeginCapture_v2(stream: u64, mode: u32) -> u32;
    pub safe fn cuStreamEndCapture(stream: u64, graph: &mut u64) -> u32;
    pub safe fn cuStreamIsCapturing(stream: u64, status: &mut u32) -> u32;
    pub fn cuStreamGetCaptureInfo_v3(
        stream: u64,
        status: *mut u32,
        id: *mut u64,
        graph: *mut u64,
        nodes: *mut Address,
        edges: *mut Address,
        count: *mut usize,
    ) -> u32;
    pub fn cuStreamBeginCaptureToGraph(
        stream: u64,
        graph: u64,
        after: Address,
        edges: Address,
        count: usize,
        mode: u32,
    ) -> u32;
    pub fn cuStreamUpdateCaptureDependencies_v2(
        stream: u64,
        nodes: Address,
        edges: Address,
        count: usize,
        flags: u32,
    ) -> u32;
    pub safe fn cuThreadExchangeStreamCaptureMode(mode: &mut u32) -> u32;
    pub safe fn cuGraphCreate(graph: &mut u64, flags: u32) -> u32;
    pub safe fn cuGraphDestroy(graph: u64) -> u32;
    pub safe fn cuGraphClone(to: &mut u64, graph: u64) -> u32;
    pub safe fn cuGraphRetainUserObject(graph: u64, object: u64, count: u32, flags: u32) -> u32;
    pub safe fn cuGraphReleaseUserObject(graph: u64, object: u64, count: u32) -> u32;
    pub fn cuUserObjectCreate(to: &mut u64, data: *mut c_void, destroy: HostFn, count: u32, flags: u32) -> u32;
    pub safe fn cuUserObjectRetain(object: u64, count: u32) -> u32;
    pub safe fn cuUserObjectRelease(object: u64, count: u32) -> u32;
    pub safe fn cuGraphDestroyNode(node: u64) -> u32;
    pub fn cuGraphGetNodes(graph: u64, nodes: *mut u64, count: *mut usize) -> u32;
    pub fn cuGraphGetRootNodes(graph: u64, nodes: *mut u64, count: *mut usize) -> u32;
    pub fn cuGraphGetEdges_v2(graph: u64, from: *mut u64, to: *mut u64, edges: *mut c_void, count: *mut usize) -> u32;
    pub fn cuGraphNodeGetDependencies_v2(node: u64, nodes: *mut u64, edges: *mut c_void, count: *mut usize) -> u32;
    pub fn cuGraphNodeGetDependentNodes_v2(node: u64, nodes: *mut u64, edges: *mut c_void, count: *mut usize) -> u32;
    pub safe fn cuGraphNodeGetType(node: u64, kind: &mut u32) -> u32;
    pub fn cuGraphAddDependencies_v2(graph: u64, from: Address, to: Address, edges: Address, count: usize) -> u32;
    pub fn cuGraphRemoveDependencies_v2(graph: u64, from: Address, to: Address, edges: Address, count: usize) -> u32;
    pub fn cuGraphAddEmptyNode(node: &mut u64, graph: u64, after: Address, count: usize) -> u32;
    pub fn cuGraphAddKernelNode_v2(
        node: &mut u64,
        graph: u64,
        after: Address,
        count: usize,
        params: &KernelNodeParams,
    ) -> u32;
    pub fn cuGraphAddMemcpyNode(
        node: &mut u64,
        graph: u64,
        after: Address,
        count: usize,
        copy: &Memcpy3D,
        context: u64,
    ) -> u32;
    pub fn cuGraphAddMemsetNode(
        node: &mut u64,
        graph: u64,
        after: Address,
        count: usize,
        params: Address,
        context: u64,
    ) -> u32;
    pub fn cuGraphAddHostNode(node: &mut u64, graph: u64, after: Address, count: usize, params: Address) -> u32;
    pub fn cuGraphAddChildGraphNode(node: &mut u64, graph: u64, after: Address, count: usize, child: u64) -> u32;
    pub fn cuGraphAddEventRecordNode(node: &mut u64, graph: u64, after: Address, count: usize, event: u64) -> u32;
    pub fn cuGraphAddEventWaitNode(node: &mut u64, graph: u64, after: Address, count: usize, event: u64) -> u32;
    pub safe fn cuGraphInstantiateWithFlags(exec: &mut u64, graph: u64, flags: u64) -> u32;
    pub fn cuGraphInstantiateWithParams(exec: &mut u64, graph: u64, params: *mut c_void) -> u32;
    pub safe fn cuGraphExecDestroy(exec: u64) -> u32;
    pub safe fn cuGraphLaunch(exec: u64, stream: u64) -> u32;
    pub safe fn cuGraphUpload(exec: u64, stream: u64) -> u32;
    pub fn cuGraphExecUpdate_v2(exec: u64, graph: u64, result: *mut c_void) -> u32;
    pub fn cuGraphExecKernelNodeSetParams_v2(exec: u64, node: u64, params: &KernelNodeParams) -> u32;
    pub fn cuGraphKernelNodeSetParams_v2(node: u64, params: &KernelNodeParams) -> u32;
    pub fn cuGraphExecMemcpyNodeSetParams(exec: u64, node: u64, copy: &Memcpy3D, context: u64) -> u32;
    pub fn cuGraphMemcpyNodeSetParams(node: u64, copy: &Memcpy3D) -> u32;
    pub fn cuGraphExecMemsetNodeSetParams(exec: u64, node: u64, params: Address, context: u64) -> u32;
    pub fn cuGraphMemsetNodeSetParams(node: u64, params: Address) -> u32;
    pub fn cuGraphExecHostNodeSetParams(exec: u64, node: u64, params: Address) -> u32;
    pub fn cuGraphHostNodeSetParams(node: u64, params: Address) -> u32;
    pub fn cuGraphHostNodeGetParams(node: u64, params: *mut c_void) -> u32;
    pub fn cuGraphMemsetNodeGetParams(node: u64, params: *mut c_void) -> u32;
    pub safe fn cuGraphMemcpyNodeGetParams(node: u64, copy: &mut Memcpy3D) -> u32;
    pub safe fn cuGraphKernelNodeGetParams_v2(node: u64, params: &mut KernelNodeParams) -> u32;
    pub fn cuGraphAddMemAllocNode(node: &mut u64, graph: u64, after: Address, count: usize, params: *mut c_void)
    -> u32;
    pub fn cuGraphAddMemFreeNode(node: &mut u64, graph: u64, after: Address, count: usize, address: u64) -> u32;
    pub fn cuGraphMemAllocNodeGetParams(node: u64, params: *mut c_void) -> u32;
    pub safe fn cuGraphMemFreeNodeGetParams(node: u64, address: &mut u64) -> u32;
    pub safe fn cuGraphEventRecordNodeGetEvent(node: u64, event: &mut u64) -> u32;
    pub safe fn cuGraphEventRecordNodeSetEvent(node: u64, event: u64) -> u32;
    pub safe fn cuGraphEventWaitNodeGetEvent(node: u64, event: &mut u64) -> u32;
    pub safe fn cuGraphEventWaitNodeSetEvent(node: u64, event: u64) -> u32;
    pub safe fn cuGraphExecEventRecordNodeSetEvent(exec: u64, node: u64, event: u64) -> u32;
    pub safe fn cuGraphExecEventWaitNodeSetEvent(exec: u64, node: u64, event: u64) -> u32;
    pub safe fn cuGraphExecChildGraphNodeSetParams(exec: u64, node: u64, child: u64) -> u32;
    pub safe fn cuGraphExecGetFlags(exec: u64, flags: &mut u64) -> u32;
    pub safe fn cuGraphNodeFindInClone(found: &mut u64, original: u64, clone: u64) -> u32;
    pub safe fn cuGraphNodeGetEnabled(exec: u64, node: u64, enabled: &mut u32) -> u32;
    pub safe fn cuGraphNodeSetEnabled(exec: u64, node: u64, enabled: u32) -> u32;
    pub fn cuGraphAddNode_v2(
        node: &mut u64,
        graph: u64,
        after: Address,
        edges: Address,
        count: usize,
        params: &mut NodeParams,
    ) -> u32;
    pub fn cuGraphNodeSetParams(node: u64, params: &mut NodeParams) -> u32;
    pub fn cuGraphExecNodeSetParams(exec: u64, node: u64, params: &mut NodeParams) -> u32;
    pub safe fn cuGraphNodeGetParams(node: u64, params: &mut NodeParams) -> u32;
    pub safe fn cuGraphChildGraphNodeGetGraph(node: u64, graph: &mut u64) -> u32;
    pub fn cuGraphDebugDotPrint(graph: u64, path: *const c_char, flags: u32) -> u32;
    pub fn cuGraphKernelNodeGetAttribute(node: u64, number: u32, value: *mut [u64; 8]) -> u32;
    pub fn cuGraphKernelNodeSetAttribute(node: u64, number: u32, value: *const [u64; 8]) -> u32;
    pub safe fn cuGraphKernelNodeCopyAttributes(to: u64, from: u64) -> u32;
    pub safe fn cuGraphConditionalHandleCreate(
        made: &mut u64,
        graph: u64,
        context: u64,
        default: u32,
        flags: u32,
    ) -> u32;
    pub safe fn cuGraphGetId(graph: u64, id: &mut u32) -> u32;
    pub safe fn cuGraphExecGetId(exec: u64, id: &mut u32) -> u32;
    pub safe fn cuGraphNodeGetLocalId(node: u64, id: &mut u32) -> u32;
    pub safe fn cuGraphNodeGetToolsId(node: u64, id: &mut u64) -> u32;
    pub safe fn cuGraphNodeGetContainingGraph(node: u64, graph: &mut u64) -> u32;
    pub fn cuDeviceGetGraphMemAttribute(device: i32, attribute: u32, value: *mut c_void) -> u32;
    pub fn cuDeviceSetGraphMemAttribute(device: i32, attribute: u32, value: *mut c_void) -> u32;
    pub safe fn cuDeviceGraphMemTrim(device: i32) -> u32;
    pub safe fn cuDeviceGetP2PAttribute(value: &mut i32, attribute: u32, from: i32, to: i32) -> u32;
    pub fn cuMemPoolGetAccess(flags: &mut u32, pool: u64, location: *mut c_void) -> u32;

    // Libraries, kernels, launches.
    pub fn cuLibraryLoadData(
        library: &mut u64,
        image: Address,
        options: Address,
        values: Address,
        count: u32,
        library_options: Address,
        library_values: Address,
        library_count: u32,
    ) -> u32;
    pub fn cuLibraryLoadFromFile(
        library: &mut u64,
        file: *const c_char,
        options: Address,
        values: Address,
        count: u32,
        library_options: Address,
        library_values: Address,
        library_count: u32,
    ) -> u32;
    pub safe fn cuLibraryUnload(library: u64) -> u32;
    pub fn cuLibraryGetKernel(kernel: &mut u64, library: u64, name: *const c_char) -> u32;
    pub fn cuLibraryGetGlobal(address: &mut u64, bytes: &mut usize, library: u64, name: *const c_char) -> u32;
    pub fn cuLibraryGetUnifiedFunction(function: *mut u64, library: u64, name: *const c_char) -> u32;
    pub fn cuLibraryGetManaged(address: &mut u64, bytes: &mut usize, library: u64, name: *const c_char) -> u32;
    pub safe fn cuLibraryGetKernelCount(count: &mut u32, library: u64) -> u32;
    pub fn cuLibraryEnumerateKernels(kernels: *mut u64, count: u32, library: u64) -> u32;
    pub safe fn cuKernelGetFunction(function: &mut u64, kernel: u64) -> u32;
    pub safe fn cuKernelGetAttribute(value: &mut i32, attribute: u32, kernel: u64, device: i32) -> u32;
    pub safe fn cuKernelSetAttribute(attribute: u32, value: i32, kernel: u64, device: i32) -> u32;
    pub safe fn cuKernelSetCacheConfig(kernel: u64, config: u32, device: i32) -> u32;
    pub safe fn cuKernelGetName(name: &mut *const c_char, kernel: u64) -> u32;
    pub safe fn cuKernelGetParamInfo(kernel: u64, index: usize, offset: &mut usize, size: &mut usize) -> u32;
    pub safe fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: &mut i32,
        function: u64,
        block: i32,
        shared: usize,
        flags: u32,
    ) -> u32;
    pub safe fn cuOccupancyAvailableDynamicSMemPerBlock(
        bytes: &mut usize,
        function: u64,
        blocks: i32,
        block: i32,
    ) -> u32;
    pub fn cuOccupancyMaxActiveClusters(clusters: &mut i32, function: u64, config: &LaunchConfig) -> u32;
    pub fn cuOccupancyMaxPotentialClusterSize(size: &mut i32, function: u64, config: &LaunchConfig) -> u32;
    pub fn cuLaunchKernelEx(config: &LaunchConfig, function: u64, arguments: Address, extra: Address) -> u32;
}
