//! Products of `mma` that follow each other: which of them share matrices, which need results of others, and what is computed between them changes by
//! seed. On all engines, against sums of the elements, which are exact.

use std::fmt::Write;

use handloom_tests::matrix::{BF16, Element, F16, F32, S8, S32, U8, each_way, register_type, registers};
use handloom_tests::rng::Rng;

/// Matrices of each kind.
const N: usize = 3;
/// Statements of a kernel.
const STATEMENTS: usize = 14;
/// Rows of `a`; and columns of `b`.
const ROWS: usize = 16;
const COLUMNS: usize = 8;

/// What a kernel does next.
enum Statement {
    /// Sums `d` are `a * b` and the sums `c`.
    Product { a: usize, b: usize, c: usize, d: usize },
    /// A matrix `a` becomes another one.
    Copy { from: usize, to: usize },
    /// One is added to the first sum of each lane.
    Add { d: usize },
}

fn statement(rng: &mut Rng) -> Statement {
    let mut one = || rng.below(N);
    let (a, b, c, d) = (one(), one(), one(), one());
    match rng.below(8) {
        0 => Statement::Copy { from: a, to: b },
        1 => Statement::Add { d },
        // Mostly sums stay where they are.
        2 => Statement::Product { a, b, c, d },
        _ => Statement::Product { a, b, c: d, d },
    }
}

type Matrix = Vec<Vec<i64>>;

/// Words of fragments, register by register, of the matrices of a kind. `place` has register, lane and number in the register of an element.
fn fragments(
    e: &Element,
    all: &[Matrix],
    n_registers: usize,
    place: impl Fn(usize, usize) -> (usize, usize, usize),
) -> Vec<u8> {
    let mut bytes = vec![0; 128 * n_registers * all.len()];
    for (i, matrix) in all.iter().enumerate() {
        for (row, values) in matrix.iter().enumerate() {
            for (column, value) in values.iter().enumerate() {
                let (register, lane, at) = place(row, column);
                e.put(&mut bytes, 32 * (32 * (n_registers * i + register) + lane) + at * e.bits, *value);
            }
        }
    }
    bytes
}

fn place_of_sum(row: usize, column: usize) -> (usize, usize, usize) {
    (2 * (row / 8) + column % 2, 4 * (row % 8) + column / 2, 0)
}

fn check(ea: Element, eb: Element, ed: Element, rng: &mut Rng) {
    let (k, per) = (256 / ea.bits, 32 / ea.bits);
    let matrix = |rng: &mut Rng, e: &Element, rows: usize, columns: usize| -> Matrix {
        (0..rows).map(|_| (0..columns).map(|_| e.pick(rng)).collect()).collect()
    };
    let mut a: Vec<Matrix> = (0..N).map(|_| matrix(rng, &ea, ROWS, k)).collect();
    let b: Vec<Matrix> = (0..N).map(|_| matrix(rng, &eb, k, COLUMNS)).collect();
    let mut d: Vec<Matrix> = (0..N).map(|_| matrix(rng, &ed, ROWS, COLUMNS)).collect();
    let place_of_a = |row: usize, k: usize| (2 * (k / per / 4) + row / 8, 4 * (row % 8) + k / per % 4, k % per);
    let place_of_b = |k: usize, column: usize| (k / per / 4, 4 * column + k / per % 4, k % per);
    let buffers = vec![
        fragments(&ea, &a, 4, place_of_a),
        fragments(&eb, &b, 2, place_of_b),
        fragments(&ed, &d, 4, place_of_sum),
        vec![0; 512 * N],
    ];
    let ty = register_type(&ed);
    let mut text = String::from(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)\n{\n\
         .reg .b64 %p<4>, %at;\n.reg .b32 %t;\nmov.u32 %t, %tid.x;\nmul.wide.u32 %at, %t, 4;\n",
    );
    for (i, (name, n, ty)) in [("a", 4, "b32"), ("b", 2, "b32"), ("d", 4, ty)].into_iter().enumerate() {
        let _ = writeln!(text, "ld.param.u64 %p{i}, [p{i}];\nadd.u64 %p{i}, %p{i}, %at;");
        for m in 0..N {
            let _ = writeln!(text, ".reg .{ty} %{name}{m}_<{n}>;");
            for r in 0..n {
                let _ = writeln!(text, "ld.global.{ty} %{name}{m}_{r}, [%p{i}+{}];", 128 * (n * m + r));
            }
        }
    }
    let fragment = |name: &str, m: usize, n: usize| registers(&format!("{name}{m}_"), n);
    for _ in 0..STATEMENTS {
        match statement(rng) {
            Statement::Product { a: of_a, b: of_b, c, d: to } => {
                let (a, b) = (&a[of_a], &b[of_b]);
                let sum = |row: usize, column: usize| (0..k).map(|k| a[row][k] * b[k][column]).sum::<i64>();
                let c_of = d[c].clone();
                d[to] = (0..ROWS)
                    .map(|row| (0..COLUMNS).map(|column| c_of[row][column] + sum(row, column)).collect())
                    .collect();
                let _ = writeln!(
                    text,
                    "mma.sync.aligned.m16n8k{k}.row.col.{}.{}.{}.{} {}, {}, {}, {};",
                    ed.word,
                    ea.word,
                    eb.word,
                    ed.word,
                    fragment("d", to, 4),
                    fragment("a", of_a, 4),
                    fragment("b", of_b, 2),
                    fragment("d", c, 4)
                );
            }
            Statement::Copy { from, to } => {
                a[to] = a[from].clone();
                (0..4).for_each(|r| _ = writeln!(text, "mov.b32 %a{to}_{r}, %a{from}_{r};"));
            }
            Statement::Add { d: to } => {
                d[to][..8].iter_mut().for_each(|row| row.iter_mut().step_by(2).for_each(|sum| *sum += 1));
                let one = if ty == "f32" { "0f3F800000" } else { "1" };
                let _ = writeln!(text, "add.{ty} %d{to}_0, %d{to}_0, {one};");
            }
        }
    }
    let _ = writeln!(text, "ld.param.u64 %p3, [p3];\nadd.u64 %p3, %p3, %at;");
    for (m, r) in (0..N).flat_map(|m| (0..4).map(move |r| (m, r))) {
        let _ = writeln!(text, "st.global.{ty} [%p3+{}], %d{m}_{r};", 128 * (4 * m + r));
    }
    text += "ret;\n}\n";
    let want = fragments(&ed, &d, 4, place_of_sum);
    each_way(&text, 32, buffers, |buffers| {
        let at = buffers[3].iter().zip(&want).position(|(got, want)| got != want);
        at.map_or(Ok(()), |at| Err(format!("byte {at} of the sums differs")))
    });
}

#[test]
fn products_that_follow_each_other() {
    let mut rng = Rng::new(11);
    for _ in 0..12 {
        check(F16, F16, F32, &mut rng);
        check(BF16, BF16, F32, &mut rng);
        check(S8, U8, S32, &mut rng);
        check(S8, S8, S32, &mut rng);
    }
}
