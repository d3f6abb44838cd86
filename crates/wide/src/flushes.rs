//! What several `.ftz` ops read, with its subnormal numbers made zero once.
//!
//! # The model
//! An op with `.ftz` that reads what may be subnormal takes three instructions more for each such source. A number that two of them read, or that is read where it was
//! not made (in a loop, mostly), gets a register of its own for them: its sum with -0, which is the number itself, but zero for a subnormal one. The code of that
//! sum is those three instructions.

use std::borrow::Cow;

use handloom_ir::simt::{FMode, Function, Inst, Op, Pure, Reg, Val};
use handloom_ir::types::{Float, Rounding, Ty};
use handloom_plan::analysis::n_definitions;
use handloom_plan::subnormals::{takes_none, without};
use smallvec::smallvec;

use crate::values::{At, Src};

/// -0 of `.f32`.
const MINUS_ZERO: u64 = 1 << 31;

/// How often `.ftz` ops read a register, and whether any of them is in another block than its definition.
#[derive(Clone, Copy, Default)]
struct Reads {
    n: u32,
    is_far: bool,
}

/// Whether the sources of an op are made zero where they are subnormal, and may be any NaN where they are one: a sum has another.
fn takes_sums(op: Pure) -> bool {
    use Pure::{FAbs, FMax, FMin, FNeg};
    takes_none(op) && !matches!(op, FAbs { .. } | FNeg { .. } | FMin { xorsign: true, .. } | FMax { xorsign: true, .. })
}

/// Whether an op makes subnormal numbers of its first source zero, and nothing else.
pub(crate) fn is_flush(op: Pure, src: &[Src]) -> bool {
    op == Pure::FAdd(mode()) && matches!(src[1].at, At::Imm(MINUS_ZERO))
}

fn mode() -> FMode {
    FMode { ty: Float::F32, round: Rounding::Nearest, ftz: true, sat: false, relu: false }
}

/// The function with such registers.
pub(crate) fn flushed_once(f: Cow<'_, Function>) -> Cow<'_, Function> {
    let flushes = |inst: &Inst| matches!(inst.op, Op::Pure(op) if takes_sums(op));
    if !f.blocks.iter().flat_map(|b| &b.insts).any(flushes) {
        return f;
    }
    let (defs, all_reads, none) = (n_definitions(&f), f.n_reads(), without(&f));
    let mut block_of = vec![usize::MAX; f.regs.len()];
    for (b, block) in f.blocks.iter().enumerate() {
        for inst in block.insts.iter().filter(|i| !i.guarded) {
            inst.dst.iter().for_each(|d| block_of[d.idx()] = b);
        }
    }
    let mut reads = vec![Reads::default(); f.regs.len()];
    for (b, block) in f.blocks.iter().enumerate() {
        for inst in block.insts.iter().filter(|i| flushes(i)) {
            for v in inst.operands() {
                if let Val::Reg(r) = v {
                    reads[r.idx()].n += 1;
                    reads[r.idx()].is_far |= block_of[r.idx()] != b;
                }
            }
        }
    }
    let gains = |r: usize| {
        let Reads { n, is_far } = reads[r];
        let is_made_once = defs[r] == 1 && block_of[r] != usize::MAX;
        is_made_once && f.regs[r] == Ty::B32 && !none[r] && (n > 1 || is_far && n == all_reads[r])
    };
    let chosen: Vec<usize> = (0..f.regs.len()).filter(|r| gains(*r)).collect();
    if chosen.is_empty() {
        return f;
    }
    let mut f = f.into_owned();
    let mut flushed: Vec<Option<Reg>> = vec![None; f.regs.len()];
    for r in chosen {
        flushed[r] = Some(Reg(f.regs.len() as u32));
        f.regs.push(Ty::B32);
    }
    let flushed = |r: &Reg| flushed.get(r.idx()).copied().flatten();
    for block in &mut f.blocks {
        let insts = std::mem::take(&mut block.insts);
        for mut inst in insts {
            if flushes(&inst) {
                let n = inst.operands().len();
                for v in &mut inst.src[..n] {
                    if let Val::Reg(r) = v
                        && let Some(to) = flushed(r)
                    {
                        *v = Val::Reg(to);
                    }
                }
            }
            let made: Vec<(Reg, Reg)> = inst.dst.iter().filter_map(|d| Some((*d, flushed(d)?))).collect();
            let span = inst.span;
            block.insts.push(inst);
            block.insts.extend(made.into_iter().map(|(from, to)| Inst {
                op: Op::Pure(Pure::FAdd(mode())),
                dst: smallvec![to],
                src: smallvec![Val::Reg(from), Val::Imm(MINUS_ZERO, Ty::B32)],
                guarded: false,
                span,
            }));
        }
    }
    Cow::Owned(f)
}
