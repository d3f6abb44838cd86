//! One test for all accesses of a block through the same address.
//!
//! In a full copy every access of a block happens, so a program without faults passes the test of all of them together. If the test fails, nothing of
//! the block has happened yet: it starts over in code that tests each access by itself, which finds the fault or that there is none.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::abi::*;
use handloom_plan::access::AccessClass;
use handloom_plan::access::Kind;
use handloom_plan::packs::JointTest;

use crate::emit::bounds::{mem_op_of, own_refused, refuse, site_of_group};
use crate::emit::copy::{Emit, Verified};
use crate::emit::device::MemOp;
use crate::emit::exits::start_over;
use crate::emit::value::Rep;

/// Tests, at the start of block `b`, the addresses that it got from other blocks.
pub(crate) fn verify_incoming(cx: &mut Emit<'_, '_>, b: usize) {
    for (i, r) in cx.packs.incoming_addresses(b) {
        verify_uses(cx, b, i, r);
    }
}

/// Tests, at the first use of an address that block `b` made, all its accesses, if nothing has happened in the block before.
pub(crate) fn verify_at(cx: &mut Emit<'_, '_>, b: usize, i: usize) {
    let Some(Val::Reg(r)) = cx.plan.func.blocks[b].insts[i].src.first().copied() else { return };
    if cx.packs.may_test_at(b, i) && !cx.copy.verified.contains_key(&r) {
        verify_uses(cx, b, i, r);
    }
}

fn verify_uses(cx: &mut Emit<'_, '_>, b: usize, i: usize, r: Reg) {
    let Some(uses) = cx.packs.joint_test(b, i) else { return };
    let Rep::Affine(s, base) = cx.rep(Val::Reg(r)) else { return };
    if !uses.fits(&s) {
        return;
    }
    let a = uses.align;
    let inst = &cx.plan.func.blocks[b].insts[uses.inst];
    let Some(own) = AccessClass::of(inst) else { return };
    let class = AccessClass {
        kind: if uses.writes { Kind::Store } else { Kind::Load },
        bits: 8,
        count: 1,
        elements: 1,
        order: Order::Weak,
        scope: Scope::Cta,
        is_single: false,
        offset: 0,
        ..own
    };
    let mem = mem_op_of(cx, inst, class);
    cx.code.tables.mems[mem.site].op = class.op();
    let at = (0..s.groups())
        .map(|g| {
            let (low, high) = s.span(g);
            let length = high - low + uses.high - uses.low;
            let site = site_of_group(cx, &mem, g);
            let mem = MemOp { site, ..mem };
            let own = class.is_own_by_lane(&s, cx.plan.facts.local_stride) && s.stride % a == 0;
            let lowest = verify_group(cx, b, &mem, r, base[g], low, (length, own), &uses);
            let host = match uses.space {
                StateSpace::Shared => {
                    let shared = cx.asm.shared_base();
                    cx.asm.b.ins().iadd(lowest, shared)
                }
                _ => lowest,
            };
            (host, low)
        })
        .collect();
    cx.copy.verified.insert(r, Verified { space: uses.space, low: uses.low, high: uses.high, align: a, at });
}

/// Tests `length` bytes from the lowest lane of a group; returns its address.
#[allow(clippy::too_many_arguments, reason = "an address, its reach, and where the test is")]
fn verify_group(
    cx: &mut Emit<'_, '_>,
    b: usize,
    mem: &MemOp,
    r: Reg,
    base: Value,
    low: i64,
    (length, own): (i64, bool),
    uses: &JointTest,
) -> Value {
    let lane = cx.asm.moved(base, low);
    let lane = if cx.plan.func.regs[r.idx()] == Ty::B64 { lane } else { cx.asm.b.ins().uextend(types::I64, lane) };
    let first = cx.asm.moved(lane, uses.low);
    let odd = if uses.align > 1 {
        let low_bits = cx.asm.b.ins().band_imm_s(lane, uses.align - 1);
        Some(cx.asm.b.ins().icmp_imm_s(IntCC::NotEqual, low_bits, 0))
    } else {
        None
    };
    // In local memory each lane has the same bytes of its own.
    let over = if own { own_refused(cx, first, uses.high - uses.low, 1) } else { refuse(cx, mem, first, length) };
    let bad = match odd {
        Some(o) => cx.asm.b.ins().bor(o, over),
        None => over,
    };
    let (cold, go) = (cx.asm.cold_block(), cx.asm.b.create_block());
    let on = cx.asm.on_line();
    cx.asm.b.ins().brif(bad, cold, &[], go, &[]);
    cx.asm.b.switch_to_block(cold);
    if uses.space != StateSpace::Shared && !own {
        let one = cx.asm.i32(1);
        let len = cx.asm.i64(length);
        let ok = cx.asm.routine(Routine::Range, mem.site, one, Some(first), Some(len));
        let ok = match odd {
            Some(o) => {
                let zero = cx.asm.i64(0);
                cx.asm.b.ins().select(o, zero, ok)
            }
            None => ok,
        };
        let fail = cx.asm.cold_block();
        cx.asm.b.ins().brif(ok, go, &[], fail, &[]);
        cx.asm.b.switch_to_block(fail);
    }
    start_over(cx, b);
    cx.asm.rejoin(go, on);
    lane
}

/// The addresses of an access that was tested with others of its block.
pub(crate) fn verified_address(cx: &mut Emit<'_, '_>, mem: &MemOp) -> Option<Vec<(Value, i64)>> {
    let Val::Reg(r) = mem.class.address else { return None };
    let v = cx.copy.verified.get(&r)?.clone();
    let bytes = mem.bytes();
    let covered = v.space == mem.class.space
        && v.low <= mem.class.offset
        && mem.class.offset + bytes <= v.high
        && bytes <= v.align
        && cx.copy.mask.is_none();
    covered.then(|| v.at.iter().map(|(host, low)| (cx.asm.moved(*host, mem.class.offset), *low)).collect())
}
