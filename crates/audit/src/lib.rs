//! Finds data races in a run of a kernel, bits that nobody wrote and that decide something, strays out of variables, misuse of barriers.
//!
//! Takes: what threads do, in the order in which an engine does it ([`Audit`]): accesses, fences, barriers.
//!
//! Gives: [`Finding`]s: pairs of accesses that conflict, are not ordered by causality, and are not morally strong.
//!
//! Does not know: engines, memory itself, names of variables and arguments, files, how findings are shown.
//!
//! Races, bits and memory are looked at apart, as [`Checks`] ask for: `init`, `memory` and `misuse` know nothing of each other and of clocks.
//!
//! The rules of races are those of the *PTX ISA* chapter *Memory Consistency Model*, for the run that was seen. Kept to the letter are program order, barriers
//! of a block, `bar.warp.sync`, cluster barriers, release and acquire patterns with their scopes, the order of `fence.sc`, observation through
//! atomics, moral strength, mixed sizes. Nothing is reported of a program that the model calls free of races. What may be missed:
//! - what another schedule would show;
//! - races with accesses to a granule of four bytes that were forgotten because there were too many (`shadow`);
//! - of proxies: reads before writes of the async proxy, and all between two other proxies than the generic one (`proxy`); asynchronous copies count as if
//!   their thread did them when they happen;
//! - operations on `mbarrier` objects count as of the scope `.cluster` at least;
//! - a thread that exits counts as if it had arrived at the later barriers of its block that have no count;
//! - a strong read orders its thread after all strong writes to the location before it, not only those that it observes through atomics.
//!
//! To read it: `event` is what engines say, `known` and `clock` what a thread knows of others, `told` and `bag` what releases give to acquires, `shadow` what is
//! remembered of memory, `ctas` blocks that run, `order` what events do to clocks, `again` which of them need no look, `race` which pairs of accesses are told, `vain` the same for lanes that wait for a lock, `row` the same for a warp, `line` and `later` what is put off of that, `proxy` which of them want a proxy fence, `waits` who waits at `mbarrier` objects, `meetings` who meets at named barriers by accident, `finding` how; `footprint` what a launch touched as a whole, `before` what comes before the grids that its threads launch.

#![forbid(unsafe_code)]

mod again;
mod bag;
mod before;
mod checks;
mod clock;
mod ctas;
mod event;
mod exits;
mod finding;
mod footprint;
pub mod init;
mod known;
mod later;
mod line;
mod meetings;
pub mod memory;
pub mod misuse;
mod order;
pub mod proof;
mod proxy;
mod race;
mod row;
mod sequence;
mod shadow;
mod told;
mod vain;
mod waits;

pub use again::Count;
pub use before::Before;
pub use checks::{Check, Checks};
pub use event::{Access, Does, Event, Met, Proxy, ProxyFence, Site, Thread, Turn};
pub use finding::{Attempt, Class, Finding, Findings, Place};
pub use footprint::Touched;
pub use known::Time;
pub use line::Even;
pub use order::{Audit, Options};
pub use row::{Addrs, Row};
