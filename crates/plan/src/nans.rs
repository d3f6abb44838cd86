//! Which registers may hold a NaN that is not canonical.

use handloom_ir::simt::*;
use handloom_ir::types::*;

use crate::analysis::classes::Facts;
use crate::ways::{Way, is_plain, way};

/// Whether the op leaves NaNs that are not canonical.
pub fn is_loose(op: Pure) -> bool {
    match op {
        Pure::FAdd(m) | Pure::FSub(m) | Pure::FMul(m) | Pure::FFma(m) => is_plain(m),
        Pure::FDiv { mode, exact } | Pure::FRcp { mode, exact } | Pure::FSqrt { mode, exact } => {
            is_plain(mode) && exact == Exactness::Ieee(Rounding::Nearest)
        }
        _ => false,
    }
}

/// Whether source `i` of the op may be a NaN that is not canonical without harm.
pub fn takes_loose(op: Pure, _i: usize) -> bool {
    match op {
        Pure::FAdd(m) | Pure::FSub(m) | Pure::FMul(m) | Pure::FFma(m) => matches!(m.ty, Float::F32 | Float::F64),
        Pure::FDiv { mode, .. } | Pure::FRcp { mode, .. } | Pure::FSqrt { mode, .. } => {
            matches!(mode.ty, Float::F32 | Float::F64)
        }
        // A NaN gives the same result whatever its bits are.
        Pure::FCmp { .. } => true,
        Pure::Cvt(c) => matches!(c.from, ScalarType::F32 | ScalarType::F64),
        _ => false,
    }
}

/// Registers that hold float results only, whose NaNs become canonical where their bits are used.
pub fn loose(f: &Function, facts: &Facts) -> Vec<bool> {
    let mut loose = vec![true; f.regs.len()];
    let mut seen = vec![false; f.regs.len()];
    for (b, block) in f.blocks.iter().enumerate() {
        for inst in &block.insts {
            let by_op = matches!(inst.op, Op::Pure(p) if is_loose(p));
            for d in &inst.dst {
                seen[d.idx()] = true;
                loose[d.idx()] &= by_op;
            }
            if !facts.masked.has(b) {
                continue;
            }
            // Masked copies hand rows to routines as they are.
            let consts: Vec<Option<u64>> = inst.src.iter().map(|_| None).collect();
            let never: Vec<bool> = inst.src.iter().map(|_| false).collect();
            let in_loop = matches!(inst.op, Op::Pure(p) if matches!(way(p, &consts, &never), Way::Vector(_)));
            for (i, v) in inst.src.iter().enumerate() {
                let fine = in_loop || matches!(inst.op, Op::Pure(p) if takes_loose(p, i) && is_loose(p));
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
