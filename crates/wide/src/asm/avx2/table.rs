//! Which instruction of AVX2 does the same for half of a vector.

use iced_x86::Code;

use super::state::Lanes;

/// How an instruction stands in AVX2, half by half.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    /// `out, a, rm`.
    Two(Code, Lanes),
    /// `out, rm`.
    One(Code, Lanes),
    /// `out, register, number`.
    Number(Code, Lanes),
    /// `out += a * rm`.
    Sum(Code, Lanes),
}

/// The instruction of half a vector, if there is one that does the same.
pub(super) fn way(code: Code) -> Option<Way> {
    use Code::*;
    use Lanes::{B, D, Q};
    use Way::{Number, One, Sum, Two};
    Some(match code {
        EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er => Two(VEX_Vaddps_ymm_ymm_ymmm256, D),
        EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er => Two(VEX_Vaddpd_ymm_ymm_ymmm256, Q),
        EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er => Two(VEX_Vsubps_ymm_ymm_ymmm256, D),
        EVEX_Vsubpd_zmm_k1z_zmm_zmmm512b64_er => Two(VEX_Vsubpd_ymm_ymm_ymmm256, Q),
        EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er => Two(VEX_Vmulps_ymm_ymm_ymmm256, D),
        EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er => Two(VEX_Vmulpd_ymm_ymm_ymmm256, Q),
        EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er => Two(VEX_Vdivps_ymm_ymm_ymmm256, D),
        EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er => Two(VEX_Vdivpd_ymm_ymm_ymmm256, Q),
        EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae => Two(VEX_Vmaxps_ymm_ymm_ymmm256, D),
        EVEX_Vmaxpd_zmm_k1z_zmm_zmmm512b64_sae => Two(VEX_Vmaxpd_ymm_ymm_ymmm256, Q),
        EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae => Two(VEX_Vminps_ymm_ymm_ymmm256, D),
        EVEX_Vminpd_zmm_k1z_zmm_zmmm512b64_sae => Two(VEX_Vminpd_ymm_ymm_ymmm256, Q),
        EVEX_Vpaddb_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpaddb_ymm_ymm_ymmm256, B),
        EVEX_Vpaddw_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpaddw_ymm_ymm_ymmm256, B),
        EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32 => Two(VEX_Vpaddd_ymm_ymm_ymmm256, D),
        EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64 => Two(VEX_Vpaddq_ymm_ymm_ymmm256, Q),
        EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32 => Two(VEX_Vpsubd_ymm_ymm_ymmm256, D),
        EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64 => Two(VEX_Vpsubq_ymm_ymm_ymmm256, Q),
        EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32 => Two(VEX_Vpand_ymm_ymm_ymmm256, D),
        EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64 => Two(VEX_Vpand_ymm_ymm_ymmm256, Q),
        EVEX_Vpandnd_zmm_k1z_zmm_zmmm512b32 => Two(VEX_Vpandn_ymm_ymm_ymmm256, D),
        EVEX_Vpandnq_zmm_k1z_zmm_zmmm512b64 => Two(VEX_Vpandn_ymm_ymm_ymmm256, Q),
        EVEX_Vpord_zmm_k1z_zmm_zmmm512b32 => Two(VEX_Vpor_ymm_ymm_ymmm256, D),
        EVEX_Vporq_zmm_k1z_zmm_zmmm512b64 => Two(VEX_Vpor_ymm_ymm_ymmm256, Q),
        EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32 => Two(VEX_Vpxor_ymm_ymm_ymmm256, D),
        EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64 => Two(VEX_Vpxor_ymm_ymm_ymmm256, Q),
        EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32 => Two(VEX_Vpmulld_ymm_ymm_ymmm256, D),
        EVEX_Vpmuldq_zmm_k1z_zmm_zmmm512b64 => Two(VEX_Vpmuldq_ymm_ymm_ymmm256, Q),
        EVEX_Vpmuludq_zmm_k1z_zmm_zmmm512b64 => Two(VEX_Vpmuludq_ymm_ymm_ymmm256, Q),
        EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32 => Two(VEX_Vpmaxsd_ymm_ymm_ymmm256, D),
        EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32 => Two(VEX_Vpmaxud_ymm_ymm_ymmm256, D),
        EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32 => Two(VEX_Vpminsd_ymm_ymm_ymmm256, D),
        EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32 => Two(VEX_Vpminud_ymm_ymm_ymmm256, D),
        EVEX_Vpsllvd_zmm_k1z_zmm_zmmm512b32 => Two(VEX_Vpsllvd_ymm_ymm_ymmm256, D),
        EVEX_Vpsllvq_zmm_k1z_zmm_zmmm512b64 => Two(VEX_Vpsllvq_ymm_ymm_ymmm256, Q),
        EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32 => Two(VEX_Vpsrlvd_ymm_ymm_ymmm256, D),
        EVEX_Vpsrlvq_zmm_k1z_zmm_zmmm512b64 => Two(VEX_Vpsrlvq_ymm_ymm_ymmm256, Q),
        EVEX_Vpsravd_zmm_k1z_zmm_zmmm512b32 => Two(VEX_Vpsravd_ymm_ymm_ymmm256, D),
        EVEX_Vpsubb_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpsubb_ymm_ymm_ymmm256, B),
        EVEX_Vpsubw_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpsubw_ymm_ymm_ymmm256, B),
        EVEX_Vpaddsb_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpaddsb_ymm_ymm_ymmm256, B),
        EVEX_Vpaddsw_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpaddsw_ymm_ymm_ymmm256, B),
        EVEX_Vpaddusb_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpaddusb_ymm_ymm_ymmm256, B),
        EVEX_Vpaddusw_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpaddusw_ymm_ymm_ymmm256, B),
        EVEX_Vpsubsb_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpsubsb_ymm_ymm_ymmm256, B),
        EVEX_Vpsubsw_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpsubsw_ymm_ymm_ymmm256, B),
        EVEX_Vpsubusb_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpsubusb_ymm_ymm_ymmm256, B),
        EVEX_Vpsubusw_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpsubusw_ymm_ymm_ymmm256, B),
        EVEX_Vpavgb_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpavgb_ymm_ymm_ymmm256, B),
        EVEX_Vpavgw_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpavgw_ymm_ymm_ymmm256, B),
        EVEX_Vpminsb_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpminsb_ymm_ymm_ymmm256, B),
        EVEX_Vpminub_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpminub_ymm_ymm_ymmm256, B),
        EVEX_Vpminsw_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpminsw_ymm_ymm_ymmm256, B),
        EVEX_Vpminuw_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpminuw_ymm_ymm_ymmm256, B),
        EVEX_Vpmaxsb_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpmaxsb_ymm_ymm_ymmm256, B),
        EVEX_Vpmaxub_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpmaxub_ymm_ymm_ymmm256, B),
        EVEX_Vpmaxsw_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpmaxsw_ymm_ymm_ymmm256, B),
        EVEX_Vpmaxuw_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpmaxuw_ymm_ymm_ymmm256, B),
        EVEX_Vpshufb_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpshufb_ymm_ymm_ymmm256, B),
        EVEX_Vpmaddubsw_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpmaddubsw_ymm_ymm_ymmm256, B),
        EVEX_Vpmaddwd_zmm_k1z_zmm_zmmm512 => Two(VEX_Vpmaddwd_ymm_ymm_ymmm256, D),
        EVEX_Vpsadbw_zmm_zmm_zmmm512 => Two(VEX_Vpsadbw_ymm_ymm_ymmm256, Q),
        EVEX_Vsqrtps_zmm_k1z_zmmm512b32_er => One(VEX_Vsqrtps_ymm_ymmm256, D),
        EVEX_Vsqrtpd_zmm_k1z_zmmm512b64_er => One(VEX_Vsqrtpd_ymm_ymmm256, Q),
        EVEX_Vpabsw_zmm_k1z_zmmm512 => One(VEX_Vpabsw_ymm_ymmm256, B),
        EVEX_Vpabsd_zmm_k1z_zmmm512b32 => One(VEX_Vpabsd_ymm_ymmm256, D),
        EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er => One(VEX_Vcvtdq2ps_ymm_ymmm256, D),
        EVEX_Vcvttps2dq_zmm_k1z_zmmm512b32_sae => One(VEX_Vcvttps2dq_ymm_ymmm256, D),
        EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8 => Number(VEX_Vpslld_ymm_ymm_imm8, D),
        EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8 => Number(VEX_Vpsllq_ymm_ymm_imm8, Q),
        EVEX_Vpsllw_zmm_k1z_zmmm512_imm8 => Number(VEX_Vpsllw_ymm_ymm_imm8, D),
        EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8 => Number(VEX_Vpsrld_ymm_ymm_imm8, D),
        EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8 => Number(VEX_Vpsrlq_ymm_ymm_imm8, Q),
        EVEX_Vpsrlw_zmm_k1z_zmmm512_imm8 => Number(VEX_Vpsrlw_ymm_ymm_imm8, D),
        EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8 => Number(VEX_Vpsrad_ymm_ymm_imm8, D),
        EVEX_Vpsraw_zmm_k1z_zmmm512_imm8 => Number(VEX_Vpsraw_ymm_ymm_imm8, D),
        EVEX_Vpshufd_zmm_k1z_zmmm512b32_imm8 => Number(VEX_Vpshufd_ymm_ymmm256_imm8, D),
        // The number means the same where nothing is kept behind the point.
        EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae => Number(VEX_Vroundps_ymm_ymmm256_imm8, D),
        EVEX_Vrndscalepd_zmm_k1z_zmmm512b64_imm8_sae => Number(VEX_Vroundpd_ymm_ymmm256_imm8, Q),
        EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er => Sum(VEX_Vfmadd231ps_ymm_ymm_ymmm256, D),
        EVEX_Vfmadd231pd_zmm_k1z_zmm_zmmm512b64_er => Sum(VEX_Vfmadd231pd_ymm_ymm_ymmm256, Q),
        EVEX_Vfmadd132ps_zmm_k1z_zmm_zmmm512b32_er => Sum(VEX_Vfmadd132ps_ymm_ymm_ymmm256, D),
        EVEX_Vfmadd132pd_zmm_k1z_zmm_zmmm512b64_er => Sum(VEX_Vfmadd132pd_ymm_ymm_ymmm256, Q),
        EVEX_Vfmadd213ps_zmm_k1z_zmm_zmmm512b32_er => Sum(VEX_Vfmadd213ps_ymm_ymm_ymmm256, D),
        EVEX_Vfmadd213pd_zmm_k1z_zmm_zmmm512b64_er => Sum(VEX_Vfmadd213pd_ymm_ymm_ymmm256, Q),
        _ => return None,
    })
}
