//! Loads, stores and atomics that code gives away: lane by lane, by all rules. All lanes are checked before the first one has an effect.

use handloom_codegen::abi::Loc;
use handloom_ir::simt::Op;
use handloom_ir::trap::TrapKind;
use handloom_ir::types::StateSpace;

use super::Call;
use super::check::{Request, locate, record, refresh};
use super::{atomic, stack};
use crate::memory::access;
use crate::sched::host::CtaHost;

/// The lanes of a mask.
pub(super) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |l| mask >> l & 1 == 1)
}

pub(super) fn memory(c: &mut Call<'_>) -> u64 {
    let site = &c.tables.mems[c.site];
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
    let Some(r) = Request::of(site) else {
        c.host.bug = Some(format!("memory routine for {:?}", site.op));
        return 0;
    };
    let header = c.ctx.header();
    let mut hosts = [0_u64; 32];
    let mut refused: Vec<(usize, u64, TrapKind)> = Vec::new();
    let mut found = None;
    for lane in lanes(c.mask) {
        let addr = wrap(site.addr, c.ctx.read(site.addr, lane).wrapping_add_signed(r.offset));
        match locate(c.host, &r, CtaHost::thread(&header, lane), addr) {
            Ok((at, hit)) => {
                hosts[lane] = at;
                found = Some(hit);
            }
            Err(why) => refused.push((lane, addr, why)),
        }
    }
    if !refused.is_empty() {
        record(c, &r, site.span, &refused);
        return 0;
    }
    if let Some(hit) = found {
        refresh(c, &r, hit, u64::from(r.bytes));
    }
    match site.op {
        Op::Load { access, .. } => load(c, &r, access.whole && access.order.is_strong(), &hosts),
        Op::Store { access, .. } => store(c, &r, access.whole && access.order.is_strong(), &hosts),
        Op::Atom { access, .. } | Op::Red { access, .. } => atomic::atomics(c, access, &hosts),
        _ => {}
    }
    1
}

/// A 32-bit address wraps at its own width.
fn wrap(loc: Loc, addr: u64) -> u64 {
    match loc {
        Loc::Row32(_) | Loc::Linear { bits: 32, .. } | Loc::Affine { bits: 32, .. } => addr & 0xffff_ffff,
        Loc::Row64(_) | Loc::Scalar(_) | Loc::Imm(_) | Loc::Linear { .. } | Loc::Groups { .. } | Loc::Affine { .. } => {
            addr
        }
    }
}

/// `whole`: two 64-bit elements that are read as one.
fn load(c: &mut Call<'_>, r: &Request, whole: bool, hosts: &[u64; 32]) {
    let site = &c.tables.mems[c.site];
    for lane in lanes(c.mask) {
        let at = hosts[lane];
        if whole && r.bytes == 16 {
            // SAFETY: `locate` passed 16 aligned bytes. Writing back what is there needs a writable page, which every open page is.
            let value = unsafe { access::update_16(at, |v| v) };
            let halves = [value as u64, (value >> 64) as u64];
            site.dst.iter().zip(halves).for_each(|(d, v)| c.ctx.write(*d, lane, v));
            continue;
        }
        for (i, d) in site.dst.iter().enumerate() {
            if r.elements >> i & 1 == 1 {
                // SAFETY: `locate` passed the element, aligned.
                let value = unsafe { access::load(at + i as u64 * u64::from(r.element), r.element) };
                c.ctx.write(*d, lane, value);
            }
        }
    }
}

fn store(c: &mut Call<'_>, r: &Request, whole: bool, hosts: &[u64; 32]) {
    let site = &c.tables.mems[c.site];
    for lane in lanes(c.mask) {
        let at = hosts[lane];
        if whole && r.bytes == 16 {
            let half = |i: usize| site.src.get(i).map_or(0, |s| u128::from(c.ctx.read(*s, lane)));
            let value = half(0) | half(1) << 64;
            // SAFETY: `locate` passed 16 aligned bytes for writing.
            unsafe { access::update_16(at, |_| value) };
            continue;
        }
        for (i, s) in site.src.iter().enumerate() {
            if r.elements >> i & 1 == 1 {
                let value = c.ctx.read(*s, lane);
                // SAFETY: `locate` passed the element for writing, aligned.
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
        StateSpace::Global | StateSpace::Const | StateSpace::Local => falls_into == space,
        StateSpace::Generic => true,
        StateSpace::Reg | StateSpace::Sreg | StateSpace::Tex => false,
    }
}
