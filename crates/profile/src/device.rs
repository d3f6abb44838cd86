//! Devices: how many blocks a multiprocessor holds, and what it can do a second.
//!
//! Sources. Limits of a compute capability: *CUDA C++ Programming Guide*, table *Technical Specifications per Compute Capability*; the 1,024 bytes of shared
//! memory that the system keeps of each block from 8.0 on: the same guide, of each capability; units in which shared memory and registers are given out: the
//! occupancy calculator of the CUDA toolkit (`cuda_occupancy.h`). Rates of products: the data sheets of NVIDIA, at boost clock, dense for matrices.

use crate::model::{Launch, LimitOf, MostRegisters, Occupancy, Roofline, Totals};

/// What a multiprocessor of a compute capability holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capability {
    /// As a target is written.
    pub name: &'static str,
    /// Warps.
    pub warps: u32,
    /// Blocks.
    pub blocks: u32,
    /// Bytes of shared memory.
    pub shared: u32,
    /// Bytes of shared memory that a block may have.
    pub shared_of_block: u32,
    /// Bytes of shared memory that the system keeps of each block.
    pub reserved: u32,
    /// Bytes in which shared memory is given out.
    pub shared_unit: u32,
}

/// Registers of a multiprocessor, the most of a block, and the most of a thread, in all capabilities of the table.
const REGISTERS: (u32, u32, u32) = (65_536, 65_536, 255);

/// Registers of a warp are given out in this unit, in each of four parts of a multiprocessor.
const REGISTER_UNIT: u32 = 256;
const PARTS: u32 = 4;

const KIB: u32 = 1024;

const fn capability(name: &'static str, warps: u32, blocks: u32, shared_kib: u32) -> Capability {
    let (shared, shared_of_block) = (shared_kib * KIB, (shared_kib - 1) * KIB);
    Capability { name, warps, blocks, shared, shared_of_block, reserved: KIB, shared_unit: 128 }
}

const fn before_80(name: &'static str, warps: u32, blocks: u32, shared_kib: u32) -> Capability {
    let shared = shared_kib * KIB;
    Capability { name, warps, blocks, shared, shared_of_block: shared, reserved: 0, shared_unit: 256 }
}

/// The compute capabilities.
pub const CAPABILITIES: &[Capability] = &[
    before_80("sm_70", 64, 32, 96),
    before_80("sm_75", 32, 16, 64),
    capability("sm_80", 64, 32, 164),
    capability("sm_86", 48, 16, 100),
    capability("sm_87", 48, 16, 164),
    capability("sm_89", 48, 24, 100),
    capability("sm_90", 64, 32, 228),
    capability("sm_100", 64, 32, 228),
    capability("sm_103", 64, 32, 228),
    capability("sm_120", 48, 24, 100),
    capability("sm_121", 48, 24, 100),
];

/// A product: its capability and its rates.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Product {
    /// As `--device` takes it.
    pub name: &'static str,
    /// Its compute capability.
    pub capability: &'static str,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of global memory a second, in 10^9.
    pub gigabytes: f64,
    /// Operations on `.f32` a second, in 10^12; a fused one is two.
    pub f32: f64,
    /// On `.f64`.
    pub f64: f64,
    /// Of products of matrices of `.f16` with sums in `.f32`.
    pub matrix: f64,
}

const fn product(
    (name, capability, multiprocessors): (&'static str, &'static str, u32),
    gigabytes: f64,
    [f32, f64, matrix]: [f64; 3],
) -> Product {
    Product { name, capability, multiprocessors, gigabytes, f32, f64, matrix }
}

/// The products.
pub const PRODUCTS: &[Product] = &[
    product(("v100-sxm2", "sm_70", 80), 900.0, [15.7, 7.8, 125.0]),
    product(("a100-sxm4-40gb", "sm_80", 108), 1555.0, [19.5, 9.7, 312.0]),
    product(("a100-sxm4-80gb", "sm_80", 108), 2039.0, [19.5, 9.7, 312.0]),
    product(("l4", "sm_89", 58), 300.0, [30.3, 30.3 / 64.0, 121.0]),
    product(("l40s", "sm_89", 142), 864.0, [91.6, 91.6 / 64.0, 362.0]),
    product(("h100-sxm5", "sm_90", 132), 3350.0, [67.0, 34.0, 989.0]),
    product(("h200-sxm", "sm_90", 132), 4800.0, [67.0, 34.0, 989.0]),
];

/// A row of the table: a capability, and a product if one was named.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Device {
    /// Its name in the table.
    pub name: &'static str,
    /// What a multiprocessor holds.
    pub capability: Capability,
    /// Its rates.
    pub product: Option<Product>,
}

impl Device {
    /// A row by name: that of a product, or of a capability.
    ///
    /// # Errors
    /// A sentence with all names.
    pub fn named(name: &str) -> Result<Device, String> {
        let of = |name: &str| CAPABILITIES.iter().find(|c| c.name == name).copied();
        if let Some(capability) = of(name) {
            return Ok(Device { name: capability.name, capability, product: None });
        }
        let found = PRODUCTS.iter().find(|p| p.name == name).and_then(|p| Some((*p, of(p.capability)?)));
        if let Some((product, capability)) = found {
            return Ok(Device { name: product.name, capability, product: Some(product) });
        }
        let all: Vec<String> = Device::names().map(|n| format!("`{n}`")).collect();
        Err(format!("no device `{name}` in the table: expected one of {}", all.join(", ")))
    }

    /// All names, capabilities first.
    pub fn names() -> impl Iterator<Item = &'static str> {
        CAPABILITIES.iter().map(|c| c.name).chain(PRODUCTS.iter().map(|p| p.name))
    }
}

/// The most registers of a thread by what an entry says, and the directive that says it.
///
/// # PTX ISA
/// Performance-Tuning Directives: .maxnreg, .minnctapersm (release 9.1).
pub fn most_registers(of: &MostRegisters) -> Option<(u32, &'static str)> {
    let (all, _, of_thread) = REGISTERS;
    let by_blocks = of.min_blocks.zip(of.threads).map(|(blocks, threads)| {
        // As many as let the blocks fit, in the units in which registers of a warp are given out.
        let warps = blocks.saturating_mul(threads.div_ceil(32).max(1));
        let in_part = (all / PARTS).checked_div(warps.div_ceil(PARTS)).unwrap_or(0);
        ((in_part / REGISTER_UNIT * REGISTER_UNIT / 32).clamp(1, of_thread), ".minnctapersm")
    });
    let by_number = of.maxnreg.map(|n| (n.clamp(1, of_thread), ".maxnreg"));
    [by_number, by_blocks].into_iter().flatten().min_by_key(|(n, _)| *n)
}

/// The occupancy of a launch. `shared`: bytes of a block; `registers`: of a thread, if they are known, and who told them.
pub fn occupancy(device: &Device, threads: u32, shared: u32, registers: Option<(u32, &str)>) -> Occupancy {
    let c = device.capability;
    let warps = threads.div_ceil(32).max(1);
    let mut limits = vec![("blocks", c.blocks), ("warps", c.warps / warps)];
    let own = (shared + c.reserved).next_multiple_of(c.shared_unit);
    if let Some(fit) = c.shared.checked_div(own) {
        limits.push(("shared memory", if shared > c.shared_of_block { 0 } else { fit }));
    }
    if let Some((n, _)) = registers {
        let of_warp = (n.max(1) * 32).next_multiple_of(REGISTER_UNIT);
        let (all, of_block, of_thread) = REGISTERS;
        let fits = n <= of_thread && of_warp * warps <= of_block;
        limits.push(("registers", if fits { all / PARTS / of_warp * PARTS / warps } else { 0 }));
    }
    let blocks = limits.iter().map(|(_, n)| *n).min().unwrap_or(0);
    Occupancy {
        device: device.name.into(),
        blocks,
        warps: blocks * warps,
        most_warps: c.warps,
        limited_by: limits.iter().filter(|(_, n)| *n == blocks).map(|(what, _)| (*what).to_owned()).collect(),
        limits: limits.iter().map(|(what, n)| LimitOf { what: (*what).into(), blocks: *n }).collect(),
        registers: registers.map(|(n, _)| n),
        registers_by: registers.map(|(_, by)| by.to_owned()),
    }
}

/// The roofline of a launch, if the device has rates, the launch operations, and global memory is touched.
pub fn roofline(device: &Device, totals: &Totals) -> Option<Roofline> {
    let product = device.product?;
    let intensity = totals.intensity()?;
    // Halves have no row of their own: outside of products of matrices they count with `.f32`.
    let all = [
        ("f32", totals.f32_operations + totals.half_operations, product.f32),
        ("f64", totals.f64_operations, product.f64),
        ("matrix", totals.matrix_operations, product.matrix),
    ];
    let (on, most, rate) = all.into_iter().max_by_key(|(_, n, _)| *n)?;
    if most == 0 {
        return None;
    }
    let ridge = rate * 1e12 / (product.gigabytes * 1e9);
    let bound = if intensity < ridge { "memory" } else { "arithmetic" };
    let attainable = (intensity / ridge).min(1.0);
    Some(Roofline { device: device.name.into(), on: on.into(), intensity, ridge, bound: bound.into(), attainable })
}

/// Fills in what a device says of a launch. `registers`: of a thread, if the user told them; else what the entry says counts.
pub fn place_on(device: &Device, launch: &mut Launch, registers: Option<u32>) {
    let threads = launch.block.iter().product();
    let registers = registers.map(|n| (n, "--regs")).or_else(|| most_registers(&launch.most_registers));
    launch.occupancy = Some(occupancy(device, threads, launch.shared_bytes.iter().sum(), registers));
    launch.roofline = roofline(device, &launch.totals);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(name: &str, threads: u32, shared: u32, registers: Option<u32>) -> (u32, Vec<String>) {
        let o = occupancy(&Device::named(name).unwrap(), threads, shared, registers.map(|n| (n, "--regs")));
        (o.blocks, o.limited_by)
    }

    /// As the occupancy calculator of the toolkit has them.
    #[test]
    fn blocks_of_a_multiprocessor() {
        assert_eq!(on("sm_80", 256, 0, None), (8, vec!["warps".to_owned()]));
        assert_eq!(on("sm_86", 1024, 0, None), (1, vec!["warps".to_owned()]));
        assert_eq!(on("sm_75", 1024, 0, None), (1, vec!["warps".to_owned()]));
        assert_eq!(on("sm_90", 32, 0, None), (32, vec!["blocks".to_owned()]));
        assert_eq!(on("sm_89", 32, 0, None), (24, vec!["blocks".to_owned()]));
        // 48 KiB and one that the system keeps: 4 in 228 KiB.
        assert_eq!(on("sm_90", 128, 48 << 10, None), (4, vec!["shared memory".to_owned()]));
        assert_eq!(on("sm_80", 128, 163 << 10, None), (1, vec!["shared memory".to_owned()]));
        assert_eq!(on("sm_86", 128, 163 << 10, None), (0, vec!["shared memory".to_owned()]));
        // 64 registers: 2,048 of a warp, 32 warps.
        assert_eq!(on("sm_80", 256, 0, Some(64)), (4, vec!["registers".to_owned()]));
        // 33 are given out as 40: 1,280 of a warp, 12 warps in each part.
        assert_eq!(on("sm_80", 256, 0, Some(33)), (6, vec!["registers".to_owned()]));
        assert_eq!(on("sm_80", 1024, 0, Some(65)), (0, vec!["registers".to_owned()]));
        assert_eq!(on("sm_80", 256, 0, Some(255)), (1, vec!["registers".to_owned()]));
    }

    /// What `__launch_bounds__` lets nvcc write: `ptxas` then takes no more registers than these, as its own `-v` shows.
    #[test]
    fn directives_bound_registers() {
        let most = |maxnreg, min_blocks, threads| most_registers(&MostRegisters { maxnreg, min_blocks, threads });
        assert_eq!(most(None, None, Some(256)), None);
        assert_eq!(most(Some(32), None, None), Some((32, ".maxnreg")));
        // 65,536 registers for 8 blocks of 256 threads: 32 each.
        assert_eq!(most(None, Some(8), Some(256)), Some((32, ".minnctapersm")));
        assert_eq!(most(None, Some(2), Some(1024)), Some((32, ".minnctapersm")));
        assert_eq!(most(Some(24), Some(8), Some(256)), Some((24, ".maxnreg")));
        // One block of 256 would leave 256, and a thread has 255 at most.
        assert_eq!(most(None, Some(1), Some(256)), Some((255, ".minnctapersm")));
        assert_eq!(most(None, Some(5), Some(192)), Some((64, ".minnctapersm")));
        for (blocks, threads) in [(1, 1024), (2, 640), (3, 384), (5, 192), (16, 128), (7, 96)] {
            let n = most(None, Some(blocks), Some(threads)).unwrap().0;
            assert!(on("sm_80", threads, 0, Some(n)).0 >= blocks, "{blocks} {threads} {n}");
        }
        let mut launch = Launch { block: [256, 1, 1], ..Launch::default() };
        launch.most_registers.maxnreg = Some(64);
        let device = Device::named("sm_80").unwrap();
        let told = |launch: &Launch| launch.occupancy.as_ref().map(|o| (o.blocks, o.registers_by.clone().unwrap()));
        place_on(&device, &mut launch, None);
        assert_eq!(told(&launch), Some((4, ".maxnreg".to_owned())));
        place_on(&device, &mut launch, Some(128));
        assert_eq!(told(&launch), Some((2, "--regs".to_owned())));
    }

    #[test]
    fn names_are_told() {
        let wrong = Device::named("gtx").unwrap_err();
        assert!(wrong.starts_with("no device `gtx` in the table: expected one of `sm_70`") && wrong.contains("h100"));
        for name in Device::names() {
            assert_eq!(Device::named(name).map(|d| d.name), Ok(name));
        }
    }

    #[test]
    fn memory_or_arithmetic_is_busy_first() {
        let device = Device::named("h100-sxm5").unwrap();
        // A saxpy: two operations for each 12 bytes.
        let mut totals = Totals { f32_operations: 64, global_sectors: 12, ..Totals::default() };
        let r = roofline(&device, &totals).unwrap();
        assert_eq!((r.on.as_str(), r.bound.as_str()), ("f32", "memory"));
        assert!((r.intensity - 64.0 / 384.0).abs() < 1e-12 && (r.ridge - 20.0).abs() < 1e-9);
        totals.f32_operations *= 1000;
        assert_eq!(roofline(&device, &totals).unwrap().bound, "arithmetic");
        assert_eq!(roofline(&Device::named("sm_90").unwrap(), &totals), None);
        assert_eq!(roofline(&device, &Totals::default()), None);
    }
}
