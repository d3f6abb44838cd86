// Races from C++: a kernel whose threads exchange values through shared memory, with and without the barrier, checked.
#include <handloom.h>

#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

static void must(handloom_status status) {
    if (status != HANDLOOM_STATUS_OK) throw std::runtime_error(handloom_last_error());
}

// What is created is released.
struct Device {
    handloom_device handle;
    Device() { must(handloom_device_create(&handle)); }
    ~Device() { handloom_device_release(handle); }
    Device(const Device &) = delete;
};

struct Module {
    handloom_module handle;
    Module(const Device &device, const std::string &ptx) {
        must(handloom_module_load(device.handle, ptx.data(), ptx.size(), "exchange.ptx", &handle));
    }
    ~Module() { handloom_module_release(handle); }
    Module(const Module &) = delete;
    handloom_function function(const char *name) const {
        handloom_function f;
        must(handloom_module_function(handle, name, &f));
        return f;
    }
};

static std::string exchange(const std::string &between) {
    return ".version 8.0\n.target sm_80\n.address_size 64\n"
           ".visible .entry exchange(.param .u64 in, .param .u64 out) {\n"
           "  .shared .align 4 .b8 tile[256]; .reg .b32 %r<6>; .reg .b64 %d<4>;\n"
           "  ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; mov.u32 %r0, %tid.x;\n"
           "  mul.wide.u32 %d2, %r0, 4; add.u64 %d0, %d0, %d2; add.u64 %d1, %d1, %d2;\n"
           "  ld.global.u32 %r1, [%d0]; shl.b32 %r2, %r0, 2; mov.u32 %r3, tile; add.u32 %r2, %r2, %r3;\n"
           "  st.shared.u32 [%r2], %r1;\n  " + between + "\n"
           "  xor.b32 %r4, %r2, 128; ld.shared.u32 %r5, [%r4]; st.global.u32 [%d1], %r5; ret; }\n";
}

int main() try {
    Device device;
    for (const char *between : {"", "bar.sync 0;"}) {
        Module module(device, exchange(between));
        std::vector<uint32_t> in(64), out(64);
        for (uint32_t i = 0; i < 64; i++) in[i] = i;
        handloom_launch_config config = handloom_config(1, 64);
        config.checks = HANDLOOM_CHECK_ALL;
        handloom_arg args[] = {handloom_host_const(in.data(), 256), handloom_host(out.data(), 256)};
        handloom_status status = handloom_launch(module.function("exchange"), &config, args, 2, nullptr);
        if (status == HANDLOOM_STATUS_FOUND) {
            std::cout << handloom_last_error() << "\n";
            continue;
        }
        must(status);
        std::cout << "clean: " << out[0] << " " << out[63] << "\n";
    }
} catch (const std::exception &e) {
    std::cerr << e.what() << "\n";
    return 1;
}
