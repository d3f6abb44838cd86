//! Tensor memory: what `tcgen05` does with it.
//!
//! Takes: nothing; these are data. Gives: the op, the types of its sources and results, its text, and which cell lies where in the registers of
//! which lane. What an op does stands in the interpreter.
//!
//! Tensor memory has [`LANES`] lanes of [`COLUMNS`] cells of 32 bits. An address has the column in its lower and the lane in its upper half.
//! A *pair* is two CTAs of a cluster whose ranks differ in the lowest bit; what is done for one is done in the tensor memory of both.
//!
//! # PTX ISA
//! TensorCore 5th Generation Family Instructions.

use serde::{Deserialize, Serialize};

use crate::types::{StateSpace, Ty};

/// Lanes of the tensor memory of a CTA.
pub const LANES: u32 = 128;
/// Columns of the tensor memory of a CTA.
pub const COLUMNS: u32 = 512;
/// Most registers of a lane that one op loads or stores: longer ones are several.
pub const MOST_REGISTERS: u32 = 8;

/// An op on tensor memory. The comment names sources and results.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TensorOp {
    /// columns (B32) -> whether they were allocated (P), address (B32): once for the lanes of a warp that execute it together
    Alloc {
        /// For a pair: done when both have asked.
        pair: bool,
    },
    /// address, columns (B32) -> nothing: once for the lanes of a warp that execute it together
    Dealloc {
        /// For a pair.
        pair: bool,
    },
    /// 0 (B32) -> nothing: the CTA allocates no more
    Relinquish,
    /// address of the first half, of the second half (B32) -> registers (B32)
    Load(Cells),
    /// address of the first half, of the second half, registers (B32) -> nothing
    Store(Cells),
    /// address (B32), descriptor of a matrix in shared memory (B64) -> nothing
    Copy(TensorCopy),
    /// address (B32) -> nothing: moves 32 bytes of each of 32 lanes to the lane below it
    Shift {
        /// For a pair.
        pair: bool,
    },
    /// address of a barrier (B64), mask of CTAs (B32) -> nothing: arrives when all that was begun has ended
    Commit {
        /// `SharedCluster` or `Generic`.
        space: StateSpace,
        /// At the same place in each CTA of the mask.
        multicast: bool,
    },
    /// address of `d` (B32), `a` (B32 in tensor memory, else B64), `b` (B64), descriptor of the instruction (B32), whether `d` is added (B32),
    /// power of two that it is divided by (B32), mask of columns of `b` that are zero (B64), [metadata (B32)], [scales of `a`, of `b` (B32)], [mask of
    /// lanes that are not written (four B32, eight of a pair)] -> nothing
    Product(TensorProduct),
}

/// Registers that are loaded or stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cells {
    /// Which cells they are.
    pub shape: CellShape,
    /// Two cells, of which the lower halves count, are one register.
    pub halves: bool,
    /// The first register of the instruction that this op has.
    pub first: u8,
    /// How many it has: at most [`MOST_REGISTERS`].
    pub count: u8,
}

/// Shape of a load or store of tensor memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CellShape {
    /// `.32x32b`
    X32b32,
    /// `.16x64b`
    X16b64,
    /// `.16x128b`
    X16b128,
    /// `.16x256b`
    X16b256,
    /// `.16x32bx2`
    X16b32x2,
}

/// What a register of a lane holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CellPlace {
    /// Lane of tensor memory behind that of the address.
    pub row: u32,
    /// The word behind the address: a column, or two columns where they are halves.
    pub word: u32,
    /// It counts from the second address.
    pub second: bool,
}

impl CellShape {
    /// Lanes of tensor memory that it has.
    pub const fn rows(self) -> u32 {
        match self {
            CellShape::X32b32 => 32,
            CellShape::X16b64 | CellShape::X16b128 | CellShape::X16b256 | CellShape::X16b32x2 => 16,
        }
    }

    /// The cell of register `r` of a lane of the warp.
    ///
    /// Choice: the manual has this in figures, which its text does not tell; this is the order of public libraries that load accumulators.
    pub const fn place(self, r: u32, lane: u32) -> CellPlace {
        let (g, t) = (lane / 4, lane % 4);
        let (row, word, second) = match self {
            CellShape::X32b32 => (lane, r, false),
            CellShape::X16b64 => (g + 8 * (lane % 2), 2 * r + t / 2, false),
            CellShape::X16b128 => (g + 8 * (r % 2), 4 * (r / 2) + t, false),
            CellShape::X16b256 => (g + 8 * (r / 2 % 2), 8 * (r / 4) + 2 * t + r % 2, false),
            CellShape::X16b32x2 => (lane % 16, r, lane >= 16),
        };
        CellPlace { row, word, second }
    }

    const fn name(self) -> &'static str {
        match self {
            CellShape::X32b32 => "32x32b",
            CellShape::X16b64 => "16x64b",
            CellShape::X16b128 => "16x128b",
            CellShape::X16b256 => "16x256b",
            CellShape::X16b32x2 => "16x32bx2",
        }
    }
}

/// A copy from shared memory to tensor memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TensorCopy {
    /// For a pair: each CTA copies from its own shared memory.
    pub pair: bool,
    /// Rows of the matrix.
    pub rows: CopyRows,
    /// Bytes of a row: 16 or 32.
    pub bytes: u8,
    /// What each sixteen bytes hold that become sixteen elements of 8 bits.
    pub packed: Option<Packed>,
}

/// Where the rows of a copy go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CopyRows {
    /// 128 rows, one for each lane.
    All,
    /// Four rows, one for each warp.
    Four,
    /// 64 rows: 0 to 31 for the warps 0 and 2, the others for 1 and 3.
    Pairs02,
    /// 64 rows: 0 to 31 for the warps 0 and 1, the others for 2 and 3.
    Pairs01,
    /// 32 rows for each warp.
    Every,
}

impl CopyRows {
    /// The row and the lane behind that of the address, for each row that is written.
    pub fn places(self) -> impl Iterator<Item = (u32, u32)> {
        (0..LANES).filter_map(move |lane| {
            let (warp, within) = (lane / 32, lane % 32);
            match self {
                CopyRows::All => Some((lane, lane)),
                CopyRows::Four => (within == 0).then_some((warp, lane)),
                CopyRows::Pairs02 => Some((32 * (warp % 2) + within, lane)),
                CopyRows::Pairs01 => Some((32 * (warp / 2) + within, lane)),
                CopyRows::Every => Some((within, lane)),
            }
        })
    }

    const fn name(self) -> &'static str {
        match self {
            CopyRows::All => "128",
            CopyRows::Four => "4",
            CopyRows::Pairs02 => "64.02_13",
            CopyRows::Pairs01 => "64.01_23",
            CopyRows::Every => "32.warpx4",
        }
    }
}

/// Elements of less than 8 bits, sixteen in sixteen bytes with padding behind them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Packed {
    /// `.b6x16_p32`
    Six,
    /// `.b4x16_p64`
    Four,
}

/// What the types of a product may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// `.kind::f16`
    F16,
    /// `.kind::tf32`
    Tf32,
    /// `.kind::f8f6f4`
    F8f6f4,
    /// `.kind::i8`
    I8,
    /// `.kind::mxf8f6f4`
    Mxf8f6f4,
    /// `.kind::mxf4`
    Mxf4,
    /// `.kind::mxf4nvf4`
    Mxf4nvf4,
}

impl Kind {
    /// Its qualifier.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::F16 => ".kind::f16",
            Kind::Tf32 => ".kind::tf32",
            Kind::F8f6f4 => ".kind::f8f6f4",
            Kind::I8 => ".kind::i8",
            Kind::Mxf8f6f4 => ".kind::mxf8f6f4",
            Kind::Mxf4 => ".kind::mxf4",
            Kind::Mxf4nvf4 => ".kind::mxf4nvf4",
        }
    }
}

/// A product of matrices into tensor memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TensorProduct {
    /// What the types may be.
    pub kind: Kind,
    /// For a pair: each CTA has half of the rows of `a` and `d`, and half of the columns of `b`.
    pub pair: bool,
    /// `.ws`
    pub ws: bool,
    /// `a` is in tensor memory.
    pub a_in_tensor: bool,
    /// Rows of `a` in tensor memory are those one lane farther on.
    pub a_shift: bool,
    /// Only half of the elements of `a` are there.
    pub sparse: bool,
    /// Numbers that blocks of elements are multiplied by: how many a row of `a` has.
    pub scales: Option<u8>,
    /// Lanes that are not written are named.
    pub masked: bool,
}

/// The sources of a product, by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProductSources<'s> {
    /// Address of `d`.
    pub d: u64,
    /// Address or descriptor of `a`.
    pub a: u64,
    /// Descriptor of `b`.
    pub b: u64,
    /// Descriptor of the instruction.
    pub instruction: u64,
    /// Whether `d` is added.
    pub adds: u64,
    /// Power of two that `d` is divided by.
    pub shift: u64,
    /// Descriptor of the columns of `b` that are zero.
    pub zeros: u64,
    /// Address of the metadata.
    pub metadata: u64,
    /// Addresses of the scales of `a` and `b`.
    pub scales: [u64; 2],
    /// Lanes that are not written.
    pub lanes: &'s [u64],
}

impl TensorProduct {
    /// The sources as [`TensorOp::Product`] has them.
    ///
    /// # Panics
    /// There are fewer than [`TensorOp::sources`] has types.
    pub fn sources(self, src: &[u64]) -> ProductSources<'_> {
        let (first, mut rest) = src.split_at(7);
        let mut next = |is_there: bool| {
            if !is_there {
                return 0;
            }
            let (value, more) = (rest[0], &rest[1..]);
            rest = more;
            value
        };
        let metadata = next(self.sparse);
        let scales = [0; 2].map(|_: u64| next(self.scales.is_some()));
        let [d, a, b, instruction, adds, shift, zeros] = [0, 1, 2, 3, 4, 5, 6].map(|i: usize| first[i]);
        ProductSources { d, a, b, instruction, adds, shift, zeros, metadata, scales, lanes: rest }
    }
}

impl TensorOp {
    /// Whether it is done once for the lanes of a warp that execute it together.
    pub const fn is_of_warp(self) -> bool {
        matches!(self, TensorOp::Alloc { .. } | TensorOp::Dealloc { .. } | TensorOp::Relinquish)
    }

    /// Whether its results may come later than the thread goes on. A load's stand in registers: that is for the function to say.
    pub const fn is_asynchronous(self) -> bool {
        match self {
            TensorOp::Store(_)
            | TensorOp::Copy(_)
            | TensorOp::Shift { .. }
            | TensorOp::Commit { .. }
            | TensorOp::Product(_) => true,
            TensorOp::Alloc { .. } | TensorOp::Dealloc { .. } | TensorOp::Relinquish | TensorOp::Load(_) => false,
        }
    }

    /// Whether the tensor memory of a pair takes part.
    pub const fn is_of_pair(self) -> bool {
        match self {
            TensorOp::Alloc { pair } | TensorOp::Dealloc { pair } | TensorOp::Shift { pair } => pair,
            TensorOp::Copy(copy) => copy.pair,
            TensorOp::Product(p) => p.pair,
            TensorOp::Relinquish | TensorOp::Load(_) | TensorOp::Store(_) | TensorOp::Commit { .. } => false,
        }
    }

    /// Types of the sources.
    pub fn sources(self) -> Vec<Ty> {
        use Ty::{B32, B64};
        match self {
            TensorOp::Alloc { .. } | TensorOp::Relinquish | TensorOp::Shift { .. } => vec![B32],
            TensorOp::Dealloc { .. } | TensorOp::Load(_) => vec![B32; 2],
            TensorOp::Store(cells) => vec![B32; 2 + usize::from(cells.count)],
            TensorOp::Copy(_) => vec![B32, B64],
            TensorOp::Commit { .. } => vec![B64, B32],
            TensorOp::Product(p) => {
                let mut types = vec![B32, if p.a_in_tensor { B32 } else { B64 }, B64, B32, B32, B32, B64];
                let more = usize::from(p.sparse) + if p.scales.is_some() { 2 } else { 0 };
                let lanes = if p.masked { 4 * (1 + usize::from(p.pair)) } else { 0 };
                types.extend(std::iter::repeat_n(B32, more + lanes));
                types
            }
        }
    }

    /// Types of the results.
    pub fn results(self) -> Vec<Ty> {
        match self {
            TensorOp::Alloc { .. } => vec![Ty::P, Ty::B32],
            TensorOp::Load(cells) => vec![Ty::B32; usize::from(cells.count)],
            TensorOp::Dealloc { .. }
            | TensorOp::Relinquish
            | TensorOp::Store(_)
            | TensorOp::Copy(_)
            | TensorOp::Shift { .. }
            | TensorOp::Commit { .. }
            | TensorOp::Product(_) => vec![],
        }
    }

    /// Its name with modifiers in the text of the IR.
    pub fn name(self) -> String {
        let flag = |is_there: bool, text: &'static str| if is_there { text } else { "" };
        let pair = flag(self.is_of_pair(), ".pair");
        match self {
            TensorOp::Alloc { .. } => format!("tensor.alloc{pair}"),
            TensorOp::Dealloc { .. } => format!("tensor.dealloc{pair}"),
            TensorOp::Relinquish => "tensor.relinquish".into(),
            TensorOp::Load(c) | TensorOp::Store(c) => {
                let what = if matches!(self, TensorOp::Load(_)) { "load" } else { "store" };
                format!("tensor.{what}.{}{}.{}+{}", c.shape.name(), flag(c.halves, ".halves"), c.first, c.count)
            }
            TensorOp::Copy(c) => {
                let packed = match c.packed {
                    None => "",
                    Some(Packed::Six) => ".b6",
                    Some(Packed::Four) => ".b4",
                };
                format!("tensor.copy{pair}.{}x{}{packed}", c.rows.name(), c.bytes)
            }
            TensorOp::Shift { .. } => format!("tensor.shift{pair}"),
            TensorOp::Commit { space, multicast } => {
                format!("tensor.commit.{}{}", space.name(), flag(multicast, ".ctas"))
            }
            TensorOp::Product(p) => {
                let kind = p.kind.name().trim_start_matches(".kind::");
                let scales = p.scales.map_or(String::new(), |n| format!(".scales{n}"));
                let (ws, sparse) = (flag(p.ws, ".ws"), flag(p.sparse, ".sparse"));
                let (a, shift) = (flag(p.a_in_tensor, ".a"), flag(p.a_shift, ".shift"));
                format!("tensor.product{pair}.{kind}{ws}{sparse}{a}{shift}{scales}{}", flag(p.masked, ".lanes"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who wants the words of a warp asks these two lanes.
    #[test]
    fn the_ends_of_a_warp_have_the_ends_of_its_words() {
        use CellShape::*;
        for shape in [X32b32, X16b64, X16b128, X16b256, X16b32x2] {
            for r in 0..16 {
                let ends = shape.place(r, 0).word..=shape.place(r, 31).word;
                assert!((0..32).all(|lane| ends.contains(&shape.place(r, lane).word)), "{shape:?} {r}");
            }
        }
    }

    /// Each cell of a shape is in one register of one lane.
    #[test]
    fn registers_of_a_warp_are_all_cells() {
        use CellShape::*;
        for (shape, per, words) in [(X32b32, 1, 1), (X16b64, 1, 2), (X16b128, 2, 4), (X16b256, 4, 8), (X16b32x2, 1, 1)]
        {
            for num in [1, 2, 8] {
                let mut places: Vec<(bool, u32, u32)> = (0..32)
                    .flat_map(|lane| (0..num * per).map(move |r| shape.place(r, lane)))
                    .map(|p| (p.second, p.row, p.word))
                    .collect();
                places.sort_unstable();
                let halves = if shape == X16b32x2 { 2 } else { 1 };
                let all: Vec<(bool, u32, u32)> = (0..halves)
                    .flat_map(|h| {
                        (0..shape.rows()).flat_map(move |row| (0..words * num).map(move |w| (h == 1, row, w)))
                    })
                    .collect();
                assert_eq!(places, all, "{shape:?} x{num}");
            }
        }
    }
}
