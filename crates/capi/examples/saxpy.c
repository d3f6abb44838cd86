// A kernel from C: results, a stop with its report, and the same launch again and again.
#include <handloom.h>
#include <stdio.h>
#include <stdlib.h>

static const char *SAXPY =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry saxpy(.param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y) {\n"
    "  .reg .pred %p; .reg .b32 %r<5>; .reg .f32 %f<4>; .reg .b64 %d<4>;\n"
    "  ld.param.u32 %r0, [n]; ld.param.f32 %f0, [a]; ld.param.u64 %d0, [x]; ld.param.u64 %d1, [y];\n"
    "  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "  mad.lo.u32 %r4, %r1, %r2, %r3; setp.ge.u32 %p, %r4, %r0; @%p ret;\n"
    "  mul.wide.u32 %d2, %r4, 4; add.u64 %d0, %d0, %d2; add.u64 %d1, %d1, %d2;\n"
    "  ld.global.f32 %f1, [%d0]; ld.global.f32 %f2, [%d1]; fma.rn.f32 %f3, %f0, %f1, %f2;\n"
    "  st.global.f32 [%d1], %f3; ret; }\n";

static void must(handloom_status status) {
    if (status != HANDLOOM_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", handloom_status_name(status), handloom_last_error());
        exit(1);
    }
}

int main(void) {
    handloom_device device;
    handloom_module module;
    handloom_function saxpy;
    must(handloom_device_create(&device));
    must(handloom_module_load(device, SAXPY, HANDLOOM_NUL_ENDED, "saxpy.ptx", &module));
    must(handloom_module_function(module, "saxpy", &saxpy));

    // Arrays of the host, which the kernel uses where they lie.
    float x[3] = {1, 2, 3}, y[3] = {10, 10, 10};
    handloom_launch_config config = handloom_config(1, 32);
    handloom_arg args[] = {handloom_u32(3), handloom_f32(2), handloom_host_const(x, sizeof x), handloom_host(y, sizeof y)};
    handloom_report report;
    must(handloom_launch(saxpy, &config, args, 4, &report));
    char text[4096];
    must(handloom_report_write(report, HANDLOOM_FORMAT_TEXT, text, sizeof text, NULL));
    printf("%g %g %g\n%.*s\n", y[0], y[1], y[2], 14, text);
    must(handloom_report_release(report));

    // One element too many: the kernel stops, and the report says where and by how much.
    args[0] = handloom_u32(4);
    if (handloom_launch(saxpy, &config, args, 4, NULL) == HANDLOOM_STATUS_TRAP)
        printf("%s\n%s", handloom_last_error_kind(), handloom_last_error());

    // Memory of the device, and a launch that is prepared once.
    handloom_buffer from, to;
    must(handloom_buffer_create(device, sizeof x, &from));
    must(handloom_buffer_create(device, sizeof y, &to));
    must(handloom_buffer_write(from, 0, (const uint8_t *)x, sizeof x));
    handloom_arg buffers[] = {handloom_u32(3), handloom_f32(1), handloom_at(from, 0), handloom_at(to, 0)};
    handloom_prepared prepared;
    must(handloom_prepare(saxpy, &config, buffers, 4, &prepared));
    for (int i = 0; i < 100; i++)
        must(handloom_prepared_run(prepared, NULL));
    must(handloom_buffer_read(to, 0, (uint8_t *)y, sizeof y));
    printf("\n%g %g %g\n", y[0], y[1], y[2]);

    must(handloom_module_release(module));
    must(handloom_buffer_release(from));
    must(handloom_buffer_release(to));
    must(handloom_device_release(device));
    return 0;
}
