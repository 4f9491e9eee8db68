/* SPDX-License-Identifier: Apache-2.0
 * Text that is cut into word pieces, on any bytes: vocabulary, text, held-out text, cut at a line
 * of one dash. */
#include <stdint.h>

#include "tests/fuzz/lib/pieces.h"
#include "tests/lib/data_case.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"vocab.txt", "train.txt", "valid.txt"};
    struct data_text texts[3];
    pieces_cut(data, size, names, 3, texts);
    data_case_try("text", texts, 3,
                  data_case_graph("bert_base:tokens=12,depth=1,width=8,heads=1,vocabulary=16", 4));
    return 0;
}
