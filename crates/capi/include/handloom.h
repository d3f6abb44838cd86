// Handloom: runs PTX on a CPU. Made from crates/capi by `ci/capi --header`; tests/c_library.rs says when that is to be done again.
//
// A handle is a number that stands for an object. 0 stands for nothing, and none is used twice, so that one that was released is an error and no crash.
// Every function that can fail returns a handloom_status, 0 for success; handloom_last_error() is the sentence or report of the last failure of the calling thread.
// Whoever creates something releases it. Any thread may call any function at any time. Pointers are used during a call alone, but for memory of the host that
// a prepared launch was given.

#ifndef HANDLOOM_H
#define HANDLOOM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// `bytes` of a text that ends with NUL.
#define HANDLOOM_NUL_ENDED SIZE_MAX


// Accesses outside of memory, to freed memory, and misaligned ones.
#define HANDLOOM_CHECK_MEMORY 1

// Bytes that nobody wrote.
#define HANDLOOM_CHECK_INIT 2

// Accesses that nothing orders.
#define HANDLOOM_CHECK_RACE 4

// Barriers and other meetings of threads.
#define HANDLOOM_CHECK_SYNC 8

// All of these.
#define HANDLOOM_CHECK_ALL 15

// What an argument is: the field `kind` of `handloom_arg`.
#define HANDLOOM_ARG_INTEGER 1

// A float.
#define HANDLOOM_ARG_FLOAT 2

// The address of a byte of a buffer.
#define HANDLOOM_ARG_BUFFER 3

// Bytes that are passed by value: a structure.
#define HANDLOOM_ARG_BYTES 4

// The address of memory of the host, which kernels read and write while the launch runs.
#define HANDLOOM_ARG_HOST 5

// The same for reading alone.
#define HANDLOOM_ARG_HOST_CONST 6

// A report as text for people.
#define HANDLOOM_FORMAT_TEXT 0

// A report as a JSON object on one line, with the keys of `handloom run --format json`, and `findings`.
#define HANDLOOM_FORMAT_JSON 1

// How a call ended. `handloom_last_error` has the sentence or the report.
typedef enum {
    // It did what it was asked for.
    HANDLOOM_STATUS_OK = 0,
    // A size, a dimension or a number outside of what is allowed, or a null pointer.
    HANDLOOM_STATUS_INVALID_VALUE = 1,
    // More or fewer arguments than the entry has parameters.
    HANDLOOM_STATUS_ARGUMENT_COUNT = 2,
    // An argument whose size or type is not that of its parameter.
    HANDLOOM_STATUS_ARGUMENT_SIZE = 3,
    // A handle of something that was released, of another kind or another device, or that never was one.
    HANDLOOM_STATUS_INVALID_HANDLE = 4,
    // No entry, variable or file of that name.
    HANDLOOM_STATUS_NOT_FOUND = 5,
    // A launch that the device or the entry does not allow.
    HANDLOOM_STATUS_INVALID_LAUNCH = 6,
    // No memory.
    HANDLOOM_STATUS_OUT_OF_MEMORY = 7,
    // The PTX is right, and holds something that is not supported.
    HANDLOOM_STATUS_UNSUPPORTED = 8,
    // The PTX is wrong.
    HANDLOOM_STATUS_INVALID_MODULE = 9,
    // A file that cannot be read.
    HANDLOOM_STATUS_FILE = 10,
    // A buffer for text has too little room; it got nothing.
    HANDLOOM_STATUS_TOO_SMALL = 11,
    // A kernel stopped.
    HANDLOOM_STATUS_TRAP = 12,
    // A check found something. The kernel ran, and the report says what was found.
    HANDLOOM_STATUS_FOUND = 13,
    // A fault of Handloom's.
    HANDLOOM_STATUS_BUG = 14,
    // A launch was stopped, by `handloom_stop_raise`.
    HANDLOOM_STATUS_STOPPED = 15,
    // The work that was asked about has not ended.
    HANDLOOM_STATUS_NOT_READY = 16,
} handloom_status;

// A device: memory, and the threads that run kernels.
typedef struct {
    // Meaningless to a program, but that 0 stands for nothing.
    uint64_t id;
} handloom_device;

// An entry of a module. It ends with its module.
typedef struct {
    // Meaningless to a program, but that 0 stands for nothing.
    uint64_t id;
} handloom_function;

// What ends launches that run.
typedef struct {
    // Meaningless to a program, but that 0 stands for nothing.
    uint64_t id;
} handloom_stop;

// Shape and manner of a launch. `handloom_config` in the header makes one; what is 0 is the usual.
typedef struct {
    // `sizeof(handloom_launch_config)`: which fields the program knows.
    uint32_t bytes;
    // Dynamic shared memory of a block in bytes.
    uint32_t shared_bytes;
    // Blocks in x, y, z.
    uint32_t grid[3];
    // Threads of a block in x, y, z.
    uint32_t block[3];
    // Blocks of a cluster in x, y, z; all 0 for what the entry asks for.
    uint32_t cluster[3];
    // Not 0: all blocks may wait for each other.
    uint32_t cooperative;
    // What is checked: some of `HANDLOOM_CHECK_MEMORY` and its like. A checked launch is run by the reference executor.
    uint32_t checks;
    // Not 0: it is run by the reference executor and not by compiled code.
    uint32_t interpreted;
    // Not 0: compiled code tests that addresses lie in memory of the device, and not in which buffer.
    uint32_t contained;
    // Host threads; 0 for one a core.
    uint32_t threads;
    // Order in which blocks start; 0 is ascending.
    uint64_t seed;
    // Longest time to make its code and to run, in seconds; 0 for any.
    double timeout_seconds;
    // What ends it while it runs; 0 for nothing.
    handloom_stop stop;
} handloom_launch_config;

// One argument, for one parameter. `handloom_u32`, `handloom_f32`, `handloom_at` and their like in the header make them.
typedef struct {
    // `HANDLOOM_ARG_INTEGER` and its like.
    uint32_t kind;
    // Bytes of a number: 1, 2, 4 or 8.
    uint32_t size;
    // The bits of a number, the number of a buffer's handle, or an address of the host.
    uint64_t value;
    // Of a buffer: which byte. Of memory of the host, and of bytes: how many.
    uint64_t bytes;
} handloom_arg;

// What a launch did.
typedef struct {
    // Meaningless to a program, but that 0 stands for nothing.
    uint64_t id;
} handloom_report;

// A launch whose code and parameters are there. It ends with its module.
typedef struct {
    // Meaningless to a program, but that 0 stands for nothing.
    uint64_t id;
} handloom_prepared;

// Memory of a device.
typedef struct {
    // Meaningless to a program, but that 0 stands for nothing.
    uint64_t id;
} handloom_buffer;

// A module of PTX on a device.
typedef struct {
    // Meaningless to a program, but that 0 stands for nothing.
    uint64_t id;
} handloom_module;

// Numbers of a report.
typedef struct {
    // Blocks that ran to their end.
    uint64_t blocks;
    // Nanoseconds to make its code; 0 if the code was there.
    uint64_t compile_ns;
    // Nanoseconds of the launch alone.
    uint64_t run_ns;
    // Nanoseconds that it waited for code of further tiers.
    uint64_t recompile_ns;
    // What its check found.
    uint64_t findings;
    // 1 if its code was kept by another process.
    uint64_t cached;
} handloom_report_facts_t;

// Work that is done later, in order.
typedef struct {
    // Meaningless to a program, but that 0 stands for nothing.
    uint64_t id;
} handloom_stream;

// A point in a stream.
typedef struct {
    // Meaningless to a program, but that 0 stands for nothing.
    uint64_t id;
} handloom_event;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes a device: 64 GiB of addresses of its own, and one host thread a core while kernels run. Two devices share nothing but code.
//
// # Safety
// `device` may be written.
handloom_status handloom_device_create(handloom_device *device);

// Ends a handle of a device. Its modules, buffers and streams live until they are released too.
handloom_status handloom_device_release(handloom_device device);

// Takes what kernels of the device have printed (`printf`) since it was taken last, as text with a NUL at its end, if there is room for all of it.
// `needed`, unless it is NULL, gets the bytes that are needed; with a NULL `buffer` nothing is taken.
//
// # Safety
// `buffer` is NULL or has `room` bytes that may be written; `needed` is NULL or may be written.
handloom_status handloom_device_take_output(handloom_device device, char *buffer, size_t room, size_t *needed);

// Runs an entry once and waits for its end. `report`, unless it is NULL, gets what it did, also when a check found something (`HANDLOOM_STATUS_FOUND`).
// `HANDLOOM_STATUS_STOPPED` if the stop handle of its configuration was raised.
//
// # Safety
// `config` points to a configuration, `args` to `count` arguments, with addresses of the host that are what they say; `report` is NULL or may be written.
handloom_status handloom_launch(handloom_function function,
                                const handloom_launch_config *config,
                                const handloom_arg *args,
                                size_t count,
                                handloom_report *report);

// Checks a launch, makes its code and writes its parameters, so that it can be run again and again. Memory of the host among its arguments is lent until it is released.
//
// # Safety
// As of `handloom_launch`, of memory of the host until it is released; `prepared` may be written.
handloom_status handloom_prepare(handloom_function function,
                                 const handloom_launch_config *config,
                                 const handloom_arg *args,
                                 size_t count,
                                 handloom_prepared *prepared);

// Gives a prepared launch other arguments.
//
// # Safety
// As of `handloom_prepare`.
handloom_status handloom_prepared_set_args(handloom_prepared prepared, const handloom_arg *args, size_t count);

// Runs a prepared launch and waits for its end. Threads that run the same one wait for each other. `report` as of `handloom_launch`.
//
// # Safety
// `report` is NULL or may be written.
handloom_status handloom_prepared_run(handloom_prepared prepared, handloom_report *report);

// Ends a prepared launch, and takes back the memory of the host that it was lent.
handloom_status handloom_prepared_release(handloom_prepared prepared);

// Makes a buffer of zeros.
//
// # Safety
// `buffer` may be written.
handloom_status handloom_buffer_create(handloom_device device, uint64_t bytes, handloom_buffer *buffer);

// Frees a buffer. A kernel that uses its address later traps; one that runs with it now still may.
handloom_status handloom_buffer_release(handloom_buffer buffer);

// Writes bytes of the host to a buffer, from its byte `offset` on.
//
// # Safety
// At `data` so many bytes may be read.
handloom_status handloom_buffer_write(handloom_buffer buffer, uint64_t offset, const uint8_t *data, size_t count);

// Reads bytes of a buffer, from its byte `offset` on, to memory of the host.
//
// # Safety
// At `data` so many bytes may be written.
handloom_status handloom_buffer_read(handloom_buffer buffer, uint64_t offset, uint8_t *data, size_t count);

// The address of a buffer, as kernels see it, for structures that hold one; and its size in bytes, unless `bytes` is NULL.
//
// # Safety
// `address` may be written, and `bytes` unless it is NULL.
handloom_status handloom_buffer_address(handloom_buffer buffer, uint64_t *address, uint64_t *bytes);

// Loads a module from PTX: `bytes` of it, or `HANDLOOM_NUL_ENDED` for a text that ends with NUL. Reports call it `name`, or `module.ptx` if that is NULL. Nothing is
// compiled until an entry is launched. Of wrong PTX `handloom_last_error` has all diagnostics with their places.
//
// # Safety
// `ptx` points to so many bytes, `name` is NULL or ends with NUL, `module` may be written.
handloom_status handloom_module_load(handloom_device device,
                                     const char *ptx,
                                     size_t bytes,
                                     const char *name,
                                     handloom_module *module);

// Loads a module from a file of PTX, whose path reports use.
//
// # Safety
// `path` ends with NUL, `module` may be written.
handloom_status handloom_module_load_file(handloom_device device, const char *path, handloom_module *module);

// Ends a module, and with it the handles of its entries and of its prepared launches. What runs of it comes to its end.
handloom_status handloom_module_release(handloom_module module);

// All diagnostics of PTX, warnings too, each as a JSON object on a line of its own; nothing if there are none. Runs nothing. The text goes to `buffer` as that of
// `handloom_report_write` does.
//
// # Safety
// As of `handloom_module_load` and `handloom_report_write`.
handloom_status handloom_check(const char *ptx,
                               size_t bytes,
                               const char *name,
                               char *buffer,
                               size_t room,
                               size_t *needed);

// The names of all entries of a module, each on a line of its own, sorted. The text goes to `buffer` as that of `handloom_report_write` does.
//
// # Safety
// As of `handloom_report_write`.
handloom_status handloom_module_entries(handloom_module module, char *buffer, size_t room, size_t *needed);

// An entry of a module by its name, or its only one if that is NULL.
//
// # Safety
// `name` is NULL or ends with NUL, `function` may be written.
handloom_status handloom_module_function(handloom_module module, const char *name, handloom_function *function);

// The address and the size in bytes of a variable (`.global` or `.const`) of a module. `bytes` may be NULL.
//
// # Safety
// `name` ends with NUL, `address` may be written, and `bytes` unless it is NULL.
handloom_status handloom_module_variable(handloom_module module, const char *name, uint64_t *address, uint64_t *bytes);

// Writes bytes of the host to a variable of a module, from its byte `offset` on.
//
// # Safety
// `name` ends with NUL, at `data` so many bytes may be read.
handloom_status handloom_variable_write(handloom_module module, const char *name, uint64_t offset, const uint8_t *data, size_t count);

// Reads bytes of a variable of a module, from its byte `offset` on.
//
// # Safety
// `name` ends with NUL, at `data` so many bytes may be written.
handloom_status handloom_variable_read(handloom_module module, const char *name, uint64_t offset, uint8_t *data, size_t count);

// The numbers of a report.
//
// # Safety
// `facts` may be written.
handloom_status handloom_report_facts(handloom_report report, handloom_report_facts_t *facts);

// A report with all that was found, in a format: `HANDLOOM_FORMAT_TEXT` or `HANDLOOM_FORMAT_JSON`. It goes to `buffer` with a NUL at its end, if there is room for
// all of it: else the call fails with `HANDLOOM_STATUS_TOO_SMALL`. `needed`, unless it is NULL, gets the bytes that are needed; with a NULL `buffer` that is all that
// is done.
//
// # Safety
// `buffer` is NULL or has `room` bytes that may be written; `needed` is NULL or may be written.
handloom_status handloom_report_write(handloom_report report,
                                      uint32_t format,
                                      char *buffer,
                                      size_t room,
                                      size_t *needed);

// Frees a report.
handloom_status handloom_report_release(handloom_report report);

// Runs the only entry of a text of PTX with `n_args` words: addresses of the host, which kernels use as they are, and integers. A word is cut to the size of its
// parameter. What goes wrong is also said on standard error, since those who call this do not look at what it returns: `HANDLOOM_STATUS_OK` or another status.
//
// Kernels reach all memory of the process that is mapped; only what is not mapped traps.
//
// # Safety
// `source` ends with NUL, `args` has `n_args` words, the kernel writes nothing that it may not write, and what it uses stays while it runs.
handloom_status ptx_run(const char *source,
                        int n_args,
                        const void *const *args,
                        int block_x,
                        int block_y,
                        int block_z,
                        int grid_x,
                        int grid_y,
                        int grid_z,
                        int shared_bytes);

// The name of a status: `"out of memory"`; of another number `"unknown"`. It lives for ever.
const char *handloom_status_name(uint32_t status);

// The last error of the calling thread: a sentence or the whole report, as text. It lives until the next call of the thread that fails; before the first it is empty.
const char *handloom_last_error(void);

// A stable word for the last error of the calling thread: of a trap its kind (`out_of_bounds`), else `argument_count` and so on. It lives as the text does.
const char *handloom_last_error_kind(void);

// The last error of the calling thread as a JSON object, with the place of a trap and the diagnostics of a module. It lives as the text does.
const char *handloom_last_error_json(void);

// The version of the library. It lives for ever.
const char *handloom_version(void);

// Makes a stop handle. Launches get it by the field `stop` of their configuration, any number of them.
//
// # Safety
// `stop` may be written.
handloom_status handloom_stop_create(handloom_stop *stop);

// Ends all launches with this handle, those that run and those that come: they return `HANDLOOM_STATUS_STOPPED`. It does not wait for them. Memory keeps what a kernel
// has written until then. Any thread may call it. A signal handler may not, since it takes a lock: set a flag there, or give the launch a `timeout_seconds`.
handloom_status handloom_stop_raise(handloom_stop stop);

// Takes a stop back, so that the handle serves launches again.
handloom_status handloom_stop_clear(handloom_stop stop);

// Frees a stop handle. Launches that have it go on, and nothing stops them any more.
handloom_status handloom_stop_release(handloom_stop stop);

// Makes a stream.
//
// # Safety
// `stream` may be written.
handloom_status handloom_stream_create(handloom_device device, handloom_stream *stream);

// Gives a launch to a stream, which runs it after what it was given before. Arguments are copied and code is made before the call returns; what the kernel does wrong
// is the error of `handloom_stream_synchronize`. A buffer among the arguments has to live until the launch has ended. Memory of the host cannot be lent, since nobody
// would know for how long, and nothing can be checked.
//
// # Safety
// As of `handloom_launch`.
handloom_status handloom_stream_launch(handloom_stream stream,
                                       handloom_function function,
                                       const handloom_launch_config *config,
                                       const handloom_arg *args,
                                       size_t count);

// Makes an event: the point after all that the stream was given until now. Its time is when the work before it ended.
//
// # Safety
// `event` may be written.
handloom_status handloom_stream_record(handloom_stream stream, handloom_event *event);

// Makes all that a stream is given later wait for an event, which may be one of another stream and of another device. The host does not wait.
handloom_status handloom_stream_wait(handloom_stream stream, handloom_event event);

// Waits for all that a stream was given. If something of it has failed or was stopped, the stream does nothing any more, and each call says why.
handloom_status handloom_stream_synchronize(handloom_stream stream);

// Whether all has ended that a stream was given: `HANDLOOM_STATUS_OK` or `HANDLOOM_STATUS_NOT_READY`, at once. An error of its work as of
// `handloom_stream_synchronize`.
handloom_status handloom_stream_query(handloom_stream stream);

// Ends a stream. What it was given is still done, and its events stay.
handloom_status handloom_stream_release(handloom_stream stream);

// Waits for the work before an event.
handloom_status handloom_event_synchronize(handloom_event event);

// Whether the work before an event has ended: `HANDLOOM_STATUS_OK` or `HANDLOOM_STATUS_NOT_READY`, at once. An error of its stream's work as of
// `handloom_event_synchronize`.
handloom_status handloom_event_query(handloom_event event);

// Milliseconds from one event to another, less than 0 if `end` was earlier; they may be of two streams. `HANDLOOM_STATUS_NOT_READY` if the work before one of them has
// not ended.
//
// # Safety
// `milliseconds` may be written.
handloom_status handloom_event_elapsed(handloom_event start,
                                       handloom_event end,
                                       double *milliseconds);

// Frees an event. Who waits for it goes on waiting for its work.
handloom_status handloom_event_release(handloom_event event);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HANDLOOM_H */

#ifdef __cplusplus
extern "C++" {
#endif

// A launch of so many blocks with so many threads each, in one row.
static inline handloom_launch_config handloom_config(uint32_t blocks, uint32_t threads) {
    handloom_launch_config config;
    memset(&config, 0, sizeof config);
    config.bytes = (uint32_t)sizeof config;
    config.grid[0] = blocks;
    config.block[0] = threads;
    config.grid[1] = config.grid[2] = config.block[1] = config.block[2] = 1;
    return config;
}

static inline handloom_arg handloom_arg_of(uint32_t kind, uint32_t size, uint64_t value, uint64_t bytes) {
    handloom_arg arg;
    arg.kind = kind;
    arg.size = size;
    arg.value = value;
    arg.bytes = bytes;
    return arg;
}

// Numbers for parameters of their size.
static inline handloom_arg handloom_u8(uint8_t v) { return handloom_arg_of(HANDLOOM_ARG_INTEGER, 1, v, 0); }
static inline handloom_arg handloom_u16(uint16_t v) { return handloom_arg_of(HANDLOOM_ARG_INTEGER, 2, v, 0); }
static inline handloom_arg handloom_u32(uint32_t v) { return handloom_arg_of(HANDLOOM_ARG_INTEGER, 4, v, 0); }
static inline handloom_arg handloom_u64(uint64_t v) { return handloom_arg_of(HANDLOOM_ARG_INTEGER, 8, v, 0); }
static inline handloom_arg handloom_s32(int32_t v) { return handloom_u32((uint32_t)v); }
static inline handloom_arg handloom_s64(int64_t v) { return handloom_u64((uint64_t)v); }
static inline handloom_arg handloom_f32(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return handloom_arg_of(HANDLOOM_ARG_FLOAT, 4, bits, 0);
}
static inline handloom_arg handloom_f64(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return handloom_arg_of(HANDLOOM_ARG_FLOAT, 8, bits, 0);
}
// The bits of an .f16 or a .bf16.
static inline handloom_arg handloom_f16_bits(uint16_t v) { return handloom_arg_of(HANDLOOM_ARG_FLOAT, 2, v, 0); }

// A buffer from its byte `offset` on.
static inline handloom_arg handloom_at(handloom_buffer buffer, uint64_t offset) {
    return handloom_arg_of(HANDLOOM_ARG_BUFFER, 8, buffer.id, offset);
}

// A structure that is passed by value.
static inline handloom_arg handloom_struct(const void *data, uint64_t bytes) {
    return handloom_arg_of(HANDLOOM_ARG_BYTES, 0, (uint64_t)(uintptr_t)data, bytes);
}

// Memory of the host, which the kernel uses where it lies; the second for reading alone.
static inline handloom_arg handloom_host(void *data, uint64_t bytes) {
    return handloom_arg_of(HANDLOOM_ARG_HOST, 8, (uint64_t)(uintptr_t)data, bytes);
}
static inline handloom_arg handloom_host_const(const void *data, uint64_t bytes) {
    return handloom_arg_of(HANDLOOM_ARG_HOST_CONST, 8, (uint64_t)(uintptr_t)data, bytes);
}

#ifdef __cplusplus
} // extern "C++"
#endif
// made from sources with the sum 740215012
