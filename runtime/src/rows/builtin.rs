//! The functions that programs find on the device, by the interpreter's definitions.

use handloom_diag::Span;
use handloom_interp::builtin::{Refused, assert_text, call, vprintf};
use handloom_ir::simt::Builtin;
use handloom_ir::trap::TrapKind;
use handloom_ir::types::StateSpace;

use super::Call;
use super::memory::lanes;
use crate::warp::host::CtaHost;

pub(super) fn builtin(c: &mut Call<'_>) -> u64 {
    let (which, block, span) = c.tables.builtins[c.site];
    let word = if c.host.memory.module().ir.address_size == 32 { 4 } else { 8 };
    if which == Builtin::Assertfail {
        let first = c.mask.trailing_zeros().min(31) as usize;
        let text = assert_text(&mut c.host.memory, c.ctx.read(block, first), word);
        let mut trap = c.host.trap_of(TrapKind::Assert, span, c.warp(), c.mask);
        trap.detail = text;
        c.host.trap = Some(trap);
        return 0;
    }
    c.touched();
    if which == Builtin::Vprintf {
        let blocks = lanes(c.mask).map(|lane| (lane, c.ctx.read(block, lane)));
        return match vprintf(&mut c.host.memory, blocks, word) {
            Ok(()) => 1,
            Err((lane, refused)) => {
                refuse(c, span, lane, &refused);
                0
            }
        };
    }
    for lane in lanes(c.mask) {
        let at = c.ctx.read(block, lane);
        let thread = CtaHost::thread(&c.ctx.header(), lane);
        if let Err(refused) = call(which, &mut c.host.memory, at, word, thread) {
            refuse(c, span, lane, &refused);
            return 0;
        }
    }
    1
}

fn refuse(c: &mut Call<'_>, span: Span, lane: usize, refused: &Refused) {
    let mut trap = c.host.trap_of(refused.kind, span, c.warp(), 1 << lane);
    trap.address = Some(refused.addr);
    trap.bytes = refused.bytes;
    trap.access = Some(refused.access);
    trap.space = Some(StateSpace::Generic);
    c.host.trap = Some(trap);
}
