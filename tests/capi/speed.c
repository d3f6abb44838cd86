// What a prepared launch of one empty block costs from C, and one of a small kernel with other arguments each time: medians of rounds, wall time and CPU time.
#include <handloom.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

static void must(handloom_status status) {
    if (status != HANDLOOM_STATUS_OK) {
        fprintf(stderr, "%s\n", handloom_last_error());
        exit(1);
    }
}

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int before(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

enum { ROUNDS = 15 };

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 20000;
    handloom_device device;
    handloom_module module;
    handloom_function empty, add;
    handloom_prepared prepared, other;
    handloom_buffer buffer;
    must(handloom_device_create(&device));
    must(handloom_module_load(device, HEAD
        ".visible .entry empty() { ret; }\n"
        ".visible .entry add(.param .u64 p, .param .u32 v) { .reg .b64 %d; .reg .b32 %r<3>;\n"
        "  ld.param.u64 %d, [p]; ld.param.u32 %r0, [v]; ld.global.u32 %r1, [%d]; add.u32 %r2, %r1, %r0; st.global.u32 [%d], %r2; ret; }\n",
        HANDLOOM_NUL_ENDED, NULL, &module));
    must(handloom_module_function(module, "empty", &empty));
    must(handloom_module_function(module, "add", &add));
    must(handloom_buffer_create(device, 4, &buffer));
    handloom_launch_config one = handloom_config(1, 32), single = handloom_config(1, 1);
    must(handloom_prepare(empty, &one, NULL, 0, &prepared));
    handloom_arg args[] = {handloom_at(buffer, 0), handloom_u32(1)};
    must(handloom_prepare(add, &single, args, 2, &other));
    const char *names[] = {"prepared, empty, 1 block of 32", "prepared, with new arguments"};
    for (int kind = 0; kind < 2; kind++) {
        double wall[ROUNDS], cpu[ROUNDS];
        for (int round = 0; round < ROUNDS; round++) {
            double w = now(CLOCK_MONOTONIC), c = now(CLOCK_THREAD_CPUTIME_ID);
            for (int i = 0; i < n; i++) {
                if (kind) must(handloom_prepared_set_args(other, args, 2));
                must(handloom_prepared_run(kind ? other : prepared, NULL));
            }
            wall[round] = (now(CLOCK_MONOTONIC) - w) / n, cpu[round] = (now(CLOCK_THREAD_CPUTIME_ID) - c) / n;
        }
        qsort(wall, ROUNDS, sizeof *wall, before);
        qsort(cpu, ROUNDS, sizeof *cpu, before);
        printf("%-32s %6.0f ns wall, %6.0f ns CPU\n", names[kind], wall[ROUNDS / 2], cpu[ROUNDS / 2]);
    }
    uint32_t sum = 0;
    must(handloom_buffer_read(buffer, 0, (uint8_t *)&sum, 4));
    if (sum != (uint32_t)(ROUNDS * n)) return 1;
    puts("ok");
    return 0;
}
