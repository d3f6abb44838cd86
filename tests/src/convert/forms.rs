//! Every legal form of `cvt`, from the tables of the manual and what ptxas accepts.

use super::exact::{self, Float};

/// An element type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Elem {
    /// An integer: bits, signed.
    Int(u32, bool),
    /// A float: its word and format.
    Float(&'static str, Float),
    /// A power of two.
    Ue8m0,
    /// A signed byte in units of 1/64.
    S2f6,
}

/// `.f16`.
pub const F16: Elem = Elem::Float("f16", exact::F16);
/// `.bf16`.
pub const BF16: Elem = Elem::Float("bf16", exact::BF16);
/// `.f32`.
pub const F32: Elem = Elem::Float("f32", exact::F32);
/// `.f64`.
pub const F64: Elem = Elem::Float("f64", exact::F64);
/// `.tf32`.
pub const TF32: Elem = Elem::Float("tf32", exact::TF32);
/// `.e4m3`.
pub const E4M3: Elem = Elem::Float("e4m3", exact::E4M3);
/// `.e5m2`.
pub const E5M2: Elem = Elem::Float("e5m2", exact::E5M2);
/// `.e2m3`.
pub const E2M3: Elem = Elem::Float("e2m3", exact::E2M3);
/// `.e3m2`.
pub const E3M2: Elem = Elem::Float("e3m2", exact::E3M2);
/// `.e2m1`.
pub const E2M1: Elem = Elem::Float("e2m1", exact::E2M1);

/// The floats of 8, 6 and 4 bits.
pub const SMALL: [Elem; 5] = [E4M3, E5M2, E2M3, E3M2, E2M1];

impl Elem {
    /// The word of the type, without the dot.
    pub fn word(self) -> String {
        match self {
            Elem::Int(bits, true) => format!("s{bits}"),
            Elem::Int(bits, false) => format!("u{bits}"),
            Elem::Float(word, _) => word.to_owned(),
            Elem::Ue8m0 => "ue8m0".to_owned(),
            Elem::S2f6 => "s2f6".to_owned(),
        }
    }

    /// Bits from one element to the next in a packed value, and of the value itself where it stands alone.
    pub fn step(self) -> u32 {
        match self {
            Elem::Int(bits, _) => bits,
            Elem::Float(_, f) => match f.sign() + f.padding + 1 {
                6 => 8,
                bits => bits,
            },
            Elem::Ue8m0 | Elem::S2f6 => 8,
        }
    }
}

/// A rounding modifier, of floats or to integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Round {
    /// To nearest, ties to even.
    Nearest,
    /// To nearest, ties away from zero.
    Away,
    /// Towards zero.
    Zero,
    /// Down.
    Down,
    /// Up.
    Up,
    /// By random bits.
    Random,
}

use Round::*;

/// The four directions of most forms.
pub const FOUR: [Round; 4] = [Nearest, Zero, Down, Up];

/// A form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Form {
    /// Its opcode with all qualifiers.
    pub text: String,
    /// Element type of the result.
    pub to: Elem,
    /// Element type of the sources.
    pub from: Elem,
    /// How many elements the result has.
    pub count: u32,
    /// Whether the elements come packed in one source.
    pub packed: bool,
    /// Rounding; `None` where it is not written.
    pub round: Option<Round>,
    /// `.ftz`.
    pub ftz: bool,
    /// `.sat`.
    pub sat: bool,
    /// `.relu`.
    pub relu: bool,
    /// `.satfinite`.
    pub satfinite: bool,
    /// Whether factors are the last source.
    pub scaled: bool,
}

impl Form {
    /// Whether registers may be wider than the types.
    pub fn relaxed(&self) -> bool {
        self.count == 1 && ![self.to, self.from].contains(&BF16) && self.to != TF32
    }
}

/// Modifiers of a form, for the few functions below.
#[derive(Clone, Copy, Default)]
struct With {
    round: Option<Round>,
    ftz: bool,
    sat: bool,
    relu: bool,
    satfinite: bool,
    scaled: bool,
}

const PLAIN: With = With { round: None, ftz: false, sat: false, relu: false, satfinite: false, scaled: false };

fn form(to: Elem, from: Elem, count: u32, packed: bool, with: With) -> Form {
    let is_integral = matches!(to, Elem::Int(..)) || (to == from && with.round.is_some());
    let round = with.round.map(|r| match (r, is_integral) {
        (Nearest, false) => ".rn",
        (Zero, false) => ".rz",
        (Down, false) => ".rm",
        (Up, false) => ".rp",
        (Away, _) => ".rna",
        (Random, _) => ".rs",
        (Nearest, true) => ".rni",
        (Zero, true) => ".rzi",
        (Down, true) => ".rmi",
        (Up, true) => ".rpi",
    });
    let words = [
        (with.ftz, ".ftz"),
        (with.sat, ".sat"),
        (with.satfinite, ".satfinite"),
        (with.relu, ".relu"),
        (with.scaled, ".scaled::n2::ue8m0"),
    ];
    let flags: String = words.iter().filter(|(is_there, _)| *is_there).map(|(_, word)| *word).collect();
    let many = |n: u32| if n == 1 { String::new() } else { format!("x{n}") };
    let text = format!(
        "cvt{}{flags}.{}{}.{}{}",
        round.unwrap_or(""),
        to.word(),
        many(count),
        from.word(),
        if packed { many(count) } else { String::new() }
    );
    let With { round, ftz, sat, relu, satfinite, scaled } = with;
    Form { text, to, from, count, packed, round, ftz, sat, relu, satfinite, scaled }
}

/// The integer types.
pub fn integers() -> impl Iterator<Item = Elem> + Clone {
    [8, 16, 32, 64].into_iter().flat_map(|bits| [Elem::Int(bits, false), Elem::Int(bits, true)])
}

const OFF: [bool; 1] = [false];
const BOTH: [bool; 2] = [false, true];

fn allowed(yes: bool) -> &'static [bool] {
    if yes { &BOTH } else { &OFF }
}

/// Everything.
pub fn all() -> Vec<Form> {
    let mut list = Vec::new();
    scalars(&mut list);
    pairs(&mut list);
    small(&mut list);
    list
}

fn scalars(list: &mut Vec<Form>) {
    let mut one = |to, from, with| list.push(form(to, from, 1, false, with));
    let four = || FOUR.into_iter().map(Some);
    for from in integers() {
        for to in integers() {
            one(to, from, PLAIN);
            if !holds(to, from) {
                one(to, from, With { sat: true, ..PLAIN });
            }
        }
        for to in [F16, BF16, F32, F64] {
            for round in four() {
                for &sat in allowed(to != BF16) {
                    for &ftz in allowed(to == F32) {
                        one(to, from, With { round, sat, ftz, ..PLAIN });
                        one(from, to, With { round, sat, ftz, ..PLAIN });
                    }
                }
            }
        }
    }
    // The same type: a number, or an integral one.
    for ty in [F16, BF16, F32, F64] {
        for round in four().chain([None]) {
            for &sat in allowed(ty != BF16) {
                for &ftz in allowed(ty == F32) {
                    one(ty, ty, With { round, sat, ftz, ..PLAIN });
                }
            }
        }
    }
    for &sat in &BOTH {
        for &ftz in &BOTH {
            one(F32, F16, With { sat, ftz, ..PLAIN });
            one(F64, F32, With { sat, ftz, ..PLAIN });
            for round in four() {
                one(F32, F64, With { round, sat, ftz, ..PLAIN });
                one(F16, F32, With { round, sat, ftz, ..PLAIN });
            }
        }
        one(F64, F16, With { sat, ..PLAIN });
        for round in four() {
            one(F16, F64, With { round, sat, ..PLAIN });
        }
    }
    for round in four() {
        for &ftz in &BOTH {
            one(BF16, F32, With { round, ftz, ..PLAIN });
        }
        one(BF16, F64, With { round, ..PLAIN });
    }
    for round in four().chain([None]) {
        for &ftz in &BOTH {
            one(F32, BF16, With { round, ftz, ..PLAIN });
        }
        for (to, from) in [(BF16, F16), (F16, BF16), (F64, BF16)] {
            one(to, from, With { round, ..PLAIN });
        }
    }
    for &satfinite in &BOTH {
        one(TF32, F32, With { round: Some(Away), satfinite, ..PLAIN });
        for &relu in &BOTH {
            for round in [Nearest, Zero].map(Some) {
                one(TF32, F32, With { round, relu, satfinite, ..PLAIN });
                if relu || satfinite {
                    one(F16, F32, With { round, relu, satfinite, ..PLAIN });
                    one(BF16, F32, With { round, relu, satfinite, ..PLAIN });
                }
            }
        }
    }
}

fn pairs(list: &mut Vec<Form>) {
    for to in [F16, BF16] {
        for round in [Nearest, Zero, Random].map(Some) {
            for &relu in &BOTH {
                for &satfinite in &BOTH {
                    list.push(form(to, F32, 2, false, With { round, relu, satfinite, ..PLAIN }));
                }
            }
        }
    }
}

fn small(list: &mut Vec<Form>) {
    let nearest = With { round: Some(Nearest), ..PLAIN };
    for ty in SMALL {
        for &relu in &BOTH {
            let down = With { satfinite: true, relu, ..nearest };
            list.push(form(ty, F32, 2, false, down));
            list.push(form(ty, F16, 2, true, down));
            list.push(form(ty, BF16, 2, true, down));
            list.push(form(ty, F32, 4, false, With { round: Some(Random), ..down }));
            list.push(form(F16, ty, 2, true, With { relu, ..nearest }));
            for &satfinite in &BOTH {
                for &scaled in &BOTH {
                    list.push(form(BF16, ty, 2, true, With { relu, satfinite, scaled, ..nearest }));
                }
            }
        }
    }
    for round in [Zero, Up].map(Some) {
        for &satfinite in &BOTH {
            list.push(form(Elem::Ue8m0, F32, 2, false, With { round, satfinite, ..PLAIN }));
            list.push(form(Elem::Ue8m0, BF16, 2, true, With { round, satfinite, ..PLAIN }));
        }
    }
    list.push(form(BF16, Elem::Ue8m0, 2, true, nearest));
    for &relu in &BOTH {
        for &scaled in &BOTH {
            let with = With { relu, scaled, satfinite: true, ..nearest };
            list.push(form(Elem::S2f6, F32, 2, false, with));
            list.push(form(Elem::S2f6, BF16, 2, true, with));
            list.push(form(BF16, Elem::S2f6, 2, true, with));
            list.push(form(BF16, Elem::S2f6, 2, true, With { satfinite: false, ..with }));
        }
    }
}

/// Whether every number of one integer type is one of the other, so that `.sat` is refused.
fn holds(outer: Elem, inner: Elem) -> bool {
    let range = |e| match e {
        Elem::Int(bits, true) => (-1_i128 << (bits - 1), (1_i128 << (bits - 1)) - 1),
        Elem::Int(bits, false) => (0, (1 << bits) - 1),
        _ => (0, 0),
    };
    range(outer).0 <= range(inner).0 && range(inner).1 <= range(outer).1
}
