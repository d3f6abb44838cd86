//! From the words of an instruction to its record.

use handloom_ir::types::{AtomOp, Order, ScalarType, Scope, ShflMode, StateSpace};
use handloom_isa::find::{Match, n_operands_of};
use handloom_isa::form::*;
use handloom_isa::spelling::distance;
use handloom_isa::target::{Suffix, Target, Version};
use handloom_isa::{Mismatch, check_literal, lookup, suggest, suggest_qualifier};

fn split(text: &str) -> (&str, Vec<String>) {
    let mut words = text.split('.');
    (words.next().unwrap_or(""), words.map(|w| format!(".{w}")).collect())
}

fn matches(text: &str, n_operands: usize) -> Vec<Match> {
    let (opcode, qualifiers) = split(text);
    let words = qualifiers.iter().map(String::as_str);
    let mut out = Vec::new();
    lookup(opcode, words.clone()).expect("the opcode exists").matches(words, n_operands, &mut out);
    out
}

fn mismatch(text: &str) -> Mismatch {
    let (opcode, qualifiers) = split(text);
    let words = qualifiers.iter().map(String::as_str);
    assert!(matches(text, 2).is_empty(), "{text} matches");
    lookup(opcode, words.clone()).expect("the opcode exists").mismatch(words)
}

fn used(text: &str, n_dst: usize, n_src: usize) -> Use {
    let found = matches(text, n_dst + n_src);
    assert!(!found.is_empty(), "{text} does not match");
    let target = Target { sm: 100, suffix: Suffix::Arch };
    found[0].used(FuncKind::Entry, n_dst, n_src, Version::new(9, 3), target, None)
}

#[test]
fn qualifiers_in_any_order() {
    let u = used("ld.b32.global.acquire.sys", 1, 1);
    assert_eq!((u.ty(Role::Type), u.space(Role::Space)), (ScalarType::B32, StateSpace::Global));
    assert_eq!(u.scope(Role::Scope), Some(Scope::Sys));
    let u = used("shfl.b32.idx.sync", 1, 4);
    assert_eq!(u.value(Role::Mode), Some(Value::Shfl(ShflMode::Idx)));
    let u = used("fence.gpu.sc", 0, 0);
    assert_eq!((u.order(Role::Order), u.scope(Role::Scope)), (Some(Order::Sc), Some(Scope::Gpu)));
    let u = used("atom.add.global.u32", 1, 2);
    assert_eq!((u.value(Role::Op), u.order(Role::Order)), (Some(Value::Atom(AtomOp::Add)), None));
}

/// Forms of the manual's examples and of the corpus: (text, number of operands).
#[test]
fn real_forms_match() {
    for (text, n) in [
        ("ld.global.relaxed.gpu.u32", 2),
        ("ld.relaxed.gpu.global.u32", 2),
        ("ld.param::entry.b32", 2),
        ("ld.global.L1::evict_last.u32", 2),
        ("ld.global.L2::128B.v4.b32", 2),
        ("ld.global.L2::evict_last.L1::evict_last.v4.u64", 2),
        ("ld.global.L2::cache_hint.b64", 3),
        ("ld.global.nc.v4.f32", 2),
        ("ld.global.nc.L1::no_allocate.L2::256B.v2.f64", 2),
        ("ld.global.ca.nc.u32", 2),
        ("ld.global.mmio.relaxed.sys.u32", 2),
        ("ld.volatile.shared.u32", 2),
        ("ldu.global.v4.f32", 2),
        ("st.shared::cta.release.cta.u32", 2),
        ("st.global.wt.v2.b32", 2),
        ("st.u8", 2),
        ("cvta.to.global.u64", 2),
        ("cvta.shared::cluster.u64", 2),
        ("isspacep.param::entry", 2),
        ("prefetch.global.L2::evict_last", 1),
        ("prefetch.tensormap", 1),
        ("prefetchu.L1", 1),
        ("createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64", 2),
        ("createpolicy.range.L2::evict_last.L2::evict_first.b64", 4),
        ("createpolicy.cvt.L2.b64", 2),
        ("discard.global.L2", 2),
        ("bra.uni", 1),
        ("brx.idx", 2),
        ("ret", 0),
        ("exit", 0),
        ("call.uni", 3),
        ("bar.sync", 1),
        ("bar.cta.red.popc.u32", 4),
        ("bar.red.and.pred", 3),
        ("barrier.cta.sync.aligned", 2),
        ("barrier.cluster.wait.acquire.aligned", 0),
        ("bar.warp.sync", 1),
        ("membar.gl", 0),
        ("membar.proxy.alias", 0),
        ("fence.acq_rel.gpu", 0),
        ("fence.proxy.async.shared::cta", 0),
        ("fence.proxy.tensormap::generic.acquire.gpu", 2),
        ("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster", 0),
        ("fence.mbarrier_init.release.cluster", 0),
        ("fence.acquire.sync_restrict::shared::cluster.cluster", 0),
        ("atom.relaxed.sys.shared.add.u32", 3),
        ("atom.xor.acq_rel.sys.b64", 3),
        ("atom.shared.b128.cas", 4),
        ("atom.global.v8.f16.max.noftz", 3),
        ("atom.add.shared::cluster.noftz.f16", 3),
        ("red.global.add.L2::cache_hint.s32", 3),
        ("red.global.v2.f32.add", 2),
        ("vote.ballot.sync.b32", 3),
        ("vote.all.pred", 2),
        ("match.any.sync.b64", 3),
        ("redux.sync.min.abs.NaN.f32", 3),
        ("elect.sync", 2),
        ("activemask.b32", 1),
        ("griddepcontrol.launch_dependents", 0),
        ("nanosleep.u32", 1),
        ("pmevent.mask", 1),
        ("setmaxnreg.inc.sync.aligned.u32", 1),
        ("mapa.shared::cluster.u32", 3),
    ] {
        let found = matches(text, n);
        assert!(!found.is_empty(), "{text} does not match");
        for m in found {
            let (least, most) = n_operands_of(m.form, &m.chosen);
            assert!((least..=most).contains(&n), "{text} with {n} operands");
        }
    }
}

#[test]
fn the_longest_prefix_wins() {
    let of = |text: &str| {
        let (opcode, q) = split(text);
        lookup(opcode, q.iter().map(String::as_str)).map_or("", |c| c.opcode)
    };
    assert_eq!(of("st.async.shared::cluster.u32"), "st.async");
    assert_eq!(of("st.global.u32"), "st");
    assert_eq!(of("red.async.relaxed.cluster.u32"), "red.async");
    assert_eq!(of("cp.async.bulk.tensor.2d"), "cp.async.bulk.tensor");
    assert_eq!(of("cp.async.cg.shared.global"), "cp.async");
    assert_eq!(of("bar.warp.sync"), "bar.warp");
    assert_eq!(of("fence.proxy.alias"), "fence.proxy");
    assert_eq!(of("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"), "mma");
    // The assembler takes the word of sparsity at any place.
    let sparse = "mma.sync.aligned.kind::mxf8f6f4.sp::ordered_metadata.block_scale.scale_vec::1X.m16n8k64.row.col.f32.e4m3.e3m2.f32.ue8m0";
    assert_eq!(of(sparse), "mma.sp::ordered_metadata");
    assert_eq!(matches(sparse, 10).len(), 1);
    assert_eq!(of("mma.sync.aligned.m16n8k16.sp.row.col.f32.f16.f16.f32"), "mma.sp");
    assert_eq!(of("ld.global.sp.u32"), "ld");
    assert_eq!(of("frobnicate.u32"), "");
}

#[test]
fn operand_count_picks_the_record() {
    assert_eq!(matches("bar.red.popc.u32", 3).len(), 1);
    assert_eq!(matches("bar.red.popc.u32", 4)[0].form.src.len(), 3);
    // Nothing takes nine operands: all that fit the words, for the message.
    assert_eq!(matches("bar.red.popc.u32", 9).len(), 2);
}

#[test]
fn what_excludes_each_other_does_not_match() {
    for text in [
        "ld.relaxed.acquire.gpu.u32",
        "ld.weak.gpu.u32",
        "ld.ca.cg.u32",
        "ld.ca.L1::evict_first.global.u32",
        "ld.relaxed.gpu.ca.global.u32",
        "ld.global.shared.u32",
        "ld.u32.u32",
        "ld.f16",
        "ld.relaxed.global.u32",
        "st.acquire.gpu.u32",
        "st.const.u32",
        "red.acquire.gpu.global.add.u32",
        "red.global.exch.b32",
        "atom.global.add.s64",
        "atom.global.and.u32",
        "atom.cas.L2::cache_hint.b32",
        "atom.add.f16",
        "bar.sync.aligned",
        "exit.uni",
        "membar.gpu",
        "redux.sync.and.u32",
        "createpolicy.fractional.L2::evict_first.L2::evict_last.b64",
    ] {
        assert!(matches(text, 2).is_empty(), "{text} matches");
    }
}

#[test]
fn a_mismatch_names_the_word_and_what_would_do() {
    let m = mismatch("ld.global.f16");
    assert_eq!(m.at, Some(1));
    assert!(m.accepted.contains(&".b16") && !m.accepted.contains(&".ca"), "{:?}", m.accepted);
    let m = mismatch("atom.global.add.s64");
    assert_eq!(m.at, Some(2));
    assert!(m.accepted.contains(&".u64") && m.accepted.contains(&".f64"), "{:?}", m.accepted);
    let m = mismatch("ld.relaxed.global.u32");
    assert_eq!((m.at, m.accepted), (None, vec![".cta", ".cluster", ".gpu", ".sys"]));
    let m = mismatch("fence.proxy.alias.gpu");
    assert_eq!(m.at, Some(2));
    let m = mismatch("mma.sync.sp.aligned.m16n8k16.row.col.f32.f16.f16.u8");
    assert_eq!(m.at, Some(9));
    let m = mismatch("mma.sync.uni.sp.aligned.m16n8k16.row.col.f32.f16.f16.f32");
    assert_eq!(m.at, Some(1));
    let m = mismatch("mma.sp.sync.uni.aligned.m16n8k16.row.col.f32.f16.f16.f32");
    assert_eq!(m.at, Some(2));
}

#[test]
fn rules_of_ld() {
    let ok = |text: &str, n_src: usize| {
        let u = used(text, 1, n_src);
        (matches(text, 1 + n_src)[0].form.legal)(&u).is_ok()
    };
    assert!(ok("ld.global.v8.b32", 1));
    assert!(ok("ld.v4.f64", 1));
    assert!(!ok("ld.shared.v8.b32", 1));
    assert!(ok("ld.shared.v8.b16", 1));
    assert!(!ok("ld.global.v8.b64", 1));
    assert!(!ok("ld.shared.v4.b64", 1));
    assert!(!ok("ld.global.v2.b128", 1));
    assert!(!ok("ld.global.L2::evict_last.u32", 1));
    assert!(!ok("ld.relaxed.gpu.const.u32", 1));
    assert!(ok("ld.volatile.local.u32", 1));
    assert!(ok("ld.global.L2::cache_hint.u32", 2));
    assert!(!ok("ld.global.L2::cache_hint.u32", 1));
    assert!(!ok("ld.global.u32", 2));
}

#[test]
fn plain_param_is_resolved() {
    use handloom_isa::data_movement::memory::space;
    let mut u = used("ld.param.u32", 1, 1);
    assert_eq!(space(&u), StateSpace::ParamEntry);
    u.named_space = Some(StateSpace::ParamFunc);
    assert_eq!(space(&u), StateSpace::ParamFunc);
    u.named_space = None;
    u.func = FuncKind::Func;
    assert_eq!(space(&u), StateSpace::ParamFunc);
}

#[test]
fn letters_that_differ() {
    for (a, b, without, with) in
        [("shlf", "shfl", 2, 1), ("add", "add", 0, 0), ("", "bra", 3, 3), ("%r12", "%r2", 1, 1)]
    {
        assert_eq!(distance(a.as_bytes(), b.as_bytes(), false), without);
        assert_eq!(distance(b.as_bytes(), a.as_bytes(), true), with);
    }
}

#[test]
fn suggestions() {
    assert_eq!(suggest("shlf"), Some("shfl"));
    assert_eq!(suggest("prefech"), Some("prefetch"));
    assert_eq!(suggest("ldmatrx"), Some("ldmatrix"));
    assert_eq!(suggest("frobnicate"), None);
    assert_eq!(suggest("adds"), Some("add"));
    assert_eq!(suggest_qualifier(".gloabl", &[".u32", ".global", ".local"]), Some(".global"));
    // A word that other instructions have is no slip of the hand.
    assert_eq!(suggest_qualifier(".u32", &[".f32", ".f64"]), None);
}

#[test]
fn literals() {
    let found = matches("bar.sync", 2);
    let (form, u) = (found[0].form, used("bar.sync", 0, 2));
    assert!(check_literal(form, &u, &form.src[0], 15, 15).is_ok());
    assert!(check_literal(form, &u, &form.src[0], 16, 16).is_err());
    assert!(check_literal(form, &u, &form.src[1], 33, 33).is_err());
    // Which lanes have the metadata: one of four, one pair of two, or all.
    for (words, last) in [
        ("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 3),
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32", 1),
        ("mma.sp::ordered_metadata.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 3),
        ("mma.sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 1),
        ("mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32", 0),
        ("mma.sp.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", 1),
        ("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16", 1),
    ] {
        let n_src = if words.starts_with("wgmma") { 9 } else { 5 };
        let (form, u) = (matches(words, 1 + n_src)[0].form, used(words, 1, n_src));
        let selector = form.src.iter().find(|o| o.name == "f" || o.name == "sp-sel").expect("a selector");
        assert!(check_literal(form, &u, selector, last, last).is_ok(), "{words}");
        assert!(check_literal(form, &u, selector, last + 1, last + 1).is_err(), "{words}");
    }
}
