//! What a counted launch asks the runtime: accesses that code does not count by itself, and warps that meet.

use handloom_ir::simt::Touch;
use handloom_ir::types::StateSpace;
use handloom_plan::abi::Meeting;
use handloom_profile::Space;
use handloom_profile::rules::Lane;

use super::Call;
use super::memory::{lanes, wrap};
use crate::warp::counted::Work;
use crate::warp::host::CtaHost;

/// Counts the access of the lanes of the mask.
pub(super) fn access(c: &mut Call<'_>, number: u32, touch: Touch) -> u64 {
    let site = &c.tables.mems[c.site];
    let header = c.ctx.header();
    let mut at = [0; 32];
    c.ctx.read_row(site.addr, c.mask, &mut at);
    let env = &c.host.env;
    let view = c.host.memory.view.get_mut();
    // Lanes of a generic access may be in different spaces.
    let mut found: [(Option<Space>, Lane); 32] = [(None, (0, 0)); 32];
    let mut n = 0;
    for lane in lanes(c.mask) {
        let addr = wrap(site.addr, at[lane].wrapping_add_signed(touch.offset));
        let space = if touch.space == StateSpace::Generic { view.state_space(addr) } else { touch.space };
        let space = Space::of(space);
        let thread = CtaHost::thread(&header, lane);
        let at = match space {
            Some(Space::Local) => addr.wrapping_sub(env.local_base(thread)),
            // Of all blocks one variable is one place.
            Some(Space::Shared) if touch.space == StateSpace::Generic => addr.wrapping_sub(env.shared_base),
            _ => addr,
        };
        found[n] = (space, (lane, at));
        n += 1;
    }
    let Some(counted) = &mut c.host.counted else { return 1 };
    let mut left = &found[..n];
    while let Some((space, _)) = left.first() {
        let same = left.iter().take_while(|(other, _)| other == space).count();
        let (now, later) = left.split_at(same);
        // Nearly always all of them.
        if later.iter().any(|(other, _)| other == space) {
            counted.access_in_parts(number, touch, left);
            break;
        }
        counted.access(number, touch, *space, now);
        left = later;
    }
    1
}

/// Warps of a CTA meet, or it has ended and code goes on with another one.
pub(super) fn meet(c: &mut Call<'_>) -> u64 {
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
        counted.meet((0..n_warps).map(|w| (Work::of(base.at(w, *base_tables), at), span)));
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
