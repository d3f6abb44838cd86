//! Addresses in shared memory out of which a program masks bits of the rank of a cta.
//!
//! On a device the addresses of a cta of a cluster have its rank from bit 24 on, which the manual does not say. Programs for pairs of ctas rely on it: they clear bit 24 of
//! the address of a barrier of their own, and mean that of the first cta of the pair. Here the own addresses have no rank, and those of others have it
//! elsewhere ([`CLUSTER_STRIDE`](handloom_ir::types::CLUSTER_STRIDE)): such a mask changes nothing. So it is looked for where an address register of 32 bits is used in
//! `.shared::cluster`: if all that it may hold went through such a mask, the address is that in the cta whose rank has the bits that are left.
//!
//! What it can miss: a mask before a store to memory, a call, or arithmetic other than additions. The mask itself, and whatever else is done with its result, stays as it is.

use handloom_check::module::{AddrBase, Body, Inst, Operand, RegId, Stmt};
use handloom_ir::simt::{Builder, Pure, Val};
use handloom_ir::types::{Cmp, Int, StateSpace, Ty};
use handloom_isa::data_movement::mapa;
use handloom_isa::form::Role;

/// First bit of the rank in an address on a device.
const RANK_AT: u32 = 24;
/// The bits of a rank: a cluster has 16 ctas at most.
const RANKS: u32 = 15;
/// Bits that are zero in an address of the largest alignment that is asked for.
const MOST_ALIGNED: u32 = 10;

/// For each address operand the bits of the rank that are left, if others were masked out.
pub(crate) fn kept_ranks(body: &Body, inst: &Inst) -> Vec<Option<u32>> {
    if inst.u.space(Role::Space) != StateSpace::SharedCluster {
        return vec![];
    }
    let at = body.stmts.iter().position(|s| matches!(s, Stmt::Inst(i) if std::ptr::eq(&raw const **i, inst)));
    let kept = |o: &Operand| match (o, at) {
        (Operand::Addr { base: AddrBase::Reg(r), .. }, Some(at)) if is_word(body, *r) => {
            match of(body, *r, at, &mut vec![]) {
                Left::Some(kept) => Some(kept),
                Left::All | Left::Assumed => None,
            }
        }
        _ => None,
    };
    inst.src.iter().map(kept).collect()
}

fn is_word(body: &Body, r: RegId) -> bool {
    body.regs[r.0 as usize].ty.bits() == 32
}

/// The bits of the rank that are left in a register.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    /// Nothing was masked out, or not everywhere the same.
    All,
    /// These.
    Some(u32),
    /// Those of the other definitions: the register is made from itself.
    Assumed,
}

impl Left {
    fn and(self, other: Left) -> Left {
        match (self, other) {
            (Left::Assumed, left) | (left, Left::Assumed) => left,
            (a, b) if a == b => a,
            _ => Left::All,
        }
    }
}

/// What a register holds before the statement `at`.
fn of(body: &Body, r: RegId, at: usize, seen: &mut Vec<RegId>) -> Left {
    // Up to a label, what was written last counts.
    let line = body.stmts[..at].iter().rposition(|s| matches!(s, Stmt::Label(_))).map_or(0, |label| label + 1);
    let last = definitions(body, r).filter(|(i, inst)| (line..at).contains(i) && inst.guard.is_none()).last();
    if let Some((at, inst)) = last {
        return after(body, inst, at, seen);
    }
    if seen.contains(&r) {
        return Left::Assumed;
    }
    seen.push(r);
    let left = definitions(body, r).fold(Left::Assumed, |left, (at, inst)| match left {
        Left::All => Left::All,
        _ => left.and(after(body, inst, at, seen)),
    });
    seen.pop();
    left
}

fn after(body: &Body, inst: &Inst, at: usize, seen: &mut Vec<RegId>) -> Left {
    let mut part = |o: &Operand| match o {
        Operand::Reg { reg, .. } if is_word(body, *reg) => of(body, *reg, at, seen),
        _ => Left::All,
    };
    match (inst.form.opcode, &inst.src[..]) {
        ("and", [x, mask]) => [mask, x].into_iter().find_map(|o| mask_of(body, o)).map_or(Left::All, Left::Some),
        ("mov", [x]) => part(x),
        // The sum of an address and a distance.
        ("add", [x, y]) => match (part(x), part(y)) {
            (left, Left::All) | (Left::All, left) => left,
            _ => Left::All,
        },
        _ => Left::All,
    }
}

/// The bits of the rank that a mask leaves, if it leaves the bits below them. Compilers clear the lowest bits too, which are zero in aligned addresses.
fn mask_of(body: &Body, o: &Operand) -> Option<u32> {
    let bits = match o {
        Operand::Imm { bits, .. } => *bits,
        Operand::Reg { reg, .. } => {
            let mut all = definitions(body, *reg);
            let ((_, inst), None) = (all.next()?, all.next()) else { return None };
            match (inst.form.opcode, &inst.src[..]) {
                ("mov", [Operand::Imm { bits, .. }]) => *bits,
                _ => return None,
            }
        }
        _ => return None,
    };
    let bits = u32::try_from(bits).ok()?;
    // What takes out more than bits of a rank means no address of another cta.
    const OTHERS: u32 = !(RANKS << RANK_AT) & u32::MAX << MOST_ALIGNED;
    let kept = bits >> RANK_AT;
    (bits & OTHERS == OTHERS && kept & RANKS != RANKS).then_some(kept)
}

/// The instructions that write a register, with their places.
fn definitions(body: &Body, r: RegId) -> impl Iterator<Item = (usize, &Inst)> {
    fn is_it(o: &Operand, r: RegId) -> bool {
        match o {
            Operand::Reg { reg, .. } => *reg == r,
            Operand::Vector(parts) => parts.iter().any(|p| is_it(p, r)),
            _ => false,
        }
    }
    body.stmts.iter().enumerate().filter_map(move |(at, s)| match s {
        Stmt::Inst(inst) if inst.dst.iter().any(|d| is_it(d, r)) => Some((at, &**inst)),
        Stmt::Inst(_) | Stmt::Label(_) | Stmt::Loc { .. } | Stmt::Pragma(_) => None,
    })
}

/// An address in the cta of which only these bits of the rank are left.
pub(crate) fn masked(b: &mut Builder<'_>, address: Val, kept: u32) -> Val {
    let bits = b.ty(address).bits();
    let wide = b.ext(address, bits, false, Ty::B64);
    let rank = mapa::rank_of(b, wide);
    let kept = b.imm(kept.into(), Ty::B32);
    let left = b.and(rank, kept);
    let there = mapa::in_cta(b, wide, left);
    // Also a cta without a cluster has addresses of its own.
    let is_same = b.pure(Pure::ICmp(Cmp::Eq, Int::U32), Ty::P, &[rank, left]);
    let found = b.select(is_same, wide, there);
    if bits == 32 { b.half(found, false) } else { found }
}
