//! Every special register in every kind of place, under many launch shapes, on all engines and in every tier of code, against values that
//! are computed here from the shape alone.
//!
//! A kernel stores them at its start, on both sides of a branch on data, and in a function that it calls by address. A plain run asks for a
//! third of the registers under each shape, `HANDLOOM_REGISTERS=all` for all of them.

use std::fmt::Write as _;
use std::sync::Arc;

use handloom_diag::SourceMap;
use handloom_ir::simt::SharedRules;
use handloom_ir::types::{ScalarType, Sreg};
use handloom_isa::sreg::{SPECIAL_REGISTERS, Source};
use handloom_runtime::{Arg, Bounds, Engine, LaunchConfig, MAX_SHARED, MAX_STATIC_SHARED, Module, launch};
use handloom_tests::engines::{Argument, Job, Launch, device, tiers};
use handloom_tests::reference::data::mixed;

/// Static shared memory of the kernel: two units of alignment of dynamic shared memory, so that nothing is lost between them.
const STATIC_BYTES: u32 = 32;

/// Places of the kernel where registers are read. The two sides of the branch are one: each thread takes one of them.
const PLACES: usize = 3;

/// A launch.
#[derive(Clone, Copy, Debug)]
struct Shape {
    block: [u32; 3],
    grid: [u32; 3],
    cluster: Option<[u32; 3]>,
    dynamic: u32,
}

/// A thread, with all that tells of where it stands.
struct Thread {
    shape: Shape,
    tid: [u32; 3],
    /// Number in its block.
    number: u32,
    ctaid: [u32; 3],
    clusterid: [u32; 3],
    cluster_ctaid: [u32; 3],
    cluster_rank: u32,
}

/// What a register must hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Want {
    /// This.
    Is(u64),
    /// What all threads of the launch read.
    Same,
    /// A multiple of 8 in the region for system software, with so many bytes of it behind.
    InRegion(u64),
    /// Less than what another register held.
    Below(Sreg),
    /// Moves with time.
    Anything,
}

/// Shapes of blocks in one, two and three dimensions: rows that are parts of a warp, whole ones, several, and odd numbers of threads.
const BLOCKS: &[[u32; 3]] = &[
    [32, 1, 1],
    [1, 1, 1],
    [31, 1, 1],
    [33, 1, 1],
    [100, 1, 1],
    [5, 3, 2],
    [7, 9, 1],
    [16, 16, 1],
    [8, 4, 1],
    [8, 4, 3],
    [4, 8, 2],
    [16, 1, 3],
    [2, 2, 16],
    [1, 1, 33],
    [1, 32, 1],
    [64, 2, 1],
    [40, 2, 1],
];

/// Grids with their clusters.
const GRIDS: &[([u32; 3], Option<[u32; 3]>)] = &[
    ([1, 1, 1], None),
    ([4, 2, 2], Some([2, 2, 1])),
    ([2, 3, 2], None),
    ([6, 1, 1], Some([3, 1, 1])),
    ([2, 4, 3], Some([1, 2, 3])),
    ([2, 1, 1], Some([1, 1, 1])),
    ([19, 1, 1], None),
];

fn shapes() -> Vec<Shape> {
    let pair = |i: usize, block: &[u32; 3], skip: usize| {
        let (grid, cluster) = GRIDS[(i + skip) % GRIDS.len()];
        Shape { block: *block, grid, cluster, dynamic: [0, 16, 4096][(i + skip) % 3] }
    };
    BLOCKS.iter().enumerate().map(|(i, block)| pair(i, block, 0)).collect()
}

/// Calls `f` with each `[x, y, z]` below a bound, x fastest.
fn each(bound: [u32; 3], mut f: impl FnMut([u32; 3])) {
    for z in 0..bound[2] {
        for y in 0..bound[1] {
            (0..bound[0]).for_each(|x| f([x, y, z]));
        }
    }
}

/// All threads of a launch.
fn threads(shape: Shape) -> Vec<Thread> {
    let n = shape.cluster.unwrap_or([1; 3]);
    let mut out = Vec::new();
    each([0, 1, 2].map(|i| shape.grid[i] / n[i]), |clusterid| {
        let mut cluster_rank = 0;
        each(n, |cluster_ctaid| {
            let ctaid = [0, 1, 2].map(|i| clusterid[i] * n[i] + cluster_ctaid[i]);
            let mut number = 0;
            each(shape.block, |tid| {
                out.push(Thread { shape, tid, number, ctaid, clusterid, cluster_ctaid, cluster_rank });
                number += 1;
            });
            cluster_rank += 1;
        });
    });
    out
}

/// What a thread must read.
///
/// # PTX ISA
/// Special Registers. Where the manual leaves a value open, it is Handloom's choice: performance counters and environment registers are 0.
fn want(s: Sreg, t: &Thread) -> Want {
    let component = |v: [u32; 3], i: u8| Want::Is(v.get(usize::from(i)).copied().unwrap_or(0).into());
    let n = t.shape.cluster.unwrap_or([1; 3]);
    let threads: u32 = t.shape.block.iter().product();
    let lane = t.number % 32;
    let lanes = |f: &dyn Fn(u32) -> bool| Want::Is((0..32).filter(|l| f(*l)).map(|l| 1_u64 << l).sum());
    let total = (STATIC_BYTES + t.shape.dynamic).div_ceil(128) * 128;
    match s {
        Sreg::Tid(i) => component(t.tid, i),
        Sreg::Ntid(i) => component(t.shape.block, i),
        Sreg::Ctaid(i) => component(t.ctaid, i),
        Sreg::Nctaid(i) => component(t.shape.grid, i),
        Sreg::Laneid => Want::Is(lane.into()),
        Sreg::Warpid => Want::Is((t.number / 32).into()),
        Sreg::Nwarpid => Want::Is(threads.div_ceil(32).into()),
        Sreg::Smid => Want::Below(Sreg::Nsmid),
        Sreg::Nsmid | Sreg::Gridid => Want::Same,
        Sreg::LanemaskEq => lanes(&|l| l == lane),
        Sreg::LanemaskLe => lanes(&|l| l <= lane),
        Sreg::LanemaskLt => lanes(&|l| l < lane),
        Sreg::LanemaskGe => lanes(&|l| l >= lane),
        Sreg::LanemaskGt => lanes(&|l| l > lane),
        Sreg::Clock | Sreg::ClockHi | Sreg::Clock64 | Sreg::Globaltimer | Sreg::GlobaltimerLo | Sreg::GlobaltimerHi => {
            Want::Anything
        }
        Sreg::DynamicSmemSize => Want::Is(t.shape.dynamic.into()),
        Sreg::TotalSmemSize => Want::Is(total.into()),
        Sreg::AggrSmemSize => Want::Is((total + 1024).into()),
        Sreg::ReservedSmemBegin => Want::Is(0),
        Sreg::ReservedSmemEnd | Sreg::ReservedSmemCap => Want::Is(1024),
        // The headers of cooperative groups keep 288 bytes at the second one.
        Sreg::ReservedSmemOffset(i) => Want::InRegion(if i == 1 { 288 } else { 8 }),
        // No program can name it.
        Sreg::Late => Want::Anything,
        Sreg::Pm(_) | Sreg::Pm64(_) | Sreg::Envreg(_) | Sreg::CurrentGraphExec => Want::Is(0),
        Sreg::IsExplicitCluster => Want::Is(t.shape.cluster.is_some().into()),
        Sreg::Clusterid(i) => component(t.clusterid, i),
        Sreg::Nclusterid(i) => component([0, 1, 2].map(|i| t.shape.grid[i] / n[i]), i),
        Sreg::ClusterCtaid(i) => component(t.cluster_ctaid, i),
        Sreg::ClusterNctaid(i) => component(n, i),
        Sreg::ClusterCtarank => Want::Is(t.cluster_rank.into()),
        Sreg::ClusterNctarank => Want::Is(n.iter().product::<u32>().into()),
    }
}

/// A way to read registers: the lines that put them into `%l0` and on.
struct Reading {
    lines: String,
    /// Which they are, and the bits that arrive.
    of: Vec<(Sreg, u32)>,
}

/// A register at a type.
fn plain(name: &str, sreg: Sreg, ty: ScalarType) -> Reading {
    let lines = match (ty, ty.bits()) {
        (ScalarType::Pred, _) => format!("mov.pred %p0, {name}; selp.u64 %l0, 1, 0, %p0;"),
        (_, 16) => format!("mov.u16 %h0, {name}; cvt.u64.u16 %l0, %h0;"),
        (_, 32) => format!("mov.u32 %r0, {name}; cvt.u64.u32 %l0, %r0;"),
        (_, 64) => format!("mov.u64 %l0, {name};"),
        (ty, bits) => panic!("{name} is {ty} of {bits} bits"),
    };
    Reading { lines, of: vec![(sreg, ty.bits())] }
}

/// All registers, of long numbered sets the first and the last; at their type and at the older one; vectors also as a whole.
fn readings() -> Vec<Reading> {
    let mut out = Vec::new();
    for row in SPECIAL_REGISTERS {
        let mut named = Vec::new();
        match row.source {
            Source::One(sreg) => named.push((row.name.to_owned(), sreg)),
            Source::Numbered(n, sreg) => {
                let number = |i: u8| (row.name.replace('#', &i.to_string()), sreg(i));
                named.extend([0, n - 1].map(number));
            }
            Source::Vector(sreg) => {
                named.extend(
                    (0..4).map(|i| (format!("{}.{}", row.name, ["x", "y", "z", "w"][usize::from(i)]), sreg(i))),
                );
                let widen: String = (0..4).map(|i| format!(" cvt.u64.u32 %l{i}, %v{i};")).collect();
                let lines = format!("mov.v4.u32 {{%v0, %v1, %v2, %v3}}, {};{widen}", row.name);
                out.push(Reading { lines, of: (0..4).map(|i| (sreg(i), 32)).collect() });
            }
        }
        for (name, sreg) in named {
            out.push(plain(&name, sreg, row.ty));
            out.extend(row.legacy.map(|ty| plain(&name, sreg, ty)));
        }
    }
    out
}

/// The module for a grid of so many threads: place after place, and register after register, a word of 64 bits for each thread.
fn module(readings: &[Reading], threads: usize) -> String {
    let per_place: usize = readings.iter().map(|r| r.of.len()).sum();
    let store = |place: usize| {
        let mut out = String::new();
        let mut word = place * per_place;
        for r in readings {
            _ = write!(out, "    {}", r.lines);
            for i in 0..r.of.len() {
                _ = write!(out, " st.global.u64 [%to+{}], %l{i};", 8 * word * threads);
                word += 1;
            }
            out.push('\n');
        }
        out
    };
    let registers = ".reg .b16 %h0; .reg .b32 %r<9>, %v<4>; .reg .b64 %l<4>, %to; .reg .pred %p<2>;";
    format!(
        ".version 8.6
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.func reads(.param .b64 out)
{{
    {registers}
    ld.param.b64 %to, [out];
{}    ret;
}}
.global .u64 table[1] = {{reads}};
.visible .entry k(.param .b64 out, .param .b64 data)
{{
    {registers}
    .shared .align 16 .b8 own[{STATIC_BYTES}];
    mov.u32 %r0, %ctaid.z;
    mov.u32 %r1, %nctaid.y;
    mov.u32 %r2, %ctaid.y;
    mad.lo.u32 %r0, %r0, %r1, %r2;
    mov.u32 %r1, %nctaid.x;
    mov.u32 %r2, %ctaid.x;
    mad.lo.u32 %r0, %r0, %r1, %r2;
    mov.u32 %r1, %ntid.z;
    mov.u32 %r2, %tid.z;
    mad.lo.u32 %r0, %r0, %r1, %r2;
    mov.u32 %r1, %ntid.y;
    mov.u32 %r2, %tid.y;
    mad.lo.u32 %r0, %r0, %r1, %r2;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r8, %r0, %r1, %r2;
    ld.param.b64 %l0, [out];
    mul.wide.u32 %to, %r8, 8;
    add.u64 %to, %to, %l0;
    mov.u32 %r0, own;
    st.shared.u8 [%r0], 1;
    mov.u32 %r0, dynamic;
{}    ld.param.b64 %l1, [data];
    mad.wide.u32 %l1, %r8, 4, %l1;
    ld.global.u32 %r1, [%l1];
    and.b32 %r1, %r1, 1;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra other;
{}    bra meet;
other:
{}meet:
    bar.sync 0;
    ld.global.u64 %l1, [table];
    {{
    .param .b64 a;
    st.param.b64 [a], %to;
    proto: .callprototype _ (.param .b64 _);
    call %l1, (a), proto;
    }}
    ret;
}}
",
        store(2),
        store(0),
        store(1),
        store(1),
    )
}

/// What is wrong with a launch in one way of running it.
fn faults(shape: Shape, readings: &[Reading], out: &[u8]) -> Option<String> {
    let word = |i: usize| u64::from_le_bytes(out[8 * i..8 * i + 8].try_into().expect("eight bytes"));
    let of: Vec<(Sreg, u32, &str)> =
        readings.iter().flat_map(|r| r.of.iter().map(|(s, bits)| (*s, *bits, r.lines.as_str()))).collect();
    let all = shape.block.iter().chain(&shape.grid).product::<u32>() as usize;
    let threads_of_block: u32 = shape.block.iter().product();
    let [gx, gy, _] = shape.grid;
    let index = |s: Sreg| of.iter().position(|r| r.0 == s).unwrap_or_else(|| panic!("{s:?} is not read"));
    for t in threads(shape) {
        let block = t.ctaid[0] + gx * (t.ctaid[1] + gy * t.ctaid[2]);
        let thread = (block * threads_of_block + t.number) as usize;
        for place in 0..PLACES {
            let held = |i: usize, thread: usize| word((place * of.len() + i) * all + thread);
            for (i, (sreg, bits, lines)) in of.iter().enumerate() {
                let got = held(i, thread);
                let low = u64::MAX >> (64 - bits);
                let fits = match want(*sreg, &t) {
                    Want::Is(v) => got == v & low,
                    Want::Same => got == held(i, 0),
                    Want::InRegion(room) => got % 8 == 0 && got + room <= u64::from(SharedRules::REGION),
                    Want::Below(other) => got < held(index(other), thread),
                    Want::Anything => true,
                };
                if !fits {
                    let (tid, ctaid) = (t.tid, t.ctaid);
                    let want = want(*sreg, &t);
                    return Some(format!(
                        "thread {tid:?} of block {ctaid:?}, place {place}: {sreg:?} by `{lines}` is {got:#x}, should be {want:x?}"
                    ));
                }
            }
        }
    }
    None
}

#[test]
fn every_register_tells_the_shape_of_the_launch() {
    let all = std::env::var_os("HANDLOOM_REGISTERS").is_some();
    let check = |number: usize, shape: Shape| {
        // What others are compared with is always there.
        let asked = |(i, r): &(usize, Reading)| all || (i + number).is_multiple_of(3) || r.of[0].0 == Sreg::Nsmid;
        let readings: Vec<Reading> = readings().into_iter().enumerate().filter(asked).map(|(_, r)| r).collect();
        let words: usize = readings.iter().map(|r| PLACES * r.of.len()).sum();
        let n: u32 = shape.block.iter().chain(&shape.grid).product();
        let text = module(&readings, n as usize);
        let data = (0..n).flat_map(|i| mixed(i).to_le_bytes()).collect();
        let job = Job {
            name: "special_registers.ptx",
            text: &text,
            buffers: vec![vec![0xff; n as usize * 8 * words], data],
            addresses: vec![],
            launches: vec![Launch {
                entry: "k",
                grid: shape.grid,
                block: shape.block,
                shared_bytes: shape.dynamic,
                args: vec![Argument::Buffer(0, 0), Argument::Buffer(1, 0)],
                cooperative: false,
                cluster: shape.cluster,
            }],
            variables: vec![],
        };
        // Bounds make no difference to them.
        let ways = tiers().filter(|way| way.bounds == Bounds::Exact);
        let faults = ways.filter_map(|way| {
            let what = match job.run(way, 0) {
                Err(e) => Some(e.lines().next().unwrap_or_default().to_owned()),
                Ok(got) => match &got.trap {
                    Some(trap) => Some(trap.message().to_owned()),
                    None => faults(shape, &readings, &got.buffers[0]),
                },
            };
            what.map(|what| format!("[{}] {shape:?}: {what}", way.name))
        });
        faults.collect::<Vec<_>>()
    };
    let shapes: Vec<(usize, Shape)> = shapes().into_iter().enumerate().collect();
    let (some, others) = shapes.split_at(shapes.len() / 2);
    let run = |shapes: &[(usize, Shape)]| shapes.iter().flat_map(|(i, shape)| check(*i, *shape)).collect::<Vec<_>>();
    let wrong = std::thread::scope(|s| {
        let one = s.spawn(|| run(some));
        let two = run(others);
        [one.join().expect("the first half does not panic"), two].concat()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// As much static shared memory as may be, and dynamic; writes where both begin, and touches the last byte.
fn owner() -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.shared .align 16 .b8 cells[{MAX_STATIC_SHARED}];
.visible .entry k(.param .b64 out)
{{
    .reg .b32 %r<3>;
    .reg .b64 %p;
    ld.param.b64 %p, [out];
    mov.u32 %r0, cells;
    st.global.u32 [%p], %r0;
    st.shared.u8 [%r0+{}], %r0;
    mov.u32 %r0, dynamic;
    st.global.u32 [%p+4], %r0;
    ret;
}}
",
        MAX_SHARED - 1
    )
}

#[test]
fn the_reserved_region_is_that_of_all_linked_modules_and_counts_against_no_limit() {
    let reads = ".version 8.0\n.target sm_80\n.address_size 64
.visible .func (.param .b32 r) cap() { .reg .b32 %r; mov.u32 %r, %reserved_smem_offset_cap; st.param.b32 [r], %r; ret; }";
    for (texts, region) in
        [(vec![owner()], 0), (vec![owner(), reads.into()], 1024), (vec![reads.into(), owner()], 1024)]
    {
        let device = device().expect("there is a device");
        let mut sources = SourceMap::new();
        let files: Vec<_> = (0..).zip(&texts).map(|(i, text)| sources.add(format!("{i}.ptx"), text)).collect();
        let module = Module::load(&device, Arc::new(sources), &files).expect("the modules fit");
        let function = module.function(Some("k")).expect("there is an entry");
        for engine in [Engine::Interp, Engine::Jit] {
            let shared_bytes = MAX_SHARED - MAX_STATIC_SHARED;
            let config = LaunchConfig { engine, shared_bytes, ..LaunchConfig::new([2, 1, 1], [1, 1, 1]) };
            let out = device.zeroed(8).expect("there is room");
            let report = launch(&function, &config, &[Arg::from(&out)]).expect("the launch ends well");
            assert_eq!(report.blocks, 2);
            let words: Vec<u32> = out.to_vec().chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
            assert_eq!(words, [region, region + MAX_STATIC_SHARED], "{engine:?}");
            let config = LaunchConfig { shared_bytes: shared_bytes + 1, ..config };
            let refused = launch(&function, &config, &[Arg::from(&out)]).expect_err("one byte too many");
            assert!(refused.to_string().contains("232449 bytes of shared memory (49152 static"), "{refused}");
        }
    }
}
