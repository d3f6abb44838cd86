//! The frame of a function's code: its entry, dispatch, the walk over contexts, and prologues. From here the copies are emitted.

use std::mem::offset_of;

use cranelift_codegen::Context;
use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AbiParam, InstBuilder, Signature, UserFuncName, types};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use handloom_diag::hash::FastMap;
use handloom_plan::abi::*;
use handloom_plan::access::InPlace;
use handloom_plan::host::{CallConvention, Host};
use handloom_plan::packs::Strategy;

use crate::emit::asm::{Asm, FULL};
use crate::emit::copy::{Code, Copy, Emit};
use crate::emit::exits::{next_epoch, next_pendable, start_over};
use crate::emit::full::chain::emit_full_tree;
use crate::emit::masked::inst::emit_masked;

/// What the builder of functions asks of a target: the same on every host with the same calls, so that Cranelift IR is too.
fn frontend(calls: CallConv) -> TargetFrontendConfig {
    TargetFrontendConfig {
        default_call_conv: calls,
        pointer_width: target_lexicon::PointerWidth::U64,
        page_size_align_log2: 12,
    }
}

/// How functions are called.
fn call_conv(host: &Host) -> CallConv {
    match host.calls {
        // Cranelift's name for the convention of C on both.
        CallConvention::SystemV | CallConvention::Aapcs64 => CallConv::SystemV,
    }
}

/// Emits a function: its CLIF, and its tables; `None` if that has more than `most` instructions.
pub(crate) fn emit(packs: &Strategy<'_>, most: usize) -> Option<(Context, Tables)> {
    let plan = packs.plan;
    let calls = call_conv(&plan.options.host);
    let mut sig = Signature::new(calls);
    sig.params.extend([AbiParam::new(types::I64), AbiParam::new(types::I64)]);
    sig.returns.push(AbiParam::new(types::I32));
    let mut context = Context::for_function(clif::Function::with_name_signature(UserFuncName::user(0, 0), sig));
    let mut memory = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut context.func, &mut memory);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    let dispatch = b.create_block();
    let warp = b.append_block_param(dispatch, types::I64);
    let (advance, idle) = (b.create_block(), b.create_block());
    let full = plan.func.blocks.iter().map(|_| b.create_block()).collect();
    let prologue = plan.func.blocks.iter().map(|_| b.create_block()).collect();
    let params = [b.block_params(entry)[0], b.block_params(entry)[1]];
    let mut asm = Asm::new(b, plan.options.host.architecture, calls, params, warp);
    let mut code = Code {
        tables: packs.tables(),
        full,
        prologue,
        dispatch,
        advance,
        idle,
        given_up: FastMap::default(),
        most,
        in_place: [in_place(plan); 2],
    };
    let mut cx = Emit { asm: &mut asm, plan, packs, code: &mut code, copy: Copy::full() };
    run(&mut cx, entry);
    if cx.is_too_long() {
        return None;
    }
    asm.b.finalize(frontend(calls));
    Some((context, code.tables))
}

/// Emits everything.
fn run(cx: &mut Emit<'_, '_>, entry: clif::Block) {
    let n = cx.plan.func.blocks.len();
    cx.asm.b.switch_to_block(entry);
    let cur = cx.asm.load_cta(types::I64, offset_of!(CtaCtx, cur));
    let d = cx.code.dispatch;
    cx.asm.b.ins().jump(d, &[cur.into()]);
    emit_dispatch(cx);
    emit_advance(cx);
    // The chain runs in order of position, so prologues and masked copies follow each other.
    for b in (0..n).filter(|b| cx.packs.pendable.has(*b)) {
        emit_prologue(cx, b);
        if cx.is_too_long() {
            return;
        }
    }
    for b in 0..n {
        if cx.is_too_long() {
            return;
        }
        if cx.plan.facts.parts.has(b) {
            go_masked(cx, b);
        } else if !cx.packs.chained.has(b) {
            emit_full_tree(&mut cx.with(Copy::full()), b);
        }
    }
    let idle = cx.code.idle;
    cx.asm.b.switch_to_block(idle);
    let skip = cx.asm.i32(i64::from(cx.code.tables.skip()));
    cx.asm.store_warp(skip, offset_of!(WarpCtx, state));
    cx.asm.give_back(Reason::Idle);
    cx.asm.b.seal_all_blocks();
}

fn emit_dispatch(cx: &mut Emit<'_, '_>) {
    let d = cx.code.dispatch;
    cx.asm.b.switch_to_block(d);
    let waits = cx.asm.load_warp(types::I32, offset_of!(WarpCtx, wait_epoch));
    let epoch = cx.asm.load_cta(types::I32, offset_of!(CtaCtx, epoch));
    let waiting = cx.asm.b.ins().icmp(IntCC::Equal, waits, epoch);
    let go = cx.asm.b.create_block();
    let advance = cx.code.advance;
    cx.asm.b.ins().brif(waiting, advance, &[], go, &[]);
    cx.asm.b.switch_to_block(go);
    let state = cx.asm.load_warp(types::I32, offset_of!(WarpCtx, state));
    let targets: Vec<clif::BlockCall> = (0..cx.plan.func.blocks.len())
        .map(|b| {
            let t = if cx.packs.pendable.has(b) { cx.code.prologue[b] } else { advance };
            cx.asm.b.func.dfg.block_call(t, &[])
        })
        .collect();
    let default = cx.asm.b.func.dfg.block_call(advance, &[]);
    let data = clif::JumpTableData::new(default, &targets);
    let table = cx.asm.b.create_jump_table(data);
    cx.asm.b.ins().br_table(state, table);
}

fn emit_advance(cx: &mut Emit<'_, '_>) {
    let a = cx.code.advance;
    cx.asm.b.switch_to_block(a);
    let (w, step) = (cx.asm.warp, i64::from(cx.code.tables.ctx_bytes));
    let next = cx.asm.b.ins().iadd_imm_s(w, step);
    let end = cx.asm.load_cta(types::I64, offset_of!(CtaCtx, end));
    let more = cx.asm.b.ins().icmp(IntCC::UnsignedLessThan, next, end);
    let phase = cx.asm.b.create_block();
    let d = cx.code.dispatch;
    cx.asm.b.ins().brif(more, d, &[next.into()], phase, &[]);
    cx.asm.b.switch_to_block(phase);
    let flip = cx.asm.b.create_block();
    let out = if cx.plan.options.in_order {
        let out = cx.asm.b.create_block();
        let passed = cx.asm.load_cta(types::I32, offset_of!(CtaCtx, passed));
        cx.asm.b.ins().brif(passed, flip, &[], out, &[]);
        cx.asm.b.switch_to_block(flip);
        let zero = cx.asm.i32(0);
        cx.asm.store_cta(zero, offset_of!(CtaCtx, passed));
        out
    } else {
        let out = if_all_arrived(cx, flip);
        cx.asm.b.switch_to_block(flip);
        next_epoch(cx);
        out
    };
    let first = cx.asm.load_cta(types::I64, offset_of!(CtaCtx, first));
    cx.asm.b.ins().jump(d, &[first.into()]);
    cx.asm.b.switch_to_block(out);
    cx.asm.give_back(Reason::Phase);
}

/// At the end of the array: to `flip` if all contexts have arrived at the plain barrier or ended, else to the block that is returned.
fn if_all_arrived(cx: &mut Emit<'_, '_>, flip: clif::Block) -> clif::Block {
    let arrived = cx.asm.load_cta(types::I32, offset_of!(CtaCtx, arrived));
    let (check, out) = (cx.asm.b.create_block(), cx.asm.b.create_block());
    cx.asm.b.ins().brif(arrived, check, &[], out, &[]);
    cx.asm.b.switch_to_block(check);
    let retired = cx.asm.load_cta(types::I32, offset_of!(CtaCtx, retired));
    let all = cx.asm.load_cta(types::I32, offset_of!(CtaCtx, n_warps));
    let sum = cx.asm.b.ins().iadd(arrived, retired);
    let met = cx.asm.b.ins().icmp(IntCC::Equal, sum, all);
    cx.asm.b.ins().brif(met, flip, &[], out, &[]);
    out
}

/// In place of the full copy of a block that has none: all lanes are pending there.
fn go_masked(cx: &mut Emit<'_, '_>, b: usize) {
    let block = cx.code.full[b];
    cx.asm.b.switch_to_block(block);
    let all = cx.asm.i32(FULL);
    cx.asm.store_warp(all, cx.pend(b));
    let prologue = cx.code.prologue[b];
    cx.asm.b.ins().jump(prologue, &[]);
}

/// Takes the pending lanes of a block and goes to the copy that fits.
fn emit_prologue(cx: &mut Emit<'_, '_>, b: usize) {
    let p = cx.code.prologue[b];
    cx.asm.b.switch_to_block(p);
    cx.set_loc(b, 0);
    let m = cx.asm.load_warp(types::I32, cx.pend(b));
    let some = cx.asm.b.create_block();
    let next = next_pendable(cx, b);
    cx.asm.b.ins().brif(m, some, &[], next, &[]);
    cx.asm.b.switch_to_block(some);
    let zero = cx.asm.i32(0);
    cx.asm.store_warp(zero, cx.pend(b));
    if !cx.packs.chained.has(b) && !cx.plan.facts.parts.has(b) {
        let all = cx.asm.b.ins().icmp_imm_s(IntCC::Equal, m, FULL as u32 as i32 as i64);
        let partial = cx.asm.b.create_block();
        let full = cx.code.full[b];
        cx.asm.b.ins().brif(all, full, &[], partial, &[]);
        cx.asm.b.switch_to_block(partial);
    }
    if cx.plan.facts.masked.has(b) && !cx.plan.options.masked {
        start_over(&mut cx.with(Copy::masked(m)), b);
    } else if cx.plan.facts.masked.has(b) {
        emit_masked(&mut cx.with(Copy::masked(m)), b, m);
    } else {
        // Cannot happen: all lanes come here together. Told as a fault of ours if it does.
        cx.asm.leave(Stop::Trap(TrapSource::Apart { lanes: m }));
    }
}

/// Accesses of lanes anywhere that code does in place. In long functions they are a good part of what is to be compiled.
fn in_place(plan: &handloom_plan::Plan) -> InPlace {
    match (plan.is_short, plan.is_long) {
        (true, _) => InPlace { outside: 0, in_loops: 16 },
        (false, true) => InPlace { outside: 4, in_loops: 24 },
        (false, false) => InPlace::default(),
    }
}
