//! Video instructions as the manual's pseudocode has them, in integers of 128 bits.
//!
//! Nothing here is shared with the implementation. An instruction is its words as they are written; a value is computed stage by stage, each
//! stage a function of the manual.

use std::fmt;

/// A scalar video instruction: its words and what stands at its operands `%d`, `%a`, `%b`, `%c`.
///
/// # PTX ISA
/// Scalar Video Instructions.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// `vadd` and its kin.
    pub op: &'static str,
    /// `.s32` or `.u32`; nothing for `vset`.
    pub dtype: &'static str,
    /// `.s32` or `.u32`.
    pub atype: &'static str,
    /// `.s32` or `.u32`.
    pub btype: &'static str,
    /// `.clamp`, `.wrap`, a comparison, `.po`, or nothing.
    pub mode: &'static str,
    /// `.sat` or nothing.
    pub sat: &'static str,
    /// `.add`, `.min`, `.max`, or nothing.
    pub secop: &'static str,
    /// `.shr7`, `.shr15`, or nothing.
    pub scale: &'static str,
    /// A selector or nothing.
    pub dsel: &'static str,
    /// A selector or nothing.
    pub asel: &'static str,
    /// A selector or nothing.
    pub bsel: &'static str,
    /// A literal instead of `%b`.
    pub literal: Option<u32>,
    /// Which operands have a sign before them.
    pub negate: [bool; 3],
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scalar { op, dtype, atype, btype, mode, sat, secop, scale, dsel, asel, bsel, literal, negate } = self;
        let sign = negate.map(|n| if n { "-" } else { "" });
        write!(f, "{op}{dtype}{atype}{btype}{mode}{sat}{scale}{secop} %d{dsel}, {}%a{asel}, ", sign[0])?;
        match literal {
            Some(value) => write!(f, "{value:#x}")?,
            None => write!(f, "{}%b{bsel}", sign[1])?,
        }
        let has_c = !dsel.is_empty() || !secop.is_empty() || *op == "vmad";
        if has_c { write!(f, ", {}%c;", sign[2]) } else { write!(f, ";") }
    }
}

fn is_signed(ty: &str) -> bool {
    ty == ".s32"
}

/// `partSelectSignExtend`.
fn part_select_sign_extend(word: u32, ty: &str, sel: &str) -> i128 {
    let bytes = word.to_le_bytes();
    let half = |i: usize| u16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]]);
    let (unsigned, bits) = match sel {
        ".b0" => (i128::from(bytes[0]), 8),
        ".b1" => (i128::from(bytes[1]), 8),
        ".b2" => (i128::from(bytes[2]), 8),
        ".b3" => (i128::from(bytes[3]), 8),
        ".h0" => (i128::from(half(0)), 16),
        ".h1" => (i128::from(half(1)), 16),
        "" => (i128::from(word), 32),
        other => panic!("no selector: {other}"),
    };
    if is_signed(ty) && unsigned >= 1 << (bits - 1) { unsigned - (1 << bits) } else { unsigned }
}

/// `optSaturate`.
fn opt_saturate(tmp: i128, sat: bool, sign: bool, dsel: &str) -> i128 {
    if !sat {
        return tmp;
    }
    match (dsel, sign) {
        (".b0" | ".b1" | ".b2" | ".b3", true) => tmp.clamp(-128, 127),
        (".b0" | ".b1" | ".b2" | ".b3", false) => tmp.clamp(0, 255),
        (".h0" | ".h1", true) => tmp.clamp(-32768, 32767),
        (".h0" | ".h1", false) => tmp.clamp(0, 65535),
        (_, true) => tmp.clamp(-2_147_483_648, 2_147_483_647),
        (_, false) => tmp.clamp(0, 4_294_967_295),
    }
}

/// `optSecOp`.
fn opt_sec_op(secop: &str, tmp: i128, c: i128) -> i128 {
    match secop {
        ".add" => tmp + c,
        ".min" => tmp.min(c),
        ".max" => tmp.max(c),
        _ => tmp,
    }
}

/// `optMerge`.
fn opt_merge(dsel: &str, tmp: i128, c: i128) -> i128 {
    match dsel {
        ".h0" => (tmp & 0xffff) | (0xffff_0000 & c),
        ".h1" => (tmp & 0xffff) << 16 | (0x0000_ffff & c),
        ".b0" => (tmp & 0xff) | (0xffff_ff00 & c),
        ".b1" => (tmp & 0xff) << 8 | (0xffff_00ff & c),
        ".b2" => (tmp & 0xff) << 16 | (0xff00_ffff & c),
        ".b3" => (tmp & 0xff) << 24 | (0x00ff_ffff & c),
        _ => tmp,
    }
}

fn compare(a: i128, b: i128, cmp: &str) -> i128 {
    i128::from(match cmp {
        ".eq" => a == b,
        ".ne" => a != b,
        ".lt" => a < b,
        ".le" => a <= b,
        ".gt" => a > b,
        ".ge" => a >= b,
        other => panic!("no comparison: {other}"),
    })
}

/// The lower 32 bits.
fn lower(value: i128) -> u32 {
    let bytes = value.to_le_bytes();
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

impl Scalar {
    /// The value of `%d`.
    pub fn value(&self, a: u32, b: u32, c: u32) -> u32 {
        let b = self.literal.unwrap_or(b);
        let ta = part_select_sign_extend(a, self.atype, self.asel);
        let tb = part_select_sign_extend(b, self.btype, self.bsel);
        let sat = !self.sat.is_empty();
        if self.op == "vmad" {
            return self.vmad(ta, tb, c, sat);
        }
        let amount = match self.mode {
            ".clamp" => tb.min(32),
            ".wrap" => tb & 0x1f,
            _ => 0,
        };
        let tmp = match self.op {
            "vadd" => ta + tb,
            "vsub" => ta - tb,
            "vabsdiff" => (ta - tb).abs(),
            "vmin" => ta.min(tb),
            "vmax" => ta.max(tb),
            "vshl" => ta * (1_i128 << amount),
            "vshr" => ta.div_euclid(1_i128 << amount),
            "vset" => compare(ta, tb, self.mode),
            other => panic!("no scalar video instruction: {other}"),
        };
        // c is signed as d is; both are unsigned where d has no type.
        let c = part_select_sign_extend(c, self.dtype, "");
        let tmp = opt_saturate(tmp, sat, is_signed(self.dtype), self.dsel);
        let d = opt_sec_op(self.secop, tmp, c);
        lower(opt_merge(self.dsel, d, c))
    }

    fn vmad(&self, ta: i128, tb: i128, c: u32, sat: bool) -> u32 {
        let [neg_a, neg_b, neg_c] = self.negate;
        let signed_final = is_signed(self.atype) || is_signed(self.btype) || (neg_a ^ neg_b) || neg_c;
        let mut tmp = ta * tb;
        let mut c = c;
        let mut lsb = 0;
        if self.mode == ".po" {
            lsb = 1;
        } else if neg_a ^ neg_b {
            tmp = !tmp;
            lsb = 1;
        } else if neg_c {
            c = !c;
            lsb = 1;
        }
        let c128 = if signed_final { i128::from(c.cast_signed()) } else { i128::from(c) };
        tmp = tmp + c128 + lsb;
        let result = match self.scale {
            ".shr7" => tmp >> 7,
            ".shr15" => tmp >> 15,
            _ => tmp,
        };
        lower(opt_saturate(result, sat, signed_final, ""))
    }
}

/// A SIMD video instruction: its words and what stands at its operands `%d`, `%a`, `%b`, `%c`.
///
/// # PTX ISA
/// SIMD Video Instructions.
#[derive(Clone, Debug)]
pub struct Simd {
    /// `vadd` and its kin, without the digit.
    pub op: &'static str,
    /// 2 or 4.
    pub n: usize,
    /// `.s32` or `.u32`; nothing for `vset`.
    pub dtype: &'static str,
    /// `.s32` or `.u32`.
    pub atype: &'static str,
    /// `.s32` or `.u32`.
    pub btype: &'static str,
    /// A comparison or nothing.
    pub cmp: &'static str,
    /// `.sat`, `.add`, or nothing.
    pub end: &'static str,
    /// A mask or nothing.
    pub mask: String,
    /// A selector or nothing.
    pub asel: String,
    /// A selector or nothing.
    pub bsel: String,
}

impl fmt::Display for Simd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Simd { op, n, dtype, atype, btype, cmp, end, mask, asel, bsel } = self;
        write!(f, "{op}{n}{dtype}{atype}{btype}{cmp}{end} %d{mask}, %a{asel}, %b{bsel}, %c;")
    }
}

impl Simd {
    /// `extractAndSignExt_2` and `_4`: element i is the one that the i-th digit from the right names.
    fn extract_and_sign_ext(&self, a: u32, b: u32, sel: &str, default: &str, ty: &str) -> Vec<i128> {
        let digits = if sel.is_empty() { default } else { &sel[2..] };
        let parts: &[&str] = if self.n == 2 { &[".h0", ".h1"] } else { &[".b0", ".b1", ".b2", ".b3"] };
        let element = |digit: char| {
            let i = digit.to_digit(8).map_or(0, |d| d as usize);
            part_select_sign_extend(if i < self.n { a } else { b }, ty, parts[i % self.n])
        };
        digits.chars().rev().map(element).collect()
    }

    /// The value of `%d`.
    pub fn value(&self, a: u32, b: u32, c: u32) -> u32 {
        let (a_default, b_default, all) = if self.n == 2 { ("10", "32", "10") } else { ("3210", "7654", "3210") };
        let va = self.extract_and_sign_ext(a, b, &self.asel, a_default, self.atype);
        let vb = self.extract_and_sign_ext(a, b, &self.bsel, b_default, self.btype);
        let digits = if self.mask.is_empty() { all } else { &self.mask[2..] };
        let dsel = if self.n == 2 { ".h0" } else { ".b0" };
        let bits = 32 / self.n;
        let mut sum = i128::from(c);
        let mut merged = c;
        for i in 0..self.n {
            let (x, y) = (va[i], vb[i]);
            let t = match self.op {
                "vadd" => x + y,
                "vsub" => x - y,
                "vavrg" if x + y >= 0 => (x + y + 1) >> 1,
                "vavrg" => (x + y) >> 1,
                "vabsdiff" => (x - y).abs(),
                "vmin" => x.min(y),
                "vmax" => x.max(y),
                "vset" => compare(x, y, self.cmp),
                other => panic!("no SIMD video instruction: {other}"),
            };
            let t = opt_saturate(t, self.end == ".sat", is_signed(self.dtype), dsel);
            if digits.contains(char::from(b'0' + i as u8)) {
                sum += t;
                let ones = u32::MAX >> (32 - bits) << (i * bits);
                merged = merged & !ones | (lower(t) << (i * bits)) & ones;
            }
        }
        if self.end == ".add" { lower(sum) } else { merged }
    }
}
