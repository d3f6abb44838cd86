//! The block of arguments of a function that programs find on the device: how it is read and written.

use handloom_ir::trap::{AccessKind, TrapKind};

use crate::memory::Memory;

/// An access of a built-in function that is not allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Which rule was broken.
    pub kind: TrapKind,
    /// The address that was accessed.
    pub addr: u64,
    /// Bytes of the access; 0 for `free` of an address that was not allocated.
    pub bytes: u32,
    /// What was tried.
    pub access: AccessKind,
}

/// Memory that a function made: address and bytes.
pub type Fresh = (u64, u64);

/// What a function did besides its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Effect {
    /// Memory that it made.
    pub fresh: Option<Fresh>,
    /// Where it wrote through a pointer, and how many bytes.
    pub written: Option<(u64, u32)>,
}

pub(crate) fn read(mem: &mut dyn Memory, addr: u64, bytes: u32) -> Result<u64, Refused> {
    let refused = |why| Refused { kind: TrapKind::from(why), addr, bytes, access: AccessKind::Read };
    mem.check(addr, bytes, false).map_err(refused)?;
    Ok(mem.read(addr, bytes))
}

pub(crate) fn write(mem: &mut dyn Memory, addr: u64, bytes: u32, value: u64) -> Result<(), Refused> {
    let refused = |why| Refused { kind: TrapKind::from(why), addr, bytes, access: AccessKind::Write };
    mem.check(addr, bytes, true).map_err(refused)?;
    mem.write(addr, bytes, value);
    Ok(())
}
