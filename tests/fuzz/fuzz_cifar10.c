/* SPDX-License-Identifier: Apache-2.0
 * The reader of CIFAR-10 on any bytes, which are repeated to a few records' length. */
#include <stdint.h>

#include "tests/lib/data_case.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t records[4 * 3073];
    size_t length = size ? sizeof(records) - data[0] % 3 : 0;
    for (size_t k = 0; k < length; k++)
        records[k] = data[k % size];
    const struct data_text texts[] = {{"data_batch_1.bin", records, length},
                                      {"test_batch.bin", records + 3073, 3073}};
    data_case_try("cifar10", texts, size && data[0] % 2 ? 2 : 1, data_case_images(4, 8, 10));
    return 0;
}
