//! What is known of a register, in all threads of any block of a grid.
//!
//! A value is a number for each thread and a multiple of each coordinate of the block: `lanes[t] + by[0] * ctaid.x + by[1] * ctaid.y + by[2] * ctaid.z`,
//! modulo its width, so sums, differences and products by numbers are exact also where they wrap. Extensions and comparisons are known where no value in the
//! grid leaves the range of the type. What is not known but small (the low bits of something, a byte that was loaded) is a number and all that follow it up to
//! a span; sums and products by numbers keep that, and so places in tables are known to lie in them.

use std::rc::Rc;

use handloom_ir::num;
use handloom_ir::simt::Pure;
use handloom_ir::types::{Cmp, Int, Ty};

use super::mask::Mask;

/// Coordinates of the block, the address of its shared memory, and that of the thread's own memory, whole and its lower half alone.
pub(super) const PARTS: usize = 6;

/// The part of a value that is the address of shared memory.
pub(super) const SHARED: usize = 3;

/// The part of a value that is the address of the thread's own memory.
pub(super) const LOCAL: usize = 4;

/// The same without its upper half, which is lost where programs keep it in 32 bits.
pub(super) const LOW: usize = 5;

/// A number for each thread.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Lanes {
    All(u64),
    Each(Rc<[u64]>),
}

impl Lanes {
    pub(super) fn of(&self, thread: usize) -> u64 {
        match self {
            Lanes::All(v) => *v,
            Lanes::Each(all) => all[thread],
        }
    }

    fn map(&self, f: impl Fn(u64) -> u64) -> Lanes {
        match self {
            Lanes::All(v) => Lanes::All(f(*v)),
            Lanes::Each(all) => Lanes::Each(all.iter().map(|v| f(*v)).collect()),
        }
    }

    fn with(&self, other: &Lanes, f: impl Fn(u64, u64) -> u64) -> Lanes {
        match (self, other) {
            (Lanes::All(a), Lanes::All(b)) => Lanes::All(f(*a, *b)),
            (Lanes::Each(a), Lanes::All(b)) => Lanes::Each(a.iter().map(|a| f(*a, *b)).collect()),
            (Lanes::All(a), Lanes::Each(b)) => Lanes::Each(b.iter().map(|b| f(*a, *b)).collect()),
            (Lanes::Each(a), Lanes::Each(b)) => Lanes::Each(a.iter().zip(&**b).map(|(a, b)| f(*a, *b)).collect()),
        }
    }

    /// Whether two are one without a look at each number.
    fn is_same(&self, other: &Lanes) -> bool {
        match (self, other) {
            (Lanes::All(a), Lanes::All(b)) => a == b,
            (Lanes::Each(a), Lanes::Each(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Known {
    pub(super) lanes: Lanes,
    pub(super) by: [i64; PARTS],
    /// Threads of which nothing is known.
    pub(super) unknown: Option<Rc<Mask>>,
    /// By how much it may be more, at most, in each thread: of others than 0 only a range is known.
    pub(super) span: u64,
}

/// What a register holds; `None`: nobody knows.
pub(super) type Value = Option<Known>;

impl Known {
    /// The same number in all threads of all blocks.
    pub(super) fn all(value: u64) -> Known {
        Known { lanes: Lanes::All(value), by: [0; PARTS], unknown: None, span: 0 }
    }

    /// A number for each thread, the same in all blocks.
    pub(super) fn each(lanes: impl Iterator<Item = u64>) -> Known {
        Known { lanes: Lanes::Each(lanes.collect()), by: [0; PARTS], unknown: None, span: 0 }
    }

    /// Any number up to one, in each thread.
    pub(super) fn below(most: u64) -> Known {
        Known { span: most, ..Known::all(0) }
    }

    /// Whether all blocks have the same number.
    pub(super) fn is_alike(&self) -> bool {
        self.by == [0; PARTS] && self.span == 0
    }

    /// Whether it has no part that is an address of shared memory or of own memory.
    fn is_number(&self) -> bool {
        self.by[SHARED..] == [0; PARTS - SHARED]
    }

    /// The number that all threads of all blocks have.
    pub(super) fn number(&self) -> Option<u64> {
        match (&self.lanes, &self.unknown) {
            (Lanes::All(v), None) if self.is_alike() => Some(*v),
            _ => None,
        }
    }

    /// Whether the number of a thread is known.
    pub(super) fn is_known(&self, thread: usize) -> bool {
        self.span == 0 && self.has_range(thread)
    }

    /// Whether it is known, or in which range it lies.
    pub(super) fn has_range(&self, thread: usize) -> bool {
        self.unknown.as_ref().is_none_or(|unknown| !unknown.has(thread))
    }
}

/// Threads of which one of some values is not known.
fn any_unknown(values: &[&Known]) -> Option<Rc<Mask>> {
    values.iter().fold(None, |all, v| match (all, &v.unknown) {
        (None, other) => other.clone(),
        (all, None) => all,
        (Some(all), Some(more)) => Some(Rc::new(all.or(more))),
    })
}

/// The grid, as far as values need it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The first and the last coordinates of those that values are of.
    pub(super) blocks: ([u32; 3], [u32; 3]),
    /// Threads of a block.
    pub(super) threads: usize,
}

impl Shape {
    /// The lowest and the highest that multiples of the coordinates of a block come to.
    pub(super) fn reach(&self, by: &[i64; PARTS]) -> (i128, i128) {
        let (first, last) = &self.blocks;
        (0..3).fold((0, 0), |(low, high), i| {
            let ends = [first[i], last[i]].map(|x| i128::from(by[i]) * i128::from(x));
            (low + ends[0].min(ends[1]), high + ends[0].max(ends[1]))
        })
    }

    /// A value as integers that are the same in each block as the bits at its width, signed or not; `None` if one may wrap.
    fn exact(&self, v: &Known, int: Int) -> Option<Vec<i128>> {
        if !v.is_number() {
            return None;
        }
        let bits = int.ty.bits();
        let read = |x: u64| match int.signed {
            true => i128::from((x << (64 - bits)).cast_signed() >> (64 - bits)),
            false => i128::from(x),
        };
        let range = match int.signed {
            true => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
            false => (0, (1_i128 << bits) - 1),
        };
        let numbers: Vec<i128> = match &v.lanes {
            Lanes::All(x) => vec![read(*x)],
            Lanes::Each(all) => all.iter().map(|x| read(*x)).collect(),
        };
        let (low, high) = self.reach(&v.by);
        let high = high + i128::from(v.span);
        let fits = |t: usize, x: i128| !v.has_range(t) || x + low >= range.0 && x + high <= range.1;
        let fit = match &v.lanes {
            Lanes::All(_) => numbers[0] + low >= range.0 && numbers[0] + high <= range.1,
            Lanes::Each(_) => numbers.iter().enumerate().all(|(t, x)| fits(t, *x)),
        };
        fit.then_some(numbers)
    }

    /// A value of 32 bits as one of 64.
    pub(super) fn widen(&self, v: &Known, signed: bool) -> Value {
        let numbers = self.exact(v, Int { ty: Ty::B32, signed })?;
        let low = |x: &i128| *x as u64;
        let lanes = match &v.lanes {
            Lanes::All(_) => Lanes::All(low(&numbers[0])),
            Lanes::Each(_) => Lanes::Each(numbers.iter().map(low).collect()),
        };
        Some(Known { lanes, ..v.clone() })
    }

    fn compare(&self, cmp: Cmp, int: Int, a: &Known, b: &Known) -> Value {
        let (x, y) = (self.exact(a, int)?, self.exact(b, int)?);
        let (low, high) = self.reach(&std::array::from_fn(|i| a.by[i].wrapping_sub(b.by[i])));
        let decide = |t: usize| {
            let d = x[if x.len() == 1 { 0 } else { t }] - y[if y.len() == 1 { 0 } else { t }];
            let (low, high) = (d + low - i128::from(b.span), d + high + i128::from(a.span));
            let (holds, fails) = match cmp {
                Cmp::Lt => (high < 0, low >= 0),
                Cmp::Le => (high <= 0, low > 0),
                Cmp::Gt => (low > 0, high <= 0),
                Cmp::Ge => (low >= 0, high < 0),
                Cmp::Eq => ((low, high) == (0, 0), low > 0 || high < 0),
                Cmp::Ne => (low > 0 || high < 0, (low, high) == (0, 0)),
                _ => (false, false),
            };
            (holds || fails).then_some(u64::from(holds))
        };
        if x.len() == 1 && y.len() == 1 && a.unknown.is_none() && b.unknown.is_none() {
            return decide(0).map(Known::all);
        }
        self.each(|t| if a.has_range(t) && b.has_range(t) { decide(t) } else { None })
    }

    /// The first result of a value op.
    pub(super) fn eval(&self, op: Pure, src: &[Value]) -> Value {
        match (op, src) {
            (Pure::Mov(_), [a]) => a.clone(),
            (Pure::And(Ty::P), [a, b]) => self.both(a, b, 0),
            (Pure::Or(Ty::P), [a, b]) => self.both(a, b, 1),
            (Pure::Select(_), [p, a, b]) => self.select(p, a, b),
            _ => {
                let all: Option<Vec<&Known>> = src.iter().map(Option::as_ref).collect();
                let known = all.and_then(|all| self.of_known(op, &all));
                known.or_else(|| self.by_range(op, src))
            }
        }
    }

    /// The lowest and the highest number of all threads of all blocks; those of the type if no more is known.
    fn range(&self, v: &Value, int: Int) -> (i128, i128) {
        let all = match int.signed {
            true => (-(1_i128 << (int.ty.bits() - 1)), (1_i128 << (int.ty.bits() - 1)) - 1),
            false => (0, i128::from(int.ty.mask())),
        };
        let Some(v) = v.as_ref().filter(|v| v.unknown.is_none()) else { return all };
        let Some(numbers) = self.exact(v, int) else { return all };
        let (low, high) = self.reach(&v.by);
        let ends = numbers.iter().fold((i128::MAX, i128::MIN), |(a, b), x| (a.min(*x), b.max(*x)));
        (ends.0 + low, ends.1 + high + i128::from(v.span))
    }

    /// What is known of a result by its range alone: the low bits of something, what a division leaves, what was cut off at an end.
    fn by_range(&self, op: Pure, src: &[Value]) -> Value {
        let number = |v: &Value| v.as_ref().and_then(Known::number);
        let (ty, low, high) = match (op, src) {
            (Pure::And(ty), [a, b]) if ty != Ty::P => (ty, 0, i128::from(number(a).or(number(b))?)),
            (Pure::Rem(int), [_, n]) if !int.signed => (int.ty, 0, i128::from(number(n)?.checked_sub(1)?)),
            (Pure::Shr(int), [_, n]) if !int.signed => {
                let left = u32::try_from(number(n)?).ok().and_then(|n| int.ty.mask().checked_shr(n));
                (int.ty, 0, left.unwrap_or(0).into())
            }
            (Pure::Min(int), [a, b]) => {
                let (a, b) = (self.range(a, int), self.range(b, int));
                (int.ty, a.0.min(b.0), a.1.min(b.1))
            }
            (Pure::Max(int), [a, b]) => {
                let (a, b) = (self.range(a, int), self.range(b, int));
                (int.ty, a.0.max(b.0), a.1.max(b.1))
            }
            (Pure::Ext { bits, signed: false, from, to }, [a]) if bits <= 16 => {
                let most = (1 << bits) - 1;
                let (low, high) = self.range(a, Int { ty: from, signed: false });
                if high <= most { (to, low, high) } else { (to, 0, most) }
            }
            _ => return None,
        };
        let span = u64::try_from(high - low).ok().filter(|span| *span < ty.mask())?;
        Some(Known { span, ..Known::all(low as u64 & ty.mask()) })
    }

    fn of_known(&self, op: Pure, src: &[&Known]) -> Value {
        match (op, src) {
            (Pure::Add(ty), [a, b]) => sum(ty, a, b, false),
            (Pure::Sub(ty), [a, b]) => sum(ty, a, b, true),
            (Pure::Mul(ty), [a, b]) if !(a.is_alike() && b.is_alike()) => match (a.number(), b.number()) {
                (Some(n), _) => times(ty, b, n),
                (_, Some(n)) => times(ty, a, n),
                (None, None) => None,
            },
            (Pure::Shl(ty), [a, n]) if !a.is_alike() => {
                let n = n.number().filter(|n| *n < u64::from(ty.bits()))?;
                times(ty, a, 1 << n)
            }
            (Pure::MulWide(int), [a, b]) if int.ty == Ty::B32 => {
                let (a, b) = (self.widen(a, int.signed)?, self.widen(b, int.signed)?);
                self.of_known(Pure::Mul(Ty::B64), &[&a, &b])
            }
            (Pure::Or(ty), [a, b]) if !(a.is_alike() && b.is_alike()) => {
                (self.apart(a, b) || self.apart(b, a)).then(|| sum(ty, a, b, false)).flatten()
            }
            (Pure::Ext { bits: 32, signed, to: Ty::B64, .. }, [a]) if !a.is_alike() => {
                let mut low = cut(Ty::B32, a)?;
                if low.by[LOCAL] != 0 {
                    low.by.swap(LOCAL, LOW);
                    return Some(low);
                }
                self.widen(&low, signed)
            }
            (Pure::Ext { bits, to, .. }, [a]) if !a.is_alike() => {
                (u32::from(bits) >= to.bits() && a.by[SHARED] == 0).then(|| cut(to, a)).flatten()
            }
            (Pure::Half { hi: false, from: Ty::B64 }, [a]) if !a.is_alike() => cut(Ty::B32, a),
            (Pure::ICmp(cmp, int), [a, b]) if !(a.is_alike() && b.is_alike()) => self.compare(cmp, int, a, b),
            _ => self.lane_by_lane(op, src),
        }
    }

    /// Whether no bit is set in both, in any block: all numbers of one are below a power of two that divides the other.
    fn apart(&self, small: &Known, large: &Known) -> bool {
        if small.unknown.is_some() || large.unknown.is_some() || !small.is_number() || !large.is_number() {
            return false;
        }
        if large.span > 0 {
            return false;
        }
        let over = |v: &Known, f: fn(u64, u64) -> u64| match &v.lanes {
            Lanes::All(x) => *x,
            Lanes::Each(all) => all.iter().fold(0, |sum, x| f(sum, *x)),
        };
        let (low, high) = self.reach(&small.by);
        let most = i128::from(over(small, u64::max)) + high + i128::from(small.span);
        let below = (0..63).map(|bits| (1_u64 << bits) - 1).find(|below| most <= i128::from(*below));
        let divides = |below: u64| {
            over(large, |any, x| any | x) & below == 0 && large.by.iter().all(|by| by.cast_unsigned() & below == 0)
        };
        low >= 0 && below.is_some_and(divides)
    }

    /// By its definition, where all blocks have the same.
    fn lane_by_lane(&self, op: Pure, src: &[&Known]) -> Value {
        if src.iter().any(|v| !v.is_alike()) {
            return None;
        }
        let unknown = any_unknown(src);
        let lanes = match src {
            [a] => a.lanes.map(|a| num::eval(op, &[a])[0]),
            [a, b] => a.lanes.with(&b.lanes, |a, b| num::eval(op, &[a, b])[0]),
            [a, b, c] => {
                let each = (0..self.threads).map(|t| num::eval(op, &[a.lanes.of(t), b.lanes.of(t), c.lanes.of(t)])[0]);
                match src.iter().all(|v| matches!(v.lanes, Lanes::All(_))) {
                    true => Lanes::All(num::eval(op, &[a.lanes.of(0), b.lanes.of(0), c.lanes.of(0)])[0]),
                    false => Lanes::Each(each.collect()),
                }
            }
            _ => return None,
        };
        Some(Known { lanes, by: [0; PARTS], unknown, span: 0 })
    }

    /// `and` and `or` of predicates: one that `decides` is enough.
    fn both(&self, a: &Value, b: &Value, decides: u64) -> Value {
        let is = |v: &Value, t: usize| v.as_ref().filter(|v| v.is_known(t)).map(|v| v.lanes.of(t));
        self.each(|t| match (is(a, t), is(b, t)) {
            (Some(x), _) | (_, Some(x)) if x == decides => Some(decides),
            (Some(_), Some(_)) => Some(1 - decides),
            _ => None,
        })
    }

    /// A value from what is known of each thread, the same in all blocks.
    fn each(&self, of: impl Fn(usize) -> Option<u64>) -> Value {
        let mut unknown = Mask::NONE;
        let known = Known::each((0..self.threads).map(|t| {
            of(t).unwrap_or_else(|| {
                unknown.add(t);
                0
            })
        }));
        if (0..self.threads).all(|t| unknown.has(t)) {
            return None;
        }
        Some(Known { unknown: Some(unknown).filter(|u| !u.is_empty()).map(Rc::new), ..known })
    }

    fn select(&self, p: &Value, a: &Value, b: &Value) -> Value {
        if a == b {
            return a.clone();
        }
        let p = p.as_ref()?;
        match p.number() {
            Some(0) => return b.clone(),
            Some(_) => return a.clone(),
            None => {}
        }
        let holds = |t: usize| p.is_known(t).then(|| p.lanes.of(t) != 0);
        self.by_thread(a, b, holds)
    }

    /// What one value is in some threads, and another in others; where it may be either they must be the same. `first`: which one it is.
    pub(super) fn by_thread(&self, a: &Value, b: &Value, first: impl Fn(usize) -> Option<bool>) -> Value {
        if let (Some(a), Some(b)) = (a, b)
            && (a.by, a.span) == (b.by, b.span)
            && a.unknown.is_none()
            && b.unknown.is_none()
            && a.lanes.is_same(&b.lanes)
        {
            return Some(a.clone());
        }
        let by = a.as_ref().or(b.as_ref())?.by;
        let of = |v: &Value, t: usize| v.as_ref().filter(|v| v.by == by && v.is_known(t)).map(|v| v.lanes.of(t));
        let all = self.each(|t| match first(t) {
            Some(true) => of(a, t),
            Some(false) => of(b, t),
            None => of(a, t).filter(|x| of(b, t) == Some(*x)),
        })?;
        Some(Known { by, ..all })
    }
}

/// The same at a smaller width.
fn cut(ty: Ty, v: &Known) -> Value {
    let lanes = v.lanes.map(|x| x & ty.mask());
    let mut by = v.by.map(|by| short(ty, by));
    if ty != Ty::B64 {
        by[LOCAL] += std::mem::take(&mut by[LOW]);
    }
    (v.span <= ty.mask()).then(|| Known { lanes, by, ..v.clone() })
}

/// A multiple as it counts at a width, the smaller one of two.
fn short(ty: Ty, by: i64) -> i64 {
    let bits = 64 - ty.bits();
    (by << bits) >> bits
}

/// A sum or a difference; `None` if all numbers of the width may come of it.
fn sum(ty: Ty, a: &Known, b: &Known, is_difference: bool) -> Value {
    let add = |x: u64, y: u64| if is_difference { x.wrapping_sub(y) } else { x.wrapping_add(y) };
    // What may be less by the span of `b` is that much less, and may be more by it.
    let less = if is_difference { b.span } else { 0 };
    let lanes = a.lanes.with(&b.lanes, |x, y| add(x, y).wrapping_sub(less) & ty.mask());
    let by = |i: usize| short(ty, add(a.by[i].cast_unsigned(), b.by[i].cast_unsigned()).cast_signed());
    let span = a.span.checked_add(b.span).filter(|span| *span <= ty.mask())?;
    Some(Known { lanes, by: std::array::from_fn(by), unknown: any_unknown(&[a, b]), span })
}

/// A product; `None` if all numbers of the width may come of it.
fn times(ty: Ty, a: &Known, n: u64) -> Value {
    let lanes = a.lanes.map(|x| x.wrapping_mul(n) & ty.mask());
    let by = a.by.map(|by| short(ty, by.wrapping_mul(n.cast_signed())));
    let span = a.span.checked_mul(n).filter(|span| *span <= ty.mask())?;
    Some(Known { lanes, by, unknown: a.unknown.clone(), span })
}
