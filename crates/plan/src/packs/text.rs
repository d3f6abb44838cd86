//! The text form of a plan.
//!
//! An instruction has its class and the way it is done beside it, as the classes of registers decide it. A full copy may know more of a value
//! than its class says (what all lanes read at once, say), and then does it by scalars.

use std::fmt::{self, Display, Formatter};

use handloom_diag::Span;
use handloom_diag::hash::FastSet;
use handloom_ir::simt::text::Line;
use handloom_ir::simt::{Inst, Op, Pure, Reg, Term, Val, text};

use crate::access::{AccessClass, Kind, Own};
use crate::analysis::cfg::Set;
use crate::analysis::classes::Class;
use crate::analysis::shape::{Arg, Shape, pure};
use crate::options::Bounds;
use crate::order::{AccessOrder, FenceOrder};
use crate::packs::atomics::AtomicWay;
use crate::packs::deferral::{Deferral, deferral};
use crate::packs::layout::Home;
use crate::packs::warp_ops::{WarpOpWay, warp_op_way};
use crate::packs::{Edges, Strategy};
use crate::ways::{Scalar, Vector, Way, scalar, way};

/// Column where notes begin.
const NOTES: usize = 56;

impl Display for Strategy<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(&text::joined(&self.lines()))
    }
}

/// What is said before the blocks.
struct Head<'a>(&'a Strategy<'a>);

impl Display for Head<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.0.head_text(out)
    }
}

impl Strategy<'_> {
    /// The lines of the text of a plan, each with the statement that it was made from.
    pub fn lines(&self) -> Vec<Line> {
        let head = Head(self).to_string();
        let mut lines: Vec<Line> = head.lines().map(|l| Line { span: Span::NONE, text: l.to_owned() }).collect();
        (0..self.plan.func.blocks.len()).for_each(|b| self.block_lines(&mut lines, b));
        lines
    }

    fn head_text(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let o = &self.plan.options;
        let bounds = match o.bounds {
            Bounds::Exact => "exact",
            Bounds::Contained => "contained",
        };
        let yes = |b: bool, what: &str| if b { format!("{what}, ") } else { String::new() };
        writeln!(
            out,
            "plan {}: {}{}{}{}{}{}{bounds} bounds",
            self.plan.func.name,
            yes(o.masked, "masked copies"),
            yes(o.speculate, "speculation"),
            yes(o.is_callee, "callee"),
            yes(o.cluster, "cluster"),
            yes(o.audited, "audited"),
            yes(o.in_order, "in order"),
        )?;
        self.layout_text(out)?;
        let odd = (0..self.plan.func.regs.len()).filter(|r| self.plan.may_hold_odd_nan[*r]);
        list(out, "registers that may hold odd NaNs", odd.map(|r| format!("v{r}")))?;
        if self.plan.facts.is_irreducible {
            writeln!(out, "the order of blocks does not bring lanes together")?;
        }
        Ok(())
    }
}

/// An instruction with what is known and decided about it.
fn with_notes(instruction: &str, notes: &[String]) -> String {
    let line = format!("    {instruction}");
    if notes.is_empty() {
        return line;
    }
    let blanks = NOTES.saturating_sub(line.len()).max(1);
    format!("{line}{:blanks$}; {}", "", notes.join("; "))
}

fn list(out: &mut Formatter<'_>, what: &str, items: impl Iterator<Item = String>) -> fmt::Result {
    let items: Vec<String> = items.collect();
    if items.is_empty() { Ok(()) } else { writeln!(out, "{what}: {}", items.join(", ")) }
}

impl Strategy<'_> {
    fn layout_text(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let l = &self.layout;
        writeln!(
            out,
            "context of {} bytes: pending words at {}, scratch rows at {}, words at {}; frame of {} bytes",
            l.ctx_bytes, l.pend_offset, l.scratch, l.words, self.plan.frame.bytes
        )?;
        for (r, home) in l.homes.iter().enumerate() {
            match home {
                Some(Home::Row32(at) | Home::Row64(at)) => writeln!(out, "home of v{r}: row at {at}")?,
                Some(Home::Words(at)) => writeln!(out, "home of v{r}: words at {at}, {}", self.class_text(r))?,
                None => {}
            }
        }
        Ok(())
    }

    fn block_lines(&self, lines: &mut Vec<Line>, b: usize) {
        let mut push = |span, text| lines.push(Line { span, text });
        let block = &self.plan.func.blocks[b];
        let has = |set: &Set| set.has(b);
        let mut notes = vec!["full copy".to_owned()];
        if has(&self.chained) {
            let before = self.plan.facts.cfg.preds[b].first().copied().unwrap_or_default();
            notes = vec![format!("full copy follows that of b{before}")];
        }
        match (has(&self.plan.facts.masked), self.plan.options.masked) {
            (true, true) => notes.push("masked copy".into()),
            (true, false) => notes.push("gives up where lanes part".into()),
            (false, _) => {}
        }
        if has(&self.pendable) {
            notes.push("prologue".into());
        }
        if self.plan.facts.diverges[b] {
            notes.push("diverges".into());
        }
        push(Span::NONE, format!("b{b}: {}", notes.join(", ")));
        for test in self.incoming_addresses(b).into_iter().filter_map(|(i, r)| self.joint_text(b, i, r)) {
            push(Span::NONE, test);
        }
        let mut run_end = 0;
        let mut new = FastSet::default();
        for (i, inst) in block.insts.iter().enumerate() {
            if let Some(test) = self.new_address(b, i, &mut new).and_then(|r| self.joint_text(b, i, r)) {
                push(inst.span, test);
            }
            if i >= run_end
                && let Some(end) = self.run_end(b, i)
            {
                run_end = end;
                push(Span::NONE, format!("    ; run of at most {} instructions", end - i));
            }
            let notes = self.inst_notes(b, i, inst);
            push(inst.span, with_notes(&text::inst(&self.plan.func, inst), &notes));
        }
        let notes: Vec<String> = self.end_note(b).into_iter().collect();
        push(block.term_span, with_notes(&text::term(&block.term), &notes));
    }

    /// How a block ends, where there is a choice.
    fn end_note(&self, b: usize) -> Option<String> {
        Some(match self.plan.func.blocks[b].term {
            Term::Branch { cond, then, otherwise } => {
                let by = if self.plan.facts.arg(cond).shape.is_some_and(|s| s.is_uniform()) {
                    "uniform"
                } else {
                    "diverges"
                };
                match self.edges(b) {
                    Edges { all: true, none: true } => by.into(),
                    Edges { all: true, none: false } => format!("{by}, no warp goes to b{} together", otherwise.0),
                    Edges { all: false, none: true } => format!("{by}, no warp goes to b{} together", then.0),
                    Edges { all: false, none: false } => format!("{by}, no warp goes either way together"),
                }
            }
            Term::Barrier { .. } if self.plan.ends_with_plain_barrier(b) => "passed inside code by whole warps".into(),
            Term::Barrier { .. } => "leaves the code".into(),
            Term::Jump(_)
            | Term::Switch { .. }
            | Term::Ret
            | Term::Exit
            | Term::Trap(_)
            | Term::Call { .. }
            | Term::Yield { .. } => return None,
        })
    }

    /// An address that is first accessed at instruction `i`, was made in the block, and may be tested there. `new`: registers that the block made
    /// before, and did not access since.
    fn new_address(&self, b: usize, i: usize, new: &mut FastSet<Reg>) -> Option<Reg> {
        let inst = &self.plan.func.blocks[b].insts[i];
        let address = match inst.src.first() {
            Some(Val::Reg(r)) if matches!(inst.op, Op::Load { .. } | Op::Store { .. }) => new.take(r),
            _ => None,
        };
        new.extend(&inst.dst);
        address.filter(|_| self.may_test_at(b, i))
    }

    fn joint_text(&self, b: usize, i: usize, r: Reg) -> Option<String> {
        let test = self.joint_test(b, i)?;
        let shape = self.plan.facts.class[r.idx()].shape().filter(|s| test.fits(s))?;
        Some(format!(
            "    ; joint test of {} accesses through v{}: bytes {} to {}, aligned to {}, {}",
            test.count,
            r.0,
            test.low,
            test.high,
            test.align,
            shape_text(&shape)
        ))
    }

    fn inst_notes(&self, b: usize, i: usize, inst: &Inst) -> Vec<String> {
        let mut notes: Vec<String> = inst.dst.iter().map(|d| self.class_text(d.idx())).collect();
        let is_masked = self.plan.options.masked && self.plan.facts.masked.has(b);
        match inst.op {
            Op::Pure(op) => notes.push(self.way_text(b, i, inst, op)),
            Op::Fence { order, scope } => {
                notes.push(match FenceOrder::of(order, scope, &self.plan.options.host) {
                    FenceOrder::Program => "ordered as the program".into(),
                    FenceOrder::Total => "total order by a locked instruction".into(),
                    FenceOrder::Instruction => "fence instruction".into(),
                });
            }
            _ => match self.plan.access(inst) {
                Some(a) => {
                    notes.push(self.access_text(&a));
                    if matches!(a.kind, Kind::Atomic(..)) {
                        let address = || self.plan.facts.arg(a.address).shape;
                        notes.push(match self.atomic_way(&a, !inst.dst.is_empty(), address) {
                            AtomicWay::Folded(fold) => format!("full: one for all lanes, of their {}", word(&fold)),
                            AtomicWay::Straight => "full: lane by lane".into(),
                            AtomicWay::Loop => "full: loop over lanes".into(),
                            AtomicWay::Routine => return notes,
                        });
                    }
                }
                None if inst.op.is_warp_sync() => {
                    notes.push(match warp_op_way(inst, self.plan.options.audited) {
                        WarpOpWay::Nothing => "full: nothing".into(),
                        WarpOpWay::Vote(_) => "full: from the bits of the predicate".into(),
                        WarpOpWay::Shuffle { .. } => "full: lanes in another order".into(),
                        WarpOpWay::Routine => "full: routine".into(),
                    });
                    if is_masked {
                        notes.push("masked: routine".into());
                    }
                }
                // What all lanes share, or is affine, is done by scalars there too.
                None if is_masked
                    && deferral(inst.op) != Deferral::Scalar
                    && inst.dst.iter().all(|d| self.plan.facts.class[d.idx()].shape().is_none()) =>
                {
                    notes.push(format!("masked: {}", word(&deferral(inst.op))));
                }
                None => {}
            },
        }
        notes
    }

    /// How a value op is done.
    fn way_text(&self, b: usize, i: usize, inst: &Inst, op: Pure) -> String {
        let args: Vec<Arg> = inst.src.iter().map(|v| self.plan.facts.arg(*v)).collect();
        let constant: Vec<Option<u64>> = args.iter().map(|a| a.value).collect();
        let lanes = |uniform: &[bool]| match way(op, &constant, uniform) {
            Way::Vector(v) if self.plan.is_long && v.is_much_code() => format!("{}, full: routine", vector_text(v)),
            Way::Vector(v) => vector_text(v),
            Way::Routine => "routine".into(),
        };
        let is_affine = args.iter().all(|a| a.shape.is_some());
        if is_affine && let Some(result) = pure(op, &args, self.plan.facts.may_at(b, i)) {
            let how = match scalar(op) {
                Some(Scalar::Each(op, _)) => format!("scalar {}", word(&op)),
                Some(s) => format!("scalar {}", word(&s)),
                None => format!("scalar by {}", lanes(&vec![true; args.len()])),
            };
            return if result.check.is_some() { format!("{how}, tested not to wrap") } else { how };
        }
        let uniform: Vec<bool> = args.iter().map(|a| a.shape.is_some_and(|s| s.is_uniform())).collect();
        if matches!(op, Pure::ICmp(..)) && is_affine && uniform.contains(&true) {
            return format!("by its ends, else {}", lanes(&uniform));
        }
        lanes(&uniform)
    }

    fn access_text(&self, a: &AccessClass) -> String {
        let host = &self.plan.options.host;
        let address = match a.address {
            Val::Imm(..) => "at a constant".to_owned(),
            Val::Reg(r) => format!("at {}", self.class_text(r.idx())),
        };
        let (inline, order) = match a.kind {
            Kind::Atomic(..) if a.is_inline_atomic(self.plan.options.cluster) => ("inline", a.order_inline(host)),
            Kind::Load | Kind::Store if a.is_inline_in_full() && a.is_inline_by_lane() => {
                ("inline", a.order_inline(host))
            }
            Kind::Load | Kind::Store if a.is_inline_in_full() => ("inline in full copies", a.order_inline(host)),
            Kind::Atomic(..) | Kind::Load | Kind::Store => ("routine", AccessOrder::Routine),
        };
        let own = match a.own() {
            Own::Never => "",
            Own::Perhaps => ", perhaps own memory",
            Own::Always => ", own memory",
        };
        let asked = if a.order.is_strong() { format!("{}.{}", word(&a.order), word(&a.scope)) } else { word(&a.order) };
        let by = match order {
            _ if !a.order.is_strong() => "",
            AccessOrder::Plain => " by plain moves",
            AccessOrder::FenceBefore => " by a fence before it",
            AccessOrder::FenceAfter => " by a fence after it",
            AccessOrder::Atomic => " by an atomic instruction",
            AccessOrder::Routine => " by the routine",
        };
        format!("{address}, {inline}{own}, {asked}{by}")
    }

    fn class_text(&self, r: usize) -> String {
        match self.plan.facts.class[r] {
            Class::Unknown => "zero".into(),
            Class::Varying => "varying".into(),
            Class::Affine(s) => shape_text(&s),
        }
    }
}

fn shape_text(s: &Shape) -> String {
    if s.is_uniform() {
        "uniform".into()
    } else if s.is_linear() {
        format!("linear {}", s.stride)
    } else if s.groups() == 1 {
        let (_, off): (Vec<usize>, Vec<i64>) = s.pieces().unzip();
        format!("pieces of {} lanes at {off:?} stride {}", s.piece_len(), s.stride)
    } else {
        let (group, off): (Vec<usize>, Vec<i64>) = s.pieces().unzip();
        format!("pieces of {} lanes of groups {group:?} at {off:?} stride {}", s.piece_len(), s.stride)
    }
}

fn vector_text(v: Vector) -> String {
    match v {
        Vector::Each(op, _) => format!("vector {}", word(&op)),
        Vector::Float(op, _) => format!("vector float {}", word(&op)),
        Vector::Convert(_, way) => format!("vector convert {}", word(&way)),
        other => format!("vector {}", word(&other)),
    }
}

/// The name of a variant in small letters.
fn word(v: &impl fmt::Debug) -> String {
    let full = format!("{v:?}");
    let name = full.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        if c.is_uppercase() && i > 0 {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}
