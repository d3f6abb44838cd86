//! Functions and launches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use handloom_driver::context::Ctx;
use handloom_driver::launch;
use handloom_driver::module::{Func, function, function_anywhere};
use handloom_driver::stream::{self, Null};
use handloom_driver::work::{Launch, Shape};
use handloom_driver::{Code, Result};

use crate::abi::{LaunchConfig, LaunchParams};
use crate::ptr::{Addr, In, Out, ProcessMemory};

/// A launch as the program describes it.
pub(crate) fn launch_of(ctx: &Arc<Ctx>, handle: u64, shape: Shape, pointers: u64, extra: u64) -> Result<Launch> {
    let func = function(handle, || Ok(Arc::clone(ctx)))?;
    if shape.grid.contains(&0) || shape.block.contains(&0) {
        return Err(Code::INVALID_VALUE);
    }
    let params = launch::params(&ProcessMemory, &func, pointers, extra)?;
    Ok(Launch { func, handle, shape, params, pointers: OnceLock::new(), hints: BTreeMap::new() })
}

/// Sets the threads of a block for launches to come.
pub(crate) fn set_block(f: u64, x: i32, y: i32, z: i32) -> Result {
    let n = |n: i32| u32::try_from(n).ok().filter(|n| *n > 0).ok_or(Code::INVALID_VALUE);
    let block = [n(x)?, n(y)?, n(z)?];
    function_anywhere(f)?.stored.change(|d| {
        d.block = block;
        Ok(())
    })
}

pub(crate) fn set_shared(f: u64, bytes: u32) -> Result {
    function_anywhere(f)?.stored.change(|d| {
        d.shared = bytes;
        Ok(())
    })
}

pub(crate) fn set_param_bytes(f: u64, bytes: u32) -> Result {
    let bytes = usize::try_from(bytes).ok().filter(|n| *n <= launch::MAX_PARAM_BYTES).ok_or(Code::INVALID_VALUE)?;
    function_anywhere(f)?.stored.change(|d| {
        d.param_bytes = bytes;
        Ok(())
    })
}

pub(crate) fn set_param_int(f: u64, offset: i32, value: u32) -> Result {
    function_anywhere(f)?.stored.change(|d| d.set(offset, &value.to_le_bytes()))
}

pub(crate) fn set_param_float(f: u64, offset: i32, value: f32) -> Result {
    function_anywhere(f)?.stored.change(|d| d.set(offset, &value.to_le_bytes()))
}

pub(crate) fn set_param_bytes_of(f: u64, offset: i32, from: Addr, bytes: u32) -> Result {
    let bytes = In::<u8>::of(from.0).array(bytes as usize)?;
    function_anywhere(f)?.stored.change(|d| d.set(offset, &bytes))
}

pub(crate) fn launch_one(f: u64) -> Result {
    launch_grid(f, 1, 1)
}

pub(crate) fn launch_grid(f: u64, width: i32, height: i32) -> Result {
    launch_grid_in(f, width, height, 0)
}

/// Launches a function as the calls before described it.
pub(crate) fn launch_grid_in(f: u64, width: i32, height: i32, at: u64) -> Result {
    let n = |n: i32| u32::try_from(n).ok().filter(|n| *n > 0).ok_or(Code::INVALID_VALUE);
    let (ctx, stream) = stream::by_handle(at, Null::Legacy)?;
    let func = function(f, || Ok(Arc::clone(&ctx)))?;
    let described = func.stored.now();
    let (block, shared) = (described.block, described.shared);
    if block.contains(&0) {
        return Err(Code::INVALID_VALUE);
    }
    let shape = Shape { grid: [n(width)?, n(height)?, 1], block, shared, ..Shape::default() };
    let params = described.block_of(func.param_bytes())?;
    let launch = Launch { func, handle: f, shape, params, pointers: OnceLock::new(), hints: BTreeMap::new() };
    launch.check()?;
    stream::launch(&ctx, &stream, launch)
}

/// Launches of one kernel on several devices, which begin when all work before them has ended, and end together.
pub(crate) fn launch_on_devices(list: Out<LaunchParams>, n: u32, flags: u32) -> Result {
    const NO_SYNC_BEFORE: u32 = 1;
    const NO_SYNC_AFTER: u32 = 2;
    let launches = In::<LaunchParams>::of(list.address()).array(n as usize)?;
    if launches.is_empty() || flags & !(NO_SYNC_BEFORE | NO_SYNC_AFTER) != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    let mut first: Option<(Shape, String)> = None;
    for l in &launches {
        if l.stream <= stream::PER_THREAD {
            return Err(Code::INVALID_VALUE);
        }
        let (ctx, stream) = stream::by_handle(l.stream, Null::Legacy)?;
        let shape =
            Shape { grid: l.grid, block: l.block, shared: l.shared_mem_bytes, cooperative: true, ..Shape::default() };
        let launch = launch_of(&ctx, l.function, shape, l.params, 0)?;
        launch.check()?;
        check_cooperative(&launch.func, &shape)?;
        let what = (shape, launch.func.function.name().to_owned());
        if !seen.insert(ctx.gpu.ordinal) || first.get_or_insert_with(|| what.clone()) != &what {
            return Err(Code::INVALID_VALUE);
        }
        stream.refuse_capture()?;
        all.push((ctx, stream, launch));
    }
    let lanes: Vec<_> = all.iter().map(|(ctx, stream, _)| (Arc::clone(ctx), Arc::clone(stream))).collect();
    if flags & NO_SYNC_BEFORE == 0 {
        stream::meet(&lanes)?;
    }
    for (ctx, stream, launch) in all {
        stream::launch(&ctx, &stream, launch)?;
    }
    if flags & NO_SYNC_AFTER == 0 { stream::meet(&lanes) } else { Ok(()) }
}

fn launch_on(null: Null, at: u64, handle: u64, shape: Shape, pointers: u64, extra: u64) -> Result {
    let (ctx, stream) = stream::by_handle(at, null)?;
    let launch = launch_of(&ctx, handle, shape, pointers, extra)?;
    launch.check()?;
    stream::launch(&ctx, &stream, launch)
}

#[expect(clippy::too_many_arguments, reason = "the interface has so many")]
pub(crate) fn launch(
    null: Null,
    f: u64,
    gx: u32,
    gy: u32,
    gz: u32,
    bx: u32,
    by: u32,
    bz: u32,
    shared: u32,
    at: u64,
    params: Out<u64>,
    extra: Out<u64>,
) -> Result {
    let shape = Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared, ..Shape::default() };
    launch_on(null, at, f, shape, params.address(), extra.address())
}

#[expect(clippy::too_many_arguments, reason = "the interface has so many")]
pub(crate) fn launch_cooperative(
    null: Null,
    f: u64,
    gx: u32,
    gy: u32,
    gz: u32,
    bx: u32,
    by: u32,
    bz: u32,
    shared: u32,
    at: u64,
    params: Out<u64>,
) -> Result {
    let shape = Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared, cooperative: true, ..Shape::default() };
    let (ctx, _) = stream::by_handle(at, null)?;
    check_cooperative(&*function(f, || Ok(ctx))?, &shape)?;
    launch_on(null, at, f, shape, params.address(), 0)
}

/// All blocks of a cooperative launch have to fit on the device at the same time.
fn check_cooperative(func: &Func, shape: &Shape) -> Result {
    let threads: u64 = shape.block.iter().map(|n| u64::from(*n)).product();
    let threads = i32::try_from(threads).map_err(|_| Code::INVALID_VALUE)?;
    let each = func.blocks_per_multiprocessor(threads, u64::from(shape.shared))?;
    let most = i64::from(each) * i64::from(handloom_driver::gpu::MULTIPROCESSORS);
    let blocks = shape.grid.iter().try_fold(1_i64, |n, g| n.checked_mul(i64::from(*g)));
    if blocks.is_none_or(|n| n > most) { Err(Code::COOPERATIVE_LAUNCH_TOO_LARGE) } else { Ok(()) }
}

/// Bytes of a launch attribute: its number, padding, a value of 64 bytes.
const ATTRIBUTE: u64 = 72;

/// Takes an attribute of a launch: those that say how it runs; hints to a GPU change nothing.
pub(crate) fn take_attribute(shape: &mut Shape, number: u32, value: In<u32>) -> Result {
    match number {
        2 => shape.cooperative = value.get()? != 0,
        4 => {
            let cluster = [value.at(0)?, value.at(1)?, value.at(2)?];
            if cluster.contains(&0) {
                return Err(Code::INVALID_VALUE);
            }
            shape.cluster = (cluster != [1; 3]).then_some(cluster);
        }
        0 | 1 | 3 | 5 | 6 | 8 | 9 | 10 | 11 | 14 | 16 | 17 | 18 => {}
        7 | 12 | 13 => return Err(Code::NOT_SUPPORTED),
        _ => return Err(Code::INVALID_VALUE),
    }
    Ok(())
}

pub(crate) fn launch_ex(null: Null, config: In<LaunchConfig>, f: u64, params: Out<u64>, extra: Out<u64>) -> Result {
    let config = config.get()?;
    let mut shape =
        Shape { grid: config.grid, block: config.block, shared: config.shared_mem_bytes, ..Shape::default() };
    if config.num_attrs > 0 && config.attrs == 0 {
        return Err(Code::INVALID_VALUE);
    }
    for i in 0..u64::from(config.num_attrs) {
        let at = config.attrs + i * ATTRIBUTE;
        take_attribute(&mut shape, In::of(at).get()?, In::of(at + 8))?;
    }
    if shape.cooperative {
        let (ctx, _) = stream::by_handle(config.stream, null)?;
        check_cooperative(&*function(f, || Ok(ctx))?, &shape)?;
    }
    launch_on(null, config.stream, f, shape, params.address(), extra.address())
}

pub(crate) fn attribute(to: Out<i32>, number: u32, f: u64) -> Result {
    to.check()?;
    to.set(function_anywhere(f)?.attribute(number)?)
}

pub(crate) fn set_attribute(f: u64, number: u32, value: i32) -> Result {
    function_anywhere(f)?.set_attribute(number, value)
}

pub(crate) fn set_cache(f: u64, config: u32) -> Result {
    function_anywhere(f)?;
    if config > 3 { Err(Code::INVALID_VALUE) } else { Ok(()) }
}

pub(crate) fn set_shared_config(f: u64, config: u32) -> Result {
    function_anywhere(f)?;
    if config > 2 { Err(Code::INVALID_VALUE) } else { Ok(()) }
}

pub(crate) fn module_of(to: Out<u64>, f: u64) -> Result {
    to.check()?;
    to.set(function_anywhere(f)?.module)
}

/// The address of a name with a NUL, which stays for ever: names are few.
pub(crate) fn name_address(name: &str) -> u64 {
    static NAMES: Mutex<BTreeMap<String, &'static [u8]>> = Mutex::new(BTreeMap::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let text = names.entry(name.to_owned()).or_insert_with(|| {
        let mut text = name.as_bytes().to_vec();
        text.push(0);
        Vec::leak(text)
    });
    text.as_ptr().expose_provenance() as u64
}

pub(crate) fn name(to: Out<u64>, f: u64) -> Result {
    to.check()?;
    to.set(name_address(function_anywhere(f)?.function.name()))
}

/// Where a parameter lies.
pub(crate) fn param_of(func: &Func, i: u64, offset: Out<u64>, bytes: Out<u64>) -> Result {
    let i = usize::try_from(i).map_err(|_| Code::INVALID_VALUE)?;
    let p = func.function.params().get(i).ok_or(Code::INVALID_VALUE)?;
    offset.set(u64::from(p.offset))?;
    bytes.set_any(u64::from(p.size));
    Ok(())
}

pub(crate) fn param(f: u64, i: u64, offset: Out<u64>, bytes: Out<u64>) -> Result {
    param_of(&*function_anywhere(f)?, i, offset, bytes)
}

pub(crate) fn param_count(f: u64, n: Out<u64>) -> Result {
    n.check()?;
    n.set(function_anywhere(f)?.function.params().len() as u64)
}

pub(crate) fn is_loaded(to: Out<u32>, f: u64) -> Result {
    const LOADED: u32 = 1;
    function_anywhere(f)?;
    to.set(LOADED)
}

pub(crate) fn load(f: u64) -> Result {
    function_anywhere(f).map(drop)
}
