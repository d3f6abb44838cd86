"""The plugin, in runs of pytest of their own."""

import re
from pathlib import Path

from conftest import RACY

TESTS = f"""
import numpy, pytest, handloom

RACY = {RACY!r}
FIXED = RACY.replace("xor.b32", "bar.sync 0; xor.b32")


def exchange(text):
    x, y = numpy.arange(64, dtype="u4"), numpy.zeros(64, "u4")
    handloom.run(text, "racy", 1, 64, x, y)


def test_plain():
    exchange(RACY)


@pytest.mark.handloom(check="race", seeds=2)
def test_marked():
    exchange(RACY)


@pytest.mark.handloom(check="race", counts=True)
def test_clean(handloom_reports):
    exchange(FIXED)
    assert len(handloom_reports) == 1 and handloom_reports[0].global_bytes <= 512


def test_reports(handloom_reports):
    exchange(FIXED)
    assert handloom_reports[0].blocks == 1 and handloom_reports[0].global_bytes is None


@pytest.mark.handloom(check=False)
def test_unchecked():
    exchange(RACY)
"""


def run(pytester, *args):
    pytester.makepyfile(TESTS)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *args)


def test_marked_tests_are_checked(pytester):
    result = run(pytester)
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["*_ test_marked _*", "race: nothing orders the write of *", "*seen   in 2 of 2 seeds*"])


def test_the_switch_checks_all(pytester):
    result = run(pytester, "--handloom-check")
    result.assert_outcomes(passed=3, failed=2)
    result = run(pytester, "--handloom-check=sync", "-k", "plain")
    result.assert_outcomes(passed=1)


def test_a_marker_that_is_wrong(pytester):
    pytester.makepyfile("import pytest\n@pytest.mark.handloom(chek=1)\ndef test(): pass\n")
    result = pytester.runpytest_subprocess()
    assert "the marker `handloom` takes no chek" in result.stdout.str() + result.stderr.str()


def test_the_page(pytester):
    page = (Path(__file__).resolve().parents[1] / "PYTEST.md").read_text()
    pytester.makepyfile(re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1))
    for options in ([], ["--handloom-check=race,sync", "--handloom-seeds=4"]):
        pytester.runpytest_subprocess(*options).assert_outcomes(passed=1)
    # Its marker is what does it: without the barrier that the page's kernel does not need, a racy one fails.
    pytester.makepyfile("import handloom, numpy, pytest\n@pytest.mark.handloom(check='race', seeds=16)\ndef test_it():\n"
        f"    handloom.run({RACY!r}, 'racy', 1, 64, numpy.ones(64, 'u4'), numpy.ones(64, 'u4'))\n")
    pytester.runpytest_subprocess().assert_outcomes(failed=1)
