//! Tensor maps: 128 bytes of the program that say how tensor copies go. See "Tensor Map Object Management".

use handloom_driver::tensor_map::{
    ElementType, Fill, Interleave, MAX_RANK, Promotion, SIZE, Shape, Swizzle, TensorMap,
};
use handloom_driver::{Code, Result};

use crate::ptr::{Addr, In, Out};

/// What all kinds of tensor maps have.
pub(crate) struct Tensor {
    ty: u32,
    rank: u32,
    address: Addr,
    dims: In<u64>,
    strides: In<u64>,
    element_strides: In<u32>,
    layout: [u32; 4],
}

/// The first elements of an array.
fn first<T: Copy + Default, const N: usize>(from: In<T>, n: usize) -> Result<[T; N]> {
    let mut out = [T::default(); N];
    for (i, to) in out.iter_mut().enumerate().take(n) {
        *to = from.at(i)?;
    }
    Ok(out)
}

fn corner(number: i32) -> Result<i16> {
    i16::try_from(number).map_err(|_| Code::INVALID_VALUE)
}

impl Tensor {
    /// The map of a tensor, written where the program wants it.
    fn encode(&self, to: Out<[u8; SIZE]>, shape: impl FnOnce(usize) -> Result<Shape>) -> Result {
        to.check()?;
        // A null address is one that a kernel replaces (`tensormap.replace`), as products of groups do.
        if !to.address().is_multiple_of(64) {
            return Err(Code::INVALID_VALUE);
        }
        let rank = usize::try_from(self.rank).ok().filter(|r| (1..=MAX_RANK).contains(r)).ok_or(Code::INVALID_VALUE)?;
        let [interleave, swizzle, promotion, fill] = self.layout;
        let small = |n: u32| u8::try_from(n).ok();
        let (swizzle, atomicity) = Swizzle::of_driver(swizzle).ok_or(Code::INVALID_VALUE)?;
        let map = TensorMap {
            element: ElementType::of_driver(self.ty).ok_or(Code::INVALID_VALUE)?,
            rank,
            address: self.address.0,
            dims: first(self.dims, rank)?,
            strides: first(self.strides, rank - 1)?,
            element_strides: first(self.element_strides, rank)?,
            interleave: small(interleave).and_then(Interleave::of).ok_or(Code::INVALID_VALUE)?,
            swizzle,
            atomicity,
            promotion: small(promotion).and_then(Promotion::of).ok_or(Code::INVALID_VALUE)?,
            fill: small(fill).and_then(Fill::of).ok_or(Code::INVALID_VALUE)?,
            shape: shape(rank)?,
        };
        to.set(map.encode().map_err(|_| Code::INVALID_VALUE)?)
    }
}

#[allow(clippy::too_many_arguments, reason = "the interface has them")]
pub(crate) fn tiled(
    to: Out<[u8; SIZE]>,
    ty: u32,
    rank: u32,
    address: Addr,
    dims: In<u64>,
    strides: In<u64>,
    size: In<u32>,
    element_strides: In<u32>,
    interleave: u32,
    swizzle: u32,
    promotion: u32,
    fill: u32,
) -> Result {
    let layout = [interleave, swizzle, promotion, fill];
    let tensor = Tensor { ty, rank, address, dims, strides, element_strides, layout };
    tensor.encode(to, |rank| Ok(Shape::Tiled { size: first(size, rank)? }))
}

/// Corners are given as all arrays are: the fastest dimension, W, first.
#[allow(clippy::too_many_arguments, reason = "the interface has them")]
pub(crate) fn im2col(
    to: Out<[u8; SIZE]>,
    ty: u32,
    rank: u32,
    address: Addr,
    dims: In<u64>,
    strides: In<u64>,
    lower: In<i32>,
    upper: In<i32>,
    channels: u32,
    pixels: u32,
    element_strides: In<u32>,
    interleave: u32,
    swizzle: u32,
    promotion: u32,
    fill: u32,
) -> Result {
    let layout = [interleave, swizzle, promotion, fill];
    let tensor = Tensor { ty, rank, address, dims, strides, element_strides, layout };
    tensor.encode(to, |rank| {
        let corners = |from: In<i32>| -> Result<[i16; 3]> {
            let all: [i32; 3] = first(from, rank.saturating_sub(2).min(3))?;
            Ok([corner(all[0])?, corner(all[1])?, corner(all[2])?])
        };
        Ok(Shape::Im2col { lower: corners(lower)?, upper: corners(upper)?, channels, pixels })
    })
}

#[allow(clippy::too_many_arguments, reason = "the interface has them")]
pub(crate) fn wide(
    to: Out<[u8; SIZE]>,
    ty: u32,
    rank: u32,
    address: Addr,
    dims: In<u64>,
    strides: In<u64>,
    lower: i32,
    upper: i32,
    channels: u32,
    pixels: u32,
    element_strides: In<u32>,
    interleave: u32,
    mode: u32,
    swizzle: u32,
    promotion: u32,
    fill: u32,
) -> Result {
    if mode > 1 {
        return Err(Code::INVALID_VALUE);
    }
    let layout = [interleave, swizzle, promotion, fill];
    let tensor = Tensor { ty, rank, address, dims, strides, element_strides, layout };
    tensor.encode(to, |_| Ok(Shape::Wide { lower: corner(lower)?, upper: corner(upper)?, channels, pixels }))
}

pub(crate) fn replace_address(map: Out<[u8; SIZE]>, address: Addr) -> Result {
    let mut tensor = TensorMap::decode(&map.get()?).map_err(|_| Code::INVALID_VALUE)?;
    if address.0 == 0 {
        return Err(Code::INVALID_VALUE);
    }
    tensor.address = address.0;
    map.set(tensor.encode().map_err(|_| Code::INVALID_VALUE)?)
}
