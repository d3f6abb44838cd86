//! Structures of the interface, as C lays them out.

use std::ffi::c_void;

/// A function of the host.
pub type HostFn = unsafe extern "C" fn(*mut c_void);
/// A function of the host that is told the stream and its state.
pub type StreamCallback = unsafe extern "C" fn(*mut c_void, u32, *mut c_void);
/// Dynamic shared memory by the number of threads of a block.
pub type BlockToShared = unsafe extern "C" fn(i32) -> usize;

macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $ty:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[repr(C)]
        #[allow(missing_docs, reason = "the documentation of the interface has them under the same names")]
        pub struct $name { $(pub $field: $ty),* }
    )*};
}

structures! {
    /// `CUdevprop`.
    DevProp {
        max_threads_per_block: i32, max_threads_dim: [i32; 3], max_grid_size: [i32; 3], shared_mem_per_block: i32,
        total_constant_memory: i32, simd_width: i32, mem_pitch: i32, regs_per_block: i32, clock_rate: i32, texture_align: i32,
    }
    /// `CUlaunchConfig`.
    LaunchConfig { grid: [u32; 3], block: [u32; 3], shared_mem_bytes: u32, stream: u64, attrs: u64, num_attrs: u32 }
    /// `CUDA_LAUNCH_PARAMS`.
    LaunchParams { function: u64, grid: [u32; 3], block: [u32; 3], shared_mem_bytes: u32, stream: u64, params: u64 }
    /// `CUDA_ARRAY_DESCRIPTOR`.
    ArrayDescriptor { width: u64, height: u64, format: u32, num_channels: u32 }
    /// `CUDA_ARRAY3D_DESCRIPTOR`.
    ArrayDescriptor3d { width: u64, height: u64, depth: u64, format: u32, num_channels: u32, flags: u32 }
    /// `CUDA_RESOURCE_DESC`: `res` begins with an array, or with address, format and number of components, and sizes.
    ResourceDesc { kind: u32, res: [u64; 5], reserved: [u64; 11], flags: u32 }
    /// `CUDA_TEXTURE_DESC`.
    TextureDesc {
        address_mode: [u32; 3], filter_mode: u32, flags: u32, max_anisotropy: u32, mipmap_filter_mode: u32,
        mipmap_level_bias: f32, min_mipmap_level_clamp: f32, max_mipmap_level_clamp: f32, border_color: [f32; 4],
        reserved: [i32; 12],
    }
    /// `CUDA_RESOURCE_VIEW_DESC`.
    ViewDesc {
        format: u32, width: u64, height: u64, depth: u64, first_level: u32, last_level: u32, first_layer: u32,
        last_layer: u32, reserved: [u32; 16],
    }
    /// `CUDA_MEMCPY2D`.
    Memcpy2d {
        src_x_in_bytes: u64, src_y: u64, src_memory_type: u32, src_host: u64, src_device: u64, src_array: u64, src_pitch: u64,
        dst_x_in_bytes: u64, dst_y: u64, dst_memory_type: u32, dst_host: u64, dst_device: u64, dst_array: u64, dst_pitch: u64,
        width_in_bytes: u64, height: u64,
    }
    /// `CUDA_MEMCPY3D`.
    Memcpy3d {
        src_x_in_bytes: u64, src_y: u64, src_z: u64, src_lod: u64, src_memory_type: u32, src_host: u64, src_device: u64,
        src_array: u64, reserved0: u64, src_pitch: u64, src_height: u64, dst_x_in_bytes: u64, dst_y: u64, dst_z: u64,
        dst_lod: u64, dst_memory_type: u32, dst_host: u64, dst_device: u64, dst_array: u64, reserved1: u64, dst_pitch: u64,
        dst_height: u64, width_in_bytes: u64, height: u64, depth: u64,
    }
    /// `CUDA_MEMCPY3D_PEER`, which has contexts where the other structure has reserved words.
    Memcpy3dPeer { copy: Memcpy3d }
    /// `CUDA_KERNEL_NODE_PARAMS`.
    KernelNode {
        func: u64, grid: [u32; 3], block: [u32; 3], shared_mem_bytes: u32, kernel_params: u64, extra: u64, kern: u64, ctx: u64,
    }
    /// The same as it was in the first version.
    KernelNodeOld { func: u64, grid: [u32; 3], block: [u32; 3], shared_mem_bytes: u32, kernel_params: u64, extra: u64 }
    /// `CUDA_MEMSET_NODE_PARAMS`.
    MemsetNode { dst: u64, pitch: u64, value: u32, element_size: u32, width: u64, height: u64 }
    /// `CUDA_HOST_NODE_PARAMS`.
    HostNode { function: Option<HostFn>, user_data: u64 }
    /// The same with the address of the function.
    HostNodeWords { function: u64, user_data: u64 }
    /// `CUDA_MEM_ALLOC_NODE_PARAMS`.
    MemAllocNode { props: PoolProps, access_descs: u64, access_desc_count: u64, bytes: u64, dptr: u64 }
    /// `CUDA_BATCH_MEM_OP_NODE_PARAMS`.
    BatchNode { ctx: u64, count: u32, param_array: u64, flags: u32 }
    /// `CUstreamBatchMemOpParams`: `operation` and `flags` of those without an address, else with address, value, flags.
    BatchOp { operation: u32, other_flags: u32, address: u64, value: u64, flags: u32, alias: u64, pad: u64 }
    /// `CUDA_MEMCPY_NODE_PARAMS`.
    CopyNode { flags: u32, reserved: u32, ctx: u64, copy: Memcpy3d }
    /// `CUDA_CONDITIONAL_NODE_PARAMS`.
    ConditionalNode { handle: u64, kind: u32, size: u32, graphs: u64, ctx: u64 }
    /// `CUDA_CHILD_GRAPH_NODE_PARAMS`.
    ChildNode { graph: u64, ownership: i32 }
    /// `CUgraphNodeParams`: `body` is the structure of the kind.
    NodeParams { kind: u32, reserved_0: [u32; 3], body: [u64; 29], reserved_2: u64 }
    /// `CUDA_GRAPH_INSTANTIATE_PARAMS`.
    InstantiateParams { flags: u64, upload_stream: u64, error_node: u64, result: u32 }
    /// `CUgraphExecUpdateResultInfo`.
    UpdateResult { result: u32, error_node: u64, error_from_node: u64 }
    /// `CUmemPoolProps`.
    PoolProps {
        alloc_type: u32, handle_types: u32, location_type: u32, location_id: i32, security: u64, max_size: u64, usage: u16,
        rdma: u8, reserved: [u8; 53],
    }
    /// `CUmemLocation`.
    PlaceWords { kind: u32, id: i32 }
    /// `CUmemcpyAttributes`.
    CopyAttributes { order: u32, from: PlaceWords, to: PlaceWords, flags: u32 }
    /// `CUmemcpy3DOperand`: of a pointer the address, elements of a row, rows of a layer, and a place.
    Operand { kind: u32, words: [u64; 4] }
    /// `CUDA_MEMCPY3D_BATCH_OP`.
    CopyOp { from: Operand, to: Operand, extent: [u64; 3], order: u32, flags: u32 }
    /// `CUmemAllocationProp`.
    AllocationProp {
        alloc_type: u32, handle_types: u32, location_type: u32, location_id: i32, security: u64, compression: u8, rdma: u8, usage: u16,
        reserved: [u8; 4],
    }
    /// `CUmemAccessDesc`.
    AccessDesc { location_type: u32, location_id: i32, flags: u32 }
    /// `CUipcMemHandle`.
    IpcHandle { bytes: [u8; 64] }
}

const _: () = {
    assert!(size_of::<LaunchConfig>() == 56);
    assert!(size_of::<LaunchParams>() == 56);
    assert!(size_of::<Memcpy2d>() == 128);
    assert!(size_of::<Memcpy3d>() == 200);
    assert!(size_of::<KernelNode>() == 72);
    assert!(size_of::<KernelNodeOld>() == 56);
    assert!(size_of::<MemsetNode>() == 40);
    assert!(size_of::<PoolProps>() == 88);
    assert!(size_of::<AllocationProp>() == 32);
    assert!(size_of::<AccessDesc>() == 12);
    assert!(size_of::<MemAllocNode>() == 120);
    assert!(size_of::<BatchNode>() == 32);
    assert!(size_of::<BatchOp>() == 48);
    assert!(size_of::<CopyNode>() == 216);
    assert!(size_of::<CopyAttributes>() == 24);
    assert!(size_of::<CopyOp>() == 112);
    assert!(size_of::<NodeParams>() == 256);
};
