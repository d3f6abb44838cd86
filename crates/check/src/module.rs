//! The checked module: what `check` returns and `lower` reads. No user's error is left in it.

use handloom_diag::Span;
use handloom_ir::simt::RegisterBounds;
use handloom_ir::types::*;
use handloom_isa::form::{Form, Use};
use handloom_isa::target::{Target, Version};

/// Index of a symbol in [`CheckedModule::symbols`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct SymbolId(pub u32);

/// Index of a register in [`Body::regs`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct RegId(pub u32);

/// Index of a variable in [`Body::vars`]: `.local`, `.param` of a call, parameters and results of the function itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct VarId(pub u32);

/// Index of a label in a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct LabelId(pub u32);

/// A module without errors.
#[derive(Clone, Debug)]
pub struct CheckedModule {
    /// `.version`.
    pub version: Version,
    /// `.target`.
    pub target: Target,
    /// `.address_size`: 32 or 64.
    pub address_size: u8,
    /// Module-scope variables, function-scope `.shared`, `.global` and `.const` variables, and functions.
    pub symbols: Vec<Symbol>,
    /// `.file` names by their number.
    pub files: Vec<(u64, String)>,
}

/// How a symbol takes part in linking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Linkage {
    /// Not visible outside.
    Internal,
    /// `.visible`.
    Visible,
    /// `.extern`: must come from another module (except dynamic shared memory and built-ins).
    Extern,
    /// `.weak`.
    Weak,
    /// `.common`.
    Common,
}

/// A variable or a function.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// Its name. Function-scope ones carry their function's name in front and a number: `kernel$tile$0`.
    pub name: String,
    /// Which modules may name it.
    pub linkage: Linkage,
    /// A variable, a function, or another name of one.
    pub kind: SymbolKind,
    /// The declaration.
    pub span: Span,
}

/// What a symbol is.
#[derive(Clone, Debug)]
pub enum SymbolKind {
    /// A variable in `.global`, `.const` or `.shared`.
    Var(GlobalVar),
    /// A function or entry.
    Func(Box<Func>),
    /// `.alias`: another name for a function.
    Alias(SymbolId),
}

/// A variable that outlives a thread.
#[derive(Clone, Debug)]
pub struct GlobalVar {
    /// `Global`, `Const` or `Shared`.
    pub space: StateSpace,
    /// Element type.
    pub ty: ScalarType,
    /// Size in bytes; 0 for `.extern .shared x[]`.
    pub size: u64,
    /// Whether declared `[]` without a size (dynamic shared memory).
    pub unsized_array: bool,
    /// Alignment in bytes.
    pub align: u32,
    /// Initial bytes, as far as given; the rest is zero. Empty without an initialiser.
    pub init: Vec<u8>,
    /// Addresses in the initial bytes.
    pub relocs: Vec<Reloc>,
    /// Whether it carries `.attribute(.managed)`.
    pub managed: bool,
    /// What it is, if it is a texture, a sampler or a surface.
    pub object: Option<handloom_ir::num::image::Kind>,
    /// The function that declares it, for function-scope variables (matters for the shared memory of entries).
    pub owner: Option<SymbolId>,
}

/// An address inside an initialiser.
#[derive(Clone, Debug)]
pub struct Reloc {
    /// Byte offset.
    pub offset: u32,
    /// Size of the word in bytes.
    pub size: u8,
    /// Whose address.
    pub target: SymbolId,
    /// Added to it.
    pub addend: i64,
    /// Bits shifted right before storing (mask forms).
    pub shift: u8,
    /// `generic(x)`: the generic address; else the address in the variable's own space.
    pub generic: bool,
}

/// A function or an entry.
#[derive(Clone, Debug)]
pub struct Func {
    /// Whether a kernel.
    pub is_entry: bool,
    /// Results, as variables of the body (by position) with their layout.
    pub results: Vec<ParamLayout>,
    /// Parameters in order, with their places.
    pub params: Vec<ParamLayout>,
    /// Bytes of the parameter block: parameters, then results.
    pub param_bytes: u32,
    /// `.maxntid`.
    pub maxntid: Option<[u32; 3]>,
    /// `.reqntid`.
    pub reqntid: Option<[u32; 3]>,
    /// `.reqnctapercluster`.
    pub reqcluster: Option<[u32; 3]>,
    /// `.maxnreg` and `.minnctapersm`.
    pub registers: RegisterBounds,
    /// `.noreturn`.
    pub noreturn: bool,
    /// `None` for a declaration.
    pub body: Option<Body>,
}

/// A parameter or result in the parameter block.
#[derive(Clone, Debug)]
pub struct ParamLayout {
    /// Name; empty if `_`.
    pub name: String,
    /// Byte offset in the block.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// Element type.
    pub ty: ScalarType,
    /// Whether an array (a structure passed by value).
    pub is_array: bool,
    /// How many registers lie side by side: the components of a vector register, else 1.
    pub components: u8,
    /// Declared as `.reg` (a `.func` with register parameters): the first register in the body that receives it, or holds it at return.
    pub reg: Option<RegId>,
}

/// The body of a function.
#[derive(Clone, Debug)]
pub struct Body {
    /// Registers: declared type and name.
    pub regs: Vec<RegDecl>,
    /// Variables in the thread's own memory.
    pub vars: Vec<LocalVar>,
    /// Number of labels.
    pub n_labels: u32,
    /// Names of the labels.
    pub labels: Vec<String>,
    /// The statements in order, nested scopes flattened.
    pub stmts: Vec<Stmt>,
    /// The closing brace.
    pub end: Span,
}

impl Default for Body {
    fn default() -> Self {
        Body { regs: Vec::new(), vars: Vec::new(), n_labels: 0, labels: Vec::new(), stmts: Vec::new(), end: Span::NONE }
    }
}

/// A register.
#[derive(Clone, Debug)]
pub struct RegDecl {
    /// Its name as written.
    pub name: String,
    /// Declared type (element type of a vector register's components: each component is a register of its own).
    pub ty: ScalarType,
}

/// A variable of a body.
#[derive(Clone, Debug)]
pub struct LocalVar {
    /// Its name.
    pub name: String,
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// What it is.
    pub kind: LocalKind,
}

/// Kinds of variables of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LocalKind {
    /// `.local`.
    Local,
    /// `.param` declared in the body, for calls.
    CallParam,
    /// Parameter number i of this function (entry or func).
    Param(u32),
    /// Result number i of this function.
    Result(u32),
}

/// A place in a source file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SourceAt {
    /// Number as in `.file`.
    pub file: u64,
    /// Line of that file, from 1.
    pub line: u32,
    /// Column of that line.
    pub column: u32,
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// A label.
    Label(LabelId),
    /// An instruction.
    Inst(Box<Inst>),
    /// `.loc`.
    Loc {
        /// The line of the source.
        at: SourceAt,
        /// Where the function that it is in was inlined.
        inlined_at: Option<SourceAt>,
        /// The directive.
        span: Span,
    },
    /// `.pragma` text that matters to nobody is dropped; others stay.
    Pragma(String),
}

/// A checked instruction.
#[derive(Clone, Debug)]
pub struct Inst {
    /// Its form.
    pub form: &'static Form,
    /// The choices made among its qualifiers.
    pub u: Use,
    /// `@p` or `@!p`: register and negation.
    pub guard: Option<(RegId, bool)>,
    /// Destination operands by the form's order; absent optional ones are missing at the end.
    pub dst: Vec<Operand>,
    /// Source operands by the form's order.
    pub src: Vec<Operand>,
    /// The statement.
    pub span: Span,
}

/// How a register operand relates to its instruction type (Tables 27 and 28).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// Same width.
    Same,
    /// Source: the register is wider and is chopped to the instruction type. Destination: the result is zero-extended to the register.
    Zero,
    /// Destination: the result is sign-extended to the register.
    Sign,
}

/// A checked operand.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A register; `ty` is the instruction type of the operand (its width is what semantics see).
    Reg {
        /// The register.
        reg: RegId,
        /// Instruction type.
        ty: ScalarType,
        /// Widening or chopping.
        fit: Fit,
        /// `!p` of a predicate source.
        negated: bool,
    },
    /// A constant, already converted to the instruction type (bits). For predicates 0 or 1.
    Imm {
        /// Bits, zero above the width.
        bits: u64,
        /// For `.b128`: the upper 64 bits.
        high: u64,
        /// Instruction type.
        ty: ScalarType,
    },
    /// A special register.
    Sreg {
        /// Which register it is.
        sreg: Sreg,
        /// Its own type (`U32` or `U64`, or `Pred`).
        ty: ScalarType,
        /// Instruction type: narrower ones chop.
        to: ScalarType,
    },
    /// Elements of a vector; also the two halves of `p|q` and `d|p`, and an address with coordinates after it.
    Vector(Vec<Operand>),
    /// `_`.
    Sink,
    /// `[address]`.
    Addr {
        /// What it starts from.
        base: AddrBase,
        /// Added to it.
        offset: i64,
    },
    /// `[address, coordinates]`, or `[address, sampler, coordinates]`.
    Point(Box<Point>),
    /// Address of a symbol or variable as a value (`mov.u64 d, sym`), plus an offset.
    AddrOf {
        /// What the address is of.
        base: AddrBase,
        /// Added to it.
        offset: i64,
        /// Instruction type.
        ty: ScalarType,
    },
    /// A label.
    Label(LabelId),
    /// Targets of `brx.idx`.
    Labels(Vec<LabelId>),
    /// All of a call.
    Call(Box<Call>),
}

/// A texture, surface or tensor, and a place in it.
#[derive(Clone, Debug)]
pub struct Point {
    /// What it starts from, and what is added.
    pub at: (AddrBase, i64),
    /// The sampler.
    pub sampler: Option<(AddrBase, i64)>,
    /// A value, or a vector.
    pub coordinates: Operand,
}

/// What an address starts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddrBase {
    /// A register of its declared width (zero-extended to the address size).
    Reg(RegId),
    /// A module symbol.
    Symbol(SymbolId),
    /// A variable of the body.
    Var(VarId),
    /// Nothing: the offset is the address.
    Absolute,
}

impl AddrBase {
    /// The symbol, to change it.
    pub fn symbol_mut(&mut self) -> Option<&mut SymbolId> {
        if let AddrBase::Symbol(id) = self { Some(id) } else { None }
    }
}

/// A checked call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Whom: a function symbol, or a register holding a handle.
    pub target: CallTarget,
    /// Results: variables or registers of the caller, by position.
    pub results: Vec<CallArg>,
    /// Arguments by position.
    pub args: Vec<CallArg>,
    /// Layout of the parameters: of the callee, or of the prototype.
    pub params: Vec<ParamLayout>,
    /// Layout of the results.
    pub result_params: Vec<ParamLayout>,
    /// Bytes of the parameter block.
    pub param_bytes: u32,
    /// Possible targets of an indirect call, if a `.calltargets` list or initialised table names them; else any function with this prototype.
    pub targets: Option<Vec<SymbolId>>,
    /// The callee never returns.
    pub noreturn: bool,
}

/// Whom a call calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallTarget {
    /// A function.
    Direct(SymbolId),
    /// Through a register.
    Indirect(RegId),
    /// A function that Handloom provides.
    Builtin(handloom_ir::simt::Builtin),
}

/// An argument or result of a call.
#[derive(Clone, Debug)]
pub enum CallArg {
    /// A `.param` variable of the caller.
    Var(VarId),
    /// A register.
    Reg(RegId),
    /// A constant (bits).
    Imm(u64),
    /// `_`.
    Sink,
}
