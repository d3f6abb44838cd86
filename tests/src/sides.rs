//! Random kernels whose lanes part and, on each side, go through loops that change registers which were the same or even in all lanes before: registers that
//! sides share, one after the other, nested, with ways out.
//!
//! Takes: a seed. Gives: a [`Kernel`], PTX text with what it is launched with. The same seed gives the same kernel.

use std::fmt::Write;

use crate::engines::{Argument, Job, Launch};
use crate::rng::Rng;

const BLOCKS: &[[u32; 2]] =
    &[[32, 1], [32, 1], [64, 1], [128, 1], [12, 1], [33, 1], [48, 1], [1, 1], [16, 4], [8, 8], [32, 2], [100, 1]];
/// Registers that statements read and write.
const REGISTERS: usize = 6;
/// How deep sides and loops lie in each other, at most.
const DEPTH: u32 = 3;

/// A random kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// PTX.
    pub text: String,
    /// Threads of a block.
    pub block: [u32; 2],
    /// The number that it is launched with.
    pub n: u32,
}

impl Kernel {
    /// Its launch.
    pub fn job(&self) -> Job<'_> {
        let total = (2 * self.block[0] * self.block[1]) as usize;
        let input = (0..total).flat_map(|i| (i as u32).wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        let launch = Launch {
            entry: "k",
            grid: [2, 1, 1],
            block: [self.block[0], self.block[1], 1],
            shared_bytes: 0,
            args: vec![Argument::Buffer(0, 0), Argument::Buffer(1, 0), Argument::Scalar(u64::from(self.n))],
            cooperative: false,
            cluster: None,
        };
        Job {
            name: "sides.ptx",
            text: &self.text,
            buffers: vec![vec![0; 4 * total], input],
            addresses: vec![],
            launches: vec![launch],
            variables: vec![],
        }
    }
}

struct Maker {
    rng: Rng,
    text: String,
    labels: u32,
    /// Loops so far: each counts its turns in a register of its own, so that all end.
    loops: u32,
}

impl Maker {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "    {line}");
    }

    fn register(&mut self) -> String {
        format!("%v{}", self.rng.below(REGISTERS))
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    /// A comparison in `%p`: of what differs by lane, what is even in them, or what is the same.
    fn compare(&mut self) {
        let cmp = *self.rng.pick(&["lt", "ge", "gt", "le", "eq", "ne"]);
        let sign = *self.rng.pick(&['s', 'u']);
        let a = match self.rng.below(5) {
            0 => "%t".to_owned(),
            1 => "%in".to_owned(),
            2 => "%lane".to_owned(),
            _ => self.register(),
        };
        let b = match self.rng.below(4) {
            0 => "%n".to_owned(),
            1 => self.register(),
            _ => self.rng.pick(&["0", "4", "12", "16", "20", "33", "-3"]).to_string(),
        };
        self.line(&format!("setp.{cmp}.{sign}32 %p, {a}, {b};"));
    }

    /// A change of a register.
    fn change(&mut self) {
        let (d, a, b) = (self.register(), self.register(), self.register());
        let number = *self.rng.pick(&["1", "-2", "4", "7", "100", "%n"]);
        match self.rng.below(8) {
            0..4 => self.line(&format!("add.s32 {d}, {d}, {number};")),
            4 => self.line(&format!("add.s32 {d}, {a}, {b};")),
            5 => self.line(&format!("mov.u32 {d}, {a};")),
            6 => self.line(&format!("sub.s32 {d}, {number}, {a};")),
            _ => self.line(&format!("mad.lo.s32 %s, %s, 3, {a};")),
        }
    }

    /// Some statements, one after the other.
    fn statements(&mut self, depth: u32) {
        for _ in 0..1 + self.rng.below(3) {
            match self.rng.below(if depth < DEPTH { 6 } else { 3 }) {
                0..3 => self.change(),
                3 | 4 => self.sides(depth + 1),
                _ => self.turns(depth + 1),
            }
        }
    }

    /// Lanes that part, and meet behind both sides, or go on behind one of them.
    fn sides(&mut self, depth: u32) {
        let (other, end) = (self.label(), self.label());
        self.compare();
        self.line(&format!("@%p bra {other};"));
        self.statements(depth);
        if self.rng.one_in(3) {
            self.turns(depth + 1);
        }
        if self.rng.one_in(10) {
            self.line("st.global.u32 [%a], %s;\n    exit;");
        } else if !self.rng.one_in(4) {
            self.line(&format!("bra {end};"));
        }
        let _ = writeln!(self.text, "{other}:");
        if !self.rng.one_in(4) {
            self.turns(depth + 1);
        }
        self.statements(depth);
        let _ = writeln!(self.text, "{end}:");
    }

    /// A loop, which a few turns end whatever its registers say.
    fn turns(&mut self, depth: u32) {
        self.loops += 1;
        let (count, most) = (format!("%c{}", self.loops), 2 + self.rng.below(4));
        let (top, end) = (self.label(), self.label());
        self.line(&format!("mov.u32 {count}, 0;"));
        let _ = writeln!(self.text, "{top}:");
        self.change();
        if depth < DEPTH && self.rng.one_in(3) {
            self.statements(depth);
        } else {
            self.change();
        }
        self.line(&format!("add.u32 {count}, {count}, 1;\n    setp.ge.u32 %p, {count}, {most};\n    @%p bra {end};"));
        self.compare();
        self.line(&format!("@%p bra {top};"));
        let _ = writeln!(self.text, "{end}:");
    }
}

/// The kernel of a seed.
pub fn kernel(seed: u64) -> Kernel {
    let mut rng = Rng::new(seed ^ 0x51de_5a9a);
    let (block, n) = (*rng.pick(BLOCKS), *rng.pick(&[0, 1, 3, 12, 16, 31, 40]));
    let mut m = Maker { rng, text: String::new(), labels: 0, loops: 0 };
    for v in 0..REGISTERS {
        let start = match m.rng.below(6) {
            0 => "%n".to_owned(),
            1 => "%t".to_owned(),
            2 => "%in".to_owned(),
            _ => m.rng.pick(&["0", "1", "5", "17"]).to_string(),
        };
        match m.rng.below(3) {
            0 => m.line(&format!("mov.u32 %v{v}, {start};")),
            1 => m.line(&format!("shl.b32 %v{v}, %t, 1;\n    add.s32 %v{v}, %v{v}, {start};")),
            _ => m.line(&format!("sub.s32 %v{v}, {start}, %t;")),
        }
    }
    m.sides(0);
    m.statements(0);
    for v in 0..REGISTERS {
        m.line(&format!("mad.lo.s32 %s, %s, 5, %v{v};"));
    }
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n)\n{{\n    \
         .reg .pred %p;\n    .reg .b32 %v<{REGISTERS}>, %c<{}>, %t, %x, %y, %in, %lane, %n, %s;\n    .reg .b64 %a, %b;\n    \
         ld.param.u64 %a, [out];\n    ld.param.u64 %b, [in];\n    ld.param.u32 %n, [n];\n    \
         mov.u32 %t, %tid.x;\n    mov.u32 %x, %tid.y;\n    mov.u32 %y, %ntid.x;\n    mad.lo.u32 %x, %x, %y, %t;\n    \
         mov.u32 %lane, %ntid.y;\n    mul.lo.u32 %y, %y, %lane;\n    mov.u32 %lane, %ctaid.x;\n    mad.lo.u32 %x, %y, %lane, %x;\n    \
         mov.u32 %lane, %laneid;\n    mul.wide.u32 %b, %x, 4;\n    add.s64 %a, %a, %b;\n    ld.param.u64 %b, [in];\n    \
         mad.wide.u32 %b, %x, 4, %b;\n    ld.global.u32 %in, [%b];\n    and.b32 %in, %in, 31;\n    mov.u32 %s, 1;\n{}    \
         st.global.u32 [%a], %s;\n    ret;\n}}\n",
        m.loops + 1,
        m.text
    );
    Kernel { text, block, n }
}
