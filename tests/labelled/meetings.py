"""Families of labelled kernels about who meets at barriers, and objects that are barriers (families.py)."""

from family import BAR, BOX, Family, note, wait_for


def shared_barriers():
    """A barrier with a count lets go whoever comes first. Two pairs of warps that use one number mix, unless something keeps the second pair from
    coming before the first one has met: a barrier of all, another barrier that both of the second pair wait at, or flags."""
    f = Family("sync/shared_barriers", [
        "Two pairs of warps of a block that each meet at a barrier of 64 threads.",
        "With one number for both pairs something must keep them apart; accesses play no part but as flags."], target="sm_80", version="8.0", seeds="0..6")
    wrong = "barrier shared_barrier"
    begin = ["mov.u32 %r0, %tid.x;", "shr.u32 %r1, %r0, 5;", "setp.ge.u32 %p0, %r1, 2;", "setp.eq.u32 %p1, %r0, 0;", "setp.eq.u32 %p2, %r1, 1;"]

    def pairs(name, first, second, before=()):
        f.add(name, [*begin, *before, "@%p0 bra SECOND;", *first, "bra MET;", "SECOND:", *second, "MET:"], "1, 128")

    def alone(label):
        return note("bar.sync 1, 64;", label)
    pairs("two_numbers", [alone(None)], ["bar.sync 2, 64;"])
    pairs("one_number", [alone(wrong)], [alone(wrong)])
    pairs("one_number_of_reductions", [note("bar.red.popc.u32 %r5, 1, 64, %p1;", wrong)], [note("bar.red.popc.u32 %r5, 1, 64, %p1;", wrong)])
    pairs("one_number_behind_a_barrier", [alone(wrong)], [alone(wrong)], ["bar.sync 0;"])
    # The number is made from the pair, or should be.
    for name, made, label in [("number_of_the_pair", "shr.u32 %r2, %r1, 1;", None), ("number_of_the_block", "mov.u32 %r2, %ctaid.x;", wrong)]:
        f.add(name, [*begin, made, "add.u32 %r2, %r2, 3;", note("bar.sync %r2, 64;", label)], "1, 128")
    # Kept apart.
    pairs("barrier_of_all_between", [alone(None), "bar.sync 0;"], ["bar.sync 0;", alone(None)])
    pairs("other_barrier_between", [alone(None), "@!%p2 bra MET;", "bar.arrive 2, 96;"], ["bar.sync 2, 96;", alone(None)])
    pairs("other_barrier_too_early", ["@!%p2 bra GO;", "bar.arrive 2, 96;", "GO:", alone(wrong)], ["bar.sync 2, 96;", alone(wrong)])
    for name, store, load in [("flag_between", "st.release.gpu.global.u32 [%flag], 1;", "ld.acquire.gpu.global.u32 %r3, [%flag];"),
                              ("relaxed_flag_between", "st.relaxed.gpu.global.u32 [%flag], 1;", "ld.relaxed.gpu.global.u32 %r3, [%flag];")]:
        pairs(name, [alone(None), f"@%p1 {store}"], ["WAIT:", load, "setp.eq.u32 %p3, %r3, 0;", "@%p3 bra WAIT;", alone(None)])
    # The same threads again and again.
    turn = lambda line: ["mov.u32 %r4, 0;", "TURN:", line, "add.u32 %r4, %r4, 1;", "setp.lt.u32 %p4, %r4, 4;", "@%p4 bra TURN;"]
    pairs("again_and_again", turn(alone(None)), ["bar.sync 2, 64;"])
    # Who arrives and goes on takes part, and nobody who waits is the same.
    half = ["@%p2 bra WAITS;", "bar.arrive 1, 64;", "bra MET;", "WAITS:", note("bar.sync 1, 64;", wrong)]
    other = ["setp.eq.u32 %p5, %r1, 3;", "@%p5 bra LAST;", "bar.arrive 1, 64;", "bra MET;", "LAST:", note("bar.sync 1, 64;", wrong)]
    pairs("arrivals_and_waits", half, other)
    return f


def mbarrier_objects():
    """Bulk copies tell an object of their bytes. Who begins one must know that the object was made: the thread that made it, or one that has met it since.
    A fence of proxies for the object is not asked for: the manual asks for one between accesses to one location, and does not say of objects how they are accessed."""
    f = Family("race/mbarrier_objects", [
        "Objects that one thread makes and another one, of another warp, begins a bulk copy with.",
        "That the object is there must be known by a barrier; no proxy fence is asked for."], target="sm_90", seeds="0..1")
    race = "race unordered"
    load = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [box], [%data], 16, [bar];"
    for name, between, label in [("met_between", ["bar.sync 0;"], None), ("met_with_a_fence", ["fence.proxy.async;", "bar.sync 0;"], None), ("not_met", [], race),
                                 ("fence_alone", ["fence.proxy.async;"], race), ("init_fence_alone", ["fence.mbarrier_init.release.cluster;"], race)]:
        f.add(name, ["mov.u32 %r0, %tid.x;", "setp.eq.u32 %p0, %r0, 0;", "setp.eq.u32 %p1, %r0, 32;",
                     note("@%p0 mbarrier.init.shared.b64 [bar], 1;", label), "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;", *between, "@!%p1 bra REST;", note(load, label), "REST:",
                     "@!%p0 bra DONE;", *wait_for(0), "ld.shared.u32 %r3, [box];", "st.global.u32 [%out], %r3;", "DONE:"], "1, 64", shared=[BOX, BAR])
    return f


def own_window():
    """Shared memory of one's own block has an address in the window of the cluster too (`mapa`), which is no virtual alias: both lead to one location."""
    f = Family("race/own_window", [
        "A word of shared memory that one thread writes by its address in the cluster's window, and another one of the block reads by its own.",
        "Both are one location, so that a barrier must stand between, and no fence of proxies."], target="sm_90", seeds="0..4")
    race = "race unordered"
    for name, between, label in [("met", ["bar.sync 0;"], None), ("not_met", [], race), ("alias_fence_alone", ["fence.proxy.alias;"], race)]:
        f.add(name, ["mov.u32 %r0, %tid.x;", "setp.eq.u32 %p0, %r0, 0;", "setp.eq.u32 %p1, %r0, 32;", "mov.u32 %r1, cell;", "mov.u32 %r2, %cluster_ctarank;",
                     "mapa.shared::cluster.u32 %r3, %r1, %r2;", "@%p1 st.shared.u32 [%r1], 1;", "bar.sync 0;", note("@%p0 st.shared::cluster.u32 [%r3], 5;", label), *between,
                     note("@%p1 ld.shared.u32 %r4, [%r1];", label), "@%p1 st.global.u32 [%out], %r4;"], "1, 64", shared=[".align 4 .b32 cell"])
    return f
