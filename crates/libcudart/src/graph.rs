//! Graphs. See "Graph Management".

use std::ffi::c_void;

use crate::cu;
use crate::device::ready;
use crate::error::{Answer, Error, driver};
use crate::function::kernel;
use crate::memory::{box_copy, flat_copy};
use crate::types::{Address, Dim3, Extent, KernelNodeParams, Memcpy3DParms, Out, PitchedPtr, Pos, put};
use crate::{registry, symbol};

/// A new node of a graph: where its handle goes, in which graph, after which nodes.
#[derive(Clone, Copy)]
struct At {
    graph: u64,
    after: Address,
    count: usize,
}

/// Adds a node by a call of the driver.
fn add(node: Out<'_, u64>, add: impl FnOnce(&mut u64) -> u32) -> Answer {
    let node = node.ok_or(Error::INVALID_VALUE)?;
    let mut made = 0;
    driver(add(&mut made))?;
    put(Some(node), made)
}

/// Asks the driver for a number.
pub fn ask<T: Default>(to: Out<'_, T>, call: impl FnOnce(&mut T) -> u32) -> Answer {
    ready()?;
    let mut found = T::default();
    driver(call(&mut found))?;
    put(to, found)
}

fn current_context() -> Answer<u64> {
    ready()?;
    let mut context = 0;
    driver(cu::cuCtxGetCurrent(&mut context))?;
    Ok(context)
}

fn kernel_params(p: Option<&KernelNodeParams>) -> Answer<cu::KernelNodeParams> {
    let p = p.ok_or(Error::INVALID_VALUE)?;
    let kernel = kernel(p.function)?;
    Ok(cu::KernelNodeParams {
        function: 0,
        grid: [p.grid.x, p.grid.y, p.grid.z],
        block: [p.block.x, p.block.y, p.block.z],
        shared: p.shared,
        arguments: p.arguments,
        extra: p.extra,
        kernel,
        context: 0,
    })
}

/// What a node launches. The function is the host stub that stands for the kernel, where there is one.
pub fn kernel_params_of(node: u64) -> Answer<KernelNodeParams> {
    let mut p = cu::KernelNodeParams {
        function: 0,
        grid: [0; 3],
        block: [0; 3],
        shared: 0,
        arguments: std::ptr::null(),
        extra: std::ptr::null(),
        kernel: 0,
        context: 0,
    };
    driver(cu::cuGraphKernelNodeGetParams_v2(node, &mut p))?;
    let handle = if p.kernel == 0 { p.function } else { p.kernel };
    let dim = |[x, y, z]: [u32; 3]| Dim3 { x, y, z };
    Ok(KernelNodeParams {
        function: registry::stub(p.kernel).unwrap_or(std::ptr::without_provenance(handle as usize)),
        grid: dim(p.grid),
        block: dim(p.block),
        shared: p.shared,
        arguments: p.arguments,
        extra: p.extra,
    })
}

/// A copy of nothing.
fn empty_copy() -> cu::Memcpy3D {
    let side = cu::Side {
        x: 0,
        y: 0,
        z: 0,
        level: 0,
        kind: 0,
        host: 0,
        device: 0,
        array: 0,
        reserved: 0,
        pitch: 0,
        height: 0,
    };
    cu::Memcpy3D { src: side, dst: side, width: 0, height: 0, depth: 0 }
}

/// A copy of the driver in the words of this interface: each address says by itself where it is.
pub fn copied_box(copy: &cu::Memcpy3D) -> Memcpy3DParms {
    const BY_ADDRESS: u32 = 4;
    let memory = |side: &cu::Side| PitchedPtr {
        ptr: side.device.max(side.host),
        pitch: side.pitch,
        xsize: copy.width,
        ysize: side.height,
    };
    let place = |side: &cu::Side| Pos { x: side.x, y: side.y, z: side.z };
    Memcpy3DParms {
        src_array: 0,
        src_pos: place(&copy.src),
        src_ptr: memory(&copy.src),
        dst_array: 0,
        dst_pos: place(&copy.dst),
        dst_ptr: memory(&copy.dst),
        extent: Extent { width: copy.width, height: copy.height, depth: copy.depth },
        kind: BY_ADDRESS,
    }
}

fn add_copy(node: Out<'_, u64>, at: At, copy: &cu::Memcpy3D) -> Answer {
    let context = current_context()?;
    // SAFETY: the program says that `count` nodes are at `after`, and memory where it copies when the graph runs.
    add(node, |made| unsafe { cu::cuGraphAddMemcpyNode(made, at.graph, at.after, at.count, copy, context) })
}

fn set_copy(exec: u64, node: u64, copy: &cu::Memcpy3D) -> Answer {
    let context = current_context()?;
    // SAFETY: the program says that memory is where it copies when the graph runs.
    driver(unsafe { cu::cuGraphExecMemcpyNodeSetParams(exec, node, copy, context) })
}

fn set_node_copy(node: u64, copy: &cu::Memcpy3D) -> Answer {
    ready()?;
    // SAFETY: the program says that memory is where it copies when the graph runs.
    driver(unsafe { cu::cuGraphMemcpyNodeSetParams(node, copy) })
}

fn instantiate(exec: Out<'_, u64>, graph: u64, flags: u64) -> Answer {
    ready()?;
    let exec = exec.ok_or(Error::INVALID_VALUE)?;
    let mut made = 0;
    driver(cu::cuGraphInstantiateWithFlags(&mut made, graph, flags))?;
    put(Some(exec), made)
}

fn instantiate_with(exec: Out<'_, u64>, graph: u64, params: *mut c_void) -> Answer {
    ready()?;
    let exec = exec.ok_or(Error::INVALID_VALUE)?;
    let mut made = 0;
    // SAFETY: the program says that parameters are there, which both interfaces lay out alike; the driver tests for null.
    driver(unsafe { cu::cuGraphInstantiateWithParams(&mut made, graph, params) })?;
    put(Some(exec), made)
}

fn edges(graph: u64, from: *mut u64, to: *mut u64, data: *mut c_void, count: *mut usize) -> Answer {
    ready()?;
    // SAFETY: the program says that `*count` values may be written to what is not null.
    driver(unsafe { cu::cuGraphGetEdges_v2(graph, from, to, data, count) })
}

fn dependencies(node: u64, nodes: *mut u64, data: *mut c_void, count: *mut usize) -> Answer {
    ready()?;
    // SAFETY: as for edges.
    driver(unsafe { cu::cuGraphNodeGetDependencies_v2(node, nodes, data, count) })
}

fn dependents(node: u64, nodes: *mut u64, data: *mut c_void, count: *mut usize) -> Answer {
    ready()?;
    // SAFETY: as for edges.
    driver(unsafe { cu::cuGraphNodeGetDependentNodes_v2(node, nodes, data, count) })
}

fn connect(graph: u64, from: Address, to: Address, data: Address, count: usize) -> Answer {
    ready()?;
    // SAFETY: the program says that `count` nodes are there.
    driver(unsafe { cu::cuGraphAddDependencies_v2(graph, from, to, data, count) })
}

fn disconnect(graph: u64, from: Address, to: Address, data: Address, count: usize) -> Answer {
    ready()?;
    // SAFETY: the program says that `count` nodes are there.
    driver(unsafe { cu::cuGraphRemoveDependencies_v2(graph, from, to, data, count) })
}

calls! {
    fn cudaGraphCreate(graph: Out<'_, u64>, flags: u32) {
        ready()?;
        let mut made = 0;
        driver(cu::cuGraphCreate(&mut made, flags))?;
        put(graph, made)
    }

    fn cudaGraphDestroy(graph: u64) {
        ready()?;
        driver(cu::cuGraphDestroy(graph))
    }

    fn cudaGraphClone(to: Out<'_, u64>, graph: u64) {
        ready()?;
        let mut made = 0;
        driver(cu::cuGraphClone(&mut made, graph))?;
        put(to, made)
    }

    fn cudaUserObjectCreate(to: Out<'_, u64>, data: *mut c_void, destroy: cu::HostFn, count: u32, flags: u32) {
        ready()?;
        let mut made = 0;
        // SAFETY: the program promises that its function may be called with its data.
        driver(unsafe { cu::cuUserObjectCreate(&mut made, data, destroy, count, flags) })?;
        put(to, made)
    }

    fn cudaUserObjectRetain(object: u64, count: u32) {
        ready()?;
        driver(cu::cuUserObjectRetain(object, count))
    }

    fn cudaUserObjectRelease(object: u64, count: u32) {
        ready()?;
        driver(cu::cuUserObjectRelease(object, count))
    }

    fn cudaGraphRetainUserObject(graph: u64, object: u64, count: u32, flags: u32) {
        ready()?;
        driver(cu::cuGraphRetainUserObject(graph, object, count, flags))
    }

    fn cudaGraphReleaseUserObject(graph: u64, object: u64, count: u32) {
        ready()?;
        driver(cu::cuGraphReleaseUserObject(graph, object, count))
    }

    fn cudaGraphDestroyNode(node: u64) {
        ready()?;
        driver(cu::cuGraphDestroyNode(node))
    }

    fn cudaGraphGetNodes(graph: u64, nodes: *mut u64, count: *mut usize) {
        ready()?;
        // SAFETY: the program says that `*count` handles may be written there, or passes null to learn their number.
        driver(unsafe { cu::cuGraphGetNodes(graph, nodes, count) })
    }

    fn cudaGraphGetRootNodes(graph: u64, nodes: *mut u64, count: *mut usize) {
        ready()?;
        // SAFETY: as above.
        driver(unsafe { cu::cuGraphGetRootNodes(graph, nodes, count) })
    }

    in "13" fn cudaGraphGetEdges as edges_13(graph: u64, from: *mut u64, to: *mut u64, data: *mut c_void, count: *mut usize) {
        edges(graph, from, to, data, count)
    }

    in "12" fn cudaGraphGetEdges as edges_12(graph: u64, from: *mut u64, to: *mut u64, count: *mut usize) {
        edges(graph, from, to, std::ptr::null_mut(), count)
    }

    fn cudaGraphGetEdges_v2(graph: u64, from: *mut u64, to: *mut u64, data: *mut c_void, count: *mut usize) {
        edges(graph, from, to, data, count)
    }

    in "13" fn cudaGraphNodeGetDependencies as dependencies_13(node: u64, nodes: *mut u64, data: *mut c_void, count: *mut usize) {
        dependencies(node, nodes, data, count)
    }

    in "12" fn cudaGraphNodeGetDependencies as dependencies_12(node: u64, nodes: *mut u64, count: *mut usize) {
        dependencies(node, nodes, std::ptr::null_mut(), count)
    }

    fn cudaGraphNodeGetDependencies_v2(node: u64, nodes: *mut u64, data: *mut c_void, count: *mut usize) {
        dependencies(node, nodes, data, count)
    }

    in "13" fn cudaGraphNodeGetDependentNodes as dependents_13(node: u64, nodes: *mut u64, data: *mut c_void, count: *mut usize) {
        dependents(node, nodes, data, count)
    }

    in "12" fn cudaGraphNodeGetDependentNodes as dependents_12(node: u64, nodes: *mut u64, count: *mut usize) {
        dependents(node, nodes, std::ptr::null_mut(), count)
    }

    fn cudaGraphNodeGetDependentNodes_v2(node: u64, nodes: *mut u64, data: *mut c_void, count: *mut usize) {
        dependents(node, nodes, data, count)
    }

    in "13" fn cudaGraphAddDependencies as connect_13(graph: u64, from: Address, to: Address, data: Address, count: usize) {
        connect(graph, from, to, data, count)
    }

    in "12" fn cudaGraphAddDependencies as connect_12(graph: u64, from: Address, to: Address, count: usize) {
        connect(graph, from, to, std::ptr::null(), count)
    }

    fn cudaGraphAddDependencies_v2(graph: u64, from: Address, to: Address, data: Address, count: usize) {
        connect(graph, from, to, data, count)
    }

    in "13" fn cudaGraphRemoveDependencies as disconnect_13(graph: u64, from: Address, to: Address, data: Address, count: usize) {
        disconnect(graph, from, to, data, count)
    }

    in "12" fn cudaGraphRemoveDependencies as disconnect_12(graph: u64, from: Address, to: Address, count: usize) {
        disconnect(graph, from, to, std::ptr::null(), count)
    }

    fn cudaGraphRemoveDependencies_v2(graph: u64, from: Address, to: Address, data: Address, count: usize) {
        disconnect(graph, from, to, data, count)
    }

    fn cudaGraphNodeGetType(node: u64, kind: Out<'_, u32>) {
        ask(kind, |found| cu::cuGraphNodeGetType(node, found))
    }

    fn cudaGraphAddEmptyNode(node: Out<'_, u64>, graph: u64, after: Address, count: usize) {
        ready()?;
        // SAFETY: the program says that `count` nodes are at `after`.
        add(node, |made| unsafe { cu::cuGraphAddEmptyNode(made, graph, after, count) })
    }

    fn cudaGraphAddKernelNode(node: Out<'_, u64>, graph: u64, after: Address, count: usize, params: Option<&KernelNodeParams>) {
        let params = kernel_params(params)?;
        // SAFETY: the program says that `count` nodes are at `after`, and arguments at their addresses.
        add(node, |made| unsafe { cu::cuGraphAddKernelNode_v2(made, graph, after, count, &params) })
    }

    fn cudaGraphAddMemcpyNode(node: Out<'_, u64>, graph: u64, after: Address, count: usize, copy: Option<&Memcpy3DParms>) {
        add_copy(node, At { graph, after, count }, &box_copy(copy.ok_or(Error::INVALID_VALUE)?)?)
    }

    fn cudaGraphAddMemcpyNode1D(
        node: Out<'_, u64>, graph: u64, after: Address, count: usize, to: u64, from: u64, bytes: usize, direction: u32,
    ) {
        add_copy(node, At { graph, after, count }, &flat_copy(to, from, bytes, direction)?)
    }

    fn cudaGraphAddMemcpyNodeToSymbol(
        node: Out<'_, u64>, graph: u64, after: Address, count: usize, to: Address, from: u64, bytes: usize, offset: usize,
        direction: u32,
    ) {
        let copy = flat_copy(symbol::place(to, bytes, offset)?, from, bytes, symbol::to_symbol(direction)?)?;
        add_copy(node, At { graph, after, count }, &copy)
    }

    fn cudaGraphAddMemcpyNodeFromSymbol(
        node: Out<'_, u64>, graph: u64, after: Address, count: usize, to: u64, from: Address, bytes: usize, offset: usize,
        direction: u32,
    ) {
        let copy = flat_copy(to, symbol::place(from, bytes, offset)?, bytes, symbol::from_symbol(direction)?)?;
        add_copy(node, At { graph, after, count }, &copy)
    }

    fn cudaGraphAddMemsetNode(node: Out<'_, u64>, graph: u64, after: Address, count: usize, params: Address) {
        let context = current_context()?;
        // SAFETY: the program says that `count` nodes are at `after`, and parameters, which both interfaces lay out alike.
        add(node, |made| unsafe { cu::cuGraphAddMemsetNode(made, graph, after, count, params, context) })
    }

    fn cudaGraphAddHostNode(node: Out<'_, u64>, graph: u64, after: Address, count: usize, params: Address) {
        ready()?;
        // SAFETY: the program says that `count` nodes are at `after`, and parameters, which both interfaces lay out alike.
        add(node, |made| unsafe { cu::cuGraphAddHostNode(made, graph, after, count, params) })
    }

    fn cudaGraphAddChildGraphNode(node: Out<'_, u64>, graph: u64, after: Address, count: usize, child: u64) {
        ready()?;
        // SAFETY: the program says that `count` nodes are at `after`.
        add(node, |made| unsafe { cu::cuGraphAddChildGraphNode(made, graph, after, count, child) })
    }

    fn cudaGraphAddEventRecordNode(node: Out<'_, u64>, graph: u64, after: Address, count: usize, event: u64) {
        ready()?;
        // SAFETY: the program says that `count` nodes are at `after`.
        add(node, |made| unsafe { cu::cuGraphAddEventRecordNode(made, graph, after, count, event) })
    }

    fn cudaGraphAddEventWaitNode(node: Out<'_, u64>, graph: u64, after: Address, count: usize, event: u64) {
        ready()?;
        // SAFETY: the program says that `count` nodes are at `after`.
        add(node, |made| unsafe { cu::cuGraphAddEventWaitNode(made, graph, after, count, event) })
    }

    fn cudaGraphInstantiate(exec: Out<'_, u64>, graph: u64, flags: u64) {
        instantiate(exec, graph, flags)
    }

    fn cudaGraphInstantiateWithFlags(exec: Out<'_, u64>, graph: u64, flags: u64) {
        instantiate(exec, graph, flags)
    }

    fn cudaGraphInstantiateWithParams(exec: Out<'_, u64>, graph: u64, params: *mut c_void) {
        instantiate_with(exec, graph, params)
    }

    fn cudaGraphInstantiateWithParams_ptsz(exec: Out<'_, u64>, graph: u64, params: *mut c_void) {
        instantiate_with(exec, graph, params)
    }

    fn cudaGraphExecDestroy(exec: u64) {
        ready()?;
        driver(cu::cuGraphExecDestroy(exec))
    }

    fn cudaGraphLaunch / cudaGraphLaunch_ptsz(exec: u64; stream: u64) {
        ready()?;
        driver(cu::cuGraphLaunch(exec, stream))
    }

    fn cudaGraphUpload / cudaGraphUpload_ptsz(exec: u64; stream: u64) {
        ready()?;
        driver(cu::cuGraphUpload(exec, stream))
    }

    fn cudaGraphExecUpdate(exec: u64, graph: u64, result: *mut c_void) {
        ready()?;
        // SAFETY: the program says that a result may be written there, which both interfaces lay out alike; the driver tests for null.
        driver(unsafe { cu::cuGraphExecUpdate_v2(exec, graph, result) })
    }

    fn cudaGraphKernelNodeSetParams(node: u64, params: Option<&KernelNodeParams>) {
        let params = kernel_params(params)?;
        // SAFETY: the program says that the arguments are at their addresses.
        driver(unsafe { cu::cuGraphKernelNodeSetParams_v2(node, &params) })
    }

    fn cudaGraphExecKernelNodeSetParams(exec: u64, node: u64, params: Option<&KernelNodeParams>) {
        let params = kernel_params(params)?;
        // SAFETY: the program says that the arguments are at their addresses.
        driver(unsafe { cu::cuGraphExecKernelNodeSetParams_v2(exec, node, &params) })
    }

    fn cudaGraphMemcpyNodeSetParams(node: u64, copy: Option<&Memcpy3DParms>) {
        set_node_copy(node, &box_copy(copy.ok_or(Error::INVALID_VALUE)?)?)
    }

    fn cudaGraphMemcpyNodeSetParams1D(node: u64, to: u64, from: u64, bytes: usize, direction: u32) {
        set_node_copy(node, &flat_copy(to, from, bytes, direction)?)
    }

    fn cudaGraphMemcpyNodeSetParamsToSymbol(node: u64, to: Address, from: u64, bytes: usize, offset: usize, direction: u32) {
        set_node_copy(node, &flat_copy(symbol::place(to, bytes, offset)?, from, bytes, symbol::to_symbol(direction)?)?)
    }

    fn cudaGraphMemcpyNodeSetParamsFromSymbol(node: u64, to: u64, from: Address, bytes: usize, offset: usize, direction: u32) {
        set_node_copy(node, &flat_copy(to, symbol::place(from, bytes, offset)?, bytes, symbol::from_symbol(direction)?)?)
    }

    fn cudaGraphExecMemcpyNodeSetParams(exec: u64, node: u64, copy: Option<&Memcpy3DParms>) {
        set_copy(exec, node, &box_copy(copy.ok_or(Error::INVALID_VALUE)?)?)
    }

    fn cudaGraphExecMemcpyNodeSetParams1D(exec: u64, node: u64, to: u64, from: u64, bytes: usize, direction: u32) {
        set_copy(exec, node, &flat_copy(to, from, bytes, direction)?)
    }

    fn cudaGraphExecMemcpyNodeSetParamsToSymbol(
        exec: u64, node: u64, to: Address, from: u64, bytes: usize, offset: usize, direction: u32,
    ) {
        set_copy(exec, node, &flat_copy(symbol::place(to, bytes, offset)?, from, bytes, symbol::to_symbol(direction)?)?)
    }

    fn cudaGraphExecMemcpyNodeSetParamsFromSymbol(
        exec: u64, node: u64, to: u64, from: Address, bytes: usize, offset: usize, direction: u32,
    ) {
        set_copy(exec, node, &flat_copy(to, symbol::place(from, bytes, offset)?, bytes, symbol::from_symbol(direction)?)?)
    }

    fn cudaGraphMemsetNodeSetParams(node: u64, params: Address) {
        ready()?;
        // SAFETY: the program says that parameters are there, which both interfaces lay out alike; the driver tests for null.
        driver(unsafe { cu::cuGraphMemsetNodeSetParams(node, params) })
    }

    fn cudaGraphExecMemsetNodeSetParams(exec: u64, node: u64, params: Address) {
        let context = current_context()?;
        // SAFETY: as above.
        driver(unsafe { cu::cuGraphExecMemsetNodeSetParams(exec, node, params, context) })
    }

    fn cudaGraphHostNodeSetParams(node: u64, params: Address) {
        ready()?;
        // SAFETY: as above.
        driver(unsafe { cu::cuGraphHostNodeSetParams(node, params) })
    }

    fn cudaGraphExecHostNodeSetParams(exec: u64, node: u64, params: Address) {
        ready()?;
        // SAFETY: as above.
        driver(unsafe { cu::cuGraphExecHostNodeSetParams(exec, node, params) })
    }

    fn cudaGraphKernelNodeGetParams(node: u64, params: Out<'_, KernelNodeParams>) {
        ready()?;
        put(params, kernel_params_of(node)?)
    }

    fn cudaGraphMemcpyNodeGetParams(node: u64, params: Out<'_, Memcpy3DParms>) {
        ready()?;
        let mut found = empty_copy();
        driver(cu::cuGraphMemcpyNodeGetParams(node, &mut found))?;
        put(params, copied_box(&found))
    }

    fn cudaGraphMemsetNodeGetParams(node: u64, params: *mut c_void) {
        ready()?;
        // SAFETY: the program says that parameters may be written there, which both interfaces lay out alike; the driver tests for null.
        driver(unsafe { cu::cuGraphMemsetNodeGetParams(node, params) })
    }

    fn cudaGraphHostNodeGetParams(node: u64, params: *mut c_void) {
        ready()?;
        // SAFETY: as above.
        driver(unsafe { cu::cuGraphHostNodeGetParams(node, params) })
    }

    fn cudaGraphAddMemAllocNode(node: Out<'_, u64>, graph: u64, after: Address, count: usize, params: *mut c_void) {
        ready()?;
        // SAFETY: the program says that `count` nodes are at `after`, and parameters, which both interfaces lay out alike.
        add(node, |made| unsafe { cu::cuGraphAddMemAllocNode(made, graph, after, count, params) })
    }

    fn cudaGraphAddMemFreeNode(node: Out<'_, u64>, graph: u64, after: Address, count: usize, address: u64) {
        ready()?;
        // SAFETY: the program says that `count` nodes are at `after`.
        add(node, |made| unsafe { cu::cuGraphAddMemFreeNode(made, graph, after, count, address) })
    }

    fn cudaGraphMemAllocNodeGetParams(node: u64, params: *mut c_void) {
        ready()?;
        // SAFETY: the program says that parameters may be written there, which both interfaces lay out alike; the driver tests for null.
        driver(unsafe { cu::cuGraphMemAllocNodeGetParams(node, params) })
    }

    fn cudaGraphMemFreeNodeGetParams(node: u64, address: Out<'_, u64>) {
        ask(address, |found| cu::cuGraphMemFreeNodeGetParams(node, found))
    }

    fn cudaGraphEventRecordNodeGetEvent(node: u64, event: Out<'_, u64>) {
        ask(event, |found| cu::cuGraphEventRecordNodeGetEvent(node, found))
    }

    fn cudaGraphEventRecordNodeSetEvent(node: u64, event: u64) {
        ready()?;
        driver(cu::cuGraphEventRecordNodeSetEvent(node, event))
    }

    fn cudaGraphEventWaitNodeGetEvent(node: u64, event: Out<'_, u64>) {
        ask(event, |found| cu::cuGraphEventWaitNodeGetEvent(node, found))
    }

    fn cudaGraphEventWaitNodeSetEvent(node: u64, event: u64) {
        ready()?;
        driver(cu::cuGraphEventWaitNodeSetEvent(node, event))
    }

    fn cudaGraphExecEventRecordNodeSetEvent(exec: u64, node: u64, event: u64) {
        ready()?;
        driver(cu::cuGraphExecEventRecordNodeSetEvent(exec, node, event))
    }

    fn cudaGraphExecEventWaitNodeSetEvent(exec: u64, node: u64, event: u64) {
        ready()?;
        driver(cu::cuGraphExecEventWaitNodeSetEvent(exec, node, event))
    }

    fn cudaGraphExecChildGraphNodeSetParams(exec: u64, node: u64, child: u64) {
        ready()?;
        driver(cu::cuGraphExecChildGraphNodeSetParams(exec, node, child))
    }

    fn cudaGraphExecGetFlags(exec: u64, flags: Out<'_, u64>) {
        ask(flags, |found| cu::cuGraphExecGetFlags(exec, found))
    }

    fn cudaGraphNodeFindInClone(to: Out<'_, u64>, original: u64, clone: u64) {
        ready()?;
        let mut found = 0;
        driver(cu::cuGraphNodeFindInClone(&mut found, original, clone))?;
        put(to, found)
    }

    fn cudaGraphNodeGetEnabled(exec: u64, node: u64, enabled: Out<'_, u32>) {
        ask(enabled, |found| cu::cuGraphNodeGetEnabled(exec, node, found))
    }

    fn cudaGraphNodeSetEnabled(exec: u64, node: u64, enabled: u32) {
        ready()?;
        driver(cu::cuGraphNodeSetEnabled(exec, node, enabled))
    }
}
