//! What calls return, and what is said of the last error of a thread.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use handloom::{Error, ErrorKind};

/// How a call ended. `handloom_last_error` has the sentence or the report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub enum Status {
    /// It did what it was asked for.
    Ok = 0,
    /// A size, a dimension or a number outside of what is allowed, or a null pointer.
    InvalidValue = 1,
    /// More or fewer arguments than the entry has parameters.
    ArgumentCount = 2,
    /// An argument whose size or type is not that of its parameter.
    ArgumentSize = 3,
    /// A handle of something that was released, of another kind or another device, or that never was one.
    InvalidHandle = 4,
    /// No entry, variable or file of that name.
    NotFound = 5,
    /// A launch that the device or the entry does not allow.
    InvalidLaunch = 6,
    /// No memory.
    OutOfMemory = 7,
    /// The PTX is right, and holds something that is not supported.
    Unsupported = 8,
    /// The PTX is wrong.
    InvalidModule = 9,
    /// A file that cannot be read.
    File = 10,
    /// A buffer for text has too little room; it got nothing.
    TooSmall = 11,
    /// A kernel stopped.
    Trap = 12,
    /// A check found something. The kernel ran, and the report says what was found.
    Found = 13,
    /// A fault of Handloom's.
    Bug = 14,
    /// A launch was stopped, by `handloom_stop_raise`.
    Stopped = 15,
    /// The work that was asked about has not ended.
    NotReady = 16,
}

impl Status {
    /// Of an error.
    fn of(kind: ErrorKind) -> Status {
        match kind {
            ErrorKind::InvalidValue => Status::InvalidValue,
            ErrorKind::ArgumentCount => Status::ArgumentCount,
            ErrorKind::ArgumentSize => Status::ArgumentSize,
            ErrorKind::InvalidHandle => Status::InvalidHandle,
            ErrorKind::NotFound => Status::NotFound,
            ErrorKind::InvalidCluster | ErrorKind::TooManyResources | ErrorKind::CooperativeTooLarge => {
                Status::InvalidLaunch
            }
            ErrorKind::OutOfMemory => Status::OutOfMemory,
            ErrorKind::Unsupported => Status::Unsupported,
            ErrorKind::InvalidModule | ErrorKind::LinkFailed => Status::InvalidModule,
            ErrorKind::Trap(_) => Status::Trap,
            ErrorKind::Stopped => Status::Stopped,
            ErrorKind::NotReady | ErrorKind::NotPermitted => Status::NotReady,
            // Nothing of this interface is given a function of the host; a kind that is new is ours to name.
            ErrorKind::HostFunction | ErrorKind::Bug | _ => Status::Bug,
        }
    }

    /// Its name, with the NUL of C.
    fn name(self) -> &'static std::ffi::CStr {
        match self {
            Status::Ok => c"ok",
            Status::InvalidValue => c"invalid value",
            Status::ArgumentCount => c"argument count",
            Status::ArgumentSize => c"argument size",
            Status::InvalidHandle => c"invalid handle",
            Status::NotFound => c"not found",
            Status::InvalidLaunch => c"invalid launch",
            Status::OutOfMemory => c"out of memory",
            Status::Unsupported => c"unsupported",
            Status::InvalidModule => c"invalid module",
            Status::File => c"file",
            Status::TooSmall => c"too small",
            Status::Trap => c"trap",
            Status::Found => c"found",
            Status::Bug => c"bug",
            Status::Stopped => c"stopped",
            Status::NotReady => c"not ready",
        }
    }

    const ALL: [Status; 17] = [
        Status::Ok,
        Status::InvalidValue,
        Status::ArgumentCount,
        Status::ArgumentSize,
        Status::InvalidHandle,
        Status::NotFound,
        Status::InvalidLaunch,
        Status::OutOfMemory,
        Status::Unsupported,
        Status::InvalidModule,
        Status::File,
        Status::TooSmall,
        Status::Trap,
        Status::Found,
        Status::Bug,
        Status::Stopped,
        Status::NotReady,
    ];
}

/// Why a call did not do what it was asked for.
#[derive(Debug)]
pub(crate) struct Failure {
    status: Status,
    word: &'static str,
    text: String,
    json: String,
}

impl Failure {
    /// One that is this interface's own.
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Failure {
        let text = text.into();
        let word = match status {
            Status::Found => "found",
            Status::File => "file",
            Status::TooSmall => "too_small",
            Status::InvalidHandle => "invalid_handle",
            Status::Bug => "bug",
            Status::NotReady => "not_ready",
            _ => "invalid_value",
        };
        let json = format!("{{\"kind\":\"{word}\",\"message\":{}}}", handloom_runtime::words::quoted(&text));
        Failure { status, word, text, json }
    }

    /// A null pointer.
    pub(crate) fn null(what: &str) -> Failure {
        Failure::new(Status::InvalidValue, format!("`{what}` is NULL"))
    }

    /// The whole report.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(e: E) -> Failure {
        let e = e.into();
        Failure { status: Status::of(e.kind()), word: e.kind().word(), text: e.to_string(), json: e.json() }
    }
}

/// What is said of an error, as C reads it.
#[derive(Default)]
struct Last {
    word: CString,
    text: CString,
    json: CString,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::default();
}

/// Text with its NULs taken out, which C could not read past.
fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// Does the work of an exported function: a panic becomes an error, and an error is noted for the thread.
pub(crate) fn call(work: impl FnOnce() -> Result<(), Failure>) -> Status {
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(bug(&*panic)));
    match done {
        Ok(()) => Status::Ok,
        Err(failure) => note(&failure),
    }
}

/// Notes an error for the thread.
pub(crate) fn note(failure: &Failure) -> Status {
    let last = Last { word: c_text(failure.word), text: c_text(&failure.text), json: c_text(&failure.json) };
    // Where a thread has ended its own memory, nobody is left to ask.
    let _ = LAST.try_with(|l| *l.borrow_mut() = last);
    failure.status
}

fn bug(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without text");
    Failure::new(Status::Bug, format!("bug: {text}; please report it"))
}

fn last(part: impl Fn(&Last) -> &CString) -> *const c_char {
    LAST.try_with(|l| part(&l.borrow()).as_ptr()).unwrap_or(c"".as_ptr())
}

/// The name of a status: `"out of memory"`; of another number `"unknown"`. It lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_status_name(status: u32) -> *const c_char {
    Status::ALL.iter().find(|s| **s as u32 == status).map_or(c"unknown", |s| s.name()).as_ptr()
}

/// The last error of the calling thread: a sentence or the whole report, as text. It lives until the next call of the thread that fails; before the first it is empty.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_last_error() -> *const c_char {
    last(|l| &l.text)
}

/// A stable word for the last error of the calling thread: of a trap its kind (`out_of_bounds`), else `argument_count` and so on. It lives as the text does.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_last_error_kind() -> *const c_char {
    last(|l| &l.word)
}

/// The last error of the calling thread as a JSON object, with the place of a trap and the diagnostics of a module. It lives as the text does.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_last_error_json() -> *const c_char {
    last(|l| &l.json)
}

/// The version of the library. It lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
