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
    // Whole rows first, so that the kind of place is looked at once and not for each lane.
    let mut rows = [[0_u64; 32]; MAX_SOURCES];
    for (i, (row, loc)) in rows.iter_mut().zip(&site.src).enumerate() {
        c.ctx.read_row(*loc, c.mask, row);
        let bits = types.get(i).map_or(u64::MAX, |t| t.mask());
        row.iter_mut().for_each(|v| *v &= bits);
    }
    let mut out = [[0_u64; 32]; 2];
    let mut mask = c.mask;
    while mask != 0 {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        let mut src = [0_u64; MAX_SOURCES];
        for (value, row) in src.iter_mut().zip(&rows).take(n) {
            *value = row[lane];
        }
        let [first, other] = num::eval(site.op, &src[..n]);
        (out[0][lane], out[1][lane]) = (first, other);
    }
    for ((loc, row), ty) in site.dst.iter().zip(&mut out).zip([Some(ty), second]) {
        if ty == Some(Ty::P) {
            // A predicate is 0 or all ones in a row.
            row.iter_mut().for_each(|v| *v = 0_u64.wrapping_sub(u64::from(*v != 0)));
        }
        c.ctx.write_row(*loc, c.mask, row);
    }
    1
}
