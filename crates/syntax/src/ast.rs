//! The syntax tree. It borrows the text it was parsed from.

use handloom_diag::Span;

/// A piece of text with its place.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    /// The text.
    pub text: &'a str,
    /// The place.
    pub span: Span,
}

/// A whole file.
#[derive(Clone, Debug, Default)]
pub struct Module<'a> {
    /// Directives, variables and functions in order.
    pub items: Vec<Item<'a>>,
}

/// Something at module level.
#[derive(Clone, Debug)]
pub enum Item<'a> {
    /// `.version 8.0`.
    Version {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
        /// The directive.
        span: Span,
    },
    /// `.target sm_80, debug`.
    Target {
        /// The words after it.
        words: Vec<Name<'a>>,
        /// The directive.
        span: Span,
    },
    /// `.address_size 64`.
    AddressSize {
        /// 32 or 64.
        bits: u64,
        /// The directive.
        span: Span,
    },
    /// One or more variables declared together.
    Vars(VarDecl<'a>),
    /// An entry or a function, declared or defined.
    Function(Box<Function<'a>>),
    /// `.file 1 "name"`.
    File {
        /// Number that `.loc` uses.
        index: u64,
        /// File name between the quotes, as written.
        name: &'a str,
        /// Anything after the name (time stamp and size).
        rest: Vec<u64>,
        /// The directive.
        span: Span,
    },
    /// `.section .debug_info { ... }`: kept as text.
    Section {
        /// Name with its dot.
        name: Name<'a>,
        /// The text between the braces.
        body: &'a str,
        /// The directive.
        span: Span,
    },
    /// `.pragma "text";`
    Pragma(Pragma<'a>),
    /// `.alias a, b;`
    Alias {
        /// The new name.
        alias: Name<'a>,
        /// What it names.
        target: Name<'a>,
        /// The directive.
        span: Span,
    },
}

/// `.pragma "a", "b";`
#[derive(Clone, Debug)]
pub struct Pragma<'a> {
    /// The strings, without quotes.
    pub strings: Vec<Name<'a>>,
    /// The directive.
    pub span: Span,
}

/// A linking directive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Linkage {
    /// `.visible`.
    Visible,
    /// `.extern`.
    Extern,
    /// `.weak`.
    Weak,
    /// `.common`.
    Common,
}

/// Variables that share space and type: `.global .align 4 .b32 a[4] = {..}, b;`, also `.reg`, `.param`, `.shared`, `.local`, `.const`.
#[derive(Clone, Debug)]
pub struct VarDecl<'a> {
    /// `.visible` and its like.
    pub linkage: Option<(Linkage, Span)>,
    /// `.reg`, `.global`, `.const[3]` (bank kept in `bank`), with the dot.
    pub space: Name<'a>,
    /// Constant bank.
    pub bank: Option<u64>,
    /// `.align N`.
    pub align: Option<(u64, Span)>,
    /// Words such as `.v2`, `.unified`, `.managed`, in order, with the dot.
    pub attributes: Vec<Attribute<'a>>,
    /// `.v2` or `.v4` (or others, for the checker to refuse).
    pub vector: Option<Name<'a>>,
    /// `.b32`, with the dot. Also `.texref` and other opaque types.
    pub ty: Name<'a>,
    /// For parameters: `.ptr .global .align 4`.
    pub ptr: Option<Ptr<'a>>,
    /// The variables.
    pub vars: Vec<Var<'a>>,
    /// The whole declaration.
    pub span: Span,
}

/// `.attribute(.managed)` or `.attribute(.unified(1,2))`.
#[derive(Clone, Debug)]
pub struct Attribute<'a> {
    /// Name with the dot.
    pub name: Name<'a>,
    /// Numbers after it.
    pub values: Vec<u64>,
}

/// `.ptr .space .align N` of a parameter.
#[derive(Clone, Copy, Debug)]
pub struct Ptr<'a> {
    /// State space with the dot.
    pub space: Option<Name<'a>>,
    /// Alignment of what it points to.
    pub align: Option<u64>,
}

/// One variable.
#[derive(Clone, Debug)]
pub struct Var<'a> {
    /// Its name.
    pub name: Name<'a>,
    /// `<N>`: declares name0 to name(N-1).
    pub count: Option<(u64, Span)>,
    /// `[4][8]`; `None` for `[]`.
    pub dims: Vec<Option<Expr<'a>>>,
    /// `= ...`.
    pub init: Option<Init<'a>>,
}

/// An initialiser.
#[derive(Clone, Debug)]
pub enum Init<'a> {
    /// `{ a, b }`.
    List(Vec<Init<'a>>, Span),
    /// One value.
    Value(Expr<'a>),
    /// `{ name = value, b = c }` of a texture, sampler or surface.
    Members(Vec<Member<'a>>, Span),
}

/// `name = value` of an initialiser.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// The name.
    pub name: Name<'a>,
    /// The value: an expression or a word.
    pub value: Expr<'a>,
}

/// An entry or a function.
#[derive(Clone, Debug)]
pub struct Function<'a> {
    /// `.visible` and its like.
    pub linkage: Option<(Linkage, Span)>,
    /// `.entry`, else `.func`.
    pub is_entry: bool,
    /// `.attribute(...)` words.
    pub attributes: Vec<Attribute<'a>>,
    /// Results of a function.
    pub results: Vec<VarDecl<'a>>,
    /// Its name.
    pub name: Name<'a>,
    /// Parameters in order.
    pub params: Vec<VarDecl<'a>>,
    /// `.maxntid 256, 1, 1`, `.noreturn`, `.pragma`, `.abi_preserve` and others between header and body.
    pub directives: Vec<Directive<'a>>,
    /// The body; `None` for a declaration.
    pub body: Option<Vec<Stmt<'a>>>,
    /// The header.
    pub span: Span,
}

/// A directive with numbers, or a pragma's strings.
#[derive(Clone, Debug)]
pub struct Directive<'a> {
    /// Name with the dot.
    pub name: Name<'a>,
    /// Numbers after it.
    pub values: Vec<u64>,
    /// Strings after it, without quotes.
    pub strings: Vec<Name<'a>>,
    /// The whole directive.
    pub span: Span,
}

/// A statement of a body.
#[derive(Clone, Debug)]
pub enum Stmt<'a> {
    /// `name:`
    Label(Name<'a>),
    /// An instruction.
    Inst(Inst<'a>),
    /// `.reg`, `.shared`, `.local`, `.param` and others.
    Vars(Box<VarDecl<'a>>),
    /// `{ ... }`
    Block(Vec<Stmt<'a>>, Span),
    /// `.loc 1 2 3[, function_name label, inlined_at 1 2 3]`.
    Loc {
        /// File number.
        file: u64,
        /// Line of the source file, from 1.
        line: u64,
        /// Column of that line.
        column: u64,
        /// Behind the comma: function name label with an offset, and the call's file, line, column.
        inlined: Option<Box<InlinedAt<'a>>>,
        /// The directive.
        span: Span,
    },
    /// `.pragma`.
    Pragma(Pragma<'a>),
    /// `name: .branchtargets a, b;` or `.calltargets`.
    Targets {
        /// The label it is declared under.
        label: Name<'a>,
        /// `.calltargets`, else `.branchtargets`.
        calls: bool,
        /// The names.
        targets: Vec<Name<'a>>,
        /// The statement.
        span: Span,
    },
    /// `name: .callprototype (..) _ (..) .noreturn;`
    Prototype(Box<Prototype<'a>>),
}

/// The second half of a `.loc`.
#[derive(Clone, Copy, Debug)]
pub struct InlinedAt<'a> {
    /// Label of the name in the debug strings.
    pub label: &'a str,
    /// Added to the label.
    pub offset: u64,
    /// File number.
    pub file: u64,
    /// Line of the source file, from 1.
    pub line: u64,
    /// Column of that line.
    pub column: u64,
}

/// `.callprototype`.
#[derive(Clone, Debug)]
pub struct Prototype<'a> {
    /// The label it is declared under.
    pub label: Name<'a>,
    /// Results in order.
    pub results: Vec<VarDecl<'a>>,
    /// Parameters in order.
    pub params: Vec<VarDecl<'a>>,
    /// `.noreturn` and others.
    pub directives: Vec<Directive<'a>>,
    /// The statement.
    pub span: Span,
}

/// `@!%p opcode.qual.qual a, b, c;`
#[derive(Clone, Debug)]
pub struct Inst<'a> {
    /// `@%p` or `@!%p`.
    pub guard: Option<Guard<'a>>,
    /// First word, without dots: `ld`.
    pub opcode: Name<'a>,
    /// The further words with their dots, `::` included: `.global`, `.L1::no_allocate`.
    pub qualifiers: Vec<Name<'a>>,
    /// Operands, separated by commas. A call's `(r), f, (a, b), proto` has four.
    pub operands: Vec<Operand<'a>>,
    /// From the guard to the semicolon.
    pub span: Span,
}

/// The guard of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Guard<'a> {
    /// `!`.
    pub negated: bool,
    /// The predicate.
    pub name: Name<'a>,
}

/// An operand.
#[derive(Clone, Debug)]
pub struct Operand<'a> {
    /// What is written.
    pub kind: OperandKind<'a>,
    /// Where it is written.
    pub span: Span,
}

/// Kinds of operands.
#[derive(Clone, Debug)]
pub enum OperandKind<'a> {
    /// A register, special register, variable, function or label.
    Name(&'a str),
    /// `%tid.x`, `v.r`, `%r0.b1`, `%r1.h0`: name and the words after it without dots.
    Member(&'a str, Vec<&'a str>),
    /// A constant expression (a lone literal too); also `sym+4` outside brackets.
    Expr(Expr<'a>),
    /// `{a, b}`.
    Vector(Vec<Operand<'a>>),
    /// `[a+4]`, `[t, {x, y}]`, `[a].unified`.
    Address(Box<Address<'a>>),
    /// `_`.
    Sink,
    /// `!p`.
    Not(Name<'a>),
    /// `-a` of a video instruction's register.
    Neg(Box<Operand<'a>>),
    /// `p|q`; each side a name, member or sink.
    Pair(Box<Operand<'a>>, Box<Operand<'a>>),
    /// `(a, b)` of a call.
    Paren(Vec<Operand<'a>>),
    /// `table[%r3]` or `table[2]`.
    Indexed(&'a str, Box<Operand<'a>>),
}

/// What is between brackets.
#[derive(Clone, Debug)]
pub struct Address<'a> {
    /// A name, an integer, or a vector.
    pub base: Operand<'a>,
    /// `+ expression` after it.
    pub offset: Option<Expr<'a>>,
    /// Further parts after commas (coordinates of a tensor or texture).
    pub more: Vec<Operand<'a>>,
    /// `.unified` after the bracket.
    pub unified: bool,
}

/// A constant expression.
#[derive(Clone, Debug)]
pub struct Expr<'a> {
    /// What is written.
    pub kind: ExprKind<'a>,
    /// Where it is written.
    pub span: Span,
}

/// Kinds of constant expressions.
#[derive(Clone, Debug)]
pub enum ExprKind<'a> {
    /// An integer literal: the low 64 bits; `unsigned` when it ends in `U` or does not fit `.s64`; `truncated` when it did not fit 64 bits.
    Int {
        /// Low 64 bits.
        value: u64,
        /// `.u64`.
        unsigned: bool,
        /// Bits were lost.
        truncated: bool,
    },
    /// A float literal: decimal, or `0d` with 16 digits.
    Float(f64),
    /// `0f` with 8 digits: bits of an f32.
    Float32(u32),
    /// `WARP_SZ` or the name of a symbol.
    Name(&'a str),
    /// `generic(sym)`.
    Generic(Box<Expr<'a>>),
    /// `0xFF00(sym)`: a byte of an address.
    Mask(u64, Box<Expr<'a>>),
    /// `-a`, `+a`, `~a`, `!a`.
    Unary(UnaryOp, Box<Expr<'a>>),
    /// `a + b`.
    Binary(BinaryOp, Box<Expr<'a>>, Box<Expr<'a>>),
    /// `a ? b : c`.
    Ternary(Box<Expr<'a>>, Box<Expr<'a>>, Box<Expr<'a>>),
    /// `(.s64) a` or `(.u64) a`.
    Cast {
        /// `.s64`, else `.u64`.
        signed: bool,
        /// The value that is converted.
        value: Box<Expr<'a>>,
    },
}

/// Unary operators of constant expressions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum UnaryOp {
    Plus,
    Minus,
    Complement,
    Not,
}

/// Binary operators of constant expressions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum BinaryOp {
    Mul,
    Div,
    Rem,
    Add,
    Sub,
    Shl,
    Shr,
    Lt,
    Gt,
    Le,
    Ge,
    Eq,
    Ne,
    And,
    Xor,
    Or,
    LogicalAnd,
    LogicalOr,
}
