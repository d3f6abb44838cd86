//! Instructions of the host into bytes: an encoder with labels, and constants that lie after the code.
//!
//! An operand that cannot be encoded is a fault of ours: the first one is kept and returned by [`Asm::finish`], so that emitters need not ask after
//! each instruction.

mod avx2;
mod known;
mod operand;
mod parts;
mod room;
mod tuples;

use std::array;
use std::fmt::{self, Write};
use std::hash::BuildHasherDefault;

use handloom_diag::Span;
use handloom_diag::hash::FastMap;
use handloom_ir::simt::text::Line;
use iced_x86::{Code, Encoder, IcedError, Instruction, MemoryOperand, Register, RoundingControl};

use crate::listing::line;
use avx2::Narrow;
use known::{Bytes, DIFFERENCE, Encodings, Key, MOST_UNIT, Places};
use operand::{Base, Form, Lows, Ops, Ops2, Writes, mask_number, register_bit, vector_number};
pub use operand::{Const, Label, Mem, Out, Rm};
use parts::{Made, Parts, Written, probes};
pub use room::MachineCode;
use room::{Fixup, Room, Target};

impl Mem {
    /// What is known of an operand when all code is there.
    fn target(self) -> Option<Target> {
        match self.base {
            Base::Const(c) => Some(Target::Const(c, self.at)),
            Base::Label(l) => Some(Target::Label(l)),
            Base::Reg(_) => None,
        }
    }
}

/// Bytes of a jump without a condition.
const JUMP: usize = 5;

/// Code in the making.
pub struct Asm {
    /// The bytes so far.
    code: Vec<u8>,
    encoder: Encoder,
    labels: Vec<Option<usize>>,
    /// By label, whether a jump goes to it.
    wanted: Vec<bool>,
    fixups: Vec<Fixup>,
    constants: Vec<[u8; 64]>,
    known: FastMap<[u8; 64], Const>,
    /// By eight bytes, constants that have nothing else.
    repeated: FastMap<u64, Const>,
    tables: Vec<(Label, Vec<Label>)>,
    /// Instructions that were encoded.
    encodings: Encodings,
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

impl Asm {
    /// No code yet, of a function with so many instructions.
    pub fn new(n: usize) -> Asm {
        Asm::with_room(n, room::BYTES_OF_ONE)
    }

    /// The same, with room for so many bytes of each.
    fn with_room(n: usize, bytes_of_one: usize) -> Asm {
        let Room { code, fixups } = Room::take(n, bytes_of_one);
        Asm {
            code,
            encoder: Encoder::try_with_capacity(64, 64).expect("bug: there is code of 64 bits"),
            labels: Vec::new(),
            wanted: Vec::new(),
            fixups,
            constants: Vec::new(),
            known: FastMap::with_capacity_and_hasher(n.min(room::MOST_CONSTANTS), BuildHasherDefault::default()),
            repeated: FastMap::default(),
            tables: Vec::new(),
            encodings: Encodings::take(),
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
        self.code.len()
    }

    /// From now on, places in the context of the warp are those of one that lies so many bytes further on.
    pub fn shift(&mut self, by: i32) {
        if by != self.shift {
            // What masks hold is of the other one.
            self.mask_written = [self.code.len(); 8];
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
    pub fn with_avx2(n: usize) -> Asm {
        Asm { narrow: Some(Box::default()), ..Asm::with_room(n, room::BYTES_OF_ONE_NARROW) }
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
        Label((self.labels.len() - 1) as u32)
    }

    /// Puts a label here. A jump to it that ends here is taken back.
    pub fn bind(&mut self, l: Label) {
        self.settle_label(l);
        if let Some((at, to)) = self.last_jump
            && to == l
            && at + JUMP == self.code.len()
            && self.last_bound < self.code.len()
        {
            self.code.truncate(at);
            self.fixups.pop();
            if let Some(text) = &mut self.text {
                let line = text.trim_end_matches('\n').rfind('\n').map_or(0, |end| end + 1);
                text.truncate(line);
            }
        }
        self.bind_inside(l);
    }

    /// Whether a jump before goes to a label.
    pub fn is_wanted(&self, l: Label) -> bool {
        self.wanted[l.idx()]
    }

    /// Puts a label here if a jump before goes to it. None does that is still to come.
    pub fn bind_if_wanted(&mut self, l: Label) {
        if self.is_wanted(l) {
            self.bind(l);
        }
    }

    /// Puts a label here, to which code comes that changed nothing in vectors.
    fn bind_inside(&mut self, l: Label) {
        self.last_bound = self.code.len();
        self.labels[l.idx()] = Some(self.code.len());
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
        let c = Const(self.constants.len() as u32);
        self.constants.push(bytes);
        self.known.insert(bytes, c);
        c
    }

    /// Eight bytes again and again.
    pub fn repeated(&mut self, word: u64) -> Const {
        match self.repeated.get(&word) {
            Some(c) => *c,
            None => {
                let c = self.doubles([word; 8]);
                self.repeated.insert(word, c);
                c
            }
        }
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

    /// The displacement of an operand in memory, if it is known already.
    fn reach(&self, m: Mem) -> Option<i32> {
        match m.base {
            Base::Reg(base) => Some(if base == Register::RBP { m.at + self.shift } else { m.at }),
            Base::Const(_) | Base::Label(_) => None,
        }
    }

    fn memory(&self, m: Mem) -> MemoryOperand {
        match m.base {
            Base::Reg(base) => {
                let at = self.reach(m).unwrap_or(0);
                let size = u32::from(at != 0);
                MemoryOperand::new(base, m.index, u32::from(m.scale), i64::from(at), size, m.spread, Register::None)
            }
            Base::Const(_) | Base::Label(_) => {
                MemoryOperand::with_base_displ_bcst_seg(Register::RIP, self.code.len() as i64, m.spread, Register::None)
            }
        }
    }

    fn put(&mut self, made: Result<Instruction, IcedError>, mem: Option<Mem>) {
        if let (Some(text), Ok(i)) = (&mut self.text, &made) {
            let place = match mem.map(|m| (m.base, m.at)) {
                Some((Base::Const(c), at)) => Some(format!("c{}{at:+}", c.0)),
                Some((Base::Label(l), _)) => Some(format!("l{}", l.0)),
                Some((Base::Reg(_), _)) | None => None,
            };
            let _ = writeln!(text, "    {}", line(i, place.as_deref()));
        }
        if let Ok(i) = &made {
            self.note_written(Writes::of(i));
        }
        match made.map_err(|e| e.to_string()).and_then(|i| self.in_bytes(&i)) {
            Ok((bytes, _)) => self.append(bytes, mem),
            Err(e) => drop(self.error.get_or_insert(e)),
        }
    }

    /// Code, with an operand in memory.
    #[inline]
    fn append(&mut self, bytes: Bytes, mem: Option<Mem>) {
        let start = self.code.len();
        self.code.extend_from_slice(&bytes.bits().to_le_bytes());
        self.code.truncate(start + usize::from(bytes.len));
        if let Some(to) = mem.and_then(Mem::target) {
            self.fixups.push(Fixup { at: start + usize::from(bytes.at), end: self.code.len(), to });
        }
    }

    /// The same of an instruction that was made of its parts.
    #[inline(always)]
    fn append_made(&mut self, made: Made) {
        let here = self.code.len();
        if made.written == Written::Vector {
            self.vector_written.get_mut(made.first as usize).into_iter().for_each(|at| *at = here);
        } else if made.written != Written::Nothing {
            self.note_written(made.written.with(made.first));
        }
        let at = here + made.at as usize;
        self.code.extend_from_slice(&made.start.to_le_bytes());
        self.code.truncate(at);
        if made.more > 0 {
            self.code.extend_from_slice(&made.end.to_le_bytes());
            self.code.truncate(at + made.more as usize);
        }
    }

    /// An instruction of the host with these operands.
    #[inline]
    fn encode(&mut self, form: Form, o: Ops) {
        match o.rm {
            Rm::Reg(rm) => self.encode_registers(form, &o, rm),
            Rm::Mem(rm) => self.encode_memory(form, &o, rm),
        }
    }

    #[inline(never)]
    fn encode_registers(&mut self, form: Form, o: &Ops, rm: Register) {
        match self.encodings.codes.of_register(form, o, rm) {
            Some(made) if !self.keeps_text() => {
                debug_assert!(self.is_as_encoded(form, o, made), "{:?} is not what the encoder makes", o.code);
                self.append_made(made);
            }
            _ => self.encode_by_key(form, o, 0),
        }
    }

    #[inline(never)]
    fn encode_memory(&mut self, form: Form, o: &Ops, rm: Mem) {
        if matches!(form, Form::Store | Form::StoreSome | Form::Number | Form::Signed) {
            let bytes = if matches!(o.code, Code::Mov_rm32_r32 | Code::Mov_rm32_imm32) { 4 } else { 64 };
            self.writes_memory(Some(rm), bytes);
        }
        // What is known when all code is there is put in then.
        let displacement = self.reach(rm).unwrap_or(0);
        match self.encodings.codes.of_memory(form, o, rm, displacement) {
            Some(made) if !self.keeps_text() => {
                debug_assert!(self.is_as_encoded(form, o, made), "{:?} is not what the encoder makes", o.code);
                let at = self.code.len() + made.at as usize;
                self.append_made(made);
                if let Some(to) = rm.target() {
                    self.fixups.push(Fixup { at, end: self.code.len(), to });
                }
            }
            _ => self.encode_by_key(form, o, displacement),
        }
    }

    /// Whether a text of the code is kept, for which every instruction goes through the encoder.
    #[inline]
    fn keeps_text(&self) -> bool {
        self.text.is_some()
    }

    /// A move between a vector of 256 bits and a slot in the block of the CTA, where no text is kept.
    #[inline]
    fn append_slot_move(&mut self, n: usize, slot: Mem, is_store: bool) {
        let made = Made::slot_move(n, slot.at, is_store);
        debug_assert!(self.is_move_as_encoded(n, slot, made), "{slot:?} is not where the encoder finds it");
        self.append_made(made);
    }

    /// Whether the encoder makes the same of such a move.
    fn is_move_as_encoded(&mut self, n: usize, slot: Mem, made: Made) -> bool {
        let (form, code) = match made.written {
            Written::Nothing => (Form::Store, Code::VEX_Vmovdqu_ymmm256_ymm),
            _ => (Form::Two, Code::VEX_Vmovdqu_ymm_ymmm256),
        };
        self.is_as_encoded(form, &Ops::new(code, Register::YMM0 + n as u32, Register::None, slot, 0), made)
    }

    /// Whether the encoder makes the same.
    fn is_as_encoded(&mut self, form: Form, o: &Ops, made: Made) -> bool {
        let Ok(i) = self.instruction(form, o) else { return false };
        let Ok((bytes, _)) = self.in_bytes(&i) else { return false };
        // Distances to what is not there yet are put in later.
        let differs = made.bits() ^ bytes.bits();
        let differs = match o.mem().and_then(Mem::target) {
            Some(_) if u32::from(bytes.at) == made.at => differs & !(u128::from(u32::MAX) << (8 * made.at)),
            _ => differs,
        };
        differs == 0 && bytes.len == made.len() && Writes::of(&i) == made.written.with(made.first)
    }

    /// The same of one that is not made of its parts.
    #[inline(never)]
    fn encode_by_key(&mut self, form: Form, o: &Ops, displacement: i32) {
        if self.keeps_text() {
            let made = self.instruction(form, o);
            return self.put(made, o.mem());
        }
        let (key, lows) = Key::new(form, o);
        if let Some((made, writes)) = self.encodings.get(key, displacement, form, lows) {
            self.note_written(writes);
            self.append(made, o.mem());
            return;
        }
        if !self.encodings.codes.is_seen(o) {
            let parts = self.parts(form, o);
            self.encodings.codes.add(o, parts);
        }
        match self.learn(form, o.without(lows), key, lows) {
            Ok((made, writes)) => {
                self.note_written(writes);
                self.append(made, o.mem());
            }
            Err(e) => drop(self.error.get_or_insert(e)),
        }
    }

    /// An instruction that was not made before, or not with these vectors, of which `first` has the first of each eight.
    #[cold]
    fn learn(&mut self, form: Form, first: Ops, key: Key, lows: Lows) -> Result<(Bytes, Writes), String> {
        let displacement = first.mem().and_then(|m| self.reach(m)).unwrap_or(0);
        let seen = self.encodings.seen(key);
        let of = seen.map_or(lows, |seen| seen.of);
        if lows != of && seen.is_some_and(|seen| !seen.is_placed) {
            let are_vectors = first.are_vectors(form);
            let other: Lows = array::from_fn(|i| if are_vectors[i] { of[i] ^ DIFFERENCE[i] } else { of[i] });
            let (one, _) = self.ops_in_bytes(form, &first.with(of))?;
            let (other, _) = self.ops_in_bytes(form, &first.with(other))?;
            self.encodings.place(key, Places::between(one, other, are_vectors)?);
        }
        if displacement != 0 && seen.is_some_and(|seen| !seen.has_short) {
            const SHORT: i32 = MOST_UNIT as i32;
            let short = first.mem().map_or(first.rm, |m| m.behind(SHORT - displacement).into());
            let made = self.ops_in_bytes(form, &Ops { rm: short, ..first }.with(of))?;
            self.encodings.add(key, of, SHORT, made);
        }
        if let Some(known) = self.encodings.get(key, displacement, form, lows) {
            return Ok(known);
        }
        let made = self.ops_in_bytes(form, &first.with(of))?;
        self.encodings.add(key, of, displacement, made);
        if seen.is_none() {
            let writes = self.instruction(form, &first).as_ref().map(Writes::of).unwrap_or_default();
            self.encodings.writes(key, writes);
        }
        let known = self.encodings.get(key, displacement, form, lows);
        known.ok_or_else(|| format!("bug: {:?} is not known after it was made", first.code))
    }

    /// What the encoder shows of a code, if it can be made of its parts.
    fn parts(&mut self, form: Form, o: &Ops) -> Option<Parts> {
        let [one, other] = probes(form, o)?.map(|o| {
            let writes = self.instruction(form, &o).as_ref().map(Writes::of).ok()?;
            let (bytes, _) = self.ops_in_bytes(form, &o).ok()?;
            Some((o, (bytes.bits(), bytes.len), writes))
        });
        Parts::of(form, [one?, other?])
    }

    /// An instruction in bytes, and how many of them are a displacement.
    fn in_bytes(&mut self, i: &Instruction) -> Result<(Bytes, usize), String> {
        self.encoder.encode(i, self.code.len() as u64).map_err(|e| format!("{i:?}: {e}"))?;
        let mut made = self.encoder.take_buffer();
        let offsets = self.encoder.get_constant_offsets();
        // Where the displacement begins, or the distance of a jump.
        let at = if offsets.has_displacement() { offsets.displacement_offset() } else { offsets.immediate_offset() };
        let bytes = Bytes::new(&made, at);
        made.clear();
        self.encoder.set_buffer(made);
        Ok((bytes, offsets.displacement_size()))
    }

    /// The same of operands.
    fn ops_in_bytes(&mut self, form: Form, o: &Ops) -> Result<(Bytes, usize), String> {
        let i = self.instruction(form, o).map_err(|e| e.to_string())?;
        self.in_bytes(&i)
    }

    fn instruction(&self, form: Form, o: &Ops) -> Result<Instruction, IcedError> {
        let (code, out, a, n) = (o.code, o.out.reg, o.a, o.n);
        if form == Form::Jump {
            // It goes nowhere yet.
            return Instruction::with_branch(code, self.code.len() as u64);
        }
        // The encoder has a function for each kind of operand.
        macro_rules! with {
            ($rm:expr) => {
                match form {
                    Form::Two => Instruction::with2(code, out, $rm),
                    Form::TwoNumber => Instruction::with3(code, out, $rm, n),
                    Form::TwoSigned => Instruction::with3(code, out, $rm, n.cast_signed()),
                    Form::Three => Instruction::with3(code, out, a, $rm),
                    Form::ThreeNumber => Instruction::with4(code, out, a, $rm, n),
                    Form::Number => Instruction::with2(code, $rm, n),
                    Form::Signed => Instruction::with2(code, $rm, n.cast_signed()),
                    Form::Store | Form::Jump => Instruction::with2(code, $rm, out),
                    Form::StoreSome => Instruction::with3(code, $rm, a, out),
                    Form::Gather => Instruction::with3(code, out, $rm, a),
                    Form::Choice => Instruction::with4(code, out, a, $rm, Register::YMM0 + n),
                }
            };
        }
        let made = match o.rm {
            Rm::Reg(r) => with!(r),
            Rm::Mem(m) => with!(self.memory(m)),
        };
        made.map(|i| rounded(masked(i, o.out), o.round))
    }

    /// Notes what is written.
    #[inline]
    fn note_written(&mut self, w: Writes) {
        self.written |= w.general;
        if w.general & register_bit(Register::RBP) != 0 {
            self.forget_words();
        }
        let note = |bits: u8, at: &mut [usize; 8]| {
            let mut left = bits;
            while left != 0 {
                at[left.trailing_zeros() as usize] = self.code.len();
                left &= left - 1;
            }
        };
        note(w.vectors, &mut self.vector_written);
        note(w.masks, &mut self.mask_written);
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
        self.writes_memory(rm.mem(), 64);
        match rm {
            Rm::Reg(r) => self.put(Instruction::with1(code, r), None),
            Rm::Mem(m) => self.put(Instruction::with1(code, self.memory(m)), Some(m)),
        }
    }

    /// An instruction, of vectors of 512 bits or not.
    fn narrow_or(&mut self, form: Form, o: Ops) {
        if self.is_narrowed(&o) { self.narrow(o) } else { self.encode(form, o) }
    }

    /// `out, rm`.
    pub fn op2(&mut self, code: Code, out: impl Into<Out>, rm: impl Into<Rm>) {
        let o = Ops::new(code, out, Register::None, rm, 0);
        if self.is_narrowed(&o) {
            return self.narrow(o);
        }
        if let Rm::Mem(Mem { base: Base::Label(l), .. }) = o.rm {
            self.comes_from_anywhere(l);
        }
        self.encode(Form::Two, o);
    }

    /// `out, rm` with a rounding of its own.
    pub fn op2r(&mut self, code: Code, out: impl Into<Out>, r: Register, round: RoundingControl) {
        self.narrow_or(Form::Two, Ops { round, ..Ops::new(code, out, Register::None, r, 0) });
    }

    /// `out, a, rm`.
    pub fn op3(&mut self, code: Code, out: impl Into<Out>, a: Register, rm: impl Into<Rm>) {
        self.narrow_or(Form::Three, Ops::new(code, out, a, rm, 0));
    }

    /// `out, a, b` with a rounding of its own.
    pub fn op3r(&mut self, code: Code, out: impl Into<Out>, a: Register, b: Register, round: RoundingControl) {
        self.narrow_or(Form::Three, Ops { round, ..Ops::new(code, out, a, b, 0) });
    }

    /// `out, rm, number`.
    pub fn op2i(&mut self, code: Code, out: impl Into<Out>, rm: impl Into<Rm>, n: u32) {
        self.narrow_or(Form::TwoNumber, Ops::new(code, out, Register::None, rm, n));
    }

    /// `out, a, rm, number`.
    pub fn op3i(&mut self, code: Code, out: impl Into<Out>, a: Register, rm: impl Into<Rm>, n: u32) {
        self.narrow_or(Form::ThreeNumber, Ops::new(code, out, a, rm, n));
    }

    /// `rm, number`.
    pub fn imm(&mut self, code: Code, rm: impl Into<Rm>, n: i32) {
        self.encode(Form::Signed, Ops::new(code, Register::None, Register::None, rm, n.cast_unsigned()));
    }

    /// `r = rm * number` in 64 bits. (The sign of the number is extended.)
    pub fn times(&mut self, r: Register, rm: impl Into<Rm>, n: i32) {
        self.encode(Form::TwoSigned, Ops::new(Code::Imul_r64_rm64_imm32, r, Register::None, rm, n.cast_unsigned()));
    }

    /// `rm, number` of 8 bits.
    pub fn imm8(&mut self, code: Code, rm: impl Into<Rm>, n: u32) {
        self.encode(Form::Number, Ops::new(code, Register::None, Register::None, rm, n));
    }

    /// `memory, r`: a store; elements of `mask` only, if it is one.
    pub fn store(&mut self, code: Code, m: Mem, r: Register, mask: Register) {
        let o = Ops::new(code, Out { reg: r, mask }, Register::None, m, 0);
        if self.is_narrowed(&o) {
            return self.narrow_store(Ops2 { code, mem: m, reg: r, mask });
        }
        self.encode(Form::Store, o);
    }

    /// `memory, r`: reads and writes memory, as one if it is locked.
    pub fn store_locked(&mut self, code: Code, m: Mem, r: Register, locked: bool) {
        let made = Instruction::with2(code, self.memory(m), r);
        self.writes_memory(Some(m), 64);
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
            (Ok(n), _) => self.imm8(Code::Mov_r32_imm32, low32(r), n),
            (_, Ok(n)) => self.imm(Code::Mov_rm64_imm32, r, n),
            _ => self.put(Instruction::with2(Code::Mov_r64_imm64, r, n), None),
        }
    }

    /// A jump or call to a label.
    pub fn jump(&mut self, code: Code, to: Label) {
        self.settle_jump(code, to);
        self.jump_inside(code, to);
    }

    /// A call of code that leaves nothing in vectors 0 to 7.
    pub fn call_routine(&mut self, to: Label) {
        self.drop_temporaries();
        self.jump(Code::Call_rel32_64, to);
    }

    /// A call of code that touches general registers alone: vectors keep what they hold.
    pub fn call_scalar(&mut self, to: Label) {
        self.jump_inside(Code::Call_rel32_64, to);
    }

    /// A jump to a label that [`bind_inside`](Self::bind_inside) puts.
    fn jump_inside(&mut self, code: Code, to: Label) {
        if code == Code::Jmp_rel32_64 {
            self.last_jump = Some((self.code.len(), to));
        }
        self.wanted[to.idx()] = true;
        let o = Ops::new(code, Register::None, Register::None, Mem::label(to), 0);
        let known = if self.keeps_text() { None } else { self.encodings.jump(code) };
        let Some(made) = known else {
            if let Ok((made, _)) = self.ops_in_bytes(Form::Jump, &o) {
                self.encodings.add_jump(code, made);
            }
            return self.encode(Form::Jump, o);
        };
        if code == Code::Call_rel32_64 {
            self.note_written(Writes::ALL);
        }
        self.append(made, o.mem());
    }

    /// The bytes: code, then constants, then tables. They may lie anywhere at a multiple of 64.
    pub fn finish(mut self) -> Result<MachineCode, String> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.encodings.keep();
        let mut out = self.code;
        out.resize(out.len().next_multiple_of(64), 0xcc);
        let constants = out.len();
        self.constants.iter().for_each(|c| out.extend_from_slice(c));
        for (l, of) in &self.tables {
            let start = out.len();
            self.labels[l.idx()] = Some(start);
            for to in of {
                let there = self.labels[to.idx()].ok_or("a label without a place in a table")?;
                out.extend_from_slice(&distance(there, start)?.to_le_bytes());
            }
        }
        for f in &self.fixups {
            let there = match f.to {
                Target::Label(l) => self.labels[l.idx()].ok_or("a label without a place")?,
                Target::Const(c, at) => (constants + 64 * c.idx()).wrapping_add_signed(at as isize),
            };
            out[f.at..f.at + 4].copy_from_slice(&distance(there, f.end)?.to_le_bytes());
        }
        Ok(MachineCode::of(Room { code: out, fixups: self.fixups }))
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
