//! Shapes: how the lanes of a warp value relate, and what ops make of them.
//!
//! The 32 lanes are cut into *pieces* of equal length, as few as describe the value, and at most [`MOST_PIECES`]. The `k`-th lane of piece `i` has the
//! value `base[group[i]] + off[i] + stride * k`, modulo the width of the value, where the bases are known at run time only. The first piece of each
//! group has offset 0. In a *flipped* shape, which wide code alone has, neighbours or pairs of lanes have changed places: lane `l` has what lane `l ^ flip` would have, as in `%tid.x ^ 1`
//! (larger numbers change the places of pieces). What would need more pieces has no shape. How wide the vectors of a host are plays no part here: a generator of code
//! asks for groups and differences of the lanes that its vectors hold.

use handloom_ir::simt::{LaunchShape, Pure, Val, shape_range};
use handloom_ir::types::{Int, Sreg, Ty, Varies};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Lanes of a warp.
const WARP: usize = 32;
/// Pieces of a warp, at most: a power of two. A cta whose rows are 4 threads long has eight in a warp; finer ones are rare, and each op on
/// shapes would cost more.
pub const MOST_PIECES: usize = 8;
/// Lanes of the shortest piece.
const SHORTEST: usize = WARP / MOST_PIECES;

/// How lanes relate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Shape {
    /// Number of pieces, a power of two, and the least that will do: so equal shapes are equal field by field.
    n: u8,
    /// Group of each piece; groups are numbered by first appearance.
    group: [u8; MOST_PIECES],
    /// Offset of the first lane of each piece from its group's base.
    off: [i64; MOST_PIECES],
    /// Below 4: each lane stands where the one with this number has its place, as far as bits differ; 0 where neighbours of a piece are alike.
    flip: u8,
    /// Difference between neighbouring lanes of a piece, as they would stand without the flip.
    pub stride: i64,
    /// The bases are multiples of `2^align`.
    pub align: u8,
    /// Lane values lie in `low..=high`, read as unsigned.
    pub low: u64,
    /// See `low`.
    pub high: u64,
}

impl Shape {
    /// The same in all lanes.
    pub const UNIFORM: Shape = Shape {
        n: 1,
        group: [0; MOST_PIECES],
        off: [0; MOST_PIECES],
        flip: 0,
        stride: 0,
        align: 0,
        low: 0,
        high: u64::MAX,
    };

    /// A constant.
    pub fn constant(v: u64) -> Shape {
        Shape { align: v.trailing_zeros().min(63) as u8, low: v, high: v, ..Shape::UNIFORM }
    }

    /// Uniform with a range.
    pub fn ranged(low: u64, high: u64) -> Shape {
        Shape { low, high, ..Shape::UNIFORM }
    }

    /// Lane `l` of the warp is the base plus `l` strides.
    pub fn linear(stride: i64) -> Shape {
        Shape { stride, ..Shape::UNIFORM }
    }

    /// One group, of pieces that begin at these distances from the first: a power of two of them, at most [`MOST_PIECES`].
    pub fn of_pieces(stride: i64, off: &[i64]) -> Shape {
        Shape::build(off.len(), stride, 0, |l| ((), off[l * off.len() / WARP]))
    }

    /// Of values of 64 bits that are so many times as large, where none of these wraps.
    pub fn times(&self, factor: i64) -> Shape {
        scale(self, factor, Ty::B64)
    }

    /// Whether all lanes hold the same.
    pub fn is_uniform(&self) -> bool {
        self.is_linear() && self.stride == 0
    }

    /// Whether lane `l` of the warp is the base plus `l` strides.
    pub fn is_linear(&self) -> bool {
        self.n == 1 && self.flip == 0
    }

    /// Whether neighbours or pairs of lanes have changed places.
    pub fn is_flipped(&self) -> bool {
        self.flip != 0
    }

    /// Whether every lane of a group is a multiple of `align` if the first one is, the lanes are in ascending order, and the groups not too many to
    /// be tested one by one.
    pub fn is_regular(&self, align: i64) -> bool {
        self.stride % align == 0 && self.stride >= 0 && self.groups() <= 4 && self.off.iter().all(|o| o % align == 0)
    }

    /// Whether the lanes of each group, in ascending order, stand at even distances.
    pub fn is_even(&self) -> bool {
        self.is_linear()
            || (0..self.groups()).all(|g| {
                let lanes = (0..WARP).filter(|l| self.group_of(*l) == g);
                let d: Vec<i64> = lanes.map(|l| self.delta(l)).collect();
                d.windows(2).all(|w| w[1] - w[0] == d[1] - d[0])
            })
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        usize::from(*self.group.iter().max().unwrap_or(&0)) + 1
    }

    /// The lane of a group whose value is the base: the first one, unless the shape is flipped.
    pub fn first_lane(&self, group: usize) -> usize {
        let piece = self.group.iter().position(|&g| usize::from(g) == group).unwrap_or(0);
        (self.piece_len() * piece) ^ usize::from(self.flip)
    }

    /// The lanes of a group, one bit each.
    pub fn lanes_of(&self, group: usize) -> u32 {
        (0..WARP).filter(|l| self.group_of(*l) == group).fold(0, |m, l| m | 1 << l)
    }

    /// Group of a lane.
    pub fn group_of(&self, lane: usize) -> usize {
        usize::from(self.group[lane >> self.len_log2()])
    }

    /// Value of a lane relative to the base of its group.
    pub fn delta(&self, lane: usize) -> i64 {
        self.plain_delta(lane ^ usize::from(self.flip))
    }

    /// The same without the flip.
    fn plain_delta(&self, lane: usize) -> i64 {
        let k = lane & (self.piece_len() - 1);
        self.off[lane >> self.len_log2()].wrapping_add(self.stride.wrapping_mul(k as i64))
    }

    /// Number of lanes of a piece.
    pub fn piece_len(&self) -> usize {
        1 << self.len_log2()
    }

    fn len_log2(&self) -> u32 {
        WARP.trailing_zeros() - self.n.trailing_zeros()
    }

    /// Group and offset of each piece.
    pub fn pieces(&self) -> impl Iterator<Item = (usize, i64)> {
        self.group.into_iter().map(usize::from).zip(self.off).take(usize::from(self.n))
    }

    /// Whether bases, offsets and stride agree in structure (range and alignment aside).
    pub fn same(&self, other: &Shape) -> bool {
        (self.n, self.group, self.off, self.flip, self.stride)
            == (other.n, other.group, other.off, other.flip, other.stride)
    }

    /// Smallest and largest difference of a lane of a group to the group's base; the ends of `i64` where it is larger than these.
    pub fn span(&self, group: usize) -> (i64, i64) {
        let ends = [0, self.stride.saturating_mul(self.piece_len() as i64 - 1)];
        let all = self.pieces().filter(|(g, _)| *g == group);
        let each = all.flat_map(|(_, off)| ends.map(|e| off.saturating_add(e)));
        each.fold((i64::MAX, i64::MIN), |(lo, hi), d| (lo.min(d), hi.max(d)))
    }

    /// What is read once for each distinct value of pieces that are uniform: each of them is a group.
    pub fn distinct(&self) -> Shape {
        Shape::build(usize::from(self.n), 0, 0, |l| ((self.group_of(l), self.delta(l)), 0))
    }

    /// Group and offset of each of as many pieces as there may be.
    fn cut(&self) -> [(u8, i64); MOST_PIECES] {
        std::array::from_fn(|i| {
            let lane = i * SHORTEST;
            (self.group[lane >> self.len_log2()], self.plain_delta(lane))
        })
    }

    /// Made of `n` pieces, from a key for the first lane of each (pieces with equal keys share a base) and a difference to that base.
    fn build<K: PartialEq + Copy>(n: usize, stride: i64, align: u8, of: impl Fn(usize) -> (K, i64)) -> Shape {
        let mut s = Shape { n: n as u8, stride, align, ..Shape::UNIFORM };
        let mut firsts: [Option<(K, i64)>; MOST_PIECES] = [None; MOST_PIECES];
        for i in 0..n {
            let (k, d) = of(i * s.piece_len());
            let known = firsts.iter().position(|f| f.is_none_or(|f| f.0 == k)).unwrap_or(0);
            let (_, first) = *firsts[known].get_or_insert_with(|| {
                // The base takes in the difference of its first piece.
                let room = if d == 0 { 63 } else { d.trailing_zeros().min(63) as u8 };
                s.align = s.align.min(room);
                (k, d)
            });
            s.group[i] = known as u8;
            s.off[i] = d.wrapping_sub(first);
        }
        s.joined()
    }

    /// The same with lanes that have changed places.
    fn flipped(self, flip: u8) -> Shape {
        Shape { flip: if self.stride == 0 { 0 } else { flip }, ..self }
    }

    /// The same in as few pieces as will do.
    fn joined(mut self) -> Shape {
        while self.n > 1 {
            let (half, step) = (usize::from(self.n) / 2, self.stride.wrapping_mul(self.piece_len() as i64));
            let follows = |i: usize| {
                let (a, b) = (2 * i, 2 * i + 1);
                self.group[a] == self.group[b] && self.off[b] == self.off[a].wrapping_add(step)
            };
            if !(0..half).all(follows) {
                break;
            }
            for i in 0..MOST_PIECES {
                (self.group[i], self.off[i]) = if i < half { (self.group[2 * i], self.off[2 * i]) } else { (0, 0) };
            }
            self.n = half as u8;
        }
        self
    }

    /// The same differences between lanes, of values that may be any.
    pub fn of_any_value(self) -> Shape {
        Shape { low: 0, high: u64::MAX, ..self }
    }

    /// The same differences between lanes, of values of which nothing else is known.
    pub fn of_any_base(self) -> Shape {
        Shape { align: 0, ..self.of_any_value() }
    }

    /// Covers the values of both of two shapes that are the [`same`](Self::same).
    pub fn or(self, other: &Shape) -> Shape {
        let (align, low, high) = (self.align.min(other.align), self.low.min(other.low), self.high.max(other.high));
        Shape { align, low, high, ..self }
    }

    fn within(mut self, low: u64, high: u64, ty: Ty) -> Shape {
        if low > high || high > ty.mask() {
            (self.low, self.high) = (0, ty.mask());
        } else {
            (self.low, self.high) = (low, high);
        }
        self
    }

    /// Whether the differences of all lanes are numbers of bits that are zero in the bases: then no sum carries.
    fn is_apart_from_bases(&self) -> bool {
        let room = 1i64.checked_shl(self.align.into()).filter(|room| *room > 0).unwrap_or(i64::MAX);
        (0..self.groups()).map(|g| self.span(g)).all(|(low, high)| low >= 0 && high < room)
    }

    /// Whether the sums of all 32 lanes do not wrap at `bits`, read as signed or unsigned: also those of lanes that no thread has, whose values may lie outside of
    /// `low..=high`.
    pub fn no_lane_wraps(&self, bits: u32, signed: bool) -> bool {
        let top = top(bits, signed);
        let fits = |(lowest, highest): (i64, i64)| {
            i128::from(self.low) + i128::from(lowest) >= 0
                && i128::from(self.high) + i128::from(highest) <= i128::from(top)
        };
        (0..self.groups()).all(|g| fits(self.span(g)))
    }

    /// Whether all lanes that threads have are known to be plain sums without wrapping at `bits`, read as signed or unsigned.
    pub fn no_wrap(&self, bits: u32, signed: bool) -> bool {
        if self.is_uniform() {
            return true;
        }
        let top = top(bits, signed);
        let reach = (0..self.groups()).map(|g| self.span(g)).map(|(a, b)| (b - a) as u64).max().unwrap_or(0);
        self.high <= top && (self.high - self.low).checked_add(reach).is_some_and(|r| r < 1u64 << (bits - 1) << 1)
    }
}

/// The largest number of so many bits.
fn top(bits: u32, signed: bool) -> u64 {
    let half = 1u64 << (bits - 1);
    if signed { half - 1 } else { half - 1 + half }
}

/// The shape of a special register, if it has one. `None`: lanes differ in no known way.
pub fn sreg(s: Sreg, shape: &LaunchShape) -> Option<Shape> {
    Some(match s {
        Sreg::Tid(i) if i < 3 => return tid(i, shape),
        // The fourth component is always 0.
        Sreg::Tid(_) => Shape::constant(0),
        Sreg::Laneid => Shape { align: 63, ..Shape::linear(1) }.within(0, 31, Ty::B32),
        _ if s.varies() == Varies::ByLane => return None,
        _ => {
            let (low, high) = shape_range(s, shape).unwrap_or((0, u64::MAX));
            Shape::ranged(low, high)
        }
    })
}

/// `%tid.x`, `.y`, `.z` of a warp as functions of the warp's number.
///
/// Known when the x dimension is a multiple of a warp, or divides a warp into few enough rows (they are its pieces); y and z then need a single
/// plane or a whole number of warps for each plane.
fn tid(i: u8, shape: &LaunchShape) -> Option<Shape> {
    let [nx, ny, nz] = shape.ntid;
    let top = u64::from(shape.ntid[i as usize]) - 1;
    if top == 0 {
        return Some(Shape::constant(0));
    }
    let total = nx * ny * nz;
    // One row of threads for a whole warp, or all threads in one row.
    if nx % 32 == 0 || nx == total {
        return Some(match i {
            0 => Shape { align: 5, ..Shape::linear(1) }.within(0, top, Ty::B32),
            _ => Shape::ranged(0, top),
        });
    }
    if !32u32.is_multiple_of(nx) || (32 / nx) as usize > MOST_PIECES {
        return None;
    }
    let rows = 32 / nx;
    let planes_are_whole = nz == 1 || ny.is_multiple_of(rows);
    match i {
        0 => Some(Shape { align: 63, ..Shape::of_pieces(1, &vec![0; rows as usize]) }.within(0, top, Ty::B32)),
        1 if planes_are_whole => {
            let numbers: Vec<i64> = (0..i64::from(rows)).collect();
            let align = rows.trailing_zeros() as u8;
            Some(Shape { align, ..Shape::of_pieces(0, &numbers) }.within(0, top, Ty::B32))
        }
        2 if planes_are_whole => Some(Shape::ranged(0, top)),
        _ => None,
    }
}

/// A source as the analysis sees it.
#[derive(Clone, Copy, Debug)]
pub struct Arg {
    /// Its shape; `None` when lanes differ in no known way.
    pub shape: Option<Shape>,
    /// Its value, if constant.
    pub value: Option<u64>,
}

impl Arg {
    /// Of an immediate.
    pub fn of(v: Val) -> Option<Arg> {
        match v {
            Val::Imm(x, _) => Some(Arg { shape: Some(Shape::constant(x)), value: Some(x) }),
            Val::Reg(_) => None,
        }
    }
}

/// Result of a value op.
#[derive(Clone, Copy, Debug)]
pub struct Result {
    /// How the lanes of the result differ.
    pub shape: Shape,
    /// The shape holds only if the (32-bit) source `check` does not wrap between lanes: to be tested at run time, read as signed or not.
    pub check: Option<(usize, bool)>,
}

/// What the shape of a result may ask of code.
#[derive(Clone, Copy, Debug)]
pub struct May {
    /// Run-time tests against wrapping.
    pub test: bool,
    /// Lanes that have changed places.
    pub flip: bool,
}

/// The shape of the result of a value op.
pub fn pure(op: Pure, args: &[Arg], may: May) -> Option<Result> {
    let r = untamed(op, args, may)?;
    Some(Result { shape: tame(r.shape, result_ty(op))?, ..r })
}

/// Differences as numbers of the width of the value, `None` if they are too large to be added up in 64 bits.
fn tame(mut s: Shape, ty: Ty) -> Option<Shape> {
    const MOST: u64 = 1 << 40;
    if s.is_uniform() || ty == Ty::P {
        return Some(s);
    }
    let signed = |d: i64| sign_extend(d as u64, ty);
    // Where the difference of two pieces wraps, they are no longer one.
    let finest = s.cut();
    (s.n, s.stride) = (MOST_PIECES as u8, signed(s.stride));
    (s.group, s.off) = (finest.map(|(g, _)| g), finest.map(|(_, d)| signed(d)));
    (s.stride.unsigned_abs() <= MOST && s.off.iter().all(|o| o.unsigned_abs() <= MOST))
        .then(|| s.joined().flipped(s.flip))
}

fn untamed(op: Pure, args: &[Arg], may: May) -> Option<Result> {
    let shapes: SmallVec<[Shape; 3]> = args.iter().map(|a| a.shape).collect::<Option<_>>()?;
    let done = |shape: Shape| Some(Result { shape, check: None });
    let ty = result_ty(op);
    let uniform = shapes.iter().all(Shape::is_uniform);
    let exact = match op {
        Pure::Mov(_) => return done(shapes[0]),
        Pure::Add(t) if t != Ty::P => sum(&shapes[0], &shapes[1], 1, t),
        Pure::Sub(t) => sum(&shapes[0], &shapes[1], -1, t),
        Pure::Mul(t) => product(args, &shapes, t),
        Pure::Shl(t) => match args[1].value {
            Some(k) if k < u64::from(t.bits()) => Some(scale(&shapes[0], 1i64.wrapping_shl(k as u32), t)),
            _ => None,
        },
        Pure::And(t) if t != Ty::P => mask(args, &shapes, t),
        Pure::Or(t) if t != Ty::P => merge(args, &shapes, t),
        Pure::Xor(t) if may.flip && t != Ty::P && !uniform => exchange(args, &shapes, t),
        Pure::Shr(int) => shift_right(args, &shapes, int),
        Pure::Ext { bits, signed, from, to } => return extend(&shapes[0], bits, signed, from, to, may.test),
        Pure::MulWide(int) if !uniform => return wide(args, &shapes, int, may.test),
        _ => None,
    };
    if let Some(s) = exact {
        return done(s);
    }
    if uniform {
        return done(uniform_range(op, &shapes, ty));
    }
    // Values that are the same within each piece: the op is done once for each distinct piece.
    if shapes.iter().all(|s| s.stride == 0) && by_piece(op) {
        let s = Shape::build(n_pieces(&shapes), 0, 0, |l| (first_equal(&shapes, l), 0));
        return (s.groups() <= 4).then_some(Result { shape: s.within(0, ty.mask(), ty), check: None });
    }
    None
}

/// The pieces that all of some shapes are made of.
fn n_pieces(shapes: &[Shape]) -> usize {
    shapes.iter().map(|s| usize::from(s.n)).max().unwrap_or(1)
}

/// First lane in which all sources equal those of lane `l`.
fn first_equal(shapes: &[Shape], l: usize) -> usize {
    let same = |s: &Shape, k: usize| (s.group_of(k), s.delta(k)) == (s.group_of(l), s.delta(l));
    (0..=l).find(|&k| shapes.iter().all(|s| same(s, k))).unwrap_or(l)
}

fn by_piece(op: Pure) -> bool {
    matches!(
        op,
        Pure::Mul(_)
            | Pure::MulWide(_)
            | Pure::And(_)
            | Pure::Or(_)
            | Pure::Xor(_)
            | Pure::Shl(_)
            | Pure::Shr(_)
            | Pure::Min(_)
            | Pure::Max(_)
            | Pure::Select(_)
            | Pure::ICmp(..)
    )
}

fn result_ty(op: Pure) -> Ty {
    op.results().0
}

fn uniform_range(op: Pure, shapes: &[Shape], ty: Ty) -> Shape {
    let u = Shape::UNIFORM;
    match op {
        Pure::Rem(int) if !int.signed && shapes[1].low > 0 => u.within(0, shapes[1].high - 1, ty),
        Pure::Min(int) if !int.signed => {
            u.within(shapes[0].low.min(shapes[1].low), shapes[0].high.min(shapes[1].high), ty)
        }
        Pure::MulWide(int) if !int.signed => match shapes[0].high.checked_mul(shapes[1].high) {
            Some(h) => u.within(shapes[0].low * shapes[1].low, h, ty),
            None => u.within(0, ty.mask(), ty),
        },
        _ => u.within(0, ty.mask(), ty),
    }
}

/// `a + b` or `a - b`, where lanes of both have changed places alike.
fn sum(a: &Shape, b: &Shape, sign: i64, ty: Ty) -> Option<Shape> {
    let flip = a.flip | b.flip;
    if [a, b].iter().any(|s| s.stride != 0 && s.flip != flip) {
        return None;
    }
    let plus = |x: i64, y: i64| x.wrapping_add(sign.wrapping_mul(y));
    let s = Shape::build(n_pieces(&[*a, *b]), plus(a.stride, b.stride), a.align.min(b.align), |l| {
        ((a.group_of(l), b.group_of(l)), plus(a.plain_delta(l), b.plain_delta(l)))
    });
    let s = s.flipped(flip);
    let (low, high) = if sign > 0 {
        (a.low.checked_add(b.low), a.high.checked_add(b.high))
    } else {
        (a.low.checked_sub(b.high), a.high.checked_sub(b.low))
    };
    Some(match (low, high) {
        (Some(l), Some(h)) if h <= ty.mask() => s.within(l, h, ty),
        _ => s.within(0, ty.mask(), ty),
    })
}

fn scale(a: &Shape, c: i64, ty: Ty) -> Shape {
    let room = if c == 0 { 63 } else { (u32::from(a.align) + c.trailing_zeros()).min(63) as u8 };
    let s = Shape::build(usize::from(a.n), a.stride.wrapping_mul(c), room, |l| {
        (a.group_of(l), a.plain_delta(l).wrapping_mul(c))
    });
    let s = s.flipped(a.flip);
    match u64::try_from(c).ok().and_then(|c| Some((a.low.checked_mul(c)?, a.high.checked_mul(c)?))) {
        Some((l, h)) if h <= ty.mask() => s.within(l, h, ty),
        _ => s.within(0, ty.mask(), ty),
    }
}

fn sign_extend(v: u64, ty: Ty) -> i64 {
    let s = 64 - ty.bits();
    ((v << s) as i64) >> s
}

fn product(args: &[Arg], shapes: &[Shape], ty: Ty) -> Option<Shape> {
    for (i, j) in [(0, 1), (1, 0)] {
        if let Some(c) = args[j].value {
            return Some(scale(&shapes[i], sign_extend(c, ty), ty));
        }
    }
    if shapes.iter().all(Shape::is_uniform) {
        let high = shapes[0].high.checked_mul(shapes[1].high).filter(|h| *h <= ty.mask());
        return Some(match high {
            Some(h) => Shape::UNIFORM.within(shapes[0].low * shapes[1].low, h, ty),
            None => Shape::UNIFORM.within(0, ty.mask(), ty),
        });
    }
    None
}

/// `a & c`: what the constant takes of the bases, and of the differences to them, as long as these have no bits in common.
fn mask(args: &[Arg], shapes: &[Shape], ty: Ty) -> Option<Shape> {
    for (i, j) in [(0, 1), (1, 0)] {
        let Some(c) = args[j].value else { continue };
        let a = &shapes[i];
        if a.is_uniform() {
            return Some(Shape::UNIFORM.within(0, c.min(a.high), ty));
        }
        // Where the bases have none of the bits that stay, each lane is a constant.
        let is_known = c < 1 << 31 && (c + 1).is_power_of_two() && u32::from(a.align) >= (c + 1).trailing_zeros();
        if !is_known && !a.is_apart_from_bases() {
            continue;
        }
        let low = |d: i64| d & c as i64;
        let first = |l: usize| low(a.plain_delta(l / SHORTEST * SHORTEST));
        let stride = low(a.plain_delta(1)) - low(a.plain_delta(0));
        if (0..WARP).all(|l| low(a.plain_delta(l)) == first(l) + stride * (l % SHORTEST) as i64) {
            let s = if is_known {
                Shape { align: 63, ..Shape::build(MOST_PIECES, stride, 63, |l| ((), first(l))) }
            } else {
                Shape::build(MOST_PIECES, stride, a.align, |l| (a.group_of(l), first(l)))
            };
            return Some(s.flipped(a.flip).within(0, c.min(ty.mask()), ty));
        }
    }
    None
}

/// `a ^ c`: the bits of the bases change as a whole, and those of the differences to them, as long as these have no bits in common, let lanes change places.
fn exchange(args: &[Arg], shapes: &[Shape], ty: Ty) -> Option<Shape> {
    let (i, c) = (0..2).find_map(|j| Some((1 - j, args[j].value?)))?;
    let a = &shapes[i];
    if !a.is_apart_from_bases() {
        return None;
    }
    let of_lanes = (c & ((1u64 << a.align) - 1)).cast_signed();
    let d = |l: usize| a.delta(l) ^ of_lanes;
    let as_flipped = |flip: usize| {
        let stride = d(1 ^ flip) - d(flip);
        let lane = |l: usize| d((l / SHORTEST * SHORTEST) ^ flip) + stride * ((l ^ flip) % SHORTEST) as i64;
        (stride >= 0 && (0..WARP).all(|l| d(l) == lane(l))).then_some((flip, stride))
    };
    let (flip, stride) = (0..SHORTEST).find_map(as_flipped)?;
    let s = Shape::build(MOST_PIECES, stride, a.align, |l| (a.group_of(l), d(l ^ flip))).flipped(flip as u8);
    // No bit above the highest of both.
    let high = u64::MAX >> (a.high | c).leading_zeros().min(63);
    Some(s.within(0, high.min(ty.mask()), ty))
}

/// `a | c` where no bit of the constant can be set in `a`: a sum.
fn merge(args: &[Arg], shapes: &[Shape], ty: Ty) -> Option<Shape> {
    for (i, j) in [(0, 1), (1, 0)] {
        let a = &shapes[i];
        if let Some(c) = args[j].value
            && !a.is_uniform()
        {
            let free = c.checked_ilog2().map_or(0, |b| b + 1);
            let clear = a.stride.trailing_zeros() >= free
                && u32::from(a.align) >= free
                && a.off.iter().all(|o| o.trailing_zeros() >= free);
            if clear {
                return sum(a, &Shape::constant(c), 1, ty);
            }
        }
    }
    None
}

/// `a >> k` where no lane's difference to its base carries over a multiple of `2^k`.
fn shift_right(args: &[Arg], shapes: &[Shape], int: Int) -> Option<Shape> {
    let (a, k) = (&shapes[0], args[1].value?);
    if k >= u64::from(int.bits()) {
        return None;
    }
    if a.is_uniform() {
        if int.signed && a.high > int.ty.mask() >> 1 {
            return Some(Shape::UNIFORM.within(0, int.ty.mask(), int.ty));
        }
        return Some(Shape::UNIFORM.within(a.low >> k, a.high >> k, int.ty));
    }
    let is_apart = a.is_apart_from_bases();
    if !is_apart && (u64::from(a.align) < k || !a.no_wrap(int.bits(), int.signed)) {
        return None;
    }
    let shifted = |l: usize| a.delta(l) >> k;
    if !(0..WARP).all(|l| shifted(l) == shifted(l / SHORTEST * SHORTEST)) {
        return None;
    }
    let s = Shape::build(MOST_PIECES, 0, a.align.saturating_sub(k as u8), |l| (a.group_of(l), shifted(l)));
    let is_negative = int.signed && a.high > int.ty.mask() >> 1;
    Some(if is_negative { s.within(0, int.ty.mask(), int.ty) } else { s.within(a.low >> k, a.high >> k, int.ty) })
}

fn extend(a: &Shape, bits: u8, signed: bool, from: Ty, to: Ty, speculate: bool) -> Option<Result> {
    let bits = u32::from(bits);
    if to.bits() <= bits {
        // Narrowing: sums hold modulo the smaller width.
        let s = if a.high <= to.mask() { *a } else { a.within(0, to.mask(), to) };
        return Some(Result { shape: s, check: None });
    }
    if bits < from.bits() && !a.is_uniform() {
        return None;
    }
    let top = if bits == 64 { u64::MAX } else { (1u64 << bits) - 1 };
    let non_negative = a.high <= if signed { top >> 1 } else { top };
    let s =
        if non_negative { a.within(a.low, a.high, to) } else { a.within(0, if signed { to.mask() } else { top }, to) };
    if a.is_uniform() || a.no_wrap(bits, signed) {
        return Some(Result { shape: s, check: None });
    }
    let near = (0..a.groups()).map(|g| a.span(g)).all(|(low, high)| high - low < i64::from(u32::MAX));
    (speculate && bits == 32 && near).then_some(Result { shape: s, check: Some((0, signed)) })
}

fn wide(args: &[Arg], shapes: &[Shape], int: Int, speculate: bool) -> Option<Result> {
    for (i, j) in [(0, 1), (1, 0)] {
        let Some(c) = args[j].value else { continue };
        let to = if int.ty == Ty::B32 { Ty::B64 } else { Ty::B32 };
        let e = extend(&shapes[i], int.bits() as u8, int.signed, int.ty, to, speculate)?;
        let c = if int.signed { sign_extend(c, int.ty) } else { c as i64 };
        return Some(Result { shape: scale(&e.shape, c, to), check: e.check.map(|(_, s)| (i, s)) });
    }
    None
}
