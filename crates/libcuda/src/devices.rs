//! Devices.

use handloom_driver::gpu::{Gpu, LINEAR_TEXELS};
use handloom_driver::{Code, Result, context, pool, process};

use crate::abi::DevProp;
use crate::ptr::{Addr, In, Out};

pub(crate) fn get(device: Out<i32>, ordinal: i32) -> Result {
    device.check()?;
    device.set(process()?.gpu(ordinal)?.ordinal)
}

pub(crate) fn count(count: Out<i32>) -> Result {
    count.check()?;
    count.set(i32::try_from(process()?.gpus.len()).map_err(|_| Code::UNKNOWN)?)
}

pub(crate) fn capability(major: Out<i32>, minor: Out<i32>, dev: i32) -> Result {
    major.check()?;
    minor.check()?;
    let gpu = process()?.gpu(dev)?;
    major.set(gpu.attribute(75)?)?;
    minor.set(gpu.attribute(76)?)
}

pub(crate) fn attribute(pi: Out<i32>, attrib: u32, dev: i32) -> Result {
    pi.check()?;
    let number = i32::try_from(attrib).map_err(|_| Code::INVALID_VALUE)?;
    pi.set(process()?.gpu(dev)?.attribute(number)?)
}

pub(crate) fn name(name: Out<u8>, len: i32, dev: i32) -> Result {
    name.set_text(&process()?.gpu(dev)?.name(), len)
}

pub(crate) fn total_memory(bytes: Out<u64>, dev: i32) -> Result {
    bytes.check()?;
    bytes.set(process()?.gpu(dev)?.room().1)
}

pub(crate) fn uuid(uuid: Out<[u8; 16]>, dev: i32) -> Result {
    uuid.check()?;
    uuid.set(process()?.gpu(dev)?.uuid())
}

pub(crate) fn luid(_: Out<u8>, _: Out<u32>, dev: i32) -> Result {
    process()?.gpu(dev)?;
    Err(Code::NOT_SUPPORTED)
}

pub(crate) fn properties(prop: Out<DevProp>, dev: i32) -> Result {
    prop.check()?;
    let gpu = process()?.gpu(dev)?;
    let a = |n| gpu.attribute(n);
    prop.set(DevProp {
        max_threads_per_block: a(1)?,
        max_threads_dim: [a(2)?, a(3)?, a(4)?],
        max_grid_size: [a(5)?, a(6)?, a(7)?],
        shared_mem_per_block: a(8)?,
        total_constant_memory: a(9)?,
        simd_width: a(10)?,
        mem_pitch: a(11)?,
        regs_per_block: a(12)?,
        clock_rate: a(13)?,
        texture_align: a(14)?,
    })
}

/// `0000:01:00.0`.
fn bus_id(gpu: &Gpu) -> String {
    format!("0000:{:02x}:00.0", gpu.number + 1)
}

pub(crate) fn pci_bus_id(id: Out<u8>, len: i32, dev: i32) -> Result {
    let gpu = process()?.gpu(dev)?;
    if usize::try_from(len).is_ok_and(|n| n > bus_id(gpu).len()) {
        id.set_text(&bus_id(gpu), len)
    } else {
        Err(Code::INVALID_VALUE)
    }
}

pub(crate) fn by_pci_bus_id(dev: Out<i32>, id: In<u8>) -> Result {
    dev.check()?;
    let id = id.text()?;
    let is = |short: &str, whole: &str| short.eq_ignore_ascii_case(whole);
    let fits = |gpu: &Gpu| {
        let whole = bus_id(gpu);
        let short = whole.trim_start_matches("0000:");
        [&whole[..], whole.trim_end_matches(".0"), short, short.trim_end_matches(".0")].iter().any(|s| is(&id, s))
    };
    let gpu = process()?.gpus.iter().find(|gpu| fits(gpu)).ok_or(Code::INVALID_DEVICE)?;
    dev.set(gpu.ordinal)
}

pub(crate) fn default_pool(to: Out<u64>, dev: i32) -> Result {
    to.check()?;
    let process = process()?;
    to.set(pool::default_of(process, process.gpu(dev)?)?)
}

pub(crate) fn pool(to: Out<u64>, dev: i32) -> Result {
    to.check()?;
    let process = process()?;
    to.set(pool::current_of(process, process.gpu(dev)?)?)
}

pub(crate) fn set_pool(dev: i32, handle: u64) -> Result {
    let process = process()?;
    let gpu = process.gpu(dev)?;
    let pool = process.pools.get(handle).filter(|p| p.ordinal == dev).ok_or(Code::INVALID_VALUE)?;
    drop(pool);
    gpu.current_pool.store(handle, std::sync::atomic::Ordering::Relaxed);
    Ok(())
}

/// Linear memory as a texture: as many elements of one format as of any other.
pub(crate) fn texture_1d_width(width: Out<u64>, format: u32, channels: u32, dev: i32) -> Result {
    width.check()?;
    process()?.gpu(dev)?;
    handloom_driver::array::channel(format)?;
    if !matches!(channels, 1 | 2 | 4) {
        return Err(Code::INVALID_VALUE);
    }
    width.set(u64::from(LINEAR_TEXELS.unsigned_abs()))
}

pub(crate) fn flush_writes(_: u32, _: u32) -> Result {
    context::current()?;
    Err(Code::NOT_SUPPORTED)
}

pub(crate) fn affinity(supported: Out<i32>, _: u32, dev: i32) -> Result {
    supported.check()?;
    process()?.gpu(dev)?;
    supported.set(0)
}

/// What one device, or two, do in a single step on memory that they share with the host: by operation, the bits of what is supported.
fn atomics(to: Out<u32>, operations: In<u32>, n: u32, of: impl Fn(u32) -> Option<u32>) -> Result {
    to.check()?;
    if n == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let operations = operations.array(n as usize)?;
    let all: Option<Vec<u32>> = operations.iter().map(|o| of(*o)).collect();
    for (i, bits) in all.ok_or(Code::INVALID_VALUE)?.into_iter().enumerate() {
        to.set_at(i, bits);
    }
    Ok(())
}

/// Memory of the host is memory of the device: what kernels do there in one step is one step to the host too.
pub(crate) fn host_atomics(to: Out<u32>, operations: In<u32>, n: u32, dev: i32) -> Result {
    const SIGNED: u32 = 1;
    const UNSIGNED: u32 = 2;
    const REDUCTION: u32 = 4;
    const BITS_32: u32 = 8;
    const BITS_64: u32 = 16;
    const BITS_128: u32 = 32;
    let capability = process()?.gpu(dev)?.capability;
    let wide = if capability >= 90 { BITS_128 } else { 0 };
    atomics(to, operations, n, |operation| {
        Some(match operation {
            // Sums, least and greatest values of integers.
            0..=2 => SIGNED | UNSIGNED | REDUCTION | BITS_32 | BITS_64,
            // Counters that wrap.
            3 | 4 => UNSIGNED | REDUCTION | BITS_32,
            // Bits.
            5..=7 => UNSIGNED | REDUCTION | BITS_32 | BITS_64,
            // Exchanges.
            8 | 9 => UNSIGNED | BITS_32 | BITS_64 | wide,
            // Sums of floats.
            10 => SIGNED | REDUCTION | BITS_32 | BITS_64,
            // Least and greatest floats.
            11 | 12 => 0,
            _ => return None,
        })
    })
}

/// No device reaches the memory of another.
pub(crate) fn peer_atomics(to: Out<u32>, operations: In<u32>, n: u32, from: i32, peer: i32) -> Result {
    let process = process()?;
    if process.gpu(from)?.ordinal == process.gpu(peer)?.ordinal {
        return Err(Code::INVALID_DEVICE);
    }
    atomics(to, operations, n, |operation| (operation <= 12).then_some(0))
}

pub(crate) fn primary_retain(to: Out<u64>, dev: i32) -> Result {
    to.check()?;
    let process = process()?;
    to.set(context::retain_primary(process, process.gpu(dev)?)?)
}

pub(crate) fn primary_release(dev: i32) -> Result {
    let process = process()?;
    context::release_primary(process, process.gpu(dev)?)
}

pub(crate) fn primary_reset(dev: i32) -> Result {
    let process = process()?;
    context::reset_primary(process, process.gpu(dev)?)
}

pub(crate) fn primary_state(dev: i32, flags: Out<u32>, active: Out<i32>) -> Result {
    flags.check()?;
    active.check()?;
    let gpu = process()?.gpu(dev)?;
    let primary = gpu.primary.lock().map_err(|_| Code::UNKNOWN)?;
    flags.set(primary.flags)?;
    active.set(i32::from(primary.count > 0))
}

pub(crate) fn set_primary_flags(dev: i32, flags: u32) -> Result {
    let process = process()?;
    let gpu = process.gpu(dev)?;
    context::check_flags(flags)?;
    let mut primary = gpu.primary.lock().map_err(|_| Code::UNKNOWN)?;
    primary.flags = flags;
    if let Some(ctx) = primary.handle.and_then(|h| process.contexts.get(h)) {
        ctx.flags.store(flags, std::sync::atomic::Ordering::Relaxed);
    }
    Ok(())
}

/// Graphs take their memory from the device at once, and none of it stays with them.
/// Bytes of memory of graphs now and at most: in use (0, 1), and kept (2, 3), which is the same here.
pub(crate) fn graph_mem(dev: i32, attr: u32, value: Addr) -> Result {
    let process = process()?;
    process.gpu(dev)?;
    let bytes = match attr {
        0 | 2 => process.memory.of_graphs(),
        1 | 3 => process.memory.of_graphs_at_most(false),
        _ => return Err(Code::INVALID_VALUE),
    };
    value.out::<u64>().set(bytes)
}

/// The highest numbers can be set back to what is now.
pub(crate) fn set_graph_mem(dev: i32, attr: u32, value: Addr) -> Result {
    let process = process()?;
    process.gpu(dev)?;
    if !matches!(attr, 1 | 3) || value.out::<u64>().get()? != 0 {
        return Err(Code::INVALID_VALUE);
    }
    process.memory.of_graphs_at_most(true);
    Ok(())
}

pub(crate) fn graph_mem_trim(dev: i32) -> Result {
    process()?.gpu(dev).map(drop)
}
