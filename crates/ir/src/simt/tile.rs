//! Matrices in shared memory as descriptors describe them: which element lies where.
//!
//! A matrix is *lines* of bytes. In a K-major matrix a line is a row of `a` or a column of `b`, and its bytes go along the depth; in an MN-major
//! matrix a line is one depth, and its bytes go along the rows of `a` or the columns of `b`. Bytes are counted in *units* of 16. Eight lines of 1, 2, 4 or
//! 8 units are an *atom*; how many units says the swizzling mode. Within an atom lines follow each other, and the units of a line; from
//! atom to atom the distance is one of those that a descriptor has, along lines and along units. [`ATOMS`] says which, [`Tile::address`] is the
//! whole rule, and code that computes addresses reads the same table.
//!
//! Choice: in K-major matrices with swizzling, units beyond those of an atom follow the last one, as the canonical layouts have it.
//!
//! Choice: swizzling by pairs of units, which only `tcgen05` has, is in figures of the manual that its text does not tell. Atoms of MN-major matrices have
//! four lines then, as the table of atoms says, and bits 7 and 8 of the address change bits 5 and 6, as public libraries have it.
//!
//! # PTX ISA
//! Shared Memory Matrix Layout; Major-ness supported by Strides; Matrix Descriptor Format.

/// What the bytes of a line go along.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Major {
    /// The depth.
    K,
    /// Rows of `a`, columns of `b`.
    Mn,
}

/// A distance between atoms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pitch {
    /// The leading dimension byte offset of the descriptor.
    Leading,
    /// The stride dimension byte offset of the descriptor.
    Stride,
    /// The bytes of a line of an atom.
    Line,
}

/// How atoms lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Atoms {
    /// From eight lines to the next eight.
    pub lines: Pitch,
    /// From the units of an atom to those of the next one.
    pub units: Pitch,
}

/// How atoms lie in a matrix of this kind, with swizzling or without.
pub const ATOMS: [(Major, bool, Atoms); 4] = [
    (Major::K, false, Atoms { lines: Pitch::Stride, units: Pitch::Leading }),
    (Major::K, true, Atoms { lines: Pitch::Stride, units: Pitch::Line }),
    (Major::Mn, false, Atoms { lines: Pitch::Leading, units: Pitch::Stride }),
    (Major::Mn, true, Atoms { lines: Pitch::Stride, units: Pitch::Leading }),
];

impl Major {
    /// The row of [`ATOMS`].
    #[inline]
    pub const fn atoms(self, is_swizzled: bool) -> Atoms {
        ATOMS[2 * (self as usize) + is_swizzled as usize].2
    }
}

/// Bits of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// The lowest.
    pub first: u32,
    /// How many.
    pub bits: u32,
}

impl Field {
    /// Where the matrix starts, in units.
    pub const START: Field = Field { first: 0, bits: 14 };
    /// The leading dimension offset, in units.
    pub const LEADING: Field = Field { first: 16, bits: 14 };
    /// The stride dimension offset, in units.
    pub const STRIDE: Field = Field { first: 32, bits: 14 };
    /// Where the pattern of swizzling starts, in lines of 128 bytes.
    pub const BASE: Field = Field { first: 49, bits: 3 };
    /// The swizzling mode: none, of 128, 64 or 32 bytes.
    pub const MODE: Field = Field { first: 62, bits: 2 };
    /// Of `tcgen05`: the leading dimension offset is an address.
    pub const ABSOLUTE: Field = Field { first: 52, bits: 1 };
    /// The swizzling mode of `tcgen05`: none is 0, of 128 bytes by pairs of units 1, of 128 bytes 2, of 64 bytes 4, of 32 bytes 6.
    pub const TENSOR_MODE: Field = Field { first: 61, bits: 3 };

    /// What a descriptor has there.
    pub const fn of(self, descriptor: u64) -> u32 {
        (descriptor >> self.first & ((1 << self.bits) - 1)) as u32
    }
}

/// Shared memory that a descriptor can name.
pub const REACH: u32 = 0x3ffff;

/// A matrix in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tile {
    /// Its first byte.
    pub start: u32,
    /// The leading dimension byte offset.
    pub leading: u32,
    /// The stride dimension byte offset.
    pub stride: u32,
    /// Where the pattern of swizzling starts.
    pub base: u32,
    /// Units of a line of an atom: 1, 2, 4 or 8, as a power of two.
    pub log_units: u32,
    /// Swizzling moves pairs of units.
    pub by_pairs: bool,
    /// What lines go along.
    pub major: Major,
}

impl Tile {
    /// The matrix that a descriptor of `wgmma` describes.
    pub const fn new(descriptor: u64, major: Major) -> Tile {
        Tile {
            start: Field::START.of(descriptor) << 4,
            leading: Field::LEADING.of(descriptor) << 4,
            stride: Field::STRIDE.of(descriptor) << 4,
            base: Field::BASE.of(descriptor),
            log_units: (4 - Field::MODE.of(descriptor)) % 4,
            by_pairs: false,
            major,
        }
    }

    /// The matrix that a descriptor of `tcgen05` describes, if its mode is one.
    ///
    /// # PTX ISA
    /// Shared Memory Descriptor.
    pub const fn of_tensor(descriptor: u64, major: Major) -> Option<Tile> {
        let (log_units, by_pairs) = match Field::TENSOR_MODE.of(descriptor) {
            0 => (0, false),
            1 => (3, true),
            2 => (3, false),
            4 => (2, false),
            6 => (1, false),
            _ => return None,
        };
        Some(Tile { log_units, by_pairs, ..Tile::new(descriptor, major) })
    }

    /// Lines of an atom, as a power of two.
    #[inline]
    const fn log_lines(&self) -> u32 {
        match (self.by_pairs, self.major) {
            (true, Major::Mn) => 2,
            (false, _) | (_, Major::K) => 3,
        }
    }

    /// Where a byte of a line lies.
    #[inline]
    pub fn address(&self, line: u32, byte: u32) -> u32 {
        self.column(byte).address(line)
    }

    /// Where a byte of all lines lies.
    #[inline]
    pub fn column(&self, byte: u32) -> Column {
        let (unit, n_units) = (byte / 16, 1 << self.log_units);
        let atoms = self.major.atoms(self.log_units != 0);
        Column {
            start: self.start
                + (unit & (n_units - 1)) * 16
                + (unit >> self.log_units) * self.pitch(atoms.units)
                + byte % 16,
            log_lines: self.log_lines(),
            pitches: [self.pitch(Pitch::Line), self.pitch(atoms.lines)],
            base: self.base,
            order: if self.by_pairs { (3, 5) } else { (n_units - 1, 4) },
        }
    }

    #[inline]
    const fn pitch(&self, of: Pitch) -> u32 {
        match of {
            Pitch::Leading => self.leading,
            Pitch::Stride => self.stride,
            Pitch::Line => 16 << self.log_units,
        }
    }
}

/// Where a byte of the lines of a tile lies.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// In the first line, were nothing swizzled.
    start: u32,
    /// As a power of two, how many lines follow each other.
    log_lines: u32,
    /// From a line to the next one, and from so many to the next ones.
    pitches: [u32; 2],
    base: u32,
    /// Which bits of the number of a line of 128 bytes order its units, and where they go.
    order: (u32, u32),
}

impl Column {
    /// In a line.
    // Shifts and masks: there is an address for each sixteen bytes of a product.
    #[inline]
    pub const fn address(&self, line: u32) -> u32 {
        let straight = self.start
            + (line & ((1 << self.log_lines) - 1)) * self.pitches[0]
            + (line >> self.log_lines) * self.pitches[1];
        // Lines of 128 bytes have their units in another order each, counted from where the pattern starts.
        let order = (straight >> 7).wrapping_sub(self.base);
        (straight ^ (order & self.order.0) << self.order.1) & REACH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A layout as the manual writes it: sizes and strides of the digits of both coordinates, in elements.
    type Layout<'t> = [&'t [(u32, u32)]; 2];

    fn offset(digits: &[(u32, u32)], mut coordinate: u32) -> u32 {
        let mut sum = 0;
        for (size, stride) in digits {
            sum += coordinate % size * stride;
            coordinate /= size;
        }
        sum
    }

    /// `Swizzle<bits, 4, 3>` on an address.
    fn swizzled(bits: u32, address: u32) -> u32 {
        address ^ (address & ((1 << bits) - 1) << 7) >> 3
    }

    fn descriptor(start: u32, leading: u32, stride: u32, mode: u64) -> u64 {
        u64::from(start >> 4) | u64::from(leading >> 4) << 16 | u64::from(stride >> 4) << 32 | mode << 62
    }

    /// The examples of canonical layouts in the manual: rows or columns first, then the depth.
    #[test]
    fn examples_of_the_manual() {
        let examples: [(Major, u64, u32, u32, u32, Layout<'_>); 6] = [
            (Major::K, 0, 4, 64, 32, [&[(8, 4), (2, 32)], &[(4, 1), (2, 64)]]),
            (Major::K, 3, 4, 0, 64, [&[(8, 8), (2, 64)], &[(4, 1), (2, 4)]]),
            (Major::Mn, 0, 2, 128, 64, [&[(8, 1), (1, 8), (2, 64)], &[(8, 8), (2, 128)]]),
            (Major::Mn, 3, 2, 128, 256, [&[(8, 1), (2, 8), (2, 128)], &[(8, 16), (2, 256)]]),
            (Major::Mn, 2, 2, 256, 512, [&[(8, 1), (4, 8), (2, 256)], &[(8, 32), (2, 512)]]),
            // As the table of canonical layouts has it; there is no example.
            (Major::Mn, 1, 2, 512, 1024, [&[(8, 1), (8, 8), (2, 512)], &[(8, 64), (2, 1024)]]),
        ];
        for (major, mode, size, leading, stride, layout) in examples {
            let start = 0x2400;
            let tile = Tile::new(descriptor(start, leading * size, stride * size, mode), major);
            let bits = [0, 3, 2, 1][mode as usize];
            let n = layout.map(|digits| digits.iter().map(|d| d.0).product::<u32>());
            for (mn, k) in (0..n[0]).flat_map(|mn| (0..n[1]).map(move |k| (mn, k))) {
                let want = swizzled(bits, start + size * (offset(layout[0], mn) + offset(layout[1], k)));
                let (line, at) = if major == Major::K { (mn, k) } else { (k, mn) };
                assert_eq!(tile.address(line, at * size), want, "{major:?} mode {mode}: {mn}, {k}");
            }
        }
    }

    /// Each unit of an atom has a place of its own in it.
    #[test]
    fn swizzling_permutes_the_units_of_atoms() {
        for major in [Major::K, Major::Mn] {
            for mode in 0..4 {
                let tile = Tile::new(descriptor(0x1000, 0x800, 0x2000, mode), major);
                let units = 1 << tile.log_units;
                let mut places: Vec<u32> =
                    (0..8).flat_map(|line| (0..units).map(move |unit| tile.address(line, 16 * unit))).collect();
                places.sort_unstable();
                let all: Vec<u32> = (0..8 * units).map(|i| 0x1000 + 16 * i).collect();
                assert_eq!(places, all, "{major:?} mode {mode}");
            }
        }
    }

    /// Of 128 bytes by pairs of units: atoms of four lines, in which pairs of units change places.
    #[test]
    fn pairs_of_units_change_places() {
        let bits = descriptor(0x1000, 0x2000, 0x400, 0) | 1 << 61;
        let tile = Tile::of_tensor(bits, Major::Mn).unwrap();
        for (line, byte) in (0..8).flat_map(|line| (0..256).map(move |byte| (line, byte))) {
            let straight = 0x1000 + line % 4 * 128 + line / 4 * 0x400 + byte % 128 + byte / 128 * 0x2000;
            let want = straight ^ (straight >> 7 & 3) << 5;
            assert_eq!(tile.address(line, byte), want);
        }
        assert!([3, 5, 7].iter().all(|mode| Tile::of_tensor(mode << 61, Major::K).is_none()));
    }

    /// A pattern that starts elsewhere than its size demands says so, and then its first line is in order.
    #[test]
    fn a_base_offset_moves_the_pattern() {
        let start = 0x1000 + 3 * 128;
        let bits = descriptor(start, 0, 1024, 1) | 3 << 49;
        let tile = Tile::new(bits, Major::K);
        assert_eq!(tile.base, 3);
        for line in 0..8 {
            let units: Vec<u32> = (0..8).map(|unit| (tile.address(line, 16 * unit) >> 4) & 7).collect();
            assert_eq!(units, (0..8).map(|unit| unit ^ line).collect::<Vec<u32>>());
        }
    }
}
