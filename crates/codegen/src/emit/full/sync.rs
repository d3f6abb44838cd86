//! Warp-level ops of full copies.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};
use handloom_ir::simt::*;
use handloom_ir::trap::TrapKind;
use handloom_ir::types::*;
use handloom_plan::abi::*;
use handloom_plan::analysis::shape::Shape;
use handloom_plan::packs::layout::Home;
use handloom_plan::packs::warp_ops::{WarpOpWay, warp_op_way};
use handloom_plan::packs::{LANES, PACKS};

use crate::emit::asm::FULL;
use crate::emit::copy::Emit;
use crate::emit::exits::trap;
use crate::emit::full::by_routine::routine_operands;
use crate::emit::value::Rep;

/// A warp-level op by all lanes.
pub(crate) fn full_sync(cx: &mut Emit<'_, '_>, inst: &Inst) {
    match warp_op_way(inst, cx.plan.options.audited) {
        WarpOpWay::Nothing => {}
        WarpOpWay::Vote(mode) => vote(cx, inst, mode),
        WarpOpWay::Shuffle { mode, lane, clamp } => shuffle_lanes(cx, inst, mode, lane, clamp),
        WarpOpWay::Routine => sync_by_routine(cx, inst),
    }
}

/// `vote` by all lanes.
fn vote(cx: &mut Emit<'_, '_>, inst: &Inst, mode: VoteMode) {
    let p = cx.rep(inst.src[0]);
    let bits = cx.asm.predicate_bits(&p);
    let any = |e: &mut Emit<'_, '_>| e.asm.b.ins().icmp_imm_s(IntCC::NotEqual, bits, 0);
    let all = |e: &mut Emit<'_, '_>| e.asm.b.ins().icmp_imm_s(IntCC::Equal, bits, i64::from(FULL as u32 as i32));
    let v = match mode {
        VoteMode::Ballot => bits,
        VoteMode::All => all(cx),
        VoteMode::Any => any(cx),
        VoteMode::Uni => {
            let (x, y) = (all(cx), any(cx));
            let none = cx.asm.b.ins().bxor_imm_s(y, 1);
            cx.asm.b.ins().bor(x, none)
        }
    };
    cx.set(inst.dst[0], Rep::Affine(Shape::UNIFORM, vec![v]));
}

fn sync_by_routine(cx: &mut Emit<'_, '_>, inst: &Inst) {
    let (src, mut dst, mut outs) = routine_operands(cx, inst);
    // The block ends here, so nothing starts it over that would find its registers changed: results go to their homes.
    for (loc, d) in dst.iter_mut().zip(&inst.dst) {
        if matches!(cx.packs.layout.homes[d.idx()], Some(Home::Row32(_) | Home::Row64(_))) {
            *loc = cx.row_of(*d);
            outs.retain(|(out, _)| out != d);
            cx.set_at_home(*d);
        }
    }
    let site = cx.plan.sites.number(cx.copy.at.0) as usize;
    cx.code.tables.syncs[site].full = Some(Operands::new(src, dst));
    let (m, copy) = (cx.asm.i32(FULL), cx.asm.i64(CopyKind::Full as i64));
    let ok = cx.asm.routine(Routine::Sync, site, m, Some(copy), None);
    let (go, stuck) = (cx.asm.b.create_block(), cx.asm.cold_block());
    let on = cx.asm.on_line();
    cx.asm.b.ins().brif(ok, go, &[], stuck, &[]);
    cx.asm.b.switch_to_block(stuck);
    // All live lanes are here, so nobody can come whom they wait for.
    trap(cx, TrapKind::Deadlock, inst.span, None);
    cx.asm.rejoin(go, on);
    for (r, at) in outs {
        let rep = cx.read_scratch(at, cx.plan.func.regs[r.idx()]);
        cx.set_fetched(r, rep);
    }
}

/// `shfl` with a constant lane and clamp: every lane's source is known.
fn shuffle_lanes(cx: &mut Emit<'_, '_>, inst: &Inst, mode: ShflMode, lane: u32, clamp: u32) {
    let value = cx.clean(inst.src[0]);
    let from: Vec<(u32, bool)> = (0..32).map(|l| mode.source(l, lane, clamp)).collect();
    let rows = cx.asm.rows(&value, Ty::B32);
    let mut out = Vec::with_capacity(PACKS);
    for p in 0..PACKS {
        let lanes: Vec<u32> = (0..LANES).map(|l| from[p * LANES + l].0).collect();
        let mut packs: Vec<u32> = lanes.iter().map(|l| l / 4).collect();
        packs.sort_unstable();
        packs.dedup();
        let v = if packs.len() <= 2 {
            let (a, b) = (packs[0], packs[packs.len() - 1]);
            let pick = |l: u32| if l / 4 == a { (l % 4) as u8 } else { 4 + (l % 4) as u8 };
            let order: [u8; 4] = std::array::from_fn(|i| pick(lanes[i]));
            if order == [0, 1, 2, 3] {
                rows[a as usize]
            } else {
                cx.asm.shuffle32(rows[a as usize], rows[b as usize], order)
            }
        } else {
            let parts: Vec<Value> =
                lanes.iter().map(|l| cx.asm.b.ins().extractlane(rows[(l / 4) as usize], (l % 4) as u8)).collect();
            cx.asm.gather(&parts, Ty::B32)[0]
        };
        out.push(v);
    }
    cx.set(inst.dst[0], Rep::Rows(out));
    if let Some(d) = inst.dst.get(1) {
        let rows = (0..PACKS)
            .map(|p| {
                let lanes = std::array::from_fn(|l| if from[p * LANES + l].1 { u32::MAX } else { 0 });
                cx.asm.vector_const32(lanes)
            })
            .collect();
        cx.set(*d, Rep::Rows(rows));
    }
}
