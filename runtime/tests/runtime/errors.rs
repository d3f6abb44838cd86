//! Errors as a program sees them: what sort they are, beside what they say.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use handloom_ir::trap::TrapKind;
use handloom_runtime::{Arg, Device, ErrorKind, Lack, LaunchConfig, LaunchError, Module, NoRoom, StopHandle, launch};

use crate::SM_90 as HEAD;

/// Sets `out[t]` where a word of `out` is below 7.
const BELOW: &str = ".visible .entry k(.param .u64 out, .param .u32 n)
{
    .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    ld.global.u32 %r2, [%rd1];
    setp.lt.s32 %p, %r2, 7;
    selp.b32 %r3, 1, 2, %p;
    st.global.u32 [%rd1], %r3;
    ret;
}
.visible .entry small(.param .u64 out) .maxntid 32 { ret; }
.visible .entry square(.param .u64 out) .reqntid 8, 8 { ret; }
.visible .entry pair(.param .u64 out) .explicitcluster .reqnctapercluster 2 { ret; }
.shared .b8 big[49160];
.visible .entry greedy(.param .u64 out)
{
    .reg .b32 %r;
    ld.shared.u32 %r, [big];
    ret;
}";

fn module(device: &Device, text: &str) -> Module {
    Module::from_text(device, "test.ptx", &format!("{HEAD}{text}")).unwrap_or_else(|e| panic!("{e}"))
}

fn shape(grid: u32, block: u32) -> LaunchConfig {
    LaunchConfig { threads: 1, ..LaunchConfig::new([grid, 1, 1], [block, 1, 1]) }
}

#[test]
fn a_launch_says_what_is_wrong_with_it() {
    let (device, other) = (Device::new().unwrap(), Device::new().unwrap());
    let m = module(&device, BELOW);
    let (mine, foreign) = (device.zeroed(4096).unwrap(), other.zeroed(4096).unwrap());
    let kind = |entry: &str, config: &LaunchConfig, args: &[Arg<'_>]| {
        launch(&m.function(Some(entry)).unwrap(), config, args).unwrap_err().kind()
    };
    let (out, n) = (Arg::from(&mine), Arg::from(1_u32));
    let good = shape(1, 32);
    let cluster = |c| LaunchConfig { cluster: Some(c), ..shape(4, 32) };
    for (entry, config, args, want) in [
        ("k", &shape(0, 32), &[out, n][..], ErrorKind::InvalidValue),
        ("k", &shape(1, 2048), &[out, n], ErrorKind::InvalidValue),
        ("square", &good, &[out], ErrorKind::InvalidValue),
        ("small", &shape(1, 64), &[out], ErrorKind::InvalidValue),
        ("greedy", &good, &[out], ErrorKind::TooManyResources),
        ("k", &LaunchConfig { shared_bytes: 1 << 20, ..good.clone() }, &[out, n], ErrorKind::TooManyResources),
        ("k", &cluster([3, 1, 1]), &[out, n], ErrorKind::InvalidCluster),
        ("k", &cluster([0, 1, 1]), &[out, n], ErrorKind::InvalidCluster),
        ("pair", &cluster([4, 1, 1]), &[out], ErrorKind::InvalidCluster),
        ("k", &LaunchConfig { cooperative: true, ..shape(1 << 20, 32) }, &[out, n], ErrorKind::CooperativeTooLarge),
        ("k", &good, &[out], ErrorKind::ArgumentCount),
        ("k", &good, &[out, Arg::Bytes(&[0; 8])], ErrorKind::ArgumentSize),
        ("k", &good, &[out, Arg::from(&mine)], ErrorKind::ArgumentSize),
        ("k", &good, &[out, Arg::from(1_u64 << 40)], ErrorKind::InvalidValue),
        ("k", &good, &[Arg::Buffer { buffer: &mine, offset: 4097 }, n], ErrorKind::InvalidValue),
        ("k", &good, &[Arg::from(&foreign), n], ErrorKind::InvalidHandle),
    ] {
        assert_eq!(kind(entry, config, args), want, "{entry} {config:?} {args:?}");
    }
    assert_eq!(m.function(Some("q")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(m.function(None).unwrap_err().kind(), ErrorKind::NotFound);
    let stop = StopHandle::new();
    stop.stop();
    assert_eq!(kind("k", &LaunchConfig { stop, ..good.clone() }, &[out, n]), ErrorKind::Stopped);
    let outside = Arg::Scalar(64);
    assert_eq!(kind("k", &good, &[outside, n]), ErrorKind::Trap(TrapKind::OutOfBounds));
}

#[test]
fn a_module_says_why_it_does_not_load() {
    let device = Device::new().unwrap();
    let kind = |text: &str| {
        let made = Module::from_text(&device, "test.ptx", &format!("{HEAD}{text}"));
        made.map(|_| ()).unwrap_err().kind()
    };
    let entry = |body: &str| format!(".visible .entry k() {{ .reg .b32 %r<4>; {body} ret; }}");
    assert_eq!(kind(&entry("nonsense %r1;")), ErrorKind::InvalidModule);
    assert_eq!(kind(&entry("add.u32 %r1, %r2;")), ErrorKind::InvalidModule);
    let call = ".extern .func absent();\n.visible .entry k() { call absent; ret; }";
    assert_eq!(kind(call), ErrorKind::LinkFailed);
    let indexed =
        ".global .b32 t[4];\n.visible .entry k() { .reg .b32 %r; mov.b32 %r, 0; ld.global.b32 %r, t[%r]; ret; }";
    assert_eq!(kind(indexed), ErrorKind::Unsupported);
    // What is wrong comes before what is not supported.
    assert_eq!(kind(&indexed.replace("mov.b32", "mov.b31")), ErrorKind::InvalidModule);
}

#[test]
fn no_room_says_for_what() {
    let device = Device::new().unwrap();
    let bytes = 1 << 50;
    let e = LaunchError::from(device.zeroed(bytes).unwrap_err());
    assert_eq!(e.kind(), ErrorKind::OutOfMemory);
    assert!(matches!(e, LaunchError::NoRoom(Lack::Memory(NoRoom { bytes: b })) if b == bytes));
    assert_eq!(e.to_string(), "no room for 1125899906842624 bytes of device memory");
    assert_eq!(Lack::Barrier.to_string(), "the host has no room for a barrier");
}
