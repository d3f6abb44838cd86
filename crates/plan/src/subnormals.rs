//! Which registers never hold a subnormal number of `.f32`, so that `.ftz` finds nothing to do.

use handloom_diag::hash::FastMap;
use handloom_ir::simt::*;
use handloom_ir::types::{Float, ScalarType, Ty};
use smallvec::SmallVec;

use crate::nans::hands_on;

/// Whether the result of an op is no subnormal number of `.f32`, whatever its sources are.
pub fn gives_none(op: Pure) -> bool {
    use ScalarType::{F16, S8, S16, S32, S64, U8, U16, U32, U64};
    match op {
        Pure::FCmp { .. } => false,
        // Roots of the least numbers are far above it.
        Pure::FSqrt { mode, .. } | Pure::FRsqrt(mode) => mode.ty == Float::F32,
        // Half floats have no number as small as that.
        Pure::Cvt(c) => c.to == ScalarType::F32 && matches!(c.from, U8 | S8 | U16 | S16 | U32 | S32 | U64 | S64 | F16),
        _ => takes_none(op),
    }
}

/// Whether an op makes all of its sources, which are of `.f32`, zero where they are subnormal.
pub fn takes_none(op: Pure) -> bool {
    let flushes = |mode: FMode| mode.ty == Float::F32 && mode.ftz;
    match op {
        Pure::FAdd(m) | Pure::FSub(m) | Pure::FMul(m) | Pure::FFma(m) => flushes(m),
        Pure::FDiv { mode, .. } | Pure::FRcp { mode, .. } | Pure::FSqrt { mode, .. } | Pure::FRsqrt(mode) => {
            flushes(mode)
        }
        Pure::FMin { ty, ftz, .. } | Pure::FMax { ty, ftz, .. } => ty == Float::F32 && ftz,
        Pure::FAbs { ty, ftz } | Pure::FNeg { ty, ftz } | Pure::Ex2 { ty, ftz } => ty == Float::F32 && ftz,
        Pure::FCmp { ty, ftz, .. } => ty == Float::F32 && ftz,
        Pure::Sin { ftz } | Pure::Cos { ftz } | Pure::Lg2 { ftz } => ftz,
        _ => false,
    }
}

/// Whether bits are no subnormal number of `.f32`.
pub fn is_none(bits: u64) -> bool {
    !f32::from_bits(bits as u32).is_subnormal()
}

/// By register, whether it is one of 32 bits that never holds one.
pub fn without(f: &Function) -> Vec<bool> {
    let mut without: Vec<bool> = f.regs.iter().map(|ty| *ty == Ty::B32).collect();
    let mut is_made = vec![false; f.regs.len()];
    // By register, those that may be handed on what it holds.
    let mut heirs: FastMap<usize, SmallVec<[usize; 2]>> = FastMap::default();
    for block in &f.blocks {
        for inst in &block.insts {
            let passed = match inst.op {
                Op::Pure(p) if gives_none(p) => &[][..],
                Op::Pure(Pure::Mov(_)) => &inst.src[..1],
                // The predicate is no part of the result.
                Op::Pure(p) if hands_on(p) => &inst.src[1..3],
                _ => {
                    inst.dst.iter().for_each(|d| without[d.idx()] = false);
                    continue;
                }
            };
            for d in &inst.dst {
                is_made[d.idx()] = true;
                for v in passed {
                    match v {
                        Val::Reg(r) => heirs.entry(r.idx()).or_default().push(d.idx()),
                        Val::Imm(bits, _) => without[d.idx()] &= is_none(*bits),
                    }
                }
            }
        }
        if let Some(d) = block.term.result() {
            without[d.idx()] = false;
        }
    }
    // What comes from elsewhere may be any number.
    without.iter_mut().zip(is_made).for_each(|(w, made)| *w &= made);
    let mut work: Vec<usize> = (0..without.len()).filter(|r| !without[*r]).collect();
    while let Some(r) = work.pop() {
        for d in heirs.get(&r).map_or([].as_slice(), SmallVec::as_slice) {
            if std::mem::replace(&mut without[*d], false) {
                work.push(*d);
            }
        }
    }
    without
}
