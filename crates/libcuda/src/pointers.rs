//! What a program may ask of an address.

use handloom_driver::memory::Use;
use handloom_driver::virtual_memory::{self, Location};
use handloom_driver::{Code, Result, process};

use crate::ptr::{Addr, In, Out};

const HOST: u32 = 1;
const DEVICE: u32 = 2;

/// What is known of an address.
struct Known {
    ctx: u64,
    kind: u32,
    ordinal: i32,
    base: u64,
    bytes: u64,
    id: u64,
    /// What it was asked for as, where it was.
    asked: Option<Use>,
}

impl Known {
    fn is_managed(&self) -> bool {
        self.asked == Some(Use::Managed)
    }

    /// How the device may access it.
    fn access(&self, address: u64) -> u32 {
        const READ_WRITE: u32 = 3;
        match self.asked {
            Some(Use::Mapped(_)) => {
                let access = virtual_memory::access(Location::Device(self.ordinal), address);
                access.ok().and_then(|a| u32::try_from(a).ok()).unwrap_or(0)
            }
            _ => READ_WRITE,
        }
    }

    /// How other processes may be given it: by the bits of handles of mapped memory.
    fn handles(&self) -> u64 {
        match self.asked {
            Some(Use::Mapped(handle)) => {
                u64::from(virtual_memory::by_handle(handle).is_ok_and(|memory| memory.is_shareable))
            }
            _ => 0,
        }
    }
}

fn find(address: u64) -> Result<Option<Known>> {
    let process = process()?;
    // What was allocated lies in the window of a device. Programs ask about memory of their own as often.
    let gpu = process.gpu_of(address);
    if gpu.is_some()
        && let Some(a) = process.memory.find(address)
    {
        return Ok(Some(Known {
            ctx: a.ctx,
            kind: if matches!(a.kind, Use::Host(_)) { HOST } else { DEVICE },
            ordinal: a.ordinal,
            base: a.base,
            bytes: a.bytes,
            id: a.id,
            asked: Some(a.kind),
        }));
    }
    if let Some((base, r)) = process.memory.registered(address) {
        let ctx = process.contexts.get(r.ctx);
        let ordinal = ctx.map_or(0, |c| c.gpu.ordinal);
        return Ok(Some(Known { ctx: r.ctx, kind: HOST, ordinal, base, bytes: r.bytes, id: base, asked: None }));
    }
    // A variable of a module.
    let Some(gpu) = gpu else { return Ok(None) };
    let Some((base, bytes)) = gpu.device.memory().range_of(address) else { return Ok(None) };
    let primary = gpu.primary.lock().map_err(|_| Code::UNKNOWN)?.handle.unwrap_or(0);
    Ok(Some(Known { ctx: primary, kind: DEVICE, ordinal: gpu.ordinal, base, bytes, id: base, asked: None }))
}

/// Writes an attribute of an address of which `known` is known; of one of which nothing is, what says so.
fn write(data: Addr, number: u32, address: u64, known: Option<&Known>) -> Result {
    let int = |n: u32| data.out::<u32>().set(n);
    let wide = |n: u64| data.out::<u64>().set(n);
    let flag = |b: bool| data.out::<u8>().set(u8::from(b));
    match number {
        1 => wide(known.map_or(0, |k| k.ctx)),
        2 => int(known.map_or(0, |k| k.kind)),
        3 => wide(known.map_or(0, |_| address)),
        4 => wide(known.filter(|k| k.kind == HOST || k.is_managed()).map_or(0, |_| address)),
        5 => Err(Code::NOT_SUPPORTED),
        6 => int(0),
        7 => wide(known.map_or(0, |k| k.id)),
        8 => flag(known.is_some_and(Known::is_managed)),
        9 => data.out::<i32>().set(known.map_or(-2, |k| k.ordinal)),
        10 => flag(known.is_some_and(|k| k.asked == Some(Use::Device))),
        15 | 21 => flag(false),
        11 | 19 => wide(known.map_or(0, |k| k.base)),
        12 | 18 => wide(known.map_or(0, |k| k.bytes)),
        13 => flag(known.is_some()),
        14 => wide(known.map_or(0, Known::handles)),
        16 => int(known.map_or(0, |k| k.access(address))),
        17 => wide(known.map_or(0, |k| if let Some(Use::Pool(pool)) = k.asked { pool } else { 0 })),
        20 => wide(known.map_or(0, |k| k.id)),
        _ => Err(Code::INVALID_VALUE),
    }
}

pub(crate) fn attribute(data: Addr, number: u32, address: u64) -> Result {
    if data.0 == 0 || !(1..=22).contains(&number) {
        return Err(Code::INVALID_VALUE);
    }
    const DEVICE_POINTER: u32 = 3;
    const HOST_POINTER: u32 = 4;
    match find(address)? {
        Some(known) => write(data, number, address, Some(&known)),
        // Other memory of the process, where kernels may use it.
        None if matches!(number, DEVICE_POINTER | HOST_POINTER)
            && process()?.gpus.iter().any(|gpu| gpu.device.memory().reaches(address)) =>
        {
            data.out::<u64>().set(address)
        }
        None => Err(Code::INVALID_VALUE),
    }
}

pub(crate) fn attributes(n: u32, numbers: Out<u32>, data: Out<u64>, address: u64) -> Result {
    if n == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let known = find(address)?;
    for i in 0..n as usize {
        let number = In::<u32>::of(numbers.address()).at(i)?;
        let to = In::<u64>::of(data.address()).at(i)?;
        if to == 0 {
            return Err(Code::INVALID_VALUE);
        }
        write(Addr(to), number, address, known.as_ref())?;
    }
    Ok(())
}

/// Synchronous copies always wait.
pub(crate) fn set_attribute(value: Addr, number: u32, address: u64) -> Result {
    const SYNC_MEMOPS: u32 = 6;
    if value.0 == 0 || number != SYNC_MEMOPS {
        return Err(Code::INVALID_VALUE);
    }
    find(address)?.map(drop).ok_or(Code::INVALID_VALUE)
}
