//! Device memory: who owns which addresses.
//!
//! A generic address is a host address. Only memory that PTX can name lies in a window; contexts, code and tables lie elsewhere.
//! `reserve` claims addresses, `ranges` divides them, `space` is the memory of a device in one window, `granules` finds small allocations in it, `linear` all of
//! a device's memory by address, `mapped` memory that is mapped to addresses and shared with other processes, `host` memory of the
//! process that kernels may use too, `left` what the host still has, `view` what one cta may touch, `undo` what it held before a launch,
//! `blank` what nobody has written, `refused` what a check tells of calls for memory that is not there, and `access` reads and writes bytes that passed a check.
//!
//! Invariants: an address is read or written by the runtime only after a check against the map of allocations, or by the owner of the
//! allocation; freed memory is not served again at once.

pub(crate) mod access;
mod blank;
mod granules;
mod host;
mod left;
mod linear;
mod mapped;
mod ranges;
mod refused;
mod reserve;
pub(crate) mod space;
mod undo;
pub(crate) mod view;

pub(crate) use blank::Blank;
pub use left::{meminfo, memory_left};
pub use linear::{DeviceMemory, Found, MemoryError, Rows, Word};
pub use mapped::{Backing, Part};
pub(crate) use reserve::{is_of_device, scrub};
pub use space::{AllocKind, Allocation, Budget, Elements};
pub(crate) use space::{Space, SpaceKind};
pub(crate) use undo::Undo;
pub(crate) use view::{Hit, Own, View};
