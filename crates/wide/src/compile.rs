//! The walk over a function.

use std::borrow::Cow;
use std::cell::RefCell;
use std::mem::offset_of;

use handloom_diag::Span;
use handloom_diag::hash::{FastMap, FastSet};
use handloom_ir::simt::text::Line;
use handloom_ir::simt::{Counting, Function, Inst, Op, Reg, Term};
use handloom_ir::types::{Sreg, StateSpace, Ty};
use handloom_plan::abi::{CtaCtx, Routine, Tables, WarpCtx};
use handloom_plan::access::InPlace;
use handloom_plan::analysis::cfg::{Cfg, Set};
use handloom_plan::analysis::reach::Reaches;
use handloom_plan::host::{Feature, Host};
use handloom_plan::order::FenceOrder;
use handloom_plan::{Options, Plan};
use iced_x86::Code;

use crate::access::Joints;
use crate::alloc::{Place, n_parts, places};
use crate::asm::{Asm, MachineCode};
use crate::awaited::awaited;
use crate::bands::is_on_vectors;
use crate::calls::Calls;
use crate::climbing::climbing_apart;
use crate::emit::*;
use crate::firsts::firsts_apart;
use crate::flushes::flushed_once;
use crate::head::{Head, testable};
use crate::indexed::Finder;
use crate::interleaved::{Elements, interleaved};
use crate::late::late_sums;
use crate::once::Granules;
use crate::ops::has_vector_code;
use crate::pointers::pointers_apart;
use crate::rising::first_values_apart;
use crate::together::bundles;
use crate::uses::Uses;

/// Machine code of one function, to be placed at a multiple of 64.
#[derive(Debug)]
pub struct Assembly {
    /// The bytes. The entry is the first one; it takes a `CtaCtx` and returns the number of a `Reason`.
    pub bytes: MachineCode,
    /// What the runtime must know.
    pub tables: Tables,
    /// Whether it rests on tests that may fail: it then leaves with `Deopt` before a CTA has done anything.
    pub rests: bool,
    /// Whether it could have gangs, which [`Options::gangs`] left out.
    pub goes_alone: bool,
}

/// What wide code cannot do without, with the names that people know.
const NEEDED: &[(Feature, &str)] = &[
    (Feature::Avx512f, "AVX-512 F"),
    (Feature::Avx512bw, "AVX-512 BW"),
    (Feature::Avx512dq, "AVX-512 DQ"),
    (Feature::Avx512vl, "AVX-512 VL"),
    (Feature::Avx512cd, "AVX-512 CD"),
    (Feature::Bmi1, "BMI1"),
];

/// What it cannot do without where AVX-512 is not there.
const NEEDED_OF_AVX2: &[(Feature, &str)] =
    &[(Feature::Avx2, "AVX2"), (Feature::Fma, "FMA"), (Feature::F16c, "F16C"), (Feature::Bmi1, "BMI1")];

/// Whether wide code of a host has vectors of 512 bits. Where it has not, it takes longer to make, and leaves more to routines in code that is made without gangs.
pub fn has_wide_vectors(host: &Host) -> bool {
    NEEDED.iter().all(|(feature, _)| host.has(*feature))
}

/// Accesses of lanes anywhere that lean code of AVX2 does in place.
const FIRST: InPlace = InPlace { outside: 1, in_loops: 4 };

/// Instructions after which it is asked again whether anybody wants the code: less than a millisecond.
const ASK_EACH: usize = 256;

/// The first feature that wide code needs and a host lacks.
pub fn missing_feature(host: &Host) -> Option<&'static str> {
    let missing = NEEDED_OF_AVX2.iter().find(|(feature, _)| !host.has(*feature)).map(|(_, name)| *name);
    missing.filter(|_| !has_wide_vectors(host))
}

/// Compiles a function. `Options::speculate`: it may rest on tests that are made when a CTA begins, and give `Deopt` then. `Options::masked` is not asked.
///
/// # Errors
/// An op has no wide code, or (which would be a fault of ours) an instruction cannot be encoded.
pub fn compile(func: &Function, options: &Options) -> Result<Assembly, Refusal> {
    match compile_while(func, options, &|| true)? {
        Some(assembly) => Ok(assembly),
        None => unreachable!("somebody wanted it all the time"),
    }
}

/// Compiles a function as long as somebody wants it, which is asked again and again while code is emitted; `None` if nobody does any more.
///
/// # Errors
/// As [`compile()`].
pub fn compile_while(
    func: &Function,
    options: &Options,
    wanted: &dyn Fn() -> bool,
) -> Result<Option<Assembly>, Refusal> {
    Ok(made(func, options, (false, 0), wanted)?.map(|(assembly, _)| assembly))
}

/// The code of a function as text, labels and a line for each instruction, each with the statement that it was made from. Code that several statements share
/// has none: ways in and out, tests that are done elsewhere.
///
/// # Errors
/// As [`compile()`].
pub fn lines(func: &Function, options: &Options) -> Result<Vec<Line>, Refusal> {
    Ok(made(func, options, (true, 0), &|| true)?.map_or_else(Vec::new, |(_, lines)| lines))
}

/// `room`: bytes of a context for scratch rows, at least.
fn made(
    func: &Function,
    options: &Options,
    (with_text, room): (bool, u32),
    wanted: &dyn Fn() -> bool,
) -> Result<Option<(Assembly, Vec<Line>)>, Refusal> {
    let n = func.blocks.iter().map(|b| b.insts.len() + 1).sum();
    let mut a = if has_wide_vectors(&options.host) { Asm::new(n) } else { Asm::with_avx2(n) };
    if with_text {
        a.keep_text();
    }
    let tries: &[Tests] = if options.speculate { &Tests::ALL } else { &[Tests::None] };
    let planned = tries.iter().find_map(|tests| plan(func, options, *tests, &mut a));
    let Some((plan, head, elements)) = planned else { unreachable!("a plan without tests is whole") };
    let rests = head.as_ref().is_some_and(Head::rests);
    let refused = |what: String| Refusal { what, span: func.span };
    let nowhere = Vec::new();
    let uses = Uses::of(&plan, &|inst| is_on_vectors(&plan, inst));
    let indices = Finder { plan: &plan }.find(&uses);
    let found = places(&plan, head.as_ref().map_or(&nowhere, |h| &h.same), &indices);
    let n = plan.func.blocks.len();
    let block = (0..n).map(|_| a.label()).collect();
    let masks_set = (0..n).map(|_| a.label()).collect();
    let prologue = (0..n).map(|_| a.label()).collect();
    let units = [a.label(), a.label()];
    // An access takes three times as long to make of instructions of AVX2.
    let is_spare = !options.gangs && !a.has_wide_vectors();
    let [dispatch, advance, idle, out, trapped, save, load] = std::array::from_fn(|_| a.label());
    let mut e = Emit {
        plan: &plan,
        f: &plan.func,
        tables: plan.tables(),
        block,
        masks_set,
        by_halves: Vec::new(),
        prologue,
        dispatch,
        dispatch_table: None,
        limits_of: FastMap::default(),
        twins: FastMap::default(),
        advance,
        idle,
        out,
        trapped,
        calls: Calls::default(),
        save,
        load,
        units,
        movers: [None; 2],
        cold_moves: Vec::new(),
        accessors: Vec::new(),
        in_place: if is_spare { FIRST } else { InPlace::default() },
        before_routine: is_spare.then_some(FIRST),
        has_left: false,
        n_looked_at: 0,
        matrix_reader: None,
        functions: None,
        reaches: Reaches::default(),
        cold: Vec::new(),
        elsewhere: Vec::new(),
        testers: Vec::new(),
        granules: Granules::default(),
        alone: Vec::new(),
        at_hand_words: Vec::new(),
        held: Vec::new(),
        strip: None,
        stopped: FastMap::default(),
        turns: None,
        head,
        elements,
        in_head: false,
        in_rax: None,
        edges: None,
        branch_counter: None,
        at_hand: None,
        in_flags: None,
        joints: Joints::default(),
        proven: FastSet::default(),
        halves: None,
        in_vector: None,
        indices,
        by_indexed: None,
        bundles: bundles(&plan, &found, &uses),
        late: late_sums(&plan),
        awaited: if a.has_wide_vectors() { Vec::new() } else { awaited(&plan, &found) },
        places: found,
        uses,
        folds: FastMap::default(),
        folded: Vec::new(),
        operands: Vec::new(),
        alike: Vec::new(),
        apart: Vec::new(),
        slow: None,
        slow_pieces: Vec::new(),
        in_part: false,
        member: 0,
        member_step: 0,
        members: Vec::new(),
        spare_members: Vec::new(),
        found: FastMap::default(),
        going: None,
        knows_numbers: false,
        is_by_warp: false,
        kept: Vec::new(),
        spreads: Vec::new(),
        copies: Vec::new(),
        at: (0, 0),
        scratch: (0, room),
        has_grown: false,
        a,
    };
    if !e.run(wanted)? {
        return Ok(None);
    }
    if e.has_grown {
        // Where warps go side by side more rows are wanted than elsewhere, which code before did not know.
        let room = e.scratch.1;
        drop(e);
        return made(func, options, (with_text, room), wanted);
    }
    let goes_alone = !options.gangs && (e.may_have_gangs() || e.has_left);
    let mut tables = std::mem::take(&mut e.tables);
    for (others, first) in e.twins.values() {
        others.iter().for_each(|site| tables.mems[*site].twin = first.map(|site| site as u32));
    }
    tables.stack_bytes = e.frame_bytes() as u32;
    tables.ctx_bytes = e.places.ctx_bytes(e.scratch.1);
    tables.pend_offset = e.places.pend;
    tables.starts_warps = e.turns.is_some();
    tables.work = (options.counted == Counting::All).then_some(e.places.work);
    tables.runs_on = e.turns.is_some() && !calls_runtime(&plan.func);
    for (site, block) in tables.barriers.iter_mut().zip(&plan.sites.barriers) {
        let result = plan.func.blocks[block.idx()].term.result();
        site.result = result.and_then(|d| e.places.home_of(&plan, d.idx()));
    }
    if let Some(what) = e.a.lack() {
        let what = if what.starts_with("a bug") { what.to_owned() } else { format!("{what} with AVX2") };
        return Err(refused(what));
    }
    let lines = e.a.take_lines();
    let bytes = e.a.finish().map_err(|why| refused(format!("a bug: encoding: {why}")))?;
    Ok(Some((Assembly { bytes, tables, rests, goes_alone }, lines)))
}

/// What code may rest on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tests {
    /// That values do not wrap, and sums in no turn of a loop.
    OfLoops,
    /// That values do not wrap.
    OfValues,
    None,
}

impl Tests {
    /// All of them, those with the best code first.
    const ALL: [Tests; 3] = [Tests::OfLoops, Tests::OfValues, Tests::None];
}

/// What is decided about a function, and what is done once a CTA. `None` where the code would rest on what the head does not test.
fn plan(func: &Function, options: &Options, tests: Tests, a: &mut Asm) -> Option<(Plan, Option<Head>, Elements)> {
    let has_head = func.is_entry && !options.is_callee;
    if !has_head && tests != Tests::None {
        return None;
    }
    let func = if options.audited { Cow::Borrowed(func) } else { flushed_once(crate::asked::asked_once(func)) };
    let (func, elements) = interleaved(func, options);
    let last = RefCell::default();
    let known = |f: &Function| known_of(f, options, &last);
    let mut climbs = Vec::new();
    let func = if options.audited || func.led_back_to().next().is_none() {
        func
    } else {
        // None of these changes blocks.
        let cfg = Cfg::new(&func);
        let mut func = firsts_apart(func, &cfg, &known);
        if tests == Tests::OfLoops {
            (func, climbs) = climbing_apart(func, &cfg, &known);
        }
        first_values_apart(pointers_apart(func, &cfg, &known), &cfg, &known)
    };
    let may_rest = tests != Tests::None;
    let tested = if may_rest { known(&func) } else { Set::new(func.regs.len()) };
    let mut plan =
        Plan::with_tested(func, &Options { speculate: false, masked: true, flips: true, ..*options }, tested);
    crate::bands::read_into_vectors(&mut plan);
    let head = Head::new(&mut plan, [a.label(), a.label(), a.label()], may_rest, climbs);
    head.as_ref().is_none_or(|h| h.is_whole(&plan)).then_some((plan, head, elements))
}

/// The registers of a function that a head may test. What changes a function here gives it more registers, so that what was found last is still so where there are as
/// many.
fn known_of(f: &Function, options: &Options, last: &RefCell<Option<(usize, Set)>>) -> Set {
    let mut last = last.borrow_mut();
    if let Some((_, set)) = last.as_ref().filter(|(n, _)| *n == f.regs.len()) {
        debug_assert!(
            set.iter().eq(testable(f, &options.shape).iter()),
            "a function was changed and has no more registers"
        );
        return set.clone();
    }
    let set = testable(f, &options.shape);
    last.insert((f.regs.len(), set)).1.clone()
}

/// Whether a function asks for something that the runtime counts by CTA: what it prints, allocates or frees, tensor memory.
fn calls_runtime(f: &Function) -> bool {
    let insts = f.blocks.iter().flat_map(|b| &b.insts);
    insts.into_iter().any(|i| matches!(i.op, Op::Builtin(_) | Op::Stack(_) | Op::Tensor(_)))
        || f.blocks.iter().any(|b| matches!(b.term, Term::Call { .. }))
}

impl Emit<'_> {
    /// Emits all of it; says whether somebody wanted it until the end.
    fn run(&mut self, wanted: &dyn Fn() -> bool) -> Result<bool, Refusal> {
        let f = self.f;
        self.by_halves = (0..f.blocks.len()).map(|b| self.does_by_halves(b)).collect();
        self.make_turns();
        self.frame();
        for b in 0..f.blocks.len() {
            self.in_part = self.plan.facts.masked.has(b);
            self.at = (b, 0);
            let start = self.block[b];
            self.a.bind(start);
            if !self.block(b, wanted)? {
                return Ok(false);
            }
            if let Some(start) = self.whole_header(b) {
                self.copies.push((b, start));
            }
            // Before the block itself, whose accesses are then those of lanes that went apart.
            for (t, start) in std::mem::take(&mut self.copies) {
                self.in_part = false;
                self.a.bind(start);
                if !self.block(t, wanted)? {
                    return Ok(false);
                }
            }
        }
        self.slow_code()?;
        self.a.of(Span::NONE);
        self.tests_elsewhere();
        self.calls.is_rare = true;
        self.ask_granules();
        self.cold_code();
        self.cold_moves()?;
        self.calls.is_rare = false;
        self.emit_head();
        self.call_routines();
        // When the size of a context is known.
        if self.plan.options.gangs && self.may_have_gangs() {
            self.gangs()?;
        }
        self.stops();
        self.traps();
        self.advance();
        self.way_out();
        self.read_units();
        self.move_code();
        self.accessor_code();
        self.granules_code();
        self.matrix_words_code();
        self.functions_code();
        Ok(true)
    }

    /// A block, for some lanes or for all of them. Says whether somebody wanted it until the end.
    fn block(&mut self, b: usize, wanted: &dyn Fn() -> bool) -> Result<bool, Refusal> {
        let block = &self.f.blocks[b];
        self.a.of(Span::NONE);
        (self.at_hand, self.in_flags) = (None, None);
        self.drop_held();
        if self.in_part {
            self.set_masks_for(b);
            let masks_set = self.masks_set[b];
            self.a.bind(masks_set);
        }
        self.begin_found(b);
        self.begin_joints(b);
        let mut moved = None;
        for (i, inst) in block.insts.iter().enumerate() {
            if i % ASK_EACH == 0 && !wanted() {
                return Ok(false);
            }
            if moved.is_some_and(|last| i <= last) {
                continue;
            }
            self.at = (b, i);
            self.scratch.0 = 0;
            self.rejoin(i);
            if let Some(guard) = self.head.as_ref().and_then(|h| h.guard_at(b, i)) {
                self.edges = Some(self.pass_guard(b, guard));
            } else if i + 1 == block.insts.len() && self.edges.is_none() {
                self.edges = self.compare_ends(b, i);
            }
            moved = self.moves_tuples(b, i);
            if moved.is_none() {
                self.instruction(b, inst)?;
            }
        }
        self.at = (b, block.insts.len());
        self.rejoin(block.insts.len());
        self.a.of(block.term_span);
        self.term(b);
        Ok(true)
    }

    /// An instruction, with what belongs to its beginning and end.
    pub(crate) fn instruction(&mut self, b: usize, inst: &Inst) -> Result<(), Refusal> {
        if self.head.as_ref().is_some_and(|h| h.has(inst)) {
            return Ok(());
        }
        if self.head.as_ref().is_some_and(|h| h.is_linear(inst)) {
            self.a.of(inst.span);
            self.linear_words(inst);
            return Ok(());
        }
        if self.indices.delays(inst) {
            return Ok(());
        }
        self.a.of(inst.span);
        self.unfold(inst);
        self.begin_instruction();
        self.inst(b, inst)?;
        self.operands.clear();
        if self.keeps_addresses(inst) {
            self.drop_addresses(&inst.dst);
        } else {
            self.drop_held();
        }
        self.end_instruction();
        Ok(())
    }

    pub(crate) fn inst(&mut self, b: usize, inst: &Inst) -> Result<(), Refusal> {
        match inst.op {
            Op::Pure(op) => {
                self.part_alike(inst);
                let mixed = inst.dst.len() > 1;
                if inst.dst.iter().all(|d| self.is_affine(*d)) {
                    self.scalar_op(inst, op);
                } else if self.carry(inst, op) {
                    // Done.
                } else if mixed {
                    self.eval(inst, op);
                } else if self.logic(inst, op) || self.rounded_function(inst, op) {
                    // Done.
                } else if has_vector_code(op) {
                    self.vector_op(inst);
                } else {
                    self.eval(inst, op);
                }
            }
            Op::Sreg(s) => self.sreg(inst.dst[0], s),
            Op::SymAddr(_) | Op::SharedAddr(_) | Op::ParamAddr { .. } | Op::SlotAddr(_) | Op::ArgAddr { .. } => {
                self.named_address(inst);
            }
            Op::Cvta { space: StateSpace::SharedCluster, .. }
            | Op::IsSpace(_)
            | Op::Stack(_)
            | Op::Image(_)
            | Op::Tensor(_) => {
                self.memory_routine(inst, LANES, None);
            }
            Op::Cvta { space, to_space } => match self.place(inst.dst[0]) {
                Place::Words(_) => self.scalar_cvta(inst, space, to_space),
                _ => self.cvta(inst, space, to_space),
            },
            Op::Load { .. } | Op::Store { .. } | Op::Atom { .. } | Op::Red { .. } | Op::Transfer(_) => {
                self.access(inst)
            }
            Op::Fence { order, scope } => match FenceOrder::of(order, scope, &self.plan.options.host) {
                FenceOrder::Program => {}
                FenceOrder::Total => {
                    // It takes less time than a fence instruction.
                    self.a.number(RAX, 0);
                    self.a.store_locked(Code::Or_rm64_r64, cta(offset_of!(CtaCtx, fence)), RAX, true);
                }
                FenceOrder::Instruction => self.a.op0(Code::Mfence),
            },
            Op::Activemask => match self.place(inst.dst[0]) {
                Place::Words(at) => {
                    self.a.op2(Code::Mov_r32_rm32, EAX, LANES);
                    self.store64(ctx(at), RAX);
                }
                _ => {
                    self.a.op2(Code::Mov_r32_rm32, EAX, LANES);
                    self.spread(inst.dst[0]);
                }
            },
            Op::Builtin(which) => {
                let at = self.loc(inst.src[0]);
                self.tables.builtins.push((which, at, inst.span));
                let site = self.tables.builtins.len() - 1;
                self.routine(Routine::Builtin, site, LANES);
                self.go_on_if_right();
                self.tell_dirty();
            }
            Op::Nanosleep | Op::Mark => {}
            Op::Count(count) => self.count(inst, count),
            Op::Shfl(_)
            | Op::Vote(_)
            | Op::Match { .. }
            | Op::Redux { .. }
            | Op::Matrix(_)
            | Op::Elect
            | Op::BarWarp => self.sync(b, inst)?,
        }
        Ok(())
    }

    /// The value in `rax` for all lanes of the block, in a register whose lanes vary.
    pub(crate) fn spread(&mut self, d: Reg) {
        let ty = self.f.regs[d.idx()];
        for q in 0..n_parts(ty) {
            let out = self.out(d, q);
            if ty == Ty::B64 {
                self.a.op2(Code::EVEX_Vpbroadcastq_zmm_k1z_r64, out, RAX);
            } else {
                self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, out, EAX);
            }
            self.commit(d, q);
        }
    }

    /// The address of something that the function names.
    fn named_address(&mut self, inst: &Inst) {
        let d = inst.dst[0];
        match self.place(d) {
            Place::Words(_) | Place::Nowhere => {
                self.address(d, inst.op);
            }
            _ => {
                self.address_value(inst.op);
                let stride = match inst.op {
                    Op::SlotAddr(_) | Op::ArgAddr { .. } => self.plan.facts.local_stride,
                    _ => 0,
                };
                for q in 0..4 {
                    let out = self.out(d, q);
                    let lanes: Vec<u64> = (0..8).map(|l| ((8 * q as i64 + l) * stride).cast_unsigned()).collect();
                    let c = self.lanes_constant(Ty::B64, &lanes);
                    self.a.op2(Code::EVEX_Vpbroadcastq_zmm_k1z_r64, zmm(4), RAX);
                    self.a.op3(Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64, out, zmm(4), c);
                    self.commit(d, q);
                }
            }
        }
    }

    fn sreg(&mut self, d: Reg, s: Sreg) {
        if let Place::Words(_) | Place::Nowhere = self.place(d) {
            self.scalar_sreg(d, s);
            return;
        }
        let mask: Option<fn(u64) -> u64> = match s {
            Sreg::LanemaskEq => Some(|l| 1 << l),
            Sreg::LanemaskLt => Some(|l| (1 << l) - 1),
            Sreg::LanemaskLe => Some(|l| (2 << l) - 1),
            Sreg::LanemaskGe => Some(|l| !((1 << l) - 1) & 0xffff_ffff),
            Sreg::LanemaskGt => Some(|l| !((2 << l) - 1) & 0xffff_ffff),
            Sreg::Laneid => Some(|l| l),
            _ => None,
        };
        if let Some(of) = mask {
            for q in 0..2 {
                let lanes: Vec<u64> = (0..16).map(|l| of(16 * q as u64 + l)).collect();
                let c = self.lanes_constant(Ty::B32, &lanes);
                let out = self.out(d, q);
                self.copy(Ty::B32, out, c.into());
                self.commit(d, q);
            }
            return;
        }
        if let Sreg::Tid(i) = s
            && i < 3
        {
            self.tid(d, i);
            return;
        }
        self.sreg_value(s);
        self.spread(d);
    }

    /// A component of `%tid`, by division in `.f32`.
    ///
    /// Thread numbers are below 1024: `(n + 1/2) / d` differs from every whole number by at least `1 / 2048`, relative to 1024 far more than the two
    /// roundings.
    fn tid(&mut self, d: Reg, i: u8) {
        let [nx, ny, _] = self.plan.facts.shape.ntid;
        for q in 0..2 {
            let c = self.lane_numbers(Ty::B32, q);
            self.load32(EAX, warp(offset_of!(WarpCtx, warp)));
            self.a.imm8(Code::Shl_rm32_imm8, EAX, 5);
            self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, zmm(0), EAX);
            self.a.op3(Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, zmm(0), zmm(0), c);
            // The number in vector 0, the row in 1, the plane in 2.
            self.quotient(0, 1, nx);
            let out = self.out(d, q);
            match i {
                0 => self.rest(out, 0, 1, nx),
                1 => {
                    self.quotient(1, 2, ny);
                    self.rest(out, 1, 2, ny);
                }
                _ => {
                    self.quotient(1, 2, ny);
                    self.copy(Ty::B32, out, zmm(2).into());
                }
            }
            self.commit(d, q);
        }
    }

    fn quotient(&mut self, from: u8, to: u8, by: u32) {
        let (half, inverse) = (0.5f32.to_bits(), (1.0f32 / by as f32).to_bits());
        let half = self.constant(Ty::B32, u64::from(half));
        let inverse = self.constant(Ty::B32, u64::from(inverse));
        self.a.op2(Code::EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er, zmm(to), zmm(from));
        self.a.op3(Code::EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er, zmm(to), zmm(to), half);
        self.a.op3(Code::EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er, zmm(to), zmm(to), inverse);
        self.a.op2(Code::EVEX_Vcvttps2dq_zmm_k1z_zmmm512b32_sae, zmm(to), zmm(to));
    }

    /// `n - row * by`.
    fn rest(&mut self, out: crate::asm::Out, n: u8, row: u8, by: u32) {
        let by = self.constant(Ty::B32, u64::from(by));
        self.a.op3(Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32, zmm(4), zmm(row), by);
        self.a.op3(Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32, out, zmm(n), zmm(4));
    }
}
