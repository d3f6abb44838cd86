//! What is at module level.

use handloom_diag::{Code, Diagnostic};

use super::recover::is_space;
use super::{Fault, Parser, R};
use crate::ast::{Item, Linkage, Module, Pragma};
use crate::lexer::T;
use crate::literal::short;

impl<'a> Parser<'a> {
    pub(super) fn module(&mut self) -> Module<'a> {
        let mut items = Vec::new();
        loop {
            let start = self.tok.start;
            match self.tok.kind {
                T::Eof => return Module { items },
                T::Dot => {
                    if let Err(Fault) = self.item(&mut items) {
                        self.skip_item(start);
                    }
                }
                T::At if self.text.as_bytes().get(start as usize + 1) == Some(&b'@') => self.skip_old_dwarf(),
                T::RBrace => {
                    self.misplaced("`}` closes nothing".to_owned());
                    while self.eat(T::RBrace) {}
                    if !self.at_item() {
                        self.skip_item(self.tok.start);
                    }
                }
                T::Semi | T::Hash => {
                    self.fault("a directive");
                    self.bump();
                }
                kind => {
                    self.fault("a directive");
                    if kind == T::Ident {
                        self.help("instructions and labels stand in the body of an `.entry` or a `.func`");
                    }
                    self.skip_item(start);
                }
            }
        }
    }

    /// Adds help to the error that was reported last.
    pub(super) fn help(&mut self, help: &str) {
        if let Some(d) = self.errors.last_mut().filter(|d| d.help.is_none()) {
            d.help = Some(help.to_owned());
        }
    }

    /// `@@DWARF ...`, the form before `.section`: one line.
    fn skip_old_dwarf(&mut self) {
        let rest = self.text.get(self.tok.start as usize..).unwrap_or("");
        let length = rest.find('\n').unwrap_or(rest.len());
        self.lex.seek(self.tok.start + length as u32);
        self.bump();
    }

    /// The linking directive that the present token is.
    pub(super) fn linkage(&self) -> Option<Linkage> {
        Some(match self.tok_text() {
            ".visible" => Linkage::Visible,
            ".extern" => Linkage::Extern,
            ".weak" => Linkage::Weak,
            ".common" => Linkage::Common,
            _ => return None,
        })
    }

    /// A directive with all that belongs to it. The present token is its word.
    pub(super) fn item(&mut self, items: &mut Vec<Item<'a>>) -> R<()> {
        let start = self.tok.start;
        let mut linkage = None;
        if let Some(kind) = self.linkage() {
            linkage = Some((kind, self.span(start, self.tok.end)));
            self.bump();
            let is_common = kind == Linkage::Common;
            let fits = self.tok.kind == T::Dot && (is_space(self.tok_text()) || self.at_function() && !is_common);
            if !fits {
                let what =
                    if is_common { "`.global`" } else { "one of `.entry`, `.func`, `.global`, `.const`, `.shared`" };
                return Err(self.fault(what));
            }
        }
        let word = self.tok_text();
        if self.at_function() {
            items.extend(self.function(linkage).map(|f| Item::Function(Box::new(f))));
            return Ok(());
        }
        if is_space(word) {
            items.push(Item::Vars(self.variables(linkage)?));
            return Ok(());
        }
        let item = match word {
            ".version" => self.version()?,
            ".target" => {
                self.bump();
                let mut words = vec![self.name("a target such as `sm_80`")?];
                while self.eat(T::Comma) {
                    words.push(self.name("a target or an option")?);
                }
                Item::Target { words, span: self.since(start) }
            }
            ".address_size" => {
                self.bump();
                let (bits, _) = self.integer("`32` or `64`")?;
                Item::AddressSize { bits, span: self.since(start) }
            }
            ".file" => self.file()?,
            ".section" => self.section()?,
            ".pragma" => Item::Pragma(self.pragma()?),
            ".alias" => {
                self.bump();
                let alias = self.name("the name of a function")?;
                self.expect(T::Comma, "`,`")?;
                let target = self.name("the name of a function")?;
                self.semicolon("`.alias`", "`;`")?;
                Item::Alias { alias, target, span: self.since(start) }
            }
            _ => return Err(self.fault("a directive that can stand at module level")),
        };
        items.push(item);
        Ok(())
    }

    pub(super) fn at_function(&self) -> bool {
        self.at_word(".entry") || self.at_word(".func")
    }

    fn version(&mut self) -> R<Item<'a>> {
        let start = self.tok.start;
        self.bump();
        let what = "a version such as `8.0`";
        if self.tok.kind != T::Number {
            return Err(self.fault(what));
        }
        let text = self.tok_text();
        let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit()).then(|| t.parse().ok()).flatten();
        let numbers = text.split_once('.').and_then(|(major, minor)| Some((digits(major)?, digits(minor)?)));
        let Some((major, minor)) = numbers else {
            let span = self.span(self.tok.start, self.tok.end);
            self.push(Diagnostic::error(Code::Literal, span, format!("expected {what}, found `{}`", short(text))));
            return Err(Fault);
        };
        self.bump();
        Ok(Item::Version { major, minor, span: self.since(start) })
    }

    /// `.file 1 "name"`, with time and size or without.
    fn file(&mut self) -> R<Item<'a>> {
        let start = self.tok.start;
        self.bump();
        let (index, _) = self.integer("the number of a file")?;
        let name = self.string("the name of a file in quotes")?.text;
        let mut rest = Vec::new();
        if self.eat(T::Comma) {
            self.integers(&mut rest)?;
        }
        Ok(Item::File { index, name, rest, span: self.since(start) })
    }

    /// `.section .debug_info { ... }`.
    fn section(&mut self) -> R<Item<'a>> {
        let start = self.tok.start;
        self.bump();
        let name = self.word("the name of a section")?;
        if self.tok.kind != T::LBrace {
            return Err(self.fault("`{`"));
        }
        let brace = self.span(self.tok.start, self.tok.end);
        let from = self.tok.end;
        self.bump();
        let mut good = true;
        let to = loop {
            match self.tok.kind {
                T::RBrace => break self.tok.start,
                T::Eof => {
                    if self.lex.open_comment.is_none() {
                        self.push(Diagnostic::error(Code::Syntax, brace, "this `{` is never closed"));
                    }
                    return Err(Fault);
                }
                // Of a section with an error the rest is passed over.
                _ if !good => self.bump(),
                _ => good = self.section_line().is_ok(),
            }
        };
        self.bump();
        if good { Ok(Item::Section { name, body: self.slice(from, to), span: self.since(start) }) } else { Err(Fault) }
    }

    /// A label, or `.b8 1, 2, 3` and its like.
    fn section_line(&mut self) -> R<()> {
        if self.tok.kind == T::Ident {
            self.bump();
            return self.expect(T::Colon, "`:`");
        }
        let bits = match self.tok_text() {
            ".b8" => 8,
            ".b16" => 16,
            ".b32" => 32,
            ".b64" => 64,
            _ => return Err(self.fault("one of `.b8`, `.b16`, `.b32`, `.b64`, a label, `}`")),
        };
        self.bump();
        loop {
            let is_name = matches!(self.tok.kind, T::Ident | T::Dot);
            if is_name && bits >= 32 {
                self.bump();
                if (self.eat(T::Plus) || self.eat(T::Minus)) && !self.eat(T::Ident) {
                    self.integer("an integer or a label")?;
                }
            } else {
                self.section_integer(bits)?;
            }
            if !self.eat(T::Comma) {
                return Ok(());
            }
        }
    }

    fn section_integer(&mut self, bits: u32) -> R<()> {
        let start = self.tok.start;
        let is_negative = self.eat(T::Minus);
        let (value, _) = self.integer("an integer")?;
        let limit = if is_negative { 1 << (bits - 1) } else { u64::MAX >> (64 - bits) };
        if value > limit {
            let message = format!("`{}` does not fit `.b{bits}`", short(self.slice(start, self.prev_end)));
            self.push(Diagnostic::error(Code::Literal, self.since(start), message));
        }
        Ok(())
    }

    /// `.pragma "a", "b";`
    pub(super) fn pragma(&mut self) -> R<Pragma<'a>> {
        let start = self.tok.start;
        self.bump();
        let mut strings = Vec::with_capacity(1);
        self.strings(&mut strings)?;
        self.semicolon("`.pragma`", "`,` or `;`")?;
        Ok(Pragma { strings, span: self.since(start) })
    }
}
