//! Modules.

use handloom_driver::image::{self, Loaded, Refused, Text, fetch_all};
use handloom_driver::jit::Options;
use handloom_driver::module;
use handloom_driver::process::{Process, may_wait};
use handloom_driver::{Code, Result, context, process};

use crate::ptr::{Addr, In, Out, ProcessMemory};

/// How texts are joined: whole, or without the kernels that are refused.
pub(crate) type Join = fn(&[Text]) -> std::result::Result<Loaded, Refused>;

/// Loads what lies at an address, for devices of a capability; logs go to the program's buffers and to the user.
pub(crate) fn loaded(process: &Process, at: u64, capability: u32, options: &Options, join: Join) -> Result<Loaded> {
    if at == 0 {
        return Err(Code::INVALID_VALUE);
    }
    from_images(process, || fetch_all(process.host, at), capability, options, join)
}

fn from_images(
    process: &Process,
    images: impl FnOnce() -> std::result::Result<Vec<Vec<u8>>, Refused>,
    capability: u32,
    options: &Options,
    join: Join,
) -> Result<Loaded> {
    let load = || {
        let mut texts = Vec::new();
        for bytes in images()? {
            texts.extend(image::texts(&bytes, "image.ptx", capability)?);
        }
        if texts.is_empty() {
            return Err(Refused { code: Code::INVALID_IMAGE, log: "the image holds nothing".into() });
        }
        join(&texts)
    };
    match load() {
        Ok(loaded) => {
            options.write(process.host, &loaded.log(), "");
            Ok(loaded)
        }
        Err(refused) => {
            options.write(process.host, "", &refused.log);
            image::told(Err(refused))
        }
    }
}

fn load_with(to: Out<u64>, at: u64, options: &Options) -> Result {
    to.check()?;
    let ctx = context::current()?;
    let loaded = loaded(process()?, at, ctx.gpu.capability, options, image::check)?;
    to.set(module::load(&ctx, &loaded)?)
}

pub(crate) fn load_data(to: Out<u64>, image: Addr) -> Result {
    load_with(to, image.0, &Options::default())
}

pub(crate) fn load_data_ex(to: Out<u64>, image: Addr, n: u32, options: Out<u32>, values: Out<u64>) -> Result {
    let options = Options::read(&ProcessMemory, n, options.address(), values.address())?;
    load_with(to, image.0, &options)
}

pub(crate) fn load_file(to: Out<u64>, name: In<u8>) -> Result {
    to.check()?;
    let ctx = context::current()?;
    let loaded = from_file(name, ctx.gpu.capability, &Options::default(), image::check)?;
    to.set(module::load(&ctx, &loaded)?)
}

/// Loads a file.
pub(crate) fn from_file(name: In<u8>, capability: u32, options: &Options, join: Join) -> Result<Loaded> {
    let name = name.text().map_err(|_| Code::INVALID_VALUE)?;
    let bytes = std::fs::read(name).map_err(|_| Code::FILE_NOT_FOUND)?;
    from_images(process()?, || Ok(vec![bytes]), capability, options, join)
}

pub(crate) fn unload(handle: u64) -> Result {
    let process = process()?;
    context::current()?;
    if module::by_handle(handle)?.ctx == 0 {
        // It goes with its library.
        return Err(Code::NOT_PERMITTED);
    }
    may_wait()?;
    let module = process.modules.remove(handle).ok_or(Code::INVALID_HANDLE)?;
    if let Some(ctx) = process.contexts.get(module.ctx) {
        // Its variables must be there until launches that were given have ended, and copies too.
        let _ = ctx.synchronize();
    }
    module.unload(process);
    Ok(())
}

pub(crate) fn function(to: Out<u64>, handle: u64, name: In<u8>) -> Result {
    to.check()?;
    let module = module::by_handle(handle)?;
    to.set(module.function(handle, &name.text()?)?)
}

pub(crate) fn function_count(to: Out<u32>, handle: u64) -> Result {
    to.check()?;
    to.set(u32::try_from(module::by_handle(handle)?.module.entries().count()).unwrap_or(u32::MAX))
}

pub(crate) fn functions(to: Out<u64>, n: u32, handle: u64) -> Result {
    to.check()?;
    let module = module::by_handle(handle)?;
    for (i, name) in module.module.entries().take(n as usize).enumerate() {
        to.set_at(i, module.function(handle, name)?);
    }
    Ok(())
}

pub(crate) fn global(address: Out<u64>, bytes: Out<u64>, handle: u64, name: In<u8>) -> Result {
    let (start, size) = module::by_handle(handle)?.global(&name.text()?)?;
    address.set_any(start);
    bytes.set_any(size);
    Ok(())
}
