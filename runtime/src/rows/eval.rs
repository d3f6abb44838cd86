//! Value ops that code does not hold inline, by the one definition of what an op means (`num`): whole rows where `fast` has a loop for the op, else
//! lane by lane.

use handloom_ir::num;
use handloom_ir::types::Ty;
use handloom_plan::Host;
use handloom_plan::abi::EvalSite;

use super::Call;
#[cfg(target_arch = "x86_64")]
use super::fast;
use crate::warp::context::Ctx;

/// More sources than any value op has.
const MAX_SOURCES: usize = 9;

/// With so few lanes it is cheaper to look at each alone: a value that is the same for the whole warp is one lane.
const FEW: u32 = 4;

/// The lanes of a context that a routine is called for.
#[derive(Clone, Copy)]
pub(super) struct Active {
    pub(super) ctx: Ctx,
    pub(super) mask: u32,
}

pub(super) fn eval(c: &mut Call<'_>) -> u64 {
    eval_lanes(&c.host.machine, Active { ctx: c.ctx, mask: c.mask }, &c.tables.evals[c.site]);
    1
}

fn eval_lanes(host: &Host, c: Active, site: &EvalSite) {
    if c.mask.count_ones() <= FEW {
        few(c, site);
    } else if !has_loop(host, c, site) {
        match site.src.len() {
            1 => many::<1>(c, site),
            2 => many::<2>(c, site),
            3 => many::<3>(c, site),
            4 => many::<4>(c, site),
            _ => many::<MAX_SOURCES>(c, site),
        }
    }
}

/// Does the op if there is a loop for it. The loops are vector code for one kind of host.
fn has_loop(host: &Host, c: Active, site: &EvalSite) -> bool {
    #[cfg(target_arch = "x86_64")]
    return fast::eval(host, c, site);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (host, c, site);
        false
    }
}

/// One lane after the other.
fn few(c: Active, site: &EvalSite) {
    let types = site.op.sources();
    let (ty, second) = site.op.results();
    let n = site.src.len().min(MAX_SOURCES);
    let mut mask = c.mask;
    while mask != 0 {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        let mut src = [0_u64; MAX_SOURCES];
        for ((value, loc), ty) in src.iter_mut().zip(&site.src).zip(types.iter()) {
            *value = c.ctx.read(*loc, lane) & ty.mask();
        }
        let results = num::eval(site.op, &src[..n]);
        for ((loc, value), ty) in site.dst.iter().zip(results).zip([Some(ty), second]) {
            c.ctx.write(*loc, lane, as_lane(ty == Some(Ty::P), value));
        }
    }
}

/// Whole rows first, so that the kind of place is looked at once and not for each lane.
fn many<const N: usize>(c: Active, site: &EvalSite) {
    let types = site.op.sources();
    let (ty, second) = site.op.results();
    let n = site.src.len().min(N);
    let mut rows = [[0_u64; 32]; N];
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
        let src: [u64; N] = std::array::from_fn(|i| rows[i][lane]);
        let [first, other] = num::eval(site.op, &src[..n]);
        (out[0][lane], out[1][lane]) = (first, other);
    }
    for ((loc, row), ty) in site.dst.iter().zip(&mut out).zip([Some(ty), second]) {
        let is_pred = ty == Some(Ty::P);
        row.iter_mut().for_each(|v| *v = as_lane(is_pred, *v));
        c.ctx.write_row(*loc, c.mask, row);
    }
}

/// A result as a row holds it: a predicate is 0 or all ones.
fn as_lane(is_pred: bool, value: u64) -> u64 {
    if is_pred { 0_u64.wrapping_sub(u64::from(value != 0)) } else { value }
}

#[cfg(test)]
mod tests;
