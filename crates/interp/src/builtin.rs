//! The functions that programs find on the device: `vprintf`, `__assertfail`, `malloc`, `free`.
//!
//! Arguments lie in a block at natural alignment, the result after them.

use handloom_audit::init::Decides;
use handloom_ir::simt::{Builtin, Inst};
use handloom_ir::trap::{AccessKind, Trap, TrapKind};
use handloom_ir::types::StateSpace;

use crate::cta::{Cta, Group};
use crate::memory::Memory;
use crate::printf;

/// An access of a built-in function that is not allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Which rule was broken.
    pub kind: TrapKind,
    /// The address that was accessed.
    pub addr: u64,
    /// Bytes of the access; 0 for `free` of an address that was not allocated.
    pub bytes: u32,
    /// What was tried.
    pub access: AccessKind,
}

impl<'m> Cta<'m> {
    /// Calls a built-in function in each lane.
    pub(crate) fn builtin(
        &mut self,
        inst: &'m Inst,
        builtin: Builtin,
        group: Group,
        mem: &mut dyn Memory,
    ) -> Result<(), Box<Trap>> {
        if builtin == Builtin::Assertfail {
            return Err(self.assert_fail(inst, group, mem));
        }
        let word = self.pointer_bytes();
        for t in group.threads() {
            let block = self.get(t, inst.src[0]);
            self.touched = true;
            if self.is_shaded() {
                self.builtin_decides(inst, builtin, t, mem);
            }
            call(builtin, mem, block, word).map_err(|refused| self.refused(inst, t, &refused))?;
            let freed = (builtin == Builtin::Free).then(|| mem.read(block, word)).filter(|addr| *addr != 0);
            if let Some(addr) = freed {
                let who = self.who(t);
                self.tell(|audit, _| {
                    let Some(memory) = audit.memory() else { return };
                    let bytes = memory.find(addr).map_or(0, |block| block.bytes);
                    memory.free(addr, (inst.span, who));
                    audit.init().into_iter().for_each(|init| init.settle(addr, bytes));
                });
            }
            if builtin == Builtin::Malloc && self.audit.is_some() {
                // What others did there before was to other memory.
                let (bytes, addr) = (mem.read(block, word), mem.read(block + u64::from(word), word));
                let who = self.who(t);
                self.tell(|audit, _| {
                    audit.renew(addr, bytes);
                    if let Some(memory) = audit.memory().filter(|_| addr != 0) {
                        memory.allocate(addr, bytes, (inst.span, who));
                    }
                });
                self.with_init(|init| {
                    init.fill(block + u64::from(word), word.into());
                    if addr != 0 {
                        init.renew(addr, bytes);
                    }
                });
            }
            if builtin == Builtin::Vprintf {
                self.with_init(|init| init.fill(block + 2 * u64::from(word), 4));
            }
        }
        Ok(())
    }

    /// Arguments decide what a built-in function does.
    fn builtin_decides(&self, inst: &Inst, builtin: Builtin, t: usize, mem: &mut dyn Memory) {
        let (word, block) = (self.pointer_bytes(), self.get(t, inst.src[0]));
        let mut asked: Vec<(Decides, u64, u32)> = vec![(Decides::Operand, block, word)];
        if builtin == Builtin::Vprintf {
            asked.push((Decides::Operand, block + u64::from(word), word));
            let format = read(mem, block, word).ok().filter(|at| *at != 0);
            let places = format.and_then(|at| read_string(mem, at).ok()).map_or_else(Vec::new, |f| printf::places(&f));
            if let Ok(args) = read(mem, block + u64::from(word), word) {
                asked.extend(places.into_iter().map(|(at, bytes)| (Decides::Output, args + at, bytes)));
            }
        }
        let who = self.who(t);
        self.with_init(|init| {
            for (class, at, bytes) in asked {
                let shade = init.load(inst.span, who, at, bytes, (StateSpace::Local, None));
                init.decides(class, inst.span, who, shade);
            }
        });
    }

    /// Bytes of a pointer, and of `size_t`.
    fn pointer_bytes(&self) -> u32 {
        if self.module.address_size == 32 { 4 } else { 8 }
    }

    /// The trap of a failed assertion; its text is that of the first lane.
    fn assert_fail(&self, inst: &Inst, group: Group, mem: &mut dyn Memory) -> Box<Trap> {
        let first = group.threads().next().unwrap_or(0);
        let mut trap = self.trap_in(TrapKind::Assert, inst.span, group);
        trap.detail = assert_text(mem, self.get(first, inst.src[0]), self.pointer_bytes());
        trap
    }

    fn refused(&self, inst: &Inst, t: usize, refused: &Refused) -> Box<Trap> {
        let mut trap = self.trap_of(refused.kind, inst.span, std::iter::once(t));
        trap.address = Some(refused.addr);
        trap.bytes = refused.bytes;
        trap.access = Some(refused.access);
        trap.space = Some(StateSpace::Generic);
        trap
    }
}

/// Calls a function in one lane, whose arguments lie at `block`; `word` is the size of a pointer in bytes. `__assertfail` does nothing here: see
/// [`assert_text`].
///
/// # Errors
/// The access that is not allowed.
pub fn call(builtin: Builtin, mem: &mut dyn Memory, block: u64, word: u32) -> Result<(), Refused> {
    match builtin {
        Builtin::Vprintf => vprintf(mem, block, word),
        Builtin::Malloc => malloc(mem, block, word),
        Builtin::Free => free(mem, block, word),
        Builtin::Assertfail => Ok(()),
    }
}

/// The text of `__assertfail(message, file, line, function, char_size)` as C's `assert` prints it.
pub fn assert_text(mem: &mut dyn Memory, block: u64, word: u32) -> String {
    // A text that cannot be read does not hide the assertion.
    read_assertion(mem, block, word).unwrap_or_else(|_| "the text of the assertion cannot be read".into())
}

fn read_assertion(mem: &mut dyn Memory, block: u64, word: u32) -> Result<String, Refused> {
    let wide = u64::from(word);
    let message = string_at(mem, block, word)?;
    let file = string_at(mem, block + wide, word)?;
    let line = read(mem, block + 2 * wide, 4)?;
    let function = string_at(mem, block + (2 * wide + 4).next_multiple_of(wide), word)?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(format!("{}:{line}: {}: assertion `{}` failed", text(file), text(function), text(message)))
}

/// `vprintf(format, arguments)`: prints, and returns the number of arguments, or -1 without a format.
fn vprintf(mem: &mut dyn Memory, block: u64, word: u32) -> Result<(), Refused> {
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

/// `malloc(size)`.
fn malloc(mem: &mut dyn Memory, block: u64, word: u32) -> Result<(), Refused> {
    let size = read(mem, block, word)?;
    let addr = mem.allocate(size);
    write(mem, block + u64::from(word), word, addr)
}

/// `free(pointer)`.
fn free(mem: &mut dyn Memory, block: u64, word: u32) -> Result<(), Refused> {
    let addr = read(mem, block, word)?;
    if addr == 0 {
        return Ok(());
    }
    mem.release(addr).map_err(|why| Refused { kind: why.into(), addr, bytes: 0, access: AccessKind::Write })
}

fn read(mem: &mut dyn Memory, addr: u64, bytes: u32) -> Result<u64, Refused> {
    let refused = |why| Refused { kind: TrapKind::from(why), addr, bytes, access: AccessKind::Read };
    mem.check(addr, bytes, false).map_err(refused)?;
    Ok(mem.read(addr, bytes))
}

fn write(mem: &mut dyn Memory, addr: u64, bytes: u32, value: u64) -> Result<(), Refused> {
    let refused = |why| Refused { kind: TrapKind::from(why), addr, bytes, access: AccessKind::Write };
    mem.check(addr, bytes, true).map_err(refused)?;
    mem.write(addr, bytes, value);
    Ok(())
}

/// The bytes up to a NUL, without it.
fn read_string(mem: &mut dyn Memory, addr: u64) -> Result<Vec<u8>, Refused> {
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
fn string_at(mem: &mut dyn Memory, at: u64, word: u32) -> Result<Vec<u8>, Refused> {
    let addr = read(mem, at, word)?;
    if addr == 0 { Ok(Vec::new()) } else { read_string(mem, addr) }
}
