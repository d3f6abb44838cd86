//! The counters of a cta in flight.

use std::sync::Arc;

use handloom_diag::Span;
use handloom_interp::barrier::Released;
use handloom_ir::simt::{Does, Touch};
use handloom_profile::rules::{Lane, WORD};
use handloom_profile::{Space, Traffic, Waits, Warps};

use super::context::Ctx;
use super::host::{BarWait, CtaHost};
use crate::run::{Counted as Found, Sums};

/// Offsets of shared memory whose words are counted in a table.
const MOST_SHARED: u64 = 1 << 20;

/// The counters of one cta in flight, and of those that use its memory after it.
#[derive(Debug)]
pub(crate) struct Counted {
    sums: Arc<Sums>,
    found: Found,
}

impl Counted {
    pub(crate) fn new(sums: &Arc<Sums>) -> Counted {
        Counted { sums: Arc::clone(sums), found: sums.nothing() }
    }

    /// Whether it counts for a launch.
    pub(crate) fn is_of(&self, sums: &Arc<Sums>) -> bool {
        Arc::ptr_eq(&self.sums, sums)
    }

    /// Address of the words.
    pub(crate) fn words(&mut self) -> u64 {
        self.found.words.as_mut_ptr().expose_provenance() as u64
    }

    /// Lanes of a warp access a space together.
    pub(crate) fn access(&mut self, number: u32, touch: Touch, space: Space, lanes: &[Lane]) {
        let by = |step: u64| lanes.windows(2).all(|w| w[1].1 == w[0].1 + step);
        let is_atomic = touch.does == Does::Atomic && !lanes.is_empty();
        let is_row = is_atomic && by(u64::from(touch.bytes));
        let is_of_words = || lanes.iter().all(|(_, at)| at % WORD == 0 && *at < MOST_SHARED);
        if is_atomic && !is_row && space == Space::Shared && is_of_words() {
            let words = self.found.words_of_shared.entry(number).or_default();
            let one = if u64::from(touch.bytes) == WORD {
                words.request(lanes)
            } else {
                words.add(lanes);
                Traffic::of_request_quickly((space, touch.does, touch.bytes), lanes)
            };
            self.found.access(number, space).add(&one);
            return;
        }
        let one = Traffic::of_request_quickly((space, touch.does, touch.bytes), lanes);
        self.found.access(number, space).add(&one);
        let (true, Some((_, first)), n) = (is_atomic, lanes.first().copied(), lanes.len() as u64) else { return };
        if is_row {
            self.found.rows.entry((number, n)).or_default().add(first, 1);
            return;
        }
        let addresses = self.found.addresses.entry(number).or_default();
        if by(0) {
            addresses.add(first, n);
        } else {
            lanes.iter().for_each(|(_, at)| addresses.add(*at, 1));
        }
    }

    /// Lanes do their part of an access that follows from the address of lane 0.
    pub(crate) fn masked(&mut self, number: u32, mask: u32, residue: u32) {
        *self.found.masked.entry((number, mask, residue)).or_default() += 1;
    }

    /// An asynchronous copy reads or writes bytes.
    pub(crate) fn copy(&mut self, span: Span, bytes: usize) {
        *self.found.copies.entry(span).or_default() += bytes as u64;
    }

    /// All warps are let go from one statement.
    pub(crate) fn meet_all(&mut self, warps: impl Iterator<Item = Work> + Clone, span: Span) {
        let (mut n, mut sum, mut most) = (0, 0, 0);
        for work in warps.clone() {
            let since = work.since();
            (n, sum, most) = (n + 1, sum + since, since.max(most));
            work.meet();
        }
        self.found.waits_at(span).add(&Waits { warps: n, work: sum, waited: n * most - sum });
    }

    /// Warps are let go by a barrier together, each from a statement.
    pub(crate) fn meet(&mut self, warps: impl Iterator<Item = (Work, Span)>) {
        let met: Vec<(Work, u64, Span)> = warps.map(|(work, span)| (work, work.since(), span)).collect();
        let most = met.iter().map(|(_, n, _)| *n).max().unwrap_or(0);
        for (work, n, span) in met {
            self.found.waits_at(span).add(&Waits { warps: 1, work: n, waited: most - n });
            work.meet();
        }
    }

    /// A cta has ended.
    pub(crate) fn end(&mut self, warps: impl Iterator<Item = Work>) {
        let (mut count, mut sum, mut most) = (0, 0, 0);
        for work in warps {
            let n = work.take();
            if n > 0 {
                count += 1;
            }
            (sum, most) = (sum + n, n.max(most));
        }
        self.found.warps.add(&Warps { count, work: sum, busiest: count * most });
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.sums.add(&self.found);
    }
}

/// The two words of a context that say what its warp has executed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work(*mut [u64; 2]);

impl Work {
    /// Those at an offset that tables name.
    pub(crate) fn of(ctx: Ctx, at: u32) -> Work {
        Work(ctx.warp.cast::<u8>().wrapping_add(at as usize).cast())
    }

    /// Statements since the warp last met others.
    fn since(self) -> u64 {
        // SAFETY: the words lie in the context, at a multiple of 8, and no code runs on it while the runtime does.
        let [all, before] = unsafe { *self.0 };
        all - before
    }

    /// The warp executes so many more.
    pub(crate) fn add(self, statements: u64) {
        // SAFETY: as in `since`.
        unsafe { (*self.0)[0] += statements }
    }

    fn meet(self) {
        // SAFETY: as in `since`.
        unsafe { (*self.0)[1] = (*self.0)[0] }
    }

    /// All statements; the next warp begins anew.
    pub(crate) fn take(self) -> u64 {
        // SAFETY: as in `since`.
        unsafe { std::mem::take(&mut *self.0)[0] }
    }
}

impl CtaHost {
    /// Warps are let go by barriers outside of code.
    pub(crate) fn count_meeting(&mut self, released: &[Released]) {
        // SAFETY: tables belong to the program, and are never written.
        let at = unsafe { &*self.base_tables }.work;
        let (Some(counted), Some(at)) = (&mut self.counted, at) else { return };
        let mut met: Vec<(u32, Work, Span)> = Vec::new();
        for r in released {
            let waits = |w: &&BarWait| w.warp == r.warp && w.id == r.id && w.lanes & r.lanes != 0;
            if let Some(wait) = self.waiting.iter().filter(waits).min_by_key(|w| (w.lanes & r.lanes).trailing_zeros()) {
                met.push((r.id, Work::of(self.base.at(r.warp, self.base_tables), at), wait.site().span));
            }
        }
        while let Some((id, ..)) = met.first().copied() {
            counted.meet(met.extract_if(.., |(of, ..)| *of == id).map(|(_, work, span)| (work, span)));
        }
    }
}
