//! Variables of a module in device memory: their places, initial bytes, and addresses stored in other variables.

use std::sync::Arc;

use handloom_ir::simt::{self, SymKind};

use crate::error::NoRoom;
use crate::memory::access::{copy_in, copy_out};
use crate::memory::{AllocKind, DeviceMemory, SpaceKind};

/// The value that each symbol stands for, and the memory behind it.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    /// By symbol: generic address of a variable, offset of a shared one, handle of a function.
    pub(crate) values: Vec<u64>,
    /// Variables of this module alone.
    _own: Variables,
    /// Variables that are `.managed`: one of each for all modules of a program.
    managed: Option<Arc<Variables>>,
}

/// Variables in the memory of a device, as long as this lives.
#[derive(Debug, Default)]
struct Variables {
    /// The memory, once there is one, and the part of it.
    memory: Option<(Arc<DeviceMemory>, SpaceKind)>,
    /// Bases of the allocations.
    bases: Vec<u64>,
}

impl Variables {
    fn of(memory: &Arc<DeviceMemory>, kind: SpaceKind) -> Variables {
        Variables { memory: Some((Arc::clone(memory), kind)), bases: Vec::new() }
    }

    fn add(&mut self, symbol: &simt::Symbol) -> Result<u64, NoRoom> {
        let kind = if symbol.kind == SymKind::Const { AllocKind::Const } else { AllocKind::Global };
        let space = self.memory.as_ref().and_then(|(memory, of)| memory.space(*of)).ok_or(NoRoom { bytes: 0 })?;
        let base = space.allocate(kind, symbol.size, u64::from(symbol.align), &symbol.name, "")?;
        self.bases.push(base);
        Ok(base)
    }
}

impl Drop for Variables {
    fn drop(&mut self) {
        if let Some(space) = self.memory.as_ref().and_then(|(memory, of)| memory.space(*of)) {
            for base in &self.bases {
                space.free(*base, None);
            }
        }
    }
}

impl Symbols {
    /// The same for a module that lives no longer than the one that owns the variables.
    pub(crate) fn lent(&self) -> Symbols {
        Symbols { values: self.values.clone(), ..Symbols::default() }
    }

    /// Makes the variables of a module and initialises them. Those that are `.managed` are taken from another module of the same program, if there is one.
    pub(crate) fn place(
        ir: &simt::Module,
        memory: &Arc<DeviceMemory>,
        space: SpaceKind,
        beside: Option<&Symbols>,
    ) -> Result<Symbols, NoRoom> {
        let (mut own, mut managed) = (Variables::of(memory, space), Variables::of(memory, space));
        let mut values = Vec::new();
        for (i, s) in ir.syms.iter().enumerate() {
            let value = match s.kind {
                SymKind::Shared { offset } | SymKind::DynamicShared { offset } => u64::from(offset),
                SymKind::Func(f) => f.handle(),
                SymKind::Global | SymKind::Const => match beside.and_then(|b| b.values.get(i)) {
                    Some(there) if s.managed => *there,
                    _ if s.managed => managed.add(s)?,
                    _ => own.add(s)?,
                },
            };
            values.push(value);
        }
        let managed = beside.map_or_else(|| Some(Arc::new(managed)), |b| b.managed.clone());
        let symbols = Symbols { values, _own: own, managed };
        symbols.initialise_those(ir, |s| beside.is_none() || !s.managed);
        Ok(symbols)
    }

    /// Writes the initial bytes again, as a fresh load of the module would.
    pub(crate) fn initialise(&self, ir: &simt::Module) {
        self.initialise_those(ir, |_| true);
    }

    fn initialise_those(&self, ir: &simt::Module, is: impl Fn(&simt::Symbol) -> bool) {
        for (s, &base) in ir.syms.iter().zip(&self.values) {
            if !matches!(s.kind, SymKind::Global | SymKind::Const) || !is(s) {
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
            // SAFETY: the allocation was made with this size by `place`, for this module or one of the same program, and lives as long as this object.
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
}
