//! Dominators, post-dominators, loops and liveness.

use handloom_plan::analysis::cfg::{Cfg, Set};
use handloom_plan::analysis::live::Live;

use super::read::entry;

fn list(s: &Set) -> Vec<usize> {
    s.iter().collect()
}

/// A branch on v0 around one of two arms.
const DIAMOND: &str = "
    b0:
        v0:b32 = sreg.tid.x
        v1:p = cmp.lt.u32 v0, 5
        branch v1, b1, b2
    b1:
        v2:b32 = add.b32 v0, 1
        jump b3
    b2:
        v2:b32 = add.b32 v0, 2
        jump b3
    b3:
        v3:b32 = add.b32 v2, v0
        exit
";

/// A loop (b1 to b3) with an inner one (b2).
const NESTED: &str = "
    b0:
        v0:b32 = mov.b32 0
        jump b1
    b1:
        v1:b32 = mov.b32 0
        jump b2
    b2:
        v1:b32 = add.b32 v1, 1
        v2:p = cmp.lt.u32 v1, 4
        branch v2, b2, b3
    b3:
        v0:b32 = add.b32 v0, v1
        v3:p = cmp.lt.u32 v0, 9
        branch v3, b1, b4
    b4:
        exit
";

#[test]
fn arms_meet_at_the_post_dominator() {
    let cfg = Cfg::new(&entry(DIAMOND));
    // Each path to b1, b2 and b3 goes through b0, and those to b3 through neither arm.
    assert_eq!(cfg.idom, [0, 0, 0, 0]);
    assert_eq!(cfg.ipdom, [Some(3), Some(3), Some(3), None]);
    // Lanes that part at b0 are alone in the arms, and together again at b3.
    assert_eq!(list(&cfg.region(0)), [1, 2]);
    assert!(cfg.loops.is_empty() && !cfg.is_odd());
}

#[test]
fn loops_nest() {
    let cfg = Cfg::new(&entry(NESTED));
    assert_eq!(cfg.loop_of, [None, Some(1), Some(2), Some(1), None]);
    assert_eq!(cfg.body(1).map(list), Some(vec![1, 2, 3]));
    assert_eq!(cfg.body(2).map(list), Some(vec![2]));
    assert!(cfg.body(0).is_none());
    // One entry, one latch and neighbouring blocks each.
    assert!(!cfg.is_odd());
    // Lanes that part at the end of the inner loop meet behind it, and then may all be in the loop again.
    assert_eq!(list(&cfg.region(2)), [2]);
    assert_eq!(list(&cfg.region(3)), [1, 2, 3]);
}

#[test]
fn an_endless_loop_has_no_post_dominator() {
    let cfg = Cfg::new(&entry(
        "
        b0:
            v0:b32 = sreg.tid.x
            v1:p = cmp.lt.u32 v0, 5
            branch v1, b1, b2
        b1:
            jump b1
        b2:
            exit
        ",
    ));
    // Lanes in b1 never come to the end, so nothing is on all ways to it but what follows b0's other arm: the end itself.
    assert_eq!(cfg.ipdom[1], None);
    assert_eq!(list(&cfg.region(1)), [1]);
}

#[test]
fn lanes_of_an_endless_loop_meet_nobody() {
    let cfg = Cfg::new(&entry(
        "
        b0:
            v0:b32 = sreg.tid.x
            v1:p = cmp.lt.u32 v0, 5
            jump b1
        b1:
            branch v1, b2, b3
        b2:
            jump b2
        b3:
            v2:p = cmp.lt.u32 v0, 7
            branch v2, b1, b4
        b4:
            exit
        ",
    ));
    // Those that go on round the outer loop do so without them.
    assert_eq!(cfg.ipdom, [Some(1), None, None, None, None]);
    assert_eq!(list(&cfg.region(1)), [1, 2, 3, 4]);
}

#[test]
fn a_loop_with_two_entries_is_odd() {
    let cfg = Cfg::new(&entry(
        "
        b0:
            v0:b32 = sreg.tid.x
            v1:p = cmp.lt.u32 v0, 5
            branch v1, b1, b2
        b1:
            jump b2
        b2:
            v2:p = cmp.lt.u32 v0, 7
            branch v2, b1, b3
        b3:
            exit
        ",
    ));
    // The edge from b2 back to b1 does not go to a block that dominates b2: b0 leads there too.
    assert!(cfg.loops.is_empty() && cfg.is_odd());
}

#[test]
fn a_loop_with_two_latches_is_odd() {
    let cfg = Cfg::new(&entry(
        "
        b0:
            v0:b32 = sreg.tid.x
            v1:p = cmp.lt.u32 v0, 5
            jump b1
        b1:
            branch v1, b1, b2
        b2:
            branch v1, b1, b3
        b3:
            exit
        ",
    ));
    assert_eq!(cfg.body(1).map(list), Some(vec![1, 2]));
    // Lanes from b1 would start the next turn before those that go through b2.
    assert!(cfg.is_odd());
}

#[test]
fn a_loop_with_a_stranger_among_its_blocks_is_odd() {
    let cfg = Cfg::new(&entry(
        "
        b0:
            v0:b32 = sreg.tid.x
            v1:p = cmp.lt.u32 v0, 5
            jump b1
        b1:
            branch v1, b2, b3
        b2:
            exit
        b3:
            jump b1
        ",
    ));
    // b2 is no block of the loop and is between two that are: it would run before lanes of b3 come around.
    assert_eq!(cfg.body(1).map(list), Some(vec![1, 3]));
    assert!(cfg.is_odd());
}

#[test]
fn a_register_lives_from_its_write_to_its_last_read() {
    let f = entry(DIAMOND);
    let live = Live::new(&f, &Cfg::new(&f));
    // v0 is read in both arms and behind; v1 by the end of b0 only; v2 is written on both ways to b3.
    assert_eq!(list(&live.entry[0]), [0; 0]);
    assert_eq!(list(live.exit(0)), [0]);
    assert_eq!(list(&live.entry[1]), [0]);
    assert_eq!(list(live.exit(1)), [0, 2]);
    assert_eq!(list(&live.entry[3]), [0, 2]);
    assert_eq!(list(live.exit(3)), [0; 0]);
}

#[test]
fn a_loop_keeps_what_its_next_turn_reads() {
    let f = entry(NESTED);
    let live = Live::new(&f, &Cfg::new(&f));
    // b1 writes v1 before anybody reads it; v0 goes around.
    assert_eq!(list(&live.entry[1]), [0]);
    assert_eq!(list(&live.entry[2]), [0, 1]);
    assert_eq!(list(live.exit(3)), [0]);
    assert_eq!(list(&live.entry[4]), [0; 0]);
}

#[test]
fn a_guarded_load_reads_what_its_result_held() {
    let lines = |guard: &str| {
        format!(
            "
            b0:
                v0:b32 = mov.b32 7
                v1:b64 = param_address 0
                v2:b32 = sreg.tid.x
                v3:p = cmp.lt.u32 v2, 5
                jump b1
            b1:
                v0:b32 = load.global.b32 [v1]{guard}
                store.global.b32 [v1], v0
                exit
            "
        )
    };
    let at_b1 = |lines: &str| {
        let f = entry(lines);
        list(&Live::new(&f, &Cfg::new(&f)).entry[1])
    };
    // Lanes whose guard is 0 keep the 7; without a guard nobody does.
    assert_eq!(at_b1(&lines(" if v3")), [0, 1, 3]);
    assert_eq!(at_b1(&lines("")), [1]);
}

#[test]
fn the_result_of_a_barrier_is_written_after_its_block() {
    let f = entry(
        "
        b0:
            v0:b32 = mov.b32 7
            v1:b64 = param_address 0
            v2:b32 = sreg.tid.x
            v3:p = cmp.lt.u32 v2, 5
            v0 = barrier.red.popc 0, of v3, then b1
        b1:
            store.global.b32 [v1], v0
            exit
        ",
    );
    let live = Live::new(&f, &Cfg::new(&f));
    assert_eq!(list(&live.entry[1]), [0, 1]);
    // The 7 is dead: the scheduler writes v0 on the way to b1.
    assert_eq!(list(live.exit(0)), [1]);
}
