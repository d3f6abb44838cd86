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

/// Inlines direct calls in a function and in all that it calls.
pub fn inline_calls(m: &mut Module, root: FuncId) {
    let graph = CallGraph::of(m, root);
    // Slots stay where calls would have them, so that what is said of local memory does not depend on what was inlined.
    let frames = FrameLayout::of_module(m);
    m.funcs.iter_mut().zip(&frames).for_each(|(func, frame)| frame.settle(func));
    for &f in &graph.callees_first {
        let mut caller = std::mem::replace(&mut m.funcs[f.idx()], stub());
        let mut budget = BUDGET;
        let mut changed = false;
        // Blocks that come from a callee are not looked at again: what is left there was too much already.
        for b in 0..caller.blocks.len() {
            let Term::Call { callee: Callee::Direct(callee), args, next, .. } = caller.blocks[b].term else { continue };
            let size = size(&m.funcs[callee.idx()]);
            let once = graph.n_calls[callee.idx()] == 1;
            if graph.recursive[callee.idx()] || !(once || size <= SMALL || size <= budget) {
                continue;
            }
            if !once && size > SMALL {
                budget -= size;
            }
            let end = frames[f.idx()].size.next_multiple_of(frames[callee.idx()].align);
            let base = u32::try_from(end).unwrap_or(u32::MAX);
            splice(&mut caller, b, &m.funcs[callee.idx()], base, args, next);
            changed = true;
        }
        if changed {
            order_blocks(&mut caller);
        }
        m.funcs[f.idx()] = caller;
    }
}

fn size(f: &Function) -> usize {
    f.blocks.iter().map(|b| b.insts.len() + 1).sum()
}

/// Stands in for a function that is being changed; it cannot be called meanwhile.
fn stub() -> Function {
    Function {
        name: String::new(),
        is_entry: false,
        blocks: vec![],
        regs: vec![],
        slots: vec![],
        param_bytes: 0,
        result_bytes: 0,
        span: handloom_diag::Span::NONE,
    }
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
