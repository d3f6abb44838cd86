//! What kernels print comes out while they run, in the order of blocks, and is not lost when they are ended.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use handloom_runtime::{Arg, Device, Engine, LaunchConfig, LaunchError, Module, Sink, StopHandle, launch};

/// Block `b` prints the letter `a + b`. Then it traps if `b` is the second parameter, and goes round for ever if it is the third.
const TEXT: &str = r"
.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 letter[3] = {37, 99, 0};

.visible .entry k(.param .u64 buf, .param .u32 traps, .param .u32 spins)
{
    .local .align 8 .b8 args[8];
    .reg .b64 %rd<8>;
    .reg .b32 %r<8>;
    .reg .pred %p;
    mov.u32 %r1, %ctaid.x;
    add.u32 %r2, %r1, 97;
    st.local.u32 [args], %r2;
    mov.u64 %rd1, args;
    cvta.local.u64 %rd1, %rd1;
    mov.u64 %rd2, letter;
    cvta.global.u64 %rd2, %rd2;
    {
        .param .b64 f; .param .b64 a; .param .b32 r;
        st.param.b64 [f], %rd2;
        st.param.b64 [a], %rd1;
        call.uni (r), vprintf, (f, a);
        ld.param.b32 %r3, [r];
    }
    ld.param.u32 %r4, [traps];
    setp.eq.u32 %p, %r1, %r4;
    @%p trap;
    ld.param.u32 %r4, [spins];
    setp.ne.u32 %p, %r1, %r4;
    @%p ret;
    ld.param.u64 %rd3, [buf];
again:
    ld.volatile.global.u32 %r5, [%rd3];
    add.u32 %r6, %r6, 1;
    st.volatile.global.u32 [%rd3+4], %r6;
    setp.eq.u32 %p, %r5, 0;
    @%p bra again;
    ret;
}";

/// No block.
const NOBODY: u32 = 99;

/// Runs blocks and gives the text, and how it ended. As soon as the text is `until`, the launch is stopped.
fn run(config: LaunchConfig, traps: u32, spins: u32, until: &'static str) -> (String, Result<(), LaunchError>) {
    let device = Device::new().unwrap();
    let module = Module::from_text(&device, "k.ptx", TEXT).unwrap();
    let f = module.function(None).unwrap();
    let buffer = device.zeroed(8).unwrap();
    let text = Arc::<Mutex<String>>::default();
    let stop = StopHandle::new();
    let (to, ends) = (Arc::clone(&text), stop.clone());
    let sink = Sink::new(move |bytes| {
        let mut all = to.lock().unwrap();
        all.push_str(std::str::from_utf8(bytes).unwrap());
        if *all == until {
            ends.stop();
        }
    });
    let timeout = config.timeout.or(Some(Duration::from_secs(60)));
    let config = LaunchConfig { output: Some(sink), stop, timeout, ..config };
    let result = launch(&f, &config, &[Arg::from(&buffer), Arg::from(traps), Arg::from(spins)]).map(drop);
    assert!(device.take_output().is_empty(), "the launch has a sink of its own");
    let text = text.lock().unwrap().clone();
    (text, result)
}

fn config(blocks: u32, engine: Engine, threads: usize) -> LaunchConfig {
    LaunchConfig { engine, threads, ..LaunchConfig::new([blocks, 1, 1], [1, 1, 1]) }
}

#[test]
fn the_lowest_block_is_heard_while_it_runs() {
    for engine in [Engine::Interp, Engine::Jit] {
        let start = Instant::now();
        let (text, result) = run(config(1, engine, 1), NOBODY, 0, "a");
        assert!(matches!(result, Err(LaunchError::Stopped)), "{engine:?} {result:?}");
        assert_eq!(text, "a");
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}

#[test]
fn blocks_are_heard_when_those_before_have_ended() {
    for (engine, threads) in [(Engine::Interp, 1), (Engine::Jit, 1), (Engine::Jit, 2)] {
        for seed in 0..3 {
            // Block 2 runs on, so what blocks 3 and 4 print waits for the end of the launch.
            let c = LaunchConfig { seed, ..config(5, engine, threads) };
            let (text, result) = run(c, NOBODY, 2, "abc");
            assert!(matches!(result, Err(LaunchError::Stopped)), "{engine:?} {result:?}");
            assert!("abcde".starts_with("abc") && text.starts_with("abc"), "{engine:?} {text}");
            let (mut sorted, letters) = (text.clone().into_bytes(), text.into_bytes());
            sorted.sort_unstable();
            assert_eq!(sorted, letters);
        }
    }
}

#[test]
fn all_text_comes_in_order_for_every_seed_and_cluster() {
    for (engine, threads) in [(Engine::Interp, 1), (Engine::Jit, 1), (Engine::Jit, 2)] {
        for seed in 0..4 {
            for cluster in [None, Some([4, 1, 1])] {
                let c = LaunchConfig { seed, cluster, ..config(20, engine, threads) };
                let (text, result) = run(c, NOBODY, NOBODY, "");
                assert!(result.is_ok(), "{result:?}");
                assert_eq!(text, "abcdefghijklmnopqrst", "{engine:?} {seed} {cluster:?}");
            }
        }
    }
}

#[test]
fn text_before_a_trap_or_a_time_limit_is_not_lost() {
    for engine in [Engine::Interp, Engine::Jit] {
        let (text, result) = run(config(3, engine, 1), 1, NOBODY, "");
        assert!(matches!(&result, Err(LaunchError::Trap(t)) if t.kind().word() == "trap"), "{result:?}");
        assert!(text.starts_with("ab"), "{engine:?} {text}");
        let c = LaunchConfig { timeout: Some(Duration::from_millis(700)), ..config(2, engine, 1) };
        let (text, result) = run(c, NOBODY, 1, "");
        assert!(matches!(&result, Err(LaunchError::Trap(t)) if t.kind().word() == "timeout"), "{result:?}");
        assert_eq!(text, "ab", "{engine:?}");
    }
}

#[test]
fn without_a_sink_the_device_keeps_the_text() {
    for engine in [Engine::Interp, Engine::Jit] {
        let device = Device::new().unwrap();
        let module = Module::from_text(&device, "k.ptx", TEXT).unwrap();
        let f = module.function(None).unwrap();
        let buffer = device.zeroed(8).unwrap();
        let args = [Arg::from(&buffer), Arg::from(NOBODY), Arg::from(NOBODY)];
        for _ in 0..2 {
            let _ = launch(&f, &config(3, engine, 2), &args).unwrap();
        }
        assert_eq!(device.take_output(), b"abcabc");
    }
}
