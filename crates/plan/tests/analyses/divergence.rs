//! Which branches diverge, what is executed in part, and which registers vary for it.

use super::read::{callee, entry};
use super::{ROW, class, diverging, facts, masked, range, speculative};

/// v0: the thread; v2: a parameter; v3: a predicate that differs by lane; v4: one that does not.
const START: &str = "
    b0:
        v0:b32 = sreg.tid.x
        v1:b64 = param_address 0
        v2:b32 = load.param::entry.b32 [v1]
        v3:p = cmp.lt.u32 v0, v2
        v4:p = cmp.lt.u32 v2, 5
";

/// Two arms that write v5, and a read of it where they meet.
fn arms(cond: &str, one: &str, other: &str) -> String {
    format!(
        "{START}
        branch {cond}, b1, b2
    b1:
        {one}
        jump b3
    b2:
        {other}
        jump b3
    b3:
        store.global.b32 [v1], v5
        exit
    "
    )
}

#[test]
fn a_uniform_branch_parts_nobody() {
    let found = facts(&entry(&arms("v4", "v5:b32 = mov.b32 1", "v5:b32 = mov.b32 2")), ROW);
    assert_eq!((diverging(&found), masked(&found)), (vec![], vec![]));
    // All lanes took the same arm: 1 everywhere or 2 everywhere.
    assert_eq!(class(&found, 5), "uniform");
}

#[test]
fn what_both_arms_write_varies_where_they_meet() {
    let found = facts(&entry(&arms("v3", "v5:b32 = mov.b32 1", "v5:b32 = mov.b32 2")), ROW);
    assert_eq!((diverging(&found), masked(&found)), (vec![0], vec![1, 2]));
    assert_eq!(class(&found, 5), "varying");
}

#[test]
fn even_the_same_value_in_both_arms_varies() {
    // It is the same number, but the class is found by definitions, which differ: coarser is safe.
    let found = facts(&entry(&arms("v3", "v5:b32 = mov.b32 1", "v5:b32 = mov.b32 1")), ROW);
    assert_eq!(class(&found, 5), "varying");
}

#[test]
fn a_value_of_one_arm_keeps_its_class() {
    // v6 is written and read by the lanes of one arm alone, all of which get the same. v5 has two definitions and lives at the join.
    let found =
        facts(&entry(&arms("v3", "v6:b32 = add.b32 v2, 1\nv5:b32 = add.b32 v6, v6", "v5:b32 = mov.b32 2")), ROW);
    assert_eq!((class(&found, 6).as_str(), class(&found, 5).as_str()), ("uniform", "varying"));
}

#[test]
fn different_lines_join_to_none() {
    // With a uniform branch: stride 1 or stride 2, decided at run time.
    let found = facts(&entry(&arms("v4", "v5:b32 = add.b32 v0, 1", "v5:b32 = shl.b32 v0, 1")), ROW);
    assert_eq!(class(&found, 5), "varying");
    let found = facts(&entry(&arms("v4", "v5:b32 = add.b32 v0, 1", "v5:b32 = add.b32 v0, v2")), ROW);
    assert_eq!(class(&found, 5), "linear 1");
}

/// A loop that counts v5 up from 0, with v6 made in each turn, and `exit_cond` for another turn.
fn counting(cond: &str, after: &str) -> String {
    format!(
        "{START}
        v5:b32 = mov.b32 0
        jump b1
    b1:
        v6:b32 = add.b32 v5, v2
        v5:b32 = add.b32 v5, 1
        v7:p = cmp.lt.u32 v5, {cond}
        branch v7, b1, b2
    b2:
        {after}
        exit
    "
    )
}

#[test]
fn a_loop_of_equal_turns_leaves_its_counter_uniform() {
    let found = facts(&entry(&counting("v2", "store.global.b32 [v1], v5\nstore.global.b32 [v1], v6")), ROW);
    assert_eq!((diverging(&found), masked(&found)), (vec![], vec![]));
    assert_eq!((class(&found, 5).as_str(), class(&found, 6).as_str()), ("uniform", "uniform"));
    // It has been around: nothing is known of its range, though it began at 0.
    assert_eq!(range(&found, 5), (0, u64::MAX));
}

#[test]
fn lanes_leave_a_loop_at_different_times() {
    // As many turns as the thread's number: lane 0 left with 1 while lane 31 counts on. Temporal divergence.
    let found = facts(&entry(&counting("v0", "store.global.b32 [v1], v5")), ROW);
    assert_eq!((diverging(&found), masked(&found)), (vec![1], vec![1]));
    assert_eq!(class(&found, 5), "varying");
    // v6 is not read behind the loop. In the loop it is computed from v5, which varies.
    assert_eq!(class(&found, 6), "varying");
}

#[test]
fn one_definition_in_a_loop_varies_after_it_too() {
    // v5 is not read behind the loop, v6 is: written once, but each lane has that of its own last turn.
    let found = facts(&entry(&counting("v0", "store.global.b32 [v1], v6")), ROW);
    assert_eq!((class(&found, 5).as_str(), class(&found, 6).as_str()), ("uniform", "varying"));
}

#[test]
fn a_counter_nobody_reads_afterwards_stays_uniform() {
    // All lanes that are in the loop at a time have made as many turns.
    let found = facts(&entry(&counting("v0", "store.global.b32 [v1], v2")), ROW);
    assert_eq!(masked(&found), [1]);
    assert_eq!((class(&found, 5).as_str(), class(&found, 6).as_str()), ("uniform", "uniform"));
}

#[test]
fn an_inner_loop_that_parts_does_not_part_the_outer_one() {
    let found = facts(
        &entry(&format!(
            "{START}
            v5:b32 = mov.b32 0
            jump b1
        b1:
            v6:b32 = mov.b32 0
            jump b2
        b2:
            v6:b32 = add.b32 v6, 1
            v7:p = cmp.lt.u32 v6, v0
            branch v7, b2, b3
        b3:
            v5:b32 = add.b32 v5, 1
            v8:p = cmp.lt.u32 v5, v2
            branch v8, b1, b4
        b4:
            store.global.b32 [v1], v5
            exit
        "
        )),
        ROW,
    );
    // Lanes meet at b3 in each turn of the outer loop.
    assert_eq!((diverging(&found), masked(&found)), (vec![2], vec![2]));
    assert_eq!((class(&found, 5).as_str(), class(&found, 6).as_str()), ("uniform", "uniform"));
}

#[test]
fn leaving_early_parts_all_that_follows() {
    let found = facts(
        &entry(&format!(
            "{START}
            branch v3, b1, b2
        b1:
            v5:b32 = add.b32 v2, 1
            store.global.b32 [v1], v5
            jump b2
        b2:
            v6:b32 = add.b32 v2, 1
            exit
        "
        )),
        ROW,
    );
    // Those that skip b1 meet the others at b2.
    assert_eq!(masked(&found), [1]);
    let found = facts(
        &entry(&format!(
            "{START}
            branch v3, b1, b2
        b1:
            store.global.b32 [v1], v2
            jump b3
        b2:
            exit
        b3:
            store.global.b32 [v1], v2
            exit
        "
        )),
        ROW,
    );
    // Lanes that exit at b2 never meet the others: b3 is executed in part.
    assert_eq!(masked(&found), [1, 2, 3]);
}

#[test]
fn a_switch_parts_lanes_by_its_index() {
    let switch = |index: &str| {
        format!(
            "{START}
            switch {index}, [b1, b2]
        b1:
            v5:b32 = mov.b32 1
            jump b3
        b2:
            v5:b32 = mov.b32 2
            jump b3
        b3:
            store.global.b32 [v1], v5
            exit
        "
        )
    };
    let found = facts(&entry(&switch("v2")), ROW);
    assert_eq!((masked(&found), class(&found, 5).as_str()), (vec![], "uniform"));
    let found = facts(&entry(&switch("v0")), ROW);
    assert_eq!((masked(&found), class(&found, 5).as_str()), (vec![1, 2], "varying"));
}

#[test]
fn memory_may_change_between_groups_of_lanes() {
    let load = |cond: &str, space: &str| {
        arms(cond, &format!("v6:b32 = load.{space}.b32 [v1]\nv5:b32 = add.b32 v6, 1"), "v5:b32 = mov.b32 2")
    };
    // All lanes read it together.
    assert_eq!(class(&facts(&entry(&load("v4", "global")), ROW), 6), "uniform");
    // Part of the lanes may read at one time and others later, when somebody has written.
    assert_eq!(class(&facts(&entry(&load("v3", "global")), ROW), 6), "varying");
    // Nobody writes parameters.
    assert_eq!(class(&facts(&entry(&load("v3", "param::entry")), ROW), 6), "uniform");
}

#[test]
fn clocks_and_masks_of_lanes_differ_between_groups() {
    for what in ["sreg.clock", "activemask"] {
        let read = |cond: &str| arms(cond, &format!("v6:b32 = {what}\nv5:b32 = add.b32 v6, 1"), "v5:b32 = mov.b32 2");
        assert_eq!(class(&facts(&entry(&read("v4")), ROW), 6), "uniform", "{what}");
        assert_eq!(class(&facts(&entry(&read("v3")), ROW), 6), "varying", "{what}");
    }
}

#[test]
fn a_guard_that_differs_leaves_old_values_in_some_lanes() {
    let load = |guard: &str| {
        entry(&format!(
            "{START}\nv5:b32 = mov.b32 7\nv5:b32 = load.param::entry.b32 [v1] if {guard}\nstore.global.b32 [v1], v5\nexit"
        ))
    };
    assert_eq!(class(&facts(&load("v3"), ROW), 5), "varying");
    assert_eq!(class(&facts(&load("v4"), ROW), 5), "uniform");
}

#[test]
fn lanes_that_wait_apart_make_what_follows_unstable() {
    let wait = |cond: &str| {
        format!(
            "{START}
            branch {cond}, b1, b2
        b1:
            barrier.sync 0, then b2
        b2:
            v5:b32 = mov.b32 1
            jump b3
        b3:
            v5:b32 = add.b32 v5, 1
            store.global.b32 [v1], v5
            exit
        "
        )
    };
    let found = facts(&entry(&wait("v4")), ROW);
    assert_eq!((masked(&found), class(&found, 5).as_str()), (vec![], "uniform"));
    // Lanes of b1 wait there while the others go on through b2 and b3, so those are executed in part too, and v5 may be written at
    // different times.
    let found = facts(&entry(&wait("v3")), ROW);
    assert_eq!((masked(&found), class(&found, 5).as_str()), (vec![1, 2, 3], "varying"));
}

#[test]
fn an_op_that_waits_for_lanes_does_so_too() {
    let vote = |cond: &str| {
        format!(
            "{START}
            branch {cond}, b1, b2
        b1:
            v5:b32 = vote.ballot v4, 255
            jump b2
        b2:
            v6:b32 = mov.b32 1
            exit
        "
        )
    };
    let found = facts(&entry(&vote("v4")), ROW);
    assert_eq!((masked(&found), class(&found, 5).as_str()), (vec![], "uniform"));
    let found = facts(&entry(&vote("v3")), ROW);
    // The ballot of one group of lanes is not that of another.
    assert_eq!((masked(&found), class(&found, 5).as_str()), (vec![1, 2], "varying"));
    // A value with one definition keeps its class in b2: whenever lanes write it, they write 1.
    assert_eq!(class(&found, 6), "uniform");
}

#[test]
fn what_a_barrier_counts_is_written_by_lane() {
    let found = facts(
        &entry(&format!("{START}\nv5 = barrier.red.popc 0, of v3, then b1\nb1:\nstore.global.b32 [v1], v5\nexit")),
        ROW,
    );
    assert_eq!((masked(&found), class(&found, 5).as_str()), (vec![], "varying"));
}

#[test]
fn an_odd_function_is_executed_in_part_everywhere() {
    let f = entry(&format!(
        "{START}
        v5:b32 = mov.b32 0
        branch v4, b1, b2
    b1:
        v5:b32 = add.b32 v5, 1
        jump b2
    b2:
        v5:b32 = add.b32 v5, 10
        v6:p = cmp.lt.u32 v5, 50
        branch v6, b1, b3
    b3:
        store.global.b32 [v1], v5
        exit
    "
    ));
    let found = facts(&f, ROW);
    assert!(found.is_irreducible);
    // Blocks do not bring lanes together where the graph says: what has several definitions varies, what has one does not. So the branch at
    // the end of b2, which rests on v5, diverges; that of b0 does not.
    assert_eq!((diverging(&found), masked(&found)), (vec![2], vec![0, 1, 2, 3]));
    assert_eq!((class(&found, 5).as_str(), class(&found, 2).as_str()), ("varying", "uniform"));
}

#[test]
fn a_warp_with_missing_lanes_executes_all_in_part() {
    let f = entry(&arms("v4", "v5:b32 = mov.b32 1", "v5:b32 = mov.b32 2"));
    assert_eq!(masked(&facts(&f, ROW)), [0; 0]);
    assert_eq!(masked(&facts(&f, [33, 1, 1])), [0, 1, 2, 3]);
    // 8 by 4 threads are a warp.
    assert_eq!(masked(&facts(&f, [8, 4, 1])), [0; 0]);
    // Still all lanes that there are go the same way.
    assert_eq!(class(&facts(&f, [33, 1, 1]), 5), "uniform");
}

#[test]
fn a_called_function_is_executed_in_part() {
    // Whoever calls it may be one lane.
    let lines = "b0:\nv0:b32 = sreg.laneid\nv1:b32 = add.b32 v0, 1\nret";
    assert_eq!(masked(&facts(&callee(lines), ROW)), [0]);
    assert_eq!(class(&facts(&callee(lines), ROW), 1), "linear 1");
}

#[test]
fn a_masked_copy_may_test_before_its_first_access() {
    // A masked copy does a load of writable memory for its lanes at once, so it cannot start over after it; a full copy can.
    let index = "v6:b32 = load.global.b32 [v1]\nv7:b32 = add.b32 v0, v2\nv8:b64 = ext.u32.b32.b64 v7\nv5:b32 = ext.u32.b64.b32 v8";
    let after_load = |cond: &str| class(&speculative(&entry(&arms(cond, index, "v5:b32 = mov.b32 2")), ROW), 8);
    assert_eq!((after_load("v4").as_str(), after_load("v3").as_str()), ("linear 1", "varying"));
    let index = "v7:b32 = add.b32 v0, v2\nv8:b64 = ext.u32.b32.b64 v7\nv5:b32 = ext.u32.b64.b32 v8";
    let at_once = class(&speculative(&entry(&arms("v3", index, "v5:b32 = mov.b32 2")), ROW), 8);
    assert_eq!(at_once, "linear 1");
}

#[test]
fn registers_that_only_read_each_other_vary() {
    // Neither is ever written before it is read: zero at first, but nothing says so to the analysis.
    let found = facts(&entry("b0:\njump b1\nb1:\nv0:b32 = add.b32 v1, 1\nv1:b32 = add.b32 v0, 1\njump b1"), ROW);
    assert_eq!((class(&found, 0).as_str(), class(&found, 1).as_str()), ("varying", "varying"));
}
