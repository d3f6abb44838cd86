//! Calls replaced by the body of the function.
//!
//! The argument block of the call stays a slot of the caller's frame, and the callee's own slots become slots of the caller; `sroa` turns
//! them into registers. A function that can reach itself is not inlined, nor is one that calls such a function.

use std::collections::BTreeSet;

use handloom_ir::simt::*;
use handloom_ir::types::Ty;
use smallvec::smallvec;

use crate::graph::order_blocks;

/// A caller grows by at most so many instructions from functions that are called more than once.
const BUDGET: usize = 2000;

/// A function of so few instructions is always inlined: the call costs as much.
const SMALL: usize = 12;

/// Inlines direct calls in the first of some functions and in all that it calls. Others of `roots` may be reached by a pointer. What is neither
/// one of these nor called by one any more is left out.
///
/// What is inlined is decided from the callees up, and done from the callers down: so no body is copied that nobody calls afterwards, and
/// that of a callee of a callee once.
pub fn inline_calls(funcs: &mut ByFunction<Function>, roots: &[FuncId]) {
    let Some(root) = roots.first() else { return };
    let graph = CallGraph::of(funcs, *root);
    // Slots stay where calls would have them, so that what is said of local memory does not depend on what was inlined.
    let frames = FrameLayout::of_functions(funcs);
    funcs.values_mut().zip(frames.values()).for_each(|(func, frame)| frame.settle(func));
    let inlined = inlined(funcs, &graph);
    let mut is_called: BTreeSet<FuncId> = roots.iter().copied().collect();
    let mut whole: Vec<(FuncId, Function)> = Vec::new();
    let mut work: Vec<FuncId> = roots.to_vec();
    while let Some(f) = work.pop() {
        let with = with_callees(funcs, f, &inlined, &frames);
        let callees = callees(with.as_ref().unwrap_or(&funcs[f]));
        work.extend(callees.into_iter().filter(|c| is_called.insert(*c)));
        whole.extend(with.map(|with| (f, with)));
    }
    funcs.retain(|f| is_called.contains(&f));
    for (f, with) in whole {
        funcs[f] = with;
    }
}

/// For each function the blocks whose calls are inlined, in ascending order.
fn inlined(funcs: &ByFunction<Function>, graph: &CallGraph) -> ByFunction<Vec<usize>> {
    let mut inlined = funcs.map(|_| Vec::new());
    let mut sizes = funcs.map(size);
    for &f in &graph.callees_first {
        let mut budget = BUDGET;
        // Calls that come from a callee are not looked at again: what is left there was too much already.
        for (b, block) in funcs[f].blocks.iter().enumerate() {
            let Term::Call { callee: Callee::Direct(callee), .. } = block.term else { continue };
            let (size, called) = (sizes[callee], &graph.called[callee]);
            let once = called.n_calls == 1;
            if called.is_recursive || !(once || size <= SMALL || size <= budget) {
                continue;
            }
            if !once && size > SMALL {
                budget -= size;
            }
            inlined[f].push(b);
            sizes[f] += size + n_arguments(&funcs[callee]);
        }
    }
    inlined
}

/// Instructions that addresses of arguments take more when a function is inlined.
fn n_arguments(f: &Function) -> usize {
    f.blocks.iter().flat_map(|b| &b.insts).filter(|i| matches!(i.op, Op::ArgAddr { .. })).count()
}

/// A function with the calls of `inlined` replaced, and those in what comes in their place, if there are any.
fn with_callees(
    funcs: &ByFunction<Function>,
    f: FuncId,
    inlined: &ByFunction<Vec<usize>>,
    frames: &ByFunction<FrameLayout>,
) -> Option<Function> {
    if inlined[f].is_empty() {
        return None;
    }
    let mut caller = funcs[f].clone();
    // Bodies whose calls are to be looked at: the function, where its blocks are, and where its frame is.
    let mut work = vec![(f, 0, 0u64)];
    while let Some((func, first_block, frame)) = work.pop() {
        for b in &inlined[func] {
            let b = first_block + b;
            let Term::Call { callee: Callee::Direct(callee), args, next, .. } = caller.blocks[b].term else { continue };
            let end = frame + frames[func].size.next_multiple_of(frames[callee].align);
            work.push((callee, caller.blocks.len(), end));
            splice(&mut caller, b, &funcs[callee], u32::try_from(end).unwrap_or(u32::MAX), args, next);
        }
    }
    order_blocks(&mut caller);
    Some(caller)
}

fn size(f: &Function) -> usize {
    f.blocks.iter().map(|b| b.insts.len() + 1).sum()
}

/// Which function calls which by name, as far as a root reaches.
struct CallGraph {
    callees_first: Vec<FuncId>,
    called: ByFunction<Called>,
}

/// What is known of a function that may be called.
struct Called {
    state: State,
    /// It can reach a function that can reach itself.
    is_recursive: bool,
    /// Number of direct calls.
    n_calls: u32,
}

impl CallGraph {
    fn of(funcs: &ByFunction<Function>, root: FuncId) -> CallGraph {
        let new = |_: &Function| Called { state: State::New, is_recursive: false, n_calls: 0 };
        let (mut callees_first, mut called) = (vec![], funcs.map(new));
        // Each entry: a function and its callees that are still to be visited.
        let mut work: Vec<(FuncId, Vec<FuncId>)> = vec![];
        let mut enter = Some(root);
        loop {
            if let Some(f) = enter.take() {
                called[f].state = State::Open;
                let callees = callees(&funcs[f]);
                callees.iter().for_each(|c| called[*c].n_calls += 1);
                work.push((f, callees));
            }
            let Some((f, callees)) = work.last_mut() else { return CallGraph { callees_first, called } };
            match callees.pop() {
                Some(c) if called[c].state == State::New => {
                    // It is looked at once more behind its visit.
                    callees.push(c);
                    enter = Some(c);
                }
                Some(c) => called[*f].is_recursive |= called[c].state == State::Open || called[c].is_recursive,
                None => {
                    called[*f].state = State::Done;
                    callees_first.push(*f);
                    work.pop();
                }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Done,
}

fn callees(f: &Function) -> Vec<FuncId> {
    let calls = f.blocks.iter().filter_map(|b| match b.term {
        Term::Call { callee: Callee::Direct(c), .. } => Some(c),
        _ => None,
    });
    calls.collect()
}

/// Puts the body of `callee`, with its frame at `base` of the caller's, in place of the call that ends block `b`.
fn splice(caller: &mut Function, b: usize, callee: &Function, base: u32, args: SlotId, next: BlockId) {
    let first_block = caller.blocks.len() as u32;
    let first_reg = caller.regs.len() as u32;
    let first_slot = caller.slots.len() as u32;
    caller.regs.extend_from_slice(&callee.regs);
    caller.slots.extend(callee.slots.iter().map(|s| Slot { at: s.at.map(|at| at.moved(base)), ..*s }));
    caller.blocks[b].term = Term::Jump(BlockId(first_block));
    for block in &callee.blocks {
        let mut block = block.clone();
        for i in &mut block.insts {
            i.src.iter_mut().for_each(|s| *s = shifted(*s, first_reg));
            i.dst.iter_mut().for_each(|d| d.0 += first_reg);
            if let Op::SlotAddr(s) = &mut i.op {
                s.0 += first_slot;
            }
        }
        block.insts = arguments_in_slot(block.insts, args, &mut caller.regs);
        block.term.map_successors(|s| BlockId(s.0 + first_block));
        block.term.map_sources(|v| shifted(v, first_reg));
        match &mut block.term {
            Term::Ret => block.term = Term::Jump(next),
            Term::Barrier { dst: Some(d), .. } => d.0 += first_reg,
            Term::Call { args, .. } => args.0 += first_slot,
            Term::Barrier { dst: None, .. }
            | Term::Jump(_)
            | Term::Branch { .. }
            | Term::Switch { .. }
            | Term::Exit
            | Term::Trap(_)
            | Term::Yield { .. } => {}
        }
        caller.blocks.push(block);
    }
}

fn shifted(v: Val, by: u32) -> Val {
    match v {
        Val::Reg(r) => Val::Reg(Reg(r.0 + by)),
        Val::Imm(..) => v,
    }
}

/// Addresses of incoming arguments become addresses in the caller's slot.
fn arguments_in_slot(insts: Vec<Inst>, args: SlotId, regs: &mut Vec<Ty>) -> Vec<Inst> {
    if !insts.iter().any(|i| matches!(i.op, Op::ArgAddr { .. })) {
        return insts;
    }
    let mut out = Vec::with_capacity(insts.len() + 4);
    for mut i in insts {
        if let Op::ArgAddr { offset } = i.op {
            regs.push(Ty::B64);
            let base = Reg(regs.len() as u32 - 1);
            out.push(Inst { op: Op::SlotAddr(args), dst: smallvec![base], ..i.clone() });
            i.op = Op::Pure(Pure::Add(Ty::B64));
            i.src = smallvec![Val::Reg(base), Val::Imm(u64::from(offset), Ty::B64)];
        }
        out.push(i);
    }
    out
}
