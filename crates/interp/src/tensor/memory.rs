//! The tensor memory of a CTA: its cells, and who has allocated which columns. All of a device that is in use.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use handloom_diag::Span;
use handloom_ir::simt::tensor::{COLUMNS, LANES};
use handloom_ir::trap::{Trap, TrapKind};

use crate::env::CtaEnv;
use crate::numbers::low32;
use crate::transfer::reach::Fault;

use super::aligned::Aligned;

/// Columns of an allocation are a multiple of this.
const UNIT: u32 = 32;

/// What fresh cells hold.
// Choice: what an allocation holds is undefined. It is the pattern of fresh shared memory.
const FRESH: u32 = 0xa5a5_a5a5;

/// A column and a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Address {
    pub(super) lane: u32,
    pub(super) column: u32,
}

impl Address {
    pub(super) fn of(source: u64) -> Address {
        let word = low32(source);
        Address { lane: word >> 16, column: word & 0xffff }
    }

    /// Of scales, whose byte of the column the instruction descriptor says.
    ///
    /// Choice: the upper two bits do not count. The manual does not say so; public libraries have that byte there too.
    pub(super) fn of_scales(source: u64) -> Address {
        Address::of(source & !(3 << 30))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Allocation {
    first: u32,
    columns: u32,
    /// What allocated it: the statement and the thread.
    by: (Span, u32),
}

/// The tensor memory of a CTA.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// By lane, then by column.
    cells: Aligned,
    allocations: Vec<Allocation>,
    /// Allocations that were given back.
    returned: u32,
    /// The CTA has given up its right to allocate.
    relinquished: bool,
    /// Columns that the CTA asked for together with the other one of its pair.
    wanted: Option<u32>,
    /// What the other one allocated for it.
    granted: Option<u32>,
}

impl Default for Tensor {
    fn default() -> Tensor {
        let n = usize::try_from(LANES * COLUMNS).unwrap_or(0);
        Tensor {
            cells: Aligned::filled(FRESH, n),
            allocations: Vec::new(),
            returned: 0,
            relinquished: false,
            wanted: None,
            granted: None,
        }
    }
}

pub(super) fn fault(detail: String) -> Fault {
    Fault::of(TrapKind::BadTensor, detail)
}

fn index(lane: u32, column: u32) -> usize {
    usize::try_from(lane * COLUMNS + column).unwrap_or(usize::MAX)
}

impl Tensor {
    /// A cell that [`check`](Tensor::check) passed.
    pub(super) fn cell(&self, lane: u32, column: u32) -> u32 {
        self.cells[index(lane, column)]
    }

    pub(super) fn set(&mut self, lane: u32, column: u32, value: u32) {
        self.cells[index(lane, column)] = value;
    }

    /// Cells of a lane that follow each other.
    pub(super) fn row(&self, lane: u32, column: u32, count: u32) -> &[u32] {
        &self.cells[index(lane, column)..index(lane, column + count)]
    }

    /// The same, to be written.
    pub(super) fn row_mut(&mut self, lane: u32, column: u32, count: u32) -> &mut [u32] {
        &mut self.cells[index(lane, column)..index(lane, column + count)]
    }

    /// Cells of lanes that follow each other, of which each has [`COLUMNS`]: from those of the first to those of the last.
    pub(super) fn rows_mut(&mut self, lanes: Range<u32>, column: u32, count: u32) -> &mut [u32] {
        &mut self.cells[index(lanes.start, column)..index(lanes.end - 1, column + count)]
    }

    /// The statement and the thread that allocated what nobody has deallocated.
    pub(super) fn left(&self) -> Option<(Span, u32)> {
        self.allocations.first().map(|a| a.by)
    }

    /// How many allocations were given back so far.
    pub(super) fn returned(&self) -> u32 {
        self.returned
    }

    /// Whether columns are allocated. `what`: what is there.
    pub(super) fn check(&self, what: &str, column: u32, count: u32) -> Result<(), Fault> {
        let end = column + count;
        let mut at = column;
        while at < end {
            let Some(a) = self.allocations.iter().find(|a| (a.first..a.first + a.columns).contains(&at)) else {
                let range =
                    if count == 1 { format!("column {column}") } else { format!("columns {column} to {}", end - 1) };
                return Err(fault(format!(
                    "{what} takes {range} of tensor memory, of which column {at} is not allocated"
                )));
            };
            at = a.first + a.columns;
        }
        Ok(())
    }

    /// Columns of a size that are free, the lowest ones.
    fn free(&self, columns: u32, other: Option<&Tensor>) -> Option<u32> {
        let is_free = |first: u32, t: &Tensor| {
            t.allocations.iter().all(|a| first + columns <= a.first || a.first + a.columns <= first)
        };
        let fits = |first: &u32| is_free(*first, self) && other.is_none_or(|t| is_free(*first, t));
        (0..=COLUMNS - columns).step_by(UNIT as usize).find(fits)
    }

    fn take(&mut self, first: u32, columns: u32, by: (Span, u32)) {
        self.allocations.push(Allocation { first, columns, by });
    }

    /// Whether a CTA may ask for so many columns.
    fn may_allocate(&self, columns: u32) -> Result<(), Fault> {
        whole(columns)?;
        if self.relinquished {
            return Err(fault("the block has relinquished its right to allocate tensor memory".into()));
        }
        Ok(())
    }

    /// Allocates columns, if they are free.
    // Choice: that a CTA allocates no more columns than the last time, as the manual wants it, is not asked for.
    pub(super) fn allocate(&mut self, columns: u32, by: (Span, u32)) -> Result<Option<u32>, Fault> {
        self.may_allocate(columns)?;
        let found = self.free(columns, None);
        if let Some(first) = found {
            self.take(first, columns, by);
        }
        Ok(found)
    }

    /// Allocates columns for a pair of CTAs, once both have asked and they are free in both. The second answer: whether something changed.
    pub(super) fn allocate_pair(
        &mut self,
        other: &mut Tensor,
        columns: u32,
        by: (Span, u32),
    ) -> Result<(Option<u32>, bool), Fault> {
        self.may_allocate(columns)?;
        if let Some(first) = self.granted.take() {
            self.wanted = None;
            self.take(first, columns, by);
            return Ok((Some(first), true));
        }
        if other.granted.is_some() {
            // The other one has not come to take what was allocated together the last time.
            return Ok((None, false));
        }
        let Some(theirs) = other.wanted else {
            let changed = self.wanted.replace(columns) != Some(columns);
            return Ok((None, changed));
        };
        if theirs != columns {
            return Err(fault(format!("the blocks of a pair ask for {columns} and for {theirs} columns")));
        }
        let found = self.free(columns, Some(other));
        let changed = found.is_some() || self.wanted.is_none();
        self.wanted = Some(columns);
        if let Some(first) = found {
            self.take(first, columns, by);
            self.wanted = None;
            other.granted = Some(first);
        }
        Ok((found, changed))
    }

    pub(super) fn deallocate(&mut self, at: Address, columns: u32) -> Result<(), Fault> {
        whole(columns)?;
        let known = |a: &Allocation| at.lane == 0 && (a.first, a.columns) == (at.column, columns);
        let Some(i) = self.allocations.iter().position(known) else {
            let Address { lane, column } = at;
            let text = format!("there is no allocation of {columns} columns at column {column} and lane {lane}");
            return Err(fault(text));
        };
        self.allocations.remove(i);
        self.returned += 1;
        Ok(())
    }

    pub(super) fn relinquish(&mut self) {
        self.relinquished = true;
    }
}

/// Whether it is a number of columns of an allocation.
fn whole(columns: u32) -> Result<(), Fault> {
    if columns.is_power_of_two() && (UNIT..=COLUMNS).contains(&columns) {
        return Ok(());
    }
    Err(fault(format!("{columns} columns: it must be a power of two from {UNIT} to {COLUMNS}")))
}

pub(super) type One = Arc<Mutex<Tensor>>;

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All tensor memory of a device that is in use.
#[derive(Debug, Default)]
pub struct Tensors {
    /// Whether there ever was any: CTAs that start ask for it.
    any: AtomicBool,
    /// By the base of the shared memory of the CTA.
    of: Mutex<BTreeMap<u64, One>>,
}

impl Tensors {
    pub(super) fn find(&self, base: u64) -> One {
        self.any.store(true, Ordering::Relaxed);
        Arc::clone(lock(&self.of).entry(base).or_default())
    }

    /// Forgets what a CTA had at this place, before another one starts there.
    #[inline]
    pub fn forget(&self, base: u64) {
        if !self.is_empty() {
            lock(&self.of).remove(&base);
        }
    }

    /// Whether no CTA ever had any.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Relaxed)
    }

    /// Forgets what a CTA had that has ended, and returns the trap if it had not deallocated all of it.
    pub fn end(&self, env: &CtaEnv) -> Option<Box<Trap>> {
        if self.is_empty() {
            return None;
        }
        let one = lock(&self.of).remove(&env.shared_base)?;
        let (span, thread) = lock(&one).left()?;
        let mut trap = Trap::new(TrapKind::BadTensor, span, env.ctaid, env.tid(thread));
        trap.detail = "the block ended without `tcgen05.dealloc` of what this allocated".into();
        Some(Box::new(trap))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY: (Span, u32) = (Span::NONE, 0);

    #[test]
    fn columns_are_dealt_out_and_come_back() {
        let mut t = Tensor::default();
        assert_eq!(t.allocate(256, BY), Ok(Some(0)));
        assert_eq!(t.allocate(128, BY), Ok(Some(256)));
        assert_eq!(t.allocate(256, BY), Ok(None));
        assert_eq!(t.allocate(32, BY), Ok(Some(384)));
        assert!(t.check("x", 250, 160).is_ok());
        assert!(t.check("x", 250, 167).is_err());
        assert!(t.deallocate(Address { lane: 0, column: 0 }, 128).is_err());
        assert!(t.deallocate(Address { lane: 0, column: 0 }, 256).is_ok());
        assert!(t.check("x", 255, 2).is_err());
        assert_eq!(t.allocate(64, BY), Ok(Some(0)));
        for bad in [0, 16, 48, 1024] {
            assert!(t.allocate(bad, BY).is_err());
        }
        t.relinquish();
        assert!(t.allocate(32, BY).is_err());
    }

    #[test]
    fn a_pair_allocates_when_both_have_asked() {
        let (mut a, mut b) = (Tensor::default(), Tensor::default());
        assert_eq!(a.allocate_pair(&mut b, 64, BY), Ok((None, true)));
        assert_eq!(a.allocate_pair(&mut b, 64, BY), Ok((None, false)));
        assert_eq!(b.allocate_pair(&mut a, 64, BY), Ok((Some(0), true)));
        // Who comes again at once waits until the other one has taken its part.
        assert_eq!(b.allocate_pair(&mut a, 32, BY), Ok((None, false)));
        assert_eq!(a.allocate_pair(&mut b, 64, BY), Ok((Some(0), true)));
        assert_eq!(b.allocate_pair(&mut a, 32, BY), Ok((None, true)));
        assert!(a.allocate_pair(&mut b, 128, BY).is_err());
    }
}
