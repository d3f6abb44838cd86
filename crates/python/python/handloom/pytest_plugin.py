"""The pytest plugin: kernels that run inside of a test are checked, and findings fail it.

- `@pytest.mark.handloom(check="race", seeds=16, counts=True)` for one test;
- `--handloom-check[=LIST]` and `--handloom-seeds=N` for all;
- `--handloom-profile=FILE` and `--handloom-cover=FILE` for the counts of all kernels that tests launch;
- the fixture `handloom_reports`: the reports of the launches of the test so far.
"""

import sys
from pathlib import Path

import pytest


def pytest_addoption(parser):
    group = parser.getgroup("handloom")
    group.addoption(
        "--handloom-check",
        nargs="?",
        const="memory,init,race,sync",
        default=None,
        metavar="LIST",
        help="check all kernels that tests launch: a list of memory, init, race, sync (all of them)",
    )
    group.addoption(
        "--handloom-seeds", type=int, default=1, metavar="N", help="run each checked launch in N orders of its blocks"
    )
    for what, files in (("profile", ".html or .json"), ("cover", ".html, .json or .info for lcov")):
        group.addoption(
            f"--handloom-{what}",
            action="append",
            default=[],
            metavar="FILE",
            help=f"count all kernels that tests launch, as `handloom {what}` does, and write a report: {files}",
        )


def _wants_counts(config):
    """The files of profiles and of coverages."""
    return config.getoption("--handloom-profile"), config.getoption("--handloom-cover")


def _read(name):
    try:
        return Path(name).read_text(errors="replace")
    except OSError:
        return None


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    config = session.config
    profiles, covers = _wants_counts(config)
    if not profiles and not covers:
        return
    from handloom import _native

    _native.start_counting(not profiles)
    if hasattr(config, "workerinput"):
        return
    # What cannot be written is said before any test runs.
    for file, coverage in [(f, False) for f in profiles] + [(f, True) for f in covers]:
        try:
            _native.counts_report([], coverage, file, _read)
            open(file, "a").close()
        except (OSError, ValueError) as e:
            raise pytest.UsageError(f"--handloom-{'cover' if coverage else 'profile'}: {e}") from None


class _Workers:
    """Counts of the processes of pytest-xdist."""

    def pytest_testnodedown(self, node, error):
        part = getattr(node, "workeroutput", {}).get("handloom_counted")
        if part is not None:
            node.config.stash[_PARTS].append(part)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    config = session.config
    profiles, covers = _wants_counts(config)
    if not profiles and not covers:
        return
    from handloom import _native

    part = _native.counted()
    if part is None:
        return
    if hasattr(config, "workerinput"):
        config.workeroutput["handloom_counted"] = part
        return
    parts = [*config.stash[_PARTS], part]
    for file in profiles:
        Path(file).write_text(_native.counts_report(parts, False, file, _read))
    for file in covers:
        Path(file).write_text(_native.counts_report(parts, True, file, _read))


def pytest_configure(config):
    config.stash[_PARTS] = []
    if config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.register(_Workers())
    config.addinivalue_line(
        "markers",
        "handloom(check=True, seeds=1, counts=False): check the kernels that the test launches; findings fail it",
    )


_KEY = pytest.StashKey()
_PARTS = pytest.StashKey()


@pytest.fixture
def handloom_reports(request):
    """The reports of the kernels that the test has launched so far, in their order."""
    return request.node.stash[_KEY]


def _wanted(item):
    """What is checked in a test: arguments of `set_checking`, or None."""
    check, seeds, counts = item.config.getoption("--handloom-check"), item.config.getoption("--handloom-seeds"), False
    marker = item.get_closest_marker("handloom")
    if marker is not None:
        if marker.args:
            raise pytest.UsageError(f"{item.nodeid}: the marker `handloom` takes keywords: check, seeds, counts")
        unknown = set(marker.kwargs) - {"check", "seeds", "counts"}
        if unknown:
            raise pytest.UsageError(f"{item.nodeid}: the marker `handloom` takes no {', '.join(sorted(unknown))}")
        check = marker.kwargs.get("check", True)
        seeds = marker.kwargs.get("seeds", seeds)
        counts = marker.kwargs.get("counts", False)
    return check, seeds, counts


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    item.stash[_KEY] = []
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    uses = "handloom_reports" in getattr(item, "fixturenames", ())
    check, seeds, counts = _wanted(item)
    if not check and not counts and not uses:
        return (yield)
    import handloom
    from handloom._checking import asked

    reports = item.stash[_KEY]
    with asked(reports.append, check or None, seeds if check or counts else 1, counts):
        result = yield
    found = [report for report in reports if not report.ok]
    if found:
        raise handloom.CheckError(found)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    error = call.excinfo.value if call.excinfo is not None else None
    handloom = sys.modules.get("handloom")
    if handloom is not None and isinstance(error, handloom.CheckError) and call.when == "call":
        # The findings are what there is to say; the frames are those of the plugin.
        report.longrepr = str(error)
    return report
