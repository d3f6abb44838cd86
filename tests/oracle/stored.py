"""The verdicts as they are stored, for the scripts that ask for more of them."""

import os
import zlib


def recorded(name):
    """The lines of verdicts by version and target."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), "rb") as f:
        text = zlib.decompress(f.read()).decode()
    out = {}
    for line in text.splitlines():
        if line.startswith("= "):
            now = out.setdefault(tuple(line[2:].split()), [])
        elif line[0] in "+-":
            now.append(line)
    return out
