//! What the value op of an instruction asks of whoever emits it, by whatever means: scalars, vectors, or the routine.

use handloom_ir::simt::{Inst, Pure, Reg, Val};
use handloom_ir::types::{Float, Ty};

use crate::nans::hands_on;
use crate::plan::Plan;
use crate::ways::{Way, way};

/// A value op with its sources and the rule for NaNs.
#[derive(Clone, PartialEq, Debug)]
pub struct ValueOp {
    /// The op.
    pub op: Pure,
    /// Types of the sources.
    pub types: Vec<Ty>,
    /// Values of the sources that are constants.
    pub constants: Vec<Option<u64>>,
    /// Whether it takes NaNs as they come; else those of its sources are made canonical before it, where [`Plan::odd_nans_of`] says so.
    pub takes_odd_nans: bool,
    /// The NaNs of its result are made canonical after it, as those of this type.
    pub canonical: Option<Float>,
    /// The function is long: what takes much code for all lanes is done by the routine.
    pub is_of_long: bool,
}

impl ValueOp {
    /// An op on values that are no constants and no floats.
    pub fn of_values(op: Pure, types: &[Ty]) -> ValueOp {
        let constants = vec![None; types.len()];
        ValueOp { op, types: types.to_vec(), constants, takes_odd_nans: true, canonical: None, is_of_long: false }
    }

    /// How it is done on the lanes of some vectors, given which sources are the same in all of them.
    pub fn way(&self, uniform: &[bool]) -> Way {
        way(self.op, &self.constants, uniform)
    }

    /// How it is done on all lanes of a warp side by side.
    pub fn way_of_all(&self, uniform: &[bool]) -> Way {
        match self.way(uniform) {
            Way::Vector(v) if self.is_of_long && v.is_much_code() => Way::Routine,
            way => way,
        }
    }
}

impl Plan {
    /// The value op of an instruction.
    pub fn value_op(&self, inst: &Inst, op: Pure) -> ValueOp {
        let facts = op.facts();
        let constant = |v: &Val| match v {
            Val::Imm(x, ty) => Some(x & ty.mask()),
            Val::Reg(_) => None,
        };
        let result = inst.dst[0].idx();
        let stays = !facts.is_loose || self.may_hold_odd_nan[result];
        ValueOp {
            op,
            types: inst.src.iter().map(|v| self.func.ty(*v)).collect(),
            constants: inst.src.iter().map(constant).collect(),
            takes_odd_nans: self.takes_odd_nans(op, inst.dst[0]),
            canonical: (!stays).then(|| float_of(self.func.regs[result])),
            is_of_long: self.is_long,
        }
    }

    /// Whether a value op with such a result takes NaNs of its sources as they come.
    pub fn takes_odd_nans(&self, op: Pure, result: Reg) -> bool {
        op.facts().takes_loose || hands_on(op) && self.may_hold_odd_nan[result.idx()]
    }

    /// The type of the NaNs that a source may hold which are not canonical.
    pub fn odd_nans_of(&self, v: Val) -> Option<Float> {
        match v {
            Val::Reg(r) => self.may_hold_odd_nan[r.idx()].then(|| float_of(self.func.regs[r.idx()])),
            Val::Imm(..) => None,
        }
    }
}

/// Arithmetic that leaves such NaNs is of these two types.
fn float_of(ty: Ty) -> Float {
    if ty == Ty::B64 { Float::F64 } else { Float::F32 }
}
