//! Runs PTX on a CPU: kernels in `cargo test`, without a GPU.
//!
//! ```
//! use handloom::{Device, LaunchConfig};
//!
//! # fn main() -> Result<(), handloom::Error> {
//! # let saxpy = handloom::doc::SAXPY;
//! // let saxpy = include_str!("saxpy.ptx");
//! let device = Device::new()?;
//! let module = device.load_module(saxpy)?;
//! let kernel = module.load_function("saxpy")?;
//! let x = device.copy_of(&[1.0_f32, 2.0, 3.0])?;
//! let y = device.copy_of(&[10.0_f32, 10.0, 10.0])?;
//! let stream = device.default_stream();
//! let config = LaunchConfig::for_num_elems(3);
//! let report = stream.launch_builder(&kernel).arg(&3_u32).arg(&2.0_f32).arg(&x).arg(&y).launch(config)?;
//! assert_eq!((y.to_vec(), report.blocks), (vec![12.0, 14.0, 16.0], 1));
//! # Ok(())
//! # }
//! ```
//!
//! Takes: PTX text, typed buffers, arguments. Returns: a [`LaunchReport`], or one [`Error`] that says what was wrong, where, and what to do.
//! Does not know: files, images, the CUDA interfaces.
//!
//! What there is, in the order in which a program meets it: a [`Device`] has memory ([`DeviceBuffer`]) and loads a [`Module`], whose entries are [`Function`]s and
//! whose variables are [`Global`]s. A [`Stream`] launches them by a [`LaunchBuilder`]. Structures are arguments by [`Struct`]. [`check`] reads a text and runs nothing.
//!
//! Invariants:
//! - nobody who uses this crate needs `unsafe`: a kernel reaches the memory of its device alone, and what goes wrong in it is an [`Error`];
//! - what is wrong with a launch is said when it is given: numbers of arguments, their sizes and whether they are integers or floats.
//!
//! How to read it: `element` what buffers hold, `error` and `diagnostic` what is said, `device` memory and modules, `arg` what a launch is given, `stream` who launches.

#![forbid(unsafe_code)]

/// The page for users; its program is run too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Page;

mod arg;
mod device;
mod diagnostic;
#[doc(hidden)]
pub mod doc;
mod element;
mod error;
mod stream;

#[doc(hidden)]
pub use arg::check_number;
pub use arg::{Arg, Struct};
pub use device::{Device, DeviceBuffer, Function, Global, Module, Ptx};
pub use diagnostic::{Diagnostic, check};
pub use element::Element;
pub use error::{Error, ErrorKind};
pub use half::{bf16, f16};
pub use handloom_diag::{Kind, Severity};
#[doc(hidden)]
pub use handloom_ir::simt::Param;
pub use handloom_ir::trap::TrapKind;
pub use handloom_runtime::{
    Backend, Bounds, Check, CheckConfig, CheckReport, Checks, Counts, Engine, Finding, FoundAt, FoundIn, LaunchConfig,
    LaunchReport, Progress, RaceOptions, Sink, StopHandle, Tier, TrapReport,
};
pub use stream::{Event, LaunchBuilder, Pending, Prepared, Stream};
