//! Memory that streams allocate and free. See "Stream Ordered Memory Allocator".

use std::ffi::c_void;

use crate::cu;
use crate::device::{exists, ready};
use crate::error::{Answer, Error, driver};
use crate::types::{Address, IpcHandle, Out, put};

fn pool_of(device: i32, ask: impl FnOnce(&mut u64, i32) -> u32) -> Answer<u64> {
    exists(device)?;
    ready()?;
    let mut pool = 0;
    driver(ask(&mut pool, device))?;
    Ok(pool)
}

calls! {
    fn cudaMallocAsync / cudaMallocAsync_ptsz(address: Out<'_, u64>, bytes: usize; stream: u64) {
        ready()?;
        let address = address.ok_or(Error::INVALID_VALUE)?;
        let mut made = 0;
        if bytes > 0 {
            driver(cu::cuMemAllocAsync(&mut made, bytes, stream))?;
        }
        put(Some(address), made)
    }

    fn cudaMallocFromPoolAsync / cudaMallocFromPoolAsync_ptsz(address: Out<'_, u64>, bytes: usize, pool: u64; stream: u64) {
        ready()?;
        let address = address.ok_or(Error::INVALID_VALUE)?;
        let mut made = 0;
        if bytes > 0 {
            driver(cu::cuMemAllocFromPoolAsync(&mut made, bytes, pool, stream))?;
        }
        put(Some(address), made)
    }

    fn cudaFreeAsync / cudaFreeAsync_ptsz(address: u64; stream: u64) {
        ready()?;
        if address == 0 { Ok(()) } else { driver(cu::cuMemFreeAsync(address, stream)) }
    }

    fn cudaDeviceGetDefaultMemPool(pool: Out<'_, u64>, device: i32) {
        put(pool, pool_of(device, |p, d| cu::cuDeviceGetDefaultMemPool(p, d))?)
    }

    fn cudaDeviceGetMemPool(pool: Out<'_, u64>, device: i32) {
        put(pool, pool_of(device, |p, d| cu::cuDeviceGetMemPool(p, d))?)
    }

    fn cudaDeviceSetMemPool(device: i32, pool: u64) {
        exists(device)?;
        ready()?;
        driver(cu::cuDeviceSetMemPool(device, pool))
    }

    fn cudaMemPoolCreate(pool: Out<'_, u64>, properties: Address) {
        ready()?;
        let mut made = 0;
        // SAFETY: the program says that properties are there, which both interfaces lay out alike; the driver tests for null.
        driver(unsafe { cu::cuMemPoolCreate(&mut made, properties) })?;
        put(pool, made)
    }

    fn cudaMemPoolDestroy(pool: u64) {
        ready()?;
        driver(cu::cuMemPoolDestroy(pool))
    }

    fn cudaMemPoolGetAttribute(pool: u64, attribute: u32, value: *mut c_void) {
        ready()?;
        // SAFETY: the program says that a value of the attribute fits there; the driver tests for null.
        driver(unsafe { cu::cuMemPoolGetAttribute(pool, attribute, value) })
    }

    fn cudaMemPoolSetAttribute(pool: u64, attribute: u32, value: *mut c_void) {
        ready()?;
        // SAFETY: the program says that a value of the attribute is there; the driver tests for null.
        driver(unsafe { cu::cuMemPoolSetAttribute(pool, attribute, value) })
    }

    fn cudaMemPoolSetAccess(pool: u64, access: Address, count: usize) {
        ready()?;
        // SAFETY: the program says that `count` descriptions are there, which both interfaces lay out alike.
        driver(unsafe { cu::cuMemPoolSetAccess(pool, access, count) })
    }

    fn cudaMemPoolGetAccess(flags: Out<'_, u32>, pool: u64, location: *mut c_void) {
        ready()?;
        let mut found = 0;
        // SAFETY: the program says that a place is there, which both interfaces lay out alike; the driver tests for null.
        driver(unsafe { cu::cuMemPoolGetAccess(&mut found, pool, location) })?;
        put(flags, found)
    }

    fn cudaMemPoolExportToShareableHandle(to: *mut c_void, pool: u64, kind: u32, flags: u32) {
        ready()?;
        // SAFETY: the program says that a handle of the kind fits there; the driver tests for null.
        driver(unsafe { cu::cuMemPoolExportToShareableHandle(to, pool, kind, flags.into()) })
    }

    fn cudaMemPoolImportFromShareableHandle(pool: Out<'_, u64>, from: *mut c_void, kind: u32, flags: u32) {
        ready()?;
        let mut made = 0;
        // SAFETY: the program says that it is a handle of the kind, which for files is their number.
        driver(unsafe { cu::cuMemPoolImportFromShareableHandle(&mut made, from, kind, flags.into()) })?;
        put(pool, made)
    }

    fn cudaMemPoolExportPointer(data: Out<'_, IpcHandle>, address: u64) {
        ready()?;
        let mut made = IpcHandle { bytes: [0; 64] };
        driver(cu::cuMemPoolExportPointer(&mut made, address))?;
        put(data, made)
    }

    fn cudaMemPoolImportPointer(address: Out<'_, u64>, pool: u64, data: Option<&IpcHandle>) {
        ready()?;
        let (mut made, mut data) = (0, *data.ok_or(Error::INVALID_VALUE)?);
        driver(cu::cuMemPoolImportPointer(&mut made, pool, &mut data))?;
        put(address, made)
    }

    fn cudaMemPoolTrimTo(pool: u64, keep: usize) {
        ready()?;
        driver(cu::cuMemPoolTrimTo(pool, keep))
    }
}
