//! The table of names: what is exported, since which version of the interface, and whether it works. `build.rs` writes it from `api/driver.txt`.

use handloom_driver::stream::Null;

use crate::ptr::{Addr, In, Out};

/// The address of an exported function.
#[derive(Clone, Copy, Debug)]
pub struct Symbol(*const ());

// SAFETY: it is a number to everyone who has it: nothing is read through it, and it never changes.
unsafe impl Sync for Symbol {}

impl Symbol {
    /// The number.
    pub fn address(self) -> u64 {
        self.0.expose_provenance() as u64
    }
}

/// An exported function.
#[derive(Debug)]
pub struct Row {
    /// Its documented name.
    pub name: &'static str,
    /// The symbol.
    pub symbol: &'static str,
    /// The version of the interface that brought it.
    pub since: u32,
    /// Whether it is more than a name.
    pub works: bool,
    /// The symbol and address of the form that means the default stream of the calling thread.
    pub twin: Option<(&'static str, Symbol)>,
    /// Its address.
    pub address: Symbol,
    /// Its parameters, as the documentation has them.
    pub params: &'static str,
}

/// The version of the interface from which on there are default streams of threads.
pub const PER_THREAD_SINCE: u32 = 7000;

/// The function of a documented name that a program of a version means, or why there is none: the name is not known, or newer.
///
/// # Errors
/// Whether the name is known at all.
pub fn find(name: &str, version: u32) -> Result<&'static Row, bool> {
    let all = || ROWS.iter().filter(|r| r.name == name);
    let old_enough = all().filter(|r| r.since <= version);
    // Of a name in several forms, the newest that the program knows.
    let found = old_enough.max_by_key(|r| r.since);
    found.ok_or_else(|| all().next().is_some())
}

include!(concat!(env!("OUT_DIR"), "/exports.rs"));
