/* SPDX-License-Identifier: Apache-2.0
 * Where large arrays lie does not depend on what else is on the heap: ncf at batch 8 took 47.8 us
 * or 51.4, by the length of RIDGE_PLUGIN_PATH, and the same program in turns with itself regressed.
 */

#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"
#include "tests/lib/unit.h"

TEST(a_place_in_a_page_does_not_depend_on_the_heap)
{
    static const size_t sizes[] = {4096, 5000, 30000, 120000, 474368, 1900000};
    for (size_t length = 1; length < 4096; length += 61) {
        void *other = malloc(length), *blocks[sizeof(sizes) / sizeof(*sizes)];
        assert_non_null(other);
        for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
            blocks[k] = memory_alloc(sizes[k]);
            assert_non_null(blocks[k]);
            assert_int_equal((uintptr_t)blocks[k] % 4096, 0);
        }
        for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++)
            memory_free(blocks[k]);
        free(other);
    }
}
