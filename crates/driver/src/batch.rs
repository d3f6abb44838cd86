//! Words in memory that a stream writes, or waits for until the host or other work writes them.

use handloom_runtime::{DeviceMemory, StreamError};

use crate::code::{Code, Result};
use crate::context::Ctx;
use crate::process::process;
use crate::stream::Stream;

/// What a word is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Test {
    /// It is not less, as numbers that wrap.
    NotLess,
    /// It is equal.
    Equal,
    /// They have a bit in common.
    And,
    /// Some bit is in neither.
    Nor,
}

impl Test {
    /// A test by its number.
    ///
    /// # Errors
    /// There is none.
    pub fn of(number: u32) -> Result<Test> {
        Ok(match number {
            0 => Test::NotLess,
            1 => Test::Equal,
            2 => Test::And,
            3 => Test::Nor,
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    /// Its number.
    pub fn number(self) -> u32 {
        match self {
            Test::NotLess => 0,
            Test::Equal => 1,
            Test::And => 2,
            Test::Nor => 3,
        }
    }

    fn holds(self, word: Word, now: u64) -> bool {
        let bits = 8 * word.bytes();
        match self {
            // The sign of the difference at the width of the word.
            Test::NotLess => now.wrapping_sub(word.value) >> (bits - 1) & 1 == 0,
            Test::Equal => now == word.value,
            Test::And => now & word.value != 0,
            Test::Nor => now | word.value != u64::MAX >> (64 - bits),
        }
    }
}

/// A word in memory and a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word {
    /// Where.
    pub address: u64,
    /// 8 bytes, not 4.
    pub is_wide: bool,
    /// The value.
    pub value: u64,
}

impl Word {
    fn bytes(&self) -> u64 {
        if self.is_wide { 8 } else { 4 }
    }

    /// A word that lies in memory of a device.
    ///
    /// # Errors
    /// It is not aligned, or is not there. Memory of the process that was only registered is not supported.
    pub fn new(address: u64, is_wide: bool, value: u64) -> Result<Word> {
        let value = if is_wide { value } else { value & u64::from(u32::MAX) };
        let word = Word { address, is_wide, value };
        if address == 0 || !address.is_multiple_of(word.bytes()) {
            return Err(Code::INVALID_VALUE);
        }
        let process = process()?;
        match process.gpu_of(address) {
            Some(gpu) => gpu.device.memory().check(address, word.bytes())?,
            None if process.memory.is_registered(address, word.bytes()) => return Err(Code::NOT_SUPPORTED),
            None => return Err(Code::INVALID_VALUE),
        }
        Ok(word)
    }

    /// Works on the memory of the device where it lies.
    fn on<T>(
        self,
        work: impl FnOnce(&DeviceMemory) -> std::result::Result<T, StreamError>,
        gone: T,
    ) -> std::result::Result<T, StreamError> {
        match process().ok().and_then(|process| process.gpu_of(self.address)) {
            Some(gpu) => work(gpu.device.memory()),
            None => Ok(gone),
        }
    }

    fn write(self) -> std::result::Result<(), StreamError> {
        let bytes = self.value.to_le_bytes();
        self.on(|memory| Ok(memory.write(self.address, if self.is_wide { &bytes } else { &bytes[..4] })?), ())
    }

    fn is_there(self, test: Test) -> std::result::Result<bool, StreamError> {
        let read = |memory: &DeviceMemory| {
            let mut now = [0; 8];
            memory.read(self.address, if self.is_wide { &mut now } else { &mut now[..4] })?;
            Ok(test.holds(self, u64::from_le_bytes(now)))
        };
        self.on(read, true)
    }
}

/// Something that a stream does with a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemOp {
    /// Waits until it compares so.
    Wait(Word, Test),
    /// Writes it.
    Write(Word),
    /// A barrier: there is nothing to do, since a stream does one thing after the other.
    Barrier,
}

impl MemOp {
    /// Puts it at the end of a stream.
    ///
    /// # Errors
    /// The context failed.
    pub fn enqueue(self, ctx: &Ctx, stream: &Stream) -> Result {
        match self {
            MemOp::Barrier => Ok(()),
            MemOp::Write(word) => ctx.result(stream.rt().memory(move |_| word.write())),
            MemOp::Wait(word, test) => {
                let quiet = process()?.config.quiet;
                ctx.result(stream.rt().wait_until(move |_| word.is_there(test), quiet))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_those_of_the_interface() {
        let holds =
            |test: u32, is_wide, value, now| Test::of(test).unwrap().holds(Word { address: 8, is_wide, value }, now);
        assert!(holds(0, false, 5, 5) && holds(0, false, 5, 6) && !holds(0, false, 5, 4));
        // Numbers wrap at the width of the word.
        assert!(holds(0, false, 0xffff_fff0, 2) && !holds(0, false, 2, 0xffff_fff0));
        assert!(!holds(0, true, 0xffff_fff0, 2) && holds(0, true, u64::MAX, 0));
        assert!(holds(1, true, 7, 7) && !holds(1, true, 7, 1 << 40 | 7));
        assert!(holds(2, false, 6, 2) && !holds(2, false, 6, 9));
        assert!(holds(3, false, 6, 9) && !holds(3, false, 0xffff_0000, 0xffff));
        assert!(holds(3, true, 0xffff_0000, 0xffff));
        assert!(Test::of(4).is_err());
    }
}
