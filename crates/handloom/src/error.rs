//! The one error of this crate.

use std::fmt;

use handloom_diag::{SourceMap, Style};
pub use handloom_runtime::ErrorKind;
use handloom_runtime::words::quoted;
use handloom_runtime::{LaunchError, LoadError, NoRoom, StreamError, TrapReport, Wrong};

use crate::diagnostic::Diagnostic;

/// Why something was not done. Shown, it is the whole report: the lines of the text, what happened in which thread, and what to do. `Debug` shows the same, so
/// that `unwrap` and a test that returns it are readable.
///
/// ```
/// use handloom::{Device, Error, ErrorKind, LaunchConfig, TrapKind};
///
/// # fn main() -> Result<(), Error> {
/// let device = Device::new()?;
/// let kernel = device.load_module(handloom::doc::SAXPY)?.load_function("saxpy")?;
/// let (x, y) = (device.zeroed::<f32>(16)?, device.zeroed::<f32>(16)?);
/// let stream = device.default_stream();
/// let told = stream.launch_builder(&kernel).arg(&17_u32).arg(&1.0_f32).arg(&x).arg(&y).launch(LaunchConfig::for_num_elems(17));
/// let error = told.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Trap(TrapKind::OutOfBounds));
/// assert_eq!(error.trap().unwrap().trap().thread, [16, 0, 0]);
/// assert!(error.to_string().contains("x+64, 0 bytes past the end of an allocation of 64 bytes"));
/// # Ok(())
/// # }
/// ```
#[non_exhaustive]
pub enum Error {
    /// A text is wrong, or holds something that is not supported.
    Module {
        /// Which of the two, or that texts do not fit each other.
        kind: ErrorKind,
        /// All errors and warnings.
        diagnostics: Vec<Diagnostic>,
    },
    /// A kernel stopped.
    Trap(Box<TrapReport>),
    /// Something was asked for that cannot be: an argument, a shape, a name, more memory than there is.
    Refused {
        /// What sort of error it is.
        kind: ErrorKind,
        /// A sentence that says what was expected.
        message: String,
    },
}

impl Error {
    /// Something that cannot be, for other interfaces of Handloom.
    #[doc(hidden)]
    pub fn refused(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::Refused { kind, message: message.into() }
    }

    /// Why a module was not loaded, for other interfaces of Handloom.
    #[doc(hidden)]
    pub fn of_load(e: &LoadError, sources: &SourceMap) -> Error {
        match e {
            LoadError::Diagnostics(list) => {
                let diagnostics = list.iter().map(|d| Diagnostic::of(d, sources)).collect();
                Error::Module { kind: e.kind(), diagnostics }
            }
            other => Error::refused(other.kind(), other.to_string()),
        }
    }

    /// What sort of error it is.
    ///
    /// ```
    /// # fn main() -> Result<(), handloom::Error> {
    /// let device = handloom::Device::new()?;
    /// let module = device.load_module(handloom::doc::SAXPY)?;
    /// assert_eq!(module.load_function("saxpi").unwrap_err().kind(), handloom::ErrorKind::NotFound);
    /// # Ok(())
    /// # }
    /// ```
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Module { kind, .. } | Error::Refused { kind, .. } => *kind,
            Error::Trap(report) => ErrorKind::Trap(report.kind()),
        }
    }

    /// What a kernel did, if one stopped. [`Error`] has an example.
    pub fn trap(&self) -> Option<&TrapReport> {
        match self {
            Error::Trap(report) => Some(report),
            Error::Module { .. } | Error::Refused { .. } => None,
        }
    }

    /// The same for a program: a JSON object on one line. Of a trap it is that of `handloom run --format json`; of a module it has `kind` and `diagnostics`, those of
    /// `handloom check --format json`; else `kind` and `message`.
    ///
    /// ```
    /// # fn main() -> Result<(), handloom::Error> {
    /// let device = handloom::Device::new()?;
    /// let module = device.load_module(handloom::doc::SAXPY)?;
    /// let told = module.load_function("saxpi").unwrap_err().json();
    /// assert!(told.starts_with(r#"{"kind":"not_found","message":"no entry `saxpi`"#), "{told}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn json(&self) -> String {
        let kind = self.kind().word();
        match self {
            Error::Module { diagnostics, .. } => {
                let list: Vec<&str> = diagnostics.iter().map(|d| d.json.as_str()).collect();
                format!("{{\"kind\":\"{kind}\",\"diagnostics\":[{}]}}", list.join(","))
            }
            Error::Trap(report) => report.json(),
            Error::Refused { message, .. } => format!("{{\"kind\":\"{kind}\",\"message\":{}}}", quoted(message)),
        }
    }

    /// What is wrong with a text.
    ///
    /// ```
    /// # fn main() -> Result<(), handloom::Error> {
    /// let device = handloom::Device::new()?;
    /// let error = device.load_module(".version 8.0\n.target sm_80\n.entry k() { ret; ret }").unwrap_err();
    /// assert_eq!(error.diagnostics()[0].start.0, 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Error::Module { diagnostics, .. } => diagnostics,
            Error::Trap(_) | Error::Refused { .. } => &[],
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Module { diagnostics, .. } => {
                let texts: Vec<&str> = diagnostics.iter().map(|d| d.text.trim_end()).collect();
                f.write_str(&texts.join("\n\n"))
            }
            Error::Trap(report) => f.write_str(&report.human(Style::Plain, None)),
            Error::Refused { message, .. } => f.write_str(message),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

impl From<LaunchError> for Error {
    fn from(e: LaunchError) -> Error {
        match e {
            LaunchError::Trap(report) => Error::Trap(report),
            other => Error::refused(other.kind(), other.to_string()),
        }
    }
}

impl From<StreamError> for Error {
    fn from(e: StreamError) -> Error {
        match &e {
            // The context keeps its error, so that all who ask are told the same.
            StreamError::Launch(launch) => match &**launch {
                LaunchError::Trap(report) => Error::Trap(report.clone()),
                other => Error::refused(other.kind(), other.to_string()),
            },
            other => Error::refused(other.kind(), other.to_string()),
        }
    }
}

impl From<NoRoom> for Error {
    fn from(e: NoRoom) -> Error {
        Error::refused(ErrorKind::OutOfMemory, e.to_string())
    }
}

impl From<Wrong> for Error {
    fn from(e: Wrong) -> Error {
        Error::refused(e.kind(), e.text())
    }
}
