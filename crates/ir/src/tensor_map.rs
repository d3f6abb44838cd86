//! Tensor maps: 128 bytes that describe a tensor in memory and the boxes of it that are copied.
//!
//! Programs see the bytes as opaque; the layout is ours. Each field that `tensormap.replace` names stands at a place of its own ([`Field::place`]), so that
//! replacing one is a store, and 128 bytes of zeros are a map to start from (not one to use).
//!
//! | bytes | field |
//! |---|---|
//! | 0 to 7 | address of the tensor |
//! | 8 to 39 | strides of dimensions 1 to 4 in bytes |
//! | 40 to 59 | sizes of dimensions 0 to 4; 2^32 is kept as 2^32 - 1, which no coordinate can tell from it |
//! | 60 to 79 | sizes of the box; of a map for im2col: channels, then pixels |
//! | 80 to 99 | element strides |
//! | 100 | dimensions less 1 |
//! | 101 to 105 | element type, interleave, swizzle, its atomicity, fill, as `tensormap.replace` numbers them |
//! | 106, 107 | how boxes are made (0 tiled, 1 im2col, 2 im2col along W); promotion |
//! | 108 to 119 | corners of the box of pixels: three lower ones in the order W, H, D, three upper ones |
//! | 120 to 127 | a fifth stride, which `tensormap.replace` can write and nothing reads |
//!
//! # PTX ISA
//! Tensors; Data Movement and Conversion Instructions: tensormap.replace. CUDA Driver API: Tensor Map Object Management.

mod boxes;
mod bytes;
mod map;
mod rules;

pub use boxes::{Boxes, Coordinates, Line};
pub use map::*;
pub use rules::Wrong;
