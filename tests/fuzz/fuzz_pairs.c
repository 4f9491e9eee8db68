/* SPDX-License-Identifier: Apache-2.0
 * The reader of sentences and their translations on any bytes: the file, or both files, and what is
 * given of their words, cut at a line of one dash. */
#include <stdint.h>

#include "tests/fuzz/lib/pieces.h"
#include "tests/lib/data_case.h"

enum { TEXTS_MAX = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte says which files there are. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const kinds[][TEXTS_MAX] = {
        {"train.tsv", "valid.tsv"},
        {"train.tsv", "vocab.source", "vocab.target"},
        {"train.de", "train.en", "valid.de", "valid.en"},
        {"train.de", "train.en", "dev.de", "dev.en", "vocab.de", "vocab.en"},
    };
    struct data_text texts[TEXTS_MAX];
    if (size == 0)
        return 0;
    const char *const *names = kinds[data[0] % ARRAY_COUNT(kinds)];
    int count = 0;
    while (count < TEXTS_MAX && names[count])
        count++;
    pieces_cut(data + 1, size - 1, names, count, texts);
    data_case_try("pairs", texts, count,
                  data_case_graph("nmt:source=4,target=5,vocabulary=8,width=8,dropout=none", 4));
    return 0;
}
