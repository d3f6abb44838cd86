"""cuda-core: a kernel from PTX, launched in a stream on pinned memory."""

import os

import numpy as np
from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch

KERNELS = os.path.join(os.path.dirname(__file__), "..", "kernels", "saxpy.ptx")

device = Device()
device.set_current()
assert "Handloom" in device.name
stream = device.create_stream()
with open(KERNELS, "rb") as file:
    kernel = ObjectCode.from_ptx(file.read()).get_kernel("saxpy")
n = 1000
memory = LegacyPinnedMemoryResource()
buffers = [memory.allocate(4 * n) for _ in range(2)]
x, y = (np.from_dlpack(b).view(np.float32) for b in buffers)
x[:], y[:] = np.arange(n), 1
start, end = device.create_event({"timing_enabled": True}), device.create_event({"timing_enabled": True})
stream.record(start)
launch(stream, LaunchConfig(grid=4, block=256), kernel, np.uint32(n), np.float32(2), *buffers)
stream.record(end)
stream.sync()
np.testing.assert_array_equal(y, 2 * np.arange(n, dtype=np.float32) + 1)
assert end - start >= 0
print("saxpy: ok")
