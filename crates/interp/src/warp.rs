//! What warp-synchronising ops compute, over arrays of 32 lanes and masks.
//!
//! `active` is the set of lanes that take part: those that arrived together. Bit `i` of a mask is lane `i`; entries of
//! lanes that are not active are not read, and are zero in results.

use handloom_ir::num;
use handloom_ir::simt::Op;
use handloom_ir::types::{AtomOp, ShflMode, VoteMode};

use crate::numbers::low32;

/// Lanes of a warp.
pub const WARP_SIZE: u32 = 32;

/// The lanes of a mask, lowest first.
pub fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..32_usize).filter(move |lane| mask >> lane & 1 == 1)
}

/// What a warp-synchronising op computes for the lanes that take part: `src` has the sources before the member mask, `dst` gets the results, each a
/// row of lanes. A predicate is 0 or 1 in both.
///
/// # Panics
/// Lanes do not wait for each other at the op, which is a fault of ours.
pub fn complete(op: Op, active: u32, src: &[[u64; 32]], dst: &mut [[u64; 32]]) {
    let narrow = |i: usize| src[i].map(low32);
    let bits = |mask: u32| std::array::from_fn(|lane| u64::from(mask >> lane & 1));
    let mut put = |rows: [[u64; 32]; 2]| dst.iter_mut().zip(rows).for_each(|(to, row)| *to = row);
    match op {
        Op::Matrix(op) => num::matrix::matrix(op, active, src, dst),
        Op::Shfl(mode) => {
            let (values, in_range) = shfl(mode, active, &[active; 32], &narrow(0), &narrow(1), &narrow(2));
            put([values.map(u64::from), bits(in_range)]);
        }
        Op::Vote(mode) => {
            put([[u64::from(vote(mode, active, true_lanes(&src[0]))); 32], [0; 32]]);
        }
        Op::Match { ty: _, all: false } => put([match_any(active, &src[0]).map(u64::from), [0; 32]]),
        Op::Match { ty: _, all: true } => {
            let (mask, same) = match_all(active, &src[0]);
            put([[u64::from(mask); 32], [u64::from(same); 32]]);
        }
        Op::Redux { op, signed } => put([[u64::from(redux(op, signed, active, &narrow(0))); 32], [0; 32]]),
        Op::Elect => {
            let leader = elect(active);
            put([[u64::from(leader); 32], bits(1 << leader)]);
        }
        Op::BarWarp => {}
        Op::Pure(_)
        | Op::Sreg(_)
        | Op::SymAddr(_)
        | Op::SharedAddr(_)
        | Op::ParamAddr { .. }
        | Op::SlotAddr(_)
        | Op::ArgAddr { .. }
        | Op::Cvta { .. }
        | Op::IsSpace(_)
        | Op::Load { .. }
        | Op::Store { .. }
        | Op::Atom { .. }
        | Op::Red { .. }
        | Op::Fence { .. }
        | Op::Activemask
        | Op::Nanosleep
        | Op::Builtin(_)
        | Op::Transfer(_)
        | Op::Stack(_)
        | Op::Image(_)
        | Op::Tensor(_)
        | Op::Mark
        | Op::Count(_) => unreachable!("bug: lanes wait for each other at {op:?}"),
    }
}

/// The lanes in which a predicate is true.
pub fn true_lanes(preds: &[u64; 32]) -> u32 {
    (0..WARP_SIZE).zip(preds).fold(0, |mask, (lane, p)| mask | low32(p & 1) << lane)
}

/// Whether a result of a warp-synchronising op is a predicate.
pub const fn is_predicate(op: Op, result: usize) -> bool {
    if let Op::Vote(mode) = op {
        return !matches!(mode, VoteMode::Ballot);
    }
    result == 1 && matches!(op, Op::Shfl(_) | Op::Match { .. } | Op::Elect)
}

/// `shfl`: the values that lanes get, and the mask of lanes whose source was in range. `with` says, by lane, who takes part in its exchange.
pub fn shfl(
    mode: ShflMode,
    active: u32,
    with: &[u32; 32],
    a: &[u32; 32],
    b: &[u32; 32],
    c: &[u32; 32],
) -> ([u32; 32], u32) {
    let mut values = [0; 32];
    let mut in_range = 0;
    for (lane, number) in (0..32_usize).zip(0_u32..) {
        if active >> lane & 1 == 0 {
            continue;
        }
        let (source, ok) = mode.source(number, b[lane], c[lane]);
        // Choice: the value of a lane that does not take part is undefined; we give the lane its own value.
        let source = if with[lane] >> source & 1 == 1 { source } else { number };
        values[lane] = a[index(source)];
        in_range |= u32::from(ok) << number;
    }
    (values, in_range)
}

/// A lane number as an index.
const fn index(lane: u32) -> usize {
    (lane & 31) as usize
}

/// `vote`: 0 or 1, or the mask of a ballot. Bit `i` of `preds` is the predicate of lane `i`.
///
/// # PTX ISA
/// Parallel Synchronization and Communication Instructions: vote.sync.
pub const fn vote(mode: VoteMode, active: u32, preds: u32) -> u32 {
    let trues = preds & active;
    match mode {
        VoteMode::All => (trues == active) as u32,
        VoteMode::Any => (trues != 0) as u32,
        VoteMode::Uni => (trues == active || trues == 0) as u32,
        VoteMode::Ballot => trues,
    }
}

/// `match.any`: for each lane, the lanes with the same value.
///
/// # PTX ISA
/// Parallel Synchronization and Communication Instructions: match.sync.
pub fn match_any(active: u32, values: &[u64; 32]) -> [u32; 32] {
    let mut masks = [0; 32];
    for lane in lanes(active) {
        for other in lanes(active) {
            masks[lane] |= u32::from(values[lane] == values[other]) << other;
        }
    }
    masks
}

/// `match.all`: all lanes and true if their values are the same, else no lanes and false.
pub fn match_all(active: u32, values: &[u64; 32]) -> (u32, bool) {
    let mut seen = lanes(active).map(|lane| values[lane]);
    let first = seen.next();
    let same = seen.all(|v| Some(v) == first);
    (if same { active } else { 0 }, same)
}

/// `redux` of 32-bit integers; `op` is one of `And`, `Or`, `Xor`, `Add`, `Min`, `Max`.
///
/// # PTX ISA
/// Parallel Synchronization and Communication Instructions: redux.sync.
///
/// # Panics
/// `op` is none of those, which is a fault of what built the op.
pub fn redux(op: AtomOp, signed: bool, active: u32, values: &[u32; 32]) -> u32 {
    // A signed order is the unsigned one with the sign bit flipped.
    let flip = if signed { 1 << 31 } else { 0 };
    let combine = |x: u32, y: u32| match op {
        AtomOp::And => x & y,
        AtomOp::Or => x | y,
        AtomOp::Xor => x ^ y,
        AtomOp::Add => x.wrapping_add(y),
        AtomOp::Min => (x ^ flip).min(y ^ flip) ^ flip,
        AtomOp::Max => (x ^ flip).max(y ^ flip) ^ flip,
        AtomOp::Inc | AtomOp::Dec | AtomOp::Exch | AtomOp::Cas | AtomOp::Step => {
            unreachable!("bug: `redux` has no {op:?}")
        }
    };
    lanes(active).map(|lane| values[lane]).reduce(combine).unwrap_or(0)
}

/// `elect`: the leader's lane.
///
/// # PTX ISA
/// Parallel Synchronization and Communication Instructions: elect.sync.
pub const fn elect(active: u32) -> u32 {
    // Choice: the manual asks for the same leader each time; we elect the lowest lane.
    active.trailing_zeros() & 31
}
