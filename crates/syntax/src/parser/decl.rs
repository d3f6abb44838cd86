//! Declarations of variables and parameters.

use handloom_diag::{Code, Diagnostic, Span};

use super::recover::is_space;
use super::{MAX_DEPTH, Parser, R};
use crate::ast::{Attribute, Init, Linkage, Member, Ptr, Var, VarDecl};
use crate::lexer::T;

impl<'a> Parser<'a> {
    /// One or more variables and the semicolon. The present token is the state space.
    pub(super) fn variables(&mut self, linkage: Option<(Linkage, Span)>) -> R<VarDecl<'a>> {
        let mut decl = self.type_of_declaration(linkage)?;
        loop {
            let var = self.variable(false)?;
            decl.vars.push(var);
            if !self.eat(T::Comma) {
                break;
            }
        }
        let expected = match decl.vars.last() {
            Some(Var { init: Some(_), .. }) => "one of an operator, `,`, `;`",
            Some(Var { count: Some(_), .. }) => "`,` or `;`",
            _ => "one of `[`, `<`, `=`, `,`, `;`",
        };
        self.semicolon("this declaration", expected)?;
        decl.span = self.since(decl.span.start);
        Ok(decl)
    }

    /// One parameter, without what separates it from the next.
    pub(super) fn parameter(&mut self) -> R<VarDecl<'a>> {
        if self.tok.kind != T::Dot || !is_space(self.tok_text()) {
            return Err(self.fault("`.param` or `.reg`"));
        }
        let mut decl = self.type_of_declaration(None)?;
        if self.at_word(".ptr") {
            decl.ptr = Some(self.ptr()?);
        } else if self.at_word(".align") {
            let (bytes, span) = self.align()?;
            decl.ptr = Some(Ptr { space: None, align: Some(bytes) });
            let d = Diagnostic::warning(Code::WForbidden, span, "an alignment behind the type belongs to `.ptr`");
            self.push(d.help("write `.ptr` before it").section("Kernel Function Parameter Attributes: .ptr"));
        }
        let var = self.variable(true)?;
        decl.vars.push(var);
        decl.span = self.since(decl.span.start);
        Ok(decl)
    }

    /// State space, alignment, attributes, vector and type.
    fn type_of_declaration(&mut self, linkage: Option<(Linkage, Span)>) -> R<VarDecl<'a>> {
        let start = linkage.map_or(self.tok.start, |(_, span)| span.start);
        let space = self.word("a state space")?;
        let mut bank = None;
        if space.text == ".const" && self.eat(T::LBracket) {
            bank = Some(self.integer("the number of a constant bank")?.0);
            self.expect(T::RBracket, "`]`")?;
        }
        let (mut align, mut attributes) = (None, Vec::new());
        loop {
            if self.at_word(".align") {
                align = Some(self.align()?);
            } else if self.at_word(".attribute") {
                self.attributes(&mut attributes)?;
            } else {
                break;
            }
        }
        let is_vector =
            |text: &str| text.strip_prefix(".v").is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()));
        let mut vector = None;
        if self.tok.kind == T::Dot && is_vector(self.tok_text()) {
            vector = Some(self.word("a vector")?);
        }
        let ty = self.word("a type such as `.b32`")?;
        let span = self.since(start);
        let vars = Vec::with_capacity(1);
        Ok(VarDecl { linkage, space, bank, align, attributes, vector, ty, ptr: None, vars, span })
    }

    fn align(&mut self) -> R<(u64, Span)> {
        let start = self.tok.start;
        self.bump();
        let (bytes, _) = self.integer("an alignment in bytes")?;
        Ok((bytes, self.since(start)))
    }

    /// `.attribute(.managed, .unified(1, 2))`.
    pub(super) fn attributes(&mut self, attributes: &mut Vec<Attribute<'a>>) -> R<()> {
        self.bump();
        self.expect(T::LParen, "`(`")?;
        loop {
            let name = self.word("an attribute such as `.managed`")?;
            let mut values = Vec::new();
            if self.eat(T::LParen) {
                self.integers(&mut values)?;
                self.expect(T::RParen, "`,` or `)`")?;
            }
            attributes.push(Attribute { name, values });
            if !self.eat(T::Comma) {
                return self.expect(T::RParen, "`,` or `)`");
            }
        }
    }

    /// One or more integers with commas between.
    pub(super) fn integers(&mut self, values: &mut Vec<u64>) -> R<()> {
        loop {
            values.push(self.integer("an integer")?.0);
            if !self.eat(T::Comma) {
                return Ok(());
            }
        }
    }

    /// `.ptr .global .align 4`.
    fn ptr(&mut self) -> R<Ptr<'a>> {
        self.bump();
        let mut ptr = Ptr { space: None, align: None };
        if matches!(self.tok_text(), ".const" | ".global" | ".local" | ".shared") {
            ptr.space = Some(self.word("a state space")?);
        }
        if self.at_word(".align") {
            ptr.align = Some(self.align()?.0);
        } else if self.tok.kind == T::Dot {
            return Err(self.fault("one of `.const`, `.global`, `.local`, `.shared`, `.align`, a name"));
        }
        Ok(ptr)
    }

    /// A name with what belongs to it alone.
    fn variable(&mut self, parameter: bool) -> R<Var<'a>> {
        if self.tok.kind != T::Ident || !parameter && self.tok_text() == "_" {
            let fault = self.fault("a name");
            if matches!(self.tok_text(), ".align" | ".attribute") || self.tok_text().starts_with(".v") {
                self.help("alignment, attributes and vector stand between the state space and the type");
            }
            return Err(fault);
        }
        let name = self.name("a name")?;
        if name.text == "WARP_SZ" {
            let d = Diagnostic::error(Code::Syntax, name.span, "`WARP_SZ` is a constant: nothing can be named so");
            self.push(d.section("Identifiers"));
        }
        let mut var = Var { name, count: None, dims: Vec::new(), init: None };
        if !parameter && self.tok.kind == T::Lt {
            let start = self.tok.start;
            self.bump();
            let (count, span) = self.integer("a number of variables")?;
            if count > u64::from(u32::MAX) {
                self.push(Diagnostic::error(Code::Literal, span, format!("{count} does not fit 32 bits")));
            }
            self.expect(T::Gt, "`>`")?;
            var.count = Some((count, self.since(start)));
            return Ok(var);
        }
        while self.tok.kind == T::LBracket {
            if parameter && !var.dims.is_empty() {
                let fault = self.fault("`,` or `)`");
                self.help("an array that is a parameter has one dimension");
                return Err(fault);
            }
            self.bump();
            let open = self.tok.kind == T::RBracket && var.dims.is_empty();
            let size = if open { None } else { Some(self.expr()?) };
            var.dims.push(size);
            self.expect(T::RBracket, "`]`")?;
        }
        if !parameter && self.eat(T::Eq) {
            self.initialiser = true;
            let init = self.init(0);
            self.initialiser = false;
            var.init = Some(init?);
        }
        Ok(var)
    }

    fn init(&mut self, depth: u32) -> R<Init<'a>> {
        let start = self.tok.start;
        if !self.eat(T::LBrace) {
            return Ok(Init::Value(self.symbol_expr()?));
        }
        if depth == MAX_DEPTH {
            return Err(self.too_deep("this initialiser"));
        }
        let mut list = Vec::new();
        if !self.eat(T::RBrace) {
            loop {
                if self.tok.kind == T::Ident && self.lex.clone().next().kind == T::Eq {
                    return self.members(start);
                }
                list.push(self.init(depth + 1)?);
                if self.eat(T::RBrace) {
                    break;
                }
                self.expect(T::Comma, "one of an operator, `,`, `}`")?;
            }
        }
        Ok(Init::List(list, self.since(start)))
    }

    /// `width = 4, filter_mode = nearest }` of a texture, sampler or surface.
    fn members(&mut self, start: u32) -> R<Init<'a>> {
        let mut members = Vec::new();
        loop {
            let name = self.name("the name of a member")?;
            self.expect(T::Eq, "`=`")?;
            members.push(Member { name, value: self.symbol_expr()? });
            if self.eat(T::RBrace) {
                return Ok(Init::Members(members, self.since(start)));
            }
            self.expect(T::Comma, "one of `,`, `}`")?;
        }
    }
}
