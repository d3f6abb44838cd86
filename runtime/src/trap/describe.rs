//! The sentence of a trap: what an access tried, and the allocation that it missed.

use handloom_ir::simt::{CODE_BASE, CODE_END, FuncId};
use handloom_ir::trap::{AccessKind, OwnMemory, Trap, TrapKind};
use handloom_ir::types::StateSpace;

use super::Binding;
use crate::grid::Grid;
use crate::memory::{AllocKind, Allocation, Space, is_of_device};

/// Farther from every allocation than this, the nearest one says nothing.
const NEAR: u64 = 1 << 20;

/// Addresses below it are null pointers with an offset.
const NULL_PAGE: u64 = 4096;

/// What addresses in local memory are called.
const LOCAL: &str = "local";

/// What is known of the address of a trap.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Described {
    /// The sentence.
    pub(crate) message: String,
    /// More about the allocation.
    pub(crate) notes: Vec<String>,
    /// What to do about it.
    pub(crate) help: Option<String>,
}

/// Says what happened.
pub(crate) fn describe(trap: &Trap, grid: &Grid, bindings: &[Binding]) -> Described {
    let plain = |message: String| Described { message, ..Described::default() };
    let detail = |text: &str| if trap.detail.is_empty() { text.to_owned() } else { trap.detail.clone() };
    match trap.kind {
        TrapKind::OutOfBounds | TrapKind::WriteProtected => address_fault(trap, grid, bindings),
        TrapKind::Misaligned => Described {
            message: format!(
                "misaligned: {} at {}, which is not a multiple of {}",
                access(trap),
                place(trap, grid, bindings),
                trap.align.unwrap_or(trap.bytes)
            ),
            notes: found(trap, grid).and_then(|a| element_at(&a, trap)).into_iter().collect(),
            help: None,
        },
        TrapKind::BadSpace => {
            plain(format!("bad space: {} at {}: {}", access(trap), place(trap, grid, bindings), detail("")))
        }
        TrapKind::Trap => plain(format!("trap: {}", detail("the kernel executed `trap`"))),
        TrapKind::Assert => plain(format!("assert: {}", detail("an assertion failed"))),
        TrapKind::Deadlock => plain("deadlock: no thread can go on".into()),
        TrapKind::Barrier => plain(format!("barrier: {}", detail("misuse of a barrier"))),
        TrapKind::Timeout => plain(timeout_message(&trap.detail)),
        TrapKind::Stack => plain(format!("stack: {}", detail("local memory is used up"))),
        TrapKind::BadTransfer => {
            plain(format!("bad transfer: {}", detail("it is against the rules of its instruction")))
        }
        TrapKind::BadTensor => plain(format!("bad tensor: {}", detail("it is against the rules of tensor memory"))),
        TrapKind::BadCall => plain(format!("bad call: {}", detail("the target is no function of the module"))),
        TrapKind::BadObject => {
            plain(format!("bad object: the handle {:#x}: {}", trap.address.unwrap_or(0), detail("it names no object")))
        }
        TrapKind::OutOfSurface => plain(format!("out of surface: {}", detail("a place outside of the surface"))),
        TrapKind::Breakpoint => plain("breakpoint: `brkpt` with no debugger attached".into()),
    }
}

/// What is said of a launch that took too long. `detail`: what it did, if it did not run its kernel.
pub(crate) fn timeout_message(detail: &str) -> String {
    let blank = if detail.is_empty() { "" } else { " " };
    format!("timeout: the time limit of the launch has passed{blank}{detail}")
}

/// `write of 4 bytes`.
fn access(trap: &Trap) -> String {
    let what = match trap.access {
        Some(AccessKind::Read) | None => "read",
        Some(AccessKind::Write) => "write",
        Some(AccessKind::Atomic) => "atomic",
    };
    format!("{what} of {}", n_bytes(trap.bytes.into()))
}

/// `free` of what `malloc` did not give.
fn free_fault(trap: &Trap, grid: &Grid, bindings: &[Binding]) -> Described {
    let head = "out of bounds: `free` of";
    let addr = trap.address.unwrap_or(0);
    let space = grid.module.device.inner.memory.of(addr);
    let freed = space.and_then(|space| space.find_freed(addr).filter(|_| space.find(addr).is_none()));
    let message = match freed {
        Some(freed) => format!("{head} {addr:#x}, in an allocation of {} that was freed", n_bytes(freed.size)),
        None => format!("{head} {}, which `malloc` did not give", place(trap, grid, bindings)),
    };
    Described { message, ..Described::default() }
}

/// `1 byte`, `2 bytes`.
fn n_bytes(n: u64) -> String {
    format!("{n} byte{}", if n == 1 { "" } else { "s" })
}

/// A range that an access missed or must not write.
struct Target {
    /// What addresses in it are called: `d`.
    name: String,
    /// What it is: `an allocation`.
    what: &'static str,
    base: u64,
    size: u64,
}

fn address_fault(trap: &Trap, grid: &Grid, bindings: &[Binding]) -> Described {
    let addr = trap.address.unwrap_or(0);
    let word = if trap.kind == TrapKind::WriteProtected { "write protected" } else { "out of bounds" };
    let head = format!("{word}: {}", access(trap));
    let plain = |message: String| Described { message, ..Described::default() };
    let by_offset = is_offset(trap);
    if trap.bytes == 0 {
        return free_fault(trap, grid, bindings);
    }
    if trap.kind == TrapKind::OutOfBounds && !by_offset && addr < NULL_PAGE {
        return plain(format!("{head} at {addr:#x}, through a null pointer"));
    }
    if let Some(own) = own_memory(trap) {
        let distance = if addr < own.base { own.base - addr } else { addr.saturating_sub(own.base + own.size) };
        // An offset of 32 bits below the start has wrapped.
        let below = u32::try_from(addr).map_or(0, |addr| u64::from(addr.wrapping_neg()));
        if by_offset && own.base == reserved(grid) && (1..NEAR).contains(&below) && distance >= NEAR {
            let below = below + own.base;
            let bytes = n_bytes(below);
            return plain(format!(
                "{head} at {}-{below}, {bytes} before the start of {} of {}",
                own.name,
                own.what,
                n_bytes(own.size)
            ));
        }
        if distance < NEAR {
            return plain(missed(&head, addr, trap, &own));
        }
        let message = format!("{head} at {addr:#x}, outside {} of {}", own.what, n_bytes(own.size));
        let is_generic = by_offset && grid.module.device.inner.memory.of(addr).is_some();
        let help = is_generic.then(|| "this is a generic address; `cvta.to.shared` makes an offset of one".to_owned());
        return Described { help, ..plain(message) };
    }
    if by_offset {
        let blocks = grid.env.cluster_size();
        return plain(format!("{head} at {addr:#x}, in a block that the cluster of {blocks} does not have"));
    }
    if let Some(name) = function_at(addr, grid) {
        return plain(format!("{head} at `{name}`, in code"));
    }
    let memory = &grid.module.device.inner.memory;
    let Some(space) = memory.of(addr) else {
        if let Some(lent) = memory.host().nearest(addr).filter(|a| is_near(a, addr)) {
            if trap.kind == TrapKind::WriteProtected {
                let place = place(trap, grid, bindings);
                return plain(format!("{head} at {place}, in memory of the process that can only be read"));
            }
            return missed_allocation(&head, addr, trap, &lent, grid, bindings);
        }
        let place = match trap.kind {
            TrapKind::WriteProtected => "in memory of the process that can only be read",
            _ if is_of_device(addr) => "in the memory of another device",
            _ => "outside every allocation",
        };
        return plain(format!("{head} at {addr:#x}, {place}"));
    };
    if space.is_param(addr) {
        let params =
            Target { name: "param".into(), what: "the parameters", base: grid.env.param_base, size: grid.param_bytes };
        return plain(missed(&head, addr, trap, &params));
    }
    if space.is_shared(addr) {
        return plain(format!("{head} at {addr:#x}, in shared memory that the block has no part in"));
    }
    heap_fault(&head, addr, trap, space, grid, bindings)
}

/// Whether the address of an access is an offset in shared memory.
fn is_offset(trap: &Trap) -> bool {
    matches!(trap.space, Some(StateSpace::Shared | StateSpace::SharedCluster))
}

/// The shared or local memory that an access aimed at.
fn own_memory(trap: &Trap) -> Option<Target> {
    let OwnMemory { space, base, size } = trap.own?;
    let local = space == StateSpace::Local;
    let (name, what) = if local { (LOCAL, "the thread's local memory") } else { ("shared", "shared memory") };
    Some(Target { name: name.into(), what, base, size })
}

/// Bytes of shared memory before that of the program.
fn reserved(grid: &Grid) -> u64 {
    u64::from(grid.env.shared_rules.reserved)
}

/// The function whose address it is.
fn function_at(addr: u64, grid: &Grid) -> Option<String> {
    let code = CODE_BASE..CODE_END;
    let id = FuncId::of_handle(addr - addr % 16).filter(|_| code.contains(&addr))?;
    grid.module.ir.funcs.get(id.idx()).map(|f| f.name.clone())
}

/// An address, with the memory that it lies in as far as it is known: `d+2 (0x200600010002)`.
fn place(trap: &Trap, grid: &Grid, bindings: &[Binding]) -> String {
    let addr = trap.address.unwrap_or(0);
    if let Some(own) = own_memory(trap) {
        let region = own.base.saturating_sub(if own.name == LOCAL { 0 } else { reserved(grid) });
        // A generic address also tells where the block happened to have its memory, which is another place in another run.
        let told = if is_offset(trap) && own.base > 0 { format!(" ({addr:#x})") } else { String::new() };
        return if addr < region {
            format!("{addr:#x}")
        } else if addr < own.base {
            format!("reserved {}+{}{told}", own.name, addr - region)
        } else {
            format!("{}+{}{told}", own.name, addr - own.base)
        };
    }
    let name = found(trap, grid).and_then(|a| Some((a.base, name_of(&a, bindings)?)));
    match name {
        Some((base, name)) => format!("{name}+{} ({addr:#x})", addr - base),
        None => format!("{addr:#x}"),
    }
}

/// The allocation that an address lies in.
fn found(trap: &Trap, grid: &Grid) -> Option<Allocation> {
    if own_memory(trap).is_some() {
        return None;
    }
    let addr = trap.address?;
    grid.module.device.inner.memory.holding(addr)
}

/// Which element of a file an access begins at.
fn element_at(a: &Allocation, trap: &Trap) -> Option<String> {
    let elements = a.elements.as_ref().filter(|e| e.bytes > 0)?;
    let addr = trap.address?;
    let size = elements.bytes;
    let all = a.size / size;
    let s = if all == 1 { "" } else { "s" };
    let count = format!("{all} element{s} of {}", elements.ty);
    let Some(offset) = addr.checked_sub(a.base) else {
        let before = (a.base - addr).div_ceil(size);
        let s = if before == 1 { "" } else { "s" };
        return Some(format!("the access begins {before} element{s} before the first of {count}"));
    };
    let (index, rest) = (offset / size, offset % size);
    let how = if rest == 0 { "at".to_owned() } else { format!("{} into", n_bytes(rest)) };
    let place = index_in(&elements.shape, index).filter(|_| elements.shape.len() > 1);
    let place = place.unwrap_or_else(|| index.to_string());
    Some(format!("the access begins {how} element {place} of {count}"))
}

/// `element [3, 5] of f32`: the element that an address lies in.
pub(super) fn index_of(a: &Allocation, addr: u64) -> Option<String> {
    let elements = a.elements.as_ref().filter(|e| e.bytes > 0)?;
    let index = addr.checked_sub(a.base)? / elements.bytes;
    let place = index_in(&elements.shape, index).filter(|_| elements.shape.len() > 1);
    Some(format!("element {} of {}", place.unwrap_or_else(|| index.to_string()), elements.ty))
}

/// `[3, 5]`, if the array has so many elements.
fn index_in(shape: &[u64], index: u64) -> Option<String> {
    let mut rest = index;
    let mut place: Vec<String> = Vec::new();
    for &n in shape.iter().rev() {
        place.push((rest.checked_rem(n)?).to_string());
        rest /= n;
    }
    place.reverse();
    (rest == 0).then(|| format!("[{}]", place.join(", ")))
}

/// What a program calls an allocation.
pub(super) fn name_of(a: &Allocation, bindings: &[Binding]) -> Option<String> {
    let binding = bindings.iter().find(|b| b.base == a.base);
    binding.map(|b| b.name.clone()).or_else(|| (!a.name.is_empty()).then(|| a.name.clone()))
}

fn heap_fault(head: &str, addr: u64, trap: &Trap, space: &Space, grid: &Grid, bindings: &[Binding]) -> Described {
    if let Some(freed) = space.find_freed(addr).filter(|_| space.find(addr).is_none()) {
        return Described {
            message: format!("{head} at {addr:#x}, in an allocation of {} that was freed", n_bytes(freed.size)),
            notes: made_by(&freed).map(|m| format!("the allocation was {m}")).into_iter().collect(),
            help: None,
        };
    }
    let Some(a) = space.nearest(addr).filter(|a| is_near(a, addr)) else {
        return Described { message: format!("{head} at {addr:#x}, outside every allocation"), ..Described::default() };
    };
    missed_allocation(head, addr, trap, &a, grid, bindings)
}

/// Whether an address lies so near to an allocation that it was probably meant.
fn is_near(a: &Allocation, addr: u64) -> bool {
    let distance = if addr < a.base { a.base - addr } else { addr.saturating_sub(a.base + a.size) };
    distance < NEAR
}

/// An access that missed an allocation, or must not write it.
fn missed_allocation(
    head: &str,
    addr: u64,
    trap: &Trap,
    a: &Allocation,
    grid: &Grid,
    bindings: &[Binding],
) -> Described {
    let binding = bindings.iter().find(|b| b.base == a.base);
    let name = name_of(a, bindings).unwrap_or_default();
    let target = Target { name, what: what_is(a.kind), base: a.base, size: a.size };
    let mut told = Described { message: missed(head, addr, trap, &target), ..Described::default() };
    // The file's own elements where they are known, else pieces of the size of the access.
    let piece = a.elements.as_ref().map_or(u64::from(trap.bytes), |e| e.bytes);
    let elements = a.size.checked_div(piece).filter(|n| n * piece == a.size);
    let size = size_of(a, elements, piece);
    let made = made_by(a).map_or(String::new(), |m| format!(", {m}"));
    if let Some(b) = binding {
        told.notes.push(format!("`{}` is argument {}: {size}{made}", b.name, b.number));
    } else if !a.name.is_empty() && a.kind == AllocKind::Buffer {
        told.notes.push(format!("`{}` is a buffer: {size}{made}", a.name));
    } else if let Some(made) = made_by(a) {
        told.notes.push(format!("the allocation was {made}"));
    }
    told.notes.extend(element_at(a, trap));
    let threads = u64::from(grid.env.threads()) * grid.env.nctaid.iter().map(|n| u64::from(*n)).product::<u64>();
    let elements = elements.filter(|_| piece == u64::from(trap.bytes));
    if let (Some(n), Some(_), true) = (elements, binding, addr >= a.base + a.size)
        && threads > n
    {
        let what = if trap.access == Some(AccessKind::Read) { "load" } else { "store" };
        told.help =
            Some(format!("the grid has {threads} threads for {n} elements; guard the {what} with the element count"));
    }
    told
}

/// `64 elements of f32 (8x8)`, `600 elements of 4 bytes`, `2402 bytes`.
fn size_of(a: &Allocation, elements: Option<u64>, piece: u64) -> String {
    let Some(n) = elements else { return n_bytes(a.size) };
    let s = if n == 1 { "" } else { "s" };
    let Some(e) = &a.elements else { return format!("{n} element{s} of {}", n_bytes(piece)) };
    let shape: Vec<String> = e.shape.iter().map(u64::to_string).collect();
    let shape = if shape.len() > 1 { format!(" ({})", shape.join("x")) } else { String::new() };
    format!("{n} element{s} of {}{shape}", e.ty)
}

fn made_by(a: &Allocation) -> Option<String> {
    if a.origin.is_empty() { None } else { Some(format!("made by `{}`", a.origin)) }
}

fn what_is(kind: AllocKind) -> &'static str {
    match kind {
        AllocKind::Buffer | AllocKind::Linear | AllocKind::Malloc => "an allocation",
        AllocKind::Mapped => "mapped memory",
        AllocKind::MappedForReading => "memory mapped for reading",
        AllocKind::Host => "memory of the process",
        AllocKind::HostForReading => "memory of the process",
        AllocKind::Global => "a variable",
        AllocKind::Const => "a constant",
        AllocKind::Param => "the parameters",
        AllocKind::Shared => "shared memory",
        AllocKind::Local => "local memory",
    }
}

/// The sentence about an access and the range it missed.
fn missed(head: &str, addr: u64, trap: &Trap, t: &Target) -> String {
    let bytes = u64::from(trap.bytes);
    let end = t.base + t.size;
    let at = match (t.name.is_empty(), addr.checked_sub(t.base)) {
        (true, _) => format!("{addr:#x}"),
        (false, Some(offset)) => format!("{}+{offset}", t.name),
        (false, None) => format!("{}-{}", t.name, t.base - addr),
    };
    if trap.kind == TrapKind::WriteProtected {
        return format!("{head} at {at}, in {} that kernels may only read", t.what);
    }
    let range = format!("{} of {}", t.what, n_bytes(t.size));
    if addr >= end {
        format!("{head} at {at}, {} past the end of {range}", n_bytes(addr - end))
    } else if addr < t.base && t.base - addr < bytes {
        format!("{head} at {at}: first {} of {bytes} bytes before the start of {range}", t.base - addr)
    } else if addr < t.base {
        format!("{head} at {at}, {} before the start of {range}", n_bytes(t.base - addr))
    } else {
        let over = (addr + bytes).saturating_sub(end);
        format!("{head} at {at}: last {over} of {bytes} bytes past the end of {range}")
    }
}
