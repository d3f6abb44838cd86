//! Code for numbers among the parameters of a launch.

use std::fs;
use std::time::{Duration, Instant};

use handloom_plan::Host;
use handloom_runtime::{
    Arg, Backend, CodeCache, Device, DeviceBuffer, Function, LaunchConfig, Module, PreparedLaunch, Store, Tier, launch,
};
use handloom_store::LIMIT;

/// Adds up the `n` words up to each one, in a block of 64: `for (d = 1; d < n; d *= 2)`. `BOUND` says where `n` comes from.
const TEXT: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 words, .param .u32 n)
{
    .reg .b32 %r<12>; .reg .b64 %rd<4>; .reg .pred %p<4>;
    .shared .b32 tile[64];
    mov.u32 %r1, %tid.x;
    ld.param.u64 %rd1, [words];
    BOUND
    mov.u32 %r3, %ctaid.x;
    mad.lo.u32 %r3, %r3, 64, %r1;
    mul.wide.u32 %rd2, %r3, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.u32 %r4, [%rd3];
    shl.b32 %r5, %r1, 2;
    mov.u32 %r6, tile;
    add.u32 %r7, %r6, %r5;
    st.shared.u32 [%r7], %r4;
    mov.u32 %r8, FIRST;
turn:
    bar.sync 0;
    setp.lt.u32 %p1, %r1, %r8;
    mov.u32 %r10, 0;
    shl.b32 %r9, %r8, 2;
    sub.u32 %r9, %r7, %r9;
    @!%p1 ld.shared.u32 %r10, [%r9];
    bar.sync 0;
    ld.shared.u32 %r11, [%r7];
    add.u32 %r11, %r11, %r10;
    st.shared.u32 [%r7], %r11;
    NEXT
    setp.lt.u32 %p2, %r8, %r2;
    @%p2 bra turn;
    ld.shared.u32 %r11, [%r7];
    st.global.u32 [%rd3], %r11;
    ret;
}
";

const BY_PARAM: &str = "ld.param.u32 %r2, [n];";

/// Longest time until code must be there.
const LIMIT_OF_WAIT: Duration = Duration::from_secs(60);

/// Blocks of a launch.
const GRID: u32 = 32;

fn is_there() -> bool {
    Backend::Wide.missing_feature(&Host::detect()).is_none()
}

fn entry(device: &Device, bound: &str, first: u32, next: &str) -> Function {
    let text = TEXT.replace("BOUND", bound).replace("FIRST", &first.to_string()).replace("NEXT", next);
    Module::from_text(device, "k.ptx", &text).unwrap().function(Some("k")).unwrap()
}

fn doubling(device: &Device) -> Function {
    entry(device, BY_PARAM, 1, "shl.b32 %r8, %r8, 1;")
}

fn config() -> LaunchConfig {
    LaunchConfig { backend: Backend::Wide, threads: 1, ..LaunchConfig::new([GRID, 1, 1], [64, 1, 1]) }
}

/// Runs it with a number, of which the result must be right.
#[track_caller]
fn run(device: &Device, f: &Function, config: &LaunchConfig, n: u32) -> Option<Tier> {
    let words: Vec<u32> = (0..64 * GRID).map(|i| i * 7 % 31).collect();
    let mut buffer = device.zeroed(256 * u64::from(GRID)).unwrap();
    buffer.write(0, &words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>());
    let report = launch(f, config, &[Arg::from(&buffer), Arg::from(n)]).unwrap();
    let steps = std::iter::successors(Some(1_usize), |d| Some(2 * d)).take_while(|d| *d == 1 || *d < n as usize);
    let covers: usize = 1 << steps.count();
    for (i, word) in buffer.to_vec().as_chunks().0.iter().enumerate() {
        let first = i.saturating_sub(covers - 1).max(i / 64 * 64);
        let sum: u32 = words[first..=i].iter().sum();
        assert_eq!(u32::from_le_bytes(*word), sum, "word {i} for {n}");
    }
    report.tier
}

/// What is left of words that all were 1, for a number that is a power of 2.
#[track_caller]
fn check_sums_of_ones(buffer: &DeviceBuffer, n: u32) {
    for (i, word) in (0..).zip(buffer.to_vec().as_chunks().0) {
        assert_eq!(u32::from_le_bytes(*word), n.min(i % 64 + 1), "word {i} for {n}");
    }
}

/// Runs it with a number until so many codes were made.
#[track_caller]
fn run_until(device: &Device, f: &Function, n: u32, compiled: u64) {
    let start = Instant::now();
    while device.code().counts().compiled < compiled {
        run(device, f, &config(), n);
        assert!(start.elapsed() < LIMIT_OF_WAIT, "{:?}", device.code().counts());
    }
    (0..3).for_each(|_| _ = run(device, f, &config(), n));
}

#[test]
fn numbers_that_stay_become_constants() {
    if !is_there() {
        return;
    }
    let device = Device::new().unwrap();
    let f = doubling(&device);
    assert_eq!(run(&device, &f, &config(), 64), Some(Tier::Lean));
    // Better code, then that for each number.
    run_until(&device, &f, 64, 3);
    for (n, compiled) in [(16, 4), (33, 5), (8, 6)] {
        run_until(&device, &f, n, compiled);
    }
    // Four numbers have code of their own; all are right in whatever order they come.
    for n in [64, 16, 8, 4, 64, 33, 2, 1, 0, 16, 100, 64] {
        assert_eq!(run(&device, &f, &config(), n), Some(Tier::Quick));
    }
    assert_eq!(device.code().counts().compiled, 6);
}

#[test]
fn a_long_launch_takes_what_is_made_meanwhile() {
    if !is_there() {
        return;
    }
    for threads in [1, 2] {
        let start = Instant::now();
        let mut grid = 20_000;
        loop {
            // A device of its own has no code yet.
            let device = Device::new().unwrap();
            let f = doubling(&device);
            let mut buffer = device.zeroed(256 * u64::from(grid)).unwrap();
            buffer.write(0, &1_u32.to_le_bytes().repeat(64 * grid as usize));
            let long = LaunchConfig { threads, grid: [grid, 1, 1], ..config() };
            let report = launch(&f, &long, &[Arg::from(&buffer), Arg::from(32)]).unwrap();
            check_sums_of_ones(&buffer, 32);
            if report.tier == Some(Tier::Quick) && device.code().counts().compiled == 3 {
                break;
            }
            assert!(start.elapsed() < LIMIT_OF_WAIT, "{grid} blocks");
            grid *= 2;
        }
    }
}

#[test]
fn one_launch_changes_its_numbers() {
    if !is_there() {
        return;
    }
    let device = Device::new().unwrap();
    let f = doubling(&device);
    let mut buffer = device.zeroed(256 * u64::from(GRID)).unwrap();
    let ones = 1_u32.to_le_bytes().repeat(64 * GRID as usize);
    let at_once = LaunchConfig { tier: Tier::Quick, knows_params: true, ..config() };
    let mut launch = PreparedLaunch::new(&f, &at_once, &[Arg::from(&buffer), Arg::from(64)]).unwrap();
    for n in [64, 8, 8, 64, 32, 16, 4, 2, 64, 8] {
        buffer.write(0, &ones);
        launch.set_args(&[Arg::from(&buffer), Arg::from(n)]).unwrap();
        launch.run().unwrap().clean().unwrap();
        check_sums_of_ones(&buffer, n);
    }
    // The first code, and that of four numbers.
    assert_eq!(device.code().counts().compiled, 5);
}

#[test]
fn where_nothing_is_gained_nothing_is_made() {
    if !is_there() {
        return;
    }
    let at_once = LaunchConfig { tier: Tier::Quick, knows_params: true, ..config() };
    let double = "shl.b32 %r8, %r8, 1;";
    let cases = [
        ("a parameter", BY_PARAM, 1, double, 2),
        // Steps of one size stay a loop.
        ("even steps", BY_PARAM, 1, "add.u32 %r8, %r8, 1;", 1),
        ("memory", "ld.global.u32 %r2, [%rd1];", 1, double, 1),
        ("a thread's number", "mov.u32 %r2, %tid.x; or.b32 %r2, %r2, 32; and.b32 %r2, %r2, 32;", 1, double, 1),
    ];
    for (name, bound, first, next, compiled) in cases {
        let device = Device::new().unwrap();
        let f = entry(&device, bound, first, next);
        let buffer = device.zeroed(256 * u64::from(GRID)).unwrap();
        launch(&f, &at_once, &[Arg::from(&buffer), Arg::from(32)]).unwrap().clean().unwrap();
        assert_eq!(device.code().counts().compiled, compiled, "{name}");
    }
}

#[test]
fn another_process_begins_with_the_numbers_of_the_first() {
    if !is_there() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("handloom-special-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let process = || Device::with_code(&CodeCache::new(Some(Store::at(&folder, LIMIT).unwrap()))).unwrap();
    let device = process();
    run_until(&device, &doubling(&device), 64, 3);
    let device = process();
    let f = doubling(&device);
    assert_eq!(run(&device, &f, &config(), 64), Some(Tier::Quick));
    let counts = device.code().counts();
    assert_eq!((counts.loaded, counts.compiled), (2, 0));
    // Other numbers have none.
    assert_eq!(run(&device, &f, &config(), 16), Some(Tier::Quick));
    assert_eq!(device.code().counts(), counts);
    let _ = fs::remove_dir_all(&folder);
}
