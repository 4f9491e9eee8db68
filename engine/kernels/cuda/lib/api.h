/* SPDX-License-Identifier: Apache-2.0
 *
 * Every call of the CUDA runtime that the plug-in makes, as a table of functions in plain C types:
 * api_cudart.c fills it with the real ones; tests fill it with a device that is ordinary memory and
 * fails on demand. A call returns CUDA_DONE or the runtime's error number.
 *
 * The runtime is linked statically and opens the driver (libcuda.so.1) itself at the first call
 * that needs it, so the plug-in loads on machines without one. */
#ifndef ENGINE_KERNELS_CUDA_LIB_API_H
#define ENGINE_KERNELS_CUDA_LIB_API_H

#include <stdbool.h>
#include <stddef.h>

/* Of cudaError_t: those that are distinguished. */
enum {
    CUDA_DONE = 0,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_OLD_DRIVER = 35,
    CUDA_NO_DEVICE = 100,
    CUDA_NOT_READY = 600,
    /* The machine is not set up. */
    CUDA_SYSTEM_NOT_READY = 802,
    CUDA_DRIVER_MISMATCH = 803,
    CUDA_COMPAT_NOT_SUPPORTED = 804,
    /* From here on every call for the device fails, until the process ends. */
    CUDA_ECC = 214,
    CUDA_NVLINK = 220,
    CUDA_CONTAINED = 226,
    CUDA_ILLEGAL_ADDRESS = 700,
    CUDA_LAUNCH_TIMEOUT = 702,
    CUDA_CONTEXT_DESTROYED = 709,
    CUDA_ASSERT = 710,
    CUDA_STACK_ERROR = 714,
    CUDA_ILLEGAL_INSTRUCTION = 715,
    CUDA_MISALIGNED_ADDRESS = 716,
    CUDA_ADDRESS_SPACE = 717,
    CUDA_INVALID_PC = 718,
    CUDA_LAUNCH_FAILURE = 719,
    CUDA_TENSOR_MEMORY_LEAK = 721,
    CUDA_EXTERNAL_DEVICE = 911,
    CUDA_UNKNOWN = 999
};

enum cuda_copy { CUDA_TO_DEVICE = 1, CUDA_TO_HOST = 2, CUDA_WITHIN = 3 };

struct cuda_facts {
    char name[96], bus[32];
    int major, minor, units, cache_bytes, shared_bytes, clock_khz, memory_khz, bus_bits;
};

struct cuda_grid {
    unsigned x, y, z;
};

/* One launch of a kernel, whose only argument is a struct. */
struct cuda_launch {
    const char *name;
    const void *kernel;
    struct cuda_grid grid, block;
    size_t shared_bytes;
    void *argument;
    bool early;       /* may be launched before those ahead of it in the stream have ended */
    unsigned cluster; /* blocks in x that form a cluster, from sm_90 on; 0: none do */
};

struct cuda_api {
    int (*driver_version)(int *version); /* 13000 for 13.0; 0: no driver */
    int (*runtime_version)(int *version);
    int (*device_count)(int *count);
    int (*set_device)(int index);
    int (*facts)(struct cuda_facts *facts, int index);
    int (*memory_info)(size_t *free, size_t *total);

    int (*malloc)(void **memory, size_t bytes);
    int (*free)(void *memory);
    int (*malloc_host)(void **memory, size_t bytes);
    int (*free_host)(void *memory);

    int (*stream_create)(void **stream);
    int (*stream_destroy)(void *stream);
    int (*stream_synchronize)(void *stream);
    int (*stream_query)(void *stream); /* CUDA_NOT_READY: its work is not done yet */
    int (*copy)(void *to, const void *from, size_t bytes, enum cuda_copy direction, void *stream);
    int (*set)(void *memory, int byte, size_t bytes, void *stream);

    int (*event_create)(void **event);
    int (*event_destroy)(void *event);
    int (*event_record)(void *event, void *stream); /* in a capture: by each of its replays */
    int (*event_elapsed)(float *ms, void *from, void *to);
    /* Order between streams; in a capture it becomes the graph's. */
    int (*event_mark)(void *event, void *stream);
    int (*stream_follow)(void *stream, void *event);

    int (*capture_begin)(void *stream);
    int (*capture_end)(void *stream, void **graph);
    int (*graph_instantiate)(void **exec, void *graph);
    int (*graph_launch)(void *exec, void *stream);
    int (*graph_exec_destroy)(void *exec);
    int (*graph_destroy)(void *graph);

    /* early: the kernel itself waits for those ahead of it, where it is launched before they end;
     * code for chips before sm_90 is launched after them. */
    int (*launch)(const struct cuda_launch *launch, void *stream);
    /* How many clusters of the launch run at a time: 0 where there is no room for one. */
    int (*clusters_at_once)(const struct cuda_launch *launch, int *count);
    /* What the code that the device runs of the kernel was compiled for: 90 for sm_90. That is less
     * than the device is where its driver compiles what the plug-in has for older ones. */
    int (*code_version)(const void *kernel, int *version);
    /* Lets blocks of the kernel ask for so much shared memory (more than 48 KiB). */
    int (*allow_shared)(const void *kernel, size_t bytes);

    const char *(*error_name)(int error); /* "cudaErrorIllegalAddress" */
    const char *(*error_text)(int error);
};

extern const struct cuda_api cuda_api;

#endif
