//! The counts of a launch with names and lines.

use std::collections::{BTreeMap, HashMap};

use handloom_diag::names::readable;
use handloom_diag::{SourceMap, Span};
use handloom_ir::simt::{MatrixOp, Module, Op, Product, Pure, Statement, Ways};
use handloom_ir::types::Float;

use crate::kind::Kind;
use crate::model::{
    Branch, Hot, Launch, MostRegisters, Moved, OfKind, Operations, Row, SourcePlace, SourceRow, Totals,
};
use handloom_counts::{Counter, Site, Space, Traffic, hottest};

/// What a launch was, beside its counts.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The entry.
    pub entry: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of shared memory of a block, static and dynamic.
    pub shared_bytes: [u32; 2],
    /// How often it ran.
    pub runs: u64,
    /// Blocks that ran to their end.
    pub blocks: u64,
    /// `ok`, or the kind of a trap.
    pub ended: String,
}

/// Puts names and lines to what was counted of a launch. `module`: what ran, with [marks](Module::statements); `name` says what lies at an address.
pub fn describe(
    facts: &Facts,
    counter: &Counter,
    (module, sources): (&Module, &SourceMap),
    name: &dyn Fn(u64) -> String,
) -> Launch {
    let each = operations(module);
    let statement = |s: &Statement| row(s, counter.site(s.span), &each, (module, sources), name);
    let statements: Vec<Row> = module.statements.iter().map(statement).collect();
    let Facts { entry, grid, block, shared_bytes, runs, blocks, ended } = facts.clone();
    let demangled = readable(&entry);
    let warps = counter.warps();
    let most_registers = module.entries.get(&entry).map_or(MostRegisters::default(), |e| MostRegisters {
        maxnreg: e.registers.maxnreg,
        min_blocks: e.registers.min_ctas,
        threads: e.reqntid.or(e.maxntid).map(|n| n.iter().product()),
    });
    let mut new = Launch {
        entry,
        demangled,
        grid,
        block,
        shared_bytes,
        runs,
        blocks,
        ended,
        warps,
        statements,
        most_registers,
        ..Launch::default()
    };
    new.sum_up();
    new
}

impl Launch {
    /// Makes the sums of its statements anew.
    pub(crate) fn sum_up(&mut self) {
        self.totals = totals(&self.statements);
        self.kinds = by_kind(&self.statements);
        self.traffic = by_space(&self.statements);
        self.sources = by_source(&self.statements);
    }

    /// Leaves out statements of functions of which nothing ran, but those of the entry.
    pub fn keep_functions_that_ran(&mut self) {
        let mut ran: HashMap<String, bool> = HashMap::new();
        for row in &self.statements {
            *ran.entry(row.function.clone()).or_default() |= row.warps > 0 || row.function == self.entry;
        }
        self.statements.retain(|row| ran[&row.function]);
        self.sources = by_source(&self.statements);
    }
}

fn row(
    s: &Statement,
    site: Site,
    each: &HashMap<Span, Each>,
    (module, sources): (&Module, &SourceMap),
    name: &dyn Fn(u64) -> String,
) -> Row {
    let place = sources.position(s.span.file, s.span.start);
    let text = sources.slice(s.span).trim().to_owned();
    let kind = Kind::of(s.opcode, without_guard(&text));
    let branch = match s.ways {
        Ways::One => None,
        Ways::Two => Some(Branch { ways: vec![site.active, site.lanes - site.active], divergent: site.split }),
        Ways::Many(n) => {
            let mut ways = site.ways.clone();
            ways.resize(usize::try_from(n).unwrap_or(0).max(ways.len()), 0);
            Some(Branch { ways, divergent: site.scattered })
        }
    };
    let of_call = accesses_parameters(&text);
    let traffic: Vec<Moved> = site
        .traffic
        .iter()
        .map(|((space, does, width), sums)| match space {
            Space::Local if of_call => {
                let sums = Traffic { sectors: 0, ..*sums };
                Moved { space: Space::Param, does: *does, width: Some(*width), sums }
            }
            _ => Moved { space: *space, does: *does, width: Some(*width), sums: *sums },
        })
        .collect();
    // The guard of a branch says where lanes go: all of them execute it.
    let (active, which) = if branch.is_some() { (site.lanes, site.came) } else { (site.active, site.which) };
    let operations = each.get(&s.span).map(|each| each.times(site.active, site.warps));
    Row {
        file: sources.name(s.span.file).to_owned(),
        line: place.line,
        column: place.column,
        function: module.funcs[s.func.idx()].name.clone(),
        kind,
        source: module.source_line(s.span).map(|(file, line)| SourcePlace { file: file.to_owned(), line }),
        warps: site.warps,
        lanes: site.lanes,
        active,
        which,
        branch,
        traffic,
        hot: hot(&site.addresses, name),
        addresses: u64::try_from(site.addresses.len()).unwrap_or(0),
        waits: (kind == Kind::Barrier && site.waits.warps > 0).then_some(site.waits),
        operations,
        copied_bytes: site.copied_bytes,
        text,
    }
}

/// Whether a statement names `.param`. Arguments and results of functions lie in frames here; a device's compiler passes most of them in registers, and no
/// count of its memory traffic holds them.
fn accesses_parameters(text: &str) -> bool {
    let mnemonic = without_guard(text).split(char::is_whitespace).next().unwrap_or_default();
    mnemonic.split('.').skip(1).any(|word| word == "param" || word.starts_with("param:"))
}

/// A statement from its opcode on.
fn without_guard(text: &str) -> &str {
    match text.strip_prefix('@').and_then(|rest| rest.split_once(char::is_whitespace)) {
        Some((_, rest)) => rest.trim_start(),
        None => text,
    }
}

fn hot(addresses: &BTreeMap<u64, u64>, name: &dyn Fn(u64) -> String) -> Vec<Hot> {
    hottest(addresses).into_iter().map(|(at, lanes)| Hot { place: name(at), lanes }).collect()
}

/// Operations of a statement: for each lane that acts, and for each warp.
#[derive(Clone, Copy, Debug, Default)]
struct Each {
    lane: Operations,
    warp: Operations,
}

impl Each {
    fn times(&self, lanes: u64, warps: u64) -> Operations {
        let Each { lane, warp } = self;
        Operations {
            half: lane.half * lanes,
            f32: lane.f32 * lanes,
            f64: lane.f64 * lanes,
            matrix: warp.matrix * warps,
        }
    }
}

/// The operations of each statement that has any.
fn operations(module: &Module) -> HashMap<Span, Each> {
    let mut all: HashMap<Span, Each> = HashMap::new();
    for inst in module.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.insts) {
        match inst.op {
            Op::Pure(pure) => {
                if let Some((ty, n)) = of_lane(pure) {
                    let each = &mut all.entry(inst.span).or_default().lane;
                    match ty {
                        Float::F16 | Float::BF16 => each.half += n,
                        Float::F16x2 | Float::BF16x2 => each.half += 2 * n,
                        Float::F32 => each.f32 += n,
                        Float::F32x2 => each.f32 += 2 * n,
                        Float::F64 => each.f64 += n,
                    }
                }
            }
            Op::Matrix(op) => {
                if let Some(n) = of_warp(op) {
                    all.entry(inst.span).or_default().warp.matrix += n;
                }
            }
            _ => {}
        }
    }
    all
}

/// Operations on floats of a value op, and their type.
fn of_lane(op: Pure) -> Option<(Float, u64)> {
    match op {
        Pure::FFma(mode) => Some((mode.ty, 2)),
        Pure::FAdd(mode) | Pure::FSub(mode) | Pure::FMul(mode) | Pure::FRsqrt(mode) => Some((mode.ty, 1)),
        Pure::FDiv { mode, .. } | Pure::FRcp { mode, .. } | Pure::FSqrt { mode, .. } => Some((mode.ty, 1)),
        Pure::Sin { .. } | Pure::Cos { .. } | Pure::Lg2 { .. } => Some((Float::F32, 1)),
        Pure::Ex2 { ty, .. } | Pure::Tanh { ty } => Some((ty, 1)),
        _ => None,
    }
}

/// Operations of a matrix product: a multiplication and an addition for each product of elements.
fn of_warp(op: MatrixOp) -> Option<u64> {
    let of_product = |p: Product| 2 * u64::from(p.m) * 8 * u64::from(p.k);
    match op {
        MatrixOp::Product(p) => Some(of_product(p)),
        MatrixOp::Blocks(b) => Some(u64::from(b.times) * u64::from(b.count) * of_product(b.product)),
        MatrixOp::Run(r) => Some(u64::from(r.count) * of_product(r.product)),
        // Four products of 8 by 4 by 8 elements.
        MatrixOp::Quads(_) => Some(4 * 2 * 8 * 4 * 8),
        MatrixOp::Addresses(_) | MatrixOp::Transpose => None,
    }
}

fn totals(rows: &[Row]) -> Totals {
    let mut t = Totals::default();
    for row in rows {
        t.warp_instructions += row.warps;
        t.thread_instructions += row.active;
        t.guarded_off += row.lanes - row.active;
        t.copied_bytes += row.copied_bytes;
        if let Some(branch) = &row.branch {
            t.branches += row.warps;
            t.divergent_branches += branch.divergent;
        }
        if row.kind == Kind::Matrix {
            t.matrix_instructions += row.warps;
        }
        if let Some(waits) = &row.waits {
            t.barriers += waits.warps;
            t.barrier_waits += waits.waited;
        }
        if let Some(o) = &row.operations {
            t.half_operations += o.half;
            t.f32_operations += o.f32;
            t.f64_operations += o.f64;
            t.matrix_operations += o.matrix;
        }
        for moved in &row.traffic {
            of_traffic(&mut t, moved);
        }
    }
    t
}

fn of_traffic(t: &mut Totals, moved: &Moved) {
    use handloom_ir::simt::Does::{Atomic, Load, Store};
    let Moved { space, does, sums, .. } = moved;
    match (space, does) {
        (Space::Global, Load) => t.global_load_bytes += sums.bytes,
        (Space::Global, Store) => t.global_store_bytes += sums.bytes,
        (Space::Global, Atomic) | (Space::Shared | Space::Local | Space::Const | Space::Param, _) => {}
    }
    match space {
        Space::Global => {
            t.global_requests += sums.requests;
            t.global_sectors += sums.sectors;
            t.global_touched += sums.touched;
        }
        Space::Local => t.local_sectors += sums.sectors,
        Space::Shared => {
            t.shared_requests += sums.requests;
            t.shared_passes += sums.passes;
            t.bank_conflicts += sums.conflicts();
        }
        Space::Const | Space::Param => {}
    }
    if *does == Atomic {
        t.atomic_requests += sums.requests;
        t.atomic_lanes += sums.lanes;
        t.atomic_turns += sums.most_on_one;
    }
}

fn by_kind(rows: &[Row]) -> Vec<OfKind> {
    let of = |kind: &Kind| {
        let rows = || rows.iter().filter(|row| row.kind == *kind);
        OfKind { kind: *kind, warps: rows().map(|r| r.warps).sum(), active: rows().map(|r| r.active).sum() }
    };
    Kind::ALL.iter().map(of).filter(|k| k.warps > 0).collect()
}

fn by_space(rows: &[Row]) -> Vec<Moved> {
    let mut sums: BTreeMap<_, Traffic> = BTreeMap::new();
    for moved in rows.iter().flat_map(|row| &row.traffic) {
        sums.entry((moved.space, moved.does)).or_default().add(&moved.sums);
    }
    sums.into_iter().map(|((space, does), sums)| Moved { space, does, width: None, sums }).collect()
}

fn by_source(rows: &[Row]) -> Vec<SourceRow> {
    let mut lines: BTreeMap<&SourcePlace, SourceRow> = BTreeMap::new();
    for row in rows {
        let Some(place) = &row.source else { continue };
        let line = lines.entry(place).or_insert_with(|| SourceRow {
            place: place.clone(),
            warps: 0,
            active: 0,
            sectors: 0,
            statements: 0,
            ran: 0,
        });
        line.warps += row.warps;
        line.active += row.active;
        line.sectors += row.of_space(Space::Global).sectors;
        line.statements += 1;
        line.ran += u64::from(row.warps > 0);
    }
    lines.into_values().collect()
}
