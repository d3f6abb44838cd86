//! Devices: how many blocks a multiprocessor holds, and what it can do a second.
//!
//! Sources. Limits of a compute capability: `cuda::arch_traits` of libcu++, which NVIDIA publishes (`cuda/__device/arch_traits.h`), with the bytes of shared
//! memory that the system keeps of each block. Units in which shared memory and registers are given out: the occupancy calculator of the CUDA toolkit
//! (`cuda_occupancy.h` of release 13). Rates of products: those at boost clock, dense for matrices, each with the page that it was checked against; a rate that
//! no page confirmed, or on which pages differ, is not in the table.

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
    capability("sm_88", 48, 16, 100),
    capability("sm_89", 48, 24, 100),
    capability("sm_90", 64, 32, 228),
    capability("sm_100", 64, 32, 228),
    capability("sm_103", 64, 32, 228),
    capability("sm_110", 48, 24, 228),
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
    /// Bytes of global memory a second, in 10^9.
    pub gigabytes: f64,
    /// Operations on `.f32` a second, in 10^12; a fused one is two.
    pub f32: f64,
    /// On `.f64`.
    pub f64: f64,
    /// Of products of matrices of `.f16` with sums in `.f32`.
    pub matrix: f64,
    /// Where the rates were found.
    pub source: &'static str,
}

const fn product(
    (name, capability): (&'static str, &'static str),
    gigabytes: f64,
    [f32, f64, matrix]: [f64; 3],
    source: &'static str,
) -> Product {
    Product { name, capability, gigabytes, f32, f64, matrix, source }
}

/// The products.
pub const PRODUCTS: &[Product] = &[
    // 80 multiprocessors at 1.53 GHz: 15.7 and 7.8; 640 tensor cores of 64 fused operations: 125.
    product(
        ("v100-sxm2", "sm_70"),
        900.0,
        [15.7, 7.8, 125.0],
        "developer.nvidia.com/programming-tensor-cores-cuda-9-0 (matrices); fudzilla.com, 'NVIDIA unveils the A100 Tensor Core GPU' (.f32, .f64); \
         pmc.ncbi.nlm.nih.gov/articles/PMC10448217 table 3 (memory)",
    ),
    product(
        ("a100-sxm4-40gb", "sm_80"),
        1555.0,
        [19.5, 9.7, 312.0],
        "Paderborn Center for Parallel Computing, 'NVIDIA A100 40GB with NVLINK'; glennklockwood.com/garden/processors/A100",
    ),
    product(
        ("a100-sxm4-80gb", "sm_80"),
        2039.0,
        [19.5, 9.7, 312.0],
        "glennklockwood.com/garden/processors/A100, after NVIDIA's data sheet nvidia-1758950-r4",
    ),
    // 1,431 GFLOPS of `.f64`: a 64th of `.f32`.
    product(
        ("l40s", "sm_89"),
        864.0,
        [91.6, 91.6 / 64.0, 362.05],
        "mullet.se, data sheet of L40 and L40S (memory, .f32, matrices); itcreations.com/nvidia-gpu/nvidia-l40s-gpu-accelerator (.f64)",
    ),
    product(
        ("h100-sxm5", "sm_90"),
        3350.0,
        [67.0, 34.0, 1979.0 / 2.0],
        "archive-lib.hpctech.co.jp/gpuproduct/nvidia-h100.html, NVIDIA's data sheet; half of what is told with sparsity",
    ),
    // The processor of the H100 with faster memory.
    product(
        ("h200-sxm", "sm_90"),
        4800.0,
        [67.0, 34.0, 1979.0 / 2.0],
        "glennklockwood.com/garden/processors/h100 (arithmetic as the H100); geektopia.es, 13 November 2023 (memory)",
    ),
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
    let (device, on, bound, source) = (device.name.into(), on.into(), bound.into(), Some(product.source.to_owned()));
    Some(Roofline { device, on, intensity, ridge, bound, attainable, source })
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

    /// Threads, bytes of shared memory, registers and the blocks that fit, as `cuda_occupancy.h` of release 13 computes them, for launches at random.
    const CALCULATED: &str = "
        sm_70 639/0/198:0 924/11124/38:1 695/54460/72:1 726/0/250:0 35/4421/189:4 1004/49057/194:0 411/0/145:0 645/10135/255:0 834/34686/209:0
        sm_75 735/0/164:0 190/5295/68:4 311/14253/81:2 649/0/116:0 703/6603/60:1 167/58168/6:1 630/0/224:0 775/6426/93:0 870/16230/243:0
        sm_80 536/0/16:3 543/1424/10:3 458/145360/244:0 638/0/58:1 216/16123/255:1 406/5512/248:0 232/0/195:1 31/18312/153:8 619/146685/238:0
        sm_86 597/0/43:2 221/2835/244:1 316/50383/126:1 753/0/174:0 218/2083/133:1 277/34382/204:0 1020/0/18:1 329/1982/106:1 765/8399/160:0
        sm_87 643/0/245:0 466/18035/163:0 793/131862/94:0 477/0/104:1 496/6989/230:0 319/78598/32:2 383/0/132:1 960/16472/243:0 136/81448/43:2
        sm_89 590/0/118:0 411/3118/141:0 429/18387/150:0 767/0/32:2 7/10694/35:8 1009/14059/213:0 509/0/78:1 642/11442/2:2 823/48915/55:1
        sm_90 546/0/31:3 147/9470/244:1 515/215280/227:0 979/0/83:0 971/27930/232:0 711/203514/124:0 193/0/21:9 585/23911/74:1 1015/99421/208:0
        sm_100 810/0/138:0 728/16991/103:0 1000/19738/210:0 916/0/203:0 680/22677/110:0 796/162287/241:0 985/0/220:0 401/28116/14:4 116/61842/160:3
        sm_110 852/0/181:0 68/17167/8:12 488/157628/252:0 831/0/185:0 713/21442/122:0 526/75846/183:0 15/0/65:24 152/16533/26:9 794/111869/233:0
        sm_120 329/0/95:1 115/1160/140:3 334/81156/59:1 400/0/254:0 796/1006/177:0 119/83003/11:1 239/0/31:6 344/3846/242:0 788/2988/165:0
    ";

    #[test]
    fn occupancy_is_that_of_the_calculator_of_the_toolkit() {
        let mut compared = 0;
        for line in CALCULATED.lines().filter(|l| !l.trim().is_empty()) {
            let (name, launches) = line.trim().split_once(' ').unwrap();
            for launch in launches.split(' ') {
                let n: Vec<u32> = launch.split(['/', ':']).map(|n| n.parse().unwrap()).collect();
                assert_eq!(on(name, n[0], n[1], Some(n[2])).0, n[3], "{name}: {launch}");
                compared += 1;
            }
        }
        assert_eq!(compared, 90);
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
