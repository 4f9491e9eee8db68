/* SPDX-License-Identifier: Apache-2.0
 *
 * Named tensors in one file, and texts about them: the format of the library safetensors, which
 * other programs read. Eight bytes say how long the header is, little-endian; the header is JSON,
 * {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..., "__metadata__": {"KEY":
 * "TEXT"}}; after it come the contents, row-major and little-endian, without gaps. Tensors keep the
 * order of the file. Checked by tests/unit/test_safetensors.c and tests/fuzz/fuzz_checkpoint.c.
 */
#ifndef BASE_TEXT_SAFETENSORS_H
#define BASE_TEXT_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/error.h"

enum { SAFETENSORS_RANK_MAX = 8 };

struct safetensor {
    const char *name;
    const char *type; /* "F32", "I64", "BOOL" ... */
    int rank;
    int64_t dim[SAFETENSORS_RANK_MAX];
    const void *data; /* of any alignment */
    size_t bytes;
};

struct safetensors_note {
    const char *key, *text;
};

struct safetensors {
    struct arena arena; /* what was read: names, texts, lists */
    struct safetensor *tensors;
    struct safetensors_note *notes;
    int count, note_count;
    size_t capacity, note_capacity;
};

/* Reads a file that lies in memory, into which .data points. name is for messages, which say the
 * byte at which the file is wrong. Release in any case. */
enum status safetensors_parse(const void *bytes, size_t size, const char *name,
                              struct safetensors *out, struct error *err);
void safetensors_release(struct safetensors *contents);
/* By name; NULL: there is none. */
const struct safetensor *safetensors_find(const struct safetensors *contents, const char *name);
const char *safetensors_note(const struct safetensors *contents, const char *key);

/* Writes tensors and notes, none of whose names and texts has 4096 bytes or more; whether the
 * stream bore it, its owner asks. */
enum status safetensors_write(FILE *stream, const struct safetensors *contents, struct error *err);

#endif
