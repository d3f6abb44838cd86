//! `cvta`: makes an address generic, or takes a generic address into a state space.
//!
//! Only `.shared` addresses differ from generic ones here, but the op keeps the space for all of them: it says where a pointer points.

use handloom_ir::simt::{Op, Val};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{StateSpace, Ty};
use smallvec::smallvec;

use super::memory::*;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// State spaces of `cvta`; also used by `isspacep`.
pub const SPACES: &[Choice] = &[
    choice_if(".const", Value::Space(StateSpace::Const), Needs::ptx(3, 1)),
    GLOBAL,
    LOCAL,
    SHARED,
    SHARED_CTA,
    SHARED_CLUSTER,
    choice_if(".param", Value::Space(StateSpace::ParamEntry), Needs::on(7, 7, &[AtLeast(70)])),
    choice_if(".param::entry", Value::Space(StateSpace::ParamEntry), Needs::on(8, 3, &[AtLeast(70)])),
];

const SIZE: Group = must(Role::Type, &[ty(".u32", U32), ty(".u64", U64)]);
const SPACE: Group = must(Role::Space, SPACES);

/// `cvta.space.size p, a`: from an address of the space, or a variable in it, to a generic address.
pub const CVTA: Form = Form {
    opcode: "cvta",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvta",
    qualifiers: &[SIZE, SPACE],
    dst: &[reg("p", Is::Like(Role::Type))],
    src: &[operand("a", Kind::MovSource, Is::Like(Role::Type))],
    needs: Needs::on(2, 0, &[AtLeast(20)]),
    legal: same_space,
    semantics: Semantics::Build(|x| convert(x, false)),
};

/// `cvta.to.space.size p, a`: from a generic address to the address in the space.
pub const CVTA_TO: Form = Form {
    qualifiers: &[lead(Role::Mode, &[choice(".to", Value::Flag)]), SIZE, SPACE],
    src: &[val("a", Is::Like(Role::Type))],
    semantics: Semantics::Build(|x| convert(x, true)),
    ..CVTA
};

/// A variable must be in the space that is written.
fn same_space(u: &Use) -> Result<Needs, Reason> {
    let written = u.space(Role::Space);
    match u.named_space {
        Some(named) if named != written && (named, written) != (StateSpace::Shared, StateSpace::SharedCluster) => {
            let word = u.text(Role::Space);
            Err(Reason::new(format!("the variable is in `.{}`, not in `{word}`", named.name())).at(word))
        }
        _ => Ok(Needs::NONE),
    }
}

fn convert(x: &mut Cx<'_, '_>, to_space: bool) {
    let op = Op::Cvta { space: x.u.space(Role::Space), to_space };
    let narrow = x.u.ty(Role::Type).ty();
    let a = x.src(0);
    let wide = x.b.ext(a, narrow.bits(), false, Ty::B64);
    let d = x.b.reg(Ty::B64);
    x.b.push(op, smallvec![d], smallvec![wide]);
    let result = if narrow == Ty::B64 { Val::Reg(d) } else { x.b.half(Val::Reg(d), false) };
    x.set(result);
}
