//! Input data, the same here and in the C programs, and its way to and from bytes.

/// A number as an index.
pub fn index(n: u32) -> usize {
    n as usize
}

/// Number `i` of a sequence of well mixed words; `common.h` has the same function.
pub fn mixed(i: u32) -> u32 {
    let mut z = i.wrapping_mul(0x9e37_79b9).wrapping_add(0x7f4a_7c15);
    z = (z ^ z >> 16).wrapping_mul(0x85eb_ca6b);
    z = (z ^ z >> 13).wrapping_mul(0xc2b2_ae35);
    z ^ z >> 16
}

/// The same between -0.5 and 0.5.
pub fn mixed_float(i: u32) -> f32 {
    // 24 bits: the conversion is exact.
    (mixed(i) >> 8) as f32 * (1.0 / 16_777_216.0) - 0.5
}

/// Numbers `from..from + n` of the sequence, as floats.
pub fn floats(from: u32, n: u32) -> Vec<f32> {
    (from..from + n).map(mixed_float).collect()
}

/// Bytes of floats.
pub fn float_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Bytes of doubles.
pub fn double_bytes(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Bytes of words.
pub fn word_bytes(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Words of bytes; what is left over at the end is dropped.
pub fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks().0.iter().map(|c| u32::from_le_bytes(*c))
}

/// What a result must be.
#[derive(Clone, Debug)]
pub enum Expected {
    /// These words.
    Words(Vec<u32>),
    /// These floats, each within so much of its size or of 1, whichever is larger.
    Floats(Vec<f32>, f32),
    /// These words, but for a share of them.
    MostWords(Vec<u32>, f64),
    /// One float, within so much.
    Near(f64, f64),
    /// These doubles, each within so much of its size or of 1, whichever is larger.
    Doubles(Vec<f64>, f64),
    /// These halves, each within so much of its size, and a unit of the least ones.
    Halves(Vec<f64>, f64),
}

impl Expected {
    /// These floats to the last bit.
    pub fn exactly(values: &[f32]) -> Expected {
        Expected::Words(values.iter().map(|v| v.to_bits()).collect())
    }

    /// Compares a result.
    ///
    /// # Errors
    /// A sentence about the first difference.
    pub fn check(&self, got: &[u8]) -> Result<(), String> {
        let n = match self {
            Expected::Words(w) | Expected::MostWords(w, _) => w.len(),
            Expected::Floats(f, _) => f.len(),
            Expected::Doubles(f, _) | Expected::Halves(f, _) => f.len(),
            Expected::Near(..) => 1,
        };
        let bytes = match self {
            Expected::Doubles(..) => 8 * n,
            Expected::Halves(..) => 2 * n,
            _ => 4 * n,
        };
        if got.len() != bytes {
            return Err(format!("{} bytes of result instead of {bytes}", got.len()));
        }
        let told = |i: usize, want: String, got: String| Err(format!("element {i} is {got} instead of {want}"));
        match self {
            Expected::Words(want) => match words(got).zip(want).position(|(g, w)| g != *w) {
                Some(i) => {
                    let g = words(got).nth(i).unwrap_or_default();
                    told(i, format!("{:#010x}", want[i]), format!("{g:#010x}"))
                }
                None => Ok(()),
            },
            Expected::Floats(want, part) => {
                for (i, (g, w)) in words(got).map(f32::from_bits).zip(want).enumerate() {
                    let near = (g - w).abs() <= part * w.abs().max(1.0);
                    if !near {
                        return told(i, w.to_string(), g.to_string());
                    }
                }
                Ok(())
            }
            Expected::Doubles(want, part) => {
                for (i, (g, w)) in got.as_chunks().0.iter().map(|c| f64::from_le_bytes(*c)).zip(want).enumerate() {
                    let near = (g - w).abs() <= part * w.abs().max(1.0);
                    if !near {
                        return told(i, w.to_string(), g.to_string());
                    }
                }
                Ok(())
            }
            Expected::Halves(want, part) => {
                let halves = got.as_chunks().0.iter().map(|c| half::f16::from_le_bytes(*c).to_f64());
                for (i, (g, w)) in halves.zip(want).enumerate() {
                    let near = (g - w).abs() <= part * w.abs() + 0.5_f64.powi(24);
                    if !near {
                        return told(i, w.to_string(), g.to_string());
                    }
                }
                Ok(())
            }
            Expected::MostWords(want, share) => {
                let wrong = words(got).zip(want).filter(|(g, w)| g != *w).count();
                let most = share * n as f64;
                if wrong as f64 > most {
                    return Err(format!("{wrong} of {n} elements differ, at most {most:.0} may"));
                }
                Ok(())
            }
            Expected::Near(want, within) => {
                let g = f64::from(words(got).map(f32::from_bits).next().unwrap_or(f32::NAN));
                let near = (g - want).abs() <= *within;
                if near { Ok(()) } else { told(0, format!("{want} within {within}"), g.to_string()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_found() {
        let bytes = float_bytes(&[1.0, 2.0]);
        assert_eq!(Expected::exactly(&[1.0, 2.0]).check(&bytes), Ok(()));
        assert!(Expected::exactly(&[1.0, 2.5]).check(&bytes).unwrap_err().starts_with("element 1"));
        assert!(Expected::exactly(&[1.0]).check(&bytes).unwrap_err().contains("8 bytes"));
        assert_eq!(Expected::Floats(vec![1.0, 2.001], 1e-3).check(&bytes), Ok(()));
        assert!(Expected::Floats(vec![1.0, f32::NAN], 1e-3).check(&bytes).is_err());
        assert!(Expected::MostWords(vec![0, 2.0_f32.to_bits()], 0.4).check(&bytes).is_err());
        assert_eq!(Expected::MostWords(vec![0, 2.0_f32.to_bits()], 0.5).check(&bytes), Ok(()));
        assert_eq!(Expected::Near(1.1, 0.2).check(&bytes[..4]), Ok(()));
        let doubles = double_bytes(&[1.0, 2.0]);
        assert_eq!(Expected::Doubles(vec![1.0, 2.0], 0.0).check(&doubles), Ok(()));
        assert!(Expected::Doubles(vec![1.0, 2.001], 1e-4).check(&doubles).is_err());
        let halves: Vec<u8> = [1.0, 0.5].iter().flat_map(|v| half::f16::from_f64(*v).to_le_bytes()).collect();
        assert_eq!(Expected::Halves(vec![1.0, 0.5], 0.0).check(&halves), Ok(()));
        assert!(Expected::Halves(vec![1.0, 0.51], 1e-3).check(&halves).is_err());
    }
}
