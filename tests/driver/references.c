// Texture and surface references of modules: laid over arrays, lines and rows of memory, read by kernels, and what is refused.
#include "driver.h"

typedef void *CUarray, *CUmipmappedArray, *CUtexref, *CUsurfref;
typedef struct {
    size_t width, height;
    unsigned format, channels;
} Plane;
typedef struct {
    size_t width, height, depth;
    unsigned format, channels, flags;
} Solid;

CUresult cuArrayCreate_v2(CUarray *, const Plane *);
CUresult cuArray3DCreate_v2(CUarray *, const Solid *);
CUresult cuArrayDestroy(CUarray);
CUresult cuMipmappedArrayCreate(CUmipmappedArray *, const Solid *, unsigned);
CUresult cuMipmappedArrayGetLevel(CUarray *, CUmipmappedArray, unsigned);
CUresult cuMipmappedArrayDestroy(CUmipmappedArray);
CUresult cuMemcpyHtoA_v2(CUarray, size_t, const void *, size_t);
CUresult cuMemcpyAtoH_v2(void *, CUarray, size_t, size_t);
CUresult cuModuleGetTexRef(CUtexref *, CUmodule, const char *);
CUresult cuModuleGetSurfRef(CUsurfref *, CUmodule, const char *);
CUresult cuTexRefCreate(CUtexref *);
CUresult cuTexRefDestroy(CUtexref);
CUresult cuTexRefSetArray(CUtexref, CUarray, unsigned);
CUresult cuTexRefSetMipmappedArray(CUtexref, CUmipmappedArray, unsigned);
CUresult cuTexRefSetAddress_v2(size_t *, CUtexref, CUdeviceptr, size_t);
CUresult cuTexRefSetAddress2D_v3(CUtexref, const Plane *, CUdeviceptr, size_t);
CUresult cuTexRefSetFormat(CUtexref, int, int);
CUresult cuTexRefSetAddressMode(CUtexref, int, int);
CUresult cuTexRefSetFilterMode(CUtexref, int);
CUresult cuTexRefSetMipmapFilterMode(CUtexref, int);
CUresult cuTexRefSetMipmapLevelBias(CUtexref, float);
CUresult cuTexRefSetMipmapLevelClamp(CUtexref, float, float);
CUresult cuTexRefSetMaxAnisotropy(CUtexref, unsigned);
CUresult cuTexRefSetBorderColor(CUtexref, float *);
CUresult cuTexRefSetFlags(CUtexref, unsigned);
CUresult cuTexRefGetAddress_v2(CUdeviceptr *, CUtexref);
CUresult cuTexRefGetArray(CUarray *, CUtexref);
CUresult cuTexRefGetMipmappedArray(CUmipmappedArray *, CUtexref);
CUresult cuTexRefGetAddressMode(int *, CUtexref, int);
CUresult cuTexRefGetFilterMode(int *, CUtexref);
CUresult cuTexRefGetFormat(int *, int *, CUtexref);
CUresult cuTexRefGetFlags(unsigned *, CUtexref);
CUresult cuTexRefGetBorderColor(float *, CUtexref);
CUresult cuTexRefGetMaxAnisotropy(int *, CUtexref);
CUresult cuTexRefGetMipmapFilterMode(int *, CUtexref);
CUresult cuTexRefGetMipmapLevelBias(float *, CUtexref);
CUresult cuTexRefGetMipmapLevelClamp(float *, float *, CUtexref);
CUresult cuSurfRefSetArray(CUsurfref, CUarray, unsigned);
CUresult cuSurfRefGetArray(CUarray *, CUsurfref);
CUresult cuParamSetTexRef(CUfunction, int, CUtexref);

enum { U8 = 1, S32 = 10, FLOAT = 0x20, OVERRIDE = 1, AS_INTEGER = 1, NORMALIZED = 2 };

static const char TEXT[] =
    ".version 5.0\n.target sm_30\n.address_size 64\n"
    ".global .texref image;\n.global .texref line;\n.global .surfref paper;\n.global .align 64 .b8 other[128];\n"
    // out[i] = image at (x[i], y[i]).
    ".visible .entry read(.param .u64 places, .param .u64 out) {\n"
    ".reg .b64 %p, %o; .reg .b32 %i; .reg .f32 %x, %y, %r<4>;\n"
    "ld.param.u64 %p, [places]; ld.param.u64 %o, [out]; mov.u32 %i, %tid.x;\n"
    "mad.wide.u32 %p, %i, 8, %p; mad.wide.u32 %o, %i, 4, %o; ld.global.v2.f32 {%x, %y}, [%p];\n"
    "tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [image, {%x, %y}]; st.global.f32 [%o], %r0; ret; }\n"
    // out[0] = image in its middle, at a level that is clamped.
    ".visible .entry level(.param .u64 out) {\n"
    ".reg .b64 %o; .reg .f32 %f, %l, %r<4>; ld.param.u64 %o, [out]; mov.f32 %f, 0f3F000000; mov.f32 %l, 0f00000000;\n"
    "tex.level.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [image, {%f, %f}], %l; st.global.f32 [%o], %r0; ret; }\n"
    // out[i] = both components of element i of the line.
    ".visible .entry fetch(.param .u64 out) {\n"
    ".reg .b64 %o; .reg .b32 %i, %r<4>;\n"
    "ld.param.u64 %o, [out]; mov.u32 %i, %tid.x; mad.wide.u32 %o, %i, 8, %o;\n"
    "tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [line, {%i}]; st.global.v2.u32 [%o], {%r0, %r1}; ret; }\n"
    // paper(i, 1) = i * 3.
    ".visible .entry draw() {\n"
    ".reg .b32 %i, %x, %y, %v; mov.u32 %i, %tid.x; shl.b32 %x, %i, 2; mov.u32 %y, 1;\n"
    "mul.lo.u32 %v, %i, 3; sust.b.2d.b32.trap [paper, {%x, %y}], %v; ret; }\n";

static CUmodule module;
static CUdeviceptr out, places;

static void run(const char *name, void **args, unsigned threads, void *to, size_t bytes) {
    CUfunction f;
    OK(cuModuleGetFunction(&f, module, name));
    OK(cuLaunchKernel(f, 1, 1, 1, threads, 1, 1, 0, 0, args, 0));
    if (bytes) OK(cuMemcpyDtoH_v2(to, out, bytes));
}

int main(void) {
    CUcontext context;
    CUtexref image, line, own, same;
    CUsurfref paper;
    CUfunction draw;
    CUarray array, told;
    CUdeviceptr memory, address;
    float got[32], host[15];
    unsigned flags;
    int n, format, mode;
    EXPECT(3, cuTexRefCreate(&own));
    OK(cuInit(0));
    EXPECT(201, cuTexRefCreate(&own));
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuModuleLoadData(&module, TEXT));
    OK(cuMemAlloc_v2(&out, 256));
    OK(cuMemAlloc_v2(&places, 256));
    OK(cuMemAlloc_v2(&memory, 1024));

    // Which variables are references.
    OK(cuModuleGetTexRef(&image, module, "image"));
    OK(cuModuleGetTexRef(&same, module, "image"));
    TRUE(same == image);
    OK(cuModuleGetTexRef(&line, module, "line"));
    OK(cuModuleGetSurfRef(&paper, module, "paper"));
    EXPECT(500, cuModuleGetTexRef(&own, module, "paper"));
    EXPECT(500, cuModuleGetSurfRef(&own, module, "image"));
    EXPECT(500, cuModuleGetTexRef(&own, module, "other"));
    EXPECT(500, cuModuleGetTexRef(&own, module, "nothing"));
    EXPECT(1, cuModuleGetTexRef(0, module, "image"));
    EXPECT(1, cuModuleGetTexRef(&own, module, 0));
    EXPECT(400, cuModuleGetTexRef(&own, 0, "image"));
    EXPECT(1, cuTexRefGetFlags(&flags, paper));
    EXPECT(1, cuTexRefDestroy(image));

    // What a reference says of itself before anything was said.
    OK(cuTexRefGetFormat(&format, &n, image));
    TRUE(format == FLOAT && n == 1);
    OK(cuTexRefGetAddressMode(&mode, image, 1));
    TRUE(mode == 1);
    OK(cuTexRefGetFilterMode(&mode, image));
    TRUE(mode == 0);
    EXPECT(1, cuTexRefGetArray(&told, image));
    EXPECT(1, cuTexRefGetAddress_v2(&address, image));
    EXPECT(1, cuTexRefGetAddressMode(&mode, image, 3));
    EXPECT(1, cuTexRefGetAddressMode(0, image, 0));

    // A plane of 5 by 3: texels by themselves, then between them with repeats and mirrors.
    Plane shape = {5, 3, FLOAT, 1};
    OK(cuArrayCreate_v2(&array, &shape));
    for (int i = 0; i < 15; i++) host[i] = (float)(i % 5 + 10 * (i / 5));
    struct {
        size_t x, y;
        unsigned kind;
        const void *host;
        CUdeviceptr device;
        CUarray array;
        size_t pitch;
    } sides[2] = {{.kind = 1, .host = host, .pitch = 20}, {.kind = 3, .array = array}};
    struct { char sides[sizeof sides]; size_t width, height; } copy = {.width = 20, .height = 3};
    CUresult cuMemcpy2D_v2(const void *);
    memcpy(copy.sides, sides, sizeof sides);
    OK(cuMemcpy2D_v2(&copy));
    EXPECT(1, cuTexRefSetArray(image, array, 0));
    EXPECT(400, cuTexRefSetArray(image, 0, OVERRIDE));
    OK(cuTexRefSetArray(image, array, OVERRIDE));
    OK(cuTexRefGetArray(&told, image));
    TRUE(told == array);
    void *args[] = {&places, &out};
    float texels[8] = {0.5f, 0.5f, 4.5f, 2.5f, 9.0f, 1.5f, 2.5f, -3.0f};
    OK(cuMemcpyHtoD_v2(places, texels, sizeof texels));
    run("read", args, 4, got, 16);
    TRUE(got[0] == 0 && got[1] == 24 && got[2] == 14 && got[3] == 2);
    OK(cuTexRefSetFlags(image, NORMALIZED));
    OK(cuTexRefSetFilterMode(image, 1));
    OK(cuTexRefSetAddressMode(image, 0, 0));
    OK(cuTexRefSetAddressMode(image, 1, 2));
    float at[8] = {0.1f, 0.5f / 3, 0.4f, 1.0f / 3, -0.1f, 0.5f / 3, 0.1f, -0.5f / 3};
    OK(cuMemcpyHtoD_v2(places, at, sizeof at));
    run("read", args, 4, got, 16);
    TRUE(got[0] == 0 && got[1] == 6.5f && got[2] == 4 && got[3] == 0);
    EXPECT(1, cuTexRefSetFilterMode(image, 2));
    EXPECT(1, cuTexRefSetAddressMode(image, 0, 4));
    EXPECT(1, cuTexRefSetAddressMode(image, -1, 0));
    EXPECT(1, cuTexRefSetFlags(image, 0x1000));
    OK(cuTexRefGetFlags(&flags, image));
    TRUE(flags == NORMALIZED);

    // The colour of the border, around rows of memory.
    float colour[4] = {77, 1, 2, 3}, back[4];
    OK(cuTexRefSetFlags(image, 0));
    OK(cuTexRefSetFilterMode(image, 0));
    OK(cuTexRefSetAddressMode(image, 0, 3));
    OK(cuTexRefSetAddressMode(image, 1, 3));
    OK(cuTexRefSetBorderColor(image, colour));
    EXPECT(1, cuTexRefSetBorderColor(image, 0));
    OK(cuTexRefGetBorderColor(back, image));
    TRUE(!memcmp(colour, back, sizeof back));
    for (int i = 0; i < 3; i++) OK(cuMemcpyHtoD_v2(memory + 64 * i, host + 5 * i, 20));
    OK(cuTexRefSetAddress2D_v3(image, &shape, memory, 64));
    OK(cuTexRefGetAddress_v2(&address, image));
    TRUE(address == memory);
    EXPECT(1, cuTexRefGetArray(&told, image));
    EXPECT(1, cuTexRefSetFormat(image, U8, 1));
    EXPECT(1, cuTexRefSetAddress2D_v3(image, &shape, memory + 4, 64));
    EXPECT(1, cuTexRefSetAddress2D_v3(image, &shape, memory, 60));
    EXPECT(1, cuTexRefSetAddress2D_v3(image, 0, memory, 64));
    EXPECT(1, cuTexRefSetAddress2D_v3(image, &shape, 0, 64));
    float where[8] = {4.5f, 2.5f, 5.5f, 2.5f, 0.5f, -0.5f, 1.99f, 1.01f};
    OK(cuMemcpyHtoD_v2(places, where, sizeof where));
    run("read", args, 4, got, 16);
    TRUE(got[0] == 24 && got[1] == 77 && got[2] == 77 && got[3] == 11);

    // Pairs of bytes in a line, as integers; a line that begins inside of a texel says how far.
    unsigned char bytes[40];
    unsigned ints[16];
    size_t offset = 99;
    for (int i = 0; i < 40; i++) bytes[i] = (unsigned char)(i * 5);
    OK(cuMemcpyHtoD_v2(memory, bytes, 40));
    OK(cuTexRefSetFormat(line, U8, 2));
    EXPECT(1, cuTexRefSetFormat(line, U8, 3));
    EXPECT(1, cuTexRefSetFormat(line, 99, 1));
    OK(cuTexRefSetFlags(line, AS_INTEGER));
    OK(cuTexRefSetAddress_v2(&offset, line, memory, 12));
    TRUE(offset == 0);
    void *one[] = {&out};
    run("fetch", one, 8, ints, 64);
    for (unsigned i = 0; i < 12; i++) TRUE(ints[i] == 5 * i);
    for (unsigned i = 12; i < 16; i++) TRUE(ints[i] == 0);
    EXPECT(1, cuTexRefSetAddress_v2(0, line, memory + 3, 12));
    OK(cuTexRefSetAddress_v2(&offset, line, memory + 3, 12));
    TRUE(offset == 1);
    run("fetch", one, 8, ints, 64);
    TRUE(ints[0] == 10 && ints[1] == 15);
    EXPECT(1, cuTexRefSetAddress_v2(&offset, line, 0, 12));

    // A surface that a kernel writes.
    Solid for_surfaces = {8, 2, 0, S32, 1, 2}, plain = {8, 2, 0, S32, 1, 0};
    CUarray words, wrong;
    int row[8];
    OK(cuArray3DCreate_v2(&words, &for_surfaces));
    OK(cuArray3DCreate_v2(&wrong, &plain));
    EXPECT(1, cuSurfRefGetArray(&told, paper));
    EXPECT(1, cuSurfRefSetArray(paper, wrong, 0));
    EXPECT(1, cuSurfRefSetArray(paper, words, 1));
    EXPECT(1, cuSurfRefSetArray(image, words, 0));
    OK(cuSurfRefSetArray(paper, words, 0));
    OK(cuSurfRefGetArray(&told, paper));
    TRUE(told == words);
    run("draw", 0, 8, 0, 0);
    sides[0] = (__typeof__(sides[0])){.y = 1, .kind = 3, .array = words};
    sides[1] = (__typeof__(sides[0])){.kind = 1, .host = row, .pitch = 32};
    memcpy(copy.sides, sides, sizeof sides);
    copy.width = 32, copy.height = 1;
    OK(cuMemcpy2D_v2(&copy));
    for (int i = 0; i < 8; i++) TRUE(row[i] == 3 * i);

    // Levels of detail, and what is only told back.
    Solid pyramid = {4, 4, 0, FLOAT, 1, 0};
    CUmipmappedArray levels, levels_told;
    CUarray level;
    float small = 42, low, high;
    OK(cuMipmappedArrayCreate(&levels, &pyramid, 3));
    OK(cuMipmappedArrayGetLevel(&level, levels, 2));
    OK(cuMemcpyHtoA_v2(level, 0, &small, 4));
    OK(cuTexRefSetMipmappedArray(image, levels, OVERRIDE));
    OK(cuTexRefSetMipmapFilterMode(image, 0));
    OK(cuTexRefSetMipmapLevelClamp(image, 2, 2));
    OK(cuTexRefSetMipmapLevelBias(image, 0.5f));
    OK(cuTexRefSetMaxAnisotropy(image, 4));
    OK(cuTexRefSetFlags(image, NORMALIZED));
    OK(cuTexRefGetMipmappedArray(&levels_told, image));
    OK(cuTexRefGetMipmapLevelClamp(&low, &high, image));
    OK(cuTexRefGetMaxAnisotropy(&n, image));
    OK(cuTexRefGetMipmapFilterMode(&mode, image));
    TRUE(levels_told == levels && low == 2 && high == 2 && n == 4 && mode == 0);
    OK(cuTexRefGetMipmapLevelBias(&low, image));
    TRUE(low == 0.5f);
    run("level", one, 1, got, 4);
    TRUE(got[0] == 42);

    // One of the program's own, which no kernel reads.
    OK(cuTexRefCreate(&own));
    OK(cuModuleGetFunction(&draw, module, "draw"));
    OK(cuParamSetTexRef(draw, -1, own));
    EXPECT(1, cuParamSetTexRef(draw, 0, own));
    OK(cuTexRefSetArray(own, array, OVERRIDE));
    OK(cuTexRefDestroy(own));
    EXPECT(1, cuTexRefSetArray(own, array, OVERRIDE));
    OK(cuModuleUnload(module));
    EXPECT(1, cuTexRefGetFlags(&flags, image));
    OK(cuCtxDestroy_v2(context));
    puts("ok");
    return 0;
}
