//! Bodies, statements and instructions.

use handloom_diag::{Code, Diagnostic};

use super::recover::is_space;
use super::{Fault, MAX_DEPTH, Parser, R};
use crate::ast::{Guard, InlinedAt, Inst, Name, Prototype, Stmt};
use crate::lexer::T;
use crate::literal::short;

impl<'a> Parser<'a> {
    /// `{ ... }` with all blocks in it. No recursion: the open blocks are a list.
    pub(super) fn body(&mut self) -> Vec<Stmt<'a>> {
        let mut open: Vec<(Vec<Stmt<'a>>, u32)> = Vec::new();
        let mut brace = self.tok.start;
        // Blocks that are open but too deep to be kept; their statements go to the innermost block that is.
        let mut flat = 0u32;
        self.bump();
        // A text may hold thousands of bodies that end where they begin.
        let is_empty = self.tok.kind == T::RBrace || self.tok.kind == T::Dot && self.at_next_function();
        let mut stmts = if is_empty { Vec::new() } else { Vec::with_capacity(32) };
        loop {
            let start = self.tok.start;
            match self.tok.kind {
                T::RBrace => {
                    self.bump();
                    if flat > 0 {
                        flat -= 1;
                    } else if let Some((outer, outer_brace)) = open.pop() {
                        let inner = std::mem::replace(&mut stmts, outer);
                        stmts.push(Stmt::Block(inner, self.since(brace)));
                        brace = outer_brace;
                    } else {
                        return stmts;
                    }
                }
                T::LBrace if open.len() >= MAX_DEPTH as usize => {
                    if flat == 0 {
                        self.too_deep("this block");
                    }
                    flat += 1;
                    self.bump();
                }
                T::LBrace => {
                    open.push((std::mem::take(&mut stmts), brace));
                    brace = start;
                    self.bump();
                }
                T::Hash => {
                    self.fault("a statement");
                    self.bump();
                }
                T::Eof => {
                    self.never_closed(brace);
                    break;
                }
                T::Dot if self.at_next_function() => {
                    self.never_closed(brace);
                    break;
                }
                _ => {
                    if let Err(Fault) = self.statement(&mut stmts) {
                        self.skip_statement(start);
                    }
                }
            }
        }
        while let Some((outer, outer_brace)) = open.pop() {
            let inner = std::mem::replace(&mut stmts, outer);
            stmts.push(Stmt::Block(inner, self.since(brace)));
            brace = outer_brace;
        }
        stmts
    }

    /// `.entry`, `.func`, or one of them after a linking directive.
    fn at_next_function(&self) -> bool {
        if self.linkage().is_none() {
            return self.at_function();
        }
        let next = self.lex.clone().next();
        matches!(self.slice(next.start, next.end), ".entry" | ".func")
    }

    fn never_closed(&mut self, brace: u32) {
        if self.tok.kind == T::Eof && self.lex.open_comment.is_some() {
            return;
        }
        let d = Diagnostic::error(Code::Syntax, self.span(brace, brace + 1), "this `{` is never closed");
        let here = self.span(self.tok.start, self.tok.end);
        let what = if self.tok.kind == T::Eof { "the file ends here" } else { "the next function begins here" };
        self.push(d.also(here, format!("expected `}}`: {what}")));
    }

    fn statement(&mut self, stmts: &mut Vec<Stmt<'a>>) -> R<()> {
        let start = self.tok.start;
        match self.tok.kind {
            T::Ident => {
                let name = self.tok_name();
                self.bump();
                let stmt = if self.eat(T::Colon) { self.label(name)? } else { self.instruction(start, None, name)? };
                stmts.push(stmt);
            }
            T::At => {
                self.bump();
                let negated = self.eat(T::Not);
                let guard = Guard { negated, name: self.name("a predicate")? };
                if self.tok.kind == T::LBrace {
                    // The block itself is read next.
                    self.misplaced("a block cannot have a guard".to_owned());
                    self.help("branch around the block");
                    return Ok(());
                }
                let opcode = self.name("an instruction")?;
                stmts.push(self.instruction(start, Some(guard), opcode)?);
            }
            T::Dot => self.directive(stmts)?,
            _ => return Err(self.fault("one of an instruction, a label, a directive, `{`, `}`")),
        }
        Ok(())
    }

    /// Behind `name:`.
    fn label(&mut self, label: Name<'a>) -> R<Stmt<'a>> {
        if self.tok.kind != T::Dot {
            return Ok(Stmt::Label(label));
        }
        let start = label.span.start;
        match self.tok_text() {
            word @ (".branchtargets" | ".calltargets") => {
                let calls = word == ".calltargets";
                self.bump();
                let mut targets = vec![self.target(calls)?];
                while self.eat(T::Comma) {
                    targets.push(self.target(calls)?);
                }
                self.semicolon("this list", "`,` or `;`")?;
                Ok(Stmt::Targets { label, calls, targets, span: self.since(start) })
            }
            ".callprototype" => {
                self.bump();
                let results = if self.tok.kind == T::LParen { self.parameters()? } else { Vec::new() };
                if self.tok.kind != T::Ident || self.tok_text() != "_" {
                    return Err(self.fault("`_`, which stands for the name"));
                }
                self.bump();
                let params = if self.tok.kind == T::LParen { self.parameters()? } else { Vec::new() };
                let directives = self.directives()?;
                self.semicolon("this prototype", "a directive or `;`")?;
                let span = self.since(start);
                Ok(Stmt::Prototype(Box::new(Prototype { label, results, params, directives, span })))
            }
            _ => Ok(Stmt::Label(label)),
        }
    }

    /// A label or function; for labels also `N<5>`, which names `N0` to `N4`: the text of the name is then the text
    /// up to the `>`.
    fn target(&mut self, calls: bool) -> R<Name<'a>> {
        let name = self.name(if calls { "a function" } else { "a label" })?;
        if calls || !self.eat(T::Lt) {
            return Ok(name);
        }
        self.integer("a number of labels")?;
        self.expect(T::Gt, "`>`")?;
        let span = self.since(name.span.start);
        Ok(Name { text: self.slice(span.start, span.end), span })
    }

    fn directive(&mut self, stmts: &mut Vec<Stmt<'a>>) -> R<()> {
        let word = self.tok_text();
        match word {
            ".loc" => {
                let loc = self.loc()?;
                stmts.push(loc);
            }
            ".pragma" => {
                let pragma = self.pragma()?;
                stmts.push(Stmt::Pragma(pragma));
            }
            _ if is_space(word) => {
                let vars = self.variables(None)?;
                stmts.push(Stmt::Vars(Box::new(vars)));
            }
            ".branchtargets" | ".calltargets" | ".callprototype" => {
                return Err(self.misplaced(format!("`{word}` needs a label in front of it")));
            }
            _ if self.linkage().is_some() => {
                return Err(self.misplaced(format!("`{word}` cannot stand in a body")));
            }
            _ if self.at_module_word() => {
                self.misplaced(format!("`{word}` cannot stand in a body"));
                return self.item(&mut Vec::new());
            }
            _ => return Err(self.fault("one of an instruction, a label, a directive, `{`, `}`")),
        }
        Ok(())
    }

    /// `.loc 1 9 3, function_name label+16, inlined_at 1 21 3`.
    fn loc(&mut self) -> R<Stmt<'a>> {
        let start = self.tok.start;
        self.bump();
        let (file, _) = self.integer("the number of a file")?;
        let (line, _) = self.integer("a line")?;
        let (column, _) = self.integer("a column")?;
        let mut inlined = None;
        if self.eat(T::Comma) {
            self.keyword("function_name")?;
            let label = match self.tok.kind {
                T::Dot => self.word("a label")?.text,
                _ => self.name("a label")?.text,
            };
            let offset = if self.eat(T::Plus) { self.integer("an offset")?.0 } else { 0 };
            self.expect(T::Comma, "`,`")?;
            self.keyword("inlined_at")?;
            let (file, _) = self.integer("the number of a file")?;
            let (line, _) = self.integer("a line")?;
            let (column, _) = self.integer("a column")?;
            inlined = Some(Box::new(InlinedAt { label, offset, file, line, column }));
        }
        Ok(Stmt::Loc { file, line, column, inlined, span: self.since(start) })
    }

    fn keyword(&mut self, word: &str) -> R<()> {
        if self.tok.kind != T::Ident || self.tok_text() != word {
            return Err(self.fault(&format!("`{word}`")));
        }
        self.bump();
        Ok(())
    }

    /// Behind the opcode.
    fn instruction(&mut self, start: u32, guard: Option<Guard<'a>>, opcode: Name<'a>) -> R<Stmt<'a>> {
        if !opcode.text.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let message = format!("expected an instruction, found `{}`", short(opcode.text));
            self.push(Diagnostic::error(Code::Syntax, opcode.span, message));
            return Err(Fault);
        }
        self.words.clear();
        while self.tok.kind == T::Dot {
            let word = self.tok_name();
            self.words.push(word);
            self.bump();
        }
        let qualifiers = self.words.as_slice().to_vec();
        let (head_start, head_end, first) = (self.prev_start, self.prev_end, self.tok.start);
        let mut operands = Vec::new();
        if self.tok.kind != T::Semi && !self.statement_ends() {
            let call = opcode.text == "call";
            operands.reserve(4);
            loop {
                operands.push(self.operand(call)?);
                if self.tok.kind != T::Comma {
                    break;
                }
                self.bump();
            }
        }
        if operands.len() == 1 && self.tok.kind != T::Semi && self.slice(head_end, first).contains('\n') {
            // What looked like an operand is the opcode or label on the next line.
            self.lex.seek(first);
            self.tok = self.lex.next();
            (self.prev_start, self.prev_end) = (head_start, head_end);
            operands.clear();
        }
        let expected = match operands.last().map(|o| &o.kind) {
            Some(crate::ast::OperandKind::Expr(_)) => "one of an operator, `,`, `;`",
            Some(_) => "`,` or `;`",
            None => "one of a qualifier, an operand, `;`",
        };
        self.semicolon("this instruction", expected)?;
        Ok(Stmt::Inst(Inst { guard, opcode, qualifiers, operands, span: self.since(start) }))
    }

    /// Whether what follows an opcode can be no operand but the next statement, the semicolon being forgotten.
    fn statement_ends(&self) -> bool {
        matches!(self.tok.kind, T::RBrace | T::Eof | T::At)
    }
}
