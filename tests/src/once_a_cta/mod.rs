//! Random kernels whose guards fail in the middle of a warp, a CTA or a grid, and whose accesses run out of bounds in one place.
//!
//! Takes: a seed. Gives: a [`Kernel`], PTX text with its launch. The same seed gives the same kernel.

mod apart;
mod blocks;
mod edges;
mod scans;
mod unrolled;

use std::fmt::Write;

use crate::engines::{Argument, Job, Launch};
use crate::rng::Rng;
use blocks::{Block, NUMBER};

/// Blocks of one thread to the most, whole warps and others.
const BLOCKS: &[[u32; 2]] = &[
    [1, 1],
    [31, 1],
    [32, 1],
    [33, 1],
    [64, 1],
    [96, 1],
    [100, 1],
    [128, 1],
    [256, 1],
    [512, 1],
    [1000, 1],
    [1024, 1],
    [8, 4],
    [8, 16],
    [16, 16],
    [32, 8],
    [4, 32],
    [64, 4],
    [7, 9],
    [2, 48],
    [32, 32],
];

/// Bytes of shared memory.
pub const TILE: u32 = 4096;

/// A random kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// PTX.
    pub text: String,
    /// Threads of a block.
    pub block: Block,
    /// Blocks.
    pub grid: [u32; 2],
    /// The number that its guards ask about.
    pub n: u32,
    /// Words of the buffer that is read.
    words: usize,
}

impl Kernel {
    /// A text of it as a job.
    pub fn job<'t>(&self, text: &'t str) -> Job<'t> {
        let total = (self.block.seen[0] * self.block.seen[1] * self.grid[0] * self.grid[1]) as usize;
        // Elements that stand apart go far back from the input: not into what other threads write, where it would matter who comes first.
        let before = 64 * total;
        let mut input = vec![0; before];
        input.extend((0..self.words).flat_map(|i| (i as u32).wrapping_mul(2_654_435_761).to_le_bytes()));
        Job {
            name: "once.ptx",
            text,
            buffers: vec![vec![0; 4 * total], input],
            addresses: vec![],
            launches: vec![Launch {
                entry: "k",
                grid: [self.grid[0], self.grid[1], 1],
                block: self.block.launched,
                shared_bytes: 0,
                args: vec![
                    Argument::Buffer(0, 0),
                    Argument::Buffer(1, before as u64),
                    Argument::Scalar(u64::from(self.n)),
                ],
                cooperative: false,
                cluster: None,
            }],
            variables: vec![],
        }
    }
}

struct Maker {
    rng: Rng,
    text: String,
    labels: u32,
    depth: u32,
    /// It writes to the buffer of results before its end.
    writes: bool,
    /// It has no loops of rounds.
    is_straight: bool,
    /// Threads of a block, and rows of them.
    threads: u32,
    rows: u32,
}

impl Maker {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "    {line}");
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("$L{}", self.labels)
    }

    /// A predicate in `%p1`.
    fn condition(&mut self, p: &str) {
        let a = *self.rng.pick(&["%idx", "%idx", "%x", "%y", "%lin"]);
        let cmp = *self.rng.pick(&["lt", "le", "gt", "ge", "ge", "ge", "eq", "ne"]);
        let ty = *self.rng.pick(&["s32", "u32"]);
        let by = *self.rng.pick(&[-33, -1, 0, 0, 1, 5, 32]);
        let b = match self.rng.below(4) {
            0 => format!("{}", self.rng.pick(&[0, 1, 15, 31, 32, 63, 127, 500])),
            _ => "%n".to_owned(),
        };
        self.line(&format!("add.s32 %t1, {a}, {by};"));
        if self.rng.one_in(4) {
            // Of 64 bits, some of them so far from zero that ends wrap.
            let sign = *self.rng.pick(&["s", "u"]);
            let far = *self.rng.pick(&[0_i64, 0, 0, 1 << 32, i64::MAX - 40, i64::MIN]);
            self.line(&format!("cvt.{sign}64.{sign}32 %m0, %t1;\n    add.s64 %m0, %m0, {far};"));
            self.line(&format!("mov.u32 %t1, {b};\n    cvt.{sign}64.{sign}32 %m1, %t1;\n    add.s64 %m1, %m1, {far};"));
            self.line(&format!("setp.{cmp}.{sign}64 {p}, %m0, %m1;"));
        } else {
            self.line(&format!("setp.{cmp}.{ty} {p}, %t1, {b};"));
        }
    }

    /// Accesses that predicates guard one by one, as Triton writes them: what a load does not read has a value of its own.
    fn asked(&mut self) {
        self.condition("%p0");
        if self.rng.one_in(3) {
            self.condition("%p2");
            let op = *self.rng.pick(&["or", "and"]);
            self.line(&format!("{op}.pred %p0, %p0, %p2;"));
        }
        let not = *self.rng.pick(&["", "", "!"]);
        self.line("mul.wide.s32 %l1, %idx, 4;\n    add.s64 %l2, %in, %l1;");
        for _ in 0..1 + self.rng.below(3) {
            let off = *self.rng.pick(&[0, 0, 4, 8, -4, 128, 2]);
            if self.rng.one_in(3) {
                self.line("mov.u32 %t1, 7;\n    mov.u32 %t2, %s;");
                self.line(&format!("@{not}%p0 ld.global.v2.u32 {{%t1, %t2}}, [%l2+{}];", 2 * off));
                self.line("add.u32 %s, %s, %t1;");
            } else {
                let other = *self.rng.pick(&["0", "0", "%r", "%idx"]);
                self.line(&format!("mov.u32 %t2, {other};\n    @{not}%p0 ld.global.u32 %t2, [%l2+{off}];"));
            }
            self.line("mad.lo.u32 %r, %r, 5, %t2;");
            if self.rng.one_in(4) {
                self.line("selp.b32 %r, %r, %lin, %p0;");
            }
        }
        if self.rng.one_in(2) {
            self.writes = true;
            self.line(&format!("add.s64 %l1, %out, %l1;\n    @{not}%p0 st.global.u32 [%l1], %r;"));
        }
    }

    fn guard(&mut self) {
        self.condition("%p1");
        for _ in 0..self.rng.below(3) {
            self.condition("%p2");
            let op = *self.rng.pick(&["or", "and"]);
            self.line(&format!("{op}.pred %p1, %p1, %p2;"));
        }
        let end = self.label();
        let not = *self.rng.pick(&["", "!"]);
        self.line(&format!("@{not}%p1 bra {end};"));
        self.depth += 1;
        for _ in 0..=self.rng.below(2) {
            self.statement();
        }
        self.depth -= 1;
        let _ = writeln!(self.text, "{end}:");
    }

    /// Reads beside the thread's own element.
    fn load(&mut self) {
        let off = *self.rng.pick(&[0, 0, 0, 1, 2, 4, -1, 32]);
        let sign = *self.rng.pick(&["s32", "s32", "u32"]);
        let a = *self.rng.pick(&["%idx", "%idx", "%idx", "%x", "%lin"]);
        if self.rng.one_in(2) {
            self.line(&format!("add.s32 %t1, {a}, {off};"));
            self.line(&format!("mul.wide.{sign} %l1, %t1, 4;"));
            self.line("add.s64 %l1, %in, %l1;");
            self.line("ld.global.u32 %t2, [%l1];");
        } else {
            self.line(&format!("mul.wide.{sign} %l1, {a}, 4;"));
            self.line("add.s64 %l1, %in, %l1;");
            self.line(&format!("ld.global.u32 %t2, [%l1+{}];", 4 * off));
        }
        self.line("mad.lo.u32 %r, %r, 5, %t2;");
    }

    /// Reads through more addresses, one after the other, than code can hold.
    fn many_loads(&mut self) {
        for k in 0..5 + self.rng.below(6) {
            let a = *self.rng.pick(&["%idx", "%idx", "%x", "%y", "%lin"]);
            self.line(&format!("add.s32 %t1, {a}, {};", 2 * k));
            self.line("mul.wide.s32 %l1, %t1, 4;");
            self.line("add.s64 %l1, %in, %l1;");
            self.line("ld.global.u32 %t2, [%l1];");
            self.line("mad.lo.u32 %r, %r, 5, %t2;");
            let off = 4 * self.rng.below(3);
            self.line(&format!("ld.global.u32 %t2, [%l1+{off}];"));
            self.line("xor.b32 %r, %r, %t2;");
        }
    }

    /// Reads elements of several sizes through one address, each as far from it as its size says: but for one of a few, between others that are right.
    fn neighbours(&mut self) {
        const TYPES: [(&str, i64); 6] = [("u32", 4), ("u32", 4), ("u16", 2), ("u8", 1), ("u64", 8), ("v2.u32", 8)];
        let a = *self.rng.pick(&["%idx", "%idx", "%x", "%lin"]);
        let size = *self.rng.pick(&[4, 4, 8]);
        self.line(&format!("mul.wide.s32 %l2, {a}, {size};"));
        self.line("add.s64 %l2, %in, %l2;");
        let odd = self.rng.below(24);
        for k in 0..2 + self.rng.below(4) {
            // Wide elements at a distance of 4 bytes are misaligned in every second lane: rarely.
            let wide = size == 8 || self.rng.one_in(16);
            let (ty, bytes) = *self.rng.pick(if wide { &TYPES } else { &TYPES[..4] });
            let by = i64::from(k == odd) * *self.rng.pick(&[1, 2]);
            let off = bytes * *self.rng.pick(&[0, 0, 1, 2, 3, -1]) + by;
            match ty {
                "u64" => {
                    self.line(&format!("ld.global.u64 %l1, [%l2+{off}];"));
                    self.line("cvt.u32.u64 %t2, %l1;");
                }
                "v2.u32" => {
                    self.line(&format!("ld.global.v2.u32 {{%t1, %t2}}, [%l2+{off}];"));
                    self.line("xor.b32 %t2, %t2, %t1;");
                }
                _ => self.line(&format!("ld.global.{ty} %t2, [%l2+{off}];")),
            }
            self.line("mad.lo.u32 %r, %r, 5, %t2;");
        }
    }

    /// The end: what a thread has goes to its own place, or is added there, or to that of its number in the block, where all blocks add.
    fn end(&mut self) {
        let sums = 1 + self.rng.below(2);
        match self.rng.below(5) {
            4 if !self.writes => self.end_of_block(),
            0 => {
                self.line("mul.wide.s32 %l1, %idx, 4;");
                self.line("add.s64 %l1, %out, %l1;");
                self.line("red.global.add.u32 [%l1], %r;");
            }
            1 if !self.writes => {
                for _ in 0..sums {
                    let skip = self.label();
                    self.condition("%p1");
                    if self.rng.one_in(2) {
                        self.line(&format!("@%p1 bra {skip};"));
                    }
                    self.line("mul.wide.u32 %l1, %lin, 4;");
                    self.line("add.s64 %l1, %out, %l1;");
                    let value = *self.rng.pick(&["%r", "%s", "1", "%idx"]);
                    self.line(&format!("red.relaxed.gpu.global.add.s32 [%l1], {value};"));
                    let _ = writeln!(self.text, "{skip}:");
                }
            }
            2 if !self.writes && self.rng.one_in(2) => self.store_apart(),
            _ => self.store(),
        }
    }

    fn store(&mut self) {
        self.writes = true;
        self.line("mul.wide.s32 %l1, %idx, 4;");
        self.line("add.s64 %l1, %out, %l1;");
        self.line("st.global.u32 [%l1], %r;");
    }

    /// Reads a few elements in a loop that all threads run as often.
    fn run(&mut self) {
        let (top, n) = (self.label(), 1 + self.rng.below(4));
        let step = *self.rng.pick(&[4, 128]);
        self.line("mul.wide.s32 %l2, %idx, 4;");
        self.line("add.s64 %l2, %in, %l2;");
        self.line("mov.u32 %c, 0;");
        let _ = writeln!(self.text, "{top}:");
        self.line("ld.global.u32 %t2, [%l2];");
        self.line("xor.b32 %r, %r, %t2;");
        self.line(&format!("add.s64 %l2, %l2, {step};"));
        self.line("add.u32 %c, %c, 1;");
        self.line(&format!("setp.lt.u32 %p1, %c, {n};"));
        self.line(&format!("@%p1 bra {top};"));
    }

    /// Hands a value to a neighbour through shared memory.
    fn exchange(&mut self) {
        let off = *self.rng.pick(&[0, 4, 64, 128, -4]);
        self.line("st.shared.u32 [%at], %r;");
        self.line("bar.sync 0;");
        let skip = self.label();
        let bound = *self.rng.pick(&[1, 8, 16, 31, 32, 40, 64, 200]);
        self.line(&format!("setp.ge.u32 %p1, %lin, {bound};"));
        self.line(&format!("@%p1 bra {skip};"));
        self.line(&format!("ld.shared.u32 %t2, [%at+{off}];"));
        self.line("add.u32 %r, %r, %t2;");
        let _ = writeln!(self.text, "{skip}:");
        self.line("bar.sync 0;");
    }

    /// Adds up in halves: turns in which ever fewer warps do something.
    fn tree(&mut self) {
        self.line("st.shared.u32 [%at], %r;");
        let first = *self.rng.pick(&[256u32, 128, 64, 32]);
        if self.rng.one_in(2) {
            let mut s = first;
            while s > 0 {
                let skip = self.label();
                self.line("bar.sync 0;");
                let (cmp, bound) = *self.rng.pick(&[("ge.u32", s), ("gt.u32", s - 1), ("ge.s32", s)]);
                self.line(&format!("setp.{cmp} %p1, %lin, {bound};"));
                self.line(&format!("@%p1 bra {skip};"));
                self.line(&format!("ld.shared.u32 %t1, [%at+{}];", 4 * s));
                self.line("ld.shared.u32 %t2, [%at];");
                self.line("mad.lo.u32 %t2, %t2, 3, %t1;");
                self.line("st.shared.u32 [%at], %t2;");
                let _ = writeln!(self.text, "{skip}:");
                s /= 2;
            }
        } else {
            let (top, skip) = (self.label(), self.label());
            self.line(&format!("mov.u32 %c, {first};"));
            let _ = writeln!(self.text, "{top}:");
            self.line("bar.sync 0;");
            self.line("setp.ge.u32 %p1, %lin, %c;");
            self.line(&format!("@%p1 bra {skip};"));
            self.line("shl.b32 %t1, %c, 2;");
            self.line("add.u32 %t1, %at, %t1;");
            self.line("ld.shared.u32 %t2, [%t1];");
            self.line("ld.shared.u32 %t1, [%at];");
            self.line("mad.lo.u32 %t2, %t1, 3, %t2;");
            self.line("st.shared.u32 [%at], %t2;");
            let _ = writeln!(self.text, "{skip}:");
            self.line("shr.u32 %c, %c, 1;");
            self.line("setp.ne.u32 %p1, %c, 0;");
            self.line(&format!("@%p1 bra {top};"));
        }
        self.line("bar.sync 0;");
        self.line("ld.shared.u32 %r, [%at];");
        self.line("bar.sync 0;");
    }

    /// Work on neighbours that ends in stores alone, for lanes that are the same in all warps, or for whole warps: what stands outside of a picture does nothing.
    fn part(&mut self) {
        self.writes = true;
        let skip = self.label();
        // A turn may start here.
        let waits = self.depth == 0 && self.rng.one_in(2);
        if waits {
            self.line("bar.sync 0;");
        }
        let (mut p, n) = ("%p1", 1 + self.rng.below(4));
        for _ in 0..n {
            let a = *self.rng.pick(&["%x", "%x", "%y", "%y", "%lin"]);
            let cmp = *self.rng.pick(&["lt.s32", "ge.s32", "gt.u32", "le.s32", "eq.s32", "ne.u32"]);
            let bound = *self.rng.pick(&["0", "1", "2", "7", "31", "40", "%n"]);
            self.line(&format!("setp.{cmp} {p}, {a}, {bound};"));
            if p == "%p2" {
                let op = *self.rng.pick(&["or", "or", "and"]);
                self.line(&format!("{op}.pred %p1, %p1, %p2;"));
            }
            p = "%p2";
        }
        if self.rng.one_in(4) {
            self.line("not.pred %p1, %p1;");
        }
        let not = *self.rng.pick(&["", "!"]);
        self.line(&format!("@{not}%p1 bra {skip};"));
        self.line("mul.wide.s32 %l1, %idx, 4;");
        self.line("add.s64 %l2, %in, %l1;");
        let off = *self.rng.pick(&[-4, 0, 4, 64]);
        self.line(&format!("ld.global.u32 %t1, [%l2+{off}];"));
        self.line("ld.global.u32 %t2, [%l2];");
        self.line("mad.lo.u32 %t2, %t2, 3, %t1;");
        self.line("xor.b32 %t2, %t2, %r;");
        self.line("add.s64 %l1, %out, %l1;");
        match self.rng.below(4) {
            0 => self.line("st.global.u8 [%l1], %t2;"),
            1 => self.line("st.global.u16 [%l1+2], %t2;"),
            2 if waits => {
                self.line("mul.wide.u32 %l2, %t2, 77;");
                self.line("mov.u32 %t1, tile;\n    sub.u32 %t1, %at, %t1;\n    add.u32 %t1, %at, %t1;");
                self.line("st.shared.u64 [%t1], %l2;");
            }
            _ => self.line("st.global.u32 [%l1], %t2;"),
        }
        let _ = writeln!(self.text, "{skip}:");
        if waits {
            self.line("bar.sync 0;");
            self.line("ld.shared.u32 %t1, [tile+4];");
            self.line("xor.b32 %r, %r, %t1;");
            self.line("bar.sync 0;");
        }
    }

    /// Goes through tiles in a loop that all warps run as often, with barriers, while pointers walk.
    fn tiles(&mut self) {
        let top = self.label();
        let step = *self.rng.pick(&[0, 4, 4, 64, 128]);
        self.line("mul.wide.s32 %l2, %idx, 4;");
        self.line("add.s64 %l2, %in, %l2;");
        self.line("mov.u32 %t1, %tid.x;");
        self.line("shl.b32 %t1, %t1, 2;");
        self.line("mov.u32 %col, tile;");
        self.line("add.u32 %col, %col, %t1;");
        self.line("sub.u32 %row, %at, %t1;");
        self.line("mov.u32 %c, 0;");
        match self.rng.below(3) {
            0 => self.line("and.b32 %most, %n, 3;"),
            n => self.line(&format!("mov.u32 %most, {n};")),
        }
        let _ = writeln!(self.text, "{top}:");
        self.line("ld.global.u32 %t2, [%l2];");
        self.line("st.shared.u32 [%at], %t2;");
        self.line("bar.sync 0;");
        let fma = *self.rng.pick(&["mad.lo.u32", "mad.lo.u32", "fma.rn.f32"]);
        for k in 0..1 + self.rng.below(6) {
            let [first, second] = *self.rng.pick(&[["%t1", "%t2"], ["%t1", "%t2"], ["%t2", "%t1"]]);
            self.line(&format!("ld.shared.u32 {first}, [%col+{}];", 64 * k));
            self.line(&format!("ld.shared.u32 {second}, [%row+{}];", 4 * k));
            self.line(&format!("{fma} %r, %t1, %t2, %r;"));
        }
        self.line("bar.sync 0;");
        self.line(&format!("add.s64 %l2, %l2, {step};"));
        if self.rng.one_in(4) {
            // Warps disagree.
            self.line("add.u32 %c, %c, 1;");
            self.line("and.b32 %t1, %lin, 1023;");
            self.line("setp.lt.u32 %p2, %t1, %n;");
            self.line("@%p2 add.u32 %r, %r, %c;");
        } else {
            self.line("add.u32 %c, %c, 1;");
        }
        self.line("setp.lt.u32 %p1, %c, %most;");
        self.line(&format!("@%p1 bra {top};"));
    }

    /// A loop without barriers whose number of turns all threads know, or only some: values change places in it, guards stand in it, and other loops.
    fn rounds(&mut self) {
        let (top, count, most) = (self.label(), format!("%c{}", self.depth), format!("%most{}", self.depth));
        let turns = 1 + self.rng.below(9);
        match self.rng.below(4) {
            0 => self.line(&format!("mov.u32 {most}, {turns};")),
            1 => self.line(&format!("and.b32 {most}, %n, 7;")),
            2 => self.line(&format!("mov.u32 {most}, %ctaid.x;\n    and.b32 {most}, {most}, 3;")),
            _ => {
                self.line(&format!("and.b32 {most}, %n, 3;"));
                self.condition("%p1");
                self.line(&format!("@%p1 add.u32 {most}, {most}, 2;"));
            }
        }
        self.line(&format!("mov.u32 {count}, 0;"));
        if self.rng.one_in(2) {
            // No turn, or some.
            let (none, end) = (format!("setp.eq.u32 %p1, {most}, 0;"), self.label());
            self.line(&none);
            self.line(&format!("@%p1 bra {end};"));
            self.turns_of_rounds(&top, &count, &most);
            let _ = writeln!(self.text, "{end}:");
        } else {
            self.turns_of_rounds(&top, &count, &most);
        }
        if self.rng.one_in(3) {
            self.line(&format!("add.u32 %r, %r, {count};"));
        }
    }

    fn turns_of_rounds(&mut self, top: &str, count: &str, most: &str) {
        let walks = self.rng.one_in(3);
        if walks {
            self.line("mul.wide.s32 %l2, %idx, 4;");
            self.line("add.s64 %l2, %in, %l2;");
        }
        let _ = writeln!(self.text, "{top}:");
        for _ in 0..1 + self.rng.below(6) {
            match self.rng.below(12) {
                0 | 1 => self.line("mov.u32 %t1, %r;\n    mov.u32 %r, %s;\n    mov.u32 %s, %t1;"),
                2 => self.line("shl.b32 %t1, %r, 13;\n    xor.b32 %r, %r, %t1;"),
                3 => self.line("shr.u32 %t1, %s, 7;\n    add.u32 %s, %r, %t1;"),
                4 => self.line("mad.wide.u32 %w, %r, 5, %w;"),
                5 => self.line("cvt.u32.u64 %t1, %w;\n    shr.u64 %w, %w, 3;\n    xor.b32 %s, %s, %t1;"),
                6 => self.line("fma.rn.f32 %r, %r, %s, %r;"),
                7 => self.line(&format!("mad.lo.u32 %r, %r, 3, {count};")),
                8 if walks => {
                    let step = *self.rng.pick(&[0, 4, 128]);
                    self.line(&format!("ld.global.u32 %t2, [%l2];\n    add.s64 %l2, %l2, {step};"));
                    self.line("xor.b32 %r, %r, %t2;");
                }
                9 => self.line("ld.global.u32 %t2, [%in+8];\n    add.u32 %s, %s, %t2;"),
                10 if self.depth < 2 => {
                    self.depth += 1;
                    match self.rng.below(3) {
                        0 => self.rounds(),
                        1 => self.guard(),
                        _ => self.load(),
                    }
                    self.depth -= 1;
                }
                _ => self.line("mad.lo.u32 %s, %s, 7, %lin;"),
            }
        }
        self.line(&format!("add.u32 {count}, {count}, 1;"));
        self.line(&format!("setp.lt.u32 %p1, {count}, {most};"));
        self.line(&format!("@%p1 bra {top};"));
    }

    /// A loop that is counted up or down to a bound, whose addresses go up or down in each turn: where barriers stand in it, through a tile too. Some come to where
    /// nothing is.
    fn climb(&mut self) {
        let (top, count, most) = (self.label(), format!("%c{}", self.depth), format!("%most{}", self.depth));
        let turns = 1 + self.rng.below(6) as i64;
        let by: i64 = *self.rng.pick(&[1, 2, 3, 4, 16, -1, -2, -3, -16]);
        let ty = *self.rng.pick(&["u32", "s32"]);
        let again = match (self.rng.below(3), by > 0) {
            (0, _) => "ne",
            (1, true) => "lt",
            (2, true) => "le",
            (1, false) => "gt",
            _ => "ge",
        };
        // The count behind the last turn is the bound, or the first one that is not above or below it.
        let slack = match again {
            "ne" => 0,
            "lt" | "gt" => by.signum() * self.rng.below(by.unsigned_abs() as usize) as i64,
            _ => by.signum() * (1 + self.rng.below(by.unsigned_abs() as usize) as i64),
        };
        let first: i64 = if again == "ne" { *self.rng.pick(&[0, 7, -2, 0x7fff_fffe]) } else { 200 };
        let is_known = self.rng.one_in(2);
        if is_known {
            self.line(&format!("mov.u32 {count}, {};", first as i32));
            self.line(&format!("mov.u32 {most}, {};", (first + by * turns - slack) as i32));
        } else {
            self.line(&format!("and.b32 {count}, %n, 3;\n    add.u32 {count}, {count}, {};", first as i32));
            self.line(&format!("add.u32 {most}, {count}, {};", by * turns - slack));
        }
        let (step, tile_step) = (*self.rng.pick(&[0, 4, 8, 64, 128, -4, 2]), *self.rng.pick(&[0, 4, 64, 128]));
        let is_named = self.rng.one_in(2);
        if is_named {
            self.line(&format!("and.b32 %t1, %n, 0;\n    add.u32 %t1, %t1, {step};\n    cvt.s64.s32 %l1, %t1;"));
        }
        self.line("mul.wide.s32 %l2, %idx, 4;\n    add.s64 %l2, %in, %l2;");
        let waits = self.depth == 0 && self.rng.one_in(2);
        if waits {
            self.line(
                "mov.u32 %t1, %tid.x;\n    shl.b32 %t1, %t1, 2;\n    mov.u32 %col, tile;\n    add.u32 %col, %col, %t1;",
            );
        }
        let _ = writeln!(self.text, "{top}:");
        let rise = if is_named { "add.s64 %l2, %l2, %l1;".to_owned() } else { format!("add.s64 %l2, %l2, {step};") };
        let is_early = self.rng.one_in(4);
        if is_early {
            self.line(&rise);
        }
        for k in 0..1 + self.rng.below(3) {
            self.line(&format!("ld.global.u32 %t2, [%l2+{}];\n    xor.b32 %r, %r, %t2;", 4 * k));
        }
        if waits {
            self.line("st.shared.u32 [%at], %r;\n    bar.sync 0;");
            for k in 0..1 + self.rng.below(3) {
                self.line(&format!("ld.shared.u32 %t1, [%col+{}];\n    mad.lo.u32 %s, %s, 5, %t1;", 4 * k));
            }
            self.line("bar.sync 0;");
            self.line(&format!("add.u32 %col, %col, {tile_step};"));
        }
        match self.rng.below(8) {
            0 => self.guard(),
            1 | 2 => self.line(&format!("mad.lo.u32 %s, %r, 3, {count};")),
            _ => {}
        }
        if !is_early {
            self.line(&rise);
        }
        self.line(&format!("add.u32 {count}, {count}, {by};\n    setp.{again}.{ty} %p1, {count}, {most};"));
        self.line(&format!("@%p1 bra {top};"));
        if self.rng.one_in(4) {
            self.line(&format!("cvt.u32.u64 %t1, %l2;\n    cvt.u32.u64 %t2, %in;\n    sub.u32 %t1, %t1, %t2;\n    mov.u32 %t2, 0;\n    add.u32 %r, %r, %t1;\n    add.u32 %r, %r, {count};"));
        }
    }

    fn statement(&mut self) {
        let top = self.depth == 0;
        match self.rng.below(53) {
            49.. if self.depth < 2 && !self.is_straight => self.unrolled(),
            47 | 48 if top => self.one_writes(),
            44..47 if top => self.scan(),
            41..44 => self.border(),
            // Edges have room for so many rows.
            38..41 if top && self.rows <= 48 => self.edges(),
            36 | 37 if top => self.meet(),
            33..36 => self.pick_some(),
            31 | 32 if top => self.halves(),
            28..31 => self.cut(),
            25..28 => self.apart(),
            22..25 => self.asked(),
            20 | 21 => self.neighbours(),
            17..20 if self.depth < 2 && !self.is_straight => self.climb(),
            14..17 if self.depth < 2 && !self.is_straight => self.rounds(),
            12 | 13 => self.part(),
            10 | 11 if top => self.tiles(),
            0 | 1 => self.load(),
            2 => self.run(),
            3 => self.store(),
            4 | 5 if self.depth < 2 => self.guard(),
            6 if top => self.exchange(),
            7 if top => self.tree(),
            9 if self.rng.one_in(2) => self.many_loads(),
            8 if top && self.rng.one_in(4) => {
                self.condition("%p1");
                self.line("@%p1 ret;");
            }
            _ => self.line("mad.lo.u32 %r, %r, 3, %idx;"),
        }
    }
}

/// A text whose barriers have other numbers in two of five: one for all of them, or several in turn.
fn numbered(text: &str, seed: u64) -> String {
    let numbers: &[u32] = match seed % 5 {
        3 => &[5],
        4 => &[0, 1, 15],
        _ => return text.to_owned(),
    };
    let mut pieces = text.split("bar.sync 0;");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.zip(numbers.iter().cycle()).fold(first, |text, (piece, id)| format!("{text}bar.sync {id};{piece}"))
}

/// The kernel of a seed.
pub fn kernel(seed: u64) -> Kernel {
    let mut rng = Rng::new(seed);
    let seen = if rng.one_in(3) { Block::other(&mut rng) } else { Block::plain(*rng.pick(BLOCKS)) };
    let block = seen.seen;
    // Of small blocks also rows so long that they are asked about as a whole.
    let rows: &[u32] = if block[0] * block[1] <= 128 { &[1, 2, 5, 9, 12, 30, 70] } else { &[1, 1, 2, 3, 5, 9] };
    // Grids that are higher than wide have short rows, whose first and last blocks are many.
    let is_high = block[0] * block[1] <= 128 && rng.one_in(3);
    let grid = if is_high {
        [*rng.pick(&[1, 2, 3, 5, 8]), *rng.pick(&[4, 15, 16, 17, 35])]
    } else {
        [*rng.pick(rows), *rng.pick(&[1, 1, 1, 2, 3])]
    };
    let total = block[0] * block[1] * grid[0] * grid[1];
    let few = u32::try_from(rng.below(70)).unwrap_or(0);
    let n = *rng.pick(&[total, total.saturating_sub(few), total.saturating_sub(1), total / 2, few, total + 7]);
    let short = *rng.pick(&[0, 0, 0, 0, 1, few]);
    let words = (total + *rng.pick(&[0, 33, 200, 200, 200])).saturating_sub(short).max(1);
    let threads = block[0] * block[1];
    let mut m = Maker {
        rng,
        text: String::new(),
        labels: 0,
        depth: 0,
        writes: false,
        is_straight: false,
        threads,
        rows: block[1],
    };
    // Kernels without loops among those with them: what is done once a block counts there.
    m.is_straight = is_high && m.rng.one_in(2);
    for _ in 0..2 + m.rng.below(5) {
        m.statement();
    }
    m.line("xor.b32 %r, %r, %s;\n    cvt.u32.u64 %t1, %w;\n    add.u32 %r, %r, %t1;");
    m.end();
    // Triton puts numbers of blocks and threads together bit by bit.
    let x = if block[0].is_power_of_two() && m.rng.one_in(2) {
        let last = block[0] - 1;
        let by = block[0].ilog2();
        format!("shl.b32 %x, %t0, {by};\n    and.b32 %t2, %t2, {last};\n    or.b32 %x, %x, %t2;")
    } else {
        "mad.lo.s32 %x, %t0, %t1, %t2;".to_owned()
    };
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n)\n{{\n    \
         .reg .pred %p<3>, %e<2>;\n    .reg .b32 %r, %t<3>, %c, %x, %y, %n, %idx, %lin, %at, %col, %row, %most, %s;\n    \
         .reg .b32 %c<3>, %most<3>;\n    .reg .b64 %l<3>, %m<2>, %in, %out, %w;\n    \
         .shared .align 4 .b8 tile[{TILE}];\n    ld.param.u64 %out, [out];\n    ld.param.u64 %in, [in];\n    ld.param.u32 %n, [n];\n    \
         mov.u32 %t0, %ctaid.x;\n    mov.u32 %t1, %ntid.x;\n    mov.u32 %t2, %tid.x;\n    {x}\n    \
         {NUMBER}mov.u32 %c, %nctaid.x;\n    mul.lo.s32 %c, %c, %t1;\n    \
         mov.u32 %t0, %ctaid.y;\n    mov.u32 %t1, %ntid.y;\n    mov.u32 %t2, %tid.y;\n    mad.lo.s32 %y, %t0, %t1, %t2;\n    \
         mad.lo.s32 %idx, %y, %c, %x;\n    mov.u32 %at, tile;\n    shl.b32 %t0, %lin, 2;\n    add.u32 %at, %at, %t0;\n    \
         mov.u32 %r, %idx;\n    mov.u32 %s, %lin;\n    cvt.u64.u32 %w, %n;\n{}    ret;\n}}\n",
        numbered(&m.text, seed)
    );
    let text = seen.text(text, "mov.u32 %t0, %ctaid.x;\n    mov.u32 %t1, ");
    Kernel { text, block: seen, grid, n, words: usize::try_from(words).unwrap_or(1) }
}
