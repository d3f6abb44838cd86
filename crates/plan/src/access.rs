//! What an access to memory is, in one place: for every generator of code, and for the analyses.
//!
//! An access is *simple* if a plain instruction of the host does what its order asks for: see `AccessClass::is_simple`. What is not simple is
//! done by the routine, which knows all rules. The questions below it build on that one.

use handloom_diag::Span;
use handloom_ir::simt::{Access, Inst, Op, Val};
use handloom_ir::types::{AtomOp, Order, ScalarType, Scope, StateSpace};

use crate::analysis::shape::Shape;

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Reads memory, and writes registers.
    Load,
    /// Writes memory.
    Store,
    /// Reads, computes and writes as one: an `atom` or a `red` of this operation and type.
    Atomic(AtomOp, ScalarType),
}

/// Whether an access may be to the local memory of the thread that does it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Own {
    /// Its space is another one.
    Never,
    /// A generic address may be anywhere.
    Perhaps,
    /// Nothing else is in its space.
    Always,
}

/// What an access is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccessClass {
    /// What it does.
    pub kind: Kind,
    /// State space of the address.
    pub space: StateSpace,
    /// Bits of an element.
    pub bits: u8,
    /// Number of elements.
    pub count: u8,
    /// Which of them are wanted.
    pub elements: u8,
    /// How it is ordered with other accesses.
    pub order: Order,
    /// Scope of a strong access.
    pub scope: Scope,
    /// Both elements of 64 bits are one access that nobody may see in part.
    pub is_single: bool,
    /// It goes through the async proxy.
    pub is_async: bool,
    /// Added to the address.
    pub offset: i64,
    /// The address.
    pub address: Val,
    /// Lanes may take no part.
    pub is_guarded: bool,
    /// An audit is told of it, so that the routine does it.
    pub is_told: bool,
    /// It is an atomic whose lanes keep to the seed's order: the routine does it where they are several.
    pub is_in_order: bool,
    /// The statement.
    pub span: Span,
}

/// Accesses of lanes anywhere that code of a function still does in place, counted as they are emitted.
///
/// One takes as long to compile as ten statements and more: those in loops are worth it, and the first few of others. The rest go to the routine, or to code that a function has once.
#[derive(Clone, Copy, Debug)]
pub struct InPlace {
    /// Outside of loops.
    pub outside: u32,
    /// In them.
    pub in_loops: u32,
}

impl Default for InPlace {
    fn default() -> InPlace {
        InPlace { outside: 16, in_loops: 64 }
    }
}

impl InPlace {
    /// Whether one more is done in place; it counts.
    pub fn takes(&mut self, is_in_loop: bool) -> bool {
        let left = if is_in_loop { &mut self.in_loops } else { &mut self.outside };
        let takes = *left > 0;
        *left -= u32::from(takes);
        takes
    }
}

impl AccessClass {
    /// The access of an instruction, if it has one, where nobody is told.
    #[inline]
    pub fn of(inst: &Inst) -> Option<AccessClass> {
        match inst.op {
            Op::Load { .. } | Op::Store { .. } | Op::Atom { .. } | Op::Red { .. } => AccessClass::of_access(inst),
            _ => None,
        }
    }

    fn of_access(inst: &Inst) -> Option<AccessClass> {
        let address = *inst.src.first()?;
        let (is_guarded, span) = (inst.guard().is_some(), inst.span);
        let moved = |kind, a: Access, offset| {
            let Access { space, bits, count, elements, order, scope, is_single, is_async } = a;
            AccessClass {
                kind,
                space,
                bits,
                count,
                elements,
                order,
                scope,
                is_single,
                is_async,
                offset,
                address,
                is_guarded,
                is_told: false,
                is_in_order: false,
                span,
            }
        };
        Some(match inst.op {
            Op::Load { access, offset } => moved(Kind::Load, access, offset),
            Op::Store { access, offset } => moved(Kind::Store, access, offset),
            Op::Atom { access, offset } | Op::Red { access, offset } => {
                let kind = Kind::Atomic(access.op, access.ty);
                let elements = u8::MAX >> (8 - access.count);
                AccessClass { count: access.count, elements, ..moved(kind, access.element(), offset) }
            }
            _ => return None,
        })
    }

    /// The load or store as an op, for tables.
    ///
    /// # Panics
    /// Of an atomic.
    pub fn op(&self) -> Op {
        let AccessClass { space, bits, count, elements, order, scope, is_single, is_async, offset, .. } = *self;
        let access = Access { space, bits, count, elements, order, scope, is_single, is_async };
        match self.kind {
            Kind::Load => Op::Load { access, offset },
            Kind::Store => Op::Store { access, offset },
            Kind::Atomic(..) => panic!("an atomic is no load or store"),
        }
    }

    /// Bytes of the whole access. The address is a multiple of them.
    pub fn bytes(&self) -> i64 {
        i64::from(self.bits) / 8 * i64::from(self.count)
    }

    /// Whether it writes.
    pub fn writes(&self) -> bool {
        !matches!(self.kind, Kind::Load)
    }

    /// Whether all elements are wanted. Those that nobody wants may lie anywhere, also outside an allocation.
    pub fn wants_all(&self) -> bool {
        self.elements == u8::MAX >> (8 - self.count)
    }

    /// Whether plain instructions of the host do a load or store as its order asks: they do not for what nobody may see in part, and not for
    /// `.mmio`, which happens exactly as often as it is written.
    pub(crate) fn is_simple(&self) -> bool {
        // Of strong accesses: a single copy is no two words, and for a generic address the routine finds out the space first.
        let asks_more = self.order.is_strong() && (self.is_single || self.space == StateSpace::Generic);
        !(matches!(self.kind, Kind::Atomic(..)) || self.order == Order::Mmio || asks_more || self.is_told)
    }

    /// Whether its bounds may be tested together with those of other accesses of its block: it happens wherever the block is executed by all lanes,
    /// and all of it is wanted.
    pub fn may_be_tested_jointly(&self) -> bool {
        self.is_simple() && self.is_of_data() && self.wants_all() && !self.is_guarded && self.offset % self.bytes() == 0
    }

    /// Whether its space is one that holds data of the program.
    pub(crate) fn is_of_data(&self) -> bool {
        matches!(self.space, StateSpace::Global | StateSpace::Generic | StateSpace::Shared)
    }

    /// Whether it reads what nobody writes while the kernel runs: it may be done earlier or later, and again.
    pub fn is_read_only(&self) -> bool {
        self.kind == Kind::Load
            && matches!(self.space, StateSpace::Const | StateSpace::ParamEntry)
            && self.order == Order::Weak
    }

    /// Whether what several lanes read at one address is one value: another thread cannot write it between the lanes, or cannot be seen to.
    pub fn reads_alike(&self) -> bool {
        self.kind == Kind::Load
            && self.order == Order::Weak
            && self.wants_all()
            && (self.is_read_only() || self.count == 1)
    }

    /// Whether all lanes of a group have the alignment of its lowest address, and are in ascending order, in groups that are not too many.
    pub fn is_regular(&self, address: &Shape) -> bool {
        address.is_regular(self.bytes())
    }

    /// Whether it may be to the thread's own local memory.
    pub fn own(&self) -> Own {
        match self.space {
            StateSpace::Local | StateSpace::ParamFunc => Own::Always,
            StateSpace::Generic => Own::Perhaps,
            StateSpace::Global
            | StateSpace::Const
            | StateSpace::Shared
            | StateSpace::SharedCluster
            | StateSpace::ParamEntry
            | StateSpace::Reg
            | StateSpace::Sreg
            | StateSpace::Tex => Own::Never,
        }
    }

    /// Whether all lanes are inside their own local memory if one is: they are as far apart as the local memory of threads.
    pub fn is_own_by_lane(&self, address: &Shape, local_stride: i64) -> bool {
        self.own() != Own::Never
            && address.is_linear()
            && address.stride == local_stride
            && local_stride % self.bytes() == 0
            && local_stride >= self.bytes()
    }

    /// Whether an atomic is done inline: integers of 32 and 64 bits in shared memory of a lone cta, or in global memory where the host has the
    /// op.
    pub fn is_inline_atomic(&self, in_cluster: bool) -> bool {
        use AtomOp::*;
        use ScalarType::{B32, B64, S32, S64, U32, U64};
        let Kind::Atomic(op, ty) = self.kind else { return false };
        self.count == 1
            && !self.is_told
            && matches!(ty, B32 | U32 | S32 | B64 | U64 | S64)
            && matches!(op, Add | And | Or | Xor | Exch | Min | Max | Cas)
            && match self.space {
                StateSpace::Shared => !in_cluster,
                StateSpace::Global => true,
                _ => false,
            }
    }
}
