import numpy as np
from cuda.core import Device, Stream, Program, ProgramOptions, LaunchConfig, launch, ObjectCode
PTX=open('/tmp/wt/driver/tests/kernels/saxpy.ptx').read()
d=Device(); d.set_current(); s=d.create_stream()
print(d.name, d.compute_capability)
code=ObjectCode.from_ptx(PTX.encode()); k=code.get_kernel("saxpy")
n=1000
from cuda.core import LegacyPinnedMemoryResource, DeviceMemoryResource
mr=LegacyPinnedMemoryResource(); 
bx=mr.allocate(4*n); by=mr.allocate(4*n)
x=np.from_dlpack(bx).view(np.float32); y=np.from_dlpack(by).view(np.float32)
x[:]=np.arange(n); y[:]=1
launch(s, LaunchConfig(grid=4,block=256), k, np.int32(n) if False else np.uint32(n), np.float32(2.0), bx, by)
s.sync(); assert np.array_equal(y, 2*np.arange(n,dtype=np.float32)+1), y[:5]; print("cuda-core ok")
