//! Streams. See "Stream Management" and "Stream synchronization behavior".

use std::ffi::c_void;

use crate::cu;
use crate::device::ready;
use crate::error::{Answer, driver};
use crate::types::{Address, Out, put, put_if};

/// The default stream that waits for all others.
pub const LEGACY: u64 = 1;
/// The default stream of each thread.
pub const PER_THREAD: u64 = 2;

/// What a stream is to a program whose default stream is one for each thread.
pub fn per_thread(stream: u64) -> u64 {
    if stream == 0 { PER_THREAD } else { stream }
}

fn create(stream: Out<'_, u64>, flags: u32, priority: i32) -> Answer {
    ready()?;
    let mut made = 0;
    driver(cu::cuStreamCreateWithPriority(&mut made, flags, priority))?;
    put(stream, made)
}

calls! {
    fn cudaStreamCreate(stream: Out<'_, u64>) {
        create(stream, 0, 0)
    }

    fn cudaStreamCreateWithFlags(stream: Out<'_, u64>, flags: u32) {
        create(stream, flags, 0)
    }

    fn cudaStreamCreateWithPriority(stream: Out<'_, u64>, flags: u32, priority: i32) {
        create(stream, flags, priority)
    }

    fn cudaStreamDestroy(stream: u64) {
        ready()?;
        driver(cu::cuStreamDestroy_v2(stream))
    }

    fn cudaStreamSynchronize / cudaStreamSynchronize_ptsz(; stream: u64) {
        ready()?;
        driver(cu::cuStreamSynchronize(stream))
    }

    fn cudaStreamQuery / cudaStreamQuery_ptsz(; stream: u64) {
        ready()?;
        driver(cu::cuStreamQuery(stream))
    }

    fn cudaStreamAddCallback / cudaStreamAddCallback_ptsz(in stream: u64; callback: cu::StreamCallback, data: *mut c_void, flags: u32) {
        add_callback(stream, callback, data, flags)
    }

    fn cudaStreamWaitEvent / cudaStreamWaitEvent_ptsz(in stream: u64; event: u64, flags: u32) {
        ready()?;
        driver(cu::cuStreamWaitEvent(stream, event, flags))
    }

    fn cudaLaunchHostFunc / cudaLaunchHostFunc_ptsz(in stream: u64; function: cu::HostFn, data: *mut c_void) {
        host_function(stream, function, data)
    }

    fn cudaLaunchHostFunc_v2 / cudaLaunchHostFunc_v2_ptsz(in stream: u64; function: cu::HostFn, data: *mut c_void, mode: u32) {
        ready()?;
        // SAFETY: the program says that the function may be called with this argument.
        driver(unsafe { cu::cuLaunchHostFunc_v2(stream, function, data, mode) })
    }

    fn cudaStreamGetFlags / cudaStreamGetFlags_ptsz(in stream: u64; flags: Out<'_, u32>) {
        get_flags(stream, flags)
    }

    fn cudaStreamGetPriority / cudaStreamGetPriority_ptsz(in stream: u64; priority: Out<'_, i32>) {
        get_priority(stream, priority)
    }

    fn cudaStreamGetId / cudaStreamGetId_ptsz(in stream: u64; id: Out<'_, u64>) {
        get_id(stream, id)
    }

    fn cudaStreamGetDevice / cudaStreamGetDevice_ptsz(in stream: u64; device: Out<'_, i32>) {
        get_device(stream, device)
    }

    fn cudaStreamAttachMemAsync / cudaStreamAttachMemAsync_ptsz(in stream: u64; address: u64, length: usize, flags: u32) {
        ready()?;
        driver(cu::cuStreamAttachMemAsync(stream, address, length, flags))
    }

    fn cudaStreamGetAttribute / cudaStreamGetAttribute_ptsz(in stream: u64; attribute: u32, value: *mut c_void) {
        get_attribute(stream, attribute, value)
    }

    fn cudaStreamSetAttribute / cudaStreamSetAttribute_ptsz(in stream: u64; attribute: u32, value: Address) {
        set_attribute(stream, attribute, value)
    }

    fn cudaStreamCopyAttributes(to: u64, from: u64) {
        ready()?;
        driver(cu::cuStreamCopyAttributes(to, from))
    }

    fn cudaStreamCopyAttributes_ptsz(to: u64, from: u64) {
        ready()?;
        driver(cu::cuStreamCopyAttributes(per_thread(to), per_thread(from)))
    }

    fn cudaStreamBeginCapture / cudaStreamBeginCapture_ptsz(in stream: u64; mode: u32) {
        ready()?;
        driver(cu::cuStreamBeginCapture_v2(stream, mode))
    }

    fn cudaStreamBeginCaptureToGraph / cudaStreamBeginCaptureToGraph_ptsz(in stream: u64; graph: u64, after: Address, edges: Address, count: usize, mode: u32) {
        ready()?;
        // SAFETY: the program says that `count` nodes are there, and edges if there are any.
        driver(unsafe { cu::cuStreamBeginCaptureToGraph(stream, graph, after, edges, count, mode) })
    }

    fn cudaStreamEndCapture / cudaStreamEndCapture_ptsz(in stream: u64; graph: Out<'_, u64>) {
        end_capture(stream, graph)
    }

    fn cudaStreamIsCapturing / cudaStreamIsCapturing_ptsz(in stream: u64; status: Out<'_, u32>) {
        is_capturing(stream, status)
    }

    fn cudaThreadExchangeStreamCaptureMode(mode: Option<&mut u32>) {
        ready()?;
        driver(cu::cuThreadExchangeStreamCaptureMode(mode.ok_or(crate::error::Error::INVALID_VALUE)?))
    }

    in "13" fn cudaStreamGetCaptureInfo as capture_info(
        stream: u64, status: *mut u32, id: *mut u64, graph: *mut u64, nodes: *mut Address, edges: *mut Address, count: *mut usize,
    ) {
        get_capture_info(stream, status, id, graph, nodes, edges, count)
    }

    in "13" fn cudaStreamGetCaptureInfo_ptsz as capture_info_ptsz(
        stream: u64, status: *mut u32, id: *mut u64, graph: *mut u64, nodes: *mut Address, edges: *mut Address, count: *mut usize,
    ) {
        get_capture_info(per_thread(stream), status, id, graph, nodes, edges, count)
    }

    fn cudaStreamGetCaptureInfo_v3(
        stream: u64, status: *mut u32, id: *mut u64, graph: *mut u64, nodes: *mut Address, edges: *mut Address, count: *mut usize,
    ) {
        get_capture_info(stream, status, id, graph, nodes, edges, count)
    }

    fn cudaStreamGetCaptureInfo_v3_ptsz(
        stream: u64, status: *mut u32, id: *mut u64, graph: *mut u64, nodes: *mut Address, edges: *mut Address, count: *mut usize,
    ) {
        get_capture_info(per_thread(stream), status, id, graph, nodes, edges, count)
    }

    fn cudaStreamGetCaptureInfo_v2 / cudaStreamGetCaptureInfo_v2_ptsz(in stream: u64; status: *mut u32, id: *mut u64, graph: *mut u64, nodes: *mut Address, count: *mut usize) {
        get_capture_info(stream, status, id, graph, nodes, std::ptr::null_mut(), count)
    }

    in "12" fn cudaStreamGetCaptureInfo as capture_info_12(stream: u64, status: Out<'_, u32>, id: Out<'_, u64>) {
        capture_status(stream, status, id)
    }

    in "12" fn cudaStreamGetCaptureInfo_ptsz as capture_info_12_ptsz(stream: u64, status: Out<'_, u32>, id: Out<'_, u64>) {
        capture_status(per_thread(stream), status, id)
    }

    in "13" fn cudaStreamUpdateCaptureDependencies as update_capture(stream: u64, nodes: Address, edges: Address, count: usize, flags: u32) {
        update_dependencies(stream, nodes, edges, count, flags)
    }

    in "13" fn cudaStreamUpdateCaptureDependencies_ptsz as update_capture_ptsz(
        stream: u64, nodes: Address, edges: Address, count: usize, flags: u32,
    ) {
        update_dependencies(per_thread(stream), nodes, edges, count, flags)
    }

    fn cudaStreamUpdateCaptureDependencies_v2 / cudaStreamUpdateCaptureDependencies_v2_ptsz(in stream: u64; nodes: Address, edges: Address, count: usize, flags: u32) {
        update_dependencies(stream, nodes, edges, count, flags)
    }

    in "12" fn cudaStreamUpdateCaptureDependencies as update_capture_12(stream: u64, nodes: Address, count: usize, flags: u32) {
        update_dependencies(stream, nodes, std::ptr::null(), count, flags)
    }

    in "12" fn cudaStreamUpdateCaptureDependencies_ptsz as update_capture_12_ptsz(stream: u64, nodes: Address, count: usize, flags: u32) {
        update_dependencies(per_thread(stream), nodes, std::ptr::null(), count, flags)
    }
}

fn add_callback(stream: u64, callback: cu::StreamCallback, data: *mut c_void, flags: u32) -> Answer {
    ready()?;
    // SAFETY: the program says that the function may be called with this address; the driver tests for null.
    driver(unsafe { cu::cuStreamAddCallback(stream, callback, data, flags) })
}

fn host_function(stream: u64, function: cu::HostFn, data: *mut c_void) -> Answer {
    ready()?;
    // SAFETY: as for callbacks.
    driver(unsafe { cu::cuLaunchHostFunc(stream, function, data) })
}

fn get_flags(stream: u64, flags: Out<'_, u32>) -> Answer {
    ready()?;
    let mut found = 0;
    driver(cu::cuStreamGetFlags(stream, &mut found))?;
    put(flags, found)
}

fn get_priority(stream: u64, priority: Out<'_, i32>) -> Answer {
    ready()?;
    let mut found = 0;
    driver(cu::cuStreamGetPriority(stream, &mut found))?;
    put(priority, found)
}

fn get_id(stream: u64, id: Out<'_, u64>) -> Answer {
    ready()?;
    let mut found = 0;
    driver(cu::cuStreamGetId(stream, &mut found))?;
    put(id, found)
}

fn get_device(stream: u64, device: Out<'_, i32>) -> Answer {
    ready()?;
    let mut found = 0;
    driver(cu::cuStreamGetDevice(stream, &mut found))?;
    put(device, found)
}

fn get_attribute(stream: u64, attribute: u32, value: *mut c_void) -> Answer {
    ready()?;
    // SAFETY: the program says that a value of an attribute fits there; the driver tests for null.
    driver(unsafe { cu::cuStreamGetAttribute(stream, attribute, value) })
}

fn set_attribute(stream: u64, attribute: u32, value: Address) -> Answer {
    ready()?;
    // SAFETY: the program says that a value of an attribute is there; the driver tests for null.
    driver(unsafe { cu::cuStreamSetAttribute(stream, attribute, value) })
}

fn end_capture(stream: u64, graph: Out<'_, u64>) -> Answer {
    ready()?;
    let mut made = 0;
    driver(cu::cuStreamEndCapture(stream, &mut made))?;
    put(graph, made)
}

fn is_capturing(stream: u64, status: Out<'_, u32>) -> Answer {
    ready()?;
    let mut found = 0;
    driver(cu::cuStreamIsCapturing(stream, &mut found))?;
    put(status, found)
}

fn get_capture_info(
    stream: u64,
    status: *mut u32,
    id: *mut u64,
    graph: *mut u64,
    nodes: *mut Address,
    edges: *mut Address,
    count: *mut usize,
) -> Answer {
    ready()?;
    // SAFETY: the program says that the results may be written there; the driver tests for null.
    driver(unsafe { cu::cuStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, edges, count) })
}

fn capture_status(stream: u64, status: Out<'_, u32>, id: Out<'_, u64>) -> Answer {
    let (mut found, mut number) = (0, 0);
    let nothing = std::ptr::null_mut;
    get_capture_info(
        stream,
        &mut found,
        &mut number,
        std::ptr::null_mut(),
        nothing(),
        nothing(),
        std::ptr::null_mut(),
    )?;
    put_if(id, number);
    put(status, found)
}

fn update_dependencies(stream: u64, nodes: Address, edges: Address, count: usize, flags: u32) -> Answer {
    ready()?;
    // SAFETY: the program says that `count` nodes and edges are there, or null.
    driver(unsafe { cu::cuStreamUpdateCaptureDependencies_v2(stream, nodes, edges, count, flags) })
}
