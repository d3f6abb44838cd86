//! From a plan to wide code: machine code with vectors of 512 bits (pairs of 256 on hosts with AVX2 alone), one copy of each block under the mask of its lanes.
//!
//! Takes: a function of SIMT IR, specialised and optimised. Returns: an [`Assembly`], bytes of machine code and their
//! [tables](handloom_plan::abi::Tables), or a [`Refusal`]: which op kept the function from having wide code. Does not know: PTX text, grids, streams,
//! Cranelift, and how memory becomes executable.
//!
//! How to read it: [`asm`] writes instructions (for AVX2 in those that it has), `listing` their text; [`alloc`] says where registers live; `emit` holds the state and the registers of the host; `values` makes
//! operands; `table` says which instruction is which op; `ops`, `integer`, `fields`, `half`, `convert`, `small`, `clamped`, `approx`, `video`, `video_simd` and `scalar` do value ops, `access`, `memory`, `tuples`, `together`, `scattered`, `neighbours`, `rows_of_block`, `moves`, `quads`, `joint` and `atomic` loads and stores,
//! `interleaved` lays arrays of threads out element by element, `uses` counts readers, `bands` loads what many lanes share, `addresses` is what is left of accesses that the head decided about; `warp` is what lanes do together, `routine` what the runtime does, `keep` and `calls` what calls of it keep, `once` code that a function has once;
//! `flow` is how lanes come and go, `awaited` what they find where they waited, `turns` how warps and CTAs follow each other, `gang` how several warps go side by side, `head` what is done once a CTA, `rising` what goes up in loops; [`compile()`] is the walk.
//!
//! Invariants: device memory is reached only behind a test that failed into a routine; emitted code keeps to the contract of
//! [`handloom_plan::abi`] and returns `Deopt` only for a CTA that has not begun (`head`); vectors that hold registers are written under the mask of the block's lanes wherever part of a warp
//! may execute it and other lanes may find something there (`awaited`).
#![forbid(unsafe_code)]

mod access;
mod accessor;
mod addresses;
pub mod alloc;
pub mod approx;
mod asked;
pub mod asm;
mod atomic;
mod awaited;
mod bands;
mod calls;
mod clamped;
mod climbing;
mod compile;
mod convert;
mod count;
mod emit;
mod extremes;
mod fields;
mod firsts;
mod flow;
mod flushes;
mod found;
mod gang;
mod granules;
mod half;
mod head;
mod indexed;
mod indices;
mod integer;
mod interleaved;
mod joint;
mod keep;
mod late;
mod lies;
mod listing;
mod memory;
mod moves;
mod neighbours;
mod numbers;
mod once;
mod ops;
mod pointers;
mod quads;
mod rising;
mod routine;
mod rows_of_block;
mod scalar;
mod scattered;
mod small;
mod some;
mod strided;
mod table;
mod tiles;
mod together;
mod tuples;
mod turns;
mod uses;
mod values;
mod video;
mod video_simd;
mod warp;

pub use compile::{Assembly, compile, compile_while, has_wide_vectors, lines, missing_feature};
pub use emit::Refusal;
pub use ops::is_for_routine;
