/* SPDX-License-Identifier: Apache-2.0
 * The reader of Cora's files on any bytes: contents up to a line of one dash, then citations. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/data/cora.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
    if (!truth)
        abort();
}

static void check_matrix(const struct csr *m, int32_t rows, int32_t columns)
{
    require(m->rows == rows && m->columns == columns && m->offsets[0] == 0);
    require(m->offsets[rows] == m->entries);
    for (int32_t r = 0; r < rows; r++) {
        require(m->offsets[r] <= m->offsets[r + 1]);
        for (int32_t z = m->offsets[r]; z < m->offsets[r + 1]; z++) {
            require(m->column[z] >= 0 && m->column[z] < columns);
            require(z == m->offsets[r] || m->column[z] > m->column[z - 1]);
            require(m->value[z] > 0 && m->value[z] <= 1);
        }
    }
}

static size_t split(const char *data, size_t size)
{
    for (size_t k = 0; k + 2 < size; k++)
        if (memcmp(data + k, "\n-\n", 3) == 0)
            return k;
    return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct cora c;
    struct error err;
    const char *text = (const char *)data;
    size_t at = split(text, size), rest = at < size ? at + 3 : size;
    struct cora_text content = {.name = "content", .data = text, .size = at};
    struct cora_text cites = {.name = "cites", .data = text + rest, .size = size - rest};
    if (cora_parse(&arena, &content, &cites, &c, &err) == STATUS_OK) {
        check_matrix(&c.words, c.size.papers, c.size.words);
        check_matrix(&c.adjacency, c.size.papers, c.size.papers);
        require(c.adjacency.entries == c.size.papers + 2 * c.size.links);
        for (int32_t k = 0; k < c.size.papers; k++)
            require(c.subjects[k] >= 0 && c.subjects[k] < c.size.classes);
    } else {
        require(err.message[0]);
    }
    arena_release(&arena);
    return 0;
}
