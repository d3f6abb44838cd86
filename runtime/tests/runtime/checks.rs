//! Which engine runs a checked launch, and that one that is taken back and run again leaves what one run leaves.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use handloom_runtime::{Arg, CheckConfig, Checks, Device, Engine, LaunchConfig, LaunchReport, Module, launch};

/// Each thread adds 1 to a word and keeps it in shared memory; `how` says what else is read there: 0 its own word, 1 that of thread 0, 2 a word that nobody
/// wrote, 3 the word behind the variable, which is another one's.
const TEXT: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry adds(.param .u64 words)
{
    .reg .b64 %rd<4>; .reg .b32 %r<4>;
    ld.param.u64 %rd1, [words];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    ld.global.u32 %r2, [%rd1];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%rd1], %r2;
    ret;
}
.visible .entry keeps(.param .u64 words, .param .u32 at)
{
    .reg .b64 %rd<4>; .reg .b32 %r<8>; .reg .pred %p;
    .shared .align 4 .b8 low[512];
    .shared .align 4 .b8 high[512];
    ld.param.u64 %rd1, [words];
    ld.param.u32 %r5, [at];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    ld.global.u32 %r2, [%rd1];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%rd1], %r2;
    shl.b32 %r3, %r1, 2;
    mov.u32 %r4, low;
    add.u32 %r3, %r3, %r4;
    st.shared.u32 [%r3], %r2;
    mov.u32 %r6, high;
    st.shared.u32 [%r6], %r2;
    bar.sync 0;
    add.u32 %r3, %r3, %r5;
    ld.shared.u32 %r7, [%r3];
    setp.eq.u32 %p, %r7, 12345678;
    @%p bra out;
    add.u32 %r2, %r2, 1;
    st.global.u32 [%rd1], %r2;
out:
    ret;
}
";

/// Words that 64 threads leave of 0 to 63, and the report.
fn run(entry: &str, at: Option<u32>, checks: &str, engine: Engine) -> (Vec<u32>, LaunchReport) {
    let device = Device::new().unwrap();
    let module = Module::from_text(&device, "k.ptx", TEXT).unwrap();
    let function = module.function(Some(entry)).unwrap();
    let bytes: Vec<u8> = (0..64_u32).flat_map(u32::to_le_bytes).collect();
    let words = device.copy_of(&bytes).unwrap();
    let check = Some(CheckConfig { checks: Checks::parse(checks).unwrap(), ..CheckConfig::default() });
    let config = LaunchConfig { check, engine, ..LaunchConfig::new([1; 3], [64, 1, 1]) };
    let args: Vec<Arg<'_>> = std::iter::once(Arg::from(&words)).chain(at.map(Arg::from)).collect();
    let report = launch(&function, &config, &args).unwrap();
    let left = words.to_vec().chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
    (left, report)
}

#[test]
fn compiled_code_runs_what_reads_no_byte_that_nobody_wrote() {
    for checks in ["memory", "init", "memory,init", "race", "memory,init,race,sync"] {
        let (left, report) = run("adds", None, checks, Engine::Jit);
        assert_eq!(left, (1..65).collect::<Vec<_>>());
        assert!(report.clean().is_ok() && report.tier.is_some(), "{checks}");
        let (left, report) = run("keeps", Some(0), checks, Engine::Jit);
        assert_eq!(left, (2..66).collect::<Vec<_>>());
        // All threads write the first word of `high`: those of one warp are told apart from those of two.
        let n = if checks.contains("race") { 2 } else { 0 };
        assert_eq!((report.findings().len(), report.tier.is_some()), (n, true), "{checks}");
        assert_eq!(report.check.unwrap().interpreted, None, "{checks}");
    }
}

#[test]
fn a_launch_that_reads_others_is_taken_back_and_run_again() {
    for (checks, again) in [("init", true), ("memory,init,race,sync", true), ("memory", false)] {
        // The last 64 words of `low` are nobody's.
        let [jit, interp] = [Engine::Jit, Engine::Interp].map(|engine| run("keeps", Some(256), checks, engine));
        assert_eq!(jit.0, (2..66).collect::<Vec<_>>(), "{checks}");
        assert_eq!(jit.0, interp.0);
        assert_eq!(jit.1.findings(), interp.1.findings(), "{checks}");
        assert_eq!(jit.1.findings().iter().any(|f| f.kind == "uninitialised"), again, "{checks}");
        assert_eq!(jit.1.tier.is_none(), again, "{checks}");
        let why = jit.1.check.unwrap().interpreted;
        assert_eq!(why.is_some_and(|why| why.contains("nobody wrote were read")), again, "{checks}: {why:?}");
    }
}

#[test]
fn an_access_that_leaves_its_variable_is_found_by_compiled_code() {
    let (_, report) = run("keeps", Some(512), "memory", Engine::Jit);
    let [found] = report.findings() else { panic!("{:?}", report.findings()) };
    assert_eq!((found.kind, found.class, found.pairs, report.tier.is_some()), ("out_of_bounds", "variable", 64, true));
    assert_eq!(found.data.what, "shared variable `low` of 512 bytes");
}
