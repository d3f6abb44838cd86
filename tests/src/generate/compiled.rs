//! Pieces as compilers write them: each register is written once, addresses are made of the place of a thread, a load that not all do is followed by a move for
//! the others, and loops add to sums through pointers that go up.

use super::Node;
use super::grow::Grower;
use super::templates::Class;

/// Registers of 32 and of 64 bits, addresses, indices below 256 and predicates that a piece has made so far.
#[derive(Default)]
struct Piece {
    lines: Vec<String>,
    narrow: usize,
    wide: usize,
    addresses: usize,
    indices: usize,
    predicates: usize,
}

/// Most registers of a kind.
const MOST: usize = 40;

/// A piece of 8 to 40 statements.
pub(super) fn piece(g: &mut Grower<'_>) -> Node {
    let mut p = Piece::default();
    for (letter, ty) in [("v", "b32"), ("w", "b64"), ("e", "b64"), ("c", "b32")] {
        p.lines.push(format!(".reg .{ty} %{letter}<{}>;", MOST + 2));
    }
    p.lines.push(format!(".reg .pred %z<{}>;", MOST + 2));
    p.lines.push(".reg .b32 %k;".into());
    for _ in 0..1 + g.rng.below(3) {
        index(&mut p, g);
    }
    address(&mut p, g);
    p.lines.push(format!("ld.global.b32 %v0, [%e{}];", p.addresses - 1));
    p.narrow = 1;
    p.lines.push(format!("cvt.u64.u32 %w0, {};", narrow(&p, g)));
    p.wide = 1;
    p.lines.push(format!("setp.lt.u32 %z0, {}, {};", narrow(&p, g), g.rng.below(256)));
    p.predicates = 1;
    let mut loops = 0;
    for _ in 0..8 + g.rng.below(33) {
        let made = p.narrow.max(p.wide).max(p.addresses).max(p.indices).max(p.predicates);
        if made + 3 >= MOST {
            break;
        }
        match g.rng.below(16) {
            0 => index(&mut p, g),
            1 | 2 => address(&mut p, g),
            3..=5 => load(&mut p, g),
            6..=9 => narrow_op(&mut p, g),
            10 | 11 => wide_op(&mut p, g),
            12 | 13 => compare(&mut p, g),
            14 if loops < 2 => {
                turns(&mut p, g, loops);
                loops += 1;
            }
            _ => convert(&mut p, g),
        }
    }
    let (r, l) = (g.r(), g.reg(Class::L));
    p.lines.push(format!("xor.b32 {r}, {r}, %v{};", p.narrow - 1));
    for _ in 0..2 {
        p.lines.push(format!("add.u32 {r}, {r}, {};", narrow(&p, g)));
    }
    p.lines.push(format!("xor.b64 {l}, {l}, %w{};", p.wide - 1));
    let lines = std::iter::once("{".to_owned()).chain(p.lines).chain(["}".to_owned()]);
    Node::Lines(lines.collect())
}

fn narrow(p: &Piece, g: &mut Grower<'_>) -> String {
    format!("%v{}", late(p.narrow, g))
}

fn wide(p: &Piece, g: &mut Grower<'_>) -> String {
    format!("%w{}", late(p.wide, g))
}

/// One of so many, mostly of the last.
fn late(n: usize, g: &mut Grower<'_>) -> usize {
    if g.rng.one_in(3) { g.rng.below(n) } else { n - 1 - g.rng.below(n.min(4)) }
}

/// A number below 256: of the thread's place, or made of another.
fn index(p: &mut Piece, g: &mut Grower<'_>) {
    let (d, k) = (p.indices, g.rng.below(8));
    if d > 0 && g.rng.one_in(3) {
        let from = g.rng.below(d);
        p.lines.push(format!("mad.lo.u32 %k, %c{from}, {}, {k};", 1 + g.rng.below(4)));
        p.lines.push(format!("and.b32 %c{d}, %k, 255;"));
    } else if p.narrow > 0 && g.rng.one_in(4) {
        p.lines.push(format!("and.b32 %c{d}, {}, 255;", narrow(p, g)));
    } else {
        let place = *g.rng.pick(&["%tid.x", "%tid.y", "%tid.z", "%ctaid.x", "%lane", "%lin", "%lin"]);
        p.lines.push(format!("mov.u32 %c{d}, {place};"));
    }
    p.indices += 1;
}

/// An address of the input with 1 KiB behind it.
fn address(p: &mut Piece, g: &mut Grower<'_>) {
    let (d, i, step) = (p.addresses, g.rng.below(p.indices), *g.rng.pick(&[4, 4, 4, 8, 8]));
    if g.rng.one_in(3) {
        p.lines.push(format!("mul.wide.u32 %e{d}, %c{i}, {step};"));
        p.lines.push(format!("add.s64 %e{}, %in, %e{d};", d + 1));
        p.addresses += 2;
    } else {
        p.lines.push(format!("mad.wide.u32 %e{d}, %c{i}, {step}, %in;"));
        p.addresses += 1;
    }
}

/// A load of one or two elements, for all lanes or for some, with a move for the others.
fn load(p: &mut Piece, g: &mut Grower<'_>) {
    let (e, v, w) = (p.addresses - 1 - g.rng.below(p.addresses.min(3)), p.narrow, p.wide);
    // The address may be the product alone.
    let e = if p.lines.iter().any(|l| l.starts_with(&format!("mul.wide.u32 %e{e},"))) { e + 1 } else { e };
    let at = |k: usize| format!("[%e{e}+{k}]");
    if p.predicates > 0 && g.rng.one_in(3) {
        let z = g.rng.below(p.predicates);
        p.lines.push(format!("@%z{z} ld.global.b32 %v{v}, {};", at(4 * g.rng.below(200))));
        p.lines.push(format!("@!%z{z} mov.b32 %v{v}, {:#x};", g.rng.below(3) * 0x3f80_0000));
        p.narrow += 1;
        return;
    }
    let (kind, k) = (g.rng.below(6), g.rng.below(100));
    p.lines.push(match kind {
        0 if p.lines.iter().any(|l| l.contains(&format!("%e{e}, ")) && l.contains(", 8, ")) => {
            p.narrow += 2;
            format!("ld.global.v2.b32 {{%v{v}, %v{}}}, {};", v + 1, at(8 * k))
        }
        1 if p.lines.iter().any(|l| l.contains(&format!("%e{e}, ")) && l.contains(", 8, ")) => {
            p.wide += 1;
            format!("ld.global.b64 %w{w}, {};", at(8 * k))
        }
        2 => {
            p.narrow += 1;
            format!("ld.global.u16 %v{v}, {};", at(2 * k))
        }
        3 => {
            p.narrow += 1;
            format!("ld.global.nc.b32 %v{v}, {};", at(4 * k))
        }
        _ => {
            p.narrow += 1;
            format!("ld.global.b32 %v{v}, {};", at(4 * k))
        }
    });
}

fn narrow_op(p: &mut Piece, g: &mut Grower<'_>) {
    const TWO: [&str; 14] = [
        "add.u32",
        "sub.u32",
        "mul.lo.u32",
        "and.b32",
        "or.b32",
        "xor.b32",
        "max.s32",
        "min.u32",
        "add.f32",
        "mul.rn.f32",
        "max.f32",
        "add.ftz.f32",
        "shl.b32",
        "shr.s32",
    ];
    const THREE: [&str; 5] = ["mad.lo.u32", "fma.rn.f32", "fma.rn.f32", "fma.rn.ftz.f32", "mad.hi.s32"];
    let (a, mut b, c) = (narrow(p, g), narrow(p, g), narrow(p, g));
    p.lines.push(match g.rng.below(4) {
        0 | 1 => {
            let op = *g.rng.pick(&TWO);
            if g.rng.one_in(4) {
                b = if op.ends_with("f32") { "0f40490fdb" } else { "0x11" }.to_owned();
            }
            format!("{op} %v{}, {a}, {b};", p.narrow)
        }
        2 => format!("{} %v{}, {a}, {b}, {c};", g.rng.pick(&THREE), p.narrow),
        _ => format!("selp.b32 %v{}, {a}, {b}, %z{};", p.narrow, g.rng.below(p.predicates)),
    });
    p.narrow += 1;
}

fn wide_op(p: &mut Piece, g: &mut Grower<'_>) {
    const TWO: [&str; 8] =
        ["add.u64", "sub.u64", "mul.lo.u64", "xor.b64", "max.s64", "add.f64", "mul.rn.f64", "min.u64"];
    let (a, b, c) = (wide(p, g), wide(p, g), wide(p, g));
    p.lines.push(match g.rng.below(4) {
        0 | 1 => format!("{} %w{}, {a}, {b};", g.rng.pick(&TWO), p.wide),
        2 => format!("{} %w{}, {a}, {b}, {c};", g.rng.pick(&["fma.rn.f64", "mad.lo.u64"]), p.wide),
        _ => format!("selp.b64 %w{}, {a}, {b}, %z{};", p.wide, g.rng.below(p.predicates)),
    });
    p.wide += 1;
}

fn compare(p: &mut Piece, g: &mut Grower<'_>) {
    let (d, z) = (p.predicates, g.rng.below(p.predicates));
    p.lines.push(match g.rng.below(4) {
        0 => format!("setp.lt.u32 %z{d}, %c{}, {};", g.rng.below(p.indices), g.rng.below(256)),
        1 => format!("setp.{}.f32 %z{d}, {}, {};", g.rng.pick(&["lt", "geu", "num"]), narrow(p, g), narrow(p, g)),
        2 => format!("setp.ne.and.s32 %z{d}, {}, {}, %z{z};", narrow(p, g), narrow(p, g)),
        _ => format!("setp.gt.s64 %z{d}, {}, {};", wide(p, g), wide(p, g)),
    });
    p.predicates += 1;
}

fn convert(p: &mut Piece, g: &mut Grower<'_>) {
    if g.rng.one_in(3) {
        let how = *g.rng.pick(&["cvt.u64.u32", "cvt.s64.s32", "cvt.f64.f32", "cvt.rn.f64.s32"]);
        p.lines.push(format!("{how} %w{}, {};", p.wide, narrow(p, g)));
        p.wide += 1;
        return;
    }
    p.lines.push(match g.rng.below(6) {
        0 => format!("cvt.rn.f32.s32 %v{}, {};", p.narrow, narrow(p, g)),
        1 => format!("cvt.rzi.s32.f32 %v{}, {};", p.narrow, narrow(p, g)),
        2 => format!("cvt.u32.u64 %v{}, {};", p.narrow, wide(p, g)),
        3 => format!("cvt.rn.f32.f64 %v{}, {};", p.narrow, wide(p, g)),
        4 => format!("ex2.approx.f32 %v{}, {};", p.narrow, narrow(p, g)),
        _ => format!("neg.f32 %v{}, {};", p.narrow, narrow(p, g)),
    });
    p.narrow += 1;
}

/// A loop of the same turns for all lanes that adds what it reads through a pointer to two sums. The pointer goes up behind that, or amidst it.
fn turns(p: &mut Piece, g: &mut Grower<'_>, number: usize) {
    let (sum, other, e, z) = (p.narrow, p.narrow + 1, p.addresses, p.predicates);
    let (i, step, n) = (g.rng.below(p.indices), *g.rng.pick(&[4, 8, 64]), 1 + g.rng.below(5));
    let (a, b) = (narrow(p, g), narrow(p, g));
    p.lines.push(format!("mad.wide.u32 %e{e}, %c{i}, 4, %in;"));
    p.lines.push(format!("mov.b32 %v{sum}, 0;"));
    p.lines.push(format!("mov.b32 %v{other}, {a};"));
    p.lines.push("mov.u32 %k, 0;".into());
    p.lines.push(format!("turn{number}_$N:"));
    p.lines.push("{ .reg .b32 %m<3>;".into());
    p.lines.push(format!("ld.global.b32 %m0, [%e{e}];"));
    let amidst = g.rng.below(3) == 0;
    let up = format!("add.s64 %e{e}, %e{e}, {step};");
    if amidst {
        p.lines.push(up.clone());
    }
    p.lines.push(format!("ld.global.b32 %m1, [%e{e}+4];"));
    p.lines.push(format!("fma.rn.f32 %v{sum}, %m0, {b}, %v{sum};"));
    let op = *g.rng.pick(&["add.u32", "xor.b32", "add.f32", "max.s32"]);
    p.lines.push(format!("{op} %v{other}, %v{other}, %m1;"));
    p.lines.push(if amidst { "}".into() } else { up + " }" });
    p.lines.push("add.u32 %k, %k, 1;".into());
    p.lines.push(format!("setp.lt.u32 %z{z}, %k, {n};"));
    p.lines.push(format!("@%z{z} bra turn{number}_$N;"));
    p.narrow += 2;
    p.addresses += 1;
    p.predicates += 1;
}
