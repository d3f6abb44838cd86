//! Texels: what bytes stand for, and the bytes that stand for values.

use super::object::{Channel, Image};
use crate::num::format::{self, Format, Rounder};
use crate::types::Rounding;

/// Memory that texels lie in. All that is read and written lies between the ends of an image that was looked at before.
pub trait Texels {
    /// Reads 1, 2, 4 or 8 bytes, little-endian, zero-extended.
    fn read(&mut self, address: u64, bytes: u32) -> u64;
    /// Writes the low 1, 2, 4 or 8 bytes of a value, little-endian.
    fn write(&mut self, address: u64, bytes: u32, value: u64);
}

/// The components of a texel as they lie in memory.
#[inline]
pub(super) fn read(image: &Image, memory: &mut impl Texels, address: u64) -> [u32; 4] {
    let (n, bytes) = (usize::from(image.components), image.channel.bytes());
    let mut out = [0; 4];
    for (i, c) in out.iter_mut().enumerate().take(n) {
        *c = memory.read(address.wrapping_add(u64::from(bytes) * i as u64), bytes) as u32;
    }
    out
}

/// A component as the program gets it: the bits of an `.f32`, or an integer extended to 32 bits.
#[inline]
pub(super) fn component(channel: Channel, at: usize, bits: u32) -> u32 {
    use Channel::*;
    match channel {
        U8 | U16 | U32 | S32 | F32 => bits,
        S8 => i32::from(bits as u8 as i8) as u32,
        S16 => i32::from(bits as u16 as i16) as u32,
        F16 => (format::widen(&Format::F16, u64::from(bits)) as f32).to_bits(),
        Unorm8 => (f32::from(bits as u8) / 255.0).to_bits(),
        Unorm16 => (f32::from(bits as u16) / 65535.0).to_bits(),
        Snorm8 => (f32::from(bits as u8 as i8) / 127.0).max(-1.0).to_bits(),
        Snorm16 => (f32::from(bits as u16 as i16) / 32767.0).max(-1.0).to_bits(),
        Srgb8 if at < 3 => linear_of_srgb(bits as u8).to_bits(),
        Srgb8 => (f32::from(bits as u8) / 255.0).to_bits(),
    }
}

/// What a component is that the image does not have: 0, and 1 for alpha.
///
/// Choice: the manual does not say; this is what graphics interfaces do.
pub(super) const fn absent(channel: Channel, at: usize) -> u32 {
    match (at == 3, channel.is_float()) {
        (false, _) => 0,
        (true, true) => 1.0_f32.to_bits(),
        (true, false) => 1,
    }
}

/// The bits of a component that stand for what a program stores by format: `.f32`, `.u32` or `.s32` as the channel says. Values beyond the ends become the
/// ends.
pub(super) fn stored(channel: Channel, at: usize, value: u32) -> u32 {
    use Channel::*;
    let float = f64::from(f32::from_bits(value));
    let scaled = |low: f64, most: f64| {
        let x = if float.is_nan() { 0.0 } else { float.clamp(low, 1.0) };
        (x * most).round_ties_even() as i64 as u32
    };
    let signed = value as i32;
    match channel {
        U8 => value.min(0xff),
        U16 => value.min(0xffff),
        S8 => signed.clamp(-0x80, 0x7f) as u32 & 0xff,
        S16 => signed.clamp(-0x8000, 0x7fff) as u32 & 0xffff,
        U32 | S32 | F32 => value,
        F16 => format::narrow(&Format::F16, float, Rounder::new(Rounding::Nearest), false) as u32,
        Unorm8 => scaled(0.0, 255.0),
        Unorm16 => scaled(0.0, 65535.0),
        Snorm8 => scaled(-1.0, 127.0) & 0xff,
        Snorm16 => scaled(-1.0, 32767.0) & 0xffff,
        Srgb8 if at < 3 => u32::from(srgb_of_linear(f32::from_bits(value))),
        Srgb8 => scaled(0.0, 255.0),
    }
}

/// The value that a byte of sRGB stands for, by basic operations alone, so that every host has the same.
fn linear_of_srgb(byte: u8) -> f32 {
    let c = f64::from(byte) / 255.0;
    if c <= 0.04045 {
        return (c / 12.92) as f32;
    }
    let base = (c + 0.055) / 1.055;
    // base^2.4 = (base^12)^(1/5), by Newton's method, which comes from above.
    let power = {
        let square = base * base;
        let fourth = square * square;
        fourth * fourth * fourth
    };
    let mut root = 1.0_f64;
    for _ in 0..64 {
        let fourth = root * root * root * root;
        root -= (root * fourth - power) / (5.0 * fourth);
    }
    root as f32
}

/// The byte of sRGB whose value is nearest.
fn srgb_of_linear(value: f32) -> u8 {
    // Comparisons with a NaN do not hold: it becomes 0.
    let mut low = 0_u8;
    while low < 255 {
        let (here, next) = (linear_of_srgb(low), linear_of_srgb(low + 1));
        if value > here + (next - here) / 2.0 {
            low += 1;
        } else {
            break;
        }
    }
    low
}
