//! What each op on tensor memory does, but products.

use handloom_audit::Proxy;
use handloom_diag::Span;
use handloom_ir::mbarrier;
use handloom_ir::simt::tensor::{CellShape, Cells, CopyRows, LANES, Packed, TensorCopy, TensorOp};
use handloom_ir::simt::tile::{Field, Major, Tile};
use handloom_ir::trap::AccessKind;
use handloom_ir::types::StateSpace;

use super::held::Held;
use super::memory::{Address, Tensor, fault};
use super::product::product;
use crate::numbers::low32;
use crate::transfer::reach::{Fault, Part, Reach, barrier, find, in_cta, ranks};

/// Who does an op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Doer {
    /// Linear number of the thread in the CTA.
    pub thread: u32,
    /// The statement.
    pub span: Span,
}

/// What an op changed and returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// The results, in the order of the op.
    pub values: [u64; 8],
    /// Something changed that another thread may wait for.
    pub changed: bool,
}

impl Held {
    /// Does an op for a thread, or for the warp of a thread.
    ///
    /// # Errors
    /// The rule that it breaks; then nothing has changed.
    pub fn step(&self, op: TensorOp, src: &[u64], who: Doer, reach: &mut dyn Reach) -> Result<Done, Fault> {
        let mut done = Done::default();
        match op {
            TensorOp::Alloc { pair } => {
                let (columns, by) = (low32(src[0]), (who.span, who.thread));
                let (found, changed) = if pair {
                    let (mut own, mut other) = (self.lock(self.own()), self.lock(1 - self.own()));
                    own.allocate_pair(&mut other, columns, by)?
                } else {
                    let found = self.lock(self.own()).allocate(columns, by)?;
                    (found, found.is_some())
                };
                done.values[0] = u64::from(found.is_some());
                done.values[1] = u64::from(found.unwrap_or(0));
                done.changed = changed;
            }
            // Choice: each CTA of a pair deallocates by itself, and does not wait for the other one.
            TensorOp::Dealloc { .. } => {
                self.lock(self.own()).deallocate(Address::of(src[0]), low32(src[1]))?;
                done.changed = true;
            }
            TensorOp::Relinquish => self.lock(self.own()).relinquish(),
            TensorOp::Load(cells) => load(cells, src, who.thread, &self.lock(self.own()), &mut done.values)?,
            TensorOp::Store(cells) => {
                store(cells, src, who.thread, &mut self.lock(self.own()))?;
                done.changed = true;
            }
            TensorOp::Copy(what) => {
                reach.through(Proxy::Async);
                copy(what, src, self, reach)?;
                reach.through(Proxy::Generic);
                done.changed = true;
            }
            TensorOp::Shift { pair } => {
                shift(Address::of(src[0]), pair, self)?;
                done.changed = true;
            }
            TensorOp::Commit { .. } => {
                for at in barriers_of(op, src, reach)? {
                    reach.step(at, &mut |old| mbarrier::step(old, 1_u64.wrapping_neg()));
                }
                done.changed = true;
            }
            TensorOp::Product(p) => {
                reach.through(Proxy::Async);
                product(p, src, self, reach)?;
                reach.through(Proxy::Generic);
                done.changed = true;
            }
        }
        Ok(done)
    }
}

/// The first column of the cells that a thread loads or stores, and their first lane.
struct Window {
    lane: u32,
    columns: [u32; 2],
}

impl Window {
    fn of(cells: Cells, src: &[u64], thread: u32, t: &Tensor) -> Result<Window, Fault> {
        let first = Address::of(src[0]);
        let second = Address::of(src[1]);
        let warp = thread / 32;
        let own = 32 * (warp % 4);
        let rows = cells.shape.rows();
        if first.lane < own || first.lane + rows > own + 32 || !first.lane.is_multiple_of(16) {
            let last = first.lane + rows - 1;
            return Err(fault(format!(
                "the address names the lanes {} to {last} of tensor memory, and warp {warp} may access the lanes {own} to {}",
                first.lane,
                own + 31
            )));
        }
        // All cells of the part of the instruction that this op has.
        let per = if cells.halves { 2 } else { 1 };
        let (from, count) = (u32::from(cells.first), u32::from(cells.count));
        // The first and the last lane of a warp have the lowest and the highest word of a register.
        let words = (from..from + count).flat_map(|r| [0, 31].map(|lane| cells.shape.place(r, lane).word));
        let (low, high) = words.fold((u32::MAX, 0), |(low, high), w| (low.min(w), high.max(w)));
        let halves: &[Address] =
            if cells.shape == CellShape::X16b32x2 { &[first, second] } else { std::slice::from_ref(&first) };
        for address in halves {
            t.check("the access", address.column.saturating_add(per * low), per * (high - low + 1))?;
        }
        Ok(Window { lane: first.lane, columns: [first.column, second.column] })
    }

    /// Lane and column of a register.
    fn cell(&self, cells: Cells, i: u32, thread: u32) -> (u32, u32) {
        let place = cells.shape.place(u32::from(cells.first) + i, thread % 32);
        let per = if cells.halves { 2 } else { 1 };
        (self.lane + place.row, self.columns[usize::from(place.second)] + per * place.word)
    }
}

fn load(cells: Cells, src: &[u64], thread: u32, t: &Tensor, to: &mut [u64]) -> Result<(), Fault> {
    let window = Window::of(cells, src, thread, t)?;
    for (i, to) in (0..u32::from(cells.count)).zip(to) {
        let (lane, column) = window.cell(cells, i, thread);
        let low = t.cell(lane, column);
        *to = u64::from(if cells.halves { low & 0xffff | t.cell(lane, column + 1) << 16 } else { low });
    }
    Ok(())
}

fn store(cells: Cells, src: &[u64], thread: u32, t: &mut Tensor) -> Result<(), Fault> {
    let window = Window::of(cells, src, thread, t)?;
    for (i, value) in (0..).zip(&src[2..]) {
        let (lane, column) = window.cell(cells, i, thread);
        let value = low32(*value);
        if cells.halves {
            // Choice: the upper half of a cell of which the lower one is written becomes zero.
            t.set(lane, column, value & 0xffff);
            t.set(lane, column + 1, value >> 16);
        } else {
            t.set(lane, column, value);
        }
    }
    Ok(())
}

/// # PTX ISA
/// Optional Decompression.
fn unpacked(packed: Packed, bytes: [u8; 16]) -> [u8; 16] {
    let all = u128::from_le_bytes(bytes);
    std::array::from_fn(|i| match packed {
        Packed::Six => u8::try_from(all >> (6 * i) & 0x3f).unwrap_or(0),
        Packed::Four => u8::try_from(all >> (4 * i) & 0xf).unwrap_or(0) << 2,
    })
}

fn copy(what: TensorCopy, src: &[u64], held: &Held, reach: &mut dyn Reach) -> Result<(), Fault> {
    let (to, descriptor) = (Address::of(src[0]), src[1]);
    let Some(tile) = Tile::of_tensor(descriptor, Major::K) else {
        let mode = Field::TENSOR_MODE.of(descriptor);
        return Err(fault(format!("the descriptor of the matrix has the swizzling mode {mode}, which there is not")));
    };
    let n_columns = u32::from(what.bytes) / 4;
    // The four lanes of a copy to each warp may be any of them.
    let most = if what.rows == CopyRows::Four { 31 } else { 0 };
    if to.lane > most {
        return Err(fault(format!("the copy begins at lane {}, it begins at lane {most} at most", to.lane)));
    }
    let own = [held.own()];
    let ctas: &[usize] = if what.pair { &[0, 1] } else { &own };
    let mut all = Vec::new();
    for cta in ctas {
        held.lock(*cta).check("the copy", to.column, n_columns)?;
        let rank = what.pair.then(|| held.rank(u32::try_from(*cta).unwrap_or(0)));
        for (row, lane) in what.rows.places() {
            for unit in 0..u32::from(what.bytes) / 16 {
                let offset = u64::from(tile.address(row, 16 * unit));
                let (space, addr) = match rank {
                    None => (StateSpace::Shared, offset),
                    Some(rank) => (StateSpace::SharedCluster, in_cta(rank, offset)),
                };
                let from = find(reach, Part { kind: AccessKind::Read, space, addr, bytes: 16, align: 16 })?;
                all.push((*cta, to.lane + lane, to.column + 4 * unit, from));
            }
        }
    }
    for (cta, lane, column, from) in all {
        let mut bytes = [0; 16];
        reach.read(from, &mut bytes);
        let bytes = what.packed.map_or(bytes, |packed| unpacked(packed, bytes));
        let mut t = held.lock(cta);
        for (column, word) in (column..).zip(bytes.chunks_exact(4)) {
            t.set(lane, column, u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        }
    }
    Ok(())
}

/// Moves eight columns of 31 lanes.
///
/// Choice: down is to the lane below, so that the last lane keeps what it has, for a copy of four lanes to replace it; the manual has no figure of it.
fn shift(at: Address, pair: bool, held: &Held) -> Result<(), Fault> {
    if !at.lane.is_multiple_of(32) || at.lane >= LANES {
        return Err(fault(format!("the shift begins at lane {}, which is not 0, 32, 64 or 96", at.lane)));
    }
    let own = [held.own()];
    let ctas: &[usize] = if pair { &[0, 1] } else { &own };
    for cta in ctas {
        held.lock(*cta).check("the shift", at.column, 8)?;
    }
    for cta in ctas {
        let mut t = held.lock(*cta);
        for (lane, column) in
            (at.lane..at.lane + 31).flat_map(|lane| (at.column..at.column + 8).map(move |c| (lane, c)))
        {
            let next = t.cell(lane + 1, column);
            t.set(lane, column, next);
        }
    }
    Ok(())
}

/// The barriers that an op arrives at, by generic address.
pub(crate) fn barriers_of(op: TensorOp, src: &[u64], reach: &mut dyn Reach) -> Result<Vec<u64>, Fault> {
    let TensorOp::Commit { space, multicast } = op else { return Ok(vec![]) };
    let places = if multicast {
        let offset = if space == StateSpace::Generic { reach.env().cluster_offset(src[0]) } else { src[0] };
        ranks(src[1]).map(|r| (StateSpace::SharedCluster, in_cta(r, offset))).collect()
    } else {
        vec![(space, src[0])]
    };
    places.into_iter().map(|(space, addr)| barrier(reach, space, addr)).collect()
}
