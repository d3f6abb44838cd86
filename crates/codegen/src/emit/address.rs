//! Addresses that the contexts hold.

use std::mem::offset_of;

use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_plan::abi::*;
use handloom_plan::analysis::shape::Shape;

use crate::emit::asm::Asm;
use crate::emit::copy::Emit;
use crate::emit::value::Rep;

/// Addresses that the contexts hold.
pub(crate) fn address(cx: &mut Emit<'_, '_>, op: Op) -> Rep {
    let stride = cx.plan.facts.local_stride;
    let by_lane = |base: Value| Rep::Affine(Shape::linear(stride), vec![base]);
    match op {
        Op::SymAddr(s) | Op::SharedAddr(s) => {
            let table = cx.asm.cta_field(offset_of!(CtaCtx, symbols));
            let v = cx.asm.b.ins().load(types::I64, Asm::trusted(), table, s.0 as i32 * 8);
            Rep::Affine(Shape::UNIFORM, vec![v])
        }
        Op::ParamAddr { offset } => {
            let p = cx.asm.cta_field(offset_of!(CtaCtx, param));
            let v = cx.asm.b.ins().iadd_imm_s(p, i64::from(offset));
            Rep::Affine(Shape::UNIFORM, vec![v])
        }
        Op::SlotAddr(slot) => {
            let l = cx.asm.load_warp(types::I64, offset_of!(WarpCtx, local));
            let v = cx.asm.b.ins().iadd_imm_s(l, i64::from(cx.plan.frame.slot_offsets[slot.idx()]));
            by_lane(v)
        }
        Op::ArgAddr { offset } => {
            let l = cx.asm.load_warp(types::I64, offset_of!(WarpCtx, args));
            let v = cx.asm.b.ins().iadd_imm_s(l, i64::from(offset));
            by_lane(v)
        }
        other => panic!("{other:?} is no address"),
    }
}
