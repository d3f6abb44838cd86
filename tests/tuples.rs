//! Random kernels that load tuples (`.v2`, `.v4`, `.v8`), do the same to their elements, or nearly the same, and store tuples: all engines must give the same
//! bytes or the same report, whether tuples stay together in their registers or not.
//!
//! `HANDLOOM_KERNELS=1000` runs that many, `HANDLOOM_SEED=77` starts there. A failure prints its seed and its text.

use std::fmt::Write;

use handloom_tests::agree::{agree, agree_on};
use handloom_tests::engines::{Argument, Job, Launch, Way};
use handloom_tests::rng::Rng;

/// Kernels of a plain run.
const KERNELS: u64 = 150;

const BLOCKS: [u32; 9] = [1, 16, 31, 32, 33, 64, 100, 256, 512];

/// Elements of a tuple, and bits of one.
const TUPLES: [(usize, u32); 7] = [(2, 32), (4, 32), (4, 32), (8, 32), (2, 64), (4, 64), (2, 32)];

/// Ops of an element: `d` is the result, `a`, `b` and `c` are elements, `s` is a word that all lanes share, `h` a number of 32 bits that they share.
const WORDS: [&str; 14] = [
    "add.u32 d, a, b;",
    "add.u32 d, a, s;",
    "mul.lo.u32 d, a, 77;",
    "xor.b32 d, a, b;",
    "min.s32 d, a, b;",
    "sub.u32 d, b, a;",
    "shl.b32 d, a, h;",
    "div.u32 d, a, s;",
    "lop3.b32 d, a, b, s, 0xca;",
    "fma.rn.f32 d, a, s, b;",
    "add.rn.f32 d, a, b;",
    "mul.rn.ftz.f32 d, a, c;",
    "cvt.rn.f32.s32 d, a;",
    "max.f32 d, a, b;",
];
const DOUBLE_WORDS: [&str; 11] = [
    "add.u64 d, a, b;",
    "add.u64 d, a, s;",
    "mul.lo.u64 d, a, 77;",
    "mul.hi.u64 d, a, s;",
    "xor.b64 d, a, b;",
    "max.s64 d, a, b;",
    "shr.s64 d, a, h;",
    "fma.rn.f64 d, a, b, s;",
    "add.rn.f64 d, a, b;",
    "fma.rn.f32x2 d, a, b, s;",
    "cvt.rn.f64.s64 d, a;",
];

struct Kernel {
    text: String,
    block: u32,
    grid: u32,
    n: u32,
    bytes_in: usize,
    bytes_out: usize,
    /// Bytes that the first tuple lies behind the start of the buffer.
    first: u64,
}

struct Maker {
    rng: Rng,
    text: String,
    count: usize,
    bits: u32,
    /// Registers so far.
    regs: usize,
    tuples: Vec<Vec<String>>,
    /// Where all stores go, so that each place has one writer.
    stores_to: usize,
}

impl Maker {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "    {line}");
    }

    fn fresh(&mut self) -> Vec<String> {
        let first = self.regs;
        self.regs += self.count;
        (first..self.regs).map(|r| format!("%e{r}")).collect()
    }

    fn pick(&mut self) -> Vec<String> {
        self.rng.pick(&self.tuples).clone()
    }

    /// The tuple of the thread, mostly; of others elsewhere.
    fn address(&mut self, base: &str, whose: usize) {
        let bytes = self.count as u32 * self.bits / 8;
        match whose {
            0 => self.line("xor.b32 %t, %i, 1;"),
            1 => self.line("sub.u32 %t, %last, %i;"),
            2 => self.line("and.b32 %t, %i, 0xfffffff0;"),
            _ => self.line("mov.b32 %t, %i;"),
        }
        self.line(&format!("mad.wide.u32 %p, %t, {bytes}, {base};"));
    }

    fn load(&mut self) {
        let whose = self.rng.below(12);
        self.address("%in", whose);
        let to = self.fresh();
        let (n, bits) = (self.count, self.bits);
        let space = *self.rng.pick(&["ld.global", "ld.global", "ld.global.nc", "ld"]);
        self.line(&format!("{space}.v{n}.b{bits} {{{}}}, [%p];", to.join(", ")));
        self.tuples.push(to);
    }

    fn op(&mut self) {
        let all: &[&str] = if self.bits == 64 { &DOUBLE_WORDS } else { &WORDS };
        let (op, other) = (*self.rng.pick(all), *self.rng.pick(all));
        let [a, b, c] = std::array::from_fn(|_| self.pick());
        let to = self.fresh();
        // Mostly all elements alike; else one of them is not, or has its neighbour's source.
        let odd = self.rng.below(10);
        let lines: Vec<String> = (0..self.count)
            .map(|e| {
                let is_odd = e == 1;
                let from = if odd == 0 && is_odd { 0 } else { e };
                let words = if odd == 1 && is_odd { other } else { op };
                words
                    .split_inclusive(' ')
                    .map(|word| match word.trim_end_matches([' ', ',', ';']) {
                        "d" => word.replacen('d', &to[e], 1),
                        "a" => word.replacen('a', &a[from], 1),
                        "b" => word.replacen('b', &b[e], 1),
                        "c" => word.replacen('c', &c[e], 1),
                        "s" => word.replacen('s', "%s", 1),
                        "h" => word.replacen('h', "%h", 1),
                        _ => word.to_owned(),
                    })
                    .collect()
            })
            .collect();
        lines.iter().for_each(|line| self.line(line));
        self.tuples.push(to);
    }

    fn store(&mut self) {
        let mut from = self.pick();
        match self.rng.below(8) {
            0 => from.reverse(),
            1 => from[0] = self.pick()[0].clone(),
            _ => {}
        }
        self.address("%out", self.stores_to);
        let (n, bits) = (self.count, self.bits);
        let space = *self.rng.pick(&["st.global", "st.global", "st"]);
        self.line(&format!("{space}.v{n}.b{bits} [%p], {{{}}};", from.join(", ")));
    }
}

/// The kernel of a seed.
fn kernel(seed: u64) -> Kernel {
    let mut rng = Rng::new(seed);
    let block = *rng.pick(&BLOCKS);
    let grid = *rng.pick(&[1, 1, 2, 5]);
    let total = block * grid;
    let (count, bits) = *rng.pick(&TUPLES);
    let few = u32::try_from(rng.below(40)).unwrap_or(0);
    let n = *rng.pick(&[total, total, total.saturating_sub(few), total / 2, few]);
    let bytes = count * bits as usize / 8;
    let short = *rng.pick(&[0, 0, 0, 0, 0, 4, bytes]);
    let first = *rng.pick(&[0, 0, 0, 0, 0, 0, 0, 4]);
    let stores_to = *rng.pick(&[0, 1, 3, 3, 3, 3, 3, 3]);
    let mut m = Maker { rng, text: String::new(), count, bits, regs: 0, tuples: Vec::new(), stores_to };
    let guard = m.rng.below(4);
    match guard {
        0 => m.line("setp.ge.u32 %q, %i, %n;"),
        // Lanes go apart in each warp.
        1 => {
            m.line("and.b32 %t, %i, 5;");
            m.line("setp.eq.u32 %q, %t, 4;");
        }
        2 => {
            m.line("shr.u32 %t, %i, 4;");
            m.line("setp.eq.u32 %q, %t, 1;");
        }
        _ => {}
    }
    if guard < 3 {
        m.line("@%q bra $END;");
    }
    let turns = *m.rng.pick(&[0, 0, 0, 2]);
    if turns > 0 {
        m.line("mov.b32 %c, 0;");
        let _ = writeln!(m.text, "$AGAIN:");
    }
    m.load();
    for _ in 0..m.rng.below(7) {
        if m.rng.one_in(3) {
            m.load();
        } else {
            m.op();
        }
    }
    for _ in 0..1 + m.rng.below(2) {
        m.store();
    }
    if turns > 0 {
        m.line("add.u32 %c, %c, 1;");
        m.line("add.u64 %in, %in, 64;");
        m.line(&format!("setp.lt.u32 %q, %c, {turns};"));
        m.line("@%q bra $AGAIN;");
    }
    let word = if bits == 64 { ".b64" } else { ".b32" };
    let s = if bits == 64 { "mov.b64 %s, 0x3ff8000000000003;" } else { "mov.b32 %s, 0x3fc00003;" };
    // A number that the code does not know.
    let shared = if bits == 64 { "cvt.u64.u32 %s2, %n; add.u64 %s, %s, %s2;" } else { "add.u32 %s, %s, %n;" };
    let text = format!(
        ".version 8.8\n.target sm_100\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n)\n{{\n    \
         .reg .pred %q;\n    .reg .b32 %t, %i, %c, %n, %h, %last;\n    .reg .b64 %in, %out, %p;\n    .reg {word} %e<{}>, %s, %s2;\n    \
         ld.param.u64 %out, [out];\n    ld.param.u64 %in, [in];\n    ld.param.u32 %n, [n];\n    and.b32 %h, %n, 15;\n    {s}\n    {shared}\n    \
         mov.u32 %t, %ctaid.x;\n    mov.u32 %c, %ntid.x;\n    mov.u32 %i, %tid.x;\n    mad.lo.u32 %i, %t, %c, %i;\n    \
         mov.u32 %t, %nctaid.x;\n    mul.lo.u32 %last, %t, %c;\n    sub.u32 %last, %last, 1;\n{}$END:\n    ret;\n}}\n",
        m.regs.max(1),
        m.text
    );
    let bytes_out = total as usize * bytes + 64;
    let bytes_in = (bytes_out + 64 * turns).saturating_sub(64 + short).max(1 + first as usize);
    Kernel { text, block, grid, n, bytes_in, bytes_out, first }
}

/// Says what differs.
fn compare(seed: u64) -> Result<(), String> {
    let k = kernel(seed);
    let mut rng = Rng::new(seed ^ 0x5eed);
    let input = (0..k.bytes_in).map(|_| rng.next() as u8 & *rng.pick(&[0xff, 0xff, 0x3f, 0])).collect();
    let job = Job {
        name: "tuples.ptx",
        text: &k.text,
        buffers: vec![vec![0; k.bytes_out], input],
        addresses: vec![],
        launches: vec![Launch {
            entry: "k",
            grid: [k.grid, 1, 1],
            block: [k.block, 1, 1],
            shared_bytes: 0,
            args: vec![Argument::Buffer(0, 0), Argument::Buffer(1, k.first), Argument::Scalar(u64::from(k.n))],
            cooperative: false,
            cluster: None,
        }],
        variables: vec![],
    };
    let told = |way: Way, what: &str| {
        format!("seed {seed}, grid {}, block {}: [{}] {what}\n{}", k.grid, k.block, way.name, k.text)
    };
    agree(&job, &told)
}

#[test]
fn engines_agree_on_tuples() {
    agree_on(KERNELS, compare);
}
