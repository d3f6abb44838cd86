//! `membar`: orders memory at a level.
//!
//! From sm_70 on it is `fence.sc` of the scope of the same reach; that is used for all targets.

use handloom_ir::types::{Order, Scope};

use super::fence::{FENCE_PROXY, PROXY_KINDS, fence};
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

const SECTION: &str = "Parallel Synchronization and Communication Instructions: membar / fence";

/// `membar.level`.
pub const MEMBAR: Form = Form {
    opcode: "membar",
    words: &[],
    section: SECTION,
    qualifiers: &[must(
        Role::Scope,
        &[
            choice(".cta", Value::Scope(Scope::Cta)),
            choice(".gl", Value::Scope(Scope::Gpu)),
            choice_if(".sys", Value::Scope(Scope::Sys), Needs::on(2, 0, &[AtLeast(20)])),
        ],
    )],
    dst: &[],
    src: &[],
    needs: Needs::ptx(1, 4),
    legal: always,
    semantics: Semantics::Build(|x| {
        let scope = x.u.scope(Role::Scope).unwrap_or(Scope::Sys);
        fence(x, Order::Sc, scope);
    }),
};

/// `membar.proxy.proxykind`: the same as `fence.proxy`. ptxas takes no state space after `.async`, unlike `fence.proxy`.
pub const MEMBAR_PROXY: Form = Form {
    opcode: "membar.proxy",
    qualifiers: &[PROXY_KINDS],
    needs: Needs::on(7, 5, &[AtLeast(60)]),
    semantics: FENCE_PROXY.semantics,
    ..MEMBAR
};
