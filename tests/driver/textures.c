// Arrays, textures and surfaces: what kernels read and write through them, copies to and from arrays, and what is refused.
#include "driver.h"

typedef void *CUarray, *CUmipmappedArray;
typedef unsigned long long CUobject;
typedef struct {
    size_t width, height;
    unsigned format, channels;
} Plane;
typedef struct {
    size_t width, height, depth;
    unsigned format, channels, flags;
} Solid;
typedef struct {
    unsigned kind;
    union {
        CUarray array;
        CUmipmappedArray levels;
        struct {
            CUdeviceptr at;
            unsigned format, channels;
            size_t bytes;
        } linear;
        struct {
            CUdeviceptr at;
            unsigned format, channels;
            size_t width, height, pitch;
        } rows;
        int reserved[32];
    } res;
    unsigned flags;
} Resource;
typedef struct {
    unsigned address[3], filter, flags, anisotropy, mip_filter;
    float bias, min, max, border[4];
    int reserved[12];
} Reading;
typedef struct {
    size_t x, y;
    unsigned kind;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    size_t pitch;
} Side;
typedef struct {
    Side src, dst;
    size_t width, height;
} Rectangle;
typedef struct {
    size_t x, y, z, level;
    unsigned kind;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    void *reserved;
    size_t pitch, height;
} Corner;
typedef struct {
    Corner src, dst;
    size_t width, height, depth;
} Cuboid;

typedef struct {
    unsigned format;
    size_t width, height, depth;
    unsigned first_level, last_level, first_layer, last_layer, reserved[16];
} View;

CUresult cuArrayCreate_v2(CUarray *, const Plane *);
CUresult cuArrayGetDescriptor_v2(Plane *, CUarray);
CUresult cuArray3DCreate_v2(CUarray *, const Solid *);
CUresult cuArray3DGetDescriptor_v2(Solid *, CUarray);
CUresult cuArrayDestroy(CUarray);
CUresult cuMipmappedArrayCreate(CUmipmappedArray *, const Solid *, unsigned);
CUresult cuMipmappedArrayGetLevel(CUarray *, CUmipmappedArray, unsigned);
CUresult cuMipmappedArrayDestroy(CUmipmappedArray);
CUresult cuTexObjectCreate(CUobject *, const Resource *, const Reading *, const void *);
CUresult cuTexObjectDestroy(CUobject);
CUresult cuTexObjectGetResourceDesc(Resource *, CUobject);
CUresult cuTexObjectGetResourceViewDesc(View *, CUobject);
CUresult cuTexObjectGetTextureDesc(Reading *, CUobject);
CUresult cuSurfObjectCreate(CUobject *, const Resource *);
CUresult cuSurfObjectDestroy(CUobject);
CUresult cuMemcpy2D_v2(const Rectangle *);
CUresult cuMemcpy3D_v2(const Cuboid *);
CUresult cuMemcpyHtoA_v2(CUarray, size_t, const void *, size_t);
CUresult cuMemcpyAtoH_v2(void *, CUarray, size_t, size_t);
CUresult cuMemcpyAtoA_v2(CUarray, size_t, CUarray, size_t, size_t);

enum { U8 = 1, S32 = 10, FLOAT = 0x20, AS_INTEGER = 1, NORMALIZED = 2, SEAMLESS = 0x40, UINT_1X16 = 7, UINT_1X32 = 13, HOST = 1, ARRAY = 3 };

static const char *TEXT =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    // out[i] = texture at (x[i], y[i]).
    ".visible .entry read(.param .u64 t, .param .u64 places, .param .u64 out) {\n"
    ".reg .b64 %t, %p, %o; .reg .b32 %i; .reg .f32 %x, %y, %r<4>;\n"
    "ld.param.u64 %t, [t]; ld.param.u64 %p, [places]; ld.param.u64 %o, [out]; mov.u32 %i, %tid.x;\n"
    "mad.wide.u32 %p, %i, 8, %p; mad.wide.u32 %o, %i, 4, %o; ld.global.v2.f32 {%x, %y}, [%p];\n"
    "tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%x, %y}]; st.global.f32 [%o], %r0; ret; }\n"
    // out[i] = element i, and its second component behind them.
    ".visible .entry fetch(.param .u64 t, .param .u64 out) {\n"
    ".reg .b64 %t, %o; .reg .b32 %i, %r<4>;\n"
    "ld.param.u64 %t, [t]; ld.param.u64 %o, [out]; mov.u32 %i, %tid.x; mad.wide.u32 %o, %i, 4, %o;\n"
    "tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%t, {%i}]; st.global.u32 [%o], %r0; st.global.u32 [%o+128], %r1; ret; }\n"
    // Layer or slice 1: out[i] = element (i, 2).
    ".visible .entry page(.param .u64 t, .param .u64 solid, .param .u64 out) {\n"
    ".reg .b64 %t, %s, %o; .reg .b32 %i, %one, %two; .reg .f32 %r<4>;\n"
    "ld.param.u64 %t, [t]; ld.param.u64 %s, [solid]; ld.param.u64 %o, [out]; mov.u32 %i, %tid.x; mad.wide.u32 %o, %i, 4, %o;\n"
    "mov.u32 %one, 1; mov.u32 %two, 2;\n"
    "tex.a2d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%t, {%one, %i, %two, %two}]; st.global.f32 [%o], %r0;\n"
    "tex.3d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%s, {%i, %two, %one, %one}]; st.global.f32 [%o+16], %r0; ret; }\n"
    // Layer 1 of two arrays: out[i] = element (i, 2).
    ".visible .entry pages(.param .u64 t, .param .u64 u, .param .u64 out) {\n"
    ".reg .b64 %t, %s, %o; .reg .b32 %i, %one, %two; .reg .f32 %r<4>;\n"
    "ld.param.u64 %t, [t]; ld.param.u64 %s, [u]; ld.param.u64 %o, [out]; mov.u32 %i, %tid.x; mad.wide.u32 %o, %i, 4, %o;\n"
    "mov.u32 %one, 1; mov.u32 %two, 2;\n"
    "tex.a2d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%t, {%one, %i, %two, %two}]; st.global.f32 [%o], %r0;\n"
    "tex.a2d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%s, {%one, %i, %two, %two}]; st.global.f32 [%o+16], %r0; ret; }\n"
    // surface(i, 1) = i * 3; out = level 1 of a texture.
    ".visible .entry write(.param .u64 s, .param .u64 t, .param .u64 out) {\n"
    ".reg .b64 %s, %t, %o; .reg .b32 %i, %x, %y, %v; .reg .f32 %f, %l, %r<4>;\n"
    "ld.param.u64 %s, [s]; ld.param.u64 %t, [t]; ld.param.u64 %o, [out]; mov.u32 %i, %tid.x; shl.b32 %x, %i, 2; mov.u32 %y, 1;\n"
    "mul.lo.u32 %v, %i, 3; sust.b.2d.b32.trap [%s, {%x, %y}], %v;\n"
    "mov.f32 %f, 0f3F000000; mov.f32 %l, 0f3F800000;\n"
    "tex.level.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%f, %f}], %l; st.global.f32 [%o], %r0; ret; }\n";

static CUdeviceptr out, places;

static void run(CUmodule module, const char *name, void **args, unsigned threads, void *to, size_t bytes) {
    CUfunction f;
    OK(cuModuleGetFunction(&f, module, name));
    OK(cuLaunchKernel(f, 1, 1, 1, threads, 1, 1, 0, 0, args, 0));
    OK(cuMemcpyDtoH_v2(to, out, bytes));
}

int main(void) {
    CUcontext context;
    CUmodule module;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuModuleLoadData(&module, TEXT));
    OK(cuMemAlloc_v2(&out, 256));
    OK(cuMemAlloc_v2(&places, 256));
    size_t before, after, total;
    OK(cuMemGetInfo_v2(&before, &total));

    // A plane of 5 by 3, filled by rows that lie 8 apart on the host.
    Plane shape = {5, 3, FLOAT, 1}, told;
    CUarray plane;
    OK(cuArrayCreate_v2(&plane, &shape));
    OK(cuArrayGetDescriptor_v2(&told, plane));
    TRUE(told.width == 5 && told.height == 3 && told.format == FLOAT && told.channels == 1);
    float host[24], back[24], got[64];
    for (int i = 0; i < 24; i++) host[i] = (float)(i % 8 + 10 * (i / 8));
    Rectangle in = {.src = {.kind = HOST, .host = host, .pitch = 32}, .dst = {.kind = ARRAY, .array = plane}, .width = 20, .height = 3};
    OK(cuMemcpy2D_v2(&in));
    Rectangle from = {.src = {.x = 4, .y = 1, .kind = ARRAY, .array = plane}, .dst = {.kind = HOST, .host = back, .pitch = 16}, .width = 16, .height = 2};
    OK(cuMemcpy2D_v2(&from));
    TRUE(back[0] == 11 && back[3] == 14 && back[4] == 21 && back[7] == 24);
    from.width = 20;
    TRUE(cuMemcpy2D_v2(&from) == 1);

    Resource over = {.kind = 0, .res.array = plane};
    Reading how = {.address = {0, 2, 1}, .filter = 1, .flags = NORMALIZED};
    CUobject t;
    OK(cuTexObjectCreate(&t, &over, &how, 0));
    Reading how_told;
    Resource over_told;
    OK(cuTexObjectGetTextureDesc(&how_told, t));
    OK(cuTexObjectGetResourceDesc(&over_told, t));
    TRUE(how_told.filter == 1 && how_told.flags == NORMALIZED && how_told.address[1] == 2 && over_told.res.array == plane);
    // The first texel, the middle of four, one to the left of the first, which wraps, and one above it, which is mirrored.
    float at[8] = {0.1f, 0.5f / 3, 0.4f, 1.0f / 3, -0.1f, 0.5f / 3, 0.1f, -0.5f / 3};
    OK(cuMemcpyHtoD_v2(places, at, sizeof at));
    void *args[] = {&t, &places, &out};
    run(module, "read", args, 4, got, 16);
    TRUE(got[0] == 0 && got[1] == 6.5f && got[2] == 4 && got[3] == 0);
    OK(cuTexObjectDestroy(t));
    TRUE(cuTexObjectDestroy(t) == 1);

    // Rows of memory by texels, with a border.
    CUdeviceptr memory;
    OK(cuMemAlloc_v2(&memory, 96));
    OK(cuMemcpyHtoD_v2(memory, host, 96));
    Resource rows = {.kind = 3, .res.rows = {memory, FLOAT, 1, 5, 3, 32}};
    Reading border = {.address = {3, 3, 3}, .border = {77, 0, 0, 0}};
    OK(cuTexObjectCreate(&t, &rows, &border, 0));
    float where[8] = {4.5f, 2.5f, 5.5f, 2.5f, 0.5f, -0.5f, 1.99f, 1.01f};
    OK(cuMemcpyHtoD_v2(places, where, sizeof where));
    run(module, "read", args, 4, got, 16);
    TRUE(got[0] == 24 && got[1] == 77 && got[2] == 77 && got[3] == 11);
    OK(cuTexObjectDestroy(t));

    // Pairs of bytes one after another: as integers, and as parts of one; nothing behind the end.
    Resource line = {.kind = 2, .res.linear = {memory, U8, 2, 40}};
    Reading plain = {.flags = AS_INTEGER};
    unsigned char bytes[40];
    for (int i = 0; i < 40; i++) bytes[i] = (unsigned char)(i * 5);
    OK(cuMemcpyHtoD_v2(memory, bytes, 40));
    OK(cuTexObjectCreate(&t, &line, &plain, 0));
    void *two[] = {&t, &out};
    unsigned ints[64];
    run(module, "fetch", two, 32, ints, 256);
    TRUE(ints[3] == 30 && ints[32 + 3] == 35 && ints[19] == 190 && ints[32 + 19] == 195 && ints[20] == 0 && ints[32 + 20] == 0);
    OK(cuTexObjectDestroy(t));
    plain.flags = 0;
    OK(cuTexObjectCreate(&t, &line, &plain, 0));
    run(module, "fetch", two, 32, got, 256);
    TRUE(got[3] == 30 / 255.0f && got[32 + 3] == 35 / 255.0f);
    OK(cuTexObjectDestroy(t));
    plain.flags = AS_INTEGER;
    plain.filter = 1;
    TRUE(cuTexObjectCreate(&t, &line, &plain, 0) == 1);
    plain.filter = 2;
    TRUE(cuTexObjectCreate(&t, &line, &plain, 0) == 1);
    line.res.linear.format = 99;
    TRUE(cuTexObjectCreate(&t, &line, &how, 0) == 1);
    TRUE(cuTexObjectCreate(0, &over, &how, 0) == 1 && cuTexObjectCreate(&t, 0, &how, 0) == 1);

    // Layers, and slices of a solid, filled by one copy each.
    Solid pages = {4, 3, 2, FLOAT, 1, 1}, cube = {4, 3, 2, FLOAT, 1, 0};
    CUarray layered, solid;
    OK(cuArray3DCreate_v2(&layered, &pages));
    OK(cuArray3DCreate_v2(&solid, &cube));
    for (int i = 0; i < 24; i++) host[i] = (float)(i * i);
    Cuboid fill = {.src = {.kind = HOST, .host = host, .pitch = 16, .height = 3}, .dst = {.kind = ARRAY, .array = layered}, .width = 16, .height = 3, .depth = 2};
    OK(cuMemcpy3D_v2(&fill));
    fill.dst.array = solid;
    OK(cuMemcpy3D_v2(&fill));
    Cuboid slice = {.src = {.z = 1, .y = 1, .kind = ARRAY, .array = solid}, .dst = {.kind = HOST, .host = back, .pitch = 16, .height = 2}, .width = 16, .height = 2, .depth = 1};
    OK(cuMemcpy3D_v2(&slice));
    TRUE(back[0] == 256 && back[7] == 23 * 23);
    Resource of_layers = {.kind = 0, .res.array = layered}, of_solid = {.kind = 0, .res.array = solid};
    Reading nearest = {0};
    CUobject u;
    OK(cuTexObjectCreate(&t, &of_layers, &nearest, 0));
    OK(cuTexObjectCreate(&u, &of_solid, &nearest, 0));
    void *three[] = {&t, &u, &out};
    run(module, "page", three, 4, got, 32);
    for (int i = 0; i < 4; i++) TRUE(got[i] == (20 + i) * (20 + i) && got[4 + i] == got[i]);
    OK(cuTexObjectDestroy(t));
    OK(cuTexObjectDestroy(u));
    OK(cuArrayDestroy(layered));
    OK(cuArrayDestroy(solid));
    TRUE(cuArrayDestroy(solid) == 400);

    // A surface that a kernel writes, and levels of detail.
    Solid whole = {8, 2, 0, S32, 1, 2};
    CUarray words, copy;
    OK(cuArray3DCreate_v2(&words, &whole));
    OK(cuArray3DCreate_v2(&copy, &whole));
    Resource of_words = {.kind = 0, .res.array = words};
    CUobject s;
    OK(cuSurfObjectCreate(&s, &of_words));
    TRUE(cuSurfObjectCreate(&u, &rows) == 1);
    Solid pyramid = {4, 4, 0, FLOAT, 1, 0};
    CUmipmappedArray levels;
    OK(cuMipmappedArrayCreate(&levels, &pyramid, 9));
    CUarray level;
    OK(cuMipmappedArrayGetLevel(&level, levels, 1));
    TRUE(cuMipmappedArrayGetLevel(&level, levels, 3) == 1 && cuArrayDestroy(level) == 400);
    Solid half;
    OK(cuArray3DGetDescriptor_v2(&half, level));
    TRUE(half.width == 2 && half.height == 2 && half.depth == 0);
    float small[2] = {42, 43};
    OK(cuMemcpyHtoA_v2(level, 0, small, 8));
    Resource of_levels = {.kind = 1, .res.levels = levels};
    Reading sharp = {.max = 8};
    OK(cuTexObjectCreate(&t, &of_levels, &sharp, 0));
    void *four[] = {&s, &t, &out};
    run(module, "write", four, 8, got, 4);
    TRUE(got[0] == 42);
    int row[8];
    Rectangle second = {.src = {.y = 1, .kind = ARRAY, .array = words}, .dst = {.kind = HOST, .host = row}, .width = 32, .height = 1};
    OK(cuMemcpy2D_v2(&second));
    for (int i = 0; i < 8; i++) TRUE(row[i] == 3 * i);
    int some[4] = {9, 8, 7, 6}, read[4];
    OK(cuMemcpyHtoA_v2(words, 8, some, 16));
    OK(cuMemcpyAtoA_v2(copy, 0, words, 8, 16));
    OK(cuMemcpyAtoH_v2(read, copy, 0, 16));
    TRUE(memcmp(read, some, 16) == 0 && cuMemcpyAtoH_v2(read, copy, 20, 16) == 1);
    OK(cuSurfObjectDestroy(s));
    OK(cuTexObjectDestroy(t));
    // A view of level 1 alone, with the bits of its floats as integers; what a view may not be.
    View view = {.format = UINT_1X32, .width = 4, .height = 4, .first_level = 1, .last_level = 1}, view_told;
    TRUE(cuTexObjectGetResourceViewDesc(&view_told, t) == 1);
    Reading bits = {.flags = AS_INTEGER};
    OK(cuTexObjectCreate(&t, &of_levels, &bits, &view));
    OK(cuTexObjectGetResourceViewDesc(&view_told, t));
    TRUE(memcmp(&view_told, &view, sizeof view) == 0);
    run(module, "fetch", two, 2, ints, 8);
    TRUE(memcmp(ints, small, 8) == 0);
    OK(cuTexObjectDestroy(t));
    View wrong_views[] = {view, view, view, view, view, view};
    wrong_views[0].width = 8;
    wrong_views[1].format = UINT_1X16;
    wrong_views[2].last_level = 3;
    wrong_views[3].first_level = 2;
    wrong_views[4].last_layer = 1;
    wrong_views[5].format = 99;
    for (int i = 0; i < 6; i++) TRUE(cuTexObjectCreate(&t, &of_levels, &bits, &wrong_views[i]) == 1);
    TRUE(cuTexObjectCreate(&t, &rows, &border, &view) == 1);
    bits.flags = SEAMLESS;
    TRUE(cuTexObjectCreate(&t, &of_levels, &bits, 0) == 1);
    // Of three layers the last two; the number of a layer ends at the last one.
    Solid three_pages = {4, 3, 3, FLOAT, 1, 1};
    CUarray book;
    OK(cuArray3DCreate_v2(&book, &three_pages));
    float page[36];
    for (int i = 0; i < 36; i++) page[i] = (float)(100 * (i / 12) + i % 12);
    Cuboid bind = {.src = {.kind = HOST, .host = page, .pitch = 16, .height = 3}, .dst = {.kind = ARRAY, .array = book}, .width = 16, .height = 3, .depth = 3};
    OK(cuMemcpy3D_v2(&bind));
    Resource of_book = {.kind = 0, .res.array = book};
    View last_two = {.width = 4, .height = 3, .first_layer = 1, .last_layer = 2};
    View last_one = {.width = 4, .height = 3, .first_layer = 2, .last_layer = 2};
    OK(cuTexObjectCreate(&t, &of_book, &nearest, &last_two));
    OK(cuTexObjectCreate(&u, &of_book, &nearest, &last_one));
    run(module, "pages", three, 4, got, 32);
    for (int i = 0; i < 4; i++) TRUE(got[i] == 208 + i && got[4 + i] == 208 + i);
    OK(cuTexObjectDestroy(t));
    OK(cuTexObjectDestroy(u));
    OK(cuArrayDestroy(book));
    OK(cuMipmappedArrayDestroy(levels));
    OK(cuArrayDestroy(words));
    OK(cuArrayDestroy(copy));
    OK(cuArrayDestroy(plane));
    OK(cuMemFree_v2(memory));
    OK(cuMemGetInfo_v2(&after, &total));
    TRUE(before == after);
    CUarray none;
    Solid wrong = {0, 4, 0, FLOAT, 1, 0};
    TRUE(cuArray3DCreate_v2(&none, &wrong) == 1);
    wrong = (Solid){4, 4, 0, FLOAT, 3, 0};
    TRUE(cuArray3DCreate_v2(&none, &wrong) == 1 && cuArray3DCreate_v2(0, &cube) == 1);
    puts("ok");
    return 0;
}
