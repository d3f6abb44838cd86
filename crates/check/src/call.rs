//! `call`: target, arguments, results.
//!
//! # PTX ISA
//! Control Flow Instructions: call; Control Flow Directives.

use handloom_diag::{Code, Diagnostic, Span};
use handloom_ir::simt::device_call::Part;
use handloom_ir::simt::{Builtin, DeviceCall};
use handloom_ir::types::ScalarType;
use handloom_syntax::ast::{self, OperandKind};

use crate::consts::literal_mismatch;
use crate::consts::{eval, to_bits};
use crate::context::{Told, index};
use crate::elsewhere::device_runtime;
use crate::fit::ordinary;
use crate::module::{
    Call, CallArg, CallTarget, Func, Linkage, LocalKind, ParamLayout, RegId, SymbolId, SymbolKind, VarId,
};
use crate::names::{Bind, Reg};
use crate::params::{Of, signature};
use crate::scope::{BodyCx, Named};
use crate::words::component;

const SECTION: &str = "Control Flow Instructions: call";

/// The parts of a call as written: `(results), target, (args), list`.
struct Parts<'a> {
    results: &'a [ast::Operand<'a>],
    target: &'a ast::Operand<'a>,
    args: &'a [ast::Operand<'a>],
    list: Option<&'a ast::Operand<'a>>,
}

/// What a call needs to know of its callee.
struct Callee {
    params: Vec<ParamLayout>,
    results: Vec<ParamLayout>,
    bytes: u32,
    noreturn: bool,
    targets: Option<Vec<SymbolId>>,
}

impl Callee {
    fn of(f: &Func) -> Callee {
        Callee {
            params: f.params.clone(),
            results: f.results.clone(),
            bytes: f.param_bytes,
            noreturn: f.noreturn,
            targets: None,
        }
    }
}

/// The function that Handloom provides under a name.
pub(crate) fn builtin(name: &str) -> Option<Builtin> {
    Some(match name {
        "vprintf" => Builtin::Vprintf,
        "__assertfail" => Builtin::Assertfail,
        "malloc" => Builtin::Malloc,
        "free" => Builtin::Free,
        _ => {
            let (call, per_thread) = DeviceCall::of_name(name)?;
            Builtin::Device { call, per_thread }
        }
    })
}

/// Whether a function of the device runtime is declared with parameters that do not lie where CUDA's lie.
fn is_misdeclared(builtin: Builtin, f: &Func, word: u32) -> bool {
    let Builtin::Device { call, .. } = builtin else { return false };
    let layouts = |params: &[ParamLayout]| params.iter().map(|p| (p.size, p.align)).collect::<Vec<_>>();
    let wanted = |parts: &[Part]| parts.iter().map(|part| part.layout(word)).collect::<Vec<_>>();
    layouts(&f.params) != wanted(call.params()) || layouts(&f.results) != wanted(&[call.result()])
}

impl<'a> BodyCx<'_, 'a> {
    /// Checks a call.
    pub fn call(&mut self, i: &'a ast::Inst<'a>) -> Result<Call, Told> {
        let Some(parts) = parts(&i.operands) else {
            let d = Diagnostic::error(Code::OperandKind, i.opcode.span, "this is no form of `call`");
            return Err(self.cx.push(d.help("`call (results), function, (arguments);`").section(SECTION)));
        };
        let (target, callee) = match parts.target.kind {
            OperandKind::Name(name) => self.callee(name, &parts)?,
            OperandKind::Member(name, ref words) => match self.named(name)? {
                Some(Named::Bind(Bind::Reg(r))) => {
                    let c = words.first().and_then(|w| component(w)).filter(|c| *c < r.n);
                    let c = c.ok_or_else(|| self.not_callable(name, "a register", parts.target.span))?;
                    self.indirect(Reg { id: RegId(r.id.0 + u32::from(c)), n: 1, ..r }, &parts)?
                }
                Some(found) => {
                    let what = self.what(found);
                    return Err(self.not_callable(name, what, parts.target.span));
                }
                None => return Err(self.undeclared(name, parts.target.span)),
            },
            _ => {
                let d =
                    Diagnostic::error(Code::OperandKind, parts.target.span, "`call` takes a function or a register");
                return Err(self.cx.push(d.section(SECTION)));
            }
        };
        let args = self.arguments(parts.args, &callee.params, true, parts.target.span);
        let results = self.arguments(parts.results, &callee.results, false, parts.target.span);
        Ok(Call {
            target,
            results: results?,
            args: args?,
            params: callee.params,
            result_params: callee.results,
            param_bytes: callee.bytes,
            targets: callee.targets,
            noreturn: callee.noreturn,
        })
    }

    fn callee(&mut self, name: &'a str, parts: &Parts<'a>) -> Result<(CallTarget, Callee), Told> {
        let span = parts.target.span;
        match self.named(name)? {
            Some(Named::Bind(Bind::Reg(r))) if r.n == 1 => self.indirect(r, parts),
            Some(Named::Symbol(id)) => {
                let to = self.cx.resolved(id);
                let symbol = self.cx.symbol(to);
                let SymbolKind::Func(f) = &symbol.kind else { return Err(self.not_callable(name, "a variable", span)) };
                if f.is_entry {
                    return Err(self.not_callable(name, "an entry", span));
                }
                let provided = builtin(name).filter(|_| {
                    symbol.linkage == Linkage::Extern && f.body.is_none() && !self.cx.defined.contains_key(name)
                });
                let is_elsewhere = f.body.is_none() && !self.cx.defined.contains_key(name) && provided.is_none();
                if is_elsewhere && let Some(d) = device_runtime(name, span) {
                    return Err(self.cx.push(d));
                }
                if provided.is_some_and(|b| is_misdeclared(b, f, u32::from(self.cx.address_size) / 8)) {
                    let message = format!("`{name}` of the CUDA device runtime has other parameters than are declared");
                    let help = "declare it as in `cuda_device_runtime_api.h`";
                    return Err(self.cx.push(Diagnostic::error(Code::OperandType, span, message).help(help)));
                }
                let callee = Callee::of(f);
                let target = match provided {
                    Some(b) => CallTarget::Builtin(b),
                    None => CallTarget::Direct(id),
                };
                Ok((target, callee))
            }
            Some(found) => {
                let what = self.what(found);
                Err(self.not_callable(name, what, span))
            }
            None => Err(self.undeclared(name, span)),
        }
    }

    fn not_callable(&mut self, name: &str, what: &str, span: Span) -> Told {
        let d = Diagnostic::error(Code::WrongKind, span, format!("`{name}` is {what} and cannot be called"));
        self.cx.push(d.section(SECTION))
    }

    fn indirect(&mut self, r: Reg, parts: &Parts<'a>) -> Result<(CallTarget, Callee), Told> {
        let span = parts.target.span;
        if ordinary(ScalarType::U64, r.ty).or(ordinary(ScalarType::U32, r.ty)).is_none() {
            let d = Diagnostic::error(Code::OperandType, span, format!("a `{}` register cannot hold a function", r.ty));
            return Err(self.cx.push(d.help("a 32-bit or 64-bit integer or bit register").section(SECTION)));
        }
        let Some(list) = parts.list else {
            let d =
                Diagnostic::error(Code::OperandCount, span, "a call through a register needs a prototype or a list");
            let help = "declare a `.callprototype` or `.calltargets` and name it behind the arguments";
            return Err(self.cx.push(d.help(help).section(SECTION)));
        };
        let OperandKind::Name(name) = list.kind else {
            let d = Diagnostic::error(Code::OperandKind, list.span, "the name of a prototype or of a list stands here");
            return Err(self.cx.push(d.section(SECTION)));
        };
        let callee = match self.named(name)? {
            Some(Named::Bind(Bind::Prototype(p))) => self.prototype(p)?,
            Some(Named::Bind(Bind::Targets(targets, true))) => {
                let ids: Result<Vec<_>, Told> = targets.iter().map(|t| self.function_named(*t)).collect();
                self.one_of(ids?, list.span)?
            }
            Some(Named::Symbol(id) | Named::Bind(Bind::Symbol(id))) => {
                let ids = match &self.cx.symbol(id).kind {
                    SymbolKind::Var(v) => v.relocs.iter().map(|r| r.target).collect(),
                    SymbolKind::Func(_) | SymbolKind::Alias(_) => Vec::new(),
                };
                self.one_of(ids, list.span)?
            }
            Some(found) => {
                let what = self.what(found);
                let message = format!("`{name}` is {what}, not a prototype or a list of functions");
                return Err(self.cx.push(Diagnostic::error(Code::WrongKind, list.span, message).section(SECTION)));
            }
            None => return Err(self.undeclared(name, list.span)),
        };
        Ok((CallTarget::Indirect(r.id), callee))
    }

    fn prototype(&mut self, p: &'a ast::Prototype<'a>) -> Result<Callee, Told> {
        // Faults of the prototype are told at its own place.
        let mut silent = crate::report::Report::default();
        let s = signature(&p.results, &p.params, Of::Prototype, &mut silent);
        if !s.sound {
            return Err(Told);
        }
        let noreturn = p.directives.iter().any(|d| d.name.text == ".noreturn");
        Ok(Callee { params: s.param_layouts(), results: s.result_layouts(), bytes: s.bytes, noreturn, targets: None })
    }

    /// The layout of a list of functions: that of the first.
    fn one_of(&mut self, ids: Vec<SymbolId>, span: Span) -> Result<Callee, Told> {
        let first = ids.iter().find_map(|id| match &self.cx.symbol(self.cx.resolved(*id)).kind {
            SymbolKind::Func(f) => Some(Callee::of(f)),
            SymbolKind::Var(_) | SymbolKind::Alias(_) => None,
        });
        match first {
            Some(callee) => Ok(Callee { targets: Some(ids), ..callee }),
            None => {
                let d = Diagnostic::error(Code::WrongKind, span, "there is no function in this list");
                Err(self.cx.push(d.section(SECTION)))
            }
        }
    }

    /// The function that a name of `.calltargets` stands for.
    pub fn function_named(&mut self, name: ast::Name<'a>) -> Result<SymbolId, Told> {
        match self.named(name.text)? {
            Some(Named::Symbol(id)) if !matches!(self.cx.symbol(id).kind, SymbolKind::Var(_)) => Ok(id),
            Some(found) => {
                let what = self.what(found);
                let d =
                    Diagnostic::error(Code::WrongKind, name.span, format!("`{}` is {what}, not a function", name.text));
                Err(self.cx.push(d.section("Control Flow Directives: .calltargets")))
            }
            None => Err(self.undeclared(name.text, name.span)),
        }
    }

    fn arguments(
        &mut self,
        given: &'a [ast::Operand<'a>],
        wanted: &[ParamLayout],
        are_args: bool,
        at: Span,
    ) -> Result<Vec<CallArg>, Told> {
        let what = if are_args { "argument" } else { "result" };
        if given.len() != wanted.len() {
            let s = if wanted.len() == 1 { "" } else { "s" };
            let message = format!("the function has {} {what}{s}, and {} are given", wanted.len(), given.len());
            let span = given.first().map_or(at, |g| g.span);
            return Err(self.cx.push(Diagnostic::error(Code::OperandCount, span, message).section(SECTION)));
        }
        let mut out = Vec::with_capacity(given.len());
        let mut failed = false;
        for (o, layout) in given.iter().zip(wanted) {
            match self.argument(o, layout, are_args) {
                Ok(a) => out.push(a),
                Err(Told) => failed = true,
            }
        }
        if failed { Err(Told) } else { Ok(out) }
    }

    fn argument(&mut self, o: &'a ast::Operand<'a>, layout: &ParamLayout, is_arg: bool) -> Result<CallArg, Told> {
        match &o.kind {
            OperandKind::Name(name) => match self.named(name)? {
                Some(Named::Bind(Bind::Var(id))) => self.variable_argument(id, name, layout, o.span),
                Some(Named::Bind(Bind::Reg(r))) => self.register_argument(r, layout, o.span),
                Some(found) => {
                    let what = self.what(found);
                    Err(self.bad_argument(o.span, format!("`{name}` is {what} and cannot be passed")))
                }
                None => Err(self.undeclared(name, o.span)),
            },
            OperandKind::Member(name, words) => match self.named(name)? {
                Some(Named::Bind(Bind::Reg(r))) => {
                    match words.first().and_then(|w| component(w)).filter(|c| *c < r.n && r.n > 1) {
                        Some(c) => {
                            self.register_argument(Reg { id: RegId(r.id.0 + u32::from(c)), n: 1, ..r }, layout, o.span)
                        }
                        None => Err(self.bad_argument(o.span, format!("`{name}` has no such component"))),
                    }
                }
                Some(_) => Err(self.bad_argument(o.span, format!("`{name}` has no components"))),
                None => Err(self.undeclared(name, o.span)),
            },
            OperandKind::Expr(e) if is_arg => {
                let ty = layout.ty;
                if layout.is_array || layout.components > 1 {
                    let what = if layout.is_array { "an array" } else { "a vector" };
                    return Err(self.bad_argument(o.span, format!("a constant cannot be passed as {what}")));
                }
                let value = eval(e).map_err(|d| self.cx.push(*d))?;
                let bits = to_bits(value, ty).map_err(|m| self.cx.push(literal_mismatch(m, ty, e.span)))?;
                Ok(CallArg::Imm(bits.low))
            }
            OperandKind::Sink if !is_arg => Ok(CallArg::Sink),
            _ => Err(self.bad_argument(o.span, "this cannot be passed".to_owned())),
        }
    }

    fn variable_argument(&mut self, id: VarId, name: &str, layout: &ParamLayout, span: Span) -> Result<CallArg, Told> {
        let var = self.local(id);
        let (ty, is_array) = self.var_types[index(id.0)];
        let fault = match var.kind {
            LocalKind::Local => Some("a `.local` variable cannot be passed".to_owned()),
            LocalKind::Param(_) => Some("a parameter of the caller cannot be passed on: copy it".to_owned()),
            LocalKind::CallParam | LocalKind::Result(_) if var.size != layout.size => {
                Some(format!("`{name}` has {} bytes, and the function wants {}", var.size, layout.size))
            }
            _ if var.align != layout.align => {
                Some(format!("`{name}` is aligned to {} bytes, and the function wants {}", var.align, layout.align))
            }
            _ if is_array != layout.is_array || ordinary(layout.ty, ty).is_none() => {
                Some(format!("`{name}` is `{ty}`, and the function wants `{}`", layout.ty))
            }
            LocalKind::CallParam | LocalKind::Result(_) => None,
        };
        match fault {
            Some(message) => Err(self.bad_argument(span, message)),
            None => Ok(CallArg::Var(id)),
        }
    }

    fn register_argument(&mut self, r: Reg, layout: &ParamLayout, span: Span) -> Result<CallArg, Told> {
        if r.n != layout.components {
            let count = |n: u8| if n == 1 { "one register".to_owned() } else { format!("a vector of {n} registers") };
            let message = format!("{} where the function has {}", count(r.n), count(layout.components));
            return Err(self.bad_argument(span, message));
        }
        // Of vectors the assembler compares the sizes alone.
        let is_whole = r.n > 1 && layout.ty.bits() == r.ty.bits();
        if layout.is_array || (ordinary(layout.ty, r.ty).is_none() && !is_whole) {
            let array = if layout.is_array { " array" } else { "" };
            let message = format!("a `{}` register does not fit a `{}`{array} parameter", r.ty, layout.ty);
            return Err(self.bad_argument(span, message));
        }
        Ok(CallArg::Reg(r.id))
    }

    fn bad_argument(&mut self, span: Span, message: String) -> Told {
        self.cx.push(Diagnostic::error(Code::OperandType, span, message).section(SECTION))
    }
}

/// Sorts the operands of a call by their places.
fn parts<'a>(operands: &'a [ast::Operand<'a>]) -> Option<Parts<'a>> {
    let (results, rest) = match operands {
        [ast::Operand { kind: OperandKind::Paren(r), .. }, rest @ ..] => (r.as_slice(), rest),
        rest => (&[][..], rest),
    };
    let (target, rest) = rest.split_first()?;
    let (args, rest) = match rest {
        [ast::Operand { kind: OperandKind::Paren(a), .. }, rest @ ..] => (a.as_slice(), rest),
        rest => (&[][..], rest),
    };
    match rest {
        [] => Some(Parts { results, target, args, list: None }),
        [list] => Some(Parts { results, target, args, list: Some(list) }),
        _ => None,
    }
}
