//! `alloca`, `stacksave`, `stackrestore`: memory on the stack whose size is known at run time.
//!
//! Addresses are those of local memory. In 32 bits they lack the upper half, as addresses of local variables do there.

use handloom_ir::simt::{Op, StackOp, Val};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::Ty;
use smallvec::smallvec;

use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;
use crate::words::*;

/// Alignment of what `alloca` returns if none is written, in bytes.
///
/// Choice: the manual promises 8; frames are aligned to 16 here.
const LEAST_ALIGN: u32 = 16;

const TYPES: &[Group] = &[must(Role::Type, &[ty(".u32", U32), ty(".u64", U64)])];

/// `alloca.type ptr, size{, immAlign}`.
pub const ALLOCA: Form = Form {
    opcode: "alloca",
    words: &[],
    section: "Stack Manipulation Instructions: alloca",
    qualifiers: TYPES,
    dst: &[reg("ptr", TYPE)],
    src: &[val("size", TYPE), operand("immAlign", Kind::Imm, WORD).optional()],
    needs: Needs::on(7, 3, &[AtLeast(52)]),
    legal: always,
    semantics: Semantics::Warp(|x| {
        let written = match x.src_opt(1) {
            Some(Val::Imm(align, _)) => u32::try_from(align).unwrap_or(LEAST_ALIGN),
            Some(Val::Reg(_)) | None => LEAST_ALIGN,
        };
        let size = x.src(0);
        let bits = x.b.ty(size).bits();
        let size = x.b.ext(size, bits, false, Ty::B64);
        let d = x.b.reg(Ty::B64);
        let align = written.max(LEAST_ALIGN);
        x.b.push(Op::Stack(StackOp::Alloca { align }), smallvec![d], smallvec![size]);
        set_address(x, d);
    }),
};

/// `stacksave.type d`.
pub const STACKSAVE: Form = Form {
    opcode: "stacksave",
    section: "Stack Manipulation Instructions: stacksave",
    dst: &[reg("d", TYPE)],
    src: &[],
    semantics: Semantics::Warp(|x| {
        let d = save(x);
        set_address(x, d);
    }),
    ..ALLOCA
};

/// `stackrestore.type a`.
pub const STACKRESTORE: Form = Form {
    opcode: "stackrestore",
    section: "Stack Manipulation Instructions: stackrestore",
    dst: &[],
    src: &[reg("a", TYPE)],
    semantics: Semantics::Warp(|x| {
        let a = x.src(0);
        let whole = if x.b.ty(a) == Ty::B64 {
            a
        } else {
            // The distance to where the stack ends tells the upper half.
            let now = Val::Reg(save(x));
            let low = x.b.half(now, false);
            let distance = x.b.sub(a, low);
            let distance = x.b.ext(distance, 32, true, Ty::B64);
            x.b.add(now, distance)
        };
        x.b.push(Op::Stack(StackOp::Restore), smallvec![], smallvec![whole]);
    }),
    ..ALLOCA
};

fn save(x: &mut Cx<'_, '_>) -> handloom_ir::simt::Reg {
    let d = x.b.reg(Ty::B64);
    x.b.push(Op::Stack(StackOp::Save), smallvec![d], smallvec![]);
    d
}

fn set_address(x: &mut Cx<'_, '_>, address: handloom_ir::simt::Reg) {
    let whole = Val::Reg(address);
    let v = if x.u.ty(Role::Type).ty() == Ty::B64 { whole } else { x.b.half(whole, false) };
    x.set(v);
}
