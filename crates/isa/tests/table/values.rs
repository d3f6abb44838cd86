//! What the records of value instructions mean: built ops are verified and evaluated with the arithmetic of the IR.

use handloom_diag::Span;
use handloom_ir::num;
use handloom_ir::simt::{BlockId, Builder, Function, Op, Reg, Val, verify};
use handloom_ir::types::{ScalarType, Sreg, Ty};
use handloom_isa::form::*;
use handloom_isa::sreg::{self, What};
use handloom_isa::target::{Suffix, Target, Version};
use handloom_isa::{Match, lookup};
use smallvec::{SmallVec, smallvec};

use crate::empty_function;

const VERSION: Version = Version::new(9, 3);
const TARGET: Target = Target { sm: 100, suffix: Suffix::Arch };

fn records(text: &str, n_operands: usize) -> Vec<Match> {
    let (opcode, qualifiers) = text.split_once('.').unwrap_or((text, ""));
    let qualifiers: Vec<String> = qualifiers.split('.').filter(|q| !q.is_empty()).map(|q| format!(".{q}")).collect();
    let qualifiers = qualifiers.iter().map(String::as_str);
    let Some(candidates) = lookup(opcode, qualifiers.clone()) else { panic!("`{text}` is unknown") };
    let mut found = Vec::new();
    candidates.matches(qualifiers, n_operands, &mut found);
    found
}

/// A function with the registers of the sources, and the values that the record made.
struct Built {
    func: Function,
    results: SmallVec<[SmallVec<[Option<Val>; 2]>; 1]>,
    carry: Option<Reg>,
    legal: Result<(), Reason>,
}

/// Builds a record on the given sources; an illegal one builds nothing.
fn build(m: &Match, sources: &[Vec<Val>], regs: Vec<Ty>, n_dst_values: usize, guard: Option<Val>) -> Built {
    let u = m.used(FuncKind::Entry, m.form.dst.len(), sources.len(), VERSION, TARGET, None);
    let mut func = Function { regs, ..empty_function() };
    let args: Vec<Arg> = sources.iter().map(|s| Arg::Vals(s.as_slice().into())).collect();
    let sinks = [smallvec![false; n_dst_values]];
    let mut b = Builder { func: &mut func, block: BlockId(0), span: Span::NONE, guard, carry: None };
    let mut x = Cx { u: &u, b: &mut b, args: &args, dst_sinks: &sinks, results: smallvec![] };
    let legal = (m.form.legal)(&u).map(|_| ());
    if let (Ok(()), Semantics::Build(build)) = (&legal, m.form.semantics) {
        build(&mut x);
    }
    let results = x.results;
    let carry = b.carry;
    Built { func, results, carry, legal }
}

/// Runs an instruction on values. A source is its type and the bits of its elements.
fn run(text: &str, sources: &[(Ty, &[u64])], n_dst_values: usize) -> Vec<u64> {
    let braces = n_dst_values > 1;
    let mut found = records(text, sources.len() + 1);
    // Braces decide between the records of `mov`.
    found.retain(|m| {
        let vector_dst = m.form.dst[0].kind == Kind::Vector;
        let vector_src = m.form.src[0].kind == Kind::Vector;
        let pair = matches!(m.form.dst[0].kind, Kind::PredPair | Kind::RegPredPair);
        let fits = |o: &Operand, n: usize| matches!(o.count, Count::Fixed(k) if usize::from(k) == n);
        (pair || vector_dst == braces)
            && (!vector_dst || fits(&m.form.dst[0], n_dst_values))
            && vector_src == (sources[0].1.len() > 1)
            && (!vector_src || fits(&m.form.src[0], sources[0].1.len()))
    });
    let [m] = found.as_slice() else { panic!("{} records for `{text}`", found.len()) };
    let mut regs = Vec::new();
    let mut bits = Vec::new();
    let mut values = Vec::new();
    for ((ty, elements), operand) in sources.iter().zip(m.form.src) {
        let mut of_source = Vec::new();
        for &e in *elements {
            if operand.kind == Kind::Imm {
                of_source.push(Val::Imm(e, *ty));
            } else {
                of_source.push(Val::Reg(Reg(regs.len() as u32)));
                regs.push(*ty);
                bits.push(e);
            }
        }
        values.push(of_source);
    }
    let built = build(m, &values, regs, n_dst_values, None);
    assert_eq!(built.legal, Ok(()), "`{text}`");
    verify::verify(&built.func).unwrap_or_else(|why| panic!("`{text}`: {why}"));
    let bits = evaluate(&built.func, bits);
    let results = built.results.first().expect("a destination");
    results.iter().map(|r| read(&bits, r.expect("a result"))).collect()
}

fn read(bits: &[u64], v: Val) -> u64 {
    match v {
        Val::Reg(r) => bits[r.idx()],
        Val::Imm(value, _) => value,
    }
}

fn evaluate(func: &Function, mut bits: Vec<u64>) -> Vec<u64> {
    bits.resize(func.regs.len(), 0);
    for inst in &func.blocks[0].insts {
        let Op::Pure(op) = inst.op else { panic!("a value instruction builds value ops") };
        let src: Vec<u64> = inst.src.iter().map(|&v| read(&bits, v)).collect();
        for (d, value) in inst.dst.iter().zip(num::eval(op, &src)) {
            bits[d.idx()] = value;
        }
    }
    bits
}

fn words(text: &str, a: &[u64]) -> u64 {
    let sources: Vec<(Ty, &[u64])> = a.iter().map(|v| (Ty::B32, std::slice::from_ref(v))).collect();
    run(text, &sources, 1)[0]
}

#[test]
fn packed_integers_go_part_by_part() {
    assert_eq!(words("add.u16x2", &[0x0001_ffff, 0x0002_0001]), 0x0003_0000);
    assert_eq!(words("add.s16x2.sat", &[0x7fff_8000, 0x0001_ffff]), 0x7fff_8000);
    assert_eq!(words("add.sat.u16x2", &[0x0001_ffff, 0x0002_0001]), 0x0003_ffff);
    assert_eq!(words("add.u8x4", &[0xff01_7f80, 0x0102_0180]), 0x0003_8000);
    assert_eq!(words("add.sat.u8x4", &[0xff01_7f80, 0x0102_0180]), 0xff03_80ff);
    assert_eq!(words("add.sat.s8x4", &[0xff01_7f80, 0x0102_0180]), 0x0003_7f80);
    assert_eq!(words("sub.sat.u8x4", &[0x0005_0000, 0x0106_0000]), 0);
    assert_eq!(words("neg.s8x4", &[0x0180_ff00]), 0xff80_0100);
    assert_eq!(words("min.s16x2", &[0x8000_0005, 0x0001_0004]), 0x8000_0004);
    assert_eq!(words("min.relu.s16x2", &[0x8000_0005, 0x0001_0004]), 0x0000_0004);
    assert_eq!(words("max.u8x4", &[0x80ff_0001, 0x7f01_0200]), 0x80ff_0201);
    assert_eq!(words("max.s8x4", &[0x80ff_0001, 0x7f01_0200]), 0x7f01_0201);
    assert_eq!(words("max.relu.s32", &[0x8000_0000, 0xffff_ffff]), 0);
}

#[test]
fn products_with_an_addend() {
    assert_eq!(words("mad.lo.u32", &[3, 5, 7]), 22);
    assert_eq!(words("mad.hi.sat.s32", &[0x7fff_ffff, 0x7fff_ffff, 0x7fff_ffff]), 0x7fff_ffff);
    assert_eq!(words("mad24.lo.u32", &[0xff00_0002, 3, 1]), 7);
    assert_eq!(words("sad.s32", &[5, 7, 10]), 12);
    let wide = run("mad.wide.s32", &[(Ty::B32, &[0xffff_ffff]), (Ty::B32, &[2]), (Ty::B64, &[5])], 1);
    assert_eq!(wide, [3]);
}

#[test]
fn the_carry_flag_travels_and_keeps_its_value_under_a_false_guard() {
    for (guard, want) in [(None, 1), (Some(Val::Imm(0, Ty::P)), 0), (Some(Val::Imm(1, Ty::P)), 1)] {
        let m = records("add.cc.u32", 3)[0];
        let sources = [vec![Val::Imm(0xffff_ffff, Ty::B32)], vec![Val::Imm(1, Ty::B32)]];
        let built = build(&m, &sources, vec![], 1, guard);
        verify::verify(&built.func).expect("well-formed");
        let bits = evaluate(&built.func, vec![]);
        assert_eq!(bits[built.carry.expect("the flag is used").idx()], want);
    }
    // Without a carry before it.
    assert_eq!(words("addc.u32", &[1, 2]), 3);
    assert_eq!(words("madc.hi.u32", &[0x8000_0000, 2, 4]), 5);
    // The flag is 0, which stands for a borrow.
    assert_eq!(words("subc.cc.u32", &[4, 2]), 1);
}

#[test]
fn comparisons_join_with_predicates() {
    let setp = |text: &str, a: u64, b: u64, c: Option<u64>| {
        let (a, b) = ([a], [b]);
        let c = c.map(|c| [c]);
        let mut sources: Vec<(Ty, &[u64])> = vec![(Ty::B32, &a), (Ty::B32, &b)];
        sources.extend(c.as_ref().map(|c| (Ty::P, c.as_slice())));
        run(text, &sources, 2)
    };
    assert_eq!(setp("setp.lt.u32", 1, 2, None), [1, 0]);
    assert_eq!(setp("setp.lt.s32", 1, 0xffff_ffff, None), [0, 1]);
    assert_eq!(setp("setp.hi.and.u32", 3, 2, Some(0)), [0, 0]);
    assert_eq!(setp("setp.hi.xor.u32", 3, 2, Some(1)), [0, 1]);
    assert_eq!(setp("setp.u32.lt.or", 3, 2, Some(0)), [0, 1]);
    // NaN: the opposite of a false comparison is true.
    assert_eq!(setp("setp.lt.f32", 0x7fff_ffff, 0, None), [0, 1]);
    assert_eq!(setp("setp.ltu.f32", 0x7fff_ffff, 0, None), [1, 0]);
    assert_eq!(setp("setp.eq.ftz.f32", 1, 0, None), [1, 0]);
    // 1.0 and 2.0 in the upper halves, equal ones in the lower.
    assert_eq!(setp("setp.lt.f16x2", 0x3c00_3c00, 0x4000_3c00, None), [0, 1]);
    assert_eq!(words("set.eq.f32.u32", &[4, 4]), 0x3f80_0000);
    assert_eq!(words("set.eq.u32.s32", &[4, 4]), 0xffff_ffff);
    assert_eq!(words("set.lt.f16x2.f16x2", &[0x3c00_3c00, 0x4000_3c00]), 0x3c00_0000);
    assert_eq!(words("set.lt.u32.bf16x2", &[0x3f80_3f80, 0x4000_3f80]), 0xffff_0000);
    assert_eq!(run("set.gt.s16.f16", &[(Ty::B16, &[0x4000]), (Ty::B16, &[0x3c00])], 1), [0xffff]);
    assert_eq!(run("set.eq.bf16.b64", &[(Ty::B64, &[9]), (Ty::B64, &[9])], 1), [0x3f80]);
}

#[test]
fn selection_by_sign_and_by_predicate() {
    assert_eq!(words("slct.u32.s32", &[1, 2, 0x8000_0000]), 2);
    assert_eq!(words("slct.u32.s32", &[1, 2, 0]), 1);
    assert_eq!(words("slct.f32.f32", &[1, 2, 0x8000_0000]), 1);
    assert_eq!(words("slct.f32.f32", &[1, 2, 0x8000_0001]), 2);
    assert_eq!(words("slct.ftz.f32.f32", &[1, 2, 0x8000_0001]), 1);
    assert_eq!(words("slct.f32.f32", &[1, 2, 0x7fff_ffff]), 2);
    assert_eq!(run("selp.b16", &[(Ty::B16, &[1]), (Ty::B16, &[2]), (Ty::P, &[0])], 1), [2]);
}

#[test]
fn table_look_up_with_a_predicate() {
    let lop3 = |text: &str, q: u64| {
        run(text, &[(Ty::B32, &[0xf0]), (Ty::B32, &[0x0f]), (Ty::B32, &[0]), (Ty::B32, &[0x180]), (Ty::P, &[q])], 2)
    };
    assert_eq!(lop3("lop3.or.b32", 1), [0, 1]);
    assert_eq!(lop3("lop3.and.b32", 1), [0, 0]);
    assert_eq!(words("shf.r.wrap.b32", &[0x1234_5678, 0x9abc_def0, 36]), 0x0123_4567);
}

#[test]
fn vectors_are_packed_lowest_first() {
    assert_eq!(run("mov.b16", &[(Ty::B16, &[0x11, 0x22])], 1), [0x2211]);
    assert_eq!(run("mov.b32", &[(Ty::B16, &[0x11, 0x22, 0x33, 0x44])], 1), [0x4433_2211]);
    assert_eq!(run("mov.b32", &[(Ty::B16, &[0x1111, 0x2222])], 1), [0x2222_1111]);
    assert_eq!(run("mov.b64", &[(Ty::B16, &[1, 2, 3, 4])], 1), [0x0004_0003_0002_0001]);
    assert_eq!(run("mov.b64", &[(Ty::B32, &[1, 2])], 1), [0x0000_0002_0000_0001]);
    assert_eq!(run("mov.b16", &[(Ty::B16, &[0x2211])], 2), [0x11, 0x22]);
    assert_eq!(run("mov.b32", &[(Ty::B32, &[0x4433_2211])], 4), [0x11, 0x22, 0x33, 0x44]);
    assert_eq!(run("mov.b64", &[(Ty::B64, &[0x0004_0003_0002_0001])], 4), [1, 2, 3, 4]);
    assert_eq!(run("mov.b64", &[(Ty::B64, &[0x0004_0003_0002_0001])], 2), [0x0002_0001, 0x0004_0003]);
}

#[test]
fn integers_are_cut_extended_and_clamped() {
    let cvt = |text: &str, ty: Ty, a: u64| run(text, &[(ty, &[a])], 1)[0];
    assert_eq!(cvt("cvt.s64.s8", Ty::B16, 0x80), 0xffff_ffff_ffff_ff80);
    assert_eq!(cvt("cvt.s16.u8", Ty::B16, 0x80), 0x80);
    assert_eq!(cvt("cvt.s16.s8", Ty::B16, 0x80), 0xff80);
    assert_eq!(cvt("cvt.u8.s32", Ty::B32, 0xffff_ffff), 0xff);
    assert_eq!(cvt("cvt.s8.u8", Ty::B16, 0x80), 0x80);
    assert_eq!(cvt("cvt.sat.u8.s32", Ty::B32, 0xffff_ffff), 0);
    assert_eq!(cvt("cvt.sat.s8.s32", Ty::B32, 200), 127);
    assert_eq!(cvt("cvt.u32.u64", Ty::B64, 0x1_0000_0002), 2);
    assert_eq!(cvt("cvt.rzi.s32.f32", Ty::B32, 0xbfc0_0000), 0xffff_ffff);
    assert_eq!(cvt("cvt.rn.f32.s32", Ty::B32, 0xffff_ffff), 0xbf80_0000);
    assert_eq!(cvt("cvt.rni.f32.f32", Ty::B32, 0x3fc0_0000), 0x4000_0000);
    assert_eq!(cvt("cvt.f32.f32", Ty::B32, 0x3fc0_0000), 0x3fc0_0000);
    assert_eq!(cvt("cvt.f32.f16", Ty::B16, 0x3c00), 0x3f80_0000);
}

#[test]
fn pairs_and_small_floats() {
    // 1.0 and 2.0.
    assert_eq!(words("cvt.rn.f16x2.f32", &[0x3f80_0000, 0x4000_0000]), 0x3c00_4000);
    assert_eq!(words("cvt.rn.satfinite.e4m3x2.f32", &[0x3f80_0000, 0x4000_0000]), 0x3840);
    assert_eq!(words("cvt.rz.ue8m0x2.f32", &[0x3f80_0000, 0x4000_0000]), 0x7f80);
    assert_eq!(run("cvt.rn.bf16x2.e4m3x2", &[(Ty::B16, &[0x3840])], 1), [0x3f80_4000]);
    let scaled = "cvt.rn.scaled::n2::ue8m0.bf16x2.e4m3x2";
    // Factors 4.0 and 0.5.
    assert_eq!(run(scaled, &[(Ty::B16, &[0x3840]), (Ty::B16, &[0x817e])], 1), [0x4080_3f80]);
    // 2.0 times 2^127 is infinite, or the largest number.
    assert_eq!(run(scaled, &[(Ty::B16, &[0x4040]), (Ty::B16, &[0xfe7f])], 1), [0x7f80_4000]);
    let finite = "cvt.rn.satfinite.scaled::n2::ue8m0.bf16x2.e4m3x2";
    assert_eq!(run(finite, &[(Ty::B16, &[0x4040]), (Ty::B16, &[0xfe7f])], 1), [0x7f7f_4000]);
    // 1.0 is 64/64.
    assert_eq!(words("cvt.rn.satfinite.s2f6x2.f32", &[0x3f80_0000, 0xbf80_0000]), 0x40c0);
    let four: &[u64] = &[0x3f80_0000, 0x4000_0000, 0x3f80_0000, 0x4000_0000];
    assert_eq!(run("cvt.rs.satfinite.e4m3x4.f32", &[(Ty::B32, four), (Ty::B32, &[0])], 1), [0x3840_3840]);
    assert_eq!(words("cvt.pack.sat.s16.s32", &[0x0001_0000, 0xffff_0000]), 0x7fff_8000);
    assert_eq!(words("cvt.pack.sat.u8.s32.b32", &[300, 0xffff_ffff, 0x1234]), 0x1234_ff00);
    assert_eq!(words("cvt.pack.sat.s4.s32.b32", &[0xffff_ffff, 7, 0x00ab_cdef]), 0xabcd_eff7);
    assert_eq!(words("cvt.pack.sat.u2.s32.b32", &[9, 1, 0x0bcd_ef01]), 0xbcde_f01d);
}

#[test]
fn three_sources_and_gross_reciprocals() {
    // 1.0, NaN, -2.0.
    assert_eq!(words("min.f32", &[0x3f80_0000, 0x7fff_ffff, 0xc000_0000]), 0xc000_0000);
    assert_eq!(words("min.NaN.f32", &[0x3f80_0000, 0x7fff_ffff, 0xc000_0000]), 0x7fff_ffff);
    assert_eq!(words("max.abs.f32", &[0x3f80_0000, 0x3f80_0000, 0xc000_0000]), 0x4000_0000);
    assert_eq!(words("max.xorsign.abs.f32", &[0xbf80_0000, 0x4000_0000]), 0xc000_0000);
    let double = |text: &str, a: u64| run(text, &[(Ty::B64, &[a])], 1)[0];
    let one = 1.0f64.to_bits();
    assert_eq!(double("rcp.approx.ftz.f64", 4.0f64.to_bits()), 0.25f64.to_bits());
    assert_eq!(double("rcp.approx.ftz.f64", 3.0f64.to_bits()) & 0xffff_ffff, 0);
    assert_eq!(double("rcp.approx.ftz.f64", 1), f64::INFINITY.to_bits());
    assert_eq!(double("rcp.approx.ftz.f64", 0x7ff0_0000_0000_0001), 0x7fff_ffff_0000_0000);
    assert_eq!(double("rcp.approx.ftz.f64", (-f64::MAX).to_bits()), (-0.0f64).to_bits());
    assert_eq!(double("rsqrt.approx.ftz.f64", one), one);
    assert_eq!(double("rsqrt.approx.ftz.f64", (-1.0f64).to_bits()), 0x7fff_ffff_0000_0000);
    assert_eq!(double("rsqrt.approx.ftz.f64", (-0.0f64).to_bits()), f64::NEG_INFINITY.to_bits());
    assert_eq!(
        run("fma.rn.f32.bf16", &[(Ty::B16, &[0x4000]), (Ty::B16, &[0x4000]), (Ty::B32, &[0])], 1),
        [0x4080_0000]
    );
}

/// Calls `visit` with every product of the choices of a form.
fn products(form: &'static Form, i: usize, m: &mut Match, visit: &mut dyn FnMut(&Match)) {
    let Some(group) = form.qualifiers.get(i) else { return visit(m) };
    let role = group.role as usize;
    if !group.required {
        products(form, i + 1, m, visit);
    }
    for choice in group.choices {
        m.chosen[role] = Some(choice);
        products(form, i + 1, m, visit);
    }
    m.chosen[role] = None;
}

/// The words of an instruction, in the order of the groups.
fn spelled(m: &Match) -> String {
    let mut text = m.form.opcode.to_string();
    for group in m.form.qualifiers.iter().filter(|g| g.lead) {
        text.push_str(m.chosen[group.role as usize].map_or("", |c| c.text));
    }
    m.form.words.iter().for_each(|w| text.push_str(w));
    for group in m.form.qualifiers.iter().filter(|g| !g.lead) {
        text.push_str(m.chosen[group.role as usize].map_or("", |c| c.text));
    }
    text
}

fn type_of(u: &Use, operand: &Operand) -> ScalarType {
    match operand.is {
        Is::Fixed(t) | Is::Wider(t) | Is::Only(t) | Is::Descriptor(t) => t,
        Is::Like(s) | Is::Relaxed(s) | Is::Exactly(s) => u.ty(s),
        Is::Twice(s) => [ScalarType::B32, ScalarType::B64][usize::from(u.ty(s).bits() == 32)],
        Is::Of(f) => f(u),
        Is::Address | Is::AddressOf(_) | Is::Handle(_) | Is::Any => panic!("value instructions have no such operand"),
    }
}

/// The chapters of value instructions.
fn value_forms() -> impl Iterator<Item = &'static Form> {
    let chapters = [
        handloom_isa::integer::FORMS,
        handloom_isa::extended_precision::FORMS,
        handloom_isa::floating_point::FORMS,
        handloom_isa::half_precision::FORMS,
        handloom_isa::mixed_precision::FORMS,
        handloom_isa::comparison::FORMS,
        handloom_isa::half_comparison::FORMS,
        handloom_isa::logic_shift::FORMS,
        handloom_isa::data_movement::mov::FORMS,
        handloom_isa::data_movement::prmt::FORMS,
        handloom_isa::data_movement::cvt::FORMS,
        handloom_isa::data_movement::cvt_pack::FORMS,
    ];
    chapters.into_iter().flatten().copied()
}

#[test]
fn one_text_has_one_record() {
    for form in value_forms().filter(|f| f.opcode != "mov") {
        products(form, 0, &mut Match { form, chosen: [None; N_SLOTS] }, &mut |m| {
            let text = spelled(m);
            for n_src in form.src.iter().filter(|o| !o.optional).count()..=form.src.len() {
                let found = records(&text, form.dst.len() + n_src);
                assert_eq!(found.len(), 1, "`{text}` with {n_src} sources");
            }
        });
    }
}

#[test]
fn every_legal_product_is_well_typed() {
    for form in value_forms() {
        products(form, 0, &mut Match { form, chosen: [None; N_SLOTS] }, &mut |m| {
            for n_src in form.src.iter().filter(|o| !o.optional).count()..=form.src.len() {
                let u = m.used(FuncKind::Entry, form.dst.len(), n_src, VERSION, TARGET, None);
                let mut regs = Vec::new();
                let mut values = Vec::new();
                let count = |o: &Operand| match o.count {
                    Count::One => 1,
                    Count::By(role) | Count::Bare(role) => usize::from(u.count(role)),
                    Count::Fixed(n) => usize::from(n),
                    Count::Fragment(_) | Count::Every(_) => panic!("value instructions have no fragments"),
                };
                for operand in &form.src[..n_src] {
                    let t = type_of(&u, operand);
                    let n = count(operand) * if t == ScalarType::B128 { 2 } else { 1 };
                    let new = (0..n).map(|_| {
                        regs.push(t.ty());
                        Val::Reg(Reg(regs.len() as u32 - 1))
                    });
                    let new: Vec<Val> = new.collect();
                    values.push(if operand.kind == Kind::Imm { vec![Val::Imm(0x80, Ty::B32)] } else { new });
                }
                let pair = matches!(form.dst[0].kind, Kind::PredPair | Kind::RegPredPair);
                let n_dst = if pair { 2 } else { count(&form.dst[0]) };
                for guard in [None, Some(Val::Imm(1, Ty::P))] {
                    let built = build(m, &values, regs.clone(), n_dst, guard);
                    let text = spelled(m);
                    verify::verify(&built.func).unwrap_or_else(|why| panic!("`{text}`: {why}"));
                    let builds = matches!(form.semantics, Semantics::Build(_));
                    if built.legal.is_ok() && builds {
                        let t = type_of(&u, &form.dst[0]);
                        for result in &built.results[0] {
                            let ty = built.func.ty(result.expect("a result"));
                            assert!(ty == t.ty() || pair && ty == Ty::P, "result of `{text}`");
                        }
                        let n = n_dst * if t == ScalarType::B128 { 2 } else { 1 };
                        assert_eq!(built.results[0].len(), n.max(1), "results of `{text}`");
                    }
                }
            }
        });
    }
}

#[test]
fn special_registers_by_name() {
    let scalar = |text: &str| match sreg::lookup(text) {
        Some(sreg::Found { what: What::Scalar(s), ty, .. }) => Some((s, ty)),
        _ => None,
    };
    assert_eq!(scalar("%tid.x"), Some((Sreg::Tid(0), ScalarType::U32)));
    assert_eq!(scalar("%nctaid.w"), Some((Sreg::Nctaid(3), ScalarType::U32)));
    assert_eq!(scalar("%tid.g"), Some((Sreg::Tid(1), ScalarType::U32)));
    assert_eq!(scalar("%tid.q"), None);
    assert_eq!(scalar("%laneid.x"), None);
    assert_eq!(scalar("%clock64"), Some((Sreg::Clock64, ScalarType::U64)));
    assert_eq!(scalar("%envreg31"), Some((Sreg::Envreg(31), ScalarType::B32)));
    assert_eq!(scalar("%envreg32"), None);
    assert_eq!(scalar("%envreg01"), None);
    assert_eq!(scalar("%pm7"), Some((Sreg::Pm(7), ScalarType::U32)));
    assert_eq!(scalar("%pm7_64"), Some((Sreg::Pm64(7), ScalarType::U64)));
    assert_eq!(scalar("%reserved_smem_offset_1"), Some((Sreg::ReservedSmemOffset(1), ScalarType::B32)));
    assert_eq!(scalar("%reserved_smem_offset_cap"), Some((Sreg::ReservedSmemCap, ScalarType::B32)));
    assert_eq!(scalar("%is_explicit_cluster"), Some((Sreg::IsExplicitCluster, ScalarType::Pred)));
    assert_eq!(scalar("%tid"), None);
    let whole = sreg::lookup("%tid").expect("a vector");
    assert_eq!(whole.what, What::Vector([Sreg::Tid(0), Sreg::Tid(1), Sreg::Tid(2), Sreg::Tid(3)]));
    assert_eq!(whole.legacy, Some(ScalarType::U16));
    assert!(sreg::lookup("%r1").is_none() && sreg::lookup("tid").is_none());
}
