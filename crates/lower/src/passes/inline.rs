//! Calls replaced by the body of the function.
//!
//! The argument block of the call stays a slot of the caller's frame, and the callee's own slots become slots of the caller; `sroa` turns
//! them into registers. A function that can reach itself is not inlined, nor is one that calls such a function.

use handloom_ir::simt::*;
use handloom_ir::types::Ty;

use crate::graph::order_blocks;

/// A caller grows by at most so many instructions from functions that are called more than once.
const BUDGET: usize = 2000;

/// A function of so few instructions is always inlined: the call costs as much.
const SMALL: usize = 12;

/// Inlines direct calls in the first of some functions and in all that it calls. Others of `roots` may be reached by a pointer. Says which
/// functions are one of these, or are still called by one.
///
/// What is inlined is decided from the callees up, and done from the callers down: so no body is copied that nobody calls afterwards, and
/// that of a callee of a callee once.
pub fn inline_calls(m: &mut Module, roots: &[FuncId]) -> Vec<bool> {
    let mut is_called = vec![false; m.funcs.len()];
    let Some(root) = roots.first() else { return is_called };
    let graph = CallGraph::of(m, *root);
    // Slots stay where calls would have them, so that what is said of local memory does not depend on what was inlined.
    let frames = FrameLayout::of_module(m);
    m.funcs.iter_mut().zip(&frames).for_each(|(func, frame)| frame.settle(func));
    let inlined = inlined(m, &graph);
    roots.iter().for_each(|r| is_called[r.idx()] = true);
    let mut whole: Vec<(FuncId, Function)> = Vec::new();
    let mut work: Vec<FuncId> = roots.to_vec();
    while let Some(f) = work.pop() {
        let with = with_callees(m, f, &inlined, &frames);
        for b in &with.as_ref().unwrap_or(&m.funcs[f.idx()]).blocks {
            if let Term::Call { callee: Callee::Direct(c), .. } = b.term
                && !std::mem::replace(&mut is_called[c.idx()], true)
            {
                work.push(c);
            }
        }
        whole.extend(with.map(|with| (f, with)));
    }
    whole.into_iter().for_each(|(f, with)| m.funcs[f.idx()] = with);
    is_called
}

/// For each function the blocks whose calls are inlined, in ascending order.
fn inlined(m: &Module, graph: &CallGraph) -> Vec<Vec<usize>> {
    let mut inlined = vec![Vec::new(); m.funcs.len()];
    let mut sizes: Vec<usize> = m.funcs.iter().map(size).collect();
    for &f in &graph.callees_first {
        let mut budget = BUDGET;
        // Calls that come from a callee are not looked at again: what is left there was too much already.
        for (b, block) in m.funcs[f.idx()].blocks.iter().enumerate() {
            let Term::Call { callee: Callee::Direct(callee), .. } = block.term else { continue };
            let size = sizes[callee.idx()];
            let once = graph.n_calls[callee.idx()] == 1;
            if graph.recursive[callee.idx()] || !(once || size <= SMALL || size <= budget) {
                continue;
            }
            if !once && size > SMALL {
                budget -= size;
            }
            inlined[f.idx()].push(b);
            sizes[f.idx()] += size + n_arguments(&m.funcs[callee.idx()]);
        }
    }
    inlined
}

/// Instructions that addresses of arguments take more when a function is inlined.
fn n_arguments(f: &Function) -> usize {
    f.blocks.iter().flat_map(|b| &b.insts).filter(|i| matches!(i.op, Op::ArgAddr { .. })).count()
}

/// A function with the calls of `inlined` replaced, and those in what comes in their place, if there are any.
fn with_callees(m: &Module, f: FuncId, inlined: &[Vec<usize>], frames: &[FrameLayout]) -> Option<Function> {
    if inlined[f.idx()].is_empty() {
        return None;
    }
    let mut caller = m.funcs[f.idx()].clone();
    // Bodies whose calls are to be looked at: the function, where its blocks are, and where its frame is.
    let mut work = vec![(f, 0, 0u64)];
    while let Some((func, first_block, frame)) = work.pop() {
        for b in &inlined[func.idx()] {
            let b = first_block + b;
            let Term::Call { callee: Callee::Direct(callee), args, next, .. } = caller.blocks[b].term else { continue };
            let end = frame + frames[func.idx()].size.next_multiple_of(frames[callee.idx()].align);
            work.push((callee, caller.blocks.len(), end));
            splice(&mut caller, b, &m.funcs[callee.idx()], u32::try_from(end).unwrap_or(u32::MAX), args, next);
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
    /// Functions that can reach a function that can reach itself.
    recursive: Vec<bool>,
    /// Number of direct calls of each function.
    n_calls: Vec<u32>,
}

impl CallGraph {
    fn of(m: &Module, root: FuncId) -> CallGraph {
        let n = m.funcs.len();
        let mut graph = CallGraph { callees_first: vec![], recursive: vec![false; n], n_calls: vec![0; n] };
        let mut state = vec![State::New; n];
        // Each entry: a function and its callees that are still to be visited.
        let mut work: Vec<(FuncId, Vec<FuncId>)> = vec![];
        let mut enter = Some(root);
        loop {
            if let Some(f) = enter.take() {
                state[f.idx()] = State::Open;
                let callees = callees(&m.funcs[f.idx()]);
                callees.iter().for_each(|c| graph.n_calls[c.idx()] += 1);
                work.push((f, callees));
            }
            let Some((f, callees)) = work.last_mut() else { return graph };
            match callees.pop() {
                Some(c) if state[c.idx()] == State::New => {
                    // It is looked at once more behind its visit.
                    callees.push(c);
                    enter = Some(c);
                }
                Some(c) => {
                    let bad = state[c.idx()] == State::Open || graph.recursive[c.idx()];
                    graph.recursive[f.idx()] |= bad;
                }
                None => {
                    state[f.idx()] = State::Done;
                    graph.callees_first.push(*f);
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
            out.push(Inst { op: Op::SlotAddr(args), dst: vec![base], ..i.clone() });
            i.op = Op::Pure(Pure::Add(Ty::B64));
            i.src = vec![Val::Reg(base), Val::Imm(u64::from(offset), Ty::B64)];
        }
        out.push(i);
    }
    out
}
