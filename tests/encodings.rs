//! Instructions whose encoding wide code's assembler knows already, beside those that the encoder makes.

use handloom_wide::asm::{Asm, Mem, Out};
use iced_x86::Code::*;
use iced_x86::Register::{EAX, K3, K5, R12, RAX, RBP, RBX, RCX, RSP, ZMM1, ZMM8, ZMM20};
use iced_x86::{Register, RoundingControl};

/// Instructions of each form, with displacements of each length, in bytes.
fn code(has_text: bool) -> Vec<u8> {
    let mut a = Asm::new(0);
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
    a.finish().unwrap().to_vec()
}

/// Instructions whose vectors are any: in fields that are turned around or not, behind prefixes of all lengths, as indices and as masks.
fn any_vectors(has_text: bool) -> Vec<u8> {
    let mut a = Asm::new(0);
    if has_text {
        a.keep_text();
    }
    let zmm = |n: u32| Register::ZMM0 + n % 32;
    let ymm = |n: u32| Register::YMM0 + n % 16;
    let xmm = |n: u32| Register::XMM0 + n % 16;
    for i in 0..4000u32 {
        // Each of the numbers takes all values with all of the others, sooner or later.
        let (x, y, z) = (i.wrapping_mul(2_654_435_761) >> 8, i / 3, i.wrapping_mul(40_503) >> 5);
        let m = Mem::at(if i % 2 == 0 { RBP } else { R12 }, (z as i32 % 300 - 150) * [1, 16, 64][i as usize % 3]);
        a.op3(EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, zmm(x), zmm(y), zmm(z));
        a.op3(EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, Out::masked(zmm(x), K3), zmm(y), m);
        a.op2i(EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, zmm(x), zmm(y), z % 32);
        a.op2i(EVEX_Vextracti32x4_xmmm128_k1z_zmm_imm8, xmm(x), zmm(y), z % 4);
        a.op3i(EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8, K5, zmm(x), zmm(y), z % 8);
        a.op2(EVEX_Vpgatherdd_zmm_k1_vm32z, Out::masked(zmm(x), K3), Mem::indexed(RBX, zmm(y), 4, 64));
        a.store(EVEX_Vpscatterdd_vm32z_k1_zmm, Mem::indexed(R12, zmm(x), 1, 0), zmm(z), K3);
        a.store(EVEX_Vmovdqu32_zmmm512_k1z_zmm, m, zmm(y), Register::None);
        a.op2(VEX_Vmovd_xmm_rm32, xmm(x), EAX);
        a.store(VEX_Vmovd_rm32_xmm, m, xmm(x), Register::None);
        a.op3(VEX_Vpaddd_ymm_ymm_ymmm256, ymm(x), ymm(y), ymm(z));
        a.op3(VEX_Vpmulld_ymm_ymm_ymmm256, ymm(x), ymm(y), ymm(z));
        a.op3(VEX_Vpmulld_ymm_ymm_ymmm256, ymm(x), ymm(y), m);
        a.op2i(VEX_Vpslld_ymm_ymm_imm8, ymm(x), ymm(y), z % 32);
        a.op2i(VEX_Vextracti128_xmmm128_ymm_imm8, xmm(x), ymm(y), 1);
        a.op3i(VEX_Vshufps_ymm_ymm_ymmm256_imm8, ymm(x), ymm(y), ymm(z), 0x88);
    }
    a.finish().unwrap().to_vec()
}

/// What AVX2 has for vectors of 512 bits: choices by a vector, gathers, and stores of some elements among them.
fn narrow(has_text: bool) -> Vec<u8> {
    let mut a = Asm::with_avx2(0);
    if has_text {
        a.keep_text();
    }
    let zmm = |n: u32| Register::ZMM0 + 8 + n % 24;
    for i in 0..2000u32 {
        let (x, y, z) = (i.wrapping_mul(2_654_435_761) >> 8, i / 3, i.wrapping_mul(40_503) >> 5);
        a.op2(VEX_Kmovd_kr_r32, K3, EAX);
        a.op3(EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, Out::masked(zmm(x), K3), zmm(y), zmm(z));
        a.op3(EVEX_Vpblendmd_zmm_k1z_zmm_zmmm512b32, Out::masked(zmm(y), K3), zmm(x), zmm(z));
        a.op3(EVEX_Vpermi2d_zmm_k1z_zmm_zmmm512b32, zmm(z), zmm(y), zmm(x));
        a.store(EVEX_Vmovdqu32_zmmm512_k1z_zmm, Mem::at(R12, 64 * (i as i32 % 7)), zmm(z), K3);
        a.op2(EVEX_Vpgatherdd_zmm_k1_vm32z, Out::masked(zmm(x), K3), Mem::indexed(R12, zmm(y), 4, 0));
        a.op2(VEX_Kmovw_kr_km16, K5, Mem::at(RBP, 144));
        a.op2(Mov_r32_rm32, EAX, Mem::at(RBP, 140));
        a.op2(VEX_Kmovw_kr_km16, K5, Mem::at(RBP, 144));
        a.op3(EVEX_Vpblendmd_zmm_k1z_zmm_zmmm512b32, Out::masked(zmm(z), K5), zmm(x), zmm(y));
        if i % 3 == 0 {
            a.store(Mov_rm32_r32, Mem::at(RBP, 144), EAX, Register::None);
        }
        a.end_instruction(u32::MAX);
    }
    assert_eq!(a.lack(), None);
    a.finish().unwrap().to_vec()
}

#[test]
fn any_vectors_are_put_in_as_the_encoder_does() {
    for code in [any_vectors, narrow] {
        let made = code(true);
        // The last one knows what others did.
        (0..2).for_each(|_| assert!(code(false) == made));
    }
}

#[test]
fn what_is_known_is_what_the_encoder_makes() {
    let made = code(true);
    // A second function knows what the first one did.
    (0..2).for_each(|_| assert_eq!(code(false), made));
}

#[test]
fn lanes_of_a_word_are_known_until_it_is_written() {
    let mut a = Asm::with_avx2(0);
    let word = Mem::at(RBP, 144);
    // Whether code is made for the lanes of the word.
    let makes = |a: &mut Asm| {
        let before = a.position();
        a.op2(VEX_Kmovw_kr_km16, K5, word);
        let makes = a.position() > before;
        a.end_instruction(u32::MAX);
        makes
    };
    assert!(makes(&mut a) && !makes(&mut a));
    a.op2(Mov_r32_rm32, EAX, word);
    a.imm(Mov_rm32_imm32, word.behind(4), 1);
    a.store(Mov_rm32_r32, word.behind(-4), EAX, Register::None);
    a.store(Mov_rm32_r32, Mem::at(RBX, 144), EAX, Register::None);
    assert!(!makes(&mut a));
    type Write = fn(&mut Asm, Mem);
    let writes: [Write; 9] = [
        |a, m| a.store(Mov_rm32_r32, m, EAX, Register::None),
        |a, m| a.store(Mov_rm64_r64, m.behind(-4), RAX, Register::None),
        |a, m| a.imm(Mov_rm32_imm32, m, 1),
        |a, m| a.imm8(Shl_rm32_imm8, m, 1),
        |a, m| a.op1(Not_rm32, m),
        |a, m| a.store_locked(Or_rm32_r32, m, EAX, true),
        |a, m| a.store(Mov_rm32_r32, m.plus(RCX), EAX, Register::None),
        |a, _| a.imm(Add_rm64_imm32, RBP, 320),
        |a, _| {
            let l = a.label();
            a.bind(l);
        },
    ];
    for (i, write) in writes.into_iter().enumerate() {
        write(&mut a, word);
        assert!(makes(&mut a) && !makes(&mut a), "write {i}");
    }
    // Of another warp.
    a.shift(320);
    assert!(makes(&mut a));
    assert_eq!(a.lack(), None);
}
