//! What a kernel takes the values for that it loads through the pointers among its parameters.
//!
//! PTX declares a pointer as an integer and most loads as bits, so the types of the operations that take the values tell what the memory
//! holds. What is found is evidence and no proof: pointers are followed through additions, copies and choices, values through copies,
//! choices, halves and shuffles. Everything else that happens to a value is *unknown*, and a pointer that goes anywhere else *escapes*.

use std::collections::BTreeMap;

use handloom_diag::Span;
use handloom_ir::simt::*;
use handloom_ir::types::{Float, ScalarType, StateSpace};

use crate::passes::split::split_ranges;

/// How an entry reads the memory behind one pointer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reads {
    /// Types that values are taken for.
    uses: Vec<Evidence>,
    /// Widths in bits of loads whose values may be taken for anything.
    unknown: Vec<u32>,
    /// The pointer goes where it is not followed.
    escapes: bool,
}

/// An operation of a float type takes a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Evidence {
    /// Element type of the operation.
    ty: ScalarType,
    /// Bits of an element of the load.
    bits: u32,
    /// It takes a half of what was loaded.
    half: bool,
    /// The load.
    span: Span,
}

impl Reads {
    /// The float type that memory is read as, and a load that does, if that cannot be elements of `held`: all evidence is for other types,
    /// and nothing that is not understood may be a read of such elements. Integers are bits of anything, but those of 64 bits are no floats
    /// of fewer bits.
    pub fn contradiction(&self, held: ScalarType) -> Option<(ScalarType, Span)> {
        let first = self.uses.first()?;
        let is_evidence = |e: &&Evidence| !(e.half && e.bits == held.bits());
        let against = |e: &Evidence| match held {
            ScalarType::F16 | ScalarType::BF16 | ScalarType::F32 | ScalarType::F64 => e.ty != held,
            ScalarType::S64 => e.ty.bits() < held.bits(),
            _ => false,
        };
        // A wide load may move several such elements.
        let sound = !self.escapes && self.unknown.iter().all(|bits| *bits < held.bits());
        let unanimous = self.uses.iter().all(|e| e.ty == first.ty && against(e));
        let certain = self.uses.iter().find(is_evidence)?;
        (sound && unanimous).then_some((certain.ty, certain.span))
    }

    fn add(&mut self, e: Evidence) {
        if !self.uses.iter().any(|u| (u.ty, u.bits, u.half) == (e.ty, e.bits, e.half)) {
            self.uses.push(e);
        }
    }
}

/// How an entry reads memory, by the place of the pointer: its byte offset among the parameters.
pub fn float_reads(module: &Module, entry: &str) -> BTreeMap<u32, Reads> {
    let Some(entry) = module.entries.get(entry) else { return BTreeMap::new() };
    let mut f = module.funcs[entry.func.idx()].clone();
    // A register that is used again for something else would mix the two.
    split_ranges(&mut f);
    let word = u32::from(module.address_size) / 8;
    let mut flow = Flow { word, regs: vec![Known::Nothing; f.regs.len()], found: BTreeMap::new(), wild: false };
    flow.solve(&f);
    flow.collect(&f);
    if flow.wild {
        flow.found.values_mut().for_each(|r| r.escapes = true);
    }
    flow.found
}

/// What is known of a register. Later ones know less, but for `Nothing`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    /// Never written.
    Nothing,
    /// The same number in all lanes.
    Constant,
    /// The address of a byte of the parameters.
    Params(u32),
    /// An address that starts from the pointer at this byte of the parameters.
    Pointer(u32),
    /// A value that was loaded through a pointer.
    Loaded(Loaded),
    /// A value of which nothing is known.
    Any,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Loaded {
    /// The pointer.
    from: u32,
    /// Bits of an element of the load.
    bits: u32,
    /// A half of the value.
    half: bool,
    /// The first such load.
    span: Span,
}

impl Loaded {
    fn same(self, other: Loaded) -> bool {
        (self.from, self.bits, self.half) == (other.from, other.bits, other.half)
    }
}

impl Known {
    fn join(self, other: Known) -> Known {
        match (self, other) {
            (Known::Nothing | Known::Constant, x @ (Known::Pointer(_) | Known::Loaded(_) | Known::Any)) => x,
            (x @ (Known::Pointer(_) | Known::Loaded(_) | Known::Any), Known::Nothing | Known::Constant) => x,
            (Known::Nothing, x) | (x, Known::Nothing) => x,
            (Known::Loaded(a), Known::Loaded(b)) if a.same(b) => self,
            (a, b) if a == b => a,
            _ => Known::Any,
        }
    }

    /// Whether a register that knows this covers a value of which the other is known.
    fn covers(self, value: Known) -> bool {
        match (self, value) {
            (Known::Loaded(a), Known::Loaded(b)) => a.same(b),
            (a, b) => a == b,
        }
    }
}

struct Flow {
    /// Bytes of an address.
    word: u32,
    regs: Vec<Known>,
    found: BTreeMap<u32, Reads>,
    /// The parameters are read in a way that is not followed.
    wild: bool,
}

impl Flow {
    fn value(&self, v: Val) -> Known {
        match v {
            Val::Reg(r) => self.regs[r.idx()],
            Val::Imm(..) => Known::Constant,
        }
    }

    /// Finds what registers hold: each only ever knows less, so this ends.
    fn solve(&mut self, f: &Function) {
        let mut changed = true;
        while changed {
            changed = false;
            for b in &f.blocks {
                for i in &b.insts {
                    for (k, d) in i.dst.iter().enumerate() {
                        changed |= self.learn(*d, self.result(i, k));
                    }
                }
                if let Some(d) = b.term.result() {
                    changed |= self.learn(d, Known::Any);
                }
            }
        }
    }

    fn learn(&mut self, r: Reg, value: Known) -> bool {
        let old = self.regs[r.idx()];
        let new = old.join(value);
        self.regs[r.idx()] = new;
        new != old
    }

    /// What an instruction writes to its `k`th result.
    fn result(&self, i: &Inst, k: usize) -> Known {
        let value = |n: usize| self.value(i.src[n]);
        match i.op {
            Op::ParamAddr { offset } => Known::Params(offset),
            Op::Cvta { .. } => value(0).pointer(),
            Op::Shfl(_) if k == 0 => value(0).loaded(),
            Op::Load { access, offset } => self.load(value(0), access, offset, k, i.span),
            Op::Atom { access, .. } => match value(0) {
                Known::Pointer(from) => {
                    Known::Loaded(Loaded { from, bits: access.ty.bits(), half: false, span: i.span })
                }
                _ => Known::Any,
            },
            Op::Pure(Pure::Mov(_)) => value(0),
            Op::Pure(Pure::Select(_)) => value(1).join(value(2)),
            Op::Pure(Pure::Add(_) | Pure::Or(_)) => match (value(0), value(1)) {
                (Known::Nothing, _) | (_, Known::Nothing) => Known::Nothing,
                (Known::Pointer(_), Known::Pointer(_)) => Known::Any,
                (p @ Known::Pointer(_), _) | (_, p @ Known::Pointer(_)) => p,
                _ => Known::Any,
            },
            Op::Pure(Pure::Sub(_)) => match (value(0), value(1)) {
                (Known::Nothing, _) | (_, Known::Nothing) => Known::Nothing,
                (Known::Pointer(_), Known::Pointer(_)) => Known::Any,
                (p @ Known::Pointer(_), _) => p,
                _ => Known::Any,
            },
            // Addresses of 32 bits in wider operands.
            Op::Pure(Pure::Ext { bits: 32, signed: false, .. }) if self.word == 4 => value(0).pointer(),
            Op::Pure(Pure::Half { .. }) => match value(0) {
                Known::Loaded(l) => Known::Loaded(Loaded { half: true, ..l }),
                Known::Nothing => Known::Nothing,
                _ => Known::Any,
            },
            Op::Pure(Pure::Pack(_)) => match (value(0), value(1)) {
                (Known::Loaded(a), Known::Loaded(b)) if a.same(b) => Known::Loaded(a),
                (Known::Nothing, _) | (_, Known::Nothing) => Known::Nothing,
                _ => Known::Any,
            },
            _ => Known::Any,
        }
    }

    fn load(&self, addr: Known, access: Access, offset: i64, k: usize, span: Span) -> Known {
        let bits = u32::from(access.bits);
        match addr {
            Known::Params(base) if access.space == StateSpace::ParamEntry && bits == 8 * self.word => {
                let element = i64::try_from(k).unwrap_or(0) * i64::from(self.word);
                let at = i64::from(base) + offset + element;
                u32::try_from(at).map_or(Known::Any, Known::Pointer)
            }
            Known::Pointer(from) if is_global(access.space) => Known::Loaded(Loaded { from, bits, half: false, span }),
            Known::Nothing => Known::Nothing,
            _ => Known::Any,
        }
    }

    /// Looks at all uses, with what registers hold.
    fn collect(&mut self, f: &Function) {
        for b in &f.blocks {
            for i in &b.insts {
                for (k, d) in i.dst.iter().enumerate() {
                    let value = self.result(i, k);
                    if !self.regs[d.idx()].covers(value) {
                        self.lose(value);
                    }
                }
                for (n, v) in i.src.iter().enumerate() {
                    self.take(i, n, self.value(*v));
                }
            }
            for v in b.term.sources() {
                self.lose(self.value(v));
            }
        }
    }

    /// A value goes where it is not followed.
    fn lose(&mut self, value: Known) {
        match value {
            Known::Pointer(p) => self.found.entry(p).or_default().escapes = true,
            Known::Loaded(l) => self.found.entry(l.from).or_default().unknown.push(l.bits),
            Known::Params(_) => self.wild = true,
            Known::Nothing | Known::Constant | Known::Any => {}
        }
    }

    /// An instruction takes a value as its source `n`.
    fn take(&mut self, i: &Inst, n: usize, value: Known) {
        match (value, i.op) {
            (Known::Nothing | Known::Constant | Known::Any, _) => {}
            // What becomes of the value is seen at its next use.
            (_, Op::Pure(Pure::Mov(_) | Pure::Select(_))) => {
                if !self.result(i, 0).covers(value) {
                    self.lose(value);
                }
            }
            (Known::Params(_), Op::Load { access, .. }) if access.space == StateSpace::ParamEntry => {}
            (Known::Params(_), _) => self.wild = true,
            (Known::Pointer(_), Op::Load { access, .. }) if is_global(access.space) => {}
            (Known::Pointer(_), Op::Store { access, .. }) if n == 0 && is_global(access.space) => {}
            (Known::Pointer(from), Op::Atom { access, .. } | Op::Red { access, .. }) if n == 0 => {
                self.atomic(from, access, i.span);
            }
            (Known::Pointer(_), Op::Cvta { .. } | Op::IsSpace(_) | Op::Mark | Op::Pure(Pure::ICmp(..))) => {}
            (Known::Pointer(_), Op::Pure(Pure::Ext { bits: 32, signed: false, .. })) if self.word == 4 => {}
            (Known::Pointer(_), Op::Pure(Pure::Add(_) | Pure::Or(_) | Pure::Sub(_))) => {
                // Lost where two pointers meet, or where it is subtracted from something.
                if self.result(i, 0) != value {
                    self.lose(value);
                }
            }
            (Known::Loaded(_), Op::Shfl(_)) if n == 0 => {}
            (Known::Loaded(_), Op::Pure(Pure::Half { .. })) => {}
            (Known::Loaded(_), Op::Pure(Pure::Pack(_))) if self.result(i, 0) != Known::Any => {}
            (Known::Loaded(l), op) => match float_of(&op, n) {
                Some(ty) => {
                    let evidence = Evidence { ty, bits: l.bits, half: l.half, span: l.span };
                    self.found.entry(l.from).or_default().add(evidence);
                }
                None => self.lose(value),
            },
            (Known::Pointer(_), _) => self.lose(value),
        }
    }

    /// An atomic operation on the memory behind a pointer.
    fn atomic(&mut self, from: u32, access: AtomAccess, span: Span) {
        let reads = self.found.entry(from).or_default();
        match element_of(access.ty) {
            Some(ty) => reads.add(Evidence { ty, bits: access.ty.bits(), half: false, span }),
            None => reads.unknown.push(access.ty.bits()),
        }
    }
}

impl Known {
    /// The same if it is a pointer.
    fn pointer(self) -> Known {
        if matches!(self, Known::Pointer(_) | Known::Nothing) { self } else { Known::Any }
    }

    /// The same if it was loaded.
    fn loaded(self) -> Known {
        if matches!(self, Known::Loaded(_) | Known::Nothing) { self } else { Known::Any }
    }
}

fn is_global(space: StateSpace) -> bool {
    matches!(space, StateSpace::Global | StateSpace::Generic)
}

/// The element of a float type that memory holds; `.tf32` is what an `.f32` is cut to.
fn element_of(ty: ScalarType) -> Option<ScalarType> {
    use ScalarType::*;
    Some(match ty {
        F16 | F16x2 => F16,
        BF16 | BF16x2 => BF16,
        F32 | F32x2 | TF32 => F32,
        F64 => F64,
        E4M3 | E4M3x2 | E4M3x4 => E4M3,
        E5M2 | E5M2x2 | E5M2x4 => E5M2,
        _ => return None,
    })
}

fn scalar(ty: Float) -> ScalarType {
    match ty.element() {
        Float::F16 | Float::F16x2 => ScalarType::F16,
        Float::BF16 | Float::BF16x2 => ScalarType::BF16,
        Float::F32 | Float::F32x2 => ScalarType::F32,
        Float::F64 => ScalarType::F64,
    }
}

/// The float type that an op takes its source `n` as.
fn float_of(op: &Op, n: usize) -> Option<ScalarType> {
    match op {
        Op::Pure(op) => float_of_pure(op, n),
        Op::Atom { access, .. } | Op::Red { access, .. } if n > 0 && n <= usize::from(access.count) => {
            element_of(access.ty)
        }
        _ => None,
    }
}

fn float_of_pure(op: &Pure, n: usize) -> Option<ScalarType> {
    Some(match op {
        Pure::FAdd(m) | Pure::FSub(m) | Pure::FMul(m) | Pure::FFma(m) | Pure::FRsqrt(m) => scalar(m.ty),
        Pure::FDiv { mode, .. } | Pure::FRcp { mode, .. } | Pure::FSqrt { mode, .. } => scalar(mode.ty),
        Pure::FCmp { ty, .. }
        | Pure::FMin { ty, .. }
        | Pure::FMax { ty, .. }
        | Pure::FAbs { ty, .. }
        | Pure::FNeg { ty, .. }
        | Pure::Ex2 { ty, .. }
        | Pure::Tanh { ty }
        | Pure::Testp { ty, .. }
        | Pure::Copysign(ty) => scalar(*ty),
        Pure::Sin { .. } | Pure::Cos { .. } | Pure::Lg2 { .. } => ScalarType::F32,
        // The third source of `cvt.rs` is random bits.
        Pure::Cvt(cvt) if n < 2 => element_of(cvt.from)?,
        _ => return None,
    })
}
