//! From SIMT IR to CLIF.
//!
//! # The shape of emitted code
//! `dispatch` takes a warp context and goes to the block in its `state`. Each block that lanes may wait at has a *prologue*: it takes the
//! block's pending lanes; none → the next such block in order; all 32 → the *full* copy; else the *masked* copy. Full copies are straight code
//! over eight packs, without masks. Masked copies loop over the packs that have lanes and blend what they write. `advance` goes to the next context.
//!
//! # Invariants
//! - A register that is live across blocks has one home: a row (`Varying`) or one 64-bit word for each group of its shape.
//! - Homes are written at the end of a block, after all of its side effects, and read at first use.
//! - Device memory is reached only after a check; what the check refuses goes to a routine.
//!
//! # How to read it
//! [`asm`] is how to say it in CLIF, [`copy`] what is known while one copy of a block is emitted; [`full`] and [`masked`] are the two kinds of
//! copies, [`frame`] what is around them. Each file uses only files below it, calls of methods included.

mod address;
mod asm;
mod bounds;
mod copy;
mod device;
mod ends;
mod exits;
mod frame;
mod full;
mod masked;
mod once;
mod ops;
mod sreg;
mod value;
mod value_op;
mod vectors;

pub(crate) use asm::POOL_BYTES;
pub(crate) use frame::emit;
