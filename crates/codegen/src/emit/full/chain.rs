//! Full copies of blocks that follow each other.
//!
//! A block that only one other block goes to is, in straight code, after that block: what the one made the other finds in registers of the host.
//! Homes are then written where the tree of copies ends, where lanes part, and where a copy is given up.

use handloom_diag::hash::FastMap;

use crate::emit::copy::{Copy, Emit};
use crate::emit::full::inst::full_inst;
use crate::emit::full::joint_bounds::verify_incoming;
use crate::emit::full::runs::full_run;
use crate::emit::full::term::{Onward, full_term, jump_full};

/// Emits the full copy of `head` and of the blocks that only it goes to.
pub(crate) fn emit_full_tree(cx: &mut Emit<'_, '_>, head: usize) {
    let block = cx.code.full[head];
    cx.asm.b.switch_to_block(block);
    cx.asm.begin_line();
    full_copy(cx, head);
    cx.asm.end_line();
}

fn full_copy(cx: &mut Emit<'_, '_>, b: usize) {
    cx.set_loc(b, 0);
    verify_incoming(cx, b);
    let mut i = 0;
    while i < cx.plan.func.blocks[b].insts.len() {
        if cx.is_too_long() {
            cx.give_up();
            return;
        }
        let next = full_run(cx, b, i);
        if next == i {
            cx.set_loc(b, i);
            full_inst(cx, b, i);
        }
        i = next.max(i + 1);
    }
    cx.set_loc(b, cx.plan.func.blocks[b].insts.len());
    for Onward { target, start } in full_term(cx, b) {
        match start {
            None => go_full(cx, b, target),
            Some(start) => {
                cx.asm.branch_off(start.block, start.line);
                go_full(&mut cx.with(start.copy), b, target);
            }
        }
    }
}

/// Goes from the full copy of `b` to that of `target`: here, after it, or by a jump.
fn go_full(cx: &mut Emit<'_, '_>, b: usize, target: usize) {
    if !cx.packs.chained.has(target) {
        jump_full(cx, b, target);
        return;
    }
    let known = std::mem::take(&mut cx.copy);
    let held = known.written.iter().filter_map(|r| Some((*r, known.reps.get(r)?.clone()))).collect();
    full_copy(&mut cx.with(Copy { held, verified: FastMap::default(), ..known }), target);
}
