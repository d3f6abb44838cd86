//! Memory between processes of one host: an allocation becomes pages of a file in memory when somebody asks for its handle, and another process that has
//! the handle opens that file and maps the pages.
//!
//! A handle names the process, its file, and where in it the allocation lies. The file is reached by `/proc`, as long as the process lives and the host
//! lets this one look at it, which it does for processes of the same user.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::sync::{Mutex, PoisonError};

use handloom_runtime::{Backing, Part};

use crate::code::{Code, Result};
use crate::context::{self, Ctx};
use crate::memory::{Allocated, PAGE, Use};
use crate::process::{Process, may_wait, process};
use crate::reach;
use crate::work;

/// Bytes of a handle.
pub const HANDLE: usize = 64;

/// How a handle of memory begins.
const MEMORY: u64 = u64::from_le_bytes(*b"HndlMem1");
/// How a handle of an event begins.
pub const EVENT: u64 = u64::from_le_bytes(*b"HndlEvt1");

/// A handle: numbers of 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Name {
    process: u64,
    file: u64,
    /// A number of the file that no other one has.
    id: u64,
    offset: u64,
    bytes: u64,
    /// A number of the allocation that no other one of the process has.
    allocation: u64,
}

impl Name {
    /// What a handle of a kind says.
    pub fn of(handle: &[u8; HANDLE], kind: u64) -> Option<Name> {
        let (words, _) = handle.as_chunks::<8>();
        let word = |i: usize| u64::from_le_bytes(words[i]);
        let name =
            Name { process: word(1), file: word(2), id: word(3), offset: word(4), bytes: word(5), allocation: word(6) };
        (word(0) == kind && word(7) == 0).then_some(name)
    }

    /// A part of an open file of this process, with the number of the file on the host.
    ///
    /// # Errors
    /// The file has no number.
    pub fn of_file(file: &impl AsRawFd, id: u64, offset: u64, bytes: u64, allocation: u64) -> Result<Name> {
        let number = u64::try_from(file.as_raw_fd()).map_err(|_| Code::MAP_FAILED)?;
        Ok(Name { process: std::process::id().into(), file: number, id, offset, bytes, allocation })
    }

    /// The process that has it.
    pub fn process(&self) -> u64 {
        self.process
    }

    /// Whether it is one of this process.
    pub fn is_own(&self) -> bool {
        self.process == u64::from(std::process::id())
    }

    /// The handle that says so, of a kind.
    pub fn handle(&self, kind: u64) -> [u8; HANDLE] {
        let words = [kind, self.process, self.file, self.id, self.offset, self.bytes, self.allocation, 0];
        let mut handle = [0; HANDLE];
        for (to, word) in handle.chunks_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        handle
    }
}

/// Memory of another process that a context opened.
struct Open {
    /// How often.
    count: u64,
    /// Where the program sees it.
    base: u64,
    /// The reserved addresses, and their bytes.
    reserved: (u64, u64),
    ordinal: i32,
    /// What it was opened as.
    kind: Use,
}

/// Memory of other processes by context and name, and names of memory of this one by the number of the allocation.
#[derive(Default)]
pub struct Opened {
    theirs: Mutex<BTreeMap<(u64, Name), Open>>,
    ours: Mutex<BTreeMap<u64, Name>>,
}

/// The file that a handle names, in whatever process it is.
///
/// # Errors
/// The process has ended, or the host does not let this one look at it.
pub fn open_file(name: &Name) -> Result<Backing> {
    let path = format!("/proc/{}/fd/{}", name.process, name.file);
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(|_| Code::MAP_FAILED)?;
    Backing::adopt(file.into()).filter(|b| b.id() == name.id).ok_or(Code::MAP_FAILED)
}

/// The handle of the allocation that holds an address, if it is of a kind that `is` likes.
///
/// # Errors
/// It is not, or the host refuses it.
pub fn handle_of(address: u64, is: impl FnOnce(Use) -> bool) -> Result<[u8; HANDLE]> {
    context::current()?;
    let process = process()?;
    let found = process.memory.find(address).filter(|a| is(a.kind)).ok_or(Code::INVALID_VALUE)?;
    let mut ours = process.opened.ours.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(name) = ours.get(&found.id) {
        return Ok(name.handle(MEMORY));
    }
    let gpu = process.gpu(found.ordinal)?;
    // What kernels write while pages move would be lost: those that run, on any device, end before, and no other one begins.
    let held = work::hold_launches();
    reach::settle(process)?;
    let (file, offset, bytes) = gpu.device.memory().share(found.base).ok_or(Code::MAP_FAILED)?;
    drop(held);
    // Others may write it from now on.
    gpu.device.memory().settle_blank(found.base, found.bytes);
    let name = Name::of_file(&file.file(), file.id(), offset, bytes, found.id)?;
    ours.insert(found.id, name);
    Ok(name.handle(MEMORY))
}

/// What a handle of memory says.
///
/// # Errors
/// It is none.
pub fn name_of(handle: &[u8; HANDLE]) -> Result<Name> {
    Name::of(handle, MEMORY).ok_or(Code::INVALID_VALUE)
}

/// Maps memory of another process as memory of a kind, and returns its address. Each call is to be followed by a [`close`].
///
/// # Errors
/// It is no handle of such memory, or one of this process; the other process has ended, or the host does not let this one look at it.
pub fn open(handle: &[u8; HANDLE], kind: Use) -> Result<u64> {
    let ctx = context::current()?;
    let name = name_of(handle)?;
    if name.is_own() {
        return Err(Code::INVALID_CONTEXT);
    }
    let process = process()?;
    let mut all = process.opened.theirs.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.get_mut(&(ctx.handle, name)) {
        known.count += 1;
        return Ok(known.base);
    }
    let backing = open_file(&name)?;
    let end = name.offset.checked_add(name.bytes).filter(|end| *end <= backing.bytes()).ok_or(Code::INVALID_VALUE)?;
    let first = name.offset / PAGE * PAGE;
    let bytes = end.next_multiple_of(PAGE) - first;
    let memory = ctx.gpu.device.memory();
    let reserved = memory.reserve(bytes, PAGE).map_err(|_| Code::OUT_OF_MEMORY)?;
    if !memory.map(reserved, bytes, &backing, first) {
        memory.give_reserved(reserved);
        return Err(Code::MAP_FAILED);
    }
    let base = reserved + (name.offset - first);
    memory.expose(reserved, &[Part { base, size: name.bytes, writable: true }]);
    let (ordinal, id) = (ctx.gpu.ordinal, process.next_id());
    process.memory.add(Allocated { base, bytes: name.bytes, kind, ctx: ctx.handle, ordinal, id, reach: None });
    all.insert((ctx.handle, name), Open { count: 1, base, reserved: (reserved, bytes), ordinal, kind });
    Ok(base)
}

/// Takes back one [`open`] of memory of a kind that `is` likes: with the last one the memory is not here any more.
///
/// # Errors
/// The address is not one that was returned.
pub fn close(address: u64, is: impl Fn(Use) -> bool) -> Result {
    context::current()?;
    let process = process()?;
    may_wait()?;
    let mut all = process.opened.theirs.lock().unwrap_or_else(PoisonError::into_inner);
    let found = all.iter_mut().find(|(_, open)| open.base == address && is(open.kind)).ok_or(Code::INVALID_VALUE)?;
    found.1.count -= 1;
    if found.1.count > 0 {
        return Ok(());
    }
    let key = *found.0;
    if let Some(ctx) = process.contexts.get(key.0) {
        // Work that was given before may still use it. Whether that fails is told by another call.
        let _ = ctx.rt.synchronize();
    }
    if let Some(open) = all.remove(&key) {
        gone(process, &open);
    }
    Ok(())
}

fn gone(process: &Process, open: &Open) {
    let _ = process.memory.take(open.base, |kind| kind == open.kind);
    if let Ok(gpu) = process.gpu(open.ordinal) {
        let memory = gpu.device.memory();
        memory.expose(open.reserved.0, &[]);
        memory.unmap(open.reserved.0, open.reserved.1);
        memory.give_reserved(open.reserved.0);
    }
}

impl Opened {
    /// Closes all that a context opened, which has ended.
    pub fn close_all_of(&self, process: &Process, ctx: &Ctx) {
        let mut all = self.theirs.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(of, _), open| {
            if *of == ctx.handle {
                gone(process, open);
            }
            *of != ctx.handle
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_say_what_they_were_told() {
        let name = Name { process: 1, file: 2, id: u64::MAX, offset: 4096, bytes: 5, allocation: 6 };
        assert_eq!(Name::of(&name.handle(MEMORY), MEMORY), Some(name));
        assert!(Name::of(&[0; HANDLE], MEMORY).is_none() && Name::of(&name.handle(EVENT), MEMORY).is_none());
        let mut wrong = name.handle(MEMORY);
        wrong[63] = 1;
        assert!(Name::of(&wrong, MEMORY).is_none());
    }
}
