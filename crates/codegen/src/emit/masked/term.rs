//! Ends of masked copies: where lanes go on.

use std::mem::offset_of;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::abi::*;

use crate::emit::copy::Emit;
use crate::emit::ends::{inside_or_leave, leave, masked_bits, row_vectors};
use crate::emit::exits::{add_pending, next_pendable, retired, scatter};
use crate::emit::value::Rep;

/// The end of a masked copy. `taken`: bits of the branch's predicate, if the block made it.
pub(crate) fn masked_term(cx: &mut Emit<'_, '_>, b: usize, m: Value, taken: Option<Value>) {
    let f = &cx.plan.func;
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
            let back = match (then.idx() <= b, otherwise.idx() <= b) {
                // All lanes go back, some of them farther than others.
                (true, true) => Some((then.idx().min(otherwise.idx()), m)),
                (true, false) => Some((then.idx(), yes)),
                (false, true) => Some((otherwise.idx(), no)),
                (false, false) => None,
            };
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
        Term::Ret | Term::Exit if !cx.plan.ends_with_told_exit(b) => inside_or_leave(cx, b, |cx| {
            let live = cx.asm.load_warp(types::I32, offset_of!(WarpCtx, live));
            let live = cx.asm.b.ins().band_not(live, m);
            cx.asm.store_warp(live, offset_of!(WarpCtx, live));
            let gone = cx.asm.b.create_block();
            let next = next_pendable(cx, b);
            cx.asm.b.ins().brif(live, next, &[], gone, &[]);
            cx.asm.b.switch_to_block(gone);
            retired(cx);
        }),
        Term::Ret | Term::Exit | Term::Trap(_) | Term::Barrier { .. } | Term::Call { .. } | Term::Yield { .. } => {
            leave(cx, b)
        }
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
