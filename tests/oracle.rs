//! Verdicts of NVIDIA's assembler on single statements, which `tests/oracle/ask.py` recorded, against the checker.
//!
//! A statement is accepted by the checker if it gives no error of the program; that something does not run yet is no refusal. Where the two
//! differ on purpose, a line of [`EXCEPTIONS`] says which statements and why; a line that no difference needs is a failure too.

use std::collections::BTreeMap;

use handloom_check::check_text;
use handloom_diag::{FileId, Kind, Severity, SourceMap};

/// Differences that are meant.
struct Exception {
    /// What differs, and why we do not follow.
    reason: &'static str,
    /// Whether the assembler accepts these statements (and the checker refuses them).
    assembler_accepts: bool,
    /// Which statements: opcode with qualifiers, operands.
    matches: fn(&str, &str) -> bool,
}

/// Words of other instructions that the assembler reads and forgets.
const IGNORED: &[&str] = &[
    ".finite",
    ".infinite",
    ".number",
    ".notanumber",
    ".normal",
    ".subnormal",
    ".texref",
    ".samplerref",
    ".surfref",
    ".elemtype",
    ".fill_mode",
    ".box_dim",
    ".global_dim",
    ".element_stride",
    ".swizzle_atomicity",
    ".swizzle_mode",
    ".interleave_layout",
    ".acc::f32",
    ".acc::f16",
    ".b6x16_p32",
    ".b4x16_p64",
    ".b8x16",
    ".pred",
    ".rank",
    ".global_address",
    ".global_stride",
    ".async",
    ".noftz",
    ".b1024",
    ".scale_vec",
    ".kind",
    ".cta_group",
];

fn has_word(words: &str, word: &str) -> bool {
    words.split('.').skip(1).any(|w| w == &word[1..])
}

fn repeats(words: &str) -> bool {
    let all: Vec<&str> = words.split('.').collect();
    (1..all.len()).any(|i| all[..i].contains(&all[i]))
}

/// Registers to which a constant is added.
fn sums(operands: &str) -> impl Iterator<Item = &str> {
    operands.split(", ").filter_map(|o| o.split_once('+')).map(|(register, _)| register).filter(|r| !r.starts_with('['))
}

/// Whether one of some elements is a number.
fn has_number(elements: &str) -> bool {
    elements.split(',').any(|e| e.trim_start_matches([' ', '-']).starts_with(|c: char| c.is_ascii_digit()))
}

fn is(words: &str, opcodes: &[&str]) -> bool {
    opcodes.contains(&words.split('.').next().unwrap_or(""))
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        reason: "a word of another instruction that the assembler reads and forgets: plainly a fault",
        assembler_accepts: true,
        matches: |w, _| IGNORED.iter().any(|i| has_word(w, i)),
    },
    Exception {
        reason: "a state space of a fence, which is a word of other instructions: the assembler reads and forgets it",
        assembler_accepts: true,
        matches: |w, _| {
            is(w, &["fence"]) && [".shared::cta", ".shared::cluster", ".global"].iter().any(|s| has_word(w, s))
        },
    },
    Exception {
        reason: "`.aligned` before `.sync` of a barrier, which the assembler takes, but before no other operation of one",
        assembler_accepts: true,
        matches: |w, _| is(w, &["barrier"]) && w.contains(".aligned.sync"),
    },
    Exception {
        reason: "a word twice: the assembler takes the second and forgets it",
        assembler_accepts: true,
        matches: |w, _| repeats(w),
    },
    Exception {
        reason: "an address of a variable where a number belongs: plainly a fault",
        assembler_accepts: true,
        matches: |_, o| o.contains("gv+4"),
    },
    Exception {
        reason: "a constant added to a register of a float type: the assembler makes code that does not read the register",
        assembler_accepts: true,
        matches: |_, o| sums(o).any(|r| r.starts_with('f')),
    },
    Exception {
        reason: "a constant added to a register of another size than is wanted, which alone would be refused: plainly a fault",
        assembler_accepts: true,
        matches: |_, o| sums(o).any(|r| r.ends_with("_7")),
    },
    Exception {
        reason: "a cache policy without `.L2::cache_hint`: the assembler takes an operand too many and forgets it",
        assembler_accepts: true,
        matches: |w, o| is(w, &["atom", "red"]) && o.split(", ").count() > 2,
    },
    Exception {
        reason: "an atomic or strong access to a variable that is known to be local, through a generic address",
        assembler_accepts: true,
        matches: |w, o| is(w, &["atom", "red", "st", "ld"]) && o.contains("[lv]"),
    },
    Exception {
        reason: "one value for a whole vector: the manual has no such form, and what it means is not known",
        assembler_accepts: true,
        matches: |w, _| is(w, &["mov", "sust"]) && (has_word(w, ".v2") || has_word(w, ".v4")),
    },
    Exception {
        reason: "an address, which has 64 bits, as a value of 128: plainly a fault",
        assembler_accepts: true,
        matches: |w, _| w == "mov.b128",
    },
    Exception {
        reason: "an order of a fence between proxies that the manual does not have there",
        assembler_accepts: true,
        matches: |w, _| w.starts_with("fence.proxy.async::generic.acq_rel"),
    },
    Exception {
        reason: "a float among what is stored as integers, or an integer among what is stored as floats: the assembler looks at the vector as a whole",
        assembler_accepts: true,
        matches: |w, o| is(w, &["st", "red", "multimem"]) && has_number(o.split_once('{').map_or("", |(_, all)| all)),
    },
    Exception {
        reason: "a vector of nothing but constants that all `multimem` memories get, whose type the assembler does not find",
        assembler_accepts: false,
        matches: |w, o| {
            let all = o.split_once('{').and_then(|(_, all)| all.split_once('}')).map_or("", |(all, _)| all);
            w.starts_with("multimem.st") && !all.is_empty() && all.split(',').all(has_number)
        },
    },
    Exception {
        reason: "a float or a pair as the coordinate of a surface, beside bits",
        assembler_accepts: true,
        matches: |w, o| {
            is(w, &["suld", "sust", "sured"]) && ["f32_", "f16x2_", "0f", "pred_"].iter().any(|t| o.contains(t))
        },
    },
    Exception {
        reason: "`testp` without a property: there is nothing to test",
        assembler_accepts: true,
        matches: |w, _| is(w, &["testp"]),
    },
    Exception {
        reason: "`.ftz` of `rcp` and `sqrt` at f64, which has none",
        assembler_accepts: true,
        matches: |w, _| is(w, &["rcp", "sqrt"]) && has_word(w, ".ftz") && has_word(w, ".f64"),
    },
    Exception {
        reason: "a pair of `.bf16` in a register of any type of 32 bits, `.pred` too, in the conversion to `.e2m1x2` alone: plainly a fault",
        assembler_accepts: true,
        matches: |w, _| is(w, &["cvt"]) && has_word(w, ".e2m1x2") && has_word(w, ".bf16x2"),
    },
    Exception {
        reason: "a wider register in conversions with `.ftz` and a side of 64 bits, which are fine without: plainly a fault",
        assembler_accepts: false,
        matches: |w, o| {
            let has_64 = [".f64", ".u64", ".s64"].iter().any(|t| has_word(w, t));
            is(w, &["cvt"]) && has_word(w, ".ftz") && has_64 && (o.contains("b128_") || o.contains("b64_"))
        },
    },
    Exception {
        reason: "a texture where a register belongs: the declaration of a texture is told as unsupported, and its uses are not blamed again",
        assembler_accepts: false,
        matches: |_, o| o.contains("tr") || o.contains("ur"),
    },
    Exception {
        reason: "an integer register as a coordinate of type `.f32`, which the assembler takes in most shapes: plainly a fault",
        assembler_accepts: true,
        matches: |w, o| {
            let is_integer = |r: &str| r.starts_with("s32_") || r.starts_with("u32_");
            let first = o.split_once("[").and_then(|(_, place)| place.split_once('{')).map_or("", |(_, c)| c);
            is(w, &["tex", "tld4"]) && w.ends_with(".f32") && is_integer(first)
        },
    },
    Exception {
        reason: "a variable in `.global` as the barrier of `tcgen05.commit`, whose address is generic where no space is written: plainly a fault",
        assembler_accepts: true,
        matches: |w, o| is(w, &["tcgen05"]) && w.contains("commit") && o.contains("[gv"),
    },
    Exception {
        reason: "`.aligned` left out, which the assembler allows here: the manual has no such form",
        assembler_accepts: true,
        matches: |w, _| is(w, &["wgmma"]) && has_word(w, ".sync") && !has_word(w, ".aligned"),
    },
    Exception {
        reason: "a response that is no register of 128 bits, of which the assembler makes code that reads something else",
        assembler_accepts: true,
        matches: |w, _| w.starts_with("clusterlaunchcontrol.query_cancel"),
    },
    Exception {
        reason: "`.unified` behind an address of an instruction for which the manual does not have it",
        assembler_accepts: true,
        matches: |_, o| o.contains("].unified"),
    },
    Exception {
        reason: "a predicate or a special register in a vector, which the assembler does not look at if there are bits beside it",
        assembler_accepts: true,
        matches: |w, o| {
            let results = o.split_once('{').and_then(|(_, all)| all.split_once('}')).map_or("", |(all, _)| all);
            is(w, &["ld", "ldu", "st", "red", "multimem", "ldmatrix", "wgmma"])
                && (results.contains("pred_") || results.contains('%'))
        },
    },
    Exception {
        reason: "a register of another type or a number in a fragment, which the assembler does not look at if it is not the first",
        assembler_accepts: true,
        matches: |w, o| {
            let is_odd = ["f32_1}", "s32_1}", "f16x2_1}", ",1}", "{1,", "{5000000000,"].iter().any(|e| o.contains(e));
            is(w, &["wmma", "wgmma", "mma"]) && (is_odd || o.contains("{0f"))
        },
    },
    Exception {
        reason: "a literal of 64 bits among registers of 32",
        assembler_accepts: true,
        matches: |w, o| is(w, &["stmatrix", "tcgen05", "mma", "wmma", "wgmma"]) && o.contains("{0d"),
    },
    Exception {
        reason: "a literal of 64 bits for `.f32`: the assembler rounds it elsewhere and here does not",
        assembler_accepts: false,
        matches: |w, o| w.starts_with("wmma.store") && o.contains("{0d"),
    },
    Exception {
        reason: "the name of a variable, of which the assembler fails to make its own sum: the manual takes any address in `.shared::cta`",
        assembler_accepts: false,
        matches: |w, o| w.starts_with("st.bulk") && has_word(w, ".shared::cta") && o.starts_with("[sv]"),
    },
    Exception {
        reason: "a vector where one register belongs: the assembler takes its first element",
        assembler_accepts: true,
        matches: |w, o| {
            let last = o.rsplit(", {").next().unwrap_or("");
            let is_one = is(w, &["txq", "mbarrier", "suld", "sust"]) || is(w, &["tex"]) && w.starts_with("tex.level");
            is_one && (last.ends_with('}') || o.starts_with('{'))
        },
    },
    Exception {
        reason: "more offsets than a texture has axes: the manual says how many there are",
        assembler_accepts: true,
        matches: |w, o| is(w, &["tex", "tld4"]) && o.contains("}], {"),
    },
    Exception {
        reason: "an operand after coordinates of type `.s32` that is neither offsets nor, of that type, a depth, or an integer as a depth",
        assembler_accepts: true,
        matches: |w, o| {
            let after = o.split_once("}], ").map_or("", |(_, after)| after);
            is(w, &["tex", "tld4"]) && !after.is_empty() && (w.ends_with(".s32") || after.ends_with('5'))
        },
    },
    Exception {
        reason: "one register for all coordinates of an image, where the manual has a vector",
        assembler_accepts: true,
        matches: |w, o| {
            let place = o.split_once('[').and_then(|(_, place)| place.split_once(", ")).map_or("", |(_, c)| c);
            is(w, &["tex", "tld4", "suld", "sust", "sured"]) && !place.starts_with('{')
        },
    },
    Exception {
        reason: "a special register among coordinates",
        assembler_accepts: true,
        matches: |w, o| is(w, &["tex", "tld4", "suld", "sust", "sured"]) && o.contains('%'),
    },
    Exception {
        reason: "an object of images as an address in `.shared` or `.local`",
        assembler_accepts: true,
        matches: |_, o| o.contains("[tr]") || o.contains("[ur]"),
    },
    Exception {
        reason: "`_` behind the one result: the instruction has no second",
        assembler_accepts: true,
        matches: |w, o| is(w, &["isspacep", "mbarrier", "setp"]) && o.contains("|_"),
    },
    Exception {
        reason: "an address in a register that is too small for one, where the space is written",
        assembler_accepts: true,
        matches: |w, o| {
            let is_small = ["[b8_", "[b16_", "[u16_", "[s16_"].iter().any(|r| o.contains(r));
            is_small || w.starts_with("prefetch.local") || is(w, &["prefetch"]) && has_word(w, ".local")
        },
    },
    Exception {
        reason: "a variable in `.local` as a barrier, whose address is generic where no space is written: plainly a fault",
        assembler_accepts: true,
        matches: |w, o| w.starts_with("tcgen05.commit") && o.contains("[lv"),
    },
    Exception {
        reason: "`.sp` at another place than behind `tcgen05.mma` and `.ws`",
        assembler_accepts: true,
        matches: |w, _| {
            is(w, &["tcgen05"])
                && has_word(w, ".sp")
                && !w.starts_with("tcgen05.mma.sp")
                && !w.starts_with("tcgen05.mma.ws.sp")
        },
    },
    Exception {
        reason: "a scale for the sums of integers, which the manual has for two kinds of floats: the assembler forgets it",
        assembler_accepts: true,
        matches: |w, _| w.starts_with("tcgen05.mma") && has_word(w, ".kind::i8"),
    },
    Exception {
        reason: "an operand behind the last one, which the assembler forgets",
        assembler_accepts: true,
        matches: |w, o| w.starts_with("tcgen05.mma") && o.ends_with(", 3, 5"),
    },
    Exception {
        reason: "the type of the result of `wmma.mma` before its layouts: the manual has it behind them",
        assembler_accepts: true,
        matches: |w, _| w.starts_with("wmma.mma.f"),
    },
    Exception {
        reason: "`.popc` before the operation on bits, which the manual writes in the other order, but at any place",
        assembler_accepts: false,
        matches: |w, _| {
            is(w, &["mma", "wmma"]) && has_word(w, ".popc") && w.find(".popc") < w.find(".xor").max(w.find(".and"))
        },
    },
    Exception {
        reason: "`_` among the results of a product that the assembler expands for the target: it takes it for others",
        assembler_accepts: false,
        matches: |w, o| is(w, &["mma", "wmma"]) && o.starts_with("{_,"),
    },
    Exception {
        reason: "a number in `b` of `wmma.mma`, where the assembler takes it in `a` and in `mma`",
        assembler_accepts: false,
        matches: |w, o| w.starts_with("wmma.mma") && (o.contains("{1,") || o.contains(",1}")),
    },
    Exception {
        reason: "a variable in `.shared` or `.local` whose space is not written, at which the assembler has an internal error for new targets",
        assembler_accepts: false,
        matches: |w, o| is(w, &["prefetch"]) && (o.starts_with("[sv") || o.starts_with("[lv")),
    },
    Exception {
        reason: "an element of a variable as an address without brackets",
        assembler_accepts: true,
        matches: |w, o| is(w, &["multimem"]) && o.starts_with("ga[1]"),
    },
    Exception {
        reason: "a variable indexed by a register: told as unsupported before its type is looked at",
        assembler_accepts: false,
        matches: |_, o| o.contains("ga[b32_1]"),
    },
];

/// Statements of one version and target, with the assembler's verdicts.
struct Section<'t> {
    version: &'t str,
    target: &'t str,
    statements: Vec<(bool, &'t str)>,
}

/// Statements in one module; so many that modules are few, so few that none is large.
const PER_MODULE: usize = 2000;

/// How many differences a failure prints for each section.
const SHOWN: usize = 200;

fn recorded() -> String {
    let packed = include_bytes!("oracle/verdicts.zlib");
    let bytes = miniz_oxide::inflate::decompress_to_vec_zlib(packed).expect("the verdicts are a zlib stream");
    String::from_utf8(bytes).expect("the verdicts are text")
}

fn sections(text: &str) -> (Vec<&str>, Vec<Section<'_>>) {
    let mut prelude = Vec::new();
    let mut sections: Vec<Section<'_>> = Vec::new();
    for line in text.lines() {
        let (mark, rest) = line.split_at(1);
        match mark {
            "v" => {}
            "p" => prelude.push(rest.trim_start()),
            "=" => {
                let (version, target) = rest.trim().split_once(' ').expect("a version and a target");
                sections.push(Section { version, target, statements: Vec::new() });
            }
            _ => {
                let last = sections.last_mut().expect("a statement stands behind its target");
                last.statements.push((mark == "+", rest));
            }
        }
    }
    (prelude, sections)
}

/// For each statement the first error that the checker has.
fn errors(prelude: &[&str], s: &Section<'_>, statements: &[(bool, &str)]) -> Vec<Option<String>> {
    let mut text = format!(".version {}\n.target {}\n.address_size 64\n", s.version, s.target);
    for line in prelude {
        text.push_str(line);
        text.push('\n');
    }
    for (_, statement) in statements {
        text.push_str(statement);
        text.push('\n');
    }
    text.push_str("ret;\n}\n");
    let before = 3 + prelude.len();
    let mut sources = SourceMap::new();
    let file = sources.add("statements", text.as_str());
    let mut found = vec![None; statements.len()];
    for d in check_text(&text, FileId(0)).diagnostics {
        if d.severity != Severity::Error || d.kind != Kind::Program {
            continue;
        }
        let line = sources.position(file, d.span().start).line as usize - 1;
        if let Some(place) = line.checked_sub(before).and_then(|n| found.get_mut(n)) {
            place.get_or_insert_with(|| format!("{} {}", d.code.name(), d.message));
        }
    }
    found
}

#[test]
fn the_checker_agrees_with_the_assembler() {
    let text = recorded();
    let (prelude, sections) = sections(&text);
    let mut used = vec![0; EXCEPTIONS.len()];
    let mut different: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut n = 0;
    for s in &sections {
        for chunk in s.statements.chunks(PER_MODULE) {
            let told = errors(&prelude, s, chunk);
            n += chunk.len();
            for ((accepted, statement), error) in chunk.iter().zip(told) {
                if *accepted == error.is_none() {
                    continue;
                }
                let text = statement.trim_end_matches(';');
                let text = text.strip_prefix('@').and_then(|guarded| guarded.split_once(' ')).map_or(text, |(_, t)| t);
                let (words, operands) = text.split_once(' ').unwrap_or((text, ""));
                let fits = |e: &Exception| e.assembler_accepts == *accepted && (e.matches)(words, operands);
                if let Some(i) = EXCEPTIONS.iter().position(fits) {
                    used[i] += 1;
                    continue;
                }
                let what = error.map_or("it refuses".to_owned(), |e| format!("it accepts; {e}"));
                let list = different.entry(format!("{} {}", s.version, s.target)).or_default();
                list.push(format!("{statement}  // {what}"));
            }
        }
    }
    assert!(n > 20_000, "only {n} statements");
    let n_different: usize = different.values().map(Vec::len).sum();
    let shown = different.iter().map(|(target, list)| {
        format!(
            "{target}: {} differences\n  {}",
            list.len(),
            list.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\n  ")
        )
    });
    assert!(different.is_empty(), "{n_different} of {n} statements differ\n{}", shown.collect::<Vec<_>>().join("\n"));
    let idle: Vec<&str> = EXCEPTIONS.iter().zip(&used).filter(|(_, n)| **n == 0).map(|(e, _)| e.reason).collect();
    assert!(idle.is_empty(), "exceptions that nothing needs: {idle:?}");
}
