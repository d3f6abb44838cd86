//! What kernels ask of the device: calls, barriers of all kinds, clusters, built-in functions, 32-bit addresses.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::sync::Arc;

use handloom_runtime::{
    Arg, Bounds, Budget, Device, DeviceBuffer, Engine, LaunchConfig, LaunchError, Module, TrapReport, launch,
};

use crate::SM_90 as HEAD;

fn engines() -> [Engine; 2] {
    [Engine::Interp, Engine::Jit]
}

fn config(grid: u32, block: u32, engine: Engine) -> LaunchConfig {
    LaunchConfig { engine, threads: 2, ..LaunchConfig::new([grid, 1, 1], [block, 1, 1]) }
}

fn words(b: &DeviceBuffer) -> Vec<u32> {
    b.to_vec().chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
}

/// Runs a body on a buffer of zero words. Gives the buffer and what was printed.
fn run_text(text: &str, config: &LaunchConfig, n_words: u64) -> Result<(Vec<u32>, String), Box<TrapReport>> {
    let device = Device::new().unwrap();
    let m = Module::from_text(&device, "test.ptx", text).unwrap_or_else(|e| panic!("{e}"));
    let out = if m.is_low() { device.zeroed_low(4 * n_words) } else { device.zeroed(4 * n_words) }.unwrap();
    match launch(&m.function(Some("k")).unwrap(), config, &[Arg::from(&out)]) {
        Ok(_) => Ok((words(&out), String::from_utf8(device.take_output()).unwrap())),
        Err(LaunchError::Trap(t)) => Err(t),
        Err(e) => panic!("{:?}: {e}", config.engine),
    }
}

fn run(body: &str, config: &LaunchConfig, n_words: u64) -> Vec<u32> {
    match run_text(&format!("{HEAD}{body}"), config, n_words) {
        Ok((words, _)) => words,
        Err(t) => panic!("{:?}\n{}", config.engine, t.human(handloom_diag::Style::Plain, None)),
    }
}

/// `out[tid] = value of %r9`, with `%r1 = tid` and `%rd1 = out` at hand.
fn kernel(before: &str, body: &str) -> String {
    format!(
        "{before}
.visible .entry k(.param .u64 out)
{{
    .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1;
    mul.wide.u32 %rd2, %r4, 4;
    add.u64 %rd3, %rd1, %rd2;
    {body}
    st.global.u32 [%rd3], %r9;
    ret;
}}"
    )
}

#[test]
fn named_barriers_pair_producers_and_consumers() {
    // Warp 0 arrives, warp 1 waits; the value goes through shared memory.
    let body = kernel(
        "",
        "
    .shared .align 4 .u32 box;
    mov.u32 %r9, 5;
    setp.ge.u32 %p1, %r1, 32;
    @%p1 bra consume;
    setp.ne.u32 %p2, %r1, 0;
    @%p2 bra arrive;
    mov.u32 %r5, 77;
    st.shared.u32 [box], %r5;
arrive:
    barrier.sync 1, 32;
    barrier.arrive 3, 64;
    bra.uni end;
consume:
    barrier.sync 3, 64;
    ld.shared.u32 %r9, [box];
end:",
    );
    for engine in engines() {
        let got = run(&body, &config(3, 64, engine), 192);
        let want: Vec<u32> = (0..192).map(|i| if i % 64 < 32 { 5 } else { 77 }).collect();
        assert_eq!(got, want, "{engine:?}");
    }
}

#[test]
fn barriers_reduce() {
    let body = kernel(
        "",
        "
    and.b32 %r5, %r1, 3;
    setp.eq.u32 %p1, %r5, 0;
    barrier.cta.red.popc.u32 %r6, 0, %p1;
    barrier.cta.red.and.pred %p2, 0, %p1;
    barrier.cta.red.or.pred %p3, 0, %p1;
    selp.u32 %r7, 1000, 0, %p2;
    selp.u32 %r8, 100, 0, %p3;
    add.u32 %r9, %r6, %r7;
    add.u32 %r9, %r9, %r8;",
    );
    for engine in engines() {
        for block in [32, 50, 128] {
            let got = run(&body, &config(1, block, engine), u64::from(block));
            assert!(got.iter().all(|w| *w == block.div_ceil(4) + 100), "{engine:?} {block} {got:?}");
        }
    }
}

#[test]
fn misuse_of_a_barrier_is_told_alike() {
    let body = kernel(
        "",
        "
    mov.u32 %r9, 0;
    setp.ge.u32 %p1, %r1, 32;
    @%p1 bra other;
    barrier.sync 1, 64;
    bra.uni end;
other:
    barrier.sync 1, 96;
end:",
    );
    let text = format!("{HEAD}{body}");
    let mut told = Vec::new();
    for engine in engines() {
        let t = run_text(&text, &config(1, 64, engine), 64).unwrap_err();
        assert_eq!(t.kind().word(), "barrier");
        told.push(t.human(handloom_diag::Style::Plain, None));
    }
    assert_eq!(told[0], told[1]);
}

#[test]
fn functions_can_hold_barriers_and_exits() {
    let body = kernel(
        "
.visible .func meet(.param .b32 n)
{
    .reg .pred %p<2>; .reg .b32 %r<4>;
    ld.param.u32 %r1, [n];
    setp.eq.u32 %p1, %r1, 3;
    @%p1 exit;
    bar.sync 0;
    ret;
}",
        "
    mov.u32 %r9, 0;
    {
        .param .b32 a;
        st.param.b32 [a], %r1;
        call.uni meet, (a);
    }
    mov.u32 %r9, 4;
    {
        .param .b32 a;
        st.param.b32 [a], %r1;
        call.uni meet, (a);
    }",
    );
    for engine in engines() {
        let got = run(&body, &config(2, 70, engine), 140);
        let want: Vec<u32> = (0..140).map(|i| if i % 70 == 3 { 0 } else { 4 }).collect();
        assert_eq!(got, want, "{engine:?}");
    }
}

#[test]
fn indirect_calls_find_their_function_by_lane() {
    let body = kernel(
        "
.visible .func (.param .b32 r) one(.param .b32 n) { .reg .b32 %r<3>; ld.param.b32 %r1, [n]; add.u32 %r2, %r1, 100; st.param.b32 [r], %r2; ret; }
.visible .func (.param .b32 r) two(.param .b32 n) { .reg .b32 %r<3>; ld.param.b32 %r1, [n]; add.u32 %r2, %r1, 200; st.param.b32 [r], %r2; ret; }
.visible .func (.param .b32 r) odd(.param .b64 n) { .reg .b32 %r<3>; mov.u32 %r2, 1; st.param.b32 [r], %r2; ret; }
.global .u64 table[3] = {one, two, odd};",
        "
    and.b32 %r5, %r1, MASK;
    mul.wide.u32 %rd4, %r5, 8;
    mov.u64 %rd5, table;
    add.u64 %rd6, %rd5, %rd4;
    ld.global.u64 %rd7, [%rd6];
    {
        .param .b32 a; .param .b32 b;
        st.param.b32 [a], %r1;
        proto: .callprototype (.param .b32 _) _ (.param .b32 _);
        call (b), %rd7, (a), proto;
        ld.param.b32 %r9, [b];
    }",
    );
    for engine in engines() {
        let good = body.replace("MASK", "1");
        let got = run(&good, &config(1, 40, engine), 40);
        let want: Vec<u32> = (0..40).map(|i| i + if i % 2 == 0 { 100 } else { 200 }).collect();
        assert_eq!(got, want, "{engine:?}");
        let bad = format!("{HEAD}{}", body.replace("MASK", "3"));
        let t = run_text(&bad, &config(1, 3, engine), 40).unwrap_err();
        assert_eq!(t.kind().word(), "bad_call");
        assert_eq!(t.trap().thread, [2, 0, 0]);
    }
}

const PRINT: &str = "
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[] = {98, 108, 111, 99, 107, 32, 37, 100, 32, 37, 115, 10, 0};
.global .align 1 .b8 name[] = {111, 107, 0};
";

#[test]
fn printing_comes_in_the_order_of_blocks() {
    let body = kernel(
        PRINT,
        "
    .local .align 8 .b8 args[16];
    mov.u64 %rd4, args;
    cvta.local.u64 %rd5, %rd4;
    st.local.u32 [args], %r2;
    mov.u64 %rd6, name;
    cvta.global.u64 %rd6, %rd6;
    st.local.u64 [args+8], %rd6;
    mov.u64 %rd7, text;
    cvta.global.u64 %rd7, %rd7;
    {
        .param .b64 f; .param .b64 a; .param .b32 r;
        st.param.b64 [f], %rd7;
        st.param.b64 [a], %rd5;
        call.uni (r), vprintf, (f, a);
        ld.param.b32 %r9, [r];
    }",
    );
    let want: String = (0..40).map(|i| format!("block {i} ok\n")).collect();
    for engine in engines() {
        let got = run_text(&format!("{HEAD}{body}"), &config(40, 1, engine), 40);
        let (words, text) = got.unwrap_or_else(|t| panic!("{engine:?} {}", t.message()));
        assert_eq!(text, want, "{engine:?}");
        assert_eq!(words[0], 2);
    }
}

#[test]
fn assertions_carry_their_text() {
    let body = kernel(
        "
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 g, .param .b64 c);
.global .align 1 .b8 msg[] = {120, 60, 49, 0};",
        "
    mov.u32 %r9, 0;
    setp.ne.u32 %p1, %r1, 2;
    @%p1 bra fine;
    mov.u64 %rd7, msg;
    cvta.global.u64 %rd7, %rd7;
    mov.u64 %rd8, 1;
    {
        .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 g; .param .b64 c;
        st.param.b64 [m], %rd7;
        st.param.b64 [f], %rd7;
        st.param.b32 [l], 12;
        st.param.b64 [g], %rd7;
        st.param.b64 [c], %rd8;
        call.uni __assertfail, (m, f, l, g, c);
    }
fine:",
    );
    for engine in engines() {
        let t = run_text(&format!("{HEAD}{body}"), &config(1, 40, engine), 40).unwrap_err();
        assert_eq!(t.message(), "assert: x<1:12: x<1: assertion `x<1` failed", "{engine:?}");
        assert_eq!(t.trap().thread, [2, 0, 0]);
    }
}

#[test]
fn kernels_allocate_and_free() {
    let body = kernel(
        "
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);",
        "
    {
        .param .b64 n; .param .b64 r;
        st.param.b64 [n], 64;
        call.uni (r), malloc, (n);
        ld.param.b64 %rd5, [r];
    }
    st.u32 [%rd5+60], %r1;
    ld.u32 %r9, [%rd5+60];
    {
        .param .b64 p;
        st.param.b64 [p], %rd5;
        call.uni free, (p);
    }
    LATE",
    );
    for engine in engines() {
        let got = run(&body.replace("LATE", ""), &config(2, 33, engine), 66);
        assert!(got.iter().enumerate().all(|(i, w)| *w == i as u32 % 33), "{engine:?}");
        let late = format!("{HEAD}{}", body.replace("LATE", "ld.u32 %r9, [%rd5];"));
        let t = run_text(&late, &config(1, 1, engine), 1).unwrap_err();
        assert!(t.message().contains("an allocation of 64 bytes that was freed"), "{engine:?} {}", t.message());
    }
}

/// Launches with one heap have it together.
#[test]
fn a_heap_is_as_large_as_it_is_said_to_be() {
    let body = kernel(
        ".extern .func (.param .b64 r) malloc(.param .b64 n);",
        "
    {
        .param .b64 n; .param .b64 r;
        st.param.b64 [n], 60;
        call.uni (r), malloc, (n);
        ld.param.b64 %rd5, [r];
    }
    setp.ne.u64 %p1, %rd5, 0;
    selp.u32 %r9, 1, 0, %p1;",
    );
    for engine in engines() {
        let heap = Some(Arc::new(Budget::new(320)));
        let config = LaunchConfig { heap, ..config(2, 40, engine) };
        let got = |bytes: u32| run(&body.replace("60;", &format!("{bytes};")), &config, 80).iter().sum::<u32>();
        assert_eq!([got(320), got(60), got(1)], [1, 0, 0], "{engine:?}");
        config.heap.as_ref().unwrap().set_limit(320 + 256 + 16);
        assert_eq!([got(60), got(1)], [4, 1], "{engine:?}");
    }
}

#[test]
fn blocks_of_a_cluster_meet_and_know_their_rank() {
    let body = kernel(
        "",
        "
    mov.u32 %r5, %cluster_ctarank;
    mov.u32 %r6, %cluster_nctarank;
    setp.eq.u32 %p1, %r5, 0;
    @!%p1 bra meet;
    mov.u32 %r7, 9;
    st.global.u32 [%rd1+1120], %r7;
meet:
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ld.global.u32 %r8, [%rd1+1120];
    mad.lo.u32 %r9, %r8, 100, %r5;",
    );
    for engine in engines() {
        let c = LaunchConfig { cluster: Some([4, 1, 1]), ..config(8, 33, engine) };
        let got = run(&body, &c, 300);
        let want: Vec<u32> = (0..8 * 33).map(|i| 900 + (i / 33) % 4).collect();
        // The word that rank 0 writes overlaps nobody's result.
        assert_eq!(got[..264], want, "{engine:?}");
    }
}

#[test]
fn modules_of_32_bit_addresses_run_below_4_gib() {
    let text = "
.version 8.0
.target sm_80
.address_size 32
.global .u32 base = 30;
.visible .entry k(.param .u32 out)
{
    .reg .b32 %r<10>;
    .shared .u32 cell;
    ld.param.u32 %r1, [out];
    mov.u32 %r2, %tid.x;
    shl.b32 %r3, %r2, 2;
    add.u32 %r4, %r1, %r3;
    mov.u32 %r5, base;
    ld.global.u32 %r6, [%r5];
    add.u32 %r7, %r6, %r2;
    st.global.u32 [%r4], %r7;
    ret;
}";
    for engine in engines() {
        let (got, _) = run_text(text, &config(1, 64, engine), 64).unwrap_or_else(|t| panic!("{}", t.message()));
        assert!(got.iter().enumerate().all(|(i, w)| *w == 30 + i as u32), "{engine:?} {got:?}");
    }
}

#[test]
fn contained_bounds_keep_strays_inside_and_refuse_the_rest() {
    let body = kernel("", "mov.u32 %r9, 1;\n    add.u64 %rd3, %rd3, STRAY;");
    let c = LaunchConfig { bounds: Bounds::Contained, ..config(2, 64, Engine::Jit) };
    assert_eq!(run(&body.replace("STRAY", "0"), &c, 128), [1; 128]);
    assert_eq!(run(&body.replace("STRAY", "512"), &c, 128)[..64], [0; 64]);
    let far = format!("{HEAD}{}", body.replace("STRAY", "0x1000000000"));
    assert_eq!(run_text(&far, &c, 128).unwrap_err().kind().word(), "out_of_bounds");
}

#[test]
fn local_memory_is_each_threads_own() {
    let body = kernel(
        "",
        "
    .local .align 4 .b8 mine[64];
    and.b32 %r5, %r1, 15;
    mul.wide.u32 %rd4, %r5, 4;
    mov.u64 %rd5, mine;
    add.u64 %rd6, %rd5, %rd4;
    st.local.u32 [%rd6], %r1;
    bar.sync 0;
    ld.local.u32 %r9, [%rd6 + STRAY];",
    );
    for engine in engines() {
        let got = run(&body.replace("STRAY", "0"), &config(2, 96, engine), 192);
        assert!(got.iter().enumerate().all(|(i, w)| *w == i as u32 % 96), "{engine:?}");
        let far = format!("{HEAD}{}", body.replace("STRAY", "4096"));
        let t = run_text(&far, &config(1, 32, engine), 32).unwrap_err();
        assert_eq!(t.kind().word(), "out_of_bounds", "{engine:?}");
    }
}

#[test]
fn seeds_change_the_order_and_nothing_else() {
    let body = kernel("", "mul.lo.u32 %r9, %r4, 7;");
    let want: Vec<u32> = (0..640).map(|i| i * 7).collect();
    for engine in engines() {
        for seed in [0, 1, 99] {
            let c = LaunchConfig { seed, ..config(20, 32, engine) };
            assert_eq!(run(&body, &c, 640), want);
        }
    }
}

#[test]
fn lanes_that_exit_are_not_waited_for() {
    let body = kernel(
        "",
        "
    and.b32 %r5, %r1, 1;
    setp.eq.u32 %p1, %r5, 1;
    @%p1 exit;
    bar.sync 0;
    bar.warp.sync 0xffffffff;
    vote.sync.ballot.b32 %r9, %p1, 0xffffffff;
    add.u32 %r9, %r9, 1;",
    );
    for engine in engines() {
        let got = run(&body, &config(2, 64, engine), 128);
        let want: Vec<u32> = (0..128).map(|i| u32::from(i % 2 == 0)).collect();
        assert_eq!(got, want, "{engine:?}");
    }
}
