//! Ops on textures and surfaces. What they compute stands in `num::image`.

use serde::{Deserialize, Serialize};

use crate::num::image::{Kind, Query};
use crate::types::Ty;

/// The shape of an image as an instruction names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Geometry {
    /// `.1d`
    D1,
    /// `.2d`
    D2,
    /// `.3d`
    D3,
    /// `.a1d`
    Array1,
    /// `.a2d`
    Array2,
    /// `.cube`
    Cube,
    /// `.acube`
    ArrayCube,
    /// `.2dms`
    Samples,
    /// `.a2dms`
    ArraySamples,
}

impl Geometry {
    /// All of them.
    pub const ALL: [Geometry; 9] = {
        use Geometry::*;
        [D1, D2, D3, Array1, Array2, Cube, ArrayCube, Samples, ArraySamples]
    };

    /// The word of instructions, without the dot.
    pub const fn word(self) -> &'static str {
        match self {
            Geometry::D1 => "1d",
            Geometry::D2 => "2d",
            Geometry::D3 => "3d",
            Geometry::Array1 => "a1d",
            Geometry::Array2 => "a2d",
            Geometry::Cube => "cube",
            Geometry::ArrayCube => "acube",
            Geometry::Samples => "2dms",
            Geometry::ArraySamples => "a2dms",
        }
    }

    /// Whether the first coordinate is the index of an image in an array.
    pub const fn is_array(self) -> bool {
        use Geometry::*;
        matches!(self, Array1 | Array2 | ArrayCube | ArraySamples)
    }

    /// Whether a coordinate, the one after the index of an array, is the number of a sample.
    pub const fn has_samples(self) -> bool {
        matches!(self, Geometry::Samples | Geometry::ArraySamples)
    }

    /// Coordinates within an image.
    pub const fn n_axes(self) -> usize {
        use Geometry::*;
        match self {
            D1 | Array1 => 1,
            D2 | Array2 | Samples | ArraySamples => 2,
            D3 | Cube | ArrayCube => 3,
        }
    }

    /// Coordinates with index and sample, without padding.
    pub const fn n_coordinates(self) -> usize {
        self.n_axes() + self.is_array() as usize + self.has_samples() as usize
    }
}

/// Which level of detail is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Lod {
    /// The first.
    Base,
    /// The one that a source names, as the coordinates an integer or a float.
    Level,
    /// The one that fits how the coordinates change to the right and down.
    Gradient,
}

/// A look at a texture.
///
/// # PTX ISA
/// Texture Instructions: tex, tld4.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fetch {
    /// Shape of the texture.
    pub geometry: Geometry,
    /// Coordinates are `.f32`, else `.s32`.
    pub is_float: bool,
    /// Level of detail.
    pub lod: Lod,
    /// The sampler is an object of its own.
    pub has_sampler: bool,
    /// Offsets in texels are given.
    pub has_offsets: bool,
    /// A depth is given that texels are compared with.
    pub has_depth: bool,
    /// Of `tld4`: the component of the four texels.
    pub gather: Option<u8>,
}

/// What becomes of an access outside of a surface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum OutOfRange {
    /// `.trap`
    Trap,
    /// `.clamp`: the nearest place.
    Clamp,
    /// `.zero`: loads are 0, stores do nothing.
    Zero,
}

/// The place of an access through a surface.
///
/// # PTX ISA
/// Surface Instructions: suld, sust, sured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Surface {
    /// Shape of the surface.
    pub geometry: Geometry,
    /// Bytes of the access.
    pub bytes: u8,
    /// The first coordinate counts these, else single bytes.
    pub unit: Unit,
    /// What becomes of places outside.
    pub outside: OutOfRange,
}

/// What the first coordinate of a surface counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Accesses.
    Accesses,
    /// Elements of the surface; the access is to one of them.
    Elements,
}

/// An op on textures and surfaces. The first source is the handle of the object (B64).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ImageOp {
    /// handle, sampler if there is one (B64), coordinates, level or gradients, offsets, depth (B32 each) -> four components (B32): integers, or `.f32`
    Fetch(Fetch),
    /// handle, level of detail if `of_level` (B32) -> B32
    Query {
        /// What is asked.
        query: Query,
        /// Of a level that is named.
        of_level: bool,
    },
    /// handle -> P: an object of that kind
    Is(Kind),
    /// handle, coordinates (B32 each) -> generic address (B64), P: it lies inside, P: the elements are signed integers
    Place(Surface),
    /// handle, coordinates, components (B32 each) -> nothing: stores an element by the format of the surface
    Store {
        /// Where; the bytes are those of the surface's elements.
        at: Surface,
        /// Components that are given.
        count: u8,
    },
}

impl ImageOp {
    /// Types of the sources.
    pub fn sources(self) -> Vec<Ty> {
        let (wide, words) = match self {
            ImageOp::Fetch(f) => (1 + usize::from(f.has_sampler), f.words().iter().sum()),
            ImageOp::Query { of_level, .. } => (1, usize::from(of_level)),
            ImageOp::Is(_) => (1, 0),
            ImageOp::Place(s) => (1, s.geometry.n_coordinates()),
            ImageOp::Store { at, count } => (1, at.geometry.n_coordinates() + usize::from(count)),
        };
        std::iter::repeat_n(Ty::B64, wide).chain(std::iter::repeat_n(Ty::B32, words)).collect()
    }

    /// Types of the results.
    pub fn results(self) -> &'static [Ty] {
        match self {
            ImageOp::Fetch(_) => &[Ty::B32; 4],
            ImageOp::Query { .. } => &[Ty::B32],
            ImageOp::Is(_) => &[Ty::P],
            ImageOp::Place(_) => &[Ty::B64, Ty::P, Ty::P],
            ImageOp::Store { .. } => &[],
        }
    }

    /// Its name with modifiers in the text of the IR.
    pub fn name(self) -> String {
        match self {
            ImageOp::Fetch(f) => {
                let mut out = format!("image.fetch.{}.{}", f.geometry.word(), if f.is_float { "f32" } else { "s32" });
                match f.lod {
                    Lod::Base => {}
                    Lod::Level => out.push_str(".level"),
                    Lod::Gradient => out.push_str(".gradient"),
                }
                let parts = [(f.has_sampler, ".sampler"), (f.has_offsets, ".offsets"), (f.has_depth, ".depth")];
                parts.iter().filter(|(has, _)| *has).for_each(|(_, word)| out.push_str(word));
                if let Some(component) = f.gather {
                    out.push_str(&format!(".gather{component}"));
                }
                out
            }
            ImageOp::Query { query, of_level } => {
                format!("image.query.{query:?}{}", if of_level { ".level" } else { "" }).to_lowercase()
            }
            ImageOp::Is(kind) => format!("image.is.{}", kind.word()),
            ImageOp::Place(s) => format!("image.place{}", s.name()),
            ImageOp::Store { at, count } => format!("image.store{}.x{count}", at.name()),
        }
    }
}

impl Fetch {
    /// Words of the coordinates, of level or gradients, of offsets, and of the depth.
    pub fn words(self) -> [usize; 4] {
        let axes = self.geometry.n_axes();
        let lod = match self.lod {
            Lod::Base => 0,
            Lod::Level => 1,
            Lod::Gradient => 2 * axes,
        };
        [self.geometry.n_coordinates(), lod, if self.has_offsets { axes } else { 0 }, usize::from(self.has_depth)]
    }
}

impl Surface {
    fn name(self) -> String {
        let Surface { geometry, bytes, unit, outside } = self;
        format!(".{}.{bytes}.{unit:?}.{outside:?}", geometry.word()).to_lowercase()
    }
}
