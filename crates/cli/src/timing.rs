//! What several timings say: median, spread, and how sure the median is.
//!
//! Choice: order statistics only. Times of a busy host have a long tail and no known distribution; which ranks enclose the median with a given
//! certainty follows from coin tosses alone, for any distribution of independent timings.

use serde::Serialize;

/// How sure an interval is.
pub const CERTAINTY: f64 = 0.95;

/// What several numbers come to.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// The middle one.
    pub median: f64,
    /// A quarter of them is at most this.
    pub low: f64,
    /// A quarter of them is at least this.
    pub high: f64,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
    /// Where the median of many more would lie with [`CERTAINTY`]; none of fewer than six.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

impl Spread {
    /// Of a list that is not empty.
    pub fn of(list: &[f64]) -> Option<Spread> {
        let mut sorted = list.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let median = middle(&sorted)?;
        // Each half with the middle one, if there is a middle one.
        let half = n.div_ceil(2);
        let (low, high) = (middle(&sorted[..half])?, middle(&sorted[n - half..])?);
        let interval = rank(n).map(|k| [sorted[k], sorted[n - 1 - k]]);
        Some(Spread { median, low, high, least: sorted[0], most: sorted[n - 1], interval })
    }
}

impl Spread {
    /// In another unit.
    pub fn times(self, by: f64) -> Spread {
        let Spread { median, low, high, least, most, interval } = self;
        Spread {
            median: median * by,
            low: low * by,
            high: high * by,
            least: least * by,
            most: most * by,
            interval: interval.map(|both| both.map(|x| x * by)),
        }
    }
}

/// The median of a sorted list.
fn middle(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    let at = *sorted.get(n / 2)?;
    Some(if n.is_multiple_of(2) { f64::midpoint(sorted[n / 2 - 1], at) } else { at })
}

/// The greatest rank, from 0, so that the median lies between it and the same rank from above with [`CERTAINTY`]: at most half of the rest of the
/// chance lies on each side, by the binomial distribution of how many of `n` timings are below the median.
fn rank(n: usize) -> Option<usize> {
    let count = n as f64;
    // ln of the chance that exactly k are below.
    let mut chance = -count * std::f64::consts::LN_2;
    let mut below = 0.0;
    let mut found = None;
    for k in 0..n / 2 {
        below += chance.exp();
        if below > (1.0 - CERTAINTY) / 2.0 {
            break;
        }
        found = Some(k);
        chance += ((count - k as f64) / (k as f64 + 1.0)).ln();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_of_a_few_numbers() {
        let s = Spread::of(&[5.0, 1.0, 4.0, 2.0, 3.0]).unwrap();
        assert_eq!((s.median, s.low, s.high, s.least, s.most, s.interval), (3.0, 2.0, 4.0, 1.0, 5.0, None));
        let s = Spread::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((s.median, s.low, s.high), (2.5, 1.5, 3.5));
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[7.0]).map(|s| (s.median, s.low, s.high)), Some((7.0, 7.0, 7.0)));
    }

    /// Ranks of tables of the sign test: two-sided, 5 %.
    #[test]
    fn intervals_are_those_of_the_sign_test() {
        for (n, k) in [(6, 1), (7, 1), (8, 1), (9, 2), (10, 2), (12, 3), (15, 4), (20, 6), (25, 8), (50, 18), (100, 40)]
        {
            // Tables count from 1.
            assert_eq!(rank(n), Some(k - 1), "{n}");
        }
        for n in 0..6 {
            assert_eq!(rank(n), None, "{n}");
        }
        // Far beyond where 2^-n is a float.
        let k = rank(10_000).unwrap();
        assert!((4895..=4905).contains(&k), "{k}");
    }
}
