//! Second matrices that were laid out before. The four warps of a warpgroup multiply by the same ones, and each of them lays out all of it: they take turns
//! after some products.
//!
//! Invariants: a matrix is found by the op and by all words that it is made of, bit for bit. What it is laid out to depends on nothing else.

use std::cell::RefCell;

use handloom_ir::simt::Blocks;

use super::Row;
use super::blocks::Line;

/// How many matrices are kept: those of a depth of 128 numbers of 16 bits.
const MATRICES: usize = 8;

/// A matrix.
struct LaidOut {
    /// For whom, and for how many lanes of a vector.
    op: Option<(Blocks, usize)>,
    /// Of some of its words.
    sign: u64,
    /// What it was made of.
    from: Vec<Row>,
    words: Vec<Line>,
}

/// Those of a thread.
struct Kept {
    matrices: [LaidOut; MATRICES],
    /// The one that was looked for last.
    last: usize,
}

thread_local! {
    static KEPT: RefCell<Kept> = const {
        RefCell::new(Kept {
            matrices: [const { LaidOut { op: None, sign: 0, from: Vec::new(), words: Vec::new() } }; MATRICES],
            last: 0,
        })
    };
}

/// Whether the calling thread can keep matrices: one that ends loses those that it had.
pub(super) fn is_there() -> bool {
    KEPT.try_with(|_| ()).is_ok()
}

/// A few words of every fourth row: what differs there need not be compared.
///
/// # Safety
/// `rows` are all of `b`.
#[inline(always)]
unsafe fn sign_of(rows: &[*const Row]) -> u64 {
    let mut sign = 0_u64;
    let mut i = 0;
    while i < rows.len() {
        // SAFETY: by the promise of the caller; a row has 16 pairs of words.
        let pair = unsafe { rows[i].cast::<u64>().add(i / 4 % 16).read_unaligned() };
        sign = sign.rotate_left(7) ^ pair;
        i += 4;
    }
    sign
}

/// Whether two matrices of as many rows have the same words. There is no branch before the end: whoever asks has reason to think so.
///
/// # Safety
/// As for [`sign_of`].
#[inline(always)]
unsafe fn are_equal(kept: &[Row], rows: &[*const Row]) -> bool {
    let mut differs = [0; 32];
    for i in 0..rows.len() {
        // SAFETY: by the promise of the caller.
        let row = unsafe { &*rows[i] };
        for lane in 0..32 {
            differs[lane] |= kept[i][lane] ^ row[lane];
        }
    }
    let mut any = 0;
    for lane in 0..32 {
        any |= differs[lane];
    }
    any == 0
}

/// Room for the words of a matrix, which is the same until eight others were asked for, and whether they are there; else they are to be written there.
///
/// # Safety
/// `rows` are all of `b`.
#[inline(always)]
pub(super) unsafe fn find((op, lanes): (Blocks, usize), rows: &[*const Row], words: usize) -> (*mut u32, bool) {
    // No closure may compute: it would not have the features of the host.
    let kept = KEPT.with(RefCell::as_ptr);
    // SAFETY: nobody else of this thread has a reference to it, since none outlives this function; rows by the promise of the caller.
    unsafe {
        let Kept { matrices, last } = &mut *kept;
        let sign = sign_of(rows);
        for i in 1..=MATRICES {
            let at = (*last + i) % MATRICES;
            let m = &mut matrices[at];
            if m.sign == sign && m.op == Some((op, lanes)) && are_equal(&m.from, rows) {
                *last = at;
                return (m.words.as_mut_ptr().cast(), true);
            }
        }
        *last = (*last + 1) % MATRICES;
        let m = &mut matrices[*last];
        (m.op, m.sign) = (Some((op, lanes)), sign);
        m.from.resize(rows.len(), [0; 32]);
        for i in 0..rows.len() {
            m.from[i] = *rows[i];
        }
        m.words.resize(words.div_ceil(16), Line([0; 16]));
        (m.words.as_mut_ptr().cast(), false)
    }
}
