/* SPDX-License-Identifier: Apache-2.0
 * The reader of MNIST's files on any bytes: its four files, cut at lines of one dash. */
#include <stdint.h>
#include <string.h>

#include "tests/fuzz/lib/pieces.h"
#include "tests/lib/data_case.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                        "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
    struct data_text texts[4];
    pieces_cut(data, size, names, 4, texts);
    data_case_try("mnist", texts, 4, data_case_images(4, 6, 10));
    return 0;
}
