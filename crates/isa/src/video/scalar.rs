//! What the records of scalar video instructions share.

use handloom_ir::simt::video::PartOf;
use handloom_ir::simt::{Part, Pure, Video, VideoEnd, VideoOp};
use handloom_ir::types::ScalarType::U32;
use handloom_ir::types::{Cmp, Ty};

use crate::compose::apply;
use crate::form::*;
use crate::selector::Select;
use crate::target::Needs;
use crate::words::*;

pub(super) const ARITHMETIC: &str = "Scalar Video Instructions: vadd, vsub, vabsdiff, vmin, vmax";
pub(super) const SCALAR: Needs = Needs::on(2, 0, SM_20);

pub(super) const DTYPE: Group = one_of(Role::Type, INTS_32);
pub(super) const ATYPE: Group = one_of(Role::Type2, INTS_32);
pub(super) const BTYPE: Group = one_of(Role::Type3, INTS_32);
/// The amount of a shift is unsigned.
pub(super) const UNSIGNED_BTYPE: Group = one_of(Role::Type3, &[ty(".u32", U32)]);
/// The assembler takes `.sat` twice.
pub(super) const SAT_AGAIN: Group = opt_seq(Role::Flag2, &[choice(".sat", Value::Flag)]);
/// The secondary operation.
pub(super) const OP2: Group =
    must(Role::Op, &[choice(".add", Value::Tag(0)), choice(".min", Value::Tag(1)), choice(".max", Value::Tag(2))]);
/// The comparisons of `vset` and its SIMD kin.
pub(super) const COMPARISON: Group = must(
    Role::Cmp,
    &[
        choice(".eq", Value::Cmp(Cmp::Eq)),
        choice(".ne", Value::Cmp(Cmp::Ne)),
        choice(".lt", Value::Cmp(Cmp::Lt)),
        choice(".le", Value::Cmp(Cmp::Le)),
        choice(".gt", Value::Cmp(Cmp::Gt)),
        choice(".ge", Value::Cmp(Cmp::Ge)),
    ],
);

/// The destination.
pub(super) const D: Operand = video("d", TYPE, Select::Nothing, false);
/// The destination, or the part of it that is not `c`'s.
pub(super) const PART_OF_D: Operand = video("d", TYPE, Select::Part, false);
pub(super) const A: Operand = part_of("a", TYPE2);
pub(super) const B: Operand = part_of("b", TYPE3);
pub(super) const C: Operand = whole("c", TYPE);
/// What the result is merged into.
pub(super) const C_OF_MERGE: Operand = C.optional();

/// An operand of a video instruction.
pub(super) const fn video(name: &'static str, is: Is, select: Select, literal: bool) -> Operand {
    operand(name, Kind::Video { select, literal, negatable: false }, is)
}

/// A source that a selector may follow.
pub(super) const fn part_of(name: &'static str, is: Is) -> Operand {
    video(name, is, Select::Part, true)
}

/// A source that is a whole word.
pub(super) const fn whole(name: &'static str, is: Is) -> Operand {
    video(name, is, Select::Nothing, true)
}

/// The same with an optional sign.
pub(super) const fn negatable(o: Operand) -> Operand {
    match o.kind {
        Kind::Video { select, literal, .. } => Operand { kind: Kind::Video { select, literal, negatable: true }, ..o },
        _ => o,
    }
}

/// A selector after `d` and the operand `c` go together.
pub(super) fn merges(u: &Use) -> Result<Needs, Reason> {
    match (u.marks[0].selector.is_some(), u.n_src) {
        (true, 2) => Err(Reason::new("a selector behind `d` needs the operand `c`").help("write what is merged into")),
        (false, 3) => Err(Reason {
            warning: true,
            ..Reason::new("`c` has no use without a selector behind `d` or a secondary operation")
        }),
        _ => once(u),
    }
}

/// `.sat` once.
pub(super) fn once(u: &Use) -> Result<Needs, Reason> {
    if u.has(Role::Sat) && u.has(Role::Flag2) {
        return Err(Reason { warning: true, ..Reason::new("`.sat` is written twice").at(".sat") });
    }
    Ok(Needs::NONE)
}

/// Builds an op whose types are in the usual roles.
pub(super) fn scalar(x: &mut Cx<'_, '_>, op: VideoOp) {
    let signed = x.u.ty(Role::Type).is_signed();
    of_signs(x, op, signed, Role::Type2, Role::Type3);
}

/// Builds an op; `atype` and `btype` hold the types of the sources.
pub(super) fn of_signs(x: &mut Cx<'_, '_>, op: VideoOp, signed: bool, atype: Role, btype: Role) {
    let end = match (x.u.value(Role::Op), x.u.marks[0].part()) {
        (Some(Value::Tag(0)), _) => VideoEnd::Add,
        (Some(Value::Tag(1)), _) => VideoEnd::Min,
        (Some(_), _) => VideoEnd::Max,
        (None, Part::Word) => VideoEnd::Plain,
        (None, part) => VideoEnd::Merge(part),
    };
    let sat = x.u.has(Role::Sat) || x.u.has(Role::Flag2);
    let video = Video { op, signed, a: source(x.u, 1, atype), b: source(x.u, 2, btype), sat, end };
    apply(x, Pure::Video(video), Ty::B32, if end == VideoEnd::Plain { 2 } else { 3 });
}

/// Operand `i` and its type.
pub(super) fn source(u: &Use, i: usize, ty: Role) -> PartOf {
    PartOf { part: u.marks[i].part(), signed: u.ty(ty).is_signed() }
}
