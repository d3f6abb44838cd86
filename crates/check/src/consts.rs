//! Constant expressions: their value, and its conversion to the type of use.
//!
//! # PTX ISA
//! Constant Expressions; Integer Constant Expression Evaluation.

use handloom_diag::{Code, Diagnostic, Span};
use handloom_ir::types::{ScalarType, TypeClass};
use handloom_syntax::ast::{BinaryOp, Expr, ExprKind, UnaryOp};

const SECTION: &str = "Integer Constant Expression Evaluation";
/// Expressions nested deeper than this are refused; nobody writes them.
const MAX_DEPTH: u32 = 512;
/// Lanes of a warp, the value of `WARP_SZ`.
const WARP_SZ: u64 = 32;

/// The value of a constant expression.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Const<'a> {
    /// An integer.
    Int {
        /// Its 64 bits.
        value: u64,
        /// `.u64`, else `.s64`.
        unsigned: bool,
        /// A literal in it lost bits.
        truncated: bool,
    },
    /// A float.
    Float(f64),
    /// A float written as the bits of an f32.
    Float32(u32),
    /// An address of a symbol.
    Address(SymbolAddress<'a>),
}

/// `sym+4`, `generic(sym)`, `0xFF00(sym)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SymbolAddress<'a> {
    /// The symbol.
    pub name: &'a str,
    /// Where its name is.
    pub span: Span,
    /// Added to the address in bytes.
    pub addend: i64,
    /// `generic(..)`.
    pub generic: bool,
    /// The mask before the parenthesis.
    pub mask: Option<u64>,
}

type Value<'a> = Result<Const<'a>, Box<Diagnostic>>;

/// The value of an expression.
///
/// # Errors
/// What is wrong with it, as a diagnostic.
pub fn eval<'a>(e: &Expr<'a>) -> Value<'a> {
    eval_at(e, 0)
}

fn eval_at<'a>(e: &Expr<'a>, depth: u32) -> Value<'a> {
    if depth > MAX_DEPTH {
        return fail(e.span, "the constant expression is nested too deeply");
    }
    let depth = depth + 1;
    match &e.kind {
        ExprKind::Int { value, unsigned, truncated } => {
            Ok(Const::Int { value: *value, unsigned: *unsigned, truncated: *truncated })
        }
        ExprKind::Float(v) => Ok(Const::Float(*v)),
        ExprKind::Float32(bits) => Ok(Const::Float32(*bits)),
        ExprKind::Name("WARP_SZ") => Ok(signed(WARP_SZ)),
        ExprKind::Name(name) => {
            Ok(Const::Address(SymbolAddress { name, span: e.span, addend: 0, generic: false, mask: None }))
        }
        ExprKind::Generic(inner) => match eval_at(inner, depth)? {
            Const::Address(a) if !a.generic && a.mask.is_none() => {
                Ok(Const::Address(SymbolAddress { generic: true, ..a }))
            }
            _ => fail(inner.span, "`generic()` takes the name of a variable"),
        },
        ExprKind::Mask(mask, inner) => masked(*mask, eval_at(inner, depth)?, e.span),
        ExprKind::Unary(op, a) => unary(*op, eval_at(a, depth)?, e.span),
        ExprKind::Binary(op, a, b) => binary(*op, eval_at(a, depth)?, eval_at(b, depth)?, e.span),
        ExprKind::Ternary(c, a, b) => {
            let chosen = truth(eval_at(c, depth)?, c.span)?;
            let (a, b) = (eval_at(a, depth)?, eval_at(b, depth)?);
            ternary(chosen, a, b, e.span)
        }
        ExprKind::Cast { signed, value } => match eval_at(value, depth)? {
            Const::Int { value, truncated, .. } => Ok(Const::Int { value, unsigned: !signed, truncated }),
            _ => fail(value.span, "a cast takes an integer"),
        },
    }
}

fn signed<'a>(value: u64) -> Const<'a> {
    Const::Int { value, unsigned: false, truncated: false }
}

fn fail<'a>(span: Span, message: &str) -> Value<'a> {
    Err(Box::new(Diagnostic::error(Code::Literal, span, message).section(SECTION)))
}

fn masked<'a>(mask: u64, inner: Const<'a>, span: Span) -> Value<'a> {
    let shift = mask.trailing_zeros();
    if mask == 0 || !shift.is_multiple_of(8) || mask >> shift != 0xff {
        let d = Diagnostic::error(Code::Literal, span, format!("`{mask:#x}` masks more or less than one byte"));
        return Err(Box::new(d.help("`0xFF`, `0xFF00` and so on, up to `0xFF00000000000000`").section("Initializers")));
    }
    match inner {
        Const::Int { value, .. } => Ok(signed((value & mask) >> shift)),
        Const::Address(a) if a.mask.is_none() => Ok(Const::Address(SymbolAddress { mask: Some(mask), ..a })),
        _ => fail(span, "a mask takes the address of a variable or an integer"),
    }
}

fn unary<'a>(op: UnaryOp, a: Const<'a>, span: Span) -> Value<'a> {
    match (op, a) {
        (UnaryOp::Plus, a @ (Const::Int { .. } | Const::Float(_) | Const::Float32(_))) => Ok(a),
        (UnaryOp::Minus, Const::Int { value, unsigned, truncated }) => {
            Ok(Const::Int { value: value.wrapping_neg(), unsigned, truncated })
        }
        (UnaryOp::Minus, Const::Float(v)) => Ok(Const::Float(-v)),
        (UnaryOp::Minus, Const::Float32(bits)) => Ok(Const::Float32(bits ^ 0x8000_0000)),
        (UnaryOp::Complement, Const::Int { value, truncated, .. }) => {
            Ok(Const::Int { value: !value, unsigned: true, truncated })
        }
        (UnaryOp::Not, Const::Int { value, .. }) => Ok(signed(u64::from(value == 0))),
        _ => fail(span, "this operator does not take such an operand"),
    }
}

fn truth(c: Const<'_>, span: Span) -> Result<bool, Box<Diagnostic>> {
    match c {
        Const::Int { value, .. } => Ok(value != 0),
        _ => fail(span, "the condition must be an integer").map(|_| false),
    }
}

fn ternary<'a>(chosen: bool, a: Const<'a>, b: Const<'a>, span: Span) -> Value<'a> {
    match (a, b) {
        (
            Const::Int { value: x, unsigned: ux, truncated: tx },
            Const::Int { value: y, unsigned: uy, truncated: ty },
        ) => Ok(Const::Int { value: if chosen { x } else { y }, unsigned: ux || uy, truncated: tx || ty }),
        _ => match (as_float(a), as_float(b)) {
            (Some(x), Some(y)) => Ok(Const::Float(if chosen { x } else { y })),
            _ => fail(span, "both results of `?:` must be integers, or both floats"),
        },
    }
}

fn as_float(c: Const<'_>) -> Option<f64> {
    match c {
        Const::Float(v) => Some(v),
        Const::Float32(bits) => Some(f64::from(f32::from_bits(bits))),
        Const::Int { .. } | Const::Address(_) => None,
    }
}

fn binary<'a>(op: BinaryOp, a: Const<'a>, b: Const<'a>, span: Span) -> Value<'a> {
    match (a, b) {
        (
            Const::Int { value: x, unsigned: ux, truncated: tx },
            Const::Int { value: y, unsigned: uy, truncated: ty },
        ) => match integers(op, (x, ux), (y, uy)) {
            Some((value, unsigned)) => Ok(Const::Int { value, unsigned, truncated: tx || ty }),
            None => fail(span, "division by zero in a constant expression"),
        },
        (Const::Address(s), Const::Int { value, .. }) if matches!(op, BinaryOp::Add | BinaryOp::Sub) => {
            let by = value.cast_signed();
            let by = if op == BinaryOp::Sub { by.wrapping_neg() } else { by };
            Ok(Const::Address(SymbolAddress { addend: s.addend.wrapping_add(by), ..s }))
        }
        (Const::Int { value, .. }, Const::Address(s)) if op == BinaryOp::Add => {
            Ok(Const::Address(SymbolAddress { addend: s.addend.wrapping_add(value.cast_signed()), ..s }))
        }
        (Const::Address(_), _) | (_, Const::Address(_)) => {
            fail(span, "only an integer can be added to the address of a symbol")
        }
        _ => match (as_float(a), as_float(b)) {
            (Some(x), Some(y)) => match floats(op, x, y) {
                Some(v) => Ok(v),
                None => fail(span, "this operator takes integers only"),
            },
            _ => fail(span, "an integer and a float cannot be combined"),
        },
    }
}

fn floats<'a>(op: BinaryOp, x: f64, y: f64) -> Option<Const<'a>> {
    let flag = |b: bool| signed(u64::from(b));
    Some(match op {
        BinaryOp::Add => Const::Float(x + y),
        BinaryOp::Sub => Const::Float(x - y),
        BinaryOp::Mul => Const::Float(x * y),
        BinaryOp::Div => Const::Float(x / y),
        BinaryOp::Lt => flag(x < y),
        BinaryOp::Gt => flag(x > y),
        BinaryOp::Le => flag(x <= y),
        BinaryOp::Ge => flag(x >= y),
        BinaryOp::Eq => flag(x == y),
        BinaryOp::Ne => flag(x != y),
        BinaryOp::Rem
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::And
        | BinaryOp::Xor
        | BinaryOp::Or
        | BinaryOp::LogicalAnd
        | BinaryOp::LogicalOr => return None,
    })
}

/// Value and whether it is `.u64`; `None` for a division by zero.
fn integers(op: BinaryOp, (x, ux): (u64, bool), (y, uy): (u64, bool)) -> Option<(u64, bool)> {
    let unsigned = ux || uy;
    let (sx, sy) = (x.cast_signed(), y.cast_signed());
    let flag = |b: bool| (u64::from(b), false);
    let less = if unsigned { x < y } else { sx < sy };
    Some(match op {
        BinaryOp::Add => (x.wrapping_add(y), unsigned),
        BinaryOp::Sub => (x.wrapping_sub(y), unsigned),
        BinaryOp::Mul => (x.wrapping_mul(y), unsigned),
        BinaryOp::Div if y == 0 => return None,
        BinaryOp::Div if unsigned => (x / y, true),
        BinaryOp::Div => (sx.wrapping_div(sy).cast_unsigned(), false),
        // The operands of a remainder are always read as unsigned; Table 5 gives the result the signed type.
        BinaryOp::Rem if y == 0 => return None,
        BinaryOp::Rem => (x % y, false),
        BinaryOp::Shl => (if y < 64 { x << y } else { 0 }, ux),
        BinaryOp::Shr if ux => (if y < 64 { x >> y } else { 0 }, true),
        BinaryOp::Shr => ((sx >> y.min(63)).cast_unsigned(), false),
        BinaryOp::And => (x & y, unsigned),
        BinaryOp::Or => (x | y, unsigned),
        BinaryOp::Xor => (x ^ y, unsigned),
        BinaryOp::Lt => flag(less),
        BinaryOp::Gt => flag(!less && x != y),
        BinaryOp::Le => flag(less || x == y),
        BinaryOp::Ge => flag(!less),
        BinaryOp::Eq => flag(x == y),
        BinaryOp::Ne => flag(x != y),
        BinaryOp::LogicalAnd => flag(x != 0 && y != 0),
        BinaryOp::LogicalOr => flag(x != 0 || y != 0),
    })
}

/// A constant as bits of a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bits {
    /// Low 64 bits, zero above the width.
    pub low: u64,
    /// Upper 64 bits of a 128-bit type.
    pub high: u64,
    /// The value was cut.
    pub cut: bool,
}

/// Why a constant does not convert.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mismatch {
    /// An integer where a float is wanted.
    IntegerForFloat,
    /// A float where an integer is wanted.
    FloatForInteger,
    /// A type that has no literals.
    NoLiteral,
    /// An address where a number is wanted.
    Address,
}

/// Converts a number to a type.
///
/// Integer literals go to integer and bit types. Float literals go to `.f32` and `.f64` of either spelling; to a bit type only if
/// their own type has its size: `0f3F800000` is an `.f32`, all others are `.f64`. Nothing else converts.
///
/// # Errors
/// Which kinds do not go together.
pub fn to_bits(c: Const<'_>, ty: ScalarType) -> Result<Bits, Mismatch> {
    match (ty.class(), c) {
        (_, Const::Address(_)) => Err(Mismatch::Address),
        (TypeClass::Pred, Const::Int { value, .. }) => Ok(Bits { low: u64::from(value != 0), high: 0, cut: false }),
        (TypeClass::Bits | TypeClass::Unsigned | TypeClass::Signed, Const::Int { value, truncated, .. }) => {
            Ok(integer_bits(value, truncated, c, ty))
        }
        (TypeClass::Float, Const::Int { .. }) if matches!(ty, ScalarType::F32 | ScalarType::F64) => {
            Err(Mismatch::IntegerForFloat)
        }
        (TypeClass::Float, _) => float_bits(c, ty),
        (TypeClass::Bits, Const::Float(_)) if ty == ScalarType::B64 => float_bits(c, ScalarType::F64),
        (TypeClass::Bits, Const::Float32(_)) if ty == ScalarType::B32 => float_bits(c, ScalarType::F32),
        (_, Const::Float(_) | Const::Float32(_)) => Err(Mismatch::FloatForInteger),
    }
}

fn integer_bits(value: u64, truncated: bool, c: Const<'_>, ty: ScalarType) -> Bits {
    let width = ty.bits();
    let negative = matches!(c, Const::Int { unsigned: false, .. }) && value.cast_signed() < 0;
    if width >= 64 {
        let high = if width == 128 && negative { u64::MAX } else { 0 };
        return Bits { low: value, high, cut: truncated };
    }
    let low = value & ((1 << width) - 1);
    // Fits if the bits above are all zero, or a negative number's all ones with the sign bit set.
    let sign_extended = low | (u64::MAX << (width - 1));
    let fits = value == low || (value == sign_extended && low >> (width - 1) == 1);
    Bits { low, high: 0, cut: truncated || !fits }
}

fn float_bits(c: Const<'_>, ty: ScalarType) -> Result<Bits, Mismatch> {
    let low = match (ty, c) {
        (ScalarType::F32, Const::Float32(bits)) => u64::from(bits),
        (ScalarType::F32, Const::Float(v)) => u64::from((v as f32).to_bits()),
        (ScalarType::F64, Const::Float32(bits)) => f64::from(f32::from_bits(bits)).to_bits(),
        (ScalarType::F64, Const::Float(v)) => v.to_bits(),
        _ => return Err(Mismatch::NoLiteral),
    };
    Ok(Bits { low, high: 0, cut: false })
}

/// What is reported when a literal is where its kind does not fit.
pub(crate) fn literal_mismatch(m: Mismatch, ty: ScalarType, span: Span) -> Diagnostic {
    let error = |message: String| Diagnostic::error(Code::LiteralType, span, message).section("Constants");
    match m {
        Mismatch::IntegerForFloat => error(format!("an integer literal where `{ty}` is wanted"))
            .help(if ty == ScalarType::F32 { "write `1.0` or `0f3F800000` for one" } else { "write `1.0` for one" }),
        Mismatch::FloatForInteger => {
            let d = error(format!("a float literal where `{ty}` is wanted"));
            match ty {
                ScalarType::B32 => d.help("write the bits: `0f3F800000` is the `.f32` one"),
                ScalarType::B64 => d.help("write the bits: `0d3FF0000000000000` is the `.f64` one"),
                _ => d,
            }
        }
        Mismatch::NoLiteral => error(format!("there are no literals of type `{ty}`"))
            .help("move the bits into a register first, for example with `mov.b16`"),
        Mismatch::Address => {
            Diagnostic::error(Code::OperandKind, span, "the address of a symbol where a number is wanted")
                .help("take the address with `mov` first")
        }
    }
}
