#!/usr/bin/env python3
"""Builds the CUDA C++ programs of this folder with nvcc, and runs them.

    python3 -m venv VENV
    VENV/bin/pip install -r tests/examples/cuda/requirements.txt
    VENV/bin/python tests/examples/cuda/make.py --library LIB/libcudart.so.13 OUT
    VENV/bin/python tests/examples/cuda/make.py --library LIB/libcudart.so.13 --run "handloom exec --" OUT graph histogram

No GPU is needed. nvcc is found among the packages of the Python that runs this script. The programs are linked to the shared
runtime library that is named (any one with its name and versions does: which one they use is decided when they run).
A program that is newer than its source is not built again. With `--run` each is run with that command before it; the script
fails if one of them does.
"""

import argparse
import os
import pathlib
import shlex
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent

# The script of the kernels finds files of packages, too. It has the name of this one, so its folder comes first.
sys.path.insert(0, str(HERE.parents[1] / "kernels"))
from make import installed  # noqa: E402


def build(source, program, library, options):
    """Compiles and links one program, if it is older than what it is made of."""
    inputs = [source, HERE / "check.h", library]
    if program.exists() and program.stat().st_mtime > max(f.stat().st_mtime for f in inputs):
        return
    nvcc = installed("nvidia-cuda-nvcc", r"bin/nvcc$")
    headers = installed("nvidia-cuda-cccl", r"include/cccl/thrust/sort\.h$").parents[1]
    made = program.with_suffix(".o")
    subprocess.run([nvcc, "-std=c++17", *options, "-I", headers, "-c", source, "-o", made], check=True)
    # The runtime library is named as a file, since the packages have no name for `-lcudart` to find.
    subprocess.run(["c++", made, "-o", program, library], check=True)
    made.unlink()


def main():
    known = sorted(p.stem for p in HERE.glob("*.cu"))
    parser = argparse.ArgumentParser(description="Builds the CUDA C++ programs of this folder, and runs them.")
    parser.add_argument("--library", type=pathlib.Path, required=True, help="the shared runtime library to link to")
    parser.add_argument("--option", action="append", default=[], help="an option for nvcc (-arch=sm_80 without one)")
    parser.add_argument("--run", metavar="COMMAND", help="run each program with this command before it ('' for none)")
    parser.add_argument("out", type=pathlib.Path, help="folder for the programs")
    parser.add_argument("names", nargs="*", metavar="name", help=f"which ones; without a name all of {', '.join(known)}")
    given = parser.parse_args()
    unknown = set(given.names) - set(known)
    if unknown:
        parser.error(f"there is no program {', '.join(sorted(unknown))} here, only {', '.join(known)}")
    if not given.library.exists():
        parser.error(f"there is no {given.library}")
    given.out.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in given.names or known:
        program = given.out / name
        build(HERE / f"{name}.cu", program, given.library.resolve(), given.option or ["-arch=sm_80"])
        if given.run is None:
            continue
        start = time.monotonic()
        ended = subprocess.run([*shlex.split(given.run), os.fspath(program.resolve())])
        print(f"{name}: exit status {ended.returncode}, {time.monotonic() - start:.2f} s", flush=True)
        if ended.returncode:
            failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
