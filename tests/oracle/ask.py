#!/usr/bin/env python3
"""Asks NVIDIA's assembler about statements that are made from the table of forms, and stores its verdicts.

    pip install nvidia-cuda-nvcc            (in a virtual environment outside the tree)
    python3 tests/oracle/ask.py --handloom target/release/handloom --ptxas PATH/TO/ptxas

Statements come from three places: every form of `handloom isa` with its qualifiers and with all types of registers at every operand;
the same with words dropped, doubled, swapped or taken from elsewhere; and the lists in `extra.txt`. The seed is fixed, so the same table gives
the same statements. `tests/oracle.rs` replays the verdicts and needs no assembler.

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
    + [f".reg .{t} {t}_<9>;" for t in REGISTERS]
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


def statements(rows, rng, density):
    """All statements, without repetition."""
    forms = [Form(r) for r in rows]
    forms = [f for f in forms if not f.opcode.startswith(SKIP) and f.opcode not in SKIP_WHOLE]
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
            done = subprocess.run([self.path, "-O0", "-arch", target, "-o", os.devnull, f.name], capture_output=True, text=True)
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


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--handloom", required=True)
    p.add_argument("--ptxas", required=True)
    p.add_argument("--only", help="opcodes that begin so; prints the verdicts and stores nothing")
    p.add_argument("--density", type=float, default=0.12, help="how many statements a form gives")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    args = p.parse_args()
    listing = subprocess.run([args.handloom, "isa", "--format", "json"], capture_output=True, text=True, check=True).stdout
    rows = [json.loads(line) for line in listing.splitlines()]
    assembler = Assembler(args.ptxas)
    rng = random.Random(26)
    asked = statements(rows, rng, args.density)
    if args.only:
        asked = [s for s in asked if s.startswith(args.only)]
    out = [f"v {assembler.version}"] + [f"p {line}" for line in PRELUDE]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for version, target, share in TARGETS:
            some = asked if share == 1.0 else rng.sample(asked, int(len(asked) * share))
            if "" in prelude(version):
                some = [s for s in some if "b128" not in s]
            code, _, _, text = assembler.run(version, target, [])
            assert code == 0, f"the prelude is wrong: {text}"
            chunks = [some[i : i + 400] for i in range(0, len(some), 400)]
            answers = pool.map(lambda c: assembler.verdicts(version, target, c), chunks)
            out.append(f"= {version} {target}")
            told = [("+" if a else "-") + s for c, v in zip(chunks, answers) for s, a in zip(c, v) if a is not None]
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
