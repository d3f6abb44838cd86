//! What the analyses find out about small functions: SIMT IR as text in, classes and shapes out.
//!
//! Each expectation has its reason beside it, from the definitions: a class must cover every value that the register holds in any lane at any
//! use. A shape is right if `base[group[i]] + off[i] + stride * k` is the value of the `k`-th lane of piece `i` for some bases.

mod access;
mod divergence;
mod graph;
mod packs;
mod reach;
mod read;
mod shapes;
mod sites;
mod subnormals;
mod variables;
mod ways;

use handloom_ir::simt::{Function, LaunchShape};
use handloom_plan::analysis::classes::{Class, Facts, analyse};
use handloom_plan::analysis::shape::Shape;
use handloom_plan::host::{Architecture, Features, Host};
use handloom_plan::{Bounds, Options, Plan};

/// Bytes between the frames of two lanes.
const LOCAL_STRIDE: u32 = 48;

/// Facts of an entry for blocks of this shape, without values that rest on tests.
fn facts(f: &Function, ntid: [u32; 3]) -> Facts {
    analyse(f, &LaunchShape { ntid, small_grid: false }, LOCAL_STRIDE, false)
}

/// The same with values that rest on tests.
fn speculative(f: &Function, ntid: [u32; 3]) -> Facts {
    analyse(f, &LaunchShape { ntid, small_grid: false }, LOCAL_STRIDE, true)
}

/// The plan of an entry for two whole warps in a tier of code: `masked`, `speculate`.
fn plan(f: &Function, (masked, speculate): (bool, bool)) -> Plan {
    let shape = LaunchShape { ntid: [64, 1, 1], small_grid: false };
    let options = Options {
        shape,
        bounds: Bounds::Exact,
        local_stride: LOCAL_STRIDE,
        frame_bytes: 0,
        is_callee: false,
        audited: false,
        in_order: false,
        counted: Default::default(),
        cluster: false,
        masked,
        gangs: false,
        flips: false,
        speculate,
        host: Host::new(Architecture::X86_64, Features::NONE),
    };
    Plan::new(f, &options)
}

fn shape(facts: &Facts, v: usize) -> Shape {
    match facts.class[v] {
        Class::Affine(s) => s,
        other => panic!("v{v} is {other:?}"),
    }
}

/// The class of a register in words, without range and alignment.
fn class(facts: &Facts, v: usize) -> String {
    match facts.class[v] {
        Class::Unknown => "unknown".into(),
        Class::Varying => "varying".into(),
        Class::Affine(s) if s.is_uniform() => "uniform".into(),
        Class::Affine(s) if s.is_linear() => format!("linear {}", s.stride),
        Class::Affine(s) => {
            let (group, off): (Vec<usize>, Vec<i64>) = s.pieces().unzip();
            let groups = if s.groups() == 1 { String::new() } else { format!(" of groups {group:?}") };
            format!("pieces of {} lanes{groups} at {off:?} stride {}", s.piece_len(), s.stride)
        }
    }
}

/// The lowest and highest value that a lane may have.
fn range(facts: &Facts, v: usize) -> (u64, u64) {
    let s = shape(facts, v);
    (s.low, s.high)
}

/// The blocks that part of the lanes may execute.
fn masked(facts: &Facts) -> Vec<usize> {
    facts.masked.iter().collect()
}

/// The blocks whose end sends lanes different ways.
fn diverging(facts: &Facts) -> Vec<usize> {
    (0..facts.diverges.len()).filter(|b| facts.diverges[*b]).collect()
}

/// Full warps in a row.
const ROW: [u32; 3] = [256, 1, 1];
/// Two rows to a warp.
const SQUARE: [u32; 3] = [16, 16, 1];
