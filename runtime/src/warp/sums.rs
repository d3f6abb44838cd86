//! Sums in device memory that nobody may look at before the code is left, collected line by line.

use crate::memory::access;

/// Words of a line.
const WORDS: usize = 16;
const LINE_BYTES: u64 = 64;
/// Lines that are collected at one time, a power of two.
const LINES: usize = 64;

/// What is to be added to the words of a line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u32; WORDS]);

/// Sums on their way to device memory.
///
/// # Invariant
/// A word that is not 0 stands for a word of device memory that was tested for the access.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    /// Empty until something is added.
    lines: Vec<Line>,
    /// By line: the number of the line of memory.
    of: Vec<u64>,
    /// By line: whether there is something in it.
    used: u64,
}

impl Sums {
    /// Adds to the words from an address on, which is a multiple of 4, those of a row, where lanes of a mask take part.
    pub(crate) fn add(&mut self, address: u64, row: &[u32; 32], lanes: u32) {
        if self.lines.is_empty() {
            self.lines = vec![Line([0; WORDS]); LINES];
            self.of = vec![0; LINES];
        }
        let mut taken = *row;
        if lanes != u32::MAX {
            taken.iter_mut().enumerate().for_each(|(lane, v)| *v &= 0_u32.wrapping_sub(lanes >> lane & 1));
        }
        let (mut address, mut row, mut lanes) = (address, &taken[..], lanes);
        while lanes != 0 {
            let first = (address % LINE_BYTES / 4) as usize;
            let n = (WORDS - first).min(row.len());
            if lanes & u32::MAX >> (32 - n) != 0 {
                let line = self.line(address / LINE_BYTES);
                line.0[first..first + n].iter_mut().zip(row).for_each(|(to, v)| *to = to.wrapping_add(*v));
            }
            lanes = lanes.checked_shr(n as u32).unwrap_or(0);
            row = &row[n..];
            address = address.wrapping_add(4 * n as u64);
        }
    }

    /// A line of memory; that which has its place goes to memory.
    fn line(&mut self, number: u64) -> &mut Line {
        let i = (number % LINES as u64) as usize;
        if self.of[i] != number || self.used >> i & 1 == 0 {
            self.write(i);
            self.of[i] = number;
            self.used |= 1 << i;
        }
        &mut self.lines[i]
    }

    /// Adds what was collected to device memory: before anybody else looks at it.
    #[inline]
    pub(crate) fn flush(&mut self) {
        while self.used != 0 {
            self.write(self.used.trailing_zeros() as usize);
        }
    }

    fn write(&mut self, i: usize) {
        if self.used >> i & 1 == 0 {
            return;
        }
        self.used &= !(1 << i);
        let base = self.of[i] * LINE_BYTES;
        for (k, v) in std::mem::replace(&mut self.lines[i], Line([0; WORDS])).0.into_iter().enumerate() {
            if v == 0 {
                continue;
            }
            // SAFETY: by the invariant, code has tested this aligned word for the access, as it does before it touches memory itself.
            unsafe { access::fetch_add(base + 4 * k as u64, 4, v.into()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use handloom_interp::pace::splitmix;

    use super::*;

    #[test]
    fn collected_sums_are_those_of_single_additions() {
        // Lines that share a place, rows that begin anywhere, lanes that take no part.
        let mut memory = vec![0_u32; 3 * LINES * WORDS + 64];
        let mut want = memory.clone();
        let base = memory.as_mut_ptr().expose_provenance() as u64;
        let mut sums = Sums::default();
        let mut state = 1;
        for turn in 0..5000_u64 {
            let mut next = || splitmix(&mut state) as u32;
            let (at, lanes) = (next() as usize % (want.len() - 32), next() | if turn % 3 == 0 { u32::MAX } else { 0 });
            let row: [u32; 32] = std::array::from_fn(|_| next());
            sums.add(base + 4 * at as u64, &row, lanes);
            for lane in (0..32).filter(|l| lanes >> l & 1 == 1) {
                want[at + lane] = want[at + lane].wrapping_add(row[lane]);
            }
            if turn % 1000 == 999 {
                sums.flush();
                assert_eq!(memory, want, "after {turn} rows");
            }
        }
    }
}
