//! `vprintf`: C formatting over an argument buffer.
//!
//! The buffer holds the arguments as a call with variable arguments passes them: `int` and smaller in 4 bytes, `long`,
//! `long long`, pointers and `double` in 8, each at its natural alignment. The text is what the host's C library makes
//! of the same call, as on the device, where the host formats. A conversion that C does not have is printed as it
//! stands.

mod digits;
mod float;
mod spec;

use digits::Digits;
use spec::{Conversion, Length, Piece, Spec, Width};

/// The text of a call, and how many arguments it used.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Printed {
    /// The text.
    pub text: Vec<u8>,
    /// Arguments used, those of `*` included: the result of the device's `vprintf`.
    pub arguments: u32,
}

/// A format whose parts are known.
pub struct Format {
    text: Vec<u8>,
    pieces: Vec<Piece>,
}

impl Format {
    /// Splits a format, which ends at a NUL.
    pub fn new(text: Vec<u8>) -> Format {
        Format { pieces: spec::parse(&text), text }
    }

    /// Where its arguments lie in the argument buffer: offsets and bytes.
    fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        let specs = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Spec(spec) => Some(spec),
            Piece::Text(_) => None,
        });
        specs.flat_map(Spec::arguments).scan(0_usize, |end, bytes| {
            let at = end.next_multiple_of(bytes);
            *end = at + bytes;
            Some((at, bytes))
        })
    }

    /// Bytes of the argument buffer that it uses.
    pub fn argument_bytes(&self) -> usize {
        self.places().last().map_or(0, |(at, bytes)| at + bytes)
    }

    /// Puts the text of a call behind `to`, and returns how many arguments it used; bytes after the end of `args` count as zero.
    ///
    /// `read_string` returns the bytes of a string argument up to its NUL, by address. It is not called for a null pointer.
    pub fn print(&self, args: &[u8], read_string: &mut dyn FnMut(u64) -> Vec<u8>, to: &mut Vec<u8>) -> u32 {
        let mut args = Args { bytes: args, at: 0, taken: 0 };
        for piece in &self.pieces {
            match piece {
                Piece::Text(part) => to.extend_from_slice(&self.text[part.clone()]),
                Piece::Spec(spec) => convert(spec, &mut args, read_string, to),
            }
        }
        args.taken
    }
}

/// Formats as C's `printf`; bytes after the end of `args` count as zero.
///
/// `read_string` is as for [`Format::print`].
pub fn format_printf(format: &[u8], args: &[u8], read_string: &mut dyn FnMut(u64) -> Vec<u8>) -> Vec<u8> {
    print(format, args, read_string).text
}

/// As [`format_printf`], with the number of arguments.
pub fn print(format: &[u8], args: &[u8], read_string: &mut dyn FnMut(u64) -> Vec<u8>) -> Printed {
    let mut text = Vec::new();
    let arguments = Format::new(format.to_vec()).print(args, read_string, &mut text);
    Printed { text, arguments }
}

/// Bytes of the argument buffer that a format uses.
pub fn argument_bytes(format: &[u8]) -> usize {
    Format::new(format.to_vec()).argument_bytes()
}

/// Where the arguments of a format lie in the argument buffer: offsets and bytes.
pub fn places(format: &[u8]) -> Vec<(u64, u32)> {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Format::new(format.to_vec()).places().map(|(at, size)| (number(at).into(), number(size))).collect()
}

/// Walks the argument buffer.
struct Args<'a> {
    bytes: &'a [u8],
    at: usize,
    taken: u32,
}

impl Args<'_> {
    fn take(&mut self, size: usize) -> u64 {
        self.at = self.at.next_multiple_of(size);
        let mut word = [0; 8];
        match self.bytes.get(self.at..self.at + size) {
            Some(bytes) => word[..size].copy_from_slice(bytes),
            None => word.iter_mut().zip(self.bytes.iter().skip(self.at)).for_each(|(to, from)| *to = *from),
        }
        self.at += size;
        self.taken += 1;
        u64::from_le_bytes(word)
    }

    /// An `int`, sign-extended.
    fn int(&mut self) -> i64 {
        sign_extend(self.take(4), 32)
    }

    fn integer(&mut self, length: Length) -> u64 {
        self.take(length.bytes())
    }
}

/// The low `bits` as a signed number.
fn sign_extend(value: u64, bits: u32) -> i64 {
    (value << (64 - bits)).cast_signed() >> (64 - bits)
}

/// The low `bits` as an unsigned number.
fn zero_extend(value: u64, bits: u32) -> u64 {
    value << (64 - bits) >> (64 - bits)
}

/// Formats one conversion.
fn convert(spec: &Spec, args: &mut Args<'_>, read_string: &mut dyn FnMut(u64) -> Vec<u8>, out: &mut Vec<u8>) {
    let mut spec = *spec;
    if let Width::Argument = spec.width {
        let width = args.int();
        spec.minus |= width < 0;
        spec.width = Width::Given(clamp(width.unsigned_abs()));
    }
    if let Some(Width::Argument) = spec.precision {
        // A negative precision counts as none.
        spec.precision = u64::try_from(args.int()).ok().map(|p| Width::Given(clamp(p)));
    }
    let precision = spec.precision.map(Width::number);
    match spec.conversion {
        Conversion::Signed => {
            let value = sign_extend(args.integer(spec.length), spec.length.bits());
            integer(&spec, sign_text(&spec, value < 0), &Digits::new(value.unsigned_abs(), 10), precision, out);
        }
        Conversion::Unsigned => {
            let value = zero_extend(args.integer(spec.length), spec.length.bits());
            integer(&spec, "", &Digits::new(value, 10), precision, out);
        }
        Conversion::Octal => {
            let value = zero_extend(args.integer(spec.length), spec.length.bits());
            integer(&spec, "", &Digits::new(value, 8), precision, out);
        }
        Conversion::Hex { upper } => {
            let value = zero_extend(args.integer(spec.length), spec.length.bits());
            let digits = Digits::new(value, 16);
            let prefix = match (spec.hash && value != 0, upper) {
                (false, _) => "",
                (true, false) => "0x",
                (true, true) => "0X",
            };
            integer(&spec, prefix, &if upper { digits.upper() } else { digits }, precision, out);
        }
        Conversion::Char => {
            let [byte, ..] = args.take(4).to_le_bytes();
            pad(&spec, &[byte], out);
        }
        Conversion::String => {
            let addr = args.take(8);
            let mut bytes = if addr == 0 { null_string(precision) } else { read_string(addr) };
            bytes.truncate(precision.unwrap_or(usize::MAX));
            pad(&spec, &bytes, out);
        }
        Conversion::Pointer => match args.take(8) {
            0 => pad(&spec, b"(nil)", out),
            addr => {
                let prefix = match sign_text(&spec, false) {
                    "+" => "+0x",
                    " " => " 0x",
                    _ => "0x",
                };
                integer(&spec, prefix, &Digits::new(addr, 16), precision, out);
            }
        },
        Conversion::Float(style, upper) => {
            let value = f64::from_bits(args.take(8));
            let sign = sign_text(&spec, value.is_sign_negative());
            let start = out.len();
            out.extend_from_slice(sign.as_bytes());
            float::write(value.abs(), style, precision, spec.hash, out);
            let text = &mut out[start + sign.len()..];
            let prefix = if text.starts_with(b"0x") { 2 } else { 0 };
            if upper {
                text.make_ascii_uppercase();
            }
            widen(&spec, start, sign.len() + prefix, spec.zero && value.is_finite(), out);
        }
    }
}

/// A width or precision; no text is longer than 64 KiB for it.
fn clamp(n: u64) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

/// The host's C library leaves the text out where it would have to cut it.
fn null_string(precision: Option<usize>) -> Vec<u8> {
    let text = b"(null)".to_vec();
    if precision.is_some_and(|p| p < text.len()) { Vec::new() } else { text }
}

fn sign_text(spec: &Spec, negative: bool) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, _, _) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        (false, false, false) => "",
    }
}

/// Writes an integer with at least as many digits as the precision, which switches the flag `0` off; zero with precision zero has none.
fn integer(spec: &Spec, prefix: &str, digits: &Digits, precision: Option<usize>, out: &mut Vec<u8>) {
    let digits = match digits.as_bytes() {
        b"0" if precision == Some(0) => b"",
        digits => digits,
    };
    let mut zeros = precision.unwrap_or(0).saturating_sub(digits.len());
    if matches!(spec.conversion, Conversion::Octal) && spec.hash && zeros == 0 && !digits.starts_with(b"0") {
        zeros = 1;
    }
    let start = out.len();
    out.extend_from_slice(prefix.as_bytes());
    out.extend(std::iter::repeat_n(b'0', zeros));
    out.extend_from_slice(digits);
    widen(spec, start, prefix.len(), spec.zero && spec.precision.is_none(), out);
}

/// Puts a text into the field.
fn pad(spec: &Spec, text: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(text);
    widen(spec, start, 0, false, out);
}

/// Fills what was written from `start` on up to the width of the field: with spaces on one side, or with zeros after the prefix.
fn widen(spec: &Spec, start: usize, prefix: usize, zeros: bool, out: &mut Vec<u8>) {
    let fill = spec.width.number().saturating_sub(out.len() - start);
    if fill == 0 {
        return;
    }
    let (at, byte) = match (spec.minus, zeros) {
        (true, _) => (out.len(), b' '),
        (false, true) => (start + prefix, b'0'),
        (false, false) => (start, b' '),
    };
    out.splice(at..at, std::iter::repeat_n(byte, fill));
}
