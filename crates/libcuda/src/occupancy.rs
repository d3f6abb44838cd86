//! Occupancy.

use handloom_driver::gpu::{BLOCKS_PER_MULTIPROCESSOR, MULTIPROCESSORS, SHARED_PER_MULTIPROCESSOR};
use handloom_driver::module::{Func, function_anywhere};
use handloom_driver::{Code, Result};

use crate::abi::{BlockToShared, LaunchConfig};
use crate::ptr::{In, Out};

pub(crate) fn blocks(to: Out<i32>, f: u64, threads: i32, shared: u64) -> Result {
    to.check()?;
    to.set(function_anywhere(f)?.blocks_per_multiprocessor(threads, shared)?)
}

pub(crate) fn blocks_with_flags(to: Out<i32>, f: u64, threads: i32, shared: u64, flags: u32) -> Result {
    if flags > 1 { Err(Code::INVALID_VALUE) } else { blocks(to, f, threads, shared) }
}

/// The block with the most threads of a multiprocessor, and the grid that fills the device with it.
fn best(func: &Func, shared: impl Fn(i32) -> u64, limit: i32) -> Result<(i32, i32)> {
    let most = i32::try_from(func.max_threads()).unwrap_or(1024);
    let most = if limit > 0 { most.min(limit) } else { most };
    let mut found = (0, 0, 0);
    let mut threads = (most + 31) / 32 * 32;
    while threads > 0 {
        let block = threads.min(most);
        let blocks = func.blocks_per_multiprocessor(block, shared(block))?;
        if blocks * block > found.0 {
            found = (blocks * block, block, blocks);
        }
        threads -= 32;
    }
    Ok((found.1, found.2 * MULTIPROCESSORS))
}

pub(crate) fn potential(
    grid: Out<i32>,
    block: Out<i32>,
    f: u64,
    to_shared: Option<BlockToShared>,
    shared: u64,
    limit: i32,
) -> Result {
    grid.check()?;
    block.check()?;
    let func = function_anywhere(f)?;
    let of = |threads: i32| match to_shared {
        // SAFETY: the program passed this function to be called with numbers of threads.
        Some(call) => unsafe { call(threads) as u64 },
        None => shared,
    };
    let (threads, blocks) = best(&func, of, limit)?;
    block.set(threads)?;
    grid.set(blocks)
}

pub(crate) fn potential_with_flags(
    grid: Out<i32>,
    block: Out<i32>,
    f: u64,
    to_shared: Option<BlockToShared>,
    shared: u64,
    limit: i32,
    flags: u32,
) -> Result {
    if flags > 1 { Err(Code::INVALID_VALUE) } else { potential(grid, block, f, to_shared, shared, limit) }
}

pub(crate) fn dynamic_shared(to: Out<u64>, f: u64, blocks: i32, threads: i32) -> Result {
    const SYSTEM: i32 = 1024;
    to.check()?;
    let func = function_anywhere(f)?;
    if !(1..=BLOCKS_PER_MULTIPROCESSOR).contains(&blocks) || threads <= 0 {
        return Err(Code::INVALID_VALUE);
    }
    let each = u64::from((SHARED_PER_MULTIPROCESSOR / blocks - SYSTEM).max(0).unsigned_abs());
    to.set(each.saturating_sub(u64::from(func.static_shared())).min(u64::from(func.max_dynamic_shared())))
}

pub(crate) fn potential_cluster(to: Out<i32>, f: u64, config: In<LaunchConfig>) -> Result {
    const PORTABLE: i32 = 8;
    to.check()?;
    config.get()?;
    function_anywhere(f)?;
    to.set(PORTABLE)
}

pub(crate) fn active_clusters(to: Out<i32>, f: u64, config: In<LaunchConfig>) -> Result {
    const CLUSTER: u32 = 4;
    to.check()?;
    let config = config.get()?;
    let func = function_anywhere(f)?;
    let threads = config.block.iter().try_fold(1_u32, |n, t| n.checked_mul(*t)).ok_or(Code::INVALID_VALUE)?;
    let threads = i32::try_from(threads).map_err(|_| Code::INVALID_VALUE)?;
    let each = func.blocks_per_multiprocessor(threads, u64::from(config.shared_mem_bytes))?;
    let mut size = func.function.entry().reqcluster.map_or(1, |c| c.iter().product::<u32>());
    for i in 0..u64::from(config.num_attrs) {
        let at = config.attrs + 72 * i;
        if In::<u32>::of(at).get()? == CLUSTER {
            let value = In::<u32>::of(at + 8);
            size = value.array(3)?.into_iter().fold(1_u32, u32::saturating_mul);
        }
    }
    let size = i32::try_from(size).ok().filter(|n| *n > 0).ok_or(Code::INVALID_VALUE)?;
    to.set(each * MULTIPROCESSORS / size)
}
