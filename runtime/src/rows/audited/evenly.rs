//! Plain accesses of a checked launch whose lanes stand at even distances, as tables of the code say: all lanes are located, done and told together.

use handloom_audit::{Addrs, Does, Even, Site};
use handloom_ir::simt::Op;
use handloom_ir::types::{Order, StateSpace};
use handloom_plan::abi::{Loc, Origin};
use handloom_plan::analysis::shape::MOST_PIECES;

use super::super::Call;
use super::super::check::Request;
use super::super::memory::{lanes, wrap};
use super::{Reach, Teller, follow_range, goes_on, in_order, place_of, proxy_of, range_of, store_rows};
use crate::memory::access;

/// As many parts as a shape has at most.
const MOST: usize = MOST_PIECES;

/// The largest distance of two lanes in bytes.
const FAR: i64 = 1 << 16;

/// Does a load or store, and tells of it, if all lanes stand at even distances in one range, and nothing but races can be wrong with it. The result is that of the call; `None` if nothing was
/// done.
pub(super) fn access(c: &mut Call<'_>, r: &Request) -> Option<u64> {
    let site = &c.tables.mems[c.site];
    let (does, plain) = match site.op {
        Op::Load { access, .. } => (Does::Read, access),
        Op::Store { access, .. } => (Does::Write, access),
        _ => return None,
    };
    let bytes = u64::from(r.bytes);
    if plain.order != Order::Weak || c.mask == 0 || !r.has_all_elements() || !bytes.is_power_of_two() {
        return None;
    }
    let mut parts = [Even::NONE; MOST];
    let n = parts_of(c, &site.addr, r, &mut parts)?;
    let parts = &mut parts[..n];
    let (mut low, mut high, mut odd) = (u64::MAX, 0, 0);
    for part in parts.iter() {
        let (first, last) = part.ends();
        (low, high, odd) = (low.min(first), high.max(last), odd | first | (last - first) | u64::from(part.stride));
    }
    let end = high.checked_add(bytes).filter(|_| odd & (bytes - 1) == 0)?;
    let reach = range_of(c, r, low, end)?;
    let (base, space) = (reach.low.wrapping_sub(low), reach.space);
    parts.iter_mut().for_each(|part| part.base = part.base.wrapping_add(base));
    if !stays_in_variable(c, (reach.low, reach.end)) || !has_all_bits(c, r, parts, &reach) {
        return None;
    }
    let mut some = None;
    let all = in_order(c, &mut some);
    let (parts, first) = (&*parts, parts[0]);
    let place = |lane: usize| parts.iter().find(|part| part.lanes >> lane & 1 == 1).unwrap_or(&first).of(lane);
    let same = match (does, r.element) {
        (Does::Read, 1) => load::<1>(c, parts),
        (Does::Read, 2) => load::<2>(c, parts),
        (Does::Read, 4) => load::<4>(c, parts),
        (Does::Read, _) => load::<8>(c, parts),
        (_, 1) => store_rows::<1>(c, all, place),
        (_, 2) => store_rows::<2>(c, all, place),
        (_, 4) => store_rows::<4>(c, all, place),
        (_, _) => store_rows::<8>(c, all, place),
    };
    let who = (c.host.env.number(), c.warp());
    let (order, scope, proxy) = (plain.order, plain.scope, proxy_of(&site.op));
    let made = Site { span: site.span, does, order, scope, space: r.space, proxy };
    let Some(told) = &mut c.host.told else { return Some(1) };
    let mut teller = Teller::of(told, c.tables.mems.len(), c.site, who, made);
    teller.tell_row(r, plain.is_single, all, Addrs::Even(parts), space, &same);
    let is_enough = teller.end();
    Some(goes_on(c, is_enough))
}

/// The addresses of the lanes of a call in parts; `None` where tables do not say that, or distances are negative or far.
fn parts_of(c: &Call<'_>, loc: &Loc, r: &Request, parts: &mut [Even; MOST]) -> Option<usize> {
    let mut starts = [0; MOST];
    let (len, stride) = c.ctx.pieces(loc, &mut starts)?;
    if !(0..FAR).contains(&stride) {
        return None;
    }
    let by = u32::try_from(stride).ok()?;
    let width = wrap(*loc, u64::MAX);
    let mut n = 0_usize;
    for (first, start) in (0..32).step_by(len).zip(starts) {
        let here = c.mask & (u32::MAX >> (32 - len)) << first;
        if here == 0 {
            continue;
        }
        let start = start.wrapping_add_signed(r.offset) & width;
        // None of the lanes wraps at the width of the address.
        start.checked_add(u64::from(by) * 32).filter(|end| *end <= width)?;
        let base = start.wrapping_sub(u64::from(by) * first as u64);
        match n.checked_sub(1).and_then(|last| parts.get_mut(last)) {
            Some(last) if last.base == base => last.lanes |= here,
            _ => {
                *parts.get_mut(n)? = Even { lanes: here, base, stride: by };
                n += 1;
            }
        }
    }
    Some(n)
}

/// Whether a range lies in the variable that its address was made from, if somebody asks.
pub(super) fn stays_in_variable(c: &Call<'_>, (low, end): (u64, u64)) -> bool {
    let variable = c.tables.mems[c.site].variable;
    let Some(variable) = variable.filter(|_| c.host.told.as_ref().is_some_and(|told| told.has_memory)) else {
        return true;
    };
    let Origin::Symbol(sym) = variable else { return false };
    place_of(c, sym).is_none_or(|(base, size)| low >= base && end - base <= size)
}

/// Whether nobody looks for bytes that nobody wrote, or all that is read was written. What is written is noted then, and what global
/// memory held is kept.
fn has_all_bits(c: &mut Call<'_>, r: &Request, parts: &[Even], reach: &Reach) -> bool {
    let Some((undo, filled)) = c.host.told.as_mut().and_then(|told| told.bits.as_mut()) else { return true };
    if reach.space == StateSpace::Global && !r.writes() {
        return !undo.began_blank(reach.low, reach.end - reach.low);
    }
    if reach.space == StateSpace::Global {
        let all = parts.iter().flat_map(|part| lanes(part.lanes).map(|lane| part.of(lane)));
        return follow_range((undo, filled), r, false, all, reach);
    }
    for part in parts {
        let (first, last) = part.ends();
        let bytes = u64::from(r.bytes);
        let is_whole = u64::from(part.stride) <= bytes
            && part.lanes.count_ones() == 32 - part.lanes.leading_zeros() - part.lanes.trailing_zeros();
        if is_whole {
            match r.writes() {
                true => filled.fill_range(first, last + bytes - first),
                false if !filled.is_range_filled(first, last + bytes - first) => return false,
                false => {}
            }
            continue;
        }
        for lane in (0..32).filter(|lane| part.lanes >> lane & 1 == 1) {
            match r.writes() {
                true => filled.fill_range(part.of(lane), bytes),
                false if !filled.is_range_filled(part.of(lane), bytes) => return false,
                false => {}
            }
        }
    }
    true
}

/// Reads all elements of so many bytes.
fn load<const BYTES: u32>(c: &Call<'_>, parts: &[Even]) -> [u8; 32] {
    let site = &c.tables.mems[c.site];
    let mut values = [0; 32];
    for (i, d) in (0_u64..).zip(&site.dst) {
        let skip = i * u64::from(BYTES);
        for part in parts {
            if part.stride == 0 {
                // SAFETY: `access` found all lanes in one range, aligned.
                let value = unsafe { access::load(part.base + skip, BYTES) };
                lanes(part.lanes).for_each(|lane| values[lane] = value);
                continue;
            }
            for lane in lanes(part.lanes) {
                // SAFETY: as above.
                values[lane] = unsafe { access::load(part.of(lane) + skip, BYTES) };
            }
        }
        c.ctx.write_row(*d, c.mask, &values);
    }
    [0; 32]
}
