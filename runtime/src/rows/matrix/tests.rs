//! Products in vector code against `num::matrix`.

use handloom_ir::num::matrix::matrix;
use handloom_ir::simt::{Accumulator, Element, MatrixOp, Product, Step};

use super::{Row, Width, product};

/// A random word of elements: any bits, or edges of the format in every place.
fn word(state: &mut u64, bits: u32) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    let any = (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32;
    let edges: &[u32] = match bits {
        16 => &[0, 0x8000, 1, 0x3ff, 0x400, 0x3c00, 0xbc00, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x7f80, 0xff80, 0x0080],
        8 => &[0, 0x80, 1, 7, 8, 0x38, 0x7e, 0x7f, 0xff, 0x7b, 0x7c, 0xfc, 0x7d, 0xfe],
        32 => &[0, 0x8000_0000, 0x3f80_0000, 0x7f80_0000, 0xff80_0000, 0x7f80_0001, 1, 0x80_0000, 0x7f7f_ffff],
        _ => &[0, 1, 7, 8, 15],
    };
    match any % 4 {
        // Numbers of moderate size, so that sums round and do not overflow.
        0 if bits == 32 => 0x3f00_0000 + (any >> 8 & 0x00ff_ffff),
        1 if bits == 32 => edges[(any >> 8) as usize % edges.len()],
        0 if bits == 16 => (any & 0x83ff_83ff) | 0x3800_3800,
        1 if bits < 32 => {
            let at = |i: u32| edges[(any >> (3 + i)) as usize % edges.len()] & ((1 << bits) - 1);
            (0..32 / bits).fold(0, |w, i| w | at(i) << (i * bits))
        }
        _ => any,
    }
}

fn compare(p: Product, random: &mut u64) {
    let [n_a, n_b, n_c, n_d] = p.registers();
    let row = |random: &mut u64, bits: u32| -> Row { std::array::from_fn(|_| word(random, bits)) };
    let c_bits = if p.c == Accumulator::F16 { 16 } else { 32 };
    let mut src: Vec<Row> = (0..n_a).map(|_| row(random, p.a.bits())).collect();
    src.extend((0..n_b).map(|_| row(random, p.b.bits())));
    src.extend((0..n_c).map(|_| row(random, c_bits)));
    let wide: Vec<[u64; 32]> = src.iter().map(|row| row.map(u64::from)).collect();
    let mut want = vec![[0; 32]; n_d];
    matrix(MatrixOp::Product(p), u32::MAX, &wide, &mut want);
    for width in Width::of_host() {
        let mut rows_of_d = [[0; 32]; 4];
        let out = rows_of_d.each_mut().map(|row| row.as_mut_ptr());
        let rows: Vec<*const Row> = src.iter().map(std::ptr::from_ref).collect();
        // SAFETY: there are four rows.
        assert!(unsafe { product(*width, p, &rows, &out) }, "{p:?} has no vector code");
        let got: Vec<[u64; 32]> = rows_of_d[..n_d].iter().map(|row| row.map(u64::from)).collect();
        assert_eq!(got, want, "{p:?} by {width:?}");
    }
}

const ROUNDS: usize = 200;

fn dense(m: u8, k: u16, [a, b]: [Element; 2], [c, d]: [Accumulator; 2], step: Step) -> Product {
    Product { m, k, a, b, c, d, step, sparse: None, scale: None }
}

#[test]
fn products_of_floats_are_those_of_the_definition() {
    use Accumulator::{F16, F32};
    use Element::*;
    let mut random = 1;
    let mut check = |m, k, a, b, c, d| {
        (0..ROUNDS).for_each(|_| compare(dense(m, k, [a, b], [c, d], Step::Add), &mut random));
    };
    for (c, d) in [(F16, F16), (F32, F32), (F16, F32), (F32, F16)] {
        check(16, 8, Element::F16, Element::F16, c, d);
        check(16, 16, Element::F16, Element::F16, c, d);
        for (a, b) in [(E4m3, E4m3), (E4m3, E5m2), (E5m2, E4m3), (E5m2, E5m2)] {
            check(16, 16, a, b, c, d);
            check(16, 32, a, b, c, d);
        }
        for (a, b) in [(E3m2, E2m3), (E2m1, E3m2), (E2m3, E2m1), (E4m3, E2m1), (E3m2, E5m2)] {
            check(16, 32, a, b, c, d);
        }
    }
    for k in [8, 16] {
        check(16, k, Bf16, Bf16, F32, F32);
        check(16, k / 2, Tf32, Tf32, F32, F32);
    }
}

#[test]
fn products_of_integers_are_those_of_the_definition() {
    use Accumulator::S32;
    use Element::*;
    let mut random = 2;
    for step in [Step::Add, Step::AddSaturating] {
        let mut check = |m, k, a, b| {
            (0..ROUNDS).for_each(|_| compare(dense(m, k, [a, b], [S32, S32], step), &mut random));
        };
        for (a, b) in [(U8, U8), (U8, S8), (S8, U8), (S8, S8)] {
            [(8, 16), (16, 16), (16, 32)].into_iter().for_each(|(m, k)| check(m, k, a, b));
        }
        for (a, b) in [(U4, U4), (U4, S4), (S4, U4), (S4, S4)] {
            [(8, 32), (16, 32), (16, 64)].into_iter().for_each(|(m, k)| check(m, k, a, b));
        }
    }
}
