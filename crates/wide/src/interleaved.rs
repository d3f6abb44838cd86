//! Arrays of threads, element by element: where code alone sees the local memory of a thread, element i of lane l is element 32 i + l of the warp's local memory, as lanes
//! that use the same index then read and write neighbours.
//!
//! # The model
//! Local memory of a warp is 32 times that of a thread, which lies together in it where others may be told of an address. Nobody is if each address of a frame slot is
//! made into others by adding to it alone, and all of these are those of loads and stores of `.local`. Such addresses are made 32 times as far apart here: the function that comes
//! out computes places in the warp's memory, and its accesses are as any others. That an element lies inside its thread's memory is then that its place lies inside the warp's.
//! What lies outside is told by the routine, which knows the statement's own access by its site ([`Interleaved`]).

use std::borrow::Cow;

use handloom_diag::Span;
use handloom_diag::hash::FastMap;
use handloom_ir::simt::{Access, Counting, FrameLayout, Function, Inst, Op, Pure, Reg, Term, Val};
use handloom_ir::types::{Order, Sreg, StateSpace, Ty};
use handloom_plan::Options;
use handloom_plan::abi::Interleaved;
use handloom_plan::access::AccessClass;
use handloom_plan::analysis::n_definitions;

/// Elements of a warp for one of a thread.
const LANES: i64 = 32;
/// The same as a shift.
const SHIFT: u64 = LANES.trailing_zeros() as u64;
/// Bits of what may be added to an address, so that [`LANES`] times as much is no other number, nor what some thousand turns of a loop add.
const MOST_BITS: u32 = 44;
/// Bytes that local memory of every thread is a multiple of, as a power of two.
const ALIGN: u32 = 4;
/// Ops behind each other that are looked at.
const MOST_OPS: u32 = 12;

/// What is known of it for the accesses of a function.
#[derive(Debug, Default)]
pub(crate) struct Elements {
    /// Bytes of an element; 0 where memory lies thread by thread.
    bytes: u8,
    /// The places of slots, with their bytes.
    slots: FastMap<Reg, u32>,
    /// Accesses of several elements, by their statement and the offset of the place of one.
    vectors: FastMap<(Span, i64), (Op, u8)>,
}

impl Elements {
    /// Whether local memory lies so.
    pub(crate) fn are_apart(&self) -> bool {
        self.bytes != 0
    }

    /// Whether an access is to an element of a slot, whatever happens.
    pub(crate) fn holds(&self, class: &AccessClass) -> bool {
        let Val::Reg(r) = class.address else { return false };
        let end = class.offset / LANES + class.bytes();
        class.offset >= 0 && self.slots.get(&r).is_some_and(|bytes| end <= i64::from(*bytes))
    }

    /// The access that a statement wrote, and which element of it an instruction does.
    pub(crate) fn of(&self, inst: &Inst) -> Option<(Op, Interleaved)> {
        if !self.are_apart() {
            return None;
        }
        let (access, offset) = access_of(&inst.op).filter(|(a, _)| a.space == StateSpace::Local)?;
        let whole = self.vectors.get(&(inst.span, offset)).copied();
        let (op, element) = whole.unwrap_or_else(|| (with(&inst.op, access, 0), 0));
        Some((op, Interleaved { bytes: self.bytes, element, offset }))
    }
}

/// The access of a load or a store, and what it adds to the address.
fn access_of(op: &Op) -> Option<(Access, i64)> {
    match *op {
        Op::Load { access, offset } | Op::Store { access, offset } => Some((access, offset)),
        _ => None,
    }
}

/// The same op with another access.
fn with(op: &Op, access: Access, offset: i64) -> Op {
    match op {
        Op::Load { .. } => Op::Load { access, offset },
        _ => Op::Store { access, offset },
    }
}

/// What is known of a number that is added to an address.
#[derive(Clone, Copy)]
struct Known {
    /// How many of its lowest bits are zero.
    zeros: u32,
    /// It lies below two to this power, and above its negative.
    bits: u32,
    /// It may be negative.
    has_sign: bool,
}

/// What is asked of a function.
struct Search<'f> {
    f: &'f Function,
    n_definitions: Vec<u32>,
    /// By register that one instruction makes: it.
    made: FastMap<Reg, &'f Inst>,
    /// By register that is an address in local memory: how many of its lowest bits are zero at least.
    zeros: FastMap<Reg, u32>,
}

impl<'f> Search<'f> {
    fn new(f: &'f Function) -> Search<'f> {
        let n_definitions = n_definitions(f);
        let insts = || f.blocks.iter().flat_map(|b| &b.insts);
        let once = |d: &&Reg| n_definitions[d.idx()] == 1;
        let made = insts().flat_map(|i| i.dst.iter().filter(once).map(move |d| (*d, i))).collect();
        Search { f, n_definitions, made, zeros: FastMap::default() }
    }

    fn insts(&self) -> impl Iterator<Item = &'f Inst> + use<'f> {
        self.f.blocks.iter().flat_map(|b| &b.insts)
    }

    fn is_address(&self, v: Val) -> bool {
        matches!(v, Val::Reg(r) if self.zeros.contains_key(&r))
    }

    /// How many of the lowest bits of what an instruction makes are zero, if it makes an address of others; `Err` if it makes something else of one.
    fn made_of(&self, inst: &Inst) -> Result<Option<u32>, ()> {
        let n = inst.operands().iter().filter(|v| self.is_address(**v)).count();
        let zeros = |i: usize| match inst.src[i] {
            Val::Reg(r) => self.zeros.get(&r).copied(),
            Val::Imm(..) => None,
        };
        match (inst.op, n) {
            (Op::SlotAddr(s), 0) => {
                let slot = self.f.slots[s.idx()];
                let offset = slot.at.map_or(0, |p| p.offset);
                Ok(Some(slot.align.trailing_zeros().min(offset.trailing_zeros()).min(ALIGN)))
            }
            (_, 0) => Ok(None),
            (Op::Pure(Pure::Mov(Ty::B64)), 1) => Ok(zeros(0)),
            (Op::Pure(Pure::Select(Ty::B64)), 2) if !self.is_address(inst.src[0]) => {
                Ok(Some(zeros(1).into_iter().chain(zeros(2)).fold(u32::MAX, u32::min)))
            }
            (Op::Pure(op @ (Pure::Add(Ty::B64) | Pure::Sub(Ty::B64))), 1) => {
                let (from, by) = if zeros(0).is_some() { (zeros(0), inst.src[1]) } else { (zeros(1), inst.src[0]) };
                if matches!(op, Pure::Sub(_)) && zeros(0).is_none() {
                    return Err(());
                }
                let known = self.known(by, MOST_OPS).filter(|k| k.bits <= MOST_BITS).ok_or(())?;
                Ok(from.map(|z| z.min(known.zeros)))
            }
            _ => Err(()),
        }
    }

    /// What is known of a number.
    fn known(&self, v: Val, left: u32) -> Option<Known> {
        let any = |ty: Ty| (ty != Ty::B64).then_some(Known { zeros: 0, bits: 32, has_sign: true });
        let r = match v {
            Val::Imm(n, ty) => {
                // One of 32 bits may be meant with a sign or without one.
                let has_sign = n >> 63 == 1 || ty != Ty::B64;
                let n = if ty == Ty::B64 { n.cast_signed().unsigned_abs() } else { n & 0xffff_ffff };
                return Some(Known { zeros: n.trailing_zeros(), bits: 64 - n.leading_zeros(), has_sign });
            }
            Val::Reg(r) => r,
        };
        let ty = self.f.regs[r.idx()];
        let Some(inst) = self.made.get(&r).filter(|i| left > 0 && !i.guarded) else { return any(ty) };
        let source = |i: usize| self.known(inst.src[i], left - 1);
        let by = match inst.src.get(1) {
            Some(Val::Imm(n, _)) => u32::try_from(*n).ok().filter(|n| *n < 32),
            _ => None,
        };
        let Op::Pure(op) = inst.op else { return any(ty) };
        let both = || Some((source(0)?, source(1)?));
        let of = match (op, by) {
            (Pure::Mov(_), _) => source(0),
            (Pure::Ext { bits, to: Ty::B64, signed, .. }, _) if bits <= 32 => {
                let zeros = source(0).map_or(0, |k| k.zeros);
                Some(Known { zeros, bits: bits.into(), has_sign: signed })
            }
            (Pure::MulWide(_) | Pure::Mul(_), _) => both().map(|(x, y)| Known {
                zeros: x.zeros.saturating_add(y.zeros),
                bits: x.bits + y.bits,
                has_sign: x.has_sign || y.has_sign,
            }),
            (Pure::Shl(_), Some(by)) => {
                source(0).map(|x| Known { zeros: x.zeros.saturating_add(by), bits: x.bits + by, ..x })
            }
            // What has a sign becomes large.
            (Pure::Shr(int), Some(by)) if !int.signed && ty == Ty::B64 => Some(match source(0) {
                Some(x) if !x.has_sign => {
                    Known { zeros: x.zeros.saturating_sub(by), bits: x.bits.saturating_sub(by), ..x }
                }
                _ => Known { zeros: 0, bits: 64 - by, has_sign: false },
            }),
            (Pure::And(Ty::B64), _) => match (source(0), source(1)) {
                (Some(x), Some(y)) => {
                    let less = [x, y].into_iter().filter(|k| !k.has_sign).map(|k| k.bits).min();
                    let bits = less.unwrap_or(x.bits.max(y.bits) + 1);
                    Some(Known { zeros: x.zeros.max(y.zeros), bits, has_sign: less.is_none() })
                }
                (Some(k), None) | (None, Some(k)) if !k.has_sign => Some(k),
                _ => None,
            },
            (Pure::And(_), _) => both().map(|(x, y)| Known { zeros: x.zeros.max(y.zeros), ..x }),
            (Pure::Add(_) | Pure::Sub(_), _) => both().map(|(x, y)| Known {
                zeros: x.zeros.min(y.zeros),
                bits: x.bits.max(y.bits) + 1,
                has_sign: x.has_sign || y.has_sign || matches!(op, Pure::Sub(_)),
            }),
            _ => None,
        };
        match (of, ty) {
            (of, Ty::B64) => of,
            // What wraps has its lowest bits as they were.
            (Some(k), _) => Some(Known { bits: 32, has_sign: true, ..k }),
            (None, _) => any(ty),
        }
    }

    /// Finds the addresses, with all that is made of them; nothing if one of them is something else too.
    fn find(&mut self) -> Option<()> {
        loop {
            let mut changed = false;
            for inst in self.insts() {
                let Some(zeros) = self.made_of(inst).ok().flatten() else { continue };
                let known = self.zeros.entry(inst.dst[0]).or_insert(u32::MAX);
                changed |= zeros < *known;
                *known = zeros.min(*known);
            }
            if !changed {
                break;
            }
        }
        let mut n_made: FastMap<Reg, u32> = FastMap::default();
        for inst in self.insts() {
            let is_access = access_of(&inst.op).is_some_and(|(a, _)| a.space == StateSpace::Local);
            if is_access {
                // The address is one, and nothing else.
                let others = inst.src.iter().skip(1).any(|v| self.is_address(*v));
                let makes = inst.dst.iter().any(|d| self.zeros.contains_key(d));
                (self.is_address(inst.src[0]) && !others && !makes).then_some(())?;
            } else if self.made_of(inst).ok()?.is_some() {
                inst.guard().is_none_or(|g| !self.is_address(g)).then_some(())?;
                *n_made.entry(inst.dst[0]).or_default() += 1;
            }
        }
        let all_made = self.zeros.keys().all(|r| n_made.get(r) == Some(&self.n_definitions[r.idx()]));
        let is_read = self.f.blocks.iter().flat_map(|b| b.term.sources()).any(|v| self.is_address(v));
        (all_made && !is_read).then_some(())
    }

    /// Bytes of the elements, if all accesses have such.
    fn element(&self) -> Option<u8> {
        let mut bytes = None;
        for inst in self.insts() {
            let Some((a, offset)) = access_of(&inst.op).filter(|(a, _)| a.space == StateSpace::Local) else { continue };
            let Val::Reg(address) = inst.src[0] else { return None };
            let whole = a.bytes();
            let is_plain = a.order == Order::Weak && !a.is_single && !a.is_async && a.count <= 4;
            let is_fit = whole.is_power_of_two()
                && whole.trailing_zeros() <= self.zeros[&address]
                && offset % i64::from(whole) == 0
                && i32::try_from(offset * LANES).is_ok();
            let is_whole = a.elements == u8::MAX >> (8 - a.count) || matches!(inst.op, Op::Load { .. });
            if !is_plain || !is_fit || !is_whole || *bytes.get_or_insert(a.bits / 8) != a.bits / 8 {
                return None;
            }
        }
        bytes
    }
}

/// The function with local memory that lies element by element, if nobody else sees it and its accesses are of elements of one size.
pub(crate) fn interleaved<'f>(func: Cow<'f, Function>, options: &Options) -> (Cow<'f, Function>, Elements) {
    let is_alone = func.is_entry
        && !options.is_callee
        && !options.audited
        && options.counted == Counting::Nothing
        && !func.slots.is_empty()
        && !func.blocks.iter().any(|b| matches!(b.term, Term::Call { .. }))
        && !func.blocks.iter().flat_map(|b| &b.insts).any(|i| matches!(i.op, Op::Stack(_) | Op::ArgAddr { .. }));
    if !is_alone {
        return (func, Elements::default());
    }
    let mut search = Search::new(&func);
    let Some(bytes) = search.find().and_then(|()| search.element()) else { return (func, Elements::default()) };
    let offsets = FrameLayout::new(&func).offsets;
    let Search { n_definitions, zeros: addresses, .. } = search;
    let elements = Elements { bytes, ..Elements::default() };
    let mut to = Rewriter { f: func.clone().into_owned(), addresses, n_definitions, offsets, options, elements };
    for b in 0..to.f.blocks.len() {
        for inst in std::mem::take(&mut to.f.blocks[b].insts) {
            to.add(b, inst);
        }
    }
    (Cow::Owned(to.f), to.elements)
}

/// A function on its way.
struct Rewriter<'o> {
    f: Function,
    /// Registers that are addresses in local memory.
    addresses: FastMap<Reg, u32>,
    n_definitions: Vec<u32>,
    /// Of slots, in the frame.
    offsets: Vec<u64>,
    options: &'o Options,
    elements: Elements,
}

impl Rewriter<'_> {
    fn is_address(&self, v: Val) -> bool {
        matches!(v, Val::Reg(r) if self.addresses.contains_key(&r))
    }

    /// Adds an instruction that makes a new register.
    fn make(&mut self, b: usize, ty: Ty, op: Op, src: &[Val], span: Span) -> Val {
        let d = Reg(self.f.regs.len() as u32);
        self.f.regs.push(ty);
        let inst = Inst { op, dst: [d].into_iter().collect(), src: src.into(), guarded: false, span };
        self.f.blocks[b].insts.push(inst);
        Val::Reg(d)
    }

    /// Adds what an instruction becomes to a block.
    fn add(&mut self, b: usize, mut inst: Inst) {
        let span = inst.span;
        match inst.op {
            Op::SlotAddr(slot) => {
                let by = i64::from(self.elements.bytes) - i64::from(self.options.local_stride);
                let imm = |n: i64| Val::Imm(n.cast_unsigned(), Ty::B64);
                let from = self.make(b, Ty::B64, inst.op, &[], span);
                let lane = self.make(b, Ty::B32, Op::Sreg(Sreg::Laneid), &[], span);
                let lane = self.make(b, Ty::B64, Op::Pure(UNSIGNED), &[lane], span);
                let by = self.make(b, Ty::B64, Op::Pure(Pure::Mul(Ty::B64)), &[lane, imm(by)], span);
                let at = self.make(b, Ty::B64, Op::Pure(Pure::Add(Ty::B64)), &[from, by], span);
                let more = (LANES - 1) * self.offsets[slot.idx()].cast_signed();
                inst.op = Op::Pure(Pure::Add(Ty::B64));
                inst.src = [at, imm(more)].into_iter().collect();
                if self.n_definitions[inst.dst[0].idx()] == 1 {
                    self.elements.slots.insert(inst.dst[0], self.f.slots[slot.idx()].size);
                }
            }
            Op::Pure(Pure::Add(Ty::B64) | Pure::Sub(Ty::B64)) if self.is_address(Val::Reg(inst.dst[0])) => {
                let i = usize::from(self.is_address(inst.src[0]));
                inst.src[i] = match inst.src[i] {
                    Val::Imm(n, ty) => Val::Imm(n << SHIFT, ty),
                    by => {
                        let shift = Val::Imm(SHIFT, Ty::B32);
                        self.make(b, Ty::B64, Op::Pure(Pure::Shl(Ty::B64)), &[by, shift], span)
                    }
                };
            }
            Op::Load { access, offset } | Op::Store { access, offset } if self.is_address(inst.src[0]) => {
                for e in (0..access.count).filter(|e| access.elements >> e & 1 == 1) {
                    self.add_element(b, &inst, access, offset, e);
                }
                return;
            }
            _ => {}
        }
        self.f.blocks[b].insts.push(inst);
    }

    /// Adds the access to one element of those of an instruction.
    fn add_element(&mut self, b: usize, inst: &Inst, access: Access, offset: i64, e: u8) {
        let at = LANES * (offset + i64::from(e) * i64::from(self.elements.bytes));
        let mut one = Inst { op: with(&inst.op, Access { count: 1, elements: 1, ..access }, at), ..inst.clone() };
        if matches!(inst.op, Op::Load { .. }) {
            one.dst = [inst.dst[usize::from(e)]].into_iter().collect();
        } else {
            one.src = [inst.src[0], inst.src[1 + usize::from(e)]].into_iter().chain(inst.guard()).collect();
        }
        if access.count > 1 {
            self.elements.vectors.insert((inst.span, at), (inst.op, e));
        }
        self.f.blocks[b].insts.push(one);
    }
}

/// A number of 32 bits as one of 64.
const UNSIGNED: Pure = Pure::Ext { bits: 32, signed: false, from: Ty::B32, to: Ty::B64 };
