//! What is decided about an access before its code is emitted.

use std::collections::HashMap;

use handloom_ir::simt::Reg;
use handloom_ir::types::Ty;
use handloom_plan::access::AccessClass;
use iced_x86::Register;

use crate::asm::Label;

/// What a test is against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Limits {
    /// Nothing: the address is known to be right.
    Safe,
    /// An allocation, or the heap.
    Heap(usize),
    /// The CTA's shared memory.
    Shared,
    /// The thread's own local memory.
    Own,
}

/// An access with what is decided about it.
#[derive(Clone, Copy)]
pub(crate) struct Access {
    pub(crate) class: AccessClass,
    pub(crate) limits: Limits,
    /// Lanes that take part.
    pub(crate) lanes: Register,
    pub(crate) cold: Label,
    /// IR type of an element.
    pub(crate) ty: Ty,
    /// Addresses are offsets of 32 bits.
    pub(crate) short: bool,
    /// Whether other accesses are tested with it.
    pub(crate) joint: Option<Member>,
    /// The bit that says that it is right in all of the CTA.
    pub(crate) decided: Option<u32>,
}

impl Access {
    /// Whether its own tests may be passed over.
    pub(crate) fn may_skip(&self) -> bool {
        self.joint.is_some() || self.decided.is_some()
    }

    /// Bytes of an element.
    pub(crate) fn size(&self) -> i32 {
        i32::from(self.class.bits) / 8
    }
}

/// What an access has to do with a joint test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    /// Its bit.
    pub(crate) bit: u32,
    /// The lowest and the highest offset, of the first access.
    pub(crate) test: Option<(i64, i64)>,
}

/// The accesses of a block that are tested together, by index of their instruction.
pub(crate) type Joints = HashMap<usize, Member>;

/// An address in a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    pub(crate) at: Register,
    pub(crate) address: Reg,
    pub(crate) group: usize,
    pub(crate) shared: bool,
}

/// Tests that are made after all blocks.
pub(crate) struct Elsewhere {
    pub(crate) start: Label,
    pub(crate) back: Label,
    pub(crate) x: Access,
    /// The first lanes of runs of elements, and bytes up to the last one of each.
    pub(crate) runs: Vec<(usize, i64)>,
    pub(crate) held: Vec<Held>,
    pub(crate) in_part: bool,
    pub(crate) at: (usize, usize),
}
