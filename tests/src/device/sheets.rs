//! Questions about value instructions: sheets, kernels that execute some of them on many values, each result of each instruction a part.

use std::fmt::Write as _;

use handloom_isa::target::{Suffix, Target, Version};

use super::digest::{Nans, digest};
use super::{BLOCK, HEADER, Part, plain_launch};
use crate::engines::{Argument, Job};
use crate::filetest::values::edge;
use crate::generate::templates::{Class, Literal, Place, Template, spell, templates};
use crate::rng::Rng;

/// Threads of a sheet, each with values of its own.
const THREADS: usize = 4096;
/// Instructions of a sheet.
const TOGETHER: usize = 24;
/// Most sources of a value instruction.
const SOURCES: usize = 5;
/// Immediates of instructions that take nothing else.
const BYTES: [u64; 6] = [0xe8, 0x96, 0x1b, 0xca, 0x80, 0x3c];
/// Seeds of choices of qualifiers and of classes of registers.
const SEEDS: std::ops::Range<u64> = 1..4;
/// Bytes of a result: one for each thread, in a slot of eight.
const SLOTS: usize = 8 * THREADS;

/// Whether the manual leaves the results of an instruction open: approximations within bounds, or states that only other instructions know.
pub(super) fn is_open(words: &str) -> bool {
    words.contains(".approx") || ["div.full", "tanh", "ex2", "mbarrier"].iter().any(|o| words.starts_with(o))
}

/// Whether Handloom gives the NaN that the chip gives, which is the canonical one, except where results are `.f64`. The manual leaves it open (*Floating
/// Point Instructions*: "an unspecified NaN").
fn gives_its_nan(words: &str) -> bool {
    let opcode = words.split('.').next().unwrap_or_default();
    ["add", "sub", "mul", "fma", "mad", "min", "max", "div", "rcp", "sqrt"].contains(&opcode)
}

/// The types that an instruction names, results first.
pub(super) fn types(words: &str) -> impl Iterator<Item = &str> {
    let is_type = |w: &&str| {
        let digits = w.trim_start_matches(char::is_alphabetic);
        digits.len() < w.len() && digits.starts_with(|c: char| c.is_ascii_digit())
    };
    words.split('.').skip(1).filter(is_type)
}

/// An instruction that is asked about.
#[derive(Clone, Debug)]
struct Asked {
    /// Whether it has a guard, which is false in some threads; what its destination holds before is a source there.
    guarded: bool,
    /// Its text, with the names of sources and results.
    text: String,
    words: String,
    dst: Vec<Class>,
}

/// Instructions with the same sources.
#[derive(Clone, Debug)]
pub struct Sheet {
    asked: Vec<Asked>,
    text: String,
    results: usize,
}

/// All value instructions of the chip in sheets.
pub fn sheets() -> Vec<Sheet> {
    let version = Version { major: 8, minor: 7 };
    let target = Target { sm: 90, suffix: Suffix::Arch };
    let mut all: Vec<Asked> = Vec::new();
    for t in SEEDS.flat_map(|seed| templates(version, target, HEADER, seed)).flatten() {
        let has_byte = t.src.iter().any(|p| p.literal == Some(Literal::Byte));
        if !is_open(&t.words) {
            all.extend(BYTES.iter().take(if has_byte { BYTES.len() } else { 1 }).map(|byte| asked(&t, *byte)));
        }
    }
    let mut known = std::collections::HashSet::new();
    all.retain(|a| known.insert(a.text.clone()));
    let guarded = all.clone().into_iter().map(|a| Asked { guarded: true, text: format!("@%g {}", a.text), ..a });
    all.extend(guarded);
    all.chunks(TOGETHER).map(sheet).collect()
}

fn asked(t: &Template, byte: u64) -> Asked {
    let mut dst = Vec::new();
    let mut operands: Vec<String> = Vec::new();
    for p in &t.dst {
        let mut operand = format!("%d{}{}{}", p.class.letter(), dst.len(), p.selector);
        dst.push(p.class);
        if let Some(second) = p.second {
            let _ = write!(operand, "|%d{}{}", second.letter(), dst.len());
            dst.push(second);
        }
        operands.push(operand);
    }
    let source = |(k, p): (usize, &Place)| match p.literal {
        Some(Literal::Byte) => spell(Literal::Byte, byte),
        _ => format!("{}%{}{k}{}", p.sign, p.class.letter(), p.selector),
    };
    operands.extend(t.src.iter().enumerate().map(source));
    Asked { guarded: false, text: format!("{} {};", t.words, operands.join(", ")), words: t.words.clone(), dst }
}

fn sheet(asked: &[Asked]) -> Sheet {
    let mut text = format!(
        "{HEADER}.visible .entry k(.param .u64 in, .param .u64 out)\n{{\n.reg .pred %p<{SOURCES}>, %dp<3>, %g;\n\
         .reg .b16 %h<{SOURCES}>, %dh<3>;\n.reg .b32 %r<{SOURCES}>, %dr<3>, %i, %n, %t;\n\
         .reg .b64 %l<{SOURCES}>, %dl<3>, %in, %out, %at;\n\
         mov.u32 %i, %ctaid.x;\nmov.u32 %n, %ntid.x;\nmov.u32 %t, %tid.x;\nmad.lo.u32 %i, %i, %n, %t;\n\
         mul.wide.u32 %at, %i, 8;\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n\
         add.u64 %in, %in, %at;\nadd.u64 %out, %out, %at;\n"
    );
    for k in 0..SOURCES {
        let at = k * SLOTS;
        let _ = writeln!(
            text,
            "ld.global.b64 %l{k}, [%in+{at}];\nld.global.b32 %r{k}, [%in+{at}];\nld.global.b16 %h{k}, [%in+{at}];\n\
             and.b32 %t, %r{k}, 1;\nsetp.ne.u32 %p{k}, %t, 0;"
        );
    }
    // The guard differs from thread to thread in no simple way.
    text.push_str("popc.b32 %t, %i;\nand.b32 %t, %t, 1;\nsetp.ne.u32 %g, %t, 0;\n");
    let mut results = 0;
    for a in asked {
        for (k, class) in a.dst.iter().enumerate() {
            // What an instruction leaves of its destination is no result of an earlier one.
            let (letter, last) = (class.letter(), SOURCES - 1);
            let _ = match class {
                Class::P if a.guarded => writeln!(text, "mov.pred %dp{k}, %p{last};"),
                Class::P => writeln!(text, "setp.ne.u32 %dp{k}, %i, %i;"),
                Class::H | Class::R | Class::L if a.guarded => {
                    writeln!(text, "mov.{} %d{letter}{k}, %{letter}{last};", class.ty())
                }
                Class::H | Class::R | Class::L => writeln!(text, "mov.{} %d{letter}{k}, 0;", class.ty()),
            };
        }
        let _ = writeln!(text, "{}", a.text);
        for (k, class) in a.dst.iter().enumerate() {
            let (at, d) = (results * SLOTS, format!("%d{}{k}", class.letter()));
            let _ = match class {
                Class::P => writeln!(text, "selp.u32 %t, 1, 0, {d};\nst.global.b32 [%out+{at}], %t;"),
                Class::H | Class::R | Class::L => writeln!(text, "st.global.{} [%out+{at}], {d};", class.ty()),
            };
            results += 1;
        }
    }
    text.push_str("ret;\n}\n");
    Sheet { asked: asked.to_vec(), text, results }
}

/// The values of all sources, source by source: edges, numbers of each format, small integers, and sources that are nearly the first one.
fn sources() -> Vec<u8> {
    let mut rng = Rng::new(90);
    let mut all = vec![0; SOURCES * THREADS];
    for thread in 0..THREADS {
        for k in 0..SOURCES {
            let kind = if thread % 16 < 10 { thread % 16 } else { rng.below(10) };
            all[k * THREADS + thread] = value(kind, all[thread], &mut rng);
        }
    }
    all.iter().flat_map(|v: &u64| v.to_le_bytes()).collect()
}

fn f32_near_one(rng: &mut Rng) -> u64 {
    let field = 127 - 12 + rng.below(24) as u64;
    (rng.next() & 0x807f_ffff) | field << 23
}

fn value(kind: usize, first: u64, rng: &mut Rng) -> u64 {
    const F16: [u64; 16] = [
        0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x3c00, 0xbc00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x7c01, 0x3800,
        0x3555,
    ];
    const F32: [u64; 16] = [
        0,
        0x8000_0000,
        1,
        0x8000_0001,
        0x7f_ffff,
        0x80_0000,
        0x3f80_0000,
        0xbf80_0000,
        0x7f7f_ffff,
        0xff7f_ffff,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x7f80_0001,
        0x3f00_0000,
        0x4f80_0000,
    ];
    match kind {
        0 => edge(rng),
        1 => rng.next(),
        2 => (rng.below(140) as u64).wrapping_sub(70),
        3 => f32_near_one(rng) | f32_near_one(rng) << 32,
        4 => (0..4).fold(0, |w, _| w << 16 | *rng.pick(&F16)),
        5 => {
            let field = 1023 - 30 + rng.below(60) as u64;
            (rng.next() & (0x800f_ffff_ffff_ffff << rng.below(50) | 1 << 63)) | field << 52
        }
        6 => first ^ (rng.next() & [0, 1, 0x8000, 0x8000_0001][rng.below(4)]),
        7 => *rng.pick(&F32) | *rng.pick(&F32) << 32,
        8 => (0..4).fold(0, |w, _| w << 16 | (rng.next() & 0x83ff) | (10 + rng.below(10) as u64) << 10),
        _ => rng.next() & rng.next().rotate_left(7) & (u64::MAX << rng.below(64)),
    }
}

impl Sheet {
    /// It as a job.
    pub fn job<'t>(&'t self, name: &'t str) -> Job<'t> {
        Job {
            name,
            text: &self.text,
            buffers: vec![sources(), vec![0; self.results * SLOTS]],
            addresses: vec![],
            launches: vec![plain_launch("k", THREADS / BLOCK, vec![Argument::Buffer(0, 0), Argument::Buffer(1, 0)])],
            variables: vec![],
        }
    }

    /// The results of its instructions.
    pub fn parts(&self) -> Vec<Part> {
        let sources = digest(&sources());
        let mut out = Vec::new();
        for a in &self.asked {
            let nans = types(&a.words).next().map_or(Nans::None, Nans::of_word);
            for (k, class) in a.dst.iter().enumerate() {
                let at = out.len() * SLOTS;
                let second = if k == 0 { "" } else { ", second result" };
                out.push(Part {
                    name: format!("value {}{second}", a.text),
                    key: digest(format!("{sources} {}", a.text).as_bytes()),
                    pieces: vec![(1, at..at + SLOTS)],
                    nans: if *class == Class::P { Nans::None } else { nans },
                    is_its_nan: !a.guarded && gives_its_nan(&a.words) && nans != Nans::F64,
                });
            }
        }
        out
    }
}
