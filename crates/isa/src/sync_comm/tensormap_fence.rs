//! `tensormap.cp_fenceproxy`: copies a tensor map after a fence.

use handloom_ir::simt::{Bytes, Mask, Op, Transfer, Val};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{StateSpace, Ty};
use smallvec::smallvec;

use crate::data_movement::memory::*;
use crate::data_movement::transfer::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// Bytes of a tensor map.
const SIZE: u64 = 128;

/// `tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned [dst], [src], size`.
pub const CP_FENCEPROXY: Form = Form {
    opcode: "tensormap.cp_fenceproxy",
    words: &[".tensormap::generic", ".release", ".sync", ".aligned"],
    section: "Parallel Synchronization and Communication Instructions: tensormap.cp_fenceproxy",
    qualifiers: &[one_of(Role::Space, &[GLOBAL]), one_of(Role::Space2, &[SHARED_CTA]), must(Role::Scope, SCOPES)],
    src: &[address("dst"), address("src"), operand("size", Kind::Imm, Is::Fixed(B32))],
    needs: Needs::on(8, 3, SM_90),
    semantics: Semantics::Warp(|x| {
        // What any lane wrote before is copied, and what is copied is there for all lanes.
        let all = Val::Imm(0xffff_ffff, Ty::B32);
        x.b.push(Op::BarWarp, smallvec![], smallvec![all]);
        let src = vec![address_of(x, 0), address_of(x, 1), Val::Imm(SIZE, Ty::B32)];
        let copy =
            Bytes { to: StateSpace::Global, from: StateSpace::Shared, reduce: None, mask: Mask::None, now: true };
        transfer(x, Transfer::Bytes(copy), src);
        x.b.push(Op::BarWarp, smallvec![], smallvec![all]);
    }),
    ..UNSUPPORTED_FORM
};
