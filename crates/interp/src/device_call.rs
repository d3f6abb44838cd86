//! Calls of CUDA's device runtime: arguments are read and results written here, what they mean is the business of who runs launches.

use handloom_audit::Before;
use handloom_ir::simt::DeviceCall;
use handloom_ir::simt::device_call::Part;

use crate::arguments::{Effect, Refused, read, write};
use crate::memory::{Asked, Memory};

/// Calls a function in one lane, whose arguments lie at `block`; `word` is the size of a pointer in bytes. `before`: what comes before what it begins.
///
/// # Errors
/// The access that is not allowed.
pub fn call(
    which: (DeviceCall, bool),
    mem: &mut dyn Memory,
    block: u64,
    word: u32,
    thread: u32,
    before: Option<Before>,
) -> Result<Effect, Refused> {
    let (call, per_thread) = which;
    let mut at = block;
    let mut args = Vec::new();
    for part in call.params() {
        let (size, align) = part.layout(word);
        at = at.next_multiple_of(u64::from(align));
        match part {
            Part::Word | Part::Int => args.push(read(mem, at, size)?),
            Part::Dim3 => {
                for i in 0..3 {
                    args.push(read(mem, at + 4 * i, 4)?);
                }
            }
        }
        at += u64::from(size);
    }
    let (size, align) = call.result().layout(word);
    let answer = mem.device_call(&Asked { call, per_thread, args, thread, before });
    if let Some((to, bytes, value)) = answer.out {
        write(mem, to, bytes, value)?;
    }
    write(mem, at.next_multiple_of(u64::from(align)), size, answer.result)?;
    Ok(Effect { fresh: answer.fresh, written: answer.out.map(|(to, bytes, _)| (to, bytes)) })
}

/// Bytes of the block of a call: its arguments and its result.
pub(crate) fn block_bytes(call: DeviceCall, word: u32) -> u64 {
    let parts = call.params().iter().copied().chain(std::iter::once(call.result()));
    let end = parts.fold(0, |at: u32, part| {
        let (size, align) = part.layout(word);
        at.next_multiple_of(align) + size
    });
    end.into()
}
