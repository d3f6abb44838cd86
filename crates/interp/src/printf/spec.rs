//! The conversions of a format string.

use std::ops::Range;

use super::float::Style;

/// A part of a format.
pub(super) enum Piece {
    /// Printed as it is: a part of the format.
    Text(Range<usize>),
    /// A conversion.
    Spec(Spec),
}

/// A field width or a precision.
#[derive(Clone, Copy)]
pub(super) enum Width {
    /// A number; 0 where none is written.
    Given(u16),
    /// `*`: an `int` argument.
    Argument,
}

impl Width {
    /// The number, once `*` has been replaced.
    pub(super) fn number(self) -> usize {
        match self {
            Width::Given(n) => usize::from(n),
            Width::Argument => 0,
        }
    }
}

/// A length modifier.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// `hh`.
    Char,
    /// `h`.
    Short,
    /// No length: an `int`.
    Int,
    /// `l`, `ll`, `j`, `z`, `t`, `L`, `q`: all 64 bits.
    Long,
}

impl Length {
    /// Bytes of an integer of this length as an argument.
    pub(super) fn bytes(self) -> usize {
        if self.bits() == 64 { 8 } else { 4 }
    }

    /// Bits of an integer of this length.
    pub(super) fn bits(self) -> u32 {
        match self {
            Length::Char => 8,
            Length::Short => 16,
            Length::Int => 32,
            Length::Long => 64,
        }
    }
}

/// What a conversion prints.
#[derive(Clone, Copy)]
pub(super) enum Conversion {
    Signed,
    Unsigned,
    Octal,
    Hex { upper: bool },
    Char,
    String,
    Pointer,
    Float(Style, bool),
}

/// A conversion with its flags.
#[derive(Clone, Copy)]
pub(super) struct Spec {
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) space: bool,
    pub(super) hash: bool,
    pub(super) zero: bool,
    pub(super) width: Width,
    pub(super) precision: Option<Width>,
    pub(super) length: Length,
    pub(super) conversion: Conversion,
}

impl Spec {
    /// Bytes of each of its arguments, in their order.
    pub(super) fn arguments(&self) -> impl Iterator<Item = usize> {
        let int = |width| matches!(width, Some(Width::Argument)).then_some(4);
        let value = match self.conversion {
            Conversion::Signed | Conversion::Unsigned | Conversion::Octal | Conversion::Hex { .. } => {
                self.length.bytes()
            }
            Conversion::Char => 4,
            Conversion::String | Conversion::Pointer | Conversion::Float(..) => 8,
        };
        [int(Some(self.width)), int(self.precision), Some(value)].into_iter().flatten()
    }
}

/// Splits a format into its parts; it ends at a NUL.
pub(super) fn parse(format: &[u8]) -> Vec<Piece> {
    let end = format.iter().position(|b| *b == 0).unwrap_or(format.len());
    let format = &format[..end];
    let mut at = 0;
    let mut pieces = Vec::new();
    while at < end {
        let rest = &format[at..];
        let text = rest.iter().position(|b| *b == b'%').unwrap_or(rest.len());
        if text > 0 {
            pieces.push(Piece::Text(at..at + text));
            at += text;
        } else if rest.starts_with(b"%%") {
            pieces.push(Piece::Text(at..at + 1));
            at += 2;
        } else {
            let mut reader = Reader { bytes: rest, at: 1 };
            match reader.spec() {
                Some(spec) => {
                    pieces.push(Piece::Spec(spec));
                    at += reader.at;
                }
                None => {
                    // Choice: what is no conversion is undefined in C; we print it.
                    pieces.push(Piece::Text(at..at + 1));
                    at += 1;
                }
            }
        }
    }
    pieces
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    fn eat(&mut self, word: &[u8]) -> bool {
        let found = self.bytes[self.at..].starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn width(&mut self) -> Width {
        if self.eat(b"*") {
            return Width::Argument;
        }
        let mut n = 0_u16;
        while self.peek().is_ascii_digit() {
            n = n.saturating_mul(10).saturating_add(u16::from(self.peek() - b'0'));
            self.at += 1;
        }
        Width::Given(n)
    }

    fn length(&mut self) -> Length {
        if self.eat(b"hh") {
            return Length::Char;
        }
        if self.eat(b"h") {
            return Length::Short;
        }
        let long = [b"ll".as_slice(), b"l", b"j", b"z", b"t", b"L", b"q"];
        if long.iter().any(|word| self.eat(word)) { Length::Long } else { Length::Int }
    }

    /// What follows a `%`.
    fn spec(&mut self) -> Option<Spec> {
        let (mut minus, mut plus, mut space, mut hash, mut zero) = (false, false, false, false, false);
        loop {
            match self.peek() {
                b'-' => minus = true,
                b'+' => plus = true,
                b' ' => space = true,
                b'#' => hash = true,
                b'0' => zero = true,
                _ => break,
            }
            self.at += 1;
        }
        let width = self.width();
        let precision = if self.eat(b".") { Some(self.width()) } else { None };
        let length = self.length();
        let conversion = match self.peek() {
            b'd' | b'i' => Conversion::Signed,
            b'u' => Conversion::Unsigned,
            b'o' => Conversion::Octal,
            b'x' => Conversion::Hex { upper: false },
            b'X' => Conversion::Hex { upper: true },
            b'c' => Conversion::Char,
            b's' => Conversion::String,
            b'p' => Conversion::Pointer,
            b'f' => Conversion::Float(Style::Fixed, false),
            b'F' => Conversion::Float(Style::Fixed, true),
            b'e' => Conversion::Float(Style::Exponent, false),
            b'E' => Conversion::Float(Style::Exponent, true),
            b'g' => Conversion::Float(Style::General, false),
            b'G' => Conversion::Float(Style::General, true),
            b'a' => Conversion::Float(Style::Hex, false),
            b'A' => Conversion::Float(Style::Hex, true),
            _ => return None,
        };
        self.at += 1;
        Some(Spec { minus, plus, space, hash, zero, width, precision, length, conversion })
    }
}
