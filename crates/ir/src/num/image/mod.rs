//! Textures, samplers and surfaces: the objects in memory, and what reading and writing through them means.
//!
//! Takes: bytes of device memory by a closure or a trait, coordinates as bits. Gives: what `tex`, `tld4`, `txq`, `suld` and their like compute.
//! Does not know: lanes, engines, allocations.
//!
//! An object is a record of [`BYTES`] bytes in device memory, and the address of the record is its handle: that of an opaque variable of a
//! module, or of a record that a host made. So a handle is a number like any other, and programs may pass it, store it and compare it.
//!
//! # PTX ISA
//! Texture Sampler and Surface Types; Texture Instructions; Surface Instructions.

mod coordinates;
mod object;
mod row;
mod sample;
mod spec;
mod surface;
mod texel;

pub use object::{
    ALIGN, AddressMode, BASE_AT, BYTES, Channel, Filter, Image, Kind, Level, MAX_LEVELS, Object, Query, Sampler, ask,
};
pub use row::{Flat, Row, fetch_row};
pub use sample::{Asked, fetch, gather};
pub use spec::Spec;
pub use surface::{Found, place, write_formatted};
pub use texel::Texels;
