#!/usr/bin/env python3
"""Records what the CUDA headers' host code gives for conversions to and from small floats: conversions.txt.

    python3 -m venv VENV
    VENV/bin/pip install -r tests/recorded/requirements.txt
    VENV/bin/python tests/recorded/make.py            # writes conversions.txt; --check compares with it and writes nothing

Needs a C compiler ($CC, or gcc). It takes some minutes: all 2^32 values of f32 are converted to nine formats. No header is kept here,
and other versions of the packages than those of requirements.txt may have other code.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description="Records what the CUDA headers' host code gives.")
    parser.add_argument("--check", action="store_true", help="write nothing, fail if the file would change")
    args = parser.parse_args()
    folders = list(pathlib.Path(sysconfig.get_path("purelib")).glob("nvidia/*/include/cuda_fp8.h"))
    if not folders:
        sys.exit("no cuda_fp8.h among the packages of this Python: see the head of make.py")
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "conversions"
        compiler = os.environ.get("CC", "gcc").split()
        source = HERE / "conversions.c"
        subprocess.run([*compiler, "-O2", "-I", str(folders[0].parent), "-o", str(program), str(source)], check=True)
        text = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    file = HERE / "conversions.txt"
    if not args.check:
        file.write_text(text)
    elif not file.exists() or file.read_text() != text:
        sys.exit(f"{file.name} would change")
    print(f"{file.name}: {len(text)} bytes")


if __name__ == "__main__":
    main()
