//! Wide code, plans and Cranelift IR of long text are made in time in proportion to its length. (How Cranelift goes on is its own: `handloom_codegen::compile` chooses.)
//!
//! Each kind of text is compiled at two lengths, one four times the other. What looks at all of a block, or at all blocks, for each instruction takes
//! sixteen times as long for the longer one; sorting, sets of all registers for each block, and memory that no longer fits a cache, some more than four times. The least of several times counts,
//! so that other work of the machine does not.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use handloom_check::check_text;
use handloom_check::module::CheckedModule;
use handloom_diag::SourceMap;
use handloom_plan::Host;
use handloom_runtime::{Backend, LaunchConfig, Module, Stage, Tier};
use handloom_tests::engines::{Argument, INTERP, JIT_EXACT, Job, Launch, Way, device};

/// How many times as long four times the text may take.
const MOST: u32 = 9;

/// A kind of text: its name, and the statements of turn `i` of `n` turns, before and after those of the turns that come later.
struct Kind {
    name: &'static str,
    /// Declarations of `n` turns, and what comes before all turns.
    head: fn(usize) -> String,
    turn: fn(usize) -> String,
    /// What comes after all turns.
    tail: fn(usize) -> String,
}

const NOTHING: fn(usize) -> String = |_| String::new();

/// What is around the turns alone.
const BARE: Kind = Kind { name: "", head: NOTHING, turn: |_| String::new(), tail: NOTHING };

const KINDS: &[Kind] = &[
    Kind {
        name: "loads at addresses that were loaded",
        head: NOTHING,
        turn: |i| {
            format!(
                "ld.global.u32 %r1,[%q0+{}]; mul.wide.u32 %q1,%r1,4; add.s64 %q2,%p,%q1; ld.global.f32 %f1,[%q2]; add.f32 %f0,%f0,%f1;",
                4 * i
            )
        },
        tail: NOTHING,
    },
    Kind {
        name: "loads at affine addresses",
        head: NOTHING,
        turn: |i| {
            format!(
                "mad.lo.u32 %r1,%r0,{},{i}; mul.wide.u32 %q1,%r1,4; add.s64 %q2,%p,%q1; ld.global.f32 %f1,[%q2]; fma.rn.f32 %f0,%f1,%f1,%f0;",
                i % 17
            )
        },
        tail: NOTHING,
    },
    Kind {
        name: "predicates",
        head: |n| format!(".reg .pred %pp<{n}>;"),
        turn: |i| {
            format!(
                "setp.gt.u32 %pp{i},%r0,{}; selp.f32 %f0,%f1,%f0,%pp{}; @%pp{i} add.f32 %f1,%f1,%f0;",
                i % 40,
                i / 2
            )
        },
        tail: NOTHING,
    },
    Kind {
        name: "atomics",
        head: NOTHING,
        turn: |i| format!("atom.global.add.u32 %r{},[%q0+{}],%r{};", i % 40, 4 * i, i * 7 % 40),
        tail: NOTHING,
    },
    Kind {
        name: "pointers that move in a loop",
        head: |n| {
            let start = |i: usize| format!("add.s64 %x{i},%q0,{};", 4 * i);
            format!(".reg .b64 %x<{n}>;{} T:", (0..n).map(start).collect::<String>())
        },
        turn: |i| format!("ld.global.f32 %f1,[%x{i}]; add.f32 %f0,%f0,%f1; add.s64 %x{i},%x{i},128;"),
        tail: |_| "add.u32 %r1,%r1,1; setp.lt.u32 %c,%r1,%n; @%c bra T;".into(),
    },
    Kind {
        name: "targets of a table in a loop",
        head: |n| {
            let targets = (0..n).map(|i| format!("B{i}")).collect::<Vec<_>>().join(",");
            format!(
                "again: add.u32 %r1,%r1,1; setp.ge.u32 %c,%r1,%n; @%c bra out; ld.global.u32 %r2,[%q0];\nall: .branchtargets {targets};\nbrx.idx %r2, all;\n"
            )
        },
        turn: |i| format!("B{i}: add.u32 %r3,%r3,{i}; bra again;"),
        tail: |_| "out:\n".into(),
    },
    Kind {
        name: "branches that lanes part at",
        head: NOTHING,
        turn: |i| format!("setp.gt.u32 %c,%r0,{}; @%c bra E{i}; add.f32 %f{},%f0,%f1; E{i}:", i % 97, i % 16),
        tail: NOTHING,
    },
    Kind {
        name: "branches inside branches",
        head: NOTHING,
        turn: |i| format!("setp.gt.u32 %c,%r0,{i}; @%c bra E{i}; add.f32 %f0,%f0,%f1;"),
        tail: |n| (0..n).rev().map(|i| format!("E{i}: add.f32 %f0,%f0,%f0;")).collect(),
    },
    Kind {
        name: "loops after each other",
        head: NOTHING,
        turn: |i| {
            format!(
                "mov.u32 %r1,%r0; L{i}: ld.global.f32 %f1,[%q0]; add.f32 %f0,%f0,%f1; add.u32 %r1,%r1,1; setp.lt.u32 %c,%r1,%n; @%c bra L{i};"
            )
        },
        tail: NOTHING,
    },
    Kind {
        name: "addresses in a chain in a loop",
        head: |n| format!(".reg .b64 %x<{}>; T: mov.u64 %x0,%q0;", n + 1),
        turn: |i| format!("add.s64 %x{}, %x{i}, %p; ld.global.f32 %f1,[%x{}]; add.f32 %f0,%f0,%f1;", i + 1, i + 1),
        tail: |_| "add.u32 %r1,%r1,1; setp.lt.u32 %c,%r1,%n; @%c bra T;".into(),
    },
    Kind {
        name: "predicates of predicates",
        head: |n| format!(".reg .pred %pp<{n}>; setp.gt.u32 %pp0,%r0,3; setp.lt.u32 %pp1,%r0,%n;"),
        turn: |i| match i {
            0 | 1 => String::new(),
            _ => format!("and.pred %pp{i},%pp{},%pp{};", i - 1, i - 2),
        },
        tail: |n| format!("@%pp{} bra E; add.u32 %r1,%r1,1; E:", n - 1),
    },
    Kind {
        name: "vectors",
        head: NOTHING,
        turn: |i| {
            let at = 16 * i;
            format!(
                "ld.global.v4.f32 {{%f1,%f2,%f3,%f4}},[%q0+{at}]; fma.rn.f32 %f0,%f1,%f2,%f0; st.global.v4.f32 [%q0+{at}],{{%f0,%f1,%f2,%f4}};"
            )
        },
        tail: NOTHING,
    },
    Kind {
        name: "ops on the elements of a vector",
        head: |_| "ld.global.v4.f32 {%f1,%f2,%f3,%f4},[%q0];".into(),
        turn: |i| (1..5).map(|e| format!("fma.rn.f32 %f{e},%f{e},%f{e},0f{:08X};", 0x3F80_0000 + i)).collect(),
        tail: |_| "st.global.v4.f32 [%q0],{%f1,%f2,%f3,%f4};".into(),
    },
    Kind {
        name: "loops that lanes leave apart",
        head: NOTHING,
        turn: |i| {
            format!(
                "mov.u32 %r1,%r0; L{i}: mov.u32 %r2,0; M{i}: add.u32 %r3,%r3,%r1; add.u32 %r2,%r2,1; setp.lt.u32 %c,%r2,%r1; @%c bra M{i};
                add.u32 %r1,%r1,1; setp.lt.u32 %c,%r1,%n; @%c bra L{i};"
            )
        },
        tail: NOTHING,
    },
    Kind {
        name: "exits of a loop",
        head: |_| "mov.u32 %r1,0; T:".into(),
        turn: |i| {
            format!("ld.global.u32 %r2,[%q0+{}]; setp.eq.u32 %c,%r2,{i}; @%c bra X{i}; add.u32 %r1,%r1,%r2;", 4 * i)
        },
        tail: |n| {
            let exit = |i: usize| format!("X{i}: add.u32 %r1,%r1,{i};");
            format!("setp.lt.u32 %c,%r1,%n; @%c bra T;{}", (0..n).map(exit).collect::<String>())
        },
    },
    Kind {
        name: "branches anywhere",
        head: NOTHING,
        turn: |i| {
            let to = (i + i * 7919 % 100).saturating_sub(50);
            format!("L{i}: add.u32 %r1,%r1,{i}; setp.lt.u32 %c,%r1,%n; @%c bra L{to};")
        },
        tail: |n| (n..n + 50).map(|i| format!("L{i}:")).collect(),
    },
    Kind {
        name: "barriers",
        head: |_| "mov.u32 %r1,0; T:".into(),
        turn: |i| {
            format!("st.shared.f32 [sm+{}],%f0; bar.sync 0; ld.shared.f32 %f1,[sm]; add.f32 %f0,%f0,%f1;", i % 512 * 4)
        },
        tail: |_| "add.u32 %r1,%r1,1; setp.lt.u32 %c,%r1,%n; @%c bra T;".into(),
    },
    Kind {
        name: "shuffles",
        head: NOTHING,
        turn: |i| {
            let (a, b) = (i % 40, i * 7 % 40);
            format!("shfl.sync.down.b32 %r{a}|%c,%r{b},{},31,-1; vote.sync.ballot.b32 %r{b},%c,-1;", i % 32)
        },
        tail: NOTHING,
    },
];

/// A module of one entry, of so many turns.
fn text(kind: &Kind, n: usize) -> String {
    let mut text = String::from(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 p, .param .u32 n) {
        .reg .b64 %p,%a,%q<16>; .reg .b32 %r<40>,%n; .reg .f32 %f<16>; .reg .pred %c; .shared .b32 sm[1024];
        ld.param.u64 %a,[a]; ld.param.u64 %p,[p]; ld.param.u32 %n,[n]; mov.u32 %r0,%tid.x; mul.wide.u32 %q0,%r0,4; add.s64 %q0,%a,%q0;\n",
    );
    for i in 1..40 {
        writeln!(text, "mov.u32 %r{i},{i};").expect("a string grows");
    }
    for i in 0..16 {
        writeln!(text, "mov.f32 %f{i},0f3F800000;").expect("a string grows");
    }
    text += &(kind.head)(n);
    (0..n).for_each(|i| text += &((kind.turn)(i) + "\n"));
    text += &(kind.tail)(n);
    for i in 0..40 {
        writeln!(text, "st.global.u32 [%q0],%r{i};").expect("a string grows");
    }
    for i in 0..16 {
        writeln!(text, "st.global.f32 [%q0],%f{i};").expect("a string grows");
    }
    text + "ret; }\n"
}

/// A text that has been checked, for a clock that starts behind that.
fn checked(text: &str) -> (CheckedModule, Arc<SourceMap>) {
    let mut sources = SourceMap::new();
    let checked = check_text(text, sources.add("long.ptx", text));
    (checked.module.unwrap_or_else(|| panic!("{:?}\n{text}", checked.diagnostics)), Arc::new(sources))
}

/// What was checked, on a device of its own: devices share no code.
fn load((checked, sources): (CheckedModule, Arc<SourceMap>)) -> Module {
    let device = device().expect("a device");
    Module::from_ir(&device, handloom_lower::lower(&checked), sources, Vec::new()).expect("a module")
}

/// The least of several times that a stage of the code of a text takes, without what is done for all stages before.
fn took(text: &str, tier: Tier, stage: Stage) -> Duration {
    let module = load(checked(text));
    let config = LaunchConfig { backend: Backend::Cranelift, ..LaunchConfig::new([1; 3], [256, 1, 1]) };
    let function = module.function(Some("k")).expect("an entry");
    let listing = function.listing(&config).expect("a listing");
    let once = |_| {
        let start = Instant::now();
        listing.code(tier, stage).expect("code");
        start.elapsed()
    };
    (0..3).map(once).min().expect("a time")
}

/// The least of several times that wide code of a text takes, from the checked text.
fn took_wide(text: &str) -> Duration {
    let once = |_| {
        let checked = checked(text);
        let start = Instant::now();
        let module = load(checked);
        let config = LaunchConfig { backend: Backend::Wide, ..LaunchConfig::new([1; 3], [256, 1, 1]) };
        let made = module.function(Some("k")).expect("an entry").compile(&config).expect("code");
        assert_eq!(made.backend, Some(Backend::Wide), "{:?}", made.refused);
        start.elapsed()
    };
    (0..3).map(once).min().expect("a time")
}

/// Says so if four times as many turns as `n` take more than [`MOST`] times as long. What was slow because of other work of the machine is measured again.
fn slower(n: usize, took: impl Fn(usize) -> Duration) -> Option<String> {
    let mut told = None;
    for _ in 0..10 {
        let [short, long] = [n, 4 * n].map(&took);
        if long <= MOST * short {
            return None;
        }
        told = Some(format!("{short:?} for {n} turns, {long:?} for four times as many"));
    }
    told
}

/// Whether the host has wide code.
#[allow(clippy::print_stdout, reason = "the name of what is skipped")]
fn has_wide() -> bool {
    let missing = Backend::Wide.missing_feature(&Host::detect());
    if let Some(missing) = missing {
        println!("skipped: the time of wide code: the host lacks {missing}");
    }
    missing.is_none()
}

#[test]
fn wide_code_is_made_in_proportion_to_its_text() {
    if !has_wide() {
        return;
    }
    let mut wrong = Vec::new();
    for kind in KINDS {
        let slower = slower(500, |n| took_wide(&text(kind, n)));
        wrong.extend(slower.map(|why| format!("{}: {why}", kind.name)));
    }
    assert!(wrong.is_empty(), "code grows faster than the text:\n{}", wrong.join("\n"));
}

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

#[test]
fn calls_in_a_chain_take_time_in_proportion() {
    if !has_wide() {
        return;
    }
    let nested = |n: usize| {
        let mut text = String::from(HEAD);
        for i in 0..n {
            let call = match i {
                0 => String::new(),
                _ => format!(
                    "{{ .param .b32 px; .param .b32 po; st.param.b32 [px],%a; call (po),f{},(px); ld.param.b32 %a,[po]; }}",
                    i - 1
                ),
            };
            let _ = writeln!(
                text,
                ".func (.param .b32 o) f{i}(.param .b32 x) {{ .reg .b32 %a; ld.param.b32 %a,[x]; add.u32 %a,%a,{i}; {call} st.param.b32 [o],%a; ret; }}"
            );
        }
        text + &format!(
            ".visible .entry k(.param .u64 a) {{ .reg .b64 %q; .reg .b32 %r; ld.param.u64 %q,[a]; mov.u32 %r,%tid.x;
            {{ .param .b32 px; .param .b32 po; st.param.b32 [px],%r; call (po),f{},(px); ld.param.b32 %r,[po]; }} st.global.u32 [%q],%r; ret; }}",
            n - 1
        )
    };
    assert_eq!(slower(500, |n| took_wide(&nested(n))), None);
}

#[test]
fn other_kernels_of_a_module_cost_little() {
    let kernels = |n: usize| {
        let kernel = |i: usize| {
            format!(
                ".visible .entry k{i}(.param .u64 a) {{ .reg .b64 %q; ld.param.u64 %q,[a]; st.global.u32 [%q],{i}; ret; }}\n"
            )
        };
        HEAD.to_owned() + &(0..n).map(kernel).collect::<String>()
    };
    let config = LaunchConfig::new([1; 3], [64, 1, 1]);
    let compile = |module: &Module, i: usize| {
        let function = module.function(Some(&format!("k{i}"))).expect("an entry");
        function.compile(&config).expect("code");
    };
    // Of each of a hundred kernels, in modules of a hundred and of 8,000, once it is known what all of them share. The least of several times counts.
    let [few, many] = [101, 8001].map(|n| {
        let checked = checked(&kernels(n));
        let once = |_| {
            let module = load(checked.clone());
            compile(&module, n - 1);
            let start = Instant::now();
            (0..100).for_each(|i| compile(&module, i));
            start.elapsed()
        };
        (0..3).map(once).min().expect("a time")
    });
    assert!(many < 3 * few, "{few:?} for 100 kernels of 100, {many:?} for 100 kernels of 8,000");
}

#[test]
fn loops_inside_each_other_take_little_more_than_loops_after_each_other() {
    if !has_wide() {
        return;
    }
    const LOOPS: usize = 300;
    let begin = |i: usize| format!("mov.u32 %i{i},0; L{i}:");
    let end = |i: usize| format!("add.u32 %i{i},%i{i},1; setp.lt.u32 %c,%i{i},%n; @%c bra L{i};");
    let read = |n: usize| "ld.global.f32 %f1,[%q0]; add.f32 %f0,%f0,%f1;".repeat(n);
    let counts = format!(".reg .b32 %i<{LOOPS}>;");
    let in_row = (0..LOOPS).map(|i| begin(i) + &read(7) + &end(i)).collect::<String>();
    let nested =
        (0..LOOPS).map(begin).collect::<String>() + &read(7 * LOOPS) + &(0..LOOPS).rev().map(end).collect::<String>();
    let [in_row, nested] = [in_row, nested].map(|body| {
        let text = text(&BARE, 0).replace("ret; }", &format!("{counts}{body} st.global.f32 [%q0],%f0; ret; }}"));
        took_wide(&text)
    });
    assert!(nested < 5 * in_row, "{in_row:?} for loops after each other, {nested:?} for as many inside each other");
}

#[test]
fn branches_from_anywhere_to_anywhere_take_time_in_proportion_to_their_text() {
    if !has_wide() {
        return;
    }
    let branches = |n: usize| {
        let branch = |i: usize| {
            let (by, bit, to) = (2 * (i % 50) + 3, 1 << (i % 7), (i * 7919 + 13) % n);
            format!(
                "L{i}: sub.u32 %n,%n,1; setp.eq.u32 %c,%n,0; @%c bra E; mad.lo.u32 %r0,%r0,{by},{i}; and.b32 %r1,%r0,{bit}; setp.eq.u32 %c,%r1,0; @%c bra L{to};\n"
            )
        };
        let all = (0..n).map(branch).collect::<String>();
        text(&BARE, 0).replace("ret; }", &format!("{all} E: st.global.u32 [%q0],%r0; ret; }}"))
    };
    if let Some(why) = slower(1000, |n| took_wide(&branches(n))) {
        panic!("code grows faster than the text: {why}");
    }
}

/// Compares the times of `n` turns and of four times as many.
fn grows_with_its_text(stage: Stage, tier: Tier, n: usize) {
    let mut wrong = Vec::new();
    for kind in KINDS {
        let slower = slower(n, |n| took(&text(kind, n), tier, stage));
        wrong.extend(slower.map(|why| format!("{}: {why}", kind.name)));
    }
    assert!(wrong.is_empty(), "{stage:?} of {tier:?} code grows faster than the text:\n{}", wrong.join("\n"));
}

/// How long all of the compiled code of a text takes, and what its Cranelift IR says at its end.
fn took_and_says(text: &str) -> (Duration, String) {
    let module = load(checked(text));
    let config = LaunchConfig { backend: Backend::Cranelift, ..LaunchConfig::new([1; 3], [256, 1, 1]) };
    let function = module.function(Some("k")).expect("an entry");
    let listing = function.listing(&config).expect("a listing");
    let last = listing.code(Tier::Lean, Stage::Clif).expect("code");
    let start = Instant::now();
    function.compile(&config).expect("code");
    (start.elapsed(), last.lines().rev().take(2).collect())
}

/// Sums in which each value is used again after all others were made, so that all of them are kept.
const KEPT: Kind = Kind {
    name: "values that are kept",
    head: |n| format!(".reg .b32 %x<{n}>;"),
    turn: |i| format!("ld.shared.u32 %x{i},[sm+{}];", i % 1024 * 4),
    tail: |n| (0..n).map(|i| format!("add.u32 %r1,%r1,%x{i};")).collect(),
};

#[test]
fn values_that_are_kept_are_given_registers_in_a_single_pass() {
    let (_, says) = took_and_says(&text(&KEPT, 20));
    assert!(!says.contains("single pass"), "{says}");
    let (took, says) = took_and_says(&text(&KEPT, 4000));
    assert!(says.contains("single pass"), "{says}");
    assert!(took < Duration::from_secs(20), "{took:?}");
}

/// Branches and loops that lanes part in, accesses of all kinds, atomics, shuffles, a barrier.
const EVERYTHING: Kind = Kind {
    name: "everything",
    head: |_| {
        ".reg .b32 %h; and.b32 %r38,%r0,31; mul.lo.u32 %r39,%r0,4; mov.u32 %h,sm; add.u32 %r39,%r39,%h; mov.u32 %r1,%r0;".into()
    },
    turn: |i| {
        let (a, b, c) = (1 + i % 17, 1 + i * 7 % 17, 1 + i * 5 % 17);
        let op = ["add.u32", "mul.lo.u32", "xor.b32", "min.s32", "sub.u32"][i % 5];
        let statement = match i % 11 {
            0 => format!(
                "and.b32 %r20,%r{a},255; mul.wide.u32 %q1,%r20,4; add.s64 %q2,%p,%q1; ld.global.u32 %r{b},[%q2];"
            ),
            1 => format!("setp.gt.u32 %c,%r{a},%r{b}; @%c bra E{i}; add.u32 %r{c},%r{c},%r0; E{i}:"),
            2 => format!("ld.global.v2.u32 {{%r{a},%r20}},[%q5]; add.u32 %r{b},%r{b},%r20;"),
            3 => format!("atom.shared.add.u32 %r20,[sm],1; atom.global.max.u32 %r20,[%q3],%r{a};"),
            4 => format!("shfl.sync.bfly.b32 %r{a},%r{b},{},31,-1;", i % 32),
            5 => format!(
                "and.b32 %r20,%r{a},3; L{i}: add.u32 %r{b},%r{b},%r20; add.u32 %r20,%r20,1; setp.lt.u32 %c,%r20,5; @%c bra L{i};"
            ),
            6 => {
                format!("st.shared.u32 [%r39],%r{a}; bar.sync 0; ld.shared.u32 %r{b},[sm+{}]; bar.sync 0;", i % 256 * 4)
            }
            7 => format!("setp.lt.u32 %c,%r{a},%r{b}; @%c st.global.u32 [%q0],%r{c}; selp.u32 %r{c},%r{a},%r{b},%c;"),
            8 => format!("cvt.rn.f32.u32 %f1,%r{a}; sqrt.rn.f32 %f2,%f1; fma.rn.f32 %f{},%f1,%f2,%f0;", 3 + i % 9),
            9 => format!("cvt.u64.u32 %q6,%r{a}; mul.lo.u64 %q7,%q6,%q6; shr.u64 %q7,%q7,7; cvt.u32.u64 %r{b},%q7;"),
            _ => String::new(),
        };
        format!("{op} %r{c},%r{a},%r{b}; {statement}")
    },
    tail: |_| "cvt.rzi.u32.f32 %r20,%f5; xor.b32 %r2,%r2,%r20;".into(),
};

/// The same among arithmetic of `.f64`, which is much code for each statement.
const MUCH: Kind = Kind {
    name: "everything among arithmetic of f64",
    head: |n| format!(".reg .f64 %d<4>; mov.f64 %d1,0d3FF8000000000000; mov.f64 %d2,%d1; {}", (EVERYTHING.head)(n)),
    turn: |i| {
        let (a, b) = (1 + i % 17, 1 + i * 7 % 17);
        format!(
            "{} cvt.rn.f64.u32 %d0,%r{a}; fma.rn.f64 %d1,%d0,%d2,%d1; min.f64 %d2,%d1,%d0; cvt.rzi.s64.f64 %q6,%d2; cvt.u32.u64 %r20,%q6; xor.b32 %r{b},%r{b},%r20; cvt.rn.f32.f64 %f2,%d1; max.f32 %f3,%f2,%f1;",
            (EVERYTHING.turn)(i)
        )
    },
    tail: EVERYTHING.tail,
};

#[test]
fn short_code_does_the_same() {
    let (_, says) = took_and_says(&text(&EVERYTHING, 20));
    assert!(!says.contains("short code"), "{says}");
    does_the_same_in_short_code(text(&EVERYTHING, 9000));
    does_the_same_in_short_code(text(&MUCH, 55));
}

fn does_the_same_in_short_code(mut text: String) {
    let (_, says) = took_and_says(&text);
    assert!(says.contains("short code"), "{says}");
    // Each thread has an element of its own behind those that all read, and one for atomics of all.
    let start = text.find("mov.u32 %r1,1;").expect("the start");
    text.insert_str(start, "add.s64 %q3,%p,2048; mul.wide.u32 %q4,%r0,8; add.s64 %q5,%p,%q4;");
    let words = |n: u32| (0..n).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect::<Vec<u8>>();
    for threads in [64, 50] {
        let left = left_by_both(&text, threads, [vec![0; 256], words(1024)], 20);
        assert!(left.iter().any(|b| *b != 0));
    }
}

/// What `k` leaves in the first of its two buffers, the same by the interpreter and by Cranelift's code.
fn left_by_both(text: &str, threads: u32, buffers: [Vec<u8>; 2], number: u64) -> Vec<u8> {
    let job = Job {
        name: "long.ptx",
        text,
        buffers: buffers.to_vec(),
        addresses: vec![],
        launches: vec![Launch {
            entry: "k",
            grid: [1; 3],
            block: [threads, 1, 1],
            shared_bytes: 0,
            args: vec![Argument::Buffer(0, 0), Argument::Buffer(1, 0), Argument::Scalar(number)],
            cooperative: false,
            cluster: None,
        }],
        variables: vec![],
    };
    let run = |way: Way| job.run(way, 0).unwrap_or_else(|e| panic!("{}: {e}", way.name));
    let (mut want, got) = (run(INTERP), run(JIT_EXACT));
    assert!(want.trap.is_none() && got.trap.is_none());
    assert!(want.buffers == got.buffers, "{threads} threads of\n{text:.2000}");
    want.buffers.swap_remove(0)
}

/// Code that takes over where lanes part finds registers as the code before keeps them, near the length from which code is short too: a NaN of arithmetic with any bits, and a
/// predicate that all lanes share as a word.
#[test]
fn code_of_all_tiers_has_one_form() {
    let text = |products: usize| {
        let mut text = String::from(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n) {
            .reg .b64 %out,%in,%x,%y,%w,%z<70>; .reg .b32 %t,%turns,%i,%n; .reg .pred %p,%above;
            ld.param.u64 %out,[out]; ld.param.u64 %in,[in]; ld.param.u32 %n,[n]; setp.gt.u32 %above,%n,5; mov.u32 %t,%tid.x;
            mad.wide.u32 %out,%t,16,%out; mad.wide.u32 %in,%t,8,%in; ld.global.f64 %x,[%in]; and.b32 %turns,%t,3; mov.u32 %i,0;
            mov.b64 %y,0d4030000000000000; fma.rn.f64 %w,%y,%x,%x;\n",
        );
        (0..70).for_each(|i| text += &format!("ld.global.f64 %z{i},[%in+{}];\n", 8 * i));
        text += "L: add.u32 %i,%i,1;\n";
        (0..products).for_each(|i| text += &format!("mul.hi.u64 %z{i},%z{i},%x;\n"));
        text += "setp.le.u32 %p,%i,%turns; @%p bra L;\n";
        (1..70).for_each(|i| text += &format!("xor.b64 %z0,%z0,%z{i};\n"));
        text + "selp.u64 %z1,7,0,%above; xor.b64 %z0,%z0,%z1; st.global.f64 [%out],%z0; st.global.f64 [%out+8],%w; ret; }\n"
    };
    const NUMBERS: [u64; 6] =
        [0x7ff8 << 48, 1.5_f64.to_bits(), 0xfff8_0000_0000_0001, 0x7ff4_dead_beef_1234, u64::MAX >> 1, 0];
    let numbers: Vec<u8> = (0..134).flat_map(|i| NUMBERS[i % NUMBERS.len()].to_le_bytes()).collect();
    let mut forms = [0; 2];
    for products in 0..30 {
        let text = text(products);
        forms[usize::from(took_and_says(&text).1.contains("short code"))] += 1;
        let left = left_by_both(&text, 64, [vec![0; 16 * 64], numbers.clone()], 9);
        assert!(left[8..16] == (u64::MAX >> 1).to_le_bytes(), "{products} products");
    }
    assert!(forms[0] > 0 && forms[1] > 0, "both forms were meant: {forms:?}");
}

#[test]
fn plans_are_made_in_proportion_to_their_text() {
    grows_with_its_text(Stage::Plan, Tier::Lean, 300);
}

#[test]
fn cranelift_ir_is_made_in_proportion_to_its_text() {
    grows_with_its_text(Stage::Clif, Tier::Quick, 100);
}
