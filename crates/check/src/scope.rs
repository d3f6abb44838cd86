//! What the checks of a body and of its instructions know: the function, the names in sight, the instruction at hand.

use handloom_ir::types::{ScalarType, StateSpace};
use handloom_isa::form::{self, Form, FuncKind, Use};
use handloom_syntax::ast;

use crate::context::{Cx, Global, Told, index};
use crate::fit::Side;
use crate::forms::{Candidate, Rule, words_of};
use crate::module::{Body, LocalKind, LocalVar, SymbolId, SymbolKind, VarId};
use crate::names::{Bind, Scopes};
use handloom_diag::hash::FastSet as Set;

/// State of the check of one body.
pub(crate) struct BodyCx<'c, 'a> {
    /// The module's.
    pub cx: &'c mut Cx<'a>,
    /// Names in sight.
    pub scopes: Scopes<'a>,
    /// What is made.
    pub body: Body,
    /// The function.
    pub func: SymbolId,
    /// Its name.
    pub name: &'a str,
    /// Its kind.
    pub kind: FuncKind,
    /// Undeclared names that have been told.
    pub told: Set<&'a str>,
    /// Element type of each variable, and whether it is an array.
    pub var_types: Vec<(ScalarType, bool)>,
    /// How many blocks deep the statement lies.
    pub depth: u32,
}

/// What a name stands for, with module scope.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Named<'a> {
    /// Something of the body.
    Bind(Bind<'a>),
    /// A symbol of the module.
    Symbol(SymbolId),
}

impl<'a> BodyCx<'_, 'a> {
    /// What a name stands for. `Err` for a poisoned one; `Ok(None)` for an unknown one.
    pub fn named(&mut self, name: &'a str) -> Result<Option<Named<'a>>, Told> {
        match self.scopes.find(name, &mut self.body) {
            Some(Bind::Poison) => Err(Told),
            Some(b) => Ok(Some(Named::Bind(b))),
            None => match self.cx.globals.get(name).copied() {
                Some(Global::Symbol(id)) => Ok(Some(Named::Symbol(id))),
                Some(Global::Poison) => Err(Told),
                None => Ok(None),
            },
        }
    }

    /// The variable of an id.
    pub fn local(&self, id: VarId) -> &LocalVar {
        &self.body.vars[index(id.0)]
    }

    /// The space that a variable of the body lies in.
    pub fn space_of_local(&self, id: VarId) -> StateSpace {
        match self.local(id).kind {
            LocalKind::Local => StateSpace::Local,
            LocalKind::Param(_) if self.kind == FuncKind::Entry => StateSpace::ParamEntry,
            LocalKind::CallParam | LocalKind::Param(_) | LocalKind::Result(_) => StateSpace::ParamFunc,
        }
    }

    /// What a name is, for messages.
    pub fn what(&self, n: Named<'a>) -> &'static str {
        match n {
            Named::Bind(Bind::Reg(_)) => "a register",
            Named::Bind(Bind::Var(_)) => "a variable",
            Named::Bind(Bind::Label(_)) => "a label",
            Named::Bind(Bind::Targets(_, false)) => "a list of labels",
            Named::Bind(Bind::Targets(_, true)) => "a list of functions",
            Named::Bind(Bind::Prototype(_)) => "a prototype",
            Named::Bind(Bind::Poison) => "an undeclared name",
            Named::Symbol(id) | Named::Bind(Bind::Symbol(id)) => match &self.cx.symbol(id).kind {
                SymbolKind::Var(_) => "a variable",
                SymbolKind::Func(_) | SymbolKind::Alias(_) => "a function",
            },
        }
    }
}

/// What operands know of their instruction.
pub(crate) struct InstCx<'i, 'a> {
    /// The statement.
    pub ast: &'a ast::Inst<'a>,
    /// Its record, and what the words alone decide.
    pub candidate: &'i Candidate,
    /// Its use.
    pub used: Use,
    /// Address operands seen so far.
    pub n_addresses: usize,
    /// Which operand of the record is being checked, destinations first.
    pub at: usize,
    /// A named variable lies in another space, which has been told: the record's rules would say it again.
    pub is_misplaced: bool,
}

impl InstCx<'_, '_> {
    /// The record.
    pub fn form(&self) -> &'static Form {
        self.candidate.form
    }

    /// Opcode and qualifiers in backticks, for messages.
    pub fn words(&self) -> String {
        words_of(self.ast)
    }

    /// Whether it is this opcode.
    pub fn is(&self, opcode: &str) -> bool {
        self.form().opcode == opcode
    }
}

/// An operand of a record with the operand written for it.
#[derive(Clone, Copy)]
pub(crate) struct Pairing<'i, 'a> {
    /// What the record wants.
    pub wanted: &'static form::Operand,
    /// What is written.
    pub written: &'i ast::Operand<'a>,
    /// Its type rule, if it has one.
    pub rule: Option<Rule>,
    /// Read or written.
    pub side: Side,
    /// What the registers of the vector around it are together.
    pub joined: Option<ScalarType>,
}

/// How many registers an operand is.
pub(crate) fn n_elements(o: &form::Operand, u: &Use) -> u8 {
    match o.count {
        form::Count::One => 1,
        form::Count::By(role) | form::Count::Bare(role) => u.count(role),
        form::Count::Fixed(n) => n,
        form::Count::Fragment(f) | form::Count::Every(f) => f(u),
    }
}
