//! The state of the process: its devices and all objects that a program has handles of. It is made by the first `cuInit` and stays.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, Once, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use handloom_runtime::{Check, CodeCache, Store, Trace};

use crate::array::{Array, Levels};
use crate::caller::Calls;
use crate::checked::{Known, Left};
use crate::code::{Code, Result};
use crate::config::Config;
use crate::context::Ctx;
use crate::counted::{self, Counts};
use crate::event::Event;
use crate::gpu::Gpu;
use crate::graph::{Graph, GraphExec, NodeRef};
use crate::hints::Hints;
use crate::host::HostMemory;
use crate::ipc::Opened;
use crate::link::Link;
use crate::memory::Registry;
use crate::module::{Func, Kernel, Library, Mod};
use crate::pool::Pool;
use crate::reference::Reference;
use crate::stream::Stream;
use crate::table::{Kind, Table};
use crate::texture::Objects;
use crate::user_object::UserObject;
use crate::virtual_memory::{Physical, Ranges};

/// The state.
pub struct Process {
    /// The settings.
    pub config: Config,
    /// The devices that the program sees.
    pub gpus: Vec<Arc<Gpu>>,
    /// Memory that is not a device's.
    pub host: &'static dyn HostMemory,
    /// Contexts.
    pub contexts: Table<Ctx>,
    /// Streams that programs made.
    pub streams: Table<Stream>,
    /// Events.
    pub events: Table<Event>,
    /// Modules.
    pub modules: Table<Mod>,
    /// Functions of modules.
    pub functions: Table<Func>,
    /// Libraries.
    pub libraries: Table<Library>,
    /// Kernels of libraries.
    pub kernels: Table<Kernel>,
    /// Linkers.
    pub links: Table<Mutex<Link>>,
    /// Graphs.
    pub graphs: Table<Graph>,
    /// Graphs that can be launched.
    pub execs: Table<GraphExec>,
    /// Nodes of graphs.
    pub nodes: Table<NodeRef>,
    /// Memory pools.
    pub pools: Table<Pool>,
    /// Objects of the program.
    pub user_objects: Table<UserObject>,
    /// Memory that lies nowhere until it is mapped.
    pub physicals: Table<Physical>,
    /// Arrays.
    pub arrays: Table<Array>,
    /// Arrays with levels of detail.
    pub levels: Table<Levels>,
    /// Textures and surfaces.
    pub objects: Objects,
    /// Texture and surface references.
    pub references: Table<Reference>,
    /// Reserved addresses.
    pub ranges: Ranges,
    /// Memory of other processes that was opened.
    pub opened: Opened,
    /// What the program said of managed memory.
    pub hints: Hints,
    /// What was allocated.
    pub memory: Registry,
    /// What made and freed memory, if checks want to know.
    pub calls: Calls,
    /// What checks found.
    pub known: Known,
    /// What kernels allocated and nobody freed.
    pub left: Left,
    /// What is counted.
    pub counts: Option<Counts>,
    /// Is told what the host does.
    pub trace: Option<Trace>,
    next_id: AtomicU64,
}

static PROCESS: OnceLock<Process> = OnceLock::new();

/// The process was forked from one that used the driver.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Says that this process is a child of one that used the driver: every call is refused from now on. It only stores a word.
pub fn note_fork() {
    if PROCESS.get().is_some() {
        FORKED.store(true, Ordering::Relaxed);
    }
}

/// The state, once there is one.
///
/// # Errors
/// The driver was not initialised, or by the parent of this process.
pub fn process() -> Result<&'static Process> {
    if FORKED.load(Ordering::Relaxed) {
        return Err(Code::NOT_INITIALIZED);
    }
    PROCESS.get().ok_or(Code::NOT_INITIALIZED)
}

/// Makes the state.
///
/// # Errors
/// There is no device, or no room for one.
pub fn init(host: &'static dyn HostMemory) -> Result<&'static Process> {
    static ONE: Mutex<()> = Mutex::new(());
    if FORKED.load(Ordering::Relaxed) {
        return Err(Code::NOT_INITIALIZED);
    }
    if PROCESS.get().is_none() {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        if PROCESS.get().is_none() {
            let (config, wrong) = Config::read(|name| std::env::var(name).ok());
            wrong.iter().for_each(|text| say(text));
            let process = Process::new(config, host)?;
            let _ = PROCESS.set(process);
        }
    }
    let process = process()?;
    if process.gpus.is_empty() { Err(Code::NO_DEVICE) } else { Ok(process) }
}

/// Whether the calling thread may wait for work. Calls that have to ask before they change anything.
///
/// # Errors
/// It is in a function that a stream calls, or the process ends and has waited long enough.
pub fn may_wait() -> Result {
    handloom_runtime::may_wait().map_err(|e| Code::from(&e))
}

/// How long a process that ends waits for work that nobody waited for, and where launches are checked, which takes longer.
const LAST_WAIT: Duration = Duration::from_secs(1);
const LAST_WAIT_OF_CHECKS: Duration = Duration::from_secs(30);

/// How far the end of the process is.
enum End {
    /// Nobody ends it.
    Far,
    /// It ends, and waits until then.
    Waits(Instant),
    /// Whether all work was done.
    Waited(bool),
}

static END: (Mutex<End>, Condvar) = (Mutex::new(End::Far), Condvar::new());

/// Makes the thread that waits for work when the process ends. A signal may have found the one that ends it in the middle of a call, whose locks it has, or of
/// an allocation, so that it can neither wait nor make a thread by then. Without the thread, nobody waits.
pub fn prepare_end() {
    const STACK: usize = 1 << 18;
    let wait = || {
        let (end, changed) = &END;
        let mut is = end.lock().unwrap_or_else(PoisonError::into_inner);
        let then = loop {
            match *is {
                End::Waits(then) => break then,
                End::Far | End::Waited(_) => is = changed.wait(is).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(is);
        let is_done = process().is_ok_and(|process| process.contexts.all().iter().all(|(_, ctx)| ctx.is_done_by(then)));
        *end.lock().unwrap_or_else(PoisonError::into_inner) = End::Waited(is_done);
        changed.notify_all();
    };
    let _ = thread::Builder::new().name("handloom-end".into()).stack_size(STACK).spawn(wait);
}

/// The process ends. What is under way has a short while, so that what kernels print and checks find is still told; no call waits for what is not done
/// then. If a function that a stream calls ended the process, its work is never done.
pub fn at_exit() {
    let Ok(process) = process() else { return };
    let limit = if process.config.check.is_some() { LAST_WAIT_OF_CHECKS } else { LAST_WAIT };
    if may_wait().is_err() || !is_done_within(limit) {
        handloom_runtime::give_up_waiting();
    }
}

/// Lets the other thread wait for all work. It makes nothing and takes no lock that is held while anything else is done.
fn is_done_within(limit: Duration) -> bool {
    let (end, changed) = &END;
    let mut is = end.lock().unwrap_or_else(PoisonError::into_inner);
    *is = End::Waits(Instant::now() + limit);
    changed.notify_all();
    let waited = changed.wait_timeout_while(is, limit, |is| !matches!(is, End::Waited(_)));
    matches!(*waited.unwrap_or_else(PoisonError::into_inner).0, End::Waited(true))
}

impl Process {
    fn new(config: Config, host: &'static dyn HostMemory) -> Result<Process> {
        let code = CodeCache::new(Store::of_environment());
        let gpu = |(ordinal, number): (usize, &u32)| Gpu::new(ordinal, *number, &config, &code).map(Arc::new);
        let gpus: Result<Vec<Arc<Gpu>>> = config.visible.iter().enumerate().map(gpu).collect();
        let gpus = gpus?;
        let counts = config.count.as_ref().map(Counts::new);
        if config.open_addresses {
            gpus.iter().for_each(|gpu| host.open(gpu.device.memory()));
        }
        // Kernels of one device may write memory of another, of which its own launches know nothing.
        if let [gpu] = &gpus[..]
            && config.check.is_some_and(|check| check.checks.has(Check::Init))
        {
            gpu.device.memory().follow_blank();
        }
        Ok(Process {
            gpus,
            host,
            contexts: Table::new(Kind::Context),
            streams: Table::new(Kind::Stream),
            events: Table::new(Kind::Event),
            modules: Table::new(Kind::Module),
            functions: Table::new(Kind::Function),
            libraries: Table::new(Kind::Library),
            kernels: Table::new(Kind::Kernel),
            links: Table::new(Kind::Link),
            graphs: Table::new(Kind::Graph),
            execs: Table::new(Kind::GraphExec),
            nodes: Table::new(Kind::Node),
            pools: Table::new(Kind::Pool),
            user_objects: Table::new(Kind::UserObject),
            physicals: Table::new(Kind::Physical),
            arrays: Table::new(Kind::Array),
            levels: Table::new(Kind::Levels),
            objects: Objects::default(),
            references: Table::new(Kind::Reference),
            ranges: Ranges::default(),
            opened: Opened::default(),
            hints: Hints::default(),
            memory: Registry::default(),
            calls: Calls::default(),
            known: Known::default(),
            left: Left::default(),
            trace: counted::trace(&config, counts.as_ref()),
            counts,
            next_id: AtomicU64::new(1),
            config,
        })
    }

    /// A device by its number.
    ///
    /// # Errors
    /// There is none.
    pub fn gpu(&self, ordinal: i32) -> Result<&Arc<Gpu>> {
        usize::try_from(ordinal).ok().and_then(|i| self.gpus.get(i)).ok_or(Code::INVALID_DEVICE)
    }

    /// The device in whose memory an address lies.
    pub fn gpu_of(&self, address: u64) -> Option<&Arc<Gpu>> {
        self.gpus.iter().find(|gpu| gpu.owns(address))
    }

    /// A number that nothing else has.
    pub fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds a line to the report file, if there is one.
    pub fn report(&self, line: &str) {
        if let Some(path) = &self.config.report {
            add_line(path, line);
        }
    }

    /// Adds lines for who runs the program alone.
    pub fn note(&self, lines: &str) {
        if let Some(path) = &self.config.findings {
            add_line(path, lines);
        }
    }
}

/// Adds a line to a file, in one write: several processes may write to it.
fn add_line(path: &Path, line: &str) {
    static TOLD: Once = Once::new();
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    if let Err(e) = file.and_then(|mut f| f.write_all(format!("{line}\n").as_bytes())) {
        TOLD.call_once(|| say(&format!("cannot write `{}`: {e}", path.display())));
    }
}

/// A sentence for the user on standard error, in one write.
pub fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("handloom: {}\n", text.trim_end()).as_bytes());
}
