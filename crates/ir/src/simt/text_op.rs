//! Names of value ops in the text form.

use std::fmt::Write;

use crate::types::*;

use super::op::*;
use super::text::lower_case;

/// The name of a value op with its types and modifiers.
pub fn pure_name(op: Pure) -> String {
    match op {
        Pure::Mov(t) => format!("mov.{t}"),
        Pure::Add(t) => format!("add.{t}"),
        Pure::Sub(t) => format!("sub.{t}"),
        Pure::Mul(t) => format!("mul.{t}"),
        Pure::MulHi(t) => format!("mul_hi.{t}"),
        Pure::MulWide(t) => format!("mul_wide.{t}"),
        Pure::Mul24 { signed, hi } => format!("mul24{}.{}", if hi { "_hi" } else { "" }, word(signed)),
        Pure::Div(t) => format!("div.{t}"),
        Pure::Rem(t) => format!("rem.{t}"),
        Pure::Min(t) => format!("min.{t}"),
        Pure::Max(t) => format!("max.{t}"),
        Pure::Abs(t) => format!("abs.{t}"),
        Pure::Neg(t) => format!("neg.{t}"),
        Pure::AbsDiff(t) => format!("abs_diff.{t}"),
        Pure::AddSat(t) => format!("add_sat.{t}"),
        Pure::SubSat(t) => format!("sub_sat.{t}"),
        Pure::AddCarry(t) => format!("add_carry.{t}"),
        Pure::SubBorrow(t) => format!("sub_borrow.{t}"),
        Pure::And(t) => format!("and.{t}"),
        Pure::Or(t) => format!("or.{t}"),
        Pure::Xor(t) => format!("xor.{t}"),
        Pure::Not(t) => format!("not.{t}"),
        Pure::Cnot(t) => format!("cnot.{t}"),
        Pure::Shl(t) => format!("shl.{t}"),
        Pure::Shr(t) => format!("shr.{t}"),
        Pure::Shf { right, wrap } => format!("shf.{}.{}", if right { "r" } else { "l" }, wrap_word(wrap)),
        Pure::Popc(t) => format!("popc.{t}"),
        Pure::Clz(t) => format!("clz.{t}"),
        Pure::Brev(t) => format!("brev.{t}"),
        Pure::Bfind { int, shiftamt } => format!("bfind{}.{int}", if shiftamt { ".shiftamt" } else { "" }),
        Pure::Bfe(t) => format!("bfe.{t}"),
        Pure::Bfi(t) => format!("bfi.{t}"),
        Pure::Prmt(mode) => format!("prmt.{}", lower_case(&mode)),
        Pure::Lop3(table) => format!("lop3.{table:#04x}"),
        Pure::Dp4a { a_signed, b_signed } => format!("dp4a.{}.{}", word(a_signed), word(b_signed)),
        Pure::Dp2a { a_signed, b_signed, hi } => {
            format!("dp2a.{}.{}.{}", if hi { "hi" } else { "lo" }, word(a_signed), word(b_signed))
        }
        Pure::Fns => "fns".into(),
        Pure::Szext { signed, wrap } => format!("szext.{}.{}", wrap_word(wrap), word(signed)),
        Pure::Bmsk { wrap } => format!("bmsk.{}", wrap_word(wrap)),
        Pure::Video(v) => v.to_string(),
        Pure::Vmad(v) => v.to_string(),
        Pure::VideoSimd(v) => v.to_string(),
        Pure::ICmp(cmp, t) => format!("cmp.{}.{t}", lower_case(&cmp)),
        Pure::FCmp { cmp, ty, ftz } => format!("fcmp.{}{}.{ty}", lower_case(&cmp), flag(ftz, ".ftz")),
        Pure::Select(t) => format!("select.{t}"),
        Pure::Ext { bits, signed, from, to } => {
            format!("ext.{}{bits}.{from}.{to}", if signed { 's' } else { 'u' })
        }
        Pure::Pack(t) => format!("pack.{t}"),
        Pure::Half { from, hi } => format!("half.{}.{from}", if hi { "hi" } else { "lo" }),
        Pure::FromPred(t) => format!("from_pred.{t}"),
        Pure::ToPred(t) => format!("to_pred.{t}"),
        Pure::FAdd(m) => format!("fadd{}", mode(m)),
        Pure::FSub(m) => format!("fsub{}", mode(m)),
        Pure::FMul(m) => format!("fmul{}", mode(m)),
        Pure::FFma(m) => format!("fma{}", mode(m)),
        Pure::FDiv { mode, exact } => format!("fdiv{}", exact_mode(mode, exact)),
        Pure::FRcp { mode, exact } => format!("frcp{}", exact_mode(mode, exact)),
        Pure::FSqrt { mode, exact } => format!("fsqrt{}", exact_mode(mode, exact)),
        Pure::FRsqrt(m) => format!("frsqrt{}.{}", flag(m.ftz, ".ftz"), m.ty),
        Pure::FMin { ty, ftz, nan, xorsign } => format!("fmin{}.{ty}", extremum(ftz, nan, xorsign)),
        Pure::FMax { ty, ftz, nan, xorsign } => format!("fmax{}.{ty}", extremum(ftz, nan, xorsign)),
        Pure::FAbs { ty, ftz } => format!("fabs{}.{ty}", flag(ftz, ".ftz")),
        Pure::FNeg { ty, ftz } => format!("fneg{}.{ty}", flag(ftz, ".ftz")),
        Pure::Sin { ftz } => format!("sin{}", flag(ftz, ".ftz")),
        Pure::Cos { ftz } => format!("cos{}", flag(ftz, ".ftz")),
        Pure::Lg2 { ftz } => format!("lg2{}", flag(ftz, ".ftz")),
        Pure::Ex2 { ty, ftz } => format!("ex2{}.{ty}", flag(ftz, ".ftz")),
        Pure::Tanh { ty } => format!("tanh.{ty}"),
        Pure::Copysign(ty) => format!("copysign.{ty}"),
        Pure::Testp { property, ty } => format!("testp.{}.{ty}", lower_case(&property)),
        Pure::Cvt(c) => cvt_name(c),
    }
}

fn word(signed: bool) -> &'static str {
    if signed { "s32" } else { "u32" }
}

fn wrap_word(wrap: bool) -> &'static str {
    if wrap { "wrap" } else { "clamp" }
}

fn flag(on: bool, text: &'static str) -> &'static str {
    if on { text } else { "" }
}

fn rounding(r: Rounding) -> &'static str {
    match r {
        Rounding::Nearest => ".rn",
        Rounding::NearestAway => ".rna",
        Rounding::Zero => ".rz",
        Rounding::Down => ".rm",
        Rounding::Up => ".rp",
        Rounding::Stochastic => ".rs",
    }
}

fn mode(m: FMode) -> String {
    let FMode { ty, round, ftz, sat, relu } = m;
    format!("{}{}{}{}.{ty}", rounding(round), flag(ftz, ".ftz"), flag(sat, ".sat"), flag(relu, ".relu"))
}

fn exact_mode(m: FMode, exact: Exactness) -> String {
    let how = match exact {
        Exactness::Ieee(r) => rounding(r),
        Exactness::Approx => ".approx",
        Exactness::Full => ".full",
    };
    format!("{how}{}.{}", flag(m.ftz, ".ftz"), m.ty)
}

fn extremum(ftz: bool, nan: bool, xorsign: bool) -> String {
    format!("{}{}{}", flag(ftz, ".ftz"), flag(nan, ".nan"), flag(xorsign, ".xorsign.abs"))
}

fn cvt_name(c: Cvt) -> String {
    let Cvt { to, from, round, integral, ftz, sat, relu, satfinite } = c;
    let mut out = format!("cvt{}", rounding(round));
    let flags = [(integral, "i"), (ftz, ".ftz"), (sat, ".sat"), (relu, ".relu"), (satfinite, ".satfinite")];
    for (on, text) in flags {
        out.push_str(flag(on, text));
    }
    let _ = write!(out, "{to}{from}");
    out
}
