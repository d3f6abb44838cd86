//! Memory and services as a kernel's cta sees them: the interpreter's `Memory` on the same windows that compiled code uses.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use handloom_interp::memory::{Answer, Asked};
use handloom_interp::tensor::Tensors;
use handloom_interp::{Denied, Memory as Services};
use handloom_ir::simt::{DeviceCall, SymId};
use handloom_ir::trap::TrapKind;
use handloom_ir::types::StateSpace;

use crate::children::Children;
use crate::grid::Grid;
use crate::memory::{AllocKind, Budget, View, access};
use crate::module::ModuleInner;
use crate::run::Printer;

/// Most bytes that one `malloc` of a kernel gets where nobody says how many all of them get.
// Choice: the size of the device heap is a setting on GPUs, 8 MiB by default; without a setting we bound one block instead.
const MAX_MALLOC: u64 = 64 << 20;

/// What a block of the heap counts for: it begins at a multiple of 16.
fn of_heap(bytes: u64) -> u64 {
    bytes.saturating_add(15) & !15
}

/// What a cta may touch, and what it printed.
#[derive(Debug)]
pub(crate) struct KernelMemory {
    pub(crate) view: RefCell<View>,
    module: Arc<ModuleInner>,
    /// Takes what it prints.
    printer: Option<Arc<Printer>>,
    /// What its threads launch.
    children: Option<Arc<Children>>,
    /// What `malloc` may take.
    heap: Option<Arc<Budget>>,
    /// Its number in the order of text.
    pub(crate) number: u64,
    start: Instant,
}

impl KernelMemory {
    /// For a cta of a launch; `number` is its place in the order of text.
    pub(crate) fn new(view: View, grid: &Grid, number: u64) -> KernelMemory {
        let module = Arc::clone(&grid.module);
        let start = module.device.inner.start;
        let (printer, children, heap) = (grid.printer.clone(), grid.children.clone(), grid.heap.clone());
        KernelMemory { view: RefCell::new(view), module, printer, children, heap, number, start }
    }

    /// The module that the kernel belongs to.
    pub(crate) fn module(&self) -> &Arc<ModuleInner> {
        &self.module
    }
}

impl Services for KernelMemory {
    fn check(&self, addr: u64, bytes: u32, write: bool) -> Result<(), Denied> {
        match self.view.borrow_mut().resolve(addr, u64::from(bytes), write, None) {
            Ok(_) => Ok(()),
            Err(TrapKind::WriteProtected) => Err(Denied::WriteProtected),
            Err(_) => Err(Denied::OutOfBounds),
        }
    }

    fn read(&mut self, addr: u64, bytes: u32) -> u64 {
        let mut word = [0; 8];
        // SAFETY: the trait's contract: the range passed `check`, so it lies in open memory of the device.
        unsafe {
            if addr.is_multiple_of(u64::from(bytes)) {
                return access::load(addr, bytes);
            }
            access::copy_out(addr, &mut word[..(bytes as usize).min(8)]);
        }
        u64::from_le_bytes(word)
    }

    fn write(&mut self, addr: u64, bytes: u32, value: u64) {
        // SAFETY: as in `read`, and the range passed `check` for writing.
        unsafe {
            if addr.is_multiple_of(u64::from(bytes)) {
                access::store(addr, bytes, value);
            } else {
                access::copy_in(addr, &value.to_le_bytes()[..(bytes as usize).min(8)]);
            }
        }
    }

    fn space(&self, addr: u64) -> StateSpace {
        self.view.borrow().state_space(addr)
    }

    fn symbol(&self, sym: SymId) -> u64 {
        self.module.symbol_values().get(sym.idx()).copied().unwrap_or(0)
    }

    fn allocate(&mut self, bytes: u64) -> u64 {
        let fits = match &self.heap {
            Some(heap) => bytes > 0 && heap.take(of_heap(bytes)).is_ok(),
            None => (1..=MAX_MALLOC).contains(&bytes),
        };
        if !fits {
            return 0;
        }
        let made = self.view.get_mut().space().allocate(AllocKind::Malloc, bytes, 16, "", "malloc");
        made.unwrap_or_else(|_| {
            self.heap.iter().for_each(|heap| heap.give(of_heap(bytes)));
            0
        })
    }

    fn release(&mut self, addr: u64) -> Result<(), Denied> {
        let view = self.view.get_mut();
        let size = view.space().free(addr, Some(AllocKind::Malloc)).ok_or(Denied::OutOfBounds)?;
        self.heap.iter().for_each(|heap| heap.give(of_heap(size)));
        view.refresh();
        Ok(())
    }

    fn device_call(&mut self, asked: &Asked) -> Answer {
        let Some(children) = self.children.clone() else {
            panic!("bug: a launch whose module asks the device runtime has nobody to answer")
        };
        match (asked.call, asked.args.as_slice()) {
            (DeviceCall::Malloc, &[to, bytes]) if to != 0 => {
                let word = u32::from(self.module.ir.address_size) / 8;
                let memory = (self.allocate(bytes), bytes);
                children.made(asked, self.number, word, memory)
            }
            (DeviceCall::Free, &[address]) => {
                let freed = address == 0 || self.release(address).is_ok();
                children.freed(asked, self.number, freed)
            }
            _ => children.answer(asked, self.number, &self.module, self.view.get_mut().space()),
        }
    }

    fn output(&mut self, text: &[u8]) {
        if let Some(printer) = &self.printer {
            printer.print(self.number, text);
        }
    }

    fn tensors(&self) -> Arc<Tensors> {
        Arc::clone(&self.view.borrow().space().tensors)
    }

    fn time_ns(&mut self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1)
    }
}
