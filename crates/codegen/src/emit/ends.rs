//! Ends of blocks where lanes leave the code, for full and masked copies: they differ in whose lanes those are, and in how operands are read.

use std::mem::offset_of;

use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::abi::*;

use crate::emit::asm::FULL;
use crate::emit::copy::Emit;
use crate::emit::exits::{call, trap};
use crate::emit::value::Rep;

/// Leaves the code at the end of block `b`, with the lanes of the copy.
pub(crate) fn leave(cx: &mut Emit<'_, '_>, b: usize) {
    let block = &cx.plan.func.blocks[b];
    let site = || cx.plan.sites.number(b);
    match &block.term {
        Term::Ret | Term::Exit => {
            let lanes = lanes(cx);
            cx.asm.leave(Stop::Exit { lanes });
        }
        Term::Trap(kind) => trap(cx, *kind, block.term_span, cx.copy.mask),
        Term::Barrier { kind: _, id, count, pred, dst: _, next: _ } => {
            let site = site();
            // Read what the end needs before homes are written: the values are the same.
            let id = place(cx, *id);
            let count = count.map(|c| place(cx, c));
            let predicates = pred.map(|p| bits(cx, p));
            let lanes = saved(cx, b);
            let arrivals = cx.code.tables.arrivals.len() as u32;
            cx.code.tables.arrivals.push(Arrivals { id, count });
            cx.asm.leave(Stop::Barrier { site, lanes, arrivals, predicates });
        }
        term @ Term::Call { callee: _, target, signature: _, args: _, next: _ } => {
            let target = target.map(|t| place(cx, t));
            let lanes = saved(cx, b);
            call(cx, term, target, block.term_span, lanes);
        }
        Term::Yield { .. } => {
            let site = site();
            let lanes = saved(cx, b);
            cx.asm.leave(Stop::Yield { site, lanes });
        }
        other @ (Term::Jump(_) | Term::Branch { .. } | Term::Switch { .. }) => panic!("bug: {other:?} leaves no code"),
    }
}

/// The lanes of the copy.
fn lanes(cx: &mut Emit<'_, '_>) -> Value {
    match cx.copy.mask {
        Some(m) => m,
        None => cx.asm.i32(FULL),
    }
}

/// The lanes of the copy, with what lives on in its homes. A masked copy wrote it before its end.
fn saved(cx: &mut Emit<'_, '_>, b: usize) -> Value {
    if cx.copy.mask.is_none() {
        cx.write_back(b);
    }
    lanes(cx)
}

/// Ends a copy of `b` inside code, as `inside` says; in code that keeps to the seed's order outside of it while others wait there.
pub(crate) fn inside_or_leave(cx: &mut Emit<'_, '_>, b: usize, inside: impl FnOnce(&mut Emit<'_, '_>)) {
    if cx.plan.options.in_order {
        let outside = cx.asm.load_cta(types::I32, offset_of!(CtaCtx, outside));
        let (go, stay) = (cx.asm.b.create_block(), cx.asm.b.create_block());
        cx.asm.b.ins().brif(outside, go, &[], stay, &[]);
        cx.asm.b.switch_to_block(go);
        let (known, line) = (cx.copy.clone(), cx.asm.line.clone());
        leave(cx, b);
        (cx.copy, cx.asm.line) = (known, line);
        cx.asm.b.switch_to_block(stay);
    }
    inside(cx);
}

/// The bits of a predicate in the lanes of the copy.
fn bits(cx: &mut Emit<'_, '_>, v: Val) -> Value {
    match cx.copy.mask {
        Some(m) => {
            let bits = masked_bits(cx, v);
            cx.asm.b.ins().band(bits, m)
        }
        None => {
            let rep = cx.rep(v);
            cx.asm.predicate_bits(&rep)
        }
    }
}

/// Where the runtime finds what each lane has.
fn place(cx: &mut Emit<'_, '_>, v: Val) -> Loc {
    if cx.copy.mask.is_some()
        && let Val::Reg(r) = v
        && cx.scalar_source(v).is_none()
    {
        return cx.row_of(r);
    }
    cx.loc(v)
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
pub(crate) fn row_vectors(cx: &mut Emit<'_, '_>, v: Val) -> Vec<Value> {
    let Val::Reg(r) = v else { panic!("{v:?} is no scalar at {}", cx.here()) };
    let at = cx.word_row(r);
    cx.asm.load_row(at, Ty::B32)
}
