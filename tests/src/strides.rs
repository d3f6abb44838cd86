//! Random kernels whose threads go through rows by strides: a number that goes up by the same in each turn, indices made of it, and accesses by these.
//!
//! Takes: a seed. Gives: a [`Kernel`], PTX text with its launches. The same seed gives the same kernel.

use std::fmt::Write;

use crate::engines::{Argument, Job, Launch};
use crate::rng::Rng;

const BLOCKS: &[[u32; 2]] = &[
    [32, 1],
    [64, 1],
    [96, 1],
    [128, 1],
    [256, 1],
    [256, 1],
    [40, 1],
    [33, 1],
    [1, 1],
    [32, 4],
    [16, 8],
    [64, 2],
    [8, 8],
];
/// How many elements rows have: whole warps, and others.
const COUNTS: &[u32] = &[0, 1, 31, 32, 33, 64, 96, 100, 128, 255, 256, 257, 500, 512, 1000, 1024];
/// Words of a buffer before those that rows begin at.
const BEFORE: usize = 4096;

/// A random kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// PTX.
    pub text: String,
    /// Threads of a block.
    pub block: [u32; 2],
    /// Blocks.
    pub grid: u32,
    /// Of each launch: elements of a row, and from one row to the next.
    pub launches: Vec<[u32; 2]>,
    /// Words of each buffer behind where rows begin.
    words: usize,
}

impl Kernel {
    /// Its launches, one after the other.
    pub fn job(&self) -> Job<'_> {
        let total = (self.block[0] * self.block[1] * self.grid) as usize;
        let all = BEFORE + self.words;
        let input = (0..all).flat_map(|i| (i as u32).wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        let launch = |&[n, pitch]: &[u32; 2]| Launch {
            entry: "k",
            grid: [self.grid, 1, 1],
            block: [self.block[0], self.block[1], 1],
            shared_bytes: 0,
            args: vec![
                Argument::Buffer(0, 0),
                Argument::Buffer(1, 4 * BEFORE as u64),
                Argument::Buffer(2, 4 * BEFORE as u64),
                Argument::Scalar(u64::from(n)),
                Argument::Scalar(u64::from(pitch)),
            ],
            cooperative: false,
            cluster: None,
        };
        Job {
            name: "strides.ptx",
            text: &self.text,
            buffers: vec![vec![0; 4 * total], input, vec![0; 4 * all]],
            addresses: vec![],
            launches: self.launches.iter().map(launch).collect(),
            variables: vec![],
        }
    }
}

struct Maker {
    rng: Rng,
    text: String,
    labels: u32,
    /// The count has 64 bits.
    is_long: bool,
    signed: bool,
}

impl Maker {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "    {line}");
    }

    fn pick(&mut self, of: &[&'static str]) -> &'static str {
        of[self.rng.below(of.len())]
    }

    fn sign(&self) -> char {
        if self.signed { 's' } else { 'u' }
    }

    /// The address of an element of `size` bytes by the count, in `%a`, and the number in the row that it is made of, in `%t1`.
    fn address(&mut self, base: &str, size: u32) {
        let log = size.trailing_zeros();
        if self.is_long {
            // The count is one of 64 bits: sums of these never matter.
            match self.rng.below(3) {
                0 => self.line(&format!("add.s64 %a, %j, %far;\n    shl.b64 %a, %a, {log};")),
                1 => {
                    self.line(&format!("shl.b64 %a, %j, {log};\n    shl.b64 %b, %far, {log};\n    add.s64 %a, %a, %b;"))
                }
                _ => self.line(&format!("add.s64 %a, %far, %j;\n    mul.lo.s64 %a, %a, {size};")),
            }
            self.line(&format!("add.s64 %a, {base}, %a;\n    cvt.u32.u64 %t1, %j;"));
            return;
        }
        let signed = if self.rng.one_in(4) { !self.signed } else { self.signed };
        let sign = if signed { 's' } else { 'u' };
        self.line("mov.u32 %t1, %j;");
        let plus = *self.rng.pick(&[0, 0, 0, 1, 32, -1, -32, 7]);
        let sum = match self.rng.below(4) {
            0 => format!("add.s32 %t2, %j, {plus};"),
            1 => format!("add.s32 %t2, %row, %j;\n    add.s32 %t2, %t2, {plus};"),
            2 => "add.s32 %t2, %j, %row;".to_owned(),
            _ => format!("add.s32 %t2, {plus}, %j;\n    add.s32 %t2, %row, %t2;"),
        };
        self.line(&sum);
        match self.rng.below(4) {
            0 => self.line(&format!("mul.wide.{sign}32 %a, %t2, {size};\n    add.s64 %a, {base}, %a;")),
            1 => self.line(&format!("cvt.{sign}64.{sign}32 %a, %t2;\n    shl.b64 %a, %a, {log};\n    add.s64 %a, %a, {base};")),
            2 => self.line(&format!(
                "cvt.{sign}64.{sign}32 %a, %j;\n    add.s64 %a, %far, %a;\n    shl.b64 %a, %a, {log};\n    add.s64 %a, {base}, %a;"
            )),
            _ => self.line(&format!("mul.wide.{sign}32 %a, %j, {size};\n    add.s64 %a, {base}, %a;\n    add.s64 %a, %a, 128;")),
        }
    }

    /// One access of a turn.
    fn access(&mut self) {
        let (ty, size) = *self.rng.pick(&[("u32", 4), ("u32", 4), ("u32", 4), ("u64", 8), ("u8", 1), ("u16", 2)]);
        let off = *self.rng.pick(&[0, 0, 0, 1, -1, 32]) * i64::from(size);
        let guard = if self.rng.one_in(6) {
            let cmp = self.pick(&["lt", "ge"]);
            let (ty, n) = (if self.is_long { "s64" } else { "s32" }, *self.rng.pick(&[0, 32, 40, 128]));
            self.line(&format!("setp.{cmp}.{ty} %q, %j, {n};"));
            "@%q "
        } else {
            ""
        };
        if self.rng.one_in(3) {
            // What is stored depends on the address alone: it does not matter who comes last.
            self.address("%made", 4);
            let off = off / i64::from(size) * 4;
            self.line("cvt.u32.u64 %t2, %a;\n    sub.u32 %t2, %t2, %t0;");
            self.line(&format!("add.u32 %t2, %t2, {off};\n    {guard}st.global.u32 [%a+{off}], %t2;"));
            return;
        }
        self.address("%in", size);
        // Others from the same address, as unrolled loops have them.
        let others = if self.rng.one_in(3) { 1 + self.rng.below(3) } else { 0 };
        let apart = *self.rng.pick(&[32, 1, 256, 100, -1]) * i64::from(size);
        for other in 0..=others as i64 {
            let off = off + apart * other;
            match ty {
                "u64" => self.line(&format!(
                    "mov.u64 %b, 5;\n    {guard}ld.global.u64 %b, [%a+{off}];\n    cvt.u32.u64 %x, %b;"
                )),
                "u32" => self.line(&format!("mov.u32 %x, 6;\n    {guard}ld.global.u32 %x, [%a+{off}];")),
                _ => self.line(&format!("mov.u32 %x, 7;\n    {guard}ld.global.{ty} %x, [%a+{off}];")),
            }
            self.line("mad.lo.u32 %s, %s, 3, %x;");
            if other > 0 && self.rng.one_in(6) {
                self.line("add.s64 %a, %a, 64;");
            }
        }
        if self.rng.one_in(5) {
            self.line("add.u32 %s, %s, %t1;");
        }
    }

    /// A loop that goes through a row.
    fn walk(&mut self) {
        let w = if self.is_long { 64 } else { 32 };
        let first = self.pick(&["%me", "%me", "%me", "%lin", "%lin", "%y", "0", "5", "%odd", "%odd"]);
        let plus = *self.rng.pick(&[0, 0, 0, 0, 1, 3, 32, -1]);
        self.line(&format!("mov.u32 %t2, {first};\n    add.s32 %t2, %t2, {plus};"));
        if self.is_long {
            let sign = self.sign();
            self.line(&format!("cvt.{sign}64.{sign}32 %j, %t2;"));
        } else {
            self.line("mov.u32 %j, %t2;");
        }
        let step = self.pick(&["%wide", "%wide", "%wide", "%all", "%all", "256", "32", "7", "1"]);
        if self.is_long {
            self.line(&format!("mov.u32 %t2, {step};\n    cvt.u64.u32 %by, %t2;"));
        } else {
            self.line(&format!("mov.u32 %by, {step};"));
        }
        let (sign, down) = (self.sign(), self.rng.one_in(3));
        self.labels += 1;
        let (top, end) = (format!("TOP{}", self.labels), format!("END{}", self.labels));
        let again = if down {
            // So many turns for all threads.
            let by = *self.rng.pick(&[5, 6, 7]);
            self.line(&format!("shr.u32 %c, %n, {by};\n    and.b32 %c, %c, 7;"));
            match self.rng.below(3) {
                0 => self.line(&format!("setp.eq.s32 %p, %c, 0;\n    @%p bra {end};")),
                1 => self.line(&format!("setp.lt.u32 %p, %c, 1;\n    @%p bra {end};")),
                _ => self.line("add.u32 %c, %c, 1;"),
            }
            "add.s32 %c, %c, -1;\n    setp.ne.s32 %p, %c, 0;".to_owned()
        } else {
            let (cmp, not) = *self.rng.pick(&[("lt", "ge"), ("lt", "ge"), ("le", "gt")]);
            if !self.rng.one_in(5) {
                self.line(&format!("setp.{not}.{sign}{w} %p, %j, %bound;\n    @%p bra {end};"));
            }
            format!("setp.{cmp}.{sign}{w} %p, %j, %bound;")
        };
        let step = format!("add.s{w} %j, %j, %by;");
        let _ = writeln!(self.text, "{top}:");
        for _ in 0..1 + self.rng.below(3) {
            self.access();
        }
        self.line(&step);
        self.line(&format!("{again}\n    @%p bra {top};"));
        if self.rng.one_in(4) {
            let low = if self.is_long { "cvt.u32.u64 %t2, %j;" } else { "mov.u32 %t2, %j;" };
            self.line(&format!("{low}\n    xor.b32 %s, %s, %t2;"));
        }
        let _ = writeln!(self.text, "{end}:");
    }
}

/// The kernel of a seed.
pub fn kernel(seed: u64) -> Kernel {
    let mut rng = Rng::new(seed ^ 0x5717_1de5);
    let block = *rng.pick(BLOCKS);
    let grid = 1 + rng.below(6) as u32;
    let is_long = rng.one_in(4);
    let w = if is_long { 64 } else { 32 };
    let mut m = Maker { signed: !rng.one_in(3), rng, text: String::new(), labels: 0, is_long };
    let _ = write!(
        m.text,
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 in, .param .u64 made, \
         .param .u32 n, .param .u32 pitch)\n{{\n    .reg .pred %p, %q;\n    \
         .reg .b32 %t<3>, %me, %odd, %y, %lin, %wide, %all, %row, %n, %s, %x, %c;\n    .reg .b{w} %j, %by, %bound;\n    \
         .reg .b64 %out, %in, %made, %a, %b, %far;\n"
    );
    for line in [
        "ld.param.u64 %out, [out];\n    ld.param.u64 %in, [in];\n    ld.param.u64 %made, [made];",
        "ld.param.u32 %n, [n];\n    ld.param.u32 %row, [pitch];\n    cvt.u32.u64 %t0, %made;",
        "mov.u32 %me, %tid.x;\n    mov.u32 %y, %tid.y;\n    mov.u32 %wide, %ntid.x;\n    mov.u32 %t1, %ctaid.x;",
        "mov.u32 %t2, %nctaid.x;\n    mul.lo.u32 %all, %wide, %t2;\n    mul.lo.u32 %row, %row, %t1;\n    mov.u32 %s, 1;",
        "mad.lo.u32 %lin, %t1, %wide, %me;\n    cvt.s64.s32 %far, %row;",
        // The number of the thread once more, of which nobody knows that it is that.
        "add.u32 %t2, %n, 2048;\n    rem.u32 %odd, %me, %t2;",
    ] {
        m.line(line);
    }
    // Below zero there is no end of an unsigned count.
    let less = if m.signed { -1 } else { 0 };
    let bound = *m.rng.pick(&[0, 0, 0, less, 1, 32]);
    m.line(&format!("add.s32 %t2, %n, {bound};"));
    let widen = if m.signed { "cvt.s64.s32 %bound, %t2;" } else { "cvt.u64.u32 %bound, %t2;" };
    m.line(if is_long { widen } else { "mov.u32 %bound, %t2;" });
    for _ in 0..1 + m.rng.below(2) {
        m.walk();
    }
    m.line("mov.u32 %t1, %ntid.y;\n    mad.lo.u32 %t2, %y, %wide, %me;\n    mul.lo.u32 %t1, %t1, %wide;\n    mov.u32 %x, %ctaid.x;");
    m.line("mad.lo.u32 %t2, %x, %t1, %t2;\n    mul.wide.u32 %a, %t2, 4;\n    add.s64 %a, %out, %a;\n    st.global.u32 [%a], %s;\n    ret;");
    m.text.push_str("}\n");
    let n_launches = 1 + m.rng.below(3);
    let launches: Vec<[u32; 2]> = (0..n_launches)
        .map(|_| {
            let n = *m.rng.pick(COUNTS);
            [n, *m.rng.pick(&[n, n, n, 0, 32, 1024])]
        })
        .collect();
    // Mostly all that is asked for is there, also where a step of one turn goes beyond a row.
    let most = launches.iter().map(|[n, pitch]| 2 * (pitch * (grid - 1) + n) + 4096).max().unwrap_or(0);
    let words = if m.rng.one_in(5) { most as usize / 8 } else { most as usize };
    Kernel { text: m.text, block, grid, launches, words }
}
