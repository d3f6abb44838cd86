//! Which registers an instruction type takes: Tables 26, 27 and 28 of the manual.

use handloom_ir::types::{ScalarType, TypeClass};

use crate::module::Fit;

/// Whether an operand is read or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The instruction reads it.
    Source,
    /// The instruction writes it.
    Destination,
}

/// The rule for ordinary instructions: exactly the size, and a kind that agrees.
///
/// # PTX ISA
/// Type Information for Instructions and Operands (Table 26).
pub fn ordinary(inst: ScalarType, reg: ScalarType) -> Option<Fit> {
    if inst == reg {
        return Some(Fit::Same);
    }
    if inst.bits() != reg.bits() {
        return None;
    }
    agrees(inst, acting(inst, reg)).then_some(Fit::Same)
}

/// The rule for `ld`, `st` and `cvt`: registers may be wider than the instruction type.
///
/// # PTX ISA
/// Operand Size Exceeding Instruction-Type Size (Tables 27 and 28).
pub fn relaxed(inst: ScalarType, reg: ScalarType, side: Side) -> Option<Fit> {
    if inst == reg {
        return Some(Fit::Same);
    }
    let reg = acting(inst, reg);
    // Only the basic types are relaxed: the assembler wants a bit register of the very size for all the others.
    let is_basic = matches!(inst, ScalarType::F16 | ScalarType::F16x2 | ScalarType::F32 | ScalarType::F64);
    if inst.class() == TypeClass::Float && !is_basic && inst.bits() != reg.bits() {
        return None;
    }
    if reg.bits() < inst.bits() || !agrees(inst, reg) {
        return None;
    }
    // A 128-bit instruction type takes nothing but `.b128`, which the size test has ensured.
    Some(match (inst.bits() == reg.bits(), side) {
        (true, _) => Fit::Same,
        (false, Side::Destination) if inst.class() == TypeClass::Signed => Fit::Sign,
        (false, _) => Fit::Zero,
    })
}

/// Whether the kinds agree, sizes aside.
fn agrees(inst: ScalarType, reg: ScalarType) -> bool {
    use TypeClass::*;
    match (inst.class(), reg.class()) {
        (Pred, r) => r == Pred,
        (_, Pred) => false,
        (Bits, _) => true,
        // Packed integers live in bit registers.
        (Unsigned | Signed, Unsigned | Signed) if is_packed(inst) => false,
        (Unsigned | Signed, Bits | Unsigned | Signed) => true,
        (Unsigned | Signed, Float) => false,
        (Float, Bits) => true,
        (Float, Float) => inst == reg,
        (Float, Unsigned | Signed) => false,
    }
}

/// Whether a type is a pair or more of integers.
pub(crate) fn is_packed(t: ScalarType) -> bool {
    matches!(t, ScalarType::U16x2 | ScalarType::S16x2 | ScalarType::U8x4 | ScalarType::S8x4)
}

/// What a register acts as: one of type `.f16x2` is a `.b32` to integer and bit types, and itself to floats.
fn acting(inst: ScalarType, reg: ScalarType) -> ScalarType {
    let is_pair = reg == ScalarType::F16x2 && inst.class() != TypeClass::Float;
    if is_pair { ScalarType::B32 } else { reg }
}
