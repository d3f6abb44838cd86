"""The program `handloom`, and the driver libraries, where the wheel brought them."""

import ctypes
import os
import sys
from contextlib import contextmanager
from pathlib import Path

_FOLDER = Path(__file__).parent / "program"
_WITHOUT = "this installation of the package has no {}: a wheel that `ci/python` builds has it"

# What a process loads. The others need the first, and find it by its name.
_LIBRARIES = ("libcuda.so.1", "libcudart.so.13", "libcudart.so.12")


def libraries():
    """The folder of the driver libraries: that of `HANDLOOM_LIBRARIES`, or what came with the package."""
    folder = Path(os.environ.get("HANDLOOM_LIBRARIES") or _FOLDER / "libraries")
    if not (folder / _LIBRARIES[0]).is_file():
        raise FileNotFoundError(_WITHOUT.format("driver libraries") if folder.parent == _FOLDER else f"no {_LIBRARIES[0]} in {folder}")
    _link(folder)
    return folder


def _link(folder):
    """Who asks for `libcuda.so` gets the same library. A wheel cannot hold a link, and a copy would be a second library with devices of its own."""
    try:
        os.symlink(_LIBRARIES[0], folder / "libcuda.so")
    except OSError:
        pass  # It is there, or cannot be: then the name is not found.


def main():
    """Becomes the program."""
    if (_FOLDER / "libraries").is_dir():
        _link(_FOLDER / "libraries")
    program = _FOLDER / "handloom"
    if not program.is_file():
        print("error: " + _WITHOUT.format("program"), file=sys.stderr)
        return 2
    os.execv(program, ["handloom", *sys.argv[1:]])


def _loaded(stem):
    """The files that the process has loaded whose names begin so."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if line.count("/")}
    return {path for path in paths if os.path.basename(path).startswith(stem)}


def _take(folder):
    """Loads the libraries, so that who asks for them by name gets these."""
    folder = os.path.realpath(folder)
    others = {path for stem in ("libcuda.so", "libcudart.so") for path in _loaded(stem) if os.path.dirname(path) != folder}
    if others:
        raise RuntimeError(
            f"it is too late: the process has loaded {', '.join(sorted(others))}. "
            "Call `handloom.cuda_emulation()` before what uses CUDA is imported, or run the program by `handloom exec`"
        )
    for name in _LIBRARIES:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)


@contextmanager
def _restored(before):
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def cuda_emulation(**options):
    """Makes the driver libraries the CUDA of this process and of those that it starts: what asks for `libcuda.so.1` from now on gets them.

    Options are those of `handloom exec`, as variables: `cc="9.0"` sets `HANDLOOM_CC`. As a context manager it takes the variables back at the end; the
    libraries stay loaded, since nothing can take them from who uses them. Raises `RuntimeError` where another CUDA is loaded already.
    """
    folder = libraries()
    new = {f"HANDLOOM_{name.upper()}": str(int(value) if isinstance(value, bool) else value) for name, value in options.items()}
    known = {"CC", "DEVICES", "MEMORY", "THREADS", "BOUNDS", "SEED", "OPEN_ADDRESSES", "TRACE_API", "DUMP_IMAGES", "CACHE", "POISON", "REPORT"}
    unknown = {name for name in new if name.removeprefix("HANDLOOM_") not in known}
    if unknown:
        raise TypeError(f"`cuda_emulation` takes no option `{sorted(unknown)[0].removeprefix('HANDLOOM_').lower()}`")
    rest = os.environ.get("LD_LIBRARY_PATH")
    new["LD_LIBRARY_PATH"] = os.fspath(folder) + (f":{rest}" if rest else "")
    new.update(TRITON_LIBCUDA_PATH=os.fspath(folder), TRITON_DEFAULT_BACKEND="nvidia", DRJIT_LIBCUDA_PATH=os.fspath(folder / _LIBRARIES[0]))
    before = {name: os.environ.get(name) for name in new}
    os.environ.update(new)
    try:
        _take(folder)
    except BaseException:
        with _restored(before):
            raise
    return _restored(before)
