"""The switches of the plugin that count kernels."""

import json

import pytest
from conftest import HEAD

# Six statements; 40 threads of a block of 64 add.
TESTS = f"""
import numpy, handloom

K = {HEAD!r} + ".visible .entry k(.param .u64 x) {{ .reg .pred %p; .reg .b32 %t; .reg .b64 %x; mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 40; "
K += "ld.param.u64 %x, [x]; @%p red.global.add.u32 [%x], 1; bar.sync 0; ret; }}"
UNUSED = {HEAD!r} + ".visible .entry unused() {{ ret; }}"


def test_one():
    x = numpy.zeros(1, "u4")
    handloom.run(K, "k", 2, 64, x)
    assert x[0] == 80


def test_two():
    x = numpy.zeros(1, "u4")
    kernel = handloom.RawModule(code=K).get_function("k")
    kernel(2, 64, (x,))
    handloom.RawModule(code=UNUSED)
    assert x[0] == 80


def test_checked():
    handloom.run(K, "k", 2, 64, numpy.zeros(1, "u4"), check="sync")
"""


def run(pytester, *args):
    pytester.makepyfile(TESTS)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *args)


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_all_tests_are_one_report(pytester, workers):
    if workers:
        pytest.importorskip("xdist")
    files = ["--handloom-profile=p.json", "--handloom-profile=p.html", "--handloom-cover=c.info", "--handloom-cover=c.html"]
    run(pytester, *files, *workers).assert_outcomes(passed=3)
    (launch,) = json.loads((pytester.path / "p.json").read_text())["launches"]
    totals = launch["totals"]
    # Two of the three launches: the checked one is not counted.
    assert (launch["runs"], totals["warp_instructions"], totals["atomic_lanes"]) == (2, 2 * 4 * 6, 2 * 80)
    assert launch["statements"][0]["file"].startswith("module-")
    page = (pytester.path / "p.html").read_text()
    assert "Counts, not time" in page and "setp.lt.u32" in page
    lcov = (pytester.path / "c.info").read_text()
    assert lcov.count("SF:") == 2 and "FNDA:0,unused" in lcov and "FNDA:8,k" in lcov


def test_a_report_that_cannot_be_written(pytester):
    for file, why in [("/no/such/folder/p.json", "No such file"), ("p.txt", "expected a file that ends in .html or .json")]:
        result = run(pytester, f"--handloom-profile={file}")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert why in result.stdout.str() + result.stderr.str()
        assert "passed" not in result.stdout.str()
