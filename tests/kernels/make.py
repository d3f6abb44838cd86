#!/usr/bin/env python3
"""Makes the .ptx files of this folder from its .cu files.

    python3 -m venv VENV
    VENV/bin/pip install -r tests/kernels/requirements.txt
    VENV/bin/python tests/kernels/make.py            # all; or names: make.py saxpy sgemm
    VENV/bin/python tests/kernels/make.py --check    # writes nothing, fails if a file would change
    VENV/bin/python tests/kernels/make.py --folder crates/cli/book/code    # the kernels of the book

No GPU is needed. NVRTC compiles and ptxas says whether the result assembles; both are found among the packages of the Python
that runs this script, in the versions of requirements.txt. Other versions give other text: the script says so and goes on.

A line `// targets: sm_80 sm_90` in a .cu file names its targets. `NAME.ptx` is for the first one, `NAME.sm_90.ptx` for
the others. A line `// options: ...` has more options for the compiler, and `// headers: cuda` says that it sees the headers of CUDA. The compiler sees file names only, so that no path of a machine gets into its output.
"""

import argparse
import ctypes
import importlib.metadata
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
OPTIONS = ["--std=c++17"]


def installed(package, pattern):
    """The one file of an installed package whose path ends so."""
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        sys.exit(f"{package} is not installed: see the head of {pathlib.Path(__file__).name}")
    for file in files:
        if re.search(pattern, str(file)):
            return file.locate()
    sys.exit(f"{package} has no file like {pattern}")


def header_folders():
    """Where the headers of CUDA and of its standard library lie."""
    runtime = installed("nvidia-cuda-runtime", r"include/cooperative_groups\.h$")
    library = installed("nvidia-cuda-cccl", r"include/cccl/cuda/std/version$")
    return [runtime.parent, library.parents[2]]


def warn_of_versions():
    """Says which packages are not those that the kept files were made with."""
    for line in (HERE / "requirements.txt").read_text().split():
        package, wanted = line.split("==")
        found = importlib.metadata.version(package)
        if found != wanted:
            print(f"note: {package} is {found}, the kept files were made with {wanted}", file=sys.stderr)


class Nvrtc:
    """The few functions of NVRTC that are needed."""

    def __init__(self):
        self.lib = ctypes.CDLL(str(installed("nvidia-cuda-nvrtc", r"libnvrtc\.so\.\d+$")))
        self.lib.nvrtcGetErrorString.restype = ctypes.c_char_p

    def _must(self, status):
        if status != 0:
            sys.exit(f"NVRTC: {self.lib.nvrtcGetErrorString(status).decode()}")

    def _text(self, size_of, get, program):
        size = ctypes.c_size_t()
        self._must(size_of(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        self._must(get(program, buffer))
        return buffer.value.decode()

    def compile(self, name, source, target):
        """PTX of a source for a target."""
        program = ctypes.c_void_p()
        create = self.lib.nvrtcCreateProgram
        self._must(create(ctypes.byref(program), source.encode(), name.encode(), 0, None, None))
        options = [f"--gpu-architecture=compute_{target.removeprefix('sm_')}", *OPTIONS, *words_of(source, "options", [])]
        if words_of(source, "headers", []):
            options += [f"--include-path={folder}" for folder in header_folders()]
        array = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        status = self.lib.nvrtcCompileProgram(program, len(options), array)
        log = self._text(self.lib.nvrtcGetProgramLogSize, self.lib.nvrtcGetProgramLog, program).strip()
        if log:
            print(log, file=sys.stderr)
        self._must(status)
        ptx = self._text(self.lib.nvrtcGetPTXSize, self.lib.nvrtcGetPTX, program)
        self._must(self.lib.nvrtcDestroyProgram(ctypes.byref(program)))
        # With line information the compiler names files by their full paths.
        return re.sub(r'(\.file\s+\d+ ")[^"]*/', r"\1", ptx)


def assemble(ptxas, ptx, target):
    """Fails if ptxas does not take the text."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "kernel.ptx"
        file.write_text(ptx)
        command = [str(ptxas), "-c", f"-arch={target}", "-o", str(file.with_suffix(".cubin")), str(file)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)


def words_of(source, what, otherwise):
    """The words of the line `// WHAT: ...`."""
    line = re.search(rf"^// {what}: (.+)$", source, re.MULTILINE)
    return line.group(1).split() if line else otherwise


def main():
    parser = argparse.ArgumentParser(description="Makes the .ptx files of this folder from its .cu files.")
    parser.add_argument("--check", action="store_true", help="write nothing, fail if a file would change")
    parser.add_argument("--folder", type=pathlib.Path, default=HERE, help="where the .cu files lie, if not beside the script")
    parser.add_argument("names", nargs="*", help="kernels to make; all if none is named")
    args = parser.parse_args()
    warn_of_versions()
    nvrtc, ptxas = Nvrtc(), installed("nvidia-cuda-nvcc", r"bin/ptxas$")
    stale = []
    for name in args.names or sorted(file.stem for file in args.folder.glob("*.cu")):
        source = (args.folder / f"{name}.cu").read_text()
        for i, target in enumerate(words_of(source, "targets", ["sm_80"])):
            ptx = nvrtc.compile(f"{name}.cu", source, target)
            assemble(ptxas, ptx, target)
            file = args.folder / (f"{name}.ptx" if i == 0 else f"{name}.{target}.ptx")
            if args.check:
                if not file.exists() or file.read_text() != ptx:
                    stale.append(file.name)
            else:
                file.write_text(ptx)
            print(f"{file.name}: {len(ptx)} bytes")
    if stale:
        sys.exit(f"not what this folder holds: {', '.join(stale)}")


if __name__ == "__main__":
    main()
