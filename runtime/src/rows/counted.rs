//! What a counted launch asks the runtime: accesses that code does not count by itself, and warps that meet.

use handloom_ir::simt::Touch;
use handloom_ir::types::StateSpace;
use handloom_plan::abi::Meeting;
use handloom_profile::Space;
use handloom_profile::rules::Lane;

use super::Call;
use super::memory::{lanes, wrap};
use crate::run::SPACES;
use crate::warp::counted::Work;
use crate::warp::host::CtaHost;

/// Counts the access of the lanes of the mask.
pub(super) fn access(c: &mut Call<'_>, number: u32, touch: Touch) -> u64 {
    let site = &c.tables.mems[c.site];
    let mut at = [0; 32];
    c.ctx.read_row(site.addr, c.mask, &mut at);
    let width = wrap(site.addr, u64::MAX);
    let mut found: [Lane; 32] = [(0, 0); 32];
    let mut n = 0;
    for lane in lanes(c.mask) {
        found[n] = (lane, at[lane].wrapping_add_signed(touch.offset) & width);
        n += 1;
    }
    let found = &mut found[..n];
    let header = c.ctx.header();
    let CtaHost { env, memory, counted: Some(counted), .. } = c.host else { return 1 };
    let place = |space: Space, (lane, addr): Lane| match space {
        Space::Local => (lane, addr.wrapping_sub(env.local_base(CtaHost::thread(&header, lane)))),
        // Of all blocks one variable is one place.
        Space::Shared if touch.space == StateSpace::Generic => (lane, addr.wrapping_sub(env.shared_base)),
        Space::Shared | Space::Global | Space::Const | Space::Param => (lane, addr),
    };
    if touch.space != StateSpace::Generic {
        if let Some(space) = Space::of(touch.space) {
            found.iter_mut().for_each(|lane| *lane = place(space, *lane));
            counted.access(number, touch, space, found);
        }
        return 1;
    }
    let view = memory.view.get_mut();
    // Lanes of a generic access may be in different spaces.
    let spaces = SPACES.into_iter().filter_map(|space| {
        let of = |(_, addr): &Lane| Space::of(view.state_space(*addr)) == Some(space);
        let some: Vec<Lane> = found.iter().copied().filter(of).map(|lane| place(space, lane)).collect();
        (!some.is_empty()).then_some((space, some))
    });
    spaces.for_each(|(space, some)| counted.access(number, touch, space, &some));
    1
}

/// Warps of a CTA meet, or it has ended and code goes on with another one; or some lanes do an access that the rest of the warp would do too.
pub(super) fn meet(c: &mut Call<'_>) -> u64 {
    if c.x == Meeting::Masked as u64 {
        if let Some(counted) = &mut c.host.counted {
            counted.masked(c.site as u32, c.mask, c.y as u32);
        }
        return 1;
    }
    if c.x == Meeting::End as u64 {
        end_counted(c.host);
        return 1;
    }
    // SAFETY: `cta` is the context block that code passed; code does not run now.
    let (epoch, n_warps) = unsafe { ((*c.cta).epoch, (*c.cta).n_warps as usize) };
    let CtaHost { counted, base, base_tables, .. } = c.host;
    let (Some(counted), Some(at)) = (counted, c.tables.work) else { return 1 };
    if c.x == Meeting::All as u64 {
        let span = c.tables.barrier(c.site as u32).span;
        counted.meet_all((0..n_warps).map(|w| Work::of(base.at(w, *base_tables), at)), span);
        return 1;
    }
    counted.meet((0..n_warps).filter_map(|w| {
        let ctx = base.at(w, *base_tables);
        let site = ctx.header().plain_barrier(epoch, c.tables)?;
        Some((Work::of(ctx, at), c.tables.barrier(site).span))
    }));
    1
}

/// A CTA has ended.
pub(crate) fn end_counted(host: &mut CtaHost) {
    let CtaHost { counted, base, base_tables, warps, .. } = host;
    // SAFETY: tables belong to the program, and are never written.
    let (Some(counted), Some(at)) = (counted, unsafe { &**base_tables }.work) else { return };
    counted.end((0..warps.len()).map(|w| Work::of(base.at(w, *base_tables), at)));
}
