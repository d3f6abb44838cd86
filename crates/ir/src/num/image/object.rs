//! The record of a texture, a sampler or a surface.

use serde::{Deserialize, Serialize};

/// Bytes of a record.
pub const BYTES: u32 = 128;
/// Alignment of a record in bytes.
pub const ALIGN: u32 = 64;
/// Byte of a record where the address of the first texel stands, in 8 bytes.
pub const BASE_AT: u32 = 8;
/// Most levels of detail.
pub const MAX_LEVELS: u8 = 16;

/// What a record is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// `.texref`: an image with a sampler of its own.
    Texture,
    /// `.samplerref`
    Sampler,
    /// `.surfref`
    Surface,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::Texture, Kind::Sampler, Kind::Surface];

    /// The word of a declaration, without the dot.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Texture => "texref",
            Kind::Sampler => "samplerref",
            Kind::Surface => "surfref",
        }
    }

    /// The first eight bytes of a record.
    const fn tag(self) -> u64 {
        u64::from_le_bytes(match self {
            Kind::Texture => *b"texref\0\x01",
            Kind::Sampler => *b"smplref\x01",
            Kind::Surface => *b"surfref\x01",
        })
    }
}

/// What the elements of an image are, before anything is made of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names say sign, kind and bits")]
pub enum Channel {
    U8,
    U16,
    U32,
    S8,
    S16,
    S32,
    F16,
    F32,
    /// Unsigned integers that stand for 0 to 1.
    Unorm8,
    Unorm16,
    /// Signed integers that stand for -1 to 1.
    Snorm8,
    Snorm16,
    /// As `Unorm8`; the first three components are read as sRGB.
    Srgb8,
}

impl Channel {
    /// All of them, in the order of their numbers in a record.
    pub const ALL: [Channel; 13] = {
        use Channel::*;
        [U8, U16, U32, S8, S16, S32, F16, F32, Unorm8, Unorm16, Snorm8, Snorm16, Srgb8]
    };

    /// Bytes of one component.
    pub const fn bytes(self) -> u32 {
        use Channel::*;
        match self {
            U8 | S8 | Unorm8 | Snorm8 | Srgb8 => 1,
            U16 | S16 | F16 | Unorm16 | Snorm16 => 2,
            U32 | S32 | F32 => 4,
        }
    }

    /// Whether a program reads it as `.f32`.
    pub const fn is_float(self) -> bool {
        use Channel::*;
        match self {
            U8 | U16 | U32 | S8 | S16 | S32 => false,
            F16 | F32 | Unorm8 | Unorm16 | Snorm8 | Snorm16 | Srgb8 => true,
        }
    }

    /// Whether it is a signed integer.
    pub const fn is_signed(self) -> bool {
        matches!(self, Channel::S8 | Channel::S16 | Channel::S32)
    }

    /// The number of OpenCL 1.0, which `.channel_data_type` asks for.
    const fn number(self) -> u32 {
        use Channel::*;
        match self {
            Snorm8 => 0x10d0,
            Snorm16 => 0x10d1,
            Unorm8 | Srgb8 => 0x10d2,
            Unorm16 => 0x10d3,
            S8 => 0x10d7,
            S16 => 0x10d8,
            S32 => 0x10d9,
            U8 => 0x10da,
            U16 => 0x10db,
            U32 => 0x10dc,
            F16 => 0x10dd,
            F32 => 0x10de,
        }
    }
}

/// What becomes of a coordinate outside of the image.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AddressMode {
    /// The image is repeated. Without normalized coordinates it is clamped.
    Wrap,
    /// The image is repeated, every other time mirrored. Without normalized coordinates it is clamped.
    Mirror,
    /// The nearest texel, also where a filter reads two: as `ClampToEdge`.
    ClampOgl,
    /// The nearest texel.
    #[default]
    ClampToEdge,
    /// The colour of the border.
    ClampToBorder,
}

impl AddressMode {
    /// All of them, in the order of their numbers.
    pub const ALL: [AddressMode; 5] = {
        use AddressMode::*;
        [Wrap, Mirror, ClampOgl, ClampToEdge, ClampToBorder]
    };

    /// The word of an initialiser.
    pub const fn word(self) -> &'static str {
        match self {
            AddressMode::Wrap => "wrap",
            AddressMode::Mirror => "mirror",
            AddressMode::ClampOgl => "clamp_ogl",
            AddressMode::ClampToEdge => "clamp_to_edge",
            AddressMode::ClampToBorder => "clamp_to_border",
        }
    }
}

/// What is made of the texels around a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Filter {
    /// The nearest.
    #[default]
    Nearest,
    /// Their mean, weighted by the distance.
    Linear,
}

impl Filter {
    /// All of them, in the order of their numbers.
    pub const ALL: [Filter; 2] = [Filter::Nearest, Filter::Linear];

    /// The word of an initialiser.
    pub const fn word(self) -> &'static str {
        match self {
            Filter::Nearest => "nearest",
            Filter::Linear => "linear",
        }
    }
}

/// How texels are found and put together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sampler {
    /// Coordinates from 0 to 1, not in texels.
    pub is_normalized: bool,
    /// Of a sampler of its own: coordinates are in texels, whatever the texture says.
    pub forces_texels: bool,
    /// Between texels of a level.
    pub filter: Filter,
    /// Between levels.
    pub mip_filter: Filter,
    /// Of a cube: a filter reads on from face to face, and what is outside of a face is never the border.
    pub is_seamless: bool,
    /// By dimension.
    pub address: [AddressMode; 3],
    /// The colour of the border: red, green, blue, alpha.
    pub border: [f32; 4],
    /// Added to a level of detail.
    pub lod_bias: f32,
    /// Lowest level of detail.
    pub min_lod: f32,
    /// Highest level of detail.
    pub max_lod: f32,
}

impl Default for Sampler {
    fn default() -> Sampler {
        Sampler {
            is_normalized: false,
            forces_texels: false,
            filter: Filter::Nearest,
            mip_filter: Filter::Nearest,
            is_seamless: false,
            address: [AddressMode::ClampToEdge; 3],
            border: [0.0; 4],
            lod_bias: 0.0,
            min_lod: 0.0,
            max_lod: f32::from(MAX_LEVELS),
        }
    }
}

/// Texels in memory.
///
/// A level of detail follows the one before; a level is its layers, a layer its slices, a slice its rows, a row its texels. The faces of a cube are
/// layers, and so are the samples of a texel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Image {
    /// Address of the first texel. 0: no memory was given to the object yet.
    pub base: u64,
    /// Texels in each dimension of the first level; 1 in those that there are not.
    pub size: [u32; 3],
    /// Dimensions: 1 to 3.
    pub dims: u8,
    /// Images of an array, or cubes; 0 if it is no array.
    pub layers: u32,
    /// Six faces for each layer.
    pub is_cube: bool,
    /// Of an image that shows a part of another one: the first layer of memory that it has, faces counted.
    pub first_layer: u32,
    /// The layers that each level has in memory, faces counted; 0 if they are those of the image.
    pub layers_in_memory: u32,
    /// Samples of a texel; 0 if there is one only.
    pub samples: u8,
    /// Levels of detail; at least 1.
    pub levels: u8,
    /// Memory of the program's own, not an array of the driver: a place outside of a row reads as zeros.
    pub is_linear: bool,
    /// What the components are.
    pub channel: Channel,
    /// Components: 1, 2 or 4.
    pub components: u8,
    /// Bytes from a row of the first level to the next.
    pub pitch: u64,
    /// Rows from a slice of the first level to the next.
    pub rows: u32,
}

impl Default for Image {
    fn default() -> Image {
        Image {
            base: 0,
            size: [0, 1, 1],
            dims: 1,
            layers: 0,
            is_cube: false,
            first_layer: 0,
            layers_in_memory: 0,
            samples: 0,
            levels: 1,
            is_linear: false,
            channel: Channel::F32,
            components: 1,
            pitch: 0,
            rows: 1,
        }
    }
}

/// One level of detail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// Address of its first texel.
    pub base: u64,
    /// Texels in each dimension.
    pub size: [u32; 3],
    /// Bytes from a row to the next.
    pub pitch: u64,
    /// Bytes from a slice to the next.
    pub slice: u64,
    /// Bytes from a layer to the next.
    pub layer: u64,
}

impl Image {
    /// Bytes of a texel.
    pub const fn texel(&self) -> u32 {
        self.channel.bytes() * self.components as u32
    }

    /// Layers in memory: those of an array, times faces and samples.
    pub fn n_layers(&self) -> u64 {
        u64::from(self.layers.max(1)) * if self.is_cube { 6 } else { 1 } * u64::from(self.samples.max(1))
    }

    /// A level, or the last one.
    pub fn level(&self, n: u8) -> Level {
        let texel = u64::from(self.texel());
        let stored = if self.layers_in_memory > 0 { self.layers_in_memory.into() } else { self.n_layers() };
        let mut base = self.base;
        let (mut pitch, mut rows) = (self.pitch, u64::from(self.rows));
        let mut size = self.size;
        let last = n.min(self.levels.max(1) - 1);
        for i in 0..=last {
            if i > 0 {
                size = size.map(|s| (s / 2).max(1));
                pitch = u64::from(size[0]) * texel;
                rows = u64::from(size[1]);
            }
            let slice = pitch.wrapping_mul(rows);
            let layer = slice.wrapping_mul(u64::from(size[2]));
            if i == last {
                let base = base.wrapping_add(layer.wrapping_mul(u64::from(self.first_layer)));
                return Level { base, size, pitch, slice, layer };
            }
            base = base.wrapping_add(layer.wrapping_mul(stored));
        }
        unreachable!("bug: the loop ends at the last level")
    }

    /// Bytes from the first texel to the end of the last one; `None` if they are more than an address space.
    pub fn extent(&self) -> Option<u64> {
        let texel = u64::from(self.texel());
        let rows_of_slices = u64::from(self.rows) * u64::from(self.size[2]);
        if self.levels <= 1 && self.n_layers() == 1 && self.first_layer == 0 {
            // The last row of memory that a program made need not be padded.
            let full = (u64::from(self.size[2]) - 1).checked_mul(u64::from(self.rows))?;
            let full = full.checked_add(u64::from(self.size[1]) - 1)?.checked_mul(self.pitch)?;
            return full.checked_add(u64::from(self.size[0]) * texel);
        }
        rows_of_slices.checked_mul(self.pitch)?.checked_mul(self.n_layers())?;
        let last = self.level(self.levels.max(1) - 1);
        let end = last.base.checked_sub(self.base)?;
        end.checked_add(last.layer.checked_mul(self.n_layers())?)
    }
}

/// A texture, a sampler or a surface.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Object {
    /// Which of them.
    pub kind: Kind,
    /// The texels; of a sampler nothing.
    pub image: Image,
    /// How they are read; of a surface nothing.
    pub sampler: Sampler,
}

impl Object {
    /// One that has no memory yet.
    pub fn unbound(kind: Kind) -> Object {
        Object { kind, image: Image::default(), sampler: Sampler::default() }
    }

    /// Its record.
    pub fn encode(&self) -> [u8; BYTES as usize] {
        let mut out = [0; BYTES as usize];
        let (image, sampler) = (&self.image, &self.sampler);
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &self.kind.tag().to_le_bytes());
        put(BASE_AT as usize, &image.base.to_le_bytes());
        image.size.iter().enumerate().for_each(|(i, s)| put(16 + 4 * i, &s.to_le_bytes()));
        put(28, &image.layers.to_le_bytes());
        put(32, &image.pitch.to_le_bytes());
        put(40, &image.rows.to_le_bytes());
        put(44, &[image.dims, image.samples, image.levels, image.components]);
        let flags = [image.is_cube, image.is_linear, sampler.is_normalized, sampler.forces_texels];
        put(48, &flags.map(u8::from));
        let position = |found: Option<usize>| found.unwrap_or(0) as u8;
        put(52, &[position(Channel::ALL.iter().position(|c| *c == image.channel))]);
        let filter = |f: Filter| position(Filter::ALL.iter().position(|g| *g == f));
        put(53, &[filter(sampler.filter), filter(sampler.mip_filter)]);
        put(58, &[u8::from(sampler.is_seamless)]);
        put(55, &sampler.address.map(|a| position(AddressMode::ALL.iter().position(|b| *b == a))));
        sampler.border.iter().enumerate().for_each(|(i, b)| put(60 + 4 * i, &b.to_le_bytes()));
        let lods = [sampler.lod_bias, sampler.min_lod, sampler.max_lod];
        lods.iter().enumerate().for_each(|(i, b)| put(76 + 4 * i, &b.to_le_bytes()));
        put(88, &image.first_layer.to_le_bytes());
        put(92, &image.layers_in_memory.to_le_bytes());
        out
    }

    /// What a record says; `None` if it is none.
    pub fn decode(bytes: &[u8; BYTES as usize]) -> Option<Object> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let float = |at: usize| f32::from_bits(word(at));
        let kind = Kind::ALL.into_iter().find(|k| k.tag() == long(0))?;
        let filter = |at: usize| Filter::ALL.get(usize::from(bytes[at])).copied();
        let address = |at: usize| AddressMode::ALL.get(usize::from(bytes[at])).copied();
        let image = Image {
            base: long(BASE_AT as usize),
            size: [word(16), word(20), word(24)],
            layers: word(28),
            pitch: long(32),
            rows: word(40),
            dims: bytes[44],
            samples: bytes[45],
            levels: bytes[46],
            components: bytes[47],
            is_cube: bytes[48] != 0,
            first_layer: word(88),
            layers_in_memory: word(92),
            is_linear: bytes[49] != 0,
            channel: *Channel::ALL.get(usize::from(bytes[52]))?,
        };
        let sampler = Sampler {
            is_normalized: bytes[50] != 0,
            forces_texels: bytes[51] != 0,
            filter: filter(53)?,
            mip_filter: filter(54)?,
            is_seamless: bytes[58] != 0,
            address: [address(55)?, address(56)?, address(57)?],
            border: [float(60), float(64), float(68), float(72)],
            lod_bias: float(76),
            min_lod: float(80),
            max_lod: float(84),
        };
        let is_sound = matches!(image.dims, 1..=3)
            && matches!(image.components, 1 | 2 | 4)
            && matches!(image.levels, 1..=MAX_LEVELS)
            && (image.base == 0 || !image.size.contains(&0) && image.rows != 0);
        is_sound.then_some(Object { kind, image, sampler })
    }
}

/// What `txq` and `suq` ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are the words of the instructions")]
pub enum Query {
    Width,
    Height,
    Depth,
    ChannelDataType,
    ChannelOrder,
    NormalizedCoords,
    ForceUnnormalizedCoords,
    FilterMode,
    AddrMode(u8),
    ArraySize,
    NumMipmapLevels,
    NumSamples,
    MemoryLayout,
}

/// The answer about an object, of one level.
///
/// Choice: dimensions that there are not are 0.
///
/// # PTX ISA
/// Texture Instructions: txq; Surface Instructions: suq.
pub fn ask(object: &Object, query: Query, level: u32) -> u32 {
    let (image, sampler) = (&object.image, &object.sampler);
    let extent = |dimension: usize| {
        let size = image.size[dimension];
        if usize::from(image.dims) > dimension {
            (size.checked_shr(level).unwrap_or(0)).max(u32::from(size > 0))
        } else {
            0
        }
    };
    match query {
        Query::Width => extent(0),
        Query::Height => extent(1),
        Query::Depth => extent(2),
        Query::ChannelDataType => image.channel.number(),
        Query::ChannelOrder => match image.components {
            1 => 0x10b0,
            2 => 0x10b2,
            _ => 0x10b5,
        },
        Query::NormalizedCoords => u32::from(sampler.is_normalized),
        Query::ForceUnnormalizedCoords => u32::from(sampler.forces_texels),
        Query::FilterMode => Filter::ALL.iter().position(|f| *f == sampler.filter).unwrap_or(0) as u32,
        Query::AddrMode(i) => {
            let mode = sampler.address[usize::from(i.min(2))];
            AddressMode::ALL.iter().position(|m| *m == mode).unwrap_or(0) as u32
        }
        Query::ArraySize => image.layers,
        Query::NumMipmapLevels => {
            if image.levels > 1 {
                u32::from(image.levels)
            } else {
                0
            }
        }
        Query::NumSamples => u32::from(image.samples),
        Query::MemoryLayout => u32::from(image.is_linear),
    }
}
