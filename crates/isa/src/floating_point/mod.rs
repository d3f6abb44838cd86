//! Floating-point instructions of single and double precision.

use crate::form::Form;

pub mod abs;
pub mod add;
pub mod copysign;
pub mod cos;
pub mod div;
pub mod ex2;
pub mod fma;
pub mod lg2;
pub mod mad;
pub mod max;
pub mod min;
pub mod mul;
pub mod neg;
pub mod rcp;
pub mod rcp_approx_ftz_f64;
pub mod rsqrt;
pub mod rsqrt_approx_ftz_f64;
pub mod sin;
pub mod sqrt;
pub mod sub;
pub mod tanh;
pub mod testp;

/// The records, in the order of the manual.
pub const FORMS: &[&Form] = &[
    &testp::TESTP,
    &copysign::COPYSIGN,
    &add::ADD_F32,
    &add::ADD_F32X2,
    &add::ADD_F64,
    &sub::SUB_F32,
    &sub::SUB_F32X2,
    &sub::SUB_F64,
    &mul::MUL_F32,
    &mul::MUL_F32X2,
    &mul::MUL_F64,
    &fma::FMA_F32,
    &fma::FMA_F32X2,
    &fma::FMA_F64,
    &mad::MAD_F32,
    &mad::MAD_F64,
    &div::DIV_APPROX,
    &div::DIV_FULL,
    &div::DIV_F32,
    &div::DIV_F64,
    &abs::ABS_F32,
    &abs::ABS_F64,
    &neg::NEG_F32,
    &neg::NEG_F64,
    &min::MIN_F32,
    &min::MIN_F64,
    &max::MAX_F32,
    &max::MAX_F64,
    &rcp::RCP_APPROX,
    &rcp::RCP_F32,
    &rcp::RCP_F64,
    &rcp_approx_ftz_f64::RCP_APPROX_FTZ_F64,
    &sqrt::SQRT_APPROX,
    &sqrt::SQRT_F32,
    &sqrt::SQRT_F64,
    &rsqrt::RSQRT_F32,
    &rsqrt::RSQRT_F64,
    &rsqrt_approx_ftz_f64::RSQRT_APPROX_FTZ_F64,
    &sin::SIN,
    &cos::COS,
    &lg2::LG2,
    &ex2::EX2,
    &tanh::TANH,
];
