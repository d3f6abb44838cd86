//! Bounds: what a quick test in code refused is looked up by all rules, and recorded as a trap if it is wrong.

use std::sync::Arc;

use handloom_codegen::Failure;
use handloom_diag::Span;
use handloom_interp::atom::flushes;
use handloom_ir::simt::{Access, AtomAccess, Op};
use handloom_ir::trap::{AccessKind, TrapKind};
use handloom_ir::types::{Order, StateSpace};
use handloom_plan::abi::{MemSite, SiteCache};

use super::Call;
use super::memory::wrap;
use crate::memory::{AllocKind, Hit, Own};
use crate::warp::host::CtaHost;

/// What an access asks for, the same in all lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) kind: AccessKind,
    pub(super) space: StateSpace,
    pub(super) order: Order,
    /// Bytes of the whole access.
    pub(super) bytes: u32,
    /// Bytes of one element.
    pub(super) element: u32,
    /// Bit i: element i is touched.
    pub(super) elements: u8,
    /// Added to the address.
    pub(super) offset: i64,
}

impl Request {
    /// The request of a memory site; `None` for an op that is no access.
    pub(super) fn of(site: &MemSite) -> Option<Request> {
        Request::is_made_by(&site.op).then(|| Request::made_by(&site.op))
    }

    /// Whether an op is an access.
    #[inline]
    pub(super) fn is_made_by(op: &Op) -> bool {
        matches!(op, Op::Load { .. } | Op::Store { .. } | Op::Atom { .. } | Op::Red { .. })
    }

    /// The request of an op that is an access; one of no bytes of any other. Inline and with no `Option` around it, so that nothing is copied.
    #[inline(always)]
    pub(super) fn made_by(op: &Op) -> Request {
        let plain = |a: &Access| (a.space, a.order, a.bytes(), u32::from(a.bits) / 8, a.elements);
        let atomic = |a: &AtomAccess| {
            let element = a.ty.bytes();
            (a.space, a.order, element * u32::from(a.count), element, u8::MAX >> (8 - a.count.clamp(1, 8)))
        };
        let (kind, offset, (space, order, bytes, element, elements)) = match op {
            Op::Load { access, offset } => (AccessKind::Read, *offset, plain(access)),
            Op::Store { access, offset } => (AccessKind::Write, *offset, plain(access)),
            Op::Atom { access, offset } | Op::Red { access, offset } => (AccessKind::Atomic, *offset, atomic(access)),
            _ => (AccessKind::Read, 0, (StateSpace::Generic, Order::Weak, 0, 0, 0)),
        };
        Request { kind, space, order, bytes, element, elements, offset }
    }

    /// Whether the whole access is touched.
    pub(super) fn has_all_elements(&self) -> bool {
        let all = u8::MAX >> (8 - (self.bytes / self.element.max(1)).clamp(1, 8));
        self.elements & all == all
    }

    /// Whether kernels must be allowed to write there.
    pub(super) fn writes(&self) -> bool {
        self.kind != AccessKind::Read
    }

    /// Whether the access may reach a space through a generic address.
    fn may_fall_into(&self, space: StateSpace) -> bool {
        let shared = matches!(space, StateSpace::Shared | StateSpace::SharedCluster);
        let global = space == StateSpace::Global;
        match (self.kind, self.order) {
            (AccessKind::Atomic, _) => global || shared,
            (_, Order::Weak) => true,
            (_, Order::Volatile) => global || shared || space == StateSpace::Local,
            (_, Order::Mmio) => global,
            (_, Order::Relaxed | Order::Acquire | Order::Release | Order::AcqRel | Order::Sc) => global || shared,
        }
    }
}

/// Checks one access of one lane: alignment first, then bounds, then the space. Gives the host address and the range it lies in.
pub(super) fn locate(host: &mut CtaHost, r: &Request, thread: u32, addr: u64) -> Result<(u64, Hit), TrapKind> {
    if !addr.is_multiple_of(u64::from(r.bytes.max(1))) {
        return Err(TrapKind::Misaligned);
    }
    if r.has_all_elements() {
        return part(host, r, thread, addr, u64::from(r.bytes));
    }
    let count = r.bytes / r.element.max(1);
    // Elements that are not touched may lie outside.
    let mut found = Err(TrapKind::OutOfBounds);
    for i in (0..count).filter(|i| r.elements >> i & 1 == 1) {
        let skip = u64::from(i * r.element);
        let (at, hit) = part(host, r, thread, addr.wrapping_add(skip), u64::from(r.element))?;
        found = Ok((at.wrapping_sub(skip), hit));
    }
    found
}

/// The bounds and the space of bytes, but not their alignment.
pub(super) fn part(
    host: &mut CtaHost,
    r: &Request,
    thread: u32,
    addr: u64,
    bytes: u64,
) -> Result<(u64, Hit), TrapKind> {
    let whole = within(host, r, thread, addr, bytes);
    if whole == Err(TrapKind::OutOfBounds) && r.kind.may_end_behind(r.order, bytes as u32) {
        return within(host, r, thread, addr, 1)
            .and_then(|(at, hit)| if is_global(hit.kind) { Ok((at, hit)) } else { Err(TrapKind::OutOfBounds) });
    }
    whole
}

/// The same of bytes that must all lie in one object.
fn within(host: &mut CtaHost, r: &Request, thread: u32, addr: u64, bytes: u64) -> Result<(u64, Hit), TrapKind> {
    let env = &host.env;
    let own = Own { base: env.local_base(thread), size: env.local_size };
    let view = host.memory.view.get_mut();
    let in_slab = |base: u64, offset: u64| {
        let hit = Hit { base, size: u64::from(env.shared_size), kind: AllocKind::Shared };
        let at = base.wrapping_add(offset);
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= hit.size);
        if fits { Ok((at, hit)) } else { Err(TrapKind::OutOfBounds) }
    };
    match r.space {
        StateSpace::Shared => in_slab(env.shared_base, addr),
        StateSpace::SharedCluster => {
            let (base, inside) = env.cluster_part(addr).ok_or(TrapKind::OutOfBounds)?;
            in_slab(base, inside)
        }
        StateSpace::Local | StateSpace::ParamFunc => {
            let inside = addr.wrapping_sub(own.base);
            let fits = inside.checked_add(bytes).is_some_and(|end| end <= own.size);
            let hit = Hit { base: own.base, size: own.size, kind: AllocKind::Local };
            if fits { Ok((addr, hit)) } else { Err(TrapKind::OutOfBounds) }
        }
        StateSpace::Generic => {
            // What lies in the shared memory of the CTA is found without a search.
            if let Ok((_, hit)) = in_slab(env.shared_base, addr.wrapping_sub(env.shared_base))
                && r.may_fall_into(StateSpace::Shared)
            {
                return Ok((addr, hit));
            }
            let plain_write = r.kind == AccessKind::Write;
            view.resolve(addr, bytes, plain_write, None)?;
            if !r.may_fall_into(view.state_space(addr)) {
                return Err(TrapKind::BadSpace);
            }
            // Local memory is each thread's own.
            let hit = view.resolve(addr, bytes, r.writes(), Some(own))?;
            if may_read(&host.unread, r, &hit) { Ok((addr, hit)) } else { Err(TrapKind::OutOfBounds) }
        }
        StateSpace::Global => {
            let hit = view.resolve(addr, bytes, r.writes(), None)?;
            // Choice: `.global` with an address of another space is undefined; it is told like a generic address there.
            match is_global(hit.kind) {
                true if may_read(&host.unread, r, &hit) => Ok((addr, hit)),
                true => Err(TrapKind::OutOfBounds),
                false => Err(TrapKind::BadSpace),
            }
        }
        StateSpace::Const | StateSpace::ParamEntry => {
            let hit = view.resolve(addr, bytes, false, Some(own))?;
            if r.kind == AccessKind::Write { Err(TrapKind::WriteProtected) } else { Ok((addr, hit)) }
        }
        StateSpace::Reg | StateSpace::Sreg | StateSpace::Tex => Err(TrapKind::BadSpace),
    }
}

/// Whether an access is none that reads an allocation which nobody may read. The trap that it gets otherwise is told to nobody: the launch begins anew.
pub(super) fn may_read(unread: &Option<Arc<[(u64, u64)]>>, r: &Request, hit: &Hit) -> bool {
    let is_apart = |(from, end): &(u64, u64)| *end <= hit.base || hit.base + hit.size <= *from;
    r.kind != AccessKind::Read || unread.as_ref().is_none_or(|ranges| ranges.iter().all(is_apart))
}

/// Whether memory of a kind lies in the global state space.
pub(super) fn is_global(kind: AllocKind) -> bool {
    match kind {
        AllocKind::Buffer
        | AllocKind::Linear
        | AllocKind::Global
        | AllocKind::Malloc
        | AllocKind::Mapped
        | AllocKind::MappedForReading
        | AllocKind::Host
        | AllocKind::HostForReading => true,
        AllocKind::Const | AllocKind::Param | AllocKind::Shared | AllocKind::Local => false,
    }
}

/// Records the trap of the lanes that were refused for the same reason as the first of them.
pub(super) fn record(c: &mut Call<'_>, r: &Request, span: Span, refused: &[(usize, u64, TrapKind)]) {
    let Some(&(first, addr, kind)) = refused.first() else { return };
    let lanes = refused.iter().filter(|(_, _, k)| *k == kind).fold(0, |m, (lane, _, _)| m | 1 << lane);
    let warp = c.warp();
    let mut trap = c.host.trap_of(kind, span, warp, lanes);
    trap.address = Some(addr);
    trap.bytes = r.bytes;
    trap.access = Some(r.kind);
    trap.space = Some(r.space);
    let space = c.host.memory.view.get_mut().state_space(addr);
    trap.own = c.host.env.aim(CtaHost::thread(&c.ctx.header(), first), r.space, addr, space);
    if kind == TrapKind::BadSpace {
        trap.detail = format!("the address lies in `.{}`", space.name());
    }
    c.host.trap = Some(trap);
}

/// `Routine::Check`.
pub(super) fn check(c: &mut Call<'_>) -> u64 {
    let site = &c.tables.mems[c.site];
    let Some(r) = Request::of(site) else {
        c.host.failure = Some(Failure::Bug(format!("bounds of {:?}", site.op)));
        return 0;
    };
    let (x, length) = (c.x, c.y);
    let bytes = u64::from(r.bytes.max(1));
    let n = u64::from(c.mask.count_ones().max(1));
    // In a range as long as one access all lanes have the same address.
    let span = length.saturating_sub(bytes);
    let step = span.checked_div(n - 1).unwrap_or(0);
    let is_even = step * (n - 1) == span && step.is_multiple_of(bytes) || n == 1;
    let warp = c.ctx.header();
    let first_lane = c.mask.trailing_zeros().min(31) as usize;
    let whole = Request { bytes: 1, element: 1, elements: 1, ..r };
    if x.is_multiple_of(bytes)
        && let Ok((at, hit)) = locate(c.host, &whole, CtaHost::thread(&warp, first_lane), x)
    {
        let inside = at - hit.base;
        if length <= hit.size && inside <= hit.size - length && per_lane_ok(hit.kind, n) {
            refresh(c, &r, hit, length);
            return 1;
        }
        // Lanes at uneven distances in local memory: the distances are code's own, so each lane has moved as far as the first.
        if hit.kind == AllocKind::Local && !is_even {
            let (base, size) = c.host.memory.view.get_mut().local;
            if x >= base && x - base <= size && length <= size - (x - base) {
                return 1;
            }
        }
    }
    // Of an access in parts, those of the parts before are there.
    let mut refused = std::mem::take(&mut c.host.refused);
    let before = refused.len();
    let mut mask = c.mask;
    for k in 0..n {
        let lane = mask.trailing_zeros() as usize & 31;
        mask &= mask.wrapping_sub(1);
        // At uneven distances, the nearest place that an access can have.
        let at = if is_even { k * step } else { k * span / (n - 1) / bytes * bytes };
        let addr = wrap(site.addr, x.wrapping_add(at));
        if let Err(why) = locate(c.host, &r, CtaHost::thread(&warp, lane), addr) {
            refused.push((lane, addr, why));
        }
    }
    let passes = refused.len() == before;
    refused.sort_by_key(|(lane, _, _)| *lane);
    record(c, &r, site.span, &refused);
    c.host.refused = refused;
    u64::from(passes)
}

/// Whether a range that the first lane may access is one that all lanes may: local memory is each thread's own.
fn per_lane_ok(kind: AllocKind, lanes: u64) -> bool {
    kind != AllocKind::Local || lanes == 1
}

/// Puts an allocation into the cache of the site, which tests `length` bytes. Only what is the same for all threads as long as the launch runs.
pub(super) fn refresh(c: &mut Call<'_>, r: &Request, hit: Hit, length: u64) {
    let align = u64::from(r.bytes.max(1));
    // The quick test of code counts from a place where an access may be; memory of the process may begin elsewhere.
    let skip = hit.base.wrapping_neg() % align;
    // The shared memory of this CTA lies where it lies for all that the table is for. Code does a sum that flushes in global memory alone as one of global memory.
    let differs = match c.tables.mems[c.site].op {
        Op::Atom { access, .. } | Op::Red { access, .. } => flushes(access.ty, StateSpace::Global),
        _ => false,
    };
    let is_own_shared = r.space == StateSpace::Generic && hit.base == c.host.env.shared_base && !differs;
    let hit = Hit { base: hit.base + skip, size: hit.size.saturating_sub(skip), ..hit };
    match hit.kind {
        _ if hit.size < length => {}
        AllocKind::Shared if !is_own_shared => {}
        AllocKind::Buffer
        | AllocKind::Linear
        | AllocKind::Global
        | AllocKind::Malloc
        | AllocKind::Mapped
        | AllocKind::MappedForReading
        | AllocKind::Host
        | AllocKind::HostForReading
        | AllocKind::Const
        | AllocKind::Param
        | AllocKind::Shared => {
            let twin = c.tables.mems[c.site].twin.map(|t| t as usize);
            for site in [Some(c.site), twin].into_iter().flatten() {
                // SAFETY: `sites` of the running code has an entry for each memory site, which is this worker's alone.
                unsafe {
                    let sites: *mut SiteCache = std::ptr::with_exposed_provenance_mut((*c.cta).sites as usize);
                    let site = sites.add(site);
                    let old = site.read();
                    // A site that is also tested as a range keeps the limit of its longest range.
                    let known = if old.base == hit.base { old.limit } else { u64::MAX };
                    let new = SiteCache::new(hit.base, hit.size, length, align);
                    site.write(SiteCache { limit: known.min(new.limit), ..new });
                }
            }
        }
        AllocKind::Local => {}
    }
}

/// `Routine::Range`.
pub(super) fn range(c: &mut Call<'_>) -> u64 {
    let site = &c.tables.mems[c.site];
    let Some(r) = Request::of(site) else { return 0 };
    let whole = Request { bytes: 1, element: 1, elements: 1, ..r };
    let thread = CtaHost::thread(&c.ctx.header(), 0);
    let Ok((at, hit)) = locate(c.host, &whole, thread, c.x) else { return 0 };
    let inside = at - hit.base;
    if c.y > hit.size || inside > hit.size - c.y || !per_lane_ok(hit.kind, 2) {
        return 0;
    }
    refresh(c, &r, hit, c.y);
    1
}

/// `Routine::Misaligned`.
pub(super) fn misaligned(c: &mut Call<'_>) -> u64 {
    let site = &c.tables.mems[c.site];
    let Some(r) = Request::of(site) else { return 0 };
    let lanes: Vec<_> = (0..32).filter(|l| c.mask >> l & 1 == 1).map(|l| (l, c.x, TrapKind::Misaligned)).collect();
    let span = site.span;
    record(c, &r, span, &lanes);
    0
}
