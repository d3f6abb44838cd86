//! Wide code that is made in little time, and the better code that follows where launches take long.

use std::fs;
use std::time::{Duration, Instant};

use handloom_plan::Host;
use handloom_runtime::{
    Arg, Backend, CodeCache, Device, DeviceBuffer, Function, LaunchConfig, LaunchReport, Module, Store, Tier, launch,
};
use handloom_store::LIMIT;

/// Each thread adds its number to a word, by way of shared memory, in which its neighbour of the next warp wrote it.
const TEXT: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 words)
{
    .reg .b32 %r<12>; .reg .b64 %rd<4>;
    .shared .b32 tile[256];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1;
    shl.b32 %r5, %r1, 2;
    mov.u32 %r6, tile;
    add.u32 %r7, %r6, %r5;
    st.shared.u32 [%r7], %r4;
    bar.sync 0;
    xor.b32 %r8, %r5, 128;
    add.u32 %r9, %r6, %r8;
    ld.shared.u32 %r10, [%r9];
    ld.param.u64 %rd1, [words];
    mul.wide.u32 %rd2, %r4, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.u32 %r11, [%rd3];
    add.u32 %r11, %r11, %r10;
    st.global.u32 [%rd3], %r11;
    ret;
}
";

/// Longest time until the better code must be there.
const LIMIT_OF_WAIT: Duration = Duration::from_secs(60);

fn is_there() -> bool {
    Backend::Wide.missing_feature(&Host::detect()).is_none()
}

fn config(grid: u32, threads: usize) -> LaunchConfig {
    LaunchConfig { backend: Backend::Wide, threads, ..LaunchConfig::new([grid, 1, 1], [256, 1, 1]) }
}

fn entry(device: &Device) -> Function {
    Module::from_text(device, "k.ptx", TEXT).unwrap().function(Some("k")).unwrap()
}

/// Words to add to, and how often that was done.
struct Words {
    buffer: DeviceBuffer,
    n: u32,
}

impl Words {
    fn of(device: &Device, grid: u32) -> Words {
        Words { buffer: device.zeroed(u64::from(grid) * 1024).unwrap(), n: 0 }
    }

    fn run(&mut self, f: &Function, config: &LaunchConfig) -> LaunchReport {
        self.n += 1;
        launch(f, config, &[Arg::from(&self.buffer)]).unwrap()
    }

    #[track_caller]
    fn check(&self) {
        let words = self.buffer.to_vec();
        for (i, word) in (0_u32..).zip(words.as_chunks().0) {
            assert_eq!(u32::from_le_bytes(*word), (i ^ 32).wrapping_mul(self.n), "word {i} after {} launches", self.n);
        }
    }
}

#[test]
fn small_launches_rise_together() {
    if !is_there() {
        return;
    }
    let device = Device::new().unwrap();
    let f = entry(&device);
    let c = config(64, 1);
    let mut words = Words::of(&device, 64);
    let start = Instant::now();
    assert_eq!(words.run(&f, &c).tier, Some(Tier::Lean));
    let lean = f.compile(&c).unwrap().code_bytes;
    while words.run(&f, &c).tier != Some(Tier::Quick) {
        assert!(start.elapsed() < LIMIT_OF_WAIT, "{} launches", words.n);
    }
    words.check();
    // Both are there.
    assert!(f.compile(&c).unwrap().code_bytes > 2 * lean);
    assert_eq!(device.code().counts().compiled, 2);
    assert_eq!(words.run(&f, &c).tier, Some(Tier::Quick));
    words.check();
}

#[test]
fn a_long_launch_rises_while_it_runs() {
    if !is_there() {
        return;
    }
    for threads in [1, 2] {
        let start = Instant::now();
        let mut grid = 10_000;
        loop {
            // A device of its own has no code yet.
            let device = Device::new().unwrap();
            let mut words = Words::of(&device, grid);
            let tier = words.run(&entry(&device), &config(grid, threads)).tier;
            words.check();
            if tier == Some(Tier::Quick) {
                break;
            }
            assert!(start.elapsed() < LIMIT_OF_WAIT, "{grid} blocks");
            grid = (2 * grid).min(400_000);
        }
    }
}

#[test]
fn a_launch_may_ask_for_it_from_the_start() {
    if !is_there() {
        return;
    }
    for tier in [Tier::Quick, Tier::Careful] {
        let device = Device::new().unwrap();
        let f = entry(&device);
        let mut words = Words::of(&device, 64);
        assert_eq!(words.run(&f, &LaunchConfig { tier, ..config(64, 1) }).tier, Some(tier));
        words.check();
    }
    // After lean code too.
    let device = Device::new().unwrap();
    let f = entry(&device);
    let mut words = Words::of(&device, 64);
    assert_eq!(words.run(&f, &config(64, 1)).tier, Some(Tier::Lean));
    assert_eq!(words.run(&f, &LaunchConfig { tier: Tier::Quick, ..config(64, 1) }).tier, Some(Tier::Quick));
    words.check();
}

#[test]
fn warps_that_go_alone_anyway_need_no_better_code() {
    if !is_there() {
        return;
    }
    let device = Device::new().unwrap();
    let f = entry(&device);
    let buffer = device.zeroed(4 * 40).unwrap();
    let c = LaunchConfig { backend: Backend::Wide, ..LaunchConfig::new([1, 1, 1], [40, 1, 1]) };
    assert_ne!(launch(&f, &c, &[Arg::from(&buffer)]).unwrap().tier, Some(Tier::Lean));
}

#[test]
fn another_process_begins_with_it() {
    if !is_there() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("handloom-rising-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let process = || Device::with_code(&CodeCache::new(Some(Store::at(&folder, LIMIT).unwrap()))).unwrap();
    let first = |device: &Device| {
        let mut words = Words::of(device, 64);
        let report = words.run(&entry(device), &config(64, 1));
        words.check();
        (report.tier, report.cached)
    };
    let device = process();
    assert_eq!(first(&device), (Some(Tier::Lean), false));
    assert_eq!(first(&process()), (Some(Tier::Lean), true));
    let (f, c, start) = (entry(&device), config(64, 1), Instant::now());
    let mut words = Words::of(&device, 64);
    while words.run(&f, &c).tier != Some(Tier::Quick) {
        assert!(start.elapsed() < LIMIT_OF_WAIT, "{} launches", words.n);
    }
    assert_eq!(first(&process()), (Some(Tier::Quick), true));
    let _ = fs::remove_dir_all(&folder);
}

#[test]
fn a_module_gives_its_memory_back_while_better_code_is_made() {
    if !is_there() {
        return;
    }
    let device = Device::new().unwrap();
    let mut words = Words::of(&device, 4);
    let before = device.memory().room();
    for i in 0..10 {
        // So long that better code takes a while, and each time another kernel.
        let steps = "mad.lo.u32 %r9, %r9, %r4, %r5;\n".repeat(400);
        let more = format!(
            "mov.u32 %r9, {i};\n{steps}mov.u64 %rd1, table;\nadd.u64 %rd1, %rd1, %rd2;\nst.global.u32 [%rd1], %r9;\nret;"
        );
        let text =
            TEXT.replace(".visible .entry", ".global .b32 table[16384];\n.visible .entry").replace("ret;", &more);
        let module = Module::from_text(&device, "k.ptx", &text).unwrap();
        assert_ne!(device.memory().room(), before);
        let (f, c) = (module.function(Some("k")).unwrap(), config(4, 1));
        let takes = f.compile(&c).unwrap().time;
        // Better code is being made after that time, and takes about as long as the first.
        let long = takes.max(Duration::from_millis(1)) + takes * i / 20;
        let first = words.run(&f, &c);
        assert_eq!(first.tier, Some(Tier::Lean));
        let mut ran = first.run;
        while ran < long {
            ran += words.run(&f, &c).run;
        }
        drop((f, module));
        assert_eq!(device.memory().room(), before, "kernel {i}");
    }
    words.check();
}
