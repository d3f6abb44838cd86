//! Headers of entries, functions and prototypes.

use handloom_diag::Span;

use super::recover::is_space;
use super::{Fault, Parser, R};
use crate::ast::{Directive, Function, Linkage, Name, VarDecl};
use crate::lexer::T;

/// What is between `.entry` and the body.
struct Header<'a> {
    results: Vec<VarDecl<'a>>,
    name: Name<'a>,
    params: Vec<VarDecl<'a>>,
    directives: Vec<Directive<'a>>,
}

impl<'a> Parser<'a> {
    /// An entry or a function. The present token is `.entry` or `.func`. `None` if the header is bad; its body was
    /// read for errors.
    pub(super) fn function(&mut self, linkage: Option<(Linkage, Span)>) -> Option<Function<'a>> {
        let start = linkage.map_or(self.tok.start, |(_, span)| span.start);
        let is_entry = self.at_word(".entry");
        self.bump();
        let mut attributes = Vec::new();
        let header = if self.at_word(".attribute") { self.attributes(&mut attributes) } else { Ok(()) };
        let header = header.and_then(|()| self.header(is_entry)).and_then(|h| self.header_end().map(|()| h));
        if header.is_err() {
            self.skip_header();
        }
        let span = self.since(start);
        let body = if self.tok.kind == T::LBrace {
            Some(self.body())
        } else {
            self.eat(T::Semi);
            None
        };
        let Header { results, name, params, directives } = header.ok()?;
        Some(Function { linkage, is_entry, attributes, results, name, params, directives, body, span })
    }

    fn header(&mut self, is_entry: bool) -> R<Header<'a>> {
        let mut results = Vec::new();
        if !is_entry && self.tok.kind == T::LParen {
            results = self.parameters()?;
        }
        let name = self.name(if is_entry { "the name of an entry" } else { "the name of a function" })?;
        let mut params = Vec::new();
        if self.tok.kind == T::LParen {
            params = self.parameters()?;
        }
        Ok(Header { results, name, params, directives: self.directives()? })
    }

    /// A declaration needs no semicolon, but what follows must then be something new.
    fn header_end(&mut self) -> R<()> {
        match self.tok.kind {
            T::LBrace | T::Semi => Ok(()),
            T::Eof if self.lex.open_comment.is_none() => Ok(()),
            T::Dot => Ok(()),
            _ => Err(self.fault("one of a directive, `{`, `;`")),
        }
    }

    /// `(.param .u64 a, .param .u64 b)`. A bad parameter is left out.
    pub(super) fn parameters(&mut self) -> R<Vec<VarDecl<'a>>> {
        self.expect(T::LParen, "`(`")?;
        let mut list = Vec::new();
        if self.eat(T::RParen) {
            return Ok(list);
        }
        loop {
            let mut good = true;
            match self.parameter() {
                Ok(decl) => list.push(decl),
                Err(Fault) => good = false,
            }
            if good && !matches!(self.tok.kind, T::Comma | T::RParen) {
                self.fault("`,` or `)`");
                good = false;
            }
            if !good {
                self.skip_list_part();
            }
            match self.tok.kind {
                T::Comma => self.bump(),
                T::RParen => {
                    self.bump();
                    return Ok(list);
                }
                // The next parameter, without the comma before it.
                T::Dot if is_space(self.tok_text()) => {}
                _ => return Err(Fault),
            }
        }
    }

    /// `.maxntid 256, 1, 1`, `.noreturn`, `.pragma "...";` and their like.
    pub(super) fn directives(&mut self) -> R<Vec<Directive<'a>>> {
        let mut list = Vec::new();
        while self.tok.kind == T::Dot && !self.at_module_word() && !is_space(self.tok_text()) {
            let start = self.tok.start;
            let name = self.word("a directive")?;
            let (mut values, mut strings) = (Vec::new(), Vec::new());
            if name.text == ".pragma" {
                self.strings(&mut strings)?;
                self.semicolon("`.pragma`", "`,` or `;`")?;
            } else if self.tok.kind == T::Number {
                self.integers(&mut values)?;
            }
            list.push(Directive { name, values, strings, span: self.since(start) });
        }
        Ok(list)
    }

    /// One or more strings with commas between.
    pub(super) fn strings(&mut self, strings: &mut Vec<Name<'a>>) -> R<()> {
        loop {
            strings.push(self.string("a string")?);
            if !self.eat(T::Comma) {
                return Ok(());
            }
        }
    }
}
