//! Threefry-2x32 with 20 rounds: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011.

/// Rotations of rounds 0 to 7; they repeat.
const TURNS: [u32; 8] = [13, 15, 26, 6, 17, 29, 16, 24];

/// Two words from a counter and a key.
pub fn threefry2x32(counter: [u32; 2], key: [u32; 2]) -> [u32; 2] {
    let keys = [key[0], key[1], 0x1bd1_1bda ^ key[0] ^ key[1]];
    let mut x = [counter[0].wrapping_add(keys[0]), counter[1].wrapping_add(keys[1])];
    for round in 0..20 {
        x[0] = x[0].wrapping_add(x[1]);
        x[1] = x[1].rotate_left(TURNS[round % 8]) ^ x[0];
        if round % 4 == 3 {
            let s = round / 4 + 1;
            x[0] = x[0].wrapping_add(keys[s % 3]);
            x[1] = x[1].wrapping_add(keys[(s + 1) % 3]).wrapping_add(super::data::n32(s));
        }
    }
    x
}

/// A float in [0, 1) from the upper 23 bits of a word.
pub fn unit_float(word: u32) -> f32 {
    f32::from_bits(word >> 9 | 0x3f80_0000) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_answers() {
        // From the known-answer file of the authors' library Random123.
        assert_eq!(threefry2x32([0; 2], [0; 2]), [0x6b20_0159, 0x99ba_4efe]);
        assert_eq!(threefry2x32([!0; 2], [!0; 2]), [0x1cb9_96fc, 0xbb00_2be7]);
        assert_eq!(threefry2x32([0x243f_6a88, 0x85a3_08d3], [0x1319_8a2e, 0x0370_7344]), [0xc492_3a9c, 0x483d_f7a0]);
    }
}
