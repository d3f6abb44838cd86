//! Products in vector code against `num::matrix`.

use handloom_ir::num::matrix::matrix;
use handloom_ir::simt::{
    Accumulator, Blocks, Element, HeldB, MatrixOp, Product, Quads, Run, Scale, ScaleFormat, Sparse, Step,
};
use handloom_ir::types::Rounding;

use super::{MAX_RESULTS, Row, Width, blocks, doubles, has_doubles, product, run};

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
        4 => &[0, 1, 7, 8, 15],
        _ => &[0, 1],
    };
    match any % 4 {
        // Numbers of moderate size, so that sums round and do not overflow.
        0 if bits == 32 => 0x3f00_0000 + (any >> 8 & 0x00ff_ffff),
        1 if bits == 32 => edges[(any >> 8) as usize % edges.len()],
        0 if bits == 16 => (any & 0x83ff_83ff) | 0x3800_3800,
        1 if bits < 32 => {
            let at = |i: u32| edges[any.rotate_right(3 + i) as usize % edges.len()] & ((1 << bits) - 1);
            (0..32 / bits).fold(0, |w, i| w | at(i) << (i * bits))
        }
        _ => any,
    }
}

fn compare(p: Product, random: &mut u64) {
    let [n_a, n_b, n_c, _] = p.registers();
    let row = |random: &mut u64, bits: u32| -> Row { std::array::from_fn(|_| word(random, bits)) };
    let mut src: Vec<Row> = (0..n_a).map(|_| row(random, p.a.bits())).collect();
    src.extend((0..n_b).map(|_| row(random, p.b.bits())));
    src.extend((0..n_c).map(|_| row(random, p.c.bits())));
    // Metadata and scales are any bits.
    while src.len() + 1 < MatrixOp::Product(p).sources().len() {
        src.push(row(random, 32));
    }
    compare_op(MatrixOp::Product(p), &src);
}

fn compare_op(op: MatrixOp, src: &[Row]) {
    let wide: Vec<[u64; 32]> = src.iter().map(|row| row.map(u64::from)).collect();
    let mut want = vec![[0; 32]; op.results().len()];
    matrix(op, u32::MAX, &wide, &mut want);
    for width in Width::of_host() {
        let mut rows_of_d = [[0; 32]; MAX_RESULTS];
        let out = rows_of_d.each_mut().map(|row| row.as_mut_ptr());
        let rows: Vec<*const Row> = src.iter().map(std::ptr::from_ref).collect();
        // SAFETY: there are as many rows as any product has results.
        assert!(unsafe { product(*width, op, &rows, &out) }, "{op:?} has no vector code");
        let got: Vec<[u64; 32]> = rows_of_d[..want.len()].iter().map(|row| row.map(u64::from)).collect();
        assert_eq!(got, want, "{op:?} by {width:?}");
        // The rows of the result may be those of sources, in any order.
        let n = src.len();
        for (first, by) in (0..n).flat_map(|first| [(first, 1), (first, n - 1)]) {
            let mut rows = src.to_vec();
            let start = rows.as_mut_ptr();
            let from: Vec<*const Row> = (0..n).map(|i| start.wrapping_add(i).cast_const()).collect();
            let places: Vec<usize> = (0..want.len()).map(|i| (first + by * i) % n).collect();
            let out: Vec<*mut u32> = places.iter().map(|i| start.wrapping_add(*i).cast()).collect();
            // SAFETY: all are rows of `rows`, which has at least as many as there are results.
            unsafe { product(*width, op, &from, &out) };
            let got: Vec<[u64; 32]> = places.iter().map(|i| rows[*i].map(u64::from)).collect();
            assert_eq!(got, want, "{op:?} by {width:?} to rows {places:?} of its sources");
        }
    }
}

/// Blocks of columns, whose results go to rows of their own, or to those of `c` where they have as many.
fn compare_blocks(op: Blocks, keep: &[Row], random: &mut u64) {
    let p = op.product;
    let [n_a, n_b, n_c, n_d] = op.registers();
    let mut row = |bits: u32| -> Row { std::array::from_fn(|_| word(random, bits)) };
    let mut src: Vec<Row> = (0..n_a).map(|_| row(p.a.bits())).collect();
    src.extend((0..n_b).map(|_| row(p.b.bits())));
    src.extend((0..n_c).map(|_| row(p.c.bits())));
    src.extend_from_slice(keep);
    src.extend(p.sparse.map(|_| row(32)));
    let wide: Vec<[u64; 32]> = src.iter().map(|row| row.map(u64::from)).collect();
    let mut want = vec![[0; 32]; n_d];
    matrix(MatrixOp::Blocks(op), u32::MAX, &wide, &mut want);
    for (width, in_place) in Width::of_host().iter().flat_map(|width| [(*width, false), (*width, true)]) {
        let mut rows = src.clone();
        rows.extend(vec![[0; 32]; n_d]);
        let first = if in_place && n_c == n_d { n_a + n_b } else { src.len() };
        let start = rows.as_mut_ptr();
        let all: Vec<*mut Row> = (0..rows.len()).map(|i| start.wrapping_add(i)).collect();
        let from: Vec<*const Row> = all[..src.len()].iter().map(|row| row.cast_const()).collect();
        let out: Vec<*mut u32> = all[first..][..n_d].iter().map(|row| row.cast()).collect();
        // SAFETY: all are rows of `rows`.
        unsafe { blocks(width, op, &from, &out) };
        let got: Vec<[u64; 32]> = rows[first..][..n_d].iter().map(|row| row.map(u64::from)).collect();
        assert_eq!(got, want, "{op:?} by {width:?}");
    }
}

/// A run, whose results go to rows of their own, to those of its `c` where they have as many, or to those of its matrices.
fn compare_run(op: Run, random: &mut u64) {
    let p = op.product;
    let [n_a, n_b, n_c, n_d] = op.registers();
    let mut rows =
        |n: usize, bits: u32| -> Vec<Row> { (0..n).map(|_| std::array::from_fn(|_| word(random, bits))).collect() };
    let src = [rows(n_a, p.a.bits()), rows(n_b, p.b.bits()), rows(n_c, p.c.bits())].concat();
    let of = p.registers();
    let mut want: Vec<[u64; 32]> = Vec::new();
    for i in 0..usize::from(op.count) {
        let [a, b] = op.operands_of(i);
        let parts =
            [&src[a * of[0]..][..of[0]], &src[n_a + b * of[1]..][..of[1]], &src[n_a + n_b + i * of[2]..][..of[2]]];
        let wide: Vec<[u64; 32]> = parts.concat().iter().map(|row| row.map(u64::from)).collect();
        let mut d = vec![[0; 32]; of[3]];
        matrix(MatrixOp::Product(p), u32::MAX, &wide, &mut d);
        want.append(&mut d);
    }
    for (width, place) in Width::of_host().iter().flat_map(|width| (0..3).map(move |place| (*width, place))) {
        let mut rows = src.clone();
        rows.extend(vec![[0; 32]; n_d]);
        let first = match place {
            0 if n_c == n_d => n_a + n_b,
            1 => 0,
            _ => src.len(),
        };
        let start = rows.as_mut_ptr();
        let all: Vec<*mut Row> = (0..rows.len()).map(|i| start.wrapping_add(i)).collect();
        let from: Vec<*const Row> = all[..src.len()].iter().map(|row| row.cast_const()).collect();
        let out: Vec<*mut u32> = all[first..][..n_d].iter().map(|row| row.cast()).collect();
        // SAFETY: all are rows of `rows`.
        unsafe { run(width, op, &from, &out, first == src.len()) };
        let got: Vec<[u64; 32]> = rows[first..][..n_d].iter().map(|row| row.map(u64::from)).collect();
        assert_eq!(got, want, "{op:?} by {width:?}, place {place}");
    }
}

#[test]
fn runs_are_those_of_the_definition() {
    use Accumulator::{F16 as Half, F32, S32};
    use Element::*;
    let mut random = 9;
    let mut check = |p: Product| {
        for count in [2, 3, 7, 16] {
            for _ in 0..4 {
                // How many there are of each matrix, all of which are named.
                let n_operands = [0, 1].map(|i| 1 + (word(&mut random, 32) >> (3 * i + 2)) as u8 % count);
                let mut operands = [0; 2];
                for i in 0..u64::from(count) {
                    for (named, n) in operands.iter_mut().zip(n_operands) {
                        let any = u64::from(word(&mut random, 32) >> 5);
                        *named |= if i < u64::from(n) { i } else { any % u64::from(n) } << (4 * i);
                    }
                }
                compare_run(Run { product: p, count, n_operands, operands }, &mut random);
            }
        }
    };
    for (a, b) in [(U8, U8), (U8, S8), (S8, U8), (S8, S8)] {
        for k in [16, 32] {
            check(dense(16, k, [a, b], [S32; 2], Step::Add));
            check(dense(16, k, [a, b], [S32; 2], Step::AddSaturating));
        }
    }
    for e in [F16, Bf16] {
        [8, 16].into_iter().for_each(|k| check(dense(16, k, [e; 2], [F32; 2], Step::Add)));
    }
    check(dense(16, 16, [F16; 2], [Half; 2], Step::Add));
    check(dense(16, 8, [Tf32; 2], [F32; 2], Step::Add));
}

#[test]
fn products_of_blocks_are_those_of_the_definition() {
    use Accumulator::{F16 as Half, F32, S32};
    use Element::*;
    let mut random = 8;
    let mut check = |p: Product| {
        let by_depths = p.b.bits() == 16;
        for b in [HeldB::Fragments, HeldB::Columns, HeldB::Depths] {
            for count in [1, 2, 3, 7, 32] {
                if b == HeldB::Depths && !by_depths {
                    continue;
                }
                let op = Blocks { product: p, count, times: 1, b };
                let some = std::array::from_fn(|lane| u32::from(lane % 3 == 0));
                [[1; 32], [0; 32], some].into_iter().for_each(|keep| compare_blocks(op, &[keep], &mut random));
            }
        }
    };
    for (c, d) in [(Half, Half), (F32, F32), (Half, F32), (F32, Half)] {
        check(dense(16, 16, [F16; 2], [c, d], Step::Add));
        check(dense(16, 32, [E4m3, E5m2], [c, d], Step::Add));
        check(dense(16, 32, [E5m2, E4m3], [c, d], Step::Add));
    }
    check(dense(16, 8, [F16; 2], [F32; 2], Step::Add));
    check(dense(16, 16, [Bf16; 2], [F32; 2], Step::Add));
    check(dense(16, 8, [Tf32; 2], [F32; 2], Step::Add));
    check(dense(16, 4, [Tf32; 2], [F32; 2], Step::Add));
    check(dense(16, 32, [S8, U8], [S32; 2], Step::AddSaturating));
    check(dense(16, 256, [B1; 2], [S32; 2], Step::AndPopc));
    for selector in [0, 1] {
        let sparse = Some(Sparse { selector });
        check(Product { sparse, ..dense(16, 32, [F16; 2], [F32; 2], Step::Add) });
        check(Product { sparse, ..dense(16, 64, [S8; 2], [S32; 2], Step::Add) });
    }
}

#[test]
fn products_that_add_to_the_same_sums_are_those_of_the_definition() {
    let mut random = 10;
    let some = std::array::from_fn(|lane| u32::from(lane % 5 != 0));
    let both = [Element::F16, Element::Bf16, Element::E4m3, Element::Tf32];
    for (e, k) in both.into_iter().zip([16, 16, 32, 8]) {
        let product = dense(16, k, [e; 2], [Accumulator::F32; 2], Step::Add);
        for (count, b) in [(1, HeldB::Fragments), (5, HeldB::Columns), (16, HeldB::Columns), (32, HeldB::Fragments)] {
            for keeps in [&[[1; 32], [1; 32]][..], &[[0; 32], [2; 32], [1; 32], [7; 32]], &[some, [1; 32], some]] {
                let op = Blocks { product, count, times: keeps.len() as u8, b };
                compare_blocks(op, keeps, &mut random);
            }
        }
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

#[test]
fn products_of_single_bits_are_those_of_the_definition() {
    let mut random = 3;
    for step in [Step::XorPopc, Step::AndPopc] {
        for (m, k) in [(8, 128), (16, 128), (16, 256)] {
            let p = dense(m, k, [Element::B1; 2], [Accumulator::S32; 2], step);
            (0..ROUNDS).for_each(|_| compare(p, &mut random));
        }
    }
}

/// Metadata of any bits, what the manual calls invalid among them.
#[test]
fn sparse_products_are_those_of_the_definition() {
    use Accumulator::{F16 as Half, F32, S32};
    use Element::*;
    let mut random = 4;
    let mut check = |k, a, b, c, d, step| {
        for selector in 0..4 {
            let p = Product { sparse: Some(Sparse { selector }), ..dense(16, k, [a, b], [c, d], step) };
            (0..ROUNDS / 4).for_each(|_| compare(p, &mut random));
        }
    };
    for (c, d) in [(Half, Half), (F32, F32), (Half, F32), (F32, Half)] {
        check(16, F16, F16, c, d, Step::Add);
        check(32, F16, F16, c, d, Step::Add);
        for (a, b) in [(E4m3, E5m2), (E5m2, E4m3), (E3m2, E2m1), (E2m1, E2m3)] {
            check(64, a, b, c, d, Step::Add);
        }
    }
    for k in [8, 16] {
        check(2 * k, Bf16, Bf16, F32, F32, Step::Add);
        check(k, Tf32, Tf32, F32, F32, Step::Add);
    }
    for step in [Step::Add, Step::AddSaturating] {
        for (a, b) in [(U8, U8), (U8, S8), (S8, U8), (S8, S8)] {
            [32, 64].into_iter().for_each(|k| check(k, a, b, S32, S32, step));
        }
        for (a, b) in [(U4, U4), (U4, S4), (S4, U4), (S4, S4)] {
            [64, 128].into_iter().for_each(|k| check(k, a, b, S32, S32, step));
        }
    }
}

#[test]
fn products_with_scales_are_those_of_the_definition() {
    use Element::*;
    let mut random = 5;
    for is_sparse in [false, true] {
        let mut check = |a, b, k: u16, format, blocks| {
            let sparse = is_sparse.then_some(Sparse { selector: 0 });
            let k = if is_sparse { 2 * k } else { k };
            let plain = dense(16, k, [a, b], [Accumulator::F32; 2], Step::Add);
            let p = Product { sparse, scale: Some(Scale { format, blocks }), ..plain };
            (0..ROUNDS).for_each(|_| compare(p, &mut random));
        };
        for (a, b) in [(E4m3, E4m3), (E5m2, E2m1), (E3m2, E2m3), (E2m1, E2m1)] {
            check(a, b, 32, ScaleFormat::Ue8m0, 1);
        }
        for (format, blocks) in [(ScaleFormat::Ue8m0, 2), (ScaleFormat::Ue8m0, 4), (ScaleFormat::Ue4m3, 4)] {
            check(E2m1Packed, E2m1Packed, 64, format, blocks);
        }
    }
}

#[test]
fn four_products_of_quads_are_those_of_the_definition() {
    let mut random = 6;
    for (a_by_rows, b_by_rows) in [(false, false), (false, true), (true, false), (true, true)] {
        for (c, d) in [(16, 16), (32, 32), (16, 32), (32, 16)] {
            let of = |bits| if bits == 16 { Accumulator::F16 } else { Accumulator::F32 };
            let op = MatrixOp::Quads(Quads { a_by_rows, b_by_rows, c: of(c), d: of(d) });
            for _ in 0..ROUNDS {
                let n = op.sources().len() - 1;
                let src: Vec<Row> =
                    (0..n).map(|i| std::array::from_fn(|_| word(&mut random, if i < 4 { 16 } else { c }))).collect();
                compare_op(op, &src);
            }
        }
    }
}

#[test]
fn products_of_doubles_are_those_of_the_definition() {
    let mut random = 7;
    let f64s = [Element::F64; 2];
    for (m, k) in [(8, 4), (16, 4), (16, 8), (16, 16)] {
        let p = dense(m, k, f64s, [Accumulator::F64; 2], Step::Add);
        let op = MatrixOp::Product(p);
        let mut element = || {
            let any = u64::from(word(&mut random, 1)) << 32 | u64::from(word(&mut random, 32));
            match any % 8 {
                0 => [0, 1 << 63, 1, 0x7ff0 << 48, 0xfff0 << 48, 0x7ff8 << 48][any as usize / 8 % 6],
                1 => any,
                // Numbers of moderate size.
                _ => 0x3ff0 << 48 | any >> 12 | any << 63,
            }
        };
        for _ in 0..ROUNDS {
            let src: Vec<[u64; 32]> = (0..op.sources().len() - 1).map(|_| std::array::from_fn(|_| element())).collect();
            let mut want = vec![[0; 32]; op.results().len()];
            matrix(op, u32::MAX, &src, &mut want);
            for width in Width::of_host() {
                let mut got = vec![[0; 32]; want.len()];
                doubles(*width, has_doubles(op).expect("it has vector code"), &src, &mut got);
                assert_eq!(got, want, "{op:?} by {width:?}");
            }
        }
    }
    // Other roundings are left to the definition.
    let toward_zero = dense(8, 4, f64s, [Accumulator::F64; 2], Step::AddRounded(Rounding::Zero));
    assert!(has_doubles(MatrixOp::Product(toward_zero)).is_none());
}
