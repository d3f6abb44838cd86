//! The object of an `mbarrier`: 64 bits that count arrivals and bytes.
//!
//! From the lowest bit: 20 bits of arrivals that are pending in this phase, 20 bits of arrivals that each phase expects, the parity of the
//! phase, and 23 bits of bytes that are under way, in two's complement. What an instruction does is one addition to the word, and the
//! next phase begins where that leaves neither arrivals nor bytes to wait for. The opaque state of a thread is the word as it was.
//!
//! Choice: the manual leaves the layout open, and what happens to a count that leaves its range.
//!
//! # PTX ISA
//! Parallel Synchronization and Communication Instructions: mbarrier.

/// Bits of a count of arrivals.
pub const COUNT_BITS: u32 = 20;
/// All ones in the pending count.
pub const PENDING: u64 = (1 << COUNT_BITS) - 1;
/// Bit of the phase's parity.
pub const PHASE_BIT: u32 = 2 * COUNT_BITS;
/// Lowest bit of the bytes under way.
pub const BYTES_BIT: u32 = PHASE_BIT + 1;

/// The word after an instruction that adds `delta` to it.
pub fn step(old: u64, delta: u64) -> u64 {
    let new = old.wrapping_add(delta);
    if new & PENDING != 0 || new >> BYTES_BIT != 0 {
        return new;
    }
    (new ^ 1 << PHASE_BIT) | (new >> COUNT_BITS & PENDING)
}

/// Whether the bytes under way are more than an object can count: the manual lets them go from `-(2^20 - 1)` to `2^20 - 1`.
pub fn has_too_many_bytes(word: u64) -> bool {
    let bytes = word.cast_signed() >> BYTES_BIT;
    bytes.unsigned_abs() >= 1 << COUNT_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn init(count: u64) -> u64 {
        count | count << COUNT_BITS
    }

    fn parity(word: u64) -> u64 {
        word >> PHASE_BIT & 1
    }

    #[test]
    fn the_last_arrival_begins_the_next_phase() {
        let one = step(init(2), 1_u64.wrapping_neg());
        assert_eq!((one & PENDING, parity(one)), (1, 0));
        let two = step(one, 1_u64.wrapping_neg());
        assert_eq!((two & PENDING, parity(two)), (2, 1));
        assert_eq!(step(step(two, 1_u64.wrapping_neg()), 1_u64.wrapping_neg()), init(2));
    }

    #[test]
    fn bytes_hold_a_phase_open() {
        let waits = step(init(1), (256 << BYTES_BIT) - 1);
        assert_eq!((waits & PENDING, parity(waits)), (0, 0));
        let done = step(waits, (256_u64 << BYTES_BIT).wrapping_neg());
        assert_eq!((done & PENDING, parity(done)), (1, 1));
    }

    #[test]
    fn bytes_may_come_before_they_are_expected() {
        let early = step(init(1), (64_u64 << BYTES_BIT).wrapping_neg());
        assert_eq!((early & PENDING, parity(early)), (1, 0));
        assert_eq!(step(early, (64 << BYTES_BIT) - 1), init(1) | 1 << PHASE_BIT);
    }

    #[test]
    fn bytes_have_a_range() {
        let most = step(init(1), ((1 << 20) - 1) << BYTES_BIT);
        assert!(!has_too_many_bytes(most) && has_too_many_bytes(step(most, 1 << BYTES_BIT)));
        let least = step(init(1), (((1_u64 << 20) - 1) << BYTES_BIT).wrapping_neg());
        assert!(!has_too_many_bytes(least) && has_too_many_bytes(step(least, (1_u64 << BYTES_BIT).wrapping_neg())));
    }

    #[test]
    fn who_drops_out_is_expected_no_more() {
        let dropped = step(init(3), (1_u64 | 1 << COUNT_BITS).wrapping_neg());
        assert_eq!((dropped & PENDING, dropped >> COUNT_BITS & PENDING), (2, 2));
    }
}
