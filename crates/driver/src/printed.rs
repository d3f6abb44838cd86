//! What kernels of a context print, on its way to standard output.
//!
//! It appears while a call of the program waits for work, at once: who watches a long kernel sees how far it is, and a program that is stopped has shown what it
//! printed. While no call waits it is kept, so that it stands behind what the program itself prints before it waits, as on a GPU; but no more of it than
//! the buffer of a GPU holds at first, since a kernel may print for hours.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use handloom_runtime::Sink;

/// Bytes of text that are kept while nobody waits: what the buffer of a GPU holds at first. There newer text takes the place of older.
const MOST_KEPT: usize = 1 << 20;

/// Text of the kernels of a context.
#[derive(Default)]
pub struct Printed {
    kept: Mutex<Vec<u8>>,
    /// Calls that wait for work of the context.
    waits: AtomicUsize,
}

impl Printed {
    /// Takes what kernels print.
    pub fn sink(self: &Arc<Printed>) -> Sink {
        let to = Arc::clone(self);
        Sink::new(move |new| {
            let mut kept = to.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(new);
            if to.waits.load(Ordering::SeqCst) > 0 || kept.len() > MOST_KEPT {
                write_out(&mut kept);
            }
        })
    }

    /// Waits for work: what was printed appears, and what is printed meanwhile.
    pub fn while_waiting<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.waits.fetch_add(1, Ordering::SeqCst);
        self.show();
        let waited = wait();
        self.waits.fetch_sub(1, Ordering::SeqCst);
        self.show();
        waited
    }

    /// Writes what is kept to standard output.
    pub fn show(&self) {
        write_out(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn write_out(text: &mut Vec<u8>) {
    if !text.is_empty() {
        let mut out = std::io::stdout();
        let _ = out.write_all(text).and_then(|()| out.flush());
        text.clear();
    }
}
