//! Devices, the current device of a thread, and its primary context. See "Device Management" and "Interactions with the CUDA Driver API".

use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::cu;
use crate::error::{Answer, Error, driver};
use crate::types::{Address, Out, put, put_if};

thread_local! {
    static DEVICE: Cell<i32> = const { Cell::new(0) };
}

/// The primary contexts that this library holds, by device.
static HELD: Mutex<Vec<Option<u64>>> = Mutex::new(Vec::new());

/// Makes sure that there is a driver.
pub fn init() -> Answer {
    static INIT: OnceLock<u32> = OnceLock::new();
    driver(*INIT.get_or_init(|| cu::cuInit(0)))
}

/// The primary context of a device, held once for the process.
pub fn primary(device: i32) -> Answer<u64> {
    init()?;
    let index = usize::try_from(device).map_err(|_| Error::INVALID_DEVICE)?;
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(Some(context)) = held.get(index) {
        return Ok(*context);
    }
    let mut context = 0;
    driver(cu::cuDevicePrimaryCtxRetain(&mut context, device))?;
    if held.len() <= index {
        held.resize(index + 1, None);
    }
    held[index] = Some(context);
    Ok(context)
}

/// Makes sure that the thread has a context: its own one if a program made it by the driver API, or the primary one of its current device.
pub fn ready() -> Answer {
    let mut context = 0;
    if cu::cuCtxGetCurrent(&mut context) == 0 && context != 0 {
        return Ok(());
    }
    driver(cu::cuCtxSetCurrent(primary(DEVICE.get())?))
}

/// The current device of the thread.
pub fn current() -> Answer<i32> {
    init()?;
    let (mut context, mut device) = (0, 0);
    if cu::cuCtxGetCurrent(&mut context) == 0 && context != 0 {
        driver(cu::cuCtxGetDevice(&mut device))?;
        return Ok(device);
    }
    Ok(DEVICE.get())
}

/// An attribute of a device, by the number that both interfaces have for it.
pub fn attribute(number: u32, device: i32) -> Answer<i32> {
    let mut value = 0;
    driver(cu::cuDeviceGetAttribute(&mut value, number, device))?;
    Ok(value)
}

/// Makes sure that a device exists.
pub fn exists(device: i32) -> Answer {
    init()?;
    let mut count = 0;
    driver(cu::cuDeviceGetCount(&mut count))?;
    if (0..count).contains(&device) { Ok(()) } else { Err(Error::INVALID_DEVICE) }
}

calls! {
    fn cudaGetDeviceCount(count: Out<'_, i32>) {
        init()?;
        let mut found = 0;
        driver(cu::cuDeviceGetCount(&mut found))?;
        put(count, found)?;
        if found == 0 { Err(Error::NO_DEVICE) } else { Ok(()) }
    }

    fn cudaGetDevice(device: Out<'_, i32>) {
        put(device, current()?)
    }

    fn cudaSetDevice(device: i32) {
        exists(device)?;
        DEVICE.set(device);
        driver(cu::cuCtxSetCurrent(primary(device)?))
    }

    // All devices are alike.
    fn cudaChooseDevice(device: Out<'_, i32>, wanted: Address) {
        exists(0)?;
        if wanted.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        put(device, 0)
    }

    // No cache keeps anything here.
    fn cudaCtxResetPersistingL2Cache() {
        ready()
    }

    fn cudaInitDevice(device: i32, device_flags: u32, flags: u32) {
        exists(device)?;
        if flags & 1 != 0 {
            driver(cu::cuDevicePrimaryCtxSetFlags_v2(device, device_flags))?;
        }
        primary(device).map(|_| ())
    }

    fn cudaSetDeviceFlags(flags: u32) {
        init()?;
        driver(cu::cuDevicePrimaryCtxSetFlags_v2(current()?, flags))
    }

    fn cudaGetDeviceFlags(flags: Out<'_, u32>) {
        init()?;
        let (mut found, mut active) = (0, 0);
        driver(cu::cuDevicePrimaryCtxGetState(current()?, &mut found, &mut active))?;
        put(flags, found)
    }

    fn cudaDeviceSynchronize() {
        ready()?;
        driver(cu::cuCtxSynchronize())
    }

    fn cudaThreadSynchronize() {
        ready()?;
        driver(cu::cuCtxSynchronize())
    }

    fn cudaDeviceReset() {
        reset()
    }

    fn cudaThreadExit() {
        reset()
    }

    fn cudaDeviceGetAttribute(value: Out<'_, i32>, attr: u32, device: i32) {
        exists(device)?;
        put(value, attribute(attr, device)?)
    }

    fn cudaDeviceGetLimit(value: Out<'_, usize>, limit: u32) {
        get_limit(value, limit)
    }

    fn cudaThreadGetLimit(value: Out<'_, usize>, limit: u32) {
        get_limit(value, limit)
    }

    fn cudaDeviceSetLimit(limit: u32, value: usize) {
        ready()?;
        driver(cu::cuCtxSetLimit(limit, value))
    }

    fn cudaThreadSetLimit(limit: u32, value: usize) {
        ready()?;
        driver(cu::cuCtxSetLimit(limit, value))
    }

    // What the caches prefer makes no difference here, nor on newer devices.
    fn cudaDeviceGetCacheConfig(config: Out<'_, u32>) {
        put(config, 0)
    }

    fn cudaThreadGetCacheConfig(config: Out<'_, u32>) {
        put(config, 0)
    }

    fn cudaDeviceSetCacheConfig(config: u32) {
        if config > 3 { Err(Error::INVALID_VALUE) } else { Ok(()) }
    }

    fn cudaThreadSetCacheConfig(config: u32) {
        if config > 3 { Err(Error::INVALID_VALUE) } else { Ok(()) }
    }

    fn cudaDeviceGetSharedMemConfig(config: Out<'_, u32>) {
        put(config, 1)
    }

    fn cudaDeviceSetSharedMemConfig(config: u32) {
        if config > 2 { Err(Error::INVALID_VALUE) } else { Ok(()) }
    }

    fn cudaDeviceGetStreamPriorityRange(least: Out<'_, i32>, greatest: Out<'_, i32>) {
        ready()?;
        let (mut low, mut high) = (0, 0);
        driver(cu::cuCtxGetStreamPriorityRange(&mut low, &mut high))?;
        put_if(least, low);
        put_if(greatest, high);
        Ok(())
    }

    fn cudaDeviceGetPCIBusId(text: *mut c_char, length: i32, device: i32) {
        exists(device)?;
        // SAFETY: the program says that `length` bytes may be written there; the driver tests for null.
        driver(unsafe { cu::cuDeviceGetPCIBusId(text, length, device) })
    }

    fn cudaDeviceGetByPCIBusId(device: Out<'_, i32>, text: *const c_char) {
        init()?;
        let mut found = 0;
        // SAFETY: the program says that a text is there; the driver tests for null.
        driver(unsafe { cu::cuDeviceGetByPCIBusId(&mut found, text) })?;
        put(device, found)
    }

    fn cudaDeviceGetP2PAttribute(value: Out<'_, i32>, attribute: u32, from: i32, to: i32) {
        exists(from)?;
        exists(to)?;
        let mut found = 0;
        driver(cu::cuDeviceGetP2PAttribute(&mut found, attribute, from, to))?;
        put(value, found)
    }

    fn cudaDeviceGetGraphMemAttribute(device: i32, attribute: u32, value: *mut c_void) {
        exists(device)?;
        // SAFETY: the program says that a number of 64 bits may be written there; the driver tests for null.
        driver(unsafe { cu::cuDeviceGetGraphMemAttribute(device, attribute, value) })
    }

    fn cudaDeviceSetGraphMemAttribute(device: i32, attribute: u32, value: *mut c_void) {
        exists(device)?;
        // SAFETY: the program says that a number of 64 bits is there; the driver tests for null.
        driver(unsafe { cu::cuDeviceSetGraphMemAttribute(device, attribute, value) })
    }

    fn cudaDeviceGraphMemTrim(device: i32) {
        exists(device)?;
        driver(cu::cuDeviceGraphMemTrim(device))
    }

    fn cudaDeviceCanAccessPeer(can: Out<'_, i32>, device: i32, peer: i32) {
        exists(device)?;
        exists(peer)?;
        let mut answer = 0;
        driver(cu::cuDeviceCanAccessPeer(&mut answer, device, peer))?;
        put(can, answer)
    }

    fn cudaDeviceGetHostAtomicCapabilities(to: *mut c_void, operations: Address, count: u32, device: i32) {
        exists(device)?;
        // SAFETY: the program says that `count` operations are there, and that as many words fit; the driver tests for null.
        driver(unsafe { cu::cuDeviceGetHostAtomicCapabilities(to, operations, count, device) })
    }

    fn cudaDeviceGetP2PAtomicCapabilities(to: *mut c_void, operations: Address, count: u32, device: i32, peer: i32) {
        exists(device)?;
        exists(peer)?;
        // SAFETY: as above.
        driver(unsafe { cu::cuDeviceGetP2PAtomicCapabilities(to, operations, count, device, peer) })
    }

    fn cudaDeviceEnablePeerAccess(peer: i32, flags: u32) {
        exists(peer)?;
        ready()?;
        driver(cu::cuCtxEnablePeerAccess(primary(peer)?, flags))
    }

    fn cudaDeviceDisablePeerAccess(peer: i32) {
        exists(peer)?;
        ready()?;
        driver(cu::cuCtxDisablePeerAccess(primary(peer)?))
    }

    fn cudaDriverGetVersion(version: Out<'_, i32>) {
        let mut found = 0;
        driver(cu::cuDriverGetVersion(&mut found))?;
        put(version, found)
    }

    in "13" fn cudaRuntimeGetVersion as runtime_version_13(version: Out<'_, i32>) {
        put(version, 13050)
    }

    in "12" fn cudaRuntimeGetVersion as runtime_version_12(version: Out<'_, i32>) {
        put(version, 12090)
    }

    fn cudaDeviceFlushGPUDirectRDMAWrites(target: u32, scope: u32) {
        ready()?;
        driver(cu::cuFlushGPUDirectRDMAWrites(target, scope))
    }

    fn cudaProfilerStart() {
        ready()?;
        driver(cu::cuProfilerStart())
    }

    fn cudaProfilerStop() {
        ready()?;
        driver(cu::cuProfilerStop())
    }

    fn cudaGetDriverEntryPoint / cudaGetDriverEntryPoint_ptsz(name: *const c_char, function: *mut Address, flags: u64, status: *mut u32; on stream) {
        entry_point(name, function, 13050, flags, status, stream)
    }

    fn cudaGetDriverEntryPointByVersion / cudaGetDriverEntryPointByVersion_ptsz(
        name: *const c_char, function: *mut Address, version: u32, flags: u64, status: *mut u32; on stream
    ) {
        entry_point(name, function, i32::try_from(version).map_err(|_| Error::INVALID_VALUE)?, flags, status, stream)
    }
}

/// A function of the driver by name. Without a wish the default stream is that of the call.
fn entry_point(
    name: *const c_char,
    function: *mut Address,
    version: i32,
    flags: u64,
    status: *mut u32,
    stream: u64,
) -> Answer {
    init()?;
    let flags = if flags == 0 && stream == crate::stream::PER_THREAD { 2 } else { flags };
    // SAFETY: the program says that a text is there and that the results may be written; the driver tests for null.
    driver(unsafe { cu::cuGetProcAddress_v2(name, function, version, flags, status) })
}

fn get_limit(value: Out<'_, usize>, limit: u32) -> Answer {
    ready()?;
    let mut found = 0;
    driver(cu::cuCtxGetLimit(&mut found, limit))?;
    put(value, found)
}

/// Destroys all that the primary context of the current device has.
fn reset() -> Answer {
    let device = current()?;
    driver(cu::cuDevicePrimaryCtxReset_v2(device))?;
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(held) = usize::try_from(device).ok().and_then(|index| held.get_mut(index)) {
        *held = None;
    }
    crate::error::forget();
    Ok(())
}
