//! Frame slots that become registers.
//!
//! A slot is looked at if its address is used for nothing but weak loads and stores at constant offsets. Each piece of it that is always
//! accessed at the same place with the same width becomes a register. What is accessed in different widths stays in memory.
//! Run `simplify` before: it moves constants into the offsets of accesses.

use handloom_ir::simt::*;
use handloom_ir::types::*;
use smallvec::smallvec;

use crate::graph::{Dominators, Edges};

use super::values::Values;

/// Replaces what it can; whether anything was.
pub fn promote_slots(f: &mut Function) -> bool {
    if f.slots.is_empty() {
        return false;
    }
    let doms = Dominators::of(f, &Edges::into_blocks(f));
    let values = Values::of(f, &doms);
    let addresses = slot_addresses(f, &values);
    let kept = escaping_slots(f, &addresses);
    let mut pieces = pieces(f, &addresses, &kept);
    pieces.retain(|p| p.alone);
    if pieces.is_empty() || pieces.len() > MAX_PIECES {
        return false;
    }
    f.regs.push(Ty::B16);
    let byte = Reg(f.regs.len() as u32 - 1);
    for p in &mut pieces {
        f.regs.push(element_type(p.bits));
        p.reg = Reg(f.regs.len() as u32 - 1);
    }
    let registers = Registers { pieces, byte, types: &f.regs };
    for b in &mut f.blocks {
        if b.insts.iter().any(|i| access_of(i, &addresses).is_some()) {
            let old = std::mem::take(&mut b.insts);
            for i in old {
                rewrite(i, &addresses, &registers, &mut b.insts);
            }
        }
    }
    true
}

/// More pieces than this are an array; it is better off in memory.
const MAX_PIECES: usize = 512;

/// The registers that replace slots.
struct Registers<'a> {
    pieces: Vec<Piece>,
    /// Holds a byte between two instructions.
    byte: Reg,
    types: &'a [Ty],
}

/// A part of a slot that is accessed as one element.
struct Piece {
    slot: SlotId,
    offset: i64,
    bits: u8,
    /// Whether no access overlaps it without being exactly it.
    alone: bool,
    /// The register that replaces it.
    reg: Reg,
}

/// The slot whose address a register holds.
fn slot_addresses(f: &Function, values: &Values) -> Vec<Option<SlotId>> {
    let mut addresses = vec![None; f.regs.len()];
    for i in f.blocks.iter().flat_map(|b| &b.insts) {
        if let (Op::SlotAddr(s), Some(d)) = (i.op, i.dst.first().filter(|d| values.is_value(**d))) {
            addresses[d.idx()] = Some(s);
        }
    }
    addresses
}

/// Slot and offset of an access to a known slot.
fn access_of(i: &Inst, addresses: &[Option<SlotId>]) -> Option<(SlotId, i64, Access)> {
    let (Op::Load { access, offset } | Op::Store { access, offset }) = i.op else { return None };
    let Some(Val::Reg(base)) = i.src.first() else { return None };
    let slot = addresses.get(base.idx()).copied().flatten()?;
    Some((slot, offset, access))
}

/// Slots whose address is used for something else, or that are accessed outside their bounds.
fn escaping_slots(f: &Function, addresses: &[Option<SlotId>]) -> Vec<bool> {
    let mut kept = vec![false; f.slots.len()];
    let slot_of = |v: &Val| match v {
        Val::Reg(r) => addresses.get(r.idx()).copied().flatten(),
        Val::Imm(..) => None,
    };
    for b in &f.blocks {
        for i in &b.insts {
            let mut others = &i.src[..];
            if let Some((slot, offset, access)) = access_of(i, addresses) {
                let end = offset.saturating_add(i64::from(access.bytes()));
                let inside = offset >= 0 && end <= i64::from(f.slots[slot.idx()].size);
                let aligned = offset.rem_euclid(i64::from(access.bytes())) == 0;
                // Another space is wrong, and so is a misaligned address: the access stays, so that it traps.
                let fits = matches!(access.space, StateSpace::Local | StateSpace::Generic) && aligned;
                kept[slot.idx()] |= !inside || !fits || access.order != Order::Weak;
                others = &i.src[1..];
            }
            // What is counted stays the same.
            if let Op::Count(Count::Access { .. }) = i.op {
                others = &i.src[1..];
            }
            others.iter().filter_map(slot_of).for_each(|s| kept[s.idx()] = true);
            if let Op::SlotAddr(s) = i.op
                && i.dst.iter().any(|d| addresses[d.idx()].is_none())
            {
                kept[s.idx()] = true;
            }
        }
        b.term.sources().iter().filter_map(slot_of).for_each(|s| kept[s.idx()] = true);
        if let Term::Call { args, .. } = b.term {
            kept[args.idx()] = true;
        }
    }
    kept
}

/// The pieces of all slots that are not kept, sorted by slot and offset.
fn pieces(f: &Function, addresses: &[Option<SlotId>], kept: &[bool]) -> Vec<Piece> {
    let mut all: Vec<(SlotId, i64, u8)> = Vec::new();
    for i in f.blocks.iter().flat_map(|b| &b.insts) {
        if let Some((slot, offset, access)) = access_of(i, addresses).filter(|(s, ..)| !kept[s.idx()]) {
            let step = i64::from(access.bits / 8);
            all.extend((0..i64::from(access.count)).map(|k| (slot, offset + k * step, access.bits)));
        }
    }
    all.sort_unstable();
    all.dedup();
    let mut pieces: Vec<Piece> = Vec::with_capacity(all.len());
    // The furthest end of the pieces so far, and the one that has it.
    let mut reach: Option<(SlotId, i64, usize)> = None;
    for (slot, offset, bits) in all {
        let end = offset + i64::from(bits / 8);
        let overlapped = reach.filter(|(s, e, _)| *s == slot && *e > offset).map(|(.., k)| k);
        if let Some(k) = overlapped {
            pieces[k].alone = false;
        }
        pieces.push(Piece { slot, offset, bits, alone: overlapped.is_none(), reg: Reg(u32::MAX) });
        if reach.is_none_or(|(s, e, _)| s != slot || end > e) {
            reach = Some((slot, end, pieces.len() - 1));
        }
    }
    pieces
}

/// One access, element by element; it stays for the elements that stay in memory.
fn rewrite(i: Inst, addresses: &[Option<SlotId>], registers: &Registers, out: &mut Vec<Inst>) {
    let Some((slot, offset, access)) = access_of(&i, addresses) else { return out.push(i) };
    let piece = |k: u8| {
        let at = offset + i64::from(k) * i64::from(access.bits / 8);
        let pieces = &registers.pieces;
        pieces.binary_search_by_key(&(slot, at), |p| (p.slot, p.offset)).ok().map(|n| &pieces[n])
    };
    let mut left = access.elements;
    let mut moves = Vec::new();
    for k in (0..access.count).filter(|k| access.elements >> k & 1 == 1) {
        let Some(p) = piece(k) else { continue };
        left &= !(1 << k);
        if matches!(i.op, Op::Load { .. }) {
            load_element(&i, i.dst[usize::from(k)], p, registers, &mut moves);
        } else {
            store_element(&i, i.src[1 + usize::from(k)], p, registers, &mut moves);
        }
    }
    if left != 0 {
        let mut rest = i;
        if let Op::Load { access, .. } | Op::Store { access, .. } = &mut rest.op {
            access.elements = left;
        }
        // What moved away is written behind it.
        out.push(rest);
    }
    out.append(&mut moves);
}

/// The result is not looked at where the guard is 0: it was unset before, or something is selected after it.
fn load_element(i: &Inst, to: Reg, piece: &Piece, registers: &Registers, out: &mut Vec<Inst>) {
    let ty = registers.types[to.idx()];
    out.push(value_inst(i, Pure::Mov(ty), to, smallvec![Val::Reg(piece.reg)]));
}

/// The old value stays where the guard is 0. A byte is kept without what is above it in its register.
fn store_element(i: &Inst, mut from: Val, piece: &Piece, registers: &Registers, out: &mut Vec<Inst>) {
    let ty = registers.types[piece.reg.idx()];
    let cut = Pure::Ext { bits: 8, signed: false, from: ty, to: ty };
    match i.guard() {
        None if piece.bits == 8 => out.push(value_inst(i, cut, piece.reg, smallvec![from])),
        None => out.push(value_inst(i, Pure::Mov(ty), piece.reg, smallvec![from])),
        Some(guard) => {
            if piece.bits == 8 {
                out.push(value_inst(i, cut, registers.byte, smallvec![from]));
                from = Val::Reg(registers.byte);
            }
            out.push(value_inst(i, Pure::Select(ty), piece.reg, smallvec![guard, from, Val::Reg(piece.reg)]));
        }
    }
}

fn value_inst(at: &Inst, op: Pure, dst: Reg, src: Vals) -> Inst {
    Inst { op: Op::Pure(op), dst: smallvec![dst], src, guarded: false, span: at.span }
}

fn element_type(bits: u8) -> Ty {
    match bits {
        8 | 16 => Ty::B16,
        32 => Ty::B32,
        _ => Ty::B64,
    }
}
