//! Shapes: how the lanes of a warp value relate, and what ops make of them.
//!
//! A value with shape `s` has in lane `l` of pack `p` the value `base[s.group[p]] + s.off[p] + s.stride * l`, modulo its width, where the bases
//! are known at run time only. The first pack of each group has offset 0.

use handloom_ir::simt::{LaunchShape, Pure, Val};
use handloom_ir::types::{Int, Sreg, Ty, Varies};

/// Packs of a warp.
pub const PACKS: usize = 8;
/// Lanes of a pack.
pub const LANES: usize = 4;

/// How lanes relate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Group of each pack; groups are numbered by first appearance.
    pub group: [u8; PACKS],
    /// Offset of the first lane of each pack from its group's base.
    pub off: [i64; PACKS],
    /// Difference between neighbouring lanes of a pack.
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
    pub const UNIFORM: Shape =
        Shape { group: [0; PACKS], off: [0; PACKS], stride: 0, align: 0, low: 0, high: u64::MAX };

    /// A constant.
    pub fn constant(v: u64) -> Shape {
        Shape { align: v.trailing_zeros().min(63) as u8, low: v, high: v, ..Shape::UNIFORM }
    }

    /// Whether no two packs have the same values.
    pub fn packs_differ(&self) -> bool {
        (0..PACKS).all(|p| (0..p).all(|q| (self.group[p], self.off[p]) != (self.group[q], self.off[q])))
    }

    /// Uniform with a range.
    pub fn ranged(low: u64, high: u64) -> Shape {
        Shape { low, high, ..Shape::UNIFORM }
    }

    /// Whether all lanes hold the same.
    pub fn is_uniform(&self) -> bool {
        self.stride == 0 && self.group == [0; PACKS] && self.off == [0; PACKS]
    }

    /// Whether lane `l` of the warp is the base plus `l` strides.
    pub fn is_linear(&self) -> bool {
        self.group == [0; PACKS] && (0..PACKS).all(|p| self.off[p] == self.stride.wrapping_mul((p * LANES) as i64))
    }

    /// Whether every lane of a group is a multiple of `align` if the first one is, the lanes are in ascending order, and the groups not too many to
    /// be tested one by one.
    pub fn is_regular(&self, align: i64) -> bool {
        self.stride % align == 0 && self.stride >= 0 && self.groups() <= 4 && self.off.iter().all(|o| o % align == 0)
    }

    /// Whether the lanes of each group, in ascending order, stand at even distances.
    pub fn is_even(&self) -> bool {
        (0..self.groups()).all(|g| {
            let packs = (0..PACKS).filter(|p| usize::from(self.group[*p]) == g);
            let d: Vec<i64> = packs.flat_map(|p| (0..LANES).map(move |l| self.delta(p, l))).collect();
            d.windows(2).all(|w| w[1] - w[0] == d[1] - d[0])
        })
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        usize::from(*self.group.iter().max().unwrap_or(&0)) + 1
    }

    /// First pack of a group.
    pub fn first(&self, group: usize) -> usize {
        self.group.iter().position(|&g| usize::from(g) == group).unwrap_or(0)
    }

    /// Whether bases, offsets and stride agree in structure (range and alignment aside).
    pub fn same(&self, other: &Shape) -> bool {
        self.group == other.group && self.off == other.off && self.stride == other.stride
    }

    /// Smallest and largest difference of a lane of a group to the group's base.
    pub fn span(&self, group: usize) -> (i64, i64) {
        let ends = [0, self.stride * (LANES as i64 - 1)];
        let all = (0..PACKS).filter(|&p| usize::from(self.group[p]) == group);
        let each = all.flat_map(|p| ends.map(|e| self.off[p] + e));
        each.fold((i64::MAX, i64::MIN), |(lo, hi), d| (lo.min(d), hi.max(d)))
    }

    /// Value of lane `l` of pack `p` relative to the base of its group.
    pub fn delta(&self, p: usize, l: usize) -> i64 {
        self.off[p] + self.stride * l as i64
    }

    /// Made from a key for each pack (packs with equal keys share a base) and a difference to that base.
    fn build<K: PartialEq + Copy>(keys: [(K, i64); PACKS], stride: i64, align: u8) -> Shape {
        let mut s = Shape { stride, align, ..Shape::UNIFORM };
        let mut firsts: Vec<(K, i64)> = Vec::new();
        for (p, (k, d)) in keys.into_iter().enumerate() {
            let g = match firsts.iter().position(|f| f.0 == k) {
                Some(g) => g,
                None => {
                    // The base takes in the difference of its first pack.
                    let room = if d == 0 { 63 } else { d.trailing_zeros().min(63) as u8 };
                    s.align = s.align.min(room);
                    firsts.push((k, d));
                    firsts.len() - 1
                }
            };
            s.group[p] = g as u8;
            s.off[p] = d.wrapping_sub(firsts[g].1);
        }
        s
    }

    fn within(mut self, low: u64, high: u64, ty: Ty) -> Shape {
        if low > high || high > ty.mask() {
            (self.low, self.high) = (0, ty.mask());
        } else {
            (self.low, self.high) = (low, high);
        }
        self
    }

    /// Whether all lanes are known to be plain sums without wrapping at `bits`, read as signed or unsigned.
    pub fn no_wrap(&self, bits: u32, signed: bool) -> bool {
        if self.is_uniform() {
            return true;
        }
        let top = if signed { (1u64 << (bits - 1)) - 1 } else { (1u64 << (bits - 1) << 1).wrapping_sub(1) };
        let reach = (0..self.groups()).map(|g| self.span(g)).map(|(a, b)| (b - a) as u64).max().unwrap_or(0);
        self.high <= top && (self.high - self.low).checked_add(reach).is_some_and(|r| r < 1u64 << (bits - 1) << 1)
    }
}

/// The shape of a special register, if it has one. `None`: lanes differ in no known way.
pub fn sreg(s: Sreg, shape: &LaunchShape) -> Option<Shape> {
    let [nx, ny, nz] = shape.ntid.map(u64::from);
    let limit = |n: u64| if shape.small_grid { (0x7fff_ffff / n.max(1)).saturating_sub(1) } else { 0x7fff_ffff };
    Some(match s {
        Sreg::Tid(i) if i < 3 => return tid(i, shape),
        // The fourth component is always 0.
        Sreg::Tid(_) => Shape::constant(0),
        Sreg::Laneid => {
            let keys: [((), i64); PACKS] = std::array::from_fn(|p| ((), (p * LANES) as i64));
            Shape { align: 63, ..Shape::build(keys, 1, 63) }.within(0, 31, Ty::B32)
        }
        Sreg::Ctaid(0) => Shape::ranged(0, limit(nx)),
        Sreg::Ctaid(1) => Shape::ranged(0, limit(ny).min(65534)),
        Sreg::Ctaid(2) => Shape::ranged(0, limit(nz).min(65534)),
        Sreg::Nctaid(0) => Shape::ranged(1, limit(nx) + 1),
        Sreg::Nctaid(1 | 2) => Shape::ranged(1, 65535),
        Sreg::Warpid => Shape::ranged(0, 31),
        _ if s.varies() == Varies::ByLane => return None,
        _ => Shape::ranged(0, u64::MAX),
    })
}

/// `%tid.x`, `.y`, `.z` of a warp as functions of the warp's number.
///
/// Known when the x dimension is a multiple of a warp, or divides a warp and is a multiple of a pack (then rows follow each other in a
/// warp); y and z then need a single plane or a whole number of warps for each plane.
fn tid(i: u8, shape: &LaunchShape) -> Option<Shape> {
    let [nx, ny, nz] = shape.ntid;
    let top = u64::from(shape.ntid[i as usize]) - 1;
    if top == 0 {
        return Some(Shape::constant(0));
    }
    let total = nx * ny * nz;
    let packs = |f: &dyn Fn(usize) -> i64| -> [((), i64); PACKS] { std::array::from_fn(|p| ((), f(p))) };
    // One row of threads for a whole warp, or all threads in one row.
    if nx % 32 == 0 || nx == total {
        return Some(match i {
            0 => Shape { align: 5, ..Shape::build(packs(&|p| (p * LANES) as i64), 1, 5) }.within(0, top, Ty::B32),
            _ => Shape::ranged(0, top),
        });
    }
    if !(nx.is_multiple_of(4) && 32u32.is_multiple_of(nx)) {
        return None;
    }
    let rows = 32 / nx;
    let planes_are_whole = nz == 1 || ny.is_multiple_of(rows);
    let row = |p: usize| (p * LANES) as u32 / nx;
    match i {
        0 => {
            let keys = packs(&|p| i64::from((p * LANES) as u32 % nx));
            Some(Shape { align: 63, ..Shape::build(keys, 1, 63) }.within(0, top, Ty::B32))
        }
        1 if planes_are_whole => {
            Some(Shape::build(packs(&|p| i64::from(row(p))), 0, rows.trailing_zeros() as u8).within(0, top, Ty::B32))
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

/// The shape of the result of a value op. `speculate`: a run-time test against wrapping may be asked for.
pub fn pure(op: Pure, args: &[Arg], speculate: bool) -> Option<Result> {
    let r = untamed(op, args, speculate)?;
    Some(Result { shape: tame(r.shape, result_ty(op))?, ..r })
}

/// Differences as numbers of the width of the value, `None` if they are too large to be added up in 64 bits.
fn tame(mut s: Shape, ty: Ty) -> Option<Shape> {
    const MOST: u64 = 1 << 40;
    if s.is_uniform() || ty == Ty::P {
        return Some(s);
    }
    s.stride = sign_extend(s.stride as u64, ty);
    s.off = s.off.map(|o| sign_extend(o as u64, ty));
    (s.stride.unsigned_abs() <= MOST && s.off.iter().all(|o| o.unsigned_abs() <= MOST)).then_some(s)
}

fn untamed(op: Pure, args: &[Arg], speculate: bool) -> Option<Result> {
    let shapes: Vec<Shape> = args.iter().map(|a| a.shape).collect::<Option<_>>()?;
    let done = |shape: Shape| Some(Result { shape, check: None });
    let ty = result_ty(op);
    let uniform = shapes.iter().all(Shape::is_uniform);
    let exact = match op {
        Pure::Mov(_) => return done(shapes[0]),
        Pure::Add(t) if t != Ty::P => return done(sum(&shapes[0], &shapes[1], 1, t)),
        Pure::Sub(t) => return done(sum(&shapes[0], &shapes[1], -1, t)),
        Pure::Mul(t) => product(args, &shapes, t),
        Pure::Shl(t) => match args[1].value {
            Some(k) if k < u64::from(t.bits()) => Some(scale(&shapes[0], 1i64.wrapping_shl(k as u32), t)),
            _ => None,
        },
        Pure::And(t) if t != Ty::P => mask(args, &shapes, t),
        Pure::Or(t) if t != Ty::P => merge(args, &shapes, t),
        Pure::Shr(int) => shift_right(args, &shapes, int),
        Pure::Ext { bits, signed, from, to } => return extend(&shapes[0], bits, signed, from, to, speculate),
        Pure::MulWide(int) if !uniform => return wide(args, &shapes, int, speculate),
        _ => None,
    };
    if let Some(s) = exact {
        return done(s);
    }
    if uniform {
        return done(uniform_range(op, &shapes, ty));
    }
    // Values that are the same within each pack: the op is done once for each distinct pack.
    if shapes.iter().all(|s| s.stride == 0) && by_pack(op) {
        let keys: [(usize, i64); PACKS] = std::array::from_fn(|p| (first_equal(&shapes, p), 0));
        let s = Shape::build(keys, 0, 0);
        return (s.groups() <= 4).then_some(Result { shape: s.within(0, ty.mask(), ty), check: None });
    }
    None
}

/// First pack in which all sources equal those of pack `p`.
fn first_equal(shapes: &[Shape], p: usize) -> usize {
    (0..=p).find(|&q| shapes.iter().all(|s| s.group[p] == s.group[q] && s.off[p] == s.off[q])).unwrap_or(p)
}

fn by_pack(op: Pure) -> bool {
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

fn sum(a: &Shape, b: &Shape, sign: i64, ty: Ty) -> Shape {
    let keys: [((u8, u8), i64); PACKS] =
        std::array::from_fn(|p| ((a.group[p], b.group[p]), a.off[p].wrapping_add(sign.wrapping_mul(b.off[p]))));
    let s = Shape::build(keys, a.stride.wrapping_add(sign.wrapping_mul(b.stride)), a.align.min(b.align));
    let (low, high) = if sign > 0 {
        (a.low.checked_add(b.low), a.high.checked_add(b.high))
    } else {
        (a.low.checked_sub(b.high), a.high.checked_sub(b.low))
    };
    match (low, high) {
        (Some(l), Some(h)) if h <= ty.mask() => s.within(l, h, ty),
        _ => s.within(0, ty.mask(), ty),
    }
}

fn scale(a: &Shape, c: i64, ty: Ty) -> Shape {
    let keys: [(u8, i64); PACKS] = std::array::from_fn(|p| (a.group[p], a.off[p].wrapping_mul(c)));
    let room = if c == 0 { 63 } else { (u32::from(a.align) + c.trailing_zeros()).min(63) as u8 };
    let s = Shape::build(keys, a.stride.wrapping_mul(c), room);
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

/// `a & (2^k - 1)` where the bases are multiples of `2^k`: a constant in each lane.
fn mask(args: &[Arg], shapes: &[Shape], ty: Ty) -> Option<Shape> {
    for (i, j) in [(0, 1), (1, 0)] {
        let Some(c) = args[j].value else { continue };
        let a = &shapes[i];
        if a.is_uniform() {
            return Some(Shape::UNIFORM.within(0, c.min(a.high), ty));
        }
        if !(c + 1).is_power_of_two() || c >= 1 << 31 || u32::from(a.align) < (c + 1).trailing_zeros() {
            continue;
        }
        let low = |d: i64| d & c as i64;
        let straight =
            (0..PACKS).all(|p| (0..LANES).all(|l| low(a.delta(p, l)) == low(a.off[p]) + a.stride * l as i64));
        if straight {
            let keys: [((), i64); PACKS] = std::array::from_fn(|p| ((), low(a.off[p])));
            return Some(Shape { align: 63, ..Shape::build(keys, a.stride, 63) }.within(0, c, ty));
        }
    }
    None
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
                return Some(sum(a, &Shape::constant(c), 1, ty));
            }
        }
    }
    None
}

/// `a >> k` where the bases are multiples of `2^k` and no lane of a pack crosses one.
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
    if u64::from(a.align) < k || !a.no_wrap(int.bits(), int.signed) {
        return None;
    }
    let flat = (0..PACKS).all(|p| (0..LANES).all(|l| a.delta(p, l) >> k == a.off[p] >> k));
    if !flat {
        return None;
    }
    let keys: [(u8, i64); PACKS] = std::array::from_fn(|p| (a.group[p], a.off[p] >> k));
    Some(Shape::build(keys, 0, a.align - k as u8).within(a.low >> k, a.high >> k, int.ty))
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
