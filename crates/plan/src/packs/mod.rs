//! The strategy of full and masked copies over packs, which `codegen` reads.
//!
//! A *pack* is [`LANES`] lanes, whose 32-bit values fill one vector of 128 bits. A full copy of a block does all [`PACKS`] packs side by side, a masked
//! copy loops over those that have lanes. What is decided here is for code of that kind: [`layout`] says where values are kept, [`copies`] which
//! code a block gets, [`deferral`] what waits in a masked copy, [`accesses`], [`atomics`] and [`warp_ops`] how those are done, [`Edges`] which ways a
//! warp takes together. Joint tests of bounds and runs of accesses are questions to a [`Strategy`], asked where an emitter comes to them; its
//! `Display` asks them all.
//!
//! The facts know nothing of packs: [`pack_start`] is where a shape becomes groups and offsets of packs.

pub mod accesses;
pub mod atomics;
pub mod copies;
pub mod deferral;
mod edges;
mod joint;
pub mod layout;
mod runs;
mod strategy;
mod text;
pub mod warp_ops;

pub use edges::{Edges, MOST_OPS};
pub use joint::JointTest;
pub use runs::TOGETHER;
pub use strategy::Strategy;

use crate::analysis::shape::{MOST_PIECES, Shape};

/// Packs of a warp.
pub const PACKS: usize = 8;
/// Lanes of a pack.
pub const LANES: usize = 4;

// The lanes of a pack are in one piece of every shape: one base and one stride are enough for its vector.
const _: () = assert!(MOST_PIECES <= PACKS);

/// Group of the lanes of a pack, and the difference of the first of them to the group's base.
pub fn pack_start(s: &Shape, pack: usize) -> (usize, i64) {
    let lane = pack * LANES;
    (s.group_of(lane), s.delta(lane))
}

/// First pack of a group.
pub fn first_pack(s: &Shape, group: usize) -> usize {
    s.first_lane(group) / LANES
}

/// Whether no two packs have the same values.
pub fn packs_differ(s: &Shape) -> bool {
    (0..PACKS).all(|p| (0..p).all(|q| pack_start(s, p) != pack_start(s, q)))
}
