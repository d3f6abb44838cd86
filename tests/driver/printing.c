// What kernels print appears while the host waits for them, by each call that waits, and as soon as more is kept than a GPU keeps.
#include "driver.h"
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

// `many` prints so many lines of 10 bytes, and waits until a word is not 0.
static const char TEXT[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
    ".visible .global .align 1 .b8 line[11] = {0x66, 0x72, 0x6f, 0x6d, 0x20, 0x68, 0x65, 0x72, 0x65, 10, 0};\n"
    ".visible .entry many(.param .u64 flag, .param .u32 n)\n{\n"
    ".reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p;\nld.param.u64 %rd1, [flag];\nld.param.u32 %r1, [n];\n"
    "mov.u64 %rd2, line;\ncvta.global.u64 %rd2, %rd2;\n"
    "next:\n{ .param .b64 a; .param .b64 b; .param .b32 r;\nst.param.b64 [a], %rd2;\nst.param.b64 [b], 0;\ncall (r), vprintf, (a, b); }\n"
    "sub.u32 %r1, %r1, 1;\nsetp.ne.u32 %p, %r1, 0;\n@%p bra next;\n"
    "again:\nld.acquire.sys.global.u32 %r2, [%rd1];\nsetp.eq.u32 %p, %r2, 0;\n@%p bra again;\nret;\n}\n";

static volatile uint32_t *flag;
static int from, seen;

// Lets the kernel end when its text has come, or after ten seconds without it.
static void *reader(void *most) {
    char text[4096];
    struct pollfd in = {from, POLLIN, 0};
    seen = 0;
    while (seen < *(int *)most && poll(&in, 1, 10000) == 1) {
        ssize_t n = read(from, text, sizeof text);
        if (n <= 0) break;
        seen += (int)n;
    }
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    return 0;
}

static CUresult by_context(CUstream stream) { (void)stream; return cuCtxSynchronize(); }

static CUresult by_event(CUstream stream) {
    CUevent event;
    OK(cuEventCreate(&event, 0));
    OK(cuEventRecord(event, stream));
    return cuEventSynchronize(event);
}

static CUresult by_copy(CUstream stream) {
    (void)stream;
    uint32_t word;
    return cuMemcpyDtoH_v2(&word, (CUdeviceptr)flag, sizeof word);
}

// Nobody waits, but asks until it is done.
static CUresult by_query(CUstream stream) {
    CUresult result;
    while ((result = cuStreamQuery(stream)) == 600) usleep(100);
    return result;
}

int main(void) {
    CUcontext context;
    CUmodule module;
    CUfunction many;
    int ends[2], out = dup(1);
    TRUE(pipe(ends) == 0 && dup2(ends[1], 1) == 1);
    from = ends[0];
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoadData(&module, TEXT));
    OK(cuModuleGetFunction(&many, module, "many"));
    OK(cuMemAllocHost_v2((void **)&flag, sizeof *flag));
    CUresult (*ways[])(CUstream) = {by_context, cuStreamSynchronize, by_event, by_copy, by_query};
    for (int way = 0; way < 5; way++) {
        // One line, or two megabytes of them: 1 MiB is kept where nobody waits.
        uint32_t lines = way == 4 ? 200000 : 1;
        int most = way == 4 ? 1 << 20 : 10;
        *flag = 0;
        void *params[] = {(void *)&flag, &lines};
        pthread_t thread;
        TRUE(pthread_create(&thread, 0, reader, &most) == 0);
        OK(cuLaunchKernel(many, 1, 1, 1, 1, 1, 1, 0, 0, params, 0));
        OK(ways[way](0));
        TRUE(pthread_join(thread, 0) == 0);
        if (seen < most) {
            fprintf(stderr, "way %d: %d bytes came while the kernel ran\n", way, seen);
            return 1;
        }
    }
    close(1);
    return write(out, "ok\n", 3) == 3 ? 0 : 1;
}
