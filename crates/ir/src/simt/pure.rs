//! The table of value ops: a row says all that is known of an op but its arithmetic, which is its arm in [`crate::num::eval`].
//!
//! A row is the name with its parameters, the types of the sources and of the result (two ops have a second one), the text form, and the
//! facts that passes and the code generator ask for:
//!
//! ```text
//! MulHi(int: Int): [int.ty, int.ty] => int.ty; "mul_hi.{int}"; [commutes];
//! ```
//!
//! The enum [`Pure`], its methods and its `Display` come from the rows.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::types::Ty::{B32, P};
use crate::types::*;

use super::modes::{Cvt, Exactness, FMode};
use super::sources::Types;
use super::video::{Video, VideoEnd, VideoSimd, Vmad};
use super::words::{flag, low_or_high, lower_case, sign, wrap_or_clamp};

/// What is known of a value op beside its types. An op that says nothing has none of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// The first two sources may be exchanged.
    pub commutes: bool,
    /// It costs much where its result is not needed after all: not computed before it is known to be.
    pub costly: bool,
    /// Where the host computes it, a NaN in the result need not be the canonical one.
    pub is_loose: bool,
    /// It may read any NaN for a canonical one: its result is the same, or is loose itself.
    pub takes_loose: bool,
}

impl Facts {
    fn commutes(self) -> Facts {
        Facts { commutes: true, ..self }
    }

    fn costly(self) -> Facts {
        Facts { costly: true, ..self }
    }

    /// Arithmetic that hosts have at `.f32` and `.f64`, if it is as exact as theirs.
    fn by_host(self, mode: FMode, is_exact: bool) -> Facts {
        Facts { is_loose: is_exact && mode.is_plain(), takes_loose: mode.ty.is_of_host(), ..self }
    }

    fn takes_loose(self, holds: bool) -> Facts {
        Facts { takes_loose: holds, ..self }
    }
}

macro_rules! value_ops {
    ($(
        $(#[$about:meta])*
        $name:ident $(($($p:ident: $pt:ty),*))? $({ $($(#[$f_about:meta])* $f:ident: $ft:ty,)* })?:
        $sources:expr => $result:expr $(, $second:expr)?;
        $text:literal $(, $part:expr)*;
        $([$($fact:ident $(($($holds:expr),*))?),+];)?
    )*) => {
        /// Ops that compute values from values. Sources and results are bits; each value is zero above its width.
        ///
        /// The comment names sources and results. Shift amounts are `B32`. `P` is 0 or 1.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Pure {
            $($(#[$about])* $name $(($($pt),*))? $({ $($(#[$f_about])* $f: $ft),* })?,)*
        }

        #[allow(unused_variables, reason = "a row names all its parameters, each column uses some")]
        impl Pure {
            /// Types of the sources, in order.
            pub fn sources(self) -> Types {
                match self { $(Pure::$name $(($($p),*))? $({ $($f),* })? => $sources.into(),)* }
            }

            /// Type of the result, and of the second one of the two ops that have it.
            pub fn results(self) -> (Ty, Option<Ty>) {
                match self {
                    $(Pure::$name $(($($p),*))? $({ $($f),* })? => ($result, None::<Ty>$(.or(Some($second)))?),)*
                }
            }

            /// What is known of it beside its types.
            pub fn facts(self) -> Facts {
                match self {
                    $(Pure::$name $(($($p),*))? $({ $($f),* })? => {
                        Facts::default()$($(.$fact($($($holds),*)?))+)?
                    })*
                }
            }
        }

        /// The text form: the name with types and modifiers.
        #[allow(unused_variables, reason = "a row names all its parameters, each column uses some")]
        impl fmt::Display for Pure {
            fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self { $(Pure::$name $(($($p),*))? $({ $($f),* })? => write!(to, $text $(, $part)*),)* }
            }
        }
    };
}

value_ops! {
    /// a -> a
    Mov(ty: Ty): [ty] => ty; "mov.{ty}";
    /// a, b -> a + b, wrapping
    Add(ty: Ty): [ty, ty] => ty; "add.{ty}"; [commutes];
    /// a, b -> a - b, wrapping
    Sub(ty: Ty): [ty, ty] => ty; "sub.{ty}";
    /// a, b -> low half of a * b
    Mul(ty: Ty): [ty, ty] => ty; "mul.{ty}"; [commutes];
    /// a, b -> high half of a * b
    MulHi(int: Int): [int.ty, int.ty] => int.ty; "mul_hi.{int}"; [commutes];
    /// a, b of 16 or 32 bits -> a * b at twice the width
    MulWide(int: Int): [int.ty, int.ty] => int.ty.twice(); "mul_wide.{int}"; [commutes];
    /// 24-bit multiply: `hi` picks bits 47..16 of the product, else 31..0; sources are cut to 24 bits
    Mul24 {
        /// Sign of the sources.
        signed: bool,
        /// `.hi`.
        hi: bool,
    }: [B32, B32] => B32; "mul24{}.{}", if hi { "_hi" } else { "" }, sign(signed);
    /// a, b -> a / b (truncating); division by zero is all ones; MIN / -1 is MIN
    Div(int: Int): [int.ty, int.ty] => int.ty; "div.{int}"; [costly];
    /// a, b -> a % b (sign of a); by zero is all ones; MIN % -1 is 0
    Rem(int: Int): [int.ty, int.ty] => int.ty; "rem.{int}"; [costly];
    /// a, b -> smaller
    Min(int: Int): [int.ty, int.ty] => int.ty; "min.{int}"; [commutes];
    /// a, b -> larger
    Max(int: Int): [int.ty, int.ty] => int.ty; "max.{int}"; [commutes];
    /// a -> |a|, wrapping
    Abs(ty: Ty): [ty] => ty; "abs.{ty}";
    /// a -> -a, wrapping
    Neg(ty: Ty): [ty] => ty; "neg.{ty}";
    /// a, b -> |a - b|, wrapping
    AbsDiff(int: Int): [int.ty, int.ty] => int.ty; "abs_diff.{int}"; [commutes];
    /// a, b -> a + b clamped
    AddSat(int: Int): [int.ty, int.ty] => int.ty; "add_sat.{int}"; [commutes];
    /// a, b -> a - b clamped
    SubSat(int: Int): [int.ty, int.ty] => int.ty; "sub_sat.{int}";
    /// a, b, carry-in (P) -> sum, carry-out (P)
    AddCarry(ty: Ty): [ty, ty, P] => ty, P; "add_carry.{ty}";
    /// a, b, borrow-in (P) -> difference, borrow-out (P)
    SubBorrow(ty: Ty): [ty, ty, P] => ty, P; "sub_borrow.{ty}";
    /// a, b -> a & b; also on P
    And(ty: Ty): [ty, ty] => ty; "and.{ty}"; [commutes];
    /// a, b -> a | b; also on P
    Or(ty: Ty): [ty, ty] => ty; "or.{ty}"; [commutes];
    /// a, b -> a ^ b; also on P
    Xor(ty: Ty): [ty, ty] => ty; "xor.{ty}"; [commutes];
    /// a -> !a; also on P
    Not(ty: Ty): [ty] => ty; "not.{ty}";
    /// a -> 1 if a is 0 else 0 (`cnot`), same type
    Cnot(ty: Ty): [ty] => ty; "cnot.{ty}";
    /// a, amount (B32) -> a << amount; amounts above the width act as the width
    Shl(ty: Ty): [ty, B32] => ty; "shl.{ty}";
    /// a, amount (B32) -> a >> amount, arithmetic when signed; amounts above the width act as the width
    Shr(int: Int): [int.ty, B32] => int.ty; "shr.{int}";
    /// lo, hi, amount (B32) -> funnel shift of hi:lo, 32 bits
    Shf {
        /// `.r`: low word of the shifted pair; else `.l`: high word.
        right: bool,
        /// `.wrap`: amount & 31; else `.clamp`: min(amount, 32).
        wrap: bool,
    }: [B32, B32, B32] => B32; "shf.{}.{}", if right { "r" } else { "l" }, wrap_or_clamp(wrap);
    /// a -> number of ones (B32)
    Popc(ty: Ty): [ty] => B32; "popc.{ty}";
    /// a -> number of leading zeros (B32)
    Clz(ty: Ty): [ty] => B32; "clz.{ty}";
    /// a -> bits reversed
    Brev(ty: Ty): [ty] => ty; "brev.{ty}";
    /// a -> position of the most significant non-sign bit (B32)
    Bfind {
        /// Type of the source.
        int: Int,
        /// `.shiftamt`: the left shift that would bring it to the top.
        shiftamt: bool,
    }: [int.ty] => B32; "bfind{}.{int}", flag(shiftamt, ".shiftamt");
    /// a, pos (B32), len (B32) -> field
    Bfe(int: Int): [int.ty, B32, B32] => int.ty; "bfe.{int}";
    /// field a, base b, pos (B32), len (B32) -> b with the field inserted
    Bfi(ty: Ty): [ty, ty, B32, B32] => ty; "bfi.{ty}";
    /// a, b, selector -> permuted bytes (B32)
    Prmt(mode: PrmtMode): [B32, B32, B32] => B32; "prmt.{}", lower_case(&mode);
    /// a, b, c -> table look-up, B32
    Lop3(table: u8): [B32, B32, B32] => B32; "lop3.{table:#04x}";
    /// a, b, c (B32) -> c + dot product of four bytes
    Dp4a {
        /// a is signed.
        a_signed: bool,
        /// b is signed.
        b_signed: bool,
    }: [B32, B32, B32] => B32; "dp4a.{}.{}", sign(a_signed), sign(b_signed);
    /// a, b, c (B32) -> c + dot product of two halves of a with two bytes of b
    Dp2a {
        /// a is signed.
        a_signed: bool,
        /// b is signed.
        b_signed: bool,
        /// `.hi`: the upper two bytes of b.
        hi: bool,
    }: [B32, B32, B32] => B32; "dp2a.{}.{}.{}", low_or_high(hi), sign(a_signed), sign(b_signed);
    /// mask, base, offset (B32) -> position of the n-th set bit (`fns`)
    Fns: [B32, B32, B32] => B32; "fns"; [costly];
    /// a, width (B32) -> a sign- or zero-extended from `width` bits (`szext`)
    Szext {
        /// Sign extension.
        signed: bool,
        /// `.wrap`, else `.clamp`.
        wrap: bool,
    }: [B32, B32] => B32; "szext.{}.{}", wrap_or_clamp(wrap), sign(signed);
    /// pos, width (B32) -> mask (`bmsk`)
    Bmsk {
        /// `.wrap`, else `.clamp`.
        wrap: bool,
    }: [B32, B32] => B32; "bmsk.{}", wrap_or_clamp(wrap);
    /// a, b [, c] (B32) -> a scalar video instruction but `vmad` (B32)
    Video(video: Video): video_sources(video) => B32; "{video}";
    /// a, b, c (B32) -> `vmad` (B32)
    Vmad(vmad: Vmad): [B32, B32, B32] => B32; "{vmad}";
    /// a, b, c (B32) -> a SIMD video instruction (B32)
    VideoSimd(video: VideoSimd): [B32, B32, B32] => B32; "{video}";
    /// a, b -> P
    ICmp(cmp: Cmp, int: Int): [int.ty, int.ty] => P; "cmp.{}.{int}", lower_case(&cmp);
    /// a, b -> P; `ftz` flushes f32 inputs first. Scalar float types only (packed ones are expanded)
    FCmp {
        /// Which comparison; the unordered ones hold for NaN.
        cmp: Cmp,
        /// Scalar float type.
        ty: Float,
        /// Flush inputs.
        ftz: bool,
    }: [ty.ty(), ty.ty()] => P; "fcmp.{}{}.{ty}", lower_case(&cmp), flag(ftz, ".ftz"); [takes_loose(true)];
    /// P, a, b -> a if P else b
    Select(ty: Ty): [P, ty, ty] => ty; "select.{ty}";
    /// a -> the low `bits` bits of a, sign- or zero-extended to `to` (also narrows: `to` may be smaller than the source)
    Ext {
        /// Bits kept: 8, 16, 32 or 64.
        bits: u8,
        /// Sign extension.
        signed: bool,
        /// Type of the source.
        from: Ty,
        /// Type of the result.
        to: Ty,
    }: [from] => to; "ext.{}{bits}.{from}.{to}", if signed { 's' } else { 'u' };
    /// lo, hi -> one value of twice the width (B16 -> B32, B32 -> B64)
    Pack(ty: Ty): [ty, ty] => ty.twice(); "pack.{ty}";
    /// a -> half of a (B64 -> B32, B32 -> B16); `from` is the source type
    Half {
        /// Type of the source.
        from: Ty,
        /// The upper half.
        hi: bool,
    }: [from] => from.half(); "half.{}.{from}", low_or_high(hi);
    /// P -> 1 or 0 at the type
    FromPred(ty: Ty): [P] => ty; "from_pred.{ty}";
    /// a -> P: a is not zero
    ToPred(ty: Ty): [ty] => P; "to_pred.{ty}";
    /// a, b -> a + b
    FAdd(mode: FMode): [mode.ty.ty(), mode.ty.ty()] => mode.ty.ty(); "fadd{mode}"; [by_host(mode, true)];
    /// a, b -> a - b
    FSub(mode: FMode): [mode.ty.ty(), mode.ty.ty()] => mode.ty.ty(); "fsub{mode}"; [by_host(mode, true)];
    /// a, b -> a * b
    FMul(mode: FMode): [mode.ty.ty(), mode.ty.ty()] => mode.ty.ty(); "fmul{mode}"; [by_host(mode, true)];
    /// a, b, c -> a * b + c with one rounding
    FFma(mode: FMode): [mode.ty.ty(), mode.ty.ty(), mode.ty.ty()] => mode.ty.ty(); "fma{mode}"; [by_host(mode, true)];
    /// a, b -> a / b (F32, F64)
    FDiv {
        /// Type and flushing; `round` is unused.
        mode: FMode,
        /// How exact the result is asked to be.
        exact: Exactness,
    }: [mode.ty.ty(), mode.ty.ty()] => mode.ty.ty(); "fdiv{exact}{}.{}", flag(mode.ftz, ".ftz"), mode.ty; [costly, by_host(mode, exact.is_nearest())];
    /// a -> 1 / a (F32, F64)
    FRcp {
        /// Type and flushing; `round` is unused.
        mode: FMode,
        /// How exact the result is asked to be.
        exact: Exactness,
    }: [mode.ty.ty()] => mode.ty.ty(); "frcp{exact}{}.{}", flag(mode.ftz, ".ftz"), mode.ty; [costly, by_host(mode, exact.is_nearest())];
    /// a -> square root of a (F32, F64)
    FSqrt {
        /// Type and flushing; `round` is unused.
        mode: FMode,
        /// How exact the result is asked to be.
        exact: Exactness,
    }: [mode.ty.ty()] => mode.ty.ty(); "fsqrt{exact}{}.{}", flag(mode.ftz, ".ftz"), mode.ty; [costly, by_host(mode, exact.is_nearest())];
    /// a -> 1 / sqrt(a) (F32, F64)
    FRsqrt(mode: FMode): [mode.ty.ty()] => mode.ty.ty(); "frsqrt{}.{}", flag(mode.ftz, ".ftz"), mode.ty; [costly];
    /// a, b -> smaller
    FMin {
        /// Type of the sources.
        ty: Float,
        /// `.ftz`: subnormal sources and results become zero.
        ftz: bool,
        /// `.NaN`: any NaN makes the result the canonical one.
        nan: bool,
        /// `.xorsign.abs`.
        xorsign: bool,
    }: [ty.ty(), ty.ty()] => ty.ty(); "fmin{}{}{}.{ty}", flag(ftz, ".ftz"), flag(nan, ".nan"), flag(xorsign, ".xorsign.abs");
    /// a, b -> larger
    FMax {
        /// Type of the sources.
        ty: Float,
        /// `.ftz`: subnormal sources and results become zero.
        ftz: bool,
        /// `.NaN`: any NaN makes the result the canonical one.
        nan: bool,
        /// `.xorsign.abs`.
        xorsign: bool,
    }: [ty.ty(), ty.ty()] => ty.ty(); "fmax{}{}{}.{ty}", flag(ftz, ".ftz"), flag(nan, ".nan"), flag(xorsign, ".xorsign.abs");
    /// a -> |a|
    FAbs {
        /// Type of the sources.
        ty: Float,
        /// `.ftz`: subnormal sources and results become zero.
        ftz: bool,
    }: [ty.ty()] => ty.ty(); "fabs{}.{ty}", flag(ftz, ".ftz");
    /// a -> -a
    FNeg {
        /// Type of the sources.
        ty: Float,
        /// `.ftz`: subnormal sources and results become zero.
        ftz: bool,
    }: [ty.ty()] => ty.ty(); "fneg{}.{ty}", flag(ftz, ".ftz");
    /// a -> sine (`sin.approx.f32`)
    Sin {
        /// `.ftz`: subnormal sources and results become zero.
        ftz: bool,
    }: [B32] => B32; "sin{}", flag(ftz, ".ftz"); [costly];
    /// a -> cosine
    Cos {
        /// `.ftz`: subnormal sources and results become zero.
        ftz: bool,
    }: [B32] => B32; "cos{}", flag(ftz, ".ftz"); [costly];
    /// a -> base-2 logarithm
    Lg2 {
        /// `.ftz`: subnormal sources and results become zero.
        ftz: bool,
    }: [B32] => B32; "lg2{}", flag(ftz, ".ftz"); [costly];
    /// a -> 2^a (F32, F16, BF16 and pairs)
    Ex2 {
        /// Type of the sources.
        ty: Float,
        /// `.ftz`: subnormal sources and results become zero.
        ftz: bool,
    }: [ty.ty()] => ty.ty(); "ex2{}.{ty}", flag(ftz, ".ftz"); [costly];
    /// a -> hyperbolic tangent (F32, F16, BF16 and pairs)
    Tanh {
        /// Type of the sources.
        ty: Float,
    }: [ty.ty()] => ty.ty(); "tanh.{ty}"; [costly];
    /// sign source, magnitude source -> value (`copysign d, a, b`: sign of a, magnitude of b) (F32, F64)
    Copysign(ty: Float): [ty.ty(), ty.ty()] => ty.ty(); "copysign.{ty}";
    /// a -> P (F32, F64)
    Testp {
        /// What is asked of the number.
        property: TestProperty,
        /// Type of the sources.
        ty: Float,
    }: [ty.ty()] => P; "testp.{}.{ty}", lower_case(&property);
    /// a [, b [, rbits]] -> converted value; packed destinations take two sources (the first goes to the upper half),
    /// x4 destinations four, `.rs` one more
    Cvt(cvt: Cvt): cvt.sources() => cvt.to.ty(); "cvt{cvt}"; [costly, takes_loose(matches!(cvt.from, ScalarType::F32 | ScalarType::F64))];
}

/// The scalar video instructions that end with their second source have no third one.
fn video_sources(video: Video) -> Types {
    match video.end {
        VideoEnd::Plain => [B32; 2].into(),
        VideoEnd::Add | VideoEnd::Min | VideoEnd::Max | VideoEnd::Merge(_) => [B32; 3].into(),
    }
}
