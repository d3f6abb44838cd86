//! Descriptors of instructions: shapes and types of a product.
//!
//! Choice: reserved bits do not count.
//!
//! # PTX ISA
//! Instruction Descriptor; Matrix Shape; Zero-Column Mask Descriptor.

use handloom_ir::simt::tensor::{Kind, TensorProduct};
use handloom_ir::simt::tile::Major;
use handloom_ir::simt::{Accumulator, Element, ScaleFormat};

use super::memory::fault;
use crate::transfer::reach::Fault;

/// What a descriptor says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Instruction {
    pub(super) m: u32,
    pub(super) n: u32,
    /// The depth, of a sparse `a` with what is not there.
    pub(super) k: u32,
    /// Elements of `a` and `b`.
    pub(super) elements: [Element; 2],
    pub(super) d: Accumulator,
    pub(super) negates: [bool; 2],
    pub(super) majors: [Major; 2],
    pub(super) saturates: bool,
    /// Column of the metadata.
    pub(super) selector: u32,
    pub(super) scale: ScaleFormat,
    /// Byte of the first scale of `a` and `b`.
    pub(super) scale_ids: [u32; 2],
}

fn bits(word: u32, first: u32, n: u32) -> u32 {
    word >> first & ((1 << n) - 1)
}

impl Instruction {
    pub(super) fn decode(p: TensorProduct, word: u32) -> Result<Instruction, Fault> {
        let is_scaled = p.scales.is_some();
        let narrow = matches!(p.kind, Kind::Mxf4 | Kind::Mxf4nvf4);
        let flag = |at: u32| bits(word, at, 1) == 1;
        if flag(2) != p.sparse {
            let (says, is) = if p.sparse { ("dense", "sparse") } else { ("sparse", "dense") };
            return Err(fault(format!("the instruction descriptor says {says}, the instruction is {is}")));
        }
        let elements =
            [element(p.kind, bits(word, 7, 3))?, element(p.kind, bits(word, 10, if narrow { 2 } else { 3 }))?];
        let d = if is_scaled { Accumulator::F32 } else { accumulator(p.kind, bits(word, 4, 2), elements)? };
        let (m, n) = if is_scaled {
            (128 * bits(word, 27, 2), 8 * bits(word, 17, 6))
        } else {
            (16 * bits(word, 24, 5), 8 * bits(word, 17, 6))
        };
        if narrow && flag(31) {
            return Err(fault("products of depth 96 are not supported; use depth 64".into()));
        }
        let i = Instruction {
            m,
            n,
            k: 256 / elements[0].bits() * (1 + u32::from(p.sparse)),
            elements,
            d,
            negates: [flag(13), flag(14)],
            majors: [15, 16].map(|at| if flag(at) { Major::Mn } else { Major::K }),
            saturates: p.kind == Kind::I8 && flag(3),
            selector: if is_scaled { 0 } else { bits(word, 0, 2) },
            scale: if flag(23) { ScaleFormat::Ue8m0 } else { ScaleFormat::Ue4m3 },
            scale_ids: [bits(word, 29, 2), bits(word, 4, 2)],
        };
        i.check(p, narrow)?;
        Ok(i)
    }

    fn check(&self, p: TensorProduct, narrow: bool) -> Result<(), Fault> {
        let name = p.kind.name();
        if !self.has_shape(p) {
            return Err(fault(format!(
                "the instruction descriptor has the shape m{}n{}, which `{name}` does not have here",
                self.m, self.n
            )));
        }
        if p.a_shift && self.m < 128 {
            return Err(fault(format!("`.ashift` of {} rows: it takes 128 or 256", self.m)));
        }
        if p.kind == Kind::I8 && self.negates != [false; 2] {
            return Err(fault(format!("`{name}` negates no matrix")));
        }
        if narrow && self.majors != [Major::K; 2] {
            return Err(fault(format!("`{name}` transposes no matrix")));
        }
        if p.a_in_tensor && self.majors[0] == Major::Mn {
            return Err(fault("the instruction descriptor transposes `a`, which lies in tensor memory".into()));
        }
        if self.selector != 0 && !matches!(p.kind, Kind::F16 | Kind::Tf32) {
            return Err(fault(format!("the sparsity selector of `{name}` is {}, it must be 0", self.selector)));
        }
        let Some(n) = p.scales else { return Ok(()) };
        if self.scale == ScaleFormat::Ue4m3 && (p.kind != Kind::Mxf4nvf4 || n != 4) {
            return Err(fault(format!("`{name}` with {n} scales of a row takes scales of `.ue8m0`")));
        }
        let fits = |id: u32| match n {
            1 => true,
            2 => id.is_multiple_of(2),
            _ => id == 0,
        };
        match self.scale_ids.into_iter().find(|id| !fits(*id)) {
            Some(id) => Err(fault(format!("there are {n} scales of a row: they do not begin at byte {id}"))),
            None => Ok(()),
        }
    }

    /// Whether there is such a product.
    fn has_shape(&self, p: TensorProduct) -> bool {
        let (m, n) = (self.m, self.n);
        if p.ws {
            let columns: &[u32] = if p.sparse { &[64, 128] } else { &[64, 128, 256] };
            return matches!(m, 32 | 64 | 128) && columns.contains(&n);
        }
        let is_integer = p.kind == Kind::I8;
        let columns = match (p.pair, is_integer) {
            (false, false) => n.is_multiple_of(8),
            (false, true) => n.is_multiple_of(16) || n == 8 || n == 24,
            (true, false) => n.is_multiple_of(16),
            (true, true) => n.is_multiple_of(32),
        };
        let rows = match (p.pair, p.scales.is_some()) {
            (false, false) => matches!(m, 64 | 128),
            (false, true) => m == 128,
            (true, false) => matches!(m, 128 | 256),
            (true, true) => m == 256 || m == 128 && !p.sparse,
        };
        rows && columns && (8..=256).contains(&n)
    }
}

fn element(kind: Kind, bits: u32) -> Result<Element, Fault> {
    Ok(match (kind, bits) {
        (Kind::F16, 0) => Element::F16,
        (Kind::F16, 1) => Element::Bf16,
        (Kind::Tf32, 2) => Element::Tf32,
        (Kind::F8f6f4 | Kind::Mxf8f6f4, 0) => Element::E4m3,
        (Kind::F8f6f4 | Kind::Mxf8f6f4, 1) => Element::E5m2,
        (Kind::F8f6f4 | Kind::Mxf8f6f4, 3) => Element::E2m3,
        (Kind::F8f6f4 | Kind::Mxf8f6f4, 4) => Element::E3m2,
        (Kind::F8f6f4 | Kind::Mxf8f6f4, 5) => Element::E2m1,
        (Kind::I8, 0) => Element::U8,
        (Kind::I8, 1) => Element::S8,
        (Kind::Mxf4 | Kind::Mxf4nvf4, 1) => Element::E2m1Packed,
        _ => {
            return Err(fault(format!(
                "the instruction descriptor has type {bits}, which `{}` does not have",
                kind.name()
            )));
        }
    })
}

/// Elements of `d`.
///
/// Choice: `.f16` of `.kind::f8f6f4` too, as public libraries have it; the tables of the manual are not clear about it.
fn accumulator(kind: Kind, bits: u32, elements: [Element; 2]) -> Result<Accumulator, Fault> {
    match (kind, bits) {
        (Kind::F16, 0) if elements == [Element::F16; 2] => Ok(Accumulator::F16),
        (Kind::F8f6f4, 0) => Ok(Accumulator::F16),
        (Kind::F16 | Kind::F8f6f4 | Kind::Tf32, 1) => Ok(Accumulator::F32),
        (Kind::I8, 2) => Ok(Accumulator::S32),
        _ => Err(fault(format!(
            "the instruction descriptor has type {bits} for `d`, which `{}` does not have here",
            kind.name()
        ))),
    }
}

/// Which columns of `b` are zero, and how far on the others are read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Zeros {
    pub(super) mask: Vec<bool>,
    pub(super) shift: u32,
}

impl Zeros {
    /// # PTX ISA
    /// Zero-Column Mask Descriptor. The text counts used columns in the first of two spans; its examples count zeros there, and these are followed.
    pub(super) fn decode(descriptor: u64, m: u32, n: u32) -> Zeros {
        let field = |first: u32, bits: u32| usize::try_from(descriptor >> first & ((1 << bits) - 1)).unwrap_or(0);
        let shift = u32::try_from(field(56, 6)).unwrap_or(0);
        let n_columns = usize::try_from(n).unwrap_or(0);
        if field(39, 1) == 0 {
            return Zeros { mask: vec![false; n_columns], shift };
        }
        let parts = match m {
            32 => 4,
            64 => 2,
            _ => 1,
        };
        let spans = [(true, field(40, 8) + 1), (false, field(48, 8) + 1)];
        let part = |i: u32| {
            let first = 1 - field(32 + i, 1);
            let spans = (first..).map(move |at| spans[at % 2]);
            spans.flat_map(|(zero, count)| std::iter::repeat_n(zero, count)).skip(field(8 * i, 8))
        };
        Zeros { mask: (0..parts).flat_map(|i| part(i).take(n_columns / parts as usize)).collect(), shift }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Start counts, first spans, skip span, use span, shift.
    fn descriptor(starts: [u64; 4], first: [u64; 4], spans: [u64; 2], shift: u64) -> u64 {
        let starts = (0..4).map(|i| starts[i] << (8 * i)).sum::<u64>();
        let first = (0..4).map(|i| first[i] << (32 + i)).sum::<u64>();
        starts | first | 1 << 39 | spans[0] << 40 | spans[1] << 48 | shift << 56
    }

    /// Bits from the lowest on.
    fn text(mask: &[bool], n: usize) -> String {
        mask.iter().take(n).map(|b| if *b { '1' } else { '0' }).collect()
    }

    /// The examples of the manual; their masks are written from the highest bit on there.
    #[test]
    fn masks_of_the_manual() {
        let none = Zeros::decode(4 << 40 | 3 << 48, 128, 64);
        assert_eq!(none.mask, vec![false; 64]);
        let one = Zeros::decode(descriptor([0; 4], [0; 4], [2, 3], 0), 128, 64);
        assert_eq!((text(&one.mask, 14).as_str(), one.shift), ("00001110000111", 0));
        let two = Zeros::decode(descriptor([0; 4], [1, 0, 0, 0], [2, 3], 0), 64, 64);
        assert_eq!(text(&two.mask, 17), "11100001110000111");
        assert_eq!(text(&two.mask[32..], 14), "00001110000111");
        let four = Zeros::decode(descriptor([0, 1, 2, 1], [1, 1, 0, 0], [2, 3], 2), 32, 128);
        let parts: Vec<String> = four.mask.chunks(32).map(|part| text(part, 12)).collect();
        assert_eq!(parts, ["111000011100", "110000111000", "001110000111", "000111000011"]);
        assert_eq!((four.shift, four.mask.len()), (2, 128));
    }
}
