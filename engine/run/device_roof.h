/* SPDX-License-Identifier: Apache-2.0
 *
 * A roof of a device: work whose rate is the most that the device can do of one kind. Plug-ins
 * offer them (engine/run/plugin.h), for a device of their own or of another plug-in; the harness
 * times them (harness/roofs/device_ceilings.c) and keeps the median as a ceiling. Of several for
 * one precision or level the best is what points are judged by, so each says in name, pattern and
 * isa what it is.
 *
 *   prepare  required  makes everything that run needs, sized by the device's properties; says how
 *                      much one round is. UNSUPPORTED, with the reason, where the device lacks it
 *   run      required  puts so many rounds of work into the stream and returns: allocates nothing,
 *                      waits for nothing. ROOF_LAUNCH: a launch per round, also while a capture
 *                      records them
 *   release  required  gives back what prepare made
 *
 * The smallest example is engine/kernels/cuda/roofs/launch.cu. What the device's own table can do,
 * copies to and from the host and within, the harness measures without a plug-in's help.
 */
#ifndef ENGINE_RUN_DEVICE_ROOF_H
#define ENGINE_RUN_DEVICE_ROOF_H

#include <stdint.h>

#include "engine/run/device.h"

enum roof_kind {
    ROOF_BANDWIDTH, /* amount: bytes; unit B/s */
    ROOF_COMPUTE,   /* amount: operations, a multiply-add is two; unit FLOP/s or OP/s */
    ROOF_LAUNCH,    /* a kernel that does nothing: one per round */
};

/* What prepare says. */
struct roof_work {
    double amount;        /* of one round */
    size_t working_bytes; /* that a round touches; 0: registers */
};

struct roof_state; /* each roof defines its own */

struct device_roof {
    const char *name;   /* "read DRAM", "mma bf16": no other of the device has it */
    const char *device; /* kind: "cuda" */
    const char *level;  /* of bandwidth: "DRAM", "L2"; else "" */
    const char
        *precision; /* of compute: "f32", "tf32" (engine/graph/precision.h), or "f64"; else "" */
    const char *pattern; /* "read", "copy", "fma", "mma", "gemm" */
    const char *isa;     /* instruction or library call: "mma.sync.m16n8k16.f32.bf16" */
    const char *unit;
    enum roof_kind kind;
    enum status (*prepare)(const struct device_roof *roof, const struct device *device,
                           struct roof_work *work, struct roof_state **state, struct error *why);
    enum status (*run)(const struct roof_state *state, int64_t rounds, void *stream,
                       struct error *err);
    void (*release)(struct roof_state *state);
};

/* Roofs that share a file. */
struct roof_group {
    size_t size; /* sizeof(struct device_roof) where it was built: the struct grows at its end */
    const struct device_roof *roofs;
    int count;
};

/* ---- host side: nothing below is for plug-ins ---- */

/* Those that loaded plug-ins offer, in order of loading. */
int device_roof_count(void);
const struct device_roof *device_roof_at(int index);

#endif
