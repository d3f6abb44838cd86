//! The structures of the runtime API that are not those of the driver API.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use crate::error::{Answer, Error};

/// Where a result goes: null, or memory that nothing is known of.
pub type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// Writes a result; null is an invalid value.
pub fn put<T>(out: Out<'_, T>, value: T) -> Answer {
    out.ok_or(Error::INVALID_VALUE)?.write(value);
    Ok(())
}

/// Writes a result if it is wanted.
pub fn put_if<T>(out: Out<'_, T>, value: T) {
    if let Some(out) = out {
        out.write(value);
    }
}

/// An address of host code or data that only means itself.
pub type Address = *const c_void;

/// Three sizes of a grid or of a block.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dim3 {
    /// In x.
    pub x: u32,
    /// In y.
    pub y: u32,
    /// In z.
    pub z: u32,
}

/// Sizes of a box: the width in bytes or elements, height and depth in rows and layers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// In x.
    pub width: usize,
    /// In y.
    pub height: usize,
    /// In z.
    pub depth: usize,
}

/// A place in a box.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Pos {
    /// In x.
    pub x: usize,
    /// In y.
    pub y: usize,
    /// In z.
    pub z: usize,
}

/// Memory in rows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PitchedPtr {
    /// Its address.
    pub ptr: u64,
    /// Bytes from row to row.
    pub pitch: usize,
    /// Width in elements.
    pub xsize: usize,
    /// Rows in a layer.
    pub ysize: usize,
}

/// A copy of a box.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Memcpy3DParms {
    /// An array, or 0.
    pub src_array: u64,
    /// Where in the source.
    pub src_pos: Pos,
    /// Memory, where there is no array.
    pub src_ptr: PitchedPtr,
    /// An array, or 0.
    pub dst_array: u64,
    /// Where in the destination.
    pub dst_pos: Pos,
    /// Memory, where there is no array.
    pub dst_ptr: PitchedPtr,
    /// How much.
    pub extent: Extent,
    /// The direction.
    pub kind: u32,
}

/// A copy of a box between devices.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Memcpy3DPeerParms {
    /// An array, or 0.
    pub src_array: u64,
    /// Where in the source.
    pub src_pos: Pos,
    /// Memory, where there is no array.
    pub src_ptr: PitchedPtr,
    /// The device of the source.
    pub src_device: i32,
    /// An array, or 0.
    pub dst_array: u64,
    /// Where in the destination.
    pub dst_pos: Pos,
    /// Memory, where there is no array.
    pub dst_ptr: PitchedPtr,
    /// The device of the destination.
    pub dst_device: i32,
    /// How much.
    pub extent: Extent,
}

/// Where memory is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemLocation {
    /// What kind of place: 1 is a device, 2 the host.
    pub kind: u32,
    /// Which one.
    pub id: i32,
}

impl MemLocation {
    /// What version 12 says with one number: a device, or -1 for the host.
    pub fn of_device(device: i32) -> MemLocation {
        if device < 0 { MemLocation { kind: 2, id: 0 } } else { MemLocation { kind: 1, id: device } }
    }
}

/// A launch with attributes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfig {
    /// Blocks.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Bytes of dynamic shared memory.
    pub shared: usize,
    /// In which stream.
    pub stream: u64,
    /// An array of attributes, laid out as the driver's.
    pub attributes: Address,
    /// Their number.
    pub count: u32,
}

/// A launch as a node of a graph.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelNodeParams {
    /// The function: its host stub, or a kernel.
    pub function: Address,
    /// Blocks.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Addresses of the arguments.
    pub arguments: Address,
    /// The other way to pass arguments.
    pub extra: Address,
}

/// What is known of a function.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct FuncAttributes {
    /// Bytes of static shared memory.
    pub shared_size: usize,
    /// Bytes of constants.
    pub const_size: usize,
    /// Bytes of local memory of a thread.
    pub local_size: usize,
    /// The most threads that a block may have.
    pub max_threads: i32,
    /// Registers of a thread.
    pub registers: i32,
    /// Version of PTX, times ten.
    pub ptx_version: i32,
    /// Version of the machine code, times ten.
    pub binary_version: i32,
    /// Whether it was compiled to cache global loads.
    pub cache_mode_ca: i32,
    /// The most bytes of dynamic shared memory.
    pub max_dynamic_shared: i32,
    /// The wanted share of shared memory.
    pub shared_carveout: i32,
    /// Whether a launch must say the size of clusters.
    pub cluster_must_be_set: i32,
    /// Size of clusters.
    pub cluster: [i32; 3],
    /// How clusters are scheduled.
    pub cluster_policy: i32,
    /// Whether other sizes of clusters may be used.
    pub any_cluster_size: i32,
    /// The rest.
    pub rest: [i32; 16],
}

/// What is known of an address, in version 12.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PointerAttributes12 {
    /// 0 unregistered, 1 host, 2 device, 3 managed.
    pub kind: u32,
    /// On which device.
    pub device: i32,
    /// The address for kernels, or 0.
    pub device_pointer: u64,
    /// The address for the host, or 0.
    pub host_pointer: u64,
}

/// What is known of an address, in version 13.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PointerAttributes13 {
    /// As in version 12.
    pub base: PointerAttributes12,
    /// The rest.
    pub rest: [u64; 8],
}

/// A handle of memory or of an event for another process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IpcHandle {
    /// Means something to the driver alone.
    pub bytes: [u8; 64],
}

const _: () = {
    assert!(
        size_of::<Memcpy3DParms>() == 160
            && size_of::<Memcpy3DPeerParms>() == 168
            && size_of::<LaunchConfig>() == 56
            && size_of::<KernelNodeParams>() == 56
    );
    assert!(
        size_of::<FuncAttributes>() == 144
            && size_of::<PointerAttributes12>() == 24
            && size_of::<PointerAttributes13>() == 88
    );
};
