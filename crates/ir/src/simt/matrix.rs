//! Matrix ops: what the lanes of a warp compute together from the registers of all.
//!
//! Takes: nothing; these are data. Gives: the op, the types of its sources and results, its text, and which element of which matrix lies where
//! in the registers of which lane. What a product is stands in `num::matrix`.

use serde::{Deserialize, Serialize};

use crate::types::{Rounding, Ty};

/// An op on matrices that lie in the registers of a warp. The last source is the membermask.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MatrixOp {
    /// registers of `a`, of `b`, of `c`, [metadata (B32)], [data of scales (B32), byte and lane that are read (B16) of `a`, then of `b`], membermask
    /// (B32) -> registers of `d = a * b + c`
    Product(Product),
    /// registers of `a`, of `b` as [`Blocks`] says, of `c` block after block, word that is zero in lanes whose `c` counts as zero (B32), [metadata (B32)],
    /// membermask (B32) -> registers of `d = a * b + c`, block after block
    Blocks(Blocks),
    /// registers of the different `a`, of the different `b`, of `c` product after product, membermask (B32) -> registers of `d = a * b + c`, product
    /// after product
    Run(Run),
    /// two registers of `a`, two of `b`, registers of `c`, membermask (B32) -> registers of `d = a * b + c` of four products of 8 by 4 by 8 elements
    /// of `.f16`
    Quads(Quads),
    /// address of a row, membermask (B32) -> addresses of the lane's elements: eight lanes name the rows of a matrix, which each lane holds as
    /// [`Transpose`](MatrixOp::Transpose) says
    Addresses(Addresses),
    /// register, membermask (B32) -> register: an 8 by 8 matrix of 16-bit elements with rows and columns changed. Lane `l` holds the elements
    /// `2 * (l % 4)` and the next of row `l / 4`.
    Transpose,
}

/// Where the elements of small matrices lie in memory.
///
/// # PTX ISA
/// Warp-level matrix load instruction: ldmatrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Addresses {
    /// Type of an address: `B32` or `B64`.
    pub ty: Ty,
    /// Matrices: 1, 2 or 4. The rows of a matrix come from neighbouring lanes, those of the next matrix from the lanes after these.
    pub count: u8,
    /// Which rows a lane asks for.
    pub lines: Lines,
}

/// Which rows of a small matrix lane `l` asks for, with `g = l / 4` and `t = l % 4`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Lines {
    /// Of eight rows the word `t` of row `g`.
    One,
    /// Of eight rows the 16-bit element `g` of the rows `2 * t` and the next: rows and columns are changed.
    Two,
    /// Of sixteen rows the starts of the rows `4 * t` and the next three.
    Four,
}

impl Lines {
    /// Addresses for a lane of each matrix.
    #[inline]
    pub const fn per_matrix(self) -> usize {
        match self {
            Lines::One => 1,
            Lines::Two => 2,
            Lines::Four => 4,
        }
    }

    /// For address `i` of a lane: the lane that has the address of the row, and the distance from there in bytes.
    #[inline]
    pub const fn source(self, i: usize, lane: usize) -> (usize, u64) {
        let (g, t) = (lane / 4, lane % 4);
        match self {
            Lines::One => (8 * i + g, 4 * t as u64),
            Lines::Two => (8 * (i / 2) + 2 * t + i % 2, 2 * g as u64),
            Lines::Four => (16 * (i / 4) + 4 * t + i % 4, 0),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Lines::One => "",
            Lines::Two => ".trans",
            Lines::Four => ".rows",
        }
    }
}

/// What the elements of `a` or `b` are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Element {
    /// `.f16`
    F16,
    /// `.bf16`
    Bf16,
    /// `.tf32`: the lower 13 bits do not count.
    Tf32,
    /// `.e4m3`
    E4m3,
    /// `.e5m2`
    E5m2,
    /// `.e3m2`: the lower six bits of eight.
    E3m2,
    /// `.e2m3`: the lower six bits of eight.
    E2m3,
    /// `.e2m1`: the middle four bits of eight.
    E2m1,
    /// `.e2m1` without bits around it.
    E2m1Packed,
    /// `.f64`
    F64,
    /// `.u8`
    U8,
    /// `.s8`
    S8,
    /// `.u4`
    U4,
    /// `.s4`
    S4,
    /// `.b1`
    B1,
}

impl Element {
    /// Its size in bits.
    #[inline]
    pub const fn bits(self) -> u32 {
        match self {
            Element::B1 => 1,
            Element::U4 | Element::S4 | Element::E2m1Packed => 4,
            Element::E4m3
            | Element::E5m2
            | Element::E3m2
            | Element::E2m3
            | Element::E2m1
            | Element::U8
            | Element::S8 => 8,
            Element::F16 | Element::Bf16 => 16,
            Element::Tf32 => 32,
            Element::F64 => 64,
        }
    }

    /// Whether its products are sums of integers.
    pub const fn is_integer(self) -> bool {
        matches!(self, Element::U8 | Element::S8 | Element::U4 | Element::S4 | Element::B1)
    }

    /// The register type that holds it, or several.
    #[inline]
    pub const fn register(self) -> Ty {
        match self {
            Element::F64 => Ty::B64,
            _ => Ty::B32,
        }
    }

    /// How many lie in a register.
    #[inline]
    pub const fn per_register(self) -> usize {
        // All are powers of two, and a routine asks for each product.
        (self.register().bits() >> self.bits().trailing_zeros()) as usize
    }

    /// Elements of a chunk of a sparse matrix, of which half are there, and how many of these follow each other.
    #[inline]
    pub const fn chunk(self) -> (usize, usize) {
        match self.bits() {
            32.. => (2, 1),
            8.. => (4, 1),
            _ => (8, 2),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Element::F16 => "f16",
            Element::Bf16 => "bf16",
            Element::Tf32 => "tf32",
            Element::E4m3 => "e4m3",
            Element::E5m2 => "e5m2",
            Element::E3m2 => "e3m2",
            Element::E2m3 => "e2m3",
            Element::E2m1 => "e2m1",
            Element::E2m1Packed => "e2m1x2",
            Element::F64 => "f64",
            Element::U8 => "u8",
            Element::S8 => "s8",
            Element::U4 => "u4",
            Element::S4 => "s4",
            Element::B1 => "b1",
        }
    }
}

/// What the elements of `c` or `d` are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Accumulator {
    /// `.f16`: two in a register.
    F16,
    /// `.f32`
    F32,
    /// `.f64`
    F64,
    /// `.s32`
    S32,
}

impl Accumulator {
    /// The register type that holds it.
    #[inline]
    pub const fn register(self) -> Ty {
        match self {
            Accumulator::F64 => Ty::B64,
            Accumulator::F16 | Accumulator::F32 | Accumulator::S32 => Ty::B32,
        }
    }

    /// How many lie in a register.
    #[inline]
    pub const fn per_register(self) -> usize {
        match self {
            Accumulator::F16 => 2,
            Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => 1,
        }
    }

    /// All ones at its size.
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// Its size in bits.
    pub const fn bits(self) -> u32 {
        match self {
            Accumulator::F16 => 16,
            Accumulator::F32 | Accumulator::S32 => 32,
            Accumulator::F64 => 64,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Accumulator::F16 => "f16",
            Accumulator::F32 => "f32",
            Accumulator::F64 => "f64",
            Accumulator::S32 => "s32",
        }
    }
}

/// What becomes of two elements and a sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Step {
    /// Their product is added; integers wrap.
    Add,
    /// The same at `.f64`, with another rounding than to nearest.
    AddRounded(Rounding),
    /// The same, and the sum with `c` is kept within `.s32`.
    AddSaturating,
    /// The ones of their exclusive or are added.
    XorPopc,
    /// The ones of their and are added.
    AndPopc,
}

/// `d = a * b + c` of matrices of `m` by `k`, `k` by 8 and `m` by 8 elements.
///
/// With `g = lane / 4` and `t = lane % 4`, a lane holds in register `q * (m / 8) + h` of `a` the neighbouring elements of row `g + 8 * h` from
/// depth `(4 * q + t) * per_register` on, in register `q` of `b` the same depths of column `g`, and of the accumulators columns `2 * t` and
/// `2 * t + 1` of row `g`, then those of row `g + 8`. [`place_of_a`](Product::place_of_a) and its like say this as functions.
///
/// # PTX ISA
/// Matrix multiply-accumulate operation using mma instruction: Matrix Fragments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Product {
    /// Rows of `a`, `c` and `d`: 8 or 16.
    pub m: u8,
    /// Columns of `a` and rows of `b`.
    pub k: u16,
    /// Elements of `a`.
    pub a: Element,
    /// Elements of `b`.
    pub b: Element,
    /// Elements of `c`.
    pub c: Accumulator,
    /// Elements of `d`.
    pub d: Accumulator,
    /// How products are added.
    pub step: Step,
    /// Only half of the elements of `a` are there.
    pub sparse: Option<Sparse>,
    /// Elements are multiplied by numbers that they share in blocks.
    pub scale: Option<Scale>,
}

/// How a sparse `a` is stored: its elements that are there, one after the other, and where they belong in its rows.
///
/// # PTX ISA
/// Sparse matrix storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sparse {
    /// Which of the lanes that could have the metadata of a group of four has it.
    pub selector: u8,
}

/// Numbers that blocks of elements are multiplied by.
///
/// # PTX ISA
/// Block Scaling for mma.sync.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Scale {
    /// What they are.
    pub format: ScaleFormat,
    /// How many blocks a row of `a` and a column of `b` have: 1, 2 or 4.
    pub blocks: u8,
}

/// What the numbers of blocks are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ScaleFormat {
    /// `.ue8m0`
    Ue8m0,
    /// `.ue4m3`
    Ue4m3,
}

impl ScaleFormat {
    const fn name(self) -> &'static str {
        match self {
            ScaleFormat::Ue8m0 => "ue8m0",
            ScaleFormat::Ue4m3 => "ue4m3",
        }
    }
}

/// Where an element lies in the registers of a warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The lane that has it.
    pub lane: usize,
    /// The register of the fragment.
    pub register: usize,
    /// Its lowest bit.
    pub bit: u32,
}

impl Product {
    /// Elements of a row of `a` that are there.
    #[inline]
    pub const fn stored_depth(self) -> usize {
        self.k as usize >> (self.sparse.is_some() as u32)
    }

    /// Where an element of `a` lies that is there: `depth` counts these.
    #[inline]
    pub const fn place_of_a(self, row: usize, depth: usize) -> Place {
        let per = self.a.per_register();
        let chunk = depth / per;
        Place {
            lane: 4 * (row % 8) + chunk % 4,
            register: chunk / 4 * self.n_rows() + row / 8,
            bit: (depth % per) as u32 * self.a.bits(),
        }
    }

    /// Where an element of `b` lies.
    #[inline]
    pub const fn place_of_b(self, depth: usize, column: usize) -> Place {
        let per = self.b.per_register();
        let chunk = depth / per;
        Place { lane: 4 * column + chunk % 4, register: chunk / 4, bit: (depth % per) as u32 * self.b.bits() }
    }

    /// Where an element of an accumulator lies.
    #[inline]
    pub const fn place_of_sum(of: Accumulator, row: usize, column: usize) -> Place {
        let i = 2 * (row / 8) + column % 2;
        let per = of.per_register();
        Place { lane: 4 * (row % 8) + column / 2, register: i / per, bit: (i % per) as u32 * 16 }
    }

    /// The chunks of `a`.
    #[inline]
    pub const fn chunk(self) -> (usize, usize) {
        self.a.chunk()
    }

    /// Where the four bits of metadata of a chunk of a row lie. A register has four chunks of the rows `g` and `g + 8`, or eight chunks of one of
    /// them where elements have 8 bits or less.
    ///
    /// Choice: the manual has this in figures, which its text does not tell; this is the order of public libraries that make metadata.
    pub const fn place_of_metadata(self, row: usize, chunk: usize) -> Place {
        let selector = match self.sparse {
            Some(s) => s.selector as usize,
            None => 0,
        };
        let n_chunks = self.k as usize / self.chunk().0;
        let (h, within) = (row / 8, if self.a.bits() >= 16 { 4 } else { 8 });
        // Lanes that a row of chunks takes, and those that both rows take.
        let (n_lanes, lane, bit) = if within == 4 {
            (n_chunks / 4, chunk / 4, 16 * h + 4 * (chunk % 4))
        } else {
            (2 * n_chunks / 8, 2 * (chunk / 8) + h, 4 * (chunk % 8))
        };
        Place { lane: 4 * (row % 8) + (selector * n_lanes + lane) % 4, register: 0, bit: bit as u32 }
    }

    /// Rows of eight: 1 or 2.
    #[inline]
    pub const fn n_rows(self) -> usize {
        self.m as usize / 8
    }

    /// Registers of `b` in a lane. `a` has as many for each row of eight.
    #[inline]
    pub const fn depth_registers(self) -> usize {
        self.k as usize >> (2 + self.b.per_register().trailing_zeros())
    }

    /// Registers of `a`, of `b`, of `c` and of `d` in a lane.
    #[inline]
    pub const fn registers(self) -> [usize; 4] {
        let (rows, depth) = (self.n_rows(), self.depth_registers());
        let (c, d) = (self.c.per_register().trailing_zeros(), self.d.per_register().trailing_zeros());
        [(rows * depth) >> (self.sparse.is_some() as u32), depth, (2 * rows) >> c, (2 * rows) >> d]
    }
}

/// Products of one `a` with several blocks of eight columns of `b`, and then maybe of others with as many blocks, added to the sums of the ones before.
///
/// # PTX ISA
/// Register Fragments and Shared Memory Matrix Layouts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Blocks {
    /// The product of a block. It has no scales; those of one that is done several times are dense and have sums of `.f32`.
    pub product: Product,
    /// How many blocks.
    pub count: u8,
    /// How many times, each with an `a` and a `b` of its own.
    pub times: u8,
    /// How registers hold `b`.
    pub b: HeldB,
}

/// How registers hold blocks of `b`.
///
/// *Units* of 16 bytes of shared memory are words of a lane, in four registers that follow each other. Eight lanes have the units of one depth
/// register of a block: lanes `8 * s` to `8 * s + 7` of the registers `4 * i` to `4 * i + 3` those of number `4 * i + s`, where all depth registers of
/// a block follow each other, and then come those of the next block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HeldB {
    /// As products have it.
    Fragments,
    /// By units: a lane has the depths of a column.
    Columns,
    /// By units, of elements of 16 bits: a lane has the columns of a depth.
    Depths,
}

impl Blocks {
    /// Most blocks.
    pub const MOST: usize = 32;
    /// Most times.
    pub const MOST_TIMES: usize = 4;

    /// Registers of all `a`, of all `b`, of `c` and of `d` in a lane.
    #[inline]
    pub const fn registers(self) -> [usize; 4] {
        let ([a, b, c, d], count, times) = (self.product.registers(), self.count as usize, self.times as usize);
        let b = match self.b {
            HeldB::Fragments => count * b,
            HeldB::Columns | HeldB::Depths => (count * b).div_ceil(4) * 4,
        };
        [times * a, times * b, count * c, count * d]
    }

    /// The same, done once.
    #[inline]
    pub const fn once(self) -> Blocks {
        Blocks { times: 1, ..self }
    }

    /// The word that a lane has of register `q` of the fragment of a block. `word` has those of a register and a lane of `b`.
    #[inline]
    pub fn fragment(self, block: usize, q: usize, lane: usize, word: impl Fn(usize, usize) -> u32) -> u32 {
        let n = block * self.product.depth_registers() + q;
        let (register, first) = (n / 4 * 4, n % 4 * 8);
        let (g, t) = (lane / 4, lane % 4);
        match self.b {
            HeldB::Fragments => word(n, lane),
            HeldB::Columns => word(register + t, first + g),
            HeldB::Depths => {
                let half = |depth: usize| word(register + g / 2, first + depth) >> (16 * (g % 2)) & 0xffff;
                half(2 * t) | half(2 * t + 1) << 16
            }
        }
    }
}

/// Products of one kind, none of which uses results of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Run {
    /// Each of them: a dense product of registers of 32 bits, without scales.
    pub product: Product,
    /// How many.
    pub count: u8,
    /// How many different `a` and `b` they have.
    pub n_operands: [u8; 2],
    /// Which `a` and which `b` each of them multiplies, four bits for each product.
    pub operands: [u64; 2],
}

impl Run {
    /// Most products.
    pub const MOST: usize = 16;

    /// Which `a` and which `b` a product multiplies.
    #[inline]
    pub const fn operands_of(self, i: usize) -> [usize; 2] {
        [(self.operands[0] >> (4 * i) & 15) as usize, (self.operands[1] >> (4 * i) & 15) as usize]
    }

    /// Registers of all `a`, `b`, `c` and `d` in a lane.
    #[inline]
    pub const fn registers(self) -> [usize; 4] {
        let ([a, b, c, d], count) = (self.product.registers(), self.count as usize);
        [a * self.n_operands[0] as usize, b * self.n_operands[1] as usize, c * count, d * count]
    }
}

/// Four products `d = a * b + c` of matrices of 8 by 4, 4 by 8 and 8 by 8 elements: product `q` by the lanes from `4 * q` and from `4 * q + 16` on.
///
/// # PTX ISA
/// Matrix Fragments for mma.m8n8k4 with .f16 floating point type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Quads {
    /// A lane holds a row of `a`, else half of a column.
    pub a_by_rows: bool,
    /// A lane holds half of a row of `b`, else a column.
    pub b_by_rows: bool,
    /// Elements of `c`: `.f16` or `.f32`.
    pub c: Accumulator,
    /// Elements of `d`: `.f16` or `.f32`.
    pub d: Accumulator,
}

impl Quads {
    /// Registers of an accumulator in a lane.
    pub const fn registers(of: Accumulator) -> usize {
        8 / of.per_register()
    }

    /// Element `i` of lane `t` of the lower or the upper four of product `q`.
    const fn place(q: usize, t: usize, upper: bool, i: usize, bits: u32) -> Place {
        let per = 32 / bits as usize;
        Place { lane: t + 4 * q + 16 * upper as usize, register: i / per, bit: (i % per) as u32 * bits }
    }

    /// Where an element of `a` of product `q` lies.
    pub const fn place_of_a(self, q: usize, row: usize, depth: usize) -> Place {
        let (t, i) = if self.a_by_rows { (row % 4, depth) } else { (depth, row % 4) };
        Quads::place(q, t, row >= 4, i, 16)
    }

    /// Where an element of `b` of product `q` lies.
    pub const fn place_of_b(self, q: usize, depth: usize, column: usize) -> Place {
        let (t, i) = if self.b_by_rows { (depth, column % 4) } else { (column % 4, depth) };
        Quads::place(q, t, column >= 4, i, 16)
    }

    /// Where an element of an accumulator of product `q` lies.
    pub const fn place_of_sum(of: Accumulator, q: usize, row: usize, column: usize) -> Place {
        match of {
            Accumulator::F16 => Quads::place(q, row % 4, row >= 4, column, 16),
            Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => {
                let (t, i) = ((row & 1) | (column & 2), (column & 4) | (row & 2) | (column & 1));
                Quads::place(q, t, row >= 4, i, 32)
            }
        }
    }
}

impl MatrixOp {
    /// Types of the sources, the membermask among them.
    pub fn sources(self) -> Vec<Ty> {
        let mut types = match self {
            MatrixOp::Product(p) => {
                let [a, b, c, _] = p.registers();
                let of = |ty: Ty, n: usize| std::iter::repeat_n(ty, n);
                let scales = [Ty::B32, Ty::B16, Ty::B16].repeat(if p.scale.is_some() { 2 } else { 0 });
                let more = of(Ty::B32, usize::from(p.sparse.is_some())).chain(scales);
                of(p.a.register(), a).chain(of(p.b.register(), b)).chain(of(p.c.register(), c)).chain(more).collect()
            }
            MatrixOp::Blocks(blocks) => {
                let [a, b, c, _] = blocks.registers();
                vec![Ty::B32; a + b + c + usize::from(blocks.times) + usize::from(blocks.product.sparse.is_some())]
            }
            MatrixOp::Run(run) => {
                let [a, b, c, _] = run.registers();
                vec![Ty::B32; a + b + c]
            }
            MatrixOp::Quads(q) => vec![Ty::B32; 4 + Quads::registers(q.c)],
            MatrixOp::Addresses(a) => vec![a.ty],
            MatrixOp::Transpose => vec![Ty::B32],
        };
        types.push(Ty::B32);
        types
    }

    /// Types of the results.
    pub fn results(self) -> Vec<Ty> {
        match self {
            MatrixOp::Product(p) => vec![p.d.register(); p.registers()[3]],
            MatrixOp::Blocks(blocks) => vec![Ty::B32; blocks.registers()[3]],
            MatrixOp::Run(run) => vec![Ty::B32; run.registers()[3]],
            MatrixOp::Quads(q) => vec![Ty::B32; Quads::registers(q.d)],
            MatrixOp::Addresses(a) => vec![a.ty; usize::from(a.count) * a.lines.per_matrix()],
            MatrixOp::Transpose => vec![Ty::B32],
        }
    }

    /// Its name with modifiers in the text of the IR.
    pub fn name(self) -> String {
        let p = match self {
            MatrixOp::Product(p) => p,
            MatrixOp::Blocks(blocks) => {
                let held = match blocks.b {
                    HeldB::Fragments => "",
                    HeldB::Columns => ".columns",
                    HeldB::Depths => ".depths",
                };
                let times = if blocks.times > 1 { format!(".times{}", blocks.times) } else { String::new() };
                return format!("{}.x{}{held}{times}", MatrixOp::Product(blocks.product).name(), blocks.count);
            }
            MatrixOp::Run(run) => {
                let pairs = (0..usize::from(run.count)).map(|i| run.operands_of(i));
                let pairs: Vec<String> = pairs.map(|[a, b]| format!("a{a}b{b}")).collect();
                return format!("{}.run.{}", MatrixOp::Product(run.product).name(), pairs.join("."));
            }
            MatrixOp::Addresses(a) => {
                return format!("matrix.addresses.x{}{}.{}", a.count, a.lines.name(), a.ty);
            }
            MatrixOp::Quads(q) => {
                let layout = |is_row| if is_row { "row" } else { "col" };
                let (a, b) = (layout(q.a_by_rows), layout(q.b_by_rows));
                return format!("matrix.quads.{a}.{b}.{}.{}", q.d.name(), q.c.name());
            }
            MatrixOp::Transpose => return "matrix.transpose".into(),
        };
        let step = match p.step {
            Step::Add => String::new(),
            Step::AddRounded(round) => super::modes::rounding(round).into(),
            Step::AddSaturating => ".sat".into(),
            Step::XorPopc => ".xor_popc".into(),
            Step::AndPopc => ".and_popc".into(),
        };
        let (m, k, d, a, b, c) = (p.m, p.k, p.d.name(), p.a.name(), p.b.name(), p.c.name());
        let sparse = p.sparse.map_or(String::new(), |s| format!(".sparse{}", s.selector));
        let scale = p.scale.map_or(String::new(), |s| format!(".{}x{}", s.format.name(), s.blocks));
        format!("matrix.product.m{m}n8k{k}.{d}.{a}.{b}.{c}{step}{sparse}{scale}")
    }
}
