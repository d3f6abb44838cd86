//! Instructions of the host into bytes: an encoder with labels, and constants that lie after the code.
//!
//! An operand that cannot be encoded is a fault of ours: the first one is kept and returned by [`Asm::finish`], so that emitters need not ask after
//! each instruction.

mod avx2;
mod operand;
mod tuples;

use std::fmt::{self, Write};

use handloom_diag::Span;
use handloom_diag::hash::FastMap;
use handloom_ir::simt::text::Line;
use iced_x86::{Code, Encoder, Instruction, MemoryOperand, Register, RoundingControl};

use crate::listing::line;
use avx2::{Narrow, Ops};
use operand::{Base, Ops2};
pub use operand::{Const, Label, Mem, Out, Rm};

enum Target {
    Label(Label),
    Const(Const, i32),
}

/// Four bytes that hold a distance from the end of their instruction.
struct Fixup {
    at: usize,
    end: usize,
    to: Target,
}

/// Bytes of a jump without a condition.
const JUMP: usize = 5;

/// Bytes of code that there is room for from the start: most functions need no more.
const ROOM: usize = 16 << 10;

/// Code in the making.
pub struct Asm {
    encoder: Encoder,
    /// Bytes so far.
    len: usize,
    labels: Vec<Option<usize>>,
    /// By label, whether a jump goes to it.
    wanted: Vec<bool>,
    fixups: Vec<Fixup>,
    constants: Vec<[u8; 64]>,
    known: FastMap<[u8; 64], Const>,
    tables: Vec<(Label, Vec<Label>)>,
    /// Jumps and calls that were encoded, with their bytes before the distance: they differ in nothing else.
    jumps: Vec<(Code, Vec<u8>)>,
    /// Where the last jump without a condition begins, and where it goes.
    last_jump: Option<(usize, Label)>,
    /// Where the last label was put.
    last_bound: usize,
    error: Option<String>,
    /// The text, if it is wanted.
    text: Option<String>,
    /// Of the text, from which byte on it is of which statement.
    statements: Vec<(usize, Span)>,
    /// By number, general registers that were written since somebody asked.
    written: u32,
    /// By number, where the last instruction stands that wrote one of the vectors that hold nothing for long.
    vector_written: [usize; 8],
    /// The same by mask register.
    mask_written: [usize; 8],
    /// Where AVX2 is all there is: what stands for vectors of 512 bits.
    narrow: Option<Box<Narrow>>,
    /// Bytes that are added to places in the context of the warp: those of another one.
    shift: i32,
}

impl Default for Asm {
    fn default() -> Asm {
        Asm::new()
    }
}

impl Asm {
    /// No code yet.
    pub fn new() -> Asm {
        Asm {
            encoder: Encoder::try_with_capacity(64, ROOM).expect("bug: there is code of 64 bits"),
            len: 0,
            labels: Vec::new(),
            wanted: Vec::new(),
            fixups: Vec::new(),
            constants: Vec::new(),
            known: FastMap::default(),
            tables: Vec::new(),
            jumps: Vec::new(),
            last_jump: None,
            last_bound: 0,
            error: None,
            text: None,
            statements: Vec::new(),
            written: u32::MAX,
            vector_written: [0; 8],
            mask_written: [0; 8],
            narrow: None,
            shift: 0,
        }
    }

    /// Whether code since [`forget_written`](Asm::forget_written) may have written a general register.
    pub fn is_written(&self, r: Register) -> bool {
        self.written & register_bit(r) != 0
    }

    /// From now on, a general register counts as written if code writes it.
    pub fn forget_written(&mut self, r: Register) {
        self.written &= !register_bit(r);
    }

    /// Whether a vector below 8, or a mask register, still holds what the instruction wrote that ended at a place of the code.
    pub fn still_holds(&self, register: Register, since: usize) -> bool {
        let written = match mask_number(register) {
            Some(n) => self.mask_written[n],
            None => vector_number(register).map_or(usize::MAX, |n| self.vector_written[n]),
        };
        written < since && self.last_bound < since
    }

    /// Where the code ends so far.
    pub fn position(&self) -> usize {
        self.len
    }

    /// From now on, places in the context of the warp are those of one that lies so many bytes further on.
    pub fn shift(&mut self, by: i32) {
        if by != self.shift {
            // What masks hold is of the other one.
            self.mask_written = [self.len; 8];
        }
        self.shift = by;
    }

    /// A line of the text.
    pub fn comment(&mut self, line: fmt::Arguments<'_>) {
        if let Some(text) = &mut self.text {
            let _ = writeln!(text, "; {line}");
        }
    }

    /// No code yet, of the instructions of AVX2.
    pub fn with_avx2() -> Asm {
        Asm { narrow: Some(Box::default()), ..Asm::new() }
    }

    /// From now on, keeps a text of the code.
    pub fn keep_text(&mut self) {
        self.text.get_or_insert_default();
    }

    /// From now on, code is of a statement.
    pub fn of(&mut self, statement: Span) {
        let Some(text) = &self.text else { return };
        // What was taken back is of no statement.
        while self.statements.last().is_some_and(|(at, _)| *at >= text.len()) {
            self.statements.pop();
        }
        self.statements.push((text.len(), statement));
    }

    /// The lines of the text that was kept. Labels and comments are of no statement.
    pub fn take_lines(&mut self) -> Vec<Line> {
        let text = self.text.take().unwrap_or_default();
        let mut statements = std::mem::take(&mut self.statements).into_iter().peekable();
        let (mut now, mut at) = (Span::NONE, 0);
        let mut lines = Vec::new();
        for line in text.split_inclusive('\n') {
            while let Some((_, span)) = statements.next_if(|(from, _)| *from <= at) {
                now = span;
            }
            let span = if line.starts_with(' ') { now } else { Span::NONE };
            lines.push(Line { span, text: line.trim_end_matches('\n').to_owned() });
            at += line.len();
        }
        lines
    }

    /// A label that stands nowhere yet.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        self.wanted.push(false);
        Label(self.labels.len() - 1)
    }

    /// Puts a label here. A jump to it that ends here is taken back.
    pub fn bind(&mut self, l: Label) {
        self.settle_label(l);
        if let Some((at, to)) = self.last_jump
            && to == l
            && at + JUMP == self.len
            && self.last_bound < self.len
        {
            let mut code = self.encoder.take_buffer();
            code.truncate(at);
            self.encoder.set_buffer(code);
            self.fixups.pop();
            self.len = at;
            if let Some(text) = &mut self.text {
                let line = text.trim_end_matches('\n').rfind('\n').map_or(0, |end| end + 1);
                text.truncate(line);
            }
        }
        self.bind_inside(l);
    }

    /// Whether a jump before goes to a label.
    pub fn is_wanted(&self, l: Label) -> bool {
        self.wanted[l.0]
    }

    /// Puts a label here if a jump before goes to it. None does that is still to come.
    pub fn bind_if_wanted(&mut self, l: Label) {
        if self.is_wanted(l) {
            self.bind(l);
        }
    }

    /// Puts a label here, to which code comes that changed nothing in vectors.
    fn bind_inside(&mut self, l: Label) {
        self.last_bound = self.len;
        self.labels[l.0] = Some(self.len);
        if let Some(text) = &mut self.text {
            let _ = writeln!(text, "l{}:", l.0);
        }
    }

    /// A table of distances of code from the table itself, of 32 bits each.
    pub fn table(&mut self, of: Vec<Label>) -> Label {
        of.iter().for_each(|to| self.comes_from_anywhere(*to));
        let l = self.label();
        self.tables.push((l, of));
        l
    }

    /// Changes an entry of a table.
    pub fn change_table(&mut self, table: Label, entry: usize, to: Label) {
        if let Some((_, of)) = self.tables.iter_mut().find(|t| t.0 == table) {
            of[entry] = to;
        }
    }

    /// 64 bytes.
    pub fn bytes(&mut self, bytes: [u8; 64]) -> Const {
        if let Some(c) = self.known.get(&bytes) {
            return *c;
        }
        let c = Const(self.constants.len());
        self.constants.push(bytes);
        self.known.insert(bytes, c);
        c
    }

    /// 16 words.
    pub fn words(&mut self, words: [u32; 16]) -> Const {
        let mut bytes = [0; 64];
        bytes.chunks_exact_mut(4).zip(words).for_each(|(to, w)| to.copy_from_slice(&w.to_le_bytes()));
        self.bytes(bytes)
    }

    /// Eight double words.
    pub fn doubles(&mut self, words: [u64; 8]) -> Const {
        let mut bytes = [0; 64];
        bytes.chunks_exact_mut(8).zip(words).for_each(|(to, w)| to.copy_from_slice(&w.to_le_bytes()));
        self.bytes(bytes)
    }

    fn memory(&self, m: Mem) -> MemoryOperand {
        match m.base {
            Base::Reg(base) => {
                let at = if base == Register::RBP { m.at + self.shift } else { m.at };
                let size = u32::from(at != 0);
                MemoryOperand::new(base, m.index, m.scale, i64::from(at), size, m.spread, Register::None)
            }
            Base::Const(_) | Base::Label(_) => {
                MemoryOperand::with_base_displ_bcst_seg(Register::RIP, self.len as i64, m.spread, Register::None)
            }
        }
    }

    fn put(&mut self, made: Result<Instruction, iced_x86::IcedError>, mem: Option<Mem>) {
        let start = self.len;
        if let (Some(text), Ok(i)) = (&mut self.text, &made) {
            let place = match mem.map(|m| (m.base, m.at)) {
                Some((Base::Const(c), at)) => Some(format!("c{}{at:+}", c.0)),
                Some((Base::Label(l), _)) => Some(format!("l{}", l.0)),
                Some((Base::Reg(_), _)) | None => None,
            };
            let _ = writeln!(text, "    {}", line(i, place.as_deref()));
        }
        if let Ok(i) = &made {
            self.note_written(i);
        }
        let encoded = made.and_then(|i| {
            self.encoder.encode(&i, start as u64).map_err(|e| {
                self.error.get_or_insert_with(|| format!("{i:?}: {e}"));
                e
            })
        });
        match encoded {
            Ok(n) => self.len += n,
            Err(e) => {
                self.error.get_or_insert_with(|| e.to_string());
                return;
            }
        }
        let to = match mem.map(|m| (m.base, m.at)) {
            Some((Base::Const(c), at)) => Target::Const(c, at),
            Some((Base::Label(l), _)) => Target::Label(l),
            Some((Base::Reg(_), _)) | None => return,
        };
        let at = start + self.encoder.get_constant_offsets().displacement_offset();
        self.fixups.push(Fixup { at, end: self.len, to });
    }

    /// Notes which general registers an instruction may write: its first operand, both where it exchanges them, all for a call.
    fn note_written(&mut self, i: &Instruction) {
        if matches!(i.code(), Code::Call_rel32_64 | Code::Call_rm64) {
            self.note_call();
            return;
        }
        if let Some(n) = mask_number(i.op0_register()) {
            self.mask_written[n] = self.len;
        }
        // Gathers and scatters clear theirs.
        if let Some(n) = mask_number(i.op_mask()).filter(|_| i.is_vsib()) {
            self.mask_written[n] = self.len;
        }
        self.written |= register_bit(i.op0_register());
        if let Some(n) = vector_number(i.op0_register()) {
            self.vector_written[n] = self.len;
        }
        let exchanges = matches!(i.code(), Code::Xchg_rm32_r32 | Code::Xchg_rm64_r64);
        if i.has_lock_prefix() || exchanges {
            self.written |= register_bit(i.op1_register()) | register_bit(Register::RAX);
        }
        if matches!(i.code(), Code::Div_rm32 | Code::Div_rm64) {
            self.written |= register_bit(Register::RAX) | register_bit(Register::RDX);
        }
    }

    /// Notes that a call may write all.
    fn note_call(&mut self) {
        self.written = u32::MAX;
        (self.vector_written, self.mask_written) = ([self.len; 8], [self.len; 8]);
    }

    /// An instruction without operands.
    pub fn op0(&mut self, code: Code) {
        if matches!(code, Code::Retnq | Code::VEX_Vzeroupper) {
            self.settle(code == Code::Retnq);
        }
        self.put(Ok(Instruction::with(code)), None);
    }

    /// One operand.
    pub fn op1(&mut self, code: Code, rm: impl Into<Rm>) {
        let rm = rm.into();
        if matches!(code, Code::Jmp_rm64 | Code::Call_rm64) {
            self.settle(code == Code::Jmp_rm64);
        }
        match rm {
            Rm::Reg(r) => self.put(Instruction::with1(code, r), None),
            Rm::Mem(m) => self.put(Instruction::with1(code, self.memory(m)), Some(m)),
        }
    }

    /// `out, rm`.
    pub fn op2(&mut self, code: Code, out: impl Into<Out>, rm: impl Into<Rm>) {
        let (out, rm) = (out.into(), rm.into());
        if self.is_narrowed(out.reg, Register::None, rm) {
            self.narrow(Ops { code, out, a: Register::None, rm, n: 0, round: RoundingControl::None });
            return;
        }
        if let Rm::Mem(Mem { base: Base::Label(l), .. }) = rm {
            self.comes_from_anywhere(l);
        }
        let (made, mem) = match rm {
            Rm::Reg(r) => (Instruction::with2(code, out.reg, r), None),
            Rm::Mem(m) => (Instruction::with2(code, out.reg, self.memory(m)), Some(m)),
        };
        self.put(made.map(|i| masked(i, out)), mem);
    }

    /// `out, rm` with a rounding of its own.
    pub fn op2r(&mut self, code: Code, out: impl Into<Out>, r: Register, round: RoundingControl) {
        let out = out.into();
        if self.is_narrowed(out.reg, r, r.into()) {
            self.narrow(Ops { code, out, a: Register::None, rm: r.into(), n: 0, round });
            return;
        }
        let made = Instruction::with2(code, out.reg, r);
        self.put(made.map(|i| rounded(masked(i, out), round)), None);
    }

    /// `out, a, rm`.
    pub fn op3(&mut self, code: Code, out: impl Into<Out>, a: Register, rm: impl Into<Rm>) {
        let (out, rm) = (out.into(), rm.into());
        if self.is_narrowed(out.reg, a, rm) {
            self.narrow(Ops { code, out, a, rm, n: 0, round: RoundingControl::None });
            return;
        }
        let (made, mem) = match rm {
            Rm::Reg(r) => (Instruction::with3(code, out.reg, a, r), None),
            Rm::Mem(m) => (Instruction::with3(code, out.reg, a, self.memory(m)), Some(m)),
        };
        self.put(made.map(|i| masked(i, out)), mem);
    }

    /// `out, a, b` with a rounding of its own.
    pub fn op3r(&mut self, code: Code, out: impl Into<Out>, a: Register, b: Register, round: RoundingControl) {
        let out = out.into();
        if self.is_narrowed(out.reg, a, b.into()) {
            self.narrow(Ops { code, out, a, rm: b.into(), n: 0, round });
            return;
        }
        let made = Instruction::with3(code, out.reg, a, b);
        self.put(made.map(|i| rounded(masked(i, out), round)), None);
    }

    /// `out, rm, number`.
    pub fn op2i(&mut self, code: Code, out: impl Into<Out>, rm: impl Into<Rm>, n: u32) {
        let (out, rm) = (out.into(), rm.into());
        if self.is_narrowed(out.reg, Register::None, rm) {
            self.narrow(Ops { code, out, a: Register::None, rm, n, round: RoundingControl::None });
            return;
        }
        let (made, mem) = match rm {
            Rm::Reg(r) => (Instruction::with3(code, out.reg, r, n), None),
            Rm::Mem(m) => (Instruction::with3(code, out.reg, self.memory(m), n), Some(m)),
        };
        self.put(made.map(|i| masked(i, out)), mem);
    }

    /// `out, a, rm, number`.
    pub fn op3i(&mut self, code: Code, out: impl Into<Out>, a: Register, rm: impl Into<Rm>, n: u32) {
        let (out, rm) = (out.into(), rm.into());
        if self.is_narrowed(out.reg, a, rm) {
            self.narrow(Ops { code, out, a, rm, n, round: RoundingControl::None });
            return;
        }
        let (made, mem) = match rm {
            Rm::Reg(r) => (Instruction::with4(code, out.reg, a, r, n), None),
            Rm::Mem(m) => (Instruction::with4(code, out.reg, a, self.memory(m), n), Some(m)),
        };
        self.put(made.map(|i| masked(i, out)), mem);
    }

    /// `rm, number`.
    pub fn imm(&mut self, code: Code, rm: impl Into<Rm>, n: i32) {
        match rm.into() {
            Rm::Reg(r) => self.put(Instruction::with2(code, r, n), None),
            Rm::Mem(m) => self.put(Instruction::with2(code, self.memory(m), n), Some(m)),
        }
    }

    /// `r = rm * number` in 64 bits. (The sign of the number is extended.)
    pub fn times(&mut self, r: Register, rm: impl Into<Rm>, n: i32) {
        let code = Code::Imul_r64_rm64_imm32;
        match rm.into() {
            Rm::Reg(by) => self.put(Instruction::with3(code, r, by, n), None),
            Rm::Mem(m) => self.put(Instruction::with3(code, r, self.memory(m), n), Some(m)),
        }
    }

    /// `rm, number` of 8 bits.
    pub fn imm8(&mut self, code: Code, rm: impl Into<Rm>, n: u32) {
        match rm.into() {
            Rm::Reg(r) => self.put(Instruction::with2(code, r, n), None),
            Rm::Mem(m) => self.put(Instruction::with2(code, self.memory(m), n), Some(m)),
        }
    }

    /// `memory, r`: a store; elements of `mask` only, if it is one.
    pub fn store(&mut self, code: Code, m: Mem, r: Register, mask: Register) {
        if self.is_narrowed(r, Register::None, r.into()) {
            self.narrow_store(Ops2 { code, mem: m, reg: r, mask });
            return;
        }
        let made = Instruction::with2(code, self.memory(m), r);
        self.put(made.map(|i| masked(i, Out { reg: r, mask })), Some(m));
    }

    /// `memory, r`: reads and writes memory, as one if it is locked.
    pub fn store_locked(&mut self, code: Code, m: Mem, r: Register, locked: bool) {
        let made = Instruction::with2(code, self.memory(m), r);
        self.put(
            made.map(|mut i| {
                i.set_has_lock_prefix(locked);
                i
            }),
            Some(m),
        );
    }

    /// A number in a register of 64 bits.
    pub fn number(&mut self, r: Register, n: u64) {
        match (u32::try_from(n), i32::try_from(n.cast_signed())) {
            (Ok(0), _) => self.op2(Code::Xor_r32_rm32, low32(r), low32(r)),
            (Ok(n), _) => self.put(Instruction::with2(Code::Mov_r32_imm32, low32(r), n), None),
            (_, Ok(n)) => self.imm(Code::Mov_rm64_imm32, r, n),
            _ => self.put(Instruction::with2(Code::Mov_r64_imm64, r, n), None),
        }
    }

    /// A jump or call to a label.
    pub fn jump(&mut self, code: Code, to: Label) {
        self.settle_jump(code, to);
        self.jump_inside(code, to);
    }

    /// A call of code that touches general registers alone: vectors keep what they hold.
    pub fn call_scalar(&mut self, to: Label) {
        self.jump_inside(Code::Call_rel32_64, to);
    }

    /// A jump to a label that [`bind_inside`](Self::bind_inside) puts.
    fn jump_inside(&mut self, code: Code, to: Label) {
        if code == Code::Jmp_rel32_64 {
            self.last_jump = Some((self.len, to));
        }
        self.wanted[to.0] = true;
        match self.jumps.iter().position(|j| j.0 == code) {
            Some(known) if self.text.is_none() => {
                if code == Code::Call_rel32_64 {
                    self.note_call();
                }
                let mut bytes = self.encoder.take_buffer();
                bytes.extend_from_slice(&self.jumps[known].1);
                bytes.extend_from_slice(&[0; 4]);
                self.len = bytes.len();
                self.encoder.set_buffer(bytes);
            }
            _ => self.encode_jump(code, to),
        }
        self.fixups.push(Fixup { at: self.len - 4, end: self.len, to: Target::Label(to) });
    }

    /// A jump to nowhere yet, whose bytes are remembered.
    fn encode_jump(&mut self, code: Code, to: Label) {
        let start = self.len;
        let made = Instruction::with_branch(code, start as u64);
        // A jump has no memory operand; the text says where it goes.
        self.put(made, self.text.is_some().then(|| Mem::label(to)));
        if self.text.is_some() {
            self.fixups.pop();
        }
        let bytes = self.encoder.take_buffer();
        if self.error.is_none() && self.text.is_none() {
            self.jumps.push((code, bytes[start..self.len - 4].to_vec()));
        }
        self.encoder.set_buffer(bytes);
    }

    /// The bytes: code, then constants, then tables. They may lie anywhere at a multiple of 64.
    pub fn finish(mut self) -> Result<Vec<u8>, String> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut out = self.encoder.take_buffer();
        out.resize(out.len().next_multiple_of(64), 0xcc);
        let constants = out.len();
        self.constants.iter().for_each(|c| out.extend_from_slice(c));
        for (l, of) in &self.tables {
            let start = out.len();
            self.labels[l.0] = Some(start);
            for to in of {
                let there = self.labels[to.0].ok_or("a label without a place in a table")?;
                out.extend_from_slice(&distance(there, start)?.to_le_bytes());
            }
        }
        for f in &self.fixups {
            let there = match f.to {
                Target::Label(l) => self.labels[l.0].ok_or("a label without a place")?,
                Target::Const(c, at) => (constants + 64 * c.0).wrapping_add_signed(at as isize),
            };
            out[f.at..f.at + 4].copy_from_slice(&distance(there, f.end)?.to_le_bytes());
        }
        Ok(out)
    }
}

/// The lower half of a general register of 64 bits; another register as it is.
pub fn low32(r: Register) -> Register {
    match (r as u32).checked_sub(Register::RAX as u32) {
        Some(n) if n < 16 => Register::EAX + n,
        _ => r,
    }
}

/// The lowest so many bits of one of the first eight general registers of 64 bits.
pub fn low(r: Register, bits: u8) -> Register {
    let n = r as u32 - Register::RAX as u32;
    match bits {
        // Four registers of higher halves stand between.
        8 if n >= 4 => Register::AL + n + 4,
        8 => Register::AL + n,
        16 => Register::AX + n,
        32 => low32(r),
        _ => r,
    }
}

fn distance(to: usize, from: usize) -> Result<i32, String> {
    i32::try_from(to.wrapping_sub(from) as isize).map_err(|_| "more than 2 GiB of code".to_owned())
}

fn masked(mut i: Instruction, out: Out) -> Instruction {
    if out.mask != Register::None {
        i.set_op_mask(out.mask);
    }
    i
}

fn rounded(mut i: Instruction, round: RoundingControl) -> Instruction {
    if round != RoundingControl::None {
        i.set_rounding_control(round);
    }
    i
}

/// The number of a vector below 8 of any width.
fn vector_number(r: Register) -> Option<usize> {
    let of = |first: Register| (r as usize).checked_sub(first as usize).filter(|n| *n < 8);
    of(Register::ZMM0).or(of(Register::YMM0)).or(of(Register::XMM0))
}

/// The number of a mask register.
fn mask_number(r: Register) -> Option<usize> {
    (r as usize).checked_sub(Register::K0 as usize).filter(|n| *n < 8)
}

/// The bit of a general register of any width; 0 for others.
fn register_bit(r: Register) -> u32 {
    use Register::{AL, AX, BL, EAX, R15, R15D, R15W, RAX};
    let of = |first: Register, last: Register| (first..=last).contains(&r).then(|| 1 << (r as u32 - first as u32));
    of(RAX, R15).or(of(EAX, R15D)).or(of(AX, R15W)).or(of(AL, BL)).unwrap_or(0)
}
