//! The smallest door: one function that takes PTX and addresses of the host, as programs have it that came with an emulator of their own (the mock GPU of tinygrad).

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use handloom::{Error, ErrorKind};
use handloom_runtime as runtime;
use handloom_runtime::{CodeCache, Device, Function, LaunchConfig, Store, launch};

use crate::module::load;
use crate::pointer::{list, text};
use crate::status::{Failure, Status, call};

/// How many texts are known at a time.
const KNOWN: usize = 4096;

/// A device whose kernels reach all memory of the process, and the entries of texts that it has run.
struct Open {
    device: Device,
    known: BTreeMap<String, Function>,
}

static OPEN: Mutex<Option<Open>> = Mutex::new(None);

/// The only entry of a text.
fn function(source: &str) -> Result<Function, Failure> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if open.is_none() {
        let device = Device::with_code(&CodeCache::new(Store::of_environment()))?;
        // SAFETY: who calls `ptx_run` says that its kernels write what they may, and that what they use stays mapped meanwhile; nobody else gets this device.
        unsafe { device.memory().open_to_process() };
        *open = Some(Open { device, known: BTreeMap::new() });
    }
    let Some(open) = open.as_mut() else { return Err(Failure::new(Status::Bug, "bug: no device")) };
    if let Some(known) = open.known.get(source) {
        return Ok(known.clone());
    }
    if open.known.len() >= KNOWN {
        open.known.clear();
    }
    let new = load(&open.device, "module.ptx", source)?.function(None)?;
    open.known.insert(source.to_owned(), new.clone());
    Ok(new)
}

/// The bytes of a parameter from a word: all that it does not have must repeat its sign, or be 0.
fn cut(number: usize, p: &handloom::Param, word: u64) -> Result<[u8; 8], Failure> {
    let wrong = |text: String| Err(Error::refused(ErrorKind::ArgumentSize, text).into());
    let name = &p.name;
    if p.is_array || !matches!(p.size, 1 | 2 | 4 | 8) {
        return wrong(format!("argument {number}: a word for `{name}`, which is {}", runtime::type_of(p)));
    }
    let bits = 8 * p.size;
    let high = word.checked_shr(bits).unwrap_or(0);
    let is_negative = bits < 64 && high == u64::MAX >> bits && word >> (bits - 1) & 1 == 1;
    if high != 0 && !is_negative {
        return wrong(format!("argument {number}: {word:#x} does not fit `{name}`, which is {}", runtime::type_of(p)));
    }
    Ok(word.to_le_bytes())
}

/// Runs the only entry of a text of PTX with `n_args` words: addresses of the host, which kernels use as they are, and integers. A word is cut to the size of its
/// parameter. What goes wrong is also said on standard error, since those who call this do not look at what it returns: `HANDLOOM_STATUS_OK` or another status.
///
/// Kernels reach all memory of the process that is mapped; only what is not mapped traps.
///
/// # Safety
/// `source` ends with NUL, `args` has `n_args` words, the kernel writes nothing that it may not write, and what it uses stays while it runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptx_run(
    source: *const c_char,
    n_args: c_int,
    args: *const *const c_void,
    block_x: c_int,
    block_y: c_int,
    block_z: c_int,
    grid_x: c_int,
    grid_y: c_int,
    grid_z: c_int,
    shared_bytes: c_int,
) -> Status {
    call(|| {
        let work = || -> Result<(), Failure> {
            let negative = |what: &str| Failure::new(Status::InvalidValue, format!("`{what}` is negative"));
            let number = |n: c_int, what: &str| u32::try_from(n).map_err(|_| negative(what));
            let n_args = usize::try_from(n_args).map_err(|_| negative("n_args"))?;
            let block = [number(block_x, "block_x")?, number(block_y, "block_y")?, number(block_z, "block_z")?];
            let grid = [number(grid_x, "grid_x")?, number(grid_y, "grid_y")?, number(grid_z, "grid_z")?];
            // SAFETY: by the caller's promise.
            let (source, words) = unsafe { (text(source, "source")?, list(args, n_args, "args")?) };
            let function = function(source)?;
            let params = function.params();
            let mut bytes = Vec::with_capacity(n_args);
            for (i, word) in words.iter().enumerate() {
                let word = word.expose_provenance() as u64;
                // Of too many or too few, their number is what is wrong, which the runtime says.
                bytes.push(match params.get(i).filter(|_| params.len() == n_args) {
                    Some(p) => (cut(i + 1, p, word)?, p.size as usize),
                    None => (word.to_le_bytes(), 8),
                });
            }
            let args: Vec<runtime::Arg<'_>> =
                bytes.iter().map(|(word, size)| runtime::Arg::Bytes(&word[..*size])).collect();
            let mut config = LaunchConfig::new(grid, block);
            config.shared_bytes = number(shared_bytes, "shared_bytes")?;
            let _ = launch(&function, &config, &args)?;
            Ok(())
        };
        // Nothing can be done where standard error is closed.
        work().inspect_err(|e| drop(writeln!(std::io::stderr(), "ptx_run: {}", e.text())))
    })
}
