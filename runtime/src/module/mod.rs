//! A loaded module: its IR, its variables in device memory, and the code made for it, by the key of a launch.

mod load;
mod outline;
mod pace;
mod program;
mod saved;
mod special;
mod symbols;
mod task;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use handloom_audit::Checks;
use handloom_diag::{Diagnostic, SourceMap};
use handloom_interp::AsyncOrder;
use handloom_ir::simt::{self, Builtin, FuncId, Op, Param, SymKind};

pub use load::{LoadError, front};
pub(crate) use outline::{Outline, local_stride};
pub(crate) use program::{CodeCell, Key, Program, Specialised};
pub(crate) use special::Special;
pub(crate) use task::{Left, Patience};

use crate::device::Device;
use crate::error::{ErrorKind, NoRoom, Wrong};
use crate::finding::Footprint;
use crate::memory::SpaceKind;
use program::{Origin, Programs};
use symbols::Symbols;

/// A module on a device. A clone is the same module.
#[derive(Clone, Debug)]
pub struct Module {
    pub(crate) inner: Arc<ModuleInner>,
}

#[derive(Debug)]
pub(crate) struct ModuleInner {
    pub(crate) device: Device,
    pub(crate) ir: Arc<simt::Module>,
    pub(crate) sources: Arc<SourceMap>,
    symbols: Symbols,
    programs: Programs,
    warnings: Vec<Diagnostic>,
    /// By function, whether it may print if it is an entry; empty if nobody does.
    prints: Arc<[bool]>,
    /// Some function calls CUDA's device runtime.
    pub(crate) launches: bool,
    /// The same for launches whose asynchronous results may come late, if that makes a difference.
    late: OnceLock<Arc<ModuleInner>>,
    /// By entry: what compiled code cannot tell an audit, once a checked launch asked.
    pub(crate) untold: Mutex<HashMap<FuncId, Untold>>,
    /// By entry and shape: whether accesses through addresses of variables lie in them in any case, once a checked launch asked.
    pub(crate) inside: Mutex<HashMap<(FuncId, simt::LaunchShape), bool>>,
    /// What is known of launches before they run, once they were checked.
    pub(crate) proven: Mutex<HashMap<Proof, Option<Proven>>>,
    /// By entry and shape: why compiled code cannot count, once a counted launch asked.
    pub(crate) uncounted: Mutex<Uncounted>,
}

/// What is known of a checked launch before it runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// Something may be found in it.
    Doubted,
    /// Nothing can be found, and what it leaves depends on the order of threads, which the seed decides.
    InOrder,
    /// Nothing can be found as long as no read is of an allocation in which one of these ranges of global memory lies, which are all that it may change there.
    Apart(Arc<[(u64, u64)]>),
    /// Nothing can be found.
    Clean,
}

/// A launch in which nothing can be found.
#[derive(Clone, Debug)]
pub(crate) struct Proven {
    /// What it leaves depends on the order of threads.
    pub(crate) order_decides: bool,
    /// That holds as long as reads lie apart from these ranges.
    pub(crate) if_apart: Option<Arc<[(u64, u64)]>>,
    /// What it touches, as far as that is wanted and known.
    pub(crate) footprint: Arc<Footprint>,
}

/// What decides whether something can be found in a launch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Proof {
    pub(crate) entry: FuncId,
    /// Blocks, and threads of each.
    pub(crate) shape: [[u32; 3]; 2],
    pub(crate) shared_bytes: u32,
    pub(crate) checks: Checks,
    pub(crate) wants_areas: bool,
    /// As they lie in memory.
    pub(crate) params: Vec<u8>,
}

/// By entry, shape and what is counted: why compiled code cannot count, if it cannot.
type Uncounted = HashMap<(FuncId, simt::LaunchShape, simt::Counting), Option<&'static str>>;

/// What of an entry compiled code cannot tell an audit.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Untold {
    /// Of accesses, fences and barriers.
    pub(crate) events: Option<&'static str>,
    /// Of the variables that addresses are made from.
    pub(crate) variables: Option<&'static str>,
    /// Of bits that nobody wrote.
    pub(crate) bits: Option<&'static str>,
    /// Of memory that threads allocate.
    pub(crate) heap: Option<&'static str>,
    /// Of threads that give way after strong reads.
    pub(crate) pauses: bool,
    /// Threads may begin asynchronous copies, or work of tensor memory.
    pub(crate) begins: bool,
    /// Accesses may be to memory that a block or a thread has for itself, or take values of other lanes.
    pub(crate) is_own: bool,
    /// Threads may keep something in local memory.
    pub(crate) keeps_local: bool,
    /// The variables that addresses are made from.
    pub(crate) variable: Named,
}

/// The variables that addresses of accesses are made from.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) enum Named {
    /// None.
    #[default]
    None,
    /// One in shared memory: offset and bytes.
    Shared(u64, u64),
    /// Several, or one elsewhere.
    Some,
}

impl Module {
    /// Puts a module of SIMT IR on a device.
    ///
    /// # Errors
    /// There is no room for its variables.
    pub fn from_ir(
        device: &Device,
        ir: simt::Module,
        sources: Arc<SourceMap>,
        warnings: Vec<Diagnostic>,
    ) -> Result<Module, NoRoom> {
        Module::place(device, Arc::new(ir), sources, warnings, None)
    }

    /// The same program once more, on this device or on another one. Its `.managed` variables are those of this module; on another device kernels reach them
    /// as soon as they are lent to it.
    ///
    /// # Errors
    /// There is no room for its other variables.
    pub fn beside(&self, device: &Device) -> Result<Module, NoRoom> {
        let ModuleInner { ir, sources, warnings, symbols, .. } = &*self.inner;
        Module::place(device, Arc::clone(ir), Arc::clone(sources), warnings.clone(), Some(symbols))
    }

    fn place(
        device: &Device,
        ir: Arc<simt::Module>,
        sources: Arc<SourceMap>,
        warnings: Vec<Diagnostic>,
        beside: Option<&Symbols>,
    ) -> Result<Module, NoRoom> {
        let symbols = Symbols::place(&ir, &device.inner.memory, space_kind(&ir), beside)?;
        let all = || ir.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.insts);
        let prints = printing(&ir).into();
        let launches = all().any(|i| matches!(i.op, Op::Builtin(Builtin::Device { .. })));
        let (device, programs) = (device.clone(), Programs::default());
        let (late, untold, inside, proven, uncounted) = Default::default();
        let inner = ModuleInner {
            device,
            ir,
            sources,
            symbols,
            programs,
            warnings,
            prints,
            launches,
            late,
            untold,
            inside,
            proven,
            uncounted,
        };
        Ok(Module { inner: Arc::new(inner) })
    }

    /// The device it lies on.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Its texts.
    pub fn sources(&self) -> &Arc<SourceMap> {
        &self.inner.sources
    }

    /// What `check` warned of.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.inner.warnings
    }

    /// Its IR.
    pub fn ir(&self) -> &simt::Module {
        &self.inner.ir
    }

    /// Whether its addresses have 32 bits, so that its buffers must lie below 4 GiB ([`Device::zeroed_low`]).
    pub fn is_low(&self) -> bool {
        space_kind(&self.inner.ir) == SpaceKind::Low
    }

    /// Names of its entries, sorted.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.inner.ir.entries.keys().map(String::as_str)
    }

    /// An entry by name; with `None` the only one.
    ///
    /// # Errors
    /// There is no such entry, or several without a name.
    pub fn function(&self, name: Option<&str>) -> Result<Function, Wrong> {
        let entries = &self.inner.ir.entries;
        let list = || self.entries().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        let not_found = |text: String| Err(Wrong::new(ErrorKind::NotFound, text));
        let name = match (name, entries.len()) {
            (Some(n), _) if entries.contains_key(n) => n,
            (Some(n), 0) => return not_found(format!("no entry `{n}`: the module has no entry")),
            (Some(n), _) => return not_found(format!("no entry `{n}`: the module has {}", list())),
            (None, 0) => return not_found("the module has no entry".into()),
            (None, 1) => self.entries().next().unwrap_or_default(),
            (None, _) => return not_found(format!("which entry: the module has {}", list())),
        };
        Ok(Function { module: self.clone(), name: Arc::from(name) })
    }

    /// Address and size in bytes of a `.global` or `.const` variable.
    pub fn global(&self, name: &str) -> Option<(u64, u64)> {
        let i = self.variable(name)?;
        Some((self.inner.symbols.values[i], self.inner.ir.syms[i].size))
    }

    /// The bytes of a `.global` or `.const` variable.
    pub fn read_global(&self, name: &str) -> Option<Vec<u8>> {
        let i = self.variable(name)?;
        let mut bytes = vec![0; usize::try_from(self.inner.ir.syms[i].size).ok()?];
        self.inner.symbols.read(i, &mut bytes);
        Some(bytes)
    }

    /// Writes bytes of a `.global` or `.const` variable from `offset` on. Says whether there is such a variable.
    ///
    /// # Panics
    /// They do not fit.
    pub fn write_global(&self, name: &str, offset: u64, data: &[u8]) -> bool {
        let Some(i) = self.variable(name) else { return false };
        self.inner.symbols.write(&self.inner.ir, i, offset, data);
        true
    }

    /// Names of its `.global` and `.const` variables, in the order of the text.
    pub fn globals(&self) -> impl Iterator<Item = &str> {
        let is_var = |s: &&simt::Symbol| matches!(s.kind, SymKind::Global | SymKind::Const);
        self.inner.ir.syms.iter().filter(is_var).map(|s| s.name.as_str())
    }

    /// First addresses and sizes in bytes of its `.managed` variables.
    pub fn managed(&self) -> impl Iterator<Item = (u64, u64)> {
        let all = self.inner.ir.syms.iter().zip(&self.inner.symbols.values);
        all.filter(|(s, _)| s.managed).map(|(s, address)| (*address, s.size))
    }

    /// Gives all variables their initial values again.
    pub fn reset_globals(&self) {
        self.inner.symbols.initialise(&self.inner.ir);
    }

    fn variable(&self, name: &str) -> Option<usize> {
        let is_var = |s: &simt::Symbol| s.name == name && matches!(s.kind, SymKind::Global | SymKind::Const);
        self.inner.ir.syms.iter().position(is_var)
    }
}

/// By function, whether it may print if it is an entry, or launch grids that may; empty if nobody does.
fn printing(ir: &simt::Module) -> Vec<bool> {
    let does =
        |f: &simt::Function, is_it: fn(&Op) -> bool| f.blocks.iter().flat_map(|b| &b.insts).any(|i| is_it(&i.op));
    let prints = |f: &simt::Function| does(f, |op| *op == Op::Builtin(Builtin::Vprintf));
    if !ir.funcs.iter().any(prints) {
        return Vec::new();
    }
    let may_print = |f: &simt::Function| prints(f) || does(f, |op| matches!(op, Op::Builtin(Builtin::Device { .. })));
    let by_function: Vec<bool> = ir.funcs.iter().map(may_print).collect();
    let of_entry = |(f, func): (u32, &simt::Function)| {
        func.is_entry && ir.reachable(FuncId(f)).iter().any(|g| by_function[g.idx()])
    };
    (0..).zip(&ir.funcs).map(of_entry).collect()
}

impl ModuleInner {
    /// Whether a launch of an entry may print.
    pub(crate) fn prints(&self, entry: FuncId) -> bool {
        self.prints.get(entry.idx()).is_some_and(|prints| *prints)
    }

    /// What launches of an order run. The variables are this module's, which must live as long.
    pub(crate) fn of_order(self: &Arc<Self>, order: AsyncOrder) -> Arc<ModuleInner> {
        if order == AsyncOrder::Earliest || self.ir.late.is_empty() {
            return Arc::clone(self);
        }
        let late = self.late.get_or_init(|| {
            Arc::new(ModuleInner {
                device: self.device.clone(),
                ir: Arc::new(simt::Module { funcs: self.ir.late.clone(), late: vec![], ..(*self.ir).clone() }),
                sources: Arc::clone(&self.sources),
                symbols: self.symbols.lent(),
                programs: Programs::default(),
                warnings: Vec::new(),
                prints: Arc::clone(&self.prints),
                launches: self.launches,
                late: OnceLock::new(),
                untold: Mutex::default(),
                inside: Mutex::default(),
                proven: Mutex::default(),
                uncounted: Mutex::default(),
            })
        });
        Arc::clone(late)
    }

    /// What its code is made from.
    pub(crate) fn origin(&self) -> Origin {
        Origin { ir: Arc::clone(&self.ir), cache: self.device.inner.code.clone() }
    }

    /// The cell of the code of a key.
    pub(crate) fn cell(&self, key: &Key) -> Arc<CodeCell> {
        self.programs.cell(&self.ir, &self.device.inner.code, key)
    }

    /// What is known of the entry of a key before code is made for it.
    pub(crate) fn outline(&self, key: &Key) -> Outline {
        Outline::new(&self.ir, self.programs.whole(&self.ir), key)
    }

    /// By symbol: address, offset or handle.
    pub(crate) fn symbol_values(&self) -> &[u64] {
        &self.symbols.values
    }

    pub(crate) fn space_kind(&self) -> SpaceKind {
        space_kind(&self.ir)
    }
}

/// Where the memory of a module lies.
fn space_kind(ir: &simt::Module) -> SpaceKind {
    if ir.address_size == 32 { SpaceKind::Low } else { SpaceKind::Wide }
}

/// An entry of a module. A clone is the same entry.
#[derive(Clone, Debug)]
pub struct Function {
    pub(crate) module: Module,
    pub(crate) name: Arc<str>,
}

/// The type of a parameter as declared: `.u32`, `.b8[24]`.
pub fn type_of(p: &Param) -> String {
    if p.is_array { format!("{}[{}]", p.ty, p.size / p.ty.bytes().max(1)) } else { p.ty.to_string() }
}

impl Function {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Its parameters in order.
    pub fn params(&self) -> &[Param] {
        &self.entry().params
    }

    /// What a launch must know of it.
    pub fn entry(&self) -> &simt::Entry {
        &self.module.inner.ir.entries[&*self.name]
    }

    /// Which part of its module it and what it may call are, by their statements: from 0 to 1.
    pub fn share(&self) -> f64 {
        let inner = &self.module.inner;
        outline::share(&inner.ir, inner.programs.whole(&inner.ir), self.entry().func)
    }

    /// Bytes of the variables in constant memory that it may use: those of its module.
    pub fn constant_bytes(&self) -> u64 {
        let all = self.module.inner.ir.syms.iter().filter(|s| s.kind == SymKind::Const);
        all.fold(0, |end: u64, s| end.next_multiple_of(u64::from(s.align.max(1))) + s.size)
    }

    /// Bytes of local memory that a thread has for its variables, and for those of what it calls.
    pub fn local_bytes(&self) -> u64 {
        let (ir, id) = (&self.module.inner.ir, self.entry().func);
        let frame = &simt::FrameLayout::of_module(ir)[id.idx()];
        // A frame takes room also where there are no variables.
        if ir.funcs[id.idx()].slots.is_empty() { frame.reach - frame.size } else { frame.reach }
    }

    /// Where in the program's own shared memory the dynamic part begins, if the module declares any.
    pub(crate) fn dynamic_start(&self) -> Option<u32> {
        let ir = &self.module.inner.ir;
        ir.syms.iter().find_map(|s| match s.kind {
            SymKind::DynamicShared { offset } => Some(offset.saturating_sub(ir.shared.reserved)),
            _ => None,
        })
    }
}
