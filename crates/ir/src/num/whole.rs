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
    let first = add_columns::<64>(a, depths, b, n, 0, sums);
    let first = add_columns::<16>(a, depths, b, n, first, sums);
    add_columns::<1>(a, depths, b, n, first, sums);
}

/// Does that for as many groups of `N` columns as there are from `first` on: their sums stay in registers. Returns the first column that is left.
#[inline(always)]
fn add_columns<const N: usize>(
    a: &[f32],
    depths: &[u16],
    b: &[f32],
    n: usize,
    mut first: usize,
    sums: &mut [f32],
) -> usize {
    while let Some(to) = sums.get_mut(first..).and_then(|rest| rest.first_chunk_mut::<N>()) {
        let mut group = *to;
        for (a, depth) in a.iter().zip(depths) {
            let Some(row) = b[usize::from(*depth) * n + first..].first_chunk::<N>() else {
                panic!("bug: a row of `b` ends before its columns do")
            };
            for (sum, b) in group.iter_mut().zip(row) {
                *sum = a.mul_add(*b, *sum);
            }
        }
        *to = group;
        first += N;
    }
    first
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
