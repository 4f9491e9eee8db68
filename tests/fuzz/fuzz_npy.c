/* SPDX-License-Identifier: Apache-2.0
 * The reader of .npy files on any bytes. */
#include <stdint.h>
#include <stdlib.h>

#include "base/text/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct npy array;
    struct error err;
    if (npy_parse(data, size, "fuzz", &array, &err) == STATUS_OK && npy_bytes(&array) > size)
        abort(); /* contents come from nowhere else */
    npy_release(&array);
    return 0;
}
