"""Runs PTX on a CPU: GPU kernels in Python, without a GPU.

>>> import numpy, handloom
>>> y = numpy.zeros(3, "f4")
>>> report = handloom.run("saxpy.ptx", "saxpy", 1, 32, 3, 2.0, numpy.ones(3, "f4"), y)

A kernel works on the memory of the arrays themselves, and has ended when the call returns.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass

import numpy

from . import _native

if _native.missing():
    raise ImportError(
        f"Handloom needs an x86-64 host with AVX2, FMA and F16C, and this one has no {_native.missing()}: run it on a newer machine"
    )

from ._campaign import Campaign, Result, Task, campaign
from ._checking import asked
from ._errors import Bug, CheckError, HandloomError, LaunchError, ModuleError, OutOfMemory, Stopped, Trap, Unsupported
from ._native import Diagnostic, Finding, Function, LaunchReport, Prepared, StopHandle
from ._program import cuda_emulation

__all__ = [
    "Bug",
    "Campaign",
    "CheckError",
    "Diagnostic",
    "Finding",
    "Function",
    "HandloomError",
    "LaunchConfig",
    "LaunchError",
    "LaunchReport",
    "ModuleError",
    "OutOfMemory",
    "Prepared",
    "RawModule",
    "Result",
    "StopHandle",
    "Stopped",
    "Stream",
    "Task",
    "Trap",
    "Unsupported",
    "campaign",
    "check",
    "checking",
    "cuda_emulation",
    "launch",
    "run",
]

os.register_at_fork(after_in_child=_native.forked)


def _text(text_or_path):
    """The PTX and its name, from PTX or from a path."""
    if isinstance(text_or_path, os.PathLike):
        return _read(text_or_path)
    if not isinstance(text_or_path, str):
        came = type(text_or_path).__name__
        raise TypeError(f"`text_or_path` takes PTX as a str or the path of a file, not {came}")
    # PTX has several lines, and a path has no end of a line. Where it stands on one, its first word is this.
    if "\n" in text_or_path or "\0" in text_or_path or text_or_path.lstrip().startswith(".version"):
        return text_or_path, "module.ptx"
    return _read(text_or_path)


def _read(path):
    name = os.fspath(path)
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(), name
    except UnicodeDecodeError as e:
        why = f"byte {e.start} is no UTF-8"
    raise ValueError(f"{name} takes PTX as text, and {why}: `handloom info {name}` says what is in a cubin, a fat binary or a program, `handloom run` runs it")


class RawModule:
    """A module of PTX, from a text (`code`) or from a file (`path`). `link` is a list of further paths whose symbols it may use."""

    def __init__(self, *, code=None, path=None, name=None, link=()):
        if (code is None) == (path is None):
            raise TypeError("a module takes either `code`, a text, or `path`, a file")
        if code is not None and not isinstance(code, str):
            raise TypeError(f"`code` takes PTX as a str, not {type(code).__name__}")
        text, found = (code, "module.ptx") if path is None else _read(path)
        links = [_read(other)[::-1] for other in link]
        self._module = _native.Module(text, name or found, links)

    def get_function(self, name):
        """An entry by its name."""
        return self._module.get_function(name)

    @property
    def entries(self):
        """The names of all entries."""
        return self._module.entries

    @property
    def variables(self):
        """The names of all variables (`.global` and `.const`)."""
        return self._module.variables

    @property
    def warnings(self):
        """What was warned of when it was loaded."""
        return self._module.warnings

    def get_variable(self, name, dtype="u1"):
        """A copy of a variable as an array of `dtype`."""
        return numpy.frombuffer(self._module.read(name), dtype).copy()

    def set_variable(self, name, value, offset=0):
        """Writes an array to a variable, from byte `offset` on."""
        self._module.write(name, numpy.ascontiguousarray(value).tobytes(), offset)

    def get_address(self, name):
        """The address of a variable, as kernels see it: for a parameter or a field that holds one."""
        return self._module.variable(name)[0]

    def unload(self):
        """Ends it. Its kernels raise `LaunchError` from now on, in every thread."""
        self._module.unload()

    def __repr__(self):
        return repr(self._module)


@dataclass(frozen=True)
class LaunchConfig:
    """The shape and the manner of a launch."""

    grid: int | tuple
    block: int | tuple
    shmem_size: int = 0
    cluster: int | tuple | None = None
    cooperative_launch: bool = False


class Stream:
    """A stream, for programs that have one. A launch has ended when the call returns, so there is nothing to wait for."""

    def sync(self):
        """Returns at once."""


def launch(stream, config, kernel, *args, **options):
    """Launches a kernel: `stream` is a `Stream` or None, `config` a `LaunchConfig`. Options are those of a kernel's call."""
    if not isinstance(config, LaunchConfig):
        raise TypeError(f"`config` takes a LaunchConfig, not {type(config).__name__}")
    if stream is not None and not isinstance(stream, Stream):
        raise TypeError(f"`stream` takes a handloom.Stream or None, not {type(stream).__name__}")
    if not isinstance(kernel, Function):
        raise TypeError(f"`kernel` takes a kernel of RawModule.get_function, not {type(kernel).__name__}")
    return kernel(
        config.grid,
        config.block,
        args,
        shared_mem=config.shmem_size,
        cluster=config.cluster,
        cooperative=config.cooperative_launch,
        **options,
    )


def run(text_or_path, entry, grid, block, *args, **options):
    """Loads PTX (a text or the path of a file) and launches an entry of it once.

    Options: `shared_mem`, `cluster`, `cooperative`, `check`, `seeds`, `counts`, `seed`, `timeout`, `stop`, `threads`, `engine`, `backend`, `bounds`.
    """
    text, name = _text(text_or_path)
    return _native.Module(text, name).get_function(entry)(grid, block, args, **options)


def check(text_or_path):
    """All errors and warnings of PTX (a text or the path of a file). Runs nothing."""
    return _native.check(*_text(text_or_path))


@contextmanager
def checking(check=True, *, seeds=1, counts=False):
    """Checks all launches of the process inside, but those that say `check` themselves. Gives the list of their reports.

    Raises `CheckError` at the end if something was found.
    """
    reports = []
    with asked(reports.append, check, seeds, counts):
        yield reports
    found = [report for report in reports if not report.ok]
    if found:
        raise CheckError(found)
