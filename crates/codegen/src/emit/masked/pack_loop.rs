//! The loop of a masked copy over the packs that have lanes: what waited for it is done for one pack at a time.

use std::mem::offset_of;

use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_diag::hash::{FastMap, FastSet};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::abi::*;
use handloom_plan::analysis::shape::Shape;
use handloom_plan::packs::PACKS;
use handloom_plan::packs::layout::WORD_SLOTS;
use handloom_plan::ways::Way;

use crate::emit::asm::Asm;
use crate::emit::asm::scalar_type;
use crate::emit::copy::Emit;
use crate::emit::sreg::tid_pack;
use crate::emit::value::Rep;
use crate::emit::value_op::{Form, Sources, value_op};
use handloom_plan::ValueOp;
use handloom_plan::ways::{SregWay, sreg_way};

/// A value op that waits for the loop over packs.
pub(crate) struct Deferred {
    pub(crate) inst: usize,
    /// Operands that are scalars; `None`: in a row, or made by an earlier op of the loop.
    pub(crate) scalars: Vec<Option<(Shape, Vec<Value>)>>,
    /// A value op and how it is done; nothing for other ops, which join the loop.
    pub(crate) value_op: Option<(ValueOp, Way)>,
    /// A load: where pack 0 reads.
    pub(crate) from: Option<Value>,
}

impl Deferred {
    /// Whether the routine does it instead of the loop.
    fn by_routine(&self) -> bool {
        matches!(self.value_op, Some((_, Way::Routine)))
    }

    /// The words of scratch memory that its operands take.
    fn words(&self) -> u32 {
        self.scalars.iter().flatten().map(|(shape, _)| u32::from(!shape.is_uniform())).sum()
    }
}

/// What waits in a block for the loop over packs.
pub(crate) struct Waiting {
    items: Vec<Deferred>,
    /// Registers that those read or write.
    touched: FastSet<Reg>,
    /// By register: the last instruction of the block that reads it; its end is one after the last.
    last_read: FastMap<Reg, usize>,
}

impl Waiting {
    /// Nothing of a block.
    pub(crate) fn new(block: &Block) -> Waiting {
        let mut last_read = FastMap::default();
        let ends = block.term.sources();
        let reads = block.insts.iter().map(|inst| &inst.src[..]).chain([&ends[..]]).enumerate();
        for (i, src) in reads {
            last_read.extend(src.iter().filter_map(|v| match v {
                Val::Reg(r) => Some((*r, i)),
                Val::Imm(..) => None,
            }));
        }
        Waiting { items: Vec::new(), touched: FastSet::default(), last_read }
    }

    /// One more waits.
    pub(crate) fn push(&mut self, item: Deferred, inst: &Inst) {
        let read = inst.src.iter().filter_map(|v| match v {
            Val::Reg(r) => Some(*r),
            Val::Imm(..) => None,
        });
        self.touched.extend(read.chain(inst.dst.iter().copied()));
        self.items.push(item);
    }

    /// Whether any of those reads or writes a register.
    pub(crate) fn touches(&self, r: Reg) -> bool {
        self.touched.contains(&r)
    }
}

/// A scalar operand prepared for the loop.
enum Prepared {
    /// The vectors for every pack.
    Vectors(Vec<Value>),
    /// Words of the packs' first lanes in scratch memory, and the stride.
    Words(u32, i64),
    /// The first lane of all, and the stride.
    Linear(Value, i64),
}

/// What one turn of the loop knows.
struct Turn {
    /// Context plus 16 bytes for each pack before this one.
    row32: Value,
    /// Context plus 32 bytes for each pack before this one.
    row64: Value,
    /// Context plus 8 bytes for each pack before this one.
    word: Value,
    /// 16 bytes for each pack before this one.
    offset: Value,
    mask: Value,
    values: Vec<(Reg, Vec<Value>)>,
    /// By register: the latest of its values.
    latest: FastMap<Reg, usize>,
}

impl Turn {
    /// A register has a new value.
    fn set(&mut self, r: Reg, value: Vec<Value>) {
        self.latest.insert(r, self.values.len());
        self.values.push((r, value));
    }

    /// The value that a register got in this turn.
    fn value(&self, r: Reg) -> Option<&[Value]> {
        self.latest.get(&r).map(|k| self.values[*k].1.as_slice())
    }
}

/// Does what waits. Returns the bits of `cond` if it was made in the last loop.
pub(crate) fn flush_waiting(
    cx: &mut Emit<'_, '_>,
    b: usize,
    waiting: &mut Waiting,
    m: Value,
    cond: Option<Reg>,
) -> Option<Value> {
    let items = std::mem::take(&mut waiting.items);
    waiting.touched = FastSet::default();
    let mut bits = None;
    let mut i = 0;
    while i < items.len() {
        if items[i].by_routine() {
            eval_masked(cx, b, &items[i], m);
            i += 1;
            continue;
        }
        // A loop ends where a routine follows, and where there are no words of scratch memory for more operands.
        let mut words = 0;
        let ends = |k: &usize| {
            words += items[*k].words();
            items[*k].by_routine() || words > WORD_SLOTS
        };
        let end = (i..items.len()).find(ends).unwrap_or(items.len());
        let wanted = if end == items.len() { cond } else { None };
        bits = pack_loop(cx, b, &items[i..end], &waiting.last_read, m, wanted);
        i = end;
    }
    bits
}

fn eval_masked(cx: &mut Emit<'_, '_>, b: usize, item: &Deferred, m: Value) {
    let f = &cx.plan.func;
    let inst = &f.blocks[b].insts[item.inst];
    let Op::Pure(op) = inst.op else { panic!("{:?} is no value op and waits for a routine", inst.op) };
    cx.copy.n_scratch_used = 0;
    let src: Vec<Loc> = inst
        .src
        .iter()
        .zip(&item.scalars)
        .map(|(v, s)| match (s, v) {
            (Some(_), Val::Imm(..)) => cx.loc(*v),
            (Some((s, base)), _) => {
                let ty = cx.ty(*v);
                let rep = Rep::Affine(*s, base.clone());
                let rep = match cx.plan.odd_nans_of(*v) {
                    Some(float) => cx.asm.canonical_rep(&rep, float),
                    None => rep,
                };
                cx.loc_of(&rep, ty)
            }
            (None, Val::Reg(r)) => cx.row_of(*r),
            (None, Val::Imm(..)) => cx.loc(*v),
        })
        .collect();
    let dst: Vec<Loc> = inst.dst.iter().map(|d| cx.row_of(*d)).collect();
    let site = cx.code.tables.evals.len();
    cx.code.tables.evals.push(EvalSite { op, dst, src });
    cx.asm.routine(Routine::Eval, site, m, None, None);
}

fn pack_loop(
    cx: &mut Emit<'_, '_>,
    b: usize,
    items: &[Deferred],
    last_read: &FastMap<Reg, usize>,
    m: Value,
    cond: Option<Reg>,
) -> Option<Value> {
    let f = &cx.plan.func;
    let block = &f.blocks[b];
    // Scalars for every turn.
    let mut words_used = 0;
    let mut prepared: Vec<Vec<Option<Prepared>>> = Vec::new();
    for item in items {
        let inst = &block.insts[item.inst];
        let list = item
            .scalars
            .iter()
            .zip(&inst.src)
            .map(|(s, v)| {
                let (s, base) = s.as_ref()?;
                let ty = cx.ty(*v);
                Some(prepare(cx, s, base, ty, &mut words_used))
            })
            .collect();
        prepared.push(list);
    }
    let (head, body, next, exit) =
        (cx.asm.b.create_block(), cx.asm.b.create_block(), cx.asm.b.create_block(), cx.asm.b.create_block());
    let index = cx.asm.b.append_block_param(head, types::I64);
    let rest = cx.asm.b.append_block_param(head, types::I32);
    let acc = cx.asm.b.append_block_param(head, types::I32);
    let acc_next = cx.asm.b.append_block_param(next, types::I32);
    let acc_exit = cx.asm.b.append_block_param(exit, types::I32);
    let (none, (start, lanes)) = (cx.asm.i32(0), cx.asm.first_pack(m));
    cx.asm.b.ins().jump(head, &[start.into(), lanes.into(), none.into()]);
    cx.asm.b.switch_to_block(head);
    let nibble = cx.asm.b.ins().band_imm_s(rest, 15);
    cx.asm.b.ins().brif(nibble, body, &[], next, &[acc.into()]);
    cx.asm.b.switch_to_block(body);
    let mask = cx.asm.mask_of_nibble(nibble);
    let offset = cx.asm.b.ins().ishl_imm_s(index, 4);
    let row32 = cx.asm.b.ins().iadd(cx.asm.warp, offset);
    let row64 = cx.asm.b.ins().iadd(row32, offset);
    let byte8 = cx.asm.b.ins().ishl_imm_s(index, 3);
    let word = cx.asm.b.ins().iadd(cx.asm.warp, byte8);
    let mut turn = Turn { row32, row64, word, offset, mask, values: Vec::new(), latest: FastMap::default() };
    for (item, ready) in items.iter().zip(&prepared) {
        turn_inst(cx, &block.insts[item.inst], item, ready, &mut turn);
    }
    let last = items[items.len() - 1].inst;
    for (k, (r, v)) in turn.values.iter().enumerate() {
        // Only the last value of a register counts, and only if it is read later or lives on.
        let read_later = last_read.get(r).is_some_and(|at| *at > last) || cx.plan.facts.live.exit(b).has(r.idx());
        if turn.latest[r] != k || !read_later {
            continue;
        }
        let old = load_turn_row(cx, &turn, *r);
        let new = cx.asm.blend(turn.mask, v, &old);
        store_turn_row(cx, &turn, *r, &new);
    }
    let made = cond.and_then(|c| turn.value(c).map(|x| x[0]));
    let acc_body = match made {
        Some(c) => {
            let both = cx.asm.b.ins().band(c, turn.mask);
            let bits = cx.asm.b.ins().vhigh_bits(types::I32, both);
            let by = cx.asm.b.ins().ishl_imm_s(index, 2);
            let by = cx.asm.b.ins().ireduce(types::I32, by);
            let bits = cx.asm.b.ins().ishl(bits, by);
            cx.asm.b.ins().bor(acc, bits)
        }
        None => acc,
    };
    cx.asm.b.ins().jump(next, &[acc_body.into()]);
    cx.asm.b.switch_to_block(next);
    let index2 = cx.asm.b.ins().iadd_imm_s(index, 1);
    let rest2 = cx.asm.b.ins().ushr_imm_s(rest, 4);
    cx.asm.b.ins().brif(rest2, head, &[index2.into(), rest2.into(), acc_next.into()], exit, &[acc_next.into()]);
    cx.asm.b.switch_to_block(exit);
    made.map(|_| acc_exit)
}

fn prepare(cx: &mut Emit<'_, '_>, s: &Shape, base: &[Value], ty: Ty, words_used: &mut u32) -> Prepared {
    if s.is_uniform() {
        return Prepared::Vectors(cx.asm.spread(base[0], 0, ty));
    }
    // Short code computes the packs' first lanes in the loop, and not before.
    if cx.plan.is_short && s.is_linear() && matches!(ty, Ty::B32 | Ty::B64) {
        let first = cx.asm.first_lane(&(*s, base.to_vec()), 0, ty);
        return Prepared::Linear(first, s.stride);
    }
    let at = cx.packs.layout.words + 64 * *words_used;
    *words_used += 1;
    assert!(*words_used <= WORD_SLOTS, "out of words at {:?}", cx.copy.at);
    for p in 0..PACKS {
        let first = cx.asm.first_lane(&(*s, base.to_vec()), p, ty);
        let w = cx.asm.as_word(first, ty);
        cx.asm.store_warp(w, at as usize + 8 * p);
    }
    Prepared::Words(at, s.stride)
}

fn turn_source(cx: &mut Emit<'_, '_>, v: Val, ready: Option<&Prepared>, turn: &Turn) -> Vec<Value> {
    let ty = cx.ty(v);
    match (ready, v) {
        (Some(Prepared::Vectors(x)), _) => x.clone(),
        (Some(Prepared::Words(at, stride)), _) => {
            let t = scalar_type(ty);
            let first = cx.asm.b.ins().load(t, Asm::trusted(), turn.word, *at as i32);
            cx.asm.spread(first, *stride, ty)
        }
        (Some(Prepared::Linear(first, stride)), _) => {
            let lane = cx.asm.b.ins().ushr_imm_s(turn.offset, 2);
            let by = cx.asm.b.ins().imul_imm_s(lane, *stride);
            let by = if ty == Ty::B64 { by } else { cx.asm.b.ins().ireduce(types::I32, by) };
            let first = cx.asm.b.ins().iadd(*first, by);
            cx.asm.spread(first, *stride, ty)
        }
        (None, Val::Reg(r)) => match turn.value(r) {
            Some(v) => v.to_vec(),
            None => load_turn_row(cx, turn, r),
        },
        (None, Val::Imm(x, ty)) => {
            let c = cx.asm.scalar_const(x, ty);
            cx.asm.spread(c, 0, ty)
        }
    }
}

fn load_turn_row(cx: &mut Emit<'_, '_>, turn: &Turn, r: Reg) -> Vec<Value> {
    let ty = cx.plan.func.regs[r.idx()];
    let at = cx.row_offset(r);
    let base = if ty == Ty::B64 { turn.row64 } else { turn.row32 };
    cx.asm.load_of_row(base, at, ty)
}

fn store_turn_row(cx: &mut Emit<'_, '_>, turn: &Turn, r: Reg, v: &[Value]) {
    let at = cx.row_offset(r);
    let base = if v.len() == 2 { turn.row64 } else { turn.row32 };
    cx.asm.store_of_row(base, at, v);
}

fn turn_inst(cx: &mut Emit<'_, '_>, inst: &Inst, item: &Deferred, ready: &[Option<Prepared>], turn: &mut Turn) {
    match inst.op {
        Op::Pure(op) => {
            let Some((v, Way::Vector(way))) = &item.value_op else { panic!("{op:?} in a loop over packs") };
            let mut packs = Vec::new();
            let mut scalars = Vec::new();
            for (k, source) in inst.src.iter().enumerate() {
                let x = turn_source(cx, *source, ready[k].as_ref(), turn);
                packs.push(match cx.plan.odd_nans_of(*source) {
                    Some(float) if !v.takes_odd_nans => x.into_iter().map(|y| cx.asm.canonical(y, float)).collect(),
                    _ => x,
                });
                scalars.push(item.scalars[k].as_ref().filter(|(s, _)| s.is_uniform()).map(|(_, b)| b[0]));
            }
            let sources = Sources { vectors: &packs, scalars: &scalars };
            let (one, two) = value_op(cx, v, &Form::Packs { way: *way, n_packs: 1, sources });
            turn.set(inst.dst[0], one);
            if let Some(d2) = inst.dst.get(1) {
                turn.set(*d2, two);
            }
        }
        Op::Cvta { space, to_space } => {
            let x = turn_source(cx, inst.src[0], ready[0].as_ref(), turn);
            let y = if space == StateSpace::Shared {
                let base = cx.asm.load_cta(types::I64, offset_of!(CtaCtx, shared_base));
                let by = cx.asm.splat64(base);
                x.into_iter()
                    .map(|v| if to_space { cx.asm.b.ins().isub(v, by) } else { cx.asm.b.ins().iadd(v, by) })
                    .collect()
            } else {
                x
            };
            turn.set(inst.dst[0], y);
        }
        Op::Load { .. } => {
            let Some(from) = item.from else { panic!("a load without its address") };
            let at = cx.asm.b.ins().iadd(from, turn.offset);
            let v = cx.asm.load_words(at);
            turn.set(inst.dst[0], vec![v]);
        }
        Op::Sreg(s) => {
            let v = match sreg_way(s, &cx.plan.facts.shape) {
                SregWay::Mask(n) => {
                    let at = cx.asm.b.ins().iadd(cx.asm.pool_ptr, turn.offset);
                    cx.asm.lane_masks(at, n, 0)
                }
                SregWay::Tid(i) => {
                    let lane = cx.asm.b.ins().ushr_imm_s(turn.offset, 2);
                    let lane = cx.asm.b.ins().ireduce(types::I32, lane);
                    tid_pack(cx, i, lane)
                }
                SregWay::Scalar | SregWay::Shaped(_) => panic!("{s:?} is a scalar"),
            };
            turn.set(inst.dst[0], vec![v]);
        }
        other => panic!("{other:?} in a loop over packs"),
    }
}
