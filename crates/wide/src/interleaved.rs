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
use handloom_ir::simt::{Counting, FrameLayout, Function, Inst, Op, Pure, Reg, Term, Val};
use handloom_ir::types::{Order, Sreg, StateSpace, Ty};
use handloom_plan::Options;
use handloom_plan::abi::Interleaved;
use handloom_plan::access::{AccessClass, Kind};
use handloom_plan::analysis::n_definitions;
use handloom_plan::analysis::reach::Reaches;

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
        let class = local(inst).filter(|_| self.are_apart())?;
        let whole = self.vectors.get(&(inst.span, class.offset)).copied();
        let (op, element) = whole.unwrap_or_else(|| (class.op(), 0));
        Some((op, Interleaved { bytes: self.bytes, element, offset: class.offset }))
    }
}

/// A load or store of `.local`.
fn local(inst: &Inst) -> Option<AccessClass> {
    let is_move = |class: &AccessClass| matches!(class.kind, Kind::Load | Kind::Store);
    AccessClass::of(inst).filter(|class| class.space == StateSpace::Local && is_move(class))
}

/// Registers that are addresses in local memory, with how many of their lowest bits are zero at least.
#[derive(Debug, Default)]
struct Addresses(FastMap<Reg, u32>);

impl Addresses {
    fn zeros(&self, v: Val) -> Option<u32> {
        let Val::Reg(r) = v else { return None };
        self.0.get(&r).copied()
    }

    fn have(&self, v: Val) -> bool {
        self.zeros(v).is_some()
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
    addresses: Addresses,
    /// What is known of numbers of 64 and of 32 bits.
    known: FastMap<Reg, Option<Known>>,
    reaches: Reaches,
}

impl<'f> Search<'f> {
    fn new(f: &'f Function) -> Search<'f> {
        let n_definitions = n_definitions(f);
        let insts = || f.blocks.iter().flat_map(|b| &b.insts);
        let once = |d: &&Reg| n_definitions[d.idx()] == 1;
        let made = insts().flat_map(|i| i.dst.iter().filter(once).map(move |d| (*d, i))).collect();
        let (addresses, known, reaches) = Default::default();
        Search { f, n_definitions, made, addresses, known, reaches }
    }

    fn insts(&self) -> impl Iterator<Item = &'f Inst> + use<'f> {
        self.f.blocks.iter().flat_map(|b| &b.insts)
    }

    /// How many of the lowest bits of what an instruction makes are zero, if it makes an address of others; `Err` if it makes something else of one.
    fn made_of(&mut self, inst: &Inst) -> Result<Option<u32>, ()> {
        let n = inst.operands().iter().filter(|v| self.addresses.have(**v)).count();
        let zeros = |s: &Self, i: usize| s.addresses.zeros(inst.src[i]);
        match (inst.op, n) {
            (Op::SlotAddr(s), 0) => {
                let slot = self.f.slots[s.idx()];
                let offset = slot.at.map_or(0, |p| p.offset);
                Ok(Some(slot.align.trailing_zeros().min(offset.trailing_zeros()).min(ALIGN)))
            }
            (_, 0) => Ok(None),
            (Op::Pure(Pure::Mov(Ty::B64)), 1) => Ok(zeros(self, 0)),
            (Op::Pure(Pure::Select(Ty::B64)), 2) if !self.addresses.have(inst.src[0]) => {
                Ok(zeros(self, 1).into_iter().chain(zeros(self, 2)).min())
            }
            (Op::Pure(op @ (Pure::Add(Ty::B64) | Pure::Sub(Ty::B64))), 1) => {
                let (from, by) = match zeros(self, 0) {
                    None if matches!(op, Pure::Sub(_)) => return Err(()),
                    None => (zeros(self, 1), inst.src[0]),
                    from => (from, inst.src[1]),
                };
                let known = self.known(by, MOST_OPS).filter(|k| k.bits <= MOST_BITS).ok_or(())?;
                Ok(from.map(|z| z.min(known.zeros)))
            }
            _ => Err(()),
        }
    }

    /// What is known of a number.
    fn known(&mut self, v: Val, left: u32) -> Option<Known> {
        match v {
            Val::Imm(n, Ty::B64) => {
                let (n, has_sign) = (n.cast_signed().unsigned_abs(), n >> 63 == 1);
                Some(Known { zeros: n.trailing_zeros(), bits: 64 - n.leading_zeros(), has_sign })
            }
            Val::Reg(r) if self.f.regs[r.idx()] == Ty::B64 => {
                if let Some(known) = self.known.get(&r) {
                    return *known;
                }
                let inst = self.made.get(&r).copied().filter(|i| left > 0 && !i.guarded);
                let known = inst.and_then(|inst| self.known_of(inst, left - 1));
                self.known.insert(r, known);
                known
            }
            // It may be meant with a sign or without one.
            _ => {
                let reach = self.reaches.of(v, &|r| self.made.get(&r).copied());
                let bits = 32 - reach.most.leading_zeros();
                Some(Known { zeros: reach.zeros, bits, has_sign: bits == 32 })
            }
        }
    }

    /// What is known of a number of 64 bits that an instruction makes.
    fn known_of(&mut self, inst: &Inst, left: u32) -> Option<Known> {
        let Op::Pure(op) = inst.op else { return None };
        let mut source = |i: usize| self.known(inst.src[i], left);
        let by = match inst.src.get(1) {
            Some(Val::Imm(n, _)) => u32::try_from(*n).ok().filter(|n| *n < 32),
            _ => None,
        };
        match (op, by) {
            (Pure::Mov(_), _) => source(0),
            (Pure::Ext { bits, signed, .. }, _) if bits <= 32 => {
                let zeros = source(0).map_or(0, |k| k.zeros);
                Some(Known { zeros, bits: bits.into(), has_sign: signed })
            }
            (Pure::MulWide(_) | Pure::Mul(_), _) => {
                let (x, y) = (source(0)?, source(1)?);
                let zeros = x.zeros.saturating_add(y.zeros);
                Some(Known { zeros, bits: x.bits + y.bits, has_sign: x.has_sign || y.has_sign })
            }
            (Pure::Shl(_), Some(by)) => {
                let x = source(0)?;
                Some(Known { zeros: x.zeros.saturating_add(by), bits: x.bits + by, ..x })
            }
            // What has a sign becomes large.
            (Pure::Shr(int), Some(by)) if !int.signed => Some(match source(0) {
                Some(x) if !x.has_sign => {
                    Known { zeros: x.zeros.saturating_sub(by), bits: x.bits.saturating_sub(by), ..x }
                }
                _ => Known { zeros: 0, bits: 64 - by, has_sign: false },
            }),
            (Pure::And(_), _) => match (source(0), source(1)) {
                (Some(x), Some(y)) => {
                    let less = [x, y].into_iter().filter(|k| !k.has_sign).map(|k| k.bits).min();
                    let bits = less.unwrap_or(x.bits.max(y.bits) + 1);
                    Some(Known { zeros: x.zeros.max(y.zeros), bits, has_sign: less.is_none() })
                }
                (Some(k), None) | (None, Some(k)) if !k.has_sign => Some(k),
                _ => None,
            },
            (Pure::Add(_) | Pure::Sub(_), _) => {
                let (x, y) = (source(0)?, source(1)?);
                let has_sign = x.has_sign || y.has_sign || matches!(op, Pure::Sub(_));
                Some(Known { zeros: x.zeros.min(y.zeros), bits: x.bits.max(y.bits) + 1, has_sign })
            }
            _ => None,
        }
    }

    /// Finds the addresses, with all that is made of them; nothing if one of them is something else too.
    fn find(&mut self) -> Option<()> {
        loop {
            let mut changed = false;
            for inst in self.insts() {
                let Some(zeros) = self.made_of(inst).ok().flatten() else { continue };
                let known = self.addresses.0.entry(inst.dst[0]).or_insert(u32::MAX);
                changed |= zeros < *known;
                *known = zeros.min(*known);
            }
            if !changed {
                break;
            }
        }
        let mut n_made: FastMap<Reg, u32> = FastMap::default();
        for inst in self.insts() {
            if local(inst).is_some() {
                // The address is one, and nothing else.
                let others = inst.src.iter().skip(1).any(|v| self.addresses.have(*v));
                let makes = inst.dst.iter().any(|d| self.addresses.have(Val::Reg(*d)));
                (self.addresses.have(inst.src[0]) && !others && !makes).then_some(())?;
            } else if self.made_of(inst).ok()?.is_some() {
                inst.guard().is_none_or(|g| !self.addresses.have(g)).then_some(())?;
                *n_made.entry(inst.dst[0]).or_default() += 1;
            }
        }
        let all_made = self.addresses.0.keys().all(|r| n_made.get(r) == Some(&self.n_definitions[r.idx()]));
        let is_read = self.f.blocks.iter().flat_map(|b| b.term.sources()).any(|v| self.addresses.have(v));
        (all_made && !is_read).then_some(())
    }

    /// Bytes of the elements, if all accesses have such.
    fn element(&self) -> Option<u8> {
        let mut bytes = None;
        for class in self.insts().filter_map(local) {
            let whole = class.bytes().cast_unsigned();
            let is_plain = class.order == Order::Weak && !class.is_single && !class.is_async && class.count <= 4;
            let is_fit = whole.is_power_of_two()
                && self.addresses.zeros(class.address) >= Some(whole.trailing_zeros())
                && class.offset % class.bytes() == 0
                && i32::try_from(class.offset * LANES).is_ok();
            let is_whole = class.wants_all() || class.kind == Kind::Load;
            if !is_plain || !is_fit || !is_whole || *bytes.get_or_insert(class.bits / 8) != class.bits / 8 {
                return None;
            }
        }
        bytes
    }

    /// Bytes of the elements and the addresses, with how often registers are made, if local memory may lie so.
    fn found(mut self) -> Option<(u8, Addresses, Vec<u32>)> {
        self.find()?;
        Some((self.element()?, self.addresses, self.n_definitions))
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
    let Some((bytes, addresses, n_definitions)) = Search::new(&func).found() else {
        return (func, Elements::default());
    };
    let offsets = FrameLayout::new(&func).offsets;
    let elements = Elements { bytes, ..Elements::default() };
    let mut to = Rewriter { f: func.into_owned(), addresses, n_definitions, offsets, options, elements };
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
    addresses: Addresses,
    n_definitions: Vec<u32>,
    /// Of slots, in the frame.
    offsets: Vec<u64>,
    options: &'o Options,
    elements: Elements,
}

impl Rewriter<'_> {
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
        if let Some(class) = local(&inst) {
            let touched = (0..class.count).filter(|e| class.elements >> e & 1 == 1);
            touched.for_each(|e| self.add_element(b, &inst, class, e));
            return;
        }
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
            Op::Pure(Pure::Add(Ty::B64) | Pure::Sub(Ty::B64)) if self.addresses.have(Val::Reg(inst.dst[0])) => {
                let i = usize::from(self.addresses.have(inst.src[0]));
                inst.src[i] = match inst.src[i] {
                    Val::Imm(n, ty) => Val::Imm(n << SHIFT, ty),
                    by => {
                        let shift = Val::Imm(SHIFT, Ty::B32);
                        self.make(b, Ty::B64, Op::Pure(Pure::Shl(Ty::B64)), &[by, shift], span)
                    }
                };
            }
            _ => {}
        }
        self.f.blocks[b].insts.push(inst);
    }

    /// Adds the access to one element of those of an instruction.
    fn add_element(&mut self, b: usize, inst: &Inst, class: AccessClass, e: u8) {
        let offset = LANES * (class.offset + i64::from(e) * i64::from(self.elements.bytes));
        let op = AccessClass { count: 1, elements: 1, offset, ..class }.op();
        let mut one = Inst { op, ..inst.clone() };
        if class.kind == Kind::Load {
            one.dst = [inst.dst[usize::from(e)]].into_iter().collect();
        } else {
            one.src = [inst.src[0], inst.src[1 + usize::from(e)]].into_iter().chain(inst.guard()).collect();
        }
        if class.count > 1 {
            self.elements.vectors.insert((inst.span, offset), (inst.op, e));
        }
        self.f.blocks[b].insts.push(one);
    }
}

/// A number of 32 bits as one of 64.
const UNSIGNED: Pure = Pure::Ext { bits: 32, signed: false, from: Ty::B32, to: Ty::B64 };
