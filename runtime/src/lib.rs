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
//! How to read it: `memory` says who owns which addresses, `module` what is loaded, `launch` what a run is, `sched` who runs when, `rows` the
//! routines of compiled code, `engine` the reference executor, `trap` the reports.

mod device;
mod engine;
mod error;
mod launch;
mod memory;
mod module;
mod rows;
mod sched;
mod stream;
mod trap;

pub use device::{Device, DeviceBuffer};
pub use error::{ErrorKind, Lack, Wrong};
pub use handloom_codegen::{Bounds, Failure, Stage};
pub use launch::{
    Arg, Engine, LaunchConfig, LaunchError, LaunchReport, MAX_BLOCK, MAX_BLOCK_THREADS, MAX_CLUSTER, MAX_GRID,
    MAX_SHARED, MAX_STATIC_SHARED, PreparedLaunch, Progress, Sink, StopHandle, launch,
};
pub use memory::{AllocKind, Allocation, DeviceMemory, Elements, Found, MemoryError, NoRoom, Rows, Word};
pub use module::{Compiled, Function, Listing, LoadError, Module, Tier, front};
pub use stream::{Context, Event, Pending, Stream, StreamError};
pub use trap::TrapReport;
