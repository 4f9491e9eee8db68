/* SPDX-License-Identifier: Apache-2.0
 *
 * How the lanes of a warp share what an access moves, per place in a kernel: sectors of 32 bytes of
 * the device's memory, turns of the 32 banks of shared memory, beside how few it could be. With
 * RIDGE_HOST_PATTERNS=1 the worst places are printed when a program ends by exit(), as tests do and
 * ridge does not: an estimate of what a profiler on a GPU calls coalescing and conflicts of banks,
 * from the code that the host's compiler made. It looks at the first blocks, warps and rounds of
 * each launch. */
#ifndef TESTS_GPU_HOST_PATTERN_H
#define TESTS_GPU_HOST_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pattern_access {
    const char *at;
    unsigned bytes;
    uint32_t code;
    bool shared, write;
};

bool pattern_wanted(void);
/* By `thread` of a block; accesses of one place and round are one request of the warp. */
void pattern_add(const struct pattern_access *access, unsigned block, unsigned thread);
void pattern_end_block(void);

#endif
