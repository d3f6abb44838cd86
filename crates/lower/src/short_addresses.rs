//! Addresses of local memory and of parameters of an entry that a 64-bit module keeps in 32 bits.
//!
//! LLVM does so: it takes the address of a variable in 32 bits, hands it on to other functions, and extends it with zeros
//! before `cvta`. Addresses of local memory are host addresses here, so the upper half is missing. It is found again by the distance to
//! a slot of the function that uses the address: the local memory of a thread is much smaller than 4 GiB. Parameters of an entry, whose
//! addresses the entry itself uses, are as near to their first byte.

use handloom_check::module as checked;
use handloom_check::module::{AddrBase, Body, LocalKind, Operand, Stmt};
use handloom_ir::simt::{Function, Slot, SlotId};
use handloom_ir::types::StateSpace;
use handloom_isa::form::Role;

/// Whether a function makes an address of local memory in 32 bits.
pub(crate) fn makes_short_addresses(body: &Body) -> bool {
    insts(body).any(|inst| {
        let is_local = |kind| matches!(kind, LocalKind::Local | LocalKind::CallParam);
        let allocates = inst.form.opcode == "alloca" && inst.u.ty(Role::Type).bits() == 32;
        allocates || inst.src.iter().any(|o| takes(body, o, is_local))
    })
}

/// Whether an entry takes the address of a parameter in 32 bits.
pub(crate) fn makes_short_params(body: &Body) -> bool {
    insts(body).any(|inst| inst.src.iter().any(|o| takes(body, o, |kind| matches!(kind, LocalKind::Param(_)))))
}

/// Whether an operand is the address of a variable, in 32 bits.
fn takes(body: &Body, o: &Operand, is_meant: fn(LocalKind) -> bool) -> bool {
    match o {
        Operand::AddrOf { base: AddrBase::Var(v), ty, .. } => ty.bits() == 32 && is_meant(body.vars[v.0 as usize].kind),
        _ => false,
    }
}

/// Whether a function may meet such an address of local memory: it accesses local memory by a register of 32 bits, or makes an address generic.
pub(crate) fn uses_short_addresses(body: &Body) -> bool {
    insts(body).any(|inst| {
        let by_short = |o: &Operand| match o {
            Operand::Addr { base: AddrBase::Reg(r), .. } => body.regs[r.0 as usize].ty.bits() == 32,
            _ => false,
        };
        inst.u.space(Role::Space) == StateSpace::Local && (makes_generic(inst) || inst.src.iter().any(by_short))
    })
}

/// Whether an instruction turns an address of a space into a generic one.
pub(crate) fn makes_generic(inst: &checked::Inst) -> bool {
    inst.form.opcode == "cvta" && !inst.u.has(Role::Mode)
}

/// A slot to measure distances to.
pub(crate) fn anchor(func: &mut Function) -> SlotId {
    if func.slots.is_empty() {
        func.slots.push(Slot::new(1, 1));
    }
    SlotId(0)
}

fn insts(body: &Body) -> impl Iterator<Item = &checked::Inst> {
    body.stmts.iter().filter_map(|s| match s {
        Stmt::Inst(inst) => Some(&**inst),
        Stmt::Label(_) | Stmt::Loc { .. } | Stmt::Pragma(_) => None,
    })
}
