//! Where lanes leave a copy: to other blocks, to the runtime, with a trap, or to start over in other code.

use std::mem::offset_of;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_diag::Span;
use handloom_ir::simt::*;
use handloom_ir::trap::TrapKind;
use handloom_ir::types::*;
use handloom_plan::abi::*;
use handloom_plan::packs::PACKS;

use crate::emit::asm::FULL;
use crate::emit::copy::Emit;
use crate::emit::value::Rep;

/// Next block after `b` that lanes may be pending at, or `idle`.
pub(crate) fn next_pendable(cx: &Emit<'_, '_>, b: usize) -> clif::Block {
    match (b + 1..cx.plan.func.blocks.len()).find(|&x| cx.packs.pendable.has(x)) {
        Some(x) => cx.code.prologue[x],
        None => cx.code.idle,
    }
}

/// Adds lanes to a block's pending ones.
pub(crate) fn add_pending(cx: &mut Emit<'_, '_>, block: usize, lanes: Value) {
    let old = cx.asm.load_warp(types::I32, cx.pend(block));
    let new = cx.asm.b.ins().bor(old, lanes);
    cx.asm.store_warp(new, cx.pend(block));
}

/// Lanes of `m` to their targets by index.
pub(crate) fn scatter(
    cx: &mut Emit<'_, '_>,
    b: usize,
    rows: &[Value],
    targets: &[BlockId],
    m: Value,
    bad: clif::Block,
) {
    let span = cx.plan.func.blocks[b].term_span;
    let mut left = m;
    let mut ways: Vec<(usize, Value)> = Vec::new();
    for (k, t) in targets.iter().enumerate() {
        let want = cx.asm.vector_const32([k as u32; 4]);
        let hit: Vec<Value> = (0..PACKS).map(|p| cx.asm.b.ins().icmp(IntCC::Equal, rows[p], want)).collect();
        let bits = cx.asm.bits_of_rows(&hit);
        let bits = cx.asm.b.ins().band(bits, m);
        left = cx.asm.b.ins().band_not(left, bits);
        ways.push((t.idx(), bits));
    }
    let go = cx.asm.b.create_block();
    cx.asm.b.ins().brif(left, bad, &[], go, &[]);
    cx.asm.b.switch_to_block(bad);
    trap_of_index(cx, span, &Rep::Rows(rows.to_vec()), targets.len(), Some(left));
    cx.asm.b.switch_to_block(go);
    for (t, bits) in &ways {
        add_pending(cx, *t, *bits);
    }
    let first = ways.iter().map(|w| w.0).min().unwrap_or(b + 1);
    if first <= b {
        cx.asm.stop_check(first);
        let p = cx.code.prologue[first];
        cx.asm.b.ins().jump(p, &[]);
    } else {
        let next = next_pendable(cx, b);
        cx.asm.b.ins().jump(next, &[]);
    }
}

/// The context has no live lane: on to the next one.
pub(crate) fn retired(cx: &mut Emit<'_, '_>) {
    let skip = cx.asm.i32(i64::from(cx.code.tables.skip()));
    cx.asm.store_warp(skip, offset_of!(WarpCtx, state));
    let n = cx.asm.load_cta(types::I32, offset_of!(CtaCtx, retired));
    let n = cx.asm.b.ins().iadd_imm_s(n, 1);
    cx.asm.store_cta(n, offset_of!(CtaCtx, retired));
    let a = cx.code.advance;
    if cx.plan.options.in_order {
        let arrived = cx.asm.load_cta(types::I32, offset_of!(CtaCtx, arrived));
        let waited = cx.asm.b.create_block();
        cx.asm.b.ins().brif(arrived, waited, &[], a, &[]);
        cx.asm.b.switch_to_block(waited);
        let passed = if_all(cx, arrived, n);
        cx.asm.b.ins().jump(a, &[]);
        cx.asm.b.switch_to_block(passed);
    }
    cx.asm.b.ins().jump(a, &[]);
}

/// In code that keeps to the seed's order: if so many contexts that have arrived and that have ended are all, the barrier is passed, and code goes on in the block that is returned.
/// Else code goes on behind this.
pub(crate) fn if_all(cx: &mut Emit<'_, '_>, arrived: Value, retired: Value) -> clif::Block {
    let all = cx.asm.load_cta(types::I32, offset_of!(CtaCtx, n_warps));
    let sum = cx.asm.b.ins().iadd(arrived, retired);
    let met = cx.asm.b.ins().icmp(IntCC::Equal, sum, all);
    let (pass, passed, stay) = (cx.asm.b.create_block(), cx.asm.b.create_block(), cx.asm.b.create_block());
    cx.asm.b.ins().brif(met, pass, &[], stay, &[]);
    cx.asm.b.switch_to_block(pass);
    next_epoch(cx);
    let one = cx.asm.i32(1);
    cx.asm.store_cta(one, offset_of!(CtaCtx, passed));
    cx.asm.b.ins().jump(passed, &[]);
    cx.asm.b.switch_to_block(stay);
    passed
}

/// All warps have come to the plain barrier, or ended.
pub(crate) fn next_epoch(cx: &mut Emit<'_, '_>) {
    let zero = cx.asm.i32(0);
    cx.asm.store_cta(zero, offset_of!(CtaCtx, arrived));
    let epoch = cx.asm.load_cta(types::I32, offset_of!(CtaCtx, epoch));
    let epoch = cx.asm.b.ins().iadd_imm_s(epoch, 1);
    cx.asm.store_cta(epoch, offset_of!(CtaCtx, epoch));
}

/// Calls with some lanes; `target` is where the handle of the function is, if the call is indirect.
pub(crate) fn call(cx: &mut Emit<'_, '_>, term: &Term, target: Option<Loc>, span: Span, lanes: Value) {
    let Term::Call { callee, target: _, signature, args, next } = term else {
        panic!("bug: no call at {}", cx.here());
    };
    let site = cx.code.tables.calls.len() as u32;
    cx.code.tables.calls.push(CallSite {
        callee: *callee,
        target,
        signature: *signature,
        args: cx.plan.frame.slot_offsets[args.idx()],
        frame_end: frame_end(cx, *args),
        next: next.0,
        span,
    });
    cx.asm.leave(Stop::Call { site, lanes });
}

/// Where the frame of a callee begins whose arguments lie in a slot.
fn frame_end(cx: &Emit<'_, '_>, args: SlotId) -> u64 {
    let at = cx.plan.func.slots[args.idx()].at;
    u64::from(at.map_or(cx.code.tables.frame_bytes, |at| at.frame_end))
}

/// Gives the current block back as not run.
pub(crate) fn start_over(cx: &mut Emit<'_, '_>, b: usize) {
    let lanes = match cx.copy.mask {
        Some(m) => m,
        None => {
            if let Some(done) = cx.code.given_up.get(&b) {
                let done = *done;
                cx.asm.b.ins().jump(done, &[]);
                return;
            }
            let block = cx.asm.cold_block();
            cx.code.given_up.insert(b, block);
            cx.asm.b.ins().jump(block, &[]);
            cx.asm.b.switch_to_block(block);
            cx.asm.i32(FULL)
        }
    };
    let held = cx.asm.load_warp(types::I32, cx.pend(b));
    let all = cx.asm.b.ins().bor(held, lanes);
    cx.asm.store_warp(all, cx.pend(b));
    let state = cx.asm.i32(b as i64);
    cx.asm.store_warp(state, offset_of!(WarpCtx, state));
    // Values that the blocks before this one hold in registers.
    for (r, rep) in cx.copy.held.clone() {
        if cx.plan.facts.live.entry[b].has(r.idx()) {
            cx.store_home(r, &rep);
        }
    }
    cx.asm.give_back(Reason::Deopt);
}

/// Says that a store changes memory, where somebody wants to know.
pub(crate) fn tell_store(cx: &mut Emit<'_, '_>, inst: &Inst) {
    if cx.plan.tells_store(inst) {
        tell_dirty(cx);
    }
}

/// Says that memory may have changed, where somebody wants to know.
pub(crate) fn tell_dirty(cx: &mut Emit<'_, '_>) {
    if cx.plan.tells_dirty {
        let one = cx.asm.i32(1);
        cx.asm.store_cta(one, offset_of!(CtaCtx, dirty));
    }
}

/// Raises a trap of code's own, by the lanes of a mask (all if none).
pub(crate) fn trap(cx: &mut Emit<'_, '_>, kind: TrapKind, span: handloom_diag::Span, lanes: Option<Value>) {
    trap_at(cx, TrapSite { kind, span, index: None }, lanes);
}

/// The same for a branch by an index that has no target.
pub(crate) fn trap_of_index(
    cx: &mut Emit<'_, '_>,
    span: handloom_diag::Span,
    index: &Rep,
    targets: usize,
    lanes: Option<Value>,
) {
    cx.copy.n_scratch_used = 0;
    let at = cx.loc_of(index, Ty::B32);
    trap_at(cx, TrapSite { kind: TrapKind::BadCall, span, index: Some((at, targets)) }, lanes);
}

fn trap_at(cx: &mut Emit<'_, '_>, trap: TrapSite, lanes: Option<Value>) {
    let site = cx.code.tables.traps.len();
    cx.code.tables.traps.push(trap);
    let lanes = match lanes {
        Some(m) => m,
        None => cx.asm.i32(FULL),
    };
    cx.asm.leave(Stop::Trap(TrapSource::Site { site: site as u32, lanes }));
}
