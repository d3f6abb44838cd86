//! Statements of a body: scopes, declarations, labels.

use handloom_diag::{Code, Diagnostic, Span};
use handloom_ir::types::ScalarType;
use handloom_isa::form::FuncKind;
use handloom_syntax::ast;

use crate::context::{Cx, Told, duplicate, index};
use crate::gates;
use crate::globals::{body_var, lasting_space, numbered_variable};
use crate::layout::{element, shape, small};
use crate::module::{Body, LabelId, LocalKind, LocalVar, RegId, SourceAt, Stmt, SymbolId, VarId};
use crate::names::{Bind, Scopes};
use crate::params::{Of, Param, Signature, signature};
use crate::scope::BodyCx;
use handloom_diag::hash::FastSet as Set;

/// Blocks nested deeper than this are refused.
const MAX_NESTING: u32 = 1000;

/// A checked body, with the registers of `.reg` parameters and results by position.
pub(crate) struct CheckedBody {
    pub body: Body,
    pub param_regs: Vec<Option<RegId>>,
    pub result_regs: Vec<Option<RegId>>,
}

/// Checks the body of a function.
pub(crate) fn check_body<'a>(
    cx: &mut Cx<'a>,
    f: &'a ast::Function<'a>,
    func: SymbolId,
    signature: &Signature<'a>,
    stmts: &'a [ast::Stmt<'a>],
) -> CheckedBody {
    let before = cx.report.len();
    let mut b = BodyCx {
        cx,
        scopes: Scopes::default(),
        body: Body::default(),
        func,
        name: f.name.text,
        kind: if f.is_entry { FuncKind::Entry } else { FuncKind::Func },
        told: Set::default(),
        var_types: Vec::new(),
        depth: 0,
    };
    b.body.stmts.reserve(stmts.len());
    b.scopes.enter();
    let param_regs = b.params(&signature.params, LocalKind::Param);
    let result_regs = b.params(&signature.results, LocalKind::Result);
    b.stmts(stmts);
    if !f.is_entry {
        b.cx.report.in_function(before, f.name.text);
    }
    b.body.end = closing_brace(b.cx.text, stmts, f.span);
    CheckedBody { body: b.body, param_regs, result_regs }
}

/// The brace after the last statement; the tree has no place for it.
fn closing_brace(text: &str, stmts: &[ast::Stmt<'_>], header: Span) -> Span {
    let last = stmts.last().map_or(header, stmt_span);
    let found = text.get(index(last.end)..).and_then(|rest| rest.find('}'));
    match found.and_then(|n| u32::try_from(n).ok()) {
        Some(n) => Span::new(last.file, last.end + n, last.end + n + 1),
        None => last,
    }
}

fn stmt_span(s: &ast::Stmt<'_>) -> Span {
    match s {
        ast::Stmt::Label(name) => name.span,
        ast::Stmt::Inst(i) => i.span,
        ast::Stmt::Vars(v) => v.span,
        ast::Stmt::Block(_, span) | ast::Stmt::Loc { span, .. } | ast::Stmt::Targets { span, .. } => *span,
        ast::Stmt::Pragma(p) => p.span,
        ast::Stmt::Prototype(p) => p.span,
    }
}

impl<'a> BodyCx<'_, 'a> {
    fn params(&mut self, params: &[Param<'a>], kind: fn(u32) -> LocalKind) -> Vec<Option<RegId>> {
        let mut regs = Vec::with_capacity(params.len());
        for (i, p) in (0u32..).zip(params) {
            let mut reg = None;
            let declared = match (&p.layout, p.reg) {
                _ if p.name.text == "_" => Ok(()),
                (None, _) => self.scopes.declare(p.name, Bind::Poison),
                (Some(_), Some((ty, n))) => {
                    let declared = self.scopes.declare_reg(p.name, ty, n);
                    if let Some(Bind::Reg(r)) = self.scopes.find(p.name.text, &mut self.body) {
                        reg = Some(r.id);
                    }
                    declared
                }
                (Some(l), None) => {
                    let var = self.var(l.name.clone(), l.size, l.align, kind(i));
                    self.var_types.push((l.ty, l.is_array));
                    self.scopes.declare(p.name, Bind::Var(var))
                }
            };
            self.expect_new(p.name, declared);
            regs.push(reg);
        }
        regs
    }

    fn var(&mut self, name: String, size: u32, align: u32, kind: LocalKind) -> VarId {
        let id = VarId(u32::try_from(self.body.vars.len()).unwrap_or(u32::MAX));
        self.body.vars.push(LocalVar { name, size, align, kind });
        id
    }

    fn expect_new(&mut self, name: ast::Name<'a>, declared: Result<(), Span>) {
        if let Err(first) = declared {
            self.cx.push(duplicate(name, first));
        }
    }

    fn stmts(&mut self, stmts: &'a [ast::Stmt<'a>]) {
        self.forward_names(stmts);
        for s in stmts {
            self.stmt(s);
        }
    }

    /// Labels may be used before they are there, so a block's labels are declared when it opens.
    fn forward_names(&mut self, stmts: &'a [ast::Stmt<'a>]) {
        for s in stmts {
            let (name, bind) = match s {
                ast::Stmt::Label(name) => {
                    let id = LabelId(self.body.n_labels);
                    self.body.n_labels += 1;
                    self.body.labels.push(name.text.to_owned());
                    (*name, Bind::Label(id))
                }
                // Lists and prototypes come before their use.
                ast::Stmt::Targets { .. }
                | ast::Stmt::Prototype(_)
                | ast::Stmt::Inst(_)
                | ast::Stmt::Vars(_)
                | ast::Stmt::Block(..)
                | ast::Stmt::Loc { .. }
                | ast::Stmt::Pragma(_) => continue,
            };
            let declared = self.scopes.declare(name, bind);
            self.expect_new(name, declared);
        }
    }

    fn stmt(&mut self, s: &'a ast::Stmt<'a>) {
        match s {
            ast::Stmt::Inst(i) => {
                if let Ok(inst) = self.inst(i) {
                    self.body.stmts.push(Stmt::Inst(inst));
                }
            }
            ast::Stmt::Label(name) => {
                if let Some(Bind::Label(id)) = self.scopes.find(name.text, &mut self.body) {
                    self.body.stmts.push(Stmt::Label(id));
                }
            }
            ast::Stmt::Vars(decl) => self.vars(decl),
            ast::Stmt::Block(inner, span) => {
                if self.depth == MAX_NESTING {
                    self.cx.push(Diagnostic::error(Code::Syntax, *span, "blocks are nested too deeply"));
                    return;
                }
                self.depth += 1;
                self.scopes.enter();
                self.stmts(inner);
                self.scopes.leave();
                self.depth -= 1;
            }
            ast::Stmt::Loc { file, line, column, inlined, span } => {
                let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
                let at = |file, line, column| SourceAt { file, line: number(line), column: number(column) };
                let inlined_at = inlined.as_ref().map(|i| at(i.file, i.line, i.column));
                self.body.stmts.push(Stmt::Loc { at: at(*file, *line, *column), inlined_at, span: *span });
            }
            ast::Stmt::Pragma(p) => {
                let kept = p.strings.iter().filter(|s| !is_idle_pragma(s.text));
                self.body.stmts.extend(kept.map(|s| Stmt::Pragma(s.text.to_owned())));
            }
            ast::Stmt::Targets { label, calls, targets, .. } => {
                let declared = self.scopes.declare(*label, Bind::Targets(targets, *calls));
                self.expect_new(*label, declared);
                self.targets(*calls, targets);
            }
            ast::Stmt::Prototype(p) => {
                let declared = self.scopes.declare(p.label, Bind::Prototype(p));
                self.expect_new(p.label, declared);
                // Its faults are told here, once; calls read it again in silence.
                signature(&p.results, &p.params, Of::Prototype, &mut self.cx.report);
            }
        }
    }

    /// Tells wrong names of `.branchtargets` and `.calltargets`.
    fn targets(&mut self, calls: bool, targets: &'a [ast::Name<'a>]) {
        for t in targets {
            if calls {
                let _ = self.function_named(*t);
            } else {
                let _ = self.label_named(t.text, t.span);
            }
        }
    }

    fn vars(&mut self, decl: &'a ast::VarDecl<'a>) {
        gates::declaration(self.cx, decl);
        let Some(element) = element(decl, &mut self.cx.report) else {
            return decl.vars.iter().for_each(|v| self.poison(v));
        };
        if decl.space.text == ".reg" {
            return decl.vars.iter().for_each(|v| self.reg(decl, v, element.ty, element.n));
        }
        for var in &decl.vars {
            if self.memory_var(decl, var, element).is_err() {
                self.poison(var);
            }
        }
    }

    fn poison(&mut self, var: &'a ast::Var<'a>) {
        let _ = match var.count {
            // The registers of a poisoned range keep a place: the module is lost anyway.
            Some((count, _)) => self.scopes.declare_poisoned_range(var.name, count),
            None => self.scopes.declare(var.name, Bind::Poison),
        };
    }

    fn reg(&mut self, decl: &'a ast::VarDecl<'a>, var: &'a ast::Var<'a>, ty: ScalarType, n: u8) {
        if !var.dims.is_empty() || var.init.is_some() || decl.linkage.is_some() {
            let message = format!("the register `{}` cannot be an array, initialised or linked", var.name.text);
            let d = Diagnostic::error(Code::Layout, var.name.span, message);
            self.cx.push(d.help("write `%r<4>` for four registers").section("Register State Space"));
            return self.poison(var);
        }
        let declared = match var.count {
            Some((count, _)) => self.scopes.declare_range(var.name, ty, n, count),
            None => self.scopes.declare_reg(var.name, ty, n),
        };
        self.expect_new(var.name, declared);
    }

    fn memory_var(
        &mut self,
        decl: &'a ast::VarDecl<'a>,
        var: &'a ast::Var<'a>,
        element: crate::layout::Element,
    ) -> Result<(), Told> {
        if let Some((_, span)) = var.count {
            return Err(self.cx.push(numbered_variable(span)));
        }
        let kind = match decl.space.text {
            ".local" => LocalKind::Local,
            ".param" | ".param::func" => LocalKind::CallParam,
            word => {
                let Some(space) = lasting_space(word) else {
                    let message = format!("no variable can be declared in `{word}`");
                    let d = Diagnostic::error(Code::Layout, decl.space.span, message).section("State Spaces");
                    return Err(self.cx.push(d));
                };
                let shape = shape(element, var, &mut self.cx.report).ok_or(Told)?;
                let owner = (self.func, self.name, var.name.span);
                let id = body_var(self.cx, decl, var, shape, space, owner)?;
                let declared = self.scopes.declare(var.name, Bind::Symbol(id));
                self.expect_new(var.name, declared);
                return Ok(());
            }
        };
        if let Some(init) = &var.init {
            let span = match init {
                ast::Init::List(_, span) | ast::Init::Members(_, span) => *span,
                ast::Init::Value(e) => e.span,
            };
            let message =
                format!("`{}` cannot have an initialiser: only `.global` and `.const` variables can", var.name.text);
            return Err(self.cx.push(Diagnostic::error(Code::Layout, span, message).section("Initializers")));
        }
        let shape = shape(element, var, &mut self.cx.report).ok_or(Told)?;
        if kind == LocalKind::CallParam && element.n > 1 {
            let d = Diagnostic::error(Code::Layout, var.name.span, "a parameter cannot be of a vector type");
            return Err(self.cx.push(d.help("declare an array with an alignment").section("Parameter State Space")));
        }
        if shape.dims.contains(&0) {
            let message = format!("the size of `{}` is not known", var.name.text);
            let d = Diagnostic::error(Code::Layout, var.name.span, message);
            return Err(self.cx.push(d.section("Array Declarations")));
        }
        let size = small(shape.size, var.name.span, &mut self.cx.report).ok_or(Told)?;
        let id = self.var(var.name.text.to_owned(), size, element.align, kind);
        self.var_types.push((element.ty, !shape.dims.is_empty()));
        let declared = self.scopes.declare(var.name, Bind::Var(id));
        self.expect_new(var.name, declared);
        Ok(())
    }
}

/// Pragmas that change nothing here.
fn is_idle_pragma(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or("");
    matches!(word, "nounroll" | "used_bytes_mask" | "enable_smem_spilling" | "frequency")
}
