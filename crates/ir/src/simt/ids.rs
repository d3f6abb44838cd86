//! The numbers by which the parts of a module name each other.

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($($name:ident $about:literal)*) => {$(
        #[doc = $about]
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub struct $name(pub u32);

        impl $name {
            /// As an index.
            pub const fn idx(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

id! {
    Reg "A register: one value in each lane."
    BlockId "A basic block."
    FuncId "A function of a module."
    SymId "A symbol of a module: a variable or a function."
    SlotId "A slot of a function's frame in local memory."
}

/// Addresses of functions: where they start, and how far two of them are apart. Nothing else lies there: no memory of a device, no
/// null pointer with an offset.
pub const CODE_BASE: u64 = 0x1_0000;
const CODE_STEP: u64 = 16;
/// End of the addresses of functions.
pub const CODE_END: u64 = CODE_BASE + CODE_STEP * 0xffff;

impl FuncId {
    /// What a program gets as the address of the function.
    pub fn handle(self) -> u64 {
        CODE_BASE + CODE_STEP * u64::from(self.0)
    }

    /// The function of an address, if it may be one.
    pub fn of_handle(handle: u64) -> Option<FuncId> {
        let at = handle.checked_sub(CODE_BASE).filter(|at| at.is_multiple_of(CODE_STEP))?;
        u32::try_from(at / CODE_STEP).ok().map(FuncId)
    }
}
