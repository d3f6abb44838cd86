//! Modules, their functions and variables; libraries, whose kernels belong to no context.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use handloom_runtime::{Function, MAX_BLOCK_THREADS, MAX_SHARED, MAX_STATIC_SHARED, Module};

use crate::checked;
use crate::code::{Code, Result};
use crate::context::{self, Ctx};
use crate::gpu::Gpu;
use crate::image::Loaded;
use crate::launch::{Launchers, Stored};
use crate::process::{Process, process, say};
use crate::reach::Reach;
use crate::reference::{self, Kind, Reference};
use crate::table::Table;

/// A module of a context.
pub struct Mod {
    /// Handle of its context; 0 for the part of a library in a context.
    pub ctx: u64,
    /// Its device.
    pub gpu: Arc<Gpu>,
    /// The program on the device.
    pub module: Module,
    /// The architecture that its text was made for.
    target: u32,
    functions: Mutex<BTreeMap<String, u64>>,
    references: Mutex<BTreeMap<String, u64>>,
    /// Its `.managed` variables, which kernels of all devices reach.
    _reach: Arc<[Reach]>,
}

/// What a program may set of a function.
#[derive(Debug)]
pub struct Settings {
    /// The architecture that its text was made for.
    target: u32,
    max_dynamic: AtomicU32,
    carveout: AtomicI32,
    non_portable: AtomicI32,
    policy: AtomicI32,
}

/// A function of a module.
pub struct Func {
    /// Handle of its module.
    pub module: u64,
    /// Its device.
    pub module_gpu: Arc<Gpu>,
    /// The entry.
    pub function: Function,
    settings: Arc<Settings>,
    /// Its launches that were made ready.
    pub launchers: Launchers,
    /// What calls before a launch said of it.
    pub stored: Stored,
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts a checked program into a context.
///
/// # Errors
/// There is no room for its variables.
pub fn place(ctx: &Ctx, loaded: &Loaded) -> Result<Module> {
    let (ir, sources) = (loaded.ir.clone(), Arc::clone(&loaded.sources));
    Module::from_ir(&ctx.gpu.device, ir, sources, loaded.warnings.clone()).map_err(|_| Code::OUT_OF_MEMORY)
}

/// Lets kernels of all devices reach the `.managed` variables of a module.
fn reach_of(module: &Module) -> Result<Arc<[Reach]>> {
    let process = process()?;
    Ok(module.managed().map(|(base, bytes)| Reach::new(process, base, bytes, true)).collect())
}

/// Loads a module into the current context and returns its handle.
///
/// # Errors
/// There is no context, or no room.
pub fn load(ctx: &Ctx, loaded: &Loaded) -> Result<u64> {
    let module = place(ctx, loaded)?;
    let reach = reach_of(&module)?;
    let new = Mod::new(ctx.handle, &ctx.gpu, module, loaded.target, reach);
    process()?.modules.add(new).ok_or(Code::OUT_OF_MEMORY)
}

/// A module by its handle.
///
/// # Errors
/// There is none.
pub fn by_handle(handle: u64) -> Result<Arc<Mod>> {
    process()?.modules.get(handle).ok_or(Code::INVALID_HANDLE)
}

impl Mod {
    fn new(ctx: u64, gpu: &Arc<Gpu>, module: Module, target: u32, reach: Arc<[Reach]>) -> Mod {
        let (gpu, functions, references) = (Arc::clone(gpu), Mutex::default(), Mutex::default());
        Mod { ctx, gpu, module, target, functions, references, _reach: reach }
    }

    /// Handle of a function by its name, the same each time.
    ///
    /// # Errors
    /// There is no entry of that name.
    pub fn function(&self, own: u64, name: &str) -> Result<u64> {
        let mut known = guard(&self.functions);
        if let Some(handle) = known.get(name) {
            return Ok(*handle);
        }
        let function = self.module.function(Some(name)).map_err(|_| Code::NOT_FOUND)?;
        let settings = Arc::new(Settings::new(function.entry().shared_bytes, self.target));
        let (launchers, stored) = (Launchers::default(), Stored::default());
        let func = Func { module: own, module_gpu: Arc::clone(&self.gpu), function, settings, launchers, stored };
        let handle = process()?.functions.add(func).ok_or(Code::OUT_OF_MEMORY)?;
        known.insert(name.to_owned(), handle);
        Ok(handle)
    }

    /// Address and bytes of a variable.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn global(&self, name: &str) -> Result<(u64, u64)> {
        self.module.global(name).ok_or(Code::NOT_FOUND)
    }

    /// Handle of a texture or surface reference by its name, the same each time.
    ///
    /// # Errors
    /// There is none of that name and kind.
    pub fn reference(&self, kind: Kind, name: &str) -> Result<u64> {
        let mut known = guard(&self.references);
        if let Some(handle) = known.get(name) {
            return reference::by_handle(*handle, kind).map_or(Err(Code::NOT_FOUND), |_| Ok(*handle));
        }
        let new = Reference::of_module(self, kind, name)?;
        let handle = process()?.references.add(new).ok_or(Code::OUT_OF_MEMORY)?;
        known.insert(name.to_owned(), handle);
        Ok(handle)
    }

    /// Forgets the handles of its functions and references. Launches that were given still run.
    pub fn unload(&self, process: &Process) {
        let references = std::mem::take(&mut *guard(&self.references));
        references.values().for_each(|handle| drop(process.references.remove(*handle)));
        let known = std::mem::take(&mut *guard(&self.functions));
        known.values().for_each(|handle| drop(process.functions.remove(*handle)));
    }
}

impl Settings {
    /// Of a kernel with so much static shared memory.
    fn new(own: u32, target: u32) -> Settings {
        Settings {
            target,
            max_dynamic: AtomicU32::new(MAX_STATIC_SHARED.saturating_sub(own)),
            carveout: AtomicI32::new(-1),
            non_portable: AtomicI32::new(0),
            policy: AtomicI32::new(0),
        }
    }
}

impl Func {
    /// The most dynamic shared memory of a launch, as it was set.
    pub fn max_dynamic_shared(&self) -> u32 {
        self.settings.max_dynamic.load(Ordering::Relaxed)
    }

    /// The most threads of a block.
    pub fn max_threads(&self) -> u32 {
        let entry = self.function.entry();
        let own = entry.reqntid.or(entry.maxntid).map(|n| n.iter().product());
        let most = u32::try_from(MAX_BLOCK_THREADS).unwrap_or(1024);
        own.map_or(most, |n: u32| n.min(most))
    }

    /// Bytes of static shared memory.
    pub fn static_shared(&self) -> u32 {
        self.function.entry().shared_bytes
    }

    /// Bytes of all parameters.
    pub fn param_bytes(&self) -> usize {
        self.function.params().iter().map(|p| p.offset as usize + p.size as usize).max().unwrap_or(0)
    }

    /// An attribute by its number.
    ///
    /// # Errors
    /// There is none.
    pub fn attribute(&self, number: u32) -> Result<i32> {
        let cluster = self.function.entry().reqcluster;
        let int = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
        let capability = int(self.module_gpu.capability);
        Ok(match number {
            0 => int(self.max_threads()),
            1 => int(self.static_shared()),
            2 => i32::try_from(self.function.constant_bytes()).unwrap_or(i32::MAX),
            3 => i32::try_from(self.function.local_bytes()).unwrap_or(i32::MAX),
            7 | 16 | 17 => 0,
            // Choice: there are no registers of a GPU; 32 lets the largest block run.
            4 => 32,
            5 => int(self.settings.target),
            6 => capability,
            8 => int(self.max_dynamic_shared()),
            9 => self.settings.carveout.load(Ordering::Relaxed),
            10 => i32::from(cluster.is_some()),
            11..=13 => cluster.map_or(0, |c| int(c[number as usize - 11])),
            14 => self.settings.non_portable.load(Ordering::Relaxed),
            15 => self.settings.policy.load(Ordering::Relaxed),
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    /// Sets an attribute.
    ///
    /// # Errors
    /// There is none, it cannot be set, or not to that.
    pub fn set_attribute(&self, number: u32, value: i32) -> Result {
        let settings = &self.settings;
        match number {
            8 => {
                let value = u32::try_from(value).map_err(|_| Code::INVALID_VALUE)?;
                if value > MAX_SHARED.saturating_sub(self.static_shared()) {
                    return Err(Code::INVALID_VALUE);
                }
                settings.max_dynamic.store(value, Ordering::Relaxed);
            }
            9 if (-1..=100).contains(&value) => settings.carveout.store(value, Ordering::Relaxed),
            11..=13 if self.function.entry().reqcluster.is_none() => return Err(Code::NOT_SUPPORTED),
            14 if matches!(value, 0 | 1) => settings.non_portable.store(value, Ordering::Relaxed),
            15 if (0..=2).contains(&value) => settings.policy.store(value, Ordering::Relaxed),
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }

    /// Blocks that a multiprocessor runs at the same time.
    ///
    /// # Errors
    /// A block has no or too many threads.
    pub fn blocks_per_multiprocessor(&self, threads: i32, dynamic: u64) -> Result<i32> {
        if threads <= 0 {
            return Err(Code::INVALID_VALUE);
        }
        let shared = u64::from(self.static_shared()) + dynamic;
        if u32::try_from(threads).is_ok_and(|t| t > self.max_threads()) || shared > u64::from(MAX_SHARED) {
            return Ok(0);
        }
        let warps = (threads + 31) / 32;
        let by_threads = crate::gpu::THREADS_PER_MULTIPROCESSOR / (warps * 32);
        // Each block also has 1 KiB that is the system's.
        let by_shared =
            i32::try_from(u64::from(crate::gpu::SHARED_PER_MULTIPROCESSOR.unsigned_abs()) / (shared + 1024));
        Ok(by_threads.min(by_shared.unwrap_or(i32::MAX)).min(crate::gpu::BLOCKS_PER_MULTIPROCESSOR))
    }
}

/// A library: a program that is put into each context when it is first used there.
pub struct Library {
    loaded: Loaded,
    kernels: Mutex<BTreeMap<String, u64>>,
    /// By context: what lies there.
    placed: Mutex<Vec<Part>>,
}

/// What a library is in a context.
struct Part {
    /// Handle and number of the context.
    ctx: (u64, u64),
    module: Module,
    /// The `.managed` variables, which all parts have together.
    reach: Arc<[Reach]>,
    /// Handle of the module, once it has one.
    handle: u64,
}

/// A kernel of a library.
pub struct Kernel {
    /// Handle of its library.
    pub library: u64,
    /// Its name.
    pub name: String,
    settings: Arc<Settings>,
    owner: Arc<Library>,
    functions: Mutex<Vec<Placed>>,
}

/// What a kernel is in a context.
struct Placed {
    /// Handle and number of the context.
    ctx: (u64, u64),
    func: Arc<Func>,
    /// Handle of the function, once it has one.
    handle: u64,
}

impl Library {
    /// A library that lies nowhere yet.
    pub fn new(loaded: Loaded) -> Library {
        Library { loaded, kernels: Mutex::default(), placed: Mutex::default() }
    }

    /// Its part in a context.
    ///
    /// # Errors
    /// There is no room.
    pub fn module(&self, ctx: &Ctx) -> Result<Module> {
        self.part(ctx, |part| Ok(part.module.clone()))
    }

    /// Handle of that part as a module, the same each time.
    ///
    /// # Errors
    /// There is no room.
    pub fn module_handle(&self, ctx: &Ctx) -> Result<u64> {
        self.part(ctx, |part| {
            if part.handle == 0 {
                let new = Mod::new(0, &ctx.gpu, part.module.clone(), self.loaded.target, Arc::clone(&part.reach));
                part.handle = process()?.modules.add(new).ok_or(Code::OUT_OF_MEMORY)?;
            }
            Ok(part.handle)
        })
    }

    fn part<T>(&self, ctx: &Ctx, take: impl FnOnce(&mut Part) -> Result<T>) -> Result<T> {
        let mut placed = guard(&self.placed);
        if let Some(part) = placed.iter_mut().find(|part| part.ctx.1 == ctx.id) {
            return take(part);
        }
        let (module, reach) = match placed.first() {
            Some(other) => {
                let module = other.module.beside(&ctx.gpu.device).map_err(|_| Code::OUT_OF_MEMORY)?;
                (module, Arc::clone(&other.reach))
            }
            None => {
                let module = place(ctx, &self.loaded)?;
                let reach = reach_of(&module)?;
                (module, reach)
            }
        };
        placed.push(Part { ctx: (ctx.handle, ctx.id), module, reach, handle: 0 });
        placed.last_mut().map_or(Err(Code::UNKNOWN), take)
    }

    /// Takes parts away, with their modules.
    fn forget_parts(&self, process: &Process, goes: impl Fn(u64) -> bool) {
        for part in guard(&self.placed).extract_if(.., |part| goes(part.ctx.0)) {
            if let Some(module) = process.modules.remove(part.handle) {
                module.unload(process);
            }
        }
    }

    /// Names of its kernels.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.loaded.ir.entries.keys().map(String::as_str)
    }

    /// Forgets what lies in a context that ends.
    pub fn forget(&self, ctx: u64) {
        let Ok(process) = process() else { return };
        self.forget_parts(process, |handle| handle == ctx);
        let kernels: Vec<u64> = guard(&self.kernels).values().copied().collect();
        for kernel in kernels.iter().filter_map(|k| process.kernels.get(*k)) {
            kernel.forget(process, |handle| handle == ctx);
        }
    }

    /// Forgets its kernels.
    pub fn unload(&self, process: &Process) {
        self.forget_parts(process, |_| true);
        for handle in std::mem::take(&mut *guard(&self.kernels)).values() {
            if let Some(kernel) = process.kernels.remove(*handle) {
                kernel.forget(process, |_| true);
            }
        }
    }
}

/// Handle of a kernel of a library by its name, the same each time.
///
/// # Errors
/// There is no such library or kernel.
pub fn kernel(library: u64, name: &str) -> Result<u64> {
    let process = process()?;
    let owner = process.libraries.get(library).ok_or(Code::INVALID_HANDLE)?;
    let mut known = guard(&owner.kernels);
    if let Some(handle) = known.get(name) {
        return Ok(*handle);
    }
    if let Some(why) = owner.loaded.without.get(name) {
        say(&format!("the kernel `{name}` cannot run here:\n{why}"));
        checked::not_run(&format!("the kernel `{name}` cannot run here"));
        return Err(Code::NO_BINARY_FOR_GPU);
    }
    let entry = owner.loaded.ir.entries.get(name).ok_or(Code::NOT_FOUND)?;
    let settings = Arc::new(Settings::new(entry.shared_bytes, owner.loaded.target));
    let new =
        Kernel { library, name: name.to_owned(), settings, owner: Arc::clone(&owner), functions: Mutex::default() };
    let handle = process.kernels.add(new).ok_or(Code::OUT_OF_MEMORY)?;
    known.insert(name.to_owned(), handle);
    Ok(handle)
}

impl Kernel {
    /// The function that it is in a context.
    ///
    /// # Errors
    /// There is no room for its library there.
    pub fn function(&self, ctx: &Ctx) -> Result<Arc<Func>> {
        let mut known = guard(&self.functions);
        if let Some(placed) = known.iter().find(|p| p.ctx.1 == ctx.id) {
            return Ok(Arc::clone(&placed.func));
        }
        let module = self.owner.module(ctx)?;
        let function = module.function(Some(&self.name)).map_err(|_| Code::NOT_FOUND)?;
        let (module_gpu, settings) = (Arc::clone(&ctx.gpu), Arc::clone(&self.settings));
        let (launchers, stored) = (Launchers::default(), Stored::default());
        let own = self.owner.module_handle(ctx)?;
        let func = Arc::new(Func { module: own, module_gpu, function, settings, launchers, stored });
        known.push(Placed { ctx: (ctx.handle, ctx.id), func: Arc::clone(&func), handle: 0 });
        Ok(func)
    }

    /// Handle of that function.
    ///
    /// # Errors
    /// As [`function`](Self::function).
    pub fn function_handle(&self, ctx: &Ctx) -> Result<u64> {
        let func = self.function(ctx)?;
        let mut known = guard(&self.functions);
        let place = known.iter_mut().find(|p| p.ctx.1 == ctx.id).ok_or(Code::INVALID_CONTEXT)?;
        if place.handle == 0 {
            place.handle = add_shared(&process()?.functions, &func)?;
        }
        Ok(place.handle)
    }

    fn forget(&self, process: &Process, is: impl Fn(u64) -> bool) {
        guard(&self.functions).retain(|p| {
            let gone = is(p.ctx.0);
            if gone && p.handle != 0 {
                process.functions.remove(p.handle);
            }
            !gone
        });
    }
}

fn add_shared(functions: &Table<Func>, func: &Func) -> Result<u64> {
    let copy = Func {
        module: func.module,
        module_gpu: Arc::clone(&func.module_gpu),
        function: func.function.clone(),
        settings: Arc::clone(&func.settings),
        launchers: Launchers::default(),
        stored: Stored::default(),
    };
    functions.add(copy).ok_or(Code::OUT_OF_MEMORY)
}

/// A function by the handle of a function or, in a context, of a kernel.
///
/// # Errors
/// There is none.
pub fn function(handle: u64, ctx: impl FnOnce() -> Result<Arc<Ctx>>) -> Result<Arc<Func>> {
    let process = process()?;
    if let Some(func) = process.functions.get(handle) {
        return Ok(func);
    }
    process.kernels.get(handle).ok_or(Code::INVALID_HANDLE)?.function(&*ctx()?)
}

/// A function by its handle, where a kernel is looked up in the current context or, if there is none, in the primary one of the first device.
///
/// # Errors
/// There is none.
pub fn function_anywhere(handle: u64) -> Result<Arc<Func>> {
    function(handle, context::current)
}
