//! Checked modules by hand: a few forms of our own, so that these tests depend on no instruction record.

pub mod eval;

use handloom_check::module::*;
use handloom_diag::{FileId, Span};
use handloom_ir::simt::{self, Access, BarKind, Pure, RegisterBounds};
use handloom_ir::types::*;
use handloom_isa::form::{Arg, Control, Cx, Form, FuncKind, N_SLOTS, Semantics, Use, always};
use handloom_isa::target::{Needs, Suffix, Target, Version};
use smallvec::smallvec;

const fn form(opcode: &'static str, semantics: Semantics) -> Form {
    Form {
        opcode,
        words: &[],
        section: "",
        qualifiers: &[],
        dst: &[],
        src: &[],
        needs: Needs::NONE,
        legal: always,
        semantics,
    }
}

pub static ADD: Form = form(
    "add",
    Semantics::Build(|x| {
        let v = x.b.add(x.src(0), x.src(1));
        x.set(v);
    }),
);
pub static MOV: Form = form(
    "mov",
    Semantics::Build(|x| {
        for (i, v) in x.srcs(0).into_iter().enumerate() {
            x.set_at(0, i, v);
        }
    }),
);
pub static LESS: Form = form(
    "setp.lt",
    Semantics::Build(|x| {
        let v = x.b.pure(Pure::ICmp(Cmp::Lt, Int::U32), Ty::P, &[x.src(0), x.src(1)]);
        x.set(v);
    }),
);
/// `setp p|q`.
pub static SPLIT: Form = form(
    "setp.pair",
    Semantics::Build(|x| {
        let v = x.b.pure(Pure::ToPred(Ty::B32), Ty::P, &[x.src(0)]);
        let n = x.b.not(v);
        x.set_at(0, 0, v);
        x.set_at(0, 1, n);
    }),
);
pub static LD_GLOBAL: Form = form("ld.global", Semantics::Build(|x| load(x, StateSpace::Global, 32)));
pub static LD_GLOBAL_U8: Form = form("ld.global.u8", Semantics::Build(|x| load(x, StateSpace::Global, 8)));
pub static LD_SHARED: Form = form("ld.shared", Semantics::Build(|x| load(x, StateSpace::Shared, 32)));
pub static LD_PARAM: Form = form("ld.param", Semantics::Build(|x| load(x, StateSpace::ParamFunc, 32)));
pub static LD_PARAM_64: Form = form("ld.param.u64", Semantics::Build(|x| load(x, StateSpace::ParamEntry, 64)));
pub static ST_GLOBAL: Form = form("st.global", Semantics::Build(|x| store(x, StateSpace::Global)));
pub static ST_PARAM: Form = form("st.param", Semantics::Build(|x| store(x, StateSpace::ParamFunc)));
pub static VOTE: Form = form(
    "vote.sync.any",
    Semantics::Warp(|x| {
        let p = x.b.reg(Ty::P);
        x.b.push(simt::Op::Vote(VoteMode::Any), smallvec![p], smallvec![x.src(0), x.src(1)]);
        let negated = x.b.not(simt::Val::Reg(p));
        x.set(negated);
    }),
);
pub static BRA: Form = form("bra", Semantics::Control(Control::Bra));
pub static RET: Form = form("ret", Semantics::Control(Control::Ret));
pub static CALL: Form = form("call", Semantics::Control(Control::Call));
pub static BAR: Form = form("bar.sync", Semantics::Control(Control::Barrier(BarKind::Sync)));

fn load(x: &mut Cx<'_, '_>, space: StateSpace, bits: u8) {
    let v = x.b.load(Access::weak(space, bits), x.addr(0));
    x.set(v[0]);
}

fn store(x: &mut Cx<'_, '_>, space: StateSpace) {
    let Arg::Vals(values) = &x.args[1] else { panic!("a store takes a value") };
    let bits = x.b.ty(values[0]).bits() as u8;
    x.b.store(Access::weak(space, bits), x.addr(0), values);
}

/// A body in the making: registers and labels by number.
#[derive(Default)]
pub struct Code {
    pub regs: Vec<ScalarType>,
    pub vars: Vec<LocalVar>,
    pub n_labels: u32,
    pub stmts: Vec<Stmt>,
}

pub fn span(line: u32) -> Span {
    Span::new(FileId(0), line, line + 1)
}

impl Code {
    pub fn new(regs: &[ScalarType]) -> Code {
        Code { regs: regs.to_vec(), ..Code::default() }
    }

    pub fn label(&mut self, l: u32) {
        self.n_labels = self.n_labels.max(l + 1);
        self.stmts.push(Stmt::Label(LabelId(l)));
    }

    pub fn inst(&mut self, form: &'static Form, dst: &[Operand], src: &[Operand]) {
        self.guarded(None, form, dst, src);
    }

    pub fn guarded(&mut self, guard: Option<(u32, bool)>, form: &'static Form, dst: &[Operand], src: &[Operand]) {
        let u = Use {
            chosen: std::sync::Arc::new([None; N_SLOTS]),
            func: FuncKind::Entry,
            n_src: src.len(),
            n_dst: dst.len(),
            version: Version::new(8, 0),
            target: Target { sm: 80, suffix: Suffix::None },
            named_space: None,
            marks: Default::default(),
        };
        let guard = guard.map(|(r, negated)| (RegId(r), negated));
        let span = span(self.stmts.len() as u32);
        self.stmts.push(Stmt::Inst(Box::new(Inst { form, u, guard, dst: dst.to_vec(), src: src.to_vec(), span })));
    }

    pub fn r(&self, reg: u32) -> Operand {
        Operand::Reg { reg: RegId(reg), ty: self.regs[reg as usize], fit: Fit::Same, negated: false }
    }

    pub fn wide(&self, reg: u32, ty: ScalarType, fit: Fit) -> Operand {
        Operand::Reg { reg: RegId(reg), ty, fit, negated: false }
    }

    pub fn body(self) -> Body {
        Body {
            regs: self.regs.iter().enumerate().map(|(i, ty)| RegDecl { name: format!("r{i}"), ty: *ty }).collect(),
            vars: self.vars,
            n_labels: self.n_labels,
            labels: (0..self.n_labels).map(|i| format!("L{i}")).collect(),
            stmts: self.stmts,
            end: span(9999),
        }
    }
}

pub fn imm(bits: u64, ty: ScalarType) -> Operand {
    Operand::Imm { bits, high: 0, ty }
}

pub fn at(reg: u32, offset: i64) -> Operand {
    Operand::Addr { base: AddrBase::Reg(RegId(reg)), offset }
}

pub fn at_var(var: u32) -> Operand {
    Operand::Addr { base: AddrBase::Var(VarId(var)), offset: 0 }
}

pub fn at_symbol(symbol: u32) -> Operand {
    Operand::Addr { base: AddrBase::Symbol(SymbolId(symbol)), offset: 0 }
}

pub fn to(l: u32) -> Operand {
    Operand::Label(LabelId(l))
}

pub fn param(offset: u32, ty: ScalarType) -> ParamLayout {
    let name = format!("p{offset}");
    ParamLayout { name, offset, size: ty.bytes(), align: ty.bytes(), ty, is_array: false, components: 1, reg: None }
}

pub fn var(kind: LocalKind, size: u32) -> LocalVar {
    LocalVar { name: "x".into(), size, align: size.clamp(1, 8), kind }
}

pub fn function(name: &str, is_entry: bool, params: Vec<ParamLayout>, results: Vec<ParamLayout>, body: Body) -> Symbol {
    let param_bytes = params.iter().chain(&results).map(|p| p.offset + p.size).max().unwrap_or(0);
    let func = Func {
        is_entry,
        results,
        params,
        param_bytes,
        maxntid: None,
        reqntid: None,
        reqcluster: None,
        registers: RegisterBounds::default(),
        noreturn: false,
        body: Some(body),
    };
    Symbol { name: name.into(), linkage: Linkage::Visible, kind: SymbolKind::Func(Box::new(func)), span: span(0) }
}

pub fn shared(name: &str, size: u64, unsized_array: bool) -> Symbol {
    let var = GlobalVar {
        space: StateSpace::Shared,
        ty: ScalarType::B8,
        size,
        unsized_array,
        align: 8,
        init: vec![],
        relocs: vec![],
        managed: false,
        object: None,
        owner: None,
    };
    Symbol { name: name.into(), linkage: Linkage::Internal, kind: SymbolKind::Var(var), span: span(0) }
}

pub fn module(symbols: Vec<Symbol>) -> CheckedModule {
    CheckedModule {
        version: Version::new(8, 0),
        target: Target { sm: 80, suffix: Suffix::None },
        address_size: 64,
        symbols,
        files: vec![],
    }
}

/// An entry without parameters.
pub fn entry(code: Code) -> CheckedModule {
    module(vec![function("k", true, vec![], vec![], code.body())])
}

/// Text of function `i`, without its first line.
pub fn text(module: &simt::Module, i: usize) -> String {
    function_text(&module.funcs[i])
}

/// Text of a function, without its first line.
pub fn function_text(function: &simt::Function) -> String {
    let all = simt::text::print_function(function);
    all.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap_or_default()
}

pub fn assert_text(found: &str, wanted: &str) {
    let lines = |s: &str| s.lines().map(|l| l.trim_end().to_owned()).filter(|l| !l.is_empty()).collect::<Vec<_>>();
    let (found_lines, wanted_lines) = (lines(found), lines(wanted));
    assert!(found_lines == wanted_lines, "found:\n{found}\nwanted:\n{wanted}");
}
