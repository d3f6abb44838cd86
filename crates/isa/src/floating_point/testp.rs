//! `testp`: asks whether a float has a property.
//!
//! The assembler lets it pass without a property, against the manual; it is refused here.

use handloom_ir::simt::Pure;
use handloom_ir::types::{ScalarType, TestProperty, Ty};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `testp.op.type p, a`. Zeros are normal numbers.
pub const TESTP: Form = Form {
    opcode: "testp",
    words: &[],
    section: "Floating Point Instructions: testp",
    qualifiers: &[PROPERTY, one_of(Role::Type, F32_F64)],
    dst: &[reg("p", Is::Fixed(ScalarType::Pred))],
    src: &[val("a", TYPE)],
    needs: Needs::on(2, 0, SM_20),
    legal: always,
    semantics: Semantics::Build(|x| {
        let Some(Value::Test(property)) = x.u.value(Role::Op) else { panic!("`testp` without a property") };
        let ty = float(x.u);
        apply(x, Pure::Testp { property, ty }, Ty::P, 1);
    }),
};

const PROPERTY: Group = must(
    Role::Op,
    &[
        choice(".finite", Value::Test(TestProperty::Finite)),
        choice(".infinite", Value::Test(TestProperty::Infinite)),
        choice(".number", Value::Test(TestProperty::Number)),
        choice(".notanumber", Value::Test(TestProperty::NotANumber)),
        choice(".normal", Value::Test(TestProperty::Normal)),
        choice(".subnormal", Value::Test(TestProperty::Subnormal)),
    ],
);
