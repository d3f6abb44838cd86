from collections.abc import Callable, Sequence
from typing import Any, TypedDict

class Place(TypedDict):
    does: str
    file: str
    line: int
    column: int
    source_file: str | None
    source_line: int | None
    caller_file: str | None
    caller_line: int | None
    statement: str
    block: list[int]
    thread: list[int]
    order: str
    scope: str | None

class Diagnostic:
    code: str
    kind: str
    severity: str
    message: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    help: str | None
    section: str | None
    opcode: str | None
    text: str
    def _repr_html_(self) -> str: ...

class Finding:
    kind: str
    class_: str
    message: str
    text: str
    pairs: int
    seen: int
    seed: int
    seeds: int
    fix: str | None
    first: Place
    second: Place | None
    def _repr_html_(self) -> str: ...

class LaunchReport:
    entry: str
    compile_us: float
    run_us: float
    recompile_us: float
    tier: str | None
    blocks: int
    cached: bool
    output: str
    seeds: int
    findings: list[Finding]
    unchecked: str | None
    ok: bool
    global_bytes: int | None
    global_bytes_read: int | None
    global_bytes_written: int | None
    shared_bytes: int | None
    text: str
    def _repr_html_(self) -> str: ...

class Function:
    name: str
    params: list[tuple[str, str]]
    def __call__(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any],
        *,
        shared_mem: int = 0,
        cluster: int | Sequence[int] | None = None,
        cooperative: bool = False,
        check: bool | str | Sequence[str] | None = None,
        seeds: int = 1,
        counts: bool = False,
        seed: int = 0,
        timeout: float | None = None,
        stop: StopHandle | None = None,
        threads: int = 0,
        engine: str = "jit",
        backend: str = ...,
        bounds: str = "exact",
    ) -> LaunchReport: ...

    def prepare(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any],
        *,
        shared_mem: int = 0,
        cluster: int | Sequence[int] | None = None,
        cooperative: bool = False,
        seed: int = 0,
        timeout: float | None = None,
        threads: int = 0,
        engine: str = "jit",
        backend: str = ...,
        bounds: str = "exact",
    ) -> Prepared: ...

class StopHandle:
    is_stopped: bool
    def __init__(self) -> None: ...
    def stop(self) -> None: ...
    def renew(self) -> None: ...

class Prepared:
    def __call__(self) -> LaunchReport: ...

class Module:
    entries: list[str]
    variables: list[str]
    warnings: list[Diagnostic]
    def __init__(self, text: str, name: str = "module.ptx", links: Sequence[tuple[str, str]] = ()) -> None: ...
    def get_function(self, name: str) -> Function: ...
    def read(self, name: str) -> bytes: ...
    def write(self, name: str, data: bytes, offset: int = 0) -> None: ...
    def variable(self, name: str) -> tuple[int, int]: ...
    def unload(self) -> None: ...

def check(text: str, name: str = "module.ptx") -> list[Diagnostic]: ...
def set_checking(
    listener: Callable[[LaunchReport], Any] | None, checks: bool | str | Sequence[str] | None, seeds: int, counts: bool
) -> None: ...
def start_counting(coverage: bool) -> None: ...
def counted() -> str | None: ...
def counts_report(parts: Sequence[str], coverage: bool, file: str, read: Callable[[str], str | None]) -> str: ...
def forked() -> None: ...
def missing() -> str | None: ...
