//! `st.async` and `st.bulk`: stores that complete later.

use handloom_ir::simt::{Access, Transfer, Values};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{Order, Scope, StateSpace, Ty};

use super::memory::*;
use super::transfer::*;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;
use crate::words::*;

/// `st.async{.weak}{.shared::cluster}.mbarrier::complete_tx::bytes{.vec}.type [a], b, [mbar]`, or with `.cluster` for `.weak`.
pub const ST_ASYNC: Form = Form {
    opcode: "st.async",
    words: &[COMPLETE_TX],
    section: "Data Movement and Conversion Instructions: st.async",
    qualifiers: &[
        maybe(Role::Order, &[choice(".weak", Value::Flag), choice(".cluster", Value::Flag)]),
        maybe(Role::Space, &[SHARED_CLUSTER]),
        maybe(Role::Vec, &[choice(".v2", Value::Count(2)), choice(".v4", Value::Count(4))]),
        must(Role::Type, TYPES_32_64),
    ],
    src: &[address("a").in_bits(32), vector("b", Is::Like(Role::Type), Role::Vec), address("mbar").in_bits(32)],
    needs: Needs::on(8, 1, SM_90),
    legal: |u| {
        let bits = u.ty(Role::Type).bits() * u32::from(u.count(Role::Vec));
        if bits > 128 {
            Err(Reason::new("the vector has more than 128 bits").at(u.text(Role::Vec)))
        } else {
            Ok(Needs::NONE)
        }
    },
    semantics: Semantics::Build(|x| {
        let (ty, count, space) = (x.u.ty(Role::Type), x.u.count(Role::Vec), shared_space(x.u));
        let mut src = vec![shared_address_of(x, 0), shared_address_of(x, 2)];
        src.extend(x.srcs(1));
        transfer(x, Transfer::Values(Values { space, ty, count, op: None, to_all: false }), src);
    }),
    ..UNSUPPORTED_FORM
};

/// `st.async{.mmio}.release.scope{.global}.type [a], b`.
pub const ST_ASYNC_RELEASE: Form = Form {
    opcode: "st.async",
    words: &[".release"],
    section: "Data Movement and Conversion Instructions: st.async",
    qualifiers: &[
        maybe(Role::Flag, &[choice(".mmio", Value::Flag)]),
        must(Role::Scope, &[choice(".gpu", Value::Scope(Scope::Gpu)), choice(".sys", Value::Scope(Scope::Sys))]),
        maybe(Role::Space, &[GLOBAL]),
        must(
            Role::Type,
            &[
                ty(".b8", B8),
                ty(".b16", B16),
                ty(".b32", B32),
                ty(".b64", B64),
                ty(".u8", U8),
                ty(".u16", U16),
                ty(".u32", U32),
                ty(".u64", U64),
                ty(".s8", S8),
                ty(".s16", S16),
                ty(".s32", S32),
                ty(".s64", S64),
                ty(".f32", F32),
                ty(".f64", F64),
            ],
        ),
    ],
    src: &[address("a").in_bits(32), val("b", Is::Exactly(Role::Type))],
    needs: Needs::on(8, 7, &[AtLeast(100)]),
    legal: mmio_of_system,
    semantics: Semantics::Build(|x| {
        let scope = scope(x);
        let a = Access { space: StateSpace::Global, ..access(x.u, Order::Release, scope) };
        let (address, values) = (x.addr(0), x.srcs(1));
        x.b.store(a, address, &values);
    }),
    ..UNSUPPORTED_FORM
};

/// What is mapped to a device is seen by the whole system.
pub fn mmio_of_system(u: &Use) -> Result<Needs, Reason> {
    if u.has(Role::Flag) && u.scope(Role::Scope) != Some(Scope::Sys) {
        return Err(Reason::new("`.mmio` goes with `.sys` only").at(u.text(Role::Scope)));
    }
    Ok(Needs::NONE)
}

/// `st.bulk{.weak}{.shared::cta} [a], size, initval`.
pub const ST_BULK: Form = Form {
    opcode: "st.bulk",
    section: "Data Movement and Conversion Instructions: st.bulk",
    qualifiers: &[
        maybe(Role::Order, &[choice(".weak", Value::Flag)]),
        maybe(Role::Space, &[choice(".shared::cta", SHARED.value)]),
    ],
    src: &[address("a"), val("size", Is::AddressOf(32)), operand("initval", Kind::Imm, Is::Fixed(B64))],
    needs: Needs::on(8, 6, &[AtLeast(100)]),
    semantics: Semantics::Build(|x| {
        let address = shared_address_of(x, 0);
        let size = x.src(1);
        let bits = x.b.ty(size).bits();
        let size = x.b.ext(size, bits, false, Ty::B64);
        transfer(x, Transfer::Zeros(shared_space(x.u)), vec![address, size]);
    }),
    ..UNSUPPORTED_FORM
};
