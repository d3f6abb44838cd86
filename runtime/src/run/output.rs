//! What kernels print: put in order while they run.
//!
//! Text comes in the order of blocks, cluster by cluster. What the lowest block that has not ended prints goes on at once; what others print waits
//! until all blocks before them have ended. When a launch ends early, what is left follows, in order.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex};

use crate::lock::lock;

/// Takes text that a kernel printed. It is called while the kernel runs, by one thread at a time; the kernel waits for it.
#[derive(Clone)]
pub struct Sink(Arc<Take>);

type Take = dyn Fn(&[u8]) + Send + Sync;

impl Sink {
    /// A sink that calls a function.
    pub fn new(take: impl Fn(&[u8]) + Send + Sync + 'static) -> Sink {
        Sink(Arc::new(take))
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sink")
    }
}

/// Puts the text of one launch in order.
#[derive(Debug)]
pub(crate) struct Printer {
    sink: Sink,
    state: Mutex<State>,
}

/// Blocks are known by their number in the order of text.
#[derive(Debug, Default)]
struct State {
    /// The lowest block that has not ended.
    next: u64,
    /// Blocks behind it that have ended: bit `i` of word `w` is block `base + 64 * w + i`.
    ended: VecDeque<u64>,
    base: u64,
    /// Text that waits, by block.
    waiting: BTreeMap<u64, Vec<u8>>,
}

impl Printer {
    pub(crate) fn new(sink: Sink) -> Printer {
        Printer { sink, state: Mutex::default() }
    }

    /// A launch starts.
    pub(crate) fn begin(&self) {
        *lock(&self.state) = State::default();
    }

    /// A block prints.
    pub(crate) fn print(&self, block: u64, text: &[u8]) {
        let mut state = lock(&self.state);
        if block <= state.next {
            (self.sink.0)(text);
        } else {
            state.waiting.entry(block).or_default().extend_from_slice(text);
        }
    }

    /// A block has ended. That may be said again.
    pub(crate) fn end(&self, block: u64) {
        let mut state = lock(&self.state);
        state.note_end(block);
        while state.step() {
            let next = state.next;
            if let Some(text) = state.waiting.remove(&next) {
                (self.sink.0)(&text);
            }
        }
    }

    /// The launch has ended: what is left goes out.
    pub(crate) fn finish(&self) {
        let rest = std::mem::take(&mut lock(&self.state).waiting);
        rest.values().for_each(|text| (self.sink.0)(text));
    }
}

impl State {
    fn note_end(&mut self, block: u64) {
        if block < self.next {
            return;
        }
        let (word, bit) = ((block - self.base) / 64, block % 64);
        let Ok(word) = usize::try_from(word) else { return };
        if self.ended.len() <= word {
            self.ended.resize(word + 1, 0);
        }
        self.ended[word] |= 1 << bit;
    }

    /// Goes on to the next block if this one has ended.
    fn step(&mut self) -> bool {
        let ended = self.ended.front().is_some_and(|word| word >> (self.next % 64) & 1 == 1);
        if ended {
            self.next += 1;
            if self.next.is_multiple_of(64) {
                self.ended.pop_front();
                self.base = self.next;
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printer() -> (Printer, Arc<Mutex<String>>) {
        let text = Arc::<Mutex<String>>::default();
        let to = Arc::clone(&text);
        (Printer::new(Sink::new(move |t| lock(&to).push_str(std::str::from_utf8(t).unwrap()))), text)
    }

    #[test]
    fn the_lowest_block_is_heard_at_once_and_others_in_turn() {
        let (p, text) = printer();
        p.print(1, b"b");
        p.print(0, b"a");
        assert_eq!(*lock(&text), "a");
        p.print(2, b"d");
        p.end(1);
        p.print(0, b"A");
        assert_eq!(*lock(&text), "aA");
        p.end(0);
        assert_eq!(*lock(&text), "aAbd");
        p.print(2, b"D");
        assert_eq!(*lock(&text), "aAbdD");
        p.print(9, b"z");
        p.print(5, b"y");
        p.finish();
        assert_eq!(*lock(&text), "aAbdDyz");
    }

    #[test]
    fn blocks_may_end_in_any_order() {
        for step in [1, 3, 77, 199] {
            let (p, text) = printer();
            for i in 0..200 {
                let block = i * step % 200;
                p.print(block, format!("{block} ").as_bytes());
                p.end(block);
                p.end(block);
            }
            let want: String = (0..200).map(|i| format!("{i} ")).collect();
            assert_eq!(*lock(&text), want);
        }
    }
}
