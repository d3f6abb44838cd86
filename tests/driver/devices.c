// Several devices: contexts, kernels and streams on each, copies between them, a fault on one of them.
#include "driver.h"

enum { DEVICES = 3, N = 5000 };

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer);
CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags);
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes);
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes, CUstream stream);

// Memory that all devices reach, by the device that it was allocated on.
static void reached_by_all(CUcontext *contexts, CUfunction *steps, CUevent *events, CUstream *streams) {
    for (int own = 0; own < DEVICES; own++) {
        CUdeviceptr all[3];
        void *pinned[2];
        OK(cuCtxSetCurrent(contexts[own]));
        OK(cuMemAllocManaged(&all[0], 4 * N, 1));
        OK(cuMemAllocHost_v2(&pinned[0], 4 * N));
        OK(cuMemHostAlloc(&pinned[1], 4 * N, 3));
        for (int i = 0; i < 2; i++) all[i + 1] = (CUdeviceptr)pinned[i];
        for (int i = 0; i < 3; i++) {
            uint32_t *x = (uint32_t *)all[i], count = N, want = 1;
            for (int j = 0; j < N; j++) x[j] = 1;
            for (uint32_t d = 0; d < DEVICES; d++) {
                OK(cuCtxSetCurrent(contexts[d]));
                void *params[] = {&all[i], &count, &d};
                if (d > 0) OK(cuStreamWaitEvent(streams[d], events[d - 1], 0));
                OK(cuLaunchKernel(steps[d], (N + 255) / 256, 1, 1, 256, 1, 1, 0, streams[d], params, 0));
                OK(cuEventRecord(events[d], streams[d]));
                want = 3 * want + d;
            }
            OK(cuEventSynchronize(events[DEVICES - 1]));
            for (int j = 0; j < N; j++) TRUE(x[j] == want);
        }
        OK(cuMemFree_v2(all[0]));
        for (int i = 0; i < 2; i++) OK(cuMemFreeHost(pinned[i]));
    }
}

int main(void) {
    int n;
    OK(cuInit(0));
    OK(cuDeviceGetCount(&n));
    TRUE(n == DEVICES);
    CUcontext contexts[DEVICES];
    CUmodule modules[DEVICES];
    CUfunction steps[DEVICES], misses[DEVICES];
    CUstream streams[DEVICES];
    CUevent events[DEVICES];
    CUdeviceptr x[DEVICES];
    static uint32_t host[N];
    for (int d = 0; d < DEVICES; d++) {
        CUdevice device;
        OK(cuDevicePrimaryCtxRetain(&contexts[d], d));
        OK(cuCtxSetCurrent(contexts[d]));
        OK(cuCtxGetDevice(&device));
        TRUE(device == d);
        OK(cuModuleLoadData(&modules[d], KERNELS));
        OK(cuModuleGetFunction(&steps[d], modules[d], "step"));
        OK(cuModuleGetFunction(&misses[d], modules[d], "miss"));
        OK(cuStreamCreate(&streams[d], 1));
        OK(cuEventCreate(&events[d], 0));
        OK(cuMemAlloc_v2(&x[d], sizeof host));
    }
    // A chain over the devices: each takes what the one before made, multiplies it by 3 and adds its number.
    OK(cuCtxSetCurrent(contexts[0]));
    OK(cuMemsetD32Async(x[0], 1, N, streams[0]));
    uint32_t want = 1, count = N;
    for (int round = 0; round < 4; round++)
        for (uint32_t d = 0; d < DEVICES; d++) {
            int before = (d + DEVICES - 1) % DEVICES;
            OK(cuCtxSetCurrent(contexts[d]));
            if (round || d) {
                OK(cuStreamWaitEvent(streams[d], events[before], 0));
                OK(cuMemcpyPeerAsync(x[d], contexts[d], x[before], contexts[before], sizeof host, streams[d]));
            }
            void *params[] = {&x[d], &count, &d};
            OK(cuLaunchKernel(steps[d], (N + 255) / 256, 1, 1, 256, 1, 1, 0, streams[d], params, 0));
            OK(cuEventRecord(events[d], streams[d]));
            want = 3 * want + d;
        }
    OK(cuEventSynchronize(events[DEVICES - 1]));
    OK(cuMemcpyDtoH_v2(host, x[DEVICES - 1], sizeof host));
    for (int i = 0; i < N; i++) TRUE(host[i] == want);
    OK(cuMemcpyPeer(x[0], contexts[0], x[2], contexts[2], sizeof host));
    memset(host, 0, sizeof host);
    OK(cuMemcpy((CUdeviceptr)host, x[0], sizeof host));
    TRUE(host[0] == want && host[N - 1] == want);

    // A copy from device to device comes behind all that both have to do, whichever of them is current, and before what follows.
    for (int current = 0; current < 2; current++) {
        uint32_t one = 1, far = 1;
        OK(cuCtxSetCurrent(contexts[1]));
        OK(cuMemsetD32Async(x[1], 1, N, streams[1]));
        void *params[] = {&x[1], &count, &one};
        for (int i = 0; i < 300; i++) {
            OK(cuLaunchKernel(steps[1], (N + 255) / 256, 1, 1, 256, 1, 1, 0, streams[1], params, 0));
            far = 3 * far + 1;
        }
        OK(cuCtxSetCurrent(contexts[current]));
        if (current == 0)
            OK(cuMemcpyPeer(x[0], contexts[0], x[1], contexts[1], sizeof host));
        else
            OK(cuMemcpyPeerAsync(x[0], contexts[0], x[1], contexts[1], sizeof host, 0));
        OK(cuCtxSynchronize());
        OK(cuCtxSetCurrent(contexts[0]));
        OK(cuMemcpyDtoH_v2(host, x[0], sizeof host));
        for (int i = 0; i < N; i++) TRUE(host[i] == far);
    }

    reached_by_all(contexts, steps, events, streams);

    // What is of one device is not taken on another.
    OK(cuCtxSetCurrent(contexts[0]));
    EXPECT(400, cuLaunchKernel(misses[1], 1, 1, 1, 1, 1, 1, 0, streams[0], 0, 0));
    EXPECT(400, cuEventRecord(events[1], streams[0]));

    // A kernel that uses another device's memory faults, since access was never enabled; that device and the third go on.
    int can = 1;
    OK(cuDeviceCanAccessPeer(&can, 0, 1));
    TRUE(can == 0);
    uint32_t k = 0;
    void *params[] = {&x[1], &count, &k};
    OK(cuLaunchKernel(steps[0], 1, 1, 1, 32, 1, 1, 0, streams[0], params, 0));
    EXPECT(700, cuStreamSynchronize(streams[0]));
    for (int d = 1; d < DEVICES; d++) {
        OK(cuCtxSetCurrent(contexts[d]));
        OK(cuMemsetD32_v2(x[d], 2, N));
        params[0] = &x[d];
        OK(cuLaunchKernel(steps[d], 20, 1, 1, 256, 1, 1, 0, 0, params, 0));
        OK(cuMemcpyDtoH_v2(host, x[d], sizeof host));
        TRUE(host[0] == 6 && host[N - 1] == 6);
    }
    // So does one that goes past the end of what all reach, and one that uses it after it was freed. The first device is new after a reset.
    for (int freed = 0; freed < 2; freed++) {
        CUdeviceptr y;
        uint32_t rest = N % 32 + 1;
        OK(cuDevicePrimaryCtxReset_v2(0));
        OK(cuCtxSetCurrent(contexts[1]));
        OK(cuMemAllocManaged(&y, sizeof host, 1));
        CUdeviceptr end = y + 4 * (N / 32 * 32);
        OK(cuCtxSetCurrent(contexts[0]));
        OK(cuModuleLoadData(&modules[0], KERNELS));
        OK(cuModuleGetFunction(&steps[0], modules[0], "step"));
        params[0] = freed ? &y : &end;
        params[1] = freed ? &count : &rest;
        if (freed) OK(cuMemFree_v2(y));
        OK(cuLaunchKernel(steps[0], 1, 1, 1, 32, 1, 1, 0, 0, params, 0));
        EXPECT(700, cuCtxSynchronize());
    }
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuCtxSetCurrent(contexts[0]));
    OK(cuMemAlloc_v2(&x[0], 4));
    OK(cuMemsetD32_v2(x[0], 9, 1));
    OK(cuMemcpyDtoH_v2(host, x[0], 4));
    TRUE(host[0] == 9);
    puts("ok");
    return 0;
}
