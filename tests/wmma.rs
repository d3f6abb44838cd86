//! `wmma` in all shapes, types, layouts and state spaces, with strides of their own and without, on all engines, against sums of the elements as the
//! manual lays them out in memory. Values are such that all sums are exact, whatever their order.

use std::fmt::Write;

use handloom_tests::matrix::{
    B1, BF16, Element, F16, F32, F64, S4, S8, S32, TF32, U4, U8, each_way, register_type, registers,
};
use handloom_tests::rng::Rng;

/// Multiplicands with the accumulators that go with them.
const TYPES: &[(Element, &[Element])] = &[
    (F16, &[F16, F32]),
    (BF16, &[F32]),
    (TF32, &[F32]),
    (F64, &[F64]),
    (S8, &[S32]),
    (U8, &[S32]),
    (S4, &[S32]),
    (U4, &[S32]),
    (B1, &[S32]),
];

fn shapes(e: &Element) -> &'static [(usize, usize, usize)] {
    match e.word {
        "tf32" => &[(16, 16, 8)],
        "f64" => &[(8, 8, 4)],
        "s4" | "u4" => &[(8, 8, 32)],
        "b1" => &[(8, 8, 128)],
        _ => &[(16, 16, 16), (8, 32, 16), (32, 8, 16)],
    }
}

/// A matrix in memory.
struct Matrix {
    rows: usize,
    columns: usize,
    by_rows: bool,
    /// Elements from a line to the next one.
    stride: usize,
    values: Vec<i64>,
}

impl Matrix {
    fn new(rng: &mut Rng, e: &Element, (rows, columns): (usize, usize), by_rows: bool, more: usize) -> Matrix {
        let values = (0..rows * columns).map(|_| e.pick(rng)).collect();
        Matrix { rows, columns, by_rows, stride: if by_rows { columns } else { rows } + more, values }
    }

    fn get(&self, row: usize, column: usize) -> i64 {
        self.values[row * self.columns + column]
    }

    /// The place of an element, counted in elements.
    fn place(&self, row: usize, column: usize) -> usize {
        if self.by_rows { row * self.stride + column } else { column * self.stride + row }
    }

    fn bytes(&self, e: &Element) -> Vec<u8> {
        let lines = if self.by_rows { self.rows } else { self.columns };
        let mut bytes = vec![0xa5; (lines * self.stride * e.bits).div_ceil(8)];
        for row in 0..self.rows {
            for column in 0..self.columns {
                e.put(&mut bytes, self.place(row, column) * e.bits, self.get(row, column));
            }
        }
        bytes
    }
}

fn n_multiplicand(e: &Element, elements: usize) -> usize {
    if e.word == "f16" { 8 } else { elements * e.bits / e.bits.max(32) / 32 }
}

fn n_accumulator(e: &Element, elements: usize) -> usize {
    elements * e.bits / e.bits.max(32) / 32
}

/// Where matrices lie, and whether strides are written.
#[derive(Clone, Copy)]
struct Where {
    space: &'static str,
    more: usize,
}

const WHERE: &[Where] =
    &[Where { space: ".global", more: 0 }, Where { space: "", more: 32 }, Where { space: ".shared", more: 32 }];

/// Bytes of a matrix in shared memory.
const ROOM: usize = 8192;

struct Case<'t> {
    e: &'t Element,
    c: &'t Element,
    d: &'t Element,
    shape: (usize, usize, usize),
    /// Of `a`, `b`, `c` and `d`: by rows.
    by_rows: [bool; 4],
    place: Where,
    how: &'t str,
}

fn check(case: &Case<'_>, rng: &mut Rng) {
    let Case { e, c: ec, d: ed, shape: (m, n, k), by_rows, place, how } = *case;
    let Where { space, more } = place;
    let sizes = [(m, k), (k, n), (m, n), (m, n)];
    let elements = [e, e, ec, ed];
    let matrices: Vec<Matrix> = (0..4).map(|i| Matrix::new(rng, elements[i], sizes[i], by_rows[i], more)).collect();
    let [a, b, c, d] = &matrices[..] else { unreachable!() };
    let layout = |m: &Matrix| if m.by_rows { "row" } else { "col" };
    let shape = format!("m{m}n{n}k{k}");
    let stride = |m: &Matrix| if more == 0 { String::new() } else { format!(", {}", m.stride) };
    let counts =
        [n_multiplicand(e, m * k), n_multiplicand(e, k * n), n_accumulator(ec, m * n), n_accumulator(ed, m * n)];
    let lists: Vec<String> = ["a", "b", "c", "d"].iter().zip(counts).map(|(w, n)| registers(w, n)).collect();
    let mut text = format!(
        ".version 7.1\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd)\n{{\n\
         .reg .b64 %p<4>, %q, %s, %z<4>;\n.reg .b32 %i, %v;\n.reg .pred %g;\n.shared .align 32 .b8 tile[{}];\n",
        4 * ROOM
    );
    for (i, w) in ["a", "b", "c", "d"].iter().enumerate() {
        let _ =
            writeln!(text, ".reg .{} %{w}<{}>;\nld.param.u64 %p{i}, [p{w}];", register_type(elements[i]), counts[i]);
    }
    let bytes: Vec<Vec<u8>> = matrices.iter().zip(elements).map(|(m, e)| m.bytes(e)).collect();
    if space == ".shared" {
        // Word by word, by the first lane.
        for (i, bytes) in bytes.iter().enumerate() {
            assert!(bytes.len() <= ROOM && bytes.len().is_multiple_of(4));
            let _ = writeln!(
                text,
                "mov.u64 %s, tile;\nadd.u64 %s, %s, {};\nmov.u64 %z{i}, %s;\nmov.u64 %q, %p{i};\nmov.u32 %i, 0;\n\
                 L{i}:\nld.global.b32 %v, [%q];\nst.shared.b32 [%s], %v;\nadd.u64 %q, %q, 4;\nadd.u64 %s, %s, 4;\n\
                 add.u32 %i, %i, 4;\nsetp.lt.u32 %g, %i, {};\n@%g bra L{i};",
                i * ROOM,
                bytes.len()
            );
        }
        text += "bar.warp.sync 0xffffffff;\n";
    } else {
        (0..4).for_each(|i| {
            let _ = writeln!(text, "mov.u64 %z{i}, %p{i};");
        });
    }
    for (i, w) in ["a", "b", "c"].iter().enumerate() {
        let (l, t, s) = (layout(&matrices[i]), elements[i].word, stride(&matrices[i]));
        let _ = writeln!(text, "wmma.load.{w}.sync.aligned.{l}.{shape}{space}.{t} {}, [%z{i}]{s};", lists[i]);
    }
    let types = match e.word {
        "f16" => format!("{}.{}", ed.word, ec.word),
        w => format!("{}.{w}.{w}.{}", ed.word, ec.word),
    };
    let (op, tail) = if e.word == "b1" { (how, "") } else { ("", how) };
    let _ = writeln!(
        text,
        "wmma.mma{op}.sync.aligned.{}.{}.{shape}.{types}{tail} {}, {}, {}, {};",
        layout(a),
        layout(b),
        lists[3],
        lists[0],
        lists[1],
        lists[2]
    );
    let _ = writeln!(
        text,
        "wmma.store.d.sync.aligned.{}.{shape}{space}.{} [%z3], {}{};",
        layout(d),
        ed.word,
        lists[3],
        stride(d)
    );
    if space == ".shared" {
        let _ = writeln!(
            text,
            "bar.warp.sync 0xffffffff;\nmov.u64 %s, %z3;\nmov.u64 %q, %p3;\nmov.u32 %i, 0;\nL4:\nld.shared.b32 %v, [%s];\n\
             st.global.b32 [%q], %v;\nadd.u64 %q, %q, 4;\nadd.u64 %s, %s, 4;\nadd.u32 %i, %i, 4;\n\
             setp.lt.u32 %g, %i, {};\n@%g bra L4;",
            bytes[3].len()
        );
    }
    text += "ret;\n}\n";
    let mut want = Matrix { values: vec![0; m * n], ..Matrix::new(rng, ed, (m, n), d.by_rows, more) };
    for row in 0..m {
        for column in 0..n {
            let products = (0..k).map(|x| match how {
                ".xor.popc" => a.get(row, x) ^ b.get(x, column),
                ".and.popc" => a.get(row, x) & b.get(x, column),
                _ => a.get(row, x) * b.get(x, column),
            });
            want.values[row * n + column] = products.sum::<i64>() + c.get(row, column);
        }
    }
    let want = want.bytes(ed);
    each_way(&text, 32, bytes, |buffers| {
        let at = buffers[3].iter().zip(&want).position(|(got, want)| got != want);
        at.map_or(Ok(()), |at| Err(format!("byte {at} of `d` differs")))
    });
}

/// Each type in each of its shapes; layouts and places change from case to case, so that each comes with each.
fn all(is_wanted: impl Fn(&Element) -> bool) {
    let mut rng = Rng::new(5);
    let mut turn = 0;
    for (e, accumulators) in TYPES.iter().filter(|(e, _)| is_wanted(e)) {
        let hows: &[&str] = match e.word {
            "b1" => &[".xor.popc", ".and.popc"],
            "s8" | "u8" | "s4" | "u4" => &["", ".satfinite"],
            "f64" => &["", ".rn"],
            _ => &[""],
        };
        for shape in shapes(e) {
            for (c, d) in accumulators.iter().flat_map(|c| accumulators.iter().map(move |d| (c, d))) {
                for layouts in 0..16 {
                    let by_rows = [0, 1, 2, 3].map(|i| layouts >> i & 1 == 1);
                    // Elements that are no bytes lie in rows of `a` and columns of `b`.
                    if e.bits < 8 && (!by_rows[0] || by_rows[1]) {
                        continue;
                    }
                    turn += 1;
                    let (place, how) = (WHERE[turn % WHERE.len()], hows[turn / 2 % hows.len()]);
                    check(&Case { e, c, d, shape: *shape, by_rows, place, how }, &mut rng);
                }
            }
        }
    }
}

#[test]
fn products_of_floats() {
    all(|e| ["f16", "bf16", "tf32", "f64"].contains(&e.word));
}

#[test]
fn products_of_integers_and_bits() {
    all(|e| ["s8", "u8", "s4", "u4", "b1"].contains(&e.word));
}

/// `.satfinite` keeps sums within 32 bits; without it they wrap.
#[test]
fn sums_of_integers_saturate_where_that_is_asked_for() {
    for (how, c, want) in [
        (".satfinite", i32::MAX, i32::MAX),
        ("", i32::MAX, i32::MAX.wrapping_add(16 * 127 * 127)),
        (".satfinite", i32::MIN, i32::MIN + 16 * 127 * 127),
    ] {
        let text = format!(
            ".version 7.1\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 pd)\n{{\n.reg .b64 %p;\n.reg .b32 %a, %c;\n\
             .reg .s32 %d<8>;\nld.param.u64 %p, [pd];\nmov.b32 %a, 0x7f7f7f7f;\nmov.b32 %c, {c};\n\
             wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32{how} {}, {{%a, %a}}, {{%a, %a}}, {{%c, %c, %c, %c, %c, %c, %c, %c}};\n\
             wmma.store.d.sync.aligned.row.m16n16k16.global.s32 [%p], {};\nret;\n}}\n",
            registers("d", 8),
            registers("d", 8)
        );
        run_words(&text, 1024, |bytes| {
            bytes.chunks_exact(4).all(|w| i32::from_le_bytes([w[0], w[1], w[2], w[3]]) == want)
        });
    }
}

/// A sum that lies between two numbers of `.f64` goes where the rounding says.
#[test]
fn sums_of_doubles_round_as_asked() {
    let (one, below, above) = (1.0_f64, 1.0_f64.next_down(), 1.0_f64.next_up());
    let tiny = 2.0_f64.powi(-80);
    // 1, and a product of 2^-80 or of its negative.
    for (round, sign, want) in [
        (".rn", 1.0, one),
        (".rz", 1.0, one),
        (".rm", 1.0, one),
        (".rp", 1.0, above),
        (".rn", -1.0, one),
        (".rz", -1.0, below),
        (".rm", -1.0, below),
        (".rp", -1.0, one),
    ] {
        let text = format!(
            ".version 7.1\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 pd)\n{{\n.reg .b64 %p;\n.reg .b32 %l;\n.reg .pred %g;\n\
             .reg .f64 %a, %b, %c, %d<2>;\nld.param.u64 %p, [pd];\nmov.u32 %l, %laneid;\nand.b32 %l, %l, 3;\nsetp.eq.u32 %g, %l, 0;\n\
             selp.f64 %a, 0d{:016x}, 0d0000000000000000, %g;\nmov.f64 %b, 0d{:016x};\nmov.f64 %c, 0d3ff0000000000000;\n\
             wmma.mma.sync.aligned.row.col.m8n8k4{round}.f64.f64.f64.f64 {{%d0, %d1}}, {{%a}}, {{%b}}, {{%c, %c}};\n\
             wmma.store.d.sync.aligned.row.m8n8k4.global.f64 [%p], {{%d0, %d1}};\nret;\n}}\n",
            (sign * tiny).to_bits(),
            1.0_f64.to_bits()
        );
        run_words(&text, 512, |bytes| {
            bytes.as_chunks::<8>().0.iter().all(|w| f64::from_le_bytes(*w).to_bits() == want.to_bits())
        });
    }
}

fn run_words(text: &str, bytes: usize, is_right: impl Fn(&[u8]) -> bool) {
    each_way(
        text,
        32,
        vec![vec![0; bytes]],
        |buffers| {
            if is_right(&buffers[0]) { Ok(()) } else { Err("a word differs".into()) }
        },
    );
}
