//! Why something that a host asked for was not done: a kind that a program can act on, and a sentence for people.
//!
//! Each error type of this crate returns its [`ErrorKind`] by `kind()`. Whose fault it is follows from the kind: [`ErrorKind::Bug`] is
//! Handloom's, [`ErrorKind::Trap`] and [`ErrorKind::InvalidModule`] are the program's, all others are those of whoever asked or of the host.

use std::any::Any;
use std::fmt;

use handloom_diag::DriverError;
use handloom_ir::trap::TrapKind;

/// What sort of error it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A size, a dimension, an address or a number outside of what is allowed.
    InvalidValue,
    /// More or fewer arguments than the entry has parameters.
    ArgumentCount,
    /// An argument whose size or type is not that of its parameter.
    ArgumentSize,
    /// Something of another device, or something that has ended.
    InvalidHandle,
    /// No entry, variable or symbol of that name.
    NotFound,
    /// The shape of a cluster does not fit the device, the entry or the grid.
    InvalidCluster,
    /// More threads or shared memory for a block than the device or the entry has.
    TooManyResources,
    /// More blocks in a cooperative launch than can run at the same time.
    CooperativeTooLarge,
    /// The device or the host has no memory, address window or thread for it.
    OutOfMemory,
    /// It is right, and Handloom or this host does not support it.
    Unsupported,
    /// A text that is wrong.
    InvalidModule,
    /// Texts that are right and do not fit each other, or a symbol without a definition.
    LinkFailed,
    /// Work that has not ended yet.
    NotReady,
    /// A wait for work that cannot end while the calling thread waits.
    NotPermitted,
    /// A function of the host that a stream called panicked.
    HostFunction,
    /// A kernel stopped.
    Trap(TrapKind),
    /// A launch was stopped by its [`StopHandle`](crate::StopHandle).
    Stopped,
    /// A fault of Handloom's.
    Bug,
}

impl ErrorKind {
    /// Its stable word for programs; of a trap that of its kind: `out_of_bounds`.
    pub fn word(self) -> &'static str {
        match self {
            ErrorKind::InvalidValue => "invalid_value",
            ErrorKind::ArgumentCount => "argument_count",
            ErrorKind::ArgumentSize => "argument_size",
            ErrorKind::InvalidHandle => "invalid_handle",
            ErrorKind::NotFound => "not_found",
            ErrorKind::InvalidCluster => "invalid_cluster",
            ErrorKind::TooManyResources => "too_many_resources",
            ErrorKind::CooperativeTooLarge => "cooperative_too_large",
            ErrorKind::OutOfMemory => "out_of_memory",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::InvalidModule => "invalid_module",
            ErrorKind::LinkFailed => "link_failed",
            ErrorKind::NotReady => "not_ready",
            ErrorKind::NotPermitted => "not_permitted",
            ErrorKind::HostFunction => "host_function",
            ErrorKind::Trap(kind) => kind.word(),
            ErrorKind::Stopped => "stopped",
            ErrorKind::Bug => "bug",
        }
    }
}

/// What CUDA's driver interface calls it.
impl From<ErrorKind> for DriverError {
    fn from(kind: ErrorKind) -> DriverError {
        match kind {
            ErrorKind::InvalidValue | ErrorKind::ArgumentCount | ErrorKind::ArgumentSize => DriverError::INVALID_VALUE,
            ErrorKind::InvalidHandle => DriverError::INVALID_HANDLE,
            ErrorKind::NotFound => DriverError::NOT_FOUND,
            ErrorKind::InvalidCluster => DriverError::INVALID_CLUSTER_SIZE,
            ErrorKind::TooManyResources => DriverError::LAUNCH_OUT_OF_RESOURCES,
            ErrorKind::CooperativeTooLarge => DriverError::COOPERATIVE_LAUNCH_TOO_LARGE,
            ErrorKind::OutOfMemory => DriverError::OUT_OF_MEMORY,
            ErrorKind::Unsupported => DriverError::NOT_SUPPORTED,
            ErrorKind::InvalidModule | ErrorKind::LinkFailed => DriverError::INVALID_PTX,
            ErrorKind::NotReady => DriverError::NOT_READY,
            ErrorKind::NotPermitted => DriverError::NOT_PERMITTED,
            ErrorKind::Trap(kind) => kind.driver_error(),
            ErrorKind::Stopped => DriverError::LAUNCH_TIMEOUT,
            ErrorKind::HostFunction | ErrorKind::Bug => DriverError::UNKNOWN,
        }
    }
}

/// A request that does not fit the device, the module or the entry: a sentence says what was expected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    kind: ErrorKind,
    text: String,
}

impl Wrong {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Wrong {
        Wrong { kind, text: text.into() }
    }

    /// What is wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The sentence.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Wrong {}

/// A [`Wrong`] of a kind, with a sentence as of `format!`.
macro_rules! wrong {
    ($kind:ident, $($text:tt)+) => {
        $crate::error::Wrong::new($crate::error::ErrorKind::$kind, format!($($text)+))
    };
}
pub(crate) use wrong;

/// There is no room for an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom {
    /// Bytes asked for; 0 where addresses of the host are what lacks, most of which take no memory.
    pub bytes: u64,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes {
            0 => f.write_str("device memory takes many addresses of the host, which allows fewer (`ulimit -v`)"),
            bytes => write!(f, "no room for {bytes} bytes of device memory"),
        }
    }
}

impl std::error::Error for NoRoom {}

/// What a launch found no room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Lack {
    /// Device memory.
    Memory(NoRoom),
    /// Addresses of the host for a device.
    Window,
    /// The barrier of a cooperative launch.
    Barrier,
    /// The thread that watches the time limit.
    Watchdog,
    /// The thread of a stream.
    StreamThread,
    /// The stack of code that needs more of it than threads have.
    Stack,
}

impl From<NoRoom> for Lack {
    fn from(e: NoRoom) -> Lack {
        Lack::Memory(e)
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Lack::Memory(e) => return e.fmt(f),
            Lack::Window => "an address window",
            Lack::Barrier => "a barrier",
            Lack::Watchdog => "a thread for the time limit",
            Lack::StreamThread => "a thread for a stream",
            Lack::Stack => "the stack of compiled code",
        };
        write!(f, "the host has no room for {what}")
    }
}

impl std::error::Error for Lack {}

/// The text of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without text").to_owned()
}
