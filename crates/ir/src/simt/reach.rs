//! Which functions an entry may run.

use std::collections::BTreeSet;

use super::{Callee, FuncId, Function, Module, Op, SymKind, Term};

impl Module {
    /// The functions that an entry may run, itself first.
    pub fn reachable(&self, entry: FuncId) -> Vec<FuncId> {
        self.reachable_in(entry, |f| Some(&self.funcs[f.idx()]))
    }

    /// The same of the code that `func` has in place of the module's, where it has any: functions without are none that it may run.
    pub fn reachable_in<'f>(&self, entry: FuncId, func: impl Fn(FuncId) -> Option<&'f Function>) -> Vec<FuncId> {
        let mut seen = BTreeSet::new();
        let mut order = Vec::new();
        let mut todo = vec![entry];
        let mut calls_pointers = false;
        while let Some(f) = todo.pop() {
            let Some(code) = func(f).filter(|_| seen.insert(f)) else { continue };
            order.push(f);
            for b in &code.blocks {
                match b.term {
                    Term::Call { callee: Callee::Direct(g), .. } => todo.push(g),
                    Term::Call { callee: Callee::Indirect, .. } if !calls_pointers => {
                        calls_pointers = true;
                        todo.extend(self.pointed());
                    }
                    _ => {}
                }
            }
        }
        order
    }

    /// The functions that a pointer may lead to, in order: those whose address an initialiser or any code of the module takes, since one entry may
    /// leave it in memory for another.
    pub fn pointed(&self) -> Vec<FuncId> {
        let in_code = self.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.insts).filter_map(|i| match i.op {
            Op::SymAddr(s) => Some(s),
            _ => None,
        });
        let in_data = self.syms.iter().flat_map(|s| &s.relocs).map(|r| r.target);
        let is_called = |f: &FuncId| !self.funcs[f.idx()].is_entry && !self.funcs[f.idx()].blocks.is_empty();
        let mut pointed: Vec<FuncId> = in_code
            .chain(in_data)
            .filter_map(|s| match self.syms.get(s.idx())?.kind {
                SymKind::Func(f) => Some(f),
                SymKind::Global | SymKind::Const | SymKind::Shared { .. } | SymKind::DynamicShared { .. } => None,
            })
            .filter(is_called)
            .collect();
        pointed.sort_unstable();
        pointed.dedup();
        pointed
    }
}

#[cfg(test)]
mod tests {
    use handloom_diag::Span;
    use smallvec::smallvec;

    use super::super::{Block, BlockId, Inst, Reg, SlotId, SymId, Symbol};
    use super::*;

    fn func(callees: &[Callee], is_entry: bool) -> Function {
        let call = |callee: &Callee| Term::Call {
            callee: *callee,
            target: None,
            signature: (0, 0),
            args: SlotId(0),
            next: BlockId(0),
        };
        let terms = callees.iter().map(call).chain([Term::Ret]);
        Function {
            name: String::new(),
            is_entry,
            blocks: terms.map(|term| Block { insts: vec![], term, term_span: Span::NONE }).collect(),
            regs: vec![],
            slots: vec![],
            param_bytes: 0,
            result_bytes: 0,
            span: Span::NONE,
        }
    }

    #[test]
    fn pointers_come_from_all_of_a_module() {
        let direct = |f| Callee::Direct(FuncId(f));
        // Entry 0 calls function 1, entry 2 a pointer; the address of function 3, which calls function 4, is taken by entry 0.
        let mut funcs = vec![
            func(&[direct(1)], true),
            func(&[], false),
            func(&[Callee::Indirect], true),
            func(&[direct(4)], false),
            func(&[], false),
        ];
        let take = Inst {
            op: Op::SymAddr(SymId(0)),
            dst: smallvec![Reg(0)],
            src: smallvec![],
            guarded: false,
            span: Span::NONE,
        };
        funcs[0].blocks[0].insts.push(take);
        let symbol = Symbol {
            name: "f".into(),
            kind: SymKind::Func(FuncId(3)),
            size: 0,
            align: 1,
            init: vec![],
            relocs: vec![],
            managed: false,
            span: Span::NONE,
        };
        let module = Module { funcs, syms: vec![symbol], ..Module::default() };
        assert_eq!(module.pointed(), [FuncId(3)]);
        assert_eq!(module.reachable(FuncId(0)), [FuncId(0), FuncId(1)]);
        assert_eq!(module.reachable(FuncId(2)), [FuncId(2), FuncId(3), FuncId(4)]);
        // Code that has no call any more.
        assert_eq!(module.reachable_in(FuncId(0), |f| Some(&module.funcs[f.idx() + 1])), [FuncId(0)]);
    }
}
