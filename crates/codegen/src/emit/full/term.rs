//! Ends of full copies: where lanes go on.

use std::mem::offset_of;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::abi::*;
use handloom_plan::packs::Edges;

use crate::emit::asm::FULL;
use crate::emit::copy::{Copy, Emit};
use crate::emit::ends::{inside_or_leave, leave};
use crate::emit::exits::{add_pending, if_all, retired, scatter, trap_of_index};
use crate::emit::full::branch::edges;
use crate::emit::once::Line;
use crate::emit::value::{Rep, is_uniform};

/// A way on from the end of a full copy.
pub(crate) struct Onward {
    /// The block that it goes to.
    pub(crate) target: usize,
    /// Where its code begins; none if it begins where the end of the copy has come to.
    pub(crate) start: Option<Start>,
}

/// The start of one of several ways.
pub(crate) struct Start {
    pub(crate) block: clif::Block,
    /// What is known there.
    pub(crate) copy: Copy,
    /// What was made once.
    pub(crate) line: Line,
}

/// The end of a full copy: the ways on to other full copies, in the order in which they are to be emitted.
pub(crate) fn full_term(cx: &mut Emit<'_, '_>, b: usize) -> Vec<Onward> {
    let f = &cx.plan.func;
    cx.copy.n_scratch_used = 0;
    // Read what the end needs before homes are written: the values are the same.
    match &f.blocks[b].term {
        Term::Jump(t) => return vec![Onward { target: t.idx(), start: None }],
        Term::Branch { cond, then, otherwise } => {
            let c = cx.rep(*cond);
            return full_branch(cx, b, &c, then.idx(), otherwise.idx());
        }
        Term::Switch { index, targets } => {
            let i = cx.rep(*index);
            cx.write_back(b);
            full_switch(cx, b, &i, targets);
        }
        Term::Ret | Term::Exit if !cx.plan.ends_with_told_exit(b) => inside_or_leave(cx, b, retire_all),
        Term::Barrier { next, .. } if cx.plan.ends_with_plain_barrier(b) => {
            cx.write_back(b);
            inside_or_leave(cx, b, |cx| arrive(cx, next.idx()));
        }
        Term::Ret | Term::Exit | Term::Trap(_) | Term::Barrier { .. } | Term::Call { .. } | Term::Yield { .. } => {
            leave(cx, b)
        }
    }
    Vec::new()
}

fn full_branch(cx: &mut Emit<'_, '_>, b: usize, cond: &Rep, then: usize, otherwise: usize) -> Vec<Onward> {
    let (yes, no) = (cx.asm.b.create_block(), cx.asm.b.create_block());
    if !cx.packs.chained.has(then) && !cx.packs.chained.has(otherwise) {
        cx.write_back(b);
    }
    let (known, line) = (cx.copy.clone(), cx.asm.line.clone());
    let mut possible = Edges::BOTH;
    if is_uniform(cond)
        && let Rep::Affine(_, base) = cond
    {
        cx.asm.b.ins().brif(base[0], yes, &[], no, &[]);
    } else {
        let mut told = false;
        if let Rep::Logic(l) = cond {
            possible = edges(l);
            told = cx.asm.branch_if_known(l, possible, yes, no);
        }
        let bits = cx.asm.predicate_bits(cond);
        if !told && possible.all {
            let all = cx.asm.b.ins().icmp_imm_s(IntCC::Equal, bits, i64::from(FULL as u32 as i32));
            let some = cx.asm.b.create_block();
            cx.asm.b.ins().brif(all, yes, &[], some, &[]);
            cx.asm.b.switch_to_block(some);
        }
        if !told && possible.none {
            let mixed = cx.asm.b.create_block();
            cx.asm.b.ins().brif(bits, mixed, &[], no, &[]);
            cx.asm.b.switch_to_block(mixed);
        }
        cx.write_back(b);
        part(cx, b, &[(then, bits)], otherwise);
    }
    let mut onward = Vec::new();
    if possible.all && possible.none {
        let start = Start { block: yes, copy: known.clone(), line: line.clone() };
        onward.push(Onward { target: then, start: Some(start) });
    }
    if possible.none || possible.all {
        let (block, target) = if possible.none { (no, otherwise) } else { (yes, then) };
        onward.push(Onward { target, start: Some(Start { block, copy: known, line }) });
    }
    onward
}

fn full_switch(cx: &mut Emit<'_, '_>, b: usize, index: &Rep, targets: &[BlockId]) {
    let span = cx.plan.func.blocks[b].term_span;
    let bad = cx.asm.cold_block();
    if is_uniform(index)
        && let Rep::Affine(_, base) = index
    {
        let arms: Vec<clif::Block> = targets.iter().map(|_| cx.asm.b.create_block()).collect();
        let calls: Vec<clif::BlockCall> = arms.iter().map(|a| cx.asm.b.func.dfg.block_call(*a, &[])).collect();
        let default = cx.asm.b.func.dfg.block_call(bad, &[]);
        let table = cx.asm.b.create_jump_table(clif::JumpTableData::new(default, &calls));
        cx.asm.b.ins().br_table(base[0], table);
        for (a, t) in arms.into_iter().zip(targets) {
            cx.asm.b.switch_to_block(a);
            jump_full(cx, b, t.idx());
        }
        cx.asm.b.switch_to_block(bad);
        trap_of_index(cx, span, index, targets.len(), None);
        return;
    }
    let rows = cx.asm.rows(index, Ty::B32);
    let m = cx.asm.i32(FULL);
    scatter(cx, b, &rows, targets, m, bad);
}

/// Jumps from the full copy of `b` to that of `target`.
pub(crate) fn jump_full(cx: &mut Emit<'_, '_>, b: usize, target: usize) {
    cx.write_back(b);
    if target <= b {
        cx.asm.stop_check(target);
    }
    let t = cx.code.full[target];
    cx.asm.b.ins().jump(t, &[]);
}

/// Lanes go different ways: sets of lanes to their blocks, the rest to another.
pub(crate) fn part(cx: &mut Emit<'_, '_>, b: usize, ways: &[(usize, Value)], rest: usize) {
    let mut left = cx.asm.i32(FULL);
    for (block, bits) in ways {
        add_pending(cx, *block, *bits);
        left = cx.asm.b.ins().band_not(left, *bits);
    }
    add_pending(cx, rest, left);
    let first = ways.iter().map(|w| w.0).chain([rest]).min().unwrap_or(rest);
    if first <= b {
        cx.asm.stop_check(first);
    }
    let p = cx.code.prologue[first];
    cx.asm.b.ins().jump(p, &[]);
}

/// A plain barrier reached by all lanes.
fn arrive(cx: &mut Emit<'_, '_>, next: usize) {
    let state = cx.asm.i32(next as i64);
    cx.asm.store_warp(state, offset_of!(WarpCtx, state));
    let all = cx.asm.i32(FULL);
    cx.asm.store_warp(all, cx.pend(next));
    let site = cx.asm.i32(i64::from(cx.plan.sites.number(cx.copy.at.0)));
    cx.asm.store_warp(site, WarpCtx::PLAIN_BARRIER);
    let epoch = cx.asm.load_cta(types::I32, offset_of!(CtaCtx, epoch));
    cx.asm.store_warp(epoch, offset_of!(WarpCtx, wait_epoch));
    let n = cx.asm.load_cta(types::I32, offset_of!(CtaCtx, arrived));
    let n = cx.asm.b.ins().iadd_imm_s(n, 1);
    if cx.plan.options.in_order {
        let retired = cx.asm.load_cta(types::I32, offset_of!(CtaCtx, retired));
        let stay = cx.asm.b.create_block();
        let passed = if_all(cx, n, retired);
        cx.asm.b.ins().jump(stay, &[]);
        cx.asm.b.switch_to_block(passed);
        let (dispatch, this) = (cx.code.dispatch, cx.asm.warp);
        cx.asm.b.ins().jump(dispatch, &[this.into()]);
        cx.asm.b.switch_to_block(stay);
    }
    cx.asm.store_cta(n, offset_of!(CtaCtx, arrived));
    let a = cx.code.advance;
    cx.asm.b.ins().jump(a, &[]);
}

fn retire_all(cx: &mut Emit<'_, '_>) {
    let zero = cx.asm.i32(0);
    cx.asm.store_warp(zero, offset_of!(WarpCtx, live));
    retired(cx);
}
