//! Launches: their shape, their arguments, and how they are run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use handloom::{Error, ErrorKind};
use handloom_runtime as runtime;
use handloom_runtime::{Bounds, Check, CheckConfig, Checks, Elements, Engine, HostBuffer, PreparedLaunch};

use crate::handle::Table;
pub use crate::handle::{FunctionHandle, PreparedHandle, ReportHandle};
use crate::memory::{BUFFERS, Buffer, BufferHandle};
use crate::module::{FUNCTIONS, Function};
use crate::pointer::{bytes, get, list, put};
use crate::report;
use crate::status::{Failure, Status, call};
use crate::stop::{STOPS, StopHandle};

/// Shape and manner of a launch. `handloom_config` in the header makes one; what is 0 is the usual.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct LaunchConfig {
    /// `sizeof(handloom_launch_config)`: which fields the program knows.
    pub bytes: u32,
    /// Dynamic shared memory of a block in bytes.
    pub shared_bytes: u32,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Blocks of a cluster in x, y, z; all 0 for what the entry asks for.
    pub cluster: [u32; 3],
    /// Not 0: all blocks may wait for each other.
    pub cooperative: u32,
    /// What is checked: some of `HANDLOOM_CHECK_MEMORY` and its like. A checked launch is run by the reference executor.
    pub checks: u32,
    /// Not 0: it is run by the reference executor and not by compiled code.
    pub interpreted: u32,
    /// Not 0: compiled code tests that addresses lie in memory of the device, and not in which buffer.
    pub contained: u32,
    /// Host threads; 0 for one a core.
    pub threads: u32,
    /// Order in which blocks start; 0 is ascending.
    pub seed: u64,
    /// Longest time to make its code and to run, in seconds; 0 for any.
    pub timeout_seconds: f64,
    /// What ends it while it runs; 0 for nothing.
    pub stop: StopHandle,
}

/// Accesses outside of memory, to freed memory, and misaligned ones.
pub const CHECK_MEMORY: u32 = 1;
/// Bytes that nobody wrote.
pub const CHECK_INIT: u32 = 2;
/// Accesses that nothing orders.
pub const CHECK_RACE: u32 = 4;
/// Barriers and other meetings of threads.
pub const CHECK_SYNC: u32 = 8;
/// All of these.
pub const CHECK_ALL: u32 = 15;

const CHECKS: [(u32, Check); 4] =
    [(CHECK_MEMORY, Check::Memory), (CHECK_INIT, Check::Init), (CHECK_RACE, Check::Race), (CHECK_SYNC, Check::Sync)];

/// What an argument is: the field `kind` of `handloom_arg`.
pub const ARG_INTEGER: u32 = 1;
/// A float.
pub const ARG_FLOAT: u32 = 2;
/// The address of a byte of a buffer.
pub const ARG_BUFFER: u32 = 3;
/// Bytes that are passed by value: a structure.
pub const ARG_BYTES: u32 = 4;
/// The address of memory of the host, which kernels read and write while the launch runs.
pub const ARG_HOST: u32 = 5;
/// The same for reading alone.
pub const ARG_HOST_CONST: u32 = 6;

/// One argument, for one parameter. `handloom_u32`, `handloom_f32`, `handloom_at` and their like in the header make them.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Arg {
    /// `HANDLOOM_ARG_INTEGER` and its like.
    pub kind: u32,
    /// Bytes of a number: 1, 2, 4 or 8.
    pub size: u32,
    /// The bits of a number, the number of a buffer's handle, or an address of the host.
    pub value: u64,
    /// Of a buffer: which byte. Of memory of the host, and of bytes: how many.
    pub bytes: u64,
}

/// An argument with what it needs while the launch runs.
enum Held {
    Number([u8; 8], usize),
    Buffer(Arc<Buffer>, u64),
    Bytes(Vec<u8>),
    Host(HostBuffer),
}

/// What a launch is given, held as long as it may run.
pub(crate) struct Args(Vec<Held>);

impl Args {
    /// Arguments for the parameters of an entry.
    ///
    /// # Safety
    /// The array is null or has so many; addresses of the host in it are those of so many bytes, which stay until the launch has ended.
    pub(crate) unsafe fn of(function: &Function, args: *const Arg, count: usize) -> Result<Args, Failure> {
        // SAFETY: by the caller's promise.
        let all = unsafe { list(args, count, "args")? };
        let params = function.inner.params();
        // Of too many or too few, their number is what is wrong, which the runtime says.
        let known = |i: usize| params.get(i).filter(|_| params.len() == count);
        let mut held = Vec::with_capacity(count);
        for (i, arg) in all.iter().enumerate() {
            let number = i + 1;
            let refuse = |text: String| Err(Failure::from(Error::refused(ErrorKind::ArgumentSize, text)));
            held.push(match arg.kind {
                ARG_INTEGER | ARG_FLOAT => {
                    let size = match arg.size {
                        1 | 2 | 4 | 8 => arg.size as usize,
                        other => return refuse(format!("argument {number}: a number of {other} bytes")),
                    };
                    if let Some(p) = known(i) {
                        handloom::check_number(number, p, arg.kind == ARG_FLOAT, None, size)?;
                    }
                    Held::Number(arg.value.to_le_bytes(), size)
                }
                ARG_BUFFER => Held::Buffer(BUFFERS.get(BufferHandle { id: arg.value })?, arg.bytes),
                ARG_BYTES => {
                    let at = std::ptr::with_exposed_provenance::<u8>(arg.value as usize);
                    let count = usize::try_from(arg.bytes).unwrap_or(usize::MAX);
                    // SAFETY: by the caller's promise.
                    Held::Bytes(unsafe { bytes(at, count, "data of an argument")? }.to_vec())
                }
                ARG_HOST | ARG_HOST_CONST => {
                    if arg.value == 0 && arg.bytes > 0 {
                        return Err(Failure::null("data of an argument"));
                    }
                    let shape = vec![arg.bytes];
                    let elements = Elements { ty: "u8".into(), bytes: 1, shape };
                    let device = function.inner.module().device();
                    // SAFETY: by the caller's promise.
                    Held::Host(unsafe {
                        HostBuffer::lend(device, arg.value, arg.bytes, arg.kind == ARG_HOST, Some(elements))
                    })
                }
                other => return refuse(format!("argument {number}: kind {other}, which there is not")),
            });
        }
        Ok(Args(held))
    }

    /// As the runtime takes them.
    pub(crate) fn list(&self) -> Vec<runtime::Arg<'_>> {
        let one = |held| match held {
            &Held::Number(ref bytes, size) => runtime::Arg::Bytes(&bytes[..size]),
            Held::Buffer(buffer, offset) => runtime::Arg::Buffer { buffer: &buffer.inner, offset: *offset },
            Held::Bytes(bytes) => runtime::Arg::Bytes(bytes),
            Held::Host(buffer) => runtime::Arg::Host(buffer),
        };
        self.0.iter().map(one).collect()
    }

    /// Whether memory of the host is lent.
    pub(crate) fn lends(&self) -> bool {
        self.0.iter().any(|held| matches!(held, Held::Host(_)))
    }
}

/// What a launch asks for.
///
/// # Safety
/// The pointer is null or points to a configuration.
pub(crate) unsafe fn config(config: *const LaunchConfig) -> Result<runtime::LaunchConfig, Failure> {
    // SAFETY: by the caller's promise, here and below: the size is looked at before the rest.
    let size = unsafe { get(config.cast::<u32>(), "config")? };
    if size as usize != size_of::<LaunchConfig>() {
        let text = format!(
            "`config->bytes` is {size}, and a handloom_launch_config has {}: handloom_config() makes one",
            size_of::<LaunchConfig>()
        );
        return Err(Failure::new(Status::InvalidValue, text));
    }
    // SAFETY: as above.
    let c = unsafe { get(config, "config")? };
    let mut out = runtime::LaunchConfig::new(c.grid, c.block);
    out.shared_bytes = c.shared_bytes;
    out.cooperative = c.cooperative != 0;
    out.cluster = (c.cluster != [0; 3]).then_some(c.cluster);
    out.seed = c.seed;
    out.threads = c.threads as usize;
    out.engine = if c.interpreted != 0 { Engine::Interp } else { Engine::Jit };
    out.bounds = if c.contained != 0 { Bounds::Contained } else { Bounds::Exact };
    if c.timeout_seconds != 0.0 {
        let limit = Duration::try_from_secs_f64(c.timeout_seconds);
        let wrong = |e| Failure::new(Status::InvalidValue, format!("`timeout_seconds` is {}: {e}", c.timeout_seconds));
        out.timeout = Some(limit.map_err(wrong)?);
    }
    if c.stop.id != 0 {
        out.stop = STOPS.get(c.stop)?.as_ref().clone();
    }
    if c.checks & !CHECK_ALL != 0 {
        return Err(Failure::new(Status::InvalidValue, format!("`checks` is {:#x}: there is no such check", c.checks)));
    }
    if c.checks != 0 {
        let asked = CHECKS.iter().filter(|(bit, _)| c.checks & bit != 0);
        let checks = asked.fold(Checks::default(), |all, (_, check)| all.with(*check));
        out.check = Some(CheckConfig { checks, ..CheckConfig::default() });
    }
    Ok(out)
}

/// Runs an entry once and waits for its end. `report`, unless it is NULL, gets what it did, also when a check found something (`HANDLOOM_STATUS_FOUND`).
/// `HANDLOOM_STATUS_STOPPED` if the stop handle of its configuration was raised.
///
/// # Safety
/// `config` points to a configuration, `args` to `count` arguments, with addresses of the host that are what they say; `report` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_launch(
    function: FunctionHandle,
    config: *const LaunchConfig,
    args: *const Arg,
    count: usize,
    report: *mut ReportHandle,
) -> Status {
    call(|| {
        let function = FUNCTIONS.get(function)?;
        // SAFETY: by the caller's promise.
        let (config, args) = unsafe { (self::config(config)?, Args::of(&function, args, count)?) };
        let mut launch = PreparedLaunch::new(&function.inner, &config, &args.list())?;
        let done = launch.run()?;
        // SAFETY: the same.
        unsafe { report::give(function.inner.name(), &done, report) }
    })
}

/// A launch with what it was given.
pub(crate) struct Prepared {
    pub(crate) module: u64,
    function: Arc<Function>,
    state: Mutex<State>,
}

struct State {
    // Dropped before the arguments, which it uses.
    launch: PreparedLaunch,
    args: Args,
}

pub(crate) static PREPARED: Table<Prepared> = Table::new();

/// Checks a launch, makes its code and writes its parameters, so that it can be run again and again. Memory of the host among its arguments is lent until it is released.
///
/// # Safety
/// As of `handloom_launch`, of memory of the host until it is released; `prepared` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_prepare(
    function: FunctionHandle,
    config: *const LaunchConfig,
    args: *const Arg,
    count: usize,
    prepared: *mut PreparedHandle,
) -> Status {
    call(|| {
        let function = FUNCTIONS.get(function)?;
        // SAFETY: by the caller's promise.
        let (config, args) = unsafe { (self::config(config)?, Args::of(&function, args, count)?) };
        if prepared.is_null() {
            return Err(Failure::null("prepared"));
        }
        let launch = PreparedLaunch::new(&function.inner, &config, &args.list())?;
        let new = Prepared { module: function.module, function, state: Mutex::new(State { launch, args }) };
        // SAFETY: the same.
        unsafe { put(prepared, "prepared", PREPARED.add(new)) }
    })
}

/// Gives a prepared launch other arguments.
///
/// # Safety
/// As of `handloom_prepare`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_prepared_set_args(
    prepared: PreparedHandle,
    args: *const Arg,
    count: usize,
) -> Status {
    call(|| {
        let prepared = PREPARED.get(prepared)?;
        // SAFETY: by the caller's promise.
        let args = unsafe { Args::of(&prepared.function, args, count)? };
        let mut state = prepared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.launch.set_args(&args.list())?;
        state.args = args;
        Ok(())
    })
}

/// Runs a prepared launch and waits for its end. Threads that run the same one wait for each other. `report` as of `handloom_launch`.
///
/// # Safety
/// `report` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_prepared_run(prepared: PreparedHandle, report: *mut ReportHandle) -> Status {
    call(|| {
        let prepared = PREPARED.get(prepared)?;
        let done = prepared.state.lock().unwrap_or_else(PoisonError::into_inner).launch.run()?;
        // SAFETY: by the caller's promise.
        unsafe { report::give(prepared.function.inner.name(), &done, report) }
    })
}

/// Ends a prepared launch, and takes back the memory of the host that it was lent.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_prepared_release(prepared: PreparedHandle) -> Status {
    call(|| PREPARED.remove(prepared).map(drop))
}
