"""Libraries that stand in for those of NVIDIA that PyTorch is linked to, so that it can be loaded without them: every function of them ends the program.

    python stand_ins.py FOLDER

Needs `nm`, `readelf` and `cc`. The runtime library is not among them: it is Handloom's.
"""

import collections
import importlib.util
import pathlib
import re
import subprocess
import sys

# Libraries without versions of symbols, by the beginnings of the names that they have.
PLAIN = {"libnccl.so": "nccl", "libcusparseLt.so": "cusparseLt", "libcufile.so": "cuFile", "libnvshmem_host.so": "nvshmem"}
OURS = ("libcuda.so", "libcudart.so")


def said(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    to = pathlib.Path(sys.argv[1])
    to.mkdir(parents=True, exist_ok=True)
    # Found without being loaded, which is what cannot be done yet.
    folder = pathlib.Path(importlib.util.find_spec("torch").origin).parent / "lib"
    needed, versions, of_version, plain = set(), collections.defaultdict(set), collections.defaultdict(set), set()
    for file in sorted(folder.glob("*.so*")):
        needed.update(re.findall(r"NEEDED.*\[(lib(?:cu|nv|nccl)[^]]*)\]", said("readelf", "-dW", file)))
        library = None
        for line in said("readelf", "-VW", file).splitlines():
            if found := re.search(r"File: (\S+)", line):
                library = found[1]
            elif found := re.search(r"Name: (\S+)\s+Flags", line):
                versions[library].add(found[1])
        for line in said("nm", "-D", "--undefined-only", "--with-symbol-versions", file).splitlines():
            name, _, version = line.split()[-1].partition("@")
            (of_version[version.lstrip("@")] if version else plain).add(name)
    for library in sorted(needed):
        if library.startswith(OURS):
            continue
        names = {version: sorted(of_version[version]) for version in sorted(versions[library])}
        begin = next((begin for start, begin in PLAIN.items() if library.startswith(start)), None)
        loose = sorted(name for name in plain if begin and name.startswith(begin))
        functions = [name for some in [*names.values(), loose] for name in some]
        source, script = to / "source.c", to / "versions"
        source.write_text("".join(f"void {name}(void) {{ __builtin_trap(); }}\n" for name in functions))
        script.write_text("".join(f"{version} {{ global: {' '.join(f'{n};' for n in some)} }};\n" for version, some in names.items() if some))
        options = [f"-Wl,--version-script={script}"] if any(names.values()) else []
        said("cc", "-w", "-fno-builtin", "-shared", "-fPIC", "-o", to / library, source, f"-Wl,-soname,{library}", *options)
        source.unlink()
        script.unlink()


main()
