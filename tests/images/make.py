#!/usr/bin/env python3
"""Makes the images of this folder from its .cu files: what NVIDIA's compiler leaves PTX in, and what it does not.

    python3 -m venv VENV
    VENV/bin/pip install -r tests/images/requirements.txt
    VENV/bin/python tests/images/make.py

No GPU is needed, but g++. The compiler is found among the packages of the Python that runs this script. Everything is built in an
empty folder under the names that stand here; the paths of that folder and of the compiler are overwritten in what comes out.
"""

import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CUDA = pathlib.Path(sysconfig.get_paths()["purelib"]) / "nvidia" / "cu13"

# Targets of a fat binary: machine code and PTX for one, architecture-specific ones, a family.
FAT = "-fatbin -gencode arch=compute_75,code=[sm_75,compute_75] -gencode arch=compute_90a,code=compute_90a -gencode arch=compute_100f,code=compute_100f"
HOST = "-cudart shared -cudadevrt none -Xlinker -s,-z,noseparate-code,--build-id=none,--allow-shlib-undefined"
PIC = "-Xcompiler -fPIC"

# Names of files, with what is made of them.
STEPS = [
    ("saxpy.compute_75.ptx", "-ptx -arch=compute_75 saxpy.cu"),
    ("saxpy.compute_90a.ptx", "-ptx -arch=compute_90a saxpy.cu"),
    ("saxpy.compute_100f.ptx", "-ptx -arch=compute_100f saxpy.cu"),
    ("plain.cubin", "-cubin -arch=sm_80 saxpy.cu"),
    ("lineinfo.cubin", "-cubin -lineinfo -arch=sm_80 saxpy.cu"),
    ("lineinfo.sm_100a.cubin", "-cubin -lineinfo -arch=sm_100a saxpy.cu"),
    ("debug.cubin", "-cubin -G -arch=sm_80 saxpy.cu"),
    ("raw.fatbin", f"{FAT} --compress-mode=none saxpy.cu"),
    ("lz4.fatbin", f"{FAT} --compress-mode=speed saxpy.cu"),
    ("zstd.fatbin", f"{FAT} --compress-mode=size saxpy.cu"),
    ("lineinfo.fatbin", "-fatbin -lineinfo -gencode arch=compute_80,code=compute_80 saxpy.cu"),
    ("cubins.fatbin", "-fatbin -lineinfo -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 saxpy.cu"),
    ("sass.fatbin", "-fatbin -gencode arch=compute_80,code=sm_80 saxpy.cu"),
    ("lto.fatbin", "-fatbin -dlto -arch=lto_80 saxpy.cu"),
    ("nvvm.ltoir", "-dlto -ltoir -arch=lto_80 saxpy.cu"),
    ("first.o", f"-arch=sm_80 -c {PIC} first.cu"),
    ("second.o", f"-arch=sm_80 -c {PIC} second.cu"),
    ("two", f"-arch=sm_80 {HOST} first.o second.o"),
    ("second.so", f"-arch=sm_80 -shared {HOST} second.o"),
    ("two.a", "-arch=sm_80 -lib first.o second.o"),
    ("linked_first.o", "-DLINKED -rdc=true -lineinfo -arch=sm_80 -c first.cu"),
    ("linked_second.o", "-DLINKED -rdc=true -lineinfo -arch=sm_80 -c second.cu"),
    ("linked", f"-rdc=true -arch=sm_80 {HOST} linked_first.o linked_second.o"),
    ("linked.cubin", "-dlink -cubin -arch=sm_80 linked_first.o linked_second.o"),
]

# Made on the way, and not kept: the program holds the same.
TEMPORARY = ["linked_first.o", "linked_second.o"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for source in HERE.glob("*.cu"):
            shutil.copy(source, folder)
        # The linker looks for this name.
        libraries = folder / "lib"
        libraries.mkdir()
        (libraries / "libcudart.so").symlink_to(CUDA / "lib" / "libcudart.so.13")
        for name, options in STEPS:
            command = [CUDA / "bin" / "nvcc", *options.split(), "-L", "lib", "-o", name]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{name}: {done.stdout}{done.stderr}")
        for name, _ in STEPS:
            if name not in TEMPORARY:
                data = (folder / name).read_bytes()
                for path in (str(folder).encode(), str(CUDA).encode()):
                    data = data.replace(path, b"x" * len(path))
                (HERE / name).write_bytes(data)
                print(name, (HERE / name).stat().st_size)


if __name__ == "__main__":
    main()
