//! `shfl`: exchanges 32-bit values between the lanes of a warp.

use handloom_ir::simt::{Op, Val};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{ShflMode, Ty};
use smallvec::smallvec;

use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

const QUALIFIERS: &[Group] = &[
    must(
        Role::Mode,
        &[
            choice(".up", Value::Shfl(ShflMode::Up)),
            choice(".down", Value::Shfl(ShflMode::Down)),
            choice(".bfly", Value::Shfl(ShflMode::Bfly)),
            choice(".idx", Value::Shfl(ShflMode::Idx)),
        ],
    ),
    must(Role::Type, &[ty(".b32", B32)]),
];

/// `shfl.sync.mode.b32 d[|p], a, b, c, membermask`: lane `b` or lane distance `b`, clamp and segment mask in `c`.
pub const SHFL_SYNC: Form = Form {
    opcode: "shfl",
    words: &[".sync"],
    section: "Data Movement and Conversion Instructions: shfl.sync",
    qualifiers: QUALIFIERS,
    dst: &[operand("d", Kind::RegPredPair, Is::Like(Role::Type))],
    src: &[
        val("a", Is::Like(Role::Type)),
        val("b", Is::Fixed(B32)),
        val("c", Is::Fixed(B32)),
        val("membermask", Is::Fixed(U32)),
    ],
    needs: Needs::on(6, 0, &[AtLeast(30)]),
    legal: always,
    semantics: Semantics::Warp(|x| {
        let membermask = x.src(3);
        shuffle(x, membermask);
    }),
};

/// `shfl.mode.b32 d[|p], a, b, c`: among the lanes that execute it together. Gone from 6.4 on for sm_70 and up.
pub const SHFL: Form = Form {
    words: &[],
    section: "Data Movement and Conversion Instructions: shfl (deprecated)",
    src: &[val("a", Is::Like(Role::Type)), val("b", Is::Fixed(B32)), val("c", Is::Fixed(B32))],
    needs: Needs::on(3, 0, &[AtLeast(30)]),
    legal: legacy,
    semantics: Semantics::Warp(|x| {
        let membermask = active_lanes(x);
        shuffle(x, membermask);
    }),
    ..SHFL_SYNC
};

fn shuffle(x: &mut Cx<'_, '_>, membermask: Val) {
    let Some(Value::Shfl(mode)) = x.u.value(Role::Mode) else {
        panic!("record of shfl without a mode");
    };
    let (value, in_range) = (x.b.reg(Ty::B32), x.b.reg(Ty::P));
    let src = smallvec![x.src(0), x.src(1), x.src(2), membermask];
    x.b.push(Op::Shfl(mode), smallvec![value, in_range], src);
    x.set_at(0, 0, Val::Reg(value));
    x.set_at(0, 1, Val::Reg(in_range));
}

/// The lanes that execute the instruction, for forms without a member mask.
pub fn active_lanes(x: &mut Cx<'_, '_>) -> Val {
    let mask = x.b.reg(Ty::B32);
    x.b.push(Op::Activemask, smallvec![mask], smallvec![]);
    Val::Reg(mask)
}

/// The `legal` of warp instructions without `.sync`.
pub fn legacy(u: &Use) -> Result<Needs, Reason> {
    if u.version >= crate::target::Version::new(6, 4) && u.target.sm >= 70 {
        let why = "the form without `.sync` was removed in PTX 6.4 for sm_70 and higher";
        return Err(Reason::new(why).help("write `.sync` and a member mask"));
    }
    Ok(Needs::NONE)
}
