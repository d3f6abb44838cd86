//! Which registers may hold a NaN that is not canonical.

use handloom_ir::simt::*;
use handloom_ir::types::Ty;

use crate::analysis::classes::{Class, Facts};
use crate::ways::{Way, way};

/// Registers that hold float results only, whose NaNs become canonical where their bits are used.
pub fn loose(f: &Function, facts: &Facts) -> Vec<bool> {
    let mut loose = vec![true; f.regs.len()];
    let mut seen = vec![false; f.regs.len()];
    for (b, block) in f.blocks.iter().enumerate() {
        for inst in &block.insts {
            let by_op = matches!(inst.op, Op::Pure(p) if p.facts().is_loose);
            // A number that is no NaN stays what it is, so where others are results of floats it makes no difference.
            let is_number = matches!((inst.op, inst.src.as_slice()),
                (Op::Pure(Pure::Mov(ty)), [Val::Imm(x, _)]) if !is_nan(*x, ty));
            for d in &inst.dst {
                seen[d.idx()] |= by_op;
                loose[d.idx()] &= by_op || is_number && facts.class[d.idx()] == Class::Varying;
            }
            if !facts.masked.has(b) {
                continue;
            }
            // Masked copies hand rows to routines as they are.
            let consts: Vec<Option<u64>> = inst.src.iter().map(|_| None).collect();
            let never: Vec<bool> = inst.src.iter().map(|_| false).collect();
            let in_loop = matches!(inst.op, Op::Pure(p) if matches!(way(p, &consts, &never), Way::Vector(_)));
            for v in &inst.src {
                let fine = in_loop || matches!(inst.op, Op::Pure(p) if p.facts().takes_loose && p.facts().is_loose);
                if let Val::Reg(r) = v
                    && !fine
                {
                    loose[r.idx()] = false;
                }
            }
        }
        if let Some(d) = block.term.result() {
            loose[d.idx()] = false;
        }
    }
    loose.iter().zip(seen).map(|(l, s)| *l && s).collect()
}

/// Whether bits of a type are a NaN of a float of its width.
fn is_nan(x: u64, ty: Ty) -> bool {
    match ty {
        Ty::P => false,
        Ty::B16 => true,
        Ty::B32 => f32::from_bits(x as u32).is_nan(),
        Ty::B64 => f64::from_bits(x).is_nan(),
    }
}
