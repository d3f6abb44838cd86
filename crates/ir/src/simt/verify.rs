//! The verifier of the SIMT IR.
//!
//! Checked: types and numbers of sources and results, guards, that a warp-synchronising op is the last one of its block, and that blocks,
//! registers and slots exist. Not checked: that a register is written before it is read (an unset PTX register may be read).

use crate::types::*;

use super::count::Count;
use super::func::*;
use super::op::*;
use super::text;

/// Checks a function.
///
/// # Errors
/// One sentence with the place of the first fault.
pub fn verify(f: &Function) -> Result<(), String> {
    if f.blocks.is_empty() {
        return Err("there is no block".into());
    }
    for (i, block) in f.blocks.iter().enumerate() {
        let place = |what: String| format!("block b{i}: {what}");
        for (k, inst) in block.insts.iter().enumerate() {
            let line = |why: String| place(format!("`{}`: {why}", text::inst(f, inst)));
            verify_inst(f, inst).map_err(line)?;
            if inst.op.is_warp_sync() && k + 1 != block.insts.len() {
                return Err(line("a warp-synchronising op is not the last one of its block".into()));
            }
        }
        verify_term(f, &block.term).map_err(|why| place(format!("`{}`: {why}", text::term(&block.term))))?;
    }
    Ok(())
}

fn verify_inst(f: &Function, inst: &Inst) -> Result<(), String> {
    check_registers(f, inst.src.iter().copied().chain(inst.dst.iter().map(|d| Val::Reg(*d))))?;
    if let Op::SlotAddr(s) = inst.op
        && s.idx() >= f.slots.len()
    {
        return Err("the slot does not exist".into());
    }
    if inst.guarded {
        if !takes_guard(&inst.op) {
            return Err("the op takes no guard".into());
        }
        match inst.guard() {
            Some(g) if f.ty(g) == Ty::P => {}
            _ => return Err("the guard is no predicate".into()),
        }
    }
    let src: Vec<Ty> = inst.operands().iter().map(|v| f.ty(*v)).collect();
    let dst: Vec<Ty> = inst.dst.iter().map(|d| f.regs[d.idx()]).collect();
    check_types(&inst.op, &src, &dst)
}

fn takes_guard(op: &Op) -> bool {
    matches!(
        op,
        Op::Load { .. }
            | Op::Store { .. }
            | Op::Atom { .. }
            | Op::Red { .. }
            | Op::Transfer(_)
            | Op::Mark
            | Op::Count(Count::Mark | Count::Access { .. })
    )
}

fn check_registers(f: &Function, mut values: impl Iterator<Item = Val>) -> Result<(), String> {
    let unknown = values.find_map(|v| match v {
        Val::Reg(r) if r.idx() >= f.regs.len() => Some(format!("register v{} does not exist", r.0)),
        Val::Imm(bits, ty) if bits & !ty.mask() != 0 => Some(format!("constant {bits:#x} does not fit {ty}")),
        Val::Reg(_) | Val::Imm(..) => None,
    });
    unknown.map_or(Ok(()), Err)
}

/// Whether the types of sources (without the guard) and results are what the op takes and returns.
fn check_types(op: &Op, src: &[Ty], dst: &[Ty]) -> Result<(), String> {
    use Ty::{B32, B64, P};
    match op {
        Op::Pure(p) => {
            let (first, second) = p.results();
            let results: Vec<Ty> = std::iter::once(first).chain(second).collect();
            expect(src, &p.sources(), "sources")?;
            expect(dst, &results, "results")
        }
        Op::Sreg(_) => {
            expect(src, &[], "sources")?;
            one_of(dst, &[&[B32], &[B64]], "results")
        }
        Op::SymAddr(_) | Op::SharedAddr(_) | Op::ParamAddr { .. } | Op::SlotAddr(_) | Op::ArgAddr { .. } => {
            expect(src, &[], "sources")?;
            expect(dst, &[B64], "results")
        }
        Op::Cvta { .. } => {
            one_of(src, &[&[B64], &[B32]], "sources")?;
            expect(dst, &[B64], "results")
        }
        Op::IsSpace(_) => {
            one_of(src, &[&[B64], &[B32]], "sources")?;
            expect(dst, &[P], "results")
        }
        Op::Load { access, .. } => {
            check_access(*access)?;
            check_address(src.first(), access.space)?;
            expect(&src[1..], &[], "sources behind the address")?;
            expect(dst, &vec![element_type(access.bits); usize::from(access.count)], "results")
        }
        Op::Store { access, .. } => {
            check_access(*access)?;
            check_address(src.first(), access.space)?;
            expect(&src[1..], &vec![element_type(access.bits); usize::from(access.count)], "elements")?;
            expect(dst, &[], "results")
        }
        Op::Atom { access, .. } => {
            check_atom(*access, src)?;
            expect(dst, &vec![access.ty.ty(); wide(*access) * usize::from(access.count)], "results")
        }
        Op::Red { access, .. } => {
            check_atom(*access, src)?;
            expect(dst, &[], "results")
        }
        Op::Transfer(op) => {
            expect(src, &op.sources(), "sources")?;
            expect(dst, &[], "results")
        }
        Op::Stack(StackOp::Save) => {
            expect(src, &[], "sources")?;
            expect(dst, &[B64], "results")
        }
        Op::Stack(StackOp::Restore) => {
            expect(src, &[B64], "sources")?;
            expect(dst, &[], "results")
        }
        Op::Stack(StackOp::Alloca { .. }) => {
            expect(src, &[B64], "sources")?;
            expect(dst, &[B64], "results")
        }
        Op::Fence { .. } | Op::Mark | Op::Count(Count::Mark | Count::Block { .. } | Count::Branch { .. }) => {
            expect(src, &[], "sources")?;
            expect(dst, &[], "results")
        }
        Op::Count(Count::Guard { .. }) => {
            expect(src, &[P], "sources")?;
            expect(dst, &[], "results")
        }
        Op::Count(Count::Access { .. }) => {
            one_of(src, &[&[B64], &[B32]], "sources")?;
            expect(dst, &[], "results")
        }
        Op::Shfl(_) => {
            expect(src, &[B32; 4], "sources")?;
            expect(dst, &[B32, P], "results")
        }
        Op::Vote(mode) => {
            expect(src, &[P, B32], "sources")?;
            let result = match mode {
                VoteMode::Ballot => B32,
                VoteMode::All | VoteMode::Any | VoteMode::Uni => P,
            };
            expect(dst, &[result], "results")
        }
        Op::Match { ty, all } => {
            expect(src, &[*ty, B32], "sources")?;
            expect(dst, if *all { &[B32, P] } else { &[B32] }, "results")
        }
        Op::Redux { .. } => {
            expect(src, &[B32; 2], "sources")?;
            expect(dst, &[B32], "results")
        }
        Op::Matrix(op) => {
            expect(src, &op.sources(), "sources")?;
            expect(dst, &op.results(), "results")
        }
        Op::Image(op) => {
            expect(src, &op.sources(), "sources")?;
            expect(dst, op.results(), "results")
        }
        Op::Tensor(op) => {
            expect(src, &op.sources(), "sources")?;
            expect(dst, &op.results(), "results")
        }
        Op::Elect => {
            expect(src, &[B32], "sources")?;
            expect(dst, &[B32, P], "results")
        }
        Op::BarWarp | Op::Nanosleep => {
            expect(src, &[B32], "sources")?;
            expect(dst, &[], "results")
        }
        Op::Activemask => {
            expect(src, &[], "sources")?;
            expect(dst, &[B32], "results")
        }
        Op::Builtin(_) => {
            expect(src, &[B64], "sources")?;
            expect(dst, &[], "results")
        }
    }
}

/// The IR type of an element of a memory access.
fn element_type(bits: u8) -> Ty {
    match bits {
        8 | 16 => Ty::B16,
        32 => Ty::B32,
        _ => Ty::B64,
    }
}

fn check_access(access: Access) -> Result<(), String> {
    if !matches!(access.bits, 8 | 16 | 32 | 64) || !matches!(access.count, 1 | 2 | 4 | 8) {
        return Err(format!("no access has {} elements of {} bits", access.count, access.bits));
    }
    match access.space {
        StateSpace::Generic
        | StateSpace::Const
        | StateSpace::Global
        | StateSpace::Local
        | StateSpace::ParamEntry
        | StateSpace::Shared
        | StateSpace::SharedCluster => Ok(()),
        StateSpace::Reg | StateSpace::Sreg | StateSpace::ParamFunc | StateSpace::Tex => {
            Err(format!("no access goes to the space `{}`", access.space.name()))
        }
    }
}

fn check_address(address: Option<&Ty>, space: StateSpace) -> Result<(), String> {
    let shared = matches!(space, StateSpace::Shared | StateSpace::SharedCluster);
    match address {
        Some(Ty::B64) => Ok(()),
        Some(Ty::B32) if shared => Ok(()),
        Some(other) => Err(format!("the address has type {other}")),
        None => Err("there is no address".into()),
    }
}

/// Number of 64-bit values that an element of a `.b128` atomic is; 1 for others.
fn wide(access: AtomAccess) -> usize {
    access.ty.bits().div_ceil(64) as usize
}

fn check_atom(access: AtomAccess, src: &[Ty]) -> Result<(), String> {
    check_address(src.first(), access.space)?;
    let operands = if access.op == AtomOp::Cas { 2 } else { 1 };
    let n = operands * wide(access) * usize::from(access.count);
    expect(&src[1..], &vec![access.ty.ty(); n], "operands")
}

fn expect(found: &[Ty], wanted: &[Ty], what: &str) -> Result<(), String> {
    one_of(found, &[wanted], what)
}

fn one_of(found: &[Ty], wanted: &[&[Ty]], what: &str) -> Result<(), String> {
    if wanted.contains(&found) {
        return Ok(());
    }
    Err(format!("{what} are {}, not {}", list(found), list(wanted[0])))
}

fn list(types: &[Ty]) -> String {
    let names: Vec<String> = types.iter().map(ToString::to_string).collect();
    format!("({})", names.join(", "))
}

fn verify_term(f: &Function, term: &Term) -> Result<(), String> {
    if let Some(b) = term.successors().iter().find(|b| b.idx() >= f.blocks.len()) {
        return Err(format!("block b{} does not exist", b.0));
    }
    check_registers(f, term.sources().into_iter().chain(term.result().map(Val::Reg)))?;
    let is = |v: Val, ty: Ty, what: &str| match f.ty(v) {
        found if found == ty => Ok(()),
        found => Err(format!("{what} has type {found}, not {ty}")),
    };
    match term {
        Term::Branch { cond, .. } => is(*cond, Ty::P, "the condition"),
        Term::Switch { index, .. } => is(*index, Ty::B32, "the index"),
        Term::Barrier { kind, id, count, pred, dst, .. } => {
            is(*id, Ty::B32, "the number")?;
            count.map_or(Ok(()), |c| is(c, Ty::B32, "the count"))?;
            pred.map_or(Ok(()), |p| is(p, Ty::P, "the predicate"))?;
            let result = match kind {
                BarKind::RedPopc => Ty::B32,
                BarKind::Sync
                | BarKind::Arrive
                | BarKind::RedAnd
                | BarKind::RedOr
                | BarKind::ClusterArrive
                | BarKind::ClusterArriveRelaxed
                | BarKind::ClusterWait
                | BarKind::Warpgroup
                | BarKind::WarpgroupStart => Ty::P,
            };
            dst.map_or(Ok(()), |d| is(Val::Reg(d), result, "the result"))
        }
        Term::Call { callee, target, args, .. } => {
            if args.idx() >= f.slots.len() {
                return Err("the slot of the arguments does not exist".into());
            }
            match (callee, target) {
                (Callee::Direct(_), None) => Ok(()),
                (Callee::Indirect, Some(t)) => is(*t, Ty::B64, "the target"),
                (Callee::Direct(_), Some(_)) => Err("a direct call has a target value".into()),
                (Callee::Indirect, None) => Err("an indirect call has no target value".into()),
            }
        }
        Term::Jump(_) | Term::Ret | Term::Exit | Term::Trap(_) | Term::Yield { .. } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use handloom_diag::Span;

    use super::super::ids::Reg;
    use super::super::pure::Pure;
    use super::*;

    fn function(regs: &[Ty], insts: Vec<Inst>) -> Function {
        Function {
            name: "f".into(),
            is_entry: true,
            blocks: vec![Block { insts, term: Term::Exit, term_span: Span::NONE }],
            regs: regs.to_vec(),
            slots: vec![],
            param_bytes: 0,
            result_bytes: 0,
            span: Span::NONE,
        }
    }

    fn inst(op: Op, dst: &[u32], src: &[Val]) -> Inst {
        let dst = dst.iter().map(|r| Reg(*r)).collect();
        Inst { op, dst, src: src.into(), guarded: false, span: Span::NONE }
    }

    const V0: Val = Val::Reg(Reg(0));
    const V1: Val = Val::Reg(Reg(1));

    #[test]
    fn a_sound_function_passes() {
        let add = inst(Op::Pure(Pure::Add(Ty::B32)), &[0], &[V0, Val::Imm(7, Ty::B32)]);
        assert_eq!(verify(&function(&[Ty::B32], vec![add])), Ok(()));
    }

    #[test]
    fn faults_are_named() {
        let vote = inst(Op::Vote(VoteMode::Any), &[0], &[V0, Val::Imm(1, Ty::B32)]);
        let cases = [
            (
                vec![inst(Op::Pure(Pure::Add(Ty::B32)), &[1], &[V0, V1])],
                "block b0: `v1:b32 = add.b32 v0, v1`: sources are (p, b32), not (b32, b32)",
            ),
            (vec![inst(Op::Elect, &[7, 0], &[V1])], "block b0: `v7:?, v0:p = elect v1`: register v7 does not exist"),
            (
                vec![vote.clone(), vote],
                "block b0: `v0:p = vote.any v0, 1`: a warp-synchronising op is not the last one of its block",
            ),
        ];
        for (insts, wanted) in cases {
            assert_eq!(verify(&function(&[Ty::P, Ty::B32], insts)), Err(wanted.to_owned()));
        }
    }
}
