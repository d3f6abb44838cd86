//! Ends of masked copies.

use std::mem::offset_of;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::abi::*;

use crate::emit::asm::Asm;
use crate::emit::copy::Emit;
use crate::emit::exits::{add_pending, call, next_pendable, retired, scatter, trap};
use crate::emit::value::Rep;

/// The end of a masked copy. `taken`: bits of the branch's predicate, if the block made it.
pub(crate) fn masked_term(cx: &mut Emit<'_, '_>, b: usize, m: Value, taken: Option<Value>) {
    let f = &cx.plan.func;
    let span = f.blocks[b].term_span;
    cx.copy.n_scratch_used = 0;
    match &f.blocks[b].term {
        Term::Jump(t) => {
            add_pending(cx, t.idx(), m);
            go_on(cx, b, (t.idx() <= b).then_some((t.idx(), m)));
        }
        Term::Branch { cond, then, otherwise } => {
            let taken = match taken {
                Some(t) => t,
                None => masked_bits(cx, *cond),
            };
            let yes = cx.asm.b.ins().band(taken, m);
            let no = cx.asm.b.ins().band_not(m, taken);
            add_pending(cx, then.idx(), yes);
            add_pending(cx, otherwise.idx(), no);
            let back = [(then.idx(), yes), (otherwise.idx(), no)].into_iter().find(|w| w.0 <= b);
            go_on(cx, b, back);
        }
        Term::Switch { index, targets } => {
            let rows = match cx.scalar_source(*index) {
                Some((s, base)) => cx.asm.rows(&Rep::Affine(s, base), Ty::B32),
                None => row_vectors(cx, *index),
            };
            let bad = cx.asm.cold_block();
            scatter(cx, b, &rows, targets, m, bad);
        }
        Term::Ret | Term::Exit => {
            if !cx.plan.func.is_entry && matches!(f.blocks[b].term, Term::Exit) {
                cx.asm.leave(Stop::Exit { lanes: m });
                return;
            }
            let live = cx.asm.load_warp(types::I32, offset_of!(WarpCtx, live));
            let live = cx.asm.b.ins().band_not(live, m);
            cx.asm.store_warp(live, offset_of!(WarpCtx, live));
            let gone = cx.asm.b.create_block();
            let next = next_pendable(cx, b);
            cx.asm.b.ins().brif(live, next, &[], gone, &[]);
            cx.asm.b.switch_to_block(gone);
            retired(cx);
        }
        Term::Trap(kind) => trap(cx, *kind, span, Some(m)),
        Term::Barrier { kind: _, id, count, pred, dst: _, next: _ } => {
            let id = first_active(cx, *id, m);
            let count = count.map(|c| first_active(cx, c, m));
            let predicates = pred.map(|p| {
                let bits = masked_bits(cx, p);
                cx.asm.b.ins().band(bits, m)
            });
            cx.asm.leave(Stop::Barrier { site: cx.plan.sites.number(b), lanes: m, id, count, predicates });
        }
        term @ Term::Call { callee: _, target, signature: _, args: _, next: _ } => {
            let target = target.map(|t| match (cx.scalar_source(t), t) {
                (None, Val::Reg(r)) => cx.row_of(r),
                _ => cx.loc(t),
            });
            call(cx, term, target, span, m);
        }
        Term::Yield { .. } => cx.asm.leave(Stop::Yield { site: cx.plan.sites.number(b), lanes: m }),
    }
}

/// After a masked block: to the lowest block that may hold lanes.
fn go_on(cx: &mut Emit<'_, '_>, b: usize, back: Option<(usize, Value)>) {
    let next = next_pendable(cx, b);
    let Some((header, lanes)) = back else {
        cx.asm.b.ins().jump(next, &[]);
        return;
    };
    let again: clif::Block = cx.asm.b.create_block();
    cx.asm.b.ins().brif(lanes, again, &[], next, &[]);
    cx.asm.b.switch_to_block(again);
    cx.asm.stop_check(header);
    let p = cx.code.prologue[header];
    cx.asm.b.ins().jump(p, &[]);
}

/// Bits of a predicate in a masked copy (lanes outside the mask are anything).
pub(crate) fn masked_bits(cx: &mut Emit<'_, '_>, v: Val) -> Value {
    if let Some((s, base)) = cx.scalar_source(v) {
        return cx.asm.predicate_bits(&Rep::Affine(s, base));
    }
    let rows = row_vectors(cx, v);
    cx.asm.bits_of_rows(&rows)
}

/// The row of a value of at most 32 bits that is no scalar.
fn row_vectors(cx: &mut Emit<'_, '_>, v: Val) -> Vec<Value> {
    let Val::Reg(r) = v else { panic!("{v:?} is no scalar at {}", cx.here()) };
    let at = cx.word_row(r);
    cx.asm.load_row(at, Ty::B32)
}

/// A 32-bit value of the first lane of a mask.
fn first_active(cx: &mut Emit<'_, '_>, v: Val, m: Value) -> Value {
    if let Some((s, base)) = cx.scalar_source(v)
        && s.is_uniform()
    {
        return base[0];
    }
    let at = match v {
        Val::Reg(r) if cx.scalar_source(v).is_none() => cx.word_row(r),
        _ => {
            let rep = cx.rep(v);
            let (at, _) = cx.scratch_row(Ty::B32);
            let rows = cx.asm.rows(&rep, Ty::B32);
            cx.asm.store_row(at, &rows);
            at
        }
    };
    let lane = cx.asm.b.ins().ctz(m);
    let lane = cx.asm.b.ins().uextend(types::I64, lane);
    let by = cx.asm.b.ins().ishl_imm_s(lane, 2);
    let from = cx.asm.b.ins().iadd(cx.asm.warp, by);
    cx.asm.b.ins().load(types::I32, Asm::trusted(), from, at as i32)
}
