//! Time limits and stops while code is made, and what reports say of that.

use std::fmt::Write;
use std::time::{Duration, Instant};

use handloom_plan::Host;
use handloom_runtime::{
    Arg, Backend, Device, Engine, Function, LaunchConfig, LaunchError, Module, StopHandle, Tier, launch,
};

/// Operations of floats. Of many, code by Cranelift is short in all tiers.
const FLOATS: &str = "fma.rn.f32";
/// Operations of integers, of which code is not short.
const INTEGERS: &str = "mad.lo.u32";

/// An entry of so many operations, in each lane. Lanes part at its end.
fn text(name: &str, op: &str, operations: u32) -> String {
    let mut body = String::new();
    for i in 0..operations {
        let _ = writeln!(body, "    {op} %f{}, %f{}, %f{}, %f{};", i % 7, (i + 1) % 7, (i + 3) % 7, (i + 2) % 7);
    }
    format!(
        "
.visible .entry {name}(.param .u64 buf)
{{
    .reg .b32 %f<7>, %r<4>; .reg .b64 %rd<4>; .reg .pred %p;
    mov.u32 %r1, %tid.x;
    cvt.rn.f32.u32 %f0, %r1; cvt.rn.f32.u32 %f1, %r1; cvt.rn.f32.u32 %f2, %r1; cvt.rn.f32.u32 %f3, %r1;
    cvt.rn.f32.u32 %f4, %r1; cvt.rn.f32.u32 %f5, %r1; cvt.rn.f32.u32 %f6, %r1;
{body}
    ld.param.u64 %rd1, [buf];
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    and.b32 %r2, %r1, 1;
    setp.eq.u32 %p, %r2, 0;
    @%p ret;
    st.global.f32 [%rd3], %f0;
    ret;
}}
"
    )
}

fn load(device: &Device, op: &str, entries: &[(&str, u32)]) -> Module {
    let all: String = entries.iter().map(|(name, n)| text(name, op, *n)).collect();
    Module::from_text(device, "k.ptx", &format!(".version 8.0\n.target sm_80\n.address_size 64\n{all}")).unwrap()
}

/// More operations than are compiled in a few seconds.
const MANY: u32 = 60_000;

fn run(f: &Function, config: &LaunchConfig) -> Result<handloom_runtime::LaunchReport, LaunchError> {
    let buffer = f.module().device().zeroed(128).unwrap();
    launch(f, config, &[Arg::from(&buffer)])
}

#[test]
fn reports_tell_tiers_and_the_wait_for_them() {
    let device = Device::new().unwrap();
    let module = load(&device, INTEGERS, &[("k", 3000)]);
    let f = module.function(None).unwrap();
    let c = LaunchConfig { threads: 1, backend: Backend::Cranelift, ..LaunchConfig::new([1, 1, 1], [32, 1, 1]) };
    let start = Instant::now();
    let report = run(&f, &c).unwrap();
    let wall = start.elapsed();
    // All lanes together take part of it, so lean code comes first.
    assert_eq!(report.tier, Some(Tier::Quick));
    assert!(report.recompile > Duration::ZERO && report.compile > Duration::ZERO);
    assert!(report.compile + report.recompile + report.run <= wall, "{report:?} {wall:?}");
    // A hundred times as long as this kernel runs, and far less than its code takes.
    assert!(report.run < report.recompile / 2, "{report:?}");
    let again = run(&f, &c).unwrap();
    assert_eq!((again.compile, again.recompile, again.tier), (Duration::ZERO, Duration::ZERO, Some(Tier::Quick)));
    let interp = run(&f, &LaunchConfig { engine: Engine::Interp, ..c }).unwrap();
    assert_eq!((interp.compile, interp.recompile, interp.tier), (Duration::ZERO, Duration::ZERO, None));
}

#[test]
fn the_time_limit_holds_while_code_is_made() {
    let device = Device::new().unwrap();
    let module = load(&device, FLOATS, &[("large", MANY), ("small", 3)]);
    let large = module.function(Some("large")).unwrap();
    // Cranelift needs seconds for it on every host.
    let limited =
        LaunchConfig { timeout: Some(Duration::from_millis(200)), ..LaunchConfig::new([1, 1, 1], [32, 1, 1]) };
    let c = LaunchConfig { backend: Backend::Cranelift, ..limited };
    for _ in 0..2 {
        match run(&large, &c) {
            Err(LaunchError::Trap(t)) => {
                assert_eq!(t.kind().word(), "timeout");
                assert!(t.message().ends_with("while compiling large"), "{}", t.message());
                assert_eq!(t.place().map(|(_, at)| at.line), Some(5));
                assert!(t.launch().compile >= Duration::from_millis(200) && t.launch().run == Duration::ZERO);
            }
            other => panic!("{other:?}"),
        }
    }
    // What was left to itself disturbs nobody.
    let small = module.function(Some("small")).unwrap();
    let c = LaunchConfig { timeout: Some(Duration::from_secs(60)), ..c };
    assert!(run(&small, &c).is_ok());
    let results = module.compile_all(&[("small", &c), ("small", &c)]);
    assert!(results.iter().all(Result::is_ok));
}

#[test]
fn wide_code_that_nobody_waits_for_is_given_up() {
    if Backend::Wide.missing_feature(&Host::detect()).is_some() {
        return;
    }
    let device = Device::new().unwrap();
    let module = load(&device, FLOATS, &[("whole", 20_000), ("left", 20_001)]);
    let c = LaunchConfig { backend: Backend::Wide, ..LaunchConfig::new([1, 1, 1], [32, 1, 1]) };
    let start = Instant::now();
    let _ = run(&module.function(Some("whole")).unwrap(), &c).unwrap();
    let whole = start.elapsed();
    let compiled = device.code().counts().compiled;
    let short = LaunchConfig { timeout: Some(Duration::from_millis(1)), ..c.clone() };
    match run(&module.function(Some("left")).unwrap(), &short) {
        Err(LaunchError::Trap(t)) => assert!(t.message().ends_with("while compiling left"), "{}", t.message()),
        other => panic!("{other:?}"),
    }
    std::thread::sleep(2 * whole);
    assert_eq!(device.code().counts().compiled, compiled, "it went on for nobody");
    let _ = run(&module.function(Some("left")).unwrap(), &c).unwrap();
    assert!(device.code().counts().compiled > compiled);
}

#[test]
fn the_time_limit_holds_while_a_further_tier_is_made() {
    let device = Device::new().unwrap();
    let module = load(&device, INTEGERS, &[("k", 12_000)]);
    let f = module.function(None).unwrap();
    let c = LaunchConfig { backend: Backend::Cranelift, ..LaunchConfig::new([1, 1, 1], [32, 1, 1]) };
    f.compile(&c).unwrap();
    let short = LaunchConfig { timeout: Some(Duration::from_millis(20)), ..c.clone() };
    match run(&f, &short) {
        Err(LaunchError::Trap(t)) => assert!(t.message().ends_with("while compiling k"), "{}", t.message()),
        other => panic!("{other:?}"),
    }
    let report = run(&f, &c).unwrap();
    assert_eq!(report.tier, Some(Tier::Quick));
}

#[test]
fn a_stop_ends_the_wait_for_code() {
    let device = Device::new().unwrap();
    let module = load(&device, FLOATS, &[("large", MANY)]);
    let f = module.function(None).unwrap();
    let c = LaunchConfig { stop: StopHandle::new(), ..LaunchConfig::new([1, 1, 1], [32, 1, 1]) };
    let stop = c.stop.clone();
    let asked = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        stop.stop();
        Instant::now()
    });
    let result = run(&f, &c);
    let late = asked.join().unwrap().elapsed();
    assert!(matches!(result, Err(LaunchError::Stopped)), "{result:?}");
    assert!(late < Duration::from_secs(1), "{late:?}");
}
