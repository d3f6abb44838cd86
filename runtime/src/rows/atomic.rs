//! Atomics. The new value is made by the interpreter's `atom`; here stands how it gets into memory.
//!
//! Shared memory belongs to one host thread, also that of a cluster, whose blocks run on one worker: a plain read and write is atomic there.

use handloom_interp::atom::{atom_value, atom_value_128, flushes};
use handloom_ir::simt::{AtomAccess, Op};
use handloom_ir::types::{AtomOp, Float, ScalarType, StateSpace};

use super::Call;
use super::memory::lanes;
use crate::memory::access;

/// Does the op for each lane of the call; `hosts` holds checked host addresses.
pub(super) fn atomics(c: &mut Call<'_>, a: AtomAccess, hosts: &[u64; 32]) {
    let site = &c.tables.mems[c.site];
    let is_red = matches!(site.op, Op::Red { .. });
    if a.count == 1
        && a.ty != ScalarType::B128
        && let Some(at) = one_place(c.mask, hosts)
    {
        let space = space_of(c, a, at);
        if is_red || is_private(space) {
            let changed = if is_red { fold(c, a, at, space) } else { in_turn(c, a, at, space) };
            if changed {
                c.touched();
            }
            return;
        }
    }
    for lane in lanes(c.mask) {
        let space = space_of(c, a, hosts[lane]);
        of_lane(c, a, lane, hosts[lane], space, |_, _, _| {});
    }
}

/// The space that an atomic falls into at a checked host address.
fn space_of(c: &mut Call<'_>, a: AtomAccess, host: u64) -> StateSpace {
    match a.space {
        StateSpace::Generic => c.host.memory.view.get_mut().state_space(host),
        other => other,
    }
}

/// Whether memory of a space belongs to this host thread.
fn is_private(space: StateSpace) -> bool {
    matches!(space, StateSpace::Shared | StateSpace::SharedCluster)
}

/// Does the op for one lane at a checked host address in a space. `tell` is told of each element: its place, the old value, and whether it is a `cas` that
/// found another value.
pub(super) fn of_lane(
    c: &mut Call<'_>,
    a: AtomAccess,
    lane: usize,
    host: u64,
    space: StateSpace,
    mut tell: impl FnMut(u64, u32, bool),
) {
    let site = &c.tables.mems[c.site];
    let element = a.ty.bytes();
    let private = is_private(space);
    let word = |k: usize| site.src.get(k).map_or(0, |s| c.ctx.read(*s, lane));
    let mut changed = false;
    if a.ty == ScalarType::B128 {
        let pair = |k: usize| u128::from(word(k)) | u128::from(word(k + 1)) << 64;
        let (x, y) = (pair(0), pair(2));
        // SAFETY: the caller checked 16 aligned bytes for writing; `check` refuses `.b128` on hosts without the instruction.
        let old = unsafe { access::update_16(host, |v| atom_value_128(a.op, v, x, y)) };
        changed |= atom_value_128(a.op, old, x, y) != old;
        tell(host, 16, a.op == AtomOp::Cas && old != x);
        site.dst.iter().zip([old as u64, (old >> 64) as u64]).for_each(|(d, v)| c.ctx.write(*d, lane, v));
    } else {
        let ftz = flushes(a.ty, space);
        let cut = 1_u64.checked_shl(8 * element).map_or(u64::MAX, |top| top - 1);
        for i in 0..usize::from(a.count) {
            let at = host + i as u64 * u64::from(element);
            let (x, y) = if a.op == AtomOp::Cas { (word(0), word(1)) } else { (word(i), 0) };
            let (old, new) = one(at, element, a, ftz, private, x, y);
            changed |= new != old;
            tell(at, element, a.op == AtomOp::Cas && old != x & cut);
            if let Some(d) = site.dst.get(i) {
                c.ctx.write(*d, lane, old);
            }
        }
    }
    if changed {
        c.touched();
    }
}

/// The address that all lanes name, if it is one.
fn one_place(mask: u32, hosts: &[u64; 32]) -> Option<u64> {
    let mut all = lanes(mask).map(|l| hosts[l]);
    all.next().filter(|first| all.all(|at| at == *first))
}

/// An op of all lanes on one element of shared memory, one after the other. Says whether one of them changed it.
fn in_turn(c: &mut Call<'_>, a: AtomAccess, at: u64, space: StateSpace) -> bool {
    let site = &c.tables.mems[c.site];
    let (ftz, bytes) = (flushes(a.ty, space), a.ty.bytes());
    let mut words = [[0; 32]; 2];
    words.iter_mut().zip(&site.src).for_each(|(row, s)| c.ctx.read_row(*s, c.mask, row));
    // SAFETY: the caller checked the element, aligned and writable; the memory is this thread's.
    let mut now = unsafe { access::load(at, bytes) };
    let (mut olds, mut changed) = ([0; 32], false);
    for l in lanes(c.mask) {
        let y = if a.op == AtomOp::Cas { words[1][l] } else { 0 };
        let new = atom_value(a.op, a.ty, ftz, now, words[0][l], y);
        olds[l] = now;
        changed |= new != now;
        now = new;
    }
    // SAFETY: as above.
    unsafe { access::store(at, bytes, now) }
    if let Some(d) = site.dst.first() {
        c.ctx.write_row(*d, c.mask, &olds);
    }
    changed
}

/// A reduction of all lanes on one element: one read and one write for all, the values in the order of lanes, so that sums of floats repeat. Says
/// whether the element changed.
fn fold(c: &mut Call<'_>, a: AtomAccess, at: u64, space: StateSpace) -> bool {
    let site = &c.tables.mems[c.site];
    let ftz = flushes(a.ty, space);
    let mut values = [0; 32];
    lanes(c.mask).for_each(|l| values[l] = site.src.first().map_or(0, |s| c.ctx.read(*s, l)));
    let all = |old: u64| lanes(c.mask).fold(old, |v, l| atom_value(a.op, a.ty, ftz, v, values[l], 0));
    let bytes = a.ty.bytes();
    if is_private(space) {
        // SAFETY: the caller checked the element, aligned and writable; the memory is this thread's.
        let old = unsafe { access::load(at, bytes) };
        let new = all(old);
        // SAFETY: as above.
        unsafe { access::store(at, bytes, new) }
        return new != old;
    }
    // SAFETY: as above, but for other threads, among which the update is one step.
    let old = unsafe { access::update(at, bytes, all) };
    all(old) != old
}

/// One element: the old and the new value.
fn one(at: u64, bytes: u32, a: AtomAccess, ftz: bool, private: bool, x: u64, y: u64) -> (u64, u64) {
    let value = |old: u64| atom_value(a.op, a.ty, ftz, old, x, y);
    if private {
        // SAFETY: the caller checked the element, aligned and writable; the memory is this thread's.
        let old = unsafe { access::load(at, bytes) };
        let new = value(old);
        // SAFETY: as above.
        unsafe { access::store(at, bytes, new) }
        return (old, new);
    }
    if a.op == AtomOp::Add && bytes >= 4 && Float::of(a.ty).is_none() {
        // SAFETY: as above.
        let old = unsafe { access::fetch_add(at, bytes, x) };
        return (old, value(old));
    }
    let mut new = 0;
    let keep = |old: u64| {
        new = value(old);
        new
    };
    // SAFETY: as above. The last value that was asked for is the one that got into memory.
    let old = unsafe { access::update(at, bytes, keep) };
    (old, new)
}

/// `Routine::Add`: the words of the row at byte `y` of the context are added to memory from the address `x` on, for the lanes.
pub(super) fn add(c: &mut Call<'_>) -> u64 {
    c.host.sums.add(c.x, &c.ctx.row32(c.y as u32), c.mask);
    1
}
