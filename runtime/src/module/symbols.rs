//! Variables of a module in device memory: their places, initial bytes, and addresses stored in other variables.

use handloom_ir::simt::{self, SymKind};

use crate::error::NoRoom;
use crate::memory::access::{copy_in, copy_out};
use crate::memory::{AllocKind, Space};

/// The value that each symbol stands for, and the memory behind it.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    /// By symbol: generic address of a variable, offset of a shared one, handle of a function.
    pub(crate) values: Vec<u64>,
    /// Bases of the allocations.
    owned: Vec<u64>,
}

impl Symbols {
    /// The same for a module that lives no longer than the one that owns the variables.
    pub(crate) fn lent(&self) -> Symbols {
        Symbols { values: self.values.clone(), owned: Vec::new() }
    }

    /// Makes the variables of a module and initialises them.
    pub(crate) fn place(ir: &simt::Module, space: &Space) -> Result<Symbols, NoRoom> {
        let mut symbols = Symbols::default();
        for s in &ir.syms {
            let value = match s.kind {
                SymKind::Shared { offset } | SymKind::DynamicShared { offset } => u64::from(offset),
                SymKind::Func(f) => f.handle(),
                SymKind::Global | SymKind::Const => {
                    let kind = if s.kind == SymKind::Const { AllocKind::Const } else { AllocKind::Global };
                    let made = space.allocate(kind, s.size, u64::from(s.align), &s.name, "");
                    let base = made.inspect_err(|_| symbols.free(space))?;
                    symbols.owned.push(base);
                    base
                }
            };
            symbols.values.push(value);
        }
        symbols.initialise(ir);
        Ok(symbols)
    }

    /// Writes the initial bytes again, as a fresh load of the module would.
    pub(crate) fn initialise(&self, ir: &simt::Module) {
        for (s, &base) in ir.syms.iter().zip(&self.values) {
            if !matches!(s.kind, SymKind::Global | SymKind::Const) {
                continue;
            }
            let mut bytes = vec![0; usize::try_from(s.size).unwrap_or(0)];
            for (to, from) in bytes.iter_mut().zip(&s.init) {
                *to = *from;
            }
            for r in &s.relocs {
                let value = self.values.get(r.target.idx()).copied().unwrap_or(0).wrapping_add_signed(r.addend);
                let word = (value >> r.shift.min(63)).to_le_bytes();
                let at = usize::try_from(r.offset).unwrap_or(usize::MAX);
                let place = bytes.iter_mut().skip(at).take(usize::from(r.size));
                place.zip(word).for_each(|(to, from)| *to = from);
            }
            // SAFETY: the allocation was made with this size by `place` and lives as long as this object.
            unsafe { copy_in(base, &bytes) }
        }
    }

    /// The bytes of a variable.
    pub(crate) fn read(&self, sym: usize, to: &mut [u8]) {
        if let Some(&base) = self.values.get(sym) {
            // SAFETY: the caller took `to`'s length from the symbol's size; the allocation lives as long as this object.
            unsafe { copy_out(base, to) }
        }
    }

    /// Writes bytes of a variable of this module, which hold them.
    pub(crate) fn write(&self, ir: &simt::Module, sym: usize, offset: u64, data: &[u8]) {
        let (Some(&base), Some(s)) = (self.values.get(sym), ir.syms.get(sym)) else { return };
        let end = u64::try_from(data.len()).ok().and_then(|n| n.checked_add(offset));
        assert!(end.is_some_and(|end| end <= s.size), "bytes {offset}..+{} of `{}`", data.len(), s.name);
        // SAFETY: the range was just checked to lie in the allocation, which lives as long as this object.
        unsafe { copy_in(base + offset, data) }
    }

    /// Frees the variables.
    pub(crate) fn free(&mut self, space: &Space) {
        for base in self.owned.drain(..) {
            space.free(base, None);
        }
    }
}
