"""Programs of nvcc that are linked in other ways than usual: of two files that use each other's device code, and with the static runtime library.

    handloom exec -- python nvcc_links.py LIBCUDART

Run by the Python that has nvcc's packages. LIBCUDART is the shared runtime library to link to.
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "kernels"))
from make import installed  # noqa: E402

A = """
#include <cstdio>
extern __device__ int square(int);
extern __device__ int table[4];
__global__ void sum(int *x) { x[threadIdx.x] = square(threadIdx.x) + table[threadIdx.x]; }
int other(int *);
int main() {
    int *d, h[4];
    if (cudaMalloc(&d, sizeof h)) return 2;
    sum<<<1, 4>>>(d);
    if (cudaMemcpy(h, d, sizeof h, cudaMemcpyDefault)) return 3;
    printf("%d %d %d %d %d\\n", h[0], h[1], h[2], h[3], other(d));
}
"""
B = """
__device__ int table[4] = {10, 20, 30, 40};
__device__ int square(int x) { return x * x; }
__global__ void one(int *x) { *x = square(7) + table[1]; }
int other(int *d) {
    int h = 0, t[4] = {1, 2, 3, 4};
    cudaMemcpyToSymbol(table, t, sizeof t);
    one<<<1, 1>>>(d);
    cudaMemcpy(&h, d, sizeof h, cudaMemcpyDefault);
    return h;
}
"""
C = """
#include <cstdio>
__global__ void one(int *x) { *x = 1; }
int main() {
    int *d;
    cudaError_t e = cudaMalloc(&d, 4);
    printf("%s\\n", cudaGetErrorName(e));
    one<<<1, 1>>>(d);
}
"""


def main():
    library = pathlib.Path(sys.argv[1]).resolve()
    nvcc = installed("nvidia-cuda-nvcc", r"bin/nvcc$")
    static = installed("nvidia-cuda-runtime", r"lib/libcudart_static\.a$")
    with tempfile.TemporaryDirectory() as folder:

        def run(*command):
            return subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        def build(*command):
            done = run(*command)
            assert done.returncode == 0, done.stderr

        for name, text in (("a", A), ("b", B), ("c", C)):
            (pathlib.Path(folder) / f"{name}.cu").write_text(text)
        for name in ("a", "b"):
            build(nvcc, "-arch=sm_80", "-rdc=true", "-c", f"{name}.cu", "-o", f"{name}.o")
        build(nvcc, "-arch=sm_80", "-dlink", "a.o", "b.o", "-o", "linked.o", "-L", static.parent)
        build("c++", "a.o", "b.o", "linked.o", "-o", "two", library)
        two = run("./two")
        assert two.returncode == 0 and two.stdout == "10 21 34 49 51\n", two

        build(nvcc, "-arch=sm_80", "-c", "c.cu", "-o", "c.o")
        build("c++", "c.o", "-o", "static", static, "-ldl", "-lrt", "-lpthread")
        refused = run("./static")
        assert "-cudart shared" in refused.stderr and "cudaSuccess" not in refused.stdout, refused
        assert refused.stderr.count("handloom:") == 1, refused
    print("ok")


main()
