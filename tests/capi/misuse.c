// What a program does wrong is an error with a sentence, and never a crash: null pointers, handles that have ended, that are of another kind or made up, wrong launches.
#include <handloom.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

static void expect(int line, handloom_status got, handloom_status want, const char *text) {
    const char *told = handloom_last_error();
    if (got != want || (text && !strstr(told, text))) {
        printf("line %d: %s, not %s\n%s\n", line, handloom_status_name(got), handloom_status_name(want), told);
        exit(1);
    }
}
#define EXPECT(call, want, text) expect(__LINE__, call, HANDLOOM_STATUS_##want, text)
#define OK(call) EXPECT(call, OK, NULL)

static handloom_device device;
static handloom_module module;
static handloom_function k;

static void *in_thread(void *unused) {
    // The error of another thread is not ours.
    if (*handloom_last_error()) exit(2);
    EXPECT(handloom_launch(k, NULL, NULL, 0, NULL), INVALID_HANDLE, "a function that was released");
    return unused;
}

static void *releases(void *unused) {
    // Handles are made and ended while others use the tables.
    for (int i = 0; i < 2000; i++) {
        handloom_buffer b;
        OK(handloom_buffer_create(device, 64, &b));
        uint32_t v = i, back = 0;
        OK(handloom_buffer_write(b, 60, (uint8_t *)&v, 4));
        OK(handloom_buffer_read(b, 60, (uint8_t *)&back, 4));
        if (back != v) exit(3);
        OK(handloom_buffer_release(b));
        EXPECT(handloom_buffer_release(b), INVALID_HANDLE, "a buffer that was released");
    }
    return unused;
}

int main(void) {
    const handloom_device nothing = {0};
    handloom_buffer buffer;
    handloom_report report;
    handloom_stream stream;
    handloom_prepared prepared;
    char text[65536];
    size_t needed;
    if (*handloom_last_error() || strcmp(handloom_status_name(99), "unknown") || !*handloom_version()) return 1;

    EXPECT(handloom_device_create(NULL), INVALID_VALUE, "`device` is NULL");
    EXPECT(handloom_module_load(nothing, "", 0, NULL, &module), INVALID_HANDLE, "a device of 0, which stands for nothing");
    OK(handloom_device_create(&device));
    EXPECT(handloom_module_load((handloom_device){1234567}, "", 0, NULL, &module), INVALID_HANDLE, "0x12d687 is no handle of a device");

    // Texts: missing, empty, no UTF-8, wrong, not supported, no file.
    EXPECT(handloom_module_load(device, NULL, 5, NULL, &module), INVALID_VALUE, "`ptx` is NULL");
    EXPECT(handloom_module_load(device, "", 0, NULL, &module), INVALID_MODULE, "error[");
    EXPECT(handloom_module_load(device, "\xff\xfe", 2, NULL, &module), INVALID_MODULE, "UTF-8");
    EXPECT(handloom_module_load(device, HEAD ".entry k() { sad.f32 %a, %b, %c, %d; }", HANDLOOM_NUL_ENDED, "k.ptx", &module), INVALID_MODULE,
           "k.ptx:4:");
    if (!strstr(handloom_last_error_json(), "\"code\":\"E0301\"") || strcmp(handloom_last_error_kind(), "invalid_module")) return 1;
    EXPECT(handloom_module_load_file(device, "nowhere.ptx", &module), FILE, "nowhere.ptx cannot be read");
    EXPECT(handloom_module_load_file(device, NULL, &module), INVALID_VALUE, "`path` is NULL");
    OK(handloom_check(HEAD ".entry k() { ret }\n", HANDLOOM_NUL_ENDED, NULL, text, sizeof text, &needed));
    if (!strstr(text, "\"line\":4") || needed != strlen(text) + 1) return 1;
    EXPECT(handloom_check("x", 1, NULL, text, 3, &needed), TOO_SMALL, "a buffer of 3 bytes");
    OK(handloom_check(HEAD, HANDLOOM_NUL_ENDED, NULL, NULL, 0, &needed));
    if (needed != 1) return 1;
    EXPECT(handloom_check(HEAD, HANDLOOM_NUL_ENDED, NULL, NULL, 0, NULL), INVALID_VALUE, "`buffer` is NULL");

    // Names, numbers and types of arguments.
    static const char PTX[] = HEAD
        ".visible .const .align 4 .u32 table[4];\n"
        ".visible .entry k(.param .u64 p, .param .u32 n, .param .f32 f, .param .align 4 .b8 s[8]) {\n"
        "  .reg .b64 %d; .reg .b32 %r<3>; .reg .f32 %f;\n"
        "  ld.param.u64 %d, [p]; ld.param.u32 %r0, [n]; ld.param.f32 %f, [f]; ld.param.u32 %r1, [s+4]; ld.const.u32 %r2, [table+8];\n"
        "  st.global.u32 [%d], %r0; st.global.f32 [%d+4], %f; st.global.u32 [%d+8], %r1; st.global.u32 [%d+12], %r2; ret; }\n"
        ".visible .entry spin() { L: bra L; }\n";
    OK(handloom_module_load(device, PTX, sizeof PTX - 1, NULL, &module));
    OK(handloom_module_entries(module, text, sizeof text, NULL));
    if (strcmp(text, "k\nspin\n")) return 1;
    EXPECT(handloom_module_function(module, "l", &k), NOT_FOUND, "the module has `k`, `spin`");
    EXPECT(handloom_module_function(module, NULL, &k), NOT_FOUND, NULL);
    EXPECT(handloom_module_function(module, "k", NULL), INVALID_VALUE, "`function` is NULL");
    OK(handloom_module_function(module, "k", &k));
    OK(handloom_buffer_create(device, 16, &buffer));
    EXPECT(handloom_buffer_write(buffer, 8, (uint8_t *)text, 9), INVALID_VALUE, "9 bytes from byte 8 on of a buffer of 16");
    EXPECT(handloom_buffer_read(buffer, UINT64_MAX, (uint8_t *)text, 2), INVALID_VALUE, NULL);
    EXPECT(handloom_buffer_write(buffer, 0, NULL, 4), INVALID_VALUE, "`data` is NULL");
    EXPECT(handloom_buffer_create(device, UINT64_MAX, &buffer), OUT_OF_MEMORY, NULL);
    uint32_t words[4] = {0}, table[4] = {1, 2, 3, 4}, pair[2] = {5, 6};
    OK(handloom_variable_write(module, "table", 0, (uint8_t *)table, 16));
    EXPECT(handloom_variable_write(module, "table", 4, (uint8_t *)table, 16), INVALID_VALUE, "which has 16");
    EXPECT(handloom_variable_read(module, "tables", 0, (uint8_t *)table, 4), NOT_FOUND, "the module has `table`");
    OK(handloom_variable_read(module, "table", 12, (uint8_t *)words, 4));
    uint64_t address, bytes;
    OK(handloom_module_variable(module, "table", &address, &bytes));
    if (words[0] != 4 || bytes != 16 || address == 0) return 1;
    OK(handloom_buffer_address(buffer, &address, &bytes));
    if (bytes != 16) return 1;

    handloom_launch_config config = handloom_config(1, 1);
    handloom_arg args[] = {handloom_at(buffer, 0), handloom_u32(7), handloom_f32(0.5f), handloom_struct(pair, 8), handloom_u32(0)};
    OK(handloom_launch(k, &config, args, 4, &report));
    OK(handloom_buffer_read(buffer, 0, (uint8_t *)words, 16));
    if (words[0] != 7 || words[1] != 0x3f000000 || words[2] != 6 || words[3] != 3) return 1;
    handloom_report_facts_t facts;
    OK(handloom_report_facts(report, &facts));
    OK(handloom_report_write(report, HANDLOOM_FORMAT_JSON, text, sizeof text, NULL));
    if (facts.blocks != 1 || facts.findings != 0 || !strstr(text, "\"entry\":\"k\",\"status\":\"ok\",\"blocks\":1")) return 1;
    EXPECT(handloom_report_facts(report, NULL), INVALID_VALUE, "`facts` is NULL");
    EXPECT(handloom_report_write(report, 2, text, sizeof text, NULL), INVALID_VALUE, "`format` is 2: HANDLOOM_FORMAT_TEXT is 0, HANDLOOM_FORMAT_JSON is 1");
    EXPECT(handloom_report_write(report, HANDLOOM_FORMAT_TEXT, NULL, 0, NULL), INVALID_VALUE, "`buffer` is NULL");
    OK(handloom_report_release(report));
    EXPECT(handloom_report_write(report, HANDLOOM_FORMAT_TEXT, text, sizeof text, NULL), INVALID_HANDLE, "a report that was released");
    EXPECT(handloom_launch(k, &config, args, 5, NULL), ARGUMENT_COUNT, "5 arguments: `k` takes 4");
    EXPECT(handloom_launch(k, &config, NULL, 4, NULL), INVALID_VALUE, "`args` is NULL");
    EXPECT(handloom_launch(k, NULL, args, 4, NULL), INVALID_VALUE, "`config` is NULL");
    args[1] = handloom_f32(1);
    EXPECT(handloom_launch(k, &config, args, 4, NULL), ARGUMENT_SIZE, "argument 2: a float of 4 bytes for `n`, which is .u32");
    args[1] = handloom_u64(1);
    EXPECT(handloom_launch(k, &config, args, 4, NULL), ARGUMENT_SIZE, "argument 2: an integer of 8 bytes for `n`");
    args[1] = handloom_at(buffer, 0);
    EXPECT(handloom_launch(k, &config, args, 4, NULL), ARGUMENT_SIZE, "cannot hold an address");
    args[1].kind = 77;
    EXPECT(handloom_launch(k, &config, args, 4, NULL), ARGUMENT_SIZE, "kind 77, which there is not");
    args[1] = handloom_u32(7);
    args[1].size = 3;
    EXPECT(handloom_launch(k, &config, args, 4, NULL), ARGUMENT_SIZE, "a number of 3 bytes");
    args[1] = handloom_u32(7);
    args[0] = handloom_host(NULL, 16);
    EXPECT(handloom_launch(k, &config, args, 4, NULL), INVALID_VALUE, "is NULL");
    args[0] = handloom_host_const(words, 16);
    EXPECT(handloom_launch(k, &config, args, 4, NULL), TRAP, "can only be read");
    if (strcmp(handloom_last_error_kind(), "write_protected")) return 1;
    args[0] = handloom_host(words, 12);
    EXPECT(handloom_launch(k, &config, args, 4, NULL), TRAP, "0 bytes past the end of memory of the process of 12 bytes");
    if (strcmp(handloom_last_error_kind(), "out_of_bounds") || !strstr(handloom_last_error_json(), "\"thread\":[0,0,0]")) return 1;
    config.bytes = 8;
    EXPECT(handloom_launch(k, &config, args, 4, NULL), INVALID_VALUE, "handloom_config() makes one");
    config = handloom_config(1, 2000);
    EXPECT(handloom_launch(k, &config, args, 4, NULL), INVALID_VALUE, "1024");
    config = handloom_config(1, 1);
    config.shared_bytes = 1 << 20;
    EXPECT(handloom_launch(k, &config, args, 4, NULL), INVALID_LAUNCH, "shared");
    config = handloom_config(1, 1);
    config.checks = 64;
    EXPECT(handloom_launch(k, &config, args, 4, NULL), INVALID_VALUE, "there is no such check");
    config.checks = 0;
    config.timeout_seconds = -1;
    EXPECT(handloom_launch(k, &config, args, 4, NULL), INVALID_VALUE, "timeout_seconds");
    handloom_function spin;
    OK(handloom_module_function(module, "spin", &spin));
    config.timeout_seconds = 0.2;
    EXPECT(handloom_launch(spin, &config, NULL, 0, NULL), TRAP, NULL);
    if (strcmp(handloom_last_error_kind(), "timeout")) return 1;

    // Streams.
    config = handloom_config(1, 1);
    OK(handloom_stream_create(device, &stream));
    EXPECT(handloom_stream_launch(stream, k, &config, args, 4), INVALID_VALUE, "memory of the host");
    args[0] = handloom_at(buffer, 0);
    args[1] = handloom_u32(8);
    OK(handloom_stream_launch(stream, k, &config, args, 4));
    OK(handloom_stream_synchronize(stream));
    OK(handloom_buffer_read(buffer, 0, (uint8_t *)words, 16));
    if (words[0] != 8) return 1;
    // Events and stop handles.
    handloom_event event, late;
    handloom_stop stop;
    double took;
    EXPECT(handloom_stream_record((handloom_stream){0}, &event), INVALID_HANDLE, "a stream of 0");
    EXPECT(handloom_stream_record(stream, NULL), INVALID_VALUE, "`event` is NULL");
    OK(handloom_stream_record(stream, &event));
    OK(handloom_event_synchronize(event));
    EXPECT(handloom_event_elapsed(event, event, NULL), INVALID_VALUE, "`milliseconds` is NULL");
    EXPECT(handloom_event_elapsed(event, (handloom_event){stream.id}, &took), INVALID_HANDLE, "no handle of an event");
    EXPECT(handloom_stream_wait((handloom_stream){event.id}, event), INVALID_HANDLE, "no handle of a stream");
    EXPECT(handloom_stream_wait(stream, (handloom_event){0}), INVALID_HANDLE, "an event of 0");
    EXPECT(handloom_stop_create(NULL), INVALID_VALUE, "`stop` is NULL");
    OK(handloom_stop_create(&stop));
    OK(handloom_stop_release(stop));
    EXPECT(handloom_stop_release(stop), INVALID_HANDLE, "a stop handle that was released");
    EXPECT(handloom_stop_raise(stop), INVALID_HANDLE, "a stop handle that was released");
    EXPECT(handloom_stop_clear((handloom_stop){event.id}), INVALID_HANDLE, "no handle of a stop handle");
    config.stop = stop;
    EXPECT(handloom_launch(k, &config, args, 4, NULL), INVALID_HANDLE, "a stop handle that was released");
    config.stop = (handloom_stop){0};
    args[0] = handloom_u64(64);
    OK(handloom_stream_launch(stream, k, &config, args, 4));
    EXPECT(handloom_stream_synchronize(stream), TRAP, "out of bounds");
    // What has failed says so wherever it is asked; events of before are still there.
    EXPECT(handloom_stream_query(stream), TRAP, "out of bounds");
    EXPECT(handloom_stream_record(stream, &late), TRAP, "out of bounds");
    EXPECT(handloom_event_query(event), TRAP, "out of bounds");
    OK(handloom_event_elapsed(event, event, &took));
    if (took != 0) return 1;
    OK(handloom_stream_release(stream));
    EXPECT(handloom_stream_synchronize(stream), INVALID_HANDLE, "a stream that was released");
    EXPECT(handloom_event_synchronize(event), TRAP, "out of bounds");
    OK(handloom_event_release(event));
    EXPECT(handloom_event_synchronize(event), INVALID_HANDLE, "an event that was released");
    EXPECT(handloom_event_query(event), INVALID_HANDLE, "an event that was released");
    EXPECT(handloom_event_release(event), INVALID_HANDLE, "an event that was released");

    // A prepared launch, with other arguments, whose buffer goes.
    args[0] = handloom_at(buffer, 0);
    OK(handloom_prepare(k, &config, args, 4, &prepared));
    args[1] = handloom_u32(9);
    OK(handloom_prepared_set_args(prepared, args, 4));
    OK(handloom_prepared_run(prepared, NULL));
    OK(handloom_buffer_read(buffer, 0, (uint8_t *)words, 16));
    if (words[0] != 9) return 1;
    handloom_prepared other;
    OK(handloom_prepare(k, &config, args, 4, &other));
    OK(handloom_prepared_release(other));
    EXPECT(handloom_prepared_run(other, NULL), INVALID_HANDLE, "a prepared launch that was released");
    EXPECT(handloom_prepared_run((handloom_prepared){buffer.id}, NULL), INVALID_HANDLE, "no handle of a prepared launch");

    // What ends with its module.
    OK(handloom_module_release(module));
    EXPECT(handloom_module_release(module), INVALID_HANDLE, "a module that was released");
    EXPECT(handloom_launch(k, &config, args, 4, NULL), INVALID_HANDLE, "a function that was released, or that ended with its module");
    EXPECT(handloom_prepared_run(prepared, NULL), INVALID_HANDLE, "ended with its module");
    EXPECT(handloom_module_function(module, "k", &k), INVALID_HANDLE, NULL);

    pthread_t threads[4];
    pthread_create(&threads[0], NULL, in_thread, NULL);
    for (int i = 1; i < 4; i++) pthread_create(&threads[i], NULL, releases, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);

    // What kernels print.
    static const char PRINTS[] = HEAD
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
        ".global .align 1 .b8 hello[7] = {104, 101, 108, 108, 111, 10, 0};\n"
        ".visible .entry k() { .reg .b64 %d<2>; .reg .b32 %r;\n"
        "  mov.u64 %d0, hello; cvta.global.u64 %d0, %d0; mov.b64 %d1, 0;\n"
        "  { .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %d0; st.param.b64 [a], %d1;\n"
        "    call (r), vprintf, (f, a); ld.param.b32 %r, [r]; } ret; }\n";
    OK(handloom_module_load(device, PRINTS, HANDLOOM_NUL_ENDED, NULL, &module));
    OK(handloom_module_function(module, NULL, &k));
    OK(handloom_launch(k, &config, NULL, 0, NULL));
    EXPECT(handloom_device_take_output(device, text, 3, &needed), TOO_SMALL, NULL);
    OK(handloom_device_take_output(device, text, sizeof text, NULL));
    if (needed != 7 || strcmp(text, "hello\n")) return 1;
    OK(handloom_device_take_output(device, text, sizeof text, NULL));
    if (*text) return 1;

    // A device goes before what lies on it.
    OK(handloom_device_release(device));
    OK(handloom_launch(k, &config, NULL, 0, NULL));
    OK(handloom_buffer_read(buffer, 0, (uint8_t *)words, 16));
    EXPECT(handloom_buffer_create(device, 1, &buffer), INVALID_HANDLE, "a device that was released");

    // The smallest door: addresses of the host as words.
    uint32_t *host = malloc(4096);
    host[1] = 0;
    static const char RUN[] = HEAD ".visible .entry k(.param .u64 p, .param .s32 v) {\n"
        "  .reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p]; ld.param.s32 %r, [v]; st.global.u32 [%d+4], %r; ret; }\n";
    const void *run_args[] = {host, (void *)(intptr_t)-5};
    OK(ptx_run(RUN, 2, run_args, 1, 1, 1, 1, 1, 1, 0));
    OK(ptx_run(RUN, 2, run_args, 1, 1, 1, 1, 1, 1, 0));
    if (host[1] != (uint32_t)-5) return 1;
    run_args[1] = (void *)0x1234567890;
    EXPECT(ptx_run(RUN, 2, run_args, 1, 1, 1, 1, 1, 1, 0), ARGUMENT_SIZE, "0x1234567890 does not fit `v`");
    EXPECT(ptx_run(RUN, 3, run_args, 1, 1, 1, 1, 1, 1, 0), ARGUMENT_COUNT, NULL);
    EXPECT(ptx_run(RUN, -1, run_args, 1, 1, 1, 1, 1, 1, 0), INVALID_VALUE, "`n_args` is negative");
    EXPECT(ptx_run(NULL, 2, run_args, 1, 1, 1, 1, 1, 1, 0), INVALID_VALUE, "`source` is NULL");
    run_args[0] = (void *)16, run_args[1] = 0;
    EXPECT(ptx_run(RUN, 2, run_args, 1, 1, 1, 1, 1, 1, 0), TRAP, "out of bounds");
    free(host);
    puts("ok");
    return 0;
}
