//! Products of blocks of which each adds to the sums of the one before: the sums stay in registers of the host.

use handloom_ir::simt::*;
use handloom_ir::types::{Order, StateSpace, Ty};

use super::joined::Joined;

/// Products that are joined.
pub(super) struct Chain {
    /// With as many times as there are.
    op: Blocks,
    a: Vec<Val>,
    b: Vec<Val>,
    /// What the first one adds to.
    c: Vec<Val>,
    keep: Vec<Val>,
    /// Of the last one.
    dst: Vec<Reg>,
}

/// The op and its operands, of a product that may be one of several: `a`, `b`, `c` and what says whether sums are kept.
fn parts(inst: &Inst) -> Option<(Blocks, [&[Val]; 4])> {
    let Op::Matrix(MatrixOp::Blocks(op)) = inst.op else { return None };
    let p = op.product;
    let has_sums = p.c == Accumulator::F32 && p.d == Accumulator::F32 && p.sparse.is_none() && p.scale.is_none();
    let Some((Val::Imm(0xffff_ffff, _), src)) = inst.src.split_last() else { return None };
    if op.times != 1 || !has_sums || inst.guarded {
        return None;
    }
    let [n_a, n_b, n_c, _] = op.registers();
    let (a, rest) = src.split_at_checked(n_a)?;
    let (b, rest) = rest.split_at_checked(n_b)?;
    let (c, keep) = rest.split_at_checked(n_c)?;
    Some((op, [a, b, c, keep]))
}

impl Chain {
    fn is_result(&self, v: &Val) -> bool {
        self.dst.iter().any(|d| *v == Val::Reg(*d))
    }

    fn reads(&self, r: Reg) -> bool {
        self.a.iter().chain(&self.b).chain(&self.c).chain(&self.keep).any(|v| *v == Val::Reg(r))
    }
}

impl Joined for Chain {
    fn of(inst: &Inst) -> Option<Chain> {
        let (op, [a, b, c, keep]) = parts(inst)?;
        let [a, b, c, keep] = [a, b, c, keep].map(<[Val]>::to_vec);
        Some(Chain { op, a, b, c, keep, dst: inst.dst.to_vec() })
    }

    /// A value, or what the next one reads of its matrices: no product writes memory.
    fn may_follow(&self, inst: &Inst) -> bool {
        let is_of_matrices =
            |access: Access| access.space == StateSpace::Shared && access.order == Order::Weak && access.is_async;
        let may_move = match inst.op {
            Op::Load { access, .. } => is_of_matrices(access),
            op => op.is_value(),
        };
        let is_touched = |d: &Reg| self.reads(*d) || self.dst.contains(d);
        may_move && !inst.guarded && !inst.src.iter().any(|v| self.is_result(v)) && !inst.dst.iter().any(is_touched)
    }

    fn add(&mut self, inst: &Inst, n_uses: &[u32]) -> bool {
        let Some((op, [a, b, c, keep])) = parts(inst) else { return false };
        let is_next = op == self.op.once() && c.iter().copied().eq(self.dst.iter().map(|d| Val::Reg(*d)));
        if !is_next || usize::from(self.op.times) == Blocks::MOST_TIMES {
            return false;
        }
        // Nobody else reads the sums in between: others take their places, or the next product is all that wants them.
        let are_taken = inst.dst[..] == self.dst[..] || self.dst.iter().all(|d| n_uses[d.idx()] == 1);
        let mut others = a.iter().chain(b).chain(keep);
        let is_written = |d: &Reg| self.a.contains(&Val::Reg(*d)) || self.b.contains(&Val::Reg(*d));
        if !are_taken || others.any(|v| self.is_result(v)) || inst.dst.iter().any(is_written) {
            return false;
        }
        self.op.times += 1;
        self.a.extend_from_slice(a);
        self.b.extend_from_slice(b);
        self.keep.extend_from_slice(keep);
        self.dst = inst.dst.to_vec();
        true
    }

    fn joined(self, first: Inst) -> Inst {
        let mask = Val::Imm(0xffff_ffff, Ty::B32);
        let src = [self.a, self.b, self.c, self.keep, vec![mask]].concat().into();
        Inst { op: Op::Matrix(MatrixOp::Blocks(self.op)), dst: self.dst.into(), src, ..first }
    }
}

#[cfg(test)]
mod tests {
    use super::super::runs::tests::{PRODUCT, inst, left};
    use super::*;

    fn registers(first: u32, n: u32) -> impl Iterator<Item = Val> {
        (first..first + n).map(|r| Val::Reg(Reg(r)))
    }

    /// A block whose matrices are in the registers from these on: four of `a`, two of `b`, four of `c` and of `d`.
    fn product([a, b, c, d]: [u32; 4]) -> Inst {
        let keep = [Val::Imm(1, Ty::B32), Val::Imm(0xffff_ffff, Ty::B32)];
        let src = registers(a, 4).chain(registers(b, 2)).chain(registers(c, 4)).chain(keep).collect();
        let op = Blocks { product: Product { k: 16, ..PRODUCT }, count: 1, times: 1, b: HeldB::Fragments };
        inst(Op::Matrix(MatrixOp::Blocks(op)), d..d + 4, src)
    }

    fn load(is_async: bool, d: u32) -> Inst {
        let access = Access { is_async, ..Access::weak(StateSpace::Shared, 32) };
        inst(Op::Load { access, offset: 0 }, [d], vec![Val::Imm(0, Ty::B32)])
    }

    fn ops(insts: Vec<Inst>) -> Vec<String> {
        left(insts, "matrix.product.m16n8k16.f32.f16.f16.f32.x1")
    }

    #[test]
    fn each_adds_to_the_sums_of_the_one_before() {
        let same = |n: u32| (0..n).map(|i| product([8 * i, 8 * i + 4, 60, 60])).collect();
        assert_eq!(ops(same(3)), ["0 p.times3"]);
        // As many as there may be, and the rest.
        assert_eq!(ops(same(5)), ["0 p.times4", "1 p"]);
        // Sums in other registers, which nobody else reads.
        assert_eq!(ops(vec![product([0, 4, 60, 64]), product([8, 12, 64, 68])]), ["0 p.times2"]);
    }

    #[test]
    fn others_stay_apart() {
        // Other sums.
        assert_eq!(ops(vec![product([0, 4, 60, 60]), product([8, 12, 64, 64])]), ["0 p", "1 p"]);
        // Somebody reads those in between.
        let reads = inst(Op::Pure(Pure::Add(Ty::B32)), [90], registers(64, 2).collect());
        assert_eq!(ops(vec![product([0, 4, 60, 64]), product([8, 12, 64, 68]), reads]), ["0 p", "1 p"]);
        // They are a matrix of the next one, or the next sums become one of the first.
        assert_eq!(ops(vec![product([0, 4, 60, 60]), product([60, 12, 60, 60])]), ["0 p", "1 p"]);
        assert_eq!(ops(vec![product([0, 4, 60, 64]), product([8, 12, 64, 0])]), ["0 p", "1 p"]);
    }

    #[test]
    fn matrices_are_loaded_before() {
        let between = |load: Inst| ops(vec![product([0, 4, 60, 60]), load, product([8, 12, 60, 60])]);
        assert_eq!(between(load(true, 8)), ["1 p.times2"]);
        // What another thread may write in between, and a matrix of the first one.
        assert_eq!(between(load(false, 8)), ["0 p", "2 p"]);
        assert_eq!(between(load(true, 0)), ["0 p", "2 p"]);
    }
}
