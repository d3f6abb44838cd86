//! `wmma` as loads, products and stores of fragments that lie as those of `mma` do.
//!
//! A matrix is cut into blocks: `a` into 16 rows (8 if it has no more), `b` into 8 columns, the accumulators into both. A fragment holds the registers of
//! one block after those of the other, `a` and the accumulators by rows first.
//!
//! Choice: fragments of multiplicands of `.f16` have more registers than their elements need; the further ones are copies, and not read by products. Each
//! lane reads or writes its own elements, so that an address or a stride which is not a multiple of the size of a fragment goes unnoticed if its
//! elements lie well. A stride is taken without a sign.
//!
//! # PTX ISA
//! Matrix Fragments for WMMA, Matrix Storage for WMMA.

use std::collections::HashMap;

use handloom_ir::simt::{Access, Addr, MatrixOp, Product, Pure, Step, Val};
use handloom_ir::types::ScalarType::F16;
use handloom_ir::types::{Cmp, Float, Int, Ty};

use super::fragment::bits;
use super::ldmatrix::{group_and_lane, times, warp_op, word_of_bytes};
use super::product::of_instruction;
use super::shape::mnk;
use crate::data_movement::memory::space;
use crate::form::*;

/// Which matrix of a product.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    A,
    B,
    /// An accumulator.
    C,
}

/// A register of a fragment. With `g = lane / 4` and `t = lane % 4` it holds elements of the line `across + g`: those from `along + t * width` on. Lines are rows of
/// `a` and of accumulators, and columns of `b`.
#[derive(Clone, Copy)]
struct Piece {
    across: u32,
    along: u32,
}

/// How a fragment lies in registers.
struct Layout {
    pieces: Vec<Piece>,
    /// Elements of a register.
    per_register: u32,
    /// Elements between those of neighbouring lanes.
    width: u32,
}

/// Rows of a block.
fn block_rows(m: u32) -> u32 {
    m.min(16)
}

impl Layout {
    fn new(part: Part, (m, n, k): (u32, u32, u32), bits: u32) -> Layout {
        let per_register = (32 / bits).max(1);
        let depths = (0..k).step_by(4 * per_register as usize);
        let rows = |i: u32| (0..block_rows(m)).step_by(8).map(move |h| i + h);
        let blocks = (0..m).step_by(block_rows(m) as usize);
        let columns = (0..n).step_by(8);
        let pieces = match part {
            Part::A => blocks
                .flat_map(|i| depths.clone().flat_map(move |along| rows(i).map(move |across| Piece { across, along })))
                .collect(),
            Part::B => columns.flat_map(|across| depths.clone().map(move |along| Piece { across, along })).collect(),
            Part::C => blocks
                .flat_map(|i| columns.clone().flat_map(move |j| rows(i).map(move |across| (across, j))))
                .flat_map(|(across, j)| {
                    (0..2).step_by(per_register as usize).map(move |e| Piece { across, along: j + e })
                })
                .collect(),
        };
        Layout { pieces, per_register, width: if part == Part::C { 2 } else { per_register } }
    }
}

/// A matrix in memory, as one lane sees it.
struct Matrix {
    access: Access,
    layout: Layout,
    /// Elements of a line follow each other; else the lines do.
    by_lines: bool,
    /// Bits of an element.
    bits: u32,
    /// Bytes from a line to the next one, or from an element to the next one of its line.
    stride: Val,
    /// The address of the lane's first element, without the offset.
    base: Val,
    offset: i64,
    /// Addresses some strides on, by their number.
    known: HashMap<u32, Val>,
}

impl Matrix {
    /// `at`: where the address stands among the sources; `stride`: and the stride.
    fn new(x: &mut Cx<'_, '_>, part: Part, role: Role, at: usize, stride: usize) -> Matrix {
        let (m, n, k) = mnk(x.u.text(Role::Shape));
        let bits = bits(x.u, role);
        let layout = Layout::new(part, (m, n, k), bits);
        let is_row = x.u.text(Role::LayoutA) == ".row";
        let (rows, columns) = match part {
            Part::A => (m, k),
            Part::B => (k, n),
            Part::C => (m, n),
        };
        let Addr { base, offset } = x.addr(at);
        let ty = x.b.ty(base);
        let elements = match x.src_opt(stride) {
            Some(given) => x.b.ext(given, 32, false, ty),
            None => x.b.imm(u64::from(if is_row { columns } else { rows }), ty),
        };
        let stride = if bits >= 8 {
            times(x, elements, bits / 8)
        } else {
            let by = Val::Imm(u64::from((8 / bits).trailing_zeros()), Ty::B32);
            x.b.pure(Pure::Shr(Int { ty, signed: false }), ty, &[elements, by])
        };
        let unit = if bits < 8 { 32 } else { u8::try_from(bits).expect("bug: an element of more than 255 bits") };
        let access = Access::weak(space(x.u), unit);
        let by_lines = is_row == (part != Part::B);
        let (g, t) = group_and_lane(x);
        let [g, t] = [g, t].map(|v| x.b.ext(v, 32, false, ty));
        let (strides, steps, step) =
            if by_lines { (g, t, layout.width * bits / 8) } else { (times(x, t, layout.width), g, bits / 8) };
        let far = x.b.pure(Pure::Mul(ty), ty, &[strides, stride]);
        let near = times(x, steps, step);
        let within = x.b.add(far, near);
        let base = x.b.add(base, within);
        Matrix { access, layout, by_lines, bits, stride, base, offset, known: HashMap::new() }
    }

    /// Where element `e` of a register lies.
    fn place(&mut self, x: &mut Cx<'_, '_>, p: Piece, e: u32) -> Addr {
        let (strides, steps) = if self.by_lines { (p.across, p.along + e) } else { (p.along + e, p.across) };
        let base = match self.known.get(&strides) {
            Some(base) => *base,
            None => {
                let far = times(x, self.stride, strides);
                let base = if strides == 0 { self.base } else { x.b.add(self.base, far) };
                self.known.insert(strides, base);
                base
            }
        };
        Addr { base, offset: self.offset + i64::from(steps * self.bits / 8) }
    }

    /// Whether a register is one word of memory.
    fn is_whole(&self) -> bool {
        self.by_lines || self.layout.per_register == 1
    }

    fn whole(&self) -> Access {
        Access { bits: if self.bits == 64 { 64 } else { 32 }, ..self.access }
    }

    fn load(&mut self, x: &mut Cx<'_, '_>, p: Piece) -> Val {
        if self.is_whole() {
            let at = self.place(x, p, 0);
            return x.b.load(self.whole(), at)[0];
        }
        let elements: Vec<Val> = (0..self.layout.per_register)
            .map(|e| {
                let at = self.place(x, p, e);
                x.b.load(self.access, at)[0]
            })
            .collect();
        if let [low, high] = elements[..] {
            return x.b.pack(low, high);
        }
        word_of_bytes(x, elements)
    }

    fn store(&mut self, x: &mut Cx<'_, '_>, p: Piece, value: Val) {
        if self.is_whole() {
            let at = self.place(x, p, 0);
            x.b.store(self.whole(), at, &[value]);
            return;
        }
        // Of accumulators only those of `.f16` share a register.
        for (e, hi) in [(0, false), (1, true)] {
            let (half, at) = (x.b.half(value, hi), self.place(x, p, e));
            x.b.store(self.access, at, &[half]);
        }
    }
}

/// `wmma.load` of `a` or `b`.
pub(super) fn load_multiplicand(x: &mut Cx<'_, '_>) {
    load(x, if x.u.text(Role::Op) == ".a" { Part::A } else { Part::B });
}

/// `wmma.load` of `c`.
pub(super) fn load_accumulator(x: &mut Cx<'_, '_>) {
    load(x, Part::C);
}

fn load(x: &mut Cx<'_, '_>, part: Part) {
    let mut matrix = Matrix::new(x, part, Role::Type, 0, 1);
    let pieces = matrix.layout.pieces.clone();
    let values: Vec<Val> = pieces.into_iter().map(|p| matrix.load(x, p)).collect();
    // Where there are more registers than these, they are copies.
    let n = if x.u.ty(Role::Type) == F16 && part != Part::C { 8 } else { values.len() };
    (0..n).for_each(|i| x.set_at(0, i, values[i % values.len()]));
}

/// `wmma.store` of `d`.
pub(super) fn store(x: &mut Cx<'_, '_>) {
    let values = x.srcs(1);
    let mut matrix = Matrix::new(x, Part::C, Role::Type, 0, 2);
    let pieces = matrix.layout.pieces.clone();
    pieces.into_iter().zip(values).for_each(|(p, value)| matrix.store(x, p, value));
}

/// `wmma.mma`.
pub(super) fn product(x: &mut Cx<'_, '_>) {
    let sums = sums(x, of_instruction(x.u));
    sums.into_iter().enumerate().for_each(|(i, v)| x.set_at(0, i, v));
}

/// `wmma.mma` of floats with `.satfinite`.
///
/// Choice: the manual no longer says what it does; the *CUDA Programming Guide* does, of `mma_sync` with `satf`: infinities become the greatest numbers, and
/// a NaN becomes 0.
pub(super) fn finite_product(x: &mut Cx<'_, '_>) {
    let sums = sums(x, Product { step: Step::Add, ..of_instruction(x.u) });
    for (i, sum) in sums.into_iter().enumerate() {
        let finite = if x.u.ty(Role::Type) == F16 {
            let [low, high] = [false, true].map(|hi| {
                let half = x.b.half(sum, hi);
                finite(x, half, Float::F16, 0x7bff, 0xfbff)
            });
            x.b.pack(low, high)
        } else {
            finite(x, sum, Float::F32, u64::from(f32::MAX.to_bits()), u64::from(f32::MIN.to_bits()))
        };
        x.set_at(0, i, finite);
    }
}

/// A number between the ends of its format; 0 for a NaN.
fn finite(x: &mut Cx<'_, '_>, sum: Val, ty: Float, most: u64, least: u64) -> Val {
    let bits = x.b.ty(sum);
    let (ftz, nan, xorsign) = (false, false, false);
    let low = x.b.pure(Pure::FMin { ty, ftz, nan, xorsign }, bits, &[sum, Val::Imm(most, bits)]);
    let inside = x.b.pure(Pure::FMax { ty, ftz, nan, xorsign }, bits, &[low, Val::Imm(least, bits)]);
    let is_number = x.b.pure(Pure::FCmp { cmp: Cmp::Num, ty, ftz }, Ty::P, &[sum, sum]);
    x.b.select(is_number, inside, Val::Imm(0, bits))
}

/// The registers of `d`, of a product whose rows are those of a block of `mma`.
fn sums(x: &mut Cx<'_, '_>, p: Product) -> Vec<Val> {
    let (m, n, _) = mnk(x.u.text(Role::Shape));
    let p = Product { m: u8::try_from(block_rows(m)).expect("bug: a block of more than 255 rows"), ..p };
    let [n_a, n_b, n_c, _] = p.registers();
    let [a, b, c] = [0, 1, 2].map(|i| x.srcs(i));
    let mut sums = Vec::new();
    for i in 0..(m / block_rows(m)) as usize {
        for j in 0..(n / 8) as usize {
            let block = i * (n / 8) as usize + j;
            let src = [&a[i * n_a..][..n_a], &b[j * n_b..][..n_b], &c[block * n_c..][..n_c]].concat();
            sums.extend(warp_op(x, MatrixOp::Product(p), src));
        }
    }
    sums
}
