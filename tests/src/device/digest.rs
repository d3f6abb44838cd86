//! What is kept of bytes that may be many: a number of 64 bits. `tests/device/ask.py` computes the same.

/// Formats of floats whose NaNs may be made one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nans {
    /// No floats.
    None,
    /// `.f16`, and pairs of them.
    F16,
    /// `.bf16`, and pairs of them.
    Bf16,
    /// `.f32` and `.tf32`.
    F32,
    /// `.f64`.
    F64,
}

impl Nans {
    /// That of a type's word.
    pub fn of_word(word: &str) -> Nans {
        match word {
            "f16" | "f16x2" => Nans::F16,
            "bf16" | "bf16x2" => Nans::Bf16,
            "f32" | "f32x2" | "tf32" => Nans::F32,
            "f64" => Nans::F64,
            _ => Nans::None,
        }
    }

    /// As jobs name it.
    pub fn name(self) -> &'static str {
        match self {
            Nans::None => "none",
            Nans::F16 => "f16",
            Nans::Bf16 => "bf16",
            Nans::F32 => "f32",
            Nans::F64 => "f64",
        }
    }

    /// Bytes of an element, and the infinity: what is greater without its sign is a NaN.
    fn format(self) -> Option<(usize, u64)> {
        match self {
            Nans::None => None,
            Nans::F16 => Some((2, 0x7c00)),
            Nans::Bf16 => Some((2, 0x7f80)),
            Nans::F32 => Some((4, 0x7f80_0000)),
            Nans::F64 => Some((8, 0x7ff0_0000_0000_0000)),
        }
    }

    /// The bytes with all NaNs the canonical one, which has all ones after its sign.
    pub fn calm(self, bytes: &[u8]) -> Vec<u8> {
        let mut out = bytes.to_vec();
        let Some((size, infinity)) = self.format() else { return out };
        let all = (1_u64 << (8 * size - 1)) - 1;
        for element in out.chunks_exact_mut(size) {
            if word(element) & all > infinity {
                element.copy_from_slice(&all.to_le_bytes()[..size]);
            }
        }
        out
    }
}

/// Up to eight bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, b| word << 8 | u64::from(*b))
}

/// The last steps of SplitMix64: each bit of the result depends on each of the argument.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number for bytes. Words of eight bytes are mixed with their place, so that their sum can be computed in any order.
pub fn digest(bytes: &[u8]) -> u64 {
    let words = (1_u64..).zip(bytes.chunks(8)).map(|(i, chunk)| mix(word(chunk) ^ mix(i)));
    words.fold(mix(bytes.len() as u64), u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_lengths_count() {
        assert_ne!(digest(&[1, 0, 0, 0, 0, 0, 0, 0, 2]), digest(&[2, 0, 0, 0, 0, 0, 0, 0, 1]));
        assert_ne!(digest(&[1]), digest(&[1, 0]));
    }

    #[test]
    fn nans_are_one_value_and_nothing_else_is_changed() {
        let bits = [0x7f80_0001_u32, 0xffc0_0000, 0xff80_0000, 0x7f7f_ffff].map(u32::to_le_bytes).concat();
        let calm = [0x7fff_ffff_u32, 0x7fff_ffff, 0xff80_0000, 0x7f7f_ffff].map(u32::to_le_bytes).concat();
        assert_eq!(Nans::F32.calm(&bits), calm);
        assert_eq!(Nans::None.calm(&bits), bits);
    }
}
