//! Linking.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use handloom_driver::image::{self, Refused};
use handloom_driver::jit::Options;
use handloom_driver::link::Link;
use handloom_driver::{Code, Result, context, process};

use crate::ptr::{Addr, In, Out, ProcessMemory};

/// Kinds of inputs.
const PTX: u32 = 1;
const NVVM: u32 = 5;

pub(crate) fn create(n: u32, options: Out<u32>, values: Out<u64>, to: Out<u64>) -> Result {
    to.check()?;
    let ctx = context::current()?;
    let log = Options::read(&ProcessMemory, n, options.address(), values.address())?;
    let link = Link::new(ctx.gpu.capability, log);
    to.set(process()?.links.add(Mutex::new(link)).ok_or(Code::OUT_OF_MEMORY)?)
}

fn by_handle(handle: u64) -> Result<Arc<Mutex<Link>>> {
    process()?.links.get(handle).ok_or(Code::INVALID_HANDLE)
}

fn lock(link: &Mutex<Link>) -> MutexGuard<'_, Link> {
    link.lock().unwrap_or_else(PoisonError::into_inner)
}

fn told(link: &Link, result: std::result::Result<(), Refused>) -> Result {
    if let Err(refused) = &result {
        link.log.write(&ProcessMemory, "", &refused.log);
    }
    image::told(result)
}

fn add(handle: u64, kind: u32, bytes: &[u8], name: &str) -> Result {
    let link = by_handle(handle)?;
    let mut link = lock(&link);
    if kind >= NVVM {
        return Err(if kind == NVVM { Code::NOT_SUPPORTED } else { Code::INVALID_VALUE });
    }
    let result = link.add(bytes, name);
    told(&link, result)
}

#[expect(clippy::too_many_arguments, reason = "the interface has so many")]
pub(crate) fn add_data(
    handle: u64,
    kind: u32,
    data: Addr,
    bytes: u64,
    name: In<u8>,
    n: u32,
    options: Out<u32>,
    values: Out<u64>,
) -> Result {
    if data.0 == 0 || bytes == 0 {
        return Err(Code::INVALID_VALUE);
    }
    Options::read(&ProcessMemory, n, options.address(), values.address())?;
    let mut copy = Vec::new();
    let bytes = usize::try_from(bytes).map_err(|_| Code::INVALID_VALUE)?;
    handloom_driver::HostMemory::read(&ProcessMemory, data.0, bytes, &mut |b| copy.extend_from_slice(b));
    if kind == PTX {
        // The length may count the NUL at the end.
        let text = copy.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
        copy.truncate(text);
    }
    let name = if name.is_null() { String::new() } else { name.text().unwrap_or_default() };
    add(handle, kind, &copy, &name)
}

pub(crate) fn add_file(handle: u64, kind: u32, path: In<u8>, n: u32, options: Out<u32>, values: Out<u64>) -> Result {
    let path = path.text().map_err(|_| Code::INVALID_VALUE)?;
    Options::read(&ProcessMemory, n, options.address(), values.address())?;
    let bytes = std::fs::read(&path).map_err(|_| Code::FILE_NOT_FOUND)?;
    add(handle, kind, &bytes, &path)
}

pub(crate) fn complete(handle: u64, to: Out<u64>, bytes: Out<u64>) -> Result {
    to.check()?;
    let link = by_handle(handle)?;
    let mut link = lock(&link);
    let log = link.log;
    match link.complete() {
        Ok((image, info)) => {
            // It lives as long as the linker, which the program destroys when it has used it.
            bytes.set_any(image.len() as u64);
            to.set(image.as_ptr().expose_provenance() as u64)?;
            log.write(&ProcessMemory, &info, "");
            Ok(())
        }
        Err(refused) => {
            log.write(&ProcessMemory, "", &refused.log);
            image::told(Err(refused))
        }
    }
}

pub(crate) fn destroy(handle: u64) -> Result {
    process()?.links.remove(handle).map(drop).ok_or(Code::INVALID_HANDLE)
}
