//! The text form of the SIMT IR: what `--emit ir` and goldens show.
//!
//! One instruction a line: results with their types, the op, its sources, its guard: `v3:b32 = add.b32 v1, v2` or
//! `store.global.b32 [v7 + 4], v3 if v9`. Blocks are `b0`, `b1`; registers `v0`, `v1`. Constants are decimal, from 65536 on hexadecimal.
//! The text of a value op is in its row of the table (`pure`).

use std::fmt::Write;

use handloom_diag::Span;

use crate::types::*;

use super::count::Count;
use super::func::*;
use super::op::*;
use super::words::{flag, lower_case};

/// A module.
pub fn print(module: &Module) -> String {
    print_with(module, |_| None)
}

/// A module, with a note in front of each group of instructions that `note` knows something of (the PTX line).
pub fn print_with(module: &Module, mut note: impl FnMut(Span) -> Option<String>) -> String {
    let mut out = format!("module, {} bit addresses\n", module.address_size);
    for (i, s) in module.syms.iter().enumerate() {
        let _ = writeln!(out, "s{i} = {}", symbol(s));
    }
    for (name, e) in &module.entries {
        let params: Vec<String> = e.params.iter().map(param).collect();
        let behind = match module.shared.reserved {
            0 => String::new(),
            n => format!(" behind {n} reserved"),
        };
        let (f, bytes) = (e.func.0, e.shared_bytes);
        let _ = writeln!(out, "entry {name} = f{f}({}), {bytes} bytes shared{behind}", params.join(", "));
    }
    for (i, f) in module.funcs.iter().enumerate() {
        let _ = write!(out, "\nf{i} = ");
        out.push_str(&print_function_with(f, &mut note));
    }
    out
}

/// A function.
pub fn print_function(f: &Function) -> String {
    print_function_with(f, |_| None)
}

/// A line of a listing, without its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// The PTX statement that it was made from, or [`Span::NONE`].
    pub span: Span,
    /// Its text.
    pub text: String,
}

/// Lines as one text.
pub fn joined(lines: &[Line]) -> String {
    lines.iter().flat_map(|l| [l.text.as_str(), "\n"]).collect()
}

/// A function with notes.
pub fn print_function_with(f: &Function, mut note: impl FnMut(Span) -> Option<String>) -> String {
    let mut out = String::new();
    let mut last = Span::NONE;
    for line in function_lines(f) {
        if line.text.starts_with(INDENT) && line.span != last {
            last = line.span;
            if let Some(text) = note(line.span) {
                let _ = writeln!(out, "{INDENT}; {text}");
            }
        }
        out.push_str(&line.text);
        out.push('\n');
    }
    out
}

/// Before each instruction.
const INDENT: &str = "    ";

/// The lines of a function.
pub fn function_lines(f: &Function) -> Vec<Line> {
    let kind = if f.is_entry { "entry" } else { "func" };
    let mut out = format!("{kind} {}, {} bytes of parameters", f.name, f.param_bytes);
    if f.result_bytes > 0 {
        let _ = write!(out, ", {} of them results", f.result_bytes);
    }
    let mut lines = vec![Line { span: Span::NONE, text: out }];
    let mut push = |span, text| lines.push(Line { span, text });
    for (i, s) in f.slots.iter().enumerate() {
        push(Span::NONE, format!("  slot{i}: {} bytes, align {}", s.size, s.align));
    }
    for (i, b) in f.blocks.iter().enumerate() {
        push(Span::NONE, format!("b{i}:"));
        for k in &b.insts {
            push(k.span, format!("{INDENT}{}", inst(f, k)));
        }
        push(b.term_span, format!("{INDENT}{}", term(&b.term)));
    }
    lines
}

/// One instruction.
pub fn inst(f: &Function, i: &Inst) -> String {
    let mut out = String::new();
    for (k, d) in i.dst.iter().enumerate() {
        let ty = f.regs.get(d.idx()).map_or("?".to_owned(), ToString::to_string);
        let _ = write!(out, "{}v{}:{ty}", if k > 0 { ", " } else { "" }, d.0);
    }
    if !i.dst.is_empty() {
        out.push_str(" = ");
    }
    out.push_str(&op_name(&i.op));
    let mut sources: Vec<String> = i.operands().iter().map(|v| value(*v)).collect();
    if let (Some(offset), Some(base)) = (address_offset(&i.op), sources.first_mut()) {
        *base = match offset {
            0 => format!("[{base}]"),
            _ => format!("[{base} {} {}]", if offset < 0 { '-' } else { '+' }, offset.unsigned_abs()),
        };
    }
    if !sources.is_empty() {
        let _ = write!(out, " {}", sources.join(", "));
    }
    if let Some(g) = i.guard() {
        let _ = write!(out, " if {}", value(g));
    }
    out
}

/// The end of a block.
pub fn term(t: &Term) -> String {
    match t {
        Term::Jump(b) => format!("jump b{}", b.0),
        Term::Branch { cond, then, otherwise } => format!("branch {}, b{}, b{}", value(*cond), then.0, otherwise.0),
        Term::Switch { index, targets } => {
            let list: Vec<String> = targets.iter().map(|b| format!("b{}", b.0)).collect();
            format!("switch {}, [{}]", value(*index), list.join(", "))
        }
        Term::Ret => "ret".into(),
        Term::Exit => "exit".into(),
        Term::Trap(kind) => format!("trap {}", kind.word()),
        Term::Barrier { kind, id, count, pred, dst, next } => {
            let mut out = dst.map_or(String::new(), |d| format!("v{} = ", d.0));
            let _ = write!(out, "barrier.{} {}", barrier_name(*kind), value(*id));
            if let Some(c) = count {
                let _ = write!(out, ", count {}", value(*c));
            }
            if let Some(p) = pred {
                let _ = write!(out, ", of {}", value(*p));
            }
            let _ = write!(out, ", then b{}", next.0);
            out
        }
        Term::Call { callee, target, signature, args, next } => match (callee, target) {
            (Callee::Direct(f), _) => format!("call f{}(slot{}), then b{}", f.0, args.0, next.0),
            (Callee::Indirect, t) => {
                let handle = t.map_or("?".into(), value);
                let (all, results) = signature;
                format!("call {handle}(slot{}) of {all} and {results} bytes, then b{}", args.0, next.0)
            }
        },
        Term::Yield { next } => format!("yield, then b{}", next.0),
    }
}

/// A source.
pub fn value(v: Val) -> String {
    match v {
        Val::Reg(r) => format!("v{}", r.0),
        Val::Imm(bits, _) if bits < 65536 => bits.to_string(),
        Val::Imm(bits, _) => format!("{bits:#x}"),
    }
}

fn symbol(s: &Symbol) -> String {
    let place = match s.kind {
        SymKind::Global => "global".into(),
        SymKind::Const => "const".into(),
        SymKind::Shared { offset } => format!("shared at {offset}"),
        SymKind::DynamicShared { offset } => format!("dynamic shared at {offset}"),
        SymKind::Func(f) => return format!("func {} = f{}", s.name, f.0),
    };
    format!("{place} {}, {} bytes, align {}", s.name, s.size, s.align)
}

fn param(p: &Param) -> String {
    let array = if p.is_array { format!("[{} bytes]", p.size) } else { String::new() };
    format!("{}: {}{array} at {}", p.name, &p.ty.name()[1..], p.offset)
}

fn barrier_name(kind: BarKind) -> &'static str {
    match kind {
        BarKind::Sync => "sync",
        BarKind::Arrive => "arrive",
        BarKind::RedPopc => "red.popc",
        BarKind::RedAnd => "red.and",
        BarKind::RedOr => "red.or",
        BarKind::ClusterArrive => "cluster.arrive",
        BarKind::ClusterArriveRelaxed => "cluster.arrive.relaxed",
        BarKind::ClusterWait => "cluster.wait",
        BarKind::Warpgroup => "warpgroup",
        BarKind::WarpgroupStart => "warpgroup.start",
    }
}

/// The constant added to the address of a memory op.
fn address_offset(op: &Op) -> Option<i64> {
    match op {
        Op::Load { offset, .. } | Op::Store { offset, .. } | Op::Atom { offset, .. } | Op::Red { offset, .. } => {
            Some(*offset)
        }
        Op::Count(Count::Access { touch, .. }) => Some(touch.offset),
        Op::Pure(_)
        | Op::Sreg(_)
        | Op::SymAddr(_)
        | Op::SharedAddr(_)
        | Op::ParamAddr { .. }
        | Op::SlotAddr(_)
        | Op::ArgAddr { .. }
        | Op::Cvta { .. }
        | Op::IsSpace(_)
        | Op::Fence { .. }
        | Op::Shfl(_)
        | Op::Vote(_)
        | Op::Match { .. }
        | Op::Redux { .. }
        | Op::Matrix(_)
        | Op::Elect
        | Op::BarWarp
        | Op::Activemask
        | Op::Nanosleep
        | Op::Builtin(_)
        | Op::Transfer(_)
        | Op::Stack(_)
        | Op::Image(_)
        | Op::Tensor(_)
        | Op::Mark
        | Op::Count(_) => None,
    }
}

/// An op with its modifiers.
fn op_name(op: &Op) -> String {
    match op {
        Op::Pure(p) => p.to_string(),
        Op::Sreg(s) => format!("sreg.{}", snake(&format!("{s:?}"))),
        Op::SymAddr(s) => format!("address s{}", s.0),
        Op::SharedAddr(s) => format!("shared_offset s{}", s.0),
        Op::ParamAddr { offset } => format!("param_address {offset}"),
        Op::SlotAddr(s) => format!("address slot{}", s.0),
        Op::ArgAddr { offset } => format!("argument_address {offset}"),
        Op::Cvta { space, to_space } => {
            let name = space.name();
            if *to_space { format!("cvta.generic_to_{name}") } else { format!("cvta.{name}_to_generic") }
        }
        Op::IsSpace(space) => format!("is_space.{}", space.name()),
        Op::Load { access, .. } => format!("load{}", access_name(access)),
        Op::Store { access, .. } => format!("store{}", access_name(access)),
        Op::Atom { access, .. } => format!("atom{}", atom_name(access)),
        Op::Red { access, .. } => format!("red{}", atom_name(access)),
        Op::Fence { order, scope } => format!("fence.{}.{}", order_name(*order), lower_case(scope)),
        Op::Shfl(mode) => format!("shfl.{}", lower_case(mode)),
        Op::Vote(mode) => format!("vote.{}", lower_case(mode)),
        Op::Match { ty, all } => format!("match.{}.{ty}", if *all { "all" } else { "any" }),
        Op::Redux { op, signed } => format!("redux.{}.{}", lower_case(op), if *signed { "s32" } else { "u32" }),
        Op::Matrix(op) => op.name(),
        Op::Elect => "elect".into(),
        Op::BarWarp => "bar_warp".into(),
        Op::Activemask => "activemask".into(),
        Op::Nanosleep => "nanosleep".into(),
        Op::Builtin(Builtin::Device { call, per_thread }) => {
            format!("builtin.device.{}{}", lower_case(call), flag(*per_thread, ".ptsz"))
        }
        Op::Builtin(b) => format!("builtin.{}", lower_case(b)),
        Op::Transfer(op) => op.name(),
        Op::Stack(StackOp::Save) => "stack.save".into(),
        Op::Stack(StackOp::Restore) => "stack.restore".into(),
        Op::Stack(StackOp::Alloca { align }) => format!("stack.alloca.{align}"),
        Op::Image(op) => op.name(),
        Op::Tensor(op) => op.name(),
        Op::Mark => "mark".into(),
        Op::Count(count) => count.to_string(),
    }
}

/// Space, order, elements and width; elements that are not accessed are listed last.
fn access_name(a: &Access) -> String {
    let mut out = format!(".{}", a.space.name());
    if a.order != Order::Weak {
        let _ = write!(out, ".{}.{}", order_name(a.order), lower_case(&a.scope));
    }
    if a.is_single {
        out.push_str(".single");
    }
    if a.count > 1 {
        let _ = write!(out, ".v{}", a.count);
    }
    let _ = write!(out, ".b{}", a.bits);
    for i in (0..a.count).filter(|i| a.elements >> i & 1 == 0) {
        let _ = write!(out, ".not{i}");
    }
    out
}

fn atom_name(a: &AtomAccess) -> String {
    let vector = if a.count > 1 { format!(".v{}", a.count) } else { String::new() };
    let (op, ty, space) = (lower_case(&a.op), a.ty.name(), a.space.name());
    format!(".{space}.{}.{}.{op}{vector}{ty}", order_name(a.order), lower_case(&a.scope))
}

fn order_name(order: Order) -> &'static str {
    match order {
        Order::Weak => "weak",
        Order::Volatile => "volatile",
        Order::Mmio => "mmio",
        Order::Relaxed => "relaxed",
        Order::Acquire => "acquire",
        Order::Release => "release",
        Order::AcqRel => "acq_rel",
        Order::Sc => "sc",
    }
}

/// `LanemaskLt` as `lanemask_lt`, `Tid(0)` as `tid.x`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        match c {
            'A'..='Z' if i > 0 => {
                out.push('_');
                out.push(c.to_ascii_lowercase());
            }
            '(' => out.push('.'),
            ')' => {}
            c => out.push(c.to_ascii_lowercase()),
        }
    }
    for (digit, letter) in [(".0", ".x"), (".1", ".y"), (".2", ".z"), (".3", ".w")] {
        if let Some(stem) = out.strip_suffix(digit).filter(|s| !s.starts_with("pm") && !s.starts_with("envreg")) {
            return format!("{stem}{letter}");
        }
    }
    out
}
