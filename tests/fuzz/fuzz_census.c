/* SPDX-License-Identifier: Apache-2.0
 * The reader of the census income data on any bytes: both files, cut at a line of one dash. */
#include <stdint.h>
#include <string.h>

#include "tests/fuzz/lib/pieces.h"
#include "tests/lib/data_case.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"adult.data", "adult.test"};
    struct data_text texts[2];
    pieces_cut(data, size, names, 2, texts);
    data_case_try("census", texts, 2, data_case_graph("wide_deep", 4));
    return 0;
}
