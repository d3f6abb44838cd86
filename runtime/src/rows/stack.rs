//! `alloca`, `stacksave`, `stackrestore`, lane by lane. The rules are the interpreter's.

use handloom_interp::stack::{Room, step};
use handloom_ir::simt::StackOp;
use handloom_ir::trap::TrapKind;

use super::Call;
use super::memory::lanes;
use crate::warp::host::CtaHost;

/// Does the op for each lane of the call. Gives 1, or 0 after recording a trap.
pub(super) fn stack(c: &mut Call<'_>, op: StackOp) -> u64 {
    let site = &c.tables.mems[c.site];
    let header = c.ctx.header();
    let (stride, frame) = (c.host.env.local_stride, u64::from(c.tables.frame_bytes));
    // What the warp knows of its stack must be forgotten when the cta has ended.
    c.host.was_left = true;
    let mut refused: Option<(u32, String)> = None;
    for lane in lanes(c.mask) {
        let thread = CtaHost::thread(&header, lane);
        let low = header.local + stride * lane as u64 + frame;
        let room = Room { low, end: c.host.env.local_base(thread).saturating_add(c.host.env.local_size) };
        let operand = c.ctx.read(site.addr, lane);
        match step(op, room, &mut c.host.warps[header.warp as usize].stack_used[lane], operand) {
            Ok(value) => site.dst.iter().for_each(|d| c.ctx.write(*d, lane, value)),
            Err(why) => refused.get_or_insert((0, why)).0 |= 1 << lane,
        }
    }
    let Some((lanes, why)) = refused else { return 1 };
    let mut trap = c.host.trap_of(TrapKind::Stack, site.span, header.warp, lanes);
    trap.detail = why;
    c.host.trap = Some(trap);
    0
}
