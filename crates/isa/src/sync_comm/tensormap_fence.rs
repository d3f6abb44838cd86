//! `tensormap.cp_fenceproxy`: copies a tensor map after a fence.

use handloom_ir::types::ScalarType::*;

use crate::data_movement::memory::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned [dst], [src], size`.
pub const CP_FENCEPROXY: Form = Form {
    opcode: "tensormap.cp_fenceproxy",
    words: &[".tensormap::generic", ".release", ".sync", ".aligned"],
    section: "Parallel Synchronization and Communication Instructions: tensormap.cp_fenceproxy",
    qualifiers: &[one_of(Role::Space, &[GLOBAL]), one_of(Role::Space2, &[SHARED_CTA]), must(Role::Scope, SCOPES)],
    src: &[address("dst"), address("src"), operand("size", Kind::Imm, Is::Fixed(B32))],
    needs: Needs::on(8, 3, SM_90),
    semantics: Semantics::Unsupported("tensor maps"),
    ..UNSUPPORTED_FORM
};
