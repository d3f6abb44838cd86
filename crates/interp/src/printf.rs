//! `vprintf`: C formatting over an argument buffer.
//!
//! The buffer holds the arguments as a call with variable arguments passes them: `int` and smaller in 4 bytes, `long`,
//! `long long`, pointers and `double` in 8, each at its natural alignment. The text is what the host's C library makes
//! of the same call, as on the device, where the host formats. A conversion that C does not have is printed as it
//! stands.

mod float;
mod spec;

use spec::{Conversion, Length, Piece, Spec, Width};

/// The text of a call, and how many arguments it used.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Printed {
    /// The text.
    pub text: Vec<u8>,
    /// Arguments used, those of `*` included: the result of the device's `vprintf`.
    pub arguments: u32,
}

/// Formats as C's `printf`; bytes after the end of `args` count as zero.
///
/// `read_string` returns the bytes of a string argument up to its NUL, by address. It is not called for a null pointer.
pub fn format_printf(format: &[u8], args: &[u8], read_string: &mut dyn FnMut(u64) -> Vec<u8>) -> Vec<u8> {
    print(format, args, read_string).text
}

/// As [`format_printf`], with the number of arguments.
pub fn print(format: &[u8], args: &[u8], read_string: &mut dyn FnMut(u64) -> Vec<u8>) -> Printed {
    let mut args = Args { bytes: args, at: 0, taken: 0, places: Vec::new() };
    let mut text = Vec::new();
    for piece in spec::parse(format) {
        match piece {
            Piece::Text(t) => text.extend_from_slice(t),
            Piece::Spec(spec) => convert(&spec, &mut args, read_string, &mut text),
        }
    }
    Printed { text, arguments: args.taken }
}

/// Bytes of the argument buffer that a format uses.
pub fn argument_bytes(format: &[u8]) -> usize {
    walked(format).at
}

/// Where the arguments of a format lie in the argument buffer: offsets and bytes.
pub fn places(format: &[u8]) -> Vec<(u64, u32)> {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    walked(format).places.into_iter().map(|(at, size)| (number(at).into(), number(size))).collect()
}

/// The argument buffer behind all arguments of a format.
fn walked(format: &[u8]) -> Args<'static> {
    let mut args = Args { bytes: &[], at: 0, taken: 0, places: Vec::new() };
    for piece in spec::parse(format) {
        if let Piece::Spec(spec) = piece {
            convert(&spec, &mut args, &mut |_| Vec::new(), &mut Vec::new());
        }
    }
    args
}

/// Walks the argument buffer.
struct Args<'a> {
    bytes: &'a [u8],
    at: usize,
    taken: u32,
    /// Where each of those lies, and how many bytes it has.
    places: Vec<(usize, usize)>,
}

impl Args<'_> {
    fn take(&mut self, size: usize) -> u64 {
        self.at = self.at.next_multiple_of(size);
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(self.bytes.iter().skip(self.at).take(size)) {
            *to = *from;
        }
        self.places.push((self.at, size));
        self.at += size;
        self.taken += 1;
        u64::from_le_bytes(word)
    }

    /// An `int`, sign-extended.
    fn int(&mut self) -> i64 {
        sign_extend(self.take(4), 32)
    }

    fn integer(&mut self, length: Length) -> u64 {
        self.take(if length.bits() == 64 { 8 } else { 4 })
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
            let digits = value.unsigned_abs().to_string();
            pad_integer(&spec, sign_text(&spec, value < 0), &at_least(digits, precision, value == 0), out);
        }
        Conversion::Unsigned => {
            let value = zero_extend(args.integer(spec.length), spec.length.bits());
            pad_integer(&spec, "", &at_least(value.to_string(), precision, value == 0), out);
        }
        Conversion::Octal => {
            let value = zero_extend(args.integer(spec.length), spec.length.bits());
            let mut digits = at_least(format!("{value:o}"), precision, value == 0);
            if spec.hash && !digits.starts_with('0') {
                digits.insert(0, '0');
            }
            pad_integer(&spec, "", &digits, out);
        }
        Conversion::Hex { upper } => {
            let value = zero_extend(args.integer(spec.length), spec.length.bits());
            let digits = if upper { format!("{value:X}") } else { format!("{value:x}") };
            let prefix = match (spec.hash && value != 0, upper) {
                (false, _) => "",
                (true, false) => "0x",
                (true, true) => "0X",
            };
            pad_integer(&spec, prefix, &at_least(digits, precision, value == 0), out);
        }
        Conversion::Char => {
            let [byte, ..] = args.take(4).to_le_bytes();
            pad(&spec, "", &[byte], false, out);
        }
        Conversion::String => {
            let addr = args.take(8);
            let mut bytes = if addr == 0 { null_string(precision) } else { read_string(addr) };
            bytes.truncate(precision.unwrap_or(usize::MAX));
            pad(&spec, "", &bytes, false, out);
        }
        Conversion::Pointer => match args.take(8) {
            0 => pad(&spec, "", b"(nil)", false, out),
            addr => {
                let prefix = format!("{}0x", sign_text(&spec, false));
                pad_integer(&spec, &prefix, &at_least(format!("{addr:x}"), precision, false), out);
            }
        },
        Conversion::Float(style, upper) => {
            let value = f64::from_bits(args.take(8));
            let text = float::text(value.abs(), style, precision, spec.hash);
            let text = if upper { text.to_ascii_uppercase() } else { text };
            let sign = sign_text(&spec, value.is_sign_negative());
            if !value.is_finite() {
                pad(&spec, sign, text.as_bytes(), false, out);
            } else if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
                let prefix = format!("{sign}{}", &text[..2]);
                pad(&spec, &prefix, digits.as_bytes(), spec.zero, out);
            } else {
                pad(&spec, sign, text.as_bytes(), spec.zero, out);
            }
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

/// Digits with zeros in front up to the precision; zero with precision zero has none.
fn at_least(digits: String, precision: Option<usize>, is_zero: bool) -> String {
    match precision {
        Some(0) if is_zero => String::new(),
        Some(p) => format!("{}{digits}", "0".repeat(p.saturating_sub(digits.len()))),
        None => digits,
    }
}

/// Pads an integer; a precision switches the flag `0` off.
fn pad_integer(spec: &Spec, prefix: &str, digits: &str, out: &mut Vec<u8>) {
    pad(spec, prefix, digits.as_bytes(), spec.zero && spec.precision.is_none(), out);
}

/// Puts prefix and body into the field.
fn pad(spec: &Spec, prefix: &str, body: &[u8], zeros: bool, out: &mut Vec<u8>) {
    let fill = spec.width.number().saturating_sub(prefix.len() + body.len());
    let spread = |out: &mut Vec<u8>, byte: u8| out.extend(std::iter::repeat_n(byte, fill));
    if !spec.minus && !zeros {
        spread(out, b' ');
    }
    out.extend_from_slice(prefix.as_bytes());
    if !spec.minus && zeros {
        spread(out, b'0');
    }
    out.extend_from_slice(body);
    if spec.minus {
        spread(out, b' ');
    }
}
