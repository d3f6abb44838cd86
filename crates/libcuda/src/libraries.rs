//! Libraries and kernels, which belong to no context.

use std::sync::Arc;

use handloom_driver::context::Ctx;
use handloom_driver::image::{self, Loaded};
use handloom_driver::jit::Options;
use handloom_driver::module::{self, Func, Kernel, Library};
use handloom_driver::process::{Process, may_wait};
use handloom_driver::{Code, Result, context, process};

use crate::modules::{from_file, loaded};
use crate::ptr::{Addr, In, Out, ProcessMemory};

/// Loads a library with the options of a call, `n` numbers and values.
fn load(
    to: Out<u64>,
    (n, options, values): (u32, Out<u32>, Out<u64>),
    load: impl FnOnce(&'static Process, &Options) -> Result<Loaded>,
) -> Result {
    to.check()?;
    let process = process()?;
    let options = Options::read(&ProcessMemory, n, options.address(), values.address())?;
    let loaded = load(process, &options)?;
    to.set(process.libraries.add(Library::new(loaded)).ok_or(Code::OUT_OF_MEMORY)?)
}

#[expect(clippy::too_many_arguments, reason = "the interface has so many")]
pub(crate) fn load_data(
    to: Out<u64>,
    code: Addr,
    options: Out<u32>,
    values: Out<u64>,
    n: u32,
    _: Out<u32>,
    _: Out<u64>,
    _: u32,
) -> Result {
    load(to, (n, options, values), |process, options| {
        loaded(process, code.0, process.config.capability, options, image::check_kernels)
    })
}

#[expect(clippy::too_many_arguments, reason = "the interface has so many")]
pub(crate) fn load_file(
    to: Out<u64>,
    name: In<u8>,
    options: Out<u32>,
    values: Out<u64>,
    n: u32,
    _: Out<u32>,
    _: Out<u64>,
    _: u32,
) -> Result {
    load(to, (n, options, values), |process, options| {
        from_file(name, process.config.capability, options, image::check_kernels)
    })
}

fn library(handle: u64) -> Result<Arc<Library>> {
    process()?.libraries.get(handle).ok_or(Code::INVALID_HANDLE)
}

fn kernel_of(handle: u64) -> Result<Arc<Kernel>> {
    process()?.kernels.get(handle).ok_or(Code::INVALID_HANDLE)
}

pub(crate) fn unload(handle: u64) -> Result {
    let process = process()?;
    may_wait()?;
    let library = process.libraries.remove(handle).ok_or(Code::INVALID_HANDLE)?;
    for (_, ctx) in process.contexts.all() {
        let _ = ctx.synchronize();
    }
    library.unload(process);
    Ok(())
}

pub(crate) fn module_of(to: Out<u64>, handle: u64) -> Result {
    to.check()?;
    let ctx = context::current()?;
    to.set(library(handle)?.module_handle(&ctx)?)
}

pub(crate) fn kernel(to: Out<u64>, handle: u64, name: In<u8>) -> Result {
    to.check()?;
    to.set(module::kernel(handle, &name.text()?)?)
}

pub(crate) fn kernel_count(to: Out<u32>, handle: u64) -> Result {
    to.check()?;
    to.set(u32::try_from(library(handle)?.names().count()).unwrap_or(u32::MAX))
}

pub(crate) fn kernels(to: Out<u64>, n: u32, handle: u64) -> Result {
    to.check()?;
    let library = library(handle)?;
    for (i, name) in library.names().take(n as usize).enumerate() {
        to.set_at(i, module::kernel(handle, name)?);
    }
    Ok(())
}

pub(crate) fn global(address: Out<u64>, bytes: Out<u64>, handle: u64, name: In<u8>) -> Result {
    let ctx = context::current()?;
    let module = library(handle)?.module(&ctx)?;
    let (start, size) = module.global(&name.text()?).ok_or(Code::NOT_FOUND)?;
    address.set_any(start);
    bytes.set_any(size);
    Ok(())
}

/// A variable of which there is one for all devices.
pub(crate) fn managed(address: Out<u64>, bytes: Out<u64>, handle: u64, name: In<u8>) -> Result {
    let module = library(handle)?.module(&*context::current()?)?;
    let found = module.global(&name.text()?).filter(|known| module.managed().any(|m| m == *known));
    let (start, size) = found.ok_or(Code::NOT_FOUND)?;
    address.set_any(start);
    bytes.set_any(size);
    Ok(())
}

pub(crate) fn unified(_: Out<u64>, handle: u64, _: In<u8>) -> Result {
    library(handle)?;
    Err(Code::NOT_FOUND)
}

pub(crate) fn kernel_function(to: Out<u64>, handle: u64) -> Result {
    to.check()?;
    to.set(kernel_of(handle)?.function_handle(&*context::current()?)?)
}

pub(crate) fn kernel_library(to: Out<u64>, handle: u64) -> Result {
    to.check()?;
    to.set(kernel_of(handle)?.library)
}

/// The function that a kernel is on a device: in the current context if that is one of the device, else in its primary one.
fn on_device(kernel: &Kernel, dev: i32) -> Result<Arc<Func>> {
    let process = process()?;
    let gpu = process.gpu(dev)?;
    let own = context::current().ok().filter(|ctx| ctx.gpu.ordinal == dev);
    let ctx: Option<Arc<Ctx>> = own.or_else(|| {
        let handle = gpu.primary.lock().ok()?.handle?;
        process.contexts.get(handle)
    });
    kernel.function(&*ctx.ok_or(Code::INVALID_CONTEXT)?)
}

pub(crate) fn attribute(to: Out<i32>, number: u32, handle: u64, dev: i32) -> Result {
    to.check()?;
    to.set(on_device(&*kernel_of(handle)?, dev)?.attribute(number)?)
}

pub(crate) fn set_attribute(number: u32, value: i32, handle: u64, dev: i32) -> Result {
    on_device(&*kernel_of(handle)?, dev)?.set_attribute(number, value)
}

pub(crate) fn set_cache(handle: u64, config: u32, dev: i32) -> Result {
    kernel_of(handle)?;
    process()?.gpu(dev)?;
    if config > 3 { Err(Code::INVALID_VALUE) } else { Ok(()) }
}

pub(crate) fn kernel_name(to: Out<u64>, handle: u64) -> Result {
    to.check()?;
    to.set(crate::execution::name_address(&kernel_of(handle)?.name))
}

pub(crate) fn kernel_param(handle: u64, i: u64, offset: Out<u64>, bytes: Out<u64>) -> Result {
    let func = kernel_of(handle)?.function(&*context::current()?)?;
    crate::execution::param_of(&func, i, offset, bytes)
}

pub(crate) fn kernel_param_count(handle: u64, n: Out<u64>) -> Result {
    n.check()?;
    n.set(kernel_of(handle)?.function(&*context::current()?)?.function.params().len() as u64)
}
