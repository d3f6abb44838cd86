//! `tcgen05.mma`: all kinds, shapes and layouts, one CTA and pairs, sparse and scaled matrices, matrices in tensor memory, on all engines, against sums
//! of the elements. Each test writes all tensor memory that takes part, and compares every cell of every lane afterwards. Places in shared memory are those
//! of `super::Layout`; places in tensor memory are computed here, from the layouts by their letters. All sums are exact.

use std::fmt::Write;

use handloom_runtime::Bounds;
use handloom_tests::engines::{Argument, Job, Launch, plain};
use handloom_tests::matrix::{BF16, E4M3, E5M2, Element, F16, F32, S8, S32, TF32, U8, registers};
use handloom_tests::rng::Rng;

use super::Layout;

/// The bits of a small whole number in a format of few bits.
fn small_float(v: i64, fraction: u32, bias: u32, sign: u32) -> u64 {
    let magnitude = v.unsigned_abs();
    let exponent = magnitude.checked_ilog2();
    let code =
        exponent.map_or(0, |e| u64::from(e + bias) << fraction | (magnitude << fraction >> e) & ((1 << fraction) - 1));
    code | u64::from(v < 0) << sign
}

const E2M1: Element = Element { word: "e2m1", bits: 4, of: |v| small_float(v, 1, 1, 3), range: (-4, 4) };
const E3M2: Element = Element { word: "e3m2", bits: 6, of: |v| small_float(v, 2, 3, 5), range: (-7, 7) };
const E2M3: Element = Element { word: "e2m3", bits: 6, of: |v| small_float(v, 3, 1, 5), range: (-7, 7) };

#[derive(Clone, Copy, Debug)]
struct Case {
    kind: &'static str,
    a: Element,
    b: Element,
    d: Element,
    m: usize,
    n: usize,
    pair: bool,
    ws: bool,
    sparse: bool,
    a_in_tensor: bool,
    shifts_a: bool,
    /// Scales of a row, and whether they are `.ue8m0`.
    scales: Option<(usize, bool)>,
    /// Byte of the column where the scales of a line begin, of `a` and `b`.
    scale_bytes: [usize; 2],
    /// Modes of `super::Layout`, and 4 for 128 bytes by pairs of units.
    modes: [u32; 2],
    k_major: [bool; 2],
    negates: [bool; 2],
    adds: bool,
    scale_d: u32,
    masked: bool,
    saturates: bool,
    selector: usize,
    /// First lane, of layouts that use half of them.
    lane: usize,
    /// Zero-column mask descriptor.
    zeros: Option<u64>,
    collector: &'static str,
}

const PLAIN: Case = Case {
    kind: "f16",
    a: F16,
    b: F16,
    d: F32,
    m: 128,
    n: 16,
    pair: false,
    ws: false,
    sparse: false,
    a_in_tensor: false,
    shifts_a: false,
    scales: None,
    scale_bytes: [0; 2],
    modes: [0; 2],
    k_major: [true; 2],
    negates: [false; 2],
    adds: true,
    scale_d: 0,
    masked: false,
    saturates: false,
    selector: 0,
    lane: 0,
    zeros: None,
    collector: "",
};

/// A matrix in shared memory.
struct Matrix {
    layout: Layout,
    by_pairs: bool,
    bytes: usize,
    /// The element, with the bits that places are counted in.
    e: Element,
    container: usize,
}

impl Matrix {
    /// `bits`: of an element in tensor memory.
    fn new(e: Element, bits: usize, k_major: bool, mode: u32, mn: usize, k: usize) -> Matrix {
        let (lines, length) = if k_major { (mn, k) } else { (k, mn) };
        let units = (length * bits).div_ceil(128);
        let by_pairs = mode == 4;
        let (mut layout, mut bytes) = Layout::new(k_major, if by_pairs { 1 } else { mode }, lines, units);
        if by_pairs {
            // Atoms of four lines of 128 bytes.
            (layout.leading, layout.stride) = (512, 512 * units.div_ceil(8));
            bytes = layout.stride * lines.div_ceil(4);
        }
        Matrix { layout, by_pairs, bytes, e, container: bits }
    }

    /// The bit of an element.
    fn place(&self, mn: usize, k: usize) -> usize {
        let in_unit = 128 / self.container;
        let (along, line) = if self.layout.is_k_major { (k, mn) } else { (mn, k) };
        let first = along / in_unit * in_unit;
        let (mn, k) = if self.layout.is_k_major { (line, first) } else { (first, line) };
        let byte = if self.by_pairs {
            let straight = mn / 32 * self.layout.leading + mn % 32 * 4 + k % 4 * 128 + k / 4 * self.layout.stride;
            straight ^ (straight >> 7 & 3) << 5
        } else {
            self.layout.place(&Element { bits: self.container, ..self.e }, mn, k * self.container)
        };
        8 * byte + along % in_unit * self.e.bits
    }

    fn descriptor(&self) -> u64 {
        let (l, s) = (self.layout.leading as u64 >> 4, self.layout.stride as u64 >> 4);
        let mode = if self.by_pairs { 1 } else { [0, 2, 4, 6][self.layout.mode as usize] };
        l << 16 | s << 32 | 1 << 46 | mode << 61
    }
}

fn put_bits(bytes: &mut [u8], at: usize, n: usize, value: u64) {
    for i in 0..n {
        let byte = &mut bytes[(at + i) / 8];
        *byte = *byte & !(1 << ((at + i) % 8)) | ((value >> i & 1) as u8) << ((at + i) % 8);
    }
}

/// Tensor memory of the CTAs: columns by lane.
#[derive(Clone)]
struct Cells(Vec<Vec<[u32; 128]>>);

impl Cells {
    fn put(&mut self, cta: usize, lane: usize, bit: usize, n: usize, value: u64) {
        let word = &mut self.0[cta][bit / 32][lane];
        let mask = (u32::MAX >> (32 - n)) << (bit % 32);
        *word = *word & !mask | (value as u32) << (bit % 32);
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flatten().flatten().flat_map(|w| w.to_le_bytes()).collect()
    }
}

impl Case {
    fn ctas(&self) -> usize {
        if self.pair { 2 } else { 1 }
    }

    /// The CTA, lane and column behind the first for row and column of `d`, by the letters of the layouts.
    fn place_of_d(&self, row: usize, column: usize) -> (usize, usize, usize) {
        let sixteens = |row: usize| row / 16 * 32 + row % 16 + self.lane;
        match (self.pair, self.m, self.ws, self.sparse) {
            // A
            (true, 256, ..) => (row / 128, row % 128, column),
            // B
            (true, 128, _, false) => (row / 64, row % 64 + column / (self.n / 2) * 64, column % (self.n / 2)),
            // C
            (true, 128, _, true) => (row / 64, sixteens(row % 64), column),
            // D
            (false, 128, ..) => (0, row, column),
            // E
            (false, 64, true, _) => (0, row + column / (self.n / 2) * 64, column % (self.n / 2)),
            // F
            (false, 64, false, _) => (0, sixteens(row), column),
            // G
            _ => (0, row + column / (self.n / 4) * 32, column % (self.n / 4)),
        }
    }

    /// All lanes that compute a row.
    fn lanes_of_row(&self, row: usize) -> Vec<(usize, usize)> {
        let mut all: Vec<(usize, usize)> = (0..self.n)
            .map(|column| {
                let (cta, lane, _) = self.place_of_d(row, column);
                (cta, lane)
            })
            .collect();
        all.dedup();
        all
    }

    /// Bits of an element in tensor memory, and in the unit of shared memory.
    fn container(e: &Element, packed: bool) -> usize {
        if packed || e.bits > 8 { e.bits } else { 8 }
    }

    fn instruction(&self) -> u32 {
        let code = |e: &Element| match e.word {
            "f16" | "e4m3" | "u8" => 0,
            "bf16" | "e5m2" | "s8" => 1,
            "tf32" => 2,
            "e2m3" => 3,
            "e3m2" => 4,
            _ if self.kind.starts_with("mxf4") => 1,
            _ => 5,
        };
        let flag = |is: bool, at: u32| u32::from(is) << at;
        let common = flag(self.sparse, 2)
            | code(&self.a) << 7
            | code(&self.b) << 10
            | flag(self.negates[0], 13)
            | flag(self.negates[1], 14)
            | flag(!self.k_major[0], 15)
            | flag(!self.k_major[1], 16)
            | (self.n as u32 / 8) << 17;
        match self.scales {
            Some((_, is_ue8m0)) => {
                let [a, b] = self.scale_bytes.map(|byte| byte as u32);
                common | b << 4 | flag(is_ue8m0, 23) | (self.m as u32 / 128) << 27 | a << 29
            }
            None => {
                let d = match self.d.word {
                    "f16" => 0,
                    "f32" => 1,
                    _ => 2,
                };
                common | self.selector as u32 | flag(self.saturates, 3) | d << 4 | (self.m as u32 / 16) << 24
            }
        }
    }
}

/// Depths of the elements that are there, with the metadata of their chunks.
fn sparse_row(case: &Case, k: usize, rng: &mut Rng) -> (Vec<usize>, Vec<u32>) {
    let patterns = super::patterns(case.a.bits);
    // Pairs of elements of four bits are there or not.
    let (chunk, together) = match (case.a.bits, case.kind.starts_with("mxf4")) {
        (32, _) => (2, 1),
        (_, true) => (8, 2),
        _ => (4, 1),
    };
    let (mut depths, mut metadata) = (Vec::new(), Vec::new());
    for c in 0..k / chunk {
        let (bits, places) = *rng.pick(patterns);
        metadata.push(bits);
        depths.extend(places.iter().flat_map(|p| (0..together).map(move |i| chunk * c + together * p + i)));
    }
    (depths, metadata)
}

fn check(case: &Case, rng: &mut Rng) {
    let packed = case.kind.starts_with("mxf4");
    let [bits_a, bits_b] = [&case.a, &case.b].map(|e| Case::container(e, packed));
    let stored = 256 / bits_a;
    let k = if case.sparse { 2 * stored } else { stored };
    let (m, n, ctas) = (case.m, case.n, case.ctas());
    let pick = |rng: &mut Rng, e: &Element, count: usize| -> Vec<i64> { (0..count).map(|_| e.pick(rng)).collect() };
    let a: Vec<Vec<i64>> = (0..m).map(|_| pick(rng, &case.a, stored)).collect();
    let shift_b = case.zeros.map_or(0, |z| (z >> 56 & 0x3f) as usize);
    let b: Vec<Vec<i64>> = (0..n + shift_b).map(|_| pick(rng, &case.b, k)).collect();
    // Columns of tensor memory: `d`, `a`, metadata, scales.
    let wide = n.next_multiple_of(8);
    let [at_a, at_meta, at_sfa, at_sfb] = [0, 8, 16, 24].map(|x| wide + x);
    let columns = wide + 32;
    let mut cells =
        Cells((0..ctas).map(|_| (0..columns).map(|_| std::array::from_fn(|_| rng.next() as u32)).collect()).collect());
    // What `d` holds.
    let mut held = vec![vec![0_i64; n]; m];
    for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
        let v = case.d.pick(rng) << case.scale_d;
        held[row][column] = v >> case.scale_d;
        let (cta, lane, at) = case.place_of_d(row, column);
        cells.put(cta, lane, 32 * at, case.d.bits, (case.d.of)(v));
    }
    let mut rows = Vec::new();
    for (row, a) in a.iter().enumerate() {
        let (depths, metadata) = if case.sparse { sparse_row(case, k, rng) } else { ((0..k).collect(), vec![]) };
        for (cta, lane) in case.lanes_of_row(row) {
            if case.a_in_tensor {
                let left = if case.a.word == "e2m1" && !packed { 2 } else { 0 };
                for (i, v) in a.iter().enumerate() {
                    cells.put(cta, lane, 32 * at_a + i * bits_a, bits_a, (case.a.of)(*v) << left);
                }
            }
            for (c, bits) in metadata.iter().enumerate() {
                let (lane, bit) = if case.a.bits > 8 {
                    // Rows of sixteen: eight lanes have the first four chunks of two rows, eight the others.
                    let (sixteen, within) = (lane / 16 * 16, lane % 16);
                    (sixteen + within % 8 + c / 4 * 8, 32 * case.selector + within / 8 * 16 + c % 4 * 4)
                } else {
                    (lane, 4 * c)
                };
                cells.put(cta, lane, 32 * at_meta + bit, 4, u64::from(*bits));
            }
        }
        rows.push(depths);
    }
    // Scales: of `a` by rows of the CTA, of `b` by the columns that a lane has; 32 go down the lanes, all of it four times.
    let scale = |rng: &mut Rng| -> (u64, f64) {
        match case.scales {
            Some((_, true)) => {
                let e = rng.below(4) as u64;
                (126 + e, f64::from(1 << e) / 2.0)
            }
            _ => *rng.pick(&[(0x30, 0.5), (0x38, 1.0), (0x3c, 1.5), (0x40, 2.0)]),
        }
    };
    let blocks = case.scales.map_or(1, |s| s.0);
    let mut scale_a = vec![vec![1.0; blocks]; m];
    let mut scale_b = vec![vec![1.0; blocks]; n];
    if case.scales.is_some() {
        for (row, block) in (0..m).flat_map(|row| (0..blocks).map(move |block| (row, block))) {
            let (bits, value) = scale(rng);
            scale_a[row][block] = value;
            let (cta, local) = (row / (m / ctas), row % (m / ctas));
            for warp in 0..4 {
                cells.put(
                    cta,
                    32 * warp + local % 32,
                    32 * (at_sfa + local / 32) + 8 * (block + case.scale_bytes[0]),
                    8,
                    bits,
                );
            }
        }
        for (column, block) in (0..n).flat_map(|column| (0..blocks).map(move |block| (column, block))) {
            let (bits, value) = scale(rng);
            scale_b[column][block] = value;
            for cta in 0..ctas {
                // Of layout B the upper lanes have the upper columns.
                let (warps, local) = match case.pair && m == 128 {
                    false => (0..4, column),
                    true => (column / (n / 2) * 2..column / (n / 2) * 2 + 2, column % (n / 2)),
                };
                for warp in warps {
                    let bit = 32 * (at_sfb + local / 32) + 8 * (block + case.scale_bytes[1]);
                    cells.put(cta, 32 * warp + local % 32, bit, 8, bits);
                }
            }
        }
    }
    // Shared memory of each CTA: its rows of `a`, its columns of `b`.
    let (local_m, local_n) = (m / ctas, n / ctas);
    let ma = Matrix::new(case.a, bits_a, case.k_major[0], case.modes[0], local_m, stored);
    let mb = Matrix::new(case.b, bits_b, case.k_major[1], case.modes[1], local_n + shift_b, k);
    let at_b = ma.bytes.next_multiple_of(1024);
    let size = (at_b + mb.bytes).next_multiple_of(4);
    let mut image = vec![0xa5; size * ctas];
    for cta in 0..ctas {
        let image = &mut image[cta * size..][..size];
        for (row, i) in (0..local_m).flat_map(|row| (0..stored).map(move |i| (row, i))) {
            put_bits(image, ma.place(row, i), case.a.bits, (case.a.of)(a[cta * local_m + row][i]));
        }
        for (column, i) in (0..local_n + shift_b).flat_map(|column| (0..k).map(move |i| (column, i))) {
            put_bits(&mut image[at_b..], mb.place(column, i), case.b.bits, (case.b.of)(b[cta * local_n + column][i]));
        }
    }
    // What is wanted.
    let lanes: Vec<u32> = (0..4 * ctas).map(|_| if case.masked { rng.next() as u32 } else { 0 }).collect();
    let zero_columns = zero_columns(case);
    let mut want = cells.clone();
    let sign = if case.negates[0] == case.negates[1] { 1.0 } else { -1.0 };
    for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
        let (cta, lane, at) = case.place_of_d(row, column);
        if lanes[4 * cta + lane / 32] >> (lane % 32) & 1 == 1 {
            continue;
        }
        // A shift takes the row of `a` of the next lane.
        let from = if case.shifts_a { (row % 128 + 1).min(127) + row / 128 * 128 } else { row };
        let mut sum = if case.adds { held[row][column] as f64 } else { 0.0 };
        for (i, depth) in rows[row].iter().enumerate() {
            let block = i * blocks / stored;
            let product = if zero_columns[column] { 0 } else { a[from][i] * b[column + shift_b][*depth] };
            sum += sign * product as f64 * scale_a[row][block] * scale_b[column][block];
        }
        if case.saturates {
            sum = sum.clamp(f64::from(i32::MIN), f64::from(i32::MAX));
        }
        let bits = match case.d.word {
            "f32" => u64::from((sum as f32).to_bits()),
            "f16" => u64::from(half::f16::from_f64(sum).to_bits()),
            _ => sum as i64 as u64 & 0xffff_ffff,
        };
        want.put(cta, lane, 32 * at, 32, bits);
    }
    let text = kernel(case, [&ma, &mb], at_b, size, columns, wide, &lanes);
    let want = want.bytes();
    let buffers = vec![image, cells.bytes(), vec![0; want.len()]];
    let args = (0..3).map(|i| Argument::Buffer(i, 0)).collect();
    let launch = Launch {
        entry: "k",
        grid: [ctas as u32, 1, 1],
        block: [128, 1, 1],
        shared_bytes: 0,
        args,
        cooperative: false,
        cluster: case.pair.then_some([2, 1, 1]),
    };
    let job =
        Job { name: "tcgen05", text: &text, buffers, addresses: vec![], launches: vec![launch], variables: vec![] };
    for way in plain(Bounds::Exact) {
        let outcome = job.run(way, 0).unwrap_or_else(|e| panic!("{}: {e}\n{text}", way.name));
        assert!(outcome.trap.is_none(), "{}: {case:?}\n{:?}\n{text}", way.name, outcome.trap);
        let got = &outcome.buffers[2];
        if let Some(at) = got.iter().zip(&want).position(|(got, want)| got != want) {
            let (word, lane) = (at / 4, at / 4 % 128);
            let word_of = |bytes: &[u8]| u32::from_le_bytes(bytes[4 * word..][..4].try_into().unwrap());
            panic!(
                "{}: {case:?}\ncta {}, column {}, lane {lane}: {:#x}, wanted {:#x}\n{text}",
                way.name,
                word / 128 / columns,
                word / 128 % columns,
                word_of(got),
                word_of(&want)
            );
        }
    }
}

/// Spans of columns by the examples of the manual: of ones the first, of zeros the second length, from the span that is named first.
fn zero_columns(case: &Case) -> Vec<bool> {
    let Some(zeros) = case.zeros else { return vec![false; case.n] };
    let parts = 128 / case.m;
    let (ones, used) = ((zeros >> 40 & 0xff) as usize + 1, (zeros >> 48 & 0xff) as usize + 1);
    let mut all = Vec::new();
    for part in 0..parts {
        let (skip, is_first) = ((zeros >> (8 * part) & 0xff) as usize, zeros >> (32 + part) & 1 == 1);
        let begin = if is_first { skip } else { skip + ones };
        all.extend((0..case.n / parts).map(|i| (begin + i) % (ones + used) < ones));
    }
    all
}

fn kernel(
    case: &Case,
    [ma, mb]: [&Matrix; 2],
    at_b: usize,
    size: usize,
    columns: usize,
    wide: usize,
    lanes: &[u32],
) -> String {
    let group = format!("cta_group::{}", case.ctas());
    let eight = registers("r", 8);
    let mut text = format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n\
         .visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2)\n{{\n\
         .reg .b64 %p<3>, %at, %da, %db, %m, %z;\n.reg .b32 %t, %i, %v, %s, %e, %c, %w, %base, %mine, %d, %r<8>, %l<8>, %sa, %sb, %sm, %ia;\n\
         .reg .pred %g, %adds, %warp;\n.shared .align 8 .b64 bar;\n.shared .align 4 .b32 place;\n\
         .shared .align 1024 .b8 tile[{size}];\nmov.u32 %t, %tid.x;\nmov.u32 %c, %ctaid.x;\nshr.u32 %w, %t, 5;\nmul.wide.u32 %at, %t, 4;\n"
    );
    for (i, bytes) in [size, 512 * columns, 512 * columns].into_iter().enumerate() {
        let _ = writeln!(
            text,
            "ld.param.u64 %p{i}, [p{i}];\nadd.u64 %p{i}, %p{i}, %at;\nmul.wide.u32 %m, %c, {bytes};\nadd.u64 %p{i}, %p{i}, %m;"
        );
    }
    let _ = write!(
        text,
        "mov.u32 %s, tile;\nshl.b32 %i, %t, 2;\nL0:\nsetp.ge.u32 %g, %i, {size};\n@%g bra L1;\nld.global.b32 %v, [%p0];\n\
         add.u32 %e, %s, %i;\nst.shared.b32 [%e], %v;\nadd.u64 %p0, %p0, 512;\nadd.u32 %i, %i, 512;\nbra L0;\nL1:\n\
         fence.proxy.async;\nsetp.eq.u32 %warp, %w, 0;\n@%warp tcgen05.alloc.{group}.sync.aligned.shared::cta.b32 [place], 512;\n\
         setp.ne.u32 %g, %t, 0;\n@%g bra L2;\nmbarrier.init.shared.b64 [bar], 1;\nL2:\nbar.sync 0;\nld.shared.b32 %base, [place];\n\
         shl.b32 %mine, %w, 21;\nadd.u32 %mine, %mine, %base;\n"
    );
    // All columns, eight at a time.
    let _ = write!(text, "mov.u32 %i, 0;\nmov.u32 %v, %mine;\nL5:\n");
    for i in 0..8 {
        let _ = writeln!(text, "ld.global.b32 %r{i}, [%p1+{}];", 512 * i);
    }
    let _ = write!(
        text,
        "tcgen05.st.sync.aligned.32x32b.x8.b32 [%v], {eight};\nadd.u64 %p1, %p1, 4096;\nadd.u32 %v, %v, 8;\nadd.u32 %i, %i, 8;\n\
         setp.lt.u32 %g, %i, {columns};\n@%g bra L5;\n"
    );
    let sync =
        if case.pair { "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n" } else { "bar.sync 0;\n" };
    let _ = write!(
        text,
        "tcgen05.wait::st.sync.aligned;\ntcgen05.fence::before_thread_sync;\n{sync}tcgen05.fence::after_thread_sync;\n"
    );
    // One thread of the even CTA.
    let _ = writeln!(text, "or.b32 %e, %t, %c;\nsetp.ne.u32 %g, %e, 0;\n@%g bra L3;");
    for (name, matrix, at) in [("%da", ma, 0), ("%db", mb, at_b)] {
        let _ = writeln!(
            text,
            "add.u32 %v, %s, {at};\nshr.u32 %v, %v, 4;\ncvt.u64.u32 %m, %v;\nor.b64 {name}, %m, {:#x};",
            matrix.descriptor()
        );
    }
    let high = (case.lane as u32) << 16;
    for (name, at) in [
        ("%d", high),
        ("%ia", wide as u32 + high),
        ("%sm", wide as u32 + 8 + high),
        // As public libraries do it, with the byte of the scales in the upper bits, which do not count.
        ("%sa", wide as u32 + 16 + ((case.scale_bytes[0] as u32) << 30)),
        ("%sb", wide as u32 + 24 + ((case.scale_bytes[1] as u32) << 30)),
    ] {
        let _ = writeln!(text, "add.u32 {name}, %base, {at};");
    }
    for (i, word) in lanes.iter().enumerate() {
        let _ = writeln!(text, "mov.b32 %l{i}, {word:#x};");
    }
    let _ = writeln!(text, "mov.b32 %i, {:#x};\nsetp.eq.u32 %adds, %t, {};", case.instruction(), u32::from(!case.adds));
    let mut operands = vec!["[%d]".to_owned(), if case.a_in_tensor { "[%ia]" } else { "%da" }.into(), "%db".into()];
    if case.sparse {
        operands.push("[%sm]".into());
    }
    operands.push("%i".into());
    if case.scales.is_some() {
        operands.extend(["[%sa]".into(), "[%sb]".into()]);
    }
    if case.masked {
        let list: Vec<String> = (0..lanes.len()).map(|i| format!("%l{i}")).collect();
        operands.push(format!("{{{}}}", list.join(", ")));
    }
    operands.push("%adds".into());
    if case.scale_d != 0 {
        operands.push(case.scale_d.to_string());
    }
    if let Some(zeros) = case.zeros {
        let _ = writeln!(text, "mov.b64 %z, {zeros:#x};");
        operands.push("%z".into());
    }
    let op = match (case.ws, case.sparse) {
        (false, false) => "",
        (false, true) => ".sp",
        (true, false) => ".ws",
        (true, true) => ".ws.sp",
    };
    let scaled = match case.scales {
        None => "",
        Some((1, _)) => ".block_scale.scale_vec::1X",
        Some((2, _)) => ".block_scale.scale_vec::2X",
        Some(_) => ".block_scale.scale_vec::4X",
    };
    let shift = if case.shifts_a { ".ashift" } else { "" };
    let _ = writeln!(
        text,
        "tcgen05.mma{op}.{group}.kind::{}{scaled}{shift}{} {};",
        case.kind,
        case.collector,
        operands.join(", ")
    );
    let _ = match case.pair {
        false => writeln!(text, "tcgen05.commit.{group}.mbarrier::arrive::one.shared::cluster.b64 [bar];\nL3:"),
        true => writeln!(
            text,
            "{{\n.reg .b16 %mask;\nmov.b16 %mask, 3;\n\
             tcgen05.commit.{group}.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [bar], %mask;\n}}\nL3:"
        ),
    };
    let _ = write!(
        text,
        "L4:\nmbarrier.try_wait.parity.shared.b64 %g, [bar], 0;\n@!%g bra L4;\ntcgen05.fence::after_thread_sync;\n"
    );
    let _ = writeln!(
        text,
        "mov.u32 %i, 0;\nmov.u32 %v, %mine;\nL6:\ntcgen05.ld.sync.aligned.32x32b.x8.b32 {eight}, [%v];\ntcgen05.wait::ld.sync.aligned;"
    );
    for i in 0..8 {
        let _ = writeln!(text, "st.global.b32 [%p2+{}], %r{i};", 512 * i);
    }
    let _ = write!(
        text,
        "add.u64 %p2, %p2, 4096;\nadd.u32 %v, %v, 8;\nadd.u32 %i, %i, 8;\nsetp.lt.u32 %g, %i, {columns};\n@%g bra L6;\n"
    );
    let _ = write!(
        text,
        "{sync}@%warp tcgen05.dealloc.{group}.sync.aligned.b32 %base, 512;\n\
         @%warp tcgen05.relinquish_alloc_permit.{group}.sync.aligned;\nret;\n}}\n"
    );
    text
}

/// Small numbers, whose sums fit an `.f16`.
fn small(e: Element) -> Element {
    Element { range: (-3, 3), ..e }
}

const SMALL_F16: Element = Element { range: (-64, 64), ..F16 };

#[test]
fn dense_products() {
    let mut rng = Rng::new(11);
    let f = Case { kind: "f8f6f4", ..PLAIN };
    let t = Case { kind: "tf32", a: TF32, b: TF32, ..PLAIN };
    let i = Case { kind: "i8", a: S8, b: U8, d: S32, ..PLAIN };
    let cases = [
        PLAIN,
        Case { m: 64, n: 8, modes: [1, 2], adds: false, ..PLAIN },
        Case { m: 64, n: 24, lane: 16, modes: [3, 0], a_in_tensor: true, negates: [true, false], ..PLAIN },
        Case { a: BF16, b: BF16, n: 32, modes: [1, 1], k_major: [false, false], scale_d: 3, masked: true, ..PLAIN },
        Case {
            a: small(F16),
            b: small(F16),
            d: SMALL_F16,
            k_major: [true, false],
            modes: [2, 3],
            collector: ".collector::a::fill",
            ..PLAIN
        },
        Case {
            a_in_tensor: true,
            shifts_a: true,
            k_major: [true, false],
            modes: [0, 2],
            collector: ".collector::a::lastuse",
            ..PLAIN
        },
        Case { n: 8, modes: [2, 1], ..t },
        Case { n: 40, m: 64, a_in_tensor: true, scale_d: 15, ..t },
        Case { n: 32, k_major: [false, false], modes: [4, 4], ..t },
        Case { a: E4M3, b: E5M2, modes: [1, 3], ..f },
        Case { a: E2M1, b: E3M2, a_in_tensor: true, ..f },
        Case { a: E3M2, b: E2M1, modes: [2, 1], negates: [false, true], ..f },
        Case { a: E2M3, b: E2M3, a_in_tensor: true, masked: true, k_major: [true, false], ..f },
        Case { a: small(E5M2), b: small(E4M3), d: SMALL_F16, m: 64, ..f },
        Case { n: 48, saturates: true, modes: [1, 1], ..i },
        Case {
            a: U8,
            b: S8,
            n: 24,
            m: 64,
            a_in_tensor: true,
            masked: true,
            k_major: [true, false],
            modes: [0, 3],
            ..i
        },
    ];
    cases.iter().for_each(|case| check(case, &mut rng));
}

#[test]
fn scaled_products() {
    let mut rng = Rng::new(12);
    let s = Case { kind: "mxf8f6f4", scales: Some((1, true)), a: E4M3, b: E5M2, ..PLAIN };
    let p = Case { kind: "mxf4nvf4", scales: Some((4, false)), a: E2M1, b: E2M1, ..PLAIN };
    let cases = [
        s,
        Case { a: E2M1, b: E2M3, a_in_tensor: true, n: 40, modes: [0, 1], collector: ".collector::a::use", ..s },
        Case { a: E4M3, b: E3M2, sparse: true, k_major: [true, false], ..s },
        Case { kind: "mxf4", scales: Some((2, true)), modes: [1, 2], negates: [true, false], ..p },
        Case { scale_bytes: [1, 3], ..s },
        Case { kind: "mxf4", scales: Some((2, true)), scale_bytes: [2, 0], ..p },
        Case { n: 72, ..p },
        Case { scales: Some((4, true)), a_in_tensor: true, adds: false, ..p },
        Case { scales: Some((2, true)), sparse: true, ..p },
        Case { sparse: true, a_in_tensor: true, ..p },
        Case { pair: true, m: 256, n: 32, ..p },
        Case { pair: true, m: 128, n: 64, a_in_tensor: true, ..s },
        Case { pair: true, m: 256, sparse: true, n: 16, ..p },
    ];
    cases.iter().for_each(|case| check(case, &mut rng));
}

#[test]
fn sparse_products_and_weights_that_stay() {
    let mut rng = Rng::new(13);
    let sp = Case { sparse: true, ..PLAIN };
    let ws = Case { ws: true, n: 64, ..PLAIN };
    let t = Case { kind: "tf32", a: TF32, b: TF32, sparse: true, ..PLAIN };
    let spans = |starts: u64, first: u64, shift: u64| starts | first << 32 | 1 << 39 | 2 << 40 | 3 << 48 | shift << 56;
    let cases = [
        sp,
        Case { m: 64, lane: 16, selector: 3, modes: [3, 1], ..sp },
        Case { m: 64, a_in_tensor: true, selector: 1, masked: true, ..sp },
        Case { selector: 2, scale_d: 1, ..t },
        Case { m: 64, a_in_tensor: true, masked: true, ..t },
        Case { kind: "f8f6f4", a: E4M3, b: E2M1, ..sp },
        Case { kind: "i8", a: U8, b: U8, d: S32, m: 64, a_in_tensor: true, saturates: true, ..sp },
        Case { m: 32, ..ws },
        Case { m: 32, a_in_tensor: true, zeros: Some(spans(0x0102_0100, 0b0011, 2)), ..ws },
        Case { m: 64, zeros: Some(spans(0, 1, 0)), collector: ".collector::b2::fill", modes: [1, 3], ..ws },
        Case { m: 64, kind: "f8f6f4", a: E5M2, b: E3M2, a_in_tensor: true, adds: false, ..ws },
        Case { m: 128, zeros: Some(spans(1, 0, 9)), kind: "i8", a: S8, b: S8, d: S32, ..ws },
        Case { m: 32, sparse: true, a_in_tensor: true, collector: ".collector::b0::lastuse", ..ws },
        Case { m: 64, kind: "tf32", a: TF32, b: TF32, sparse: true, zeros: Some(spans(5, 0, 0)), ..ws },
        Case { m: 32, sparse: true, kind: "i8", a: U8, b: S8, d: S32, ..ws },
    ];
    cases.iter().for_each(|case| check(case, &mut rng));
}

#[test]
fn products_of_pairs() {
    let mut rng = Rng::new(14);
    let p = Case { pair: true, m: 256, ..PLAIN };
    let cases = [
        p,
        Case { m: 128, n: 32, modes: [1, 2], masked: true, ..p },
        Case { m: 128, n: 32, a_in_tensor: true, k_major: [true, false], ..p },
        Case { a_in_tensor: true, shifts_a: true, masked: true, ..p },
        Case { m: 128, sparse: true, lane: 16, selector: 1, ..p },
        Case { sparse: true, kind: "f8f6f4", a: E4M3, b: E4M3, a_in_tensor: true, ..p },
        Case { kind: "i8", a: S8, b: S8, d: S32, n: 32, m: 128, ..p },
        Case { kind: "tf32", a: TF32, b: TF32, k_major: [false, true], modes: [4, 0], ..p },
    ];
    cases.iter().for_each(|case| check(case, &mut rng));
}
