// Textures and surfaces: a picture made larger by a bilinear filter and written through a surface, samples of a volume, a cube map, and levels of detail, each
// against sums of its own.
#include "check.h"

#include <algorithm>
#include <cmath>
#include <vector>

__global__ void resize(cudaTextureObject_t from, cudaSurfaceObject_t to, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float4 c = tex2D<float4>(from, (x + 0.5f) / width, (y + 0.5f) / height);
    surf2Dwrite(make_uchar4((unsigned char)(c.x * 255 + 0.5f), (unsigned char)(c.y * 255 + 0.5f), (unsigned char)(c.z * 255 + 0.5f), 255), to,
                x * (int)sizeof(uchar4), y);
}

__global__ void samples(cudaTextureObject_t volume, const float3 *at, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex3D<float>(volume, at[i].x, at[i].y, at[i].z);
}

__global__ void sky(cudaTextureObject_t cube, const float3 *towards, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = texCubemap<int>(cube, towards[i].x, towards[i].y, towards[i].z);
}

__global__ void details(cudaTextureObject_t pyramid, cudaTextureObject_t line, float *out) {
    out[threadIdx.x] = tex2DLod<float>(pyramid, 0.5f, 0.5f, threadIdx.x * 0.5f) + tex1Dfetch<float>(line, threadIdx.x);
}

// The weights of a filter have 8 bits.
static double weight(double x) {
    return std::floor((x - std::floor(x)) * 256 + 0.5) / 256;
}

int main() {
    Numbers numbers{7};
    const int w = 37, h = 21, W = 100, H = 64;
    std::vector<uchar4> picture(w * h), larger(W * H);
    for (auto &p : picture) p = make_uchar4(numbers.next() & 255, numbers.next() & 255, numbers.next() & 255, 255);
    cudaChannelFormatDesc bytes = cudaCreateChannelDesc<uchar4>();
    cudaArray_t small, big;
    CHECK(cudaMallocArray(&small, &bytes, w, h));
    CHECK(cudaMallocArray(&big, &bytes, W, H, cudaArraySurfaceLoadStore));
    CHECK(cudaMemcpy2DToArray(small, 0, 0, picture.data(), w * sizeof(uchar4), w * sizeof(uchar4), h, cudaMemcpyHostToDevice));
    cudaResourceDesc over{};
    over.resType = cudaResourceTypeArray;
    over.res.array.array = small;
    cudaTextureDesc how{};
    how.addressMode[0] = how.addressMode[1] = how.addressMode[2] = cudaAddressModeClamp;
    how.filterMode = cudaFilterModeLinear;
    how.readMode = cudaReadModeNormalizedFloat;
    how.normalizedCoords = 1;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &over, &how, nullptr));
    over.res.array.array = big;
    cudaSurfaceObject_t surface;
    CHECK(cudaCreateSurfaceObject(&surface, &over));
    resize<<<dim3((W + 15) / 16, (H + 7) / 8), dim3(16, 8)>>>(texture, surface, W, H);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy2DFromArray(larger.data(), W * sizeof(uchar4), big, 0, 0, W * sizeof(uchar4), H, cudaMemcpyDeviceToHost));
    for (int y = 0; y < H; y++) {
        for (int x = 0; x < W; x++) {
            double u = (x + 0.5f) / W * double(w) - 0.5, v = (y + 0.5f) / H * double(h) - 0.5;
            double a = weight(u), b = weight(v);
            auto red = [&](double i, double j) {
                int c = std::min(std::max(int(std::floor(i)), 0), w - 1), r = std::min(std::max(int(std::floor(j)), 0), h - 1);
                return double(picture[r * w + c].x);
            };
            double want = (1 - a) * (1 - b) * red(u, v) + a * (1 - b) * red(u + 1, v) + (1 - a) * b * red(u, v + 1) + a * b * red(u + 1, v + 1);
            if (std::fabs(larger[y * W + x].x - want) > 0.51) expect_equal("red", y * W + x, double(larger[y * W + x].x), want);
        }
    }

    const int n = 9;
    std::vector<float> volume(n * n * n);
    for (int i = 0; i < n * n * n; i++) volume[i] = float(i % n + 2 * (i / n % n) - 3 * (i / n / n));
    cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
    cudaArray_t solid;
    CHECK(cudaMalloc3DArray(&solid, &floats, make_cudaExtent(n, n, n)));
    cudaMemcpy3DParms copy{};
    copy.srcPtr = make_cudaPitchedPtr(volume.data(), n * sizeof(float), n, n);
    copy.dstArray = solid;
    copy.extent = make_cudaExtent(n, n, n);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    cudaTextureDesc inside{};
    inside.filterMode = cudaFilterModeLinear;
    inside.addressMode[0] = inside.addressMode[1] = inside.addressMode[2] = cudaAddressModeClamp;
    over.res.array.array = solid;
    cudaTextureObject_t field;
    CHECK(cudaCreateTextureObject(&field, &over, &inside, nullptr));
    const int m = 500;
    std::vector<float3> at(m);
    for (auto &p : at) {
        auto place = [&] { return 0.5f + float(numbers.next() % ((n - 1) * 256)) / 256; };
        p = make_float3(place(), place(), place());
    }
    float3 *dat;
    float *dout;
    CHECK(cudaMalloc(&dat, m * sizeof(float3)));
    CHECK(cudaMalloc(&dout, m * sizeof(float)));
    CHECK(cudaMemcpy(dat, at.data(), m * sizeof(float3), cudaMemcpyDefault));
    samples<<<4, 128>>>(field, dat, dout, m);
    std::vector<float> got(m);
    CHECK(cudaMemcpy(got.data(), dout, m * sizeof(float), cudaMemcpyDefault));
    // The field is linear, so its samples are.
    for (int i = 0; i < m; i++) expect_equal("volume", i, got[i], (at[i].x - 0.5f) + 2 * (at[i].y - 0.5f) - 3 * (at[i].z - 0.5f));

    const int side = 4;
    std::vector<int> faces(side * side * 6);
    for (int i = 0; i < side * side * 6; i++) faces[i] = i;
    cudaChannelFormatDesc ints = cudaCreateChannelDesc<int>();
    cudaArray_t box;
    CHECK(cudaMalloc3DArray(&box, &ints, make_cudaExtent(side, side, 6), cudaArrayCubemap));
    cudaMemcpy3DParms six{};
    six.srcPtr = make_cudaPitchedPtr(faces.data(), side * sizeof(int), side, side);
    six.dstArray = box;
    six.extent = make_cudaExtent(side, side, 6);
    six.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&six));
    over.res.array.array = box;
    cudaTextureDesc plain{};
    plain.normalizedCoords = 1;
    cudaTextureObject_t cube;
    CHECK(cudaCreateTextureObject(&cube, &over, &plain, nullptr));
    std::vector<float3> towards(m);
    std::vector<int> want(m), seen(m);
    for (int i = 0; i < m; i++) {
        int face = numbers.next() % 6, c = numbers.next() % side, r = numbers.next() % side;
        float s = (2 * c + 1) / float(side) - 1, t = (2 * r + 1) / float(side) - 1;
        const float3 all[6] = {{1, -t, -s}, {-1, -t, s}, {s, 1, t}, {s, -1, -t}, {s, -t, 1}, {-s, -t, -1}};
        towards[i] = all[face];
        want[i] = face * side * side + r * side + c;
    }
    CHECK(cudaMemcpy(dat, towards.data(), m * sizeof(float3), cudaMemcpyDefault));
    sky<<<4, 128>>>(cube, dat, reinterpret_cast<int *>(dout), m);
    CHECK(cudaMemcpy(seen.data(), dout, m * sizeof(int), cudaMemcpyDefault));
    for (int i = 0; i < m; i++) expect_equal("cube", i, seen[i], want[i]);

    cudaMipmappedArray_t pyramid;
    CHECK(cudaMallocMipmappedArray(&pyramid, &floats, make_cudaExtent(4, 4, 0), 3));
    for (int level = 0; level < 3; level++) {
        cudaArray_t one;
        CHECK(cudaGetMipmappedArrayLevel(&one, pyramid, level));
        std::vector<float> all(16, float(10 * level));
        int size = 4 >> level;
        CHECK(cudaMemcpy2DToArray(one, 0, 0, all.data(), size * sizeof(float), size * sizeof(float), size, cudaMemcpyHostToDevice));
    }
    cudaResourceDesc levels{};
    levels.resType = cudaResourceTypeMipmappedArray;
    levels.res.mipmap.mipmap = pyramid;
    cudaTextureDesc smooth{};
    smooth.normalizedCoords = 1;
    smooth.mipmapFilterMode = cudaFilterModeLinear;
    smooth.maxMipmapLevelClamp = 2;
    cudaTextureObject_t detail, line;
    CHECK(cudaCreateTextureObject(&detail, &levels, &smooth, nullptr));
    cudaResourceDesc flat{};
    flat.resType = cudaResourceTypeLinear;
    flat.res.linear.devPtr = dat;
    flat.res.linear.desc = floats;
    flat.res.linear.sizeInBytes = 4 * sizeof(float);
    cudaTextureDesc none{};
    CHECK(cudaCreateTextureObject(&line, &flat, &none, nullptr));
    float four[4] = {0.25f, 0.5f, 0.75f, 1};
    CHECK(cudaMemcpy(dat, four, sizeof four, cudaMemcpyDefault));
    details<<<1, 6>>>(detail, line, dout);
    CHECK(cudaMemcpy(got.data(), dout, 6 * sizeof(float), cudaMemcpyDefault));
    // Behind the line there is nothing.
    const float wanted[6] = {0.25f, 5.5f, 10.75f, 16, 20, 20};
    for (int i = 0; i < 6; i++) expect_equal("details", i, got[i], wanted[i]);

    cudaExtent size;
    cudaChannelFormatDesc told;
    unsigned flags;
    CHECK(cudaArrayGetInfo(&told, &size, &flags, big));
    expect_equal("width", 0, int(size.width), W);
    expect_equal("bits", 0, told.w, 8);
    for (cudaTextureObject_t t : {texture, field, cube, detail, line}) CHECK(cudaDestroyTextureObject(t));
    CHECK(cudaDestroySurfaceObject(surface));
    CHECK(cudaFreeMipmappedArray(pyramid));
    for (cudaArray_t a : {small, big, solid, box}) CHECK(cudaFreeArray(a));
    CHECK(cudaFree(dat));
    CHECK(cudaFree(dout));
    std::printf("textures: %d by %d becomes %d by %d, %d samples\n", w, h, W, H, m);
}
