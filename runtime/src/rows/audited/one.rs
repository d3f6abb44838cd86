//! Scalar accesses of a checked launch by one lane of a warp, as a thread does that takes a lock for others: what is done and told is the same as by rows.

use handloom_audit::{Addrs, Even, Site};
use handloom_ir::simt::Op;
use handloom_ir::types::StateSpace;

use super::super::Call;
use super::super::atomic::of_lane;
use super::super::check::Request;
use super::super::memory::wrap;
use super::evenly::stays_in_variable;
use super::{Teller, follow_range, goes_on, kind_of, proxy_of, range_of};
use crate::memory::access;
use crate::warp::repeats::{Step, Touch};

/// Does an access that is the next step of rounds that are counted ([`Repeats`](crate::warp::repeats::Repeats)). As [`access()`].
#[inline]
pub(super) fn again(c: &mut Call<'_>) -> Option<u64> {
    let warp = c.ctx.warp as usize;
    let touch = c.host.told.as_ref()?.repeats.next(c.site, c.mask, warp)??;
    let site = &c.tables.mems[c.site];
    let lane = c.mask.trailing_zeros() as usize & 31;
    if c.ctx.read(site.addr, lane) != touch.addr || c.host.memory.view.get_mut().age() != touch.view {
        return None;
    }
    let (same, failed) = act(c, lane, touch.at, touch.space)?;
    if (same, failed) != (touch.same, touch.failed) {
        return tell(c, &Request::made_by(&site.op), lane, Touch { same, failed, ..touch });
    }
    if let Some(told) = &c.host.told {
        told.repeats.pass();
    }
    Some(1)
}

/// Does an access of one lane, and tells of it, where that needs no look by all rules. The result is that of the call; `None` if nothing was done.
pub(super) fn access(c: &mut Call<'_>, r: &Request) -> Option<u64> {
    let is_scalar = r.bytes == r.element && r.bytes <= 8 && r.bytes.is_power_of_two() && r.has_all_elements();
    let site = &c.tables.mems[c.site];
    let is_packed = matches!(site.op, Op::Atom { access, .. } | Op::Red { access, .. } if access.ty.elements() > 1);
    if !c.mask.is_power_of_two() || !is_scalar || is_packed {
        return None;
    }
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
    let addr = c.ctx.read(site.addr, lane);
    let (same, failed) = act(c, lane, at, reach.space)?;
    let view = c.host.memory.view.get_mut().age();
    tell(c, r, lane, Touch { addr, at, space: reach.space, view, same, failed })
}

/// Does a scalar access of a lane at a place that passed its checks. Says whether it wrote what was there, and whether it is a `cas` that found another value.
fn act(c: &mut Call<'_>, lane: usize, at: u64, space: StateSpace) -> Option<(bool, bool)> {
    let site = &c.tables.mems[c.site];
    match site.op {
        Op::Load { access, .. } => {
            // SAFETY: the place passed the checks of the access, for one range, aligned.
            let value = unsafe { access::load(at, access.bytes()) };
            site.dst.iter().for_each(|d| c.ctx.write(*d, lane, value));
            Some((false, false))
        }
        Op::Store { access, .. } => {
            let bytes = access.bytes();
            let value = c.ctx.read(*site.src.first()?, lane) & u64::MAX >> (64 - 8 * bytes);
            // SAFETY: as above, for writing.
            let old = unsafe { access::load(at, bytes) };
            // SAFETY: as above.
            unsafe { access::store(at, bytes, value) }
            if old != value {
                c.touched();
            }
            Some((old == value, false))
        }
        Op::Atom { access, .. } | Op::Red { access, .. } => {
            let mut failed = false;
            of_lane(c, access, lane, at, space, |_, _, has_failed| failed = has_failed);
            Some((false, failed))
        }
        _ => None,
    }
}

/// Tells of an access that was done.
fn tell(c: &mut Call<'_>, r: &Request, lane: usize, touch: Touch) -> Option<u64> {
    let site = &c.tables.mems[c.site];
    let (does, order, scope) = kind_of(site)?;
    let Touch { at, space, same, failed, .. } = touch;
    let made = Site { span: site.span, does, order, scope, space: r.space, proxy: proxy_of(&site.op) };
    let who = (c.host.env.number(), c.warp());
    let told = c.host.told.as_mut()?;
    if !told.has_races {
        return Some(1);
    }
    let before = told.repeats.place();
    let mut teller = Teller::of(told, c.tables.mems.len(), c.site, who, made);
    let Some(number) = teller.number(space) else { return Some(1) };
    let done = teller.access(lane, at, r.bytes, same, failed);
    if teller.audit.repeats(number, done) {
        drop(teller);
        told.repeats.keep(before, Step { site: c.site, mask: c.mask, warp: c.ctx.warp as usize, touch: Some(touch) });
        return Some(1);
    }
    let mut all_same = [0; 32];
    all_same[lane] = u8::from(same);
    match site.op {
        Op::Load { access, .. } | Op::Store { access, .. } => {
            let addrs = [Even { lanes: c.mask, base: at, stride: 0 }];
            teller.tell_row(r, access.is_single, &[lane], Addrs::Even(&addrs), space, &all_same);
        }
        _ => teller.audit.accesses(number, &[done]),
    }
    let is_enough = teller.end();
    Some(goes_on(c, is_enough))
}
