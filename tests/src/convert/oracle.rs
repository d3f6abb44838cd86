//! What each form must give.

use std::cmp::Ordering;

use super::exact::{Float, Magnitude, Place, Value};
use super::forms::{BF16, E2M1, Elem, F16, F32, F64, Form, Round};

/// A number with its neighbours in the format that it goes to; found once and used for all roundings.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    value: Value,
    place: Place,
}

/// The value of an element of a source.
pub fn value_of(ty: Elem, bits: u64) -> Value {
    match ty {
        Elem::Int(width, signed) => {
            let low = u128::from(bits & u64::MAX >> (64 - width));
            let negative = signed && low >> (width - 1) != 0;
            Value::Finite(negative, Magnitude::new(if negative { (1 << width) - low } else { low }, 0))
        }
        Elem::Float(_, f) => f.value(bits),
        Elem::Ue8m0 if bits & 0xff == 0xff => Value::Nan,
        Elem::Ue8m0 => Value::Finite(false, Magnitude::new(1, power(bits))),
        Elem::S2f6 => match value_of(Elem::Int(8, true), bits) {
            Value::Finite(negative, a) => Value::Finite(negative, a.scaled(-6)),
            other => other,
        },
    }
}

/// The exponent that a ue8m0 code stands for.
fn power(code: u64) -> i32 {
    i32::try_from(code & 0xff).expect("a byte") - 127
}

/// Finds the neighbours of a source value in the result type; `factor` is the ue8m0 code of a scaled form.
pub fn placed(form: &Form, bits: u64, factor: Option<u64>) -> Placed {
    let mut value = value_of(form.from, bits);
    if let Some(code) = factor {
        let by = if form.to == Elem::S2f6 { -power(code) } else { power(code) };
        value = match value {
            _ if code & 0xff == 0xff => Value::Nan,
            Value::Finite(negative, a) => Value::Finite(negative, a.scaled(by)),
            other => other,
        };
    }
    let place = match (form.to, value) {
        (Elem::Float(_, f), Value::Finite(_, a)) => f.place(a),
        _ => Place { code: 0, rest: None },
    };
    Placed { value, place }
}

/// The bits of one element of the result. `random` are the random bits of the element and how many they are.
pub fn element(form: &Form, from: &Placed, random: (u64, u32)) -> u64 {
    let value = flushed(form, from.value);
    let place = if value == from.value { from.place } else { Place { code: 0, rest: None } };
    match form.to {
        Elem::Int(bits, signed) => to_integer(form, value, bits, signed),
        Elem::Float(_, f) => to_float(form, f, value, place, random),
        Elem::Ue8m0 => to_power(form, value),
        Elem::S2f6 => to_fixed(form, value),
    }
}

/// `.ftz`: what is subnormal as `.f32`, as a source or as a result, becomes zero. A result is judged by its code, except that to nearest, as
/// in ptxas, it is tiny unless it would become the least normal number with any exponent at hand; a quarter of a place decides that.
fn flushed(form: &Form, value: Value) -> Value {
    let least = match form.round {
        Some(Round::Nearest) if form.from == F64 => Magnitude::new((1 << 25) - 1, -151),
        Some(_) if form.from == F64 => Magnitude::ZERO,
        _ => Magnitude::new(1, -126),
    };
    match value {
        Value::Finite(negative, a) if form.ftz && (form.from == F32 || form.to == F32) && a < least => {
            Value::Finite(negative, Magnitude::ZERO)
        }
        other => other,
    }
}

/// Whether the magnitude goes to the next code.
fn goes_up(round: Round, negative: bool, odd: bool, rest: Option<Ordering>) -> bool {
    let Some(rest) = rest else { return false };
    match round {
        Round::Nearest => rest == Ordering::Greater || (rest == Ordering::Equal && odd),
        Round::Away => rest != Ordering::Less,
        Round::Zero => false,
        Round::Down => negative,
        Round::Up => !negative,
        Round::Random => panic!("random rounding needs its bits"),
    }
}

/// The integer of a rounded magnitude; a very large one stays very large.
fn whole(a: Magnitude, round: Round, negative: bool) -> u128 {
    let (code, rest) = a.integer();
    code.saturating_add(u128::from(goes_up(round, negative, code & 1 != 0, rest)))
}

fn to_integer(form: &Form, value: Value, bits: u32, signed: bool) -> u64 {
    let mask = u64::MAX >> (64 - bits);
    let (least, most) =
        if signed { (-1_i128 << (bits - 1), (1_i128 << (bits - 1)) - 1) } else { (0, i128::from(mask)) };
    let from_int = matches!(form.from, Elem::Int(..));
    let exact = match value {
        Value::Nan => return if form.from == F64 || bits == 64 { 1 << (bits - 1) } else { 0 },
        Value::Infinite(true) => i128::MIN,
        Value::Infinite(false) => i128::MAX,
        Value::Finite(negative, a) => {
            let round = form.round.unwrap_or(Round::Zero);
            let size = i128::try_from(whole(a, round, negative)).unwrap_or(i128::MAX);
            if negative { -size } else { size }
        }
    };
    // Between integers the lower bits are kept; everything else is limited to the type.
    let kept = if from_int && !form.sat { exact } else { exact.clamp(least, most) };
    (kept as u64) & mask
}

fn to_float(form: &Form, f: Float, value: Value, place: Place, random: (u64, u32)) -> u64 {
    let nan = if form.sat { 0 } else { f.nan.unwrap_or(f.max) };
    let (negative, code) = match value {
        Value::Nan => return nan << f.padding,
        Value::Infinite(negative) => (negative, if form.satfinite { f.max } else { f.infinite.unwrap_or(f.max) }),
        Value::Finite(negative, a) if form.to == form.from && form.round.is_some() => {
            let size = Magnitude::new(whole(a, form.round.unwrap_or(Round::Zero), negative), 0);
            // What is too large for `whole` was integral before.
            let a = if a > Magnitude::new(1, 100) { a } else { size };
            let integral = f.place(a);
            assert_eq!(integral.rest, None, "an integral number of a format is one of its numbers");
            (negative, integral.code)
        }
        Value::Finite(negative, a) => {
            let round = form.round.unwrap_or(Round::Nearest);
            let up = match round {
                Round::Random => carries(&f, a, place, random),
                round => goes_up(round, negative, place.code & 1 != 0, place.rest),
            };
            let code = place.code + u64::from(up);
            (negative, if code > f.max { beyond(form, &f, round, negative) } else { code })
        }
    };
    let code = if form.ftz && form.to == F32 && code < 1 << f.fraction { 0 } else { code };
    let clamps = form.sat || form.relu;
    if clamps && negative {
        return 0;
    }
    let one = ((1 << (f.exponent - 1)) - 1) << f.fraction;
    let code = if form.sat { code.min(one) } else { code };
    (code | u64::from(negative) << f.sign()) << f.padding
}

/// What stands for a number above the largest one.
// Choice: `.rs` overflows as `.rn` does, which the manual leaves open.
fn beyond(form: &Form, f: &Float, round: Round, negative: bool) -> u64 {
    let stays = match round {
        Round::Zero => true,
        Round::Down => !negative,
        Round::Up => negative,
        Round::Nearest | Round::Away | Round::Random => false,
    };
    if form.satfinite || stays { f.max } else { f.infinite.unwrap_or(f.max) }
}

/// Whether the sum of the discarded part and the random bits, both fractions of a step, reaches one.
fn carries(f: &Float, a: Magnitude, place: Place, (random, bits): (u64, u32)) -> bool {
    if place.rest.is_none() {
        return false;
    }
    // The distance of two numbers of `.f32` that are neighbours in a coarser format, in steps of that format. Each of these is exact in
    // `f64`: a number of 24 bits, its discarded bits, powers of two. The sum is inexact only where the fraction is below 2^-28, and
    // then it is below one anyway, because the random bits are at most 1 - 2^-16.
    let as_f64 = |m: Magnitude| match f64_of(m) {
        Some(value) => value,
        None => panic!("{m:?} is no f64"),
    };
    let below = as_f64(f.magnitude(place.code));
    let step = as_f64(f.magnitude(place.code + 1)) - below;
    let fraction = (as_f64(a) - below) / step;
    fraction + random as f64 / (1_u64 << bits) as f64 >= 1.0
}

fn f64_of(m: Magnitude) -> Option<f64> {
    let Elem::Float(_, f) = F64 else { return None };
    let place = f.place(m);
    (place.rest.is_none() && place.code <= f.max).then(|| f64::from_bits(place.code))
}

/// A power of two without sign. `2^-127` is code 0, and so is all below it.
fn to_power(form: &Form, value: Value) -> u64 {
    let most = if form.satfinite { 0xfe } else { 0xff };
    match value {
        Value::Nan => 0xff,
        Value::Infinite(_) => most,
        Value::Finite(_, a) => {
            let up = form.round == Some(Round::Up);
            // The first code whose power is not below, or the last that is not above.
            let code = (0..=0xff_u64).find(|code| Magnitude::new(1, power(*code)) >= a).unwrap_or(0x100);
            let is_exact = code <= 0xfe && Magnitude::new(1, power(code)) == a;
            let code = if up || is_exact { code } else { code.saturating_sub(1) };
            if code > 0xfe { most } else { code }
        }
    }
}

/// A signed byte in units of 1/64.
fn to_fixed(form: &Form, value: Value) -> u64 {
    let byte = match value {
        Value::Nan => 127,
        Value::Infinite(negative) => {
            if negative {
                -128
            } else {
                127
            }
        }
        Value::Finite(negative, a) => {
            let size = i128::try_from(whole(a.scaled(6), Round::Nearest, negative)).unwrap_or(1 << 20);
            (if negative { -size } else { size }).clamp(-128, 127)
        }
    };
    let byte = if form.relu { byte.max(0) } else { byte };
    (byte as u64) & 0xff
}

/// The random bits of the element at a place, 0 being the lowest, and their number.
///
/// Which bits go to which pair the manual says in words.
// Choice: how the two elements of a pair of an x4 form share 16 bits is a figure of the manual that we do not have. The lower one takes
// them as they are, the upper one in reversed order.
pub fn random_bits(form: &Form, at: u32, bits: u64) -> (u64, u32) {
    let half = |n: u32| bits >> (16 * n) & 0xffff;
    match (form.count, form.to) {
        (2, to) if to == F16 => (half(at) & 0x1fff, 13),
        (2, _) => (half(at), 16),
        (_, to) => {
            let byte = |n: u32| bits >> (8 * n) & 0xff;
            let shared = if to == E2M1 { byte(at / 2 + 2) << 8 | byte(at / 2) } else { half(at / 2) };
            let reversed = (0..16).fold(0, |r, i| r | (shared >> i & 1) << (15 - i));
            (if at.is_multiple_of(2) { shared } else { reversed }, 16)
        }
    }
}

/// Where the elements of a result come from: for each place, lowest first, the source and the shift of its bits in it.
pub fn origins(form: &Form) -> Vec<(usize, u32)> {
    (0..form.count)
        .map(|at| if form.packed { (0, at * form.from.step()) } else { ((form.count - 1 - at) as usize, 0) })
        .collect()
}

/// Number of sources: values, then the random bits or the factors.
pub fn sources(form: &Form) -> usize {
    let own = if form.packed { 1 } else { form.count as usize };
    own + usize::from(form.scaled || form.round == Some(Round::Random))
}

/// The neighbours of all elements of all sources: for each element, lowest first, one for each row of sources. They depend on the types
/// of a form only, so that forms that differ in modifiers can share them.
pub fn places(form: &Form, src: &[Vec<u64>]) -> Vec<Vec<Placed>> {
    let last = &src[sources(form) - 1];
    let of = |at: usize, (source, shift): (usize, u32)| {
        let one = |i: usize| placed(form, src[source][i] >> shift, form.scaled.then(|| last[i] >> (8 * at)));
        (0..last.len()).map(one).collect()
    };
    origins(form).into_iter().enumerate().map(|(at, origin)| of(at, origin)).collect()
}

/// The bits of the result register of the natural width, for row `i` of the sources.
pub fn result(form: &Form, places: &[Vec<Placed>], src: &[Vec<u64>], i: usize) -> u64 {
    let last = src[sources(form) - 1][i];
    (0..form.count).zip(places).fold(0, |bits, (at, placed)| {
        bits | element(form, &placed[i], random_bits(form, at, last)) << (at * form.to.step())
    })
}

/// Bits of the result register of the natural width.
pub fn result_bits(form: &Form) -> u32 {
    form.to.step() * form.count
}

/// The result in a register of `width` bits: signed integers keep their sign, everything else gets zeros.
pub fn extended(form: &Form, bits: u64, width: u32) -> u64 {
    match form.to {
        Elem::Int(own, true) if own < width && bits >> (own - 1) & 1 != 0 => {
            (bits | u64::MAX << own) & u64::MAX >> (64 - width)
        }
        _ => bits,
    }
}

/// Whether a form is one of bfloat16, whose registers must have exactly the width of the type.
pub fn has_bf16(form: &Form) -> bool {
    [form.to, form.from].contains(&BF16)
}

/// An element by itself, of a form without factors and random bits.
pub fn alone(form: &Form, bits: u64) -> u64 {
    element(form, &placed(form, bits, None), (0, 1))
}
