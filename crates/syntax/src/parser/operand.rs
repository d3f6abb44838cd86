//! Operands of instructions.

use super::{Fault, Parser, R};
use crate::ast::{Address, Expr, ExprKind, Operand, OperandKind};
use crate::lexer::T;

const ANY: &str = "an operand";

impl<'a> Parser<'a> {
    /// An operand. Those of a call may be lists in parentheses.
    pub(super) fn operand(&mut self, call: bool) -> R<Operand<'a>> {
        match self.tok.kind {
            T::Ident => self.name_operand(true),
            T::LBracket => self.address(),
            T::LBrace => {
                let vector = self.vector()?;
                self.pair(vector)
            }
            T::LParen if call => self.paren(),
            _ => self.value(ANY),
        }
    }

    /// An operand that begins with no name, brace or bracket.
    fn value(&mut self, what: &str) -> R<Operand<'a>> {
        let start = self.tok.start;
        match self.tok.kind {
            T::Not | T::Minus if self.names_register() => {
                let negates = self.tok.kind == T::Minus;
                self.bump();
                let kind = if negates {
                    OperandKind::Neg(Box::new(self.name_operand(false)?))
                } else {
                    OperandKind::Not(self.name("a predicate")?)
                };
                Ok(Operand { kind, span: self.since(start) })
            }
            T::Number | T::Plus | T::Minus | T::Tilde | T::Not | T::LParen | T::Dot => {
                if self.tok.kind == T::Dot && !self.is_fraction() {
                    return Err(self.fault(what));
                }
                let expr = self.expr()?;
                Ok(Operand { span: expr.span, kind: OperandKind::Expr(expr) })
            }
            _ => Err(self.fault(what)),
        }
    }

    /// Whether a name other than `WARP_SZ` follows the present token.
    fn names_register(&self) -> bool {
        let next = self.lex.clone().next();
        next.kind == T::Ident && self.slice(next.start, next.end) != "WARP_SZ"
    }

    /// An operand that begins with a name. Pairs, sums and indices are taken only if `whole`.
    fn name_operand(&mut self, whole: bool) -> R<Operand<'a>> {
        let name = self.name(ANY)?;
        let span = name.span;
        let plain = Operand { kind: OperandKind::Name(name.text), span };
        match self.tok.kind {
            T::Comma | T::Semi | T::RBracket | T::RBrace | T::RParen
                if name.text.len() > 1 && name.text != "WARP_SZ" =>
            {
                return Ok(plain);
            }
            _ => {}
        }
        if name.text == "WARP_SZ" {
            let expr = self.expr_from(Expr { kind: ExprKind::Name(name.text), span })?;
            return Ok(Operand { span: expr.span, kind: OperandKind::Expr(expr) });
        }
        let plain = if name.text == "_" { Operand { kind: OperandKind::Sink, span } } else { plain };
        match self.tok.kind {
            T::Dot => {
                let member = self.tok_text().get(1..).unwrap_or("");
                self.bump();
                let kind = OperandKind::Member(name.text, vec![member]);
                let member = Operand { kind, span: self.since(span.start) };
                if whole { self.pair(member) } else { Ok(member) }
            }
            T::Pipe if whole => self.pair(plain),
            T::LBracket if whole => {
                self.bump();
                let index = match self.tok.kind {
                    T::Ident => self.sum()?,
                    _ => self.value("a register or a constant")?,
                };
                self.expect(T::RBracket, "`]`")?;
                let kind = OperandKind::Indexed(name.text, Box::new(index));
                Ok(Operand { kind, span: self.since(span.start) })
            }
            T::Plus | T::Minus if whole => {
                let base = Expr { kind: ExprKind::Name(name.text), span };
                let (expr, _) = self.offset_of(base)?;
                Ok(Operand { span: expr.span, kind: OperandKind::Expr(expr) })
            }
            _ => Ok(plain),
        }
    }

    /// A name, or a name and an offset.
    fn sum(&mut self) -> R<Operand<'a>> {
        let name = self.name_operand(false)?;
        match (&name.kind, self.tok.kind) {
            (OperandKind::Name(text), T::Plus | T::Minus) => {
                let (expr, _) = self.offset_of(Expr { kind: ExprKind::Name(text), span: name.span })?;
                Ok(Operand { span: expr.span, kind: OperandKind::Expr(expr) })
            }
            _ => Ok(name),
        }
    }

    /// `first`, or `first|second` if a bar follows.
    fn pair(&mut self, first: Operand<'a>) -> R<Operand<'a>> {
        if !self.eat(T::Pipe) {
            return Ok(first);
        }
        if self.tok.kind != T::Ident {
            return Err(self.fault("a predicate or `_`"));
        }
        let second = self.name_operand(false)?;
        let span = first.span.to(second.span);
        Ok(Operand { kind: OperandKind::Pair(Box::new(first), Box::new(second)), span })
    }

    /// `{a, b}`: names and constants, not nested.
    fn vector(&mut self) -> R<Operand<'a>> {
        let start = self.tok.start;
        self.bump();
        let mut elements = Vec::with_capacity(4);
        loop {
            elements.push(match self.tok.kind {
                T::Ident => self.name_operand(true)?,
                _ => self.value("a vector element")?,
            });
            if self.eat(T::RBrace) {
                break;
            }
            self.expect(T::Comma, "`,` or `}`")?;
        }
        Ok(Operand { kind: OperandKind::Vector(elements), span: self.since(start) })
    }

    /// `(a, b)` of a call; may be empty.
    fn paren(&mut self) -> R<Operand<'a>> {
        let start = self.tok.start;
        self.bump();
        let mut list = Vec::with_capacity(4);
        while self.tok.kind != T::RParen {
            list.push(match self.tok.kind {
                T::LBrace => self.vector()?,
                _ => self.operand(false)?,
            });
            if self.tok.kind == T::RParen {
                break;
            }
            self.expect(T::Comma, "`,` or `)`")?;
            if self.tok.kind == T::RParen {
                return Err(self.fault(ANY));
            }
        }
        self.bump();
        Ok(Operand { kind: OperandKind::Paren(list), span: self.since(start) })
    }

    /// `[a+4]`, `[t, {x, y}]`, `[a].unified`.
    fn address(&mut self) -> R<Operand<'a>> {
        let start = self.tok.start;
        self.bump();
        let base = match self.tok.kind {
            T::Ident if self.tok_text() != "WARP_SZ" => self.name_operand(false)?,
            T::LBrace => self.vector()?,
            _ => self.value("an address")?,
        };
        let offset = match self.tok.kind {
            T::Plus => {
                self.bump();
                Some(self.expr()?)
            }
            T::Minus => return Err(self.minus_after_name()),
            _ => None,
        };
        let mut more = Vec::new();
        while self.eat(T::Comma) {
            more.push(match self.tok.kind {
                T::Ident => self.name_operand(true)?,
                T::LBrace => self.vector()?,
                _ => self.value(ANY)?,
            });
        }
        if !self.eat(T::RBracket) {
            return Err(self.address_end());
        }
        let unified = self.at_word(".unified");
        if unified {
            self.bump();
        }
        let address = Address { base, offset, more, unified };
        Ok(Operand { kind: OperandKind::Address(Box::new(address)), span: self.since(start) })
    }

    fn address_end(&mut self) -> Fault {
        self.fault("one of `+`, `,`, `]`")
    }
}
