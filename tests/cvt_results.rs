//! Every form of `cvt`, by the interpreter and by each generator of code, against an oracle of its own.
//!
//! Sources of up to 16 bits are asked about all. Of the others those are asked where a result can change: ties, thresholds, subnormals,
//! special values, NaNs with payloads, and random ones from a fixed seed. `HANDLOOM_CVT=thorough` asks about many more,
//! `HANDLOOM_CVT=all` in addition about all 2^32 values of `.f32`, as a nightly run would (in a release build).

use handloom_runtime::{Bounds, Device, LaunchConfig, Module, launch};
use handloom_tests::convert::bulk::{Rows, Shape, Step, Way, groups, steps, takes_part};
use handloom_tests::convert::forms::{BF16, E2M1, E2M3, E3M2, E4M3, E5M2, Elem, F16, F32, F64, Form, Round, TF32, all};
use handloom_tests::convert::inputs::{self, Amount};
use handloom_tests::convert::oracle;
use handloom_tests::engines::{self, INTERP, compiled, plain};
use handloom_tests::rng::Rng;

/// Steps of one kernel.
const STEPS: usize = 16;

/// Rows that are asked in the shapes that are slow for each row.
const UNIFORM_ROWS: usize = 3000;

fn amount() -> Amount {
    match std::env::var("HANDLOOM_CVT").as_deref() {
        Ok("thorough" | "all") => inputs::THOROUGH,
        _ => inputs::ORDINARY,
    }
}

/// The forms from one type, by all who run kernels and in all shapes.
fn check(is_from: impl Fn(&Form) -> bool) {
    let forms: Vec<Form> = all().into_iter().filter(|f| is_from(f)).collect();
    assert!(!forms.is_empty());
    for group in groups(&forms) {
        let mut rng = Rng::new(4);
        let src = inputs::sources(group[0], amount(), &mut rng);
        // Compiled code with all threads sees everything. The interpreter is slow, so beyond the ordinary amount it sees a share; other
        // shapes of compiled code, which do the same ops on other packs, see one too.
        for by in compiled(Bounds::Contained) {
            check_group(&group, &src, Way { by, shape: Shape::Whole });
        }
        let share = |most: usize| -> Vec<Vec<u64>> {
            let by = src[0].len().div_ceil(most);
            src.iter().map(|list| list.iter().step_by(by).copied().collect()).collect()
        };
        check_group(&group, &share(1 << 16), Way { by: INTERP, shape: Shape::Whole });
        for by in compiled(Bounds::Contained) {
            check_group(&group, &share(1 << 13), Way { by, shape: Shape::Parted });
            check_group(&group, &share(UNIFORM_ROWS), Way { by, shape: Shape::Uniform });
        }
    }
}

fn check_group(group: &[&Form], src: &[Vec<u64>], way: Way) {
    let rows = Rows::new(group[0], src);
    let list: Vec<Step<'_>> = group.iter().flat_map(|form| steps(form)).collect();
    let mut known: Option<(Elem, Vec<Vec<oracle::Placed>>)> = None;
    for some in list.chunks(STEPS) {
        let slots = rows.run(some, way).unwrap_or_else(|e| panic!("{way:?}: {e}"));
        for (step, slots) in some.iter().zip(&slots) {
            let form = step.form;
            if known.as_ref().is_none_or(|(to, _)| *to != form.to) {
                known = Some((form.to, oracle::places(form, src)));
            }
            let places = &known.as_ref().expect("just found").1;
            for i in (0..src[0].len()).filter(|i| takes_part(way.shape, *i)) {
                let bits = step.result_bits();
                let want = oracle::extended(form, oracle::result(form, places, src, i), bits);
                let got = slots[i] & u64::MAX >> (64 - bits);
                if got != want {
                    let src: Vec<String> = src.iter().map(|s| format!("{:#x}", s[i])).collect();
                    panic!("{} of {}: {got:#x}, not {want:#x} ({way:?})", step.name(), src.join(", "));
                }
            }
        }
    }
}

/// A test for each type of source.
macro_rules! sources {
    ($($name:ident => $from:expr),* $(,)?) => {$(
        #[test]
        fn $name() {
            let from: fn(&Form) -> bool = $from;
            check(from);
        }
    )*};
}

fn int(f: &Form, bits: u32) -> bool {
    matches!(f.from, Elem::Int(own, _) if own == bits)
}

fn single(f: &Form, from: Elem) -> bool {
    f.count == 1 && f.from == from
}

sources! {
    from_8_bit_integers => |f| int(f, 8),
    from_16_bit_integers => |f| int(f, 16),
    from_32_bit_integers => |f| int(f, 32),
    from_64_bit_integers => |f| int(f, 64),
    from_f16 => |f| single(f, F16),
    from_bf16 => |f| single(f, BF16),
    from_f32_to_integers => |f| single(f, F32) && matches!(f.to, Elem::Int(..)),
    from_f32_to_floats => |f| single(f, F32) && !matches!(f.to, Elem::Int(..)),
    from_f64 => |f| single(f, F64),
    from_two_f32 => |f| f.from == F32 && f.count == 2,
    from_four_f32 => |f| f.from == F32 && f.count == 4,
    from_pairs_of_16_bits => |f| f.packed && [F16, BF16].contains(&f.from),
    from_pairs_of_8_bits_and_fewer => |f| f.packed && ![F16, BF16].contains(&f.from),
}

#[test]
fn every_form_is_asked_about() {
    let forms = all();
    let mut texts: Vec<&str> = forms.iter().map(|f| f.text.as_str()).collect();
    texts.sort_unstable();
    let count = texts.len();
    texts.dedup();
    assert_eq!(texts.len(), count, "a form is listed twice");
    // Between integers: 64 pairs, and `.sat` where it has something to do, which 38 pairs have.
    let plain = forms.iter().filter(|f| matches!((f.from, f.to), (Elem::Int(..), Elem::Int(..))));
    assert_eq!(plain.count(), 64 + 38);
    // Integers with f16, f32, f64 and bf16: each of 4 roundings, times `.sat` and `.ftz`, both ways, with 8 integer types.
    let mixed = forms.iter().filter(|f| matches!(f.from, Elem::Int(..)) != matches!(f.to, Elem::Int(..)));
    assert_eq!(mixed.count(), 2 * 8 * 4 * (2 + 4 + 2 + 1));
}

/// `cvt.pack`: the type, its bits, signed.
const PACKED: [(&str, u32, bool); 8] = [
    ("u16", 16, false),
    ("s16", 16, true),
    ("u8", 8, false),
    ("s8", 8, true),
    ("u4", 4, false),
    ("s4", 4, true),
    ("u2", 2, false),
    ("s2", 2, true),
];

/// What `cvt.pack` gives: both values limited, `b` lowest, `a` above it, the lower bits of `c` above both.
fn pack(bits: u32, signed: bool, [a, b, c]: [u32; 3]) -> u32 {
    let (least, most) = if signed { (-1_i64 << (bits - 1), (1_i64 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
    let limited = |v: u32| {
        let v = i64::from(v.cast_signed());
        let v = if v < least {
            least
        } else if v > most {
            most
        } else {
            v
        };
        v.rem_euclid(1 << bits)
    };
    let above = if bits == 16 { 0 } else { i64::from(c) << (2 * bits) };
    u32::try_from((limited(b) | limited(a) << bits | above) & 0xffff_ffff).expect("32 bits")
}

#[test]
fn packs_of_integers() {
    let mut rng = Rng::new(9);
    let mut values: Vec<u32> =
        (0..32).flat_map(|n| (0..7).map(move |by| (1_u32 << n).wrapping_add(by).wrapping_sub(3))).collect();
    values.extend(values.clone().iter().map(|v| v.wrapping_neg()));
    values.extend((-300..300_i32).map(i32::cast_unsigned));
    values.extend((0..4096).map(|_| rng.next() as u32));
    let n = values.len();
    let rows: Vec<[u32; 3]> = (0..n).map(|i| [values[i], values[(i * 577 + 1) % n], rng.next() as u32]).collect();
    let statements: Vec<String> = PACKED
        .iter()
        .map(|(word, bits, _)| match bits {
            16 => format!("cvt.pack.sat.{word}.s32 %d, %a, %b;"),
            _ => format!("cvt.pack.sat.{word}.s32.b32 %d, %a, %b, %c;"),
        })
        .collect();
    for by in plain(Bounds::Exact) {
        let results = three_words(&statements, &rows, by);
        for ((word, bits, signed), results) in PACKED.iter().zip(&results) {
            for (row, got) in rows.iter().zip(results) {
                assert_eq!(*got, pack(*bits, *signed, *row), "cvt.pack.sat.{word} of {row:#x?} ({})", by.name);
            }
        }
    }
}

/// Each statement takes words `%a`, `%b`, `%c` to a word `%d`.
fn three_words(statements: &[String], rows: &[[u32; 3]], by: engines::Way) -> Vec<Vec<u32>> {
    let count = rows.len().next_multiple_of(128);
    let mut text = String::from(
        ".version 9.2\n.target sm_100a\n.address_size 64\n.visible .entry words(.param .u64 from, .param .u64 to)\n{\n\
         .reg .b32 %a, %b, %c, %d, %i, %n, %t;\n.reg .b64 %at, %p;\n\
         mov.u32 %i, %ctaid.x;\nmov.u32 %n, %ntid.x;\nmov.u32 %t, %tid.x;\nmad.lo.u32 %i, %i, %n, %t;\n\
         mul.wide.u32 %at, %i, 12;\nld.param.u64 %p, [from];\nadd.u64 %p, %p, %at;\n\
         ld.global.b32 %a, [%p];\nld.global.b32 %b, [%p+4];\nld.global.b32 %c, [%p+8];\n\
         mul.wide.u32 %at, %i, 4;\nld.param.u64 %p, [to];\nadd.u64 %p, %p, %at;\n",
    );
    for (k, statement) in statements.iter().enumerate() {
        text += &format!("{statement}\nst.global.b32 [%p+{}], %d;\n", 4 * count * k);
    }
    text += "ret;\n}\n";
    let device = Device::new().expect("there is room for a device");
    let module = Module::from_text(&device, "words", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let function = module.function(Some("words")).expect("there is such an entry");
    let row = |i: usize| rows[i.min(rows.len() - 1)];
    let bytes: Vec<u8> = (0..count).flat_map(row).flat_map(u32::to_le_bytes).collect();
    let from = device.copy_of(&bytes).expect("there is room");
    let to = device.zeroed((4 * count * statements.len()) as u64).expect("there is room");
    let grid = u32::try_from(count / 128).expect("few blocks");
    let config = LaunchConfig {
        engine: by.engine,
        backend: by.backend,
        bounds: by.bounds,
        tier: by.tier,
        knows_params: by.knows_params,
        threads: 1,
        ..LaunchConfig::new([grid, 1, 1], [128, 1, 1])
    };
    let _ = launch(&function, &config, &[(&from).into(), (&to).into()]).unwrap_or_else(|e| panic!("{e}"));
    let words: Vec<u32> = to.to_vec().as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect();
    words.chunks(count).map(|some| some[..rows.len()].to_vec()).collect()
}

/// `.rs` over all its random bits: a number that lies `k / 2^n` of the way to its neighbour goes up for exactly `k` of `2^n` values of the
/// random bits, whichever way two elements share them.
#[test]
fn random_bits_round_up_as_often_as_the_distance_says() {
    // Statement, bits of randomness, bits of the fraction in f32, shift of the element in the result, and of its random bits.
    let element = [
        ("cvt.rs.f16x2.f32 %d, %b, %a, %c;", 13, 10, 0, 0),
        ("cvt.rs.f16x2.f32 %d, %a, %b, %c;", 13, 10, 16, 16),
        ("cvt.rs.bf16x2.f32 %d, %b, %a, %c;", 16, 7, 0, 0),
        ("cvt.rs.bf16x2.f32 %d, %a, %b, %c;", 16, 7, 16, 16),
        ("cvt.rs.satfinite.e4m3x4.f32 %d, {%b, %b, %b, %a}, %c;", 16, 3, 0, 0),
        ("cvt.rs.satfinite.e4m3x4.f32 %d, {%b, %b, %a, %b}, %c;", 16, 3, 8, 0),
        ("cvt.rs.satfinite.e5m2x4.f32 %d, {%b, %a, %b, %b}, %c;", 16, 2, 16, 16),
        ("cvt.rs.satfinite.e5m2x4.f32 %d, {%a, %b, %b, %b}, %c;", 16, 2, 24, 16),
        ("cvt.rs.satfinite.e2m3x4.f32 %d, {%a, %b, %b, %b}, %c;", 16, 3, 24, 16),
        ("cvt.rs.satfinite.e3m2x4.f32 %d, {%b, %b, %b, %a}, %c;", 16, 2, 0, 0),
    ];
    for (statement, bits, fraction, shift, random_shift) in element {
        for away in [1_u32, 3, 1 << (bits - 2), 1 << (bits - 1), (1 << bits) - 1] {
            // 1.5 and so many steps of 2^-bits of the coarser format above it, with both signs.
            for sign in [0, 1 << 31] {
                let a = (1.5_f32.to_bits() | sign) + (away << (23 - fraction - bits));
                let rows: Vec<[u32; 3]> = (0..1 << bits).map(|r| [a, 1_f32.to_bits(), r << random_shift]).collect();
                for by in compiled(Bounds::Exact) {
                    let results = three_words(&[statement.to_owned()], &rows, by);
                    let first = results[0].iter().map(|d| d >> shift & 0x7f).min().expect("some results");
                    let ups = results[0].iter().filter(|d| *d >> shift & 0x7f != first).count();
                    assert_eq!(ups, away as usize, "{statement} of {a:#x} ({})", by.name);
                }
            }
        }
    }
}

/// Random bits from a generator: the mean of many rounded values comes near the value itself.
#[test]
fn random_rounding_has_no_bias() {
    let mut rng = Rng::new(77);
    let n = 1 << 16;
    for a in [1.1_f32, -2.7, 0.001_234, 300.3] {
        let rows: Vec<[u32; 3]> = (0..n).map(|_| [a.to_bits(), a.to_bits(), rng.next() as u32]).collect();
        let statements = ["cvt.rs.bf16x2.f32 %d, %a, %b, %c;".to_owned()];
        let results = compiled(Bounds::Exact).flat_map(|by| three_words(&statements, &rows, by));
        let results: Vec<Vec<u32>> = results.collect();
        // The same bits, whoever runs it.
        assert!(results.iter().all(|r| *r == results[0]));
        for shift in [0, 16] {
            let value = |d: &u32| f64::from(f32::from_bits(d >> shift << 16));
            let mean = results[0].iter().map(value).sum::<f64>() / n as f64;
            // One rounding has a standard deviation of at most half a step; the mean of 2^16 has 1/512 of a step. Six of these.
            let step = f64::from(
                f32::from_bits(((a.abs().to_bits() >> 16) + 1) << 16) - f32::from_bits(a.abs().to_bits() >> 16 << 16),
            );
            assert!((mean - f64::from(a)).abs() < 6.0 / 512.0 * step, "{a}: mean {mean}");
        }
    }
}

/// The forms that `HANDLOOM_CVT=all` asks about every `.f32`: to f16, bf16, tf32, e4m3, e5m2 and integers, without `.ftz` and `.sat`.
fn asked_about_everything(f: &Form) -> bool {
    let to = matches!(f.to, Elem::Int(..)) || [F16, BF16, TF32, E4M3, E5M2].contains(&f.to);
    let modified = f.ftz || f.sat || f.relu || (f.satfinite && f.count == 1);
    to && f.from == F32 && !modified && (f.count == 1 || [E4M3, E5M2].contains(&f.to)) && f.round != Some(Round::Random)
}

/// All 2^32 values of `.f32` by compiled code, in their order, so that neighbours in a format are found once and not for each value.
#[test]
fn every_f32() {
    if std::env::var("HANDLOOM_CVT").as_deref() != Ok("all") {
        // The choice of forms is looked at in any case.
        let forms = all();
        assert_eq!(forms.iter().filter(|f| asked_about_everything(f)).count(), 8 * 4 + 4 + 4 + 3 + 2);
        return;
    }
    let mut forms: Vec<Form> = all().into_iter().filter(asked_about_everything).collect();
    // Floats first, then the larger integers: what others rest on.
    forms.sort_by_key(|f| if let Elem::Int(bits, _) = f.to { 1 + (bits ^ 32) } else { 0 });
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
            scope.spawn(|| {
                loop {
                    let task = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(form) = forms.get(task / PARTS) else { return };
                    every_f32_of(form, task % PARTS);
                }
            });
        }
    });
}

/// Parts of the values of `.f32`, and rows of a launch; no launch has numbers beside NaN, or numbers of both signs.
const PARTS: usize = 16;
const ROWS: u32 = 1 << 16;

#[allow(clippy::print_stdout, reason = "a run of minutes says how far it is")]
fn every_f32_of(form: &Form, part: usize) {
    let from = (1_u64 << 32) / PARTS as u64 * part as u64;
    let mut src = vec![vec![0; ROWS as usize]; form.count as usize];
    let rows = Rows::new(form, &src);
    let step = Step { form, wide: false };
    let prepare = |by| rows.prepare(&[step], Way { by, shape: Shape::Whole }).unwrap_or_else(|e| panic!("{e}"));
    let mut prepared: Vec<_> = compiled(Bounds::Contained).map(prepare).collect();
    let bits = step.result_bits();
    for first in (from..from + (1 << 32) / PARTS as u64).step_by(ROWS as usize) {
        // The second source of a pair is the same number with the other sign.
        for (k, list) in src.iter_mut().enumerate() {
            list.iter_mut().zip(first..).for_each(|(v, a)| *v = a ^ (k as u64) << 31);
            prepared.iter_mut().for_each(|p| p.set(k, list));
        }
        let runs = prepared.iter_mut().map(|p| p.run().unwrap_or_else(|e| panic!("{e}")));
        let runs: Vec<_> = runs.collect();
        let slots = &runs[0];
        assert!(runs.iter().all(|r| r == slots), "generators differ from {first:#x} on");
        let want = |i: usize| {
            let places = oracle::origins(form).into_iter().enumerate();
            let value = places.fold(0, |value, (at, (source, _))| {
                value | oracle::alone(form, src[source][i]) << (at as u32 * form.to.step())
            });
            oracle::extended(form, value, bits)
        };
        // The results rise or fall with the source, so those between two equal ones are equal to them.
        let mut start = 0;
        while start < slots.len() {
            let value = want(start);
            let (mut same, mut other) = (start, start + 1);
            while other < slots.len() && want(other) == value {
                (same, other) = (other, (2 * other - start).min(slots.len()));
                if same + 1 == slots.len() {
                    break;
                }
            }
            let mut end = other.min(slots.len());
            while end - same > 1 {
                let middle = same + (end - same) / 2;
                if want(middle) == value { same = middle } else { end = middle }
            }
            for i in start..=same {
                let got = slots[i] & u64::MAX >> (64 - bits);
                assert_eq!(got, value, "{} of {:#x}", form.text, src[0][i]);
            }
            start = same + 1;
        }
    }
    println!("{}: part {} of {PARTS} is right", form.text, part + 1);
}

/// What the host code of the CUDA headers gives, recorded by `tests/recorded/make.py`: one conversion of elements on a line, as runs of equal
/// results over all sources.
const RECORDED: &str = include_str!("recorded/conversions.txt");

/// An element type by its word.
fn elem(word: &str) -> Elem {
    let all = [F16, BF16, F32, E4M3, E5M2, E2M3, E3M2, E2M1, Elem::Ue8m0];
    *all.iter().find(|e| e.word() == word).unwrap_or_else(|| panic!("no type `{word}`"))
}

#[test]
fn small_floats_agree_with_the_cuda_headers() {
    let forms = all();
    let mut rng = Rng::new(21);
    for line in RECORDED.lines() {
        let mut words = line.split(' ');
        let mut word = || words.next().expect("four words before the runs");
        let (from, to, round, finite) = (elem(word()), elem(word()), word(), word() == "satfinite");
        let round = match round {
            "rn" => Round::Nearest,
            "rz" => Round::Zero,
            "rp" => Round::Up,
            other => panic!("no rounding `{other}`"),
        };
        let runs: Vec<(u64, u64)> = words
            .map(|run| {
                let (first, result) = run.split_once('=').expect("a run");
                let number = |digits| u64::from_str_radix(digits, 16).expect("hexadecimal digits");
                (number(first), number(result))
            })
            .collect();
        let is_it = |f: &&Form| (f.from, f.to, f.round, f.satfinite) == (from, to, Some(round), finite);
        let form = forms.iter().find(|f| is_it(f) && f.count == 2 && !f.relu && !f.scaled);
        let form = form.unwrap_or_else(|| panic!("no form for {}", &line[..30.min(line.len())]));
        // Of `.f32` the ends of the runs, their neighbours and some between; of the others all.
        let bits = if [E2M3, E3M2].contains(&from) { 6 } else { from.step() };
        let ends = runs.iter().skip(1).map(|r| r.0).chain([1 << bits]);
        let mut list = Vec::new();
        for ((first, result), end) in runs.iter().zip(ends) {
            let mut push = |at: u64| list.push((at, *result));
            if from == F32 {
                let between = (0..12).map(|_| first + rng.next() % (end - first)).collect::<Vec<u64>>();
                [*first, end - 1, (first + 1).min(end - 1), (end - 2).max(*first)]
                    .into_iter()
                    .chain(between)
                    .for_each(&mut push);
            } else {
                (*first..end).for_each(&mut push);
            }
        }
        let n = list.len();
        let other = |i: usize| list[(i * 7 + 3) % n];
        let want: Vec<u64> = (0..n).map(|i| list[i].1 << to.step() | other(i).1).collect();
        let (high, low) = ((0..n).map(|i| list[i].0), (0..n).map(|i| other(i).0));
        let src: Vec<Vec<u64>> = if form.packed {
            vec![high.zip(low).map(|(high, low)| high << from.step() | low).collect()]
        } else {
            vec![high.collect(), low.collect()]
        };
        let rows = Rows::new(form, &src);
        let step = Step { form, wide: false };
        for by in plain(Bounds::Contained) {
            let slots = rows.run(&[step], Way { by, shape: Shape::Whole }).unwrap_or_else(|e| panic!("{e}"));
            for (i, want) in want.iter().enumerate() {
                let got = slots[0][i] & u64::MAX >> (64 - step.result_bits());
                let src: Vec<u64> = src.iter().map(|s| s[i]).collect();
                assert_eq!(got, *want, "{} of {src:#x?} ({})", form.text, by.name);
            }
        }
    }
}
