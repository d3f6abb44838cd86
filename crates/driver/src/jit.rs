//! Options of loading and linking: numbers and values that a program passes in two arrays.

use crate::code::{Code, Result};
use crate::host::HostMemory;

/// What of them has a meaning here. Values are the places of the options in the program's array, so that sizes can be written back.
#[derive(Clone, Copy, Default, Debug)]
pub struct Options {
    info: Buffer,
    error: Buffer,
}

/// A buffer for text.
#[derive(Clone, Copy, Default, Debug)]
struct Buffer {
    address: u64,
    bytes: u64,
    /// Where the number of bytes that were written goes.
    size_at: u64,
}

/// Numbers of options.
const INFO: u32 = 3;
const INFO_SIZE: u32 = 4;
const ERROR: u32 = 5;
const ERROR_SIZE: u32 = 6;
const WALL_TIME: u32 = 2;
const LAST: u32 = 35;

impl Options {
    /// Reads `count` options from two arrays of the program.
    ///
    /// # Errors
    /// An array is missing, or an option is unknown.
    pub fn read(host: &dyn HostMemory, count: u32, numbers: u64, values: u64) -> Result<Options> {
        let mut options = Options::default();
        if count == 0 {
            return Ok(options);
        }
        if numbers == 0 || values == 0 {
            return Err(Code::INVALID_VALUE);
        }
        for i in 0..u64::from(count) {
            let mut number = [0; 4];
            host.read(numbers + 4 * i, 4, &mut |b| number.copy_from_slice(b));
            let at = values + 8 * i;
            let mut value = [0; 8];
            host.read(at, 8, &mut |b| value.copy_from_slice(b));
            // Sizes are 32 bits, put where an address has its place.
            let (value, size) = (u64::from_le_bytes(value), u64::from_le_bytes(value) & 0xffff_ffff);
            match u32::from_le_bytes(number) {
                INFO => options.info.address = value,
                INFO_SIZE => (options.info.bytes, options.info.size_at) = (size, at),
                ERROR => options.error.address = value,
                ERROR_SIZE => (options.error.bytes, options.error.size_at) = (size, at),
                WALL_TIME => host.write(at, 4, &mut |b| b.fill(0)),
                0..=LAST => {}
                _ => return Err(Code::INVALID_VALUE),
            }
        }
        Ok(options)
    }

    /// Writes both logs, cut to their buffers, with a NUL each, and says how long they are.
    pub fn write(&self, host: &dyn HostMemory, info: &str, error: &str) {
        for (buffer, text) in [(&self.info, info), (&self.error, error)] {
            let room = usize::try_from(buffer.bytes).unwrap_or(0);
            let mut written = 0_u32;
            if buffer.address != 0 && room > 0 {
                let end = text.floor_char_boundary(room - 1);
                let bytes = &text.as_bytes()[..end];
                host.write(buffer.address, end + 1, &mut |to| {
                    to[..end].copy_from_slice(bytes);
                    to[end] = 0;
                });
                written = u32::try_from(end).unwrap_or(0);
            }
            if buffer.size_at != 0 {
                host.write(buffer.size_at, 4, &mut |to| to.copy_from_slice(&written.to_le_bytes()));
            }
        }
    }
}
