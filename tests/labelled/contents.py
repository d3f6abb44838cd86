"""Families of labelled kernels about the edges of variables, and bits that nobody wrote (families.py)."""

from family import ONE, Family, note


def variables():
    """An address that is made from a variable may be used within that variable only, wherever else it leads."""
    f = Family("memory/edges", [
        "Accesses at the edges of variables in shared, local and global memory: inside, and one element, or one byte of an element, too far.",
        "The bytes beyond belong to a neighbour, so that nothing traps."])
    bad = "out_of_bounds variable"
    for space, around in [("shared", [".align 16 .b32 low[8]", ".align 16 .b32 mid[8]", ".align 16 .b32 high[8]"])]:
        cases = {
            "first": ("u32", 0, None), "last": ("u32", 28, None), "behind": ("u32", 32, bad), "before": ("u32", -4, bad), "pair_inside": ("v2.u32", 24, None),
            "pair_behind": ("v2.u32", 32, bad), "last_byte": ("u8", 31, None), "byte_behind": ("u8", 32, bad), "byte_before": ("u8", -1, bad), "far": ("u32", 40, bad),
            "word_of_eight": ("u64", 24, None), "eight_before": ("u64", -8, bad), "quad": ("v4.u32", 16, None), "quad_behind": ("v4.u32", 32, bad),
        }
        for name, (ty, offset, label) in cases.items():
            value = {"u32": "%r4", "v2.u32": "{%r4, %r4}", "u8": "%h0", "u64": "%d1", "v4.u32": "{%r4, %r4, %r4, %r4}"}[ty]
            # The offset comes from memory, as from data of the program.
            f.add(f"{space}_{name}", ["mov.u32 %r4, 1;", "mov.u16 %h0, 1;", "mov.u64 %d1, 1;", "ld.global.s32 %r5, [%data];", f"add.s32 %r5, %r5, {offset};", "mov.u32 %r6, mid;",
                                      "add.u32 %r6, %r6, %r5;", note(f"st.{space}.{ty} [%r6], {value};", label), "mov.u32 %r7, low;", "st.shared.u32 [%r7], 1;", "mov.u32 %r7, high;",
                                      "st.shared.u32 [%r7], 1;"], ONE, shared=around)
    for name, offset, label in [("inside", 12, None), ("behind", 16, bad)]:
        f.add(f"local_{name}", [".local .align 16 .b32 one[4];", ".local .align 16 .b32 two[4];", "ld.global.u32 %r5, [%data];", "mov.u64 %d0, one;", "cvt.u64.u32 %d1, %r5;",
                                "add.u64 %d0, %d0, %d1;", note(f"st.local.u32 [%d0+{offset}], 1;", label), "mov.u64 %d2, two;", "st.local.u32 [%d2], 2;"], ONE)
    return f


def unwritten():
    """Bits that nobody wrote may be copied; where they decide a branch, a guard, an address, a count, or are left for the host, they are a fault."""
    f = Family("init/uses", [
        "A word of shared or local memory, or a register, that is written or is not, and is used in each way that decides something.",
        "Copies, and values that do not depend on the unknown bits, are no fault."])
    sources = {
        "shared": (["st.shared.u32 [cell], 1;"], "ld.shared.u32 %r3, [cell];"), "local": (["st.local.u32 [own], 1;"], "ld.local.u32 %r3, [own];"),
    }
    uses = {
        "branch": (["setp.gt.u32 %p1, %r3, 5;"], "@%p1 bra FAR;", ["st.global.u32 [%out+4], %r4;", "FAR:"]),
        "guard": (["setp.gt.u32 %p1, %r3, 5;"], "@%p1 st.global.u32 [%out], %r4;", []),
        "address": (["and.b32 %r3, %r3, 28;", "cvt.u64.u32 %d1, %r3;", "add.u64 %d1, %out, %d1;"], "st.global.u32 [%d1], %r4;", []),
        "result": ([], "st.global.u32 [%out], %r3;", []),
        "operand": (["and.b32 %r3, %r3, 0x1e;", "or.b32 %r3, %r3, 1;"], "bar.warp.sync %r3;", []),
    }
    for source, (write, load) in sources.items():
        for use, (before, decides, behind) in uses.items():
            for written in (True, False):
                label = None if written else f"uninitialised {use}"
                body = [".local .align 4 .b32 own;", "mov.u32 %r4, 1;", *(write if written else []), note(load, label), *before, note(decides, label), *behind]
                f.add(f"{source}_{use}_{'written' if written else 'unwritten'}", body, ONE, shared=[".align 4 .b32 cell"])
    clean = {
        "masked": ["ld.shared.u32 %r3, [cell];", "and.b32 %r3, %r3, 0;", "st.global.u32 [%out], %r3;"],
        "overwritten": ["ld.shared.u32 %r3, [cell];", "mov.u32 %r3, 4;", "st.global.u32 [%out], %r3;"],
        "selected_away": ["ld.shared.u32 %r3, [cell];", "setp.eq.u32 %p1, %r4, 1;", "selp.b32 %r3, %r4, %r3, %p1;", "st.global.u32 [%out], %r3;"],
        "copied": ["ld.shared.u32 %r3, [cell];", "st.shared.u32 [cell+4], %r3;"],
        "taken_from_itself": ["ld.shared.u32 %r3, [cell];", "sub.u32 %r5, %r3, %r3;", "xor.b32 %r3, %r3, %r3;", "add.u32 %r3, %r3, %r5;", "st.global.u32 [%out], %r3;"],
        "high_part_cut": ["st.shared.u16 [cell], %h0;", "ld.shared.u32 %r3, [cell];", "cvt.u32.u16 %r3, %r3;", "st.global.u32 [%out], %r3;"],
    }
    for name, body in clean.items():
        f.add(f"{name}_is_fine", ["mov.u32 %r4, 1;", "mov.u16 %h0, 7;", *body], ONE, shared=[".align 8 .b32 cell[2]"])
    return f
