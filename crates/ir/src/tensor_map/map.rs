//! What a tensor map says.

use crate::types::ScalarType;

/// Bytes of a map.
pub const SIZE: usize = 128;
/// What its address is a multiple of.
pub const ALIGN: u32 = 64;
/// Most dimensions.
pub const MAX_RANK: usize = 5;

/// What fills the 16 bits of elements outside a tensor where NaNs are asked for; wider elements repeat it.
///
/// Choice: the manual gives no bits for this NaN. These are what is reported of GPUs, and what `fma.oob` takes for it, of either sign.
pub const OOB_NAN: u16 = 0x7ff7;

macro_rules! numbered {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $item:ident = $number:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum $name { $($(#[$doc])* $item = $number,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$item),*];

            /// By its number in a map.
            pub fn of(number: u8) -> Option<$name> {
                $name::ALL.iter().copied().find(|x| *x as u8 == number)
            }
        }
    };
}

numbered! {
    /// What the elements are.
    ElementType {
        /// `.u8`
        U8 = 0,
        /// `.u16`
        U16 = 1,
        /// `.u32`
        U32 = 2,
        /// `.s32`
        S32 = 3,
        /// `.u64`
        U64 = 4,
        /// `.s64`
        S64 = 5,
        /// `.f16`
        F16 = 6,
        /// `.f32`
        F32 = 7,
        /// `.f32.ftz`
        F32Ftz = 8,
        /// `.f64`
        F64 = 9,
        /// `.bf16`
        BF16 = 10,
        /// `.tf32`
        TF32 = 11,
        /// `.tf32.ftz`
        TF32Ftz = 12,
        /// `.b4x16`: 16 elements in 8 bytes.
        B4x16 = 13,
        /// `.b4x16_p64`: 16 elements in 8 bytes, followed by 8 bytes of padding in shared memory.
        B4x16P64 = 14,
        /// `.b6x16_p32`, or stored `.b6p2x16`: 16 elements in 12 bytes, in 16 bytes of shared memory.
        B6x16 = 15,
    }
}

numbered! {
    /// How elements of neighbouring places lie in memory.
    Interleave {
        /// One after the other.
        None = 0,
        /// In slices of 16 bytes, which count as elements.
        Bytes16 = 1,
        /// In slices of 32 bytes.
        Bytes32 = 2,
    }
}

numbered! {
    /// In which span of shared memory chunks change places.
    Swizzle {
        /// None do.
        None = 0,
        /// 32 bytes.
        Bytes32 = 1,
        /// 64 bytes.
        Bytes64 = 2,
        /// 128 bytes.
        Bytes128 = 3,
        /// 96 bytes.
        Bytes96 = 4,
    }
}

numbered! {
    /// What is kept together where chunks change places.
    Atomicity {
        /// 16 bytes.
        Bytes16 = 0,
        /// 32 bytes.
        Bytes32 = 1,
        /// 32 bytes; halves of 16 bytes change places in every other line of 128.
        Bytes32Flip8 = 2,
        /// 64 bytes.
        Bytes64 = 3,
    }
}

numbered! {
    /// What stands for elements outside the tensor.
    Fill {
        /// Zeros.
        Zero = 0,
        /// [`OOB_NAN`].
        Nan = 1,
    }
}

numbered! {
    /// What is fetched into the second cache. It changes nothing here.
    Promotion {
        /// Nothing more.
        None = 0,
        /// 64 bytes.
        Bytes64 = 1,
        /// 128 bytes.
        Bytes128 = 2,
        /// 256 bytes.
        Bytes256 = 3,
    }
}

impl ElementType {
    /// By its number in the driver API, which differs from that of a map.
    pub fn of_driver(number: u32) -> Option<ElementType> {
        use ElementType::*;
        let all = [U8, U16, U32, S32, U64, S64, F16, F32, F64, BF16, F32Ftz, TF32, TF32Ftz, B4x16, B4x16P64, B6x16];
        all.get(usize::try_from(number).ok()?).copied()
    }

    /// Elements that are moved as one.
    pub fn group(self) -> u32 {
        match self {
            ElementType::B4x16 => 2,
            ElementType::B4x16P64 | ElementType::B6x16 => 16,
            _ => 1,
        }
    }

    /// Bytes of a group in global memory.
    pub fn group_bytes(self) -> u32 {
        use ElementType::*;
        match self {
            U8 | B4x16 => 1,
            U16 | F16 | BF16 => 2,
            U32 | S32 | F32 | F32Ftz | TF32 | TF32Ftz => 4,
            U64 | S64 | F64 | B4x16P64 => 8,
            B6x16 => 12,
        }
    }

    /// Bytes of a group in shared memory, padding among them.
    pub fn shared_bytes(self) -> u32 {
        match self {
            ElementType::B4x16P64 | ElementType::B6x16 => 16,
            other => other.group_bytes(),
        }
    }

    /// Whether elements outside may be NaNs.
    pub fn is_float(self) -> bool {
        use ElementType::*;
        matches!(self, F16 | F32 | F32Ftz | F64 | BF16 | TF32 | TF32Ftz)
    }

    /// The type that reductions read it as; `None` for types that have none.
    pub fn reduced_as(self) -> Option<ScalarType> {
        use ElementType::*;
        Some(match self {
            U32 => ScalarType::U32,
            S32 => ScalarType::S32,
            U64 => ScalarType::U64,
            S64 => ScalarType::S64,
            F16 => ScalarType::F16,
            BF16 => ScalarType::BF16,
            F32 | F32Ftz | TF32 | TF32Ftz => ScalarType::F32,
            F64 => ScalarType::F64,
            U8 | U16 | B4x16 | B4x16P64 | B6x16 => return None,
        })
    }
}

impl Swizzle {
    /// By its number in the driver API, with the atomicity that belongs to it.
    pub fn of_driver(number: u32) -> Option<(Swizzle, Atomicity)> {
        let all = [
            (Swizzle::None, Atomicity::Bytes16),
            (Swizzle::Bytes32, Atomicity::Bytes16),
            (Swizzle::Bytes64, Atomicity::Bytes16),
            (Swizzle::Bytes128, Atomicity::Bytes16),
            (Swizzle::Bytes128, Atomicity::Bytes32),
            (Swizzle::Bytes128, Atomicity::Bytes32Flip8),
            (Swizzle::Bytes128, Atomicity::Bytes64),
        ];
        all.get(usize::try_from(number).ok()?).copied()
    }

    /// The span in bytes; 0 where nothing changes places.
    pub fn span(self) -> u32 {
        match self {
            Swizzle::None => 0,
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            Swizzle::Bytes96 => 96,
            Swizzle::Bytes128 => 128,
        }
    }

    /// Where a byte goes whose place in shared memory would be `addr`.
    pub fn place(self, atomicity: Atomicity, addr: u64) -> u64 {
        let line = addr >> 7;
        match (self, atomicity) {
            (Swizzle::None, _) => addr,
            (Swizzle::Bytes32 | Swizzle::Bytes96, _) => addr ^ (line & 1) << 4,
            (Swizzle::Bytes64, _) => addr ^ (line & 3) << 4,
            (Swizzle::Bytes128, Atomicity::Bytes16) => addr ^ (line & 7) << 4,
            (Swizzle::Bytes128, Atomicity::Bytes32) => addr ^ (line & 3) << 5,
            (Swizzle::Bytes128, Atomicity::Bytes32Flip8) => addr ^ (line & 3) << 5 ^ (line & 1) << 3,
            (Swizzle::Bytes128, Atomicity::Bytes64) => addr ^ (line & 1) << 6,
        }
    }
}

impl Interleave {
    /// Bytes of a slice; 0 if there are none.
    pub fn slice(self) -> u32 {
        match self {
            Interleave::None => 0,
            Interleave::Bytes16 => 16,
            Interleave::Bytes32 => 32,
        }
    }
}

/// Which elements a copy takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A box.
    Tiled {
        /// Its size in each dimension, before element strides.
        size: [u32; MAX_RANK],
    },
    /// Pixels in the order of a convolution.
    Im2col {
        /// Lower corner of the box of pixels: W, H, D.
        lower: [i16; 3],
        /// Its upper corner, from the end of the tensor.
        upper: [i16; 3],
        /// Elements of a pixel.
        channels: u32,
        /// Pixels.
        pixels: u32,
    },
    /// Pixels along W alone.
    Wide {
        /// Lower end of the box of pixels.
        lower: i16,
        /// Its upper end, from the end of the tensor.
        upper: i16,
        /// Elements of a pixel.
        channels: u32,
        /// Pixels; not looked at where a copy has 128.
        pixels: u32,
    },
}

/// A tensor and its boxes. What lies beyond `rank` means nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TensorMap {
    /// What the elements are.
    pub element: ElementType,
    /// Dimensions: 1 to 5.
    pub rank: usize,
    /// Address of the first element.
    pub address: u64,
    /// Sizes, in elements (or slices, of an interleaved tensor).
    pub dims: [u64; MAX_RANK],
    /// Distances in bytes of neighbours in dimensions 1 to 4.
    pub strides: [u64; MAX_RANK - 1],
    /// Steps in each dimension.
    pub element_strides: [u32; MAX_RANK],
    /// How neighbours lie.
    pub interleave: Interleave,
    /// Which chunks change places.
    pub swizzle: Swizzle,
    /// What is kept together there.
    pub atomicity: Atomicity,
    /// What is fetched.
    pub promotion: Promotion,
    /// What lies outside.
    pub fill: Fill,
    /// Which elements a copy takes.
    pub shape: Shape,
}

/// A field that `tensormap.replace` writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// `.global_address`
    Address,
    /// `.rank`
    Rank,
    /// `.box_dim` of a dimension
    Box(u8),
    /// `.global_dim`
    Dim(u8),
    /// `.global_stride`; 0 is that of dimension 1, and 4 of none
    Stride(u8),
    /// `.element_stride`
    ElementStride(u8),
    /// `.elemtype`
    ElementType,
    /// `.interleave_layout`
    Interleave,
    /// `.swizzle_mode`
    Swizzle,
    /// `.swizzle_atomicity`
    Atomicity,
    /// `.fill_mode`
    Fill,
}

impl Field {
    /// Its offset in the map, and how many bytes it has.
    pub fn place(self) -> (u32, u32) {
        match self {
            Field::Address => (0, 8),
            Field::Stride(4) => (120, 8),
            Field::Stride(i) => (8 + 8 * u32::from(i), 8),
            Field::Dim(i) => (40 + 4 * u32::from(i), 4),
            Field::Box(i) => (60 + 4 * u32::from(i), 4),
            Field::ElementStride(i) => (80 + 4 * u32::from(i), 4),
            Field::Rank => (100, 1),
            Field::ElementType => (101, 1),
            Field::Interleave => (102, 1),
            Field::Swizzle => (103, 1),
            Field::Atomicity => (104, 1),
            Field::Fill => (105, 1),
        }
    }
}

impl TensorMap {
    /// The dimensions W, H, D.
    pub(super) fn spatial(&self) -> std::ops::Range<usize> {
        if self.interleave == Interleave::None { 1..self.rank - 1 } else { 0..self.rank - 2 }
    }
}
