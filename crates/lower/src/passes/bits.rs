//! Bits that are known to be zero: an `or` of numbers that share none is a sum, their `and` is zero, and a mask that takes none away is nothing.
//!
//! Triton makes the index of a thread so. As sums, indices are what later analyses know: numbers that go up evenly from thread to thread. So a complement that is a term of a sum
//! becomes a difference: compilers count backwards that way.

use handloom_ir::simt::*;
use handloom_ir::types::{Int, Ty};
use smallvec::smallvec;

use super::values::Values;

/// Replaces such instructions. `highest`: the largest number that a value may be, by register. Says whether there was one. The function is ordered.
pub(super) fn fold_bits(f: &mut Function, values: &Values, highest: &[u64]) -> bool {
    let mut zeros = vec![0; f.regs.len()];
    let mut changed = false;
    let is_term = terms(f);
    let regs = &mut f.regs;
    for block in &mut f.blocks {
        // What is to come before instructions, by their number.
        let mut before: Vec<(usize, Inst)> = Vec::new();
        for (i, inst) in block.insts.iter_mut().enumerate() {
            let ([d], false) = (&inst.dst[..], inst.guarded) else { continue };
            let d = *d;
            let of = |v: Val| match v {
                Val::Imm(x, _) => !x,
                Val::Reg(r) if values.is_value(r) => zeros[r.idx()],
                Val::Reg(_) => 0,
            };
            let constant = |v: Val| if let Val::Imm(x, _) = v { Some(x) } else { None };
            // Of a sum that puts a number between others, the bits that are zero.
            let mut zeros_of_sum = None;
            match (inst.op, &inst.src[..]) {
                (Op::Pure(Pure::Or(ty @ (Ty::B32 | Ty::B64))), &[a, b]) if (of(a) | of(b)) & ty.mask() == ty.mask() => {
                    inst.op = Op::Pure(Pure::Add(ty));
                    changed = true;
                }
                (Op::Pure(Pure::And(ty @ (Ty::B32 | Ty::B64))), &[a, b])
                    if (of(a) | of(b)) & ty.mask() == ty.mask() =>
                {
                    inst.op = Op::Pure(Pure::Mov(ty));
                    inst.src = smallvec![Val::Imm(0, ty)];
                    changed = true;
                }
                (Op::Pure(Pure::And(ty @ (Ty::B32 | Ty::B64))), &[a, b]) => {
                    let is_whole = |x: Val, mask: Val| constant(mask).is_some_and(|c| !c & !of(x) & ty.mask() == 0);
                    let kept = [(a, b), (b, a)].into_iter().find(|(x, mask)| is_whole(*x, *mask));
                    if let Some((x, _)) = kept {
                        inst.op = Op::Pure(Pure::Mov(ty));
                        inst.src = smallvec![x];
                        changed = true;
                    }
                }
                (Op::Pure(Pure::Bfi(ty)), &[a, b, pos, len]) => {
                    if let Some((pos, field)) = field(ty, constant(pos), constant(len))
                        && field & !of(b) == 0
                    {
                        // The number is put where there is nothing: it is shifted and added.
                        let mut make = |op: Pure, src: Vals| {
                            regs.push(ty);
                            let to = Reg(regs.len() as u32 - 1);
                            before.push((i, Inst { op: Op::Pure(op), dst: smallvec![to], src, ..inst.clone() }));
                            Val::Reg(to)
                        };
                        let kept = field >> pos;
                        let fits = (kept << pos | !(u64::MAX << pos)) & ty.mask() == ty.mask()
                            || !kept & !of(a) & ty.mask() == 0;
                        let part = if fits { a } else { make(Pure::And(ty), smallvec![a, Val::Imm(kept, ty)]) };
                        let part = make(Pure::Shl(ty), smallvec![part, Val::Imm(pos.into(), Ty::B32)]);
                        zeros_of_sum = Some(of(b) & !(field & !(of(a) << pos)));
                        inst.op = Op::Pure(Pure::Add(ty));
                        inst.src = smallvec![b, part];
                        changed = true;
                    }
                }
                (Op::Pure(Pure::Not(ty @ (Ty::B32 | Ty::B64))), &[x @ Val::Reg(_)]) if is_term[d.idx()] => {
                    inst.op = Op::Pure(Pure::Sub(ty));
                    inst.src = smallvec![Val::Imm(ty.mask(), ty), x];
                    changed = true;
                }
                _ => {}
            }
            if values.is_value(d) {
                let above = highest[d.idx()].checked_ilog2().map_or(u64::MAX, |top| (u64::MAX << top) << 1);
                let by_op = match (zeros_of_sum, inst.op) {
                    (Some(zeros), _) => zeros,
                    (None, Op::Pure(op)) => zeros_of(op, &inst.src, &of),
                    (None, _) => 0,
                };
                zeros[d.idx()] = above | by_op;
            }
        }
        for (i, inst) in before.into_iter().rev() {
            block.insts.insert(i, inst);
        }
    }
    changed
}

/// Where a field of bits begins, and its bits.
fn field(ty: Ty, pos: Option<u64>, len: Option<u64>) -> Option<(u32, u64)> {
    let (pos, len) = ((pos? & 0xff) as u32, (len? & 0xff) as u32);
    let bits = 1u64.checked_shl(len).map_or(u64::MAX, |x| x - 1);
    (pos < ty.bits() && len > 0).then(|| (pos, bits << pos & ty.mask()))
}

/// By register, whether a sum or a difference reads it.
fn terms(f: &Function) -> Vec<bool> {
    let mut is_term = vec![false; f.regs.len()];
    for inst in f.blocks.iter().flat_map(|b| &b.insts) {
        if let Op::Pure(Pure::Add(_) | Pure::Sub(_)) = inst.op {
            for v in &inst.src {
                if let Val::Reg(r) = v {
                    is_term[r.idx()] = true;
                }
            }
        }
    }
    is_term
}

/// The bits of a result that are zero whatever the sources are, as far as the op alone says so.
fn zeros_of(op: Pure, src: &[Val], of: &dyn Fn(Val) -> u64) -> u64 {
    let low = |n: u32| 1u64.checked_shl(n).map_or(u64::MAX, |x| x - 1);
    let z = |i: usize| src.get(i).map_or(0, |v| of(*v));
    let constant = |i: usize| if let Some(Val::Imm(x, _)) = src.get(i) { u32::try_from(*x).ok() } else { None };
    match op {
        Pure::Mov(_) => z(0),
        Pure::And(_) => z(0) | z(1),
        Pure::Or(_) | Pure::Xor(_) => z(0) & z(1),
        Pure::Add(ty) if (z(0) | z(1)) & ty.mask() == ty.mask() => z(0) & z(1),
        Pure::Add(_) | Pure::Sub(_) => low(z(0).trailing_ones().min(z(1).trailing_ones())),
        Pure::Mul(_) | Pure::MulWide(_) => low((z(0).trailing_ones() + z(1).trailing_ones()).min(63)),
        Pure::Shl(ty) => match constant(1).filter(|by| *by < ty.bits()) {
            Some(by) => z(0) << by | low(by),
            None => low(z(0).trailing_ones()),
        },
        Pure::Shr(Int { ty, signed: false }) => match constant(1).filter(|by| *by < ty.bits()) {
            Some(by) => (z(0) | !ty.mask()) >> by | !(u64::MAX >> by),
            None => 0,
        },
        Pure::Ext { bits, signed: false, from, .. } => z(0) | !low(u32::from(bits).min(from.bits())),
        Pure::Select(_) => z(1) & z(2),
        _ => 0,
    }
}
