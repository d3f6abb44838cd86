//! Special registers.

use std::mem::offset_of;

use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::abi::*;
use handloom_plan::analysis::shape::{self as shapes, Shape};
use handloom_plan::packs::{LANES, PACKS};
use handloom_plan::ways::{SregWay, sreg_way};

use crate::emit::copy::Emit;
use crate::emit::value::Rep;

/// The value of a special register in a full copy, or by scalars.
pub(crate) fn sreg_rep(cx: &mut Emit<'_, '_>, s: Sreg, ty: Ty) -> Rep {
    match sreg_way(s, &cx.plan.facts.shape) {
        SregWay::Scalar => {
            let v = sreg_scalar(cx, s, ty);
            Rep::Affine(shapes::sreg(s, &cx.plan.facts.shape).unwrap_or(Shape::UNIFORM), vec![v])
        }
        SregWay::Shaped(shape) => {
            let v = shaped_base(cx, s);
            Rep::Affine(shape, vec![v])
        }
        SregWay::Mask(n) => {
            let pool = cx.asm.pool_ptr;
            Rep::Rows((0..PACKS).map(|p| cx.asm.lane_masks(pool, n, p)).collect())
        }
        SregWay::Tid(i) => {
            let rows = (0..PACKS)
                .map(|p| {
                    let first = cx.asm.i32((p * LANES) as i64);
                    tid_pack(cx, i, first)
                })
                .collect();
            Rep::Rows(rows)
        }
    }
}

/// A register that is the same in all lanes.
fn sreg_scalar(cx: &mut Emit<'_, '_>, s: Sreg, ty: Ty) -> Value {
    if let Some(c) = shape_constant(s, &cx.plan.facts.shape) {
        return cx.asm.i32(c as i64);
    }
    match s {
        Sreg::Ctaid(i) if i < 3 => cx.asm.load_cta(types::I32, offset_of!(CtaCtx, ctaid) + 4 * usize::from(i)),
        Sreg::Nctaid(i) if i < 3 => cx.asm.load_cta(types::I32, offset_of!(CtaCtx, nctaid) + 4 * usize::from(i)),
        Sreg::Warpid => cx.asm.load_warp(types::I32, offset_of!(WarpCtx, warp)),
        Sreg::DynamicSmemSize => cx.asm.load_cta(types::I32, offset_of!(CtaCtx, dynamic_shared)),
        _ => {
            let site = cx.code.tables.sregs.len();
            cx.code.tables.sregs.push(s);
            let m = cx.asm.i32(1);
            let v = cx.asm.routine(Routine::Sreg, site, m, None, None);
            if ty == Ty::B64 { v } else { cx.asm.b.ins().ireduce(types::I32, v) }
        }
    }
}

/// Value of lane 0 of pack 0 of a register with a shape.
fn shaped_base(cx: &mut Emit<'_, '_>, s: Sreg) -> Value {
    let i = match s {
        Sreg::Laneid => return cx.asm.i32(0),
        Sreg::Tid(i) => i,
        other => panic!("{other:?} has no base of a shape"),
    };
    let [nx, ny, _] = cx.plan.facts.shape.ntid.map(i64::from);
    if cx.plan.facts.shape.ntid[i as usize] == 1 {
        return cx.asm.i32(0);
    }
    let warp = cx.asm.load_warp(types::I32, offset_of!(WarpCtx, warp));
    let linear = cx.asm.b.ins().ishl_imm_s(warp, 5);
    let row = divide(cx, linear, nx);
    match i {
        0 => remainder(cx, linear, nx),
        1 => remainder(cx, row, ny),
        _ => divide(cx, row, ny),
    }
}

fn divide(cx: &mut Emit<'_, '_>, v: Value, by: i64) -> Value {
    if by.count_ones() == 1 {
        cx.asm.b.ins().ushr_imm_s(v, i64::from(by.trailing_zeros()))
    } else {
        let d = cx.asm.i32(by);
        cx.asm.b.ins().udiv(v, d)
    }
}

fn remainder(cx: &mut Emit<'_, '_>, v: Value, by: i64) -> Value {
    if by.count_ones() == 1 {
        cx.asm.b.ins().band_imm_s(v, by - 1)
    } else {
        let d = cx.asm.i32(by);
        cx.asm.b.ins().urem(v, d)
    }
}

/// A component of `%tid` for the four lanes from lane `first` on. Thread numbers are below 1024.
pub(crate) fn tid_pack(cx: &mut Emit<'_, '_>, i: u8, first: Value) -> Value {
    let [nx, ny, _] = cx.plan.facts.shape.ntid;
    let warp = cx.asm.load_warp(types::I32, offset_of!(WarpCtx, warp));
    let linear = cx.asm.b.ins().ishl_imm_s(warp, 5);
    let linear = cx.asm.b.ins().iadd(linear, first);
    let n = cx.asm.spread(linear, 1, Ty::B32)[0];
    let row = cx.asm.small_quotient(n, nx);
    match i {
        0 => cx.asm.small_rest(n, row, nx),
        1 => {
            let plane = cx.asm.small_quotient(row, ny);
            cx.asm.small_rest(row, plane, ny)
        }
        _ => cx.asm.small_quotient(row, ny),
    }
}
