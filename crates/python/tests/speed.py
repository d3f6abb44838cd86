"""What launches cost from Python: wall time and CPU time of the calling thread, medians of rounds. `python speed.py`, with the package installed by `ci/python`."""

import os
import resource
import statistics
import sys
import time
from pathlib import Path

import numpy

import handloom

KERNELS = Path(__file__).resolve().parents[3] / "tests" / "kernels"
EMPTY = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"


def time_of(work, n, rounds=9):
    work()
    wall, cpu = [], []
    for _ in range(rounds):
        w, c = time.perf_counter(), time.thread_time()
        for _ in range(n):
            work()
        wall.append((time.perf_counter() - w) / n)
        cpu.append((time.thread_time() - c) / n)
    return statistics.median(wall) * 1e6, statistics.median(cpu) * 1e6


def main(n=20000):
    empty = handloom.RawModule(code=EMPTY).get_function("k")
    saxpy = handloom.RawModule(path=KERNELS / "saxpy.ptx").get_function("saxpy")
    x, y = numpy.ones(64, "f4"), numpy.zeros(64, "f4")
    args = (64, 1.0, x, y)
    rows = [
        ("empty kernel, 1 block of 32", lambda: empty(1, 32, ())),
        ("saxpy of 64 numbers in arrays", lambda: saxpy(1, 64, args)),
        ("the first, prepared", empty.prepare(1, 32, ())),
        ("the second, prepared", saxpy.prepare(1, 64, args)),
    ]
    for what, work in rows:
        wall, cpu = time_of(work, n)
        print(f"{what:<34} {wall:8.2f} us wall {cpu:8.2f} us CPU")
    # 64 MiB in and out: the kernel reads the first numbers of one array and writes those of another, and nothing of them moves.
    big, out = numpy.ones(16 << 20, "f4"), numpy.zeros(16 << 20, "f4")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time_of(lambda: saxpy(1, 64, (64, 1.0, big, out)), max(n // 20, 10))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    copied, _ = time_of(lambda: numpy.copyto(out, big), 1)
    assert out[0] == 1 and grown < 32 << 10, f"{grown} KiB more"
    print(f"{'the second on arrays of 64 MiB':<34} {wall:8.2f} us wall {cpu:8.2f} us CPU   a copy of one: {copied:.0f} us")
    print(f"load {os.getloadavg()[0]:.1f}")
    print("ok")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
