#!/usr/bin/env python3
"""Compiles the labelled kernels of tests/labelled/cuda and writes them to tests/filetests/find/cuda (those that launch kernels: to tests/filetests/launch), as PTX with their labels.

    python3 tests/labelled/cuda.py NVCC

A label (`//~ OPCODE: KIND CLASS`) in a line of the source stands for the instructions with such an opcode that the compiler made of that line, by `.loc`. Each kernel is launched once, with a slot of 1 KiB in three buffers, `data`, `flag` and `out`.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SLOT = 1024
GUARD = re.compile(r"@!?%p\d+\s+")
LOC = re.compile(r"\s*\.loc\s+(\d+\s+\d+\s+\d+)(.*)")
AT = re.compile(r"inlined_at\s+(\d+\s+\d+\s+\d+)")


def compiled(nvcc, source):
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / "out.ptx"
        options = re.findall(r"^//@ options: (.*)$", source.read_text(), re.M)
        subprocess.run([nvcc, "-ptx", "-arch=sm_90", "-lineinfo", "-std=c++17", "-w", *options, source.name, "-o", made], cwd=source.parent, check=True)
        return made.read_text()


def labelled(source, ptx):
    """The PTX with the labels of its source."""
    lines = source.read_text().splitlines()
    labels = {n: line.split("//~", 1)[1].strip() for n, line in enumerate(lines, 1) if "//~" in line}
    own = next(n for n, name in re.findall(r'\.file\s+(\d+) "([^"]*)"', ptx) if pathlib.Path(name).name == source.name)
    at, used, out, callers = None, set(), [], {}
    # What follows the kernels is for debuggers.
    for line in re.sub(r"^\s*\.section\b[^{]*\{.*?^\s*\}", "", ptx, flags=re.M | re.S).splitlines():
        loc = LOC.match(line)
        if loc:
            # What was inlined counts for the line in the kernel.
            place, inlined = loc[1], AT.search(loc[2])
            if inlined:
                callers[place] = inlined[1]
            seen = set()
            while place in callers and place not in seen and place.split()[0] != own:
                seen.add(place)
                place = callers[place]
            number, row, _ = place.split()
            at = int(row) if number == own else None
        elif re.match(r"\.visible|\}", line):
            at = None
        elif at in labels:
            opcode, label = labels[at].split(": ")
            if GUARD.sub("", line.strip()).startswith(opcode):
                used.add(at)
                line = f"{line} //~ {label}"
        # Names of files hold where it was made.
        if not re.match(r"\s*\.(file|loc)\b|//", line) and line.strip():
            out.append(line.rstrip())
    missing = sorted(set(labels) - used)
    if missing:
        sys.exit(f"{source.name}: nothing of the kind was made of the labelled lines {missing}")
    return "\n".join(out)


def main():
    for source in sorted((HERE / "cuda").glob("*.cu")):
        text = source.read_text()
        entries = re.findall(r"^//@ launch: (\w+)(<<<.*>>>)$", text, re.M)
        seeds = re.search(r"^//@ seeds: .*$", text, re.M)[0]
        about = text.splitlines()[0]
        head = [about, f"// Made from tests/labelled/cuda/{source.name} by nvcc.", "//@ test: find", seeds]
        bufs = [f"//@ buf {name}: u32 = zero {SLOT // 4 * len(entries)}" for name in ("data", "flag", "out")]
        launches = [f"//@ launch: {name}{shape}({', '.join(f'{b}+{SLOT * i}' for b in ('data', 'flag', 'out'))})" for i, (name, shape) in enumerate(entries)]
        # Pairs of grids are no pairs of one kernel, as those are that `tests/labelled.rs` counts.
        folder = HERE.parent / "filetests" / ("launch" if source.stem == "launches" else "find/cuda")
        folder.mkdir(exist_ok=True)
        (folder / f"{source.stem}.ptx").write_text("\n".join([*head, labelled(source, compiled(sys.argv[1], source)), "", *bufs, *launches]) + "\n")
        print(f"{source.stem}: {len(entries)} kernels")


if __name__ == "__main__":
    main()
