//! What a transfer needs of memory, and what it says when it is refused.

use handloom_audit::Proxy;
use handloom_diag::Span;
use handloom_ir::num::whole::{self, Rows};
use handloom_ir::simt::Element;
use handloom_ir::trap::{AccessKind, Trap, TrapKind};
use handloom_ir::types::{AtomOp, CLUSTER_STRIDE, ScalarType, StateSpace};

use crate::atom::{atom_value, flushes};
use crate::env::CtaEnv;
use crate::numbers::low32;
use crate::under_way::Who;

/// Bytes that a transfer wants to access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// What for.
    pub kind: AccessKind,
    /// State space of the address: `Global`, `Shared`, `SharedCluster` or `Generic`.
    pub space: StateSpace,
    /// The first byte.
    pub addr: u64,
    /// How many.
    pub bytes: u32,
    /// What the address must be a multiple of.
    pub align: u32,
}

/// What a transfer of one thread can reach.
pub trait Reach {
    /// The launch as the CTA sees it.
    fn env(&self) -> &CtaEnv;

    /// Generic address of bytes that may be accessed.
    ///
    /// # Errors
    /// Why they may not.
    fn locate(&mut self, part: &Part) -> Result<u64, TrapKind>;

    /// The state space that a generic address falls into.
    fn space(&mut self, addr: u64) -> StateSpace;

    /// Reads bytes that were located.
    fn read(&mut self, at: u64, to: &mut [u8]);

    /// Writes bytes that were located.
    fn write(&mut self, at: u64, from: &[u8]);

    /// Bytes that were read at `from` have been written to `to`: what is remembered of them goes along.
    fn copied(&mut self, from: u64, to: u64, bytes: u64) {
        let _ = (from, to, bytes);
    }

    /// Replaces 1, 2, 4 or 8 bytes that were located by a function of them, in one step.
    fn update(&mut self, at: u64, bytes: u32, new: &mut dyn FnMut(u64) -> u64);

    /// Reads sixteen bytes at each of some distances from a place; all were located.
    fn read_units(&mut self, base: u64, distances: &[u32], to: &mut [[u8; 16]]) {
        for (distance, to) in distances.iter().zip(to) {
            self.read(base + u64::from(*distance), to);
        }
    }

    /// [`Rows::add`], by the quickest code that gives the same bits.
    fn add_rows(&self, rows: &mut Rows<'_>) {
        rows.add();
    }

    /// [`widen`](whole::widen) likewise, but for the bits of a NaN.
    fn widen(&self, e: Element, bits: &mut [u32]) {
        whole::widen(e, bits);
    }

    /// Bytes were read or written before, and only now has their thread waited for that: for who looks at the order of accesses it is done now.
    fn done_by_now(&mut self, at: u64, bytes: u64, writes: bool) {
        let _ = (at, bytes, writes);
    }

    /// What follows is done for another thread, which began it; then for itself again.
    fn act_for(&mut self, who: Option<Who>) {
        let _ = who;
    }

    /// What follows reaches memory by this way.
    fn through(&mut self, proxy: Proxy) {
        let _ = proxy;
    }

    /// The number of this moment for an audit, when a thread begins what comes later.
    fn begin(&mut self, thread: u32) -> u32 {
        let _ = thread;
        0
    }

    /// The bits of an `mbarrier` object, as the machine sees them.
    fn look(&mut self, at: u64) -> u64 {
        let mut word = [0; 8];
        self.read(at, &mut word);
        u64::from_le_bytes(word)
    }

    /// Does the same to an `mbarrier` object.
    fn step(&mut self, at: u64, new: &mut dyn FnMut(u64) -> u64) {
        self.update(at, 8, new);
    }
}

/// Why a transfer is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The kind of trap.
    pub kind: TrapKind,
    /// The access, if it is one that was refused.
    pub part: Option<Part>,
    /// A clause, where the kind wants one.
    pub detail: String,
    /// The statement, if it isn't the one that was executed when the fault was found.
    pub at: Option<Span>,
}

impl Fault {
    pub(super) fn rule(detail: String) -> Fault {
        Fault::of(TrapKind::BadTransfer, detail)
    }

    /// One that is not about an access.
    pub(crate) fn of(kind: TrapKind, detail: String) -> Fault {
        Fault { kind, part: None, detail, at: None }
    }

    /// Puts what is known into a trap of its kind. `falls_into`: the space of the address as a generic one.
    pub fn tell(self, trap: &mut Trap, env: &CtaEnv, thread: u32, falls_into: impl FnOnce(u64) -> StateSpace) {
        trap.detail = self.detail;
        trap.span = self.at.unwrap_or(trap.span);
        if let Some(Part { kind, space, addr, bytes, align }) = self.part {
            let generic = falls_into(addr);
            trap.address = Some(addr);
            trap.bytes = bytes;
            trap.align = Some(align);
            trap.access = Some(kind);
            trap.space = Some(space);
            trap.own = env.aim(thread, space, addr, generic);
            if self.kind == TrapKind::BadSpace {
                trap.detail = format!("the address lies in `.{}`", generic.name());
            }
        }
    }
}

/// Writes bytes to a place, those of a mask of 16, or reduces elements there.
pub(super) fn put(reach: &mut dyn Reach, at: u64, bytes: &[u8], mask: u16, reduce: Option<(AtomOp, ScalarType)>) {
    if let Some((op, ty)) = reduce {
        return reduce_at(reach, at, bytes, op, ty);
    }
    if mask == u16::MAX {
        return reach.write(at, bytes);
    }
    for (chunk, at) in bytes.chunks(16).zip((at..).step_by(16)) {
        for (i, byte) in (0..).zip(chunk).filter(|(i, _)| mask >> i & 1 == 1) {
            reach.write(at + i, &[*byte]);
        }
    }
}

/// Reduces elements at a place by others. Each is one step.
pub(super) fn reduce_at(reach: &mut dyn Reach, at: u64, bytes: &[u8], op: AtomOp, ty: ScalarType) {
    let ftz = flushes(ty, reach.space(at));
    let size = ty.bytes();
    let elements = bytes.chunks(usize::try_from(size).unwrap_or(1));
    for (element, at) in elements.zip((at..).step_by(usize::try_from(size).unwrap_or(1))) {
        let mut word = [0; 8];
        word[..element.len()].copy_from_slice(element);
        let value = u64::from_le_bytes(word);
        reach.update(at, size, &mut |old| atom_value(op, ty, ftz, old, value, 0));
    }
}

/// Barriers by generic address, and the bytes that have come.
pub(super) type Told = Vec<(u64, u64)>;

/// A located address, or the fault.
pub(crate) fn find(reach: &mut dyn Reach, part: Part) -> Result<u64, Fault> {
    reach.locate(&part).map_err(|kind| Fault { kind, part: Some(part), detail: String::new(), at: None })
}

/// The same for a generic address that must lie in shared memory.
pub(super) fn find_shared(reach: &mut dyn Reach, part: Part) -> Result<u64, Fault> {
    find_in(reach, part, &[StateSpace::Shared, StateSpace::SharedCluster])
}

/// The same for one that must lie in one of some state spaces.
pub(super) fn find_in(reach: &mut dyn Reach, part: Part, spaces: &[StateSpace]) -> Result<u64, Fault> {
    let at = find(reach, part)?;
    if spaces.contains(&reach.space(at)) {
        Ok(at)
    } else {
        Err(Fault { kind: TrapKind::BadSpace, part: Some(part), detail: String::new(), at: None })
    }
}

/// The object of an `mbarrier`.
pub(crate) fn barrier(reach: &mut dyn Reach, space: StateSpace, addr: u64) -> Result<u64, Fault> {
    find_shared(reach, Part { kind: AccessKind::Atomic, space, addr, bytes: 8, align: 8 })
}

pub(super) fn multiple_of_16(bytes: u32) -> Result<u32, Fault> {
    if bytes.is_multiple_of(16) {
        Ok(bytes)
    } else {
        Err(Fault::rule(format!("the size of {bytes} bytes is no multiple of 16")))
    }
}

/// The place of the same offset in a CTA of the cluster, as a `.shared::cluster` address.
pub(crate) fn in_cta(rank: u32, offset: u64) -> u64 {
    (u64::from(rank) + 1) * CLUSTER_STRIDE + offset % CLUSTER_STRIDE
}

/// The CTAs of a mask.
pub(crate) fn ranks(mask: u64) -> impl Iterator<Item = u32> {
    (0..16).filter(move |r| mask >> r & 1 == 1)
}

/// Whether an op of the type table can be done on elements of a tensor.
pub(super) fn reduces(op: AtomOp, ty: ScalarType) -> bool {
    use ScalarType::{B32, B64, BF16, F16, F32, S32, S64, U32, U64};
    match op {
        AtomOp::Add => matches!(ty, U32 | S32 | U64 | F32 | F16 | BF16),
        AtomOp::Min | AtomOp::Max => matches!(ty, U32 | S32 | U64 | S64 | F16 | BF16),
        AtomOp::Inc | AtomOp::Dec => ty == U32,
        AtomOp::And | AtomOp::Or | AtomOp::Xor => matches!(ty, B32 | B64 | U32 | S32 | U64 | S64),
        AtomOp::Exch | AtomOp::Cas | AtomOp::Step => false,
    }
}

/// Sources of a type that has 32 bits hold it zero-extended; a coordinate has a sign.
pub(super) fn signed(word: u64) -> i64 {
    i64::from(low32(word).cast_signed())
}
