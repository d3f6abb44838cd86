//! Operands: registers, literals, vectors, predicates, special registers, addresses.

use crate::common::*;
use handloom_check::module::{AddrBase, Fit, Operand};
use handloom_ir::types::{ScalarType, StateSpace};

#[test]
fn accepted_operands() {
    for statement in [
        "add.u32 %r1, %s2, %u3;",
        "add.f32 %r1, %f2, 1.0;",
        "and.b32 %f1, %f2, %r3;",
        "add.f32 %v.x, %v.g, %v.w;",
        "add.u32 %r1, %hh1, WARP_SZ;",
        "mul.wide.s32 %d1, %r1, 8;",
        "shl.b64 %d1, %d2, %r3;",
        "mov.b64 %d1, {%r1, %r2};",
        "mov.b64 {%r1, _}, %d1;",
        "mov.b64 %d1, %w;",
        "mov.b32 %r1, 0f3F800000;",
        "mov.b64 %d1, 1.0;",
        "mov.u64 %d1, g+4;",
        "mov.u64 %d1, g[2];",
        "mov.u64 %d1, fn0;",
        "mov.u64 %d1, pa;",
        "mov.u16 %h1, %tid.x;",
        "mov.v4.u32 {%r1, %r2, %r3, %r4}, %tid;",
        "cvt.u64.u32 %d1, %tid.x;",
        "mov.pred %p1, 1;",
        "selp.b32 %r1, %r2, 0f00000000, !%p1;",
        "setp.lt.and.u32 %p1|_, %r1, %r2, !%p2;",
        "setp.eq.u32 _|%p1, %r1, %r2;",
        "@!%p1 add.u32 %r1, %r2, -1;",
        "ld.global.v4.f32 %v, [g];",
        "ld.global.f32 {%f1}, [g];",
        "ld.global.u32 %r1, [g+4*2];",
        "ld.global.u32 %r1, [g+-4];",
        "ld.global.u32 %r1, g[2];",
        "ld.local.u32 %r1, [16];",
        "ld.u32 %r1, [s];",
        "st.global.v2.b64 [g], {0d0000000000000000, %d1};",
        "ld.shared::cluster.u32 %r1, [s];",
        "cvta.global.u64 %d1, g+8;",
        "shfl.sync.idx.b32 %r1|%p1, %r2, %r3, 31, -1;",
        "isspacep.global %p1, %r1;",
    ] {
        accepted(statement);
    }
}

#[test]
fn refused_operands() {
    for (statement, code, message) in [
        ("add.u32 %f1, %r1, %r2;", "E0303", "`add.u32` cannot take the `.f32` register `%f1` as `d`"),
        ("add.f32 %u1, %f2, %f3;", "E0303", "`.u32` register `%u1`"),
        ("add.f32 %f1, %hh2, %f3;", "E0303", "`.f16x2` register"),
        ("add.u32 %r1, %p1, %r2;", "E0303", "`.pred` register"),
        ("mul.wide.s32 %r1, %r1, %r2;", "E0303", "`%r1` as `d`"),
        ("shl.b64 %d1, %d2, %d3;", "E0303", "`%d3` as `b`"),
        ("cvt.rn.bf16.f32 %r1, %f1;", "E0303", "`.b32` register"),
        ("add.f32 %f1, %f2, 1;", "E0305", "an integer literal"),
        ("add.s32 %r1, %r2, 1.0;", "E0305", "a float literal"),
        ("mov.b32 %r1, 1.0;", "E0305", "a float literal where `.b32`"),
        ("mov.b64 %d1, 0f3F800000;", "E0305", "a float literal where `.b64`"),
        ("add.f16 %hf1, %hf2, 1.0;", "E0305", "there are no literals of type `.f16`"),
        ("add.u32 1, %r2, %r3;", "E0304", "takes a register as `d`, not a constant"),
        ("add.u32 _, %r2, %r3;", "E0304", "not `_`"),
        ("add.u32 g, %r2, %r3;", "E0203", "`g` is a variable"),
        ("add.u64 %d1, %d2, g;", "E0203", "`g` is a variable"),
        ("add.u32 %tid.x, %r2, %r3;", "E0304", "cannot be written"),
        ("add.u32 %r1, %tid.x, 1;", "E0304", "cannot read the special register `%tid.x`"),
        ("mov.u64 %d1, %tid.x;", "E0303", "`%tid.x` is `.u32`"),
        ("mov.u32 %r1, %tid;", "E0304", "is a vector of four"),
        ("mov.u32 %r1, %tid.q;", "E0201", "there is no special register `%tid.q`"),
        ("mov.f64 %g1, g;", "E0303", "an address does not fit"),
        ("mov.u64 %d1, fn0+4;", "E0304", "address of a function"),
        ("add.f32 %f1, %v, 1.0;", "E0304", "vector register of 4 components"),
        ("add.f32 %f1, %v.q, 1.0;", "E0304", "no component `.q`"),
        ("add.u32 %r1, %r2;", "E0302", "takes 3 operands, 2 are given"),
        ("add.u32 %r1, %r2, %r3, %r4;", "E0302", "takes 3 operands, 4 are given"),
        ("ld.global.v4.f32 {%f1,%f2,%f3}, [g];", "E0302", "takes 4 registers as `d`, not 3"),
        ("ld.global.u32 _, [g];", "E0304", "not `_`"),
        ("st.global.v2.u32 [g], {_, %r1};", "E0304", "not `_`"),
        ("@%r1 add.u32 %r1, %r2, 1;", "E0303", "not a predicate"),
        ("@g add.u32 %r1, %r2, 1;", "E0203", "`g` is a variable, not a predicate register"),
        ("setp.lt.u32 %r1, %r1, %r2;", "E0303", "`%r1` as"),
        ("ld.global.u32 %r1, [%f2];", "E0303", "a `.f32` register cannot hold an address"),
        ("ld.global.u32 %r1, [%tid.x];", "E0304", "is no address"),
        ("ld.global.u32 %r1, [fn0];", "E0304", "the function `fn0` is no address"),
        ("ld.global.u32 %r1, %d1;", "E0304", "an address in brackets"),
        ("ld.global.u32 %r1, [16];", "E0304", "constant address"),
        ("ld.global.u32 %r1, [%d1+1.0];", "E0305", "offset"),
        ("ld.global.u32 %r1, [s];", "E0203", "lies in `.shared`, and `ld.global.u32` accesses `.global`"),
        ("cvta.shared.u64 %d1, g;", "E0203", "lies in `.global`"),
        ("ld.u32 %r1, [pb];", "E0203", "lies in `.param`"),
        ("st.param.u32 [pb], 1;", "E0306", "parameter"),
        ("bra g;", "E0203", "`g` is a variable, not a label"),
        ("bra nowhere;", "E0201", "`nowhere` is not declared in `k`"),
        ("shfl.sync.idx.b32 _|%p1, %r2, %r3, 31, -1;", "E0304", "two registers"),
        ("bar.sync 0, 33;", "E0306", "multiple of 32"),
        ("mov.u32 %r1, 7/0;", "E0102", "division by zero"),
    ] {
        refused(statement, code, message);
    }
}

#[test]
fn forms() {
    for (statement, code, message) in [
        ("sad.f32 %f1, %f2, %f3, %f4;", "E0301", "`sad` has no `.f32` form"),
        ("ex2.approx.f64 %g1, %g2;", "E0301", "`ex2` has no `.f64` form"),
        ("add.u32.u32 %r1, %r2, %r3;", "E0301", "`add` takes `.u32` once"),
        ("add %r1, %r2, %r3;", "E0301", "`add` lacks a qualifier"),
        ("foo.u32 %r1;", "E0307", "there is no opcode `foo`"),
        ("ld.relaxed.gpu.global.ca.u32 %r1, [g];", "E0301", "`.ca`"),
        ("mul.s32.lo %r1, %r2, %r3;", "E0301", "`mul`"),
    ] {
        refused(statement, code, message);
    }
    accepted("add.s32.sat %r1, %r2, %r3;");
    accepted("setp.u32.lt %p1, %r1, %r2;");
    accepted("ld.b32.global.acquire.sys %r1, [g];");
}

#[test]
fn gates() {
    let text = |version: &str, target: &str, statement: &str| {
        format!(
            ".version {version}\n.target {target}\n.address_size 64\n.global .u32 g;\n.entry k() {{ .reg .b32 %r<4>; .reg .f32 %f<4>;\n{statement}\nret; }}"
        )
    };
    let load = "ld.acquire.gpu.global.u32 %r1, [g];";
    expect(&text("6.0", "sm_70", load), &[]);
    expect(&text("6.0", "sm_60", load), &[("E0401", 6, "needs `.target sm_70` or higher; this module says `sm_60`")]);
    expect(&text("5.0", "sm_60", load), &[("E0401", 6, "needs `.version 6.0` or newer; this module says 5.0")]);
    expect(&text("7.8", "sm_80", "mov.u32 %r1, %clusterid.x;"), &[("E0401", 6, "`%clusterid.x` needs")]);
}

#[test]
fn warnings() {
    for (statement, code, message) in [
        ("mov.u32 %r1, 0x1ffffffff;", "W0102", "cut to 0xffffffff"),
        ("mov.s32 %r1, 3000000000;", "W0102", "negative number"),
        ("ld.global.v2.u32 {_, %r1}, [g];", "W0301", "not 256 bits"),
    ] {
        refused(statement, code, message);
    }
    accepted("mov.s32 %r1, 0xffffffff;");
    accepted("mov.u32 %r1, -1;");
    accepted("mov.b16 %h1, -32768;");
}

#[test]
fn what_operands_become() {
    let m = module(&in_entry(
        "ld.global.s8 %r1, [g+3];\nst.global.u8 [%d1], %r1;\nadd.f64 %g1, %g2, 0f3F800000;\nmov.u64 %d1, s+8;\n\
         ld.param.u32 %r2, [pb];\n@!%p1 mov.u32 %r3, %laneid;\nmov.s16 %h1, -1;\nsetp.eq.u32 %p2|_, %r1, 1;\nld.local.u32 %r1, [l];",
    ));
    let i = insts(&m, "k");
    assert!(matches!(i[0].dst[0], Operand::Reg { ty: ScalarType::S8, fit: Fit::Sign, .. }));
    assert!(matches!(i[0].src[0], Operand::Addr { base: AddrBase::Symbol(_), offset: 3 }));
    assert_eq!(i[0].u.named_space, Some(StateSpace::Global));
    assert!(matches!(i[1].src[1], Operand::Reg { ty: ScalarType::U8, fit: Fit::Zero, .. }));
    assert!(matches!(i[2].src[1], Operand::Imm { bits: 0x3ff0_0000_0000_0000, ty: ScalarType::F64, .. }));
    assert!(matches!(i[3].src[0], Operand::AddrOf { base: AddrBase::Symbol(_), offset: 8, ty: ScalarType::U64 }));
    assert_eq!(i[4].u.named_space, Some(StateSpace::ParamEntry));
    assert!(i[5].guard.is_some_and(|(_, negated)| negated));
    assert!(matches!(i[5].src[0], Operand::Sreg { ty: ScalarType::U32, .. }));
    assert!(matches!(i[6].src[0], Operand::Imm { bits: 0xffff, .. }));
    assert!(matches!(&i[7].dst[0], Operand::Vector(v) if matches!(v[1], Operand::Sink)));
    assert!(matches!(i[8].src[0], Operand::Addr { base: AddrBase::Var(_), offset: 0 }));
}
