//! What is decided about an access before its code is emitted.

use handloom_diag::hash::FastMap;
use handloom_ir::simt::{Inst, Reg, Val};
use handloom_ir::types::{Order, Ty};
use handloom_plan::Plan;
use handloom_plan::access::{AccessClass, Kind};
use handloom_plan::analysis::cfg::Set;
use handloom_plan::analysis::shape::Shape;
use iced_x86::Register;

use crate::asm::Label;

/// The register that a value is.
pub(crate) fn reg(v: Val) -> Option<Reg> {
    match v {
        Val::Reg(r) => Some(r),
        Val::Imm(..) => None,
    }
}

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
    /// A joint test before it covers it: nothing is left to test.
    pub(crate) is_proven: bool,
    /// The bit that says that it is right in all of the CTA.
    pub(crate) decided: Option<u32>,
}

impl Access {
    /// Whether its own tests may be passed over.
    pub(crate) fn may_skip(&self) -> bool {
        self.decided.is_some()
    }

    /// Bytes of an element.
    pub(crate) fn size(&self) -> i32 {
        i32::from(self.class.bits) / 8
    }
}

/// Whether an access may be tested together with others through its address: plain, and a number of elements from it. (One between two such that is not is misaligned.)
pub(crate) fn is_of_elements(class: &AccessClass) -> bool {
    matches!(class.kind, Kind::Load | Kind::Store)
        && class.order == Order::Weak
        && !class.is_single
        && class.wants_all()
        && class.offset % class.bytes() == 0
        && i32::try_from(class.offset).is_ok()
}

/// Where lanes of a part lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// All at one address.
    Same,
    /// Elements follow each other through the whole warp.
    Row,
    /// Elements follow each other within each part of a vector.
    Parts,
    /// Elements of 32 bits follow each other within each half of a part: rows of eight threads.
    Halves,
    /// Several elements a lane, which follow each other in runs of so many lanes.
    Tuples(u8),
    /// Each part of a vector is at one address.
    Bands,
    /// Each half of a part of 32 bits a lane is at one address.
    HalfBands,
    /// Elements of each part stand a few elements apart.
    Strided(Shape),
    /// Anywhere.
    Scattered,
}

/// Where lanes of an access find their elements.
#[derive(Clone, Debug)]
pub(crate) struct Runs {
    pub(crate) shape: Shape,
    pub(crate) address: Reg,
    /// First lanes, and bytes from the first element to the last.
    pub(crate) list: Vec<(usize, i64)>,
}

impl Runs {
    /// Bytes from what is held for the group of a lane to the element of the lane.
    pub(crate) fn distance(&self, x: &Access, lane: usize) -> Option<i32> {
        let first = self.shape.first_lane(self.shape.group_of(lane));
        i32::try_from(self.shape.delta(lane) - self.shape.delta(first) + x.class.offset).ok()
    }
}

/// What an access has to do with a joint test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    /// The first of those that are tested together, in the block.
    pub(crate) first: usize,
    /// The lowest and the highest offset, of the first access.
    pub(crate) test: Option<(i64, i64)>,
}

/// The accesses of a block that are tested together, by index of their instruction.
pub(crate) type Joints = FastMap<usize, Member>;

/// An address in a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    pub(crate) at: Register,
    pub(crate) address: Reg,
    pub(crate) group: usize,
    pub(crate) shared: bool,
    /// Whose it is, of warps that go side by side.
    pub(crate) of: usize,
}

impl Held {
    /// Whether both are of one address, wherever it is held.
    pub(crate) fn is_same(&self, other: &Held) -> bool {
        Held { at: other.at, ..*self } == *other
    }
}

/// What an address is made of: an index of 32 bits, extended and shifted, and what is added.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Indexed {
    pub(crate) index: Reg,
    pub(crate) signed: bool,
    pub(crate) shift: u32,
    /// Values of 64 bits that are the same in all lanes, each with how far it is shifted.
    pub(crate) words: Vec<(Val, u32)>,
    pub(crate) number: i64,
}

impl Indexed {
    /// How the lanes of the index differ; none where nothing is known of that.
    pub(crate) fn shape(&self, plan: &Plan) -> Option<Shape> {
        plan.facts.class[self.index.idx()].shape()
    }
}

/// The addresses by indices of a function.
pub(crate) struct Indices {
    /// By block and instruction of an access.
    pub(crate) of: FastMap<(usize, usize), Indexed>,
    /// Registers that are made only where they are wanted.
    pub(crate) delayed: Set,
}

impl Indices {
    /// None.
    pub(crate) fn none(regs: usize) -> Indices {
        Indices { of: FastMap::default(), delayed: Set::new(regs) }
    }

    /// Whether an access, by block and instruction, finds its address so, with an index whose lanes differ in a known way.
    pub(crate) fn has(&self, plan: &Plan, at: (usize, usize)) -> bool {
        self.of.get(&at).is_some_and(|i| i.shape(plan).is_some())
    }

    /// Whether an instruction is passed over: what it makes is made where it is wanted.
    pub(crate) fn delays(&self, inst: &Inst) -> bool {
        matches!(inst.dst[..], [d] if self.delayed.has(d.idx()))
    }

    /// The registers that an access, by block and instruction, reads though it does not name them.
    pub(crate) fn read_late(&self, at: (usize, usize)) -> Vec<Reg> {
        let found = self.of.get(&at);
        found.map_or_else(Vec::new, |i| i.words.iter().filter_map(|w| reg(w.0)).chain([i.index]).collect())
    }
}

/// A load that is done where its only reader wants it, as an operand in memory.
pub(crate) struct Folded {
    pub(crate) reg: Reg,
    pub(crate) x: Access,
    pub(crate) runs: Runs,
    pub(crate) form: Form,
}

/// A block's accesses one by one, from the first that a joint test refused to the last that one covers.
pub(crate) struct Slow {
    pub(crate) block: usize,
    pub(crate) joints: Joints,
    /// The instructions of joint tests, where each is come to, and their sites.
    pub(crate) entries: Vec<(usize, Label, Option<usize>)>,
    /// Registers whose second vector is as the first.
    pub(crate) alike: Vec<Reg>,
    /// Where it ends.
    pub(crate) until: usize,
    pub(crate) back: Label,
}

/// Tests that are made after all blocks.
pub(crate) struct Elsewhere {
    pub(crate) start: Label,
    pub(crate) back: Label,
    pub(crate) x: Access,
    /// The first lanes of runs of elements, and bytes up to the last one of each.
    pub(crate) runs: Vec<(usize, i64)>,
    /// Of a joint test the ends, and where a block goes on that it refuses.
    pub(crate) joint: Option<(i64, i64, Label)>,
    pub(crate) held: Vec<Held>,
    pub(crate) in_part: bool,
    pub(crate) at: (usize, usize),
}

/// What a test after all blocks is against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Against {
    Heap,
    /// The allocation that a site hit last: the site is told.
    Site,
    Shared,
    Own,
}

/// The code of a test that several accesses ask.
pub(crate) struct Tester {
    /// What it is against, and bytes of an access.
    pub(crate) kind: (Against, i64),
    /// One of them.
    pub(crate) x: Access,
    /// Where it starts for a row of which the lanes of the block take part.
    pub(crate) by_lanes: Label,
    /// Where it starts for a run: bytes up to the last element are in `rcx`.
    pub(crate) run: Label,
}
