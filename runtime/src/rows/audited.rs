//! What compiled code of a checked launch tells an audit: accesses lane by lane and fences, exactly as the interpreter does (`interp::witness`), and
//! accesses that leave their variable.

mod evenly;
mod one;

use std::sync::MutexGuard;

use handloom_audit::init::Filled;
use handloom_audit::memory::{Stray, Variable};
use handloom_audit::{Access, Addrs, Audit, Does, Proxy, Row, Site, Thread};
use handloom_codegen::Failure;
use handloom_interp::env::CLUSTER_STRIDE;
use handloom_ir::simt::{Op, SymId, SymKind};
use handloom_ir::types::{Order, Scope, StateSpace};
use handloom_plan::abi::{MemSite, Origin};

use super::Call;
use super::atomic::of_lane;
use super::check::{Request, is_global, locate, record};
use super::memory::{lanes, wrap};
use crate::lock::lock;
use crate::memory::{Undo, access};
use crate::warp::repeats::Step;
use crate::warp::told::Told;

/// The lanes of a warp, from the first and from the last.
const ALL_LANES: [[usize; 32]; 2] = {
    let mut all = [[0; 32]; 2];
    let mut lane = 0;
    while lane < 32 {
        (all[0][lane], all[1][lane]) = (lane, 31 - lane);
        lane += 1;
    }
    all
};

/// The lanes of a call in their order; `some`: where they are put if they are not all. As in the interpreter, an odd seed turns it round.
fn in_order<'a>(c: &Call<'_>, some: &'a mut Option<[usize; 32]>) -> &'a [usize] {
    let all = &ALL_LANES[usize::from(c.host.env.seed & 1 == 1)];
    if c.mask == u32::MAX {
        return all;
    }
    let some = some.insert([0; 32]);
    let mut n = 0;
    for lane in all.iter().filter(|lane| c.mask >> *lane & 1 == 1) {
        some[n] = *lane;
        n += 1;
    }
    &some[..n]
}

/// A fence by the lanes of a call.
pub(super) fn fence(c: &mut Call<'_>, order: Order, scope: Scope) -> u64 {
    let site = &c.tables.mems[c.site];
    let (cta, warp) = (c.host.env.number(), c.warp());
    if order == Order::Sc {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }
    let Some(told) = &mut c.host.told else { return 1 };
    let context = c.ctx.warp as usize;
    if told.repeats.next(c.site, c.mask, context).is_some() {
        told.repeats.pass();
        return 1;
    }
    let before = told.repeats.place();
    let made = Site { span: site.span, does: Does::Fence, order, scope, ..Site::NONE };
    let mut teller = Teller::of(told, c.tables.mems.len(), c.site, (cta, warp), made);
    let number = teller.number_of_fence();
    if c.mask.is_power_of_two() {
        let who = Thread::new(cta, teller.warp + c.mask.trailing_zeros() as usize);
        if teller.audit.repeats_fence(who, number, order, scope) {
            drop(teller);
            told.repeats.keep(before, Step { site: c.site, mask: c.mask, warp: context, touch: None });
            return 1;
        }
    }
    for lane in lanes(c.mask) {
        let who = Thread::new(cta, teller.warp + lane);
        teller.audit.fence(who, number, order, scope);
    }
    teller.audit.end_op();
    1
}

/// An access by all rules, of which an audit is told.
#[inline]
pub(super) fn access(c: &mut Call<'_>) -> u64 {
    if let Some(done) = one::again(c) {
        return done;
    }
    let r = &Request::made_by(&c.tables.mems[c.site].op);
    if let Some(done) = one::access(c, r).or_else(|| evenly::access(c, r)) {
        return done;
    }
    by_lane(c, r)
}

/// The same where nothing is known of the lanes.
#[inline(never)]
fn by_lane(c: &mut Call<'_>, r: &Request) -> u64 {
    let site = &c.tables.mems[c.site];
    let mut row = [0_u64; 32];
    c.ctx.read_row(site.addr, c.mask, &mut row);
    let width = wrap(site.addr, u64::MAX);
    row.iter_mut().for_each(|a| *a = a.wrapping_add_signed(r.offset) & width);
    let reach = locate_row(c, r, &mut row);
    let mut refused = Vec::new();
    for lane in lanes(if reach.is_some() { 0 } else { c.mask }) {
        let addr = row[lane];
        let thread = c.thread(lane);
        match locate(c.host, r, thread, addr) {
            Ok((at, _)) => row[lane] = at,
            Err(why) => refused.push((lane, addr, why)),
        }
    }
    if !refused.is_empty() {
        record(c, r, site.span, &refused);
        return 0;
    }
    let Some((does, order, scope)) = kind_of(site) else { return 0 };
    let mut some = None;
    let all = in_order(c, &mut some);
    let Some(mut told) = c.host.told.take() else { return 0 };
    check_variable(c, &told, r, all, &row, reach.as_ref());
    if let Some((undo, filled)) = &mut told.bits
        && !follow_bits(c, (undo, filled), r, all, &row, reach.as_ref())
    {
        undo.doubt();
        c.host.failure = Some(Failure::Bug("a launch that is to be run again was not".into()));
        return 0;
    }
    let is_enough = {
        let who = (c.host.env.number(), c.warp());
        let made = Site { span: site.span, does, order, scope, space: r.space, proxy: proxy_of(&site.op) };
        let mut teller = Teller::of(&mut told, c.tables.mems.len(), c.site, who, made);
        match site.op {
            Op::Load { access, .. } if let Some(reach) = &reach => {
                match r.element {
                    1 => load_rows::<1>(c, all, &row),
                    2 => load_rows::<2>(c, all, &row),
                    4 => load_rows::<4>(c, all, &row),
                    _ => load_rows::<8>(c, all, &row),
                }
                teller.tell_row(r, access.is_single, all, Addrs::Each(&row), reach.space, &[0; 32]);
            }
            Op::Store { access, .. } if let Some(reach) = &reach => {
                let same = match r.element {
                    1 => store_rows::<1>(c, all, |lane| row[lane]),
                    2 => store_rows::<2>(c, all, |lane| row[lane]),
                    4 => store_rows::<4>(c, all, |lane| row[lane]),
                    _ => store_rows::<8>(c, all, |lane| row[lane]),
                };
                teller.tell_row(r, access.is_single, all, Addrs::Each(&row), reach.space, &same);
            }
            Op::Load { access, .. } => load(c, r, access.is_single, all, &row, &mut teller),
            Op::Store { access, .. } => store(c, r, access.is_single, all, &row, &mut teller),
            // Code that only keeps to the seed's order tells nothing.
            Op::Atom { access, .. } | Op::Red { access, .. } if !teller.has_races => {
                for lane in all.iter().copied() {
                    let space = reach.as_ref().map_or_else(|| falls_into(c, r, row[lane]), |reach| reach.space);
                    of_lane(c, access, lane, row[lane], space, |_, _, _| ());
                }
            }
            Op::Atom { access, .. } | Op::Red { access, .. } => {
                let (mut done, mut n) = ([Access::NONE; 32], 0);
                let space_of = |c: &mut Call<'_>, lane: usize| {
                    reach.as_ref().map_or_else(|| falls_into(c, r, row[lane]), |reach| reach.space)
                };
                // A packed type is accessed element by element.
                let n_parts = access.ty.elements();
                let is_one = access.count == 1 && n_parts == 1 && reach.is_some();
                for lane in all.iter().copied() {
                    let space = space_of(c, lane);
                    of_lane(c, access, lane, row[lane], space, |at, bytes, failed| match is_one {
                        true => {
                            done[n] = teller.access(lane, at, bytes, false, failed);
                            n += 1;
                        }
                        false => {
                            let (end, part) = (at + u64::from(bytes), bytes / n_parts);
                            let parts = (at..end).step_by(part as usize);
                            parts.for_each(|at| teller.tell(lane, at, part, space, false, failed));
                        }
                    });
                }
                if let Some(number) = reach.as_ref().and_then(|reach| teller.number(reach.space)) {
                    teller.audit.accesses(number, &done[..n]);
                }
            }
            _ => {}
        }
        teller.end()
    };
    c.host.told = Some(told);
    goes_on(c, is_enough)
}

/// What an access does to memory, how it is ordered, and among whom.
fn kind_of(site: &MemSite) -> Option<(Does, Order, Scope)> {
    Some(match site.op {
        Op::Load { access, .. } => (Does::Read, access.order, access.scope),
        Op::Store { access, .. } => (Does::Write, access.order, access.scope),
        Op::Atom { access, .. } | Op::Red { access, .. } => {
            (if site.dst.is_empty() { Does::Reduce } else { Does::Update }, access.order, access.scope)
        }
        _ => return None,
    })
}

/// Whether code goes on behind an access: not where nothing more is asked for, since a loop without end might follow.
fn goes_on(c: &mut Call<'_>, is_enough: bool) -> u64 {
    if is_enough {
        c.host.failure = Some(Failure::Bug("a launch of which enough was found did not end".into()));
    }
    u64::from(!is_enough)
}

/// Whether lanes may do an access where bits that nobody wrote are looked for: it reads none of them, and what it writes can be taken back. That is kept.
fn follow_bits(
    c: &mut Call<'_>,
    (undo, filled): (&Undo, &mut Filled),
    r: &Request,
    all: &[usize],
    row: &[u64; 32],
    reach: Option<&Reach>,
) -> bool {
    let reads = !matches!(c.tables.mems[c.site].op, Op::Store { .. });
    let count = r.bytes / r.element.max(1);
    if let Some(reach) = reach {
        return follow_range((undo, filled), r, reads, all.iter().map(|lane| row[*lane]), reach);
    }
    for lane in all.iter().copied() {
        let space = falls_into(c, r, row[lane]);
        for i in (0..count).filter(|i| r.elements >> i & 1 == 1) {
            let at = row[lane].wrapping_add(u64::from(i * r.element));
            match space {
                StateSpace::Global if reads && undo.is_blank(at, r.element) => return false,
                StateSpace::Global if r.writes() => {
                    let hit = c.host.memory.view.get_mut().resolve(at, u64::from(r.element), true, None);
                    if !hit.is_ok_and(|hit| hit.kind.is_of_device()) {
                        return false;
                    }
                    // SAFETY: the access passed its check.
                    unsafe { undo.kept().keep(at, r.element) }
                }
                StateSpace::Shared | StateSpace::Local | StateSpace::ParamFunc => {
                    if reads && !filled.is_filled(at, r.element) {
                        return false;
                    }
                    if r.writes() {
                        filled.fill(at, r.element);
                    }
                }
                _ => {}
            }
        }
    }
    true
}

/// The same where all lanes access one range, at places that passed their check.
fn follow_range(
    (undo, filled): (&Undo, &mut Filled),
    r: &Request,
    reads: bool,
    mut all: impl Iterator<Item = u64> + Clone,
    reach: &Reach,
) -> bool {
    match reach.space {
        StateSpace::Global if reads && all.clone().any(|at| undo.is_blank(at, r.bytes)) => false,
        StateSpace::Global if r.writes() => {
            // At most 16 bytes are kept at a time.
            let mut kept = undo.kept();
            let count = r.bytes / r.element.max(1);
            let (n, bytes) = if r.bytes <= 16 { (1, r.bytes) } else { (count, r.element) };
            let places = all.flat_map(|at| (0..n).map(move |i| at.wrapping_add(u64::from(i * bytes))));
            if reach.is_of_device {
                // SAFETY: the access passed its check.
                places.for_each(|at| unsafe { kept.keep(at, bytes) });
            }
            reach.is_of_device
        }
        StateSpace::Shared | StateSpace::Local => all.all(|at| {
            let is_known = !reads || filled.is_filled(at, r.bytes);
            if is_known && r.writes() {
                filled.fill(at, r.bytes);
            }
            is_known
        }),
        _ => true,
    }
}

/// The way by which an op reaches memory.
fn proxy_of(op: &Op) -> Proxy {
    match op {
        Op::Load { access, .. } if access.is_async => Proxy::Async,
        _ => Proxy::Generic,
    }
}

/// Tells of the accesses of one op of a warp.
pub(super) struct Teller<'a> {
    audit: MutexGuard<'a, Audit>,
    cta: u32,
    /// The first thread of the warp.
    warp: usize,
    site: Site,
    numbers: &'a mut [Option<u32>; 2],
    /// Whether the audit looks at accesses.
    has_races: bool,
}

impl<'a> Teller<'a> {
    /// The op has ended. Says whether nothing more is asked for.
    fn end(mut self) -> bool {
        self.audit.end_op();
        self.audit.is_enough()
    }

    /// Of a site of a warp. Inline, so that the site is not copied before anybody asks for it.
    #[inline(always)]
    fn of(told: &'a mut Told, n_sites: usize, number: usize, (cta, warp): (u32, u32), site: Site) -> Teller<'a> {
        let Told { audit, sites, has_races, .. } = told;
        if sites.len() <= number {
            sites.resize(n_sites, [None; 2]);
        }
        let audit = lock(audit);
        Teller { audit, cta, warp: 32 * warp as usize, site, numbers: &mut sites[number], has_races: *has_races }
    }

    /// The number of the statement for accesses to a space; `None` where nobody looks at them.
    fn number(&mut self, space: StateSpace) -> Option<u32> {
        if !self.has_races {
            return None;
        }
        let (space, i) = self.audit.told_space(space)?;
        let audit = &mut self.audit;
        Some(*self.numbers[i].get_or_insert_with(|| audit.site(Site { space, ..self.site })))
    }

    /// The same of a fence.
    fn number_of_fence(&mut self) -> u32 {
        let audit = &mut self.audit;
        *self.numbers[0].get_or_insert_with(|| audit.site(self.site))
    }

    fn tell(&mut self, lane: usize, addr: u64, bytes: u32, space: StateSpace, same_value: bool, failed: bool) {
        let Some(number) = self.number(space) else { return };
        let access = self.access(lane, addr, bytes, same_value, failed);
        self.audit.access(number, access);
    }

    fn access(&self, lane: usize, addr: u64, bytes: u32, same_value: bool, failed: bool) -> Access {
        let thread = Thread::new(self.cta, self.warp + lane);
        Access { thread, addr, bytes: u8::try_from(bytes).unwrap_or(u8::MAX), failed, same_value, ..Access::NONE }
    }
}

impl Teller<'_> {
    /// Tells of plain accesses of all elements. `same`: by lane, a bit for each element that is written and was there already.
    fn tell_row(
        &mut self,
        r: &Request,
        is_single: bool,
        all: &[usize],
        addrs: Addrs<'_>,
        space: StateSpace,
        same: &[u8; 32],
    ) {
        let Some(number) = self.number(space) else { return };
        let (mut parts, mut n) = ([(0, 0); 8], 0);
        for (part, (first, count)) in parts.iter_mut().zip(scalars(r, is_single)) {
            *part = (first * r.element, u8::try_from(count * r.element).unwrap_or(u8::MAX));
            n += 1;
        }
        let whole = u8::MAX >> (8 - (r.bytes / r.element.max(1)).clamp(1, 8));
        let merged = if n == 1 { same.map(|same| u8::from(same == whole)) } else { *same };
        let (cta, first) = (self.cta, self.warp);
        self.audit.row(number, &Row { cta, first, lanes: all, addrs, parts: &parts[..n], same: &merged });
    }
}

/// Where all lanes of an access are, if that is one range, or each lane's own memory.
struct Reach {
    /// The lowest address.
    low: u64,
    /// One past the last byte.
    end: u64,
    space: StateSpace,
    /// It is memory of the device, and of no other process.
    is_of_device: bool,
}

/// Finds the range that all lanes access, and replaces addresses by those of the host; `None` if each lane is to be looked at, and nothing is replaced.
fn locate_row(c: &mut Call<'_>, r: &Request, row: &mut [u64; 32]) -> Option<Reach> {
    let bytes = u64::from(r.bytes);
    let (mut low, mut high, mut any) = (u64::MAX, 0, 0);
    let mut look = |addr: u64| (low, high, any) = (low.min(addr), high.max(addr), any | addr);
    if c.mask == u32::MAX {
        row.iter().copied().for_each(&mut look);
    } else {
        lanes(c.mask).for_each(|lane| look(row[lane]));
    }
    if c.mask == 0 || !r.has_all_elements() || !bytes.is_power_of_two() || any & (bytes - 1) != 0 {
        return None;
    }
    let end = high.checked_add(bytes)?;
    match r.space {
        StateSpace::Shared | StateSpace::Global | StateSpace::Generic => {
            let reach = range_of(c, r, low, end)?;
            let base = reach.low.wrapping_sub(low);
            row.iter_mut().for_each(|a| *a = base.wrapping_add(*a));
            Some(reach)
        }
        StateSpace::Local => {
            let env = &c.host.env;
            let first = c.thread(0);
            let inside = |lane: usize| row[lane].wrapping_sub(env.local_base(first + lane as u32));
            let most = env.local_size.checked_sub(bytes)?;
            lanes(c.mask).all(|lane| inside(lane) <= most).then_some(Reach {
                low,
                end,
                space: r.space,
                is_of_device: true,
            })
        }
        _ => None,
    }
}

/// The range from an address to another one, where it lies in the block's shared memory or in one range of global memory that is at hand.
#[inline(always)]
fn range_of(c: &mut Call<'_>, r: &Request, low: u64, end: u64) -> Option<Reach> {
    match r.space {
        StateSpace::Shared if end <= u64::from(c.host.env.shared_size) => {
            let base = c.host.env.shared_base;
            Some(Reach { low: base + low, end: base + end, space: r.space, is_of_device: true })
        }
        StateSpace::Global | StateSpace::Generic => {
            let hit = c.host.memory.view.get_mut().at_hand(low, end - low, r.writes())?;
            let is_of_device = hit.kind.is_of_device();
            is_global(hit.kind).then_some(Reach { low, end, space: StateSpace::Global, is_of_device })
        }
        _ => None,
    }
}

/// Reads all elements of so many bytes at addresses that `locate_row` passed.
fn load_rows<const BYTES: u32>(c: &mut Call<'_>, all: &[usize], row: &[u64; 32]) {
    let site = &c.tables.mems[c.site];
    let mut values = [0; 32];
    for (i, d) in (0_u64..).zip(&site.dst) {
        for lane in all.iter().copied() {
            // SAFETY: `locate_row` passed the whole access, aligned.
            values[lane] = unsafe { access::load(row[lane] + i * u64::from(BYTES), BYTES) };
        }
        c.ctx.write_row(*d, c.mask, &values);
    }
}

/// Writes all elements, lane by lane, at places that were looked at for writing and are aligned. Gives by lane which elements were there already.
fn store_rows<const BYTES: u32>(c: &Call<'_>, all: &[usize], place: impl Fn(usize) -> u64) -> [u8; 32] {
    let site = &c.tables.mems[c.site];
    let cut = u64::MAX >> (64 - 8 * BYTES);
    let mut same = [0; 32];
    let mut values = [0; 32];
    let mut changed = false;
    for (i, s) in (0_u64..).zip(&site.src) {
        c.ctx.read_row(*s, c.mask, &mut values);
        for lane in all.iter().copied() {
            let (place, value) = (place(lane) + i * u64::from(BYTES), values[lane] & cut);
            // SAFETY: `locate_row` or `evenly` passed the whole access for writing, aligned.
            let old = unsafe { access::load(place, BYTES) };
            same[lane] |= u8::from(old == value) << i;
            changed |= old != value;
            // SAFETY: as above.
            unsafe { access::store(place, BYTES, value) }
        }
    }
    if changed {
        c.touched();
    }
    same
}

/// The state space that a checked address lies in.
fn falls_into(c: &mut Call<'_>, r: &Request, addr: u64) -> StateSpace {
    if r.space == StateSpace::Generic { c.host.memory.view.get_mut().state_space(addr) } else { r.space }
}

/// The scalar accesses that an access is made of: the first element of each, and how many.
fn scalars(r: &Request, is_single: bool) -> impl Iterator<Item = (u32, u32)> + use<> {
    let count = r.bytes / r.element.max(1);
    let elements = if is_single { 1 } else { r.elements };
    let each = if is_single { count } else { 1 };
    (0..count).filter(move |i| elements >> i & 1 == 1).map(move |i| (i, each))
}

fn load(c: &mut Call<'_>, r: &Request, is_single: bool, all: &[usize], row: &[u64; 32], teller: &mut Teller<'_>) {
    let site = &c.tables.mems[c.site];
    for lane in all.iter().copied() {
        let at = row[lane];
        let space = falls_into(c, r, at);
        for (first, n) in scalars(r, is_single) {
            teller.tell(lane, at + u64::from(first * r.element), n * r.element, space, false, false);
        }
        for (i, d) in (0_u32..).zip(&site.dst) {
            if r.elements >> i & 1 == 1 {
                // SAFETY: `locate` passed the element, aligned.
                let value = unsafe { access::load(at + u64::from(i * r.element), r.element) };
                c.ctx.write(*d, lane, value);
            }
        }
    }
}

fn store(c: &mut Call<'_>, r: &Request, is_single: bool, all: &[usize], row: &[u64; 32], teller: &mut Teller<'_>) {
    let site = &c.tables.mems[c.site];
    let cut = 1_u64.checked_shl(8 * r.element).map_or(u64::MAX, |top| top - 1);
    let mut changed = false;
    for lane in all.iter().copied() {
        let at = row[lane];
        let space = falls_into(c, r, at);
        let mut same = 0_u32;
        for (i, s) in (0_u32..).zip(&site.src).filter(|(i, _)| r.elements >> i & 1 == 1) {
            let place = at + u64::from(i * r.element);
            // SAFETY: `locate` passed the element for writing, aligned.
            let old = unsafe { access::load(place, r.element) };
            same |= u32::from(old == c.ctx.read(*s, lane) & cut) << i;
        }
        for (first, n) in scalars(r, is_single) {
            let is_same = (first..first + n).all(|i| same >> i & 1 == 1);
            teller.tell(lane, at + u64::from(first * r.element), n * r.element, space, is_same, false);
        }
        for (i, s) in (0_u32..).zip(&site.src).filter(|(i, _)| r.elements >> i & 1 == 1) {
            changed |= same >> i & 1 == 0;
            // SAFETY: as above.
            unsafe { access::store(at + u64::from(i * r.element), r.element, c.ctx.read(*s, lane)) }
        }
    }
    if changed {
        c.touched();
    }
}

/// Where a variable lies, and its size; `None` if its end is not known, as it is declared elsewhere or one with what follows.
fn place_of(c: &Call<'_>, sym: SymId) -> Option<(u64, u64)> {
    let module = c.host.memory.module();
    let of = &module.ir.syms[sym.idx()];
    let base = match of.kind {
        SymKind::Global | SymKind::Const => module.symbol_values().get(sym.idx()).copied().unwrap_or(0),
        SymKind::Shared { offset } => c.host.env.shared_base.wrapping_add(u64::from(offset)),
        SymKind::DynamicShared { .. } | SymKind::Func(_) => return None,
    };
    (of.size > 0).then_some((base, of.size))
}

/// Tells of lanes whose access leaves the variable that the address was made from.
fn check_variable(c: &mut Call<'_>, told: &Told, r: &Request, all: &[usize], row: &[u64; 32], reach: Option<&Reach>) {
    let site = &c.tables.mems[c.site];
    let Some(variable) = site.variable.filter(|_| told.has_memory) else { return };
    let does = match site.op {
        Op::Load { .. } => Does::Read,
        Op::Store { .. } => Does::Write,
        _ => Does::Update,
    };
    let elements = u32::from(r.elements);
    let (first, last) = (elements.trailing_zeros(), elements.ilog2());
    let (skip, bytes) = (u64::from(first * r.element), (last + 1 - first) * r.element);
    let shared = c.host.env.shared_base;
    let (symbol, (base, size)) = match variable {
        Origin::Symbol(sym) => match place_of(c, sym) {
            Some(place) => (Some(sym.idx()), place),
            None => return,
        },
        Origin::Frame { offset, bytes } => (None, (u64::from(offset), bytes.into())),
    };
    if size == 0 {
        return;
    }
    if let (Some(_), Some(reach)) = (symbol, reach)
        && reach.low >= base
        && reach.end.wrapping_sub(base) <= size
    {
        return;
    }
    let apart = |at: u64| at.wrapping_sub(shared) >= CLUSTER_STRIDE;
    for lane in all.iter().copied() {
        let thread = c.thread(lane);
        let base = if symbol.is_some() { base } else { c.host.env.local_base(thread).wrapping_add(base) };
        let addr = row[lane] + skip;
        let inside = addr.wrapping_sub(base).checked_add(bytes.into()).is_some_and(|end| end <= size);
        if inside || apart(addr) && !apart(base) {
            continue;
        }
        let space = falls_into(c, r, row[lane]);
        let at = (site.span, Thread::new(c.host.env.number(), thread as usize));
        let variable = Variable { symbol, base, bytes: size };
        if let Some(memory) = lock(&told.audit).memory() {
            memory.stray(Stray { variable, addr, bytes, does, space, at, times: 1 });
        }
    }
}
