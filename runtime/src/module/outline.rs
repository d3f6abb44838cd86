//! What is known of an entry before code is made for it, and the digest under which code of it is kept.

use std::hash::Hash;

use handloom_diag::hash::FastMap;
use handloom_ir::simt::{self, ByFunction, Callee, FrameLayout, FuncId, Op, ParamValue, Term};
use handloom_ir::types::StateSpace;
use handloom_store::{Digest, Digester};

use super::program::Key;
use crate::run::{Backend, Tier};

/// Instructions up to which Cranelift makes code on the thread that asks for it. It takes some milliseconds then; a thread of its own, which can be
/// left alone, takes up to a tenth longer: its heap has no page yet, and its core none of what the first stages wrote.
const SMALL: usize = 256;
/// The same of the wide generator, which takes a few microseconds for each.
const SMALL_WIDE: usize = 4096;

/// Instructions up to which wide code is first made without gangs. Longer functions have few of them beside what else they are.
const MOST_LEAN: usize = 1024;

/// An entry as it was lowered, with all that it may call.
#[derive(Clone, Debug)]
pub(crate) struct Outline {
    /// Its function.
    pub(crate) entry: FuncId,
    /// Of all that it may call: the frame in local memory, as the program wrote it. Then what is said of local memory does not depend on what was
    /// optimised away.
    pub(crate) frames: ByFunction<FrameLayout>,
    /// Bytes of local memory of a thread.
    pub(crate) local_stride: u32,
    /// Whether compiling takes so little time that it is done where it is asked for.
    pub(crate) is_small: bool,
    /// Whether its threads change memory of all blocks by atomics, for which workers may wait for each other.
    pub(crate) adds_up: bool,
    /// Of all that its code depends on.
    digest: Digest,
}

/// What is known of a module for all of its entries.
#[derive(Debug)]
pub(crate) struct Whole {
    /// By function: its frame in local memory, as the program wrote it.
    frames: Vec<FrameLayout>,
    /// Whether a function of it takes local memory as it goes.
    grows: bool,
    /// Instructions of all functions.
    size: usize,
    /// Of what code of each entry depends on.
    digest: Digest,
}

impl Whole {
    pub(crate) fn of(module: &simt::Module) -> Whole {
        let frames = FrameLayout::of_module(module);
        // Code names functions and symbols by number, looks their handles and addresses up when it runs, and has the numbers of its own statements for
        // reports. So modules may share code where all of this is the same, wherever their variables lie.
        let mut hasher = Digester::default();
        (module.address_size, module.shared, &module.syms, &frames).hash(&mut hasher);
        for f in &module.funcs {
            (&f.name, f.is_entry, f.param_bytes, f.result_bytes).hash(&mut hasher);
        }
        Whole { frames, grows: grows(module), size: size(module.funcs.iter()), digest: hasher.digest() }
    }
}

impl Outline {
    /// Of an entry, which the module has.
    pub(crate) fn new(module: &simt::Module, whole: &Whole, key: &Key) -> Outline {
        let entry = module.entries[&*key.entry].func;
        let local_stride = stride(module, &whole.frames, entry, (whole.grows, key.stack));
        let reach = module.reachable(entry);
        let is_small = size(reach.iter().map(|f| &module.funcs[f.idx()]))
            <= match key.backend {
                Backend::Wide => SMALL_WIDE,
                Backend::Cranelift => SMALL,
            };
        let adds_up = reach.iter().any(|f| adds_up(&module.funcs[f.idx()]));
        let frames = reach.iter().map(|f| (*f, whole.frames[f.idx()].clone())).collect();
        let mut hasher = Digester::default();
        (key, entry, whole.digest, local_stride).hash(&mut hasher);
        reach.iter().for_each(|f| (f, &module.funcs[f.idx()]).hash(&mut hasher));
        Outline { entry, frames, local_stride, is_small, adds_up, digest: hasher.digest() }
    }

    /// The same where parameters are known.
    pub(super) fn knowing(&self, known: &[ParamValue]) -> Outline {
        Outline { digest: Digest::of(&(self.digest, known)), ..self.clone() }
    }

    /// The key of its code: of the tier that comes first, whichever that is, or of a certain one.
    pub(crate) fn digest(&self, tier: Option<Tier>) -> Digest {
        Digest::of(&(self.digest, tier))
    }
}

/// Which part of a module an entry and what it may call are, by their instructions.
pub(super) fn share(module: &simt::Module, whole: &Whole, entry: FuncId) -> f64 {
    let reach = module.reachable(entry);
    let own = size(reach.iter().map(|f| &module.funcs[f.idx()]));
    own as f64 / whole.size.max(1) as f64
}

/// Whether Cranelift takes little time for some functions.
pub(super) fn is_small<'f>(funcs: impl Iterator<Item = &'f simt::Function>) -> bool {
    size(funcs) <= SMALL
}

/// Whether wide code of some functions may have gangs, and takes less time to make without them.
pub(super) fn is_short<'f>(funcs: impl Iterator<Item = &'f simt::Function>) -> bool {
    size(funcs) <= MOST_LEAN
}

/// Whether a function has atomics that may change memory of all blocks.
fn adds_up(f: &simt::Function) -> bool {
    let is_shared = |space| matches!(space, StateSpace::Shared | StateSpace::SharedCluster);
    f.blocks.iter().flat_map(|b| &b.insts).any(|i| match &i.op {
        Op::Atom { access, .. } | Op::Red { access, .. } => !is_shared(access.space),
        _ => false,
    })
}

/// Instructions of functions, with the ends of their blocks.
fn size<'f>(funcs: impl Iterator<Item = &'f simt::Function>) -> usize {
    funcs.flat_map(|f| &f.blocks).map(|b| b.insts.len() + 1).sum()
}

/// Bytes of local memory for a thread of an entry: enough for its deepest chain of calls, or a stack of so many bytes if that has no bound. Where
/// `alloca` takes memory too, as much as such a stack is added.
pub(crate) fn local_stride(ir: &simt::Module, frames: &[FrameLayout], entry: FuncId, stack: u32) -> u32 {
    stride(ir, frames, entry, (grows(ir), stack))
}

/// Whether a function of a module takes local memory as it goes.
fn grows(ir: &simt::Module) -> bool {
    let is_alloca = |i: &simt::Inst| matches!(i.op, Op::Stack(simt::StackOp::Alloca { .. }));
    ir.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.insts).any(is_alloca)
}

fn stride(ir: &simt::Module, frames: &[FrameLayout], entry: FuncId, (grows, stack): (bool, u32)) -> u32 {
    // The frames of a module have one alignment.
    let align = frames[entry.idx()].align;
    let own = frames[entry.idx()].size.next_multiple_of(align);
    let needed = deepest(ir, frames, entry, align, &mut Depths::default());
    let fixed = if grows || needed.is_none() { u64::from(stack) } else { 0 };
    let mut stride = (needed.unwrap_or(own) + fixed).next_multiple_of(align);
    // Threads a multiple of a page apart would share a few cache sets.
    if stride.is_multiple_of(4096) {
        stride += align.max(64);
    }
    u32::try_from(stride).unwrap_or(u32::MAX / 4096 * 4096)
}

/// By function: bytes of the deepest chain of frames from it on, `None` if there is no bound, as there is none while it is being looked for.
type Depths = FastMap<FuncId, Option<u64>>;

/// Bytes of the deepest chain of frames from `f` on; `None` if there is no bound.
fn deepest(ir: &simt::Module, frames: &[FrameLayout], f: FuncId, align: u64, known: &mut Depths) -> Option<u64> {
    if let Some(depth) = known.get(&f) {
        return *depth;
    }
    known.insert(f, None);
    let mut below = Some(0_u64);
    for b in &ir.funcs[f.idx()].blocks {
        if let Term::Call { callee, .. } = b.term {
            let depth = match callee {
                Callee::Direct(g) => deepest(ir, frames, g, align, known),
                Callee::Indirect => None,
            };
            below = below.zip(depth).map(|(a, b)| a.max(b));
        }
    }
    let own = frames[f.idx()].size.next_multiple_of(align);
    let depth = below.map(|b| own + b);
    known.insert(f, depth);
    depth
}

#[cfg(test)]
mod tests {
    use super::*;
    use handloom_diag::Span;
    use handloom_ir::simt::{Block, BlockId, Function, Slot, SlotId};

    fn func(calls: &[u32], bytes: u32) -> Function {
        let call = |&f: &u32| Term::Call {
            callee: Callee::Direct(FuncId(f)),
            target: None,
            signature: (0, 0),
            args: SlotId(0),
            next: BlockId(0),
        };
        let terms = calls.iter().map(call).chain([Term::Ret]);
        Function {
            name: String::new(),
            is_entry: false,
            blocks: terms.map(|term| Block { insts: vec![], term, term_span: Span::NONE }).collect(),
            regs: vec![],
            slots: vec![Slot::new(bytes, 4)],
            param_bytes: 0,
            result_bytes: 0,
            span: Span::NONE,
        }
    }

    #[test]
    fn local_memory_covers_the_deepest_chain() {
        let ir = simt::Module {
            funcs: vec![func(&[1, 2], 32), func(&[2], 16), func(&[], 100), func(&[3], 16)],
            ..simt::Module::default()
        };
        let frames = FrameLayout::of_module(&ir);
        assert_eq!(local_stride(&ir, &frames, FuncId(0), 4096), 32 + 16 + 112);
        assert_eq!(local_stride(&ir, &frames, FuncId(3), 1 << 17), 16 + (1 << 17));
        assert_eq!(ir.reachable(FuncId(1)), [FuncId(1), FuncId(2)]);
    }
}
