//! Which addresses an access may use: its site, and the quick test of its bounds.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::Bounds;
use handloom_plan::abi::*;
use handloom_plan::access::AccessClass;

use crate::emit::asm::Asm;
use crate::emit::copy::Emit;
use crate::emit::device::MemOp;
use crate::emit::once::Key;

pub(crate) fn mem_op(cx: &mut Emit<'_, '_>, inst: &Inst) -> MemOp {
    let Some(class) = cx.plan.access(inst) else { panic!("{:?} is no access", inst.op) };
    mem_op_of(cx, inst, class)
}

/// An access that is more than the instruction's own, at its site.
pub(crate) fn mem_op_of(cx: &mut Emit<'_, '_>, inst: &Inst, class: AccessClass) -> MemOp {
    let ty = match class.bits {
        8 | 16 => Ty::B16,
        32 => Ty::B32,
        _ => Ty::B64,
    };
    let site = cx.code.tables.mems.len();
    let variable = cx.plan.variable(cx.copy.at);
    // Where addresses are handed to routines, the place of the address only tells how wide they are.
    let addr = match cx.ty(class.address) {
        Ty::B64 => Loc::Imm(0),
        ty => Loc::Linear { at: 0, stride: 0, bits: ty.bits() as u8 },
    };
    let made = MemSite {
        op: inst.op,
        addr,
        src: vec![],
        dst: vec![],
        span: inst.span,
        variable,
        twin: None,
        interleaved: None,
    };
    cx.code.tables.mems.push(made);
    MemOp { class, site, ty }
}

/// A site for each group: each has a length of its own, which its cache holds.
pub(crate) fn site_of_group(cx: &mut Emit<'_, '_>, mem: &MemOp, g: usize) -> usize {
    if g == 0 {
        return mem.site;
    }
    let copy = cx.code.tables.mems[mem.site].clone();
    cx.code.tables.mems.push(copy);
    cx.code.tables.mems.len() - 1
}

/// The site of an op that the memory routine does, which finds the address where it wraps at its own width.
pub(crate) fn site_of(cx: &mut Emit<'_, '_>, inst: &Inst, src: &[Loc], dst: Vec<Loc>) -> MemSite {
    let (addr, rest) = match (src, inst.src.first()) {
        ([addr, rest @ ..], Some(v)) => (cx.address_loc(*addr, cx.plan.func.ty(*v)), rest),
        _ => (Loc::Imm(0), src),
    };
    MemSite {
        op: inst.op,
        addr,
        src: rest.to_vec(),
        dst,
        span: inst.span,
        variable: cx.plan.variable(cx.copy.at),
        twin: None,
        interleaved: None,
    }
}

/// The address of an access that needs no check: parameters and frame slots at constant offsets.
pub(crate) fn safe_address(cx: &mut Emit<'_, '_>, mem: &MemOp, g: usize) -> Option<Value> {
    let Val::Reg(r) = mem.class.address else { return None };
    let end = mem.class.offset + mem.bytes();
    match cx.origin(r)? {
        Op::ParamAddr { offset } => {
            let at = i64::from(offset) + mem.class.offset;
            let fits = at >= 0
                && i64::from(offset) + end <= i64::from(cx.plan.func.param_bytes)
                && i64::from(offset).wrapping_add(mem.class.offset) % mem.bytes() == 0
                && mem.class.space == StateSpace::ParamEntry;
            (fits && g == 0).then(|| {
                let p = cx.asm.cta_field(offset_of!(CtaCtx, param));
                cx.asm.moved(p, at)
            })
        }
        Op::SlotAddr(slot) => {
            let s = cx.plan.func.slots[slot.idx()];
            let fits = mem.class.offset >= 0
                && end <= i64::from(s.size)
                && mem.class.offset % mem.bytes() == 0
                && i64::from(s.align) % mem.bytes() == 0
                && matches!(mem.class.space, StateSpace::Local | StateSpace::Generic);
            (fits && g == 0).then(|| {
                let l = cx.asm.load_warp(types::I64, offset_of!(WarpCtx, local));
                let at = i64::from(cx.plan.frame.slot_offsets[slot.idx()]) + mem.class.offset;
                cx.asm.moved(l, at)
            })
        }
        _ => None,
    }
}

/// Whether the quick test refuses `length` bytes at `first` (an offset for shared memory).
pub(crate) fn refuse(cx: &mut Emit<'_, '_>, mem: &MemOp, first: Value, length: i64) -> Value {
    let align = mem.bytes();
    if mem.is_shared() {
        let size = cx.asm.cta_field(offset_of!(CtaCtx, shared_size));
        let end = cx.asm.b.ins().iadd_imm_s(first, length);
        // A negative start would wrap to a small end.
        let below = cx.asm.b.ins().icmp(IntCC::UnsignedGreaterThan, first, size);
        let over = cx.asm.b.ins().icmp(IntCC::UnsignedGreaterThan, end, size);
        let over = cx.asm.b.ins().bor(below, over);
        return if align > 1 {
            let low = cx.asm.b.ins().band_imm_s(first, align - 1);
            let odd = cx.asm.b.ins().icmp_imm_s(IntCC::NotEqual, low, 0);
            cx.asm.b.ins().bor(over, odd)
        } else {
            over
        };
    }
    let k = align.trailing_zeros();
    let (base, limit) = bounds(cx, mem, length);
    let off = cx.asm.b.ins().isub(first, base);
    if k == 0 {
        return cx.asm.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, off, limit);
    }
    // Low bits of a misaligned address become high ones: one comparison tests both. Allocations are aligned to more.
    let amount = cx.asm.b.ins().iconst(types::I32, i64::from(k));
    let turned = cx.asm.b.ins().rotr(off, amount);
    let limit = match cx.plan.options.bounds {
        Bounds::Exact => cx.asm.b.ins().ushr_imm_s(limit, i64::from(k)),
        Bounds::Contained => cx.asm.one(Key::Units(align - length, k), |e| e.b.ins().ushr_imm_s(limit, i64::from(k))),
    };
    cx.asm.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, turned, limit)
}

/// Base and limit of the quick test for `length` bytes, as those of a [`SiteCache`].
pub(crate) fn bounds(cx: &mut Emit<'_, '_>, mem: &MemOp, length: i64) -> (Value, Value) {
    match cx.plan.options.bounds {
        Bounds::Exact => {
            let sites = cx.asm.cta_field(offset_of!(CtaCtx, sites));
            let at = (mem.site * size_of::<SiteCache>()) as i32;
            let base = cx.asm.b.ins().load(types::I64, Asm::trusted(), sites, at);
            let limit = cx.asm.b.ins().load(types::I64, Asm::trusted(), sites, at + 8);
            (base, limit)
        }
        Bounds::Contained => {
            let low = cx.asm.cta_field(offset_of!(CtaCtx, heap_low));
            // The arena ends at a page.
            let more = mem.bytes() - length;
            let room = cx.asm.one(Key::Room(more), |e| {
                let high = e.cta_field(offset_of!(CtaCtx, heap_high));
                let size = e.b.ins().isub(high, low);
                e.moved(size, more)
            });
            (low, room)
        }
    }
}

/// Whether `length` bytes at an address of lane 0 are refused as bytes of its own local memory.
pub(crate) fn own_refused(cx: &mut Emit<'_, '_>, at: Value, length: i64, align: i64) -> Value {
    let window = cx.asm.load_warp(types::I64, offset_of!(WarpCtx, window));
    let off = cx.asm.b.ins().isub(at, window);
    outside_own(cx, off, length, align)
}

/// Whether `length` bytes at this distance from the start of a thread's local memory are not inside, or not aligned.
pub(crate) fn outside_own(cx: &mut Emit<'_, '_>, off: Value, length: i64, align: i64) -> Value {
    let k = align.trailing_zeros();
    // The largest distance, in units of the alignment. None is as small as needed for what does not fit at all.
    let units = (cx.plan.facts.local_stride - length).div_euclid(align) + 1;
    let off = if k == 0 {
        off
    } else {
        let amount = cx.asm.b.ins().iconst(types::I32, i64::from(k));
        cx.asm.b.ins().rotr(off, amount)
    };
    cx.asm.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThanOrEqual, off, units.max(0))
}
