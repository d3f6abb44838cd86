//! Panics as data: a panic anywhere is a fault of ours, and is told like one.

use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};
use std::sync::{Mutex, PoisonError};

/// A panic that was caught.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Panic {
    /// Its text, without the word `bug`.
    pub message: String,
    /// The line of our source.
    pub place: Option<String>,
}

impl Panic {
    /// A fault that was given back as text.
    pub fn new(text: &str) -> Panic {
        let text = text.trim_start_matches("bug: ");
        // Behind the first line stands a dump of the function.
        Panic { message: text.lines().next().unwrap_or(text).trim().to_owned(), place: None }
    }
}

/// The first panic that nobody has asked for yet. It may be one of another thread.
static LAST: Mutex<Option<Panic>> = Mutex::new(None);

/// Keeps panics from printing.
pub fn install() {
    set_hook(Box::new(keep));
}

fn keep(info: &PanicHookInfo<'_>) {
    let mut panic = Panic::new(info.payload_as_str().unwrap_or("a panic without a text"));
    panic.place = info.location().map(|l| format!("{}:{}", short(l.file()), l.line()));
    LAST.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
}

/// A path of a source file from its package on.
fn short(path: &str) -> &str {
    for root in ["/crates/", "/runtime/", "/library/"] {
        if let Some(at) = path.find(root).filter(|_| path.starts_with('/')) {
            return &path[at + 1..];
        }
    }
    match path.split_once("/registry/src/") {
        Some((_, package)) => package.split_once('/').map_or(package, |(_, p)| p),
        None => path,
    }
}

/// Runs work that may panic.
///
/// # Errors
/// The panic.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Panic> {
    // Whoever catches a panic drops what the work was about.
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| {
        let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).take();
        last.unwrap_or_else(|| Panic::new("a panic without a text"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_our_tree() {
        assert_eq!(short("/somewhere/crates/lower/src/a.rs"), "crates/lower/src/a.rs");
        assert_eq!(short("crates/lower/src/a.rs"), "crates/lower/src/a.rs");
        assert_eq!(short("/somewhere/registry/src/index-1/clap-4/src/a.rs"), "clap-4/src/a.rs");
    }

    #[test]
    fn a_dump_is_no_part_of_the_message() {
        assert_eq!(Panic::new("bug: codegen: no\nfunction u0:0").message, "codegen: no");
    }
}
