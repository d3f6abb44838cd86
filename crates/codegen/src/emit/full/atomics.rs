//! Atomics of full copies by all lanes: one after the other without a loop in shared memory, and folded to one operation where nobody reads the
//! old values of a single location. All addresses are tested before the first lane has an effect.

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::{InstBuilder, Value};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::packs::atomics::Fold;
use handloom_plan::packs::{LANES, PACKS};

use crate::emit::asm::{FULL, width};
use crate::emit::bounds::mem_op;
use crate::emit::copy::Emit;
use crate::emit::full::scattered::{access_at_site, refuse_rows, refuse_shared};
use crate::emit::value::Rep;

/// An atomic by all lanes, all of which take part: folded to one operation, or lane after lane without a loop.
pub(crate) fn atomic_of_all(cx: &mut Emit<'_, '_>, inst: &Inst, a: AtomAccess, offset: i64, fold: Option<Fold>) {
    let addr = cx.rep(inst.src[0]);
    let mem = mem_op(cx, inst);
    let aty = cx.ty(mem.class.address);
    let rows = cx.asm.rows(&addr, aty);
    let tested = if fold.is_some() { &rows[..1] } else { &rows[..] };
    let bad = if mem.is_shared() { refuse_shared(cx, &mem, tested) } else { refuse_rows(cx, &mem, tested) };
    let data: Vec<Rep> = inst.operands()[1..].iter().map(|v| cx.clean(*v)).collect();
    let shared = mem.is_shared().then(|| cx.asm.shared_base());
    let (cold, go, join) = (cx.asm.cold_block(), cx.asm.b.create_block(), cx.asm.b.create_block());
    // What both sides need is made in front of the branch.
    let ways: Vec<Vec<Value>> = data.iter().map(|r| operand(cx, r, mem.ty)).collect();
    let held: Vec<Rep> = data.iter().zip(&ways).map(|(r, v)| held(r, v)).collect();
    let on = cx.asm.on_line();
    cx.asm.b.ins().brif(bad, cold, &[], go, &[]);
    cx.asm.b.switch_to_block(cold);
    let all = cx.asm.i32(FULL);
    let out = access_at_site(cx, mem.site, &mem, inst, (&Rep::Rows(rows.clone()), &held), all, &[]);
    let args: Vec<clif::BlockArg> = cx.asm.flatten(&out, mem.ty).into_iter().map(Into::into).collect();
    cx.asm.b.ins().jump(join, &args);
    cx.asm.b.switch_to_block(go);
    let mut results = Vec::new();
    if let Some(how) = fold {
        let x = folded(cx, how, a.ty.is_signed(), &ways[0], mem.ty);
        let host = cx.asm.lane_address(&rows, 0, 0, aty, shared);
        let host = cx.asm.moved(host, offset);
        cx.asm.atomic_word(a, host, x, None, mem.ty);
    } else {
        for (p, row) in rows.iter().enumerate() {
            let mut old = Vec::with_capacity(LANES);
            let offsets = cx.asm.offsets(*row);
            for (l, at) in offsets.into_iter().enumerate() {
                let at = cx.asm.moved(at, offset);
                let host = shared.map_or(at, |base| cx.asm.b.ins().iadd(base, at));
                let x = operand_of(cx, &ways[0], p, l, mem.ty);
                let y = ways.get(1).map(|w| operand_of(cx, w, p, l, mem.ty));
                old.push(cx.asm.atomic_word(a, host, x, y, mem.ty));
            }
            if !inst.dst.is_empty() {
                results.extend(cx.asm.gather(&old, mem.ty));
            }
        }
    }
    let args: Vec<clif::BlockArg> = results.iter().map(|v| (*v).into()).collect();
    for v in &results {
        let t = cx.asm.b.func.dfg.value_type(*v);
        cx.asm.b.append_block_param(join, t);
    }
    cx.asm.b.ins().jump(join, &args);
    cx.asm.rejoin(join, on);
    if let [d] = inst.dst[..] {
        let rows = cx.asm.b.block_params(join).to_vec();
        cx.set(d, Rep::Rows(rows));
    }
}

/// A scalar for all lanes, or rows.
fn operand(cx: &mut Emit<'_, '_>, rep: &Rep, ty: Ty) -> Vec<Value> {
    match rep {
        Rep::Affine(s, base) if s.is_uniform() => base[..1].to_vec(),
        Rep::Affine(..) | Rep::Rows(_) | Rep::Logic(_) => cx.asm.rows(rep, ty),
    }
}

fn operand_of(cx: &mut Emit<'_, '_>, operand: &[Value], p: usize, l: usize, ty: Ty) -> Value {
    if let [x] = operand {
        return *x;
    }
    if width(ty) == 2 {
        cx.asm.b.ins().extractlane(operand[2 * p + l / 2], (l % 2) as u8)
    } else {
        cx.asm.b.ins().extractlane(operand[p], l as u8)
    }
}

/// One value that does to a location what those of all lanes do.
fn folded(cx: &mut Emit<'_, '_>, fold: Fold, signed: bool, operand: &[Value], ty: Ty) -> Value {
    if let [x] = *operand {
        return match fold {
            // 32 times the same.
            Fold::Sum => cx.asm.b.ins().ishl_imm_s(x, 5),
            Fold::Xor => cx.asm.b.ins().bxor(x, x),
            Fold::And | Fold::Or | Fold::Least | Fold::Most => x,
        };
    }
    let wide_order = ty == Ty::B64 && matches!(fold, Fold::Least | Fold::Most);
    let mut rest: Vec<Value> = if wide_order {
        // The host has no such op on vectors.
        (0..PACKS * LANES).map(|i| operand_of(cx, operand, i / LANES, i % LANES, ty)).collect()
    } else {
        let mut all = operand[0];
        for v in &operand[1..] {
            all = combine(cx, fold, signed, all, *v);
        }
        (0..LANES / width(ty)).map(|l| cx.asm.b.ins().extractlane(all, l as u8)).collect()
    };
    while rest.len() > 1 {
        rest = rest.chunks(2).map(|c| if let [x, y] = *c { combine(cx, fold, signed, x, y) } else { c[0] }).collect();
    }
    rest[0]
}

fn combine(cx: &mut Emit<'_, '_>, fold: Fold, signed: bool, x: Value, y: Value) -> Value {
    match fold {
        Fold::Sum => cx.asm.b.ins().iadd(x, y),
        Fold::And => cx.asm.b.ins().band(x, y),
        Fold::Or => cx.asm.b.ins().bor(x, y),
        Fold::Xor => cx.asm.b.ins().bxor(x, y),
        Fold::Least if signed => cx.asm.b.ins().smin(x, y),
        Fold::Least => cx.asm.b.ins().umin(x, y),
        Fold::Most if signed => cx.asm.b.ins().smax(x, y),
        Fold::Most => cx.asm.b.ins().umax(x, y),
    }
}

/// An operand as the routine takes it, of values that are made already.
fn held(rep: &Rep, values: &[Value]) -> Rep {
    match rep {
        Rep::Affine(s, base) if s.is_uniform() => Rep::Affine(*s, base.clone()),
        Rep::Affine(..) | Rep::Rows(_) | Rep::Logic(_) => Rep::Rows(values.to_vec()),
    }
}
