//! Work that a stream is given in parts of which each comes after some of the others only, as the nodes of a graph: what comes before which.
//!
//! A stream does one thing after the other, and so its places are numbered in one row. A part has a name in another row, which it shares with parts that come
//! before it: to know of one place of a row is to know of all before it. Rows of a stream are used again by what it is given later.

use std::thread::{self, ThreadId};

/// A place in a queue: its number, and that of the place. Queue 0 is the host; rows of parts have numbers from [`ROWS`] on.
pub(super) type At = (u64, u64);

/// The first number of a row of parts.
pub(super) const ROWS: u64 = 1 << 63;

/// What is known of the parts that a stream is given just now.
pub(super) struct Parts {
    /// Who gives them. What others give the stream meanwhile comes after the parts that it has been given and before the others.
    by: ThreadId,
    /// What comes before all of them.
    base: At,
    /// By part: its last places, or those of the parts before it if it has none.
    ends: Vec<Vec<At>>,
    /// By row: its last part.
    rows: Vec<usize>,
    /// Row of the part that is being given.
    row: Option<usize>,
}

impl Parts {
    pub(super) fn new(base: At) -> Parts {
        Parts { by: thread::current().id(), base, ends: Vec::new(), rows: Vec::new(), row: None }
    }

    /// The next part comes after some before it.
    pub(super) fn next(&mut self, after: &[usize]) {
        let part = self.ends.len();
        let row = self.rows.iter().position(|last| after.contains(last)).unwrap_or(self.rows.len());
        if row == self.rows.len() {
            self.rows.push(part);
        } else {
            self.rows[row] = part;
        }
        self.row = Some(row);
        let mut ends: Vec<At> = after.iter().filter_map(|part| self.ends.get(*part)).flatten().copied().collect();
        ends.sort_unstable();
        ends.dedup();
        self.ends.push(ends);
    }

    /// No part is given any more.
    pub(super) fn end(&mut self) {
        self.row = None;
    }

    /// A place is put in: what comes right before it, and its row, if it belongs to a part.
    pub(super) fn put(&mut self, at: At) -> (Vec<At>, Option<usize>) {
        let row = self.row.filter(|_| self.by == thread::current().id());
        if row.is_some()
            && let Some(ends) = self.ends.last_mut()
        {
            let before = std::mem::replace(ends, vec![at]);
            return (before.into_iter().chain([self.base]).collect(), row);
        }
        let before = self.ends.iter().flatten().copied().chain([self.base]).collect();
        self.base = at;
        (before, None)
    }
}
