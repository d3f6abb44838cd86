"""Triton without PyTorch: vector add, softmax and a matrix product, against numpy.

With `handloom exec --open-addresses` kernels use the arrays of numpy where they are, and results are there when a launch returns.
"""

import ctypes, os, numpy as np, triton, triton.language as tl
cu=ctypes.CDLL("libcuda.so.1")
def ck(r): assert r==0, r
class Buf:
    def __init__(self, arr, dtype):
        self.arr=np.ascontiguousarray(arr); self.dtype=dtype; p=ctypes.c_uint64(); ck(cu.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(self.arr.nbytes))); self.p=p.value
        ck(cu.cuMemcpyHtoD_v2(ctypes.c_uint64(self.p), self.arr.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(self.arr.nbytes)))
    def data_ptr(self): return self.p
    def get(self):
        ck(cu.cuMemcpyDtoH_v2(self.arr.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(self.p), ctypes.c_size_t(self.arr.nbytes))); return self.arr
class HostBuf:
    def __init__(self, arr, dtype):
        self.arr=np.ascontiguousarray(arr); self.dtype=dtype
    def data_ptr(self): return self.arr.ctypes.data
    def get(self): return self.arr
if os.environ.get("HANDLOOM_OPEN_ADDRESSES")=="1": Buf=HostBuf
ck(cu.cuInit(0)); c=ctypes.c_void_p(); ck(cu.cuDevicePrimaryCtxRetain(ctypes.byref(c),0)); ck(cu.cuCtxSetCurrent(c))
f32=tl.float32
@triton.jit
def add(x,y,o,n,B: tl.constexpr):
    i=tl.program_id(0)*B+tl.arange(0,B); m=i<n
    tl.store(o+i, tl.load(x+i,mask=m)+tl.load(y+i,mask=m), mask=m)
@triton.jit
def softmax(x,o,n,B: tl.constexpr):
    r=tl.program_id(0); i=tl.arange(0,B); v=tl.load(x+r*n+i,mask=i<n,other=-float('inf'))
    v=v-tl.max(v,axis=0); e=tl.exp(v); tl.store(o+r*n+i, e/tl.sum(e,axis=0), mask=i<n)
@triton.jit
def matmul(a,b,c,M,N,K,BM: tl.constexpr,BN: tl.constexpr,BK: tl.constexpr):
    pm=tl.program_id(0); pn=tl.program_id(1)
    rm=pm*BM+tl.arange(0,BM); rn=pn*BN+tl.arange(0,BN); rk=tl.arange(0,BK)
    acc=tl.zeros((BM,BN),dtype=tl.float32)
    for k in range(0,K,BK):
        acc+=tl.dot(tl.load(a+rm[:,None]*K+(k+rk)[None,:]), tl.load(b+(k+rk)[:,None]*N+rn[None,:]))
    tl.store(c+rm[:,None]*N+rn[None,:], acc)
rng=np.random.default_rng(1)
n=1000
x=rng.standard_normal(n).astype(np.float32); y=rng.standard_normal(n).astype(np.float32)
bx,by,bo=Buf(x,f32),Buf(y,f32),Buf(np.zeros(n,np.float32),f32)
add[(4,)](bx,by,bo,n,B=256); assert np.array_equal(bo.get(),x+y); print("add ok")
x=rng.standard_normal((8,100)).astype(np.float32); bx,bo=Buf(x,f32),Buf(np.zeros_like(x),f32)
softmax[(8,)](bx,bo,100,B=128); e=np.exp(x-x.max(1,keepdims=True)); np.testing.assert_allclose(bo.get(), e/e.sum(1,keepdims=True), rtol=1e-5); print("softmax ok")
a=rng.standard_normal((64,128)).astype(np.float16); b=rng.standard_normal((128,64)).astype(np.float16)
ba,bb,bc=Buf(a,tl.float16),Buf(b,tl.float16),Buf(np.zeros((64,64),np.float32),f32)
matmul[(2,2)](ba,bb,bc,64,64,128,BM=32,BN=32,BK=32); np.testing.assert_allclose(bc.get(), a.astype(np.float32)@b.astype(np.float32), rtol=2e-3,atol=2e-3); print("matmul ok")
