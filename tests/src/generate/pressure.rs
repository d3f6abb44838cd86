//! Statements that press on a generator of code: more live values than the host has registers, in loops whose lanes leave at different times; accesses that
//! end where an allocation does; atomics whose old values are read.

use super::grow::Grower;
use super::templates::Class;
use super::{INPUT_BYTES, Node};

/// A loop of its own with many values of 64 bits, of 32 bits and many predicates, all of which live over its back edge. Lanes turn 1 to 4 times.
pub(super) fn registers(g: &mut Grower<'_>) -> Node {
    let (wide, narrow, predicates) = (g.rng.below(9), 2 + g.rng.below(16), g.rng.below(9));
    let mut lines = vec![
        "{".to_owned(),
        ".reg .b64 %x<12>;".into(),
        ".reg .b32 %y<20>, %turns;".into(),
        ".reg .pred %z<12>, %on;".into(),
    ];
    for i in 0..=wide {
        lines.push(format!("mov.b64 %x{i}, {};", g.reg(Class::L)));
    }
    for i in 0..=narrow {
        lines.push(format!("mov.b32 %y{i}, {};", g.r()));
    }
    for i in 0..=predicates {
        lines.push(format!("setp.gt.s32 %z{i}, {}, {};", g.r(), g.rng.below(100)));
    }
    lines.push(format!("and.b32 %turns, {}, 3;", g.r()));
    lines.push("turn$N:".into());
    for i in 0..wide {
        let op = *g.rng.pick(&["add.u64", "xor.b64", "mul.lo.u64", "min.s64", "sub.u64"]);
        lines.push(format!("{op} %x{i}, %x{i}, %x{};", i + 1));
    }
    for i in 0..narrow {
        let op = *g.rng.pick(&["add.u32", "xor.b32", "mul.lo.u32", "max.s32", "add.f32", "mul.rn.f32", "shl.b32"]);
        let guard = if g.rng.one_in(3) { format!("@%z{} ", i % (predicates + 1)) } else { String::new() };
        lines.push(format!("{guard}{op} %y{i}, %y{i}, %y{};", i + 1));
    }
    for i in 0..predicates {
        let text = match g.rng.below(3) {
            0 => format!("xor.pred %z{i}, %z{i}, %z{};", i + 1),
            1 => format!("setp.lt.or.u32 %z{i}, %y0, %y1, %z{};", i + 1),
            _ => format!("setp.ge.and.s64 %z{i}, %x0, %x{wide}, %z{};", i + 1),
        };
        lines.push(text);
    }
    lines.push("sub.u32 %turns, %turns, 1;".into());
    lines.push("setp.ge.s32 %on, %turns, 0;".into());
    lines.push("@%on bra turn$N;".into());
    // All of them are read afterwards.
    for i in 0..wide {
        lines.push(format!("xor.b64 %x{wide}, %x{wide}, %x{i};"));
    }
    for i in 0..narrow {
        lines.push(format!("xor.b32 %y{narrow}, %y{narrow}, %y{i};"));
    }
    for i in 0..=predicates {
        lines.push(format!("@%z{i} add.u32 %y{narrow}, %y{narrow}, {};", 1 << i));
    }
    lines.push(format!("mov.b64 {}, %x{wide};", g.reg(Class::L)));
    lines.push(format!("mov.b32 {}, %y{narrow};", g.r()));
    lines.push("}".into());
    Node::Lines(lines)
}

/// A load whose lanes are at the first or the last elements of the input.
pub(super) fn ends(g: &mut Grower<'_>) -> Node {
    let (index, guard) = (g.r(), g.guard());
    let forms: [(&str, String, usize); 8] = [
        ("u8", g.r(), 1),
        ("s8", g.reg(Class::H), 1),
        ("u16", g.reg(Class::H), 2),
        ("s16", g.r(), 2),
        ("b32", g.r(), 4),
        ("s32", g.reg(Class::L), 4),
        ("b64", g.reg(Class::L), 8),
        ("v2.b64", "{%l1, %l4}".into(), 16),
    ];
    let (ty, to, bytes) = g.rng.pick(&forms).clone();
    let mask = *g.rng.pick(&[0, 1, 7, 31]);
    let mut lines = vec![format!("and.b32 %t0, {index}, {mask};"), format!("mul.wide.u32 %a0, %t0, {bytes};")];
    let offset = if g.rng.one_in(3) {
        lines.push("add.u64 %a0, %in, %a0;".into());
        0
    } else {
        lines.push("sub.u64 %a0, %in, %a0;".into());
        INPUT_BYTES - bytes
    };
    lines.push(format!("{guard}ld.global.{ty} {to}, [%a0+{offset}];"));
    Node::Lines(lines)
}

/// An atomic on a word that is the thread's own, in global or in shared memory.
pub(super) fn own_atomic(g: &mut Grower<'_>) -> Node {
    const NARROW: [&str; 11] = [
        "add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32", "exch.b32", "inc.u32", "dec.u32", "add.f32",
        "cas.b32",
    ];
    const WIDE: [&str; 8] = ["add.u64", "min.u64", "max.s64", "and.b64", "xor.b64", "exch.b64", "add.f64", "cas.b64"];
    let is_wide = g.rng.one_in(3);
    let op = if is_wide { *g.rng.pick(&WIDE) } else { *g.rng.pick(&NARROW) };
    let class = if is_wide { Class::L } else { Class::R };
    let (d, x, guard) = (g.reg(class), g.reg(class), g.guard());
    let y = if op.starts_with("cas") { format!(", {}", g.reg(class)) } else { String::new() };
    let mut lines = Vec::new();
    let (space, at) = match g.rng.below(3) {
        0 if !is_wide => {
            lines.push("mov.u32 %t1, tile;".into());
            lines.push("mad.lo.u32 %t0, %lin, 4, %t1;".into());
            // What others left there is theirs.
            lines.push(format!("st.shared.b32 [%t0], {};", g.r()));
            (".shared", "[%t0]".to_owned())
        }
        1 => ("", format!("[%own+{}]", 88 + 8 * g.rng.below(5))),
        _ => (".global", format!("[%own+{}]", 88 + 8 * g.rng.below(5))),
    };
    let is_red = y.is_empty() && !op.starts_with("exch") && g.rng.one_in(4);
    lines.push(if is_red {
        format!("{guard}red{space}.{op} {at}, {x};")
    } else {
        format!("{guard}atom{space}.{op} {d}, {at}, {x}{y};")
    });
    Node::Lines(lines)
}
