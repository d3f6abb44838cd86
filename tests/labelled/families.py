#!/usr/bin/env python3
"""Writes the families of labelled kernels of tests/filetests/find: files whose first line ends in "(families.py)".

    python3 tests/labelled/families.py            # writes them
    python3 tests/labelled/families.py --check    # writes nothing, fails if a file would change

A family is one program in many variants, of which each is ordered or not by the rules of the manual's memory consistency model; the function
that makes it says by which. Labels (`//~`) follow from those rules here, never from what a check found. The file tests hold them.
"""

import pathlib
import sys

from contents import unwritten, variables
from meetings import mbarrier_objects, own_window, shared_barriers
from family import BAR, BOX, ONE, PLACES, SCOPES, WHO, Family, note, reaches, wait_for

HERE = pathlib.Path(__file__).resolve().parent.parent / "filetests" / "find"

def message(place, release, acquire, data, write="st.global.u32 [%data], 7;", read="ld.global.u32 %r3, [%data];"):
    """One thread writes and raises a flag, another one waits for the flag and reads."""
    return WHO[place][0] + [
        "setp.eq.u32 %p0, %r0, 0;", "@%p0 bra WAIT;",
        note(write, data), *release, "ret;",
        "WAIT:", *acquire[0], "setp.eq.u32 %p1, %r2, 0;", "@%p1 bra WAIT;", *acquire[1:],
        note(read, data), "st.global.u32 [%out], %r3;",
    ]


def fence_scopes():
    """A release pattern (fence, strong write) synchronizes with an acquire pattern (strong read, fence) if their end points, the fences, are
    morally strong: each scope must include the other thread. The flag is of the widest scope, so it is no race itself."""
    f = Family("race/fence_scopes", [
        "A message with fences of all scopes, at all distances.",
        "The two fences must include each other's threads in their scopes: the narrower one decides. The flag itself reaches everywhere."], seeds="0..2")
    cases = [(p, s, "gpu") for p in PLACES for s in SCOPES] + [(p, "gpu", s) for p in PLACES for s in ("cta", "cluster", "sys")]
    for i, (place, first, second) in enumerate(cases):
        # Kinds of fence take turns: each is a release and an acquire fence.
        kind = ["fence.acq_rel", "fence.sc", "membar"][i % 3]

        def fence(scope, kind=kind):
            level = {"cta": "cta", "gpu": "gl", "sys": "sys"}.get(scope)
            return f"membar.{level};" if kind == "membar" and level else f"{kind.replace('membar', 'fence.acq_rel')}.{scope};"
        fine = reaches(first, place) and reaches(second, place)
        body = message(
            place, [fence(first), "st.relaxed.sys.global.u32 [%flag], 1;"],
            [["ld.relaxed.sys.global.u32 %r2, [%flag];"], fence(second)],
            None if fine else "race scope_too_narrow")
        f.add(f"{place}_{first}_{second}", body, WHO[place][1])
    return f


def operation_scopes():
    """As above with a release write and an acquire read, whose scopes are those of the flag too: if they do not include each other's threads, the
    accesses to the flag are not morally strong and race, nothing is observed, and the data is not ordered, which wider scopes would do."""
    f = Family("race/operation_scopes", [
        "A message with a release and an acquire operation of all scopes, at all distances.",
        "Where a scope does not include the other thread, the flag is a race itself, and the data is not ordered by it."], seeds="0..2")
    cases = {
        "cta": ["cta cta", "cta sys", "cluster cta", "gpu cta", "sys sys"],
        "cluster": ["cta cta", "cta cluster", "cluster cta", "cluster cluster", "cluster gpu", "gpu cluster", "sys cta", "gpu sys"],
        "gpu": ["cta cta", "cta gpu", "gpu cta", "cluster cluster", "cluster gpu", "gpu cluster", "sys cluster", "gpu gpu", "gpu sys", "sys gpu"],
    }
    for place, pairs in cases.items():
        for first, second in (pair.split() for pair in pairs):
            fine = reaches(first, place) and reaches(second, place)
            flag = None if fine else "race atomic_scopes"
            body = message(
                place, [note(f"st.release.{first}.global.u32 [%flag], 1;", flag)],
                [[note(f"ld.acquire.{second}.global.u32 %r2, [%flag];", flag)]],
                None if fine else "race scope_too_narrow")
            f.add(f"{place}_{first}_{second}", body, WHO[place][1])
    return f


def patterns():
    """All kinds of release pattern with all kinds of acquire pattern. A pattern that is none, or on one side only, orders nothing. A flag that is
    written or read by a weak access races with the other side."""
    f = Family("race/patterns", [
        "Kinds of release patterns with kinds of acquire patterns, and what only looks like one.",
        "A reduction is a release but no acquire; a fence behind the write of the flag, or before the read, is on the wrong side."], seeds="0..2")
    releases = {
        "store": (["st.release.gpu.global.u32 [%flag], 1;"], True),
        "fence_store": (["fence.acq_rel.gpu;", "st.relaxed.gpu.global.u32 [%flag], 1;"], True),
        "release_fence_store": (["fence.release.gpu;", "st.relaxed.gpu.global.u32 [%flag], 1;"], True),
        "sc_store": (["fence.sc.gpu;", "st.relaxed.gpu.global.u32 [%flag], 1;"], True),
        "fence_red": (["fence.acq_rel.gpu;", "red.relaxed.gpu.global.add.u32 [%flag], 1;"], True),
        "red": (["red.release.gpu.global.add.u32 [%flag], 1;"], True),
        "exch": (["atom.release.gpu.global.exch.b32 %r4, [%flag], 1;"], True),
        "add_both": (["atom.acq_rel.gpu.global.add.u32 %r4, [%flag], 1;"], True),
        "fence_exch": (["membar.gl;", "atom.relaxed.gpu.global.exch.b32 %r4, [%flag], 1;"], True),
        "two_flags": (["st.release.gpu.global.u32 [%flag+4], 1;", "st.relaxed.gpu.global.u32 [%flag], 1;"], False),
        "same_flag_twice": (["st.release.gpu.global.u32 [%flag], 0;", "st.relaxed.gpu.global.u32 [%flag], 1;"], True),
        "relaxed": (["st.relaxed.gpu.global.u32 [%flag], 1;"], False),
        "fence_behind": (["st.relaxed.gpu.global.u32 [%flag], 1;", "fence.acq_rel.gpu;"], False),
        "acquire_fence": (["fence.acquire.gpu;", "st.relaxed.gpu.global.u32 [%flag], 1;"], False),
        "acquiring_exch": (["atom.acquire.gpu.global.exch.b32 %r4, [%flag], 1;"], False),
    }
    acquires = {
        "load": ([["ld.acquire.gpu.global.u32 %r2, [%flag];"]], True),
        "load_fence": ([["ld.relaxed.gpu.global.u32 %r2, [%flag];"], "fence.acq_rel.gpu;"], True),
        "load_acquire_fence": ([["ld.relaxed.gpu.global.u32 %r2, [%flag];"], "fence.acquire.gpu;"], True),
        "cas": ([["atom.acquire.gpu.global.cas.b32 %r2, [%flag], 1, 2;"]], True),
        "add_fence": ([["atom.relaxed.gpu.global.or.b32 %r2, [%flag], 0;"], "fence.sc.gpu;"], True),
        "relaxed": ([["ld.relaxed.gpu.global.u32 %r2, [%flag];"]], False),
        "fence_before": ([["fence.acq_rel.gpu;", "ld.relaxed.gpu.global.u32 %r2, [%flag];"]], None),
        "release_fence": ([["ld.relaxed.gpu.global.u32 %r2, [%flag];"], "fence.release.gpu;"], False),
        "releasing_cas": ([["atom.release.gpu.global.cas.b32 %r2, [%flag], 1, 2;"]], False),
        "other_load": ([["ld.relaxed.gpu.global.u32 %r2, [%flag];"], "ld.acquire.gpu.global.u32 %r5, [%flag+8];"], False),
    }
    pairs = [(r, "load") for r in releases] + [("store", a) for a in acquires if a not in ("load", "fence_before")]
    pairs += [("fence_red", "load_fence"), ("red", "cas"), ("exch", "add_fence"), ("fence_behind", "load_fence"), ("red", "relaxed")]
    for first, second in pairs:
        (release, is_release), (acquire, is_acquire) = releases[first], acquires[second]
        body = message("gpu", release, acquire, None if is_release and is_acquire else "race unordered")
        f.add(f"{first}__{second}", body, WHO["gpu"][1])
    weak = [
        ("weak_flag", ["fence.acq_rel.gpu;", note("st.global.u32 [%flag], 1;", "race unordered")],
         [[note("ld.acquire.gpu.global.u32 %r2, [%flag];", "race unordered")]]),
        ("volatile_flag", ["fence.acq_rel.gpu;", note("st.volatile.global.u32 [%flag], 1;", "race unordered")],
         [[note("ld.volatile.global.u32 %r2, [%flag];", "race unordered")], "fence.acq_rel.gpu;"]),
    ]
    for name, release, acquire in weak:
        f.add(name, message("gpu", release, acquire, "race unordered"), WHO["gpu"][1])
    return f


def chains():
    """Causality is transitive (cumulativity): what one synchronizes with another, and that one with a third, is ordered between the first and the
    third, whatever the scopes of the two steps, if each step reaches. Observation order goes through atomic read-modify-writes, and through
    nothing else: another plain or relaxed write breaks it."""
    # With other seeds the blocks take their turns in another order in compiled code.
    f = Family("race/chains", [
        "Messages over a third thread: each step must order on its own, and then the whole is ordered.",
        "A flag may be passed on by atomic read-modify-writes, which keep what was released; a store does not."])
    # Threads 0 and 1 are two warps of block 0, thread 2 is in block 1.
    who = ["mov.u32 %r0, %tid.x;", "and.b32 %r1, %r0, 31;", "setp.ne.u32 %p7, %r1, 0;", "@%p7 ret;", "shr.u32 %r0, %r0, 5;",
           "mov.u32 %r1, %ctaid.x;", "mad.lo.u32 %r0, %r1, 2, %r0;", "setp.gt.u32 %p7, %r0, 2;", "@%p7 ret;",
           "setp.eq.u32 %p0, %r0, 1;", "@%p0 bra SECOND;", "setp.eq.u32 %p0, %r0, 2;", "@%p0 bra THIRD;"]
    steps = {
        "both": ("cta", "gpu", None, None), "wide": ("gpu", "gpu", None, None), "first_sys": ("sys", "gpu", None, None),
        "second_cta": ("cta", "cta", "race scope_too_narrow", "race atomic_scopes"),
        "second_cluster": ("cta", "cluster", "race scope_too_narrow", "race atomic_scopes"),
    }
    for name, (one, two, data, flag) in steps.items():
        f.add(f"steps_{name}", who + [
            note("st.global.u32 [%data], 7;", data), f"st.release.{one}.global.u32 [%flag], 1;", "ret;",
            "SECOND:", f"ld.acquire.{one}.global.u32 %r2, [%flag];", "setp.eq.u32 %p1, %r2, 0;", "@%p1 bra SECOND;",
            note(f"st.release.{two}.global.u32 [%flag+4], 1;", flag), "ret;",
            "THIRD:", note(f"ld.acquire.{two}.global.u32 %r2, [%flag+4];", flag), "setp.eq.u32 %p1, %r2, 0;", "@%p1 bra THIRD;",
            note("ld.global.u32 %r3, [%data];", data), "st.global.u32 [%out], %r3;"], "2, 64")
    middles = {
        # A read-modify-write continues what was released, with any order and a scope that reaches both ends.
        "relaxed_atomic": ("atom.relaxed.gpu.global.add.u32 %r4, [%flag], 1;", None, None),
        "reduction": ("red.relaxed.gpu.global.add.u32 [%flag], 1;", None, None),
        "exchange": ("atom.relaxed.gpu.global.exch.b32 %r4, [%flag], 2;", None, None),
        # A store is a new write, which nobody's release is before.
        "relaxed_store": ("st.relaxed.gpu.global.u32 [%flag], 2;", "race unordered", None),
        "released_store": ("st.release.gpu.global.u32 [%flag], 2;", "race unordered", None),
        # It takes no part for the third thread: not morally strong with its read.
        "narrow_atomic": ("atom.relaxed.cta.global.add.u32 %r4, [%flag], 1;", "race scope_too_narrow", "race atomic_scopes"),
    }
    for name, (middle, data, flag) in middles.items():
        f.add(f"through_{name}", who + [
            note("st.global.u32 [%data], 7;", data), "st.release.gpu.global.u32 [%flag], 1;", "ret;",
            # It does not acquire.
            "SECOND:", "ld.relaxed.gpu.global.u32 %r2, [%flag];", "setp.eq.u32 %p1, %r2, 0;", "@%p1 bra SECOND;", note(middle, flag), "ret;",
            "THIRD:", note("ld.acquire.gpu.global.u32 %r2, [%flag];", flag), "setp.lt.u32 %p1, %r2, 2;", "@%p1 bra THIRD;",
            note("ld.global.u32 %r3, [%data];", data), "st.global.u32 [%out], %r3;"], "2, 64")
    # The second one takes the message by a barrier of its block and passes it on; without the barrier its release says nothing of the first one.
    for name, barrier, data in [("barrier_then_release", "bar.sync 0;", None), ("release_without_barrier", None, "race unordered")]:
        f.add(name, [
            "mov.u32 %r0, %tid.x;", "mov.u32 %r1, %ctaid.x;", "setp.ne.u32 %p6, %r1, 0;", "@%p6 bra THIRD;",
            "setp.eq.u32 %p0, %r0, 0;", note("@%p0 st.global.u32 [%data], 7;", data), *([barrier] if barrier else []),
            "setp.eq.u32 %p0, %r0, 32;", "@%p0 st.release.gpu.global.u32 [%flag], 1;", "ret;",
            "THIRD:", "setp.ne.u32 %p0, %r0, 0;", "@%p0 ret;",
            "AGAIN:", "ld.acquire.gpu.global.u32 %r2, [%flag];", "setp.eq.u32 %p1, %r2, 0;", "@%p1 bra AGAIN;",
            note("ld.global.u32 %r3, [%data];", data), "st.global.u32 [%out], %r3;"], "2, 64")
    # The other way: one thread acquires, a barrier tells its block.
    for name, barrier, data in [("acquire_then_barrier", "bar.sync 0;", None), ("acquire_then_warp_barrier", "bar.warp.sync -1;", "race unordered")]:
        f.add(name, [
            "mov.u32 %r0, %tid.x;", "mov.u32 %r1, %ctaid.x;", "setp.ne.u32 %p6, %r1, 0;", "@%p6 bra TAKE;",
            "setp.ne.u32 %p0, %r0, 0;", "@%p0 ret;", note("st.global.u32 [%data], 7;", data), "st.release.gpu.global.u32 [%flag], 1;", "ret;",
            "TAKE:", "setp.ne.u32 %p0, %r0, 0;", "@%p0 bra MEET;",
            "AGAIN:", "ld.acquire.gpu.global.u32 %r2, [%flag];", "setp.eq.u32 %p1, %r2, 0;", "@%p1 bra AGAIN;",
            "MEET:", barrier, "setp.ne.u32 %p0, %r0, 33;", "@%p0 ret;",
            note("ld.global.u32 %r3, [%data];", data), "st.global.u32 [%out], %r3;"], "2, 64")
    return f


def barriers():
    """`bar.sync`, `bar.red` and `bar.arrive` synchronize with `bar.sync` and `bar.red` on the same barrier; `bar.warp.sync` orders the lanes that
    it names. Votes, shuffles and other warp-level instructions order nothing, nor do fences without strong accesses around them."""
    f = Family("race/barriers", [
        "One thread writes a word of shared memory, another one reads it: what stands between decides.",
        "Barriers order who takes part in them, on one barrier; fences, shuffles and votes alone order nothing."], seeds="0..3")
    apart, beside, near = (1, 40), (1, 9), (1, 20)
    middles = [
        # Name, who writes and who reads, what stands between, the class of the race.
        ("sync", apart, ["bar.sync 0;"], None), ("sync_unaligned", apart, ["barrier.sync 0;"], None),
        ("sync_counted", apart, ["bar.sync 3, 64;"], None), ("sync_other_number", apart, ["bar.sync 7;"], None),
        ("reduction", apart, ["bar.red.popc.u32 %r5, 0, %p0;"], None), ("reduction_counted", apart, ["bar.red.or.pred %p2, 1, 64, %p0;"], None),
        ("twice", apart, ["bar.sync 0;", "bar.sync 1;"], None),
        ("nothing", apart, [], "unordered"), ("nothing_in_warp", beside, [], "same_warp"),
        ("fence_alone", apart, ["fence.acq_rel.cta;"], "unordered"), ("fence_of_gpu_alone", apart, ["fence.acq_rel.gpu;"], "unordered"),
        ("warp_barrier", beside, ["bar.warp.sync -1;"], None), ("warp_barrier_apart", apart, ["bar.warp.sync -1;"], "unordered"),
        ("shuffle", beside, ["shfl.sync.bfly.b32 %r5, %r0, 8, 31, -1;"], "same_warp"), ("vote", beside, ["vote.sync.ballot.b32 %r5, %p0, -1;"], "same_warp"),
        ("match", beside, ["match.any.sync.b32 %r5, %r0, -1;"], "same_warp"), ("redux", beside, ["redux.sync.add.u32 %r5, %r0, -1;"], "same_warp"),
        ("elect", beside, ["elect.sync %r5|%p2, -1;"], "same_warp"), ("fence_in_warp", beside, ["fence.acq_rel.cta;"], "same_warp"),
        ("mask_of_half", beside, ["setp.ge.u32 %p3, %r0, 16;", "@%p3 bra OTHER;", "bar.warp.sync 0xffff;", "OTHER:"], None),
        ("masks_of_halves", near, ["and.b32 %r6, %r0, 31;", "setp.ge.u32 %p3, %r6, 16;", "@%p3 bra HIGH;", "bar.warp.sync 0xffff;", "bra MET;",
                                   "HIGH:", "bar.warp.sync 0xffff0000;", "MET:"], "same_warp"),
        ("mask_of_two", near, ["setp.eq.u32 %p3, %r0, 1;", "setp.eq.u32 %p4, %r0, 20;", "or.pred %p3, %p3, %p4;", "@!%p3 bra MET;",
                               "bar.warp.sync 0x100002;", "MET:"], None),
        ("of_one_warp_each", apart, ["setp.ge.u32 %p3, %r0, 32;", "@%p3 bra HIGH;", "bar.sync 1, 32;", "bra MET;", "HIGH:", "bar.sync 2, 32;", "MET:"], "unordered"),
        ("arrive_and_sync", apart, ["setp.ge.u32 %p3, %r0, 32;", "@%p3 bra HIGH;", "bar.arrive 1, 64;", "bra MET;", "HIGH:", "bar.sync 1, 64;", "MET:"], None),
        ("sync_and_arrive", apart, ["setp.ge.u32 %p3, %r0, 32;", "@%p3 bra HIGH;", "bar.sync 1, 64;", "bra MET;", "HIGH:", "bar.arrive 1, 64;", "MET:"], "unordered"),
        ("arrive_then_sync_of_all", apart, ["setp.ge.u32 %p3, %r0, 32;", "@%p3 bra HIGH;", "bar.arrive 1, 64;", "bra MET;", "HIGH:", "bar.sync 1, 64;", "MET:",
                                            "bar.sync 0;"], None),
    ]
    for name, (writer, reader), middle, race in middles:
        label = race and f"race {race}"
        # The cell is written once before, with a barrier, so that its bytes are known whoever comes first.
        f.add(name, [
            "mov.u32 %r0, %tid.x;", f"setp.eq.u32 %p0, %r0, {writer};", f"setp.eq.u32 %p1, %r0, {reader};",
            "@%p0 st.shared.u32 [cell], 1;", "bar.sync 0;",
            note("@%p0 st.shared.u32 [cell], 7;", label), *middle,
            note("@%p1 ld.shared.u32 %r3, [cell];", label), "@%p1 st.global.u32 [%out], %r3;"], "1, 64", shared=[".align 4 .b32 cell"])
    # What a thread does between its arrival and its end comes after the arrival, and the end of a thread orders nothing.
    for name, arrive, behind, label in [
        ("arrive_and_exit", "bar.arrive 1, 64;", False, None), ("arrive_write_and_exit", "bar.arrive 1, 64;", True, "race unordered"),
        ("arrive_write_and_meet", "bar.arrive 1, 64;", True, "race unordered")]:
        write = note("@%p0 st.shared.u32 [cell], 7;", label)
        f.add(name, [
            "mov.u32 %r0, %tid.x;", "setp.eq.u32 %p0, %r0, 1;", "setp.eq.u32 %p1, %r0, 40;", "setp.ge.u32 %p3, %r0, 32;", "@%p0 st.shared.u32 [cell], 1;", "bar.sync 0;",
            "@%p3 bra HIGH;", *([arrive, write] if behind else [write, arrive]), *(["bar.sync 0;"] if name.endswith("meet") else []), "ret;",
            "HIGH:", "bar.sync 1, 64;", note("@%p1 ld.shared.u32 %r3, [cell];", label), *(["bar.sync 0;"] if name.endswith("meet") else []), "@%p1 st.global.u32 [%out], %r3;"],
            "1, 64", shared=[".align 4 .b32 cell"])
    # Two warps meet at a barrier of 64 threads, a third one exits beside them: it takes no part. Where it has arrived first, it does.
    for name, third, label in [("exit_beside_a_count", [], "race unordered"), ("arrive_beside_a_count", ["bar.arrive 1, 96;"], None)]:
        f.add(name, [
            "mov.u32 %r0, %tid.x;", "setp.eq.u32 %p0, %r0, 70;", "setp.eq.u32 %p1, %r0, 40;", "setp.ge.u32 %p3, %r0, 64;", "@%p0 st.shared.u32 [cell], 1;", "bar.sync 0;",
            "@%p3 bra THIRD;", f"bar.sync 1, {96 if third else 64};", note("@%p1 ld.shared.u32 %r3, [cell];", label), "@%p1 st.global.u32 [%out], %r3;", "ret;",
            "THIRD:", note("@%p0 st.shared.u32 [cell], 7;", label), *third], "1, 96", shared=[".align 4 .b32 cell"])
    # A loop: the turn's value is written, a barrier, all read it. Without a second barrier the next turn's write meets the reads of this one.
    for name, second, cells, label in [
        ("loop_two_barriers", True, 1, None), ("loop_one_barrier", False, 1, ["race unordered", "race same_warp"]), ("loop_two_cells", False, 2, None)]:
        f.add(name, [
            "mov.u32 %r0, %tid.x;", "setp.eq.u32 %p0, %r0, 0;", "mov.u32 %r1, 0;", "mov.u32 %r4, cells;",
            "TURN:", f"rem.u32 %r5, %r1, {cells};", "mad.lo.u32 %r5, %r5, 4, %r4;", note("@%p0 st.shared.u32 [%r5], %r1;", *(label or [])),
            "bar.sync 0;", note("ld.shared.u32 %r3, [%r5];", *(label or [])), *(["bar.sync 0;"] if second else []),
            "add.u32 %r1, %r1, 1;", "setp.lt.u32 %p1, %r1, 5;", "@%p1 bra TURN;", "@%p0 st.global.u32 [%out], %r3;"],
            "1, 64", shared=[".align 4 .b32 cells[2]"])
    return f


def clusters():
    """`barrier.cluster.arrive` synchronizes with `barrier.cluster.wait`. What stands between the two is not ordered.  Barriers of a block are of no use to another one."""
    f = Family("race/cluster_barriers", [
        "A word that one block of a cluster writes, in global memory or in the shared memory of the other one, which reads it.",
        "What stands between the arrival and the wait is not ordered, and barriers of a block are of no use."], seeds="0..3")
    both = ["barrier.cluster.arrive;", "barrier.cluster.wait;"]
    middles = {
        "arrive_wait": (both, None), "aligned": (["barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;"], None),
        "release_acquire": (["barrier.cluster.arrive.release;", "barrier.cluster.wait.acquire;"], None),
        "fence_relaxed": (["fence.acq_rel.cluster;", "barrier.cluster.arrive.relaxed;", "barrier.cluster.wait;"], None),
        "wide_fence_relaxed": (["fence.sc.sys;", "barrier.cluster.arrive.relaxed;", "barrier.cluster.wait;"], None),
        "relaxed_then_released": (["barrier.cluster.arrive.relaxed;", "barrier.cluster.wait;", *both], None),
        # A relaxed arrival tells nothing but what a fence before it has released, to those whom the fence reaches.
        "relaxed": (["barrier.cluster.arrive.relaxed;", "barrier.cluster.wait;"], "unordered"),
        "relaxed_aligned": (["barrier.cluster.arrive.relaxed.aligned;", "barrier.cluster.wait.acquire.aligned;"], "unordered"),
        "relaxed_twice": (["barrier.cluster.arrive.relaxed;", "barrier.cluster.wait;"] * 2, "unordered"),
        "narrow_fence_relaxed": (["fence.acq_rel.cta;", "barrier.cluster.arrive.relaxed;", "barrier.cluster.wait;"], "unordered"),
        "acquire_fence_relaxed": (["fence.acquire.cluster;", "barrier.cluster.arrive.relaxed;", "barrier.cluster.wait;"], "unordered"),
        "fence_behind_relaxed": (["barrier.cluster.arrive.relaxed;", "fence.acq_rel.cluster;", "barrier.cluster.wait;"], "unordered"),
        "block_barrier": (["bar.sync 0;"], "unordered"), "fence_alone": (["fence.acq_rel.cluster;"], "unordered"),
    }
    for name, (middle, race) in middles.items():
        label = race and f"race {race}"
        f.add(f"{name}", [
            "mov.u32 %r0, %ctaid.x;", "setp.eq.u32 %p0, %r0, 0;", note("@!%p0 st.global.u32 [%data], 7;", label), *middle,
            note("@%p0 ld.global.u32 %r3, [%data];", label), "@%p0 st.global.u32 [%out], %r3;"], "2, 1;cluster=(2,1,1)")
    # The shared memory of the other block, which must have begun before and must not have ended: a barrier at both ends.
    for name, middle, race in [("remote_arrive_wait", both, None), ("remote_nothing", [], "unordered")]:
        label = race and f"race {race}"
        f.add(name, [
            "mov.u32 %r0, %ctaid.x;", "setp.eq.u32 %p0, %r0, 0;", "mov.u32 %r4, cell;", "@%p0 st.shared.u32 [cell], 1;", *both,
            "mapa.shared::cluster.u32 %r5, %r4, 0;", note("@!%p0 st.shared::cluster.u32 [%r5], 7;", label), *middle,
            note("@%p0 ld.shared.u32 %r3, [cell];", label), "@%p0 st.global.u32 [%out], %r3;", *both],
            "2, 1;cluster=(2,1,1)", shared=[".align 4 .b32 cell"])
    # Shared memory is gone when its block has ended: who reads it there must be known to have done so.
    ended = "sync block_ended"
    for name, end, label in [("stays", both, None), ("ends", [], ended), ("ends_behind_relaxed", ["barrier.cluster.arrive.relaxed;", "barrier.cluster.wait;"], ended)]:
        f.add(f"remote_{name}", [
            "mov.u32 %r0, %ctaid.x;", "setp.eq.u32 %p0, %r0, 0;", "mov.u32 %r4, cell;", "@%p0 st.shared.u32 [cell], 1;", *both,
            "mapa.shared::cluster.u32 %r5, %r4, 0;", note("@!%p0 ld.shared::cluster.u32 %r3, [%r5];", label), "@!%p0 st.global.u32 [%out], %r3;", *end],
            "2, 1;cluster=(2,1,1)", shared=[".align 4 .b32 cell"])
    # Only who writes must release: the arrival of who reads may be relaxed.
    for name, writer, reader, race in [("reader_relaxed", ".release", ".relaxed", None), ("writer_relaxed", ".relaxed", ".release", "race unordered")]:
        f.add(name, [
            "mov.u32 %r0, %ctaid.x;", "setp.eq.u32 %p0, %r0, 0;", "@%p0 bra READS;", note("st.global.u32 [%data], 7;", race), f"barrier.cluster.arrive{writer};", "barrier.cluster.wait;", "ret;",
            "READS:", f"barrier.cluster.arrive{reader};", "barrier.cluster.wait;", note("ld.global.u32 %r3, [%data];", race), "st.global.u32 [%out], %r3;"], "2, 1;cluster=(2,1,1)")
    # Between arrival and wait nothing is ordered.
    f.add("written_between", [
        "mov.u32 %r0, %ctaid.x;", "setp.eq.u32 %p0, %r0, 0;", "barrier.cluster.arrive;", note("@!%p0 st.global.u32 [%data], 7;", "race unordered"), "barrier.cluster.wait;",
        note("@%p0 ld.global.u32 %r3, [%data];", "race unordered"), "@%p0 st.global.u32 [%out], %r3;"], "2, 1;cluster=(2,1,1)")
    f.add("read_between", [
        "mov.u32 %r0, %ctaid.x;", "setp.eq.u32 %p0, %r0, 0;", note("@!%p0 st.global.u32 [%data], 7;", "race unordered"), "barrier.cluster.arrive;",
        note("@%p0 ld.global.u32 %r3, [%data];", "race unordered"), "barrier.cluster.wait;", "@%p0 st.global.u32 [%out], %r3;"], "2, 1;cluster=(2,1,1)")
    # The barrier of one cluster is not that of another one: block 0 reads what block 3 of the second cluster writes.
    f.add("other_cluster", [
        "mov.u32 %r0, %ctaid.x;", "setp.eq.u32 %p0, %r0, 0;", "setp.eq.u32 %p1, %r0, 3;", note("@%p1 st.global.u32 [%data], 7;", "race unordered"), *both,
        note("@%p0 ld.global.u32 %r3, [%data];", "race unordered"), "@%p0 st.global.u32 [%out], %r3;"], "4, 1;cluster=(2,1,1)")
    f.add("waited_without_arrival", ["barrier.cluster.arrive;", "barrier.cluster.wait;", note("barrier.cluster.wait;", "barrier wait_without_arrival")], "2, 32;cluster=(2,1,1)")
    f.add("waited_without_arrival_alone", [note("barrier.cluster.wait;", "barrier wait_without_arrival")], ONE)
    return f


def atomics():
    """Two atomics on one location are morally strong, and no race, if each is of a scope that includes the other's thread and they overlap completely.
    Operations on vectors and packed elements are one for each element."""
    f = Family("race/atomic_kinds", [
        "Atomics and reductions of all kinds on one location, with a scope that reaches the other thread and with one that does not.",
        "Beside them other sizes, other kinds of access, and elements of vectors."], seeds="0..2")
    kinds = {
        "add_u32": "red{}.global.add.u32 [%data], 1;", "exch_b64": "atom{}.global.exch.b64 %d0, [%data], 3;",
        "cas_b16": "atom{}.global.cas.b16 %h0, [%data], %h1, %h2;", "min_s32": "atom{}.global.min.s32 %r4, [%data], -1;",
        "add_f32": "red{}.global.add.f32 [%data], 0f3f800000;", "add_f64": "atom{}.global.add.f64 %d0, [%data], 0d3ff0000000000000;",
        "inc": "atom{}.global.inc.u32 %r4, [%data], 9;", "or_b64": "red{}.global.or.b64 [%data], 1;",
        "f16x2": "red{}.global.add.noftz.f16x2 [%data], %r6;", "v2_f32": "red{}.global.v2.f32.add [%data], {{%r6, %r6}};",
        "cas_b128": "atom{}.global.exch.b128 %q0, [%data], %q1;",
    }
    made = ["mov.u32 %r6, 0;", "mov.u16 %h1, 0;", "mov.u16 %h2, 1;", ".reg .b128 %q<2>;", "mov.b64 %d1, 0;", "mov.b128 %q1, {%d1, %d1};"]
    for i, (name, text) in enumerate(kinds.items()):
        place = ["gpu", "cluster"][i % 2]
        right, narrow = {"gpu": (".gpu", ".cta" if i % 4 else ".cluster"), "cluster": (".cluster", ".cta")}[place]
        text = text.replace("%r6", "%f0") if name == "v2_f32" else text
        first = made + ([".reg .f32 %f<2>;", "mov.f32 %f0, 0f00000000;"] if name == "v2_f32" else [])
        f.add(f"{name}_reaches", first + [text.format(right)], WHO[place][1])
        f.add(f"{name}_narrow", first + [note(text.format(narrow), "race atomic_scopes")], WHO[place][1])
    both = ["mov.u32 %r0, %ctaid.x;", "setp.eq.u32 %p0, %r0, 0;"]
    beside = [
        ("beside_relaxed_store", "atom.global.add.u32 %r4, [%data], 1;", "st.relaxed.gpu.global.u32 [%data], 5;", None),
        ("beside_weak_store", "atom.global.add.u32 %r4, [%data], 1;", "st.global.u32 [%data], 5;", "unordered"),
        ("beside_narrow_load", "atom.global.add.u32 %r4, [%data], 1;", "ld.relaxed.cta.global.u32 %r5, [%data];", "atomic_scopes"),
        ("beside_volatile_load", "atom.global.add.u32 %r4, [%data], 1;", "ld.volatile.global.u32 %r5, [%data];", "unordered"),
        ("beside_mmio_load", "atom.global.add.u32 %r4, [%data], 1;", "ld.mmio.relaxed.sys.global.u32 %r5, [%data];", None),
        ("word_in_a_pair", "atom.global.add.u64 %d0, [%data], 1;", "atom.global.add.u32 %r5, [%data+4], 1;", "mixed_size"),
        ("halves_apart", "atom.global.add.u32 %r4, [%data], 1;", "atom.global.add.u32 %r5, [%data+4], 1;", None),
        ("relaxed_vector", "atom.global.add.u32 %r4, [%data+4], 1;", "ld.relaxed.gpu.global.v2.u32 {%r5, %r6}, [%data];", None),
        ("weak_vector", "atom.global.add.u32 %r4, [%data+4], 1;", "ld.global.v2.u32 {%r5, %r6}, [%data];", "unordered"),
        ("weak_vector_beside", "atom.global.add.u32 %r4, [%data+8], 1;", "ld.global.v2.u32 {%r5, %r6}, [%data];", None),
        ("bytes_beside", "st.global.u8 [%data], %h1;", "st.global.u8 [%data+1], %h1;", None),
        ("bytes_of_a_word", "st.global.u8 [%data+1], %h2;", "ld.global.u32 %r5, [%data];", "mixed_size"),
        ("two_reads", "ld.global.u32 %r4, [%data];", "ld.global.u64 %d0, [%data];", None),
        ("relaxed_pair", "st.relaxed.gpu.global.u64 [%data], %d1;", "ld.relaxed.gpu.global.u64 %d0, [%data];", None),
        ("relaxed_halves", "st.relaxed.gpu.global.u64 [%data], %d1;", "ld.relaxed.gpu.global.u32 %r5, [%data+4];", "mixed_size"),
        ("halves_and_a_half", "red.global.add.noftz.f16x2 [%data], %r6;", "atom.relaxed.gpu.global.add.noftz.f16 %h0, [%data+2], %h1;", None),
        ("halves_and_a_narrow_half", "red.global.add.noftz.f16x2 [%data], %r6;", "atom.relaxed.cta.global.add.noftz.f16 %h0, [%data+2], %h1;", "atomic_scopes"),
        ("halves_and_a_word", "red.global.add.noftz.f16x2 [%data], %r6;", "atom.global.add.u32 %r4, [%data], 1;", "mixed_size"),
        ("failed_cas_beside_store", "atom.global.cas.b32 %r4, [%data], 5, 6;", "st.global.u32 [%data], 3;", "unordered"),
    ]
    for name, one, two, race in beside:
        label = race and f"race {race}"
        f.add(name, made[:3] + ["mov.b64 %d1, 1;"] + both + ["@%p0 bra OTHER;", note(one, label), "ret;", "OTHER:", note(two, label)], WHO["gpu"][1])
    return f


def locks():
    """A lock orders what stands inside if it is taken with an acquire pattern and given back with a release pattern whose scopes reach the others."""
    f = Family("race/locks", [
        "A plain count that threads of two blocks raise, one at a time, behind locks of many kinds.",
        "A lock must be taken with an acquire and given back with a release pattern, and both must reach the other block."], seeds="0..2")
    count = ["ld.global.u32 %r3, [%data];", "add.u32 %r3, %r3, 1;", "st.global.u32 [%data], %r3;"]
    takes = {
        "acquire": ["atom.acquire.gpu.global.cas.b32 %r2, [%flag], 0, 1;"], "fence": ["atom.relaxed.gpu.global.cas.b32 %r2, [%flag], 0, 1;"],
        "relaxed": ["atom.relaxed.gpu.global.cas.b32 %r2, [%flag], 0, 1;"], "exchange": ["atom.acquire.gpu.global.exch.b32 %r2, [%flag], 1;"],
    }
    gives = {
        "release": ["st.release.gpu.global.u32 [%flag], 0;"], "fence": ["fence.acq_rel.gpu;", "st.relaxed.gpu.global.u32 [%flag], 0;"],
        "relaxed": ["st.relaxed.gpu.global.u32 [%flag], 0;"], "exchange": ["atom.release.gpu.global.exch.b32 %r4, [%flag], 0;"],
        "narrow_fence": ["fence.acq_rel.cta;", "st.relaxed.gpu.global.u32 [%flag], 0;"],
    }
    for take, give in [("acquire", "release"), ("fence", "fence"), ("exchange", "exchange"), ("acquire", "fence"), ("relaxed", "release"), ("acquire", "relaxed"),
                       ("relaxed", "relaxed"), ("acquire", "narrow_fence")]:
        fine = take != "relaxed" and give not in ("relaxed", "narrow_fence")
        label = None if fine else "race scope_too_narrow" if give == "narrow_fence" else "race unordered"
        f.add(f"{take}__{give}", [
            "TAKE:", *takes[take], "setp.ne.u32 %p0, %r2, 0;", "@%p0 bra TAKE;", *(["fence.acq_rel.gpu;"] if take == "fence" else []),
            note(count[0], label), count[1], note(count[2], label), *gives[give]], "2, 1")
    # A ticket lock: a number is drawn by an atomic that orders nothing, the turn is waited for and passed on.
    for name, wait, pass_on, label in [
        ("ticket", "ld.acquire.gpu.global.u32 %r2, [%flag+4];", "red.release.gpu.global.add.u32 [%flag+4], 1;", None),
        ("ticket_relaxed_turn", "ld.relaxed.gpu.global.u32 %r2, [%flag+4];", "red.release.gpu.global.add.u32 [%flag+4], 1;", "race unordered"),
        ("ticket_relaxed_pass", "ld.acquire.gpu.global.u32 %r2, [%flag+4];", "red.relaxed.gpu.global.add.u32 [%flag+4], 1;", "race unordered")]:
        f.add(name, [
            "atom.relaxed.gpu.global.add.u32 %r1, [%flag], 1;", "TURN:", wait, "setp.ne.u32 %p0, %r2, %r1;", "@%p0 bra TURN;",
            note(count[0], label), count[1], note(count[2], label), pass_on], "3, 1")
    # A barrier of the grid by hand: all arrive at a count, and wait until all have.
    for name, arrive, wait, label in [
        ("grid_barrier", "red.release.gpu.global.add.u32 [%flag], 1;", "ld.acquire.gpu.global.u32 %r2, [%flag];", None),
        ("grid_barrier_relaxed", "red.relaxed.gpu.global.add.u32 [%flag], 1;", "ld.acquire.gpu.global.u32 %r2, [%flag];", "race unordered"),
        ("grid_barrier_not_acquired", "red.release.gpu.global.add.u32 [%flag], 1;", "ld.relaxed.gpu.global.u32 %r2, [%flag];", "race unordered")]:
        f.add(name, [
            "mov.u32 %r0, %ctaid.x;", "mul.wide.u32 %d0, %r0, 4;", "add.u64 %d1, %data, %d0;", "add.u32 %r4, %r0, 5;", note("st.global.u32 [%d1], %r4;", label), arrive,
            "AGAIN:", wait, "setp.lt.u32 %p0, %r2, 3;", "@%p0 bra AGAIN;",
            "add.u32 %r5, %r0, 1;", "rem.u32 %r5, %r5, 3;", "mul.wide.u32 %d2, %r5, 4;", "add.u64 %d2, %data, %d2;", note("ld.global.u32 %r3, [%d2];", label),
            "add.u64 %d3, %out, %d0;", "st.global.u32 [%d3], %r3;"], "3, 1")
    # The last block to raise a count sums up what all have written: its atomic both releases and acquires.
    for name, order, label in [("last_block", "acq_rel", None), ("last_block_releases", "release", "race unordered"), ("last_block_acquires", "acquire", "race unordered")]:
        f.add(name, [
            "mov.u32 %r0, %ctaid.x;", "mul.wide.u32 %d0, %r0, 4;", "add.u64 %d1, %data, %d0;", "add.u32 %r4, %r0, 5;", note("st.global.u32 [%d1], %r4;", label),
            f"atom.{order}.gpu.global.add.u32 %r2, [%flag], 1;", "setp.ne.u32 %p0, %r2, 2;", "@%p0 ret;",
            note("ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%data];", label), "add.u32 %r5, %r5, %r6;", "add.u32 %r5, %r5, %r7;", "st.global.u32 [%out], %r5;"], "3, 1")
    return f


def launches():
    """Launches of one stream follow each other: the end of one synchronizes with the start of the next. Inside one launch blocks are not ordered."""
    f = Family("race/launches", [
        "Each block writes a word that its neighbour reads: in the next launch of the stream in order, in the same launch not.",
        "Bytes that the host copies before the first launch, or after the last one, are in order."])
    mine = ["mov.u32 %r0, %ctaid.x;", "mul.wide.u32 %d0, %r0, 4;", "add.u64 %d1, %data, %d0;", "xor.b32 %r1, %r0, 1;", "mul.wide.u32 %d2, %r1, 4;",
            "add.u64 %d2, %data, %d2;", "add.u64 %d3, %out, %d0;"]
    f.add("write", mine + ["st.global.u32 [%d1], %r0;"], "2, 1")
    f.kernels.append(("read", mine + ["ld.global.u32 %r3, [%d2];", "st.global.u32 [%d3], %r3;"], None, ()))
    f.again("read", "2, 1")
    f.again("write", "2, 1")
    f.again("write", "2, 1")
    f.add("write_and_read", mine + [
        note("st.global.u32 [%d1], %r0;", "race unordered"), note("ld.global.u32 %r3, [%d2];", "race unordered"), "st.global.u32 [%d3], %r3;"], "2, 1")
    f.add("read_of_the_host", mine + ["ld.global.u32 %r3, [%d2];", "st.global.u32 [%d3], %r3;"], "2, 1")
    return f


def few_copies():
    """`cp.async`: its bytes are there for its thread when that has waited for its group or for all, and for others when a barrier follows; groups end
    in their order. Who waits for too few groups, or not at all, reads what may be there or not."""
    f = Family("sync/few_copies", [
        "cp.async with its groups: the wait must name the group of the copy, and stand before the access.",
        "Another thread sees the bytes behind a barrier that follows the wait."], seeds="0..4")
    copy = "cp.async.ca.shared.global [box+{0}], [%data+{0}], 16;"
    late = "sync async_unwaited"
    commit, read, out = "cp.async.commit_group;", "ld.shared.u32 %r3, [box+{}];", "st.global.u32 [%out], %r3;"

    def one(name, body, launch=ONE):
        f.add(name, body, launch, shared=[BOX])
    one("wait_all", [copy.format(0), "cp.async.wait_all;", read.format(0), out])
    one("wait_group", [copy.format(0), commit, "cp.async.wait_group 0;", read.format(0), out])
    one("two_of_two", [copy.format(0), commit, copy.format(16), commit, "cp.async.wait_group 0;", read.format(16), out])
    one("one_of_two", [copy.format(0), commit, copy.format(16), commit, "cp.async.wait_group 1;", read.format(0), out, "cp.async.wait_all;"])
    one("one_of_three", [copy.format(0), commit, copy.format(16), commit, copy.format(32), commit, "cp.async.wait_group 2;", read.format(0), out, "cp.async.wait_all;"])
    one("group_too_few", [copy.format(0), commit, note(copy.format(16), late), commit, "cp.async.wait_group 1;",
                          # Four bytes are written before, so that what is read is known.
                          note(read.format(16), late), "cp.async.wait_all;"])
    one("no_wait", [note(copy.format(0), late), note(read.format(0), late), "cp.async.wait_all;"])
    one("wait_behind", [note(copy.format(0), late), commit, note(read.format(4), late), "cp.async.wait_group 0;"])
    # A copy that belongs to no group yet is not waited for by groups.
    one("not_committed", [note(copy.format(0), late), "cp.async.wait_group 0;", note(read.format(0), late), "cp.async.wait_all;"])
    one("committed_twice", [copy.format(0), commit, commit, "cp.async.wait_group 1;", read.format(0), out])
    one("written_early", [note(copy.format(0), late), note("st.shared.u32 [box+8], 5;", late), "cp.async.wait_all;"])
    one("written_beside", [copy.format(0), "st.shared.u32 [box+16], 5;", "cp.async.wait_all;", read.format(16), out])
    one("source_written", [note(copy.format(0), "sync async_source"), note("st.global.u32 [%data+12], 5;", "sync async_source"), "cp.async.wait_all;"])
    one("source_beside", [copy.format(0), "st.global.u32 [%data+16], 5;", "cp.async.wait_all;", read.format(0), out])
    one("source_read", [copy.format(0), "ld.global.u32 %r4, [%data];", "cp.async.wait_all;", read.format(0), out])
    one("open", [note(copy.format(0), "sync async_open"), commit])
    one("open_without_group", [note(copy.format(0), "sync async_open")])
    one("zeros", ["cp.async.ca.shared.global [box], [%data], 16, 0;", "cp.async.wait_all;", read.format(12), out])
    two = ["mov.u32 %r0, %tid.x;", "setp.ne.u32 %p0, %r0, 0;", "@%p0 bra OTHER;"]
    one("others_behind_a_barrier", two + [copy.format(0), "cp.async.wait_all;", "OTHER:", "bar.sync 0;", read.format(0), "@%p0 st.global.u32 [%out], %r3;"], "1, 2")
    # A barrier in memory: arrivals that copies bring about.
    one("told_to_a_barrier", ["mbarrier.init.shared.b64 [bar], 1;", copy.format(0), "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];", *wait_for(0), read.format(0), out])
    f.kernels[-1] = (*f.kernels[-1][:3], [BOX, BAR])
    one("told_and_not_asked", ["mbarrier.init.shared.b64 [bar], 1;", note(copy.format(0), late), "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];", note(read.format(0), late), *wait_for(0)])
    f.kernels[-1] = (*f.kernels[-1][:3], [BOX, BAR])
    return f


def bulk_copies():
    """Bulk copies tell an `mbarrier` object of their bytes: they are there when a phase has ended that expected them and somebody has seen that. A wait for
    another phase than that of the copy, as with a parity that was not turned round, is none. Copies from shared memory are waited for by groups."""
    f = Family("sync/bulk_copies", [
        "Bulk copies with barriers and groups: the wait must be for the phase that the copy belongs to.",
        "Copies from shared memory are waited for by groups."], seeds="0..4")
    load = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [box+{0}], [%data+{0}], 16, [bar];"
    expect = "mbarrier.arrive.expect_tx.shared.b64 _, [bar], {};"
    init, late, out = "mbarrier.init.shared.b64 [bar], 1;", "sync async_unwaited", "st.global.u32 [%out], %r3;"
    read = "ld.shared.u32 %r3, [box+{}];"

    def one(name, body, launch=ONE, why=None):
        f.add(name, body, launch, why, shared=[BOX, BAR])
    one("waited", [init, expect.format(16), load.format(0), *wait_for(0), read.format(0), out])
    one("expected_behind", [init, load.format(0), expect.format(16), *wait_for(0), read.format(4), out])
    one("two_in_a_phase", [init, expect.format(32), load.format(0), load.format(16), *wait_for(0), read.format(16), out])
    one("two_phases", [init, expect.format(16), load.format(0), *wait_for(0), read.format(0), expect.format(16), load.format(16), *wait_for(1, "again"), read.format(16), out])
    one("by_state", [init, "mbarrier.arrive.expect_tx.shared.b64 %d0, [bar], 16;", load.format(0), "wait:", "mbarrier.test_wait.shared.b64 %p6, [bar], %d0;", "@!%p6 bra wait;",
                     read.format(0), out])
    one("not_waited", [init, expect.format(16), note(load.format(0), late), note(read.format(0), late), *wait_for(0)])
    one("written_early", [init, expect.format(16), note(load.format(0), late), note("st.shared.u32 [box+4], 1;", late), *wait_for(0)])
    # The phase ends when as many bytes have come as it expects, whichever they are: of two copies one may still be under way.
    one("more_than_expected", [init, expect.format(16), "mov.u32 %r9, 0;", "AGAIN:", note(load.format(0), late), "add.u32 %r9, %r9, 1;", "setp.lt.u32 %p1, %r9, 2;", "@%p1 bra AGAIN;",
                               *wait_for(0), note(read.format(0), late), out])
    one("beside", [init, expect.format(16), load.format(0), "st.shared.u32 [box+16], 1;", read.format(16), *wait_for(0), out])
    # It asks once and does not look at the answer, which is no.
    one("asked_in_vain", [init, "mbarrier.try_wait.parity.shared.b64 %p6, [bar], 0;", expect.format(16), note(load.format(0), late), note(read.format(0), late), *wait_for(0)])
    one("source_written", [init, expect.format(16), note(load.format(0), "sync async_source"), note("st.global.u32 [%data], 5;", "sync async_source"), *wait_for(0)])
    one("source_written_behind", [init, expect.format(16), load.format(0), *wait_for(0), "st.global.u32 [%data], 5;", read.format(0), out])
    store = "cp.async.bulk.global.shared::cta.bulk_group [%data+{0}], [box+{0}], 16;"
    fill = ["mov.u32 %r4, 1;", "st.shared.v4.u32 [box], {%r4, %r4, %r4, %r4};", "st.shared.v4.u32 [box+16], {%r4, %r4, %r4, %r4};", "fence.proxy.async.shared::cta;"]
    commit, open_ = "cp.async.bulk.commit_group;", "sync async_open"
    one("stored", fill + [store.format(0), commit, "cp.async.bulk.wait_group 0;", "st.shared.u32 [box], 2;"])
    one("stored_and_read", fill + [store.format(0), commit, "cp.async.bulk.wait_group.read 0;", "st.shared.u32 [box], 2;"])
    one("stored_too_few", fill + [store.format(0), commit, note(store.format(16), "sync async_source"), commit, "cp.async.bulk.wait_group.read 1;",
                                  note("st.shared.u32 [box+16], 2;", "sync async_source"), "cp.async.bulk.wait_group 0;"])
    one("stored_open", fill + [note(store.format(0), open_), commit])
    one("stored_not_committed", fill + [note(store.format(0), open_), "cp.async.bulk.wait_group.read 0;"])
    one("reduced", fill + ["cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%data], [box], 16;", commit, "cp.async.bulk.wait_group.read 0;"])
    return f


# Thread 0 and thread 32 of a block, with an object that expects one arrival.
MBARRIER_BEGIN = ["mov.u32 %r0, %tid.x;", "setp.eq.u32 %p1, %r0, 0;", "setp.eq.u32 %p2, %r0, 32;", "@%p1 mbarrier.init.shared.b64 [bar], 1;", "@%p1 st.shared.u32 [cell], 1;", "bar.sync 0;",
                  "@%p1 bra MAKE;", "@%p2 bra TAKE;", "bra DONE;"]


def mbarriers():
    """An arrival with release synchronizes with a wait with acquire that sees the end of its phase. Relaxed ones do not, nor does a wait for
    a phase that has ended before. While somebody waits the object must not be written."""
    f = Family("sync/mbarriers", [
        "A word that threads of one warp write, and those of another one read when a phase of a barrier has ended.",
        "Relaxed arrivals or waits order nothing; an object is not to be written while it is waited for."], seeds="0..3")
    begin = MBARRIER_BEGIN
    race = "race unordered"

    def one(name, arrive, take, label, more=()):
        f.add(name, begin + ["MAKE:", note("st.shared.u32 [cell], 7;", label), *arrive, "bra DONE;", "TAKE:", *take,
                             note("ld.shared.u32 %r3, [cell];", label), "st.global.u32 [%out], %r3;", *more, "DONE:"], "1, 64", shared=[".align 4 .b32 cell", BAR])
    arrive, wait = "mbarrier.arrive.shared.b64 _, [bar];", wait_for(0)
    asks = lambda what: ["wait:", f"mbarrier.{what} %p6, [bar], 0;", "@!%p6 bra wait;"]
    one("arrive_and_wait", [arrive], wait, None)
    one("arrive_and_test", [arrive], asks("test_wait.parity.shared.b64"), None)
    one("release_acquire", ["mbarrier.arrive.release.cta.shared.b64 _, [bar];"], asks("try_wait.parity.acquire.cta.shared.b64"), None)
    one("cluster_scope", ["mbarrier.arrive.release.cluster.shared.b64 _, [bar];"], asks("try_wait.parity.acquire.cluster.shared.b64"), None)
    one("drop", ["mbarrier.arrive_drop.shared.b64 _, [bar];"], wait, None)
    one("relaxed_arrival", ["mbarrier.arrive.relaxed.cta.shared.b64 _, [bar];"], wait, race)
    one("relaxed_wait", [arrive], asks("try_wait.parity.relaxed.cta.shared.b64"), race)
    one("both_relaxed", ["mbarrier.arrive.relaxed.cta.shared.b64 _, [bar];"], asks("try_wait.parity.relaxed.cta.shared.b64"), race)
    one("fences_around", ["fence.acq_rel.cta;", "mbarrier.arrive.relaxed.cta.shared.b64 _, [bar];"], asks("try_wait.parity.relaxed.cta.shared.b64") + ["fence.acq_rel.cta;"], None)
    one("fence_on_one_side", ["fence.acq_rel.cta;", "mbarrier.arrive.relaxed.cta.shared.b64 _, [bar];"], asks("try_wait.parity.relaxed.cta.shared.b64"), race)
    one("no_wait", [arrive], [], race)
    # An answer is what tells: "not yet" tells nothing, "yes" only of what came before the phase ended.
    two = [line.replace("[bar], 1;", "[bar], 2;") for line in begin]
    asked = "mbarrier.test_wait.parity.shared.b64 %p6, [bar], 0;"
    for name, lines, take, label in [
        ("answered_no", two, [asked], race), ("answered_no_then_fence", two, [asked, "fence.acq_rel.cta;"], race),
        ("arrived_and_answered", two, ["mbarrier.arrive.shared.b64 _, [bar];", *wait], None)]:
        f.add(name, lines + ["MAKE:", note("st.shared.u32 [cell], 7;", label), arrive, "bra DONE;", "TAKE:", *take,
                             note("ld.shared.u32 %r3, [cell];", label), "st.global.u32 [%out], %r3;", "DONE:"], "1, 64", shared=[".align 4 .b32 cell", BAR])
    # The writer takes part in phase 0, writes, and arrives for phase 1, which the reader must wait for too.
    for name, more, label in [("arrival_of_the_next_phase", [], race), ("waited_for_the_next_phase", [arrive, *wait_for(1, "again")], None)]:
        f.add(name, two + ["MAKE:", arrive, *wait_for(0, "first"), note("st.shared.u32 [cell], 7;", label), arrive, "bra DONE;", "TAKE:", arrive, *wait, *more,
                           note("ld.shared.u32 %r3, [cell];", label), "st.global.u32 [%out], %r3;", "DONE:"], "1, 64", shared=[".align 4 .b32 cell", BAR])
    # Behind the arrival.
    f.add("written_behind_the_arrival", begin + ["MAKE:", arrive, note("st.shared.u32 [cell], 7;", race), "bra DONE;", "TAKE:", *wait, note("ld.shared.u32 %r3, [cell];", race),
                                                 "st.global.u32 [%out], %r3;", "DONE:"], "1, 64", shared=[".align 4 .b32 cell", BAR])
    # The same when all have met between: nobody waits any more.
    f.add("initialised_anew_behind_a_barrier", [
        "mov.u32 %r0, %tid.x;", "setp.eq.u32 %p1, %r0, 0;", "@%p1 mbarrier.init.shared.b64 [bar], 1;", "bar.sync 0;", "setp.ne.u32 %p2, %r0, 32;", "@%p2 bra MEET;",
        "mbarrier.test_wait.parity.shared.b64 %p6, [bar], 0;", "MEET:", "bar.sync 0;", "@%p1 mbarrier.inval.shared.b64 [bar];", "@%p1 mbarrier.init.shared.b64 [bar], 2;"],
        "1, 64", shared=[BAR])
    # Counts.
    for name, bytes_, label in [("as_many_bytes", 32767, None), ("too_many_bytes", 32768, "barrier mbarrier_count")]:
        f.add(f"{name}_as_it_counts", ["mov.u32 %r0, %tid.x;", "setp.eq.u32 %p1, %r0, 0;", "@%p1 mbarrier.init.shared.b64 [bar], 32;", "bar.sync 0;",
                                       note(f"mbarrier.arrive.expect_tx.shared.b64 _, [bar], {bytes_};", label)], "1, 32", shared=[BAR])
    for name, count, label in [("as_expected", 64, None), ("more_than_expected", 63, "barrier mbarrier_count")]:
        f.add(f"arrivals_{name}", ["mov.u32 %r0, %tid.x;", "setp.eq.u32 %p1, %r0, 0;", f"@%p1 mbarrier.init.shared.b64 [bar], {count};",
                                   "@%p1 mbarrier.expect_tx.shared.b64 [bar], 16;" if label else "mov.u32 %r1, 0;", "bar.sync 0;",
                                   note("mbarrier.arrive.shared.b64 %d0, [bar];", label)], "1, 64", shared=[BAR])
    return f


def mbarrier_waits():
    """While somebody waits for an object it must not be written, and its phases must not run away from who waits: the phase before the present one can
    be asked for, none before that."""
    f = Family("sync/mbarrier_waits", [
        "Objects that are written while threads wait for them, phases that run away, and states that are too old.",
        "A thread waits if it was told that a phase has not ended and asks again."], seeds="0..3")
    begin, race, arrive = MBARRIER_BEGIN, "race unordered", "mbarrier.arrive.shared.b64 _, [bar];"
    # The writer lets the reader ask for a while before it does something to the object.
    pause = ["mov.u32 %r7, 0;", "PAUSE:", "nanosleep.u32 10;", "add.u32 %r7, %r7, 1;", "setp.lt.u32 %p5, %r7, 20;", "@%p5 bra PAUSE;"]
    wrong = "sync mbarrier_overwritten"
    ask = lambda *labels: ["wait:", note("mbarrier.try_wait.parity.shared.b64 %p6, [bar], 0;", *labels), "@!%p6 bra wait;"]
    for name, deeds, labels in [
        ("initialised_while_waited_for", [note("mbarrier.init.shared.b64 [bar], 1;", race, wrong)], (race, wrong)),
        ("other_initialised_while_waited_for", ["mbarrier.init.shared.b64 [other], 1;"], ()),
        ("stored_while_waited_for", [note("st.shared.u32 [bar+4], 0;", "race mixed_size", wrong)], ("race mixed_size", wrong)),
        ("invalid_while_waited_for", [note("mbarrier.inval.shared.b64 [bar];", wrong), note("mbarrier.init.shared.b64 [bar], 1;", race)], (race, wrong))]:
        f.add(name, begin + ["MAKE:", *pause, *deeds, arrive, "bra DONE;", "TAKE:", *ask(*labels), "DONE:"], "1, 64", shared=[".align 4 .b32 cell", BAR, ".align 8 .b64 other"])
    # Two phases end while somebody waits for the first one. A second barrier holds them apart.
    for name, between, taken, label in [
        ("phase_missed", [], [], "sync mbarrier_phase"),
        ("phase_held", ["wait2:", "mbarrier.try_wait.parity.shared.b64 %p6, [other], 0;", "@!%p6 bra wait2;"], ["mbarrier.arrive.shared.b64 _, [other];"], None)]:
        f.add(name, [*begin[:5], "@%p1 mbarrier.init.shared.b64 [other], 1;", *begin[5:], "MAKE:", *pause, arrive, *between, arrive,
                     *[line.replace("PAUSE", "LATER") for line in pause], arrive, "bra DONE;", "TAKE:", *ask(label), *taken, "DONE:"],
              "1, 64", shared=[".align 4 .b32 cell", BAR, ".align 8 .b64 other"])
    # The state of an arrival is good for the question until the phase after its own has ended.
    state = "mbarrier.arrive.shared.b64 %d{}, [bar];"
    for name, arrivals, asked_for, label in [("state_of_this_phase", 1, 0, None), ("state_of_the_last_phase", 3, 2, None), ("state_of_an_old_phase", 2, 0, "sync mbarrier_phase"),
                                             ("state_of_an_older_phase", 4, 0, "sync mbarrier_phase")]:
        f.add(name, ["mbarrier.init.shared.b64 [bar], 1;", *(state.format(i) for i in range(arrivals)),
                     note(f"mbarrier.test_wait.shared.b64 %p6, [bar], %d{asked_for};", label)], ONE, shared=[BAR])
    return f


def proxies():
    """Memory that is written through the generic proxy is there for bulk copies, tensor copies and `wgmma` only behind a proxy fence of its state space,
    which stands anywhere on the way from the write to the access: with the thread that writes, or with the one that begins the copy, but not beside.
    What a copy has written is there for all at its end, and so is the source free. A read before a copy overwrites it wants no fence here."""
    f = Family("race/proxies", [
        "Memory that is written by stores and read or overwritten by bulk copies and `wgmma`, with proxy fences of all kinds and at all places.",
        "A proxy fence for the state space must stand on the way from the write to the copy."], target="sm_90a", seeds="0..4")
    race = "race missing_proxy_fence"
    store = "cp.async.bulk.global.shared::cta.bulk_group [%data], [box], 16;"
    ended = ["cp.async.bulk.commit_group;", "cp.async.bulk.wait_group 0;"]
    write = "st.shared.v4.u32 [box], {%r4, %r4, %r4, %r4};"
    fences = {
        "none": (None, race), "all": ("fence.proxy.async;", None), "shared": ("fence.proxy.async.shared::cta;", None), "cluster": ("fence.proxy.async.shared::cluster;", None),
        "global": ("fence.proxy.async.global;", race), "alias": ("fence.proxy.alias;", race), "thread_fence": ("fence.acq_rel.gpu;", race), "membar": ("membar.sys;", race),
        "old_style": ("membar.proxy.async;", None), "release": ("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;", None),
    }
    for name, (fence, label) in fences.items():
        f.add(f"stored_{name}", ["mov.u32 %r4, 1;", note(write, label), *([fence] if fence else []), note(store, label), *ended], ONE, shared=[BOX])
    f.add("fence_before", ["mov.u32 %r4, 1;", "fence.proxy.async;", note(write, race), note(store, race), *ended], ONE, shared=[BOX])
    f.add("fence_behind", ["mov.u32 %r4, 1;", note(write, race), note(store, race), "fence.proxy.async;", *ended], ONE, shared=[BOX])
    f.add("reduced", ["mov.u32 %r4, 1;", note(write, race), note("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%data], [box], 16;", race), *ended], ONE, shared=[BOX])
    f.add("written_again", ["mov.u32 %r4, 1;", write, "fence.proxy.async;", note("st.shared.u32 [box+4], 7;", race), note(store, race), *ended], ONE, shared=[BOX])
    f.add("written_beside", ["mov.u32 %r4, 1;", write, "fence.proxy.async;", "st.shared.u32 [box+16], 7;", store, *ended], ONE, shared=[BOX])
    # One thread writes, another one of the block begins the copy behind a barrier.
    who = ["mov.u32 %r0, %tid.x;", "setp.eq.u32 %p0, %r0, 1;", "setp.eq.u32 %p1, %r0, 40;", "setp.eq.u32 %p2, %r0, 70;", "mov.u32 %r4, 1;"]
    for name, before, behind, twice, label in [
        ("by_writer", "@%p0 fence.proxy.async.shared::cta;", None, False, None), ("by_all", "fence.proxy.async;", None, False, None), ("by_copier", None, "@%p1 fence.proxy.async;", False, None),
        ("by_nobody", None, None, False, race), ("beside", "@%p2 fence.proxy.async;", None, False, race), ("beside_between", None, "@%p2 fence.proxy.async;", True, None),
        ("beside_behind", None, "@%p2 fence.proxy.async;", False, race), ("too_early", "@%p1 fence.proxy.async;", None, False, race)]:
        f.add(f"handed_over_{name}", who + [
            note("@%p0 " + write, label), *([before] if before else []), "bar.sync 0;", *([behind] if behind else []), *(["bar.sync 0;"] if twice else []),
            "@!%p1 bra DONE;", note(store, label), *ended, "DONE:"], "1, 96", shared=[BOX])
    # Through an mbarrier, as pipelines do.
    for name, fence, label in [("fenced", ["fence.proxy.async.shared::cta;"], None), ("unfenced", [], race)]:
        f.add(f"pipeline_{name}", who[:3] + ["mov.u32 %r4, 1;", "@%p0 mbarrier.init.shared.b64 [bar], 1;", "bar.sync 0;", "@%p0 bra MAKE;", "@!%p1 bra DONE;", *wait_for(0), note(store, label), *ended, "bra DONE;",
                                             "MAKE:", note(write, label), *fence, "mbarrier.arrive.shared.b64 _, [bar];", "DONE:"], "1, 64", shared=[BOX, BAR])
    return f


def proxy_loads():
    """The same for copies to shared memory, of what was written to global memory and over what was written to shared memory, and for `wgmma`."""
    f = Family("race/proxy_loads", [
        "Copies to shared memory of what stores wrote, and over what stores wrote, and products of matrices that stores wrote, with proxy fences and without.",
        "A read before a copy overwrites it wants no fence if the two are ordered."], target="sm_90a", seeds="0..4")
    race = "race missing_proxy_fence"
    store, ended = "cp.async.bulk.global.shared::cta.bulk_group [%data], [box], 16;", ["cp.async.bulk.commit_group;", "cp.async.bulk.wait_group 0;"]
    # Copies to shared memory: of what was written to global memory, and over what was written to shared memory.
    begin = ["mbarrier.init.shared.b64 [bar], 1;", "mov.u32 %r4, 1;"]
    expect = "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;"
    load = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [box], [%data], 16, [bar];"
    read = ["ld.shared.u32 %r3, [box];", "st.global.u32 [%out], %r3;"]
    for name, fence, label in [("none", None, race), ("all", "fence.proxy.async;", None), ("global", "fence.proxy.async.global;", None), ("shared", "fence.proxy.async.shared::cta;", race)]:
        f.add(f"loaded_{name}", begin + [note("st.global.u32 [%data+4], %r4;", label), *([fence] if fence else []), expect, note(load, label), *wait_for(0), *read], ONE, shared=[BOX, BAR])
    for name, fence, label in [("none", None, race), ("shared", "fence.proxy.async.shared::cta;", None), ("global", "fence.proxy.async.global;", race)]:
        f.add(f"overwritten_{name}", begin + [note("st.shared.u32 [box+8], %r4;", label), *([fence] if fence else []), expect, note(load, label), *wait_for(0), *read], ONE, shared=[BOX, BAR])
    f.add("read_then_overwritten", begin + [expect, load, *wait_for(0), *read, expect, load, *wait_for(1, "again"), *read], ONE, shared=[BOX, BAR])
    for name, fence, label in [("fenced", ["fence.proxy.async;"], None), ("unfenced", [], race)]:
        f.add(f"through_{name}", begin + [expect, load, *wait_for(0), "ld.shared.u32 %r3, [box];", "add.u32 %r3, %r3, 1;", note("st.shared.u32 [box], %r3;", label), *fence, note(store, label), *ended], ONE, shared=[BOX, BAR])
    f.add("copied_on", begin + [expect, load, *wait_for(0), store, *ended], ONE, shared=[BOX, BAR])
    # Matrices in shared memory: of `wgmma`.
    matrix = ["mov.u32 %r0, %tid.x;", "mov.u32 %r4, tile;", "shl.b32 %r1, %r0, 4;", "add.u32 %r5, %r4, %r1;"]
    descriptor = ["shr.u32 %r6, %r4, 4;", "cvt.u64.u32 %d0, %r6;", "or.b64 %d0, %d0, 0x0000000800080000;", ".reg .f32 %f<4>;", *(f"mov.f32 %f{i}, 0f00000000;" for i in range(4))]
    product = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d0, %d0, 1, 1, 1, 0, 0;"
    for name, fence, label in [("fenced", ["fence.proxy.async.shared::cta;"], None), ("unfenced", [], race), ("wgmma_fence_alone", ["wgmma.fence.sync.aligned;"], race)]:
        f.add(f"matrix_{name}", matrix + [note("st.shared.v4.u32 [%r5], {%r4, %r4, %r4, %r4};", label), *fence, "bar.sync 0;", *descriptor, "wgmma.fence.sync.aligned;", note(product, label),
                                          "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;", "mov.b32 %r7, %f0;", "mul.wide.u32 %d1, %r0, 0;", "add.u64 %d1, %out, %d1;"],
              "1, 128", shared=[".align 128 .b32 tile[512]"])
    return f


def tensor_maps():
    """A tensor map that the kernel writes is there for what copies tensors behind two fences, in this order: one that releases it, one that acquires it."""
    f = Family("race/tensor_maps", [
        "A tensor map that is made, fenced, and changed once more before a tensor is copied by it.",
        "Between the change and the copy `fence.proxy.tensormap::generic` must stand with `.release`, and then with `.acquire`."], target="sm_90a", seeds="0..3")
    field = "tensormap.replace.tile.{}.global.b1024.{} [%data], {};"
    fields = [("rank", "b32", "0"), ("box_dim", "b32", "0, 4"), ("global_dim", "b32", "0, 16"), ("element_stride", "b32", "0, 1"), ("elemtype", "b32", "2"),
              ("interleave_layout", "b32", "0"), ("swizzle_mode", "b32", "0"), ("fill_mode", "b32", "0")]
    address = field.format("global_address", "b64", "%flag")
    release, acquire = "fence.proxy.tensormap::generic.release.gpu;", "fence.proxy.tensormap::generic.acquire.gpu [%data], 128;"
    race = "race missing_proxy_fence"
    for name, fences, label in [
        ("both", [release, acquire], None), ("none", [], race), ("released", [release], race), ("acquired", [acquire], race), ("turned_round", [acquire, release], race),
        ("async", ["fence.proxy.async;"], race), ("of_the_block", [release.replace("gpu", "cta"), acquire.replace("gpu", "cta")], None), ("twice", [release, release, acquire, acquire], None)]:
        f.add(name, [*(field.format(*one) for one in fields), address, release, acquire, note(address, label), *fences,
                     "mbarrier.init.shared.b64 [bar], 1;", "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;", "mov.u32 %r1, 0;",
                     note("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%data, {%r1}], [bar];", label), *wait_for(0),
                     "ld.shared.u32 %r3, [box];", "st.global.u32 [%out], %r3;",
                     # Where the device lies differs from run to run, and nobody should find it in the buffer.
                     "mov.u64 %d0, 0;", address.replace("%flag", "%d0")], ONE, shared=[BOX, BAR])
    # A map takes two slots.
    f.add("room", ["st.global.u32 [%out], 0;"], ONE)
    return f


def masks():
    """Warp-level instructions: the member mask must name who executes them, and all that it names must execute the same. `.aligned` instructions are
    for whole warps."""
    f = Family("sync/masks", [
        "Warp-level instructions with masks that name their threads, and with masks that do not.",
        "bar.sync is `.aligned`: all threads of a warp must execute the same one."])
    wrong = "sync mask_without_caller"
    kinds = {
        "shfl": "shfl.sync.idx.b32 %r5, %r0, 0, 31, {};", "vote": "vote.sync.any.pred %p5, %p0, {};", "match": "match.any.sync.b32 %r5, %r0, {};",
        "redux": "redux.sync.max.u32 %r5, %r0, {};", "barrier": "bar.warp.sync {};",
    }
    for name, text in kinds.items():
        for which, mask, label in [("named", "0xff", None), ("not_named", "0x7f", wrong)]:
            f.add(f"{name}_{which}", ["mov.u32 %r0, %tid.x;", "setp.ge.u32 %p0, %r0, 8;", "@%p0 bra DONE;", note(text.format(mask), label), "DONE:"], "1, 32")
    f.add("all_of_a_warp", ["mov.u32 %r0, %tid.x;", "shfl.sync.down.b32 %r5, %r0, 1, 31, -1;", "bar.warp.sync -1;"], "1, 64")
    parted = "barrier divergent_warp"
    for name, bar, label in [("aligned", "bar.sync 0;", parted), ("unaligned", "barrier.sync 0;", None), ("aligned_by_word", "barrier.sync.aligned 0;", parted)]:
        for where, test, lab in [("in_a_warp", ["and.b32 %r1, %r0, 1;", "setp.eq.u32 %p0, %r1, 0;"], label), ("by_warps", ["setp.lt.u32 %p0, %r0, 32;"], None)]:
            f.add(f"parted_{name}_{where}", ["mov.u32 %r0, %tid.x;", *test, "@%p0 bra EVEN;", note(bar, lab), "bra DONE;", "EVEN:", note(bar, lab), "DONE:"], "1, 64")
    return f


FAMILIES = [
    fence_scopes, operation_scopes, patterns, chains, barriers, clusters, atomics, locks, launches, few_copies, bulk_copies, mbarriers, mbarrier_waits, proxies, proxy_loads, tensor_maps, masks, shared_barriers, mbarrier_objects, own_window, variables, unwritten,
]


def main():
    stale = []
    for family in (make() for make in FAMILIES):
        file = HERE / f"{family.path}.ptx"
        text = family.text()
        if "--check" in sys.argv[1:]:
            if not file.exists() or file.read_text() != text:
                stale.append(file.name)
        else:
            file.write_text(text)
        print(f"{family.path}: {len(family.kernels)} kernels")
    if stale:
        sys.exit(f"not what this folder holds: {', '.join(stale)}")


if __name__ == "__main__":
    main()
