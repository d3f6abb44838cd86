"""Writes the names that the documentation of the driver API and the headers of the runtime API have: `driver.txt` and `runtime.txt` beside this script,
which a test compares with what the libraries export.

    python extract.py FOLDER-OF-PAGES INCLUDE-FOLDER

The pages are those of "Modules" of the driver API as text: a function stands at the start of a line, after the type of its result. The headers come with
nvidia-cuda-runtime. Left out is what only another system has: Direct3D and WGL.
"""

import pathlib
import re
import sys

OTHER_SYSTEMS = re.compile(r"D3D|WGL")
HEADERS = ["cuda_runtime_api.h", "cuda_gl_interop.h", "cuda_egl_interop.h", "cuda_vdpau_interop.h", "cuda_profiler_api.h"]


def write(name, found):
    found = sorted(n for n in found if not OTHER_SYSTEMS.search(n))
    (pathlib.Path(__file__).parent / name).write_text("".join(f"{n}\n" for n in found))
    print(name, len(found))


def main():
    pages, include = map(pathlib.Path, sys.argv[1:])
    driver = set()
    for page in pages.glob("*.md"):
        driver |= set(re.findall(r"^CUresult (cu[A-Z]\w+) \(", page.read_text(), re.M))
    write("driver.txt", driver)
    runtime = set()
    for header in HEADERS:
        if (include / header).exists():
            runtime |= set(re.findall(r"CUDARTAPI(?:_CDECL)?\s+(cuda[A-Z]\w+)\s*\(", (include / header).read_text()))
    write("runtime.txt", runtime)


main()
