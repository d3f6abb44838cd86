//! The PTX of a case.
//!
//! Blocks stand in groups of as many as the placement has. A lane of a warp belongs to one thread of the shape and to one instance a round.
//! The parts that blocks, warps and lanes take rotate with the seed.

use std::fmt::Write;

use super::file::{Case, Shape};

/// How the locations of instances lie in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// Side by side, so that a warp's accesses can go as vectors.
    Packed,
    /// Far from each other.
    Spread,
    /// In an order without a constant distance.
    Scattered,
}

/// A kernel and what its instances are.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// PTX with the entry `litmus(memory, results, meeting, seed, pause)`.
    pub text: String,
    /// Threads of a block.
    pub block: u32,
    /// Blocks of a group.
    pub blocks: u32,
    /// Instances of a round of a group.
    pub per_round: u32,
    /// Rounds of a group.
    pub rounds: u32,
    /// Groups.
    pub groups: u32,
    layout: Layout,
    stride: u32,
}

/// Instances of a round move among their places by this factor, which has no factor in common with their number.
const SCATTER: u32 = 7;

impl Kernel {
    /// Number of instances.
    pub fn n_instances(&self) -> u32 {
        self.per_round * self.rounds * self.groups
    }

    /// Bytes from the first byte of memory to a location of an instance.
    pub fn place(&self, location: u32, instance: u32) -> u32 {
        let per_group = self.per_round * self.rounds;
        let idx = instance % self.per_round;
        let moved = if self.layout == Layout::Scattered { idx * SCATTER % self.per_round } else { idx };
        let group = instance / per_group;
        let inside = instance % per_group - idx + moved;
        // A group's part holds all of its locations.
        (group * self.n_locations() * per_group + location * per_group + inside) * self.stride
    }

    fn n_locations(&self) -> u32 {
        4
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u32 {
        self.n_locations() * self.n_instances() * self.stride
    }

    /// Makes the kernel of a case. `shaken`: threads give way to others between the statements of their bodies.
    pub fn new(shape: &Shape, case: &Case, layout: Layout, shaken: bool, instances: u32) -> Kernel {
        let place = &case.place;
        let warps = place.blocks.iter().map(Vec::len).max().unwrap_or(1) as u32;
        let lanes = place.blocks.iter().flatten().map(Vec::len).max().unwrap_or(1) as u32;
        let blocks = place.blocks.len() as u32;
        let per_round = 32 / lanes;
        let shared = case.mem == ".shared";
        // Static shared memory has room for so many instances of a group.
        let most = if shared { 768 } else { u32::MAX };
        let groups = if blocks > 1 { 1 } else { instances.div_ceil(most).max(2) };
        let rounds = instances.div_ceil(groups * per_round).max(1);
        let stride = match (layout, shared) {
            (Layout::Packed, _) => 4,
            (Layout::Scattered, _) | (Layout::Spread, true) => 16,
            (Layout::Spread, false) => 64,
        };
        let mut k =
            Kernel { text: String::new(), block: 32 * warps, blocks, per_round, rounds, groups, layout, stride };
        k.text = k.write(shape, case, warps, lanes, shaken);
        k
    }

    fn write(&self, shape: &Shape, case: &Case, warps: u32, lanes: u32, shaken: bool) -> String {
        let mut t = String::from(HEAD);
        let shared = case.mem == ".shared";
        let per_group = self.per_round * self.rounds;
        let group_bytes = self.n_locations() * per_group * self.stride;
        for (name, _) in &shape.locations {
            let _ = writeln!(t, "    .reg .b64 {name};");
        }
        if shared {
            let _ = writeln!(t, "    .shared .align 16 .b8 own[{group_bytes}];");
        }
        let Kernel { blocks, per_round, rounds, stride, .. } = *self;
        let _ = writeln!(
            t,
            "{START}
    div.u32 %group, %block, {blocks};
    rem.u32 %block, %block, {blocks};
    add.u32 %block, %block, %seed;
    rem.u32 %block, %block, {blocks};
    add.u32 %warp, %warp, %turn;
    rem.u32 %warp, %warp, {warps};
    mad.lo.u32 %code, %block, {warps}, %warp;
    rem.u32 %sub, %lane, {lanes};
    div.u32 %idx, %lane, {lanes};
    mul.lo.u32 %at, %group, 64;
    cvt.u64.u32 %off, %at;
    add.u64 %meet, %meet, %off;
    mul.wide.u32 %off, %group, {group_bytes};
    add.u64 %mem, %mem, %off;"
        );
        // Warps without a thread of the shape end; the others are those that meet.
        let codes = |b: usize, w: usize| b as u32 * warps + w as u32;
        let mut meeting = 0;
        let mut parts = Vec::new();
        for (b, block) in case.place.blocks.iter().enumerate() {
            for w in 0..warps as usize {
                match block.get(w) {
                    Some(threads) => {
                        meeting += 1;
                        parts.extend(threads.iter().enumerate().map(|(s, t)| (codes(b, w) * lanes + s as u32, *t)));
                    }
                    None => {
                        let _ = writeln!(t, "    setp.eq.u32 %p, %code, {};\n    @%p exit;", codes(b, w));
                    }
                }
            }
        }
        let _ = writeln!(t, "    mad.lo.u32 %code, %code, {lanes}, %sub;");
        if shared {
            t += &copy(group_bytes, self.block, "ld.global.u32 %c, [%from];", "st.shared.u32 [%to], %c;", "IN");
        }
        let _ =
            writeln!(t, "    mov.u32 %round, 0;\n    mov.u32 %want, 0;\n$ROUND:\n    add.u32 %want, %want, {meeting};");
        t += MEET;
        let moved = if self.layout == Layout::Scattered {
            format!("    mul.lo.u32 %at, %idx, {SCATTER};\n    rem.u32 %at, %at, {per_round};\n")
        } else {
            "    mov.u32 %at, %idx;\n".into()
        };
        t += &moved;
        let _ = writeln!(t, "    mad.lo.u32 %at, %round, {per_round}, %at;");
        for (i, (name, _)) in shape.locations.iter().enumerate() {
            let first = i as u32 * per_group;
            let _ = writeln!(t, "    add.u32 %c, %at, {first};\n    mul.wide.u32 {name}, %c, {stride};");
            let base = if shared { "%own" } else { "%mem" };
            let _ = writeln!(t, "    add.u64 {name}, {name}, {base};");
        }
        for r in 0..8 {
            let _ = writeln!(t, "    mov.u32 r{r}, 0;");
        }
        t += &format!("    setp.ge.u32 %p, %idx, {per_round};\n    @%p bra $NEXT;\n");
        // Lanes of one warp that part go one way after the other: with the bodies twice, in both orders, any two threads come in any order.
        let n_copies = if lanes > 1 { 2 } else { 1 };
        if n_copies == 2 {
            t += "    shr.u32 %n, %h, %lane;\n    and.b32 %n, %n, 1;\n    shl.b32 %n, %n, 16;\n    add.u32 %n, %n, %code;\n";
        } else {
            t += "    mov.u32 %n, %code;\n";
        }
        for copy in 0..n_copies {
            for (code, thread) in &parts {
                let code = code | copy << 16;
                let _ = writeln!(t, "    setp.eq.u32 %p, %n, {code};\n    @%p bra $P{thread}_{copy};");
            }
        }
        t += "    bra $NEXT;\n";
        for copy in 0..n_copies {
            let mut bodies: Vec<(usize, &String)> = case.threads.iter().enumerate().collect();
            if copy == 1 {
                bodies.reverse();
            }
            for (thread, body) in bodies {
                let _ = writeln!(t, "$P{thread}_{copy}:\n    mov.u32 %part, {thread};");
                for (n, statement) in body.split(';').map(str::trim).filter(|s| !s.is_empty()).enumerate() {
                    if shaken {
                        t += &shake(&format!("{thread}_{copy}_{n}"), n as u32);
                    }
                    let _ = writeln!(t, "    {statement};");
                }
                t += "    bra $RESULT;\n";
            }
        }
        t += "$RESULT:\n";
        let (n, n_regs) = (self.n_instances(), shape.n_regs() as u32);
        let _ = writeln!(
            t,
            "    mad.lo.u32 %at, %group, {per_group}, %idx;
    mad.lo.u32 %at, %round, {per_round}, %at;
    mad.lo.u32 %at, %part, {}, %at;
    mul.wide.u32 %off, %at, 4;
    add.u64 %off, %off, %out;",
            n_regs * n
        );
        for r in 0..n_regs {
            let _ = writeln!(t, "    st.global.u32 [%off+{}], r{r};", r * n * 4);
        }
        let _ = writeln!(
            t,
            "$NEXT:\n    add.u32 %round, %round, 1;\n    setp.lt.u32 %p, %round, {rounds};\n    @%p bra $ROUND;"
        );
        if shared {
            t += &copy(group_bytes, self.block, "ld.shared.u32 %c, [%to];", "st.global.u32 [%from], %c;", "OUT");
        }
        t += "    ret;\n}\n";
        t
    }
}

const HEAD: &str = "\
.version 8.6
.target sm_90
.address_size 64

.visible .entry litmus(.param .u64 memory, .param .u64 results, .param .u64 meeting, .param .u32 seed, .param .u32 pause)
{
    .reg .pred %p, %first, p<4>;
    .reg .b32 %seed, %turn, %block, %warp, %lane, %group, %code, %sub, %idx, %round, %want, %part, %at, %c, %h, %n, %thread, %pause;
    .reg .b64 %mem, %out, %meet, %off, %own, %from, %to, d<4>;
    .reg .b32 r<8>;
";

const START: &str = "    ld.param.u64 %mem, [memory];
    ld.param.u64 %out, [results];
    ld.param.u64 %meet, [meeting];
    ld.param.u32 %seed, [seed];
    shr.u32 %turn, %seed, 4;
    and.b32 %turn, %turn, 15;
    and.b32 %c, %seed, 15;
    mov.u32 %thread, %tid.x;
    mov.u32 %block, %ctaid.x;
    shr.u32 %warp, %thread, 5;
    and.b32 %lane, %thread, 31;
    setp.eq.u32 %first, %lane, 0;
    shr.u32 %h, %seed, 8;
    mov.u32 %seed, %c;
    mov.u64 %own, 0;
    ld.param.u32 %pause, [pause];";

/// All warps of a group meet: within a few cycles if they run at the same time, else in a loop that gives way to others. The first time they wait
/// longer: a block that gave way at once would have all blocks started on the host thread that was there first. Then each waits for a time of its own.
const MEET: &str = "    @%first red.relaxed.gpu.global.add.u32 [%meet], 1;
    setp.eq.u32 %p, %round, 0;
    selp.u32 %n, %pause, 1000, %p;
$NEAR:
    ld.relaxed.gpu.global.u32 %c, [%meet];
    setp.ge.u32 %p, %c, %want;
    @%p bra $WAIT;
    add.u32 %n, %n, -1;
    setp.gt.s32 %p, %n, 0;
    @%p bra $NEAR;
$WAIT:
    ld.relaxed.gpu.global.u32 %c, [%meet];
    setp.lt.u32 %p, %c, %want;
    @%p bra $WAIT;
    mad.lo.u32 %h, %h, 0x9e3779b1, %warp;
    add.u32 %h, %h, %block;
    shr.u32 %n, %h, 15;
    xor.b32 %h, %h, %n;
    mul.lo.u32 %h, %h, 0x2c1b3c6d;
    shr.u32 %n, %h, 23;
$DELAY:
    add.u32 %n, %n, -1;
    setp.gt.s32 %p, %n, 0;
    @%p bra $DELAY;
";

/// A warp or some lanes of it give way to other threads, some number of times.
fn shake(label: &str, n: u32) -> String {
    format!(
        "    shr.u32 %n, %h, {};
    shr.u32 %c, %h, 31;
    mad.lo.u32 %n, %lane, %c, %n;
    and.b32 %n, %n, 3;
$SHAKE{label}:
    setp.eq.u32 %p, %n, 0;
    @%p bra $GO{label};
    nanosleep.u32 0;
    add.u32 %n, %n, -1;
    bra $SHAKE{label};
$GO{label}:
",
        4 + 3 * n
    )
}

/// Copies a group's memory from or to shared memory.
fn copy(bytes: u32, threads: u32, load: &str, store: &str, label: &str) -> String {
    format!(
        "    bar.sync 0;
    mul.lo.u32 %at, %thread, 4;
    mov.u64 %own, own;
${label}:
    cvt.u64.u32 %off, %at;
    add.u64 %from, %mem, %off;
    add.u64 %to, %own, %off;
    setp.lt.u32 %p, %at, {bytes};
    @%p {load}
    @%p {store}
    add.u32 %at, %at, {};
    @%p bra ${label};
    bar.sync 0;
",
        threads * 4
    )
}
