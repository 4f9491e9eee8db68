/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of engine/kernels/cuda/roofs/ share: a launch that fills the device, memory of a
 * size that follows from the device's caches, and operations counted where they are done, which
 * the tests' device (tests/gpu/host/) compares with what each roof claims. */
#ifndef ENGINE_KERNELS_CUDA_LIB_ROOF_H
#define ENGINE_KERNELS_CUDA_LIB_ROOF_H

#include "engine/kernels/cuda/lib/kernel.h"
#include "engine/kernels/cuda/lib/ptx.h"

#ifndef KERNEL_COUNT
#define KERNEL_COUNT(n) ((void)0)
#endif

#define ROOF_GROUP(symbol)                                                                         \
    extern "C" {                                                                                   \
    extern const struct roof_group roof_group_cuda_##symbol;                                       \
    }                                                                                              \
    const struct roof_group roof_group_cuda_##symbol
#define ROOFS(array)                                                                               \
    {                                                                                              \
        sizeof(struct device_roof), array, ARRAY_COUNT(array)                                      \
    }

enum { ROOF_BLOCKS_PER_UNIT = 4 }; /* of BLOCK threads: half of what a multiprocessor holds */

struct roof_state {
    const struct device *device;
    void *memory;         /* NULL: none */
    int64_t count, apart; /* of 16 bytes, per array, and from one array to the next */
};

/* What a kernel gets. Its results go to `sink` only if they are beyond `limit`, which none is; the
 * compiler cannot know. */
struct roof_args {
    void *sink;
    float limit;
    int rounds;
};

static inline struct roof_args roof_args_of(const struct roof_state *state, int64_t rounds)
{
    return {state->memory, INFINITY, (int)rounds};
}

static inline unsigned roof_blocks(const struct device *device)
{
    int units = device->properties.units;
    return (unsigned)(units > 0 ? units : 1) * ROOF_BLOCKS_PER_UNIT;
}

static inline void roof_release(struct roof_state *state)
{
    if (state->memory)
        state->device->kind->free(state->device, state->memory);
    free(state);
}

/* bytes: of memory of the device that a kernel of this state gets; 0: none. */
static inline enum status roof_new(const struct device *device, size_t bytes,
                                   struct roof_state **state, struct error *why)
{
    struct roof_state *made = (struct roof_state *)calloc(1, sizeof(*made));
    if (!made)
        return cuda_host->refuse(why, STATUS_NO_MEMORY, "out of memory");
    made->device = device;
    enum status status = bytes ? device->kind->alloc(device, bytes, &made->memory, why) : STATUS_OK;
    if (status == STATUS_OK && bytes)
        status = device->kind->fill(device, made->memory, 0x5a, bytes, NULL, why);
    if (status == STATUS_OK && bytes)
        status = device->kind->wait(device, NULL, why);
    if (status == STATUS_OK)
        *state = made;
    else
        roof_release(made);
    return status;
}

/* Registers only; the sink is never written, but its address must be one. */
static inline enum status roof_new_compute(const struct device *device, struct roof_state **state,
                                           struct error *why)
{
    return roof_new(device, sizeof(uint4), state, why);
}

/* In a hook that returns a status: returns on a refusal. argument: a struct's address. */
#define ROOF_LAUNCH_TRY(kernel, grid_size, block_size, bytes, argument_, stream_, err_)            \
    do {                                                                                           \
        struct error refused_ = {};                                                                \
        struct kernel_args args_ = {};                                                             \
        args_.stream = stream_;                                                                    \
        args_.err = &refused_;                                                                     \
        LAUNCH_AS(false, kernel, grid_size, block_size, bytes, argument_, &args_);                 \
        if (refused_.code != STATUS_OK)                                                            \
            return cuda_host->refuse(err_, refused_.code, "%s", refused_.message);                 \
    } while (0)

#endif
