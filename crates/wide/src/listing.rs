//! Machine code as text: a line for each instruction, with the name that the encoder has for its form. (A formatter would be as large as the encoder.)

use std::fmt::Write;

use iced_x86::{Instruction, OpKind, Register, RoundingControl};

/// An instruction: its form and its operands. `place` is what a distance from the instruction pointer, or a jump, goes to.
pub(crate) fn line(i: &Instruction, place: Option<&str>) -> String {
    let mut text = String::new();
    if i.has_lock_prefix() {
        text.push_str("lock ");
    }
    let _ = write!(text, "{:?}", i.code());
    for n in 0..i.op_count() {
        text.push_str(if n == 0 { " " } else { ", " });
        text.push_str(&operand(i, n, place));
        if n == 0 && i.op_mask() != Register::None {
            let _ = write!(text, "{{{}}}", name(i.op_mask()));
        }
    }
    if i.rounding_control() != RoundingControl::None {
        let _ = write!(text, ", {:?}", i.rounding_control());
    }
    text
}

fn name(r: Register) -> String {
    format!("{r:?}").to_lowercase()
}

fn operand(i: &Instruction, n: u32, place: Option<&str>) -> String {
    match i.op_kind(n) {
        OpKind::Register => name(i.op_register(n)),
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => place.unwrap_or("?").to_owned(),
        OpKind::Memory => {
            let mut text = String::from("[");
            match (i.memory_base(), place) {
                (Register::RIP, Some(place)) => text.push_str(place),
                (base, _) => text.push_str(&name(base)),
            }
            if i.memory_index() != Register::None {
                let _ = write!(text, "+{}*{}", name(i.memory_index()), i.memory_index_scale());
            }
            let at = i.memory_displacement64().cast_signed();
            if at != 0 && i.memory_base() != Register::RIP {
                let _ = write!(text, "{at:+}");
            }
            text.push(']');
            if i.is_broadcast() {
                text.push_str("{1toN}");
            }
            text
        }
        _ => format!("{:#x}", i.immediate(n)),
    }
}
