/* SPDX-License-Identifier: Apache-2.0
 * The reader of MovieLens on any bytes. The first byte says in which of its three forms. */
#include <stdint.h>

#include "tests/lib/data_case.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"ratings.csv", "ratings.dat", "u.data"};
    if (size == 0)
        return 0;
    const struct data_text text = {names[*data % 3], data + 1, size - 1};
    data_case_try("movielens", &text, 1, data_case_graph("ncf:users=8,items=8", 4));
    return 0;
}
