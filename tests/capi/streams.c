// Streams whose order events make, work that has not ended, launches that another thread stops, reports in both formats.
#include <handloom.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

static void expect(int line, handloom_status got, handloom_status want) {
    if (got != want) {
        printf("line %d: %s, not %s\n%s\n", line, handloom_status_name(got), handloom_status_name(want), handloom_last_error());
        exit(1);
    }
}
#define EXPECT(call, want) expect(__LINE__, call, HANDLOOM_STATUS_##want)
#define OK(call) EXPECT(call, OK)
#define MUST(condition) \
    do { \
        if (!(condition)) { \
            printf("line %d: not " #condition "\n", __LINE__); \
            exit(1); \
        } \
    } while (0)

static const char PTX[] = HEAD
    // Ends when somebody has written something else than 0.
    ".visible .entry until(.param .u64 p) { .reg .b64 %d; .reg .b32 %r; .reg .pred %q;\n"
    "  ld.param.u64 %d, [p];\n"
    "L: ld.relaxed.sys.global.u32 %r, [%d]; setp.eq.u32 %q, %r, 0; @%q bra L; ret; }\n"
    ".visible .entry times_and(.param .u64 p, .param .u32 m, .param .u32 v) { .reg .b64 %d; .reg .b32 %r<4>;\n"
    "  ld.param.u64 %d, [p]; ld.param.u32 %r0, [m]; ld.param.u32 %r1, [v];\n"
    "  ld.global.u32 %r2, [%d]; mad.lo.u32 %r3, %r2, %r0, %r1; st.global.u32 [%d], %r3; ret; }\n"
    ".visible .entry spin_if(.param .u32 v) { .reg .b32 %r; .reg .pred %q; ld.param.u32 %r, [v]; setp.ne.u32 %q, %r, 0;\n"
    "L: @%q bra L; ret; }\n"
    ".visible .entry spin() { L: bra L; }\n";

static handloom_stop stop;

static void *raises(void *unused) {
    usleep(50000);
    OK(handloom_stop_raise(stop));
    return unused;
}

int main(void) {
    handloom_device device;
    handloom_module module;
    handloom_function until, times_and, spin, spin_if;
    handloom_buffer flag, x;
    handloom_stream one, two;
    handloom_event start, between, end;
    OK(handloom_device_create(&device));
    OK(handloom_module_load(device, PTX, sizeof PTX - 1, "streams.ptx", &module));
    OK(handloom_module_function(module, "until", &until));
    OK(handloom_module_function(module, "times_and", &times_and));
    OK(handloom_module_function(module, "spin", &spin));
    OK(handloom_module_function(module, "spin_if", &spin_if));
    OK(handloom_buffer_create(device, 4, &flag));
    OK(handloom_buffer_create(device, 4, &x));
    OK(handloom_stream_create(device, &one));
    OK(handloom_stream_create(device, &two));

    // The first stream waits for the host, the second for the first: x becomes (0 * 1 + 2) * 10 + 3, and in the other order (0 * 10 + 3) * 1 + 2.
    handloom_launch_config config = handloom_config(1, 1);
    handloom_arg flags[] = {handloom_at(flag, 0)};
    handloom_arg first[] = {handloom_at(x, 0), handloom_u32(1), handloom_u32(2)}, second[] = {handloom_at(x, 0), handloom_u32(10), handloom_u32(3)};
    OK(handloom_stream_record(one, &start));
    OK(handloom_event_synchronize(start));
    OK(handloom_stream_launch(one, until, &config, flags, 1));
    OK(handloom_stream_launch(one, times_and, &config, first, 3));
    OK(handloom_stream_record(one, &between));
    OK(handloom_stream_wait(two, between));
    OK(handloom_stream_launch(two, times_and, &config, second, 3));
    OK(handloom_stream_record(two, &end));
    double took = -1;
    EXPECT(handloom_stream_query(one), NOT_READY);
    MUST(!strcmp(handloom_last_error(), "the work of the stream has not ended") && !strcmp(handloom_last_error_kind(), "not_ready"));
    EXPECT(handloom_stream_query(two), NOT_READY);
    EXPECT(handloom_event_query(end), NOT_READY);
    MUST(!strcmp(handloom_last_error(), "the work before the event has not ended"));
    EXPECT(handloom_event_elapsed(start, end, &took), NOT_READY);
    MUST(took == -1);
    OK(handloom_event_query(start));
    uint32_t word = 0;
    OK(handloom_buffer_read(x, 0, (uint8_t *)&word, 4));
    MUST(word == 0);
    usleep(20000);
    word = 1;
    OK(handloom_buffer_write(flag, 0, (const uint8_t *)&word, 4));
    // An event that nobody holds any more is waited for all the same.
    OK(handloom_event_release(between));
    OK(handloom_event_synchronize(end));
    OK(handloom_event_query(end));
    OK(handloom_stream_query(two));
    OK(handloom_stream_synchronize(one));
    OK(handloom_buffer_read(x, 0, (uint8_t *)&word, 4));
    MUST(word == 23);
    double back = 0;
    OK(handloom_event_elapsed(start, end, &took));
    OK(handloom_event_elapsed(end, start, &back));
    MUST(took >= 20 && back == -took);

    // Another thread stops what runs: compiled code, the reference executor, a prepared launch, work of a stream.
    pthread_t thread;
    OK(handloom_stop_create(&stop));
    config.stop = stop;
    for (int interpreted = 0; interpreted < 2; interpreted++) {
        config.interpreted = interpreted;
        pthread_create(&thread, NULL, raises, NULL);
        EXPECT(handloom_launch(spin, &config, NULL, 0, NULL), STOPPED);
        pthread_join(thread, NULL);
        MUST(!strcmp(handloom_last_error_kind(), "stopped") && !strcmp(handloom_last_error_json(), "{\"kind\":\"stopped\",\"message\":\"the launch was stopped\"}"));
        // What comes is ended too, until it is taken back.
        EXPECT(handloom_launch(times_and, &config, first, 3, NULL), STOPPED);
        OK(handloom_stop_clear(stop));
        OK(handloom_launch(times_and, &config, first, 3, NULL));
    }
    OK(handloom_buffer_read(x, 0, (uint8_t *)&word, 4));
    MUST(word == 27);
    config.interpreted = 0;
    // With a limit of time too, whose end it is not; and each time that it runs.
    handloom_prepared prepared;
    handloom_arg for_ever[] = {handloom_u32(1)}, once[] = {handloom_u32(0)};
    config.timeout_seconds = 100;
    OK(handloom_prepare(spin_if, &config, once, 1, &prepared));
    for (int again = 0; again < 2; again++) {
        OK(handloom_prepared_set_args(prepared, for_ever, 1));
        pthread_create(&thread, NULL, raises, NULL);
        EXPECT(handloom_prepared_run(prepared, NULL), STOPPED);
        pthread_join(thread, NULL);
        OK(handloom_stop_clear(stop));
        OK(handloom_prepared_set_args(prepared, once, 1));
        OK(handloom_prepared_run(prepared, NULL));
    }
    config.timeout_seconds = 0;
    OK(handloom_stream_launch(one, spin, &config, NULL, 0));
    OK(handloom_stream_record(one, &between));
    OK(handloom_stream_launch(two, times_and, &config, first, 3));
    OK(handloom_stream_synchronize(two));
    EXPECT(handloom_stream_query(one), NOT_READY);
    OK(handloom_stop_raise(stop));
    EXPECT(handloom_event_synchronize(between), STOPPED);
    EXPECT(handloom_stream_synchronize(one), STOPPED);
    OK(handloom_stop_clear(stop));
    EXPECT(handloom_stream_launch(one, times_and, &config, first, 3), STOPPED);
    // The other stream does not share its end, and a handle that is freed leaves launches that have it alone.
    OK(handloom_stream_launch(two, times_and, &config, first, 3));
    OK(handloom_stop_release(stop));
    OK(handloom_stream_synchronize(two));
    EXPECT(handloom_stream_launch(two, times_and, &config, first, 3), INVALID_HANDLE);
    OK(handloom_buffer_read(x, 0, (uint8_t *)&word, 4));
    MUST(word == 31);

    // A report in both formats, into a buffer that is as large as it has to be.
    handloom_report report;
    config.stop = (handloom_stop){0};
    OK(handloom_launch(times_and, &config, first, 3, &report));
    const char *begins[] = {"times_and: 1 block, compiled in ", "{\"entry\":\"times_and\",\"status\":\"ok\",\"blocks\":1,"};
    const uint32_t formats[] = {HANDLOOM_FORMAT_TEXT, HANDLOOM_FORMAT_JSON};
    for (int i = 0; i < 2; i++) {
        size_t needed = 0;
        OK(handloom_report_write(report, formats[i], NULL, 0, &needed));
        char *text = malloc(needed);
        EXPECT(handloom_report_write(report, formats[i], text, needed - 1, NULL), TOO_SMALL);
        OK(handloom_report_write(report, formats[i], text, needed, NULL));
        MUST(strlen(text) + 1 == needed && !strncmp(text, begins[i], strlen(begins[i])));
        free(text);
    }
    OK(handloom_report_release(report));
    OK(handloom_prepared_release(prepared));
    OK(handloom_event_release(start));
    OK(handloom_event_release(between));
    OK(handloom_event_release(end));
    OK(handloom_stream_release(one));
    OK(handloom_stream_release(two));
    OK(handloom_device_release(device));
    puts("ok");
    return 0;
}
