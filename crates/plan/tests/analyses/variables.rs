//! From which variables addresses are made.

use handloom_diag::Span;
use handloom_ir::simt::{Block, BlockId, Function, Inst, Op, Pure, Reg, SymId, Term, Val};
use handloom_ir::types::Ty;
use handloom_plan::analysis::variables::{Trace, Variable, traces_of_addresses};
use smallvec::smallvec;

#[test]
fn addresses_keep_their_variable_through_sums_and_joins() {
    let inst = |op, dst: u32, src: &[Val]| Inst {
        op,
        dst: smallvec![Reg(dst)],
        src: src.into(),
        guarded: false,
        span: Span::NONE,
    };
    let r = |n| Val::Reg(Reg(n));
    let imm = |n| Val::Imm(n, Ty::B64);
    let (add, mov, and) = (Op::Pure(Pure::Add(Ty::B64)), Op::Pure(Pure::Mov(Ty::B64)), Op::Pure(Pure::And(Ty::B64)));
    let shared = |n| Op::SharedAddr(SymId(n));
    // Who looks at a register: a move of it to the last one.
    let look = |n| inst(mov, 8, &[r(n)]);
    let block = |insts, term| Block { insts, term, term_span: Span::NONE };
    let branch = Term::Branch { cond: imm(1), then: BlockId(1), otherwise: BlockId(2) };
    let f = Function {
        name: String::new(),
        is_entry: true,
        blocks: vec![
            block(
                vec![inst(shared(0), 0, &[]), inst(shared(1), 1, &[]), inst(mov, 2, &[r(0)]), inst(mov, 4, &[r(0)])],
                branch,
            ),
            block(
                vec![inst(add, 2, &[r(2), imm(4)]), inst(mov, 4, &[r(1)]), inst(mov, 0, &[r(1)])],
                Term::Jump(BlockId(3)),
            ),
            block(vec![look(0), inst(mov, 0, &[r(1)])], Term::Jump(BlockId(3))),
            block(
                vec![
                    look(0),
                    look(2),
                    look(4),
                    inst(add, 3, &[r(0), r(1)]),
                    look(3),
                    inst(and, 5, &[r(2), imm(!15)]),
                    look(5),
                    inst(and, 6, &[r(2), r(7)]),
                    look(6),
                    look(7),
                ],
                Term::Exit,
            ),
        ],
        regs: vec![Ty::B64; 9],
        slots: vec![],
        param_bytes: 0,
        result_bytes: 0,
        span: Span::NONE,
    };
    let of = |n| Trace::Of(Variable::Symbol(SymId(n)));
    let found = traces_of_addresses(&f);
    assert_eq!(found[2][0], of(0));
    let looks = [0, 1, 2, 4, 6, 8, 9].map(|i| found[3][i]);
    assert_eq!(looks, [of(1), of(0), Trace::Unknown, Trace::Mixed, of(0), Trace::Unknown, Trace::None]);
}
