//! Nodes of graphs of any kind, by one structure; what graphs and nodes are called. See "Graph Management".

use std::ffi::c_char;

use crate::cu::{self, NodeParams};
use crate::device::ready;
use crate::error::{Answer, Error, driver};
use crate::function::kernel;
use crate::graph::{ask, copied_box, kernel_params_of};
use crate::memory::box_copy;
use crate::types::{Address, KernelNodeParams, Memcpy3DParms, Out, put};

const KERNEL: u32 = 0;
const COPY: u32 = 1;
const ALLOC: u32 = 10;
const CONDITIONAL: u32 = 13;

/// A launch: the parameters that there are by themselves too, and what is meant by the function.
#[repr(C)]
#[derive(Clone, Copy)]
struct LaunchNode {
    params: KernelNodeParams,
    context: u64,
    function_kind: u32,
}

/// A copy, after flags and a context.
#[repr(C)]
#[derive(Clone, Copy)]
struct CopyNode {
    head: [u64; 2],
    copy: Memcpy3DParms,
}

/// The same in the driver's words.
#[repr(C)]
#[derive(Clone, Copy)]
struct DriverCopyNode {
    head: [u64; 2],
    copy: cu::Memcpy3D,
}

/// A structure of numbers and addresses, for which any bits are good, and which fits into the parameters of a node.
trait Plain: Copy {
    const FITS: () = assert!(size_of::<Self>() <= size_of::<[u64; 29]>() && align_of::<Self>() <= 8);
}

impl Plain for LaunchNode {}
impl Plain for CopyNode {}
impl Plain for DriverCopyNode {}
impl Plain for cu::KernelNodeParams {}

impl NodeParams {
    fn get<T: Plain>(&self) -> T {
        let () = T::FITS;
        // SAFETY: the words are as large and as aligned as a `T`, for which any bits are good.
        unsafe { self.body.as_ptr().cast::<T>().read() }
    }

    fn set<T: Plain>(&mut self, value: T) {
        let () = T::FITS;
        // SAFETY: as above.
        unsafe { self.body.as_mut_ptr().cast::<T>().write(value) }
    }
}

/// Parameters in the driver's words, which are the same but for launches and copies.
fn translated(params: &NodeParams) -> Answer<NodeParams> {
    const FUNCTION_OF_THE_DRIVER: u32 = 3;
    let mut new = *params;
    match params.kind {
        KERNEL => {
            let LaunchNode { params: p, function_kind, .. } = params.get();
            let handle = p.function.addr() as u64;
            let is_function = function_kind == FUNCTION_OF_THE_DRIVER;
            let (function, kernel) = if is_function { (handle, 0) } else { (0, kernel(p.function)?) };
            new.body = [0; 29];
            new.set(cu::KernelNodeParams {
                function,
                grid: [p.grid.x, p.grid.y, p.grid.z],
                block: [p.block.x, p.block.y, p.block.z],
                shared: p.shared,
                arguments: p.arguments,
                extra: p.extra,
                kernel,
                context: 0,
            });
        }
        COPY => {
            let CopyNode { head, copy } = params.get();
            new.body = [0; 29];
            new.set(DriverCopyNode { head: [head[0], 0], copy: box_copy(&copy)? });
        }
        _ => {}
    }
    Ok(new)
}

fn add(
    node: Out<'_, u64>,
    graph: u64,
    after: Address,
    edges: Address,
    count: usize,
    params: Option<&mut NodeParams>,
) -> Answer {
    ready()?;
    let (node, params) = (node.ok_or(Error::INVALID_VALUE)?, params.ok_or(Error::INVALID_VALUE)?);
    let mut made = 0;
    let mut new = translated(params)?;
    // SAFETY: the program says that `count` nodes are at `after`, and what the parameters name is there.
    driver(unsafe { cu::cuGraphAddNode_v2(&mut made, graph, after, edges, count, &mut new) })?;
    if matches!(params.kind, ALLOC | CONDITIONAL) {
        params.body = new.body;
    }
    put(Some(node), made)
}

calls! {
    in "13" fn cudaGraphAddNode as add_13(
        node: Out<'_, u64>, graph: u64, after: Address, edges: Address, count: usize, params: Option<&mut NodeParams>,
    ) {
        add(node, graph, after, edges, count, params)
    }

    in "12" fn cudaGraphAddNode as add_12(
        node: Out<'_, u64>, graph: u64, after: Address, count: usize, params: Option<&mut NodeParams>,
    ) {
        add(node, graph, after, std::ptr::null(), count, params)
    }

    fn cudaGraphAddNode_v2(
        node: Out<'_, u64>, graph: u64, after: Address, edges: Address, count: usize, params: Option<&mut NodeParams>,
    ) {
        add(node, graph, after, edges, count, params)
    }

    fn cudaGraphConditionalHandleCreate(condition: Out<'_, u64>, graph: u64, default: u32, flags: u32) {
        ask(condition, |made| cu::cuGraphConditionalHandleCreate(made, graph, 0, default, flags))
    }

    fn cudaGraphConditionalHandleCreate_v2(
        condition: Out<'_, u64>, graph: u64, context: u64, default: u32, flags: u32,
    ) {
        ask(condition, |made| cu::cuGraphConditionalHandleCreate(made, graph, context, default, flags))
    }

    fn cudaGraphNodeSetParams(node: u64, params: Option<&NodeParams>) {
        ready()?;
        let mut new = translated(params.ok_or(Error::INVALID_VALUE)?)?;
        // SAFETY: what the parameters name is there, as the program says.
        driver(unsafe { cu::cuGraphNodeSetParams(node, &mut new) })
    }

    fn cudaGraphExecNodeSetParams(exec: u64, node: u64, params: Option<&NodeParams>) {
        ready()?;
        let mut new = translated(params.ok_or(Error::INVALID_VALUE)?)?;
        // SAFETY: what the parameters name is there, as the program says.
        driver(unsafe { cu::cuGraphExecNodeSetParams(exec, node, &mut new) })
    }

    fn cudaGraphNodeGetParams(node: u64, params: Out<'_, NodeParams>) {
        ready()?;
        let mut found = NodeParams { kind: 0, reserved_0: [0; 3], body: [0; 29], reserved_2: 0 };
        driver(cu::cuGraphNodeGetParams(node, &mut found))?;
        match found.kind {
            KERNEL => {
                found.body = [0; 29];
                found.set(LaunchNode { params: kernel_params_of(node)?, context: 0, function_kind: 0 });
            }
            COPY => {
                let DriverCopyNode { head, copy } = found.get();
                found.body = [0; 29];
                found.set(CopyNode { head, copy: copied_box(&copy) });
            }
            _ => {}
        }
        put(params, found)
    }

    fn cudaGraphChildGraphNodeGetGraph(node: u64, graph: Out<'_, u64>) {
        ask(graph, |found| cu::cuGraphChildGraphNodeGetGraph(node, found))
    }

    fn cudaGraphDebugDotPrint(graph: u64, path: *const c_char, flags: u32) {
        ready()?;
        // SAFETY: the program says that a text is there; the driver tests for null.
        driver(unsafe { cu::cuGraphDebugDotPrint(graph, path, flags) })
    }

    fn cudaGraphKernelNodeGetAttribute(node: u64, number: u32, value: *mut [u64; 8]) {
        ready()?;
        // SAFETY: the program says that a value may be written there; the driver tests for null.
        driver(unsafe { cu::cuGraphKernelNodeGetAttribute(node, number, value) })
    }

    fn cudaGraphKernelNodeSetAttribute(node: u64, number: u32, value: *const [u64; 8]) {
        ready()?;
        // SAFETY: the program says that a value is there; the driver tests for null.
        driver(unsafe { cu::cuGraphKernelNodeSetAttribute(node, number, value) })
    }

    fn cudaGraphKernelNodeCopyAttributes(to: u64, from: u64) {
        ready()?;
        driver(cu::cuGraphKernelNodeCopyAttributes(to, from))
    }

    fn cudaGraphGetId(graph: u64, id: Out<'_, u32>) {
        ask(id, |found| cu::cuGraphGetId(graph, found))
    }

    fn cudaGraphExecGetId(exec: u64, id: Out<'_, u32>) {
        ask(id, |found| cu::cuGraphExecGetId(exec, found))
    }

    fn cudaGraphNodeGetLocalId(node: u64, id: Out<'_, u32>) {
        ask(id, |found| cu::cuGraphNodeGetLocalId(node, found))
    }

    fn cudaGraphNodeGetToolsId(node: u64, id: Out<'_, u64>) {
        ask(id, |found| cu::cuGraphNodeGetToolsId(node, found))
    }

    fn cudaGraphNodeGetContainingGraph(node: u64, graph: Out<'_, u64>) {
        ask(graph, |found| cu::cuGraphNodeGetContainingGraph(node, found))
    }
}
