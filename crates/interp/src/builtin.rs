//! The functions that programs find on the device: `vprintf`, `__assertfail`, `malloc`, `free`.
//!
//! Arguments lie in a block at natural alignment, the result after them.

use handloom_audit::Site;
use handloom_audit::init::Decides;
use handloom_ir::simt::{Builtin, Inst};
use handloom_ir::trap::{AccessKind, Trap, TrapKind};
use handloom_ir::types::StateSpace;

pub use crate::arguments::{Effect, Fresh, Refused};
use crate::arguments::{read, write};
use crate::cta::{Cta, Group};
use crate::device_call;
use crate::memory::Memory;
use crate::printf::{self, Format};

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
            // Of the device runtime each call says by its result what it did not like.
            let device = match builtin {
                Builtin::Device { call, .. } => Some(call),
                Builtin::Vprintf | Builtin::Malloc | Builtin::Free | Builtin::Assertfail => None,
            };
            if self.is_shaded() && device.is_none() {
                self.builtin_decides(inst, builtin, t, mem);
            }
            let thread = u32::try_from(t).unwrap_or(u32::MAX);
            let called = match builtin {
                Builtin::Device { call, per_thread } => {
                    let (mut before, who) = (None, self.who(t));
                    let site = Site { span: inst.span, ..Site::NONE };
                    self.tell(|audit, _| before = if call.begins() { audit.begins(who, site) } else { None });
                    device_call::call((call, per_thread), mem, block, word, thread, before)
                }
                Builtin::Vprintf | Builtin::Malloc | Builtin::Free | Builtin::Assertfail => {
                    call(builtin, mem, block, word, thread)
                }
            };
            let effect = called.map_err(|refused| self.refused(inst, t, &refused))?;
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
            if let Some((addr, bytes)) = effect.fresh {
                // What others did there before was to other memory.
                self.tell(|audit, _| audit.renew(addr, bytes));
            }
            if let (Builtin::Malloc, Some((addr, bytes))) = (builtin, effect.fresh) {
                let who = self.who(t);
                self.tell(|audit, _| {
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
            if let Some(call) = device {
                self.with_init(|init| {
                    init.fill(block, device_call::block_bytes(call, word));
                    if let Some((at, bytes)) = effect.written {
                        init.fill(at, bytes.into());
                    }
                });
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

/// Calls a function in one lane, whose arguments lie at `block`; `word` is the size of a pointer in bytes, `thread` the
/// linear number of its thread. `__assertfail` does nothing here: see
/// [`assert_text`].
///
/// # Errors
/// The access that is not allowed.
pub fn call(builtin: Builtin, mem: &mut dyn Memory, block: u64, word: u32, thread: u32) -> Result<Effect, Refused> {
    match builtin {
        Builtin::Vprintf => {
            let called = vprintf(mem, std::iter::once(((), block)), word);
            called.map(|()| Effect::default()).map_err(|((), refused)| refused)
        }
        Builtin::Malloc => malloc(mem, block, word).map(|fresh| Effect { fresh: Some(fresh), written: None }),
        Builtin::Free => free(mem, block, word).map(|()| Effect::default()),
        Builtin::Assertfail => Ok(Effect::default()),
        Builtin::Device { call, per_thread } => device_call::call((call, per_thread), mem, block, word, thread, None),
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

/// Calls `vprintf(format, arguments)` in lanes one after the other, whose arguments lie at the second of each pair, and prints what they have to say at once.
///
/// # Errors
/// The access that is not allowed, with its lane; those before it have printed.
pub fn vprintf<L>(mem: &mut dyn Memory, lanes: impl Iterator<Item = (L, u64)>, word: u32) -> Result<(), (L, Refused)> {
    let mut printing = Printing::default();
    let mut called = Ok(());
    for (lane, block) in lanes {
        called = printing.call(mem, block, word).map_err(|refused| (lane, refused));
        if called.is_err() {
            break;
        }
    }
    mem.output(&printing.text);
    called
}

/// What lanes that print have in common.
#[derive(Default)]
struct Printing {
    /// The format of the lane before, and its address: mostly that of all lanes.
    format: Option<(u64, Format)>,
    /// The arguments of a lane.
    args: Vec<u8>,
    /// What is to be printed.
    text: Vec<u8>,
}

impl Printing {
    /// Formats, and leaves the number of arguments as the result, or -1 without a format.
    fn call(&mut self, mem: &mut dyn Memory, block: u64, word: u32) -> Result<(), Refused> {
        let wide = u64::from(word);
        let format_at = read(mem, block, word)?;
        let args_at = read(mem, block + wide, word)?;
        let result = block + 2 * wide;
        if format_at == 0 {
            return write(mem, result, 4, u64::from(u32::MAX));
        }
        let format = match self.format.take().filter(|(at, _)| *at == format_at) {
            Some((_, format)) => format,
            None => Format::new(read_string(mem, format_at)?),
        };
        self.args.clear();
        read_bytes(mem, args_at, format.argument_bytes(), &mut self.args)?;
        let mut refused = None;
        let mut strings = |addr| match read_string(mem, addr) {
            Ok(text) => text,
            Err(why) => {
                refused = refused.take().or(Some(why));
                Vec::new()
            }
        };
        let before = self.text.len();
        let arguments = format.print(&self.args, &mut strings, &mut self.text);
        self.format = Some((format_at, format));
        if let Some(refused) = refused {
            self.text.truncate(before);
            return Err(refused);
        }
        write(mem, result, 4, u64::from(arguments))
    }
}

/// `malloc(size)`.
fn malloc(mem: &mut dyn Memory, block: u64, word: u32) -> Result<Fresh, Refused> {
    let size = read(mem, block, word)?;
    let addr = mem.allocate(size);
    write(mem, block + u64::from(word), word, addr)?;
    Ok((addr, size))
}

/// `free(pointer)`.
fn free(mem: &mut dyn Memory, block: u64, word: u32) -> Result<(), Refused> {
    let addr = read(mem, block, word)?;
    if addr == 0 {
        return Ok(());
    }
    mem.release(addr).map_err(|why| Refused { kind: why.into(), addr, bytes: 0, access: AccessKind::Write })
}

/// Bytes from an address on, put behind others.
fn read_bytes(mem: &mut dyn Memory, addr: u64, n: usize, to: &mut Vec<u8>) -> Result<(), Refused> {
    let may_all = u32::try_from(n).is_ok_and(|n| mem.check(addr, n, false).is_ok());
    let (mut at, mut left) = (addr, n);
    while left > 0 {
        let bytes = match left {
            8.. if may_all => 8,
            4.. if may_all => 4,
            _ => 1,
        };
        // Where not all of it may be read, the first byte that may not is named.
        let word = if may_all { mem.read(at, bytes) } else { read(mem, at, bytes)? };
        to.extend_from_slice(&word.to_le_bytes()[..bytes as usize]);
        at += u64::from(bytes);
        left -= bytes as usize;
    }
    Ok(())
}

/// The bytes up to a NUL, without it.
fn read_string(mem: &mut dyn Memory, addr: u64) -> Result<Vec<u8>, Refused> {
    let mut text = Vec::new();
    let mut at = addr;
    loop {
        // Eight at once, if all of them may be read.
        let bytes = if at.is_multiple_of(8) && mem.check(at, 8, false).is_ok() { 8 } else { 1 };
        let word = read(mem, at, bytes)?.to_le_bytes();
        let word = &word[..bytes as usize];
        match word.iter().position(|b| *b == 0) {
            Some(end) => {
                text.extend_from_slice(&word[..end]);
                return Ok(text);
            }
            None => text.extend_from_slice(word),
        }
        at += u64::from(bytes);
    }
}

/// The string whose address is stored at `at`; empty for a null pointer.
fn string_at(mem: &mut dyn Memory, at: u64, word: u32) -> Result<Vec<u8>, Refused> {
    let addr = read(mem, at, word)?;
    if addr == 0 { Ok(Vec::new()) } else { read_string(mem, addr) }
}
