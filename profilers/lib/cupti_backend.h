/* SPDX-License-Identifier: Apache-2.0
 *
 * What profilers/cupti*.c ask of NVIDIA's profiling library. It is behind a plug-in,
 * plugins/profilers/cupti.so, so that ridge needs neither CUPTI nor a driver to start; the plug-in
 * sees nothing of ridge but this header and profilers/lib/trace.h.
 *
 * The host side (chips, config) works without a driver: what a chip can count and in how many
 * passes is known to the library. Everything below it needs a device.
 *
 * Every call that fails fills `reason` (CUPTI_REASON bytes) with the call of the library, its code
 * and what to do, and leaves nothing behind. One thread at a time.
 */
#ifndef PROFILERS_LIB_CUPTI_BACKEND_H
#define PROFILERS_LIB_CUPTI_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profilers/lib/trace.h"

enum { CUPTI_BACKEND_ABI = 3, CUPTI_REASON = 440, CUPTI_CHIP = 32, CUPTI_SAMPLES_MAX = 8192 };

/* A trace needs no permission; counters do. */
enum cupti_use { CUPTI_TRACE, CUPTI_RANGES, CUPTI_SAMPLES };

struct cupti;         /* the library and, once a device was asked for, its driver */
struct cupti_config;  /* metrics that are counted together */
struct cupti_ranges;  /* counters that count between push and pop */
struct cupti_sampler; /* counters that are read at intervals */
struct cupti_tracer;  /* records of what ran; one per process */

/* Files instead of the usual ones; NULL: the usual one. */
struct cupti_files {
    const char *cupti;  /* libcupti.so.13 */
    const char *driver; /* libcuda.so.1 */
    const char *params; /* /proc/driver/nvidia/params */
    const char *status; /* /proc/self/status */
};

struct cupti_wanted {
    const char *chip;
    enum cupti_use use; /* ranges or samples */
    bool attached;      /* the device says what it has; else the chip is believed */
    const char *const *metrics;
    int count;
};

typedef void cupti_sink(void *context, const struct trace_record *record);

struct cupti_backend {
    int abi;   /* CUPTI_BACKEND_ABI */
    int built; /* version of CUPTI whose headers it was compiled with: 130001 */
    /* Opens the library: fails when it is missing or has another version. */
    struct cupti *(*open)(const struct cupti_files *files, char *reason);
    int (*version)(const struct cupti *cupti); /* of the library that was opened */
    void (*close)(struct cupti *cupti);
    /* Whether there is a driver with a device and, for counters, the permission to count; for a
     * trace, a version whose traces end. */
    bool (*ready)(struct cupti *cupti, enum cupti_use use, char *reason);

    /* ---- host side ---- */
    const char *const *(*chips)(struct cupti *cupti, int *count, char *reason);
    /* Text of the library on a metric ("# of bytes read from DRAM"). */
    bool (*describe)(struct cupti *cupti, const struct cupti_wanted *wanted, int index, char *text,
                     size_t size, char *reason);
    struct cupti_config *(*config_open)(struct cupti *cupti, const struct cupti_wanted *wanted,
                                        char *reason);
    int (*config_passes)(const struct cupti_config *config);
    void (*config_close)(struct cupti_config *config);

    /* ---- a device, one per struct cupti: its primary context becomes the thread's current one.
     * chip: "" for a trace, which does not need to know. ---- */
    bool (*attach)(struct cupti *cupti, int device, enum cupti_use use, char *chip, char *reason);
    bool (*synchronise)(struct cupti *cupti, char *reason);
    /* After attach: ranges may be counted from now on, and kernels that are loaded from now on are
     * known to the counters. All ranges share what this made, until close. */
    bool (*hold)(struct cupti *cupti, char *reason);

    /* Every replay is start, pushes and pops (not nested), stop; `complete`: it was the last. */
    struct cupti_ranges *(*ranges_open)(struct cupti_config *config, int ranges_max, char *reason);
    bool (*ranges_start)(struct cupti_ranges *ranges, char *reason);
    bool (*ranges_push)(struct cupti_ranges *ranges, const char *name, char *reason);
    bool (*ranges_pop)(struct cupti_ranges *ranges, char *reason);
    bool (*ranges_stop)(struct cupti_ranges *ranges, bool *complete, char *reason);
    bool (*ranges_decode)(struct cupti_ranges *ranges, int *count, char *reason);
    /* values: one per metric of the config. */
    bool (*ranges_read)(struct cupti_ranges *ranges, int index, char *name, size_t size,
                        double *values, char *reason);
    void (*ranges_close)(struct cupti_ranges *ranges);

    /* One start and stop may take CUPTI_SAMPLES_MAX intervals: what comes later fails. */
    struct cupti_sampler *(*sampler_open)(struct cupti_config *config, uint64_t interval_ns,
                                          char *reason);
    bool (*sampler_start)(struct cupti_sampler *sampler, char *reason);
    /* sums: of each metric over all samples between start and stop. */
    bool (*sampler_stop)(struct cupti_sampler *sampler, double *sums, int64_t *samples,
                         char *reason);
    void (*sampler_close)(struct cupti_sampler *sampler);

    struct cupti_tracer *(*tracer_open)(struct cupti *cupti, char *reason);
    /* graphs: one record per launch of a graph instead of one per node. */
    bool (*tracer_start)(struct cupti_tracer *tracer, bool graphs, char *reason);
    /* Forgets what was recorded since start, and what was lost; the device must be idle. */
    bool (*tracer_drop)(struct cupti_tracer *tracer, char *reason);
    /* Hands all records to the sink, in any order. */
    bool (*tracer_stop)(struct cupti_tracer *tracer, cupti_sink *sink, void *context,
                        int64_t *dropped, char *reason);
    void (*tracer_close)(struct cupti_tracer *tracer);
};

/* The one export. */
typedef const struct cupti_backend *ridge_cupti_entry(void);
extern __attribute__((visibility("default"))) ridge_cupti_entry ridge_cupti;

#endif
