//! Value ops that code does not hold inline: lane by lane, by the one definition of what an op means.

use handloom_ir::num;
use handloom_ir::simt::sig;
use handloom_ir::types::Ty;

use super::Call;

/// More sources than any value op has.
const MAX_SOURCES: usize = 9;

pub(super) fn eval(c: &mut Call<'_>) -> u64 {
    let site = &c.tables.evals[c.site];
    let types = sig::source_types(site.op);
    let (ty, second) = sig::result_types(site.op);
    let n = site.src.len().min(MAX_SOURCES);
    let mut src = [0_u64; MAX_SOURCES];
    let mut mask = c.mask;
    while mask != 0 {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        for i in 0..n {
            let bits = types.get(i).map_or(u64::MAX, |t| t.mask());
            src[i] = c.ctx.read(site.src[i], lane) & bits;
        }
        let [first, other] = num::eval(site.op, &src[..n]);
        let write = |i: usize, ty: Ty, value: u64| {
            if let Some(loc) = site.dst.get(i) {
                if ty == Ty::P { c.ctx.write_pred(*loc, lane, value != 0) } else { c.ctx.write(*loc, lane, value) }
            }
        };
        write(0, ty, first);
        if let Some(ty) = second {
            write(1, ty, other);
        }
    }
    1
}
