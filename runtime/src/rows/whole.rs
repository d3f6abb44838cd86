//! Products of matrices that are not in registers: the one definition, compiled for what the host has.

use handloom_ir::num::whole;
use handloom_plan::Host;
use handloom_plan::host::Feature;

/// [`whole::add_floats`].
pub(super) fn add_floats(host: &Host, a: &[f32], depths: &[u16], b: &[f32], sums: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if host.has(Feature::Avx2) && host.has(Feature::Fma) {
        if host.has(Feature::Avx512f) {
            // SAFETY: the record of a device says nothing that was not detected.
            return unsafe { by_avx512(a, depths, b, sums) };
        }
        // SAFETY: as above.
        return unsafe { by_avx2(a, depths, b, sums) };
    }
    whole::add_floats(a, depths, b, sums);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn by_avx2(a: &[f32], depths: &[u16], b: &[f32], sums: &mut [f32]) {
    whole::add_floats(a, depths, b, sums);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
fn by_avx512(a: &[f32], depths: &[u16], b: &[f32], sums: &mut [f32]) {
    whole::add_floats(a, depths, b, sums);
}
