//! Recursive descent over tokens with one token of look-ahead.
//!
//! A reading function returns [`Fault`] when it has reported an error; the statement loop then skips to where the next
//! statement begins. So each statement gives one error, and none hides the next one.
//!
//! Invariants: every loop takes a token or ends; a statement is read at most twice (once more to skip it); recursion
//! and the height of expression trees are bounded by [`MAX_DEPTH`].

mod decl;
mod expr;
mod function;
mod module;
mod operand;
mod recover;
mod stmt;

use handloom_diag::{Code, Diagnostic, FileId, Span};

use crate::ast::{Module, Name};
use crate::lexer::{Lexer, T, Token};
use crate::literal::short;

/// What parsing returns: a tree and all syntax errors, in the order of the text.
///
/// The tree lacks what could not be read, so later stages should not complain of undeclared names when `errors` is
/// not empty.
#[derive(Clone, Debug)]
pub struct Parse<'a> {
    /// The tree.
    pub module: Module<'a>,
    /// All syntax errors.
    pub errors: Vec<Diagnostic>,
}

/// How deep blocks, expressions and initialisers may be nested.
pub(crate) const MAX_DEPTH: u32 = 256;

/// Errors after this many are counted in one sentence, so that memory stays bounded on a file of noise.
const MAX_ERRORS: usize = 100_000;

/// An error was reported.
struct Fault;

type R<T> = Result<T, Fault>;

/// Reads a module. One NUL at the very end of the text is ignored.
pub fn parse<'a>(text: &'a str, file: FileId) -> Parse<'a> {
    let text = text.strip_suffix('\0').unwrap_or(text);
    if u32::try_from(text.len()).is_err() {
        let d = Diagnostic::error(Code::Syntax, Span::new(file, 0, 0), "a file of 4 GiB or more cannot be read");
        return Parse { module: Module::default(), errors: vec![d] };
    }
    let mut lex = Lexer::new(text);
    let tok = lex.next();
    let mut parser = Parser {
        text,
        file,
        lex,
        tok,
        prev_start: 0,
        prev_end: 0,
        depth: 0,
        initialiser: false,
        errors: Vec::new(),
        words: Vec::new(),
    };
    parser.report_nuls();
    let module = parser.module();
    parser.report_open_comment();
    let mut errors = parser.errors;
    errors.sort_by_key(|d| d.span().start);
    Parse { module, errors }
}

/// Text from bytes.
///
/// # Errors
/// The number of the first byte that is no UTF-8.
pub fn decode(bytes: &[u8]) -> Result<&str, usize> {
    std::str::from_utf8(bytes).map_err(|e| e.valid_up_to())
}

struct Parser<'a> {
    text: &'a str,
    file: FileId,
    lex: Lexer<'a>,
    /// The token that is looked at.
    tok: Token,
    /// Bytes of the token before it.
    prev_start: u32,
    prev_end: u32,
    /// Nesting of what is being read.
    depth: u32,
    /// Inside an initialiser, where `0xFF(sym)` may be written.
    initialiser: bool,
    errors: Vec<Diagnostic>,
    /// Room for the qualifiers of one instruction.
    words: Vec<Name<'a>>,
}

impl<'a> Parser<'a> {
    fn bump(&mut self) {
        (self.prev_start, self.prev_end) = (self.tok.start, self.tok.end);
        self.tok = self.lex.next();
    }

    fn slice(&self, start: u32, end: u32) -> &'a str {
        self.text.get(start as usize..end as usize).unwrap_or("")
    }

    fn tok_text(&self) -> &'a str {
        self.slice(self.tok.start, self.tok.end)
    }

    fn span(&self, start: u32, end: u32) -> Span {
        Span::new(self.file, start, end)
    }

    /// From `start` to the end of the last token that was taken.
    fn since(&self, start: u32) -> Span {
        self.span(start, self.prev_end)
    }

    fn tok_name(&self) -> Name<'a> {
        Name { text: self.tok_text(), span: self.span(self.tok.start, self.tok.end) }
    }

    fn at_word(&self, word: &str) -> bool {
        self.tok.kind == T::Dot && self.tok_text() == word
    }

    fn eat(&mut self, kind: T) -> bool {
        let found = self.tok.kind == kind;
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, kind: T, what: &str) -> R<()> {
        if self.eat(kind) { Ok(()) } else { Err(self.fault(what)) }
    }

    /// An identifier.
    fn name(&mut self, what: &str) -> R<Name<'a>> {
        if self.tok.kind != T::Ident {
            return Err(self.fault(what));
        }
        let name = self.tok_name();
        self.bump();
        Ok(name)
    }

    /// A word with its dot.
    fn word(&mut self, what: &str) -> R<Name<'a>> {
        if self.tok.kind != T::Dot {
            return Err(self.fault(what));
        }
        let name = self.tok_name();
        self.bump();
        Ok(name)
    }

    /// An integer literal.
    fn integer(&mut self, what: &str) -> R<(u64, Span)> {
        let start = self.tok.start;
        if self.tok.kind != T::Number {
            return Err(self.fault(what));
        }
        match self.literal()?.kind {
            crate::ast::ExprKind::Int { value, truncated: false, .. } => Ok((value, self.since(start))),
            crate::ast::ExprKind::Int { .. } => {
                let message = format!("`{}` does not fit 64 bits", short(self.slice(start, self.prev_end)));
                self.push(Diagnostic::error(Code::Literal, self.since(start), message));
                Err(Fault)
            }
            _ => {
                let found = short(self.slice(start, self.prev_end));
                let message = format!("expected {what}, found `{found}`");
                self.push(Diagnostic::error(Code::Syntax, self.since(start), message));
                Err(Fault)
            }
        }
    }

    /// The text of a string between its quotes.
    fn string(&mut self, what: &str) -> R<Name<'a>> {
        if self.tok.kind != T::Str {
            return Err(self.fault(what));
        }
        let (start, end) = (self.tok.start + 1, self.tok.end - 1);
        self.bump();
        Ok(Name { text: self.slice(start, end), span: self.span(start, end) })
    }

    /// Reports that the present token is not `what`.
    #[cold]
    fn fault(&mut self, what: &str) -> Fault {
        let span = self.span(self.tok.start, self.tok.end);
        let text = short(self.tok_text());
        let d = match self.tok.kind {
            // These are reported on their own; a NUL also cuts the word that it is in.
            T::Nul => return Fault,
            _ if self.touches_nul() => return Fault,
            T::Eof if self.lex.open_comment.is_some() => return Fault,
            T::Eof => Diagnostic::error(Code::Syntax, span, format!("expected {what}, found the end of the file")),
            T::OpenStr => {
                let span = self.span(self.tok.start, self.tok.start + 1);
                Diagnostic::error(Code::Literal, span, "a string without its closing `\"`")
                    .help("a string ends on the line that it begins on")
            }
            T::Hash => {
                let word = text.split_whitespace().next().unwrap_or("#").to_owned();
                Diagnostic::error(Code::Syntax, span, format!("the preprocessor directive `{word}` is not PTX"))
                    .help("run the file through `cpp` first; only line markers are skipped")
            }
            T::Bad if text.starts_with('\u{feff}') && span.start == 0 => {
                Diagnostic::error(Code::Encoding, span, "the text begins with a byte order mark")
                    .help("save the file as UTF-8 without one")
                    .section("Source Format")
            }
            T::Bad if !text.is_ascii() => {
                let shown = shown(&text);
                Diagnostic::error(Code::Encoding, span, format!("the character {shown} is not ASCII"))
                    .help("characters that are not ASCII can stand in comments and strings only")
                    .section("Source Format")
            }
            T::Bad if text.chars().all(char::is_control) => {
                Diagnostic::error(Code::Syntax, span, format!("expected {what}, found {text:?}"))
            }
            T::Str => Diagnostic::error(Code::Syntax, span, format!("expected {what}, found a string")),
            _ => Diagnostic::error(Code::Syntax, span, format!("expected {what}, found `{text}`")),
        };
        let before = self.slice(self.prev_start, self.prev_end);
        let touches = self.prev_end == self.tok.start && before.ends_with(|c: char| c.is_ascii_digit() || c == ')');
        let d = match self.tok.kind {
            T::Ident if touches && text.starts_with('%') => d.help("write a blank behind the operator `%`"),
            _ => d,
        };
        self.push(d);
        Fault
    }

    fn touches_nul(&self) -> bool {
        let bytes = self.text.as_bytes();
        let before = self.tok.start.checked_sub(1).and_then(|at| bytes.get(at as usize));
        before == Some(&0) || bytes.get(self.tok.end as usize) == Some(&0)
    }

    fn too_deep(&mut self, what: &str) -> Fault {
        let span = self.span(self.tok.start, self.tok.end);
        let message = format!("{what} is nested more than {MAX_DEPTH} levels deep");
        self.push(Diagnostic::error(Code::Syntax, span, message));
        Fault
    }

    #[cold]
    fn push(&mut self, d: Diagnostic) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(d);
        } else if self.errors.len() == MAX_ERRORS {
            let message = format!("more than {MAX_ERRORS} syntax errors: those behind this place are not shown");
            self.errors.push(Diagnostic::error(Code::Syntax, d.span(), message));
        }
    }

    fn report_nuls(&mut self) {
        let text = self.text;
        if !text.as_bytes().contains(&0) {
            return;
        }
        let mut end = 0;
        while let Some(found) = text[end..].find('\0') {
            let start = end + found;
            end = text[start..].find(|c| c != '\0').map_or(text.len(), |n| start + n);
            let d = Diagnostic::error(Code::Encoding, self.span(start as u32, end as u32), "NUL bytes in the text");
            self.push(d.help("one NUL may stand at the very end of the text"));
        }
    }

    fn report_open_comment(&mut self) {
        if let Some(start) = self.lex.open_comment {
            let span = self.span(start, start + 2);
            self.push(Diagnostic::error(Code::Syntax, span, "a comment without its closing `*/`"));
        }
    }
}

/// A character in a message: by its number if nobody would see it.
fn shown(text: &str) -> String {
    let unseen = |c: char| {
        c.is_whitespace() || c.is_control() || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
    };
    match text.chars().next() {
        Some(c) if unseen(c) => format!("U+{:04X}", u32::from(c)),
        _ => format!("`{text}`"),
    }
}
