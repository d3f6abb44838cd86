//! Faults in a row: each is told, and the process is as healthy as before.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use handloom_ir::trap::TrapKind;
use handloom_runtime::{Arg, Backend, Device, Engine, LaunchConfig, LaunchError, Module, launch};

const TEXT: &str = "
.version 8.0
.target sm_90
.address_size 64
.const .align 8 .b64 fixed = 9;
.shared .align 8 .b8 tile[64];

.func deeper(.param .b32 n)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    .local .align 8 .b8 frame[4096];
    ld.param.b32 %r0, [n];
    mov.u64 %rd0, frame;
    st.local.b64 [%rd0], %rd0;
    { .param .b32 a; st.param.b32 [a], %r0; call deeper, (a); }
    ret;
}

.visible .entry good(.param .u64 out)
{
    .reg .b64 %rd<4>; .reg .b32 %r<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    st.shared.u32 [tile], %r1;
    bar.sync 0;
    ld.global.u32 %r2, [%rd1];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%rd1], %r2;
    ret;
}

.visible .entry bad(.param .u64 out, .param .u32 how)
{
    .reg .b64 %rd<8>; .reg .b32 %r<8>; .reg .pred %p<2>;
    .local .align 16 .b8 own[16];
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [how];
    mov.u64 %rd2, own;
    cvta.local.u64 %rd2, %rd2;
    mov.u64 %rd3, fixed;
    mov.u64 %rd4, 0;
    mov.u32 %r2, tile;
    bar.sync 0;
all: .branchtargets a, b, c, d, e, f, g, h, i, j;
    brx.idx %r1, all;
a:  st.global.u32 [%rd1+4096], %r1;
    ret;
b:  ld.global.u32 %r3, [%rd1+2];
    ret;
c:  st.u32 [%rd4], %r1;
    ret;
d:  atom.add.u32 %r3, [%rd2], 1;
    ret;
e:  st.u32 [%rd3], %r1;
    ret;
f:  { .param .b32 q; st.param.b32 [q], %r1; call deeper, (q); }
    ret;
g:  ld.shared.u32 %r3, [%r2+4096];
    ret;
h:  trap;
i:  setp.eq.u32 %p1, %r1, 8;
    @%p1 bra i;
    ret;
j:  alloca.u64 %rd5, %rd1;
    ret;
}
";

const KINDS: [TrapKind; 10] = [
    TrapKind::OutOfBounds,
    TrapKind::Misaligned,
    TrapKind::OutOfBounds,
    TrapKind::BadSpace,
    TrapKind::WriteProtected,
    TrapKind::Stack,
    TrapKind::OutOfBounds,
    TrapKind::Trap,
    TrapKind::Timeout,
    TrapKind::Stack,
];

/// The kind that is not tried each time: it takes as long as its time limit.
const ENDLESS: u32 = 8;

#[test]
fn a_thousand_faults_leave_the_process_healthy() {
    let device = Device::new().unwrap();
    let module = Module::from_text(&device, "faults.ptx", TEXT).unwrap_or_else(|e| panic!("{e}"));
    let (good, bad) = (module.function(Some("good")).unwrap(), module.function(Some("bad")).unwrap());
    let out = device.zeroed(4 * 64).unwrap();
    let (mut faults, mut runs) = (0, 0);
    let engines = [Engine::Interp, Engine::Jit];
    for round in 0..90 {
        for engine in engines {
            let config = |grid: u32| LaunchConfig { engine, threads: 2, ..LaunchConfig::new([grid, 1, 1], [64, 1, 1]) };
            for (how, kind) in (0_u32..).zip(KINDS) {
                if how == ENDLESS && round % 30 != 0 {
                    continue;
                }
                let mut config = config(1 + how % 4);
                config.timeout = (how == ENDLESS).then(|| std::time::Duration::from_millis(30));
                match launch(&bad, &config, &[Arg::from(&out), how.into()]) {
                    Err(LaunchError::Trap(t)) => {
                        assert_eq!(t.kind(), kind, "{engine:?} {how}: {}", t.message());
                        assert!(!t.message().is_empty());
                    }
                    other => panic!("{engine:?} {how}: {other:?}"),
                }
                faults += 1;
            }
            let report = launch(&good, &config(1), &[Arg::from(&out)]).unwrap();
            assert_eq!(report.blocks, 1);
            runs += 1;
        }
    }
    assert!(faults > 1000, "{faults}");
    let want = u32::to_le_bytes(runs).repeat(64);
    assert_eq!(out.to_vec(), want);
}

#[test]
fn some_lanes_never_come_back_to_a_loop() {
    let text = format!(
        "{}.visible .entry k(.param .u64 out, .param .u32 who)
{{
    .reg .b32 %t, %who, %i; .reg .b64 %out; .reg .pred %p;
    ld.param.u64 %out, [out]; ld.param.u32 %who, [who];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %out, %t, 4, %out;
    mov.u32 %i, 0;
again:
    setp.ne.u32 %p, %t, %who;
    @%p bra on;
ever:
    bra ever;
on:
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 3;
    @%p bra again;
    st.global.u32 [%out], %i;
    ret;
}}
",
        crate::SM_80
    );
    let device = Device::new().unwrap();
    let module = Module::from_text(&device, "k.ptx", &text).unwrap_or_else(|e| panic!("{e}"));
    let k = module.function(Some("k")).unwrap();
    let ways = [(Engine::Interp, Backend::Wide), (Engine::Jit, Backend::Wide), (Engine::Jit, Backend::Cranelift)];
    for (engine, backend) in ways {
        let timeout = Some(std::time::Duration::from_millis(100));
        let config = LaunchConfig { engine, backend, timeout, threads: 1, ..LaunchConfig::new([1; 3], [32, 1, 1]) };
        let out = device.zeroed(4 * 32).unwrap();
        match launch(&k, &config, &[Arg::from(&out), 5_u32.into()]) {
            Err(LaunchError::Trap(t)) => assert_eq!(t.kind(), TrapKind::Timeout, "{engine:?} {}", t.message()),
            other => panic!("{engine:?} {backend:?}: {other:?}"),
        }
        let _ = launch(&k, &LaunchConfig { timeout: None, ..config }, &[Arg::from(&out), 99_u32.into()]).unwrap();
        assert_eq!(out.to_vec(), 3_u32.to_le_bytes().repeat(32), "{engine:?} {backend:?}");
    }
}

#[test]
fn memory_of_stopped_blocks_comes_back() {
    // More faults than there are slabs of shared memory in a window.
    let device = Device::new().unwrap();
    let module = Module::from_text(&device, "faults.ptx", TEXT).unwrap_or_else(|e| panic!("{e}"));
    let bad = module.function(Some("bad")).unwrap();
    let out = device.zeroed(4 * 64).unwrap();
    let config = LaunchConfig { threads: 2, ..LaunchConfig::new([8, 1, 1], [64, 1, 1]) };
    for _ in 0..1000 {
        match launch(&bad, &config, &[Arg::from(&out), 0_u32.into()]) {
            Err(LaunchError::Trap(t)) => assert_eq!(t.kind(), TrapKind::OutOfBounds),
            other => panic!("{other:?}"),
        }
    }
}
