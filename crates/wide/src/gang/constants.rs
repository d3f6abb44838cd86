//! Constants in vectors that a way leaves free: from memory, each use would load 64 bytes, which some hosts do once a cycle.

use handloom_ir::simt::{Inst, Op, Pure, Reg, Val};
use handloom_ir::types::Ty;

use super::way::Gang;
use crate::alloc::n_parts;
use crate::asked::reg;
use crate::convert;
use crate::emit::*;
use crate::values::{NAN_TABLE, NAN32, is_wide, load_code};

/// The most of them.
const MOST: usize = 12;
/// Fewer uses in a gang are not worth a load at its start.
const LEAST: usize = 3;

/// Whether the code of an op reads a constant as a vector.
fn reads_vectors(op: Pure) -> bool {
    use Pure::*;
    matches!(
        op,
        FAdd(_) | FSub(_) | FMul(_) | FFma(_) | FMin { .. } | FMax { .. } | FDiv { .. } | FCmp { .. } | Select(_)
    ) || matches!(op, Add(_) | Sub(_) | Mul(_) | And(_) | Or(_) | Xor(_) | Lop3(_) | ICmp(..) | Mov(_))
}

impl Emit<'_> {
    /// Loads those that the way uses most: what results that are NaNs become among them.
    pub(super) fn keep_constants(&mut self, gang: &Gang) {
        self.kept.clear();
        if !self.a.has_wide_vectors() {
            return;
        }
        let mut wanted: Vec<(Kept, usize)> = Vec::new();
        let insts: Vec<&Inst> = gang.blocks.iter().flat_map(|&(b, n)| &gang.insts(self.f, b)[..n]).collect();
        for inst in insts {
            let all = gang.warps * n_parts(Ty::B32);
            for (ty, value) in self.constants_of(inst) {
                let k = Kept { is_wide: is_wide(ty), value, vector: 0 };
                match wanted.iter_mut().find(|(w, _)| *w == k) {
                    Some((_, uses)) => *uses += all,
                    None => wanted.push((k, all)),
                }
            }
        }
        wanted.retain(|(_, uses)| *uses >= LEAST);
        wanted.sort_by_key(|(_, uses)| std::cmp::Reverse(*uses));
        for ((k, _), v) in wanted.into_iter().zip(gang.spare.iter().copied()).take(MOST) {
            let ty = if k.is_wide { Ty::B64 } else { Ty::B32 };
            let c = self.constant(ty, k.value);
            self.a.op2(load_code(ty), zmm(v), c);
            self.kept.push(Kept { vector: v, ..k });
        }
    }

    /// The constants that the vector code of an instruction reads.
    fn constants_of(&self, inst: &Inst) -> Vec<(Ty, u64)> {
        let (mut all, is_odd) = (Vec::new(), |r: Reg| self.plan.may_hold_odd_nan[r.idx()]);
        if self.is_of_head(inst) {
            return all;
        }
        match inst.op {
            Op::Pure(op) if inst.dst.iter().any(|d| !self.is_affine(*d)) => {
                if reads_vectors(op) {
                    all.extend(inst.src.iter().filter_map(|v| match *v {
                        Val::Imm(x, ty) if matches!(ty, Ty::B32 | Ty::B64) => Some((ty, x)),
                        _ => None,
                    }));
                }
                if let Pure::Cvt(c) = op {
                    all.extend(convert::constants(c));
                }
                let is_tested = |d: &Reg| self.f.regs[d.idx()] == Ty::B32 && !is_odd(*d);
                if op.facts().is_loose && inst.dst.iter().any(is_tested) {
                    all.push((Ty::B32, NAN32));
                }
            }
            Op::Store { .. }
                if inst.src.get(1).and_then(reg).is_some_and(|r| self.f.regs[r.idx()] == Ty::B32 && is_odd(r)) =>
            {
                all.extend([(Ty::B32, NAN32), (Ty::B32, NAN_TABLE)]);
            }
            _ => {}
        }
        all
    }
}
