"""tinygrad on a driver of a few lines whose launches are `ptx_run` of `libhandloom`, called as tinygrad's own mock GPU calls it: addresses of the host and integers as words.

`HANDLOOM_CAPI` is the library. The device is `MOCK+CUDA:PTX`.
"""

import ctypes
import os
import sys
import types

os.environ["DEV"] = "MOCK+CUDA:PTX"
handloom = ctypes.CDLL(os.environ["HANDLOOM_CAPI"])
handloom.ptx_run.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p)] + [ctypes.c_int] * 7

memory, modules, launches = {}, {}, []


def done(*_):
    return 0


def gives(at, value):
    at._obj.value = value
    return 0


def address(o):
    return o if isinstance(o, int) else o.value


def allocate(at, count, *_):
    block = ctypes.create_string_buffer(count)
    memory[ctypes.addressof(block)] = block
    return gives(at, ctypes.addressof(block))


def free(at):
    return 0 if memory.pop(address(at), None) else 1


def copy(to, source, count, *_):
    ctypes.memmove(address(to), address(source), count)
    return 0


def load(module, image):
    modules[len(modules) + 1] = image
    return gives(module, len(modules))


def function(kernel, module, name):
    return gives(kernel, module.value)


def launch(kernel, gx, gy, gz, lx, ly, lz, shared, stream, params, extra):
    words = [ctypes.cast(getattr(extra, field[0]), ctypes.c_void_p) for field in extra._real_fields_]
    launches.append(kernel.value)
    return 719 if handloom.ptx_run(modules[kernel.value], len(words), (ctypes.c_void_p * len(words))(*words), lx, ly, lz, gx, gy, gz, 0) else 0


cuda = types.ModuleType("test.mockgpu.cuda.cuda")
import tinygrad.runtime.autogen.cuda as real  # noqa: E402

for name in dir(real):
    if not name.startswith("__"):
        setattr(cuda, name, getattr(real, name))
for name in ("cuInit cuCtxSetCurrent cuCtxSynchronize cuModuleUnload cuFuncSetAttribute cuStreamWaitEvent cuCtxEnablePeerAccess cuEventRecord cuEventSynchronize cuEventDestroy_v2").split():
    setattr(cuda, name, done)
cuda.cuDeviceGet = gives
cuda.cuCtxCreate_v2 = lambda context, flags, device: gives(context, 1)
cuda.cuDeviceComputeCapability = lambda major, minor, device: gives(major, 8) or gives(minor, 0)
cuda.cuDeviceCanAccessPeer = lambda can, a, b: gives(can, 1)
cuda.cuEventCreate = lambda event, flags: gives(event, 1)
cuda.cuEventElapsedTime = lambda ms, start, end: gives(ms, 0.0)
cuda.cuMemAlloc_v2 = cuda.cuMemHostAlloc = allocate
cuda.cuMemFree_v2 = cuda.cuMemFreeHost = free
cuda.cuMemcpyHtoDAsync_v2 = cuda.cuMemcpyDtoH_v2 = cuda.cuMemcpyDtoDAsync_v2 = copy
cuda.cuModuleLoadData, cuda.cuModuleGetFunction, cuda.cuLaunchKernel = load, function, launch
for name in ("test", "test.mockgpu", "test.mockgpu.cuda", "test.mockgpu.mockgpu"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["test.mockgpu.cuda"].cuda = cuda
sys.modules["test.mockgpu.mockgpu"].MockFileIOInterface = object

import numpy as np  # noqa: E402
from tinygrad import Device, Tensor, Variable  # noqa: E402

assert Device.DEFAULT == "CUDA", Device.DEFAULT
rng = np.random.default_rng(1)
a, b = rng.standard_normal((33, 17)).astype(np.float32), rng.standard_normal((17, 21)).astype(np.float32)
np.testing.assert_allclose((Tensor(a) @ Tensor(b)).numpy(), a @ b, rtol=1e-4, atol=1e-4)
np.testing.assert_allclose(Tensor(a).exp().sum(0).numpy(), np.exp(a).sum(0), rtol=1e-4)
np.testing.assert_array_equal((Tensor(np.arange(99)) * 3 % 7).numpy(), np.arange(99) * 3 % 7)
# A kernel with an integer among its words.
n = Variable("n", 1, 90).bind(40)
np.testing.assert_allclose(Tensor(np.arange(90, dtype=np.float32))[:n].sum().numpy(), np.arange(40).sum())
# What is wrong comes back as an error of the driver.
assert launches and handloom.ptx_run(b"nonsense", 0, None, 1, 1, 1, 1, 1, 1, 0) != 0
print(f"{len(launches)} launches: ok")
