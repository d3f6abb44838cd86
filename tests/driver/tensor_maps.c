// Tensor maps that the driver encodes: a kernel copies a box by one, and wrong ones are refused.
#include "driver.h"

typedef struct {
    _Alignas(64) unsigned char bytes[128];
} Map;

CUresult cuTensorMapEncodeTiled(Map *, int type, unsigned rank, void *at, const uint64_t *dims, const uint64_t *strides, const unsigned *box,
                                const unsigned *steps, int interleave, int swizzle, int promotion, int fill);
CUresult cuTensorMapEncodeIm2col(Map *, int type, unsigned rank, void *at, const uint64_t *dims, const uint64_t *strides, const int *lower,
                                 const int *upper, unsigned channels, unsigned pixels, const unsigned *steps, int interleave, int swizzle,
                                 int promotion, int fill);
CUresult cuTensorMapReplaceAddress(Map *, void *at);

// A box of 4 by 2 from (x, y) on, by one thread; its eight words go out.
static const char *TEXT =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry box(.param .align 64 .b8 map[128], .param .u32 x, .param .u32 y, .param .u64 out) {\n"
    ".shared .align 8 .b64 bar; .shared .align 128 .b8 tile[128];\n"
    ".reg .b64 %m, %o; .reg .b32 %x, %y, %i, %a, %v; .reg .pred %p, %q;\n"
    "mov.b64 %m, map; cvta.param.u64 %m, %m; ld.param.u32 %x, [x]; ld.param.u32 %y, [y]; ld.param.u64 %o, [out];\n"
    "mov.u32 %i, %tid.x; setp.ne.u32 %p, %i, 0; @%p bra made;\n"
    "mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 32;\n"
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%m, {%x, %y}], [bar];\n"
    "made: bar.sync 0;\n"
    "wait: mbarrier.try_wait.parity.shared.b64 %q, [bar], 0; @!%q bra wait;\n"
    "mov.u32 %a, tile; mad.lo.u32 %a, %i, 4, %a; ld.shared.u32 %v, [%a]; mad.wide.u32 %o, %i, 4, %o; st.global.u32 [%o], %v; ret; }\n";

int main(void) {
    CUcontext context;
    CUmodule module;
    CUfunction f;
    CUdeviceptr from, to;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    int has;
    OK(cuDeviceGetAttribute(&has, 127, 0));
    TRUE(has == 1);
    OK(cuModuleLoadData(&module, TEXT));
    OK(cuModuleGetFunction(&f, module, "box"));
    OK(cuMemAlloc_v2(&from, 4 * 8 * 6));
    OK(cuMemAlloc_v2(&to, 32));
    unsigned host[48], got[8];
    for (unsigned i = 0; i < 48; i++) host[i] = 100 + i;
    OK(cuMemcpyHtoD_v2(from, host, sizeof host));

    // 8 by 5 words, from the second line on.
    uint64_t dims[2] = {8, 5}, strides[1] = {32};
    unsigned box[2] = {4, 2}, steps[2] = {1, 1};
    Map map;
    // The address may come later.
    OK(cuTensorMapEncodeTiled(&map, 2, 2, 0, dims, strides, box, steps, 0, 0, 0, 0));
    OK(cuTensorMapReplaceAddress(&map, (void *)(from + 32)));
    unsigned x = 6, y = 3;
    void *args[] = {&map, &x, &y, &to};
    OK(cuLaunchKernel(f, 1, 1, 1, 8, 1, 1, 0, 0, args, 0));
    OK(cuMemcpyDtoH_v2(got, to, 32));
    // Two of four words are outside of a line.
    for (unsigned i = 0; i < 8; i++) TRUE(got[i] == (i % 4 < 2 ? 100 + 8 + 8 * (3 + i / 4) + 6 + i % 4 : 0));

    TRUE(cuTensorMapEncodeTiled(0, 2, 2, (void *)from, dims, strides, box, steps, 0, 0, 0, 0) == 1);
    TRUE(cuTensorMapEncodeTiled(&map, 2, 2, (void *)(from + 4), dims, strides, box, steps, 0, 0, 0, 0) == 1);
    TRUE(cuTensorMapEncodeTiled(&map, 99, 2, (void *)from, dims, strides, box, steps, 0, 0, 0, 0) == 1);
    TRUE(cuTensorMapEncodeTiled(&map, 2, 6, (void *)from, dims, strides, box, steps, 0, 0, 0, 0) == 1);
    TRUE(cuTensorMapEncodeTiled(&map, 2, 2, (void *)from, dims, 0, box, steps, 0, 0, 0, 0) == 1);
    strides[0] = 20;
    TRUE(cuTensorMapEncodeTiled(&map, 2, 2, (void *)from, dims, strides, box, steps, 0, 0, 0, 0) == 1);
    strides[0] = 32;
    box[1] = 257;
    TRUE(cuTensorMapEncodeTiled(&map, 2, 2, (void *)from, dims, strides, box, steps, 0, 0, 0, 0) == 1);
    uint64_t picture[4] = {16, 4, 3, 1}, apart[3] = {16, 64, 192};
    unsigned ones[4] = {1, 1, 1, 1};
    int lower[2] = {-1, -1}, upper[2] = {-1, -1}, far[2] = {-200, 0};
    OK(cuTensorMapEncodeIm2col(&map, 0, 4, (void *)from, picture, apart, lower, upper, 16, 4, ones, 0, 0, 0, 0));
    TRUE(cuTensorMapEncodeIm2col(&map, 0, 4, (void *)from, picture, apart, far, upper, 16, 4, ones, 0, 0, 0, 0) == 1);
    puts("ok");
    return 0;
}
