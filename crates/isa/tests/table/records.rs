//! Facts that hold for every record.

use std::collections::HashSet;
use std::sync::Arc;

use handloom_diag::Span;
use handloom_ir::simt::verify::verify;
use handloom_ir::simt::{Addr, BlockId, Builder, Op, Val};
use handloom_ir::types::{ScalarType, StateSpace, Ty};
use handloom_isa::form::*;
use handloom_isa::forms;
use handloom_isa::target::{Suffix, Target, Version};
use smallvec::smallvec;

use crate::empty_function;

#[test]
fn no_text_belongs_to_two_free_groups_of_a_form() {
    for form in forms() {
        let mut seen: HashSet<&str> = HashSet::new();
        for group in form.qualifiers.iter().filter(|g| g.free) {
            for choice in group.choices {
                assert!(seen.insert(choice.text), "{} of `{}` stands in two free groups", choice.text, form.opcode);
            }
        }
        for word in form.words {
            assert!(!seen.contains(word), "{word} of `{}` is a fixed word and in a free group", form.opcode);
        }
    }
}

#[test]
fn qualifiers_have_dots_and_groups_have_their_own_role() {
    for form in forms() {
        assert!(!form.opcode.starts_with('.') && !form.section.is_empty());
        assert!(form.qualifiers.len() <= 64 && form.words.len() <= 32, "`{}` is too large to match", form.opcode);
        let mut roles = HashSet::new();
        for group in form.qualifiers {
            assert!(!group.choices.is_empty(), "empty group in `{}`", form.opcode);
            assert!(roles.insert(group.role), "{:?} twice in `{}`", group.role, form.opcode);
        }
        let texts = form.qualifiers.iter().flat_map(|g| g.choices).map(|c| c.text);
        for text in form.words.iter().copied().chain(texts) {
            assert!(text.starts_with('.'), "{text} of `{}` has no dot", form.opcode);
        }
    }
}

#[test]
fn optional_operands_stand_behind_the_others() {
    for form in forms() {
        for operands in [form.dst, form.src] {
            let first = operands.iter().position(|o| o.optional).unwrap_or(operands.len());
            assert!(operands[first..].iter().all(|o| o.optional), "`{}`", form.opcode);
        }
    }
}

/// Calls `visit` with every product of choices of a form.
fn products(form: &'static Form, visit: &mut dyn FnMut(&Use)) {
    let mut u = Use {
        chosen: Arc::new([None; N_SLOTS]),
        func: FuncKind::Entry,
        n_src: form.src.len(),
        n_dst: form.dst.len(),
        version: Version::new(9, 3),
        target: Target { sm: 100, suffix: Suffix::Arch },
        named_space: None,
        marks: Default::default(),
    };
    fn go(form: &'static Form, i: usize, u: &mut Use, visit: &mut dyn FnMut(&Use)) {
        let Some(group) = form.qualifiers.get(i) else {
            visit(u);
            return;
        };
        let role = group.role as usize;
        if !group.required {
            Arc::make_mut(&mut u.chosen)[role] = None;
            go(form, i + 1, u, visit);
        }
        for choice in group.choices {
            Arc::make_mut(&mut u.chosen)[role] = Some(choice);
            go(form, i + 1, u, visit);
        }
        Arc::make_mut(&mut u.chosen)[role] = None;
    }
    go(form, 0, &mut u, visit);
}

/// The number of values that an operand is.
fn n_values(u: &Use, operand: &Operand) -> usize {
    match operand.count {
        Count::One => 1,
        Count::By(role) | Count::Bare(role) => usize::from(u.count(role)),
        Count::Fixed(n) => usize::from(n),
        Count::Fragment(f) | Count::Every(f) => usize::from(f(u)),
    }
}

fn scalar(u: &Use, operand: &Operand) -> ScalarType {
    match operand.is {
        Is::Fixed(t) | Is::Wider(t) | Is::Only(t) | Is::Descriptor(t) => t,
        Is::Like(s) | Is::Relaxed(s) | Is::Exactly(s) => u.ty(s),
        Is::Twice(s) => match u.ty(s).bits() {
            16 => ScalarType::B32,
            _ => ScalarType::B64,
        },
        Is::Of(f) => f(u),
        Is::Address | Is::AddressOf(_) | Is::Handle(_) | Is::Any => ScalarType::B64,
    }
}

/// Values as the lowering hands them over: `.b128` is two.
fn argument(u: &Use, operand: &Operand) -> Arg {
    let t = scalar(u, operand);
    if operand.kind == Kind::Address {
        return Arg::Addr(Addr { base: Val::Imm(64, Ty::B64), offset: 0 });
    }
    if matches!(operand.kind, Kind::Point | Kind::Texel(_)) {
        let coordinates = vec![Val::Imm(1, t.ty()); n_values(u, operand)];
        let at = Place { addr: Addr { base: Val::Imm(64, Ty::B64), offset: 0 }, is_param: false };
        return Arg::Point(Point { at, sampler: None, coordinates });
    }
    let n = n_values(u, operand) * if t == ScalarType::B128 { 2 } else { 1 };
    Arg::Vals(smallvec![Val::Imm(1, t.ty()); n])
}

/// What builds an instruction of a form.
fn builders(form: &Form) -> Vec<fn(&mut Cx<'_, '_>)> {
    match form.semantics {
        Semantics::Build(build) | Semantics::Warp(build) | Semantics::WarpUpdate(build) | Semantics::Wait(build) => {
            vec![build]
        }
        Semantics::Timed { now, late } => vec![now, late],
        Semantics::Attempt(_) | Semantics::Hint | Semantics::Control(_) | Semantics::Unsupported(_) => vec![],
    }
}

#[test]
fn every_legal_product_can_be_built() {
    let mut n_built = 0;
    for (form, build) in forms().iter().flat_map(|form| builders(form).into_iter().map(move |build| (*form, build))) {
        let held = if let Semantics::WarpUpdate(_) = form.semantics { form.dst } else { &[] };
        products(form, &mut |u| {
            for n_src in form.src.iter().filter(|o| !o.optional).count()..=form.src.len() {
                let u = Use { n_src, ..u.clone() };
                if (form.legal)(&u).is_err() {
                    continue;
                }
                let mut func = empty_function();
                let mut b = Builder { func: &mut func, block: BlockId(0), span: Span::NONE, guard: None, carry: None };
                let args: Vec<Arg> = form.src[..n_src].iter().chain(held).map(|o| argument(&u, o)).collect();
                let sinks: Vec<_> = form.dst.iter().map(|o| smallvec![false; n_values(&u, o).max(2)]).collect();
                let mut x = Cx { u: &u, b: &mut b, args: &args, dst_sinks: &sinks, results: smallvec![] };
                build(&mut x);
                for (operand, results) in form.dst.iter().zip(&x.results) {
                    let want = scalar(&u, operand).ty();
                    let got = results[0].map(|v| x.b.ty(v));
                    assert_eq!(got, Some(want), "result of `{}` with {:?}", form.opcode, texts(&u));
                }
                assert!(x.results.len() <= form.dst.len(), "`{}` with {:?}", form.opcode, texts(&u));
                assert_eq!(x.results.is_empty(), form.dst.is_empty(), "`{}` with {:?}", form.opcode, texts(&u));
                // The lowering ends the block behind each warp-wide op.
                let insts = std::mem::take(&mut func.blocks[0].insts);
                for mut inst in insts {
                    // The lowering knows where a parameter of a function lies: in a frame.
                    if let Op::Load { access, .. } | Op::Store { access, .. } = &mut inst.op
                        && access.space == StateSpace::ParamFunc
                    {
                        access.space = StateSpace::Local;
                    }
                    func.blocks[0].insts = vec![inst];
                    if let Err(why) = verify(&func) {
                        panic!("`{}` with {:?}: {why}", form.opcode, texts(&u));
                    }
                }
                n_built += 1;
            }
        });
    }
    assert!(n_built > 1000);
}

fn texts(u: &Use) -> Vec<&'static str> {
    u.chosen.iter().flatten().map(|c| c.text).collect()
}

#[test]
fn legal_never_panics_and_guilty_words_are_written() {
    for &form in forms() {
        products(form, &mut |u| {
            for named_space in [None, Some(StateSpace::Shared), Some(StateSpace::ParamEntry)] {
                let u = Use { named_space, ..u.clone() };
                if let Err(reason) = (form.legal)(&u) {
                    assert!(!reason.message.is_empty());
                    if let Some(word) = reason.word {
                        let known = form.words.contains(&word) || texts(&u).contains(&word);
                        assert!(known, "`{}` blames {word}: {}", form.opcode, reason.message);
                    }
                }
            }
        });
    }
}
