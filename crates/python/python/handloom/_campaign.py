"""Campaigns: many launches as tasks, on the cores of this machine or on those of a Ray cluster, with results as they come and a file to go on from.

A task is data: a kernel, its arguments, a shape, a seed. So it can be sent to another machine, and its key says which it is when a stopped campaign goes on. What a
task did is data too. Each result counts once, by its key, however often the task was tried or sent.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy

from ._errors import OutOfMemory, Stopped, Trap
from ._native import StopHandle

# What may go well another time: what the machine lacked, and not what the kernel did.
_AGAIN = (OutOfMemory, MemoryError, OSError)

# A batch holds so many seconds of work, as far as is known, and so many tasks at most: to send one takes about a millisecond.
_BATCH_SECONDS = 0.25
_BATCH_TASKS = 512


@dataclass(frozen=True)
class Task:
    """One launch: PTX (a text or a path), an entry, a shape, arguments, and options of a kernel's call (`check`, `seed`, `timeout` and so on).

    Arrays among the arguments are copied for each try, so that tasks share none. `keep` are the numbers of arguments whose arrays the result has, from 0 on. `name` is
    what the task is told apart by; without one that is a sum over all of it.
    """

    code: str | os.PathLike
    entry: str
    grid: int | tuple
    block: int | tuple
    args: tuple = ()
    options: dict = field(default_factory=dict)
    keep: tuple = ()
    name: str | None = None

    def key(self):
        """The name, or a sum over code, shape, arguments and options; the text of a path counts, not where it lies."""
        return self._key(_text(self.code)[0])

    def _key(self, text):
        if self.name is not None:
            return self.name
        told = hashlib.sha256()
        for part in (text, self.entry, repr(self.grid), repr(self.block), repr(self.keep)):
            told.update(part.encode() + b"\0")
        told.update(repr(sorted(self.options.items())).encode() + b"\0")
        for a in self.args:
            if isinstance(a, numpy.ndarray):
                told.update(f"{a.dtype.str}{a.shape}".encode() + numpy.ascontiguousarray(a).tobytes())
            else:
                told.update(f"{type(a).__name__} {a!r}".encode())
            told.update(b"\0")
        return told.hexdigest()[:32]


@dataclass
class Result:
    """What a task did. `status` is `ok`, `found`, `trap`, `error` (a launch that cannot be) or `lost` (all tries failed by what the machine lacked)."""

    key: str
    status: str
    text: str = ""
    kind: str | None = None
    findings: list = field(default_factory=list)
    blocks: int = 0
    run_us: float = 0.0
    output: str = ""
    arrays: dict = field(default_factory=dict)
    tries: int = 1

    @property
    def ok(self):
        """Whether it ran and nothing was found."""
        return self.status == "ok"


def _text(code):
    from . import _text

    return _text(code)


_kernels: dict = {}
_here = threading.Lock()


def _kernel(text, name, entry):
    """The entry, of a module that this process loads once."""
    from . import RawModule

    with _here:
        found = _kernels.get((text, name, entry))
        if found is None:
            if len(_kernels) >= 1024:
                _kernels.clear()
            found = _kernels[text, name, entry] = RawModule(code=text, name=name).get_function(entry)
        return found


def _finding(found):
    places = [place and (place["file"], place["line"], place["column"]) for place in (found.first, found.second)]
    return {"kind": found.kind, "class": found.class_, "places": places, "message": found.message, "text": found.text}


def _run(key, task, texts, stop):
    """Runs a task once, on one host thread unless it says otherwise: others run beside it."""
    args = [a.copy() if isinstance(a, numpy.ndarray) else a for a in task.args]
    try:
        kernel = _kernel(*texts[os.fspath(task.code)], task.entry)
        report = kernel(task.grid, task.block, tuple(args), **{"threads": 1, "stop": stop, **task.options})
    except Trap as e:
        return Result(key, "trap", str(e), e.kind)
    except _AGAIN as e:
        return Result(key, "lost", f"{type(e).__name__}: {e}", "out_of_memory" if isinstance(e, MemoryError) else "host")
    except (KeyboardInterrupt, Stopped):
        raise
    except Exception as e:
        # A wrong task is a result like any other: the campaign goes on.
        return Result(key, "error", f"{type(e).__name__}: {e}", getattr(e, "kind", None) or type(e).__name__)
    arrays = {n: args[n] for n in task.keep}
    findings = [_finding(found) for found in report.findings]
    status = "ok" if report.ok else "found"
    text = "" if report.ok else report.text
    return Result(key, status, text, None, findings, report.blocks, report.run_us, report.output, arrays)


def _run_batch(batch, texts, stop=None):
    """Runs tasks one after the other, and says how many seconds that took. Texts come beside the tasks, since paths mean nothing on other machines."""
    start = time.perf_counter()
    results = [_run(key, task, texts, stop) for key, task in batch]
    return results, time.perf_counter() - start


class _File:
    """Results as they came: a line of JSON each, so that a campaign which was stopped goes on from it. The last line may be cut off. Arrays lie beside it."""

    def __init__(self, path):
        self.path = os.fspath(path)
        self.known = {}
        whole = 0
        try:
            with open(self.path, "rb") as file:
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    whole += len(line)
                    self._read(line)
        except FileNotFoundError:
            pass
        self.file = open(self.path, "ab")
        # What was cut off is written again.
        self.file.truncate(whole)

    def _read(self, line):
        try:
            row = json.loads(line)
            arrays = {int(n): numpy.load(os.path.join(self.path + ".arrays", f)) for n, f in row.pop("arrays", {}).items()}
            result = Result(**row, arrays=arrays)
        except (ValueError, TypeError, AttributeError) as e:
            raise ValueError(f"{self.path} is no file of results: {e}") from None
        except FileNotFoundError:
            return  # Its array is gone: it runs again.
        # What the machine lacked then it may have now.
        if result.status != "lost":
            self.known[result.key] = result

    def add(self, result):
        row = {k: v for k, v in vars(result).items() if k != "arrays"}
        if result.arrays:
            folder = self.path + ".arrays"
            os.makedirs(folder, exist_ok=True)
            row["arrays"] = {}
            for n, array in result.arrays.items():
                name = f"{hashlib.sha256(result.key.encode()).hexdigest()[:32]}-{n}.npy"
                numpy.save(os.path.join(folder, name), array)
                row["arrays"][n] = name
        self.file.write(json.dumps(row).encode() + b"\n")

    def flush(self):
        self.file.flush()

    def close(self):
        self.file.close()


class Campaign:
    """What a campaign has done so far. Iterate over it for results as they come; `run()` waits for all of them."""

    def __init__(self, results, total, keys):
        self._results = results
        self.total = total
        self.done = 0
        self.resumed = 0
        self.results: dict[str, Result] = {}
        self._keys = keys

    def __iter__(self):
        yield from self._results(self)

    def run(self):
        """Runs all tasks and returns the campaign."""
        for _ in self:
            pass
        return self

    def __len__(self):
        return self.total

    def in_order(self):
        """The results in the order of the tasks, as far as they are there."""
        return [self.results[key] for key in self._keys if key in self.results]

    @property
    def counts(self):
        """How many results have which status."""
        out: dict[str, int] = {}
        for result in self.results.values():
            out[result.status] = out.get(result.status, 0) + 1
        return out

    @property
    def ok(self):
        """Whether all tasks have run and nothing was found."""
        return self.done == self.total and set(self.counts) <= {"ok"}

    @property
    def findings(self):
        """All findings and traps, each pair of places once: dicts with `text`, `seen` (in how many tasks) and `tasks` (the keys of the first ten)."""
        merged: dict[Any, dict] = {}
        for result in self.in_order():
            told = list(result.findings)
            if result.status == "trap":
                told.append({"kind": result.kind, "class": "trap", "places": [result.text.split("\n")[1:2]], "message": result.text.split("\n")[0], "text": result.text})
            seen = set()
            for found in told:
                at = pickle.dumps((found["kind"], found["class"], sorted(map(repr, found["places"]))))
                row = merged.setdefault(at, {**found, "seen": 0, "tasks": []})
                if at in seen:
                    continue
                seen.add(at)
                row["seen"] += 1
                if len(row["tasks"]) < 10:
                    row["tasks"].append(result.key)
        return list(merged.values())

    @property
    def text(self):
        """A summary for people."""
        counts = ", ".join(f"{n} {status}" for status, n in sorted(self.counts.items()))
        lines = [f"{self.done} of {self.total} tasks: {counts or 'none'}"]
        lines += [f"{found['text']}\n  seen   in {found['seen']} of {self.total} tasks, first in {found['tasks'][0]}" for found in self.findings]
        lines += [f"{r.key}: {r.text}" for r in self.in_order() if r.status in ("error", "lost")][:20]
        return "\n".join(lines)

    __str__ = text.fget

    def _repr_html_(self):
        import html

        return f"<pre>{html.escape(self.text)}</pre>"


class _Sizes:
    """How many tasks a batch has: as many as fill a quarter of a second, and few enough that all who work have some to the end."""

    def __init__(self, workers):
        self.workers = workers
        self.seconds = 0.0
        self.n = 0

    def learn(self, n, seconds):
        self.n += n
        self.seconds += seconds

    def next(self, left):
        # The first ones tell how long tasks take.
        known = self.seconds / self.n if self.n else None
        most = 1 if known is None else int(_BATCH_SECONDS / max(known, 1e-6))
        return max(1, min(most, _BATCH_TASKS, -(-left // (4 * self.workers))))


def _local(pending, texts, workers, _retry):
    """Batches of results by threads of this process: kernels run without the lock of the interpreter."""
    done: queue.Queue = queue.Queue()
    stop = StopHandle()
    sizes = _Sizes(workers)
    lock = threading.Lock()

    def work():
        try:
            while not stop.is_stopped:
                with lock:
                    batch = [pending.popleft() for _ in range(min(len(pending), sizes.next(len(pending))))]
                if not batch:
                    break
                results, seconds = _run_batch(batch, texts, stop)
                with lock:
                    sizes.learn(len(batch), seconds)
                done.put(results)
        except BaseException as e:
            done.put(e)
        done.put(None)

    threads = [threading.Thread(target=work, daemon=True, name=f"handloom-campaign-{n}") for n in range(workers if workers > 1 else 0)]
    for thread in threads:
        thread.start()
    try:
        ended = 0
        while ended < len(threads):
            item = done.get()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                ended += 1
            else:
                yield item
        # One worker is this thread, which Ctrl-C reaches inside of a kernel too; and tasks that are tried again may come after the last thread has looked.
        while pending:
            yield _run_batch([pending.popleft()], texts)[0]
    finally:
        # Who leaves early leaves no kernel behind that runs on.
        stop.stop()
        for thread in threads:
            thread.join()


def _ray(pending, texts, workers, retry):
    """Batches of results by a Ray cluster. The tasks of a batch whose node has ended are tried again."""
    try:
        import ray
    except ImportError:
        raise ImportError('`engine="ray"` needs the package ray: pip install ray') from None

    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    # Retries are ours: Ray would do the whole batch again, and not say so.
    remote = ray.remote(num_cpus=1, max_retries=0)(_run_batch)
    cores = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
    sizes = _Sizes(cores)
    flying: dict = {}
    try:
        while pending or flying:
            # Two batches for each core: one runs, and one waits beside it.
            while pending and len(flying) < 2 * cores:
                batch = [pending.popleft() for _ in range(sizes.next(len(pending)))]
                used = {code: texts[code] for code in {os.fspath(task.code) for _, task in batch}}
                flying[remote.remote(batch, used)] = batch
            ready, _ = ray.wait(list(flying), num_returns=1)
            for handle in ready:
                batch = flying.pop(handle)
                try:
                    results, seconds = ray.get(handle)
                except ray.exceptions.RayError as e:
                    yield from retry(batch, e)
                    continue
                sizes.learn(len(batch), seconds)
                yield results
    finally:
        for handle in flying:
            ray.cancel(handle, force=True)


def campaign(
    tasks: Iterable[Task],
    engine: str = "local",
    *,
    workers: int | None = None,
    retries: int = 2,
    results: str | os.PathLike | None = None,
    progress: bool | Callable[[Campaign], Any] = False,
) -> Campaign:
    """Runs tasks, with `engine="local"` on the cores of this machine, with `engine="ray"` on a Ray cluster.

    Returns a `Campaign`: iterate over it for results as they come, or call its `run()`. `workers` is how many tasks run at a time (all cores). What fails by
    what the machine lacked is tried `retries` times more. `results` is a file that gets each result as it comes; the tasks whose results it has are not run again.
    `progress` is True for a line on standard error, or a function that is called with the campaign once a second.
    """
    if engine not in ("local", "ray"):
        raise ValueError(f'`engine` takes "local" or "ray", not {engine!r}')
    if retries < 0:
        raise ValueError(f"`retries` takes a number from 0 on, not {retries}")
    if workers is not None and workers < 1:
        raise ValueError(f"`workers` takes a number from 1 on, not {workers}")
    todo: dict[str, Task] = {}
    texts: dict[str, tuple] = {}
    for task in tasks:
        if not isinstance(task, Task):
            raise TypeError(f"`tasks` takes Task objects, not {type(task).__name__}")
        code = os.fspath(task.code)
        if code not in texts:
            texts[code] = _text(task.code)
        key = task._key(texts[code][0])
        if key in todo:
            raise ValueError(f"two tasks are both called {key}: give them a `name`")
        todo[key] = task

    def run(self: Campaign):
        file = _File(results) if results is not None else None
        tries: dict[str, int] = {}
        said = time.monotonic()
        self.results, self.done, self.resumed = {}, 0, 0

        def tell(is_last):
            nonlocal said
            if progress and (is_last or time.monotonic() - said >= 1):
                said = time.monotonic()
                if callable(progress):
                    progress(self)
                else:
                    counts = ", ".join(f"{n} {status}" for status, n in sorted(self.counts.items()))
                    end = "\n" if is_last else "\r"
                    print(f"{self.done} of {self.total} tasks: {counts}", end=end, file=sys.stderr, flush=True)

        def take(result):
            """Counts a result, once."""
            if result.key in self.results:
                return False
            result.tries = tries.get(result.key, 0) + 1
            self.results[result.key] = result
            self.done += 1
            return True

        def retry(batch, why):
            """Tasks whose machine is gone: again, or lost."""
            for key, task in batch:
                if tries.get(key, 0) < retries:
                    tries[key] = tries.get(key, 0) + 1
                    pending.append((key, task))
                else:
                    yield [Result(key, "lost", f"{type(why).__name__}: {why}", "host")]

        try:
            pending = deque()
            for key, task in todo.items():
                known = file.known.get(key) if file else None
                if known is None:
                    pending.append((key, task))
                    continue
                self.results[key] = known
                self.done += 1
                self.resumed += 1
                yield known
            run_all = _local if engine == "local" else _ray
            count = workers
            if engine == "local":
                count = workers or len(os.sched_getaffinity(0))
            for batch in run_all(pending, texts, count, retry):
                for result in batch:
                    if result.status == "lost" and tries.get(result.key, 0) < retries:
                        tries[result.key] = tries.get(result.key, 0) + 1
                        pending.append((result.key, todo[result.key]))
                    elif take(result):
                        if file:
                            file.add(result)
                        yield result
                if file:
                    file.flush()
                tell(False)
            tell(True)
        finally:
            if file:
                file.close()

    return Campaign(run, len(todo), list(todo))
