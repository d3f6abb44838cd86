//! Sums, products and transforms in the order in which the kernels' sources ask for them.
//!
//! Floating-point sums depend on the order. A reference here that returns f32 makes each rounding where the source of the kernel makes
//! it, so that results compare by bits; one that returns f64 is more exact than the kernel, and the test states the distance.

/// `sum` and products in f32, fused, in ascending order.
pub fn fused_dot(a: impl Iterator<Item = f32>, b: impl Iterator<Item = f32>) -> f32 {
    a.zip(b).fold(0.0, |sum, (x, y)| x.mul_add(y, sum))
}

/// A product of matrices, row by row, each element a [`fused_dot`].
pub fn fused_product(m: usize, n: usize, k: usize, a: &[f32], b: &[f32]) -> Vec<f32> {
    let element =
        |i: usize, j: usize| fused_dot(a[i * k..(i + 1) * k].iter().copied(), b[j..].iter().step_by(n).copied());
    (0..m * n).map(|at| element(at / n, at % n)).collect()
}

/// A product of matrices in f64.
pub fn product(m: usize, n: usize, k: usize, a: &[f32], b: &[f32]) -> Vec<f64> {
    let element = |i: usize, j: usize| (0..k).map(|q| f64::from(a[i * k + q]) * f64::from(b[q * n + j])).sum();
    (0..m * n).map(|at| element(at / n, at % n)).collect()
}

/// The sum of a power of two of values by a tree that adds the upper half to the lower.
pub fn tree_sum(values: &[f32]) -> f32 {
    let mut part = values.to_vec();
    while part.len() > 1 {
        let half = part.len() / 2;
        part = (0..half).map(|i| part[i] + part[i + half]).collect();
    }
    part[0]
}

/// Running sums, each element included, modulo 2^32.
pub fn prefix_sums(values: &[u32]) -> Vec<u32> {
    values
        .iter()
        .scan(0_u32, |sum, v| {
            *sum = sum.wrapping_add(*v);
            Some(*sum)
        })
        .collect()
}

/// Softmax of one row in f64.
pub fn softmax(row: &[f64]) -> Vec<f64> {
    let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|x| (x - top).exp()).sum();
    row.iter().map(|x| (x - top).exp() / sum).collect()
}

/// As doubles.
pub fn widen(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}
