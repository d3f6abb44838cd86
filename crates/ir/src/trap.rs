//! The table of traps: why a kernel stopped.

macro_rules! traps {
    ($($name:ident $word:literal $about:literal)*) => {
        /// Why a kernel stopped. One row a kind.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[repr(u32)]
        pub enum TrapKind { $(#[doc = $about] $name,)* }

        impl TrapKind {
            /// All rows.
            pub const ALL: &'static [TrapKind] = &[$(TrapKind::$name),*];
            /// The stable word of reports.
            pub fn word(self) -> &'static str { match self { $(TrapKind::$name => $word),* } }
            /// What it means.
            pub fn about(self) -> &'static str { match self { $(TrapKind::$name => $about),* } }
        }
    };
}

traps! {
    OutOfBounds "out_of_bounds" "an access outside every allocation, through a null pointer, or to freed memory"
    Misaligned "misaligned" "an address that is not a multiple of the size of the whole access"
    BadSpace "bad_space" "a generic address in a state space that the operation may not use"
    WriteProtected "write_protected" "a store to constant memory, to entry parameters or to code"
    Trap "trap" "the `trap` instruction"
    Assert "assert" "a failed assertion of the program"
    Deadlock "deadlock" "no thread can go on"
    Barrier "barrier" "misuse of a barrier"
    Timeout "timeout" "the time limit of the launch has passed"
    Stack "stack" "local memory, call stack or `alloca` used up"
    BadTransfer "bad_transfer" "an asynchronous copy against the rules of its instruction, or a tensor map that describes no tensor"
    BadTensor "bad_tensor" "an access to tensor memory that is not allocated or not the warp's, or an instruction or matrix that its descriptor does not describe"
    BadCall "bad_call" "an indirect call or branch whose target does not exist or does not fit"
    BadObject "bad_object" "a handle that names no texture, sampler or surface of the kind that is wanted, or one without memory"
    OutOfSurface "out_of_surface" "a place outside of a surface, of an access with `.trap`"
    Breakpoint "breakpoint" "the `brkpt` instruction with no debugger attached"
}

use crate::types::{Order, StateSpace};
use handloom_diag::{DriverError, Span};
use serde::{Deserialize, Serialize};

/// What an access that trapped tried to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessKind {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic.
    Atomic,
}

impl AccessKind {
    /// Whether an access of some bytes, which is aligned, may end behind the object of global memory that it begins in: a strong read or an atomic of a word of four bytes. Programs have no
    /// other way to change a byte or two of them at once (`cuda::atomic_ref<char>` reads and swaps the word around them), and on a GPU the rest of the word is there.
    pub fn may_end_behind(self, order: Order, bytes: u32) -> bool {
        // Choice: what lies behind an object is undefined; here it is the rest of its last word.
        let takes_words = match self {
            AccessKind::Read => order.is_strong() && order != Order::Mmio,
            AccessKind::Write => false,
            AccessKind::Atomic => true,
        };
        takes_words && bytes == 4
    }
}

/// Shared memory of a cta, or local memory of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnMemory {
    /// `Shared` or `Local`.
    pub space: StateSpace,
    /// Its address, as the access names addresses: an offset for `.shared`.
    pub base: u64,
    /// Its size in bytes.
    pub size: u64,
}

/// Where a thread waited when nobody could go on, or when a limit passed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiter {
    /// Block of the threads.
    pub cta: [u32; 3],
    /// The first of the threads.
    pub thread: [u32; 3],
    /// How many threads of the warp are there.
    pub count: u32,
    /// The statement they are at.
    pub span: Span,
    /// For what: `barrier 0`, `lanes 0x0000ffff`, `memory`.
    pub what: String,
}

/// A stop, as both engines report it. The text is made in one place from it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trap {
    /// Why the kernel stopped.
    pub kind: TrapKind,
    /// The statement.
    pub span: Span,
    /// Block of the first thread that did it.
    pub cta: [u32; 3],
    /// The thread, x, y, z.
    pub thread: [u32; 3],
    /// Other lanes of the same warp that did the same, as a mask without the first.
    pub other_lanes: u32,
    /// Other warps of the block that did the same, ascending, and how many of their threads.
    pub other_warps: Vec<(u32, u32)>,
    /// Some warps ran for so long after it that nobody waited for them.
    pub others_may_follow: bool,
    /// For memory traps: address of the first byte of the access.
    pub address: Option<u64>,
    /// For memory traps: bytes of the access.
    pub bytes: u32,
    /// What its address must be a multiple of, where that is not its bytes.
    pub align: Option<u32>,
    /// For memory traps: what it tried.
    pub access: Option<AccessKind>,
    /// For memory traps: state space of the instruction.
    pub space: Option<StateSpace>,
    /// Of an access to shared or local memory: which.
    pub own: Option<OwnMemory>,
    /// Text of an assertion or another detail, already a clause.
    pub detail: String,
    /// Who waits where.
    pub waiters: Vec<Waiter>,
}

impl TrapKind {
    /// What CUDA's driver interface calls it.
    pub fn driver_error(self) -> DriverError {
        match self {
            TrapKind::OutOfBounds | TrapKind::WriteProtected | TrapKind::BadObject => DriverError::ILLEGAL_ADDRESS,
            TrapKind::Misaligned => DriverError::MISALIGNED_ADDRESS,
            TrapKind::BadSpace => DriverError::INVALID_ADDRESS_SPACE,
            TrapKind::Assert => DriverError::ASSERT,
            TrapKind::Deadlock | TrapKind::Timeout => DriverError::LAUNCH_TIMEOUT,
            TrapKind::Stack => DriverError::HARDWARE_STACK_ERROR,
            TrapKind::BadCall => DriverError::INVALID_PC,
            TrapKind::BadTransfer | TrapKind::BadTensor => DriverError::ILLEGAL_INSTRUCTION,
            TrapKind::Trap | TrapKind::Barrier | TrapKind::Breakpoint | TrapKind::OutOfSurface => {
                DriverError::LAUNCH_FAILED
            }
        }
    }

    /// Whether it is a warp that traps, by itself: the other warps of its block can go on until they wait for it.
    pub fn is_of_one_warp(self) -> bool {
        match self {
            TrapKind::OutOfBounds
            | TrapKind::Misaligned
            | TrapKind::BadSpace
            | TrapKind::WriteProtected
            | TrapKind::Trap
            | TrapKind::Assert
            | TrapKind::Stack
            | TrapKind::BadTransfer
            | TrapKind::BadTensor
            | TrapKind::BadCall
            | TrapKind::BadObject
            | TrapKind::OutOfSurface
            | TrapKind::Barrier
            | TrapKind::Breakpoint => true,
            TrapKind::Deadlock | TrapKind::Timeout => false,
        }
    }
}

/// Traps of the warps of a block. Each warp stops where it traps, and the others go on until they trap, wait or end, so that the report does
/// not depend on who of them ran first.
#[derive(Clone, Debug, Default)]
pub struct WarpTraps {
    /// By warp.
    list: Vec<(u32, Box<Trap>)>,
}

impl WarpTraps {
    /// Whether no warp has trapped.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Takes the trap of a warp.
    pub fn add(&mut self, warp: u32, trap: Box<Trap>) {
        self.list.push((warp, trap));
    }

    /// The trap of the lowest warp, which counts the threads of the others that did the same. `all_done`: no warp was still running.
    #[inline]
    pub fn report(&mut self, all_done: bool) -> Option<Box<Trap>> {
        // Asked of each cta, and most have none.
        if self.list.is_empty() { None } else { self.lowest(all_done) }
    }

    fn lowest(&mut self, all_done: bool) -> Option<Box<Trap>> {
        let mut list = std::mem::take(&mut self.list);
        list.sort_by_key(|(warp, _)| *warp);
        let mut list = list.into_iter();
        let (_, mut first) = list.next()?;
        let same = list.filter(|(_, t)| (t.kind, t.span) == (first.kind, first.span));
        first.other_warps = same.map(|(warp, t)| (warp, 1 + t.other_lanes.count_ones())).collect();
        first.others_may_follow = !all_done;
        Some(first)
    }
}

impl Trap {
    /// How many threads of the block did the same, as far as they came.
    pub fn other_threads(&self) -> u32 {
        self.other_lanes.count_ones() + self.other_warps.iter().map(|(_, n)| n).sum::<u32>()
    }

    /// A trap without memory details.
    pub fn new(kind: TrapKind, span: Span, cta: [u32; 3], thread: [u32; 3]) -> Trap {
        Trap {
            kind,
            span,
            cta,
            thread,
            other_lanes: 0,
            other_warps: Vec::new(),
            others_may_follow: false,
            address: None,
            bytes: 0,
            align: None,
            access: None,
            space: None,
            own: None,
            detail: String::new(),
            waiters: Vec::new(),
        }
    }
}

/// What a branch by an index without a target says.
pub fn no_such_target(index: u64, targets: usize) -> String {
    format!("index {index} of a branch with {targets} targets")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_warp_is_told_and_the_others_counted() {
        let trap = |kind, other_lanes| Box::new(Trap { other_lanes, ..Trap::new(kind, Span::NONE, [0; 3], [0; 3]) });
        let mut traps = WarpTraps::default();
        assert!(traps.report(true).is_none());
        traps.add(3, trap(TrapKind::Trap, 0b110));
        traps.add(1, trap(TrapKind::Trap, 0));
        traps.add(2, trap(TrapKind::Misaligned, 0b110));
        let told = traps.report(true).unwrap();
        assert_eq!((told.other_lanes, told.other_warps.as_slice(), told.other_threads()), (0, &[(3, 3)][..], 3));
        assert!(traps.is_empty());
    }
}
