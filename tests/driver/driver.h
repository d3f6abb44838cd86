// What these programs use of the driver interface, declared by hand. They link to libcuda.so.1 as any program does.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef void *CUcontext, *CUmodule, *CUfunction, *CUstream, *CUevent, *CUgraph, *CUgraphNode, *CUgraphExec, *CUlibrary, *CUkernel;

CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuGetErrorName(CUresult code, const char **name);
CUresult cuGetErrorString(CUresult code, const char **text);
CUresult cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags, int *status);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
CUresult cuDeviceGetName(char *name, int bytes, CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxSetLimit(int limit, size_t value);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxPopCurrent_v2(CUcontext *context);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxSynchronize(void);
CUresult cuCtxGetLimit(size_t *value, int limit);
CUresult cuMemGetInfo_v2(size_t *free, size_t *total);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemAllocHost_v2(void **address, size_t bytes);
CUresult cuMemFreeHost(void *address);
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags);
CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream);
CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned flags);
CUresult cuMemHostUnregister(void *address);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address);
CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr address);
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t n);
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t n);
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream stream);
CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height);
CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUresult cuStreamIsCapturing(CUstream stream, int *status);
CUresult cuStreamAddCallback(CUstream stream, void (*call)(CUstream, CUresult, void *), void *data, unsigned flags);
CUresult cuLaunchHostFunc(CUstream stream, void (*call)(void *), void *data);
CUresult cuEventCreate(CUevent *event, unsigned flags);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n, int *options, void **values);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name);
CUresult cuLibraryLoadData(CUlibrary *library, const void *code, int *, void **, unsigned, int *, void **, unsigned);
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name);
CUresult cuLibraryUnload(CUlibrary library);
CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function);
CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value);
CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                        CUstream stream, void **params, void **extra);
CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                             CUstream stream, void **params, void **extra);
CUresult cuGraphCreate(CUgraph *graph, unsigned flags);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n);
CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error, char *log, size_t bytes);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
CUresult cuGraphExecDestroy(CUgraphExec exec);
CUresult cuArrayGetPlane(void **plane, void *array, unsigned which);

// The kernels: `step`: x = 3 x + k for each element; `miss`: a store to nowhere; `spin` waits until a word is not 0; `empty`.
static const char KERNELS[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .global .align 4 .u32 table[4] = {1, 2, 3, 4};\n"
    ".visible .entry step(.param .u64 x, .param .u32 n, .param .u32 k)\n{\n"
    ".reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .pred %p;\n"
    "ld.param.u64 %rd1, [x]; ld.param.u32 %r5, [n]; ld.param.u32 %r4, [k];\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "mad.lo.u32 %r1, %r1, %r2, %r3;\nsetp.ge.u32 %p, %r1, %r5;\n@%p ret;\n"
    "mul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd1, %rd1, %rd2;\nld.global.u32 %r2, [%rd1];\n"
    "mad.lo.u32 %r2, %r2, 3, %r4;\nst.global.u32 [%rd1], %r2;\nret;\n}\n"
    ".visible .entry miss()\n{\n.reg .b64 %rd<2>;\nmov.u64 %rd1, 64;\nst.global.u32 [%rd1], 1;\nret;\n}\n"
    ".visible .entry spin(.param .u64 flag)\n{\n.reg .b32 %r; .reg .b64 %rd; .reg .pred %p;\nld.param.u64 %rd, [flag];\n"
    "again:\nld.acquire.sys.global.u32 %r, [%rd];\nsetp.eq.u32 %p, %r, 0;\n@%p bra again;\nret;\n}\n"
    ".visible .entry empty()\n{\nret;\n}\n";

// Ends the program with the place if a call returns something else.
#define EXPECT(want, call)                                                                                        \
    do {                                                                                                          \
        int got_ = (call);                                                                                        \
        if (got_ != (want)) {                                                                                     \
            fprintf(stderr, "%s:%d: %s returned %d, expected %d\n", __FILE__, __LINE__, #call, got_, (int)(want)); \
            exit(1);                                                                                              \
        }                                                                                                         \
    } while (0)
#define OK(call) EXPECT(0, call)
#define TRUE(condition) EXPECT(1, !!(condition))
