//! `printf` against texts recorded from a C library, and the calls of `vprintf`, `malloc`, `free` and `__assertfail`.

use crate::common::*;
use handloom_interp::builtin::vprintf;
use handloom_interp::printf::{argument_bytes, format_printf, print};
use handloom_interp::{Cta, Status};
use handloom_ir::simt::*;
use handloom_ir::trap::TrapKind;
use handloom_ir::types::*;
use smallvec::smallvec;

#[test]
fn numbers_are_printed_as_c_does() {
    for case in include_str!("printf_cases.txt").lines() {
        let [format, kind, bits, text] = case.split('\t').collect::<Vec<_>>()[..] else {
            panic!("a case has four parts: {case:?}")
        };
        let bits = u64::from_str_radix(bits, 16).unwrap();
        let args = &bits.to_le_bytes()[..if kind == "int" { 4 } else { 8 }];
        assert_eq!(argument_bytes(format.as_bytes()), args.len(), "{case:?}");
        let got = format_printf(format.as_bytes(), args, &mut |_| panic!("no string"));
        assert_eq!(String::from_utf8(got).unwrap(), text, "{case:?}");
    }
}

/// Formats with arguments of 4 bytes (`Ok`) and 8 bytes (`Err`), placed by alignment; strings are at 100 and 200.
fn formatted(format: &str, args: &[Result<u32, u64>]) -> (String, u32) {
    let mut buffer = Vec::new();
    for arg in args {
        match arg {
            Ok(word) => buffer.extend(word.to_le_bytes()),
            Err(wide) => {
                buffer.resize(buffer.len().next_multiple_of(8), 0xee);
                buffer.extend(wide.to_le_bytes());
            }
        }
    }
    assert_eq!(argument_bytes(format.as_bytes()), buffer.len());
    let mut strings = |addr| match addr {
        100 => b"hello".to_vec(),
        200 => Vec::new(),
        other => panic!("no string at {other}"),
    };
    let printed = print(format.as_bytes(), &buffer, &mut strings);
    (String::from_utf8(printed.text).unwrap(), printed.arguments)
}

#[test]
fn arguments_lie_at_their_alignment() {
    let one = 1.0_f64.to_bits();
    assert_eq!(formatted("%d %f %d %lld\n", &[Ok(1), Err(one), Ok(2), Err(3)]), ("1 1.000000 2 3\n".into(), 4));
    assert_eq!(formatted("no argument 100%%", &[]), ("no argument 100%".into(), 0));
}

#[test]
fn strings() {
    assert_eq!(formatted("[%s]", &[Err(100)]).0, "[hello]");
    assert_eq!(formatted("[%s]", &[Err(200)]).0, "[]");
    assert_eq!(formatted("[%8s][%-8s]", &[Err(100), Err(100)]).0, "[   hello][hello   ]");
    assert_eq!(formatted("[%.2s][%8.3s]", &[Err(100), Err(100)]).0, "[he][     hel]");
    assert_eq!(formatted("[%s][%.3s]", &[Err(0), Err(0)]).0, "[(null)][]");
}

#[test]
fn width_and_precision_may_be_arguments() {
    assert_eq!(formatted("[%*d]", &[Ok(5), Ok(42)]), ("[   42]".into(), 2));
    assert_eq!(formatted("[%*d]", &[Ok(-5_i32 as u32), Ok(42)]).0, "[42   ]");
    assert_eq!(formatted("[%.*f]", &[Ok(2), Err(1.0_f64.to_bits())]).0, "[1.00]");
    assert_eq!(formatted("[%.*f]", &[Ok(-1_i32 as u32), Err(1.0_f64.to_bits())]).0, "[1.000000]");
    assert_eq!(formatted("[%*.*d]", &[Ok(6), Ok(3), Ok(7)]), ("[   007]".into(), 3));
}

#[test]
fn what_is_no_conversion_is_printed() {
    assert_eq!(formatted("%k %", &[]), ("%k %".into(), 0));
    assert_eq!(formatted("ends here\0%d", &[]).0, "ends here");
}

/// A kernel whose frame slot 0 holds these words of 64 bits as the argument block of a built-in; then stores the word
/// at `result`.
fn calls(builtin: Builtin, words: &[u64], result: i64) -> Function {
    let mut f = entry(1);
    f.slots.push(Slot::new(64, 8));
    let mut b = at(&mut f, 0);
    let base = b.op(Op::SlotAddr(SlotId(0)), Ty::B64, &[]);
    let wide = Access::weak(StateSpace::Local, 64);
    for (i, word) in words.iter().enumerate() {
        b.store(wide, Addr { base, offset: i as i64 * 8 }, &[imm64(*word)]);
    }
    b.push(Op::Builtin(builtin), smallvec![], smallvec![base]);
    let got = b.load(Access::weak(StateSpace::Local, 32), Addr { base, offset: result })[0];
    let tid = b.tid();
    b.out(tid, got);
    f
}

const FORMAT: u64 = OUT + 0x1000;
const TEXT: u64 = OUT + 0x1100;
const ARGS: u64 = OUT + 0x1200;

#[test]
fn vprintf_prints_for_each_lane_in_order() {
    let module = module(vec![calls(Builtin::Vprintf, &[FORMAT, ARGS], 16)]);
    let env = env([3, 1, 1]);
    let mut mem = memory(&env);
    mem.put(FORMAT, b"x=%d s=%s\n\0");
    mem.put(TEXT, b"abc\0");
    mem.put(ARGS, &7_u32.to_le_bytes());
    mem.put(ARGS + 8, &TEXT.to_le_bytes());
    let mut cta = Cta::new(&module, FuncId(0), env);
    assert_eq!(cta.run(&mut mem, u64::MAX), Status::Done);
    assert_eq!(String::from_utf8_lossy(&mem.printed), "x=7 s=abc\n".repeat(3));
    assert_eq!(mem.words(OUT, 3), [2, 2, 2]);
}

#[test]
fn lanes_that_print_together_print_what_each_of_them_would() {
    let mut mem = memory(&env([1, 1, 1]));
    mem.put(FORMAT, b"a longer text, then %d and %s|\0");
    mem.put(FORMAT + 0x80, b"%c\0");
    // Not at a multiple of eight bytes.
    mem.put(TEXT + 3, b"some more text\0");
    mem.put(ARGS, &65_u32.to_le_bytes());
    mem.put(ARGS + 8, &(TEXT + 3).to_le_bytes());
    mem.put(ARGS + 16, &66_u32.to_le_bytes());
    mem.put(ARGS + 24, &0x5000_u64.to_le_bytes());
    // Where each lane's format and arguments lie; the last but one has a text that is not in memory.
    let blocks = OUT + 0x1300;
    let lanes = [(FORMAT, ARGS), (FORMAT, ARGS), (0, ARGS), (FORMAT + 0x80, ARGS), (FORMAT, ARGS + 16), (FORMAT, ARGS)];
    let places = (0..).map(|i| blocks + 32 * i).take(lanes.len());
    for (at, (format, args)) in places.clone().zip(lanes) {
        mem.put(at, &format.to_le_bytes());
        mem.put(at + 8, &args.to_le_bytes());
    }
    let (lane, refused) = vprintf(&mut mem, places.clone().enumerate(), 8).unwrap_err();
    assert_eq!((lane, refused.addr, refused.bytes), (4, 0x5000, 1));
    let line = "a longer text, then 65 and some more text|";
    assert_eq!(String::from_utf8_lossy(&mem.printed), format!("{line}{line}A"));
    let results: Vec<u32> = places.map(|at| mem.words(at + 16, 1)[0]).collect();
    assert_eq!(results, [2, 2, u32::MAX, 1, 0, 0]);
    // Arguments that end with the memory: the first byte that is not there is named.
    mem.put(blocks + 8, &(OUT - 4).to_le_bytes());
    let (_, refused) = vprintf(&mut mem, std::iter::once((0, blocks)), 8).unwrap_err();
    assert_eq!((refused.addr, refused.bytes), (OUT - 4, 1));
}

#[test]
fn a_format_outside_memory_traps() {
    let trap = trap(calls(Builtin::Vprintf, &[0x5000, ARGS], 16), 1);
    assert_eq!((trap.kind, trap.address, trap.span), (TrapKind::OutOfBounds, Some(0x5000), line(0)));
}

#[test]
fn a_failed_assertion_says_its_text() {
    let module = module(vec![calls(Builtin::Assertfail, &[FORMAT, TEXT, 12, ARGS, 1], 0)]);
    let env = env([4, 1, 1]);
    let mut mem = memory(&env);
    mem.put(FORMAT, b"i < n\0");
    mem.put(TEXT, b"k.cu\0");
    mem.put(ARGS, b"void k(int)\0");
    let mut cta = Cta::new(&module, FuncId(0), env);
    let Status::Trap(trap) = cta.run(&mut mem, u64::MAX) else { panic!("no trap") };
    assert_eq!((trap.kind, trap.other_lanes), (TrapKind::Assert, 0b1110));
    assert_eq!(trap.detail, "k.cu:12: void k(int): assertion `i < n` failed");
    assert_eq!(cta.run(&mut mem, u64::MAX), Status::Trap(trap), "a stopped cta stays stopped");
}

#[test]
fn malloc_gives_memory_and_free_takes_it() {
    // Allocates, stores and loads through the pointer, frees it, and then frees it once more.
    let mut f = entry(1);
    f.slots.push(Slot::new(16, 8));
    let mut b = at(&mut f, 0);
    let base = b.op(Op::SlotAddr(SlotId(0)), Ty::B64, &[]);
    let wide = Access::weak(StateSpace::Local, 64);
    b.store(wide, Addr { base, offset: 0 }, &[imm64(40)]);
    b.push(Op::Builtin(Builtin::Malloc), smallvec![], smallvec![base]);
    let p = b.load(wide, Addr { base, offset: 8 })[0];
    b.store(Access::weak(StateSpace::Generic, 32), Addr { base: p, offset: 36 }, &[imm32(77)]);
    let got = b.load(Access::weak(StateSpace::Generic, 32), Addr { base: p, offset: 36 })[0];
    b.out(imm32(0), got);
    b.store(wide, Addr { base, offset: 0 }, &[imm64(0)]);
    b.push(Op::Builtin(Builtin::Free), smallvec![], smallvec![base]);
    b.store(wide, Addr { base, offset: 0 }, &[p]);
    b.push(Op::Builtin(Builtin::Free), smallvec![], smallvec![base]);
    let module = module(vec![f.clone()]);
    let (status, mem) = drive(&module, env([1, 1, 1]));
    assert_eq!(status, Status::Done);
    assert_eq!(mem.words(OUT, 1), [77]);
    let mut b = at(&mut f, 0);
    b.push(Op::Builtin(Builtin::Free), smallvec![], smallvec![base]);
    assert_eq!(trap(f, 1).kind, TrapKind::OutOfBounds);
}
