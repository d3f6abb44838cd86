//! Tokens, made one at a time on demand.
//!
//! Words that begin with a dot (`.b32`, `.2d`, `.L2::cache_hint`) are one token, because what may follow the dot
//! depends on nothing. Only the parser knows whether `.5` is half or a qualifier: it asks for the other reading with
//! [`Lexer::fraction`].

/// Kinds of tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum T {
    Eof,
    Ident,
    /// A word with its dot.
    Dot,
    Number,
    Str,
    LBrace,
    RBrace,
    LBracket,
    RBracket,
    LParen,
    RParen,
    Comma,
    Semi,
    Colon,
    At,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Shl,
    Shr,
    Lt,
    Gt,
    Le,
    Ge,
    EqEq,
    Ne,
    Eq,
    Not,
    Tilde,
    Amp,
    AmpAmp,
    Pipe,
    PipePipe,
    Caret,
    Question,
    /// A character that begins no token.
    Bad,
    /// NUL bytes; they are reported before parsing begins.
    Nul,
    /// A string without its end on the same line.
    OpenStr,
    /// A preprocessor line other than a line marker.
    Hash,
}

/// A token's kind and bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: T,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

const SPACE: u8 = 1;
const FIRST: u8 = 2;
const FOLLOW: u8 = 4;
const DIGIT: u8 = 8;

/// What a byte may be part of.
const CLASS: [u8; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        if matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0c) {
            table[i] = SPACE;
        } else if b.is_ascii_digit() {
            table[i] = FOLLOW | DIGIT;
        } else if b.is_ascii_alphabetic() || b == b'_' || b == b'$' {
            table[i] = FIRST | FOLLOW;
        }
        i += 1;
    }
    table
};

fn is(byte: u8, class: u8) -> bool {
    CLASS[byte as usize] & class != 0
}

/// A place in the text from which tokens are made. A copy of it looks ahead.
#[derive(Clone, Copy)]
pub(crate) struct Lexer<'a> {
    bytes: &'a [u8],
    pos: usize,
    /// Start of a comment that has no end.
    pub(crate) open_comment: Option<u32>,
}

impl<'a> Lexer<'a> {
    /// From the first byte of `text`, which is shorter than 4 GiB.
    pub(crate) fn new(text: &'a str) -> Self {
        Lexer { bytes: text.as_bytes(), pos: 0, open_comment: None }
    }

    /// The same text from another byte.
    pub(crate) fn seek(&mut self, byte: u32) {
        self.pos = byte as usize;
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.pos + ahead).copied().unwrap_or(0)
    }

    fn skip(&mut self, class: u8) {
        let rest = self.bytes.get(self.pos..).unwrap_or(&[]);
        self.pos += rest.iter().position(|&b| !is(b, class)).unwrap_or(rest.len());
    }

    fn skip_line(&mut self) {
        let rest = self.bytes.get(self.pos..).unwrap_or(&[]);
        self.pos += rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
    }

    /// Blanks, comments and line markers.
    fn skip_trivia(&mut self) {
        loop {
            self.skip(SPACE);
            match (self.peek(0), self.peek(1)) {
                (b'/', b'/') => self.skip_line(),
                (b'/', b'*') => {
                    let rest = &self.bytes[self.pos + 2..];
                    match rest.windows(2).position(|w| w == b"*/") {
                        Some(at) => self.pos += at + 4,
                        None => {
                            self.open_comment = Some(self.pos as u32);
                            self.pos = self.bytes.len();
                        }
                    }
                }
                (b'#', _) if self.is_line_marker() => self.skip_line(),
                _ => return,
            }
        }
    }

    fn begins_line(&self) -> bool {
        let before = self.bytes[..self.pos].iter().rev();
        before.copied().find(|&b| b == b'\n' || !is(b, SPACE)).is_none_or(|b| b == b'\n')
    }

    /// `# 12 "file"` or `#line 12 "file"`.
    fn is_line_marker(&self) -> bool {
        let rest = self.bytes[self.pos + 1..].trim_ascii_start();
        let number = rest.strip_prefix(b"line").map_or(rest, |r| r.trim_ascii_start());
        number.first().is_some_and(u8::is_ascii_digit) && self.begins_line()
    }

    /// The next token; at the end of the text always [`T::Eof`].
    pub(crate) fn next(&mut self) -> Token {
        self.skip_trivia();
        let start = self.pos;
        let Some(&first) = self.bytes.get(start) else {
            return Token { kind: T::Eof, start: start as u32, end: start as u32 };
        };
        self.pos += 1;
        let kind = if is(first, FIRST) {
            self.skip(FOLLOW);
            if first == b'$' && self.pos == start + 1 { T::Bad } else { T::Ident }
        } else if is(first, DIGIT) {
            self.number(first);
            T::Number
        } else {
            self.other(first)
        };
        Token { kind, start: start as u32, end: self.pos as u32 }
    }

    fn other(&mut self, first: u8) -> T {
        match first {
            b'%' if is(self.peek(0), FOLLOW) => {
                self.skip(FOLLOW);
                T::Ident
            }
            b'.' => self.dot_word(),
            b',' => T::Comma,
            b';' => T::Semi,
            b'[' => T::LBracket,
            b']' => T::RBracket,
            b'{' => T::LBrace,
            b'}' => T::RBrace,
            b'(' => T::LParen,
            b')' => T::RParen,
            b':' => T::Colon,
            b'@' => T::At,
            b'+' => T::Plus,
            b'-' => T::Minus,
            b'*' => T::Star,
            b'/' => T::Slash,
            b'%' => T::Percent,
            b'~' => T::Tilde,
            b'^' => T::Caret,
            b'?' => T::Question,
            b'<' if self.eat(b'<') => T::Shl,
            b'<' if self.eat(b'=') => T::Le,
            b'<' => T::Lt,
            b'>' if self.eat(b'>') => T::Shr,
            b'>' if self.eat(b'=') => T::Ge,
            b'>' => T::Gt,
            b'=' if self.eat(b'=') => T::EqEq,
            b'=' => T::Eq,
            b'!' if self.eat(b'=') => T::Ne,
            b'!' => T::Not,
            b'&' if self.eat(b'&') => T::AmpAmp,
            b'&' => T::Amp,
            b'|' if self.eat(b'|') => T::PipePipe,
            b'|' => T::Pipe,
            b'"' => self.string(),
            b'#' => {
                self.pos -= 1;
                let begins_line = self.begins_line();
                self.pos += 1;
                if begins_line {
                    self.skip_line();
                    T::Hash
                } else {
                    T::Bad
                }
            }
            0 => {
                while self.pos < self.bytes.len() && self.peek(0) == 0 {
                    self.pos += 1;
                }
                T::Nul
            }
            _ => {
                // The whole of a character, so that places never lie inside one.
                while self.peek(0) & 0xc0 == 0x80 {
                    self.pos += 1;
                }
                T::Bad
            }
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.bytes.get(self.pos) == Some(&byte);
        self.pos += usize::from(found);
        found
    }

    /// After the dot: a word, and further words after `::`. One form of the manual has a single colon there
    /// (`.collector::b2:use`), which can be no label because no label has a `::`.
    fn dot_word(&mut self) -> T {
        if !is(self.peek(0), FOLLOW) {
            return T::Bad;
        }
        self.skip(FOLLOW);
        while self.peek(0) == b':' && self.peek(1) == b':' && is(self.peek(2), FOLLOW) {
            self.pos += 2;
            self.skip(FOLLOW);
            if self.peek(0) == b':' && is(self.peek(1), FIRST) {
                self.pos += 1;
                self.skip(FOLLOW);
            }
        }
        T::Dot
    }

    /// Behind the first digit. Takes all that can be meant as one literal; whether it is one is decided later.
    fn number(&mut self, first: u8) {
        if first == b'0' && matches!(self.peek(0), b'x' | b'X' | b'b' | b'B' | b'f' | b'F' | b'd' | b'D') {
            self.skip(FOLLOW);
            return;
        }
        self.skip(DIGIT);
        if self.eat(b'.') {
            self.skip(DIGIT);
        }
        self.exponent();
    }

    fn exponent(&mut self) {
        if matches!(self.peek(0), b'e' | b'E') {
            self.pos += 1;
            if matches!(self.peek(0), b'+' | b'-') && is(self.peek(1), DIGIT) {
                self.pos += 1;
            }
        }
        self.skip(FOLLOW);
    }

    /// Reads the token that was a [`T::Dot`] again, as a number without digits before the point.
    pub(crate) fn fraction(&mut self, dot: Token) -> Token {
        self.pos = dot.start as usize + 1;
        self.skip(DIGIT);
        self.exponent();
        Token { kind: T::Number, start: dot.start, end: self.pos as u32 }
    }

    fn string(&mut self) -> T {
        let rest = &self.bytes[self.pos..];
        let length = rest.iter().position(|&b| b == b'"' || b == b'\n').unwrap_or(rest.len());
        self.pos += length;
        if self.eat(b'"') { T::Str } else { T::OpenStr }
    }
}
