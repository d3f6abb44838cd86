//! Instructions whose encoding wide code's assembler knows already, beside those that the encoder makes.

use handloom_wide::asm::{Asm, Mem, Out};
use iced_x86::Code::*;
use iced_x86::Register::{EAX, K3, K5, R12, RAX, RBP, RBX, RCX, RSP, ZMM1, ZMM8, ZMM20};
use iced_x86::{Register, RoundingControl};

/// Instructions of each form, with displacements of each length, in bytes.
fn code(has_text: bool) -> Vec<u8> {
    let mut a = Asm::new();
    if has_text {
        a.keep_text();
    }
    let c = a.words([7; 16]);
    let l = a.label();
    a.bind(l);
    let places = [0, 1, 4, 8, 60, 64, 127, 128, 100, -64, -128, -129, 508, 512, 8128, 8192, 8193, -8192, 1 << 20];
    for at in [places, places].concat() {
        for base in [RBP, RSP, RBX, R12] {
            let m = Mem::at(base, at);
            a.op2(EVEX_Vmovdqu32_zmm_k1z_zmmm512, ZMM8, m);
            a.op2(EVEX_Vmovdqu32_zmm_k1z_zmmm512, Out::masked(ZMM20, K5), m);
            a.store(EVEX_Vmovdqu32_zmmm512_k1z_zmm, m, ZMM1, K3);
            a.op3(EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, ZMM1, ZMM20, m.spread());
            a.op3(EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, ZMM1, ZMM20, m);
            a.op3i(EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8, ZMM1, ZMM8, m, 0x96);
            a.op2(EVEX_Vpmovzxwd_zmm_k1z_ymmm256, ZMM8, m);
            a.op2(Mov_r32_rm32, EAX, m);
            a.op2(Mov_r32_rm32, EAX, m.plus(RCX));
            a.op2(Mov_r32_rm32, EAX, Mem::indexed(base, RCX, 8, at));
            a.store(Mov_rm64_r64, m, RAX, Register::None);
            a.imm(Mov_rm32_imm32, m, -at);
            a.imm8(Shl_rm32_imm8, m, 3);
            a.times(RAX, m, at);
        }
        a.op2(EVEX_Vmovdqu32_zmm_k1z_zmmm512, ZMM8, Mem::constant(c, at & 32));
        a.op2(Lea_r64_m, RAX, Mem::label(l));
        a.op2(EVEX_Vmovdqu32_zmm_k1z_zmmm512, ZMM8, ZMM20);
        a.op2r(EVEX_Vcvtps2dq_zmm_k1z_zmmm512b32_er, ZMM8, ZMM20, RoundingControl::RoundDown);
        a.op2r(EVEX_Vcvtps2dq_zmm_k1z_zmmm512b32_er, ZMM8, ZMM20, RoundingControl::RoundUp);
        a.number(RCX, 5);
        a.imm(Cmp_rm32_imm32, EAX, at);
    }
    // What is known counts as written.
    a.forget_written(RAX);
    let since = a.position();
    a.op2(EVEX_Vmovdqu32_zmm_k1z_zmmm512, ZMM8, ZMM20);
    assert!(!a.is_written(RAX) && a.still_holds(ZMM1, since));
    a.op2(Mov_r32_rm32, EAX, Mem::at(RBP, 4));
    a.op3(EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, ZMM1, ZMM20, Mem::at(RBP, 64));
    assert!(a.is_written(RAX) && !a.still_holds(ZMM1, since));
    a.finish().unwrap()
}

#[test]
fn what_is_known_is_what_the_encoder_makes() {
    let made = code(true);
    // A second function knows what the first one did.
    (0..2).for_each(|_| assert_eq!(code(false), made));
}
