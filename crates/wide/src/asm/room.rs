//! Memory that code is made in. It goes from function to function: the host gives new memory page by page, and growing it copies what is there, which together
//! took a twentieth of the time.

use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use super::operand::{Const, Label};

/// What is known of an operand when all code is there.
pub(super) enum Target {
    Label(Label),
    Const(Const, i32),
}

/// Four bytes that hold a distance from the end of their instruction.
pub(super) struct Fixup {
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) to: Target,
}

/// Memory for code, and for what is put in when all of it is there.
#[derive(Default)]
pub(super) struct Room {
    pub(super) code: Vec<u8>,
    pub(super) fixups: Vec<Fixup>,
}

/// Bytes of code that there is room for from the start, and for each instruction of the function: most need no more.
const LEAST: usize = 16 << 10;
pub(super) const BYTES_OF_ONE: usize = 192;
/// The same of AVX2.
pub(super) const BYTES_OF_ONE_NARROW: usize = 448;
/// Distances for each instruction.
const FIXUPS_OF_ONE: usize = 8;
/// Constants that there is room for from the start, at most.
pub(super) const MOST_CONSTANTS: usize = 96;

/// As many as functions were made at one time.
static KEPT: Mutex<Vec<Room>> = Mutex::new(Vec::new());

/// Memory for more bytes of code is given back to the host.
const MOST: usize = 1 << 20;

impl Room {
    /// For a function with so many instructions, each of so many bytes.
    pub(super) fn take(n: usize, bytes_of_one: usize) -> Room {
        let mut room = KEPT.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        room.code.reserve(LEAST.max(bytes_of_one * n));
        room.fixups.reserve(FIXUPS_OF_ONE * n);
        room
    }
}

/// Machine code, in memory that the code of a later function takes over.
pub struct MachineCode(Room);

impl MachineCode {
    /// The bytes that were made in a room.
    pub(super) fn of(room: Room) -> MachineCode {
        MachineCode(room)
    }
}

impl Deref for MachineCode {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.code
    }
}

impl std::fmt::Debug for MachineCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("MachineCode").field(&self.len()).finish()
    }
}

impl Drop for MachineCode {
    fn drop(&mut self) {
        let mut room = std::mem::take(&mut self.0);
        if room.code.capacity() <= MOST {
            room.code.clear();
            room.fixups.clear();
            KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(room);
        }
    }
}
