//! Numbers of sites, what stops hold, and caches of memory sites.

use std::mem::offset_of;

use handloom_diag::{FileId, Span};
use handloom_ir::simt::{BarKind, Function, Reg, Sites};
use handloom_ir::trap::TrapKind;
use handloom_plan::abi::{
    Arrivals, BadStop, BarrierSite, CallSite, Loc, Reason, SiteCache, Stop, Tables, TrapSite, TrapSource, WarpCtx,
    Word, YieldSite,
};
use handloom_plan::packs::Strategy;

use super::plan;
use super::read::entry;

/// The choices that tiers of code differ in: `masked`, `speculate`.
const TIERS: [(bool, bool); 3] = [(false, true), (true, true), (true, false)];

/// Statements at places of their own, as a text has them.
fn spans(f: &mut Function) {
    let mut at = 0;
    let mut next = || {
        at += 1;
        Span { file: FileId(0), start: at, end: at + 1 }
    };
    for block in &mut f.blocks {
        block.insts.iter_mut().for_each(|i| i.span = next());
        block.term_span = next();
    }
}

/// A loop with two ways back, for which preparing inserts a block before the places that follow it.
const LOOP: &str = "b0:
    v0:b32 = sreg.tid.x
    v1:p = cmp.lt.u32 v0, 7
    barrier.sync 0, then b1
b1:
    v2:b32 = vote.ballot v1, 0xffffffff
    jump b2
b2:
    branch v1, b1, b3
b3:
    v3:b32, v6:p = shfl.idx v0, 0, 31, 0xffffffff
    jump b4
b4:
    branch v1, b5, b1
b5:
    v4 = barrier.red.popc 1, of v1, then b6
b6:
    yield, then b7
b7:
    v5:b32 = vote.ballot v1, 0xffffffff
    jump b8
b8:
    branch v1, b6, b9
b9:
    barrier.sync 2, then b10
b10:
    exit";

#[test]
fn numbers_are_the_same_in_all_code_of_a_function() {
    let mut f = entry(LOOP);
    spans(&mut f);
    let sites = Sites::of(&f);
    assert_eq!(sites.barriers.iter().map(|b| b.idx()).collect::<Vec<_>>(), [0, 5, 9]);
    assert_eq!(sites.warp_ops.iter().map(|b| b.idx()).collect::<Vec<_>>(), [1, 3, 7]);
    assert_eq!(sites.yields.iter().map(|b| b.idx()).collect::<Vec<_>>(), [6]);
    assert_eq!([sites.number(5), sites.number(7), sites.number(6)], [1, 2, 0]);
    assert_eq!((sites.get(2), sites.get(99)), (None, None));
    for tier in TIERS {
        let plan = plan(&f, tier);
        assert!(plan.func.blocks.len() > f.blocks.len(), "nothing was inserted");
        let tables = Strategy::new(&plan).tables();
        let term = |b: &handloom_ir::simt::BlockId| f.blocks[b.idx()].term_span;
        let last = |b: &handloom_ir::simt::BlockId| f.blocks[b.idx()].insts.last().map(|i| (i.op, i.span));
        // The statement at a number is the one that the function has there, whatever the tier.
        let found: Vec<Span> = tables.barriers.iter().map(|s| s.span).collect();
        assert_eq!(found, sites.barriers.iter().map(term).collect::<Vec<_>>(), "{tier:?}");
        let found: Vec<Span> = tables.yields.iter().map(|s| s.span).collect();
        assert_eq!(found, sites.yields.iter().map(term).collect::<Vec<_>>(), "{tier:?}");
        let found: Vec<_> = tables.syncs.iter().map(|s| Some((s.op, s.span))).collect();
        assert_eq!(found, sites.warp_ops.iter().map(last).collect::<Vec<_>>(), "{tier:?}");
        // And so is where lanes go on: by the block that ends with the place.
        for (number, block) in (0..).zip(&plan.sites.barriers) {
            let next = plan.func.blocks[block.idx()].term.successors();
            assert_eq!(next.iter().map(|b| b.0).collect::<Vec<_>>(), [tables.barrier(number).next]);
        }
    }
}

#[test]
fn barriers_say_what_they_are() {
    let f = entry(LOOP);
    let plan = plan(&f, TIERS[0]);
    let tables = Strategy::new(&plan).tables();
    let kinds: Vec<BarKind> = tables.barriers.iter().map(|b| b.kind).collect();
    assert_eq!(kinds, [BarKind::Sync, BarKind::RedPopc, BarKind::Sync]);
    let reduction = tables.barrier(1);
    assert_eq!(reduction.result, tables.homes[4], "the result lives where the register does");
    assert!(reduction.result.is_some() && reduction.takes_predicate() && !reduction.result_is_predicate());
}

fn barrier(kind: BarKind) -> BarrierSite {
    BarrierSite { kind, waited: None, result: None, next: 0, span: Span::NONE }
}

/// Tables with some sites of each kind.
fn tables() -> Tables {
    let trap = TrapSite { kind: TrapKind::Deadlock, index: None, span: Span::NONE };
    let call = CallSite {
        callee: handloom_ir::simt::Callee::Indirect,
        target: None,
        signature: (0, 0),
        args: 0,
        frame_end: 0,
        next: 0,
        span: Span::NONE,
    };
    Tables {
        barriers: vec![barrier(BarKind::Sync), barrier(BarKind::Arrive), barrier(BarKind::RedAnd)],
        arrivals: vec![
            Arrivals { id: Loc::Imm(3), count: None },
            Arrivals { id: Loc::Row32(0), count: Some(Loc::Imm(64)) },
        ],
        yields: vec![YieldSite { next: 0, in_part: false, span: Span::NONE }; 2],
        calls: vec![call; 2],
        traps: vec![trap; 2],
        ..Tables::default()
    }
}

/// A header after code wrote these words into one that held others.
fn written(words: impl Iterator<Item = (usize, Word<u32>)>) -> WarpCtx {
    let mut header = WarpCtx {
        live: 1,
        state: 2,
        wait_epoch: 3,
        warp: 4,
        lanes: 5,
        site: 6,
        words: [7, 8, 9, 10],
        local: 11,
        args: 12,
        window: 14,
    };
    for (at, word) in words {
        let (Word::Number(word) | Word::Value(word)) = word;
        let first = offset_of!(WarpCtx, words);
        let place = match at {
            at if at == offset_of!(WarpCtx, lanes) => &mut header.lanes,
            at if at == offset_of!(WarpCtx, site) => &mut header.site,
            at => &mut header.words[(at - first) / 4],
        };
        *place = word;
    }
    header
}

#[test]
fn stops_are_read_as_they_were_written() {
    let tables = tables();
    let plain = Stop::Barrier { site: 0, lanes: 0xff, arrivals: 0, predicates: None };
    let counted = Stop::Barrier { site: 1, lanes: 0xff, arrivals: 1, predicates: None };
    let reduction = Stop::Barrier { site: 2, lanes: u32::MAX, arrivals: 1, predicates: Some(0xf0) };
    let stops = [
        plain,
        counted,
        reduction,
        Stop::Phase,
        Stop::Yield { site: 1, lanes: 2 },
        Stop::Call { site: 1, lanes: 4 },
        Stop::Trap(TrapSource::Site { site: 1, lanes: 8 }),
        Stop::Trap(TrapSource::Routine),
        Stop::Trap(TrapSource::Apart { lanes: 16 }),
        Stop::Stopped,
        Stop::Idle,
        Stop::Exit { lanes: 32 },
        Stop::Deopt,
    ];
    for stop in stops {
        let header = written(stop.words());
        assert_eq!(Stop::read(stop.reason() as u32, &header, &tables), Ok(stop));
        // Nothing else of the header is touched.
        assert_eq!((header.live, header.state, header.wait_epoch, header.warp, header.local), (1, 2, 3, 4, 11));
    }
}

#[test]
fn stops_that_fit_no_table_are_refused() {
    let tables = tables();
    let read = |stop: Stop<u32>| Stop::read(stop.reason() as u32, &written(stop.words()), &tables);
    assert_eq!(read(Stop::Yield { site: 2, lanes: 1 }), Err(BadStop::Site(Reason::Yield, 2)));
    assert_eq!(read(Stop::Call { site: 9, lanes: 1 }), Err(BadStop::Site(Reason::Call, 9)));
    assert_eq!(read(Stop::Barrier { site: 0, lanes: 1, arrivals: 2, predicates: None }), Err(BadStop::Arrivals(2)));
    let header = written(std::iter::empty());
    assert_eq!(Stop::read(Reason::Barrier as u32, &header, &tables), Err(BadStop::Site(Reason::Barrier, 6)));
    assert_eq!(Stop::read(Reason::Trap as u32, &header, &tables), Err(BadStop::TrapSource(9)));
    assert_eq!(Stop::read(99, &header, &tables), Err(BadStop::Reason(99)));
}

#[test]
fn caches_end_where_no_aligned_access_fits() {
    let limit = |size, length, align| SiteCache::new(64, size, length, align).limit;
    assert_eq!([limit(8, 4, 4), limit(9, 4, 4), limit(11, 4, 4), limit(12, 4, 4)], [8, 8, 8, 12]);
    assert_eq!([limit(1, 1, 1), limit(16, 16, 16), limit(129, 128, 4)], [1, 16, 4]);
    assert_eq!([limit(3, 4, 4), limit(0, 1, 1)], [0, 0]);
}

/// What makes a register is found where it stands when instructions of its block were put last.
#[test]
fn instructions_put_last_are_found() {
    let f = entry(
        "b0:
    v0:b32 = sreg.tid.x
    v1:p = cmp.lt.u32 v0, 7
    v2:b32 = add.b32 v0, 1
    v3:p = cmp.lt.u32 v2, 9
    v4:b32 = add.b32 v2, 5
    v5:p = and.p v1, v3
    jump b1
b1:
    v6:b32 = add.b32 v4, 3
    exit",
    );
    let mut plan = plan(&f, (false, false));
    let ops = |plan: &handloom_plan::Plan| {
        let of = |r: u32| plan.origin(Reg(r)).map(|i| (i.op, i.dst.clone()));
        (0..7).map(of).collect::<Vec<_>>()
    };
    let before = ops(&plan);
    assert!(before.iter().all(Option::is_some));
    let place = |plan: &handloom_plan::Plan, r: u32| {
        plan.func.blocks[0].insts.iter().position(|i| i.dst.contains(&Reg(r))).expect("it is made there")
    };
    let last = [1, 3, 5].map(|r| place(&plan, r));
    let from = plan.put_last(0, &last);
    assert_eq!(from, 3);
    assert_eq!([0, 2, 4, 1, 3, 5].map(|r| place(&plan, r)), [0, 1, 2, 3, 4, 5]);
    assert_eq!(ops(&plan), before);
}
