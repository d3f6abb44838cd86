//! The functions that programs find on the device, by the same services as in the interpreter.

use handloom_diag::Span;
use handloom_interp::{Memory, printf};
use handloom_ir::simt::Builtin;
use handloom_ir::trap::{AccessKind, TrapKind};
use handloom_ir::types::StateSpace;

use super::Call;
use super::memory::lanes;
use crate::memory::KernelMemory;

/// An access of a built-in function that is not allowed.
struct Refused {
    kind: TrapKind,
    addr: u64,
    bytes: u32,
    access: AccessKind,
}

pub(super) fn builtin(c: &mut Call<'_>) -> u64 {
    let (which, block, span) = c.tables.builtins[c.site];
    let word = if c.host.memory.module().ir.address_size == 32 { 4 } else { 8 };
    if which == Builtin::Assertfail {
        let first = c.mask.trailing_zeros().min(31) as usize;
        let text = assert_text(&mut c.host.memory, c.ctx.read(block, first), word);
        let mut trap = c.host.trap_of(TrapKind::Assert, span, c.warp(), c.mask);
        // A text that cannot be read does not hide the assertion.
        trap.detail = text.unwrap_or_else(|_| "the text of the assertion cannot be read".into());
        c.host.trap = Some(trap);
        return 0;
    }
    c.touched();
    for lane in lanes(c.mask) {
        let at = c.ctx.read(block, lane);
        let memory = &mut c.host.memory;
        let done = match which {
            Builtin::Vprintf => vprintf(memory, at, word),
            Builtin::Malloc => malloc(memory, at, word),
            Builtin::Free => free(memory, at, word),
            Builtin::Assertfail => Ok(()),
        };
        if let Err(refused) = done {
            refuse(c, span, lane, &refused);
            return 0;
        }
    }
    1
}

fn refuse(c: &mut Call<'_>, span: Span, lane: usize, refused: &Refused) {
    let mut trap = c.host.trap_of(refused.kind, span, c.warp(), 1 << lane);
    trap.address = Some(refused.addr);
    trap.bytes = refused.bytes;
    trap.access = Some(refused.access);
    trap.space = Some(StateSpace::Generic);
    c.host.trap = Some(trap);
}

/// `__assertfail(message, file, line, function, char_size)` as C's `assert` prints it.
fn assert_text(mem: &mut KernelMemory, block: u64, word: u32) -> Result<String, Refused> {
    let wide = u64::from(word);
    let message = string_at(mem, block, word)?;
    let file = string_at(mem, block + wide, word)?;
    let line = read(mem, block + 2 * wide, 4)?;
    let function = string_at(mem, block + (2 * wide + 4).next_multiple_of(wide), word)?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(format!("{}:{line}: {}: assertion `{}` failed", text(file), text(function), text(message)))
}

/// `vprintf(format, arguments)`: prints, and returns the number of arguments, or -1 without a format.
fn vprintf(mem: &mut KernelMemory, block: u64, word: u32) -> Result<(), Refused> {
    let wide = u64::from(word);
    let format_at = read(mem, block, word)?;
    let args_at = read(mem, block + wide, word)?;
    let result = block + 2 * wide;
    if format_at == 0 {
        return write(mem, result, 4, u64::from(u32::MAX));
    }
    let format = read_string(mem, format_at)?;
    let mut args = Vec::new();
    for (_, at) in (0..printf::argument_bytes(&format)).zip(args_at..) {
        args.extend(read(mem, at, 1)?.to_le_bytes().first());
    }
    let mut refused = None;
    let printed = printf::print(&format, &args, &mut |addr| match read_string(mem, addr) {
        Ok(text) => text,
        Err(why) => {
            refused = refused.take().or(Some(why));
            Vec::new()
        }
    });
    if let Some(refused) = refused {
        return Err(refused);
    }
    mem.output(&printed.text);
    write(mem, result, 4, u64::from(printed.arguments))
}

fn malloc(mem: &mut KernelMemory, block: u64, word: u32) -> Result<(), Refused> {
    let size = read(mem, block, word)?;
    let addr = mem.allocate(size);
    write(mem, block + u64::from(word), word, addr)
}

fn free(mem: &mut KernelMemory, block: u64, word: u32) -> Result<(), Refused> {
    let addr = read(mem, block, word)?;
    if addr == 0 {
        return Ok(());
    }
    mem.release(addr).map_err(|why| Refused { kind: why.into(), addr, bytes: 0, access: AccessKind::Write })
}

fn read(mem: &mut KernelMemory, addr: u64, bytes: u32) -> Result<u64, Refused> {
    let refused = |why| Refused { kind: TrapKind::from(why), addr, bytes, access: AccessKind::Read };
    mem.check(addr, bytes, false).map_err(refused)?;
    Ok(mem.read(addr, bytes))
}

fn write(mem: &mut KernelMemory, addr: u64, bytes: u32, value: u64) -> Result<(), Refused> {
    let refused = |why| Refused { kind: TrapKind::from(why), addr, bytes, access: AccessKind::Write };
    mem.check(addr, bytes, true).map_err(refused)?;
    mem.write(addr, bytes, value);
    Ok(())
}

/// The bytes up to a NUL, without it.
fn read_string(mem: &mut KernelMemory, addr: u64) -> Result<Vec<u8>, Refused> {
    let mut text = Vec::new();
    for at in addr.. {
        match read(mem, at, 1)?.to_le_bytes() {
            [0, ..] => break,
            [byte, ..] => text.push(byte),
        }
    }
    Ok(text)
}

/// The string whose address is stored at `at`; empty for a null pointer.
fn string_at(mem: &mut KernelMemory, at: u64, word: u32) -> Result<Vec<u8>, Refused> {
    let addr = read(mem, at, word)?;
    if addr == 0 { Ok(Vec::new()) } else { read_string(mem, addr) }
}
