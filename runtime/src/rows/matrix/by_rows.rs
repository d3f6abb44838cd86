//! Products whose elements do not meet in the same way in all rows, or whose sums are not of 32 bits: of sparse matrices, with scales of blocks, of
//! single bits, of `.f64`, and the four of `mma.m8n8k4`.
//!
//! The sums of a row of `d` are a vector of eight columns. Elements of `b` are brought into rows of eight columns by depth; an element of `a` is
//! multiplied with the row that its place or its metadata names. Four rows take turns, so that none waits for its own sum.
//!
//! Invariants: as for all products, results are those of `num::matrix`, bit for bit. Everything here is inlined into functions that have the features
//! of a kind of host.

use handloom_ir::num::matrix::scale;
use handloom_ir::simt::{Accumulator, Element, Product, Quads, Scale, Step};
use handloom_ir::types::Rounding;

use super::vectors::Vectors;
use super::{Row, lay_out};

/// Planes of `a` and of `b`, at most: one for each element of each register.
pub(super) const MAX_PLANES: usize = 32;
/// The deepest product, counted in what is multiplied at once.
const MAX_DEPTH: usize = 128;
/// Rows that take turns.
const TOGETHER: usize = 4;

/// What becomes of two elements and a sum, as 32-bit words.
pub(super) trait Sum {
    fn step(a: u32, b: u32, sum: u32) -> u32;
}

/// Floats.
pub(super) struct Fused;
/// Integers.
pub(super) struct Whole;
/// 32 single bits, exclusive or.
pub(super) struct Xor;
/// 32 single bits, and.
pub(super) struct And;

impl Sum for Fused {
    #[inline(always)]
    fn step(a: u32, b: u32, sum: u32) -> u32 {
        f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(sum)).to_bits()
    }
}

impl Sum for Whole {
    #[inline(always)]
    fn step(a: u32, b: u32, sum: u32) -> u32 {
        sum.wrapping_add(a.wrapping_mul(b))
    }
}

impl Sum for Xor {
    #[inline(always)]
    fn step(a: u32, b: u32, sum: u32) -> u32 {
        sum + (a ^ b).count_ones()
    }
}

impl Sum for And {
    #[inline(always)]
    fn step(a: u32, b: u32, sum: u32) -> u32 {
        sum + (a & b).count_ones()
    }
}

/// Eight columns.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Columns([u32; 8]);

/// Elements of the matrices, one in a word, and what is made of them.
pub(super) struct Elements {
    /// By register and element of a register, as lanes hold them.
    pub(super) a: [Row; MAX_PLANES],
    /// The same.
    pub(super) b: [Row; MAX_PLANES],
    /// `b` by depth.
    columns: [Columns; MAX_DEPTH],
    /// For each row the depths of the elements of `a` that are there.
    depths: [[u8; MAX_DEPTH]; 16],
}

impl Elements {
    pub(super) const EMPTY: Elements = Elements {
        a: [[0; 32]; MAX_PLANES],
        b: [[0; 32]; MAX_PLANES],
        columns: [Columns([0; 8]); MAX_DEPTH],
        depths: [[0; MAX_DEPTH]; 16],
    };

    /// Brings `b` into the order of depths, of which each register has `per` in a lane.
    #[inline(always)]
    fn by_depth(&mut self, depth: usize, per: usize) {
        for k in 0..depth {
            let plane = &self.b[k / (4 * per) * per + k % per];
            let t = k / per % 4;
            for column in 0..8 {
                self.columns[k].0[column] = plane[4 * column + t];
            }
        }
    }

    /// Writes down which depths the rows of `a` have: `p` is sparse or not.
    #[inline(always)]
    fn depths_of(&mut self, p: Product, metadata: Option<&Row>, stored: usize) {
        let n_rows = usize::from(p.m);
        let Some(metadata) = metadata else {
            for row in 0..n_rows {
                for k in 0..stored {
                    self.depths[row][k] = k as u8;
                }
            }
            return;
        };
        let (size, together) = p.chunk();
        let n_chunks = usize::from(p.k) / size;
        for row in 0..n_rows {
            let depths = &mut self.depths[row];
            for chunk in 0..n_chunks {
                let at = p.place_of_metadata(row, chunk);
                let bits = (metadata[at.lane] >> at.bit) as usize & 15;
                let first = chunk * size;
                // The rule of `num::matrix::kept`.
                if size == 2 {
                    depths[chunk] = (first + (bits >> 1 & 1)) as u8;
                } else {
                    for i in 0..together {
                        depths[2 * together * chunk + i] = (first + (bits & 3) * together + i) as u8;
                        depths[2 * together * chunk + together + i] = (first + (bits >> 2) * together + i) as u8;
                    }
                }
            }
        }
    }
}

/// A place in [`Elements::a`] of the rows from 0 on: of the elements of a row that are there, by their number.
#[inline(always)]
fn word_of_a(k: usize, per: usize, n_rows: usize) -> (usize, usize) {
    (k / (4 * per) * n_rows * per + k % per, k / per % 4)
}

/// Adds the products of some elements of four rows. `row`: the first of them.
#[inline(always)]
fn add<S: Sum>(
    e: &Elements,
    row: usize,
    range: [usize; 2],
    (per, n_rows): (usize, usize),
    sums: &mut [Columns; TOGETHER],
) {
    // Rows of one half of the matrix: planes of the second half follow those of the first.
    let (half, lane) = (row / 8 * per, 4 * (row % 8));
    let mut acc = *sums;
    for k in range[0]..range[1] {
        let (plane, t) = word_of_a(k, per, n_rows);
        let plane = &e.a[plane + half];
        for i in 0..TOGETHER {
            let a = plane[lane + 4 * i + t];
            let b = &e.columns[usize::from(e.depths[row + i][k]) % MAX_DEPTH].0;
            for column in 0..8 {
                acc[i].0[column] = S::step(a, b[column], acc[i].0[column]);
            }
        }
    }
    *sums = acc;
}

/// Multiplies. `sums` has what the sums start from and gets them, as lanes hold them: two columns of a row, then those of the row eight below.
/// `per`: elements of a register; `depth` and `stored`: those of a column of `b` and of a row of `a`.
#[inline(always)]
pub(super) fn multiply<S: Sum>(
    p: Product,
    e: &mut Elements,
    metadata: Option<&Row>,
    [depth, stored, per]: [usize; 3],
    sums: &mut [Row; 4],
) {
    e.by_depth(depth, per);
    e.depths_of(p, metadata, stored);
    let mut row = 0;
    while row < usize::from(p.m) {
        let mut of_rows = load(sums, row);
        add::<S>(e, row, [0, stored], (per, p.n_rows()), &mut of_rows);
        store(sums, row, &of_rows);
        row += TOGETHER;
    }
}

/// The same with scales of blocks: `scales` has the registers of those of `a` and of `b`, each with the byte and the lane.
#[inline(always)]
pub(super) fn multiply_scaled(
    p: Product,
    by: Scale,
    e: &mut Elements,
    metadata: Option<&Row>,
    scales: [&Row; 6],
    [depth, stored, per]: [usize; 3],
    sums: &mut [Row; 4],
) {
    e.by_depth(depth, per);
    e.depths_of(p, metadata, stored);
    let n_blocks = usize::from(by.blocks);
    let size = stored / n_blocks;
    // As in `num::matrix`: the bytes and lanes that the first lane names.
    let bytes = [scales[1][0] as usize, scales[4][0] as usize];
    let (pair, t) = (scales[2][0] as usize % 2, scales[5][0] as usize % 4);
    let mut of_b = [[0.0_f64; 8]; 4];
    for (block, of_b) in of_b.iter_mut().enumerate().take(n_blocks) {
        for column in 0..8 {
            let bits = scales[3][4 * column + t] >> (8 * ((bytes[1] + block) % 4)) & 0xff;
            of_b[column] = scale(by.format, u64::from(bits));
        }
    }
    let mut row = 0;
    while row < usize::from(p.m) {
        let start = load(sums, row);
        let mut all = [[0.0_f64; 8]; TOGETHER];
        for i in 0..TOGETHER {
            for column in 0..8 {
                all[i][column] = f64::from(f32::from_bits(start[i].0[column]));
            }
        }
        for block in 0..n_blocks {
            let mut of_rows = [Columns([0; 8]); TOGETHER];
            add::<Fused>(e, row, [block * size, (block + 1) * size], (per, p.n_rows()), &mut of_rows);
            for i in 0..TOGETHER {
                let at = row + i;
                let bits = scales[0][4 * (at % 8) + 2 * pair + at / 8] >> (8 * ((bytes[0] + block) % 4)) & 0xff;
                let of_a = scale(by.format, u64::from(bits));
                for column in 0..8 {
                    let sum = f64::from(f32::from_bits(of_rows[i].0[column]));
                    all[i][column] += sum * (of_a * of_b[block][column]);
                }
            }
        }
        let mut end = [Columns([0; 8]); TOGETHER];
        for i in 0..TOGETHER {
            for column in 0..8 {
                end[i].0[column] = (all[i][column] as f32).to_bits();
            }
        }
        store(sums, row, &end);
        row += TOGETHER;
    }
}

/// The sums of four rows from `row` on.
#[inline(always)]
fn load(sums: &[Row; 4], row: usize) -> [Columns; TOGETHER] {
    let mut out = [Columns([0; 8]); TOGETHER];
    let (h, first) = (2 * (row / 8), 4 * (row % 8));
    for i in 0..TOGETHER {
        for column in 0..8 {
            out[i].0[column] = sums[h + column % 2][first + 4 * i + column / 2];
        }
    }
    out
}

#[inline(always)]
fn store(sums: &mut [Row; 4], row: usize, from: &[Columns; TOGETHER]) {
    let (h, first) = (2 * (row / 8), 4 * (row % 8));
    for i in 0..TOGETHER {
        for column in 0..8 {
            sums[h + column % 2][first + 4 * i + column / 2] = from[i].0[column];
        }
    }
}

/// Where an element of an accumulator of [`quads`] lies, of which each has a row of its own.
#[inline(always)]
fn place_in_quads(of: Accumulator, n: usize, row: usize, column: usize) -> (usize, usize) {
    let at = Quads::place_of_sum(of, n, row, column);
    (at.register * of.per_register() + at.bit as usize / 16, at.lane)
}

/// Four products of 8 by 4 by 8 halves. All elements lie in rows of their own: two, or one, for each register.
#[inline(always)]
pub(super) fn quads(q: Quads, a: &[Row; 4], b: &[Row; 4], c: &[Row; 8], d: &mut [Row; 8]) {
    for n in 0..4 {
        let mut of_b = [[0.0_f32; 8]; 4];
        for depth in 0..4 {
            for column in 0..8 {
                let at = q.place_of_b(n, depth, column);
                of_b[depth][column] = f32::from_bits(b[2 * at.register + at.bit as usize / 16][at.lane]);
            }
        }
        for row in 0..8 {
            let mut acc = [0.0_f32; 8];
            for column in 0..8 {
                let (i, lane) = place_in_quads(q.c, n, row, column);
                acc[column] = f32::from_bits(c[i][lane]);
            }
            for depth in 0..4 {
                let at = q.place_of_a(n, row, depth);
                let a = f32::from_bits(a[2 * at.register + at.bit as usize / 16][at.lane]);
                for column in 0..8 {
                    acc[column] = a.mul_add(of_b[depth][column], acc[column]);
                }
            }
            for column in 0..8 {
                let (i, lane) = place_in_quads(q.d, n, row, column);
                d[i][lane] = if acc[column].is_nan() { super::CANONICAL } else { acc[column].to_bits() };
            }
        }
    }
}

/// The roundings that [`doubles`] has.
pub(super) fn rounds(step: Step) -> bool {
    matches!(step, Step::Add | Step::AddRounded(Rounding::Nearest))
}

/// A product of `.f64`, rounded to nearest.
#[inline(always)]
pub(super) fn doubles(p: Product, src: &[[u64; 32]], dst: &mut [[u64; 32]]) {
    const CANONICAL: u64 = 0x7fff_ffff_ffff_ffff;
    let [n_a, n_b, ..] = p.registers();
    let n_rows = p.n_rows();
    let mut of_b = [[0.0_f64; 8]; 16];
    for k in 0..usize::from(p.k) {
        for column in 0..8 {
            of_b[k % 16][column] = f64::from_bits(src[n_a + k / 4][4 * column + k % 4]);
        }
    }
    for row in 0..usize::from(p.m) {
        let (h, first) = (2 * (row / 8), 4 * (row % 8));
        let mut acc = [0.0_f64; 8];
        for column in 0..8 {
            acc[column] = f64::from_bits(src[n_a + n_b + h + column % 2][first + column / 2]);
        }
        for k in 0..usize::from(p.k) {
            let a = f64::from_bits(src[k / 4 * n_rows + row / 8][first + k % 4]);
            for column in 0..8 {
                acc[column] = a.mul_add(of_b[k % 16][column], acc[column]);
            }
        }
        for column in 0..8 {
            let sum = if acc[column].is_nan() { CANONICAL } else { acc[column].to_bits() };
            dst[h + column % 2][first + column / 2] = sum;
        }
    }
}

/// Sources after the matrices.
struct More<'r> {
    metadata: Option<&'r Row>,
    scales: Option<[&'r Row; 6]>,
}

impl<'r> More<'r> {
    /// # Safety
    /// There is a row at each source.
    #[inline(always)]
    unsafe fn of(p: Product, src: &[*const Row]) -> More<'r> {
        let [n_a, n_b, n_c, _] = p.registers();
        let first = n_a + n_b + n_c;
        let after = first + usize::from(p.sparse.is_some());
        // SAFETY: by the promise of the caller.
        unsafe {
            More {
                metadata: if p.sparse.is_some() { Some(&*src[first]) } else { None },
                scales: if p.scale.is_some() {
                    let mut rows = [&*src[after]; 6];
                    for i in 1..6 {
                        rows[i] = &*src[after + i];
                    }
                    Some(rows)
                } else {
                    None
                },
            }
        }
    }
}

/// The sums of a product of floats; `sums` has what they start from.
///
/// # Safety
/// There is a row at each source; the host has the instructions of `W`.
#[inline(always)]
pub(super) unsafe fn floats<W: Vectors>(p: Product, src: &[*const Row], e: &mut Elements, sums: &mut [Row; 4]) {
    let ([n_a, n_b, ..], per) = (p.registers(), p.a.per_register());
    // SAFETY: by the promise of the caller.
    let more = unsafe {
        for i in 0..n_a {
            for part in 0..per {
                lay_out::<W>(p.a, part, src[i], &mut e.a[i * per + part]);
            }
        }
        for i in 0..n_b {
            for part in 0..per {
                lay_out::<W>(p.b, part, src[n_a + i], &mut e.b[i * per + part]);
            }
        }
        More::of(p, src)
    };
    let sizes = [usize::from(p.k), p.stored_depth(), per];
    match (p.scale, more.scales) {
        (Some(by), Some(scales)) => multiply_scaled(p, by, e, more.metadata, scales, sizes, sums),
        _ => multiply::<Fused>(p, e, more.metadata, sizes, sums),
    }
}

/// Those of a sparse product of integers, or of single bits; `sums` is zero.
///
/// # Safety
/// There is a row at each source.
#[inline(always)]
pub(super) unsafe fn integers(p: Product, src: &[*const Row], e: &mut Elements, sums: &mut [Row; 4]) {
    let ([n_a, n_b, ..], is_bits) = (p.registers(), p.a == Element::B1);
    // Single bits are multiplied 32 at once.
    let per = if is_bits { 1 } else { p.a.per_register() };
    // SAFETY: by the promise of the caller.
    let more = unsafe {
        for i in 0..n_a {
            for part in 0..per {
                whole_numbers(p.a, part, &*src[i], &mut e.a[i * per + part]);
            }
        }
        for i in 0..n_b {
            for part in 0..per {
                whole_numbers(p.b, part, &*src[n_a + i], &mut e.b[i * per + part]);
            }
        }
        More::of(p, src)
    };
    let at_once = if is_bits { 32 } else { 1 };
    let sizes = [usize::from(p.k) / at_once, p.stored_depth() / at_once, per];
    match p.step {
        Step::XorPopc => multiply::<Xor>(p, e, more.metadata, sizes, sums),
        Step::AndPopc => multiply::<And>(p, e, more.metadata, sizes, sums),
        Step::Add | Step::AddSaturating | Step::AddRounded(_) => {
            multiply::<Whole>(p, e, more.metadata, sizes, sums);
        }
    }
}

/// Elements of integers, one in a word: element `part` of each lane. Single bits stay together.
#[inline(always)]
fn whole_numbers(e: Element, part: usize, from: &Row, to: &mut Row) {
    let unused = if e == Element::B1 { 0 } else { 32 - e.bits() };
    let left = unused - part as u32 * e.bits();
    let is_signed = matches!(e, Element::S8 | Element::S4);
    for lane in 0..32 {
        let top = from[lane] << left;
        to[lane] = if is_signed { (top.cast_signed() >> unused).cast_unsigned() } else { top >> unused };
    }
}
