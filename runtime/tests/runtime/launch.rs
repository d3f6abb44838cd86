//! Launches through both engines: results, traps, limits.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::time::Duration;

use handloom_runtime::{
    Arg, Backend, Device, DeviceBuffer, Engine, LaunchConfig, LaunchError, Module, PreparedLaunch, StopHandle,
    TrapReport, launch,
};

use crate::SM_80 as HEAD;

fn module(device: &Device, body: &str) -> Module {
    Module::from_text(device, "test.ptx", &format!("{HEAD}{body}")).unwrap_or_else(|e| panic!("{e}"))
}

fn engines() -> [Engine; 2] {
    [Engine::Interp, Engine::Jit]
}

fn config(grid: u32, block: u32, engine: Engine) -> LaunchConfig {
    LaunchConfig { engine, threads: 2, ..LaunchConfig::new([grid, 1, 1], [block, 1, 1]) }
}

fn words(b: &DeviceBuffer) -> Vec<u32> {
    b.to_vec().chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
}

fn buffer(device: &Device, words: &[u32]) -> DeviceBuffer {
    device.copy_of(&words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>()).unwrap()
}

/// Runs the only entry of a body on one buffer of zeros and gives the buffer.
fn run(body: &str, config: &LaunchConfig, n_words: usize) -> Vec<u32> {
    let device = Device::new().unwrap();
    let m = module(&device, body);
    let out = buffer(&device, &vec![0; n_words]);
    match launch(&m.function(None).unwrap(), config, &[Arg::from(&out)]) {
        Ok(_) => words(&out),
        Err(LaunchError::Trap(t)) => panic!("{}", t.human(handloom_diag::Style::Plain, None)),
        Err(e) => panic!("{:?}: {e}", config.engine),
    }
}

/// The trap of the only entry of a body on one buffer.
fn trap(body: &str, config: &LaunchConfig, n_words: usize) -> TrapReport {
    let device = Device::new().unwrap();
    trap_of(&module(&device, body), &buffer(&device, &vec![0; n_words]), config)
}

/// The trap of the only entry of a module on a buffer.
fn trap_of(module: &Module, out: &DeviceBuffer, config: &LaunchConfig) -> TrapReport {
    match launch(&module.function(None).unwrap(), config, &[Arg::from(out)]) {
        Err(LaunchError::Trap(t)) => *t,
        other => panic!("{:?}: {other:?}", config.engine),
    }
}

const GLOBAL_ID: &str = "
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<8>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1;
    mul.wide.u32 %rd2, %r4, 4;
    add.u64 %rd3, %rd1, %rd2;
    mul.lo.u32 %r5, %r4, 3;
    st.global.u32 [%rd3], %r5;
    ret;
}";

#[test]
fn every_thread_writes_its_word() {
    for engine in engines() {
        for (grid, block) in [(1, 32), (1, 1), (7, 100), (300, 64)] {
            let got = run(GLOBAL_ID, &config(grid, block, engine), (grid * block) as usize);
            assert!(got.iter().enumerate().all(|(i, w)| *w == 3 * i as u32), "{engine:?} {grid} {block}");
        }
    }
}

#[test]
fn strays_are_reported_alike() {
    let mut texts = Vec::new();
    // One buffer for both: the reports tell its address.
    let device = Device::new().unwrap();
    let (m, out) = (module(&device, GLOBAL_ID), buffer(&device, &[0; 600]));
    for engine in engines() {
        let t = trap_of(&m, &out, &config(3, 256, engine));
        assert_eq!(t.kind().word(), "out_of_bounds");
        assert_eq!(t.trap().cta, [2, 0, 0], "{engine:?}");
        assert_eq!(t.trap().thread, [88, 0, 0]);
        assert_eq!(t.trap().other_lanes, 0xfe00_0000);
        assert_eq!(
            t.message(),
            "out of bounds: write of 4 bytes at out+2400, 0 bytes past the end of an allocation of 2400 bytes"
        );
        texts.push((t.human(handloom_diag::Style::Plain, None), t.json()));
    }
    assert_eq!(texts[0], texts[1]);
    assert!(texts[0].0.contains("`out` is argument 1: 600 elements of 4 bytes"), "{}", texts[0].0);
    assert!(texts[0].0.contains("the grid has 768 threads for 600 elements"), "{}", texts[0].0);
}

/// Sum over a block by a tree in shared memory.
const REDUCE: &str = "
.visible .entry k(.param .u64 out)
{
    .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
    .shared .align 4 .b8 tile[4096];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ntid.x;
    shl.b32 %r3, %r1, 2;
    mov.u32 %r4, tile;
    add.u32 %r5, %r4, %r3;
    st.shared.u32 [%r5], %r1;
    shr.u32 %r6, %r2, 1;
loop:
    bar.sync 0;
    setp.ge.u32 %p1, %r1, %r6;
    @%p1 bra skip;
    shl.b32 %r7, %r6, 2;
    add.u32 %r8, %r5, %r7;
    ld.shared.u32 %r9, [%r8];
    ld.shared.u32 %r10, [%r5];
    add.u32 %r11, %r9, %r10;
    st.shared.u32 [%r5], %r11;
skip:
    shr.u32 %r6, %r6, 1;
    setp.ne.u32 %p2, %r6, 0;
    @%p2 bra loop;
    setp.ne.u32 %p3, %r1, 0;
    @%p3 bra done;
    ld.shared.u32 %r12, [%r4];
    mov.u32 %r13, %ctaid.x;
    mul.wide.u32 %rd2, %r13, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r12;
done:
    ret;
}";

#[test]
fn barriers_order_shared_memory() {
    for engine in engines() {
        for block in [2, 32, 64, 256, 1024] {
            let got = run(REDUCE, &config(5, block, engine), 5);
            assert_eq!(got, [block * (block - 1) / 2; 5], "{engine:?} {block}");
        }
    }
}

/// A lock in global memory that each block takes and holds while it counts.
const LOCK: &str = "
.global .u32 lock = 0;
.visible .entry k(.param .u64 out)
{
    .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out];
    mov.u64 %rd2, lock;
again:
    atom.global.cas.b32 %r1, [%rd2], 0, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra again;
    ld.volatile.global.u32 %r2, [%rd1];
    add.u32 %r2, %r2, 1;
    st.volatile.global.u32 [%rd1], %r2;
    membar.gl;
    atom.global.exch.b32 %r3, [%rd2], 0;
    ret;
}";

#[test]
fn locks_between_lanes_and_blocks_end() {
    for engine in engines() {
        assert_eq!(run(LOCK, &config(8, 64, engine), 1), [512], "{engine:?}");
    }
}

/// Each block waits for the next one's flag, so blocks must take turns even on one thread.
const CHAIN: &str = "
.visible .entry k(.param .u64 out)
{
    .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %nctaid.x;
    add.u32 %r3, %r1, 1;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    setp.eq.u32 %p1, %r3, %r2;
    @%p1 bra own;
wait:
    ld.volatile.global.u32 %r4, [%rd3+4];
    setp.eq.u32 %p2, %r4, 0;
    @%p2 bra wait;
own:
    mov.u32 %r5, 1;
    st.volatile.global.u32 [%rd3], %r5;
    ret;
}";

#[test]
fn blocks_that_wait_for_later_blocks_take_turns() {
    for engine in engines() {
        for threads in [1, 2] {
            let c = LaunchConfig { threads, ..config(20, 1, engine) };
            assert_eq!(run(CHAIN, &c, 21)[..20], [1; 20], "{engine:?}");
        }
    }
}

const STUCK: &str = "
.visible .entry k(.param .u64 out)
{
    .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out];
wait:
    ld.volatile.global.u32 %r4, [%rd1];
    setp.eq.u32 %p2, %r4, 0;
    @%p2 bra wait;
    ret;
}";

#[test]
fn a_deadlock_is_found() {
    for engine in engines() {
        for threads in [1, 2] {
            let c = LaunchConfig { threads, ..config(3, 64, engine) };
            let t = trap(STUCK, &c, 1);
            assert_eq!(t.kind().word(), "deadlock", "{engine:?}");
            assert_eq!(t.trap().waiters.iter().map(|w| w.count).sum::<u32>(), 192);
            assert_eq!(t.trap().waiters[0].what, "memory");
        }
    }
}

const HALF_BARRIER: &str = "
.visible .entry k(.param .u64 out)
{
    .reg .pred %p<4>; .reg .b32 %r<8>;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 32;
    @%p1 bra one;
    bar.sync 1;
    ret;
one:
    bar.sync 2;
    ret;
}";

#[test]
fn warps_at_different_barriers_are_a_deadlock() {
    let mut texts = Vec::new();
    for engine in engines() {
        let t = trap(HALF_BARRIER, &config(1, 64, engine), 1);
        assert_eq!(t.kind().word(), "deadlock");
        texts.push(t.human(handloom_diag::Style::Plain, None));
    }
    assert_eq!(texts[0], texts[1]);
    assert!(texts[0].contains("32 threads from (0,0,0) on wait for barrier 2"), "{}", texts[0]);
}

const ENDLESS: &str = "
.visible .entry k(.param .u64 out)
{
    .reg .pred %p<4>; .reg .b32 %r<8>;
    mov.u32 %r1, 0;
again:
    add.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0xffffffff;
    @%p1 bra again;
    mov.u32 %r1, 0;
    bra.uni again;
}";

/// A function that calls itself 2^60 times, and never goes back to a place where it was.
const ENDLESS_CALLS: &str = "
.visible .func f(.param .b32 n)
{
    .reg .pred %p<2>; .reg .b32 %r<4>;
    ld.param.u32 %r1, [n];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra done;
    sub.u32 %r2, %r1, 1;
    { .param .b32 a; st.param.b32 [a], %r2; call f, (a); }
    { .param .b32 a; st.param.b32 [a], %r2; call f, (a); }
done:
    ret;
}
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<2>;
    mov.u32 %r1, 60;
    { .param .b32 a; st.param.b32 [a], %r1; call f, (a); }
    ret;
}";

/// Each kind of kernel that never ends, on each engine and generator.
fn endless() -> impl Iterator<Item = (&'static str, LaunchConfig)> {
    let ways = [(Engine::Interp, Backend::Wide), (Engine::Jit, Backend::Wide), (Engine::Jit, Backend::Cranelift)];
    let with = |(engine, backend)| LaunchConfig { backend, ..config(2, 32, engine) };
    [ENDLESS, ENDLESS_CALLS].into_iter().flat_map(move |body| ways.map(|way| (body, with(way))))
}

#[test]
fn a_time_limit_ends_what_never_ends() {
    for (body, c) in endless() {
        let c = LaunchConfig { timeout: Some(Duration::from_millis(100)), ..c };
        let t = trap(body, &c, 1);
        assert_eq!(t.kind().word(), "timeout", "{:?}", c.engine);
        assert!(!t.trap().waiters.is_empty());
    }
}

#[test]
fn a_stop_from_outside_ends_the_launch() {
    for (body, c) in endless() {
        let stop = StopHandle::new();
        let c = LaunchConfig { stop: stop.clone(), ..c };
        let device = Device::new().unwrap();
        let m = module(&device, body);
        let out = device.zeroed(4).unwrap();
        let stopper = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            stop.stop();
        });
        let r = launch(&m.function(None).unwrap(), &c, &[Arg::from(&out)]);
        assert!(matches!(r, Err(LaunchError::Stopped)), "{r:?}");
        stopper.join().unwrap();
    }
}

#[test]
fn code_with_more_values_than_a_stack_holds_runs_on_threads_with_small_ones() {
    const VALUES: usize = 4000;
    let load = |i: usize| format!("ld.global.f32 %v{i}, [%rd1+{}];\n", 4 * i);
    let add = |i: usize| format!("fma.rn.f32 %f1, %f1, %f2, %v{i};\n");
    let loads = (0..VALUES).map(load).collect::<String>();
    let adds = (0..VALUES).rev().map(add).collect::<String>();
    let body = format!(
        ".visible .entry k(.param .u64 out)
        {{
            .reg .b64 %rd<4>; .reg .b32 %r<2>; .reg .f32 %f<4>, %v<{VALUES}>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %tid.x;
            mul.wide.u32 %rd2, %r1, 4;
            add.u64 %rd1, %rd1, %rd2;
            mov.f32 %f1, 0f00000000;
            mov.f32 %f2, 0fBF800000;
            {loads}
            {adds}
            st.global.f32 [%rd1], %f1;
            ret;
        }}"
    );
    // Words of memory that are written are read by other threads of the warp only before.
    let numbers: Vec<u32> = (0..VALUES as u32 + 32).map(|i| ((i % 61) as f32).to_bits()).collect();
    let sums = (0..32).map(|t| (0..VALUES).map(|i| (((i + t) % 61) as f32) * [1.0, -1.0][i % 2]).sum::<f32>());
    let want: Vec<u32> = sums.map(f32::to_bits).collect();
    let c = LaunchConfig { backend: Backend::Cranelift, threads: 1, ..config(1, 32, Engine::Jit) };
    let device = Device::new().unwrap();
    let out = buffer(&device, &numbers);
    let f = module(&device, &body).function(None).unwrap();
    let mut prepared = PreparedLaunch::new(&f, &c, &[Arg::from(&out)]).unwrap();
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(256 << 10);
        thread.spawn_scoped(scope, || drop(prepared.run().unwrap())).unwrap().join().unwrap();
    });
    assert_eq!(words(&out)[..32], want);
}

/// Factorial by recursion; every lane has its own depth.
const RECURSION: &str = "
.visible .func (.param .b32 result) fact(.param .b32 n)
{
    .reg .pred %p<2>; .reg .b32 %r<8>;
    ld.param.u32 %r1, [n];
    setp.gt.u32 %p1, %r1, 1;
    @%p1 bra deeper;
    mov.u32 %r2, 1;
    st.param.b32 [result], %r2;
    ret;
deeper:
    sub.u32 %r3, %r1, 1;
    {
        .param .b32 a; .param .b32 r;
        st.param.b32 [a], %r3;
        call.uni (r), fact, (a);
        ld.param.b32 %r4, [r];
    }
    mul.lo.u32 %r5, %r4, %r1;
    st.param.b32 [result], %r5;
    ret;
}
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<8>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 7;
    {
        .param .b32 a; .param .b32 r;
        st.param.b32 [a], %r2;
        call.uni (r), fact, (a);
        ld.param.b32 %r3, [r];
    }
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r3;
    ret;
}";

#[test]
fn functions_recurse() {
    let fact = [1, 1, 2, 6, 24, 120, 720, 5040];
    for engine in engines() {
        let got = run(RECURSION, &config(2, 50, engine), 50);
        assert!(got.iter().enumerate().all(|(i, w)| *w == fact[i % 8]), "{engine:?} {got:?}");
    }
}

#[test]
fn endless_recursion_is_a_trap() {
    let body = RECURSION.replace("setp.gt.u32 %p1, %r1, 1;", "setp.ge.u32 %p1, %r1, 0;");
    for engine in engines() {
        assert_eq!(trap(&body, &config(1, 2, engine), 2).kind().word(), "stack", "{engine:?}");
    }
}

#[test]
fn a_stack_is_as_large_as_it_is_asked_to_be() {
    // 9000 calls deep, the sum of 1 to 9000.
    let body = RECURSION.replace("and.b32 %r2, %r1, 7;", "mov.u32 %r2, 9000;").replace("mul.lo.u32 %r5", "add.u32 %r5");
    for engine in engines() {
        let usual = config(1, 40, engine);
        assert_eq!(trap(&body, &usual, 40).kind().word(), "stack", "{engine:?}");
        let deep = LaunchConfig { stack_bytes: LaunchConfig::MOST_STACK, ..usual };
        assert_eq!(run(&body, &deep, 40), [40_504_500; 40], "{engine:?}");
    }
}

/// Sum over each warp by shuffles, with lanes that come from both sides of a branch.
const SHUFFLE: &str = "
.visible .entry k(.param .u64 out)
{
    .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 1;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra even;
    shfl.sync.bfly.b32 %r3, %r1, 16, 31, 0xffffffff;
    bra.uni join;
even:
    shfl.sync.bfly.b32 %r3, %r1, 16, 31, 0xffffffff;
join:
    vote.sync.ballot.b32 %r4, %p1, 0xffffffff;
    add.u32 %r5, %r3, %r4;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r5;
    ret;
}";

#[test]
fn lanes_meet_at_warp_ops_at_different_places() {
    for engine in engines() {
        let got = run(SHUFFLE, &config(1, 64, engine), 64);
        for (i, w) in got.iter().enumerate() {
            assert_eq!(*w, (i as u32 ^ 16).wrapping_add(0x5555_5555), "{engine:?} {i}");
        }
    }
}

const ATOMICS: &str = "
.visible .entry k(.param .u64 out)
{
    .reg .f32 %f<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    red.global.add.u32 [%rd1], 1;
    atom.global.max.u32 %r2, [%rd1+4], %r1;
    mov.f32 %f1, 0f3F800000;
    red.global.add.f32 [%rd1+8], %f1;
    atom.global.inc.u32 %r3, [%rd1+12], 9;
    ret;
}";

#[test]
fn atomics_of_many_blocks_add_up() {
    for engine in engines() {
        let got = run(ATOMICS, &config(40, 96, engine), 4);
        assert_eq!(got, [3840, 95, 3840.0_f32.to_bits(), 3840 % 10], "{engine:?}");
    }
}

#[test]
fn stores_to_constants_and_parameters_trap() {
    let body = "
.const .u32 table[4] = {1, 2, 3, 4};
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    mov.u64 %rd1, table;
    cvta.const.u64 %rd2, %rd1;
    st.u32 [%rd2+4], 7;
    ret;
}";
    for engine in engines() {
        let t = trap(body, &config(1, 1, engine), 1);
        assert_eq!(
            t.message(),
            "write protected: write of 4 bytes at table+4, in a constant that kernels may only read",
            "{engine:?}"
        );
    }
}

#[test]
fn null_and_misaligned_pointers_trap() {
    let body = |addr: &str| {
        format!(
            ".visible .entry k(.param .u64 out)
{{
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u64 %rd2, 0;
    ld.global.u32 %r1, [{addr}];
    st.global.u32 [%rd1], %r1;
    ret;
}}"
        )
    };
    for engine in engines() {
        let t = trap(&body("%rd2+16"), &config(1, 1, engine), 1);
        assert_eq!(t.message(), "out of bounds: read of 4 bytes at 0x10, through a null pointer");
        let t = trap(&body("%rd1+2"), &config(1, 1, engine), 1);
        assert_eq!(t.kind().word(), "misaligned");
        let t = trap(&body("%rd1+-4"), &config(1, 1, engine), 1);
        assert_eq!(
            t.message(),
            "out of bounds: read of 4 bytes at out-4, 4 bytes before the start of an allocation of 4 bytes"
        );
    }
}

#[test]
fn a_prepared_launch_runs_again() {
    for engine in engines() {
        let device = Device::new().unwrap();
        let m = module(&device, ATOMICS);
        let out = device.zeroed(16).unwrap();
        let f = m.function(Some("k")).unwrap();
        let mut p = PreparedLaunch::new(&f, &config(1, 32, engine), &[Arg::from(&out)]).unwrap();
        for _ in 0..10 {
            assert_eq!(p.run().unwrap().blocks, 1);
        }
        assert_eq!(words(&out)[0], 320);
        let other = device.zeroed(16).unwrap();
        p.set_args(&[Arg::from(&other)]).unwrap();
        let _ = p.run().unwrap();
        assert_eq!(words(&other)[0], 32);
    }
}

#[test]
fn wrong_launches_are_sentences() {
    let device = Device::new().unwrap();
    let m = module(&device, GLOBAL_ID);
    let f = m.function(Some("k")).unwrap();
    let wrong = |c: &LaunchConfig, args: &[Arg<'_>]| match launch(&f, c, args) {
        Err(LaunchError::Wrong(wrong)) => wrong.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(wrong(&config(0, 1, Engine::Jit), &[]).starts_with("a grid of 0,1,1"));
    assert_eq!(wrong(&config(1, 1, Engine::Jit), &[]), "0 arguments: `k` takes 1 (.u64 out)");
    let wrong = m.function(Some("q")).unwrap_err();
    assert_eq!(wrong.text(), "no entry `q`: the module has `k`");
}
