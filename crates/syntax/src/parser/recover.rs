//! Where the next statement begins, after an error.

use handloom_diag::{Code, Diagnostic};

use super::{Fault, Parser, R};
use crate::lexer::T;

/// Words that begin something at module level and nothing in a body.
const MODULE_WORDS: &[&str] = &[
    ".version",
    ".target",
    ".address_size",
    ".entry",
    ".func",
    ".visible",
    ".extern",
    ".weak",
    ".common",
    ".file",
    ".section",
    ".alias",
];

/// Words that begin a declaration, at module level or in a body.
const SPACE_WORDS: &[&str] = &[".reg", ".global", ".const", ".shared", ".local", ".param", ".tex", ".sreg"];

pub(super) fn is_space(word: &str) -> bool {
    SPACE_WORDS.contains(&word)
}

impl<'a> Parser<'a> {
    /// Whether the present token is the first of its line.
    pub(super) fn on_new_line(&self) -> bool {
        self.slice(self.prev_end, self.tok.start).contains('\n')
    }

    fn is_block_brace(&self) -> bool {
        let rest = self.text.get(self.tok.end as usize..).unwrap_or("");
        rest.bytes().find(|b| !matches!(b, b' ' | b'\t' | b'\r')) == Some(b'\n')
    }

    pub(super) fn at_module_word(&self) -> bool {
        self.tok.kind == T::Dot && MODULE_WORDS.contains(&self.tok_text())
    }

    /// Whether a word at the start of a line begins something new.
    fn at_start_word(&self) -> bool {
        let word = self.tok_text();
        self.at_module_word() || is_space(word) || matches!(word, ".loc" | ".pragma")
    }

    /// Whether an opcode with a qualifier is here: `add.s32`, not `%tid.x`.
    fn at_opcode(&self) -> bool {
        let next = self.text.as_bytes().get(self.tok.end as usize);
        self.tok.kind == T::Ident
            && next == Some(&b'.')
            && self.tok_text().starts_with(|c: char| c.is_ascii_lowercase())
    }

    /// Takes the semicolon of a statement. If it was forgotten at the end of a line, says so and goes on as if it
    /// stood there, so that the next line is read.
    pub(super) fn semicolon(&mut self, what: &str, expected: &str) -> R<()> {
        if self.tok.kind == T::Semi {
            self.bump();
            return Ok(());
        }
        let ends = matches!(self.tok.kind, T::RBrace | T::Eof)
            || self.on_new_line() && matches!(self.tok.kind, T::Ident | T::At | T::Dot | T::LBrace);
        if !ends || self.tok.kind == T::Eof && self.lex.open_comment.is_some() {
            return Err(self.fault(expected));
        }
        let span = self.span(self.prev_end, self.prev_end);
        self.push(Diagnostic::error(Code::Syntax, span, format!("expected `;` at the end of {what}")));
        Ok(())
    }

    /// Skips the rest of the statement that began at `start`, of which the present token is the first bad one.
    pub(super) fn skip_statement(&mut self, start: u32) {
        let bad = self.tok.start;
        // Read again from the start, to know which braces of the statement itself are open.
        self.lex.seek(start);
        self.bump();
        let mut depth = 0u32;
        let mut first = true;
        loop {
            let behind = self.tok.start >= bad;
            match self.tok.kind {
                T::Eof => return,
                T::Semi if behind => {
                    self.bump();
                    return;
                }
                // A brace at the end of a line opens a block.
                T::LBrace if !first && behind && self.is_block_brace() => return,
                T::LBrace => depth += 1,
                T::RBrace if depth == 0 && !first => return,
                T::RBrace => depth = depth.saturating_sub(1),
                _ if first || self.tok.start <= bad || !self.on_new_line() => {}
                T::At => return,
                T::Dot if self.at_start_word() => return,
                T::Ident if self.at_opcode() || self.lex.clone().next().kind == T::Colon => return,
                _ => {}
            }
            self.bump();
            first = false;
        }
    }

    /// Whether something of the module level begins here, and nothing that might as well be in a body.
    pub(super) fn at_item(&self) -> bool {
        self.at_module_word()
            || matches!(self.tok_text(), ".global" | ".const")
            || matches!(self.tok.kind, T::Eof | T::Hash)
    }

    /// Skips the rest of a module-level item that began at `start`. If that was no directive, then we may be in the
    /// middle of a body, so statements are skipped too.
    pub(super) fn skip_item(&mut self, start: u32) {
        let bad = self.tok.start;
        let begins_with_word = self.text.as_bytes().get(start as usize) == Some(&b'.');
        let mut depth = 0u32;
        while self.tok.kind != T::Eof {
            let new_line = self.on_new_line() && self.tok.start > start;
            if self.tok.start >= bad && self.tok.start > start && self.at_module_word() && (new_line || depth == 0)
                || new_line && depth == 0 && self.at_item()
                || new_line && depth == 0 && begins_with_word && self.at_start_word()
            {
                return;
            }
            let kind = self.tok.kind;
            self.bump();
            match kind {
                T::LBrace => depth += 1,
                T::RBrace => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 && begins_with_word {
                        self.eat(T::Semi);
                        return;
                    }
                }
                T::Semi if depth == 0 && begins_with_word => return,
                _ => {}
            }
        }
    }

    /// Skips to the comma or parenthesis after a bad part of a list in parentheses, or to what ends a header.
    pub(super) fn skip_list_part(&mut self) {
        let mut depth = 0u32;
        loop {
            match self.tok.kind {
                T::Eof | T::Semi | T::LBrace | T::RBrace => return,
                T::Comma | T::RParen if depth == 0 => return,
                T::LParen => depth += 1,
                T::RParen => depth -= 1,
                // The comma between two parameters was forgotten.
                T::Dot if self.on_new_line() && self.at_start_word() => return,
                _ => {}
            }
            self.bump();
        }
    }

    /// Skips to the body, semicolon or successor of a function whose header is bad.
    pub(super) fn skip_header(&mut self) {
        loop {
            match self.tok.kind {
                T::Eof | T::Semi | T::LBrace | T::RBrace => return,
                T::Dot if self.on_new_line() && self.at_module_word() => return,
                _ => self.bump(),
            }
        }
    }

    /// Reports a word that cannot be where it is.
    pub(super) fn misplaced(&mut self, message: String) -> Fault {
        let span = self.span(self.tok.start, self.tok.end);
        self.push(Diagnostic::error(Code::Syntax, span, message));
        Fault
    }
}
