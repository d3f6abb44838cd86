//! Conversions of 16-bit floats against the package `half`: all sources of 16 bits, and of `.f32` a dense sample with every boundary.
//!
//! It agrees on numbers and keeps the payload of a NaN, where PTX wants the canonical one.

use half::{bf16, f16};
use handloom_ir::num::eval;
use handloom_ir::num::format::{Format, Rounder, narrow, widen};
use handloom_ir::simt::{Cvt, Pure};
use handloom_ir::types::{Rounding, ScalarType};

const NAN16: u16 = 0x7fff;

/// A 16-bit format: how each side converts.
struct Side {
    format: &'static Format,
    ty: ScalarType,
    to_f32: fn(u16) -> f32,
    to_f64: fn(u16) -> f64,
    of_f32: fn(f32) -> u16,
}

const SIDES: [Side; 2] = [
    Side {
        format: &Format::F16,
        ty: ScalarType::F16,
        to_f32: |a| f16::from_bits(a).to_f32(),
        to_f64: |a| f16::from_bits(a).to_f64(),
        of_f32: |a| f16::from_f32(a).to_bits(),
    },
    Side {
        format: &Format::BF16,
        ty: ScalarType::BF16,
        to_f32: |a| bf16::from_bits(a).to_f32(),
        to_f64: |a| bf16::from_bits(a).to_f64(),
        of_f32: |a| bf16::from_f32(a).to_bits(),
    },
];

fn converted(to: ScalarType, from: ScalarType, a: u64) -> u64 {
    eval(Pure::Cvt(Cvt::plain(to, from)), &[a])[0]
}

#[test]
fn all_16_bit_floats_widen_as_half_does() {
    for side in &SIDES {
        for a in 0..=u16::MAX {
            let (ours, theirs) = (widen(side.format, u64::from(a)), (side.to_f64)(a));
            let wide = converted(ScalarType::F32, side.ty, u64::from(a));
            if theirs.is_nan() {
                assert!(ours.is_nan(), "{} {a:#06x}", side.ty);
                assert_eq!(wide, 0x7fff_ffff, "{} {a:#06x}", side.ty);
            } else {
                assert_eq!(ours.to_bits(), theirs.to_bits(), "{} {a:#06x}", side.ty);
                assert_eq!(wide, u64::from((side.to_f32)(a).to_bits()), "{} {a:#06x}", side.ty);
            }
        }
    }
}

fn check_narrow(side: &Side, bits: u32) {
    let a = f32::from_bits(bits);
    let theirs = if a.is_nan() { NAN16 } else { (side.of_f32)(a) };
    let ours = converted(side.ty, ScalarType::F32, u64::from(bits));
    assert_eq!(ours, u64::from(theirs), "{} of {bits:#010x}", side.ty);
    if !a.is_nan() {
        let exact = narrow(side.format, f64::from(a), Rounder::new(Rounding::Nearest), false);
        assert_eq!(exact, ours, "{} of {bits:#010x}", side.ty);
    }
}

#[test]
fn f32_to_nearest_as_half_does() {
    for side in &SIDES {
        for bits in (0..=u32::MAX).step_by(499) {
            check_narrow(side, bits);
        }
        // Each number, the middle between it and the next one away from zero, and what lies beside both.
        for a in 0..=u16::MAX {
            let at = (side.to_f32)(a);
            let next = (side.to_f32)(a.saturating_add(1));
            let middle = if next.is_infinite() { at + (at - (side.to_f32)(a - 1)) / 2.0 } else { at.midpoint(next) };
            for bits in [at, middle].map(f32::to_bits) {
                (-2..=2).for_each(|by| check_narrow(side, bits.wrapping_add_signed(by)));
            }
        }
    }
}

#[test]
fn a_double_is_rounded_once() {
    // Above the middle between 1 and the next `.f16` by less than an `.f32` holds: a way through `.f32` ends at 1.
    let above = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
    assert_eq!(converted(ScalarType::F16, ScalarType::F64, above.to_bits()), 0x3c01);
    let above = 1.0 + 2f64.powi(-8) + 2f64.powi(-40);
    assert_eq!(converted(ScalarType::BF16, ScalarType::F64, above.to_bits()), 0x3f81);
}
