//! Loads, stores and atomics that code gives away: lane by lane, by all rules. All lanes are checked before the first one has an effect.

use handloom_codegen::Failure;
use handloom_ir::simt::{Count, Op};
use handloom_ir::trap::TrapKind;
use handloom_ir::types::{Order, StateSpace};
use handloom_plan::abi::{Interleaved, Loc, WarpCtx};
use handloom_plan::host::Feature;

use super::Call;
use super::check::{self, Request, locate, record, refresh};
#[cfg(target_arch = "x86_64")]
use super::fast;
use super::{atomic, audited, counted, image, stack, tensor, transfer};
use crate::memory::{AllocKind, Hit, access};
use crate::warp::host::CtaHost;

/// The lanes of a mask.
pub(crate) fn lanes(mut mask: u32) -> impl Iterator<Item = usize> + Clone {
    std::iter::from_fn(move || {
        // The lowest bit of a mask that is not 0 is below 32.
        let lane = (mask != 0).then(|| mask.trailing_zeros() as usize & 31);
        mask &= mask.wrapping_sub(1);
        lane
    })
}

pub(super) fn memory(c: &mut Call<'_>) -> u64 {
    let site = &c.tables.mems[c.site];
    if Request::is_made_by(&site.op) {
        return if c.host.told.is_some() { audited::access(c) } else { by_all_lanes(c) };
    }
    if let Op::IsSpace(space) = site.op {
        for lane in lanes(c.mask) {
            let inside = is_in_space(c.host, space, c.ctx.read(site.addr, lane));
            if let Some(d) = site.dst.first() {
                c.ctx.write_pred(*d, lane, inside);
            }
        }
        return 1;
    }
    if let Op::Cvta { space: StateSpace::SharedCluster, to_space } = site.op {
        for lane in lanes(c.mask) {
            let (env, a) = (&c.host.env, c.ctx.read(site.addr, lane));
            let to = if to_space { env.cluster_offset(a) } else { env.cluster_address(a) };
            site.dst.iter().for_each(|d| c.ctx.write(*d, lane, to));
        }
        return 1;
    }
    if let Op::Stack(op) = site.op {
        return stack::stack(c, op);
    }
    if let Op::Image(op) = site.op {
        return image::image(c, op);
    }
    if let Op::Tensor(op) = site.op {
        return tensor::tensor(c, op);
    }
    if let Op::Transfer(op) = site.op {
        return transfer::transfer(c, op);
    }
    if let Op::Fence { order, scope } = site.op {
        return audited::fence(c, order, scope);
    }
    if let Op::Count(Count::Access { site, touch, .. }) = site.op {
        return counted::access(c, site, touch);
    }
    c.host.failure = Some(Failure::Bug(format!("memory routine for {:?}", site.op)));
    0
}

/// A load, a store or an atomic.
fn by_all_lanes(c: &mut Call<'_>) -> u64 {
    let r = Request::made_by(&c.tables.mems[c.site].op);
    // A guard that no lane passes: nothing is written.
    if c.mask == 0 {
        return 1;
    }
    let header = c.ctx.header();
    if let Some(how) = c.tables.mems[c.site].interleaved {
        return by_element(c, &r, how, &header);
    }
    let machine = c.host.machine;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the record of a device says nothing that was not detected, and so the host has the features that the function asks for.
    if machine.has(Feature::Avx2) && machine.has(Feature::Bmi1) && unsafe { quick(c, &r, &header) } {
        return 1;
    }
    by_lane(c, &r, &header)
}

/// An access by all rules.
#[inline(never)]
fn by_lane(c: &mut Call<'_>, r: &Request, header: &WarpCtx) -> u64 {
    let site = &c.tables.mems[c.site];
    let mut hosts = [0_u64; 32];
    let mut refused: Vec<(usize, u64, TrapKind)> = Vec::new();
    let mut found = None;
    let mut row = [0_u64; 32];
    c.ctx.read_row(site.addr, c.mask, &mut row);
    let (mut last, mut at_last) = (None, 0);
    for lane in lanes(c.mask) {
        let addr = wrap(site.addr, row[lane].wrapping_add_signed(r.offset));
        // What one lane may do at an address another may do too, but for local memory.
        if last == Some(addr)
            && let Some(Hit { kind: AllocKind::Shared, .. }) = found
        {
            hosts[lane] = at_last;
            continue;
        }
        match locate(c.host, r, CtaHost::thread(header, lane), addr) {
            Ok((at, hit)) => {
                (hosts[lane], at_last, last) = (at, at, Some(addr));
                found = Some(hit);
            }
            Err(why) => refused.push((lane, addr, why)),
        }
    }
    if !refused.is_empty() {
        record(c, r, site.span, &refused);
        return 0;
    }
    if let Some(hit) = found {
        refresh(c, r, hit, u64::from(r.bytes));
    }
    match site.op {
        Op::Load { access, .. } => load(c, r, access.is_single && access.order.is_strong(), &hosts),
        Op::Store { access, .. } => store(c, r, access.is_single && access.order.is_strong(), &hosts),
        Op::Atom { access, .. } | Op::Red { access, .. } => atomic::atomics(c, access, &hosts),
        _ => {}
    }
    1
}

/// A load or store of an element in local memory whose elements lie lane by lane. `r`: what the statement asks for, which is looked at at the addresses that the program knows.
#[inline(never)]
fn by_element(c: &mut Call<'_>, r: &Request, how: Interleaved, header: &WarpCtx) -> u64 {
    let site = &c.tables.mems[c.site];
    let bytes = u64::from(how.bytes);
    let first = c.host.env.local_base(32 * header.warp);
    let mut hosts = [0_u64; 32];
    let mut refused: Vec<(usize, u64, TrapKind)> = Vec::new();
    for lane in lanes(c.mask) {
        let place = c.ctx.read(site.addr, lane).wrapping_add_signed(how.offset);
        let inside = place.wrapping_sub(first).wrapping_sub(bytes * lane as u64).cast_signed() / 32;
        let thread = CtaHost::thread(header, lane);
        let start = c.host.env.local_base(thread).wrapping_add_signed(inside);
        let addr = start.wrapping_sub(bytes * u64::from(how.element));
        match locate(c.host, r, thread, addr) {
            Ok(_) => hosts[lane] = place,
            Err(why) => refused.push((lane, addr, why)),
        }
    }
    if !refused.is_empty() {
        record(c, r, site.span, &refused);
        return 0;
    }
    let one = Request { bytes: u32::from(how.bytes), element: u32::from(how.bytes), elements: 1, ..*r };
    match site.op {
        Op::Load { .. } => load(c, &one, false, &hosts),
        _ => store(c, &one, false, &hosts),
    }
    1
}

/// Does a load or store if every lane stays in its own local memory, in the shared memory of its CTA or in ranges that are at hand, and nothing else is to be asked.
/// Says whether it did. Addresses are tested as a row: objects in local and shared memory that are passed by address, as functions do, are the usual case.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1")]
fn quick(c: &mut Call<'_>, r: &Request, header: &WarpCtx) -> bool {
    let site = &c.tables.mems[c.site];
    let is_generic = r.space == StateSpace::Generic;
    let is_local = matches!(r.space, StateSpace::Local | StateSpace::ParamFunc);
    let is_global = r.space == StateSpace::Global;
    let is_weak = r.order == Order::Weak;
    let (is_load, is_plain) = match site.op {
        Op::Load { access, .. } => (true, is_weak || !access.is_single),
        Op::Store { access, .. } => (false, is_weak || !access.is_single),
        _ => (false, false),
    };
    if is_plain && r.space == StateSpace::Shared {
        return quick_shared(c, r, is_load);
    }
    let bytes = u64::from(r.bytes);
    let env = &c.host.env;
    let (room, room_of_shared) = (env.local_size.wrapping_sub(bytes), u64::from(env.shared_size).wrapping_sub(bytes));
    let has_local = !is_global && bytes <= env.local_size;
    let has_shared = is_generic && bytes <= u64::from(env.shared_size) && r.order != Order::Mmio;
    let is_fit = bytes.is_power_of_two() && env.local_stride <= u64::from(u32::MAX);
    if !is_plain || !(is_generic || is_local || is_global) || !r.has_all_elements() || !is_fit {
        return false;
    }
    let mut at = [0; 32];
    c.ctx.read_row(site.addr, c.mask, &mut at);
    let width = wrap(site.addr, u64::MAX);
    at.iter_mut().for_each(|a| *a = a.wrapping_add_signed(r.offset) & width);
    let (base, stride) = (env.local_base(32 * header.warp), env.local_stride & 0xffff_ffff);
    let (mut any, mut far, mut shared) = (0, 0_u32, 0_u32);
    for (lane, addr) in (0_u64..).zip(&at) {
        let on = (u64::from(c.mask) >> lane & 1).wrapping_neg();
        let inside = addr.wrapping_sub(base.wrapping_add(stride * lane));
        any |= addr & on;
        far |= u32::from(inside > room || !has_local) << lane;
        shared |= u32::from(addr.wrapping_sub(env.shared_base) <= room_of_shared && has_shared) << lane;
    }
    far &= c.mask & !shared;
    // What only some accesses may do in local memory is looked at by all rules.
    let is_own = c.mask & !shared & !far != 0;
    if any & (bytes - 1) != 0 || far != 0 && is_local || is_own && !is_weak {
        return false;
    }
    if far != 0 {
        // Who may read it is looked at by all rules.
        if c.host.unread.is_some() {
            return false;
        }
        let view = c.host.memory.view.get_mut();
        let mut found = Hit::NONE;
        let (mut left, mut n_ranges) = (far, 0);
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            left &= left - 1;
            // What one lane may do with a range another may do too.
            if found.holds(at[lane], bytes) {
                continue;
            }
            match view.at_hand(at[lane], bytes, !is_load) {
                Some(hit) if !is_global && is_weak || check::is_global(hit.kind) => found = hit,
                _ => return false,
            }
            n_ranges += 1;
            if n_ranges <= MOST_RANGES {
                left &= !lanes_within(&found, bytes, &at);
            }
        }
        refresh(c, r, found, bytes);
    } else if c.mask & !shared == 0 {
        let (base, size) = (c.host.env.shared_base, u64::from(c.host.env.shared_size));
        refresh(c, r, Hit { base, size, kind: AllocKind::Shared }, bytes);
    }
    move_rows(c, is_load, r.element, &at);
    true
}

/// Ranges of memory in which a row of addresses lies that are looked for together.
#[cfg(target_arch = "x86_64")]
const MOST_RANGES: u32 = 4;

/// The lanes whose accesses of so many bytes lie in a range.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,bmi1")]
fn lanes_within(range: &Hit, bytes: u64, at: &[u64; 32]) -> u32 {
    (0_u32..).zip(at).fold(0, |all, (lane, a)| all | u32::from(range.holds(*a, bytes)) << lane)
}

/// The same for shared memory, whose addresses are offsets.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,bmi1")]
fn quick_shared(c: &mut Call<'_>, r: &Request, is_load: bool) -> bool {
    let (base, size) = (c.host.env.shared_base, c.host.env.shared_size);
    let Loc::Row32(_) = c.tables.mems[c.site].addr else { return false };
    if !r.bytes.is_power_of_two() || !r.has_all_elements() || r.bytes > size {
        return false;
    }
    // The sum wraps at 32 bits, as the address does.
    let mut at = fast::row(c.ctx, c.tables.mems[c.site].addr);
    let (mut most, mut any) = (0, 0);
    for (lane, a) in (0_u32..).zip(&mut at) {
        *a = a.wrapping_add(r.offset as u32);
        let on = (c.mask >> lane & 1).wrapping_neg();
        most = most.max(*a & on);
        any |= *a & on;
    }
    if most > size - r.bytes || any & (r.bytes - 1) != 0 {
        return false;
    }
    let at: [u64; 32] = fast::map(&at, |a| base + u64::from(a));
    move_rows(c, is_load, r.element, &at);
    true
}

/// Reads or writes elements of so many bytes at addresses that `quick` passed.
#[inline(always)]
fn move_rows(c: &mut Call<'_>, is_load: bool, element: u32, at: &[u64; 32]) {
    match (is_load, element) {
        (true, 1) => load_rows::<1>(c, at),
        (true, 2) => load_rows::<2>(c, at),
        (true, 4) => load_rows::<4>(c, at),
        (true, _) => load_rows::<8>(c, at),
        (false, 1) => store_rows::<1>(c, at),
        (false, 2) => store_rows::<2>(c, at),
        (false, 4) => store_rows::<4>(c, at),
        (false, _) => store_rows::<8>(c, at),
    }
}

/// Reads elements of so many bytes at addresses that `quick` passed.
#[inline(always)]
fn load_rows<const BYTES: u32>(c: &mut Call<'_>, at: &[u64; 32]) {
    let site = &c.tables.mems[c.site];
    for (i, d) in (0_u64..).zip(&site.dst) {
        // SAFETY: `quick` passed the whole access, aligned.
        let of = |lane: usize| unsafe { access::load(at[lane] + i * u64::from(BYTES), BYTES) };
        match c.mask {
            u32::MAX => c.ctx.write_lanes(*d, 0..32, of),
            mask => c.ctx.write_lanes(*d, lanes(mask), of),
        }
    }
}

/// Writes elements. They go one after the other: lanes that write to one place write the same elements, and the last lane wins each.
#[inline(always)]
fn store_rows<const BYTES: u32>(c: &mut Call<'_>, at: &[u64; 32]) {
    let site = &c.tables.mems[c.site];
    let mut row = [0; 32];
    for (i, s) in (0_u64..).zip(&site.src) {
        c.ctx.read_row(*s, c.mask, &mut row);
        // SAFETY: `quick` passed the whole access for writing, aligned.
        let put = |lane: usize| unsafe { access::store(at[lane] + i * u64::from(BYTES), BYTES, row[lane]) };
        match c.mask {
            u32::MAX => (0..32).for_each(put),
            mask => lanes(mask).for_each(put),
        }
    }
    c.touched();
}

/// A 32-bit address wraps at its own width.
pub(super) fn wrap(loc: Loc, addr: u64) -> u64 {
    match loc {
        Loc::Row32(_) | Loc::Linear { bits: 32, .. } | Loc::Shaped { bits: 32, .. } | Loc::Pieces { bits: 32, .. } => {
            addr & 0xffff_ffff
        }
        Loc::Row64(_) | Loc::Scalar(_) | Loc::Imm(_) | Loc::Linear { .. } | Loc::Shaped { .. } | Loc::Pieces { .. } => {
            addr
        }
    }
}

/// `is_single`: two 64-bit elements that are read as one.
fn load(c: &mut Call<'_>, r: &Request, is_single: bool, hosts: &[u64; 32]) {
    let site = &c.tables.mems[c.site];
    for lane in lanes(c.mask) {
        let at = hosts[lane];
        if is_single && r.bytes == 16 {
            // SAFETY: `locate` passed 16 aligned bytes. Writing back what is there needs a writable page, which every open page is.
            let value = unsafe { access::update_16(at, |v| v) };
            let halves = [value as u64, (value >> 64) as u64];
            site.dst.iter().zip(halves).for_each(|(d, v)| c.ctx.write(*d, lane, v));
            continue;
        }
        for (i, d) in site.dst.iter().enumerate() {
            if r.elements >> i & 1 == 1 {
                // SAFETY: `locate` passed the element, aligned, or the one that `by_element` has in its place.
                let value = unsafe { access::load(at + i as u64 * u64::from(r.element), r.element) };
                c.ctx.write(*d, lane, value);
            }
        }
    }
}

fn store(c: &mut Call<'_>, r: &Request, is_single: bool, hosts: &[u64; 32]) {
    let site = &c.tables.mems[c.site];
    for lane in lanes(c.mask) {
        let at = hosts[lane];
        if is_single && r.bytes == 16 {
            let half = |i: usize| site.src.get(i).map_or(0, |s| u128::from(c.ctx.read(*s, lane)));
            let value = half(0) | half(1) << 64;
            // SAFETY: `locate` passed 16 aligned bytes for writing.
            unsafe { access::update_16(at, |_| value) };
            continue;
        }
        for (i, s) in site.src.iter().enumerate() {
            if r.elements >> i & 1 == 1 {
                let value = c.ctx.read(*s, lane);
                // SAFETY: `locate` passed the element for writing, aligned, or the one that `by_element` has in its place.
                unsafe { access::store(at + i as u64 * u64::from(r.element), r.element, value) }
            }
        }
    }
    c.touched();
}

/// `isspacep`.
fn is_in_space(host: &mut CtaHost, space: StateSpace, addr: u64) -> bool {
    let own = host.env.shared_base;
    let view = host.memory.view.get_mut();
    let falls_into = view.state_space(addr);
    let near = |base: &u64| addr.wrapping_sub(*base) < handloom_interp::env::CLUSTER_STRIDE;
    match space {
        StateSpace::Shared => falls_into == StateSpace::Shared && near(&own),
        StateSpace::SharedCluster => falls_into == StateSpace::Shared && (near(&own) || view.peers.iter().any(near)),
        StateSpace::ParamEntry | StateSpace::ParamFunc => falls_into == StateSpace::ParamEntry,
        // Parameters of an entry are there too: their window is contained in that of global memory.
        StateSpace::Global => [space, StateSpace::ParamEntry].contains(&falls_into),
        StateSpace::Const | StateSpace::Local => falls_into == space,
        StateSpace::Generic => true,
        StateSpace::Reg | StateSpace::Sreg | StateSpace::Tex => false,
    }
}
