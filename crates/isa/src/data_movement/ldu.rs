//! `ldu`: loads read-only data from an address that is the same in all threads of the warp.
//!
//! That the address is uniform is a promise of the program; here it is a weak load.

use handloom_ir::types::{Order, Scope};

use super::memory::*;
use crate::form::*;
use crate::target::Needs;

/// `ldu{.global}{.vec}.type d, [a]`.
pub const LDU: Form = Form {
    opcode: "ldu",
    words: &[],
    section: "Data Movement and Conversion Instructions: ldu",
    qualifiers: &[
        must(Role::Type, TYPES),
        maybe(Role::Space, &[GLOBAL]),
        maybe(Role::Vec, &[choice(".v2", Value::Count(2)), choice(".v4", Value::Count(4))]),
    ],
    dst: &[vector("d", Is::Relaxed(Role::Type), Role::Vec)],
    src: &[address("a")],
    needs: Needs::ptx(2, 0),
    legal: |u| {
        if u.ty(Role::Type).bits() * u32::from(u.count(Role::Vec)) > 128 {
            return Err(Reason::new("`ldu` reads at most 128 bits").at(u.text(Role::Vec)));
        }
        check_access(u, 1)
    },
    semantics: Semantics::Build(|x| load(x, Order::Weak, Scope::Cta)),
};
