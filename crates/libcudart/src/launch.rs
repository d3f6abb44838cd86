//! Launches: the three-bracket syntax and the calls. See "Execution Control".

use std::cell::RefCell;
use std::mem::ManuallyDrop;

use crate::cu;
use crate::device::{current, ready};
use crate::error::{Answer, Error, driver};
use crate::function::kernel;
use crate::stream::{PER_THREAD, per_thread};
use crate::types::{Address, Dim3, LaunchConfig, Out, put};

/// What stands between the brackets of a launch.
#[derive(Clone, Copy, Debug)]
struct Configuration {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: u64,
}

/// Configurations that were pushed and not popped.
struct Pushed {
    last: Option<Configuration>,
    /// Those before it: launches among the arguments of a launch. It has no memory while there are none.
    before: Vec<Configuration>,
}

thread_local! {
    // Never dropped, so that destructors of the program's own objects of a thread can launch, whenever they are called.
    static PUSHED: RefCell<ManuallyDrop<Pushed>> =
        const { RefCell::new(ManuallyDrop::new(Pushed { last: None, before: Vec::new() })) };
}

impl Pushed {
    fn push(&mut self, configuration: Configuration) {
        if let Some(before) = self.last.replace(configuration) {
            self.before.push(before);
        }
    }

    fn pop(&mut self) -> Option<Configuration> {
        let popped = self.last.take();
        if self.before.capacity() > 0 {
            self.last = self.before.pop();
            if self.before.is_empty() {
                self.before = Vec::new();
            }
        }
        popped
    }
}

/// An attribute of a launch, laid out as both interfaces have it.
#[repr(C)]
struct Attribute {
    id: u32,
    pad: u32,
    value: [u32; 16],
}

/// A configuration in the driver's words.
///
/// # Errors
/// Sizes that no device has are an invalid configuration; the driver would call them an invalid value.
pub(crate) fn driver_config(config: &LaunchConfig) -> Answer<cu::LaunchConfig> {
    let (grid, block) = (config.grid, config.block);
    let fits = |size: u32, most: u32| (1..=most).contains(&size);
    let threads = u64::from(block.x) * u64::from(block.y) * u64::from(block.z);
    let right = fits(grid.x, i32::MAX as u32)
        && fits(grid.y, 65535)
        && fits(grid.z, 65535)
        && fits(block.x, 1024)
        && fits(block.y, 1024)
        && fits(block.z, 64)
        && threads <= 1024;
    if !right {
        return Err(Error::INVALID_CONFIGURATION);
    }
    Ok(cu::LaunchConfig {
        grid: [grid.x, grid.y, grid.z],
        block: [block.x, block.y, block.z],
        shared: u32::try_from(config.shared).map_err(|_| Error::INVALID_VALUE)?,
        stream: config.stream,
        attributes: config.attributes,
        count: config.count,
    })
}

/// Makes sure that a stream is one of the current device, as the default streams are. The driver would take the device of the stream.
fn is_of_current(stream: u64) -> Answer {
    if stream <= PER_THREAD {
        return Ok(());
    }
    let mut device = 0;
    driver(cu::cuStreamGetDevice(stream, &mut device))?;
    if device == current()? { Ok(()) } else { Err(Error::INVALID_RESOURCE_HANDLE) }
}

fn launch(kernel: u64, config: &LaunchConfig, arguments: Address) -> Answer {
    let config = driver_config(config)?;
    is_of_current(config.stream)?;
    // SAFETY: the program says that the arguments of the kernel and the attributes are there.
    let result = driver(unsafe { cu::cuLaunchKernelEx(&config, kernel, arguments, std::ptr::null()) });
    match result {
        Err(Error::INVALID_RESOURCE_HANDLE) if kernel == 0 => Err(Error::INVALID_DEVICE_FUNCTION),
        other => other,
    }
}

fn plain(grid: Dim3, block: Dim3, shared: usize, stream: u64) -> LaunchConfig {
    LaunchConfig { grid, block, shared, stream, attributes: std::ptr::null(), count: 0 }
}

fn launch_cooperative(
    function: Address,
    grid: Dim3,
    block: Dim3,
    arguments: Address,
    shared: usize,
    stream: u64,
) -> Answer {
    const COOPERATIVE: u32 = 2;
    let kernel = kernel(function)?;
    let mut value = [0; 16];
    value[0] = 1;
    let attribute = Attribute { id: COOPERATIVE, pad: 0, value };
    let config =
        LaunchConfig { attributes: (&raw const attribute).cast(), count: 1, ..plain(grid, block, shared, stream) };
    launch(kernel, &config, arguments)
}

fn launch_extended(
    config: Option<&LaunchConfig>,
    function: Address,
    arguments: Address,
    in_stream: fn(u64) -> u64,
) -> Answer {
    let kernel = kernel(function)?;
    let config = config.ok_or(Error::INVALID_VALUE)?;
    launch(kernel, &LaunchConfig { stream: in_stream(config.stream), ..*config }, arguments)
}

/// `__cudaPushCallConfiguration` of the runtime API. Returns 0: the launch goes on.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, shared: usize, stream: u64) -> u32 {
    PUSHED.with_borrow_mut(|pushed| pushed.push(Configuration { grid, block, shared, stream }));
    0
}

calls! {
    fn __cudaPopCallConfiguration(grid: Out<'_, Dim3>, block: Out<'_, Dim3>, shared: Out<'_, usize>, stream: Out<'_, u64>) {
        let found = PUSHED.with_borrow_mut(|pushed| pushed.pop()).ok_or(Error::MISSING_CONFIGURATION)?;
        put(grid, found.grid)?;
        put(block, found.block)?;
        put(shared, found.shared)?;
        put(stream, found.stream)
    }

    fn cudaLaunchKernel / cudaLaunchKernel_ptsz(
        function: Address, grid: Dim3, block: Dim3, arguments: Address, shared: usize; stream: u64
    ) {
        launch(kernel(function)?, &plain(grid, block, shared, stream), arguments)
    }

    fn __cudaLaunchKernel / __cudaLaunchKernel_ptsz(
        handle: u64, grid: Dim3, block: Dim3, arguments: Address, shared: usize; stream: u64
    ) {
        ready()?;
        // Getting the kernel failed: the program's stub does not look, but the launch must say so.
        if handle == 0 {
            return Err(match crate::error::cudaPeekAtLastError() {
                0 => Error::INVALID_DEVICE_FUNCTION,
                number => Error(number),
            });
        }
        launch(handle, &plain(grid, block, shared, stream), arguments)
    }

    fn cudaLaunchCooperativeKernel / cudaLaunchCooperativeKernel_ptsz(
        function: Address, grid: Dim3, block: Dim3, arguments: Address, shared: usize; stream: u64
    ) {
        launch_cooperative(function, grid, block, arguments, shared, stream)
    }

    fn cudaLaunchKernelExC(config: Option<&LaunchConfig>, function: Address, arguments: Address) {
        launch_extended(config, function, arguments, |stream| stream)
    }

    fn cudaLaunchKernelExC_ptsz(config: Option<&LaunchConfig>, function: Address, arguments: Address) {
        launch_extended(config, function, arguments, per_thread)
    }
}
