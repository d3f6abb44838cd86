//! Functions: their kernels, attributes, occupancy. See "Execution Control" and "Occupancy".

use std::ffi::c_char;

use crate::cu;
use crate::device::{current, exists, ready};
use crate::error::{Answer, Error, driver};
use crate::launch::driver_config;
use crate::registry;
use crate::types::{Address, FuncAttributes, LaunchConfig, Out, put};

/// The kernel that a program means: by the host stub of a function, or by a kernel's handle.
pub fn kernel(function: Address) -> Answer<u64> {
    ready()?;
    if let Some(function) = registry::function(function) {
        return function.kernel();
    }
    let handle = u64::try_from(function.addr()).map_err(|_| Error::INVALID_DEVICE_FUNCTION)?;
    driver_function(handle).map(|_| handle)
}

/// The driver's function of a kernel.
pub fn driver_function(kernel: u64) -> Answer<u64> {
    let mut function = 0;
    driver(cu::cuKernelGetFunction(&mut function, kernel)).map_err(|error| match error {
        Error::INVALID_RESOURCE_HANDLE | Error::INVALID_VALUE => Error::INVALID_DEVICE_FUNCTION,
        other => other,
    })?;
    Ok(function)
}

fn attribute(kernel: u64, number: u32, device: i32) -> Answer<i32> {
    let mut value = 0;
    driver(cu::cuKernelGetAttribute(&mut value, number, kernel, device))?;
    Ok(value)
}

/// Numbers of attributes that both interfaces share; the driver has one more before the last.
fn driver_attribute(number: u32) -> Answer<u32> {
    match number {
        8..=15 => Ok(number),
        16 => Ok(17),
        _ => Err(Error::INVALID_VALUE),
    }
}

fn attributes(function: Address) -> Answer<FuncAttributes> {
    let kernel = kernel(function)?;
    let device = current()?;
    let size = |number| attribute(kernel, number, device).map(|v| usize::try_from(v).unwrap_or(0));
    // An attribute that the driver does not know is none that the kernel has.
    let other = |number| attribute(kernel, number, device).unwrap_or(0);
    Ok(FuncAttributes {
        shared_size: size(1)?,
        const_size: size(2)?,
        local_size: size(3)?,
        max_threads: attribute(kernel, 0, device)?,
        registers: attribute(kernel, 4, device)?,
        ptx_version: attribute(kernel, 5, device)?,
        binary_version: attribute(kernel, 6, device)?,
        cache_mode_ca: other(7),
        max_dynamic_shared: attribute(kernel, 8, device)?,
        shared_carveout: other(9),
        cluster_must_be_set: other(10),
        cluster: [other(11), other(12), other(13)],
        cluster_policy: other(15),
        any_cluster_size: other(14),
        rest: [0; 16],
    })
}

fn active_blocks(blocks: Out<'_, i32>, function: Address, block: i32, shared: usize, flags: u32) -> Answer {
    let function = driver_function(kernel(function)?)?;
    let mut found = 0;
    driver(cu::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&mut found, function, block, shared, flags))?;
    put(blocks, found)
}

calls! {
    fn cudaFuncGetAttributes(found: Out<'_, FuncAttributes>, function: Address) {
        let found = found.ok_or(Error::INVALID_VALUE)?;
        put(Some(found), attributes(function)?)
    }

    fn cudaFuncSetAttribute(function: Address, attribute: u32, value: i32) {
        let kernel = kernel(function)?;
        driver(cu::cuKernelSetAttribute(driver_attribute(attribute)?, value, kernel, current()?))
    }

    fn cudaKernelSetAttributeForDevice(handle: u64, attribute: u32, value: i32, device: i32) {
        exists(device)?;
        ready()?;
        driver(cu::cuKernelSetAttribute(driver_attribute(attribute)?, value, handle, device))
    }

    fn cudaFuncSetCacheConfig(function: Address, config: u32) {
        let kernel = kernel(function)?;
        driver(cu::cuKernelSetCacheConfig(kernel, config, current()?))
    }

    // What the banks of shared memory are makes no difference here, nor on newer devices.
    fn cudaFuncSetSharedMemConfig(function: Address, config: u32) {
        kernel(function)?;
        if config > 2 { Err(Error::INVALID_VALUE) } else { Ok(()) }
    }

    fn cudaFuncGetName(name: Out<'_, *const c_char>, function: Address) {
        let kernel = kernel(function)?;
        let mut found = std::ptr::null();
        driver(cu::cuKernelGetName(&mut found, kernel))?;
        put(name, found)
    }

    fn cudaFuncGetParamInfo(function: Address, index: usize, offset: Out<'_, usize>, size: Out<'_, usize>) {
        let kernel = kernel(function)?;
        let (mut at, mut bytes) = (0, 0);
        driver(cu::cuKernelGetParamInfo(kernel, index, &mut at, &mut bytes))?;
        crate::types::put_if(size, bytes);
        put(offset, at)
    }

    fn cudaFuncGetParamCount(function: Address, count: Out<'_, usize>) {
        let kernel = kernel(function)?;
        let (mut at, mut bytes, mut known) = (0, 0, 0);
        while cu::cuKernelGetParamInfo(kernel, known, &mut at, &mut bytes) == 0 {
            known += 1;
        }
        put(count, known)
    }

    fn cudaGetFuncBySymbol(function: Out<'_, u64>, symbol: Address) {
        put(function, driver_function(kernel(symbol)?)?)
    }

    fn cudaGetKernel(found: Out<'_, u64>, stub: Address) {
        put(found, kernel(stub)?)
    }

    fn __cudaGetKernel(found: Out<'_, u64>, stub: Address) {
        put(found, kernel(stub)?)
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks: Out<'_, i32>, function: Address, block: i32, shared: usize) {
        active_blocks(blocks, function, block, shared, 0)
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<'_, i32>, function: Address, block: i32, shared: usize, flags: u32,
    ) {
        active_blocks(blocks, function, block, shared, flags)
    }

    fn cudaOccupancyAvailableDynamicSMemPerBlock(bytes: Out<'_, usize>, function: Address, blocks: i32, block: i32) {
        let function = driver_function(kernel(function)?)?;
        let mut found = 0;
        driver(cu::cuOccupancyAvailableDynamicSMemPerBlock(&mut found, function, blocks, block))?;
        put(bytes, found)
    }

    fn cudaOccupancyMaxActiveClusters(clusters: Out<'_, i32>, function: Address, config: Option<&LaunchConfig>) {
        let function = driver_function(kernel(function)?)?;
        let config = driver_config(config.ok_or(Error::INVALID_VALUE)?)?;
        let mut found = 0;
        // SAFETY: the program says that the attributes of its configuration are there.
        driver(unsafe { cu::cuOccupancyMaxActiveClusters(&mut found, function, &config) })?;
        put(clusters, found)
    }

    fn cudaOccupancyMaxPotentialClusterSize(size: Out<'_, i32>, function: Address, config: Option<&LaunchConfig>) {
        let function = driver_function(kernel(function)?)?;
        let config = driver_config(config.ok_or(Error::INVALID_VALUE)?)?;
        let mut found = 0;
        // SAFETY: the program says that the attributes of its configuration are there.
        driver(unsafe { cu::cuOccupancyMaxPotentialClusterSize(&mut found, function, &config) })?;
        put(size, found)
    }
}
