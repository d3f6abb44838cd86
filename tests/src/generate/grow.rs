//! Grows trees of statements.
//!
//! A statement is grown for a place: where all threads of the block come by together there may be barriers, where all lanes of a warp do,
//! warp-synchronising instructions. Both are the same place here, since only uniform ways keep them.

use super::templates::{Class, Literal, Place, Special, Template, spell};
use super::{Func, Node, REGS, TABLE_ROWS, TALLIES};
use super::{compiled, pressure};
use crate::filetest::values::edge;
use crate::rng::Rng;

/// Where a statement stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Site {
    /// All threads of the cluster come by together.
    Cluster,
    /// All threads of the block come by together.
    Together,
    /// Lanes may be apart.
    Apart,
    /// In a function that lanes may call apart; it has no buffers.
    Function,
}

impl Site {
    fn is_together(self) -> bool {
        matches!(self, Site::Cluster | Site::Together)
    }
}

/// A register that is the same in all threads of the block, and in all of the grid unless it is [`BLOCKWISE`].
pub(super) const UNIFORM: usize = 4;
/// The one that has the number of the block.
const BLOCKWISE: usize = 2;

pub(super) struct Grower<'r> {
    pub(super) rng: &'r mut Rng,
    templates: &'r [Vec<Template>],
    specials: &'r [Vec<Special>],
    threads: u32,
    funcs: usize,
    /// Statements that may still be made.
    budget: usize,
    /// Whether there are statements that kernels asked of devices have not.
    is_new: bool,
}

/// Functions and body of a kernel with blocks of that shape; `is_new`: with statements that kernels asked of devices have not.
pub fn grow(
    rng: &mut Rng,
    templates: &[Vec<Template>],
    specials: &[Vec<Special>],
    block: [u32; 3],
    is_new: bool,
) -> (Vec<Func>, Vec<Node>) {
    let n_funcs = rng.below(3);
    let mut g = Grower { rng, templates, specials, threads: block.iter().product(), funcs: 0, budget: 0, is_new };
    let mut funcs = Vec::new();
    for i in 0..n_funcs {
        g.budget = 12;
        let body = g.block(Site::Function, 1, 8);
        funcs.push(Func { name: format!("f{i}"), body });
        // A function calls only those before it, so calls end.
        g.funcs = i + 1;
    }
    g.budget = 30 + g.rng.below(60);
    let body = g.block(Site::Cluster, 0, 60);
    (funcs, body)
}

impl Grower<'_> {
    fn block(&mut self, site: Site, depth: usize, most: usize) -> Vec<Node> {
        let n = 1 + self.rng.below(most);
        let mut out = Vec::new();
        for _ in 0..n {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            out.push(self.statement(site, depth));
        }
        out
    }

    fn statement(&mut self, site: Site, depth: usize) -> Node {
        let kind = self.rng.below(100);
        match kind {
            0..=9 if depth < 4 => self.branch(site, depth),
            10..=15 if depth < 3 => self.repeat(site, depth),
            16..=18 if depth < 3 => self.switch(site, depth),
            19..=24 if site != Site::Function => self.load(),
            25 | 26 => self.alike(site),
            27..=34 if site != Site::Function => self.store(),
            35..=37 if site != Site::Function => self.tally(),
            38..=40 if site != Site::Function => self.local(),
            41..=43 if self.funcs > 0 => self.call(),
            44..=46 => self.carry(),
            47..=49 => self.pack(),
            50..=52 if site == Site::Cluster => self.cluster(),
            50..=55 if site.is_together() => self.exchange(),
            56..=65 if site.is_together() => self.warp(),
            66..=71 => self.special(),
            72..=74 if site != Site::Function && self.is_new && self.rng.one_in(2) => pressure::numbered(self),
            72..=74 if site != Site::Function => pressure::ends(self),
            75..=77 => pressure::registers(self),
            78..=80 if site != Site::Function => pressure::own_atomic(self),
            81..=84 if site != Site::Function => pressure::shared_chain(self),
            85..=87 if site != Site::Function => pressure::coordinates(self),
            88..=90 if site != Site::Function => compiled::piece(self),
            _ => Node::Lines(self.instruction()),
        }
    }

    pub(super) fn reg(&mut self, c: Class) -> String {
        format!("%{}{}", c.letter(), self.rng.below(REGS))
    }

    pub(super) fn r(&mut self) -> String {
        self.reg(Class::R)
    }

    pub(super) fn guard(&mut self) -> String {
        match self.rng.below(6) {
            0 => format!("@{} ", self.reg(Class::P)),
            1 => format!("@!{} ", self.reg(Class::P)),
            _ => String::new(),
        }
    }

    /// An instruction of a record.
    pub(super) fn instruction(&mut self) -> Vec<String> {
        let form = self.rng.below(self.templates.len());
        let t = self.rng.pick(&self.templates[form]).clone();
        let guard = self.guard();
        let dst: Vec<String> = t.dst.iter().map(|p| self.destination(p)).collect();
        let src: Vec<String> = t.src.iter().map(|p| self.source(p)).collect();
        vec![format!("{guard}{} {};", t.words, [dst, src].concat().join(", "))]
    }

    fn destination(&mut self, p: &Place) -> String {
        let first = self.rng.below(REGS);
        // The two must differ.
        let second = (first + 1 + self.rng.below(REGS - 1)) % REGS;
        match p.second {
            Some(c) => format!("%{}{first}|%{}{second}", p.class.letter(), c.letter()),
            None => format!("%{}{first}{}", p.class.letter(), p.selector),
        }
    }

    fn source(&mut self, p: &Place) -> String {
        if let Some(l) = p.literal
            && (l == Literal::Byte || self.rng.one_in(4))
        {
            let bits = edge(self.rng);
            return spell(l, bits);
        }
        let not = if p.negatable && self.rng.one_in(2) { "!" } else { "" };
        format!("{not}{}{}{}", p.sign, self.reg(p.class), p.selector)
    }

    fn branch(&mut self, site: Site, depth: usize) -> Node {
        let uniform = site.is_together() && self.rng.one_in(2);
        let (bit, u) = (self.rng.below(32), self.rng.below(UNIFORM));
        let inner = inner(site, uniform.then_some(u));
        let then = self.block(inner, depth + 1, 6);
        let otherwise = if self.rng.one_in(2) { self.block(inner, depth + 1, 6) } else { vec![] };
        if !uniform {
            return Node::If { set: vec![], cond: self.reg(Class::P), then, otherwise };
        }
        // A predicate that is the same in all threads of the block.
        let set = vec![
            format!("shr.u32 %t0, %u{u}, {bit};"),
            "and.b32 %t0, %t0, 1;".into(),
            "setp.ne.u32 %q2, %t0, 0;".into(),
        ];
        Node::If { set, cond: "%q2".into(), then, otherwise }
    }

    fn repeat(&mut self, site: Site, depth: usize) -> Node {
        let uniform = site.is_together() && self.rng.one_in(2);
        let u = self.rng.below(UNIFORM);
        let inner = inner(site, uniform.then_some(u));
        let count = if uniform { format!("%u{u}") } else { self.r() };
        let leave = (!uniform && self.rng.one_in(2)).then(|| self.reg(Class::P));
        let body = self.block(inner, depth + 1, 6);
        Node::Loop { count, leave, body }
    }

    fn switch(&mut self, site: Site, depth: usize) -> Node {
        let inner = inner(site, None);
        let arms = (0..2 + self.rng.below(3)).map(|_| self.block(inner, depth + 1, 3)).collect();
        Node::Switch { index: self.r(), arms }
    }

    /// A load of the input: scattered, contiguous, or behind 32-bit arithmetic that wraps on its way to 64 bits.
    fn load(&mut self) -> Node {
        let mut lines = Vec::new();
        let mut offset = 0;
        match self.rng.below(5) {
            0 | 1 => {
                let from = self.r();
                lines.push(format!("and.b32 %t0, {from}, 0x7f;"));
                lines.push("mul.wide.u32 %a0, %t0, 16;".into());
                lines.push("add.u64 %a0, %in, %a0;".into());
            }
            2 => {
                lines.push("and.b32 %t0, %ti, 0xff;".into());
                lines.push("mad.wide.u32 %a0, %t0, 16, %in;".into());
            }
            3 if self.rng.one_in(2) => {
                // Neighbours of which the compiler knows nothing: most of them, or all.
                lines.push("shr.u32 %t1, %r1, 31;".into());
                lines.push("and.b32 %t1, %t1, %ti;".into());
                lines.push("xor.b32 %t0, %ti, %t1;".into());
                lines.push("and.b32 %t0, %t0, 0xff;".into());
                lines.push("mad.wide.u32 %a0, %t0, 16, %in;".into());
            }
            3 => {
                // Up beyond the top of 32 bits and down again.
                let by = 0xffff_ffe0_u32.wrapping_add(u32::try_from(self.rng.below(64)).unwrap_or(0));
                lines.push("and.b32 %t0, %ti, 0xff;".into());
                lines.push(format!("add.u32 %t0, %t0, {by:#x};"));
                lines.push(format!("sub.u32 %t0, %t0, {by:#x};"));
                lines.push("mul.wide.u32 %a0, %t0, 16;".into());
                lines.push("add.u64 %a0, %a0, %in;".into());
            }
            _ => {
                // Negative indices.
                lines.push("and.b32 %t0, %ti, 0x7f;".into());
                lines.push("sub.s32 %t0, %t0, 100;".into());
                lines.push("mul.wide.s32 %a0, %t0, 16;".into());
                lines.push("add.u64 %a0, %a0, %in;".into());
                offset = 1600;
            }
        }
        let guard = self.guard();
        let how = match self.rng.below(8) {
            0 | 1 => "ld.global.nc",
            2 => "ld.volatile.global",
            3 => "ld.relaxed.gpu.global",
            4 => "ld.acquire.gpu",
            _ => "ld.global",
        };
        let at = format!("[%a0+{offset}]");
        lines.push(match self.rng.below(14) {
            0 => format!("{guard}{how}.u8 {}, {at};", self.r()),
            1 => format!("{guard}{how}.s8 {}, {at};", self.reg(Class::H)),
            2 => format!("{guard}{how}.s16 {}, {at};", self.r()),
            3 => format!("{guard}{how}.u64 {}, {at};", self.reg(Class::L)),
            4 => format!("{guard}{how}.s32 {}, {at};", self.reg(Class::L)),
            5 => format!("{guard}{how}.v2.u32 {{%r2, %r5}}, {at};"),
            6 | 7 => format!("{guard}{how}.v4.b32 {{%r0, %r2, %r7, %r3}}, {at};"),
            8 => format!("{guard}{how}.v2.b64 {{%l2, %l5}}, {at};"),
            9 => format!("{guard}{how}.v4.s8 {{%r1, %r6, %r4, %r0}}, {at};"),
            10 => format!("{guard}{how}.v2.u8 {{%h1, %h2}}, {at};"),
            11 => format!("{guard}{how}.v4.u16 {{%h3, %h0, %h2, %h1}}, {at};"),
            12 => format!("{guard}{how}.v2.s16 {{%r3, %r6}}, {at};"),
            _ => format!("{guard}{how}.b32 {}, {at};", self.r()),
        });
        Node::Lines(lines)
    }

    /// A store into the thread's own part: words beside those of the neighbours, or a piece of its own.
    fn store(&mut self) -> Node {
        let guard = self.guard();
        let how = match self.rng.below(8) {
            0 => "st.volatile.global",
            1 => "st.relaxed.gpu.global",
            2 => "st.release.gpu",
            _ => "st.global",
        };
        // Of the part that threads share, the first half is for words, the third quarter for tuples of 8 bytes, the last one for tuples of 16.
        if self.rng.one_in(2) {
            let (place, bytes, what) = match self.rng.below(12) {
                0..6 => (self.rng.below(8), 4, format!("b32 [%a0], {}", self.r())),
                6 => (self.rng.below(8), 4, format!("v4.u8 [%a0], {{{}, %r3, %r1, %r6}}", self.r())),
                7 => (self.rng.below(8), 4, "v2.b16 [%a0], {%h1, %h3}".to_owned()),
                8 => (4 + self.rng.below(2), 8, format!("v2.b32 [%a0], {{{}, {}}}", self.r(), self.r())),
                9 => (4 + self.rng.below(2), 8, "v4.b16 [%a0], {%h2, %h1, %h3, %h0}".to_owned()),
                10 => (3, 16, format!("v4.b32 [%a0], {{{}, %r7, {}, %r2}}", self.r(), self.r())),
                _ => (3, 16, format!("v2.b64 [%a0], {{{}, %l1}}", self.reg(Class::L))),
            };
            return Node::Lines(vec![
                format!("mad.lo.u32 %t0, %nt, {place}, %ti;"),
                format!("mul.wide.u32 %a0, %t0, {bytes};"),
                "add.u64 %a0, %a0, %out;".into(),
                format!("{guard}{how}.{what};"),
            ]);
        }
        // The last 40 bytes of the own part are not used by the values stored at the end.
        Node::Lines(vec![match self.rng.below(4) {
            0 => format!("{guard}{how}.u8 [%own+{}], {};", 88 + self.rng.below(40), self.r()),
            1 => format!("{guard}{how}.b16 [%own+{}], {};", 88 + 2 * self.rng.below(20), self.reg(Class::H)),
            2 => format!("{guard}{how}.v2.b32 [%own+{}], {{{}, {}}};", 88 + 8 * self.rng.below(5), self.r(), self.r()),
            _ => format!("{guard}{how}.b64 [%own+{}], {};", 88 + 8 * self.rng.below(5), self.reg(Class::L)),
        }])
    }

    /// An atomic whose end result does not depend on the order. Each word knows one operation.
    fn tally(&mut self) -> Node {
        const OPS: [&str; 8] = ["add.u32", "min.u32", "max.s32", "and.b32", "or.b32", "xor.b32", "add.u64", "max.u64"];
        let word = self.rng.below(TALLIES);
        let op = OPS[word % OPS.len()];
        let guard = self.guard();
        let value = if op.ends_with("64") { self.reg(Class::L) } else { self.r() };
        let at = format!("[%tally+{}]", word * 8);
        Node::Lines(vec![match self.rng.below(3) {
            0 => format!("{guard}red.global.{op} {at}, {value};"),
            1 => format!("{guard}red.relaxed.gpu.{op} {at}, {value};"),
            _ => format!("{guard}atom.global.{op} _, {at}, {value};"),
        }])
    }

    fn local(&mut self) -> Node {
        let index = self.r();
        let mut lines = vec![
            format!("and.b32 %t0, {index}, 7;"),
            "mul.wide.u32 %a0, %t0, 8;".into(),
            "mov.u64 %a1, loc;".into(),
            "add.u64 %a0, %a0, %a1;".into(),
        ];
        let guard = self.guard();
        lines.push(match self.rng.below(4) {
            0 => format!("{guard}st.local.b64 [%a0], {};", self.reg(Class::L)),
            1 => format!("{guard}st.local.b32 [%a0+4], {};", self.r()),
            2 => format!("{guard}ld.local.b64 {}, [%a0];", self.reg(Class::L)),
            _ => format!("{guard}ld.local.s16 {}, [%a0+2];", self.r()),
        });
        Node::Lines(lines)
    }

    fn call(&mut self) -> Node {
        let (x, y, f, d) = (self.r(), self.reg(Class::L), self.rng.below(self.funcs), self.r());
        Node::Lines(vec![
            "{".into(),
            ".param .b32 a;".into(),
            ".param .b64 b;".into(),
            ".param .b32 c;".into(),
            format!("st.param.b32 [a], {x};"),
            format!("st.param.b64 [b], {y};"),
            format!("call (c), f{f}, (a, b);"),
            format!("ld.param.b32 {d}, [c];"),
            "}".into(),
        ])
    }

    /// A chain through the carry flag.
    fn carry(&mut self) -> Node {
        let c = if self.rng.one_in(2) { Class::R } else { Class::L };
        let t = if c == Class::R { "u32" } else { "u64" };
        let mut reg = || self.reg(c);
        let r: Vec<String> = (0..12).map(|_| reg()).collect();
        let (first, middle, last) = match self.rng.below(3) {
            0 => (
                format!("add.cc.{t} {}, {}, {};", r[0], r[1], r[2]),
                format!("addc.cc.{t} {}, {}, {};", r[3], r[4], r[5]),
                "addc",
            ),
            1 => (
                format!("sub.cc.{t} {}, {}, {};", r[0], r[1], r[2]),
                format!("subc.cc.{t} {}, {}, {};", r[3], r[4], r[5]),
                "subc",
            ),
            _ => (
                format!("mad.lo.cc.{t} {}, {}, {}, {};", r[0], r[1], r[2], r[9]),
                format!("madc.hi.cc.{t} {}, {}, {}, {};", r[3], r[4], r[5], r[10]),
                "addc",
            ),
        };
        Node::Lines(vec![first, middle, format!("{last}.{t} {}, {}, {};", r[6], r[7], r[8])])
    }

    fn pack(&mut self) -> Node {
        let (h0, h1) = (self.reg(Class::H), self.reg(Class::H));
        let (r0, r1) = (self.r(), self.r());
        let l = self.reg(Class::L);
        Node::Lines(vec![match self.rng.below(5) {
            0 => format!("mov.b32 {r0}, {{{h0}, {h1}}};"),
            1 => format!("mov.b64 {l}, {{{r0}, {r1}}};"),
            2 => format!("mov.b64 {{{r0}, _}}, {l};"),
            3 => format!("mov.b32 {{_, {h0}}}, {r0};"),
            _ => format!("mov.b64 {l}, {{{h0}, {h1}, {h1}, {h0}}};"),
        }])
    }

    /// Values go round the block through shared memory, or a reduction at the barrier.
    fn exchange(&mut self) -> Node {
        let (value, into, p) = (self.r(), self.r(), self.reg(Class::P));
        let n = self.threads;
        let id = self.rng.below(4);
        Node::Lines(match self.rng.below(5) {
            0 => vec![format!("bar.red.popc.u32 {into}, {id}, {p};")],
            1 => vec![format!("bar.red.and.pred {p}, {id}, !{p};")],
            2 => vec![format!("barrier.red.or.pred {p}, {id}, {p};")],
            _ => {
                let step = 1 + self.rng.below(40);
                vec![
                    "mov.u32 %t1, tile;".into(),
                    "mul.lo.u32 %t0, %lin, 4;".into(),
                    "add.u32 %t0, %t0, %t1;".into(),
                    format!("st.shared.b32 [%t0], {value};"),
                    format!("bar.sync {id};"),
                    format!("add.u32 %t2, %lin, {step};"),
                    format!("rem.u32 %t2, %t2, {n};"),
                    "mad.lo.u32 %t2, %t2, 4, %t1;".into(),
                    format!("ld.shared.b32 {into}, [%t2];"),
                    format!("barrier.sync {id};"),
                ]
            }
        })
    }

    /// A warp-synchronising instruction, of all lanes or of the two parts of a branch.
    fn warp(&mut self) -> Node {
        if self.rng.one_in(4) {
            return self.groups();
        }
        let (d, a, b, p, q) = (self.r(), self.r(), self.r(), self.reg(Class::P), self.reg(Class::P));
        if self.rng.one_in(3) {
            // Lanes of a part name only themselves, and read only from the first lane of the part.
            let cut = 1 + self.rng.below(31);
            let low = (1_u64 << cut) - 1;
            let (one, two) = (self.part(0), self.part(cut));
            let mut lines = vec![
                format!("setp.lt.u32 %q0, %lane, {cut};"),
                "@%q0 bra low$N;".into(),
                format!("and.b32 %t0, %mask, {:#x};", !low & 0xffff_ffff),
                two,
                "bra join$N;".into(),
                "low$N:".into(),
                format!("and.b32 %t0, %mask, {low:#x};"),
                one,
                "join$N:".into(),
            ];
            if self.rng.one_in(2) {
                lines.push("bar.warp.sync %mask;".into());
            }
            return Node::Lines(lines);
        }
        let k = self.rng.below(32);
        Node::Lines(match self.rng.below(11) {
            8 => {
                vec![format!("and.b32 %t0, {b}, 0x1c1c;"), format!("shfl.sync.bfly.b32 {d}|{p}, {a}, {k}, %t0, %mask;")]
            }
            9 => vec![format!("and.b32 %t0, {a}, 1;"), format!("match.all.sync.b32 {d}|{p}, %t0, %mask;")],
            10 => vec![format!("vote.sync.{}.pred {q}, {p}, %mask;", self.rng.pick(&["uni", "all"]))],
            0 => vec![format!("rem.u32 %t0, {b}, %lanes;"), format!("shfl.sync.idx.b32 {d}|{p}, {a}, %t0, 31, %mask;")],
            1 => vec![format!("and.b32 %t0, {b}, 7;"), format!("shfl.sync.up.b32 {d}|{p}, {a}, %t0, 0, %mask;")],
            2 => vec!["sub.u32 %t0, %lanes, 1;".into(), format!("shfl.sync.bfly.b32 {d}|{p}, {a}, {k}, %t0, %mask;")],
            3 => vec!["sub.u32 %t0, %lanes, 1;".into(), format!("shfl.sync.down.b32 {d}, {a}, {k}, %t0, %mask;")],
            4 => vec![format!("vote.sync.ballot.b32 {d}, {p}, %mask;")],
            5 => vec![format!("vote.sync.any.pred {q}, !{p}, %mask;")],
            6 => vec![format!("and.b32 %t0, {a}, 3;"), format!("match.any.sync.b32 {d}, %t0, %mask;")],
            _ => vec![format!("redux.sync.{}.s32 {d}, {a}, %mask;", self.rng.pick(&["add", "min", "max"]))],
        })
    }

    /// One warp-synchronising instruction by several groups of lanes, each of which names itself: tiles of the warp, lanes with the same value, or two parts that come by one place after
    /// the other.
    fn groups(&mut self) -> Node {
        let (d, a, b, p) = (self.r(), self.r(), self.r(), self.reg(Class::P));
        let op = self.rng.pick(&["add", "min", "max"]);
        let mut lines = match self.rng.below(3) {
            0 => {
                let size = 1 << self.rng.below(5);
                vec![
                    format!("and.b32 %t0, %lane, {};", 32 - size),
                    format!("mov.b32 %t1, {:#x};", (1_u32 << size) - 1),
                    "shl.b32 %t1, %t1, %t0;".into(),
                    "and.b32 %t1, %t1, %mask;".into(),
                ]
            }
            1 => vec![
                format!("and.b32 %t0, {b}, {};", self.rng.pick(&[1, 3, 5])),
                "match.any.sync.b32 %t1, %t0, %mask;".into(),
                "brev.b32 %t0, %t1;".into(),
                "clz.b32 %t0, %t0;".into(),
            ],
            _ => {
                let cut = 1 + self.rng.below(31);
                return Node::Lines(vec![
                    format!("setp.lt.u32 %q0, %lane, {cut};"),
                    format!("selp.b32 %t0, {:#x}, 0xffffffff, %q0;", (1_u64 << cut) - 1),
                    format!("selp.b32 %t1, 0xffffffff, {:#x}, %q0;", !((1_u64 << cut) - 1) & 0xffff_ffff),
                    "and.b32 %t0, %t0, %mask;".into(),
                    "and.b32 %t1, %t1, %mask;".into(),
                    format!("redux.sync.{op}.s32 {d}, {a}, %t0;"),
                    format!("redux.sync.{op}.s32 {b}, {d}, %t1;"),
                ]);
            }
        };
        // The first lane of a group is in `%t0`, the group in `%t1`.
        lines.push(match self.rng.below(6) {
            0 => format!("vote.sync.ballot.b32 {d}, {p}, %t1;"),
            1 => format!("vote.sync.{}.pred {p}, !{p}, %t1;", self.rng.pick(&["any", "all", "uni"])),
            2 => format!("shfl.sync.idx.b32 {d}|{p}, {a}, %t0, 31, %t1;"),
            3 => format!("match.all.sync.b32 {d}|{p}, {a}, %t1;"),
            4 => "bar.warp.sync %t1;".into(),
            _ => format!("redux.sync.{op}.s32 {d}, {a}, %t1;"),
        });
        Node::Lines(lines)
    }

    /// What one part of a branch does, with its mask in `%t0`.
    fn part(&mut self, first: usize) -> String {
        let (d, a, p) = (self.r(), self.r(), self.reg(Class::P));
        match self.rng.below(5) {
            0 => format!("vote.sync.ballot.b32 {d}, !{p}, %t0;"),
            1 => format!("vote.sync.all.pred {p}, {p}, %t0;"),
            2 => format!("redux.sync.{}.b32 {d}, {a}, %t0;", self.rng.pick(&["and", "or", "xor"])),
            3 => format!("shfl.sync.idx.b32 {d}, {a}, {first}, 31, %t0;"),
            _ => "bar.warp.sync %t0;".into(),
        }
    }

    fn special(&mut self) -> Node {
        let row = self.rng.below(self.specials.len());
        let special = self.rng.pick(&self.specials[row]).clone();
        let guard = if special.whole { String::new() } else { self.guard() };
        let first = self.rng.below(REGS);
        let other = (first + 1) % REGS;
        Node::Lines(vec![guard + &special.text(&format!("%${first}"), &format!("%${other}"))])
    }

    /// A load at an address that many lanes share: the same in all of them, by row, by plane, or by what a special register holds.
    fn alike(&mut self, site: Site) -> Node {
        let u = self.rng.below(UNIFORM);
        let of_register: Vec<&Special> =
            self.specials.iter().flatten().filter(|s| s.words == "mov.u32" && !s.whole).collect();
        let mut lines = match self.rng.below(5) {
            0 => vec![format!("mov.u32 %t0, %u{u};")],
            1 => vec!["mov.u32 %t0, %tid.y;".into()],
            2 => vec!["mov.u32 %t0, %tid.z;".into()],
            3 => vec!["mov.u32 %t0, %ctaid.x;".into()],
            _ => vec![self.rng.pick(&of_register).text("%t0", "")],
        };
        let guard = if self.rng.one_in(4) {
            lines.push(format!("and.b32 %t1, %u{u}, {};", 1 << self.rng.below(4)));
            lines.push("setp.ne.u32 %q1, %t1, 0;".into());
            "@%q1 ".to_owned()
        } else {
            self.guard()
        };
        lines.push(format!("and.b32 %t0, %t0, {};", TABLE_ROWS - 1));
        lines.push("mul.wide.u32 %a0, %t0, 16;".into());
        let (r, l) = (self.r(), self.reg(Class::L));
        let kind = self.rng.below(if site == Site::Function { 2 } else { 4 });
        let (space, base) = match kind {
            0 | 1 => ("const", "table"),
            2 => ("global", "%in"),
            _ => ("param", "prow"),
        };
        if base == "%in" {
            lines.push("add.u64 %a0, %a0, %in;".into());
        } else {
            lines.push(format!("mov.u64 %a1, {base};"));
            lines.push("add.u64 %a0, %a0, %a1;".into());
        }
        let at = if self.rng.one_in(2) { "[%a0]" } else { "[%a0+8]" };
        lines.push(match self.rng.below(4) {
            0 => format!("{guard}ld.{space}.u64 {l}, {at};"),
            1 => format!("{guard}ld.{space}.s16 {r}, {at};"),
            2 => format!("{guard}ld.{space}.v2.u32 {{%r1, %r6}}, {at};"),
            _ => format!("{guard}ld.{space}.u32 {r}, {at};"),
        });
        Node::Lines(lines)
    }

    /// Values go from block to block of the cluster through shared memory: of the same thread, of one thread for all, or of any.
    fn cluster(&mut self) -> Node {
        let (value, into, any) = (self.r(), self.r(), self.r());
        let step = 1 + self.rng.below(3);
        let meet = ["barrier.cluster.arrive;", "barrier.cluster.wait;"].map(String::from);
        let mut lines = vec![
            "mov.u32 %t1, tile;".into(),
            "mad.lo.u32 %t0, %lin, 4, %t1;".into(),
            format!("st.shared.b32 [%t0], {value};"),
        ];
        lines.extend(meet.clone());
        lines.push("mov.u32 %t2, %cluster_nctarank;".into());
        lines.push(match self.rng.below(3) {
            0 => format!("mov.u32 %t3, {any};"),
            1 => format!("mov.u32 %t3, {step};"),
            _ => "mov.u32 %t3, %cluster_ctarank;".into(),
        });
        lines.push(format!("add.u32 %t3, %t3, {step};"));
        lines.push("rem.u32 %t3, %t3, %t2;".into());
        match self.rng.below(3) {
            0 => lines.push("mov.u32 %t0, %t1;".into()),
            1 => {
                lines.push(format!("rem.u32 %t0, {any}, {};", self.threads));
                lines.push("mad.lo.u32 %t0, %t0, 4, %t1;".into());
            }
            _ => {}
        }
        if self.rng.one_in(3) {
            lines.push("cvt.u64.u32 %a0, %t0;".into());
            lines.push("cvta.shared.u64 %a0, %a0;".into());
            lines.push("mapa.u64 %a0, %a0, %t3;".into());
            lines.push(format!("ld.b32 {into}, [%a0];"));
        } else {
            lines.push("mapa.shared::cluster.u32 %t0, %t0, %t3;".into());
            lines.push(format!("{}ld.shared::cluster.b32 {into}, [%t0];", self.guard()));
        }
        lines.extend(meet);
        Node::Lines(lines)
    }
}

/// The place inside a branch or a loop: by a register that is the same in all threads, or by others.
fn inner(site: Site, uniform: Option<usize>) -> Site {
    match (site, uniform) {
        (Site::Function, _) => Site::Function,
        (_, None) | (Site::Apart, _) => Site::Apart,
        (Site::Cluster, Some(u)) if u != BLOCKWISE => Site::Cluster,
        (Site::Cluster | Site::Together, Some(_)) => Site::Together,
    }
}
