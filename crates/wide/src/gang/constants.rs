//! Constants, and words of the head, in vectors that a way leaves free: from memory, each use would load 64 bytes or spread a word, and hosts load one or two
//! vectors a cycle, which ways with many loads have no room for.

use handloom_ir::simt::{Inst, Op, Pure, Reg, Val};
use handloom_ir::types::Ty;

use super::way::Gang;
use crate::alloc::n_parts;
use crate::asked::reg;
use crate::asm::Rm;
use crate::convert;
use crate::emit::*;
use crate::values::{At, NAN_TABLE, NAN32, is_wide, load_code};

/// The most of them.
const MOST: usize = 12;
/// Fewer uses in a gang are not worth a load at its start.
const LEAST: usize = 3;

/// Whether the code of an op reads what all lanes have as a vector.
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
            let numbers = self.constants_of(inst).into_iter().map(|(ty, x)| (ty, Repeated::Number(x)));
            for (ty, value) in numbers.chain(self.spread_words_of(inst)) {
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
            match k.value {
                Repeated::Number(x) => {
                    let c = self.constant(ty, x);
                    self.a.op2(load_code(ty), zmm(v), c);
                }
                Repeated::Word(at) => self.copy(ty, zmm(v).into(), Rm::Mem(ctx(at).spread())),
            }
            self.kept.push(Kept { vector: v, ..k });
        }
    }

    /// The words of the head that the vector code of an instruction reads, which are the same in all warps.
    fn spread_words_of(&self, inst: &Inst) -> Vec<(Ty, Repeated)> {
        let makes_vectors = inst.dst.iter().any(|d| !self.is_affine(*d)) && !self.is_of_head(inst);
        let Op::Pure(op) = inst.op else { return Vec::new() };
        if !makes_vectors || !reads_vectors(op) {
            return Vec::new();
        }
        let word = |v: &Val| match (*v, self.src(*v).at) {
            (Val::Reg(r), At::Words(shape, at)) if shape.is_uniform() && ctx(at).is_of_stack() => {
                let ty = self.f.regs[r.idx()];
                (matches!(ty, Ty::B32 | Ty::B64) && self.is_same_in_warps(r)).then_some((ty, Repeated::Word(at)))
            }
            _ => None,
        };
        inst.src.iter().filter_map(word).collect()
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
