//! Scalar accesses of a checked launch by one lane of a warp, as a thread does that takes a lock for others: what is done and told is the same as by rows.

use handloom_audit::{Addrs, Even, Site};
use handloom_ir::simt::Op;

use super::super::Call;
use super::super::atomic::of_lane;
use super::super::check::Request;
use super::super::memory::wrap;
use super::evenly::stays_in_variable;
use super::{Teller, follow_range, goes_on, kind_of, proxy_of, range_of};
use crate::memory::access;

/// Does an access of one lane, and tells of it, where that needs no look by all rules. The result is that of the call; `None` if nothing was done.
pub(super) fn access(c: &mut Call<'_>, r: &Request) -> Option<u64> {
    let is_scalar = r.bytes == r.element && r.bytes <= 8 && r.bytes.is_power_of_two() && r.has_all_elements();
    let site = &c.tables.mems[c.site];
    let is_packed = matches!(site.op, Op::Atom { access, .. } | Op::Red { access, .. } if access.ty.elements() > 1);
    if !c.mask.is_power_of_two() || !is_scalar || is_packed {
        return None;
    }
    let (does, order, scope) = kind_of(site)?;
    let lane = c.mask.trailing_zeros() as usize & 31;
    let bytes = u64::from(r.bytes);
    let addr = c.ctx.read(site.addr, lane).wrapping_add_signed(r.offset) & wrap(site.addr, u64::MAX);
    let end = addr.checked_add(bytes).filter(|_| addr & (bytes - 1) == 0)?;
    let reach = range_of(c, r, addr, end)?;
    if !stays_in_variable(c, (reach.low, reach.end)) {
        return None;
    }
    let (at, reads) = (reach.low, !matches!(site.op, Op::Store { .. }));
    if let Some((undo, filled)) = c.host.told.as_mut().and_then(|told| told.bits.as_mut())
        && !follow_range((undo, filled), r, reads, std::iter::once(at), &reach)
    {
        return None;
    }
    let (mut same, mut failed) = ([0; 32], false);
    match site.op {
        Op::Load { .. } => {
            // SAFETY: `range_of` found the access in one range, and it is aligned.
            let value = unsafe { access::load(at, r.bytes) };
            site.dst.iter().for_each(|d| c.ctx.write(*d, lane, value));
        }
        Op::Store { .. } => {
            let value = c.ctx.read(*site.src.first()?, lane) & u64::MAX >> (64 - 8 * bytes);
            // SAFETY: as above, for writing.
            let old = unsafe { access::load(at, r.bytes) };
            // SAFETY: as above.
            unsafe { access::store(at, r.bytes, value) }
            same[lane] = u8::from(old == value);
            if old != value {
                c.touched();
            }
        }
        Op::Atom { access, .. } | Op::Red { access, .. } => {
            of_lane(c, access, lane, at, reach.space, |_, _, has_failed| failed = has_failed);
        }
        _ => return None,
    }
    let made = Site { span: site.span, does, order, scope, space: r.space, proxy: proxy_of(&site.op) };
    let who = (c.host.env.number(), c.warp());
    let told = c.host.told.as_mut()?;
    if !told.has_races {
        return Some(1);
    }
    let mut teller = Teller::of(told, c.tables.mems.len(), c.site, who, made);
    let Some(number) = teller.number(reach.space) else { return Some(1) };
    let done = teller.access(lane, at, r.bytes, same[lane] == 1, failed);
    if teller.audit.repeats(number, done) {
        return Some(1);
    }
    match site.op {
        Op::Load { access, .. } | Op::Store { access, .. } => {
            let addrs = [Even { lanes: c.mask, base: at, stride: 0 }];
            teller.tell_row(r, access.is_single, &[lane], Addrs::Even(&addrs), reach.space, &same);
        }
        _ => teller.audit.accesses(number, &[done]),
    }
    let is_enough = teller.end();
    Some(goes_on(c, is_enough))
}
