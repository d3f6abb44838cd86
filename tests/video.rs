//! Video instructions in both engines against the manual's pseudocode.
//!
//! A plain run takes a sample in which every two choices of modifiers meet. `HANDLOOM_VIDEO=all` takes all combinations of the scalar
//! instructions, about 96,000 with shifts by literals.

use std::collections::HashSet;
use std::fmt::Write;

use handloom_runtime::Bounds;
use handloom_tests::engines::{Argument, Job, Launch, plain};
use handloom_tests::reference::video::{Scalar, Simd};
use handloom_tests::rng::Rng;

/// Instructions of one module.
const TOGETHER: usize = 40;
/// Threads of a block: all lanes of three warps; and lanes that are missing.
const BLOCKS: [u32; 2] = [96, 75];
const THREADS: usize = 96;

const TYPES: &[&str] = &[".u32", ".s32"];
const SELECTORS: &[&str] = &["", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"];
const SAT: &[&str] = &["", ".sat"];
const COMPARISONS: &[&str] = &[".eq", ".ne", ".lt", ".le", ".gt", ".ge"];
/// Secondary operation, and selector of the destination.
const ENDS: &[(&str, &str)] = &[
    ("", ""),
    (".add", ""),
    (".min", ""),
    (".max", ""),
    ("", ".b0"),
    ("", ".b1"),
    ("", ".b2"),
    ("", ".b3"),
    ("", ".h0"),
    ("", ".h1"),
];
/// Selectors of a shift's amount, and amounts.
const AMOUNTS: &[(&str, Option<u32>)] = &[
    ("", None),
    (".b0", None),
    (".b1", None),
    (".b2", None),
    (".b3", None),
    (".h0", None),
    (".h1", None),
    ("", Some(0)),
    ("", Some(1)),
    ("", Some(31)),
    ("", Some(32)),
    ("", Some(33)),
    ("", Some(0xffff_ffff)),
];

/// An instruction with its words and its value.
struct Case {
    text: String,
    value: Box<dyn Fn(u32, u32, u32) -> u32>,
}

impl Case {
    fn scalar(s: Scalar) -> Case {
        Case { text: s.to_string(), value: Box::new(move |a, b, c| s.value(a, b, c)) }
    }

    fn simd(s: Simd) -> Case {
        Case { text: s.to_string(), value: Box::new(move |a, b, c| s.value(a, b, c)) }
    }
}

fn blank() -> Scalar {
    Scalar {
        op: "",
        dtype: "",
        atype: "",
        btype: "",
        mode: "",
        sat: "",
        secop: "",
        scale: "",
        dsel: "",
        asel: "",
        bsel: "",
        literal: None,
        negate: [false; 3],
    }
}

/// Number of choices of each modifier, and the instruction of one choice each.
struct Family {
    sizes: Vec<usize>,
    case: fn(&[usize]) -> Case,
}

fn arithmetic(i: &[usize]) -> Case {
    let op = ["vadd", "vsub", "vabsdiff", "vmin", "vmax"][i[0]];
    let (dtype, atype, btype) = (TYPES[i[1]], TYPES[i[2]], TYPES[i[3]]);
    let (secop, dsel) = ENDS[i[5]];
    let (asel, bsel) = (SELECTORS[i[6]], SELECTORS[i[7]]);
    Case::scalar(Scalar { op, dtype, atype, btype, sat: SAT[i[4]], secop, dsel, asel, bsel, ..blank() })
}

fn shift(i: &[usize]) -> Case {
    let (op, dtype, atype) = (["vshl", "vshr"][i[0]], TYPES[i[1]], TYPES[i[2]]);
    let mode = [".clamp", ".wrap"][i[4]];
    let (secop, dsel) = ENDS[i[5]];
    let (asel, (bsel, literal)) = (SELECTORS[i[6]], AMOUNTS[i[7]]);
    let sat = SAT[i[3]];
    Case::scalar(Scalar { op, dtype, atype, btype: ".u32", mode, sat, secop, dsel, asel, bsel, literal, ..blank() })
}

fn set(i: &[usize]) -> Case {
    let (atype, btype, mode) = (TYPES[i[0]], TYPES[i[1]], COMPARISONS[i[2]]);
    let (secop, dsel) = ENDS[i[3]];
    let (asel, bsel) = (SELECTORS[i[4]], SELECTORS[i[5]]);
    Case::scalar(Scalar { op: "vset", atype, btype, mode, secop, dsel, asel, bsel, ..blank() })
}

fn mad(i: &[usize]) -> Case {
    const SIGNS: [(&str, [bool; 3]); 7] = [
        ("", [false, false, false]),
        ("", [true, false, false]),
        ("", [false, true, false]),
        ("", [true, true, false]),
        ("", [false, false, true]),
        ("", [true, true, true]),
        (".po", [false, false, false]),
    ];
    let (dtype, atype, btype) = (TYPES[i[0]], TYPES[i[1]], TYPES[i[2]]);
    let (mode, negate) = SIGNS[i[3]];
    let scale = ["", ".shr7", ".shr15"][i[5]];
    let (asel, bsel) = (SELECTORS[i[6]], SELECTORS[i[7]]);
    Case::scalar(Scalar { op: "vmad", dtype, atype, btype, mode, sat: SAT[i[4]], scale, asel, bsel, negate, ..blank() })
}

const SCALAR: &[fn() -> Family] = &[
    || Family { sizes: vec![5, 2, 2, 2, 2, ENDS.len(), 7, 7], case: arithmetic },
    || Family { sizes: vec![2, 2, 2, 2, 2, ENDS.len(), 7, AMOUNTS.len()], case: shift },
    || Family { sizes: vec![2, 2, 6, ENDS.len(), 7, 7], case: set },
    || Family { sizes: vec![2, 2, 2, 7, 2, 3, 7, 7], case: mad },
];

const SIMD: &[fn() -> Family] = &[
    || Family { sizes: vec![6, 2, 2, 2, 3, 4, 17, 17], case: |i| simd_arithmetic(i, 2) },
    || Family { sizes: vec![2, 2, 6, 2, 4, 17, 17], case: |i| simd_set(i, 2) },
    || Family { sizes: vec![6, 2, 2, 2, 3, 16, 33, 33], case: |i| simd_arithmetic(i, 4) },
    || Family { sizes: vec![2, 2, 6, 2, 16, 33, 33], case: |i| simd_set(i, 4) },
];

/// A mask by its bits; 0 writes none.
fn mask(bits: usize, n: usize) -> String {
    let digits: String = (0..n).rev().filter(|i| bits >> i & 1 != 0).map(|i| i.to_string()).collect();
    if digits.is_empty() { digits } else { format!("{}{digits}", if n == 2 { ".h" } else { ".b" }) }
}

/// Selectors by a number; 0 writes none. Of the bytes some orders are drawn, among them those that keep a source as it is.
fn selector(i: usize, n: usize) -> String {
    let digits = match (i, n) {
        (0, _) => return String::new(),
        (_, 2) => format!("{}{}", (i - 1) / 4, (i - 1) % 4),
        (1, _) => "3210".into(),
        (2, _) => "7654".into(),
        _ => {
            let mut rng = Rng::new(i as u64);
            (0..4).map(|_| rng.below(8).to_string()).collect()
        }
    };
    format!("{}{digits}", if n == 2 { ".h" } else { ".b" })
}

fn simd_arithmetic(i: &[usize], n: usize) -> Case {
    let op = ["vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"][i[0]];
    let (dtype, atype, btype) = (TYPES[i[1]], TYPES[i[2]], TYPES[i[3]]);
    let (end, mask) = (["", ".sat", ".add"][i[4]], mask(i[5], n));
    let (asel, bsel) = (selector(i[6], n), selector(i[7], n));
    Case::simd(Simd { op, n, dtype, atype, btype, cmp: "", end, mask, asel, bsel })
}

fn simd_set(i: &[usize], n: usize) -> Case {
    let (atype, btype, cmp) = (TYPES[i[0]], TYPES[i[1]], COMPARISONS[i[2]]);
    let (end, mask) = (["", ".add"][i[3]], mask(i[4], n));
    let (asel, bsel) = (selector(i[5], n), selector(i[6], n));
    Case::simd(Simd { op: "vset", n, dtype: "", atype, btype, cmp, end, mask, asel, bsel })
}

/// All combinations, the last modifier first.
fn all(family: &Family) -> Vec<Vec<usize>> {
    let mut out = vec![vec![]];
    for &size in &family.sizes {
        out = out.into_iter().flat_map(|c: Vec<usize>| (0..size).map(move |i| [c.clone(), vec![i]].concat())).collect();
    }
    out
}

/// Combinations in which every two choices of different modifiers meet.
fn pairwise(family: &Family, rng: &mut Rng) -> Vec<Vec<usize>> {
    let sizes = &family.sizes;
    let mut open = HashSet::new();
    for j in 0..sizes.len() {
        for i in 0..j {
            open.extend((0..sizes[i]).flat_map(|x| (0..sizes[j]).map(move |y| (i, x, j, y))));
        }
    }
    let mut out = Vec::new();
    // Each takes one open pair and the best of some fillings of the rest.
    while let Some(&(i, x, j, y)) = open.iter().min() {
        let pairs = |c: &[usize]| -> Vec<(usize, usize, usize, usize)> {
            (0..c.len()).flat_map(|j| (0..j).map(move |i| (i, j))).map(|(i, j)| (i, c[i], j, c[j])).collect()
        };
        let fill = |rng: &mut Rng| {
            let mut c: Vec<usize> = sizes.iter().map(|n| rng.below(*n)).collect();
            (c[i], c[j]) = (x, y);
            c
        };
        let tries: Vec<Vec<usize>> = (0..20).map(|_| fill(rng)).collect();
        let gain = |c: &Vec<usize>| pairs(c).iter().filter(|p| open.contains(p)).count();
        let best = tries.into_iter().max_by_key(gain).expect("there are tries");
        for pair in pairs(&best) {
            open.remove(&pair);
        }
        out.push(best);
    }
    out
}

/// Ends of the ranges of bytes, halves and words, and what lies beside them.
const EDGES: &[u32] = &[
    0,
    1,
    0xffff_ffff,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0x7f80_7f80,
    0x807f_807f,
    0x0080_ff7f,
    0x7fff_8000,
    0x8000_7fff,
    0xffff_0000,
    0x0000_ffff,
    32,
    31,
    33,
    0x1f20_2100,
    0x00ff_00ff,
];

/// Sources of all threads.
fn triples(rng: &mut Rng) -> [Vec<u32>; 3] {
    let mut pick = || {
        let random = (rng.next() >> 32) as u32;
        if rng.one_in(2) { *rng.pick(EDGES) } else { random }
    };
    let column = |pick: &mut dyn FnMut() -> u32| (0..THREADS).map(|_| pick()).collect();
    [column(&mut pick), column(&mut pick), column(&mut pick)]
}

/// A module of two entries: sources from memory, and sources that all threads share.
fn module(cases: &[Case]) -> String {
    let mut text = String::from(".version 8.0\n.target sm_80\n.address_size 64\n");
    for shared in [false, true] {
        let name = if shared { "same" } else { "each" };
        let _ = write!(
            text,
            ".entry {name}(.param .u64 in, .param .u64 out, .param .u32 pa, .param .u32 pb, .param .u32 pc)\n{{\n\
             .reg .b64 %in, %out, %at; .reg .b32 %t, %a, %b, %c, %d;\n\
             ld.param.u64 %in, [in]; ld.param.u64 %out, [out];\n\
             mov.u32 %t, %tid.x; mul.wide.u32 %at, %t, 4;\n\
             add.u64 %in, %in, %at; add.u64 %out, %out, %at;\n"
        );
        for (i, name) in ["a", "b", "c"].iter().enumerate() {
            let _ = if shared {
                writeln!(text, "ld.param.b32 %{name}, [p{name}];")
            } else {
                writeln!(text, "ld.global.b32 %{name}, [%in+{}];", i * 4 * THREADS)
            };
        }
        for (i, case) in cases.iter().enumerate() {
            let _ = writeln!(text, "{} st.global.b32 [%out+{}], %d;", case.text, i * 4 * THREADS);
        }
        text.push_str("ret;\n}\n");
    }
    text
}

/// Runs the instructions and tells of those whose values are wrong.
fn run(cases: &[Case], rng: &mut Rng, shared: bool) -> Vec<String> {
    let text = module(cases);
    let [a, b, c] = triples(rng);
    let input: Vec<u8> = [&a[..], &b, &c].concat().iter().flat_map(|w| w.to_le_bytes()).collect();
    let mut wrong = Vec::new();
    for block in BLOCKS {
        for entry in if shared { &["each", "same"][..] } else { &["each"] } {
            let mut args = vec![Argument::Buffer(0, 0), Argument::Buffer(1, 0)];
            args.extend([a[0], b[0], c[0]].map(|w| Argument::Scalar(u64::from(w))));
            let launch = Launch {
                entry,
                grid: [1; 3],
                block: [block, 1, 1],
                shared_bytes: 0,
                args,
                cooperative: false,
                cluster: None,
            };
            let buffers = vec![input.clone(), vec![0; cases.len() * 4 * THREADS]];
            let job = Job {
                name: "video",
                text: &text,
                buffers,
                addresses: vec![],
                launches: vec![launch],
                variables: vec![],
            };
            for way in plain(if block == BLOCKS[0] { Bounds::Contained } else { Bounds::Exact }) {
                let outcome = job.run(way, 0).unwrap_or_else(|e| panic!("{e}\n{text}"));
                assert!(outcome.trap.is_none(), "{text}");
                let words = outcome.buffers[1].chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
                let got: Vec<u32> = words.collect();
                for (i, case) in cases.iter().enumerate() {
                    let at = |t: usize| if *entry == "same" { (a[0], b[0], c[0]) } else { (a[t], b[t], c[t]) };
                    let differs = (0..block as usize).find(|t| {
                        let (a, b, c) = at(*t);
                        got[i * THREADS + t] != (case.value)(a, b, c)
                    });
                    if let Some(t) = differs {
                        let (a, b, c) = at(t);
                        let (got, want) = (got[i * THREADS + t], (case.value)(a, b, c));
                        wrong.push(format!(
                            "{} by {} with {block} threads, entry {entry}: a={a:#x} b={b:#x} c={c:#x} gives {got:#x}, not {want:#x}",
                            case.text, way.name
                        ));
                    }
                }
            }
        }
    }
    wrong
}

fn run_all(families: &[fn() -> Family], everything: bool) -> usize {
    let mut rng = Rng::new(9);
    let mut n = 0;
    for family in families {
        let family = family();
        let choices = if everything { all(&family) } else { pairwise(&family, &mut rng) };
        n += choices.len();
        for batch in choices.chunks(TOGETHER) {
            let cases: Vec<Case> = batch.iter().map(|c| (family.case)(c)).collect();
            let wrong = run(&cases, &mut rng, !everything);
            assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong[..wrong.len().min(12)].join("\n"));
        }
    }
    n
}

#[test]
fn scalar_instructions_are_those_of_the_manual() {
    let everything = std::env::var("HANDLOOM_VIDEO").is_ok_and(|v| v == "all");
    let n = run_all(SCALAR, everything);
    assert!(n >= if everything { 90_000 } else { 300 }, "{n}");
}

#[test]
fn simd_instructions_are_those_of_the_manual() {
    let n = run_all(SIMD, false);
    assert!(n >= 2_000, "{n}");
}

/// The values of the manual's stages by hand, so that the reference itself has something to answer to.
#[test]
fn the_reference_agrees_with_hand_made_values() {
    let vadd = Scalar { op: "vadd", dtype: ".s32", atype: ".u32", btype: ".s32", ..blank() };
    assert_eq!(vadd.value(0xffff_ffff, 0xffff_ffff, 0), 0xffff_fffe);
    assert_eq!(Scalar { sat: ".sat", ..vadd.clone() }.value(0xffff_ffff, 0xffff_ffff, 0), 0x7fff_ffff);
    let bytes = Scalar { sat: ".sat", asel: ".b1", bsel: ".h1", dsel: ".b2", ..vadd };
    // 0x80 + -2 is 126.
    assert_eq!(bytes.value(0x0000_8000, 0xfffe_0000, 0x1122_3344), 0x117e_3344);
    assert_eq!(bytes.to_string(), "vadd.s32.u32.s32.sat %d.b2, %a.b1, %b.h1, %c;");
    let vmad = Scalar { op: "vmad", dtype: ".u32", atype: ".u32", btype: ".u32", scale: ".shr7", ..blank() };
    assert_eq!(vmad.value(0x1_0000, 0x1_0000, 0x80), 0x0200_0001);
    assert_eq!(Scalar { sat: ".sat", ..vmad }.value(0xffff_ffff, 0xffff_ffff, 0), 0xffff_ffff);
    let vabsdiff4 = Simd {
        op: "vabsdiff",
        n: 4,
        dtype: ".u32",
        atype: ".u32",
        btype: ".u32",
        cmp: "",
        end: ".add",
        mask: String::new(),
        asel: String::new(),
        bsel: String::new(),
    };
    assert_eq!(vabsdiff4.value(0xff00_1020, 0x00ff_2010, 1000), 1000 + 255 + 255 + 16 + 16);
    assert_eq!(vabsdiff4.to_string(), "vabsdiff4.u32.u32.u32.add %d, %a, %b, %c;");
}
