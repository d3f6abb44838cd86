//! Random kernels without what the manual leaves open, so that a GPU has to answer what Handloom does.
//!
//! Takes: the text of a kernel of `generate` or `once_a_cta`. Gives: a text with statements left out, replaced or followed by others.
//! Races and bits that nobody wrote are not looked for here but by a checked run of the result.
//!
//! - Approximations, and instructions that are known to differ on a GPU (the exceptions of `tests/device.rs`), are left out.
//! - `add`, `sub` and `mul` of floats without a rounding may be contracted into `fma` (*Floating Point Instructions*): they get `.rn`.
//! - Where NaNs have payloads, or any NaN may come (`.f64`, `neg`, `abs`, `cvt`, `min` and `max` of one register twice), all NaNs are made the
//!   canonical one.
//! - Guards of `set` and `testp` are left out: NVIDIA's translator (of driver 580) lets lanes whose guard is false convert or lose what the
//!   destination held. What is guarded is asked one by one by sheets.
//! - Special registers that depend on the chip and on what else it does are not read.
//! - Lanes get values by `shfl` only from lanes that are there and named (*Data Movement and Conversion Instructions: shfl.sync*).
//! - Lanes that meet at one `redux` name the same lanes there (*redux.sync*).

use super::digest::Nans;
use super::sheets::{is_open, types};

/// Registers for what is put in.
const OWN: &str = "    .reg .pred %zp;\n    .reg .b16 %zh<2>;\n    .reg .b32 %zr, %za;\n";

/// Special registers that depend on the chip, on the driver, or on what else runs.
const OF_THE_CHIP: &[&str] = &[
    "%warpid",
    "%nwarpid",
    "%smid",
    "%nsmid",
    "%gridid",
    "%envreg",
    "%pm",
    "%total_smem_size",
    "%aggr_smem_size",
    "%reserved_smem",
    "%current_graph_exec",
];

/// Opcodes of scalar video instructions.
const VIDEO: &[&str] = &["vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset", "vmad"];

/// The kernel with everything defined.
pub fn defined(text: &str, has_whole_warps: bool) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let body = line.trim();
        if body.starts_with(".reg .pred %p<") {
            out.push_str(OWN);
        }
        let (guard, statement) = match body.split_once(' ') {
            Some((guard, rest)) if guard.starts_with('@') => (guard, rest),
            _ => ("", body),
        };
        let (words, operands) = statement.split_once(' ').unwrap_or((statement, ""));
        let is_changed_by_guard = ["set.", "testp."].iter().any(|o| words.starts_with(o)) && !guard.is_empty();
        let (guard, line) = if is_changed_by_guard { ("", statement) } else { (guard, line) };
        let operands = operands.trim_end_matches(['}', ' ', ';']);
        if let Some(other) = instead(words, operands, has_whole_warps) {
            out.push_str(&other);
            continue;
        }
        match rounded(words) {
            Some(words) => out.push_str(&format!("    {guard} {words} {operands};\n")),
            None => out.push_str(&format!("{line}\n")),
        }
        out.push_str(&calm(words, operands.split(", ").next().unwrap_or_default()).unwrap_or_default());
    }
    out
}

/// What stands for a statement that is not asked.
fn instead(words: &str, operands: &str, has_whole_warps: bool) -> Option<String> {
    let parts: Vec<&str> = words.split('.').collect();
    let (opcode, has) = (parts[0], |w: &str| parts[1..].contains(&w));
    let is_float_atomic = ["atom", "red"].contains(&opcode) && (has("f32") || has("f64"));
    let is_wide_field = ["bfe", "bfi"].contains(&opcode) && (has("b64") || has("s64") || has("u64"));
    let narrows_subnormals = opcode == "cvt" && has("ftz") && (has("f16") || has("f64"));
    // Pieces whose registers are written once need theirs, and the first register of a chain is made of nothing before it.
    if words == "ex2.approx.f32" && operands.starts_with("%v") {
        return Some(format!("    mov.b32 {operands};\n"));
    }
    if words == "mad.wide.u32" && operands == "%sl0, %sr0, 8, %sl0" {
        return Some("    mul.wide.u32 %sl0, %sr0, 8;\n".into());
    }
    let is_out = is_open(words)
        || is_float_atomic
        || is_wide_field
        || narrows_subnormals
        || opcode == "fns"
        || words.starts_with("cvt.pack")
        || has("tf32")
        || VIDEO.contains(&opcode)
        // Lanes of part of a warp may name others that are not there.
        || words == "shfl.sync.bfly.b32" && operands.contains("%t0") && !has_whole_warps && operands.contains('|');
    if is_out {
        return Some(String::new());
    }
    if OF_THE_CHIP.iter().any(|s| operands.contains(s)) {
        let is_index = operands.starts_with("%t");
        return Some(if is_index { format!("    mov.u32 {}, 5;\n", &operands[..3]) } else { String::new() });
    }
    // Two parts of a warp at one `redux` after the other: each names itself, then both name all.
    if words == "selp.b32" && operands.ends_with(", %q0") {
        let list: Vec<&str> = operands.split(", ").collect();
        return match (list[0], list[1], list[2]) {
            ("%t0", low, "0xffffffff") => {
                let rest = !u32::from_str_radix(low.trim_start_matches("0x"), 16).unwrap_or(0);
                Some(format!("    selp.b32 %t0, {low}, {rest:#x}, %q0;\n"))
            }
            ("%t1", "0xffffffff", _) => Some("    mov.b32 %t1, 0xffffffff;\n".into()),
            _ => None,
        };
    }
    None
}

/// The words with a rounding, if one may be missed.
fn rounded(words: &str) -> Option<String> {
    let (opcode, rest) = words.split_once('.')?;
    let is_float = types(words).next().is_some_and(|ty| Nans::of_word(ty) != Nans::None);
    let has_rounding = rest.split('.').any(|w| ["rn", "rz", "rm", "rp"].contains(&w));
    (["add", "sub", "mul"].contains(&opcode) && is_float && !has_rounding).then(|| format!("{opcode}.rn.{rest}"))
}

/// Statements that make NaNs of a result the canonical one, if the manual leaves open which one it is.
fn calm(words: &str, d: &str) -> Option<String> {
    let opcode = words.split('.').next()?;
    let mut list = types(words);
    let (ty, from) = (list.next()?, list.next());
    let nans = Nans::of_word(ty);
    let is_read = ["setp", "testp", "ld", "st", "atom", "red"].contains(&opcode);
    let from_float = from.is_some_and(|ty| Nans::of_word(ty) != Nans::None);
    let any_nan = nans == Nans::F64 || ["neg", "abs", "min", "max"].contains(&opcode) || opcode == "cvt" && from_float;
    if nans == Nans::None || is_read || !any_nan || d.contains('|') {
        return None;
    }
    // Classes of registers by the last letter before their number.
    let wide = match d.trim_end_matches(|c: char| c.is_ascii_digit()).chars().last()? {
        'h' => 16,
        'l' | 'w' | 'x' | 'e' => 64,
        _ => 32,
    };
    let test = |ty: &str, of: &str| format!("    setp.nan.{ty} %zp, {of}, {of};\n");
    Some(match (ty, wide) {
        ("f16x2" | "bf16x2", _) => {
            let one = &ty[..ty.len() - 2];
            let half = |h: &str| test(one, h) + &format!("    @%zp mov.b16 {h}, 0x7fff;\n");
            format!(
                "    mov.b32 {{%zh0, %zh1}}, {d};\n{}{}    mov.b32 {d}, {{%zh0, %zh1}};\n",
                half("%zh0"),
                half("%zh1")
            )
        }
        ("f16" | "bf16", 16) => test(ty, d) + &format!("    @%zp mov.b16 {d}, 0x7fff;\n"),
        ("f16" | "bf16", _) => {
            format!("    cvt.u16.u{wide} %zh0, {d};\n{}    @%zp mov.b{wide} {d}, 0x7fff;\n", test(ty, "%zh0"))
        }
        ("f32", 64) => {
            format!("    cvt.u32.u64 %zr, {d};\n{}    @%zp mov.b64 {d}, 0x7fffffff;\n", test(ty, "%zr"))
        }
        ("f32", _) => test(ty, d) + &format!("    @%zp mov.b32 {d}, 0x7fffffff;\n"),
        _ => test("f64", d) + &format!("    @%zp mov.b64 {d}, 0x7fffffffffffffff;\n"),
    })
}

/// A kernel of `once_a_cta` whose threads first write all words of its tile, with nothing else left open.
pub fn with_tile(text: &str, words: u32, threads: u32) -> String {
    const FIRST: &str = "    mov.u32 %r, %idx;\n";
    let fill = format!(
        "    mov.u32 %zr, %lin;\n    mov.u32 %za, %at;\n$FILL:\n    setp.lt.u32 %zp, %zr, {words};\n    \
         @%zp st.shared.u32 [%za], %zr;\n    add.u32 %za, %za, {};\n    add.u32 %zr, %zr, {threads};\n    \
         @%zp bra $FILL;\n    bar.sync 0;\n",
        4 * threads
    );
    // Lanes of these take what lanes have that they do not name.
    let named: String = text.lines().filter(|l| !l.contains("shfl.sync.down")).map(|l| format!("{l}\n")).collect();
    defined(&named.replacen(FIRST, &(fill + FIRST), 1), true)
}
