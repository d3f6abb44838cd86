"""Which launches are checked that say nothing themselves, and who hears of them: the innermost of those that asked."""

from contextlib import contextmanager

from . import _native

_asked = []


def _apply():
    _native.set_checking(*(_asked[-1] if _asked else (None, None, 1, False)))


@contextmanager
def asked(listener, check, seeds, counts):
    """Launches inside are checked so, and `listener` gets their reports."""
    _asked.append((listener, check, seeds, counts))
    try:
        _apply()
        yield
    finally:
        _asked.pop()
        _apply()
