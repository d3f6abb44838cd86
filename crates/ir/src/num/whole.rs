//! Products of matrices that are not in registers, of any size, by rows of `a`. They are those of [`matrix`](super::matrix): the order of the sums
//! and their roundings are the same.

/// Adds the products of the elements of a row of `a` and the columns of `b`, one depth after the other. `depths`: the row of `b` for each element of
/// `a`; `b` has as many columns as there are sums.
///
/// # Panics
/// A depth is not in `b`.
#[inline(always)]
pub fn add_floats(a: &[f32], depths: &[u16], b: &[f32], sums: &mut [f32]) {
    let n = sums.len();
    for (a, depth) in a.iter().zip(depths) {
        let row = &b[usize::from(*depth) * n..][..n];
        for (sum, b) in sums.iter_mut().zip(row) {
            *sum = a.mul_add(*b, *sum);
        }
    }
}

/// The same of integers, without the accumulator. No sum of so many products leaves 32 bits.
///
/// # Panics
/// A depth is not in `b`.
pub fn add_integers(a: &[i32], depths: &[u16], b: &[i32], sums: &mut [i32]) {
    let n = sums.len();
    for (a, depth) in a.iter().zip(depths) {
        let row = &b[usize::from(*depth) * n..][..n];
        for (sum, b) in sums.iter_mut().zip(row) {
            *sum += a * b;
        }
    }
}
