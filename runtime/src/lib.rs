//! Device memory, modules, launches, and the scheduling of blocks.
//!
//! Takes: PTX text or SIMT IR, a launch shape, arguments. Gives: a [`LaunchReport`], or why there is none.
//! Does not know: what an instruction means (that is `interp` and `codegen`), files, the command line.
//!
//! ```no_run
//! use handloom_runtime::{Arg, Device, LaunchConfig, Module, launch};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::new()?;
//! let module = Module::from_text(&device, "scale.ptx", &std::fs::read_to_string("scale.ptx")?)?;
//! let scale = module.function(Some("scale"))?;
//! let data = device.copy_of(&1.0_f32.to_le_bytes())?;
//! let report = launch(&scale, &LaunchConfig::new([1, 1, 1], [32, 1, 1]), &[Arg::from(&data), Arg::from(2.0_f32)])?;
//! println!("{:?}", report.run);
//! # Ok(())
//! # }
//! ```
//!
//! Invariants:
//! - launching is safe: a wrong launch is a sentence, a bad kernel a trap, and no kernel writes outside device memory;
//! - `unsafe` stands here and in the loader of `codegen` only, each block with the reason why it is sound;
//! - with one thread and seed 0, blocks start in ascending order, and two runs of a race-free program give the same bytes;
//! - a routine that compiled code calls does not unwind.
//!
//! How to read it, from the bottom up; a folder uses only what stands before it (`tests/tidy.rs` holds that). `error` is what can go wrong, `finding` what a check found, `run` what
//! a launch and those around it say to each other, `memory` who owns which addresses, `kept` which code modules and processes share, `device` all of it for all modules, `module` what is loaded,
//! `children` what threads launch, `grid` a launch as its engine sees it, `warp` the state of warps, `rows` the routines of compiled code, `sched` who runs when, `engine` the
//! reference executor, `trap` the reports, `launch` what a run is, `stream` work that is done later; `words` reads what people write.

mod children;
mod device;
mod engine;
mod error;
mod finding;
mod grid;
mod heap;
mod kept;
mod launch;
mod lock;
mod memory;
mod module;
mod rows;
mod run;
mod sched;
mod stream;
mod trap;
mod warp;
pub mod words;

pub use children::DeviceFacts;
pub use device::{Device, DeviceBuffer, HostBuffer};
pub use error::{ErrorKind, Lack, NoRoom, Wrong};
pub use finding::{
    Allocated, Check, CheckConfig, CheckReport, CheckSink, Checks, Class, Counts, Finding, FoundAt, FoundIn, FoundLine,
    MisuseClass, Options as RaceOptions,
};
pub use finding::{Footprint, Touched, TouchedAt};
pub use grid::LaunchReport;
pub use handloom_codegen::{Failure, Stage};
pub use handloom_interp::AsyncOrder;
pub use handloom_plan::Bounds;
pub use handloom_plan::host::{Host, Vectors};
pub use handloom_store::{Store, user_folder};
pub use kept::{CacheCounts, CodeCache};
pub use launch::{
    Arg, Compiled, Engine, LaunchConfig, LaunchError, Launcher, Listing, MAX_BLOCK, MAX_BLOCK_THREADS, MAX_CLUSTER,
    MAX_GRID, MAX_SHARED, MAX_STATIC_SHARED, PreparedLaunch, QUIET, Tally, async_order_of_environment, launch,
};
pub use memory::{
    AllocKind, Allocation, Backing, Budget, DeviceMemory, Elements, Found, MemoryError, Part, Rows, Word, meminfo,
};
pub use module::{Function, LoadError, Module, front, type_of};
pub use run::{Backend, Beside, Progress, Sink, StopHandle, Tier, Trace, Traced, UsualFloats};
pub use stream::{Context, Event, InParts, Mark, Pending, Stream, StreamError, give_up_waiting, may_wait};
pub use trap::TrapReport;
