#!/usr/bin/env python3
"""Asks NVIDIA's assembler about statements that are made from the table of forms, and stores its verdicts.

    pip install nvidia-cuda-nvcc            (in a virtual environment outside the tree)
    python3 tests/oracle/ask.py --handloom target/release/handloom --ptxas PATH/TO/ptxas

Statements come from four places: every form of `handloom isa` with its qualifiers and with all types of registers at every operand;
the same with words dropped, doubled, swapped or taken from elsewhere; what the assembler takes beyond the manual, asked of every word that
might have it (`classes`); and the lists in `extra.txt`. The seed is fixed, so the same table gives the same statements. With `--more` the
recorded verdicts stay, and only what `classes` and `extra.txt` have beyond them is asked; with `--add FILE` they stay too, and the statements of
a file are asked, those for each version and target behind a line `= VERSION TARGET`. `tests/oracle.rs` replays the verdicts and needs no assembler.

The stored file is a zlib stream of text: `v` the assembler's version, `p` lines of the prelude that stands before the statements, then for each
pair of version and target a line `= VERSION TARGET` and its statements, behind `+` if accepted and `-` if refused.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import random
import re
import subprocess
import tempfile
import zlib

from stored import recorded

HERE = os.path.dirname(os.path.abspath(__file__))

REGISTERS = ["pred", "b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16", "f16x2", "f32", "f64"]
# The types that any register is tried with; the rest differ from one of these in sign only, and are taken now and then.
COMMON = ["pred", "b8", "b16", "b32", "b64", "b128", "u16", "s32", "u64", "s64", "f16", "f16x2", "f32", "f64"]

SPACES = [".const", ".local", ".param", ".shared", ".global"]

PRELUDE = (
    [
        ".global .align 64 .b8 gv[256];",
        ".const .align 64 .b8 cv[256];",
        ".global .texref tr;",
        ".global .surfref ur;",
        ".global .align 4 .u32 ga[4];",
        ".visible .entry k(.param .align 64 .b8 ev[256])",
        "{",
        ".shared .align 64 .b8 sv[256];",
        ".local .align 64 .b8 lv[256];",
    ]
    + [f".reg .{t} {t}_<{136 if t in ('b32', 'f32') else 9}>;" for t in REGISTERS]
)

# (version, target, share of the statements): the newest first.
TARGETS = [
    ("9.5", "sm_100a", 1.0),
    ("9.3", "sm_120a", 0.12),
    ("9.0", "sm_103f", 0.12),
    ("8.6", "sm_100", 0.12),
    ("8.4", "sm_90a", 0.2),
    ("8.0", "sm_89", 0.12),
    ("7.4", "sm_80", 0.2),
    ("6.5", "sm_75", 0.12),
]

# Size in bits of types that no register has, and of names that hold them.
SIZES = {"bf16": 16, "bf16x2": 32, "tf32": 32, "e4m3x2": 16, "e5m2x2": 16, "e2m3x2": 16, "e3m2x2": 16, "e2m1x2": 8, "ue8m0x2": 16,
         "e4m3x4": 32, "e5m2x4": 32, "e2m3x4": 32, "e3m2x4": 32, "e2m1x4": 16, "s2f6x2": 16, "u16x2": 32, "s16x2": 32, "u8x4": 32, "s8x4": 32,
         "f32x2": 64, "u4": 32, "s4": 32, "u2": 32, "s2": 32, "b1": 32}



def prelude(version):
    """The lines before the statements. Registers of 128 bits came with 8.3."""
    old = tuple(map(int, version.split("."))) < (8, 3)
    return ["" if old and "b128" in line else line for line in PRELUDE]


def register(kind, n):
    return f"{kind}_{n % 9}"


def home(t):
    """The type of register that an instruction type lives in."""
    t = t.lstrip(".")
    if t in REGISTERS:
        return t
    return f"b{SIZES.get(t, 32)}"


class Form:
    """A row of the table."""

    def __init__(self, row):
        self.opcode = row["opcode"]
        self.words = row.get("words", [])
        self.groups = row.get("qualifiers", [])
        for g in self.groups:
            g["choices"] = [c.split(" ")[0] for c in g["choices"]]
        self.operands = row.get("operands", [])

    def picks(self, limit, rng):
        """Choices for all groups: all combinations if they are few, else each choice at least once and random ones."""
        lists = [g["choices"] if g["required"] else [""] + g["choices"] for g in self.groups]
        total = 1
        for l in lists:
            total *= len(l)
        if total <= limit:
            yield from itertools.product(*lists)
            return
        plain = [[""] if not g["required"] else g["choices"] for g in self.groups]
        for i, l in enumerate(lists):
            for c in l:
                pick = [rng.choice(p) for p in plain]
                pick[i] = c
                yield tuple(pick)
        for k in range(limit):
            # Most of what is written by hand has few optional words.
            yield tuple(rng.choice(l if rng.random() < 0.2 + 0.6 * (k % 3) / 2 else p) for l, p in zip(lists, plain))

    def words_of(self, pick):
        lead = [c for g, c in zip(self.groups, pick) if c and g.get("lead")]
        return lead + list(self.words) + [c for g, c in zip(self.groups, pick) if c and not g.get("lead")]

    def type_of(self, o, pick):
        t = o["type"].removesuffix(" or wider").removesuffix(" exactly")
        twice = t.startswith("twice ")
        t = t.removeprefix("twice ")
        for g, c in zip(self.groups, pick):
            if g["name"] == t and c:
                t = c
        t = t.lstrip(".")
        if twice and t[0] in "us":
            t = t[0] + str(int(t[1:]) * 2)
        return t

    def count_of(self, o, pick, rng):
        c = o["count"]
        for g, chosen in zip(self.groups, pick):
            if g["name"] == c:
                m = re.search(r"\d+", chosen or "")
                return int(m.group()) if m else 1
        return int(c) if c.isdigit() else rng.choice([1, 2, 2, 4, 4, 8])

    def operand(self, o, pick, rng, kind=None):
        """An operand as it should be, or of registers of another type."""
        k = o["kind"]
        at = self.operands.index(o)
        t = self.type_of(o, pick)
        if k == "address":
            space = next((c for c in pick if c.split("::")[0] in SPACES), None) or next((w for w in self.words if w.split("::")[0] in SPACES), "")
            if rng.random() < 0.1:
                own = {".const": "cv", ".local": "lv", ".param": "ev", ".shared": "sv", ".global": "gv"}.get(space.split("::")[0], "gv")
                return f"[{own}+{rng.choice([0, 4, 16])}]"
            return "[b64_8" + rng.choice(["]", "]", "+16]", "+-4]"])
        if k == "`_`":
            return "_"
        if k == "address and coordinates":
            m = re.search(r"\.a?(\d)d", "".join(pick))
            n = int(m.group(1)) if m else rng.choice([1, 2, 4])
            n = {".3d": 4, ".a2d": 4, ".a1d": 2}.get(next((c for c in pick if c in (".3d", ".a2d", ".a1d")), ""), n) if o["name"] != "tensorMap, tensorCoords" else n
            if any(c in (".tile::gather4", ".tile::scatter4") for c in pick):
                n = 5
            t = kind or {"s32": "s32", "f32": "f32"}.get(t, rng.choice(["s32", "f32", "b32"]))
            return "[" + rng.choice(["b64_8", "b64_8", "tr" if self.opcode[0] == "t" else "ur"]) + ", {" + ",".join(register(t, at + i) for i in range(n)) + "}]"
        if k == "constant":
            return str(rng.choice([0, 1, 2, 3, 4, 8, 16, 32]))
        if k.startswith("predicate"):
            return register(kind or "pred", at)
        if t == "pred":
            return register(kind or "pred", at)
        t = kind or (home(t) if t not in ("follows from the qualifiers", "any", "an address") else rng.choice(["b32", "b32", "f32", "s32", "b16", "b64", "f64"]))
        if o["type"] == "an address" and not kind:
            t = "b64"
        if "select" in k or "mask" in k or "negated" in k:
            return self.video(k, register(t, at), rng)
        n = self.count_of(o, pick, rng)
        if n > 1:
            return "{" + ",".join(register(t, at + i) for i in range(n)) + "}"
        return register(t, at)

    def video(self, kind, name, rng):
        """A register of a video instruction, often with a selector, now and then with one of another operand."""
        if "constant" in kind and rng.random() < 0.05:
            return rng.choice(["0", "1", "255", "-1"])
        sign = "-" if rng.random() < (0.3 if "negated" in kind else 0.03) else ""
        if rng.random() < 0.4:
            return sign + name
        one = [".b0", ".b1", ".b2", ".b3", ".h0", ".h1"]
        halves = [f".h{a}{b}" for a in range(4) for b in range(4)]
        four = [".b" + "".join(str(rng.randrange(8)) for _ in range(4)) for _ in range(4)]
        two_masks = [".h0", ".h1", ".h10"]
        four_masks = [".b" + "".join(str(i) for i in (3, 2, 1, 0) if m >> i & 1) for m in range(1, 16)]
        right = one if "a byte or half" in kind else halves if "two halves" in kind else four if "four bytes" in kind else two_masks if "halves" in kind else four_masks if "mask" in kind else []
        odd = one + halves[:4] + four[:1] + [".h01", ".b012", ".b4", ".h2", ".b00", ".x", ".b8888", ".h44"]
        return sign + name + rng.choice(odd if not right or rng.random() < 0.12 else right)

    def text(self, words, operands):
        return f"{self.opcode}{''.join(words)} {', '.join(operands)};".replace(" ;", ";")

    def needed(self, rng, pick):
        """The operands that a choice asks for, now and then with optional ones."""
        words = set(self.words_of(pick))
        named = {g["name"] for g, c in zip(self.groups, pick) if c}

        def belongs(o):
            w = o.get("with")
            if w is None:
                return True
            if w in {g["name"] for g in self.groups}:
                return w in named
            return bool(words & set(w.split(" or ")))

        all_ = [o for o in self.operands if belongs(o)]
        n = sum(not o["optional"] for o in all_)
        return all_[: rng.choice([n, len(all_)])] if rng.random() < 0.15 else all_[:n]

    def statements(self, rng, density):
        limit = int(220 * density)
        picks = list(self.picks(limit, rng))
        for pick in picks:
            os_ = self.needed(rng, pick)
            if ".L2::cache_hint" in pick and rng.random() < 0.9:
                os_ = self.operands
            yield self.text(self.words_of(pick), [self.operand(o, pick, rng) for o in os_])
        # Every type of register at every operand, for every type.
        shown = picks if len(picks) < 40 * density else rng.sample(picks, int(40 * density))
        for pick in shown:
            os_ = self.needed(rng, pick)
            good = [self.operand(o, pick, rng) for o in os_]
            for i, o in enumerate(os_):
                if o["kind"] in ("address", "constant", "label", "operands of a call", "list of labels"):
                    continue
                for t in rng.sample(REGISTERS, 7):
                    yield self.text(self.words_of(pick), good[:i] + [self.operand(o, pick, rng, t)] + good[i + 1 :])
        # Other kinds of operands.
        others = ["1", "-1", "1.0", "0f3F800000", "0d3FF0000000000000", "5000000000", "_", "!pred_1", "{b32_0,b32_1}", "{b16_0,b16_1}",
                  "[b64_1]", "[b32_1]", "[16]", "gv", "[gv]", "[sv]", "[lv]", "[cv]", "[ev]", "gv+4", "ga[1]", "[ga+4]", "ga[b32_1]", "pred_0|pred_1", "b32_0|pred_1",
                  "%tid.x", "%laneid", "WARP_SZ", "{_,b32_1}", "{b32_0,_}", "-b32_1", "tr", "b32_1.b0", "0x80000000", "%clock64", "{b32_0,b32_1,b32_2,b32_3}", "{f32_0,f32_1}"]
        for pick in rng.sample(picks, min(len(picks), int(8 * density) + 1)):
            os_ = self.needed(rng, pick)
            good = [self.operand(o, pick, rng) for o in os_]
            for i in range(len(os_)):
                for t in rng.sample(others, min(len(others), int(10 * density) + 1)):
                    yield self.text(self.words_of(pick), good[:i] + [t] + good[i + 1 :])
            yield self.text(self.words_of(pick), good[:-1])
            yield self.text(self.words_of(pick), good + good[-1:])

    def mutants(self, rng, pool, density):
        """Words that the table did not think of."""
        picks = list(self.picks(30, rng))
        for _ in range(int(70 * density)):
            pick = rng.choice(picks)
            words = self.words_of(pick)
            how = rng.randrange(5)
            if how == 0 and words:
                words.pop(rng.randrange(len(words)))
            elif how == 1 and words:
                words[rng.randrange(len(words))] = rng.choice(pool)
            elif how == 2 and len(words) > 1:
                rng.shuffle(words)
            elif how == 3 and words and rng.random() < 0.3:
                words.append(rng.choice(words))
            else:
                words.insert(rng.randrange(len(words) + 1), rng.choice(pool))
            yield self.text(words, [self.operand(o, pick, rng) for o in self.needed(rng, pick)])


# A statement that keeps the assembler busy for longer gets no verdict.
SECONDS = 20


def braces(kind, n, more=()):
    return "{" + ", ".join(list(more) + [register(kind, i) for i in range(n - len(more))]) + "}"


def sums(form, rng):
    """A register or a symbol with a constant at each source, `.unified` behind each address, braces around each register."""
    for pick in rng.sample(list(form.picks(12, rng)), 1):
        os_ = form.needed(rng, pick)
        good = [form.operand(o, pick, rng) for o in os_]
        for i, word in enumerate(good):
            others = []
            if re.fullmatch(r"[bus](16|32|64)_\d", word):
                others = [f"{word}+{rng.choice(['4', '-4', 'WARP_SZ', '(1+2)*4', '5000000000'])}", f"{rng.choice(['gv', 'sv', 'lv', 'cv', 'ev'])}+4", f"{{{word}}}"]
                others.append(f"{register(rng.choice(['b16', 'b32', 'b64', 'f32']), 7)}+4")
            elif re.fullmatch(r"f(32|64)_\d", word):
                others = [f"{word}+4", "gv+4", f"{{{word}}}"]
            elif word.startswith("["):
                others = [f"{word}.unified", f"[{rng.choice(['gv', 'sv', 'lv', 'cv', 'ev'])}].unified"]
            for other in others:
                yield form.text(form.words_of(pick), good[:i] + [other] + good[i + 1 :])


def classes(forms, rng):
    """What the assembler takes beyond the manual, and the neighbours of that."""
    for f in forms:
        yield from sums(f, rng)
    # Carries of 16 bits.
    for op, n in [("add.cc", 2), ("addc", 2), ("addc.cc", 2), ("sub.cc", 2), ("subc", 2), ("subc.cc", 2)] + [(f"{m}.{h}{cc}", 3) for m in ("mad", "madc") for h in ("lo", "hi", "wide") for cc in ("", ".cc")]:
        for t in ("u16", "s16", "b16", "u32", "b32", "u64", "s8", "f32"):
            yield f"{op}.{t} " + ", ".join(register(t, i) for i in range(n + 1)) + ";"
    # Priorities of the second cache level beside operators; vectors of eight.
    for order in ("", ".volatile", ".relaxed.gpu", ".nc", ".weak"):
        for cop in ("", ".ca", ".cg", ".cs", ".lu", ".cv", ".wb", ".wt", ".L1::evict_last"):
            for l2 in ("", ".L2::evict_last", ".L2::evict_first"):
                for space in (".global", "", ".shared", ".local"):
                    if l2 and rng.random() < 0.7 or not l2 and rng.random() < 0.2:
                        t = rng.choice([".v8.b32", ".v4.b64", ".v8.b32", ".b32"])
                        v = {".v8.b32": braces("b32", 8), ".v4.b64": braces("b64", 4), ".b32": "b32_0"}[t]
                        yield f"ld{order}{space}{cop}{l2}{t} {v}, [b64_8];"
                        yield f"st{order}{space}{cop}{l2}{t} [b64_8], {v};"
    for t in ("b8", "u8", "s8", "b16", "u16", "s16", "f16", "b32", "f32", "b64"):
        for space in (".global", "", ".shared", ".local", ".const", ".param"):
            for wide in (t, "b32"):
                yield f"ld{space}.v8.{t} {braces(wide, 8)}, [b64_8];"
                yield f"st{space}.v8.{t} [b64_8], {braces(wide, 8)};"
        for order in (".volatile.global", ".relaxed.gpu.global", ".global.nc", ".global.cg", ".global.L1::evict_last", ".global.L2::128B", ".mmio.relaxed.sys.global"):
            yield f"ld{order}.v8.{t} {braces(t, 8)}, [b64_8];"
            yield f"st{order}.v8.{t} [b64_8], {braces(t, 8)};"
        yield f"ldu.global.v8.{t} {braces(t, 8)}, [b64_8];"
        yield f"ld.global.v8.{t} {braces(t, 8, ['_'])}, [b64_8];"
    # Literals and braces of conversions; registers of 128 bits.
    for r in (".rna", ".rn", ".rz", ".rna.satfinite", ".rn.relu", ".rz.satfinite"):
        for a in ("1.0", "0f3F800000", "1", "f32_1", "b32_1", "0d3FF0000000000000", "{f32_1}"):
            yield f"cvt{r}.tf32.f32 b32_0, {a};"
    for d, b in (("e2m1x2", "b8"), ("e4m3x2", "b16"), ("e5m2x2", "b16"), ("e2m3x2", "b16"), ("e3m2x2", "b16"), ("ue8m0x2", "b16"), ("s2f6x2", "b16")):
        for s in ("bf16x2", "f16x2"):
            r = ".rz" if d == "ue8m0x2" else ".rn.satfinite"
            for a in ("b32_1", "{b32_1}", "{f16x2_1}", "{b16_1}", "{b64_1}", "{b16_1,b16_2}", "5", "{5}", "f16x2_1"):
                yield f"cvt{r}.{d}.{s} {b}_0, {a};"
            yield f"cvt{r}.{d}.{s} {{{b}_0}}, b32_1;"
    for t in ("b16", "b32", "b64", "b128", "u32", "s16", "f32", "f64"):
        yield from (f"mov.{t} {t}_0, {{{t}_1}};", f"mov.{t} {{{t}_0}}, {t}_1;", f"mov.{t} {{{t}_0}}, {{{t}_1}};", f"mov.{t} {{_}}, {t}_1;", f"mov.{t} {t}_0, {{_}};", f"mov.{t} {t}_0, {{5}};")
    for d in ("u2", "s2", "u4", "s4", "u8", "s8", "u16", "s16"):
        good = ["b32_0", "b32_1", "b32_2"] + (["b32_3"] if d[1:] != "16" else [])
        for i in range(len(good)):
            for t in ("b128", "b64", "u64", "b16", "f32", "s32", "f16x2"):
                yield f"cvt.pack.sat.{d}.s32{'.b32' if len(good) == 4 else ''} " + ", ".join(good[:i] + [register(t, i + 4)] + good[i + 1 :]) + ";"
    for r in (".rn", ".rz", ".rm", ".rp", ".rna"):
        for m in (".satfinite", ".relu.satfinite", ".relu", "", ".ftz", ".satfinite.ftz"):
            for t in ("f16.f32", "bf16.f32", "f16x2.f32", "bf16x2.f32", "f16.f64"):
                d = "b32_0" if "x2" in t else "b16_0"
                yield f"cvt{r}{m}.{t} {d}, {t[-3:]}_1{', f32_2' if 'x2' in t else ''};"
    # Signs of `vmad`.
    for m in ("", ".po", ".po.sat", ".shr7.po", ".po.shr15"):
        for signs in itertools.product(("", "-"), repeat=3):
            yield f"vmad.s32.u32.s32{m} b32_0, {signs[0]}b32_1, {signs[1]}b32_2, {signs[2]}b32_3;"
    # Literals at their limits.
    for limit in (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 128, 255, 256, 257, 1 << 20, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, -1, -32):
        for s in ("bfe.u32 b32_0, b32_1, N, 1", "bfe.s64 b64_0, b64_1, 1, N", "bfi.b32 b32_0, b32_1, b32_2, N, 1", "bfi.b64 b64_0, b64_1, b64_2, 1, N",
                  "cp.async.ca.shared.global [sv], [gv], 4, N", "cp.async.ca.shared.global [sv], [gv], 16, N", "cp.async.cg.shared.global [sv], [gv], 16, N",
                  "createpolicy.range.L2::evict_last.b64 b64_0, [gv], N, 32", "createpolicy.range.L2::evict_last.b64 b64_0, [gv], 32, N",
                  "mbarrier.test_wait.shared.b64 pred_0, [sv], N", "mbarrier.try_wait.shared.b64 pred_0, [sv], N", "mbarrier.test_wait.parity.shared.b64 pred_0, [sv], N",
                  "mbarrier.try_wait.parity.shared.b64 pred_0, [sv], N", "mbarrier.pending_count.b64 b32_0, N", "shl.b32 b32_0, b32_1, N", "lop3.b32 b32_0, b32_1, b32_2, b32_3, N",
                  "bmsk.clamp.b32 b32_0, N, 1", "szext.wrap.u32 b32_0, b32_1, N", "prmt.b32 b32_0, b32_1, b32_2, N", "shf.l.wrap.b32 b32_0, b32_1, b32_2, N"):
            yield s.replace("N", str(limit)) + ";"
    for a in ("0.0", "0f00000001", "0.5", "1.0", "1.0000001", "0f3F800001", "2.0", "-0.5", "-0.0", "0f7FC00000"):
        yield f"createpolicy.fractional.L2::evict_last.b64 b64_0, {a};"


def statements(rows, rng, density):
    """All statements, without repetition."""
    forms = usable(rows)
    pools = {}
    everywhere = sorted({c for f in forms for g in f.groups for c in g["choices"]})
    for f in forms:
        pools.setdefault(f.opcode.split(".")[0], set()).update(c for g in f.groups for c in g["choices"])
        pools[f.opcode.split(".")[0]].update(f.words)
    seen = {}
    for f in forms:
        # Forms that the assembler's other stages take apart get a closer look.
        closer = density * (3 if f.opcode in CLOSER else 1)
        for s in f.statements(rng, closer):
            seen.setdefault(s)
        pool = sorted(pools[f.opcode.split(".")[0]]) * 3 + rng.sample(everywhere, 20)
        for s in f.mutants(rng, pool, closer):
            seen.setdefault(s)
    for s in more(forms):
        seen.setdefault(s)
    return list(seen)


def usable(rows):
    forms = [Form(r) for r in rows]
    return [f for f in forms if not f.opcode.startswith(SKIP) and f.opcode not in SKIP_WHOLE]


def more(forms):
    """Classes and the list, by a seed of their own."""
    seen = dict.fromkeys(classes(forms, random.Random(27)))
    with open(os.path.join(HERE, "extra.txt")) as extra:
        for line in extra:
            line = line.split("//")[0].strip()
            if line:
                seen.setdefault(line)
    return list(seen)


# Opcodes that need more than a statement to judge.
SKIP = ("call", "bra", "brx", "ret", "exit", "trap", "brkpt")
SKIP_WHOLE = ()
CLOSER = ("ld", "st", "mov", "atom", "red")


class Assembler:
    """The assembler, asked about many statements at once."""

    def __init__(self, path):
        self.path = path
        out = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
        self.version = re.search(r"V(\d+\.\d+\.\d+)", out).group(1)

    def run(self, version, target, lines):
        head = [f".version {version}", f".target {target}", ".address_size 64", *prelude(version)]
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as f:
            f.write("\n".join(head + lines + ["ret;", "}", ""]))
            f.flush()
            # The last statement is wrong on purpose where only the front half is asked: no code is made then.
            command = [self.path, "-O0", "-arch", target, "-o", os.devnull, f.name]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
            except subprocess.TimeoutExpired:
                return -1, set(), None, ""
        bad, fatal = set(), None
        for line in done.stderr.splitlines():
            m = re.search(r", line (\d+); (error|fatal)", line)
            if m:
                n = int(m.group(1)) - len(head) - 1
                if 0 <= n < len(lines):
                    bad.add(n)
                    if m.group(2) == "fatal":
                        fatal = n
        return done.returncode, bad, fatal, done.stderr

    def verdicts(self, version, target, lines):
        """For each statement True, False, or None where the assembler gives no answer (it crashes)."""
        answer = [None] * len(lines)
        todo = list(range(len(lines)))
        # Statements that were accepted by the front half are asked again without the others, since errors hide later checks.
        while todo:
            code, bad, fatal, text = self.run(version, target, [lines[i] for i in todo] + ["frob;"])
            if code < 0:
                return self.halves(version, target, lines)
            for n in bad:
                if n < len(todo):
                    answer[todo[n]] = False
            if fatal is None or fatal >= len(todo):
                if not re.search("frob", text):
                    return self.halves(version, target, lines)
                break
            todo = [i for n, i in enumerate(todo) if n not in bad]
        good = [i for i in todo if answer[i] is not False]
        while good:
            code, bad, _, text = self.run(version, target, [lines[i] for i in good])
            if code < 0 or (code != 0 and not bad):
                if len(lines) > 1:
                    return self.halves(version, target, lines)
                return [None]
            guilty = {good[n] for n in bad}
            for i in guilty:
                # The later stages do not always name the guilty line: it is asked about alone.
                alone, _, _, _ = self.run(version, target, [lines[i]])
                answer[i] = None if alone < 0 else alone == 0
            good = [i for i in good if i not in guilty]
            if not bad:
                break
        for i in good:
            answer[i] = True
        return answer

    def halves(self, version, target, lines):
        if len(lines) == 1:
            return [None]
        middle = len(lines) // 2
        return self.verdicts(version, target, lines[:middle]) + self.verdicts(version, target, lines[middle:])


def sampled(asked, rng):
    """What is asked of each version and target: a share of it all."""
    for version, target, share in TARGETS:
        yield version, target, asked if share == 1.0 else rng.sample(asked, int(len(asked) * share))


def added(path, known):
    """The statements of a file for each version and target that is known or in the file."""
    parts = {key: [] for key in known}
    with open(path) as lines:
        for line in lines:
            line = line.rstrip("\n")
            if line.startswith("= "):
                now = parts.setdefault(tuple(line[2:].split()), [])
            elif line:
                now.append(line)
    for (version, target), statements in parts.items():
        yield version, target, list(dict.fromkeys(statements))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--handloom", required=True)
    p.add_argument("--ptxas", required=True)
    p.add_argument("--only", help="opcodes that begin so; prints the verdicts and stores nothing")
    p.add_argument("--more", action="store_true", help="keeps what is recorded, and asks what the classes and the list have beyond it")
    p.add_argument("--add", metavar="FILE", help="keeps what is recorded, and asks the statements of a file beyond it")
    p.add_argument("--density", type=float, default=0.12, help="how many statements a form gives")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    args = p.parse_args()
    listing = subprocess.run([args.handloom, "isa", "--format", "json"], capture_output=True, text=True, check=True).stdout
    rows = [json.loads(line) for line in listing.splitlines()]
    assembler = Assembler(args.ptxas)
    rng = random.Random(26)
    asked = [] if args.add else more(usable(rows)) if args.more else statements(rows, rng, args.density)
    known = recorded("verdicts.zlib") if args.more or args.add else {}
    if args.only:
        asked = [s for s in asked if s.startswith(args.only)]
    out = [f"v {assembler.version}"] + [f"p {line}" for line in PRELUDE]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for version, target, some in added(args.add, known) if args.add else sampled(asked, rng):
            if "" in prelude(version):
                some = [s for s in some if "b128" not in s]
            old = known.get((version, target), [])
            before = {s[1:] for s in old}
            some = [s for s in some if s not in before]
            code, _, _, text = assembler.run(version, target, [])
            assert code == 0, f"the prelude is wrong: {text}"
            chunks = [some[i : i + 400] for i in range(0, len(some), 400)]
            answers = pool.map(lambda c: assembler.verdicts(version, target, c), chunks)
            out.append(f"= {version} {target}")
            told = old + [("+" if a else "-") + s for c, v in zip(chunks, answers) for s, a in zip(c, v) if a is not None]
            out += sorted(told, key=lambda s: (s[1:], s[0]))
            print(f"{version} {target}: {len(told)} statements, {sum(t[0] == '+' for t in told)} accepted", flush=True)
    if args.only:
        print("\n".join(out[len(PRELUDE) + 1 :]))
        return
    packed = zlib.compress(("\n".join(out) + "\n").encode(), 9)
    with open(os.path.join(HERE, "verdicts.zlib"), "wb") as f:
        f.write(packed)
    print(f"{len(packed)} bytes")


if __name__ == "__main__":
    main()
