//! The state of the emission of one function, and what all parts of it use: registers of the host, fields of contexts, routines.
//!
//! # Registers of the host
//! `rbx` is the CTA, `rbp` the context of the warp, `r12d` the lanes that execute the block, `r13d` the lanes of an access. `k1` to `k4` are the lanes of
//! the block from 0, 8, 16 and 24 on, where only part of the warp may execute it. `k5`, `k6`, `k7`, the vectors below `FIRST_VECTOR` and the other
//! general registers hold nothing from one instruction to the next.

use std::mem::offset_of;

use handloom_diag::Span;
use handloom_diag::hash::{FastMap, FastSet};
use handloom_ir::simt::{Function, Inst, Reg, Val};
use handloom_ir::types::Ty;
use handloom_plan::Plan;
use handloom_plan::abi::{CtaCtx, Loc, MemSite, Reason, Routine, Stop, Tables, TrapSource, Word};
use handloom_plan::access::InPlace;
use handloom_plan::analysis::cfg::Set;
use handloom_plan::analysis::classes::Class;
use handloom_plan::analysis::reach::Reaches;
use handloom_plan::analysis::shape::Shape;
use iced_x86::{Code, Register};

use crate::access::{Elsewhere, Folded, Held, Indexed, Indices, Joints, Limits, Slow, Tester};
use crate::alloc::{Place, Places};
use crate::asm::{Asm, Label, Mem};
use crate::calls::Calls;
use crate::found::Found;
use crate::gang::way::{Alone, InStrip};
use crate::head::{FRAME_WORDS, Going, Head};
use crate::interleaved::Elements;
use crate::once::{Accessor, Called, ColdMove, Granules, Mover, Reader, Rounded};
use crate::turns::Turns;
use crate::uses::Uses;

pub(crate) use Register::{EAX, ECX, EDX, R12D, R13D, RAX, RBP, RBX, RCX, RDX, RSI, RSP};

/// The CTA.
pub(crate) const CTA: Register = RBX;
/// The context of the warp.
pub(crate) const WARP: Register = RBP;
/// Lanes of the block.
pub(crate) const LANES: Register = R12D;
/// Lanes of an access.
pub(crate) const TAKERS: Register = R13D;
/// No mask.
pub(crate) const ALL: Register = Register::None;

/// Why a function has no wide code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The op, as the SIMT IR writes it, or what else stood in the way.
    pub what: String,
    /// The statement.
    pub span: Span,
}

/// Code that is rarely run, emitted after all blocks: an access that the quick test refused.
pub(crate) struct Cold {
    pub(crate) start: Label,
    pub(crate) back: Label,
    pub(crate) inst: Inst,
    /// Its site, whose cache the test looks at.
    pub(crate) site: Option<usize>,
    /// Where code that the function has once refused it.
    pub(crate) called: Option<Called>,
    /// Whether only part of the warp may execute the block.
    pub(crate) in_part: bool,
    pub(crate) at: (usize, usize),
    /// What registers hold where it comes back.
    pub(crate) held: Vec<Held>,
}

/// What a vector holds in all its lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kept {
    /// Of 64 bits, not of 32.
    pub(crate) is_wide: bool,
    pub(crate) value: Repeated,
    pub(crate) vector: u8,
}

/// What all lanes have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Repeated {
    Number(u64),
    /// The word of the head at this place.
    Word(u32),
}

/// The emission of one function.
pub(crate) struct Emit<'p> {
    pub(crate) a: Asm,
    pub(crate) plan: &'p Plan,
    pub(crate) f: &'p Function,
    pub(crate) places: Places,
    pub(crate) tables: Tables,
    /// Where a block starts for lanes in `LANES`.
    pub(crate) block: Vec<Label>,
    /// The same for lanes whose mask registers are set.
    pub(crate) masks_set: Vec<Label>,
    /// By block, whether no code of it wants a mask that begins inside a vector of 32 bits a lane.
    pub(crate) by_halves: Vec<bool>,
    /// Where the pending lanes of a block are taken.
    pub(crate) prologue: Vec<Label>,
    pub(crate) dispatch: Label,
    /// By block, where dispatch goes for a warp that stands there; and where it goes if lanes stand apart.
    pub(crate) dispatch_table: Option<(Label, Label)>,
    /// By block and instruction: what an access was tested against.
    pub(crate) limits_of: FastMap<(usize, usize), Limits>,
    pub(crate) advance: Label,
    pub(crate) idle: Label,
    /// Returns to the runtime.
    pub(crate) out: Label,
    /// A routine told of a trap.
    pub(crate) trapped: Label,
    /// Code that calls the routine in `rax` (times 8) with registers kept.
    pub(crate) calls: Calls,
    /// Writes what pending lanes hold in vectors to their homes.
    pub(crate) save: Label,
    /// The opposite.
    pub(crate) load: Label,
    /// What is known of registers.
    pub(crate) reaches: Reaches,
    /// Reads units of 16 bytes of half a warp, by the width of addresses (`tuples`).
    pub(crate) units: [Label; 2],
    /// Moves tuples of 8 and of 16 bytes (`moves`).
    pub(crate) movers: [Option<Mover>; 2],
    pub(crate) cold_moves: Vec<ColdMove>,
    /// Accesses of lanes anywhere (`accessor`), and how many were done in place.
    pub(crate) accessors: Vec<Accessor>,
    pub(crate) in_place: InPlace,
    /// Those that are not left to the routine where they cannot be code that a function has once, if any are.
    pub(crate) before_routine: Option<InPlace>,
    /// Whether any were left to it, or to such code.
    pub(crate) has_left: bool,
    /// Accesses of shared memory that are looked at whether their lanes are neighbours.
    pub(crate) n_looked_at: u32,
    /// Functions that have code of their own, once they are counted (`approx`).
    pub(crate) functions: Option<Vec<(Rounded, Label)>>,
    /// Reads words of small matrices (`quads`).
    pub(crate) matrix_reader: Option<Reader>,
    pub(crate) cold: Vec<Cold>,
    /// Tests that are made after all blocks.
    pub(crate) elsewhere: Vec<Elsewhere>,
    pub(crate) testers: Vec<Tester>,
    /// What is asked of the table of small allocations.
    pub(crate) granules: Granules,
    /// By block, if it is known: vectors that hold something for lanes which wait elsewhere while it runs.
    pub(crate) awaited: Vec<u32>,
    /// By block and instruction: the site of the first copy that no mask is for, if that is tested, as the second; and those of all others.
    pub(crate) twins: FastMap<(usize, usize), (Vec<usize>, Option<usize>)>,
    /// Sums that the runtime may collect, by block and instruction.
    pub(crate) late: FastSet<(usize, usize)>,
    /// In a loop of a gang: scalars that are kept for its first warp alone.
    pub(crate) alone: Vec<(Reg, Alone)>,
    /// Words of the head in registers, while the code of a gang is emitted.
    pub(crate) at_hand_words: Vec<(Register, u32)>,
    /// Addresses in general registers, some of which may have been written since.
    pub(crate) held: Vec<Held>,
    /// Where rows of CTAs go in strips.
    pub(crate) strip: Option<InStrip>,
    /// By block that a loop goes back to: where it goes if the launch is to stop.
    pub(crate) stopped: FastMap<usize, Label>,
    /// How warps and CTAs follow each other inside the code; `None` of functions that are called.
    pub(crate) turns: Option<Turns>,
    /// What is done once a CTA.
    pub(crate) head: Option<Head>,
    /// How local memory lies.
    pub(crate) elements: Elements,
    /// Whether the head is being emitted: the warp is warp 0.
    pub(crate) in_head: bool,
    /// In the head: the value whose first lane is in `rax`.
    pub(crate) in_rax: Option<Reg>,
    /// Where a guard that was decided goes on.
    pub(crate) edges: Option<(Label, Label)>,
    /// The counter of the branch at the end of the block, and whether it is for the lanes that go to its first target.
    pub(crate) branch_counter: Option<(u32, bool)>,
    /// The predicate whose bits are in `eax`: made last, for the branch alone.
    pub(crate) at_hand: Option<Reg>,
    /// The uniform predicate that flags of the host tell, and the jump if it does not hold: made last, for the branch alone.
    pub(crate) in_flags: Option<(Reg, Code)>,
    /// Accesses of the block that are tested together.
    pub(crate) joints: Joints,
    /// The groups of them that have been.
    pub(crate) proven: FastSet<usize>,
    /// How registers are used.
    pub(crate) uses: Uses,
    /// Whose halves `k5` and `k6` held at a place of the code: the word of a predicate.
    pub(crate) halves: Option<(u32, usize)>,
    /// The value that every lane of vector 7 held at a place of the code, and of which warp it was.
    pub(crate) in_vector: Option<(Reg, usize, usize)>,
    /// Addresses by indices.
    pub(crate) indices: Indices,
    /// By what index the access in the making finds its address, and how its lanes lie, where that does not wrap.
    pub(crate) by_indexed: Option<(Indexed, Shape)>,
    /// Registers that hold tuples as they lie in memory.
    pub(crate) bundles: Set,
    /// By instruction that loads: the one that reads the value from memory.
    pub(crate) folds: FastMap<usize, usize>,
    /// Loads that are to be done by their readers.
    pub(crate) folded: Vec<Folded>,
    /// Those that the instruction reads, part by part.
    pub(crate) operands: Vec<(Reg, Vec<Mem>)>,
    /// Registers whose second vector is as the first.
    pub(crate) alike: Vec<Reg>,
    /// Of those, the ones whose second vector the instruction reads after all.
    pub(crate) apart: Vec<Reg>,
    /// The slow piece of the block.
    pub(crate) slow: Option<Slow>,
    /// Slow pieces to be emitted.
    pub(crate) slow_pieces: Vec<Slow>,
    /// Whether only part of the warp may execute the block being emitted.
    pub(crate) in_part: bool,
    /// Which of warps that go side by side the code is for, and bytes from the context of one to the next.
    pub(crate) member: usize,
    pub(crate) member_step: i32,
    /// Where registers live for each of them; for the one that the code is for, what is swapped back last.
    pub(crate) members: Vec<Vec<Place>>,
    /// Such places while no way of a gang is emitted: those outside of gangs.
    pub(crate) spare_members: Vec<Vec<Place>>,
    /// By place in the block, accesses that share what one of them finds of its lanes.
    pub(crate) found: FastMap<usize, Found>,
    /// The lanes that do what is being emitted, where a gang does it for some.
    pub(crate) going: Option<Going>,
    /// Whether the code is for a gang of the first warps of the CTA, whose numbers are thus constants.
    pub(crate) knows_numbers: bool,
    /// Whether each warp goes all of the way before the next one (`Gang::by_warp`).
    pub(crate) is_by_warp: bool,
    /// Constants and words of the head that vectors hold.
    pub(crate) kept: Vec<Kept>,
    /// Words of the stack that vectors for one instruction hold, and from where in the code on.
    pub(crate) spreads: Vec<(Ty, Register, Mem, usize)>,
    /// Copies, for all lanes together, of blocks that a guard leads to: to be emitted.
    pub(crate) copies: Vec<(usize, Label)>,
    /// Block and instruction being emitted.
    pub(crate) at: (usize, usize),
    /// Bytes of scratch space that the instruction uses, and the most that any uses.
    pub(crate) scratch: (u32, u32),
    /// Contexts have become larger than code was made for.
    pub(crate) has_grown: bool,
}

/// Vector `n`.
#[inline]
pub(crate) fn zmm(n: u8) -> Register {
    ZMM[usize::from(n % 32)]
}

/// The vectors.
const ZMM: [Register; 32] = {
    use Register::*;
    [
        ZMM0, ZMM1, ZMM2, ZMM3, ZMM4, ZMM5, ZMM6, ZMM7, ZMM8, ZMM9, ZMM10, ZMM11, ZMM12, ZMM13, ZMM14, ZMM15, ZMM16,
        ZMM17, ZMM18, ZMM19, ZMM20, ZMM21, ZMM22, ZMM23, ZMM24, ZMM25, ZMM26, ZMM27, ZMM28, ZMM29, ZMM30, ZMM31,
    ]
};

/// Its lower half.
pub(crate) fn ymm(r: Register) -> Register {
    Register::YMM0 + (r as u32 - Register::ZMM0 as u32)
}

/// Its lowest quarter.
pub(crate) fn xmm(r: Register) -> Register {
    Register::XMM0 + (r as u32 - Register::ZMM0 as u32)
}

/// A field of the CTA.
pub(crate) fn cta(offset: usize) -> Mem {
    Mem::at(CTA, offset as i32)
}

/// A field of the context.
pub(crate) fn warp(offset: usize) -> Mem {
    Mem::at(WARP, offset as i32)
}

/// A place in the context, or a word of the head.
pub(crate) fn ctx(offset: u32) -> Mem {
    match offset.checked_sub(FRAME_WORDS) {
        Some(at) => Mem::at(RSP, VECTOR_AREA + crate::turns::WORDS + at as i32),
        None => Mem::at(WARP, offset as i32),
    }
}

impl Emit<'_> {
    pub(crate) fn ty(&self, v: Val) -> Ty {
        self.f.ty(v)
    }

    pub(crate) fn place(&self, r: Reg) -> Place {
        self.places.of[r.idx()]
    }

    /// The shape of a value that is not a vector.
    pub(crate) fn shape(&self, v: Val) -> Option<Shape> {
        match v {
            Val::Imm(x, ty) => Some(Shape::constant(x & ty.mask())),
            Val::Reg(r) => self.plan.facts.class[r.idx()].shape(),
        }
    }

    pub(crate) fn is_affine(&self, r: Reg) -> bool {
        matches!(self.plan.facts.class[r.idx()], Class::Affine(_) | Class::Unknown)
    }

    /// The mask register of a part of 16 lanes (of 32 bits) or of 8 (of 64).
    pub(crate) fn mask(&self, ty: Ty, q: usize) -> Register {
        if !self.in_part {
            return ALL;
        }
        let step = if ty == Ty::B64 { q } else { 2 * q };
        Register::K1 + step as u32
    }

    /// Bytes of the stack: what turns and the head need is above the vectors. The stack is a multiple of 16 at a call.
    pub(crate) fn frame_bytes(&self) -> i32 {
        VECTOR_AREA + crate::turns::WORDS + self.head.as_ref().map_or(0, Head::bytes)
    }

    pub(crate) fn pend(&self, b: usize) -> Mem {
        ctx(self.places.pend + 4 * b as u32)
    }

    /// The mask registers of the lanes of the block.
    pub(crate) fn set_masks(&mut self) {
        self.set_masks_from(LANES);
    }

    /// The same of lanes in a register.
    pub(crate) fn set_masks_from(&mut self, lanes: Register) {
        self.a.op2(Code::VEX_Kmovd_kr_r32, Register::K1, lanes);
        for (k, by) in [(Register::K2, 8), (Register::K3, 16), (Register::K4, 24)] {
            self.a.op2i(Code::VEX_Kshiftrd_kr_kr_imm8, k, Register::K1, by);
        }
    }

    /// Bytes of scratch space for the instruction.
    pub(crate) fn take_scratch(&mut self, bytes: u32) -> u32 {
        let at = self.scratch.0;
        self.scratch.0 += bytes.next_multiple_of(64);
        self.scratch.1 = self.scratch.1.max(self.scratch.0);
        self.places.scratch + at
    }

    pub(crate) fn load32(&mut self, to: Register, m: Mem) {
        self.a.op2(Code::Mov_r32_rm32, to, m);
    }

    pub(crate) fn load64(&mut self, to: Register, m: Mem) {
        self.a.op2(Code::Mov_r64_rm64, to, m);
    }

    pub(crate) fn store32(&mut self, m: Mem, r: Register) {
        self.a.store(Code::Mov_rm32_r32, m, r, ALL);
    }

    pub(crate) fn store64(&mut self, m: Mem, r: Register) {
        self.a.store(Code::Mov_rm64_r64, m, r, ALL);
    }

    pub(crate) fn store_number(&mut self, m: Mem, n: u32) {
        self.a.imm(Code::Mov_rm32_imm32, m, n.cast_signed());
    }

    /// Calls a routine for the lanes in `mask`, with what the caller put into `r8` and `r9` as its last operands. The result is in `rax`, with flags of a test for zero; `r12` to `r15` and what registers live in stay.
    pub(crate) fn routine(&mut self, r: Routine, site: usize, mask: Register) {
        if mask != ECX {
            self.a.op2(Code::Mov_r32_rm32, ECX, mask);
        }
        self.a.number(RDX, site as u64);
        self.a.number(RAX, 8 * r as u64);
        let call = self.call_here();
        self.a.call_routine(call);
    }

    /// Leaves with a reason, for the context in `rbp`.
    pub(crate) fn give_back(&mut self, reason: Reason) {
        self.store64(cta(offset_of!(CtaCtx, cur)), WARP);
        self.settle(reason);
        self.a.number(RAX, reason as u64);
        let out = self.out;
        self.a.jump(Code::Jmp_rel32_64, out);
    }

    /// The end of all code that leaves, with the reason in `eax`.
    pub(crate) fn way_out(&mut self) {
        let out = self.out;
        self.a.bind(out);
        self.a.op0(Code::VEX_Vzeroupper);
        self.a.imm(Code::Add_rm64_imm32, RSP, self.frame_bytes());
        for r in [Register::R15, Register::R14, Register::R13, Register::R12, RBP, RBX] {
            self.a.op1(Code::Pop_r64, r);
        }
        self.a.op0(Code::Retnq);
    }

    /// Leaves with all that belongs to the reason.
    pub(crate) fn leave(&mut self, stop: Stop<Register>) {
        let reason = stop.reason();
        for (at, word) in stop.words() {
            match word {
                Word::Number(n) => self.store_number(warp(at), n),
                Word::Value(r) => self.store32(warp(at), r),
            }
        }
        self.give_back(reason);
    }

    /// Goes on if a routine said yes; else returns its trap.
    pub(crate) fn go_on_if_right(&mut self) {
        let trapped = self.trapped;
        self.a.jump(Code::Je_rel32_64, trapped);
    }

    /// The end of code that a function has once and that tests something: it returns with flags of one, and with flags of zero where `refused` is gone to.
    pub(crate) fn return_from_test(&mut self, refused: Label) {
        self.return_passed();
        self.a.bind(refused);
        self.a.number(RAX, 0);
        self.a.op0(Code::Retnq);
    }

    /// Returns from such code with flags of one.
    pub(crate) fn return_passed(&mut self) {
        self.a.imm(Code::Or_rm32_imm32, EAX, 1);
        self.a.op0(Code::Retnq);
    }

    /// What is done where a routine told of a trap: after all blocks.
    pub(crate) fn traps(&mut self) {
        let trapped = self.trapped;
        self.a.bind(trapped);
        self.leave(Stop::Trap(TrapSource::Routine));
    }

    /// A site of a memory op.
    pub(crate) fn mem_site(&mut self, inst: &Inst, src: &[Loc], dst: Vec<Loc>) -> usize {
        let (addr, rest) = src.split_first().map_or((Loc::Imm(0), [].as_slice()), |(a, rest)| (*a, rest));
        let element = self.elements.of(inst);
        self.tables.mems.push(MemSite {
            op: element.map_or(inst.op, |(op, _)| op),
            addr,
            src: rest.to_vec(),
            dst,
            span: inst.span,
            variable: None,
            twin: None,
            interleaved: element.map(|(_, how)| how),
        });
        self.tables.mems.len() - 1
    }
}

/// Bytes of the stack for vectors during calls.
pub(crate) const VECTOR_AREA: i32 = 64 * 24 + 64 + 8;
