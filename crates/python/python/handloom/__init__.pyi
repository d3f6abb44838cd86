import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ._errors import Bug as Bug
from ._errors import CheckError as CheckError
from ._errors import HandloomError as HandloomError
from ._errors import LaunchError as LaunchError
from ._errors import ModuleError as ModuleError
from ._errors import OutOfMemory as OutOfMemory
from ._errors import Stopped as Stopped
from ._errors import Trap as Trap
from ._errors import Unsupported as Unsupported
from ._native import Diagnostic as Diagnostic
from ._native import Finding as Finding
from ._native import Function as Function
from ._native import LaunchReport as LaunchReport
from ._native import Prepared as Prepared
from ._native import StopHandle as StopHandle

Dims = int | Sequence[int]

class RawModule:
    def __init__(
        self,
        *,
        code: str | None = None,
        path: str | os.PathLike[str] | None = None,
        name: str | None = None,
        link: Iterable[str | os.PathLike[str]] = (),
    ) -> None: ...
    def get_function(self, name: str) -> Function: ...
    @property
    def entries(self) -> list[str]: ...
    @property
    def variables(self) -> list[str]: ...
    @property
    def warnings(self) -> list[Diagnostic]: ...
    def get_variable(self, name: str, dtype: DTypeLike = "u1") -> NDArray[Any]: ...
    def set_variable(self, name: str, value: ArrayLike, offset: int = 0) -> None: ...
    def get_address(self, name: str) -> int: ...
    def unload(self) -> None: ...

@dataclass(frozen=True)
class LaunchConfig:
    grid: Dims
    block: Dims
    shmem_size: int = 0
    cluster: Dims | None = None
    cooperative_launch: bool = False

class Stream:
    def sync(self) -> None: ...

def launch(stream: Stream | None, config: LaunchConfig, kernel: Function, *args: Any, **options: Any) -> LaunchReport: ...
def run(
    text_or_path: str | os.PathLike[str], entry: str, grid: Dims, block: Dims, *args: Any, **options: Any
) -> LaunchReport: ...
def check(text_or_path: str | os.PathLike[str]) -> list[Diagnostic]: ...
def checking(
    check: bool | str | Sequence[str] | None = True, *, seeds: int = 1, counts: bool = False
) -> AbstractContextManager[list[LaunchReport]]: ...
def cuda_emulation(**options: str | int | bool) -> AbstractContextManager[None]: ...

@dataclass(frozen=True)
class Task:
    code: str | os.PathLike[str]
    entry: str
    grid: Dims
    block: Dims
    args: tuple[Any, ...] = ()
    options: dict[str, Any] = ...
    keep: tuple[int, ...] = ()
    name: str | None = None
    def key(self) -> str: ...

@dataclass
class Result:
    key: str
    status: str
    text: str = ""
    kind: str | None = None
    findings: list[dict[str, Any]] = ...
    blocks: int = 0
    run_us: float = 0.0
    output: str = ""
    arrays: dict[int, NDArray[Any]] = ...
    tries: int = 1
    @property
    def ok(self) -> bool: ...

class Campaign:
    total: int
    done: int
    resumed: int
    results: dict[str, Result]
    def __iter__(self) -> Iterator[Result]: ...
    def __len__(self) -> int: ...
    def run(self) -> Campaign: ...
    def in_order(self) -> list[Result]: ...
    @property
    def counts(self) -> dict[str, int]: ...
    @property
    def ok(self) -> bool: ...
    @property
    def findings(self) -> list[dict[str, Any]]: ...
    @property
    def text(self) -> str: ...
    def _repr_html_(self) -> str: ...

def campaign(
    tasks: Iterable[Task],
    engine: str = "local",
    *,
    workers: int | None = None,
    retries: int = 2,
    results: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[Campaign], Any] = False,
) -> Campaign: ...
