//! What code does for the order of memory, and what it may use, by the record of the host.

#[allow(dead_code, reason = "other tests read called functions too")]
#[path = "../../plan/tests/analyses/read.rs"]
mod read;

use handloom_codegen::{Failure, Stage, compile, print, settings_of};
use handloom_ir::simt::{Cvt, Function, LaunchShape, Op, Pure, Reg, Val};
use handloom_ir::types::{ScalarType, Sreg};
use handloom_plan::host::{Architecture, Features, Host, MemoryOrder, Vectors};
use handloom_plan::{Bounds, Options};
use smallvec::smallvec;

/// A host whose plain moves acquire and release.
const STRONG: Architecture = Architecture::X86_64;
/// One whose plain moves keep nothing.
const WEAK: Architecture = Architecture::Aarch64;

fn host(architecture: Architecture) -> Host {
    Host::new(architecture, Features::NONE)
}

fn options(host: Host, threads: u32) -> Options {
    Options {
        shape: LaunchShape { ntid: [threads, 1, 1], small_grid: false },
        bounds: Bounds::Exact,
        local_stride: 48,
        frame_bytes: 0,
        is_callee: false,
        audited: false,
        in_order: false,
        counted: Default::default(),
        cluster: false,
        masked: true,
        gangs: false,
        flips: false,
        speculate: false,
        host,
    }
}

/// Blocks of whole warps, which only have full copies here.
const WHOLE: u32 = 64;
/// A block with a warp of one thread: its code has masked copies too.
const PART: u32 = 33;

fn clif(f: &Function, host: Host, threads: u32) -> String {
    print(f, &options(host, threads), Stage::Clif).expect("Cranelift IR needs no host")
}

/// Accesses to device memory, fences and atomic instructions, in the order of the text.
fn events(text: &str) -> Vec<&'static str> {
    let event = |line: &str| {
        let line = line.split_once("  ").map_or(line, |(_, code)| code.trim());
        let op = line.split_once(" = ").map_or(line, |(_, op)| op);
        let is_device = op.contains("notrap ") && !op.contains("aligned");
        match op.split([' ', '.']).next()? {
            "fence" => Some("fence"),
            "sequence_point" => Some("point"),
            "atomic_rmw" => Some("atomic"),
            "load" | "uload8" | "uload16" if is_device => Some("load"),
            "store" | "istore8" | "istore16" if is_device => Some("store"),
            _ => None,
        }
    };
    text.lines().filter_map(event).collect()
}

/// The events of an entry whose pointer is `v1`, without the load of the pointer.
fn of(insts: &str, host: Host, threads: u32) -> Vec<&'static str> {
    let f = entry(insts);
    let events = events(&clif(&f, host, threads));
    let copies = if threads == WHOLE { 1 } else { 2 };
    // A copy loads the pointer first.
    let each = events.len() / copies;
    events.chunks(each).inspect(|c| assert_eq!(c[0], "load")).flat_map(|c| c[1..].to_vec()).collect()
}

fn entry(insts: &str) -> Function {
    let mut f =
        read::entry(&format!("b0:\nv0:b64 = param_address 0\nv1:b64 = load.param::entry.b64 [v0]\n{insts}\nexit"));
    f.param_bytes = 8;
    f
}

const ACQUIRE_THEN_RELEASE: &str = "v2:b32 = load.global.acquire.gpu.b32 [v1]
    v3:b32 = load.global.b32 [v1 + 4]
    store.global.b32 [v1 + 8], v3
    store.global.release.gpu.b32 [v1 + 12], v2";

#[test]
fn plain_moves_do_on_a_strong_host() {
    assert_eq!(host(STRONG).order, MemoryOrder::Strong);
    assert_eq!(of(ACQUIRE_THEN_RELEASE, host(STRONG), WHOLE), ["load", "load", "store", "store"]);
}

#[test]
fn a_weak_host_gets_fences_after_acquires_and_before_releases() {
    let events = ["load", "fence", "load", "store", "fence", "store"];
    assert_eq!(of(ACQUIRE_THEN_RELEASE, host(WEAK), WHOLE), events);
    // A record decides it, not what this machine is.
    let made_up = Host { order: MemoryOrder::Weak, ..host(STRONG) };
    assert_eq!(of(ACQUIRE_THEN_RELEASE, made_up, WHOLE), events);
}

#[test]
fn fences_are_all_that_a_weak_host_adds() {
    for insts in [ACQUIRE_THEN_RELEASE, BY_LANE] {
        for threads in [WHOLE, PART] {
            let f = entry(insts);
            let strong = events(&clif(&f, host(STRONG), threads));
            let mut weak = events(&clif(&f, host(WEAK), threads));
            assert!(weak.contains(&"fence") && !strong.contains(&"fence"), "{strong:?}");
            weak.retain(|e| *e != "fence");
            assert_eq!(weak, strong);
        }
    }
}

/// Neighbouring words, which a masked copy reads in a loop together with what is done to them.
const BY_LANE: &str = "v2:b32 = sreg.tid.x
    v3:b64 = mul_wide.u32 v2, 4
    v4:b64 = add.b64 v1, v3
    v5:b32 = load.global.acquire.gpu.b32 [v4]
    v6:b32 = xor.b32 v5, v2
    store.global.release.gpu.b32 [v4], v6";

#[test]
fn masked_copies_have_them_too() {
    let fences = |architecture| of(BY_LANE, host(architecture), PART).iter().filter(|e| **e == "fence").count();
    // One after the load and one before the store, in the full and in the masked copy.
    assert_eq!((fences(STRONG), fences(WEAK)), (0, 4));
    // In each copy, all loads come before the fence of the load, and all stores after that of the store.
    let events = of(BY_LANE, host(WEAK), PART);
    let between: Vec<_> = events.split(|e| *e == "fence").skip(1).step_by(2).collect();
    assert_eq!(between, [&[] as &[&str]; 2], "{events:?}");
}

#[test]
fn threads_of_one_host_thread_need_no_instruction() {
    for scope in ["cta", "cluster"] {
        let insts = ACQUIRE_THEN_RELEASE.replace(".gpu", &format!(".{scope}"));
        assert_eq!(of(&insts, host(WEAK), WHOLE), ["load", "load", "store", "store"], "{scope}");
    }
    let system = ACQUIRE_THEN_RELEASE.replace(".gpu", ".sys");
    assert_eq!(of(&system, host(WEAK), WHOLE), ["load", "fence", "load", "store", "fence", "store"]);
}

#[test]
fn fences_are_what_the_host_needs() {
    let of = |fence: &str, architecture| of(fence, host(architecture), WHOLE);
    // Stores before later loads are what a strong host leaves open.
    assert_eq!(of("fence.acq_rel.gpu", STRONG), ["point"]);
    assert_eq!(of("fence.sc.gpu", STRONG), ["atomic"]);
    assert_eq!(of("fence.acq_rel.gpu", WEAK), ["fence"]);
    assert_eq!(of("fence.sc.gpu", WEAK), ["fence"]);
    for fence in ["fence.acq_rel.cta", "fence.sc.cta", "fence.acq_rel.cluster"] {
        assert_eq!((of(fence, STRONG), of(fence, WEAK)), (vec!["point"], vec!["point"]), "{fence}");
    }
}

#[test]
fn atomic_instructions_are_ordered_by_themselves() {
    for architecture in [STRONG, WEAK] {
        let events = of("red.global.acq_rel.gpu.add.u32 [v1], 1", host(architecture), WHOLE);
        assert_eq!(events, ["atomic"], "{architecture:?}");
    }
}

#[test]
fn nothing_is_added_on_this_host() {
    // The text of a strong host, whatever its features.
    let this = Host::detect();
    if this.architecture == STRONG {
        for insts in [ACQUIRE_THEN_RELEASE, BY_LANE] {
            let f = entry(insts);
            assert_eq!(clif(&f, this, PART), clif(&f, host(STRONG), PART));
        }
    }
}

#[test]
fn tables_of_bytes_are_looked_up_as_the_host_does() {
    // Subnormal numbers of `e4m3` have another bias than those of `f16`: they are looked up.
    let mut f =
        entry("v2:b16 = mov.b16 5\nv3:b32 = mov.b32 7\nv4:b32 = load.global.b32 [v1]\nstore.global.b32 [v1 + 4], v3");
    let op = Op::Pure(Pure::Cvt(Cvt::plain(ScalarType::F16x2, ScalarType::E4M3x2)));
    let lanes = Op::Sreg(Sreg::LanemaskLt);
    for inst in &mut f.blocks[0].insts {
        match inst.dst[..] {
            // A source that differs between lanes, so that vectors are made.
            [Reg(2)] => (inst.op, inst.src) = (lanes, smallvec![]),
            [Reg(3)] => (inst.op, inst.src) = (op, smallvec![Val::Reg(Reg(2))]),
            _ => {}
        }
    }
    let lookups = |host| {
        let text = clif(&f, host, WHOLE);
        ["x86_pshufb", "swizzle"].map(|op| text.lines().filter(|line| line.contains(op)).count())
    };
    assert_eq!(lookups(host(STRONG)), [8, 0], "one for each vector of the warp");
    assert_eq!(lookups(host(WEAK)), [0, 8]);
}

#[test]
fn plans_say_what_the_host_does() {
    let notes = |host| {
        let text =
            print(&entry(ACQUIRE_THEN_RELEASE), &options(host, WHOLE), Stage::Plan).expect("a plan needs no host");
        let strong = |line: &&str| line.contains(".acquire.") || line.contains(".release.");
        let note = |line: &str| line.rsplit(", ").next().unwrap_or_default().to_owned();
        text.lines().filter(strong).map(note).collect::<Vec<_>>()
    };
    assert_eq!(notes(host(STRONG)), ["acquire.gpu by plain moves", "release.gpu by plain moves"]);
    assert_eq!(notes(host(WEAK)), ["acquire.gpu by a fence after it", "release.gpu by a fence before it"]);
}

#[test]
fn there_is_no_code_for_other_hosts() {
    let refused = |host| match compile(&entry(ACQUIRE_THEN_RELEASE), &options(host, WHOLE)) {
        Err(Failure::Unsupported(why)) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(host(WEAK)), "this host is not supported: it is aarch64");
    let why = refused(host(STRONG));
    assert!(why.starts_with("this host is not supported: it lacks AVX2 ("), "{why}");
}

#[test]
fn features_are_those_that_cranelift_finds() {
    let this = Host::detect();
    if this.missing().is_some() {
        return;
    }
    let flags = cranelift_codegen::settings::Flags::new(cranelift_codegen::settings::builder());
    let native = cranelift_native::builder().expect("this is x86-64").finish(flags).expect("the settings are its own");
    let found: Vec<String> = native.isa_flags().iter().map(ToString::to_string).collect();
    assert_eq!(settings_of(&this), Ok(found));
}

#[test]
fn a_cap_is_one_assignment() {
    let host = Host::detect();
    if host.missing().is_some() {
        return;
    }
    let capped = host.capped(Vectors::V256);
    let settings = settings_of(&capped).expect("AVX2 is what code needs");
    assert!(settings.iter().any(|s| s == "has_avx2=1"), "{settings:?}");
    assert!(settings.iter().all(|s| !(s.starts_with("has_avx512") && s.ends_with("=1"))), "{settings:?}");
    assert!(!capped.has_wide_row_loops());
    // Cranelift's vectors have 128 bits anyway.
    let plain = host.capped(Vectors::V128);
    assert_eq!((plain.missing(), settings_of(&plain)), (None, Ok(settings)));
    assert!(!plain.has_row_loops());
    assert_eq!(plain.capped(Vectors::V512), plain, "a cap widens nothing");
}
