//! Selectors of video instructions: `.b0`, `.h1`, `.b7654`.

use handloom_ir::simt::Part;

/// Operands of a video instruction: the destination and three sources.
pub const N_MARKS: usize = 4;

/// What is written with an operand of a video instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mark {
    /// The selector after it.
    pub selector: Option<Selector>,
    /// `-` before it.
    pub negated: bool,
}

impl Mark {
    /// The part of the register that the selector names; all of it if there is none.
    pub fn part(self) -> Part {
        match self.selector {
            None => Part::Word,
            Some(Selector { bytes: true, digits, .. }) => Part::Byte(digits[0]),
            Some(Selector { bytes: false, digits, .. }) => Part::Half(digits[0]),
        }
    }

    /// A bit for each element that the selector names; `all` if there is none.
    pub fn mask(self, all: u8) -> u8 {
        self.selector.map_or(all, |s| s.digits[..usize::from(s.n)].iter().fold(0, |mask, digit| mask | 1 << digit))
    }

    /// The number of each element, the lowest first; `from` and those above it if there is no selector.
    pub fn elements(self, from: u8) -> [u8; 4] {
        self.selector.map_or([from, from + 1, from + 2, from + 3], |s| s.digits)
    }
}

/// A letter and digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Selector {
    /// `.b`, not `.h`.
    pub bytes: bool,
    /// The digits, the last one written first.
    pub digits: [u8; 4],
    /// How many digits are written.
    pub n: u8,
}

impl Selector {
    /// Reads a word without its dot; `None` if it is no selector of any instruction.
    pub fn parse(word: &str) -> Option<Selector> {
        let (bytes, text) = match (word.strip_prefix('b'), word.strip_prefix('h')) {
            (Some(text), _) => (true, text),
            (_, Some(text)) => (false, text),
            (None, None) => return None,
        };
        let n = u8::try_from(text.len()).ok().filter(|n| (1..=4).contains(n))?;
        let mut digits = [0; 4];
        for (to, digit) in digits.iter_mut().zip(text.bytes().rev()) {
            *to = digit.checked_sub(b'0').filter(|d| *d < 8)?;
        }
        Some(Selector { bytes, digits, n })
    }
}

/// Which selectors an operand takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Select {
    /// No selector.
    Nothing,
    /// One byte or half of a register.
    Part,
    /// Two of the four halves of two registers.
    Pair,
    /// Four of the eight bytes of two registers.
    Quad,
    /// The halves of the destination that are written.
    PairMask,
    /// The bytes of the destination that are written.
    QuadMask,
}

impl Select {
    /// Whether the operand takes a selector.
    pub fn takes(self, s: Selector) -> bool {
        let digits = &s.digits[..usize::from(s.n)];
        let below = |limit| digits.iter().all(|d| *d < limit);
        // As written, the digits of a mask descend.
        let ascend = digits.windows(2).all(|two| two[0] < two[1]);
        match self {
            Select::Nothing => false,
            Select::Part => s.n == 1 && below(if s.bytes { 4 } else { 2 }),
            Select::Pair => !s.bytes && s.n == 2 && below(4),
            Select::Quad => s.bytes && s.n == 4 && below(8),
            Select::PairMask => !s.bytes && below(2) && ascend,
            Select::QuadMask => s.bytes && below(4) && ascend,
        }
    }

    /// The selectors in words, as the manual writes them.
    pub fn expected(self) -> &'static str {
        match self {
            Select::Nothing => "no selector",
            Select::Part => "one of `.b0`, `.b1`, `.b2`, `.b3`, `.h0`, `.h1`",
            Select::Pair => "`.hxy` with two digits from 0 to 3",
            Select::Quad => "`.bxyzw` with four digits from 0 to 7",
            Select::PairMask => "one of `.h0`, `.h1`, `.h10`",
            Select::QuadMask => "`.b` and digits from 3 to 0, each at most once and in this order",
        }
    }
}
