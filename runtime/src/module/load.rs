//! From PTX text to a module on a device.

use std::fmt;
use std::sync::Arc;

use handloom_check::{Checked, CheckedModule, check_text, link_to_run};
use handloom_diag::{Code, Diagnostic, DriverError, FileId, Kind, Severity, SourceMap};
use handloom_ir::simt;

use super::Module;
use crate::device::Device;
use crate::error::{ErrorKind, NoRoom};
use crate::run::UsualFloats;

/// Why a module cannot be loaded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// The texts are wrong or hold something unsupported: errors and warnings, by file and place.
    Diagnostics(Vec<Diagnostic>),
    /// There is no device memory for its variables.
    NoRoom(NoRoom),
}

impl LoadError {
    /// What sort of error it is: a text that is wrong comes before texts that do not fit each other, and that before what is not supported.
    pub fn kind(&self) -> ErrorKind {
        let LoadError::Diagnostics(list) = self else { return ErrorKind::OutOfMemory };
        let errors = || list.iter().filter(|d| d.severity == Severity::Error);
        let supported = || errors().filter(|d| d.kind != Kind::Unsupported);
        if errors().next().is_some() && supported().next().is_none() {
            ErrorKind::Unsupported
        } else if supported().all(|d| d.code == Code::Link) {
            ErrorKind::LinkFailed
        } else {
            ErrorKind::InvalidModule
        }
    }
}

impl From<&LoadError> for DriverError {
    fn from(e: &LoadError) -> DriverError {
        match e.kind() {
            // What is right and does not run here is code for other devices.
            ErrorKind::Unsupported => DriverError::NO_BINARY_FOR_GPU,
            kind => kind.into(),
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Diagnostics(list) => match list.first() {
                Some(d) => write!(f, "{}: {} ({} in all)", d.code.name(), d.message, list.len()),
                None => f.write_str("the module cannot be used"),
            },
            LoadError::NoRoom(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<NoRoom> for LoadError {
    fn from(e: NoRoom) -> Self {
        LoadError::NoRoom(e)
    }
}

/// Checks texts and joins them to one module that can run. Gives it with the warnings.
///
/// # Errors
/// All diagnostics, if one of them is an error.
pub fn front(sources: &SourceMap, files: &[FileId]) -> Result<(CheckedModule, Vec<Diagnostic>), Vec<Diagnostic>> {
    let _floats = UsualFloats::begin();
    let mut told = Vec::new();
    let mut modules = Vec::new();
    for &file in files {
        let Checked { module, diagnostics } = check_text(sources.text(file), file);
        told.extend(diagnostics);
        modules.extend(module);
    }
    if modules.len() < files.len() {
        return Err(told);
    }
    match link_to_run(modules) {
        Ok(joined) => Ok((joined, told)),
        Err(more) => {
            told.extend(more);
            Err(told)
        }
    }
}

impl Module {
    /// Loads a module from one or more texts, which are linked.
    ///
    /// # Errors
    /// The texts are wrong, hold something unsupported, or need more memory than there is.
    pub fn load(device: &Device, sources: Arc<SourceMap>, files: &[FileId]) -> Result<Module, LoadError> {
        let _floats = UsualFloats::begin();
        let (checked, warnings) = front(&sources, files).map_err(LoadError::Diagnostics)?;
        let ir = handloom_lower::lower(&checked);
        Ok(Module::from_ir(device, ir, sources, warnings)?)
    }

    /// The same of a module whose launches are counted: `note` gets it before it is used.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_marked(
        device: &Device,
        sources: Arc<SourceMap>,
        files: &[FileId],
        note: impl FnOnce(&simt::Module),
    ) -> Result<Module, LoadError> {
        let _floats = UsualFloats::begin();
        let (checked, warnings) = front(&sources, files).map_err(LoadError::Diagnostics)?;
        let ir = handloom_lower::lower_marked(&checked);
        note(&ir);
        Ok(Module::from_ir(device, ir, sources, warnings)?)
    }

    /// Loads a module from one text, which reports call `name`.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn from_text(device: &Device, name: &str, text: &str) -> Result<Module, LoadError> {
        let mut sources = SourceMap::new();
        let file = sources.add(name, text);
        Module::load(device, Arc::new(sources), &[file])
    }
}
