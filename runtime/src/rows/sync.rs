//! Warp-level ops: lanes that are named together meet, at whatever place of the program, and compute together.

#[cfg(target_arch = "x86_64")]
use std::mem::MaybeUninit;

use handloom_audit::misuse::Wrong;
use handloom_interp::warp;
use handloom_ir::simt::{MatrixOp, Op, Product, Run};
use handloom_ir::types::ShflMode;
use handloom_plan::Host;
use handloom_plan::abi::{CopyKind, Loc};

use super::Call;
use super::memory::lanes;
#[cfg(target_arch = "x86_64")]
use super::{fast, matrix};
use crate::warp::context::predicate;
use crate::warp::host::{CtaHost, Parked};

/// `Routine::Sync`.
pub(super) fn sync(c: &mut Call<'_>) -> u64 {
    let copy = if c.x == CopyKind::Full as u64 { CopyKind::Full } else { CopyKind::Masked };
    // The lanes of the call with their members, and the member mask of a lane.
    let here = Parked { ctx: c.ctx, site: c.site, copy, lanes: c.mask, members: 0, values: Vec::new() };
    if c.host.told.as_ref().is_some_and(|told| told.has_misuses) {
        let (span, warp) = (c.tables.syncs[c.site].span, c.warp());
        let members = members_of(&here);
        for lane in lanes(c.mask).filter(|lane| members[*lane] >> lane & 1 == 0) {
            c.host.tell_misuse(Wrong::MaskWithoutCaller, (span, 32 * warp + lane as u32), None);
        }
    }
    // If the whole warp is here, no lane is parked elsewhere.
    if has_constant_members(&here) && of_whole_warp(&c.host.machine, &here) {
        return 1;
    }
    let w = c.warp() as usize;
    let op = c.tables.syncs[c.site].op;
    let live = c.host.live(w);
    let member_mask = |lane: usize| member_mask(&here, lane);
    if c.host.warps[w].parked.is_empty() {
        let members = member_mask(c.mask.trailing_zeros().min(31) as usize);
        if members & live & !c.mask == 0 && is_uniform(&here, members) {
            complete(c.host, &[Parked { members, ..here.clone() }]);
            return 1;
        }
        if let Some(with) = met_groups(&here, live) {
            complete_groups(c.host, &here, &with);
            return 1;
        }
    }
    let of = |(lanes, members)| Parked { lanes, members, ..here.clone() };
    let groups: Vec<Parked> = groups(&here).map(of).collect();
    // Choice: a lane that its own mask does not name is undefined; it takes part when the named ones are there.
    let is_met = |g: &Parked, elsewhere: u32| g.members & live & !(g.lanes | elsewhere) == 0;
    if groups.iter().all(|g| matching(c.host, w, op, g.members) == 0 && is_met(g, 0)) {
        groups.iter().for_each(|g| complete(c.host, std::slice::from_ref(g)));
        return 1;
    }
    for g in groups {
        if is_met(&g, matching(c.host, w, op, g.members)) {
            let mut all = take_matching(c.host, w, op, g.members);
            all.push(g);
            complete(c.host, &all);
            all.iter().for_each(release);
        } else {
            c.host.warps[w].parked.push(Parked { values: values_of(&g), ..g });
        }
    }
    0
}

/// The lanes of a call that name the same members, with these, in the order of their first lanes.
fn groups(here: &Parked) -> impl Iterator<Item = (u32, u32)> {
    let named = members_of(here);
    let mut left = here.lanes;
    std::iter::from_fn(move || {
        let members = *named.get(left.trailing_zeros() as usize)?;
        let group = named.iter().enumerate().fold(0, |m, (l, n)| m | u32::from(*n == members) << l) & left;
        left &= !group;
        Some((group, members))
    })
}

/// By lane, those of a call that name the same members, if nobody is missing in any of these groups, as where a warp exchanges values in tiles; the rows of matrices are left to others.
fn met_groups(here: &Parked, live: u32) -> Option<[u32; 32]> {
    if matches!(here.op().op, Op::Matrix(_)) {
        return None;
    }
    let mut with = [0; 32];
    for (group, members) in groups(here) {
        if members & live & !group != 0 {
            return None;
        }
        lanes(group).for_each(|l| with[l] = group);
    }
    Some(with)
}

/// Computes the op for groups of lanes, which are given by lane, and writes the results.
fn complete_groups(host: &CtaHost, here: &Parked, with: &[u32; 32]) {
    let op = here.op().op;
    let firsts = || lanes(here.lanes).filter(|l| with[*l].trailing_zeros() as usize == *l);
    if op == Op::BarWarp {
        let w = here.ctx.header().warp as usize;
        firsts().for_each(|l| host.tell(|audit, cta| audit.warp_barrier(cta, w, with[l], host.live(w))));
        return;
    }
    let mut src = [[0; 32]; 3];
    read_rows(std::slice::from_ref(here), here.lanes, &mut src);
    let mut dst = [[0; 32]; 2];
    // One value for a group.
    let mut put = |group: u32, value: u32| lanes(group).for_each(|l| dst[0][l] = value.into());
    if let Op::Vote(mode) = op {
        let trues = warp::true_lanes(&src[0]);
        firsts().for_each(|l| put(with[l], warp::vote(mode, with[l], trues & with[l])));
    } else if let Op::Redux { op, signed } = op {
        let values = src[0].map(|v| v as u32);
        firsts().for_each(|l| put(with[l], warp::redux(op, signed, with[l], &values)));
    } else if let Op::Shfl(mode) = op {
        let [a, b, c] = src.map(|row| row.map(|v| v as u32));
        if lanes(here.lanes).any(|l| with[l] >> (mode.source(l as u32, b[l], c[l]).0 & 31) & 1 == 0) {
            host.doubt();
        }
        let (values, in_range) = warp::shfl(mode, here.lanes, with, &a, &b, &c);
        dst[0] = values.map(u64::from);
        dst[1] = std::array::from_fn(|l| u64::from(in_range >> l & 1));
    } else {
        for first in firsts() {
            let group = with[first];
            let of_group = src.map(|row| std::array::from_fn(|l| if group >> l & 1 == 1 { row[l] } else { 0 }));
            let mut own = [[0; 32]; 2];
            warp::complete(op, group, &of_group, &mut own);
            for (row, own) in dst.iter_mut().zip(&own) {
                lanes(group).for_each(|l| row[l] = own[l]);
            }
        }
    }
    write_rows(std::slice::from_ref(here), op, &dst);
}

/// Lets parked lanes of a warp go on whose partners have exited.
pub(crate) fn complete_parked(host: &mut CtaHost, w: usize) {
    let live = host.live(w);
    let mut i = 0;
    while let Some((op, members)) = host.warps[w].parked.get(i).map(|p| (p.op().op, p.members)) {
        let there = matching(host, w, op, members);
        if members & live & !there == 0 {
            let all = take_matching(host, w, op, members);
            complete(host, &all);
            all.iter().for_each(release);
            i = 0;
        } else {
            i += 1;
        }
    }
}

/// Whether all lanes of a call name the same members, whatever registers hold.
fn has_constant_members(p: &Parked) -> bool {
    matches!(p.operands().src.last(), None | Some(Loc::Imm(_)))
}

/// Whether all lanes of a call name the same members.
fn is_uniform(p: &Parked, members: u32) -> bool {
    match p.operands().src.last() {
        None | Some(Loc::Imm(_) | Loc::Scalar(_)) => true,
        Some(_) => {
            let named = members_of(p);
            lanes(p.lanes).all(|l| named[l] == members)
        }
    }
}

/// The member mask is the last source.
fn member_mask(p: &Parked, lane: usize) -> u32 {
    p.operands().src.last().map_or(u32::MAX, |loc| p.ctx.read(*loc, lane) as u32)
}

/// The same of all lanes of a call.
fn members_of(p: &Parked) -> [u32; 32] {
    let mut row = [u64::MAX; 32];
    if let Some(loc) = p.operands().src.last() {
        p.ctx.read_row(*loc, p.lanes, &mut row);
    }
    row.map(|v| v as u32)
}

/// Where lanes have what they hand over: the sources before the membermask.
fn sources(p: &Parked) -> &[Loc] {
    let src = &p.operands().src;
    &src[..src.len().saturating_sub(1)]
}

/// What lanes hand over.
fn values_of(p: &Parked) -> Vec<[u64; 32]> {
    let of = |loc: &Loc| {
        let mut row = [0; 32];
        p.ctx.read_row(*loc, p.lanes, &mut row);
        row
    };
    sources(p).iter().map(of).collect()
}

fn fits(p: &Parked, op: Op, members: u32) -> bool {
    p.members == members && p.op().op == op
}

/// Lanes that are parked at such an op.
fn matching(host: &CtaHost, w: usize, op: Op, members: u32) -> u32 {
    host.warps[w].parked.iter().filter(|p| fits(p, op, members)).fold(0, |m, p| m | p.lanes)
}

fn take_matching(host: &mut CtaHost, w: usize, op: Op, members: u32) -> Vec<Parked> {
    host.warps[w].parked.extract_if(.., |p| fits(p, op, members)).collect()
}

fn release(p: &Parked) {
    p.ctx.resume(p.op().next, p.lanes);
}

/// Computes the op for all lanes that are there, and writes each lane's results to its own rows.
fn complete(host: &CtaHost, all: &[Parked]) {
    let Some(first) = all.first() else { return };
    let op = first.op().op;
    let active = all.iter().fold(0, |m, p| m | p.lanes);
    if op == Op::BarWarp {
        let w = first.ctx.header().warp as usize;
        host.tell(|audit, cta| audit.warp_barrier(cta, w, active, host.live(w)));
    }
    if let [one] = all
        && of_whole_warp(&host.machine, one)
    {
        return;
    }
    if let Op::Matrix(op) = op {
        let mut src = vec![[0; 32]; op.sources().len() - 1];
        let mut dst = vec![[0; 32]; op.results().len()];
        read_rows(all, active, &mut src);
        for (row, ty) in src.iter_mut().zip(op.sources()) {
            row.iter_mut().for_each(|v| *v &= ty.mask());
        }
        warp::complete(Op::Matrix(op), active, &src, &mut dst);
        write_rows(all, Op::Matrix(op), &dst);
        return;
    }
    // No other op has more.
    let (mut src, mut dst) = ([[0; 32]; 3], [[0; 32]; 2]);
    read_rows(all, active, &mut src);
    if let Op::Shfl(mode) = op {
        let source = |lane: usize| mode.source(lane as u32, src[1][lane] as u32, src[2][lane] as u32).0 & 31;
        if lanes(active).any(|lane| active >> source(lane) & 1 == 0) {
            host.doubt();
        }
    }
    warp::complete(op, active, &src, &mut dst);
    write_rows(all, op, &dst);
}

/// Writes results to the rows of all lanes that are there. A predicate is all ones there.
fn write_rows(all: &[Parked], op: Op, rows: &[[u64; 32]]) {
    for p in all {
        for (i, (loc, row)) in p.operands().dst.iter().zip(rows).enumerate() {
            if warp::is_predicate(op, i) {
                p.ctx.write_row(*loc, p.lanes, &row.map(|v| predicate(v != 0)));
            } else {
                p.ctx.write_row(*loc, p.lanes, row);
            }
        }
    }
}

/// The sources before the membermask, by lane. Lanes that are not there count as zero.
fn read_rows(all: &[Parked], active: u32, rows: &mut [[u64; 32]]) {
    for p in all {
        for (i, (row, loc)) in rows.iter_mut().zip(sources(p)).enumerate() {
            if let Some(kept) = p.values.get(i) {
                lanes(p.lanes).for_each(|lane| row[lane] = kept[lane]);
                continue;
            }
            if p.lanes == active {
                p.ctx.read_row(*loc, active, row);
                // As in the interpreter.
                row.iter_mut().enumerate().for_each(|(l, v)| *v = if active >> l & 1 == 1 { *v } else { 0 });
                continue;
            }
            for lane in lanes(p.lanes) {
                row[lane] = p.ctx.read(*loc, lane);
            }
        }
    }
}

/// Does a warp-level op at once if the whole warp is there and there is code for that.
fn of_whole_warp(machine: &Host, p: &Parked) -> bool {
    if p.lanes != u32::MAX || !p.values.is_empty() {
        return false;
    }
    if let Op::Shfl(mode) = p.op().op {
        shuffle(p, mode);
        return true;
    }
    by_vectors(machine, p)
}

/// Does a warp-level op for the whole warp if there is vector code for it on this host.
fn by_vectors(machine: &Host, p: &Parked) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let Op::Matrix(op) = p.op().op else { return false };
        let Some(width) = matrix::Width::of(machine) else { return false };
        let Some((_, from)) = p.operands().src.split_last() else { return false };
        if let MatrixOp::Blocks(blocks) = op {
            const SOURCES: usize = matrix::MAX_ROWS_OF_BLOCKS;
            return with_rows::<SOURCES, { matrix::MAX_RESULTS_OF_BLOCKS }, 8>(p, from, |src, out| {
                // SAFETY: all places have a row of the context, which may be read and written, since no code runs on it now, or one of `with_rows`.
                unsafe { matrix::blocks(width, blocks, src, out) };
                true
            });
        }
        if let MatrixOp::Run(run) = op {
            let is_apart = p.operands().is_apart;
            const SOURCES: usize = 12 * Run::MOST;
            return with_rows::<SOURCES, { 4 * Run::MOST }, 0>(p, from, |src, out| {
                // SAFETY: as above.
                unsafe { matrix::run(width, run, src, out, is_apart) };
                true
            });
        }
        if let Some(product) = matrix::has_doubles(op) {
            doubles_by_vectors(width, product, p, from);
            return true;
        }
        if !matrix::is_here(op) {
            return false;
        }
        with_rows::<{ matrix::MAX_ROWS }, { matrix::MAX_RESULTS }, 0>(p, from, |src, out| {
            // SAFETY: as above.
            unsafe { matrix::product(width, op, src, out) }
        })
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (machine, p);
        false
    }
}

/// A `shfl` of the whole warp.
fn shuffle(p: &Parked, mode: ShflMode) {
    let operands = p.operands();
    let [a, b, c] = [0, 1, 2].map(|i| {
        let mut row = [0; 32];
        p.ctx.read_row(operands.src[i], u32::MAX, &mut row);
        row.map(|v| v as u32)
    });
    let (values, in_range) = warp::shfl(mode, u32::MAX, &[u32::MAX; 32], &a, &b, &c);
    let mut results = operands.dst.iter();
    if let Some(to) = results.next() {
        p.ctx.write_row(*to, u32::MAX, &values.map(u64::from));
    }
    if let Some(to) = results.next() {
        let row = std::array::from_fn(|lane| if in_range >> lane & 1 == 1 { 0xffff_ffff } else { 0 });
        p.ctx.write_row(*to, u32::MAX, &row);
    }
}

/// Calls a function with a row for each source and each result: those of the context, or copies where some are no rows. The arrays are not cleared: that would
/// take longer than some products. `FEW`: how many sources are copied without an allocation; code that never copies is quicker.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn with_rows<const SOURCES: usize, const RESULTS: usize, const FEW: usize>(
    p: &Parked,
    from: &[Loc],
    f: impl FnOnce(&[*const fast::Row], &[*mut u32]) -> bool,
) -> bool {
    let [from_rows, to_rows] = &p.operands().rows;
    let [from_others, to_others] = &p.operands().others;
    let from_rows = &from_rows[..from.len()];
    let from_others = &from_others[..from_others.partition_point(|i| (*i as usize) < from.len())];
    if from_rows.len() > SOURCES || to_rows.len() > RESULTS {
        return false;
    }
    if from_others.len() > FEW || !to_others.is_empty() {
        return with_copies(p, from, f);
    }
    let mut src = [const { MaybeUninit::uninit() }; SOURCES];
    let mut out = [const { MaybeUninit::uninit() }; RESULTS];
    let mut few = [const { MaybeUninit::uninit() }; FEW];
    let context = p.ctx.warp.cast::<u8>();
    for (place, at) in src.iter_mut().zip(from_rows) {
        place.write(context.wrapping_add(*at as usize).cast_const().cast::<fast::Row>());
    }
    for (place, at) in out.iter_mut().zip(to_rows) {
        place.write(context.wrapping_add(*at as usize).cast::<u32>());
    }
    for (copy, i) in few.iter_mut().zip(from_others) {
        let i = *i as usize;
        src[i].write(std::ptr::from_ref(copy.write(fast::row(p.ctx, from[i]))));
    }
    // SAFETY: as many places as there are sources and results were written.
    let (src, out) = unsafe { (src[..from_rows.len()].assume_init_ref(), out[..to_rows.len()].assume_init_ref()) };
    f(src, out)
}

/// The same where some sources or results are no rows of the context.
#[cfg(target_arch = "x86_64")]
#[cold]
fn with_copies(p: &Parked, from: &[Loc], f: impl FnOnce(&[*const fast::Row], &[*mut u32]) -> bool) -> bool {
    let to = &p.operands().dst;
    let row = |loc: &Loc| fast::place_of_row(p.ctx, *loc);
    let copies: Vec<fast::Row> =
        from.iter().filter(|loc| row(loc).is_none()).map(|loc| fast::row(p.ctx, *loc)).collect();
    let mut copy = copies.iter();
    let src: Vec<*const fast::Row> = from
        .iter()
        .map(|loc| match row(loc) {
            Some(row) => row.cast_const().cast(),
            None => copy.next().map_or(std::ptr::null(), std::ptr::from_ref),
        })
        .collect();
    if let Some(out) = to.iter().map(row).collect::<Option<Vec<*mut u32>>>() {
        return f(&src, &out);
    }
    let mut own = vec![[0; 32]; to.len()];
    let out: Vec<*mut u32> = own.iter_mut().map(|row| row.as_mut_ptr()).collect();
    let is_done = f(&src, &out);
    to.iter().zip(&own).for_each(|(loc, row)| p.ctx.write_row(*loc, u32::MAX, &row.map(u64::from)));
    is_done
}

/// A product of `.f64` for the whole warp.
#[cfg(target_arch = "x86_64")]
fn doubles_by_vectors(width: matrix::Width, product: Product, p: &Parked, from: &[Loc]) {
    let (mut src, mut dst) = ([[0; 32]; matrix::MAX_ROWS], [[0; 32]; 4]);
    src.iter_mut().zip(from).for_each(|(row, loc)| p.ctx.read_row(*loc, u32::MAX, row));
    matrix::doubles(width, product, &src[..from.len()], &mut dst);
    p.operands().dst.iter().zip(&dst).for_each(|(loc, row)| p.ctx.write_row(*loc, u32::MAX, row));
}
