//! Which engine runs a checked launch, and that one that is taken back and run again leaves what one run leaves.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use handloom_runtime::{
    Arg, Check, CheckConfig, Checks, Device, Engine, LaunchConfig, LaunchError, LaunchReport, Module, RaceOptions,
    launch,
};

use crate::SM_80 as HEAD;

/// Each thread adds 1 to a word and keeps it in shared memory; `how` says what else is read there: 0 its own word, 1 that of thread 0, 2 a word that nobody
/// wrote, 3 the word behind the variable, which is another one's.
const TEXT: &str = "
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
    let module = Module::from_text(&device, "k.ptx", &format!("{HEAD}{TEXT}")).unwrap();
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

/// The classes of what is found where block 1 writes a word and a volatile flag, and block 0 waits for the flag and reads the word.
fn found_of_message(fence: &str, flag_of_reader: &str, strong_volatile: bool, engine: Engine) -> Vec<&'static str> {
    let text = format!(
        "{HEAD}
.visible .entry message(.param .u64 words)
{{
    .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .pred %p<2>; .reg .b16 %h<2>;
    ld.param.u64 %rd1, [words];
    mov.u32 %r1, %ctaid.x;
    setp.eq.u32 %p0, %r1, 0;
    @%p0 bra wait;
    st.global.u32 [%rd1], 7;
    {fence}
    st.volatile.global.u32 [%rd1+64], 1;
    ret;
wait:
    {flag_of_reader}
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra wait;
    {fence}
    ld.global.u32 %r3, [%rd1];
    st.global.u32 [%rd1+128], %r3;
    ret;
}}
"
    );
    let device = Device::new().unwrap();
    let module = Module::from_text(&device, "k.ptx", &text).unwrap();
    let words = device.copy_of(&[0; 256]).unwrap();
    let races = RaceOptions { strong_volatile, ..RaceOptions::default() };
    let check = Some(CheckConfig { checks: Checks::parse("race").unwrap(), races });
    let config = LaunchConfig { check, engine, ..LaunchConfig::new([2, 1, 1], [1; 3]) };
    let report = launch(&module.function(None).unwrap(), &config, &[Arg::from(&words)]).unwrap();
    let mut classes: Vec<&str> = report.findings().iter().map(|f| f.class).collect();
    classes.sort_unstable();
    classes
}

/// The manual (volatile Operation): it is as a relaxed one of the whole system. So a flag is no race with strong accesses of its size, tells nothing
/// without fences, and is one of mixed sizes with others.
#[test]
fn volatile_flags_count_as_asked_for() {
    let [volatile, relaxed] = ["ld.volatile.global.u32 %r2, [%rd1+64];", "ld.relaxed.sys.global.u32 %r2, [%rd1+64];"];
    let half = "ld.volatile.global.u16 %h0, [%rd1+64]; cvt.u32.u16 %r2, %h0;";
    for engine in [Engine::Interp, Engine::Jit] {
        let found = |fence, flag, strong| found_of_message(fence, flag, strong, engine);
        // As plain accesses, both the flag and the word are races, whatever fences there are.
        assert_eq!(found("fence.acq_rel.gpu;", volatile, false), ["unordered", "unordered"]);
        assert_eq!(found("fence.acq_rel.gpu;", relaxed, false), ["unordered", "unordered"]);
        // As the manual says.
        assert_eq!(found("fence.acq_rel.gpu;", volatile, true), [""; 0]);
        assert_eq!(found("fence.acq_rel.gpu;", relaxed, true), [""; 0]);
        assert_eq!(found("fence.acq_rel.cta;", volatile, true), ["scope_too_narrow"]);
        assert_eq!(found("", volatile, true), ["unordered"]);
        assert_eq!(found("fence.acq_rel.gpu;", half, true), ["mixed_size", "unordered"]);
    }
}

/// What to do about lanes that write one word: nothing can be put between what one statement does. And about copies, for which a barrier is not enough.
#[test]
fn hints_fit_what_lanes_do() {
    let fix_in = |class: &str, threads: u32, body: &str| {
        let device = Device::new().unwrap();
        let text = format!(
            "{HEAD}\n.visible .entry k(.param .u64 p) {{ .reg .b64 %rd; .reg .b32 %r<3>; ld.param.u64 %rd, [p]; mov.u32 %r1, %tid.x;\n{body}\nret; }}"
        );
        let module = Module::from_text(&device, "k.ptx", &text).unwrap();
        let buffer = device.copy_of(&[0; 256]).unwrap();
        let config = LaunchConfig::new([1, 1, 1], [threads, 1, 1]).checked(Check::ALL);
        let report = launch(&module.function(None).unwrap(), &config, &[Arg::from(&buffer)]).unwrap();
        let [found] = report.findings() else { panic!("{body}: {:?}", report.findings()) };
        assert_eq!(found.class, class);
        found.fix.unwrap_or_default().to_string()
    };
    let fix_of = |class: &str, body: &str| fix_in(class, 32, body);
    assert!(fix_of("same_warp", "st.global.u32 [%rd], %r1;").starts_with("let one lane write or use an atomic"));
    let two =
        "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd, %rd2; st.global.u32 [%rd3], %r1; ld.global.u32 %r2, [%rd+4];";
    let two = two.replace("mul.wide", ".reg .b64 %rd2; .reg .b64 %rd3; mul.wide");
    assert_eq!(fix_of("same_warp", &two), "put a `bar.warp.sync` between them");
    // An atomic and a `volatile` read, in a warp and in two; with a plain read, and of another size, the manual finds a race too.
    let flag = |thread: u32, read: &str| {
        format!(
            ".reg .pred %p<2>; setp.eq.u32 %p0, %r1, 0; setp.eq.u32 %p1, %r1, {thread};
            @%p0 atom.global.add.u32 %r2, [%rd], 1;
            @%p1 {read} %r2, [%rd];"
        )
    };
    let by_volatile = "order them by atomics, or count `volatile` as the manual does (`--check-volatile`)";
    assert_eq!(fix_of("same_warp", &flag(1, "ld.volatile.global.u32")), by_volatile);
    assert_eq!(fix_in("unordered", 64, &flag(32, "ld.volatile.global.u32")), by_volatile);
    assert_eq!(fix_of("same_warp", &flag(1, "ld.global.u32")), "put a `bar.warp.sync` between them");
    assert_eq!(fix_in("unordered", 64, &flag(32, "ld.global.u32")), "");
    assert!(fix_of("mixed_size", &flag(1, "ld.volatile.global.u8")).starts_with("access the location with one size"));
    let steps = two.replace("st.", "st.volatile.").replace("ld.global", "ld.volatile.global");
    assert_eq!(fix_of("same_warp", &steps), "put a `bar.warp.sync` between them");
    // Lane 0 waits for its copy after it has met the others.
    let copy = "
        .shared .align 16 .b32 s[4]; .reg .pred %p; setp.eq.u32 %p, %r1, 0;
        @%p cp.async.ca.shared.global [s], [%rd], 16;
        bar.warp.sync -1;
        @%p cp.async.wait_all;
        @!%p ld.shared.u32 %r2, [s];";
    let fix = fix_of("unordered", copy);
    assert!(fix.contains("after a wait for it: for its group in its thread"), "{fix}");
}

/// 64 threads arrive at an object that expects 65, and wait for the phase.
#[test]
fn a_deadlock_at_an_object_says_what_its_phase_lacks() {
    let text = format!(
        "{HEAD}
.visible .entry waits()
{{
    .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<2>;
    .shared .align 8 .b64 meeting[2];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, meeting;
    setp.ne.u32 %p0, %r1, 0;
    @%p0 bra made;
    mbarrier.init.shared.b64 [%r2+8], 65;
made:
    bar.sync 0;
    mbarrier.arrive.shared.b64 %rd0, [%r2+8];
again:
    mbarrier.test_wait.shared.b64 %p1, [%r2+8], %rd0;
    @!%p1 bra again;
    ret;
}}
"
    );
    let device = Device::new().unwrap();
    let module = Module::from_text(&device, "k.ptx", &text).unwrap();
    let check = Some(CheckConfig { checks: Checks::parse("sync").unwrap(), ..CheckConfig::default() });
    let config = LaunchConfig { check, ..LaunchConfig::new([1; 3], [64, 1, 1]) };
    let Err(LaunchError::Trap(report)) = launch(&module.function(None).unwrap(), &config, &[]) else {
        panic!("it ends");
    };
    assert_eq!(report.kind().word(), "deadlock");
    let what = "the `mbarrier` object `meeting`+8, whose phase lacks 1 of 65 arrivals";
    assert!(report.trap().waiters.iter().all(|w| w.what == what && w.count == 32), "{:?}", report.trap().waiters);
    assert_eq!(report.trap().waiters.len(), 2);
}

/// Words that three blocks of a checked launch leave, each thread its own: what nobody wrote of a variable in local memory, before it writes it. An unchecked
/// launch has written the same memory before.
fn left_in_local_memory(checks: &str, engine: Engine, words: u32) -> Vec<u32> {
    let bytes = 4 * words;
    let text = format!(
        "{HEAD}
.visible .entry stays(.param .u64 out, .param .u32 at)
{{
    .local .align 4 .b8 kept[{bytes}];
    .reg .b64 %rd<6>; .reg .b32 %r<6>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [at];
    cvt.u64.u32 %rd2, %r1;
    mov.u64 %rd3, kept;
    add.u64 %rd3, %rd3, %rd2;
    ld.local.u32 %r2, [%rd3];
    mov.u32 %r3, 7;
    st.local.u32 [%rd3], %r3;
    mov.u32 %r4, %tid.x;
    mov.u32 %r5, %ctaid.x;
    mad.lo.u32 %r4, %r5, 40, %r4;
    mul.wide.u32 %rd4, %r4, 4;
    add.u64 %rd4, %rd4, %rd1;
    st.global.u32 [%rd4], %r2;
    ret;
}}
"
    );
    let device = Device::new().unwrap();
    let module = Module::from_text(&device, "k.ptx", &text).unwrap();
    let function = module.function(Some("stays")).unwrap();
    let out = device.copy_of(&[1; 480]).unwrap();
    let args = [Arg::from(&out), Arg::from(bytes - 4)];
    let plain = LaunchConfig { engine, ..LaunchConfig::new([3, 1, 1], [40, 1, 1]) };
    let _ = launch(&function, &plain, &args).unwrap();
    let check = Some(CheckConfig { checks: Checks::parse(checks).unwrap(), ..CheckConfig::default() });
    let _ = launch(&function, &LaunchConfig { check, ..plain }, &args).unwrap();
    out.to_vec().chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect()
}

#[test]
fn what_nobody_wrote_in_local_memory_is_the_same_in_every_launch() {
    // 64 bytes for each thread, and so many that pages are given back.
    for words in [16, 16384] {
        for (checks, engine) in ["memory", "race", "memory,init,race,sync"]
            .into_iter()
            .flat_map(|checks| [(checks, Engine::Jit), (checks, Engine::Interp)])
        {
            assert_eq!(left_in_local_memory(checks, engine, words), [0; 120], "{checks}, {engine:?}, {words}");
        }
    }
}

/// What the check of a launch had found is told too where a grid traps that one of its threads launched.
#[test]
fn what_was_found_before_a_launch_of_the_device_trapped() {
    let text = format!(
        "{HEAD}
.extern .func (.param .b64 r) cudaGetParameterBuffer(.param .b64 align, .param .b64 size);
.extern .func (.param .b32 r) cudaLaunchDevice(.param .b64 f, .param .b64 buffer, .param .align 4 .b8 grid[12],
    .param .align 4 .b8 block[12], .param .b32 shared, .param .b64 stream);
.visible .entry stray()
{{
    .reg .b64 %a;
    mov.u64 %a, 4096;
    st.global.u64 [%a], %a;
    ret;
}}
.visible .entry parent(.param .u64 words)
{{
    .reg .b64 %rd<4>; .reg .b32 %t; .reg .pred %p;
    ld.param.u64 %rd1, [words];
    mov.u32 %t, %tid.x;
    st.global.u32 [%rd1], %t;
    setp.ne.u32 %p, %t, 0;
    @%p bra end;
    .param .b64 align;
    .param .b64 size;
    .param .b64 buffer;
    st.param.b64 [align], 8;
    st.param.b64 [size], 8;
    call.uni (buffer), cudaGetParameterBuffer, (align, size);
    ld.param.b64 %rd2, [buffer];
    mov.u64 %rd3, stray;
    .param .b64 entry;
    .param .align 4 .b8 grid[12];
    .param .align 4 .b8 block[12];
    .param .b32 shared;
    .param .b64 stream;
    .param .b32 result;
    st.param.b64 [entry], %rd3;
    st.param.b64 [buffer], %rd2;
    st.param.b32 [grid], 1; st.param.b32 [grid+4], 1; st.param.b32 [grid+8], 1;
    st.param.b32 [block], 1; st.param.b32 [block+4], 1; st.param.b32 [block+8], 1;
    st.param.b32 [shared], 0;
    st.param.b64 [stream], 0;
    call.uni (result), cudaLaunchDevice, (entry, buffer, grid, block, shared, stream);
end:
    ret;
}}
"
    );
    let device = Device::new().unwrap();
    let module = Module::from_text(&device, "k.ptx", &text).unwrap();
    let function = module.function(Some("parent")).unwrap();
    let words = device.copy_of(&[0; 64]).unwrap();
    let check = Some(CheckConfig { checks: Checks::parse("race").unwrap(), ..CheckConfig::default() });
    let config = LaunchConfig { check, ..LaunchConfig::new([1; 3], [64, 1, 1]) };
    let Err(LaunchError::Trap(trap)) = launch(&function, &config, &[Arg::from(&words)]) else { panic!("no trap") };
    assert_eq!(trap.entry(), "stray");
    let classes: Vec<&str> = trap.launch().findings().iter().map(|f| f.class).collect();
    assert_eq!(classes, ["same_warp", "unordered"]);
}
