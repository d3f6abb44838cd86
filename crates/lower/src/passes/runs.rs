//! Matrix products that follow each other as one op, so that a matrix that several of them multiply is made ready once.

use handloom_ir::simt::*;
use handloom_ir::types::Ty;

use super::joined::Joined;

/// Products of one kind, where none needs a result of another.
pub(super) struct Products {
    product: Product,
    /// Different ones.
    a: Vec<Vec<Val>>,
    b: Vec<Vec<Val>>,
    /// Which of them each product multiplies.
    pairs: Vec<[usize; 2]>,
    c: Vec<Val>,
    dst: Vec<Reg>,
}

impl Products {
    fn reads_matrix(&self, r: Reg) -> bool {
        self.a.iter().chain(&self.b).flatten().any(|v| *v == Val::Reg(r))
    }
}

impl Joined for Products {
    fn of(inst: &Inst) -> Option<Products> {
        let Op::Matrix(MatrixOp::Product(product)) = inst.op else { return None };
        let has_words = product.a.register() == Ty::B32 && product.d.register() == Ty::B32;
        if product.sparse.is_some() || product.scale.is_some() || !has_words {
            return None;
        }
        let mut none = Products { product, a: vec![], b: vec![], pairs: vec![], c: vec![], dst: vec![] };
        none.add(inst, &[]).then_some(none)
    }

    fn may_follow(&self, inst: &Inst) -> bool {
        let is_result = |v: &Val| self.dst.iter().any(|d| *v == Val::Reg(*d));
        let is_touched = |d: &Reg| self.reads_matrix(*d) || self.c.contains(&Val::Reg(*d)) || self.dst.contains(d);
        inst.op.is_value() && !inst.guarded && !inst.src.iter().any(is_result) && !inst.dst.iter().any(is_touched)
    }

    fn add(&mut self, inst: &Inst, _n_uses: &[u32]) -> bool {
        let [n_a, n_b, n_c, _] = self.product.registers();
        let is_same = inst.op == Op::Matrix(MatrixOp::Product(self.product)) && !inst.guarded;
        let Some((Val::Imm(0xffff_ffff, _), src)) = inst.src.split_last() else { return false };
        if !is_same || self.pairs.len() == Run::MOST || src.len() != n_a + n_b + n_c {
            return false;
        }
        let (matrices, c) = src.split_at(n_a + n_b);
        let is_result = |v: &Val| self.dst.iter().any(|d| *v == Val::Reg(*d));
        // Results may take the places of sums, which are read before that, but not those of matrices that others multiply.
        let is_taken = |d: &Reg| self.dst.contains(d) || self.reads_matrix(*d) || matrices.contains(&Val::Reg(*d));
        if src.iter().any(is_result) || inst.dst.iter().any(is_taken) {
            return false;
        }
        let (a, b) = matrices.split_at(n_a);
        let pair = [place(&mut self.a, a), place(&mut self.b, b)];
        self.pairs.push(pair);
        self.c.extend_from_slice(c);
        self.dst.extend_from_slice(&inst.dst);
        true
    }

    fn joined(self, first: Inst) -> Inst {
        let n = |n: usize| u8::try_from(n).expect("bug: more operands than products");
        let operands =
            |which: usize| (0..).zip(&self.pairs).fold(0, |all, (i, pair)| all | (pair[which] as u64) << (4 * i));
        let run = Run {
            product: self.product,
            count: n(self.pairs.len()),
            n_operands: [n(self.a.len()), n(self.b.len())],
            operands: [operands(0), operands(1)],
        };
        let mask = Val::Imm(0xffff_ffff, Ty::B32);
        let matrices = self.a.into_iter().chain(self.b).flatten();
        let src = matrices.chain(self.c).chain([mask]).collect();
        Inst { op: Op::Matrix(MatrixOp::Run(run)), dst: self.dst.into(), src, ..first }
    }
}

/// The place of an operand among the different ones.
fn place(all: &mut Vec<Vec<Val>>, operand: &[Val]) -> usize {
    all.iter().position(|other| other == operand).unwrap_or_else(|| {
        all.push(operand.to_vec());
        all.len() - 1
    })
}

#[cfg(test)]
pub(super) mod tests {
    use handloom_diag::Span;

    use super::*;

    pub(in super::super) const PRODUCT: Product = Product {
        m: 16,
        k: 8,
        a: Element::F16,
        b: Element::F16,
        c: Accumulator::F32,
        d: Accumulator::F32,
        step: Step::Add,
        sparse: None,
        scale: None,
    };

    pub(in super::super) fn inst(op: Op, dst: impl IntoIterator<Item = u32>, src: Vec<Val>) -> Inst {
        Inst { op, dst: dst.into_iter().map(Reg).collect(), src: src.into(), guarded: false, span: Span::NONE }
    }

    /// A product whose matrices are in the registers from these on: two of `a`, one of `b`, four of `c` and of `d`.
    fn product(a: u32, b: u32, c: u32, d: u32) -> Inst {
        let registers = (a..a + 2).chain(b..=b).chain(c..c + 4).map(|r| Val::Reg(Reg(r)));
        let src = registers.chain([Val::Imm(0xffff_ffff, Ty::B32)]).collect();
        inst(Op::Matrix(MatrixOp::Product(PRODUCT)), d..d + 4, src)
    }

    /// Adds one to a register.
    fn addition(d: u32) -> Inst {
        inst(Op::Pure(Pure::Add(Ty::B32)), [d], vec![Val::Reg(Reg(d)), Val::Imm(1, Ty::B32)])
    }

    /// The matrix ops that are left of instructions in a straight line, with the place of each among the instructions; `product` is `p`.
    pub(in super::super) fn left(insts: Vec<Inst>, product: &str) -> Vec<String> {
        let n = insts.len() as u32;
        let block = |(i, inst): (u32, Inst)| Block {
            insts: vec![inst],
            term: if i + 1 < n { Term::Jump(BlockId(i + 1)) } else { Term::Exit },
            term_span: Span::NONE,
        };
        let mut f = Function {
            name: "k".into(),
            is_entry: true,
            blocks: (0..).zip(insts).map(block).collect(),
            regs: vec![Ty::B32; 100],
            slots: vec![],
            param_bytes: 0,
            result_bytes: 0,
            span: Span::NONE,
        };
        super::super::jumps::tidy(&mut f);
        if super::super::join_products(&mut f) {
            super::super::jumps::tidy(&mut f);
        }
        super::super::check("join_products", &f);
        let insts = f.blocks.iter().flat_map(|b| &b.insts).enumerate();
        let matrix = insts.filter_map(|(at, i)| match i.op {
            Op::Matrix(op) => Some(format!("{at} {}", op.name().replace(product, "p"))),
            _ => None,
        });
        matrix.collect()
    }

    fn left_of(insts: Vec<Inst>) -> Vec<String> {
        left(insts, "matrix.product.m16n8k8.f32.f16.f16.f32")
    }

    #[test]
    fn products_without_results_of_others_are_one() {
        let all = vec![product(0, 10, 20, 20), product(0, 11, 24, 24), product(2, 11, 28, 28)];
        assert_eq!(left_of(all), ["0 p.run.a0b0.a0b1.a1b1"]);
    }

    #[test]
    fn what_needs_a_result_waits() {
        assert_eq!(left_of(vec![product(0, 10, 20, 20), product(0, 11, 20, 20)]), ["0 p", "1 p"]);
        // The first results are `a` of the next one.
        assert_eq!(left_of(vec![product(0, 10, 20, 20), product(22, 11, 24, 24)]), ["0 p", "1 p"]);
        // They become sums that the first one read.
        assert_eq!(left_of(vec![product(0, 10, 20, 24), product(0, 11, 28, 20)]), ["0 p.run.a0b0.a0b1"]);
        // They become a matrix that it multiplied.
        assert_eq!(left_of(vec![product(0, 10, 20, 20), product(4, 11, 24, 0)]), ["0 p", "1 p"]);
    }

    #[test]
    fn values_between_products_come_first() {
        let between = |d| left_of(vec![product(0, 10, 20, 20), addition(d), product(0, 11, 24, 24)]);
        assert_eq!(between(11), ["1 p.run.a0b0.a0b1"]);
        for touched in [0, 10, 20, 23] {
            assert_eq!(between(touched), ["0 p", "2 p"], "register {touched}");
        }
    }

    #[test]
    fn a_run_has_an_end() {
        let all = (0..17).map(|i| product(0, 10, 20 + 4 * i, 20 + 4 * i)).collect();
        let pairs = ["a0b0"; 16].join(".");
        assert_eq!(left_of(all), [format!("0 p.run.{pairs}"), "1 p".to_owned()]);
    }
}
