import os
from collections.abc import Iterable, Sequence
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
