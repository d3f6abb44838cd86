//! `wgmma.mma_async`: all types and widths, both places of `a`, all swizzling modes, both ways that matrices lie, scales and sparse matrices, on all
//! engines, against sums of the elements. Where elements lie in shared memory is computed as the manual writes canonical layouts, in the notation
//! of its tables. All sums are exact. [`tcgen05`] has the products of tensor memory.

#[path = "wgmma/tcgen05.rs"]
mod tcgen05;

use std::fmt::Write;

use handloom_tests::matrix::{
    B1, BF16, E4M3, E5M2, Element, F16, F32, S8, S32, TF32, U8, each_way, register_type, registers,
};
use handloom_tests::rng::Rng;

/// A matrix in shared memory: `line`s of bytes, eight of them and 1, 2, 4 or 8 units of 16 bytes an atom.
#[derive(Clone, Copy)]
struct Layout {
    /// Lines go along the depth.
    is_k_major: bool,
    /// Swizzling mode as descriptors have it.
    mode: u32,
    leading: usize,
    stride: usize,
}

impl Layout {
    /// Strides for a matrix of so many lines of so many units, with room between what must not follow each other. Returns its bytes too.
    fn new(is_k_major: bool, mode: u32, lines: usize, units: usize) -> (Layout, usize) {
        let width = [1, 8, 4, 2][mode as usize];
        let (eights, groups) = (lines.div_ceil(8), units.div_ceil(width));
        // Without swizzling atoms may lie anywhere.
        let atom = 128 * width + if mode == 0 { 16 } else { 0 };
        let (along_lines, along_units) = (atom * groups, atom);
        let (leading, stride) = match (is_k_major, mode) {
            (true, 0) => (along_units, along_lines),
            (true, _) => (0x10, along_lines),
            (false, 0) => (along_lines, along_units),
            (false, _) => (along_units, along_lines),
        };
        (Layout { is_k_major, mode, leading, stride }, eights * along_lines)
    }

    /// Where the byte of an element lies that is `mn` rows or columns and `k` bits deep, counted from the start.
    fn place(&self, e: &Element, mn: usize, k: usize) -> usize {
        let units = [1, 8, 4, 2][self.mode as usize];
        // `T` elements are 16 bytes; digits are sizes and strides, in bytes here.
        let t = 128 / e.bits;
        let (l, s) = (self.leading, self.stride);
        let digits = |mut n: usize, list: &[(usize, usize)]| {
            list.iter().fold(0, |sum, (size, stride)| {
                let digit = n % size;
                n /= size;
                sum + digit * stride
            })
        };
        let far = usize::MAX;
        let element = e.bits / 8;
        let straight = match (self.is_k_major, self.mode) {
            (true, 0) => digits(mn, &[(8, 16), (far, s)]) + digits(k / 8, &[(16, 1), (far, l)]),
            (true, _) => digits(mn, &[(8, 16 * units), (far, s)]) + digits(k / 8, &[(16, 1), (far, 16)]),
            (false, 0) => digits(mn, &[(t, element), (far, s)]) + digits(k / e.bits, &[(8, 16), (far, l)]),
            (false, _) => {
                digits(mn, &[(t, element), (units, 16), (far, l)]) + digits(k / e.bits, &[(8, 16 * units), (far, s)])
            }
        };
        straight ^ (straight & (units - 1) << 7) >> 3
    }

    /// The descriptor without the address.
    fn descriptor(&self) -> u64 {
        (self.leading as u64 >> 4) << 16 | (self.stride as u64 >> 4) << 32 | u64::from(self.mode) << 62
    }
}

#[derive(Clone, Copy)]
struct Case {
    a: Element,
    b: Element,
    d: Element,
    n: usize,
    /// Of `a`, if it is in shared memory, and `b`.
    modes: [u32; 2],
    k_major: [bool; 2],
    in_registers: bool,
    is_sparse: bool,
    selector: usize,
    signs: [i64; 2],
    /// What `scale-d` is.
    keeps: bool,
    saturates: bool,
}

/// Indices of a chunk, two bits each, and the distances that they say, by bits of an element.
fn patterns(bits: usize) -> &'static [(u32, &'static [usize])] {
    match bits {
        32 => &[(0b0100, &[0]), (0b1110, &[1])],
        _ => &[
            (0b0100, &[0, 1]),
            (0b1000, &[0, 2]),
            (0b1100, &[0, 3]),
            (0b1001, &[1, 2]),
            (0b1101, &[1, 3]),
            (0b1110, &[2, 3]),
        ],
    }
}

/// Elements of a row of `a` that are there, with their depths, and the metadata of the warpgroup.
fn depths(case: &Case, k: usize, rng: &mut Rng) -> (Vec<Vec<usize>>, Vec<u32>) {
    let mut metadata: Vec<u32> = (0..128).map(|_| rng.next() as u32).collect();
    if !case.is_sparse {
        return (vec![(0..k).collect(); 64], metadata);
    }
    let patterns = patterns(case.a.bits);
    let chunk = if case.a.bits == 32 { 2 } else { 4 };
    let mut all = Vec::new();
    for row in 0..64 {
        let mut depths = Vec::new();
        for c in 0..k / chunk {
            let (bits, places) = *rng.pick(patterns);
            depths.extend(places.iter().map(|p| chunk * c + p));
            let (g, h) = (row % 8, row / 8 % 2);
            // 16 and 32 bits: a lane has four chunks of both rows. 8 bits: eight chunks of one of them.
            let (t, at) = if case.a.bits > 8 {
                (2 * case.selector + c / 4, 16 * h + 4 * (c % 4))
            } else {
                (2 * (c / 8) + h, 4 * (c % 8))
            };
            let word = &mut metadata[32 * (row / 16) + 4 * g + t];
            *word = *word & !(0xf << at) | bits << at;
        }
        all.push(depths);
    }
    (all, metadata)
}

fn words(bytes: &[u32]) -> Vec<u8> {
    bytes.iter().flat_map(|w| w.to_le_bytes()).collect()
}

fn check(case: &Case, rng: &mut Rng) {
    let Case { a: ea, b: eb, d: ed, n, .. } = *case;
    let k = 256 / ea.bits * if case.is_sparse { 2 } else { 1 };
    let stored = 256 / ea.bits;
    let (depths, metadata) = depths(case, k, rng);
    let matrix = |rng: &mut Rng, e: &Element, rows: usize, columns: usize| -> Vec<Vec<i64>> {
        (0..rows).map(|_| (0..columns).map(|_| e.pick(rng)).collect()).collect()
    };
    let (a, b) = (matrix(rng, &ea, 64, stored), matrix(rng, &eb, n, k));
    let c = matrix(rng, &Element { range: ed.range, ..ed }, 64, n);
    // `a`, then `b`, which begins at a boundary of patterns.
    let lay_out = |k_major: bool, mode: u32, mn: usize, k: usize, e: &Element| {
        let (lines, units) = if k_major { (mn, (k * e.bits).div_ceil(128)) } else { (k, (mn * e.bits).div_ceil(128)) };
        Layout::new(k_major, mode, lines, units)
    };
    let (la, size_a) = lay_out(case.k_major[0], case.modes[0], 64, stored, &ea);
    let (lb, size_b) = lay_out(case.k_major[1], case.modes[1], n, k, &eb);
    let at_b = size_a.next_multiple_of(1024);
    let mut image = vec![0xa5; (at_b + size_b).next_multiple_of(4)];
    let bit = |e: &Element, place: usize, k: usize| 8 * place + if e.bits < 8 { k * e.bits % 8 } else { 0 };
    if !case.in_registers {
        for (mn, k) in (0..64).flat_map(|mn| (0..stored).map(move |k| (mn, k))) {
            ea.put(&mut image, bit(&ea, la.place(&ea, mn, k * ea.bits), k), a[mn][k]);
        }
    }
    for (mn, k) in (0..n).flat_map(|mn| (0..k).map(move |k| (mn, k))) {
        eb.put(&mut image, bit(&eb, at_b + lb.place(&eb, mn, k * eb.bits), k), b[mn][k]);
    }
    // Registers: four of `a`, and those of the accumulator, by register and thread.
    let mut registers_of_a = vec![0; 4 * 512];
    for (row, k) in (0..64).flat_map(|row| (0..stored).map(move |k| (row, k))) {
        let per = 32 / ea.bits;
        let (chunk, e) = (k / per, k % per);
        let (thread, register) = (32 * (row / 16) + 4 * (row % 8) + chunk % 4, 2 * (chunk / 4) + row / 8 % 2);
        ea.put(&mut registers_of_a, 32 * (128 * register + thread) + e * ea.bits, a[row][k]);
    }
    let n_d = n * ed.bits / 64;
    let put_accumulator = |values: &dyn Fn(usize, usize) -> i64| {
        let mut bytes = vec![0; 512 * n_d];
        for (row, column) in (0..64).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let thread = 32 * (row / 16) + 4 * (row % 8) + column % 8 / 2;
            let i = 4 * (column / 8) + 2 * (row / 8 % 2) + column % 2;
            let per = 32 / ed.bits;
            ed.put(&mut bytes, 32 * (128 * (i / per) + thread) + i % per * ed.bits, values(row, column));
        }
        bytes
    };
    let start = put_accumulator(&|row, column| c[row][column]);
    let sign = case.signs[0] * case.signs[1];
    let want = put_accumulator(&|row, column| {
        let products = depths[row].iter().zip(&a[row]).map(|(depth, a)| {
            let b = b[column][*depth];
            if ea.word == "b1" { a & b } else { sign * a * b }
        });
        let sum = products.sum::<i64>() + if case.keeps { c[row][column] } else { 0 };
        if case.saturates { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum }
    });
    let text = kernel(case, &la, &lb, k, at_b, image.len(), n_d);
    let buffers = vec![image, registers_of_a, words(&metadata), start, vec![0; want.len()]];
    each_way(&text, 128, buffers, |buffers| {
        let at = buffers[4].iter().zip(&want).position(|(got, want)| got != want);
        at.map_or(Ok(()), |at| Err(format!("byte {at} of `d` differs")))
    });
}

fn kernel(case: &Case, la: &Layout, lb: &Layout, k: usize, at_b: usize, size: usize, n_d: usize) -> String {
    let Case { a: ea, b: eb, d: ed, n, .. } = *case;
    let mut text = format!(
        ".version 8.4\n.target sm_90a\n.address_size 64\n\
         .visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3, .param .u64 p4)\n{{\n\
         .reg .b64 %p<5>, %at, %da, %db, %m;\n.reg .b32 %t, %i, %v, %s, %a<4>, %e;\n.reg .{} %d<{n_d}>;\n.reg .pred %g, %keeps;\n\
         .shared .align 1024 .b8 tile[{size}];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %at, %t, 4;\n",
        register_type(&ed)
    );
    for i in 0..5 {
        let _ = writeln!(text, "ld.param.u64 %p{i}, [p{i}];\nadd.u64 %p{i}, %p{i}, %at;");
    }
    // Shared memory, by all threads.
    let _ = write!(
        text,
        "mov.u32 %s, tile;\nshl.b32 %i, %t, 2;\nL0:\nsetp.ge.u32 %g, %i, {size};\n@%g bra L1;\nld.global.b32 %v, [%p0];\n\
         add.u32 %e, %s, %i;\nst.shared.b32 [%e], %v;\nadd.u64 %p0, %p0, 512;\nadd.u32 %i, %i, 512;\nbra L0;\nL1:\nbar.sync 0;\n"
    );
    for i in 0..4 {
        let _ = writeln!(text, "ld.global.b32 %a{i}, [%p1+{}];", 512 * i);
    }
    let _ = writeln!(text, "ld.global.b32 %e, [%p2];");
    for i in 0..n_d {
        let _ = writeln!(text, "ld.global.{} %d{i}, [%p3+{}];", register_type(&ed), 512 * i);
    }
    for (name, layout, at) in [("%da", la, 0), ("%db", lb, at_b)] {
        let _ = writeln!(
            text,
            "add.u32 %v, %s, {at};\nshr.u32 %v, %v, 4;\ncvt.u64.u32 %m, %v;\nor.b64 {name}, %m, {:#x};",
            layout.descriptor()
        );
    }
    let _ = writeln!(text, "setp.eq.u32 %keeps, %t, {};", if case.keeps { "%t" } else { "0xffffffff" });
    let (op, tail) = match (case.is_sparse, ea.word) {
        (true, _) => (".sp", ""),
        (false, "b1") => ("", ".and.popc"),
        _ => ("", ""),
    };
    let mut operands =
        vec![registers("d", n_d), if case.in_registers { registers("a", 4) } else { "%da".into() }, "%db".into()];
    if case.is_sparse {
        operands.extend(["%e".into(), case.selector.to_string()]);
    }
    operands.push("%keeps".into());
    if ed.word != "s32" {
        operands.extend(case.signs.map(|s| s.to_string()));
    }
    if matches!(ea.word, "f16" | "bf16") {
        let trans = case.k_major.map(|k_major| u32::from(!k_major).to_string());
        operands.extend(trans.into_iter().skip(usize::from(case.in_registers)));
    }
    let _ = writeln!(
        text,
        "wgmma.fence.sync.aligned;\nwgmma.mma_async{op}.sync.aligned.m64n{n}k{k}{}.{}.{}.{}{tail} {};\n\
         wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;",
        if case.saturates { ".satfinite" } else { "" },
        ed.word,
        ea.word,
        eb.word,
        operands.join(", ")
    );
    for i in 0..n_d {
        let _ = writeln!(text, "st.global.{} [%p4+{}], %d{i};", register_type(&ed), 512 * i);
    }
    text + "ret;\n}\n"
}

/// Small numbers, whose sums fit an `.f16`.
fn small(e: Element) -> Element {
    Element { range: (-3, 3), ..e }
}

/// All types; widths, modes, layouts, signs and the place of `a` change from case to case.
fn all(is_sparse: bool) {
    let f16 = Element { range: (-64, 64), ..F16 };
    let types: &[(Element, Element, Element)] = &[
        (F16, F16, F32),
        (small(F16), small(F16), f16),
        (BF16, BF16, F32),
        (TF32, TF32, F32),
        (E4M3, E5M2, F32),
        (small(E5M2), small(E4M3), f16),
        (S8, U8, S32),
        (U8, S8, S32),
        (B1, B1, S32),
    ];
    let mut rng = Rng::new(u64::from(is_sparse) + 7);
    let mut turn = 0_usize;
    for &(a, b, d) in types.iter().filter(|t| !is_sparse || t.0.word != "b1") {
        let has_trans = matches!(a.word, "f16" | "bf16");
        for round in 0..if has_trans { 7 } else { 4 } {
            turn += 1;
            // Most are narrow, so that the test is quick.
            let n = match turn {
                3 => 256,
                21 => 128,
                _ => [8, 24, 16, 32, 8, 64, 16, 24][(turn * 3 + round) % 8],
            };
            let is_major = |bit: usize| !has_trans || round >> bit & 1 == 0;
            let in_registers = turn % 3 == 1;
            // Deeper lines than an atom has are another matter.
            let mode = |n: usize| if is_sparse { [0, 1, 2][n % 3] } else { (n % 4) as u32 };
            check(
                &Case {
                    a,
                    b,
                    d,
                    n,
                    modes: [mode(turn), mode(turn / 2 + round)],
                    k_major: [in_registers || is_major(0), is_major(1)],
                    in_registers,
                    is_sparse,
                    selector: if a.bits > 8 { turn % 2 } else { 0 },
                    signs: if d.word == "s32" { [1, 1] } else { [[1, 1], [-1, 1], [1, -1], [-1, -1]][turn % 4] },
                    keeps: turn % 5 != 2,
                    saturates: d.word == "s32" && a.bits == 8 && turn.is_multiple_of(2),
                },
                &mut rng,
            );
        }
    }
}

#[test]
fn dense_products() {
    all(false);
}

#[test]
fn sparse_products() {
    all(true);
}
