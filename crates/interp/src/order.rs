//! The order in which the blocks of a grid are started, and the warps of a block that is checked.

use crate::pace::splitmix;

/// A permutation of the numbers below `n` that is computed, not stored.
///
/// An odd seed reverses the order of the seed before it, so that among three neighbouring seeds are two which start any two numbers in both orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StartOrder {
    n: u64,
    step: u64,
    start: u64,
}

impl StartOrder {
    /// The order of a seed; seed 0 is ascending.
    pub fn new(n: u64, seed: u64) -> StartOrder {
        if n < 2 {
            return StartOrder { n, step: 1, start: 0 };
        }
        let even = StartOrder::even(n, seed & !1);
        if seed & 1 == 0 {
            return even;
        }
        // The last one first, and a step back each time.
        StartOrder { n, step: n - even.step, start: even.at(n - 1) }
    }

    fn even(n: u64, seed: u64) -> StartOrder {
        if seed == 0 {
            return StartOrder { n, step: 1, start: 0 };
        }
        let mut state = seed;
        let start = splitmix(&mut state) % n;
        let mut step = splitmix(&mut state) % n;
        // Steps that share a factor with `n` would not reach all numbers.
        while gcd(step, n) != 1 {
            step = (step + 1) % n;
        }
        StartOrder { n, step, start }
    }

    /// The number at a position.
    #[inline]
    pub fn at(self, position: u64) -> u64 {
        // The usual order; division at 128 bits costs as much as a small block.
        if self.step == 1 && self.start == 0 {
            return position;
        }
        let wide = u128::from(position) * u128::from(self.step) + u128::from(self.start);
        // A remainder of a 64-bit number fits.
        u64::try_from(wide % u128::from(self.n.max(1))).unwrap_or(0)
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_seeds_start_any_two_in_both_orders() {
        for n in [2, 3, 4, 7, 12, 33] {
            for first in 0..12 {
                let orders: Vec<Vec<u64>> =
                    (first..first + 3).map(|seed| (0..n).map(|i| StartOrder::new(n, seed).at(i)).collect()).collect();
                let is_before = |order: &[u64], a: u64, b: u64| {
                    order.iter().position(|x| *x == a) < order.iter().position(|x| *x == b)
                };
                for (a, b) in (0..n).flat_map(|a| (0..a).map(move |b| (a, b))) {
                    let ways: Vec<bool> = orders.iter().map(|order| is_before(order, a, b)).collect();
                    assert!(ways.contains(&true) && ways.contains(&false), "{n} {first}: {a} {b}");
                }
            }
        }
    }

    #[test]
    fn every_order_is_a_permutation() {
        for n in [1, 2, 3, 12, 97, 256] {
            for seed in 0..20 {
                let order = StartOrder::new(n, seed);
                let mut seen: Vec<u64> = (0..n).map(|i| order.at(i)).collect();
                if seed == 0 {
                    assert!(seen.is_sorted());
                }
                seen.sort_unstable();
                assert!(seen.iter().copied().eq(0..n), "{n} {seed}");
            }
        }
    }
}
