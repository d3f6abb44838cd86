//! Special registers that code does not hold. The values are those of the interpreter, the cycle counter apart.

use handloom_interp::Memory;
use handloom_interp::sreg::{Asker, value};
use handloom_ir::types::Varies;

use super::Call;

pub(super) fn sreg(c: &mut Call<'_>) -> u64 {
    let s = c.tables.sregs[c.site];
    let thread = c.warp() * 32 + c.mask.trailing_zeros().min(31);
    let clock = if s.varies() == Varies::InTime {
        c.touched();
        // Choice: a cycle is a nanosecond of the host, so that differences are positive and grow with the work.
        c.host.memory.time_ns()
    } else {
        0
    };
    let host = &mut *c.host;
    value(s, &Asker { env: &host.env, thread, clock }, &mut host.memory)
}
