//! What code asks for ahead where a row of CTAs goes through more memory than a cache holds.

use std::time::{Duration, Instant};

use handloom_codegen::Stage;
use handloom_plan::Host;
use handloom_runtime::{Arg, Backend, CodeCache, Device, Function, LaunchConfig, Module, Tier, launch};

/// `y[i] = 3 x[i] + y[i]`, where `APART` says how far from each other elements are.
const TEXT: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y)
{
    .reg .b32 %r<8>; .reg .b64 %rd<6>;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mul.wide.u32 %rd3, %r4, APART;
    add.u64 %rd4, %rd1, %rd3;
    add.u64 %rd5, %rd2, %rd3;
    ld.global.u32 %r5, [%rd4];
    ld.global.u32 %r6, [%rd5];
    mad.lo.u32 %r7, %r5, 3, %r6;
    st.global.u32 [%rd5], %r7;
    ret;
}
";

/// Longest time until the better code must be there.
const LIMIT_OF_WAIT: Duration = Duration::from_secs(60);

const GRID: u32 = 100;

fn is_there() -> bool {
    Backend::Wide.missing_feature(&Host::detect()).is_none()
}

fn config() -> LaunchConfig {
    LaunchConfig { backend: Backend::Wide, threads: 1, ..LaunchConfig::new([GRID, 1, 1], [256, 1, 1]) }
}

/// The entry for a host whose last cache has so many bytes.
fn entry(last_cache: u64, apart: u32) -> (Device, Function) {
    let device = Device::on(Host { last_cache, ..Host::detect() }, &CodeCache::default()).unwrap();
    let text = TEXT.replace("APART", &apart.to_string());
    let function = Module::from_text(&device, "k.ptx", &text).unwrap().function(Some("k")).unwrap();
    (device, function)
}

/// How many lines the code of several warps asks for.
fn asked(last_cache: u64, apart: u32) -> usize {
    let (_device, function) = entry(last_cache, apart);
    let code = function.listing(&config()).unwrap().code(Tier::Quick, Stage::Asm).unwrap();
    code.matches("Prefetcht1").count()
}

#[test]
fn rows_that_are_larger_than_the_last_cache_are_asked_for() {
    if !is_there() {
        return;
    }
    // Eight warps read two lines of each of two arrays.
    assert_eq!(asked(32 << 20, 4), 32);
    // Nobody knows what the caches hold; elements have gaps between them.
    assert_eq!(asked(0, 4), 0);
    assert_eq!(asked(32 << 20, 8), 0);
}

#[test]
fn what_is_asked_for_changes_nothing() {
    if !is_there() {
        return;
    }
    // Each CTA goes through three of the first cache; all of them together through a part of the second.
    for last_cache in [1 << 10, 1 << 20] {
        let (device, function) = entry(last_cache, 4);
        let n = 256 * u64::from(GRID);
        let mut x = device.zeroed(4 * n).unwrap();
        x.write(0, &(0..n as u32).flat_map(|i| (i * 7 % 31).to_le_bytes()).collect::<Vec<u8>>());
        let y = device.zeroed(4 * n).unwrap();
        let (start, mut times) = (Instant::now(), 0);
        let mut left = 3;
        while left > 0 {
            let report = launch(&function, &config(), &[Arg::from(&x), Arg::from(&y)]).unwrap();
            times += 1;
            left -= u32::from(report.tier == Some(Tier::Quick));
            assert!(start.elapsed() < LIMIT_OF_WAIT);
        }
        for (i, word) in (0_u32..).zip(y.to_vec().as_chunks().0) {
            assert_eq!(u32::from_le_bytes(*word), 3 * times * (i * 7 % 31), "word {i}");
        }
    }
}
