//! Parameters of launches as programs pass them: pointers to each of them, or all in one buffer. Launches that were made ready before.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use handloom_runtime::Launcher;

use crate::code::{Code, Result};
use crate::host::HostMemory;
use crate::module::Func;
use crate::work::Shape;

/// The most bytes of parameters.
pub const MAX_PARAM_BYTES: usize = 32_764;

/// Marks of the list `extra`.
const END: u64 = 0;
const BUFFER_POINTER: u64 = 1;
const BUFFER_SIZE: u64 = 2;

fn word(host: &dyn HostMemory, address: u64) -> u64 {
    let mut word = [0; 8];
    host.read(address, 8, &mut |b| word.copy_from_slice(b));
    u64::from_le_bytes(word)
}

/// Copies the parameters of a launch, from an array of pointers or from a list `extra`.
///
/// # Errors
/// Both are given, one is missing though there are parameters, or the sizes do not fit.
pub fn params(host: &dyn HostMemory, func: &Func, pointers: u64, extra: u64) -> Result<Vec<u8>> {
    let bytes = func.param_bytes();
    let mut block = vec![0; bytes];
    if pointers != 0 && extra != 0 {
        return Err(Code::INVALID_VALUE);
    }
    if extra != 0 {
        let (mut from, mut given, mut at) = (0, None, extra);
        loop {
            match word(host, at) {
                END => break,
                BUFFER_POINTER => from = word(host, at + 8),
                BUFFER_SIZE => {
                    let size_at = word(host, at + 8);
                    if size_at == 0 {
                        return Err(Code::INVALID_VALUE);
                    }
                    given = Some(word(host, size_at));
                }
                _ => return Err(Code::INVALID_VALUE),
            }
            at += 16;
        }
        let given = given.and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= MAX_PARAM_BYTES);
        let given = given.ok_or(Code::INVALID_VALUE)?;
        // Compilers round the size of a structure up; fewer bytes than the kernel reads are too few.
        if given < bytes || (from == 0 && bytes > 0) {
            return Err(Code::INVALID_VALUE);
        }
        host.read(from, bytes, &mut |b| block.copy_from_slice(b));
        return Ok(block);
    }
    if pointers == 0 {
        return if bytes == 0 { Ok(block) } else { Err(Code::INVALID_VALUE) };
    }
    for (i, p) in func.function.params().iter().enumerate() {
        let from = word(host, pointers + 8 * i as u64);
        if from == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let (at, n) = (p.offset as usize, p.size as usize);
        host.read(from, n, &mut |b| block[at..at + n].copy_from_slice(b));
    }
    Ok(block)
}

/// A launch as it was described by one call after the other, each of which changes a part of it.
#[derive(Debug, Default)]
pub struct Stored(Mutex<Described>);

/// What was said of a launch.
#[derive(Clone, Debug, Default)]
pub struct Described {
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub shared: u32,
    /// Bytes of all parameters.
    pub param_bytes: usize,
    /// Parameters as they lie in memory, as far as they were set.
    params: Vec<u8>,
}

impl Stored {
    /// Changes it.
    ///
    /// # Errors
    /// As `change`.
    pub fn change(&self, change: impl FnOnce(&mut Described) -> Result) -> Result {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// As it is now.
    pub fn now(&self) -> Described {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Described {
    /// Puts bytes into the parameters.
    ///
    /// # Errors
    /// They do not fit into any parameters.
    pub fn set(&mut self, offset: i32, bytes: &[u8]) -> Result {
        let from = usize::try_from(offset).map_err(|_| Code::INVALID_VALUE)?;
        let end = from.checked_add(bytes.len()).filter(|end| *end <= MAX_PARAM_BYTES).ok_or(Code::INVALID_VALUE)?;
        if self.params.len() < end {
            self.params.resize(end, 0);
        }
        self.params[from..end].copy_from_slice(bytes);
        Ok(())
    }

    /// The parameters of a kernel that takes so many bytes.
    ///
    /// # Errors
    /// Fewer were announced.
    pub fn block_of(&self, bytes: usize) -> Result<Vec<u8>> {
        if self.param_bytes < bytes {
            return Err(Code::INVALID_VALUE);
        }
        let mut block = self.params.clone();
        block.resize(bytes, 0);
        Ok(block)
    }
}

/// Shapes in which a function was launched last, made ready.
#[derive(Debug, Default)]
pub struct Launchers(Mutex<VecDeque<Ready>>);

/// A shape in a context.
#[derive(Debug)]
struct Ready {
    ctx: u64,
    shape: Shape,
    stack: u32,
    launcher: Arc<Launcher>,
}

/// How many shapes of a function are kept. Each holds memory for its blocks.
const KEPT: usize = 16;

impl Launchers {
    /// That of a shape, with a stack of so many bytes for each thread, in a context, by the number of the context; it is made if it is not there.
    ///
    /// # Errors
    /// As `make`.
    pub fn of(
        &self,
        ctx: u64,
        (shape, stack): (&Shape, u32),
        make: impl FnOnce() -> Result<Arc<Launcher>>,
    ) -> Result<Arc<Launcher>> {
        let list = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut list = list();
            if let Some(i) = list.iter().position(|r| r.ctx == ctx && r.shape == *shape && r.stack == stack) {
                let launcher = Arc::clone(&list[i].launcher);
                list.swap(0, i);
                return Ok(launcher);
            }
        }
        // Others may launch meanwhile; if one of them made the same, one is dropped some day.
        let launcher = make()?;
        let mut list = list();
        list.push_front(Ready { ctx, shape: *shape, stack, launcher: Arc::clone(&launcher) });
        let kept = list.len().min(KEPT);
        let dropped = list.split_off(kept);
        drop(list);
        drop(dropped);
        Ok(launcher)
    }
}
