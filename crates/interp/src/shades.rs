//! Bits that nobody wrote, in registers: who carries them, and who asks for them.
//!
//! A frame has a shade for each register while that is checked, and none otherwise. [`set`](Cta::set) makes a register known; what carries unknown bits says
//! so behind it. So an op that is not named here has results that are known.

use handloom_audit::Thread;
use handloom_audit::init::{Decides, Init, Root, Shade, Source, carry};
use handloom_diag::Span;
use handloom_ir::simt::{FuncId, Inst, Op, Pure, Reg, Val};
use handloom_ir::types::{AtomOp, Ty, VoteMode};

use crate::cta::{Cta, Group};
use crate::lane::State;
use crate::numbers::low32;
use crate::warp::{self, lanes};
use crate::witness::lock;

impl<'m> Cta<'m> {
    /// Whether bits that nobody wrote are looked for.
    pub(crate) fn is_shaded(&self) -> bool {
        self.shaded
    }

    /// Does something to what is known of unwritten bits.
    pub(crate) fn with_init(&self, what: impl FnOnce(&mut Init)) {
        if self.shaded
            && let Some(audit) = &self.audit
            && let Some(init) = lock(audit).init()
        {
            what(init);
        }
    }

    /// The shades of a frame before its first instruction: no register was written.
    pub(crate) fn new_shades(&self, func: FuncId) -> Vec<Shade> {
        if !self.shaded {
            return Vec::new();
        }
        self.module.funcs[func.idx()].regs.iter().map(|ty| Shade::never(ty.mask())).collect()
    }

    /// Shade of a source in a thread.
    pub(crate) fn shade(&self, thread: usize, v: Val) -> Shade {
        match v {
            Val::Reg(r) => self.threads[thread].frame().shades.get(r.idx()).copied().unwrap_or_default(),
            Val::Imm(..) => Shade::default(),
        }
    }

    /// The same for a statement that looks at it, which is where a register that was never written is read.
    fn shade_at(&self, span: Span, thread: usize, v: Val) -> Shade {
        let shade = self.shade(thread, v);
        if shade.is_known() || !shade.is_new() {
            return shade;
        }
        self.root_at(span, thread, shade.undef, Source::Register)
    }

    /// Unknown bits that are read here first.
    fn root_at(&self, span: Span, thread: usize, undef: u64, what: Source) -> Shade {
        let mut shade = Shade::default();
        let who = self.who(thread);
        self.with_init(|init| shade = Shade { undef, root: init.origin(span, who, what) });
        shade
    }

    /// A thread as audits know it.
    pub(crate) fn who(&self, thread: usize) -> Thread {
        Thread::new(self.env.number(), thread)
    }

    /// Sets what is unknown of a register that was written just now.
    pub(crate) fn set_shade(&mut self, thread: usize, reg: Reg, shade: Shade) {
        let frame = self.threads[thread].frame_mut();
        let ty = self.module.funcs[frame.func.idx()].regs[reg.idx()];
        if let Some(place) = frame.shades.get_mut(reg.idx()) {
            *place = Shade { undef: shade.undef & ty.mask(), root: shade.root };
        }
    }

    /// A source decides something.
    pub(crate) fn decides(&self, class: Decides, span: Span, thread: usize, v: Val) {
        let shade = self.shade(thread, v);
        if !shade.is_known() {
            let who = self.who(thread);
            self.with_init(|init| init.decides(class, span, who, shade));
        }
    }

    /// The same in all lanes of a group.
    pub(crate) fn all_decide(&self, class: Decides, span: Span, group: Group, v: Val) {
        if self.shaded {
            group.threads().for_each(|t| self.decides(class, span, t, v));
        }
    }

    /// The guard and the address of an access decide what it does.
    pub(crate) fn access_decides(&self, inst: &Inst, group: Group) {
        if !self.shaded {
            return;
        }
        for t in group.threads() {
            if let Some(guard) = inst.guard() {
                self.decides(Decides::Guard, inst.span, t, guard);
                if self.get(t, guard) & 1 == 0 {
                    continue;
                }
            }
            self.decides(Decides::Address, inst.span, t, inst.src[0]);
        }
    }

    /// What a value op carries, and the sources as they were before it wrote its results.
    pub(crate) fn pure_shades(&self, inst: &Inst, op: Pure, thread: usize, src: &[u64]) -> Option<[Shade; 2]> {
        if !self.shaded || inst.src.iter().all(|v| self.shade(thread, *v).is_known()) {
            return None;
        }
        if carry::cancels(op, inst.src.first() == inst.src.get(1)) {
            return None;
        }
        let undef: Vec<u64> = inst.src.iter().map(|v| self.shade(thread, *v).undef).collect();
        let carried = carry::pure(op, src, &undef);
        if carried == [0; 2] {
            return None;
        }
        let first = inst.src.iter().find(|v| !self.shade(thread, **v).is_known())?;
        let root = if carry::is_copy(op) {
            self.shade(thread, *first).root
        } else {
            self.shade_at(inst.span, thread, *first).root.computed()
        };
        Some(carried.map(|undef| Shade { undef, root }))
    }

    /// Where a source that is not known as a whole comes from. To be asked before results are set.
    pub(crate) fn unknown_source(&self, inst: &Inst, thread: usize) -> Option<Root> {
        let unknown = inst.src.iter().find(|v| !self.shade(thread, **v).is_known())?;
        Some(self.shade_at(inst.span, thread, *unknown).root.computed())
    }

    /// Results of which nothing is known, if a source was not known.
    pub(crate) fn shade_results(&mut self, inst: &Inst, thread: usize, unknown: Option<Root>) {
        if let Some(root) = unknown {
            for reg in &inst.dst {
                self.set_shade(thread, *reg, Shade { undef: u64::MAX, root });
            }
        }
    }

    /// Shades of the sources of a warp-level op before its member mask, by lane.
    pub(crate) fn warp_shades(&self, group: Group) -> Option<Vec<[Shade; 32]>> {
        if !self.shaded {
            return None;
        }
        let mut rows: Vec<[Shade; 32]> = Vec::new();
        for t in group.threads() {
            let State::WarpSync { inst, .. } = self.threads[t].state else { continue };
            rows.resize(inst.src.len() - 1, [Shade::default(); 32]);
            for (row, v) in rows.iter_mut().zip(&inst.src) {
                row[t % 32] = self.shade_at(inst.span, t, *v);
            }
        }
        Some(rows)
    }

    /// What a warp-level op carries to the results of its lanes.
    pub(crate) fn shade_warp(&mut self, op: Op, group: Group, inputs: &[[u64; 32]], shades: &[[Shade; 32]]) {
        let is_exchange = matches!(op, Op::Shfl(_));
        let is_known = shades.iter().flatten().all(|s| s.is_known());
        if is_known && !is_exchange {
            return;
        }
        let unknown = carried(op, group.lanes, inputs, shades);
        for t in group.threads() {
            let State::WarpSync { inst, .. } = self.threads[t].state else { continue };
            for (k, reg) in inst.dst.iter().enumerate() {
                let shade = match unknown(t % 32, k) {
                    Carried::Known => continue,
                    Carried::From(shade) => shade,
                    Carried::Absent => self.root_at(inst.span, t, u64::MAX, Source::Lane),
                };
                self.set_shade(t, *reg, shade);
            }
        }
    }
}

/// What a lane gets.
enum Carried {
    Known,
    From(Shade),
    /// The value of a lane that takes no part.
    Absent,
}

/// What a warp-level op carries, by lane and result.
fn carried<'s>(
    op: Op,
    active: u32,
    inputs: &'s [[u64; 32]],
    shades: &'s [[Shade; 32]],
) -> impl Fn(usize, usize) -> Carried + use<'s> {
    let first = shades.iter().flatten().find(|s| !s.is_known()).map_or(Shade::default(), |s| *s);
    let root = first.root.computed();
    let made = move |undef: u64| match undef {
        0 => Carried::Known,
        undef => Carried::From(Shade { undef, root }),
    };
    let all = if let Op::Vote(mode) = op {
        vec![[vote(mode, active, &inputs[0], &shades[0]); 32]]
    } else if let Op::Redux { op, .. } = op {
        vec![[redux(op, active, &inputs[0], &shades[0]); 32]]
    } else if let Op::Match { .. } = op {
        vec![[u64::MAX; 32]; 2]
    } else if let Op::Matrix(_) = op {
        matrix(op, active, inputs, shades)
    } else {
        Vec::new()
    };
    move |lane, result| {
        let Op::Shfl(mode) = op else {
            return made(all.get(result).map_or(0, |row| row[lane]));
        };
        let (to, clamp) = (&shades[1][lane], &shades[2][lane]);
        if let Some(asked) = [to, clamp].into_iter().find(|s| !s.is_known()) {
            return Carried::From(Shade { undef: u64::MAX, root: asked.root.computed() });
        }
        let number = u32::try_from(lane).unwrap_or(0);
        let (source, _) = mode.source(number, low32(inputs[1][lane]), low32(inputs[2][lane]));
        let shade = usize::try_from(source & 31).map_or(Shade::default(), |i| shades[0][i]);
        match (result, active >> (source & 31) & 1) {
            (0, 0) => Carried::Absent,
            (0, _) if !shade.is_known() => Carried::From(shade),
            _ => Carried::Known,
        }
    }
}

/// Bits of the result of a vote that lanes with an unknown predicate decide.
fn vote(mode: VoteMode, active: u32, preds: &[u64; 32], shades: &[Shade; 32]) -> u64 {
    let unknown = lanes(active).fold(0_u32, |mask, l| mask | u32::from(!shades[l].is_known()) << l);
    let known = |value: u64| lanes(active & !unknown).any(|l| preds[l] & 1 == value);
    let is_decided = match mode {
        VoteMode::Ballot => return u64::from(unknown),
        VoteMode::All => known(0),
        VoteMode::Any => known(1),
        VoteMode::Uni => known(0) && known(1),
    };
    u64::from(unknown != 0 && !is_decided)
}

/// Bits of a reduction over lanes that are unknown.
fn redux(op: AtomOp, active: u32, values: &[u64; 32], shades: &[Shade; 32]) -> u64 {
    let ty = Ty::B32;
    let step = match op {
        AtomOp::And => Pure::And(ty),
        AtomOp::Or => Pure::Or(ty),
        AtomOp::Xor => Pure::Xor(ty),
        AtomOp::Add => Pure::Add(ty),
        AtomOp::Min | AtomOp::Max | AtomOp::Inc | AtomOp::Dec | AtomOp::Exch | AtomOp::Cas | AtomOp::Step => {
            let is_known = lanes(active).all(|lane| shades[lane].is_known());
            return if is_known { 0 } else { ty.mask() };
        }
    };
    let mut all: Option<(u64, u64)> = None;
    for lane in lanes(active) {
        let new = (values[lane], shades[lane].undef);
        all = Some(all.map_or(new, |old| {
            let value = handloom_ir::num::eval(step, &[old.0, new.0])[0];
            (value, carry::pure(step, &[old.0, new.0], &[old.1, new.1])[0])
        }));
    }
    all.map_or(0, |(_, undef)| undef)
}

/// Halves of words of the results of a product, or of what moves elements of matrices, that differ when all unknown bits are 0 and when all are 1.
fn matrix(op: Op, active: u32, inputs: &[[u64; 32]], shades: &[[Shade; 32]]) -> Vec<[u64; 32]> {
    let filled = |ones: bool| {
        let mut rows = inputs.to_vec();
        for (row, shades) in rows.iter_mut().zip(shades) {
            for (value, shade) in row.iter_mut().zip(shades) {
                *value = *value & !shade.undef | if ones { shade.undef } else { 0 };
            }
        }
        // No op of matrices has more results.
        let mut results = vec![[0; 32]; 128];
        warp::complete(op, active, &rows, &mut results);
        results
    };
    let halves =
        |bits: u64| (0..4).filter(|i| bits >> (16 * i) & 0xffff != 0).fold(0, |all, i| all | 0xffff << (16 * i));
    let (zeros, ones) = (filled(false), filled(true));
    zeros.iter().zip(&ones).map(|(a, b)| std::array::from_fn(|lane| halves(a[lane] ^ b[lane]))).collect()
}

/// What an atomic operation leaves of unknown bits in memory. `memory`, `a` and `b`: values with their shades.
pub(crate) fn after_atomic(op: AtomOp, ty: Ty, memory: (u64, Shade), a: (u64, Shade), b: (u64, Shade)) -> Shade {
    let carried = |op: Pure| {
        let undef = carry::pure(op, &[memory.0, a.0], &[memory.1.undef, a.1.undef])[0];
        let root = if memory.1.is_known() { a.1.root } else { memory.1.root };
        Shade { undef, root: root.computed() }
    };
    match op {
        AtomOp::Exch => a.1,
        AtomOp::And => carried(Pure::And(ty)),
        AtomOp::Or => carried(Pure::Or(ty)),
        AtomOp::Xor => carried(Pure::Xor(ty)),
        AtomOp::Cas if memory.1.is_known() && a.1.is_known() => {
            if memory.0 == a.0 {
                b.1
            } else {
                memory.1
            }
        }
        AtomOp::Add | AtomOp::Inc | AtomOp::Dec | AtomOp::Min | AtomOp::Max | AtomOp::Cas | AtomOp::Step => {
            let undef = if memory.1.is_known() && a.1.is_known() { 0 } else { ty.mask() };
            Shade { undef, ..carried(Pure::Xor(ty)) }
        }
    }
}
