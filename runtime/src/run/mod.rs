//! What a launch and those around it say to each other: stop, progress, text, the order of blocks, tiers of code and the wait for them, silence, who is told, traces, clocks; and threads of the program that do our work.
//!
//! None of it knows memory, modules or grids.

mod backend;
mod beside;
mod clock;
mod output;
mod quiet;
mod recompile;
mod stop;
mod sums;
mod teller;
pub(crate) mod thread;
mod tier;
mod trace;

pub use backend::Backend;
pub use beside::Beside;
pub(crate) use beside::OfStream;
pub(crate) use clock::Moment;
pub(crate) use handloom_interp::order::StartOrder as Order;
pub(crate) use output::Printer;
pub use output::Sink;
pub(crate) use quiet::{HostWaits, Running, Silence, asked};
pub(crate) use recompile::Recompile;
pub(crate) use stop::Watchdog;
pub use stop::{Progress, StopHandle};
pub(crate) use sums::{Counted, SPACES, Sums};
pub(crate) use teller::Teller;
pub use thread::UsualFloats;
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) use thread::swap_control;
pub use tier::Tier;
pub(crate) use trace::{Launched, TurnLog, Turns};
pub use trace::{Trace, Traced};
