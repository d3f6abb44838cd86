//! Constant expressions, and symbols with an offset.

use handloom_diag::{Code, Diagnostic};

use super::{Fault, MAX_DEPTH, Parser, R};
use crate::ast::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::lexer::T;
use crate::literal::{self, Malformed};

/// An expression and how deep its tree is.
type Deep<'a> = (Expr<'a>, u32);

impl<'a> Parser<'a> {
    /// A constant expression: names other than `WARP_SZ` cannot be in it.
    pub(super) fn expr(&mut self) -> R<Expr<'a>> {
        Ok(self.deep_expr()?.0)
    }

    /// `WARP_SZ` was read; what it begins.
    pub(super) fn expr_from(&mut self, first: Expr<'a>) -> R<Expr<'a>> {
        Ok(self.ternary_from((first, 0))?.0)
    }

    fn deep_expr(&mut self) -> R<Deep<'a>> {
        // Most are a literal alone.
        if self.tok.kind == T::Number {
            let literal = self.literal()?;
            let first = self.after_literal(literal)?;
            if !continues(self.tok.kind) {
                return Ok(first);
            }
            return self.ternary_from(first);
        }
        self.ternary()
    }

    /// A symbol, `generic(symbol)`, each with or without `+ offset`, or a constant expression.
    pub(super) fn symbol_expr(&mut self) -> R<Expr<'a>> {
        Ok(self.deep_symbol_expr()?.0)
    }

    fn deep_symbol_expr(&mut self) -> R<Deep<'a>> {
        if self.tok.kind != T::Ident || self.tok_text() == "WARP_SZ" {
            return self.deep_expr();
        }
        let name = self.name("a symbol")?;
        let mut base = Expr { kind: ExprKind::Name(name.text), span: name.span };
        if name.text == "generic" && self.tok.kind == T::LParen {
            self.bump();
            let inner = self.name("the name of a variable or function")?;
            self.expect(T::RParen, "`)`")?;
            let inner = Expr { kind: ExprKind::Name(inner.text), span: inner.span };
            base = Expr { kind: ExprKind::Generic(Box::new(inner)), span: self.since(name.span.start) };
        }
        self.offset_of(base)
    }

    /// `base` with what is added to it.
    pub(super) fn offset_of(&mut self, base: Expr<'a>) -> R<Deep<'a>> {
        match self.tok.kind {
            T::Plus => {
                self.bump();
                let (offset, depth) = self.deep_expr()?;
                self.no_exact_float(&offset)?;
                let span = base.span.to(offset.span);
                let kind = ExprKind::Binary(BinaryOp::Add, Box::new(base), Box::new(offset));
                Ok((Expr { kind, span }, self.limit(1 + depth)?))
            }
            T::Minus => Err(self.minus_after_name()),
            _ => Ok((base, 1)),
        }
    }

    /// `[%r-4]`: PTX has a sum there and no difference.
    pub(super) fn minus_after_name(&mut self) -> Fault {
        let start = self.prev_start;
        let base = self.text.get(start as usize..self.prev_end as usize).unwrap_or("");
        let mut ahead = self.lex;
        let number = ahead.next();
        let help = match number.kind {
            T::Number => {
                let digits = self.text.get(number.start as usize..number.end as usize).unwrap_or("");
                format!("write `{}+-{}`", literal::short(base), literal::short(digits))
            }
            _ => "a register or symbol takes `+` and a constant: write `+-4` for `-4`".to_owned(),
        };
        let span = self.span(self.tok.start, self.tok.end);
        let message = format!("`-` cannot follow the name `{}`", literal::short(base));
        self.push(Diagnostic::error(Code::Syntax, span, message).label("expected `+`").help(help));
        Fault
    }

    fn ternary(&mut self) -> R<Deep<'a>> {
        self.deeper(|p| {
            let first = p.unary()?;
            p.ternary_from(first)
        })
    }

    fn ternary_from(&mut self, first: Deep<'a>) -> R<Deep<'a>> {
        let (condition, depth) = self.binary_from(first, 1)?;
        if self.tok.kind != T::Question {
            return Ok((condition, depth));
        }
        self.bump();
        let (yes, yes_depth) = self.ternary()?;
        self.expect(T::Colon, "`:`")?;
        let (no, no_depth) = self.ternary()?;
        self.no_exact_float(&condition)?;
        self.no_exact_float(&yes)?;
        self.no_exact_float(&no)?;
        let span = condition.span.to(no.span);
        let kind = ExprKind::Ternary(Box::new(condition), Box::new(yes), Box::new(no));
        Ok((Expr { kind, span }, self.limit(1 + depth.max(yes_depth).max(no_depth))?))
    }

    /// Operators that bind at least as tightly as `level`, after a first operand.
    fn binary_from(&mut self, first: Deep<'a>, level: u8) -> R<Deep<'a>> {
        let (mut left, mut depth) = first;
        while let Some((op, own)) = binary(self.tok.kind).filter(|&(_, own)| own >= level) {
            self.bump();
            let right = self.unary()?;
            let (right, right_depth) = self.binary_from(right, own + 1)?;
            self.no_exact_float(&left)?;
            self.no_exact_float(&right)?;
            let span = left.span.to(right.span);
            left = Expr { kind: ExprKind::Binary(op, Box::new(left), Box::new(right)), span };
            depth = self.limit(1 + depth.max(right_depth))?;
        }
        Ok((left, depth))
    }

    fn unary(&mut self) -> R<Deep<'a>> {
        let op = match self.tok.kind {
            T::Plus => UnaryOp::Plus,
            T::Minus => UnaryOp::Minus,
            T::Tilde => UnaryOp::Complement,
            T::Not => UnaryOp::Not,
            _ => return self.primary(),
        };
        let start = self.tok.start;
        self.bump();
        let (operand, depth) = self.deeper(Self::unary)?;
        self.no_exact_float(&operand)?;
        let kind = ExprKind::Unary(op, Box::new(operand));
        Ok((Expr { kind, span: self.since(start) }, self.limit(1 + depth)?))
    }

    fn primary(&mut self) -> R<Deep<'a>> {
        match self.tok.kind {
            T::Number => {
                let literal = self.literal()?;
                self.after_literal(literal)
            }
            T::Dot if self.is_fraction() => {
                self.tok = self.lex.fraction(self.tok);
                Ok((self.literal()?, 0))
            }
            T::Ident if self.tok_text() == "WARP_SZ" => {
                let name = self.name("a constant")?;
                Ok((Expr { kind: ExprKind::Name(name.text), span: name.span }, 0))
            }
            T::LParen => {
                let start = self.tok.start;
                self.bump();
                if self.tok.kind == T::Dot && !self.is_fraction() {
                    return self.cast(start);
                }
                let (inner, depth) = self.ternary()?;
                self.expect(T::RParen, "an operator or `)`")?;
                Ok((Expr { kind: inner.kind, span: self.since(start) }, depth))
            }
            _ => Err(self.fault("a constant")),
        }
    }

    /// In an initialiser `0xFF00(symbol)` is a byte of an address.
    fn after_literal(&mut self, literal: Expr<'a>) -> R<Deep<'a>> {
        match literal.kind {
            ExprKind::Int { value, .. } if self.initialiser && self.tok.kind == T::LParen => {
                self.bump();
                let (inner, depth) = self.deeper(Self::deep_symbol_expr)?;
                self.expect(T::RParen, "`)`")?;
                let kind = ExprKind::Mask(value, Box::new(inner));
                Ok((Expr { kind, span: self.since(literal.span.start) }, self.limit(1 + depth)?))
            }
            _ => Ok((literal, 0)),
        }
    }

    /// Behind the parenthesis at `start`: `.s64) value`.
    fn cast(&mut self, start: u32) -> R<Deep<'a>> {
        let signed = match self.tok_text() {
            ".s64" => true,
            ".u64" => false,
            _ => return Err(self.fault("one of `.s64`, `.u64`")),
        };
        self.bump();
        self.expect(T::RParen, "`)`")?;
        let (value, depth) = self.deeper(Self::unary)?;
        self.no_exact_float(&value)?;
        let kind = ExprKind::Cast { signed, value: Box::new(value) };
        Ok((Expr { kind, span: self.since(start) }, self.limit(1 + depth)?))
    }

    /// Whether the present word is `.5` and its like.
    pub(super) fn is_fraction(&self) -> bool {
        self.tok_text().as_bytes().get(1).is_some_and(u8::is_ascii_digit)
    }

    /// The number that is the present token.
    pub(super) fn literal(&mut self) -> R<Expr<'a>> {
        let span = self.span(self.tok.start, self.tok.end);
        match literal::number(self.tok_text()) {
            Ok(kind) => {
                self.bump();
                Ok(Expr { kind, span })
            }
            Err(Malformed(message, help)) => {
                let mut d = Diagnostic::error(Code::Literal, span, message);
                d.help = help;
                self.push(d);
                Err(Fault)
            }
        }
    }

    /// The manual: the 32-bit notation may not be used in constant expressions, not even after a minus.
    fn no_exact_float(&mut self, operand: &Expr<'a>) -> R<()> {
        let ExprKind::Float32(bits) = operand.kind else { return Ok(()) };
        self.push(
            Diagnostic::error(Code::Syntax, operand.span, "a `0f` literal cannot be part of an expression")
                .help(format!(
                    "the sign is the top bit of the digits: the negative of this is `0f{:08X}`",
                    bits ^ 1 << 31
                ))
                .section("Floating-Point Constants"),
        );
        Err(Fault)
    }

    /// Runs `read` one level deeper.
    fn deeper<X>(&mut self, read: impl FnOnce(&mut Self) -> R<X>) -> R<X> {
        self.depth += 1;
        let result = self.limit(self.depth).and_then(|_| read(self));
        self.depth -= 1;
        result
    }

    fn limit(&mut self, depth: u32) -> R<u32> {
        if depth <= MAX_DEPTH {
            return Ok(depth);
        }
        Err(self.too_deep("this expression"))
    }
}

fn continues(kind: T) -> bool {
    kind == T::Question || binary(kind).is_some()
}

/// Operators with their levels: a higher one binds more tightly.
fn binary(kind: T) -> Option<(BinaryOp, u8)> {
    Some(match kind {
        T::Star => (BinaryOp::Mul, 10),
        T::Slash => (BinaryOp::Div, 10),
        T::Percent => (BinaryOp::Rem, 10),
        T::Plus => (BinaryOp::Add, 9),
        T::Minus => (BinaryOp::Sub, 9),
        T::Shl => (BinaryOp::Shl, 8),
        T::Shr => (BinaryOp::Shr, 8),
        T::Lt => (BinaryOp::Lt, 7),
        T::Gt => (BinaryOp::Gt, 7),
        T::Le => (BinaryOp::Le, 7),
        T::Ge => (BinaryOp::Ge, 7),
        T::EqEq => (BinaryOp::Eq, 6),
        T::Ne => (BinaryOp::Ne, 6),
        T::Amp => (BinaryOp::And, 5),
        T::Caret => (BinaryOp::Xor, 4),
        T::Pipe => (BinaryOp::Or, 3),
        T::AmpAmp => (BinaryOp::LogicalAnd, 2),
        T::PipePipe => (BinaryOp::LogicalOr, 1),
        _ => return None,
    })
}
