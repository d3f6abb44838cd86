//! Products of each type of elements against sums that are exact: by the definition and by vector code of each width, within the bound that
//! `num::matrix` argues. Elements are read by a table of their formats, and summed as whole numbers of a power of two.

use handloom_interp::pace::splitmix;
use handloom_ir::num::matrix::matrix;
use handloom_ir::simt::{Accumulator, Element, MatrixOp, Place, Product, Scale, ScaleFormat, Sparse, Step};

use super::{MAX_RESULTS, Row, Width, doubles, has_doubles, product};

/// A format of floats: bits of the exponent and of the fraction, the bit at which an element begins in its place, and the exponents that are asked
/// about, above that of subnormal numbers.
struct Floats {
    exponent: u32,
    fraction: u32,
    low: u32,
    asked: (u64, u64),
}

const fn floats(e: Element) -> Option<Floats> {
    let (exponent, fraction, low, asked) = match e {
        Element::F16 => (5, 10, 0, (0, 30)),
        Element::Bf16 => (8, 7, 0, (115, 139)),
        Element::Tf32 => (8, 10, 13, (115, 139)),
        Element::E4m3 => (4, 3, 0, (0, 14)),
        Element::E5m2 => (5, 2, 0, (0, 30)),
        Element::E3m2 => (3, 2, 0, (0, 7)),
        Element::E2m3 => (2, 3, 0, (0, 3)),
        Element::E2m1 => (2, 1, 2, (0, 3)),
        Element::E2m1Packed => (2, 1, 0, (0, 3)),
        Element::F64 => (11, 52, 0, (1023, 1024)),
        Element::U8 | Element::S8 | Element::U4 | Element::S4 | Element::B1 => return None,
    };
    Some(Floats { exponent, fraction, low, asked })
}

impl Floats {
    /// What is put in the place of an element.
    fn pick(&self, random: &mut u64) -> u64 {
        let span = self.asked.1 - self.asked.0 + 1;
        let exponent = self.asked.0 + splitmix(random) % span;
        let rest =
            splitmix(random) & ((1 << self.fraction) - 1) | (splitmix(random) & 1) << (self.fraction + self.exponent);
        (exponent << self.fraction | rest) << self.low
    }

    /// The number in a place, times `2^scale`.
    fn number(&self, place: u64, scale: u32) -> i128 {
        let code = place >> self.low;
        let fraction = i128::from(code & ((1 << self.fraction) - 1));
        let exponent = (code >> self.fraction & ((1 << self.exponent) - 1)) as i32;
        let all = if exponent == 0 { fraction } else { fraction | 1 << self.fraction };
        let bias = (1 << (self.exponent - 1)) - 1;
        let shift = scale as i32 + exponent.max(1) - bias - self.fraction as i32;
        let size = if shift >= 0 { all << shift } else { all >> -shift };
        assert!(shift >= 0 || size << -shift == all, "a bit is lost");
        if code >> (self.fraction + self.exponent) & 1 == 1 { -size } else { size }
    }
}

/// An integer element; a bit is 0 or 1.
fn integer(e: Element, place: u64) -> i64 {
    let size = e.bits();
    let is_signed = matches!(e, Element::S8 | Element::S4);
    place as i64 - if is_signed && place >> (size - 1) & 1 == 1 { 1 << size } else { 0 }
}

fn get(rows: &[[u64; 32]], at: Place, bits: u32) -> u64 {
    rows[at.register][at.lane] >> at.bit & (u64::MAX >> (64 - bits))
}

fn put(rows: &mut [[u64; 32]], at: Place, bits: u32, value: u64) {
    let word = &mut rows[at.register][at.lane];
    *word = *word & !(u64::MAX >> (64 - bits) << at.bit) | value << at.bit;
}

/// The results by the definition, and by vector code.
fn all_ways(p: Product, src: &[[u64; 32]]) -> Vec<Vec<[u64; 32]>> {
    let op = MatrixOp::Product(p);
    let mut plain = vec![[0; 32]; op.results().len()];
    matrix(op, u32::MAX, src, &mut plain);
    let mut ways = vec![plain];
    for width in Width::of_host() {
        let n = ways[0].len();
        if let Some(p) = has_doubles(op) {
            let mut got = vec![[0; 32]; n];
            doubles(*width, p, src, &mut got);
            ways.push(got);
            continue;
        }
        let narrow: Vec<Row> = src.iter().map(|row| row.map(|word| word as u32)).collect();
        let rows: Vec<*const Row> = narrow.iter().map(std::ptr::from_ref).collect();
        let mut results = [[0; 32]; MAX_RESULTS];
        let out = results.each_mut().map(|row| row.as_mut_ptr());
        // SAFETY: there are as many rows as any product has results.
        assert!(unsafe { product(*width, op, &rows, &out) }, "{op:?} has no vector code");
        ways.push(results[..n].iter().map(|row| row.map(u64::from)).collect());
    }
    ways
}

/// Bits behind the point of exact sums: enough for the products of all numbers that are asked about.
fn scale_of(p: Product) -> u32 {
    if p.a == Element::F64 { 104 } else { 60 }
}

const SINGLE: Floats = Floats { exponent: 8, fraction: 23, low: 0, asked: (115, 139) };

/// The format of accumulators.
fn sums(of: Accumulator) -> Option<Floats> {
    match of {
        Accumulator::F16 => floats(Element::F16),
        Accumulator::F32 => Some(SINGLE),
        Accumulator::F64 => floats(Element::F64),
        Accumulator::S32 => None,
    }
}

/// Where the stored elements of a row belong, by metadata that says so.
fn depths(p: Product, metadata: &[[u64; 32]], row: usize) -> Vec<usize> {
    let Some(_) = p.sparse else { return (0..usize::from(p.k)).collect() };
    let (size, together) = p.chunk();
    let mut all = Vec::new();
    for chunk in 0..usize::from(p.k) / size {
        let bits = get(metadata, p.place_of_metadata(row, chunk), 4) as usize;
        let places = if size == 2 { vec![usize::from(bits == 0b1110)] } else { vec![bits & 3, bits >> 2] };
        for place in places {
            all.extend((0..together).map(|i| size * chunk + together * place + i));
        }
    }
    all
}

/// Compares all results of a product of random matrices. Returns how many of them were rounded.
fn check(p: Product, random: &mut u64) -> usize {
    let [n_a, n_b, n_c, _] = p.registers();
    let n_scales = if p.scale.is_some() { 6 } else { 0 };
    let is_sparse = p.sparse.is_some();
    let mut src = vec![[0; 32]; n_a + n_b + n_c + usize::from(is_sparse) + n_scales];
    let (m, k) = (usize::from(p.m), usize::from(p.k));
    let pick = |e: Element, random: &mut u64| match floats(e) {
        Some(f) => f.pick(random),
        None => splitmix(random) & ((1 << e.bits()) - 1),
    };
    for (row, depth) in (0..m).flat_map(|row| (0..p.stored_depth()).map(move |depth| (row, depth))) {
        let value = pick(p.a, random);
        put(&mut src[..n_a], p.place_of_a(row, depth), p.a.bits(), value);
    }
    for (depth, column) in (0..k).flat_map(|depth| (0..8).map(move |column| (depth, column))) {
        let value = pick(p.b, random);
        put(&mut src[n_a..][..n_b], p.place_of_b(depth, column), p.b.bits(), value);
    }
    let places = || (0..m).flat_map(|row| (0..8).map(move |column| (row, column)));
    for (row, column) in places() {
        let value = sums(p.c).map_or(splitmix(random) & 0xffff_ffff, |f| f.pick(random));
        put(&mut src[n_a + n_b..][..n_c], Product::place_of_sum(p.c, row, column), p.c.bits(), value);
    }
    let more = n_a + n_b + n_c;
    if is_sparse {
        let codes: &[u64] = if p.chunk().0 == 2 { &[0b0100, 0b1110] } else { &[4, 8, 9, 12, 13, 14] };
        for (row, chunk) in (0..m).flat_map(|row| (0..k / p.chunk().0).map(move |chunk| (row, chunk))) {
            let code = codes[splitmix(random) as usize % codes.len()];
            put(&mut src[more..], p.place_of_metadata(row, chunk), 4, code);
        }
    }
    // Scales of 1/2 to 4, the same bytes in all lanes, of which the first are taken.
    let first_scale = more + usize::from(is_sparse);
    let exponents: [u64; 4] = std::array::from_fn(|_| splitmix(random) % 4);
    if let Some(scale) = p.scale {
        let byte = |e: u64| match scale.format {
            ScaleFormat::Ue8m0 => 126 + e,
            ScaleFormat::Ue4m3 => (6 + e) << 3,
        };
        let word = (0..4).fold(0, |w, i| w | byte(exponents[i]) << (8 * i));
        src[first_scale] = [word; 32];
        src[first_scale + 3] = [word; 32];
    }
    let ways = all_ways(p, &src);
    let (matrices, rest) = src.split_at(n_a + n_b);
    let (a, b) = matrices.split_at(n_a);
    let mut rounded = 0;
    for (row, column) in places() {
        let c = get(rest, Product::place_of_sum(p.c, row, column), p.c.bits());
        let pairs: Vec<(u64, u64, usize)> = depths(p, &rest[n_c..], row)
            .into_iter()
            .enumerate()
            .map(|(i, depth)| {
                let of_a = get(a, p.place_of_a(row, i), p.a.bits());
                (of_a, get(b, p.place_of_b(depth, column), p.b.bits()), i)
            })
            .collect();
        for way in &ways {
            let d = get(way, Product::place_of_sum(p.d, row, column), p.d.bits());
            let what = || format!("{p:?}: row {row}, column {column}");
            let Some((of_a, of_b)) = floats(p.a).zip(floats(p.b)) else {
                assert_eq!(d, whole(p, c, &pairs), "{}", what());
                continue;
            };
            let (of_c, of_d) = (sums(p.c).expect("a float"), sums(p.d).expect("a float"));
            let scale = scale_of(p);
            let by = |i: usize| p.scale.map_or(2, |s| 2 * exponents[i / (p.stored_depth() / usize::from(s.blocks))]);
            // Both scales of a block are `2^(e - 1)`, so that a product is that much larger.
            let term = |(x, y, i): &(u64, u64, usize)| {
                let half = scale / 2;
                (of_a.number(*x, half) * of_b.number(*y, half)) << by(*i) >> 2
            };
            let start = of_c.number(c, scale);
            let exact = pairs.iter().map(term).fold(start, |sum, term| sum + term);
            let sizes = pairs.iter().map(|pair| term(pair).abs()).fold(start.abs(), |sum, size| sum + size);
            let unit = 2f64.powi(scale as i32);
            let (exact_number, sizes) = (exact as f64 / unit, sizes as f64 / unit);
            if p.d == Accumulator::F16 && exact_number.abs() > 65000.0 {
                continue;
            }
            let precision = if p.d == Accumulator::F64 { 2f64.powi(-53) } else { 2f64.powi(-24) };
            let n = (pairs.len() + n_scales.min(1)) as f64;
            let at_the_end =
                if p.d == Accumulator::F16 { exact_number.abs() * 2f64.powi(-11) + 2f64.powi(-25) } else { 0.0 };
            let bound = n * precision * sizes * 1.001 + at_the_end * 1.001;
            let error = (of_d.number(d, scale) - exact) as f64 / unit;
            assert!(error.abs() <= bound, "{}: {error} from {exact_number}, and at most {bound}", what());
            rounded += usize::from(error != 0.0);
        }
    }
    rounded
}

/// [`check`] some times.
fn many(p: Product, random: &mut u64) -> usize {
    (0..20).map(|_| check(p, random)).sum()
}

/// The sum of integers, which is exact.
fn whole(p: Product, c: u64, pairs: &[(u64, u64, usize)]) -> u64 {
    let one = |(x, y, _): &(u64, u64, usize)| match p.step {
        Step::XorPopc => (x ^ y) as i64,
        Step::AndPopc => (x & y) as i64,
        Step::Add | Step::AddRounded(_) | Step::AddSaturating => integer(p.a, *x) * integer(p.b, *y),
    };
    let sum = pairs.iter().map(one).sum::<i64>() + i64::from(c as u32 as i32);
    let sum = if p.step == Step::AddSaturating { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
    u64::from(sum as u32)
}

fn dense(m: u8, k: u16, a: Element, b: Element, sum: Accumulator) -> Product {
    Product { m, k, a, b, c: sum, d: sum, step: Step::Add, sparse: None, scale: None }
}

#[test]
fn products_are_within_their_bound_of_exact_sums() {
    use Element::*;
    let mut random = 11;
    let small = [E4m3, E5m2, E3m2, E2m3, E2m1];
    let mut all: Vec<Product> = Vec::new();
    for sum in [Accumulator::F16, Accumulator::F32] {
        all.extend([8, 16].map(|k| dense(16, k, F16, F16, sum)));
        all.extend(small.iter().flat_map(|a| small.map(|b| dense(16, 32, *a, b, sum))));
    }
    all.extend([8, 16].map(|k| dense(16, k, Bf16, Bf16, Accumulator::F32)));
    all.extend([4, 8].map(|k| dense(16, k, Tf32, Tf32, Accumulator::F32)));
    all.extend([(8, 4), (16, 4), (16, 8), (16, 16)].map(|(m, k)| dense(m, k, F64, F64, Accumulator::F64)));
    for p in all.clone() {
        if p.a != F64 && (p.a.bits() != 16 || p.k == 16) && (p.a != Tf32 || p.k == 8) {
            let sparse = Some(Sparse { selector: 0 });
            all.push(Product { sparse, k: 2 * p.k, ..p });
        }
    }
    for p in all {
        let rounded = many(p, &mut random);
        // Sums of numbers of a few bits need no rounding, all others do.
        let has_few = [p.a, p.b].iter().all(|e| matches!(e, E3m2 | E2m3 | E2m1));
        assert!(rounded > 0 || has_few, "{p:?}");
    }
}

#[test]
fn products_with_scales_are_within_their_bound_of_exact_sums() {
    use Element::*;
    let mut random = 12;
    let kinds = [
        (E4m3, E5m2, 32, ScaleFormat::Ue8m0, 1),
        (E3m2, E2m3, 32, ScaleFormat::Ue8m0, 1),
        (E5m2, E2m1, 32, ScaleFormat::Ue8m0, 1),
        (E2m1Packed, E2m1Packed, 64, ScaleFormat::Ue8m0, 2),
        (E2m1Packed, E2m1Packed, 64, ScaleFormat::Ue4m3, 4),
    ];
    for (a, b, k, format, blocks) in kinds {
        for sparse in [None, Some(Sparse { selector: 0 })] {
            let k = if sparse.is_some() { 2 * k } else { k };
            let p = Product { sparse, scale: Some(Scale { format, blocks }), ..dense(16, k, a, b, Accumulator::F32) };
            many(p, &mut random);
        }
    }
}

#[test]
fn products_of_integers_are_exact() {
    use Element::*;
    let mut random = 13;
    for step in [Step::Add, Step::AddSaturating] {
        for (types, shapes) in [([U8, S8], [(8, 16), (16, 16), (16, 32)]), ([U4, S4], [(8, 32), (16, 32), (16, 64)])] {
            for (a, b) in types.into_iter().flat_map(|a| types.map(|b| (a, b))) {
                for (m, k) in shapes {
                    let p = Product { step, ..dense(m, k, a, b, Accumulator::S32) };
                    many(p, &mut random);
                    if m == 16 {
                        many(Product { sparse: Some(Sparse { selector: 0 }), k: 2 * k, ..p }, &mut random);
                    }
                }
            }
        }
    }
    for step in [Step::XorPopc, Step::AndPopc] {
        for (m, k) in [(8, 128), (16, 128), (16, 256)] {
            let p = Product { step, ..dense(m, k, B1, B1, Accumulator::S32) };
            many(p, &mut random);
        }
    }
}
