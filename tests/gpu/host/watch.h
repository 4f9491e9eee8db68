/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches every access that a kernel makes to memory of the device and to shared memory, and tells
 * of two accesses of one byte, at least one of them a write, that nothing puts in an order, and of
 * bytes that are read and that nobody has written. What orders: a launch after another, a barrier
 * of the block, __syncwarp within a warp; a shuffle does not (CUDA C++ Programming Guide, "Warp
 * Shuffle Functions"), nor is anything between two blocks of a launch. Atomic and volatile accesses
 * may meet each other.
 *
 * The compiler names the accesses: kernels are compiled with -fsanitize=thread, and watch.c is what
 * they call instead of that sanitizer's library, which does not know blocks and warps. Of a
 * block's plain reads only the first 65,536 are watched, unless RIDGE_HOST_WATCH is "all"; where it
 * is 0 nothing is. */
#ifndef TESTS_GPU_HOST_WATCH_H
#define TESTS_GPU_HOST_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* When a thread of a grid does something. */
struct watch_moment {
    uint32_t launch, block; /* 0: outside of launches */
    uint32_t waits;         /* barriers so far: of the cluster in the upper half, of the block */
    uint16_t thread, warp_waits;
};

enum watch_kind { WATCH_READ, WATCH_WRITE, WATCH_ATOMIC /* both */, WATCH_ATOMIC_READ };

/* Of a launch; *now is when an access happens; cluster_block: threads of a block where blocks form
 * clusters, which count as one block there, else 0. watch_end dies of what was found since. */
void watch_begin(const struct watch_moment *now, const char *shared, size_t shared_bytes,
                 unsigned cluster_block);
void watch_end(void);
/* What the compiler cannot see: atomics, copies that are done later. */
void watch_access(const void *at, size_t bytes, enum watch_kind kind);

/* Memory of the device at region + `at`: nobody has written it, or the host has. */
void watch_region(const char *region, size_t bytes);
void watch_taken(size_t at, size_t bytes);
void watch_written(const void *memory, size_t bytes);

/* Function and line of a place in the plug-in, on standard error. */
void watch_report_place(const char *what, uint32_t code);

#ifdef __cplusplus
}
#endif
#endif
