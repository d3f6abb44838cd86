//! What an atomic makes of the old value and its operands.
//!
//! # PTX ISA
//! Parallel Synchronization and Communication Instructions: atom; red.

use handloom_ir::mbarrier;
use handloom_ir::num;
use handloom_ir::simt::{FMode, Pure};
use handloom_ir::types::{AtomOp, Float, Rounding, ScalarType, StateSpace};

/// The new value of one element.
///
/// `a` is the operand, or for `cas` the value compared with; `b` is the new value of `cas` and unused otherwise. All
/// are zero above the width of `ty` except that operands may have more bits, which are cut off. `ftz` flushes subnormal
/// inputs and results of an f32 sum, see [`flushes`].
pub fn atom_value(op: AtomOp, ty: ScalarType, ftz: bool, old: u64, a: u64, b: u64) -> u64 {
    let mask = mask(ty);
    let (a, b) = (a & mask, b & mask);
    match op {
        AtomOp::And => old & a,
        AtomOp::Or => old | a,
        AtomOp::Xor => old ^ a,
        AtomOp::Exch => a,
        AtomOp::Step => mbarrier::step(old, a),
        AtomOp::Cas => {
            if old == a {
                b
            } else {
                old
            }
        }
        AtomOp::Inc => {
            if old >= a {
                0
            } else {
                old + 1
            }
        }
        AtomOp::Dec => {
            if old == 0 || old > a {
                a
            } else {
                old - 1
            }
        }
        AtomOp::Add => match Float::of(ty) {
            Some(f) => {
                let mode = FMode { ty: f, round: Rounding::Nearest, ftz, sat: false, relu: false };
                num::eval(Pure::FAdd(mode), &[old, a])[0]
            }
            None => old.wrapping_add(a) & mask,
        },
        AtomOp::Min => match Float::of(ty) {
            Some(f) => num::eval(Pure::FMin { ty: f, ftz: false, nan: false, xorsign: false }, &[old, a])[0],
            None if less(ty, a, old) => a,
            None => old,
        },
        AtomOp::Max => match Float::of(ty) {
            Some(f) => num::eval(Pure::FMax { ty: f, ftz: false, nan: false, xorsign: false }, &[old, a])[0],
            None if less(ty, old, a) => a,
            None => old,
        },
    }
}

/// The new value of a `.b128` element; `op` is `Exch` or `Cas`.
///
/// # Panics
/// `op` is neither, which is a fault of what built the op.
pub fn atom_value_128(op: AtomOp, old: u128, a: u128, b: u128) -> u128 {
    match op {
        AtomOp::Exch => a,
        AtomOp::Cas => {
            if old == a {
                b
            } else {
                old
            }
        }
        AtomOp::And
        | AtomOp::Or
        | AtomOp::Xor
        | AtomOp::Add
        | AtomOp::Inc
        | AtomOp::Dec
        | AtomOp::Min
        | AtomOp::Max
        | AtomOp::Step => unreachable!("bug: `.b128` atomics have no {op:?}"),
    }
}

/// Whether a sum of this type at an address in this space flushes subnormals: f32 in global memory only.
///
/// A generic address counts as the space it falls into.
pub fn flushes(ty: ScalarType, space: StateSpace) -> bool {
    ty == ScalarType::F32 && space == StateSpace::Global
}

/// All ones at the width of the type.
fn mask(ty: ScalarType) -> u64 {
    1_u64.checked_shl(ty.bits()).map_or(u64::MAX, |top| top - 1)
}

/// Whether `x` is below `y`, both zero above the width, as integers of the type.
fn less(ty: ScalarType, x: u64, y: u64) -> bool {
    // A signed order is the unsigned one with the sign bit flipped.
    let flip = if ty.is_signed() { 1_u64 << (ty.bits() - 1) } else { 0 };
    x ^ flip < y ^ flip
}
