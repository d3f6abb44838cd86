//! The ops of the SIMT IR.
//!
//! [`Op`] holds the value ops ([`Pure`], a table of its own) and the ops that touch memory, other lanes, or the launch.

use serde::{Deserialize, Serialize};

use crate::types::*;

use super::count::Count;
use super::device_call::DeviceCall;
use super::ids::{FuncId, SlotId, SymId};
use super::image::ImageOp;
use super::matrix::MatrixOp;
use super::pure::Pure;
use super::tensor::TensorOp;
use super::transfer::Transfer;

/// Extent and ordering of a memory access.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Access {
    /// State space of the address: `Global`, `Const`, `ParamEntry`, `Local` and `Generic` take host addresses (`B64`);
    /// `Shared` takes offsets (`B32` or `B64`).
    pub space: StateSpace,
    /// Bits of one element: 8, 16, 32 or 64.
    pub bits: u8,
    /// Number of elements: 1, 2, 4 or 8. The address must be a multiple of the whole access.
    pub count: u8,
    /// Bit i set: element i is read or written (a sink `_` clears it).
    pub elements: u8,
    /// How it is ordered with other accesses.
    pub order: Order,
    /// Scope of a strong access.
    pub scope: Scope,
    /// `.b128`: the two 64-bit elements are one single-copy atomic access when strong.
    pub is_single: bool,
    /// It goes through the async proxy.
    pub is_async: bool,
}

impl Access {
    /// A weak access to one element of `bits`.
    pub const fn weak(space: StateSpace, bits: u8) -> Access {
        Access::weak_vector(space, bits, 1)
    }

    /// A weak access to all of `count` elements of `bits`.
    pub const fn weak_vector(space: StateSpace, bits: u8, count: u8) -> Access {
        let elements = ((1_u32 << count) - 1) as u8;
        Access {
            space,
            bits,
            count,
            elements,
            order: Order::Weak,
            scope: Scope::Cta,
            is_single: false,
            is_async: false,
        }
    }

    /// Size of the whole access in bytes.
    pub const fn bytes(self) -> u32 {
        self.bits as u32 / 8 * self.count as u32
    }
}

/// An atomic read-modify-write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AtomAccess {
    /// What is done with the old value and the operands.
    pub op: AtomOp,
    /// Type the operation reads its operands as.
    pub ty: ScalarType,
    /// `Global`, `Shared` or `Generic`.
    pub space: StateSpace,
    /// How it is ordered with other accesses.
    pub order: Order,
    /// Among which threads it is atomic.
    pub scope: Scope,
    /// Number of elements: 1, 2, 4 or 8; each is atomic on its own.
    pub count: u8,
}

impl AtomAccess {
    /// The access to one element.
    pub fn element(self) -> Access {
        let AtomAccess { ty, space, order, scope, .. } = self;
        Access { order, scope, ..Access::weak(space, ty.bits() as u8) }
    }
}

/// All ops. The comment names sources and results.
///
/// Ops with a *guard* take an optional last source of type P: lanes whose guard is 0 do nothing and keep their results.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Op {
    /// A value op.
    Pure(Pure),
    /// -> value of a special register (B32, or B64 for the 64-bit ones)
    Sreg(Sreg),
    /// -> generic address of a module variable in `.global` or `.const`, or the handle of a function (B64)
    SymAddr(SymId),
    /// -> offset of a `.shared` variable in the cta's shared memory (B64)
    SharedAddr(SymId),
    /// -> host address of byte `offset` of the entry's parameters (B64)
    ParamAddr {
        /// Byte offset.
        offset: u32,
    },
    /// -> host address of a slot of this function's frame in the thread's local memory (B64)
    SlotAddr(SlotId),
    /// -> host address of the incoming arguments of a function: byte `offset` of its parameter block (B64)
    ArgAddr {
        /// Byte offset in the block: parameters first, then results.
        offset: u32,
    },
    /// generic address -> address in `space` (`to_space`), or the other way round; only `Shared` and `SharedCluster` change the value (B64)
    Cvta {
        /// The state space at the other end.
        space: StateSpace,
        /// From generic to the space.
        to_space: bool,
    },
    /// address -> P: a generic address lies in the space
    IsSpace(StateSpace),
    /// address, (guard) -> elements; a load. Results have type `B16` (8 and 16 bits, zero-extended), `B32` or `B64`; one result for each
    /// element, sinks included. `offset` is added to the address.
    Load {
        /// Extent and ordering.
        access: Access,
        /// Byte offset added to the address.
        offset: i64,
    },
    /// address, elements.., (guard) -> nothing; a store
    Store {
        /// Extent and ordering.
        access: Access,
        /// Byte offset added to the address.
        offset: i64,
    },
    /// address, operand(s).., (guard) -> old value(s); `cas` takes compare then new value. For `count` > 1 all elements follow each other.
    Atom {
        /// What is done, with how many elements of which type.
        access: AtomAccess,
        /// Byte offset added to the address.
        offset: i64,
    },
    /// address, operand(s).., (guard) -> nothing
    Red {
        /// What is done, with how many elements of which type.
        access: AtomAccess,
        /// Byte offset added to the address.
        offset: i64,
    },
    /// Orders memory; `sc` fences are total.
    Fence {
        /// `Sc`, `AcqRel`, `Acquire` or `Release`.
        order: Order,
        /// Among which threads it orders.
        scope: Scope,
    },
    /// value (B32), lane (B32), clamp (B32), membermask (B32) -> value (B32), P
    Shfl(ShflMode),
    /// P, membermask (B32) -> P, or B32 for `Ballot`
    Vote(VoteMode),
    /// value, membermask (B32) -> mask (B32), P for `all`
    Match {
        /// Type of the value.
        ty: Ty,
        /// `.all`, else `.any`.
        all: bool,
    },
    /// value (B32), membermask (B32) -> value (B32)
    Redux {
        /// `And`, `Or`, `Xor`, `Add`, `Min` or `Max`.
        op: AtomOp,
        /// Sign for `min` and `max`.
        signed: bool,
    },
    /// membermask (B32) -> leader's lane (B32), P: this lane is the leader
    Elect,
    /// registers of matrices, membermask (B32) -> registers of matrices
    Matrix(MatrixOp),
    /// membermask (B32): waits for the named lanes and orders their memory
    BarWarp,
    /// -> mask of the lanes that execute it together (B32)
    Activemask,
    /// time in ns (B32): lets others run
    Nanosleep,
    /// address of the argument block (B64) -> nothing: calls a function that Handloom provides. Arguments and the result are in the block
    Builtin(Builtin),
    /// addresses and others, (guard) -> nothing; a copy, store or reduction that may complete later
    Transfer(Transfer),
    /// Memory on the stack of the thread whose size is known at run time.
    Stack(StackOp),
    /// Textures and surfaces.
    Image(ImageOp),
    /// Tensor memory.
    Tensor(TensorOp),
    /// (guard) -> nothing: the lanes begin a statement. Only modules whose launches are counted have it ([`Module::statements`](super::Module)).
    Mark,
    /// Counts. Only functions that a counted launch runs compiled have it ([`Counts`](super::Counts)).
    Count(Count),
}

/// What is done with the part of local memory that grows down from its end, towards the frames of calls.
///
/// # PTX ISA
/// Stack Manipulation Instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum StackOp {
    /// -> lowest address in use (B64)
    Save,
    /// address that `Save` gave (B64) -> nothing; what was allocated since then is free
    Restore,
    /// bytes (B64) -> address of that many bytes (B64)
    Alloca {
        /// Alignment of the address in bytes, a power of two.
        align: u32,
    },
}

/// A function that Handloom provides to programs. Arguments and result lie in the outgoing argument block (source 0 is its address).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Builtin {
    /// `vprintf(format, arguments) -> i32`.
    Vprintf,
    /// `__assertfail(message, file, line, function, char_size)`.
    Assertfail,
    /// `malloc(size) -> pointer`.
    Malloc,
    /// `free(pointer)`.
    Free,
    /// A function of CUDA's device runtime.
    Device {
        /// Which.
        call: DeviceCall,
        /// Stream 0 is that of the thread, not that of its block.
        per_thread: bool,
    },
}

/// A direct or indirect call target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Callee {
    /// A function of the module.
    Direct(FuncId),
    /// Through the value in the call's first source (B64), a function handle.
    Indirect,
}

impl Op {
    /// Whether the op waits for the lanes of a member mask. Such an op is the last of its block.
    pub const fn is_warp_sync(self) -> bool {
        matches!(
            self,
            Op::Shfl(_) | Op::Vote(_) | Op::Match { .. } | Op::Redux { .. } | Op::Matrix(_) | Op::Elect | Op::BarWarp
        )
    }

    /// Whether the op computes values only and may be removed when they are unused.
    pub const fn is_value(self) -> bool {
        matches!(
            self,
            Op::Pure(_)
                | Op::SymAddr(_)
                | Op::SharedAddr(_)
                | Op::ParamAddr { .. }
                | Op::SlotAddr(_)
                | Op::ArgAddr { .. }
                | Op::Cvta { .. }
                | Op::IsSpace(_)
        )
    }
}
