//! Programs that have asked for other floating-point arithmetic than kernels have.
#![cfg(target_arch = "x86_64")]

use super::Context;
use crate::device::Device;
use crate::launch::{Arg, Engine, LaunchConfig, launch};
use crate::module::Module;
use crate::run::swap_control;

/// Each thread: a sum that is rounded, a product that is below the normal numbers, the same of constants, a quotient by 0, and a conversion.
const TEXT: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .f32 %f<12>; .reg .f64 %d<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 32;
    add.u64 %rd1, %rd1, %rd2;
    cvt.rn.f32.u32 %f1, %r1;
    add.f32 %f2, %f1, 0f3f800001;
    st.global.f32 [%rd1], %f2;
    mul.f32 %f3, %f2, 0f00000003;
    st.global.f32 [%rd1+4], %f3;
    mov.f32 %f4, 0f3f800001;
    add.f32 %f5, %f4, 0f33333333;
    st.global.f32 [%rd1+8], %f5;
    mov.f32 %f6, 0f00000005;
    mul.f32 %f7, %f6, 0f3f000000;
    st.global.f32 [%rd1+12], %f7;
    sub.f32 %f8, %f1, %f1;
    div.rn.f32 %f9, 0f3f800000, %f8;
    st.global.f32 [%rd1+16], %f9;
    cvt.f64.f32 %d1, %f2;
    div.rn.f64 %d2, %d1, 0d4008000000000000;
    cvt.rn.f32.f64 %f10, %d2;
    st.global.f32 [%rd1+20], %f10;
    st.global.f64 [%rd1+24], 0d3fb999999999999a;
    ret;
}
";

/// All bits that a launch writes, by an engine, from a module that is loaded now.
fn bits(engine: Engine, by_stream: bool) -> Vec<u8> {
    let device = Device::new().unwrap();
    let f = Module::from_text(&device, "k.ptx", TEXT).unwrap().function(Some("k")).unwrap();
    let out = device.zeroed(64 * 32).unwrap();
    let config = LaunchConfig { engine, threads: 2, ..LaunchConfig::new([1, 1, 1], [64, 1, 1]) };
    if by_stream {
        let context = Context::new(&device);
        for _ in 0..3 {
            context.default_stream().launch(&f, &config, &[Arg::from(&out)]).unwrap();
            context.synchronize().unwrap();
        }
    } else {
        launch(&f, &config, &[Arg::from(&out)]).unwrap().clean().unwrap();
    }
    out.to_vec()
}

#[test]
fn kernels_compute_as_they_are_defined_whatever_the_program_has_asked_for() {
    let ways = [(Engine::Interp, false), (Engine::Jit, false), (Engine::Interp, true), (Engine::Jit, true)];
    let usual = ways.map(|(engine, by_stream)| bits(engine, by_stream));
    assert!(usual.iter().all(|bits| *bits == usual[0]));
    // Downwards, upwards, towards zero, no subnormal numbers, and exceptions that stop the thread.
    for word in [0x3f80, 0x5f80, 0x7f80, 0x9fc0, 0x1d80 & !0x1000, 0x0000] {
        for (engine, by_stream) in ways {
            let before = swap_control(word);
            let got = bits(engine, by_stream);
            let after = swap_control(before);
            assert!(got == usual[0], "{word:#x} {engine:?} {by_stream}");
            assert_eq!(after & !0x3f, word, "{engine:?}");
        }
    }
}
