//! A device as the driver interface knows it: its name, its attributes, its memory and its primary context.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use handloom_runtime::{
    CodeCache, Device, MAX_BLOCK, MAX_BLOCK_THREADS, MAX_GRID, MAX_SHARED, MAX_STATIC_SHARED, meminfo,
};

use crate::code::{Code, Result};
use crate::config::Config;

/// Multiprocessors: few, since some programs make as many blocks as fit on all of them.
pub const MULTIPROCESSORS: i32 = 16;
/// Blocks of a multiprocessor.
pub const BLOCKS_PER_MULTIPROCESSOR: i32 = 16;
/// Threads of a multiprocessor.
pub const THREADS_PER_MULTIPROCESSOR: i32 = 2048;
/// Registers of a block and of a multiprocessor.
pub const REGISTERS: i32 = 65_536;
/// Shared memory of a multiprocessor in bytes.
pub const SHARED_PER_MULTIPROCESSOR: i32 = 228 << 10;

/// The highest number of an attribute.
const LAST_ATTRIBUTE: i32 = 161;

/// The most elements of a texture of linear memory.
pub const LINEAR_TEXELS: i32 = 1 << 28;

/// Sizes of textures and surfaces by number of the attribute, those of capability 8.0: width, height and depth or number of layers.
const IMAGES: &[(i32, i32)] = &[
    // Textures of arrays in one, two and three dimensions.
    (21, 131_072),
    (22, 131_072),
    (23, 65_536),
    (24, 16_384),
    (25, 16_384),
    (26, 16_384),
    // With layers, in two dimensions and in one; gathered; cubes.
    (27, 32_768),
    (28, 32_768),
    (29, 2048),
    (42, 32_768),
    (43, 2048),
    (45, 32_768),
    (46, 32_768),
    (52, 32_768),
    (53, 32_768),
    (54, 2046),
    // Surfaces.
    (55, 32_768),
    (56, 131_072),
    (57, 65_536),
    (58, 16_384),
    (59, 16_384),
    (60, 16_384),
    (61, 32_768),
    (62, 2048),
    (63, 32_768),
    (64, 32_768),
    (65, 2048),
    (66, 32_768),
    (67, 32_768),
    (68, 2046),
    // Textures of linear memory, and of levels of detail.
    (69, LINEAR_TEXELS),
    (70, 131_072),
    (71, 65_000),
    (72, 2_097_120),
    (73, 32_768),
    (74, 32_768),
    (77, 32_768),
];

/// A device.
#[derive(Debug)]
pub struct Gpu {
    /// Its number, as the program knows it.
    pub ordinal: i32,
    /// Its number among all devices.
    pub number: u32,
    /// Ten times the major number of its capability, plus the minor one.
    pub capability: u32,
    /// Its kernels may use all memory of the process.
    pub is_open: bool,
    /// Memory and threads.
    pub device: Device,
    /// The primary context.
    pub primary: Mutex<Primary>,
    /// Handle of the default memory pool, and of the one in use.
    pub default_pool: OnceLock<u64>,
    /// Handle of the pool that stream-ordered allocations come from.
    pub current_pool: AtomicU64,
}

/// The primary context of a device.
#[derive(Debug, Default)]
pub struct Primary {
    /// Its handle, from the first use on.
    pub handle: Option<u64>,
    /// How often it was retained.
    pub count: u32,
    /// The flags of the next one.
    pub flags: u32,
}

impl Gpu {
    /// A device with a window of its own.
    ///
    /// # Errors
    /// The host has no room.
    pub fn new(ordinal: usize, number: u32, config: &Config, code: &CodeCache) -> Result<Gpu> {
        let device = Device::with_code(code).map_err(|_| Code::OUT_OF_MEMORY)?;
        let memory = config.memory.or_else(|| meminfo("MemTotal:")).unwrap_or(4 << 30);
        device.memory().set_limit(memory);
        Ok(Gpu {
            ordinal: i32::try_from(ordinal).map_err(|_| Code::INVALID_DEVICE)?,
            number,
            capability: config.capability,
            is_open: config.open_addresses,
            device,
            primary: Mutex::default(),
            default_pool: OnceLock::new(),
            current_pool: AtomicU64::new(0),
        })
    }

    /// `Handloom (CPU), sm_89`.
    pub fn name(&self) -> String {
        format!("Handloom (CPU), sm_{}", self.capability)
    }

    /// A number that is the same in every process.
    pub fn uuid(&self) -> [u8; 16] {
        let mut uuid = *b"Handloom\0\0\0\0\0\0\0\0";
        uuid[8..12].copy_from_slice(&self.number.to_be_bytes());
        uuid
    }

    /// Whether an address lies in its memory, allocated or not.
    pub fn owns(&self, address: u64) -> bool {
        self.device.memory().owns(address)
    }

    /// Bytes that are free, and bytes in all.
    pub fn room(&self) -> (u64, u64) {
        let (free, total) = self.device.memory().room();
        (free.min(meminfo("MemAvailable:").unwrap_or(u64::MAX)), total)
    }

    /// Handle of the pool that stream-ordered allocations come from.
    pub fn pool(&self) -> u64 {
        self.current_pool.load(Ordering::Relaxed)
    }

    /// An attribute by its number.
    ///
    /// # Errors
    /// No attribute has it.
    pub fn attribute(&self, number: i32) -> Result<i32> {
        if let Some((_, size)) = IMAGES.iter().find(|(n, _)| *n == number) {
            return Ok(*size);
        }
        let limit = |n: u64| i32::try_from(n).unwrap_or(i32::MAX);
        Ok(match number {
            1 => limit(MAX_BLOCK_THREADS),
            2..=4 => limit(u64::from(MAX_BLOCK[usize::try_from(number - 2).unwrap_or(0)])),
            5..=7 => limit(u64::from(MAX_GRID[usize::try_from(number - 5).unwrap_or(0)])),
            8 => limit(u64::from(MAX_STATIC_SHARED)),
            9 => 64 << 10,
            10 => 32,
            11 => i32::MAX,
            12 | 82 => REGISTERS,
            13 => 1_000_000,
            14 | 30 => 512,
            16 => MULTIPROCESSORS,
            33 => limit(u64::from(self.number) + 1),
            36 => 1_000_000,
            37 => 64,
            38 => 4 << 20,
            39 => THREADS_PER_MULTIPROCESSOR,
            40 => 2,
            51 => 32,
            75 => limit(u64::from(self.capability / 10)),
            76 => limit(u64::from(self.capability % 10)),
            81 => SHARED_PER_MULTIPROCESSOR,
            87 => 2,
            // Memory of the process that was not registered, by the page tables of the host.
            88 | 100 => i32::from(self.is_open),
            97 => limit(u64::from(MAX_SHARED)),
            106 => BLOCKS_PER_MULTIPROCESSOR,
            111 => 1024,
            // Pools are shared by files.
            119 => 1,
            // Clusters, and copies of tensors.
            120 | 127 => i32::from(self.capability >= 90),
            126 => 1,
            131 | 134 => -1,
            // What the device has: overlap, mapped memory, concurrent kernels, one address space, priorities, caches, managed memory, preemption,
            // registered memory by its own address, cooperative launches, virtual memory and files of it, memory pools, events of several processes,
            // function pointers, words that streams wait for.
            15 | 19 | 31 | 41 | 78 | 79 | 80 | 83 | 86 | 89 | 90 | 91 | 92 | 93 | 94 | 95 | 99 | 101 | 102 | 103
            | 115 | 122 | 123 | 125 | 129 => 1,
            // What it has not: a time limit, and other hardware.
            n if (1..=LAST_ATTRIBUTE).contains(&n) => 0,
            _ => return Err(Code::INVALID_VALUE),
        })
    }
}
