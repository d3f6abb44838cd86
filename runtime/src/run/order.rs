//! The order in which the blocks of a grid are started.

use handloom_interp::pace::splitmix;

/// A permutation of the numbers below `n` that is computed, not stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Order {
    n: u64,
    step: u64,
    start: u64,
}

impl Order {
    /// The order of a seed; seed 0 is ascending.
    pub(crate) fn new(n: u64, seed: u64) -> Order {
        if seed == 0 || n < 2 {
            return Order { n, step: 1, start: 0 };
        }
        let mut state = seed;
        let start = splitmix(&mut state) % n;
        let mut step = splitmix(&mut state) % n;
        // Steps that share a factor with `n` would not reach all numbers.
        while gcd(step, n) != 1 {
            step = (step + 1) % n;
        }
        Order { n, step, start }
    }

    /// The number at a position.
    #[inline]
    pub(crate) fn at(self, position: u64) -> u64 {
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
    fn every_order_is_a_permutation() {
        for n in [1, 2, 3, 12, 97, 256] {
            for seed in 0..20 {
                let order = Order::new(n, seed);
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
