//! Files that are written after a launch.
//!
//! Whether a file can be written is found out before the launch; the old file stays until the new one is complete. The new one is written
//! beside it and renamed. What is no plain file (`/dev/null`, a pipe) is opened before the launch and written to as it is.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::npy::{Array, is_npy};
use crate::report::{Failure, reason};

/// Where a buffer or a variable goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Store {
    /// The file; none for standard output.
    pub path: Option<PathBuf>,
    /// For a `.npy`: its type and shape, if they were given.
    pub array: Option<Array>,
}

impl Store {
    /// A file; standard output for `-` and `/dev/stdout`.
    pub fn to(path: &str) -> Store {
        let path = if matches!(path, "-" | "/dev/stdout") { None } else { Some(PathBuf::from(path)) };
        Store { path, array: None }
    }

    /// `PATH`, or `PATH.npy:TYPE:SHAPE`.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Store, String> {
        let mut parts = text.rsplitn(3, ':');
        if let (Some(shape), Some(ty), Some(path)) = (parts.next(), parts.next(), parts.next()) {
            let store = Store::to(path);
            if store.path.as_deref().is_none_or(is_npy) {
                return Ok(Store { array: Some(Array::parse(ty, shape)?), ..store });
            }
        }
        Ok(Store::to(text))
    }

    /// Its name in sentences.
    pub fn name(&self) -> String {
        self.path.as_ref().map_or("-".into(), |p| p.display().to_string())
    }

    /// The array that is written, of what came from an array or not.
    ///
    /// # Errors
    /// A `.npy` is asked for, and nothing brings a type and a shape.
    pub fn array_for(&self, from: Option<&Array>) -> Result<Option<Array>, String> {
        let wants = self.path.as_deref().map_or(self.array.is_some() || from.is_some(), is_npy);
        if !wants {
            return Ok(None);
        }
        let array = self.array.as_ref().or(from).cloned();
        array.map(Some).ok_or_else(|| {
            let name = self.name();
            format!("`{name}`: a .npy needs a type and a shape, as `{name}:f32:64x64`")
        })
    }
}

/// A file that can be written.
#[derive(Debug)]
pub struct Output {
    name: String,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Stdout,
    /// A new file takes the place of this one.
    Replace {
        target: PathBuf,
        permissions: Option<Permissions>,
    },
    /// Written as it is.
    Direct(File),
}

/// Finds out whether files can be written, and what must be open for it. One output a store, in order.
///
/// # Errors
/// One cannot be written, or two are the same.
pub fn open_all<'s>(stores: impl Iterator<Item = &'s Store>) -> Result<Vec<Output>, Failure> {
    let mut outputs = Vec::new();
    let mut targets = BTreeSet::new();
    let mut has_stdout = false;
    for store in stores {
        let name = store.name();
        let way = match &store.path {
            None if has_stdout => return Err(Failure::usage("two outputs to standard output: expected one")),
            None => Way::Stdout,
            Some(path) => {
                way(path).map_err(|e| Failure::file(format!("`{name}` cannot be written: {}", reason(&e))))?
            }
        };
        has_stdout |= matches!(way, Way::Stdout);
        if let Way::Replace { target, .. } = &way
            && !targets.insert(target.clone())
        {
            return Err(Failure::usage(format!("two outputs to `{name}`")));
        }
        outputs.push(Output { name, way });
    }
    Ok(outputs)
}

/// How a path is written.
fn way(path: &Path) -> io::Result<Way> {
    let (target, is_open_file) = follow(path)?;
    let permissions = match fs::metadata(&target) {
        Ok(m) if m.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Ok(m) if !m.is_file() || is_open_file => return Ok(Way::Direct(OpenOptions::new().write(true).open(&target)?)),
        Ok(m) => Some(m.permissions()),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => return Err(e),
    };
    // A file that may not be written is not replaced either.
    let old = permissions.is_some().then(|| OpenOptions::new().write(true).open(&target)).transpose()?;
    let folder = folder_of(&target);
    match (Fresh::beside(folder, None), old) {
        (Ok(_), _) => {
            let target = match (folder.canonicalize(), target.file_name()) {
                (Ok(folder), Some(name)) => folder.join(name),
                _ => target,
            };
            Ok(Way::Replace { target, permissions })
        }
        (Err(e), Some(old)) if matches!(e.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
            Ok(Way::Direct(old))
        }
        (Err(e), _) => Err(e),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Most links that are followed, as the kernel does.
const MAX_LINKS: usize = 40;

/// The file behind links, and whether it is a file that the process has open, as `/dev/fd/3`.
fn follow(path: &Path) -> io::Result<(PathBuf, bool)> {
    let mut at = path.to_owned();
    for _ in 0..MAX_LINKS {
        if at.file_name().is_none() {
            // It ends in `..` or is a root.
            return Err(ErrorKind::IsADirectory.into());
        }
        let folder = folder_of(&at).canonicalize()?;
        if folder.starts_with("/proc") {
            return Ok((at, true));
        }
        match fs::read_link(&at) {
            Ok(to) => at = folder.join(to),
            // No link, or nothing there yet.
            Err(_) => return Ok((at, false)),
        }
    }
    Err(io::Error::other("too many links"))
}

/// The file that is being written, for [`abandon`].
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

fn unfinished() -> std::sync::MutexGuard<'static, Option<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what is half written. For a process that is about to end.
pub fn abandon() {
    if let Some(path) = unfinished().take() {
        // There is nobody left to tell.
        let _ = fs::remove_file(path);
    }
}

/// A new file that is gone again unless it is renamed.
struct Fresh {
    path: PathBuf,
    file: File,
}

impl Fresh {
    fn beside(folder: &Path, permissions: Option<&Permissions>) -> io::Result<Fresh> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        // Others may have left files of the same number behind.
        const TRIES: usize = 1000;
        for _ in 0..TRIES {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!(".handloom-{}-{number}.tmp", process::id()));
            let mut slot = unfinished();
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    *slot = Some(path.clone());
                    drop(slot);
                    let fresh = Fresh { path, file };
                    permissions.map_or(Ok(()), |p| fresh.file.set_permissions(p.clone()))?;
                    return Ok(fresh);
                }
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    fn rename(self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // After a rename there is nothing of this name.
        let _ = fs::remove_file(&self.path);
        *unfinished() = None;
    }
}

impl Output {
    /// Writes all of it.
    ///
    /// # Errors
    /// It cannot be written after all.
    pub fn write(self, data: &[u8]) -> Result<(), Failure> {
        let written = match self.way {
            Way::Stdout => to_stdout(data),
            Way::Direct(file) => to_file(&file, data),
            Way::Replace { target, permissions } => replace(&target, permissions.as_ref(), data),
        };
        written.map_err(|e| Failure::file(format!("`{}` cannot be written: {}", self.name, reason(&e))))
    }
}

/// A reader that has gone is no fault.
fn to_stdout(data: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(data).and_then(|()| out.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn to_file(mut file: &File, data: &[u8]) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(data)
}

fn replace(target: &Path, permissions: Option<&Permissions>, data: &[u8]) -> io::Result<()> {
    let fresh = Fresh::beside(folder_of(target), permissions)?;
    (&fresh.file).write_all(data)?;
    fresh.rename(target)
}
