//! Addresses in matrices that descriptors describe, as ops: `ir::simt::tile` has the rule.

use handloom_ir::simt::tile::{Field, Major, Pitch, REACH};
use handloom_ir::simt::{Pure, Val};
use handloom_ir::types::{Cmp, Int, Ty};

use crate::form::*;

/// A matrix in shared memory. All values have 32 bits.
pub(super) struct Tile {
    start: Val,
    base: Val,
    /// Bytes of a line of an atom.
    line: Val,
    /// Units of it, less one, and as a power of two.
    last_unit: Val,
    log_units: Val,
    /// From atom to atom, along lines and along units.
    lines: Val,
    units: Val,
}

fn word(n: u32) -> Val {
    Val::Imm(n.into(), Ty::B32)
}

fn left(x: &mut Cx<'_, '_>, v: Val, by: Val) -> Val {
    x.b.pure(Pure::Shl(Ty::B32), Ty::B32, &[v, by])
}

fn right(x: &mut Cx<'_, '_>, v: Val, by: Val) -> Val {
    x.b.pure(Pure::Shr(Int::U32), Ty::B32, &[v, by])
}

fn multiply(x: &mut Cx<'_, '_>, a: Val, b: Val) -> Val {
    x.b.pure(Pure::Mul(Ty::B32), Ty::B32, &[a, b])
}

fn field(x: &mut Cx<'_, '_>, descriptor: Val, of: Field) -> Val {
    let low = x.b.pure(Pure::Shr(Int { ty: Ty::B64, signed: false }), Ty::B64, &[descriptor, word(of.first)]);
    let low = x.b.half(low, false);
    x.b.and(low, word((1 << of.bits) - 1))
}

impl Tile {
    pub(super) fn new(x: &mut Cx<'_, '_>, descriptor: Val, major: Major) -> Tile {
        let four = word(4);
        let [start, leading, stride] = [Field::START, Field::LEADING, Field::STRIDE].map(|of| {
            let units = field(x, descriptor, of);
            left(x, units, four)
        });
        let base = field(x, descriptor, Field::BASE);
        let mode = field(x, descriptor, Field::MODE);
        let is_swizzled = x.b.pure(Pure::ICmp(Cmp::Ne, Int::U32), Ty::P, &[mode, word(0)]);
        let log_units = x.b.sub(four, mode);
        let log_units = x.b.and(log_units, word(3));
        let line = left(x, word(16), log_units);
        let n_units = right(x, line, four);
        let last_unit = x.b.sub(n_units, word(1));
        let pitch = |of| match of {
            Pitch::Leading => leading,
            Pitch::Stride => stride,
            Pitch::Line => line,
        };
        let [plain, swizzled] = [false, true].map(|is_swizzled| major.atoms(is_swizzled));
        let mut either = |plain, swizzled| match plain == swizzled {
            true => pitch(plain),
            false => x.b.select(is_swizzled, pitch(swizzled), pitch(plain)),
        };
        let lines = either(plain.lines, swizzled.lines);
        let units = either(plain.units, swizzled.units);
        Tile { start, base, line, last_unit, log_units, lines, units }
    }

    /// How far a line of the first eight is from the first one.
    pub(super) fn line(&self, x: &mut Cx<'_, '_>, line: Val) -> Val {
        multiply(x, line, self.line)
    }

    /// How far so many times eight lines are.
    pub(super) fn eights(&self, x: &mut Cx<'_, '_>, n: Val) -> Val {
        multiply(x, n, self.lines)
    }

    /// How far a unit of a line is from the first one.
    pub(super) fn unit(&self, x: &mut Cx<'_, '_>, unit: Val) -> Val {
        let within = x.b.and(unit, self.last_unit);
        let within = left(x, within, word(4));
        let atoms = right(x, unit, self.log_units);
        let atoms = multiply(x, atoms, self.units);
        x.b.add(within, atoms)
    }

    /// Where a byte lies, of which these distances are known.
    pub(super) fn address(&self, x: &mut Cx<'_, '_>, distances: &[Val]) -> Val {
        let straight = distances.iter().fold(self.start, |sum, by| x.b.add(sum, *by));
        let order = right(x, straight, word(7));
        let order = x.b.sub(order, self.base);
        let order = x.b.and(order, self.last_unit);
        let order = left(x, order, word(4));
        let address = x.b.xor(straight, order);
        x.b.and(address, word(REACH))
    }
}
