//! What the instructions of asynchronous copies have in common.

use handloom_ir::simt::{Begun, Op, Transfer, Val, Wait};
use handloom_ir::types::{StateSpace, Ty};
use smallvec::smallvec;

use crate::form::*;

/// Source operand `i` as an address of 64 bits.
pub fn address_of(x: &mut Cx<'_, '_>, i: usize) -> Val {
    let address = x.addr(i);
    let ty = x.b.ty(address.base);
    let sum = match address.offset {
        0 => address.base,
        offset => x.b.add(address.base, Val::Imm(offset.cast_unsigned() & ty.mask(), ty)),
    };
    x.b.ext(sum, ty.bits(), false, Ty::B64)
}

/// Source operand `i` as an address of [`shared_space`]: that of a variable is made generic where no space is written.
pub fn shared_address_of(x: &mut Cx<'_, '_>, i: usize) -> Val {
    let base = x.addr(i).base;
    let block = &x.b.func.blocks[x.b.block.idx()];
    let made = block.insts.iter().rev().find(|inst| inst.dst.iter().any(|d| Val::Reg(*d) == base));
    let is_named = x.u.named_space == Some(StateSpace::Shared);
    let is_offset = is_named && made.is_some_and(|inst| matches!(inst.op, Op::SharedAddr(_)));
    let address = address_of(x, i);
    if !is_offset || x.u.has(Role::Space) {
        return address;
    }
    let generic = x.b.reg(Ty::B64);
    x.b.push(Op::Cvta { space: StateSpace::Shared, to_space: false }, smallvec![generic], smallvec![address]);
    Val::Reg(generic)
}

/// The state space of addresses in shared memory: generic if none is written, also of variables.
pub fn shared_space(u: &Use) -> StateSpace {
    if u.has(Role::Space) { u.space(Role::Space) } else { StateSpace::Generic }
}

/// Source operand `i` as 32 bits.
pub fn word_of(x: &mut Cx<'_, '_>, i: usize) -> Val {
    let value = x.src(i);
    let bits = x.b.ty(value).bits();
    x.b.ext(value, bits, false, Ty::B32)
}

/// A transfer.
pub fn transfer(x: &mut Cx<'_, '_>, op: Transfer, src: Vec<Val>) {
    x.b.push_guarded(Op::Transfer(op), smallvec![], src.into());
}

/// What the thread has begun is a group.
pub fn commit(x: &mut Cx<'_, '_>, of: Begun) {
    transfer(x, Transfer::Commit(of), vec![Val::Imm(0, Ty::B64)]);
}

/// Waits for what the thread has begun: for groups if source operand 0 says how many are left, else for everything.
pub fn wait(x: &mut Cx<'_, '_>, of: Begun) {
    let but = x.src_opt(0).map(|n| match n {
        Val::Imm(n, _) => u32::try_from(n).unwrap_or(u32::MAX),
        Val::Reg(_) => 0,
    });
    let read = x.u.has(Role::Flag);
    transfer(x, Transfer::Wait(Wait { of, but, read }), vec![Val::Imm(0, Ty::B64)]);
}
