//! Reads the text form of a function: the inverse of `simt::text` for the ops that these tests use.
//!
//! Names of ops are not written here a second time: each op is printed, and the text is looked up among the names. A function that was read
//! must print as the text that it was read from.

use handloom_diag::Span;
use handloom_ir::simt::*;
use handloom_ir::types::*;
use smallvec::smallvec;

/// An entry of these lines: `b0:`, instructions, the end of the block, and so on.
pub fn entry(lines: &str) -> Function {
    read(lines, true)
}

/// A function that is called.
pub fn callee(lines: &str) -> Function {
    read(lines, false)
}

fn read(lines: &str, is_entry: bool) -> Function {
    let mut f = Function {
        name: "k".into(),
        is_entry,
        blocks: vec![],
        regs: vec![],
        slots: vec![Slot::new(16, 16)],
        param_bytes: 0,
        result_bytes: 0,
        span: Span::NONE,
    };
    let lines: Vec<&str> = lines.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    for line in &lines {
        declare(&mut f, line);
    }
    let names = names(&f);
    let mut insts = Vec::new();
    for line in &lines {
        if line.starts_with('b') && line.ends_with(':') {
            assert!(insts.is_empty(), "`{line}`: the block before it has no end");
        } else if let Some(term) = term(&f, line) {
            f.blocks.push(Block { insts: std::mem::take(&mut insts), term, term_span: Span::NONE });
        } else {
            insts.push(inst(&f, &names, line));
        }
    }
    assert!(insts.is_empty(), "the last block has no end");
    let printed = text::print_function(&f);
    let printed: Vec<&str> = printed.lines().skip(1).map(str::trim).filter(|l| !l.starts_with("slot")).collect();
    assert_eq!(printed, lines, "the text is not what it prints as");
    if let Err(why) = verify::verify(&f) {
        panic!("{why}");
    }
    f
}

/// Takes the types of registers from their definitions.
fn declare(f: &mut Function, line: &str) {
    let Some((results, _)) = line.split_once(" = ") else { return };
    for result in results.split(", ") {
        // The result of a barrier has no type in the text: a count.
        let (name, ty) = result.split_once(':').unwrap_or((result, "b32"));
        let i: usize = name.trim_start_matches('v').parse().unwrap_or_else(|_| panic!("`{line}`: no register"));
        if f.regs.len() <= i {
            f.regs.resize(i + 1, Ty::B32);
        }
        f.regs[i] = [Ty::P, Ty::B16, Ty::B32, Ty::B64]
            .into_iter()
            .find(|t| t.to_string() == ty)
            .unwrap_or_else(|| panic!("`{line}`: no type `{ty}`"));
    }
}

/// The ops of these tests by their names.
fn names(f: &Function) -> Vec<(String, Op)> {
    let types = [Ty::P, Ty::B16, Ty::B32, Ty::B64];
    let ints = [Int::U32, Int::S32, Int::U64, Int::S64];
    let mut ops: Vec<Op> = Vec::new();
    for t in types {
        ops.extend(
            [Pure::Mov(t), Pure::And(t), Pure::Or(t), Pure::Xor(t), Pure::Not(t), Pure::Select(t)].map(Op::Pure),
        );
        ops.extend([Pure::Add(t), Pure::Sub(t), Pure::Mul(t), Pure::Shl(t)].map(Op::Pure));
        for from in types {
            let ext = |signed| Op::Pure(Pure::Ext { bits: 32, signed, from, to: t });
            ops.extend([ext(false), ext(true)]);
        }
    }
    for i in ints {
        ops.extend([Pure::Shr(i), Pure::Min(i), Pure::Rem(i), Pure::MulWide(i)].map(Op::Pure));
        ops.extend([Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Ge].map(|c| Op::Pure(Pure::ICmp(c, i))));
    }
    let nearest = FMode { ty: Float::F32, round: Rounding::Nearest, ftz: false, sat: false, relu: false };
    let flushing = FMode { ftz: true, ..nearest };
    ops.extend([Pure::FAdd(nearest), Pure::FMul(nearest), Pure::FAdd(flushing)].map(Op::Pure));
    ops.extend([0, 1, 2].map(|i| Op::Sreg(Sreg::Tid(i))));
    ops.extend([Sreg::Laneid, Sreg::Ctaid(0), Sreg::Nctaid(0), Sreg::LanemaskLt, Sreg::Clock].map(Op::Sreg));
    ops.extend([0, 8, 16].map(|offset| Op::ParamAddr { offset }));
    ops.extend([Op::SlotAddr(SlotId(0)), Op::Vote(VoteMode::Ballot), Op::Shfl(ShflMode::Idx), Op::Activemask]);
    for space in [StateSpace::Global, StateSpace::ParamEntry] {
        for (bits, order) in [(32, Order::Weak), (64, Order::Weak), (32, Order::Relaxed)] {
            let access = Access {
                space,
                bits,
                count: 1,
                elements: 1,
                order,
                scope: Scope::Gpu,
                is_single: false,
                is_async: false,
            };
            ops.extend([Op::Load { access, offset: 0 }, Op::Store { access, offset: 0 }]);
        }
    }
    for scope in [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys] {
        for space in [StateSpace::Global, StateSpace::Shared] {
            for order in [Order::Acquire, Order::Release] {
                let access =
                    Access { space, bits: 32, count: 1, elements: 1, order, scope, is_single: false, is_async: false };
                ops.extend([Op::Load { access, offset: 0 }, Op::Store { access, offset: 0 }]);
            }
        }
        ops.extend([Order::Sc, Order::AcqRel].map(|order| Op::Fence { order, scope }));
        let (op, ty, space) = (AtomOp::Add, ScalarType::U32, StateSpace::Global);
        let access = AtomAccess { op, ty, space, order: Order::AcqRel, scope, count: 1 };
        ops.push(Op::Red { access, offset: 0 });
    }
    let alone = |op| text::inst(f, &Inst { op, dst: smallvec![], src: smallvec![], guarded: false, span: Span::NONE });
    ops.into_iter().map(|op| (alone(op), op)).collect()
}

fn inst(f: &Function, names: &[(String, Op)], line: &str) -> Inst {
    let (dst, rest) = line.split_once(" = ").unwrap_or(("", line));
    let (rest, guard) = rest.split_once(" if ").map_or((rest, None), |(rest, g)| (rest, Some(g)));
    let is_it = |name: &str| rest.strip_prefix(name).is_some_and(|r| r.is_empty() || r.starts_with(' '));
    let longest = names.iter().filter(|(name, _)| is_it(name)).max_by_key(|(name, _)| name.len());
    let (name, op) = longest.unwrap_or_else(|| panic!("`{line}`: no op of these tests"));
    let sources = rest[name.len()..].trim();
    let mut op = *op;
    let mut src: Vec<&str> = sources.split(", ").filter(|s| !s.is_empty()).collect();
    if let Op::Load { offset, .. } | Op::Store { offset, .. } | Op::Red { offset, .. } = &mut op {
        let inner = src[0].trim_start_matches('[').trim_end_matches(']');
        let (base, at) = inner.split_once(' ').unwrap_or((inner, "0"));
        *offset = at.replace(' ', "").parse().unwrap_or_else(|_| panic!("`{line}`: no offset"));
        src[0] = base;
    }
    let types: Vec<Ty> = match op {
        Op::Pure(p) => p.sources().to_vec(),
        Op::Store { access, .. } if access.bits == 64 => vec![Ty::B64, Ty::B64],
        Op::Load { .. } | Op::Store { .. } | Op::Red { .. } => vec![Ty::B64, Ty::B32],
        Op::Vote(_) => vec![Ty::P, Ty::B32],
        _ => vec![Ty::B32; 4],
    };
    assert!(src.len() <= types.len(), "`{line}`: too many sources");
    let mut src: Vals = src.iter().zip(types).map(|(s, ty)| value(s, ty)).collect();
    src.extend(guard.map(|g| value(g, Ty::P)));
    let dst = dst.split(", ").filter(|d| !d.is_empty()).map(|d| register(d.split(':').next().unwrap_or(d))).collect();
    assert!(src.iter().all(|v| !matches!(v, Val::Reg(r) if r.idx() >= f.regs.len())), "`{line}`: no such register");
    Inst { op, dst, src, guarded: guard.is_some(), span: Span::NONE }
}

fn register(text: &str) -> Reg {
    Reg(text.trim_start_matches('v').parse().unwrap_or_else(|_| panic!("`{text}` is no register")))
}

fn value(text: &str, ty: Ty) -> Val {
    if text.starts_with('v') {
        return Val::Reg(register(text));
    }
    let bits = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    Val::Imm(bits.unwrap_or_else(|_| panic!("`{text}` is no value")), ty)
}

/// The end of a block, if the line is one.
fn term(f: &Function, line: &str) -> Option<Term> {
    let block =
        |t: &str| BlockId(t.trim_start_matches('b').parse().unwrap_or_else(|_| panic!("`{line}`: no block `{t}`")));
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    Some(match word {
        "jump" => Term::Jump(block(rest)),
        "branch" => {
            let [cond, then, otherwise] = rest.split(", ").collect::<Vec<_>>()[..] else { panic!("`{line}`") };
            Term::Branch { cond: value(cond, Ty::P), then: block(then), otherwise: block(otherwise) }
        }
        "switch" => {
            let (index, targets) = rest.split_once(", [").unwrap_or_else(|| panic!("`{line}`"));
            let targets = targets.trim_end_matches(']').split(", ").map(block).collect();
            Term::Switch { index: value(index, Ty::B32), targets }
        }
        "exit" => Term::Exit,
        "ret" => Term::Ret,
        "yield," => Term::Yield { next: block(rest.trim_start_matches("then ")) },
        _ => {
            let (dst, rest) = line.split_once(" = ").map_or((None, line), |(d, r)| (Some(d), r));
            let rest = rest.strip_prefix("barrier.")?;
            let (kind, rest) = rest.split_once(' ').unwrap_or_else(|| panic!("`{line}`"));
            let parts: Vec<&str> = rest.split(", ").collect();
            let part = |word: &str| parts.iter().find_map(|p| p.strip_prefix(word));
            let kind = match kind {
                "sync" => BarKind::Sync,
                "red.popc" => BarKind::RedPopc,
                other => panic!("`{line}`: no barrier `{other}` in these tests"),
            };
            assert!(dst.is_none_or(|d| register(d).idx() < f.regs.len()));
            Term::Barrier {
                kind,
                id: value(parts[0], Ty::B32),
                count: None,
                pred: part("of ").map(|p| value(p, Ty::P)),
                dst: dst.map(register),
                next: block(part("then ").unwrap_or_else(|| panic!("`{line}`"))),
            }
        }
    })
}
