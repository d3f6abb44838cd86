//! Statements that press on a generator of code: more live values than the host has registers, in loops whose lanes leave at different times; accesses that
//! end where an allocation does, or by an index; atomics whose old values are read; values that all lanes share, or that go up by even steps, and what is made of those alone.

use super::grow::{Grower, UNIFORM};
use super::templates::Class;
use super::{INPUT_BYTES, Node, REGS};

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

/// A load by an index of 32 bits of the input, as compilers write it: lanes at neighbours, all at one place, or anywhere, from a base at either end.
pub(super) fn numbered(g: &mut Grower<'_>) -> Node {
    let guard = g.guard();
    let forms: [(&str, String, usize); 9] = [
        ("u8", g.r(), 1),
        ("s16", g.r(), 2),
        ("b32", g.r(), 4),
        ("f32", g.r(), 4),
        ("s32", g.reg(Class::L), 4),
        ("b64", g.reg(Class::L), 8),
        ("v2.b32", "{%r1, %r4}".into(), 8),
        ("v4.b32", "{%r1, %r2, %r4, %r5}".into(), 16),
        ("v2.b64", "{%l1, %l4}".into(), 16),
    ];
    let (ty, to, bytes) = g.rng.pick(&forms).clone();
    // Bytes from an index to the next one: of a tuple the element's, mostly.
    let step = if bytes >= 8 && g.rng.one_in(2) { 4 } else { bytes };
    let n = INPUT_BYTES / bytes;
    let mut lines = vec![match g.rng.below(5) {
        0 => format!("and.b32 %t0, {}, {};", g.r(), 31.min(n - 1)),
        1 => format!("div.u32 %t0, %lin, {};", 33 + g.rng.below(100)),
        2 => format!("xor.b32 %t0, %lin, {};", g.rng.pick(&[0, 1, 32, 48])),
        3 => format!("mad.lo.u32 %t0, {}, 0, {};", g.r(), g.rng.below(n)),
        _ => format!("max.u32 %t0, %lin, {};", g.rng.below(n)),
    }];
    lines.push(format!("rem.u32 %t0, %t0, {n};"));
    let signed = g.rng.one_in(2);
    // The last element from the end of the input is that of index 0.
    let back = signed && g.rng.one_in(2);
    if back {
        lines.push(format!("sub.s32 %t0, %t0, {};", n - 1));
    }
    if step != bytes {
        lines.push(format!("mul.lo.u32 %t0, %t0, {};", bytes / step));
    }
    let sign = if signed { 's' } else { 'u' };
    if g.rng.one_in(3) {
        lines.push(format!("cvt.{sign}64.{sign}32 %a0, %t0;"));
        lines.push(format!("shl.b64 %a0, %a0, {};", step.trailing_zeros()));
    } else {
        lines.push(format!("mul.wide.{sign}32 %a0, %t0, {step};"));
    }
    lines.push("add.s64 %a0, %in, %a0;".into());
    let offset = if back { INPUT_BYTES / bytes * bytes - bytes } else { 0 };
    lines.push(format!("{guard}ld.global.{ty} {to}, [%a0+{offset}];"));
    Node::Lines(lines)
}

/// Loads through what a thread is told of its place, each into a register that is written once, and a chain of what is made of them.
pub(super) fn coordinates(g: &mut Grower<'_>) -> Node {
    let mut lines = vec!["{".to_owned(), ".reg .b32 %v<24>, %c<8>;".into(), ".reg .b64 %e<8>;".into()];
    let mut n = 2 + g.rng.below(6);
    for i in 0..n {
        let coordinate = *g.rng.pick(&["%tid.x", "%tid.y", "%tid.z", "%lane", "%lin"]);
        // The last of 256 threads stays within the input.
        let (step, offset) = (*g.rng.pick(&[4, 4, 4, 12]), 4 * g.rng.below(64));
        lines.push(format!("mov.u32 %c{i}, {coordinate};"));
        lines.push(format!("mad.wide.u32 %e{i}, %c{i}, {step}, %in;"));
        lines.push(format!("ld.global.b32 %v{i}, [%e{i}+{offset}];"));
    }
    for _ in 0..4 + g.rng.below(12) {
        let op = *g.rng.pick(&[
            "add.u32",
            "sub.u32",
            "xor.b32",
            "max.s32",
            "add.f32",
            "mul.rn.f32",
            "mad.lo.u32",
            "fma.rn.f32",
        ]);
        let sources = if op.starts_with("mad") || op.starts_with("fma") { 3 } else { 2 };
        let sources: Vec<String> = (0..sources).map(|_| format!("%v{}", g.rng.below(n))).collect();
        lines.push(format!("{op} %v{n}, {};", sources.join(", ")));
        n += 1;
    }
    let to = g.r();
    lines.push(format!("xor.b32 {to}, %v{}, %v{};", n - 1, n - 2));
    lines.push("}".into());
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

/// A chain of instructions on registers of its own, which all lanes share, or which go up by even steps from lane to lane. It ends in a selection.
pub(super) fn shared_chain(g: &mut Grower<'_>) -> Node {
    let mut lines = vec!["{".to_owned()];
    for c in Class::ALL {
        lines.push(format!(".reg .{} %s{}<{REGS}>;", c.ty(), c.letter()));
    }
    let is_affine = g.rng.one_in(3);
    for i in 0..REGS {
        let u = g.rng.below(UNIFORM);
        // Numbers of ordinary size, as floats too.
        lines.push(match g.rng.below(4) {
            0 => format!("mov.u32 %sr{i}, %u{u};"),
            1 => format!("cvt.rn.f32.u32 %sr{i}, %u{u};"),
            2 if is_affine => format!("mad.lo.u32 %sr{i}, %ti, {}, %u{u};", g.rng.below(300)),
            _ => format!("xor.b32 %sr{i}, %u{u}, {:#x};", 0x3f80_0000 + g.rng.below(1 << 24)),
        });
        lines.push(format!("cvt.u16.u32 %sh{i}, %sr{i};"));
        lines.push(match g.rng.below(3) {
            0 => format!("cvt.u64.u32 %sl{i}, %sr{i};"),
            1 => format!("cvt.rn.f64.u32 %sl{i}, %u{u};"),
            _ => format!("mad.wide.u32 %sl{i}, %sr{i}, 8, %sl{};", i.saturating_sub(1)),
        });
        lines.push(format!("setp.gt.s32 %sp{i}, %u{u}, {};", g.rng.below(16)));
    }
    for _ in 0..2 + g.rng.below(6) {
        let made = g.instruction();
        lines.extend(made.into_iter().map(|line| of_chain(&line)));
    }
    let (d, a, b, p) = (g.r(), g.rng.below(REGS), g.rng.below(REGS), g.rng.below(REGS));
    lines.push(format!("selp.b32 %sr{a}, %sr{a}, 0f3fc00000, %sp{p};"));
    lines.push(format!("selp.f32 %sr{b}, 0f40400000, %sr{b}, %sp{p};"));
    for i in 0..REGS {
        lines.push(format!("xor.b32 {d}, {d}, %sr{i};"));
    }
    let (wide, half) = (g.reg(Class::L), g.reg(Class::H));
    for i in 0..REGS {
        lines.push(format!("xor.b64 {wide}, {wide}, %sl{i};"));
        lines.push(format!("xor.b16 {half}, {half}, %sh{i};"));
    }
    lines.push(format!("mov.pred {}, %sp{p};", g.reg(Class::P)));
    lines.push("}".into());
    Node::Lines(lines)
}

/// A statement with registers of the chain instead.
fn of_chain(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('%') {
        let name = &rest[at + 1..];
        let mut letters = name.chars();
        let is_class = letters.next().is_some_and(|c| Class::ALL.iter().any(|k| k.letter() == c));
        let is_register = is_class && letters.next().is_some_and(|c| c.is_ascii_digit());
        out.push_str(&rest[..at]);
        out.push_str(if is_register { "%s" } else { "%" });
        rest = name;
    }
    out + rest
}
